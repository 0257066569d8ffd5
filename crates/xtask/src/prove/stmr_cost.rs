//! `prove stmr-cost`: what replicas of MPI programs cost, for `selvedge study redundancy` to draw.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, within};

/// Pairs of runs without `--runs`.
const PAIRS: u64 = 15;

/// Goal: processor time of a run in replicas beside three plain ones, messages for each send,
/// constant in the number of processes, instructions, and the speed of digests.  Method: the tests'
/// own, on 2, 4, 8 and 16 processes.
pub(super) fn prove(root: &Path, options: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(4 * 3600);
    let mut speed = Command::new("cargo");
    speed.args(["run", "--quiet", "--release", "-p", "selvedge-stmr", "--example", "digest_speed"]);
    within(speed.current_dir(root), LIMIT)?;
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "--release", "-p", "selvedge", "--test", "stmr_cost"]);
    test.args(["--", "--nocapture"]);
    test.env("SELVEDGE_RUNS", options.runs.unwrap_or(PAIRS).to_string());
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    if let Some(path) = &options.json {
        test.env("SELVEDGE_JSON", path);
    }
    within(&mut test, LIMIT)
}
