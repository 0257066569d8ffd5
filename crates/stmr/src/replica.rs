//! One replica's view of its cluster.
//!
//! ```text
//! offer ──► (offers of all live siblings) ──► Go          contents leave
//!                                         ├─► Serve       contents leave, and mend a sibling's
//!                                         ├─► Replace     the majority's leave for mine
//!                                         ├─► Leave       I have strayed
//!                                         └─► Restart     definition 8
//! begin ──► Do      settle it yourself, then `finish`
//!       ├─► Take    the cluster has it already
//!       └─► Wait    for the meta, or for whoever feeds me
//! ```
//!
//! What makes it sound: a replica passes a compare only with the offers of all live siblings.  So
//! whatever a replica lacks, a sibling took it after the last compare, and keeps it until the next
//! ([`Replica::log_bytes`] bounds that).  When a link ends, the survivors first tell each other all
//! that they had from the dead: what one survivor knows binds both.
//!
//! Only one replica settles a decision.  It does so if all that are before it in the order (trusted
//! before marked, then by number) are dead or have said that they left; each of those sent what it
//! had settled before it said so.

mod feeds;
mod looks;
mod stray;
mod twice;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use self::twice::Twice;
use crate::digest::{Digest, Shape};
use crate::message::{Event, EventKind, Message};
use crate::verdict::{Double, Offer, Offers, REPLICAS_MAX, SetId, Sets, Verdict, judge};

pub use looks::{Ahead, Look, LookPlace, Question, Seen};

/// What a replica is.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaOptions {
    /// Its number in the cluster.
    pub own: SetId,
    /// How many the cluster has: 1 counts, 2 detects, 3 masks.
    pub replicas: usize,
    /// After how many equal compares a marked replica is trusted again.
    pub trust_after: u32,
}

/// What came to a replica.
#[derive(Clone, Debug)]
pub enum Input {
    /// A sibling's message.
    Message(SetId, Message),
    /// A sibling's link has ended.
    Closed(SetId),
    /// Another process of this replica's set is gone: leave MPI.
    SetBroken,
}

/// What a replica may do at a compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// Its contents leave.
    Go,
    /// Its contents leave; call [`Replica::serve`] with them, for these have wrong ones.
    Serve(Vec<SetId>),
    /// These contents leave for its own.
    Replace(Vec<u8>),
    /// It has strayed: it ends, without a word to MPI.
    Leave,
    /// The program starts again.
    Restart(Double),
}

/// What a replica does about something that comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Settle it, then call [`Replica::finish`].
    Do,
    /// It is settled: this came.
    Take(Arc<Vec<u8>>),
    /// Nothing yet.
    Wait,
    /// It has strayed.
    Leave,
    /// The program starts again.
    Restart(Double),
}

/// What happened to the cluster, for the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A replica that was trusted gave wrong contents.
    Marked(SetId),
    /// A replica made another call.
    Strayed(SetId),
    /// A marked replica is trusted again.
    Trusted(SetId),
    /// A replica leads that did not before.
    Promoted(SetId),
    /// A replica leads no more where another can, as it was asked to.
    Yielded(SetId),
    /// A replica is gone.
    Died(SetId),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Sibling {
    /// Equal compares still wanted before it is trusted.
    marked: u32,
    /// It leads only if no other can that is trusted as much.
    yielded: bool,
    /// It has left MPI.
    left: bool,
    /// Its link has ended.
    closed: bool,
    /// All survivors know that it is gone.
    dead: bool,
    /// The verdict was that it strayed.
    strayed: bool,
    /// It said that its end is no death.
    bye: bool,
    /// What it offered, from the compare before this one on.
    offers: Offers,
    /// What it sent that is not taken yet.
    events: BTreeMap<u64, Event>,
    /// What its MPI brought, where another feeds this replica.
    echoes: BTreeMap<u64, Digest>,
    /// Whose ends it has told of.
    told: Vec<SetId>,
    /// It found this event of that sibling to be of another call.
    accuses: Option<(SetId, u64)>,
    /// Looks that were told on its link.
    looks: looks::Counts,
}

