//! Collectives: what a process gives to one is compared before it does, and what it gets is kept
//! for a twin, so that a result is never computed again in another order.

use std::sync::Arc;

use selvedge_stmr::message::EventKind;
use selvedge_stmr::replica::Input;

use crate::abi::{self, Status};
use crate::calls;
use crate::comm::Comm;
use crate::counted;
use crate::epochs;
use crate::errors;
use crate::gate::Gate;
use crate::memory::For;
use crate::p2p::tested;
use crate::pack::{self, Part};
use crate::padding;
use crate::parts::{self, Degrees, Kind, Neighbors, Parts, ROWS, Row, degrees};
use crate::real::{self, Call};
use crate::request::Request;
use crate::room::{HEAD, Plan, Room};
use crate::state::State;
use crate::sums;

/// How long after a failure of MPI's the launcher may say that a process is gone, in milliseconds.
const LOSS_MS: u32 = 500;

/// A collective under way.
pub(crate) struct Running {
    /// Nothing if this replica had left MPI when it began.
    real: Option<usize>,
    /// Of which communicator.
    comm: usize,
    done: bool,
    code: i32,
    gets: Vec<Part>,
    room: Room,
}

impl Running {
    /// The communicator that it is made in.
    pub(crate) fn comm(&self) -> usize {
        self.comm
    }

    /// Whether MPI has it complete.
    pub(crate) fn is_ready(&mut self) -> bool {
        if let (false, Some(real)) = (self.done, &mut self.real) {
            let (done, status) = tested(real);
            (self.done, self.code) = (done, status.error);
        }
        self.done
    }

    /// Whether what it brings has this type.
    pub(crate) fn uses(&self, datatype: usize) -> bool {
        self.gets.iter().any(|it| it.datatype == datatype)
    }
}

impl State {
    /// Waits for a collective; what it brings is in the program's memory then.
    pub(crate) fn finish_collective(&mut self, mut running: Running) -> Status {
        let (bytes, did) = self.event_for(For::Collective, EventKind::Data, |state| {
            if !running.is_ready() || state.has_lost_one() || state.is_loss(running.code) {
                return None;
            }
            state.wake_partners(running.comm);
            let Running { room, code, gets, .. } = &mut running;
            Some(room.take_told(state, *code, gets))
        });
        let is_there = did && running.room.is_direct();
        if !did && running.real.is_some() {
            // MPI may still read and write in it.
            std::mem::forget(running.room);
        }
        take_gets(self, &bytes, is_there, &running.gets)
    }

    /// Waits until all members have come here.
    pub(crate) fn meet(&mut self, comm: usize) {
        made(self, calls::BARRIER, &[comm], false);
    }

    /// Whether a process of this set is gone.  Whoever has heard of it may have changed by now what
    /// it gave, so that what comes in since is not what was agreed on: it is taken from a twin.
    fn has_lost_one(&mut self) -> bool {
        if self.memory.has_lost_one() {
            self.replica.handle(Input::SetBroken);
        }
        self.replica.has_left()
    }

    /// Whether MPI has failed with this code because a process of this set is gone: it may find
    /// that out before the launcher has said so.
    pub(crate) fn is_loss(&mut self, code: i32) -> bool {
        if [abi::SUCCESS, abi::table().err_truncate].contains(&code) {
            return false;
        }
        (0..LOSS_MS).any(|_| {
            let is_lost = self.has_lost_one();
            if !is_lost {
                unsafe { libc::usleep(1_000) };
            }
            is_lost
        })
    }
}

/// Puts what a collective brought where the program wants it, unless it is there.
fn take_gets(state: &mut State, bytes: &[u8], is_there: bool, gets: &[Part]) -> Status {
    let (head, mut rest) = bytes.split_at(HEAD);
    let code = head.first_chunk().copied().map_or(abi::SUCCESS, i32::from_le_bytes);
    let right = if gets.is_empty() { None } else { state.compare_coming(rest) };
    if let Some(right) = &right {
        rest = right;
    }
    if !is_there || right.is_some() {
        for part in gets {
            let length = (part.count * pack::size_of(part.datatype)).min(rest.len());
            pack::unpack(state, &rest[..length], *part);
            rest = &rest[length..];
        }
    }
    Status { error: code, ..Status::empty() }
}

