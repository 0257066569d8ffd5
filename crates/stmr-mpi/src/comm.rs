//! Communicators: the program's world is its set, and what is made after a death is made here.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::EventKind;

use crate::abi::{self, Family};
use crate::calls::{self, COMMUNICATORS};
use crate::counted::Owed;
use crate::epochs;
use crate::errors;
use crate::gate::Gate;
use crate::given;
use crate::made::{self, Made};
use crate::memory::For;
use crate::partitioned;
use crate::places;
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
    /// Those of the other side, if it has two.
    pub(crate) remote: Option<Arc<[i32]>>,
    /// If this replica had left MPI when it was made.
    pub(crate) made: Option<Made>,
    /// What MPI has not counted of its collectives.
    pub(crate) owed: Arc<Owed>,
}

impl Comm {
    /// Whom its messages go to and come from, as ranks of the program.
    pub(crate) fn peers(&self) -> &[i32] {
        self.remote.as_ref().unwrap_or(&self.ranks)
    }
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
    pub(crate) fn comm(&mut self, comm: usize) -> Arc<Comm> {
        let comm = self.behind(comm);
        if let Some(known) = self.comms.get(&comm) {
            return known.clone();
        }
        let (rank, size) = rank_and_size(comm);
        self.keep_comm(comm, rank, size, None)
    }

    fn keep_comm(&mut self, comm: usize, rank: i32, size: i32, made: Option<Made>) -> Arc<Comm> {
        let (ranks, remote) = match &made {
            Some(made) => (made.members.clone(), made.remote.clone()),
            None => (members(self, comm), others(self, comm)),
        };
        let (ranks, remote) = (ranks.into(), remote.map(Into::into));
        let (number, owed) = (self.n_comms, Arc::default());
        let known = Arc::new(Comm { rank, size, number, ranks, remote, made, owed });
        self.n_comms += 1;
        self.comms.insert(comm, known.clone());
        known
    }
}

/// Passes a call on, with the communicator that stands behind the program's.
pub(crate) fn pass(state: &mut State, call: Call, args: &[usize]) -> usize {
    let mask = COMMUNICATORS[call.0];
    if mask == 0 || state.handles.is_none() {
        return real::call(call, args);
    }
    let is_number = [calls::COMM_C2F, calls::COMM_TOINT].contains(&call);
    if is_number && args[0] == state.handles().world {
        // The program takes the number back to the handle that it knows.
        return real::call(call, args);
    }
    let mut mapped = args.to_vec();
    for place in places(mask) {
        let it = &mut mapped[place];
        *it = state.behind(*it);
        let known = state.comms.get(it).cloned();
        if let Some(Comm { made: Some(made), rank, .. }) = known.as_deref() {
            // What MPI would know of it is not there.
            return match made::answer(state, call, args, made, *rank) {
                Some(answer) => answer,
                None => state.refuse(call),
            };
        }
    }
    real::call(call, &mapped)
}

/// Has the program's handler hear of what a call that was passed on came to, which belongs to the
/// communicator that it is about, if there is one.
pub(crate) fn told_of(state: &mut State, call: Call, args: &[usize], code: i32) -> usize {
    match COMMUNICATORS[call.0] {
        0 => state.error_of_none(code, call),
        mask => state.error(args[mask.trailing_zeros() as usize], code, call),
    }
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
    match &comm.made {
        None => {
            let code = real::code(call, &[state.behind(args[0]), args[1]]);
            state.error(args[0], code, call)
        }
        Some(made) => group_of(state, &made.members, args[1]),
    }
}

pub(crate) fn comm_remote_group(state: &mut State, call: Call, args: &[usize]) -> usize {
    let comm = state.comm(args[0]);
    match &comm.made {
        None => {
            let code = real::code(call, &[state.behind(args[0]), args[1]]);
            state.error(args[0], code, call)
        }
        Some(made) => group_of(state, made.remote.as_deref().unwrap_or_default(), args[1]),
    }
}

pub(crate) fn comm_remote_size(state: &mut State, call: Call, args: &[usize]) -> usize {
    let known = state.comm(args[0]);
    let Some(remote) = &known.remote else {
        let code = real::code(call, &[state.behind(args[0]), args[1]]);
        return state.error(args[0], code, call);
    };
    unsafe { *(args[1] as *mut i32) = remote.len() as i32 };
    abi::SUCCESS as usize
}

/// Makes a group of these ranks of the program.
pub(crate) fn group_of(state: &State, members: &[i32], at: usize) -> usize {
    let mut world = 0_usize;
    real::call(calls::COMM_GROUP, &[state.world, &raw mut world as usize]);
    real::call(calls::GROUP_INCL, &[world, members.len(), members.as_ptr() as usize, at])
}

