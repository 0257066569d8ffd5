//! The run loop: a clock that jumps to the next event, and what passes between core and plant.
//!
//! ```text
//!   arrivals, scenario ─┐                       ┌─► WakeAt ─► clock
//!   plant ─ answers ────┼─► Commit ─► Store ────┼─► Do ─────► plant
//!   clock ─ Tick ───────┘    append, sync       └─► Note ───► rules, tally
//! ```
//! An output leaves only once the record of its input is synced; a crash may come at any sync
//! (`crash`).

mod crash;
#[cfg(test)]
mod explained;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_control::commit::Commit;
use selvedge_control::core::{Accepted, Core, Refused, ReplayError, RestoreError};
use selvedge_control::input::{Ask, Input};
use selvedge_control::output::{Command, Output, Request};
use selvedge_control::planted::Defect;
use selvedge_control::schedule::defragment::question::Question;
use selvedge_control::settings::Settings;
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::job::JobSpec;
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::{Dials, Plant};
use crate::dice::Dice;
use crate::fault::{FaultError, FaultKind, FaultSpec, Rates};
use crate::order::OrderKind;
use crate::rule::book::Deed;
use crate::rule::{Rules, Violation};
use crate::store::Store;
use crate::tally::Tally;
use crash::Shadow;

/// What a world begins with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The plant file's text.
    pub plant: String,
    /// What the operator has set.
    pub settings: Settings,
    /// For all dice.
    pub seed: u64,
    /// How often things fail.
    pub rates: Rates,
    /// How else the plant misbehaves.
    pub dials: Dials,
    /// What comes from outside, in the order of its moments.
    pub happenings: Vec<(Moment, Happening)>,
    /// When records become durable.
    pub syncs: Syncs,
    /// At which syncs the power fails.
    pub crashes: Crashes,
    /// How long planning outside the core takes.
    pub planning: Planning,
    /// How often everything is checked: each so many inputs; 0 for never.
    pub check_every: u64,
}

/// Something that comes from outside.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A job is submitted under its name as the key.
    Submit(JobSpec),
    /// Somebody asks something.
    Ask {
        /// Who.
        by: String,
        /// What.
        what: Ask,
    },
    /// Something breaks; by path, or drawn.
    Fault {
        /// What.
        kind: FaultKind,
        /// Where.
        path: Option<String>,
    },
    /// Something is as it was; everything without a path.
    Clear {
        /// Where.
        path: Option<String>,
    },
    /// Somebody asks for a drain (or takes it back) of what lies at a path.
    Drain {
        /// Where.
        path: String,
        /// Whether it is taken back.
        undo: bool,
    },
}

impl Happening {
    /// What it names of the plant.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::Submit(_) | Self::Ask { .. } => None,
            Self::Fault { path, .. } | Self::Clear { path } => path.as_deref(),
            Self::Drain { path, .. } => Some(path),
        }
    }
}

/// When records become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncs {
    /// At once.
    AtOnce,
    /// So long after the first record that waits.
    After(Span, Span),
}

/// At which syncs the power fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crashes {
    /// Never; the journal is not even kept.
    Never,
    /// At each one: what is left is recovered beside the world, by a shadow that goes on from the
    /// newest snapshot, and held against what was acknowledged; now and then the world itself goes
    /// on from there.
    Always,
    /// At so many, drawn among all syncs up to a moment.
    Drawn {
        /// How many.
        n: u64,
        /// Up to then; whatever is left over comes at the next syncs.
        until: Moment,
    },
}

/// How long planning outside the core takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planning {
    /// No time.
    AtOnce,
    /// A while, and this share of what is asked is never answered.
    Within {
        /// At least.
        shortest: Span,
        /// At most.
        longest: Span,
        /// What is lost.
        lost: Ppm,
    },
}

