//! Files that MPI programs in replicas write.
//!
//! Goal: what is on disk in the end is what a plain run leaves there, byte for byte, whoever dies
//! while it is written.  Method: a program that changes files in all ways that there are runs plain
//! and in replicas, each in a folder of its own, and the folders are compared.  It checks what each
//! call says, so a change that is made twice stops it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a process is killed some time after its start")]

mod mpi;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use mpi::{Mpi, count, lines, replica, told, tree};

fn assert_alike(wanted: &BTreeMap<PathBuf, Vec<u8>>, folder: &Path, what: &str) {
    let got = tree(folder);
    let names = |it: &BTreeMap<PathBuf, Vec<u8>>| it.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(wanted), names(&got), "{what}");
    for (name, bytes) in wanted {
        let other = &got[name];
        let at = bytes.iter().zip(other).position(|(a, b)| a != b);
        let (lengths, name) = ((bytes.len(), other.len()), name.display());
        assert!(bytes == other, "{what}: {name} differs at {at:?}, of {lengths:?} bytes");
    }
}

/// A folder for a run, empty.
fn fresh(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn files_are_what_a_plain_run_leaves_and_a_second_run_goes_on_from_them() {
    for mpi in Mpi::in_turn("files") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("files", folder.path());
        let program = program.to_str().unwrap();
        let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
        for again in [false, true] {
            let mut command = mpi.plain_command(&[program, "9"]);
            let wanted = mpi::succeed(command.current_dir(&plain));
            let mut command = mpi.tripled(&summary, &[program, "9"]);
            let out = command.current_dir(&tripled).output().unwrap();
            let said = format!("{}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            let text = |bytes: &[u8]| lines(&String::from_utf8_lossy(bytes));
            assert_eq!(text(&wanted.stdout), text(&out.stdout), "{said}");
            assert_eq!(count(&summary, "marks"), 0, "{said}");
            for (set, rank) in (0..3).flat_map(|set| (0..4).map(move |rank| (set, rank))) {
                // Files that are named by the set are each replica's own.
                let own = tripled.join(format!("own.{set}.{rank}"));
                assert_eq!(fs::read_to_string(&own).unwrap(), format!("set {set}\n"));
                fs::remove_file(own).unwrap();
            }
            assert_alike(&tree(&plain), &tripled, &said);
            if !again {
                fs::remove_dir_all(plain.join("out")).unwrap();
                fs::remove_dir_all(tripled.join("out")).unwrap();
            }
        }
    }
}

/// Goal: what a view shows, and what an access to a window reaches, is what it is plain for types
/// of every kind, however far their data are apart.  Method: see spread.c; what it leaves is
/// compared, and so is what it prints of places in arrays of terabytes.
#[test]
fn views_and_windows_are_what_they_are_plain_for_types_of_every_kind() {
    for mpi in Mpi::in_turn("spread") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("spread", folder.path());
        let words = [program.to_str().unwrap()];
        let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
        let wanted = mpi::succeed(mpi.plain_command(&words).current_dir(&plain));
        let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let text = |bytes: &[u8]| lines(&String::from_utf8_lossy(bytes));
        assert_eq!(text(&wanted.stdout), text(&out.stdout), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        assert_alike(&tree(&plain), &tripled, &said);
    }
}

/// What a run of `listed` before this one has left in folders that are named by its sets.
fn leave_folders(to: &Path, n_sets: usize) {
    for (set, rank) in (0..n_sets).flat_map(|set| (0..4).map(move |rank| (set, rank))) {
        for name in ["old", "older"] {
            let own = fresh(to, &format!("{name}.{rank}.{set}"));
            fs::write(own.join("same"), "x".repeat(set + 1)).unwrap();
            fs::write(own.join(set.to_string()), "").unwrap();
        }
    }
}

/// Goal: what a process finds in a folder and reads under a lock, which other processes of the
/// program change meanwhile, is the same in all its replicas.  Method: see listed.c and guarded.c,
/// which send it.
#[test]
fn what_others_change_meanwhile_is_found_alike_by_all_replicas() {
    for name in ["listed", "guarded"] {
        for mpi in Mpi::in_turn(name) {
            let folder = tempfile::tempdir().unwrap();
            let summary = folder.path().join("summary.json");
            let program = mpi.compile(name, folder.path());
            let words = [program.to_str().unwrap(), "60"];
            let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
            if name == "listed" {
                leave_folders(&plain, 1);
                leave_folders(&tripled, 3);
            }
            let wanted = mpi::succeed(mpi.plain_command(&words).current_dir(&plain));
            let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
            let said = format!("{name} under {}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            let [wanted, got] = [&wanted, &out].map(|it| String::from_utf8_lossy(&it.stdout));
            assert_eq!(wanted, got, "{said}");
            assert!(!got.is_empty(), "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
            assert_alike(&tree(&plain), &tripled, &said);
        }
    }
}

/// Goal: files by whole names under `/dev/shm`, pipes with names, locks on parts and reads into
/// several places come to what they come to plain.  Method: see ways.c, whose calls each say once
/// what they did.
#[test]
fn files_in_memory_and_locks_on_parts_are_what_they_are_plain() {
    for mpi in Mpi::in_turn("ways") {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("ways", folder.path());
        let program = program.to_str().unwrap();
        let (plain, tripled) = (fresh(memory.path(), "plain"), fresh(memory.path(), "tripled"));
        mpi::succeed(&mut mpi.plain_command(&[program, plain.to_str().unwrap(), "5"]));
        let words = [program, tripled.to_str().unwrap(), "5"];
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        assert_alike(&tree(&plain), &tripled, &said);
    }
}

#[test]
fn a_file_is_whole_when_the_meta_that_wrote_it_is_killed() {
    for (mpi, rank) in Mpi::in_turn("files").into_iter().zip([0, 3].into_iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("files", folder.path());
        let words = [program.to_str().unwrap(), "2000"];
        let plain = fresh(folder.path(), "plain");
        mpi::succeed(mpi.plain_command(&words).current_dir(&plain));
        let wanted = tree(&plain);
        let tripled = fresh(folder.path(), &format!("killed.{rank}"));
        let mut command = mpi.tripled(&summary, &words);
        command.current_dir(&tripled).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Process 0 prints between the lines that it writes to its file.
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 1]).unwrap();
        thread::sleep(Duration::from_millis(40 * rank));
        let pid = replica(&program, 0, rank).expect("the replica runs while its program prints");
        mpi::succeed(Command::new("kill").args(["-9", &pid]));
        let out = child.wait_with_output().unwrap();
        let said = format!("rank {rank} under {}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_ne!(count(&summary, "deaths"), 0, "nobody was killed: {said}");
        assert_eq!(count(&summary, "restarts"), 0, "{said}");
        for entry in fs::read_dir(&tripled).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("own.") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        assert_alike(&wanted, &tripled, &said);
    }
}

/// Goal: a lock is held for as long as the program holds it, whichever replica leads.  Method: see
/// held.c; the meta of process 0 is killed while it holds two, or marked.
#[test]
fn locks_on_files_outlive_who_took_them() {
    for mpi in Mpi::in_turn("held") {
        for differs in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let summary = folder.path().join("summary.json");
            let program = mpi.compile("held", folder.path());
            let words = [program.to_str().unwrap(), "differ"];
            let mut command = mpi.tripled(&summary, if differs { &words } else { &words[..1] });
            command.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
            thread::sleep(Duration::from_millis(200));
            if !differs {
                let pid = replica(&program, 0, 0).expect("the replica runs until it is let go");
                mpi::succeed(Command::new("kill").args(["-9", &pid]));
                thread::sleep(Duration::from_millis(500));
            }
            fs::write(folder.path().join("go"), "").unwrap();
            let out = child.wait_with_output().unwrap();
            let said = format!("{differs} {}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            assert_eq!(String::from_utf8_lossy(&out.stdout), "let go\n", "{said}");
            let wanted = if differs { [0, 1, 0] } else { [1, 0, 0] };
            let counts = ["deaths", "marks", "restarts"].map(|it| count(&summary, it));
            assert_eq!(counts, wanted, "{said}");
            assert_ne!(count(&summary, "promotions"), 0, "{said}");
            assert!(!said.contains("somebody else's"), "{said}");
        }
    }
}

/// Goal: what MPI's own files hold does not depend on which set writes.  Method: the meta of one
/// process is killed between two rounds in which all write parts of one matrix, or records at a
/// place that they share.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn files_of_mpi_are_written_once_and_outlive_who_wrote_them() {
    for (mpi, rank) in Mpi::in_turn("views").into_iter().zip([2, 1].into_iter().cycle()) {
        for (name, rounds) in [("mpiio", "60"), ("shared", "20")] {
            outlive_its_meta(&mpi, name, rounds, rank);
        }
    }
}

fn outlive_its_meta(mpi: &Mpi, name: &str, rounds: &str, rank: u64) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile(name, folder.path());
    let words = [program.to_str().unwrap(), rounds];
    let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
    mpi::succeed(mpi.plain_command(&words).current_dir(&plain));
    let mut command = mpi.tripled(&summary, &words);
    command.current_dir(&tripled).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 1]).unwrap();
    let pid = replica(&program, 0, rank).expect("the replica runs while its program prints");
    mpi::succeed(Command::new("kill").args(["-9", &pid]));
    let out = child.wait_with_output().unwrap();
    let said = format!("rank {rank} of {name} under {}: {}", mpi.name, told(&out));
    assert!(out.status.success(), "{said}");
    let counts = ["deaths", "marks", "restarts"].map(|it| count(&summary, it));
    assert_eq!(counts, [1, 0, 0], "{said}");
    assert_alike(&tree(&plain), &tripled, &said);
}

