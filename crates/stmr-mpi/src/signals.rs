//! Signals that the program handles arrive at the same call in all replicas.
//!
//! ```text
//! a signal ──► this library's handler ──► the launcher is told ──► it tells all replicas, numbered
//! compare: each offers how many it has heard of ──► after it, all have the most that one has
//! the end of that call ──► the program's handler
//! ```
//! So a signal comes to the program at the end of a call of MPI, the next in which its cluster
//! compares something.  One that is sent to all replicas of a process is one signal.  What the
//! program does not handle does at once what it does without replicas, and so does what it sends
//! itself, at the same place in all of them.
//!
//! An alarm is a process's own, and each replica has set it: see alarms.rs, and sleeps.rs for where
//! the program does nothing but wait.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use selvedge_stmr::report::Report;

use crate::alarms;
use crate::crashes;
use crate::cycles;
use crate::files;
use crate::own;
use crate::real::{self, next};
use crate::stack;
use crate::state::{self, State};
use crate::threads;

/// Those that wait for a compare.
const DEFERRED: [c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGTERM];

const N_SIGNALS: usize = 32;

/// What the program wants done, as it said it.
static PROGRAMS: Mutex<[Option<libc::sigaction>; N_SIGNALS]> = Mutex::new([None; N_SIGNALS]);

/// The same, for a handler, which may not take a lock: the address of the program's.
static HANDLERS: [std::sync::atomic::AtomicUsize; N_SIGNALS] =
    [const { std::sync::atomic::AtomicUsize::new(0) }; N_SIGNALS];

/// The handler runs once, and then the signal has its default.
static ONCE: [AtomicBool; N_SIGNALS] = [const { AtomicBool::new(false) }; N_SIGNALS];

/// What the program has said of a signal: nothing, that it is to have its default, something else.
static SAID: [AtomicU8; N_SIGNALS] = [const { AtomicU8::new(0) }; N_SIGNALS];
const DEFAULT: u8 = 1;
const OTHER: u8 = 2;

/// MPIs handle these to print where they came, and end.
const SHOWN: [c_int; 3] = [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE];

/// How many came that the launcher is not told of.
static CAME: [AtomicU32; N_SIGNALS] = [const { AtomicU32::new(0) }; N_SIGNALS];

/// How many are due, and at the end of this call are given to the program.
static COMING: [AtomicU32; N_SIGNALS] = [const { AtomicU32::new(0) }; N_SIGNALS];

/// How many this process has sent itself for the program's handler.
static DUE: [AtomicU32; N_SIGNALS] = [const { AtomicU32::new(0) }; N_SIGNALS];

static ANY_CAME: AtomicBool = AtomicBool::new(false);

static ANY_DUE: AtomicBool = AtomicBool::new(false);

/// How many signals this library has kept for later.
static KEPT: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The program does nothing but wait for what is its own.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Takes one of a count, if there is one.
fn take_one(of: &AtomicU32) -> bool {
    of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(1)).is_ok()
}

/// How many signals this library has kept for later.
pub(crate) fn n_kept() -> u32 {
    KEPT.load(Ordering::Relaxed)
}

/// Somebody has sent one, which the launcher is to be told of.
pub(crate) fn keep_sent(signal: c_int) {
    CAME[signal as usize].fetch_add(1, Ordering::Relaxed);
    ANY_CAME.store(true, Ordering::Relaxed);
}

/// Has the program hear of an alarm that it has not heard of; false if there is none.
fn take_alarm() -> bool {
    if !has_handler(libc::SIGALRM) || !alarms::take_own() {
        return false;
    }
    give(libc::SIGALRM);
    true
}

/// Whether the program has said what is to be done at it.
pub(crate) fn is_programs(signal: c_int) -> bool {
    SAID[signal as usize].load(Ordering::Relaxed) == OTHER
}

fn is_deferred(signal: c_int) -> bool {
    DEFERRED.contains(&signal)
}

/// Whether the program has a handler for it.
pub(crate) fn has_handler(signal: c_int) -> bool {
    HANDLERS.get(signal as usize).is_some_and(|it| it.load(Ordering::Relaxed) != 0)
}

