//! Simulated tasks: steps that take their time, checkpoints, and how they end.
//!
//! ```text
//!  Start ──► Starting ──► Running ──► Over(Done)
//!               │            ├─ Notify: checkpoint if it fits the grace ──► Over(Told)
//!               │            ├─ its own failure ──► Over(Failed)
//!               └────────────┴─ Kill ──► Over(Told) · hardware gone ──► Over(Lost)
//! ```
//!
//! What counts is what is kept: the steps up to the last checkpoint, or all of them at the end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use selvedge_control::input::Exit;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Place, Work};
use selvedge_model::unit::{Moment, Span};

/// Where the tasks of one attempt stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// They are being started.
    Starting,
    /// They run.
    Running {
        /// Since when.
        since: Moment,
    },
    /// They have ended.
    Over {
        /// How.
        exit: Exit,
    },
}

/// The tasks of a job in its newest attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Which start.
    pub attempt: u32,
    /// Where; nothing once they are over.
    pub place: Option<Place>,
    /// All their work.
    pub duration: Span,
    /// One step.
    pub step: Span,
    /// Between two checkpoints.
    pub checkpoint_every: Span,
    /// Steps kept by earlier attempts and by this one's checkpoints so far known.
    pub kept: u64,
    /// Where they stand.
    pub phase: Phase,
    /// Counts decisions about their end; an end drawn under an older number is void.
    pub token: u32,
}

impl Task {
    /// All steps of the work; the last may be shorter.
    pub fn n_steps(&self) -> u64 {
        self.duration.as_nanos().div_ceil(self.step.as_nanos())
    }

    /// How long the work takes from where it was kept.
    pub fn remaining(&self) -> Span {
        self.duration.minus(self.step.times(self.kept))
    }

    /// Whether it still holds its hardware.
    pub fn is_live(&self) -> bool {
        match self.phase {
            Phase::Starting | Phase::Running { .. } => true,
            Phase::Over { .. } => false,
        }
    }

    /// Steps that are kept if the tasks die at `now`: those up to the last checkpoint.
    pub fn kept_at_death(&self, now: Moment) -> u64 {
        let Phase::Running { since } = self.phase else { return self.kept };
        let n_checkpoints = now.since(since).div(self.checkpoint_every);
        self.kept_after(self.checkpoint_every.times(n_checkpoints))
    }

    /// Steps that are kept if the tasks write a checkpoint of what they have done at `now`.
    pub fn kept_by_checkpoint(&self, now: Moment) -> u64 {
        let Phase::Running { since } = self.phase else { return self.kept };
        self.kept_after(now.since(since))
    }

    fn kept_after(&self, computed: Span) -> u64 {
        (self.kept + computed.div(self.step)).min(self.n_steps())
    }
}

/// Two attempts that held one seat at the same time: never to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// The job that came second.
    pub job: JobId,
    /// The part.
    pub part: PartId,
    /// The seats that were taken already.
    pub seats: u64,
}

/// All tasks of a plant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    all: BTreeMap<JobId, Task>,
    /// Jobs whose tasks live, for each part that they hold.
    live: BTreeMap<JobId, ()>,
    /// Seats of each part that live tasks hold.
    busy: BTreeMap<PartId, u64>,
    clashes: Vec<Clash>,
}

impl Tasks {
    /// The newest attempt of a job.
    pub fn of(&self, job: JobId) -> Option<&Task> {
        self.all.get(&job)
    }

    pub(crate) fn of_mut(&mut self, job: JobId) -> Option<&mut Task> {
        self.all.get_mut(&job)
    }

    /// The newest attempt of each job.
    pub fn all(&self) -> impl Iterator<Item = (JobId, &Task)> {
        self.all.iter().map(|(&job, task)| (job, task))
    }

    /// All tasks that hold hardware.
    pub fn live(&self) -> impl Iterator<Item = (JobId, &Task)> {
        self.live.keys().map(|&job| (job, &self.all[&job]))
    }

    /// Seats of a part that live tasks hold.
    pub fn busy(&self, part: PartId) -> u64 {
        self.busy.get(&part).copied().unwrap_or(0)
    }

    /// Seats that were given out twice since the last call.
    pub fn take_clashes(&mut self) -> Vec<Clash> {
        std::mem::take(&mut self.clashes)
    }

    /// A number for the next attempt that no drawn end of an earlier one carries.
    fn next_token(&self, job: JobId) -> u32 {
        self.all.get(&job).map_or(0, |it| it.token + 1)
    }

