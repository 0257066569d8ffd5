//! Looks at clocks, which a program may make more often in one replica than in another.
//!
//! A program that waits for a thread or a child of its own looks at a clock again and again, as
//! often as that takes.  So looks are no events: they have no numbers, and are of no replica's
//! shape.  Who leads tells the others what it sees; they take that in its order, as far as it is of
//! the same place between events and compares.
//!
//! Looks are known by the clock and by the place in the program's code, so that those after a loop
//! are told from those in it.
//!
//! ```text
//! the next that was told here is an answer to the same question ──► Take
//! it is of a loop that this replica has left, or was not in ──► it is let go of
//! this one is of a loop that who leads has left ──► Past: nothing tells what it shows
//! who leads is past this place ──► Past
//! ```
//!
//! Where all replicas look alike, all see the same, and so they do after a loop that each makes as
//! often as it likes.  Signals are due at a look as at a compare: a program may do nothing else
//! than to wait for one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Replica, Step};
use crate::message::Message;
use crate::verdict::{Double, SetId};

/// Who leads takes its time when it is farther ahead of those who listen, in looks.
const AHEAD_MAX: u64 = 256;

/// After so many looks one says how many it has heard.
const HEARD_EVERY: u64 = AHEAD_MAX / 2;

/// So many are kept for a sibling that lacks them when who told them is gone.
const KEPT_MAX: usize = 1 << 14;

/// Who leads hardly goes on when it is so far ahead, so that what is kept suffices.
const FAR_AHEAD: u64 = KEPT_MAX as u64 / 2;

/// So many questions of a place are remembered.
const ASKED_MAX: usize = 256;

/// What a program looks at, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// The clock.
    pub clock: u64,
    /// The place in the program's code, by any name that is the same in all replicas.
    pub site: u64,
}

/// How far who leads is ahead of those who listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ahead {
    /// Not far.
    Little,
    /// So far that it takes its time.
    Much,
    /// So far that it all but waits.
    Far,
}

/// What was seen at a look.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Look {
    /// Where it was.
    pub at: LookPlace,
    /// How many signals are due there in all.
    pub signals: u32,
    /// What was looked at.
    pub question: Question,
    /// What it showed.
    pub bytes: Arc<Vec<u8>>,
}

/// Where in a program a look is, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookPlace {
    /// Compares before it.
    pub call: u64,
    /// Events before it.
    pub event: u64,
    /// Looks after the last of those.
    pub look: u64,
}

/// What a replica does about a look at a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Look yourself, then call [`Replica::tell_look`].
    Do,
    /// This was seen.
    Take(Arc<Vec<u8>>),
    /// Who leads has gone on without such a look, and nothing tells what it would show: not before
    /// the last that was seen, nor after [`Replica::next_look`].
    Past,
    /// Nothing yet.
    Wait,
    /// It has strayed.
    Leave,
    /// The program starts again.
    Restart(Double),
}

/// What a replica knows of looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Looks {
    /// What was told and is not taken yet, and by whom.
    told: BTreeMap<LookPlace, (SetId, Look)>,
    /// What was taken or let go of since the last compare.
    kept: VecDeque<Look>,
    /// The next one here.
    next: LookPlace,
    /// Who led before was known to be past all looks before this when another came to lead: what
    /// it did not look at nobody does.
    closed: LookPlace,
    /// What this replica has looked at here, each once, the last at the end.
    asked: Vec<Question>,
    /// How often each question was asked here, by this replica and by who leads.
    times: BTreeMap<Question, u64>,
}

impl Looks {
    fn ask(&mut self, question: Question) {
        self.count(question);
        if self.asked.last() == Some(&question) {
            return;
        }
        self.asked.retain(|it| *it != question);
        if self.asked.len() == ASKED_MAX {
            self.asked.remove(0);
        }
        self.asked.push(question);
    }

    fn count(&mut self, question: Question) {
        if self.times.len() < ASKED_MAX || self.times.contains_key(&question) {
            *self.times.entry(question).or_default() += 1;
        }
    }

