//! Moves: whom to move so that the head fits is planned outside the core.
//!
//! ```text
//!                the head waits          answer: moves        check passed
//!   nothing asked ────────────► asked ──────────────► held ──────────────► proposed ─► adopted
//!        ▲                      │ │ ▲                  │ against what has
//!        │ nobody waits, nothing│ │ └──────────────────┘ changed: asked anew
//!        └──────────────────────┘ └─► no answer in time, or a restart: asked anew
//! ```
//! One request is open at a time; a later one takes its place, and the earlier one's answer is
//! refused.  What was found is held against the state by code that shares nothing with its planner,
//! and then by the scheduler: the head must find a place once everybody has moved.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_model::id::{JobId, PlanId};
use selvedge_model::unit::Span;

use crate::capacity::Capacity;
use crate::core::jobs::Haste;
use crate::core::{Accepted, Adopted, Core, Refused, count};
use crate::input::Proposed;
use crate::limits::{PLAN_DOUBLINGS_MAX, PLAN_MAX};
use crate::note::{Note, StopWhy};
use crate::output::{Output, Request};
use crate::planted::Defect;
use crate::schedule::defragment::question::{self, Question};
use crate::schedule::{self, Waiting};
use crate::settings::Level;
use crate::state::{JobState, Moves, Planning, Timer};
use crate::{check, family};

/// For whom moves are wanted, and what they may cost.
struct Wanted {
    job: JobId,
    worth: Span,
}

impl Core {
    /// What is to be planned for a request, unless it is no longer waited for, or this process has
    /// not asked for it.
    pub fn question(&self, request: Request) -> Option<Arc<Question>> {
        let planning = self.state.planning.as_ref()?;
        let question = self.question.as_ref()?;
        (planning.request == request && question.number() == request.number)
            .then(|| Arc::clone(question))
    }

    /// Takes what was planned outside the core; the next pass holds it against the present state.
    pub(super) fn take_plan(
        &mut self,
        request: u64,
        moves: Option<Proposed>,
    ) -> Result<Accepted, Refused> {
        let planning = self.state.planning.as_ref();
        let Some(planning) = planning.filter(|it| it.request.number == request).copied() else {
            return Err(Refused::Stale);
        };
        if let Some(moves) = &moves {
            self.known_moves(moves)?;
        }
        self.compare_planned(request, moves.as_ref());
        self.forget_plan();
        // Without an answer, and with nothing changed since, there is nothing to ask again.
        self.dirty |= moves.is_some() || planning.is_old;
        self.planned = moves;
        Ok(Accepted::Done)
    }

    /// Whether everything that is named exists.
    fn known_moves(&self, moves: &Proposed) -> Result<(), Refused> {
        let n = self.state.jobs.len();
        for (job, place) in
            moves.moves.iter().map(|it| (it.0, Some(&it.1))).chain([(moves.job, None)])
        {
            if self.state.jobs.get(job).is_none() {
                return Err(Refused::NoJob { job, n });
            }
            for hold in place.iter().flat_map(|it| &it.holds) {
                self.known_target(selvedge_model::fault::Target::Part(hold.part))?;
            }
        }
        Ok(())
    }

    /// No answer has come in time.
    pub(super) fn plan_due(&mut self) {
        if let Some(planning) = &mut self.state.planning {
            planning.is_lost = true;
            self.dirty = true;
        }
    }

    /// Nobody waits for a plan any longer.
    pub(super) fn forget_plan(&mut self) {
        if self.state.planning.take().is_some() {
            self.clear_timer(Timer::Plan);
        }
        self.question = None;
    }

