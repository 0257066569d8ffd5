//! The simulated plant: what its devices really are, and what they answer.
//!
//! The truth may differ from the plan: fibres are swapped, parts are silent, faults are latent,
//! somebody else turns mirrors.  The core learns of it only by asking.  A plant knows nothing of
//! the core; it is told [`Command`]s and hands out [`Input`]s when their moment has come, so it
//! can live in the simulator's loop, in a server, or in a process of its own.
//!
//! ```text
//!  tell(now, command) ─► queue ─► advance(to) ─► answers, reports, the crew's requests
//!  inject, rates ──────► faults ─► light (what each port leads to, what is dark)
//! ```

mod act;
mod light;
mod ocs;
mod sense;
mod state;
mod tables;
mod target;

pub use ocs::Ocs;
pub use state::{Dials, PlantError};
pub use tables::Table;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_control::input::{Ahead, Answer, Ask, Errand, Exit, Input, Stray};
use selvedge_control::output::Command;
use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{CaseId, JobId, PartId, PortId};
use selvedge_model::job::Xconnect;
use selvedge_model::unit::{Generation, Moment, Ppm, Span};

use crate::crew::{CREW, Stage};
use crate::fault::{Fault, FaultError, FaultKind, FaultSpec, Rates};
use crate::limits;
use crate::task::{Phase, Tasks};
use light::Light;
use state::{End, Event, Queued, Truth};
use target::Things;

/// A simulated plant.
#[derive(Clone, Debug)]
pub struct Plant {
    fabric: Arc<Fabric>,
    light: Light,
    things: Things,
    truth: Truth,
}

impl Plant {
    /// A plant as the fabric says, whose faults come at `rates`.
    pub fn new(fabric: Arc<Fabric>, seed: u64, rates: Rates, dials: Dials) -> Self {
        let light = Light::new(&fabric, seed);
        let truth = Truth::new(seed, dials);
        let mut plant = Self { truth, things: Things::default(), light, fabric };
        plant.add_switches();
        plant.list_things();
        plant.set_rates(Moment::START, rates);
        plant
    }

    /// The newest moment that it has come to.
    pub fn now(&self) -> Moment {
        self.truth.now
    }

    /// When something happens next; at latest then [`Plant::advance`] is to be called.
    pub fn next_at(&self) -> Option<Moment> {
        self.truth.queue.peek().map(|Reverse(queued)| queued.at)
    }

    /// Lets everything happen that happens up to `to`, and returns what the core hears of it.
    pub fn advance(&mut self, to: Moment) -> Vec<Input> {
        let mut heard = Vec::new();
        self.advance_into(to, &mut heard);
        heard
    }

    /// [`Plant::advance`] into a buffer that is used again.
    pub fn advance_into(&mut self, to: Moment, heard: &mut Vec<Input>) {
        while self.next_at().is_some_and(|at| at <= to) {
            let Some(Reverse(queued)) = self.truth.queue.pop() else { return };
            self.truth.now = self.truth.now.max(queued.at);
            self.happen(queued.event, heard);
        }
        self.truth.now = self.truth.now.max(to);
    }

    /// The fabric has changed: parts were added or retired, or a fibre was re-patched.
    pub fn adopt(&mut self, fabric: Arc<Fabric>) {
        self.light = Light::new(&fabric, self.truth.seed);
        self.fabric = fabric;
        self.add_switches();
        let gone: Vec<u32> = (self.truth.faults.iter())
            .filter(|(_, fault)| self.is_retired(fault.target))
            .map(|(&id, _)| id)
            .collect();
        for id in gone {
            self.truth.faults.remove(&id);
        }
        self.relight_all();
        self.hearken();
        self.list_things();
    }

