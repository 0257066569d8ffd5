//! Calls that name a process: who names the number that the program takes for its own means itself.
//!
//! That number is one replica's (clock.rs), which may be on another host, or gone.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{clockid_t, pid_t, pthread_t, size_t, ssize_t};

use crate::real::{self, next};
use crate::stack;
use crate::told::{native_pid, told};

/// The number that the program was told; 0 until then.
static SHARED: AtomicI32 = AtomicI32::new(0);

/// The number that all replicas of this process have; 0 until it is known.
static KNOWN: AtomicI32 = AtomicI32::new(0);

/// This process and its siblings know each other.
pub(crate) fn know(pid: pid_t) {
    KNOWN.store(pid, Ordering::Relaxed);
}

/// The number that the program is told, in whichever of its threads, once it is known.  A process
/// that it has forked has its own.
pub(crate) fn tell() -> Option<pid_t> {
    let known = Some(KNOWN.load(Ordering::Relaxed)).filter(|it| *it != 0)?;
    if !is_here() {
        return None;
    }
    SHARED.store(known, Ordering::Relaxed);
    Some(known)
}

/// The same of its parent, for a process that it has forked.
pub(crate) fn tell_child(parent: pid_t) -> Option<pid_t> {
    let known = Some(KNOWN.load(Ordering::Relaxed)).filter(|it| *it != 0)?;
    let is_replica = told().is_some_and(|it| it.pid == parent as usize);
    (is_replica && !is_here()).then_some(known)
}

/// Whether this process is the replica, and none that it has forked.
pub(crate) fn is_here() -> bool {
    told().is_some_and(|it| it.pid == native_pid())
}

/// Whether the program means itself.  A process that it has forked does not.
pub(crate) fn is_own(pid: pid_t) -> bool {
    let is_said = pid != 0 && pid == SHARED.load(Ordering::Relaxed);
    is_said && stack::on_own(|| is_here() && !real::is_mpi_asking())
}

/// The same process as the system has it.
pub(crate) fn native(pid: pid_t) -> pid_t {
    if is_own(pid) { native_pid() as pid_t } else { pid }
}

/// Who sends itself a signal is told that it comes from the number that it takes for its own.
pub(crate) fn share_sender(info: *mut libc::siginfo_t) {
    let (shared, own) = (SHARED.load(Ordering::Relaxed), native_pid() as pid_t);
    // Behind the signal, its error and its kind, which say who sent it where it was a process.
    let sent_by = info.cast::<pid_t>().wrapping_add(4);
    if !info.is_null() && shared != 0 && unsafe { (*info).si_code <= 0 && *sent_by == own } {
        unsafe { *sent_by = shared };
    }
}

/// What is to be looked up for a name: `/proc/self` for the program's own folder in /proc.
pub(crate) fn path(name: &CStr) -> Cow<'_, CStr> {
    let own = || {
        let rest = name.to_bytes().strip_prefix(b"/proc/")?;
        let length = rest.iter().position(|it| !it.is_ascii_digit()).unwrap_or(rest.len());
        let (number, rest) = rest.split_at(length);
        let pid = std::str::from_utf8(number).ok()?.parse().ok()?;
        let is_folder = rest.is_empty() || rest[0] == b'/';
        let path = || CString::new([b"/proc/self", rest].concat()).ok();
        (is_folder && is_own(pid)).then(path).flatten()
    };
    own().map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Functions whose first argument is a process.
macro_rules! of_process {
    ($($name:ident($($more:ident: $kind:ty),*) -> $answer:ty;)*) => {$(
        /// See the manual's page of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(pid: pid_t, $($more: $kind),*) -> $answer {
            type Function = unsafe extern "C" fn(pid_t, $($kind),*) -> $answer;
            let name = const {
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name of the C library's"),
                }
            };
            let real = unsafe { std::mem::transmute::<usize, Function>(next(name)) };
            unsafe { real(native(pid), $($more),*) }
        }
    )*};
}

of_process! {
    sched_getparam(to: *mut c_void) -> c_int;
    sched_getscheduler() -> c_int;
    sched_rr_get_interval(to: *mut libc::timespec) -> c_int;
    sched_setaffinity(size: size_t, mask: *const c_void) -> c_int;
    sched_setparam(with: *const c_void) -> c_int;
    sched_setscheduler(policy: c_int, with: *const c_void) -> c_int;
    getpgid() -> pid_t;
    getsid() -> pid_t;
    prlimit(which: c_uint, new: *const c_void, old: *mut c_void) -> c_int;
    prlimit64(which: c_uint, new: *const c_void, old: *mut c_void) -> c_int;
    process_vm_readv(
        own: *const libc::iovec,
        n_own: c_ulong,
        theirs: *const libc::iovec,
        n_theirs: c_ulong,
        flags: c_ulong
    ) -> ssize_t;
    process_vm_writev(
        own: *const libc::iovec,
        n_own: c_ulong,
        theirs: *const libc::iovec,
        n_theirs: c_ulong,
        flags: c_ulong
    ) -> ssize_t;
}

/// See getpriority(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpriority(which: c_int, who: c_uint) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_uint) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"getpriority")) };
    unsafe { real(which, whose(which, who)) }
}

/// See setpriority(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setpriority(which: c_int, who: c_uint, to: c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_uint, c_int) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"setpriority")) };
    unsafe { real(which, whose(which, who), to) }
}

/// Who is meant where a process may be, or a group or a user.
fn whose(which: c_int, who: c_uint) -> c_uint {
    const PROCESS: c_int = 0;
    if which == PROCESS { native(who as pid_t) as c_uint } else { who }
}

/// See clock_getcpuclockid(3): the clock of the process that asks has a name that all replicas
/// have for theirs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_getcpuclockid(pid: pid_t, to: *mut clockid_t) -> c_int {
    type Function = unsafe extern "C" fn(pid_t, *mut clockid_t) -> c_int;
    if is_own(pid) {
        unsafe { *to = libc::CLOCK_PROCESS_CPUTIME_ID };
        return 0;
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"clock_getcpuclockid")) };
    unsafe { real(pid, to) }
}

/// See pthread_getcpuclockid(3): the same of the thread that asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getcpuclockid(thread: pthread_t, to: *mut clockid_t) -> c_int {
    type Function = unsafe extern "C" fn(pthread_t, *mut clockid_t) -> c_int;
    if thread == unsafe { libc::pthread_self() } {
        unsafe { *to = libc::CLOCK_THREAD_CPUTIME_ID };
        return 0;
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"pthread_getcpuclockid")) };
    unsafe { real(thread, to) }
}
