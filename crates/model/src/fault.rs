//! What can be wrong, and with what.

use serde::{Deserialize, Serialize};

use crate::id::{JobId, LinkId, NodeId, PartId, PortId};

/// A thing that can be drained, be at fault, or be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A whole cube, host, board or switch.
    Part(PartId),
    /// A machine or a chip.
    Node(NodeId),
    /// A port of a switch, or an end of a cable.
    Port(PortId),
    /// A link, named by its even direction: it is drained and repaired at both ends.
    Link(LinkId),
}

/// What a cluster of replicas says of one that erred (seed 003, definition 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// The job, where one of ours is meant.
    pub job: Option<JobId>,
    /// Which process of the program.
    pub rank: u32,
    /// Which of its replicas.
    pub set: u8,
    /// The number of the call whose contents differed.
    pub call: u64,
    /// The first byte that differs; none where only digests were compared.
    pub byte: Option<u64>,
}

/// How bad a symptom is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It passes; worth a line in the log.
    Transient,
    /// It works, but worse than it ought to.
    Degraded,
    /// It should carry no new work.
    Critical,
    /// It is gone.
    Fatal,
}

/// What was seen to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Symptom {
    /// The machine does not answer.
    MachineDown,
    /// The chip reports an uncorrectable error or is gone.
    ChipFailed,
    /// A PCIe link runs below its width or speed.
    PcieDegraded,
    /// The link lost its signal.
    LinkDown,
    /// The link went down and came back.
    LinkFlapped,
    /// The link's error rate or loss lies above its golden threshold.
    LinkDegraded,
    /// The switch does not answer, or has lost all its mirrors.
    SwitchDown,
    /// One port of a switch cannot be connected.
    PortFailed,
    /// One port of a switch loses more light than its threshold allows.
    PortLossHigh,
    /// A small sample workload did not finish or gave a wrong result.
    ExerciseFailed,
    /// What a chip sees at a port is not what the plan says.
    Miswired,
    /// The device did not answer in time, again and again.
    Silent,
    /// Nothing: work on it is planned.
    Planned,
    /// Nothing: a person gave it back, and it is requalified first.
    Returned,
    /// A task on the machine has not said for long that it lives; the value is its job.
    TaskHung,
    /// The machine's topology file leads NCCL wrong; the value is the rule that found it.
    TopologyFaulty,
    /// The machine's topology file costs something; the value is the rule that found it.
    TopologyDoubtful,
    /// A replica on the machine came to other contents than its siblings, and was outvoted; the
    /// value is the first byte that differs.
    Marked,
}

impl Symptom {
    /// What people call it: `machine down`.
    pub const fn words(self) -> &'static str {
        match self {
            Symptom::MachineDown => "machine down",
            Symptom::ChipFailed => "chip failed",
            Symptom::PcieDegraded => "PCIe degraded",
            Symptom::LinkDown => "link down",
            Symptom::LinkFlapped => "link flapped",
            Symptom::LinkDegraded => "link degraded",
            Symptom::SwitchDown => "switch down",
            Symptom::PortFailed => "port failed",
            Symptom::PortLossHigh => "port loss high",
            Symptom::ExerciseFailed => "exercise failed",
            Symptom::Miswired => "miswired",
            Symptom::Silent => "silent",
            Symptom::Planned => "planned work",
            Symptom::Returned => "given back, tested first",
            Symptom::TaskHung => "task hung",
            Symptom::TopologyFaulty => "topology file wrong",
            Symptom::TopologyDoubtful => "topology file doubtful",
            Symptom::Marked => "outvoted by its replicas",
        }
    }

    /// Whether something is wrong: planned work and what is given back take a fault's way without
    /// being one.
    pub const fn is_fault(self) -> bool {
        !matches!(self, Symptom::Planned | Symptom::Returned)
    }
}