    /// The connection to the core was cut: what daemons and crew said may not have been heard,
    /// so they say it again.  Answers to commands are not repeated; the core asks anew.
    pub fn reconnect(&mut self, now: Moment) {
        self.truth.now = self.truth.now.max(now);
        let ids: Vec<u32> = self.truth.faults.keys().copied().collect();
        for id in ids {
            self.report_soon(id);
        }
        let switches = self.truth.switches.iter().map(|(&it, _)| it);
        self.truth.unpolled.extend(switches);
        self.poll_later();
        let again: Vec<(CaseId, Stage)> =
            self.truth.crew.calls().map(|(case, call)| (case, call.stage)).collect();
        for (case, stage) in again {
            let ask = match stage {
                Stage::Coming => continue,
                Stage::Working => Ask::TakeRepair { case },
                Stage::Done { at } if self.truth.now.since(at) <= limits::CREW_REPEATS => {
                    Ask::FinishRepair { case }
                }
                Stage::Done { .. } => continue,
            };
            let said = Input::Ask { by: CREW.to_owned(), what: ask };
            self.after(Span::secs(5), Event::Say(Box::new(said)));
        }
    }

    /// The hardware as it is built.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// All tasks.
    pub fn tasks(&self) -> &Tasks {
        &self.truth.tasks
    }

    /// Takes note of seats that were given out twice.
    pub fn take_clashes(&mut self) -> Vec<crate::task::Clash> {
        self.truth.tasks.take_clashes()
    }

    /// Writes that a switch carried out after a newer one: there must be none.
    pub fn n_stale_writes(&self) -> u64 {
        self.truth.n_stale_writes
    }

    /// The circuit switches, as they really are.
    pub fn switches(&self) -> impl Iterator<Item = (PartId, &Ocs)> {
        self.truth.switches.iter().map(|(&part, ocs)| (part, ocs))
    }

    /// The forwarding table that a chip has, by its part and seat.
    pub fn table_at(&self, part: PartId, seat: usize) -> Option<Table> {
        self.truth.tables.at(part, seat)
    }

    /// Whether a part answers what it is asked.
    pub fn answers(&self, part: PartId) -> bool {
        !self.faults_on(part).any(|fault| {
            matches!(fault.kind, FaultKind::SwitchDown | FaultKind::Silent)
                && fault.target == Target::Part(part)
        })
    }

    /// Whether a switch has told all that it stands for: it answers, and no change that nobody
    /// ordered waits for the next poll.
    pub fn is_told(&self, switch: PartId) -> bool {
        self.answers(switch) && !self.truth.unpolled.contains(&switch)
    }

    /// Whether mirrors have lately been turned by orders alone: no switch is or was down, nobody
    /// meddled, no fibre is swapped.
    pub fn is_calm(&self, now: Moment) -> bool {
        let quiet = self.truth.meddled.is_none_or(|at| at + Span::mins(10) < now);
        quiet && self.truth.faults.is_empty()
    }

