//! This library's stack.
//!
//! Programs send memory that they have not written, as a part of a row on their stack: what lies
//! there is what calls have left that were over before.  Of the program's own calls that is the
//! same in all replicas; of MPI's and this library's it is not.  So the thread that calls MPI does
//! what needs the state on another stack, and what the program gave to be called within that on its
//! own again.
//!
//! Functions of operations, which MPI calls itself, run where MPI does.
//!
//! Compilers put a random word beside rows on the stack, to see whether somebody writes beyond
//! them: it is alike in all replicas.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge_stmr::digest::Digest;

use crate::memory::PAGE;
use crate::prints;
use crate::real;
use crate::told::{Told, native_pid, told};

/// As much as a program's first thread has, by default twice.  What is not used costs nothing.
const SIZE: usize = 16 << 20;

/// What may lie beyond where a stack is left, in bytes: what the compiler keeps there without
/// saying so.
const BEYOND: usize = 512;

thread_local! {
    /// Up to where each stack is free, if the other one is in use.
    static FREE: Cell<Free> = const { Cell::new(Free::NONE) };
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone, Copy)]
struct Free {
    program: usize,
    own: usize,
    entry: Entry,
}

impl Free {
    const NONE: Self = Self { program: 0, own: 0, entry: Entry { stack: 0, by: 0 } };
}

/// How the program has come to this library's stack: what calls lie between is known by both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where its own ended then.
    stack: usize,
    /// What it does there, by a word of its own for each of this library's functions.
    by: usize,
}

impl Entry {
    /// Where the program's stack ended.
    pub(crate) fn stack(self) -> usize {
        self.stack
    }
}

/// The lowest address of this library's stack, above the page that nobody may touch.
fn bottom() -> usize {
    static BOTTOM: OnceLock<usize> = OnceLock::new();
    *BOTTOM.get_or_init(|| {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let at = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, rights, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            real::fail("there is no room for the stack of this library");
        }
        unsafe { libc::mprotect(at, PAGE, libc::PROT_NONE) };
        at as usize + PAGE
    })
}

/// Where the stack that is in use has been left, in whole lines of 64 bytes.
#[inline(always)]
fn left_at() -> usize {
    (psm::stack_pointer() as usize - BEYOND) & !63
}

/// The number of this thread.  The kernel is asked without a call, which could leave it on the
/// program's stack.
#[inline(always)]
pub(crate) fn thread_id() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut number = libc::SYS_gettid;
        unsafe {
            std::arch::asm!("syscall", inout("rax") number, out("rcx") _, out("r11") _,
                options(nostack, preserves_flags));
        }
        number as u32
    }
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        libc::gettid() as u32
    }
}

/// Does it on this library's stack, if this is the thread whose stack the program sends from.
pub(crate) fn on_own<R>(what: impl FnOnce() -> R) -> R {
    // The kernel is not asked which thread this is: no other has that stack.
    if IS_OWN.get() || !is_first() || told().is_none() {
        return apart(what);
    }
    let bottom = bottom();
    let before = FREE.get();
    let own = if before.own == 0 { bottom + SIZE - PAGE } else { before.own };
    let by = std::any::type_name_of_val(&what).as_ptr() as usize;
    let entry = Entry { stack: psm::stack_pointer() as usize, by };
    FREE.set(Free { program: left_at(), own, entry });
    IS_OWN.set(true);
    let answer = unsafe { psm::on_stack(bottom as *mut u8, own - bottom, what) };
    IS_OWN.set(false);
    FREE.set(before);
    clear_registers();
    answer
}

/// The same for what does not come back, also from the stack of a signal's handler, which may be
/// too small.
pub(crate) fn on_own_for_good(what: impl FnOnce()) {
    let is_first_thread = thread_id() as usize == native_pid();
    if IS_OWN.get() || !is_first_thread || told().is_none() {
        return apart(what);
    }
    let bottom = bottom();
    let before = FREE.get().own;
    let own = if before == 0 { bottom + SIZE - PAGE } else { before };
    IS_OWN.set(true);
    unsafe { psm::on_stack(bottom as *mut u8, own - bottom, what) };
    unreachable!("a process that has ended goes on")
}

/// How this thread has come to this library's stack, if it is there.
pub(crate) fn entry() -> Option<Entry> {
    IS_OWN.get().then(|| FREE.get().entry)
}

/// Whether this library's stack is in use, by this thread.
pub(crate) fn is_on_own() -> bool {
    IS_OWN.get()
}

/// Does it, and has no part of it done in the frame of who calls: that is on the program's stack
/// even where the work is not.
#[inline(never)]
fn apart<R>(what: impl FnOnce() -> R) -> R {
    what()
}

