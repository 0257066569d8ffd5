//! Accesses to windows, and the epochs at whose end they leave (MPI 4.1 §12.5).
//!
//! ```text
//!             fence ──► put, get, accumulate … wait here ──► fence: sent, carried out, answered
//! start of a group ──► the same                          ──► complete: sent; answers are awaited
//!  post to a group ──► who completes is served           ──► wait: all of the group are served
//! ```

use std::collections::BTreeMap;

use selvedge_stmr::access::{self, Access, Deed, Layout, Outside};
use selvedge_stmr::message::EventKind;

use crate::abi::{self, Family, Own, Status};
use crate::calls;
use crate::collective;
use crate::comm;
use crate::errors;
use crate::memory::For;
use crate::p2p::{self, Envelope, Mode};
use crate::pack::{self, Part};
use crate::padding;
use crate::passive;
use crate::real::{self, Call};
use crate::receives;
use crate::request::Request;
use crate::state::State;
use crate::typemap;
use crate::windows::{Guest, Wanted, Window, Windows};

/// Tags of a window's messages, whose communicator nobody else has: how much comes, what comes, and
/// what is told of it.
const LENGTHS: i32 = 1;
const ACCESSES: i32 = 2;
const ANSWERS: i32 = 3;

/// Whose window an access is of, and what of it.
struct Target {
    rank: usize,
    at: usize,
    count: usize,
    datatype: usize,
}

/// Puts and gets, and what combines, also with a request.
pub(crate) fn access(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (call, args, request) = match call {
        calls::RPUT => (calls::PUT, &args[..8], args.last()),
        calls::RGET => (calls::GET, &args[..8], args.last()),
        calls::RACCUMULATE => (calls::ACCUMULATE, &args[..9], args.last()),
        calls::RGET_ACCUMULATE => (calls::GET_ACCUMULATE, &args[..12], args.last()),
        _ => (call, args, None),
    };
    let code = access_without(state, call, args);
    if let (Some(at), abi::SUCCESS) = (request, code as i32) {
        // What is put has left the program's memory.
        let of = |state: &mut State, window: usize, rank: usize| {
            let (handle, member) = (abi::cut(args[window]), args[rank] as i32);
            let number = state.window(handle).expect("it is known").number;
            Request::Access { handle, number, member }
        };
        let request = match call {
            calls::GET => of(state, 7, 3),
            calls::GET_ACCUMULATE => of(state, 11, 6),
            _ => Request::Done(Status::empty()),
        };
        state.keep_request(request, *at);
    }
    code
}

fn access_without(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[args.len() - 1]);
    let part = |at: usize| Part {
        at: args[at],
        count: args[at + 1] as i32 as usize,
        datatype: abi::cut(args[at + 2]),
    };
    let one = |at: usize, datatype: usize| Part { at: args[at], count: 1, datatype };
    let target = |at: usize| Target {
        rank: args[at],
        at: args[at + 1],
        count: args[at + 2],
        datatype: abi::cut(args[at + 3]),
    };
    let combine = |op: usize, tells| (abi::cut(args[op]), tells);
    let (brought, wanted, target, combines) = match call {
        calls::PUT => (vec![part(0)], None, target(3), None),
        calls::GET => (vec![], Some(part(0)), target(3), None),
        calls::ACCUMULATE => (vec![part(0)], None, target(3), Some(combine(7, false))),
        calls::GET_ACCUMULATE => {
            // What is brought by MPI_NO_OP is not looked at, and may be nothing.
            let is_none = abi::cut(args[10]) == state.handles().no_op;
            let brought = if is_none { vec![] } else { vec![part(0)] };
            (brought, Some(part(3)), target(6), Some(combine(10, true)))
        }
        calls::FETCH_AND_OP => {
            let datatype = abi::cut(args[2]);
            let is_none = abi::cut(args[5]) == state.handles().no_op;
            let brought = if is_none { vec![] } else { vec![one(0, datatype)] };
            let target = Target { rank: args[3], at: args[4], count: 1, datatype };
            (brought, Some(one(1, datatype)), target, Some(combine(5, true)))
        }
        calls::COMPARE_AND_SWAP => {
            let datatype = abi::cut(args[3]);
            let brought = vec![one(0, datatype), one(1, datatype)];
            let target = Target { rank: args[4], at: args[5], count: 1, datatype };
            (brought, Some(one(2, datatype)), target, None)
        }
        _ => state.refuse(call),
    };
    if let Err(code) = state.known_window(handle, call) {
        return code;
    }
    if target.rank as i32 == abi::table().proc_null {
        return abi::SUCCESS as usize;
    }
    let there =
        Part { at: args[0], count: target.count as i32 as usize, datatype: target.datatype };
    let parts: Vec<Part> = brought.iter().chain(&wanted).copied().collect();
    if let Some(code) = errors::of_parts(state, parts.iter().chain([&there])) {
        return state.window_error(handle, code, call);
    }
    let deed = match (call, combines) {
        (calls::PUT, _) => Deed::Put,
        (calls::GET, _) => Deed::Get,
        (_, Some((op, tells))) => {
            let datatype = number_of(calls::TYPE_C2F, typemap::base_of(target.datatype));
            Deed::Combine { op: number_of(calls::OP_C2F, op), datatype, tells }
        }
        (_, None) => Deed::Swap,
    };
    let mut bytes = Vec::new();
    brought.iter().for_each(|it| pack::pack(state, *it, &mut bytes));
    match keep_access(state, handle, (deed, bytes), wanted, &target) {
        Ok(()) => abi::SUCCESS as usize,
        Err(code) => state.window_error(handle, code, call),
    }
}

