//! Real MPI programs in replicas, through the real program.
//!
//! The programs stand in crates/stmr-mpi/programs and are compiled here.  Without mpicc and mpirun
//! nothing can be run; `cargo xtask test` then names the packages that are missing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use mpi::{Mpi, count, lines, replica, succeed, told};

#[test]
fn programs_in_three_replicas_print_what_they_print_plain() {
    PROGRAMS[..4].iter().for_each(print_alike);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn so_do_the_others() {
    PROGRAMS[4..].iter().for_each(print_alike);
}

const PROGRAMS: [(&str, &[&str]); 31] = [
    ("ring", &["40"]),
    ("collectives", &["3"]),
    ("errors", &[]),
    ("windows", &["2"]),
    ("anybody", &["3"]),
    ("anybody", &["3", "sides"]),
    ("heap", &["12"]),
    ("beside", &[]),
    ("trapped", &[]),
    ("chance", &["20"]),
    ("inter", &["3"]),
    ("padding", &[]),
    ("locks", &["1"]),
    ("segments", &["3"]),
    ("unwritten", &["3"]),
    ("many", &["8"]),
    ("crowd", &["1500"]),
    ("freed", &[]),
    ("attributes", &[]),
    ("cancelled", &[]),
    ("allocator", &[]),
    ("numbers", &["7", "eight"]),
    ("itself", &["ask"]),
    ("looked", &["50"]),
    ("sums", &[]),
    ("raised", &[]),
    ("asked", &["3"]),
    ("modes", &["2"]),
    ("exposed", &["4"]),
    ("counted", &[]),
    ("drawn", &["7", "80"]),
];

fn print_alike(&(name, args): &(&str, &[&str])) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    for mpi in Mpi::in_turn(name) {
        let program = mpi.compile(name, folder.path());
        // MPICH 5.0.2 stands still where two sides are made while a send waits. On a busy machine
        // Intel's MPI loses some of what is accumulated, in 6 of 25 plain runs: most are right.
        let stands_still = (name, args.len()) == ("anybody", 2) && mpi.name.starts_with("mpich-");
        let is_lossy = mpi.name.starts_with("impi-") && ["windows", "exposed"].contains(&name);
        let other = Mpi::named("mpich").filter(|_| stands_still);
        let plain = || match &other {
            Some(mpich) => mpich.plain(&mpich.compile(name, folder.path()), args),
            None => mpi.plain(&program, args),
        };
        let mut wanted = plain();
        let name = format!("{name} under {}", mpi.name);
        let out =
            mpi.tripled(&summary, &[&[program.to_str().unwrap()], args].concat()).output().unwrap();
        assert!(out.status.success(), "{name}: {}", told(&out));
        let got = lines(&String::from_utf8_lossy(&out.stdout));
        for _ in 0..8 {
            if is_lossy && got != wanted {
                wanted = plain();
            }
        }
        assert_eq!(got, wanted, "{name}");
        assert_eq!(count(&summary, "marks"), 0, "{name}: a false alarm: {}", told(&out));
        assert_eq!(count(&summary, "restarts"), 0, "{name}");
        assert!(0 < count(&summary, "compares"), "{name}");
    }
}

/// Goal: whoever reads what is not served finds each call that is refused.
#[test]
fn every_refused_call_is_named_in_the_documentation() {
    let table = fs::read_to_string(mpi::sources().join("../calls.txt")).unwrap();
    let page = mpi::sources().join("../../../docs/mpirun.md");
    let page = fs::read_to_string(page).unwrap();
    let refused = table.lines().filter(|it| it.ends_with(" refuse"));
    let names: Vec<&str> = refused.filter_map(|it| it.split(' ').next()).collect();
    assert!(20 < names.len());
    for name in names {
        // Those with wider counts stand by the others, families by their beginning.
        let narrow = name.strip_suffix("_c").unwrap_or(name);
        let is_named =
            |it: &str| page.contains(&format!("`{it}`")) || page.contains(&format!("`MPI_{it}`"));
        let is_there = ["Session_", "T_event_"].iter().any(|it| name.starts_with(it))
            || [name, narrow].into_iter().any(is_named);
        assert!(is_there, "docs/mpirun.md does not name {name}");
    }
}

