//! What `job explain` says is done in a copy of the world, and the job starts; with any one step
//! left out, it does not.

use selvedge_control::input::JobOrder;
use selvedge_control::note::{CaseState, Owner};
use selvedge_control::schedule::explain::{Forecast, Step};
use selvedge_control::settings::Level;
use selvedge_control::state::{Event, JobState};
use selvedge_family::torus::shape::Shape;
use selvedge_model::fault::Target;
use selvedge_model::job::{Demand, Work};

use super::*;
use crate::scenario::pods;

/// Pods with more jobs than fit, drained and broken parts, and nothing that ends by itself.
fn crowded(seed: u64) -> World {
    let mut dice = Dice::new(seed, "crowded");
    let (n_pods, n_cubes) = (1 + dice.index(2), 3 + dice.index(6));
    let shapes = Shape::all().into_iter().filter(|it| it.n_cubes() <= n_cubes);
    let (small, large): (Vec<_>, Vec<_>) = shapes.partition(|it| it.cubes().is_none());
    let mut happenings = Vec::new();
    for number in 0..12 + dice.index(24) {
        let shapes = if dice.below(3) == 0 { &small } else { &large };
        // So far apart that the time in which the steps are done changes no promise.
        let limit = Span::hours(100 + 50 * ((7 * number as u64) % 40));
        let spec = JobSpec {
            name: format!("job-{number}"),
            owner: "ann".to_owned(),
            project: "test".to_owned(),
            demand: Demand::Shape(shapes[dice.index(shapes.len())].to_string()),
            priority: u8::try_from(dice.below(4)).unwrap(),
            preemptible: dice.below(3) == 0,
            limit: (dice.below(2) == 0).then_some(limit),
            retries: 0,
            redundancy: 1,
            work: Work::Simulated {
                duration: Span::hours(5000),
                step: Span::secs(1),
                checkpoint_every: Span::mins(10),
            },
        };
        let at = Moment::START + dice.span(Span::secs(1), Span::hours(2));
        happenings.push((at, Happening::Submit(spec)));
    }
    for _ in 0..dice.index(4) {
        let cube = dice.index(n_cubes * n_pods);
        let path = match dice.below(2) {
            0 => format!("cube{cube}"),
            _ => format!("cube{cube}/m{:02}", dice.below(16)),
        };
        let at = Moment::START + dice.span(Span::secs(1), Span::hours(2));
        happenings.push((at, Happening::Drain { path, undo: false }));
    }
    for _ in 0..dice.index(4) {
        let kinds = [FaultKind::MachineDown, FaultKind::ChipFailed, FaultKind::SwitchDown];
        let kind = kinds[dice.index(kinds.len())];
        let at = Moment::START + dice.span(Span::secs(1), Span::hours(2));
        happenings.push((at, Happening::Fault { kind, path: None }));
    }
    happenings.sort_by_key(|it| it.0);
    let mut settings = Settings::simulated();
    // Nobody repairs by himself: what is out stays out until somebody does what was said.
    settings.level = Level::Drain;
    settings.means.defragment = false;
    settings.means.preempt = dice.below(2) == 0;
    settings.means.backfill = dice.below(4) != 0;
    let setup = Setup {
        plant: pods(n_pods, n_cubes),
        settings,
        seed,
        rates: Rates::NONE,
        dials: Dials { untrained: selvedge_model::unit::Ppm::new(0), ..Dials::QUIET },
        happenings,
        syncs: Syncs::AtOnce,
        crashes: Crashes::Never,
        planning: Planning::AtOnce,
        check_every: 0,
    };
    let mut world = World::new(setup).unwrap();
    go_on(&mut world, Span::hours(8), |_| false);
    world
}

/// Lets time pass, until something is so.
fn go_on(world: &mut World, time: Span, until: impl Fn(&World) -> bool) -> bool {
    let end = world.now() + time;
    while !until(world) {
        if !world.step(end).unwrap() {
            world.now = end;
            return until(world);
        }
    }
    true
}

fn has_hardware(job: JobId) -> impl Fn(&World) -> bool {
    move |world| world.core().state().jobs[job].place.is_some()
}

/// Does what was said; whether the job has got hardware `wait` after the last step.
fn do_steps(world: &mut World, job: JobId, steps: &[Step], wait: Span) -> bool {
    for step in steps {
        match *step {
            Step::Release { job } => order(world, job, JobOrder::Release),
            Step::Hold { job } => order(world, job, JobOrder::Hold),
            Step::End { job } => {
                order(world, job, JobOrder::Cancel);
                let is_over = |world: &World| world.core().state().jobs[job].state.is_over();
                assert!(go_on(world, Span::mins(10), is_over), "{job} does not end");
            }
            Step::Wait { until } => {
                let left = until.since(world.now());
                go_on(world, left, |_| false);
            }
            Step::Return { target } => bring_back(world, target),
        }
    }
    go_on(world, wait, has_hardware(job))
}

