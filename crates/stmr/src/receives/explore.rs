//! Receives of one process in three replicas, under drawn orders of messages, deaths and errors.
//!
//! Each set has an MPI of its own, in which messages come in an order of its own; who sends one
//! that waits for its receiver sends the next in no set before it was taken in all.  Replicas run
//! the same program but for one that may err.  Held: all without a fault take the same, nobody
//! waits for ever, one fault ends one replica, and no MPI is asked for two different things.

use std::collections::{BTreeMap, VecDeque};

use self::script::{Fault, N, Op, SOURCES, Script, Sent};
use super::{Match, Pattern, Receives};
use crate::digest::{Digest, Shape};
use crate::explore::dice::Dice;
use crate::message::{EventKind, Message, Place};
use crate::replica::{Input, Note, Passed, Replica, ReplicaOptions, Step};
use crate::verdict::SetId;

mod script;

/// After so many turns in which nothing came to pass, nothing will.
const IDLE_TURNS: u32 = 6_000;

/// One set's MPI, as this process sees it.
#[derive(Debug)]
struct Mpi {
    is_left: bool,
    /// How many messages of each process have come.
    came: [usize; SOURCES],
    /// Those that no receive has taken: whose, and which of his.
    unexpected: Vec<(usize, usize)>,
    posted: Vec<(u64, Pattern)>,
    taken: BTreeMap<u64, (usize, usize)>,
    cancelled: Vec<u64>,
}

#[derive(Debug)]
struct Process {
    replica: Replica,
    receives: Receives<()>,
    at: usize,
    ids: BTreeMap<usize, u64>,
    /// What it took: whose message, which of his, and its tag.
    value: Vec<[u8; 3]>,
    shape: u64,
    place: Option<Place>,
    is_waiting: bool,
    is_settled: bool,
    has_offered: bool,
    is_cancelling: bool,
    is_alive: bool,
    has_ended: bool,
    /// Whom it found to have strayed.
    strays: Vec<SetId>,
    /// Siblings whose link has ended here.
    closed: [bool; N],
    /// Words of the last step for each sibling, which its death may hold back.
    fresh: [usize; N],
}

struct World<'a> {
    script: &'a Script,
    dice: Dice,
    mpis: Vec<Mpi>,
    processes: Vec<Process>,
    /// links[to][from], in order; nothing in it is the link's end.
    links: Vec<Vec<VecDeque<Option<Message>>>>,
    has_failed: bool,
    idle: u32,
}

impl Mpi {
    fn post(&mut self, id: u64, pattern: Pattern, sent: &[Vec<Sent>]) {
        let takes = |it: &(usize, usize)| takes(pattern, *it, sent);
        if let Some(at) = self.unexpected.iter().position(takes) {
            self.taken.insert(id, self.unexpected.remove(at));
        } else {
            self.posted.push((id, pattern));
        }
    }

    fn bring(&mut self, source: usize, sent: &[Vec<Sent>]) {
        let message = (source, self.came[source]);
        self.came[source] += 1;
        if let Some(at) = self.posted.iter().position(|it| takes(it.1, message, sent)) {
            self.taken.insert(self.posted.remove(at).0, message);
        } else {
            self.unexpected.push(message);
        }
    }

    fn cancel(&mut self, id: u64) {
        if let Some(at) = self.posted.iter().position(|it| it.0 == id) {
            self.posted.remove(at);
            self.cancelled.push(id);
        }
    }
}

fn takes(pattern: Pattern, (source, idx): (usize, usize), sent: &[Vec<Sent>]) -> bool {
    let Sent { comm, tag, .. } = sent[source][idx];
    pattern.takes(comm, Match { source: source as i32, tag })
}

