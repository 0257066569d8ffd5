//! Windows that are locked: passive targets (MPI 4.1 §12.5.3).
//!
//! ```text
//! lock    ──► a visit that takes the lock ──► granted when nobody is in its way
//! put, get, accumulate …   wait here for the next call that is none of these
//!         ──► a visit that brings them    ──► carried out, answered
//! flush   ──► the answers are waited for
//! unlock  ──► the same, of a visit that lets go of the lock
//! ```
//!
//! A window has a *door*: a receive from anybody, at which members knock.  Whose window it is hears
//! of them in whatever call of MPI it waits, or asks, and not while it computes; when is a decision
//! of the replica that leads, like whose message a receive from anybody takes.  What follows from
//! it, [`selvedge_stmr::locks`] says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_stmr::locks::{KNOCK, Knock, Lock, Locks, Visit};

use crate::abi;
use crate::calls;
use crate::epochs;
use crate::memory::For;
use crate::real::{self, Call};
use crate::state::State;
use crate::windows::{Wanted, Window};

/// Tags of a window's messages, beside those of `epochs`.
const KNOCKS: i32 = 4;
const ACCESSES: i32 = 5;
const ANSWERS: i32 = 6;

/// What is said at the door may be so long, in bytes: short accesses are said there at once.
const DOOR: usize = 1024;

/// So many visits of a window may be under way before an answer is waited for.
const COMING_MAX: usize = 64;

/// Calls that only add to what waits.
const ACCESSES_ALL: [Call; 10] = [
    calls::PUT,
    calls::GET,
    calls::ACCUMULATE,
    calls::GET_ACCUMULATE,
    calls::FETCH_AND_OP,
    calls::COMPARE_AND_SWAP,
    calls::RPUT,
    calls::RGET,
    calls::RACCUMULATE,
    calls::RGET_ACCUMULATE,
];

/// What a window has if it may be locked.
pub(crate) struct Passive {
    /// The receive at which members knock, until nobody does any more.
    pub(crate) door: Option<u64>,
    /// Of this process's window.
    locks: Locks,
    /// Members whose windows this process has locked.
    held: BTreeSet<i32>,
    /// It has locked all.
    all: Option<All>,
    /// What its visits of its own window are told, by their numbers; those that began, and that
    /// were carried out.
    own: BTreeMap<u64, Vec<u8>>,
    n_own: [u64; 2],
    /// Visits whose answers have not been waited for.
    coming: VecDeque<Coming>,
}

/// All members' windows are locked.
struct All {
    /// Those whom this process has visited since.
    visited: BTreeSet<i32>,
    /// Who is visited is locked then, unless the program says that this is not needed.
    locks: bool,
}

impl Passive {
    /// For a window of a communicator that nobody else has.
    pub(crate) fn open(state: &mut State, comm: usize) -> Self {
        let door = Some(open_door(state, comm));
        Self {
            door,
            locks: Locks::default(),
            held: BTreeSet::new(),
            all: None,
            own: BTreeMap::new(),
            n_own: [0; 2],
            coming: VecDeque::new(),
        }
    }

    /// Whether this process has locked a window.
    pub(crate) fn is_locked(&self) -> bool {
        !self.held.is_empty() || self.all.is_some()
    }

    /// What is still to come of what was asked for.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        self.coming.iter().flat_map(|it| &it.wanted)
    }

    pub(crate) fn has_locked(&self, member: i32) -> bool {
        self.held.contains(&member) || self.all.is_some()
    }
}

fn open_door(state: &mut State, comm: usize) -> u64 {
    epochs::begin_receive(state, DOOR, abi::table().any_source, KNOCKS, comm)
}

/// Where the answer to a visit comes.
#[derive(Clone, Copy)]
enum Answer {
    /// By this receive.
    Received(u64),
    /// Here, to the visit of this number.
    Own(u64),
}

/// A visit that is not answered yet.
struct Coming {
    member: i32,
    answer: Answer,
    length: usize,
    wanted: Vec<Wanted>,
}

