//! The devices of the world in miniature: what they are, and what they answer.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fabric::{Role, Side};
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId, PortId};
use selvedge_model::job::{Hold, Work, Xconnect};
use selvedge_model::unit::{Generation, Moment, Span};

use crate::core::tests::world::World;
use crate::input::{Answer, Ask, Errand, Exit, Input, Readings, SetOutcome};
use crate::output::Command;
use crate::preflight::even;

/// How often a silent switch is polled; polls of the others tell nothing new.
const POLL_EVERY: Span = Span::secs(60);

/// A circuit switch as it really is.
#[derive(Clone, Debug, Default)]
pub(super) struct Mirrors {
    pub(super) generation: Generation,
    pub(super) pairs: BTreeMap<u16, u16>,
    pub(super) broken: BTreeSet<u16>,
    pub(super) refuses_all: bool,
}

/// The tasks of a job's newest attempt.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    pub(super) attempt: u32,
    pub(super) started: Moment,
    pub(super) kept: u64,
    pub(super) step: Span,
    pub(super) checkpoint_every: Span,
    pub(super) over: Option<(Exit, u64)>,
}

impl World {
    /// Part of what is asked no longer answers; what runs on it runs on.
    pub(super) fn fall_silent(&mut self, part: PartId) {
        self.silent.insert(part);
        if self.core.fabric().template_of(part).role == Role::CircuitSwitch {
            self.after(POLL_EVERY, Input::Unanswered { switch: part });
        }
    }

    /// A poll of a switch that has been silent: what is heard of it, if it still is.
    pub(super) fn polled(&mut self, switch: PartId) -> Option<Input> {
        if !self.silent.contains(&switch) {
            self.read_switch(switch);
            return None;
        }
        self.after(POLL_EVERY, Input::Unanswered { switch });
        Some(Input::Unanswered { switch })
    }

    pub(super) fn carry_out(&mut self, command: Command) {
        match command {
            Command::ReadSwitch { switch } => self.read_switch(switch),
            Command::SetSwitch { switch, generation, remove, add } => {
                self.set_switch(switch, generation, &remove, &add);
            }
            Command::AwaitLinks { errand, parts } => {
                let failed = self.dark_ends(&parts);
                self.answer(5, Answer::LinksTrained { errand, failed });
            }
            Command::Inspect { errand, hold } => self.inspect(errand, hold),
            Command::Exercise { errand, holds } => {
                let failed = self.sick_in(&holds);
                self.answer(10, Answer::Exercised { errand, failed });
            }
            Command::Discover { errand, hold } => {
                if !self.silent.contains(&hold.part) {
                    let peers = self.peers(hold.part);
                    self.answer(1, Answer::Discovered { errand, part: hold.part, peers });
                }
            }
            Command::Program { errand, hold, .. } => {
                if !self.silent.contains(&hold.part) {
                    self.answer(1, Answer::Programmed { errand, part: hold.part, newer: None });
                }
            }
            Command::Start { job, attempt, work, kept, .. } => {
                self.start(job, attempt, &work, kept);
            }
            Command::Notify { job, attempt, .. } => {
                if !self.stubborn.contains(&job) {
                    self.stop(job, attempt, 5, |tasks, now| tasks.steps_by(now));
                }
            }
            Command::Kill { job, attempt } => {
                self.stop(job, attempt, 1, |tasks, now| tasks.checkpointed_by(now));
            }
            Command::CallCrew { case, target, .. } => {
                if let Some(span) = self.crew {
                    let by = "crew".to_owned();
                    let what = Ask::TakeRepair { case };
                    self.after(Span::secs(60), Input::Ask { by: by.clone(), what });
                    self.heal(target);
                    self.after(span, Input::Ask { by, what: Ask::FinishRepair { case } });
                }
            }
        }
    }