/// One replica's view of its cluster.
#[derive(Clone, Debug)]
pub struct Replica {
    own: SetId,
    trust_after: u32,
    cluster: Vec<Sibling>,
    call: u64,
    event: u64,
    offered: Option<Offer>,
    /// How many signals this replica has heard of, and how many are due in all.
    signals_heard: Twice,
    signals: Twice,
    /// It was asked to lead no more, and says so at its next compare.
    yields: bool,
    /// What is compared next was held back for long, as this replica found, and as one of those
    /// that came to the last compare did.
    tarries: bool,
    tarried: bool,
    /// A message has come for the receive that is to be cancelled at the next compare, here, and to
    /// one of those that came to the last compare.
    took: bool,
    any_took: bool,
    /// The agreed digest of contents that a sibling owes this replica.
    owed: Option<(u64, Digest)>,
    /// Contents that siblings sent for this compare, maybe before this replica knew its verdict.
    bytes: Vec<(u64, Vec<u8>)>,
    /// Events since the last compare.
    log: Vec<Event>,
    log_bytes: usize,
    looks: looks::Looks,
    out: VecDeque<(Sets, Message)>,
    notes: VecDeque<Note>,
    meta: Option<SetId>,
}

impl Replica {
    /// A replica before the first call of its program.
    #[must_use]
    pub fn new(options: ReplicaOptions) -> Self {
        assert!(options.own.idx() < options.replicas, "{} of {}", options.own, options.replicas);
        let mut this = Self {
            own: options.own,
            trust_after: options.trust_after,
            cluster: vec![Sibling::default(); options.replicas],
            call: 0,
            event: 0,
            offered: None,
            signals_heard: Twice::default(),
            signals: Twice::default(),
            yields: false,
            tarries: false,
            tarried: false,
            took: false,
            any_took: false,
            owed: None,
            bytes: Vec::new(),
            log: Vec::new(),
            log_bytes: 0,
            looks: looks::Looks::default(),
            out: VecDeque::new(),
            notes: VecDeque::new(),
            meta: None,
        };
        this.meta = feeds::leads(&this.cluster);
        this
    }

    /// Takes what came.
    pub fn handle(&mut self, input: Input) {
        match input {
            // What was offered changes nothing else before it is judged.
            Input::Message(from, message @ Message::Offer(_)) => return self.hear(from, message),
            Input::Message(from, message) => self.hear(from, message),
            Input::Closed(set) => self.close(set),
            Input::SetBroken => self.leave_mpi(),
        }
        self.settle();
    }

    /// The next message to send, and to whom.
    pub fn poll(&mut self) -> Option<(Sets, Message)> {
        self.out.pop_front()
    }

