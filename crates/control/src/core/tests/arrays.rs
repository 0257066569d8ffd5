//! Long arrays of jobs: whoever stands behind them is seen, and told what is so.

use selvedge_model::id::JobId;
use selvedge_model::job::Demand;
use selvedge_model::unit::Span;

use super::world::{World, pods, spec};
use crate::input::{Ask, Input, JobOrder};
use crate::schedule::explain::{Forecast, Step};
use crate::settings::Settings;

/// Submits `n` jobs, each for at most `hours`; the first and the last of them.
fn submit(world: &mut World, n: usize, shape: &str, hours: u64) -> (JobId, JobId) {
    let first = world.core.state().jobs.len();
    let submit = |idx: usize| {
        let mut spec = spec(&format!("{shape}-{idx}"), Demand::Shape(shape.to_owned()));
        spec.limit = Some(Span::hours(hours));
        Input::Ask { by: "ann".to_owned(), what: Ask::Submit { key: None, spec } }
    };
    for idx in 1..n {
        world.core.handle(world.now, submit(idx)).unwrap();
    }
    // What follows from all of them is carried out with the last.
    world.tell(submit(n)).unwrap();
    let id = |idx: usize| JobId::new(u32::try_from(idx).unwrap());
    (id(first), id(first + n - 1))
}

fn state(world: &World, job: JobId) -> &'static str {
    world.core.state().jobs[job].state.word()
}

#[test]
fn an_array_that_waits_for_a_repair_hides_nobody_behind_it() {
    let mut world = World::new(&pods(&[2]), Settings::simulated());
    world.play("drain ann cube1\n run 1m");
    let (first, last) = submit(&mut world, 3_000, "4x4x8", 1);
    let asked = spec("asked", Demand::Shape("4x4x4".to_owned()));
    assert!(matches!(world.core.dry_run(&asked).unwrap(), Forecast::Now { .. }));
    let (behind, _) = submit(&mut world, 1, "4x4x4", 1);
    assert_eq!(state(&world, behind), "starting");
    // The array itself starts in its order once it can.
    world.play("run 90m\n undrain ann cube1\n run 1h");
    assert_eq!(state(&world, first), "running");
    assert_eq!(state(&world, last), "queued");
    assert_eq!(state(&world, JobId::new(1)), "queued");
}

#[test]
fn an_array_at_the_front_lets_pass_who_does_not_delay_it() {
    let mut world = World::new(&pods(&[2]), Settings::simulated());
    let (runs, _) = submit(&mut world, 1, "4x4x4", 9);
    submit(&mut world, 3_000, "4x4x8", 9);
    // As long as the first runs, and longer: this one would delay the array.
    let (long, _) = submit(&mut world, 1, "4x4x4", 10);
    // Of the same that is too long there are more than a pass tries.
    submit(&mut world, 600, "4x4x4", 11);
    let (short, _) = submit(&mut world, 1, "4x4x4", 2);
    assert_eq!(state(&world, runs), "starting");
    assert_eq!(state(&world, long), "queued");
    assert_eq!(state(&world, short), "starting");
}

#[test]
fn the_moment_told_counts_everybody_before_it() {
    let mut world = World::new(&pods(&[1]), Settings::simulated());
    let (_, last) = submit(&mut world, 1_300, "4x4x4", 2);
    let settings = Settings::simulated();
    let each = Span::hours(2) + settings.setup_max + settings.notice + settings.grace;
    let explained = world.core.explain(last).unwrap();
    let Some(Forecast::At { at, .. }) = explained.forecast else { panic!("{explained:?}") };
    // The first runs already, and is ready sooner than it might be.
    let all = each.times(1_299);
    let waited = at.since(world.now);
    assert!(waited <= all && all.minus(settings.setup_max) <= waited, "{waited} of {all}");
    assert_eq!(explained.n_ahead, 1_298);
    let steps = explained.steps.unwrap().unwrap();
    assert_eq!(steps.len(), 1_299, "one ends, the others are held");
}

/// What is freed for the head may be taken by one who stands far behind it.
#[test]
fn the_steps_of_a_head_reckon_with_who_stands_far_behind() {
    let mut world = World::new(&pods(&[2]), Settings::simulated());
    submit(&mut world, 2, "4x4x4", 900);
    let (head, _) = submit(&mut world, 1, "4x4x8", 1);
    submit(&mut world, 2_100, "4x4x8", 1);
    let (tail, _) = submit(&mut world, 1, "4x4x4", 400);
    let steps = world.core.explain(head).unwrap().steps.unwrap().unwrap();
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert!(steps.contains(&Step::Hold { job: tail }), "{steps:?}");
    for step in steps {
        let (job, order) = match step {
            Step::Hold { job } => (job, JobOrder::Hold),
            Step::End { job } => (job, JobOrder::Cancel),
            other => panic!("{other:?}"),
        };
        let what = Ask::Job { job, order };
        world.tell(Input::Ask { by: "ann".to_owned(), what }).unwrap();
        world.run(Span::mins(2));
    }
    assert_eq!(state(&world, head), "running");
}