impl<'a> World<'a> {
    fn new(script: &'a Script, seed: u64) -> Self {
        let process = |own| Process {
            replica: Replica::new(ReplicaOptions { own, replicas: N, trust_after: 2 }),
            receives: Receives::default(),
            at: 0,
            ids: BTreeMap::new(),
            value: Vec::new(),
            shape: 0,
            place: None,
            is_waiting: false,
            is_settled: false,
            has_offered: false,
            is_cancelling: false,
            is_alive: true,
            has_ended: false,
            strays: Vec::new(),
            closed: [false; N],
            fresh: [0; N],
        };
        let mpi = |_| Mpi {
            is_left: false,
            came: [0; SOURCES],
            unexpected: Vec::new(),
            posted: Vec::new(),
            taken: BTreeMap::new(),
            cancelled: Vec::new(),
        };
        Self {
            script,
            dice: Dice(seed),
            mpis: (0..N).map(mpi).collect(),
            processes: SetId::all(N).map(process).collect(),
            links: vec![vec![VecDeque::new(); N]; N],
            has_failed: matches!(script.fault, Fault::None | Fault::Marked | Fault::Strays),
            idle: 0,
        }
    }

    /// Runs until all have ended.  Returns how many replicas were lost.
    fn run(&mut self) -> usize {
        // Some are slower than others, in one run these and in another those.
        let pace: Vec<usize> = (0..2 * N).map(|_| 1 + self.dice.below(6)).collect();
        while self.processes.iter().any(|it| it.is_alive && !it.has_ended) {
            let set = self.dice.below(N);
            let turn = self.dice.below(4);
            let is_slow = !self.dice.one_in(pace[set + if turn == 3 { N } else { 0 }]);
            if is_slow {
                continue;
            }
            self.idle += 1;
            let is_here = self.processes[set].is_alive;
            self.processes[set].fresh = [0; N];
            match turn {
                0 if is_here => self.read(set),
                1 if is_here && !self.processes[set].has_ended => self.step(set),
                2 if is_here => self.tell_matches(set),
                3 => self.bring(set),
                _ => {}
            }
            self.fail(set);
            self.end_strays(set);
            if IDLE_TURNS < self.idle {
                self.end_who_is_elsewhere();
            }
        }
        self.processes.iter().filter(|it| !it.is_alive).count()
    }

    fn is_faulty(&self, set: usize) -> bool {
        set == self.script.faulty && matches!(self.script.fault, Fault::Killed | Fault::Strays)
    }

    /// At some time the fault comes.
    fn fail(&mut self, set: usize) {
        if self.has_failed || set != self.script.faulty || !self.dice.one_in(12) {
            return;
        }
        self.has_failed = true;
        self.idle = 0;
        match self.script.fault {
            Fault::Killed => self.kill(set),
            Fault::Broken => {
                self.mpis[set].is_left = true;
                self.processes[set].replica.handle(Input::SetBroken);
                self.send_out(set);
            }
            Fault::Yields => self.processes[set].replica.yield_lead(),
            Fault::None | Fault::Marked | Fault::Strays => {}
        }
    }

    /// One ends: the last that it said may not have left it.
    fn kill(&mut self, set: usize) {
        for to in 0..N {
            let fresh = self.processes[set].fresh[to].min(self.links[to][set].len());
            let lost = self.dice.below(fresh + 1);
            let kept = self.links[to][set].len() - lost;
            self.links[to][set].truncate(kept);
        }
        self.end(set);
    }

    fn end(&mut self, set: usize) {
        self.idle = 0;
        self.processes[set].is_alive = false;
        self.mpis[set].is_left = true;
        for to in (0..N).filter(|it| *it != set) {
            self.links[to][set].push_back(None);
            self.links[set][to].clear();
        }
    }

    fn end_strays(&mut self, set: usize) {
        let found = self.processes[set].strays.iter().map(|it| it.idx());
        let due: Vec<usize> = found.filter(|it| self.processes[*it].is_alive).collect();
        for stray in due {
            if self.processes[set].is_alive && self.dice.one_in(40) {
                self.end(stray);
            }
        }
    }

