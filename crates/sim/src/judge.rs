//! The judge: one seed, everything drawn from it, a phase in which all may go wrong, and one
//! in which all is healed and every job must come to its end.
//!
//! Options are drawn as a swarm (Groce et al. 2012): each kind of fault is off or comes at a wild
//! rate, so that no kind hides another.

mod draw;
mod people;

use std::panic::RefUnwindSafe;

use serde::Serialize;

use selvedge_control::input::Ask;
#[cfg(feature = "planted")]
use selvedge_control::planted::Defect;
use selvedge_control::planted::Planted;
use selvedge_control::settings::Level;
use selvedge_model::id::JobId;
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::Dials;
use crate::dice::Dice;
use crate::fault::{FaultKind, Rates};
use crate::order::OrderKind;
use crate::rule::Violation;
use crate::world::{World, WorldError};
use draw::Drawn;

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What was run.
    #[serde(skip)]
    pub trial: Trial,
    /// The seed.
    pub seed: u64,
    /// What was drawn, for people.
    pub options: String,
    /// Of all that passed.
    pub digest: String,
    /// Inputs that the core accepted.
    pub n_inputs: u64,
    /// Faults of each kind, in the order of [`FaultKind::ALL`].
    pub n_faults: [u64; FaultKind::ALL.len()],
    /// Orders of each kind that were accepted, in the order of [`OrderKind::ALL`].
    pub n_orders: [u64; OrderKind::ALL.len()],
    /// Times that the power failed.
    pub n_crashes: u64,
    /// Jobs that came to an end.
    pub n_jobs: u64,
    /// Rules that were broken, with their moments.
    pub violations: Vec<String>,
}

impl Outcome {
    /// The one command that runs this seed again.
    pub fn command(&self) -> String {
        self.trial.command()
    }
}

/// One run of the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// All is drawn from it.
    pub seed: u64,
    /// Whether the power fails at every sync, not only where the seed says so.
    pub crashes_everywhere: bool,
    /// Whether the run ends with the first rule that is broken.
    pub stops: bool,
    /// The defect that is built in: none, where the feature is not.
    pub planted: Planted,
}

impl Trial {
    /// The ordinary run of a seed.
    pub const fn of(seed: u64) -> Self {
        Self { seed, crashes_everywhere: false, stops: false, planted: Planted::NONE }
    }

    /// The one command that runs it again.
    pub fn command(&self) -> String {
        let Self { seed, crashes_everywhere, planted, .. } = self;
        match (planted.defect(), crashes_everywhere) {
            (Some(defect), _) => format!("cargo xtask soak --planted {defect} --seed {seed}"),
            (None, true) => format!("selvedge sim --judge-seed {seed} --crashes-everywhere"),
            (None, false) => format!("selvedge sim --judge-seed {seed}"),
        }
    }
}

/// Runs one seed.
///
/// # Errors
/// [`WorldError`]: what the core wrote cannot be read back, or the like; a failure of the seed.
pub fn seed(seed: u64) -> Result<Outcome, WorldError> {
    run(Trial::of(seed))
}

/// How long after its end a seed may go on with faults until its last drawn crash has come.
const LINGER_MAX: Span = Span::days(3);

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No rule was broken.
    Well(Box<Outcome>),
    /// With what the judge, the journal or the core's own assertions say of it.
    Badly {
        /// What they say.
        rules: Vec<String>,
        /// Inputs until then, where they are known.
        n_inputs: u64,
    },
    /// With nothing found when who runs it had no more time for it.
    Cut {
        /// At this moment of its world.
        at: Moment,
        /// Inputs until then.
        n_inputs: u64,
    },
}

/// Runs one seed as a trial says.  A panic is a finding like any other: the core has noticed by
/// itself that it is wrong.
pub fn attempt(trial: Trial) -> Ended {
    attempt_while(trial, &|| true)
}

/// The same for as long as `goes_on`, which is asked before each step.
pub fn attempt_while(trial: Trial, goes_on: &(dyn Fn() -> bool + RefUnwindSafe)) -> Ended {
    match std::panic::catch_unwind(|| run_while(trial, goes_on)) {
        Ok(Ok((outcome, None))) if outcome.violations.is_empty() => Ended::Well(Box::new(outcome)),
        Ok(Ok((outcome, Some(at)))) if outcome.violations.is_empty() => {
            Ended::Cut { at, n_inputs: outcome.n_inputs }
        }
        Ok(Ok((outcome, _))) => {
            Ended::Badly { rules: outcome.violations, n_inputs: outcome.n_inputs }
        }
        Ok(Err(err)) => {
            let because = std::error::Error::source(&err).map(|it| format!(": {it}"));
            let rule = format!("{err}{}", because.unwrap_or_default());
            Ended::Badly { rules: vec![rule], n_inputs: 0 }
        }
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            Ended::Badly { rules: vec![format!("an assertion failed: {said}")], n_inputs: 0 }
        }
    }
}

/// Within so many seeds the judge must find a defect that is built in.
pub const SEEDS_MAX: u64 = 200;

/// The first of `seeds` that finds a defect.
#[cfg(feature = "planted")]
pub fn find(defect: Defect, seeds: std::ops::Range<u64>) -> Search {
    let mut search = Search { found: None, n_inputs: 0 };
    for seed in seeds {
        let planted = Planted::of(Some(defect));
        match attempt(Trial { planted, stops: true, ..Trial::of(seed) }) {
            Ended::Well(outcome) => search.n_inputs += outcome.n_inputs,
            Ended::Cut { .. } => unreachable!("it may take as long as it takes"),
            Ended::Badly { rules, n_inputs } => {
                search.n_inputs += n_inputs;
                search.found = Some((seed, rules.into_iter().next().unwrap_or_default()));
                break;
            }
        }
    }
    search
}

