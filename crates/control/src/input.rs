//! Everything that the world tells the core: API calls, device answers, reports and timers.
//!
//! One closed enum is the API, the devices' answers, the timers *and* the journal's record.

use serde::{Deserialize, Serialize};

use selvedge_model::fault::{Mark, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId, PlanId, PortId};
use selvedge_model::job::{Hold, JobSpec, Place, Xconnect};
use selvedge_model::unit::{Generation, Span};

use crate::settings::{Level, Settings};

/// Whom an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Errand {
    /// One start of a job; answers to an earlier attempt are stale.
    Job(JobId, u32),
    /// The requalification of a case's target; the number counts its tries.
    Case(CaseId, u32),
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The first input of all.
    Begin {
        /// The plant file's text.
        plant: String,
        /// What the operator set.
        settings: Settings,
    },
    /// The process has started again: devices are read back, open requests are asked again.
    Restarted,
    /// A deadline asked for by `Output::WakeAt` has come.
    Tick,
    /// What a person or a program asks for.
    Ask {
        /// Who.
        by: String,
        /// What.
        what: Ask,
    },
    /// What a person or a program ordered outside the core, kept in its place among the inputs for
    /// the audit trail: a backup, an account, a fault of a simulated plant.
    Remark {
        /// Who.
        by: String,
        /// What, in words.
        what: String,
    },
    /// What a device answers.
    Answer(Answer),
    /// What was planned outside the core, as `Output::Plan` asked for.
    Planned {
        /// The number of the request.
        request: u64,
        /// What was found; none where nothing helps.
        moves: Option<Proposed>,
    },
    /// What a health daemon saw.
    Report {
        /// The part concerned.
        target: Target,
        /// What was wrong.
        symptom: Symptom,
        /// The measured value, where there is one, in the symptom's unit.
        value: Option<u32>,
    },
    /// A replica of an MPI program was outvoted.
    Marked {
        /// Who says so: whoever started the program, or a device.
        by: String,
        /// The machine that it ran on.
        target: Target,
        /// What differed.
        mark: Mark,
    },
    /// A circuit switch has not answered a poll.  Whoever polls says no more than that, each time;
    /// after one or more of these the first answered poll is told as a [`Answer::SwitchRead`] even
    /// if nothing has changed.  The core counts, and decides when the switch is silent.
    Unanswered {
        /// Which.
        switch: PartId,
    },
    /// Devices have been told more than the core remembers.
    Ahead(Ahead),
}

/// What devices have been told that a core does not remember: its journal was salvaged, or is a
/// backup, and the plant went on.  Whoever speaks for the devices says so first, before they are
/// told anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// Starts that the core does not know: their tasks run, or the job is one that the core knows
    /// by an earlier start.
    pub strays: Vec<Stray>,
    /// The highest number of a start among those that the core does not know, whether their tasks
    /// run or not.
    pub attempt: u32,
    /// The newest generation that a device has taken.
    pub generation: Generation,
}

/// One start of a job that the core does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    /// The number that the job had.
    pub job: JobId,
    /// Which start.
    pub attempt: u32,
    /// Where its tasks run; nowhere if they are over.
    pub holds: Vec<Hold>,
}

/// Who would go where so that a job that waits fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposed {
    /// The job that waits.
    pub job: JobId,
    /// Who goes where; the new places were free when it was asked for.
    pub moves: Vec<(JobId, Place)>,
    /// What it costs: chips times the time that each moved job loses.
    pub lost: Span,
}

/// What people and programs may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Run a job.  A key makes a repeated submit the same submit.
    Submit {
        /// The idempotency key.
        key: Option<String>,
        /// The job.
        spec: JobSpec,
    },
    /// Change a job's fate.
    Job {
        /// Which.
        job: JobId,
        /// How.
        order: JobOrder,
    },
    /// Take a thing out of use; running jobs leave it after a notice.
    Drain {
        /// What.
        target: Target,
        /// Why, in words.
        why: String,
    },
    /// Take back one's own drain.
    Undrain {
        /// What.
        target: Target,
    },
    /// Take a repair upon oneself.
    TakeRepair {
        /// Which case.
        case: CaseId,
    },
    /// Say that the repair is done; the part is requalified before it returns.
    FinishRepair {
        /// Which case.
        case: CaseId,
    },
    /// Re-patch a cube's fibre from its port of a switch to another of the same side.
    MovePort {
        /// The port that the fibre is on.
        from: PortId,
        /// The port that it moves to.
        to: PortId,
    },
    /// Planned work on many things, in waves.
    Maintain {
        /// What is worked on.
        targets: Vec<Target>,
        /// How many at a time.
        n_at_once: u32,
        /// How long the work on one takes.
        work: Span,
        /// Why, in words.
        why: String,
    },
    /// Accept a proposed defragmentation.
    Defragment {
        /// The plan as it was shown.
        plan: PlanId,
    },
    /// Change the plant.
    ApplyPlant {
        /// The new file's text.
        plant: String,
        /// The version that it was made from.
        expected: u64,
    },
    /// Change what may be done without being asked.
    SetLevel {
        /// The new level.
        level: Level,
    },
    /// Take back one's own drain of what has left the plant, so that it does not wait for it to
    /// come again.
    UndrainRetired {
        /// Its name, as it was.
        path: String,
    },
}

