//! What must never be, held after every step.
//!
//! | rules | what they are held against |
//! |---|---|
//! | seats, tasks, ends | the plant's own books of what runs where |
//! | drains, holds, cancellations | a book of what people did and were promised (`book`) |
//! | requalification, probation, budgets | what is told and answered, in its order (`trust`) |
//! | who passes whom, owners' shares in moves | limits, by the judge's own count (`fair`) |
//! | starts and stays on what is out | the cables (`reach`) |
//! | who is stopped, and whose start fails | what is at fault in its place (`needless`) |
//! | generations, read before written | what leaves for the switches |
//! | nothing forgotten, replays to the same state | the journal after a crash |
//!
//! Cheap rules are held at each step.  The others walk the whole state and are held each so many
//! inputs; a broken one stays broken long enough to be seen.  None asks the core's planners or its
//! accounts of what is free: those may be what is wrong.

pub(crate) mod book;
mod fair;
mod needless;
mod reach;
mod trust;

use std::collections::{BTreeMap, BTreeSet};

use selvedge_control::core::{Adopted, Core};
use selvedge_control::input::{Answer, Errand, Exit, Input};
use selvedge_control::note::{FailWhy, Note, Stage, StopWhy};
use selvedge_control::state::{Job, JobState, Timer};
use selvedge_model::fabric::Fabric;
use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId};
use selvedge_model::job::Place;
use selvedge_model::unit::{Generation, Moment, Span};

