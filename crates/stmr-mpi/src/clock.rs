//! What the C library answers differently to each replica: clocks, times, random bytes, numbers of
//! processes.  The meta's answer is all replicas' answer.  Clocks may be asked more often in one
//! than in another; where the meta did not ask, each goes on by its own.
//!
//! Only the thread that calls MPI is served: others have no order that replicas could share.  What
//! MPI itself asks gets the true answer.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use libc::{clockid_t, pid_t, rusage, size_t, ssize_t, time_t, timespec, timeval};
use selvedge_stmr::digest::Digest;
use selvedge_stmr::replica::Question;

use crate::input::{self, Came};
use crate::own;
use crate::python;
use crate::real::{self, Inside};
use crate::sends::Source;
use crate::signals;
use crate::sleeps::{self, Slept};
use crate::stack;
use crate::state;
use crate::steady::{self, Shown};
use crate::told::{Told, native_pid, told};

/// The questions for the host's name, as the system and MPI have it, the parent's number and cores.
pub(crate) const PROCESSOR: u64 = 150;
const HOST: u64 = 151;
const PARENT: u64 = 152;
pub(crate) const CORES: u64 = 160;

/// Questions from here on are for random bytes, those before for times.
const RANDOM: u64 = 200;

/// The meta's answer; `which` is the question.
pub(crate) fn shared(which: u64, answer: impl Fn() -> Vec<u8>) -> Vec<u8> {
    let _inside = Inside::enter();
    state::with(|state| {
        state.sources.insert(match which {
            RANDOM.. => Source::Random,
            CORES.. => Source::Core,
            PARENT => Source::Pid,
            _ => Source::Clock,
        });
        if which < RANDOM {
            state.look_or_recall(which, answer)
        } else {
            state.settled(&[u64::MAX - 1, which], answer)
        }
    })
}

/// What the meta sees at a look at a clock, by an instruction or else by the calls that are under
/// way; nothing where it made no such look.
fn seen(which: u64, at: Option<usize>, answer: impl Fn() -> Vec<u8>) -> Option<Vec<u8>> {
    let _inside = Inside::enter();
    state::with(|state| {
        state.sources.insert(Source::Clock);
        let site = match at {
            Some(at) => state.sites.name(at),
            None => state.sites.find(),
        };
        state.look(Question { clock: which, site }, answer)
    })
}

/// The program begins a thread, which may look before this one goes on.
pub(crate) fn begin_thread() {
    if real::is_program_asking() {
        let _inside = Inside::enter();
        state::with(|state| state.replica.begin_thread());
    }
}

fn bytes_of<T: Copy>(value: &T) -> Vec<u8> {
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }.to_vec()
}

fn value_of<T: Copy>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>(), "the meta answered another question");
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

/// A plain value that the meta sees.
pub(crate) fn seen_value<T: Copy>(which: u64, answer: impl Fn() -> T) -> Option<T> {
    seen(which, None, || bytes_of(&answer())).map(|it| value_of(&it))
}

/// The same at an instruction that looks by itself.
pub(crate) fn seen_at<T: Copy>(at: usize, which: u64, answer: impl Fn() -> T) -> Option<T> {
    seen(which, Some(at), || bytes_of(&answer())).map(|it| value_of(&it))
}

/// A plain value that is the meta's.
pub(crate) fn shared_value<T: Copy>(which: u64, answer: impl Fn() -> T) -> T {
    value_of(&shared(which, || bytes_of(&answer())))
}

type Clock = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;

/// The C library's own function, which looks at memory and makes no system call; ours is before it
/// for everybody else.  0 until it was looked for.
static NATIVE: AtomicUsize = AtomicUsize::new(0);

/// Looks for the C library's own clock, before anything else of the program runs.
pub(crate) fn prepare() {
    let native = unsafe { libc::dlsym(libc::RTLD_NEXT, c"clock_gettime".as_ptr()) };
    NATIVE.store(native as usize, Ordering::Relaxed);
}

