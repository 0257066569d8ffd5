//! A case's life: from a symptom to the part's return.
//!
//! ```text
//!   seen ─► Observed (level, breaker, or it may pass) ─► Closed
//!     └──► Draining ─► Waiting ─► UnderRepair ─► Verifying ─► Probation ─► Closed
//!                         ▲  nobody uses it        │ fails       │ seen again
//!                         └────────────────────────┴─────────────┘
//! ```
//! Planned work and parts that a person gives back take the same way: none returns unverified.  A
//! switch that is only silent (`silence`) waits for its repair while jobs run through it.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fault::{Severity, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, NodeId, PartId, PortId};
use selvedge_model::job::{Hold, Place};
use selvedge_model::unit::{Moment, Span};

use crate::capacity;
use crate::core::jobs::Haste;
use crate::core::{Accepted, Core, Refused, count};
use crate::input::{Errand, Readings};
use crate::limits::{ABSORB_MAX, CALL_AGAIN, EVIDENCE_MAX, SIGHTINGS_MAX, SWITCH_WINDOW};
use crate::note::{CaseState, Note, Owner, StopWhy};
use crate::output::Command;
use crate::planted::Defect;
use crate::settings::Level;
use crate::state::{Case, Closing, Drain, JobState, PartState, Timer};
use crate::{health, preflight};

impl Core {
    /// A symptom was seen: open a case, or add to the one there is.
    pub(super) fn see(&mut self, target: Target, symptom: Symptom, value: Option<u32>) {
        let now = self.state.now;
        if symptom == Symptom::Silent
            && let Some(case) = self.out_at(target)
        {
            // What is silent stays so until somebody has been there: told by an unanswered write
            // and by a missed poll, it is not seen twice.
            self.grow(case, Severity::Transient, symptom, value);
            return;
        }
        // However often a job hangs on a machine, it is one that speaks against it.
        let is_known = symptom == Symptom::TaskHung && self.has_hung(target, value);
        let seen = self.state.sightings.entry((target, symptom)).or_default();
        if !is_known {
            if SIGHTINGS_MAX <= seen.len() {
                seen.remove(0);
            }
            seen.push(now);
        }
        let mut severity = health::grade(symptom, seen, &self.fabric.thresholds);
        if symptom == Symptom::Silent
            && matches!(target, Target::Part(part) if self.is_switch(part))
            && !self.state.settings.has(Defect::SilenceEvicts)
        {
            severity = health::SILENT_SWITCH;
        }
        if let Some(case) = self.case_over(target) {
            self.grow(case, severity, symptom, value);
            return;
        }
        let case = self.open(target, symptom, severity, value);
        self.act(case, self.state.settings.level);
        // Where it is only observed it joins what was only observed.
        self.absorb(case);
        self.weigh_silence(target);
    }

    /// Whether a task of the same job has hung on `target` within the time that the rule looks at.
    fn has_hung(&self, target: Target, job: Option<u32>) -> bool {
        let window = health::rule_of(Symptom::TaskHung).window;
        let cases = self.state.cases.iter().filter(|it| it.target == target);
        cases.flat_map(|it| &it.evidence).any(|&(at, symptom, value)| {
            symptom == Symptom::TaskHung && value == job && self.state.now.since(at) <= window
        })
    }

    /// A dead machine's links went down before it was missed, and a switch's ports were refused
    /// one by one: their cases were this one.  Only
    /// what was seen lately, and what nobody has begun to repair.
    pub(super) fn absorb(&mut self, case: CaseId) {
        let target = self.state.cases[case].target;
        // A switch that is only silent is no cause of what is with its fibres.
        if !matches!(target, Target::Node(_) | Target::Part(_)) || self.is_mere_silence(case) {
            return;
        }
        let (consequence, window) = match self.state.cases[case].symptom {
            Symptom::PortFailed => (Symptom::PortFailed, SWITCH_WINDOW),
            _ => (Symptom::LinkDown, ABSORB_MAX),
        };
        let since = self.state.now;
        let is_out = self.drain_by(case).is_some();
        // What is only observed, or held back, takes no drain of another along.
        let may_join = |other: CaseState| match other {
            CaseState::Observed => true,
            CaseState::Draining | CaseState::Waiting => is_out,
            CaseState::UnderRepair
            | CaseState::Verifying
            | CaseState::Probation { .. }
            | CaseState::Closed => false,
        };
        let is_its = |it: &CaseId| {
            let other = &self.state.cases[*it];
            *it != case
                && other.symptom == consequence
                && may_join(other.state)
                && (other.n_tests, &other.taken_by) == (0, &None)
                && since.since(other.opened) <= window
                && (self.concerns(target, other.target) || self.is_at(other.target, target))
        };
        let open = self.state.open_cases.values().copied();
        for other in open.filter(is_its).collect::<Vec<_>>() {
            let evidence = self.state.cases[other].evidence.clone();
            let known = &mut self.state.cases[case];
            known.n_seen += count(evidence.len());
            let room = EVIDENCE_MAX.saturating_sub(known.evidence.len());
            known.evidence.extend(evidence.into_iter().take(room));
            self.close(other, Closing::Absorbed { into: case });
        }
    }