/// Zeros the registers that a call may change: who finds what a function of another library is
/// puts them on the stack at its first call, and compilers put some there to move it.
#[inline(always)]
fn clear_registers() {
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::asm;
        if std::arch::is_x86_feature_detected!("avx512f") {
            asm!(
                "vpxord zmm16, zmm16, zmm16",
                "vpxord zmm17, zmm17, zmm17",
                "vpxord zmm18, zmm18, zmm18",
                "vpxord zmm19, zmm19, zmm19",
                "vpxord zmm20, zmm20, zmm20",
                "vpxord zmm21, zmm21, zmm21",
                "vpxord zmm22, zmm22, zmm22",
                "vpxord zmm23, zmm23, zmm23",
                "vpxord zmm24, zmm24, zmm24",
                "vpxord zmm25, zmm25, zmm25",
                "vpxord zmm26, zmm26, zmm26",
                "vpxord zmm27, zmm27, zmm27",
                "vpxord zmm28, zmm28, zmm28",
                "vpxord zmm29, zmm29, zmm29",
                "vpxord zmm30, zmm30, zmm30",
                "vpxord zmm31, zmm31, zmm31",
                out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _, out("xmm20") _,
                out("xmm21") _, out("xmm22") _, out("xmm23") _, out("xmm24") _, out("xmm25") _,
                out("xmm26") _, out("xmm27") _, out("xmm28") _, out("xmm29") _, out("xmm30") _,
                out("xmm31") _, options(nomem, nostack, preserves_flags)
            );
        }
        if std::arch::is_x86_feature_detected!("avx512bw") {
            asm!(
                "kxorq k0, k0, k0",
                "kxorq k1, k1, k1",
                "kxorq k2, k2, k2",
                "kxorq k3, k3, k3",
                "kxorq k4, k4, k4",
                "kxorq k5, k5, k5",
                "kxorq k6, k6, k6",
                "kxorq k7, k7, k7",
                out("k0") _, out("k1") _, out("k2") _, out("k3") _, out("k4") _, out("k5") _,
                out("k6") _, out("k7") _, options(nomem, nostack, preserves_flags)
            );
        }
        if std::arch::is_x86_feature_detected!("avx") {
            asm!(
                "vzeroall",
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
                out("xmm15") _, options(nomem, nostack, preserves_flags)
            );
        }
        asm!(
            "xor ecx, ecx", "xor edx, edx", "xor esi, esi", "xor edi, edi", "xor r8d, r8d",
            "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d",
            out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _, out("r8") _, out("r9") _,
            out("r10") _, out("r11") _, options(nomem, nostack)
        );
    }
}

/// Zeros what a call of MPI leaves on the program's stack: its arguments, and what lies below them
/// up to where this library's stack was taken, which registers of the program were put on.  Handles
/// are not alike in all replicas, and stay there even where the program has them in registers.
#[inline(always)]
pub(crate) fn forget_call<const N: usize>(args: &mut [usize; N]) {
    *args = [0; N];
    #[cfg(target_arch = "x86_64")]
    unsafe {
        // Some 200 bytes are in use.
        std::arch::asm!(
            "pxor xmm0, xmm0",
            "movups [rsp - 16], xmm0",
            "movups [rsp - 32], xmm0",
            "movups [rsp - 48], xmm0",
            "movups [rsp - 64], xmm0",
            "movups [rsp - 80], xmm0",
            "movups [rsp - 96], xmm0",
            "movups [rsp - 112], xmm0",
            "movups [rsp - 128], xmm0",
            "movups [rsp - 144], xmm0",
            "movups [rsp - 160], xmm0",
            "movups [rsp - 176], xmm0",
            "movups [rsp - 192], xmm0",
            "movups [rsp - 208], xmm0",
            "movups [rsp - 224], xmm0",
            "movups [rsp - 240], xmm0",
            "movups [rsp - 256], xmm0",
            // What is named here has to be written above.
            in("rcx") args.as_ptr(), lateout("xmm0") _, options(preserves_flags)
        );
    }
}

/// The same where a function is called for the first time: the loader has looked for it then, and
/// put the registers with its arguments deep on the stack.
#[inline(always)]
pub(crate) fn forget_loader() {
    #[cfg(target_arch = "x86_64")]
    if is_first() {
        /// More than a loader takes to find a function, with all that there is of registers.
        const FOUND_MAX: usize = 4096;
        let at = psm::stack_pointer() as usize;
        unsafe {
            std::arch::asm!("rep stosb", inout("rdi") at - FOUND_MAX => _,
                inout("rcx") FOUND_MAX => _, in("al") 0_u8, options(nostack));
        }
    }
}

/// Whether this is the stack that the kernel gave the program.  What runs on that of a signal's
/// handler stays there: the next signal begins at its top again when it is not in use.
#[inline(always)]
fn is_first() -> bool {
    is_programs(psm::stack_pointer() as usize)
}

/// Whether that is a place on the stack that the kernel gave the program.
#[inline(always)]
pub(crate) fn is_programs(at: usize) -> bool {
    TOP.load(Ordering::Relaxed).wrapping_sub(at) < NEAR
}