/// Goal: an error that no handler of the program's takes ends it as it ends a run without replicas.
/// Method: one of its processes sends to one that is not there, and prints something if it goes on.
#[test]
fn an_error_that_nobody_handles_ends_the_program() {
    for mpi in Mpi::in_turn("errors") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("errors", folder.path());
        let words = [program.to_str().unwrap(), "fatal"];
        let plain = mpi.plain_command(&words).output().unwrap();
        assert!(!plain.status.success(), "{}", mpi.name);
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(!out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "", "{said}");
        assert!(said.contains("rank 2: MPI_Send failed"), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("restarts", 0)], &said);
    }
}

/// Goal: a program that ends without MPI_Finalize has the code that its launcher gives it plain.
/// Method: each launcher's own, for success and for a failure; see quits.c.
#[test]
fn a_program_that_quits_ends_with_the_code_of_a_plain_run() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("quits", folder.path());
        for code in ["0", "5"] {
            let words = [program.to_str().unwrap(), code];
            let plain = mpi.plain_command(&words).output().unwrap();
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{} {code}: {}", mpi.name, told(&out));
            // Hydra, MPICH's and Intel's launcher, has one time the program's code, and another the
            // signal by which it ended a process itself.
            let is_one = mpi.is_open_mpi();
            let wanted = if is_one { plain.status.code() } else { code.parse().ok() };
            assert_eq!(out.status.code(), wanted, "{said}");
            assert_eq!(String::from_utf8_lossy(&out.stdout), "quits\n", "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("restarts", 0)], &said);
        }
    }
}

/// Goal: of a program that ends before it is one of MPI's everything is shown that it prints, and
/// its code is its own.  Method: a script that says something and ends, some later than others.
#[test]
fn a_program_that_never_calls_mpi_ends_as_it_does_plain() {
    for mpi in Mpi::in_turn("a usage") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        for code in [0, 3] {
            let script =
                format!("sleep 0.$((SELVEDGE_SET * SELVEDGE_RANK)); echo usage; exit {code}");
            let words = [&mpi.launcher_of_a_script()[..], &["/bin/sh", "-c", &script]].concat();
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{} {code}: {}", mpi.name, told(&out));
            assert_eq!(out.status.code(), Some(code), "{said}");
            assert_eq!(String::from_utf8_lossy(&out.stdout), "usage\n".repeat(4), "{said}");
            assert!(said.contains("never called MPI_Init"), "{said}");
        }
    }
}

/// Goal: a program that another of its processes ends has printed what it prints plain, and its
/// summary says what it did.  Method: lines are printed between messages; see lines.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn what_was_printed_by_lines_has_come_out_when_the_program_is_aborted() {
    for mpi in Mpi::in_turn("lines") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("lines", folder.path());
        let words = [program.to_str().unwrap(), "7"];
        let plain = mpi.plain_command(&words).output().unwrap();
        let out = mpi.tripled(&summary, &[&["--json"], &words[..]].concat()).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(7), "{said}");
        let printed = |it: &[u8]| lines(&String::from_utf8_lossy(it));
        assert_eq!(printed(&out.stdout), printed(&plain.stdout), "{said}");
        let of_terminal = printed(&out.stdout).contains("step 3, to a terminal");
        assert_eq!(of_terminal, mpi.is_open_mpi(), "{said}");
        // Four processes, four rounds.
        mpi::check_counts(&summary, &[("marks", 0), ("sends", 16)], &said);
        let text = told(&out);
        let last = text.lines().rfind(|it| it.starts_with('{')).unwrap_or_default();
        let told: serde_json::Value = serde_json::from_str(last).unwrap();
        let kept = fs::read_to_string(&summary).unwrap();
        assert_eq!(told, serde_json::from_str::<serde_json::Value>(&kept).unwrap());
        assert_eq!(told["result"], "exit code 7");
        assert!(0.2 < told["seconds"].as_f64().unwrap(), "{said}");
    }
}

/// Goal: the output is whole when the process that led it dies.  Method: a replica of set 0 is
/// killed once its process has printed, so it dies between MPI_Init and its last send.
#[test]
fn a_killed_meta_is_outlived_without_a_lost_or_doubled_byte() {
    for mpi in Mpi::in_turn("ring") {
        outlive_metas(&mpi);
    }
}

