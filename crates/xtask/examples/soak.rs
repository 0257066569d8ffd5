//! The runs of `cargo xtask soak`: `soak minutes N [SEED]`, `soak planted all|DEFECT [SEED]`.
//!
//! Each fresh seed runs twice, with a crash at every sync; both runs must be equal.  With defects
//! built in, each runs seed after seed until the judge has found it.
#![allow(clippy::disallowed_methods, reason = "soaking has a limit in real time")]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use selvedge_control::planted::Defect;
use selvedge_model::unit::Moment;
use selvedge_sim::fault::FaultKind;
use selvedge_sim::judge::{self, Ended, Outcome, Trial};
#[cfg(feature = "planted")]
use selvedge_sim::judge::{SEEDS_MAX, Search};
use selvedge_sim::order::OrderKind;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let passed = match words.as_slice() {
        ["minutes", minutes, seed @ ..] => match minutes.parse() {
            Ok(minutes) => soak(minutes, number(seed).unwrap_or_else(drawn)),
            Err(_) => return usage(),
        },
        ["planted", "all", seed @ ..] => planted(&Defect::ALL, number(seed)),
        ["planted", word, seed @ ..] => match Defect::parse(word) {
            Some(defect) => planted(&[defect], number(seed)),
            None => {
                let words: Vec<&str> = Defect::ALL.iter().map(|it| it.word()).collect();
                eprintln!("there is no defect {word}; there are {}", words.join(", "));
                false
            }
        },
        _ => return usage(),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    eprintln!("soak minutes N [SEED] | soak planted all|DEFECT [SEED]");
    ExitCode::from(2)
}

fn number(words: &[&str]) -> Option<u64> {
    words.first().and_then(|it| it.parse().ok())
}

/// A seed that nobody has run.
fn drawn() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    1_000_000 + now.as_secs() * 1_000 % 1_000_000_000_000
}

/// What all seeds came to so far.
#[derive(Default)]
struct Sum {
    n_seeds: u64,
    n_inputs: u64,
    n_crashes: u64,
    n_faults: [u64; FaultKind::ALL.len()],
    n_orders: [u64; OrderKind::ALL.len()],
    failed: Option<(Trial, Vec<String>)>,
    /// Seeds for which the time did not suffice: which run, and how far it came.
    cut: Vec<(Trial, &'static str, Moment, u64)>,
}

impl Sum {
    /// Takes what the two runs of a seed came to.
    fn take(&mut self, trial: Trial, once: Ended, again: Option<Ended>) {
        let rules = match (once, again) {
            (Ended::Badly { rules, .. }, _) => rules,
            (Ended::Cut { at, n_inputs }, _) => {
                self.cut.push((trial, "first", at, n_inputs));
                return;
            }
            (Ended::Well(once), Some(Ended::Cut { at, n_inputs })) => {
                self.add(&once);
                self.cut.push((trial, "second", at, n_inputs));
                return;
            }
            (Ended::Well(once), Some(Ended::Well(again))) if once == again => {
                self.add(&once);
                return;
            }
            (Ended::Well(_), _) => vec!["the second run differs from the first".to_owned()],
        };
        self.failed = Some((trial, rules));
    }

