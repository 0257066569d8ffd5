//! One replica's receives, and who begins those from anybody.
//!
//! A receive from anybody takes another message in each set, so one replica decides: who leads
//! begins it, and tells whose message it took.  The others begin it from that one alone, and hold
//! back until then what was begun after it and might take the same message.  An event settles it
//! for good when the program comes to ask ([`Receives::decide`]).  What is told before that is a
//! *hint*, for a send may wait in each set for the receive, and the program ask for it behind the
//! send alone.  Who is marked leads no more: it goes on, with receives from anybody under way.  It
//! takes them back, the last first, and says of each that it took no message, or which.
//!
//! ```text
//! from anybody, begun by who leads ──► took a message ──► Matched ──► settled
//!                    └── leads no more ──► taken back ──► Released ──► begun by who leads now
//! ```
//!
//! Two sets in which such a receive is begun from anybody may take different messages, and then
//! their programs are not the same any more.  So never more than one has it begun like that, nor
//! any while one that strayed may have told a single sibling what it took.
//!
//! The program may cancel a receive.  Each replica takes it back, with what was begun behind it,
//! and all compare whether a message had come for it: it is cancelled only if none had one, for
//! what one has got comes to all.
//!
//! Of receives that might take each other's messages the first is told first: who goes on after
//! one that is gone knows of none whose message an earlier one, begun again, might take.  What is
//! told names the receive by its number and by all calls up to it, so that who made another call is
//! not heard.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::digest::Shape;
use crate::message::Message;
use crate::replica::Replica;
use crate::verdict::SetId;

#[cfg(test)]
mod explore;

/// Which messages a receive takes; nothing is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The communicator, by whatever tells it from others.
    pub comm: usize,
    /// A process of it.
    pub source: Option<i32>,
    /// A tag.
    pub tag: Option<i32>,
}

/// Whose message a receive took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Match {
    /// A process of the receive's communicator.
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
}

impl Pattern {
    fn takes(&self, comm: usize, it: Match) -> bool {
        let Match { source, tag } = it;
        self.comm == comm
            && self.source.is_none_or(|it| it == source)
            && self.tag.is_none_or(|it| it == tag)
    }

    fn overlaps(&self, other: &Self) -> bool {
        let meet = |one: Option<i32>, it: Option<i32>| one.is_none() || it.is_none() || one == it;
        self.comm == other.comm && meet(self.source, other.source) && meet(self.tag, other.tag)
    }

    fn only(self, it: Match) -> Self {
        Self { source: Some(it.source), tag: Some(it.tag), ..self }
    }
}

/// Patterns, to be asked at once whether any of them overlaps another.
///
/// Each is kept as what it says and with either side or both left out, so that four looks at most
/// answer, however many there are; and only once somebody asks, for mostly nobody does.
#[derive(Default)]
struct Patterns {
    added: Vec<Pattern>,
    kept: BTreeSet<(usize, Side, Side)>,
}

/// What a pattern says of sources or of tags; nothing where that is left out.
type Side = Option<Option<i32>>;

impl Patterns {
    fn add(&mut self, it: &Pattern) {
        self.added.push(*it);
    }

    fn overlap(&mut self, it: &Pattern) -> bool {
        for it in self.added.drain(..) {
            for source in [None, Some(it.source)] {
                self.kept.extend([None, Some(it.tag)].map(|tag| (it.comm, source, tag)));
            }
        }
        // What says any meets all; what says one meets any, and the same one.
        let meets = |side: Option<i32>| match side {
            None => [None; 2],
            it => [Some(None), Some(it)],
        };
        let has =
            |source| meets(it.tag).iter().any(|tag| self.kept.contains(&(it.comm, source, *tag)));
        !self.kept.is_empty() && meets(it.source).into_iter().any(has)
    }
}