    /// Looks for moves where the head waits for longer than a move takes.
    pub(super) fn consider_moves(&mut self) {
        if self.state.proposal.as_ref().is_some_and(|it| !self.is_possible(it)) {
            self.state.proposal = None;
        }
        let wanted = self.wanted_moves();
        let Some(planned) = self.planned.take() else {
            return self.ask_for_moves(wanted);
        };
        let fits = wanted.as_ref().is_some_and(|it| self.fits_now(&planned, it));
        let Proposed { job, moves, lost } = planned;
        let moves = Moves { id: PlanId::new(self.state.n_plans), job, moves, lost };
        let Some(Adopted::Moves(moves)) = self.checked(Adopted::Moves(moves), fits) else {
            return self.ask_for_moves(wanted);
        };
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

    /// Whether what was planned a while ago is still what is wanted, and still helps.
    fn fits_now(&self, planned: &Proposed, wanted: &Wanted) -> bool {
        if self.state.settings.has(Defect::OldPlanTaken) {
            return true;
        }
        let Proposed { job, moves, lost } = planned;
        let checked = Moves { id: PlanId::new(0), job: *job, moves: moves.clone(), lost: *lost };
        planned.job == wanted.job
            && planned.lost <= wanted.worth
            && check::moves(&self.fabric, &self.state, &checked).is_empty()
            && self.makes_room(planned)
    }

    /// Whether the head finds a place once everybody has moved.
    fn makes_room(&self, planned: &Proposed) -> bool {
        let head = self.waiting(planned.job);
        self.with_view(&[], |view| {
            let mut free = Capacity::now(view.layout, view.parts);
            for (job, _) in &planned.moves {
                let place = self.state.jobs[*job].place.as_ref();
                place.iter().for_each(|it| free.give(&it.holds));
            }
            planned.moves.iter().for_each(|(_, place)| free.take(&place.holds));
            schedule::place(view, &free, &head).is_some()
        })
    }

    /// Asks for a plan, unless it is asked for already.
    fn ask_for_moves(&mut self, wanted: Option<Wanted>) {
        let Some(Wanted { job, worth }) = wanted else { return self.forget_plan() };
        let mut n_lost = 0;
        if let Some(planning) = &mut self.state.planning
            && planning.request.job == job
        {
            if !planning.is_lost {
                planning.is_old = true;
                return;
            }
            n_lost = planning.n_lost + 1;
        }
        self.state.n_requests += 1;
        let plant = self.state.plants.len() as u64;
        let request = Request { number: self.state.n_requests, plant, job };
        let planning = Planning { request, n_lost, is_old: false, is_lost: false };
        self.state.planning = Some(planning);
        let patience = PLAN_MAX.times(1 << n_lost.min(PLAN_DOUBLINGS_MAX));
        self.set_timer(Timer::Plan, self.state.now + patience);
        self.question = Some(Arc::new(self.asked(request.number, job, worth)));
        self.outputs.push_back(Output::Plan(request));
    }

    /// For whom moves are looked for, if for anybody.
    fn wanted_moves(&self) -> Option<Wanted> {
        let settings = &self.state.settings;
        if !settings.means.defragment {
            return None;
        }
        let head = self.head.as_ref()?;
        let soon = self.state.now + settings.move_max();
        let waits = head.promise.as_ref().is_none_or(|it| soon < it.at);
        let is_moving = self.state.active.iter().any(|&it| self.state.jobs[it].next.is_some());
        let claims = self.state.jobs[head.job].claims;
        let is_proposed = self.state.proposal.as_ref().is_some_and(|it| it.job == head.job);
        if !waits || is_moving || claims || is_proposed {
            return None;
        }
        let promised = head.promise.as_ref().map(|it| it.at.since(soon));
        let sooner = promised.unwrap_or(settings.moves_window);
        let n_seats = self.n_seats_for(&self.waiting(head.job));
        Some(Wanted { job: head.job, worth: sooner.times(u64::from(n_seats)) })
    }

    /// All that is read to plan moves for `head`.
    fn asked(&self, number: u64, head: JobId, worth: Span) -> Question {
        let settings = &self.state.settings;
        let loss = settings.move_max();
        let running = self.state.active.iter().map(|&it| (it, &self.state.jobs[it]));
        let movable = running
            .filter(|(_, it)| matches!(it.state, JobState::Running { .. }) && it.spec.preemptible)
            .filter_map(|(job, it)| {
                Some(question::Movable {
                    job,
                    owner: it.spec.owner.clone(),
                    demand: it.spec.demand.clone(),
                    need: Arc::clone(self.need_of(job)),
                    place: it.place.clone()?,
                    loss,
                })
            });
        // Read only to lay out who leaves for another pool: nobody, where there is none.
        let read = 1 < self.layout.pools.len();
        let switches = self.state.switches.iter().filter(|_| read);
        let pairs = switches.map(|(id, it)| (*id, it.pairs.clone()));
        Question::new(question::Parts {
            number,
            now: self.state.now,
            fabric: Arc::clone(&self.fabric),
            layout: Arc::clone(&self.layout),
            parts: self.state.parts.clone(),
            pairs: pairs.collect(),
            settings: settings.clone(),
            head,
            demand: self.state.jobs[head].spec.demand.clone(),
            need: Arc::clone(self.need_of(head)),
            movable: movable.collect(),
            allowance: self.allowance(),
            worth,
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
    fn allowance(&self) -> BTreeMap<String, Span> {
        let settings = &self.state.settings;
        let mut allowance: BTreeMap<String, Span> = BTreeMap::new();
        for &job in &self.state.active {
            let known = &self.state.jobs[job];
            let chips = known.place.as_ref().map_or(0, |it| it.n_seats());
            let runs = settings.moves_window.times(u64::from(chips));
            let share = u64::from(settings.moves_share.parts());
            let nanos = u128::from(runs.as_nanos()) * u128::from(share) / 1_000_000;
            let may = Span::nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            *allowance.entry(known.spec.owner.clone()).or_default() += may;
        }
        for (owner, losses) in &self.state.moves {
            let lately = losses
                .iter()
                .filter(|(at, _)| self.state.now.since(*at) <= settings.moves_window)
                .fold(Span::ZERO, |acc, (_, loss)| acc + *loss);
            if let Some(left) = allowance.get_mut(owner) {
                *left = left.minus(lately);
            }
        }
        allowance
    }

    /// Whether every move can still be made, and somebody still waits for it.
    pub(super) fn is_possible(&self, moves: &Moves) -> bool {
        let waits =
            matches!(self.state.jobs[moves.job].state, JobState::Queued { held: false, .. });
        let blind = self.state.settings.has(Defect::OldPlanTaken);
        waits && (blind || check::moves(&self.fabric, &self.state, moves).is_empty())
    }

    /// Carries the proposal out, if every move is still possible.  Returns whether it was.
    pub(super) fn adopt_moves(&mut self) -> bool {
        let Some(proposal) = self.state.proposal.take() else { return false };
        if !self.is_possible(&proposal) {
            return false;
        }
        let settings = &self.state.settings;
        let loss = settings.move_max();
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
}
