//! Timers of the program's that bring SIGALRM: each replica has its own, and what they bring is
//! told to the launcher as signals are, with the timer and how often the program has set it.
//!
//! ```text
//! setitimer ──► a new setting ──► this replica's alarm ──► the launcher: the nth of this setting
//! compare, look at a clock, sleep: so many of this setting are due in all replicas
//! setitimer, alarm(0) ──► a new setting: what was told of the one before counts for nothing
//! ```
//! The program sets a timer at the same place in all replicas, so that they agree on its setting
//! wherever they agree on what is due.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use libc::{itimerspec, itimerval, sigevent, sigset_t, timespec, timeval};
use selvedge_stmr::report::Report;

use crate::clock;
use crate::cycles;
use crate::files;
use crate::real::{self, next};
use crate::signals;
use crate::stack;
use crate::state::{self, State};
use crate::steady;

/// The first is ITIMER_REAL, which alarm(2) sets too; the others are of timer_create(2).
const TIMERS: usize = 16;

/// No timer of the kernel's.
const NONE: i64 = -1;

/// What the kernel says of a signal that such a timer brought, and of one that the first did.
const OF_TIMER: c_int = -2;
const OF_KERNEL: c_int = 0x80;

/// One of the program's timers.
struct Timer {
    /// The kernel's number of it.
    id: AtomicI64,
    /// How often the program has set it.
    setting: AtomicU32,
    /// It is set, and brings one alarm only.
    is_set: AtomicBool,
    is_once: AtomicBool,
    /// How many alarms it has brought here since it was set, and of how many the launcher is told.
    came: AtomicU32,
    told: AtomicU32,
    /// How many are due in all replicas, and how many the program has heard of.
    due: AtomicU32,
    heard: AtomicU32,
}

static ALL: [Timer; TIMERS] = [const {
    Timer {
        id: AtomicI64::new(NONE),
        setting: AtomicU32::new(0),
        is_set: AtomicBool::new(false),
        is_once: AtomicBool::new(false),
        came: AtomicU32::new(0),
        told: AtomicU32::new(0),
        due: AtomicU32::new(0),
        heard: AtomicU32::new(0),
    }
}; TIMERS];

/// What is said of an alarm: the signal, the timer, and its setting.
fn name(idx: usize, setting: u32) -> u64 {
    libc::SIGALRM as u64 | (1 + idx as u64) << 8 | u64::from(setting) << 16
}

/// The signal of what is said of one, and the timer that brought it, with its setting.
pub(crate) fn of_name(name: u64) -> (c_int, Option<(usize, u32)>) {
    let idx = (name >> 8 & 0xff) as usize;
    let timer = idx.checked_sub(1).filter(|it| *it < TIMERS);
    ((name & 0xff) as c_int, timer.map(|it| (it, (name >> 16) as u32)))
}

impl Timer {
    fn get(of: &AtomicU32) -> u32 {
        of.load(Ordering::Relaxed)
    }

    /// Whether the program is to hear of more from it, as all replicas know it.
    fn is_awaited(&self) -> bool {
        let is_over = self.is_once.load(Ordering::Relaxed) && Self::get(&self.heard) != 0;
        self.is_set.load(Ordering::Relaxed) && !is_over
    }

    /// How many are due where so many were told of.
    fn at_most(&self, n: u32) -> u32 {
        if self.is_once.load(Ordering::Relaxed) { n.min(1) } else { n }
    }

    /// The program sets it anew: what it brought before counts for nothing.
    fn set(&self, is_set: bool, is_once: bool) {
        self.setting.fetch_add(1, Ordering::Relaxed);
        self.is_set.store(is_set, Ordering::Relaxed);
        self.is_once.store(is_once, Ordering::Relaxed);
        [&self.came, &self.told, &self.due, &self.heard]
            .iter()
            .for_each(|it| it.store(0, Ordering::Relaxed));
    }
}

/// The timer that brought a signal; nothing if somebody sent it.
pub(crate) fn bringer(signal: c_int, info: *const libc::siginfo_t) -> Option<usize> {
    if signal != libc::SIGALRM || info.is_null() {
        return None;
    }
    match unsafe { (*info).si_code } {
        OF_KERNEL => Some(0),
        OF_TIMER => {
            // Behind the signal, its error and its kind.
            let id = i64::from(unsafe { *info.cast::<c_int>().add(4) });
            ALL[1..].iter().position(|it| it.id.load(Ordering::Relaxed) == id).map(|it| 1 + it)
        }
        _ => None,
    }
}

/// A timer has brought one.
pub(crate) fn count(idx: usize) {
    ALL[idx].came.fetch_add(1, Ordering::Relaxed);
}

