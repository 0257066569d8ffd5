//! What must never be, held after every step.
//!
//! Cheap rules are held at each step: no seat serves two jobs (the plant's own books, not the
//! core's), no start on what was known to be out.  The others walk the whole state and are held
//! each so many inputs; a broken one stays broken long enough to be seen, for it concerns jobs
//! that run and mirrors that stand.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_control::core::Core;
use selvedge_control::input::Errand;
use selvedge_control::state::{JobState, Timer};
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::Place;
use selvedge_model::unit::{Moment, Span};

use crate::device::Plant;
use crate::limits;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant's text names its fields")]
pub enum Violation {
    #[error("{job} began on seats {seats:#x} of {part}, on which another's tasks run")]
    SeatTwice { job: JobId, part: PartId, seats: u64 },
    #[error("{job} was started on a part that was known to be out since {since}")]
    StartOnOut { job: JobId, since: Moment },
    #[error("the tasks of {job} still run on a part that is out since {since}")]
    Stayed { job: JobId, since: Moment },
    #[error("the core knows {known} jobs, {accepted} were accepted")]
    JobCount { known: u64, accepted: u64 },
    #[error("{name} was acknowledged as {job}; after a crash the core knows {found:?} by that key")]
    Forgotten { name: String, job: JobId, found: Option<JobId> },
    #[error("after record {number} a replay comes to another state than the core was in")]
    ReplayDiffers { number: u64 },
    #[error("{n} writes were carried out after newer ones")]
    StaleWrites { n: u64 },
    #[error("{job} was accepted twice under one key")]
    JobTwice { job: JobId },
    #[error("{job} is {word}, and stands in the wrong lists for that: nothing will move it on")]
    Stranded { job: JobId, word: &'static str },
    #[error("the tasks of {job} run though the job is {word}")]
    Orphan { job: JobId, word: &'static str },
    #[error("{switch} stands otherwise than the core believes, though all is quiet")]
    MirrorsDiffer { switch: PartId },
    #[error("{job} was started with an end that leads nowhere or to another job")]
    Misjoined { job: JobId },
    #[error("{job} was started with another's forwarding table at seat {seat} of {part}")]
    Tableless { job: JobId, part: PartId, seat: usize },
    #[error("record {number} is a submit that made {made}")]
    NotAJob { number: u64, made: String },
    #[error("the state breaks a rule: {rule}")]
    State { rule: String },
    #[error("{job} is not over although everything is healed: {why}")]
    NotLive { job: JobId, why: String },
}

/// A violation and its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// When it was seen.
    pub at: Moment,
    /// What was seen.
    pub violation: Violation,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {}: {}", self.at, self.violation)
    }
}

/// Holds the rules.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    found: Vec<Found>,
    n_found: u64,
    /// Starts of jobs that have to leave their place, each with the first check that saw it so.
    leaving: BTreeMap<(JobId, u32), Moment>,
    n_stale_writes: u64,
    /// The table that each start of a job was to have.
    tables: BTreeMap<JobId, (u32, u64)>,
}

/// What answers and syncs may take beyond the times that the core promises.
const SLACK: Span = Span::secs(90);

impl Rules {
    /// A judge who has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many violations there were.
    pub fn n_found(&self) -> u64 {
        self.n_found
    }

    /// The first violations.
    pub fn list(&self) -> &[Found] {
        &self.found
    }

    pub(crate) fn found(&mut self, at: Moment, violation: Violation) {
        self.n_found += 1;
        if self.found.len() < limits::VIOLATIONS_MAX {
            self.found.push(Found { at, violation });
        }
    }

    pub(crate) fn restarted(&mut self, now: Moment) {
        // A process that is down evicts nobody: all begins anew.
        for since in self.leaving.values_mut() {
            *since = now;
        }
    }

    /// The chips of a start are told their table.
    pub(crate) fn programs(&mut self, errand: Errand, table: u64) {
        if let Errand::Job(job, attempt) = errand {
            self.tables.insert(job, (attempt, table));
        }
    }

    /// Tasks are being started: the place must be sound, as far as the core knew.
    pub(crate) fn starts(
        &mut self,
        now: Moment,
        core: &Core,
        plant: &Plant,
        job: JobId,
        attempt: u32,
        place: &Place,
    ) {
        let Some(known) = core.state().jobs.get(job) else { return };
        // What has moved on since the order was given is not started any more.
        let JobState::Starting { since, .. } = known.state else { return };
        if known.attempt != attempt {
            return;
        }
        if let Some(out_since) = core.must_leave_since(job)
            && out_since < since
        {
            self.found(now, Violation::StartOnOut { job, since: out_since });
        }
        self.check_tables(now, plant, (job, attempt), place);
        let parts: Vec<PartId> = place.holds.iter().map(|it| it.part).collect();
        let told = plant.tasks().of(job).is_some_and(|it| it.attempt == attempt);
        if known.generation.is_some()
            && !told
            && plant.is_calm(now)
            && plant.misjoined(&parts).is_some()
        {
            self.found(now, Violation::Misjoined { job });
        }
    }

