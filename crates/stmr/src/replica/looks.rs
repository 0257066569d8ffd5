//! Looks at clocks, which a program may make more often in one replica than in another; and so it
//! may ask whether something has come.
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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::twice::Twice;
use super::{Replica, Step};
use crate::message::Message;
use crate::verdict::{Double, SetId};

/// What shows this many bytes, as a folder's names may be, counts as a look more.
const LOOK_BYTES: usize = 1 << 11;

/// Who leads takes its time when it is farther ahead of those who listen, in looks.
const AHEAD_MAX: u64 = 256;

/// After so many looks one says how many it has heard.
const HEARD_EVERY: u64 = AHEAD_MAX / 2;

/// So many are kept for a sibling that lacks them when who told them is gone.
const KEPT_MAX: usize = 1 << 14;

/// Of so many bytes at the most, unless one alone has more.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Who leads hardly goes on when it is so far ahead, so that what is kept suffices.
const FAR_AHEAD: u64 = KEPT_MAX as u64 / 2;
const _: () = assert!(FAR_AHEAD as usize * (LOOK_BYTES + LOOK_SIZE) < KEPT_BYTES_MAX);

/// What a look takes beside its bytes.
const LOOK_SIZE: usize = 64;

/// A loop makes so many looks at the most from different sites in each round.
const PERIOD_MAX: usize = 4;

/// So many sites are remembered that were seen several times in a row.
const REPEATED_MAX: usize = 256;

/// So many looks that were told and not taken are looked through.
const SEEN_AHEAD: usize = 256;

/// What a program looks at, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// The clock, or what else is asked for.
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

impl Look {
    /// As how many looks it counts of those that one may be ahead.
    fn weight(&self) -> u64 {
        1 + (self.bytes.len() / LOOK_BYTES) as u64
    }

    fn size(&self) -> usize {
        self.bytes.len() + LOOK_SIZE
    }
}

/// Where in a program a look is, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookPlace {
    /// Compares before it.
    pub call: u64,
    /// Events before it.
    pub event: u64,
    /// Threads that who looks has begun after the last of those.
    pub thread: u64,
    /// Looks after the last of all these.
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
    kept_bytes: usize,
    /// The next one here.
    next: LookPlace,
    /// Who led before was known to be past all looks before this when another came to lead: what
    /// it did not look at nobody does.
    closed: LookPlace,
    /// What this replica has looked at here, the last of it at the end.
    asked: VecDeque<Question>,
    /// What who leads has looked at here several times in a row, and what it looked at last, as far
    /// as that was taken or let go of.
    repeated: BTreeSet<Question>,
    let_go: Option<Question>,
}

/// What a look is that the next which was told is not.
enum Strays {
    /// One of a loop that this replica is in, and who leads is not.
    Lingers,
    /// So many were told before it, of loops that this replica was not in or has left.
    Skips(usize),
    /// None that was told.
    Unknown,
}

impl Looks {
    fn begin(&mut self, next: LookPlace) {
        self.next = next;
        self.asked.clear();
        self.repeated.clear();
        self.let_go = None;
    }

