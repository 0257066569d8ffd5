//! The Debian package: built by cargo-deb, then taken apart to see that it holds what it promises.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::prove::{ProofError, Scratch, within};
use crate::setup;

/// What an installed machine must have of it.
const FILES: [&str; 9] = [
    "usr/bin/selvedge",
    "usr/lib/systemd/system/selvedge.service",
    "etc/selvedge/selvedge.toml",
    "usr/share/man/man1/selvedge.1.gz",
    "usr/share/man/man1/selvedge-job-submit.1.gz",
    "usr/share/selvedge/prometheus/selvedge.rules.yml",
    "usr/share/selvedge/grafana/pods.json",
    "usr/share/doc/selvedge/operate.md",
    "usr/share/bash-completion/completions/selvedge",
];

/// Builds the package; returns where it is.
///
/// # Errors
/// [`ProofError`].
pub fn build(root: &Path) -> Result<PathBuf, ProofError> {
    const LIMIT: Duration = Duration::from_secs(3600);
    if !setup::answers("deb") {
        let what = "a Debian package without cargo-deb; `cargo install cargo-deb` brings it".into();
        return Err(ProofError::NotPermitted { what, source: std::io::ErrorKind::NotFound.into() });
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "-p", "selvedge", "--locked"]).current_dir(root);
    within(&mut cargo, LIMIT)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let program = target.join("release/selvedge");
    // The list of assets names this folder, wherever the program was built.
    let folder = root.join("target/package");
    fs::create_dir_all(&folder).map_err(|it| refused(&folder, it))?;
    within(Command::new(&program).arg("man").arg(&folder), LIMIT)?;
    let completions = folder.join("selvedge.bash");
    let out = File::create(&completions).map_err(|it| refused(&completions, it))?;
    within(Command::new(&program).args(["completions", "bash"]).stdout(out), LIMIT)?;
    let deb = folder.join("selvedge.deb");
    let mut cargo = Command::new("cargo");
    cargo.args(["deb", "-p", "selvedge", "--no-build", "--output"]).arg(&deb).current_dir(root);
    within(&mut cargo, LIMIT)?;
    Ok(deb)
}

/// Goal: what is installed runs and is all there.  Method: the package is built, unpacked as dpkg
/// unpacks it, and its program asked.
pub(crate) fn prove(root: &Path) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(60);
    let deb = build(root)?;
    let scratch = Scratch::new()?;
    within(Command::new("dpkg-deb").arg("--info").arg(&deb), LIMIT)?;
    let installed = scratch.path.join("installed");
    within(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(&installed), LIMIT)?;
    for file in FILES {
        let path = installed.join(file);
        fs::metadata(&path).map_err(|it| refused(&path, it))?;
    }
    within(Command::new(installed.join("usr/bin/selvedge")).arg("--version"), LIMIT)?;
    let unit = installed.join("usr/lib/systemd/system/selvedge.service");
    let analyze = ["security", "--offline=yes", "--no-pager", "--threshold=25"];
    within(Command::new("systemd-analyze").args(analyze).arg(unit), LIMIT)
}

fn refused(path: &Path, source: std::io::Error) -> ProofError {
    ProofError::NotPermitted { what: format!("to use {}", path.display()), source }
}