    /// Whether anything happened to the cluster.
    #[inline]
    #[must_use]
    pub fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// The next thing that happened to the cluster.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// Whether this replica's set has lost a member, so that it must not touch MPI.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.cluster[self.own.idx()].left
    }

    /// Whether this replica leads its cluster.
    #[must_use]
    pub fn is_meta(&self) -> bool {
        self.meta == Some(self.own)
    }

    /// Who leads the cluster: nobody if every set has lost a process.
    #[must_use]
    pub fn meta(&self) -> Option<SetId> {
        self.meta
    }

    /// Whether a sibling is there and calls MPI, as far as all survivors know.
    #[must_use]
    pub fn is_in_mpi(&self, set: SetId) -> bool {
        self.is_there(set) && !self.cluster[set.idx()].left
    }

    /// Bytes kept for siblings since the last compare; an empty compare lets go of them.  All
    /// replicas of a cluster have the same at the same place of the program.
    #[must_use]
    pub fn log_bytes(&self) -> usize {
        self.log_bytes
    }

    /// Compares made so far.
    #[must_use]
    pub fn n_calls(&self) -> u64 {
        self.call
    }

    /// This replica has heard of so many signals in all.
    pub fn hear_signals(&mut self, n: u32) {
        self.signals_heard = Twice::of(n);
    }

    /// This replica's host is to go: from its next compare on another leads, if one can that is
    /// trusted as much.
    pub fn yield_lead(&mut self) {
        self.yields = true;
    }

    /// What this replica is about to compare was held back for long.
    pub fn tell_tarried(&mut self) {
        self.tarries = true;
    }

    /// Whether one of those that came to the last compare had held back for long what was compared.
    /// All replicas have the same after the same compare.
    #[must_use]
    pub fn tarried(&self) -> bool {
        self.tarried
    }

    /// A message has come here for the receive that the next compare is about.
    pub fn tell_took(&mut self) {
        self.took = true;
    }

    /// Whether one of those that came to the last compare had said that.  All replicas have the
    /// same after the same compare.
    #[must_use]
    pub fn any_took(&self) -> bool {
        self.any_took
    }

    /// How many signals are due since the last compare: the most that one of those that came to it
    /// had heard of.  All replicas have the same after the same compare.
    #[must_use]
    pub fn signals(&self) -> u32 {
        self.signals.get()
    }

    /// Who is late: siblings without an offer for this compare while another has one.
    #[must_use]
    pub fn late(&self) -> Vec<SetId> {
        let offered = |it: &SetId| self.cluster[it.idx()].offers.at(self.call).is_some();
        if self.offered.is_none() || !self.siblings().any(|it| offered(&it)) {
            return Vec::new();
        }
        self.siblings().filter(|it| self.is_awaited(*it) && !offered(it)).collect()
    }

    /// Who is to settle what [`Replica::begin`] waits for: the meta, if it is another, or all whose
    /// MPIs are to bring it.
    #[must_use]
    pub fn settlers(&self) -> Vec<SetId> {
        let settles = |it: &SetId| {
            Some(*it) == self.meta || (self.has_left() && !self.cluster[it.idx()].left)
        };
        self.siblings().filter(|it| self.is_awaited(*it) && settles(it)).collect()
    }

    /// Siblings that may still say something.
    #[must_use]
    pub fn awaited(&self) -> Vec<SetId> {
        self.siblings().filter(|it| self.is_awaited(*it)).collect()
    }

    /// The number of the event that comes next.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        self.event
    }

    /// Which one of the cluster this is.
    #[must_use]
    pub fn own(&self) -> SetId {
        self.own
    }

    /// Those of its siblings that are there.
    #[must_use]
    pub fn others(&self) -> Vec<SetId> {
        self.siblings().filter(|it| self.is_there(*it)).collect()
    }

    /// Comes to a compare with contents of this `digest` and `length`; then ask
    /// [`Replica::passed`] after every input.
    ///
    /// # Panics
    /// If the last compare is not over.
    pub fn offer(&mut self, shape: Shape, digest: Digest, length: u64) {
        assert!(self.offered.is_none(), "a compare begins after the one before is over");
        self.end_looks();
        let (call, event) = (self.call, self.event);
        let (signals, yields) = (self.signals_heard.get(), self.yields);
        let [tarries, took] = [&mut self.tarries, &mut self.took].map(std::mem::take);
        let offer = Offer { call, event, shape, digest, length, signals, yields, tarries, took };
        self.offered = Some(offer);
        self.cluster[self.own.idx()].offers.keep(offer);
        self.tell_all(Message::Offer(offer));
    }

    /// What the compare came to, or nothing while it lasts.
    pub fn passed(&mut self) -> Option<Passed> {
        if self.is_expelled() {
            return Some(Passed::Leave);
        }
        if self.owed.is_none() {
            let passed = self.pass()?;
            if passed.is_some() {
                return passed;
            }
        }
        let (at, digest) = self.owed?;
        let is_right = |it: &(u64, Vec<u8>)| it.0 == at && Digest::of(&it.1) == digest;
        if let Some(idx) = self.bytes.iter().position(is_right) {
            let (_, bytes) = self.bytes.swap_remove(idx);
            self.bytes.clear();
            self.owed = None;
            return Some(Passed::Replace(bytes));
        }
        let alone = !self.siblings().any(|it| self.is_there(it));
        alone.then_some(Passed::Restart(Double::Lone))
    }

    /// Nothing while the compare lasts; nothing in it if siblings owe the contents.
    #[allow(clippy::option_option, reason = "the outer one is time, the inner one the answer")]
    fn pass(&mut self) -> Option<Option<Passed>> {
        self.offered?;
        let mut offers = [None; REPLICAS_MAX];
        let mut is_over = false;
        for (set, it) in SetId::all(REPLICAS_MAX).zip(&self.cluster) {
            let offer = it.offers.at(self.call);
            if set != self.own && self.is_there(set) && (it.closed || offer.is_none()) {
                // It is waited for, or for what all others had from it.
                return None;
            }
            is_over |= it.bye && offer.is_none();
            offers[set.idx()] = offer;
        }
        if is_over {
            // Siblings end only after all agreed to; whoever still computes then has strayed.
            return Some(Some(Passed::Leave));
        }
        match judge(&offers[..self.cluster.len()], self.cluster.len()) {
            Verdict::Restart(why) => {
                // Who is gone may have offered what only that one had come to.
                let is_alone = !self.siblings().any(|it| self.is_there(it));
                Some(Some(Passed::Restart(if is_alone { Double::Lone } else { why })))
            }
            Verdict::Agreed { offer, wrong, strayed } => Some(self.agree(&offer, &wrong, &strayed)),
        }
    }

    /// What is offered for the compare that lasts, by those that have come to it.
    #[must_use]
    pub fn offers(&self) -> Vec<(SetId, Offer)> {
        let of = |it: &Sibling| it.offers.at(self.call).copied();
        let all = SetId::all(self.cluster.len()).zip(&self.cluster);
        all.filter_map(|(set, it)| Some((set, of(it)?))).collect()
    }

    /// Goes on from a compare that came to no majority, where what was to be compared may be each
    /// replica's own, and stays so.  All replicas find the same, and all do this or none.
    ///
    /// # Panics
    /// If there is no compare to go on from.
    pub fn concede(&mut self) {
        assert!(self.offered.take().is_some(), "a compare is conceded while it lasts");
        self.call += 1;
        self.log.clear();
        self.log_bytes = 0;
        self.forget_looks();
        self.begin_looks();
        let call = self.call;
        for it in &mut self.cluster {
            it.offers.forget_before(call - 1);
            it.accuses = it.accuses.filter(|(_, event)| self.event <= *event);
        }
    }

    /// Gives the contents that were agreed on to those whose own were wrong.
    pub fn serve(&mut self, wrong: &[SetId], bytes: &[u8]) {
        let call = self.call - 1;
        for set in wrong {
            self.tell(*set, Message::Bytes { call, bytes: bytes.to_vec() });
        }
    }

    /// Comes to an event; ask again after every input while the answer is [`Step::Wait`].
    pub fn begin(&mut self, kind: EventKind, shape: Shape) -> Step {
        self.end_looks();
        if kind == EventKind::Data && !self.has_left() {
            return Step::Do;
        }
        if let Some(step) = self.accused() {
            return step;
        }
        let number = self.event;
        let found = self.cluster.iter().position(|it| it.events.contains_key(&number));
        if let Some(set_idx) = found {
            let event = &self.cluster[set_idx].events[&number];
            if event.shape == shape && event.kind == kind {
                let event = event.clone();
                match self.is_echoed(&event, SetId::new(set_idx)) {
                    None => return Step::Wait,
                    Some(false) => return Step::Restart(Double::NoMajority),
                    Some(true) => {}
                }
                let bytes = event.bytes.clone();
                self.keep(event);
                return Step::Take(bytes);
            }
            return self.accuse(SetId::new(set_idx));
        }
        match self.meta {
            Some(it) if it == self.own => Step::Do,
            Some(it) if self.has_skipped(it, kind) => self.accuse(it),
            Some(_) => Step::Wait,
            None => Step::Restart(Double::NoWholeSet),
        }
    }

    /// Whether what `giver` fed is what the MPIs of all others brought that are trusted; nothing
    /// before they have said so.  One MPI's word is no majority, and would be two voices.
    fn is_echoed(&self, event: &Event, giver: SetId) -> Option<bool> {
        if event.kind == EventKind::Decision {
            return Some(true);
        }
        let digest = Digest::of(&event.bytes);
        for set in self.siblings().filter(|it| *it != giver) {
            let it = &self.cluster[set.idx()];
            let own = it.events.get(&event.number).map(|it| Digest::of(&it.bytes));
            let said = it.echoes.get(&event.number).copied().or(own);
            match said {
                Some(said) if it.marked == 0 && said != digest => return Some(false),
                None if it.marked == 0 && !it.left && self.is_awaited(set) => return None,
                _ => {}
            }
        }
        Some(true)
    }

    /// Says what came, after [`Step::Do`].
    pub fn finish(&mut self, kind: EventKind, shape: Shape, bytes: Arc<Vec<u8>>) {
        let event = Event { number: self.event, kind, shape, bytes };
        self.keep(event);
    }

    /// The program has ended and all have agreed that it has.
    pub fn end(&mut self) {
        self.tell_all(Message::Bye);
    }

    /// For the explorer: all that the future depends on.
    #[cfg(test)]
    pub(crate) fn hash_state(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        (&self.cluster, self.call, self.event, self.offered, self.owed).hash(hasher);
        (self.signals_heard, self.signals, self.yields).hash(hasher);
        (self.tarries, self.tarried, self.took, self.any_took).hash(hasher);
        (&self.bytes, &self.log, &self.looks, self.meta).hash(hasher);
        self.out.hash(hasher);
    }

    fn siblings(&self) -> impl Iterator<Item = SetId> + use<> {
        let own = self.own;
        SetId::all(self.cluster.len()).filter(move |it| *it != own)
    }

    /// Whether a sibling is there: neither gone, nor found to make other calls.
    #[must_use]
    pub fn is_there(&self, set: SetId) -> bool {
        let it = &self.cluster[set.idx()];
        !it.dead && !it.strayed && !it.bye
    }

    /// Whether one that strayed may still be heard by some sibling, or was by one that has not yet
    /// said all that it had from it.
    #[must_use]
    pub fn is_stray_about(&self) -> bool {
        self.siblings().any(|it| self.cluster[it.idx()].strayed && !self.has_fallen(it))
    }

    /// Whether its link has ended, and a survivor has not yet told what it had from it.
    fn is_falling(&self, set: SetId) -> bool {
        self.is_there(set) && self.cluster[set.idx()].closed
    }

    /// Whether its links have ended, and all survivors have told what they had from it.
    fn has_fallen(&self, set: SetId) -> bool {
        let told = |other: SetId| self.cluster[other.idx()].told.contains(&set);
        self.cluster[set.idx()].closed
            && self.siblings().all(|it| it == set || !self.is_awaited(it) || told(it))
    }

    fn is_awaited(&self, set: SetId) -> bool {
        self.is_there(set) && !self.cluster[set.idx()].closed
    }

    fn tell(&mut self, set: SetId, message: Message) {
        self.out.push_back((set.into(), message));
    }

    fn tell_all(&mut self, message: Message) {
        let all: Sets = self.siblings().filter(|it| self.is_awaited(*it)).collect();
        if !all.is_empty() {
            self.out.push_back((all, message));
        }
    }

    fn hear(&mut self, from: SetId, message: Message) {
        if from == self.own || self.cluster[from.idx()].strayed {
            // Down is about a third, and still true.
            if let Message::Down { .. } = message {
                self.hear_of_end(from, message);
            }
            return;
        }
        match message {
            Message::Offer(offer) => {
                self.cluster[from.idx()].offers.keep(offer);
            }
            Message::Bytes { call, bytes } => {
                if self.owed.map_or(self.call, |(at, _)| at) == call {
                    self.bytes.push((call, bytes));
                }
            }
            Message::Event(event) => {
                if self.event <= event.number {
                    self.cluster[from.idx()].events.insert(event.number, event);
                }
            }
            Message::Relay { set, event } => {
                // Whoever found that it strayed has come past all that it had settled rightly.
                let it = &mut self.cluster[set.idx()];
                if self.event <= event.number && !it.strayed && set != self.own {
                    it.events.insert(event.number, event);
                }
            }
            Message::Echo { event, digest } => {
                if self.event <= event {
                    self.cluster[from.idx()].echoes.insert(event, digest);
                }
            }
            Message::Left => {
                self.cluster[from.idx()].left = true;
                self.find_promotion();
                self.feed_log(from);
            }
            Message::Look(look) => self.hear_look(from, look),
            Message::Looked(heard) => self.hear_of_looks(from, heard),
            Message::Accuse { set, event } => {
                self.cluster[from.idx()].accuses = Some((set, event));
            }
            Message::Bye => self.cluster[from.idx()].bye = true,
            // A replica that waits is no other one than before, and the digests decide.
            Message::Ask
            | Message::Here { .. }
            | Message::Contents { .. }
            | Message::Matched { .. }
            | Message::Released { .. } => {}
            Message::Down { .. } => self.hear_of_end(from, message),
        }
    }

    fn hear_of_end(&mut self, from: SetId, message: Message) {
        let Message::Down { set, offers } = message else { return };
        self.cluster[from.idx()].told.push(set);
        for offer in offers.into_iter().filter(|it| self.call <= it.call) {
            if self.cluster[set.idx()].offers.at(offer.call).is_none() {
                self.cluster[set.idx()].offers.keep(offer);
            }
        }
    }

    fn close(&mut self, set: SetId) {
        if set == self.own || self.cluster[set.idx()].closed {
            return;
        }
        self.cluster[set.idx()].closed = true;
        let sibling = self.cluster[set.idx()].clone();
        let others: Vec<SetId> =
            self.siblings().filter(|it| *it != set && self.is_awaited(*it)).collect();
        for other in others {
            // First what it saw: to have settled what follows says that it looks there no more.
            self.relay_looks(other);
            // What came from the dead may stand in the log or wait to be taken.
            if !sibling.strayed {
                let decisions = self.log.iter().filter(|it| it.kind == EventKind::Decision);
                for event in decisions.chain(sibling.events.values()) {
                    let event = event.clone();
                    self.out.push_back((other.into(), Message::Relay { set, event }));
                }
            }
            let offers = sibling.offers.all().to_vec();
            self.tell(other, Message::Down { set, offers });
        }
    }

    fn leave_mpi(&mut self) {
        if self.has_left() {
            return;
        }
        self.cluster[self.own.idx()].left = true;
        self.tell_all(Message::Left);
    }

    /// Draws what follows from what is known.
    fn settle(&mut self) {
        for set in self.siblings().filter(|it| self.is_falling(*it)).collect::<Vec<_>>() {
            if self.has_fallen(set) {
                self.cluster[set.idx()].dead = true;
                self.notes.push_back(Note::Died(set));
            }
        }
        self.expel_accused();
        self.find_promotion();
    }

    fn find_promotion(&mut self) {
        let meta = feeds::leads(&self.cluster);
        if meta == self.meta {
            return;
        }
        if let Some(led) = std::mem::replace(&mut self.meta, meta) {
            self.close_looks(led);
        }
        let Some(meta) = meta else { return };
        self.notes.push_back(Note::Promoted(meta));
        if meta == self.own {
            for set in self.siblings() {
                if self.cluster[set.idx()].left {
                    self.feed_log(set);
                }
            }
        }
    }

    /// Moves past `event`: keeps it for those that may lack it, and tells those that wait for it.
    fn keep(&mut self, event: Event) {
        self.event = event.number + 1;
        self.begin_looks();
        for it in &mut self.cluster {
            it.events.remove(&event.number);
            it.echoes.remove(&event.number);
        }
        for set in self.siblings() {
            if self.is_awaited(set)
                && let Some(message) = self.message_about(&event, set)
            {
                self.tell(set, message);
            }
        }
        if 1 < self.cluster.len() {
            self.log_bytes += event.bytes.len() + 64;
            self.log.push(event);
        }
    }

    /// What this replica does after a verdict, or nothing if siblings owe it contents.
    fn agree(&mut self, offer: &Offer, wrong: &[SetId], strayed: &[SetId]) -> Option<Passed> {
        (self.tarried, self.any_took) = (false, false);
        let mut signals = self.signals.get();
        for (set, it) in SetId::all(REPLICAS_MAX).zip(&mut self.cluster) {
            if let Some(offer) = it.offers.at(self.call) {
                self.tarried |= offer.tarries;
                self.any_took |= offer.took;
                signals = signals.max(offer.signals);
                if offer.yields && !it.yielded {
                    it.yielded = true;
                    self.notes.push_back(Note::Yielded(set));
                }
            }
            if wrong.contains(&set) {
                let was_trusted = it.marked == 0;
                it.marked = self.trust_after;
                if was_trusted {
                    self.notes.push_back(Note::Marked(set));
                }
            } else if 0 < it.marked {
                it.marked -= 1;
                if it.marked == 0 {
                    self.notes.push_back(Note::Trusted(set));
                }
            }
            it.offers.forget_before(self.call);
            it.accuses = it.accuses.filter(|(_, event)| self.event <= *event);
        }
        self.signals = Twice::of(signals);
        for set in strayed {
            self.expel(*set);
        }
        self.offered = None;
        self.call += 1;
        self.log.clear();
        self.log_bytes = 0;
        self.forget_looks();
        self.begin_looks();
        if strayed.contains(&self.own) {
            return Some(Passed::Leave);
        }
        self.settle();
        if wrong.contains(&self.own) {
            self.owed = Some((offer.call, offer.digest));
            return None;
        }
        self.bytes.clear();
        let wrong: Vec<SetId> = wrong.iter().copied().filter(|it| self.is_awaited(*it)).collect();
        Some(if wrong.is_empty() { Passed::Go } else { Passed::Serve(wrong) })
    }
}