fn outlive_metas(mpi: &Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile("ring", folder.path());
    let args = ["800"];
    let wanted = mpi.plain(&program, &args);
    // Where each set is a job, the launcher of one job sees a death in it.
    for &(rank, sets) in mpi::first(2, &[(0, "one"), (1, "jobs"), (2, "one")]) {
        let words = ["--sets", sets, program.to_str().unwrap()];
        let mut command = mpi.tripled(&summary, &[&words, &args[..]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = vec![0; 1];
        if out.read_exact(&mut text).is_err() {
            let said = told(&child.wait_with_output().unwrap());
            panic!("{}, rank {rank}, {sets}: nothing was printed: {said}", mpi.name);
        }
        let pid = replica(&program, 0, rank).expect("the replica runs while its program prints");
        let killed = Command::new("kill").args(["-9", &pid]).status().unwrap();
        assert!(killed.success());
        out.read_to_end(&mut text).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", told(&ended));
        assert_eq!(lines(&String::from_utf8_lossy(&text)), wanted, "rank {rank}");
        assert_eq!(count(&summary, "deaths"), 1);
        assert_eq!(count(&summary, "restarts"), 0, "{}", told(&ended));
        assert_eq!(count(&summary, "marks"), 0, "{}", told(&ended));
    }
}

/// Goal: a collective that was left at a death changes nothing when it goes on.  Method: what comes
/// late waits in the sockets of Open MPI, which reads them when the program lets it; see late.c.
#[test]
fn what_comes_to_a_collective_after_it_was_left_reaches_no_memory_of_the_program() {
    let Some(mpi) = Mpi::named("openmpi") else { return };
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile("late", folder.path());
    let sign = folder.path().join("sign");
    let args = [sign.to_str().unwrap()];
    let wanted = mpi.plain(&program, &args);
    let tcp = ["--mca", "btl", "tcp,self"].map(|it| ["--launcher-arg", it]).concat();
    let words = [&tcp[..], &[program.to_str().unwrap()], &args[..]].concat();
    let out = mpi.tripled(&summary, &words).output().unwrap();
    let said = told(&out);
    assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
    mpi::check_counts(&summary, &[("marks", 0), ("restarts", 0), ("deaths", 1)], &said);
    assert!(said.contains("it came"), "nothing came late: {said}");
}

/// Goal: of a receive from anybody that one set has begun and another leads then, all sets take the
/// same message.  Method: who leads errs while such receives are under way; see demoted.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn receives_from_anybody_are_handed_over_when_another_leads() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("demoted", folder.path());
        let words = [program.to_str().unwrap(), "60"];
        let wanted = mpi.plain(&program, &words[1..]);
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
        // In rounds 3, 21, 39 and 57 it errs, and leads again when it has been right often enough.
        let counts = [("marks", 4), ("deaths", 0), ("restarts", 0)];
        mpi::check_counts(&summary, &counts, &said);
    }
}

/// Goal: what is kept with communicators outlives a death.  Method: a replica ends with things kept
/// that its set has copied and let go since, and that it copies and lets go without MPI from there
/// on; see attributes.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_set_that_has_left_mpi_keeps_what_it_kept_with_communicators() {
    for mpi in Mpi::in_turn("attributes") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("attributes", folder.path());
        let words = [program.to_str().unwrap(), "dies"];
        let wanted = mpi.plain(&program, &words[1..]);
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 1), ("restarts", 0)], &said);
    }
}

/// Goal: what a process learns about itself by its own number does not depend on whose number that
/// is.  Method: the replica that has it is killed, or another gives up by itself; see itself.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn who_has_outlived_the_replica_whose_number_all_have_still_knows_itself() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("itself", folder.path());
        let wanted = mpi.plain(&program, &["ask"]);
        for (how, marks) in [("die", 0), ("alone", 1)] {
            let out = mpi.tripled(&summary, &[program.to_str().unwrap(), how]).output().unwrap();
            let said = format!("{how}, {}: {}", mpi.name, told(&out));
            assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
            mpi::check_counts(&summary, &[("marks", marks), ("deaths", 1), ("restarts", 0)], &said);
        }
    }
}

