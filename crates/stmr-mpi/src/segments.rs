//! Memory that MPI shares between its processes under a name.  Some MPIs take the name away in
//! MPI_Finalize, which is not called (see `env::finalize`): it is taken away where a process ends.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Mutex, PoisonError};

use crate::files::{self, Identity};
use crate::real;

/// Names, and what stood behind them.
static OPENED: Mutex<Vec<(CString, Option<Identity>)>> = Mutex::new(Vec::new());

type ShmOpen = unsafe extern "C" fn(*const c_char, c_int, libc::mode_t) -> c_int;

fn native(name: &CStr, flags: c_int, mode: libc::mode_t) -> c_int {
    let native = unsafe { std::mem::transmute::<usize, ShmOpen>(real::next(c"shm_open")) };
    unsafe { native(name.as_ptr(), flags, mode) }
}

/// See shm_open(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shm_open(name: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    let name = unsafe { CStr::from_ptr(name) };
    let fd = native(name, flags, mode);
    if 0 <= fd && real::is_mpi_asking() {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push((name.to_owned(), files::identity_of_open(fd)));
    }
    fd
}

/// Takes away the names under which MPI has memory, unless they are others' by now.
pub(crate) fn forget() {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, identity) in opened.drain(..) {
        let fd = native(&name, libc::O_RDONLY, 0);
        if 0 <= fd {
            if files::identity_of_open(fd) == identity {
                unsafe { libc::shm_unlink(name.as_ptr()) };
            }
            files::native_close(fd);
        }
    }
}
