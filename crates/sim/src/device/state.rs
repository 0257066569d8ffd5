//! What a plant remembers: all of it can be kept in a file, which the core never reads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use selvedge_control::input::{Errand, Input};
use selvedge_model::fabric::Fabric;
use selvedge_model::id::{CaseId, JobId, PartId};
use selvedge_model::job::{Hold, Xconnect};
use selvedge_model::unit::{Generation, Moment, Ppm};

use crate::crew::Crew;
use crate::device::light::Light;
use crate::device::tables::{Table, Tables};
use crate::device::{Ocs, Plant};
use crate::dice::Dice;
use crate::fault::{Fault, FaultKind, Rates};
use crate::limits;
use crate::task::Tasks;

/// How far devices, tasks and crew misbehave beyond faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dials {
    /// How often an answer, or a write to a switch, is lost on its way.
    pub lose: Ppm,
    /// How often a write to a switch arrives a second time, late.
    pub echo: Ppm,
    /// How often a link end does not train though nothing is wrong with it.
    pub untrained: Ppm,
    /// How often tasks do not heed a notice.
    pub stubborn: Ppm,
    /// How often tasks fail by themselves, for each start.
    pub fail: Ppm,
    /// How often a repair leaves things as they were.
    pub botch: Ppm,
    /// Whether switches carry writes out that are older than what they have taken: a defect,
    /// which no scenario asks for.
    #[serde(skip)]
    pub deaf: bool,
}

impl Dials {
    /// Nothing beyond faults but a link that does not train now and then.
    pub const QUIET: Self = Self {
        lose: Ppm::new(0),
        echo: Ppm::new(0),
        untrained: limits::TRAIN_FAILS,
        stubborn: Ppm::new(0),
        fail: Ppm::new(0),
        botch: Ppm::new(0),
        deaf: false,
    };
}

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Event {
    Say(Box<Input>),
    Read {
        switch: PartId,
    },
    Write {
        switch: PartId,
        generation: Generation,
        remove: Vec<Xconnect>,
        add: Vec<Xconnect>,
        /// Whether it has been told before.
        echoed: bool,
    },
    Train {
        errand: Errand,
        parts: Vec<PartId>,
    },
    Inspect {
        errand: Errand,
        hold: Hold,
    },
    Exercise {
        errand: Errand,
        holds: Vec<Hold>,
    },
    Discover {
        errand: Errand,
        hold: Hold,
    },
    Program {
        errand: Errand,
        hold: Hold,
        table: Table,
    },
    TasksStart {
        job: JobId,
        token: u32,
    },
    TasksEnd {
        job: JobId,
        token: u32,
        how: End,
    },
    /// Replicas of a job compare what they send.
    Compare {
        job: JobId,
        attempt: u32,
    },
    FaultDue {
        kind: FaultKind,
        token: u32,
    },
    Report {
        fault: u32,
    },
    Flap {
        fault: u32,
    },
    Poll,
    /// A circuit switch that has been mute since then misses its `n`th poll.
    Missed {
        switch: PartId,
        since: Moment,
        n: u64,
    },
    CrewTakes {
        case: CaseId,
    },
    CrewDone {
        case: CaseId,
    },
}

/// How tasks will end unless something else comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    Done,
    Failed,
    Saved,
    Killed,
    Lost { kept: u64 },
}

/// An event in the order of its moment; events of one moment in the order of their making.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Queued {
    pub(super) at: Moment,
    pub(super) seq: u64,
    pub(super) event: Event,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.seq).cmp(&(other.at, other.seq))
    }
}

