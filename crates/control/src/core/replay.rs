//! Snapshots, digests and replay.
//!
//! A record holds the input and the plans that were adopted for it.  Replay applies the recorded
//! plans, so a newer version whose planners decide otherwise comes to the same state; the same
//! version plans again and compares.

use std::collections::VecDeque;
use std::mem::discriminant;

use selvedge_model::fabric::Fabric;
use selvedge_model::unit::Moment;

use crate::core::{Adopted, Core, Refused};
use crate::family;
use crate::input::{Input, Proposed};
use crate::note::Note;
use crate::output::Output;
use crate::planted::Defect;
use crate::state::{Moves, State};

/// The version whose planners made the plans.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the core does while it replays.
#[derive(Clone, Debug)]
pub(super) struct Replaying {
    plans: VecDeque<Adopted>,
    /// Whether the planners run too, and must decide the same.
    compare: bool,
    diverged: Option<Box<(Adopted, Option<Adopted>)>>,
}

/// Why a record cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// An input that was accepted once is refused.
    #[error("an input that was accepted is refused in replay")]
    Refused(#[source] Refused),
    /// The planners of the same version decide otherwise.
    #[error("replay plans {planned}, the record says {recorded}")]
    Diverged {
        /// What was planned.
        planned: String,
        /// What was recorded.
        recorded: String,
    },
    /// Recorded plans that nothing asked for.
    #[error("{n} recorded plans were not asked for")]
    PlansLeft {
        /// How many.
        n: usize,
    },
}

/// Why a snapshot cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Not a snapshot, or of another format.
    #[error("not a snapshot of this format")]
    Format(#[source] postcard::Error),
    /// There is more of it than this version reads.
    #[error("not a snapshot of this format: {n_bytes} bytes are left over")]
    Longer {
        /// How many.
        n_bytes: usize,
    },
    /// A job in it asks for what no plant has.
    #[error("a job in the snapshot asks for what no plant has")]
    Demand(#[source] family::DemandError),
    /// The plant in it cannot be built.
    #[error("the plant in the snapshot cannot be built: {why}")]
    Plant {
        /// Why.
        why: String,
    },
}

impl Core {
    /// The whole state as bytes: the same state gives the same bytes.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn snapshot(&self) -> Vec<u8> {
        postcard::to_stdvec(&self.state).expect("every type of the state has a wire form")
    }

    /// A core with the state of a snapshot.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(bytes: &[u8]) -> Result<Core, RestoreError> {
        Self::restore_on(bytes, &Core::new())
    }

    /// The same, with the hardware of a core that has the same plant: nothing is built anew.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore_on(bytes: &[u8], built: &Core) -> Result<Core, RestoreError> {
        let (state, rest): (State, _) =
            postcard::take_from_bytes(bytes).map_err(RestoreError::Format)?;
        if !rest.is_empty() {
            return Err(RestoreError::Longer { n_bytes: rest.len() });
        }
        let mut core = Core::new();
        if state.plants.is_empty() {
            return Ok(core);
        }
        if state.plants == built.state.plants {
            core.layout = std::sync::Arc::clone(&built.layout);
            core.fabric = std::sync::Arc::clone(&built.fabric);
        } else {
            let fabric = fabric_of(&state.plants);
            let fabric = fabric.map_err(|err| RestoreError::Plant { why: err.to_string() })?;
            core.layout = std::sync::Arc::new(crate::capacity::Layout::of(&fabric));
            core.fabric = std::sync::Arc::new(fabric);
        }
        for job in state.jobs.iter() {
            let demand = &job.spec.demand;
            if core.needs.contains_key(demand) {
                core.learn(demand, || unreachable!("looked at above"));
            } else {
                let (_, need) = family::need(demand).map_err(RestoreError::Demand)?;
                core.learn(demand, || need);
            }
        }
        core.state = state;
        if core.state.settings.has(Defect::DeadlinesForgotten) {
            core.state.timers.clear();
            core.state.deadlines.clear();
        }
        Ok(core)
    }

    /// A digest of the whole state.
    pub fn digest(&self) -> u64 {
        fnv(&self.snapshot())
    }

    /// Handles a recorded input with its recorded plans and returns the notes that it told.
    /// Commands and wake-ups are dropped: they left when it was recorded.
    ///
    /// # Errors
    /// [`ReplayError`]; the core is then of no further use.
    pub fn replay(
        &mut self,
        now: Moment,
        input: Input,
        plans: &[Adopted],
        version: &str,
    ) -> Result<Vec<Note>, ReplayError> {
        self.replaying = Some(Replaying {
            plans: plans.iter().cloned().collect(),
            compare: version == VERSION,
            diverged: None,
        });
        let handled = self.handle(now, input);
        let replaying = self.replaying.take().expect("set above");
        let outputs = std::mem::take(&mut self.outputs);
        self.adopted.clear();
        handled.map_err(ReplayError::Refused)?;
        if let Some(found) = replaying.diverged {
            let recorded = found.1.map_or("nothing".to_owned(), |it| format!("{it:?}"));
            return Err(ReplayError::Diverged { planned: format!("{:?}", found.0), recorded });
        }
        if !replaying.plans.is_empty() {
            return Err(ReplayError::PlansLeft { n: replaying.plans.len() });
        }
        let notes = outputs.into_iter().filter_map(|it| match it {
            Output::Note(note) => Some(note),
            Output::Do(_) | Output::Plan(_) | Output::WakeAt(_) => None,
        });
        Ok(notes.collect())
    }

    /// Whether planners run: always, but in the replay of another version's record.
    pub(super) fn plans_anew(&self) -> bool {
        self.replaying.as_ref().is_none_or(|it| it.compare)
    }

    /// In replay under the same version, what was planned outside the core is planned again, where
    /// what was asked is still known.
    pub(super) fn compare_planned(&mut self, request: u64, recorded: Option<&Proposed>) {
        let compares = self.replaying.as_ref().is_some_and(|it| it.compare);
        let question = self.question.as_ref().filter(|it| compares && it.number() == request);
        let Some(again) = question.map(|it| it.moves()) else { return };
        if again.as_ref() == recorded {
            return;
        }
        let moves = |it: Option<&Proposed>| Adopted::Moves(it.map_or_else(Moves::none, unnamed));
        if let Some(replaying) = self.replaying.as_mut().filter(|it| it.diverged.is_none()) {
            let found = (moves(again.as_ref()), Some(moves(recorded)));
            replaying.diverged = Some(Box::new(found));
        }
    }

    /// The plan to carry out, noted among the adopted: the planned one if `check` has passed it,
    /// in replay the recorded one.  `None` where nothing becomes current.
    pub(super) fn checked(&mut self, planned: Adopted, has_passed: bool) -> Option<Adopted> {
        let adopted = match &mut self.replaying {
            None => has_passed.then_some(planned),
            Some(replaying) => replaying.next(planned, has_passed),
        }?;
        self.adopted.push(adopted.clone());
        Some(adopted)
    }
}