/// Goal: a replica that waits for a message that nobody sends is not waited for.  Method: one asks
/// for another tag than its siblings; see astray.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_replica_that_waits_for_something_else_is_ended() {
    for mpi in Mpi::in_turn("astray") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("astray", folder.path());
        for set in mpi::first(1, &["0", "2"]) {
            let words = [program.to_str().unwrap(), *set];
            let wanted = mpi.plain(&program, &words[1..]);
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{}: {}", mpi.name, told(&out));
            assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
            mpi::check_counts(&summary, &[("deaths", 1), ("restarts", 0)], &said);
            assert!(said.contains("waits for something else"), "{said}");
        }
    }
}

/// Goal: who comes late is waited for, and who never comes is not, whoever waits for it.  Method: a
/// replica computes longer than its siblings, computes for ever, or is stopped; see behind.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_replica_that_comes_late_is_waited_for_and_one_that_never_comes_is_ended() {
    for mpi in Mpi::in_turn("behind") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = folder.path().join("behind");
        mpi.compile_with("behind", &program, &["-pthread"]);
        let wanted = mpi.plain(&program, &[]);
        for (how, deaths, why) in [
            ("slow", 0, ""),
            ("loops", 1, "computes without end"),
            ("stops", 1, "does not go on"),
            ("polls", 1, "does not go on"),
            ("ends", 1, "does not go on"),
        ] {
            let words = [program.to_str().unwrap(), how];
            let out = mpi.tripled_on(2, &summary, &words).output().unwrap();
            let said = format!("{how}, {}: {}", mpi.name, told(&out));
            assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
            let counts = [("marks", 0), ("deaths", deaths), ("restarts", 0)];
            mpi::check_counts(&summary, &counts, &said);
            assert!(said.contains(why), "{said}");
        }
    }
}

/// Goal: a program that asks and never waits holds nobody up.  Method: it asks for one message
/// while the sender of another waits for its receive from anybody; see polled.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn who_asks_and_asks_receives_what_it_does_not_ask_for() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("polled", folder.path());
        let wanted = mpi.plain(&program, &[]);
        let out = mpi.tripled(&summary, &[program.to_str().unwrap()]).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        // Who stands still is let go on when its events fill their place, of 32 MiB; on a busy
        // machine not quite half of it was in use at times, with nobody standing still.
        assert!(count(&summary, "log_bytes_max") < 28 << 20, "{said}");
    }
}

/// Goal: what a replica that makes other calls told of its receives leads nobody astray.  Method:
/// one that leads makes another receive among those from anybody; see misled.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn one_replica_alone_is_lost_when_it_makes_other_receives() {
    for mpi in Mpi::in_turn("misled") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("misled", folder.path());
        let wanted = mpi.plain(&program, &[]);
        let errors = ["tag", "missing", "named", "anybody", "more", "freed"];
        for error in mpi::first(2, &errors) {
            let words = [program.to_str().unwrap(), *error];
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{}, {error}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
            mpi::check_counts(&summary, &[("deaths", 1), ("restarts", 0)], &said);
        }
    }
}

/// Goal: nobody stands still before or in MPI_Init.  Method: the C library's memory cannot be had
/// while clocks are read, and shadows read late what the meta settled before it was there; see
/// early.c.
#[test]
fn what_is_asked_before_mpi_init_takes_no_memory_of_the_program_and_holds_nobody_up() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("early", folder.path());
        let wanted = mpi.plain(&program, &[]);
        let out = mpi.tripled(&summary, &[program.to_str().unwrap()]).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: what an MPI brings along may ask whatever it likes when it is loaded, and what the program
/// asks stays shared.  Method: two libraries, of which one is called as MPI's are and needs the
/// other; see brought.c.
#[test]
fn what_mpi_brings_along_is_answered_truly_while_it_is_loaded() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (summary, program, path) = (at("summary.json"), at("program"), folder.path());
        let here = path.to_str().unwrap();
        let found = format!("-Wl,--no-as-needed,-rpath,{here}");
        let shared = |to: &str, words: &[&str]| {
            let mut command = Command::new("cc");
            command.args(["-shared", "-fPIC", "-w", "-L", here, &found, "-o"]).arg(at(to));
            mpi::succeed(command.args(words));
        };
        let source = mpi::sources().join("brought.c");
        shared("libbrought.so", &["-DLIBRARY", source.to_str().unwrap()]);
        shared("libmpibrings.so", &["-xc", "/dev/null", "-lbrought"]);
        let words = ["-L", here, &found, "-Wl,-rpath-link", here, "-lmpibrings"];
        mpi.compile_with("brought", &program, &words);
        let wanted = "the library was answered truly";
        assert_eq!(mpi.plain(&program, &[]), wanted, "{}", mpi.name);
        let out = mpi.tripled(&summary, &[program.to_str().unwrap()]).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: to an accelerator each replica is a process; memory that the processor cannot read is