/// A number for something that is predefined, the same in all processes: Open MPI's handles are
/// addresses, of which Fortran has the number.
fn number_of(which: Call, handle: usize) -> i32 {
    match abi::table().family {
        Family::OpenMpi => real::call(which, &[handle]) as i32,
        Family::Mpich | Family::Standard => handle as i32,
    }
}

/// What has this number.
fn numbered(which: Call, number: i32) -> usize {
    let number = number as u32 as usize;
    match abi::table().family {
        Family::OpenMpi => real::call(which, &[number]),
        Family::Mpich | Family::Standard => number,
    }
}

/// Keeps an access until its epoch ends, or says what is wrong with it.
fn keep_access(
    state: &mut State,
    handle: usize,
    (deed, bytes): (Deed, Vec<u8>),
    wanted: Option<Part>,
    target: &Target,
) -> Result<(), i32> {
    let (rank, count) = (target.rank as i32, target.count as i32 as u32);
    let layout = layout(state, target.datatype);
    let length = layout.size() as usize * count as usize;
    let brings = match deed {
        Deed::Get => 0,
        Deed::Combine { op, tells: true, .. }
            if op == number_of(calls::OP_C2F, state.handles().no_op) =>
        {
            0
        }
        Deed::Swap => 2 * length,
        Deed::Put | Deed::Combine { .. } => length,
    };
    let wants = wanted.map(|it| it.count * pack::size_of(it.datatype));
    let window = state.window(handle).expect("it is known");
    let reached = usize::try_from(rank).ok().and_then(|it| window.sizes.get(it));
    let &[size, unit] = reached.ok_or(abi::ERR_RANK)?;
    if window.started.as_ref().is_some_and(|it| !it.contains(&rank)) {
        return Err(abi::table().err_rma_sync);
    }
    if bytes.len() != brings || wants.is_some_and(|it| it != length) {
        return Err(abi::ERR_TYPE);
    }
    let at = (target.at as i64).checked_mul(unit as i64).ok_or(abi::table().err_rma_range)?;
    let access = Access { deed, at, count: count.into(), layout, bytes };
    if access.pieces(size).is_err() {
        return Err(abi::table().err_rma_range);
    }
    access.write(window.waiting.entry(rank).or_default());
    if let Some(part) = wanted {
        window.results.entry(rank).or_default().push(Wanted { part, length });
    }
    if window.passive.as_ref().is_some_and(|it| it.has_locked(rank)) {
        state.windows.pending.insert(handle);
    }
    state.counts.sends += 1;
    Ok(())
}

