//! What the launcher knows of all clusters, and what follows from it.
//!
//! ```text
//! Running ──► Ending (the program is in MPI_Finalize, or after it) ──► Ended (exit code)
//!    └───────────┴──► Dead
//! ```
//!
//! A dead process breaks its set: the other processes of that set leave MPI and are fed.  All
//! leave MPI_Finalize together, since one that ends earlier takes its unsent messages along.

use std::collections::{BTreeSet, VecDeque};

use crate::verdict::{Double, SetId};

/// Where, in the memory that all processes of a job share, the launcher writes which sets have lost
/// a process: a byte for each set, not 0 before the first of its other processes hears of it.
pub const BROKEN_AT: usize = 0;

/// Where, in that memory, the launcher writes whether the program is held up by who reads its
/// output: a byte, not 0 while a replica that prints may sleep for as long as that one does.
pub const HELD_AT: usize = 64;

/// Where, in that memory, each process keeps its counts for the launcher, so that they are known
/// however it ends; of replica s of rank h, the (h × replicas + s)-th row of [`TALLY_WORDS`].
pub const TALLIES_AT: usize = 4096;

/// Words of 64 bits in the row of a process's counts: [`N_COUNTS`], and one at [`EVENTS_IDX`].
pub const TALLY_WORDS: usize = 16;

/// Which word of the row says how many events the process has behind it, for its siblings.
pub const EVENTS_IDX: usize = 15;

/// What a process counts: sends, compares, bytes compared, marks, promotions, messages to siblings,
/// their bytes, the most bytes kept for them, and milliseconds in compares.
pub const N_COUNTS: usize = 9;

/// Which process of the program, as the program counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl std::fmt::Debug for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank{}", self.0)
    }
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// What the launcher does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Tell the live processes of this set to leave MPI.
    LeaveMpi(SetId),
    /// Let all go on from MPI_Finalize.
    GoOn,
    /// The program has ended with this code; what still runs is ended.
    End(i32),
    /// Start the program again: this cluster had two errors.
    Restart(Rank, Double),
    /// End this process if it lives, wherever it is, and tell its siblings that it is gone.
    Part(Rank, SetId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    Running,
    Ending,
    Ended(i32),
    Dead,
}

/// The launcher's view of a job.
#[derive(Clone, Debug, Hash)]
pub struct Job {
    clusters: Vec<Vec<Standing>>,
    broken: BTreeSet<SetId>,
    released: bool,
    over: bool,
    orders: VecDeque<Order>,
}

