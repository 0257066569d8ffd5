//! Messages.  What leaves is compared first and carries a seal of what was agreed on; what comes in
//! comes into a buffer of this library's, is checked against its seal, and reaches the program's
//! at completion.
//!
//! A receive that takes from anybody is settled by the meta: shadows post it by name once they are
//! told whose message it took, and hold back what was posted after it and might take the same.

use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::EventKind;
use selvedge_stmr::verdict::SetId;

use crate::abi::{self, RawStatus, Status};
use crate::calls;
use crate::comm::Comm;
use crate::epochs;
use crate::lead::Hint;
use crate::matched;
use crate::memory::For;
use crate::pack::{self, Part};
use crate::real::{self, Call};
use crate::request::Request;
use crate::state::{Source, State};

/// Bytes of a seal, at the end of each message.
const SEAL: usize = 16;

/// Where contents begin behind the status of a receive.
const HEAD: usize = 32;

/// Sends up to this many bytes are done when they have been copied.
const BUFFERED_MAX: usize = 64 << 10;

/// So many bytes may wait like that.
const BUFFERED_ALL_MAX: usize = 16 << 20;

/// So many sends may be under way before it is looked which are over.
const OUTGOING_MAX: usize = 8;

/// A send under way.
pub(crate) struct Outgoing {
    id: u64,
    real: usize,
    bytes: Vec<u8>,
    /// It is over only when the other side has begun to receive, or its buffer is large.
    waits: bool,
}

/// A receive that is not complete.
pub(crate) struct Receive {
    pub(crate) id: u64,
    pub(crate) comm: usize,
    source: i32,
    tag: i32,
    /// Whose message it took, once known.
    pub(crate) settled: Option<(i32, i32)>,
    /// Whose message it took in who leads, which was told before the program came to ask; in who
    /// leads itself, once it has told that.
    pub(crate) matched: Option<Hint>,
    /// Who may have begun it from anybody: whoever leads, or one that led.
    pub(crate) owner: Option<SetId>,
    pub(crate) posted: bool,
    /// It was begun here from anybody.
    pub(crate) is_wild: bool,
    /// It is taken back, unless a message came before.
    pub(crate) is_cancelled: bool,
    pub(crate) real: usize,
    pub(crate) done: Option<Status>,
    /// Bytes that it may bring, with its seal.
    room: usize,
    /// Where MPI writes them, behind the head; none of it was written before.
    bytes: Vec<u8>,
}

impl Receive {
    pub(crate) fn is_open(&self) -> bool {
        self.source == abi::table().any_source && self.settled.is_none()
    }

    /// Whether nothing was told of whose message it takes.
    pub(crate) fn is_undecided(&self) -> bool {
        self.is_open() && self.matched.is_none()
    }

    /// Whether MPI has it and has not brought its message.
    pub(crate) fn is_under_way(&self) -> bool {
        self.posted && self.done.is_none()
    }

    fn may_take(&self, source: i32, tag: i32) -> bool {
        (self.source == abi::table().any_source
            || source == abi::table().any_source
            || self.source == source)
            && (self.tag == abi::table().any_tag || tag == abi::table().any_tag || self.tag == tag)
    }

    /// Whether it could take this message.
    pub(crate) fn might_take(&self, comm: usize, source: i32, tag: i32) -> bool {
        self.comm == comm && self.may_take(source, tag)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.might_take(other.comm, other.source, other.tag)
    }
}

/// All sends: MPI_Send and its modes, blocking or not.
pub(crate) fn send(state: &mut State, call: Call, args: &[usize]) -> usize {
    let waits = call == calls::SSEND || call == calls::ISSEND;
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let envelope = Envelope { waits, ..Envelope::of(&args[3..], args[5]) };
    if let Some(request) = args.get(6) {
        let id = begin_later(state, part, envelope);
        state.keep_request(Request::Send(id), *request);
    } else {
        let id = begin_send(state, part, envelope);
        epochs::serve_until(state, |state| state.is_sent(id));
        state.finish_send(id);
    }
    0
}

