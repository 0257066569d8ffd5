//! Attributes as Fortran asks for them: by no call that C has, so that both MPIs would look at
//! communicators and windows of their own there.  These are the calls of `mpif.h` and `use mpi`,
//! and those of `mpi_f08`.

use std::ffi::{CStr, c_int, c_void};

use crate::abi::{self, Family};
use crate::attributes::{self, Caller, Kept, Key};
use crate::calls;
use crate::comm;
use crate::errors;
use crate::made;
use crate::real::{self, Call};
use crate::signals;
use crate::state::{self, State};
use crate::windows;

/// Has MPI's own function do it.
unsafe fn pass(name: &CStr, [a, b, c, d, e]: [usize; 5]) {
    type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize);
    let Some(at) = real::theirs(name) else {
        real::fail(&format!("this program's MPI library has no {name:?}"));
    };
    unsafe { std::mem::transmute::<usize, Function>(at)(a, b, c, d, e) };
}

/// Does a call's work; what it came to goes where the program wants it, unless it wants that
/// nowhere.
fn enter(call: Call, code_at: usize, what: impl FnOnce(&mut State) -> usize) {
    let inside = real::Inside::enter();
    let code = state::with_turn(call, |state| {
        state.shape = state.shape.after(&[call.0 as u64]);
        state.doing = call.name();
        what(state)
    });
    drop(inside);
    errors::deliver();
    signals::deliver();
    if code_at != 0 {
        unsafe { *(code_at as *mut i32) = code as i32 };
    }
}

fn is_served() -> bool {
    state::is_replica() && !real::is_inside()
}

/// The communicator behind Fortran's number.
fn comm_of(state: &mut State, number: usize) -> usize {
    let number = unsafe { *(number as *const i32) } as u32 as usize;
    if has_numbers() {
        return number;
    }
    made::comm_f2c(state, calls::COMM_F2C, &[number])
}

/// Fortran's number of a communicator.
pub(crate) fn number_of(state: &mut State, shown: usize) -> c_int {
    if has_numbers() {
        return shown as c_int;
    }
    comm::pass(state, calls::COMM_C2F, &[shown]) as c_int
}

/// Where functions of Fortran's find what they are told beside.  MPICH shows them the variable that
/// the program gave, with what it holds by then.
pub(crate) fn extra_at(extra: &usize) -> *const usize {
    if has_numbers() { *extra as *const usize } else { extra }
}

/// Whether C's handles are Fortran's numbers, as those of MPICH and its kin are.
fn has_numbers() -> bool {
    abi::table().family == Family::Mpich
}

/// C's key of an attribute of MPI's own: MPICH's Fortran has the next one for its own kind of
/// values.
fn own_key(key: i32, is_own: impl Fn(i32) -> bool) -> i32 {
    let is_shifted = abi::table().family == Family::Mpich && key % 2 == 0 && is_own(key - 1);
    if is_shifted { key - 1 } else { key }
}

unsafe fn number_at(at: usize, caller: Caller) -> isize {
    match caller {
        Caller::OldFortran => unsafe { *(at as *const i32) as isize },
        _ => unsafe { *(at as *const isize) },
    }
}

unsafe fn put_number(at: usize, number: isize, caller: Caller) {
    match caller {
        Caller::OldFortran => unsafe { *(at as *mut i32) = number as i32 },
        _ => unsafe { *(at as *mut isize) = number },
    }
}

/// Two functions, where the key goes, what they are told beside, and the code.
unsafe fn create_key(name: &CStr, caller: Caller, args: [usize; 5]) {
    if !is_served() {
        return unsafe { pass(name, args) };
    }
    let [copy, delete, at, extra, code] = args;
    let extra = if has_numbers() { extra } else { unsafe { number_at(extra, caller) as usize } };
    let key = Key { copy, delete, extra, caller, is_freed: false };
    let call = calls::COMM_CREATE_KEYVAL;
    enter(call, code, |state| attributes::make_key(state, call, key, at));
}

/// A communicator, a key, where the value is, and the code.
unsafe fn set(name: &CStr, caller: Caller, [comm, key, value, code]: [usize; 4]) {
    if !is_served() {
        return unsafe { pass(name, [comm, key, value, code, 0]) };
    }
    let call = calls::COMM_SET_ATTR;
    enter(call, code, |state| {
        let shown = comm_of(state, comm);
        let key = unsafe { *(key as *const i32) };
        let value = unsafe { number_at(value, caller) } as usize;
        if state.attributes.is_key(key) && state.is_comm(shown) {
            attributes::keep(state, call, shown, Kept::of_fortran(key, value))
        } else {
            attributes::set(state, call, &[shown, key as u32 as usize, value])
        }
    });
}

