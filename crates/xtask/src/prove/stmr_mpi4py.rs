//! `prove stmr-mpi4py`: mpi4py's own tests pass in replicas as they pass plain.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, within};

/// Goal: of the tests that pass plain, all but those of what is not served pass in replicas.
/// Method: the tests' own count, of all modules; a proof that was stopped goes on where it was.
pub(super) fn prove(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(3 * 3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "stmr_mpi4py", "--", "--nocapture"]);
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}
