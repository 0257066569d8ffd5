//! Receives from anybody, and who leads the cluster when they are begun.
//!
//! ```text
//! begun under who leads ──► it alone begins it in MPI ──► Matched: all receive that by name
//! another leads, the first lives ──► the first takes it back ──► Released: who leads begins it
//!                                └─► a message had come ──────► Matched
//! another leads, the first is gone ──► who leads begins it
//! ```
//!
//! Two sets in which such a receive is begun from anybody may take different messages, and then
//! their programs are not the same any more.  So never more than one has it begun like that.
//!
//! Of receives that might take each other's messages the first is told first.  Who goes on after
//! one that is gone so knows of none whose message an earlier one, begun again, might take; and
//! what was told in another order comes from a replica that makes other calls, and is not followed.

use selvedge_stmr::message::Message;
use selvedge_stmr::verdict::SetId;

use crate::abi::Status;
use crate::calls;
use crate::p2p::Receive;
use crate::real;
use crate::state::State;

/// Whose message a receive took, as was told.
#[derive(Clone, Copy)]
pub(crate) struct Hint {
    pub(crate) source: i32,
    pub(crate) tag: i32,
    /// What was told before has a lower one.
    order: u64,
}

/// Who leads, as this library has acted on it.
#[derive(Default)]
pub(crate) struct Lead {
    n_hints: u64,
    leads: Option<SetId>,
    /// What those said that led, before it was known here that they do no more: who, of which
    /// receive, after how many compares.
    released: Vec<(SetId, u64, u64)>,
}

impl Lead {
    fn hint(&mut self, source: i32, tag: i32) -> Hint {
        self.n_hints += 1;
        Hint { source, tag, order: self.n_hints }
    }
}

impl Receive {
    /// Whether what was told of it may be followed, seen from those begun `before` it: it is from
    /// anybody and might take that, and one of them that might take the same was told of first.
    pub(crate) fn follows_hint(&self, before: &[Self]) -> bool {
        let Some(Hint { source, tag, order }) = self.matched else { return false };
        if !self.is_open() || !self.might_take(self.comm, source, tag) {
            return false;
        }
        let is_told = |it: &Self| it.matched.is_some_and(|it| it.order < order);
        let rivals = || before.iter().filter(|it| it.is_open());
        rivals().all(|it| is_told(it) || !it.might_take(self.comm, source, tag))
    }
}

impl State {
    /// Does what follows if another leads than before.
    pub(crate) fn follow_lead(&mut self) {
        let leads = self.replica.meta();
        if leads == self.lead.leads {
            return;
        }
        let before = std::mem::replace(&mut self.lead.leads, leads);
        let calls = self.replica.n_calls();
        let released = std::mem::take(&mut self.lead.released);
        let Some(before) = before else { return };
        if before.idx() == self.told.set {
            let begun = |it: &&Receive| it.is_undecided() && it.owner.is_none() && !it.is_wild;
            let all: Vec<u64> = self.receives.iter().filter(begun).map(|it| it.id).collect();
            for receive in all {
                self.tell_siblings(&Message::Released { receive, calls });
            }
        } else if self.replica.is_in_mpi(before) {
            for it in self.receives.iter_mut().filter(|it| it.is_undecided()) {
                let is_released =
                    |row: &(SetId, u64, u64)| (row.0, row.1) == (before, it.id) && calls <= row.2;
                if it.owner.is_none() && !it.is_wild && !released.iter().any(is_released) {
                    it.owner = Some(before);
                }
            }
        }
    }

    /// Tells siblings of the messages that receives from anybody have taken here, if this replica
    /// leads: a send may wait in each of their sets for such a receive, and the program ask for it
    /// behind the send alone.  If it led, takes those back that have taken none.
    pub(crate) fn tell_matches(&mut self) {
        if self.told.replicas == 1 || self.has_no_mpi() || self.receives.is_empty() {
            return;
        }
        // One that was promoted has not posted them.
        self.post_receives();
        let leads = self.replica.is_meta();
        let is_open = |it: &&Receive| it.is_undecided() && it.is_wild;
        let open: Vec<u64> = self.receives.iter().filter(is_open).map(|it| it.id).collect();
        if !leads {
            // The last first: none takes a message that one before it might have taken.
            for id in open.iter().rev() {
                let it = self.receive(*id);
                if !it.is_cancelled && it.done.is_none() {
                    it.is_cancelled = true;
                    let request = &raw mut it.real as usize;
                    real::call(calls::CANCEL, &[request]);
                }
            }
        }
        let mut before = Vec::new();
        for id in open {
            if !self.is_received(id) {
                if self.receive(id).posted {
                    before.push(id);
                }
                continue;
            }
            let it = self.receive(id);
            let (comm, Some(Status { source, tag, .. })) = (it.comm, it.done) else { continue };
            if before.iter().any(|it| self.receive(*it).might_take(comm, source, tag)) {
                before.push(id);
                continue;
            }
            self.tell_match(id, source, tag);
        }
    }

