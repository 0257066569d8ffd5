//! The judge: one seed, everything drawn from it, a phase in which all may go wrong, and one
//! in which all is healed and every job must come to its end.
//!
//! Options are drawn as a swarm (Groce et al. 2012): each kind of fault is off or comes at a wild
//! rate, so that no kind hides another.

use std::collections::BTreeSet;

use serde::Serialize;

use selvedge_control::input::{Ask, JobOrder};
use selvedge_control::note::{CaseState, Owner};
use selvedge_control::settings::{Level, Settings};
use selvedge_control::state::JobState;
use selvedge_family::torus::shape::Shape;
use selvedge_model::fault::{Severity, Target};
use selvedge_model::id::{CaseId, JobId};
use selvedge_model::job::{Demand, JobSpec, Work};
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::Dials;
use crate::dice::Dice;
use crate::fault::{FaultKind, Rates};
use crate::rule::Violation;
use crate::scenario::pods;
use crate::world::{Crashes, Happening, Setup, Syncs, World, WorldError};

/// What came of a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
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
        format!("selvedge sim --judge-seed {}", self.seed)
    }
}

/// Of so many seeds, one crashes at every sync.
const ALWAYS_EVERY: u64 = 40;

/// How often the power fails in each other seed.
const N_CRASHES: usize = 20;

/// Runs one seed.
///
/// # Errors
/// [`WorldError`]: what the core wrote cannot be read back, or the like; a failure of the seed.
pub fn seed(seed: u64) -> Result<Outcome, WorldError> {
    let mut dice = Dice::new(seed, "options");
    let drawn = Drawn::draw(seed, &mut dice);
    let mut world = World::new(drawn.setup.clone())?;
    let rates = drawn.rates(&world, &mut dice);
    world.plant_mut().set_rates(Moment::START, rates);
    while world.step(drawn.end)? {}
    heal(&mut world);
    let mut at = drawn.end;
    let last = drawn.end + drawn.bound;
    while !world.is_done() && at < last {
        at = at + Span::mins(30);
        while world.step(at)? {}
        attend(&mut world);
    }
    // What was given back last may still be on probation; then all is to be quiet.
    let settled = world.now().max(at) + Span::hours(1);
    while world.step(settled)? {}
    world.check();
    complain(&mut world);
    Ok(outcome(seed, &drawn, &world))
}

fn outcome(seed: u64, drawn: &Drawn, world: &World) -> Outcome {
    let summary = world.summary(seed);
    Outcome {
        seed,
        options: drawn.text.clone(),
        digest: summary.digest,
        n_inputs: summary.inputs,
        n_faults: world.plant().n_faults(),
        n_crashes: summary.crashes,
        n_jobs: summary.jobs.submitted - summary.jobs.lost,
        violations: summary.violation_list,
    }
}

/// What is drawn from a seed.
struct Drawn {
    setup: Setup,
    end: Moment,
    /// How long after the end everything must be over.
    bound: Span,
    text: String,
}

impl Drawn {
    fn draw(seed: u64, dice: &mut Dice) -> Self {
        let always = seed.is_multiple_of(ALWAYS_EVERY);
        let n_pods = if dice.below(5) == 0 { 2 } else { 1 };
        let most = if always { 2 } else { 15 / n_pods };
        let n_cubes = 2 + dice.index(most);
        let n_jobs = if always { 16 } else { 60 + dice.index(50) };
        let end = Moment::START + Span::hours(24 + dice.below(72));
        let mut happenings = jobs(dice, n_jobs, n_cubes, end);
        orders(dice, n_jobs, n_cubes * n_pods, end, &mut happenings);
        happenings.sort_by_key(|it| it.0);
        let work = happenings.iter().fold(Span::ZERO, |sum, (_, it)| match it {
            Happening::Submit(spec) => {
                let Work::Simulated { duration, .. } = spec.work;
                sum + duration + Span::hours(1)
            }
            Happening::Ask { .. }
            | Happening::Fault { .. }
            | Happening::Clear { .. }
            | Happening::Drain { .. } => sum,
        });
        let mut settings = Settings::simulated();
        settings.level = match dice.below(10) {
            0 => Level::Quarantine,
            1 => Level::Drain,
            _ => Level::Repair,
        };
        settings.means.backfill = dice.below(4) != 0;
        settings.means.preempt = dice.below(4) != 0;
        settings.means.defragment = dice.below(4) != 0;
        let syncs = match dice.below(3) {
            0 => Syncs::AtOnce,
            1 => Syncs::After(Span::nanos(100_000), Span::millis(5)),
            _ => Syncs::After(Span::millis(1), Span::millis(400)),
        };
        let crashes = if always {
            Crashes::Always
        } else {
            let reach = 40 * n_jobs as u64;
            Crashes::At((0..N_CRASHES).map(|_| 1 + dice.below(reach)).collect::<BTreeSet<_>>())
        };
        let dials = dials(dice);
        let text = format!(
            "{n_pods} pods of {n_cubes} cubes, {n_jobs} jobs until {end}, {:?}, {syncs:?}, \
             {dials:?}",
            settings.level
        );
        let setup = Setup {
            plant: pods(n_pods, n_cubes),
            settings,
            seed,
            rates: Rates::NONE,
            dials,
            happenings,
            syncs,
            crashes,
            check_every: 32,
        };
        Self { setup, end, bound: Span::days(3) + work.times(2), text }
    }