/// The members of a communicator, as ranks of the program.
pub(crate) fn members(state: &State, comm: usize) -> Vec<i32> {
    if let Some(made) = state.comms.get(&comm).and_then(|it| it.made.as_ref()) {
        return made.members.clone();
    }
    as_ranks(state, comm, calls::COMM_GROUP)
}

/// Those of the other side of a communicator of MPI's, if it has two.
fn others(state: &State, comm: usize) -> Option<Vec<i32>> {
    let mut flag = 0_i32;
    real::call(calls::COMM_TEST_INTER, &[comm, &raw mut flag as usize]);
    (flag != 0).then(|| as_ranks(state, comm, calls::COMM_REMOTE_GROUP))
}

/// A group of a communicator of MPI's, as ranks of the program.
fn as_ranks(state: &State, comm: usize, which: Call) -> Vec<i32> {
    let mut own = 0_usize;
    real::call(which, &[comm, &raw mut own as usize]);
    let found = ranks_of(state, own);
    real::call(calls::GROUP_FREE, &[&raw mut own as usize]);
    found
}

/// Those of a group, as ranks of the program.
pub(crate) fn ranks_of(state: &State, group: usize) -> Vec<i32> {
    let (mut world, mut size) = (0_usize, 0_i32);
    real::call(calls::COMM_GROUP, &[state.world, &raw mut world as usize]);
    real::call(calls::GROUP_SIZE, &[group, &raw mut size as usize]);
    let ranks: Vec<i32> = (0..size).collect();
    let mut found = vec![0_i32; ranks.len()];
    let args = [group, ranks.len(), ranks.as_ptr() as usize, world, found.as_mut_ptr() as usize];
    real::call(calls::GROUP_TRANSLATE_RANKS, &args);
    real::call(calls::GROUP_FREE, &[&raw mut world as usize]);
    found
}

/// Before a communicator is made of the first argument: what the process says to that is compared
/// with what comes next.  Returns what is known of the one that there is.
fn begin(state: &mut State, call: Call, args: &[usize]) -> Arc<Comm> {
    state.finish_makings(args[0]);
    let known = state.comm(args[0]);
    state.mix(&[known.number, known.rank as u64]);
    let given = given::given(state, call, args, &known);
    state.mix(&given);
    known
}

/// Makes a communicator.  Where the new one is written is the last argument of all these calls.
pub(crate) fn create(state: &mut State, call: Call, args: &[usize]) -> usize {
    let null = state.handles().comm_null;
    let mut mapped = args.to_vec();
    for place in places(COMMUNICATORS[call.0]) {
        mapped[place] = state.behind(mapped[place]);
    }
    let parent = mapped[0];
    let known = begin(state, call, &mapped);
    // Once all have come here, none of them still waits in a send for a receive of this process's
    // that is not begun: while a thread waits in MPI, none can be.
    let mut gate = if call == calls::COMM_CREATE_GROUP || known.remote.is_some() {
        state.compare(Vec::new());
        match call {
            calls::COMM_CREATE_GROUP => Gate::of_ranks(state, ranks_of(state, args[1])),
            _ => Gate::of_both_sides(state, &known),
        }
    } else {
        state.meet(parent);
        match call {
            calls::INTERCOMM_CREATE => Gate::between(state, args, &known),
            _ => Gate::open(),
        }
    };
    epochs::serve_until(state, |state| gate.is_open(state));
    let at = *args.last().expect("each of these calls has arguments");
    let mut code = 0;
    let (told, did) = state.event_for(For::Collective, EventKind::Data, |state| {
        if !gate.is_open(state) {
            return None;
        }
        code = state.block_for_handle(call, &mapped, mapped.len() - 1)? as i32;
        let new = if code == abi::SUCCESS { unsafe { abi::handle_at(at, 0) } } else { null };
        Some([&code.to_le_bytes()[..], &tell(state, new)].concat())
    });
    if did {
        let new = unsafe { abi::handle_at(at, 0) };
        if code == abi::SUCCESS {
            state.keep_made(new, parent);
        }
        return state.error(args[0], code, call);
    }
    let (code, told) = told.split_first_chunk().expect("it begins with its code");
    let code = i32::from_le_bytes(*code);
    let new = state.keep_told(told, parent);
    unsafe { abi::put_handle(at, 0, new) };
    state.error(args[0], code, call)
}

