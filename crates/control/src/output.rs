//! Everything that the core wants done.

use serde::{Deserialize, Serialize};

use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId};
use selvedge_model::job::{Hold, Place, Work, Xconnect};
use selvedge_model::unit::{Generation, Moment, Span};

use crate::input::Errand;
use crate::note::Note;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Tell a device.  Executing it twice is as good as once.
    Do(Command),
    /// Plan outside the core, on what `Core::question` gives for this request; answered by
    /// `Input::Planned`.  An answer that comes late is refused; one that never comes is asked for
    /// again.
    Plan(Request),
    /// Call with `Input::Tick` at this moment; an earlier call stays asked for.
    WakeAt(Moment),
    /// Tell people.
    Note(Note),
}

/// Something to be planned that may take longer than the core may be kept from its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Request {
    /// Its number: a later request has a higher one, and takes its place.
    pub number: u64,
    /// The version of the plant that is planned on.
    pub plant: u64,
    /// The job that running ones would be moved for.
    pub job: JobId,
}

/// What a device can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Ask a circuit switch how it stands; answered by `SwitchRead`.
    ReadSwitch {
        /// Which.
        switch: PartId,
    },
    /// Turn mirrors: first all removals, then all additions, or nothing at all; answered by
    /// `SwitchSet`.  A pair that is to be removed and is not there, or to be added and is there,
    /// is no error.  A write of an older generation than the switch has seen is refused.
    SetSwitch {
        /// Which.
        switch: PartId,
        /// The write's number.
        generation: Generation,
        /// Pairs to take away.
        remove: Vec<Xconnect>,
        /// Pairs to make.
        add: Vec<Xconnect>,
    },
    /// Answer with `LinksTrained` once all outer links of these parts have trained or failed.
    AwaitLinks {
        /// Whom for.
        errand: Errand,
        /// Which parts.
        parts: Vec<PartId>,
    },
    /// Measure the seats of a part, their PCIe lanes and link ends; answered by `Inspected`.
    Inspect {
        /// Whom for.
        errand: Errand,
        /// Which part and seats.
        hold: Hold,
    },
    /// Run a small sample workload over these seats together; answered by `Exercised`.
    Exercise {
        /// Whom for.
        errand: Errand,
        /// Which parts and seats.
        holds: Vec<Hold>,
    },
    /// Ask each chip of a part what it sees at its ports; answered by `Discovered`.
    Discover {
        /// Whom for.
        errand: Errand,
        /// Which part and seats.
        hold: Hold,
    },
    /// Set the forwarding tables of a part's chips, of all held ones or of none; answered by
    /// `Programmed`.  A write of an older generation than one of the chips has taken is refused.
    Program {
        /// Whom for.
        errand: Errand,
        /// Which part and seats.
        hold: Hold,
        /// The write's number, from the same count as those of the switches.
        generation: Generation,
        /// The digest of the job's table, which the family computes from the job's demand.
        table: u64,
    },
    /// Start a job's tasks; answered by `Started`, and by `Stopped` when they end.  Told again,
    /// the world repeats the answers that it has.
    Start {
        /// Which.
        job: JobId,
        /// Which start.
        attempt: u32,
        /// Where.
        place: Place,
        /// What they do.
        work: Work,
        /// Steps kept by earlier attempts.
        kept: u64,
        /// Replicas of each process.
        redundancy: u8,
    },
    /// Tell a job's tasks that they will be stopped after `grace`; they may write a checkpoint.
    Notify {
        /// Which.
        job: JobId,
        /// Which start.
        attempt: u32,
        /// How long they have.
        grace: Span,
    },
    /// End a job's tasks at once; answered by `Stopped` when they are dead.
    Kill {
        /// Which.
        job: JobId,
        /// Which start.
        attempt: u32,
    },
    /// Call a crew; it asks `TakeRepair` and `FinishRepair`.
    CallCrew {
        /// For which case.
        case: CaseId,
        /// What is to be repaired.
        target: Target,
        /// What was seen.
        symptom: Symptom,
    },
}
