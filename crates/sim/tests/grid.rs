//! Jobs on grids of boards, from submit to the return of a board, under the judge's rules.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use selvedge_control::capacity::Capacity;
use selvedge_control::input::{Ask, JobOrder};
use selvedge_control::note::CaseState;
use selvedge_control::settings::Level;
use selvedge_control::state::JobState;
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId, PoolId};
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
        redundancy: 1,
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

/// A scenario in which something is asked every minute of the first hours, so that time passes.
fn ticking(plant: &str) -> Scenario {
    let mut scenario = scenario(plant);
    for nth in 1..300 {
        let what = Ask::SetLevel { level: Level::Repair };
        let event = Happening::Ask { by: "clock".to_owned(), what };
        scenario.events.push((Moment::START + Span::mins(nth), event));
    }
    scenario
}

fn submit_first(scenario: &mut Scenario, spec: JobSpec) {
    submit_after(scenario, Span::ZERO, spec);
}

fn submit_after(scenario: &mut Scenario, span: Span, spec: JobSpec) {
    let at = Moment::START + span;
    let idx = scenario.events.partition_point(|it| it.0 <= at);
    scenario.events.insert(idx, (at, Happening::Submit(spec)));
}

fn wait_for(world: &mut World, span: Span) {
    let soon = world.now() + span;
    while world.next_at().is_some_and(|at| at <= soon) {
        world.step(soon).unwrap();
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

/// A job that may be moved, with or without a limit.
fn movable(name: &str, demand: Demand) -> JobSpec {
    JobSpec { preemptible: true, ..spec(name, demand) }
}

/// The boards that a job of this number holds.
fn names(world: &World, job: JobId) -> Vec<String> {
    let name = |it: PartId| world.core().fabric().part(it).name.to_string();
    parts(world, job).into_iter().map(name).collect()
}

/// Method: three boxes of 4x2 fill a machine of 4x6 and the outer ones end, so that eight boards
/// are free on each side of the third.  A box of 4x4 fits by count and not by shape, until the job
/// between moves aside; it goes on from its checkpoint.
#[test]
fn a_job_moves_aside_where_a_box_fits_by_count_and_not_by_shape() {
    let plants = [
        "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"4x6\"\n",
        "format = 1\nname = \"v2\"\n[[pod]]\nfamily = \"tpuv2\"\ngrid = \"12x8\"\n\
         wrap = \"none\"\n",
    ];
    for plant in plants {
        let mut scenario = ticking(plant);
        let by_two = || Demand::Shape("4x2".to_owned());
        for name in ["left", "middle", "right"] {
            submit_first(&mut scenario, movable(name, by_two()));
        }
        let wide = spec("wide", Demand::Shape("4x4".to_owned()));
        submit_after(&mut scenario, Span::mins(80), wide);
        let mut world = scenario::begin(&scenario).unwrap();
        let wide = JobId::new(3);
        let jobs = [0, 1, 2].map(JobId::new);
        run_until(&mut world, |it| jobs.iter().all(|job| runs(it, *job)));
        let column = |world: &World, job: JobId| {
            let site = world.core().layout().sites[PoolId::new(0)].as_ref().unwrap();
            let cells = parts(world, job).into_iter().filter_map(|it| site.cell_of(it));
            cells.map(|it| site.ground().grid().at(it)[0]).min().unwrap()
        };
        let middle = jobs.into_iter().find(|it| column(&world, *it) == 2).unwrap();
        let before = names(&world, middle);
        wait_for(&mut world, Span::hours(1));
        for job in jobs.into_iter().filter(|it| *it != middle) {
            world.ask("ada", Ask::Job { job, order: JobOrder::Cancel }).unwrap();
        }
        run_until(&mut world, |it| runs(it, wide) && runs(it, middle));
        let state = world.core().state();
        assert_eq!((state.jobs[wide].attempt, state.jobs[middle].attempt), (1, 2), "{plant}");
        assert_ne!(names(&world, middle), before);
        assert!(Span::mins(50).div(Span::secs(1)) <= state.jobs[middle].kept, "it goes on");
        // Long before the six hours of the job that stood there are over.
        assert!(world.now() < Moment::START + Span::hours(2), "{:?}", world.now());
        run_until(&mut world, |it| {
            [wide, middle]
                .iter()
                .all(|job| it.core().state().jobs[*job].state == JobState::Finished)
        });
        world.check();
        assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
    }
}

/// Method: as above, but the job between may not be preempted, or has ten minutes left by its
/// limit, which is less than a move takes.
#[test]
fn nobody_moves_who_may_not_or_who_is_gone_sooner() {
    let plant = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"1x6\"\n";
    for (preemptible, limit) in [(false, None), (true, Some(Span::mins(90)))] {
        let mut scenario = ticking(plant);
        for name in ["left", "middle", "right"] {
            let demand = Demand::Shape("1x2".to_owned());
            let spec = JobSpec { preemptible, limit, ..spec(name, demand) };
            submit_first(&mut scenario, spec);
        }
        let mut world = scenario::begin(&scenario).unwrap();
        let jobs = [0, 1, 2].map(JobId::new);
        run_until(&mut world, |it| jobs.iter().all(|job| runs(it, *job)));
        let middle =
            jobs.into_iter().find(|it| names(&world, *it).contains(&"board0.2".to_owned()));
        let middle = middle.unwrap();
        wait_for(&mut world, Span::mins(80));
        for job in jobs.into_iter().filter(|it| *it != middle) {
            world.ask("ada", Ask::Job { job, order: JobOrder::Cancel }).unwrap();
        }
        wait_for(&mut world, Span::mins(2));
        let wide = spec("wide", Demand::Shape("1x4".to_owned()));
        world.ask("ada", Ask::Submit { key: None, spec: wide }).unwrap();
        wait_for(&mut world, Span::mins(5));
        let state = world.core().state();
        assert_eq!((state.jobs[middle].attempt, &state.proposal), (1, &None));
        assert!(runs(&world, middle));
    }
}

/// Method: a line of 20 boards of which every second pair is held, and a set of six wanted that no
/// free pair can give: one job leaves the pair between two free ones, for another free pair.
#[test]
fn a_connected_set_gets_room_by_the_fewest_that_lose_least() {
    let plant = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"1x20\"\n";
    let mut scenario = ticking(plant);
    for nth in 0..10 {
        let demand = Demand::Shape("1x2".to_owned());
        submit_first(&mut scenario, movable(&format!("j{nth}"), demand));
    }
    submit_after(&mut scenario, Span::mins(50), spec("wide", load(24)));
    let mut world = scenario::begin(&scenario).unwrap();
    let wide = JobId::new(10);
    let jobs: Vec<JobId> = (0..10).map(JobId::new).collect();
    run_until(&mut world, |it| jobs.iter().all(|job| runs(it, *job)));
    wait_for(&mut world, Span::mins(30));
    let mut by_place = jobs.clone();
    by_place.sort_by_key(|it| parts(&world, *it)[0]);
    for job in by_place.iter().step_by(2) {
        world.ask("ada", Ask::Job { job: *job, order: JobOrder::Cancel }).unwrap();
    }
    run_until(&mut world, |it| {
        runs(it, wide)
            && jobs.iter().all(|job| {
                runs(it, *job) || it.core().state().jobs[*job].state.word() == "cancelled"
            })
    });
    let moved = by_place.iter().filter(|it| world.core().state().jobs[**it].attempt == 2).count();
    assert_eq!((moved, parts(&world, wide).len()), (1, 6));
    world.check();
    assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
}

/// Seed 000 §2.1: four pods as one mesh, and the longest grid that there may be, which is more
/// boards a side than a word has bits.
#[test]
fn grids_longer_than_a_word_of_boards_take_jobs() {
    for (grid, wide, n_boards) in
        [("128x32", "16x40", 640), ("512x32", "200x16", 3200), ("32x512", "2x256", 512)]
    {
        let plant = format!(
            "format = 1\nname = \"v3\"\n[[pod]]\nfamily = \"tpuv3\"\ngrid = \"{grid}\"\n\
             wrap = \"none\"\n"
        );
        let (mut world, [one, other]) = world(&plant, [Demand::Shape(wide.to_owned()), load(52)]);
        run_until(&mut world, |it| runs(it, one) && runs(it, other));
        assert_eq!((parts(&world, one).len(), parts(&world, other).len()), (n_boards, 13));
        let dead = parts(&world, other)[0];
        let machine = world.core().fabric().node_at(dead, 0);
        let fault = FaultSpec { kind: FaultKind::MachineDown, target: Some(Target::Node(machine)) };
        let now = world.now();
        world.plant_mut().inject(now, fault).unwrap();
        run_until(&mut world, |it| 1 < it.core().state().jobs[other].attempt && runs(it, other));
        assert!(!parts(&world, other).contains(&dead));
        world.check();
        assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
    }
}

/// A board beside a dead cable is free, and so the room that is told counts it; no box crosses the
/// cable.
#[test]
fn room_counts_boards_beside_a_dead_cable_and_no_box_across_it() {
    let plant = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"2x4\"\n";
    let demands = [Demand::Shape("2x4".to_owned()), Demand::Shape("2x3".to_owned())];
    let mut scenario = ticking(plant);
    for (name, demand) in ["one", "other"].into_iter().zip(demands) {
        submit_first(&mut scenario, spec(name, demand));
    }
    let (mut world, [one, other]) = (scenario::begin(&scenario).unwrap(), [0, 1].map(JobId::new));
    run_until(&mut world, |it| runs(it, one));
    world.ask("ada", Ask::Job { job: other, order: JobOrder::Hold }).unwrap();
    world.ask("ada", Ask::Job { job: one, order: JobOrder::Cancel }).unwrap();
    // Between columns 1 and 2, in both rows.
    for row in 0..2 {
        let fabric = world.core().fabric();
        let [a, b] = [1, 2].map(|it| fabric.part_named(&format!("board{row}.{it}")).unwrap());
        let cable = fabric.cables().iter().find(|it| {
            let ends = [it.a, it.b].map(|port| fabric.part_of_port(port));
            ends == [a, b] || ends == [b, a]
        });
        let link = fabric.link_from(cable.unwrap().a).unwrap();
        let why = "by hand".to_owned();
        world.ask("ada", Ask::Drain { target: Target::Link(link), why }).unwrap();
    }
    wait_for(&mut world, Span::mins(5));
    let explained = world.core().explain(other).unwrap();
    assert_eq!(explained.room, [("pod0".to_owned(), 8, 8)]);
    let core = world.core();
    let free = Capacity::now(core.layout(), &core.state().parts);
    let largest = free.largest(PoolId::new(0)).unwrap();
    // Three cables of each four are left: all boards hang together.
    assert_eq!((largest.n_free, largest.rows, largest.columns, largest.connected), (8, 2, 2, 8));
}

/// A job that needs every board goes on without a cable that died under it, and the cable is
/// repaired meanwhile.
#[test]
fn a_job_goes_on_without_the_cable_that_died() {
    let plant = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"2x4\"\n";
    let mut scenario = scenario(plant);
    submit_first(&mut scenario, spec("one", load(32)));
    let (mut world, one) = (scenario::begin(&scenario).unwrap(), JobId::new(0));
    run_until(&mut world, |it| runs(it, one));
    let fabric = world.core().fabric();
    let [a, b] = [1, 2].map(|it| fabric.part_named(&format!("board0.{it}")).unwrap());
    let cable = fabric.cables().iter().find(|it| {
        let ends = [it.a, it.b].map(|port| fabric.part_of_port(port));
        ends == [a, b] || ends == [b, a]
    });
    let mut ends = cable.map(|it| vec![it.a, it.b]).unwrap();
    ends.sort_unstable();
    let link = Target::Link(fabric.link_from(ends[0]).unwrap());
    let (now, fault) = (world.now(), FaultSpec { kind: FaultKind::LinkDown, target: Some(link) });
    world.plant_mut().inject(now, fault).unwrap();
    run_until(&mut world, |it| 1 < it.core().state().jobs[one].attempt && runs(it, one));
    let known = &world.core().state().jobs[one];
    let place = known.place.as_ref().unwrap();
    assert_eq!((place.holds.len(), &place.without), (8, &ends));
    let attempt = known.attempt;
    let is_closed = |it: &World| {
        it.core().state().cases.iter().all(|case| matches!(case.state, CaseState::Closed))
    };
    run_until(&mut world, |it| is_closed(it) || !runs(it, one));
    assert!(is_closed(&world) && runs(&world, one));
    assert_eq!(world.core().state().jobs[one].attempt, attempt);
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