/// MPI_Comm_split_type: who is together is what the meta's MPI says.  That of another set may say
/// something else, where its processes do not lie on hosts as the meta's do.
pub(crate) fn split_type(state: &mut State, call: Call, args: &[usize]) -> usize {
    let known = state.comm(args[0]);
    if state.told.replicas == 1 || known.remote.is_some() {
        return create(state, call, args);
    }
    let parent = state.behind(args[0]);
    begin(state, call, args);
    state.meet(parent);
    let (said, _) = state.event_for(For::Collective, EventKind::Data, |state| {
        let mut together = 0_usize;
        let at = &raw mut together as usize;
        let to = [parent, args[1], args[2], args[3], at];
        let code = state.block_for_handle(call, &to, 4)? as i32;
        let is_one = code == abi::SUCCESS && together != state.handles().comm_null;
        let first = is_one.then(|| as_ranks(state, together, calls::COMM_GROUP).into_iter().min());
        if is_one {
            state.block_for_handle(calls::COMM_FREE, &[at], 0);
        }
        Some([code, first.flatten().unwrap_or(abi::UNDEFINED)].map(i32::to_le_bytes).concat())
    });
    let (said, _) = state.event(EventKind::Decision, |_| Some(said.to_vec()));
    let [code, color] = [0, 4].map(|at| {
        said.get(at..).and_then(|it| it.first_chunk().copied()).map_or(0, i32::from_le_bytes)
    });
    if code != abi::SUCCESS {
        return state.error(args[0], code, call);
    }
    let color = color as u32 as usize;
    create(state, calls::COMM_SPLIT, &[args[0], color, args[2], args[4]])
}

/// MPI_Comm_create_from_group.  All groups of this program are of its processes, so that their
/// communicator can be made from that of all.
pub(crate) fn create_from_group(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let tag = tag_of(args[1]);
    let code = create_group(state, args[0], tag, args[4]);
    state.set_errhandler(args[4], args[3]);
    code
}

/// MPI_Intercomm_create_from_groups.
pub(crate) fn intercomm_from_groups(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let (tag, world) = (tag_of(args[4]), state.handles().world);
    let (mut all, mut leader, mut local) = (0_usize, 0_i32, 0_usize);
    real::call(calls::COMM_GROUP, &[state.world, &raw mut all as usize]);
    let remote_leader = args[3] as i32;
    let of = &raw const remote_leader as usize;
    let to = &raw mut leader as usize;
    real::call(calls::GROUP_TRANSLATE_RANKS, &[args[2], 1, of, all, to]);
    real::call(calls::GROUP_FREE, &[&raw mut all as usize]);
    create_group(state, args[0], tag, &raw mut local as usize);
    let local_leader = args[1] as u32 as usize;
    let between = [local, local_leader, world, leader as u32 as usize, tag, args[7]];
    let code = create(state, calls::INTERCOMM_CREATE, &between);
    comm_free(state, calls::COMM_FREE, &[&raw mut local as usize]);
    state.set_errhandler(args[7], args[6]);
    code
}

fn create_group(state: &mut State, group: usize, tag: usize, at: usize) -> usize {
    let world = state.handles().world;
    create(state, calls::COMM_CREATE_GROUP, &[world, group, tag, at])
}

/// A tag that those who give the same text have.
fn tag_of(text: usize) -> usize {
    let text = unsafe { std::ffi::CStr::from_ptr(text as *const std::ffi::c_char) };
    Digest::of(text.to_bytes()).0 as usize & 0x7fff
}

/// What a twin is told of a communicator that MPI made, if it made one.
pub(crate) fn tell(state: &State, new: usize) -> Vec<u8> {
    if new == state.handles().comm_null {
        return Vec::new();
    }
    Made::of(new, &members(state, new), others(state, new).as_deref())
}

impl State {
    /// What is done about errors of the communicator whose handle lies there.
    fn set_errhandler(&mut self, at: usize, handler: usize) {
        let comm = unsafe { abi::handle_at(at, 0) };
        if comm != self.handles().comm_null
            && let Ok(handler) = held(self, abi::cut(handler))
        {
            self.errhandlers.insert(comm, handler);
        }
    }

    /// Keeps a communicator that MPI made; what is done about errors is as with its parent.
    pub(crate) fn keep_made(&mut self, new: usize, parent: usize) {
        if new == self.handles().comm_null {
            return;
        }
        let (rank, size) = rank_and_size(new);
        self.keep_comm(new, rank, size, None);
        if let Some(handler) = self.errhandlers.get(&parent).copied() {
            self.errhandlers.insert(new, handler);
        }
    }

