//! The processor's cycle counter, which no library can stand before: the kernel is asked to stop a
//! program that reads it, and the meta's count is put where the program wants it.
//!
//! Where that is not permitted, or the processor is another, the counter is each replica's own.
//! Other threads, MPI and the kernel's own code for clocks read the true one: the trap goes off
//! when MPI falls into it, is off while the program's thread is in an MPI that often does, and is
//! off for good if the program has made many calls and read no counter.  A program in whose code
//! there is no such instruction has none ([`may_read`]), until it loads a library that has one: the
//! trap is on while one is loaded, for what that does by itself, and up to the program's next call
//! of this library, which looks whether it stays on (see `loads`).
//! Programs and threads that the program's thread starts would inherit it.  A program's loader
//! reads the counter, and a thread that hears of no signal would be ended by the kernel: so it is
//! off while one is started.  The program's thread hears of the trap whatever signals it blocks.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

use crate::clock;
use crate::loads;
use crate::origin::{Loaded, Object};
use crate::real::{self, next};
use crate::stack;
use crate::state;
use crate::steady::Shown;

/// What the counter is as a question (see `clock`).
#[cfg(target_arch = "x86_64")]
const COUNTER: u64 = 150;

/// What the program has seen of the counter.
static SHOWN: Shown<1> = Shown::none();

/// Whether the trap is wanted in the program's thread.
static WANTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this is the program's thread, and the trap is wanted in it.
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// A program that has not read the counter before so many calls of MPI is taken for one that never
/// does.
const CALLS_MAX: u32 = 2_000;

/// The program has read the counter.
static READ: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Calls of MPI by this thread.
    static CALLS: Cell<u32> = const { Cell::new(0) };
    /// How often it has entered MPI or this library.
    static ENTRIES: Cell<u32> = const { Cell::new(0) };
    /// The trap is off for what this thread is in.
    static OFF: Cell<bool> = const { Cell::new(false) };
    /// How often this thread's MPI has fallen into it.
    static FALLS: Cell<u32> = const { Cell::new(0) };
}

/// An MPI that falls into the trap in more than one of so many entries is spared it from then on:
/// to fall takes as long as to turn it off before each.
const ENTRIES_PER_FALL: u32 = 2;

thread_local! {
    /// Whether the trap was wanted before the program began to load what nobody has looked at yet.
    static LOADS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// What the program wants done at a bad access to memory, as it said it.
static PROGRAMS: Mutex<Option<libc::sigaction>> = Mutex::new(None);

fn set(traps: bool) -> bool {
    let how = if traps { libc::PR_TSC_SIGSEGV } else { libc::PR_TSC_ENABLE };
    unsafe { libc::prctl(libc::PR_SET_TSC, how, 0, 0, 0) == 0 }
}

/// Turns the trap on for the program's thread, where that can be done.
pub(crate) fn begin() {
    if !cfg!(target_arch = "x86_64")
        || std::env::var_os("SELVEDGE_CYCLES").is_some_and(|it| it == "own")
    {
        return;
    }
    // It is on once the call is over that is made.
    let can = set(true) && set(false);
    OWN.set(can);
    OFF.set(true);
    if can && may_read(&|_| true) {
        want();
    }
}

/// The trap is wanted from here on; it goes on where this library is left.
fn want() {
    if WANTED.load(Ordering::Relaxed) || !hear_of_it() {
        return;
    }
    extern "C" fn before_fork() {
        crate::files::let_out_waiting();
    }
    extern "C" fn in_child() {
        set(false);
        WANTED.store(false, Ordering::Relaxed);
        OWN.set(false);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), None, Some(in_child));
    });
    unsafe {
        let mut trap: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut trap, libc::SIGSEGV);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const trap, std::ptr::null_mut());
    }
    CALLS.set(0);
    WANTED.store(true, Ordering::Relaxed);
}

/// The trap is wanted no longer, and is off; the program has its bad accesses to itself.
fn want_no_more() {
    set(false);
    OFF.set(true);
    WANTED.store(false, Ordering::Relaxed);
    let programs = *PROGRAMS.lock().unwrap_or_else(|it| it.into_inner());
    native_action(libc::SIGSEGV, programs.as_ref(), None);
}

