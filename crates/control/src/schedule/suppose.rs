//! What would come if: passes over a plant that only exists in thought.
//!
//! The same planner as in earnest is asked again and again, and what it says is done to a copy of
//! what is held, until it has nothing more to say.

use std::collections::BTreeSet;

use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Hold, Place};
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Span};

use crate::limits::BACKFILL_DEPTH;
use crate::schedule::effort::Effort;
use crate::schedule::explain::{Outages, Step};
use crate::schedule::{self, Busy, Plan, Report, View, Waiting};
use crate::state::PartState;

/// A plant, its queue and its jobs, as they might stand.
#[derive(Clone)]
pub(super) struct Supposed<'a> {
    view: View<'a>,
    /// The moment.
    pub(super) now: Moment,
    /// What is held, and what is out.
    parts: IdVec<PartId, PartState>,
    outages: &'a Outages,
    effort: &'a Effort,
    /// What of that has come back.
    back: BTreeSet<Target>,
    queue: Vec<Waiting<'a>>,
    /// Those of the queue that are held, as long as no pass has to know.
    held: BTreeSet<JobId>,
    /// What the last pass said, if it had nothing to do and all is as it was, but for `held`.
    quiet: Option<Report>,
    busy: Vec<Held<'a>>,
    /// Jobs that come into the queue by themselves, soonest last.
    coming: Vec<(Moment, Waiting<'a>)>,
    /// Whether jobs may be preempted.
    preempts: bool,
    /// How long a job that starts takes to its dispatch, from which its limit counts.
    setup: Span,
    /// Who got hardware in thought, in order.
    pub(super) started: Vec<JobId>,
}

/// A job that holds hardware.
#[derive(Clone)]
struct Held<'a> {
    /// The job, as it would wait.
    row: Waiting<'a>,
    place: Place,
    release_by: Moment,
    leaving: bool,
    since: Moment,
    waited: Span,
}

impl<'a> Supposed<'a> {
    /// As it stands, where a job runs as soon as it is placed.
    pub(super) fn new(
        view: &View<'a>,
        queue: &[Waiting<'a>],
        outages: &'a Outages,
        effort: &'a Effort,
    ) -> Self {
        effort.spend(queue.len() + view.busy.len() + view.parts.len());
        let held = |it: &Busy<'a>| Held {
            row: Waiting {
                job: it.job,
                demand: it.demand,
                need: it.need,
                limit: it.limit,
                priority: it.priority,
                preemptible: it.preemptible,
                rank: 0,
                claims: false,
                is_awaited: false,
            },
            place: Place::of(it.pool, it.holds.to_vec()),
            release_by: it.release_by,
            leaving: it.leaving,
            since: it.since,
            waited: it.waited,
        };
        let mut supposed = Self {
            view: *view,
            now: view.now,
            parts: view.parts.clone(),
            outages,
            effort,
            back: BTreeSet::new(),
            queue: queue.to_vec(),
            held: BTreeSet::new(),
            quiet: None,
            busy: view.busy.iter().map(held).collect(),
            coming: Vec::new(),
            preempts: true,
            setup: Span::ZERO,
            started: Vec::new(),
        };
        supposed.leave_out();
        supposed
    }

