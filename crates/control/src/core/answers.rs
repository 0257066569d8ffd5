//! What devices answer and health daemons report.

use std::collections::BTreeSet;

use selvedge_model::fabric::Role;
use selvedge_model::fault::{Mark, Symptom, Target};
use selvedge_model::id::{JobId, PartId, PortId};
use selvedge_model::unit::{Generation, Moment};

use crate::capacity;
use crate::core::{Accepted, Core, Refused, count};
use crate::input::{Answer, Errand, Readings, Task};
use crate::note::{Note, Owner, Stage};
use crate::planted::Defect;
use crate::state::{Drain, Event, JobState, Timer};
use crate::{family, limits, preflight};

impl Core {
    pub(super) fn answer(&mut self, answer: Answer) -> Result<Accepted, Refused> {
        match answer {
            Answer::SwitchRead { switch, generation, pairs } => {
                self.switch_read(switch, generation, &pairs)
            }
            Answer::SwitchSet { switch, generation, outcome } => {
                self.switch_set(switch, generation, outcome)
            }
            Answer::LinksTrained { errand, failed } => {
                let job = self.job_at(errand, Stage::Training)?;
                self.known_ports(&failed)?;
                self.links_trained(job, &failed);
                Ok(Accepted::Done)
            }
            Answer::Inspected { errand, part, readings } => self.inspected(errand, part, &readings),
            Answer::Exercised { errand, failed } => self.exercised(errand, &failed),
            Answer::Discovered { errand, part, peers } => {
                let job = self.job_at(errand, Stage::Discovering)?;
                self.awaits(errand, part)?;
                preflight::check_peers(&self.fabric, part, &peers)?;
                self.discovered(job, part, peers);
                Ok(Accepted::Done)
            }
            Answer::Programmed { errand, part, newer } => self.programmed(errand, part, newer),
            Answer::Started { job, attempt } => self.started(job, attempt),
            Answer::Tasks { job, attempt, tasks } => {
                self.alive(job, attempt)?;
                self.tasks(job, tasks)
            }
            Answer::Stopped { job, attempt, .. } if self.is_stray(job, attempt) => {
                self.stray_ended(job, attempt);
                Ok(Accepted::Done)
            }
            Answer::Stopped { job, attempt, exit, kept } => {
                self.alive(job, attempt)?;
                self.stopped(job, exit, kept);
                Ok(Accepted::Done)
            }
        }
    }

    /// Whether the tasks of this start of `job` may run.
    fn alive(&self, job: JobId, attempt: u32) -> Result<(), Refused> {
        let known = self.known_job(job)?;
        let alive = match known.state {
            JobState::Running { .. } | JobState::Stopping { .. } => true,
            JobState::Starting { stage, .. } => stage == Stage::Dispatching,
            _ => false,
        };
        if !alive || known.attempt != attempt || self.state.wirings.contains_key(&job) {
            return Err(Refused::Stale);
        }
        Ok(())
    }

    /// How the processes of a job stand, if that is news.
    fn tasks(&mut self, job: JobId, tasks: Vec<Task>) -> Result<Accepted, Refused> {
        for task in &tasks {
            self.known_target(task.machine)?;
        }
        let n = family::n_tasks(&self.state.jobs[job].spec.demand, self.need_of(job));
        let known = &mut self.state.jobs[job];
        let is_program = known.spec.work.program().is_some();
        if !is_program || n as usize != tasks.len() || known.tasks == tasks {
            return Err(Refused::Stale);
        }
        known.tasks = tasks;
        Ok(Accepted::Done)
    }

    /// The job that an answer is for, if it is still at that stage.
    fn job_at(&self, errand: Errand, stage: Stage) -> Result<JobId, Refused> {
        let Errand::Job(job, attempt) = errand else { return Err(Refused::Stale) };
        let known = self.state.jobs.get(job).ok_or(Refused::Stale)?;
        let JobState::Starting { stage: at, .. } = known.state else { return Err(Refused::Stale) };
        if known.attempt != attempt || at != stage {
            return Err(Refused::Stale);
        }
        Ok(job)
    }

    pub(super) fn awaits(&self, errand: Errand, part: PartId) -> Result<(), Refused> {
        let awaited = self.state.awaited.get(&errand).is_some_and(|it| it.contains(&part));
        if awaited { Ok(()) } else { Err(Refused::Stale) }
    }