/// Takes the program's bad accesses, and keeps what the program wants done at them.
fn hear_of_it() -> bool {
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    if !native_action(libc::SIGSEGV, Some(&ours), Some(&mut before)) {
        return false;
    }
    if before.sa_sigaction != ours.sa_sigaction {
        *PROGRAMS.lock().unwrap_or_else(|it| it.into_inner()) = Some(before);
    }
    true
}

/// The program begins to load a library, whose beginning may read the counter.  This thread is in
/// this library: the trap is on when that is left.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no counter traps there"))]
pub(crate) fn expect() {
    // A child that it has made is no replica.
    if OWN.get() && !READ.load(Ordering::Relaxed) && state::is_ordered() {
        let was_wanted = WANTED.load(Ordering::Relaxed);
        loads::see();
        want();
        if WANTED.load(Ordering::Relaxed) {
            LOADS.set(Some(was_wanted));
        }
    }
}

/// Whether the program has loaded something that nobody has looked at yet.
pub(crate) fn is_expecting() -> bool {
    LOADS.get().is_some()
}

/// Looks whether what the program has loaded reads the counter.  This thread is in this library.
fn look() {
    let Some(was_wanted) = LOADS.take() else { return };
    let loaded = loads::since();
    let is_new = |it: &Object| it.code.iter().any(|it| loaded.contains(&it.start));
    if !loaded.is_empty() && may_read(&is_new) {
        CALLS.set(0);
    } else if !was_wanted && !READ.load(Ordering::Relaxed) {
        want_no_more();
    }
}

/// The program makes a call of MPI.  Other entries, as for clocks, say nothing of how far it is:
/// Python makes thousands of those while it imports what will read the counter.
pub(crate) fn count_call() {
    if WANTED.load(Ordering::Relaxed) && OWN.with(Cell::get) {
        CALLS.set(CALLS.get().saturating_add(1));
        let is_late = CALLS_MAX <= CALLS.get() && !is_expecting();
        if is_late && !READ.load(Ordering::Relaxed) {
            // To turn it off and on takes microseconds, some more in a virtual machine.
            want_no_more();
        }
    }
}

/// This thread enters MPI or this library, or leaves it.
pub(crate) fn cross(enters: bool) {
    if WANTED.load(Ordering::Relaxed) && OWN.with(Cell::get) {
        if enters && is_expecting() {
            look();
            if !WANTED.load(Ordering::Relaxed) {
                return;
            }
        }
        let entries = ENTRIES.get().wrapping_add(u32::from(enters));
        ENTRIES.set(entries);
        if enters && ENTRIES_PER_FALL * FALLS.get() <= entries {
            // It goes off when it is fallen into.
            return;
        }
        if OFF.replace(enters) != enters {
            set(!enters);
        }
    }
}

/// Whether this thread falls into the trap if it reads the counter.
pub(crate) fn is_on() -> bool {
    WANTED.load(Ordering::Relaxed) && OWN.with(Cell::get) && !OFF.get()
}

/// Whether the code of the program and its libraries, as far as they are loaded and asked for,
/// holds an instruction that reads the counter.
///
/// What MPI and the C library read of it is their own.  Where there is much code, bytes that look
/// like the instruction are not enough: what it gives is put together behind it.
fn may_read(asked: &dyn Fn(&Object) -> bool) -> bool {
    const SYSTEM: [&[u8]; 3] = [b"ld-", b"libc.so", b"linux-vdso"];
    let is_system = |file: &[u8]| SYSTEM.iter().any(|it| file.starts_with(it));
    let is_asked = |it: &Object| !is_system(&it.file) && !it.is_driver() && asked(it);
    let programs = Loaded::look().programs.into_iter().filter(is_asked);
    let is_own = |it: &Range<usize>| it.contains(&(reads_in as *const u8 as usize));
    let mut code = programs.flat_map(|it| it.code).filter(|it| !is_own(it));
    code.any(|it| reads_in(unsafe { std::slice::from_raw_parts(it.start as *const u8, it.len()) }))
}