pub(crate) fn blocking(state: &mut State, call: Call, args: &[usize]) -> usize {
    made(state, call, args, true)
}

fn made(state: &mut State, call: Call, args: &[usize], is_counted: bool) -> usize {
    // Where there are two sides, Open MPI's form that does not block does not count those who have
    // nothing to say, and their next one never ends.
    let comm = args[args.len() - 1];
    state.finish_makings(comm);
    let known = state.comm(comm);
    if known.remote.is_some() || sums::are_otherwise(call, args, known.size) {
        return as_it_is(state, call, args);
    }
    let code = match begin_as(state, call, args, false) {
        Ok(mut running) => {
            if is_counted && running.code == abi::SUCCESS {
                known.owed.add(call, args);
            }
            epochs::serve_until(state, |_| running.is_ready());
            state.finish_collective(running).error
        }
        Err(code) => code,
    };
    state.error(comm, code, call)
}

pub(crate) fn nonblocking(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (at, args) = args.split_last().expect("each of these calls has arguments");
    match begin(state, call, args) {
        Ok(running) => {
            state.keep_request(Request::Collective(running), *at);
            abi::SUCCESS as usize
        }
        Err(code) => {
            unsafe { abi::put_handle(*at, 0, state.handles().request_null) };
            state.error(args[args.len() - 1], code, call)
        }
    }
}

/// Collectives that are made in the form that blocks, beside a thread that waits.  Those of
/// neighbours are: Open MPI 4's forms that do not block take the two sides of a ring of two the
/// other way round.
pub(crate) fn as_it_is(state: &mut State, call: Call, args: &[usize]) -> usize {
    let prepared = match prepare(state, call, args) {
        Ok(prepared) => prepared,
        Err(code) => return state.error(args[args.len() - 1], code, call),
    };
    let mut to = args.to_vec();
    *to.last_mut().expect("each of these calls has arguments") = prepared.behind;
    let (comm, owed) = (prepared.behind, prepared.known.owed.clone());
    let pays = counted::hangs_on_that(call, &prepared.known);
    let mut gate = Gate::of(state, comm, &prepared.known, pays);
    let Prepared { parts, mut room, .. } = prepared.furnish(state, true, &mut to);
    let gets = &parts.gets;
    epochs::serve_until(state, |state| gate.is_open(state));
    let (bytes, did) = state.event_for(For::Collective, EventKind::Data, |state| {
        if !gate.is_open(state) {
            return None;
        }
        if pays {
            state.pay(&owed, comm)?;
        }
        let code = state.block(call, &to)? as i32;
        if state.has_lost_one() || state.is_loss(code) {
            return None;
        }
        Some(room.take_told(state, code, gets))
    });
    let is_there = did && room.is_direct();
    if !did {
        // The thread that was left in it may still read and write there.
        std::mem::forget(room);
    }
    let status = take_gets(state, &bytes, is_there, gets);
    state.error(args[args.len() - 1], status.error, call)
}

/// A collective whose contribution was compared.
struct Prepared {
    kind: Kind,
    starts: Call,
    behind: usize,
    known: Arc<Comm>,
    parts: Parts,
    /// What it gives, if that does not lie in the program's memory as it is sent.
    packed: Vec<u8>,
    room: Room,
}

impl Prepared {
    /// Has MPI read and write in this library's memory.
    fn furnish(mut self, state: &mut State, copies: bool, to: &mut [usize]) -> Self {
        let packed = std::mem::take(&mut self.packed);
        let (kind, known, parts) = (self.kind, &self.known, &self.parts);
        self.room = Room::furnish(state, Plan { kind, known, parts, packed, copies }, to);
        self
    }
}