    /// The case of `target` for which it has not been looked at since.
    fn out_at(&self, target: Target) -> Option<CaseId> {
        let case = self.state.open_cases.get(&target).copied()?;
        match self.state.cases[case].state {
            CaseState::Observed
            | CaseState::Draining
            | CaseState::Waiting
            | CaseState::UnderRepair => Some(case),
            CaseState::Verifying | CaseState::Probation { .. } | CaseState::Closed => None,
        }
    }

    /// The open case of `target`, or of what holds it: a dead machine's chips are no news.
    fn case_over(&self, target: Target) -> Option<CaseId> {
        let open = |it: &Target| self.state.open_cases.get(it).copied();
        if let Some(case) = open(&target) {
            return Some(case);
        }
        match target {
            Target::Node(node) => self.case_around(node),
            Target::Link(link) => {
                let link = self.fabric.link(link);
                let ends = [link.source, link.target].into_iter();
                ends.map(|port| self.fabric.node_of_port(port)).find_map(|it| self.case_around(it))
            }
            Target::Part(_) | Target::Port(_) => None,
        }
    }

    /// The end beyond a circuit switch that light from `end` leaves at, as the switch was last
    /// read.
    pub fn beyond(&self, end: PortId) -> Option<PortId> {
        let (switch, local) = self.fabric.port_local(self.fabric.peer_of(end)?);
        let pairs = &self.state.switches.get(&switch)?.pairs;
        let local = u16::try_from(local).ok()?;
        let other = pairs.iter().find_map(|(&north, &south)| match local {
            it if it == north => Some(south),
            it if it == south => Some(north),
            _ => None,
        })?;
        self.fabric.peer_of(self.fabric.port_at(switch, usize::from(other)))
    }

    /// The open case of a node, or of what holds it.
    fn case_around(&self, mut node: NodeId) -> Option<CaseId> {
        let open = |it: &Target| self.state.open_cases.get(it).copied();
        loop {
            if let Some(case) = open(&Target::Node(node)) {
                return Some(case);
            }
            let Some(parent) = self.fabric.parent_of(node) else {
                // What is with the fibres of a switch that is only silent is news.
                let whole = open(&Target::Part(self.fabric.part_of_node(node)));
                return whole.filter(|it| !self.is_mere_silence(*it));
            };
            node = parent;
        }
    }

    pub(super) fn open(
        &mut self,
        target: Target,
        symptom: Symptom,
        severity: Severity,
        value: Option<u32>,
    ) -> CaseId {
        let now = self.state.now;
        let case = self.state.cases.push(Case {
            target,
            symptom,
            severity,
            state: CaseState::Observed,
            since: now,
            opened: now,
            evidence: vec![(now, symptom, value)],
            n_seen: 1,
            n_repairs: 0,
            n_tests: 0,
            held_back: None,
            taken_by: None,
            maintenance: None,
            closed: None,
        });
        self.state.open_cases.insert(target, case);
        self.note(Note::CaseOpened { case, target, symptom, severity });
        case
    }