/// Why a world cannot go on: never the fault of what it simulates.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The plant's text is refused.
    #[error("the plant cannot be used")]
    Begin(#[source] Refused),
    /// The journal of the core's own making cannot be replayed.
    #[error("record {number} cannot be replayed after a crash at {now}")]
    Replay {
        /// Which.
        number: u64,
        /// When.
        now: Moment,
        /// Why.
        #[source]
        source: ReplayError,
    },
    /// A record is missing.
    #[error("after a crash at {now} the journal goes on with record {number}, not {expected}")]
    Gap {
        /// The record that is there.
        number: u64,
        /// The one that comes next.
        expected: u64,
        /// When.
        now: Moment,
    },
    /// The snapshot of the core's own making cannot be read.
    #[error("the snapshot cannot be restored after a crash at {now}")]
    Restore {
        /// When.
        now: Moment,
        /// Why.
        #[source]
        source: RestoreError,
    },
    /// A path of the scenario that names nothing.
    #[error("the plant has no {path:?}; `selvedge plant show` lists what there is")]
    NoPath {
        /// As written.
        path: String,
    },
    /// A fault of the scenario that cannot happen.
    #[error("the scenario's fault after {} cannot be injected", at.since(Moment::START))]
    Fault {
        /// When it is to happen.
        at: Moment,
        /// Why not.
        #[source]
        source: FaultError,
    },
}

/// What a client waits for.
#[derive(Clone, Debug)]
struct Pending {
    number: u64,
    job: JobId,
    spec: JobSpec,
}

/// A simulated world with a control core in it.  A clone goes its own way from here.
#[derive(Clone)]
pub struct World {
    setup: Setup,
    commit: Commit,
    store: Store,
    plant: Plant,
    now: Moment,
    wakes: BTreeSet<Moment>,
    n_happened: usize,
    sync_at: Option<Moment>,
    n_syncs: u64,
    /// Submits that are not acknowledged yet.
    pending: Vec<Pending>,
    /// Submits to be repeated by their clients after a crash.
    again: Vec<JobSpec>,
    /// What was acknowledged, by the submit's key.
    acknowledged: BTreeMap<String, JobId>,
    crash_dice: Dice,
    sync_dice: Dice,
    planning_dice: Dice,
    /// What is being planned, by the moment at which it is answered and its number.
    planning: BTreeMap<(Moment, u64), Arc<Question>>,
    /// What a process would be that started from the durable journal, where it always may.
    shadow: Option<Shadow>,
    heard: Vec<Input>,
    rules: Rules,
    tally: Tally,
    check_in: u64,
    /// Whether somebody has asked since the last step: what follows leaves at this moment.
    asked: bool,
    /// Versions of the plant file that the hardware has followed.
    n_plants: usize,
    /// When the last job that is to come arrives, and the chip-seconds held until then once it has.
    last_arrival: (Moment, Option<f64>),
}

/// Records between two snapshots where the journal is kept.
const SNAPSHOT_EVERY: usize = 64;

impl World {
    /// A world at its first moment.
    ///
    /// # Errors
    /// [`WorldError::Begin`].
    pub fn new(setup: Setup) -> Result<Self, WorldError> {
        let never = setup.crashes == Crashes::Never;
        let store = if never { Store::forgetful() } else { Store::new() };
        // The plant is built from the core's own reading of the file, before anything fails.
        let mut core = Core::new();
        let begin = Input::Begin { plant: setup.plant.clone(), settings: setup.settings.clone() };
        core.handle(Moment::START, begin).map_err(WorldError::Begin)?;
        let fabric = Arc::new(core.fabric().clone());
        let plant = Plant::new(fabric, setup.seed, setup.rates, setup.dials);
        let mut world = Self {
            commit: Commit::new(Core::new(), 1),
            store,
            plant,
            now: Moment::START,
            wakes: BTreeSet::new(),
            n_happened: 0,
            sync_at: None,
            n_syncs: 0,
            pending: Vec::new(),
            again: Vec::new(),
            acknowledged: BTreeMap::new(),
            crash_dice: Dice::new(setup.seed, "crashes"),
            sync_dice: Dice::new(setup.seed, "syncs"),
            planning_dice: Dice::new(setup.seed, "planning"),
            planning: BTreeMap::new(),
            shadow: (setup.crashes == Crashes::Always).then(|| Shadow::new(setup.seed)),
            heard: Vec::new(),
            rules: Rules::new(),
            tally: Tally::default(),
            check_in: setup.check_every,
            asked: false,
            n_plants: 1,
            last_arrival: (Moment::START, None),
            setup,
        };
        world.last_arrival.0 = world.last_arrival();
        world.begin()?;
        Ok(world)
    }

