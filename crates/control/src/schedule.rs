//! Who gets which hardware, and when.
//!
//! A pass is a pure function of what waits, what runs and what is free.  It serves the queue in
//! its order.  The first job that does not fit is the *head*: it is promised the earliest moment
//! at which, by the limits of the running jobs, it must fit; later jobs are backfilled only where
//! that promise holds.  A running job without a limit may end at any moment, so nothing passes a
//! head that waits for its parts.  True durations are never read.
//!
//! A pass goes through the whole queue, however long: of what has not fitted it asks no second
//! time (`line`), and behind the head it asks for at most [`BACKFILL_DEPTH`].
//!
//! Complexity of a pass: O(jobs that are asked for × parts) to place, O(busy × parts) for the
//! promise, O(queue) to see who need not be asked for.

pub mod defragment;
mod effort;
pub mod explain;
pub mod line;
pub mod preempt;
pub mod promise;
mod suppose;
pub mod swap;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{JobId, PartId, PoolId};
use selvedge_model::job::{Demand, Hold, Need, Place};
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Span};

use crate::capacity::{Capacity, Layout};
use crate::family;
use crate::limits::{BACKFILL_DEPTH, SLOWDOWN_MAX};
use crate::partition::Chosen;
use crate::planted::{Defect, Planted};
use crate::schedule::line::{Misfits, Row};
use crate::schedule::promise::Guard;
use crate::settings::Means;
use crate::state::PartState;

/// A job that waits, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'a> {
    /// Which.
    pub job: JobId,
    /// What it asked for.
    pub demand: &'a Demand,
    /// What its family made of that.
    pub need: &'a Need,
    /// How long it may run.
    pub limit: Option<Span>,
    /// Its base priority: aging moves a job forward, it does not let it preempt.
    pub priority: u8,
    /// Whether it may be preempted once it runs.
    pub preemptible: bool,
    /// Where it stands among those that do not go first: the lower, the earlier.
    pub rank: i128,
    /// Whether it goes first because running jobs were stopped for it.
    pub claims: bool,
    /// Whether some of them are still stopping.
    pub is_awaited: bool,
}

impl<'a> Waiting<'a> {
    /// A job of no priority that waits since the beginning of time.
    pub fn new(job: JobId, demand: &'a Demand, need: &'a Need, limit: Option<Span>) -> Self {
        Self {
            job,
            demand,
            need,
            limit,
            priority: 0,
            preemptible: false,
            rank: 0,
            claims: false,
            is_awaited: false,
        }
    }
}

/// A job that holds hardware, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Busy<'a> {
    /// Which.
    pub job: JobId,
    /// What it asked for.
    pub demand: &'a Demand,
    /// What its family made of that.
    pub need: &'a Need,
    /// How long it may run.
    pub limit: Option<Span>,
    /// What it holds.
    pub holds: &'a [Hold],
    /// In which pool.
    pub pool: PoolId,
    /// When, by its limit, it has left; `NEVER` without one.
    pub release_by: Moment,
    /// Its base priority.
    pub priority: u8,
    /// How long it had waited when it was placed.
    pub waited: Span,
    /// Whether it may be preempted.
    pub preemptible: bool,
    /// Whether it is stopping already.
    pub leaving: bool,
    /// Since when it holds its hardware.
    pub since: Moment,
}

