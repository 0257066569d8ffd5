//! The circuit breaker: what is done by itself stops when too much would be touched in a short time
//! (DESIGN §5).
//!
//! An act touches the seats that it takes out, those of the running jobs that it stops, each once,
//! and of a link its share: a fibre one of so many of its cube's, a switch one of so many of its
//! pod's.  Acts of a window together may touch a set share of the plant.  One that is heavier than
//! that by itself (all that runs in the only pod goes through each of its switches) can never be
//! weighed so: one of them passes in a window, beside the share of the others.
//!
//! What is held back is weighed again as soon as the window has passed what stands against it, or a
//! person does it.

use std::collections::BTreeMap;

use selvedge_model::fabric::Role;
use selvedge_model::id::{CaseId, PartId};
use selvedge_model::unit::Moment;

use crate::capacity;
use crate::core::Core;
use crate::note::{CaseState, Note};
use crate::state::{JobState, PartState, Timer};

/// A link weighs less than a seat.
const PARTS_OF_SEAT: u64 = 1000;

impl Core {
    /// Whether what would be done about a case by itself stays within the breaker's share; if it
    /// does, it counts.  If not, the case is held back.
    pub(super) fn breaker_allows(&mut self, case: CaseId, evicts: bool) -> bool {
        let (now, window) = (self.state.now, self.state.settings.breaker_window);
        let weight = self.weight(case, evicts);
        self.state.breaker.retain(|(at, _)| now.since(*at) <= window);
        let share = self.breaker_share();
        let is_heavy = |weight: u32| share < u64::from(weight);
        let mut before = self.state.breaker.iter().map(|it| it.1);
        let fits = match is_heavy(weight) {
            true => !before.any(is_heavy),
            false => {
                let light: u64 = before.filter(|it| !is_heavy(*it)).map(u64::from).sum();
                light + u64::from(weight) <= share
            }
        };
        if weight == 0 || fits {
            if weight != 0 {
                self.state.breaker.push((now, weight));
            }
            self.state.cases[case].held_back = None;
            return true;
        }
        self.hold_back(case);
        false
    }

    /// Seats that may be touched within a window.
    fn breaker_share(&self) -> u64 {
        let share = u64::from(self.state.settings.breaker_share.parts());
        self.layout.n_seats() * share / 1_000_000
    }

    fn hold_back(&mut self, case: CaseId) {
        let now = self.state.now;
        // Something stands against it, or it would have passed.
        let until = self.breaker_until();
        self.set_timer(Timer::Breaker, until);
        if self.state.cases[case].held_back.is_none() {
            self.state.cases[case].held_back = Some(now);
            self.note(Note::BreakerTripped { case, until });
        }
    }

    /// When the oldest of what stands against others has passed.
    pub fn breaker_until(&self) -> Moment {
        let window = self.state.settings.breaker_window;
        let oldest = self.state.breaker.iter().map(|it| it.0).min();
        let just_after = selvedge_model::unit::Span::nanos(1);
        oldest.unwrap_or(self.state.now) + window + just_after
    }

    /// Weighs anew what was held back, oldest case first.
    pub(super) fn breaker_due(&mut self) {
        let held: Vec<CaseId> = (self.state.open_cases.values().copied())
            .filter(|it| self.state.cases[*it].held_back.is_some())
            .collect();
        for case in held {
            match self.state.cases[case].state {
                CaseState::Observed => self.act(case, self.state.settings.level),
                CaseState::Closed => (),
                CaseState::Draining
                | CaseState::Waiting
                | CaseState::UnderRepair
                | CaseState::Verifying
                | CaseState::Probation { .. } => self.vacate(case),
            }
        }
    }

    /// The seats that doing this about a case touches, beyond what was done about it before.
    fn weight(&self, case: CaseId, evicts: bool) -> u32 {
        let target = self.state.cases[case].target;
        let own = self.drain_by(case);
        let mut touched: BTreeMap<PartId, u64> = BTreeMap::new();
        if evicts && own.is_none_or(|it| !it.evicts) {
            let runs = |it: &JobState| matches!(it, JobState::Running { .. });
            for job in self.holders_of(target, runs) {
                for hold in self.place_of(job).holds.iter() {
                    *touched.entry(hold.part).or_default() |= hold.seats;
                }
            }
        }
        let mut links = 0;
        if own.is_none() {
            for (part, outage) in capacity::outage(&self.fabric, target) {
                let seats = touched.entry(part).or_default();
                *seats |= outage.out;
                links += self.weight_of_links(part, &outage, *seats);
            }
        }
        let seats: u64 = touched.values().map(|it| u64::from(it.count_ones())).sum();
        u32::try_from(seats + links.div_ceil(PARTS_OF_SEAT)).unwrap_or(u32::MAX)
    }

    /// What an outage takes of a part's links, as a share of those of its seats that are not
    /// counted by themselves.
    fn weight_of_links(&self, part: PartId, outage: &PartState, counted: u64) -> u64 {
        if outage.outer_out == 0 && outage.links_out.is_empty() {
            return 0;
        }
        let template = self.fabric.template_of(part);
        if template.role != Role::Compute {
            return 0;
        }
        let ports = template.network_ports().iter();
        let is_outer = |local: &&u32| {
            self.fabric.cable_at(self.fabric.port_at(part, **local as usize)).is_some()
        };
        let n_outer = ports.filter(is_outer).count() as u64;
        let n_inner = (template.network_ports().len() as u64 - n_outer) / 2;
        let seats = u64::from((template.all_seats() & !counted).count_ones()) * PARTS_OF_SEAT;
        let outer = seats * u64::from(outage.outer_out) / n_outer.max(1);
        let inner = seats * outage.links_out.len() as u64 / n_inner.max(1);
        (outer + inner).min(seats)
    }
}