/// Whether this code reads the counter.
fn reads_in(code: &[u8]) -> bool {
    /// In so many bytes nothing looks like the instruction by chance.
    const FEW: usize = 1 << 16;
    /// The two halves of the counter are put together within so many bytes.
    const NEAR: usize = 32;
    const BLOCK: usize = 64;
    let is_shift = |it: &[u8]| {
        matches!(it[0], 0x48 | 0x49)
            && it[1] == 0xc1
            && (0xe0..=0xe7).contains(&it[2])
            && it[3] == 32
    };
    let reads_at = |at: usize| {
        let behind = match code[at..] {
            [0x0f, 0x31, ..] => at + 2,
            [0x0f, 0x01, 0xf9, ..] => at + 3,
            _ => return false,
        };
        let near = &code[behind..code.len().min(behind + NEAR)];
        code.len() < FEW || near.windows(4).any(is_shift)
    };
    let mut at = 0;
    while at < code.len() {
        let end = code.len().min(at + BLOCK + 1);
        // All of a block at once: it seldom holds such a pair.
        let pairs = |it: &[u8; BLOCK + 1]| {
            (0..BLOCK).fold(false, |any, idx| {
                any | ((it[idx] == 0x0f) & ((it[idx + 1] == 0x31) | (it[idx + 1] == 0x01)))
            })
        };
        let may = code[at..end].first_chunk().is_none_or(pairs);
        if may && (at..end.min(at + BLOCK)).any(reads_at) {
            return true;
        }
        at += BLOCK;
    }
    false
}

/// Whether code of the kernel's stands there, which reads the counter for clocks.
fn is_kernels(at: usize) -> bool {
    const LENGTH: usize = 1 << 14;
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    start != 0 && (start..start + LENGTH).contains(&at)
}

/// The C library's own sigaction.
pub(crate) fn native_action(
    signal: c_int,
    new: Option<&libc::sigaction>,
    old: Option<&mut libc::sigaction>,
) -> bool {
    type Function =
        unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"sigaction".as_ptr()) } as usize;
    let real = unsafe { std::mem::transmute::<usize, Function>(real) };
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    let old = old.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    unsafe { real(signal, new, old) == 0 }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    const GENERAL: c_int = 0x80;
    let machine = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = machine[libc::REG_RIP as usize] as *const u8;
    // A trap of the counter comes as a fault of the kernel's, without an address.
    let length = match unsafe { (*info).si_code } {
        GENERAL => unsafe { length_at(at) },
        _ => 0,
    };
    if length == 0 {
        return pass_on(signal, info, context);
    }
    let is_others = is_kernels(at as usize) || crate::origin::is_of_driver(at as usize);
    if real::is_mpi_asking() || !state::is_ordered() {
        // The instruction is made again, and reads the true counter.
        set(false);
        OFF.set(true);
        FALLS.set(FALLS.get() + 1);
        return;
    }
    let error = crate::files::last_error();
    set(false);
    let own = unsafe { std::arch::x86_64::_rdtsc() };
    set(true);
    let count = if is_others { own } else { shown(at as usize, own) };
    machine[libc::REG_RAX as usize] = i64::from(count as u32);
    machine[libc::REG_RDX as usize] = (count >> 32) as i64;
    if length == 3 {
        // Which processor it was: one for all.
        machine[libc::REG_RCX as usize] = 0;
    }
    machine[libc::REG_RIP as usize] += length;
    crate::files::failed(error);
}

/// What the program sees of the counter at an instruction, where this processor's own shows `own`.
#[cfg(target_arch = "x86_64")]
fn shown(at: usize, own: u64) -> u64 {
    READ.store(true, Ordering::Relaxed);
    // The trap is off while the meta's count is asked for.
    let seen = clock::seen_at(at, COUNTER, || unsafe { std::arch::x86_64::_rdtsc() });
    SHOWN.show(seen.map(|it| [it as i64]), || [own as i64])[0] as u64
}

/// How long the instruction is there that reads the counter; 0 if it is another.
#[cfg(target_arch = "x86_64")]
unsafe fn length_at(at: *const u8) -> i64 {
    match unsafe { [*at, *at.add(1)] } {
        [0x0f, 0x31] => 2,
        [0x0f, 0x01] if unsafe { *at.add(2) } == 0xf9 => 3,
        _ => 0,
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    pass_on(signal, info, context);
}

/// What is done at a signal of which nobody wants to hear.
pub(crate) fn default_action() -> libc::sigaction {
    let mut default: libc::sigaction = unsafe { std::mem::zeroed() };
    default.sa_sigaction = libc::SIG_DFL;
    default
}

/// A fault of the program's own.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let programs = {
        let mut programs = PROGRAMS.lock().unwrap_or_else(|it| it.into_inner());
        let before = *programs;
        if let Some(it) = programs.as_mut().filter(|it| it.sa_flags & libc::SA_RESETHAND != 0) {
            it.sa_sigaction = libc::SIG_DFL;
        }
        before
    };
    let action = programs.map_or(libc::SIG_DFL, |it| it.sa_sigaction);
    // One that somebody sent, and no instruction made.
    let is_sent = unsafe { (*info).si_code } <= 0;
    match action {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction is made again, and ends the process.
            native_action(signal, Some(&default_action()), None);
            if is_sent {
                unsafe { libc::raise(signal) };
            }
        }
        handler => {
            type Function = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            let handler = unsafe { std::mem::transmute::<usize, Function>(handler) };
            unsafe { handler(signal, info, context) };
        }
    }
}

