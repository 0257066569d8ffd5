//! Inputs drawn without regard to what there is: each is accepted or refused, none is fatal.

use std::collections::BTreeMap;

use selvedge_model::fault::{Mark, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, LinkId, NodeId, PartId, PlanId, PoolId, PortId};
use selvedge_model::job::{Demand, Hold, Place, Program, Work, Xconnect};
use selvedge_model::unit::{Generation, Span};

use super::world::{Plans, World, pods, spec};
use crate::health::RULES;
use crate::input::{
    Answer, Ask, Errand, Exit, Input, JobOrder, Proposed, Readings, SetOutcome, Task, TaskExit,
};
use crate::settings::{Level, Settings};

/// SplitMix64: enough to draw inputs with.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Mostly an index below `n`, now and then one far beyond.
    fn id(&mut self, n: usize) -> u32 {
        match self.below(8) {
            0 => self.next() as u32,
            1 => n as u32,
            _ => self.below(n.max(1) as u64) as u32,
        }
    }

    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => u64::MAX,
            1 => self.next(),
            _ => self.below(200),
        }
    }

    fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }
}

struct Drawn<'a> {
    draws: Draws,
    world: &'a World,
}

impl Drawn<'_> {
    fn part(&mut self) -> PartId {
        PartId::new(self.draws.id(self.world.core.fabric().parts().len()))
    }

    fn port(&mut self) -> PortId {
        PortId::new(self.draws.id(self.world.core.fabric().n_ports()))
    }

    fn job(&mut self) -> JobId {
        JobId::new(self.draws.id(self.world.core.state().jobs.len()))
    }

    fn attempt(&mut self, job: JobId) -> u32 {
        let known = self.world.core.state().jobs.get(job).map_or(0, |it| it.attempt);
        known.wrapping_add(self.draws.one_of(&[0, 0, 0, 1, u32::MAX]))
    }

    fn case(&mut self) -> CaseId {
        CaseId::new(self.draws.id(self.world.core.state().cases.len()))
    }

    fn target(&mut self) -> Target {
        let fabric = self.world.core.fabric();
        match self.draws.below(4) {
            0 => Target::Part(self.part()),
            1 => Target::Node(NodeId::new(self.draws.id(fabric.n_nodes()))),
            2 => Target::Port(self.port()),
            _ => Target::Link(LinkId::new(self.draws.id(fabric.n_links()))),
        }
    }

    fn errand(&mut self) -> Errand {
        let state = self.world.core.state();
        let awaited: Vec<Errand> = state.awaited.keys().copied().collect();
        if !awaited.is_empty() && self.draws.below(2) == 0 {
            return self.draws.one_of(&awaited);
        }
        if self.draws.below(2) == 0 {
            let job = self.job();
            return Errand::Job(job, self.attempt(job));
        }
        Errand::Case(self.case(), self.draws.below(4) as u32)
    }

    fn input(&mut self) -> Input {
        match self.draws.below(10) {
            0 if self.draws.below(8) == 0 => self.marked(),
            0 => Input::Tick,
            1 if self.draws.below(4) == 0 => self.report(),
            2..=5 => Input::Ask {
                by: self.draws.one_of(&["ann", "bob", ""]).to_owned(),
                what: self.what(),
            },
            6 if self.draws.below(50) == 0 => Input::Restarted,
            7 if self.draws.below(50) == 0 => {
                Input::Begin { plant: String::new(), settings: Settings::observing() }
            }
            8 if self.draws.below(8) == 0 => self.planned(),
            _ => Input::Answer(self.answer()),
        }
    }

    /// What nobody has planned, for a request that is open now and then.
    fn planned(&mut self) -> Input {
        let open = self.world.core.state().n_requests;
        let request = self.draws.one_of(&[open, open, open + 1, u64::MAX]);
        let n_moves = self.draws.below(3);
        let moves = (0..n_moves).map(|_| {
            let seats = self.draws.one_of(&[0, 1, u64::MAX]);
            let holds = vec![Hold { part: self.part(), seats }];
            (self.job(), Place::of(PoolId::new(self.draws.id(2)), holds))
        });
        let moves = moves.collect();
        let (job, lost) = (self.job(), Span::nanos(self.draws.number()));
        let moves = self.draws.one_of(&[None, Some(Proposed { job, moves, lost })]);
        Input::Planned { request, moves }
    }

    fn report(&mut self) -> Input {
        let symptom: Symptom = self.draws.one_of(&RULES).symptom;
        Input::Report { target: self.target(), symptom, value: Some(self.draws.next() as u32) }
    }

    fn marked(&mut self) -> Input {
        let mark = Mark {
            job: self.draws.one_of(&[None, Some(JobId::new(3)), Some(JobId::new(u32::MAX))]),
            rank: self.draws.next() as u32,
            set: self.draws.next() as u8,
            call: self.draws.number(),
            byte: self.draws.one_of(&[None, Some(u64::MAX)]),
        };
        Input::Marked { by: "mpirun".to_owned(), target: self.target(), mark }
    }

    fn what(&mut self) -> Ask {
        match self.draws.below(14) {
            0..=3 => self.submit(),
            4 | 5 => {
                let orders =
                    [JobOrder::Cancel, JobOrder::Hold, JobOrder::Release, JobOrder::Requeue];
                Ask::Job { job: self.job(), order: self.draws.one_of(&orders) }
            }
            6 => Ask::Drain {
                target: self.target(),
                why: "w".repeat(self.draws.id(9) as usize % 2000),
            },
            7 => Ask::Undrain { target: self.target() },
            8 => Ask::TakeRepair { case: self.case() },
            9 => Ask::FinishRepair { case: self.case() },
            10 => Ask::MovePort { from: self.port(), to: self.port() },
            11 => {
                let n = self.draws.below(4);
                let targets = (0..n).map(|_| self.target()).collect();
                let n_at_once = self.draws.one_of(&[0, 1, 2, u32::MAX]);
                let work = Span::nanos(self.draws.number());
                Ask::Maintain { targets, n_at_once, work, why: String::new() }
            }
            12 => Ask::Defragment { plan: PlanId::new(self.draws.id(100)) },
            _ => match self.draws.below(40) {
                0 => Ask::ApplyPlant { plant: "x = ".to_owned(), expected: self.draws.below(3) },
                _ => {
                    let levels = [Level::Observe, Level::Quarantine, Level::Drain, Level::Repair];
                    Ask::SetLevel { level: self.draws.one_of(&levels) }
                }
            },
        }
    }

    fn submit(&mut self) -> Ask {
        let shapes = [
            "1x1x1",
            "2x2x1",
            "2x4x4",
            "4x4x4",
            "4x4x8",
            "4x4x16",
            "4x8x8_twisted",
            "9x9x9",
            "",
            "x",
        ];
        let demand = match self.draws.below(8) {
            0 => Demand::Parts(self.draws.next() as u32),
            _ => Demand::Shape(self.draws.one_of(&shapes).to_owned()),
        };
        let mut spec = spec("j", demand);
        spec.priority = self.draws.below(12) as u8;
        spec.preemptible = self.draws.below(2) == 0;
        spec.retries = self.draws.one_of(&[0, 1, u32::MAX]);
        let limit = Span::nanos(self.draws.number());
        spec.limit = self.draws.one_of(&[None, Some(limit), Some(Span::hours(1))]);
        if self.draws.below(3) == 0 {
            let argv = self.draws.one_of(&[vec!["a".to_owned()], vec![], vec!["a\0".to_owned()]]);
            let heartbeat = self.draws.one_of(&[None, Some(Span::ZERO), Some(Span::hours(1))]);
            let env = BTreeMap::new();
            spec.work = Work::Command(Program { argv, env, dir: None, heartbeat, account: None });
        }
        let key = self.draws.one_of(&[None, None, Some("k".to_owned()), Some("k".repeat(999))]);
        spec.redundancy = self.draws.one_of(&[1, 1, 1, 3, 0]);
        Ask::Submit { key, spec }
    }

    fn switch_set(&mut self) -> Answer {
        let wirings = self.world.core.state().wirings.values();
        let current = wirings.map(|it| it.blueprint.generation).next();
        let generation = current.unwrap_or(Generation::new(self.draws.number()));
        let ports = vec![self.draws.next() as u16, self.draws.below(136) as u16];
        let outcomes = [
            SetOutcome::Done,
            SetOutcome::Stale { newest: Generation::new(self.draws.number()) },
            SetOutcome::Refused { ports },
            SetOutcome::Refused { ports: Vec::new() },
        ];
        let switch = PartId::new(self.draws.below(48) as u32);
        Answer::SwitchSet { switch, generation, outcome: self.draws.one_of(&outcomes) }
    }

    fn answer(&mut self) -> Answer {
        let (errand, part, job) = (self.errand(), self.part(), self.job());
        match self.draws.below(10) {
            9 => {
                let exit =
                    self.draws.one_of(&[None, Some(TaskExit::Code(1)), Some(TaskExit::Lost)]);
                let (machine, pid) = (self.target(), self.draws.next() as u32);
                let task = Task { machine, pid, began: self.draws.next(), exit };
                let tasks = vec![task; self.draws.one_of(&[0, 1, 1, 16, 32, 999])];
                Answer::Tasks { job, attempt: self.attempt(job), tasks }
            }
            0 => {
                let generation = Generation::new(self.draws.number());
                let pair = |it: &mut Self| Xconnect {
                    north: it.draws.below(140) as u16,
                    south: it.draws.next() as u16 % 300,
                };
                let pairs = (0..self.draws.below(3)).map(|_| pair(self)).collect();
                Answer::SwitchRead { switch: part, generation, pairs }
            }
            1 => self.switch_set(),
            2 => {
                let port = self.port();
                let failed = self.draws.one_of(&[vec![], vec![port]]);
                Answer::LinksTrained { errand, failed }
            }
            3 => {
                let n = self.draws.one_of(&[64, 64, 64, 0, 9]);
                let value = self.draws.one_of(&[0, u16::MAX]);
                let readings = Readings {
                    chip_errors: vec![value; n],
                    pcie_gbps: vec![126; n],
                    link_errors: vec![0; 6 * n],
                    loss: vec![0; 6 * n],
                };
                Answer::Inspected { errand, part, readings }
            }
            4 => {
                let target = self.target();
                let failed = self.draws.one_of(&[vec![], vec![], vec![target]]);
                Answer::Exercised { errand, failed }
            }
            5 => {
                let n = self.draws.one_of(&[384, 0, 1000]);
                let peer = Some(self.port());
                Answer::Discovered { errand, part, peers: vec![peer; n] }
            }
            6 => {
                let newer = Generation::new(self.draws.number());
                let newer = self.draws.one_of(&[None, None, Some(newer)]);
                Answer::Programmed { errand, part, newer }
            }
            7 => Answer::Started { job, attempt: self.attempt(job) },
            _ => {
                let exits = [Exit::Done, Exit::Told, Exit::Failed(1), Exit::Lost];
                let exit = self.draws.one_of(&exits);
                let kept = self.draws.number();
                Answer::Stopped { job, attempt: self.attempt(job), exit, kept }
            }
        }
    }
}

/// The world's own devices answer too, so that jobs run while the wild inputs come; a refused
/// input must leave no trace, and after each the invariants hold: `World::tell` sees to both.
#[test]
fn no_drawn_input_is_fatal_and_none_that_is_refused_leaves_a_trace() {
    const SEEDS: u64 = 50;
    const INPUTS: u64 = 1_000;
    let mut n_accepted = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(&pods(&[3, 1]), Settings::simulated());
        if seed % 2 == 0 {
            world.plans = Plans::Never;
        }
        for n in 0..INPUTS {
            let draws = Draws(seed << 32 | n);
            let input = Drawn { draws, world: &world }.input();
            n_accepted += u64::from(world.tell(input).is_ok());
            if n % 4 == 0 {
                world.run(Span::secs(7));
            }
        }
        world.lines.clear();
        match world.plans {
            // What no planner gave is no answer of this version's.
            Plans::Never => world.replay_as(&["another"]),
            Plans::Promptly | Plans::After(_) => world.replay_all(),
        }
    }
    assert!(SEEDS * INPUTS / 10 < n_accepted, "{n_accepted}");
}