/// Has the program hear of one that it has not heard of, though its siblings may not have; false
/// if there is none.
pub(crate) fn take_own() -> bool {
    let is_new = |it: &&Timer| Timer::get(&it.heard) < it.at_most(Timer::get(&it.came));
    let timer = ALL.iter().find(is_new);
    timer.iter().for_each(|it| _ = it.heard.fetch_add(1, Ordering::Relaxed));
    timer.is_some()
}

/// Whether this replica's timers have brought more than the program has heard of.
pub(crate) fn any_new() -> bool {
    ALL.iter().any(|it| Timer::get(&it.heard) < it.at_most(Timer::get(&it.came)))
}

/// How many all timers have brought since they were set.
pub(crate) fn n_came() -> u32 {
    ALL.iter().fold(0, |sum, it| sum.wrapping_add(Timer::get(&it.came)))
}

/// Whether the program is to hear of an alarm, as all replicas know it.
pub(crate) fn are_awaited() -> bool {
    signals::has_handler(libc::SIGALRM) && ALL.iter().any(Timer::is_awaited)
}

/// The next that is due: its timer is at its end, if that has not brought it here yet, or it would
/// come once more, where the program may no longer handle it.
pub(crate) fn take_due() -> bool {
    let is_new = |it: &&Timer| Timer::get(&it.heard) < Timer::get(&it.due);
    let Some(idx) = ALL.iter().position(|it| is_new(&it)) else { return false };
    let timer = &ALL[idx];
    timer.heard.fetch_add(1, Ordering::Relaxed);
    if timer.is_once.load(Ordering::Relaxed) && Timer::get(&timer.came) == 0 {
        let none: [u64; 4] = [0; 4];
        let (none, nothing) = (none.as_ptr(), std::ptr::null_mut::<c_void>());
        let id = timer.id.load(Ordering::Relaxed);
        blocking(idx, || unsafe {
            match idx {
                0 => libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, none, nothing),
                _ => libc::syscall(libc::SYS_timer_settime, id as c_int, 0, none, nothing),
            }
        });
    }
    true
}

/// Does what sets a timer, during which none comes; what it had brought is gone then, unless the
/// program blocks it, which may take it for itself.
fn blocking<R>(idx: usize, what: impl FnOnce() -> R) -> R {
    unsafe {
        let (mut alarm, mut before): (sigset_t, sigset_t) = std::mem::zeroed();
        libc::sigaddset(&raw mut alarm, libc::SIGALRM);
        cycles::pthread_sigmask(libc::SIG_BLOCK, &raw const alarm, &raw mut before);
        let answer = what();
        if libc::sigismember(&raw const before, libc::SIGALRM) == 0 {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
            let (number, room) = (libc::SYS_rt_sigtimedwait, size_of::<u64>());
            let (set, time) = (&raw const alarm, &raw const at_once);
            let error = files::last_error();
            while 0 < libc::syscall(number, set, &raw mut info, time, room) {
                match bringer(libc::SIGALRM, &raw const info) {
                    Some(it) if it == idx => {}
                    Some(it) => count(it),
                    None => signals::keep_sent(libc::SIGALRM),
                }
            }
            *libc::__errno_location() = error;
        }
        cycles::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        answer
    }
}

impl State {
    /// Tells the launcher of what came to this process.
    pub(crate) fn tell_alarms(&mut self) {
        for (idx, timer) in ALL.iter().enumerate() {
            while Timer::get(&timer.told) < timer.at_most(Timer::get(&timer.came)) {
                timer.told.fetch_add(1, Ordering::Relaxed);
                self.say(Report::Signal(name(idx, Timer::get(&timer.setting))));
            }
        }
    }

    /// One that was told of is due in all, if it is of the timer's setting.
    pub(crate) fn keep_alarm(idx: usize, setting: u32) {
        let timer = &ALL[idx];
        if Timer::get(&timer.setting) == setting {
            let due = timer.at_most(Timer::get(&timer.due) + 1);
            timer.due.store(due, Ordering::Relaxed);
        }
    }

    /// A signal that was told of and is not due yet, and whose handler runs when it is.
    pub(crate) fn coming_signal(&self, is_blocked: impl Fn(c_int) -> bool) -> Option<c_int> {
        let mut told = [0; TIMERS];
        let is_new = |name: &u64| {
            let (signal, timer) = of_name(*name);
            let is_new = timer.is_none_or(|(idx, setting)| {
                let timer = &ALL[idx];
                told[idx] += u32::from(Timer::get(&timer.setting) == setting);
                let n = timer.at_most(Timer::get(&timer.due) + told[idx]);
                told[idx] != 0 && Timer::get(&timer.heard) < n
            });
            is_new && signals::has_handler(signal) && !is_blocked(signal)
        };
        let mut names = self.signals[self.n_signals_due..].iter().copied();
        names.find(is_new).map(|it| of_name(it).0)
    }

