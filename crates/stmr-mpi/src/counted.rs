//! Collectives that MPICH counts, and that are made otherwise here.
//!
//! From the fifth on that could go through memory which the processes of a communicator share,
//! MPICH has them do, and adds in another order than before
//! (`MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD`).  `MPI_Barrier`, `MPI_Bcast` and `MPI_Reduce` go into
//! one count of a communicator, `MPI_Allreduce` into another; forms that do not block into none.
//! So do 4.3.2 and 5.0.2; 4.0.2 of Debian does not.
//!
//! ```text
//! MPI_Bcast of the program's ──► MPI_Ibcast, and it is owed
//! MPI_Reduce that adds fractions ──► an MPI_Bcast of an int, and then itself
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::abi::{self, Family};
use crate::calls;
use crate::real::{self, Call};
use crate::state::State;

const KINDS: [Call; 4] = [calls::BARRIER, calls::BCAST, calls::REDUCE, calls::ALLREDUCE];

/// From that many on it is the same.
fn limit() -> u32 {
    const LIMIT: u32 = 5;
    static SET: OnceLock<u32> = OnceLock::new();
    let set = || std::env::var("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD").ok()?.parse().ok();
    *SET.get_or_init(|| set().unwrap_or(LIMIT))
}

/// What a communicator is owed, by kind.
#[derive(Default)]
pub(crate) struct Owed {
    all: [AtomicU32; KINDS.len()],
    left: [AtomicU32; KINDS.len()],
}

impl Owed {
    /// The program makes such a call, which is made otherwise.  Of nothing, MPICH counts sums for
    /// all alone.
    pub(crate) fn add(&self, call: Call, args: &[usize]) {
        let is_nothing = match call {
            calls::BCAST => args[1] as u32 == 0,
            calls::REDUCE => args[2] as u32 == 0,
            _ => false,
        };
        if !is_nothing {
            self.add_one(call);
        }
    }

    /// The same of what MPI would make where a window of this flavor is opened; measured.
    pub(crate) fn add_window(&self, flavor: i32) {
        let [created, allocated, _, shared] = abi::table().flavors;
        self.add_one(calls::ALLREDUCE);
        if [allocated, shared].contains(&flavor) && !real::is_mpich_5() {
            self.add_one(calls::ALLREDUCE);
        }
        if flavor != created {
            self.add_one(calls::BARRIER);
        }
    }

    /// The same of one that MPI would make within another call.
    pub(crate) fn add_one(&self, call: Call) {
        if abi::table().family == Family::OpenMpi {
            return;
        }
        let Some(kind) = KINDS.iter().position(|it| *it == call) else { return };
        if self.all[kind].load(Ordering::Relaxed) < limit() {
            self.all[kind].fetch_add(1, Ordering::Relaxed);
            self.left[kind].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Has MPI count what it is owed, once all members have come here; nothing if this replica has
    /// left MPI meanwhile.
    pub(crate) fn pay(&mut self, owed: &Owed, comm: usize) -> Option<()> {
        // A thread that is left behind in it writes there.
        static ROOM: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
        let [from, to] = [0, 1].map(|it| ROOM[it].as_ptr() as usize);
        let (int, op) = (self.handles().int, self.handles().bits_and);
        for (call, left) in KINDS.into_iter().zip(&owed.left) {
            for _ in 0..left.swap(0, Ordering::Relaxed) {
                match call {
                    calls::BARRIER => self.block(call, &[comm])?,
                    calls::BCAST => self.block(call, &[to, 1, int, 0, comm])?,
                    calls::REDUCE => self.block(call, &[from, to, 1, int, op, 0, comm])?,
                    _ => self.block(call, &[from, to, 1, int, op, comm])?,
                };
            }
        }
        Some(())
    }
}
