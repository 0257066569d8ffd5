//! Replicas that somebody else starts.
//!
//! Goal: `selvedge mpirun --launcher none` runs a program whose processes another launcher starts,
//! told of nothing but the environment, and outlives one of them.  Method: the environment is
//! waited for in its file, and read by the shell that becomes each MPI's own launcher.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a file is waited for in real time")]

mod mpi;

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use mpi::{Mpi, count, lines, replica, told};

/// Starts `selvedge mpirun`, waits for what it writes, and starts the processes.
fn start(mpi: &Mpi, folder: &Path, words: &[&str]) -> (Child, Child) {
    let variables = folder.join("job.env");
    let _ = fs::remove_file(&variables);
    let mut selvedge = Command::new("timeout");
    selvedge
        .args([mpi::limit_s(), env!("CARGO_BIN_EXE_selvedge"), "mpirun", "-r", "3", "-n", "4"])
        .args(["--launcher", "none", "--env-file"])
        .arg(&variables)
        .arg("--json-summary")
        .arg(folder.join("summary.json"))
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let selvedge = selvedge.spawn().unwrap();
    while !variables.exists() {
        thread::sleep(Duration::from_millis(10));
    }
    let plain = mpi.plain_on(12, words);
    let mut launcher = Command::new("sh");
    launcher.args(["-c", ". \"$0\" && exec \"$@\""]).arg(&variables);
    // The time that it has, and the launcher itself.
    let mut args = plain.get_args();
    launcher.arg(plain.get_program()).args(args.by_ref().take(2));
    if mpi.is_open_mpi() {
        // What selvedge tells it where it is the one who starts.
        launcher.arg("--enable-recovery");
    }
    launcher.args(args);
    for (name, value) in plain.get_envs() {
        launcher.env(name, value.unwrap());
    }
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    (selvedge, launcher.spawn().unwrap())
}

#[test]
fn processes_that_somebody_else_starts_become_replicas_and_outlive_one() {
    for mpi in Mpi::in_turn("ring") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("ring", folder.path());
        for &(rounds, kills) in mpi::first(1, &[("800", 1), ("40", 0)]) {
            let wanted = mpi.plain(&program, &[rounds]);
            let words = [program.to_str().unwrap(), rounds];
            let (mut selvedge, mut launcher) = start(&mpi, folder.path(), &words);
            let mut first = vec![0; 8];
            selvedge.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
            if 0 < kills {
                let pid = replica(&program, 0, 1).expect("it has most of its rounds before it");
                mpi::succeed(Command::new("kill").args(["-KILL", &pid]));
            }
            let out = selvedge.wait_with_output().unwrap();
            let said = format!("{}: {}", mpi.name, told(&out));
            assert!(out.status.success(), "{said}");
            let text = [first, out.stdout].concat();
            assert_eq!(lines(&String::from_utf8_lossy(&text)), wanted, "{said}");
            // Hydra's replicas are outlived whatever it is told.
            let is_warned = said.contains("a death is outlived if your launcher goes on");
            assert_eq!(is_warned, mpi.is_open_mpi(), "{said}");
            assert_eq!(count(&summary, "deaths"), kills, "{said}");
            assert_eq!(count(&summary, "marks"), 0, "{said}");
            // What the launcher thinks of a death is its own.
            launcher.wait().unwrap();
        }
    }
}

#[test]
fn what_needs_a_launcher_says_so() {
    let refused = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        let out = command.args(["mpirun", "-n", "2"]).args(args).arg("/bin/true").output().unwrap();
        assert!(!out.status.success(), "{args:?}");
        told(&out)
    };
    assert!(refused(&["--launcher", "none", "--sets", "jobs"]).contains("need a launcher"));
    assert!(refused(&["--launcher", "mpirun", "--env-file", "x"]).contains("starts nothing"));
}
