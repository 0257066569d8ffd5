//! Nobody is stopped for what it does not use.
//!
//! Where each start of a job was is noted as it happens.  When the core tells that it has to leave
//! for a fault or a drain, that thing must be something of its place; when it tells that a start
//! has failed, a case about something of its place must stand, or somebody must have been asked in
//! vain. What a place uses is worked out from the cables (`reach`).

use std::collections::BTreeMap;

use selvedge_control::core::Core;
use selvedge_control::limits::ASKS_MAX;
use selvedge_control::note::{Note, Stage, StopWhy};
use selvedge_control::state::JobState;
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::job::Place;
use selvedge_model::unit::Moment;

use super::{Violation, reach};

/// Where jobs were.
#[derive(Clone, Debug, Default)]
pub(super) struct Needless {
    starts: BTreeMap<(JobId, u32), Start>,
}

/// One start of a job.
#[derive(Clone, Debug)]
struct Start {
    place: Place,
    placed_at: Moment,
    /// Whether a stage of it was asked for as often as it may be.
    is_asked_out: bool,
}

impl Needless {
    /// The core has handled something.
    pub(super) fn handled(&mut self, core: &Core) {
        let state = core.state();
        for &job in &state.active {
            let known = &state.jobs[job];
            let asks = match known.state {
                JobState::Starting { asks, .. } => asks,
                JobState::Running { .. } | JobState::Stopping { .. } => 0,
                JobState::Queued { .. }
                | JobState::Finished
                | JobState::Failed { .. }
                | JobState::Cancelled => continue,
            };
            let Some(place) = &known.place else { continue };
            let start = self.starts.entry((job, known.attempt)).or_insert_with(|| Start {
                place: place.clone(),
                placed_at: known.placed_at,
                is_asked_out: false,
            });
            start.is_asked_out |= ASKS_MAX <= asks;
            // What was told of earlier starts has been heard by now.
            if let Some(earlier) = known.attempt.checked_sub(2) {
                self.starts.remove(&(job, earlier));
            }
        }
    }

    /// The power failed: attempts that were not kept are made again, elsewhere perhaps.
    pub(super) fn restarted(&mut self) {
        self.starts.clear();
    }

    /// The core tells people.
    pub(super) fn noted(&self, note: &Note, core: &Core) -> Option<Violation> {
        let &Note::JobNotified { job, attempt, why } = note else { return None };
        // One that began and ended with one input was never seen.
        let start = self.starts.get(&(job, attempt))?;
        let (fabric, cases) = (core.fabric(), &core.state().cases);
        let uses = |target: Target| reach::hits(fabric, target, &start.place);
        let for_a_thing = |target: Target| {
            let is_needless = reach::is_there(fabric, target) && !uses(target);
            is_needless.then(|| Violation::LeftForNothing { job, path: fabric.path(target) })
        };
        match why {
            StopWhy::Fault { case } => for_a_thing(cases[case].target),
            StopWhy::Drained { target } => for_a_thing(target),
            // Switches refuse ports, and are silent, at a stage of their own.
            StopWhy::StartFailed { stage: Stage::Wiring } => None,
            StopWhy::StartFailed { stage } => {
                let stands = |it: &selvedge_control::state::Case| {
                    it.closed.is_none() || start.placed_at <= it.since
                };
                let has_cause =
                    start.is_asked_out || cases.iter().any(|it| stands(it) && uses(it.target));
                (!has_cause).then_some(Violation::FailedForNothing { job, attempt, stage })
            }
            StopWhy::Requeued
            | StopWhy::Preempted { .. }
            | StopWhy::Moved { .. }
            | StopWhy::Limit
            | StopWhy::Cancelled
            | StopWhy::Lost
            | StopWhy::Failed { .. }
            | StopWhy::Hung { .. } => None,
        }
    }
}
