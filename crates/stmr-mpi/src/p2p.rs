//! Messages.  What leaves is compared first and carries a seal of what was agreed on.

use std::sync::Arc;

use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::EventKind;

use crate::abi::{self, RawStatus, Status};
use crate::calls;
use crate::comm::Comm;
use crate::epochs;
use crate::memory::For;
use crate::pack::{self, Part};
use crate::partitioned;
use crate::real::{self, Call};
use crate::receives::{begin_receive, receiving};
use crate::request::Request;
use crate::sends::Source;
use crate::state::State;

/// Bytes of a seal, at the end of each message.
pub(crate) const SEAL: usize = 16;

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
    mode: Mode,
    /// The program waits for its end.
    waits: bool,
}

/// When a send is over (MPI 4.1 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// When it has been copied, or the other side has begun to receive if it is long.
    Standard,
    /// When the other side has begun to receive.
    Synchronous,
    /// When it has been copied, however long it is.
    Buffered,
}

impl Mode {
    /// That of sends by this call.
    pub(crate) fn of(call: Call) -> Self {
        match call {
            calls::SSEND | calls::ISSEND | calls::SSEND_INIT => Self::Synchronous,
            calls::BSEND | calls::IBSEND | calls::BSEND_INIT => Self::Buffered,
            _ => Self::Standard,
        }
    }
}

/// All sends: MPI_Send and its modes, blocking or not.
pub(crate) fn send(state: &mut State, call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let envelope = Envelope { mode: Mode::of(call), ..Envelope::of(&args[3..], args[5]) };
    if let Some(request) = args.get(6) {
        let id = begin_later(state, part, envelope);
        state.keep_request(Request::Send(id), *request);
    } else {
        let id = begin_send(state, part, envelope);
        state.finish_send_serving(id);
    }
    0
}

/// What a message carries beside its contents (MPI 4.1 §3.2.3), without its source, and how it is
/// sent.
pub(crate) struct Envelope {
    pub(crate) mode: Mode,
    pub(crate) dest: i32,
    pub(crate) tag: i32,
    pub(crate) comm: usize,
}

impl Envelope {
    /// Of the arguments of a call in the standard mode: destination and tag come first.
    fn of(args: &[usize], comm: usize) -> Self {
        Self { mode: Mode::Standard, dest: args[0] as i32, tag: args[1] as i32, comm }
    }
}

/// A send whose contents are about to leave.
pub(crate) struct Leaving {
    id: u64,
    known: Arc<Comm>,
    /// Its communicator is MPI's own.
    envelope: Envelope,
}

impl Leaving {
    /// Where it goes, behind what it is.
    pub(crate) fn words(&self) -> String {
        let Envelope { dest, tag, .. } = self.envelope;
        let peer = usize::try_from(dest).ok().and_then(|it| self.known.peers().get(it));
        format!(" to rank {}, tag {tag}", peer.unwrap_or(&dest))
    }
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
    pack::check_length(state, part);
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
        let (right, digest) = self.compare_leaving(&bytes, || leaving.words());
        self.let_leave(leaving, right.unwrap_or(bytes), digest);
        id
    }

    /// Starts a send of contents that were agreed on.
    pub(crate) fn let_leave(&mut self, leaving: Leaving, mut bytes: Vec<u8>, digest: Digest) {
        let Leaving { id, known, envelope: Envelope { mode, dest, tag, comm } } = leaving;
        let seal = digest.sealed(tag, known.rank, bytes.len() as u64);
        bytes.extend(seal.0.to_le_bytes());
        if self.replica.has_left() {
            return;
        }
        let is_synchronous = mode == Mode::Synchronous;
        let which = if is_synchronous { calls::ISSEND } else { calls::ISEND };
        let mut request = 0_usize;
        let (at, to) = (bytes.as_ptr() as usize, &raw mut request as usize);
        let code = pack::of_bytes(self, bytes.len(), |count, datatype| {
            real::code(which, &[at, count, datatype, dest as usize, tag as usize, comm, to])
        });
        if code != abi::SUCCESS {
            self.error(comm, code, which);
        }
        self.wake(&known, dest, For::Message);
        if OUTGOING_MAX < self.outgoing.len() {
            self.reap();
        }
        let all: usize = self.outgoing.iter().map(|it| it.bytes.len()).sum();
        let is_long = BUFFERED_MAX < bytes.len() || BUFFERED_ALL_MAX < all + bytes.len();
        let waits = is_synchronous || mode == Mode::Standard && is_long;
        self.outgoing.push(Outgoing { id, real: request, bytes, mode, waits });
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
            let mut reals: Vec<usize> = self.outgoing.iter().map(|it| it.real).collect();
            let mut code = abi::SUCCESS;
            for (idx, status) in tested_of(&mut reals) {
                self.spare.keep(std::mem::take(&mut self.outgoing[idx].bytes));
                code = if status.error == abi::SUCCESS { code } else { status.error };
            }
            // One that is under way has its seal at least.
            self.outgoing.retain(|it| !it.bytes.is_empty());
            self.is_loss(code);
        }
    }

    /// Whether a send's buffer is free again, as far as the program can tell.
    pub(crate) fn is_sent(&mut self, id: u64) -> bool {
        if !self.has_left_buffer(id) {
            self.reap();
        }
        self.has_left_buffer(id)
    }

    /// The same by what is known, without asking MPI.
    pub(crate) fn has_left_buffer(&self, id: u64) -> bool {
        // Their numbers rise.
        let found = self.outgoing.binary_search_by_key(&id, |it| it.id);
        !found.is_ok_and(|it| self.outgoing[it].waits)
    }

    pub(crate) fn finish_send(&mut self, id: u64) {
        self.begin_wait();
        while !self.is_sent(id) {
            self.spin(For::Receiver);
        }
        self.end_wait();
    }

    /// The same where the program waits for it, which may have windows open to others.
    fn finish_send_serving(&mut self, id: u64) {
        epochs::serve_until(self, |state| state.is_sent(id));
        self.finish_send(id);
    }

    /// Whether what a buffer of the program's would hold has left it.
    fn are_buffered_sent(&mut self) -> bool {
        self.reap();
        self.outgoing.iter().all(|it| it.mode != Mode::Buffered)
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
}

