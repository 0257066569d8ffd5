//! A blueprint's life: planned against what the switches were read back as, checked, adopted,
//! written, and taken back where a switch refuses.
//!
//! ```text
//!   unread switches ──► planned ──► written ──► all done ──────────────► links train
//!        (read)            ▲           │  └─ a switch refuses ─► undo ─► ports at fault, other
//!                          └─ stale: read back, planned anew             cubes proposed
//! ```

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fabric::Side;
use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{JobId, PartId, PlanId, PortId};
use selvedge_model::job::Xconnect;
use selvedge_model::unit::Generation;

use crate::core::jobs::Haste;
use crate::core::{Accepted, Adopted, Core, Refused, count};
use crate::input::{Errand, SetOutcome};
use crate::limits::{self, ASKS_MAX};
use crate::note::{Note, Stage, StopWhy};
use crate::output::Command;
use crate::planted::Defect;
use crate::preflight::even;
use crate::state::{Blueprint, Case, Event, JobState, SwitchSet, Timer, Wiring};
use crate::{check, family, wire};

impl Core {
    /// The first stage of a job with outer links.
    pub(super) fn enter_wiring(&mut self, job: JobId) {
        let now = self.state.now;
        self.state.jobs[job].state =
            JobState::Starting { stage: Stage::Wiring, since: now, asks: 1 };
        self.event(job, Event::Staged(Stage::Wiring));
        self.note(Note::JobStaged {
            job,
            attempt: self.state.jobs[job].attempt,
            stage: Stage::Wiring,
        });
        self.plan_wiring(job, None);
    }

    /// Plans against the switches as read back; reads those that are not known first.
    fn plan_wiring(&mut self, job: JobId, parent: Option<PlanId>) {
        let wanted = match self.wanted(job) {
            Ok(wanted) => wanted,
            Err(part) => {
                self.see(Target::Part(part), Symptom::Miswired, None);
                self.fail_start(job, Stage::Wiring);
                return;
            }
        };
        let unread: BTreeSet<PartId> =
            wanted.iter().map(|it| it.0).filter(|it| !self.state.switches[it].known).collect();
        let deadline = self.state.now + self.state.settings.answer_max;
        self.set_timer(Timer::Job(job), deadline);
        if !unread.is_empty() {
            for &switch in &unread {
                self.send(Command::ReadSwitch { switch });
            }
            self.state.awaited.insert(self.errand(job), unread);
            return;
        }
        let sets = wire::changes(&wanted, &self.state.switches);
        self.adopt_wiring(job, parent.or(self.state.jobs[job].blueprint), sets, false);
    }

    /// The pairs that the job's place asks for, or the part that cannot be joined.
    fn wanted(&self, job: JobId) -> Result<Vec<(PartId, Xconnect)>, PartId> {
        let place = self.place_of(job);
        let demand = &self.state.jobs[job].spec.demand;
        family::xconnects(&self.fabric, demand, place).map_err(|_| {
            let uncabled = place.holds.iter().find(|hold| {
                let mut ports = self.fabric.ports_of(hold.part);
                ports.any(|port| self.fabric.link_from(port).is_none())
            });
            uncabled.unwrap_or(&place.holds[0]).part
        })
    }

