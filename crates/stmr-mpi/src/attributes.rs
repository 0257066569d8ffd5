//! What the program keeps with communicators, and the functions of its that are called when such a
//! thing is copied or goes (MPI 4.1 §7.7).
//!
//! MPI is told of the keys alone.  It would call these functions from within itself, where what they
//! call of MPI is not the program's any more; and a process that has left MPI has communicators that
//! MPI does not know.  What Fortran keeps stays with MPI, which knows how Fortran is called.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use crate::abi::{self, Family};
use crate::calls;
use crate::comm;
use crate::real::{self, Call};
use crate::state::{self, State};

/// What is kept, and with what.
#[derive(Default)]
pub(crate) struct Attributes {
    keys: BTreeMap<i32, Key>,
    /// Of each communicator, in the order in which it was set.
    kept: BTreeMap<usize, Vec<Kept>>,
}

/// Something that is kept with a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    key: i32,
    value: usize,
}

/// What the program gave to be called, and what that is told beside.
#[derive(Clone, Copy)]
struct Key {
    copy: usize,
    delete: usize,
    extra: usize,
    /// The program has freed it, and something is still kept by it.
    is_freed: bool,
}

type Copy = unsafe extern "C" fn(usize, c_int, usize, usize, *mut usize, *mut c_int) -> c_int;
type Delete = unsafe extern "C" fn(usize, c_int, usize, usize) -> c_int;

/// The function of the standard ABI that copies what it finds, which is a number there.
const STANDARD_DUP: usize = 1;

impl Attributes {
    /// What is kept with a communicator by this key.
    fn find(&self, comm: usize, key: i32) -> Option<usize> {
        self.kept.get(&comm)?.iter().find(|it| it.key == key).map(|it| it.value)
    }

    fn is_used(&self, key: i32) -> bool {
        self.kept.values().flatten().any(|it| it.key == key)
    }

    /// A key that is Fortran's after all.
    fn leave_to_mpi(&mut self, key: i32) {
        self.keys.remove(&key);
    }
}

/// MPI_Comm_create_keyval and MPI_Keyval_create.
pub(crate) fn create_key(state: &mut State, call: Call, args: &[usize]) -> usize {
    let code = real::code(call, args);
    if code == abi::SUCCESS {
        let key = unsafe { *(args[2] as *const i32) };
        let [copy, delete, extra] = [args[0], args[1], args[3]];
        state.attributes.keys.insert(key, Key { copy, delete, extra, is_freed: false });
    }
    state.error_of_none(code, call)
}

/// MPI_Comm_free_keyval and MPI_Keyval_free.  MPI would give the number to the next key at once, and
/// not when nothing is kept by it any more.
pub(crate) fn free_key(state: &mut State, call: Call, args: &[usize]) -> usize {
    let at = args[0] as *mut i32;
    let key = unsafe { *at };
    if state.attributes.is_used(key)
        && let Some(known) = state.attributes.keys.get_mut(&key)
    {
        known.is_freed = true;
        unsafe { *at = abi::table().keyval_invalid };
        return abi::SUCCESS as usize;
    }
    state.attributes.keys.remove(&key);
    let code = real::code(call, args);
    state.error_of_none(code, call)
}

/// MPI_Comm_set_attr and MPI_Attr_put.
pub(crate) fn set(state: &mut State, call: Call, args: &[usize]) -> usize {
    let [shown, key, value] = [args[0], args[1], args[2]];
    let key = key as i32;
    if !state.attributes.keys.contains_key(&key) || !state.is_comm(shown) {
        return passed(state, call, args);
    }
    let before = match state.drop_kept(shown, key) {
        Ok(idx) => idx,
        Err(code) => return state.error(shown, code, call),
    };
    let comm = state.behind(shown);
    let row = state.attributes.kept.entry(comm).or_default();
    // Where it is set anew, MPICH leaves it in its place, and Open MPI takes it for the last.
    let idx = before.filter(|_| abi::table().family != Family::OpenMpi).unwrap_or(row.len());
    row.insert(idx.min(row.len()), Kept { key, value });
    abi::SUCCESS as usize
}

/// MPI_Comm_delete_attr and MPI_Attr_delete.
pub(crate) fn delete(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (shown, key) = (args[0], args[1] as i32);
    let comm = state.behind(shown);
    if state.attributes.find(comm, key).is_none() {
        return passed(state, call, args);
    }
    let code = state.drop_kept(shown, key).err().unwrap_or(abi::SUCCESS);
    state.error(shown, code, call)
}

/// MPI_Comm_get_attr and MPI_Attr_get.
pub(crate) fn get(state: &mut State, call: Call, args: &[usize]) -> usize {
    let comm = state.behind(args[0]);
    let Some(value) = state.attributes.find(comm, args[1] as i32) else {
        return comm::comm_get_attr(state, call, args);
    };
    unsafe {
        *(args[2] as *mut usize) = value;
        *(args[3] as *mut i32) = 1;
    }
    abi::SUCCESS as usize
}

/// A call about what is not kept here: MPI has not got it either, of which communicator it may be.
fn passed(state: &mut State, call: Call, args: &[usize]) -> usize {
    let comm = state.behind(args[0]);
    if state.comms.get(&comm).is_some_and(|it| it.made.is_some()) {
        let code = real::code(call, &[&[state.world], &args[1..]].concat());
        return state.error(args[0], code, call);
    }
    let code = comm::pass(state, call, args) as i32;
    comm::told_of(state, call, args, code)
}

