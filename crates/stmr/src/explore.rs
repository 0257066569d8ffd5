//! Every order of messages, deaths and errors of one cluster and a short program, one by one.
//!
//! A state is three replicas with their places in the program, what is on each link, and how many
//! faults are left.  From each state every step is taken: a message is put on its link, one is
//! taken off, the program goes on, a replica is killed, its value is flipped, it takes another way,
//! another process of its set dies, or it is asked to lead no more.  Held in each: nothing wrong
//! leaves; whoever has no fault is never told that it strayed, nor found to wait for something that
//! the others do not; with one fault nobody starts again;
//! and where nothing more can happen, all that live are at the end with the right value.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use twox_hash::XxHash3_64;

use crate::digest::{Digest, Shape};
use crate::message::{EventKind, Message, Place};
use crate::replica::{Input, Passed, Question, Replica, ReplicaOptions, Seen, Step};
use crate::verdict::SetId;

const N: usize = 3;

/// One call of the explored program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    /// Lets out all that it computed.
    Send,
    /// Takes what the meta chose, 0 or 1.
    Choose,
    /// Takes what its set's MPI brought, or a twin did.
    Receive,
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

#[derive(Clone, Debug)]
struct Process {
    replica: Replica,
    pc: usize,
    /// What it computed: the events that it took.
    value: Vec<u8>,
    offered: bool,
    /// Looks that it forgot.
    lingered: u32,
    /// How often it has asked for the same.
    asked: u32,
    /// What it offered; what leaves is this copy, so that a later flip of the value is no matter.
    copy: Vec<u8>,
    faulty: bool,
    ended: bool,
    /// Its links' ends are on their way.
    closed: bool,
    alive: bool,
    /// What `out` held and is not on a link yet.
    unsent: Vec<(SetId, Message)>,
}

#[derive(Clone, Debug)]
struct World {
    processes: Vec<Process>,
    /// links[to][from], in order; nothing in it is the link's end.
    links: Vec<Vec<Vec<Option<Message>>>>,
    kills: u32,
    flips: u32,
    breaks: u32,
    /// Requests to lead no more.
    yields: u32,
    /// Wrong things that some MPI may bring; where there are any, a broken set is a fault, too.
    mishears: u32,
    mishears_any: bool,
    faults: u32,
    restarted: bool,
}

struct Explorer {
    program: &'static [Op],
    seen: BTreeSet<u64>,
    ended_right: usize,
    restarted: usize,
}

impl World {
    fn new(kills: u32, flips: u32, breaks: u32) -> Self {
        let process = |own| Process {
            replica: Replica::new(ReplicaOptions { own, replicas: N, trust_after: 2 }),
            pc: 0,
            value: vec![],
            offered: false,
            lingered: 0,
            asked: 0,
            copy: vec![],
            faulty: false,
            ended: false,
            closed: false,
            alive: true,
            unsent: vec![],
        };
        Self {
            processes: SetId::all(N).map(process).collect(),
            links: vec![vec![vec![]; N]; N],
            kills,
            flips,
            breaks,
            yields: 0,
            mishears: 0,
            mishears_any: false,
            faults: 0,
            restarted: false,
        }
    }

    /// Links to whoever reads no more are empty.
    fn tidied(mut self) -> Self {
        for set in 0..N {
            let it = &self.processes[set];
            if !it.alive {
                self.forget(set);
            } else if it.ended && it.unsent.is_empty() && !it.closed {
                self.processes[set].closed = true;
                for to in (0..N).filter(|it| *it != set) {
                    self.links[to][set].push(None);
                }
            }
            if self.processes[set].closed {
                self.forget(set);
            }
        }
        self
    }

    fn key(&self) -> u64 {
        let mut hasher = XxHash3_64::with_seed(0);
        for it in &self.processes {
            it.replica.hash_state(&mut hasher);
            (it.pc, &it.value, &it.copy, it.offered, it.faulty, it.ended, it.closed, it.alive)
                .hash(&mut hasher);
            (it.lingered, it.asked).hash(&mut hasher);
            it.unsent.hash(&mut hasher);
        }
        self.links.hash(&mut hasher);
        (self.kills, self.flips, self.breaks, self.faults, self.restarted).hash(&mut hasher);
        (self.yields, self.mishears).hash(&mut hasher);
        hasher.finish()
    }

    fn end(&mut self, set: usize) {
        self.processes[set].alive = false;
        self.processes[set].unsent.clear();
        for to in (0..N).filter(|it| *it != set) {
            self.links[to][set].push(None);
        }
        self.forget(set);
    }

