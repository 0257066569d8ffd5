//! The small tables in the repository are what their README says of the originals.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

/// The rows of a table without comments, as cells.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
    lines.map(|it| it.split(',').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What the repository keeps, without its heading.
fn kept(table: &str) -> Vec<(String, u64)> {
    let text = fs::read_to_string(xtask::root().join("crates/sim/data").join(table)).unwrap();
    let cells = rows(&text).into_iter().skip(1);
    cells.map(|it| (it[0].clone(), it[1].parse().unwrap())).collect()
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap()
}

fn whole(cell: &str) -> u64 {
    number(cell).round() as u64
}

#[test]
fn the_slice_mix_is_the_published_one() {
    let Some(path) = real_input("traces/tpu_job_size.csv") else { return };
    let originals = rows(&fs::read_to_string(path).unwrap());
    let computed: Vec<_> = originals
        .iter()
        .map(|it| {
            let twist = if it[1] == "T3D_T" { "_twisted" } else { "" };
            (format!("{}{twist}", it[2]), (number(&it[5]) * 1e4).round() as u64)
        })
        .collect();
    assert_eq!(kept("slices.csv"), computed);
}

#[test]
fn the_arrival_gaps_are_the_published_ones() {
    let Some(path) = real_input("traces/tpu_arrival_time.csv") else { return };
    let mut originals = rows(&fs::read_to_string(path).unwrap());
    originals.sort_by(|a, b| number(&a[0]).total_cmp(&number(&b[0])));
    let computed: Vec<_> = originals
        .iter()
        .map(|it| {
            let gap_ms = (number(&it[0]) * 1e3).round() as u64;
            (gap_ms.to_string(), (number(&it[1]) * 1e4).round() as u64)
        })
        .collect();
    assert_eq!(kept("arrivals.csv"), computed);
}

#[test]
fn durations_and_sizes_are_those_of_the_trace() {
    let Some(path) = real_input("traces/crux.csv") else { return };
    let jobs = rows(&fs::read_to_string(path).unwrap());
    assert_eq!(jobs.len(), 2498);

    let mut durations: Vec<u64> = jobs.iter().map(|it| whole(&it[5])).collect();
    durations.sort_unstable();
    let rank = |percent: usize| (percent * durations.len()).div_ceil(100).max(1);
    let computed: Vec<_> = (0..=100).map(|it| (it.to_string(), durations[rank(it) - 1])).collect();
    assert_eq!(kept("durations.csv"), computed);

    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for job in &jobs {
        *sizes.entry(whole(&job[4])).or_default() += 1;
    }
    let computed: Vec<_> = sizes.iter().map(|(gpus, n_jobs)| (gpus.to_string(), *n_jobs)).collect();
    assert_eq!(kept("sizes.csv"), computed);
}
