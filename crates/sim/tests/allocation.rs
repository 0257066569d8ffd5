//! The published and promised figures of placement, each over the seeds 1 to 10.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::PathBuf;
use std::{env, fs};

use selvedge_family::grid::policy::Policy;
use selvedge_model::unit::{Ppm, Span};
use selvedge_sim::study::allocation::{self, Outcome, Queue, Setup};
use selvedge_sim::study::pods::{self, Ask, Pod};
use selvedge_sim::study::workload::{self, Workload};
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
