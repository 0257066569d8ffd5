//! A job's fate: queued, stopped, requeued, ended.

use selvedge_model::id::JobId;
use selvedge_model::job::{Place, Work};
use selvedge_model::unit::{Moment, Span};

use crate::core::Core;
use crate::input::Exit;
use crate::limits::{BACKOFF_MAX, STARTS_MAX, TIMELINE_MAX};
use crate::note::{FailWhy, Note, Stage, StopWhy};
use crate::output::Command;
use crate::planted::Defect;
use crate::schedule;
use crate::state::{Event, JobState, QueueKey, Timer};

/// Whether a job that must stop gets its notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Haste {
    /// Tell the tasks, and kill them when their notice is over.
    WithNotice,
    /// The hardware under them is gone, or there are no tasks yet.
    AtOnce,
}

impl Core {
    /// Puts a job that waits into the queue, if it may start.
    pub(super) fn enqueue(&mut self, job: JobId) {
        let known = &self.state.jobs[job];
        let JobState::Queued { not_before, held, .. } = known.state else { return };
        if known.place.is_some() {
            self.dirty = true;
            return;
        }
        if held || self.has_stray(job) {
            return;
        }
        if self.state.now < not_before {
            self.set_timer(Timer::Job(job), not_before);
            return;
        }
        self.state.queue.insert((self.queue_key(job), job));
        self.dirty = true;
    }

    /// Takes a job out of the queue, if it is there.
    pub(super) fn dequeue(&mut self, job: JobId) {
        if let JobState::Queued { .. } = self.state.jobs[job].state {
            let key = self.queue_key(job);
            self.state.queue.remove(&(key, job));
        }
        self.clear_timer(Timer::Job(job));
    }

    /// Where a job that waits stands, or would stand, in the queue.
    pub(super) fn queue_key(&self, job: JobId) -> QueueKey {
        let known = &self.state.jobs[job];
        let since = match known.state {
            JobState::Queued { since, .. } => since,
            _ => known.submitted,
        };
        let rank = schedule::rank(self.state.settings.aging, since, known.spec.priority);
        QueueKey { unclaimed: !known.claims, rank }
    }

    /// How long a job has waited in the queue this time.
    pub(super) fn waited(&self, job: JobId) -> Span {
        let known = &self.state.jobs[job];
        let JobState::Queued { since, .. } = known.state else { return Span::ZERO };
        let came = match known.timeline.last() {
            Some((at, Event::Requeued)) => *at,
            _ => since,
        };
        self.state.now.since(came.max(since))
    }

    /// Lets `job` go first, because running jobs stop for it.
    pub(super) fn claim(&mut self, job: JobId) {
        self.dequeue(job);
        self.state.jobs[job].claims = true;
        self.enqueue(job);
    }

    /// Nobody leaves for `job` any more, and it still does not fit: it waits like the others.
    pub(super) fn unclaim(&mut self, job: JobId) {
        self.dequeue(job);
        self.state.jobs[job].claims = false;
        self.enqueue(job);
    }

    /// A deadline of `job` has come.
    pub(super) fn job_due(&mut self, job: JobId) {
        match self.state.jobs[job].state.clone() {
            JobState::Queued { .. } => self.enqueue(job),
            JobState::Starting { stage, asks, .. } => self.stage_due(job, stage, asks),
            JobState::Running { .. } => self.stop(job, StopWhy::Limit, Haste::WithNotice),
            JobState::Stopping { why, .. } if self.state.wirings.contains_key(&job) => {
                self.wiring_due(job, why);
            }
            JobState::Stopping { why, .. } => self.kill(job, why),
            JobState::Finished | JobState::Failed { .. } | JobState::Cancelled => (),
        }
    }

