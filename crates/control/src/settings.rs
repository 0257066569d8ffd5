//! What an operator may set, each with what it was taken from.

use serde::{Deserialize, Serialize};

use selvedge_model::unit::{Ppm, Span};

use crate::planted::{Defect, Planted};

/// What Selvedge may do by itself when a part fails (DESIGN.md §5); each level includes those
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Open a case and say so.
    Observe,
    /// Place no new job on the part.
    Quarantine,
    /// Make running jobs leave it.
    Drain,
    /// Call a crew, requalify and return it.
    Repair,
}

/// Which of the scheduler's means are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// Let later jobs pass a waiting head where they do not delay it.
    pub backfill: bool,
    /// Let a job of higher priority take the hardware of preemptible ones.
    pub preempt: bool,
    /// Move running jobs so that a large one fits.
    pub defragment: bool,
}

/// All settings.  They are the first input's content, so a replay has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What may be done without being asked.
    pub level: Level,
    /// The scheduler's means.
    pub means: Means,
    /// How long a job waits to rise by one priority.
    pub aging: Span,
    /// From a notice to the end of a job's grace.
    pub notice: Span,
    /// From the end of the grace until the tasks' death is certain.
    pub grace: Span,
    /// The longest time from placing a job to its dispatch, for promises to a waiting head.
    pub setup_max: Span,
    /// How long a device may take to answer.
    pub answer_max: Span,
    /// How long a job whose tasks died waits for the case that says why, before it is placed again.
    pub diagnosis: Span,
    /// How long links may take to train after a switch.
    pub train_max: Span,
    /// How long the end-to-end check may take.
    pub exercise_max: Span,
    /// How long a repaired part must stay clean before it returns.
    pub probation: Span,
    /// The first wait of a job whose start or run failed by itself; it doubles each time.
    pub backoff: Span,
    /// Above this share of seats blocked by cases within `breaker_window`, nothing more is done
    /// without a person.
    pub breaker_share: Ppm,
    /// The window of `breaker_share`.
    pub breaker_window: Span,
    /// What one owner may lose to moves within `moves_window`, as a share of what it runs.
    pub moves_share: Ppm,
    /// The window of `moves_share`.
    pub moves_window: Span,
    /// The defect that is built in.
    #[cfg(feature = "planted")]
    pub planted: Option<Defect>,
}

impl Settings {
    /// The longest from telling a running job to stop until it can run elsewhere: what a move costs
    /// it.
    pub fn move_max(&self) -> Span {
        self.notice + self.grace + self.setup_max
    }

    /// Builds a defect in, where there can be one.
    pub fn plant(&mut self, planted: Planted) {
        #[cfg(feature = "planted")]
        {
            self.planted = planted.defect();
        }
        #[cfg(not(feature = "planted"))]
        let Planted { .. } = planted;
    }

    /// Which defect is built in.
    pub(crate) const fn planted(&self) -> Planted {
        #[cfg(feature = "planted")]
        return Planted::of(self.planted);
        #[cfg(not(feature = "planted"))]
        Planted::NONE
    }

    /// Whether this defect is built in.
    #[must_use]
    pub fn has(&self, defect: Defect) -> bool {
        self.planted().has(defect)
    }

    /// Settings for a plant whose devices are simulated: everything is done by itself.
    pub const fn simulated() -> Self {
        Self {
            level: Level::Repair,
            means: Means { backfill: true, preempt: true, defragment: true },
            aging: Span::hours(6),
            notice: Span::secs(60),
            grace: Span::secs(30),
            setup_max: Span::mins(15),
            answer_max: Span::secs(30),
            diagnosis: Span::secs(60),
            train_max: Span::secs(60),
            exercise_max: Span::mins(3),
            probation: Span::mins(10),
            backoff: Span::secs(30),
            // NVSentinel's breaker: half of all nodes in five minutes.
            breaker_share: Ppm::new(500_000),
            breaker_window: Span::mins(5),
            moves_share: Ppm::new(250_000),
            moves_window: Span::hours(24),
            #[cfg(feature = "planted")]
            planted: None,
        }
    }

    /// Settings for a plant that names a real device: nothing is done until told otherwise.
    pub const fn observing() -> Self {
        let mut settings = Self::simulated();
        settings.level = Level::Observe;
        settings
    }
}
