//! Libraries that stand between a program and MPI through MPI's profiling interface (MPI 4.1
//! §15.2): they have functions of MPI's names, and call those with a P before them.
//!
//! ```text
//! program ──► MPI_Send of this library ──► the tool's ──► PMPI_Send of this library ──► MPI's
//! ```
//! One that is a part of the program's own file stands before this library, and needs no help.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::{N_CALLS, NAMES};
use crate::lookup::{self, file_of};
use crate::real::{self, Call};
use crate::stack;
use crate::state;

/// Nobody stands before MPI at a call.
const NONE: usize = 1;

/// Who stands before MPI at each call; 0 until it was looked for.
static TOOLS: [AtomicUsize; N_CALLS] = [const { AtomicUsize::new(0) }; N_CALLS];

/// The tool's function that a call of the program's goes to first, if one has it.
#[inline]
pub(crate) fn of(call: Call) -> Option<usize> {
    match TOOLS[call.0].load(Ordering::Relaxed) {
        NONE => None,
        found => find(call, found),
    }
}

#[cold]
fn find(call: Call, found: usize) -> Option<usize> {
    // What MPI calls itself is no call of the program's.
    if real::is_inside() || !state::is_replica() {
        return None;
    }
    if found != 0 {
        return Some(found);
    }
    let profiled = unsafe { CStr::from_ptr(NAMES[call.0].as_ptr().cast()) };
    let name = CStr::from_bytes_with_nul(&profiled.to_bytes_with_nul()[1..]).expect("one ended it");
    let tool = stack::on_own(|| {
        let mpis = file_of(real::mpis(profiled)?);
        lookup::theirs(libc::RTLD_NEXT, name).filter(|it| file_of(*it) != mpis)
    });
    TOOLS[call.0].store(tool.unwrap_or(NONE), Ordering::Relaxed);
    tool
}

/// The function of that name of a tool that stands behind the one that asks, and before MPI.
pub(crate) fn behind(from: usize, name: &CStr, mpis: Option<&CStr>) -> Option<usize> {
    let asks = file_of(from)?;
    let all = files();
    let behind = all.iter().map(CString::as_c_str).skip_while(|it| *it != asks).skip(1);
    behind.take_while(|it| Some(*it) != mpis).find_map(|file| {
        let how = libc::RTLD_NOW | libc::RTLD_NOLOAD;
        let library = unsafe { libc::dlopen(file.as_ptr(), how) };
        let at = Some(library).filter(|it| !it.is_null()).and_then(|it| lookup::theirs(it, name));
        // One that it was linked with has its turn.
        at.filter(|it| file_of(*it) == Some(file))
    })
}

/// The files of what is loaded, as the loader looks through them.
fn files() -> Vec<CString> {
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        let name = unsafe { (*info).dlpi_name };
        if !name.is_null() {
            let found = unsafe { &mut *found.cast::<Vec<CString>>() };
            found.push(unsafe { CStr::from_ptr(name) }.to_owned());
        }
        0
    }
    let mut found: Vec<CString> = Vec::new();
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}
