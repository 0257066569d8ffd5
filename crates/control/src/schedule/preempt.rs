//! Which running jobs make room for one of higher priority.

use selvedge_model::id::{JobId, PoolId};
use selvedge_model::job::Need;
use selvedge_model::unit::Moment;

use crate::capacity::Capacity;
use crate::family;
use crate::schedule::{self, Busy, View, Waiting};

/// The cheapest set of preemptible jobs of lower priority whose end lets `head` start; empty if
/// there is none.  Cost: chips times the time since each job was placed, which bounds what it
/// can lose; lower priorities go first.
pub(crate) fn victims(view: &View<'_>, free: &Capacity<'_>, head: &Waiting<'_>) -> Vec<JobId> {
    let pools = view.layout.pools.ids();
    pools
        .filter(|&pool| family::serves(view.fabric, view.layout, pool, head.demand))
        .filter_map(|pool| victims_in(view, free, head, pool))
        .min_by_key(|(cost, _)| *cost)
        .map(|(_, jobs)| jobs)
        .unwrap_or_default()
}

type Cost = (u128, usize);

fn victims_in(
    view: &View<'_>,
    free: &Capacity<'_>,
    head: &Waiting<'_>,
    pool: PoolId,
) -> Option<(Cost, Vec<JobId>)> {
    if !Capacity::could_hold(view.layout, pool, head.need) {
        return None;
    }
    // What is leaving anyway counts as free: nobody is preempted for what comes by itself.
    let mut then = free.clone();
    for busy in view.busy.iter().filter(|it| it.pool == pool && it.leaving) {
        then.give(busy.holds);
    }
    if then.fits(pool, head.need) {
        return None;
    }
    let mut candidates: Vec<&Busy<'_>> = view
        .busy
        .iter()
        .filter(|it| it.pool == pool && it.preemptible && !it.leaving && is_below(view, it, head))
        .collect();
    candidates.sort_by_key(|it| (it.priority, cost(view, it), it.job));
    let mut chosen: Vec<&Busy<'_>> = Vec::new();
    for busy in candidates {
        if let Need::Within { masks } = head.need {
            // A job that shares no possible place with the head frees nothing for it.
            let helps = busy.holds.iter().any(|hold| masks.iter().any(|it| it & hold.seats != 0));
            if !helps {
                continue;
            }
        }
        then.give(busy.holds);
        chosen.push(busy);
        if then.fits(pool, head.need) {
            return Some(pruned(view, then, head, pool, chosen));
        }
    }
    None
}

/// Whether `head` goes before a job that runs: by its own priority, and also counting what both
/// have waited, or a job that passed the head by its age would be stopped for it at once.
fn is_below(view: &View<'_>, busy: &Busy<'_>, head: &Waiting<'_>) -> bool {
    let stood = schedule::rank(view.aging, Moment::START, busy.priority);
    let waited = i128::from(busy.waited.as_nanos()) - stood;
    let waits = i128::from(view.now.as_nanos()) - head.rank;
    busy.priority < head.priority && waited < waits
}

/// Gives back, dearest first, whoever turned out not to be needed.
fn pruned(
    view: &View<'_>,
    mut then: Capacity<'_>,
    head: &Waiting<'_>,
    pool: PoolId,
    mut chosen: Vec<&Busy<'_>>,
) -> (Cost, Vec<JobId>) {
    for idx in (0..chosen.len()).rev() {
        then.take(chosen[idx].holds);
        if then.fits(pool, head.need) {
            chosen.remove(idx);
        } else {
            then.give(chosen[idx].holds);
        }
    }
    let total = chosen.iter().map(|it| cost(view, it)).sum();
    let n = chosen.len();
    ((total, n), chosen.into_iter().map(|it| it.job).collect())
}

fn cost(view: &View<'_>, busy: &Busy<'_>) -> u128 {
    let chips: u32 = busy.holds.iter().map(|it| it.seats.count_ones()).sum();
    u128::from(chips) * u128::from(view.now.since(busy.since).as_nanos())
}
