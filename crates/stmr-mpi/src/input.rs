//! Standard input: whether some is there, and how much of it a call is given, is the meta's answer.
//!
//! The bytes are the same in all replicas, and come to each through a pipe of its own, to one
//! earlier than to another.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libc::{nfds_t, pollfd, size_t, ssize_t, timespec};
use selvedge_stmr::message::EventKind;

use crate::clock;
use crate::files::{bytes_of, failed, last_error, let_out_waiting, native_stat, words};
use crate::own;
use crate::real::{self, Inside};
use crate::signals;
use crate::sleeps::{self, Slept};
use crate::stack;
use crate::state::{self, State};
use crate::streams::next;

const INPUT: u64 = u64::MAX - 5;

/// So many descriptors may be standard input's.
const DESCRIPTORS_MAX: usize = 1 << 10;

/// Which are: the first, and what the program has made of it, until it is closed.
static INPUTS: [AtomicBool; DESCRIPTORS_MAX] = {
    let mut rows = [const { AtomicBool::new(false) }; DESCRIPTORS_MAX];
    rows[libc::STDIN_FILENO as usize] = AtomicBool::new(true);
    rows
};

fn mark_of(fd: c_int) -> Option<&'static AtomicBool> {
    INPUTS.get(usize::try_from(fd).ok()?)
}

/// Whether it is one of standard input's.
fn is_input(fd: c_int) -> bool {
    mark_of(fd).is_some_and(|it| it.load(Ordering::Relaxed))
}

/// Says whether it is.  A process that the program has forked may share this memory.
fn mark(fd: c_int, is_it: bool) {
    if let Some(it) = mark_of(fd).filter(|_| is_input(fd) != is_it && own::is_here()) {
        it.store(is_it, Ordering::Relaxed);
    }
}

/// The program has made the second descriptor of the first.
pub(crate) fn follow(from: c_int, to: c_int) {
    mark(to, is_input(from) && is_pipe(from));
}

/// The program closes it.
pub(crate) fn forget(fd: c_int) {
    mark(fd, false);
}

/// The program has opened this by its name, which may be that of a descriptor.
pub(crate) fn note_opened(fd: c_int, path: &CStr) {
    let path = path.to_bytes();
    let number = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"]
        .iter()
        .find_map(|it| path.strip_prefix(it.as_bytes()));
    let from = match number {
        _ if path == b"/dev/stdin" => Some(libc::STDIN_FILENO),
        Some(it) => std::str::from_utf8(it).ok().and_then(|it| it.parse().ok()),
        None => None,
    };
    mark(fd, from.is_some_and(|it| is_input(it) && is_pipe(it)));
}

/// Whether what comes in there comes as it is sent: to a pipe, and not from a file.  What was
/// standard input's may have gone, as by fclose(3), and its number be another pipe's.
fn is_pipe(fd: c_int) -> bool {
    static FIRST: OnceLock<[u64; 2]> = OnceLock::new();
    let Some(row) = native_stat(fd) else { return false };
    let is_stream = [libc::S_IFIFO, libc::S_IFSOCK].contains(&(row.st_mode & libc::S_IFMT));
    let identity = [row.st_dev, row.st_ino];
    is_stream && *FIRST.get_or_init(|| identity) == identity
}

/// Whether the program is to be told what its replicas are told of this descriptor.
pub(crate) fn is_shared(fd: c_int) -> bool {
    is_input(fd) && real::is_program_asking() && is_pipe(fd)
}

/// What is there to be read, as poll(2) has it: 0 where nothing is.
fn ready(fd: c_int, events: i16) -> i16 {
    let mut row = pollfd { fd, events, revents: 0 };
    let found = unsafe { native_poll(&raw mut row, 1, 0) };
    if found == 1 { row.revents } else { 0 }
}

/// What a wait for input comes to.
#[derive(Clone, Copy)]
pub(crate) enum Came<T> {
    Input(T),
    /// A signal, whose handler is to run now.
    Signal {
        /// Whether the call goes on then.
        restarts: bool,
        /// What is left of the time that it was to wait.
        left: Duration,
    },
}

impl<T> Came<T> {
    fn map<R>(self, of: impl FnOnce(T) -> R) -> Came<R> {
        match self {
            Self::Input(it) => Came::Input(of(it)),
            Self::Signal { restarts, left } => Came::Signal { restarts, left },
        }
    }
}

/// The error of a call that a signal is to end, in the meta's words; then comes whether it goes on,
/// and what is left of its time.
const STOPPED: [u64; 2] = [u64::MAX, libc::EINTR as u64];