/// The time of a clock, as it is here.
pub(crate) fn true_clock(clock: clockid_t) -> timespec {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { read_clock(clock, &raw mut now) };
    now
}

/// What clock_gettime(2) is without replicas.
unsafe fn read_clock(clock: clockid_t, to: *mut timespec) -> c_int {
    let native = NATIVE.load(Ordering::Relaxed);
    // What it reads of the processor would fall into a trap that is on.
    if native == 0 || crate::cycles::is_on() {
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, to) as c_int };
    }
    let native = unsafe { std::mem::transmute::<usize, Clock>(native) };
    unsafe { native(clock, to) }
}

fn true_ns(clock: clockid_t) -> u64 {
    steady::in_ns(true_clock(clock)) as u64
}

/// The same in milliseconds, as it was when the kernel's clock last ticked.
pub(crate) fn coarse_ms() -> u64 {
    now_ms(libc::CLOCK_MONOTONIC_COARSE)
}

/// How long this thread has computed, in nanoseconds.
pub(crate) fn own_ns() -> u64 {
    true_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// This process's own time, which nothing sent may depend on, in milliseconds.
pub(crate) fn now_ms(clock: clockid_t) -> u64 {
    true_ns(clock) / 1_000_000
}

/// What a replica reads of a clock before it can ask the others: the launcher's start, and a
/// microsecond more each time.
fn early_clock(told: &Told, clock: clockid_t) -> timespec {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    let since = 1000 * (1 + TICKS.fetch_add(1, Ordering::Relaxed));
    let ns = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
            told.epoch[0] + since
        }
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => since,
        _ => told.epoch[1] + since,
    };
    steady::of_ns(ns as i64)
}

/// Clocks that there are on every machine.
const COMMON: std::ops::RangeInclusive<clockid_t> = libc::CLOCK_REALTIME..=libc::CLOCK_BOOTTIME;

/// The question for a clock of another thread or process, whose name holds that one's number.
const OTHERS: u64 = 99;

/// The meta's time of a clock, where that is wanted and there is such a clock.
fn shared_now(clock: clockid_t) -> Option<timespec> {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    if !COMMON.contains(&clock) && unsafe { read_clock(clock, &raw mut now) } != 0 {
        return None;
    }
    let which = u64::try_from(clock).map_or(OTHERS, |it| 1 + it);
    if let Some(told) = real::early_asking() {
        return (!python::locks()).then(|| early_clock(told, clock));
    }
    (real::is_program_asking() && !python::locks()).then(|| {
        let answer = || steady::onward(clock, steady::of_job(clock, true_clock(clock)));
        steady::shown(clock, seen_value(which, answer), || true_clock(clock))
    })
}

/// The time of a clock, the meta's where that is wanted.
pub(crate) fn now(clock: clockid_t) -> timespec {
    shared_now(clock).unwrap_or_else(|| true_clock(clock))
}

/// Looks on this library's stack; what is due then comes to the program on its own.
pub(crate) fn looking<R>(look: impl FnOnce() -> R) -> R {
    let answer = stack::on_own(look);
    signals::deliver_at_look();
    answer
}

/// See clock_gettime(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timespec_get(to: *mut timespec, base: c_int) -> c_int {
    /// The only base that there is.
    const UTC: c_int = 1;
    let is_known = base == UTC && unsafe { clock_gettime(libc::CLOCK_REALTIME, to) } == 0;
    if is_known { base } else { 0 }
}

/// See above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, to: *mut timespec) -> c_int {
    looking(|| {
        let Some(now) = shared_now(clock) else { return unsafe { read_clock(clock, to) } };
        unsafe { *to = now };
        0
    })
}

/// See gettimeofday(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(to: *mut timeval, _zone: *mut c_void) -> c_int {
    looking(|| {
        let now = now(libc::CLOCK_REALTIME);
        if !to.is_null() {
            unsafe { *to = timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1000 } };
        }
        0
    })
}

/// See time(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(to: *mut time_t) -> time_t {
    looking(|| {
        let now = now(libc::CLOCK_REALTIME).tv_sec;
        if !to.is_null() {
            unsafe { *to = now };
        }
        now
    })
}