/// What a search for a defect came to.
#[cfg(feature = "planted")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The first seed that finds it, and the first rule that it breaks.
    pub found: Option<(u64, String)>,
    /// Inputs of all seeds until then, where they are known.
    pub n_inputs: u64,
}

/// Runs one seed as a trial says.
///
/// # Errors
/// [`WorldError`], as [`seed`].
pub fn run(trial: Trial) -> Result<Outcome, WorldError> {
    run_while(trial, &|| true).map(|it| it.0)
}

/// Runs one seed while `goes_on`; with the outcome so far comes the moment at which it was cut, if
/// it was.
fn run_while(
    trial: Trial,
    goes_on: &dyn Fn() -> bool,
) -> Result<(Outcome, Option<Moment>), WorldError> {
    let seed = trial.seed;
    let mut dice = Dice::new(seed, "options");
    let drawn = Drawn::draw(trial, &mut dice);
    let mut world = World::new(drawn.setup.clone())?;
    let rates = drawn.rates(&world, &mut dice);
    world.plant_mut().set_rates(Moment::START, rates);
    let mut minds = Dice::new(seed, "minds");
    let is_over = |world: &World| trial.stops && world.rules().n_found() != 0;
    // Whether all came to pass up to a moment.
    let pass = |world: &mut World, until: Moment| -> Result<bool, WorldError> {
        while goes_on() {
            if !world.step(until)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let cut = |world: &World| Ok((outcome(trial, &drawn, world), Some(world.now())));
    for (at, by, wish) in drawn.wishes.iter().cloned() {
        if !pass(&mut world, at)? {
            return cut(&world);
        }
        if is_over(&world) {
            return Ok((outcome(trial, &drawn, &world), None));
        }
        people::ask(&mut world, &mut minds, by, wish);
    }
    if !pass(&mut world, drawn.end)? {
        return cut(&world);
    }
    // A plant that has fallen quiet has too few syncs for the crashes that are left.
    let mut at = drawn.end;
    while world.n_crashes_left() != 0 && at < drawn.end + LINGER_MAX && !is_over(&world) {
        at = at + Span::mins(30);
        if !pass(&mut world, at)? {
            return cut(&world);
        }
    }
    heal(&mut world);
    let last = at + drawn.bound;
    while !world.is_done() && at < last && !is_over(&world) {
        at = at + Span::mins(30);
        if !pass(&mut world, at)? {
            return cut(&world);
        }
        people::attend(&mut world);
    }
    // What was given back last may still be on probation; then all is to be quiet.
    let settled = world.now().max(at) + Span::hours(1);
    if !pass(&mut world, settled)? {
        return cut(&world);
    }
    world.check();
    complain(&mut world);
    Ok((outcome(trial, &drawn, &world), None))
}

fn outcome(trial: Trial, drawn: &Drawn, world: &World) -> Outcome {
    let summary = world.summary(trial.seed);
    Outcome {
        trial,
        seed: trial.seed,
        options: drawn.text.clone(),
        digest: summary.digest,
        n_inputs: summary.inputs,
        n_faults: world.plant().n_faults(),
        n_orders: world.tally().n_orders,
        n_crashes: summary.crashes,
        n_jobs: summary.jobs.submitted - summary.jobs.lost,
        violations: summary.violation_list,
    }
}

/// All is healed: nothing fails any more, nobody holds anything back.
fn heal(world: &mut World) {
    world.calm();
    let now = world.now();
    world.plant_mut().set_rates(now, Rates::NONE);
    world.plant_mut().set_dials(Dials { untrained: Ppm::new(0), ..Dials::QUIET });
    world.plant_mut().clear_all(now);
    world.ask("operator", Ask::SetLevel { level: Level::Repair });
    people::deploy_all(world);
    people::undrain_all(world);
}

/// Names each job that is not over although everything is healed, and what may hold it.
fn complain(world: &mut World) {
    let state = world.core().state();
    let cases = state.open_cases.iter().take(4).map(|(&target, &case)| {
        let (known, path) = (&state.cases[case], world.core().fabric().path(target));
        let by = known.taken_by.as_deref().unwrap_or("nobody");
        format!("{case} on {path} {:?} since {} by {by}", known.state, known.since)
    });
    let cases = cases.collect::<Vec<_>>().join(", ");
    let n_sound = state.parts.iter().filter(|it| it.is_whole()).count();
    let around = format!(
        "{} cases open: {cases}; {} drains; {n_sound} of {} parts sound",
        state.open_cases.len(),
        state.drains.len(),
        state.parts.len()
    );
    let late: Vec<(JobId, String)> = (state.jobs.pairs())
        .filter(|(_, job)| !job.state.is_over())
        .map(|(job, known)| {
            let (demand, since) = (&known.spec.demand, known.timeline.last().map(|it| it.0));
            let why = format!("{demand} is {:?}, last moved at {since:?}; {around}", known.state);
            (job, why)
        })
        .collect();
    for (job, why) in late {
        world.complain(Violation::NotLive { job, why });
    }
}

#[cfg(test)]
mod tests;