/// Whether the program has a handler for it, or ignores it.
fn is_handled(signal: c_int) -> bool {
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    let is_known = cycles::native_action(signal, None, Some(&mut now));
    crashes::hide(signal, &mut now);
    is_known && now.sa_sigaction != libc::SIG_DFL
}

unsafe extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let idx = signal as usize;
    let timer = alarms::bringer(signal, info);
    // What is due was sent by this process itself.
    let is_due = timer.is_none() && take_one(&DUE[idx]);
    if !is_due && state::is_replica() {
        KEPT.fetch_add(1, Ordering::Relaxed);
        match timer {
            Some(it) => alarms::count(it),
            None => keep_sent(signal),
        }
        ANY_CAME.store(true, Ordering::Relaxed);
        // It comes here, if it ends a wait of the program's own.
        let comes = timer.is_some() && has_handler(signal) && WAITS.replace(false);
        if !comes || !alarms::take_own() {
            return;
        }
    }
    let handler = HANDLERS[idx].load(Ordering::Relaxed);
    if handler != 0 {
        if ONCE[idx].swap(false, Ordering::Relaxed) {
            HANDLERS[idx].store(0, Ordering::Relaxed);
            // The system's own call, which a handler may make: four words, and those of no mask.
            let (default, nothing) = ([libc::SIG_DFL; 4], std::ptr::null_mut::<c_void>());
            let number = libc::SYS_rt_sigaction;
            unsafe { libc::syscall(number, signal, default.as_ptr(), nothing, 8_usize) };
        }
        own::share_sender(info);
        type Function = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        // One that takes the signal alone does not look at the rest.
        let handler = unsafe { std::mem::transmute::<usize, Function>(handler) };
        unsafe { handler(signal, info, context) };
    }
}

/// Those that end a process which says nothing of them; SIGKILL is a death of this replica alone.
const ENDING: [c_int; 19] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGSYS,
];

/// The program sends itself a signal, which the system is to deliver when this returns.  One that
/// it has a handler for comes at once, at the same place in all replicas.  One that ends it is an
/// end of the program's, which its replicas agree to.
pub(crate) fn send_to_itself(signal: c_int) {
    let Ok(idx) = usize::try_from(signal) else { return };
    if has_handler(signal) {
        // A blocked one that waits already comes once.
        let waits = is_blocked(signal) && is_in(signal, |set| unsafe { libc::sigpending(set) });
        if state::is_replica() && !real::is_mpi_asking() && !waits {
            DUE[idx].fetch_add(1, Ordering::Relaxed);
        }
    } else if idx < N_SIGNALS {
        end_by(signal, is_blocked(signal));
    }
}

/// Whether this thread blocks it: it stays pending, until the program takes or unblocks it.
pub(crate) fn is_blocked(signal: c_int) -> bool {
    is_in(signal, |set| unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set) })
}

fn is_in(signal: c_int, what: fn(*mut libc::sigset_t) -> c_int) -> bool {
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        what(&raw mut set);
        libc::sigismember(&raw const set, signal) == 1
    }
}

fn end_by(signal: c_int, is_blocked: bool) {
    let is_default = || match SAID[signal as usize].load(Ordering::Relaxed) {
        0 => SHOWN.contains(&signal) || !is_handled(signal),
        // A handler that was to run once may have run.
        said => said == DEFAULT || !is_handled(signal),
    };
    // A fault's handler may send it again: it ends the process where the handler is left.
    if crashes::FAULTS.contains(&signal) && is_default() && (is_blocked || signal == libc::SIGSEGV)
    {
        crashes::tell(signal);
    }
    let ends = ENDING.contains(&signal) && is_default() && !is_blocked;
    let code = 128 + signal;
    if ends && !state::is_held() && (real::is_program_asking() || threads::take_order(code)) {
        let _inside = real::Inside::enter();
        state::with(|state| state.end_by(signal));
    }
}

/// See raise(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raise(signal: c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int) -> c_int;
    stack::on_own(|| send_to_itself(signal));
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"raise")) };
    unsafe { real(signal) }
}

/// The process that a signal is to be sent to: who names the number that it takes for its own means
/// itself.  It is sent on the program's stack, on which a handler runs.
fn aim(pid: libc::pid_t, signal: c_int) -> libc::pid_t {
    stack::on_own(|| {
        if own::is_own(pid) {
            send_to_itself(signal);
        }
        own::native(pid)
    })
}