    /// Tells siblings whose message a receive took here, or is settled to take.
    pub(crate) fn tell_match(&mut self, id: u64, source: i32, tag: i32) {
        let hint = self.lead.hint(source, tag);
        self.receive(id).matched = Some(hint);
        self.tell_siblings(&Message::Matched { receive: id, source, tag });
    }

    /// A receive from anybody was taken back.
    pub(crate) fn release(&mut self, id: u64) {
        let it = self.receive(id);
        (it.posted, it.is_wild, it.is_cancelled) = (false, false, false);
        self.n_unposted += 1;
        let calls = self.replica.n_calls();
        self.tell_siblings(&Message::Released { receive: id, calls });
    }

    /// A sibling that leads tells which messages receives have taken, or one that led that they
    /// took none.  None is posted before all is heard that was said: this replica may lead by now.
    pub(crate) fn hear_of_receives(&mut self, from: SetId, said: Vec<Message>) {
        if said.is_empty() || !self.replica.is_there(from) {
            return;
        }
        said.into_iter().for_each(|it| self.hear_of_receive(from, it));
        if !self.has_no_mpi() {
            self.post_receives();
        }
    }

    fn hear_of_receive(&mut self, from: SetId, message: Message) {
        match message {
            Message::Matched { receive, source, tag } => {
                let hint = self.lead.hint(source, tag);
                let same = |it: &Hint| (it.source, it.tag) == (source, tag);
                if self.n_receives < receive {
                    let known = self.matches.get(&receive);
                    if !known.is_some_and(same) {
                        self.matches.insert(receive, hint);
                    }
                } else {
                    let Some(idx) = self.receive_idx(receive) else { return };
                    let (before, rest) = self.receives.split_at_mut(idx);
                    let it = &mut rest[0];
                    let is_known = it.matched.as_ref().is_some_and(same) && it.follows_hint(before);
                    if !it.posted && !is_known {
                        it.matched = Some(hint);
                    }
                }
            }
            Message::Released { receive, calls } => {
                let Some(idx) = self.receive_idx(receive) else { return };
                let it = &mut self.receives[idx];
                if it.owner == Some(from) {
                    it.owner = None;
                } else {
                    self.lead.released.push((from, receive, calls));
                }
            }
            _ => {}
        }
    }

    /// A receive was settled: what was told before of later ones that it might have taken itself
    /// came from one that made other calls.
    pub(crate) fn drop_hints_behind(&mut self, id: u64) {
        let behind = self.kept_idx(id) + 1;
        let (before, rest) = self.receives.split_at_mut(behind);
        let settled = &before[before.len() - 1];
        for it in rest.iter_mut().filter(|it| !it.posted && it.settled.is_none()) {
            let Some(Hint { source, tag, order }) = it.matched else { continue };
            let is_told = settled.matched.is_some_and(|it| it.order < order);
            if !is_told && settled.might_take(it.comm, source, tag) {
                it.matched = None;
            }
        }
    }

    /// Tells siblings again of matches that one told which is gone: it may have told this one
    /// alone, and whoever leads after it must not take another message.
    pub(crate) fn retell_matches(&mut self) {
        let told = |it: &Receive| Some((it.id, it.matched.filter(|_| it.settled.is_none())?));
        let begun = self.receives.iter().filter_map(told);
        let later = self.matches.iter().map(|it| (*it.0, *it.1));
        let mut all: Vec<(u64, Hint)> = begun.chain(later).collect();
        all.sort_by_key(|(_, hint)| hint.order);
        for (receive, Hint { source, tag, .. }) in all {
            self.tell_siblings(&Message::Matched { receive, source, tag });
        }
    }
}
