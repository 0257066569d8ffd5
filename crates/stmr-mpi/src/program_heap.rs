//! The program's heap, apart from MPI's.
//!
//! Where a block lies reaches what a program sends: some send pointers or sort by them, and how a
//! block is aligned decides how a loop over it adds, and so how it rounds.  MPI takes memory as
//! messages come, which is another number of times in each replica; from one heap with it, all that
//! the program has would lie elsewhere in each.  So what the thread that calls MPI takes outside of
//! MPI, from `MPI_Init` on, comes from here, where addresses follow from the program's calls alone.
//! All else is the C library's, as ever.
//!
//! ```text
//! AT ──► small blocks, by dlmalloc ──► LARGE_AT ──► mappings, each behind the one before ──► END
//! ```
//!
//! A block's header, before it, says how long it is and how far behind its beginning.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use dlmalloc::{Allocator, Dlmalloc};
use libc::size_t;

use crate::files;
use crate::memory::PAGE;
use crate::objects;
use crate::origin;
use crate::real;
use crate::stack;
use crate::streams::next;

/// Where nothing is mapped by itself: below the program, which lies from two thirds of all
/// addresses on, and above a sixth of them, from where the kernel maps downwards if the stack has
/// no limit.
const AT: usize = 1 << 45;
const SMALL_ROOM: usize = 1 << 38;
const LARGE_AT: usize = AT + SMALL_ROOM;
const END_MAX: usize = 5 << 44;

/// What becomes usable at a time.
const STEP: usize = 1 << 22;

/// Blocks from here on are mapped each by itself, as in the C library: the least, and the most that
/// it rises to when such a one is given back.
const LARGE: [usize; 2] = [128 << 10, 32 << 20];

/// How every block is aligned, and the length of its header.
const GRAIN: usize = 16;

/// How large blocks are aligned.
pub(crate) const LINE: usize = 64;

