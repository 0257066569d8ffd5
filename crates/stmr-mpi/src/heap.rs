//! Memory that this library needs itself.
//!
//! It takes none of the program's heap.  A replica that leads needs other amounts than one that
//! follows, and the addresses of what the program allocates would differ with them.  And the
//! library is called where that heap must not be touched: UCX, which Open MPI 5 loads, puts jumps
//! that lead to themselves over `sbrk` and `mmap`, and looks at the clock until it puts its own
//! functions there.
//!
//! A size has a class, four to each power of two, and each thread a list of free blocks for each
//! class.  No thread waits for another: one that was left behind in MPI runs only when nobody else
//! wants to.  A block that another thread frees stays with that thread.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory::PAGE;

/// The addresses that it has, below the program's heap, so that what the program maps lies alike in
/// all replicas; more is mapped where the kernel likes.
const ROOM: Range<usize> = 1 << 43..1 << 44;

/// What a thread takes of them at a time, for blocks up to [`SMALL_MAX`].
const CHUNK: usize = 1 << 20;

/// Larger blocks are whole pages.
const SMALL_MAX: usize = 1 << 17;

/// Larger blocks are the kernel's.
const CLASSED_MAX: usize = 1 << 30;

/// What a thread keeps in memory of free blocks of whole pages, in bytes.
const KEPT_MAX: usize = 64 << 20;

/// Blocks up to here are multiples of [`GRAIN`].
const FINE_MAX: usize = 64;
const GRAIN: usize = 16;

/// So many classes there are up to [`CLASSED_MAX`].
const N_CLASSES: usize = FINE_MAX / GRAIN + 4 * (CLASSED_MAX / FINE_MAX).ilog2() as usize;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// A class of sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Class(usize);

impl Class {
    /// The class of a size that is not 0; nothing if it is the kernel's to give.
    fn of(size: usize) -> Option<Self> {
        let most = size - 1;
        if most < FINE_MAX {
            return Some(Self(most / GRAIN));
        }
        if CLASSED_MAX <= most {
            return None;
        }
        let power = most.ilog2();
        let quarter = most >> (power - 2) & 3;
        let powers = (power - FINE_MAX.ilog2()) as usize;
        Some(Self(FINE_MAX / GRAIN + 4 * powers + quarter))
    }

    /// The bytes of its blocks.
    fn size(self) -> usize {
        match self.0.checked_sub(FINE_MAX / GRAIN) {
            None => (self.0 + 1) * GRAIN,
            Some(above) => (5 + above % 4) << (above / 4 + FINE_MAX.ilog2() as usize - 2),
        }
    }

    fn is_pages(self) -> bool {
        SMALL_MAX < self.size()
    }
}

/// A free block.
struct Free {
    next: *mut Free,
    /// Its pages are in memory.
    is_kept: bool,
}

/// The free blocks of a thread, and the chunk that it cuts new ones from.
struct Lists {
    free: [Cell<*mut Free>; N_CLASSES],
    chunk: Cell<usize>,
    chunk_end: Cell<usize>,
    kept: Cell<usize>,
}

thread_local! {
    static LISTS: Lists = const {
        Lists {
            free: [const { Cell::new(null_mut()) }; N_CLASSES],
            chunk: Cell::new(0),
            chunk_end: Cell::new(0),
            kept: Cell::new(0),
        }
    };
}

impl Lists {
    /// A block, and whether it is as the kernel gave it: zeros.
    fn take(&self, class: Class) -> (*mut u8, bool) {
        let (list, size) = (&self.free[class.0], class.size());
        let found = list.get();
        if !found.is_null() {
            let Free { next, is_kept } = unsafe { found.read() };
            list.set(next);
            if class.is_pages() && is_kept {
                self.kept.set(self.kept.get() - size);
            }
            return (found.cast(), false);
        }
        if class.is_pages() {
            return (reserve(size), true);
        }
        if self.chunk_end.get() - self.chunk.get() < size {
            let chunk = reserve(CHUNK) as usize;
            if chunk == 0 {
                return (null_mut(), false);
            }
            self.chunk.set(chunk);
            self.chunk_end.set(chunk + CHUNK);
        }
        let at = self.chunk.get();
        self.chunk.set(at + size);
        (at as *mut u8, true)
    }

    fn give(&self, class: Class, at: *mut u8) {
        let (list, size) = (&self.free[class.0], class.size());
        let mut is_kept = true;
        if class.is_pages() {
            let kept = self.kept.get() + size;
            is_kept = kept <= KEPT_MAX;
            if is_kept {
                self.kept.set(kept);
            } else {
                let rest = at as usize + PAGE;
                unsafe { libc::syscall(libc::SYS_madvise, rest, size - PAGE, libc::MADV_DONTNEED) };
            }
        }
        let at = at.cast::<Free>();
        unsafe { at.write(Free { next: list.get(), is_kept }) };
        list.set(at);
    }
}

/// Maps pages by the system call itself, there if nothing else is; null if there are none.
fn map(at: usize, size: usize) -> *mut u8 {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let mut kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    if at != 0 {
        kind |= libc::MAP_FIXED_NOREPLACE;
    }
    let got = unsafe { libc::syscall(libc::SYS_mmap, at, size, rights, kind, -1, 0_usize) };
    if got == -1 { null_mut() } else { got as *mut u8 }
}

/// Pages that nobody has had; null if there are none.
fn reserve(size: usize) -> *mut u8 {
    static USED: AtomicUsize = AtomicUsize::new(ROOM.start);
    let at = USED.fetch_add(size, Ordering::Relaxed);
    let got = if at + size <= ROOM.end { map(at, size) } else { null_mut() };
    if got.is_null() { map(0, size) } else { got }
}

/// The class of a block; what is not as others is of whole pages.
fn class_of(layout: Layout) -> Option<Class> {
    let least = if layout.align() <= GRAIN { 1 } else { SMALL_MAX + 1 };
    Class::of(layout.size().max(least))
}

/// Blocks begin at multiples of [`GRAIN`], or of [`PAGE`] if they are of whole pages.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if PAGE < layout.align() {
            return null_mut();
        }
        match class_of(layout) {
            Some(class) => LISTS.with(|it| it.take(class)).0,
            None => map(0, layout.size()),
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        match class_of(layout) {
            Some(class) => LISTS.with(|it| it.give(class, at)),
            None => {
                unsafe { libc::syscall(libc::SYS_munmap, at, layout.size()) };
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout).filter(|_| layout.align() <= PAGE);
        let Some(class) = class else { return unsafe { self.alloc(layout) } };
        let (at, is_zero) = LISTS.with(|it| it.take(class));
        if !at.is_null() && !is_zero {
            unsafe { at.write_bytes(0, layout.size()) };
        }
        at
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let classes = [class_of(layout), class_of(wanted)];
        if classes[0].is_some() && classes[0] == classes[1] {
            return at;
        }
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            unsafe {
                std::ptr::copy_nonoverlapping(at, new, layout.size().min(size));
                self.dealloc(at, layout);
            }
        }
        new
    }
}
