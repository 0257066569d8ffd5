//! From a place to running tasks: one stage after the other, each asked again when no answer
//! comes, and a device that stays silent counts as at fault.

use std::collections::BTreeSet;

use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{JobId, PartId, PortId};
use selvedge_model::job::Place;
use selvedge_model::unit::Span;

use crate::core::{Core, count};
use crate::input::Errand;
use crate::limits::ASKS_MAX;
use crate::note::{Note, Stage, StopWhy};
use crate::output::Command;
use crate::planted::Defect;
use crate::preflight::even;
use crate::settings::Level;
use crate::state::{Event, JobState, Timer};
use crate::{check, family};

impl Core {
    /// Gives `job` its hardware and begins to make it ready.  Parts that it kept are held already.
    pub(super) fn start(&mut self, job: JobId, place: Place) {
        self.dequeue(job);
        let waited = self.waited(job);
        let kept = self.state.jobs[job].place.take();
        let kept_holds = kept.map(|it| it.holds).unwrap_or_default();
        for hold in kept_holds.iter().filter(|it| !place.holds.contains(it)) {
            self.state.parts[hold.part].held &= !hold.seats;
        }
        let mut kept_parts = 0;
        for hold in &place.holds {
            let blind = self.state.settings.has(Defect::DoubleBackfill);
            let held = &mut self.state.parts[hold.part].held;
            if kept_holds.contains(hold) {
                kept_parts += 1;
            } else {
                assert!(*held & hold.seats == 0 || blind, "{hold:?} of {job} is held already");
            }
            *held |= hold.seats;
        }
        self.state.active.insert(job);
        let n_parts = count(place.holds.len());
        let now = self.state.now;
        let known = &mut self.state.jobs[job];
        if kept_holds.is_empty() {
            known.waited = waited;
        } else {
            known.allocated += now.since(known.placed_at);
        }
        known.placed_at = now;
        // Above all that devices have seen, whoever asked for it.
        known.attempt = known.attempt.max(self.state.attempts_seen) + 1;
        known.place = Some(place);
        known.claims = false;
        known.tasks.clear();
        let attempt = known.attempt;
        self.event(job, Event::Placed);
        self.note(Note::JobPlaced { job, attempt, n_parts, kept_parts });
        if family::is_switched(&self.fabric, self.place_of(job)) {
            self.enter_wiring(job);
        } else {
            self.enter(job, Stage::Inspecting);
        }
    }

    /// Enters a stage and sends what it asks for.
    pub(super) fn enter(&mut self, job: JobId, stage: Stage) {
        let now = self.state.now;
        self.state.jobs[job].state = JobState::Starting { stage, since: now, asks: 1 };
        self.state.seen.remove(&job);
        self.event(job, Event::Staged(stage));
        let attempt = self.state.jobs[job].attempt;
        self.note(Note::JobStaged { job, attempt, stage });
        let parts: BTreeSet<PartId> = self.place_of(job).holds.iter().map(|it| it.part).collect();
        self.state.awaited.insert(self.errand(job), parts);
        self.ask_stage(job, stage);
    }

    /// Sends the requests of a stage to whoever has not answered.
    pub(super) fn ask_stage(&mut self, job: JobId, stage: Stage) {
        let errand = self.errand(job);
        let place = self.place_of(job).clone();
        let awaited = self.state.awaited.get(&errand).cloned().unwrap_or_default();
        let waiting = place.holds.iter().copied().filter(|it| awaited.contains(&it.part));
        match stage {
            Stage::Wiring => self.send_wiring(job),
            Stage::Training => {
                let parts = place.holds.iter().map(|it| it.part).collect();
                self.send(Command::AwaitLinks { errand, parts });
            }
            Stage::Inspecting => {
                waiting.for_each(|hold| self.send(Command::Inspect { errand, hold }));
            }
            Stage::Exercising => {
                self.send(Command::Exercise { errand, holds: place.holds.clone() });
            }
            Stage::Discovering => {
                waiting.for_each(|hold| self.send(Command::Discover { errand, hold }));
            }
            Stage::Programming => {
                let Some(table) = self.table_of(job, &place) else {
                    self.fail_start(job, stage);
                    return;
                };
                // Each ask is a new write: one that comes late changes nothing.
                self.state.generation = self.state.generation.next();
                let generation = self.state.generation;
                waiting.for_each(|hold| {
                    self.send(Command::Program { errand, hold, generation, table })
                });
            }
            Stage::Dispatching => self.send_start(job),
        }
        self.set_timer(Timer::Job(job), self.state.now + self.stage_max(stage));
    }