    fn known_ports(&self, ports: &[PortId]) -> Result<(), Refused> {
        match ports.iter().find(|it| self.fabric.n_ports() <= it.idx()) {
            Some(&port) => Err(Refused::NoTarget { target: Target::Port(port) }),
            None => Ok(()),
        }
    }

    fn inspected(
        &mut self,
        errand: Errand,
        part: PartId,
        readings: &Readings,
    ) -> Result<Accepted, Refused> {
        if let Errand::Case(case, _) = errand {
            return self.case_inspected(case, errand, part, readings);
        }
        let job = self.job_at(errand, Stage::Inspecting)?;
        self.awaits(errand, part)?;
        let place = self.place_of(job);
        let hold = place.holds.iter().find(|it| it.part == part).copied();
        let hold = hold.expect("awaited parts are the job's");
        let uses = |port: PortId| family::uses_cable(&self.fabric, place, port);
        let findings = preflight::judge(&self.fabric, part, hold.seats, &uses, readings)?;
        for found in &findings {
            self.see(self.named(found.target), found.symptom, Some(found.value));
        }
        for found in preflight::doubts(&self.fabric, part) {
            // It stays as it is until somebody changes the file: to say it once is enough.
            if !self.state.sightings.contains_key(&(found.target, found.symptom)) {
                self.see(found.target, found.symptom, Some(found.value));
            }
        }
        if !findings.is_empty() {
            self.found(job, Stage::Inspecting);
        }
        // At level observe the start goes on; otherwise the job has left this stage.
        if self.job_at(errand, Stage::Inspecting).is_ok() && self.answered(job, part) {
            self.advance(job, Stage::Inspecting);
        }
        Ok(Accepted::Done)
    }

    fn exercised(&mut self, errand: Errand, failed: &[Target]) -> Result<Accepted, Refused> {
        for &target in failed {
            self.known_target(target)?;
        }
        if let Errand::Case(case, _) = errand {
            return self.case_exercised(case, errand, failed);
        }
        let job = self.job_at(errand, Stage::Exercising)?;
        // What a device says of a cable that the job does without is another's to hear.
        let place = self.place_of(job);
        let is_own = |it: &&Target| family::uses_as_cable(&self.fabric, place, self.named(**it));
        let failed: Vec<Target> = failed.iter().filter(is_own).copied().collect();
        for &target in &failed {
            self.see(self.named(target), Symptom::ExerciseFailed, None);
        }
        if !failed.is_empty() {
            self.found(job, Stage::Exercising);
        }
        if self.job_at(errand, Stage::Exercising).is_ok() {
            self.state.awaited.remove(&errand);
            self.advance(job, Stage::Exercising);
        }
        Ok(Accepted::Done)
    }

    fn programmed(
        &mut self,
        errand: Errand,
        part: PartId,
        newer: Option<Generation>,
    ) -> Result<Accepted, Refused> {
        let job = self.job_at(errand, Stage::Programming)?;
        self.awaits(errand, part)?;
        match newer {
            None if self.answered(job, part) => self.advance(job, Stage::Programming),
            None => (),
            Some(newer) if limits::GENERATION_MAX < newer.number() => {
                let part = self.fabric.part(part).name.to_string();
                return Err(Refused::DeviceAnswer { part, what: format!("generation {newer}") });
            }
            Some(newer) => {
                // Somebody wrote after us.  The stage's deadline asks again, with a newer number.
                self.state.generation = self.state.generation.max(newer);
                self.note(Note::TableStale { part, newer });
            }
        }
        Ok(Accepted::Done)
    }

    /// One part's chips have said what they see.  Once all have, the slice as a whole is held
    /// against the request.
    fn discovered(&mut self, job: JobId, part: PartId, peers: Vec<Option<PortId>>) {
        self.state.seen.entry(job).or_default().insert(part, peers);
        if !self.answered(job, part) {
            return;
        }
        let mut seen = self.state.seen.remove(&job).unwrap_or_default();
        let place = self.place_of(job);
        let seen: Vec<Vec<Option<PortId>>> =
            place.holds.iter().map(|it| seen.remove(&it.part).unwrap_or_default()).collect();
        let demand = &self.state.jobs[job].spec.demand;
        let Err(differs) = family::discover(&self.fabric, demand, place, &seen) else {
            self.advance(job, Stage::Discovering);
            return;
        };
        let (n_ports, n_chips_lost) = (count(differs.ports.len()), count(differs.n_chips_lost));
        self.note(Note::DiscoveryDiffered { job, n_ports, n_chips_lost });
        for port in differs.ports {
            self.see(self.named(Target::Port(port)), Symptom::Miswired, None);
        }
        // A slice that is not what was asked for is never run, whatever the level.
        self.fail_start(job, Stage::Discovering);
    }