/// What a message carries beside its contents (MPI 4.1 §3.2.3), without its source, and how it is
/// sent.
pub(crate) struct Envelope {
    /// The send is over only when it is being received.
    pub(crate) waits: bool,
    pub(crate) dest: i32,
    pub(crate) tag: i32,
    pub(crate) comm: usize,
}

impl Envelope {
    /// Of the arguments of a call that waits for nothing: destination and tag come first.
    fn of(args: &[usize], comm: usize) -> Self {
        Self { waits: false, dest: args[0] as i32, tag: args[1] as i32, comm }
    }
}

/// A send whose contents are about to leave.
pub(crate) struct Leaving {
    id: u64,
    known: Comm,
    /// Its communicator is MPI's own.
    envelope: Envelope,
}

/// Takes note of a send, and packs its contents; nothing if it goes to nobody.
fn prepare_send(
    state: &mut State,
    part: Part,
    mut envelope: Envelope,
) -> Option<(Leaving, Vec<u8>)> {
    let Envelope { dest, tag, comm, .. } = envelope;
    let known = state.comm(comm);
    envelope.comm = state.behind(comm);
    if dest == abi::table().proc_null {
        return None;
    }
    state.mix(&[known.number, dest as u64, tag as u64, part.count as u64]);
    state.counts.sends += 1;
    let mut bytes = state.spare.room(part.count * pack::size_of(part.datatype) + SEAL);
    pack::pack(state, part, &mut bytes);
    Some((Leaving { id: state.counts.sends, known, envelope }, bytes))
}

/// Compares and starts a send; the answer is its number, or 0 if it goes to nobody.
pub(crate) fn begin_send(state: &mut State, part: Part, envelope: Envelope) -> u64 {
    match prepare_send(state, part, envelope) {
        None => 0,
        Some((leaving, bytes)) => state.compare_and_leave(leaving, bytes),
    }
}

/// The same of a send that the program waits for in another call: it may be compared there.
pub(crate) fn begin_later(state: &mut State, part: Part, envelope: Envelope) -> u64 {
    let Some((leaving, bytes)) = prepare_send(state, part, envelope) else { return 0 };
    let id = leaving.id;
    if let Some((leaving, bytes)) = state.hold(leaving, bytes) {
        state.compare_and_leave(leaving, bytes);
    }
    id
}

impl State {
    fn compare_and_leave(&mut self, leaving: Leaving, bytes: Vec<u8>) -> u64 {
        let id = leaving.id;
        let (right, digest) = self.compare_leaving(&bytes);
        self.let_leave(leaving, right.unwrap_or(bytes), digest);
        id
    }

    /// Starts a send of contents that were agreed on.
    pub(crate) fn let_leave(&mut self, leaving: Leaving, mut bytes: Vec<u8>, digest: Digest) {
        let Leaving { id, known, envelope: Envelope { waits, dest, tag, comm } } = leaving;
        let seal = digest.sealed(tag, known.rank, bytes.len() as u64);
        bytes.extend(seal.0.to_le_bytes());
        if self.replica.has_left() {
            return;
        }
        let Ok(length) = i32::try_from(bytes.len()) else {
            real::fail("a message of more than 2 GiB is not served")
        };
        let which = if waits { calls::ISSEND } else { calls::ISEND };
        let mut request = 0_usize;
        let byte = self.handles().byte;
        let (at, to) = (bytes.as_ptr() as usize, &raw mut request as usize);
        let args = [at, length as usize, byte, dest as usize, tag as usize, comm, to];
        let code = real::code(which, &args);
        if code != abi::SUCCESS {
            self.error(comm, code, which);
        }
        self.wake(&known, dest, For::Message);
        if OUTGOING_MAX < self.outgoing.len() {
            self.reap();
        }
        let all: usize = self.outgoing.iter().map(|it| it.bytes.len()).sum();
        let waits = waits || BUFFERED_MAX < bytes.len() || BUFFERED_ALL_MAX < all + bytes.len();
        self.outgoing.push(Outgoing { id, real: request, bytes, waits });
    }