    /// The digest of the job's forwarding tables.  Those of a partition follow from its place; they
    /// are looked at each time before they are sent.
    fn table_of(&mut self, job: JobId, place: &Place) -> Option<u64> {
        if !family::is_joined(self.need_of(job)) {
            let demand = self.state.jobs[job].spec.demand.clone();
            return Some(*self.tables.entry(demand).or_insert_with_key(family::table_digest));
        }
        let forwarding = family::forwarding(&self.fabric, place);
        let violations = forwarding.as_ref().map(|it| {
            let claim = check::Claim { chips: it.chips(), toward: &|to| it.toward(to) };
            check::tables(&self.fabric, job, place, &claim)
        });
        if let (Some(it), Some([])) = (&forwarding, violations.as_deref()) {
            return Some(it.digest());
        }
        let n_violations = count(violations.map_or(1, |it| it.len()));
        self.note(Note::PlanRefused { job, n_violations });
        None
    }

    pub(super) fn send_start(&mut self, job: JobId) {
        let known = &self.state.jobs[job];
        let place = known.place.clone().expect("a job that starts has a place");
        let (attempt, kept, redundancy) = (known.attempt, known.kept, known.spec.redundancy);
        let work = known.spec.work.clone();
        self.send(Command::Start { job, attempt, place, work, kept, redundancy });
    }

    fn stage_max(&self, stage: Stage) -> Span {
        let settings = &self.state.settings;
        match stage {
            Stage::Wiring | Stage::Discovering | Stage::Programming => settings.answer_max,
            Stage::Training => settings.train_max + settings.answer_max,
            Stage::Inspecting | Stage::Exercising | Stage::Dispatching => settings.exercise_max,
        }
    }

    /// No answer came in time: ask again, or count the silent ones as at fault.
    pub(super) fn stage_due(&mut self, job: JobId, stage: Stage, asks: u32) {
        if asks < ASKS_MAX {
            if let JobState::Starting { asks, .. } = &mut self.state.jobs[job].state {
                *asks += 1;
            }
            self.ask_stage(job, stage);
            return;
        }
        if stage == Stage::Wiring {
            self.wiring_silent(job);
            return;
        }
        let awaited = self.state.awaited.remove(&self.errand(job)).unwrap_or_default();
        // Only a stage that each part answers for itself says who is silent.
        let each = matches!(stage, Stage::Inspecting | Stage::Discovering | Stage::Programming);
        for part in awaited.into_iter().filter(|_| each) {
            self.see(Target::Part(part), Symptom::Silent, None);
        }
        self.fail_start(job, stage);
    }

    /// One part has answered; returns whether all have.
    pub(super) fn answered(&mut self, job: JobId, part: PartId) -> bool {
        let errand = self.errand(job);
        let Some(awaited) = self.state.awaited.get_mut(&errand) else { return false };
        awaited.remove(&part);
        if awaited.is_empty() {
            self.state.awaited.remove(&errand);
            return true;
        }
        false
    }

    /// All have answered: on to the next stage.
    pub(super) fn advance(&mut self, job: JobId, stage: Stage) {
        let next = match stage {
            Stage::Wiring => Stage::Training,
            Stage::Training => Stage::Inspecting,
            Stage::Inspecting => Stage::Exercising,
            Stage::Exercising => Stage::Discovering,
            Stage::Discovering => Stage::Programming,
            Stage::Programming | Stage::Dispatching => Stage::Dispatching,
        };
        self.enter(job, next);
    }

    /// Links that did not train: each is at fault at both ends; the job goes elsewhere.
    pub(super) fn links_trained(&mut self, job: JobId, failed: &[PortId]) {
        for &port in failed {
            if let Some(link) = self.fabric.link_from(port) {
                self.see(Target::Link(even(link)), Symptom::LinkDown, None);
            }
        }
        if failed.is_empty() {
            self.advance(job, Stage::Training);
        } else {
            self.fail_start(job, Stage::Training);
        }
    }

    /// A part of a start came out badly.  Where Selvedge may only observe, what still works is
    /// used: a finding of the preflight is told, and the start goes on.
    pub(super) fn found(&mut self, job: JobId, stage: Stage) {
        if self.state.settings.level == Level::Observe {
            return;
        }
        self.fail_start(job, stage);
    }

    /// A start cannot be completed.
    pub(super) fn fail_start(&mut self, job: JobId, stage: Stage) {
        // Reporting a fault may already have stopped the job.
        if matches!(self.state.jobs[job].state, JobState::Starting { .. }) {
            self.stop(job, StopWhy::StartFailed { stage }, super::jobs::Haste::AtOnce);
        }
    }

    /// Whom the answers to this start are for.
    pub(super) fn errand(&self, job: JobId) -> Errand {
        Errand::Job(job, self.state.jobs[job].attempt)
    }

    pub(super) fn place_of(&self, job: JobId) -> &Place {
        self.state.jobs[job].place.as_ref().expect("a job that holds hardware has a place")
    }
}
