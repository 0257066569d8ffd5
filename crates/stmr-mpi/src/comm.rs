//! Communicators: the program's world is its set, and what is made after a death is made here.

use std::sync::Arc;

use selvedge_stmr::message::EventKind;

use crate::abi;
use crate::calls::{self, COMMUNICATORS};
use crate::made::{self, Made};
use crate::real::{self, Call};
use crate::state::State;

/// What is known of a communicator.
#[derive(Clone)]
pub(crate) struct Comm {
    pub(crate) rank: i32,
    pub(crate) size: i32,
    /// Its number among all that the program made.
    pub(crate) number: u64,
    /// Its members, as ranks of the program.
    pub(crate) ranks: Arc<[i32]>,
    /// If this replica had left MPI when it was made.
    pub(crate) made: Option<Made>,
}

pub(crate) fn rank_and_size(comm: usize) -> (i32, i32) {
    let (mut rank, mut size) = (0_i32, 0_i32);
    real::call(calls::COMM_RANK, &[comm, &raw mut rank as usize]);
    real::call(calls::COMM_SIZE, &[comm, &raw mut size as usize]);
    (rank, size)
}

impl State {
    /// The communicator that stands behind what the program names.
    pub(crate) fn behind(&self, comm: usize) -> usize {
        if comm == self.handles().world { self.world } else { comm }
    }

    /// What is known of the communicator behind the program's.
    pub(crate) fn comm(&mut self, comm: usize) -> Comm {
        let comm = self.behind(comm);
        if let Some(known) = self.comms.get(&comm) {
            return known.clone();
        }
        let (rank, size) = rank_and_size(comm);
        self.keep_comm(comm, rank, size, None)
    }

    fn keep_comm(&mut self, comm: usize, rank: i32, size: i32, made: Option<Made>) -> Comm {
        let ranks = match &made {
            Some(made) => made.members.clone(),
            None => members(self, comm),
        };
        let known = Comm { rank, size, number: self.n_comms, ranks: ranks.into(), made };
        self.n_comms += 1;
        self.comms.insert(comm, known.clone());
        known
    }

    /// Does what the program wants done about its errors.
    pub(crate) fn error(&mut self, comm: usize, code: i32, call: Call) -> usize {
        if code == abi::SUCCESS {
            return 0;
        }
        let handles = self.handles();
        let behind = self.behind(comm);
        let world = self.errhandlers.get(&self.world).copied();
        let handler = self.errhandlers.get(&behind).copied().or(world);
        match handler {
            Some(it) if it == handles.errors_return => code as usize,
            Some(it) if it != handles.errors_fatal => {
                let made = self.comms.get(&behind).is_some_and(|it| it.made.is_some());
                let behind = if made { self.world } else { behind };
                real::call(calls::COMM_SET_ERRHANDLER, &[behind, it]);
                real::call(calls::COMM_CALL_ERRHANDLER, &[behind, code as usize]);
                real::call(calls::COMM_SET_ERRHANDLER, &[behind, handles.errors_return]);
                code as usize
            }
            _ => {
                let (mut text, mut length) = ([0_u8; 512], 0_i32);
                let args = [code as usize, text.as_mut_ptr() as usize, &raw mut length as usize];
                real::call(calls::ERROR_STRING, &args);
                let text = String::from_utf8_lossy(&text[..length as usize]).into_owned();
                let (name, rank) = (call.name(), self.told.rank);
                self.say(&format!("note rank {rank}: {name} failed: {text}"));
                self.abort(code)
            }
        }
    }
}

/// Passes a call on, with the communicator that stands behind the program's.
pub(crate) fn pass(state: &mut State, call: Call, args: &[usize]) -> usize {
    let mask = COMMUNICATORS[call.0];
    if mask == 0 || state.handles.is_none() {
        return real::call(call, args);
    }
    let mut mapped = args.to_vec();
    for (idx, it) in mapped.iter_mut().enumerate() {
        if mask & 1 << idx != 0 {
            *it = state.behind(*it);
            if let Some(Comm { made: Some(made), rank, .. }) = state.comms.get(it).cloned() {
                // What MPI would know of it is not there.
                return match made::answer(state, call, args, &made, rank) {
                    Some(answer) => answer,
                    None => state.refuse(call),
                };
            }
        }
    }
    real::call(call, &mapped)
}

pub(crate) fn comm_rank(state: &mut State, _call: Call, args: &[usize]) -> usize {
    unsafe { *(args[1] as *mut i32) = state.comm(args[0]).rank };
    0
}

pub(crate) fn comm_size(state: &mut State, _call: Call, args: &[usize]) -> usize {
    unsafe { *(args[1] as *mut i32) = state.comm(args[0]).size };
    0
}

pub(crate) fn comm_group(state: &mut State, call: Call, args: &[usize]) -> usize {
    let comm = state.comm(args[0]);
    let Some(members) = comm.made else {
        return real::call(call, &[state.behind(args[0]), args[1]]);
    };
    let mut world = 0_usize;
    real::call(call, &[state.world, &raw mut world as usize]);
    let args = [world, members.members.len(), members.members.as_ptr() as usize, args[1]];
    real::call(calls::GROUP_INCL, &args)
}