/// How MPI has a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Begun {
    No,
    /// As the program asked, or from whom it was told.
    Surely,
    /// From anybody, before anybody knew whose message it takes.
    FromAnybody,
    /// Likewise, and it is taken back unless a message came before.
    TakenBack,
}

/// A receive that is not complete.
#[derive(Clone, Debug, Hash)]
pub struct Receive<B> {
    id: u64,
    pattern: Pattern,
    settled: Option<Match>,
    /// Whose message it took in who leads; in who leads itself, once it has told that.
    hint: Option<Match>,
    /// All calls of the program up to it.
    pub shape: Shape,
    /// Who may have begun it from anybody: whoever leads, or one that led.
    owner: Option<SetId>,
    /// The program cancels it, and all are about to learn whether it is.
    is_cancelled: bool,
    begun: Begun,
    taken: Option<Match>,
    /// What MPI needs for it.
    pub buffer: B,
}

impl<B> Receive<B> {
    /// The communicator.
    #[must_use]
    pub fn comm(&self) -> usize {
        self.pattern.comm
    }

    /// Whether the program asked for a message of any tag.
    #[must_use]
    pub fn is_of_any_tag(&self) -> bool {
        self.pattern.tag.is_none()
    }

    /// Whether MPI has it.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.begun != Begun::No
    }

    /// Whether MPI has it and has not brought its message.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.is_begun() && self.taken.is_none()
    }

    /// Whether it is to be taken back: MPI may say that it was, and then it took none.
    #[must_use]
    pub fn is_taken_back(&self) -> bool {
        self.begun == Begun::TakenBack
    }

    fn is_going_back(&self) -> bool {
        self.is_taken_back() && self.is_under_way()
    }

    fn is_open(&self) -> bool {
        self.pattern.source.is_none() && self.settled.is_none()
    }

    /// Whether nothing was told of whose message it takes.
    fn is_undecided(&self) -> bool {
        self.is_open() && self.hint.is_none()
    }

    fn is_wild(&self) -> bool {
        matches!(self.begun, Begun::FromAnybody | Begun::TakenBack)
    }

    fn told(&self, of: Match) -> Message {
        let Match { source, tag } = of;
        Message::Matched { receive: self.id, shape: self.shape, source, tag }
    }
}

/// What a sibling said of a receive and what it was settled as are two different things: one of
/// both makes other calls, and this replica has followed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misled;

/// A look at whose messages receives took ([`Receives::decide`]).
#[derive(Debug)]
pub struct Decision {
    /// Those before this place are still to be looked at.
    at: usize,
    /// The last first.
    taken: Vec<(u64, usize, Match)>,
}

/// All receives that are not complete, in the order in which they were begun.
#[derive(Clone, Debug, Hash)]
pub struct Receives<B> {
    all: VecDeque<Receive<B>>,
    n_ever: u64,
    /// Those of `all` that MPI does not know yet.
    n_waiting: usize,
    /// Some may be going back.
    are_going_back: bool,
    /// What was told of receives that the program has not come to.
    early: BTreeMap<u64, (Shape, Match)>,
    leads: Option<SetId>,
    /// What those said that led, before it was known here that they do no more: who, of which
    /// receive, after how many compares.
    released: Vec<(SetId, u64, u64)>,
    /// What was settled since so many compares; who has come past one more knows it.
    settled: (u64, Vec<Message>),
}

impl<B> Default for Receives<B> {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            n_ever: 0,
            n_waiting: 0,
            are_going_back: false,
            early: BTreeMap::new(),
            leads: None,
            released: Vec::new(),
            settled: (0, Vec::new()),
        }
    }
}

impl<B> Receives<B> {
    /// The program comes to a receive, after these calls and its own; returns its number, which all
    /// replicas give it.
    pub fn begin(&mut self, pattern: Pattern, shape: Shape, buffer: B) -> u64 {
        self.n_ever += 1;
        self.n_waiting += 1;
        let id = self.n_ever;
        let told = self.early.remove(&id).filter(|it| it.0 == shape);
        let hint = told.map(|it| it.1);
        self.all.push_back(Receive {
            id,
            pattern,
            settled: None,
            hint,
            shape,
            owner: None,
            is_cancelled: false,
            begun: Begun::No,
            taken: None,
            buffer,
        });
        id
    }

