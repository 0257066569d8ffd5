//! Matched probes: what one finds is received at once, into a buffer of this library's, by the name
//! that the meta's probe gave it; MPI_Mrecv takes it from there.

use selvedge_stmr::message::EventKind;

use crate::abi::{self, Own, Status};
use crate::calls;
use crate::epochs;
use crate::errors;
use crate::p2p::{look, probed};
use crate::pack::{self, Part};
use crate::partitioned;
use crate::real::{self, Call};
use crate::receives::begin_receive;
use crate::request::Request;
use crate::sends::Source;
use crate::state::State;

/// A message that a probe found: its receive.
pub(crate) struct Matched(u64);

pub(crate) fn mprobe(state: &mut State, call: Call, args: &[usize]) -> usize {
    probe(state, call, args, None)
}

pub(crate) fn improbe(state: &mut State, call: Call, args: &[usize]) -> usize {
    probe(state, call, &[args[0], args[1], args[2], args[4], args[5]], Some(args[3]))
}

fn probe(state: &mut State, call: Call, args: &[usize], flag: Option<usize>) -> usize {
    state.sources.insert(Source::Wildcard);
    let wanted = args.to_vec();
    epochs::serve_until(state, |state| flag.is_some() || look(state, &wanted).is_some());
    let found = |state: &mut State| look(state, &wanted).map(|it| it.to_bytes().to_vec());
    let row = match flag {
        Some(_) => {
            let asked = probed(state, call, args);
            state.inquire(&asked, found)
        }
        None => Some(state.event(EventKind::Decision, found).0),
    };
    if let Some(flag) = flag {
        unsafe { *(flag as *mut i32) = i32::from(row.is_some()) };
    }
    let Some(row) = row else { return abi::SUCCESS as usize };
    let status = Status::from_bytes(&row);
    partitioned::refuse_met(state, status.tag);
    let whole = Part { at: 0, count: status.count as usize, datatype: state.handles().byte };
    let Some(id) = begin_receive(state, whole, status.source, status.tag, args[2]) else {
        unsafe {
            abi::put_handle(args[3], 0, state.handles().message_no_proc);
            status.write(args[4], false);
        }
        return abi::SUCCESS as usize;
    };
    let slot = abi::keep_in(&mut state.matched, Matched(id));
    unsafe {
        abi::put_handle(args[3], 0, Own::Message.handle(slot));
        status.write(args[4], false);
    }
    abi::SUCCESS as usize
}

/// Takes the message out of the program's handle, which becomes null; nothing if it is from
/// nobody.
fn take(state: &mut State, at: usize) -> Option<u64> {
    let handle = unsafe { abi::handle_at(at, 0) };
    if handle == state.handles().message_no_proc {
        unsafe { abi::put_handle(at, 0, state.handles().message_null) };
        return None;
    }
    let slot = Own::Message.idx(handle);
    let Some(Matched(id)) = state.matched.get_mut(slot).and_then(Option::take) else {
        unreachable!("it was looked at before")
    };
    unsafe { abi::put_handle(at, 0, state.handles().message_null) };
    Some(id)
}

/// The answer to a call that receives a message that no probe found, or into what MPI refuses.
fn refusal(state: &mut State, call: Call, args: &[usize], part: Part) -> Option<usize> {
    let handle = unsafe { abi::handle_at(args[3], 0) };
    let found = state.matched.get(Own::Message.idx(handle)).is_some_and(Option::is_some);
    if !found && handle != state.handles().message_no_proc {
        return Some(state.error_of_none(abi::table().err_request, call));
    }
    let code = errors::of_part(state, calls::RECV, part);
    (code != abi::SUCCESS).then(|| state.error_of_none(code, call))
}

pub(crate) fn mrecv(state: &mut State, call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    if let Some(code) = refusal(state, call, args, part) {
        return code;
    }
    let (status, comm) = match take(state, args[3]) {
        None => (Status::nobody(), state.world),
        Some(id) => {
            let comm = state.comm_of_receive(id).unwrap_or(state.world);
            (state.finish_receive(id, part), comm)
        }
    };
    unsafe { status.write(args[4], false) };
    state.error(comm, status.error, call)
}

pub(crate) fn imrecv(state: &mut State, call: Call, args: &[usize]) -> usize {
    let part = Part { at: args[0], count: args[1] as i32 as usize, datatype: args[2] };
    if let Some(code) = refusal(state, call, args, part) {
        return code;
    }
    let request = match take(state, args[3]) {
        None => Request::Done(Status::nobody()),
        Some(id) => Request::Receive(id, part),
    };
    state.keep_request(request, args[4]);
    abi::SUCCESS as usize
}

/// Contents as far as `part` has room for them, and whether it has.
pub(crate) fn fit<'a>(contents: &'a [u8], part: &Part) -> (&'a [u8], bool) {
    let room = part.count * pack::size_of(part.datatype);
    (&contents[..contents.len().min(room)], contents.len() <= room)
}

pub(crate) fn message_c2f(state: &mut State, call: Call, args: &[usize]) -> usize {
    let slot = Own::Message.idx(abi::cut(args[0]));
    if slot < state.matched.len() {
        return Own::Message.to_fortran(slot) as usize;
    }
    real::call(call, args)
}

pub(crate) fn message_f2c(_state: &mut State, call: Call, args: &[usize]) -> usize {
    Own::Message.of_fortran(args[0] as i32).unwrap_or_else(|| real::call(call, args))
}
