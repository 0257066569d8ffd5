//! Every order of messages, deaths and errors of short programs, one by one.
//!
//! A state is the program's replicas with their places in it, what is on each link, what is in each
//! set's MPI, what the launcher has not heard, and how many faults are left ([`world`]).  From each
//! state every step is taken: a message is taken off its link, the program goes on, the launcher
//! hears of a death, a replica is killed with some of its words unsaid, its value is flipped, it
//! takes another way, another process of its set dies, it is asked to lead no more, or it hears of
//! a signal.  Held in each: nothing wrong leaves or is received; whoever has no fault is never told
//! that it strayed, nor found to wait for something that the others do not; signals are due at one
//! compare in all; nobody starts again but after two faults in one cluster or one in each set; and
//! where nothing more can happen, all that live are at the end with the right value.
//!
//! One cluster by itself is explored here, several that exchange messages in [`clusters`], and many
//! under drawn orders in [`drawn`].

use std::collections::BTreeSet;

use self::world::{Faults, World};
use crate::job::Rank;
use crate::message::Message;
use crate::verdict::{Double, SetId};

mod clusters;
pub(crate) mod dice;
mod drawn;
mod world;

const N: usize = 3;

/// One call of the explored program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    /// Lets out all that it computed.
    Send,
    /// The same to another process, by rank.
    SendTo(usize),
    /// The same to whoever sent what it took last.
    Answer,
    /// Takes what the meta chose, 0 or 1.
    Choose,
    /// Takes what its set's MPI brought, or a twin did.
    Receive,
    /// The same of another process, which sent it.
    ReceiveFrom(usize),
    /// The same of whoever's the meta has first.
    ReceiveAny,
    /// Looks at a clock, and takes what it shows.
    Look,
    /// Looks at a clock as often as it likes, and forgets what it shows.
    Linger,
    /// Asks whether something is there until it is, or some times, and takes each answer.
    Ask,
}

/// The most looks that a process lingers for.  With two, and with longer programs, the same holds,
/// in some millions of states.
const LINGERS_MAX: u32 = 1;

/// A process asks so often whether something is there.
const ASKS_MAX: u32 = 2;

/// What one sees of a clock that stands still.
const STILL: u8 = 50;

#[derive(Default)]
struct Explored {
    seen: BTreeSet<u64>,
    ends: BTreeSet<u64>,
    restarts: BTreeSet<(Rank, Double)>,
    restarted: usize,
    /// What may as well happen at once does, and nothing else before it.
    hastens: bool,
}

impl Explored {
    fn of(start: World, hastens: bool) -> Self {
        let mut this = Self { hastens, ..Self::default() };
        let mut open = vec![start];
        let (mut acts, mut faults) = (Vec::new(), Vec::new());
        while let Some(mut world) = open.pop() {
            if world.restarted.is_some() {
                this.restarted += 1;
                this.restarts.extend(world.restarted);
                world.check(world.may_restart(), "nobody starts again without need");
                continue;
            }
            if !this.seen.insert(world.key()) {
                continue;
            }
            check_places(&world);
            let pids = 0..world.processes.len();
            pids.clone().for_each(|it| world.breaks(it, &mut faults));
            if let Some(act) = world.surely().filter(|_| this.hastens) {
                acts.push(act);
            } else {
                pids.for_each(|it| world.acts(it, &mut acts));
                acts.extend(world.launch());
            }
            let n_open = open.len();
            open.extend(acts.drain(..).filter_map(|it| world.after(it)));
            if open.len() == n_open {
                world.check_end();
                this.ends.insert(world.key());
            }
            open.extend(faults.drain(..).filter_map(|it| world.after(it)));
        }
        this
    }
}

/// Nobody without a fault is found to wait for something else, by nobody without one.
fn check_places(world: &World) {
    let pairs = |rank: usize| {
        let pids = rank * N..(rank + 1) * N;
        pids.clone().flat_map(move |asks| pids.clone().map(move |waits| (asks, waits)))
    };
    for (asks, waits) in (0..world.processes.len() / N).flat_map(pairs) {
        let [it, other] = [asks, waits].map(|it| &world.processes[it]);
        // What it offered and settled, and that it left, is heard before its answer.
        let is_before =
            |it: &Message| matches!(it, Message::Offer(_) | Message::Event(_) | Message::Left);
        let on_link = world.inboxes[asks].said[waits % N].iter().flatten().any(is_before);
        let is_right = [it, other].iter().all(|it| it.is_there() && !it.faulty);
        if on_link || !is_right {
            continue;
        }
        let (place, own) = (world.place(waits), world.place(asks));
        let set = SetId::new(waits % N);
        let is_elsewhere = it.replica.is_elsewhere(set, place.as_ref(), own.as_ref());
        world.check(!is_elsewhere, "who did not err is nowhere else");
    }
}

/// Explores and says how many states there were.
fn check(program: &[Op], kills: u32, flips: u32, breaks: u32) -> Explored {
    explore(program, Faults { kills, flips, strays: true, breaks, ..Faults::NONE })
}

fn explore(program: &[Op], faults: Faults) -> Explored {
    report(World::of_one(program, faults), &format!("{program:?}"))
}

fn report(start: World, what: &str) -> Explored {
    let Faults { kills, flips, breaks, .. } = start.left;
    let explored = Explored::of(start, true);
    println!(
        "{what}: {kills} kills, {flips} flips, {breaks} sets broken: {} states, {} ends, {} \
         restarts",
        explored.seen.len(),
        explored.ends.len(),
        explored.restarted
    );
    assert!(!explored.ends.is_empty());
    explored
}