/// In the meta: a signal has come whose handler is to run, when so many nanoseconds are left.
fn stopped(state: &mut State, left: u64) -> Option<Vec<u8>> {
    state.tell_signals();
    let signal = state.coming_signal(signals::is_blocked)?;
    Some(bytes_of(&[&STOPPED[..], &[u64::from(signals::restarts(signal)), left]].concat()))
}

/// In all, if the meta's words say so: they agree on the signals that are due.
fn stop<T>(state: &mut State, row: &[u64]) -> Option<Came<T>> {
    let [restarts, left] = *row.strip_prefix(&STOPPED)? else { return None };
    state.compare(Vec::new());
    Some(Came::Signal { restarts: restarts != 0, left: Duration::from_nanos(left) })
}

/// The program waits for input, and has the state meanwhile: what others call would come at no
/// place that replicas share.
static WAITS: AtomicBool = AtomicBool::new(false);

/// Whether it does.
pub(crate) fn is_waited_for() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// Does something with the state that may wait for input.
fn waiting<R>(what: impl FnOnce(&mut State) -> R) -> R {
    state::with(|state| {
        WAITS.store(true, Ordering::Relaxed);
        let answer = what(state);
        WAITS.store(false, Ordering::Relaxed);
        answer
    })
}

/// See read(2): all replicas are given as many bytes as the meta.
pub(crate) fn read(fd: c_int, to: *mut c_void, length: size_t) -> Came<ssize_t> {
    if length == 0 {
        return Came::Input(0);
    }
    let_out_waiting();
    let _inside = Inside::enter();
    let waits = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK == 0;
    let take = |to: *mut c_void, length: size_t| unsafe {
        libc::syscall(libc::SYS_read, fd, to, length) as ssize_t
    };
    let (row, did, stop) = waiting(|state| {
        state.mix(&[INPUT, 1, length as u64]);
        let (row, did) = state.event(EventKind::Decision, |state| {
            if waits && ready(fd, libc::POLLIN) == 0 {
                return stopped(state, 0);
            }
            let got = take(to, length);
            Some(bytes_of(&[got as u64, if got < 0 { last_error() } else { 0 } as u64]))
        });
        let row = words(&row);
        let stop = stop(state, &row);
        (row, did, stop)
    });
    if let Some(stop) = stop {
        return stop;
    }
    let (got, error) = (row[0] as ssize_t, row[1] as c_int);
    if got < 0 {
        return Came::Input(failed(error) as ssize_t);
    }
    let mut done = if did { got } else { 0 };
    while done < got {
        let at = to.wrapping_byte_add(done as usize);
        match take(at, (got - done) as size_t) {
            0 => break,
            n if 0 < n => done += n,
            _ => {
                let mut row = pollfd { fd, events: libc::POLLIN, revents: 0 };
                unsafe { native_poll(&raw mut row, 1, -1) };
            }
        }
    }
    Came::Input(done)
}

/// See ioctl(2), `FIONREAD`: how many bytes are there.
pub(crate) fn how_many(fd: c_int, to: *mut c_int) -> c_int {
    let ask = || {
        let mut n: c_int = 0;
        unsafe { libc::syscall(libc::SYS_ioctl, fd, libc::FIONREAD, &raw mut n) };
        n as u64
    };
    unsafe { *to = inquire(3, ask) as c_int };
    0
}

/// What is there at once, as the meta has it.
fn look(fd: c_int, events: i16) -> i16 {
    inquire(4 + u64::from(events as u16), || u64::from(ready(fd, events) as u16)) as i16
}

/// What the meta finds; nothing where it did not ask, as what it found is gone when it is read.
fn inquire(question: u64, ask: impl Fn() -> u64) -> u64 {
    let_out_waiting();
    let _inside = Inside::enter();
    let found = || Some(ask()).filter(|it| *it != 0).map(|it| bytes_of(&[it]));
    let row = state::with(|state| state.inquire(&[INPUT, question], |_| found()));
    row.map_or(0, |it| words(&it)[0])
}

