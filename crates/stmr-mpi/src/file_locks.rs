//! Locks on files that the program holds.  The system knows of one replica's, which leads; where
//! another leads from then on, that one takes them.
//!
//! ```text
//! a call of flock or fcntl ──► the meta's, and written down by all
//! the meta dies, or leads no more and lets go ──► the next decision: who leads now takes them
//! ```
//! Between the two anybody else may take one.  It is asked for again at each decision, since one
//! who led and is alive lets go when it hears of that; it is not waited for.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::off_t;

use crate::files::{self, Identity, native_seek};
use crate::state::State;

/// What is locked.
#[derive(Clone, Copy)]
enum Of {
    /// All of an open file, and how.
    Whole(c_int),
    /// From one byte to before another; whose it is, the process's or the open file's.
    Part { is_of_file: bool, kind: i16, begin: off_t, end: off_t },
}

#[derive(Clone, Copy)]
struct Lock {
    fd: c_int,
    /// What stood behind the descriptor.
    file: Option<Identity>,
    of: Of,
    /// The system has it as this replica's.
    is_taken: bool,
}

static LOCKS: Mutex<Vec<Lock>> = Mutex::new(Vec::new());

/// There are some.
static ANY: AtomicBool = AtomicBool::new(false);

/// This replica settled the decision before.
static LEADS: AtomicBool = AtomicBool::new(false);

/// Locks that the program let go of before who leads had got them.
static LOST: AtomicU32 = AtomicU32::new(0);

impl State {
    /// Comes to a decision, which this replica settles or not.
    pub(crate) fn follow_locks(&mut self, leads: bool) {
        let led = LEADS.swap(leads, Ordering::Relaxed);
        if ANY.load(Ordering::Relaxed) && (leads || led) {
            locks().iter_mut().filter(|it| it.is_taken != leads).for_each(|it| it.settle(leads));
        }
        if LOST.load(Ordering::Relaxed) != 0 && LOST.swap(0, Ordering::Relaxed) != 0 {
            let rank = self.told.rank;
            self.note(&format!(
                "rank {rank}: a lock on a file was somebody else's after its replica was lost"
            ));
        }
    }
}

impl Lock {
    /// Takes it from the system, if nobody else has it, or lets go of it.
    fn settle(&mut self, takes: bool) {
        if files::identity_of_open(self.fd) != self.file {
            return;
        }
        let done = match self.of {
            Of::Whole(how) => {
                let how = if takes { how | libc::LOCK_NB } else { libc::LOCK_UN };
                unsafe { libc::syscall(libc::SYS_flock, self.fd, how) }
            }
            Of::Part { is_of_file, kind, begin, end } => {
                let mut lock: libc::flock = unsafe { std::mem::zeroed() };
                lock.l_type = if takes { kind } else { libc::F_UNLCK as i16 };
                lock.l_whence = libc::SEEK_SET as i16;
                (lock.l_start, lock.l_len) = (begin, if end == END { 0 } else { end - begin });
                let what = if is_of_file { libc::F_OFD_SETLK } else { libc::F_SETLK };
                unsafe { libc::syscall(libc::SYS_fcntl, self.fd, what, &raw const lock) }
            }
        };
        self.is_taken = if takes { done == 0 } else { false };
    }

    /// The program lets go of it.
    fn end(&self) {
        if LEADS.load(Ordering::Relaxed) && !self.is_taken {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where a part ends that goes on for as long as its file.
const END: off_t = off_t::MAX;

fn locks() -> MutexGuard<'static, Vec<Lock>> {
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(mut locks: MutexGuard<'static, Vec<Lock>>, new: Option<Lock>) {
    locks.extend(new);
    ANY.store(!locks.is_empty(), Ordering::Relaxed);
}

/// The program has done this by flock(2).
pub(crate) fn keep_whole(fd: c_int, how: c_int) {
    let how = how & !libc::LOCK_NB;
    let mut locks = locks();
    locks.retain(|it| {
        let is_it = files::is_same(it.fd, fd) && matches!(it.of, Of::Whole(_));
        if is_it && how == libc::LOCK_UN {
            it.end();
        }
        !is_it
    });
    let is_taken = LEADS.load(Ordering::Relaxed);
    let file = files::identity_of_open(fd);
    let new = Lock { fd, file, of: Of::Whole(how), is_taken };
    keep(locks, (how != libc::LOCK_UN).then_some(new));
}

/// The program has done this by fcntl(2), for itself or for the open file.
pub(crate) fn keep_part(fd: c_int, is_of_file: bool, lock: &libc::flock) {
    let from = match c_int::from(lock.l_whence) {
        libc::SEEK_CUR => native_seek(fd, 0, libc::SEEK_CUR),
        libc::SEEK_END => files::native_size(fd).unwrap_or(0) as off_t,
        _ => 0,
    };
    let (at, length) = (from + lock.l_start, lock.l_len);
    let begin = if length < 0 { at + length } else { at };
    let end = match length {
        0 => END,
        it if it < 0 => at,
        it => at.saturating_add(it),
    };
    let file = files::identity_of_open(fd);
    let mut locks = locks();
    for it in std::mem::take(&mut *locks) {
        match it.of {
            Of::Part { is_of_file: its, kind, begin: first, end: last }
                if its == is_of_file
                    && it.file == file
                    && (!its || files::is_same(it.fd, fd))
                    && first < end
                    && begin < last =>
            {
                if c_int::from(lock.l_type) == libc::F_UNLCK {
                    it.end();
                }
                let rest =
                    |begin, end| Lock { of: Of::Part { is_of_file, kind, begin, end }, ..it };
                locks.extend((first < begin).then(|| rest(first, begin)));
                locks.extend((end < last).then(|| rest(end, last)));
            }
            _ => locks.push(it),
        }
    }
    let is_taken = LEADS.load(Ordering::Relaxed);
    let of = Of::Part { is_of_file, kind: lock.l_type, begin, end };
    let is_lock = c_int::from(lock.l_type) != libc::F_UNLCK;
    keep(locks, is_lock.then_some(Lock { fd, file, of, is_taken }));
}

/// Whether the program holds a lock that may go when this descriptor is closed.
pub(crate) fn is_held(fd: c_int) -> bool {
    if !ANY.load(Ordering::Relaxed) {
        return false;
    }
    let file = files::identity_of_open(fd);
    locks().iter().any(|it| it.fd == fd || it.file == file)
}

/// A descriptor is closed: with it go all locks of this process on parts of the same file, and with
/// the last of an open file those of that.
pub(crate) fn forget(fd: c_int) {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    let closed = files::identity_of_open(fd);
    let other = files::other_of(fd);
    let mut locks = locks();
    locks.retain_mut(|it| {
        let is_gone = match (it.of, other) {
            (Of::Part { is_of_file: false, .. }, _) => it.file == closed,
            _ if it.fd != fd => false,
            (_, None) => true,
            (_, Some(other)) => {
                it.fd = other;
                false
            }
        };
        if is_gone {
            it.end();
        }
        !is_gone
    });
    keep(locks, None);
}
