use super::*;

/// What a seed came to, which its second run is too; a broken rule is told.
fn judged(number: u64, failed: &mut Vec<String>) -> Option<Outcome> {
    let outcome = match seed(number) {
        Ok(outcome) => outcome,
        Err(err) => {
            let source = std::error::Error::source(&err).map(ToString::to_string);
            failed.push(format!("seed {number}: {err}: {source:?}"));
            return None;
        }
    };
    if !outcome.violations.is_empty() {
        failed.push(format!(
            "{}\n  {}\n  {}",
            outcome.command(),
            outcome.options,
            outcome.violations.join("\n  ")
        ));
    }
    let again = seed(number).unwrap();
    assert_eq!(again, outcome, "seed {number} does not repeat");
    Some(outcome)
}

/// Runs fifty seeds twice each: no rule is broken, and the second run is the first.
fn check(first: u64) {
    let mut n_inputs = 0;
    let mut n_faults = [0u64; FaultKind::ALL.len()];
    let mut n_orders = [0u64; OrderKind::ALL.len()];
    let mut failed = Vec::new();
    let mut n_crashes = Vec::new();
    for number in first..first + 50 {
        let Some(outcome) = judged(number, &mut failed) else { continue };
        n_inputs += outcome.n_inputs;
        n_crashes.push((outcome.n_crashes, number));
        for (sum, n) in n_faults.iter_mut().zip(outcome.n_faults) {
            *sum += n;
        }
        for (sum, n) in n_orders.iter_mut().zip(outcome.n_orders) {
            *sum += n;
        }
    }
    println!("{n_inputs} inputs in seeds {first}..{}", first + 50);
    let fewest = n_crashes.iter().min().expect("fifty seeds have run");
    let sum: u64 = n_crashes.iter().map(|it| it.0).sum();
    println!("{sum} power failures, the fewest {} in seed {}", fewest.0, fewest.1);
    assert!(20 <= fewest.0, "only {} power failures in seed {}", fewest.0, fewest.1);
    for (kind, n) in FaultKind::ALL.into_iter().zip(n_faults) {
        println!("{n:6} {kind}");
        assert!(13 <= n, "only {n} times {kind}");
    }
    for (kind, n) in OrderKind::ALL.into_iter().zip(n_orders) {
        println!("{n:6} {kind}");
        assert!(13 <= n, "only {n} times {kind}");
    }
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n"));
    assert!(250_000 <= n_inputs, "{n_inputs}");
}

#[test]
fn the_first_seeds_break_no_rule_and_repeat() {
    let mut failed = Vec::new();
    for number in 0..4 {
        judged(number, &mut failed);
    }
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn seeds_0_to_49_break_no_rule_and_repeat() {
    check(0);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn seeds_50_to_99_break_no_rule_and_repeat() {
    check(50);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn seeds_100_to_149_break_no_rule_and_repeat() {
    check(100);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn seeds_150_to_199_break_no_rule_and_repeat() {
    check(150);
}

/// Goal: what people order when nothing more is about to happen by itself is handled too.  Seed
/// 5000 is quiet when all is healed, so that nobody wrote down what was asked then; in seed 7004
/// an order is told long after it was given.
#[test]
fn an_order_after_the_last_event_is_handled() {
    for seed in [5000, 7004] {
        let ended = attempt(Trial { crashes_everywhere: true, ..Trial::of(seed) });
        assert!(matches!(ended, Ended::Well(_)), "{ended:?}");
    }
}