    /// A third of the kinds is off; the others come a few times in the run.
    fn rates(&self, world: &World, dice: &mut Dice) -> Rates {
        let days_ppm = self.end.since(Moment::START).as_secs() * 1_000_000 / 86_400;
        FaultKind::ALL.into_iter().fold(Rates::NONE, |rates, kind| {
            let n_wanted = if dice.below(3) == 0 { 0 } else { 1 + dice.below(6) };
            let n_things = world.plant().n_prone(kind) as u64;
            if n_things == 0 || n_wanted == 0 {
                return rates;
            }
            let per_day = n_wanted * 1_000_000_000_000 / (days_ppm * n_things);
            rates.with(kind, Ppm::new(u32::try_from(per_day).unwrap_or(u32::MAX)))
        })
    }
}

fn dials(dice: &mut Dice) -> Dials {
    let mut up_to = |most: u64| {
        let off = dice.below(3) == 0;
        let value = if off { 0 } else { dice.below(most) };
        Ppm::new(u32::try_from(value).expect("shares lie below a million"))
    };
    Dials {
        lose: up_to(30_000),
        echo: up_to(50_000),
        untrained: up_to(300),
        stubborn: up_to(400_000),
        fail: up_to(100_000),
        botch: up_to(300_000),
    }
}

fn jobs(dice: &mut Dice, n_jobs: usize, n_cubes: usize, end: Moment) -> Vec<(Moment, Happening)> {
    let (small, large): (Vec<Shape>, Vec<Shape>) =
        Shape::all().into_iter().partition(|it| it.cubes().is_none());
    let large: Vec<Shape> = large.into_iter().filter(|it| it.n_cubes() <= n_cubes).collect();
    let room = end.since(Moment::START);
    (0..n_jobs)
        .map(|number| {
            // Bursts and lulls: half of the jobs come in the first quarter.
            let share = if dice.below(2) == 0 { 4 } else { 1 };
            let at = Moment::START + dice.span(Span::secs(1), Span::nanos(room.as_nanos() / share));
            let shapes = if dice.below(2) == 0 { &small } else { &large };
            let duration = match dice.below(12) {
                0 => Span::ZERO,
                _ => dice.exponential(Span::hours(2)).min(Span::hours(24)),
            };
            let limit = match dice.below(8) {
                0 => None,
                // Too short: the job ends at its limit.
                1 => Some(Span::nanos(duration.as_nanos() / 2) + Span::secs(1)),
                _ => Some(duration.times(1 + dice.below(3)) + Span::mins(1)),
            };
            let spec = JobSpec {
                name: format!("job-{number}"),
                owner: format!("owner{}", dice.below(4)),
                project: "judge".to_owned(),
                demand: Demand::Shape(shapes[dice.index(shapes.len())].to_string()),
                priority: u8::try_from(dice.below(10)).expect("below 10"),
                preemptible: dice.below(2) == 0,
                limit,
                retries: u32::try_from(dice.below(4)).expect("below 4"),
                work: Work::Simulated {
                    duration,
                    step: Span::millis(1 + dice.below(10_000)),
                    checkpoint_every: Span::mins(1 + dice.below(30)),
                },
            };
            (at, Happening::Submit(spec))
        })
        .collect()
}

