//! Faults that end a process: it says of which signal, and after which calls.
//!
//! To its siblings it is a death as any other.  If most replicas of a process die so at one place,
//! it is the program that ends there, and not they that err.

#![allow(unreachable_pub, reason = "the C library's name is reached by the linker alone")]

use std::ffi::{c_int, c_void};
use std::io::{Cursor, Write as _};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge_stmr::digest::Shape;
use selvedge_stmr::quits::Quit;
use selvedge_stmr::report::Report;

use crate::cycles;
use crate::real::Inside;
use crate::signals;
use crate::state;
use crate::told::{Told, native_pid, tell_launcher_line, told};

/// Faults, what the C library ends a program by that spoils its memory, and a pipe that nobody
/// reads.
pub(crate) const FAULTS: [c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGPIPE,
];

fn idx_of(signal: c_int) -> Option<usize> {
    FAULTS.iter().position(|it| *it == signal)
}

/// What was done before at each, by MPI's handlers or by nobody's.
static BEFORE: Mutex<[Option<libc::sigaction>; FAULTS.len()]> = Mutex::new([None; FAULTS.len()]);

/// All that the ordered thread has called, for a handler, which may not ask for the state.
static PLACE: AtomicU64 = AtomicU64::new(0);

/// A handler's stack, where the program's has no room left: of a kernel's frame with all registers.
const ROOM: usize = 64 << 10;

/// The ordered thread has called so much.
pub(crate) fn keep_place(shape: Shape) {
    PLACE.store(shape.0, Ordering::Relaxed);
}

/// Hears of faults that the program has no handler for: when it begins, and when MPI has begun,
/// which may have handlers of its own.
pub(crate) fn begin() {
    let _inside = Inside::enter_shortly();
    let ours = ours();
    for (idx, signal) in FAULTS.into_iter().enumerate() {
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        let known = signals::act(signal, None, Some(&mut before)) == 0;
        let keep = before.sa_sigaction == libc::SIG_IGN || is_ours(&before);
        if known && !keep && !signals::is_programs(signal) {
            befores()[idx] = Some(before);
            signals::act(signal, Some(&ours), None);
        }
    }
    have_stack();
}

fn befores() -> MutexGuard<'static, [Option<libc::sigaction>; FAULTS.len()]> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the stack is that [`have_stack`] has made.
static HAS_AT: AtomicUsize = AtomicUsize::new(0);

/// See sigaltstack(2).  The program has none that it has not given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let code = unsafe { libc::syscall(libc::SYS_sigaltstack, new, old) } as c_int;
    if let Some(old) = unsafe { old.as_mut() }
        && code == 0
        && !old.ss_sp.is_null()
        && old.ss_sp as usize == HAS_AT.load(Ordering::Relaxed)
    {
        *old =
            libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    }
    code
}

/// Gives this thread a stack for handlers, if it has none.
fn have_stack() {
    unsafe {
        let mut has: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &raw mut has);
        if has.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let at = libc::mmap(std::ptr::null_mut(), ROOM, access, kind, -1, 0);
        if at != libc::MAP_FAILED {
            HAS_AT.store(at as usize, Ordering::Relaxed);
            let stack = libc::stack_t { ss_sp: at, ss_flags: 0, ss_size: ROOM };
            libc::sigaltstack(&raw const stack, std::ptr::null_mut());
        }
    }
}

/// What is done at a signal where the program wants it to have its default: it is heard of.
pub(crate) fn in_place_of(new: &libc::sigaction, signal: c_int) -> Option<libc::sigaction> {
    let idx = idx_of(signal)?;
    let is_begun = befores()[idx].is_some();
    if new.sa_sigaction != libc::SIG_DFL || !is_begun {
        return None;
    }
    befores()[idx] = Some(*new);
    Some(ours())
}

fn ours() -> libc::sigaction {
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    ours
}

/// Whether this is done at a signal to hear of it.
pub(crate) fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == on_fault as *const () as usize
}

/// What the program finds that was done at a signal before it wants something else.
pub(crate) fn hide(signal: c_int, found: &mut libc::sigaction) {
    if is_ours(found)
        && let Some(idx) = idx_of(signal)
        && let Some(before) = befores()[idx]
    {
        *found = before;
    }
}

/// This process dies of a signal.  Nothing is allocated: the heap may be what is spoilt.
pub(crate) fn tell(signal: c_int) {
    let own = native_pid();
    let is_heard = |it: &Told| it.pid == own && (state::is_linked() || it.first == Some(own));
    if !told().is_some_and(is_heard) {
        return;
    }
    let place = Some(PLACE.load(Ordering::Relaxed));
    let mut line = [0; 64];
    let mut to = Cursor::new(&mut line[..]);
    let _ = writeln!(to, "{}", Report::Fault(Quit { code: 128 + signal, place }));
    let length = to.position() as usize;
    tell_launcher_line(std::str::from_utf8(&line[..length]).unwrap_or("\n"));
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    tell(signal);
    // Nobody has it but who asks for a moment; a fault meanwhile has its default.
    let before = BEFORE.try_lock().ok().and_then(|it| it[idx_of(signal)?]);
    let action = before.unwrap_or_else(cycles::default_action);
    cycles::native_action(signal, Some(&action), None);
    // The instruction is made again, if it was one; a trap is behind it.
    let is_made_again = ![libc::SIGTRAP, libc::SIGSYS].contains(&signal);
    if unsafe { (*info).si_code } <= 0 || !is_made_again {
        unsafe { libc::syscall(libc::SYS_tgkill, native_pid(), libc::gettid(), signal) };
    }
}