    /// The core.
    pub fn core(&self) -> &Core {
        self.commit.core()
    }

    /// The plant as it really is.
    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    /// The plant, to break or repair something in it.
    pub fn plant_mut(&mut self) -> &mut Plant {
        &mut self.plant
    }

    /// Which rules were broken.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The moment.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Whether nothing more comes from outside and all jobs are over.
    pub fn is_done(&self) -> bool {
        self.n_happened == self.setup.happenings.len()
            && self.again.is_empty()
            && self.pending.is_empty()
            && self.tally.n_over == self.tally.n_accepted
    }

    /// The next moment at which something happens.
    pub fn next_at(&self) -> Option<Moment> {
        let outside = self.setup.happenings.get(self.n_happened).map(|it| it.0);
        let asked = self.asked.then_some(self.now);
        let planned = self.planning.keys().next().map(|it| it.0);
        let wake = self.wakes.first().copied();
        let sources = [self.plant.next_at(), wake, outside, self.sync_at, asked, planned];
        sources.into_iter().flatten().min().map(|at| at.max(self.now))
    }

    /// Lets everything of the next moment happen; false when there is none up to `until`.
    ///
    /// # Errors
    /// [`WorldError`].
    pub fn step(&mut self, until: Moment) -> Result<bool, WorldError> {
        let Some(at) = self.next_at().filter(|&at| at <= until) else {
            // What was asked since the last event is handled, and more may follow from it.
            let asked = self.commit.has_unwritten();
            self.persist()?;
            return Ok(asked);
        };
        self.tally.pass(at, self.commit.core());
        if let (last, None) = self.last_arrival
            && last <= at
        {
            self.last_arrival.1 = Some(self.held_until(last));
        }
        self.now = at;
        self.asked = false;
        let mut heard = std::mem::take(&mut self.heard);
        self.plant.advance_into(at, &mut heard);
        for input in heard.drain(..) {
            self.offer(input);
        }
        self.heard = heard;
        while let Some(planned) = self.planning.first_entry().filter(|it| it.key().0 <= at) {
            let question = planned.remove();
            self.offer(question.answer());
        }
        let mut due = false;
        while self.wakes.first().is_some_and(|&wake| wake <= at) {
            self.wakes.pop_first();
            due = true;
        }
        if due {
            self.offer(Input::Tick);
        }
        while self.setup.happenings.get(self.n_happened).is_some_and(|it| it.0 <= at) {
            let happening = self.setup.happenings[self.n_happened].1.clone();
            self.n_happened += 1;
            self.happen(happening)?;
        }
        for spec in std::mem::take(&mut self.again) {
            self.submit(spec);
        }
        self.persist()?;
        self.judge_step();
        Ok(true)
    }

    /// Lets the time pass up to a moment before which nothing more happens.
    pub fn rest(&mut self, until: Moment) {
        if self.next_at().is_none_or(|at| until < at) {
            self.tally.pass(until, self.commit.core());
            self.now = self.now.max(until);
        }
    }

    /// Asks the core as a person would; what was accepted, if it was.
    pub fn ask(&mut self, by: &str, what: Ask) -> Option<Accepted> {
        self.asked = true;
        self.offer(Input::Ask { by: by.to_owned(), what }).map(|it| it.1)
    }

    /// How many jobs are submitted in all.
    pub fn n_to_submit(&self) -> u64 {
        let all = self.setup.happenings.iter();
        all.filter(|(_, it)| matches!(it, Happening::Submit(_))).count() as u64
    }

