//! Circuit switches that do not answer.
//!
//! ```text
//!   answers ──► missed 1, 2 ──► silent: nobody is wired through it, whoever is stays
//!      ▲            │              │     │
//!      └────────────┴──────────────┘     └─► more of its fibres fail than chance has it, or it is
//!        it answers: tested, on probation     reported dead: whoever is wired through it leaves
//! ```
//! A switch holds its mirrors without anybody who tells it to: what does not answer, because its
//! controller or the way to it is gone, still passes light on.  Its case is repaired while jobs run
//! through it.

use selvedge_model::fault::{Severity, Symptom, Target};
use selvedge_model::id::{CaseId, PartId};

use crate::core::{Accepted, Core, Refused};
use crate::limits::{MISSES_MAX, SILENT_READ_EVERY, SWITCH_PORTS_MAX, SWITCH_WINDOW};
use crate::note::{CaseState, Owner};
use crate::output::Command;
use crate::state::Timer;

impl Core {
    /// A poll was not answered.  What is known to be silent is no news.
    pub(super) fn unanswered(&mut self, switch: PartId) -> Result<Accepted, Refused> {
        let Some(state) = self.state.switches.get(&switch) else {
            return Err(Refused::NoTarget { target: Target::Part(switch) });
        };
        if state.silent.is_some() {
            return Err(Refused::Stale);
        }
        self.miss(switch);
        Ok(Accepted::Done)
    }

    /// Counts one read or poll that `switch` has not answered.
    fn miss(&mut self, switch: PartId) {
        let Some(state) = self.state.switches.get_mut(&switch) else { return };
        state.n_missed = state.n_missed.saturating_add(1);
        if MISSES_MAX <= state.n_missed {
            self.fall_silent(switch);
        }
    }

    /// The switch does not answer what it is asked, again and again.
    pub(super) fn fall_silent(&mut self, switch: PartId) {
        let now = self.state.now;
        let Some(state) = self.state.switches.get_mut(&switch) else { return };
        state.n_missed = state.n_missed.max(MISSES_MAX);
        let value = Some(state.n_missed);
        if state.silent.is_none() {
            state.silent = Some(now);
            self.recount_outages();
        }
        self.set_timer(Timer::Switch(switch), now + SILENT_READ_EVERY);
        self.see(Target::Part(switch), Symptom::Silent, value);
    }

    /// A read is due: one that was not answered counts, and is asked again.
    pub(super) fn switch_due(&mut self, switch: PartId) {
        // A switch that has been taken out has no answer to give.
        let Some(state) = self.state.switches.get(&switch) else { return };
        let (known, silent) = (state.known, state.silent.is_some());
        if known && !silent {
            return;
        }
        let patience = if silent { SILENT_READ_EVERY } else { self.state.settings.answer_max };
        self.set_timer(Timer::Switch(switch), self.state.now + patience);
        if !silent {
            self.miss(switch);
        }
        self.send(Command::ReadSwitch { switch });
    }

    /// The switch has answered.
    pub(super) fn answers(&mut self, switch: PartId) {
        let Some(state) = self.state.switches.get_mut(&switch) else { return };
        state.n_missed = 0;
        if state.silent.take().is_some() {
            self.recount_outages();
        }
    }

    /// What has fallen silent and answers again is tested as what was repaired, unless somebody is
    /// at work on it.
    pub(super) fn heard_again(&mut self, switch: PartId) {
        let Some(&case) = self.state.open_cases.get(&Target::Part(switch)) else { return };
        let known = &self.state.cases[case];
        let waits = known.state == CaseState::Waiting && known.taken_by.is_none();
        if waits && self.is_mere_silence(case) {
            self.verify(case);
        }
    }

    /// Whether a target is a circuit switch that counts as silent.
    pub(super) fn is_silent(&self, target: Target) -> bool {
        let Target::Part(switch) = target else { return false };
        self.state.switches.get(&switch).is_some_and(|it| it.silent.is_some())
    }

    /// Whether all that a case says is that a circuit switch does not answer.
    pub(super) fn is_mere_silence(&self, case: CaseId) -> bool {
        let known = &self.state.cases[case];
        let is_switch = matches!(known.target, Target::Part(part) if self.is_switch(part));
        is_switch && known.symptom == Symptom::Silent && known.severity < Severity::Critical
    }

    /// A silent switch is believed to pass light on until more than a few of its fibres are at
    /// fault within a short time: then the silence is the switch's end, and their cause.
    pub(super) fn weigh_silence(&mut self, target: Target) {
        for switch in self.switches_at(target) {
            let Some(&case) = self.state.open_cases.get(&Target::Part(switch)) else { continue };
            if !self.is_mere_silence(case) {
                continue;
            }
            let now = self.state.now;
            let open = self.state.open_cases.values().map(|it| &self.state.cases[*it]);
            let mut fibres = open.filter(|it| {
                it.symptom.is_fault()
                    && now.since(it.opened) <= SWITCH_WINDOW
                    && self.is_at(it.target, Target::Part(switch))
            });
            if let Some(symptom) = fibres.nth(SWITCH_PORTS_MAX).map(|it| it.symptom) {
                self.grow(case, Severity::Critical, symptom, None);
                self.absorb(case);
            }
        }
    }

    /// The circuit switches that a target is, or ends at.
    fn switches_at(&self, target: Target) -> Vec<PartId> {
        let part_of = |port| self.fabric.part_of_port(port);
        let mut parts = match target {
            Target::Part(part) => vec![part],
            Target::Port(port) => vec![part_of(port)],
            Target::Link(link) => {
                let link = self.fabric.link(link);
                vec![part_of(link.source), part_of(link.target)]
            }
            Target::Node(_) => Vec::new(),
        };
        parts.retain(|it| self.is_switch(*it));
        parts
    }

    /// Nobody leaves a silent switch: its case waits for a repair while jobs run through it.
    pub(super) fn repair_in_use(&mut self, case: CaseId) {
        let known = &self.state.cases[case];
        let (target, why) = (known.target, known.symptom.words().to_owned());
        self.clear_timer(Timer::Case(case));
        self.take_out(target, Owner::Case(case), why, false);
    }
}
