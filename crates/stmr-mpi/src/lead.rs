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

use selvedge_stmr::message::Message;
use selvedge_stmr::verdict::SetId;

use crate::abi::Status;
use crate::calls;
use crate::p2p::Receive;
use crate::real;
use crate::state::State;

/// Who leads, as this library has acted on it.
#[derive(Default)]
pub(crate) struct Lead {
    leads: Option<SetId>,
    /// What those said that led, before it was known here that they do no more: who, of which
    /// receive, after how many compares.
    released: Vec<(SetId, u64, u64)>,
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
        let is_open = |it: &&Receive| it.is_open() && it.is_wild && !it.is_told;
        let open: Vec<u64> = self.receives.iter().filter(is_open).map(|it| it.id).collect();
        for id in open {
            let it = self.receive(id);
            if !leads && !it.is_cancelled && it.done.is_none() {
                it.is_cancelled = true;
                let request = &raw mut it.real as usize;
                real::call(calls::CANCEL, &[request]);
            }
            if !self.is_received(id) {
                continue;
            }
            let it = self.receive(id);
            it.is_told = true;
            let Some(Status { source, tag, .. }) = it.done else { continue };
            self.tell_siblings(&Message::Matched { receive: id, source, tag });
        }
    }

    /// A receive from anybody was taken back.
    pub(crate) fn release(&mut self, id: u64) {
        let it = self.receive(id);
        (it.posted, it.is_wild, it.is_cancelled) = (false, false, false);
        self.n_unposted += 1;
        let calls = self.replica.n_calls();
        self.tell_siblings(&Message::Released { receive: id, calls });
    }

    /// A sibling that leads tells which message a receive has taken, or one that led that it took
    /// none.
    pub(crate) fn hear_of_receive(&mut self, from: SetId, message: Message) {
        match message {
            Message::Matched { receive, source, tag } if self.n_receives < receive => {
                self.matches.insert(receive, (source, tag));
            }
            Message::Matched { receive, source, tag } => {
                let Some(idx) = self.receive_idx(receive) else { return };
                self.receives[idx].matched = Some((source, tag));
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
            _ => return,
        }
        if !self.has_no_mpi() {
            self.post_receives();
        }
    }

    /// Tells siblings again of matches that one told which is gone: it may have told this one
    /// alone, and whoever leads after it must not take another message.
    pub(crate) fn retell_matches(&mut self) {
        let told = |it: &Receive| {
            let (source, tag) = it.matched.filter(|_| it.settled.is_none())?;
            Some((it.id, (source, tag)))
        };
        let begun = self.receives.iter().filter_map(told);
        let later = self.matches.iter().map(|it| (*it.0, *it.1));
        let all: Vec<(u64, (i32, i32))> = begun.chain(later).collect();
        for (receive, (source, tag)) in all {
            self.tell_siblings(&Message::Matched { receive, source, tag });
        }
    }
}
