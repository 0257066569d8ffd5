//! Speed-ups with failures counted: checkpoint and restart beside TMR and STMR.
//!
//! Formulas (1) to (9) count no restarts.  Here each mechanism restarts at its mean time M from
//! checkpoints at Daly's interval, so that S^R is that of formula (2) by the useful share.  M falls
//! to nothing as P grows and the share stays below e^(-R/M): counted so, each speed-up has a
//! largest value and tends to nothing beyond it.

use serde::Serialize;

use crate::study::redundancy::class::{self, Class, SAME};
use crate::study::redundancy::figure::P_MAX;
use crate::study::redundancy::restart::{Checkpoints, Until, mean, useful_share};
use crate::study::redundancy::speedup::{Case, Mechanism, Reading};

/// What is held against one another: its name, T_R, and when it restarts.
pub const MECHANISMS: [(&str, Mechanism, Until); 3] = [
    ("C/R (Daly)", Mechanism::Plain, Until::First),
    ("TMR", Mechanism::Tmr, Until::JobsOneLeft),
    ("STMR", Mechanism::Stmr(Reading::Constant), Until::OneLeft),
];

/// What one of them comes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// Whose.
    pub name: &'static str,
    /// The processes with which its speed-up is largest, on machines up to figure 13's.
    pub most_at: f64,
    /// The largest speed-up.
    pub most: f64,
    /// Whether it is still growing there.
    pub is_growing: bool,
    /// The class in the limit.
    pub class: Class,
    /// The class that the last three decades of figure 13's machines show.
    pub class_fitted: Class,
}

/// Definition 2 for each of [`MECHANISMS`]; a class without failures is [`class::class`].
pub fn recoveries(case: &Case, node_mttf_h: f64, checkpoints: Checkpoints) -> Vec<Recovery> {
    let of = |(name, mechanism, until): (&'static str, Mechanism, Until)| {
        let speedup = |p: f64| {
            let share = useful_share(node_mttf_h * mean(until, p), checkpoints);
            case.redundant_speedup(mechanism, p) * share
        };
        let (most_at, most) = peak(speedup);
        Recovery {
            name,
            most_at,
            most,
            is_growing: P_MAX <= most_at && 0.0 < most,
            class: limit(checkpoints, class::class(case, mechanism)),
            class_fitted: fitted(case, speedup),
        }
    };
    MECHANISMS.into_iter().map(of).collect()
}

/// A restart that takes any time bounds every speed-up; one that takes none leaves the class as
/// it is without failures.
fn limit(checkpoints: Checkpoints, without: Class) -> Class {
    if 0.0 < checkpoints.restart_h { Class::Not } else { without }
}

fn fitted(case: &Case, speedup: impl Fn(f64) -> f64) -> Class {
    let points = || (0..=30).map(|it| P_MAX * libm::pow(10.0, f64::from(it) / 10.0 - 3.0));
    let curve: Vec<(f64, f64)> = points().map(|p| (p, speedup(p))).collect();
    if curve.iter().any(|it| it.1 <= 0.0) {
        return Class::Not;
    }
    let (own, plain) =
        (class::slope(curve.into_iter()), class::slope(points().map(|p| (p, case.speedup(p)))));
    if own < SAME {
        Class::Not
    } else if own + SAME < plain {
        Class::Weakly
    } else {
        Class::Scalable
    }
}

/// Where a curve with one hill is highest, between 1 and figure 13's largest machine, and how high.
fn peak(speedup: impl Fn(f64) -> f64) -> (f64, f64) {
    let end = libm::log(P_MAX);
    let at = |u: f64| (libm::exp(u), speedup(libm::exp(u)));
    let n = 90;
    let grid = |it: i32| end * f64::from(it) / f64::from(n);
    let best = (0..=n).max_by(|a, b| at(grid(*a)).1.total_cmp(&at(grid(*b)).1));
    let best = best.expect("a grid has points");
    if best == n {
        return (P_MAX, speedup(P_MAX));
    }
    let (mut low, mut high) = (grid((best - 1).max(0)), grid(best + 1));
    for _ in 0..40 {
        let third = (high - low) / 3.0;
        if at(low + third).1 < at(high - third).1 {
            low += third;
        } else {
            high -= third;
        }
    }
    at((low + high) / 2.0)
}
