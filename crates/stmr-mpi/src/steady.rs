//! Clocks that are never set, where replicas of a process do not have the same.
//!
//! Each host's begin when it does, and each process's time is its own.  A program reads those of
//! the host of `selvedge mpirun`, as far as the hosts agree about the time of day, and never one
//! that was before the last: whoever answers, an hour is an hour.  Who waits until such a time does
//! so by its own host's clock.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, sem_t, timespec};

use crate::clock;
use crate::real;
use crate::stack;
use crate::told::told;

const SECOND_NS: i64 = 1_000_000_000;

/// A time in nanoseconds.
pub(crate) fn in_ns(at: timespec) -> i64 {
    at.tv_sec.saturating_mul(SECOND_NS).saturating_add(at.tv_nsec)
}

pub(crate) fn of_ns(ns: i64) -> timespec {
    timespec { tv_sec: ns.div_euclid(SECOND_NS), tv_nsec: ns.rem_euclid(SECOND_NS) }
}

/// Whether a clock goes on from the start of its host, and nobody sets it.
fn counts_from_start(clock: clockid_t) -> bool {
    [
        libc::CLOCK_MONOTONIC,
        libc::CLOCK_MONOTONIC_RAW,
        libc::CLOCK_MONOTONIC_COARSE,
        libc::CLOCK_BOOTTIME,
    ]
    .contains(&clock)
}

/// By how much the job's clocks from the start of a host are before this host's, in nanoseconds; 0
/// where all of the job is on one host.
fn ahead_ns() -> i64 {
    static AHEAD_NS: OnceLock<i64> = OnceLock::new();
    *AHEAD_NS.get_or_init(|| {
        let Some(told) = told().filter(|it| it.secret.is_some()) else { return 0 };
        let native = |clock: clockid_t| {
            let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
            unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut now) };
            in_ns(now)
        };
        let began = native(libc::CLOCK_REALTIME) - native(libc::CLOCK_MONOTONIC);
        began - (told.epoch[0] as i64 - told.epoch[1] as i64)
    })
}

/// A time of this host's clock, as all of the job have it.
pub(crate) fn of_job(clock: clockid_t, own: timespec) -> timespec {
    if counts_from_start(clock) { of_ns(in_ns(own) + ahead_ns()) } else { own }
}

/// What a process was shown of numbers that only grow.
pub(crate) struct Shown<const N: usize> {
    told: [AtomicI64; N],
    /// When this replica first made a look since then that who leads did not make, in milliseconds;
    /// 0 if it has made all.
    since_ms: AtomicU64,
    /// This replica's own at the last of those.
    own: [AtomicI64; N],
    /// What was shown beyond what was told, until that has come as far.
    beyond: [AtomicI64; N],
}

/// For so long a clock stands still where who leads does not look at it, in milliseconds.  Who
/// looks on for longer waits for a time to come, as all replicas do where who leads erred and left
/// out looks.
const STILL_MS: u64 = 2_000;

impl<const N: usize> Shown<N> {
    pub(crate) const fn none() -> Self {
        Self {
            told: [const { AtomicI64::new(0) }; N],
            own: [const { AtomicI64::new(0) }; N],
            since_ms: AtomicU64::new(0),
            beyond: [const { AtomicI64::new(0) }; N],
        }
    }

    fn all(of: &[AtomicI64; N]) -> [i64; N] {
        std::array::from_fn(|it| of[it].load(Ordering::Relaxed))
    }

    fn put(of: &[AtomicI64; N], values: [i64; N]) {
        of.iter().zip(values).for_each(|(to, it)| to.store(it, Ordering::Relaxed));
    }

    /// What this replica would tell next where it has `own`.
    pub(crate) fn or_more(&self, own: [i64; N]) -> [i64; N] {
        let [told, beyond] = [&self.told, &self.beyond].map(Self::all);
        std::array::from_fn(|it| told[it].max(beyond[it]).max(own[it]))
    }