/// Waits for it as long as the meta does: what is there, and what is left of the time.
fn wait(fd: c_int, events: i16, at_most: Option<Duration>) -> Came<(i16, Duration)> {
    let_out_waiting();
    let _inside = Inside::enter();
    let begin = clock::now_ms(libc::CLOCK_MONOTONIC);
    waiting(|state| {
        state.mix(&[INPUT, 2, u64::from(events as u16)]);
        let answer = |state: &mut State| {
            let found = ready(fd, events);
            let waited = Duration::from_millis(clock::now_ms(libc::CLOCK_MONOTONIC) - begin);
            let left = at_most.map(|it| it.saturating_sub(waited));
            let is_over = found != 0 || left == Some(Duration::ZERO);
            let left = u64::try_from(left.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
            if !is_over {
                return stopped(state, left);
            }
            Some(bytes_of(&[u64::from(found as u16), left]))
        };
        let row = words(&state.event(EventKind::Decision, answer).0);
        let came = Came::Input((row[0] as i16, Duration::from_nanos(row[1])));
        stop(state, &row).unwrap_or(came)
    })
}

/// As [`wait`] or, where no time is given to wait, [`look`].
fn see(fd: c_int, events: i16, at_most: Option<Duration>) -> Came<(i16, Duration)> {
    if at_most == Some(Duration::ZERO) {
        Came::Input((look(fd, events), Duration::ZERO))
    } else {
        wait(fd, events, at_most)
    }
}

/// A signal has ended a call: its handler runs, and the call has its error.
pub(crate) fn end_by_signal() -> c_int {
    signals::deliver_at_look();
    failed(libc::EINTR)
}

unsafe fn native_poll(rows: *mut pollfd, n: nfds_t, at_most: c_int) -> c_int {
    let time = (0 <= at_most).then(|| timespec {
        tv_sec: (at_most / 1000).into(),
        tv_nsec: i64::from(at_most % 1000) * 1_000_000,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let number = libc::SYS_ppoll;
    let no_mask = std::ptr::null::<c_void>();
    unsafe { libc::syscall(number, rows, n, time, no_mask, size_of::<c_ulong>()) as c_int }
}

/// What comes of a call that waits at most for so long; nothing if that is no time, which the
/// system is to say.
fn within<R>(
    at_most: Option<timespec>,
    call: impl FnOnce(Option<Duration>) -> Option<R>,
) -> Option<R> {
    const SECOND_NS: i64 = 1_000_000_000;
    match at_most {
        None => call(None),
        Some(it) if it.tv_sec < 0 || !(0..SECOND_NS).contains(&it.tv_nsec) => None,
        Some(it) => call(Some(Duration::new(it.tv_sec as u64, it.tv_nsec as u32))),
    }
}

/// The answer where standard input is all that is asked for, or is one of several that are looked
/// at without waiting: how many are ready.
unsafe fn ask(rows: *mut pollfd, n: nfds_t, at_most: Option<Duration>) -> Option<Came<c_int>> {
    if n == 0 || rows.is_null() {
        return None;
    }
    let rows = unsafe { std::slice::from_raw_parts_mut(rows, n as usize) };
    let inputs = || rows.iter().filter(|it| is_input(it.fd));
    let fd = inputs().next()?.fd;
    let events = inputs().fold(0, |all, it| all | it.events);
    let others = rows.iter().filter(|it| 0 <= it.fd && !is_input(it.fd)).count();
    let is_looked_at = others == 0 || at_most == Some(Duration::ZERO);
    if !is_looked_at || !is_shared(fd) {
        return None;
    }
    Some(see(fd, events, at_most).map(|(found, _)| {
        let all = if others == 0 { 0 } else { unsafe { look_at_others(rows) } };
        let inputs = rows.iter_mut().filter(|it| is_input(it.fd));
        all + inputs.map(|it| c_int::from(fill(it, found))).sum::<c_int>()
    }))
}

/// Tells a row what it asks for of what was found, and errors; whether that is anything.
fn fill(row: &mut pollfd, found: i16) -> bool {
    const ALWAYS: i16 = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
    row.revents = found & (row.events | ALWAYS);
    row.revents != 0
}

/// How many rows are ready of those that are not standard input's.
unsafe fn look_at_others(rows: &mut [pollfd]) -> c_int {
    let of = |it: usize| Some((it, rows[it].fd)).filter(|it| is_input(it.1));
    let inputs: Vec<(usize, c_int)> = (0..rows.len()).filter_map(of).collect();
    inputs.iter().for_each(|it| rows[it.0].fd = -1);
    let all = unsafe { native_poll(rows.as_mut_ptr(), rows.len() as nfds_t, 0) };
    inputs.iter().for_each(|it| rows[it.0].fd = it.1);
    all.max(0)
}

type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, c_int) -> c_int;

/// See poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(rows: *mut pollfd, n: nfds_t, at_most: c_int) -> c_int {
    static REAL: OnceLock<usize> = OnceLock::new();
    let (answer, real) = stack::on_own(|| {
        let time = u64::try_from(at_most).ok().map(Duration::from_millis);
        let real = *REAL.get_or_init(|| next(c"poll"));
        (unsafe { ask(rows, n, time) }, unsafe { std::mem::transmute::<usize, Poll>(real) })
    });
    match answer {
        Some(Came::Input(n)) => n,
        Some(Came::Signal { .. }) => end_by_signal(),
        None if n == 0 => {
            let time = u64::try_from(at_most).ok().map(Duration::from_millis);
            let call = || unsafe { real(rows, n, at_most) };
            unsafe { sleeping(call, Some(time), std::ptr::null()) }
        }
        None => unsafe { real(rows, n, at_most) },
    }
}

/// What a program that is compiled with checks calls for poll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
    rows: *mut pollfd,
    n: nfds_t,
    at_most: c_int,
    _room: size_t,
) -> c_int {
    unsafe { poll(rows, n, at_most) }
}

