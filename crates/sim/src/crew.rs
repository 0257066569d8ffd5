//! The repair crew: called for a case, it comes, works, and says that it is done.
//!
//! ```text
//!  CallCrew ──► Coming ──► Working ──► Done ──► (called again: Coming)
//!                 TakeRepair ▲  truth repaired, FinishRepair ▲
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use selvedge_model::fault::Target;
use selvedge_model::id::CaseId;
use selvedge_model::unit::Moment;

/// How far a repair has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The crew is on its way.
    Coming,
    /// It has taken the repair.
    Working,
    /// It has said that it is done.
    Done {
        /// When.
        at: Moment,
    },
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// What is to be repaired.
    pub target: Target,
    /// How far it has come.
    pub stage: Stage,
}

/// All calls of a plant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crew {
    calls: BTreeMap<CaseId, Call>,
}

/// The name under which the crew asks.
pub const CREW: &str = "crew";

impl Crew {
    /// Notes a call; false if the crew is already on it.
    pub(crate) fn call(&mut self, case: CaseId, target: Target) -> bool {
        let known = self.calls.get(&case).is_some_and(|call| match call.stage {
            Stage::Coming | Stage::Working => true,
            Stage::Done { .. } => false,
        });
        if !known {
            self.calls.insert(case, Call { target, stage: Stage::Coming });
        }
        !known
    }

    pub(crate) fn stage(&mut self, case: CaseId, stage: Stage) -> Option<Target> {
        let call = self.calls.get_mut(&case)?;
        call.stage = stage;
        Some(call.target)
    }

    /// All calls, oldest case first.
    pub fn calls(&self) -> impl Iterator<Item = (CaseId, Call)> + '_ {
        self.calls.iter().map(|(&case, &call)| (case, call))
    }
}