/// What ftime(3) writes: `timeb` of sys/timeb.h.
#[repr(C)]
pub struct Timeb {
    seconds: time_t,
    milliseconds: u16,
    zone: [i16; 2],
}

/// See ftime(3), which old programs call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftime(to: *mut Timeb) -> c_int {
    looking(|| {
        let now = now(libc::CLOCK_REALTIME);
        let milliseconds = (now.tv_nsec / 1_000_000) as u16;
        unsafe { *to = Timeb { seconds: now.tv_sec, milliseconds, zone: [0; 2] } };
        0
    })
}

/// See clock(3).
#[unsafe(no_mangle)]
pub extern "C" fn clock() -> c_long {
    looking(|| {
        let used = now(libc::CLOCK_PROCESS_CPUTIME_ID);
        used.tv_sec * 1_000_000 + used.tv_nsec / 1000
    })
}

/// What a process used of its processors: never less than was told of it, in any replica's answer.
fn used<const N: usize>(
    which: u64,
    shown: &Shown<N>,
    own: impl Fn() -> [i64; N],
) -> Option<[i64; N]> {
    if real::early_asking().is_some() {
        return Some([0; N]);
    }
    real::is_program_asking().then(|| shown.show(seen_value(which, || shown.or_more(own())), &own))
}

/// See times(2): when it counts from is anybody's choice, and here that of CLOCK_MONOTONIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(to: *mut libc::tms) -> c_long {
    /// A hundredth of a second, in nanoseconds.
    const TICK_NS: i64 = 10_000_000;
    static SHOWN: Shown<4> = Shown::none();
    looking(|| {
        let ask = || {
            let mut row: libc::tms = unsafe { std::mem::zeroed() };
            let ticks = unsafe { libc::syscall(libc::SYS_times, &raw mut row) };
            (row, ticks)
        };
        let own = || {
            let (row, _) = ask();
            [row.tms_utime, row.tms_stime, row.tms_cutime, row.tms_cstime]
        };
        let (row, ticks) = match used(100, &SHOWN, own) {
            Some([tms_utime, tms_stime, tms_cutime, tms_cstime]) => {
                let ticks = steady::in_ns(now(libc::CLOCK_MONOTONIC)) / TICK_NS;
                (libc::tms { tms_utime, tms_stime, tms_cutime, tms_cstime }, ticks)
            }
            None => ask(),
        };
        if !to.is_null() {
            unsafe { *to = row };
        }
        ticks
    })
}

/// See getrusage(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrusage(who: c_int, to: *mut rusage) -> c_int {
    const USED: usize = size_of::<rusage>() / size_of::<i64>();
    const SECOND_US: i64 = 1_000_000;
    static SHOWN: [Shown<USED>; 3] = [const { Shown::none() }; 3];
    looking(|| {
        let ask = || {
            let mut row: rusage = unsafe { std::mem::zeroed() };
            let code = unsafe { libc::syscall(libc::SYS_getrusage, who, &raw mut row) };
            (row, code as c_int)
        };
        // They are numbered from -1 on.
        let shown = usize::try_from(i64::from(who) + 1).ok().and_then(|it| SHOWN.get(it));
        let own = || {
            // Two times of two words, and counts.
            let mut words: [i64; USED] = value_of(&bytes_of(&ask().0));
            for at in [0, 2] {
                words[at] = words[at] * SECOND_US + std::mem::take(&mut words[at + 1]);
            }
            words
        };
        let (row, code) = match shown.and_then(|it| used(101 + who as u64, it, own)) {
            Some(mut words) => {
                for at in [0, 2] {
                    (words[at], words[at + 1]) = (words[at] / SECOND_US, words[at] % SECOND_US);
                }
                (value_of(&bytes_of(&words)), 0)
            }
            None => ask(),
        };
        if code == 0 {
            unsafe { *to = row };
        }
        code
    })
}

