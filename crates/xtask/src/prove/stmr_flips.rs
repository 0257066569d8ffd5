//! `prove stmr-flips`: a bit flipped in the memory of an MPI program's replica changes no result.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, within};

/// Runs without `--runs`.
const RUNS: u64 = 1000;

/// Goal: no wrong result.  Method: the tests' own flips, more of them; a proof that was stopped
/// goes on where it was.
pub(super) fn prove(root: &Path, options: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(8 * 3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "stmr_flips", "--", "--nocapture"]);
    test.env("SELVEDGE_RUNS", options.runs.unwrap_or(RUNS).to_string());
    test.env("SELVEDGE_SEED", options.seed.to_string());
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}
