//! What surrounds an MPI program in replicas: commands of the shell, room for files, limits.
//!
//! Goal: a program finds what it finds plain, and what it starts is started once.  Method: see
//! shell.c; what it prints and leaves is held against a plain run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::fs;
use std::process::{Command, Output};

use mpi::{Mpi, lines, told, tree};

fn printed(out: &Output) -> String {
    lines(&String::from_utf8_lossy(&out.stdout))
}

#[test]
fn commands_of_the_shell_are_made_once_and_all_replicas_hear_of_them() {
    for mpi in Mpi::in_turn("shell") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("shell", folder.path());
        let row = [program.to_str().unwrap()];
        let [plain, tripled] = ["plain", "tripled"].map(|name| {
            let scratch = folder.path().join(name);
            fs::create_dir(&scratch).unwrap();
            let command = match name {
                "plain" => &mut mpi.plain_command(&row),
                _ => &mut mpi.tripled(&summary, &row),
            };
            // What others preload and say to programs is kept for commands.
            command.env("LD_PRELOAD", "libm.so.6").env("SELVEDGE_SERVER", "http://127.0.0.1:9");
            let out = command.current_dir(&scratch).output().unwrap();
            assert!(out.status.success(), "{name}, {}: {}", mpi.name, told(&out));
            (out, tree(&scratch))
        });
        let said = format!("{}: {}", mpi.name, told(&tripled.0));
        assert_eq!(printed(&tripled.0), printed(&plain.0), "{said}");
        assert_eq!(tripled.1, plain.1, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: a command whose replica dies is started again by who leads then, and what it printed
/// before is not printed twice.  Method: the command kills the process that has started it, once.
#[test]
fn a_command_whose_replica_dies_is_started_again() {
    for mpi in Mpi::in_turn("killed") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("shell", folder.path());
        let command = "echo begun ${LD_PRELOAD-alone}; \
                       [ -e been ] || { touch been; kill -9 $PPID; sleep 1; }; echo done; exit 5";
        let out = mpi
            .tripled(&summary, &[program.to_str().unwrap(), command])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(printed(&out), "begun alone\ndone\nthe command: 5", "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 1), ("restarts", 0)], &said);
    }
}

/// Goal: addresses at which the kernel maps where a stack has no limit are not taken for those of
/// the program's heap.  Method: one that allocates and communicates runs without that limit.
#[test]
fn a_program_runs_where_the_stack_has_no_limit() {
    let unlimited = |command: Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -s unlimited && exec \"$@\"", "sh"]);
        shell.arg(command.get_program()).args(command.get_args());
        shell.output().unwrap()
    };
    if !unlimited(Command::new("true")).status.success() {
        mpi::missing("stacks that may have no limit");
        return;
    }
    for mpi in Mpi::in_turn("heap") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("heap", folder.path());
        let row = [program.to_str().unwrap(), "12"];
        let out = unlimited(mpi.tripled(&summary, &row));
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(printed(&out), lines(&mpi.plain(&program, &["12"])), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: how often Python waits for another thread brings replicas into no other order, and what
/// it sees of clocks is the same in all.  Method: see turns.py.
#[test]
fn pythons_first_thread_waits_for_others_as_often_as_that_takes() {
    let all = Mpi::all().into_iter().filter_map(|it| it.mpi4py().map(|python| (it, python)));
    let program = mpi::sources().join("turns.py");
    for (mpi, python) in all {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let row = [&*python, program.to_str().unwrap()];
        let plain = mpi::succeed(&mut mpi.plain_command(&row));
        let out = mpi.tripled(&summary, &row).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert_eq!(printed(&out), printed(&plain), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: a library that the program loads late reads the meta's cycle counter too, when it begins
/// and later, and is found where the program says that its libraries are; one that reads none costs
/// nothing.  Method: see loads.c.
#[test]
fn a_library_that_is_loaded_late_reads_one_counter() {
    for mpi in Mpi::in_turn("loads") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let library = ["-shared", "-fPIC"];
        mpi.compile_with("counter", &folder.path().join("libcounter.so"), &library);
        let quiet = [&library[..], &["-DQUIET"]].concat();
        mpi.compile_with("counter", &folder.path().join("libquiet.so"), &quiet);
        let program = folder.path().join("loads");
        let origin = ["-ldl", "-Wl,-rpath,$ORIGIN,--enable-new-dtags"];
        mpi.compile_with("loads", &program, &origin);
        for args in [["0", "0"], ["0", "1"], ["2100", "0"]] {
            let row = [&[program.to_str().unwrap()], &args[..]].concat();
            let out = mpi.tripled(&summary, &row).output().unwrap();
            let said = format!("{args:?}, {}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            assert_eq!(printed(&out), lines(&mpi.plain(&program, &args)), "{said}");
            mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
        }
    }
}

/// Goal: what a program gave to MPI, handles that differ between replicas among it, does not lie on
/// its stack afterwards, where it may send it without having written it.  Method: see left.c.
#[test]
fn calls_of_mpi_leave_nothing_on_the_programs_stack() {
    for mpi in Mpi::in_turn("left") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("left", folder.path());
        let out = mpi.tripled(&summary, &[program.to_str().unwrap()]).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        assert!(printed(&out).lines().all(|it| it.ends_with(": done")), "{}", printed(&out));
    }
}

/// Goal: what a program sends may hold handles of Open MPI, which are addresses.  Method: see
/// alike.c.
#[test]
fn handles_of_open_mpi_are_alike_in_all_replicas() {
    for mpi in Mpi::all().into_iter().filter(Mpi::is_open_mpi) {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("alike", folder.path());
        let out = mpi.tripled(&summary, &[program.to_str().unwrap(), "100"]).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(out.status.success(), "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}
