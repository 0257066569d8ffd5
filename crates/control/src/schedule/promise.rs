//! The moment that a waiting head is promised, and whether a later job would break the promise.

use serde::{Deserialize, Serialize};

use selvedge_model::id::PoolId;
use selvedge_model::job::{Demand, Hold, Need, Place};
use selvedge_model::unit::Moment;

use crate::capacity::Capacity;
use crate::family;
use crate::schedule::{View, Waiting, place_in};

/// When and where a job must fit, by the limits of those who hold the hardware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// When.
    pub at: Moment,
    /// In which pool.
    pub pool: PoolId,
    /// On which seats, for a need within one part.
    pub hold: Option<Hold>,
    /// On which parts, for a partition of a grid.
    pub holds: Vec<Hold>,
}

/// Who leaves a pool when.
type Leaving<'a> = Vec<(Moment, &'a [Hold])>;

/// The earliest moment, over all pools, at which `need` fits by the limits.  None if it waits for
/// a job without limit, or for hardware that is out of use.
pub(crate) fn earliest(
    view: &View<'_>,
    free: &Capacity<'_>,
    started: &[(PoolId, Vec<Hold>, Moment)],
    need: &Need,
    demand: &Demand,
) -> Option<Promise> {
    let pools = view.layout.pools.ids();
    pools
        .filter(|&pool| family::serves(view.fabric, view.layout, pool, demand))
        .filter_map(|pool| earliest_in(view, free, started, pool, need))
        .min_by_key(|promise| (promise.at, promise.pool))
}

fn leaving<'a>(
    view: &View<'a>,
    started: &'a [(PoolId, Vec<Hold>, Moment)],
    pool: PoolId,
) -> Leaving<'a> {
    let busy = view.busy.iter().filter(|it| it.pool == pool);
    let mut leaving: Leaving<'a> = busy
        .map(|it| (it.release_by, it.holds))
        .chain(started.iter().filter(|it| it.0 == pool).map(|it| (it.2, it.1.as_slice())))
        .filter(|(at, _)| *at != Moment::NEVER)
        .collect();
    leaving.sort_by_key(|(at, holds)| (*at, holds[0].part));
    leaving
}

fn earliest_in(
    view: &View<'_>,
    free: &Capacity<'_>,
    started: &[(PoolId, Vec<Hold>, Moment)],
    pool: PoolId,
    need: &Need,
) -> Option<Promise> {
    if !Capacity::could_hold(view.layout, pool, need) {
        return None;
    }
    let mut then = free.clone();
    match need {
        Need::Whole { n_parts } => {
            let n_parts = *n_parts as usize;
            let mut n_free = then.free_parts(pool, n_parts).len();
            for (at, holds) in leaving(view, started, pool) {
                then.give(holds);
                n_free = then.n_free_with(pool, n_parts, n_free, holds);
                if n_parts <= n_free {
                    return Some(Promise {
                        at: at.max(view.now),
                        pool,
                        hold: None,
                        holds: Vec::new(),
                    });
                }
            }
        }
        Need::Partition(wanted) => {
            // What is given back only makes more room, so the first moment is found by halving.
            let leaving = leaving(view, started, pool);
            let after = |n: usize| {
                let mut then = free.clone();
                leaving[..n].iter().for_each(|(_, holds)| then.give(holds));
                then.partition(pool, wanted)
            };
            let (mut none, mut some) = (0, leaving.len());
            let mut chosen = after(some)?;
            while none + 1 < some {
                let middle = none.midpoint(some);
                match after(middle) {
                    Some(found) => (some, chosen) = (middle, found),
                    None => none = middle,
                }
            }
            let at = leaving[..some].last().map_or(view.now, |it| it.0.max(view.now));
            let seats = |part| view.layout.seats[part];
            let holds = chosen.parts.into_iter().map(|part| Hold { part, seats: seats(part) });
            return Some(Promise { at, pool, hold: None, holds: holds.collect() });
        }
        Need::Within { masks } => {
            for (at, holds) in leaving(view, started, pool) {
                then.give(holds);
                for part in holds.iter().map(|it| it.part) {
                    if let Some(seats) = then.first_mask(part, masks) {
                        let hold = Some(Hold { part, seats });
                        let at = at.max(view.now);
                        return Some(Promise { at, pool, hold, holds: Vec::new() });
                    }
                }
            }
        }
    }
    None
}

/// What is kept for a head that waits, against those who would pass it.
pub(crate) struct Guard<'a> {
    promise: &'a Promise,
    /// Whole parts that the head takes.
    n_head: usize,
    /// The pool as it is at the promised moment.
    then: Capacity<'a>,
    /// Whole parts that are free then.
    n_then: usize,
}

impl<'a> Guard<'a> {
    /// What is kept by `promise`, where `free` is what nobody holds and `started` has just got
    /// hardware.
    pub(crate) fn new(
        view: &View<'_>,
        free: &Capacity<'a>,
        started: &[(PoolId, Vec<Hold>, Moment)],
        promise: &'a Promise,
        head: &Waiting<'_>,
    ) -> Self {
        let mut then = free.clone();
        for (at, holds) in leaving(view, started, promise.pool) {
            if promise.at < at {
                break;
            }
            then.give(holds);
        }
        let n_head = match head.need {
            Need::Whole { n_parts } => *n_parts as usize,
            Need::Within { .. } | Need::Partition(_) => 0,
        };
        let n_then = then.free_parts(promise.pool, n_head).len();
        Self { promise, n_head, then, n_then }
    }

    /// The pool that was promised.
    pub(crate) fn pool(&self) -> PoolId {
        self.promise.pool
    }

    /// Whether a job that has left by `ends` may still be there at the promised moment.
    pub(crate) fn is_outlived_by(&self, ends: Moment) -> bool {
        self.promise.at < ends
    }

    /// A place in the promised pool that leaves the head its own.
    pub(crate) fn place(
        &self,
        view: &View<'_>,
        free: &Capacity<'_>,
        job: &Waiting<'_>,
    ) -> Option<Place> {
        let kept = self.promise.hold.iter().chain(&self.promise.holds);
        if kept.clone().next().is_some() {
            let mut rest = free.clone();
            kept.for_each(|hold| rest.reserve(*hold));
            return place_in(view, &rest, self.promise.pool, job);
        }
        match job.need {
            Need::Whole { n_parts } => {
                let is_enough = self.n_head + *n_parts as usize <= self.n_then;
                is_enough.then(|| place_in(view, free, self.promise.pool, job)).flatten()
            }
            Need::Within { .. } | Need::Partition(_) => {
                let place = place_in(view, free, self.promise.pool, job)?;
                let is_lost = |hold: &&Hold| self.then.is_free(self.promise.pool, hold.part);
                let n_lost = place.holds.iter().filter(is_lost).count();
                (self.n_head + n_lost <= self.n_then).then_some(place)
            }
        }
    }

    /// Takes note of a job that passed the head.
    pub(crate) fn take(&mut self, place: &Place, ends: Moment) {
        if place.pool == self.promise.pool && self.is_outlived_by(ends) {
            self.then.take(&place.holds);
            self.n_then = self.then.free_parts(self.promise.pool, self.n_head).len();
        }
    }
}
