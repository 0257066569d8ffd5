//! `cargo xtask bench`: instructions, peak heap and counts of named scenarios against a baseline.
//!
//! A time is noise on a busy machine; the number of instructions is the same on each run of the
//! same program.  The scenarios stand in `benches/scenarios.rs`.  Each runs twice under valgrind,
//! once for instructions (callgrind) and once for the peak of the heap (dhat), and once plainly
//! for its counts.  More than 2 % over the baseline fails, and so does a count that differs.
//!
//! `--wall` prints times too: of these scenarios, and of [`TIMED`], of which there is no other.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// How much more than its baseline a scenario may take: 2 %.
const WORSE_MAX_PPM: u64 = 20_000;

const BASELINE: &str = "bench/baseline.json";

/// What is a time, or is done by disks and processes: printed, never compared.
pub const TIMED: &[Timed] = &[
    Timed { name: "year_of_a_pod", command: YEAR },
    Timed { name: "place_finish", command: &["bench", "-p", "xtask", "--bench", "place_finish"] },
    Timed { name: "append_cost", command: &["bench", "-p", "xtask", "--bench", "append_cost"] },
    Timed { name: "served", command: &["bench", "-p", "xtask", "--bench", "served"] },
    Timed { name: "nccl_times", command: &["bench", "-p", "xtask", "--bench", "nccl_times"] },
];

/// 50,800 jobs of the published mix.
const YEAR: &[&str] = &[
    "run",
    "--release",
    "-p",
    "selvedge",
    "--",
    "sim",
    "--mix",
    "tpuv4",
    "--jobs",
    "50800",
    "--load",
    "0.85",
    "--scale-durations",
    "--seed",
    "1",
];

/// A measurement that prints what it found.
pub struct Timed {
    /// Chosen by this.
    pub name: &'static str,
    /// What cargo is told.
    pub command: &'static [&'static str],
}

/// How the benches are run.
pub struct BenchOptions {
    /// Write what was measured as the new baseline.
    pub update: bool,
    /// Print the time of the plain run too.
    pub wall: bool,
    /// Only scenarios whose name holds this.
    pub only: Option<String>,
}

/// What was measured of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// Executed by the whole run.
    pub instructions: u64,
    /// The most that the heap held at once.
    pub heap_peak_bytes: u64,
    /// What the scenario says of itself.
    pub counts: BTreeMap<String, u64>,
}

/// What bench/baseline.json holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Baseline {
    /// The compiler that it was measured with: another one makes other instructions.
    pub rustc: String,
    /// By the scenario's name.
    pub scenarios: BTreeMap<String, Measured>,
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A command could not be started.
    #[error("cannot start {program}; `cargo xtask test --install` installs what is missing")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A command ended badly.
    #[error("{command} failed:\n{said}")]
    Failed {
        /// The command.
        command: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// A command ended well and did not say what it should.
    #[error("{command} did not print {wanted}")]
    Silent {
        /// The command.
        command: String,
        /// What was looked for.
        wanted: &'static str,
    },
    /// The baseline cannot be read or written.
    #[error("{BASELINE}: {said}; `cargo xtask bench --update` writes it anew")]
    Baseline {
        /// What is wrong with it.
        said: String,
    },
}

/// Runs the scenarios, prints a table, and returns whether nothing got worse.
///
/// # Errors
/// [`BenchError`].
pub fn run(root: &Path, options: &BenchOptions) -> Result<bool, BenchError> {
    let rustc = rustc_version()?;
    let binary = build(root)?;
    let names = output(Command::new(&binary).arg("--list"))?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let wanted = |it: &&str| options.only.as_ref().is_none_or(|only| it.contains(only.as_str()));
    let mut found = Baseline { rustc, scenarios: BTreeMap::new() };
    let baseline = load(root)?;
    let mut passed = true;
    for name in names.lines().filter(wanted) {
        let (measured, wall) = measure(&binary, name)?;
        let before = baseline.scenarios.get(name);
        println!("{}", row(name, &measured, before));
        if options.wall {
            println!("  {wall:.3} s in a plain run, with whatever else runs here");
        }
        for worse in before.map(|it| worse(it, &measured)).unwrap_or_default() {
            println!("  {worse}");
            passed = false;
        }
        found.scenarios.insert(name.to_owned(), measured);
    }
    if options.wall {
        let wanted = |it: &&Timed| options.only.as_ref().is_none_or(|only| it.name.contains(only));
        TIMED.iter().filter(wanted).try_for_each(|it| timed(root, it))?;
    }
    if options.update {
        save(root, found)?;
        println!("written to {BASELINE}");
        return Ok(true);
    }
    if !passed && baseline.rustc != found.rustc {
        let (now, then) = (found.rustc, baseline.rustc);
        println!("not a failure: the baseline is of {then}, this is {now}");
        return Ok(true);
    }
    Ok(passed)
}