/// Whether a handler of the program's for bad accesses comes after the trap.
pub(crate) fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Keeps such a handler, and gives the one before.
pub(crate) fn keep_programs(new: Option<&libc::sigaction>, old: Option<&mut libc::sigaction>) {
    let mut programs = PROGRAMS.lock().unwrap_or_else(|it| it.into_inner());
    if let (Some(old), Some(programs)) = (old, *programs) {
        *old = programs;
    }
    if let Some(new) = new {
        *programs = Some(*new);
    }
}

/// Does what starts a program, without the trap.
pub(crate) fn untrapped<R>(start: impl FnOnce() -> R) -> R {
    // It may read what the program wrote.
    crate::files::let_out_waiting();
    without(start)
}

/// What a thread calls.  It may end within.
type Begin = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// See pthread_create(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    begin: Begin,
    with: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Begin,
        *mut c_void,
    ) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"pthread_create")) };
    stack::on_own(|| {
        if !crate::state::is_replica() || !crate::real::is_mpi_asking() {
            clock::begin_thread();
            return without(|| unsafe { real(thread, attributes, begin, with) });
        }
        let given = Box::into_raw(Box::new((begin, with)));
        let error = without(|| unsafe { real(thread, attributes, begin_mpis, given.cast()) });
        if error != 0 {
            drop(unsafe { Box::from_raw(given) });
        }
        error
    })
}

/// Begins a thread of MPI's.
unsafe extern "C-unwind" fn begin_mpis(given: *mut c_void) -> *mut c_void {
    let (begin, with) = *unsafe { Box::from_raw(given.cast::<(Begin, *mut c_void)>()) };
    crate::threads::be_mpis();
    unsafe { begin(with) }
}

/// Does what makes a thread or a process of the C library's own, which would inherit the trap.
pub(crate) fn without<R>(what: impl FnOnce() -> R) -> R {
    let traps = is_on() && set(false);
    let answer = what();
    if traps {
        set(true);
    }
    answer
}

/// Functions of the C library whose threads and processes do not go through those that it exports.
macro_rules! without_trap {
    ($($name:ident($($arg:ident),*);)*) => {
        $(
            /// See the function's manual page.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: usize),*) -> usize {
                type Function = unsafe extern "C" fn($(without_trap!(@word $arg)),*) -> usize;
                let name = concat!(stringify!($name), "\0").as_bytes();
                let name = CStr::from_bytes_with_nul(name).expect("it ends with a zero");
                let real = unsafe { std::mem::transmute::<usize, Function>(next(name)) };
                without(|| unsafe { real($($arg),*) })
            }
        )*
    };
    (@word $arg:ident) => { usize };
}

without_trap! {
    aio_read(control);
    aio_read64(control);
    aio_write(control);
    aio_write64(control);
    aio_fsync(how, control);
    aio_fsync64(how, control);
    lio_listio(mode, list, n, event);
    lio_listio64(mode, list, n, event);
    mq_notify(queue, event);
    getaddrinfo_a(mode, list, n, event);
    wordexp(words, to, flags);
}

extern "C" fn before_vfork() {
    // A child has the trap of its parent, and so has the program that it becomes.
    VFORKED.set(is_on() && set(false));
}

extern "C" fn after_vfork() {
    if VFORKED.replace(false) {
        set(true);
    }
}

thread_local! {
    /// The trap is on again when the child is another program.
    static VFORKED: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn vfork_failed(error: c_int) -> c_int {
    crate::files::failed(error)
}

/// See vfork(2).  The child returns first, over the place on the stack where the parent would find
/// its way back: so that is kept in a register.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn vfork() -> libc::pid_t {
    std::arch::naked_asm!(
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop rdi",
        "mov eax, {number}",
        "syscall",
        "push rdi",
        "test eax, eax",
        "jnz 2f",
        "ret",
        "2:",
        "push rax",
        "call {after}",
        "pop rax",
        "test eax, eax",
        "js 3f",
        "ret",
        "3:",
        "neg eax",
        "mov edi, eax",
        "jmp {failed}",
        before = sym before_vfork,
        after = sym after_vfork,
        failed = sym vfork_failed,
        number = const libc::SYS_vfork,
    )
}