/// Everything that a pass reads.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The moment of the pass.
    pub now: Moment,
    /// The hardware.
    pub fabric: &'a Fabric,
    /// Which parts take jobs.
    pub layout: &'a Layout,
    /// What is known of each part.
    pub parts: &'a IdVec<PartId, PartState>,
    /// Parts with a grave fault about which nothing was done, as at level `observe`, and parts that
    /// a maintenance will come to: they are taken where no others will do.
    pub doubted: &'a BTreeSet<PartId>,
    /// Jobs that hold hardware.
    pub busy: &'a [Busy<'a>],
    /// Which means are in use.
    pub means: Means,
    /// How long a job waits to rise by one priority.
    pub aging: Span,
    /// The longest time from placing to dispatch.
    pub setup_max: Span,
    /// The longest time from a notice to the death of the tasks.
    pub stop_max: Span,
    /// In place of the reservation: how many jobs from the front of the queue may each start as
    /// soon as they fit, whoever waits before them.  One is strict order.
    pub window: Option<usize>,
    /// How a circuit switch stands: the south port of a north port.
    pub current: &'a dyn Fn(PartId, u16) -> Option<u16>,
    /// The defect that is built in.
    pub planted: Planted,
}

/// Where a job stands that waits since `since`: who waits longer stands earlier, and each priority
/// counts as much as waiting for `aging`.
pub(crate) fn rank(aging: Span, since: Moment, priority: u8) -> i128 {
    i128::from(since.as_nanos()) - i128::from(aging.as_nanos()) * i128::from(priority)
}

/// One job to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Which.
    pub job: JobId,
    /// Where.
    pub place: Place,
    /// Whether it passes a head that waits.
    pub backfilled: bool,
}

/// What a pass decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Plan {
    /// Jobs to start now.
    pub starts: Vec<Start>,
    /// Running jobs to stop, each for the job that takes its hardware.
    pub preempts: Vec<(JobId, JobId)>,
    /// Jobs that no longer go first: nobody stops for them any more.
    pub unclaims: Vec<JobId>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty() && self.preempts.is_empty() && self.unclaims.is_empty()
    }
}

/// The first job that does not fit, and what it was promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Which.
    pub job: JobId,
    /// When and where it must fit by the limits of the running jobs; none if it waits for a job
    /// without limit, or for hardware that is out of use.
    pub promise: Option<promise::Promise>,
}

/// What a pass could not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Report {
    /// The first job that does not fit.
    pub head: Option<Head>,
    /// How many jobs behind the head were looked at.
    pub n_looked: u32,
}

/// Decides who of those who wait, in the order in which they are served, starts, and who is
/// preempted.
pub fn plan<'a, R: Row<'a>>(
    view: &View<'_>,
    waiting: impl IntoIterator<Item = R>,
) -> (Plan, Report) {
    if let Some(window) = view.window {
        return in_window(view, window, waiting);
    }
    let (mut plan, mut report) = (Plan::default(), Report::default());
    let mut free = Capacity::now(view.layout, view.parts);
    let mut waiting = waiting.into_iter();
    let mut misfits = Misfits::default();
    // Jobs started by this pass count as busy for the promise.
    let mut started: Vec<(PoolId, Vec<Hold>, Moment)> = Vec::new();
    let sound = Capacity::idle(view.layout, view.parts);
    let mut stranded: Option<JobId> = None;
    let head = loop {
        let Some(row) = waiting.find(|it| !misfits.has(it.need())) else {
            report.head = stranded.map(|job| Head { job, promise: None });
            return (plan, report);
        };
        let job = row.read();
        let Some(place) = place(view, &free, &job) else {
            misfits.add(job.need);
            if view.means.backfill && !has_room(view, &sound, &job) {
                // Not even an idle plant could hold it: it waits for a repair, and whoever
                // starts meanwhile delays nothing that limits could promise.
                stranded = stranded.or(Some(job.job));
                if job.claims {
                    plan.unclaims.push(job.job);
                }
                continue;
            }
            break job;
        };
        free.take(&place.holds);
        started.push((place.pool, place.holds.clone(), release_by(view, &job)));
        plan.starts.push(Start { job: job.job, place, backfilled: stranded.is_some() });
    };
    let mut promise = promise::earliest(view, &free, &started, head.need, head.demand);
    if view.means.preempt && plan.starts.is_empty() {
        let victims = preempt::victims(view, &free, &head);
        if !victims.is_empty() {
            plan.preempts = victims.into_iter().map(|victim| (victim, head.job)).collect();
            // What is about to be freed is the head's: nobody passes it meanwhile.
            promise = None;
        }
    }
    if let (Some(promise), true) = (&promise, view.means.backfill && !head.claims) {
        let guard = Guard::new(view, &free, &started, promise, &head);
        let starts = &mut plan.starts;
        report.n_looked = if view.planted.has(Defect::LastFirst) {
            let mut all: Vec<R> = waiting.collect();
            all.reverse();
            backfill(view, free, guard, all.into_iter(), misfits, starts)
        } else {
            backfill(view, free, guard, waiting, misfits, starts)
        };
    }
    if head.claims && !head.is_awaited && plan.preempts.is_empty() {
        // What was freed for it has been lost since, and others must not wait with it.
        plan.unclaims.push(head.job);
    }
    report.head = Some(Head { job: head.job, promise });
    (plan, report)
}