/// What may be ordered of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOrder {
    /// End it, wherever it stands.
    Cancel,
    /// Do not start it until released.
    Hold,
    /// Let a held job start again.
    Release,
    /// Stop it with notice and put it back into the queue.
    Requeue,
}

/// What a device answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// How a circuit switch stands.
    SwitchRead {
        /// Which.
        switch: PartId,
        /// The newest generation that it has taken.
        generation: Generation,
        /// All its pairs, by north port.
        pairs: Vec<Xconnect>,
    },
    /// How a write to a circuit switch ended.
    SwitchSet {
        /// Which.
        switch: PartId,
        /// The write's generation.
        generation: Generation,
        /// All of it, or none of it.
        outcome: SetOutcome,
    },
    /// The links of a job have trained, all but those listed.
    LinksTrained {
        /// Whom it is for.
        errand: Errand,
        /// Ends that have no signal or do not hold it.
        failed: Vec<PortId>,
    },
    /// What the health daemons of one part measured.
    Inspected {
        /// Whom it is for.
        errand: Errand,
        /// Which part.
        part: PartId,
        /// What they measured.
        readings: Readings,
    },
    /// How the small sample workload over all parts of the errand ended.
    Exercised {
        /// Whom it is for.
        errand: Errand,
        /// What it found broken.
        failed: Vec<Target>,
    },
    /// What the chips of one part see at their ports.
    Discovered {
        /// Whom it is for.
        errand: Errand,
        /// Which part.
        part: PartId,
        /// For each network port of the part, in the order of its template, the port at the
        /// other end; its other ports (PCIe, between sockets) are not asked.
        peers: Vec<Option<PortId>>,
    },
    /// How a write of forwarding tables ended.
    Programmed {
        /// Whom it is for.
        errand: Errand,
        /// Which part.
        part: PartId,
        /// The newer generation that a chip has taken, because of which nothing was written.
        newer: Option<Generation>,
    },
    /// All tasks of a job run.
    Started {
        /// Which.
        job: JobId,
        /// Which start.
        attempt: u32,
    },
    /// How the processes of a job stand: those that run a program, by their place in the job.
    Tasks {
        /// Which.
        job: JobId,
        /// Which start.
        attempt: u32,
        /// All of them, in order.
        tasks: Vec<Task>,
    },
    /// All tasks of a job have ended.
    Stopped {
        /// Which.
        job: JobId,
        /// Which start.
        attempt: u32,
        /// How.
        exit: Exit,
        /// Steps done in all attempts together that a checkpoint or the end has kept.
        kept: u64,
    },
}

/// One process of a job that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Task {
    /// The machine that it is on.
    pub machine: Target,
    /// Its number in the system.
    pub pid: u32,
    /// When it began, in the system's clock ticks: with the number, which process it is.
    pub began: u64,
    /// How it ended.
    pub exit: Option<TaskExit>,
}

/// How one process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskExit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows: whoever watched it is gone.
    Lost,
}

impl TaskExit {
    /// The status as a shell says it: 128 and the signal for one that died of it.
    pub fn status(self) -> i32 {
        match self {
            TaskExit::Code(code) => code,
            TaskExit::Signal(signal) => 128 + signal,
            TaskExit::Lost => 255,
        }
    }
}

/// How a write to a switch ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetOutcome {
    /// The mirrors stand as asked.
    Done,
    /// The switch has taken a newer write; nothing was changed.
    Stale {
        /// Its newest generation.
        newest: Generation,
    },
    /// These ports cannot be connected (by place on the switch); nothing was changed.
    Refused {
        /// Which.
        ports: Vec<u16>,
    },
}

/// How a job's tasks ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The work is done.
    Done,
    /// They were told to stop, and did or were killed.
    Told,
    /// They failed by themselves with this status.
    Failed(i32),
    /// The hardware under them failed.
    Lost,
    /// One of them did not touch its heartbeat for too long, and all were ended.
    Hung {
        /// Which, counted from zero.
        task: u32,
    },
}

/// What the health daemons of one part measured; an empty list was not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readings {
    /// For each seat, corrected memory errors an hour; `u16::MAX` where the chip is silent.
    pub chip_errors: Vec<u16>,
    /// For each seat, what its PCIe lanes carry, in Gb/s.
    pub pcie_gbps: Vec<u16>,
    /// For each network port, symbol errors a minute; `u16::MAX` without a signal.
    pub link_errors: Vec<u16>,
    /// For each network port, optical loss in 0.01 dB; 0 on copper.
    pub loss: Vec<u16>,
}