    /// Stops a job that holds hardware.  A job that is stopping already only gets the stronger
    /// reason.
    pub(super) fn stop(&mut self, job: JobId, why: StopWhy, haste: Haste) {
        match self.state.jobs[job].state.clone() {
            JobState::Queued { .. } => self.outcome(job, why),
            JobState::Starting { stage: Stage::Dispatching, .. } => {
                self.told(job, why);
                self.kill(job, why);
            }
            JobState::Starting { .. } => {
                self.state.awaited.remove(&self.errand(job));
                self.told(job, why);
                if self.state.wirings.contains_key(&job) {
                    // The writes are out: the parts are given back once they are answered.
                    let kill_at = self.state.now + self.state.settings.answer_max;
                    self.state.jobs[job].state = JobState::Stopping { why, kill_at, killed: true };
                    self.set_timer(Timer::Job(job), kill_at);
                } else {
                    self.outcome(job, why);
                }
            }
            JobState::Running { .. } if haste == Haste::AtOnce => {
                self.told(job, why);
                self.kill(job, why);
            }
            JobState::Running { .. } => {
                self.told(job, why);
                let grace = self.state.settings.notice;
                let kill_at = self.state.now + grace;
                self.state.jobs[job].state = JobState::Stopping { why, kill_at, killed: false };
                let attempt = self.state.jobs[job].attempt;
                self.send(Command::Notify { job, attempt, grace });
                if self.state.settings.has(Defect::FreedBeforeDead) {
                    self.outcome(job, why);
                    return;
                }
                self.set_timer(Timer::Job(job), kill_at);
            }
            JobState::Stopping { why: before, killed, kill_at } => {
                let why = stronger(before, why);
                self.state.jobs[job].state = JobState::Stopping { why, kill_at, killed };
                if haste == Haste::AtOnce && !killed {
                    self.kill(job, why);
                }
            }
            JobState::Finished | JobState::Failed { .. } | JobState::Cancelled => (),
        }
    }

    fn told(&mut self, job: JobId, why: StopWhy) {
        self.event(job, Event::Notified(why));
        let attempt = self.state.jobs[job].attempt;
        self.note(Note::JobNotified { job, attempt, why });
    }

    /// Ends the tasks; told again until they are dead.
    fn kill(&mut self, job: JobId, why: StopWhy) {
        let kill_at = self.state.now;
        self.state.awaited.remove(&self.errand(job));
        self.state.jobs[job].state = JobState::Stopping { why, kill_at, killed: true };
        let attempt = self.state.jobs[job].attempt;
        self.send(Command::Kill { job, attempt });
        self.set_timer(Timer::Job(job), kill_at + self.state.settings.grace);
    }

    /// The tasks are dead.
    pub(super) fn stopped(&mut self, job: JobId, exit: Exit, kept: u64) {
        let attempt = self.state.jobs[job].attempt;
        let known = &mut self.state.jobs[job];
        known.kept = known.kept.max(kept);
        let was_stopping = match known.state {
            JobState::Stopping { why, .. } => Some(why),
            _ => None,
        };
        let hit = matches!(was_stopping, None | Some(StopWhy::Fault { .. } | StopWhy::Lost));
        if hit && exit == Exit::Lost || matches!(was_stopping, Some(StopWhy::Fault { .. })) {
            known.n_interrupted += 1;
        }
        if matches!(was_stopping, Some(StopWhy::Preempted { .. } | StopWhy::Moved { .. })) {
            known.n_preempted += 1;
        }
        self.event(job, Event::Stopped(exit));
        self.note(Note::JobStopped { job, attempt, exit, kept });
        let why = match (exit, was_stopping) {
            (Exit::Done, _) => {
                self.end(job, JobState::Finished);
                return;
            }
            (_, Some(why)) => why,
            (Exit::Failed(status), None) => StopWhy::Failed { status },
            (Exit::Hung { task }, None) => StopWhy::Hung { task },
            (Exit::Lost | Exit::Told, None) => StopWhy::Lost,
        };
        self.outcome(job, why);
    }

    /// A job failed by its own doing: it is tried again, or given up.
    fn failed(&mut self, job: JobId, stopped: StopWhy, failed: FailWhy) {
        self.state.jobs[job].n_failed += 1;
        let n_failed = self.state.jobs[job].n_failed;
        if self.state.jobs[job].spec.retries < n_failed {
            self.end(job, JobState::Failed { why: failed });
        } else {
            self.requeue(job, stopped, self.state.now + self.backoff(n_failed));
        }
    }

