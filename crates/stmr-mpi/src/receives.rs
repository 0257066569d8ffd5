//! Receives: what comes in comes into a buffer of this library's, is checked against its seal, and
//! reaches the program's at completion.
//!
//! Which of them MPI begins, and as what, [`selvedge_stmr::receives`] says.

use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::{EventKind, Message};
use selvedge_stmr::receives::{Match, Misled, Pattern, Receive};
use selvedge_stmr::verdict::SetId;

use crate::abi::{self, Status};
use crate::calls;
use crate::ends;
use crate::epochs;
use crate::matched;
use crate::memory::For;
use crate::p2p::{SEAL, tested, tested_of};
use crate::pack::{self, Part};
use crate::partitioned;
use crate::real;
use crate::request::Request;
use crate::sends::Source;
use crate::state::State;

/// Where contents begin behind the status of a receive.
const HEAD: usize = 32;

/// What MPI needs for a receive.
pub(crate) struct Buffer {
    real: usize,
    done: Option<Status>,
    /// Bytes that it may bring, with its seal.
    room: usize,
    /// Where MPI writes them, behind the head; none of it was written before.
    bytes: Vec<u8>,
}

impl State {
    /// Does what follows if another leads than before.
    #[inline]
    pub(crate) fn follow_lead(&mut self) {
        // This is asked in each turn of waiting.
        if self.receives.are_behind(&self.replica) {
            self.follow_another();
        }
    }

    fn follow_another(&mut self) {
        let messages = self.receives.follow(&self.replica);
        messages.iter().for_each(|it| self.tell_siblings(it));
    }

    /// Has MPI begin what may be begun, oldest first.
    #[inline]
    pub(crate) fn post_receives(&mut self) {
        self.follow_lead();
        if self.receives.are_waiting() && !self.replica.has_left() {
            self.post_waiting();
        }
    }

    fn post_waiting(&mut self) {
        for (id, pattern) in self.receives.to_begin(&self.replica) {
            let [source, tag] = [
                pattern.source.unwrap_or(abi::table().any_source),
                pattern.tag.unwrap_or(abi::table().any_tag),
            ];
            let Buffer { real, room, bytes, .. } = &mut self.receives.kept(id).buffer;
            let (at, room) = (bytes.as_mut_ptr() as usize + HEAD, *room);
            let to = std::ptr::from_mut(real) as usize;
            let code = pack::of_bytes(self, room, |count, datatype| {
                let [source, tag] = [source as usize, tag as usize];
                real::code(calls::IRECV, &[at, count, datatype, source, tag, pattern.comm, to])
            });
            if code != abi::SUCCESS {
                self.take(id, Status { error: code, ..Status::empty() });
            }
        }
    }

    fn take(&mut self, id: u64, status: Status) {
        let of = Match { source: status.source, tag: status.tag };
        self.receives.took(id, of).buffer.done = Some(status);
    }

    /// The communicator of a receive.
    pub(crate) fn comm_of_receive(&self, id: u64) -> Option<usize> {
        self.receives.get(id).map(Receive::comm)
    }

    /// Whether MPI has brought the message.
    pub(crate) fn is_received(&mut self, id: u64) -> bool {
        if self.receives.has_come(id) {
            return true;
        }
        self.post_receives();
        let it = self.receives.kept(id);
        if it.is_under_way() {
            let (done, status) = tested(&mut it.buffer.real);
            if done {
                self.hear_of_receive(id, status);
            }
        }
        self.receives.has_come(id)
    }