    /// Keeps one for siblings, and lets go of the oldest that are too many.
    fn keep(&mut self, look: Look) {
        self.kept_bytes += look.size();
        self.kept.push_back(look);
        let is_much = |it: &Self| KEPT_MAX < it.kept.len() || KEPT_BYTES_MAX < it.kept_bytes;
        while 1 < self.kept.len() && is_much(self) {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |it| it.size());
        }
    }

    fn ask(&mut self, question: Question) {
        if self.asked.len() == PERIOD_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(question);
    }

    /// Hears or sees what who leads looked at next.
    fn pass(&mut self, question: Question) {
        if self.let_go == Some(question) && self.repeated.len() < REPEATED_MAX {
            self.repeated.insert(question);
        }
        self.let_go = Some(question);
    }

    /// The looks that were told here and are not taken, but for those after one that is not there:
    /// of a look that is still to come nobody knows what it is.
    fn told_here(&self) -> impl Iterator<Item = &Look> {
        let after = LookPlace { thread: self.next.thread + 1, look: 0, ..self.next };
        let told = self.told.range(self.next..after).zip(self.next.look..);
        told.take_while(|(it, n)| it.0.look == *n).map(|(it, _)| &it.1.1)
    }

    /// Whether who leads is known to look from there several times in a row.
    fn repeats(&self, question: Question) -> bool {
        let told = self.told_here().take(SEEN_AHEAD).map(|it| it.question);
        let mut row = self.let_go.into_iter().chain(told).map(|it| it == question);
        let mut before = false;
        self.repeated.contains(&question) || row.any(|it| std::mem::replace(&mut before, it) && it)
    }

    /// What a look is, where another was told before it or none.
    ///
    /// A replica that asks the same again lingers in a loop, unless what comes before it is another
    /// loop, which it was not in.  So does one that asked the same a few looks ago, if anything
    /// comes before that it has not asked of late; or if it was not told again, and what comes
    /// first was asked longer ago.  Else it has left a loop, or was in none.
    fn strays(&self, question: Question) -> Strays {
        let Some(n_before) = self.told_here().position(|it| it.question == question) else {
            let asked_at = |of: Question| self.asked.iter().rposition(|it| *it == of);
            let next = self.told_here().next().map(|it| asked_at(it.question));
            let lingers = next.is_some_and(|it| it < asked_at(question));
            return if lingers { Strays::Lingers } else { Strays::Unknown };
        };
        let before = || self.told_here().take(n_before).map(|it| it.question);
        let lingers = if self.asked.back() == Some(&question) {
            let is_loop = before().next().is_some_and(|it| self.repeats(it));
            0 < n_before && (self.repeats(question) || !is_loop)
        } else {
            self.asked.contains(&question) && before().any(|it| !self.asked.contains(&it))
        };
        if lingers { Strays::Lingers } else { Strays::Skips(n_before) }
    }

    /// The first look that was told here and is of no loop, nor of one that this replica knows.
    fn next_alone(&self) -> Option<&Look> {
        let is_alone =
            |it: &&Look| !self.asked.contains(&it.question) && !self.repeats(it.question);
        self.told_here().find(is_alone)
    }
}

/// How many looks were told on the link to a sibling, and by the sibling, by their weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Counts {
    to: u64,
    heard_there: u64,
    heard: u64,
}

impl Replica {
    /// Comes to a look; ask again after every input while the answer is [`Seen::Wait`].  `is_past`
    /// says that who leads is beyond all looks here, by what the core does not hear of.
    pub fn look(&mut self, question: Question, is_past: bool) -> Seen {
        let seen = match self.accused() {
            Some(Step::Leave) => Seen::Leave,
            Some(Step::Restart(why)) => Seen::Restart(why),
            Some(_) => Seen::Wait,
            None => self.find_look(question, is_past),
        };
        if seen != Seen::Wait {
            self.looks.ask(question);
        }
        seen
    }

    fn find_look(&mut self, question: Question, is_past: bool) -> Seen {
        match self.looks.strays(question) {
            Strays::Lingers => return Seen::Past,
            Strays::Skips(n_before) => {
                for _ in 0..n_before {
                    self.let_go();
                }
                return self.let_go().map_or(Seen::Wait, Seen::Take);
            }
            Strays::Unknown => {}
        }
        match self.meta {
            None => Seen::Restart(Double::NoWholeSet),
            Some(_) if self.looks.next < self.looks.closed => self.miss(question),
            Some(it) if it == self.own => {
                // Those that are left here are of who led before, and of something else.
                while self.let_go().is_some() {}
                Seen::Do
            }
            Some(it) => {
                // Who leads may still be in a loop that this replica has left.
                while let Some(next) = self.next_told().map(|it| it.question)
                    && self.looks.asked.contains(&next)
                    && self.looks.repeats(next)
                {
                    self.let_go();
                }
                let is_past = is_past || self.looks.next < self.left_behind(it);
                if is_past { self.miss(question) } else { Seen::Wait }
            }
        }
    }

    /// Who leads has left this place and made no such look, or made it from another site: compilers
    /// have one of the same look for who was in a loop before it, and one for who was not.
    fn miss(&self, question: Question) -> Seen {
        let like = self.looks.next_alone().filter(|it| it.question.clock == question.clock);
        like.map_or(Seen::Past, |it| Seen::Take(it.bytes.clone()))
    }

