//! Memory that all processes of a job share: which sets have lost a process, what each process has
//! counted, a pipe from each replica of a cluster to each other, and a bell for each process, which
//! wakes it where it sleeps.
//!
//! Nobody sleeps without having said so and looked once more, and nobody rings without having
//! first put where it is seen what there is to look at: so no bell is missed, and a process that
//! is awake costs whoever has something for it a look and no system call.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use selvedge_stmr::job::{BROKEN_AT, EVENTS_IDX, HELD_AT, N_COUNTS, TALLIES_AT, TALLY_WORDS};
use selvedge_stmr::pipe::PIPE_WORDS;

use crate::real;
use crate::told::Told;

/// What a process waits for that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum For {
    Siblings = 1,
    /// A message of its set's MPI.
    Message = 2,
    /// The other side of a send of its own.
    Receiver = 4,
    /// Others to come to a collective.
    Collective = 8,
    /// Its own thread that is in a call that blocks.
    Thread = 16,
}

/// Beside what a process waits for: it sleeps where sockets wake it, and not the bell.
const AT_SOCKETS: u32 = 1 << 16;

/// What wakes a process.
#[repr(C, align(64))]
pub(crate) struct Bell {
    /// What it sleeps for, or is about to; nothing if it is awake.
    sleeps_for: AtomicU32,
    rung: AtomicU32,
}

impl Bell {
    /// Says that this process is about to sleep; whatever is waited for is looked at once more
    /// before [`Bell::sleep`] is called with the answer.
    pub(crate) fn lie_down(&self, what: For) -> u32 {
        let rung = self.rung.load(Ordering::SeqCst);
        self.sleeps_for.store(what as u32, Ordering::SeqCst);
        rung
    }

    /// The same for who is about to sleep at sockets: a sibling on this host that rings is told to
    /// write to one.
    pub(crate) fn lie_down_at_sockets(&self, what: For) {
        self.sleeps_for.store(what as u32 | AT_SOCKETS, Ordering::SeqCst);
    }

    /// Sleeps until somebody rings who has not since [`Bell::lie_down`], or for so long.
    pub(crate) fn sleep(&self, rung: u32, max_us: u32) {
        let limit = libc::timespec {
            tv_sec: i64::from(max_us / 1_000_000),
            tv_nsec: i64::from(max_us % 1_000_000) * 1000,
        };
        let at = self.rung.as_ptr();
        unsafe { libc::syscall(libc::SYS_futex, at, libc::FUTEX_WAIT, rung, &raw const limit) };
        self.get_up();
    }

    pub(crate) fn get_up(&self) {
        self.sleeps_for.store(0, Ordering::Relaxed);
    }

    /// Wakes the process if it sleeps for that; returns whether it does so at sockets, where who
    /// rings has to wake it.
    pub(crate) fn ring(&self, what: For) -> bool {
        // Orders this look after what was put where the sleeper will look.
        std::sync::atomic::fence(Ordering::SeqCst);
        let sleeps_for = self.sleeps_for.load(Ordering::SeqCst);
        let is_meant = sleeps_for & what as u32 != 0;
        // One ring is enough, however many have something.
        let slept_for = if is_meant { self.sleeps_for.swap(0, Ordering::SeqCst) } else { 0 };
        if slept_for != 0 {
            self.rung.fetch_add(1, Ordering::SeqCst);
            let at = self.rung.as_ptr();
            unsafe { libc::syscall(libc::SYS_futex, at, libc::FUTEX_WAKE, 1) };
        }
        slept_for & AT_SOCKETS != 0
    }
}

/// This process's view of the memory.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Of each set, whether the launcher has seen a process of it end.
    broken: &'static [AtomicU8],
    /// Whether who reads the program's output holds it up.
    held: &'static AtomicU8,
    /// What each process has counted.
    tallies: &'static [AtomicU64],
    bells: &'static [Bell],
    /// The pipes of its cluster.
    words: &'static [AtomicU64],
    /// Bytes of all that, for all processes; what windows share is behind them.
    size: usize,
    replicas: usize,
    rank: usize,
    set: usize,
}

/// Windows whose first process is the same have so many bits of addresses for what they share.
const REGION_BITS: u32 = 42;

