//! Types and operations that the program has freed and requests of it still need: MPI keeps those
//! of its own requests, and the requests here are this library's.

use crate::abi;
use crate::padding;
use crate::real::{self, Call};
use crate::state::State;

pub(crate) fn type_free(state: &mut State, call: Call, args: &[usize]) -> usize {
    let null = state.handles().datatype_null;
    padding::forget_all();
    free(state, call, args, null)
}

pub(crate) fn op_free(state: &mut State, call: Call, args: &[usize]) -> usize {
    let null = state.handles().op_null;
    free(state, call, args, null)
}

/// Frees what stands there, at once or when no request needs it.
fn free(state: &mut State, call: Call, args: &[usize], null: usize) -> usize {
    let is_needed = |state: &State, handle: usize| {
        let of_request = state.requests.iter().flatten().any(|it| it.uses(handle));
        of_request || state.windows.use_type(handle)
    };
    for (call, mut handle) in std::mem::take(&mut state.held) {
        if is_needed(state, handle) {
            state.held.push((call, handle));
        } else {
            real::call(call, &[&raw mut handle as usize]);
        }
    }
    let handle = unsafe { abi::handle_at(args[0], 0) };
    if handle == null || !is_needed(state, handle) {
        let code = real::code(call, args);
        return state.error_of_none(code, call);
    }
    state.held.push((call, handle));
    unsafe { abi::put_handle(args[0], 0, null) };
    abi::SUCCESS as usize
}