    /// Begins an attempt; returns the number under which its start is drawn.
    pub(crate) fn begin(
        &mut self,
        job: JobId,
        attempt: u32,
        place: Place,
        work: &Work,
        kept: u64,
    ) -> u32 {
        if let Some(task) = self.all.get(&job)
            && task.is_live()
        {
            // The attempt before this one still runs: its seats are in use twice.
            let seats = task.place.as_ref().map_or(0, |it| it.holds[0].seats);
            self.clashes.push(Clash { job, part: place.holds[0].part, seats });
            self.end(job, Exit::Lost, kept);
        }
        for hold in &place.holds {
            let busy = self.busy.entry(hold.part).or_insert(0);
            if *busy & hold.seats != 0 {
                let seats = *busy & hold.seats;
                self.clashes.push(Clash { job, part: hold.part, seats });
            }
            *busy |= hold.seats;
        }
        // A simulated plant runs no programs: a server gives them to its runner.
        let (duration, step, checkpoint_every) = work.steps();
        let token = self.next_token(job);
        let task = Task {
            attempt,
            place: Some(place),
            duration,
            step,
            checkpoint_every,
            kept,
            phase: Phase::Starting,
            token,
        };
        self.all.insert(job, task);
        self.live.insert(job, ());
        token
    }

    /// Ends the newest attempt of a job; its hardware is free.
    pub(crate) fn end(&mut self, job: JobId, exit: Exit, kept: u64) {
        let Some(task) = self.all.get_mut(&job) else { return };
        task.phase = Phase::Over { exit };
        task.kept = kept;
        task.token += 1;
        self.live.remove(&job);
        let Some(place) = task.place.take() else { return };
        for hold in place.holds {
            if let Some(busy) = self.busy.get_mut(&hold.part) {
                *busy &= !hold.seats;
            }
        }
    }

    /// Remembers that an attempt that never began is over.
    pub(crate) fn bury(&mut self, job: JobId, attempt: u32) -> u64 {
        let kept = self.all.get(&job).map_or(0, |it| it.kept);
        let task = Task {
            attempt,
            place: None,
            duration: Span::ZERO,
            step: Span::secs(1),
            checkpoint_every: Span::secs(1),
            kept,
            phase: Phase::Over { exit: Exit::Told },
            token: self.next_token(job),
        };
        self.all.insert(job, task);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::id::PoolId;
    use selvedge_model::job::Hold;

    const WORK: Work = Work::Simulated {
        duration: Span::mins(60),
        step: Span::secs(7),
        checkpoint_every: Span::mins(10),
    };

    fn place(seats: u64) -> Place {
        Place::of(PoolId::new(0), vec![Hold { part: PartId::new(3), seats }])
    }

    fn running(kept: u64) -> Tasks {
        let mut tasks = Tasks::default();
        tasks.begin(JobId::new(1), 1, place(0b11), &WORK, kept);
        let task = tasks.of_mut(JobId::new(1)).unwrap();
        task.phase = Phase::Running { since: Moment::START };
        tasks
    }

    #[test]
    fn death_keeps_the_last_checkpoint_and_a_notice_keeps_all() {
        let tasks = running(100);
        let task = tasks.of(JobId::new(1)).unwrap();
        let now = Moment::START + Span::mins(29);
        // 20 minutes were kept by checkpoints: 171 steps of 7 s.
        assert_eq!(task.kept_at_death(now), 100 + 171);
        assert_eq!(task.kept_by_checkpoint(now), 100 + 248);
        // Never more than there is: 3,600 s are 515 steps, the last one shorter.
        assert_eq!(task.n_steps(), 515);
        assert_eq!(task.kept_by_checkpoint(now + Span::hours(9)), 515);
        assert_eq!(task.remaining(), Span::secs(3600 - 700));
    }

    #[test]
    fn a_seat_given_out_twice_is_a_clash_and_a_freed_one_is_not() {
        let mut tasks = running(0);
        tasks.begin(JobId::new(2), 1, place(0b110), &WORK, 0);
        let clash = Clash { job: JobId::new(2), part: PartId::new(3), seats: 0b10 };
        assert_eq!(tasks.take_clashes(), [clash]);
        tasks.end(JobId::new(1), Exit::Done, 515);
        tasks.end(JobId::new(2), Exit::Lost, 0);
        assert_eq!(tasks.busy(PartId::new(3)), 0);
        tasks.begin(JobId::new(3), 1, place(0b11), &WORK, 0);
        assert_eq!(tasks.take_clashes(), []);
    }

    #[test]
    fn a_second_attempt_beside_the_first_is_a_clash() {
        let mut tasks = running(0);
        tasks.begin(JobId::new(1), 2, place(0b11), &WORK, 0);
        assert_eq!(tasks.take_clashes().len(), 1);
        assert_eq!(tasks.live().count(), 1);
    }
}
