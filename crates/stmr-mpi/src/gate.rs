//! What all who take part come to before a thread waits in MPI: while one does, no receive can be
//! begun, and another may still wait in a send for one.

use std::sync::Arc;

use crate::abi::{self, Family};
use crate::calls;
use crate::comm::Comm;
use crate::counted::{self, Owed};
use crate::memory::For;
use crate::p2p::tested;
use crate::real;
use crate::state::State;

/// A door that opens once all have come to it.
pub(crate) enum Gate {
    /// A barrier of a communicator, which is still to be begun; all tell what they are owed, if
    /// that is told there.
    At {
        comm: usize,
        owed: Option<Arc<Owed>>,
    },
    Begun {
        request: usize,
        comm: usize,
    },
    /// Who takes part has no such barrier: one of these after the other, the last of them first.
    Meetings(Vec<Meeting>),
}

impl Gate {
    pub(crate) fn open() -> Self {
        Self::Meetings(Vec::new())
    }

    /// Of a communicator, whose members are to tell what they are owed, or not.
    pub(crate) fn of(state: &State, comm: usize, known: &Comm, tells: bool) -> Self {
        // Of two sides, Open MPI's form that does not block may never end.
        if known.remote.is_some() && abi::table().family == Family::OpenMpi {
            Self::of_both_sides(state, known)
        } else {
            Self::At { comm, owed: tells.then(|| known.owed.clone()) }
        }
    }

    /// Of the members of a communicator, on both sides.
    pub(crate) fn of_both_sides(state: &State, known: &Comm) -> Self {
        let remote = known.remote.as_deref().unwrap_or_default();
        Self::of_ranks(state, [&known.ranks, remote].concat())
    }

    /// Of these ranks of the program.
    pub(crate) fn of_ranks(state: &State, ranks: Vec<i32>) -> Self {
        Self::Meetings(vec![Meeting::of(state, ranks)])
    }

    /// Of those who make a communicator of two sides (MPI_Intercomm_create), after each side has
    /// met: the leaders meet, and then the others their leader.
    pub(crate) fn between(state: &mut State, args: &[usize], known: &Comm) -> Self {
        let of = |ranks: &[i32], at: usize| ranks.get(args[at] as u32 as usize).copied();
        let own = state.told.rank as i32;
        let mut meetings = vec![Meeting::of(state, known.ranks.to_vec())];
        if of(&known.ranks, 1) == Some(own)
            && let Some(other) = of(state.comm(args[2]).peers(), 3)
        {
            meetings.push(Meeting::of(state, vec![own, other]));
        }
        Self::Meetings(meetings)
    }

    pub(crate) fn is_open(&mut self, state: &State) -> bool {
        if let Self::At { comm, owed } = self {
            let (comm, mut request) = (*comm, 0);
            let code = match owed {
                Some(owed) => counted::tell(state, owed, comm, &mut request),
                None => real::code(calls::IBARRIER, &[comm, &raw mut request as usize]),
            };
            if code != abi::SUCCESS {
                *self = Self::open();
                return true;
            }
            *self = Self::Begun { request, comm };
            state.wake_partners(comm);
        }
        if let Self::Begun { request, comm } = self
            && tested(request).0
        {
            state.wake_partners(*comm);
            *self = Self::open();
        }
        let Self::Meetings(meetings) = self else { return false };
        while let Some(it) = meetings.last_mut() {
            if !it.is_over(state) {
                return false;
            }
            meetings.pop();
        }
        true
    }
}

/// Processes that wait for each other by messages which the program cannot see.
///
/// Each hears in turn of those who are 1, 2, 4, … places before it: then all have come.  Meetings
/// of the same two processes follow each other in one order, so that one tag is enough for all.
pub(crate) struct Meeting {
    /// As ranks of the program, in an order that is the same for all.
    members: Vec<i32>,
    own: usize,
    far: usize,
    /// A message to one and a message from one, which are under way.
    both: Option<[usize; 2]>,
}

impl Meeting {
    /// Of these ranks of the program; nobody waits for those among whom this process is not.
    fn of(state: &State, mut members: Vec<i32>) -> Self {
        members.sort_unstable();
        members.dedup();
        let own = members.binary_search(&(state.told.rank as i32));
        if own.is_err() {
            members.clear();
        }
        Self { members, own: own.unwrap_or(0), far: 1, both: None }
    }

    fn is_over(&mut self, state: &State) -> bool {
        let n = self.members.len();
        while self.far < n {
            let both = self.both.get_or_insert_with(|| {
                let [to, from] = [self.own + self.far, self.own + n - self.far]
                    .map(|it| self.members[it % n] as usize);
                let mut both = [0_usize; 2];
                let (byte, at) = (state.handles().byte, both.as_mut_ptr());
                for (which, peer, idx) in [(calls::IRECV, from, 0), (calls::ISEND, to, 1)] {
                    let request = unsafe { at.add(idx) } as usize;
                    real::code(which, &[0, 0, byte, peer, 0, state.hidden, request]);
                }
                state.memory.bell_of_rank(to).ring(For::Collective);
                both
            });
            if !both.iter_mut().all(|it| tested(it).0) {
                return false;
            }
            self.both = None;
            self.far *= 2;
        }
        true
    }
}
