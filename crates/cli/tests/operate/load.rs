//! Many clients at once, many jobs, and a long journal; `cargo xtask prove load` runs it at its
//! full size in a release build, and prints the figures that SPECIFICATION.md speaks of.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Up;
use crate::support;
use crate::support::clients;

/// How much of everything.
#[derive(Clone, Copy)]
struct Size {
    n_clients: usize,
    n_submits: usize,
    n_jobs: usize,
    n_inputs: u64,
    /// How long a restart may take.
    restart_max: Duration,
}

const SHORT: Size = Size {
    n_clients: 8,
    n_submits: 10,
    n_jobs: 400,
    n_inputs: 2_000,
    restart_max: Duration::from_secs(60),
};

const FULL: Size = Size {
    n_clients: 64,
    n_submits: 100,
    n_jobs: 10_000,
    n_inputs: 100_000,
    restart_max: Duration::from_secs(1),
};

fn status(up: &Up) -> Value {
    serde_json::from_str(&up.text(&["status", "--json"])).unwrap()
}

fn resident_mib(up: &Up) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", up.pid())).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn many_clients_are_served_and_a_long_journal_is_no_long_start() {
    let size = if std::env::var_os("SELVEDGE_PROOF").is_some() { FULL } else { SHORT };
    let options = ["--speed", "100000"];
    let up = Up::start_with(support::dir(), &options);
    let took = clients::submit(&up.door(), size.n_clients, size.n_submits, "4x4x4").unwrap();
    println!("{} clients, {} submits each: {took}", size.n_clients, size.n_submits);

    let n_more = size.n_jobs.saturating_sub(took.n()).max(1).to_string();
    let array = ["job", "submit", "--name", "more", "--shape", "2x2x1", "--duration", "10m"];
    up.text(&[&array[..], &["--array", &n_more]].concat());
    println!("after {} jobs: {} MiB resident", size.n_jobs, resident_mib(&up));

    let since = Instant::now();
    while status(&up)["journal"].as_u64().unwrap() < size.n_inputs {
        assert!(since.elapsed() < Duration::from_secs(1200), "{}", status(&up));
        if status(&up)["jobs"]["queued"] == 0 {
            up.text(&[&array[..], &["--array", "1000"]].concat());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    // As an upgrade ends it, and then as a power failure does, with rows behind the last snapshot.
    let mut up = up;
    for (how, parts) in
        [("SIGTERM", Up::leave as fn(Up) -> tempfile::TempDir), ("kill -9", Up::kill)]
    {
        let rows = status(&up)["journal"].clone();
        let dir = parts(up);
        let since = Instant::now();
        up = Up::start_with(dir, &options);
        let took = since.elapsed();
        println!("restart after {how} with {rows} inputs behind it: {took:.2?}");
        assert!(took < size.restart_max, "{how}: {took:?}");
    }
    println!("then: {} MiB resident", resident_mib(&up));
}
