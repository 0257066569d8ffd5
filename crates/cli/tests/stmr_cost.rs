//! What replicas cost: processor time, and messages between replicas.
//!
//! Goal: figures that `selvedge study redundancy` draws beside its model.  Method: user and system
//! time of a whole run, launchers included, of three concurrent plain runs and of one in three
//! replicas, in turns; the median of the pairs, and beside it how far plain runs differ from each
//! other.  Messages and bytes between replicas are counted, not timed; for each send there are as
//! many on two processes as on sixteen.  `cargo xtask prove stmr-cost --json FILE` makes all pairs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod mpi;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use mpi::Mpi;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::wait::wait;
use serde::Serialize;

/// Programs and what makes them long enough to be timed.
const PROGRAMS: [(&str, &str, &str); 2] = [("kernels", "5", "300"), ("ring", "40", "1500")];

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
    /// Half the distance between the quartiles of plain runs, by their median.
    spread_cpu: f64,
    /// Messages between replicas for each send of the program, of all three together.
    messages_per_send: f64,
    bytes_per_send: f64,
    /// The most that a replica kept for its siblings, in bytes.
    log_bytes_max: u64,
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

fn measure(mpi: &Mpi, folder: &Path, row: (&'static str, &str), ranks: u32, pairs: usize) -> Point {
    let (name, turns) = row;
    let program = mpi.compile(name, folder);
    let words = [program.to_str().unwrap(), turns];
    let summary = folder.join("summary.json");
    let plain = || mpi.plain_on(ranks, &words);
    let tripled = || mpi.tripled_on(ranks, &summary, &words);
    let (mut ratios, mut plains) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        let three = cpu_ms((0..3).map(|_| plain()).collect());
        plains.push(three);
        ratios.push(cpu_ms(vec![tripled()]) / three);
    }
    let middle = median(&mut plains);
    let spread = (plains[pairs * 3 / 4] - plains[pairs / 4]) / 2.0;
    let sends = mpi::count(&summary, "sends") as f64;
    assert_eq!(mpi::count(&summary, "marks"), 0, "{name}: a false alarm");
    Point {
        program: name,
        mpi: mpi.name.clone(),
        ranks,
        replicas: 3,
        pairs,
        overhead_cpu: median(&mut ratios) - 1.0,
        spread_cpu: spread / middle,
        messages_per_send: mpi::count(&summary, "link_messages") as f64 / sends,
        bytes_per_send: mpi::count(&summary, "link_bytes") as f64 / sends,
        log_bytes_max: mpi::count(&summary, "log_bytes_max"),
    }
}

#[test]
fn messages_between_replicas_are_as_many_for_each_send_however_many_processes_there_are() {
    let Some(mpi) = Mpi::chosen() else { return };
    set_child_subreaper(true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (pairs, _) = mpi::proof(0);
    let is_full = 0 < pairs;
    let mut points = Vec::new();
    for (name, short, long) in PROGRAMS {
        let ranks: &[u32] = if is_full { &[2, 4, 8, 16] } else { &[2, 4] };
        let turns = if is_full { long } else { short };
        for ranks in ranks {
            // Time is measured at four processes; elsewhere messages are counted.
            let pairs = if *ranks == 4 { pairs.max(1) as usize } else { 1 };
            let point = measure(&mpi, folder.path(), (name, turns), *ranks, pairs);
            println!(
                "{name:10} {ranks:3} x 3: {:+6.1} % processor time (plain runs +-{:.1} %, {pairs} \
                 pairs), {:.2} messages and {:.0} bytes for each send, at most {} bytes kept",
                point.overhead_cpu * 100.0,
                point.spread_cpu * 100.0,
                point.messages_per_send,
                point.bytes_per_send,
                point.log_bytes_max
            );
            points.push(point);
        }
    }
    // The ring does the same on each process: two messages to siblings from each of three replicas
    // at each compare, and there are a few compares that are no sends.
    for point in points.iter().filter(|it| it.program == "ring") {
        let per_send = point.messages_per_send;
        assert!((6.0..9.0).contains(&per_send), "{per_send} messages for each send");
    }
    if let Some(path) = env::var_os("SELVEDGE_JSON") {
        fs::write(path, serde_json::to_string_pretty(&Points { points }).unwrap()).unwrap();
    }
}
