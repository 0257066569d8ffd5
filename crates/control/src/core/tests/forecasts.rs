//! When a job that came now would start: now, then, once this has happened, or never.

use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::job::Demand;
use selvedge_model::unit::{Moment, Span};

use super::world::{World, pods, spec};
use crate::schedule::explain::{Forecast, Never, Step};
use crate::settings::Settings;

fn asked(world: &World, shape: &str) -> Forecast {
    let mut spec = spec("asked", Demand::Shape(shape.to_owned()));
    spec.limit = Some(Span::hours(1));
    world.core.dry_run(&spec).unwrap()
}

#[test]
fn a_dry_run_says_now_or_when_or_after_what_or_never() {
    let mut world = World::new(&pods(&[3]), Settings::simulated());
    assert!(matches!(asked(&world, "4x4x12"), Forecast::Now { .. }));
    let too_large = Forecast::Never { why: Never::TooLarge { n_parts: 3 } };
    assert_eq!(asked(&world, "4x4x16"), too_large);
    // No pod of any plant holds this one: that is an answer too.
    assert_eq!(asked(&world, "16x16x20"), too_large);

    // One job with a limit: there is a time, however the rest stands.
    world.play("submit a 4x4x4 for=1h limit=2h firm\n run 1m");
    let Forecast::At { at, after, .. } = asked(&world, "4x4x12") else {
        panic!("it ends by its limit")
    };
    assert!(Moment::START + Span::hours(2) <= at, "{at}");
    assert_eq!(after, [Step::End { job: JobId::new(0) }]);

    // One without, one behind it that would let nobody pass, and a cube that somebody drains.
    world.play("submit b 4x4x4 for=9h firm\n run 1m\n drain ann cube2\n run 1m");
    let cube = Target::Part(world.core.fabric().part_named("cube2").unwrap());
    let b = JobId::new(1);
    let steps = vec![Step::End { job: b }, Step::Return { target: cube }];
    assert_eq!(asked(&world, "4x4x12"), Forecast::Unknown { steps });
    let steps = match asked(&world, "4x4x8") {
        Forecast::Unknown { steps } => steps,
        other => panic!("{other:?}"),
    };
    assert_eq!(steps.len(), 1, "either is enough: {steps:?}");

    // What it says is so: one of both is not enough, both are.
    world.play("cancel b\n run 1m");
    let steps = vec![Step::Return { target: cube }];
    assert_eq!(asked(&world, "4x4x12"), Forecast::Unknown { steps });
    world.play("undrain ann cube2\n run 1m");
    assert!(matches!(asked(&world, "4x4x12"), Forecast::At { .. }));
    world.play("run 2h");
    assert!(matches!(asked(&world, "4x4x12"), Forecast::Now { .. }));
}

/// Whoever holds a job releases it, or does not: no moment is named, however much room there is.
#[test]
fn nobody_knows_when_a_held_job_starts() {
    let mut world = World::new(&pods(&[1]), Settings::simulated());
    world.play("submit a 4x4x4 for=1h limit=2h firm\n submit b 4x4x4 for=1h limit=2h\n hold b");
    let b = JobId::new(1);
    let release = vec![Step::Release { job: b }];
    let forecast = |world: &World| world.core.explain(b).unwrap().forecast.unwrap();
    assert_eq!(forecast(&world), Forecast::Unknown { steps: release.clone() });
    world.play("cancel a\n run 1m");
    assert_eq!(forecast(&world), Forecast::Unknown { steps: release.clone() });
    world.play("drain ann cube0\n run 1m");
    let cube = Target::Part(world.core.fabric().part_named("cube0").unwrap());
    let steps = vec![release[0], Step::Return { target: cube }];
    assert_eq!(forecast(&world), Forecast::Unknown { steps });
    world.play("undrain ann cube0\n release b\n run 1s");
    match forecast(&world) {
        // It is tested before it is used again.
        Forecast::At { after, preempts: false, .. } => {
            assert_eq!(after, [Step::Return { target: cube }]);
        }
        other => panic!("{other:?}"),
    }
    world.play("run 40m");
    assert!(world.core.state().jobs[b].place.is_some());
}

/// Goal: a job that can never start itself, because the plant has shrunk, is named to those who
/// stand behind it.
#[test]
fn who_cannot_start_and_lets_nobody_pass_is_named() {
    let mut settings = Settings::simulated();
    settings.means.backfill = false;
    let mut world = World::new(&pods(&[3]), settings);
    world.play("submit a 4x4x8 for=1h limit=2h\n run 1m\n submit whole 4x4x12 for=1h limit=2h");
    let shrunk = "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 3\n\
                  deployed = \"0-1\"\n";
    world.apply(shrunk, 1);
    let steps = vec![Step::Hold { job: JobId::new(1) }];
    assert_eq!(asked(&world, "4x4x4"), Forecast::Unknown { steps });
    assert_eq!(
        world.core.explain(JobId::new(1)).unwrap().forecast,
        Some(Forecast::Never { why: Never::NoRoom })
    );
}