    /// Asks MPI which of these have come, all at once.
    pub(crate) fn ask_for_receives(&mut self, mut ids: Vec<u64>) {
        self.post_receives();
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| self.receives.get(*id).is_some_and(Receive::is_under_way));
        let real = |it: &u64| self.receives.kept(*it).buffer.real;
        let mut reals: Vec<usize> = ids.iter().map(real).collect();
        for (idx, status) in tested_of(&mut reals) {
            self.receives.kept(ids[idx]).buffer.real = reals[idx];
            self.hear_of_receive(ids[idx], status);
        }
    }

    /// MPI has done with one: its message has come, or none will.
    fn hear_of_receive(&mut self, id: u64, status: Status) {
        let it = self.receives.kept(id);
        if it.is_taken_back() && status.cancelled != 0 {
            let message = self.receives.release(id, &self.replica);
            message.iter().for_each(|it| self.tell_siblings(it));
            return;
        }
        let comm = it.comm();
        if !self.is_loss(status.error) {
            self.take(id, status);
            if let Some(known) = self.comms.get(&comm) {
                // Who sent it may wait for it to be taken.
                self.wake(known, status.source, For::Receiver);
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
        // One that was promoted has not begun them.
        self.post_receives();
        for id in self.receives.to_take_back(&self.replica) {
            self.cancel_in_mpi(id);
        }
        let first = self.receives.untold_first();
        self.ask_for_receives(first.clone());
        if first.iter().any(|it| self.receives.has_come(*it)) {
            self.ask_for_receives(self.receives.untold());
        }
        for message in self.receives.to_tell() {
            self.tell_siblings(&message);
        }
    }

    /// A sibling has said what receives took, or did not.
    pub(crate) fn hear_of_receives(&mut self, from: SetId, said: Vec<Message>) {
        if said.is_empty() {
            return;
        }
        self.receives.hear(from, said, &self.replica);
        if !self.has_no_mpi() {
            self.post_receives();
        }
    }

    /// Waits for a message, and puts it where the program wants it.
    pub(crate) fn finish_receive(&mut self, id: u64, part: Part) -> Status {
        // Which one it is, whenever the program comes to wait for it: replicas that find in another
        // order that theirs have come go the same way.
        let what = self.receives.kept(id).shape.after(&[id]);
        self.came = self.came.wrapping_add(what.0);
        let (bytes, did) = self.aside(what, |state| {
            state.settle_receive(id);
            state.event_for(For::Message, EventKind::Data, |state| state.take_received(id))
        });
        let receive = self.receives.finish(id);
        let is_of_any_tag = receive.is_of_any_tag();
        if !did && receive.is_under_way() {
            // MPI may still write into it.
            std::mem::forget(receive.buffer.bytes);
        }
        let mut status = Status::from_bytes(&bytes);
        if status.error != abi::SUCCESS {
            return status;
        }
        if is_of_any_tag {
            partitioned::refuse_met(self, status.tag);
        }
        let contents = &bytes[HEAD..];
        let Some((contents, seal)) = contents.split_last_chunk::<SEAL>() else {
            real::fail("a message came that this library did not send")
        };
        let wanted = Digest::of(contents).sealed(status.tag, status.source, contents.len() as u64);
        if wanted.0 != u128::from_le_bytes(*seal) {
            let rank = self.told.rank;
            let (source, set) = (status.source, self.told.set);
            self.note(&format!(
                "rank {rank}: set{set} ends: a message from {source} changed on its way"
            ));
            ends::leave(0)
        }
        let right = self.compare_coming(contents);
        let (contents, fits) = matched::fit(right.as_deref().unwrap_or(contents), &part);
        if !fits {
            status.error = abi::table().err_truncate;
        }
        status.count = contents.len() as u64;
        pack::unpack(self, contents, part);
        status
    }

    /// What a message that has come is: its status, and its bytes.
    fn take_received(&mut self, id: u64) -> Option<Vec<u8>> {
        if !self.is_received(id) {
            return None;
        }
        let it = &mut self.receives.kept(id).buffer;
        let status = it.done.expect("it was received");
        let count = (status.count as usize).min(it.room);
        let mut row = std::mem::take(&mut it.bytes);
        row.clear();
        row.extend(status.to_bytes());
        row.resize(HEAD, 0);
        // So many have come behind the head.
        unsafe { row.set_len(HEAD + count) };
        Some(row)
    }

    /// The program cancels a receive; returns whether it is over, and not to be waited for.
    ///
    /// What has come to one replica comes to all, so it is over only if nothing has come to any.
    pub(crate) fn cancel_receive(&mut self, id: u64) -> bool {
        self.mix(&[id]);
        // What is compared next is whether one has come.
        self.send_held();
        self.let_out();
        self.begin_wait();
        if !self.has_no_mpi() {
            for id in self.receives.cancel(id) {
                self.cancel_in_mpi(id);
            }
        }
        while !self.has_no_mpi() {
            let going = self.receives.going_back();
            if going.is_empty() {
                break;
            }
            self.ask_for_receives(going);
            self.spin(For::Message);
        }
        self.end_wait();
        if !self.has_no_mpi() && self.receives.has_come(id) {
            self.replica.tell_took();
        }
        self.compare_there(&id.to_le_bytes());
        let is_over = !self.replica.any_took();
        if is_over {
            let receive = self.receives.finish(id);
            if receive.is_under_way() {
                // MPI was left, and may still write into it.
                std::mem::forget(receive.buffer.bytes);
            }
        } else {
            self.receives.stay(id);
        }
        self.post_receives();
        is_over
    }

    fn cancel_in_mpi(&mut self, id: u64) {
        let request = &raw mut self.receives.kept(id).buffer.real as usize;
        real::call(calls::CANCEL, &[request]);
    }

    /// The same where the program waits for it, which may have windows open to others.
    pub(crate) fn receive_serving(&mut self, id: u64, part: Part) -> Status {
        epochs::serve_until(self, |state| state.is_received(id));
        self.finish_receive(id, part)
    }

    /// Learns whose message a receive took, where that may differ between replicas.
    fn settle_receive(&mut self, id: u64) {
        if !self.receives.is_to_decide(id) {
            return;
        }
        self.sources.insert(Source::Wildcard);
        if self.told.replicas == 1 {
            return;
        }
        let (rows, _) = self.event(EventKind::Decision, |state| {
            if !state.is_received(id) {
                return None;
            }
            let mut decision = state.receives.decide(id);
            while let Some(rival) = state.receives.rival(&mut decision) {
                if !state.is_received(rival) {
                    return None;
                }
            }
            let (rows, messages) = state.receives.decided(decision);
            messages.iter().for_each(|it| state.tell_siblings(it));
            Some(rows.into_iter().flat_map(row_of).collect())
        });
        for row in rows.chunks_exact(16) {
            let word = |at: usize| {
                u64::from_le_bytes(row[at..at + 8].try_into().expect("a row has two words"))
            };
            let of = Match { source: word(8) as u32 as i32, tag: (word(8) >> 32) as i32 };
            if let Err(Misled) = self.receives.settle(word(0), of, &self.replica) {
                real::fail("a receive was told of one message and settled as another");
            }
        }
        self.send_out();
        self.post_receives();
    }
}

fn row_of((id, Match { source, tag }): (u64, Match)) -> [u8; 16] {
    (u128::from(id) | u128::from(source as u32) << 64 | u128::from(tag as u32) << 96).to_le_bytes()
}

/// Takes note of a receive; it is begun at once if it may be.
pub(crate) fn begin_receive(
    state: &mut State,
    part: Part,
    source: i32,
    tag: i32,
    comm: usize,
) -> Option<u64> {
    let known = state.comm(comm);
    let comm = state.behind(comm);
    state.mix(&[known.number, source as u32 as u64, tag as u32 as u64, part.count as u64]);
    if source == abi::table().proc_null {
        return None;
    }
    let room = part.count * pack::size_of(part.datatype) + SEAL;
    pack::check_length(state, part);
    let pattern = Pattern {
        comm,
        source: (source != abi::table().any_source).then_some(source),
        tag: (tag != abi::table().any_tag).then_some(tag),
    };
    let bytes = state.spare.room(HEAD + room);
    let buffer = Buffer { real: 0, done: None, room, bytes };
    let id = state.receives.begin(pattern, state.shape, buffer);
    state.post_receives();
    Some(id)
}

/// The request of a receive that was begun.
pub(crate) fn receiving(id: Option<u64>, part: Part) -> Request {
    match id {
        None => Request::Done(Status::nobody()),
        Some(id) => Request::Receive(id, part),
    }
}
