//! On which core a process runs, and on which it may; how many its host has, how much memory, and
//! how much of it is free: the meta's answer.
//!
//! Launchers give each process cores of its own, and the kernel moves it among them.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::sync::OnceLock;

use libc::{cpu_set_t, pid_t, pthread_t, size_t};

use crate::clock::{self, CORES};
use crate::files;
use crate::own;
use crate::real;
use crate::stack;

/// A core and its node of memory.
fn place() -> [c_uint; 2] {
    let ask = || {
        let mut row = [0; 2];
        let [core, node] = row.each_mut().map(|it: &mut c_uint| &raw mut *it);
        unsafe { libc::syscall(libc::SYS_getcpu, core, node, 0) };
        row
    };
    match real::early_asking() {
        // Who cannot ask the others yet, any process may be there.
        Some(_) => [0; 2],
        None if real::is_program_asking() => clock::shared_value(CORES, ask),
        None => ask(),
    }
}

/// See getcpu(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getcpu(core: *mut c_uint, node: *mut c_uint) -> c_int {
    stack::on_own(|| {
        for (to, value) in [core, node].into_iter().zip(place()) {
            if !to.is_null() {
                unsafe { *to = value };
            }
        }
        0
    })
}

/// See sched_getcpu(3).
#[unsafe(no_mangle)]
pub extern "C" fn sched_getcpu() -> c_int {
    stack::on_own(|| place()[0] as c_int)
}

/// Writes the mask of the calling thread, or the true one of another; returns an error's number.
unsafe fn affinity(thread: pid_t, is_own: bool, size: size_t, to: *mut cpu_set_t) -> c_int {
    // The error, and the mask: the kernel's may be shorter than the caller's.
    let ask = || {
        let mut row = vec![0_u8; size_of::<c_int>() + size];
        let (error, mask) = row.split_at_mut(size_of::<c_int>());
        let at = mask.as_mut_ptr();
        if unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, size, at) } < 0 {
            error.copy_from_slice(&files::last_error().to_ne_bytes());
        }
        row
    };
    let is_shared = is_own && real::is_program_asking();
    let row = if is_shared { clock::shared(CORES + 1, ask) } else { ask() };
    let (error, mask) = row.split_first_chunk().expect("it begins with the error");
    let error = c_int::from_ne_bytes(*error);
    if error == 0 {
        unsafe { std::ptr::copy_nonoverlapping(mask.as_ptr(), to.cast(), mask.len().min(size)) };
    }
    error
}

/// See sched_getaffinity(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getaffinity(pid: pid_t, size: size_t, to: *mut cpu_set_t) -> c_int {
    let is_own = pid == 0 || own::is_own(pid);
    stack::on_own(|| match unsafe { affinity(own::native(pid), is_own, size, to) } {
        0 => 0,
        error => files::failed(error),
    })
}

/// See pthread_getaffinity_np(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getaffinity_np(
    thread: pthread_t,
    size: size_t,
    to: *mut cpu_set_t,
) -> c_int {
    if thread == unsafe { libc::pthread_self() } {
        return stack::on_own(|| unsafe { affinity(0, true, size, to) });
    }
    type Native = unsafe extern "C" fn(pthread_t, size_t, *mut cpu_set_t) -> c_int;
    static NATIVE: OnceLock<Option<Native>> = OnceLock::new();
    let native = NATIVE.get_or_init(|| unsafe {
        let at = libc::dlsym(libc::RTLD_NEXT, c"pthread_getaffinity_np".as_ptr());
        std::mem::transmute::<*mut c_void, Option<Native>>(at)
    });
    native.map_or(libc::ENOSYS, |it| unsafe { it(thread, size, to) })
}

/// See sysconf(3): what it says of the host, and not of the system.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysconf(name: c_int) -> c_long {
    const OF_HOST: [c_int; 4] = [
        libc::_SC_NPROCESSORS_CONF,
        libc::_SC_NPROCESSORS_ONLN,
        libc::_SC_PHYS_PAGES,
        libc::_SC_AVPHYS_PAGES,
    ];
    type Native = unsafe extern "C" fn(c_int) -> c_long;
    static NATIVE: OnceLock<Option<Native>> = OnceLock::new();
    stack::on_own(|| {
        let native = NATIVE.get_or_init(|| unsafe {
            let at = libc::dlsym(libc::RTLD_NEXT, c"sysconf".as_ptr());
            std::mem::transmute::<*mut c_void, Option<Native>>(at)
        });
        let ask = || native.map_or(-1, |it| unsafe { it(name) });
        match OF_HOST.iter().position(|it| *it == name) {
            Some(idx) if real::is_program_asking() => {
                clock::shared_value(CORES + 2 + idx as u64, ask)
            }
            _ => ask(),
        }
    })
}

/// Functions that say what [`sysconf`] says.
macro_rules! of_host {
    ($($name:ident() -> $answer:ty: $of:expr;)*) => {$(
        /// See the manual's page of this name.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $answer {
            unsafe { sysconf($of) as $answer }
        }
    )*};
}

of_host! {
    get_nprocs() -> c_int: libc::_SC_NPROCESSORS_ONLN;
    get_nprocs_conf() -> c_int: libc::_SC_NPROCESSORS_CONF;
    get_phys_pages() -> c_long: libc::_SC_PHYS_PAGES;
    get_avphys_pages() -> c_long: libc::_SC_AVPHYS_PAGES;
}
