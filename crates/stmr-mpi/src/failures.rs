//! What a program asks about failed processes (ULFM).  To the program none has failed: a process is
//! outlived by its replicas, or the program starts again.

use crate::abi;
use crate::calls;
use crate::collective;
use crate::comm;
use crate::generalized;
use crate::real::Call;
use crate::state::State;

pub(crate) fn is_revoked(_state: &mut State, _call: Call, args: &[usize]) -> usize {
    unsafe { *(args[1] as *mut i32) = 0 };
    abi::SUCCESS as usize
}

/// Nobody, as a group.
pub(crate) fn get_failed(state: &mut State, _call: Call, args: &[usize]) -> usize {
    comm::group_of(state, &[], args[1])
}

pub(crate) fn failure_ack(_state: &mut State, _call: Call, _args: &[usize]) -> usize {
    abi::SUCCESS as usize
}

pub(crate) fn ack_failed(_state: &mut State, _call: Call, args: &[usize]) -> usize {
    unsafe { *(args[2] as *mut i32) = 0 };
    abi::SUCCESS as usize
}

/// All processes get the bits that all have set.
pub(crate) fn agree(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let [comm, at] = [args[0], args[1]];
    if state.comm(comm).remote.is_none() {
        let all = all_of(state, abi::table().in_place, at, comm);
        return collective::blocking(state, calls::ALLREDUCE, &all);
    }
    // Each side gets the other's bits, and with those of a second time its own.
    let (mut others, mut own) = (0_i32, 0_i32);
    let [others_at, own_at] = [&raw mut others as usize, &raw mut own as usize];
    for [from, to] in [[at, others_at], [others_at, own_at]] {
        let code = collective::blocking(state, calls::ALLREDUCE, &all_of(state, from, to, comm));
        if code as i32 != abi::SUCCESS {
            return code;
        }
    }
    unsafe { *(at as *mut i32) = others & own };
    abi::SUCCESS as usize
}

fn all_of(state: &State, from: usize, to: usize, comm: usize) -> [usize; 6] {
    [from, to, 1, state.handles().int, state.handles().bits_and, comm]
}

pub(crate) fn shrink(state: &mut State, _call: Call, args: &[usize]) -> usize {
    comm::create(state, calls::COMM_DUP, args)
}

pub(crate) fn ishrink(state: &mut State, _call: Call, args: &[usize]) -> usize {
    generalized::idup(state, calls::COMM_IDUP, args)
}