/// The members of a communicator, as ranks of the program.
pub(crate) fn members(state: &State, comm: usize) -> Vec<i32> {
    if let Some(made) = state.comms.get(&comm).and_then(|it| it.made.as_ref()) {
        return made.members.clone();
    }
    let (_, size) = rank_and_size(comm);
    let (mut own, mut world) = (0_usize, 0_usize);
    real::call(calls::COMM_GROUP, &[comm, &raw mut own as usize]);
    real::call(calls::COMM_GROUP, &[state.world, &raw mut world as usize]);
    let ranks: Vec<i32> = (0..size).collect();
    let mut found = vec![0_i32; ranks.len()];
    let args = [own, ranks.len(), ranks.as_ptr() as usize, world, found.as_mut_ptr() as usize];
    real::call(calls::GROUP_TRANSLATE_RANKS, &args);
    for group in [&raw mut own, &raw mut world] {
        real::call(calls::GROUP_FREE, &[group as usize]);
    }
    found
}

/// Makes a communicator.  Where the new one is written is the last argument of all these calls.
pub(crate) fn create(state: &mut State, call: Call, args: &[usize]) -> usize {
    let null = state.handles().comm_null;
    let mut mapped = args.to_vec();
    for (idx, it) in mapped.iter_mut().enumerate() {
        if COMMUNICATORS[call.0] & 1 << idx != 0 {
            *it = state.behind(*it);
        }
    }
    let parent = mapped[0];
    let (number, rank) = (state.comm(parent).number, state.comm(parent).rank);
    state.mix(&[number, rank as u64]);
    if call == calls::COMM_SPLIT || call == calls::COMM_SPLIT_TYPE {
        state.mix(&[args[1] as u32 as u64, args[2] as u32 as u64]);
    }
    // What a process says to make it leaves the process.
    state.compare(Vec::new());
    let at = *args.last().expect("each of these calls has arguments");
    let mut code = 0;
    let (made, did) = state.event(EventKind::Data, |state| {
        code = state.block_for_handle(call, &mapped, mapped.len() - 1)? as i32;
        let new = unsafe { abi::handle_at(at, 0) };
        let none = code != abi::SUCCESS || new == null;
        Some(if none { Vec::new() } else { Made::of(new, &members(state, new)) })
    });
    if did {
        if code == abi::SUCCESS {
            let new = unsafe { abi::handle_at(at, 0) };
            if new != null {
                let (rank, size) = rank_and_size(new);
                state.keep_comm(new, rank, size, None);
                if let Some(handler) = state.errhandlers.get(&parent).copied() {
                    state.errhandlers.insert(new, handler);
                }
            }
        }
        return state.error(args[0], code, call);
    }
    let made = Made::read(&made);
    let own = made.members.iter().position(|it| *it == state.told.rank as i32);
    let mut new = null;
    if let Some(own) = own {
        new = made::handle(state.n_comms);
        state.keep_comm(new, own as i32, made.members.len() as i32, Some(made));
    }
    unsafe { abi::put_handle(at, 0, new) };
    abi::SUCCESS as usize
}

pub(crate) fn comm_free(state: &mut State, call: Call, args: &[usize]) -> usize {
    let comm = state.behind(unsafe { abi::handle_at(args[0], 0) });
    if comm == state.world {
        real::fail("MPI_Comm_free of MPI_COMM_WORLD");
    }
    state.comms.remove(&comm);
    state.errhandlers.remove(&comm);
    let left = state.replica.has_left();
    let done = if left { None } else { state.block_for_handle(call, args, 0) };
    if done.is_none() {
        unsafe { abi::put_handle(args[0], 0, state.handles().comm_null) };
    }
    done.unwrap_or(0)
}

pub(crate) fn comm_disconnect(state: &mut State, call: Call, args: &[usize]) -> usize {
    comm_free(state, call, args)
}

pub(crate) fn comm_get_attr(state: &mut State, call: Call, args: &[usize]) -> usize {
    let keyval = args[1] as i32;
    if keyval == abi::table().universe_size && args[0] == state.handles().world {
        static UNIVERSE: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
        UNIVERSE.store(state.told.ranks as i32, std::sync::atomic::Ordering::Relaxed);
        unsafe {
            *(args[2] as *mut *mut i32) = UNIVERSE.as_ptr();
            *(args[3] as *mut i32) = 1;
        }
        return 0;
    }
    if abi::table().is_own_keyval(keyval) {
        let world = state.handles().world;
        return real::call(call, &[&[world], &args[1..]].concat());
    }
    pass(state, call, args)
}

pub(crate) fn comm_set_errhandler(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let comm = state.behind(args[0]);
    state.errhandlers.insert(comm, abi::cut(args[1]));
    0
}

pub(crate) fn comm_get_parent(state: &mut State, _call: Call, args: &[usize]) -> usize {
    unsafe { abi::put_handle(args[0], 0, state.handles().comm_null) };
    0
}

pub(crate) fn comm_get_errhandler(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let comm = state.behind(args[0]);
    let fatal = state.handles().errors_fatal;
    let handler = state.errhandlers.get(&comm).copied().unwrap_or(fatal);
    unsafe { abi::put_handle(args[1], 0, handler) };
    0
}
