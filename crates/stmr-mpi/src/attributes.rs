//! What the program keeps with communicators, and the functions of its that are called when such a
//! thing is copied or goes (MPI 4.1 §7.7).
//!
//! MPI is told of the keys alone.  It would call these functions from within itself, where what
//! they call of MPI is not the program's any more; and a process that has left MPI has
//! communicators that MPI does not know.  [`crate::fortran`] has the calls of Fortran.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{self, Family};
use crate::calls;
use crate::comm;
use crate::fortran;
use crate::real::{self, Call};
use crate::state::State;

/// What is kept, and with what.
#[derive(Default)]
pub(crate) struct Attributes {
    keys: BTreeMap<i32, Key>,
}

/// What is kept with each communicator, in the order in which it was set: functions of the
/// program's that MPI calls may ask for it while a call has the state.
static KEPT: Mutex<BTreeMap<usize, Vec<Kept>>> = Mutex::new(BTreeMap::new());

fn all_kept() -> MutexGuard<'static, BTreeMap<usize, Vec<Kept>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is kept with the communicator behind the program's by this key.
fn find(comm: usize, key: i32) -> Option<Kept> {
    all_kept().get(&comm)?.iter().find(|it| it.key == key).copied()
}

/// The same as C gets it, whoever has the state.
pub(crate) fn found_within(comm: usize, key: i32) -> Option<usize> {
    Some(find(comm, key)?.seen_by(Caller::C))
}

/// Something that is kept with a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    key: i32,
    value: usize,
    /// Where it lies for C, if it is a number of Fortran's (MPI 4.1 §19.3.7).
    number: Option<&'static Number>,
}

/// A number that Fortran keeps; C gets where it lies.
type Number = isize;

impl Kept {
    pub(crate) fn of_c(key: i32, value: usize) -> Self {
        Self { key, value, number: None }
    }

    /// The number stays where it is for good: the program may look at it as long as it likes.
    pub(crate) fn of_fortran(key: i32, value: usize) -> Self {
        Self { key, value, number: Some(Box::leak(Box::new(value as Number))) }
    }

    /// What a language gets of it.
    fn seen_by(&self, caller: Caller) -> usize {
        match (caller, self.number) {
            (Caller::C, Some(number)) => std::ptr::from_ref(number) as usize,
            _ => self.value,
        }
    }
}

/// How a program's functions are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    C,
    /// All by where it is, with numbers as wide as addresses.
    Fortran,
    /// The same as MPI 1 has it, with numbers of 32 bits.
    OldFortran,
}

/// What the program gave to be called, and what that is told beside.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) copy: usize,
    pub(crate) delete: usize,
    pub(crate) extra: usize,
    pub(crate) caller: Caller,
    /// The program has freed it, and something is still kept by it.
    pub(crate) is_freed: bool,
}

type Copy = unsafe extern "C" fn(usize, c_int, usize, usize, *mut usize, *mut c_int) -> c_int;
type Delete = unsafe extern "C" fn(usize, c_int, usize, usize) -> c_int;
type FortranCopy =
    unsafe extern "C" fn(&c_int, &c_int, *const usize, &usize, &mut usize, &mut c_int, &mut c_int);
type FortranDelete = unsafe extern "C" fn(&c_int, &c_int, &usize, *const usize, &mut c_int);

/// The function of the standard ABI that copies what it finds, which is a number there.
const STANDARD_DUP: usize = 1;

impl Attributes {
    pub(crate) fn is_key(&self, key: i32) -> bool {
        self.keys.contains_key(&key)
    }

    fn is_used(&self, key: i32) -> bool {
        all_kept().values().flatten().any(|it| it.key == key)
    }
}

/// MPI_Comm_create_keyval and MPI_Keyval_create.
pub(crate) fn create_key(state: &mut State, call: Call, args: &[usize]) -> usize {
    let [copy, delete, extra] = [args[0], args[1], args[3]];
    let key = Key { copy, delete, extra, caller: Caller::C, is_freed: false };
    make_key(state, call, key, args[2])
}

