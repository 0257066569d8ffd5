//! Everything that the core tells people: log line, audit row, feed item and golden line.
//!
//! A note is a noun, a past tense and ids; whole structs are never copied into it.

use serde::{Deserialize, Serialize};

use selvedge_model::fault::{Severity, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId, PlanId};
use selvedge_model::unit::{Generation, Moment, Span};

use crate::input::Exit;
use crate::settings::Level;

/// Why a running or starting job was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWhy {
    /// It reached its limit.
    Limit,
    /// Somebody cancelled it.
    Cancelled,
    /// Somebody asked to start it anew.
    Requeued,
    /// A job of higher priority takes its hardware.
    Preempted {
        /// That job.
        by: JobId,
    },
    /// A part under it failed or is being taken out by this case.
    Fault {
        /// The case.
        case: CaseId,
    },
    /// A person drained a part under it.
    Drained {
        /// The part.
        target: Target,
    },
    /// It is moved so that another job fits.
    Moved {
        /// The defragmentation.
        plan: PlanId,
    },
    /// Its start could not be completed.
    StartFailed {
        /// At which stage.
        stage: Stage,
    },
    /// Its tasks died with the hardware under them, before a case said so.
    Lost,
    /// Its tasks ended by themselves without success.
    Failed {
        /// Their status.
        status: i32,
    },
    /// One of its tasks did not touch its heartbeat for too long, and all were ended.
    Hung {
        /// Which, counted from zero.
        task: u32,
    },
}

/// Why a job ended as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailWhy {
    /// It reached its limit.
    Limit,
    /// Its tasks ended with this status, more often than its retries allow.
    Exit {
        /// The status.
        status: i32,
    },
    /// It could not be started, wherever it was placed.
    Starts {
        /// How often it was tried.
        n: u32,
    },
    /// A task of it hung, more often than its retries allow.
    Hung {
        /// Which, counted from zero.
        task: u32,
    },
}

/// How far a start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Mirrors turn.
    Wiring,
    /// Links train.
    Training,
    /// Every chip, PCIe link and link end is held against its golden thresholds.
    Inspecting,
    /// A small sample workload runs over the slice.
    Exercising,
    /// Chips say what they see at their ports.
    Discovering,
    /// Forwarding tables are set.
    Programming,
    /// Tasks are started.
    Dispatching,
}

/// Where a case stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseState {
    /// Seen and said; nothing is done (the level or the breaker forbids it, or it may pass).
    Observed,
    /// Running jobs are leaving the target.
    Draining,
    /// The target is empty and waits for somebody to repair it.
    Waiting,
    /// Somebody is repairing it.
    UnderRepair,
    /// The same preflight as before a job.
    Verifying,
    /// Clean so far, not yet trusted.
    Probation {
        /// When trust returns.
        until: Moment,
    },
    /// Back in the pool, or never taken out.
    Closed,
}

/// Who has taken a thing out of use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A person or program by name.
    Person(String),
    /// A case.
    Case(CaseId),
}