    /// Makes a blueprint current, once the check has passed, and writes it.
    fn adopt_wiring(
        &mut self,
        job: JobId,
        parent: Option<PlanId>,
        sets: Vec<SwitchSet>,
        undoes: bool,
    ) {
        let planned = Blueprint {
            id: PlanId::new(self.state.n_plans),
            parent,
            generation: self.state.generation.next(),
            job,
            attempt: self.state.jobs[job].attempt,
            sets,
            undoes,
        };
        let violations = check::blueprint(&self.fabric, &self.state, &planned);
        let adopted = self.checked(Adopted::Blueprint(planned), violations.is_empty());
        let Some(Adopted::Blueprint(blueprint)) = adopted else {
            self.note(Note::PlanRefused { job, n_violations: count(violations.len()) });
            self.fail_start(job, Stage::Wiring);
            return;
        };
        self.state.n_plans += 1;
        self.state.generation = blueprint.generation;
        self.note(Note::BlueprintAdopted {
            plan: blueprint.id,
            parent: blueprint.parent,
            generation: blueprint.generation,
            job,
            n_switches: count(blueprint.sets.len()),
            n_removed: blueprint.sets.iter().map(|it| count(it.remove.len())).sum(),
            n_added: blueprint.sets.iter().map(|it| count(it.add.len())).sum(),
        });
        let pending = blueprint.sets.iter().map(|it| it.switch).collect();
        self.state.wirings.insert(
            job,
            Wiring { blueprint, asks: 1, pending, done: BTreeSet::new(), refused: BTreeMap::new() },
        );
        self.send_wiring(job);
        self.set_timer(Timer::Job(job), self.state.now + self.state.settings.answer_max);
        self.wiring_answered(job);
    }

    /// Writes, or writes again, what has not been answered.
    pub(super) fn send_wiring(&mut self, job: JobId) {
        let Some(wiring) = self.state.wirings.get(&job) else {
            // Still reading: ask again.
            let unread = self.state.awaited.get(&self.errand(job)).cloned().unwrap_or_default();
            unread.into_iter().for_each(|switch| self.send(Command::ReadSwitch { switch }));
            return;
        };
        let generation = wiring.blueprint.generation;
        let pending = wiring.blueprint.sets.iter().filter(|it| wiring.pending.contains(&it.switch));
        let commands: Vec<Command> = pending
            .map(|it| Command::SetSwitch {
                switch: it.switch,
                generation,
                remove: it.remove.clone(),
                add: it.add.clone(),
            })
            .collect();
        commands.into_iter().for_each(|command| self.send(command));
    }

    /// A switch has answered a write.
    pub(super) fn switch_set(
        &mut self,
        switch: PartId,
        generation: Generation,
        outcome: SetOutcome,
    ) -> Result<Accepted, Refused> {
        let mut wirings = self.state.wirings.iter_mut();
        let found = wirings
            .find(|(_, it)| it.blueprint.generation == generation && it.pending.contains(&switch));
        let Some((&job, wiring)) = found else { return Err(Refused::Stale) };
        let n_ports = self.fabric.template_of(switch).ports().len();
        let wrong = |what: String| {
            let part = self.fabric.part(switch).name.to_string();
            Err(Refused::DeviceAnswer { part, what })
        };
        let outcome = match outcome {
            SetOutcome::Stale { .. } if self.state.settings.has(Defect::StaleTakenForDone) => {
                SetOutcome::Done
            }
            outcome => outcome,
        };
        match outcome {
            SetOutcome::Done => {
                wiring.pending.remove(&switch);
                wiring.done.insert(switch);
                let set = wiring.blueprint.sets.iter().find(|it| it.switch == switch);
                let set = set.expect("a pending switch has a set");
                let state = self.state.switches.get_mut(&switch).expect("a switch of the plant");
                wire::apply(&mut state.pairs, set);
                state.generation = generation;
            }
            SetOutcome::Refused { ports } => {
                if let Some(port) = ports.iter().find(|&&it| n_ports <= usize::from(it)) {
                    return wrong(format!("port {port} of {n_ports}"));
                }
                wiring.pending.remove(&switch);
                let plan = wiring.blueprint.id;
                let n_ports = count(ports.len());
                wiring.refused.insert(switch, ports);
                self.note(Note::SwitchRefused { switch, plan, n_ports });
            }
            SetOutcome::Stale { newest } => {
                if limits::GENERATION_MAX < newest.number() {
                    return wrong(format!("generation {newest}"));
                }
                // Somebody wrote after us: what stands there is read before anything is planned.
                let state = self.state.switches.get_mut(&switch).expect("a switch of the plant");
                state.known = false;
                self.state.generation = self.state.generation.max(newest);
                self.note(Note::SwitchStale { switch, newest });
                self.send(Command::ReadSwitch { switch });
                return Ok(Accepted::Done);
            }
        }
        self.wiring_answered(job);
        Ok(Accepted::Done)
    }

