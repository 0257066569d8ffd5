//! Jobs on grids of boards, from submit to the return of a board, under the judge's rules.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use selvedge_control::input::Ask;
use selvedge_control::note::CaseState;
use selvedge_control::state::JobState;
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Collective, Demand, JobSpec, Load, Work};
use selvedge_model::unit::{Moment, Ppm, Span};
use selvedge_sim::fault::{FaultKind, FaultSpec, Rates};
use selvedge_sim::scenario::{self, JobsFrom, PlantFrom, Scenario};
use selvedge_sim::trace::Scaled;
use selvedge_sim::world::World;

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

fn submit(world: &mut World, name: &str, demand: Demand) -> JobId {
    let before = world.core().state().jobs.len();
    world.ask("ada", Ask::Submit { key: None, spec: spec(name, demand) });
    assert_eq!(world.core().state().jobs.len(), before + 1, "{name} is accepted");
    JobId::new(before as u32)
}

fn run_until(world: &mut World, is_so: impl Fn(&World) -> bool) {
    let last = world.now() + Span::days(3);
    while !is_so(world) {
        assert!(world.step(last).unwrap(), "it comes about within three days");
    }
}

fn runs(world: &World, job: JobId) -> bool {
    matches!(world.core().state().jobs[job].state, JobState::Running { .. })
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
        let mut world = scenario::begin(&scenario(plant)).unwrap();
        let one = submit(&mut world, "one", load(60));
        let other = submit(&mut world, "other", Demand::Shape("3x4".to_owned()));
        run_until(&mut world, |it| runs(it, one) && runs(it, other));
        let before = parts(&world, one);
        assert_eq!((before.len(), parts(&world, other).len()), (15, 12));
        // A checkpoint is there to go on from.
        let soon = world.now() + Span::hours(1);
        run_until(&mut world, |it| soon < it.now() || it.next_at().is_none_or(|at| soon < at));
        let dead = before[7];
        let machine = world.core().fabric().node_at(dead, 0);
        let fault = FaultSpec { kind: FaultKind::MachineDown, target: Some(Target::Node(machine)) };
        let now = world.now();
        world.plant_mut().inject(now, fault).unwrap();
        run_until(&mut world, |it| it.core().state().jobs[one].attempt == 2 && runs(it, one));
        assert!(!parts(&world, one).contains(&dead));
        run_until(&mut world, |it| {
            let state = it.core().state();
            [one, other].iter().all(|job| state.jobs[*job].state == JobState::Finished)
                && state.cases.iter().all(|case| case.state == CaseState::Closed)
        });
        let state = world.core().state();
        assert!(state.jobs[one].n_interrupted == 1 && state.jobs[other].attempt == 1);
        assert_eq!((state.cases.len(), state.parts[dead].out), (1, 0), "it has been requalified");
        world.check();
        assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
    }
}

/// Method: a cable between two boards of one job fails, then one that leads from its edge to
/// another job's board: the first moves its job, the second moves nobody.
#[test]
fn a_cable_concerns_the_job_that_holds_both_of_its_ends() {
    let mut world = scenario::begin(&scenario(MACHINES[0])).unwrap();
    let one = submit(&mut world, "one", Demand::Shape("4x4".to_owned()));
    let other = submit(&mut world, "other", Demand::Shape("4x4".to_owned()));
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
    assert_eq!(attempts(&world), [2, 1]);
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
