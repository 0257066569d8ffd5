//! `prove stmr-programs`: programs that others wrote print in replicas what they print plain; and
//! `prove stmr-calls`: so do our own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, within};

/// Goal: unmodified programs run in replicas.  Method: the tests' own programs, all of them; a
/// package that is missing fails it by name.
pub(super) fn prove(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "stmr_programs", "--"]);
    test.arg("--nocapture").env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}

/// Goal: no MPI and no way is left out of what the ordinary tests make in part.  Method: the same
/// tests whole, and those that they leave to this proof.
pub(super) fn prove_calls(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(7200);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--no-fail-fast"]);
    for name in [
        "mpirun",
        "stmr_calls",
        "stmr_doubles",
        "stmr_files",
        "stmr_joined",
        "stmr_pipes",
        "stmr_signals",
        "stmr_starts",
        "stmr_surroundings",
    ] {
        test.args(["--test", name]);
    }
    test.args(["--", "--include-ignored"]).env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}
