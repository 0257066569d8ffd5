//! A core and devices that answer at once, for what measures the core alone.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::time::{Duration, Instant};

use selvedge_control::core::{Accepted, Core};
use selvedge_control::input::{Answer, Ask, Errand, Exit, Input, Readings, SetOutcome};
use selvedge_control::output::{Command, Output};
use selvedge_control::settings::Settings;
use selvedge_control::state::JobState;
use selvedge_family::torus::path;
use selvedge_family::torus::shape::Shape;
use selvedge_model::id::{JobId, PartId, PortId};
use selvedge_model::job::{Demand, JobSpec, Work};
use selvedge_model::unit::{Moment, Span};

const PLANT: &str = "format = 1\nname = \"pod\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 64\n";
const MIX: &str = include_str!("../../../sim/data/slices.csv");

/// Shapes with their shares in parts per million; the mix's 1x1x2 and 1x2x2 are run as 2x2x1.
pub(crate) fn mix() -> Vec<(String, u64)> {
    let rows = MIX.lines().filter(|it| !it.starts_with(['#', 's']));
    let row = |line: &str| {
        let (shape, share) = line.split_once(',').expect("two columns");
        let shape = if ["1x1x2", "1x2x2"].contains(&shape) { "2x2x1" } else { shape };
        (shape.to_owned(), share.parse().expect("a whole number"))
    };
    rows.map(row).collect()
}

/// The core of a full pod.
pub(crate) struct Pod {
    core: Core,
    now: Moment,
    dice: u64,
}

impl Pod {
    pub(crate) fn new() -> Self {
        let mut pod = Self { core: Core::new(), now: Moment::START, dice: 7 };
        let settings = Settings::simulated();
        pod.tell(Input::Begin { plant: PLANT.to_owned(), settings });
        pod
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % n
    }

    pub(crate) fn n_held(&self) -> u32 {
        self.core.state().parts.iter().map(|it| it.held.count_ones()).sum()
    }

    pub(crate) fn n_waiting(&self) -> usize {
        self.core.state().queue.len()
    }

    pub(crate) fn draw_shape(&mut self, mix: &[(String, u64)], total: u64) -> String {
        let mut at = self.draw(total);
        let shape = mix.iter().find(|(_, share)| {
            let is_it = at < *share;
            at = at.saturating_sub(*share);
            is_it
        });
        shape.expect("the draw lies below the sum").0.clone()
    }

    pub(crate) fn submit(&mut self, shape: &str) -> (Duration, bool) {
        let spec = JobSpec {
            name: "j".to_owned(),
            owner: format!("o{}", self.draw(8)),
            project: "p".to_owned(),
            demand: Demand::Shape(shape.to_owned()),
            priority: 0,
            preemptible: self.draw(2) == 0,
            limit: Some(Span::hours(1 + self.draw(20))),
            retries: 0,
            redundancy: 1,
            work: Work::Simulated {
                duration: Span::hours(1),
                step: Span::secs(1),
                checkpoint_every: Span::mins(10),
            },
        };
        let what = Ask::Submit { key: None, spec };
        self.now = self.now + Span::secs(30);
        let (took, job) = self.tell(Input::Ask { by: "me".to_owned(), what });
        let job = job.expect("every shape of the mix fits the pod");
        (took, 0 < self.core.state().jobs[job].attempt)
    }

    /// Lets a drawn running job finish.
    pub(crate) fn finish_one(&mut self) -> Duration {
        let state = self.core.state();
        let runs = |it: &JobId| matches!(state.jobs[*it].state, JobState::Running { .. });
        let running: Vec<JobId> = state.active.iter().copied().filter(runs).collect();
        let job = running[self.draw(running.len() as u64) as usize];
        let attempt = self.core.state().jobs[job].attempt;
        let stopped = Answer::Stopped { job, attempt, exit: Exit::Done, kept: 3600 };
        self.now = self.now + Span::secs(30);
        self.tell(Input::Answer(stopped)).0
    }

    /// Times one input, then lets the devices answer all that came of it.
    fn tell(&mut self, input: Input) -> (Duration, Option<JobId>) {
        let started = Instant::now();
        let accepted = self.core.handle(self.now, input);
        let took = started.elapsed();
        let job = match accepted {
            Ok(Accepted::Job(job)) => Some(job),
            _ => None,
        };
        drop(self.core.take_adopted());
        while let Some(output) = self.core.poll() {
            let command = match output {
                Output::Do(command) => command,
                // Planning is no time of the core's.
                Output::Plan(request) => {
                    let planned = self.core.question(request).map(|it| it.answer());
                    planned.into_iter().for_each(|it| drop(self.core.handle(self.now, it)));
                    drop(self.core.take_adopted());
                    continue;
                }
                Output::WakeAt(_) | Output::Note(_) => continue,
            };
            for answer in self.answers(command) {
                drop(self.core.handle(self.now, Input::Answer(answer)));
                drop(self.core.take_adopted());
            }
        }
        (took, job)
    }

    fn answers(&self, command: Command) -> Vec<Answer> {
        match command {
            Command::ReadSwitch { switch } => {
                let known = &self.core.state().switches[&switch];
                let generation = known.generation;
                vec![Answer::SwitchRead { switch, generation, pairs: Vec::new() }]
            }
            Command::SetSwitch { switch, generation, .. } => {
                vec![Answer::SwitchSet { switch, generation, outcome: SetOutcome::Done }]
            }
            Command::AwaitLinks { errand, .. } => {
                vec![Answer::LinksTrained { errand, failed: Vec::new() }]
            }
            Command::Inspect { errand, hold } => {
                let readings = Readings {
                    chip_errors: vec![0; 64],
                    pcie_gbps: vec![126; 64],
                    link_errors: vec![0; 384],
                    loss: vec![100; 384],
                };
                vec![Answer::Inspected { errand, part: hold.part, readings }]
            }
            Command::Exercise { errand, .. } => {
                vec![Answer::Exercised { errand, failed: Vec::new() }]
            }
            Command::Discover { errand, hold } => {
                let peers = self.peers(errand, hold.part);
                vec![Answer::Discovered { errand, part: hold.part, peers }]
            }
            Command::Program { errand, hold, .. } => {
                vec![Answer::Programmed { errand, part: hold.part, newer: None }]
            }
            Command::Start { job, attempt, .. } => vec![Answer::Started { job, attempt }],
            Command::Notify { job, attempt, .. } | Command::Kill { job, attempt } => {
                vec![Answer::Stopped { job, attempt, exit: Exit::Told, kept: 0 }]
            }
            Command::CallCrew { .. } => Vec::new(),
        }
    }

    fn peers(&self, errand: Errand, part: PartId) -> Vec<Option<PortId>> {
        let Errand::Job(job, _) = errand else { return Vec::new() };
        let known = &self.core.state().jobs[job];
        let Demand::Shape(text) = &known.spec.demand else { return Vec::new() };
        let (shape, _) = Shape::parse(text).expect("an accepted shape");
        let Some(place) = &known.place else { return Vec::new() };
        let idx = place.holds.iter().position(|it| it.part == part).expect("asked of its parts");
        path::expected_peers(self.core.fabric(), &shape, place, idx)
    }
}