/// The kernel keeps more than so many bytes free below the top of a program's stack.
const NEAR: usize = 100 << 20;

/// Does something of the program's on its stack.
pub(crate) fn on_programs<R>(what: impl FnOnce() -> R) -> R {
    if !IS_OWN.get() {
        return what();
    }
    let before = FREE.get();
    FREE.set(Free { own: left_at(), ..before });
    IS_OWN.set(false);
    // How far down the program's goes the kernel says; only its top is asked for.
    let answer = unsafe { psm::on_stack((before.program - PAGE) as *mut u8, PAGE, what) };
    IS_OWN.set(true);
    FREE.set(before);
    answer
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    static stdin: *mut libc::FILE;
    static stdout: *mut libc::FILE;
    fn __fbufsize(stream: *mut libc::FILE) -> libc::size_t;
    fn __flbf(stream: *mut libc::FILE) -> libc::c_int;
}

/// Begins the program.  Nobody has put the word anywhere yet who will look at it again.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: usize,
    n_args: i32,
    args: usize,
    init: usize,
    end: usize,
    end_of_loader: usize,
    top: usize,
) -> i32 {
    type Begin = unsafe extern "C" fn(usize, i32, usize, usize, usize, usize, usize) -> i32;
    let real = prepare();
    TOP.store(top, Ordering::Relaxed);
    forget_below();
    clear_registers();
    unsafe {
        let begin = std::mem::transmute::<usize, Begin>(real);
        begin(main, n_args, args, init, end, end_of_loader, top)
    }
}

/// The kernel's 16 random bytes, from which the C library has drawn what it needs by now, are alike
/// in all replicas.
#[cfg(target_arch = "x86_64")]
fn share_dice(told: &Told) {
    let at = unsafe { libc::getauxval(libc::AT_RANDOM) } as *mut [u8; 16];
    if !at.is_null() {
        let row = [told.dice, told.rank as u64, KERNELS].map(u64::to_le_bytes).concat();
        unsafe { *at = Digest::of(&row).0.to_le_bytes() };
    }
}

/// Draws the word; returns the C library's function.  What it has in registers would stay there
/// until the program puts it on its stack, were it a part of who calls it.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn prepare() -> usize {
    if let Some(told) = told() {
        let row = [told.dice, told.rank as u64, WORD].map(u64::to_le_bytes).concat();
        // The lowest byte ends a text, so that no text has the word in it.
        let word = Digest::of(&row).0 as u64 & !0xff;
        unsafe { std::arch::asm!("mov qword ptr fs:[0x28], {}", in(reg) word, options(nostack)) };
        share_dice(told);
        prints::find_terminal();
        // At the first byte that comes or goes, the C library asks what kind of file that is, and
        // leaves the answer on the stack: here it asks now.
        // Somebody may have said before how it is written.
        for stream in unsafe { [stdin, stdout] } {
            if unsafe { __fbufsize(stream) == 0 && __flbf(stream) == 0 } {
                unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOFBF, 0) };
                if told.has_terminal && stream == unsafe { stdout } {
                    // It keeps the room that it was given above.
                    unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOLBF, 0) };
                }
            }
        }
        // As a program finds it (C17 §7.5).
        unsafe { *libc::__errno_location() = 0 };
    }
    unsafe { libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr()) as usize }
}

/// Where the stack begins that the kernel gave the program; nowhere if that is not known.
static TOP: AtomicUsize = AtomicUsize::new(0);

/// What lies below on the program's first stack is zeros, if that is the one in use: whoever loads
/// a program leaves most there, and MPI_Init.  No function is called for it, which would leave
/// something itself.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn forget_below() {
    let at = psm::stack_pointer() as usize;
    let last = at / PAGE * PAGE;
    // Below others' there may be anything.
    if !is_first() {
        return;
    }
    unsafe {
        // Pages that are not there are passed over; the kernel keeps 128 MiB free below.
        std::arch::asm!("syscall", inout("rax") libc::SYS_madvise => _,
            in("rdi") last - LOADED_MAX, in("rsi") LOADED_MAX, in("rdx") libc::MADV_DONTNEED,
            out("rcx") _, out("r11") _, options(nostack));
        std::arch::asm!("rep stosb", inout("rdi") last => _, inout("rcx") at - last => _,
            in("al") 0_u8, options(nostack));
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn forget_below() {}

/// More of a stack than a loader takes, in whole pages.
#[cfg(target_arch = "x86_64")]
const LOADED_MAX: usize = 4 << 20;

/// Tells the word from what else is drawn of the launcher's dice.
#[cfg(target_arch = "x86_64")]
const WORD: u64 = u64::from_le_bytes(*b"stack   ");
#[cfg(target_arch = "x86_64")]
const KERNELS: u64 = u64::from_le_bytes(*b"kernel's");
