//! What the core remembers.  All of it is in a snapshot; nothing else is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use selvedge_model::fault::{Mark, Severity, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId, PlanId, PortId};
use selvedge_model::job::{Hold, JobSpec, Place, Xconnect};
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Generation, Moment, Span};

use crate::input::{Exit, Task};
use crate::note::{CaseState, FailWhy, Owner, Stage, StopWhy};
use crate::output::Request;
use crate::settings::Settings;

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// It waits for hardware.
    Queued {
        /// Since when; aging counts from here.
        since: Moment,
        /// It is not started earlier.
        not_before: Moment,
        /// Somebody holds it back.
        held: bool,
    },
    /// It has hardware, which is being made ready.
    Starting {
        /// How far.
        stage: Stage,
        /// When the stage began or was last asked for.
        since: Moment,
        /// How often the stage's requests have gone out.
        asks: u32,
    },
    /// Its tasks run.
    Running {
        /// Since when.
        since: Moment,
    },
    /// Its tasks were told to stop, or its wiring is being undone; it still holds its hardware.
    Stopping {
        /// Why.
        why: StopWhy,
        /// When they are killed, or were last.
        kill_at: Moment,
        /// Whether the kill has been sent.
        killed: bool,
    },
    /// Its work is done.
    Finished,
    /// It has ended without success.
    Failed {
        /// Why.
        why: FailWhy,
    },
    /// Somebody ended it.
    Cancelled,
}

impl JobState {
    /// Whether the job is over.
    pub fn is_over(&self) -> bool {
        match self {
            JobState::Finished | JobState::Failed { .. } | JobState::Cancelled => true,
            JobState::Queued { .. }
            | JobState::Starting { .. }
            | JobState::Running { .. }
            | JobState::Stopping { .. } => false,
        }
    }

    /// One word for people and programs.
    pub fn word(&self) -> &'static str {
        match self {
            JobState::Queued { .. } => "queued",
            JobState::Starting { .. } => "starting",
            JobState::Running { .. } => "running",
            JobState::Stopping { .. } => "stopping",
            JobState::Finished => "finished",
            JobState::Failed { .. } => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// As its owner wrote it.
    pub spec: JobSpec,
    /// Who submitted it.
    pub by: String,
    /// When it was accepted.
    pub submitted: Moment,
    /// Where it stands.
    pub state: JobState,
    /// How often it was placed.
    pub attempt: u32,
    /// What it holds, from placing until its tasks are dead.  A job that waits for a spare keeps
    /// its place.
    pub place: Option<Place>,
    /// The generation that its present wiring was set with; none without outer links.
    pub generation: Option<Generation>,
    /// The blueprint of its present wiring.
    pub blueprint: Option<PlanId>,
    /// When it was placed last.
    pub placed_at: Moment,
    /// How long it had waited in the queue when it was placed last.
    pub waited: Span,
    /// When it first ran.
    pub first_started: Option<Moment>,
    /// When it ended.
    pub ended: Option<Moment>,
    /// Whether it goes first because running jobs are stopping for it.
    pub claims: bool,
    /// Steps kept by checkpoints.
    pub kept: u64,
    /// Where it goes when it is moved; held for it from the adoption of the move.
    pub next: Option<Place>,
    /// Failures by itself, against the retries of the spec.
    pub n_failed: u32,
    /// Starts that failed in a row.
    pub n_bad_starts: u32,
    /// Times that a fault interrupted it while it ran.
    pub n_interrupted: u32,
    /// Times that it was preempted or moved.
    pub n_preempted: u32,
    /// The processes of its newest attempt, if it runs a program.
    pub tasks: Vec<Task>,
    /// Time that it held hardware, over all attempts.
    pub allocated: Span,
    /// What happened to it: the first and the newest lines.
    pub timeline: Vec<(Moment, Event)>,
}

/// A line of a job's timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// It was accepted.
    Submitted,
    /// It got hardware.
    Placed,
    /// Its start came to this stage.
    Staged(Stage),
    /// Its tasks run.
    Started,
    /// It was told to stop.
    Notified(StopWhy),
    /// Its tasks are dead.
    Stopped(Exit),
    /// It waits again.
    Requeued,
    /// It is over.
    Ended,
}

/// What is known of one part that jobs run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartState {
    /// Seats that jobs hold.
    pub held: u64,
    /// Seats that are drained or at fault.
    pub out: u64,
    /// For each inner link that is drained or at fault, the seats at its ends.
    pub links_out: Vec<u64>,
    /// How many outer links cannot be used.
    pub outer_out: u16,
    /// Those of them that lead to another part or to a packet switch: to no circuit switch.
    pub cut: Vec<Cut>,
}