/// Visits a member: brings it what waits for its window.
fn begin_visit(
    state: &mut State,
    handle: usize,
    member: i32,
    (lock, unlocks): (Option<Lock>, bool),
) {
    let window = state.window(handle).expect("it is known");
    let (comm, own) = (window.comm, window.rank);
    let accesses = window.waiting.remove(&member).unwrap_or_default();
    let wanted = window.results.remove(&member).unwrap_or_default();
    let length = 1 + wanted.iter().map(|it| it.length).sum::<usize>();
    if member == own {
        let passive = self::passive(state, handle);
        let answer = Answer::Own(passive.n_own[0]);
        passive.n_own[0] += 1;
        passive.coming.push_back(Coming { member, answer, length, wanted });
        arrive(state, handle, member, Visit { lock, accesses, unlocks });
        return;
    }
    let id = epochs::begin_receive(state, length, member, ANSWERS, comm);
    let knock = Knock::Visit { lock, unlocks, length: accesses.len() as u64 };
    let mut row = knock.to_bytes().to_vec();
    if row.len() + accesses.len() <= DOOR {
        row.extend(&accesses);
        epochs::begin_send(state, &row, member, KNOCKS, comm);
    } else {
        epochs::begin_send(state, &row, member, KNOCKS, comm);
        epochs::begin_send(state, &accesses, member, ACCESSES, comm);
    }
    let coming = Coming { member, answer: Answer::Received(id), length, wanted };
    passive(state, handle).coming.push_back(coming);
}

/// Waits until a visit is over, and takes what it was told.  Returns MPI's code.
fn finish_visit(state: &mut State, handle: usize, coming: Coming) -> i32 {
    let Coming { answer, length, wanted, .. } = coming;
    let row = match answer {
        Answer::Received(id) => {
            let mut row = vec![0; length];
            epochs::serve_until(state, |state| state.is_received(id));
            epochs::finish_receive(state, &mut row, id);
            row
        }
        Answer::Own(number) => {
            // Who tries its own again and again may wait for somebody who has come.
            epochs::serve_once(state);
            loop {
                if let Some(row) = passive(state, handle).own.remove(&number) {
                    break row;
                }
                epochs::serve_next(state, |_| false);
            }
        }
    };
    match row.split_first() {
        Some((0, answers)) => {
            epochs::take_answers(state, answers, &wanted);
            abi::SUCCESS
        }
        _ => abi::table().err_rma_range,
    }
}

/// What a window that is known, and may be locked, has for that.
fn passive(state: &mut State, handle: usize) -> &mut Passive {
    let window = state.window(handle).expect("it is known");
    window.passive.as_mut().expect("it may be locked")
}

/// Waits for the answers to visits of which this holds, in their order; returns the first code that
/// is an error.
fn finish_visits(state: &mut State, handle: usize, which: impl Fn(&Coming) -> bool) -> i32 {
    let mut first = abi::SUCCESS;
    while let Some(at) = passive(state, handle).coming.iter().position(&which) {
        let coming = passive(state, handle).coming.remove(at).expect("it was found there");
        let code = finish_visit(state, handle, coming);
        first = if first == abi::SUCCESS { code } else { first };
    }
    first
}

/// Visits these members at a time, and waits for all answers of theirs; returns the first code that
/// is an error.
fn visit(
    state: &mut State,
    handle: usize,
    members: &[i32],
    what: impl Fn(&mut Passive, i32) -> (Option<Lock>, bool),
) -> i32 {
    for member in members {
        let what = what(passive(state, handle), *member);
        begin_visit(state, handle, *member, what);
    }
    finish_visits(state, handle, |it| members.contains(&it.member))
}

/// What waits for windows that are locked leaves: the program may look for what comes of it without
/// waiting for it.
pub(crate) fn leave_before(state: &mut State, call: Call) {
    if ACCESSES_ALL.contains(&call) {
        return;
    }
    for handle in std::mem::take(&mut state.windows.pending) {
        let Some(window) = state.window(handle) else { continue };
        let members: Vec<i32> = window.waiting.keys().copied().collect();
        for member in members {
            if passive(state, handle).has_locked(member) {
                let what = bring(passive(state, handle), member);
                begin_visit(state, handle, member, what);
            }
        }
        while COMING_MAX < passive(state, handle).coming.len() {
            let coming = passive(state, handle).coming.pop_front().expect("there are more");
            let code = finish_visit(state, handle, coming);
            state.window_error(handle, code, call);
        }
    }
}

/// What a visit within an epoch does: the first to one of all takes its lock.
fn bring(passive: &mut Passive, member: i32) -> (Option<Lock>, bool) {
    let takes = passive.all.as_mut().is_some_and(|it| it.visited.insert(member) && it.locks);
    (takes.then_some(Lock::Shared), false)
}

/// Whether the program says that no lock is in the way of one that it takes.  MPI then takes none,
/// and programs rely on that: OpenCoarrays waits for an event in such an epoch of all windows, and
/// who brings the event has locked this one for itself.
fn is_unchecked(assertion: usize) -> bool {
    assertion as i32 & abi::table().mode_nocheck != 0
}