/// Tests a request of MPI's.
pub(crate) fn tested(real: &mut usize) -> (bool, Status) {
    let (mut flag, mut status) = (0_i32, RawStatus::default());
    let args = [std::ptr::from_mut(real) as usize, &raw mut flag as usize, status.at()];
    let code = real::code(calls::TEST, &args);
    (flag != 0 || code != abi::SUCCESS, told(status, code))
}

/// Tests requests of MPI's; returns which are over, in their order, and never one that is null.
///
/// MPI goes on with its work once and not for each, and does not let others run each time.
pub(crate) fn tested_of(reals: &mut [usize]) -> Vec<(usize, Status)> {
    // As many words as there are requests, which may be half as long.
    let mut row = vec![0_usize; reals.len()];
    let at = row.as_mut_ptr() as usize;
    for (idx, real) in reals.iter().enumerate() {
        unsafe { abi::put_handle(at, idx, *real) };
    }
    let mut over = Vec::new();
    let mut next = 0;
    while next < reals.len() {
        let (mut which, mut flag, mut status) = (0_i32, 0_i32, RawStatus::default());
        let (to, is_over) = (&raw mut which as usize, &raw mut flag as usize);
        let rest = at + next * abi::handle_words() * size_of::<u32>();
        let args = [reals.len() - next, rest, to, is_over, status.at()];
        let code = real::code(calls::TESTANY, &args);
        match usize::try_from(which) {
            Ok(idx) if flag != 0 || code != abi::SUCCESS => {
                next += idx + 1;
                reals[next - 1] = unsafe { abi::handle_at(at, next - 1) };
                over.push((next - 1, told(status, code)));
            }
            _ => break,
        }
    }
    over
}

fn told(status: RawStatus, code: i32) -> Status {
    let mut status = Status { error: code, ..status.read() };
    if abi::table().is_truncated(code) {
        status.error = abi::table().err_truncate;
        status.count = 0;
    }
    status
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

pub(crate) fn sendrecv(state: &mut State, call: Call, args: &[usize]) -> usize {
    let sent = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let part = Part { at: args[5], count: args[6] as i32 as usize, datatype: args[7] };
    let comm = args[10];
    let id = begin_receive(state, part, args[8] as i32, args[9] as i32, comm);
    let out = begin_send(state, sent, Envelope::of(&args[3..], comm));
    let status = id.map_or(Status::nobody(), |id| state.receive_serving(id, part));
    state.finish_send_serving(out);
    unsafe { status.write(args[11], false) };
    state.error(comm, status.error, call)
}

pub(crate) fn sendrecv_replace(state: &mut State, call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    let comm = args[7];
    let out = begin_send(state, part, Envelope::of(&args[3..], comm));
    let id = begin_receive(state, part, args[5] as i32, args[6] as i32, comm);
    let status = id.map_or(Status::nobody(), |id| state.receive_serving(id, part));
    state.finish_send_serving(out);
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
    let status = Status::from_bytes(&row);
    partitioned::refuse_met(state, status.tag);
    unsafe { status.write(args[3], false) };
    0
}

/// For what a probe asks that does not wait, by words that are the same in all replicas.
pub(crate) fn probed(state: &mut State, call: Call, args: &[usize]) -> [u64; 4] {
    let comm = state.behind(args[2]);
    let known = state.comms.get(&comm).map(|it| it.number);
    let number = known.unwrap_or_else(|| state.comm(args[2]).number);
    [call.0 as u64, args[0] as u32 as u64, args[1] as u32 as u64, number]
}

pub(crate) fn iprobe(state: &mut State, call: Call, args: &[usize]) -> usize {
    state.sources.insert(Source::Completion);
    let args = args.to_vec();
    epochs::serve_once(state);
    let wanted = probed(state, call, &args);
    let row = state.inquire(&wanted, |state| look(state, &args).map(|it| it.to_bytes().to_vec()));
    unsafe { *(args[3] as *mut i32) = i32::from(row.is_some()) };
    if let Some(row) = row {
        let status = Status::from_bytes(&row);
        partitioned::refuse_met(state, status.tag);
        unsafe { status.write(args[4], false) };
    }
    0
}

/// Buffered sends are copied by this library anyway; the program's buffer is only kept for it.
pub(crate) fn buffer_attach(state: &mut State, call: Call, args: &[usize]) -> usize {
    let code = real::code(call, args);
    state.error_of_none(code, call)
}

pub(crate) fn buffer_detach(state: &mut State, call: Call, args: &[usize]) -> usize {
    epochs::serve_until(state, State::are_buffered_sent);
    state.begin_wait();
    while !state.are_buffered_sent() {
        state.spin(For::Receiver);
    }
    state.end_wait();
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