/// A fact worth telling.
#[allow(missing_docs, reason = "each variant's sentence names its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The core has a plant.
    PlantApplied { version: u64, n_parts: u32, n_added: u32, n_retired: u32 },
    /// The level has changed.
    LevelSet { level: Level, by: String },
    /// A job was accepted.
    JobSubmitted { job: JobId },
    /// A job has hardware; `kept_parts` of it from its last start.
    JobPlaced { job: JobId, attempt: u32, n_parts: u32, kept_parts: u32 },
    /// A start has come to this stage.
    JobStaged { job: JobId, attempt: u32, stage: Stage },
    /// A job's tasks run.
    JobStarted { job: JobId, attempt: u32, waited: Span },
    /// A job was told to stop.
    JobNotified { job: JobId, attempt: u32, why: StopWhy },
    /// A job's tasks are dead.
    JobStopped { job: JobId, attempt: u32, exit: Exit, kept: u64 },
    /// A job is back in the queue, not before the given moment.
    JobRequeued { job: JobId, why: StopWhy, not_before: Moment },
    /// A job's work is done.
    JobFinished { job: JobId },
    /// A job has ended without success.
    JobFailed { job: JobId, why: FailWhy },
    /// A job was cancelled.
    JobCancelled { job: JobId },
    /// A job is held back.
    JobHeld { job: JobId, by: String },
    /// A held job may start again.
    JobReleased { job: JobId, by: String },
    /// A wiring plan is current.
    BlueprintAdopted {
        plan: PlanId,
        parent: Option<PlanId>,
        generation: Generation,
        job: JobId,
        n_switches: u32,
        n_removed: u32,
        n_added: u32,
    },
    /// All switches stand as the plan says.
    BlueprintDone { plan: PlanId, job: JobId },
    /// A plan did not pass the check and was not adopted: a defect of Selvedge.
    PlanRefused { job: JobId, n_violations: u32 },
    /// A switch would not connect a port.
    SwitchRefused { switch: PartId, plan: PlanId, n_ports: u32 },
    /// A switch stands otherwise than the core believed.
    SwitchDiffered { switch: PartId, n_pairs: u32 },
    /// A switch answered that a newer write has come before.
    SwitchStale { switch: PartId, newest: Generation },
    /// A chip of this part has taken a table of a newer generation than was written.
    TableStale { part: PartId, newer: Generation },
    /// What the chips saw is not what was asked for.
    DiscoveryDiffered { job: JobId, n_ports: u32, n_chips_lost: u32 },
    /// A fault has a case.
    CaseOpened { case: CaseId, target: Target, symptom: Symptom, severity: Severity },
    /// A replica was outvoted: this process's, in this call.
    ReplicaMarked { target: Target, job: Option<JobId>, rank: u32, set: u8, call: u64 },
    /// A case has more evidence, or a higher severity.
    CaseGrew { case: CaseId, severity: Severity, n_seen: u32 },
    /// What a case is about was taken out of the plant; the case is closed.
    CaseRetired { case: CaseId },
    /// A case has moved on.
    CaseMoved { case: CaseId, state: CaseState },
    /// A thing is out of use.
    Drained { target: Target, by: Owner },
    /// A drain was taken back.
    Undrained { target: Target, by: Owner },
    /// Too much would be touched at once: nothing is done about the case until this moment, or
    /// until a person does it.
    BreakerTripped { case: CaseId, until: Moment },
    /// A fibre was re-patched.
    PortMoved { switch: PartId, from: u16, to: u16 },
    /// Planned work has begun or ended on so many targets.
    MaintenanceMoved { n_waiting: u32, n_at_work: u32, n_done: u32 },
    /// A defragmentation is proposed for a job that waits.
    MovesProposed { plan: PlanId, job: JobId, n_moved: u32, lost_chip_hours: u32 },
    /// A defragmentation is under way.
    MovesAdopted { plan: PlanId, job: JobId },
    /// Tasks run on so many parts of which nothing is remembered: they are ended, and nobody is
    /// placed there until they are dead.
    StrayFound { job: JobId, attempt: u32, n_parts: u32 },
    /// They are dead.
    StrayEnded { job: JobId, attempt: u32 },
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Jobs, from their submit to their end.
    Jobs,
    /// Faults, drains and repairs.
    Health,
    /// Blueprints, switches and tables.
    Wiring,
    /// The plant itself and who may do what.
    Plant,
}

impl About {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Jobs, Self::Health, Self::Wiring, Self::Plant];

    /// Its word in an address.
    pub fn word(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Health => "health",
            Self::Wiring => "wiring",
            Self::Plant => "plant",
        }
    }
}

impl Note {
    /// What it is about.
    pub fn about(&self) -> About {
        match self {
            Note::JobSubmitted { .. }
            | Note::JobPlaced { .. }
            | Note::JobStaged { .. }
            | Note::JobStarted { .. }
            | Note::JobNotified { .. }
            | Note::JobStopped { .. }
            | Note::JobRequeued { .. }
            | Note::JobFinished { .. }
            | Note::JobFailed { .. }
            | Note::JobCancelled { .. }
            | Note::JobHeld { .. }
            | Note::JobReleased { .. } => About::Jobs,
            Note::CaseOpened { .. }
            | Note::CaseGrew { .. }
            | Note::ReplicaMarked { .. }
            | Note::CaseMoved { .. }
            | Note::CaseRetired { .. }
            | Note::Drained { .. }
            | Note::Undrained { .. }
            | Note::BreakerTripped { .. }
            | Note::MaintenanceMoved { .. } => About::Health,
            Note::BlueprintAdopted { .. }
            | Note::BlueprintDone { .. }
            | Note::PlanRefused { .. }
            | Note::SwitchRefused { .. }
            | Note::SwitchDiffered { .. }
            | Note::SwitchStale { .. }
            | Note::TableStale { .. }
            | Note::DiscoveryDiffered { .. }
            | Note::PortMoved { .. }
            | Note::MovesProposed { .. }
            | Note::MovesAdopted { .. } => About::Wiring,
            Note::PlantApplied { .. }
            | Note::LevelSet { .. }
            | Note::StrayFound { .. }
            | Note::StrayEnded { .. } => About::Plant,
        }
    }
}