#[test]
fn without_a_fault_every_order_ends() {
    assert_eq!(check(&[Op::Choose, Op::Send, Op::Receive, Op::Send], 0, 0, 0).restarted, 0);
}

#[test]
fn one_kill_at_any_point_is_outlived() {
    assert_eq!(check(&[Op::Choose, Op::Send, Op::Send], 1, 0, 0).restarted, 0);
}

#[test]
fn one_flip_at_any_point_is_outvoted() {
    assert_eq!(check(&[Op::Choose, Op::Send, Op::Receive, Op::Send], 0, 1, 0).restarted, 0);
}

#[test]
fn a_set_that_is_broken_at_any_point_is_fed() {
    assert_eq!(check(&[Op::Receive, Op::Choose, Op::Receive, Op::Send], 0, 0, 1).restarted, 0);
}

#[test]
fn a_kill_in_a_cluster_with_a_broken_set_is_outlived() {
    assert_eq!(check(&[Op::Choose, Op::Send], 1, 0, 1).restarted, 0);
}

/// A meta that leaves out a compare settles what its siblings come to after it.  It is expelled at
/// that compare; what one of them was told of it when its link ended is then nobody's, like what
/// the other heard itself.
#[test]
fn what_one_settled_that_strayed_and_died_binds_nobody() {
    assert_eq!(check(&[Op::Send, Op::Choose, Op::Send], 0, 1, 0).restarted, 0);
}

/// One of two that find an event to be of another call may hear that of the other before it has
/// come past the compare before it.
#[test]
fn what_is_said_of_a_later_event_is_kept_at_a_compare() {
    assert_eq!(check(&[Op::Send, Op::Choose, Op::Choose, Op::Send], 0, 1, 0).restarted, 0);
}

/// Who leads is known to all replicas in every order, and an error in between is outlived.
fn check_asked(kills: u32, flips: u32) {
    let asked = Faults { kills, flips, strays: true, yields: 1, ..Faults::NONE };
    assert_eq!(explore(&[Op::Send, Op::Choose, Op::Send], asked).restarted, 0);
}

#[test]
fn who_is_asked_at_any_point_to_lead_no_more_is_followed_by_another() {
    check_asked(0, 0);
}

#[test]
fn who_is_asked_to_lead_no_more_and_dies_is_followed_by_another() {
    check_asked(1, 0);
}

#[test]
fn who_is_asked_to_lead_no_more_and_errs_is_followed_by_another() {
    check_asked(0, 1);
}

/// Who dies may have told one sibling alone of a signal; it is due at the same compare in both, so
/// that a compare waits for what survivors have from the dead.
#[test]
fn a_signal_is_due_at_one_compare_in_all_whoever_heard_of_it_and_dies() {
    let heard = Faults { kills: 1, signals: 1, ..Faults::NONE };
    assert_eq!(explore(&[Op::Send, Op::Send], heard).restarted, 0);
}

/// What one MPI brings is one voice, also where it is brought to two replicas.
#[test]
fn what_a_set_brings_that_is_wrong_is_not_fed_as_the_majority() {
    let misheard = |breaks| Faults { breaks, mishears: 1, mishears_any: true, ..Faults::NONE };
    assert_eq!(explore(&[Op::Receive, Op::Send, Op::Send], misheard(0)).restarted, 0);
    assert!(0 < explore(&[Op::Receive, Op::Receive, Op::Send], misheard(1)).restarted);
}

/// All see the same of a clock, whoever dies or errs.
#[test]
fn looks_that_all_make_show_all_the_same() {
    assert_eq!(check(&[Op::Look, Op::Choose, Op::Look, Op::Send], 0, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Look, Op::Look, Op::Send], 1, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Look, Op::Choose, Op::Send], 1, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Look, Op::Choose, Op::Send], 0, 1, 0).restarted, 0);
    assert_eq!(check(&[Op::Look, Op::Receive, Op::Send], 0, 0, 1).restarted, 0);
}

/// Who looks more often than others, or less often, has not erred.
#[test]
fn looks_that_each_makes_as_often_as_it_likes_are_no_errors() {
    assert_eq!(check(&[Op::Linger, Op::Choose, Op::Look, Op::Send], 0, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Linger, Op::Look, Op::Send], 0, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Look, Op::Linger, Op::Look, Op::Send], 0, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Linger, Op::Send], 1, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Linger, Op::Send], 0, 1, 0).restarted, 0);
    assert_eq!(check(&[Op::Linger, Op::Receive, Op::Send], 0, 0, 1).restarted, 0);
}

/// All find the same when they have asked as often, whoever dies or errs.
#[test]
fn what_all_ask_for_is_found_by_all_at_once() {
    assert_eq!(check(&[Op::Ask, Op::Look, Op::Send], 0, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Ask, Op::Choose, Op::Send], 0, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Ask, Op::Send], 1, 0, 0).restarted, 0);
    assert_eq!(check(&[Op::Ask, Op::Send], 0, 1, 0).restarted, 0);
    assert_eq!(check(&[Op::Ask, Op::Receive, Op::Send], 0, 0, 1).restarted, 0);
}

#[test]
fn two_faults_end_right_or_start_again() {
    assert!(0 < check(&[Op::Choose, Op::Send], 1, 1, 0).restarted);
    assert!(0 < check(&[Op::Choose, Op::Send], 2, 0, 0).restarted);
    assert!(0 < check(&[Op::Choose, Op::Send], 0, 2, 0).restarted);
}