/// The meta's answer to one of the program's questions once it can be had; `which` is the question.
fn seen_row<T: Copy>(which: u64, write: impl Fn(*mut T)) -> T {
    let ask = || {
        let mut row: T = unsafe { std::mem::zeroed() };
        write(&raw mut row);
        row
    };
    if real::is_program_asking() { seen_value(which, ask).unwrap_or_else(ask) } else { ask() }
}

/// See sysinfo(2): how long the host has run, how much memory is free, how busy it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysinfo(to: *mut libc::sysinfo) -> c_int {
    stack::on_own(|| {
        let row = seen_row(103, |row| unsafe {
            libc::syscall(libc::SYS_sysinfo, row);
        });
        unsafe { *to = row };
        0
    })
}

/// See getitimer(2): how long until an alarm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getitimer(which: c_int, to: *mut libc::itimerval) -> c_int {
    const LAST: c_int = libc::ITIMER_PROF;
    stack::on_own(|| {
        if !(0..=LAST).contains(&which) {
            return crate::files::failed(libc::EINVAL);
        }
        let row = seen_row(104 + which as u64, |row| unsafe {
            libc::syscall(libc::SYS_getitimer, which, row);
        });
        unsafe { *to = row };
        0
    })
}

/// The question for what the kernel knows of a clock that others keep right.
const STEERED: u64 = 110;

/// See clock_adjtime(2): what the kernel knows of a clock.  If the program sets it, the meta does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_adjtime(clock: clockid_t, to: *mut libc::timex) -> c_int {
    stack::on_own(|| {
        let asked = unsafe { *to };
        let ask = || {
            let mut row = asked;
            let at = &raw mut row;
            let code = unsafe { libc::syscall(libc::SYS_clock_adjtime, clock, at) } as c_int;
            (row, code, crate::files::last_error())
        };
        let (mut row, code, error) = if real::is_program_asking() {
            seen_value(STEERED, ask).unwrap_or_else(ask)
        } else {
            ask()
        };
        if let Some(told) = real::early_asking() {
            let now = early_clock(told, clock);
            row.time = timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1000 };
        }
        if code < 0 {
            return crate::files::failed(error);
        }
        unsafe { *to = row };
        code
    })
}

/// See adjtimex(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adjtimex(to: *mut libc::timex) -> c_int {
    unsafe { clock_adjtime(libc::CLOCK_REALTIME, to) }
}

/// See adjtimex(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntp_adjtime(to: *mut libc::timex) -> c_int {
    unsafe { clock_adjtime(libc::CLOCK_REALTIME, to) }
}

/// See ntp_gettime(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntp_gettimex(to: *mut libc::ntptimeval) -> c_int {
    let mut row: libc::timex = unsafe { std::mem::zeroed() };
    let code = unsafe { clock_adjtime(libc::CLOCK_REALTIME, &raw mut row) };
    if 0 <= code {
        unsafe {
            (*to).time = row.time;
            (*to).maxerror = row.maxerror;
            (*to).esterror = row.esterror;
            (*to).tai = row.tai.into();
        }
    }
    code
}

/// The same as the C library knew it before it told the distance to atomic time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntp_gettime(to: *mut libc::ntptimeval) -> c_int {
    let mut row: libc::ntptimeval = unsafe { std::mem::zeroed() };
    let code = unsafe { ntp_gettimex(&raw mut row) };
    if 0 <= code {
        // Programs have room for these three alone.
        unsafe {
            (*to).time = row.time;
            (*to).maxerror = row.maxerror;
            (*to).esterror = row.esterror;
        }
    }
    code
}

