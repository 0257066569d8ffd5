//! `cargo xtask prove NAME`: end-to-end proofs that need a machine, not only a compiler.
//!
//! A proof starts real processes, uses no fixed port, and has a limit after which it fails.  Where
//! a machine does not permit one, it fails by name and says why.  A proof is a row of [`PROOFS`].

mod stmr_cost;

mod stmr_flips;

mod stmr_hosts;

mod stmr_kills;

mod stmr_mpi4py;

mod stmr_programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::package;
use crate::setup::PACKAGES;

/// Something that is shown by doing it.
pub struct Proof {
    /// What `cargo xtask prove` calls it.
    pub name: &'static str,
    /// What it shows.
    pub what: &'static str,
    run: fn(&Path, &ProofOptions) -> Result<(), ProofError>,
}

/// What a proof that throws dice is told.
#[derive(Clone, Debug)]
pub struct ProofOptions {
    /// How many processes are killed.
    pub kills: u64,
    /// How many runs there are; without it, as many as the proof is for.
    pub runs: Option<u64>,
    /// For all dice.
    pub seed: u64,
    /// Where what was measured is written.
    pub json: Option<PathBuf>,
}

/// All proofs.
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "clean-checkout",
        what: "what is committed compiles by itself, offline and with the locked dependencies",
        run: clean_checkout,
    },
    Proof {
        name: "training",
        what: "a PyTorch training that is drained or loses a rank has the losses of an undisturbed \
               one, bit for bit",
        run: training,
    },
    Proof {
        name: "kill",
        what: "what was acknowledged is there exactly once, whichever of server and plant is killed \
               -9 under load (--kills, --seed)",
        run: kill,
    },
    Proof {
        name: "stmr-calls",
        what: "every call of MPI that is served, files, signals, and what leads programs astray, \
               under each MPI that is here; the ordinary tests make each under one",
        run: stmr_programs::prove_calls,
    },
    Proof {
        name: "stmr-kills",
        what: "an MPI program in replicas ends right when one is killed -9 at any call or between \
               calls, or two of different sets (--runs, --seed)",
        run: stmr_kills::prove,
    },
    Proof {
        name: "stmr-hosts",
        what: "an MPI program in replicas ends right when a host is lost whole, daemon and all \
               (--runs, --seed)",
        run: stmr_hosts::prove,
    },
    Proof {
        name: "stmr-flips",
        what: "a bit flipped in the memory of a replica of an MPI program changes no result (--runs, \
               --seed)",
        run: stmr_flips::prove,
    },
    Proof {
        name: "stmr-programs",
        what: "LAMMPS, ScaLAPACK's testers, mpi4py and Fortran print in replicas what they print \
               plain",
        run: stmr_programs::prove,
    },
    Proof {
        name: "stmr-mpi4py",
        what: "mpi4py's own tests, one by one: 95 of 100 of those that pass plain pass in replicas, \
               the others are of what is not served",
        run: stmr_mpi4py::prove,
    },
    Proof {
        name: "stmr-cost",
        what: "processor time and messages of MPI programs in replicas beside plain runs (--runs, \
               --json)",
        run: stmr_cost::prove,
    },
    Proof {
        name: "load",
        what: "64 clients, 10,000 jobs and a restart with 100,000 inputs behind it, in figures",
        run: load,
    },
    Proof {
        name: "package",
        what: "the Debian package holds what it promises, and its program runs",
        run: |root, _| package::prove(root),
    },
    Proof {
        name: "browser",
        what: "a real browser shows on every page what the plant does; pictures in target/browser",
        run: browser,
    },
    Proof {
        name: "viewers",
        what: "a hundred who watch the dashboard cost less than a tenth of a core",
        run: viewers,
    },
];

/// Why a proof failed.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// There is no such proof.
    #[error("there is no proof called {name}; there are {}", names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The machine refused something.
    #[error("this machine does not permit it: {what}")]
    NotPermitted {
        /// What was tried.
        what: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A command ended badly.
    #[error("`{command}` ended with {status}")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// A command did not end in time.
    #[error("`{command}` was still running after {} s and was stopped", limit.as_secs())]
    TooSlow {
        /// The command.
        command: String,
        /// How long it had.
        limit: Duration,
    },
}

/// Runs the proof called `name`.
///
/// # Errors
/// [`ProofError`].
pub fn run(root: &Path, name: &str, options: &ProofOptions) -> Result<(), ProofError> {
    let proof = PROOFS.iter().find(|it| it.name == name);
    let Some(proof) = proof else { return Err(ProofError::Unknown { name: name.to_owned() }) };
    println!("{}: {}", proof.name, proof.what);
    (proof.run)(root, options)
}

/// Gets what tests need beside packages: the source of mpi4py, for its tests.
///
/// # Errors
/// [`ProofError`].
pub(crate) fn fetch(root: &Path) -> Result<(), ProofError> {
    stmr_mpi4py::fetch(root)
}

fn names() -> Vec<&'static str> {
    PROOFS.iter().map(|it| it.name).collect()
}

