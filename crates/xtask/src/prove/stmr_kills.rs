//! `prove stmr-kills`: MPI programs in replicas outlive the death of any of them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, within};

/// Runs without `--runs`: 150 at a call, 50 between calls, 50 with two deaths.
const RUNS: u64 = 250;

/// Goal: the right output and exit code and no hang, whenever a replica is killed -9.  Method: the
/// tests' own kills, more of them; a proof that was stopped goes on where it was.
pub(super) fn prove(root: &Path, options: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(4 * 3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "stmr_kills", "--", "--nocapture"]);
    test.env("SELVEDGE_RUNS", options.runs.unwrap_or(RUNS).to_string());
    test.env("SELVEDGE_SEED", options.seed.to_string());
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}