    /// What becomes of a job whose tasks are dead, or never began.
    pub(super) fn outcome(&mut self, job: JobId, why: StopWhy) {
        let now = self.state.now;
        match why {
            StopWhy::Limit => self.end(job, JobState::Failed { why: FailWhy::Limit }),
            StopWhy::Cancelled => self.end(job, JobState::Cancelled),
            StopWhy::Failed { status } => self.failed(job, why, FailWhy::Exit { status }),
            StopWhy::Hung { task } => self.failed(job, why, FailWhy::Hung { task }),
            StopWhy::StartFailed { .. } => {
                self.state.jobs[job].n_bad_starts += 1;
                let n = self.state.jobs[job].n_bad_starts;
                if STARTS_MAX <= n {
                    self.end(job, JobState::Failed { why: FailWhy::Starts { n } });
                } else if n <= 2 {
                    self.keep(job, why, now);
                } else {
                    // Wherever it goes it fails: give the parts to others while it waits.
                    self.requeue(job, why, now + self.backoff(n - 2));
                }
            }
            // Its parts look sound until the case of whatever killed the tasks is open.
            StopWhy::Lost => self.keep(job, why, now + self.state.settings.diagnosis),
            StopWhy::Fault { .. } | StopWhy::Drained { .. } => self.keep(job, why, now),
            StopWhy::Preempted { .. } if self.state.settings.has(Defect::PreemptedLost) => {
                self.end(job, JobState::Cancelled);
            }
            StopWhy::Preempted { .. } | StopWhy::Requeued => self.requeue(job, why, now),
            StopWhy::Moved { .. } => self.moved(job, why),
        }
    }

    fn backoff(&self, n: u32) -> Span {
        let factor = 1u64 << n.saturating_sub(1).min(16);
        self.state.settings.backoff.times(factor).min(BACKOFF_MAX)
    }

    /// Lets a job wait on the healthy parts that it has: for spares, where any would do, or until
    /// it is known what was with its tasks.  Whatever its family, nobody gets them meanwhile.
    fn keep(&mut self, job: JobId, why: StopWhy, not_before: Moment) {
        let since = self.state.jobs[job].submitted;
        self.state.awaited.remove(&self.errand(job));
        self.state.seen.remove(&job);
        // One that was to be moved stays with what it has.
        if let Some(next) = self.state.jobs[job].next.take() {
            self.give(&next);
        }
        self.state.jobs[job].state = JobState::Queued { since, not_before, held: false };
        self.event(job, Event::Requeued);
        self.note(Note::JobRequeued { job, why, not_before });
        self.clear_timer(Timer::Job(job));
        self.dirty = true;
        if self.state.now < not_before {
            self.set_timer(Timer::Job(job), not_before);
        }
        let hit = matches!(why, StopWhy::Fault { .. } | StopWhy::Lost);
        if hit && self.state.settings.has(Defect::RequeueLost) {
            self.clear_timer(Timer::Job(job));
            self.release(job);
            return;
        }
        self.left();
    }

    /// What killed the tasks of a job that waits on its parts is known by now: it waits no longer.
    pub(super) fn hasten(&mut self, job: JobId) {
        let now = self.state.now;
        let JobState::Queued { not_before, .. } = &mut self.state.jobs[job].state else { return };
        if now < *not_before {
            *not_before = now;
            self.clear_timer(Timer::Job(job));
            self.dirty = true;
        }
    }

    /// Gives the job's parts back and lets it wait in the queue.
    pub(super) fn requeue(&mut self, job: JobId, why: StopWhy, not_before: Moment) {
        // Whoever was preempted waits anew, or it would age past the job that it made room for.
        let preempted = matches!(why, StopWhy::Preempted { .. } | StopWhy::Moved { .. });
        let since = if preempted { self.state.now } else { self.state.jobs[job].submitted };
        self.wait_anew(job, since, not_before);
        self.event(job, Event::Requeued);
        self.note(Note::JobRequeued { job, why, not_before });
    }

    /// A job that kept its place, and for which there is no spare, gives it up.
    pub(super) fn give_up_place(&mut self, job: JobId) {
        let (since, now) = (self.state.jobs[job].submitted, self.state.now);
        self.wait_anew(job, since, now);
    }

