//! `prove stmr-hosts`: an MPI program in replicas outlives a host.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, within};

/// Runs without `--runs`.
const RUNS: u64 = 30;

/// Goal: the right output and exit code when all that runs on a host is killed at once, with Open
/// MPI's daemon.  Method: the tests' own, more of them, on three network namespaces, which take a
/// user who may make them.
pub(super) fn prove(root: &Path, options: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "stmr_hosts", "--", "--nocapture"]);
    test.env("SELVEDGE_RUNS", options.runs.unwrap_or(RUNS).to_string());
    test.env("SELVEDGE_SEED", options.seed.to_string());
    within(test.env("SELVEDGE_PROOF", "full").current_dir(root), LIMIT)
}
