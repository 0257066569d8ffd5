//! How long a job of P processes in r replicas runs until it must start again, and what of its
//! nodes' time is of use.
//!
//! Nodes fail at a constant rate and are not repaired while the job runs.  One copy starts again at
//! the first failure.  Of two, a pair has lost both.  Of three, a cluster has one left: two errors
//! in one cluster (definition 8); as deaths alone they would be outlived until a cluster is empty.
//!
//! With x = exp(-λt) the job still runs with chance x^P, (2x - x²)^P, (3x² - 2x³)^P and, of deaths
//! alone, (1 - (1-x)³)^P.  By λ the means are 1/P; 4^P B(P,P)/4 + 1/(2P); (27/4)^P times the
//! incomplete beta function of 2/3, 2P and P+1; and the integral of (1 - (1-x)³)^P / x over 0..1.
//! They are integrated here as they stand, in logarithms, which holds at any P; the tests hold the
//! forms above and the limits √(π/4P), √(π/12P) and Γ(4/3)/P^(1/3) against that.

use serde::Serialize;

use crate::dice::Dice;

/// The rate of one node that seed 003 takes from Los Alamos' records: 1/(512 h).
pub const NODE_HOURS: f64 = 512.0;

/// When a job must start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Any node has failed: one copy, or two that only detect.
    First,
    /// A pair has lost both.
    PairEmpty,
    /// A cluster of three has one left.
    OneLeft,
    /// A cluster of three has none left.
    TripleEmpty,
}

impl Until {
    /// All, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::First, Self::PairEmpty, Self::OneLeft, Self::TripleEmpty];

    /// Replicas of each process.
    pub const fn replicas(self) -> u32 {
        match self {
            Until::First => 1,
            Until::PairEmpty => 2,
            Until::OneLeft | Until::TripleEmpty => 3,
        }
    }

    /// Failures in one cluster that it takes.
    const fn failures(self) -> u32 {
        match self {
            Until::First => 1,
            Until::PairEmpty | Until::OneLeft => 2,
            Until::TripleEmpty => 3,
        }
    }

    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Until::First => "r = 1",
            Until::PairEmpty => "r = 2",
            Until::OneLeft => "r = 3",
            Until::TripleEmpty => "r = 3, deaths alone",
        }
    }

    /// The logarithm of the chance that one cluster still runs at λt.
    fn ln_alive(self, t: f64) -> f64 {
        let dead = -libm::expm1(-t);
        let lost = match self {
            Until::First => return -t,
            Until::PairEmpty => dead * dead,
            // One minus 3x² - 2x³, without losing its last bits where x is nearly 1.
            Until::OneLeft => dead * dead * (3.0 - 2.0 * dead),
            Until::TripleEmpty => dead * dead * dead,
        };
        libm::log1p(-lost)
    }
}

/// The mean time to a restart in units of a node's mean time to failure, by the closed form.
pub fn mean(until: Until, p: f64) -> f64 {
    if until == Until::First {
        return 1.0 / p;
    }
    // Simpson's rule in u with t = e^u: the integrand is smooth there at any P, and beyond these
    // ends it adds less than 1e-9 of the whole.
    let (low, high, n) = (-30.0_f64, 4.5_f64, 6000);
    let step = (high - low) / f64::from(n);
    let at = |place: i32| {
        let t = libm::exp(low + step * f64::from(place));
        t * libm::exp(p * until.ln_alive(t))
    };
    let inner: f64 = (1..n).map(|it| at(it) * if it % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (at(0) + inner + at(n)) * step / 3.0
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

    let replicas = u64::from(until.replicas());
    let (mut t, mut n_alive) = (0.0, p * replicas);
    let mut lost: BTreeMap<u64, u32> = BTreeMap::new();
    loop {
        // The first of so many: an exponential of the sum of their rates.
        let unit = (dice.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        t -= libm::log(unit) / n_alive as f64;
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

/// What of its nodes' time a job with checkpoints uses, by Daly (2006): with mean time M to a
/// restart, T/T_s = M/τ e^(R/M) (e^((τ+δ)/M) - 1) at his higher-order optimum of τ.
pub fn useful_share(mean_h: f64, checkpoints: Checkpoints) -> f64 {
    let (m, delta) = (mean_h, checkpoints.write_h);
    let half = delta / (2.0 * m);
    let every = if delta < 2.0 * m {
        (2.0 * delta * m).sqrt() * (1.0 + half.sqrt() / 3.0 + half / 9.0) - delta
    } else {
        m
    };
    let by = m / every * libm::exp(checkpoints.restart_h / m) * libm::expm1((every + delta) / m);
    if by.is_finite() { 1.0 / by } else { 0.0 }
}