    pub(super) fn grow(
        &mut self,
        case: CaseId,
        severity: Severity,
        symptom: Symptom,
        value: Option<u32>,
    ) {
        let now = self.state.now;
        let known = &mut self.state.cases[case];
        known.n_seen += 1;
        if known.evidence.len() < EVIDENCE_MAX {
            known.evidence.push((now, symptom, value));
        }
        let worse = known.severity < severity;
        known.severity = known.severity.max(severity);
        let (severity, n_seen, state) = (known.severity, known.n_seen, known.state);
        if worse {
            self.note(Note::CaseGrew { case, severity, n_seen });
        }
        match state {
            CaseState::Observed => self.act(case, self.state.settings.level),
            CaseState::Draining if worse => self.act(case, self.state.settings.level),
            CaseState::Waiting | CaseState::UnderRepair if worse => self.vacate(case),
            CaseState::Verifying | CaseState::Probation { .. } => {
                if worse {
                    self.vacate(case);
                }
                self.wait(case);
            }
            CaseState::Draining
            | CaseState::Waiting
            | CaseState::UnderRepair
            | CaseState::Closed => (),
        }
    }

    /// What was worked on while jobs used it is worse than it seemed: they leave it, if that is
    /// allowed, whatever becomes of the work.
    pub(super) fn vacate(&mut self, case: CaseId) {
        let evicts = self.evicts(case, self.state.settings.level);
        if evicts && self.breaker_allows(case, evicts) {
            self.leave(case);
        }
    }

    /// Makes the jobs that use the target of a case leave it.
    pub(super) fn leave(&mut self, case: CaseId) {
        let known = &self.state.cases[case];
        let (target, why) = (known.target, known.symptom.words().to_owned());
        self.take_out(target, Owner::Case(case), why, true);
        self.evict_for(case);
    }

    fn evict_for(&mut self, case: CaseId) {
        let known = &self.state.cases[case];
        let fatal = known.severity == Severity::Fatal;
        let haste = if fatal { Haste::AtOnce } else { Haste::WithNotice };
        self.evict(known.target, StopWhy::Fault { case }, haste);
    }

    /// The drain that a case has set on its target.
    pub(super) fn drain_by(&self, case: CaseId) -> Option<&Drain> {
        let drains = self.state.drains.get(&self.state.cases[case].target)?;
        drains.iter().find(|it| it.by == Owner::Case(case))
    }

    /// Whether `level` lets jobs be made to leave what is as bad as this.
    fn evicts(&self, case: CaseId, level: Level) -> bool {
        Level::Drain <= level && Severity::Critical <= self.state.cases[case].severity
    }

    /// Does what `level` allows about a case.
    pub(super) fn act(&mut self, case: CaseId, level: Level) {
        let known = &self.state.cases[case];
        let (target, severity, symptom) = (known.target, known.severity, known.symptom);
        if severity == Severity::Transient || level == Level::Observe {
            return self.observe(case);
        }
        if self.is_mere_silence(case) {
            if !self.is_silent(target) {
                // It answers again: there is nothing that anybody could repair.
                return self.observe(case);
            }
            self.repair_in_use(case);
            return self.wait(case);
        }
        let planned = !symptom.is_fault();
        let evicts = self.evicts(case, level);
        let is_out = self.drain_by(case).is_some();
        if !planned && !self.breaker_allows(case, evicts) {
            if !is_out {
                self.observe(case);
            }
            return;
        }
        self.clear_timer(Timer::Case(case));
        self.take_out(target, Owner::Case(case), symptom.words().to_owned(), evicts);
        self.move_case(case, CaseState::Draining);
        if evicts {
            self.evict_for(case);
        }
        for job in self.holders_of(target, |state| matches!(state, JobState::Queued { .. })) {
            self.hasten(job);
        }
        self.left();
        self.absorb(case);
    }

    /// Takes the target of a case that was only observed out of use, as a person wants it.
    pub(super) fn force_out(&mut self, case: CaseId) {
        let known = &mut self.state.cases[case];
        known.severity = known.severity.max(Severity::Critical);
        known.held_back = None;
        let (target, symptom) = (known.target, known.symptom);
        let is_fault = known.maintenance.is_none() && symptom.is_fault();
        self.clear_timer(Timer::Case(case));
        self.take_out(target, Owner::Case(case), symptom.words().to_owned(), true);
        self.move_case(case, CaseState::Draining);
        // Who makes room for planned work is interrupted by no fault.
        let why = if is_fault { StopWhy::Fault { case } } else { StopWhy::Drained { target } };
        self.evict(target, why, Haste::WithNotice);
        self.left();
    }