/// Somebody has come to this process's window.
fn arrive(state: &mut State, handle: usize, member: i32, visit: Visit) {
    if let Some(visit) = passive(state, handle).locks.arrive(member, visit) {
        carry_out(state, handle, member, &visit);
    }
    while let Some((member, visit)) = passive(state, handle).locks.grant_next() {
        carry_out(state, handle, member, &visit);
    }
}

fn carry_out(state: &mut State, handle: usize, member: i32, visit: &Visit) {
    let window = state.take_window(handle);
    let answers = epochs::carry_out(state, &window, &visit.accesses);
    let (comm, own) = (window.comm, window.rank);
    state.put_window(handle, window);
    let mut row = vec![u8::from(answers.is_err())];
    row.extend(answers.unwrap_or_default());
    let passive = passive(state, handle);
    if visit.unlocks {
        passive.locks.release(member);
    }
    if member == own {
        passive.own.insert(passive.n_own[1], row);
        passive.n_own[1] += 1;
    } else {
        epochs::begin_answer(state, &row, member, ANSWERS, comm);
    }
}

/// Hears who has knocked, and what for.
pub(crate) fn hear(state: &mut State, handle: usize, door: u64) {
    let mut row = [0; DOOR];
    let status = epochs::finish_receive(state, &mut row, door);
    let (head, rest) = row[..status.count as usize].split_at_checked(KNOCK).unwrap_or_default();
    let knock = Knock::of(head).unwrap_or_else(|| real::fail("nobody knocks like that"));
    let Some(comm) = state.window(handle).map(|it| it.comm) else { return };
    let (Knock::Visit { lock, unlocks, length }, member) = (knock, status.source) else {
        passive(state, handle).door = None;
        return;
    };
    let mut accesses = rest.to_vec();
    if rest.len() as u64 != length {
        accesses = vec![0; length as usize];
        let id = epochs::begin_receive(state, accesses.len(), member, ACCESSES, comm);
        epochs::finish_receive(state, &mut accesses, id);
    }
    let door = open_door(state, comm);
    passive(state, handle).door = Some(door);
    arrive(state, handle, member, Visit { lock, accesses, unlocks });
}

/// Shuts the door of a window that nobody uses any more: all members have come to say so.
pub(crate) fn close(state: &mut State, handle: usize) {
    let is_open = |state: &mut State| {
        let window = state.window(handle).expect("it is known");
        window.passive.as_ref().is_some_and(|it| it.door.is_some())
    };
    if !is_open(state) {
        return;
    }
    let window = state.window(handle).expect("it is known");
    let (comm, own) = (window.comm, window.rank);
    epochs::begin_send(state, &Knock::Close.to_bytes(), own, KNOCKS, comm);
    while is_open(state) {
        epochs::serve_next(state, |_| false);
    }
}

/// A window that may be locked and of which `is_right` holds, or the answer to a call about one
/// that is otherwise.
fn known(
    state: &mut State,
    handle: usize,
    call: Call,
    is_right: impl Fn(&Passive, &Window) -> bool,
) -> Result<&mut Passive, usize> {
    let window = state.known_window(handle, call)?;
    if !window.passive.as_ref().is_some_and(|it| is_right(it, window)) {
        return Err(state.window_error(handle, abi::table().err_rma_sync, call));
    }
    Ok(passive(state, handle))
}

/// A member whose window is meant: none if that is nobody, or MPI's code.
fn member_of(
    state: &mut State,
    handle: usize,
    rank: usize,
    call: Call,
) -> Result<Option<i32>, usize> {
    let (rank, window) = (rank as i32, state.known_window(handle, call)?);
    if rank == abi::table().proc_null {
        return Ok(None);
    }
    if usize::try_from(rank).is_ok_and(|it| it < window.sizes.len()) {
        return Ok(Some(rank));
    }
    Err(state.window_error(handle, abi::ERR_RANK, call))
}