/// Opens what the launcher made, which has at least this size then.  Of each purpose all processes
/// give it the same, and what is never used costs nothing.
fn open_to(told: &Told, size: u64) -> i32 {
    let fd = unsafe { libc::open(told.memory.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    let has = if fd < 0 { 0 } else { unsafe { libc::lseek64(fd, 0, libc::SEEK_END) } };
    if fd < 0 || ((has as u64) < size && unsafe { libc::ftruncate64(fd, size as i64) } != 0) {
        let path = told.memory.to_string_lossy();
        let why = std::io::Error::last_os_error();
        real::fail(&format!("the memory of all processes, {path}, cannot be opened: {why}"));
    }
    fd
}

/// What the kernel maps at the least, in bytes.
pub(crate) const PAGE: usize = 4096;

impl Memory {
    /// Maps what the launcher made.
    pub(crate) fn open(told: &Told) -> Self {
        let n_bells = told.ranks * told.replicas;
        let n_tallied = n_bells * TALLY_WORDS;
        let head = (TALLIES_AT + n_tallied * size_of::<u64>()).next_multiple_of(PAGE);
        let bells = (n_bells * size_of::<Bell>()).next_multiple_of(PAGE);
        let n_words = told.replicas * told.replicas * PIPE_WORDS;
        let cluster = (n_words * size_of::<u64>()).next_multiple_of(PAGE);
        let size = head + bells + told.ranks * cluster;
        let fd = open_to(told, size as u64);
        let map = |from: usize, length: usize| {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let from = from as libc::off_t;
            let nothing = std::ptr::null_mut();
            let at = unsafe { libc::mmap(nothing, length, rights, libc::MAP_SHARED, fd, from) };
            if at == libc::MAP_FAILED {
                let why = std::io::Error::last_os_error();
                real::fail(&format!("the memory of all processes cannot be mapped: {why}"));
            }
            at
        };
        let head_at = map(0, head + bells).cast::<u8>();
        let own = map(head + bells + told.rank * cluster, cluster);
        unsafe { libc::close(fd) };
        // Nothing but atomic words is ever made of it, and it is there as long as the process.
        let broken = unsafe { head_at.add(BROKEN_AT) }.cast::<AtomicU8>();
        let broken = unsafe { std::slice::from_raw_parts(broken, told.replicas) };
        let held = unsafe { &*head_at.add(HELD_AT).cast::<AtomicU8>() };
        let tallies = unsafe { head_at.add(TALLIES_AT) }.cast::<AtomicU64>();
        let tallies = unsafe { std::slice::from_raw_parts(tallies, n_tallied) };
        let bells = unsafe { head_at.add(head) }.cast::<Bell>();
        let bells = unsafe { std::slice::from_raw_parts(bells, n_bells) };
        let words = unsafe { std::slice::from_raw_parts(own.cast::<AtomicU64>(), n_words) };
        let (rank, set, replicas) = (told.rank, told.set, told.replicas);
        Self { broken, held, tallies, bells, words, size, replicas, rank, set }
    }

    /// Where memory begins of windows whose first process is this one, in this set.
    pub(crate) fn region(&self, told: &Told, first: usize) -> u64 {
        self.size as u64 + (((told.set * told.ranks + first) as u64) << REGION_BITS)
    }

    /// Bytes of all that with all that windows may share, most of which are never there.
    fn size_with_shared(&self, told: &Told) -> u64 {
        self.size as u64 + (((told.replicas * told.ranks) as u64) << REGION_BITS)
    }

    /// The limit of a file's size that does not permit what windows share, if it does not.
    pub(crate) fn limit_of_files(&self, told: &Told) -> Option<u64> {
        let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        unsafe { libc::getrlimit64(libc::RLIMIT_FSIZE, &raw mut limit) };
        Some(limit.rlim_cur).filter(|it| *it < self.size_with_shared(told))
    }

    /// Maps so many bytes from `offset` on at this address, in place of what is there.
    pub(crate) fn map_shared(&self, told: &Told, at: usize, length: usize, offset: u64) {
        let fd = open_to(told, self.size_with_shared(told));
        let (rights, from) = (libc::PROT_READ | libc::PROT_WRITE, offset as libc::off_t);
        let kind = libc::MAP_SHARED | libc::MAP_FIXED;
        let mapped = unsafe { libc::mmap(at as *mut _, length, rights, kind, fd, from) };
        if mapped == libc::MAP_FAILED {
            let why = std::io::Error::last_os_error();
            real::fail(&format!("{length} bytes that processes share cannot be mapped: {why}"));
        }
        unsafe { libc::close(fd) };
    }

    /// Gives such bytes back: they are zeros from here on.
    pub(crate) fn forget_shared(&self, told: &Told, offset: u64, length: usize) {
        let fd = open_to(told, 0);
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        unsafe {
            libc::fallocate(fd, how, offset as libc::off_t, length as libc::off_t);
            libc::close(fd);
        }
    }

    /// Whether a process of this set is gone.  It stands here before the first of the others hears
    /// of it.
    pub(crate) fn has_lost_one(&self) -> bool {
        self.broken[self.set].load(Ordering::Acquire) != 0
    }

    /// Whether a process that prints may sleep until somebody reads the program's output.
    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire) != 0
    }

    /// Keeps what this process has counted, for the launcher.
    pub(crate) fn keep_counts(&self, counts: [u64; N_COUNTS]) {
        for (to, it) in self.tally_of(self.set).iter().zip(counts) {
            to.store(it, Ordering::Relaxed);
        }
    }

    /// Keeps how many events this process has behind it, for its siblings.
    pub(crate) fn keep_events(&self, n: u64) {
        self.tally_of(self.set)[EVENTS_IDX].store(n, Ordering::Relaxed);
    }

    /// How many another replica of this process has, on this host.
    pub(crate) fn events_of(&self, set: usize) -> u64 {
        self.tally_of(set)[EVENTS_IDX].load(Ordering::Relaxed)
    }

    fn tally_of(&self, set: usize) -> &'static [AtomicU64] {
        let at = (self.rank * self.replicas + set) * TALLY_WORDS;
        &self.tallies[at..at + TALLY_WORDS]
    }

    /// The pipe from one replica of this cluster to another.
    pub(crate) fn pipe(&self, from: usize, to: usize) -> &'static [AtomicU64] {
        let at = (from * self.replicas + to) * PIPE_WORDS;
        &self.words[at..at + PIPE_WORDS]
    }

    /// The bell of this process.
    pub(crate) fn bell(&self) -> &'static Bell {
        self.bell_of(self.rank, self.set)
    }

    /// The bell of another replica of this process.
    pub(crate) fn bell_of_set(&self, set: usize) -> &'static Bell {
        self.bell_of(self.rank, set)
    }

    /// The bell of another process of this set.
    pub(crate) fn bell_of_rank(&self, rank: usize) -> &'static Bell {
        self.bell_of(rank, self.set)
    }

    fn bell_of(&self, rank: usize, set: usize) -> &'static Bell {
        &self.bells[rank * self.replicas + set]
    }
}
