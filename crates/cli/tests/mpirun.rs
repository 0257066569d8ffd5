//! Real MPI programs in replicas, through the real program.
//!
//! The programs stand in crates/stmr-mpi/programs and are compiled here.  Without mpicc and mpirun
//! nothing can be run; `cargo xtask test` then names the packages that are missing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use mpi::{Mpi, count, lines, replica, told};

#[test]
fn programs_in_three_replicas_print_what_they_print_plain() {
    for mpi in Mpi::all() {
        print_alike(&mpi);
    }
}

fn print_alike(mpi: &Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    for (name, args) in [("ring", ["40"]), ("collectives", ["3"]), ("chance", ["20"])] {
        let program = mpi.compile(name, folder.path());
        let wanted = mpi.plain(&program, &args);
        let name = format!("{name} under {}", mpi.name);
        let out = mpi
            .tripled(&summary, &[&[program.to_str().unwrap()], &args[..]].concat())
            .output()
            .unwrap();
        assert!(out.status.success(), "{name}: {}", told(&out));
        assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{name}");
        assert_eq!(count(&summary, "marks"), 0, "{name}: a false alarm: {}", told(&out));
        assert_eq!(count(&summary, "restarts"), 0, "{name}");
        assert!(0 < count(&summary, "compares"), "{name}");
    }
}

/// Goal: the output is whole when the process that led it dies.  Method: a replica of set 0 is
/// killed once its process has printed, so it dies between MPI_Init and its last send.
#[test]
fn a_killed_meta_is_outlived_without_a_lost_or_doubled_byte() {
    for mpi in Mpi::all() {
        outlive_metas(&mpi);
    }
}

fn outlive_metas(mpi: &Mpi) {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile("ring", folder.path());
    let args = ["2000"];
    let wanted = mpi.plain(&program, &args);
    for rank in [0, 2] {
        let mut command =
            mpi.tripled(&summary, &[&[program.to_str().unwrap()], &args[..]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = vec![0; 1];
        out.read_exact(&mut text).unwrap();
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
    let program = program.to_str().unwrap();
    let other = selvedge(&["-n", "2", "--launcher", "/bin/echo", program]);
    assert!(other.contains("/bin/echo is neither Open MPI's mpirun nor a hydra"), "{other}");
    assert!(selvedge(&["-n", "2", "-r", "4", program]).contains("4 is not in 1..=3"));
}