/// Starts whoever fits among the first `window` jobs that wait, again and again from the front;
/// nothing is kept for anybody.
fn in_window<'a, R: Row<'a>>(
    view: &View<'_>,
    window: usize,
    waiting: impl IntoIterator<Item = R>,
) -> (Plan, Report) {
    let (mut plan, mut report) = (Plan::default(), Report::default());
    let mut free = Capacity::now(view.layout, view.parts);
    let mut n_passed = 0;
    for row in waiting {
        if window <= n_passed {
            break;
        }
        report.n_looked += 1;
        let job = row.read();
        let Some(place) = place(view, &free, &job) else {
            report.head.get_or_insert(Head { job: job.job, promise: None });
            n_passed += 1;
            continue;
        };
        free.take(&place.holds);
        plan.starts.push(Start { job: job.job, place, backfilled: n_passed != 0 });
    }
    (plan, report)
}

/// Starts those of `passing` that do not break the promise to the head; returns how many were
/// asked for.
fn backfill<'a, R: Row<'a>>(
    view: &View<'_>,
    mut free: Capacity<'_>,
    mut guard: Guard<'_>,
    passing: impl Iterator<Item = R>,
    mut misfits: Misfits<'a>,
    starts: &mut Vec<Start>,
) -> u32 {
    let mut n_asked = 0;
    for row in passing {
        if misfits.has(row.need()) {
            continue;
        }
        let job = row.read();
        if misfits.outlast(&job) {
            continue;
        }
        if BACKFILL_DEPTH <= n_asked as usize {
            break;
        }
        n_asked += 1;
        let ends = release_by(view, &job);
        // The pool that was promised comes last.
        let mut pools = pools_for(view, &free, &job);
        pools.sort_by_key(|&pool| pool == guard.pool());
        let is_kept = |pool| pool == guard.pool() && guard.is_outlived_by(ends);
        let is_kept = |pool| !view.planted.has(Defect::HeadDelayed) && is_kept(pool);
        let place = pools.iter().find_map(|&pool| match is_kept(pool) {
            true => guard.place(view, &free, &job),
            false => place_in(view, &free, pool, &job),
        });
        let Some(place) = place else {
            match pools.into_iter().any(is_kept) {
                true => misfits.add_from(&job),
                false => misfits.add(job.need),
            }
            continue;
        };
        if !view.planted.has(Defect::DoubleBackfill) {
            free.take(&place.holds);
            guard.take(&place, ends);
        }
        starts.push(Start { job: job.job, place, backfilled: true });
    }
    n_asked
}

/// Whether some pool has room for `job`.
fn has_room(view: &View<'_>, free: &Capacity<'_>, job: &Waiting<'_>) -> bool {
    let mut pools = view.layout.pools.ids();
    pools.any(|pool| {
        family::serves(view.fabric, view.layout, pool, job.demand) && free.fits(pool, job.need)
    })
}

