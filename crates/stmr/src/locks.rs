//! Windows that are locked (MPI 4.1 §12.5.3): who may change one, and what whoever comes wants
//! there.
//!
//! Each process keeps the locks of its own window.  Whoever wants something of it comes with a
//! *visit*: it may take a lock first, has accesses carried out, and may let go of the lock behind
//! them.  In which order visits come is a decision of the replica that leads; from it alone follows
//! who waits for whom, so that all replicas of a process change its window in the same order.
//!
//! Locks are granted in the order in which they were asked for: who wants a window for itself waits
//! for those that share it, and who comes behind waits for it, though it would share.

use std::collections::{BTreeMap, VecDeque};

/// How a window is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// By any number at a time.
    Shared,
    /// By one alone.
    Exclusive,
}

/// What a member of a window's group wants of this process's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The lock to be taken first.
    pub lock: Option<Lock>,
    /// Accesses, as [`crate::access::Access::write`] made them.
    pub accesses: Vec<u8>,
    /// The lock is let go of behind them.
    pub unlocks: bool,
}

/// The locks of a process's window, and those that wait for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    holders: BTreeMap<i32, Lock>,
    /// In the order in which they came; what a member wants behind the lock for which it waits has
    /// none of its own.
    waiting: VecDeque<(i32, Visit)>,
}

impl Locks {
    /// A member's visit; returns it if it need not wait.  One with a lock, or behind one, is given
    /// back by [`Locks::grant_next`] in any case, which is asked after this.
    pub fn arrive(&mut self, member: i32, visit: Visit) -> Option<Visit> {
        if visit.lock.is_none() && self.waiting.iter().all(|it| it.0 != member) {
            return Some(visit);
        }
        self.waiting.push_back((member, visit));
        None
    }

    /// The next visit that may be made: of a member that gets the lock for which it waits, or that
    /// has got it.
    pub fn grant_next(&mut self) -> Option<(i32, Visit)> {
        let is_behind = |it: &(i32, Visit)| it.1.lock.is_none() && self.holders.contains_key(&it.0);
        if let Some(at) = self.waiting.iter().position(is_behind) {
            return self.waiting.remove(at);
        }
        let at = self.waiting.iter().position(|it| it.1.lock.is_some())?;
        let (member, lock) = (self.waiting[at].0, self.waiting[at].1.lock?);
        let is_free = match lock {
            Lock::Shared => self.holders.values().all(|it| *it == Lock::Shared),
            Lock::Exclusive => self.holders.is_empty(),
        };
        if !is_free {
            return None;
        }
        self.holders.insert(member, lock);
        self.waiting.remove(at)
    }

    /// A member lets go of its lock.
    pub fn release(&mut self, member: i32) {
        self.holders.remove(&member);
    }
}

/// What is said at a window's door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knock {
    /// A visit, and how many bytes its accesses are.
    Visit {
        /// The lock to be taken first.
        lock: Option<Lock>,
        /// The lock is let go of at the end.
        unlocks: bool,
        /// Bytes of accesses.
        length: u64,
    },
    /// Nobody comes any more.
    Close,
}

/// Bytes of what is said.
pub const KNOCK: usize = 16;

impl Knock {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; KNOCK] {
        let (word, length) = match self {
            Self::Close => (6, 0),
            Self::Visit { lock, unlocks, length } => {
                let lock = match lock {
                    None => 0,
                    Some(Lock::Shared) => 1,
                    Some(Lock::Exclusive) => 2,
                };
                (lock + 3 * u64::from(unlocks), length)
            }
        };
        (u128::from(word) | u128::from(length) << 64).to_le_bytes()
    }

    /// What such bytes say; nothing if they are none.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let all = u128::from_le_bytes(*bytes.first_chunk()?);
        let word = all as u64;
        let lock = match word % 3 {
            0 => None,
            1 => Some(Lock::Shared),
            _ => Some(Lock::Exclusive),
        };
        match word {
            0..6 => Some(Self::Visit { lock, unlocks: 3 <= word, length: (all >> 64) as u64 }),
            6 => Some(Self::Close),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(lock: Lock) -> Visit {
        Visit { lock: Some(lock), ..Visit::default() }
    }

    fn granted(locks: &mut Locks) -> Vec<i32> {
        std::iter::from_fn(|| locks.grant_next()).map(|it| it.0).collect()
    }

    #[test]
    fn who_wants_a_window_alone_waits_for_those_who_share_it_and_is_not_passed_over() {
        let mut locks = Locks::default();
        for member in [3, 1] {
            assert_eq!(locks.arrive(member, asks(Lock::Shared)), None);
        }
        assert_eq!(granted(&mut locks), [3, 1]);
        locks.arrive(2, asks(Lock::Exclusive));
        locks.arrive(0, asks(Lock::Shared));
        assert_eq!(granted(&mut locks), []);
        // Who has the lock is heard meanwhile.
        let visit = Visit { accesses: vec![7], ..Visit::default() };
        assert_eq!(locks.arrive(1, visit.clone()), Some(visit));
        locks.release(3);
        assert_eq!(granted(&mut locks), []);
        locks.release(1);
        assert_eq!(granted(&mut locks), [2]);
        locks.release(2);
        assert_eq!(granted(&mut locks), [0]);
        locks.release(0);
        assert_eq!(locks, Locks::default());
    }

    #[test]
    fn what_a_member_wants_behind_a_lock_waits_for_it_too() {
        let mut locks = Locks::default();
        let behind =
            |accesses: &[u8], unlocks| Visit { lock: None, accesses: accesses.to_vec(), unlocks };
        locks.arrive(7, asks(Lock::Exclusive));
        assert_eq!(granted(&mut locks), [7]);
        locks.arrive(2, asks(Lock::Shared));
        locks.arrive(3, asks(Lock::Exclusive));
        for it in [behind(&[1], false), behind(&[2], true)] {
            assert_eq!(locks.arrive(2, it), None);
        }
        assert_eq!(locks.grant_next(), None);
        locks.release(7);
        let wanted = [asks(Lock::Shared), behind(&[1], false), behind(&[2], true)];
        for it in wanted {
            assert_eq!(locks.grant_next(), Some((2, it)));
        }
        // It has not let go before it is told to.
        assert_eq!(locks.grant_next(), None);
        locks.release(2);
        assert_eq!(granted(&mut locks), [3]);
    }

    #[test]
    fn what_was_said_is_heard() {
        for lock in [None, Some(Lock::Shared), Some(Lock::Exclusive)] {
            for unlocks in [false, true] {
                let it = Knock::Visit { lock, unlocks, length: u64::MAX - 1 };
                assert_eq!(Knock::of(&it.to_bytes()), Some(it));
            }
        }
        assert_eq!(Knock::of(&Knock::Close.to_bytes()), Some(Knock::Close));
        assert_eq!(Knock::of(&[7; KNOCK]), None);
        assert_eq!(Knock::of(&[0; KNOCK - 1]), None);
    }
}