    fn started(&mut self, job: JobId, attempt: u32) -> Result<Accepted, Refused> {
        let known = self.known_job(job)?;
        let JobState::Starting { stage: Stage::Dispatching, .. } = known.state else {
            return Err(Refused::Stale);
        };
        if known.attempt != attempt {
            return Err(Refused::Stale);
        }
        let now = self.state.now;
        let errand = self.errand(job);
        self.state.awaited.remove(&errand);
        self.clear_timer(Timer::Job(job));
        let known = &mut self.state.jobs[job];
        known.state = JobState::Running { since: now };
        known.n_bad_starts = 0;
        known.first_started.get_or_insert(now);
        let waited = now.since(known.submitted);
        let (limit, preemptible) = (known.spec.limit, known.spec.preemptible);
        if let Some(limit) = limit.filter(|_| !self.state.settings.has(Defect::LimitIgnored)) {
            self.set_timer(Timer::Job(job), now + limit);
        }
        // A head of higher priority may have waited until this job could be stopped for it.
        self.dirty |= preemptible && !self.state.queue.is_empty();
        self.event(job, Event::Started);
        self.note(Note::JobStarted { job, attempt, waited });
        Ok(Accepted::Done)
    }

    /// What a health daemon saw.
    pub(super) fn report(
        &mut self,
        target: Target,
        symptom: Symptom,
        value: Option<u32>,
    ) -> Result<Accepted, Refused> {
        self.known_target(target)?;
        match self.named(target) {
            Target::Part(switch) if symptom == Symptom::Silent && self.is_switch(switch) => {
                self.fall_silent(switch);
            }
            target => self.see(target, symptom, value),
        }
        Ok(Accepted::Done)
    }

    /// A mark is evidence against the machine that the replica ran on.
    pub(super) fn marked(&mut self, target: Target, mark: Mark) -> Result<Accepted, Refused> {
        self.known_target(target)?;
        let Some(target) = family::host_at(&self.fabric, target) else {
            return Err(Refused::NotAHost { name: self.fabric.path(target) });
        };
        if limits::REPLICAS_MAX <= mark.set {
            return Err(Refused::NoReplica { set: mark.set });
        }
        if let Some(job) = mark.job {
            self.could_be_marked(job, target)?;
        }
        let now = self.state.now;
        let marks = self.state.marks.entry(target).or_default();
        // Who did not hear the answer says it again.
        let is_again =
            |(at, said): &(Moment, Mark)| *said == mark && now.since(*at) < limits::MARK_AGAIN;
        if marks.iter().any(is_again) {
            return Ok(Accepted::Done);
        }
        if limits::MARKS_MAX <= marks.len() {
            marks.remove(0);
        }
        marks.push((self.state.now, mark));
        let Mark { job, rank, set, call, byte } = mark;
        self.note(Note::ReplicaMarked { target, job, rank, set, call });
        let value = byte.map(|it| u32::try_from(it).unwrap_or(u32::MAX));
        self.see(target, Symptom::Marked, value);
        Ok(Accepted::Done)
    }

    /// Whether a job has replicas, and this machine.
    fn could_be_marked(&self, job: JobId, target: Target) -> Result<(), Refused> {
        let known = self.known_job(job)?;
        if known.spec.redundancy < limits::REPLICAS_MAX {
            return Err(Refused::NoReplicas { job });
        }
        // Whoever tells of it does so while it runs.
        let place = known.place.as_ref();
        if !place.is_some_and(|it| family::runs_on(&self.fabric, it, target)) {
            return Err(Refused::NotOfJob { name: self.fabric.path(target), job });
        }
        Ok(())
    }

    pub(super) fn known_job(&self, job: JobId) -> Result<&crate::state::Job, Refused> {
        let n = self.state.jobs.len();
        self.state.jobs.get(job).ok_or(Refused::NoJob { job, n })
    }