fn order(world: &mut World, job: JobId, order: JobOrder) {
    // Refused where a job has come to its end meanwhile; then nothing is left to do.
    world.ask("ann", Ask::Job { job, order });
}

/// Brings back what is out: people take their drains back, and repair what is at fault.
fn bring_back(world: &mut World, target: Target) {
    let now = world.now();
    // Whoever repairs a link also repairs the chip that keeps it dark; its case stays open.
    world.plant_mut().clear_all(now);
    let drains = world.core().state().drains.get(&target).cloned().unwrap_or_default();
    for drain in drains {
        match drain.by {
            Owner::Person(name) => {
                world.ask(&name, Ask::Undrain { target });
            }
            Owner::Case(case) => {
                world.ask("ann", Ask::TakeRepair { case });
                go_on(world, Span::mins(5), |world| {
                    world.core().state().cases[case].state == CaseState::UnderRepair
                });
                world.ask("ann", Ask::FinishRepair { case });
            }
        }
    }
    let is_back = |world: &World| !world.core().state().drains.contains_key(&target);
    assert!(go_on(world, Span::hours(1), is_back), "{target:?} does not come back");
}

fn n_preempted(world: &World) -> u32 {
    world.core().state().jobs.iter().map(|it| it.n_preempted).sum()
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn doing_what_explain_says_starts_the_job_and_leaving_a_step_out_does_not() {
    let (mut n_jobs, mut n_left_out, mut n_by_preemption) = (0, 0, 0);
    let mut kinds = BTreeMap::<&str, u32>::new();
    for seed in 0..40 {
        let world = crowded(seed);
        let state = world.core().state();
        let waiting: Vec<JobId> = (state.jobs.pairs())
            .filter(|(_, it)| matches!(it.state, JobState::Queued { .. }) && it.place.is_none())
            .map(|it| it.0)
            .collect();
        for job in waiting {
            let explanation = world.core().explain(job).unwrap();
            let Some(steps) = explanation.steps.unwrap() else { continue };
            n_jobs += 1;
            for step in &steps {
                let word = match step {
                    Step::Release { .. } => "release",
                    Step::Wait { .. } => "wait",
                    Step::Hold { .. } => "hold",
                    Step::Return { .. } => "return",
                    Step::End { .. } => "end",
                };
                *kinds.entry(word).or_default() += 1;
            }
            let mut fork = world.clone();
            let starts = do_steps(&mut fork, job, &steps, Span::mins(30));
            assert!(starts, "seed {seed}: {job} does not start after {steps:?}");
            for left_out in 0..steps.len() {
                let mut fewer = steps.clone();
                fewer.remove(left_out);
                let mut fork = world.clone();
                n_left_out += 1;
                let starts = do_steps(&mut fork, job, &fewer, Span::hours(2));
                if starts && n_preempted(&world) < n_preempted(&fork) {
                    // Whoever stops for another frees more than was named.
                    n_by_preemption += 1;
                    continue;
                }
                assert!(!starts, "seed {seed}: {job} starts after {fewer:?} of {steps:?}");
            }
        }
    }
    println!(
        "{n_jobs} jobs explained, {n_left_out} steps left out, {n_by_preemption} of them made \
         needless by a preemption; {kinds:?}"
    );
    assert!(50 * n_by_preemption <= n_left_out, "{n_by_preemption} of {n_left_out}");
    assert!(100 <= n_jobs && 300 <= n_left_out, "{n_jobs} {n_left_out}");
    assert!(["hold", "return", "end"].iter().all(|it| 20 <= kinds[it]), "{kinds:?}");
}

/// Pods whose jobs all run to their limits, with parts that are on their way back; in strict order
/// only whole cubes, by no choice of which anybody else comes earlier or later.
fn limited(seed: u64, strict: bool) -> World {
    let mut dice = Dice::new(seed, "limited");
    let n_cubes = 2 + dice.index(5);
    let shapes = Shape::all().into_iter().filter(|it| it.n_cubes() <= n_cubes);
    let (small, large): (Vec<_>, Vec<_>) = shapes.partition(|it| it.cubes().is_none());
    let mut happenings = Vec::new();
    for number in 0..10 + dice.index(20) {
        let shapes = if !strict && dice.below(3) == 0 { &small } else { &large };
        let spec = JobSpec {
            name: format!("job-{number}"),
            owner: "ann".to_owned(),
            project: "test".to_owned(),
            demand: Demand::Shape(shapes[dice.index(shapes.len())].to_string()),
            priority: u8::try_from(dice.below(3)).unwrap(),
            preemptible: false,
            limit: Some(Span::mins(20 + dice.below(200))),
            retries: 0,
            redundancy: 1,
            work: Work::Simulated {
                duration: Span::hours(5000),
                step: Span::secs(1),
                checkpoint_every: Span::mins(10),
            },
        };
        let at = Moment::START + dice.span(Span::secs(1), Span::hours(1));
        happenings.push((at, Happening::Submit(spec)));
    }
    for _ in 0..1 + dice.index(3) {
        let kinds = [FaultKind::MachineDown, FaultKind::ChipFailed, FaultKind::LinkDown];
        let kind = kinds[dice.index(kinds.len())];
        let at = Moment::START + dice.span(Span::secs(1), Span::hours(1));
        happenings.push((at, Happening::Fault { kind, path: None }));
    }
    happenings.sort_by_key(|it| it.0);
    let mut settings = Settings::simulated();
    settings.means.defragment = false;
    settings.means.backfill = !strict;
    // Long enough for jobs to wait for it.
    settings.probation = Span::mins(10 + dice.below(300));
    let setup = Setup {
        plant: pods(1, n_cubes),
        settings,
        seed,
        rates: Rates::NONE,
        dials: Dials { untrained: selvedge_model::unit::Ppm::new(0), ..Dials::QUIET },
        happenings,
        syncs: Syncs::AtOnce,
        crashes: Crashes::Never,
        planning: Planning::AtOnce,
        check_every: 0,
    };
    let mut world = World::new(setup).unwrap();
    go_on(&mut world, Span::mins(70 + dice.below(60)), |_| false);
    world
}

/// Goal: what is forecast comes true if nobody comes and nothing fails.  In strict order it always
/// does; where jobs pass others only the head is promised anything, and the others mostly come when
/// it was said, as somebody who ends early lets others in earlier than was thought.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_job_that_is_left_alone_starts_when_the_forecast_says() {
    let (mut n_by_return, mut early) = (0, Span::ZERO);
    let (mut n_jobs, mut n_late) = ([0u64; 2], [0u64; 2]);
    for seed in 0..60 {
        let strict = seed % 2 == 0;
        let world = limited(seed, strict);
        let state = world.core().state();
        let waiting = (state.jobs.pairs())
            .filter(|(_, it)| matches!(it.state, JobState::Queued { .. }) && it.place.is_none());
        let returns: Vec<Moment> = (state.cases.iter())
            .filter_map(|it| match it.state {
                CaseState::Probation { until } => Some(until),
                _ => None,
            })
            .collect();
        let forecasts: Vec<(JobId, Moment)> = waiting
            .filter_map(|(job, _)| match world.core().explain(job).unwrap().forecast {
                Some(Forecast::At { at, .. }) => Some((job, at)),
                _ => None,
            })
            .collect();
        let mut left_alone = world.clone();
        let last = forecasts.iter().map(|it| it.1).max().unwrap_or(world.now());
        go_on(&mut left_alone, last.since(world.now()) + Span::hours(200), |world| {
            let jobs = &world.core().state().jobs;
            forecasts.iter().all(|it| jobs[it.0].attempt != state.jobs[it.0].attempt)
        });
        for (job, at) in forecasts {
            n_jobs[usize::from(strict)] += 1;
            n_by_return += u32::from(returns.contains(&at));
            let timeline = &left_alone.core().state().jobs[job].timeline;
            let placed = timeline.iter().filter(|it| it.1 == Event::Placed).map(|it| it.0);
            let placed = placed.filter(|it| world.now() <= *it).min().unwrap();
            let is_late = at < placed;
            n_late[usize::from(strict)] += u64::from(is_late);
            early += at.since(placed);
            let is_head = world.core().head().is_some_and(|it| it.job == job);
            assert!(
                !is_late || !strict && !is_head,
                "seed {seed}: at {} it was said that {job} starts by {at}; it did at {placed}",
                world.now()
            );
        }
    }
    let n = n_jobs[0] + n_jobs[1];
    println!("{n} forecasts, {n_by_return} of them by what comes back by itself");
    println!("{} of {} late with backfill; {} s early", n_late[0], n_jobs[0], early.as_secs() / n);
    assert!(100 <= n && 5 <= n_by_return, "{n} {n_by_return}");
    assert!(4 * n_late[0] <= n_jobs[0], "{} of {}", n_late[0], n_jobs[0]);
}