type PollMasked =
    unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const libc::sigset_t) -> c_int;

/// See ppoll(2).  With a mask of signals it is each replica's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    rows: *mut pollfd,
    n: nfds_t,
    at_most: *const timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    static REAL: OnceLock<usize> = OnceLock::new();
    let (answer, real) = stack::on_own(|| {
        let time = unsafe { at_most.as_ref().copied() };
        let real = *REAL.get_or_init(|| next(c"ppoll"));
        let answer =
            if mask.is_null() { within(time, |it| unsafe { ask(rows, n, it) }) } else { None };
        (answer, unsafe { std::mem::transmute::<usize, PollMasked>(real) })
    });
    match answer {
        Some(Came::Input(n)) => n,
        Some(Came::Signal { .. }) => end_by_signal(),
        None if n == 0 => {
            let call = || unsafe { real(rows, n, at_most, mask) };
            unsafe { sleeping(call, at_most_of(at_most), mask) }
        }
        None => unsafe { real(rows, n, at_most, mask) },
    }
}

/// A time at most, or none; nothing if it is no time.
#[allow(clippy::option_option, reason = "the outer one is a mistake, the inner one no end")]
unsafe fn at_most_of(at_most: *const timespec) -> Option<Option<Duration>> {
    match unsafe { at_most.as_ref() } {
        None => Some(None),
        Some(it) => sleeps::time_of(it).map(Some),
    }
}

/// A call without a descriptor, which sleeps.
#[allow(clippy::option_option, reason = "the outer one is a mistake, the inner one no end")]
unsafe fn sleeping(
    call: impl FnOnce() -> c_int,
    at_most: Option<Option<Duration>>,
    mask: *const libc::sigset_t,
) -> c_int {
    match at_most.and_then(|it| sleeps::agreed(it, unsafe { mask.as_ref() })) {
        Some(Slept::Over) => 0,
        Some(Slept::Stopped(_)) => sleeps::stopped(),
        None => signals::waiting(call),
    }
}

/// What a program that is compiled with checks calls for ppoll(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    rows: *mut pollfd,
    n: nfds_t,
    at_most: *const timespec,
    mask: *const libc::sigset_t,
    _room: size_t,
) -> c_int {
    unsafe { ppoll(rows, n, at_most, mask) }
}

type Set = *mut libc::fd_set;

type SelectMasked =
    unsafe extern "C" fn(c_int, Set, Set, Set, *const timespec, *const libc::sigset_t) -> c_int;

/// See pselect(2).  With a mask of signals it is each replica's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    n: c_int,
    reads: Set,
    writes: Set,
    faults: Set,
    at_most: *const timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let answer = stack::on_own(|| {
        let time = unsafe { at_most.as_ref().copied() };
        mask.is_null().then(|| unsafe { select(n, reads, [writes, faults], time) }).flatten()
    });
    match answer {
        Some(Came::Input((found, _))) => found,
        Some(Came::Signal { .. }) => end_by_signal(),
        None => {
            let real = next(c"pselect");
            let real = unsafe { std::mem::transmute::<usize, SelectMasked>(real) };
            let call = || unsafe { real(n, reads, writes, faults, at_most, mask) };
            if n == 0 { unsafe { sleeping(call, at_most_of(at_most), mask) } } else { call() }
        }
    }
}

/// See select(2), where standard input alone is asked for, and to be read: what is found, and what
/// is left of the time.
pub(crate) unsafe fn select(
    n: c_int,
    reads: *mut libc::fd_set,
    others: [*mut libc::fd_set; 2],
    at_most: Option<timespec>,
) -> Option<Came<(c_int, Duration)>> {
    const ROOM: c_int = libc::FD_SETSIZE as c_int;
    let has = |set: *mut libc::fd_set, fd| !set.is_null() && unsafe { libc::FD_ISSET(fd, set) };
    // Sets that are longer have numbers that this one has no room for.
    let mut all = 0..if n <= ROOM { n } else { 0 };
    let fd = all.clone().find(|it| is_input(*it) && has(reads, *it))?;
    let is_other = |it| others.iter().any(|set| has(*set, it)) || it != fd && has(reads, it);
    if all.any(is_other) || !is_shared(fd) {
        return None;
    }
    let came = within(at_most, |it| Some(see(fd, libc::POLLIN, it)))?;
    Some(came.map(|(found, left)| {
        if found == 0 {
            unsafe { libc::FD_CLR(fd, reads) };
        }
        (c_int::from(found != 0), left)
    }))
}