/// Goal: calls on MPI's files that are refused return what they return plain, and the same handler
/// hears of it.  Method: see refused.c; each line that it prints is one call.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn errors_of_files_of_mpi_are_heard_by_the_handlers_that_hear_of_them_plain() {
    for mpi in Mpi::in_turn("refused") {
        // Plain, MPICH 5.0.2 crashes there when it is asked about MPI_FILE_NULL.
        if mpi.name.ends_with("standard-abi") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("refused", folder.path());
        let words = [program.to_str().unwrap()];
        let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
        let wanted = mpi.plain_command(&words).current_dir(&plain).output().unwrap();
        assert!(wanted.status.success(), "{}: {}", mpi.name, told(&wanted));
        let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let [wanted, got] =
            [&wanted, &out].map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        assert!(wanted.contains("heard by the file's"), "{}: {wanted}", mpi.name);
        assert_eq!(lines(&wanted), lines(&got), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("restarts", 0)], &said);
    }
}

/// Goal: a program whose file cannot be opened ends where it would plain, and one that MPI itself
/// ends within a call is no program that hangs.  Method: the handler of no file is one that ends
/// all; MPICH 4.0.2 ends a process that sets `MPI_ERRORS_ABORT`.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn an_error_of_a_file_that_is_to_end_the_program_ends_it() {
    for mpi in Mpi::in_turn("refused") {
        for word in ["fatal", "abort"] {
            let folder = tempfile::tempdir().unwrap();
            let summary = folder.path().join("summary.json");
            let program = mpi.compile("refused", folder.path());
            let words = [program.to_str().unwrap(), word];
            let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
            let wanted = mpi.plain_command(&words).current_dir(&plain).output().unwrap();
            let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
            let said = format!("{word} under {}: {}", mpi.name, told(&out));
            // Open MPI 4 has no MPI_ERRORS_ABORT: there the program goes on.
            assert_eq!(out.status.success(), wanted.status.success(), "{said}");
            assert_ne!(out.status.code(), Some(mpi::OVER_LIMIT), "it took too long: {said}");
            let went_on = String::from_utf8_lossy(&out.stdout).contains("it went on");
            assert_eq!(went_on, wanted.status.success(), "{said}");
            let is_named =
                ["MPI_File_open failed", "MPI ended a process in MPI_File_set_errhandler"]
                    .iter()
                    .any(|it| said.contains(it));
            assert_ne!(is_named, went_on, "{said}");
        }
    }
}

