//! Formulas against values worked out by hand, and means against others.

use super::class::{Class, Order, class, fit, overhead_order, sends_order};
use super::figure::{CURVES, P_MAX, Verdict, is_theta, panels, sentences};
use super::recovery::recoveries;
use super::restart::{
    Checkpoints, Until, drawn_share, exact_share, mean, mean_mended, simulated, useful_share,
};
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
    sends: 1.0,
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
    // (5), (6), above: 3 · (1 + 30/10 + 0.5 · 2/3 · 6) = 18; below with a third: 15.
    close(tmr.repair_traffic_s, 18.0);
    close(tmr.repair_traffic_min_s, 15.0);
    // Two copies of 30 at 60 a second, twice; 30 at 15 a second, three times.
    close(tmr.compare_s, 2.0);
    close(tmr.assignment_s, 6.0);
    // (2): 36 / (1 + 0.25 + 55/100).
    close(MESH.redundant_speedup(Mechanism::Tmr, 36.0), 20.0);
    // (7) to (9): of two compares one before a send, 2 · 5/10; with √36 = 6 times as much in the
    // literal reading, a sixth shared.
    let stmr = |it| MESH.overhead(Mechanism::Stmr(it), 36.0);
    close(stmr(Reading::Constant).compare_traffic_s, 1.0);
    close(stmr(Reading::Literal).compare_traffic_s, 6.0);
    close(stmr(Reading::Share).compare_traffic_s, 1.0 / 6.0);
    close(stmr(Reading::Constant).compare_s, 2.0 * 5.0 / 60.0);
    // §2.4: the last carries both shadows' memories, 2 · 30/10 and 2 · 30/60, under every reading.
    for reading in Reading::ALL {
        close(stmr(reading).last_traffic_s, 6.0);
        close(stmr(reading).last_compare_s, 1.0);
    }
    close(stmr(Reading::Constant).sum(), 1.0 + 1.0 / 6.0 + 7.0);
    close(MESH.overhead(Mechanism::Plain, 36.0).sum(), 0.0);
}

#[test]
fn classes_are_those_of_the_formulas() {
    let of = |network| Case { network, ..MESH };
    let orders: Vec<String> = Network::REAL
        .iter()
        .map(|it| overhead_order(&of(*it), Mechanism::Tmr).unwrap().to_string())
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
    use Verdict::{Holds, No};

    let found: Vec<(&str, &str, [Verdict; 3])> = sentences(Constants::BLUE_GENE_L)
        .iter()
        .map(|it| (it.place, it.says, it.verdicts))
        .collect();
    let stmr = "STMR is scalable and its curve is that of S";
    assert_eq!(
        found,
        [
            ("§1.2", "TMR is weakly scalable on a 2D mesh, T_R = Θ(√P)", [Holds; 3]),
            ("§1.2", "TMR is not scalable either on a torus", [Holds; 3]),
            ("§1.2", "TMR is not scalable either on a fat tree", [Holds; 3]),
            ("§2.4, (9)", "T_R of STMR is Θ(1)", [Holds, Holds, No]),
            ("§4.2, (a)", "TMR tends to a constant: not scalable", [Holds; 3]),
            ("§4.2, (b)", "TMR grows weaker than P: weakly scalable", [Holds; 3]),
            ("§4.2, (c)", "TMR tends to a constant: not scalable", [Holds; 3]),
            // By definition 2 a mechanism that costs a weakly scalable program a constant factor
            // is scalable.
            ("§4.2, (d)", "TMR grows weaker than P: weakly scalable", [No; 3]),
            ("§4.2, (a)", stmr, [Holds, Holds, Holds]),
            ("§4.2, (b)", stmr, [Holds, Holds, No]),
            ("§4.2, (c)", stmr, [Holds, Holds, Holds]),
            ("§4.2, (d)", stmr, [Holds, Holds, No]),
        ]
    );
}

/// Goal: formula (9) is judged by T_R itself, from above and from below.  Method: the power of P
/// by two machines of the formulas' own T_R, beside the fit, with and without the last compare.
#[test]
fn an_overhead_is_theta_of_one_only_where_it_neither_grows_nor_falls() {
    let case = Case { constants: Constants::BLUE_GENE_L, ..MESH };
    let power = |case: &Case, mechanism| {
        let [low, high] = [P_MAX / 1000.0, P_MAX].map(|p| case.overhead(mechanism, p).sum());
        (high / low).log10() / 3.0
    };
    let bare = Case { constants: Constants { memory_bits: 0.0, ..case.constants }, ..case };
    let orders = |case: &Case| {
        Reading::ALL.map(|it| overhead_order(case, Mechanism::Stmr(it)).unwrap().to_string())
    };
    assert_eq!(orders(&case), ["1", "1", "P^1/2"]);
    assert_eq!(orders(&bare), ["1", "P^-1/2", "P^1/2"]);
    use Verdict::{Holds, No, UpperBoundOnly};
    for (case, powers, verdicts) in [
        (case, [0.0, 0.0, 0.5], [Holds, Holds, No]),
        // Without the last compare's memory the share falls.
        (bare, [0.0, -0.5, 0.5], [Holds, UpperBoundOnly, No]),
    ] {
        for ((reading, expected), verdict) in Reading::ALL.into_iter().zip(powers).zip(verdicts) {
            let mechanism = Mechanism::Stmr(reading);
            let fitted = fit(&case, mechanism, P_MAX).overhead_power.unwrap();
            for own in [fitted, power(&case, mechanism)] {
                assert!((expected - 0.02..=expected + 0.02).contains(&own), "{reading:?}: {own}");
            }
            assert_eq!(is_theta(&case, mechanism, Order::ONE), verdict, "{reading:?}");
            assert_eq!(
                sends_order(&case, reading),
                overhead_order(&bare, mechanism).unwrap(),
                "what is left without the memory is the sends"
            );
        }
    }
    // §1.2: T_R of TMR on a mesh is Θ(√P), no more and no less.
    let root = overhead_order(&case, Mechanism::Tmr).unwrap();
    assert_eq!(root.to_string(), "P^1/2");
    assert_eq!(is_theta(&case, Mechanism::Tmr, root), Holds);
    assert_eq!(is_theta(&case, Mechanism::Tmr, Order::ONE), No);
    assert_eq!(is_theta(&case, Mechanism::Tmr, Order::P), UpperBoundOnly);
    // The verdict is that of the machines that there are too: with sends enough, what is shared of
    // them falls there.
    let chatty = Case { constants: Constants { sends: 1e9, ..case.constants }, ..case };
    assert_eq!(is_theta(&chatty, Mechanism::Stmr(Reading::Share), Order::ONE), UpperBoundOnly);
}

