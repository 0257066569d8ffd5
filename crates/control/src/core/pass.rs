//! The scheduler's passes: swaps first, then the queue, then, where the head still waits, moves.

use std::collections::BTreeSet;

use selvedge_model::fabric::Role;
use selvedge_model::fault::{Severity, Target};
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Demand, Need};
use selvedge_model::unit::Moment;

use crate::capacity::parts_of;
use crate::check;
use crate::core::jobs::Haste;
use crate::core::{Adopted, Core, count};
use crate::note::{CaseState, Note, StopWhy};
use crate::planted::Defect;
use crate::schedule::line::Row;
use crate::schedule::swap::{Resuming, Swap};
use crate::schedule::{self, Busy, Plan, View, Waiting};
use crate::state::{Job, JobState};

/// A job in the queue.
struct Queued<'a> {
    core: &'a Core,
    job: JobId,
}

impl<'a> Row<'a> for Queued<'a> {
    fn need(&self) -> &'a Need {
        self.core.need_of(self.job)
    }

    fn read(&self) -> Waiting<'a> {
        self.core.waiting(self.job)
    }
}

/// How many of those who wait a pass sees where that defect is built in.
const SHORT_SIGHT: usize = 2;

impl Core {
    /// Runs passes until nothing more changes.
    pub(super) fn settle(&mut self) {
        while std::mem::take(&mut self.dirty) {
            self.swap_pass();
            self.queue_pass();
        }
    }

    /// Jobs that lost a part go on with a spare, or give their place up.
    fn swap_pass(&mut self) {
        let now = self.state.now;
        let waiting = |it: &Job| match it.state {
            JobState::Queued { held: false, not_before, .. } => {
                it.place.is_some() && not_before <= now
            }
            _ => false,
        };
        let jobs: Vec<JobId> =
            self.state.active.iter().copied().filter(|&it| waiting(&self.state.jobs[it])).collect();
        let jobs: Vec<JobId> = jobs.into_iter().filter(|it| !self.has_stray(*it)).collect();
        if jobs.is_empty() {
            return;
        }
        let resuming: Vec<Resuming<'_>> = jobs
            .iter()
            .map(|&job| Resuming {
                job,
                place: self.place_of(job),
                swaps: matches!(**self.need_of(job), Need::Whole { .. }),
            })
            .collect();
        let swaps = self.with_view(&[], |view| schedule::swap::plan(view, &resuming));
        let violations = check::swaps(&self.fabric, &self.state, &swaps);
        let adopted = self.checked(Adopted::Swaps(swaps), violations.is_empty());
        let Some(Adopted::Swaps(swaps)) = adopted else {
            self.note(Note::PlanRefused { job: jobs[0], n_violations: count(violations.len()) });
            return;
        };
        for Swap { job, place } in swaps {
            match place {
                Some(place) => self.start(job, place),
                None => self.give_up_place(job),
            }
        }
    }

    /// Serves the queue.
    fn queue_pass(&mut self) {
        if self.state.queue.is_empty() {
            self.head = None;
            self.planned = None;
            self.forget_plan();
            return;
        }
        let sight = match self.state.settings.has(Defect::ShortSighted) {
            true => SHORT_SIGHT,
            false => usize::MAX,
        };
        let queue = self.state.queue.iter().take(sight);
        let queue = queue.map(|(_, job)| Queued { core: self, job: *job });
        let (planned, report) =
            self.with_view(&self.busy_rows(), |view| schedule::plan(view, queue));
        self.head = report.head;
        let mut violations = check::starts(&self.fabric, &self.state, &planned);
        violations.retain(|_| !self.state.settings.has(Defect::DoubleBackfill));
        // The record of another version is asked for its plan even where this one has none.
        let is_current = !planned.is_empty() && violations.is_empty();
        let adopted = if planned.is_empty() && self.plans_anew() {
            None
        } else {
            self.checked(Adopted::Schedule(planned), is_current)
        };
        if !violations.is_empty() {
            let job = self.head.as_ref().map_or(JobId::new(0), |it| it.job);
            self.note(Note::PlanRefused { job, n_violations: count(violations.len()) });
        }
        let Some(Adopted::Schedule(Plan { starts, preempts, unclaims })) = adopted else {
            self.consider_moves();
            return;
        };
        // Whoever still waits is looked at again, for whom to preempt or to move.
        self.dirty = true;
        for start in starts {
            self.start(start.job, start.place);
        }
        for job in unclaims {
            self.unclaim(job);
        }
        for (victim, by) in preempts {
            if !self.state.jobs[by].claims {
                self.claim(by);
            }
            self.stop(victim, StopWhy::Preempted { by }, Haste::WithNotice);
        }
    }