/// Where a type has its bytes, in the order in which they are sent.
fn layout(state: &mut State, datatype: usize) -> Layout {
    let size = pack::size_of(datatype);
    let extent = pack::extent_of(datatype) as i64;
    let padding = padding::step_of(datatype, size) as u64;
    if pack::is_plain(datatype, size) {
        return Layout { extent, runs: vec![(0, size as u64)], padding };
    }
    match typemap::runs_of(state, datatype) {
        Some(runs) => Layout { extent, runs, padding },
        None => state.refuse_in_words(typemap::NOT_SERVED),
    }
}

/// MPI_Win_fence: ends an epoch of all processes, and begins one.
pub(crate) fn fence(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[1]);
    match state.known_window(handle, call) {
        Ok(window) if window.started.is_some() || window.posted.is_some() => {
            return state.window_error(handle, abi::table().err_rma_sync, call);
        }
        Ok(_) => {}
        Err(code) => return code,
    }
    let window = state.window(handle).expect("it is known");
    let (n, comm) = (window.sizes.len() as i32, window.comm);
    let of = |it: &BTreeMap<i32, Vec<u8>>, member| it.get(&member).map_or(0, Vec::len) as u64;
    let going: Vec<u64> = (0..n).map(|it| of(&window.waiting, it)).collect();
    let mut coming = vec![0_u64; going.len()];
    let byte = state.handles().byte;
    let (from, to) = (going.as_ptr() as usize, coming.as_mut_ptr() as usize);
    collective::blocking(state, calls::ALLTOALL, &[from, 8, byte, to, 8, byte, comm]);
    let mut window = state.take_window(handle);
    let mut rows: Vec<Vec<u8>> = coming.iter().map(|it| vec![0; *it as usize]).collect();
    let mut receives = Vec::new();
    for (member, row) in (0..n).zip(&rows) {
        if member != window.rank && !row.is_empty() {
            receives.push((member, begin_receive(state, row.len(), member, ACCESSES, comm)));
        }
    }
    let own = window.waiting.remove(&window.rank).unwrap_or_default();
    for (member, row) in std::mem::take(&mut window.waiting) {
        begin_send(state, &row, member, ACCESSES, comm);
    }
    for (member, id) in receives {
        finish_receive(state, &mut rows[member as usize], id);
    }
    rows[window.rank as usize] = own;
    let answers: Vec<Vec<u8>> =
        rows.iter().map(|row| carry_out_surely(state, &window, row)).collect();
    for (member, row) in (0..n).zip(&answers) {
        if member != window.rank && !row.is_empty() {
            begin_answer(state, row, member, ANSWERS, comm);
        }
    }
    for (member, wanted) in std::mem::take(&mut window.results) {
        if member == window.rank {
            take_answers(state, &answers[member as usize], &wanted);
        } else {
            hear_answers(state, member, &wanted, comm);
        }
    }
    state.put_window(handle, window);
    abi::SUCCESS as usize
}

pub(crate) fn begin_receive(
    state: &mut State,
    length: usize,
    member: i32,
    tag: i32,
    comm: usize,
) -> u64 {
    let part = Part { at: 0, count: length, datatype: state.handles().byte };
    receives::begin_receive(state, part, member, tag, comm).expect("a member is somebody")
}

pub(crate) fn finish_receive(state: &mut State, to: &mut [u8], id: u64) -> Status {
    let datatype = state.handles().byte;
    let part = Part { at: to.as_mut_ptr() as usize, count: to.len(), datatype };
    let status = state.finish_receive(id, part);
    if status.error != abi::SUCCESS {
        real::fail("what was to be done to a window did not come whole");
    }
    status
}

/// The send goes on by itself.
pub(crate) fn begin_send(state: &mut State, row: &[u8], member: i32, tag: i32, comm: usize) {
    let datatype = state.handles().byte;
    let part = Part { at: row.as_ptr() as usize, count: row.len(), datatype };
    p2p::begin_send(state, part, Envelope { mode: Mode::Standard, dest: member, tag, comm });
}

/// The same of what answers a member that has come to a window.
pub(crate) fn begin_answer(state: &mut State, row: &[u8], member: i32, tag: i32, comm: usize) {
    state.log.answers = Some((state.comm(comm).number, member));
    begin_send(state, row, member, tag, comm);
    state.log.answers = None;
}