    fn end_who_is_elsewhere(&mut self) {
        self.idle = 0;
        let live = |it: &Process| it.is_alive && !it.has_ended;
        for (asks, waits) in (0..N * N).map(|it| (it / N, it % N)).filter(|it| it.0 != it.1) {
            let [it, other] = [asks, waits].map(|it| &self.processes[it]);
            if !live(it) || !live(other) {
                continue;
            }
            let (place, own) = (other.place, it.place);
            let agrees = |third: usize| {
                let set = SetId::new(third);
                let here = &self.processes[third];
                third != asks
                    && third != waits
                    && live(here)
                    && (it.replica.is_agreed_with(set) || (own.is_some() && here.place == own))
            };
            let is_elsewhere =
                it.replica.is_elsewhere(SetId::new(waits), place.as_ref(), own.as_ref());
            if is_elsewhere && (0..N).any(agrees) {
                assert!(self.is_faulty(waits), "set {waits} makes the right calls: {self:#?}");
                self.end(waits);
                return;
            }
        }
        let places: Vec<Option<Place>> = self.processes.iter().map(|it| it.place).collect();
        for set in 0..N {
            if live(&self.processes[set]) && self.processes[set].replica.is_alone(&places) {
                assert!(self.is_faulty(set), "set {set} makes the right calls: {self:#?}");
                return self.end(set);
            }
        }
        panic!("somebody waits for ever: {self:#?}");
    }

    fn tell(&mut self, set: usize, message: &Message) {
        for to in (0..N).filter(|it| *it != set) {
            if !self.processes[set].closed[to] && self.processes[to].is_alive {
                self.put(set, to, message.clone());
            }
        }
    }

    fn put(&mut self, set: usize, to: usize, message: Message) {
        self.idle = 0;
        self.links[to][set].push_back(Some(message));
        self.processes[set].fresh[to] += 1;
    }

    fn send_out(&mut self, set: usize) {
        let it = &mut self.processes[set];
        let messages = it.receives.follow(&it.replica);
        messages.iter().for_each(|it| self.tell(set, it));
        while let Some((to, message)) = self.processes[set].replica.poll() {
            for to in to.iter().map(SetId::idx) {
                if !self.processes[set].closed[to] && self.processes[to].is_alive {
                    self.put(set, to, message.clone());
                }
            }
        }
        while let Some(note) = self.processes[set].replica.poll_note() {
            if let Note::Strayed(of) = note {
                self.processes[set].strays.push(of);
            }
        }
    }

    /// Reads some of what a sibling has said.
    fn read(&mut self, set: usize) {
        let from = self.dice.below(N);
        let n = self.links[set][from].len();
        if from == set || n == 0 {
            return;
        }
        self.idle = 0;
        let n = 1 + self.dice.below(n);
        let batch: Vec<Option<Message>> = self.links[set][from].drain(..n).collect();
        let (of, mut said) = (SetId::new(from), Vec::new());
        for message in batch.iter().flatten() {
            match message {
                Message::Matched { .. } | Message::Released { .. } => said.push(message.clone()),
                other => {
                    self.processes[set].replica.handle(Input::Message(of, other.clone()));
                }
            }
        }
        if !said.is_empty() {
            let it = &mut self.processes[set];
            it.receives.hear(of, said, &it.replica);
            self.post(set);
        }
        if let Some(None) = batch.last() {
            self.processes[set].closed[from] = true;
            for message in self.processes[set].receives.to_retell() {
                self.tell(set, &message);
            }
            self.processes[set].replica.handle(Input::Closed(of));
        }
        self.send_out(set);
    }

    /// A message comes in a set, if its sender can have sent it.
    fn bring(&mut self, set: usize) {
        let source = self.dice.below(SOURCES);
        let next = self.mpis[set].came[source];
        let sent = &self.script.sent;
        if self.mpis[set].is_left || sent[source].len() <= next {
            return;
        }
        // The sender's replicas compare each message before any of them sends it.
        let waits = |mpi: &Mpi| {
            let is_out = |idx: usize| mpi.taken.values().any(|it| *it == (source, idx));
            let last = next.checked_sub(1);
            mpi.came[source] < next || last.is_some_and(|it| sent[source][it].waits && !is_out(it))
        };
        if self.mpis.iter().any(|it| !it.is_left && waits(it)) {
            return;
        }
        self.idle = 0;
        self.mpis[set].bring(source, sent);
    }

