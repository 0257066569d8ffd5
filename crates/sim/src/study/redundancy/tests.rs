//! Formulas against values worked out by hand, and means against others.

use super::class::{Class, class, fit, overhead_order};
use super::figure::{CURVES, P_MAX, panels, sentences};
use super::restart::{Checkpoints, Until, mean, simulated, useful_share};
use super::speedup::{Case, Constants, Growth, Mechanism, Network, Reading, transfer_s};
use crate::dice::Dice;

/// Constants with which one can reckon by hand.
const BY_HAND: Constants = Constants {
    compute_s: 100.0,
    other_share: 0.25,
    transfer_s: 1.0,
    router_s: 0.5,
    link_bps: 10.0,
    memory_bits: 30.0,
    compares: 2.0,
    errors: 3.0,
    message_bits: 5.0,
    compare_bps: 60.0,
    assign_bps: 15.0,
};

const MESH: Case = Case {
    constants: BY_HAND,
    network: Network::MESH,
    other: Growth::Constant,
    traffic: Growth::Root,
};

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn formulas_give_what_a_hand_reckons() {
    // (1): 36 / (1 + 25/100).
    close(MESH.speedup(36.0), 28.8);
    // (3): 1 + 20/10 + 4 · 0.5.
    close(transfer_s(&BY_HAND, 20.0, 10.0, 4.0), 5.0);
    // (4) at P = 36: B = 60, D = 30 · 24 = 720, h = 3: 2 · (1 + 12 + 1.5) = 29.
    let tmr = MESH.overhead(Mechanism::Tmr, 36.0);
    close(tmr.compare_traffic_s, 29.0);
    // The same as the paper writes it out: t_o M + 2dM√P/3b + t_r M√P/2.
    close(tmr.compare_traffic_s, 2.0 + 2.0 * 30.0 * 2.0 * 6.0 / 30.0 + 0.5 * 2.0 * 6.0 / 2.0);
    // (5), (6), above: 3 · (1 + 30/10 + 0.5 · 2/3 · 6) = 18.
    close(tmr.repair_traffic_s, 18.0);
    // Two copies of 30 at 60 a second, twice; 30 at 15 a second, three times.
    close(tmr.compare_s, 2.0);
    close(tmr.assignment_s, 6.0);
    // (2): 36 / (1 + 0.25 + 55/100).
    close(MESH.redundant_speedup(Mechanism::Tmr, 36.0), 20.0);
    // (7) to (9): 2 · 2 · 5/10; with √36 = 6 times as much in the literal reading, a sixth shared.
    let stmr = |it| MESH.overhead(Mechanism::Stmr(it), 36.0);
    close(stmr(Reading::Constant).compare_traffic_s, 2.0);
    close(stmr(Reading::Literal).compare_traffic_s, 12.0);
    close(stmr(Reading::Share).compare_traffic_s, 2.0 / 6.0);
    close(stmr(Reading::Constant).compare_s, 2.0 * 2.0 * 5.0 / 60.0);
    close(stmr(Reading::Constant).sum(), 2.0 + 1.0 / 3.0);
    close(MESH.overhead(Mechanism::Plain, 36.0).sum(), 0.0);
}

#[test]
fn classes_are_those_of_the_formulas() {
    let of = |network| Case { network, ..MESH };
    let orders: Vec<String> = Network::REAL
        .iter()
        .map(|it| overhead_order(&of(*it), Mechanism::Tmr).to_string())
        .collect();
    assert_eq!(orders, ["P^1/2", "P^1/3", "log P"]);
    for network in Network::REAL {
        assert_eq!(class(&of(network), Mechanism::Tmr), Class::Weakly);
        assert_eq!(class(&of(network), Mechanism::Stmr(Reading::Share)), Class::Scalable);
        assert_eq!(class(&of(network), Mechanism::Stmr(Reading::Literal)), Class::Weakly);
    }
    assert_eq!(class(&MESH, Mechanism::Plain), Class::Scalable);
}

#[test]
fn fits_agree_with_the_limit_where_the_machine_is_large_enough() {
    for mechanism in CURVES {
        for panel in panels(Constants::BLUE_GENE_L) {
            let fitted = fit(&panel.case, mechanism, 1e24);
            assert_eq!(fitted.class, class(&panel.case, mechanism), "{panel:?} {mechanism:?}");
        }
    }
    // A logarithm is no power: on a fat tree the fit sees none, the formulas do.
    let tree = Case { constants: Constants::BLUE_GENE_L, network: Network::FAT_TREE, ..MESH };
    assert_eq!(fit(&tree, Mechanism::Tmr, P_MAX).class, Class::Scalable);
    assert_eq!(class(&tree, Mechanism::Tmr), Class::Weakly);
}