/// One end of a cable that is out of use and leads from a part to another, or to a packet switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cut {
    /// The end on this part.
    pub port: PortId,
    /// The part or packet switch on which its other end is.
    pub to: PartId,
}

/// What is known of one circuit switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchState {
    /// The south port of each north port, by place, as last read or acknowledged.
    pub pairs: BTreeMap<u16, u16>,
    /// The newest generation that it has acknowledged.
    pub generation: Generation,
    /// Whether it has been read since the last restart.
    pub known: bool,
    /// Reads and polls in a row that it has not answered.
    pub n_missed: u32,
    /// Since when it counts as silent: nobody is wired through it until it answers.
    pub silent: Option<Moment>,
}

/// One entry of the list of things out of use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Who took it out.
    pub by: Owner,
    /// Why, in words.
    pub why: String,
    /// Since when.
    pub since: Moment,
    /// Whether running jobs must leave.
    pub evicts: bool,
}

/// One diagnosed fault, or one planned work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What is concerned.
    pub target: Target,
    /// What was seen first.
    pub symptom: Symptom,
    /// How bad it is.
    pub severity: Severity,
    /// Where it stands.
    pub state: CaseState,
    /// Since when it stands there.
    pub since: Moment,
    /// When it was opened.
    pub opened: Moment,
    /// What was seen, when, and the measured value: the first lines; `n_seen` counts all.
    pub evidence: Vec<(Moment, Symptom, Option<u32>)>,
    /// How much was seen.
    pub n_seen: u32,
    /// How often it has been repaired.
    pub n_repairs: u32,
    /// How often its target was tested, repaired or not; the number of the newest errand.
    pub n_tests: u32,
    /// Since when the breaker holds back what would be done about it.
    pub held_back: Option<Moment>,
    /// Who has taken the repair.
    pub taken_by: Option<String>,
    /// The maintenance that it belongs to.
    pub maintenance: Option<u32>,
    /// How it was closed.
    pub closed: Option<Closing>,
}

/// How a case was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closing {
    /// What was only observed was not seen again.
    Passed,
    /// The part has passed preflight and probation.
    Requalified,
    /// It was part of a larger one.
    Absorbed {
        /// Which.
        into: CaseId,
    },
    /// The thing was taken out of the plant.
    Retired,
}

/// Planned work on many things, in waves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// Who planned it.
    pub by: String,
    /// Why.
    pub why: String,
    /// What has not been begun, last first.
    pub waiting: Vec<Target>,
    /// Cases at work.
    pub at_work: BTreeMap<CaseId, Moment>,
    /// How many are done.
    pub n_done: u32,
    /// How many at a time.
    pub n_at_once: u32,
    /// How long the work on one takes.
    pub work: Span,
}

/// A wiring plan as adopted: immutable, re-checked, executed as often as needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// Its id.
    pub id: PlanId,
    /// The plan that it follows: the job's last one, or the one that it undoes.
    pub parent: Option<PlanId>,
    /// The number that its writes carry.
    pub generation: Generation,
    /// For whom.
    pub job: JobId,
    /// For which start.
    pub attempt: u32,
    /// What to write, by switch.
    pub sets: Vec<SwitchSet>,
    /// Whether it restores what its parent changed.
    pub undoes: bool,
}

/// Running jobs to move so that one that waits fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moves {
    /// Its id.
    pub id: PlanId,
    /// The job that waits.
    pub job: JobId,
    /// Who goes where; the new places are free.
    pub moves: Vec<(JobId, Place)>,
    /// What it costs: chips times the time that each moved job loses.
    pub lost: Span,
}

impl Moves {
    /// Nobody moves.
    pub(crate) fn none() -> Self {
        Self { id: PlanId::new(0), job: JobId::new(0), moves: Vec::new(), lost: Span::ZERO }
    }
}

/// Moves that are being planned outside the core, and how the plan is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planning {
    /// What was asked for.
    pub request: Request,
    /// How often an answer for this job has failed to come in time, in a row.
    pub n_lost: u32,
    /// Whether jobs were placed or looked at since: what was found is held against that, and if
    /// nothing was found, it is asked again.
    pub is_old: bool,
    /// Whether the answer is no longer waited for.
    pub is_lost: bool,
}

/// One switch's part of a blueprint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchSet {
    /// Which.
    pub switch: PartId,
    /// Pairs to take away.
    pub remove: Vec<Xconnect>,
    /// Pairs to make.
    pub add: Vec<Xconnect>,
}

