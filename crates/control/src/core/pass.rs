//! The scheduler's passes: swaps first, then the queue, then, where the head still waits, moves.

use selvedge_model::id::{JobId, PartId, PlanId};
use selvedge_model::job::{Demand, Need};
use selvedge_model::unit::{Moment, Span};

use crate::core::jobs::Haste;
use crate::core::{Adopted, Core, count};
use crate::limits::BACKFILL_DEPTH;
use crate::note::{Note, StopWhy};
use crate::planted::Defect;
use crate::schedule::defragment::{Allowance, Movable};
use crate::schedule::swap::{Resuming, Swap};
use crate::schedule::{self, Busy, Plan, View, Waiting, defragment};
use crate::settings::Level;
use crate::state::{Job, JobState, Moves};
use crate::{check, family};

/// What the scheduler reads of the waiting and the busy, borrowed from the state.
pub(super) struct Rows<'a> {
    pub(super) queue: Vec<Waiting<'a>>,
    pub(super) busy: Vec<Busy<'a>>,
}

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
        if jobs.is_empty() {
            return;
        }
        let resuming: Vec<Resuming<'_>> = jobs
            .iter()
            .map(|&job| Resuming {
                job,
                place: self.place_of(job),
                outer: family::is_outer(self.need_of(job)),
            })
            .collect();
        let swaps = self.with_view(&[], &[], |view| schedule::swap::plan(view, &resuming));
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
            return;
        }
        let rows = self.rows();
        let (planned, report) = self.with_view(&rows.queue, &rows.busy, schedule::plan);
        drop(rows);
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

    /// The waiting, as far as a pass looks, and the busy.
    pub(super) fn rows(&self) -> Rows<'_> {
        let queue = self.state.queue.iter().take(4 * BACKFILL_DEPTH);
        let queue = queue.map(|(_, job)| self.waiting(*job)).collect();
        let busy = self.state.active.iter().filter_map(|&job| self.busy(job)).collect();
        Rows { queue, busy }
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
        queue: &[Waiting<'_>],
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
            queue,
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

    /// Looks for moves where the head waits for longer than a move takes.
    fn consider_moves(&mut self) {
        if self.state.proposal.as_ref().is_some_and(|it| !self.is_possible(it)) {
            self.state.proposal = None;
        }
        let planned = if self.plans_anew() { self.planned_moves() } else { None };
        let adopted = match planned {
            Some(moves) => {
                let violations = check::moves(&self.fabric, &self.state, &moves);
                self.checked(Adopted::Moves(moves), violations.is_empty())
            }
            None if self.plans_anew() => None,
            None => self.checked(Adopted::Moves(Moves::none()), false),
        };
        let Some(Adopted::Moves(moves)) = adopted else { return };
        self.state.n_plans += 1;
        let lost_chip_hours = u32::try_from(moves.lost.as_secs() / 3600).unwrap_or(u32::MAX);
        self.note(Note::MovesProposed {
            plan: moves.id,
            job: moves.job,
            n_moved: count(moves.moves.len()),
            lost_chip_hours,
        });
        self.state.proposal = Some(moves);
        if self.state.settings.level == Level::Repair {
            self.adopt_moves();
        }
    }

    fn planned_moves(&self) -> Option<Moves> {
        let settings = &self.state.settings;
        if !settings.means.defragment {
            return None;
        }
        let head = self.head.as_ref()?;
        let soon = self.state.now + settings.notice + settings.grace + settings.setup_max;
        let waits = head.promise.as_ref().is_none_or(|it| soon < it.at);
        let is_moving = self.state.active.iter().any(|&it| self.state.jobs[it].next.is_some());
        let claims = self.state.jobs[head.job].claims;
        let is_proposed = self.state.proposal.as_ref().is_some_and(|it| it.job == head.job);
        if !waits || is_moving || claims || is_proposed {
            return None;
        }
        let promised = head.promise.as_ref().map(|it| it.at.since(soon));
        self.plan_moves(head.job, promised.unwrap_or(settings.moves_window))
    }

    /// The moves that would let `head` start now, where it would start `sooner` by so much.
    fn plan_moves(&self, head: JobId, sooner: Span) -> Option<Moves> {
        let rows = self.rows();
        let settings = &self.state.settings;
        let loss = settings.notice + settings.grace + settings.setup_max;
        let running = self.state.active.iter().map(|&it| (it, &self.state.jobs[it]));
        let movable: Vec<Movable<'_>> = running
            .filter(|(_, it)| matches!(it.state, JobState::Running { .. }) && it.spec.preemptible)
            .filter_map(|(job, it)| {
                let place = it.place.as_ref()?;
                let (demand, need) = (&it.spec.demand, self.need_of(job).as_ref());
                Some(Movable { job, owner: &it.spec.owner, demand, need, place, loss })
            })
            .collect();
        let allowance = self.allowance();
        let head = self.waiting(head);
        let id = PlanId::new(self.state.n_plans);
        let worth = sooner.times(u64::from(self.n_seats_for(&head)));
        self.with_view(&rows.queue, &rows.busy, |view| {
            defragment::propose(view, &head, &movable, &allowance, worth, id)
        })
    }

    /// The chips that a job needs on this plant.
    fn n_seats_for(&self, job: &Waiting<'_>) -> u32 {
        let pools = self.layout.pools.pairs();
        let mut serving =
            pools.filter(|it| family::serves(&self.fabric, &self.layout, it.0, job.demand));
        let part = serving.find_map(|it| it.1.first());
        job.need.n_seats(part.map_or(1, |it| self.layout.seats[*it].count_ones()))
    }

    /// What each owner may still lose: its share of what it runs over the window, less what it
    /// has lost within it.
    fn allowance(&self) -> Allowance<'_> {
        let settings = &self.state.settings;
        let mut allowance = Allowance::new();
        for &job in &self.state.active {
            let known = &self.state.jobs[job];
            let chips = known.place.as_ref().map_or(0, |it| it.n_seats());
            let runs = settings.moves_window.times(u64::from(chips));
            let share = u64::from(settings.moves_share.parts());
            let nanos = u128::from(runs.as_nanos()) * u128::from(share) / 1_000_000;
            let may = Span::nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            *allowance.entry(known.spec.owner.as_str()).or_default() += may;
        }
        for (owner, losses) in &self.state.moves {
            let lately = losses
                .iter()
                .filter(|(at, _)| self.state.now.since(*at) <= settings.moves_window)
                .fold(Span::ZERO, |acc, (_, loss)| acc + *loss);
            if let Some(left) = allowance.get_mut(owner.as_str()) {
                *left = left.minus(lately);
            }
        }
        allowance
    }

    /// Whether every move can still be made, and somebody still waits for it.
    pub(super) fn is_possible(&self, moves: &Moves) -> bool {
        matches!(self.state.jobs[moves.job].state, JobState::Queued { held: false, .. })
            && check::moves(&self.fabric, &self.state, moves).is_empty()
    }

    /// Carries the proposal out, if every move is still possible.  Returns whether it was.
    pub(super) fn adopt_moves(&mut self) -> bool {
        let Some(proposal) = self.state.proposal.take() else { return false };
        if !self.is_possible(&proposal) {
            return false;
        }
        let settings = &self.state.settings;
        let loss = settings.notice + settings.grace + settings.setup_max;
        let (now, window) = (self.state.now, settings.moves_window);
        self.note(Note::MovesAdopted { plan: proposal.id, job: proposal.job });
        self.claim(proposal.job);
        for (job, place) in proposal.moves {
            for hold in &place.holds {
                self.state.parts[hold.part].held |= hold.seats;
            }
            let lost = loss.times(u64::from(place.n_seats()));
            let owner = self.state.jobs[job].spec.owner.clone();
            let losses = self.state.moves.entry(owner).or_default();
            losses.retain(|(at, _)| now.since(*at) <= window);
            losses.push((now, lost));
            self.state.jobs[job].next = Some(place);
            self.stop(job, StopWhy::Moved { plan: proposal.id }, Haste::WithNotice);
        }
        true
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
