//! Two replicas that detect, and two errors in one cluster of three.
//!
//! Goal: what no majority can mend is named; the program ends, or starts again and comes to its
//! right result, and nothing wrong is printed.  Method: doubles.c, in which replicas of process 1
//! send something else, each once, or in each start.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::path::PathBuf;
use std::process::Output;

use mpi::{Mpi, count, told};

/// What a cluster of two says that differs, and one of three with three contents.
const NO_MAJORITY: &str = "rank 1: its replicas differ and no majority is right";
const ALL_DIFFER: &str = "rank 1: all three replicas make the same call with different contents";

/// What `selvedge mpirun` ends with where the program does not come to its own end.
const FAILED: Option<i32> = Some(2);

struct Bench {
    mpi: Mpi,
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Bench {
    fn make(mpi: Mpi) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = mpi.compile("doubles", folder.path());
        Self { mpi, folder, program }
    }

    /// What the program prints without replicas, from this turn on.
    fn plain(&self, from: &str) -> Vec<String> {
        let program = self.program.to_str().unwrap();
        let row = [program, self.folder.path().to_str().unwrap(), "", from];
        let out = mpi::succeed(&mut self.mpi.plain_command(&row));
        let lines = in_order(&out);
        assert!(!lines.is_empty(), "{} prints nothing plain", program);
        lines
    }

    /// A run in so many replicas, of which those of `sets` differ.
    fn run(&self, replicas: &str, options: &[&str], words: &[&str]) -> Run {
        let own = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let (summary, erred) = (own.join("summary.json"), own.join("erred"));
        let program = [self.program.to_str().unwrap(), erred.to_str().unwrap()];
        let row = [options, &program, words].concat();
        let out = self.mpi.replicated(replicas, 4, &summary, &row).output().unwrap();
        let said = format!("{} {options:?} {words:?}: {}", self.mpi.name, told(&out));
        let text = std::fs::read_to_string(&summary).unwrap();
        let row: serde_json::Value = serde_json::from_str(&text).unwrap();
        let result = row["result"].as_str().unwrap().to_owned();
        Run { out, said, summary, result }
    }
}

struct Run {
    out: Output,
    said: String,
    summary: PathBuf,
    result: String,
}

impl Run {
    /// It came to its right end, after so many starts more than one, and nobody is blamed.
    fn check_right(&self, wanted: &[String], restarts: u64) {
        let Self { said, summary, .. } = self;
        assert!(self.out.status.success(), "{said}");
        assert_eq!(in_order(&self.out), wanted, "{said}");
        assert_eq!(self.result, "ok", "{said}");
        let counts = [("marks", 0), ("deaths", 0), ("restarts", restarts)];
        mpi::check_counts(summary, &counts, said);
    }

    /// It ended by this name, after so many starts more than one, and printed what is right as far
    /// as it came: until the turn in which replicas differ.
    fn check_refused(&self, why: &str, wanted: &[String], restarts: u64) {
        let Self { said, summary, .. } = self;
        assert_eq!(self.out.status.code(), FAILED, "{said}");
        assert!(self.result.starts_with(why), "`{}`: {said}", self.result);
        assert!(said.contains(&format!("error: {why}")), "{said}");
        let printed = in_order(&self.out);
        let before: Vec<_> = wanted.iter().take(3).collect();
        assert!(printed.iter().zip(&before).all(|(a, b)| a == *b), "{printed:?}: {said}");
        assert!(printed.len() <= before.len(), "{printed:?} came from wrong data: {said}");
        mpi::check_counts(summary, &[("deaths", 0), ("restarts", restarts)], said);
    }
}

/// Lines of a process in their order, of the first one before the others'.
fn in_order(out: &Output) -> Vec<String> {
    let mut lines = mpi::whole(&out.stdout);
    lines.sort_by_key(|it| it.strip_prefix("rank ").map_or(0, |it| it.as_bytes()[0] - b'0'));
    lines
}

fn each(then: impl Fn(&Bench)) {
    Mpi::in_turn("doubles").into_iter().for_each(|it| then(&Bench::make(it)));
}

#[test]
fn two_replicas_print_what_a_plain_run_does_and_find_what_differs() {
    each(|bench| {
        let wanted = bench.plain("0");
        let run = bench.run("2", &[], &[]);
        run.check_right(&wanted, 0);
        assert_eq!(count(&run.summary, "replicas"), 2, "{}", run.said);
        let run = bench.run("2", &["--on-double", "abort"], &["1"]);
        run.check_refused(NO_MAJORITY, &wanted, 0);
        assert!(run.said.contains("rank 1: set0 and set1 differ in MPI_"), "{}", run.said);
        // An error that does not come again is gone in the next start.
        let run = bench.run("2", &[], &["1"]);
        run.check_right(&wanted, 1);
        assert!(run.said.contains(&format!("{NO_MAJORITY}; the program starts again")));
        let run = bench.run("2", &["--restarts-max", "1"], &["1", "0", "always"]);
        run.check_refused(NO_MAJORITY, &wanted, 1);
    });
}

#[test]
fn two_errors_in_one_cluster_start_the_program_again_and_its_result_is_right() {
    each(|bench| {
        let wanted = bench.plain("0");
        let run = bench.run("3", &[], &["12"]);
        run.check_right(&wanted, 1);
        let again = run.said.lines().find(|it| it.contains("the program starts again"));
        assert!(again.is_some_and(|it| it.contains(ALL_DIFFER)), "{}", run.said);
        // All in each start: no fault does that.
        let run = bench.run("3", &[], &["12", "0", "always"]);
        run.check_refused(ALL_DIFFER, &wanted, 1);
    });
}

#[test]
fn two_errors_in_one_cluster_end_a_program_that_is_not_to_start_again() {
    each(|bench| {
        let wanted = bench.plain("0");
        for options in [["--on-double", "abort"], ["--restarts-max", "0"]] {
            let run = bench.run("3", &options, &["12"]);
            run.check_refused(ALL_DIFFER, &wanted, 0);
        }
    });
}

/// Goal: where one has a command that goes on from a checkpoint, that is started, not the program
/// from its beginning, and all is shown that it prints.
#[test]
fn two_errors_in_one_cluster_start_the_command_that_goes_on_from_a_checkpoint() {
    each(|bench| {
        let from = "16";
        let wanted = bench.plain(from);
        let line = format!("exec {} erred '' {from}", bench.program.display());
        let run = bench.run("3", &["--restart-cmd", &line], &["12"]);
        let said = &run.said;
        assert!(run.out.status.success(), "{said}");
        // Behind what the first start had printed by then, which is its own beginning.
        let printed = in_order(&run.out);
        let n_before = printed.len().saturating_sub(wanted.len());
        assert_eq!(printed[n_before..], wanted, "{said}");
        let whole = bench.plain("0");
        assert!(n_before <= 3 && printed[..n_before] == whole[..n_before], "{printed:?}: {said}");
        mpi::check_counts(&run.summary, &[("restarts", 1), ("marks", 0), ("deaths", 0)], said);
    });
}

/// Goal: a second error while the first one's replica is not trusted yet is outvoted, where that
/// one is right again.
#[test]
fn a_second_error_soon_after_another_replicas_is_outvoted() {
    each(|bench| {
        let wanted = bench.plain("0");
        let run = bench.run("3", &[], &["2", "0", "then"]);
        let said = &run.said;
        assert!(run.out.status.success(), "{said}");
        assert_eq!(in_order(&run.out), wanted, "{said}");
        mpi::check_counts(&run.summary, &[("marks", 2), ("restarts", 0), ("deaths", 0)], said);
    });
}
