//! What can go wrong in a simulated plant, how often, and who sees it.
//!
//! | kind | health daemons | intent check | end-to-end check | what chips see |
//! |---|---|---|---|---|
//! | machine_down, chip_failed, link_down, switch_down, port_failed | yes | yes | yes | yes |
//! | pcie_degraded, link_degraded, port_loss_high | yes | yes | no | no |
//! | link_flapping | each flap | yes | no | no |
//! | latent_intent | no | yes | no | no |
//! | latent_exercise | no | no | yes | no |
//! | miswired | no | no | no | yes |
//! | silent | a circuit switch: each poll missed | no answer | no answer | no answer |
//! | foreign_change | the next poll | no | yes | yes |
//!
//! docs/scenarios.md has the same table for people.

use serde::{Deserialize, Serialize};

use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::PortId;
use selvedge_model::unit::{Moment, Ppm};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A machine with its chips is gone.
    MachineDown,
    /// A chip is gone.
    ChipFailed,
    /// A chip's PCIe lanes run below their width.
    PcieDegraded,
    /// A link has lost its signal in both directions.
    LinkDown,
    /// A link goes down and comes back, again and again.
    LinkFlapping,
    /// A link counts too many symbol errors.
    LinkDegraded,
    /// A switch is gone; a circuit switch has lost its mirrors when it returns.
    SwitchDown,
    /// A port of a circuit switch cannot be connected.
    PortFailed,
    /// A port of a circuit switch loses too much light.
    PortLossHigh,
    /// A chip corrects too many memory errors; only the intent check looks.
    LatentIntent,
    /// A chip computes wrongly under load; only the end-to-end check notices.
    LatentExercise,
    /// Two fibres or cables of one switch and side are swapped.
    Miswired,
    /// A part does not answer what it is asked; what runs on it runs on.
    Silent,
    /// Somebody else has turned a mirror.
    ForeignChange,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 14] = [
        FaultKind::MachineDown,
        FaultKind::ChipFailed,
        FaultKind::PcieDegraded,
        FaultKind::LinkDown,
        FaultKind::LinkFlapping,
        FaultKind::LinkDegraded,
        FaultKind::SwitchDown,
        FaultKind::PortFailed,
        FaultKind::PortLossHigh,
        FaultKind::LatentIntent,
        FaultKind::LatentExercise,
        FaultKind::Miswired,
        FaultKind::Silent,
        FaultKind::ForeignChange,
    ];

    /// As files and people write it.
    pub const fn word(self) -> &'static str {
        match self {
            FaultKind::MachineDown => "machine_down",
            FaultKind::ChipFailed => "chip_failed",
            FaultKind::PcieDegraded => "pcie_degraded",
            FaultKind::LinkDown => "link_down",
            FaultKind::LinkFlapping => "link_flapping",
            FaultKind::LinkDegraded => "link_degraded",
            FaultKind::SwitchDown => "switch_down",
            FaultKind::PortFailed => "port_failed",
            FaultKind::PortLossHigh => "port_loss_high",
            FaultKind::LatentIntent => "latent_intent",
            FaultKind::LatentExercise => "latent_exercise",
            FaultKind::Miswired => "miswired",
            FaultKind::Silent => "silent",
            FaultKind::ForeignChange => "foreign_change",
        }
    }

    /// The kind written so, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// What health daemons report by themselves; none for what only an answer shows.
    pub const fn symptom(self) -> Option<Symptom> {
        match self {
            FaultKind::MachineDown => Some(Symptom::MachineDown),
            FaultKind::ChipFailed => Some(Symptom::ChipFailed),
            FaultKind::PcieDegraded => Some(Symptom::PcieDegraded),
            FaultKind::LinkDown => Some(Symptom::LinkDown),
            FaultKind::LinkFlapping => Some(Symptom::LinkFlapped),
            FaultKind::LinkDegraded => Some(Symptom::LinkDegraded),
            FaultKind::SwitchDown => Some(Symptom::SwitchDown),
            FaultKind::PortFailed => Some(Symptom::PortFailed),
            FaultKind::PortLossHigh => Some(Symptom::PortLossHigh),
            FaultKind::LatentIntent
            | FaultKind::LatentExercise
            | FaultKind::Miswired
            | FaultKind::Silent
            | FaultKind::ForeignChange => None,
        }
    }

    pub(crate) const fn idx(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// A fault that somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: FaultKind,
    /// With what; drawn if absent.
    pub target: Option<Target>,
}

/// A fault that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// With what: a node for machines and chips, a part for switches and silent parts, a port of
    /// a switch, the even direction of a link; for a swapped fibre the port of its part.
    pub target: Target,
    /// The other swapped fibre's port.
    pub partner: Option<PortId>,
    /// What is measured: Gb/s, errors a minute or an hour, 0.01 dB; 0 where nothing is.
    pub value: u16,
    /// Since when.
    pub since: Moment,
}

/// Why a fault cannot be injected or cleared.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum FaultError {
    /// The kind concerns other things.
    #[error("{kind} cannot happen to {target}; it takes {takes}")]
    WrongTarget {
        /// The kind.
        kind: FaultKind,
        /// The thing's path.
        target: String,
        /// What the kind takes.
        takes: &'static str,
    },
    /// The plant has nothing that this kind could happen to, or all of it has it.
    #[error("{kind} has nothing left to happen to in this plant")]
    NoTarget {
        /// The kind.
        kind: FaultKind,
    },
    /// One fault of a kind on one thing.
    #[error("{target} has {kind} already; clear it first")]
    Stands {
        /// The kind.
        kind: FaultKind,
        /// The thing's path.
        target: String,
    },
    /// Nothing to clear.
    #[error("{target} has no fault; `fault list` shows those that stand")]
    NoFault {
        /// The thing's path.
        target: String,
    },
}

/// How often each kind happens: so many in a million of its things a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates([Ppm; FaultKind::ALL.len()]);

impl Rates {
    /// Nothing ever fails.
    pub const NONE: Self = Self([Ppm::new(0); FaultKind::ALL.len()]);

    /// NSDI'24 §5.2: each day 0.08 % of machines, 0.005 % of ICI cables and 0.04 % of circuit
    /// switches fail.  No rates of other kinds are published, so they are zero here.
    pub fn published() -> Self {
        Self::NONE
            .with(FaultKind::MachineDown, Ppm::new(800))
            .with(FaultKind::LinkDown, Ppm::new(50))
            .with(FaultKind::SwitchDown, Ppm::new(400))
    }

    /// These rates with another one for `kind`.
    #[must_use]
    pub const fn with(mut self, kind: FaultKind, per_day: Ppm) -> Self {
        self.0[kind.idx()] = per_day;
        self
    }

    /// The rate of `kind`.
    pub const fn of(&self, kind: FaultKind) -> Ppm {
        self.0[kind.idx()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_what_they_print_and_know_their_place() {
        for (idx, kind) in FaultKind::ALL.into_iter().enumerate() {
            assert_eq!(FaultKind::parse(kind.word()), Some(kind));
            assert_eq!(kind.idx(), idx);
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        assert_eq!(FaultKind::parse("gremlins"), None);
    }
}