/// MPI_Comm_dup and MPI_Comm_dup_with_info.
pub(crate) fn dup(state: &mut State, call: Call, args: &[usize]) -> usize {
    let at = *args.last().expect("each of these calls has arguments");
    let code = comm::create(state, call, args);
    if code as i32 != abi::SUCCESS {
        return code;
    }
    match state.copy_kept(args[0]) {
        Ok(kept) => {
            state.keep_all(unsafe { abi::handle_at(at, 0) }, kept);
            code
        }
        Err(code) => {
            unsafe { abi::put_handle(at, 0, state.handles().comm_null) };
            state.error(args[0], code, call)
        }
    }
}

impl State {
    /// What a copy of a communicator has of what is kept with it, or the code of what refused.
    pub(crate) fn copy_kept(&mut self, shown: usize) -> Result<Vec<Kept>, i32> {
        let comm = self.behind(shown);
        let mut row = self.attributes.kept.get(&comm).cloned().unwrap_or_default();
        // Open MPI goes by the keys, and MPICH begins with what was set last.
        let is_open_mpi = abi::table().family == Family::OpenMpi;
        if is_open_mpi {
            row.sort_by_key(|it| it.key)
        } else {
            row.reverse()
        }
        let mut copies = Vec::new();
        for Kept { key, value } in row {
            let Some(Key { copy, extra, .. }) = self.attributes.keys.get(&key).copied() else {
                continue;
            };
            let (mut new, mut is_copied, mut code) = (value, 1, abi::SUCCESS);
            match copy {
                0 => is_copied = 0,
                STANDARD_DUP => {}
                _ => {
                    let copy = unsafe { std::mem::transmute::<usize, Copy>(copy) };
                    is_copied = 0;
                    code = self.in_program(|| unsafe {
                        copy(shown, key, extra, value, &raw mut new, &raw mut is_copied)
                    });
                }
            }
            if code != abi::SUCCESS {
                return Err(code);
            }
            if is_copied != 0 {
                copies.push(Kept { key, value: new });
            }
        }
        if !is_open_mpi {
            copies.reverse();
        }
        Ok(copies)
    }

    /// Keeps these with a new communicator.
    pub(crate) fn keep_all(&mut self, new: usize, kept: Vec<Kept>) {
        if new != self.handles().comm_null && !kept.is_empty() {
            self.attributes.kept.insert(new, kept);
        }
    }

    /// Something is kept no longer, once the program's function has agreed; returns where it stood
    /// among what is kept with its communicator, if it did.
    fn drop_kept(&mut self, shown: usize, key: i32) -> Result<Option<usize>, i32> {
        let comm = self.behind(shown);
        let Some(value) = self.attributes.find(comm, key) else { return Ok(None) };
        let known = self.attributes.keys.get(&key).copied();
        if let Some(Key { delete, extra, .. }) = known.filter(|it| it.delete != 0) {
            let delete = unsafe { std::mem::transmute::<usize, Delete>(delete) };
            let code = self.in_program(|| unsafe { delete(shown, key, value, extra) });
            if code != abi::SUCCESS {
                return Err(code);
            }
        }
        // The function may have changed what is kept.
        let Some(row) = self.attributes.kept.get_mut(&comm) else { return Ok(None) };
        let idx = row.iter().position(|it| it.key == key);
        if let Some(idx) = idx {
            row.remove(idx);
        }
        if row.is_empty() {
            self.attributes.kept.remove(&comm);
        }
        if known.is_some_and(|it| it.is_freed) && !self.attributes.is_used(key) {
            self.attributes.keys.remove(&key);
            let mut number = key;
            real::call(calls::COMM_FREE_KEYVAL, &[&raw mut number as usize]);
        }
        Ok(idx)
    }

    /// All that is kept with a communicator goes, the last first, or until one refuses.
    pub(crate) fn drop_all_kept(&mut self, shown: usize) -> i32 {
        let comm = self.behind(shown);
        while let Some(last) = self.attributes.kept.get(&comm).and_then(|it| it.last().copied()) {
            if let Err(code) = self.drop_kept(shown, last.key) {
                return code;
            }
        }
        abi::SUCCESS
    }

    /// The end of the program: what is kept with MPI_COMM_SELF goes first (MPI 4.1 §11.2.4), and in
    /// all but Open MPI 5 what is kept with MPI_COMM_WORLD.
    pub(crate) fn drop_kept_at_end(&mut self) {
        let handles = self.handles();
        self.drop_all_kept(handles.own);
        if !real::is_open_mpi_5() {
            self.drop_all_kept(handles.world);
        }
    }
}

/// MPICH's Fortran makes keys by C's call, and says then how their functions are called: such keys
/// are left to MPI, which is asked by no call of C's from there on.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPII_Keyval_set_proxy(key: c_int, copy: *mut c_void, delete: *mut c_void) {
    type Set = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void);
    if state::is_replica() && !real::is_inside() {
        let _inside = real::Inside::enter();
        state::with(|state| {
            state.attributes.leave_to_mpi(key);
            state.windows.leave_to_mpi(key);
        });
    }
    if let Some(set) = real::theirs(c"MPII_Keyval_set_proxy") {
        unsafe { std::mem::transmute::<usize, Set>(set)(key, copy, delete) };
    }
}