/// Receives what a member tells of the accesses that it carried out.  Meanwhile those are served to
/// whom windows of this process are open: the member may wait for one of them.
fn hear_answers(state: &mut State, member: i32, wanted: &[Wanted], comm: usize) {
    let mut row = vec![0_u8; wanted.iter().map(|it| it.length).sum()];
    if !row.is_empty() {
        let id = begin_receive(state, row.len(), member, ANSWERS, comm);
        serve_until(state, |state| state.is_received(id));
        finish_receive(state, &mut row, id);
    }
    take_answers(state, &row, wanted);
}

pub(crate) fn take_answers(state: &State, mut row: &[u8], wanted: &[Wanted]) {
    for Wanted { part, length } in wanted {
        pack::unpack(state, &row[..*length], *part);
        row = &row[*length..];
    }
}

/// Does what [`carry_out`] does; the program ends with an access to memory that is not there.
fn carry_out_surely(state: &mut State, window: &Window, row: &[u8]) -> Vec<u8> {
    match carry_out(state, window, row) {
        Ok(answers) => answers,
        Err(e) => state.refuse_in_words(&format!("an access to a window: {e}")),
    }
}

/// Does to this window what a member wants done; returns what that one is told.
pub(crate) fn carry_out(state: &State, window: &Window, row: &[u8]) -> Result<Vec<u8>, Outside> {
    let all = access::accesses(row).unwrap_or_else(|e| real::fail(&e.to_string()));
    let mut answers = Vec::new();
    for it in &all {
        let pieces = window.pieces(it)?;
        let at = |idx: usize| (window.shown.base + idx) as *mut u8;
        let gather = || {
            let mut there = Vec::with_capacity(it.bytes.len());
            for piece in &pieces {
                let from = at(piece.at);
                there.extend(unsafe { std::slice::from_raw_parts(from, piece.length) });
            }
            padding::clear_each(it.layout.padding as usize, &mut there);
            there
        };
        let put = |mut bytes: &[u8]| {
            for piece in &pieces {
                let (one, rest) = bytes.split_at(piece.length);
                let to = at(piece.at);
                unsafe { std::ptr::copy_nonoverlapping(one.as_ptr(), to, one.len()) };
                bytes = rest;
            }
        };
        match it.deed {
            Deed::Put => put(&it.bytes),
            Deed::Get => answers.extend(gather()),
            Deed::Combine { op, datatype, tells } => {
                let there = gather();
                if tells {
                    answers.extend(&there);
                }
                put(&combine(state, op, datatype, &it.bytes, there));
            }
            Deed::Swap => {
                let there = gather();
                let (new, compared) = it.bytes.split_at(there.len());
                if there == compared {
                    put(new);
                }
                answers.extend(there);
            }
        }
    }
    Ok(answers)
}

/// What MPI makes of what was brought and what is there; both are packed.
fn combine(state: &State, op: i32, datatype: i32, brought: &[u8], there: Vec<u8>) -> Vec<u8> {
    let handles = state.handles();
    if op == number_of(calls::OP_C2F, handles.no_op) {
        return there;
    }
    if op == number_of(calls::OP_C2F, handles.replace) {
        return brought.to_vec();
    }
    let (datatype, op) = (numbered(calls::TYPE_F2C, datatype), numbered(calls::OP_F2C, op));
    let (size, extent) = (pack::size_of(datatype), pack::extent_of(datatype) as usize);
    let count = there.len() / size.max(1);
    let room = |bytes: &[u8]| {
        // As the widest of types wants it.
        let row = vec![0_u128; (count * extent).div_ceil(size_of::<u128>()) + 1];
        let part = Part { at: row.as_ptr() as usize, count, datatype };
        pack::unpack(state, bytes, part);
        (row, part)
    };
    let ((_brought, from), (_there, to)) = (room(brought), room(&there));
    let code = real::code(calls::REDUCE_LOCAL, &[from.at, to.at, count, datatype, op]);
    if code != abi::SUCCESS {
        real::fail(&format!("what was accumulated could not be combined (code {code})"));
    }
    let mut out = Vec::with_capacity(there.len());
    pack::pack(state, to, &mut out);
    out
}