    /// One that is not complete.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Receive<B>> {
        self.idx(id).map(|it| &self.all[it])
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// If it is complete.
    pub fn kept(&mut self, id: u64) -> &mut Receive<B> {
        let idx = self.kept_idx(id);
        &mut self.all[idx]
    }

    /// Whether all are complete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there are any that MPI does not know yet.
    #[inline]
    #[must_use]
    pub fn are_waiting(&self) -> bool {
        0 < self.n_waiting
    }

    /// Whether MPI has any whose message it has not brought.
    #[must_use]
    pub fn are_under_way(&self) -> bool {
        self.all.iter().any(Receive::is_under_way)
    }

    /// Whether there are any on a communicator that MPI does not know yet.
    #[must_use]
    pub fn are_held_on(&self, comm: usize) -> bool {
        self.all.iter().any(|it| it.comm() == comm && !it.is_begun())
    }

    /// What MPI is to begin now, in this order, and as what.  Call [`Self::follow`] first.
    pub fn to_begin(&mut self, replica: &Replica) -> Vec<(u64, Pattern)> {
        let mut to_begin = Vec::new();
        if self.n_waiting == 0 {
            return to_begin;
        }
        let may_begin = |it: &Receive<B>| {
            // What one that strayed took may be known to another, who has begun it so.
            replica.is_meta()
                && !replica.is_stray_about()
                && it.owner.is_none_or(|owner| !replica.is_in_mpi(owner))
        };
        // Those that are not begun, and hold back what might take the same.
        let mut held = Patterns::default();
        // What MPI has before the first that waits holds back nothing, unless it goes back.
        let first = if self.are_going_back { 0 } else { self.first_waiting() };
        self.are_going_back = false;
        for it in self.all.range_mut(first..) {
            if it.is_begun() {
                if it.is_going_back() {
                    self.are_going_back = true;
                    held.add(&it.pattern);
                }
                continue;
            }
            let known = it.settled.or(it.hint);
            let pattern = known.map_or(it.pattern, |of| it.pattern.only(of));
            let is_wild = it.is_undecided();
            if it.is_cancelled || (is_wild && !may_begin(it)) || held.overlap(&pattern) {
                held.add(&it.pattern);
            } else {
                it.begun = if is_wild { Begun::FromAnybody } else { Begun::Surely };
                self.n_waiting -= 1;
                to_begin.push((it.id, pattern));
            }
        }
        to_begin
    }

    /// MPI has brought its message.  Returns it, to be changed.
    ///
    /// # Panics
    /// If it is complete.
    pub fn took(&mut self, id: u64, of: Match) -> &mut Receive<B> {
        let it = self.kept(id);
        it.taken = Some(of);
        it
    }

    /// MPI has taken it back.  Returns what siblings are told.
    pub fn release(&mut self, id: u64, replica: &Replica) -> Option<Message> {
        self.n_waiting += 1;
        let it = self.kept(id);
        it.begun = Begun::No;
        let calls = replica.n_calls();
        it.is_undecided().then_some(Message::Released { receive: id, calls })
    }

    /// Which MPI is to take back, in this order, if this replica leads no more: those from anybody,
    /// and what was begun after them and might take the same.  The last is first, so that none
    /// takes a message that one before it might have taken.
    pub fn to_take_back(&mut self, replica: &Replica) -> Vec<u64> {
        if replica.is_meta() {
            return Vec::new();
        }
        self.take_back(|it| it.is_wild() && it.is_undecided())
    }