/// A blueprint under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    /// The plan.
    pub blueprint: Blueprint,
    /// How often the writes have gone out.
    pub asks: u32,
    /// Switches that have not answered.
    pub pending: BTreeSet<PartId>,
    /// Switches that stand as asked.
    pub done: BTreeSet<PartId>,
    /// Ports that a switch refused, by place.
    pub refused: BTreeMap<PartId, Vec<u16>>,
}

/// All that the core remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The newest moment seen.
    pub now: Moment,
    /// What the operator set.
    pub settings: Settings,
    /// All versions of the plant file, in order; the fabric is built from them.
    pub plants: Vec<String>,
    /// All jobs.
    pub jobs: IdVec<JobId, Job>,
    /// Idempotency keys.
    pub keys: BTreeMap<String, JobId>,
    /// The same the other way round, so that the oldest are forgotten first.
    pub key_order: BTreeMap<JobId, String>,
    /// Jobs that wait and may start, in the order in which they are served.
    pub queue: BTreeSet<(QueueKey, JobId)>,
    /// Jobs that hold hardware, or wait for a spare.
    pub active: BTreeSet<JobId>,
    /// What is known of each part.
    pub parts: IdVec<PartId, PartState>,
    /// What is known of each circuit switch.
    pub switches: BTreeMap<PartId, SwitchState>,
    /// What is out of use, and who took it out.
    pub drains: BTreeMap<Target, Vec<Drain>>,
    /// What people have drained and has left the plant since, by its name and whether it is a
    /// cable.
    pub set_aside: BTreeMap<(String, bool), Vec<Drain>>,
    /// All cases.
    pub cases: IdVec<CaseId, Case>,
    /// Cases that are not closed, by target.
    pub open_cases: BTreeMap<Target, CaseId>,
    /// When each symptom was last seen on each target, for the rules.
    pub sightings: BTreeMap<(Target, Symptom), Vec<Moment>>,
    /// The newest marks of each machine.
    pub marks: BTreeMap<Target, Vec<(Moment, Mark)>>,
    /// What was done by itself lately, with the seats that each touched, for the breaker.
    pub breaker: Vec<(Moment, u32)>,
    /// Planned work.
    pub maintenances: Vec<Maintenance>,
    /// Blueprints under way, by job.
    pub wirings: BTreeMap<JobId, Wiring>,
    /// Answers that a job's or a case's present stage still waits for.
    pub awaited: BTreeMap<crate::input::Errand, BTreeSet<PartId>>,
    /// What the chips of jobs that are being discovered have named so far, by job and part.
    pub seen: BTreeMap<JobId, BTreeMap<PartId, Vec<Option<PortId>>>>,
    /// The newest generation given out.
    pub generation: Generation,
    /// Plans adopted so far; the next plan's id.
    pub n_plans: u32,
    /// Deadlines, soonest first; one for each timer.
    pub timers: BTreeSet<(Moment, Timer)>,
    /// The deadline of each timer.
    pub deadlines: BTreeMap<Timer, Moment>,
    /// What each owner lost to moves lately: when and how many chip-nanoseconds.
    pub moves: BTreeMap<String, Vec<(Moment, Span)>>,
    /// Moves that would let a waiting job start, until somebody accepts them.
    pub proposal: Option<Moves>,
    /// What is being planned outside the core.
    pub planning: Option<Planning>,
    /// Requests to plan given out so far; the newest one's number.
    pub n_requests: u64,
    /// Starts that devices know and nobody here remembers, with what their tasks hold until they
    /// are dead.
    pub strays: BTreeMap<(JobId, u32), Vec<Hold>>,
    /// The highest number of such a start so far: every later start has a higher one.
    pub attempts_seen: u32,
}

/// The order of the queue: jobs that running ones are stopping for first, then by the moment of
/// queueing moved ahead by one `aging` for each priority.  It does not change while a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueKey {
    /// False for a job that claims, so that it comes first.
    pub unclaimed: bool,
    /// Nanoseconds; smaller comes first.
    pub rank: i128,
}

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timer {
    /// A job's stage, limit, kill or back-off.
    Job(JobId),
    /// A case's answer, probation or sticky window.
    Case(CaseId),
    /// Reading a switch that has not answered.
    Switch(PartId),
    /// A plan that was asked for and has not come.
    Plan,
    /// What the breaker holds back is weighed again.
    Breaker,
    /// Tasks of which nobody knows are told to end again.
    Strays,
}