/// See kill(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kill(pid: libc::pid_t, signal: c_int) -> c_int {
    unsafe { libc::syscall(libc::SYS_kill, aim(pid, signal), signal) as c_int }
}

/// See sigqueue(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigqueue(pid: libc::pid_t, signal: c_int, value: usize) -> c_int {
    type Function = unsafe extern "C" fn(libc::pid_t, c_int, usize) -> c_int;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"sigqueue")) };
    unsafe { real(aim(pid, signal), signal, value) }
}

/// See pthread_kill(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_kill(thread: libc::pthread_t, signal: c_int) -> c_int {
    type Function = unsafe extern "C" fn(libc::pthread_t, c_int) -> c_int;
    if thread == unsafe { libc::pthread_self() } {
        stack::on_own(|| send_to_itself(signal));
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"pthread_kill")) };
    unsafe { real(thread, signal) }
}

/// See abort(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abort() -> ! {
    type Function = unsafe extern "C" fn() -> !;
    unsafe {
        // It cannot be blocked, and a handler that returns is no way out.
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGABRT);
        cycles::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        raise(libc::SIGABRT);
        signal(libc::SIGABRT, libc::SIG_DFL);
    }
    stack::on_own(|| send_to_itself(libc::SIGABRT));
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"abort")) };
    unsafe { real() }
}

/// What assert(3) calls: the C library's own function does not come by abort above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __assert_fail(
    what: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) -> ! {
    let text = |it: *const c_char| match it.is_null() {
        true => Cow::Borrowed("?"),
        false => unsafe { CStr::from_ptr(it) }.to_string_lossy(),
    };
    stack::on_own(|| {
        let program = text(unsafe { program_invocation_short_name });
        let [what, file, function] = [what, file, function].map(text);
        let line = format!("{program}: {file}:{line}: {function}: Assertion `{what}' failed.\n");
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    });
    unsafe { abort() }
}

unsafe extern "C" {
    /// See program_invocation_short_name(3).
    static program_invocation_short_name: *const c_char;
}

impl State {
    /// Ends the program by a signal that it sent itself.
    fn end_by(&mut self, signal: c_int) -> ! {
        self.let_out();
        self.mix(&[u64::MAX - 3, signal as u64]);
        self.doing = "its end by a signal";
        self.give_up(128 + signal)
    }

    /// Tells the launcher which signals came to this process alone.
    pub(crate) fn tell_signals(&mut self) {
        if !ANY_CAME.swap(false, Ordering::Relaxed) {
            return;
        }
        for signal in DEFERRED {
            for _ in 0..CAME[signal as usize].swap(0, Ordering::Relaxed) {
                self.say(Report::Signal(signal as u64));
            }
        }
        self.tell_alarms();
    }

    /// The launcher tells of a signal that was sent to it.
    pub(crate) fn hear_signal(&mut self, signal: c_int) {
        if !is_handled(signal) && !is_blocked(signal) {
            // It ends the program, wherever it is.
            self.say(Report::Abort(128 + signal));
            self.wait_for_the_end();
        }
        self.keep_signal(signal as u64);
    }

    /// The launcher tells of a signal that came to a replica of this process which handles it: this
    /// one will, too, when it has come as far.
    pub(crate) fn keep_signal(&mut self, name: u64) {
        self.signals.push(name);
        self.replica.hear_signals(self.signals.len() as u32);
    }

