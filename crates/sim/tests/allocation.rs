//! The published and promised figures of placement, each over the seeds 1 to 10.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::PathBuf;
use std::{env, fs};

use selvedge_family::grid::policy::Policy;
use selvedge_model::unit::{Ppm, Span};
use selvedge_sim::study::allocation::{self, Outcome, Queue, Setup};
use selvedge_sim::study::pods::{self, Ask, Pod};
use selvedge_sim::study::workload::{self, Task, Workload};
use selvedge_sim::trace;

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

fn outcomes(policy: Policy, workload: Workload, window: usize, dead: u32) -> Vec<Outcome> {
    let run = |seed| {
        let setup = Setup {
            groups: [16, 16],
            policy,
            queue: Queue::Window(window),
            tasks: workload::draw(workload, 1000, 256, seed),
            dead: Ppm::new(10_000 * dead),
            communication: Ppm::new(0),
            seed,
        };
        allocation::run(&setup, &mut || Span::ZERO).unwrap().outcome
    };
    (1..=10).map(run).collect()
}

fn mean(outcomes: &[Outcome], get: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(get).sum::<f64>() / outcomes.len() as f64
}

#[test]
fn polyominoes_use_more_of_the_machine_than_boxes_and_stay_well_joined() {
    for (workload, least, by) in [(Workload::Uniform8, 0.83, 1.3), (Workload::Crux, 0.62, 1.9)] {
        let used = |policy| {
            let outcomes = outcomes(policy, workload, 1, 0);
            (mean(&outcomes, |it| it.utilisation), mean(&outcomes, |it| it.sturdy))
        };
        let (polyomino, sturdy) = used(Policy::Polyomino);
        let (boxes, _) = used(Policy::FirstFit);
        let (ceiling, _) = used(Policy::Hilbert);
        let word = workload.word();
        assert!(least <= polyomino, "{word}: {polyomino}");
        assert!(by <= polyomino / boxes, "{word}: {polyomino} by {boxes}");
        assert!(0.55 <= sturdy, "{word}: {sturdy}");
        assert!(polyomino <= ceiling, "{word}: {polyomino} above {ceiling}");
    }
}

#[test]
fn with_dead_boards_exactly_the_jobs_beyond_the_largest_live_set_are_refused() {
    for dead in [2, 5] {
        let outcomes = outcomes(Policy::Polyomino, Workload::Tpu, 20, dead);
        for (outcome, seed) in outcomes.iter().zip(1..) {
            let tasks = workload::draw(Workload::Tpu, 1000, 256, seed);
            let beyond = tasks.iter().filter(|it| outcome.largest_live < it.n_boards).count();
            assert_eq!(outcome.refused, beyond as u64, "seed {seed}");
        }
        let used = mean(&outcomes, |it| it.utilisation);
        assert!(0.85 <= used, "{dead} % dead: {used}");
    }
}

/// The largest connected set of sound cells, by walking from each.
fn largest_live(sides: [usize; 2], dead: &[bool]) -> u32 {
    let [rows, columns] = sides;
    let mut seen = dead.to_vec();
    let mut largest = 0;
    for start in 0..dead.len() {
        let (mut found, mut n) = (vec![start], 0);
        while let Some(cell) = found.pop() {
            if std::mem::replace(&mut seen[cell], true) {
                continue;
            }
            n += 1;
            let (row, column) = (cell / columns, cell % columns);
            found.extend((0 < row).then(|| cell - columns));
            found.extend((row + 1 < rows).then_some(cell + columns));
            found.extend((0 < column).then(|| cell - 1));
            found.extend((column + 1 < columns).then_some(cell + 1));
        }
        largest = largest.max(n);
    }
    largest
}

/// Method: long machines, which a few dead boards cut into pieces, and tasks of every size.
#[test]
fn on_machines_cut_into_pieces_exactly_the_jobs_beyond_the_largest_are_refused() {
    let mut n_split = 0;
    for (groups, dead) in [([2, 40], 10), ([3, 24], 20), ([1, 30], 10), ([12, 12], 40)] {
        let sides = groups.map(usize::from);
        let n_cells = u32::from(groups[0]) * u32::from(groups[1]);
        for seed in 1..=10 {
            let task = |idx: u32| Task {
                at: Span::ZERO,
                n_boards: 1 + idx % n_cells,
                sides: None,
                service: Span::secs(60 + u64::from(idx)),
            };
            let setup = Setup {
                groups,
                policy: Policy::Polyomino,
                queue: Queue::Window(20),
                tasks: (0..2 * n_cells).map(task).collect(),
                dead: Ppm::new(10_000 * dead),
                communication: Ppm::new(0),
                seed,
            };
            let study = allocation::run(&setup, &mut || Span::ZERO).unwrap();
            let largest = largest_live(sides, &study.dead);
            let n_live = study.dead.iter().filter(|it| !**it).count() as u32;
            n_split += u32::from(largest < n_live);
            let beyond = setup.tasks.iter().filter(|it| largest < it.n_boards).count() as u64;
            assert_eq!(study.outcome.refused, beyond, "{groups:?}, seed {seed}");
            assert_eq!(study.outcome.largest_live, largest, "{groups:?}, seed {seed}");
        }
    }
    assert!(30 <= n_split, "{n_split} of 40 machines are split");
}

