//! Where the program does nothing but wait, for a time or for a signal.
//!
//! While a timer of the program's is to bring an alarm, such a sleep is a look at a clock: each
//! replica sleeps for itself, and then all are told by who leads whether the time is over or a
//! signal has come, and what is left.  So an alarm ends the same sleep in all.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::time::Duration;

use libc::{sigset_t, timespec};
use selvedge_stmr::replica::Question;

use crate::alarms;
use crate::clock;
use crate::cycles;
use crate::files::{self, bytes_of, words};
use crate::python;
use crate::real::{self, Inside, next};
use crate::sends::Source;
use crate::signals::{self, waiting};
use crate::stack;
use crate::state::{self, State};
use crate::steady;

/// What a sleep came to.
#[derive(Clone, Copy)]
pub(crate) enum Slept {
    Over,
    /// A signal's handler has run, when so much of the time was left.
    Stopped(Duration),
}

/// What a look at a sleep shows: that it goes on, that it is over, that a signal has ended it.
const ON: u64 = 0;
const OVER: u64 = 1;
const STOPPED: u64 = 2;

/// The question of such a look.
const SLEEP: u64 = 113;

/// A signal that comes between a look and the sleep ends it after so long, in nanoseconds.
const TURN_NS: i64 = 20_000_000;

/// A sleep.
#[derive(Clone, Copy)]
struct Sleep {
    /// Until when, by this host's clock.
    until_ns: Option<i64>,
    mask: Option<sigset_t>,
    /// The next turn of it, and how many alarms there were before it.
    turn: timespec,
    n_came: u32,
    /// How many signals this library has kept until then.
    n_kept: u32,
    /// The kernel has ended it, and it was no alarm that did.
    was_stopped: bool,
}

thread_local! {
    /// The last of this thread, away from the stack that the program sends from.
    static SLEEP_NOW: Cell<Sleep> = const {
        Cell::new(Sleep {
            until_ns: None,
            mask: None,
            turn: timespec { tv_sec: 0, tv_nsec: 0 },
            n_came: 0,
            n_kept: 0,
            was_stopped: false,
        })
    };

    /// What the kernel answered last.
    static CODE: Cell<i64> = const { Cell::new(0) };
}

fn now_ns() -> i64 {
    steady::in_ns(clock::true_clock(libc::CLOCK_MONOTONIC))
}

impl Sleep {
    /// What is left; as much as there can be where it has no end.
    fn left_ns(&self) -> i64 {
        self.until_ns.map_or(i64::MAX, |it| (it - now_ns()).max(0))
    }

    fn is_blocked(&self, signal: c_int) -> bool {
        match &self.mask {
            Some(it) => unsafe { libc::sigismember(it, signal) == 1 },
            None => signals::is_blocked(signal),
        }
    }

    /// In who leads: what it came to.
    fn row(&self, state: &mut State) -> [u64; 2] {
        let left = self.left_ns();
        let is_stopped = self.was_stopped || {
            state.hear_of_own_alarms();
            state.coming_signal(|it| self.is_blocked(it)).is_some()
        };
        let what = match left {
            _ if is_stopped => STOPPED,
            0 => OVER,
            _ => ON,
        };
        [what, left as u64]
    }

    /// What all are told; by itself where who leads has gone on without it.
    fn look(&self) -> [u64; 2] {
        let _inside = Inside::enter();
        let seen = state::with(|state| {
            state.sources.insert(Source::Clock);
            let question = Question { clock: SLEEP, site: state.sites.find() };
            state.see(question, |state| bytes_of(&self.row(state)))
        });
        let Some(seen) = seen else {
            let left = self.left_ns();
            let is_over = left == 0 || self.until_ns.is_none();
            return [if is_over { OVER } else { ON }, left as u64];
        };
        let row = words(&seen);
        [row[0], row[1]]
    }
}

