//! A job in replicas on a machine that computes wrongly, under the judge's rules.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use selvedge_control::note::CaseState;
use selvedge_control::state::JobState;
use selvedge_model::fault::{Severity, Symptom, Target};
use selvedge_model::id::JobId;
use selvedge_model::job::{Demand, JobSpec, Work};
use selvedge_model::unit::{Moment, Span};
use selvedge_sim::fault::{FaultKind, FaultSpec, Rates};
use selvedge_sim::scenario::{self, PlantFrom, Scenario};
use selvedge_sim::world::{Happening, World};

const PLANTS: [(&str, &str); 2] = [
    ("format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"4x4\"\n", "3x4"),
    ("format = 1\nname = \"v4\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 2\n", "4x4x4"),
];

fn world(plant: &str, shape: &str, redundancy: u8) -> World {
    let mut scenario = Scenario::new(1, 7);
    scenario.plant = PlantFrom::Text(plant.to_owned());
    scenario.rates = Rates::NONE;
    let spec = JobSpec {
        name: "replicated".to_owned(),
        owner: "ada".to_owned(),
        project: "mpi".to_owned(),
        demand: Demand::Shape(shape.to_owned()),
        priority: 3,
        preemptible: false,
        limit: None,
        retries: 0,
        work: Work::Simulated {
            duration: Span::hours(6),
            step: Span::secs(1),
            checkpoint_every: Span::mins(10),
        },
        redundancy,
    };
    scenario.events.push((Moment::START, Happening::Submit(spec)));
    scenario::begin(&scenario).unwrap()
}

fn run_until(world: &mut World, is_so: impl Fn(&World) -> bool) {
    let last = world.now() + Span::days(3);
    while !is_so(world) {
        assert!(world.step(last).unwrap(), "within three days: {:?}", world.core().state().cases);
    }
}

/// Method: one chip under the job begins to compute wrongly, which no health daemon sees.  Its
/// replicas are outvoted; the third mark takes its machine out for new work, the job runs on to its
/// end, and then the machine is repaired and returns.  Without replicas nobody learns of it.
#[test]
fn a_machine_that_computes_wrongly_is_found_by_its_replicas_and_the_job_goes_on() {
    for (plant, shape) in PLANTS {
        for redundancy in [3, 1] {
            let mut world = world(plant, shape, redundancy);
            let job = JobId::new(0);
            let state_of = |it: &World| it.core().state().jobs.get(job).map(|it| it.state.clone());
            run_until(&mut world, |it| matches!(state_of(it), Some(JobState::Running { .. })));
            let place = world.core().state().jobs[job].place.clone().unwrap();
            let fabric = world.core().fabric();
            let clusters = selvedge_control::family::clusters(fabric, &place);
            let machine = clusters.machines[1][2];
            let (part, under) = match machine {
                Target::Node(node) => (fabric.part_of_node(node), Some(node)),
                Target::Part(part) => (part, None),
                other => panic!("no machine: {other:?}"),
            };
            let chip = fabric
                .template_of(part)
                .seats()
                .iter()
                .map(|it| fabric.node_at(part, *it as usize));
            let is_in = |chip: &_| {
                under.is_none_or(|_| {
                    selvedge_control::family::host_at(fabric, Target::Node(*chip)) == Some(machine)
                })
            };
            let chip = chip.into_iter().find(is_in).unwrap();
            let (now, kind) = (world.now(), FaultKind::LatentExercise);
            let fault = FaultSpec { kind, target: Some(Target::Node(chip)) };
            world.plant_mut().inject(now, fault).unwrap();
            run_until(&mut world, |it| state_of(it) == Some(JobState::Finished));
            let state = world.core().state();
            assert_eq!((state.jobs[job].attempt, state.jobs[job].n_interrupted), (1, 0));
            let case = state.cases.iter().next();
            if redundancy == 1 {
                assert!(case.is_none(), "{case:?}");
                continue;
            }
            // Those of half an hour apart belong to one case once the third has come.
            let open = state.open_cases.get(&machine).copied().unwrap();
            let case = &state.cases[open];
            assert_eq!((case.symptom, case.severity), (Symptom::Marked, Severity::Degraded));
            assert!(state.drains.contains_key(&machine));
            let marks = &state.marks[&machine];
            assert!(3 <= marks.len() && marks.iter().all(|it| (it.1.rank, it.1.set) == (1, 2)));
            run_until(&mut world, |it| {
                let state = it.core().state();
                state.cases.iter().all(|it| it.state == CaseState::Closed)
            });
            assert!(world.core().state().drains.is_empty());
            world.check();
            assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
        }
    }
}