    /// Goes on if all switches have answered.
    fn wiring_answered(&mut self, job: JobId) {
        let Some(wiring) = self.state.wirings.get(&job) else { return };
        if !wiring.pending.is_empty() {
            return;
        }
        let wiring = self.state.wirings.remove(&job).expect("found above");
        let Wiring { blueprint, refused, done, .. } = wiring;
        let starts = matches!(self.state.jobs[job].state, JobState::Starting { .. });
        if refused.is_empty() && starts {
            let known = &mut self.state.jobs[job];
            known.generation = Some(blueprint.generation);
            known.blueprint = Some(blueprint.id);
            self.note(Note::BlueprintDone { plan: blueprint.id, job });
            self.advance(job, Stage::Wiring);
            return;
        }
        if starts {
            // The job keeps its parts while what was written is taken back: whoever is placed on
            // them next must find the mirrors at rest.
            self.undo_wiring(job, &blueprint, &done);
            self.fail_start(job, Stage::Wiring);
        }
        for (&switch, ports) in &refused {
            self.blame_ports(switch, ports);
        }
        if let JobState::Stopping { why, .. } = self.state.jobs[job].state
            && !self.state.wirings.contains_key(&job)
        {
            // What could not be taken back is at fault by now, and nobody is placed on it.
            self.outcome(job, why);
        }
    }

    /// Ports that a switch refuses are at fault; so many in so short a time have one cause, and
    /// are one case of the switch.
    fn blame_ports(&mut self, switch: PartId, ports: &[u16]) {
        let lately = |case: &Case| {
            case.symptom == Symptom::PortFailed
                && self.state.now.since(case.opened) <= limits::SWITCH_WINDOW
                && self.is_at(case.target, Target::Part(switch))
        };
        let open = self.state.open_cases.values().map(|&it| &self.state.cases[it]);
        let n_before = open.filter(|it| lately(it)).count();
        if limits::SWITCH_PORTS_MAX < n_before + ports.len() {
            self.see(Target::Part(switch), Symptom::PortFailed, None);
            return;
        }
        for &port in ports {
            let port = self.fabric.port_at(switch, port as usize);
            self.see(self.named(Target::Port(port)), Symptom::PortFailed, None);
        }
    }

    /// Whether a port, or one end of a cable, is on the switch that is `owner`.
    pub(super) fn is_at(&self, target: Target, owner: Target) -> bool {
        let Target::Part(switch) = owner else { return false };
        let on = |port: PortId| self.is_switch(switch) && self.fabric.part_of_port(port) == switch;
        match target {
            Target::Port(port) => on(port),
            Target::Link(link) => {
                let link = self.fabric.link(link);
                on(link.source) || on(link.target)
            }
            Target::Part(_) | Target::Node(_) => false,
        }
    }

    /// Writes back what stood before `blueprint`, where it was carried out.
    fn undo_wiring(&mut self, job: JobId, blueprint: &Blueprint, done: &BTreeSet<PartId>) {
        let is_ours = |end: PortId| {
            let part = self.fabric.part_of_port(end);
            let own = self.place_of(job).holds.iter().any(|it| it.part == part);
            own || self.state.parts[part].held == 0
        };
        // A port that has gone to another job since is that job's to join.
        let may_add = |switch: PartId, pair: &Xconnect| {
            let mut ports = [pair.north, pair.south].into_iter();
            ports.all(|port| {
                let peer = self.fabric.peer_of(self.fabric.port_at(switch, port as usize));
                peer.is_none_or(is_ours)
            })
        };
        let sets = wire::undo(blueprint, |switch| done.contains(&switch), may_add);
        if !sets.is_empty() {
            self.adopt_wiring(job, Some(blueprint.id), sets, true);
        }
    }

