//! Every order of messages, deaths and errors of processes that exchange messages, one by one.
//!
//! Each process compares what it sends in its cluster before it leaves; it comes to the other
//! process in the same set, or is told there by a twin if the set has lost a member.

use super::Op::{Choose, ReceiveAny, ReceiveFrom, Send, SendTo};
use super::world::{Faults, World};
use super::{Explored, Op, report};

fn job(programs: &[&[Op]], kills: u32, flips: u32) -> World {
    let programs = programs.iter().map(|it| it.to_vec()).collect();
    World::of_job(programs, Faults { kills, flips, ..Faults::NONE })
}

fn check(programs: &[&[Op]], kills: u32, flips: u32) -> Explored {
    report(job(programs, kills, flips), &format!("{programs:?}"))
}

/// One sends to another.
const WORD: [&[Op]; 2] = [&[SendTo(1)], &[ReceiveFrom(0)]];

/// One asks another, which answers.
const ANSWER: [&[Op]; 2] =
    [&[Choose, SendTo(1), ReceiveFrom(1), Send], &[ReceiveFrom(0), SendTo(0), Send]];

/// Each sends to the next.
const RING: [&[Op]; 3] = [
    &[Choose, SendTo(1), ReceiveFrom(2), Send],
    &[SendTo(2), ReceiveFrom(0), Send],
    &[SendTo(0), ReceiveFrom(1), Send],
];

/// Two send to one, which takes whichever comes first.
const RIVALS: [&[Op]; 3] = [&[SendTo(2)], &[SendTo(2)], &[ReceiveAny, ReceiveAny, Send]];

/// Every order ends as those do in which what may happen at once does.
fn check_haste(programs: &[&[Op]], kills: u32, flips: u32) {
    let start = || job(programs, kills, flips);
    let [slow, fast] = [false, true].map(|it| Explored::of(start(), it));
    println!("{} states, or {}", slow.seen.len(), fast.seen.len());
    assert!(fast.seen.len() < slow.seen.len());
    assert_eq!((slow.ends, slow.restarts), (fast.ends, fast.restarts));
}

#[test]
fn haste_leaves_out_no_end() {
    check_haste(&WORD, 0, 0);
    check_haste(&WORD, 0, 1);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn haste_leaves_out_no_end_of_deaths() {
    check_haste(&[&[Send], &[]], 1, 0);
}

#[test]
fn what_one_sends_another_receives_whoever_errs() {
    assert_eq!(check(&ANSWER, 0, 1).restarted, 0);
    assert_eq!(check(&RING, 0, 0).restarted, 0);
}

#[test]
fn what_one_sends_another_receives_whoever_dies_when() {
    assert_eq!(check(&WORD, 1, 0).restarted, 0);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn what_one_sends_another_receives_whoever_dies_and_errs() {
    assert_eq!(check(&WORD, 1, 1).restarted, 0);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn what_each_of_three_sends_is_received_whoever_errs() {
    assert_eq!(check(&RING, 0, 1).restarted, 0);
    assert!(0 < check(&ANSWER, 0, 2).restarted);
    assert_eq!(check(&RIVALS, 0, 0).restarted, 0);
}