/// A communicator, a key, where its value goes, where it goes whether there is one, and the code.
unsafe fn get(name: &CStr, caller: Caller, args: [usize; 5]) {
    if !is_served() {
        return unsafe { pass(name, args) };
    }
    let [comm, key, value, flag, code] = args;
    let call = calls::COMM_GET_ATTR;
    enter(call, code, |state| {
        let (shown, table) = (comm_of(state, comm), abi::table());
        let key = own_key(unsafe { *(key as *const i32) }, |it| table.is_own_keyval(it));
        if let Some(found) = state.kept(shown, key, caller) {
            unsafe { put_number(value, found as isize, caller) };
            unsafe { *(flag as *mut i32) = 1 };
            return abi::SUCCESS as usize;
        }
        let (mut found, mut is_there) = (0_usize, 0_i32);
        let to = [&raw mut found as usize, &raw mut is_there as usize];
        let answer = comm::comm_get_attr(state, call, &[shown, key as u32 as usize, to[0], to[1]]);
        unsafe { *(flag as *mut i32) = is_there };
        if is_there != 0 {
            // All of MPI's own are of this width.
            unsafe { put_number(value, *(found as *const i32) as isize, caller) };
        }
        answer
    });
}

/// The same of a window.
unsafe fn get_of_window(name: &CStr, args: [usize; 5]) {
    if !is_served() {
        return unsafe { pass(name, args) };
    }
    let [window, key, value, flag, code] = args;
    let call = calls::WIN_GET_ATTR;
    enter(call, code, |state| {
        let own = abi::table().win_keyvals;
        let key = own_key(unsafe { *(key as *const i32) }, |it| own.contains(&it)) as u32 as usize;
        let (mut found, mut is_there) = (0_usize, 0_i32);
        let to = [&raw mut found as usize, &raw mut is_there as usize];
        let handle = window_of(state, window);
        let answer = windows::get_attribute(state, call, &[handle, key, to[0], to[1]]);
        // Fortran gets numbers where C gets where they are.
        let number = || match windows::width_of(key) {
            Some(4) => unsafe { *(found as *const i32) as isize },
            Some(_) => unsafe { *(found as *const isize) },
            None => found as isize,
        };
        unsafe { *(flag as *mut i32) = is_there };
        if is_there != 0 {
            unsafe { *(value as *mut isize) = number() };
        }
        answer
    });
}

/// A window, a key, where its value is, and the code.
unsafe fn set_of_window(name: &CStr, [window, key, value, code]: [usize; 4]) {
    if !is_served() {
        return unsafe { pass(name, [window, key, value, code, 0]) };
    }
    let call = calls::WIN_SET_ATTR;
    enter(call, code, |state| {
        let handle = window_of(state, window);
        let [key, value] =
            unsafe { [*(key as *const i32) as u32 as usize, *(value as *const usize)] };
        windows::set_attribute(state, call, &[handle, key, value])
    });
}

fn window_of(state: &mut State, number: usize) -> usize {
    let number = unsafe { *(number as *const i32) } as u32 as usize;
    windows::of_fortran(state, calls::WIN_F2C, &[number])
}

macro_rules! exports {
    ($($name:ident = $what:ident($($before:expr),*) of $($letter:ident)+;)+) => {$(
        /// The call of this name.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($letter: usize),+) {
            let bytes = concat!(stringify!($name), "\0").as_bytes();
            let name = CStr::from_bytes_with_nul(bytes).expect("a name has no zero");
            unsafe { $what(name, $($before,)* [$($letter),+]) }
        }
    )+};
}

exports! {
    mpi_comm_create_keyval_ = create_key(Caller::Fortran) of a b c d e;
    mpi_comm_create_keyval_f08_ = create_key(Caller::Fortran) of a b c d e;
    mpi_keyval_create_ = create_key(Caller::OldFortran) of a b c d e;
    mpi_comm_set_attr_ = set(Caller::Fortran) of a b c d;
    mpi_comm_set_attr_f08_ = set(Caller::Fortran) of a b c d;
    mpi_attr_put_ = set(Caller::OldFortran) of a b c d;
    mpi_comm_get_attr_ = get(Caller::Fortran) of a b c d e;
    mpi_comm_get_attr_f08_ = get(Caller::Fortran) of a b c d e;
    mpi_attr_get_ = get(Caller::OldFortran) of a b c d e;
    mpi_win_get_attr_ = get_of_window() of a b c d e;
    mpi_win_get_attr_f08_ = get_of_window() of a b c d e;
    mpi_win_set_attr_ = set_of_window() of a b c d;
    mpi_win_set_attr_f08_ = set_of_window() of a b c d;
}

/// MPICH's Fortran makes keys of windows by C's call, and says then how their functions are called:
/// such functions are not called.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPII_Keyval_set_proxy(key: c_int, copy: *mut c_void, delete: *mut c_void) {
    if is_served() {
        let _inside = real::Inside::enter();
        state::with(|state| state.windows.forget_key(key));
    }
    let args = [key as u32 as usize, copy as usize, delete as usize, 0, 0];
    unsafe { pass(c"MPII_Keyval_set_proxy", args) };
}