    /// The looks that were told here and are not taken, but for those after one that is not there:
    /// of a look that is still to come nobody knows what it is.
    fn told_here(&self) -> impl Iterator<Item = &Look> {
        let after = LookPlace { event: self.next.event + 1, look: 0, ..self.next };
        let told = self.told.range(self.next..after).zip(self.next.look..);
        told.take_while(|(it, n)| it.0.look == *n).map(|(it, _)| &it.1.1)
    }

    /// Whether one question is of a loop rather than another: it is asked more often, or was later.
    fn is_of_loop(&self, one: Question, other: Question) -> bool {
        let weight = |of: Question| {
            let told = self.told_here().take(AHEAD_MAX as usize).filter(|it| it.question == of);
            let times = self.times.get(&of).copied().unwrap_or_default();
            (times + told.count() as u64, self.asked.iter().rposition(|it| *it == of))
        };
        one != other && weight(other) < weight(one)
    }
}

/// How many looks were told on the link to a sibling, and by the sibling.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Counts {
    to: u64,
    heard_there: u64,
    heard: u64,
}

impl Replica {
    /// Comes to a look; ask again after every input while the answer is [`Seen::Wait`].
    pub fn look(&mut self, question: Question) -> Seen {
        let seen = match self.accused() {
            Some(Step::Leave) => Seen::Leave,
            Some(Step::Restart(why)) => Seen::Restart(why),
            Some(_) => Seen::Wait,
            None => self.find_look(question),
        };
        if seen != Seen::Wait {
            self.looks.ask(question);
        }
        seen
    }

    fn find_look(&mut self, question: Question) -> Seen {
        let next = self.next_told().map(|it| it.question);
        if next.is_some_and(|it| self.looks.is_of_loop(question, it)) {
            // Who leads has left the loop that this replica is in.
            return Seen::Past;
        }
        let wanted = self.looks.told_here().find(|it| it.question == question).map(|it| it.at);
        if let Some(at) = wanted {
            self.let_go_before(at);
            return self.let_go().map_or(Seen::Wait, Seen::Take);
        }
        match self.meta {
            None => Seen::Restart(Double::NoWholeSet),
            Some(_) if self.looks.next < self.looks.closed => Seen::Past,
            Some(it) if it == self.own => {
                // Those that are left here are of who led before, and of something else.
                while self.let_go().is_some() {}
                Seen::Do
            }
            Some(it) => {
                // Who leads may still be in a loop that this replica has left.
                while let Some(next) = self.next_told().map(|it| it.question)
                    && self.looks.asked.contains(&next)
                    && self.looks.is_of_loop(next, question)
                {
                    self.let_go();
                }
                if self.looks.next < self.left_behind(it) { Seen::Past } else { Seen::Wait }
            }
        }
    }

    /// What the next look at a clock shows that was told, wherever it is.
    #[must_use]
    pub fn next_look(&self, clock: u64) -> Option<Arc<Vec<u8>>> {
        let mut told = self.looks.told.range(self.looks.next..).take(ASKED_MAX);
        told.find(|(_, it)| it.1.question.clock == clock).map(|(_, it)| it.1.bytes.clone())
    }

    /// Says what was seen, after [`Seen::Do`].
    ///
    /// # Panics
    /// If another leads by now: between is nothing that comes in.
    pub fn tell_look(&mut self, question: Question, bytes: Arc<Vec<u8>>) {
        assert!(self.is_meta(), "only who leads tells what it sees");
        self.signals = self.signals.max(self.signals_heard);
        let look = Look { at: self.looks.next, signals: self.signals, question, bytes };
        self.looks.next.look += 1;
        for set in self.siblings() {
            self.tell_of(set, &look);
        }
    }

    /// How many of the looks that were told a sibling has not heard of.  It may have gone on to
    /// compute for long, so that nobody waits for it for good.
    #[must_use]
    pub fn ahead(&self) -> Ahead {
        let behind = |it: SetId| {
            let Counts { to, heard_there, .. } = self.cluster[it.idx()].looks;
            to.saturating_sub(heard_there)
        };
        let awaited = self.siblings().filter(|it| self.is_awaited(*it) && !self.has_offered(*it));
        match awaited.map(behind).max().unwrap_or_default() {
            0..=AHEAD_MAX => Ahead::Little,
            FAR_AHEAD.. => Ahead::Far,
            _ => Ahead::Much,
        }
    }