/// Lets the kernel wait, on the program's stack, where another handler of it may run.
fn turn() {
    let more = || {
        let mut sleep = SLEEP_NOW.get();
        // Another handler than this library's has run.
        sleep.was_stopped = CODE.replace(0) != 0 && sleep.n_kept == signals::n_kept();
        sleep.n_kept = signals::n_kept();
        let left = sleep.left_ns();
        sleep.turn = steady::of_ns(left.min(TURN_NS));
        SLEEP_NOW.set(sleep);
        left != 0 && !alarms::any_new() && sleep.n_came == alarms::n_came() && !sleep.was_stopped
    };
    while stack::on_own(more) {
        let at = SLEEP_NOW.with(Cell::as_ptr);
        let (time, mask) = unsafe { (&raw const (*at).turn, (*at).mask.as_ref()) };
        let mask = mask.map_or(std::ptr::null(), std::ptr::from_ref);
        let nothing = std::ptr::null_mut::<c_void>();
        let (number, room) = (libc::SYS_ppoll, size_of::<u64>());
        CODE.set(unsafe { libc::syscall(number, nothing, 0, time, mask, room) });
    }
}

/// Sleeps for a time, or until a signal comes, with this mask of signals meanwhile; nothing where
/// no alarm of the program's is to come.
pub(crate) fn agreed(at_most: Option<Duration>, mask: Option<&sigset_t>) -> Option<Slept> {
    let is_agreed = stack::on_own(|| {
        let is_agreed = real::is_program_asking() && alarms::are_awaited() && !python::locks();
        if is_agreed {
            let time = |it: Duration| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX);
            let mut mask = mask.copied();
            // The trap of the cycle counter comes through.
            mask.iter_mut().for_each(|it| unsafe { _ = libc::sigdelset(it, libc::SIGSEGV) });
            SLEEP_NOW.set(Sleep {
                until_ns: at_most.map(|it| now_ns().saturating_add(time(it))),
                mask,
                turn: steady::of_ns(0),
                n_came: alarms::n_came(),
                n_kept: signals::n_kept(),
                was_stopped: false,
            });
            CODE.set(0);
            files::let_out_waiting();
        }
        is_agreed
    });
    if !is_agreed {
        return None;
    }
    loop {
        turn();
        let [what, left] = stack::on_own(|| {
            let sleep = SLEEP_NOW.get();
            let row = sleep.look();
            let n_came = alarms::n_came();
            SLEEP_NOW.set(Sleep { n_came, was_stopped: false, ..sleep });
            row
        });
        if what == STOPPED {
            deliver();
            return Some(Slept::Stopped(Duration::from_nanos(left)));
        }
        signals::deliver_at_look();
        if what == OVER {
            return Some(Slept::Over);
        }
    }
}

/// Has handlers run as they do in a sleep with its mask.
fn deliver() {
    let Some(mask) = stack::on_own(|| SLEEP_NOW.get().mask) else {
        return signals::deliver_at_look();
    };
    unsafe {
        let mut before: sigset_t = std::mem::zeroed();
        cycles::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, &raw mut before);
        signals::deliver_at_look();
        cycles::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}

/// The time of a timespec; nothing if it is no time, which the system is to say.
pub(crate) fn time_of(at: &timespec) -> Option<Duration> {
    const SECOND_NS: i64 = 1_000_000_000;
    let is_time = 0 <= at.tv_sec && (0..SECOND_NS).contains(&at.tv_nsec);
    is_time.then(|| Duration::new(at.tv_sec as u64, at.tv_nsec as u32))
}

/// A signal has ended a call.
pub(crate) fn stopped() -> c_int {
    stack::on_own(|| files::failed(libc::EINTR))
}

/// The same, with what is left of the time, where the program wants it.
unsafe fn stopped_with(left: Duration, to: *mut timespec) -> c_int {
    if let Some(to) = unsafe { to.as_mut() } {
        *to = timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    }
    stopped()
}

/// See pause(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pause() -> c_int {
    type Function = unsafe extern "C" fn() -> c_int;
    if agreed(None, None).is_some() {
        return stopped();
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"pause")) };
    waiting(|| unsafe { real() })
}