    fn wait_anew(&mut self, job: JobId, since: Moment, not_before: Moment) {
        self.release(job);
        self.state.jobs[job].state = JobState::Queued { since, not_before, held: false };
        self.enqueue(job);
    }

    /// The job's tasks are dead, and its new place is held for it.
    fn moved(&mut self, job: JobId, why: StopWhy) {
        let (fabric, parts) = (&self.fabric, &self.state.parts);
        let is_sound = |place: &Place| {
            let mut holds = place.holds.iter();
            holds.all(|it| !parts[it.part].hits(fabric, *it, place))
        };
        // Where it was to go may have failed since: then it waits like any other.
        let Some(next) = self.state.jobs[job].next.take_if(|it| is_sound(it)) else {
            self.requeue(job, why, self.state.now);
            return;
        };
        self.release(job);
        self.give(&next);
        let now = self.state.now;
        self.state.jobs[job].state = JobState::Queued { since: now, not_before: now, held: false };
        self.event(job, Event::Requeued);
        self.note(Note::JobRequeued { job, why, not_before: now });
        self.start(job, next);
    }

    /// The job is over.
    pub(super) fn end(&mut self, job: JobId, state: JobState) {
        self.dequeue(job);
        // Even one that held nothing: those behind it may be first now.
        self.dirty = true;
        let generation = self.state.jobs[job].generation;
        self.release(job);
        let now = self.state.now;
        let note = match &state {
            JobState::Failed { why } => Note::JobFailed { job, why: *why },
            JobState::Cancelled => Note::JobCancelled { job },
            _ => Note::JobFinished { job },
        };
        let known = &mut self.state.jobs[job];
        known.state = state;
        known.ended = Some(now);
        // What its last wiring was set with, for whoever reads of it later.
        known.generation = generation;
        self.event(job, Event::Ended);
        self.note(note);
        self.clear_timer(Timer::Job(job));
    }

    /// Gives back all that the job holds.  Its wiring stays until somebody needs the ports.
    fn release(&mut self, job: JobId) {
        self.state.awaited.remove(&self.errand(job));
        self.state.seen.remove(&job);
        self.state.active.remove(&job);
        let now = self.state.now;
        let known = &mut self.state.jobs[job];
        let next = known.next.take();
        known.generation = None;
        known.claims = false;
        if let Some(place) = known.place.take() {
            known.allocated += now.since(known.placed_at);
            self.give(&place);
            self.dirty = true;
        }
        if let Some(next) = next {
            self.give(&next);
        }
        self.left();
    }

    fn give(&mut self, place: &Place) {
        for hold in &place.holds {
            let blind = self.state.settings.has(Defect::DoubleBackfill);
            let held = &mut self.state.parts[hold.part].held;
            assert!(*held & hold.seats == hold.seats || blind, "{hold:?} is not held");
            *held &= !hold.seats;
        }
    }

    /// A line of the job's timeline.
    pub(super) fn event(&mut self, job: JobId, event: Event) {
        let now = self.state.now;
        let timeline = &mut self.state.jobs[job].timeline;
        if TIMELINE_MAX <= timeline.len() {
            timeline.remove(TIMELINE_MAX / 2);
        }
        timeline.push((now, event));
    }
}

/// Whether a job's work is nothing at all, so that it needs no hardware.
pub(super) fn is_nothing(work: &Work) -> bool {
    let (duration, ..) = work.steps();
    duration == Span::ZERO
}

/// The reason that decides a job's fate when there are two: a person's word, then the limit.
fn stronger(before: StopWhy, after: StopWhy) -> StopWhy {
    let rank = |why: &StopWhy| match why {
        StopWhy::Cancelled => 3,
        StopWhy::Limit => 2,
        StopWhy::Fault { .. } => 1,
        StopWhy::Requeued
        | StopWhy::Preempted { .. }
        | StopWhy::Drained { .. }
        | StopWhy::Moved { .. }
        | StopWhy::StartFailed { .. }
        | StopWhy::Lost
        | StopWhy::Failed { .. }
        | StopWhy::Hung { .. } => 0,
    };
    if rank(&before) < rank(&after) { after } else { before }
}