    fn read_switch(&mut self, switch: PartId) {
        if self.silent.contains(&switch) {
            return;
        }
        let mirrors = self.switches.entry(switch).or_default();
        let pairs = mirrors.pairs.iter().map(|(&north, &south)| Xconnect { north, south });
        let (generation, pairs) = (mirrors.generation, pairs.collect());
        self.answer(1, Answer::SwitchRead { switch, generation, pairs });
    }

    fn set_switch(
        &mut self,
        switch: PartId,
        generation: Generation,
        remove: &[Xconnect],
        add: &[Xconnect],
    ) {
        if self.silent.contains(&switch) {
            return;
        }
        let mirrors = self.switches.entry(switch).or_default();
        let outcome = mirrors.set(generation, remove, add);
        self.answer(1, Answer::SwitchSet { switch, generation, outcome });
    }

    fn inspect(&mut self, errand: Errand, hold: Hold) {
        if self.silent.contains(&hold.part) {
            return;
        }
        let fabric = self.core.fabric();
        let template = fabric.template_of(hold.part);
        let seats = template.seats().iter();
        let chip_errors = seats.map(|&node| {
            let node = Target::Node(fabric.node_at(hold.part, node as usize));
            if self.bad.contains(&node) { u16::MAX } else { 0 }
        });
        let link_errors = template.network_ports().iter().map(|&local| {
            let link = fabric.link_from(fabric.port_at(hold.part, local as usize));
            let is_dark = link.is_some_and(|it| self.dark.contains(&Target::Link(even(it))));
            if is_dark { u16::MAX } else { 0 }
        });
        let losses = template.network_ports().iter().map(|&local| {
            let cable = fabric.cable_at(fabric.port_at(hold.part, local as usize));
            cable.map_or(0, |it| it.loss_expected.centi())
        });
        let loss = losses.collect();
        let readings = Readings {
            chip_errors: chip_errors.collect(),
            pcie_gbps: vec![126; template.seats().len()],
            link_errors: link_errors.collect(),
            loss,
        };
        self.answer(2, Answer::Inspected { errand, part: hold.part, readings });
    }

    fn dark_ends(&self, parts: &[PartId]) -> Vec<PortId> {
        let fabric = self.core.fabric();
        let ports = parts.iter().flat_map(|&part| fabric.ports_of(part));
        let is_dark = |port: &PortId| {
            let cable = fabric.cable_at(*port).and_then(|_| fabric.link_from(*port));
            cable.is_some_and(|it| self.dark.contains(&Target::Link(even(it))))
        };
        ports.filter(is_dark).collect()
    }

    fn sick_in(&self, holds: &[Hold]) -> Vec<Target> {
        let fabric = self.core.fabric();
        let is_held = |it: &&Target| match **it {
            Target::Node(node) => {
                let (part, local) = fabric.node_local(node);
                let seats = fabric.template_of(part).seats_under(local);
                holds.iter().any(|hold| hold.part == part && hold.seats & seats != 0)
            }
            Target::Part(_) | Target::Port(_) | Target::Link(_) => true,
        };
        self.sick.iter().filter(is_held).copied().collect()
    }

    /// What the chips of a part see, through the mirrors as they really stand.
    fn peers(&self, part: PartId) -> Vec<Option<PortId>> {
        let fabric = self.core.fabric();
        let see = |local: usize| {
            let port = fabric.port_at(part, local);
            let port = self.crossed.get(&port).copied().unwrap_or(port);
            let peer = fabric.peer_of(port)?;
            let (switch, local) = fabric.port_local(peer);
            let Some(mirrors) = self.switches.get(&switch) else { return Some(peer) };
            let local = local as u16;
            let out = match fabric.template_of(switch).ports()[usize::from(local)].side {
                Side::North => *mirrors.pairs.get(&local)?,
                _ => *mirrors.pairs.iter().find(|it| *it.1 == local)?.0,
            };
            let end = fabric.peer_of(fabric.port_at(switch, usize::from(out)))?;
            Some(self.crossed.get(&end).copied().unwrap_or(end))
        };
        let ports = fabric.template_of(part).network_ports().iter();
        ports.map(|&local| see(local as usize)).collect()
    }

