//! `selvedge sim --json` as programs read it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Three jobs, the last of which no pod holds.
const TRACE: &str = "# job id,arrival (s),topology,shape,size,duration (s)\n\
                     0,0,CLOS,48,48,720\n1,10,T3D_T,4x4x8,128,60\n2,20,T3D_NT,16x16x20,5120,60\n";

fn sim(dir: &Path, args: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    let done = command.arg("sim").args(args.split_whitespace()).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{args}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn without_real_time(mut run: Value) -> Value {
    for field in ["wall_s", "inputs_per_s"] {
        let taken = run.as_object_mut().unwrap().remove(field);
        assert!(taken.is_some_and(|it| it.is_f64()), "{field}");
    }
    run
}

#[test]
fn the_same_seed_gives_the_same_object_but_for_real_time() {
    let dir = tempfile::tempdir().unwrap();
    let args = "--cubes 8 --jobs 40 --seed 3 --json";
    let (once, again) = (sim(dir.path(), args), sim(dir.path(), args));
    let once = without_real_time(once);
    assert_eq!(once, without_real_time(again));
    let other = without_real_time(sim(dir.path(), "--cubes 8 --jobs 40 --seed 4 --json"));
    assert_ne!(once["digest"], other["digest"]);
}

#[test]
fn jobs_add_up_and_every_promised_field_is_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("trace.csv"), TRACE).unwrap();
    let run = sim(dir.path(), "--trace trace.csv --seed 1 --cubes 4 --json");
    let jobs = |field: &str| run["jobs"][field].as_u64().unwrap();
    let ends = ["finished", "failed", "refused", "cancelled", "lost"];
    assert_eq!(jobs("submitted"), 3);
    assert_eq!(ends.map(jobs), [2, 0, 1, 0, 0]);
    assert!(run["digest"].is_string() && run["violations"] == 0);
    assert!((0.0..=1.0).contains(&run["utilisation"].as_f64().unwrap()));
    for field in ["mean", "p50", "p99"] {
        assert!(run["wait_s"][field].is_f64(), "{field}");
    }
}

#[test]
fn a_comparison_has_a_run_for_each_choice_of_means() {
    let dir = tempfile::tempdir().unwrap();
    let compared = sim(dir.path(), "--cubes 2 --jobs 10 --seed 3 --compare --json");
    let runs = compared["runs"].as_array().unwrap();
    let means = |run: &Value| ["backfill", "preempt", "defragment"].map(|it| run[it] == true);
    let mut all: Vec<[bool; 3]> = runs.iter().map(means).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 8);
}

#[test]
fn a_seed_of_the_judge_is_run_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    let done = command.args(["sim", "--judge-seed", "1"]).current_dir(dir.path()).output().unwrap();
    let page = String::from_utf8(done.stdout).unwrap();
    assert!(page.starts_with("seed 1: "), "{page}");
    assert_eq!(done.status.success(), page.contains("no rule was broken"), "{page}");
}

/// README's picture is what its command draws; `GOLDEN=update` draws it anew.
#[test]
fn the_picture_of_the_pod_is_what_its_command_draws() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let command = readme.lines().find_map(|it| it.strip_prefix("Drawn by `selvedge sim "));
    let command = command.expect("README says how it is drawn").trim_end_matches("`.");
    let (args, file) = command.split_once(" --svg ").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .arg("sim")
        .args(args.split_whitespace())
        .args(["--svg", "pod.svg"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let drawn = fs::read_to_string(dir.path().join("pod.svg")).unwrap();
    if env::var_os("GOLDEN").is_some_and(|it| it == "update") {
        fs::write(root.join(file), &drawn).unwrap();
    }
    let kept = fs::read_to_string(root.join(file)).unwrap();
    assert!(drawn == kept, "{file} is not what `selvedge sim {command}` draws");
}
