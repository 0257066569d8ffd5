//! What people and programs ask for.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fabric::{Fabric, Role, Side};
use selvedge_model::fault::{Severity, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId, PlanId, PortId};
use selvedge_model::job::JobSpec;
use selvedge_model::spec::plant::{Named, Patch};
use selvedge_model::spec::{At, Plant};
use selvedge_model::unit::Span;

use crate::core::jobs::{Haste, is_nothing};
use crate::core::{Accepted, Core, Refused, count, fabric_of};
use crate::family;
use crate::input::{Ask, JobOrder};
use crate::limits;
use crate::note::{CaseState, Note, Owner, StopWhy};
use crate::planted::Defect;
use crate::settings::Level;
use crate::state::{Closing, Drain, Event, Job, JobState, Maintenance, Timer};

impl Core {
    pub(super) fn ask(&mut self, by: String, what: Ask) -> Result<Accepted, Refused> {
        match what {
            Ask::Submit { key, spec } => self.submit(by, key, spec),
            Ask::Job { job, order } => self.order(by, job, order),
            Ask::Drain { target, why } => self.drain(by, target, why),
            Ask::Undrain { target } => self.undrain(by, target),
            Ask::UndrainRetired { path } => self.undrain_retired(by, path),
            Ask::TakeRepair { case } => self.take_repair(by, case),
            Ask::FinishRepair { case } => self.finish_repair(by, case),
            Ask::MovePort { from, to } => self.move_port(from, to),
            Ask::Maintain { targets, n_at_once, work, why } => {
                self.maintain(by, targets, n_at_once, work, why)
            }
            Ask::Defragment { plan } => self.defragment(plan),
            Ask::ApplyPlant { plant, expected } => self.apply_plant(plant, expected),
            Ask::SetLevel { level } => {
                self.state.settings.level = level;
                self.note(Note::LevelSet { level, by });
                self.reconsider_cases();
                Ok(Accepted::Done)
            }
        }
    }

    /// What a submit would be refused for; the job in its canonical form otherwise.
    pub(super) fn acceptable(
        &self,
        spec: &JobSpec,
    ) -> Result<(JobSpec, selvedge_model::job::Need), Refused> {
        spec.check()?;
        let demand = family::sized(&self.fabric, &self.layout, &spec.demand);
        let (demand, need) = family::need(&demand)?;
        if !family::could_hold(&self.fabric, &self.layout, &demand, &need) {
            let pools = self.layout.pools.pairs();
            let serving = pools
                .filter(|(pool, _)| family::serves(&self.fabric, &self.layout, *pool, &demand));
            let largest = serving.max_by_key(|(_, parts)| parts.len());
            let n_parts = largest.map_or(0, |(_, parts)| parts.len());
            let site = largest.and_then(|(pool, _)| self.layout.sites[pool].as_ref());
            let sides = site.map(|it| it.rows_and_columns(it.ground().grid().sides));
            return Err(Refused::TooLarge { demand, n_parts, sides });
        }
        let mut spec = spec.clone();
        spec.demand = demand;
        let n = family::n_tasks(&spec.demand, &need);
        if 1 < spec.redundancy && n < u32::from(limits::REPLICAS_MAX) {
            return Err(Refused::TooFewMachines { demand: spec.demand, n });
        }
        if spec.work.program().is_some() {
            let n = family::n_tasks(&spec.demand, &need);
            let n_others = self.n_tasks();
            if limits::TASKS_MAX < n.saturating_add(n_others) {
                let (demand, max) = (spec.demand, limits::TASKS_MAX);
                return Err(Refused::TooManyTasks { demand, n, n_others, max });
            }
        }
        Ok((spec, need))
    }

