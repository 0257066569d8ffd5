//! `prove stmr-mpi4py`: mpi4py's own tests pass in replicas as they pass plain.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{ProofError, ProofOptions, installed, within};

/// Goal: of the tests that pass plain, 95 of 100 pass in replicas, and the others are tests of what
/// is not served. Method: the tests' own count, of all modules; a proof that was stopped goes on
/// where it was.
pub(super) fn prove(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(6 * 3600);
    fetch(root)?;
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "stmr_mpi4py", "--"]);
    test.args(["--include-ignored", "--nocapture"]);
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}

/// Gets the source package of the mpi4py that is here by its name and version, and unpacks it where
/// the test looks for it, unless it is there: Debian's package has no tests.
///
/// # Errors
/// There is no mpi4py, or its source cannot be had.
pub(crate) fn fetch(root: &Path) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(600);
    let version = version()?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let folder = target.join("mpi4py");
    if folder.join(format!("mpi4py-{version}/test")).is_dir() {
        return Ok(());
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest"]);
    pip.arg(&folder).arg(format!("mpi4py=={version}"));
    within(&mut pip, LIMIT)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(folder.join(format!("mpi4py-{version}.tar.gz"))).arg("-C").arg(&folder);
    within(&mut tar, LIMIT)
}

/// The version of the mpi4py that `SELVEDGE_MPI` names, or of Debian's.
fn version() -> Result<String, ProofError> {
    let name = env::var("SELVEDGE_MPI").unwrap_or_default();
    let python = match (name.strip_suffix("-package"), env::var_os("SELVEDGE_MPIS")) {
        (Some(name), Some(mpis)) => Path::new(&mpis).join(name).join("bin/python3"),
        _ => {
            installed("python3-mpi4py", "mpi4py's tests")?;
            PathBuf::from("/usr/bin/python3")
        }
    };
    let mut command = Command::new(&python);
    command.args(["-c", "import mpi4py; print(mpi4py.__version__)"]);
    let what = format!("to ask {} for its mpi4py", python.display());
    let out = command.output().map_err(|source| ProofError::NotPermitted { what, source })?;
    if !out.status.success() {
        let command = format!("{} -c 'import mpi4py'", python.display());
        return Err(ProofError::Failed { command, status: out.status });
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
