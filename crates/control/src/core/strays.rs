//! Devices that know more than the core.
//!
//! A journal that was salvaged, or put back from a backup, ends before what the plant was told
//! last.  Tasks of lost starts may run; their jobs' numbers, and the numbers of starts and of
//! writes, would be given out anew, and old answers pass for new ones.
//!
//! ```text
//!   Ahead ──► numbers of starts and writes go on beyond what devices have seen
//!     └─────► each unknown start that runs: its seats are out, it is told to end, again and again
//!               │   whoever is believed to be there, or was overtaken, starts anew elsewhere
//!               └── Stopped ──► its seats are free
//! ```

use selvedge_model::id::JobId;
use selvedge_model::job::Hold;

use crate::core::jobs::Haste;
use crate::core::{Accepted, Core, count};
use crate::input::{Ahead, Exit, Stray};
use crate::limits::{ATTEMPT_MAX, GENERATION_MAX};
use crate::note::{Note, Stage, StopWhy};
use crate::output::Command;
use crate::state::{JobState, Timer};

impl Core {
    /// Devices have been told more than is remembered here.
    pub(super) fn fall_behind(&mut self, ahead: Ahead) -> Accepted {
        let Ahead { strays, attempt, generation } = ahead;
        if generation.number() <= GENERATION_MAX {
            self.state.generation = self.state.generation.max(generation);
        }
        self.state.attempts_seen = self.state.attempts_seen.max(attempt.min(ATTEMPT_MAX));
        for stray in &strays {
            self.take_in(stray);
        }
        self.recount_outages();
        self.end_strays();
        for job in self.state.active.clone() {
            let attempt = self.state.jobs[job].attempt;
            let overtaken = strays.iter().any(|it| it.job == job && attempt < it.attempt);
            let crowded = self.is_on_stray(job);
            if overtaken || crowded {
                self.begin_anew(job, overtaken);
            }
        }
        Accepted::Done
    }

    /// Remembers an unknown start, as far as it is on this plant.
    fn take_in(&mut self, stray: &Stray) {
        let &Stray { job, attempt, .. } = stray;
        let is_known = self
            .state
            .jobs
            .get(job)
            .is_some_and(|it| it.attempt == attempt && self.state.active.contains(&job));
        if is_known {
            return;
        }
        let here = |hold: &Hold| {
            let seats = self.layout.seats.get(hold.part).copied().unwrap_or(0) & hold.seats;
            (seats != 0).then_some(Hold { part: hold.part, seats })
        };
        let holds: Vec<Hold> = stray.holds.iter().filter_map(here).collect();
        if holds.is_empty() {
            return;
        }
        let n_parts = count(holds.len());
        if self.state.strays.insert((job, attempt), holds).is_none() {
            self.note(Note::StrayFound { job, attempt, n_parts });
        }
    }

    /// Whether what a job holds is held by tasks of which nobody knows.
    fn is_on_stray(&self, job: JobId) -> bool {
        let Some(place) = &self.state.jobs[job].place else { return false };
        let strays = || self.state.strays.values().flatten();
        let is_theirs =
            |it: &Hold| strays().any(|other| other.part == it.part && other.seats & it.seats != 0);
        place.holds.iter().any(is_theirs)
    }

    /// A job that was overtaken by a start of its own that was lost, or whose place is not its own.
    fn begin_anew(&mut self, job: JobId, overtaken: bool) {
        let known = &self.state.jobs[job];
        let kept = known.kept;
        match known.state {
            // Nobody will speak of its tasks again: another start came after them.
            JobState::Starting { stage: Stage::Dispatching, .. }
            | JobState::Running { .. }
            | JobState::Stopping { .. }
                if overtaken && !self.state.wirings.contains_key(&job) =>
            {
                self.stopped(job, Exit::Lost, kept);
            }
            JobState::Starting { stage, .. } => self.fail_start(job, stage),
            JobState::Running { .. } => self.stop(job, StopWhy::Lost, Haste::AtOnce),
            // Those who stop do so already; those who wait look for other parts.
            JobState::Stopping { .. }
            | JobState::Queued { .. }
            | JobState::Finished
            | JobState::Failed { .. }
            | JobState::Cancelled => (),
        }
    }

    /// Whether this start is one of those that nobody knows.
    pub(super) fn is_stray(&self, job: JobId, attempt: u32) -> bool {
        self.state.strays.contains_key(&(job, attempt))
    }

    /// Whether tasks run under the number of `job` of which nobody knows: it is not started beside
    /// them.
    pub(super) fn has_stray(&self, job: JobId) -> bool {
        self.state.strays.range((job, 0)..=(job, u32::MAX)).next().is_some()
    }

    /// Tells all of them to end.
    pub(super) fn end_strays(&mut self) {
        let strays: Vec<(JobId, u32)> = self.state.strays.keys().copied().collect();
        if strays.is_empty() {
            return;
        }
        for (job, attempt) in strays {
            self.send(Command::Kill { job, attempt });
        }
        self.set_timer(Timer::Strays, self.state.now + self.state.settings.grace);
    }

    /// The tasks of one are dead.
    pub(super) fn stray_ended(&mut self, job: JobId, attempt: u32) {
        self.state.strays.remove(&(job, attempt));
        if self.state.strays.is_empty() {
            self.clear_timer(Timer::Strays);
        }
        self.note(Note::StrayEnded { job, attempt });
        self.recount_outages();
        if self.state.jobs.get(job).is_some() && !self.has_stray(job) {
            self.enqueue(job);
        }
    }
}