    /// The program cancels a receive: returns which MPI is to take back, in this order.  Once none
    /// [is going back](Self::going_back), all compare whether one [has come](Self::has_come),
    /// and then it [stays](Self::stay) or [is over](Self::finish).
    ///
    /// # Panics
    /// If it is complete.
    pub fn cancel(&mut self, id: u64) -> Vec<u64> {
        self.kept(id).is_cancelled = true;
        self.take_back(|it| it.id == id)
    }

    /// Of which MPI has not said whether it took them back, or a message came before.
    #[must_use]
    pub fn going_back(&self) -> Vec<u64> {
        self.all.iter().filter(|it| it.is_going_back()).map(|it| it.id).collect()
    }

    /// Whether its message is here.
    #[must_use]
    pub fn has_come(&self, id: u64) -> bool {
        self.get(id).is_some_and(|it| it.taken.is_some())
    }

    /// A receive is not cancelled, since a message has come for it somewhere.
    ///
    /// # Panics
    /// If it is complete.
    pub fn stay(&mut self, id: u64) {
        self.kept(id).is_cancelled = false;
    }

    fn take_back(&mut self, is_due: impl Fn(&Receive<B>) -> bool) -> Vec<u64> {
        let mut back: Vec<usize> = Vec::new();
        let mut patterns = Patterns::default();
        for (idx, it) in self.all.iter().enumerate() {
            if it.is_under_way() && (is_due(it) || patterns.overlap(&it.pattern)) {
                patterns.add(&it.pattern);
                back.push(idx);
            }
        }
        let fresh = back.into_iter().rev().filter(|it| !self.all[*it].is_taken_back());
        let fresh: Vec<usize> = fresh.collect();
        fresh.iter().for_each(|it| self.all[*it].begun = Begun::TakenBack);
        self.are_going_back |= !fresh.is_empty();
        fresh.iter().map(|it| self.all[*it].id).collect()
    }

    /// Those whose messages siblings cannot know, and were not told of: from anybody, or begun
    /// behind one that is, and might take the same.
    fn unknown(&self) -> Vec<usize> {
        let mut unknown: Vec<usize> = Vec::new();
        let mut patterns = Patterns::default();
        for (idx, it) in self.all.iter().enumerate() {
            let is_known = it.settled.or(it.hint).is_some();
            if !is_known && (it.pattern.source.is_none() || patterns.overlap(&it.pattern)) {
                patterns.add(&it.pattern);
                unknown.push(idx);
            }
        }
        unknown
    }

    /// Which may have taken a message that siblings were not told of.
    #[must_use]
    pub fn untold(&self) -> Vec<u64> {
        self.untold_where(|_| true)
    }

    /// Those of them that are told before others: where one has come, [others](Self::untold) may
    /// have as well.
    #[must_use]
    pub fn untold_first(&self) -> Vec<u64> {
        let mut seen = BTreeSet::new();
        self.untold_where(|it| it.is_taken_back() || seen.insert(it.pattern))
    }

    fn untold_where(&self, mut is_asked: impl FnMut(&Receive<B>) -> bool) -> Vec<u64> {
        let begun = self.unknown().into_iter().map(|it| &self.all[it]);
        begun.filter(|it| it.is_under_way() && is_asked(it)).map(|it| it.id).collect()
    }

    /// What siblings are told of those that took a message.
    pub fn to_tell(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut before = Patterns::default();
        for idx in self.unknown() {
            let Receive { pattern, taken, .. } = self.all[idx];
            match taken {
                Some(of) if !before.overlap(&pattern.only(of)) => {
                    messages.push(self.tell(idx, of));
                }
                _ => before.add(&pattern),
            }
        }
        messages
    }

    fn tell(&mut self, idx: usize, of: Match) -> Message {
        let it = &mut self.all[idx];
        it.hint = Some(of);
        it.told(of)
    }