impl Replaying {
    /// The recorded plan in place of `planned`.
    fn next(&mut self, planned: Adopted, has_passed: bool) -> Option<Adopted> {
        if self.compare {
            if !has_passed {
                return None;
            }
            let recorded = self.plans.pop_front();
            if recorded.as_ref() != Some(&planned) && self.diverged.is_none() {
                self.diverged = Some(Box::new((planned.clone(), recorded)));
            }
            return Some(planned);
        }
        let is_kind = |it: &Adopted| discriminant(it) == discriminant(&planned);
        if self.plans.front().is_some_and(is_kind) { self.plans.pop_front() } else { None }
    }
}

/// Moves that nobody has adopted.
fn unnamed(moves: &Proposed) -> Moves {
    Moves { job: moves.job, moves: moves.moves.clone(), lost: moves.lost, ..Moves::none() }
}

/// The fabric that all versions of a plant file make together, oldest first: ids of the first stay.
///
/// # Errors
/// [`Refused::NotBegun`] without a version, [`Refused::Plant`] for one that cannot be built.
pub fn fabric_of(plants: &[String]) -> Result<Fabric, Refused> {
    let refused = |why: String| Refused::Plant { why };
    let parse = |text: &String| {
        selvedge_model::spec::Plant::parse("plant", text).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refused(lines.join("\n"))
        })
    };
    let mut versions = plants.iter();
    let first = parse(versions.next().ok_or(Refused::NotBegun)?)?;
    let mut fabric = selvedge_family::build(&first).map_err(|err| refused(err.to_string()))?;
    let mut old = first;
    for text in versions {
        let new = parse(text)?;
        fabric =
            selvedge_family::extend(&fabric, &old, &new).map_err(|err| refused(err.to_string()))?;
        old = new;
    }
    Ok(fabric)
}

/// FNV-1a over whole bytes: digests only have to be equal, and to differ by accident never.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |acc, byte| {
        (acc ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
