//! Memory of accelerators, which the processor cannot read: what a program gives a call of it is
//! not compared, and so not served.
//!
//! A program that copies to the host's memory by itself runs as any other, and so does one whose
//! accelerator shows its memory to the processor.
//!
//! CUDA's driver listens at a name without a file, which has the number of its process in it, and
//! calls others of the program's processes at theirs.  That number is alike in all replicas, and
//! one process alone can have a name: that of the replica's set is put behind it.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::Mutex;

use crate::calls::BUFFERS;
use crate::errors::LOWEST;
use crate::origin::{self, OfLoaded};
use crate::places;
use crate::program_heap;
use crate::real::{self, Call};
use crate::stack;
use crate::state::{self, State};
use crate::told::told;

/// Says something of an address: a status, 0 if it knows the address.
type Ask = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void) -> c_int;

/// The libraries that know, and how each is asked.  Both take a row for the answer, which of their
/// attributes is wanted, and the address: cuPointerGetAttribute of CUDA's driver (its API, §6.14)
/// and hipPointerGetAttribute (HIP's, "Memory management").
const LIBRARIES: [(&CStr, &CStr); 4] = [
    (c"libcuda.so.1", c"cuPointerGetAttribute"),
    (c"libamdhip64.so.5", c"hipPointerGetAttribute"),
    (c"libamdhip64.so.6", c"hipPointerGetAttribute"),
    (c"libamdhip64.so.7", c"hipPointerGetAttribute"),
];

/// To both: what kind of memory it is.
const KIND_OF_MEMORY: c_int = 2;

/// Those of the libraries that this process has.
static KNOWN: Mutex<OfLoaded<Vec<Ask>>> = Mutex::new(OfLoaded::new(Vec::new()));

/// Stops the program if it gives the call memory of an accelerator.
pub(crate) fn check(state: &mut State, call: Call, args: &[usize]) {
    let given = places(BUFFERS[call.0]).map(|it| args[it]);
    // What the program allocates and its stack are the processor's.
    let is_elsewhere = |it: &usize| {
        LOWEST <= *it as isize
            && !program_heap::is_here(*it as *mut c_void)
            && !stack::is_programs(*it)
    };
    let mut given = given.filter(is_elsewhere).peekable();
    if given.peek().is_none() {
        return;
    }
    let mut known = KNOWN.lock().unwrap_or_else(|it| it.into_inner());
    let asks = known.look(|| LIBRARIES.iter().filter_map(|it| ask_of(it.0, it.1)).collect());
    if asks.is_empty() {
        return;
    }
    for at in given.filter(|it| !is_readable(*it)) {
        if asks.iter().any(|ask| is_known(*ask, at)) {
            drop(known);
            state.refuse_as(call, "of an accelerator's memory (give it the host's)")
        }
    }
}

/// The function of a library, if this process has loaded it.
fn ask_of(library: &CStr, function: &CStr) -> Option<Ask> {
    let library = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    let at = unsafe { libc::dlsym(library, function.as_ptr()) };
    unsafe { libc::dlclose(library) };
    (!at.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Ask>(at) })
}

/// Whether the processor can read there.
fn is_readable(at: usize) -> bool {
    /// The kernel reads the set of signals before it finds that this is no way to set them.
    const NO_WAY: usize = usize::MAX;
    const SET_BYTES: usize = 8;
    let at = at & !(SET_BYTES - 1);
    let nowhere = std::ptr::null_mut::<c_void>();
    let code = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_WAY, at, nowhere, SET_BYTES) };
    code == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

fn is_known(ask: Ask, at: usize) -> bool {
    let mut kind = [0_u64; 8];
    unsafe { ask(kind.as_mut_ptr().cast(), KIND_OF_MEMORY, at as *mut c_void) == 0 }
}

/// What a driver calls a socket, if it is a name without a file, with its set's number behind it.
unsafe fn name_in_set(name: *const libc::sockaddr, length: libc::socklen_t) -> Option<Vec<u8>> {
    let n = length as usize;
    let is_unix = size_of::<libc::sa_family_t>() < n
        && n < size_of::<libc::sockaddr_un>()
        && c_int::from(unsafe { (*name).sa_family }) == libc::AF_UNIX;
    if !is_unix || !state::is_replica() {
        return None;
    }
    let name = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), n) };
    if name[size_of::<libc::sa_family_t>()] != 0 || !origin::is_driver() {
        return None;
    }
    Some([name, &[b'0' + told()?.set as u8]].concat())
}

/// Does what the C library's function of that name does to a socket and such a name.
unsafe fn with_name(
    function: &CStr,
    socket: c_int,
    name: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *const libc::sockaddr, libc::socklen_t) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(real::next(function)) };
    match stack::on_own(|| unsafe { name_in_set(name, length) }) {
        Some(it) => unsafe { real(socket, it.as_ptr().cast(), it.len() as libc::socklen_t) },
        None => unsafe { real(socket, name, length) },
    }
}

/// See bind(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(
    socket: c_int,
    name: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    unsafe { with_name(c"bind", socket, name, length) }
}

/// See connect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(
    socket: c_int,
    name: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    unsafe { with_name(c"connect", socket, name, length) }
}
