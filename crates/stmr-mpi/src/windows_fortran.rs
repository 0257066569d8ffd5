//! Attributes of windows as Fortran asks for them.  Both MPIs look at a window of their own there,
//! by no call that C has: these are the calls of `mpif.h` and `use mpi`, and those of `mpi_f08`.

use std::ffi::CStr;

use crate::abi::{self, Family};
use crate::calls;
use crate::real;
use crate::state;
use crate::windows;

/// C's number of an attribute: MPICH's Fortran has the next one for its own kind of values.
fn keyval_of(keyval: i32) -> usize {
    let own = abi::table().win_keyvals;
    let is_shifted = abi::table().family == Family::Mpich && own.contains(&(keyval - 1));
    (if is_shifted { keyval - 1 } else { keyval }) as u32 as usize
}

/// Has a process that is no replica ask its MPI.
unsafe fn pass(name: &CStr, [a, b, c, d, e]: [usize; 5]) {
    type Call = unsafe extern "C" fn(usize, usize, usize, usize, usize);
    let at = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if at.is_null() {
        real::fail(&format!("this program's MPI library has no {name:?}"));
    }
    unsafe { std::mem::transmute::<*mut libc::c_void, Call>(at)(a, b, c, d, e) };
}

/// Where the program wants the code, unless it wants none.
unsafe fn put_code(at: usize, code: usize) {
    if at != 0 {
        unsafe { *(at as *mut i32) = code as i32 };
    }
}

/// A window, a number, where its value goes, where it goes whether there is one, and the code.
unsafe fn get(name: &CStr, args: [usize; 5]) {
    if !state::is_replica() {
        return unsafe { pass(name, args) };
    }
    let [window, keyval, value, flag, code] = args;
    let _inside = real::Inside::enter();
    let (mut found, mut is_there) = (0_usize, 0_i32);
    let to = [&raw mut found as usize, &raw mut is_there as usize];
    let keyval = keyval_of(unsafe { *(keyval as *const i32) });
    let answer = state::with(|state| {
        let number = unsafe { *(window as *const i32) } as u32 as usize;
        let handle = windows::of_fortran(state, calls::WIN_F2C, &[number]);
        windows::get_attribute(state, calls::WIN_GET_ATTR, &[handle, keyval, to[0], to[1]])
    });
    // Fortran gets numbers where C gets where they are.
    let number = || match windows::width_of(keyval) {
        Some(4) => unsafe { *(found as *const i32) as isize },
        Some(_) => unsafe { *(found as *const isize) },
        None => found as isize,
    };
    unsafe {
        *(flag as *mut i32) = is_there;
        if is_there != 0 {
            *(value as *mut isize) = number();
        }
        put_code(code, answer);
    }
}

/// A window, a number, where its value is, and the code.
unsafe fn set(name: &CStr, args: [usize; 5]) {
    if !state::is_replica() {
        return unsafe { pass(name, args) };
    }
    let [window, keyval, value, code, _] = args;
    let _inside = real::Inside::enter();
    let answer = state::with(|state| {
        let number = unsafe { *(window as *const i32) } as u32 as usize;
        let handle = windows::of_fortran(state, calls::WIN_F2C, &[number]);
        let [keyval, value] =
            unsafe { [*(keyval as *const i32) as u32 as usize, *(value as *const usize)] };
        windows::set_attribute(state, calls::WIN_SET_ATTR, &[handle, keyval, value])
    });
    unsafe { put_code(code, answer) };
}

/// MPI_WIN_GET_ATTR of `mpif.h` and `use mpi`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_win_get_attr_(a: usize, b: usize, c: usize, d: usize, e: usize) {
    unsafe { get(c"mpi_win_get_attr_", [a, b, c, d, e]) }
}

/// MPI_WIN_GET_ATTR of `mpi_f08`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_win_get_attr_f08_(a: usize, b: usize, c: usize, d: usize, e: usize) {
    unsafe { get(c"mpi_win_get_attr_f08_", [a, b, c, d, e]) }
}

/// MPI_WIN_SET_ATTR of `mpif.h` and `use mpi`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_win_set_attr_(a: usize, b: usize, c: usize, d: usize) {
    unsafe { set(c"mpi_win_set_attr_", [a, b, c, d, 0]) }
}

/// MPI_WIN_SET_ATTR of `mpi_f08`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mpi_win_set_attr_f08_(a: usize, b: usize, c: usize, d: usize) {
    unsafe { set(c"mpi_win_set_attr_f08_", [a, b, c, d, 0]) }
}