    /// After a compare: what one of the replicas had heard of is due in all.
    pub(crate) fn take_signals(&mut self) {
        while self.n_signals_due < self.replica.signals() as usize {
            // The launcher has told the others, so it has told this one.
            while self.signals.len() <= self.n_signals_due {
                self.pump();
                unsafe { libc::usleep(200) };
            }
            let name = self.signals[self.n_signals_due];
            self.n_signals_due += 1;
            match alarms::of_name(name) {
                (_, Some((timer, setting))) => Self::keep_alarm(timer, setting),
                (signal, None) => _ = COMING[signal as usize].fetch_add(1, Ordering::Relaxed),
            }
            ANY_DUE.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether a call that waits goes on when the program's handler of it has run.
pub(crate) fn restarts(signal: c_int) -> bool {
    let programs = PROGRAMS.lock().unwrap_or_else(|it| it.into_inner());
    let action = programs.get(signal as usize).copied().flatten();
    action.is_some_and(|it| it.sa_flags & libc::SA_RESTART != 0)
}

/// The same at the end of a program's look at a clock.
pub(crate) fn deliver_at_look() {
    if ANY_DUE.load(Ordering::Relaxed) && stack::on_own(real::is_program_asking) {
        deliver();
    }
}

/// At the end of a call: what is due comes to the program.
#[inline(never)]
pub(crate) fn deliver() {
    if !ANY_DUE.swap(false, Ordering::Relaxed) {
        return;
    }
    for signal in DEFERRED {
        while take_one(&COMING[signal as usize]) {
            give(signal);
        }
    }
    while alarms::take_due() {
        give(libc::SIGALRM);
    }
}

/// Gives the program a signal, which its handler is called for before this returns, or when a
/// handler that runs is over.
fn give(signal: c_int) {
    let has_handler = has_handler(signal);
    if !has_handler {
        // It had one when the signal was sent, or the program blocks it.
        stack::on_own(|| end_by(signal, is_blocked(signal)));
    }
    // Without a handler of the program's nobody counts it when it comes.
    DUE[signal as usize].fetch_add(u32::from(has_handler), Ordering::Relaxed);
    // raise(3) is this library's own, and would count it again.
    unsafe {
        let (process, thread) = (libc::syscall(libc::SYS_getpid), libc::gettid());
        match is_blocked(signal) {
            // Any thread may be the one that takes it.
            true => libc::syscall(libc::SYS_kill, process, signal),
            false => libc::syscall(libc::SYS_tgkill, process, thread, signal),
        };
    }
}

/// See sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    stack::on_own(|| unsafe {
        let is_programs = state::is_replica() && !real::is_mpi_asking();
        let ours = new.as_ref().filter(|_| is_programs);
        let ours = ours.and_then(|it| crashes::in_place_of(it, signal));
        let code = act(signal, ours.as_ref().or(new.as_ref()), old.as_mut());
        if let Some(old) = old.as_mut() {
            crashes::hide(signal, old);
        }
        code
    })
}

pub(crate) fn act(
    signal: c_int,
    new: Option<&libc::sigaction>,
    old: Option<&mut libc::sigaction>,
) -> c_int {
    if let Some(new) = new
        && state::is_replica()
        && !real::is_mpi_asking()
        && let Some(said) = usize::try_from(signal).ok().and_then(|it| SAID.get(it))
    {
        let is_default = new.sa_sigaction == libc::SIG_DFL || crashes::is_ours(new);
        said.store(if is_default { DEFAULT } else { OTHER }, Ordering::Relaxed);
    }
    if signal == libc::SIGSEGV && cycles::is_wanted() {
        cycles::keep_programs(new, old);
        return 0;
    }
    // The trap of the cycle counter comes through whatever a handler blocks.
    let new = new.copied().map(|mut it| {
        if state::is_replica() && signal != libc::SIGSEGV {
            unsafe { libc::sigdelset(&raw mut it.sa_mask, libc::SIGSEGV) };
        }
        it
    });
    let new = new.as_ref();
    // MPI's own handlers are its own affair.
    if !is_deferred(signal) || !state::is_replica() || crate::real::is_inside() {
        return if cycles::native_action(signal, new, old) { 0 } else { -1 };
    }
    let idx = signal as usize;
    let mut programs = PROGRAMS.lock().unwrap_or_else(|it| it.into_inner());
    let has_run = programs[idx].is_some() && HANDLERS[idx].load(Ordering::Relaxed) == 0;
    let known = programs[idx].filter(|_| !has_run);
    let mut ours = new.copied();
    if let (Some(ours), Some(new)) = (&mut ours, new) {
        let is_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&new.sa_sigaction);
        programs[idx] = is_handler.then_some(*new);
        HANDLERS[idx].store(if is_handler { new.sa_sigaction } else { 0 }, Ordering::Relaxed);
        let is_once = is_handler && new.sa_flags & libc::SA_RESETHAND != 0;
        ONCE[idx].store(is_once, Ordering::Relaxed);
        if is_handler {
            ours.sa_sigaction = on_signal as *const () as usize;
            ours.sa_flags = (ours.sa_flags | libc::SA_SIGINFO) & !libc::SA_RESETHAND;
        }
    }
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    if !cycles::native_action(signal, ours.as_ref(), Some(&mut before)) {
        return -1;
    }
    if let Some(old) = old {
        *old = known.unwrap_or(before);
    }
    0
}