    /// The writes of a job that is to stop are not answered.
    pub(super) fn wiring_due(&mut self, job: JobId, why: StopWhy) {
        let wiring = self.state.wirings.get_mut(&job).expect("the caller looked");
        wiring.asks += 1;
        if wiring.asks <= ASKS_MAX {
            self.send_wiring(job);
            self.set_timer(Timer::Job(job), self.state.now + self.state.settings.answer_max);
        } else {
            self.give_up_wiring(job);
            // The silence may have given a stronger reason.
            let why = match self.state.jobs[job].state {
                JobState::Stopping { why, .. } => why,
                _ => why,
            };
            self.outcome(job, why);
        }
    }

    /// The reads or writes of a start were never answered.  That is no fault of the job's: it waits
    /// until the switch answers, or goes elsewhere, as often as need be.
    pub(super) fn wiring_silent(&mut self, job: JobId) {
        let silent = self.give_up_wiring(job);
        let cases = silent.iter().filter_map(|it| self.state.open_cases.get(&Target::Part(*it)));
        match cases.min().copied() {
            Some(case) if matches!(self.state.jobs[job].state, JobState::Starting { .. }) => {
                self.stop(job, StopWhy::Fault { case }, Haste::AtOnce);
            }
            _ => self.fail_start(job, Stage::Wiring),
        }
    }

    /// Counts those that were asked and did not answer as silent, and returns them.  What they hold
    /// is unknown until they are read.
    fn give_up_wiring(&mut self, job: JobId) -> Vec<PartId> {
        let reads = self.state.awaited.remove(&self.errand(job)).unwrap_or_default();
        let writes = self.state.wirings.remove(&job).map(|it| it.pending).unwrap_or_default();
        let silent: Vec<PartId> = reads.into_iter().chain(writes).collect();
        for &switch in &silent {
            if let Some(state) = self.state.switches.get_mut(&switch) {
                state.known = false;
            }
            self.fall_silent(switch);
        }
        silent
    }

    /// A switch has said how it stands.
    pub(super) fn switch_read(
        &mut self,
        switch: PartId,
        generation: Generation,
        pairs: &[Xconnect],
    ) -> Result<Accepted, Refused> {
        let pairs = self.possible_pairs(switch, generation, pairs)?;
        let state = self.state.switches.get_mut(&switch).expect("looked at above");
        if state.known && generation < state.generation {
            // Read before the write that it has acknowledged since: an answer that came late.
            return Err(Refused::Stale);
        }
        let n_pairs = count(pairs.iter().filter(|it| state.pairs.get(it.0) != Some(it.1)).count());
        let differs = pairs != state.pairs;
        let was_known = state.known;
        state.pairs = pairs;
        state.known = true;
        state.generation = generation;
        self.state.generation = self.state.generation.max(generation);
        self.clear_timer(Timer::Switch(switch));
        self.answers(switch);
        if differs && was_known {
            self.note(Note::SwitchDiffered { switch, n_pairs });
        }
        self.resume_wirings(switch);
        if differs {
            self.look_at_jobs_on(switch);
        }
        self.case_switch_read(switch);
        self.heard_again(switch);
        self.dirty = true;
        Ok(Accepted::Done)
    }

    /// What a switch says of itself, as a table; an answer that no switch can give is refused, so
    /// that the switch counts as silent.
    fn possible_pairs(
        &self,
        switch: PartId,
        generation: Generation,
        pairs: &[Xconnect],
    ) -> Result<BTreeMap<u16, u16>, Refused> {
        if !self.state.switches.contains_key(&switch) {
            return Err(Refused::NoTarget { target: Target::Part(switch) });
        }
        let wrong = |what: String| {
            let part = self.fabric.part(switch).name.to_string();
            Err(Refused::DeviceAnswer { part, what })
        };
        if limits::GENERATION_MAX < generation.number() {
            return wrong(format!("generation {generation}"));
        }
        let ports = self.fabric.template_of(switch).ports();
        let is_on =
            |port: u16, side| ports.get(usize::from(port)).is_some_and(|it| it.side == side);
        let (mut norths, mut souths) = (BTreeMap::new(), BTreeSet::new());
        for pair in pairs {
            let (north, south) = (pair.north, pair.south);
            if !is_on(north, Side::North) || !is_on(south, Side::South) {
                return wrong(format!("a pair of ports {north} and {south}"));
            }
            if norths.insert(north, south).is_some() || !souths.insert(south) {
                return wrong(format!("port {north} or {south} in two pairs"));
            }
        }
        Ok(norths)
    }