/// Those of a group, as members of a window.
fn members_of(state: &mut State, group: usize, comm: usize) -> Vec<i32> {
    let ranks = comm::ranks_of(state, group);
    let known = state.comm(comm);
    let member = |rank: &i32| known.ranks.iter().position(|it| it == rank).map(|it| it as i32);
    ranks.iter().filter_map(member).collect()
}

/// MPI_Win_start.
pub(crate) fn start(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[2]);
    let comm = match state.known_window(handle, call) {
        Ok(window) if window.started.is_some() => {
            return state.window_error(handle, abi::table().err_rma_sync, call);
        }
        Ok(window) => window.comm,
        Err(code) => return code,
    };
    let group = members_of(state, abi::cut(args[0]), comm);
    if let Some(window) = state.window(handle) {
        window.started = Some(group);
    }
    abi::SUCCESS as usize
}

/// MPI_Win_post.
pub(crate) fn post(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[2]);
    let (comm, rank) = match state.known_window(handle, call) {
        Ok(window) if window.posted.is_some() => {
            return state.window_error(handle, abi::table().err_rma_sync, call);
        }
        Ok(window) => (window.comm, window.rank),
        Err(code) => return code,
    };
    let group = members_of(state, abi::cut(args[0]), comm);
    let mut guests = Vec::new();
    for member in group {
        let to = Box::new([0; 8]);
        let is_own = member == rank;
        let lengths = (!is_own).then(|| begin_receive(state, to.len(), member, LENGTHS, comm));
        guests.push(Guest { member, lengths, to, is_served: is_own });
    }
    if let Some(window) = state.window(handle) {
        window.posted = Some(guests);
    }
    abi::SUCCESS as usize
}

/// MPI_Win_complete: what was to be done leaves, and what is told of it is here at the end.  While
/// it is waited for, those are served whom this window is open to: they may wait for it.
pub(crate) fn complete(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    let group = match state.known_window(handle, call).map(|it| it.started.take()) {
        Ok(Some(group)) => group,
        Ok(None) => return state.window_error(handle, abi::table().err_rma_sync, call),
        Err(code) => return code,
    };
    let mut window = state.take_window(handle);
    let comm = window.comm;
    for member in &group {
        let row = window.waiting.remove(member).unwrap_or_default();
        if *member == window.rank {
            let answers = carry_out_surely(state, &window, &row);
            let wanted = window.results.remove(member).unwrap_or_default();
            take_answers(state, &answers, &wanted);
            continue;
        }
        begin_send(state, &(row.len() as u64).to_le_bytes(), *member, LENGTHS, comm);
        if !row.is_empty() {
            begin_send(state, &row, *member, ACCESSES, comm);
        }
    }
    let results = std::mem::take(&mut window.results);
    state.put_window(handle, window);
    for (member, wanted) in results {
        hear_answers(state, member, &wanted, comm);
    }
    abi::SUCCESS as usize
}

/// Who may want something of a window of this process's: whose it is by its slot.
#[derive(Clone, Copy)]
enum Caller {
    /// One of the group to which it is open, by its number there.
    Guest(usize, usize),
    /// Whoever knocks at its door.
    Knock(usize),
}

impl Windows {
    /// Those who have not been served, of all windows, and the receive that brings their word.
    fn callers(&self) -> Vec<(Caller, u64)> {
        let mut callers = Vec::new();
        for (slot, it) in self.open.iter().enumerate() {
            let Some(window) = it else { continue };
            let guests = window.posted.iter().flatten().enumerate();
            callers.extend(guests.filter_map(|(idx, it)| {
                Some((Caller::Guest(slot, idx), it.lengths.filter(|_| !it.is_served)?))
            }));
            let door = window.passive.as_ref().and_then(|it| it.door);
            callers.extend(door.map(|it| (Caller::Knock(slot), it)));
        }
        callers
    }
}

