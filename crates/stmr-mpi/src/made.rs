//! Communicators that a process makes after it has left MPI: what it was told of them by a twin,
//! and what MPI would answer about them.
//!
//! Their handles are none of MPI's, since MPI may be stuck in making another.

use std::sync::Arc;

use crate::abi::{self, Family, Own};
use crate::calls;
use crate::real::{self, Call};
use crate::state::State;
use crate::topology::{Topology, ints, put};

/// The longest name of a communicator, with the zero at its end.
const NAME_MAX: usize = 64;

/// What is known of such a communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// Its members, as ranks of the program.
    pub(crate) members: Vec<i32>,
    /// Those of the other side, if it has two.
    pub(crate) remote: Option<Vec<i32>>,
    pub(crate) topology: Topology,
    name: Vec<u8>,
}

/// The handle of the communicator of this number.
pub(crate) fn handle(number: u64) -> usize {
    Own::Communicator.handle(number as usize)
}

impl Made {
    /// What a twin tells of a communicator that MPI made: `bytes` are [`Made::of`]'s.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let words: Vec<i32> = bytes
            .chunks_exact(4)
            .map(|it| i32::from_le_bytes([it[0], it[1], it[2], it[3]]))
            .collect();
        let Some((&n, rest)) = words.split_first() else { return Self::default() };
        let (members, rest) = rest.split_at(rest.len().min(n as usize));
        // One more than those of the other side, or 0.
        let Some((&n, rest)) = rest.split_first() else { return Self::default() };
        let (remote, topology) = rest.split_at(rest.len().min((n - 1).max(0) as usize));
        Self {
            members: members.to_vec(),
            remote: (0 < n).then(|| remote.to_vec()),
            topology: Topology::read(topology),
            ..Self::default()
        }
    }

    /// A communicator of MPI's with these members, and these on the other side, as bytes.
    pub(crate) fn of(comm: usize, members: &[i32], remote: Option<&[i32]>) -> Vec<u8> {
        let mut words = vec![members.len() as i32];
        words.extend(members);
        words.push(remote.map_or(0, |it| 1 + it.len() as i32));
        words.extend(remote.unwrap_or_default());
        if remote.is_none() {
            words.extend(Topology::of(comm).words());
        }
        words.iter().flat_map(|it| it.to_le_bytes()).collect()
    }
}

/// What MPI would answer about `made`, with `rank` the own one in it; nothing if that is not known.
pub(crate) fn answer(
    state: &mut State,
    call: Call,
    args: &[usize],
    made: &Made,
    rank: i32,
) -> Option<usize> {
    if made.topology.answer(call, args, rank) {
        return Some(abi::SUCCESS as usize);
    }
    match call {
        // It is the same in any communicator, and MPI knows no hints of this one.
        calls::PACK
        | calls::UNPACK
        | calls::PACK_SIZE
        | calls::PACK_C
        | calls::UNPACK_C
        | calls::PACK_SIZE_C
        | calls::COMM_GET_INFO => {
            let mut mapped = args.to_vec();
            let at = calls::COMMUNICATORS[call.0].trailing_zeros() as usize;
            mapped[at] = state.hidden;
            return Some(real::call(call, &mapped));
        }
        // MPI need not heed any.
        calls::COMM_SET_INFO => {}
        // Ranks stay what they are.
        calls::CART_MAP => {
            let dims = unsafe { ints(args[2], usize::try_from(args[1] as i32).unwrap_or(0)) };
            put_place(args[4], rank, dims.iter().product());
        }
        calls::GRAPH_MAP => put_place(args[4], rank, args[1] as i32),
        calls::COMM_TEST_INTER => unsafe {
            put(args[1], &[i32::from(made.remote.is_some())]);
        },
        calls::COMM_SET_NAME => set_name(state, args),
        calls::COMM_GET_NAME => unsafe {
            let to = args[1] as *mut u8;
            std::ptr::copy_nonoverlapping(made.name.as_ptr(), to, made.name.len());
            *to.add(made.name.len()) = 0;
            put(args[2], &[made.name.len() as i32]);
        },
        calls::COMM_C2F | calls::COMM_TOINT => {
            let idx = Own::Communicator.idx(abi::cut(args[0]));
            return Some(Own::Communicator.to_fortran(idx) as usize);
        }
        _ => return None,
    }
    Some(abi::SUCCESS as usize)
}

/// Where process `rank` stands among `n`; Open MPI says so of those for whom there is no place.
fn put_place(at: usize, rank: i32, n: i32) {
    let is_there = rank < n || abi::table().family == Family::OpenMpi;
    unsafe { put(at, &[if is_there { rank } else { abi::UNDEFINED }]) };
}

fn set_name(state: &mut State, args: &[usize]) {
    let known = state.comms.get_mut(&args[0]).map(Arc::make_mut);
    if let Some(made) = known.and_then(|it| it.made.as_mut()) {
        let name = unsafe { std::ffi::CStr::from_ptr(args[1] as *const std::ffi::c_char) };
        made.name = name.to_bytes().iter().copied().take(NAME_MAX - 1).collect();
    }
}

/// The handle behind Fortran's number, if it is of a communicator made here.
pub(crate) fn comm_f2c(_state: &mut State, call: Call, args: &[usize]) -> usize {
    Own::Communicator.of_fortran(args[0] as i32).unwrap_or_else(|| real::call(call, args))
}

/// MPI_Comm_compare, also of communicators that MPI does not know.
pub(crate) fn comm_compare(state: &mut State, call: Call, args: &[usize]) -> usize {
    let [identical, congruent, similar, unequal] = abi::table().comparisons;
    let both = [args[0], args[1]].map(|it| state.behind(it));
    let is_made = |it: &usize| state.comms.get(it).is_some_and(|it| it.made.is_some());
    if !both.iter().any(is_made) {
        let code = real::code(call, &[both[0], both[1], args[2]]);
        return state.error_of_none(code, call);
    }
    let members = both.map(|it| crate::comm::members(state, it));
    let sorted = members.clone().map(|mut it| {
        it.sort_unstable();
        it
    });
    let answer = match () {
        () if both[0] == both[1] => identical,
        () if members[0] == members[1] => congruent,
        () if sorted[0] == sorted[1] => similar,
        () => unequal,
    };
    unsafe { put(args[2], &[answer]) };
    abi::SUCCESS as usize
}