    /// Jobs that waited for this switch to be read go on.
    fn resume_wirings(&mut self, switch: PartId) {
        let waiting: Vec<JobId> = self
            .state
            .awaited
            .iter()
            .filter_map(|(errand, parts)| match errand {
                Errand::Job(job, _) if parts.contains(&switch) => Some(*job),
                Errand::Job(..) | Errand::Case(..) => None,
            })
            .collect();
        for job in waiting {
            let is_wiring = matches!(
                self.state.jobs[job].state,
                JobState::Starting { stage: Stage::Wiring, .. }
            );
            if is_wiring && self.answered(job, switch) {
                self.plan_wiring(job, None);
            }
        }
        let mut writing: Vec<JobId> = Vec::new();
        for (&job, wiring) in &self.state.wirings {
            if wiring.pending.contains(&switch) {
                writing.push(job);
            }
        }
        for job in writing {
            self.reconcile(job, switch);
        }
    }

    /// A write that is not answered, and the switch as it was read: it has happened, or it is
    /// planned anew under a new number.
    fn reconcile(&mut self, job: JobId, switch: PartId) {
        let wiring = self.state.wirings.get_mut(&job).expect("the caller looked");
        let set = wiring.blueprint.sets.iter().find(|it| it.switch == switch);
        let set = set.expect("a pending switch has a set");
        let pairs = &self.state.switches[&switch].pairs;
        let stands = set.add.iter().all(|it| pairs.get(&it.north) == Some(&it.south))
            && set
                .remove
                .iter()
                .all(|it| set.add.contains(it) || pairs.get(&it.north) != Some(&it.south));
        if stands {
            wiring.pending.remove(&switch);
            wiring.done.insert(switch);
            self.wiring_answered(job);
            return;
        }
        if self.state.switches[&switch].generation < wiring.blueprint.generation {
            // The write may still be on its way; it is asked for again at its deadline.
            return;
        }
        let parent = wiring.blueprint.id;
        // An undo, or a job that was told to stop meanwhile.
        let stopping = matches!(self.state.jobs[job].state, JobState::Stopping { .. });
        if stopping {
            // Nothing more is written for a job that leaves.
            wiring.pending.remove(&switch);
            self.wiring_answered(job);
            return;
        }
        self.state.wirings.remove(&job);
        self.plan_wiring(job, Some(parent));
    }

    /// The switch does not stand as the jobs on it need: their links are at fault.
    fn look_at_jobs_on(&mut self, switch: PartId) {
        let mut wrong: Vec<Target> = Vec::new();
        for &job in &self.state.active {
            let known = &self.state.jobs[job];
            let settled = match &known.state {
                JobState::Starting { stage, .. } => *stage != Stage::Wiring,
                JobState::Running { .. } => true,
                _ => false,
            };
            if !settled || known.generation.is_none() {
                continue;
            }
            let Ok(wanted) = self.wanted(job) else { continue };
            let pairs = &self.state.switches[&switch].pairs;
            for (_, pair) in wanted.iter().filter(|it| it.0 == switch) {
                if pairs.get(&pair.north) != Some(&pair.south) {
                    let port = self.fabric.port_at(switch, pair.north as usize);
                    wrong.push(self.named(Target::Port(port)));
                }
            }
        }
        wrong.into_iter().for_each(|target| self.see(target, Symptom::Miswired, None));
    }

    /// What people and cases call a thing: a link end goes by its link's even direction.
    pub fn named(&self, target: Target) -> Target {
        match target {
            Target::Port(port) => match self.fabric.link_from(port) {
                Some(link) => Target::Link(even(link)),
                None => target,
            },
            Target::Link(link) => Target::Link(even(link)),
            Target::Part(_) | Target::Node(_) => target,
        }
    }
}