/// Goal: a file that was forgotten when committing is found before others miss it.  Method: the
/// last commit is cloned into an empty folder and checked there.
fn clean_checkout(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(600);
    let scratch = Scratch::new()?;
    let at = scratch.path.join("checkout");
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--shared"]).arg(root).arg(&at);
    within(&mut clone, LIMIT)?;
    let mut check = Command::new("cargo");
    check.args(["check", "--quiet", "--workspace", "--all-targets", "--locked", "--offline"]);
    check.env("CARGO_TARGET_DIR", scratch.path.join("target")).current_dir(&at);
    within(&mut check, LIMIT)
}

/// Goal: users' training outlives drains and crashes.  Method: the tests' own training, which is
/// short there, at its full length here.
fn training(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(1800);
    installed("python3-torch", "a training")?;
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "training", "--", "--nocapture"]);
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}

/// Goal: kill -9 loses nothing.  Method: the tests' own kills, more of them.
fn kill(root: &Path, options: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "kill", "--", "--nocapture"]);
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    test.env("SELVEDGE_KILLS", options.kills.to_string());
    test.env("SELVEDGE_SEED", options.seed.to_string());
    within(&mut test, LIMIT)
}

/// Goal: figures of a server under load.  Method: the tests' own load, at its full size, in the
/// build that people run.
fn load(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(3600);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "--release", "-p", "selvedge", "--test", "operate"]);
    test.args(["--", "--nocapture", "load::"]).env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}

/// Goal: a person sees what is.  Method: the tests' own browser, which then looks at every page in
/// every light and width, and keeps a picture of each.
fn browser(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(1800);
    installed("chromium", "a browser")?;
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "-p", "selvedge", "--test", "browser", "--", "--nocapture"]);
    test.env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}

/// Goal: whoever watches costs next to nothing.  Method: the tests' own viewers, for longer, of the
/// program as it is shipped.
fn viewers(root: &Path, _: &ProofOptions) -> Result<(), ProofError> {
    const LIMIT: Duration = Duration::from_secs(1800);
    let mut test = Command::new("cargo");
    test.args(["test", "--quiet", "--release", "-p", "selvedge", "--test", "viewers", "--"]);
    test.arg("--nocapture").env("SELVEDGE_PROOF", "full").current_dir(root);
    within(&mut test, LIMIT)
}

/// Refuses a proof that needs a package which is not here.
fn installed(name: &str, what: &str) -> Result<(), ProofError> {
    let package = PACKAGES.iter().find(|it| it.name == name);
    let package = package.expect("what a proof needs is in the table");
    if Path::new(package.program).is_file() {
        return Ok(());
    }
    let what = format!("{what} without {name}; install it first");
    Err(ProofError::NotPermitted { what, source: std::io::ErrorKind::NotFound.into() })
}

/// A folder that is gone when the proof ends.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self, ProofError> {
        let path = std::env::temp_dir().join(format!("selvedge-prove-{}", std::process::id()));
        fs::create_dir(&path).map_err(|source| {
            let what = format!("to create {}", path.display());
            ProofError::NotPermitted { what, source }
        })?;
        Ok(Self { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.path) {
            eprintln!("{} stays: {e}", self.path.display());
        }
    }
}

/// Runs `command`, and stops it when `limit` has passed.
pub(crate) fn within(command: &mut Command, limit: Duration) -> Result<(), ProofError> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let shown: Vec<_> = words.map(|it| it.to_string_lossy().into_owned()).collect();
    let shown = shown.join(" ");
    let refused = |source| ProofError::NotPermitted { what: format!("to run `{shown}`"), source };
    let mut child = command.spawn().map_err(refused)?;
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait().map_err(refused)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(ProofError::Failed { command: shown, status }),
            None if deadline <= Instant::now() => {
                stop(&mut child);
                return Err(ProofError::TooSlow { command: shown, limit });
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn stop(child: &mut Child) {
    // It may have ended by itself meanwhile; either way it must be waited for.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_outlives_its_limit_is_stopped_and_named() {
        let slow = within(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(matches!(slow, Err(ProofError::TooSlow { .. })), "{slow:?}");
        let failed = within(&mut Command::new("false"), Duration::from_secs(60));
        assert_eq!(failed.unwrap_err().to_string(), "`false` ended with exit status: 1");
        let missing = within(&mut Command::new("no-such-program"), Duration::from_secs(60));
        assert!(missing.unwrap_err().to_string().starts_with("this machine does not permit it"));
    }

    #[test]
    fn an_unknown_proof_is_refused_with_the_names_of_those_there_are() {
        let refused = run(
            Path::new("."),
            "nothing",
            &ProofOptions { kills: 1, runs: None, seed: 1, json: None },
        )
        .unwrap_err()
        .to_string();
        assert_eq!(
            refused,
            "there is no proof called nothing; there are clean-checkout, training, kill, stmr-calls, \
             stmr-kills, stmr-hosts, stmr-flips, stmr-programs, stmr-mpi4py, stmr-cost, load, \
             package, browser, viewers"
        );
    }
}