    /// Every chip of a start has the table that it was told for this start.
    fn check_tables(&mut self, now: Moment, plant: &Plant, start: (JobId, u32), place: &Place) {
        let (job, attempt) = start;
        let wanted = self.tables.get(&job).filter(|it| it.0 == attempt).map(|it| it.1);
        for hold in &place.holds {
            let seats = (0..64).filter(|seat| hold.seats >> seat & 1 == 1);
            let has = |seat: usize| plant.table_at(hold.part, seat).map(|it| it.digest);
            if let Some(seat) = seats.clone().find(|&seat| has(seat) != wanted) {
                self.found(now, Violation::Tableless { job, part: hold.part, seat });
            }
        }
    }

    /// After a crash: everything acknowledged is there.
    pub(crate) fn remembers(
        &mut self,
        now: Moment,
        core: &Core,
        acknowledged: &BTreeMap<String, JobId>,
    ) {
        for (name, &job) in acknowledged {
            let found = core.state().keys.get(name).copied();
            let same = core.state().jobs.get(job).is_some_and(|it| it.spec.name == *name);
            if found != Some(job) || !same {
                self.found(now, Violation::Forgotten { name: name.clone(), job, found });
            }
        }
    }

    /// Walks the whole state.
    pub(crate) fn check(&mut self, now: Moment, core: &Core, plant: &Plant) {
        for violation in core.check() {
            self.found(now, Violation::State { rule: violation.to_string() });
        }
        if self.n_stale_writes < plant.n_stale_writes() {
            self.n_stale_writes = plant.n_stale_writes();
            self.found(now, Violation::StaleWrites { n: self.n_stale_writes });
        }
        self.check_tasks(now, core, plant);
        self.check_jobs(now, core);
        self.check_mirrors(now, core, plant);
    }

    /// Tasks run only for jobs that hold their hardware, and leave what is out in time.
    fn check_tasks(&mut self, now: Moment, core: &Core, plant: &Plant) {
        let state = core.state();
        let mut leaving = BTreeMap::new();
        for (job, task) in plant.tasks().live() {
            let Some(known) = state.jobs.get(job) else { continue };
            if known.state.is_over() {
                self.found(now, Violation::Orphan { job, word: known.state.word() });
                continue;
            }
            if core.must_leave_since(job).is_none() {
                continue;
            }
            // From when we saw it: a drain may have stood for long before it came to evict.
            let since = self.leaving.get(&(job, task.attempt)).copied().unwrap_or(now);
            if since + core.leave_max() + SLACK < now {
                self.found(now, Violation::Stayed { job, since });
            }
            leaving.insert((job, task.attempt), since);
        }
        self.leaving = leaving;
    }

    /// Every job that is not over is in the queue, held back, active, or waits for a deadline.
    fn check_jobs(&mut self, now: Moment, core: &Core) {
        let state = core.state();
        let queued: BTreeSet<JobId> = state.queue.iter().map(|it| it.1).collect();
        for (job, known) in state.jobs.pairs() {
            let moves_on = match known.state {
                JobState::Queued { held: true, .. } => !queued.contains(&job),
                // One that waits for a spare is active; one that backs off has a deadline.
                JobState::Queued { held: false, .. } => {
                    let waits = state.deadlines.contains_key(&Timer::Job(job));
                    queued.contains(&job) || waits || state.active.contains(&job)
                }
                JobState::Starting { .. }
                | JobState::Running { .. }
                | JobState::Stopping { .. } => {
                    state.active.contains(&job) && !queued.contains(&job)
                }
                JobState::Finished | JobState::Failed { .. } | JobState::Cancelled => {
                    !state.active.contains(&job) && !queued.contains(&job)
                }
            };
            if !moves_on {
                self.found(now, Violation::Stranded { job, word: known.state.word() });
            }
        }
    }

    /// Once nothing is under way, each switch that answers stands as the core believes.
    fn check_mirrors(&mut self, now: Moment, core: &Core, plant: &Plant) {
        let state = core.state();
        if !state.wirings.is_empty() {
            return;
        }
        for (switch, ocs) in plant.switches() {
            let Some(believed) = state.switches.get(&switch) else { continue };
            if !believed.known || now <= ocs.busy_until || !plant.is_told(switch) {
                continue;
            }
            let same = ocs
                .pairs()
                .iter()
                .map(|it| (it.north, it.south))
                .eq(believed.pairs.iter().map(|(&north, &south)| (north, south)));
            if !same {
                self.found(now, Violation::MirrorsDiffer { switch });
            }
        }
    }
}