    /// Whether all replicas must be one about whose message it takes: [`Self::decide`] says.
    #[must_use]
    pub fn is_to_decide(&self, id: u64) -> bool {
        let idx = self.kept_idx(id);
        let it = &self.all[idx];
        let rival = |other: &Receive<B>| other.is_open() && other.pattern.overlaps(&it.pattern);
        it.is_open() || self.all.range(..idx).any(rival)
    }

    /// Begins to look at whose message one took, which is known here.
    ///
    /// # Panics
    /// If it is not known.
    #[must_use]
    pub fn decide(&self, id: u64) -> Decision {
        let at = self.kept_idx(id);
        let it = &self.all[at];
        let of = it.taken.expect("only what was taken is decided");
        Decision { at, taken: vec![(id, it.comm(), of)] }
    }

    /// Goes on with that.  Nothing if it is decided; else an earlier receive that could have taken
    /// one of these messages, and took another: this is called again once that one is known here.
    pub fn rival(&self, decision: &mut Decision) -> Option<u64> {
        while let Some(at) = decision.at.checked_sub(1) {
            let it = &self.all[at];
            let takes = |row: &(u64, usize, Match)| it.pattern.takes(row.1, row.2);
            if it.is_open() && decision.taken.iter().any(takes) {
                let Some(of) = it.taken else { return Some(it.id) };
                decision.taken.push((it.id, it.comm(), of));
            }
            decision.at = at;
        }
        None
    }

    /// Which receives are settled by that, and as what, in their order; and what siblings are told
    /// before the event.  Who waits in a send for one of them does not come to the event; and who
    /// has the event from one that is gone then knows no less of receives.
    pub fn decided(&mut self, decision: Decision) -> (Vec<(u64, Match)>, Vec<Message>) {
        let mut rows = Vec::new();
        let mut messages = Vec::new();
        for (id, _, of) in decision.taken.into_iter().rev() {
            let idx = self.kept_idx(id);
            rows.push((id, of));
            if self.all[idx].hint.is_none() {
                messages.push(self.tell(idx, of));
            }
        }
        (rows, messages)
    }

    /// A receive is settled.
    ///
    /// # Errors
    /// [`Misled`] if MPI has it begun from somebody else.
    ///
    /// # Panics
    /// If it is complete.
    pub fn settle(&mut self, id: u64, of: Match, replica: &Replica) -> Result<(), Misled> {
        let calls = replica.n_calls();
        if self.settled.0 != calls {
            self.settled = (calls, Vec::new());
        }
        let idx = self.kept_idx(id);
        let it = &mut self.all[idx];
        it.settled = Some(of);
        self.settled.1.push(it.told(of));
        if it.is_begun() && it.hint.is_some_and(|it| it != of) { Err(Misled) } else { Ok(()) }
    }

    /// It is complete.
    ///
    /// # Panics
    /// If it was already.
    pub fn finish(&mut self, id: u64) -> Receive<B> {
        let it = self.all.remove(self.kept_idx(id)).expect("it is kept");
        self.n_waiting -= usize::from(!it.is_begun());
        it
    }

    /// Whether another leads than before, so that [`Self::follow`] has something to do.
    #[inline]
    #[must_use]
    pub fn are_behind(&self, replica: &Replica) -> bool {
        replica.meta() != self.leads
    }

    /// Does what follows if another leads than before.  Returns what siblings are told.
    pub fn follow(&mut self, replica: &Replica) -> Vec<Message> {
        if !self.are_behind(replica) {
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.leads, replica.meta());
        let calls = replica.n_calls();
        let released = std::mem::take(&mut self.released);
        let Some(before) = before else { return Vec::new() };
        let is_free = |it: &Receive<B>| it.is_undecided() && it.owner.is_none() && !it.is_wild();
        if before == replica.own() {
            let free = self.all.iter().filter(|it| is_free(it));
            return free.map(|it| Message::Released { receive: it.id, calls }).collect();
        }
        if replica.is_in_mpi(before) {
            for it in self.all.iter_mut().filter(|it| is_free(it)) {
                let is_released =
                    |row: &(SetId, u64, u64)| (row.0, row.1) == (before, it.id) && calls <= row.2;
                if !released.iter().any(is_released) {
                    it.owner = Some(before);
                }
            }
        }
        Vec::new()
    }

