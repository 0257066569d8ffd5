//! Definitions 1 and 2: in which order a speed-up grows, by the formulas and by a fit.

use serde::Serialize;

use crate::study::redundancy::speedup::{Case, Growth, Mechanism, Reading};

/// Definition 2; for a program without a mechanism, definition 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Its speed-up stays below some constant.
    Not,
    /// Its speed-up grows without bound, but in a lower order than the program's.
    Weakly,
    /// Its speed-up grows in the order of the program's.
    Scalable,
}

impl Class {
    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Class::Not => "not scalable",
            Class::Weakly => "weakly scalable",
            Class::Scalable => "scalable",
        }
    }
}

/// `P^power · (log P)^logs`, ordered as they grow; the power in sixths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Order {
    /// Six times the power.
    pub sixths: i32,
    /// The power of the logarithm.
    pub logs: i32,
}

impl Order {
    pub(super) const ONE: Self = Self { sixths: 0, logs: 0 };
    pub(super) const P: Self = Self { sixths: 6, logs: 0 };

    pub(super) fn of(growth: Growth) -> Self {
        let (sixths, logs) = match growth {
            Growth::Constant => (0, 0),
            Growth::Log => (0, 1),
            Growth::CubeRoot => (2, 0),
            Growth::Root => (3, 0),
            Growth::TwoThirds => (4, 0),
            Growth::Linear => (6, 0),
        };
        Self { sixths, logs }
    }

    /// The power alone.
    pub(super) fn power(self) -> f64 {
        f64::from(self.sixths) / 6.0
    }

    fn over(self, other: Self) -> Self {
        Self { sixths: self.sixths - other.sixths, logs: self.logs - other.logs }
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let power = match self.sixths {
            0 => None,
            6 => Some("P".to_owned()),
            it if it % 6 == 0 => Some(format!("P^{}", it / 6)),
            it if it % 3 == 0 => Some(format!("P^{}/2", it / 3)),
            it if it % 2 == 0 => Some(format!("P^{}/3", it / 2)),
            it => Some(format!("P^{it}/6")),
        };
        match (power, self.logs) {
            (None, 0) => f.write_str("1"),
            (Some(power), 0) => f.write_str(&power),
            (None, 1) => f.write_str("log P"),
            (Some(power), 1) => write!(f, "{power} log P"),
            (None, logs) => write!(f, "log^{logs} P"),
            (Some(power), -1) => write!(f, "{power}/log P"),
            (Some(power), logs) => write!(f, "{power} log^{logs} P"),
        }
    }
}

/// In which order what STMR compares before sends grows, or falls.
pub fn sends_order(case: &Case, reading: Reading) -> Order {
    let traffic = Order::of(case.traffic);
    match reading {
        Reading::Constant => Order::ONE,
        Reading::Share => traffic.over(Order::P),
        Reading::Literal => traffic,
    }
}

/// In which order T_R grows, or falls; none where there is no T_R.
pub fn overhead_order(case: &Case, mechanism: Mechanism) -> Option<Order> {
    let is_there = |it: f64| 0.0 < it;
    let it = &case.constants;
    match mechanism {
        Mechanism::Plain => None,
        Mechanism::Tmr => {
            let data = Order::P.over(Order::of(case.network.cut.1));
            let hops = Order::of(case.network.hops.1);
            // What two copies compare of each node is a constant.
            let compares = data.max(hops).max(Order::ONE);
            let repair = Order::of(case.network.repair_hops_max.1);
            Some(if is_there(it.errors) { compares.max(repair) } else { compares })
        }
        // The last compare carries a memory, which does not depend on P.
        Mechanism::Stmr(reading) => {
            let sends = is_there(it.sends) && is_there(it.message_bits);
            let sends = sends.then(|| sends_order(case, reading));
            sends.max(is_there(it.memory_bits).then_some(Order::ONE))
        }
    }
}

/// In which order S grows.
pub fn speedup_order(case: &Case) -> Order {
    Order::P.over(Order::of(case.other).max(Order::ONE))
}

/// In which order S^R grows.
pub fn redundant_order(case: &Case, mechanism: Mechanism) -> Order {
    // S^R is P / (1 + (T + T_R)/T'_P): what falls is nothing beside the one.
    let overhead = overhead_order(case, mechanism).unwrap_or(Order::ONE);
    let below = Order::of(case.other).max(overhead).max(Order::ONE);
    Order::P.over(below)
}

/// The class in the limit, by the formulas.
pub fn class(case: &Case, mechanism: Mechanism) -> Class {
    let own = redundant_order(case, mechanism);
    let reference = match mechanism {
        Mechanism::Plain => Order::P,
        Mechanism::Tmr | Mechanism::Stmr(_) => speedup_order(case),
    };
    if own <= Order::ONE {
        Class::Not
    } else if own < reference {
        Class::Weakly
    } else {
        Class::Scalable
    }
}

/// What a line through the last three decades of a curve says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The power with which S grows there.
    pub speedup_power: f64,
    /// The power with which S^R grows there.
    pub redundant_power: f64,
    /// The power with which T_R grows or falls there; none where there is no T_R.
    pub overhead_power: Option<f64>,
    /// What that makes it.
    pub class: Class,
}

/// Powers closer than this are one.
pub const SAME: f64 = 0.05;

/// Fits the powers of S, S^R and T_R by least squares between 10^-3 of `p_max` nodes and all.
pub fn fit(case: &Case, mechanism: Mechanism, p_max: f64) -> Fit {
    let points = || (0..=30).map(|it| p_max * libm::pow(10.0, f64::from(it) / 10.0 - 3.0));
    let speedup_power = slope(points().map(|p| (p, case.speedup(p))));
    let redundant_power = slope(points().map(|p| (p, case.redundant_speedup(mechanism, p))));
    let overhead = || points().map(|p| (p, case.overhead(mechanism, p).sum()));
    let overhead_power = overhead().all(|it| 0.0 < it.1).then(|| slope(overhead()));
    // Definition 1 holds a program against P, definition 2 a mechanism against its program.
    let reference = if mechanism == Mechanism::Plain { 1.0 } else { speedup_power };
    let class = if redundant_power < SAME {
        Class::Not
    } else if redundant_power + SAME < reference {
        Class::Weakly
    } else {
        Class::Scalable
    };
    Fit { speedup_power, redundant_power, overhead_power, class }
}

/// The power of x that y grows with, by least squares of their logarithms; 0 for fewer than two
/// different x.
pub fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let logs: Vec<(f64, f64)> = points.map(|(x, y)| (libm::log(x), libm::log(y))).collect();
    let n = logs.len() as f64;
    let mean = |get: fn(&(f64, f64)) -> f64| logs.iter().map(get).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|it| it.0), mean(|it| it.1));
    let together: f64 = logs.iter().map(|it| (it.0 - mean_x) * (it.1 - mean_y)).sum();
    let alone: f64 = logs.iter().map(|it| (it.0 - mean_x) * (it.0 - mean_x)).sum();
    if alone == 0.0 { 0.0 } else { together / alone }
}