    /// Nothing is done; what may pass closes by itself when it is not seen again.
    fn observe(&mut self, case: CaseId) {
        let known = &self.state.cases[case];
        let passes = known.severity <= Severity::Degraded;
        let sticky = health::rule_of(known.symptom).sticky;
        if known.state != CaseState::Observed {
            self.move_case(case, CaseState::Observed);
        }
        if passes {
            self.set_timer(Timer::Case(case), self.state.now + sticky);
        } else {
            self.clear_timer(Timer::Case(case));
        }
    }

    /// Adds a drain and recounts what is out.
    pub(super) fn take_out(&mut self, target: Target, by: Owner, why: String, evicts: bool) {
        let now = self.state.now;
        let drains = self.state.drains.entry(target).or_default();
        match drains.iter_mut().find(|it| it.by == by) {
            Some(drain) => drain.evicts |= evicts,
            None => {
                drains.push(Drain { by: by.clone(), why, since: now, evicts });
                self.note(Note::Drained { target, by });
            }
        }
        self.recount_outages();
    }

    /// Takes one owner's drain back and recounts.
    pub(super) fn put_back(&mut self, target: Target, by: &Owner) {
        let Some(drains) = self.state.drains.get_mut(&target) else { return };
        let n_before = drains.len();
        drains.retain(|it| it.by != *by);
        let removed = drains.len() < n_before;
        if drains.is_empty() {
            self.state.drains.remove(&target);
        }
        if removed {
            self.note(Note::Undrained { target, by: by.clone() });
        }
        self.recount_outages();
    }

    /// Makes the jobs that use `target` leave it.
    pub(super) fn evict(&mut self, target: Target, why: StopWhy, haste: Haste) {
        let misses = matches!(why, StopWhy::Fault { .. })
            && self.state.settings.has(Defect::DrainMissesRunning);
        for job in self.users_of(target) {
            if misses && matches!(self.state.jobs[job].state, JobState::Running { .. }) {
                continue;
            }
            self.stop(job, why, haste);
        }
    }

    /// The jobs that hold and use `target`.
    fn users_of(&self, target: Target) -> Vec<JobId> {
        // One that waits for a spare is about to give the part up.
        self.holders_of(target, |state| !matches!(state, JobState::Queued { .. }))
    }

    /// The jobs in such a state that hold and need `target`.
    pub fn holders_of(&self, target: Target, is_such: impl Fn(&JobState) -> bool) -> Vec<JobId> {
        let outage = capacity::outage(&self.fabric, target);
        let uses = |job: &JobId| {
            let known = &self.state.jobs[*job];
            let mut places = known.place.iter().filter(|_| is_such(&known.state));
            places.any(|place| self.is_hit(&outage, place))
        };
        self.state.active.iter().copied().filter(uses).collect()
    }

    /// A job has left: cases that wait for an empty target may go on.
    pub(super) fn left(&mut self) {
        let draining: Vec<CaseId> = self
            .state
            .open_cases
            .values()
            .copied()
            .filter(|&it| self.state.cases[it].state == CaseState::Draining)
            .collect();
        for case in draining {
            if self.users_of(self.state.cases[case].target).is_empty() {
                self.emptied(case);
            }
        }
    }

    fn emptied(&mut self, case: CaseId) {
        let known = &self.state.cases[case];
        if let Some(idx) = known.maintenance {
            let work = self.state.maintenances[idx as usize].work;
            self.move_case(case, CaseState::UnderRepair);
            self.set_timer(Timer::Case(case), self.state.now + work);
        } else if known.symptom == Symptom::Returned {
            self.verify(case);
        } else if known.taken_by.is_some() {
            self.move_case(case, CaseState::UnderRepair);
        } else {
            self.wait(case);
        }
    }

    /// The target is empty and waits for somebody.
    fn wait(&mut self, case: CaseId) {
        self.clear_timer(Timer::Case(case));
        self.state.awaited.remove(&self.case_errand(case));
        self.state.cases[case].taken_by = None;
        self.move_case(case, CaseState::Waiting);
        self.call_crew(case);
    }

    fn call_crew(&mut self, case: CaseId) {
        if self.state.settings.level < Level::Repair {
            return;
        }
        let known = &self.state.cases[case];
        let (target, symptom) = (known.target, known.symptom);
        if known.state == CaseState::Waiting {
            // A crew that found somebody else at work has left, and nobody says so.
            self.set_timer(Timer::Case(case), self.state.now + CALL_AGAIN);
        }
        self.send(Command::CallCrew { case, target, symptom });
    }

