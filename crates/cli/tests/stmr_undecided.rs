//! Contents of which no majority is right are told of by call, length, peer and tag, and by their
//! first differing byte when the program has started again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::process::{Command, Output, Stdio};

use mpi::{Mpi, told};

/// How often a text stands in what was said.
fn times(said: &str, text: &str) -> usize {
    said.matches(text).count()
}

/// Runs two processes of differ.c, of which one's replicas send different contents each time.
fn run(mpi: &Mpi, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let program = mpi.compile("differ", folder.path());
    let mut command = Command::new("timeout");
    command.args([mpi::limit_s(), env!("CARGO_BIN_EXE_selvedge"), "mpirun", "-n", "2"]);
    command.args(words).args(mpi.launcher_args()).arg(program).arg("all");
    command.stdin(Stdio::null()).output().unwrap()
}

/// Goal: what is not deterministic is reported with its call, length and offset.  Method: the
/// replicas of rank 1 send three contents, whose byte 654 of 1000 differs, in each start.
#[test]
fn three_contents_are_told_with_their_call_and_then_with_their_first_differing_byte() {
    for mpi in Mpi::in_turn("undecided") {
        let out = run(&mpi, &[]);
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(!out.status.success(), "{said}");
        let place = "in MPI_Send, compare 21 (1000 bytes to rank 0, tag 20)";
        let first = format!("rank 1: all three replicas differ {place}");
        // Once for each start, and not for each replica.
        assert_eq!(times(&said, &first), 2, "{said}");
        let again = "the program starts again, with contents compared in full";
        assert_eq!(times(&said, again), 1, "{said}");
        for pair in ["set0 and set1", "set0 and set2", "set1 and set2"] {
            let at = format!("rank 1: {pair} differ in MPI_Send at byte 654 of 1000: 0x");
            assert_eq!(times(&said, &at), 1, "{said}");
        }
        assert!(said.contains("not deterministic here"), "{said}");
    }
}

/// Goal: so it is of two replicas, of which none can be right.
#[test]
fn two_contents_of_two_replicas_are_told_so_too() {
    for mpi in Mpi::in_turn("two contents") {
        let out = run(&mpi, &["-r", "2", "--restarts-max", "1"]);
        let said = format!("{}: {}", mpi.name, told(&out));
        assert!(!out.status.success(), "{said}");
        let place = "in MPI_Send, compare 21 (1000 bytes to rank 0, tag 20)";
        assert_eq!(times(&said, &format!("rank 1: set0 and set1 differ {place}")), 2, "{said}");
        let at = "rank 1: set0 and set1 differ in MPI_Send at byte 654 of 1000: 0x15 for 0x16";
        assert_eq!(times(&said, at), 1, "{said}");
    }
}
