//! Snapshots, digests and replay.
//!
//! A record holds the input and the plans that were adopted for it.  Replay applies the recorded
//! plans, so a newer version whose planners decide otherwise comes to the same state; the same
//! version plans again and compares.

use std::collections::VecDeque;

use selvedge_model::fabric::Fabric;
use selvedge_model::unit::Moment;

use crate::core::{Adopted, Core, Refused};
use crate::family;
use crate::input::Input;
use crate::schedule::Plan;
use crate::state::State;

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
        let state: State = postcard::from_bytes(bytes).map_err(RestoreError::Format)?;
        let mut core = Core::new();
        let fabric = build(&state.plants);
        let fabric = fabric.map_err(|err| RestoreError::Plant { why: err.to_string() })?;
        core.layout = std::sync::Arc::new(crate::capacity::Layout::of(&fabric));
        core.fabric = std::sync::Arc::new(fabric);
        for job in state.jobs.iter() {
            if let Ok((_, need)) = family::need(&job.spec.demand) {
                core.learn(&job.spec.demand, need);
            }
        }
        core.state = state;
        Ok(core)
    }

    /// A digest of the whole state.
    pub fn digest(&self) -> u64 {
        fnv(&self.snapshot())
    }

    /// Handles a recorded input with its recorded plans.  Outputs are dropped: they left when it
    /// was recorded.
    ///
    /// # Errors
    /// [`ReplayError`]; the core is then of no further use.
    pub fn replay(
        &mut self,
        now: Moment,
        input: Input,
        plans: &[Adopted],
        version: &str,
    ) -> Result<(), ReplayError> {
        self.replaying = Some(Replaying {
            plans: plans.iter().cloned().collect(),
            compare: version == VERSION,
            diverged: None,
        });
        let handled = self.handle(now, input);
        let replaying = self.replaying.take().expect("set above");
        self.outputs.clear();
        self.adopted.clear();
        handled.map_err(ReplayError::Refused)?;
        if let Some(found) = replaying.diverged {
            let recorded = found.1.map_or("nothing".to_owned(), |it| format!("{it:?}"));
            return Err(ReplayError::Diverged { planned: format!("{:?}", found.0), recorded });
        }
        if !replaying.plans.is_empty() {
            return Err(ReplayError::PlansLeft { n: replaying.plans.len() });
        }
        Ok(())
    }

    /// Whether planners run: always, but in the replay of another version's record.
    pub(super) fn plans_anew(&self) -> bool {
        self.replaying.as_ref().is_none_or(|it| it.compare)
    }

    /// The recorded plan in place of the planned one, where there is a record.
    pub(super) fn recorded(&mut self, planned: Adopted) -> Adopted {
        let Some(replaying) = &mut self.replaying else { return planned };
        let recorded = replaying.plans.pop_front();
        if replaying.compare && recorded.as_ref() != Some(&planned) && replaying.diverged.is_none()
        {
            replaying.diverged = Some(Box::new((planned.clone(), recorded.clone())));
        }
        let same_kind =
            recorded.filter(|it| std::mem::discriminant(it) == std::mem::discriminant(&planned));
        same_kind.unwrap_or(planned)
    }

    /// The next recorded plan, if it is of this kind.
    pub(super) fn next_recorded(&mut self, is_kind: impl Fn(&Adopted) -> bool) -> Option<Adopted> {
        let plans = &mut self.replaying.as_mut()?.plans;
        if plans.front().is_some_and(is_kind) { plans.pop_front() } else { None }
    }

    /// The schedule to carry out: in replay the recorded one, even where the planner would do
    /// nothing.  `None` where nothing was recorded and nothing may be planned.
    pub(super) fn recorded_schedule(&mut self, planned: Plan) -> Option<Plan> {
        if self.replaying.is_none() {
            return Some(planned);
        }
        if self.plans_anew() {
            if planned.is_empty() {
                return Some(planned);
            }
            let Adopted::Schedule(plan) = self.recorded(Adopted::Schedule(planned)) else {
                unreachable!("a recorded plan is of the planned kind")
            };
            return Some(plan);
        }
        let recorded = self.next_recorded(|it| matches!(it, Adopted::Schedule(_)));
        match recorded {
            Some(Adopted::Schedule(plan)) => Some(plan),
            _ => Some(Plan::default()),
        }
    }
}

/// The fabric that all versions of the plant make together: ids of the first stay.
pub(super) fn build(plants: &[String]) -> Result<Fabric, Refused> {
    let refused = |why: String| Refused::Plant { why };
    let parse = |text: &String| {
        selvedge_model::spec::Plant::parse("plant", text).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refused(lines.join("\n"))
        })
    };
    let mut versions = plants.iter();
    let first = parse(versions.next().expect("a core that has begun has a plant"))?;
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
