//! Runs every `scenarios/*.script` through the real program and holds what it prints against the
//! `.out` beside it; `GOLDEN=update cargo test -p selvedge --test scenarios` writes them anew.
//!
//! A script's line is `$ selvedge …`, run in a directory of its own; `write FILE`, whose content
//! is the lines after it that begin with four blanks; or `# …`, said again in the output.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

#[test]
fn scripts_print_what_their_goldens_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        entries.filter(|it| it.extension().is_some_and(|it| it == "script")).collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let mut differing = Vec::new();
    for script in &scripts {
        let (actual, golden) = (play(script), script.with_extension("out"));
        if env::var_os("GOLDEN").is_some_and(|it| it == "update") {
            fs::write(&golden, &actual).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if let Some(line) = first_difference(&expected, &actual) {
            differing.push(format!("{}:{line}", golden.display()));
        }
    }
    assert!(differing.is_empty(), "GOLDEN=update shows what changed:\n{}", differing.join("\n"));
}

fn play(script: &Path) -> String {
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(script).unwrap();
    let mut lines = text.lines().peekable();
    let mut out = String::new();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            writeln!(out, "{line}").unwrap();
        } else if let Some(name) = line.strip_prefix("write ") {
            let mut content = String::new();
            while let Some(line) = lines.next_if(|it| it.starts_with("    ")) {
                content += &format!("{}\n", &line[4..]);
            }
            fs::write(dir.path().join(name), content).unwrap();
        } else {
            let args = line.strip_prefix("$ selvedge").expect("a line begins with `$ selvedge`");
            writeln!(out, "{line}").unwrap();
            out += &run(args, dir.path());
        }
    }
    out
}

fn run(args: &str, dir: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.args(args.split_whitespace()).current_dir(dir).stdin(Stdio::null());
    // A server of whoever runs the tests is not ours to find.
    command.env("SELVEDGE_RUNTIME_DIR", dir).env("COLUMNS", "100");
    let done = command.output().unwrap();
    let mut out = masked(&String::from_utf8_lossy(&done.stdout));
    for line in masked(&String::from_utf8_lossy(&done.stderr)).lines() {
        writeln!(out, "! {line}").unwrap();
    }
    match done.status.code() {
        Some(0) => out,
        code => out + &format!("exit {}\n", code.map_or(-1, |it| it)),
    }
}

/// What real time decides is not in a golden, nor is a digest, which every change of the core
/// changes: what it must be is held where it is made.
fn masked(text: &str) -> String {
    let is_timed = |line: &&str| !UNHELD.iter().any(|it| line.contains(it));
    text.lines().filter(is_timed).map(|it| format!("{it}\n")).collect()
}

const UNHELD: [&str; 4] = ["wall_s", "inputs_per_s", "  took  ", "digest"];

fn first_difference(expected: &str, actual: &str) -> Option<String> {
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    for number in 1.. {
        match (expected.next(), actual.next()) {
            (None, None) => return None,
            (expected, actual) if expected == actual => {}
            (expected, actual) => {
                let [expected, actual] = [expected, actual].map(|it| it.unwrap_or("(the end)"));
                return Some(format!("{number}\n  expected: {expected}\n  actual:   {actual}"));
            }
        }
    }
    None
}