    /// Whether a sibling has come to the compare that this replica is before.
    #[must_use]
    pub fn has_offered(&self, set: SetId) -> bool {
        self.cluster[set.idx()].offers.at(self.call).is_some()
    }

    pub(super) fn hear_look(&mut self, from: SetId, look: Look) {
        let next = self.looks.next;
        let is_known = look.at < next || self.looks.told.contains_key(&look.at);
        let is_of_before = (look.at.call, look.at.event) < (next.call, next.event);
        if is_known && !is_of_before {
            self.count_look(from);
        } else {
            self.looks.told.insert(look.at, (from, look));
        }
        self.let_go_before(LookPlace { look: 0, ..next });
    }

    pub(super) fn hear_of_looks(&mut self, from: SetId, heard: u64) {
        self.cluster[from.idx()].looks.heard_there = heard;
    }

    /// Comes to something else than a look, an event or a compare: no more looks follow here.
    pub(super) fn end_looks(&mut self) {
        let after = self.after_looks();
        self.let_go_before(after);
        self.looks.next = after;
    }

    /// Goes on after an event or a compare.
    pub(super) fn begin_looks(&mut self) {
        self.looks.next = LookPlace { call: self.call, event: self.event, look: 0 };
        self.looks.asked.clear();
        self.looks.times.clear();
    }

    /// Tells a sibling all looks that it may lack when who told them is gone.
    pub(super) fn relay_looks(&mut self, to: SetId) {
        let told = self.looks.told.values().map(|it| &it.1);
        let looks: Vec<Look> = self.looks.kept.iter().chain(told).cloned().collect();
        looks.iter().for_each(|it| self.tell_of(to, it));
    }

    /// All replicas have come to a compare: none lacks a look before it.
    pub(super) fn forget_looks(&mut self) {
        self.looks.kept.clear();
    }

    /// One that strayed has told nothing.
    pub(super) fn unhear_looks(&mut self, set: SetId) {
        self.looks.told.retain(|_, it| it.0 != set);
    }

    fn tell_of(&mut self, set: SetId, look: &Look) {
        if self.is_awaited(set) {
            self.cluster[set.idx()].looks.to += 1;
            self.out.push_back((set, Message::Look(look.clone())));
        }
    }

    /// The place after all looks that may follow here.
    fn after_looks(&self) -> LookPlace {
        LookPlace { call: self.call, event: self.event + 1, look: 0 }
    }

    /// The next look here, if it was told.
    fn next_told(&self) -> Option<&Look> {
        self.looks.told.get(&self.looks.next).map(|it| &it.1)
    }

    /// Another leads than this one, which may be gone.
    pub(super) fn close_looks(&mut self, led: SetId) {
        self.looks.closed = self.looks.closed.max(self.left_behind(led));
    }

    /// Before which place no more looks of a sibling's follow, by what it has told.
    fn left_behind(&self, set: SetId) -> LookPlace {
        let it = &self.cluster[set.idx()];
        let after = |call, event| LookPlace { call, event: event + 1, look: 0 };
        let offered = it.offers.all().iter().map(|it| after(it.call, it.event));
        let settled = it.events.keys().map(|it| after(self.call, *it));
        let looked = self.looks.told.iter().rev().find(|(_, it)| it.0 == set);
        let looked = looked.map(|(at, _)| LookPlace { look: 0, ..*at });
        offered.chain(settled).chain(looked).max().unwrap_or_default()
    }

    /// Lets go of the looks that were told of places before this one.
    fn let_go_before(&mut self, end: LookPlace) {
        while let Some((at, (from, look))) = self.looks.told.pop_first() {
            if end <= at {
                self.looks.told.insert(at, (from, look));
                break;
            }
            self.looks.next = self.looks.next.max(LookPlace { look: at.look + 1, ..at });
            self.keep_look(from, look);
        }
    }