#[test]
fn with_failures_counted_no_speed_up_grows_for_ever() {
    let case = Case { constants: Constants::BLUE_GENE_L, ..MESH };
    let checkpoints = Checkpoints { write_h: 64.0 * 4.0 / 3600.0, restart_h: 64.0 * 4.0 / 3600.0 };
    let found = recoveries(&case, 512.0, checkpoints);
    for it in &found {
        assert_eq!((it.class, it.class_fitted), (Class::Not, Class::Not), "{it:?}");
        assert!(!it.is_growing, "{it:?}");
    }
    let [restart, tmr, stmr] = [0, 1, 2].map(|nth: usize| found[nth]);
    assert!(tmr.most < restart.most && 1000.0 * restart.most < stmr.most, "{found:?}");
    // The largest speed-up of C/R stands where none beside it is larger.
    let speedup = |p: f64| case.speedup(p) * useful_share(512.0 / p, checkpoints);
    for beside in [0.99, 1.01] {
        assert!(speedup(restart.most_at * beside) < restart.most, "{restart:?}");
    }
    // Nodes that hardly fail: the fit sees no end of it on machines that there are.
    let sound = recoveries(&case, 1e14, checkpoints)[2];
    assert_eq!((sound.class, sound.class_fitted), (Class::Not, Class::Scalable));
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
    close(mean(Until::PairFirst, 8.0), 1.0 / 16.0);
    // Two of three jobs of 8: 1/24 + 1/16.
    close(mean(Until::JobsOneLeft, 8.0), 5.0 / 48.0);
    // Compares so far apart that both nodes have erred before the first: once each.
    close(mean_mended(1.0, 50.0), 50.0);
    // So close that they hardly ever do: 3 P λ² w a compare.
    assert!((mean_mended(10.0, 1e-6) * 3.0 * 10.0 * 1e-6 - 1.0).abs() < 1e-4);
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

/// Goal: the drawn share is that of the drawn lives, and the closed form only where the hazard is
/// constant.  Method: the drawn one against a sum over the chance of running, to 4.5 errors.
#[test]
fn drawn_shares_agree_with_the_sum_and_show_where_daly_s_is_too_high() {
    let checkpoints = Checkpoints { write_h: 64.0 * 4.0 / 3600.0, restart_h: 64.0 * 4.0 / 3600.0 };
    let mut dice = Dice::new(7, "useful");
    for until in Until::ALL {
        for p in [4, 1000, 10_000] {
            let (drawn, error) = drawn_share((until, p), 512.0, checkpoints, (1000, &mut dice));
            let exact = exact_share(until, p as f64, 512.0, checkpoints);
            assert!(
                (drawn - exact).abs() <= 4.5 * error + 1e-9,
                "{until:?} {p}: {drawn} ± {error}, {exact}"
            );
        }
    }
    let both = |until, p| {
        let closed = useful_share(512.0 * mean(until, p), checkpoints);
        (closed, exact_share(until, p, 512.0, checkpoints))
    };
    // A constant hazard: the same.
    for until in [Until::First, Until::PairFirst] {
        for p in [4.0, 1000.0] {
            let (closed, exact) = both(until, p);
            assert!((closed / exact - 1.0).abs() < 1e-6, "{until:?} {p}: {closed} {exact}");
        }
    }
    // A rising one: less than the closed form says.
    for until in [Until::PairEmpty, Until::OneLeft] {
        let (closed, exact) = both(until, 1e6);
        assert!(exact < 0.95 * closed, "{until:?}: {closed} {exact}");
    }
    // So many short steps that the sum is taken as an integral: the same on both sides of it.
    let short = Checkpoints { write_h: 1e-3, restart_h: 1e-3 };
    for m in [1.9e3, 2.1e3] {
        let (exact, closed) = (exact_share(Until::First, 1.0, m, short), useful_share(m, short));
        assert!((exact - closed).abs() < 1e-6, "{m}: {exact} {closed}");
    }
}