/// All that a plant remembers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Truth {
    pub(super) seed: u64,
    pub(super) now: Moment,
    pub(super) seq: u64,
    pub(super) queue: BinaryHeap<Reverse<Queued>>,
    pub(super) switches: BTreeMap<PartId, Ocs>,
    pub(super) tables: Tables,
    /// Switches whose pairs have changed by no order since the last poll.
    pub(super) unpolled: BTreeSet<PartId>,
    pub(super) poll_at: Option<Moment>,
    /// Since when circuit switches do not answer, for those that do not.
    #[serde(default)]
    pub(super) mute: BTreeMap<PartId, Moment>,
    /// Polls that were not answered by switches that answer again.
    #[serde(default)]
    pub(super) n_missed: u64,
    /// When mirrors last moved by no order, or a fault ended.
    pub(super) meddled: Option<Moment>,
    /// Writes that a switch carried out after a newer one.
    pub(super) n_stale_writes: u64,
    pub(super) faults: BTreeMap<u32, Fault>,
    pub(super) fault_id: u32,
    pub(super) n_faults: [u64; FaultKind::ALL.len()],
    pub(super) rates: Rates,
    /// Counts changes of the rates; a fault drawn under older ones does not happen.
    pub(super) rates_token: u32,
    pub(super) dials: Dials,
    pub(super) tasks: Tasks,
    pub(super) crew: Crew,
    pub(super) delays: Dice,
    pub(super) fault_dice: Dice,
    pub(super) task_dice: Dice,
    pub(super) crew_dice: Dice,
    pub(super) mischief: Dice,
}

impl Truth {
    pub(super) fn new(seed: u64, dials: Dials) -> Self {
        Self {
            seed,
            now: Moment::START,
            seq: 0,
            queue: BinaryHeap::new(),
            switches: BTreeMap::new(),
            tables: Tables::default(),
            unpolled: BTreeSet::new(),
            poll_at: None,
            mute: BTreeMap::new(),
            n_missed: 0,
            meddled: None,
            n_stale_writes: 0,
            faults: BTreeMap::new(),
            fault_id: 0,
            n_faults: [0; FaultKind::ALL.len()],
            rates: Rates::NONE,
            rates_token: 0,
            dials,
            tasks: Tasks::default(),
            crew: Crew::default(),
            delays: Dice::new(seed, "delays"),
            fault_dice: Dice::new(seed, "faults"),
            task_dice: Dice::new(seed, "tasks"),
            crew_dice: Dice::new(seed, "crew"),
            mischief: Dice::new(seed, "mischief"),
        }
    }
}

/// The format that is written.
const FORMAT: u32 = 2;

/// Why a plant's file cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum PlantError {
    /// Not what [`Plant::save`] wrote.
    #[error("the plant's state cannot be read; restore it from a copy or start the plant anew")]
    Damaged {
        /// What the reader said.
        #[source]
        source: serde_json::Error,
    },
    /// Written by another version.
    #[error("the plant's state has format {format}; this program reads format {FORMAT}")]
    OtherFormat {
        /// As written.
        format: u32,
    },
    /// Written for another fabric.
    #[error(
        "the plant's state names {target}, which the fabric does not have; use its own plant file"
    )]
    OtherFabric {
        /// What is missing.
        target: PartId,
    },
}

impl Plant {
    /// The whole state as JSON text.
    pub fn save(&self) -> Vec<u8> {
        serde_json::to_vec(&SavedRef { format: FORMAT, truth: &self.truth })
            .expect("maps of the state have keys that are numbers")
    }

    /// A plant as it was saved.
    ///
    /// # Errors
    /// [`PlantError`].
    pub fn restore(fabric: Arc<Fabric>, bytes: &[u8]) -> Result<Self, PlantError> {
        let saved: Saved =
            serde_json::from_slice(bytes).map_err(|source| PlantError::Damaged { source })?;
        if saved.format != FORMAT {
            return Err(PlantError::OtherFormat { format: saved.format });
        }
        let truth = saved.truth;
        let n_parts = fabric.parts().len();
        if let Some(&target) = truth.switches.keys().find(|it| n_parts <= it.idx()) {
            return Err(PlantError::OtherFabric { target });
        }
        let light = Light::new(&fabric, truth.seed);
        let things = crate::device::target::Things::default();
        let mut plant = Self { fabric, light, things, truth };
        plant.relight_all();
        plant.list_things();
        Ok(plant)
    }
}

#[derive(Serialize)]
struct SavedRef<'a> {
    format: u32,
    truth: &'a Truth,
}

#[derive(Deserialize)]
struct Saved {
    format: u32,
    truth: Truth,
}