/// named and harms nobody, nor does one replica that errs about where its memory lies.  Method: a
/// library that is called as CUDA's; see accelerator.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn drivers_of_accelerators_are_answered_truly_and_their_memory_is_refused_by_name() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("accelerator", folder.path());
        let library = folder.path().join("libcuda.so.1");
        let source = mpi::sources().join("accelerator.c");
        let words = ["-DLIBRARY", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"];
        succeed(Command::new("cc").args(words).args([&library, &source]));
        let run = |gives: &str| {
            let words = [program.to_str().unwrap(), library.to_str().unwrap(), gives];
            mpi.tripled(&summary, &words).output().unwrap()
        };
        let wanted = mpi.plain(&program, &[library.to_str().unwrap(), "none"]);
        for (gives, n_deaths) in [("none", 0), ("0", 1), ("2", 1)] {
            let out = run(gives);
            let said = format!("{}, {gives}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
            let wanted = [("deaths", n_deaths), ("marks", n_deaths), ("restarts", 0)];
            mpi::check_counts(&summary, &wanted, &said);
        }
        let out = run("all");
        let said = format!("{}: {}", mpi.name, told(&out));
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("MPI_Sendrecv of an accelerator's memory"), "{said}");
    }
}

/// Goal: a program that starts again gets its input again, from the first byte.  Method: two
/// replicas of one process are gone when it has read all of it; see reader.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_program_that_starts_again_reads_its_input_again() {
    let input: String = (1..=20_000).map(|it| format!("{it}\n")).collect();
    for mpi in Mpi::in_turn("reader") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("reader", folder.path());
        let marks = folder.path().join("was");
        let words = [program.to_str().unwrap(), marks.to_str().unwrap()];
        let mut command = mpi.tripled(&summary, &words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        run.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let out = run.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let lines = lines(&String::from_utf8_lossy(&out.stdout));
        assert!(lines.contains("rank 0: 200010000"), "{said}");
        mpi::check_counts(&summary, &[("restarts", 1)], &said);
    }
}

/// Goal: of a program that goes on from its own checkpoint all is shown that it prints, all deaths
/// are counted, and nobody is taken for wrong.  Method: two replicas of one process end at once,
/// the one that prints among them; see resumed.c.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn what_a_program_prints_that_goes_on_from_its_own_checkpoint_is_shown_whole() {
    for (mpi, rank) in Mpi::in_turn("resumed")
        .iter()
        .flat_map(|it| mpi::first(1, &["1", "0"]).iter().map(move |rank| (it, *rank)))
    {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("resumed", folder.path());
        let kept = folder.path().join("kept");
        let words = [program.to_str().unwrap(), kept.to_str().unwrap(), rank];
        let out = mpi.tripled(&summary, &words).output().unwrap();
        let said = format!("{}, rank {rank}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        let step = |it: i32| format!("step {it}: {}\n", 4 * it);
        let printed = String::from_utf8(out.stdout).unwrap();
        let rest = printed.strip_prefix("4 processes\n").unwrap_or_default();
        let rest = (0..9).map(step).fold(rest, |rest, it| rest.strip_prefix(&it).unwrap_or(rest));
        let wanted = format!("from step 5\n{}end\n", (5..12).map(step).collect::<String>());
        // Of the line at which it was ended a part may have come.
        let is_whole = rest.strip_suffix(&wanted).is_some_and(|it| !it.contains('\n'));
        assert!(is_whole, "{printed}\n{said}");
        assert!(said.contains("from line 2 on the program prints something else"), "{said}");
        mpi::check_counts(&summary, &[("restarts", 1), ("deaths", 2), ("marks", 0)], &said);
    }
}