    /// What one that has ended knew changes nothing any more: states that differ in it are one.
    fn forget(&mut self, set: usize) {
        let options = ReplicaOptions { own: SetId::new(set), replicas: N, trust_after: 2 };
        self.processes[set].replica = Replica::new(options);
        self.links[set] = vec![vec![]; N];
    }

    /// The values that those without a fault have taken, as far as the longest of them.
    fn right_value(&self, length: usize) -> Option<&[u8]> {
        let of = |it: &&Process| !it.faulty && length <= it.value.len();
        self.processes.iter().find(of).map(|it| &it.value[..length])
    }
}

impl Explorer {
    fn run(program: &'static [Op], start: World) -> Self {
        let mut this = Self { program, seen: BTreeSet::new(), ended_right: 0, restarted: 0 };
        let mut open = vec![start];
        while let Some(world) = open.pop() {
            if world.restarted {
                this.restarted += 1;
                assert!(1 < world.faults, "one fault is outlived: {world:#?}");
                continue;
            }
            let mut next = Vec::new();
            let world = if world.kills == 0 { sent(world) } else { world }.tidied();
            if !this.seen.insert(world.key()) {
                continue;
            }
            this.check_places(&world);
            this.go_on(&world, &mut next);
            if next.is_empty() {
                this.check_end(&world);
            }
            this.break_something(&world, &mut next);
            open.extend(next);
        }
        this
    }

    /// For what a process waits, if it is at something that comes in.
    fn place(&self, it: &Process) -> Option<Place> {
        let kind = match self.program.get(it.pc)? {
            Op::Send | Op::Look | Op::Linger | Op::Ask => return None,
            Op::Choose => EventKind::Decision,
            Op::Receive => EventKind::Data,
        };
        Some(Place { event: it.replica.next_event(), kind, shape: Shape(it.pc as u64 + 1) })
    }

    /// Nobody without a fault is found to wait for something else, by nobody without one.
    fn check_places(&self, world: &World) {
        let is_right = |it: &Process| it.alive && !it.faulty && !it.ended;
        for (asks, waits) in (0..N).flat_map(|asks| (0..N).map(move |waits| (asks, waits))) {
            let [it, other] = [asks, waits].map(|it| &world.processes[it]);
            // What it offered and settled, and that it left, is heard before its answer.
            let is_before =
                |it: &Message| matches!(it, Message::Offer(_) | Message::Event(_) | Message::Left);
            let on_link = world.links[asks][waits].iter().flatten().any(is_before);
            let unsent = other.unsent.iter().any(|(to, it)| to.idx() == asks && is_before(it));
            if on_link || unsent || !is_right(it) || !is_right(other) {
                continue;
            }
            let (set, place, own) = (SetId::new(waits), self.place(other), self.place(it));
            let is_elsewhere = it.replica.is_elsewhere(set, place.as_ref(), own.as_ref());
            assert!(!is_elsewhere, "{world:#?}");
        }
    }

    fn go_on(&self, world: &World, next: &mut Vec<World>) {
        for set in 0..N {
            if world.processes[set].alive && !world.processes[set].unsent.is_empty() {
                let mut world = world.clone();
                let (to, message) = world.processes[set].unsent.remove(0);
                world.links[to.idx()][set].push(Some(message));
                next.push(world);
                // It does nothing else before it has sent; what others do is tried anyway.
                continue;
            }
            if !world.processes[set].alive || world.processes[set].ended {
                continue;
            }
            for from in 0..N {
                if !world.links[set][from].is_empty() {
                    let mut world = world.clone();
                    let input = match world.links[set][from].remove(0) {
                        Some(message) => Input::Message(SetId::new(from), message),
                        None => Input::Closed(SetId::new(from)),
                    };
                    world.processes[set].replica.handle(input);
                    drain(&mut world.processes[set]);
                    next.push(world);
                }
            }
            self.step(world, set, next);
        }
    }

    /// The program of one process goes on by one call, if it can.
    fn step(&self, world: &World, set: usize, next: &mut Vec<World>) {
        let process = &world.processes[set];
        let shape = Shape(process.pc as u64 + 1);
        match self.program.get(process.pc) {
            None => {
                let mut world = world.clone();
                world.processes[set].ended = true;
                world.processes[set].replica.end();
                drain(&mut world.processes[set]);
                next.push(world);
            }
            Some(Op::Send) if !process.offered => {
                let mut world = world.clone();
                let it = &mut world.processes[set];
                let digest = Digest::of(&it.value);
                it.replica.offer(shape, digest, 1);
                it.offered = true;
                it.copy.clone_from(&it.value);
                drain(it);
                next.push(world);
            }
            Some(Op::Send) => self.compare(world, set, next),
            Some(Op::Choose) => self.take(world, set, EventKind::Decision, &[0, 1], next),
            Some(Op::Receive) => self.take(world, set, EventKind::Data, &[7], next),
            Some(Op::Look) => look(world, set, true, next),
            Some(Op::Ask) => ask(world, set, next),
            Some(Op::Linger) => {
                let mut gone_on = world.clone();
                gone_on.processes[set].pc += 1;
                next.push(gone_on);
                if process.lingered < LINGERS_MAX {
                    look(world, set, false, next);
                }
            }
        }
    }