    fn post(&mut self, set: usize) {
        let it = &mut self.processes[set];
        let messages = it.receives.follow(&it.replica);
        messages.iter().for_each(|it| self.tell(set, it));
        let it = &mut self.processes[set];
        if it.replica.has_left() {
            return;
        }
        for (id, pattern) in it.receives.to_begin(&it.replica) {
            self.idle = 0;
            self.mpis[set].post(id, pattern, &self.script.sent);
        }
    }

    fn is_received(&mut self, set: usize, id: u64) -> bool {
        self.post(set);
        let (it, mpi) = (&mut self.processes[set], &mut self.mpis[set]);
        if it.replica.has_left() {
            return it.receives.kept(id).taken.is_some();
        }
        if let Some(at) = mpi.cancelled.iter().position(|it| *it == id) {
            mpi.cancelled.remove(at);
            let message = it.receives.release(id, &it.replica);
            message.iter().for_each(|it| self.tell(set, it));
            return false;
        }
        if let Some((source, idx)) = mpi.taken.get(&id) {
            let tag = self.script.sent[*source][*idx].tag;
            it.receives.took(id, Match { source: *source as i32, tag });
            return true;
        }
        false
    }

    fn tell_matches(&mut self, set: usize) {
        if self.processes[set].replica.has_left() || self.processes[set].receives.is_empty() {
            return;
        }
        self.post(set);
        let it = &mut self.processes[set];
        for id in it.receives.to_take_back(&it.replica) {
            self.mpis[set].cancel(id);
        }
        let mut is_here = false;
        for id in self.processes[set].receives.untold_first() {
            is_here |= self.is_received(set, id);
        }
        if is_here {
            for id in self.processes[set].receives.untold() {
                self.is_received(set, id);
            }
        }
        for message in self.processes[set].receives.to_tell() {
            self.tell(set, &message);
        }
    }

    /// One step of the program, if it can make one.
    fn step(&mut self, set: usize) {
        let Some(op) = self.script.ops(set).get(self.processes[set].at).copied() else {
            let it = &mut self.processes[set];
            it.has_ended = true;
            it.replica.end();
            return self.send_out(set);
        };
        match op {
            Op::Begin(label, pattern) => {
                self.begin_receive(set, label, pattern);
                self.go_on(set);
            }
            Op::Wait(label) => self.wait(set, label),
            Op::Cancel(label, pattern) => self.cancel(set, label, pattern),
            Op::Send(errs) => {
                if self.compare(set, errs) {
                    self.go_on(set);
                }
            }
        }
    }

    fn begin_receive(&mut self, set: usize, label: usize, pattern: Pattern) {
        let words = [pattern.source, pattern.tag].map(|it| it.unwrap_or(-1) as u64);
        self.mix(set, (pattern.comm as u64) << 60 ^ words[0] << 32 ^ words[1] & 0xffff_ffff);
        let it = &mut self.processes[set];
        let id = it.receives.begin(pattern, Shape(it.shape), ());
        it.ids.insert(label, id);
        self.post(set);
    }

    fn cancel(&mut self, set: usize, label: usize, pattern: Pattern) {
        let it = &mut self.processes[set];
        let id = it.ids[&label];
        if !std::mem::replace(&mut it.is_cancelling, true) {
            for id in it.receives.cancel(id) {
                self.mpis[set].cancel(id);
            }
            return self.mix(set, id);
        }
        let it = &mut self.processes[set];
        if !it.has_offered && !it.replica.has_left() {
            for id in it.receives.going_back() {
                self.is_received(set, id);
            }
            let it = &mut self.processes[set];
            if !it.receives.going_back().is_empty() {
                return;
            }
            if it.receives.has_come(id) {
                it.replica.tell_took();
            }
        }
        if !self.compare(set, false) {
            return;
        }
        let it = &mut self.processes[set];
        it.is_cancelling = false;
        if it.replica.any_took() {
            it.receives.stay(id);
        } else {
            it.receives.finish(id);
            it.value.push([u8::MAX, id as u8, 0]);
            self.begin_receive(set, label, pattern);
        }
        self.post(set);
        self.go_on(set);
    }

