//! A real training survives a drain and a kill -9: `cargo xtask prove training`, and shortened in
//! the tests.
//!
//! Goal: a job of four PyTorch processes on four machines, once undisturbed, once drained with
//! notice, once with a rank killed, has the same losses bit for bit, and nobody hangs.  Method:
//! `examples/ddp_checkpoint.py` as a user would copy it, through the program, on a server of our
//! own.  It needs Debian's python3-torch; `cargo xtask test` names it where it is missing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(clippy::print_stderr, reason = "what was not run is named, and what was measured is told")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use support::{Up, signal};

/// Debian's own: another Python in the path does not know its packages.
const PYTHON: &str = "/usr/bin/python3";
const TORCH: &str = "/usr/lib/python3/dist-packages/torch/__init__.py";

/// How much is trained: all of it when it is proved, less in the ordinary tests.
struct Measure {
    steps: u32,
    save_every: u32,
    pause: &'static str,
}

impl Measure {
    fn of_this_run() -> Self {
        if std::env::var_os("SELVEDGE_PROOF").is_some() {
            Self { steps: 200, save_every: 20, pause: "0.05" }
        } else {
            Self { steps: 40, save_every: 8, pause: "0.05" }
        }
    }
}

impl Up {
    /// Starts a training whose files lie in `out`.
    fn train(&self, measure: &Measure, out: &str) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ddp_checkpoint.py");
        let (steps, save_every) = (measure.steps.to_string(), measure.save_every.to_string());
        let args = [
            &["job", "submit", "--shape", "2x2x4", "--retries", "1", "--name", out, "--"],
            &[PYTHON, script.to_str().unwrap(), "--out", out, "--steps", &steps][..],
            &["--save-every", &save_every, "--pause", measure.pause],
        ];
        self.json(&args.concat())["id"].to_string()
    }

    fn out(&self, out: &str) -> PathBuf {
        self.dir().join(out)
    }

    /// Waits until `n` steps have been trained in all.
    fn until_trained(&self, id: &str, out: &str, n: u32) {
        let path = self.out(out).join("losses.txt");
        let count = || fs::read_to_string(&path).unwrap_or_default().lines().count();
        self.until_job(id, "trained", |_| n as usize <= count());
    }

    /// The loss of each step.  A step that was trained again must have lost the same.
    fn losses(&self, out: &str) -> BTreeMap<u32, String> {
        let text = fs::read_to_string(self.out(out).join("losses.txt")).unwrap();
        let mut losses = BTreeMap::new();
        for line in text.lines() {
            let (step, loss) = line.split_once(' ').unwrap();
            let before = losses.insert(step.parse().unwrap(), loss.to_owned());
            assert!(before.is_none_or(|it| it == loss), "step {step} of {out} lost otherwise");
        }
        losses
    }
}

/// Whether a training can be run here; says so if not.
fn has_torch() -> bool {
    let is_there = Path::new(TORCH).is_file() && Path::new(PYTHON).is_file();
    if !is_there {
        eprintln!("not run: python3-torch is missing; add --install");
    }
    is_there
}

#[test]
fn a_training_that_is_drained_or_loses_a_rank_has_the_losses_of_an_undisturbed_one() {
    if !has_torch() {
        return;
    }
    let (up, measure) = (Up::start(), Measure::of_this_run());
    let id = up.train(&measure, "undisturbed");
    let job = up.until_job(&id, "finished", |it| it["state"] == "finished");
    assert_eq!(job["attempt"], 1, "{job}");
    let undisturbed = up.losses("undisturbed");
    assert_eq!(undisturbed.len(), measure.steps as usize);

    // (a) One of its machines is drained: told, all save and leave in time, and go on elsewhere.
    let id = up.train(&measure, "drained");
    up.until_trained(&id, "drained", measure.steps / 4);
    let before = machines(&up.job(&id));
    let told = Instant::now();
    up.text(&["machine", "drain", &before[1], "--why", "a fan"]);
    let job = up.until_job(&id, "stopped", |it| it["attempt"] == 2 || it["state"] == "queued");
    let took = told.elapsed();
    eprintln!("(a) drained: all ranks had left after {:.1} s", took.as_secs_f64());
    assert!(took < Duration::from_secs(60), "its notice is a minute: {job}");
    let job = up.until_job(&id, "finished", |it| it["state"] == "finished");
    assert!(!machines(&job).contains(&before[1]), "{job}");
    let first = up.text(&["job", "logs", &id, "--attempt", "1"]);
    assert_eq!(first.matches("was told to stop and has saved step").count(), 4, "{first}");
    let again = up.text(&["job", "logs", &id]);
    assert!(!again.contains("begins at step 0\n"), "{again}");
    assert_eq!((&job["n_failed"], &job["attempt"]), (&0.into(), &2.into()));
    assert_eq!(up.losses("drained"), undisturbed);
    up.text(&["machine", "undrain", &before[1]]);

    // (b) One rank dies: the others fail out, and the job goes on from its last checkpoint.
    let id = up.train(&measure, "killed");
    up.until_trained(&id, "killed", measure.steps / 2 + measure.save_every / 2);
    let victim = up.job(&id)["tasks"][2]["pid"].to_string();
    let killed = Instant::now();
    signal("KILL", &victim);
    up.until_job(&id, "stopped", |it| it["n_failed"] == 1);
    eprintln!("(b) killed: no rank was left after {:.1} s", killed.elapsed().as_secs_f64());
    let job = up.until_job(&id, "finished", |it| it["state"] == "finished");
    assert_eq!((&job["n_failed"], &job["attempt"]), (&1.into(), &2.into()), "{job}");
    let again = up.text(&["job", "logs", &id]);
    let begun = again.lines().find_map(|it| it.split_once("begins at step ")).unwrap().1;
    let begun: u32 = begun.parse().unwrap();
    assert!(0 < begun && begun.is_multiple_of(measure.save_every), "{again}");
    assert_eq!(up.losses("killed"), undisturbed);
    let n = undisturbed.len();
    eprintln!("losses of {n} steps are equal bit for bit in all three runs");
}

fn machines(job: &Value) -> Vec<String> {
    let tasks = job["tasks"].as_array().unwrap().iter();
    tasks.map(|it| it["machine"].as_str().unwrap().to_owned()).collect()
}
