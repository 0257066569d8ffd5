//! Jobs on grids of boards, from submit to the return of a board, under the judge's rules.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use selvedge_control::note::CaseState;
use selvedge_control::state::JobState;
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Collective, Demand, JobSpec, Load, Work};
use selvedge_model::unit::{Moment, Ppm, Span};
use selvedge_sim::fault::{FaultKind, FaultSpec, Rates};
use selvedge_sim::scenario::{self, JobsFrom, PlantFrom, Scenario};
use selvedge_sim::trace::Scaled;
use selvedge_sim::world::{Happening, World};

const MACHINES: [&str; 3] = [
    "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"6x8\"\n",
    "format = 1\nname = \"v2\"\n[[pod]]\nfamily = \"tpuv2\"\n",
    "format = 1\nname = \"v3\"\n[[pod]]\nfamily = \"tpuv3\"\ngrid = \"16x12\"\nwrap = \"none\"\n",
];

fn scenario(plant: &str) -> Scenario {
    let mut scenario = Scenario::new(1, 7);
    scenario.plant = PlantFrom::Text(plant.to_owned());
    scenario.rates = Rates::NONE;
    scenario
}

fn spec(name: &str, demand: Demand) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        owner: "ada".to_owned(),
        project: "grid".to_owned(),
        demand,
        priority: 3,
        preemptible: false,
        limit: None,
        retries: 0,
        work: Work::Simulated {
            duration: Span::hours(6),
            step: Span::secs(1),
            checkpoint_every: Span::mins(10),
        },
    }
}

fn load(chips: u32) -> Demand {
    Demand::Load(Box::new(Load {
        chips,
        memory_gib: 0,
        communication: Ppm::new(300_000),
        collective: Collective::AllReduce,
        boards: None,
    }))
}

/// A world in which these two jobs come at once.
fn world(plant: &str, demands: [Demand; 2]) -> (World, [JobId; 2]) {
    let mut scenario = scenario(plant);
    for (name, demand) in ["one", "other"].into_iter().zip(demands) {
        scenario.events.push((Moment::START, Happening::Submit(spec(name, demand))));
    }
    (scenario::begin(&scenario).unwrap(), [0, 1].map(JobId::new))
}

fn run_until(world: &mut World, is_so: impl Fn(&World) -> bool) {
    let last = world.now() + Span::days(3);
    while !is_so(world) {
        let state = world.core().state();
        let jobs: Vec<_> = state.jobs.iter().map(|it| (&it.state, it.attempt)).collect();
        let cases: Vec<_> =
            state.cases.iter().map(|it| (it.target, it.symptom, it.state)).collect();
        let what = format!("within three days: {jobs:?} {cases:?}");
        assert!(world.step(last).unwrap(), "{what}");
    }
}

fn runs(world: &World, job: JobId) -> bool {
    let known = world.core().state().jobs.get(job);
    known.is_some_and(|it| matches!(it.state, JobState::Running { .. }))
}

fn parts(world: &World, job: JobId) -> Vec<PartId> {
    let place = world.core().state().jobs[job].place.as_ref().unwrap();
    place.holds.iter().map(|it| it.part).collect()
}