    /// As it stands, where everything takes as long as it may, nobody is preempted, and `coming`
    /// join the queue at their moments.
    pub(super) fn at_latest(
        view: &View<'a>,
        queue: &[Waiting<'a>],
        outages: &'a Outages,
        effort: &'a Effort,
        coming: &[(Moment, Waiting<'a>)],
    ) -> Self {
        let mut coming = coming.to_vec();
        coming.sort_by_key(|(at, row)| std::cmp::Reverse((*at, row.job)));
        Self {
            preempts: false,
            setup: view.setup_max,
            coming,
            ..Self::new(view, queue, outages, effort)
        }
    }

    /// What was out of use is in use again.
    pub(super) fn bring_back(&mut self, targets: impl IntoIterator<Item = Target>) {
        self.back.extend(targets);
        self.leave_out();
    }

    /// Takes out of use what has not come back.
    fn leave_out(&mut self) {
        self.quiet = None;
        for part in self.parts.iter_mut() {
            part.out = 0;
            part.links_out.clear();
            part.outer_out = 0;
            part.cut.clear();
        }
        for (target, outage) in &self.outages.out {
            if !self.back.contains(target) {
                for (part, out) in outage {
                    self.parts[*part].worsen(out);
                }
            }
        }
    }

    /// A job that waits is held back.
    pub(super) fn hold(&mut self, job: JobId) {
        self.held.insert(job);
        self.coming.retain(|it| it.1.job != job);
    }

    /// One of these jobs that holds hardware ends; none if none does.
    pub(super) fn end_one_of(&mut self, jobs: &BTreeSet<JobId>) -> Option<JobId> {
        let found = self.busy.iter().map(|it| it.row.job).find(|it| jobs.contains(it));
        found.inspect(|&job| self.end(job))
    }

    /// A job has ended.
    pub(super) fn end(&mut self, job: JobId) {
        let Some(at) = self.busy.iter().position(|it| it.row.job == job) else { return };
        let gone = self.busy.swap_remove(at);
        self.quiet = None;
        self.mark(&gone.place.holds, false);
    }

    /// When the next thing happens by itself: a job has left by its limit, a part is in use
    /// again, a job may be tried again.
    pub(super) fn next_event(&self) -> Option<Moment> {
        let ends = self.busy.iter().map(|it| it.release_by);
        let returning = self.outages.returning.iter().filter(|it| !self.back.contains(it.0));
        let returns = returning.map(|it| *it.1);
        let comes = self.coming.last().map(|it| it.0);
        ends.chain(returns).chain(comes).min().filter(|it| *it != Moment::NEVER)
    }

    /// Lets time pass, and with it all that happens by itself; returns what did.
    pub(super) fn go_on(&mut self, to: Moment) -> Vec<Step> {
        let gone = self.pass(to).into_iter();
        let mut done: Vec<Step> = gone.map(|job| Step::End { job }).collect();
        let returning = &self.outages.returning;
        let due: Vec<Target> =
            returning.iter().filter(|(_, at)| **at <= to).map(|it| *it.0).collect();
        let fresh = due.iter().filter(|it| !self.back.contains(it));
        done.extend(fresh.map(|&target| Step::Return { target }));
        if due.iter().any(|it| !self.back.contains(it)) {
            self.bring_back(due);
        }
        while self.coming.last().is_some_and(|it| it.0 <= to) {
            let (until, row) = self.coming.pop().expect("looked at above");
            done.push(Step::Wait { until });
            self.join(row);
        }
        done
    }

    /// A job joins those who wait.
    fn join(&mut self, row: Waiting<'a>) {
        let is_before = |it: &Waiting<'_>| it.claims || (it.rank, it.job) <= (row.rank, row.job);
        let at = self.queue.iter().take_while(|it| is_before(it)).count();
        self.queue.insert(at, row);
        self.quiet = None;
    }

    /// Whether others would be preempted for `job`.
    pub(super) fn stops_others_for(&self, job: JobId) -> bool {
        let mut may = Self { preempts: true, ..self.clone() };
        may.plan().0.preempts.iter().any(|it| it.1 == job)
    }

    /// Time passes, and whoever has left by its limit is gone; returns who.
    pub(super) fn pass(&mut self, to: Moment) -> Vec<JobId> {
        self.now = self.now.max(to);
        self.quiet = None;
        let gone: Vec<JobId> =
            self.busy.iter().filter(|it| it.release_by <= to).map(|it| it.row.job).collect();
        gone.iter().for_each(|&job| self.end(job));
        gone
    }

    /// Runs passes until nothing more changes, or until `job` gets hardware; whether it did.
    pub(super) fn settle(&mut self, job: JobId) -> bool {
        if self.quiet.as_ref().is_some_and(|it| self.says_the_same(it)) {
            return false;
        }
        self.quiet = None;
        loop {
            let (plan, report) = self.plan();
            if plan.is_empty() {
                self.quiet = Some(report);
                return false;
            }
            let stops_for_it = plan.preempts.iter().any(|it| it.1 == job);
            if stops_for_it || plan.starts.iter().any(|it| it.job == job) {
                return true;
            }
            self.adopt(plan);
        }
    }

    /// Whether a pass would say what the last one did, though some are held since: whoever waits
    /// behind the head and did not fit stood in nobody's way, unless only so many were looked at.
    fn says_the_same(&self, report: &Report) -> bool {
        let is_head_held = report.head.as_ref().is_some_and(|it| self.held.contains(&it.job));
        !is_head_held && (report.n_looked as usize) < BACKFILL_DEPTH
    }

    /// What a pass says; nothing once the effort is spent.
    fn plan(&mut self) -> (Plan, Report) {
        if self.effort.is_spent() {
            return Default::default();
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.queue.retain(|it| !held.contains(&it.job));
        }
        let busy: Vec<Busy<'_>> = self
            .busy
            .iter()
            .map(|it| Busy {
                job: it.row.job,
                demand: it.row.demand,
                need: it.row.need,
                limit: it.row.limit,
                holds: &it.place.holds,
                pool: it.place.pool,
                release_by: it.release_by,
                priority: it.row.priority,
                waited: it.waited,
                preemptible: it.row.preemptible && self.preempts,
                leaving: it.leaving,
                since: it.since,
            })
            .collect();
        let view = View { now: self.now, parts: &self.parts, busy: &busy, ..self.view };
        let (plan, report) = schedule::plan(&view, &self.queue);
        // Who is asked for is looked for on all parts.
        let n_asked = plan.starts.len() + report.n_looked as usize + 1;
        self.effort.spend(self.queue.len() + busy.len() + n_asked * self.parts.len());
        (plan, report)
    }

    fn adopt(&mut self, plan: Plan) {
        for start in plan.starts {
            let Some(at) = self.queue.iter().position(|it| it.job == start.job) else { continue };
            let row = self.queue.remove(at);
            self.mark(&start.place.holds, true);
            let view = View { now: self.now, setup_max: self.setup, ..self.view };
            self.started.push(row.job);
            self.busy.push(Held {
                row,
                place: start.place,
                release_by: schedule::release_by(&view, &row),
                leaving: false,
                since: self.now,
                waited: waited(self.view.aging, self.now, &row),
            });
        }
        for job in plan.unclaims {
            self.queue.iter_mut().filter(|it| it.job == job).for_each(|it| it.claims = false);
            self.quiet = None;
        }
        for (victim, by) in plan.preempts {
            let row = self.busy.iter().find(|it| it.row.job == victim).map(|it| it.row);
            self.end(victim);
            if let Some(at) = self.queue.iter().position(|it| it.job == by) {
                let mut row = self.queue.remove(at);
                (row.claims, row.is_awaited) = (true, false);
                self.queue.insert(0, row);
            }
            // Whoever was stopped for another waits anew.
            let Some(mut row) = row else { continue };
            row.rank = schedule::rank(self.view.aging, self.now, row.priority);
            self.join(row);
        }
    }

    fn mark(&mut self, holds: &[Hold], held: bool) {
        for hold in holds {
            let seats = &mut self.parts[hold.part].held;
            *seats = if held { *seats | hold.seats } else { *seats & !hold.seats };
        }
    }
}

/// How long a job has waited that stands where it stands.
fn waited(aging: Span, now: Moment, row: &Waiting<'_>) -> Span {
    let came = row.rank - schedule::rank(aging, Moment::START, row.priority);
    let nanos = i128::from(now.as_nanos()) - came;
    Span::nanos(u64::try_from(nanos).unwrap_or(0))
}