    fn compare(&self, world: &World, set: usize, next: &mut Vec<World>) {
        let before = world.key();
        let mut world = world.clone();
        let it = &mut world.processes[set];
        let own = it.copy.clone();
        let leaves = match it.replica.passed() {
            None => {
                // A verdict may have come that leaves it waiting for a sibling's contents.
                drain(it);
                next.extend((world.key() != before).then_some(world));
                return;
            }
            Some(Passed::Go) => own,
            Some(Passed::Serve(wrong)) => {
                it.replica.serve(&wrong, &own);
                own
            }
            Some(Passed::Replace(bytes)) => {
                assert!(it.faulty, "only who erred sends another's contents");
                bytes
            }
            Some(Passed::Leave) => {
                assert!(it.faulty, "who did not err is not sent away");
                world.end(set);
                next.push(world);
                return;
            }
            Some(Passed::Restart(_)) => {
                world.restarted = true;
                next.push(world);
                return;
            }
        };
        it.pc += 1;
        it.offered = false;
        drain(it);
        if let Some(right) = world.right_value(leaves.len()) {
            assert_eq!(leaves, right, "something wrong left");
        }
        next.push(world);
    }

    fn take(
        &self,
        world: &World,
        set: usize,
        kind: EventKind,
        values: &[u8],
        next: &mut Vec<World>,
    ) {
        let shape = Shape(world.processes[set].pc as u64 + 1);
        let mut world = world.clone();
        let it = &mut world.processes[set];
        match it.replica.begin(kind, shape) {
            Step::Wait => {
                // It may have accused somebody just now.
                drain(it);
                if !it.unsent.is_empty() {
                    next.push(world);
                }
            }
            Step::Take(bytes) => {
                it.value.extend(bytes.iter());
                it.pc += 1;
                drain(it);
                next.push(world);
            }
            Step::Do => {
                if kind == EventKind::Data && 0 < world.mishears {
                    let mut world = world.clone();
                    world.mishears -= 1;
                    world.faults += 1;
                    let it = &mut world.processes[set];
                    it.faulty = true;
                    let wrong = 200 + set as u8;
                    it.replica.finish(kind, shape, vec![wrong].into());
                    it.value.push(wrong);
                    it.pc += 1;
                    drain(it);
                    next.push(world);
                }
                for value in values {
                    let mut world = world.clone();
                    let it = &mut world.processes[set];
                    it.replica.finish(kind, shape, vec![*value].into());
                    it.value.push(*value);
                    it.pc += 1;
                    drain(it);
                    next.push(world);
                }
            }
            Step::Leave => {
                assert!(it.faulty, "who did not err is not sent away");
                world.end(set);
                next.push(world);
            }
            Step::Restart(_) => {
                world.restarted = true;
                next.push(world);
            }
        }
    }

    fn break_something(&self, world: &World, next: &mut Vec<World>) {
        for set in 0..N {
            let process = &world.processes[set];
            if !process.alive || process.ended {
                continue;
            }
            if 0 < world.kills {
                let mut world = world.clone();
                world.kills -= 1;
                world.faults += 1;
                world.processes[set].faulty = true;
                world.end(set);
                next.push(world);
            }
            if 0 < world.flips && !process.value.is_empty() && !process.faulty {
                let mut world = world.clone();
                world.flips -= 1;
                world.faults += 1;
                let it = &mut world.processes[set];
                it.faulty = true;
                // Two flips never make the same wrong value.
                *it.value.last_mut().expect("it is not empty") = 100 + set as u8;
                next.push(world);
            }
            // Two that take the same wrong way at once would be a majority: not looked for.
            if 0 < world.flips && world.faults == 0 && !process.offered {
                let mut world = world.clone();
                world.flips -= 1;
                world.faults += 1;
                let it = &mut world.processes[set];
                it.faulty = true;
                it.pc = (it.pc + 1).min(self.program.len() - 1);
                next.push(world);
            }
            if 0 < world.yields {
                let mut world = world.clone();
                world.yields -= 1;
                world.processes[set].replica.yield_lead();
                next.push(world);
            }
            if 0 < world.breaks && process.unsent.is_empty() && !process.replica.has_left() {
                let mut world = world.clone();
                world.breaks -= 1;
                world.faults += u32::from(world.mishears_any);
                let it = &mut world.processes[set];
                it.replica.handle(Input::SetBroken);
                drain(it);
                next.push(world);
            }
        }
    }