    pub(super) fn known_target(&self, target: Target) -> Result<(), Refused> {
        let fabric = &self.fabric;
        let there = match target {
            Target::Part(part) => fabric.parts().get(part).is_some_and(|it| !it.retired),
            Target::Node(node) => {
                node.idx() < fabric.n_nodes() && !fabric.part(fabric.part_of_node(node)).retired
            }
            Target::Port(port) => {
                port.idx() < fabric.n_ports() && !fabric.part(fabric.part_of_port(port)).retired
            }
            Target::Link(link) => link.idx() < fabric.n_links() && !fabric.link_retired(link),
        };
        if there { Ok(()) } else { Err(Refused::NoTarget { target }) }
    }

    /// The process has started again: nothing that was sent can be trusted to have arrived.
    pub(super) fn restarted(&mut self) -> Result<Accepted, Refused> {
        self.forget_at_restart();
        for state in self.state.switches.values_mut() {
            state.known &= self.state.settings.has(Defect::StaleBlueprint);
        }
        self.wake = selvedge_model::unit::Moment::NEVER;
        self.read_switches();
        self.end_strays();
        for job in self.state.active.clone() {
            let attempt = self.state.jobs[job].attempt;
            match self.state.jobs[job].state.clone() {
                JobState::Starting { stage, .. } => self.ask_stage(job, stage),
                // Told again, the world repeats what it has answered; an end is not missed.
                JobState::Running { .. } if !self.state.settings.has(Defect::EndMissed) => {
                    self.send_start(job);
                }
                JobState::Stopping { .. } if self.state.wirings.contains_key(&job) => {
                    self.send_wiring(job);
                }
                JobState::Stopping { killed, kill_at, .. } => {
                    let grace = kill_at.since(self.state.now);
                    if killed {
                        self.send(crate::output::Command::Kill { job, attempt });
                    } else {
                        self.send(crate::output::Command::Notify { job, attempt, grace });
                    }
                }
                _ => (),
            }
        }
        self.resend_cases();
        // Who was planning is gone.
        self.forget_plan();
        self.dirty = true;
        Ok(Accepted::Done)
    }

    /// What a defect forgets when the process has started again: nothing without one.
    fn forget_at_restart(&mut self) {
        if self.state.settings.has(Defect::GenerationReused) {
            self.state.generation = Generation::ZERO;
        }
        if self.state.settings.has(Defect::HoldForgotten) {
            let ids: Vec<JobId> = self.state.jobs.ids().collect();
            for job in ids {
                if let JobState::Queued { held, .. } = &mut self.state.jobs[job].state {
                    *held = false;
                    self.enqueue(job);
                }
            }
        }
    }

    /// Recounts what is out of use from the list of drains.
    pub(super) fn recount_outages(&mut self) {
        for part in self.state.parts.iter_mut() {
            part.out = 0;
            part.links_out.clear();
            part.outer_out = 0;
            part.cut.clear();
        }
        let counts = |drains: &[Drain]| {
            let by_people = |it: &Drain| matches!(it.by, Owner::Person(_));
            !self.state.settings.has(Defect::DrainNotCounted) || !drains.iter().all(by_people)
        };
        let mut out: Vec<Target> =
            self.state.drains.iter().filter(|it| counts(it.1)).map(|it| *it.0).collect();
        out.extend(self.silent_and_used());
        for target in out {
            for (part, outage) in capacity::outage(&self.fabric, target) {
                self.state.parts[part].worsen(&outage);
            }
        }
        for hold in self.state.strays.values().flatten() {
            self.state.parts[hold.part].out |= hold.seats;
        }
        self.dirty = true;
    }

    /// All that nobody is placed on: what is drained, and switches that do not answer.
    pub(super) fn out_of_use(&self) -> BTreeSet<Target> {
        self.state.drains.keys().copied().chain(self.silent_and_used()).collect()
    }

    /// Switches that do not answer and are not drained, whatever the level: nobody can be wired
    /// through them.
    fn silent_and_used(&self) -> impl Iterator<Item = Target> + '_ {
        let silent = self.state.switches.iter().filter(|(_, it)| it.silent.is_some());
        let targets = silent.map(|(&switch, _)| Target::Part(switch));
        targets.filter(|it| !self.state.drains.contains_key(it))
    }

    /// Whether a part of the plant is a circuit switch.
    pub(super) fn is_switch(&self, part: PartId) -> bool {
        self.fabric.template_of(part).role == Role::CircuitSwitch
    }
}
