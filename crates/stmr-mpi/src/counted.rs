//! Collectives that MPICH counts, and that are made otherwise here.
//!
//! From the fifth on that could go through memory which the processes of a communicator share,
//! MPICH has them do, and adds in another order than before
//! (`MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD`).  `MPI_Barrier`, `MPI_Bcast` and `MPI_Reduce` go into
//! one count of a communicator, and before 5 `MPI_Scan`; `MPI_Allreduce` goes into another, forms
//! that do not block into none.  So do 4.3.2 and 5.0.2; 4.0.2 of Debian does not.
//!
//! ```text
//! MPI_Bcast of the program's ──► MPI_Ibcast, and it is owed
//! MPI_Reduce that adds fractions ──► all say what they are owed, and come together by that
//!                                ──► an MPI_Bcast of an int, and then itself
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::abi::{self, Family};
use crate::calls;
use crate::comm::Comm;
use crate::real::{self, Call};
use crate::state::State;

const KINDS: [Call; 5] =
    [calls::BARRIER, calls::BCAST, calls::REDUCE, calls::SCAN, calls::ALLREDUCE];

/// From that many on it is the same.
fn limit() -> u32 {
    const LIMIT: u32 = 5;
    const MOST: u32 = 30;
    static SET: OnceLock<u32> = OnceLock::new();
    let set = || std::env::var("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD").ok()?.parse().ok();
    *SET.get_or_init(|| set().unwrap_or(LIMIT).min(MOST))
}

/// What a communicator is owed, by kind.
#[derive(Default)]
pub(crate) struct Owed {
    all: [AtomicU32; KINDS.len()],
    left: [AtomicU32; KINDS.len()],
}

impl Owed {
    /// MPI has taken such a call of the program's, which is made otherwise.  Of nothing, MPICH
    /// counts sums for all alone.
    pub(crate) fn add(&self, call: Call, args: &[usize]) {
        let is_nothing = match call {
            calls::BCAST => args[1] as u32 == 0,
            calls::REDUCE | calls::SCAN => args[2] as u32 == 0,
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

    /// As many bits of each kind as there are left, so that MPI's "and" of those of all members is
    /// what all are owed: who was refused a call alone is owed one less.
    fn bits(&self, kind: usize) -> i32 {
        (1 << self.left[kind].load(Ordering::Relaxed)) - 1
    }
}

/// Whether this call's result hangs on what MPI has counted of its communicator.
pub(crate) fn hangs_on_that(call: Call, known: &Comm) -> bool {
    let is_sum = [calls::REDUCE, calls::ALLREDUCE].contains(&call);
    is_sum && known.remote.is_none() && abi::table().family != Family::OpenMpi
}

/// What members tell each other before a sum: what each is owed, and all are.
static TOLD: [[AtomicI32; KINDS.len()]; 2] =
    [const { [const { AtomicI32::new(0) }; KINDS.len()] }; 2];

/// Begins to tell them, at a door that opens once all have told (see [`crate::gate`]).
pub(crate) fn tell(state: &State, owed: &Owed, comm: usize, request: &mut usize) -> i32 {
    for (kind, own) in TOLD[0].iter().enumerate() {
        own.store(owed.bits(kind), Ordering::Relaxed);
    }
    let [own, all] = [0, 1].map(|it| TOLD[it].as_ptr() as usize);
    let (int, op) = (state.handles().int, state.handles().bits_and);
    let to = std::ptr::from_mut(request) as usize;
    real::code(calls::IALLREDUCE, &[own, all, KINDS.len(), int, op, comm, to])
}

impl State {
    /// Has MPI count what all members have told that they are owed; nothing if this replica has
    /// left MPI meanwhile.
    pub(crate) fn pay(&mut self, owed: &Owed, comm: usize) -> Option<()> {
        // A thread that is left behind in it writes there.
        static ROOM: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
        let [from, to] = [0, 1].map(|it| ROOM[it].as_ptr() as usize);
        let (int, op) = (self.handles().int, self.handles().bits_and);
        for (kind, call) in KINDS.into_iter().enumerate() {
            let n = TOLD[1][kind].swap(0, Ordering::Relaxed).count_ones();
            owed.left[kind].fetch_sub(n, Ordering::Relaxed);
            for _ in 0..n {
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