    fn case_errand(&self, case: CaseId) -> Errand {
        Errand::Case(case, self.state.cases[case].n_tests)
    }

    /// The same preflight as before a job.
    pub(super) fn verify(&mut self, case: CaseId) {
        self.state.cases[case].n_tests += 1;
        self.move_case(case, CaseState::Verifying);
        self.ask_verify(case);
    }

    fn ask_verify(&mut self, case: CaseId) {
        let errand = self.case_errand(case);
        let target = self.state.cases[case].target;
        self.set_timer(Timer::Case(case), self.state.now + self.state.settings.exercise_max);
        if let Target::Part(part) = target
            && self.is_switch(part)
        {
            self.state.awaited.insert(errand, BTreeSet::from([part]));
            // Whatever it says counts: it may have been replaced, and have forgotten all writes.
            if let Some(state) = self.state.switches.get_mut(&part) {
                state.known = false;
            }
            self.send(Command::ReadSwitch { switch: part });
            return;
        }
        let parts = capacity::parts_of(&self.fabric, target);
        if parts.is_empty() {
            // A port without a fibre: there is nothing that could be asked about it.
            self.verified(case);
            return;
        }
        self.state.awaited.insert(errand, parts.iter().copied().collect());
        for part in parts {
            let seats = self.fabric.template_of(part).all_seats();
            self.send(Command::Inspect { errand, hold: Hold { part, seats } });
        }
    }

    pub(super) fn case_switch_read(&mut self, switch: PartId) {
        let Some(&case) = self.state.open_cases.get(&Target::Part(switch)) else { return };
        if self.state.cases[case].state == CaseState::Verifying {
            self.state.awaited.remove(&self.case_errand(case));
            self.verified(case);
        }
    }

    pub(super) fn case_inspected(
        &mut self,
        case: CaseId,
        errand: Errand,
        part: PartId,
        readings: &Readings,
    ) -> Result<Accepted, Refused> {
        self.case_awaits(case, errand)?;
        self.awaits(errand, part)?;
        let all = self.fabric.template_of(part).all_seats();
        let findings = preflight::judge(&self.fabric, part, all, &|_| true, readings)?;
        let target = self.state.cases[case].target;
        let failed = findings.iter().find(|it| {
            let another = self.case_over(it.target).is_some_and(|other| other != case);
            !another && !self.ends_at_silence(it.target) && self.concerns(target, it.target)
        });
        if let Some(found) = failed.copied() {
            self.grow(case, Severity::Transient, found.symptom, Some(found.value));
            return Ok(Accepted::Done);
        }
        let awaited = self.state.awaited.get_mut(&errand).expect("looked at above");
        awaited.remove(&part);
        if awaited.is_empty() {
            self.exercise_case(case, errand);
        }
        Ok(Accepted::Done)
    }

    /// The end-to-end half of the preflight, on those seats of the target that nobody holds.
    fn exercise_case(&mut self, case: CaseId, errand: Errand) {
        let target = self.state.cases[case].target;
        let mut holds: Vec<Hold> = Vec::new();
        for (part, outage) in capacity::outage(&self.fabric, target) {
            let ends = outage.links_out.iter().fold(outage.out, |acc, it| acc | it);
            let all = self.fabric.template_of(part).all_seats();
            let wanted = if ends == 0 { all } else { ends };
            let seats = wanted & !self.state.parts[part].held;
            if seats != 0 {
                holds.push(Hold { part, seats });
            }
        }
        if holds.is_empty() {
            self.state.awaited.remove(&errand);
            self.verified(case);
            return;
        }
        self.set_timer(Timer::Case(case), self.state.now + self.state.settings.exercise_max);
        self.send(Command::Exercise { errand, holds });
    }

    pub(super) fn case_exercised(
        &mut self,
        case: CaseId,
        errand: Errand,
        failed: &[Target],
    ) -> Result<Accepted, Refused> {
        self.case_awaits(case, errand)?;
        if !self.state.awaited[&errand].is_empty() {
            return Err(Refused::Stale);
        }
        let target = self.state.cases[case].target;
        let ours = failed.iter().any(|it| self.concerns(target, self.named(*it)));
        if ours {
            self.grow(case, Severity::Transient, Symptom::ExerciseFailed, None);
        } else {
            self.state.awaited.remove(&errand);
            self.verified(case);
        }
        for &other in failed {
            let other = self.named(other);
            if !self.concerns(target, other) && self.case_over(other).is_none() {
                self.see(other, Symptom::ExerciseFailed, None);
            }
        }
        Ok(Accepted::Done)
    }

