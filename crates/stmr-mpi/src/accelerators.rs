//! Memory of accelerators, which the processor cannot read: what a program gives a call of it is
//! not compared, and so not served.
//!
//! A program that copies to the host's memory by itself runs as any other, and so does one whose
//! accelerator shows its memory to the processor.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Mutex;

use crate::calls::BUFFERS;
use crate::origin;
use crate::real::Call;
use crate::state::State;

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

/// Lower addresses have a meaning to MPI.
const LOWEST: usize = 1 << 16;

/// Which of the libraries this process has, and how many objects it had when that was looked at.
static KNOWN: Mutex<(u64, Vec<Ask>)> = Mutex::new((0, Vec::new()));

/// Stops the program if it gives the call memory of an accelerator.
pub(crate) fn check(state: &mut State, call: Call, args: &[usize]) {
    let mask = BUFFERS[call.0];
    if mask == 0 {
        return;
    }
    let mut known = KNOWN.lock().unwrap_or_else(|it| it.into_inner());
    let n_loaded = origin::n_loaded();
    if known.0 != n_loaded {
        *known = (n_loaded, LIBRARIES.iter().filter_map(|it| ask_of(it.0, it.1)).collect());
    }
    if known.1.is_empty() {
        return;
    }
    let given = args.iter().enumerate().filter(|it| mask & 1 << it.0 != 0).map(|it| *it.1);
    for at in given.filter(|it| LOWEST <= *it && !is_readable(*it)) {
        if known.1.iter().any(|ask| is_known(*ask, at)) {
            drop(known);
            let how = "of memory that is an accelerator's; give it memory of the host's,";
            state.refuse_as(call, how)
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