    /// Waits until the launcher has told of what this replica's timers have brought: it tells all.
    pub(crate) fn hear_of_own_alarms(&mut self) {
        self.tell_signals();
        let told = |state: &Self, idx: usize| {
            let name = name(idx, Timer::get(&ALL[idx].setting));
            let coming = state.signals[state.n_signals_due..].iter().filter(|it| **it == name);
            Timer::get(&ALL[idx].due) + coming.count() as u32
        };
        let lacks = |state: &Self| {
            let all = ALL.iter().enumerate();
            { all }.any(|(idx, it)| told(state, idx) < it.at_most(Timer::get(&it.told)))
        };
        while lacks(self) {
            self.pump();
            unsafe { libc::usleep(200) };
        }
    }
}

/// Whether it is the program that sets its timers here.
fn is_shared() -> bool {
    state::is_replica() && !real::is_inside()
}

/// The question for what is left of the timer that the program sets.
const LEFT: u64 = 111;

/// A timer's rest and its interval, in nanoseconds.
type Rest = [i64; 2];

/// Sets a timer: `set` tells what it was before.  What is left of it is the meta's, and something
/// where the program has not heard of its end.
fn set_anew(
    idx: usize,
    setting: Rest,
    wants_rest: bool,
    set: impl FnOnce() -> (c_int, Rest),
) -> (c_int, Rest) {
    let timer = &ALL[idx];
    let is_awaited = timer.is_awaited();
    let (code, own) = blocking(idx, || {
        let done = set();
        if done.0 == 0 {
            timer.set(setting[0] != 0, setting[1] == 0);
        }
        done
    });
    if code != 0 || !wants_rest {
        return (code, own);
    }
    let seen = real::is_program_asking().then(|| clock::seen_value(LEFT, || own)).flatten();
    let [left, interval] = seen.unwrap_or(own);
    (code, [left.max(i64::from(is_awaited)), interval])
}

fn in_ns(at: timeval) -> i64 {
    steady::in_ns(timespec { tv_sec: at.tv_sec, tv_nsec: at.tv_usec * 1000 })
}

fn of_ns(ns: i64) -> timeval {
    // What is less than a microsecond is not none.
    let at = steady::of_ns(ns.saturating_add(999));
    timeval { tv_sec: at.tv_sec, tv_usec: at.tv_nsec / 1000 }
}

/// See setitimer(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setitimer(
    which: c_int,
    new: *const itimerval,
    old: *mut itimerval,
) -> c_int {
    let native =
        |to: *mut itimerval| unsafe { libc::syscall(libc::SYS_setitimer, which, new, to) as c_int };
    stack::on_own(|| {
        if which != libc::ITIMER_REAL || !is_shared() {
            return native(old);
        }
        let none = itimerval { it_interval: of_ns(0), it_value: of_ns(0) };
        let row = unsafe { new.as_ref() }.copied().unwrap_or(none);
        let setting = [in_ns(row.it_value), in_ns(row.it_interval)];
        let (code, [left, interval]) = set_anew(0, setting, !old.is_null(), || {
            let mut before = none;
            let code = native(&raw mut before);
            (code, [in_ns(before.it_value), in_ns(before.it_interval)])
        });
        if let (0, Some(old)) = (code, unsafe { old.as_mut() }) {
            *old = itimerval { it_interval: of_ns(interval), it_value: of_ns(left) };
        }
        code
    })
}

/// Sets the first timer, and tells what was left of it.
fn ring_in(time: timeval, interval: timeval) -> timeval {
    let new = itimerval { it_interval: interval, it_value: time };
    let mut old = new;
    match unsafe { setitimer(libc::ITIMER_REAL, &raw const new, &raw mut old) } {
        0 => old.it_value,
        _ => timeval { tv_sec: -1, tv_usec: 0 },
    }
}

/// See alarm(2).
#[unsafe(no_mangle)]
pub extern "C" fn alarm(seconds: c_uint) -> c_uint {
    stack::on_own(|| {
        let left = ring_in(timeval { tv_sec: seconds.into(), tv_usec: 0 }, of_ns(0));
        // As the kernel has it: the nearest, and never none where there is some.
        let is_up = 500_000 <= left.tv_usec || (left.tv_sec == 0 && left.tv_usec != 0);
        left.tv_sec.max(0) as c_uint + c_uint::from(is_up)
    })
}