    /// When the last job that is to come arrives; the start, if none is.
    pub fn last_arrival(&self) -> Moment {
        let submits = |it: &&(Moment, Happening)| matches!(it.1, Happening::Submit(_));
        let all = self.setup.happenings.iter();
        all.filter(submits).map(|it| it.0).max().unwrap_or(Moment::START)
    }

    /// When the last job arrived, or now where some are still to come, and the chip-seconds that
    /// jobs had held until then.
    pub(crate) fn held_until_last_arrival(&self) -> (Moment, f64) {
        match self.last_arrival {
            (last, Some(held)) => (last, held),
            (_, None) => (self.now, self.held_until(self.now)),
        }
    }

    /// Adds a finding of who drives this world.
    pub fn complain(&mut self, violation: Violation) {
        self.rules.found(self.now, violation);
    }

    /// How many of the drawn crashes are still to come.
    pub fn n_crashes_left(&self) -> u64 {
        match self.setup.crashes {
            Crashes::Never | Crashes::Always => 0,
            Crashes::Drawn { n, .. } => n.saturating_sub(self.tally.n_crashes),
        }
    }

    /// From now on nothing crashes, and records are durable and plans made at once.
    pub fn calm(&mut self) {
        self.setup.crashes = Crashes::Drawn { n: 0, until: self.now };
        self.setup.syncs = Syncs::AtOnce;
        self.setup.planning = Planning::AtOnce;
        self.shadow = None;
    }

    /// Holds everything against everything; what is wrong is noted.
    pub fn check(&mut self) {
        self.rules.check(self.now, self.commit.core(), &self.plant);
        let n_jobs = self.commit.core().state().jobs.len() as u64;
        if n_jobs != self.tally.n_accepted {
            let (known, accepted) = (n_jobs, self.tally.n_accepted);
            self.rules.found(self.now, Violation::JobCount { known, accepted });
        }
    }

    fn begin(&mut self) -> Result<(), WorldError> {
        let plant = self.setup.plant.clone();
        let begin = Input::Begin { plant, settings: self.setup.settings.clone() };
        self.commit.offer(self.now, begin).map_err(WorldError::Begin)?;
        self.tally.n_inputs += 1;
        self.persist()
    }

    fn offer(&mut self, input: Input) -> Option<(u64, Accepted)> {
        let order = match &input {
            Input::Ask { what, .. } => Some(OrderKind::of(what)),
            _other => None,
        };
        let deed = Deed::of(self.commit.core().fabric(), &input);
        self.rules.hears(self.commit.core(), &input);
        match self.commit.offer(self.now, input) {
            Ok(accepted) => {
                self.tally.n_inputs += 1;
                self.rules.accepted(accepted.0, deed);
                self.look_at_plans(accepted.0);
                if let Some(kind) = order {
                    self.tally.n_orders[kind as usize] += 1;
                }
                Some(accepted)
            }
            Err(refused) => {
                self.tally.refuse(&refused);
                None
            }
        }
    }

    /// The judge sees what was planned for the newest input, at the moment at which it is so.
    fn look_at_plans(&mut self, number: u64) {
        let plans = self.commit.newest_plans();
        self.rules.planned(self.now, self.commit.core(), number, plans);
    }

    fn submit(&mut self, spec: JobSpec) {
        let key = Some(spec.name.clone());
        let what = Ask::Submit { key, spec: spec.clone() };
        let input = Input::Ask { by: spec.owner.clone(), what };
        self.rules.hears(self.commit.core(), &input);
        match self.commit.offer(self.now, input) {
            Ok((number, Accepted::Job(job))) => {
                self.look_at_plans(number);
                self.tally.n_inputs += 1;
                self.tally.n_accepted += 1;
                self.tally.n_orders[OrderKind::Submit as usize] += 1;
                self.pending.push(Pending { number, job, spec });
            }
            Ok((number, other)) => {
                self.rules
                    .found(self.now, Violation::NotAJob { number, made: format!("{other:?}") });
            }
            // The first submit had been durable after all.
            Err(Refused::KeyUsed { job }) => {
                let number = self.commit.newest_synced();
                self.pending.push(Pending { number, job, spec });
            }
            Err(refused) => {
                self.tally.n_refused_jobs += 1;
                self.tally.refuse(&refused);
            }
        }
    }