    /// Whether a cable ends at a switch that does not answer: what is with it is not known, and
    /// whoever is wired through it next looks at it.
    fn ends_at_silence(&self, target: Target) -> bool {
        let Target::Link(link) = target else { return false };
        let link = self.fabric.link(link);
        let parts = [link.source, link.target].map(|it| self.fabric.part_of_port(it));
        parts.into_iter().any(|it| self.is_silent(Target::Part(it)))
    }

    fn case_awaits(&self, case: CaseId, errand: Errand) -> Result<(), Refused> {
        let known = self.state.cases.get(case).ok_or(Refused::Stale)?;
        let current = known.state == CaseState::Verifying && self.case_errand(case) == errand;
        if current && self.state.awaited.contains_key(&errand) {
            return Ok(());
        }
        Err(Refused::Stale)
    }

    /// Whether a finding on `found` speaks against returning `target`.
    fn concerns(&self, target: Target, found: Target) -> bool {
        if target == found {
            return true;
        }
        let (ours, theirs) =
            (capacity::outage(&self.fabric, target), capacity::outage(&self.fabric, found));
        // Two links of one part are two things; a part or node contains what lies on its seats.
        if matches!(target, Target::Link(_) | Target::Port(_)) {
            return matches!(found, Target::Node(_))
                && ours.iter().any(|(part, out)| {
                    let ends = out.links_out.iter().fold(0, |acc, it| acc | it);
                    theirs.get(part).is_some_and(|it| it.out & ends != 0)
                });
        }
        ours.iter().any(|(part, out)| {
            theirs.get(part).is_some_and(|it| {
                let touches = it.links_out.iter().any(|ends| ends & out.out != 0);
                let outer = it.outer_out != 0 && self.is_plugged_in(found, target);
                it.out & out.out != 0 || touches || outer
            })
        })
    }

    /// Whether a cable is plugged into a part or node of one, or into what is in it.
    fn is_plugged_in(&self, found: Target, whole: Target) -> bool {
        let Target::Link(link) = found else { return true };
        let link = self.fabric.link(link);
        let up = |node: &NodeId| self.fabric.parent_of(*node);
        [link.source, link.target].into_iter().any(|port| match whole {
            Target::Part(part) => part == self.fabric.part_of_port(port),
            Target::Node(node) => {
                let mut around = std::iter::successors(Some(self.fabric.node_of_port(port)), up);
                around.any(|it| it == node)
            }
            Target::Port(_) | Target::Link(_) => false,
        })
    }

    fn verified(&mut self, case: CaseId) {
        if self.state.settings.has(Defect::ProbationSkipped) {
            self.close(case, Closing::Requalified);
            return;
        }
        let until = self.state.now + self.state.settings.probation;
        self.move_case(case, CaseState::Probation { until });
        self.set_timer(Timer::Case(case), until);
    }

    /// A deadline of a case has come.
    pub(super) fn case_due(&mut self, case: CaseId) {
        match self.state.cases[case].state {
            // It does not pass as long as it stands.
            CaseState::Observed if self.is_silent(self.state.cases[case].target) => {
                self.observe(case);
            }
            CaseState::Observed => self.close(case, Closing::Passed),
            CaseState::Probation { .. } => self.close(case, Closing::Requalified),
            CaseState::UnderRepair => {
                self.state.cases[case].n_repairs += 1;
                self.verify(case);
            }
            // No answer: what does not answer is not verified.
            CaseState::Verifying => self.grow(case, Severity::Transient, Symptom::Silent, None),
            CaseState::Waiting => self.call_crew(case),
            CaseState::Draining | CaseState::Closed => (),
        }
    }

    pub(super) fn close(&mut self, case: CaseId, how: Closing) {
        let target = self.state.cases[case].target;
        self.state.open_cases.remove(&target);
        self.put_back(target, &Owner::Case(case));
        self.end_case(case, how);
    }

