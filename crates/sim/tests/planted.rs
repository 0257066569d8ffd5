//! Defects that are built in on purpose: the judge finds each of them.
//!
//! Run by `cargo test -p selvedge-sim --features planted --test planted`, a step of its own of
//! `cargo xtask test`, because no other build has defects in it.

use selvedge_control::planted::Defect;
use selvedge_sim::judge::{self, Ended, SEEDS_MAX, Trial};

/// Goal: a judge that sees nothing would pass every seed.  Method: each defect runs seed after
/// seed until it is found; the tests without the feature are the run without a defect.
fn check(defects: &[Defect]) {
    // What a defect makes of the core's own assertions is told in the table.
    std::panic::set_hook(Box::new(|_| ()));
    let mut missed = Vec::new();
    for &defect in defects {
        let search = judge::find(defect, 0..SEEDS_MAX);
        match &search.found {
            Some((seed, rule)) => println!("{:26} {seed:5}  {rule}", defect.word()),
            None => missed.push(defect),
        }
    }
    let _hook = std::panic::take_hook();
    assert!(missed.is_empty(), "the judge did not find {missed:?}");
}

#[test]
fn the_judge_finds_the_first_half_of_the_planted_defects() {
    check(&Defect::ALL[..Defect::ALL.len() / 2]);
}

#[test]
fn the_judge_finds_the_second_half_of_the_planted_defects() {
    check(&Defect::ALL[Defect::ALL.len() / 2..]);
}

#[test]
fn without_a_defect_there_is_nothing_to_find() {
    for seed in 0..8 {
        let ended = judge::attempt(Trial::of(seed));
        assert!(matches!(ended, Ended::Well(_)), "{ended:?}");
    }
}
