//! Functions of MPI that a program asks for by their names, of the library that it has opened: it
//! gets this library's.  Python's ctypes and Julia call MPI so, which the order of libraries does
//! not bind.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::loads;
use crate::real;
use crate::stack;
use crate::state;
use crate::tools;

/// How the names of MPI's functions begin, in C and in Fortran.
const PREFIXES: [&[u8]; 6] = [b"MPI_", b"PMPI_", b"MPIX_", b"PMPIX_", b"mpi_", b"pmpi_"];

/// The versions of dlsym(3) in the C libraries of this architecture, the newest first.
#[cfg(target_arch = "x86_64")]
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];
#[cfg(not(target_arch = "x86_64"))]
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.17"];

/// The C library's own function, which cannot be asked for itself.  It may be asked for while it
/// is looked for.
extern "C" fn find() -> usize {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    let found = FOUND.load(Ordering::Relaxed);
    if found != 0 {
        return found;
    }
    let of = |version: &CStr| unsafe {
        libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) as usize
    };
    let found = VERSIONS.into_iter().map(of).find(|it| *it != 0);
    let found = found.unwrap_or_else(|| real::fail("the C library has no dlsym"));
    FOUND.store(found, Ordering::Relaxed);
    found
}

/// The address of a name of a library that was opened; nothing if it has none.
pub(crate) fn theirs(library: *mut c_void, name: &CStr) -> Option<usize> {
    type Function = unsafe extern "C" fn(*mut c_void, *const c_char) -> usize;
    let real = unsafe { std::mem::transmute::<usize, Function>(find()) };
    let at = unsafe { real(library, name.as_ptr()) };
    (at != 0).then_some(at)
}

/// The file that an address belongs to.
pub(crate) fn file_of(at: usize) -> Option<&'static CStr> {
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let known = unsafe { libc::dladdr(at as *const c_void, &raw mut info) } != 0;
    (known && !info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) })
}

/// This library, as dlopen knows it.
fn own() -> *mut c_void {
    static OWN: OnceLock<usize> = OnceLock::new();
    let found = *OWN.get_or_init(|| {
        let Some(file) = file_of(find as *const () as usize) else { return 0 };
        unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) as usize }
    });
    found as *mut c_void
}

/// This library's function of that name, where the program would get MPI's; 0 where it would not.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "see below"))]
extern "C" fn ours(library: *mut c_void, name: *const c_char, from: usize) -> usize {
    loads::look();
    // What stands first among all, the order of libraries says.
    if library == libc::RTLD_DEFAULT || name.is_null() {
        return 0;
    }
    let name = unsafe { CStr::from_ptr(name) };
    if !PREFIXES.iter().any(|it| name.to_bytes().starts_with(it)) || !state::is_replica() {
        return 0;
    }
    let is_mpis = |at: usize| {
        file_of(at).is_some_and(|file| {
            let file = file.to_bytes().rsplit(|it| *it == b'/').next().unwrap_or_default();
            file.starts_with(b"libmpi")
        })
    };
    stack::on_own(|| {
        if own().is_null() {
            0
        } else if library == libc::RTLD_NEXT {
            // Who asks stands between the program and MPI, behind this library: see tools.rs.
            let mpis = real::mpis(c"PMPI_Init").and_then(file_of);
            let asks = !real::is_inside() && file_of(from) != mpis;
            let next = || tools::behind(from, name, mpis).or_else(|| profiled(name));
            if asks { next().unwrap_or(0) } else { 0 }
        } else if theirs(library, name).is_some_and(is_mpis) {
            theirs(own(), name).unwrap_or(0)
        } else {
            0
        }
    })
}

/// This library's function that a tool calls for one of MPI's.
fn profiled(name: &CStr) -> Option<usize> {
    let name = name.to_bytes_with_nul();
    let name = if name.starts_with(b"P") { name.to_owned() } else { [b"P", name].concat() };
    theirs(own(), CStr::from_bytes_with_nul(&name).ok()?)
}

/// See dlsym(3).  The C library's looks at the place from which it is called, so it is gone to and
/// not called.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "mov rdx, [rsp + 24]",
        "call {ours}",
        "test rax, rax",
        "jnz 2f",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        "2:",
        "add rsp, 24",
        "ret",
        ours = sym ours,
        find = sym find,
    )
}