    fn start(&mut self, job: JobId, attempt: u32, work: &Work, kept: u64) {
        let (_, step, checkpoint_every) = work.steps();
        if self.tasks.get(&job).is_none_or(|it| it.attempt < attempt) {
            let started = self.now + Span::secs(1);
            let over = None;
            let tasks = Tasks { attempt, started, kept, step, checkpoint_every, over };
            self.tasks.insert(job, tasks);
            self.plan_end(job);
        } else if let Some((exit, kept)) = self.tasks[&job].over {
            self.answer(1, Answer::Stopped { job, attempt, exit, kept });
            return;
        }
        self.answer(1, Answer::Started { job, attempt });
    }

    /// The end that the tasks come to by themselves.
    pub(super) fn plan_end(&mut self, job: JobId) {
        let tasks = self.tasks[&job].clone();
        if tasks.over.is_some() {
            return;
        }
        let (duration, ..) = self.core.state().jobs[job].spec.work.steps();
        let n_steps = duration.as_nanos().div_ceil(tasks.step.as_nanos());
        let done_at = tasks.started + tasks.step.times(n_steps.saturating_sub(tasks.kept));
        let (at, exit, kept) = match self.failing.get(&job) {
            Some(&(exit, after)) if tasks.started + after < done_at => {
                let at = tasks.started + after;
                (at, exit, tasks.checkpointed_by(at))
            }
            _ => (done_at, Exit::Done, n_steps),
        };
        let attempt = tasks.attempt;
        let answer = Answer::Stopped { job, attempt, exit, kept };
        self.after(at.since(self.now), Input::Answer(answer));
    }

    fn stop(&mut self, job: JobId, attempt: u32, secs: u64, kept: impl Fn(&Tasks, Moment) -> u64) {
        let now = self.now + Span::secs(secs);
        let (exit, kept) = match self.tasks.get_mut(&job) {
            Some(tasks) if tasks.attempt == attempt => {
                let end = (Exit::Told, kept(tasks, now));
                *tasks.over.get_or_insert(end)
            }
            Some(_) | None => (Exit::Told, 0),
        };
        self.answer(secs, Answer::Stopped { job, attempt, exit, kept });
    }
}

impl Tasks {
    fn steps_by(&self, now: Moment) -> u64 {
        self.kept + now.since(self.started).div(self.step)
    }

    fn checkpointed_by(&self, now: Moment) -> u64 {
        let n_checkpoints = now.since(self.started).div(self.checkpoint_every);
        self.kept + self.checkpoint_every.times(n_checkpoints).div(self.step)
    }
}

impl Mirrors {
    fn set(&mut self, generation: Generation, remove: &[Xconnect], add: &[Xconnect]) -> SetOutcome {
        if generation < self.generation {
            return SetOutcome::Stale { newest: self.generation };
        }
        let mut pairs = self.pairs.clone();
        remove.iter().filter(|it| self.pairs.get(&it.north) == Some(&it.south)).for_each(|it| {
            pairs.remove(&it.north);
        });
        let is_taken = |pairs: &BTreeMap<u16, u16>, it: &Xconnect| {
            pairs.get(&it.north).is_some_and(|south| *south != it.south)
                || pairs.iter().any(|(north, south)| *south == it.south && *north != it.north)
        };
        let mut ports = BTreeSet::new();
        for pair in add {
            assert!(!is_taken(&pairs, pair), "{pair:?} goes over another pair");
            ports.extend([pair.north, pair.south].iter().filter(|it| self.broken.contains(it)));
            pairs.insert(pair.north, pair.south);
        }
        if self.refuses_all {
            ports.extend(remove.iter().chain(add).map(|it| it.north));
        }
        if !ports.is_empty() {
            return SetOutcome::Refused { ports: ports.into_iter().collect() };
        }
        (self.generation, self.pairs) = (generation, pairs);
        SetOutcome::Done
    }
}