#[test]
fn what_cannot_be_served_is_refused_by_name_before_it_starts() {
    let selvedge = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        let out = command.arg("mpirun").args(args).stdin(Stdio::null()).output().unwrap();
        assert!(!out.status.success(), "{args:?}");
        told(&out)
    };
    assert!(selvedge(&["-n", "2", "./no-such-program"]).contains("no program ./no-such-program"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("other");
    fs::write(&program, b"#!/bin/sh\nexit 0\n").unwrap();
    succeed(Command::new("chmod").arg("+x").arg(&program));
    let program = program.to_str().unwrap();
    let other = selvedge(&["-n", "2", "--launcher", "/bin/echo", program]);
    assert!(other.contains("/bin/echo is neither Open MPI's mpirun nor a hydra nor srun"));
    assert!(selvedge(&["-n", "2", "-r", "4", program]).contains("4 is not in 1..=3"));
    // The summary of a run before is not taken for one of this.
    let summary = folder.path().join("summary.json");
    fs::write(&summary, "{}").unwrap();
    selvedge(&["-n", "2", "--json-summary", summary.to_str().unwrap(), "./no-such-program"]);
    let said: serde_json::Value = serde_json::from_slice(&fs::read(&summary).unwrap()).unwrap();
    assert_eq!((&said["ranks"], &said["sends"]), (&2.into(), &0.into()), "{said}");
    assert!(said["result"].as_str().unwrap().contains("no-such-program"), "{said}");
}

/// What `selvedge mpirun` with these arguments says of a program that it does not run to its end.
fn refused(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    let out = command.arg("mpirun").args(args).stdin(Stdio::null()).output().unwrap();
    assert!(!out.status.success(), "{args:?}");
    assert!(out.stdout.is_empty(), "{args:?} printed something");
    told(&out)
}

#[test]
fn comparing_in_full_tells_the_first_byte_that_differs() {
    for mpi in Mpi::in_turn("differ") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("differ", folder.path());
        let wanted = mpi.plain(&program, &[]);
        let program = program.to_str().unwrap();
        let mut command = mpi.tripled(&summary, &["--compare", "full", program, "one"]);
        let out = command.output().unwrap();
        let said = told(&out);
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{}: {said}", mpi.name);
        assert_eq!(count(&summary, "marks"), 1, "{said}");
        let where_it_is = "set2 differs in MPI_Send at byte 321 of 1000: 0x10 for 0x14";
        assert!(said.contains(where_it_is), "{}: {said}", mpi.name);
        assert_eq!(marks(&summary), [[1, 2, 321]], "{said}");
        // While it is marked, it is not marked again.
        let mut command = mpi.tripled(&summary, &["--compare", "full", program, "often"]);
        let out = command.output().unwrap();
        let said = told(&out);
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{}: {said}", mpi.name);
        mpi::check_counts(&summary, &[("marks", 2), ("restarts", 0)], &said);
        assert_eq!(marks(&summary), [[1, 2, 321]; 2], "{said}");
        let launcher = mpi.launcher_args();
        let said = refused(
            &[&["-n", "2", "--compare", "full"], &launcher[..], &[program, "all"]].concat(),
        );
        let pair = "set0 and set1 differ in MPI_Send at byte 654 of 1000: 0x15 for 0x16";
        assert!(said.contains(pair), "{}: {said}", mpi.name);
        assert!(said.contains("not deterministic here"), "{}: {said}", mpi.name);
    }
}

/// Rank, set and first differing byte of each mark in a summary.
fn marks(summary: &std::path::Path) -> Vec<[u64; 3]> {
    let text = fs::read_to_string(summary).unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    let words = |it: &serde_json::Value| ["rank", "set", "byte"].map(|word| it[word].as_u64());
    row["marked"].as_array().unwrap().iter().map(|it| words(it).map(Option::unwrap)).collect()
}

