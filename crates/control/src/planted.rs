//! Defects that are built in on purpose, so that it can be shown that the judge finds them.
//!
//! A hook asks [`Settings::has`](crate::settings::Settings::has).  Without the feature `planted`
//! that is a constant `false`, and the hooks compile to nothing; with it the settings, which are
//! the first input's content, say which defect there is, so that a replay has it too.

use serde::{Deserialize, Serialize};

/// One defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Defect {
    /// Clients are answered, and outputs leave, before the journal is synced.
    AcknowledgedBeforeSync,
    /// Switches carry writes out that are older than what they have taken.
    GenerationIgnored,
    /// A switch's answer that a newer write came before is taken for success.
    StaleTakenForDone,
    /// After a restart generations begin anew.
    GenerationReused,
    /// After a restart blueprints are planned against switches that were not read back.
    StaleBlueprint,
    /// Cubes are given back when their tasks were told to stop, not when they are dead.
    FreedBeforeDead,
    /// A job that a fault stopped is not put back into the queue.
    RequeueLost,
    /// Backfill gives cubes out twice, and nobody holds its plan against what is taken.
    DoubleBackfill,
    /// Anybody's word takes back everybody's drains.
    DrainClearedByAnother,
    /// What people have drained is told, and not counted as out of use.
    DrainNotCounted,
    /// The drain of a case does not reach jobs that run.
    DrainMissesRunning,
    /// A part returns when its repair is said to be done.
    RequalificationSkipped,
    /// A verified part returns without probation.
    ProbationSkipped,
    /// Idempotency keys are not kept.
    KeyForgotten,
    /// The first journal row after a snapshot is dropped.
    RowDropped,
    /// Inputs from which nothing follows at once are not journalled.
    QuietInputUnwritten,
    /// A snapshot does not hold the deadlines.
    DeadlinesForgotten,
    /// Jobs run beyond their limits.
    LimitIgnored,
    /// A preempted job ends as if somebody had cancelled it.
    PreemptedLost,
    /// Maintenance begins on everything at once.
    BudgetIgnored,
    /// A change of the plant takes parts from under running jobs.
    PlantTouchesRunning,
    /// After a restart held jobs start.
    HoldForgotten,
    /// After a restart nobody asks after the tasks that ran.
    EndMissed,
    /// Jobs that stay longer pass a head where it is to start.
    HeadDelayed,
    /// Moves are not counted against what their owners may lose.
    ShareIgnored,
    /// Moves are made as they were planned, whatever has changed since.
    OldPlanTaken,
    /// Jobs that run through a switch leave it because it does not answer.
    SilenceEvicts,
    /// A pass sees only the first few of those who wait.
    ShortSighted,
    /// Behind a head a pass begins with whoever came last.
    LastFirst,
    /// Jobs leave a part when any cable of it is out of use, whether they use it or not.
    NeighbourEvicts,
}

impl Defect {
    /// All defects.
    pub const ALL: [Defect; 30] = [
        Defect::AcknowledgedBeforeSync,
        Defect::GenerationIgnored,
        Defect::StaleTakenForDone,
        Defect::GenerationReused,
        Defect::StaleBlueprint,
        Defect::FreedBeforeDead,
        Defect::RequeueLost,
        Defect::DoubleBackfill,
        Defect::DrainClearedByAnother,
        Defect::DrainNotCounted,
        Defect::DrainMissesRunning,
        Defect::RequalificationSkipped,
        Defect::ProbationSkipped,
        Defect::KeyForgotten,
        Defect::RowDropped,
        Defect::QuietInputUnwritten,
        Defect::DeadlinesForgotten,
        Defect::LimitIgnored,
        Defect::PreemptedLost,
        Defect::BudgetIgnored,
        Defect::PlantTouchesRunning,
        Defect::HoldForgotten,
        Defect::EndMissed,
        Defect::HeadDelayed,
        Defect::ShareIgnored,
        Defect::OldPlanTaken,
        Defect::SilenceEvicts,
        Defect::ShortSighted,
        Defect::LastFirst,
        Defect::NeighbourEvicts,
    ];

    /// As people write it.
    pub const fn word(self) -> &'static str {
        match self {
            Defect::AcknowledgedBeforeSync => "acknowledged_before_sync",
            Defect::GenerationIgnored => "generation_ignored",
            Defect::StaleTakenForDone => "stale_taken_for_done",
            Defect::GenerationReused => "generation_reused",
            Defect::StaleBlueprint => "stale_blueprint",
            Defect::FreedBeforeDead => "freed_before_dead",
            Defect::RequeueLost => "requeue_lost",
            Defect::DoubleBackfill => "double_backfill",
            Defect::DrainClearedByAnother => "drain_cleared_by_another",
            Defect::DrainNotCounted => "drain_not_counted",
            Defect::DrainMissesRunning => "drain_misses_running",
            Defect::RequalificationSkipped => "requalification_skipped",
            Defect::ProbationSkipped => "probation_skipped",
            Defect::KeyForgotten => "key_forgotten",
            Defect::RowDropped => "row_dropped",
            Defect::QuietInputUnwritten => "quiet_input_unwritten",
            Defect::DeadlinesForgotten => "deadlines_forgotten",
            Defect::LimitIgnored => "limit_ignored",
            Defect::PreemptedLost => "preempted_lost",
            Defect::BudgetIgnored => "budget_ignored",
            Defect::PlantTouchesRunning => "plant_touches_running",
            Defect::HoldForgotten => "hold_forgotten",
            Defect::EndMissed => "end_missed",
            Defect::HeadDelayed => "head_delayed",
            Defect::ShareIgnored => "share_ignored",
            Defect::OldPlanTaken => "old_plan_taken",
            Defect::SilenceEvicts => "silence_evicts",
            Defect::ShortSighted => "short_sighted",
            Defect::LastFirst => "last_first",
            Defect::NeighbourEvicts => "neighbour_evicts",
        }
    }

    /// The defect written so, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl std::fmt::Display for Defect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// Which defect there is: none, and no byte, without the feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    #[cfg(feature = "planted")]
    defect: Option<Defect>,
}

impl Planted {
    /// No defect.
    pub const NONE: Self = Self {
        #[cfg(feature = "planted")]
        defect: None,
    };

    /// This one.
    #[cfg(feature = "planted")]
    pub const fn of(defect: Option<Defect>) -> Self {
        Self { defect }
    }

    /// Which defect it is.
    pub fn defect(self) -> Option<Defect> {
        #[cfg(feature = "planted")]
        return self.defect;
        #[cfg(not(feature = "planted"))]
        None
    }

    /// Whether it is this defect.
    #[must_use]
    pub fn has(self, defect: Defect) -> bool {
        self.defect() == Some(defect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_read_back_what_they_print() {
        for (idx, defect) in Defect::ALL.into_iter().enumerate() {
            assert_eq!(defect as usize, idx, "{defect}");
            assert_eq!(Defect::parse(defect.word()), Some(defect));
            assert_eq!(serde_json::to_string(&defect).unwrap(), format!("\"{defect}\""));
        }
        assert_eq!(Defect::parse("gremlins"), None);
    }

    #[cfg(not(feature = "planted"))]
    #[test]
    fn without_the_feature_there_is_nothing_to_plant() {
        assert_eq!(size_of::<Planted>(), 0);
        assert!(Defect::ALL.into_iter().all(|it| !Planted::NONE.has(it)));
    }
}