    /// Lets go of the sends that are over.
    pub(crate) fn reap(&mut self) {
        if self.replica.has_left() {
            // MPI may still read from them.
            for it in self.outgoing.drain(..) {
                std::mem::forget(it.bytes);
            }
            return;
        }
        if !self.has_no_mpi() {
            let spare = &mut self.spare;
            self.outgoing.retain_mut(|it| {
                let is_over = tested(&mut it.real).0;
                if is_over {
                    spare.keep(std::mem::take(&mut it.bytes));
                }
                !is_over
            });
        }
    }

    /// Whether a send's buffer is free again, as far as the program can tell.
    pub(crate) fn is_sent(&mut self, id: u64) -> bool {
        // Their numbers rise.
        let waits = |this: &Self| {
            let found = this.outgoing.binary_search_by_key(&id, |it| it.id);
            found.is_ok_and(|it| this.outgoing[it].waits)
        };
        if waits(self) {
            self.reap();
        }
        !waits(self)
    }

    pub(crate) fn finish_send(&mut self, id: u64) {
        self.begin_wait();
        while !self.is_sent(id) {
            self.spin(For::Receiver);
        }
        self.end_wait();
    }

    /// Waits for all sends.
    pub(crate) fn finish_sends(&mut self) {
        self.begin_wait();
        self.reap();
        while !self.outgoing.is_empty() {
            self.spin(For::Receiver);
            self.reap();
        }
        self.end_wait();
    }

    /// Posts what may be posted, oldest first.
    pub(crate) fn post_receives(&mut self) {
        self.follow_lead();
        if self.n_unposted == 0 || self.replica.has_left() {
            return;
        }
        let byte = self.handles().byte;
        let replica = &self.replica;
        let may_begin = |it: &Receive| {
            // What one that strayed took may be known to another, who has begun it so.
            replica.is_meta()
                && !replica.is_stray_about()
                && it.owner.is_none_or(|owner| !replica.is_in_mpi(owner))
        };
        // Those from anybody that are not posted, and hold back what might take the same.
        let mut open: Vec<usize> = Vec::new();
        for idx in 0..self.receives.len() {
            let (before, rest) = self.receives.split_at_mut(idx);
            let it = &mut rest[0];
            if it.posted {
                continue;
            }
            let is_held =
                it.settled.is_none() && open.iter().any(|other| before[*other].overlaps(it));
            if !is_held && it.settled.is_none() && it.matched.is_some() && !it.follows_hint(before)
            {
                it.matched = None;
            }
            let is_wild = it.is_undecided();
            if is_held || (is_wild && !may_begin(it)) {
                if it.is_open() {
                    open.push(idx);
                }
                continue;
            }
            let told = it.settled.or_else(|| it.matched.map(|it| (it.source, it.tag)));
            let (source, tag) = told.unwrap_or((it.source, it.tag));
            (it.posted, it.is_wild) = (true, is_wild);
            self.n_unposted -= 1;
            let at = it.bytes.as_mut_ptr() as usize + HEAD;
            let to = &raw mut it.real as usize;
            let args = [at, it.room, byte, source as usize, tag as usize, it.comm, to];
            let code = real::code(calls::IRECV, &args);
            if code != abi::SUCCESS {
                it.done = Some(Status { error: code, ..Status::empty() });
            }
        }
    }

    /// The communicator of a receive.
    pub(crate) fn comm_of_receive(&self, id: u64) -> Option<usize> {
        self.receive_idx(id).map(|it| self.receives[it].comm)
    }

    /// Where a receive is among those that are not complete, whose numbers rise.
    pub(crate) fn receive_idx(&self, id: u64) -> Option<usize> {
        self.receives.binary_search_by_key(&id, |it| it.id).ok()
    }

    pub(crate) fn kept_idx(&self, id: u64) -> usize {
        self.receive_idx(id).expect("a receive is kept until it is complete")
    }

    pub(crate) fn receive(&mut self, id: u64) -> &mut Receive {
        let idx = self.kept_idx(id);
        &mut self.receives[idx]
    }