/// See select(2): what is left of the time is the meta's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    n: c_int,
    reads: *mut libc::fd_set,
    writes: *mut libc::fd_set,
    faults: *mut libc::fd_set,
    left: *mut timeval,
) -> c_int {
    const SECOND_US: i64 = 1_000_000;
    type Sets = *mut libc::fd_set;
    type Select = unsafe extern "C" fn(c_int, Sets, Sets, Sets, *mut timeval) -> c_int;
    let input = stack::on_own(|| unsafe {
        let at_most = left.as_ref().map(|it| timespec {
            tv_sec: it.tv_sec.saturating_add(it.tv_usec / SECOND_US),
            // A time before none is none, whatever the seconds are.
            tv_nsec: if it.tv_usec < 0 { -1 } else { it.tv_usec % SECOND_US * 1000 },
        });
        input::select(n, reads, [writes, faults], at_most)
    });
    let keep = |rest: Duration| {
        let (tv_sec, tv_usec) = (rest.as_secs() as time_t, rest.subsec_micros().into());
        unsafe { left.as_mut() }.into_iter().for_each(|it| *it = timeval { tv_sec, tv_usec });
    };
    match input {
        Some(Came::Input((found, rest))) => {
            keep(rest);
            return found;
        }
        Some(Came::Signal { left: rest, .. }) => {
            keep(rest);
            return input::end_by_signal();
        }
        None => {}
    }
    let native = unsafe { std::mem::transmute::<usize, Select>(real::next(c"select")) };
    let call = || unsafe { native(n, reads, writes, faults, left) };
    let found = if n == 0 {
        // Without a descriptor it sleeps.
        let time =
            unsafe { left.as_ref() }.map(|it| it.tv_sec.saturating_mul(SECOND_US) + it.tv_usec);
        let time = time.map(|it| u64::try_from(it).map(Duration::from_micros));
        match time.transpose().ok().and_then(|it| sleeps::agreed(it, None)) {
            Some(Slept::Over) => {
                keep(Duration::ZERO);
                return 0;
            }
            Some(Slept::Stopped(rest)) => {
                keep(rest);
                return sleeps::stopped();
            }
            None => signals::waiting(call),
        }
    } else {
        call()
    };
    if !left.is_null() {
        let error = crate::files::last_error();
        stack::on_own(|| unsafe { *left = seen_row(108, |row| *row = *left) });
        unsafe { *libc::__errno_location() = error };
    }
    found
}

/// See wait4(2): what a child used is told of the meta's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wait4(
    pid: pid_t,
    status: *mut c_int,
    how: c_int,
    used: *mut rusage,
) -> pid_t {
    let got = unsafe { libc::syscall(libc::SYS_wait4, pid, status, how, used) as pid_t };
    if 0 < got && !used.is_null() {
        stack::on_own(|| unsafe { *used = seen_row(107, |row| *row = *used) });
    }
    got
}

/// See wait3(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wait3(status: *mut c_int, how: c_int, used: *mut rusage) -> pid_t {
    unsafe { wait4(-1, status, how, used) }
}

/// Random bytes before a replica can ask the others.
fn early_random(told: &Told, length: usize) -> Vec<u8> {
    static WORDS: AtomicU64 = AtomicU64::new(0);
    let word = |_| {
        let n = WORDS.fetch_add(1, Ordering::Relaxed);
        let row = [told.dice, told.rank as u64, n].map(u64::to_le_bytes).concat();
        Digest::of(&row).0.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(16)).flat_map(word).collect();
    bytes.truncate(length);
    bytes
}

fn true_random(length: usize, flags: c_uint) -> Result<Vec<u8>, ssize_t> {
    let mut bytes = vec![0_u8; length];
    let got =
        unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), length, flags) as ssize_t };
    if got < 0 {
        return Err(got);
    }
    bytes.truncate(got as usize);
    Ok(bytes)
}

/// See getrandom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(to: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    stack::on_own(|| {
        let bytes = match real::early_asking() {
            Some(told) => early_random(told, length),
            None if real::is_program_asking() => {
                shared(RANDOM, || true_random(length, flags).unwrap_or_default())
            }
            None => {
                return unsafe { libc::syscall(libc::SYS_getrandom, to, length, flags) as ssize_t };
            }
        };
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len()) };
        bytes.len() as ssize_t
    })
}

/// See getentropy(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(to: *mut c_void, length: size_t) -> c_int {
    let got = unsafe { getrandom(to, length, 0) };
    if got == length as ssize_t { 0 } else { -1 }
}

