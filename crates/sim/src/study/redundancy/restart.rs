//! How long a job of P processes in r replicas runs until it must start again, and what of its
//! nodes' time is of use.
//!
//! Nodes fail at a constant rate and are not repaired while the job runs; a restart begins with
//! sound ones.  One copy starts again at the first failure.  Of two, a pair has lost both; two that
//! find a silent error cannot tell whose, so they start again at the first of those.  Of three, a
//! cluster has one left: two errors in one cluster (definition 8); as deaths alone they would be
//! outlived until a cluster is empty.  In classic TMR a death ends its whole job of the three, and
//! with the second nothing can be compared.
//!
//! With x = exp(-λt) the job still runs with chance x^P, (2x - x²)^P, x^2P, (3x² - 2x³)^P, of
//! deaths alone (1 - (1-x)³)^P, and of classic TMR 3y² - 2y³ with y = x^P.  By λ the means are 1/P;
//! 4^P B(P,P)/4 + 1/(2P); 1/(2P); (27/4)^P times the incomplete beta function of 2/3, 2P and P+1;
//! the integral of (1 - (1-x)³)^P / x over 0..1; and 5/(6P).  They are integrated here as they
//! stand, in logarithms, which holds at any P; the tests hold the forms above and the limits
//! √(π/4P), √(π/12P) and Γ(4/3)/P^(1/3) against that.

use serde::Serialize;

use crate::dice::Dice;

/// The rate of one node that seed 003 takes from Los Alamos' records: 1/(512 h).
pub const NODE_HOURS: f64 = 512.0;

/// When a job must start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Any node has failed: one copy.
    First,
    /// A pair has lost both.
    PairEmpty,
    /// Any node of a pair has erred silently.
    PairFirst,
    /// A cluster of three has one left.
    OneLeft,
    /// A cluster of three has none left.
    TripleEmpty,
    /// Two of three whole jobs have lost a node: classic TMR.
    JobsOneLeft,
}

impl Until {
    /// All, in the order of the tables.
    pub const ALL: [Self; 6] = [
        Self::First,
        Self::PairEmpty,
        Self::PairFirst,
        Self::OneLeft,
        Self::TripleEmpty,
        Self::JobsOneLeft,
    ];

    /// Replicas of each process.
    pub const fn replicas(self) -> u32 {
        match self {
            Until::First => 1,
            Until::PairEmpty | Until::PairFirst => 2,
            Until::OneLeft | Until::TripleEmpty | Until::JobsOneLeft => 3,
        }
    }

    /// Failures in one cluster that it takes, or jobs lost.
    const fn failures(self) -> u32 {
        match self {
            Until::First | Until::PairFirst => 1,
            Until::PairEmpty | Until::OneLeft | Until::JobsOneLeft => 2,
            Until::TripleEmpty => 3,
        }
    }

    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Until::First => "r = 1",
            Until::PairEmpty => "r = 2, deaths",
            Until::PairFirst => "r = 2, silent",
            Until::OneLeft => "r = 3",
            Until::TripleEmpty => "r = 3, deaths alone",
            Until::JobsOneLeft => "TMR, deaths",
        }
    }

    /// The logarithm of the chance that a job of `p` still runs at λt.
    fn ln_runs(self, p: f64, t: f64) -> f64 {
        let dead = -libm::expm1(-t);
        // One minus 3x² - 2x³, without losing its last bits where x is nearly 1.
        let two_of_three = |dead: f64| dead * dead * (3.0 - 2.0 * dead);
        let lost = match self {
            Until::First => return -p * t,
            Until::PairFirst => return -2.0 * p * t,
            Until::JobsOneLeft => return libm::log1p(-two_of_three(-libm::expm1(-p * t))),
            Until::PairEmpty => dead * dead,
            Until::OneLeft => two_of_three(dead),
            Until::TripleEmpty => dead * dead * dead,
        };
        p * libm::log1p(-lost)
    }
}

/// The mean time to a restart in units of a node's mean time to failure, by the closed form.
pub fn mean(until: Until, p: f64) -> f64 {
    match until {
        Until::First => return 1.0 / p,
        Until::PairFirst => return 1.0 / (2.0 * p),
        Until::JobsOneLeft => return 5.0 / (6.0 * p),
        Until::PairEmpty | Until::OneLeft | Until::TripleEmpty => {}
    }
    // Simpson's rule in u with t = e^u: the integrand is smooth there at any P, and beyond these
    // ends it adds less than 1e-9 of the whole.
    let (low, high, n) = (-30.0_f64, 4.5_f64, 6000);
    let step = (high - low) / f64::from(n);
    let at = |place: i32| {
        let t = libm::exp(low + step * f64::from(place));
        t * libm::exp(until.ln_runs(p, t))
    };
    let inner: f64 = (1..n).map(|it| at(it) * if it % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (at(0) + inner + at(n)) * step / 3.0
}

/// The mean time until two nodes of one cluster have erred silently between the same two compares,
/// `every` apart, where a compare mends what it finds: classic TMR.  In the same units.
pub fn mean_mended(p: f64, every: f64) -> f64 {
    every / -libm::expm1(Until::OneLeft.ln_runs(p, every))
}

/// Mean and standard error of as many drawn jobs, in the same units.
pub fn simulated(until: Until, p: u64, trials: u32, dice: &mut Dice) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..trials {
        let t = one(until, p, dice);
        sum += t;
        squares += t * t;
    }
    let n = f64::from(trials);
    let variance = (squares / n - sum / n * (sum / n)).max(0.0);
    (sum / n, (variance / n).sqrt())
}