impl Job {
    /// A job whose processes have all started.
    #[must_use]
    pub fn new(ranks: usize, replicas: usize) -> Self {
        Self {
            clusters: vec![vec![Standing::Running; replicas]; ranks],
            broken: BTreeSet::new(),
            released: false,
            over: false,
            orders: VecDeque::new(),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// A process is in MPI_Finalize.
    pub fn ending(&mut self, rank: Rank, set: SetId) {
        self.stand(rank, set, Standing::Ending);
    }

    /// A process has ended, and its cluster agreed to it.
    pub fn ended(&mut self, rank: Rank, set: SetId, code: i32) {
        self.stand(rank, set, Standing::Ended(code));
    }

    /// A process is gone without having said so.
    pub fn died(&mut self, rank: Rank, set: SetId) {
        if matches!(self.standing(rank, set), Standing::Ended(_) | Standing::Dead) {
            return;
        }
        self.stand(rank, set, Standing::Dead);
        if self.over {
            return;
        }
        if self.broken.insert(set) {
            self.orders.push_back(Order::LeaveMpi(set));
        }
        let cluster = &self.clusters[rank.0 as usize];
        let left = cluster.iter().filter(|it| **it != Standing::Dead).count();
        let others_ended = cluster.iter().any(|it| matches!(it, Standing::Ended(_)));
        if left < cluster.len().min(2) && !others_ended {
            self.restart(rank, if left == 0 { Double::Gone } else { Double::Lone });
        } else if self.broken.len() == cluster.len() && !self.released {
            self.restart(rank, Double::NoWholeSet);
        }
    }

    /// A replica's link to a sibling on another host has ended, and the sibling did not say why.
    ///
    /// Both may live, and each think that the other does not: so none of them decides it.  One
    /// goes, and it is the one that was missed, unless the set of who missed it is broken already
    /// and the other's is whole.
    pub fn missed(&mut self, rank: Rank, by: SetId, whom: SetId) {
        let standing = |set: SetId| self.clusters[rank.0 as usize][set.idx()];
        if standing(by) == Standing::Dead {
            return;
        }
        let is_over = matches!(standing(whom), Standing::Dead | Standing::Ended(_));
        let spares = !is_over && self.broken.contains(&by) && !self.broken.contains(&whom);
        self.orders.push_back(Order::Part(rank, if spares { by } else { whom }));
    }

    /// A replica found that a sibling on another host does not go on, or talks nonsense.
    pub fn part(&mut self, rank: Rank, set: SetId) {
        self.orders.push_back(Order::Part(rank, set));
    }

    /// A replica says that its cluster cannot go on.
    pub fn restart(&mut self, rank: Rank, why: Double) {
        if !self.over {
            self.over = true;
            self.orders.push_back(Order::Restart(rank, why));
        }
    }

    /// A cluster has agreed to end the whole program, as MPI_Abort does.
    pub fn abort(&mut self, code: i32) {
        if !self.over {
            self.over = true;
            self.orders.push_back(Order::End(code));
        }
    }

    /// Whether nothing more is expected of any process.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    fn standing(&mut self, rank: Rank, set: SetId) -> &mut Standing {
        &mut self.clusters[rank.0 as usize][set.idx()]
    }

    fn stand(&mut self, rank: Rank, set: SetId, standing: Standing) {
        *self.standing(rank, set) = standing;
        if self.over {
            return;
        }
        let all = || self.clusters.iter().flatten();
        if !self.released && all().all(|it| *it != Standing::Running) {
            self.released = true;
            self.orders.push_back(Order::GoOn);
        }
        let done = |it: &Standing| matches!(it, Standing::Ended(_) | Standing::Dead);
        let has_end = |it: &Vec<Standing>| it.iter().any(|it| matches!(it, Standing::Ended(_)));
        // A cluster of which all died has come to no end, and no code is its own.
        if all().all(done) && self.clusters.iter().all(has_end) {
            self.over = true;
            self.orders.push_back(Order::End(self.exit_code()));
        }
    }

    /// The first rank's code that is not 0, as launchers have it.  Replicas agreed on their own.
    fn exit_code(&self) -> i32 {
        let of_cluster = |cluster: &Vec<Standing>| {
            cluster.iter().find_map(|it| match it {
                Standing::Ended(code) => Some(*code),
                Standing::Running | Standing::Ending | Standing::Dead => None,
            })
        };
        self.clusters.iter().filter_map(of_cluster).find(|it| *it != 0).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(job: &mut Job) -> Vec<Order> {
        std::iter::from_fn(|| job.poll()).collect()
    }

    fn set(number: usize) -> SetId {
        SetId::new(number)
    }

    #[test]
    fn a_death_breaks_its_set_and_the_rest_end_with_the_agreed_code() {
        let mut job = Job::new(2, 3);
        job.died(Rank(1), set(2));
        assert_eq!(orders(&mut job), [Order::LeaveMpi(set(2))]);
        for (rank, it) in [(0, 0), (0, 1), (0, 2), (1, 0)] {
            job.ending(Rank(rank), set(it));
            assert_eq!(orders(&mut job), []);
        }
        job.ending(Rank(1), set(1));
        assert_eq!(orders(&mut job), [Order::GoOn]);
        for (rank, it) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
            job.ended(Rank(rank), set(it), if rank == 1 { 3 } else { 0 });
        }
        assert_eq!(orders(&mut job), [Order::End(3)]);
    }

    #[test]
    fn two_deaths_in_one_cluster_or_one_in_every_set_start_the_program_again() {
        let mut job = Job::new(2, 3);
        job.died(Rank(0), set(0));
        job.died(Rank(0), set(1));
        let told = orders(&mut job);
        assert_eq!(told.last(), Some(&Order::Restart(Rank(0), Double::Lone)));

        let mut job = Job::new(3, 3);
        for it in 0..3 {
            job.died(Rank(it), set(it as usize));
        }
        let told = orders(&mut job);
        assert_eq!(told.last(), Some(&Order::Restart(Rank(2), Double::NoWholeSet)));
    }

    #[test]
    fn a_process_without_replicas_that_dies_has_no_exit_code() {
        let gone = |rank: u32| Order::Restart(Rank(rank), Double::Gone);
        let mut job = Job::new(1, 1);
        job.died(Rank(0), set(0));
        assert_eq!(orders(&mut job), [Order::GoOn, Order::LeaveMpi(set(0)), gone(0)]);

        let mut job = Job::new(2, 1);
        job.ending(Rank(0), set(0));
        job.ending(Rank(1), set(0));
        job.ended(Rank(0), set(0), 0);
        job.died(Rank(1), set(0));
        assert_eq!(orders(&mut job), [Order::GoOn, Order::LeaveMpi(set(0)), gone(1)]);
    }

    #[test]
    fn of_two_that_miss_each_other_one_goes_and_of_all_pairs_that_of_one_set() {
        let mut job = Job::new(2, 3);
        job.missed(Rank(0), set(0), set(1));
        assert_eq!(orders(&mut job), [Order::Part(Rank(0), set(1))]);
        job.died(Rank(0), set(1));
        orders(&mut job);
        job.missed(Rank(0), set(1), set(0));
        assert_eq!(orders(&mut job), [], "who is gone misses nobody");
        job.missed(Rank(0), set(2), set(1));
        assert_eq!(orders(&mut job), [Order::Part(Rank(0), set(1))], "and is gone for all");
        // Of the other cluster the one in the set that is whole is missed first.
        job.missed(Rank(1), set(1), set(0));
        assert_eq!(orders(&mut job), [Order::Part(Rank(1), set(1))]);
    }

    #[test]
    fn two_deaths_in_different_clusters_and_sets_are_outlived() {
        let mut job = Job::new(2, 3);
        job.died(Rank(0), set(0));
        job.died(Rank(1), set(1));
        assert_eq!(orders(&mut job), [Order::LeaveMpi(set(0)), Order::LeaveMpi(set(1))]);
        assert!(!job.is_over());
    }
}
