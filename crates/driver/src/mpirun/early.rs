//! How the processes come through MPI_Init, and deaths and ends before all have.

use std::time::{Duration, Instant};

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::{Double, SetId};

use super::{Attempt, DYING_WAIT, Ended, MpirunError, Process};

/// How long processes that have come through MPI_Init may go unheard while another dies.
const INIT_WAIT: Duration = Duration::from_secs(2);

/// What a death comes to while not all processes were heard to have come through MPI_Init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Early {
    /// It is outlived like any other.
    Count,
    /// It is not known yet.
    Wait,
    /// Others may stay in MPI_Init for ever: the program starts again.
    Again,
}

impl Early {
    /// Deaths count once all others have come through MPI_Init.  Until then these may stay in it
    /// for ever, or have come through and not been heard yet; so may the dead, whose host may have
    /// been silenced first.  Whoever came through tells that all had begun.
    ///
    /// `standings` has for each process whether it was heard to run and whether it died.
    fn of(standings: impl Iterator<Item = (bool, bool)>, since: Duration) -> Self {
        let (heard, unheard): (Vec<_>, Vec<_>) = standings.partition(|it| it.0);
        if unheard.iter().all(|it| it.1) {
            Self::Count
        } else if !heard.is_empty() && since < INIT_WAIT {
            Self::Wait
        } else {
            Self::Again
        }
    }
}

/// How far the processes have come with MPI_Init.  None goes on before all have come through it:
/// whoever is lost after that is outlived.
#[derive(Default)]
pub(super) struct Init {
    n_through: usize,
    is_over: bool,
    /// Who died before that was known of all others, and when.
    deaths: Vec<(Rank, SetId, Instant)>,
}

impl Init {
    pub(super) fn lose(&mut self, rank: Rank, set: SetId) {
        self.deaths.push((rank, set, Instant::now()));
    }

    /// What the deaths come to, of which the first was so long ago.  Who died in MPI_Init was never
    /// heard to run, and once that is over nobody waits for it.
    fn weigh(&self, standings: impl Iterator<Item = (bool, bool)>, since: Duration) -> Early {
        if self.is_over { Early::Count } else { Early::of(standings, since) }
    }
}

impl Attempt<'_> {
    /// A process has come through MPI_Init.
    pub(super) fn hear_through(&mut self, rank: Rank, set: SetId) {
        self.process(rank, set).running = true;
        self.init.n_through += 1;
        if self.init.n_through == self.options.ranks * self.options.replicas {
            self.end_init();
        }
    }

    /// All that live have come through MPI_Init.
    fn end_init(&mut self) {
        if !std::mem::replace(&mut self.init.is_over, true) {
            self.tell(None, "go");
        }
    }

    /// Does what is right of deaths that came before all others were heard to run.
    pub(super) fn look_at_early(&mut self) -> Option<Ended> {
        let &(rank, _, since) = self.init.deaths.first().filter(|_| self.dying.is_none())?;
        let is_dead = |rank: usize, set: usize| {
            self.init.deaths.iter().any(|it| (it.0.0 as usize, it.1.idx()) == (rank, set))
        };
        let clusters = self.processes.iter().enumerate();
        let standings = clusters.flat_map(|(rank, cluster)| {
            let sets = cluster.iter().enumerate();
            sets.map(move |(set, it)| (it.running, is_dead(rank, set)))
        });
        match self.init.weigh(standings, since.elapsed()) {
            Early::Count => {
                for (rank, set, _) in std::mem::take(&mut self.init.deaths) {
                    self.job.died(rank, set);
                }
                self.end_init();
                None
            }
            Early::Wait => None,
            // Others may be about to die of the same.
            Early::Again if self.is_early_fault() => None,
            Early::Again => Some(Ended::Again(rank, Double::Early)),
        }
    }

    /// Ends the program if it is none of MPI's, and starts it again if one replica alone ended as
    /// if it were none.
    pub(super) fn look_at_without_mpi(&mut self) -> Result<Option<Ended>, MpirunError> {
        let all = self.options.ranks * self.options.replicas;
        // Siblings wait for one that ended, where they do what replicas agree on.
        let strays = |cluster: &Vec<Process>| {
            let left = cluster.iter().filter(|it| it.ended && !it.running).count();
            let are_there = cluster.iter().any(|it| it.pid != 0 && !it.ended);
            are_there && (1..=cluster.len() / 2).contains(&left)
        };
        let is_over = self.without_mpi.is_over(all, || {
            // Who has not called it works still, and ends when it is done.
            let entered = |it: &Process| it.entered && !it.ended;
            self.processes.iter().any(strays) || self.processes.iter().flatten().any(entered)
        });
        if !is_over {
            return Ok(None);
        }
        if let Some(rank) = self.processes.iter().position(strays) {
            let rank = Rank(rank as u32);
            self.notes
                .push(format!("{rank}: a replica ended without MPI_Init, and others have not"));
            return Ok(Some(Ended::Again(rank, Double::Early)));
        }
        let code = self.without_mpi.code;
        if code == 0 && self.lacks_some() {
            let started = self.processes.iter().flatten().filter(|it| it.pid != 0).count();
            let launcher = self.path.clone();
            return Err(MpirunError::NotAllStarted { launcher, started, processes: all });
        }
        Ok(Some(Ended::WithoutMpi(code)))
    }

    /// Whether one of those that died early, not long ago, had said that it dies of a fault.
    fn is_early_fault(&self) -> bool {
        self.init.deaths.iter().any(|&(rank, set, since)| {
            since.elapsed() < DYING_WAIT && self.process_of(rank, set).fault.is_some()
        })
    }
}