    /// A sibling that leads tells which messages receives have taken, or one that led that they
    /// took none.  Nothing is begun before all is heard that was said: this replica may lead by
    /// now.
    pub fn hear(&mut self, from: SetId, said: Vec<Message>, replica: &Replica) {
        for it in said.into_iter().filter(|_| replica.is_there(from)) {
            match it {
                Message::Matched { receive, shape, source, tag } => {
                    self.hear_match(receive, shape, Match { source, tag });
                }
                Message::Released { receive, calls } => {
                    let Some(idx) = self.idx(receive) else { continue };
                    let it = &mut self.all[idx];
                    if it.owner == Some(from) {
                        it.owner = None;
                    } else {
                        self.released.push((from, receive, calls));
                    }
                }
                _ => {}
            }
        }
    }

    fn hear_match(&mut self, id: u64, shape: Shape, of: Match) {
        if self.n_ever < id {
            self.early.insert(id, (shape, of));
        } else if let Some(idx) = self.idx(id) {
            let it = &mut self.all[idx];
            if !it.is_begun() && it.shape == shape {
                it.hint = Some(of);
            }
        }
    }

    /// What siblings are told again when one is gone, before they hear that from this replica: it
    /// may have told this one alone, and whoever leads after it must not take another message.
    #[must_use]
    pub fn to_retell(&self) -> Vec<Message> {
        let told = |it: &Receive<B>| Some(it.told(it.hint.filter(|_| it.settled.is_none())?));
        let settled = self.settled.1.iter().cloned();
        let early = |(id, (shape, of)): (&u64, &(Shape, Match))| Message::Matched {
            receive: *id,
            shape: *shape,
            source: of.source,
            tag: of.tag,
        };
        let open = self.all.iter().filter_map(told);
        settled.chain(open).chain(self.early.iter().map(early)).collect()
    }

    /// Where the first is that MPI does not know, of which there are some, mostly at the end.
    fn first_waiting(&self) -> usize {
        let mut n_before = self.n_waiting;
        let is_first = |it: &Receive<B>| {
            n_before -= usize::from(!it.is_begun());
            n_before == 0
        };
        self.all.iter().rposition(is_first).expect("as many wait as are counted")
    }

    /// Where a receive is among those that are not complete, whose numbers rise.
    fn idx(&self, id: u64) -> Option<usize> {
        // Mostly it is the oldest.
        let is_first = self.all.front().is_some_and(|it| it.id == id);
        if is_first { Some(0) } else { self.all.binary_search_by_key(&id, |it| it.id).ok() }
    }

    fn kept_idx(&self, id: u64) -> usize {
        self.idx(id).expect("a receive is kept until it is complete")
    }
}

#[cfg(test)]
mod tests {
    use super::{Pattern, Patterns};

    #[test]
    fn patterns_overlap_where_one_of_them_does() {
        let sides = [None, Some(0), Some(1), Some(-1)];
        let all: Vec<Pattern> = [7, 8]
            .into_iter()
            .flat_map(|comm| sides.map(|source| (comm, source)))
            .flat_map(|(comm, source)| sides.map(|tag| Pattern { comm, source, tag }))
            .collect();
        for one in &all {
            for two in &all {
                let mut patterns = Patterns::default();
                [one, two].into_iter().for_each(|it| patterns.add(it));
                for it in &all {
                    let expected = one.overlaps(it) || two.overlaps(it);
                    assert_eq!(patterns.overlap(it), expected, "{one:?} {two:?} {it:?}");
                }
            }
        }
    }
}