fn timed(root: &Path, timed: &Timed) -> Result<(), BenchError> {
    println!("\n{}", timed.name);
    let mut command = Command::new("cargo");
    command.arg(timed.command[0]).arg("--quiet").args(&timed.command[1..]).current_dir(root);
    let program = "cargo".to_owned();
    let status = command.status().map_err(|source| BenchError::NotStarted { program, source })?;
    if status.success() {
        return Ok(());
    }
    Err(BenchError::Failed { command: shown(&command), said: format!("it ended with {status}") })
}

fn build(root: &Path) -> Result<PathBuf, BenchError> {
    let mut command = Command::new("cargo");
    command.args(["bench", "-p", "xtask", "--bench", "scenarios", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics").current_dir(root);
    let built = output(&mut command)?;
    let said = String::from_utf8_lossy(&built.stdout);
    executable(&said).ok_or_else(|| BenchError::Silent {
        command: shown(&command),
        wanted: "the path of the bench binary",
    })
}

/// The bench binary in cargo's JSON messages.
fn executable(said: &str) -> Option<PathBuf> {
    said.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_ours = message["target"]["name"] == "scenarios";
        let path = message["executable"].as_str().filter(|_| is_ours)?;
        Some(PathBuf::from(path))
    })
}

fn measure(binary: &Path, name: &str) -> Result<(Measured, f64), BenchError> {
    let start = Instant::now();
    let plain = output(Command::new(binary).arg(name))?;
    let wall = start.elapsed().as_secs_f64();
    let valgrind = |tool: &str, wanted: &'static str| {
        let mut command = Command::new("valgrind");
        command.args([&format!("--tool={tool}"), &format!("--{tool}-out-file=/dev/null")]);
        let said = output(command.arg(binary).arg(name))?.stderr;
        number_after(&String::from_utf8_lossy(&said), wanted)
            .ok_or_else(|| BenchError::Silent { command: shown(&command), wanted })
    };
    let measured = Measured {
        instructions: valgrind("callgrind", "Collected :")?,
        heap_peak_bytes: valgrind("dhat", "At t-gmax:")?,
        counts: counts(&String::from_utf8_lossy(&plain.stdout)),
    };
    Ok((measured, wall))
}

/// The first number after `wanted`, its thousands parted by commas.
fn number_after(said: &str, wanted: &str) -> Option<u64> {
    let (_, rest) = said.split_once(wanted)?;
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(|c| *c != ',')
        .collect();
    digits.parse().ok()
}

fn counts(said: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (key, count) = line.split_once(' ')?;
        Some((key.to_owned(), count.parse().ok()?))
    };
    said.lines().filter_map(pair).collect()
}

/// What of `now` is worse than `before`, or different where it must be equal.
fn worse(before: &Measured, now: &Measured) -> Vec<String> {
    let mut found = Vec::new();
    let costs = [
        ("instructions", before.instructions, now.instructions),
        ("heap bytes", before.heap_peak_bytes, now.heap_peak_bytes),
    ];
    for (what, before, now) in costs {
        let limit = u128::from(before) * u128::from(1_000_000 + WORSE_MAX_PPM) / 1_000_000;
        if limit < u128::from(now) {
            found.push(format!("worse: {now} {what} after {before}; {limit} is the limit"));
        }
    }
    let keys =
        before.counts.keys().chain(now.counts.keys().filter(|it| !before.counts.contains_key(*it)));
    for key in keys {
        let (before, now) = (before.counts.get(key), now.counts.get(key));
        if before != now {
            let shown = |it: Option<&u64>| it.map_or("none".to_owned(), ToString::to_string);
            let (before, now) = (shown(before), shown(now));
            found.push(format!("different: {key} is {now} after {before}"));
        }
    }
    found
}