/// See ualarm(3).
#[unsafe(no_mangle)]
pub extern "C" fn ualarm(microseconds: c_uint, interval: c_uint) -> c_uint {
    stack::on_own(|| {
        let [time, interval] = [microseconds, interval].map(|it| of_ns(i64::from(it) * 1000));
        let left = ring_in(time, interval);
        if left.tv_sec < 0 {
            c_uint::MAX
        } else {
            (left.tv_sec * 1_000_000 + left.tv_usec) as c_uint
        }
    })
}

/// Functions of a timer's number.
type Create = unsafe extern "C" fn(c_int, *mut sigevent, *mut usize) -> c_int;
type Set = unsafe extern "C" fn(usize, c_int, *const itimerspec, *mut itimerspec) -> c_int;
type Get = unsafe extern "C" fn(usize, *mut itimerspec) -> c_int;
type Delete = unsafe extern "C" fn(usize) -> c_int;

/// Where such a timer is kept, if it brings alarms; the C library's number is the kernel's.
fn known(timer: usize) -> Option<usize> {
    let is_it = |it: &Timer| it.id.load(Ordering::Relaxed) == timer as i64;
    ALL[1..].iter().position(is_it).map(|it| 1 + it).filter(|_| is_shared())
}

/// See timer_create(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_create(
    clock: c_int,
    event: *mut sigevent,
    timer: *mut usize,
) -> c_int {
    let real = unsafe { std::mem::transmute::<usize, Create>(next(c"timer_create")) };
    let code = cycles::without(|| unsafe { real(clock, event, timer) });
    stack::on_own(|| {
        let brings = unsafe { event.as_ref() }.is_none_or(|it| {
            let is_signal = [libc::SIGEV_SIGNAL, libc::SIGEV_THREAD_ID].contains(&it.sigev_notify);
            is_signal && it.sigev_signo == libc::SIGALRM
        });
        let free = ALL[1..].iter().find(|it| it.id.load(Ordering::Relaxed) == NONE);
        if let (0, true, true, Some(free)) = (code, brings, is_shared(), free) {
            free.set(false, false);
            free.id.store(unsafe { *timer } as i64, Ordering::Relaxed);
        }
    });
    code
}

fn of_spec(row: &itimerspec) -> Rest {
    [steady::in_ns(row.it_value), steady::in_ns(row.it_interval)]
}

fn spec_of([left, interval]: Rest) -> itimerspec {
    itimerspec { it_interval: steady::of_ns(interval), it_value: steady::of_ns(left) }
}

/// See timer_settime(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_settime(
    timer: usize,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    stack::on_own(|| {
        let real = unsafe { std::mem::transmute::<usize, Set>(next(c"timer_settime")) };
        let own = steady::own_timer(new, flags & libc::TIMER_ABSTIME != 0);
        let wanted = own.as_ref().map_or(new, std::ptr::from_ref);
        let row = unsafe { new.as_ref() };
        let (Some(idx), Some(row)) = (known(timer), row) else {
            return unsafe { real(timer, flags, wanted, old) };
        };
        let (code, rest) = set_anew(idx, of_spec(row), !old.is_null(), || {
            let mut before = spec_of([0; 2]);
            let code = unsafe { real(timer, flags, wanted, &raw mut before) };
            (code, of_spec(&before))
        });
        if let (0, Some(old)) = (code, unsafe { old.as_mut() }) {
            *old = spec_of(rest);
        }
        code
    })
}

/// See timer_gettime(2): what is left is the meta's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_gettime(timer: usize, to: *mut itimerspec) -> c_int {
    stack::on_own(|| {
        let real = unsafe { std::mem::transmute::<usize, Get>(next(c"timer_gettime")) };
        let code = unsafe { real(timer, to) };
        if code == 0 && real::is_program_asking() {
            let own = unsafe { of_spec(&*to) };
            unsafe { *to = spec_of(clock::seen_value(LEFT + 1, || own).unwrap_or(own)) };
        }
        code
    })
}

/// See timer_delete(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timer_delete(timer: usize) -> c_int {
    stack::on_own(|| {
        let real = unsafe { std::mem::transmute::<usize, Delete>(next(c"timer_delete")) };
        let Some(idx) = known(timer) else { return unsafe { real(timer) } };
        let delete = || (unsafe { real(timer) }, [0; 2]);
        let (code, _) = set_anew(idx, [0; 2], false, delete);
        if code == 0 {
            ALL[idx].id.store(NONE, Ordering::Relaxed);
        }
        code
    })
}
