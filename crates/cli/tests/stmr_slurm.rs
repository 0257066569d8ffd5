//! Programs in replicas that Slurm's srun starts.
//!
//! It needs a Slurm that answers: where there is none, that is said.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::io::Read as _;
use std::process::{Command, Stdio};

use mpi::{Mpi, lines, replica, told};

/// Whether Slurm starts something here.
fn answers() -> bool {
    let mut command = Command::new("timeout");
    command.args(["20", "srun", "-n", "1", "true"]).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
}

#[test]
fn a_program_that_srun_starts_outlives_a_killed_replica() {
    let Some(mpi) = Mpi::named("openmpi") else { return };
    if !answers() {
        mpi::missing("a Slurm that answers srun");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let program = mpi.compile("ring", folder.path());
    let args = ["800"];
    let wanted = mpi.plain(&program, &args);
    for rank in [0, 3] {
        let words = ["--launcher", "srun", program.to_str().unwrap()];
        let mut command = mpi.tripled(&summary, &[&words, &args[..]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = vec![0; 1];
        out.read_exact(&mut text).unwrap();
        let pid = replica(&program, 0, rank).expect("the replica runs while its program prints");
        mpi::succeed(Command::new("kill").args(["-9", &pid]));
        out.read_to_end(&mut text).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = told(&ended);
        assert!(ended.status.success(), "{said}");
        assert_eq!(lines(&String::from_utf8_lossy(&text)), wanted, "{said}");
        mpi::check_counts(&summary, &[("deaths", 1), ("marks", 0), ("restarts", 0)], &said);
    }
}
