//! What replicas cost: processor time, messages between replicas, and instructions.
//!
//! Goal: figures that `selvedge study redundancy` draws beside its model.  Method: user and system
//! time of a whole run, launchers included, of three concurrent plain runs and of one in three
//! replicas, in turns; the median of the pairs, and beside it how far plain runs differ from each
//! other.  The row `start` is a run that sends nothing.  Messages and bytes between replicas are
//! counted, not timed; for each send there are no more on sixteen processes than on two.
//! What no neighbour on the machine can disturb are instructions (module `instructions`).  Both are
//! held against what replicas may cost, and each program's figure is said to reach that or not,
//! whatever the noise.  The proof fails where instructions are more, or processor time by more than
//! plain runs differ, once all is measured.
//! `cargo xtask prove stmr-cost --json FILE` makes all pairs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

#[path = "mpi/instructions.rs"]
mod instructions;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use mpi::Mpi;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::wait::wait;
use serde::Serialize;

/// A program, and with which arguments it is run: in the ordinary tests, and long enough to be
/// timed.
struct Program {
    name: &'static str,
    /// The source from which it is compiled, or [`LAMMPS`], which is installed.
    source: &'static str,
    short: &'static [&'static str],
    long: &'static [&'static str],
    /// Messages are counted on 2 to 16 processes; else on 4, and only in the full proof.
    is_counted: bool,
    /// What replicas may add to the processor time of three plain runs, if that is wanted of it.
    goal: Option<f64>,
}

/// One that is counted on few processes and many.
const fn counted(
    name: &'static str,
    short: &'static [&'static str],
    n: &'static [&'static str],
) -> Program {
    Program { name, source: name, short, long: n, is_counted: true, goal: None }
}

/// One that takes as long as its words say, and is timed.
const fn timed(
    name: &'static str,
    source: &'static str,
    long: &'static [&'static str],
    goal: Option<f64>,
) -> Program {
    Program { name, source, short: &[], long, is_counted: false, goal }
}

/// What replicas may cost of a kernel's processor time, and of LAMMPS's.
const KERNEL_GOAL: Option<f64> = Some(0.1);
const LAMMPS_GOAL: Option<f64> = Some(0.05);

/// The first two do little but communicate.  Those of patterns.c compute what NPB's kernels do
/// between their messages; only the number of rounds is ours.
const PROGRAMS: [Program; 9] = [
    counted("kernels", &["5"], &["300"]),
    counted("ring", &["40"], &["1500"]),
    timed("start", "patterns", &["cg", "0"], None),
    timed("cg", "patterns", &["cg", "40"], KERNEL_GOAL),
    timed("lu", "patterns", &["lu", "100"], KERNEL_GOAL),
    timed("mg", "patterns", &["mg", "60"], KERNEL_GOAL),
    timed("ft", "patterns", &["ft", "80"], KERNEL_GOAL),
    timed("is", "patterns", &["is", "30"], KERNEL_GOAL),
    timed("lammps-melt", LAMMPS, MELT, LAMMPS_GOAL),
];

const LAMMPS: &str = "LAMMPS";

/// Debian's example: 250 steps of 4,000 atoms.
const MELT: &[&str] = &["-in", "/usr/share/lammps/examples/melt/in.melt", "-log", "none"];

/// Where what this source names can be run from; says so where it cannot.
fn path_of(mpi: &Mpi, folder: &Path, source: &str) -> Option<PathBuf> {
    if source == LAMMPS { mpi.lammps() } else { Some(mpi.compile(source, folder)) }
}

/// Names what this proof needs and does not find, before hours have passed.
fn check_all_is_here(mpi: &Mpi) {
    mpi.lammps();
    let mut valgrind = Command::new("valgrind");
    if valgrind.arg("--version").output().is_err() {
        mpi::missing("valgrind, which counts instructions");
    }
}

#[derive(Serialize)]
struct Points {
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    program: &'static str,
    mpi: String,
    ranks: u32,
    replicas: u32,
    pairs: usize,
    /// Processor time of the run in replicas by that of three plain runs, less one.
    overhead_cpu: f64,
    /// Processor time of the three plain runs, in seconds.
    plain_cpu_s: f64,
    /// Half the distance between the quartiles of plain runs, by their median.
    spread_cpu: f64,
    /// Messages between replicas for each send of the program, of all three together.
    messages_per_send: f64,
    bytes_per_send: f64,
    /// The most that a replica kept for its siblings, in bytes.
    log_bytes_max: u64,
    /// Sends of all processes, each counted once, and the bytes in them.
    sends: u64,
    sent_bytes: u64,
}