/// Makes a key, and puts its number there.
pub(crate) fn make_key(state: &mut State, call: Call, key: Key, at: usize) -> usize {
    // MPI never calls these functions, nor looks at how they are called.
    let code = real::code(call, &[key.copy, key.delete, at, key.extra]);
    if code == abi::SUCCESS {
        state.attributes.keys.insert(unsafe { *(at as *const i32) }, key);
    }
    state.error_of_none(code, call)
}

/// MPI_Comm_free_keyval and MPI_Keyval_free.  MPI would give the number to the next key at once,
/// and not when nothing is kept by it any more.
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
    let (shown, key) = (args[0], args[1] as i32);
    if !state.attributes.is_key(key) || !state.is_comm(shown) {
        return passed(state, call, args);
    }
    keep(state, call, shown, Kept::of_c(key, args[2]))
}

/// Keeps something with a communicator, which is known as its key is.
pub(crate) fn keep(state: &mut State, call: Call, shown: usize, kept: Kept) -> usize {
    let before = match state.drop_kept(shown, kept.key) {
        Ok(idx) => idx,
        Err(code) => return state.error(shown, code, call),
    };
    let comm = state.behind(shown);
    let mut all = all_kept();
    let row = all.entry(comm).or_default();
    // Where it is set anew, MPICH leaves it in its place, and Open MPI takes it for the last.
    let idx = before.filter(|_| abi::table().family != Family::OpenMpi).unwrap_or(row.len());
    row.insert(idx.min(row.len()), kept);
    abi::SUCCESS as usize
}

/// MPI_Comm_delete_attr and MPI_Attr_delete.
pub(crate) fn delete(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (shown, key) = (args[0], args[1] as i32);
    let comm = state.behind(shown);
    if find(comm, key).is_none() {
        return passed(state, call, args);
    }
    let code = state.drop_kept(shown, key).err().unwrap_or(abi::SUCCESS);
    state.error(shown, code, call)
}