/// Goal: a replica whose set has lost another process, and which nothing but its siblings holds
/// back, still finds the files that it comes to.  Method: one set loses process 0, and process 2 of
/// that set sleeps before it opens files that are removed soon after.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn who_is_fed_finds_the_files_that_it_comes_to_late() {
    for mpi in Mpi::in_turn("mpiio") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("mpiio", folder.path());
        let words = [program.to_str().unwrap(), "1", "late"];
        let (plain, tripled) = (fresh(folder.path(), "plain"), fresh(folder.path(), "tripled"));
        mpi::succeed(mpi.plain_command(&words).current_dir(&plain));
        let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let counts = ["deaths", "marks", "restarts"].map(|it| count(&summary, it));
        assert_eq!(counts, [1, 0, 0], "{said}");
        assert_alike(&tree(&plain), &tripled, &said);
    }
}

/// Memory of MPIs that has a name, and that no process has any more.
fn left_behind() -> Vec<String> {
    let names = fs::read_dir("/dev/shm").unwrap().flatten();
    let names = names.map(|it| it.path().display().to_string());
    let of_mpi = |it: &String| ["mpich", "vader", "psm"].iter().any(|word| it.contains(word));
    let mut left: Vec<String> = names.filter(of_mpi).collect();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        left.retain(|it| !maps.contains(it));
    }
    left
}

/// Goal: a run leaves no memory behind.  Method: MPICH 5 takes its name away in MPI_Finalize alone.
#[test]
fn no_memory_that_processes_shared_is_left_under_its_name() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("ring", folder.path());
        let before = left_behind();
        let words = [program.to_str().unwrap(), "20"];
        mpi::succeed(&mut mpi.tripled(&folder.path().join("summary.json"), &words));
        let is_new = |it: &String| !before.contains(it);
        // Other runs' have names before anybody has mapped them.
        let left = || left_behind().into_iter().filter(is_new).collect::<Vec<_>>();
        let soon = (0..50).any(|_| {
            thread::sleep(Duration::from_millis(100));
            left().is_empty()
        });
        assert!(soon, "{}: {:?}", mpi.name, left());
    }
}