/// MPI_Win_lock: waits until the window is locked.
pub(crate) fn lock(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (kind, handle) = (args[0] as i32, abi::cut(args[3]));
    let [exclusive, shared] = abi::table().locks;
    let lock = match kind {
        _ if kind == exclusive => Lock::Exclusive,
        _ if kind == shared => Lock::Shared,
        _ => return state.window_error(handle, abi::table().err_locktype, call),
    };
    let member = match member_of(state, handle, args[1], call) {
        Ok(Some(member)) => member,
        Ok(None) => return abi::SUCCESS as usize,
        Err(code) => return code,
    };
    let is_right =
        |it: &Passive, window: &Window| !it.has_locked(member) && window.started.is_none();
    match known(state, handle, call, is_right) {
        Ok(passive) => passive.held.insert(member),
        Err(code) => return code,
    };
    if is_unchecked(args[2]) {
        return abi::SUCCESS as usize;
    }
    let code = visit(state, handle, &[member], |_, _| (Some(lock), false));
    state.window_error(handle, code, call)
}

/// MPI_Win_unlock.
pub(crate) fn unlock(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[1]);
    let member = match member_of(state, handle, args[0], call) {
        Ok(Some(member)) => member,
        Ok(None) => return abi::SUCCESS as usize,
        Err(code) => return code,
    };
    match known(state, handle, call, |it, _| it.held.contains(&member)) {
        Ok(passive) => passive.held.remove(&member),
        Err(code) => return code,
    };
    let code = visit(state, handle, &[member], |_, _| (None, true));
    state.window_error(handle, code, call)
}

/// MPI_Win_lock_all: others share their windows when they are visited first.
pub(crate) fn lock_all(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (locks, handle) = (!is_unchecked(args[0]), abi::cut(args[1]));
    let is_right = |it: &Passive, window: &Window| !it.is_locked() && window.started.is_none();
    match known(state, handle, call, is_right) {
        Ok(passive) => passive.all = Some(All { visited: BTreeSet::new(), locks }),
        Err(code) => return code,
    }
    if !locks {
        return abi::SUCCESS as usize;
    }
    // Its own it may look at at once.
    let own = state.window(handle).expect("it is known").rank;
    let code = visit(state, handle, &[own], bring);
    state.window_error(handle, code, call)
}

/// MPI_Win_unlock_all.
pub(crate) fn unlock_all(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[0]);
    let visited = match known(state, handle, call, |it, _| it.all.is_some()) {
        Ok(passive) => passive.all.take().map(|it| it.visited).unwrap_or_default(),
        Err(code) => return code,
    };
    let members: Vec<i32> = visited.into_iter().collect();
    let code = visit(state, handle, &members, |_, _| (None, true));
    state.window_error(handle, code, call)
}

/// MPI_Win_flush and its kin: what was done to a window, or to all, is carried out at the end.
///
/// What is put has left the program's memory when it was put; who flushes locally waits for what it
/// gets.
pub(crate) fn flush(state: &mut State, call: Call, args: &[usize]) -> usize {
    let handle = abi::cut(args[args.len() - 1]);
    let is_of_all = [calls::WIN_FLUSH_ALL, calls::WIN_FLUSH_LOCAL_ALL].contains(&call);
    let is_local = [calls::WIN_FLUSH_LOCAL, calls::WIN_FLUSH_LOCAL_ALL].contains(&call);
    let member = match is_of_all {
        true => None,
        false => match member_of(state, handle, args[0], call) {
            Ok(Some(member)) => Some(member),
            Ok(None) => return abi::SUCCESS as usize,
            Err(code) => return code,
        },
    };
    let is_right = |it: &Passive, _: &Window| match member {
        Some(member) => it.has_locked(member),
        None => it.is_locked(),
    };
    if let Err(code) = known(state, handle, call, is_right) {
        return code;
    }
    let is_meant = |it: &Coming| {
        member.is_none_or(|member| it.member == member) && !(is_local && it.wanted.is_empty())
    };
    if !passive(state, handle).coming.iter().any(is_meant) {
        look(state);
    }
    let code = finish_visits(state, handle, is_meant);
    state.window_error(handle, code, call)
}

/// MPI_Win_sync: who asks again and again whether something was put to its window gets it here.
pub(crate) fn sync(state: &mut State, call: Call, args: &[usize]) -> usize {
    if let Err(code) = state.known_window(abi::cut(args[0]), call) {
        return code;
    }
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    look(state);
    abi::SUCCESS as usize
}

/// Serves who is here.
fn look(state: &mut State) {
    if !epochs::serve_once(state) {
        state.spin(For::Message);
    }
}

impl State {
    /// Waits for the answers to accesses of a member's window.
    pub(crate) fn finish_access(&mut self, handle: usize, number: u64, member: i32) -> i32 {
        match self.window(handle) {
            Some(window) if window.passive.is_some() && window.number == number => {
                finish_visits(self, handle, |it| it.member == member)
            }
            _ => abi::SUCCESS,
        }
    }
}