/// How long is waited for the others when a process has ended that never called MPI_Init.
const WITHOUT_MPI_WAIT: Duration = Duration::from_secs(10);

/// Processes that ended and had not called MPI_Init.
#[derive(Default)]
pub(super) struct WithoutMpi {
    n: usize,
    /// The first that is not 0.
    pub(super) code: i32,
    last: Option<Instant>,
}

impl WithoutMpi {
    pub(super) fn end(&mut self, code: i32) {
        self.n += 1;
        self.code = if self.code == 0 { code } else { self.code };
        self.last = Some(Instant::now());
    }

    pub(super) fn has_any(&self) -> bool {
        0 < self.n
    }

    /// A program that is none of MPI's is over when all its processes are, or, if some have called
    /// MPI_Init and may wait there for others that never come, after a while.
    pub(super) fn is_over(&self, all: usize, some_wait: impl FnOnce() -> bool) -> bool {
        let is_late = |it: Instant| WITHOUT_MPI_WAIT <= it.elapsed();
        self.n == all || (self.last.is_some_and(is_late) && some_wait())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_counts_once_all_others_have_come_through_mpi_init() {
        let (runs, new) = ((true, false), (false, false));
        let (lost, lost_new) = ((true, true), (false, true));
        let check = |standings: [(bool, bool); 3], since, wanted| {
            let weighed = Init::default().weigh(standings.into_iter(), since);
            assert_eq!(weighed, wanted, "{standings:?} {since:?}");
            // Who died before is heard no more, and was counted then.
            let over = Init { is_over: true, ..Init::default() };
            assert_eq!(over.weigh(standings.into_iter(), since), Early::Count, "{standings:?}");
        };
        let soon = Duration::ZERO;
        check([lost, runs, runs], soon, Early::Count);
        // Its host was silenced before it could be heard, and the others are through.
        check([lost_new, runs, runs], soon, Early::Count);
        check([lost_new, lost_new, runs], INIT_WAIT, Early::Count);
        check([lost, runs, new], soon, Early::Wait);
        check([lost_new, runs, new], soon, Early::Wait);
        check([lost_new, runs, new], INIT_WAIT, Early::Again);
        check([lost, runs, new], INIT_WAIT, Early::Again);
        // Nobody came through: nobody will.
        check([lost_new, new, new], soon, Early::Again);
    }
}