/// See sigsuspend(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(mask: *const sigset_t) -> c_int {
    type Function = unsafe extern "C" fn(*const sigset_t) -> c_int;
    if agreed(None, unsafe { mask.as_ref() }).is_some() {
        return stopped();
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"sigsuspend")) };
    let mut mask = unsafe { *mask };
    if state::is_replica() {
        // The trap of the cycle counter comes through.
        unsafe { libc::sigdelset(&raw mut mask, libc::SIGSEGV) };
    }
    waiting(|| unsafe { real(&raw const mask) })
}

/// See sleep(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sleep(seconds: u32) -> u32 {
    type Function = unsafe extern "C" fn(u32) -> u32;
    match agreed(Some(Duration::from_secs(seconds.into())), None) {
        Some(Slept::Over) => return 0,
        Some(Slept::Stopped(left)) => return left.as_secs() as u32,
        None => {}
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"sleep")) };
    waiting(|| unsafe { real(seconds) })
}

/// See usleep(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn usleep(microseconds: u32) -> c_int {
    type Function = unsafe extern "C" fn(u32) -> c_int;
    match agreed(Some(Duration::from_micros(microseconds.into())), None) {
        Some(Slept::Over) => return 0,
        Some(Slept::Stopped(_)) => return stopped(),
        None => {}
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"usleep")) };
    waiting(|| unsafe { real(microseconds) })
}

type Nap = unsafe extern "C" fn(*const timespec, *mut timespec) -> c_int;

/// Sleeps as nanosleep(2) does, by the C library's function of this name where no alarm is to come.
unsafe fn nap(name: &CStr, wanted: *const timespec, left: *mut timespec) -> c_int {
    let time = unsafe { wanted.as_ref() }.and_then(time_of);
    match time.and_then(|it| agreed(Some(it), None)) {
        Some(Slept::Over) => return 0,
        Some(Slept::Stopped(rest)) => return unsafe { stopped_with(rest, left) },
        None => {}
    }
    let real = unsafe { std::mem::transmute::<usize, Nap>(next(name)) };
    waiting(|| unsafe { real(wanted, left) })
}

/// See nanosleep(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(wanted: *const timespec, left: *mut timespec) -> c_int {
    unsafe { nap(c"nanosleep", wanted, left) }
}

/// See thrd_sleep(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_sleep(wanted: *const timespec, left: *mut timespec) -> c_int {
    unsafe { nap(c"thrd_sleep", wanted, left) }
}

/// How long a sleep until a time of a clock lasts; nothing if the clock is set or no time's.
fn until(clock: libc::clockid_t, flags: c_int, wanted: &timespec) -> Option<Duration> {
    let known = [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME];
    let time = time_of(wanted).filter(|_| known.contains(&clock))?;
    if flags & libc::TIMER_ABSTIME == 0 {
        return Some(time);
    }
    let left = steady::in_ns(*wanted) - steady::in_ns(clock::true_clock(clock));
    Some(Duration::from_nanos(left.max(0) as u64))
}

/// See clock_nanosleep(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    wanted: *const timespec,
    left: *mut timespec,
) -> c_int {
    type Function =
        unsafe extern "C" fn(libc::clockid_t, c_int, *const timespec, *mut timespec) -> c_int;
    let own = unsafe { wanted.as_ref() }.and_then(|it| steady::sleep_time(clock, flags, *it));
    let until_at = own.as_ref().map_or(wanted, std::ptr::from_ref);
    if alarms::are_awaited() {
        let time =
            stack::on_own(|| unsafe { until_at.as_ref() }.and_then(|it| until(clock, flags, it)));
        match time.and_then(|it| agreed(Some(it), None)) {
            Some(Slept::Over) => return 0,
            Some(Slept::Stopped(rest)) => {
                let to = if flags & libc::TIMER_ABSTIME == 0 { left } else { std::ptr::null_mut() };
                unsafe { stopped_with(rest, to) };
                return libc::EINTR;
            }
            None => {}
        }
    }
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"clock_nanosleep")) };
    waiting(|| unsafe { real(clock, flags, until_at, left) })
}