    /// The case is over; its target is back, or has been taken out of the plant.
    pub(super) fn end_case(&mut self, case: CaseId, how: Closing) {
        self.state.cases[case].closed = Some(how);
        self.state.cases[case].held_back = None;
        self.clear_timer(Timer::Case(case));
        self.state.awaited.remove(&self.case_errand(case));
        self.move_case(case, CaseState::Closed);
        if let Some(idx) = self.state.cases[case].maintenance {
            let maintenance = &mut self.state.maintenances[idx as usize];
            maintenance.at_work.remove(&case);
            maintenance.n_done += 1;
            self.advance_maintenance(idx);
        }
    }

    /// Begins work on as many targets as the budget allows.
    pub(super) fn advance_maintenance(&mut self, idx: u32) {
        loop {
            let now = self.state.now;
            let plan = &mut self.state.maintenances[idx as usize];
            let is_full = plan.n_at_once as usize <= plan.at_work.len();
            if is_full && !self.state.settings.has(Defect::BudgetIgnored) {
                break;
            }
            let Some(target) = plan.waiting.pop() else { break };
            let open = self.case_over(target);
            let is_observed = |it: CaseId| self.state.cases[it].state == CaseState::Observed;
            if self.known_target(target).is_err() || open.is_some_and(|it| !is_observed(it)) {
                // It has been retired, or is out already for a fault: the crew has it anyway.
                self.state.maintenances[idx as usize].n_done += 1;
                continue;
            }
            let by = self.state.maintenances[idx as usize].by.clone();
            let own = self.state.open_cases.get(&target).copied();
            let case = own
                .unwrap_or_else(|| self.open(target, Symptom::Planned, Severity::Critical, None));
            self.state.cases[case].maintenance = Some(idx);
            self.state.cases[case].taken_by = Some(by);
            self.state.maintenances[idx as usize].at_work.insert(case, now);
            self.force_out(case);
        }
        let plan = &self.state.maintenances[idx as usize];
        self.note(Note::MaintenanceMoved {
            n_waiting: super::count(plan.waiting.len()),
            n_at_work: super::count(plan.at_work.len()),
            n_done: plan.n_done,
        });
    }

    pub(super) fn move_case(&mut self, case: CaseId, state: CaseState) {
        let known = &mut self.state.cases[case];
        if known.state == state {
            return;
        }
        known.state = state;
        known.since = self.state.now;
        self.note(Note::CaseMoved { case, state });
    }

    /// After a restart: crews are called and checks asked for again.
    pub(super) fn resend_cases(&mut self) {
        let open: Vec<CaseId> = self.state.open_cases.values().copied().collect();
        for case in open {
            match self.state.cases[case].state {
                CaseState::Waiting => self.call_crew(case),
                CaseState::Verifying => self.ask_verify(case),
                CaseState::UnderRepair if self.state.cases[case].maintenance.is_none() => {
                    self.call_crew(case);
                }
                _ => (),
            }
        }
    }

    /// How long a job's parts have been known to be out, for the judge: the oldest drain that
    /// evicts among those that hit it.
    pub fn must_leave_since(&self, job: JobId) -> Option<Moment> {
        let known = self.state.jobs.get(job)?;
        let place = known.place.as_ref()?;
        let mut oldest: Option<Moment> = None;
        for (target, drains) in &self.state.drains {
            let Some(since) = drains.iter().filter(|it| it.evicts).map(|it| it.since).min() else {
                continue;
            };
            let outage = capacity::outage(&self.fabric, *target);
            if self.is_hit(&outage, place) {
                oldest = Some(oldest.map_or(since, |it| it.min(since)));
            }
        }
        oldest
    }

    /// Whether `outage` takes something away that a job on `place` uses.
    fn is_hit(&self, outage: &BTreeMap<PartId, PartState>, place: &Place) -> bool {
        let any_cable = self.state.settings.has(Defect::NeighbourEvicts);
        let hits = |out: &PartState, hold: Hold| {
            out.hits(&self.fabric, hold, place) || any_cable && out.outer_out != 0
        };
        let mut holds = place.holds.iter();
        holds.any(|it| outage.get(&it.part).is_some_and(|out| hits(out, *it)))
    }

    /// The longest that a running job may stay on a part that it must leave.
    pub fn leave_max(&self) -> Span {
        self.state.settings.notice + self.state.settings.grace
    }
}