/// A trace's tasks are all accounted for, and come when they came where places are promised.
#[test]
fn what_a_machine_never_holds_and_what_lasts_no_time_is_counted() {
    let text = "#job id,arrival time (sec),topology,shape,size,duration (sec)\n\
                1,0,CLOS,,64,100\n2,50,CLOS,,65,0\n3,60,CLOS,,1025,10\n\
                4,1000,CLOS,,1024,100\n5,1010,CLOS,,8,100\n";
    let jobs = trace::parse("made.csv", text).unwrap();
    let run = |queue| {
        let setup = Setup {
            groups: [16, 16],
            policy: Policy::Polyomino,
            queue,
            tasks: workload::of_trace(&jobs, queue == Queue::Reservation),
            dead: Ppm::new(0),
            communication: Ppm::new(0),
            seed: 1,
        };
        allocation::run(&setup, &mut || Span::ZERO).unwrap().outcome
    };
    let [window, reservation] = [Queue::Window(1), Queue::Reservation].map(run);
    for outcome in [&window, &reservation] {
        assert_eq!((outcome.jobs, outcome.refused, outcome.at_once), (5, 1, 1));
    }
    // All at once: the first, then the whole machine, then the last.  As they came: the last comes
    // while the whole machine is taken.
    assert_eq!((window.makespan_s, reservation.makespan_s), (300.0, 1200.0));
    assert_eq!((window.queue_s, reservation.queue_s), (100.0, 30.0));
}

/// The more tasks communicate, the better joined they lie, and the longer they wait for it.
#[test]
fn tasks_that_communicate_lie_better() {
    let run = |share| {
        let outcomes: Vec<Outcome> = (1..=3)
            .map(|seed| {
                let setup = Setup {
                    groups: [16, 16],
                    policy: Policy::Polyomino,
                    queue: Queue::Window(1),
                    tasks: workload::draw(Workload::Crux, 1000, 256, seed),
                    dead: Ppm::new(0),
                    communication: Ppm::new(share),
                    seed,
                };
                allocation::run(&setup, &mut || Span::ZERO).unwrap().outcome
            })
            .collect();
        (mean(&outcomes, |it| it.links_per_chip), mean(&outcomes, |it| it.slowdown))
    };
    let [never, often, always] = [0, 500_000, 1_000_000].map(run);
    assert_eq!(never.1, 1.0);
    assert!(never.0 < often.0 && often.0 <= always.0, "{never:?} {often:?} {always:?}");
    assert!(1.0 < often.1 && always.1 < 1.25, "{often:?} {always:?}");
}

#[test]
fn the_published_trace_waits_less_on_a_switched_pod_and_no_longer_than_promised_on_a_static_one() {
    let Some(path) = real_input("traces/tpu400.csv") else { return };
    let jobs = trace::parse("tpu400.csv", &fs::read_to_string(path).unwrap()).unwrap();
    let ask = Ask { n_watched: 101, curve: false };
    let queue = |pod| pods::run(pod, &jobs, ask, &mut || Span::ZERO).outcome.queue_h;
    let switched = queue(Pod::Switched);
    assert!(switched <= 13.3, "{switched}");
    let fixed = queue(Pod::Static(Policy::BestFit));
    assert!(switched < fixed && fixed <= 19.9, "{fixed}");
}

/// On a machine of one row every board but those between others has one neighbour.
#[test]
fn on_a_row_of_boards_nothing_is_sturdy() {
    let run = |groups: [u16; 2]| {
        let n_boards = u32::from(groups[0]) * u32::from(groups[1]);
        let setup = Setup {
            groups,
            policy: Policy::Polyomino,
            queue: Queue::Window(1),
            tasks: workload::draw(Workload::Crux, 200, n_boards, 1),
            dead: Ppm::new(0),
            communication: Ppm::new(0),
            seed: 1,
        };
        allocation::run(&setup, &mut || Span::ZERO).unwrap().outcome.sturdy
    };
    assert_eq!([run([1, 32]), run([32, 1])], [0.0, 0.0]);
    assert!(0.5 < run([2, 16]));
}