/// What people ask for meanwhile: some of it is refused, which is part of the test.
fn orders(
    dice: &mut Dice,
    n_jobs: usize,
    n_cubes: usize,
    end: Moment,
    happenings: &mut Vec<(Moment, Happening)>,
) {
    let room = end.since(Moment::START);
    let moment = |dice: &mut Dice| Moment::START + dice.span(Span::secs(1), room);
    for _ in 0..n_jobs / 3 {
        let orders = [JobOrder::Cancel, JobOrder::Hold, JobOrder::Release, JobOrder::Requeue];
        let order = orders[dice.index(orders.len())];
        let what = Ask::Job { job: JobId::at(dice.index(n_jobs)), order };
        happenings.push((moment(dice), Happening::Ask { by: "operator".to_owned(), what }));
    }
    for _ in 0..dice.index(6) {
        let cube = dice.index(n_cubes);
        let path = match dice.below(4) {
            0 => format!("cube{cube}"),
            1 => format!("cube{cube}/m{:02}", dice.below(16)),
            2 => format!("cube{cube}/chip{}.{}.{}", dice.below(4), dice.below(4), dice.below(4)),
            _ => format!("cube{cube}/x/out/{}", dice.below(16)),
        };
        let at = moment(dice);
        happenings.push((at, Happening::Drain { path: path.clone(), undo: false }));
        let until = at + dice.span(Span::mins(1), Span::hours(12));
        happenings.push((until, Happening::Drain { path, undo: true }));
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
    let drains: Vec<(String, Target)> = (world.core().state().drains.iter())
        .flat_map(|(&target, drains)| drains.iter().map(move |it| (target, it)))
        .filter_map(|(target, drain)| match &drain.by {
            Owner::Person(name) => Some((name.clone(), target)),
            Owner::Case(_) => None,
        })
        .collect();
    for (by, target) in drains {
        world.ask(&by, Ask::Undrain { target });
    }
}

/// What a person on duty does each half hour: lets held jobs go, takes cases that Selvedge may
/// not touch by itself.
fn attend(world: &mut World) {
    let held: Vec<JobId> = (world.core().state().jobs.pairs())
        .filter(|(_, job)| matches!(job.state, JobState::Queued { held: true, .. }))
        .map(|(job, _)| job)
        .collect();
    for job in held {
        world.ask("operator", Ask::Job { job, order: JobOrder::Release });
    }
    let cases: Vec<(CaseId, CaseState, bool)> = (world.core().state().open_cases.values())
        .map(|&case| (case, &world.core().state().cases[case]))
        .map(|(case, it)| (case, it.state, it.taken_by.as_deref() == Some("operator")))
        .filter(|(case, ..)| Severity::Critical <= world.core().state().cases[*case].severity)
        .collect();
    for (case, state, ours) in cases {
        match state {
            CaseState::Observed => world.ask("operator", Ask::TakeRepair { case }),
            CaseState::UnderRepair if ours => world.ask("operator", Ask::FinishRepair { case }),
            CaseState::UnderRepair
            | CaseState::Draining
            | CaseState::Waiting
            | CaseState::Verifying
            | CaseState::Probation { .. }
            | CaseState::Closed => (),
        }
    }
}

/// Names each job that is not over although everything is healed, and what holds it.
fn complain(world: &mut World) {
    let state = world.core().state();
    let open = state.open_cases.len();
    let drained = state.drains.len();
    let late: Vec<(JobId, String)> = (state.jobs.pairs())
        .filter(|(_, job)| !job.state.is_over())
        .map(|(job, known)| {
            let (demand, since) = (&known.spec.demand, known.timeline.last().map(|it| it.0));
            let why = format!(
                "{demand} is {:?}, last moved at {since:?}; {open} cases open, {drained} drains",
                known.state
            );
            (job, why)
        })
        .collect();
    for (job, why) in late {
        world.complain(Violation::NotLive { job, why });
    }
}

#[cfg(test)]
mod tests;