    /// Whether MPI has brought the message.
    pub(crate) fn is_received(&mut self, id: u64) -> bool {
        self.post_receives();
        let it = self.receive(id);
        if it.done.is_none() && it.posted {
            let (done, status) = tested(&mut it.real);
            if done && it.is_cancelled && status.cancelled != 0 {
                self.release(id);
                return false;
            }
            it.done = done.then_some(status);
            let comm = it.comm;
            if done && let Some(known) = self.comms.get(&comm) {
                // Who sent it may wait for it to be taken.
                self.wake(known, status.source, For::Receiver);
            }
        }
        self.receive(id).done.is_some()
    }

    /// Waits for a message, and puts it where the program wants it.
    pub(crate) fn finish_receive(&mut self, id: u64, part: Part) -> Status {
        self.settle_receive(id);
        let (bytes, did) = self.event_for(For::Message, EventKind::Data, |state| {
            if !state.is_received(id) {
                return None;
            }
            let it = state.receive(id);
            let status = it.done.expect("it was received");
            let count = (status.count as usize).min(it.room);
            let mut row = std::mem::take(&mut it.bytes);
            row.clear();
            row.extend(status.to_bytes());
            row.resize(HEAD, 0);
            // So many have come behind the head.
            unsafe { row.set_len(HEAD + count) };
            Some(row)
        });
        let idx = self.kept_idx(id);
        let mut receive = self.receives.remove(idx);
        self.n_unposted -= usize::from(!receive.posted);
        if !did && receive.posted && receive.done.is_none() {
            // MPI may still write into it.
            std::mem::forget(std::mem::take(&mut receive.bytes));
        }
        let mut status = Status::from_bytes(&bytes);
        if status.error != abi::SUCCESS {
            return status;
        }
        let contents = &bytes[HEAD..];
        let Some((contents, seal)) = contents.split_last_chunk::<SEAL>() else {
            real::fail("a message came that this library did not send")
        };
        let wanted = Digest::of(contents).sealed(status.tag, status.source, contents.len() as u64);
        if wanted.0 != u128::from_le_bytes(*seal) {
            let rank = self.told.rank;
            let (source, set) = (status.source, self.told.set);
            self.say(&format!(
                "note rank {rank}: set{set} ends: a message from {source} changed on its way"
            ));
            unsafe { libc::_exit(0) };
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

    /// The same where the program waits for it, which may have windows open to others.
    fn receive_serving(&mut self, id: u64, part: Part) -> Status {
        epochs::serve_until(self, |state| state.is_received(id));
        self.finish_receive(id, part)
    }

    /// The communicator and status of a receive, once MPI has brought its message.
    fn taken(&mut self, id: u64) -> Option<(usize, Status)> {
        if !self.is_received(id) {
            return None;
        }
        let it = self.receive(id);
        Some((it.comm, it.done.expect("it was received")))
    }

    /// Learns whose message a receive took, where that may differ between replicas.
    fn settle_receive(&mut self, id: u64) {
        let own = self.kept_idx(id);
        let before = &self.receives[..own];
        let overlaps = |it: &Receive| it.is_open() && it.overlaps(&self.receives[own]);
        if !before.iter().any(overlaps) && !self.receives[own].is_open() {
            return;
        }
        let open: Vec<u64> = before.iter().filter(|it| it.is_open()).map(|it| it.id).collect();
        self.sources.insert(Source::Wildcard);
        if self.told.replicas == 1 {
            return;
        }
        let (rows, did) = self.event(EventKind::Decision, |state| {
            let mut taken = vec![(id, state.taken(id)?)];
            for other in open.iter().rev() {
                // One that was posted earlier and could have taken a message of these has another.
                let it = state.receive(*other);
                if taken.iter().any(|(_, (comm, of))| it.might_take(*comm, of.source, of.tag)) {
                    taken.push((*other, state.taken(*other)?));
                }
            }
            let mut rows = Vec::new();
            for (id, (_, status)) in taken.into_iter().rev() {
                settled(id, status, &mut rows);
            }
            Some(rows)
        });
        for row in rows.chunks_exact(16) {
            let word = |at: usize| {
                u64::from_le_bytes(row[at..at + 8].try_into().expect("a row has two words"))
            };
            let (source, tag) = (word(8) as u32 as i32, (word(8) >> 32) as i32);
            let it = self.receive(word(0));
            it.settled = Some((source, tag));
            let is_to_tell = did && it.matched.is_none();
            if it.posted && it.matched.is_some_and(|it| (it.source, it.tag) != (source, tag)) {
                real::fail("a receive was told of one message and settled as another");
            }
            self.drop_hints_behind(word(0));
            if is_to_tell {
                // Who waits in a send for this receive does not come to the decision.
                self.tell_match(word(0), source, tag);
            }
        }
        self.send_out();
        self.post_receives();
    }
}

fn settled(id: u64, status: Status, rows: &mut Vec<u8>) {
    rows.extend(id.to_le_bytes());
    rows.extend(status.source.to_le_bytes());
    rows.extend(status.tag.to_le_bytes());
}

/// Tests a request of MPI's.
pub(crate) fn tested(real: &mut usize) -> (bool, Status) {
    let (mut flag, mut status) = (0_i32, RawStatus::default());
    let args = [std::ptr::from_mut(real) as usize, &raw mut flag as usize, status.at()];
    let code = real::code(calls::TEST, &args);
    let mut status = Status { error: code, ..status.read() };
    if abi::table().is_truncated(code) {
        status.error = abi::table().err_truncate;
        status.count = 0;
    }
    (flag != 0 || code != abi::SUCCESS, status)
}

/// Takes note of a receive; it is posted at once if it may be.
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
    state.n_receives += 1;
    let id = state.n_receives;
    let room = part.count * pack::size_of(part.datatype) + SEAL;
    if i32::try_from(room).is_err() {
        real::fail("a message of more than 2 GiB is not served");
    }
    state.n_unposted += 1;
    state.receives.push(Receive {
        id,
        comm,
        source,
        tag,
        settled: None,
        matched: state.matches.remove(&id),
        owner: None,
        posted: false,
        is_wild: false,
        is_cancelled: false,
        real: 0,
        done: None,
        room,
        bytes: state.spare.room(HEAD + room),
    });
    state.post_receives();
    Some(id)
}

pub(crate) fn recv(state: &mut State, call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let (source, tag, comm) = (args[3] as i32, args[4] as i32, args[5]);
    let status = match begin_receive(state, part, source, tag, comm) {
        None => Status::nobody(),
        Some(id) => state.receive_serving(id, part),
    };
    unsafe { status.write(args[6], false) };
    state.error(comm, status.error, call)
}

pub(crate) fn irecv(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let id = begin_receive(state, part, args[3] as i32, args[4] as i32, args[5]);
    state.keep_request(receiving(id, part), args[6]);
    0
}

/// The request of a receive that was begun.
pub(crate) fn receiving(id: Option<u64>, part: Part) -> Request {
    match id {
        None => Request::Done(Status::nobody()),
        Some(id) => Request::Receive(id, part),
    }
}

pub(crate) fn sendrecv(state: &mut State, call: Call, args: &[usize]) -> usize {
    let sent = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let part = Part { at: args[5], count: args[6] as i32 as usize, datatype: args[7] };
    let comm = args[10];
    let id = begin_receive(state, part, args[8] as i32, args[9] as i32, comm);
    let out = begin_send(state, sent, Envelope::of(&args[3..], comm));
    let status = id.map_or(Status::nobody(), |id| state.receive_serving(id, part));
    state.finish_send(out);
    unsafe { status.write(args[11], false) };
    state.error(comm, status.error, call)
}

pub(crate) fn sendrecv_replace(state: &mut State, call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let comm = args[7];
    let out = begin_send(state, part, Envelope::of(&args[3..], comm));
    let id = begin_receive(state, part, args[5] as i32, args[6] as i32, comm);
    let status = id.map_or(Status::nobody(), |id| state.receive_serving(id, part));
    state.finish_send(out);
    unsafe { status.write(args[8], false) };
    state.error(comm, status.error, call)
}

pub(crate) fn isendrecv(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let sent = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let part = Part { at: args[5], count: args[6] as i32 as usize, datatype: args[7] };
    let comm = args[10];
    let id = begin_receive(state, part, args[8] as i32, args[9] as i32, comm);
    let send = begin_later(state, sent, Envelope::of(&args[3..], comm));
    keep_exchange(state, send, id, part, args[11]);
    abi::SUCCESS as usize
}

pub(crate) fn isendrecv_replace(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let comm = args[7];
    let send = begin_later(state, part, Envelope::of(&args[3..], comm));
    let id = begin_receive(state, part, args[5] as i32, args[6] as i32, comm);
    keep_exchange(state, send, id, part, args[8]);
    abi::SUCCESS as usize
}

fn keep_exchange(state: &mut State, send: u64, receive: Option<u64>, part: Part, at: usize) {
    let receive = Box::new(receiving(receive, part));
    state.keep_request(Request::Exchange { send, receive }, at);
}

/// What a look at the next message says, if there is one.
pub(crate) fn look(state: &mut State, args: &[usize]) -> Option<Status> {
    state.post_receives();
    let (mut flag, mut status) = (0_i32, RawStatus::default());
    let comm = state.behind(args[2]);
    let to = [args[0], args[1], comm, &raw mut flag as usize, status.at()];
    real::call(calls::IPROBE, &to);
    if flag == 0 {
        return None;
    }
    let mut status = status.read();
    if status.source != abi::table().proc_null {
        status.count = status.count.saturating_sub(SEAL as u64);
    }
    Some(status)
}

pub(crate) fn probe(state: &mut State, _call: Call, args: &[usize]) -> usize {
    state.sources.insert(Source::Wildcard);
    let args = args.to_vec();
    epochs::serve_until(state, |state| look(state, &args).is_some());
    let (row, _) = state
        .event(EventKind::Decision, |state| look(state, &args).map(|it| it.to_bytes().to_vec()));
    unsafe { Status::from_bytes(&row).write(args[3], false) };
    0
}

pub(crate) fn iprobe(state: &mut State, _call: Call, args: &[usize]) -> usize {
    state.sources.insert(Source::Completion);
    let args = args.to_vec();
    let (row, did) = state.event(EventKind::Decision, |state| {
        Some(look(state, &args).map(|it| it.to_bytes().to_vec()).unwrap_or_default())
    });
    unsafe { *(args[3] as *mut i32) = i32::from(!row.is_empty()) };
    if row.is_empty() {
        if did {
            state.spin(For::Message);
        }
    } else {
        unsafe { Status::from_bytes(&row).write(args[4], false) };
    }
    0
}

/// Buffered sends are copied by this library anyway; the program's buffer is only kept for it.
pub(crate) fn buffer_attach(state: &mut State, call: Call, args: &[usize]) -> usize {
    let code = real::code(call, args);
    state.error_of_none(code, call)
}

pub(crate) fn buffer_detach(state: &mut State, call: Call, args: &[usize]) -> usize {
    state.finish_sends();
    let code = real::code(call, args);
    state.error_of_none(code, call)
}

pub(crate) fn send_init(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (args_kept, arrays) = (args.to_vec(), Vec::new());
    let request = Request::Persistent { call, args: args_kept, arrays, active: None };
    state.keep_request(request, args[6]);
    0
}

pub(crate) fn recv_init(state: &mut State, call: Call, args: &[usize]) -> usize {
    send_init(state, call, args)
}

pub(crate) fn start(state: &mut State, call: Call, args: &[usize]) -> usize {
    state.start_request(unsafe { abi::handle_at(args[0], 0) }, call)
}

pub(crate) fn startall(state: &mut State, call: Call, args: &[usize]) -> usize {
    for idx in 0..args[0] as i32 as usize {
        let code = state.start_request(unsafe { abi::handle_at(args[1], idx) }, call);
        if code as i32 != abi::SUCCESS {
            return code;
        }
    }
    abi::SUCCESS as usize
}
