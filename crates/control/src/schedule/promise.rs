//! The moment that a waiting head is promised, and whether a later job would break the promise.

use serde::{Deserialize, Serialize};

use selvedge_model::id::{PartId, PoolId};
use selvedge_model::job::{Demand, Hold, Need, Place};
use selvedge_model::unit::Moment;

use crate::capacity::Capacity;
use crate::family;
use crate::schedule::{View, Waiting};

/// When and where a job must fit, by the limits of those who hold the hardware.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// When.
    pub at: Moment,
    /// In which pool.
    pub pool: PoolId,
    /// On which seats, for a need within one part.
    pub hold: Option<Hold>,
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
            let mut n_free = then.free_parts(pool).len();
            for (at, holds) in leaving(view, started, pool) {
                then.give(holds);
                n_free += holds.iter().filter(|it| then.is_free(it.part)).count();
                if *n_parts as usize <= n_free {
                    return Some(Promise { at: at.max(view.now), pool, hold: None });
                }
            }
        }
        Need::Within { masks } => {
            for (at, holds) in leaving(view, started, pool) {
                then.give(holds);
                for part in holds.iter().map(|it| it.part) {
                    if let Some(seats) = then.first_mask(part, masks) {
                        let hold = Some(Hold { part, seats });
                        return Some(Promise { at: at.max(view.now), pool, hold });
                    }
                }
            }
        }
    }
    None
}

/// Whether the head still fits at the promised moment if `place` is taken until `ends`.
pub(crate) fn holds_with(
    view: &View<'_>,
    free: &Capacity<'_>,
    started: &[(PoolId, Vec<Hold>, Moment)],
    promise: &Promise,
    head: &Waiting<'_>,
    place: &Place,
    ends: Moment,
) -> bool {
    if place.pool != promise.pool || ends <= promise.at {
        return true;
    }
    if let Some(hold) = promise.hold {
        let taken = place.holds.iter().find(|it| it.part == hold.part);
        return taken.is_none_or(|it| it.seats & hold.seats == 0);
    }
    let Need::Whole { n_parts } = head.need else { return false };
    let mut then = free.clone();
    then.take(&place.holds);
    for (at, holds) in leaving(view, started, promise.pool) {
        if promise.at < at {
            break;
        }
        then.give(holds);
    }
    *n_parts as usize <= then.free_parts(promise.pool).len()
}

/// The parts that hold somebody without a limit, so that nobody knows when they are free.
pub fn without_limit<'a>(view: &'a View<'_>) -> impl Iterator<Item = PartId> + 'a {
    let endless = view.busy.iter().filter(|it| it.release_by == Moment::NEVER);
    endless.flat_map(|it| it.holds.iter().map(|hold| hold.part))
}