/// Goal: what nobody can be told ends no program.  Method: a slice with clusters names a server
/// that is not there.
#[test]
fn on_a_slice_marks_are_told_and_a_missing_server_ends_nothing() {
    let Some(mpi) = Mpi::all().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile("differ", folder.path());
    let wanted = mpi.plain(&program, &[]);
    let slice = folder.path().join("slice.json");
    let tasks: Vec<_> =
        (0..3).map(|it| serde_json::json!({"machine": format!("host{it}")})).collect();
    let text = serde_json::json!({"job": 3, "tasks": tasks, "clusters": [[1, 0, 2]]}).to_string();
    fs::write(&slice, text).unwrap();
    let mut command = mpi.tripled(&summary, &[program.to_str().unwrap(), "one"]);
    command.env("SELVEDGE_SLICE_FILE", &slice).env("SELVEDGE_SERVER", "http://127.0.0.1:9");
    let out = command.output().unwrap();
    let said = told(&out);
    assert!(out.status.success(), "{said}");
    assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
    assert!(said.contains("nobody could be told that set2 of rank 1 erred"), "{said}");
    // Machines with addresses of their own are those of which this host is none.
    let tasks: Vec<_> = (1..4)
        .map(|it| serde_json::json!({"machine": "host", "address": format!("203.0.113.{it}")}))
        .collect();
    let text = serde_json::json!({"job": 3, "tasks": tasks, "clusters": [[1, 0, 2]]}).to_string();
    fs::write(&slice, text).unwrap();
    let mut command = mpi.tripled(&summary, &[program.to_str().unwrap(), "one"]);
    let out = command.env("SELVEDGE_SLICE_FILE", &slice).output().unwrap();
    let said = told(&out);
    assert!(out.status.success(), "{said}");
    let note = "set2 of rank 1 erred on a host that is no machine of the slice";
    assert!(said.contains(note), "{said}");
    fs::write(&slice, r#"{"job": 3, "tasks": [], "clusters": [[0, 1, 2]]}"#).unwrap();
    let mut command = mpi.tripled(&summary, &[program.to_str().unwrap()]);
    let out = command.env("SELVEDGE_SLICE_FILE", &slice).output().unwrap();
    assert!(told(&out).contains("a cluster has task 0, and there are 0 tasks"), "{}", told(&out));
}

/// Goal: a replica that errs is a case of the machine that it runs on.  Method: a control plane has
/// a job in replicas, and a program that sends a wrong byte once has a slice of that job.
#[test]
fn a_mark_that_a_program_makes_is_a_case_of_a_control_plane_that_runs() {
    let Some(mpi) = Mpi::all().into_iter().next() else { return };
    let dir = support::dir();
    let plant = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"3x4\"\n";
    fs::write(dir.path().join("hs.toml"), plant).unwrap();
    let up = support::Up::start_with(dir, &["--plant", "hs.toml"]);
    let job = "job submit --shape 3x4 --redundancy 3 --duration 1000d --name lu";
    let job = up.json(job)["id"].as_u64().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (summary, slice) = (folder.path().join("summary.json"), folder.path().join("slice.json"));
    let tasks = ["board0.1", "board1.1", "board2.1"].map(|it| serde_json::json!({"machine": it}));
    let text = serde_json::json!({"job": job, "tasks": tasks, "clusters": [[1, 0, 2]]});
    fs::write(&slice, text.to_string()).unwrap();
    let program = mpi.compile("differ", folder.path());
    let words = ["--compare", "full", program.to_str().unwrap(), "one"];
    let mut command = mpi.tripled(&summary, &words);
    command.env("SELVEDGE_SLICE_FILE", &slice).env("SELVEDGE_SERVER", &up.url);
    let out = command.env("SELVEDGE_RUNTIME_DIR", up.dir()).output().unwrap();
    let said = told(&out);
    assert!(out.status.success() && !said.contains("nobody could be told"), "{said}");
    let cases: serde_json::Value = serde_json::from_str(&up.get("/v1/cases")).unwrap();
    let case = &cases["cases"][0];
    assert_eq!(
        (&case["target"], &case["symptom"]),
        (&"board2.1".into(), &"marked".into()),
        "{cases}"
    );
    let words = case["evidence"][0]["words"].as_str().unwrap();
    assert!(words.starts_with("replica 2 of rank 1 of job0 differed in call"), "{words}");
    assert!(words.ends_with("from byte 321 on"), "{words}");
}

/// Goal: comparing later, or elsewhere, finds the same error, and the output is right.  Method: one
/// replica sends a wrong byte once.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn an_error_is_found_within_a_window_and_by_who_receives_it() {
    for mpi in Mpi::all() {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("differ", folder.path());
        let wanted = mpi.plain(&program, &[]);
        let program = program.to_str().unwrap();
        let ways = [
            (["--window", "8"], "rank 1: set2 differs within 8 sends and is left out"),
            (["--compare-at", "receive"], "rank 0: set2 differs in MPI_Recv and is marked"),
        ];
        for (way, note) in ways {
            for word in ["plain", "one"] {
                let out = mpi.tripled(&summary, &[&way[..], &[program, word]].concat()).output();
                let (out, is_plain) = (out.unwrap(), word == "plain");
                let said = format!("{} {way:?}: {}", mpi.name, told(&out));
                assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
                assert_eq!(said.contains(note), !is_plain, "{said}");
                assert_eq!(count(&summary, "marks") == 0, is_plain, "{said}");
                assert_eq!(count(&summary, "restarts"), 0, "{said}");
            }
        }
    }
}