    fn add(&mut self, outcome: &Outcome) {
        self.n_seeds += 1;
        self.n_inputs += outcome.n_inputs;
        self.n_crashes += outcome.n_crashes;
        for (sum, n) in self.n_faults.iter_mut().zip(outcome.n_faults) {
            *sum += n;
        }
        for (sum, n) in self.n_orders.iter_mut().zip(outcome.n_orders) {
            *sum += n;
        }
    }
}

fn soak(minutes: u64, first: u64) -> bool {
    let begun = Instant::now();
    let end = begun + Duration::from_secs(60 * minutes);
    let (next, sum) = (AtomicU64::new(first), Mutex::new(Sum::default()));
    println!("seeds from {first} for {minutes} min, each twice, the power failing at every sync");
    // A seed may take minutes: the time is looked at within it.
    let has_time = || Instant::now() < end;
    std::thread::scope(|scope| {
        for _ in 0..n_workers() {
            scope.spawn(|| {
                while has_time() {
                    if sum.lock().expect("no worker panics").failed.is_some() {
                        return;
                    }
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let trial = Trial { crashes_everywhere: true, ..Trial::of(seed) };
                    let once = judge::attempt_while(trial, &has_time);
                    let again = match &once {
                        Ended::Well(_) => Some(judge::attempt_while(trial, &has_time)),
                        Ended::Badly { .. } | Ended::Cut { .. } => None,
                    };
                    sum.lock().expect("no worker panics").take(trial, once, again);
                }
            });
        }
    });
    let sum = sum.into_inner().expect("no worker panics");
    report(&sum, begun.elapsed())
}

fn report(sum: &Sum, took: Duration) -> bool {
    println!(
        "{} seeds, {} inputs, {} power failures in {} s",
        sum.n_seeds,
        sum.n_inputs,
        sum.n_crashes,
        took.as_secs()
    );
    for (kind, n) in FaultKind::ALL.into_iter().zip(sum.n_faults) {
        println!("{n:8} {kind}");
    }
    for (kind, n) in OrderKind::ALL.into_iter().zip(sum.n_orders) {
        println!("{n:8} {kind}");
    }
    for (trial, which, at, n_inputs) in &sum.cut {
        println!(
            "the time was over in the {which} run of seed {}, at {at} of its world, after \
             {n_inputs} inputs; run it whole by: {}",
            trial.seed,
            trial.command()
        );
    }
    let Some((trial, rules)) = &sum.failed else {
        println!("no rule was broken");
        return true;
    };
    println!("seed {} broke a rule:", trial.seed);
    rules.iter().for_each(|it| println!("  {it}"));
    println!("run it again by: {}", trial.command());
    false
}

#[cfg(feature = "planted")]
/// Shows that the judge finds each defect, and that without one there is nothing to find.
fn planted(defects: &[Defect], only: Option<u64>) -> bool {
    // What a defect makes of the core's own assertions is told in the table.
    std::panic::set_hook(Box::new(|_| ()));
    let seeds = only.map_or(0..SEEDS_MAX, |it| it..it + 1);
    let next = AtomicU64::new(0);
    let rows: Mutex<Vec<Option<Search>>> = Mutex::new(defects.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..n_workers() {
            scope.spawn(|| {
                loop {
                    let idx = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(&defect) = defects.get(idx) else { return };
                    let row = judge::find(defect, seeds.clone());
                    rows.lock().expect("no worker panics")[idx] = Some(row);
                }
            });
        }
    });
    let rows = rows.into_inner().expect("no worker panics");
    println!("{:26} {:>5} {:>9}  the rule that it broke", "defect", "seed", "inputs");
    let mut passed = true;
    for (defect, row) in defects.iter().zip(rows.into_iter().flatten()) {
        passed &= row.found.is_some();
        match row.found {
            Some((seed, rule)) => {
                println!("{:26} {seed:5} {:9}  {rule}", defect.word(), row.n_inputs)
            }
            None => println!("{:26} {:>5} {:9}  not found", defect.word(), "-", row.n_inputs),
        }
    }
    if only.is_none() {
        passed &= is_clean();
    }
    passed
}

#[cfg(feature = "planted")]
/// The control run: the same build without a defect.
fn is_clean() -> bool {
    let mut n_inputs = 0;
    for seed in 0..SEEDS_MAX {
        match judge::attempt(Trial::of(seed)) {
            Ended::Well(outcome) => n_inputs += outcome.n_inputs,
            Ended::Cut { .. } => unreachable!("it may take as long as it takes"),
            Ended::Badly { rules, .. } => {
                println!("without a defect seed {seed} broke a rule: {}", rules.join("; "));
                return false;
            }
        }
    }
    println!("without a defect: {n_inputs:9} inputs in {SEEDS_MAX} seeds, no rule was broken");
    true
}

#[cfg(not(feature = "planted"))]
fn planted(_defects: &[Defect], _only: Option<u64>) -> bool {
    eprintln!("this was built without defects; `cargo xtask soak --planted` builds them in");
    false
}

fn n_workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