    fn find(&self, path: &str) -> Result<Target, WorldError> {
        let found = self.commit.core().fabric().find(path);
        found.ok_or_else(|| WorldError::NoPath { path: path.to_owned() })
    }

    /// Whether all that `events` name is there, and can have what is to happen to it.
    pub(crate) fn could_happen(&self, events: &[(Moment, Happening)]) -> Result<(), WorldError> {
        let mut plant = self.plant.clone();
        for (at, event) in events {
            let Some(path) = event.path() else { continue };
            let target = Some(self.find(path)?);
            let Happening::Fault { kind, .. } = *event else { continue };
            match plant.inject(self.now, FaultSpec { kind, target }) {
                Ok(_) | Err(FaultError::Stands { .. }) => (),
                Err(source) => return Err(WorldError::Fault { at: *at, source }),
            }
        }
        Ok(())
    }

    fn happen(&mut self, happening: Happening) -> Result<(), WorldError> {
        match happening {
            Happening::Submit(spec) => {
                self.tally.n_submitted += 1;
                self.submit(spec);
            }
            Happening::Ask { by, what } => {
                self.offer(Input::Ask { by, what });
            }
            Happening::Fault { kind, path } => {
                let target = path.map(|path| self.find(&path)).transpose()?;
                match self.plant.inject(self.now, FaultSpec { kind, target }) {
                    // A drawn fault may find all broken, and a named one what it would break.
                    Ok(_) | Err(FaultError::Stands { .. }) => (),
                    Err(_) if target.is_none() => (),
                    Err(source) => return Err(WorldError::Fault { at: self.now, source }),
                }
            }
            Happening::Clear { path: None } => self.plant.clear_all(self.now),
            Happening::Clear { path: Some(path) } => {
                let target = self.find(&path)?;
                // The crew may have been there first.
                let _n_cleared = self.plant.clear(self.now, target);
            }
            Happening::Drain { path, undo } => {
                let target = self.find(&path)?;
                let what = match undo {
                    false => Ask::Drain { target, why: "scenario".to_owned() },
                    true => Ask::Undrain { target },
                };
                self.ask("operator", what);
            }
        }
        Ok(())
    }

    /// Appends what was handled, and syncs when it is time.
    fn persist(&mut self) -> Result<(), WorldError> {
        let records = self.commit.to_append();
        if !records.is_empty() {
            self.store.append(records);
            if self.sync_at.is_none() {
                self.sync_at = Some(match self.setup.syncs {
                    Syncs::AtOnce => self.now,
                    Syncs::After(shortest, longest) => {
                        self.now + self.sync_dice.span(shortest, longest)
                    }
                });
            }
        }
        if self.sync_at.is_some_and(|at| at <= self.now) {
            self.sync()?;
        }
        // Whatever may leave by the commit's own word.
        self.acknowledge();
        self.carry_out();
        Ok(())
    }
    /// What was appended becomes durable, unless the power fails before.
    fn sync(&mut self) -> Result<(), WorldError> {
        self.sync_at = None;
        self.n_syncs += 1;
        let crashes = match &self.setup.crashes {
            Crashes::Never => false,
            Crashes::Always => {
                self.crash_beside()?;
                self.n_syncs.is_multiple_of(crash::LIVED_EVERY)
            }
            Crashes::Drawn { n, until } => self.is_drawn(*n, *until),
        };
        if crashes {
            return self.crash();
        }
        self.store.sync();
        self.follow()?;
        let newest = self.commit.next_number() - 1;
        self.commit.synced(newest);
        self.rules.synced(newest);
        self.build();
        self.acknowledge();
        self.carry_out();
        if self.setup.crashes != Crashes::Never && SNAPSHOT_EVERY <= self.store.n_kept() {
            self.store.snapshot(self.commit.next_number() - 1, self.commit.core().snapshot());
            self.refresh_shadow()?;
            if self.setup.settings.has(Defect::RowDropped) {
                self.store.drop_next();
            }
        }
        Ok(())
    }

