//! What stands behind Open MPI's handles, apart from all else that it allocates.
//!
//! Its handles are addresses.  A program sends them with memory that it has not written, or sorts
//! by them; and it takes memory as messages come, so that what it takes next lies elsewhere in each
//! replica.  So where it makes a handle, blocks of just the sizes of these objects are from rooms
//! of their own, one for each size.  There, addresses follow from the calls that make and free
//! handles, but where MPI lets go of one later than its call is over, or takes for messages a block
//! of just that size within such a call.  What MPI_Init makes lies where it likes.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::abi::Family;
use crate::calls::{N_CALLS, NAMES};
use crate::real::{self, Call};

/// The addresses of the rooms, below this library's heap, and how far one begins behind another.
const AT: usize = 1 << 42;
const ROOM: usize = 1 << 36;

/// What becomes usable at a time.
const STEP: usize = 1 << 16;

/// How blocks are aligned.
const GRAIN: usize = 64;

/// What describes the objects, in which their size stands so far from its beginning (`opal_class_t`
/// of Open MPI 4 and 5).
const CLASSES: [&CStr; 6] = [
    c"ompi_communicator_t_class",
    c"ompi_group_t_class",
    c"ompi_datatype_t_class",
    c"ompi_op_t_class",
    c"ompi_info_t_class",
    c"ompi_errhandler_t_class",
];
const SIZE_AT: usize = 56;

/// An object is no larger, in bytes.
const SIZE_MAX: usize = 4096;

/// How the names of calls begin that make handles or free them.
const MAKING: [&str; 7] = [
    "MPI_Comm_",
    "MPI_Intercomm_",
    "MPI_Group_",
    "MPI_Type_",
    "MPI_Op_",
    "MPI_Info_",
    "MPI_Errhandler_",
];

/// The sizes of blocks of each room; 0 for one that there is not.
static SIZES: [AtomicUsize; CLASSES.len()] = [const { AtomicUsize::new(0) }; CLASSES.len()];

static MAKES: [AtomicBool; N_CALLS] = [const { AtomicBool::new(false) }; N_CALLS];

/// Which blocks there are.
struct Room {
    used: usize,
    usable: usize,
    /// The one that was given back last, in which the one before stands.
    free: usize,
}

static ROOMS: [Mutex<Room>; CLASSES.len()] =
    [const { Mutex::new(Room { used: 0, usable: 0, free: 0 }) }; CLASSES.len()];

thread_local! {
    /// This thread is in a call that makes or frees handles.
    static IS_MAKING: Cell<bool> = const { Cell::new(false) };
}

/// From here on, these objects are from here.
pub(crate) fn begin() {
    if real::family() != Family::OpenMpi {
        return;
    }
    let mut sizes = Vec::new();
    for class in CLASSES {
        let Some(class) = real::symbol(class) else { continue };
        let size = unsafe { *((class + SIZE_AT) as *const usize) };
        // What has not been used yet has a size too.
        if (1..=SIZE_MAX).contains(&size) && !sizes.contains(&size) {
            SIZES[sizes.len()].store(size, Ordering::Relaxed);
            sizes.push(size);
        }
    }
    for (name, makes) in NAMES.iter().zip(&MAKES) {
        // Behind the profiling name's P.
        makes.store(MAKING.iter().any(|it| name[1..].starts_with(it)), Ordering::Relaxed);
    }
}

/// Does a call of MPI's.
pub(crate) fn within<R>(call: Call, what: impl FnOnce() -> R) -> R {
    if !MAKES[call.0].load(Ordering::Relaxed) {
        return what();
    }
    let before = IS_MAKING.replace(true);
    let answer = what();
    IS_MAKING.set(before);
    answer
}

/// A block for an object behind a handle; null if what is wanted is another.
pub(crate) fn take(size: usize) -> *mut c_void {
    if !IS_MAKING.get() {
        return null_mut();
    }
    let is_its = |it: &AtomicUsize| it.load(Ordering::Relaxed) == size;
    let Some(idx) = SIZES.iter().position(is_its).filter(|_| size != 0) else {
        return null_mut();
    };
    let stride = size.next_multiple_of(GRAIN);
    let base = AT + idx * ROOM;
    let mut room = ROOMS[idx].lock().unwrap_or_else(|it| it.into_inner());
    if room.free != 0 {
        let at = room.free as *mut usize;
        room.free = unsafe { *at };
        return at.cast();
    }
    if room.usable < room.used + stride && !widen(base, &mut room) {
        return null_mut();
    }
    room.used += stride;
    (base + room.used - stride) as *mut c_void
}

/// Maps more of a room; false if something else is there.
fn widen(base: usize, room: &mut Room) -> bool {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let at = (base + room.usable) as *mut c_void;
    if ROOM < room.usable + STEP {
        return false;
    }
    let got = unsafe { libc::mmap(at, STEP, rights, kind, -1, 0) };
    if got != at {
        if got != libc::MAP_FAILED {
            unsafe { libc::munmap(got, STEP) };
        }
        return false;
    }
    room.usable += STEP;
    true
}

/// How long a block is, if it is from here.
pub(crate) fn size_of(at: *mut c_void) -> Option<usize> {
    let idx = (at as usize).checked_sub(AT)? / ROOM;
    SIZES.get(idx).map(|it| it.load(Ordering::Relaxed))
}

/// Gives a block back that is from here.
pub(crate) fn give(at: *mut c_void) {
    let idx = (at as usize - AT) / ROOM;
    let mut room = ROOMS[idx].lock().unwrap_or_else(|it| it.into_inner());
    unsafe { *at.cast::<usize>() = room.free };
    room.free = at as usize;
}