/// One job: nodes fail one after the other until a cluster has lost too many.
fn one(until: Until, p: u64, dice: &mut Dice) -> f64 {
    use std::collections::BTreeMap;

    // What fails as one: a cluster's nodes one by one, or in classic TMR whole jobs.
    let (p, replicas, rate) = match until {
        Until::JobsOneLeft => (1, u64::from(until.replicas()), p as f64),
        _ => (p, u64::from(until.replicas()), 1.0),
    };
    let (mut t, mut n_alive) = (0.0, p * replicas);
    let mut lost: BTreeMap<u64, u32> = BTreeMap::new();
    loop {
        // The first of so many: an exponential of the sum of their rates.
        let unit = (dice.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        t -= libm::log(unit) / (n_alive as f64 * rate);
        // Which node: drawn among all until it is a live one.
        let cluster = loop {
            let node = dice.below(p * replicas);
            let gone = lost.get(&(node / replicas)).copied().unwrap_or(0);
            if u64::from(gone) <= node % replicas {
                break node / replicas;
            }
        };
        n_alive -= 1;
        let gone = lost.entry(cluster).or_default();
        *gone += 1;
        if *gone == until.failures() {
            return t;
        }
    }
}

/// Writing and reading checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Checkpoints {
    /// δ: writing one, in hours.
    pub write_h: f64,
    /// R: reading one and starting again, in hours.
    pub restart_h: f64,
}

impl Checkpoints {
    /// τ: Daly's higher-order optimum of the work between two, at mean time M to a restart.
    fn every_h(self, m: f64) -> f64 {
        let delta = self.write_h;
        let half = delta / (2.0 * m);
        if delta < 2.0 * m {
            (2.0 * delta * m).sqrt() * (1.0 + half.sqrt() / 3.0 + half / 9.0) - delta
        } else {
            m
        }
    }
}

/// What of its nodes' time a job with checkpoints uses, by Daly (2006): with mean time M to a
/// restart, T/T_s = M/τ e^(R/M) (e^((τ+δ)/M) - 1) at his τ.
///
/// It holds where the next failure does not depend on how long the job has run: for one copy, and
/// for two that start again at the first silent error.  Copies that outlive failures have fewer
/// left as they run ([`drawn_share`]).
pub fn useful_share(mean_h: f64, checkpoints: Checkpoints) -> f64 {
    let (m, delta) = (mean_h, checkpoints.write_h);
    let every = checkpoints.every_h(m);
    let by = m / every * libm::exp(checkpoints.restart_h / m) * libm::expm1((every + delta) / m);
    if by.is_finite() { 1.0 / by } else { 0.0 }
}

/// The same of drawn jobs at the same τ, and its standard error: from a restart on a job reads its
/// checkpoint, and what it has written until the next restart is of use.
pub fn drawn_share(
    (until, p): (Until, u64),
    node_mttf_h: f64,
    checkpoints: Checkpoints,
    (trials, dice): (u32, &mut Dice),
) -> (f64, f64) {
    let every = checkpoints.every_h(node_mttf_h * mean(until, p as f64));
    let runs: Vec<(f64, f64)> = (0..trials)
        .map(|_| {
            let hours = node_mttf_h * one(until, p, dice);
            let working = (hours - checkpoints.restart_h).max(0.0);
            (every * (working / (every + checkpoints.write_h)).floor(), hours)
        })
        .collect();
    let hours: f64 = runs.iter().map(|it| it.1).sum();
    let share = runs.iter().map(|it| it.0).sum::<f64>() / hours;
    let square = |it: &(f64, f64)| (it.0 - share * it.1) * (it.0 - share * it.1);
    (share, runs.iter().map(square).sum::<f64>().sqrt() / hours)
}

/// The same by the chance of still running at the end of each checkpoint, without dice:
/// τ Σ S(R + k(τ+δ)) / M over k = 1, 2, …
pub fn exact_share(until: Until, p: f64, node_mttf_h: f64, checkpoints: Checkpoints) -> f64 {
    let m = node_mttf_h * mean(until, p);
    let every = checkpoints.every_h(m);
    let step = every + checkpoints.write_h;
    // So many short steps are an integral, less half a step.
    if step * 1e3 < m {
        return every / step * (1.0 - (checkpoints.restart_h + step / 2.0) / m);
    }
    let runs = |k: i32| {
        let hours = checkpoints.restart_h + f64::from(k) * step;
        libm::exp(until.ln_runs(p, hours / node_mttf_h))
    };
    let sum: f64 = (1..).map(runs).take_while(|it| 1e-18 < *it).sum();
    every * sum / m
}