    fn mix(&mut self, set: usize, word: u64) {
        let it = &mut self.processes[set].shape;
        *it = Dice(*it ^ word.wrapping_mul(0x9e37_79b9)).draw();
    }

    fn go_on(&mut self, set: usize) {
        self.idle = 0;
        self.processes[set].at += 1;
    }

    fn begin(&mut self, set: usize, kind: EventKind) -> Step {
        let it = &mut self.processes[set];
        let shape = Shape(it.shape);
        it.place = Some(Place { event: it.replica.next_event(), kind, shape });
        let step = it.replica.begin(kind, shape);
        match &step {
            Step::Take(_) => it.place = None,
            Step::Leave => {
                assert!(self.is_faulty(set), "set {set} is sent away: {self:#?}");
                self.end(set);
            }
            Step::Restart(why) => panic!("one fault is outlived: {why:?}, {self:#?}"),
            Step::Do | Step::Wait => {}
        }
        if self.processes[set].is_alive {
            self.send_out(set);
        }
        step
    }

    fn finish(&mut self, set: usize, kind: EventKind, bytes: Vec<u8>) {
        let it = &mut self.processes[set];
        it.replica.finish(kind, Shape(it.shape), bytes.into());
        it.place = None;
        self.send_out(set);
    }

    fn wait(&mut self, set: usize, label: usize) {
        let id = self.processes[set].ids[&label];
        if !std::mem::replace(&mut self.processes[set].is_waiting, true) {
            self.mix(set, id);
        }
        let it = &self.processes[set];
        if !it.is_settled && it.receives.is_to_decide(id) {
            let rows = match self.begin(set, EventKind::Decision) {
                Step::Take(bytes) => bytes.to_vec(),
                Step::Do => {
                    let Some(rows) = self.decide(set, id) else { return };
                    self.finish(set, EventKind::Decision, rows.clone());
                    rows
                }
                _ => return,
            };
            for row in rows.chunks_exact(3) {
                let of = Match { source: row[1].into(), tag: row[2].into() };
                let it = &mut self.processes[set];
                let is_known = it.receives.get(row[0].into()).is_some();
                if !is_known || it.receives.settle(row[0].into(), of, &it.replica).is_err() {
                    assert!(self.is_faulty(set), "set {set} is misled: {self:#?}");
                    return self.end(set);
                }
            }
            self.processes[set].is_settled = true;
            self.send_out(set);
            return self.post(set);
        }
        self.processes[set].is_settled = true;
        let row = match self.begin(set, EventKind::Data) {
            Step::Take(bytes) => bytes.to_vec(),
            Step::Do => {
                if !self.is_received(set, id) {
                    return;
                }
                let (source, idx) = self.mpis[set].taken[&id];
                let row = vec![source as u8, idx as u8, self.script.sent[source][idx].tag as u8];
                self.finish(set, EventKind::Data, row.clone());
                row
            }
            _ => return,
        };
        let it = &mut self.processes[set];
        it.receives.finish(id);
        it.value.push([row[0], row[1], row[2]]);
        (it.is_settled, it.is_waiting) = (false, false);
        self.mix(set, 1);
        self.go_on(set);
    }