    /// Says what was seen, after [`Seen::Do`].
    ///
    /// # Panics
    /// If another leads by now: between is nothing that comes in.
    pub fn tell_look(&mut self, question: Question, bytes: Arc<Vec<u8>>) {
        assert!(self.is_meta(), "only who leads tells what it sees");
        let signals = self.signals.get().max(self.signals_heard.get());
        self.signals = Twice::of(signals);
        self.looks.pass(question);
        let look = Look { at: self.looks.next, signals, question, bytes };
        self.looks.next.look += 1;
        for set in self.siblings() {
            self.tell_of(set, &look);
        }
    }

    /// How many of the looks that were told a sibling has not heard of.  It may have gone on to
    /// compute for long, so that nobody waits for it for good.
    #[must_use]
    pub fn ahead(&self) -> Ahead {
        match self.listeners().map(|it| self.behind(it)).max().unwrap_or_default() {
            0..=AHEAD_MAX => Ahead::Little,
            FAR_AHEAD.. => Ahead::Far,
            _ => Ahead::Much,
        }
    }

    /// Siblings of which who leads is far ahead.
    #[must_use]
    pub fn left_behind_in_looks(&self) -> Vec<SetId> {
        self.listeners().filter(|it| AHEAD_MAX < self.behind(*it)).collect()
    }

    fn listeners(&self) -> impl Iterator<Item = SetId> {
        self.siblings().filter(|it| self.is_awaited(*it) && !self.has_offered(*it))
    }

    /// How many looks were told to a sibling that it has not heard of.
    fn behind(&self, set: SetId) -> u64 {
        let Counts { to, heard_there, .. } = self.cluster[set.idx()].looks;
        to.saturating_sub(heard_there)
    }

    /// Whether a sibling has come to the compare that this replica is before.
    #[must_use]
    pub fn has_offered(&self, set: SetId) -> bool {
        self.cluster[set.idx()].offers.at(self.call).is_some()
    }

