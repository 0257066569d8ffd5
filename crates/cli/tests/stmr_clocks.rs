//! What a program sees of clocks, and how often it may look.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use mpi::{Mpi, lines, told};

/// Goal: a program waits for its own threads and alarms by looks at clocks, as often as that takes.
/// Method: threads take longer in one replica than in another; see lingers.c.
#[test]
fn looks_at_clocks_may_be_more_in_one_replica_than_in_another() {
    check_waits("lingers", &[], "12");
}

/// Goal: a program asks whether messages have come, and what else it may, until its own threads are
/// done, as often as that takes.  Method: threads take longer in one replica than in another, and
/// what is found at last by asking alone is found by all at once; see pokes.c.
#[test]
fn a_program_may_ask_more_often_in_one_replica_than_in_another() {
    check_waits("pokes", &[], "26");
}

/// Goal: threads that take turns in MPI may ask as any other.  Method: the first thread looks at
/// clocks, or begins others, while one asks, and of a team of OpenMP's any does; see turns.c.
#[test]
fn threads_that_take_turns_ask_until_something_has_come() {
    check_waits("turns", &["-fopenmp"], "60");
}

/// A program comes to what it comes to plain, and nobody is marked.
fn check_waits(name: &'static str, words: &[&str], n_rounds: &str) {
    for mpi in Mpi::in_turn(name) {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = folder.path().join(name);
        mpi.compile_with(name, &program, words);
        let row = [program.to_str().unwrap(), n_rounds];
        let wanted = mpi.plain(&program, &row[1..]);
        let ended = mpi.tripled(&summary, &row).output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&ended));
        assert!(ended.status.success(), "{said}");
        assert_eq!(lines(&String::from_utf8_lossy(&ended.stdout)), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 0), ("restarts", 0)], &said);
    }
}

/// Goal: a program whose three replicas all go other ways ends with that as the reason, whoever of
/// them waits for whom.  Method: they take other numbers of what all are to share; see split.c.
#[test]
fn three_replicas_that_all_go_other_ways_end() {
    for mpi in Mpi::in_turn("split") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("split", folder.path());
        for digits in ["012", "102", "120", "201"] {
            let row = ["--restarts-max", "0", program.to_str().unwrap(), digits];
            let ended = mpi.tripled(&summary, &row).output().unwrap();
            let said = format!("{}, {digits}: {}", mpi.name, told(&ended));
            assert_eq!(ended.status.code(), Some(2), "{said}");
            assert!(said.contains("no majority is right"), "{said}");
        }
    }
}

/// Goal: a replica that makes other calls is one mark and a note, whoever finds it.  Method: one of
/// three draws one random number more than the others, or one less; see split.c.
#[test]
fn a_replica_that_makes_other_calls_is_marked_once_whoever_finds_it() {
    for mpi in Mpi::in_turn("marked") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("split", folder.path());
        let wanted = mpi.plain(&program, &["000"]);
        let cases = [("001", 2), ("100", 0), ("011", 0), ("010", 1), ("101", 1), ("110", 2)];
        for (digits, set) in mpi::first(3, &cases) {
            let words = [program.to_str().unwrap(), digits];
            let out = mpi.tripled(&summary, &words).output().unwrap();
            let said = format!("{} {digits}: {}", mpi.name, told(&out));
            assert_eq!(lines(&String::from_utf8_lossy(&out.stdout)), wanted, "{said}");
            mpi::check_counts(&summary, &[("marks", 1), ("deaths", 1), ("restarts", 0)], &said);
            let note = format!("rank 1: set{set} makes other calls and is left out");
            assert_eq!(said.matches(&note).count(), 1, "{said}");
            let text = fs::read_to_string(&summary).unwrap();
            let row: serde_json::Value = serde_json::from_str(&text).unwrap();
            let marked = row["marked"].as_array().unwrap();
            assert_eq!(marked.iter().map(|it| &it["set"]).collect::<Vec<_>>(), [set], "{said}");
        }
    }
}

/// Goal: no clock goes back when another replica answers.  Method: the first replica uses more of
/// its processor than the others do, and is killed; see hours.c.
#[test]
fn clocks_go_on_after_a_death() {
    for mpi in Mpi::in_turn("hours") {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("summary.json");
        let program = mpi.compile("hours", folder.path());
        let row = [program.to_str().unwrap(), "60"];
        let wanted = lines(&mpi.plain(&program, &row[1..]));
        let mut command = mpi.tripled(&summary, &row);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        out.read_line(&mut text).unwrap();
        let first = mpi::replica(&program, 0, 0).unwrap();
        mpi::succeed(Command::new("kill").args(["-9", &first]));
        out.read_to_string(&mut text).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = format!("{}: {}", mpi.name, told(&ended));
        assert!(ended.status.success(), "{said}");
        assert_eq!(lines(&text), wanted, "{said}");
        mpi::check_counts(&summary, &[("marks", 0), ("deaths", 1), ("restarts", 0)], &said);
    }
}