    /// The faults that stand.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.truth.faults.values()
    }

    /// How many faults of each kind have happened, in the order of [`FaultKind::ALL`].
    pub fn n_faults(&self) -> [u64; FaultKind::ALL.len()] {
        self.truth.n_faults
    }

    /// How many things a kind of fault can happen to.
    pub fn n_prone(&self, kind: FaultKind) -> usize {
        self.n_things(kind)
    }

    /// What the devices were told beyond what somebody remembers, who knows of `n_jobs` jobs, of
    /// the newest starts of those that are not over, and of writes up to `generation`.
    pub fn ahead(
        &self,
        n_jobs: u32,
        starts: &BTreeMap<JobId, u32>,
        generation: Generation,
    ) -> Option<Ahead> {
        let mut ahead = Ahead { generation: self.generation(), ..Ahead::default() };
        for (job, task) in self.truth.tasks.all() {
            let is_unknown = match starts.get(&job) {
                Some(newest) => newest < &task.attempt,
                None => n_jobs <= job.number() || task.is_live(),
            };
            if !is_unknown {
                continue;
            }
            ahead.attempt = ahead.attempt.max(task.attempt);
            // One that is over matters to whoever believes that an earlier one is not.
            if task.is_live() || starts.contains_key(&job) {
                let holds = task.place.iter().flat_map(|it| it.holds.iter().copied()).collect();
                ahead.strays.push(Stray { job, attempt: task.attempt, holds });
            }
        }
        (generation < ahead.generation || ahead.attempt != 0).then_some(ahead)
    }

    /// The newest generation that a switch or a chip has taken.
    fn generation(&self) -> Generation {
        let switches = self.truth.switches.values().map(|it| it.generation);
        switches.chain(self.truth.tables.generation()).max().unwrap_or(Generation::ZERO)
    }

    /// How many polls switches have answered up to `now`; unchanged ones only count.
    pub fn n_polls(&self, now: Moment) -> u64 {
        let n_all = polls_until(now) * self.truth.switches.len() as u64;
        n_all.saturating_sub(self.n_polls_missed(now))
    }

    /// How many polls switches have not answered up to `now`.
    pub fn n_polls_missed(&self, now: Moment) -> u64 {
        let open = self.truth.mute.values();
        let open: u64 = open.map(|&since| polls_until(now) - polls_until(since.min(now))).sum();
        self.truth.n_missed + open
    }

    /// Whether light from outside the parts of a place, or none, arrives at an end of it.
    pub fn misjoined(&self, parts: &[PartId]) -> Option<PortId> {
        let inside: BTreeSet<PartId> = parts.iter().copied().collect();
        let is_ours = |port| inside.contains(&self.fabric.part_of_port(port));
        let mut ends = parts.iter().flat_map(|&part| self.outer_ends(part));
        ends.find(|&end| self.light.turns_beyond(end) && !self.light.far(end).is_some_and(is_ours))
    }

    /// From now on faults come at these rates; those that stand stay.
    pub fn set_rates(&mut self, now: Moment, rates: Rates) {
        self.truth.now = self.truth.now.max(now);
        self.truth.rates = rates;
        self.truth.rates_token += 1;
        for kind in FaultKind::ALL {
            self.next_fault(kind);
        }
    }

    /// From now on the plant misbehaves as these dials say.
    pub fn set_dials(&mut self, dials: Dials) {
        self.truth.dials = dials;
    }

    /// Lets a fault happen now.
    ///
    /// # Errors
    /// [`FaultError`]; nothing has happened.
    pub fn inject(&mut self, now: Moment, spec: FaultSpec) -> Result<Target, FaultError> {
        self.truth.now = self.truth.now.max(now);
        let target = match spec.target {
            Some(target) => self.named(spec.kind, target)?,
            None => self.drawn(spec.kind).ok_or(FaultError::NoTarget { kind: spec.kind })?,
        };
        self.strike(spec.kind, target);
        Ok(target)
    }

    /// Puts right whatever is wrong with a target and what lies in it.
    ///
    /// # Errors
    /// [`FaultError::NoFault`].
    pub fn clear(&mut self, now: Moment, target: Target) -> Result<usize, FaultError> {
        self.truth.now = self.truth.now.max(now);
        match self.repair(target) {
            0 => Err(FaultError::NoFault { target: self.fabric.path(target) }),
            n => Ok(n),
        }
    }

    /// Puts right whatever is wrong anywhere.
    pub fn clear_all(&mut self, now: Moment) {
        self.truth.now = self.truth.now.max(now);
        let targets: Vec<Target> = self.truth.faults.values().map(|it| it.target).collect();
        for target in targets {
            self.repair(target);
        }
    }

    /// Tells a device; it answers in its time, if it does.
    pub fn tell(&mut self, now: Moment, command: &Command) {
        self.truth.now = self.truth.now.max(now);
        match command {
            Command::ReadSwitch { switch } => {
                self.after_drawn(limits::READ, Event::Read { switch: *switch });
            }
            Command::SetSwitch { switch, generation, remove, add } => {
                self.write(*switch, *generation, remove, add);
            }
            Command::AwaitLinks { errand, parts } => {
                let event = Event::Train { errand: *errand, parts: parts.clone() };
                self.after_drawn(limits::TRAIN, event);
            }
            Command::Inspect { errand, hold } => {
                let event = Event::Inspect { errand: *errand, hold: *hold };
                self.after_drawn(limits::INSPECT, event);
            }
            Command::Exercise { errand, holds } => {
                let event = Event::Exercise { errand: *errand, holds: holds.clone() };
                self.after_drawn(limits::EXERCISE, event);
            }
            Command::Discover { errand, hold } => {
                let event = Event::Discover { errand: *errand, hold: *hold };
                self.after_drawn(limits::DISCOVER, event);
            }
            Command::Program { errand, hold, generation, table } => {
                let table = Table { generation: *generation, digest: *table };
                let event = Event::Program { errand: *errand, hold: *hold, table };
                self.after_drawn(limits::PROGRAM, event);
            }
            Command::Start { job, attempt, place, work, kept, redundancy } => {
                self.start(*job, *attempt, place, work, *kept);
                if 1 < *redundancy {
                    let event = Event::Compare { job: *job, attempt: *attempt };
                    self.after(limits::COMPARE, event);
                }
            }
            Command::Notify { job, attempt, grace } => self.notify(*job, *attempt, *grace),
            Command::Kill { job, attempt } => self.kill(*job, *attempt),
            Command::CallCrew { case, target, symptom: _ } => {
                if self.truth.crew.call(*case, *target) {
                    let way = self.truth.crew_dice.exponential(limits::CREW_COMES.1);
                    self.after(limits::CREW_COMES.0 + way, Event::CrewTakes { case: *case });
                }
            }
        }
    }

    fn write(
        &mut self,
        switch: PartId,
        generation: Generation,
        remove: &[Xconnect],
        add: &[Xconnect],
    ) {
        let more = self.truth.delays.exponential(limits::SWITCH_MORE);
        let now = self.truth.now;
        let Some(ocs) = self.truth.switches.get_mut(&switch) else { return };
        if self.truth.mischief.chance(self.truth.dials.lose) {
            // It was lost on its way, as answers are.
            return;
        }
        // A switch works off its writes one after the other.
        ocs.busy_until = ocs.busy_until.max(now) + limits::SWITCH_MIN + more;
        let at = ocs.busy_until;
        let event = |echoed| {
            let (remove, add) = (remove.into(), add.into());
            Event::Write { switch, generation, remove, add, echoed }
        };
        if self.truth.mischief.chance(self.truth.dials.echo) {
            let late = self.truth.mischief.span(limits::ECHO.0, limits::ECHO.1);
            self.at(at + late, event(true));
        }
        self.at(at, event(false));
    }

    fn at(&mut self, at: Moment, event: Event) {
        self.truth.seq += 1;
        self.truth.queue.push(Reverse(Queued { at, seq: self.truth.seq, event }));
    }

    fn after(&mut self, wait: Span, event: Event) {
        self.at(self.truth.now + wait, event);
    }

    fn after_drawn(&mut self, bounds: (Span, Span), event: Event) {
        let wait = self.truth.delays.span(bounds.0, bounds.1);
        self.after(wait, event);
    }

    fn faults_on(&self, part: PartId) -> impl Iterator<Item = &Fault> {
        self.light.on_part[part].iter().map(|id| &self.truth.faults[id])
    }

    fn is_retired(&self, target: Target) -> bool {
        match target {
            Target::Part(part) => self.fabric.part(part).retired,
            Target::Node(node) => self.fabric.part(self.fabric.part_of_node(node)).retired,
            Target::Port(port) => self.fabric.part(self.fabric.part_of_port(port)).retired,
            Target::Link(link) => self.fabric.link_retired(link),
        }
    }

    fn add_switches(&mut self) {
        for (part_id, part) in self.fabric.parts().pairs() {
            let template = self.fabric.template_of(part_id);
            if template.role == Role::CircuitSwitch && !part.retired {
                let sides = template.ports().iter().map(|it| it.side);
                self.truth.switches.entry(part_id).or_insert_with(|| Ocs::new(sides));
            }
        }
    }
}

/// How often each switch has been polled up to a moment.
fn polls_until(now: Moment) -> u64 {
    now.since(Moment::START).div(limits::POLL_EVERY)
}

#[cfg(test)]
mod tests;