    /// Keeps a communicator that a twin told of; returns its handle.
    pub(crate) fn keep_told(&mut self, told: &[u8], parent: usize) -> usize {
        let made = Made::read(told);
        let own = made.members.iter().position(|it| *it == self.told.rank as i32);
        let Some(own) = own else { return self.handles().comm_null };
        let new = made::handle(self.n_comms);
        if let Some(handler) = self.errhandlers.get(&parent).copied() {
            self.errhandlers.insert(new, handler);
        }
        self.keep_comm(new, own as i32, made.members.len() as i32, Some(made));
        new
    }
}

pub(crate) fn comm_free(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handles = state.handles();
    let shown = unsafe { abi::handle_at(args[0], 0) };
    let comm = state.behind(shown);
    if [handles.world, handles.own].contains(&shown) || !state.is_comm(shown) {
        let code = real::code(call, args);
        let has_own = abi::table().family == Family::OpenMpi && state.is_comm(shown);
        return match has_own {
            true => state.error(shown, code, call),
            false => state.error_of_none(code, call),
        };
    }
    let code = state.drop_all_kept(shown);
    if code != abi::SUCCESS {
        return state.error(shown, code, call);
    }
    // MPI does not know of receives that begin later, and keeps it for those alone that it knows.
    let is_needed = state.receives.are_held_on(comm);
    state.comms.remove(&comm);
    state.errhandlers.remove(&comm);
    let left = is_needed || state.replica.has_left();
    let done = if left { None } else { state.block_for_handle(call, args, 0) };
    if done.is_none() {
        unsafe { abi::put_handle(args[0], 0, handles.comm_null) };
    }
    done.unwrap_or(0)
}

pub(crate) fn comm_disconnect(state: &mut State, call: Call, args: &[usize]) -> usize {
    comm_free(state, call, args)
}

/// MPI's own attributes, and those that Fortran keeps.
pub(crate) fn comm_get_attr(state: &mut State, call: Call, args: &[usize]) -> usize {
    let keyval = args[1] as i32;
    let table = abi::table();
    let comm = state.behind(args[0]);
    let is_made = state.comms.get(&comm).is_some_and(|it| it.made.is_some());
    let is_own = table.is_own_keyval(keyval);
    if is_made || is_own {
        static UNIVERSE: AtomicI32 = AtomicI32::new(0);
        let world = if is_own { state.handles().world } else { state.world };
        let answer = real::call(call, &[&[world], &args[1..]].concat());
        UNIVERSE.store(state.told.ranks as i32, Ordering::Relaxed);
        let ours = match keyval {
            it if it == table.universe_size && args[0] == state.handles().world => Some(&UNIVERSE),
            it if it == table.tag_ub() => Some(partitioned::shown_tag_max(state)),
            _ => None,
        };
        // MPI may not know.
        if let Some(ours) = ours
            && answer == abi::SUCCESS as usize
            && unsafe { *(args[3] as *const i32) } != 0
        {
            unsafe { *(args[2] as *mut *mut i32) = ours.as_ptr() };
        }
        return answer;
    }
    let code = pass(state, call, args) as i32;
    told_of(state, call, args, code)
}

pub(crate) fn comm_set_errhandler(state: &mut State, call: Call, args: &[usize]) -> usize {
    match held(state, abi::cut(args[1])) {
        Ok(handler) => {
            let comm = state.behind(args[0]);
            state.errhandlers.insert(comm, handler);
            abi::SUCCESS as usize
        }
        Err(code) if real::is_mpich_5() => state.error_of_none(code, call),
        Err(code) => state.error(args[0], code, call),
    }
}

/// One more hold of a handler of communicators.
pub(crate) fn held(state: &State, handler: usize) -> Result<usize, i32> {
    let handles = state.handles();
    let calls = [calls::COMM_SET_ERRHANDLER, calls::COMM_GET_ERRHANDLER];
    errors::held(calls, handles.own, handler, handles.errors_return)
}

/// Does what the program wants done about its errors, about one of its own.
pub(crate) fn comm_call_errhandler(state: &mut State, call: Call, args: &[usize]) -> usize {
    state.error(args[0], args[1] as i32, call);
    abi::SUCCESS as usize
}

pub(crate) fn comm_get_parent(state: &mut State, _call: Call, args: &[usize]) -> usize {
    unsafe { abi::put_handle(args[0], 0, state.handles().comm_null) };
    0
}

pub(crate) fn comm_get_errhandler(state: &mut State, _call: Call, args: &[usize]) -> usize {
    let comm = state.behind(args[0]);
    let fatal = state.handles().errors_fatal;
    let handler = state.errhandlers.get(&comm).copied().unwrap_or(fatal);
    let handler = held(state, handler).unwrap_or(handler);
    unsafe { abi::put_handle(args[1], 0, handler) };
    0
}