    /// What `n_jobs` submits of `spec` would be refused for, before the first of them is made.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_array(&self, spec: &JobSpec, n_jobs: u32) -> Result<(), Refused> {
        let (spec, need) = self.acceptable(spec)?;
        let n_waiting = self.state.queue.len();
        if limits::QUEUE_MAX < n_waiting.saturating_add(n_jobs as usize) {
            return Err(Refused::QueueFull { n: n_waiting });
        }
        if spec.work.program().is_some() {
            let n = family::n_tasks(&spec.demand, &need).saturating_mul(n_jobs);
            let (n_others, max) = (self.n_tasks(), limits::TASKS_MAX);
            if max < n.saturating_add(n_others) {
                return Err(Refused::TooManyTasks { demand: spec.demand, n, n_others, max });
            }
        }
        Ok(())
    }

    /// Real tasks of the jobs that are not over.
    fn n_tasks(&self) -> u32 {
        let jobs = self.state.jobs.pairs();
        let real = jobs.filter(|(_, it)| !it.state.is_over() && it.spec.work.program().is_some());
        real.map(|(id, job)| family::n_tasks(&job.spec.demand, self.need_of(id))).sum()
    }

    fn submit(
        &mut self,
        by: String,
        key: Option<String>,
        spec: JobSpec,
    ) -> Result<Accepted, Refused> {
        if let Some(key) = &key {
            if limits::KEY_MAX < key.len() {
                return Err(Refused::TooLong { what: "the key", max: limits::KEY_MAX });
            }
            if let Some(&job) = self.state.keys.get(key) {
                return Err(Refused::KeyUsed { job });
            }
        }
        if limits::QUEUE_MAX <= self.state.queue.len() {
            return Err(Refused::QueueFull { n: self.state.queue.len() });
        }
        let (spec, need) = self.acceptable(&spec)?;
        self.learn(&spec.demand, || need);
        let now = self.state.now;
        let nothing = is_nothing(&spec.work);
        let job = self.state.jobs.push(Job {
            spec,
            by,
            submitted: now,
            state: JobState::Queued { since: now, not_before: now, held: false },
            attempt: 0,
            place: None,
            generation: None,
            blueprint: None,
            placed_at: now,
            waited: Span::ZERO,
            first_started: None,
            ended: None,
            claims: false,
            next: None,
            kept: 0,
            n_failed: 0,
            n_bad_starts: 0,
            n_interrupted: 0,
            n_preempted: 0,
            tasks: Vec::new(),
            allocated: Span::ZERO,
            timeline: Vec::new(),
        });
        if let Some(key) = key.filter(|_| !self.state.settings.has(Defect::KeyForgotten)) {
            self.state.keys.insert(key.clone(), job);
            self.state.key_order.insert(job, key);
            if limits::KEYS_MAX < self.state.key_order.len()
                && let Some((_, oldest)) = self.state.key_order.pop_first()
            {
                self.state.keys.remove(&oldest);
            }
        }
        self.event(job, Event::Submitted);
        self.note(Note::JobSubmitted { job });
        if nothing {
            // No work needs no hardware.
            self.end(job, JobState::Finished);
        } else {
            self.enqueue(job);
        }
        Ok(Accepted::Job(job))
    }

    fn order(&mut self, by: String, job: JobId, order: JobOrder) -> Result<Accepted, Refused> {
        let state = self.known_job(job)?.state.clone();
        let word = match state {
            JobState::Queued { held: true, .. } => "held",
            _ => state.word(),
        };
        let refuse = |order| Err(Refused::JobState { job, word, order });
        match order {
            JobOrder::Cancel if state.is_over() => return refuse("cancelled"),
            JobOrder::Cancel => self.stop(job, StopWhy::Cancelled, Haste::WithNotice),
            JobOrder::Hold => {
                let JobState::Queued { since, not_before, held: false } = state else {
                    return refuse("held");
                };
                if self.state.jobs[job].place.is_some() {
                    self.requeue(job, StopWhy::Requeued, self.state.now);
                }
                self.dequeue(job);
                self.state.jobs[job].claims = false;
                self.state.jobs[job].state = JobState::Queued { since, not_before, held: true };
                self.note(Note::JobHeld { job, by });
                self.dirty = true;
            }
            JobOrder::Release => {
                let JobState::Queued { since, not_before, held: true } = state else {
                    return refuse("released");
                };
                self.state.jobs[job].state = JobState::Queued { since, not_before, held: false };
                self.note(Note::JobReleased { job, by });
                self.enqueue(job);
            }
            JobOrder::Requeue => match state {
                JobState::Starting { .. } | JobState::Running { .. } => {
                    self.stop(job, StopWhy::Requeued, Haste::WithNotice);
                }
                _ => return refuse("requeued"),
            },
        }
        Ok(Accepted::Done)
    }

    fn drain(&mut self, by: String, target: Target, why: String) -> Result<Accepted, Refused> {
        self.known_target(target)?;
        if limits::WHY_MAX < why.len() {
            return Err(Refused::TooLong { what: "the reason", max: limits::WHY_MAX });
        }
        let target = self.named(target);
        let n = self.state.drains.get(&target).map_or(0, Vec::len);
        if limits::DRAINS_MAX <= n {
            return Err(Refused::DrainsFull { name: self.fabric.path(target), n });
        }
        self.take_out(target, Owner::Person(by), why, true);
        self.evict(target, StopWhy::Drained { target }, Haste::WithNotice);
        Ok(Accepted::Done)
    }

    fn undrain(&mut self, by: String, target: Target) -> Result<Accepted, Refused> {
        self.known_target(target)?;
        let target = self.named(target);
        let owner = Owner::Person(by.clone());
        let clears_all = self.state.settings.has(Defect::DrainClearedByAnother);
        let drains = self.state.drains.get_mut(&target);
        if let Some(drains) = drains.filter(|_| clears_all) {
            drains.iter_mut().for_each(|it| it.by = owner.clone());
        }
        let drains = self.state.drains.get(&target).map_or(&[][..], |it| it);
        if !drains.iter().any(|it| it.by == owner) {
            let names = drains.iter().map(|it| match &it.by {
                Owner::Person(name) => name.clone(),
                Owner::Case(case) => case.to_string(),
            });
            let holders = names.collect::<Vec<_>>().join(", ");
            let holders = if holders.is_empty() { "nobody".to_owned() } else { holders };
            return Err(Refused::NotYours { name: self.fabric.path(target), by, holders });
        }
        if drains.len() == 1 {
            // DESIGN §5: no path skips requalification, nor does a person's word.
            match self.state.open_cases.get(&target).copied() {
                Some(case) => self.force_out(case),
                None => {
                    let case = self.open(target, Symptom::Returned, Severity::Critical, None);
                    self.act(case, Level::Repair);
                }
            }
        }
        self.put_back(target, &owner);
        Ok(Accepted::Done)
    }

    /// What has left the plant under this name, a cable or not, with whoever has drained it.
    pub fn set_aside_as<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Drain> + 'a {
        let named = self.state.set_aside.iter().filter(move |(it, _)| it.0 == path);
        named.flat_map(|(_, drains)| drains)
    }

    fn undrain_retired(&mut self, by: String, path: String) -> Result<Accepted, Refused> {
        let owner = Owner::Person(by.clone());
        if !self.set_aside_as(&path).any(|it| it.by == owner) {
            let names = self.set_aside_as(&path).filter_map(|it| match &it.by {
                Owner::Person(name) => Some(name.as_str()),
                Owner::Case(_) => None,
            });
            let holders = names.collect::<Vec<_>>().join(", ");
            let holders = if holders.is_empty() { "nobody".to_owned() } else { holders };
            return Err(Refused::NotYours { name: path, by, holders });
        }
        for (_, drains) in self.state.set_aside.iter_mut().filter(|(it, _)| it.0 == path) {
            drains.retain(|it| it.by != owner);
        }
        self.state.set_aside.retain(|_, it| !it.is_empty());
        Ok(Accepted::Done)
    }

    fn case_at(&self, case: CaseId, order: &'static str) -> Result<CaseState, Refused> {
        let n = self.state.cases.len();
        let known = self.state.cases.get(case).ok_or(Refused::NoCase { case, n })?;
        let state = match known.state {
            CaseState::Observed => "observed",
            CaseState::Draining => "draining",
            CaseState::Waiting => "waiting",
            CaseState::UnderRepair => "under repair",
            CaseState::Verifying => "being verified",
            CaseState::Probation { .. } => "on probation",
            CaseState::Closed => "closed",
        };
        let takes = match order {
            "taken" => matches!(known.state, CaseState::Observed | CaseState::Waiting),
            _ => known.state == CaseState::UnderRepair,
        };
        if takes { Ok(known.state) } else { Err(Refused::CaseState { case, state, order }) }
    }

    fn take_repair(&mut self, by: String, case: CaseId) -> Result<Accepted, Refused> {
        let state = self.case_at(case, "taken")?;
        self.state.cases[case].taken_by = Some(by);
        if state == CaseState::Observed && !self.is_mere_silence(case) {
            // A person decides what the level would not: the part is emptied first.
            self.force_out(case);
        } else {
            if state == CaseState::Observed {
                self.repair_in_use(case);
            } else if self.state.cases[case].held_back.take().is_some() {
                self.leave(case);
            }
            self.clear_timer(Timer::Case(case));
            self.move_case(case, CaseState::UnderRepair);
        }
        Ok(Accepted::Case(case))
    }

    fn finish_repair(&mut self, by: String, case: CaseId) -> Result<Accepted, Refused> {
        self.case_at(case, "finished")?;
        match &self.state.cases[case].taken_by {
            Some(taker) if *taker != by => {
                return Err(Refused::CaseTaken { case, by: taker.clone() });
            }
            _ if self.state.settings.has(Defect::RequalificationSkipped) => {
                self.close(case, Closing::Requalified)
            }
            _ => {
                self.state.cases[case].n_repairs += 1;
                self.verify(case);
            }
        }
        Ok(Accepted::Case(case))
    }

    fn maintain(
        &mut self,
        by: String,
        targets: Vec<Target>,
        n_at_once: u32,
        work: Span,
        why: String,
    ) -> Result<Accepted, Refused> {
        let n = targets.len();
        let refuse = |why| Err(Refused::Maintenance { n, n_at_once, why });
        if n == 0 || n_at_once == 0 {
            return refuse("name at least one target, and at least one at once");
        }
        if limits::MAINTENANCE_MAX < n || limits::WHY_MAX < why.len() {
            return refuse("too many targets, or too long a reason");
        }
        for &target in &targets {
            self.known_target(target)?;
        }
        let mut waiting: Vec<Target> = targets.into_iter().map(|it| self.named(it)).collect();
        if waiting.iter().collect::<BTreeSet<_>>().len() < n {
            return refuse("name each target once");
        }
        waiting.reverse();
        let idx = count(self.state.maintenances.len());
        self.state.maintenances.push(Maintenance {
            by,
            why,
            waiting,
            at_work: BTreeMap::new(),
            n_done: 0,
            n_at_once,
            work,
        });
        self.advance_maintenance(idx);
        Ok(Accepted::Done)
    }

    fn defragment(&mut self, plan: PlanId) -> Result<Accepted, Refused> {
        let proposal = self.state.proposal.as_ref().filter(|it| it.id == plan);
        if !proposal.is_some_and(|it| self.is_possible(it)) {
            return Err(Refused::NoMoves);
        }
        self.adopt_moves();
        self.dirty = true;
        Ok(Accepted::Done)
    }

    fn apply_plant(&mut self, plant: String, expected: u64) -> Result<Accepted, Refused> {
        let current = self.state.plants.len() as u64;
        if expected != current {
            return Err(Refused::PlantVersion { expected, current });
        }
        let mut plants = self.state.plants.clone();
        plants.push(plant);
        let fabric = fabric_of(&plants)?;
        self.untouched(&fabric)?;
        let before: Vec<bool> = self.fabric.parts().iter().map(|it| it.retired).collect();
        let n_retired = fabric.parts().iter().zip(&before).filter(|(it, was)| it.retired && !**was);
        let (n_retired, n_parts) = (count(n_retired.count()), count(fabric.parts().len()));
        let n_added = n_parts - count(before.len());
        self.state.plants = plants;
        let before = std::sync::Arc::clone(&self.fabric);
        self.adopt_fabric(fabric);
        self.retarget(&before);
        let version = self.state.plants.len() as u64;
        self.note(Note::PlantApplied { version, n_parts, n_added, n_retired });
        self.read_switches();
        self.receive(before.parts().len());
        Ok(Accepted::Plant(version))
    }

    /// Holds a new fabric against what jobs use, which must be as it was.
    pub(super) fn untouched(&self, fabric: &Fabric) -> Result<(), Refused> {
        if self.state.settings.has(Defect::PlantTouchesRunning) {
            return Ok(());
        }
        for &job in &self.state.active {
            let known = &self.state.jobs[job];
            for place in known.place.iter().chain(&known.next) {
                // A cable that it would use once it is there changes how it is joined, too.
                let uses = |port: PortId| {
                    family::uses_cable(&self.fabric, place, port)
                        || family::uses_cable(fabric, place, port)
                };
                let is_same = |port: PortId| self.fabric.peer_of(port) == fabric.peer_of(port);
                for part in place.holds.iter().map(|it| it.part) {
                    let mut used = self.fabric.ports_of(part).filter(|&it| uses(it));
                    if fabric.part(part).retired || !used.all(is_same) {
                        let what = self.fabric.part(part).name.to_string();
                        return Err(Refused::PlantBusy { what, job });
                    }
                }
            }
        }
        Ok(())
    }

    /// Drains and cases follow a fibre that was re-patched: the new one is as little trusted as
    /// the old.  What has been taken out altogether has no case, and its drains wait for it.
    fn retarget(&mut self, before: &Fabric) {
        let named: Vec<Target> = self.state.drains.keys().copied().collect();
        let cases = self.state.open_cases.keys().copied();
        let mut gone: BTreeSet<Target> = named.into_iter().chain(cases).collect();
        gone.retain(|&it| self.known_target(it).is_err());
        for old in gone {
            let new = self.successor(before, old);
            let drains = self.state.drains.remove(&old);
            let case = self.state.open_cases.remove(&old);
            if let Some(new) = new {
                self.state.drains.entry(new).or_default().extend(drains.unwrap_or_default());
                self.state.drains.retain(|_, it| !it.is_empty());
                if let Some(case) = case {
                    self.state.cases[case].target = new;
                    self.state.open_cases.insert(new, case);
                }
                continue;
            }
            if let Some(case) = case {
                self.note(Note::CaseRetired { case });
                self.end_case(case, Closing::Retired);
            }
            self.set_aside(before, old, drains.unwrap_or_default());
        }
        self.recount_outages();
        let stranded =
            |it: &PartId| before.parts().get(*it).is_some() && self.fabric.part(*it).retired;
        let gone: Vec<PartId> = self.state.switches.keys().copied().filter(stranded).collect();
        for switch in gone {
            self.state.switches.remove(&switch);
            self.clear_timer(Timer::Switch(switch));
        }
    }

    /// What people have drained stays theirs when it leaves the plant: their drains wait under its
    /// name until it comes again.
    fn set_aside(&mut self, before: &Fabric, old: Target, mut drains: Vec<Drain>) {
        drains.retain(|it| matches!(it.by, Owner::Person(_)));
        if drains.is_empty() {
            return;
        }
        let path = match old {
            Target::Link(link) => {
                let link = before.link(link);
                // A cable goes by the end that has left with its part.
                let has_left =
                    |port: &PortId| self.fabric.part(self.fabric.part_of_port(*port)).retired;
                let end = [link.source, link.target].into_iter().find(has_left);
                before.port_path(end.unwrap_or(link.source))
            }
            Target::Part(_) | Target::Node(_) | Target::Port(_) => before.path(old),
        };
        let is_cable = matches!(old, Target::Link(_));
        self.state.set_aside.entry((path, is_cable)).or_default().extend(drains);
    }

    /// What comes under a name that had left is drained by whom it was, and a part of it is tested
    /// as a repaired one is: nobody knows what was done to it meanwhile (DESIGN §5: no path skips
    /// requalification).
    fn receive(&mut self, n_before: usize) {
        for ((path, is_cable), drains) in std::mem::take(&mut self.state.set_aside) {
            let found = self.fabric.find(&path).map(|it| self.named(it));
            let is_its = |it: &Target| {
                self.known_target(*it).is_ok() && is_cable == matches!(it, Target::Link(_))
            };
            let Some(target) = found.filter(is_its) else {
                self.state.set_aside.insert((path, is_cable), drains);
                continue;
            };
            for drain in drains {
                let owner = drain.by.clone();
                self.take_out(target, owner, drain.why, drain.evicts);
            }
        }
        let parts = || self.fabric.parts().pairs();
        let retired: BTreeSet<&str> =
            parts().filter(|(_, it)| it.retired).map(|(_, it)| &*it.name).collect();
        let returned: Vec<PartId> = parts()
            .filter(|(id, it)| n_before <= id.idx() && !it.retired && retired.contains(&*it.name))
            .map(|(id, _)| id)
            .collect();
        for part in returned {
            let target = Target::Part(part);
            let case = self.open(target, Symptom::Returned, Severity::Critical, None);
            self.act(case, Level::Repair);
        }
    }

    /// The fibre that is now at the end of a job's part where `old` was.
    fn successor(&self, before: &Fabric, old: Target) -> Option<Target> {
        let Target::Link(link) = old else { return None };
        let link = before.link(link);
        let is_part = |port: &PortId| {
            let part = self.fabric.part_of_port(*port);
            self.fabric.template_of(part).role == Role::Compute
        };
        let end = [link.source, link.target].into_iter().find(is_part)?;
        let new = self.named(Target::Port(end));
        (self.known_target(new).is_ok() && new != Target::Port(end)).then_some(new)
    }

    /// A re-patched fibre is a new version of the plant.
    fn move_port(&mut self, from: PortId, to: PortId) -> Result<Accepted, Refused> {
        for port in [from, to] {
            self.known_target(Target::Port(port))?;
        }
        let fabric = &self.fabric;
        let ((switch, from_local), (to_switch, to_local)) =
            (fabric.port_local(from), fabric.port_local(to));
        let refuse = |why| {
            Err(Refused::Move { from: fabric.port_path(from), to: fabric.port_path(to), why })
        };
        let side = |part, local: usize| fabric.template_of(part).ports()[local].side;
        if switch != to_switch || side(switch, from_local) == Side::Plain {
            return refuse("both must be ports of one switch");
        }
        if side(switch, from_local) != side(switch, to_local) {
            return refuse("both must be on one side of the switch");
        }
        let Some(end) = fabric.peer_of(from) else {
            return refuse("there is no fibre on the first");
        };
        if fabric.peer_of(to).is_some() {
            return refuse("there is a fibre on the second already");
        }
        let text = self.state.plants.last().expect("a core that has begun has a plant");
        let mut plant =
            Plant::parse("plant", text).expect("an adopted plant has been parsed before");
        let named = |name: String| Named { name, at: At::NOWHERE };
        let (end, port) = (fabric.port_path(end), fabric.port_path(to));
        // The fibre stays the same one, and with it what it loses.
        let loss = plant.patches.iter().find(|it| it.end.name == end).and_then(|it| it.loss);
        plant.patches.retain(|it| it.end.name != end);
        let is_generated = generated_port(&plant, &end).as_ref() == Some(&port);
        let port = (!is_generated).then(|| named(port));
        if port.is_some() || loss.is_some() {
            plant.patches.push(Patch { end: named(end), port, loss });
        }
        let expected = self.state.plants.len() as u64;
        let accepted = self.apply_plant(plant.render(), expected)?;
        self.note(Note::PortMoved {
            switch,
            from: u16::try_from(from_local).unwrap_or(u16::MAX),
            to: u16::try_from(to_local).unwrap_or(u16::MAX),
        });
        Ok(accepted)
    }

    /// A higher level may act on what was only observed.
    fn reconsider_cases(&mut self) {
        let open: Vec<CaseId> = self.state.open_cases.values().copied().collect();
        let level = self.state.settings.level;
        for case in open {
            match self.state.cases[case].state {
                CaseState::Observed => self.act(case, level),
                // What was only kept free of new jobs is left by the running ones too.
                CaseState::Draining if Level::Drain <= level => self.act(case, level),
                CaseState::Draining
                | CaseState::Waiting
                | CaseState::UnderRepair
                | CaseState::Verifying
                | CaseState::Probation { .. }
                | CaseState::Closed => (),
            }
        }
        self.resend_cases();
    }
}

/// The port that the fibre at `end` leads to where `plant` says nothing else.
fn generated_port(plant: &Plant, end: &str) -> Option<String> {
    // Where another fibre has taken that port, this one cannot be on it.
    let fabric = selvedge_family::build(plant).ok()?;
    let Target::Port(end) = fabric.find(end)? else { return None };
    fabric.peer_of(end).map(|it| fabric.port_path(it))
}