    /// What is shown at a look: what was told; or, where who leads has made none, what stands still
    /// until its next.  A clock that went on by itself stands still until it is overtaken.
    pub(crate) fn show(&self, seen: Option<[i64; N]>, own: impl FnOnce() -> [i64; N]) -> [i64; N] {
        let beyond = Self::all(&self.beyond);
        let shown = match seen {
            Some(told) => {
                self.since_ms.store(0, Ordering::Relaxed);
                Self::put(&self.told, told);
                let is_ahead = |it: usize| if told[it] < beyond[it] { beyond[it] } else { 0 };
                Self::put(&self.beyond, std::array::from_fn(is_ahead));
                told
            }
            None => {
                let told = Self::all(&self.told);
                let gone_on = if told == [0; N] { Some(own()) } else { self.gone_on(own()) };
                if let Some(gone_on) = gone_on {
                    Self::put(&self.beyond, gone_on);
                    return gone_on;
                }
                told
            }
        };
        std::array::from_fn(|it| shown[it].max(beyond[it]))
    }

    /// How far it has gone on by itself, if it has stood still for long enough.
    fn gone_on(&self, own: [i64; N]) -> Option<[i64; N]> {
        let now_ms = clock::coarse_ms();
        let since_ms = match self.since_ms.load(Ordering::Relaxed) {
            0 => now_ms.max(1),
            it => it,
        };
        self.since_ms.store(since_ms, Ordering::Relaxed);
        let [told, beyond, then] = [&self.told, &self.beyond, &self.own].map(Self::all);
        Self::put(&self.own, own);
        let base = |it: usize| told[it].max(beyond[it]);
        let since = |it: usize| (own[it] - then[it]).max(0);
        (since_ms + STILL_MS <= now_ms).then(|| std::array::from_fn(|it| base(it) + since(it)))
    }
}

/// What was shown of each clock that is on every machine.
static CLOCKS: [Shown<1>; 8] = [const { Shown::none() }; 8];

fn known(clock: clockid_t) -> Option<&'static Shown<1>> {
    usize::try_from(clock).ok().and_then(|it| CLOCKS.get(it))
}

/// What this replica would tell of a clock where it shows `own`.
pub(crate) fn onward(clock: clockid_t, own: timespec) -> timespec {
    let is_of_process =
        [libc::CLOCK_PROCESS_CPUTIME_ID, libc::CLOCK_THREAD_CPUTIME_ID].contains(&clock);
    let known = known(clock).filter(|_| is_of_process || counts_from_start(clock));
    known.map_or(own, |it| of_ns(it.or_more([in_ns(own)])[0]))
}

/// What a clock shows at a look, of which this replica has `own`.
pub(crate) fn shown(
    clock: clockid_t,
    seen: Option<timespec>,
    own: impl Fn() -> timespec,
) -> timespec {
    match known(clock) {
        None => seen.unwrap_or_else(own),
        Some(known) => of_ns(known.show(seen.map(|it| [in_ns(it)]), || [in_ns(own())])[0]),
    }
}

/// Until when this host's clock has to go for a time that the program has read of the job's;
/// nothing if it is the same.
fn own_time(clock: clockid_t, until: timespec) -> Option<timespec> {
    if !counts_from_start(clock) {
        return None;
    }
    stack::on_own(|| {
        let ahead_ns = ahead_ns();
        let is_other = ahead_ns != 0 && is_shared();
        is_other.then(|| of_ns(in_ns(until).saturating_sub(ahead_ns).max(0)))
    })
}

/// The same where only the time tells which clock is meant: no host has run since 1990.
fn own_time_of_either(until: timespec) -> Option<timespec> {
    const SINCE_START_MAX: i64 = 20 * 365 * 24 * 3600;
    if SINCE_START_MAX < until.tv_sec { None } else { own_time(libc::CLOCK_MONOTONIC, until) }
}

/// Whether who asks reads the job's clocks.
fn is_shared() -> bool {
    real::is_program_asking() || real::early_asking().is_some()
}

/// What the C library is given for `until`: `own`, or `until` itself.
fn given(until: *const timespec, own: Option<&timespec>) -> *const timespec {
    own.map_or(until, std::ptr::from_ref)
}

/// See clock_nanosleep(2): what it is called with, by this host's clock.
pub(crate) fn sleep_time(clock: clockid_t, flags: c_int, until: timespec) -> Option<timespec> {
    if flags & libc::TIMER_ABSTIME == 0 { None } else { own_time(clock, until) }
}

