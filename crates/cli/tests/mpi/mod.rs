//! Compiling MPI programs, and running them plain and in replicas.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

/// No run here takes longer than this, in seconds.
pub(crate) const LIMIT_S: &str = "120";

/// Whether the machine can compile and run MPI programs.
pub(crate) fn is_possible() -> bool {
    let answers = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|it| it.success())
    };
    let possible = answers("mpicc") && answers("mpirun");
    if !possible {
        println!("not run: MPI programs in replicas, for want of mpicc or mpirun");
    }
    possible
}

/// Where the programs stand.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../stmr-mpi/programs")
}

/// Compiles the program called `name` into `folder`.
pub(crate) fn compile(name: &str, folder: &Path) -> PathBuf {
    let program = folder.join(name);
    let mut command = Command::new("mpicc");
    command.args(["-O1", "-o"]).arg(&program).arg(sources().join(name).with_extension("c"));
    succeed(&mut command);
    program
}

/// Runs what must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", told(&out));
    out
}

/// What the program prints on four processes without replicas, in lines.
pub(crate) fn plain(program: &Path, args: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command
        .arg(LIMIT_S)
        .args(["mpirun", "--oversubscribe", "--bind-to", "none"])
        .args(["--mca", "mpi_yield_when_idle", "1", "-n", "4"])
        .arg(program)
        .args(args)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    lines(&String::from_utf8(succeed(&mut command).stdout).unwrap())
}

/// A run on four processes in three replicas each.
pub(crate) fn tripled(summary: &Path, program: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        .args([LIMIT_S, env!("CARGO_BIN_EXE_selvedge"), "mpirun", "-r", "3", "-n", "4"])
        .arg("--json-summary")
        .arg(summary)
        .args(program)
        .stdin(Stdio::null());
    command
}

/// Lines of different processes come in any order, plain as well.
pub(crate) fn lines(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// What a run said of itself.
pub(crate) fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A number of the summary.
pub(crate) fn count(summary: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(summary).unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    row[name].as_u64().unwrap()
}

/// The dice of a proof: SplitMix64, so that a run is drawn alike whichever ran before it.
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of this run of a proof.
    pub(crate) fn new(seed: u64, run: u64) -> Self {
        let mut this = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ run);
        this.draw();
        this
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }
}

/// What the environment says of this proof: how many runs, and the seed.
pub(crate) fn proof(short: u64) -> (u64, u64) {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    (number("SELVEDGE_RUNS").unwrap_or(short), number("SELVEDGE_SEED").unwrap_or(1))
}
