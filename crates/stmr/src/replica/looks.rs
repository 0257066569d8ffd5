//! Looks at clocks, which a program may make more often in one replica than in another.
//!
//! A program that waits for a thread or a child of its own looks at a clock again and again, as
//! often as that takes.  So looks are no events: they have no numbers, and are of no replica's
//! shape.  Who leads tells the others what it sees; they take that in its order, as far as it is of
//! the same place between events and compares.
//!
//! ```text
//! the next that was told here is an answer to the same question ──► Take
//! others come before it: this replica has made fewer looks ──► they are let go of
//! who leads is past this place: this replica makes more ──► Past: nothing tells what it shows
//! ```
//!
//! Where all replicas look alike, all see the same.  Signals are due at a look as at a compare: a
//! program may do nothing else than to wait for one.

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

/// What was seen at a look.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Look {
    /// Where it was.
    pub at: LookPlace,
    /// How many signals are due there in all.
    pub signals: u32,
    /// What was looked at.
    pub question: u64,
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
    /// Who leads has gone on without such a look, and nothing tells what it would show.
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
    /// What this replica looked at last.
    question: Option<u64>,
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
    pub fn look(&mut self, question: u64) -> Seen {
        match self.accused() {
            Some(Step::Leave) => return Seen::Leave,
            Some(Step::Restart(why)) => return Seen::Restart(why),
            Some(_) => return Seen::Wait,
            None => {}
        }
        let after = LookPlace { look: 0, ..self.after_looks() };
        let told = self.looks.told.range(self.looks.next..after);
        // Of a look that is still to come nobody knows what it is.
        let mut in_order = told.zip(self.looks.next.look..).take_while(|(it, n)| it.0.look == *n);
        let wanted = in_order.find(|((_, it), _)| it.1.question == question);
        if let Some(at) = wanted.map(|((at, _), _)| *at) {
            self.let_go_before(at);
            self.looks.question = Some(question);
            return self.let_go().map_or(Seen::Wait, Seen::Take);
        }
        match self.meta {
            None => Seen::Restart(Double::NoWholeSet),
            Some(_) if self.looks.next < self.looks.closed => Seen::Past,
            Some(it) if it == self.own => {
                // Those that are left here are of who led before, and of something else.
                while self.let_go().is_some() {}
                self.looks.question = Some(question);
                Seen::Do
            }
            Some(it) => {
                // Who leads may still be where this replica was when it looked at something else.
                let before = self.looks.question;
                while self.next_told().is_some_and(|it| Some(it.question) == before) {
                    self.let_go();
                }
                if self.is_past(it) { Seen::Past } else { Seen::Wait }
            }
        }
    }

    /// Says what was seen, after [`Seen::Do`].
    ///
    /// # Panics
    /// If another leads by now: between is nothing that comes in.
    pub fn tell_look(&mut self, question: u64, bytes: Arc<Vec<u8>>) {
        assert!(self.is_meta(), "only who leads tells what it sees");
        self.signals = self.signals.max(self.signals_heard);
        let look = Look { at: self.looks.next, signals: self.signals, question, bytes };
        self.looks.next.look += 1;
        for set in self.siblings() {
            self.tell_of(set, &look);
        }
    }

    /// Whether a sibling has not heard of many looks that were told.  It may have gone on to
    /// compute for long, so that nobody waits for it for good.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        let is_behind = |it: &SetId| {
            let Counts { to, heard_there, .. } = self.cluster[it.idx()].looks;
            heard_there + AHEAD_MAX < to
        };
        self.siblings().any(|it| self.is_awaited(it) && is_behind(&it))
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

    /// Whether who leads is known to be past this place, or to look at something else by now.
    fn is_past(&self, meta: SetId) -> bool {
        self.next_told().is_some() || self.looks.next < self.left_behind(meta)
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