    /// Whoever holds hardware, as the scheduler reads it.
    pub(super) fn busy_rows(&self) -> Vec<Busy<'_>> {
        self.state.active.iter().filter_map(|&job| self.busy(job)).collect()
    }

    pub(super) fn waiting(&self, job: JobId) -> Waiting<'_> {
        let known = &self.state.jobs[job];
        Waiting {
            job,
            demand: &known.spec.demand,
            need: self.need_of(job),
            limit: known.spec.limit,
            priority: known.spec.priority,
            preemptible: known.spec.preemptible,
            rank: self.queue_key(job).rank,
            claims: known.claims,
            is_awaited: known.claims && self.is_awaited(job),
        }
    }

    /// Whether running jobs are still leaving so that `head` can start.
    fn is_awaited(&self, head: JobId) -> bool {
        self.state.active.iter().any(|&it| match self.state.jobs[it].state {
            JobState::Stopping { why: StopWhy::Preempted { by }, .. } => by == head,
            JobState::Stopping { why: StopWhy::Moved { .. }, .. } => true,
            _ => false,
        })
    }

    fn busy(&self, job: JobId) -> Option<Busy<'_>> {
        let known = &self.state.jobs[job];
        let place = known.place.as_ref()?;
        let settings = &self.state.settings;
        let stop_max = settings.notice + settings.grace;
        let by_limit = |from: Moment| match known.spec.limit {
            Some(limit) => from + limit + stop_max,
            None => Moment::NEVER,
        };
        let (release_by, leaving) = match known.state {
            JobState::Running { since } => (by_limit(since), false),
            JobState::Stopping { kill_at, .. } => (kill_at + settings.grace, true),
            _ => (by_limit(known.placed_at + settings.setup_max), false),
        };
        let preemptible = known.spec.preemptible && matches!(known.state, JobState::Running { .. });
        Some(Busy {
            job,
            demand: &known.spec.demand,
            need: self.need_of(job),
            limit: known.spec.limit,
            holds: &place.holds,
            pool: place.pool,
            release_by,
            priority: known.spec.priority,
            waited: known.waited,
            preemptible,
            leaving,
            since: known.placed_at,
        })
    }

    /// Shows a pure planner the present state.
    pub(super) fn with_view<T>(
        &self,
        busy: &[Busy<'_>],
        planner: impl FnOnce(&View<'_>) -> T,
    ) -> T {
        let settings = &self.state.settings;
        let current = |switch: PartId, north: u16| {
            self.state.switches.get(&switch)?.pairs.get(&north).copied()
        };
        planner(&View {
            now: self.state.now,
            fabric: &self.fabric,
            layout: &self.layout,
            parts: &self.state.parts,
            doubted: &self.doubted(),
            busy,
            means: settings.means,
            aging: settings.aging,
            setup_max: settings.setup_max,
            stop_max: settings.notice + settings.grace,
            window: None,
            current: &current,
            planted: settings.planted(),
        })
    }

    /// Parts that are in use and are better left alone: something on them is gravely at fault, and
    /// only observed or held back by the breaker, or a maintenance will come to them.
    fn doubted(&self) -> BTreeSet<PartId> {
        let open = self.state.open_cases.values().map(|it| &self.state.cases[*it]);
        let grave = open.filter(|it| {
            Severity::Critical <= it.severity && matches!(it.state, CaseState::Observed)
        });
        // All parts are on each switch: of those none is better than another.
        let is_switch = |it: &Target| match *it {
            Target::Part(part) => self.fabric.template_of(part).role == Role::CircuitSwitch,
            Target::Node(_) | Target::Port(_) | Target::Link(_) => false,
        };
        let planned = self.state.maintenances.iter().flat_map(|it| &it.waiting).copied();
        let planned = planned.filter(|it| !is_switch(it));
        let targets = grave.map(|it| it.target).chain(planned);
        targets.flat_map(|it| parts_of(&self.fabric, it)).collect()
    }

    /// Remembers the family's word on the demand of the next job.
    pub(super) fn learn(&mut self, demand: &Demand, need: impl FnOnce() -> Need) {
        let known = self.needs.get(demand).cloned();
        let known = known.unwrap_or_else(|| {
            let need = std::sync::Arc::new(need());
            self.needs.insert(demand.clone(), std::sync::Arc::clone(&need));
            need
        });
        self.needs_of.push(known);
    }
}