    fn decide(&mut self, set: usize, id: u64) -> Option<Vec<u8>> {
        if !self.is_received(set, id) {
            return None;
        }
        let mut decision = self.processes[set].receives.decide(id);
        while let Some(rival) = self.processes[set].receives.rival(&mut decision) {
            if !self.is_received(set, rival) {
                return None;
            }
        }
        let (rows, messages) = self.processes[set].receives.decided(decision);
        messages.iter().for_each(|it| self.tell(set, it));
        let row = |(id, of): (u64, Match)| [id as u8, of.source as u8, of.tag as u8];
        Some(rows.into_iter().flat_map(row).collect())
    }

    /// Returns whether it is over.
    fn compare(&mut self, set: usize, errs: bool) -> bool {
        let it = &mut self.processes[set];
        let value = it.value.concat();
        if !std::mem::replace(&mut it.has_offered, true) {
            let digest = Digest::of(if errs { b"wrong" } else { &value[..] });
            it.replica.offer(Shape(it.shape), digest, 1);
            self.send_out(set);
            return false;
        }
        let passed = it.replica.passed();
        match &passed {
            None => {
                self.send_out(set);
                return false;
            }
            Some(Passed::Go) => {}
            Some(Passed::Serve(wrong)) => self.processes[set].replica.serve(wrong, &value),
            Some(Passed::Replace(bytes)) => {
                assert!(*bytes == value, "what leaves is right: {self:#?}");
            }
            Some(Passed::Leave) => {
                assert!(self.is_faulty(set), "set {set} is sent away: {self:#?}");
                self.end(set);
                return false;
            }
            Some(Passed::Restart(why)) => panic!("one fault is outlived: {why:?}, {self:#?}"),
        }
        self.processes[set].has_offered = false;
        self.send_out(set);
        self.mix(set, 2);
        true
    }
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Script { ops, sent, fault, faulty, erring } = self.script;
        writeln!(f, "{fault:?} of set {faulty}; {ops:?}")?;
        if *fault == Fault::Strays {
            writeln!(f, "its own: {erring:?}")?;
        }
        writeln!(f, "sent: {sent:?}")?;
        for (set, it) in self.processes.iter().enumerate() {
            let Process { at, value, place, is_alive, has_ended, has_offered, .. } = it;
            writeln!(
                f,
                "set {set}: at {at}, {value:?}, {place:?}, leads: {:?}",
                it.replica.meta()
            )?;
            writeln!(f, "  alive {is_alive}, ended {has_ended}, offered {has_offered}")?;
            writeln!(f, "  {:?}", it.receives)?;
            writeln!(f, "  {:?}", self.mpis[set])?;
            writeln!(f, "  {:?}", self.links[set])?;
        }
        Ok(())
    }
}

/// Draws programs and their runs under a fault; returns how many replicas were lost.
fn explore(fault: Fault, runs: u64) -> usize {
    let mut lost = 0;
    for seed in 0..runs {
        let mut dice = Dice(seed);
        let script = Script::draw(&mut dice, fault);
        let mut world = World::new(&script, dice.draw());
        let n = world.run();
        let right: Vec<&Process> =
            (0..N).filter(|it| !world.is_faulty(*it)).map(|it| &world.processes[it]).collect();
        assert!(right.iter().all(|it| it.is_alive), "seed {seed}: {world:#?}");
        assert!(right.iter().all(|it| it.value == right[0].value), "seed {seed}: {world:#?}");
        lost += n;
    }
    lost
}

#[test]
fn all_take_the_same_whatever_comes_first() {
    assert_eq!(explore(Fault::None, 3_000), 0);
}

#[test]
fn all_take_the_same_when_another_leads() {
    assert_eq!(explore(Fault::Yields, 3_000), 0);
    assert_eq!(explore(Fault::Marked, 3_000), 0);
    assert_eq!(explore(Fault::Broken, 3_000), 0);
}

#[test]
fn all_that_are_left_take_the_same_when_one_is_killed() {
    assert!(0 < explore(Fault::Killed, 20_000));
}

#[test]
fn one_that_makes_other_receives_leads_nobody_astray() {
    assert!(0 < explore(Fault::Strays, 20_000));
}