/// See pthread_cond_timedwait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    type Function =
        unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> c_int;
    let own = own_time_of_either(unsafe { *until });
    let native =
        unsafe { std::mem::transmute::<usize, Function>(real::next(c"pthread_cond_timedwait")) };
    unsafe { native(condition, mutex, given(until, own.as_ref())) }
}

/// See pthread_cond_clockwait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    type Function = unsafe extern "C" fn(
        *mut pthread_cond_t,
        *mut pthread_mutex_t,
        clockid_t,
        *const timespec,
    ) -> c_int;
    let own = own_time(clock, unsafe { *until });
    let native =
        unsafe { std::mem::transmute::<usize, Function>(real::next(c"pthread_cond_clockwait")) };
    unsafe { native(condition, mutex, clock, given(until, own.as_ref())) }
}

/// See pthread_mutex_clocklock(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut pthread_mutex_t, clockid_t, *const timespec) -> c_int;
    let own = own_time(clock, unsafe { *until });
    let native =
        unsafe { std::mem::transmute::<usize, Function>(real::next(c"pthread_mutex_clocklock")) };
    unsafe { native(mutex, clock, given(until, own.as_ref())) }
}

/// See sem_clockwait(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_clockwait(
    semaphore: *mut sem_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut sem_t, clockid_t, *const timespec) -> c_int;
    let own = own_time(clock, unsafe { *until });
    let native = unsafe { std::mem::transmute::<usize, Function>(real::next(c"sem_clockwait")) };
    unsafe { native(semaphore, clock, given(until, own.as_ref())) }
}

/// A timer as the program sets it, by this host's clock where it is to ring at a time of the job's.
pub(crate) fn own_timer(
    wanted: *const libc::itimerspec,
    is_absolute: bool,
) -> Option<libc::itimerspec> {
    let row = unsafe { wanted.as_ref() }.filter(|it| is_absolute && in_ns(it.it_value) != 0)?;
    // One whose time has come already rings at once, and 0 would be none.
    let at = of_ns(in_ns(own_time_of_either(row.it_value)?).max(1));
    Some(libc::itimerspec { it_value: at, ..*row })
}

/// See timerfd_settime(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timerfd_settime(
    timer: c_int,
    flags: c_int,
    wanted: *const libc::itimerspec,
    before: *mut libc::itimerspec,
) -> c_int {
    type Function =
        unsafe extern "C" fn(c_int, c_int, *const libc::itimerspec, *mut libc::itimerspec) -> c_int;
    let own = own_timer(wanted, flags & libc::TFD_TIMER_ABSTIME != 0);
    let wanted = own.as_ref().map_or(wanted, std::ptr::from_ref);
    let native = unsafe { std::mem::transmute::<usize, Function>(real::next(c"timerfd_settime")) };
    unsafe { native(timer, flags, wanted, before) }
}

/// `std::future::wait_for` and `wait_until` of C++ ask the kernel themselves: waits while `at`
/// holds `value`, until a time if there is one; false if it has come.
#[unsafe(export_name = "_ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyEPjjb\
                        NSt6chrono8durationIlSt5ratioILl1ELl1EEEE\
                        NS2_IlS3_ILl1ELl1000000000EEEE")]
pub unsafe extern "C" fn wait_for_future(
    _this: *mut c_void,
    at: *mut c_uint,
    value: c_uint,
    has_end: bool,
    seconds: c_long,
    nanoseconds: c_long,
) -> bool {
    const ANYBODY: c_uint = c_uint::MAX;
    let until = timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let until = has_end.then(|| own_time(libc::CLOCK_MONOTONIC, until).unwrap_or(until));
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // The library wakes by the operation for memory that processes may share.
    let wait = libc::FUTEX_WAIT_BITSET;
    let nobody: *const c_uint = std::ptr::null();
    let code = unsafe { libc::syscall(libc::SYS_futex, at, wait, value, until, nobody, ANYBODY) };
    code == 0 || crate::files::last_error() != libc::ETIMEDOUT
}