/// A collective that is started again and again.
pub(crate) fn persistent(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (given, rest) = args.split_at(args.len() - 2);
    let comm = given[given.len() - 1];
    let known = state.comm(comm);
    let row = row_of(state, call);
    if let Err(code) = parts_of(state, row, given, &known) {
        unsafe { abi::put_handle(rest[1], 0, state.handles().request_null) };
        return state.error(comm, code, call);
    }
    let mut arrays = std::mem::take(&mut state.arrays);
    let mut args = given.to_vec();
    for Array { idx, n_words } in arrays_of(state, call, given) {
        let from = args[idx] as *const i32;
        let copy: Vec<i32> =
            (0..n_words).map(|it| unsafe { from.add(it).read_unaligned() }).collect();
        args[idx] = copy.as_ptr() as usize;
        arrays.push(copy);
    }
    let request = Request::Persistent { call, args, arrays, active: None };
    state.keep_request(request, rest[1]);
    abi::SUCCESS as usize
}

/// An argument that is an array, and how many words of 32 bits it has.
struct Array {
    idx: usize,
    n_words: usize,
}

/// Counts, displacements and types that are to stay as they are though the program lets go of them.
fn arrays_of(state: &mut State, call: Call, args: &[usize]) -> Vec<Array> {
    let Some(row) = ROWS.iter().find(|it| it.persistent == call) else { return Vec::new() };
    let comm = args[args.len() - 1];
    let known = state.comm(comm);
    let behind = state.behind(comm);
    let root = |at: usize| match known.remote {
        Some(_) => args[at] as i32 == abi::table().root,
        None => args[at] as i32 == known.rank,
    };
    let n = known.peers().len();
    let handle = abi::handle_words();
    let of = |n: usize, rows: &[(usize, usize)]| -> Vec<Array> {
        rows.iter().map(|(idx, words)| Array { idx: *idx, n_words: n * words }).collect()
    };
    let in_place = args[0] == abi::table().in_place;
    let (sent, far) = (if in_place { 0 } else { n }, 2);
    match row.kind {
        Kind::Gatherv if root(7) => of(n, &[(4, 1), (5, 1)]),
        Kind::Scatterv if root(7) => of(n, &[(1, 1), (2, 1)]),
        Kind::Allgatherv => of(n, &[(4, 1), (5, 1)]),
        Kind::Alltoallv => {
            [of(sent, &[(1, 1), (2, 1)]), of(n, &[(5, 1), (6, 1)])].into_iter().flatten().collect()
        }
        Kind::Alltoallw => {
            let sides =
                [of(sent, &[(1, 1), (2, 1), (3, handle)]), of(n, &[(5, 1), (6, 1), (7, handle)])];
            sides.into_iter().flatten().collect()
        }
        Kind::ReduceScatter => of(known.size as usize, &[(2, 1)]),
        Kind::Neighbors(kind) => {
            let Degrees { sources, targets } = degrees(behind, &known);
            let sides = match kind {
                Neighbors::Allgather | Neighbors::Alltoall => [Vec::new(), Vec::new()],
                Neighbors::Allgatherv => [Vec::new(), of(sources, &[(4, 1), (5, 1)])],
                Neighbors::Alltoallv => {
                    [of(targets, &[(1, 1), (2, 1)]), of(sources, &[(5, 1), (6, 1)])]
                }
                Neighbors::Alltoallw => [
                    of(targets, &[(1, 1), (2, far), (3, handle)]),
                    of(sources, &[(5, 1), (6, far), (7, handle)]),
                ],
            };
            sides.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Compares what this process gives, and starts the collective in the form that does not block.
fn begin_as(state: &mut State, call: Call, args: &[usize], copies: bool) -> Result<Running, i32> {
    let prepared = prepare(state, call, args)?;
    let behind = prepared.behind;
    if state.replica.has_left() {
        let gets = prepared.parts.gets;
        let (real, done, code) = (None, false, 0);
        return Ok(Running { real, comm: behind, done, code, gets, room: Room::default() });
    }
    let mut real = 0_usize;
    let mut to = args.to_vec();
    *to.last_mut().expect("each of these calls has arguments") = behind;
    let Prepared { starts, parts, room, .. } = prepared.furnish(state, copies, &mut to);
    to.push(&raw mut real as usize);
    let code = real::code(starts, &to);
    state.wake_partners(behind);
    let (real, done) = (Some(real), code != abi::SUCCESS);
    Ok(Running { real, comm: behind, done, code, gets: parts.gets, room })
}

/// Starts a collective that the program waits for later, and may have others beside.
pub(crate) fn begin(state: &mut State, call: Call, args: &[usize]) -> Result<Running, i32> {
    begin_as(state, call, args, true)
}

/// The row of a collective in any of its forms.
fn row_of(state: &mut State, call: Call) -> &'static Row {
    let forms = |it: &&Row| [it.blocking, it.starts, it.persistent].contains(&call);
    ROWS.iter().find(forms).unwrap_or_else(|| state.refuse(call))
}

/// What this process gives and gets, or MPI's code if it refuses that.
fn parts_of(state: &State, row: &Row, args: &[usize], known: &Comm) -> Result<Parts, i32> {
    if let Some(code) = errors::of_collective(state, row.blocking, row.kind, args, known) {
        return Err(code);
    }
    let parts = parts::of(state, row.kind, args, known);
    match errors::of_parts(state, parts.gives.iter().chain(&parts.gets)) {
        Some(code) => Err(code),
        None => Ok(parts),
    }
}

/// Compares what this process gives, or says with MPI's code that MPI refuses it.
fn prepare(state: &mut State, call: Call, args: &[usize]) -> Result<Prepared, i32> {
    let row = row_of(state, call);
    let (kind, starts) = (row.kind, row.starts);
    let comm = args[args.len() - 1];
    let known = state.comm(comm);
    let behind = state.behind(comm);
    state.mix(&[known.number]);
    let parts = parts_of(state, row, args, &known)?;
    let mut packed = Vec::new();
    if parts.gives.is_empty() && matches!(kind, Kind::Barrier) {
        // Whoever comes through one knows that this process came to it, and may change files that
        // it looked at before: so have all its replicas come, also those that no MPI holds back.
        state.compare(Vec::new());
    }
    if !parts.gives.is_empty() {
        state.counts.sends += 1;
        packed = compare_given(state, &parts.gives);
    }
    Ok(Prepared { kind, starts, behind, known, parts, packed, room: Room::default() })
}

/// Compares what is given.  Returns it, unless it lies in the program's memory as it is sent; what
/// is wrong there is mended.
fn compare_given(state: &mut State, gives: &[Part]) -> Vec<u8> {
    let mut packed = Vec::new();
    // What lies as it is sent is compared where it lies.
    let lies_as_sent = |it: &Part| {
        let size = pack::size_of(it.datatype);
        pack::is_plain(it.datatype, size) && !padding::is_in(it.datatype, size)
    };
    let bytes = if let Some(it) = pack::joined(gives).filter(lies_as_sent) {
        unsafe { pack::contents(it) }
    } else {
        let length = gives.iter().map(|it| it.count * pack::size_of(it.datatype));
        packed = state.spare.room(length.sum());
        gives.iter().for_each(|it| pack::pack(state, *it, &mut packed));
        &packed
    };
    let length = bytes.len();
    if let Some(right) = state.compare_leaving(bytes, String::new).0.filter(|it| it.len() == length)
    {
        let mut rest = &right[..];
        for part in gives {
            let length = part.count * pack::size_of(part.datatype);
            pack::unpack(state, &rest[..length], *part);
            rest = &rest[length..];
        }
        if !packed.is_empty() {
            packed = right;
        }
    }
    packed
}