impl Point {
    /// What is to be said if it misses a goal by more than plain runs differ.
    fn missed(&self, goal: Option<f64>) -> Option<String> {
        let Self { program, overhead_cpu, spread_cpu, .. } = self;
        let [cost, spread] = [overhead_cpu, spread_cpu].map(|it| it * 100.0);
        (goal? + spread_cpu < *overhead_cpu)
            .then(|| format!("{program}: {cost:+.1} % of processor time (+-{spread:.1})"))
    }

    /// Whether the figure alone is within its goal, and if it is not, whether plain runs differ as
    /// much as it is beyond.
    fn standing(&self, goal: f64) -> String {
        let beyond = self.overhead_cpu - goal;
        let word = if beyond <= 0.0 {
            "goal reached"
        } else if beyond <= self.spread_cpu {
            "goal NOT reached, by no more than plain runs differ"
        } else {
            "goal NOT reached, by more than plain runs differ"
        };
        format!("{:.0} % are wanted: {word}", goal * 100.0)
    }

    fn print(&self, goal: Option<f64>) {
        let Self { program, ranks, pairs, plain_cpu_s, log_bytes_max, .. } = self;
        let [cost, spread] = [self.overhead_cpu, self.spread_cpu].map(|it| it * 100.0);
        let wanted = goal.map_or(String::new(), |goal| format!(" ({})", self.standing(goal)));
        println!(
            "{program:12} {ranks:3} x 3: {cost:+6.1} % processor time{wanted} beside \
             {plain_cpu_s:.2} s (plain runs +-{spread:.1} %, {pairs} pairs), {:.2} messages and \
             {:.0} bytes for each send, at most {log_bytes_max} bytes kept",
            self.messages_per_send, self.bytes_per_send
        );
    }
}

/// The goals once more, in one place: which are reached by the figures alone.
fn print_goals(rows: &[(&Point, f64)]) {
    if rows.is_empty() {
        return;
    }
    println!("processor time at four processes, against what is wanted:");
    for (point, goal) in rows {
        let [cost, spread] = [point.overhead_cpu, point.spread_cpu].map(|it| it * 100.0);
        let standing = point.standing(*goal);
        println!("{:12} {cost:+6.1} % (plain runs +-{spread:.1} %): {standing}", point.program);
    }
    let n = rows.iter().filter(|(point, goal)| point.overhead_cpu <= *goal).count();
    println!("{n} of {} goals of processor time reached by the figure alone", rows.len());
}

/// Processor time of all that these commands start, in milliseconds.
fn cpu_ms(commands: Vec<Command>) -> f64 {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        [usage.user_time(), usage.system_time()]
            .map(|it| it.tv_sec() as f64 * 1e3 + it.tv_usec() as f64 / 1e3)
            .iter()
            .sum::<f64>()
    };
    let before = used();
    let quiet = |mut command: Command| {
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn()
    };
    let started: Vec<_> = commands.into_iter().map(|it| quiet(it).unwrap()).collect();
    for mut child in started {
        child.wait().unwrap();
    }
    // Whoever loses its parent becomes a child of this process; so these too are waited for.
    while wait().is_ok() {}
    used() - before
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(mpi: &Mpi, name: &'static str, words: &[&str], ranks: u32, pairs: usize) -> Point {
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    let plain = || mpi.plain_on(ranks, words);
    let tripled = || mpi.tripled_on(ranks, &summary, words);
    let (mut ratios, mut plains) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let three = cpu_ms((0..3).map(|_| plain()).collect());
        plains.push(three);
        ratios.push(cpu_ms(vec![tripled()]) / three);
    }
    let middle = median(&mut plains);
    let spread = (plains[pairs * 3 / 4] - plains[pairs / 4]) / 2.0;
    // A program that sends nothing has no messages for each send.
    let sends = mpi::count(&summary, "sends").max(1) as f64;
    assert_eq!(mpi::count(&summary, "marks"), 0, "{name}: a false alarm");
    Point {
        program: name,
        mpi: mpi.name.clone(),
        ranks,
        replicas: 3,
        pairs,
        overhead_cpu: median(&mut ratios) - 1.0,
        plain_cpu_s: middle / 1e3,
        spread_cpu: spread / middle,
        messages_per_send: mpi::count(&summary, "link_messages") as f64 / sends,
        bytes_per_send: mpi::count(&summary, "link_bytes") as f64 / sends,
        log_bytes_max: mpi::count(&summary, "log_bytes_max"),
        sends: mpi::count(&summary, "sends"),
        sent_bytes: mpi::count(&summary, "bytes"),
    }
}

