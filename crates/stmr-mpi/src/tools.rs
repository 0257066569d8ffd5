//! Libraries that stand between a program and MPI through MPI's profiling interface (MPI 4.1
//! §15.2): they have functions of MPI's names, and call those with a P before them.
//!
//! ```text
//! program ──► MPI_Send of this library ──► the tool's ──► PMPI_Send of this library ──► MPI's
//! ```
//! One that is a part of the program's own file stands before this library, and needs no help.

use std::ffi::CStr;
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
