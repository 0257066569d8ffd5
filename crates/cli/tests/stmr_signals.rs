//! Signals to MPI programs in replicas, and programs that end themselves.
//!
//! Goal: a signal arrives at the same call in all replicas, whoever it is sent to, and only once.
//! Method: a program counts signals and sends what it counted at each turn, so that replicas which
//! heard of one at different calls would be marked; signals are sent to the launcher, to one
//! replica, and to all replicas of a process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "signals are sent one after the other in real time")]

mod mpi;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use mpi::{Mpi, count, lines, replica, told, tree};

fn send(signal: &str, pid: &str) {
    mpi::succeed(Command::new("kill").args([signal, pid]));
    thread::sleep(Duration::from_millis(300));
}

/// Begins a run and waits until the program has said `begun`; with it comes the process number of
/// `selvedge mpirun`, which is the child of timeout.
fn begin(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let timeout = child.id();
    let children = fs::read_to_string(format!("/proc/{timeout}/task/{timeout}/children"));
    (child, children.unwrap().trim().to_owned())
}

#[test]
fn a_signal_arrives_once_and_at_the_same_call_in_all_replicas() {
    let each = Mpi::in_turn("signals").into_iter();
    for (mpi, dialect) in each.flat_map(|it| [(it.clone(), "-std=gnu11"), (it, "-std=c11")]) {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = folder.path().join("signals");
        mpi.compile_with("signals", &program, &[dialect]);
        let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
        let (child, selvedge) = begin(&mut command);
        let pid =
            |set, rank| replica(&program, set, rank).expect("it runs until it is asked to end");
        send("-USR1", &selvedge);
        send("-USR1", &pid(1, 2));
        for set in 0..3 {
            mpi::succeed(Command::new("kill").args(["-USR1", &pid(set, 3)]));
        }
        thread::sleep(Duration::from_millis(300));
        send("-TERM", &selvedge);
        let out = child.wait_with_output().unwrap();
        let said = format!("{dialect}, {}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let wanted = "rank 0: 1 signals\nrank 1: 1 signals\nrank 2: 2 signals\nrank 3: 2 signals";
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
        for what in ["marks", "deaths", "restarts"] {
            assert_eq!(count(&summary, what), 0, "{what}: {said}");
        }
    }
}

/// Goal: a program that blocks a signal to take it where it asks for it gets what is sent to the
/// launcher, at the same call in all replicas.  Method: see taken.c.
#[test]
fn a_signal_that_the_program_blocks_waits_until_it_takes_it() {
    for mpi in Mpi::in_turn("taken") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("taken", folder.path());
        let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
        let (child, selvedge) = begin(&mut command);
        send("-USR1", &selvedge);
        send("-USR2", &selvedge);
        let out = child.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let wanted = "rank 0: 1 and 1\nrank 1: 1 and 1\nrank 2: 1 and 1\nrank 3: 1 and 1";
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

#[test]
fn an_interrupt_from_a_terminal_ends_all_at_once() {
    let Some(mpi) = Mpi::all().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = mpi.compile("signals", folder.path());
    let tripled = mpi.tripled(&folder.path().join("summary.json"), &[program.to_str().unwrap()]);
    // Who runs the tests may have it ignored.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(tripled.get_program()).args(tripled.get_args());
    let (child, selvedge) = begin(command.stdin(Stdio::null()));
    send("-INT", &selvedge);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", told(&out));
    let is_there = |set| (0..4).any(|rank| replica(&program, set, rank).is_some());
    assert!(!(0..3).any(is_there), "a replica goes on: {}", told(&out));
}

/// Goal: a program that ends itself by a signal ends so in replicas, and is not taken for one that
/// has lost them.  Method: see itself.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_program_that_ends_itself_by_a_signal_has_the_code_of_that_signal() {
    for mpi in Mpi::in_turn("itself") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("itself", folder.path());
        for (how, code) in [("term", 143), ("raise", 152), ("abort", 134), ("assert", 134)] {
            let out = mpi.tripled(&summary, &[program.to_str().unwrap(), how]).output().unwrap();
            let said = format!("{how}, {}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(code), "{said}");
            assert_eq!(said.contains("Assertion `"), how == "assert", "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        }
    }
}

#[test]
fn a_handler_that_is_to_run_once_runs_once_and_then_the_signal_has_its_default() {
    for mpi in Mpi::in_turn("once") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = folder.path().join("once");
        mpi.compile_with("once", &program, &["-std=c11"]);
        let out = mpi.tripled(&summary, &[program.to_str().unwrap()]).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(128 + 10), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "heard of 204\n", "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: an alarm comes once and at the same place in all replicas, in calls and in sleeps, and
/// none comes of a timer that the program has ended.  Method: see alarms.c, each of whose parts is
/// run.
#[test]
fn alarms_of_timers_come_at_the_same_place_in_all_replicas() {
    for mpi in Mpi::in_turn("alarms") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("alarms", folder.path());
        for part in ["0", "1", "2", "3", "4"] {
            let out = mpi.tripled(&summary, &[program.to_str().unwrap(), part]).output().unwrap();
            let said = format!("part {part}, {}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(0), "{said}");
            let heard = format!("part {part}: heard\n");
            assert_eq!(String::from_utf8_lossy(&out.stdout), heard, "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        }
    }
}

fn end_alike(mpi: &Mpi, program: &Path, how: &str, code: i32) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let [plain, tripled] = ["plain", "tripled"].map(|it| folder.path().join(it));
    [&plain, &tripled].into_iter().for_each(|it| fs::create_dir(it).unwrap());
    let text = code.to_string();
    let words = [program.to_str().unwrap(), how, &text];
    let wanted = mpi.plain_command(&words).current_dir(&plain).output().unwrap();
    let out = mpi.tripled(&summary, &words).current_dir(&tripled).output().unwrap();
    let is_fault = how == "deep";
    let said = format!("{how} {code}, {}: {}", mpi.name, told(&out));
    // Hydra gives this code, or that of the signal by which it ended the others, by turns.
    let of_launcher = wanted.status.code().filter(|_| mpi.is_open_mpi());
    assert_eq!(out.status.code(), Some(of_launcher.unwrap_or(code)), "{said}");
    assert_eq!(count(&summary, "restarts"), 0, "{said}");
    if how == "alone" {
        assert_ne!(count(&summary, "marks"), 0, "{said}");
    } else {
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0)], &said);
    }
    // Hydra has words of its own for those who end so.
    let is_own = |it: &&str| ["rank ", "and ", "caught"].iter().any(|word| it.starts_with(word));
    let own = |text: &str| text.lines().filter(is_own).collect::<Vec<_>>().join("\n");
    let printed = |bytes: &[u8]| lines(&own(&String::from_utf8_lossy(bytes)));
    // Launchers end the others at once where a process ends so: what one does at its end is left
    // out, and all that is done after a fault.
    let is_late = |it: &(PathBuf, Vec<u8>)| it.0.to_str().is_some_and(|it| it.starts_with("said"));
    let (late, left): (Vec<_>, Vec<_>) = tree(&tripled).into_iter().partition(is_late);
    assert_eq!(late.len(), if how == "quick" { 4 } else { 0 }, "{said}");
    if !is_fault {
        assert_eq!(printed(&wanted.stdout), printed(&out.stdout), "{said}");
        let wanted: Vec<_> = tree(&plain).into_iter().filter(|it| !is_late(it)).collect();
        assert_eq!(wanted, left, "{said}");
    }
    assert_eq!(printed(&out.stdout).contains("caught"), is_fault, "{said}");
}

/// Goal: programs that end at once, and let nothing out that they have kept, end with the code of a
/// plain run, at the first start; what they have written is there, and what waited in their streams
/// is not.  Method: see exits.c, each of whose ways is run plain and in replicas, in a folder each.
#[test]
fn a_program_that_ends_at_once_ends_as_it_does_plain() {
    for mpi in Mpi::in_turn("exits") {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("exits", folder.path());
        for (how, code) in [
            ("final", 44),
            ("early", 0),
            ("_Exit", 3),
            ("handler", 33),
            ("quick", 6),
            ("deep", 56),
            ("alone", 0),
        ] {
            end_alike(&mpi, &program, how, code);
        }
    }
}

/// Goal: a program that another thread than the first ends, or of which the first ends alone, ends
/// as it does plain, at the first start; and one replica alone that ends so is outlived.  Method:
/// see workers.c.
#[test]
fn a_program_that_another_thread_ends_ends_as_it_does_plain() {
    for mpi in Mpi::in_turn("workers") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = folder.path().join("program");
        mpi.compile_with("workers", &program, &["-pthread"]);
        for (how, code) in [
            ("quick", 6),
            ("_exit", 7),
            ("term", 143),
            ("abort", 134),
            ("blocked", 134),
            ("early", 5),
            ("finalize", 5),
            ("late", 0),
            ("last", 5),
        ] {
            let words = [program.to_str().unwrap(), how];
            let out = mpi.tripled(&summary, &words).current_dir(folder.path()).output().unwrap();
            let said = format!("{how}, {}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(code), "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
            let kept = |idx| fs::read_to_string(folder.path().join(format!("kept.{idx}"))).unwrap();
            if how == "late" || how == "last" {
                let late =
                    String::from_utf8_lossy(&out.stdout).lines().filter(|it| *it == "late").count();
                assert_eq!(late, 4, "{said}");
                assert_eq!([kept(0), kept(1)], ["kept\n"; 2], "{said}");
            }
        }
        let words = [program.to_str().unwrap(), "exec"];
        let out = mpi.tripled(&summary, &words).current_dir(folder.path()).output().unwrap();
        let said = format!("exec, {}: {}", mpi.name, told(&out));
        assert!(said.contains("exec after MPI_Init is not served with replicas"), "{said}");
        assert_eq!(out.status.code(), Some(2), "{said}");
        let words = [program.to_str().unwrap(), "abort", "1", "1"];
        let out = mpi.tripled(&summary, &words).current_dir(folder.path()).output().unwrap();
        let said = format!("alone, {}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(0), "{said}");
        mpi::check_counts(&summary, &[("marks", 1), ("deaths", 1), ("restarts", 0)], &said);
    }
}

/// Goal: a program that dies of a fault of its own has that signal's code, at the first start; a
/// replica alone that does is outlived.  Method: see faults.c.
#[test]
fn a_fault_of_the_program_ends_it_and_one_of_a_replica_does_not() {
    for mpi in Mpi::in_turn("faults") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("faults", folder.path());
        let run = |words: &[&str]| {
            let out = mpi.tripled(&summary, &[&[program.to_str().unwrap()], words].concat());
            let out = { out }.current_dir(folder.path()).output().unwrap();
            let said = format!("{words:?}, {}: {}", mpi.name, told(&out));
            assert_eq!(count(&summary, "restarts"), 0, "{said}");
            (out.status.code(), said)
        };
        for (how, code) in [
            ("segv", 139),
            ("zero", 136),
            ("trap", 132),
            ("step", 133),
            ("pipe", 141),
            ("free", 134),
            ("deep", 139),
            ("raise", 139),
            ("inside", 139),
        ] {
            let (ended, said) = run(&[how]);
            assert_eq!(ended, Some(code), "{said}");
            assert!(said.contains("rank 1: most replicas die of signal"), "{said}");
        }
        let (code, said) = run(&["free", "0", "1"]);
        assert_eq!((code, count(&summary, "deaths")), (Some(0), 1), "{said}");
    }
}