/// Method: two jobs side by side; a board of one dies.  It leaves, comes back elsewhere and ends;
/// the other, whose cables to the dead board are dark too, never notices.
#[test]
fn a_board_dies_and_its_job_alone_is_placed_anew_and_goes_on() {
    for plant in MACHINES {
        let demands = [load(60), Demand::Shape("3x4".to_owned())];
        let (mut world, [one, other]) = world(plant, demands);
        run_until(&mut world, |it| runs(it, one) && runs(it, other));
        let before = parts(&world, one);
        assert_eq!((before.len(), parts(&world, other).len()), (15, 12));
        // A checkpoint is there to go on from.
        let soon = world.now() + Span::hours(1);
        run_until(&mut world, |it| soon < it.now() || it.next_at().is_none_or(|at| soon < at));
        let dead = before[7];
        let machine = world.core().fabric().node_at(dead, 0);
        let fault = FaultSpec { kind: FaultKind::MachineDown, target: Some(Target::Node(machine)) };
        world.plant_mut().inject(soon, fault).unwrap();
        run_until(&mut world, |it| 1 < it.core().state().jobs[one].attempt && runs(it, one));
        assert!(!parts(&world, one).contains(&dead));
        assert!(Span::mins(50).div(Span::secs(1)) <= world.core().state().jobs[one].kept);
        run_until(&mut world, |it| {
            let state = it.core().state();
            [one, other].iter().all(|job| state.jobs[*job].state == JobState::Finished)
                && state.cases.iter().all(|case| case.state == CaseState::Closed)
        });
        let state = world.core().state();
        assert!(state.jobs[one].n_interrupted == 1 && state.jobs[other].attempt == 1);
        let is_machine = |it: &&selvedge_control::state::Case| it.target == Target::Node(machine);
        assert_eq!(state.cases.iter().filter(is_machine).count(), 1);
        assert_eq!(state.parts[dead].out, 0, "it has been requalified");
        world.check();
        assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
    }
}

/// Method: a cable between two boards of one job fails, then one that leads from its edge to
/// another job's board: the first moves its job, the second moves nobody.
#[test]
fn a_cable_concerns_the_job_that_holds_both_of_its_ends() {
    let box_of_16 = || Demand::Shape("4x4".to_owned());
    let (mut world, [one, other]) = world(MACHINES[0], [box_of_16(), box_of_16()]);
    run_until(&mut world, |it| runs(it, one) && runs(it, other));
    let (ours, theirs) = (parts(&world, one), parts(&world, other));
    let cable = |world: &World, a: &[PartId], b: &[PartId]| {
        let fabric = world.core().fabric();
        let ends = fabric.cables().iter().find(|it| {
            let [from, to] = [it.a, it.b].map(|port| fabric.part_of_port(port));
            a.contains(&from) && b.contains(&to) || b.contains(&from) && a.contains(&to)
        });
        fabric.link_from(ends.unwrap().a).unwrap()
    };
    let between = cable(&world, &ours, &theirs);
    let inside = cable(&world, &ours, &ours);
    let break_it = |world: &mut World, link| {
        let now = world.now();
        let kind = FaultKind::LinkDown;
        world
            .plant_mut()
            .inject(now, FaultSpec { kind, target: Some(Target::Link(link)) })
            .unwrap();
        let soon = now + Span::mins(20);
        run_until(world, |it| soon < it.now() || it.next_at().is_none_or(|at| soon < at));
    };
    break_it(&mut world, between);
    let attempts = |world: &World| [one, other].map(|job| world.core().state().jobs[job].attempt);
    assert_eq!(attempts(&world), [1, 1], "nobody held both ends");
    assert_eq!(world.core().state().cases.len(), 1, "it is repaired all the same");
    break_it(&mut world, inside);
    run_until(&mut world, |it| runs(it, one));
    // It may have been started once more on the same boards before their cable was missed.
    let [of_one, of_other] = attempts(&world);
    assert!(2 <= of_one && of_other == 1, "{of_one} {of_other}");
    world.check();
    assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
}

#[test]
fn a_month_of_published_faults_breaks_no_rule_on_any_grid() {
    for plant in MACHINES {
        let mut scenario = scenario(plant);
        scenario.rates = Rates::published();
        scenario.check_every = 200;
        scenario.end = Some(Moment::START + Span::days(30));
        scenario.jobs =
            JobsFrom::Mix { n_jobs: 300, load: Ppm::new(900_000), scaled: Scaled::Durations };
        let summary = scenario::run(&scenario, &mut |_| ()).unwrap();
        assert_eq!(summary.violations, 0, "{:?}", summary.violation_list);
        assert!(200 < summary.jobs.finished, "{:?}", summary.jobs);
        assert!(0 < summary.faults.iter().map(|it| it.n).sum::<u64>());
    }
}