const RIGHTS: c_int = libc::PROT_READ | libc::PROT_WRITE;
const KIND: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(n: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(at: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_free(at: *mut c_void);
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
}

/// Whether there is such a heap: all others look at this, and not at what is a thread's.
static IS_THERE: AtomicBool = AtomicBool::new(false);

/// Blocks that other threads have given back, each with the next one in it, and how many bytes.
static GIVEN: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static GIVEN_SIZE: AtomicUsize = AtomicUsize::new(0);

/// So many bytes are not put aside until the next call of MPI.
const GIVEN_MAX: usize = 64 << 20;

/// How far the room of small blocks is in use, perhaps in memory, and usable, and that of large
/// ones in use.
static USED: AtomicUsize = AtomicUsize::new(AT);
static IN_MEMORY: AtomicUsize = AtomicUsize::new(AT);
static USABLE: AtomicUsize = AtomicUsize::new(AT);
static LARGE_USED: AtomicUsize = AtomicUsize::new(LARGE_AT);

/// Where the room of large blocks ends: until there is one, no address is from here.
static END: AtomicUsize = AtomicUsize::new(AT);

static LARGE_FROM: AtomicUsize = AtomicUsize::new(LARGE[0]);

thread_local! {
    /// Whether this thread's blocks are from here.
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Pages of the room of small blocks.
struct Pages;

unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let from = USED.load(Ordering::Relaxed);
        let to = from.saturating_add(size);
        if AT + SMALL_ROOM < to {
            return (null_mut(), 0, 0);
        }
        let usable = USABLE.load(Ordering::Relaxed);
        if usable < to {
            let more = (to - usable).next_multiple_of(STEP).min(AT + SMALL_ROOM - usable);
            if map_at(usable, more, RIGHTS, KIND).is_none() {
                return (null_mut(), 0, 0);
            }
            USABLE.store(usable + more, Ordering::Relaxed);
        }
        USED.store(to, Ordering::Relaxed);
        IN_MEMORY.fetch_max(to, Ordering::Relaxed);
        (from as *mut u8, size, 0)
    }

    fn remap(&self, _at: *mut u8, _old: usize, _new: usize, _can_move: bool) -> *mut u8 {
        null_mut()
    }

    /// As much as two of the largest blocks stays in memory, as in the C library: a program may
    /// take and give back the same ones for ever.
    fn free_part(&self, at: *mut u8, old: usize, new: usize) -> bool {
        let rest = at as usize + new;
        let is_last = at as usize + old == USED.load(Ordering::Relaxed);
        if is_last {
            USED.store(rest, Ordering::Relaxed);
            let kept = rest + 2 * LARGE_FROM.load(Ordering::Relaxed);
            let kept = kept.next_multiple_of(PAGE);
            let in_memory = IN_MEMORY.fetch_min(kept, Ordering::Relaxed);
            if kept < in_memory {
                unsafe {
                    libc::madvise(kept as *mut c_void, in_memory - kept, libc::MADV_DONTNEED)
                };
            }
        }
        is_last
    }

    fn free(&self, at: *mut u8, size: usize) -> bool {
        self.free_part(at, size, 0)
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        false
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

/// Small blocks, which one thread alone touches.
struct Small(UnsafeCell<Dlmalloc<Pages>>);

// Only the thread whose IS_OWN is set comes here.
unsafe impl Sync for Small {}

static SMALL: Small = Small(UnsafeCell::new(Dlmalloc::new_with_allocator(Pages)));

#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    /// From the beginning of what was taken for the block.
    offset: usize,
    size: usize,
}

fn header(at: *mut c_void) -> *mut Header {
    (at as usize - size_of::<Header>()) as *mut Header
}

/// Whether a block is from here.
pub(crate) fn is_here(at: *mut c_void) -> bool {
    (AT..room_end()).contains(&(at as usize))
}

fn is_large(at: *mut c_void) -> bool {
    (LARGE_AT..room_end()).contains(&(at as usize))
}

fn room_end() -> usize {
    END.load(Ordering::Relaxed)
}

/// Where the first thing above `at` is mapped, as the kernel tells.
fn next_mapped(at: usize) -> Option<usize> {
    let text = std::fs::read("/proc/self/maps").ok()?;
    let begins = text.split(|it| *it == b'\n').filter_map(|line| {
        let first = line.split(|it| *it == b'-').next()?;
        usize::from_str_radix(str::from_utf8(first).ok()?, 16).ok()
    });
    begins.filter(|it| at <= *it).min()
}

/// From here on this thread's blocks are from here; false if something else is here already.
pub(crate) fn begin() -> bool {
    // With a stack's limit of many TB, or as old kernels did it, the kernel maps within this room:
    // upwards or downwards from what is there already.
    let next = next_mapped(AT).filter(|it| *it < END_MAX);
    let end = next.map_or(END_MAX, |it| (AT + (it - AT) / 2) & !(PAGE - 1));
    END.store(end.max(LARGE_AT), Ordering::Relaxed);
    let is_there = map_at(AT, STEP, RIGHTS, KIND).is_some();
    if is_there {
        USABLE.store(AT + STEP, Ordering::Relaxed);
        IS_OWN.set(true);
        IS_THERE.store(true, Ordering::Relaxed);
    } else {
        END.store(AT, Ordering::Relaxed);
    }
    is_there
}

fn is_there() -> bool {
    IS_THERE.load(Ordering::Relaxed)
}

/// Whether this thread asks for itself, and not for MPI.
fn is_program() -> bool {
    is_there() && IS_OWN.get() && !real::is_inside()
}

fn no_memory() -> *mut c_void {
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// A block; the C library's where there is no room here.
fn take_or_ask(size: usize, align: usize) -> *mut c_void {
    let at = take(size, align);
    if at.is_null() { unsafe { __libc_memalign(align, size) } } else { at }
}

/// A block, of zeros if it is a large one; null if there is no room.
fn take(size: usize, align: usize) -> *mut c_void {
    if room_end() - LARGE_AT < size || room_end() - LARGE_AT < align {
        return no_memory();
    }
    if GIVEN_MAX < GIVEN_SIZE.load(Ordering::Relaxed) {
        take_back();
    }
    if LARGE_FROM.load(Ordering::Relaxed) <= size.max(align) {
        return take_large(size, align.max(LINE));
    }
    let heap = unsafe { &mut *SMALL.0.get() };
    let more = if align <= GRAIN { GRAIN } else { GRAIN + align };
    let base = unsafe { heap.c_malloc(size + more) } as usize;
    if base == 0 {
        return no_memory();
    }
    let at = (base + GRAIN).next_multiple_of(align.max(GRAIN)) as *mut c_void;
    unsafe { header(at).write(Header { offset: at as usize - base, size }) };
    at
}

/// The length of a large block's mapping.
fn mapped(it: Header) -> usize {
    (it.offset + it.size).next_multiple_of(PAGE)
}

/// A mapping that lies there, where there is room.
fn map_at(at: usize, length: usize, rights: c_int, kind: c_int) -> Option<*mut c_void> {
    if room_end() - at < length {
        return None;
    }
    let fixed = kind | libc::MAP_FIXED_NOREPLACE;
    let got = unsafe { libc::mmap(at as *mut c_void, length, rights, fixed, -1, 0) };
    if got as usize == at {
        return Some(got);
    }
    if got != libc::MAP_FAILED {
        unsafe { libc::munmap(got, length) };
    }
    None
}

fn take_large(size: usize, align: usize) -> *mut c_void {
    let from = LARGE_USED.load(Ordering::Relaxed);
    let at = (from + GRAIN).next_multiple_of(align);
    let base = (at - GRAIN) & !(PAGE - 1);
    let made = Header { offset: at - base, size };
    if map_at(base, mapped(made), RIGHTS, KIND).is_none() {
        return no_memory();
    }
    LARGE_USED.store(base + mapped(made), Ordering::Relaxed);
    let at = at as *mut c_void;
    unsafe { header(at).write(made) };
    at
}

/// Gives a block back; who calls preserves `errno`.
fn give(at: *mut c_void) {
    let Header { offset, size } = unsafe { header(at).read() };
    let base = (at as usize - offset) as *mut c_void;
    if is_large(at) {
        let length = mapped(Header { offset, size });
        unsafe { libc::munmap(base, length) };
        if !IS_OWN.get() {
            return;
        }
        if length <= LARGE[1] {
            LARGE_FROM.fetch_max(size + 1, Ordering::Relaxed);
        }
        if base as usize + length == LARGE_USED.load(Ordering::Relaxed) {
            LARGE_USED.store(base as usize, Ordering::Relaxed);
        }
    } else if IS_OWN.get() {
        unsafe { (*SMALL.0.get()).c_free(base.cast()) };
    } else {
        let at = at.cast::<u8>();
        GIVEN_SIZE.fetch_add(size, Ordering::Relaxed);
        let mut first = GIVEN.load(Ordering::Relaxed);
        loop {
            unsafe { at.cast::<*mut u8>().write_unaligned(first) };
            let put = GIVEN.compare_exchange_weak(first, at, Ordering::Release, Ordering::Relaxed);
            match put {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
    }
}

/// Takes what other threads have given back.  A program's threads wait for each other before it
/// calls MPI, or most do: what they have given back by then is the same in all replicas, in
/// whichever order.
pub(crate) fn take_back() {
    if GIVEN.load(Ordering::Relaxed).is_null() || !IS_OWN.get() {
        return;
    }
    GIVEN_SIZE.store(0, Ordering::Relaxed);
    let mut at = GIVEN.swap(null_mut(), Ordering::Acquire);
    let mut all = Vec::new();
    while !at.is_null() {
        all.push(at);
        at = unsafe { at.cast::<*mut u8>().read_unaligned() };
    }
    all.sort_unstable();
    all.iter().for_each(|it| give(it.cast()));
}

/// Keeps `errno` as it is.
fn quietly<R>(what: impl FnOnce() -> R) -> R {
    let errno = unsafe { *libc::__errno_location() };
    let answer = what();
    unsafe { *libc::__errno_location() = errno };
    answer
}

/// A block of another size with what is in it.
fn moved(at: *mut c_void, old: usize, size: usize) -> *mut c_void {
    let new = unsafe { malloc(size) };
    if !new.is_null() {
        unsafe {
            std::ptr::copy_nonoverlapping(at.cast::<u8>(), new.cast::<u8>(), old.min(size));
            free(at);
        }
    }
    new
}

fn resize(at: *mut c_void, size: usize) -> *mut c_void {
    let it = unsafe { header(at).read() };
    let wanted = Header { size, ..it };
    if room_end() - LARGE_AT < size {
        return no_memory();
    }
    let stays_large = LARGE_FROM.load(Ordering::Relaxed) <= size;
    let resized = match (IS_OWN.get(), is_large(at), stays_large) {
        (true, true, true) => resize_large(at, it, wanted),
        (true, false, false) if it.offset == GRAIN => {
            let base = (at as usize - GRAIN) as *mut u8;
            let base = unsafe { (*SMALL.0.get()).c_realloc(base, size + GRAIN) } as usize;
            if base == 0 {
                return no_memory();
            }
            Some((base + GRAIN) as *mut c_void)
        }
        _ => None,
    };
    let Some(at) = resized else { return moved(at, it.size, size) };
    unsafe { header(at).write(wanted) };
    at
}

/// A large block of another size, whose pages are mapped elsewhere where it has to move; `None` if
/// the kernel does not do it, as where the program changed the rights of a part.
fn resize_large(at: *mut c_void, it: Header, wanted: Header) -> Option<*mut c_void> {
    let (base, old, new) = (at as usize - it.offset, mapped(it), mapped(wanted));
    let end = LARGE_USED.load(Ordering::Relaxed);
    let is_last = base + old == end;
    if new <= old || is_last && new <= room_end() - base {
        let got = unsafe { libc::mremap(base as *mut c_void, old, new, 0) };
        if got as usize != base {
            return None;
        }
        if is_last {
            LARGE_USED.store(base + new, Ordering::Relaxed);
        }
        return Some(at);
    }
    let place = map_at(end, new, libc::PROT_NONE, KIND)?;
    let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    if unsafe { libc::mremap(base as *mut c_void, old, new, how, place) } != place {
        unsafe { libc::munmap(place, new) };
        return None;
    }
    LARGE_USED.store(end + new, Ordering::Relaxed);
    Some((end + it.offset) as *mut c_void)
}

/// Zeros for the program, also from a call of MPI that gives it memory.
pub(crate) fn zeros(size: usize, align: usize) -> *mut c_void {
    if !IS_OWN.get() {
        return unsafe { __libc_calloc(size, 1) };
    }
    let at = take_or_ask(size, align);
    if !at.is_null() && !is_large(at) {
        unsafe { at.cast::<u8>().write_bytes(0, size) };
    }
    at
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: size_t) -> *mut c_void {
    if is_program() {
        return take_or_ask(size, GRAIN);
    }
    let object = if is_there() { objects::take(size) } else { null_mut() };
    if object.is_null() { unsafe { __libc_malloc(size) } } else { object }
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(n: size_t, size: size_t) -> *mut c_void {
    if !is_program() {
        return unsafe { __libc_calloc(n, size) };
    }
    let Some(whole) = n.checked_mul(size) else { return no_memory() };
    zeros(whole, GRAIN)
}

/// Lets go of what [`zeros`] gave, also where the program has a `free` of its own.
pub(crate) unsafe fn release(at: *mut c_void) {
    if is_here(at) {
        quietly(|| give(at));
    } else if objects::size_of(at).is_some() {
        objects::give(at);
    } else {
        unsafe { __libc_free(at) };
    }
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(at: *mut c_void) {
    unsafe { release(at) };
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(at: *mut c_void, size: size_t) -> *mut c_void {
    if at.is_null() {
        return unsafe { malloc(size) };
    }
    if let Some(old) = objects::size_of(at) {
        return moved(at, old, size);
    }
    if !is_here(at) {
        if !is_program() || size == 0 {
            return unsafe { __libc_realloc(at, size) };
        }
        // How long it was is known to its own allocator alone.
        let longer = unsafe { __libc_realloc(at, size) };
        let new = if longer.is_null() { longer } else { moved(longer, size, size) };
        return if new.is_null() { longer } else { new };
    }
    if size == 0 {
        unsafe { free(at) };
        return null_mut();
    }
    resize(at, size)
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(at: *mut c_void, n: size_t, size: size_t) -> *mut c_void {
    match n.checked_mul(size) {
        Some(whole) => unsafe { realloc(at, whole) },
        None => no_memory(),
    }
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: size_t, size: size_t) -> *mut c_void {
    if is_program() && align.is_power_of_two() {
        take_or_ask(size, align.max(GRAIN))
    } else {
        unsafe { __libc_memalign(align, size) }
    }
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: size_t, size: size_t) -> *mut c_void {
    unsafe { memalign(align, size) }
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    to: *mut *mut c_void,
    align: size_t,
    size: size_t,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let at = quietly(|| unsafe { memalign(align, size) });
    if at.is_null() {
        return libc::ENOMEM;
    }
    unsafe { *to = at };
    0
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: size_t) -> *mut c_void {
    unsafe { memalign(PAGE, size) }
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: size_t) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        Some(whole) => unsafe { memalign(PAGE, whole) },
        None => no_memory(),
    }
}

/// A function that is looked up once.
fn own(known: &AtomicUsize, look_up: impl FnOnce() -> usize) -> usize {
    let mut at = known.load(Ordering::Relaxed);
    if at == 0 {
        at = look_up();
        known.store(at, Ordering::Relaxed);
    }
    at
}

/// What the library has that other blocks are from: a program that is linked with an allocator may
/// have some functions of its and the others of the C library's.
fn beside_allocator(name: &CStr) -> usize {
    let allocator: unsafe extern "C" fn(size_t) -> *mut c_void = __libc_malloc;
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    unsafe {
        libc::dladdr(allocator as *const c_void, &raw mut info);
        let library = libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        libc::dlsym(library, name.as_ptr()) as usize
    }
}

/// See malloc_usable_size(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(at: *mut c_void) -> size_t {
    static OWN: AtomicUsize = AtomicUsize::new(0);
    if is_here(at) {
        return unsafe { header(at).read() }.size;
    }
    if let Some(size) = objects::size_of(at) {
        return size;
    }
    let own = own(&OWN, || beside_allocator(c"malloc_usable_size"));
    let own: unsafe extern "C" fn(*mut c_void) -> size_t = unsafe { std::mem::transmute(own) };
    unsafe { own(at) }
}

/// See free_sized(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(at: *mut c_void, _size: size_t) {
    unsafe { free(at) };
}

/// See free_sized(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(at: *mut c_void, _align: size_t, _size: size_t) {
    unsafe { free(at) };
}

type Mmap =
    unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, libc::off_t) -> *mut c_void;

/// What is known as mmap(2).
macro_rules! mapping {
    ($($name:ident)*) => {$(
        /// See mmap(2) and `map` below.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void,
            length: size_t,
            rights: c_int,
            kind: c_int,
            file: c_int,
            from: libc::off_t,
        ) -> *mut c_void {
            unsafe { map(at, length, rights, kind, file, from) }
        }
    )*};
}

mapping! { mmap mmap64 }

/// What a program maps without a file and without saying where lies behind its large blocks.
/// Interpreters and collectors of garbage have heaps of their own there.
#[inline(never)]
unsafe extern "C" fn map(
    at: *mut c_void,
    length: size_t,
    rights: c_int,
    kind: c_int,
    file: c_int,
    from: libc::off_t,
) -> *mut c_void {
    static OWN: AtomicUsize = AtomicUsize::new(0);
    let own = own(&OWN, || next(c"mmap"));
    let own: Mmap = unsafe { std::mem::transmute(own) };
    let wanted = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let is_plain = kind & !libc::MAP_NORESERVE == wanted && at.is_null();
    let is_ours = is_plain && is_program() && !origin::is_driver();
    if is_ours && let Some(room) = length.checked_next_multiple_of(PAGE).filter(|it| 0 < *it) {
        let at = LARGE_USED.load(Ordering::Relaxed);
        if let Some(got) = map_at(at, room, rights, kind) {
            LARGE_USED.store(at + room, Ordering::Relaxed);
            return got;
        }
    }
    if 0 <= file && kind & libc::MAP_ANONYMOUS == 0 {
        // What the program wrote to it is to be seen there.
        quietly(|| stack::on_own(files::let_out_waiting));
    }
    unsafe { own(at, length, rights, kind, file, from) }
}

/// UCX, which MPIs use for networks, writes a jump over the beginning of the process's `mmap`,
/// which is ours, to hear of memory; it maps by a call of the system then.  What it has to hear of
/// is memory that goes away, in functions that are not ours: the jump leads here again.
pub(crate) fn mend_mmap() {
    /// `jmp` to a place so far from behind it, which is how UCX begins a function that is near.
    const JUMP: u8 = 0xe9;
    /// `mov r11, …`, before it jumps to one that is far.
    const FAR: [u8; 2] = [0x49, 0xbb];
    const LENGTH: usize = 5;
    let entry = mmap as Mmap as usize;
    let away = (map as Mmap as usize).wrapping_sub(entry + LENGTH) as i32;
    let mut wanted = [JUMP; LENGTH];
    wanted[1..].copy_from_slice(&away.to_le_bytes());
    let found = unsafe { *(entry as *const [u8; LENGTH]) };
    let is_written = found != wanted && (found[0] == JUMP || found[..2] == FAR);
    if !cfg!(target_arch = "x86_64") || !is_written {
        return;
    }
    let first = entry / PAGE * PAGE;
    let length = entry + LENGTH - first;
    let (may, all) = (libc::PROT_READ | libc::PROT_EXEC, libc::PROT_WRITE);
    unsafe {
        if libc::mprotect(first as *mut c_void, length, may | all) == 0 {
            *(entry as *mut [u8; LENGTH]) = wanted;
            libc::mprotect(first as *mut c_void, length, may);
        }
    }
}