/// When a job started now has left by its limit.
pub(crate) fn release_by(view: &View<'_>, job: &Waiting<'_>) -> Moment {
    match job.limit {
        Some(limit) => view.now + view.setup_max + limit + view.stop_max,
        None => Moment::NEVER,
    }
}

/// The place that `job` would get now.
pub(crate) fn place(view: &View<'_>, free: &Capacity<'_>, job: &Waiting<'_>) -> Option<Place> {
    let mut pools = pools_for(view, free, job).into_iter();
    pools.find_map(|pool| place_in(view, free, pool, job))
}

/// The pools that serve `job`: the one with the least room first, on grids of those in which it is
/// given a partition that is good for anybody.
fn pools_for(view: &View<'_>, free: &Capacity<'_>, job: &Waiting<'_>) -> Vec<PoolId> {
    let pools = view.layout.pools.ids();
    let mut order: Vec<PoolId> =
        pools.filter(|&pool| family::serves(view.fabric, view.layout, pool, job.demand)).collect();
    order.sort_by_key(|&pool| spare_room(view, free, pool, job.need));
    if let (Need::Partition(wanted), true) = (job.need, 1 < order.len()) {
        // What is good for anybody goes before the best that a fuller pool happens to give.
        let is_good = |it: Chosen| it.score.slowdown <= SLOWDOWN_MAX;
        order.sort_by_cached_key(|&pool| !free.partition(pool, wanted).is_some_and(is_good));
    }
    order
}

/// The place that `job` would get in `pool`.
pub(crate) fn place_in(
    view: &View<'_>,
    free: &Capacity<'_>,
    pool: PoolId,
    job: &Waiting<'_>,
) -> Option<Place> {
    match job.need {
        Need::Whole { n_parts } => {
            let n_parts = *n_parts as usize;
            let mut parts = free.free_parts(pool, n_parts);
            let n_doubted = parts.iter().filter(|it| view.doubted.contains(it)).count();
            if n_doubted != 0 && n_parts <= parts.len() - n_doubted {
                parts.retain(|it| !view.doubted.contains(it));
            }
            let is_enough = n_parts <= parts.len();
            is_enough.then(|| family::arrange(view.fabric, job.demand, pool, &parts, view.current))
        }
        Need::Within { .. } => {
            let is_trusted = |part| !view.doubted.contains(&part);
            let hold = free.within_those(pool, job.need, is_trusted);
            let hold = hold.or_else(|| free.within(pool, job.need))?;
            Some(Place::of(pool, vec![hold]))
        }
        Need::Partition(wanted) => {
            let is_trusted = |part| !view.doubted.contains(&part);
            let chosen = match view.doubted.is_empty() {
                true => None,
                false => free.partition_of(pool, wanted, is_trusted),
            };
            let chosen = chosen.or_else(|| free.partition(pool, wanted))?;
            let seats = |part| view.layout.seats[part];
            let hold = |part| Hold { part, seats: seats(part) };
            let without = free.cut_within(&chosen.parts);
            let holds = chosen.parts.into_iter().map(hold).collect();
            Some(Place { without, ..Place::of(pool, holds) })
        }
    }
}

/// Best fit over pools: the one with the least room left, so that large jobs find room.
fn spare_room(view: &View<'_>, free: &Capacity<'_>, pool: PoolId, need: &Need) -> u32 {
    if view.layout.pools.len() == 1 {
        return 0;
    }
    match need {
        Need::Whole { n_parts } => {
            u32::try_from(free.free_parts(pool, *n_parts as usize).len()).unwrap_or(u32::MAX)
        }
        Need::Within { .. } => {
            view.layout.pools[pool].iter().map(|&part| free.free_seats(part)).sum()
        }
        Need::Partition(_) => {
            let parts = view.layout.pools[pool].iter().filter(|it| free.held(**it) == 0);
            u32::try_from(parts.count()).unwrap_or(u32::MAX)
        }
    }
}
