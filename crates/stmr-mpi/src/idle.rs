//! How MPI waits in a call that only blocks, which it makes in a thread of ours.
//!
//! Open MPI and Intel MPI let others run there.  MPICH computes on: with more processes than cores
//! each step of a sum then takes as long as the system lets one run.  From 4.3 on it sleeps if its
//! environment says so; before, where it is built on UCX, it asks that for messages through a
//! function of a library, which is this one's first.

#![allow(unreachable_pub, reason = "UCX's name is reached by the linker alone")]

use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::sync::OnceLock;

use crate::lookup;
use crate::real::fail;

/// How often MPI asks in vain before others run, and before this thread sleeps.
const ASKS: u32 = 16;
const YIELDS: u32 = 200;

/// How long it sleeps, in nanoseconds.
const SLEEP_NS: i64 = 50_000;

thread_local! {
    /// How often in a row this thread has asked in vain; nothing in the program's own threads.
    static ASKED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// This thread makes calls that only block.
pub(crate) fn begin() {
    ASKED.set(Some(0));
}

/// UCX's `ucp_worker_progress`: looks for messages, and returns whether something came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    let came = unsafe { real()(worker) };
    if let Some(asked) = ASKED.get() {
        let asked = if came == 0 { asked.saturating_add(1) } else { 0 };
        ASKED.set(Some(asked));
        if ASKS + YIELDS < asked {
            sleep();
        } else if ASKS < asked {
            unsafe { libc::sched_yield() };
        }
    }
    came
}

/// The C library is not asked for it: who looks for its function waits for the loader, and the
/// program's thread may be in the call while it loads a library that calls MPI.
fn sleep() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: SLEEP_NS };
    let nothing = std::ptr::null_mut::<c_void>();
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, nothing) };
}

type Progress = unsafe extern "C" fn(*mut c_void) -> c_uint;

/// UCX's own, which may be loaded where names are not looked for.
fn real() -> Progress {
    static FOUND: OnceLock<Progress> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let name = c"ucp_worker_progress";
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let library = unsafe { libc::dlopen(c"libucp.so.0".as_ptr(), flags) };
        let library = if library.is_null() { libc::RTLD_NEXT } else { library };
        let found = lookup::theirs(library, name)
            .unwrap_or_else(|| fail("MPI calls UCX, whose library is not called libucp.so.0"));
        unsafe { std::mem::transmute::<usize, Progress>(found) }
    })
}