#[test]
fn messages_between_replicas_are_as_many_for_each_send_however_many_processes_there_are() {
    let Some(mpi) = Mpi::chosen() else { return };
    set_child_subreaper(true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (pairs, _) = mpi::proof(0);
    let is_full = 0 < pairs;
    if is_full {
        check_all_is_here(&mpi);
    }
    let (mut points, mut missed) = (Vec::new(), Vec::new());
    // What is only counted is counted under every MPI.
    let is_timed = mpi.yields() || !is_full;
    if !is_timed {
        println!(
            "not run: processor time: where a plain process of {} waits, it computes",
            mpi.name
        );
    }
    let is_wanted = |it: &&Program| is_timed && (is_full || it.is_counted);
    for program in PROGRAMS.iter().filter(is_wanted) {
        let Some(path) = path_of(&mpi, folder.path(), program.source) else { continue };
        let ranks: &[u32] = match (program.is_counted, is_full) {
            (true, true) => &[2, 3, 4, 6, 8, 16],
            (true, false) => &[2, 3, 4],
            (false, _) => &[4],
        };
        let args = if is_full { program.long } else { program.short };
        let words = [&[path.to_str().unwrap()], args].concat();
        for ranks in ranks {
            // Time is measured at four processes; elsewhere messages are counted.
            let pairs = if *ranks == 4 { pairs.max(1) as usize } else { 1 };
            let point = measure(&mpi, program.name, &words, *ranks, pairs);
            point.print(program.goal);
            missed.extend(point.missed(program.goal));
            // A run that sends nothing is no point of the model.
            if program.name != "start" {
                points.push(point);
            }
        }
    }
    if is_full {
        missed.extend(instructions::tell(&mpi, folder.path()));
    }
    let goal = |point: &Point| PROGRAMS.iter().find(|it| it.name == point.program)?.goal;
    let goals: Vec<(&Point, f64)> = points.iter().filter_map(|it| Some((it, goal(it)?))).collect();
    print_goals(&goals);
    check_messages(&points);
    let is_drawn = !points.is_empty();
    let text = serde_json::to_string_pretty(&Points { points }).unwrap();
    if is_drawn {
        draw(folder.path(), &text);
    }
    if let Some(path) = env::var_os("SELVEDGE_JSON") {
        fs::write(path, text).unwrap();
    }
    assert!(missed.is_empty(), "more than replicas may cost: {}", missed.join("; "));
}

/// The ring does the same on each process: two messages to siblings from each of three replicas at
/// each compare, and there are a few compares that are no sends.  Kernels compare several sends
/// together, more of them where there are more: nowhere more than where there are fewer.
fn check_messages(points: &[Point]) {
    for point in points.iter().filter(|it| it.program == "ring") {
        let per_send = point.messages_per_send;
        assert!((6.0..9.0).contains(&per_send), "{per_send} messages for each send");
    }
    for (what, of) in [
        ("messages", (|it| it.messages_per_send) as fn(&Point) -> f64),
        ("bytes", |it| it.bytes_per_send),
    ] {
        let all = |name| points.iter().filter(move |it| it.program == name).map(of);
        let (least, most) =
            all("ring").fold((f64::MAX, 0.0_f64), |(a, b), it| (a.min(it), b.max(it)));
        assert!(most <= least.max(1.0) * 1.1, "{least} to {most} {what} for each send");
        let mut fewest = f64::MAX;
        for it in all("kernels") {
            assert!(it <= fewest * 1.1, "{it} {what} for each send, and {fewest} on fewer");
            fewest = fewest.min(it);
        }
    }
}

/// What was measured is what the study draws beside its model.
fn draw(folder: &Path, points: &str) {
    let path = folder.join("points.json");
    fs::write(&path, points).unwrap();
    let mut study = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    study.args(["study", "redundancy", "--json", "--measured"]).arg(&path);
    let drawn: serde_json::Value =
        serde_json::from_slice(&mpi::succeed(&mut study).stdout).unwrap();
    let rows = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let drawn = rows(&drawn["measured"]).iter().flat_map(|it| rows(&it["points"])).count();
    let made: serde_json::Value = serde_json::from_str(points).unwrap();
    assert_eq!(drawn, rows(&made["points"]).len(), "points that the study does not draw");
}