type Mask = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;

/// Blocks signals for the program, but not the trap.
unsafe fn block(
    function: &CStr,
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let real = unsafe { std::mem::transmute::<usize, Mask>(next(function)) };
    let wants = !new.is_null() && WANTED.load(Ordering::Relaxed) && OWN.with(Cell::get);
    if !wants || how == libc::SIG_UNBLOCK {
        return unsafe { real(how, new, old) };
    }
    let mut new = unsafe { *new };
    unsafe { libc::sigdelset(&raw mut new, libc::SIGSEGV) };
    unsafe { real(how, &raw const new, old) }
}

/// See pthread_sigmask(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    unsafe { block(c"pthread_sigmask", how, new, old) }
}

/// See sigprocmask(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    new: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    unsafe { block(c"sigprocmask", how, new, old) }
}

type Words = *const *const c_char;

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    *const c_char,
    *const c_void,
    *const c_void,
    Words,
    Words,
) -> c_int;

/// See posix_spawn(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: Words,
    environment: Words,
) -> c_int {
    let real = unsafe { std::mem::transmute::<usize, Spawn>(next(c"posix_spawn")) };
    untrapped(|| unsafe { real(pid, path, actions, attributes, args, environment) })
}

/// See posix_spawn(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    args: Words,
    environment: Words,
) -> c_int {
    let real = unsafe { std::mem::transmute::<usize, Spawn>(next(c"posix_spawnp")) };
    untrapped(|| unsafe { real(pid, path, actions, attributes, args, environment) })
}

/// This process, or a child of it, becomes another program, if there is such a file; where `named`,
/// it may be in a folder of PATH.
fn leave_for_another(path: *const c_char, named: bool) {
    crate::files::let_out_waiting();
    crate::ends::refuse_another(path, named);
    if WANTED.load(Ordering::Relaxed) {
        set(false);
    }
}

/// See execve(2): also of a child that vfork(2) made, which has its parent's trap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, args: Words, environment: Words) -> c_int {
    leave_for_another(path, false);
    let code = unsafe { libc::syscall(libc::SYS_execve, path, args, environment) as c_int };
    cross(false);
    code
}

/// See exec(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, args: Words) -> c_int {
    unsafe extern "C" {
        static environ: Words;
    }
    unsafe { execve(path, args, environ) }
}

/// See exec(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(path: *const c_char, args: Words, environment: Words) -> c_int {
    leave_for_another(path, true);
    type Function = unsafe extern "C" fn(*const c_char, Words, Words) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"execvpe")) };
    let code = unsafe { real(path, args, environment) };
    cross(false);
    code
}

/// See fexecve(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: c_int, args: Words, environment: Words) -> c_int {
    leave_for_another(c"/".as_ptr(), false);
    type Function = unsafe extern "C" fn(c_int, Words, Words) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"fexecve")) };
    let code = unsafe { real(file, args, environment) };
    cross(false);
    code
}

/// Functions of as many arguments as who calls them likes, which go on to the C library's as they
/// came.
#[cfg(target_arch = "x86_64")]
macro_rules! leave_by {
    ($($name:ident, $find:ident, $named:literal;)*) => {
        $(
            extern "C" fn $find(path: *const c_char) -> usize {
                leave_for_another(path, $named);
                let name = concat!(stringify!($name), "\0").as_bytes();
                next(CStr::from_bytes_with_nul(name).expect("it ends with a zero"))
            }

            /// See exec(3).
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                std::arch::naked_asm!(
                    "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                    "push rax",
                    "call {find}",
                    "mov r11, rax",
                    "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                    "jmp r11",
                    find = sym $find,
                )
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
leave_by! {
    execl, find_execl, false;
    execlp, find_execlp, true;
    execle, find_execle, false;
}

/// See exec(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(path: *const c_char, args: Words) -> c_int {
    leave_for_another(path, true);
    type Function = unsafe extern "C" fn(*const c_char, Words) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"execvp")) };
    let code = unsafe { real(path, args) };
    cross(false);
    code
}