#[test]
fn a_program_that_cannot_begin_is_stopped_by_name() {
    for mpi in Mpi::in_turn("differ") {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("differ", folder.path());
        let other = mpi.compile("ring", folder.path());
        let (program, launcher) = (program.to_str().unwrap(), mpi.launcher_args());
        let said = refused(&[&["-n", "2"], &launcher[..], &[program, "early"]].concat());
        assert!(said.contains("MPI_Comm_rank was called before MPI_Init"), "{}: {said}", mpi.name);
        let unequal = folder.path().join("unequal");
        let text = format!(
            "#!/bin/sh\n[ $SELVEDGE_SET = 1 ] && exec {} 2\nexec {program}\n",
            other.display()
        );
        fs::write(&unequal, text).unwrap();
        succeed(Command::new("chmod").arg("+x").arg(&unequal));
        let said = refused(&["-n", "2", "--launcher", mpi.launcher(), unequal.to_str().unwrap()]);
        assert!(said.contains("run different programs"), "{}: {said}", mpi.name);
    }
}

#[test]
fn programs_and_launchers_that_do_not_fit_are_named_before_anything_starts() {
    let (Some(open_mpi), Some(mpich)) = (Mpi::named("openmpi"), Mpi::named("mpich")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (mpi, other) in [(&open_mpi, &mpich), (&mpich, &open_mpi)] {
        let program = mpi.compile("differ", folder.path());
        let program = program.to_str().unwrap();
        let said = refused(&["-n", "2", "--launcher", other.launcher(), program]);
        assert!(said.contains("starts programs of another MPI"), "{said}");
        // The launcher is started here: what the program is, a shell does not say.
        let said = refused(&["-n", "2", "--launcher", other.launcher(), "env", program]);
        assert!(said.contains("it was started by the launcher of another"), "{said}");
    }
    let build = |name: &str, args: &[&str]| {
        let path = folder.path().join(name);
        let source = folder.path().join("empty.c");
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        succeed(Command::new("cc").arg("-o").arg(&path).arg(source).args(args));
        path.to_str().unwrap().to_owned()
    };
    let said = refused(&["-n", "2", &build("static", &["-static"])]);
    assert!(said.contains("is statically linked"), "{said}");
    let said = refused(&["-n", "2", folder.path().join("empty.c").to_str().unwrap()]);
    assert!(said.contains("empty.c may not be executed"), "{said}");
    let both = ["-Wl,--no-as-needed", "-l:libmpi.so.40", "-l:libmpich.so.12"];
    let said = refused(&["-n", "2", &build("both", &both)]);
    assert!(said.contains("two MPI libraries, libmpi.so.40 and libmpich.so.12"), "{said}");
    let program = open_mpi.compile("differ", folder.path());
    let forbidden = ["--nooversubscribe", "--host", "localhost"];
    for slots in [&["--host", "localhost:1"][..], &forbidden] {
        let slots: Vec<&str> = slots.iter().flat_map(|it| ["--launcher-arg", it]).collect();
        let said = refused(&[&["-n", "2"], &slots[..], &[program.to_str().unwrap()]].concat());
        let is_said = said.contains("not enough slots") && said.contains("ended with 1 before");
        assert!(is_said && said.contains("takes 6 slots"), "{said}");
        let own = "this run needs 6 slots (2 processes x 3 replicas), and the launcher's \
                   arguments name 1";
        let is_first = said.find(own).is_some_and(|it| it < said.find("not enough").unwrap());
        assert_eq!(is_first, slots.contains(&"localhost:1"), "{said}");
    }
}