    /// Takes the next look here, if it was told, or lets go of it.
    fn let_go(&mut self) -> Option<Arc<Vec<u8>>> {
        let (from, look) = self.looks.told.remove(&self.looks.next)?;
        self.looks.next.look += 1;
        let bytes = look.bytes.clone();
        self.keep_look(from, look);
        Some(bytes)
    }

    fn keep_look(&mut self, from: SetId, look: Look) {
        self.signals = self.signals.max(look.signals);
        if (look.at.call, look.at.event) == (self.call, self.event) {
            self.looks.count(look.question);
        }
        self.looks.kept.push_back(look);
        if KEPT_MAX < self.looks.kept.len() {
            self.looks.kept.pop_front();
        }
        self.count_look(from);
    }

    fn count_look(&mut self, from: SetId) {
        let counts = &mut self.cluster[from.idx()].looks;
        counts.heard += 1;
        if counts.heard.is_multiple_of(HEARD_EVERY) {
            let heard = counts.heard;
            self.out.push_back((from, Message::Looked(heard)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digest, Shape};
    use crate::replica::{Input, ReplicaOptions};

    /// Who leads looks from these sites and comes to a compare, then another replica looks: which
    /// of them it is told, and `.` where it makes a look that was not.
    fn check(led: &str, looks: &str, wanted: &str) {
        let [meta, set] = [0, 1].map(SetId::new);
        let replica = |own| Replica::new(ReplicaOptions { own, replicas: 3, trust_after: 2 });
        let (mut leads, mut follows) = (replica(meta), replica(set));
        let question = |it: u8| Question { clock: 0, site: it.into() };
        for (idx, it) in (b'0'..).zip(led.bytes()) {
            assert_eq!(leads.look(question(it)), Seen::Do);
            leads.tell_look(question(it), vec![idx].into());
        }
        leads.offer(Shape(1), Digest::of(b"x"), 1);
        while let Some((to, message)) = leads.poll() {
            if to == set {
                follows.handle(Input::Message(meta, message));
            }
        }
        let seen = looks.bytes().map(|it| match follows.look(question(it)) {
            Seen::Take(bytes) => char::from(bytes[0]),
            Seen::Past => '.',
            other => panic!("{led} {looks}: {other:?}"),
        });
        assert_eq!(seen.collect::<String>(), wanted, "{led}, {looks}");
    }

    #[test]
    fn a_look_after_a_loop_is_told_from_those_in_it() {
        check("XXXY", "XXXY", "0123");
        // It has left the loop earlier, or was not in it.
        check("XXXY", "XY", "03");
        check("XXXY", "Y", "3");
        // It lingers in the loop, or who leads was not in it.
        check("XXXY", "XXXXXY", "012..3");
        check("Y", "XXY", "..0");
        // Another loop after it, and both again.
        check("XXXZZ", "XXXXZZ", "012.34");
        check("XXXZZ", "XZZ", "034");
        check("XXXYXXXY", "XYXXXXXY", "03456..7");
        // Two looks in a loop, which is left between them.
        check("ABABAY", "ABABABY", "01234.5");
        check("ABABABY", "ABAY", "0126");
    }

    #[test]
    fn a_clock_that_stands_still_is_not_beyond_what_is_told_next() {
        let [meta, set] = [0, 1].map(SetId::new);
        let mut follows = Replica::new(ReplicaOptions { own: set, replicas: 3, trust_after: 2 });
        let question = |clock, site| Question { clock, site };
        for (look, question) in (0..).zip([question(0, 1), question(1, 2), question(0, 3)]) {
            let at = LookPlace { look, ..LookPlace::default() };
            let bytes = Arc::new(vec![look as u8]);
            let told = Message::Look(Look { at, signals: 0, question, bytes });
            follows.handle(Input::Message(meta, told));
        }
        let take = |value: u8| Seen::Take(vec![value].into());
        assert_eq!(follows.look(question(0, 1)), take(0));
        assert_eq!(follows.look(question(0, 1)), Seen::Past);
        assert_eq!(follows.next_look(0), Some(vec![2].into()), "the next of the same clock");
        assert_eq!(follows.next_look(7), None);
        assert_eq!(follows.look(question(1, 2)), take(1));
    }
}