/// Serves those who want something of windows of this process, until something else is over here:
/// who accesses one may wait for this process, whatever it waits for itself (MPI 4.1 §12.7.3).
pub(crate) fn serve_until(state: &mut State, mut is_over: impl FnMut(&mut State) -> bool) {
    while serve_next(state, &mut is_over) {}
}

/// Serves those who have come; returns whether somebody had.
pub(crate) fn serve_once(state: &mut State) -> bool {
    let mut has_served = false;
    while serve_next(state, |_| true) {
        has_served = true;
    }
    has_served
}

/// Serves one, once one has come; returns whether one had, and not what `is_over` says before.
pub(crate) fn serve_next(state: &mut State, mut is_over: impl FnMut(&mut State) -> bool) -> bool {
    let callers = state.windows.callers();
    if callers.is_empty() {
        return false;
    }
    // In another process another replica may lead, and wait for what this one does of `is_over`.
    let served = std::mem::replace(&mut state.wait.serves, true);
    let (row, _) = state.event_with(For::Message, EventKind::Decision, |state, settles| {
        if !settles {
            is_over(state);
            return None;
        }
        let row = |number: usize| Some((number as u64).to_le_bytes().to_vec());
        match callers.iter().position(|it| state.is_received(it.1)) {
            Some(number) => row(number),
            None if is_over(state) => row(callers.len()),
            None => None,
        }
    });
    state.wait.serves = served;
    let chosen = row.first_chunk().and_then(|it| callers.get(u64::from_le_bytes(*it) as usize));
    match chosen {
        Some((Caller::Guest(slot, idx), _)) => serve(state, *slot, *idx),
        Some((Caller::Knock(slot), door)) => {
            passive::hear(state, Own::Window.handle(*slot), *door);
        }
        None => return false,
    }
    true
}

/// Does what a guest wants done, and tells it what it wants told.
fn serve(state: &mut State, slot: usize, idx: usize) {
    let handle = Own::Window.handle(slot);
    let mut window = state.take_window(handle);
    let comm = window.comm;
    if let Some(guest) = window.posted.as_mut().and_then(|it| it.get_mut(idx)) {
        guest.is_served = true;
        let member = guest.member;
        if let Some(id) = guest.lengths.take() {
            finish_receive(state, &mut guest.to[..], id);
        }
        let mut row = vec![0_u8; u64::from_le_bytes(*guest.to) as usize];
        if !row.is_empty() {
            let id = begin_receive(state, row.len(), member, ACCESSES, comm);
            finish_receive(state, &mut row, id);
            let answers = carry_out_surely(state, &window, &row);
            if !answers.is_empty() {
                begin_answer(state, &answers, member, ANSWERS, comm);
            }
        }
    }
    state.put_window(handle, window);
}

/// Whether all whom a window is open to have been served.
fn are_served(state: &mut State, handle: usize) -> bool {
    let posted = state.window(handle).and_then(|it| it.posted.as_ref());
    posted.is_none_or(|it| it.iter().all(|it| it.is_served))
}

/// A window that is open to others, or the answer to a call about one that is not.
fn posted_window(state: &mut State, handle: usize, call: Call) -> Result<(), usize> {
    if state.known_window(handle, call)?.posted.is_some() {
        return Ok(());
    }
    Err(state.window_error(handle, abi::table().err_rma_sync, call))
}

/// MPI_Win_wait: all whom this window is open to have completed.  Others may wait for this process
/// at other windows of its, and are served meanwhile.
pub(crate) fn wait(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    if let Err(code) = posted_window(state, handle, call) {
        return code;
    }
    while !are_served(state, handle) {
        serve_next(state, |_| false);
    }
    if let Some(window) = state.window(handle) {
        window.posted = None;
    }
    abi::SUCCESS as usize
}

/// MPI_Win_test: serves who has completed, and says whether all have.
pub(crate) fn test(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    if let Err(code) = posted_window(state, handle, call) {
        return code;
    }
    serve_once(state);
    let is_over = are_served(state, handle);
    if !is_over {
        state.spin(For::Message);
    }
    if let (true, Some(window)) = (is_over, state.window(handle)) {
        window.posted = None;
    }
    unsafe { *(args[1] as *mut i32) = i32::from(is_over) };
    abi::SUCCESS as usize
}
