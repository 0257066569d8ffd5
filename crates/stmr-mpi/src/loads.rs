//! Libraries that the program loads when it has begun, as Python does for most of what it imports:
//! they may read the cycle counter (see `cycles`).
//!
//! Which libraries are searched for, and where, hangs on who calls dlopen(3): the C library looks
//! at the place to which it returns.  So it is gone to and not called, and nothing is done behind
//! it; what came is looked at when the program next calls this library.  That is most often
//! dlsym(3), for what it has loaded.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no counter traps there"))]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};

use crate::cycles;
use crate::origin::{self, OfLoaded};
use crate::real::{self, Inside};
use crate::stack;
use crate::state;

thread_local! {
    /// Where the instructions began of what was there when the program last began to load
    /// something.  The thread that calls MPI has it alone.
    static SEEN: RefCell<OfLoaded<BTreeSet<usize>>> = const {
        RefCell::new(OfLoaded::new(BTreeSet::new()))
    };
}

/// Remembers what is there, also what MPI has loaded by itself.
pub(crate) fn see() {
    SEEN.with_borrow_mut(|seen| _ = seen.look(origin::code_begins));
}

/// Where the instructions begin of what was loaded since.
pub(crate) fn since() -> BTreeSet<usize> {
    SEEN.with_borrow(|seen| {
        if seen.is_so_still() {
            return BTreeSet::new();
        }
        origin::code_begins().difference(seen.last()).copied().collect()
    })
}

/// Looks at what the program has loaded, if nobody has yet.
pub(crate) fn look() {
    if cycles::is_expecting() && !real::is_inside() {
        stack::on_own(|| drop(Inside::enter()));
    }
}

/// What is done before the C library's dlopen(3), which is returned.  What a library of the
/// program's finds among its own first, it would find before this one: MPI.
#[cfg(target_arch = "x86_64")]
extern "C" fn before_dlopen(file: *const c_char, how: &mut c_int) -> usize {
    let given = *how;
    if state::is_replica() && !real::is_mpi_asking() {
        *how &= !libc::RTLD_DEEPBIND;
    }
    before(c"dlopen", file, given)
}

/// The same of dlmopen(3).
#[cfg(target_arch = "x86_64")]
extern "C" fn before_dlmopen(_space: c_long, file: *const c_char, how: c_int) -> usize {
    before(c"dlmopen", file, how)
}

#[cfg(target_arch = "x86_64")]
fn before(name: &CStr, file: *const c_char, how: c_int) -> usize {
    // This asks dlsym(3) itself, after which nothing would be expected.
    let real = real::next(name);
    let loads = !file.is_null() && how & libc::RTLD_NOLOAD == 0;
    // What MPI and this library load is no affair of the program's.
    if loads && !real::is_inside() && !stack::is_on_own() {
        stack::on_own(|| {
            let _inside = Inside::enter();
            cycles::expect();
        });
    }
    real
}

/// See dlopen(3).
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(file: *const c_char, how: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "lea rsi, [rsp + 8]",
        "call {before}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_dlopen,
    )
}

/// See dlmopen(3).
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlmopen(space: c_long, file: *const c_char, how: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {before}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_dlmopen,
    )
}