#[test]
fn the_paper_s_sentences_hold_under_these_readings() {
    let found: Vec<(&str, &str, [bool; 3])> =
        sentences(Constants::BLUE_GENE_L).iter().map(|it| (it.place, it.says, it.holds)).collect();
    let stmr = "STMR is scalable and its curve is that of S";
    assert_eq!(
        found,
        [
            ("§1.2", "TMR is weakly scalable on a 2D mesh, T_R = Θ(√P)", [true; 3]),
            ("§1.2", "TMR is not scalable either on a torus", [true; 3]),
            ("§1.2", "TMR is not scalable either on a fat tree", [true; 3]),
            ("§2.4, (9)", "T_R of STMR is Θ(1)", [true, true, false]),
            ("§4.2, (a)", "TMR tends to a constant: not scalable", [true; 3]),
            ("§4.2, (b)", "TMR grows weaker than P: weakly scalable", [true; 3]),
            ("§4.2, (c)", "TMR tends to a constant: not scalable", [true; 3]),
            // By definition 2 a mechanism that costs a weakly scalable program a constant factor
            // is scalable.
            ("§4.2, (d)", "TMR grows weaker than P: weakly scalable", [false; 3]),
            ("§4.2, (a)", stmr, [true, true, true]),
            ("§4.2, (b)", stmr, [true, true, false]),
            ("§4.2, (c)", stmr, [true, true, true]),
            ("§4.2, (d)", stmr, [true, true, false]),
        ]
    );
}

#[test]
fn the_mean_time_to_a_restart_is_that_of_small_jobs_by_hand() {
    close(mean(Until::First, 8.0), 0.125);
    // Of one pair the later of two: 1/2 + 1; of one cluster the second of three: 1/3 + 1/2; the
    // last: 1/3 + 1/2 + 1.
    for (until, by_hand) in
        [(Until::PairEmpty, 1.5), (Until::OneLeft, 5.0 / 6.0), (Until::TripleEmpty, 11.0 / 6.0)]
    {
        assert!((mean(until, 1.0) - by_hand).abs() < 1e-6, "{until:?}: {}", mean(until, 1.0));
    }
    // 4^P B(P,P)/4 + 1/(2P): at P = 2, B = 1/6, so 16/24 + 1/4; at P = 3, B = 1/30.
    assert!((mean(Until::PairEmpty, 2.0) - (16.0 / 24.0 + 0.25)).abs() < 1e-6);
    assert!((mean(Until::PairEmpty, 3.0) - (64.0 / 120.0 + 1.0 / 6.0)).abs() < 1e-6);
    // Two clusters of three: the integral of x³(3-2x)² is 9/4 - 12/5 + 4/6.
    assert!((mean(Until::OneLeft, 2.0) - (9.0 / 4.0 - 12.0 / 5.0 + 4.0 / 6.0)).abs() < 1e-6);
    // Large jobs: the square root of π/12P and of π/4P, and Γ(4/3) P^(-1/3).
    let p = 1e9;
    let pi = std::f64::consts::PI;
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
    near(mean(Until::OneLeft, p), (pi / (12.0 * p)).sqrt());
    near(mean(Until::PairEmpty, p), (pi / (4.0 * p)).sqrt());
    near(mean(Until::TripleEmpty, p), 0.892_979_5 / 1000.0);
}

#[test]
fn drawn_jobs_agree_with_the_closed_form() {
    let mut dice = Dice::new(5, "restart");
    for until in Until::ALL {
        for p in [1, 4, 100, 1000] {
            let (drawn, error) = simulated(until, p, 4000, &mut dice);
            let exact = mean(until, p as f64);
            assert!(
                (drawn - exact).abs() < 4.5 * error,
                "{until:?} {p}: {drawn} ± {error}, {exact}"
            );
        }
    }
    // Published beside the notes: in units of the plain job's time, at P = 1,000.
    assert!((1000.0 * mean(Until::OneLeft, 1000.0) - 17.0).abs() < 0.6);
    assert!((1000.0 * mean(Until::TripleEmpty, 1000.0) - 93.0).abs() < 4.0);
}

#[test]
fn checkpoints_cost_what_daly_says() {
    // δ = 0 costs nothing but the time lost, which is nothing at a small interval.
    let free = Checkpoints { write_h: 1e-9, restart_h: 0.0 };
    assert!(0.999 < useful_share(1.0, free));
    // M = 24 h, δ = R = 5 min: τ = sqrt(2·24/12)·(1 + sqrt(1/576)/3 + 1/5184) - 1/12 = 1.944830,
    // and T/T_s = 24/τ · e^(1/288) · (e^((τ + 1/12)/24) - 1) = 1.091965.
    let daily = Checkpoints { write_h: 1.0 / 12.0, restart_h: 1.0 / 12.0 };
    let share = useful_share(24.0, daily);
    assert!((1.0 / share - 1.091_965).abs() < 1e-6, "{}", 1.0 / share);
    // A job that fails sooner than it can write goes nowhere.
    assert!(useful_share(0.001, daily) < 1e-9);
}