fn row(name: &str, now: &Measured, before: Option<&Measured>) -> String {
    let change = |before: u64, now: u64| {
        let percent = 100.0 * (now as f64 - before as f64) / before.max(1) as f64;
        format!("({percent:+.2} %)")
    };
    let changes = before.map_or(["(new)".to_owned(), String::new()], |it| {
        let heap = change(it.heap_peak_bytes, now.heap_peak_bytes);
        [change(it.instructions, now.instructions), heap]
    });
    let mega = now.instructions as f64 / 1e6;
    let mib = now.heap_peak_bytes as f64 / f64::from(1 << 20);
    let counts: Vec<String> = now.counts.iter().map(|(key, it)| format!("{key} {it}")).collect();
    let [instructions, heap] = changes;
    let counts = counts.join(", ");
    format!("{name:24} {mega:10.1} M instructions {instructions}  {mib:7.1} MiB {heap}  {counts}")
}

fn rustc_version() -> Result<String, BenchError> {
    let said = output(Command::new("rustc").arg("--version"))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn load(root: &Path) -> Result<Baseline, BenchError> {
    let Ok(text) = fs::read_to_string(root.join(BASELINE)) else { return Ok(Baseline::default()) };
    serde_json::from_str(&text).map_err(|e| BenchError::Baseline { said: e.to_string() })
}

fn save(root: &Path, found: Baseline) -> Result<(), BenchError> {
    // What was not measured this time keeps its numbers, if they are of the same compiler.
    let mut kept = load(root).unwrap_or_default();
    if kept.rustc != found.rustc {
        kept.scenarios.clear();
    }
    kept.rustc = found.rustc;
    kept.scenarios.extend(found.scenarios);
    let text = serde_json::to_string_pretty(&kept).expect("plain numbers and names");
    let path = root.join(BASELINE);
    let written =
        fs::create_dir_all(root.join("bench")).and_then(|()| fs::write(path, text + "\n"));
    written.map_err(|e| BenchError::Baseline { said: e.to_string() })
}

fn output(command: &mut Command) -> Result<Output, BenchError> {
    let output = command.output().map_err(|source| BenchError::NotStarted {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BenchError::Failed { command: shown(command), said });
    }
    Ok(output)
}

fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|it| it.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(instructions: u64, heap_peak_bytes: u64, counts: &[(&str, u64)]) -> Measured {
        let counts = counts.iter().map(|(key, it)| ((*key).to_owned(), *it)).collect();
        Measured { instructions, heap_peak_bytes, counts }
    }

    #[test]
    fn two_percent_more_passes_and_the_next_instruction_fails() {
        let before = measured(1_000_000, 5_000, &[("links", 6)]);
        assert!(worse(&before, &measured(1_020_000, 5_100, &[("links", 6)])).is_empty());
        assert!(worse(&before, &measured(1, 1, &[("links", 6)])).is_empty());
        assert_eq!(
            worse(&before, &measured(1_020_001, 5_101, &[("links", 7), ("nodes", 1)])),
            [
                "worse: 1020001 instructions after 1000000; 1020000 is the limit",
                "worse: 5101 heap bytes after 5000; 5100 is the limit",
                "different: links is 7 after 6",
                "different: nodes is 1 after none",
            ]
        );
    }

    #[test]
    fn numbers_are_read_as_valgrind_writes_them() {
        let callgrind = "==1== Events    : Ir\n==1== Collected : 300085\n==1==\n";
        let dhat = "==1== Total:     3,644 bytes\n==1== At t-gmax: 1,736 bytes in 3 blocks\n";
        assert_eq!(number_after(callgrind, "Collected :"), Some(300_085));
        assert_eq!(number_after(dhat, "At t-gmax:"), Some(1_736));
        assert_eq!(number_after(dhat, "Collected :"), None);
        assert_eq!(counts("links 6\nnot a count\n"), [("links".to_owned(), 6)].into());
    }

    #[test]
    fn the_binary_is_found_among_cargos_messages() {
        let said = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"serde\"},\
                    \"executable\":null}\nnot json\n{\"target\":{\"name\":\"scenarios\"},\
                    \"executable\":\"target/release/deps/scenarios-1\"}\n";
        assert_eq!(executable(said), Some(PathBuf::from("target/release/deps/scenarios-1")));
    }
}