use crate::device::Plant;
use crate::limits;
use crate::task::{Phase, Task};
use book::{Book, Deed};
use fair::Fair;
use needless::Needless;
use trust::Trust;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant's text names its fields")]
pub enum Violation {
    #[error("{job} began on seats {seats:#x} of {part}, on which another's tasks run")]
    SeatTwice { job: JobId, part: PartId, seats: u64 },
    #[error("{job} was started on a part that was known to be out since {since}")]
    StartOnOut { job: JobId, since: Moment },
    #[error("{job} was placed on {path}, which was out since {since}")]
    PlacedOnOut { job: JobId, path: String, since: Moment },
    #[error("{job} has to leave {switch}, of which nothing is known but that it does not answer")]
    LeftForSilence { job: JobId, switch: PartId },
    #[error("{job} has to leave its place for {path}, of which it uses nothing")]
    LeftForNothing { job: JobId, path: String },
    #[error("start {attempt} of {job} failed at {stage:?}, and nothing that it uses was at fault")]
    FailedForNothing { job: JobId, attempt: u32, stage: Stage },
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
    #[error("the tasks of {job} run elsewhere than the core believes")]
    Elsewhere { job: JobId },
    #[error("the tasks of {job} are over since {since}, and the job is still {word}")]
    EndMissed { job: JobId, since: Moment, word: &'static str },
    #[error("{job} runs since {since}, longer than its limit of {limit}")]
    OverLimit { job: JobId, since: Moment, limit: Span },
    #[error("{job} ended as {word}, for which there was no reason")]
    NoReason { job: JobId, word: &'static str },
    #[error("{job} was over and is {word} again")]
    Revived { job: JobId, word: &'static str },
    #[error("{job} is held back and is {word}")]
    HoldIgnored { job: JobId, word: &'static str },
    #[error("{job} was cancelled and is {word}")]
    CancelIgnored { job: JobId, word: &'static str },
    #[error("{path} was drained by {by}, who has not taken that back, and is not drained by {by}")]
    DrainTaken { path: String, by: String },
    #[error("{path} is drained by {by}, who did not ask for it, or has taken it back")]
    DrainUnasked { path: String, by: String },
    #[error("{case}: {path} returns without having been verified")]
    Unverified { case: CaseId, path: String },
    #[error("{path} has come into the plant again and was not tested")]
    Untested { path: String },
    #[error("{case}: {path} returns without probation")]
    NoProbation { case: CaseId, path: String },
    #[error("{n} things are worked on at once, where {n_at_once} were allowed")]
    OverBudget { n: usize, n_at_once: u32 },
    #[error("a blueprint of generation {generation} follows one of {newest}")]
    OldGeneration { generation: Generation, newest: Generation },
    #[error("{switch} is told to turn mirrors by {generation} and was not read after the restart")]
    BlindWrite { switch: PartId, generation: Generation },
    #[error("a plan for {job} did not pass the core's own check")]
    PlanRefused { job: JobId },
    #[error("a change of the plant touches {part} under the tasks of {job}")]
    PlantTouched { job: JobId, part: PartId },
    #[error("{switch} stands otherwise than the core believes, though all is quiet")]
    MirrorsDiffer { switch: PartId },
    #[error("{job} was started with an end that leads nowhere or to another job")]
    Misjoined { job: JobId },
    #[error("{job} was started with another's forwarding table at seat {seat} of {part}")]
    Tableless { job: JobId, part: PartId, seat: usize },
    #[error("record {number} is a submit that made {made}")]
    NotAJob { number: u64, made: String },
    #[error("{job} passed {head}, which by the limits fits from {before} on, and now from {after}")]
    HeadDelayed { job: JobId, head: JobId, before: Moment, after: Moment },
    #[error("{job} passed {stood}, which asks for the same, for no longer, and still waits")]
    PassedByEqual { job: JobId, stood: JobId },
    #[error("{job} is the first that may start, fits, and still waits")]
    LeftStanding { job: JobId },
    #[error("{owner} loses {lost} of chip time to moves, where its share is {may}")]
    ShareOverdrawn { owner: String, lost: Span, may: Span },
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
    /// Starts whose tasks are over and whose end the core has not heard, likewise.
    unheard: BTreeMap<(JobId, u32), Moment>,
    /// Jobs whose end has been judged.
    ended: BTreeSet<JobId>,
    book: Book,
    fair: Fair,
    trust: Trust,
    needless: Needless,
    /// When the process last started again.
    restarted_at: Moment,
    /// The newest generation that was told of.
    generation: Generation,
    /// The newest generation as of the last restart.
    generation_before: Generation,
    /// Switches that were read since.
    read: BTreeSet<PartId>,
    n_stale_writes: u64,
    /// The table that each start of a job was to have.
    tables: BTreeMap<JobId, (u32, u64)>,
}

/// What answers and syncs may take beyond the times that the core promises.
const SLACK: Span = Span::secs(90);

/// How long after the plant the core may learn that tasks began or ended: answers are lost, and
/// asked for again.
const LEARN: Span = Span::mins(15);

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

    /// The core has accepted an input, whose record has this number.
    pub(crate) fn accepted(&mut self, number: u64, deed: Option<Deed>) {
        if let Some(deed) = deed {
            self.book.note(number, deed);
        }
    }

    /// The core is about to hear an answer.
    pub(crate) fn hears(&mut self, core: &Core, input: &Input) {
        if let Input::Answer(Answer::SwitchRead { switch, .. }) = input {
            self.read.insert(*switch);
        }
        self.trust.heard(core, input);
        self.fair.hears(core);
    }

    /// The core has handled record `number`, and adopted these plans.
    pub(crate) fn planned(&mut self, now: Moment, core: &Core, number: u64, plans: &[Adopted]) {
        self.needless.handled(core);
        let found = self.fair.planned(core, number, plans);
        found.into_iter().for_each(|it| self.found(now, it));
    }

    /// All records up to this one are durable.
    pub(crate) fn synced(&mut self, number: u64) {
        self.book.synced(number);
    }

    /// The process has started again, with all records up to this one.
    pub(crate) fn restarted(&mut self, now: Moment, core: &Core, newest: u64) {
        self.book.crashed(newest);
        self.fair.crashed(newest);
        self.trust.restarted(core);
        self.needless.restarted();
        self.restarted_at = now;
        self.generation_before = self.generation.max(core.state().generation);
        self.read.clear();
        // A process that is down evicts nobody: all begins anew.
        for since in self.leaving.values_mut().chain(self.unheard.values_mut()) {
            *since = now;
        }
    }

    /// The core tells people.
    pub(crate) fn noted(&mut self, now: Moment, note: &Note, core: &Core) {
        let found = [self.trust.noted(now, note, core), self.needless.noted(note, core)];
        found.into_iter().flatten().for_each(|it| self.found(now, it));
        match note {
            &Note::BlueprintAdopted { generation, .. } => {
                let newest = self.generation;
                if generation <= newest {
                    self.found(now, Violation::OldGeneration { generation, newest });
                }
                self.generation = newest.max(generation);
            }
            &Note::PlanRefused { job, .. } => self.found(now, Violation::PlanRefused { job }),
            &Note::JobNotified { job, why: StopWhy::Fault { case }, .. } => {
                if let Some(switch) = only_silent(core, case)
                    && matches!(core.state().jobs[job].state, JobState::Stopping { .. })
                {
                    self.found(now, Violation::LeftForSilence { job, switch });
                }
            }
            _other => (),
        }
    }

    /// The chips of a start are told their table.
    pub(crate) fn programs(&mut self, errand: Errand, table: u64) {
        if let Errand::Job(job, attempt) = errand {
            self.tables.insert(job, (attempt, table));
        }
    }

    /// A switch is told to turn mirrors.
    pub(crate) fn writes(
        &mut self,
        now: Moment,
        core: &Core,
        switch: PartId,
        generation: Generation,
    ) {
        // What was planned before the restart is told again, and an undo restores what it knows.
        let mut wirings = core.state().wirings.values().map(|it| &it.blueprint);
        let plans = wirings.any(|it| it.generation == generation && !it.undoes);
        if plans && self.generation_before < generation && !self.read.contains(&switch) {
            self.found(now, Violation::BlindWrite { switch, generation });
        }
    }

    /// The hardware follows a change of the plant.
    pub(crate) fn rebuilt(&mut self, now: Moment, before: &Fabric, after: &Fabric, plant: &Plant) {
        let mut touched = Vec::new();
        for (job, task) in plant.tasks().live() {
            let Some(place) = &task.place else { continue };
            for part in place.holds.iter().map(|it| it.part) {
                let mut ports = before.ports_of(part);
                if after.part(part).retired
                    || ports.any(|it| reach::is_rejoined(before, after, it, place))
                {
                    touched.push(Violation::PlantTouched { job, part });
                }
            }
        }
        touched.into_iter().for_each(|it| self.found(now, it));
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
        if let Some(out_since) = must_leave_since(core, place)
            && out_since < since
        {
            self.found(now, Violation::StartOnOut { job, since: out_since });
        }
        let parts: Vec<PartId> = place.holds.iter().map(|it| it.part).collect();
        let told = plant.tasks().of(job).is_some_and(|it| it.attempt == attempt);
        if known.generation.is_some()
            && !told
            && plant.is_calm(now)
            && plant.misjoined(&parts).is_some()
        {
            self.found(now, Violation::Misjoined { job });
        }
        self.check_tables(now, plant, (job, attempt), place);
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
        let promises = self.book.check(core).into_iter().chain(self.trust.check(core));
        promises.collect::<Vec<_>>().into_iter().for_each(|it| self.found(now, it));
        self.check_tasks(now, core, plant);
        self.check_ends(now, core, plant);
        self.check_places(now, core);
        self.check_jobs(now, core);
        self.check_mirrors(now, core, plant);
    }

    /// Tasks run only for jobs that hold their hardware, leave what is out in time, and end at
    /// their limit.
    fn check_tasks(&mut self, now: Moment, core: &Core, plant: &Plant) {
        let state = core.state();
        let leave_max = state.settings.notice + state.settings.grace + SLACK;
        let mut leaving = BTreeMap::new();
        for (job, task) in plant.tasks().live() {
            let Some(known) = state.jobs.get(job) else { continue };
            let holds = match known.state {
                JobState::Starting { .. }
                | JobState::Running { .. }
                | JobState::Stopping { .. } => known.attempt == task.attempt,
                JobState::Queued { .. }
                | JobState::Finished
                | JobState::Failed { .. }
                | JobState::Cancelled => false,
            };
            if !holds {
                self.found(now, Violation::Orphan { job, word: known.state.word() });
                continue;
            }
            if known.place != task.place {
                self.found(now, Violation::Elsewhere { job });
            }
            if let (Some(limit), Phase::Running { since }) = (known.spec.limit, task.phase)
                && since.max(self.restarted_at) + limit + leave_max + LEARN < now
            {
                self.found(now, Violation::OverLimit { job, since, limit });
            }
            let place = known.place.as_ref();
            if place.and_then(|it| must_leave_since(core, it)).is_none() {
                continue;
            }
            // From when we saw it: a drain may have stood for long before it came to evict.
            let since = self.leaving.get(&(job, task.attempt)).copied().unwrap_or(now);
            if since + leave_max < now {
                self.found(now, Violation::Stayed { job, since });
            }
            leaving.insert((job, task.attempt), since);
        }
        self.leaving = leaving;
    }

    /// A job ends for a reason that the plant or a person gave, once, and does not outlive its
    /// tasks.
    fn check_ends(&mut self, now: Moment, core: &Core, plant: &Plant) {
        let mut unheard = BTreeMap::new();
        for (job, known) in core.state().jobs.pairs() {
            let task = plant.tasks().of(job);
            let word = known.state.word();
            if known.state.is_over() {
                if self.ended.insert(job) && !self.has_reason(job, known, task) {
                    self.found(now, Violation::NoReason { job, word });
                }
                continue;
            }
            if self.ended.contains(&job) {
                self.found(now, Violation::Revived { job, word });
            }
            let is_same = |it: &&Task| it.attempt == known.attempt && !it.is_live();
            let holds = matches!(known.state, JobState::Running { .. } | JobState::Stopping { .. });
            if !holds || task.filter(is_same).is_none() {
                continue;
            }
            let since = self.unheard.get(&(job, known.attempt)).copied().unwrap_or(now);
            if since + LEARN < now {
                self.found(now, Violation::EndMissed { job, since, word });
            }
            unheard.insert((job, known.attempt), since);
        }
        self.unheard = unheard;
    }

    fn has_reason(&self, job: JobId, known: &Job, task: Option<&Task>) -> bool {
        let ended_as = |wanted: fn(Exit) -> bool| {
            task.is_some_and(|it| match it.phase {
                Phase::Over { exit } => wanted(exit),
                Phase::Starting | Phase::Running { .. } => false,
            })
        };
        match &known.state {
            JobState::Finished => {
                let (duration, ..) = known.spec.work.steps();
                duration == Span::ZERO || ended_as(|it| it == Exit::Done)
            }
            JobState::Failed { why: FailWhy::Limit } => {
                known.spec.limit.is_some_and(|it| it <= known.allocated)
            }
            JobState::Failed { why: FailWhy::Exit { .. } } => {
                ended_as(|it| matches!(it, Exit::Failed(_)))
            }
            JobState::Failed { why: FailWhy::Hung { .. } } => {
                ended_as(|it| matches!(it, Exit::Hung { .. }))
            }
            JobState::Failed { why: FailWhy::Starts { n } } => *n <= known.attempt,
            JobState::Cancelled => self.book.has_cancelled(job),
            JobState::Queued { .. }
            | JobState::Starting { .. }
            | JobState::Running { .. }
            | JobState::Stopping { .. } => false,
        }
    }

    /// Nobody is placed on what was out already, whether running jobs have to leave it or not.
    fn check_places(&mut self, now: Moment, core: &Core) {
        let (state, fabric) = (core.state(), core.fabric());
        let mut wrong = Vec::new();
        let drained = state.drains.iter().filter_map(|(&target, drains)| {
            Some((target, drains.iter().map(|it| it.since).min()?))
        });
        let silent = state
            .switches
            .iter()
            .filter_map(|(&switch, known)| Some((Target::Part(switch), known.silent?)));
        for (target, since) in drained.chain(silent) {
            for &job in &state.active {
                let known = &state.jobs[job];
                let starts =
                    matches!(known.state, JobState::Starting { .. } | JobState::Running { .. });
                let place = known.place.as_ref().filter(|_| starts && since < known.placed_at);
                if place.is_some_and(|it| reach::hits(fabric, target, it)) {
                    let path = fabric.path(target);
                    wrong.push(Violation::PlacedOnOut { job, path, since });
                }
            }
        }
        wrong.into_iter().for_each(|it| self.found(now, it));
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

/// Since when the core has known that jobs on `place` must leave it.
fn must_leave_since(core: &Core, place: &Place) -> Option<Moment> {
    let evicting = core.state().drains.iter().filter_map(|(&target, drains)| {
        let since = drains.iter().filter(|it| it.evicts).map(|it| it.since).min()?;
        reach::hits(core.fabric(), target, place).then_some(since)
    });
    evicting.min()
}

/// The circuit switch that a case is about, if nothing was ever seen of it but that it is silent,
/// and nobody has planned work on it.
fn only_silent(core: &Core, case: CaseId) -> Option<PartId> {
    let known = core.state().cases.get(case)?;
    let Target::Part(part) = known.target else { return None };
    let is_all_known = known.n_seen as usize == known.evidence.len();
    let is_silent = known.evidence.iter().all(|it| it.1 == Symptom::Silent);
    let is_fault = known.maintenance.is_none();
    let is_mere = is_all_known && is_silent && is_fault;
    (is_mere && core.state().switches.contains_key(&part)).then_some(part)
}
