//! The core: takes one input, changes its state, says what it wants done.
//!
//! ```text
//!   Input ──► handle ──► apply ──► due timers ──► swaps, schedule ──► poll ──► Output
//!                │                                     │
//!                └─ refused: nothing has changed       └─ plans, adopted once `check` has passed
//! ```
//! A job's life, by the file that holds it:
//! ```text
//!             schedule         wiring                    job                     job
//!   Queued ───────────► Wiring ───► Training ─ … ─► Dispatching ─► Running ─► Finished
//!     ▲  ▲ keeps its healthy parts    │ a stage fails                 │ notice, kill
//!     │  └────────────────────────────┴───────────── Stopping ◄───────┘
//!     └─ gives its place up ─────────────────────────────┘ └─► Failed, Cancelled
//! ```

mod answers;
mod asks;
mod breaker;
mod cases;
mod explain;
mod jobs;
mod moves;
mod pass;
mod replay;
mod silence;
mod stages;
mod strays;
mod wiring;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{CaseId, JobId};
use selvedge_model::job::{Demand, Need, SpecError};
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Generation, Moment};

pub use explain::Explanation;
pub use replay::{ReplayError, RestoreError, VERSION, fabric_of};

use crate::capacity::Layout;
use crate::family::DemandError;
use crate::input::{Input, Proposed};
use crate::note::Note;
use crate::output::{Command, Output};
use crate::preflight::ReadingsError;
use crate::schedule::Head;
use crate::schedule::defragment::question::Question;
use crate::schedule::swap::Swap;
use crate::settings::Settings;
use crate::state::{Blueprint, PartState, State, Timer};

/// How the parts of a pool stand, where a number alone would not say why nothing fits.
fn of_a_grid(sides: Option<[usize; 2]>) -> String {
    sides.map_or(String::new(), |[rows, columns]| format!(", a grid of {rows}x{columns}"))
}

/// Who else has real tasks, where a job's own are not too many alone.
fn of_others(n: u32) -> String {
    if n == 0 { String::new() } else { format!(" beside {n} of other jobs") }
}

/// What an accepted input made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Nothing that has a name.
    Done,
    /// A job.
    Job(JobId),
    /// A case.
    Case(CaseId),
    /// A version of the plant.
    Plant(u64),
}