/// See arc4random(3).
#[unsafe(no_mangle)]
pub extern "C" fn arc4random() -> c_uint {
    let mut word = 0;
    unsafe { arc4random_buf((&raw mut word).cast(), size_of::<c_uint>()) };
    word
}

/// See arc4random(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arc4random_buf(to: *mut c_void, length: size_t) {
    let mut done = 0;
    while done < length {
        let got = unsafe { getrandom(to.byte_add(done), length - done, 0) };
        done += usize::try_from(got).unwrap_or(0);
    }
}

/// See arc4random(3): below `end`, each with the same chance.
#[unsafe(no_mangle)]
pub extern "C" fn arc4random_uniform(end: c_uint) -> c_uint {
    let skip = if end < 2 { return 0 } else { end.wrapping_neg() % end };
    loop {
        let word = arc4random();
        if skip <= word {
            return word % end;
        }
    }
}

/// See getpid(2): all replicas of a process have one number, so that seeds and names made from it
/// are equal, and all threads of the program's have it.  To drivers of accelerators it is the same
/// one: CUDA's holds it against what CUDA's runtime asks, which is a part of the program.
#[unsafe(no_mangle)]
pub extern "C" fn getpid() -> pid_t {
    stack::on_own(|| {
        let is_mpi = real::is_mpi_asking();
        let is_early = || state::early().is_some() && real::is_loaded();
        if !is_mpi && (state::is_ordered() || is_early()) {
            let _inside = Inside::enter();
            state::with(|state| state.sources.insert(Source::Pid));
        }
        let shared = if is_mpi { None } else { own::tell() };
        shared.unwrap_or_else(|| native_pid() as pid_t)
    })
}

/// See getppid(2): who started the job, as mpirun does in a run without replicas on one host.
#[unsafe(no_mangle)]
pub extern "C" fn getppid() -> pid_t {
    stack::on_own(|| {
        let own = || {
            let parent = unsafe { libc::syscall(libc::SYS_getppid) as pid_t };
            own::tell_child(parent).unwrap_or(parent)
        };
        let told = told().filter(|it| it.first == Some(it.pid));
        let ask = || told.map_or_else(own, |it| it.parent as pid_t);
        match real::early_asking() {
            Some(_) => ask(),
            None if real::is_program_asking() => shared_value(PARENT, ask),
            None => own(),
        }
    })
}

/// What the system calls itself and its host: the meta's.
fn system_name() -> libc::utsname {
    let ask = || {
        let mut row: libc::utsname = unsafe { std::mem::zeroed() };
        unsafe { libc::syscall(libc::SYS_uname, &raw mut row) };
        row
    };
    if real::is_program_asking() { shared_value(HOST, ask) } else { ask() }
}

/// See uname(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn uname(to: *mut libc::utsname) -> c_int {
    stack::on_own(|| {
        unsafe { *to = system_name() };
        0
    })
}

/// See gethostname(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gethostname(to: *mut c_char, room: size_t) -> c_int {
    stack::on_own(|| {
        let row = system_name().nodename;
        let length = row.iter().position(|it| *it == 0).unwrap_or(row.len() - 1) + 1;
        let n = length.min(room);
        unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), to, n) };
        if length <= room { 0 } else { crate::files::failed(libc::ENAMETOOLONG) }
    })
}

/// `std::random_device` of C++ reads the processor's own dice.
#[unsafe(no_mangle)]
pub extern "C" fn _ZNSt13random_device9_M_getvalEv(_this: *mut c_void) -> c_uint {
    stack::on_own(|| {
        let dice = || {
            let bytes = true_random(4, 0).unwrap_or_default();
            bytes.iter().fold(0, |sum: c_uint, it| sum << 8 | c_uint::from(*it))
        };
        match real::early_asking() {
            Some(told) => {
                early_random(told, 4).iter().fold(0, |sum, it| sum << 8 | c_uint::from(*it))
            }
            None if real::is_program_asking() => shared_value(RANDOM + 1, dice),
            None => dice(),
        }
    })
}
