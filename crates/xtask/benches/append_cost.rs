//! What an append costs beside a bare sync of the same size, and a start with rows behind it.
//!
//! `cargo bench -p xtask --bench append_cost [-- DIR]` only prints: how long a
//! disk takes is for a person to judge.  DIR must be on the disk that is to be measured.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use selvedge_driver::store::{Row, Snapshot, Store, verify};

const N_SAMPLES: usize = 2_000;

/// About what a submitted job takes.
const BODY_BYTES: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let base =
        env::args_os().skip(1).find(|it| it != "--bench").unwrap_or_else(|| env::temp_dir().into());
    let dir = tempfile::Builder::new().prefix("append-cost").tempdir_in(base)?;
    println!("{N_SAMPLES} samples each, bodies of {BODY_BYTES} bytes");
    for bytes in [BODY_BYTES, 4_096, 2 * 4_096] {
        bare(dir.path(), bytes)?;
    }
    append(&dir.path().join("single"), 1, N_SAMPLES)?;
    append(&dir.path().join("grouped"), 32, N_SAMPLES)?;
    for n_rows in [100_000, 1_000_000] {
        start(&dir.path().join(format!("start{n_rows}")), n_rows)?;
    }
    Ok(())
}

/// Writes of `bytes` at the end of a file, each followed by a sync.
fn bare(dir: &Path, bytes: usize) -> Result<(), Box<dyn Error>> {
    let block = vec![b'x'; bytes];
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).open(dir.join("bare"))?;
    let growing = samples(N_SAMPLES, || {
        file.write_all(&block)?;
        file.sync_all()
    })?;
    print(&format!("write {bytes} bytes and fsync, growing"), growing);
    // Twice over the same place: what a file costs whose blocks are already there.
    file.seek(SeekFrom::Start(0))?;
    let standing = samples(N_SAMPLES, || {
        file.write_all(&block)?;
        file.sync_data()
    })?;
    print(&format!("write {bytes} bytes and fdatasync, in place"), standing);
    Ok(())
}

fn append(dir: &Path, n_grouped: u64, n_samples: usize) -> Result<(), Box<dyn Error>> {
    let (mut store, _) = Store::open(dir)?;
    let taken = samples(n_samples, || store.append(&rows(store.last(), n_grouped)))?;
    print(&format!("append {n_grouped} rows"), taken);
    Ok(())
}

fn start(dir: &Path, n_rows: u64) -> Result<(), Box<dyn Error>> {
    let (mut store, _) = Store::open(dir)?;
    while store.last() < n_rows {
        store.append(&rows(store.last(), 10_000))?;
    }
    let body = vec![7; 16 << 20];
    let snapshot = Snapshot { number: n_rows - 100, at_ns: 0, version: "0".to_owned(), body };
    let begin = Instant::now();
    store.snapshot(&snapshot)?;
    println!("snapshot of 16 MiB: {:?}", begin.elapsed());
    drop(store);
    let begin = Instant::now();
    let (store, opened) = Store::open(dir)?;
    let n_tail = store.rows_after(opened.replay_after())?.count();
    println!(
        "open with {n_rows} rows, chain walked from row {} on, {n_tail} rows to replay: {:?}",
        opened.checked_after + 1,
        begin.elapsed()
    );
    let begin = Instant::now();
    let report = verify(dir)?;
    println!("verify of {} rows: {:?}", report.last_good, begin.elapsed());
    Ok(())
}

fn rows(after: u64, n: u64) -> Vec<Row> {
    let body = |number| format!("{:<BODY_BYTES$}", format!(r#"{{"row":{number}}}"#));
    (after + 1..=after + n).map(|it| Row { number: it, at_ns: it, body: body(it) }).collect()
}

fn samples<E>(n: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Vec<Duration>, E> {
    let mut taken = Vec::with_capacity(n);
    for _ in 0..n {
        let begin = Instant::now();
        work()?;
        taken.push(begin.elapsed());
    }
    taken.sort();
    Ok(taken)
}

fn print(what: &str, sorted: Vec<Duration>) {
    let at = |share: usize| sorted[(sorted.len() - 1) * share / 100];
    println!("{what}: median {:?}, p99 {:?}, most {:?}", at(50), at(99), at(100));
}