    /// What the plant file has come to say is built, once that is certain.
    fn build(&mut self) {
        let n_plants = self.commit.core().state().plants.len();
        if self.n_plants < n_plants {
            self.n_plants = n_plants;
            let after = self.commit.core().fabric();
            self.rules.rebuilt(self.now, self.plant.fabric(), after, &self.plant);
            self.plant.adopt(Arc::new(self.commit.core().fabric().clone()));
        }
    }

    fn acknowledge(&mut self) {
        let newest = self.commit.newest_synced();
        let keep = self.setup.crashes != Crashes::Never;
        let is_open = |it: &Pending| newest < it.number;
        let (open, done) = std::mem::take(&mut self.pending).into_iter().partition(is_open);
        self.pending = open;
        let done: Vec<Pending> = done;
        for it in done {
            if keep
                && self.acknowledged.insert(it.spec.name, it.job).is_some_and(|old| old != it.job)
            {
                self.rules.found(self.now, Violation::JobTwice { job: it.job });
            }
        }
    }

    /// Lets the outputs leave whose records are durable.
    fn carry_out(&mut self) {
        while let Some(output) = self.commit.release() {
            match output {
                Output::Do(command) => {
                    match &command {
                        Command::Program { errand, table, .. } => {
                            self.rules.programs(*errand, *table);
                        }
                        Command::Start { job, attempt, place, .. } => {
                            let core = self.commit.core();
                            self.rules.starts(self.now, core, &self.plant, *job, *attempt, place);
                        }
                        _ => (),
                    }
                    if let Command::SetSwitch { switch, generation, .. } = &command {
                        self.rules.writes(self.now, self.commit.core(), *switch, *generation);
                    }
                    self.tally.n_commands += 1;
                    self.plant.tell(self.now, &command);
                }
                Output::Plan(request) => self.plan(request),
                Output::WakeAt(at) => {
                    self.wakes.insert(at.max(self.now));
                }
                Output::Note(note) => {
                    self.rules.noted(self.now, &note, self.commit.core());
                    self.tally.note(&note);
                }
            }
        }
    }

    /// Begins to plan, beside everything else.
    fn plan(&mut self, request: Request) {
        // What was asked since has taken its place.
        let Some(question) = self.commit.core().question(request) else { return };
        let after = match self.setup.planning {
            Planning::AtOnce => Span::ZERO,
            Planning::Within { shortest, longest, lost } => {
                let after = self.planning_dice.span(shortest, longest);
                if self.planning_dice.chance(lost) {
                    self.tally.n_plans_lost += 1;
                    return;
                }
                after
            }
        };
        self.planning.insert((self.now + after, request.number), question);
    }

    /// After a crash the counts of jobs are those of the core that is left.
    fn recount(&mut self) {
        let jobs = &self.commit.core().state().jobs;
        self.tally.n_accepted = jobs.len() as u64;
        self.tally.n_over = jobs.iter().filter(|it| it.state.is_over()).count() as u64;
    }

    fn judge_step(&mut self) {
        for clash in self.plant.take_clashes() {
            let (job, part, seats) = (clash.job, clash.part, clash.seats);
            self.rules.found(self.now, Violation::SeatTwice { job, part, seats });
        }
        if self.setup.check_every == 0 || self.tally.n_inputs < self.check_in {
            return;
        }
        self.check_in = self.tally.n_inputs + self.setup.check_every;
        // Only what has become durable has become true for the plant.
        if self.sync_at.is_none() {
            self.check();
        }
    }
}