/// Why an input was refused.  The state is as it was; the input is not journalled.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant's text names its fields")]
pub enum Refused {
    #[error("the core has not begun; its first input is the plant")]
    NotBegun,
    #[error("the core has begun already; change the plant with `plant apply`")]
    BegunAlready,
    #[error("the plant cannot be used: {why}")]
    Plant { why: String },
    #[error(
        "the plant is at version {current}, the change was made from {expected}; \
         fetch it and make the change anew"
    )]
    PlantVersion { expected: u64, current: u64 },
    #[error("the change would touch {what}, which {job} uses; cancel it or wait")]
    PlantBusy { what: String, job: JobId },
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Demand(#[from] DemandError),
    #[error(
        "{demand} does not fit this plant: its largest pool has {n_parts} parts for it{}",
        of_a_grid(*sides)
    )]
    TooLarge { demand: Demand, n_parts: usize, sides: Option<[usize; 2]> },
    #[error(
        "{demand} has {n} real tasks{}; one server runs at most {max}",
        of_others(*n_others)
    )]
    TooManyTasks { demand: Demand, n: u32, n_others: u32, max: u32 },
    #[error("replicas run on three machines at least; {demand} has {n}")]
    TooFewMachines { demand: Demand, n: u32 },
    #[error("{n} jobs wait already; submit again when some have started")]
    QueueFull { n: usize },
    #[error("{what} is longer than {max} bytes")]
    TooLong { what: &'static str, max: usize },
    #[error("this key was used for {job}")]
    KeyUsed { job: JobId },
    #[error("there is no {job}; there are {n}")]
    NoJob { job: JobId, n: usize },
    #[error("{job} is {word}; it cannot be {order}")]
    JobState { job: JobId, word: &'static str, order: &'static str },
    #[error("there is no such part of the plant: {target:?}")]
    NoTarget { target: Target },
    #[error("{name} is no machine; replicas run on machines, hosts and boards")]
    NotAHost { name: String },
    #[error("replicas are 0, 1 and 2; there is no {set}")]
    NoReplica { set: u8 },
    #[error("{job} does not run in replicas")]
    NoReplicas { job: JobId },
    #[error("{job} does not run on {name}")]
    NotOfJob { name: String, job: JobId },
    #[error("{name} is drained {n} times already; undrain it first")]
    DrainsFull { name: String, n: usize },
    #[error("{name} is not drained by {by}; it is drained by {holders}")]
    NotYours { name: String, by: String, holders: String },
    #[error("there is no {case}; there are {n}")]
    NoCase { case: CaseId, n: usize },
    #[error("{case} is {state}; it cannot be {order}")]
    CaseState { case: CaseId, state: &'static str, order: &'static str },
    #[error("{case} was taken by {by}")]
    CaseTaken { case: CaseId, by: String },
    #[error("{from} cannot be re-patched to {to}: {why}")]
    Move { from: String, to: String, why: &'static str },
    #[error("maintenance of {n} targets, {n_at_once} at once, cannot be planned: {why}")]
    Maintenance { n: usize, n_at_once: u32, why: &'static str },
    #[error("no moves that can still be made are proposed under this number")]
    NoMoves,
    #[error("nobody waits for this answer")]
    Stale,
    #[error(transparent)]
    Readings(#[from] ReadingsError),
    #[error("{part} answers with {what}, which it cannot have; look at the device")]
    DeviceAnswer { part: String, what: String },
    #[error("nothing is due")]
    NothingDue,
}

/// A plan that the core adopted while it handled an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adopted {
    /// Who starts, who is preempted.
    Schedule(crate::schedule::Plan),
    /// Who goes on where after losing a part.
    Swaps(Vec<Swap>),
    /// What the switches are told.
    Blueprint(Blueprint),
    /// Who is moved so that a job fits.
    Moves(crate::state::Moves),
}

/// The control core.
#[derive(Clone)]
pub struct Core {
    state: State,
    fabric: Arc<Fabric>,
    layout: Arc<Layout>,
    /// What families made of the demands seen; derived, so not in a snapshot.
    needs: BTreeMap<Demand, Arc<Need>>,
    /// The need of each job, out of those.
    needs_of: IdVec<JobId, Arc<Need>>,
    /// Digests of the forwarding tables of the demands seen.
    tables: BTreeMap<Demand, u64>,
    outputs: VecDeque<Output>,
    adopted: Vec<Adopted>,
    replaying: Option<replay::Replaying>,
    /// Whether something changed that may let a job start.
    dirty: bool,
    /// The next wake-up asked for.
    wake: Moment,
    /// The head of the queue as of the last pass.
    head: Option<Head>,
    /// What the newest request to plan asks; derived, so not in a snapshot.
    question: Option<Arc<Question>>,
    /// What was planned, until the pass that holds it against the present state.
    planned: Option<Proposed>,
}

impl Core {
    /// A core that knows nothing; its first input is [`Input::Begin`].
    pub fn new() -> Self {
        Self {
            state: State {
                now: Moment::START,
                settings: Settings::observing(),
                plants: Vec::new(),
                jobs: IdVec::new(),
                keys: BTreeMap::new(),
                key_order: BTreeMap::new(),
                queue: BTreeSet::new(),
                active: BTreeSet::new(),
                parts: IdVec::new(),
                switches: BTreeMap::new(),
                drains: BTreeMap::new(),
                set_aside: BTreeMap::new(),
                cases: IdVec::new(),
                open_cases: BTreeMap::new(),
                sightings: BTreeMap::new(),
                marks: BTreeMap::new(),
                breaker: Vec::new(),
                maintenances: Vec::new(),
                wirings: BTreeMap::new(),
                awaited: BTreeMap::new(),
                seen: BTreeMap::new(),
                generation: Generation::ZERO,
                n_plans: 0,
                timers: BTreeSet::new(),
                deadlines: BTreeMap::new(),
                moves: BTreeMap::new(),
                proposal: None,
                planning: None,
                n_requests: 0,
                strays: BTreeMap::new(),
                attempts_seen: 0,
            },
            fabric: Arc::new(Fabric::new()),
            layout: Arc::new(Layout::default()),
            needs: BTreeMap::new(),
            needs_of: IdVec::new(),
            tables: BTreeMap::new(),
            outputs: VecDeque::new(),
            adopted: Vec::new(),
            replaying: None,
            dirty: false,
            wake: Moment::NEVER,
            head: None,
            question: None,
            planned: None,
        }
    }

    /// Takes one input.  Drain [`Core::poll`] before the next.
    ///
    /// # Errors
    /// [`Refused`]; then nothing has changed.
    pub fn handle(&mut self, now: Moment, input: Input) -> Result<Accepted, Refused> {
        let before = self.state.now;
        self.state.now = before.max(now);
        let accepted = match self.apply(input) {
            Ok(accepted) => accepted,
            Err(refused) => {
                self.state.now = before;
                return Err(refused);
            }
        };
        self.fire_timers();
        self.settle();
        self.ask_wake();
        Ok(accepted)
    }

    /// The next thing to do, or `None` when all is said.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The plans that were adopted since this was last called.
    pub fn take_adopted(&mut self) -> Vec<Adopted> {
        std::mem::take(&mut self.adopted)
    }

    /// All that the core remembers.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The modelled hardware.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Which parts take jobs.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The head of the queue and what it was promised, as of the last pass.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// What the family made of a job's demand.
    pub fn need_of(&self, job: JobId) -> &Arc<Need> {
        &self.needs_of[job]
    }

    /// Holds the whole state against its invariants.
    pub fn check(&self) -> Vec<crate::check::Violation> {
        crate::check::state(&self.fabric, &self.state)
    }

    fn apply(&mut self, input: Input) -> Result<Accepted, Refused> {
        if let Input::Begin { plant, settings } = input {
            return self.begin(plant, settings);
        }
        if self.state.plants.is_empty() {
            return Err(Refused::NotBegun);
        }
        match input {
            Input::Begin { .. } => unreachable!("handled above"),
            Input::Restarted => self.restarted(),
            Input::Tick => {
                let due = self.state.timers.first().is_some_and(|(at, _)| *at <= self.state.now);
                if due { Ok(Accepted::Done) } else { Err(Refused::NothingDue) }
            }
            Input::Ask { by, what } => self.ask(by, what),
            Input::Remark { .. } => Ok(Accepted::Done),
            Input::Answer(answer) => self.answer(answer),
            Input::Planned { request, moves } => self.take_plan(request, moves),
            Input::Report { target, symptom, value } => self.report(target, symptom, value),
            Input::Marked { by: _, target, mark } => self.marked(target, mark),
            Input::Unanswered { switch } => self.unanswered(switch),
            Input::Ahead(ahead) => Ok(self.fall_behind(ahead)),
        }
    }

    fn begin(&mut self, plant: String, settings: Settings) -> Result<Accepted, Refused> {
        if !self.state.plants.is_empty() {
            return Err(Refused::BegunAlready);
        }
        let fabric = fabric_of(std::slice::from_ref(&plant))?;
        self.state.plants.push(plant);
        self.state.settings = settings;
        self.adopt_fabric(fabric);
        self.note(Note::PlantApplied {
            version: 1,
            n_parts: count(self.fabric.parts().len()),
            n_added: count(self.fabric.parts().len()),
            n_retired: 0,
        });
        self.read_switches();
        Ok(Accepted::Plant(1))
    }

    /// Makes `fabric` the current one; the tables grow with it.
    fn adopt_fabric(&mut self, fabric: Fabric) {
        self.fabric = Arc::new(fabric);
        self.layout = Arc::new(Layout::of(&self.fabric));
        self.state.parts.grow(self.fabric.parts().len(), PartState::default());
        for (id, part) in self.fabric.parts().pairs() {
            if self.fabric.template_of(id).role == Role::CircuitSwitch && !part.retired {
                self.state.switches.entry(id).or_default();
            }
        }
        self.recount_outages();
        self.dirty = true;
    }

    fn read_switches(&mut self) {
        let switches: Vec<_> = self.state.switches.keys().copied().collect();
        for switch in switches {
            self.send(Command::ReadSwitch { switch });
            self.set_timer(Timer::Switch(switch), self.state.now + self.state.settings.answer_max);
        }
    }

    fn note(&mut self, note: Note) {
        self.outputs.push_back(Output::Note(note));
    }

    fn send(&mut self, command: Command) {
        self.outputs.push_back(Output::Do(command));
    }

    fn set_timer(&mut self, timer: Timer, at: Moment) {
        self.clear_timer(timer);
        self.state.deadlines.insert(timer, at);
        self.state.timers.insert((at, timer));
    }

    fn clear_timer(&mut self, timer: Timer) {
        if let Some(at) = self.state.deadlines.remove(&timer) {
            self.state.timers.remove(&(at, timer));
        }
    }

    fn fire_timers(&mut self) {
        while let Some(&(at, timer)) = self.state.timers.first() {
            if self.state.now < at {
                break;
            }
            self.clear_timer(timer);
            match timer {
                Timer::Job(job) => self.job_due(job),
                Timer::Case(case) => self.case_due(case),
                Timer::Switch(switch) => self.switch_due(switch),
                Timer::Plan => self.plan_due(),
                Timer::Breaker => self.breaker_due(),
                Timer::Strays => self.end_strays(),
            }
        }
    }

    /// Asks to be woken at the next deadline, once for each.
    fn ask_wake(&mut self) {
        let Some(&(at, _)) = self.state.timers.first() else { return };
        if at != self.wake {
            self.wake = at;
            self.outputs.push_back(Output::WakeAt(at));
        }
    }
}

impl Default for Core {
    fn default() -> Self {
        Self::new()
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