    fn check_end(&mut self, world: &World) {
        let live = || world.processes.iter().filter(|it| it.alive);
        for it in live() {
            assert!(it.ended, "somebody waits for ever: {world:#?}");
        }
        assert!(live().count() > 0, "somebody is left: {world:#?}");
        let length = world.processes.iter().map(|it| it.value.len()).max().unwrap_or(0);
        if let Some(right) = world.right_value(length) {
            for it in live().filter(|it| !it.faulty) {
                assert_eq!(it.value, right, "all without a fault took the same: {world:#?}");
            }
        }
        self.ended_right += 1;
    }
}

/// A process looks at a clock, which shows 0 or 1 if nobody has told what it shows.
fn look(world: &World, set: usize, takes: bool, next: &mut Vec<World>) {
    let values: &[u8] = if takes { &[0, 1] } else { &[0] };
    for (mut world, value) in seen(world, set, values, next) {
        let it = &mut world.processes[set];
        if takes {
            it.value.push(value);
            it.pc += 1;
        } else {
            it.lingered += 1;
        }
        next.push(world);
    }
}

/// A process asks whether something is there, which is 1, and goes on if it is.
fn ask(world: &World, set: usize, next: &mut Vec<World>) {
    for (mut world, value) in seen(world, set, &[0, 1], next) {
        let it = &mut world.processes[set];
        it.value.push(value);
        it.asked += 1;
        if value == 1 || it.asked == ASKS_MAX {
            it.asked = 0;
            it.pc += 1;
        }
        next.push(world);
    }
}

/// What a process may see from where it is, if it sees something: one of `values` if it looks
/// itself.
fn seen(world: &World, set: usize, values: &[u8], next: &mut Vec<World>) -> Vec<(World, u8)> {
    let mut world = world.clone();
    let question = Question { clock: 0, site: world.processes[set].pc as u64 };
    let (shown, does) = match world.processes[set].replica.look(question, false) {
        Seen::Wait => {
            drain(&mut world.processes[set]);
            next.extend((!world.processes[set].unsent.is_empty()).then_some(world));
            return Vec::new();
        }
        Seen::Leave => {
            assert!(world.processes[set].faulty, "who did not err is not sent away");
            world.end(set);
            next.push(world);
            return Vec::new();
        }
        Seen::Restart(_) => {
            world.restarted = true;
            next.push(world);
            return Vec::new();
        }
        Seen::Do => (values.to_vec(), true),
        Seen::Take(bytes) => (bytes.to_vec(), false),
        Seen::Past => (vec![STILL], false),
    };
    let tell = |value: u8| {
        let mut world = world.clone();
        let it = &mut world.processes[set];
        if does {
            it.replica.tell_look(question, vec![value].into());
        }
        drain(it);
        (world, value)
    };
    shown.into_iter().map(tell).collect()
}

/// Puts all that waits to be sent on its link: where nobody can die any more, its order beside
/// other links' changes nothing.
fn sent(mut world: World) -> World {
    for set in 0..N {
        for (to, message) in std::mem::take(&mut world.processes[set].unsent) {
            world.links[to.idx()][set].push(Some(message));
        }
    }
    world
}

fn drain(process: &mut Process) {
    while let Some(it) = process.replica.poll() {
        process.unsent.push(it);
    }
    while process.replica.poll_note().is_some() {}
}

/// Explores and says how many states there were.
fn check(program: &'static [Op], kills: u32, flips: u32, breaks: u32) -> Explorer {
    explore(program, World::new(kills, flips, breaks))
}

fn explore(program: &'static [Op], start: World) -> Explorer {
    let World { kills, flips, breaks, .. } = start;
    let explored = Explorer::run(program, start);
    println!(
        "{program:?}: {kills} kills, {flips} flips, {breaks} sets broken: {} states, {} ends, {} \
         restarts",
        explored.seen.len(),
        explored.ended_right,
        explored.restarted
    );
    assert!(0 < explored.ended_right);
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
    let asked = World { yields: 1, ..World::new(kills, flips, 0) };
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

/// What one MPI brings is one voice, also where it is brought to two replicas.
#[test]
fn what_a_set_brings_that_is_wrong_is_not_fed_as_the_majority() {
    let misheard = |breaks| World { mishears: 1, mishears_any: true, ..World::new(0, 0, breaks) };
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