/// Has a handler for a signal, as functions older than sigaction(2) do: with these flags.
fn handle(signal: c_int, handler: libc::sighandler_t, flags: c_int) -> libc::sighandler_t {
    if handler == libc::SIG_ERR {
        files::failed(libc::EINVAL);
        return libc::SIG_ERR;
    }
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler;
    new.sa_flags = flags;
    match unsafe { sigaction(signal, &raw const new, &raw mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// Functions that take a signal and its handler, and the flags that they mean.
macro_rules! handling {
    ($($name:ident $flags:ident;)*) => {$(
        /// See signal(2).
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(
            signal: c_int,
            handler: libc::sighandler_t,
        ) -> libc::sighandler_t {
            handle(signal, handler, $flags(signal))
        }
    )*};
}

/// Those that end a call which waits, as the program has said before it says its handler.
static INTERRUPTING: [AtomicBool; N_SIGNALS] = [const { AtomicBool::new(false) }; N_SIGNALS];

/// What BSD's signal(2) does.
fn restarting(signal: c_int) -> c_int {
    let interrupts = INTERRUPTING.get(signal as usize);
    if interrupts.is_some_and(|it| it.load(Ordering::Relaxed)) { 0 } else { libc::SA_RESTART }
}

/// What System V's signal(2) does, which programs get that are compiled as C of a standard alone.
fn one_shot(_signal: c_int) -> c_int {
    libc::SA_RESETHAND | libc::SA_NODEFER
}

handling! {
    signal restarting;
    bsd_signal restarting;
    ssignal restarting;
    sysv_signal one_shot;
    __sysv_signal one_shot;
}

/// See siginterrupt(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn siginterrupt(signal: c_int, ends: c_int) -> c_int {
    stack::on_own(|| {
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        if unsafe { sigaction(signal, std::ptr::null(), &raw mut action) } != 0 {
            return -1;
        }
        if let Some(it) = INTERRUPTING.get(signal as usize) {
            it.store(ends != 0, Ordering::Relaxed);
        }
        let restarts = if ends == 0 { libc::SA_RESTART } else { 0 };
        action.sa_flags = action.sa_flags & !libc::SA_RESTART | restarts;
        unsafe { sigaction(signal, &raw const action, std::ptr::null_mut()) }
    })
}

/// See sigset(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    const HOLD: libc::sighandler_t = 2;
    let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    if unsafe { libc::sigaddset(&raw mut set, signal) } != 0 {
        return libc::SIG_ERR;
    }
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    let (how, old) = match handler {
        HOLD => {
            unsafe { sigaction(signal, std::ptr::null(), &raw mut old) };
            (libc::SIG_BLOCK, old.sa_sigaction)
        }
        _ => (libc::SIG_UNBLOCK, handle(signal, handler, 0)),
    };
    if old != libc::SIG_ERR {
        unsafe { libc::sigprocmask(how, &raw const set, &raw mut before) };
    }
    let was_held = unsafe { libc::sigismember(&raw const before, signal) } == 1;
    if old != libc::SIG_ERR && was_held { HOLD } else { old }
}

/// See sigignore(3).
#[unsafe(no_mangle)]
pub extern "C" fn sigignore(signal: c_int) -> c_int {
    if handle(signal, libc::SIG_IGN, 0) == libc::SIG_ERR { -1 } else { 0 }
}

/// Waits for what is the program's own: an alarm that comes meanwhile comes there, or at once if
/// it came before.
pub(crate) fn waiting<R>(what: impl FnOnce() -> R) -> R {
    // A handler of the program's runs on its stack, and nothing else does here.
    if !stack::on_own(real::is_program_asking) {
        return what();
    }
    take_alarm();
    WAITS.set(true);
    let answer = what();
    WAITS.set(false);
    answer
}