    /// Bytes kept for siblings: events since the last compare, and looks, of which each replica
    /// has others.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.log_bytes + self.looks.kept_bytes
    }

    pub(super) fn hear_look(&mut self, from: SetId, look: Look) {
        let next = self.looks.next;
        let is_known = look.at < next || self.looks.told.contains_key(&look.at);
        let is_of_before = (look.at.call, look.at.event) < (next.call, next.event);
        if is_known && !is_of_before {
            self.count_look(from, look.weight());
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
        let (call, event) = (self.call, self.event);
        self.looks.begin(LookPlace { call, event, ..LookPlace::default() });
    }

    /// Goes on where who looks begins a thread, for which it may wait: what it looks at then is not
    /// what it looked at before, however often it did.
    pub fn begin_thread(&mut self) {
        let thread = self.looks.next.thread + 1;
        let next = LookPlace { thread, look: 0, ..self.looks.next };
        self.let_go_before(next);
        self.looks.begin(next);
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
        self.looks.kept_bytes = 0;
    }

    /// One that strayed has told nothing.
    pub(super) fn unhear_looks(&mut self, set: SetId) {
        self.looks.told.retain(|_, it| it.0 != set);
    }

    fn tell_of(&mut self, set: SetId, look: &Look) {
        if self.is_awaited(set) {
            self.cluster[set.idx()].looks.to += look.weight();
            self.tell(set, Message::Look(look.clone()));
        }
    }

    /// The place after all looks that may follow here.
    fn after_looks(&self) -> LookPlace {
        LookPlace { call: self.call, event: self.event + 1, ..LookPlace::default() }
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
        let after = |call, event| LookPlace { call, event: event + 1, ..LookPlace::default() };
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
        self.signals = Twice::of(self.signals.get().max(look.signals));
        let next = self.looks.next;
        if (LookPlace { look: next.look, ..look.at }) == next {
            self.looks.pass(look.question);
        }
        let weight = look.weight();
        self.looks.keep(look);
        self.count_look(from, weight);
    }

    fn count_look(&mut self, from: SetId, weight: u64) {
        let counts = &mut self.cluster[from.idx()].looks;
        let before = counts.heard;
        counts.heard += weight;
        let heard = counts.heard;
        if before / HEARD_EVERY < heard / HEARD_EVERY {
            self.tell(from, Message::Looked(heard));
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
            if it == b'|' {
                leads.begin_thread();
                continue;
            }
            assert_eq!(leads.look(question(it), false), Seen::Do);
            leads.tell_look(question(it), vec![idx].into());
        }
        leads.offer(Shape(1), Digest::of(b"x"), 1);
        while let Some((to, message)) = leads.poll() {
            if to.contains(set) {
                follows.handle(Input::Message(meta, message));
            }
        }
        let seen = looks.bytes().map(|it| {
            if it == b'|' {
                follows.begin_thread();
                return '|';
            }
            match follows.look(question(it), false) {
                Seen::Take(bytes) => char::from(bytes[0]),
                Seen::Past => '.',
                other => panic!("{led} {looks}: {other:?}"),
            }
        });
        assert_eq!(seen.collect::<String>(), wanted, "{led}, {looks}");
    }

    /// Goal: folders with many names that are listed again and again take no more memory than
    /// clocks do, in who lists or in who is told.  Method: who leads lists until it is far ahead,
    /// its siblings take what they were told, and so on; nobody comes to a compare.
    #[test]
    fn what_long_looks_show_is_kept_up_to_a_bound_and_who_leads_waits_for_those_who_take_it() {
        const LENGTH: usize = 300_000;
        let sets = [0, 1, 2].map(SetId::new);
        let mut all =
            sets.map(|own| Replica::new(ReplicaOptions { own, replicas: 3, trust_after: 2 }));
        let question = Question { clock: 1, site: 2 };
        let (mut n, mut most) = (0_u64, 0);
        for _ in 0..6 {
            let mut n_told = 0;
            while all[0].ahead() != Ahead::Far {
                assert_eq!(all[0].look(question, false), Seen::Do);
                let mut bytes = n.to_le_bytes().to_vec();
                bytes.resize(LENGTH, 0);
                all[0].tell_look(question, bytes.into());
                (n, n_told) = (n + 1, n_told + 1);
            }
            assert!(n_told * LENGTH <= KEPT_BYTES_MAX / 2 + 2 * LENGTH, "{n_told}");
            while let Some((to, message)) = all[0].poll() {
                to.iter().for_each(|it| {
                    all[it.idx()].handle(Input::Message(sets[0], message.clone()));
                });
            }
            for idx in [1, 2] {
                for at in n - n_told as u64..n {
                    let Seen::Take(bytes) = all[idx].look(question, false) else { panic!("{at}") };
                    assert!(bytes.starts_with(&at.to_le_bytes()));
                }
                // Who lacks what the other has is told of it while that is kept.
                assert!(n_told <= all[idx].looks.kept.len());
                most = most.max(all[idx].kept_bytes());
                while let Some((to, message)) = all[idx].poll() {
                    to.iter().for_each(|it| {
                        all[it.idx()].handle(Input::Message(sets[idx], message.clone()));
                    });
                }
            }
            assert_eq!(all[0].ahead(), Ahead::Little);
        }
        assert!(most <= KEPT_BYTES_MAX && KEPT_BYTES_MAX - 2 * LENGTH < most, "{most}");
    }

    #[test]
    fn a_look_after_a_loop_is_told_from_those_in_it() {
        check("XXXY", "XXXY", "0123");
        // It has left the loop earlier, or was not in it.
        check("XXXY", "XY", "03");
        check("XXXY", "Y", "3");
        // It lingers in the loop, or who leads was not in it.
        check("XXXY", "XXXXXY", "012..3");
        check("Y", "XXY", "0.0");
        check("YZ", "XXYZ", "0.01");
        // The look after the loop has another site for who was not in it.
        check("XXXYZ", "yZ", "34");
        // Another loop after it, and both again.
        check("XXXZZ", "XXXXZZ", "012.34");
        check("XXXZZ", "XZZ", "034");
        check("XXXYXXXY", "XYXXXXXY", "03456..7");
        // Two looks in a loop, which is left between them.
        check("ABABAY", "ABABABY", "01234.5");
        check("ABABABY", "ABAY", "0126");
        check("ABCABCABY", "ABY", "018");
        // Each waits for a thread that was begun before.
        check("XXY|Y|XY", "XY|XXXY|Y", "02|4..4|7");
        // Waits one after the other, each timed, of which each takes its own number of looks.
        check("TXXYTXXXY", "TXYTXXXXXY", "0134567..8");
        check("TXYTXXYTY", "TXXYTYTXY", "01.2367.8");
        check("TXXXTXT", "TTXXT", "045.6");
    }
}