/// MPI_Comm_get_attr and MPI_Attr_get.
pub(crate) fn get(state: &mut State, call: Call, args: &[usize]) -> usize {
    let Some(value) = state.kept(args[0], args[1] as i32, Caller::C) else {
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
    let mut comm = state.behind(args[0]);
    if state.comms.get(&comm).is_some_and(|it| it.made.is_some()) {
        comm = state.world;
    }
    let mapped = [&[comm], &args[1..]].concat();
    let code = real::code(call, &mapped);
    state.error(args[0], code, call)
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
        let mut row = all_kept().get(&comm).cloned().unwrap_or_default();
        // Open MPI goes by the keys, and MPICH begins with what was set last.
        let is_open_mpi = abi::table().family == Family::OpenMpi;
        if is_open_mpi {
            row.sort_by_key(|it| it.key)
        } else {
            row.reverse()
        }
        let mut copies = Vec::new();
        for kept in row {
            copies.extend(self.copy_one(shown, kept)?);
        }
        if !is_open_mpi {
            copies.reverse();
        }
        Ok(copies)
    }

    /// What a copy of a communicator has of one thing that is kept with it.
    fn copy_one(&mut self, shown: usize, kept: Kept) -> Result<Option<Kept>, i32> {
        let key = kept.key;
        let Some(Key { copy, extra, caller, .. }) = self.attributes.keys.get(&key).copied() else {
            return Ok(None);
        };
        let (value, mut new, mut is_copied) = (kept.seen_by(caller), 0_usize, 0);
        let code = match (copy, caller) {
            (0, _) => return Ok(None),
            (STANDARD_DUP, Caller::C) => return Ok(Some(kept)),
            (_, Caller::C) => {
                let copy = unsafe { std::mem::transmute::<usize, Copy>(copy) };
                self.code_in_program(|| unsafe {
                    copy(shown, key, extra, value, &raw mut new, &raw mut is_copied)
                })
            }
            (_, Caller::Fortran | Caller::OldFortran) => {
                let copy = unsafe { std::mem::transmute::<usize, FortranCopy>(copy) };
                let comm = fortran::number_of(self, shown);
                let extra_at = fortran::extra_at(&extra);
                let code = self.code_in_program(|| {
                    let mut code = abi::SUCCESS;
                    unsafe {
                        copy(&comm, &key, extra_at, &value, &mut new, &mut is_copied, &mut code)
                    };
                    code
                });
                if caller == Caller::OldFortran {
                    new = new as i32 as usize;
                }
                code
            }
        };
        let made = if caller == Caller::C { Kept::of_c } else { Kept::of_fortran };
        match code {
            abi::SUCCESS => Ok((is_copied != 0).then(|| made(key, new))),
            code => Err(code),
        }
    }

    /// Calls what the program gave for the end of something that is kept.
    fn tell_of_end(&mut self, shown: usize, kept: Kept) -> i32 {
        let known = self.attributes.keys.get(&kept.key).copied();
        let Some(Key { delete, extra, caller, .. }) = known.filter(|it| it.delete != 0) else {
            return abi::SUCCESS;
        };
        let (key, value) = (kept.key, kept.seen_by(caller));
        if caller == Caller::C {
            let delete = unsafe { std::mem::transmute::<usize, Delete>(delete) };
            return self.code_in_program(|| unsafe { delete(shown, key, value, extra) });
        }
        let delete = unsafe { std::mem::transmute::<usize, FortranDelete>(delete) };
        let (comm, extra_at) = (fortran::number_of(self, shown), fortran::extra_at(&extra));
        self.code_in_program(|| {
            let mut code = abi::SUCCESS;
            unsafe { delete(&comm, &key, &value, extra_at, &mut code) };
            code
        })
    }

    /// What a language gets of what is kept with a communicator by this key.
    pub(crate) fn kept(&self, shown: usize, key: i32, caller: Caller) -> Option<usize> {
        Some(find(self.behind(shown), key)?.seen_by(caller))
    }

    /// Keeps these with a new communicator.
    pub(crate) fn keep_all(&mut self, new: usize, kept: Vec<Kept>) {
        if new != self.handles().comm_null && !kept.is_empty() {
            all_kept().insert(new, kept);
        }
    }

    /// Something is kept no longer, once the program's function has agreed; returns where it stood
    /// among what is kept with its communicator, if it did.
    fn drop_kept(&mut self, shown: usize, key: i32) -> Result<Option<usize>, i32> {
        let comm = self.behind(shown);
        let Some(kept) = find(comm, key) else { return Ok(None) };
        let code = self.tell_of_end(shown, kept);
        if code != abi::SUCCESS {
            return Err(code);
        }
        // The function may have changed what is kept.
        let mut all = all_kept();
        let Some(row) = all.get_mut(&comm) else { return Ok(None) };
        let idx = row.iter().position(|it| it.key == key);
        if let Some(idx) = idx {
            row.remove(idx);
        }
        if row.is_empty() {
            all.remove(&comm);
        }
        drop(all);
        let is_freed = self.attributes.keys.get(&key).is_some_and(|it| it.is_freed);
        if is_freed && !self.attributes.is_used(key) {
            self.attributes.keys.remove(&key);
            let mut number = key;
            real::call(calls::COMM_FREE_KEYVAL, &[&raw mut number as usize]);
        }
        Ok(idx)
    }

    /// All that is kept with a communicator goes, the last first, or until one refuses.
    pub(crate) fn drop_all_kept(&mut self, shown: usize) -> i32 {
        let comm = self.behind(shown);
        // What their functions set anew goes without a word.
        let row = all_kept().get(&comm).cloned().unwrap_or_default();
        for kept in row.iter().rev() {
            if let Err(code) = self.drop_kept(shown, kept.key) {
                return code;
            }
        }
        all_kept().remove(&comm);
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
