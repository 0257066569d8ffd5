//! Room for a partition of a grid: a job that waits may find enough free parts and yet no box or
//! connected set of them.
//!
//! A *goal* is a set of parts that the head could have if some jobs left it; it costs what those
//! lose.  Goals are tried from the cheapest on: everybody on it must find a place among what is
//! free beside it, the largest first, and then the scheduler itself must find the head a place.
//! Boxes are all looked at.  For a connected set the question is which jobs leave: each alone, two
//! of the cheapest, and ever more of the cheapest together.

use std::collections::BTreeSet;

use selvedge_family::grid::orientations;
use selvedge_model::id::{PartId, PoolId};
use selvedge_model::job::{Hold, Need, Partition};
use selvedge_model::unit::Span;

use crate::capacity::Capacity;
use crate::family;
use crate::limits::{GOALS_MAX, MOVERS_PAIRED, MOVERS_SINGLE};
use crate::schedule::defragment::{Movable, Try};
use crate::schedule::{Waiting, place_in};

/// A set of parts that the head could have.
struct Goal {
    /// What those who are on it lose.
    cost: Span,
    /// Who is on it, by place in the list.
    movers: Vec<usize>,
    parts: Vec<PartId>,
}

/// The cheapest moves found after which `wanted` fits into `pool`.
pub(super) fn make_room<'a>(
    base: &Try<'a>,
    pool: PoolId,
    wanted: &Partition,
    movable: &[Movable<'a>],
) -> Option<Try<'a>> {
    let leavers = movable.iter().filter(|it| it.place.pool == pool && family::is_joined(it.need));
    let leavers: Vec<&Movable<'a>> = leavers.collect();
    let (layout, need) = (base.view.layout, Need::Partition(*wanted));
    let n_free: usize =
        layout.pools.ids().filter(|it| layout.is_sited(*it)).map(|it| base.free.n_free(it)).sum();
    // Whoever moves takes as many parts elsewhere as it leaves.
    if leavers.is_empty()
        || n_free < wanted.n_parts as usize
        || !Capacity::could_hold(layout, pool, &need)
    {
        return None;
    }
    let mut goals = match wanted.sides.filter(|_| wanted.exact) {
        Some(sides) => boxes(base, pool, sides.map(usize::from), &leavers),
        None => sets(base, pool, wanted, &leavers),
    };
    // Whom nobody is in the way of does not wait for moves.
    goals.retain(|it| !it.movers.is_empty());
    goals.sort_by(|a, b| (a.cost, &a.movers, &a.parts).cmp(&(b.cost, &b.movers, &b.parts)));
    goals.into_iter().take(GOALS_MAX).find_map(|goal| reach(base, pool, &need, &goal, &leavers))
}

/// All boxes of `sides` on which nobody is but `leavers`.
fn boxes(base: &Try<'_>, pool: PoolId, sides: [usize; 3], leavers: &[&Movable<'_>]) -> Vec<Goal> {
    let (Some(site), Some(ground)) =
        (base.view.layout.sites[pool].as_ref(), base.free.ground(pool))
    else {
        return Vec::new();
    };
    let mut leaver_on: Vec<Option<usize>> = vec![None; site.ground().grid().n_cells()];
    for (idx, job) in leavers.iter().enumerate() {
        for cell in job.place.holds.iter().filter_map(|it| site.cell_of(it.part)) {
            leaver_on[cell] = Some(idx);
        }
    }
    let mut supposed = base.free.clone();
    leavers.iter().for_each(|it| supposed.give(&it.place.holds));
    let room = site.room(&ground, |part| supposed.is_free_inside(part));
    let mut found = Vec::new();
    for block in orientations(sides).into_iter().flat_map(|it| room.boxes(it)) {
        let cells = room.cells(block);
        let on = cells.iter().filter_map(|it| leaver_on[*it as usize]);
        let movers: Vec<usize> = on.collect::<BTreeSet<_>>().into_iter().collect();
        let cost = movers.iter().fold(Span::ZERO, |acc, it| acc + leavers[*it].cost());
        let parts = cells.iter().filter_map(|it| site.part(*it as usize)).collect();
        found.push(Goal { cost, movers, parts });
    }
    found
}

/// Sets that the scheduler would take if some of `leavers` were gone.
fn sets(base: &Try<'_>, pool: PoolId, wanted: &Partition, leavers: &[&Movable<'_>]) -> Vec<Goal> {
    let mut cheapest: Vec<usize> = (0..leavers.len()).collect();
    cheapest.sort_by_key(|it| (leavers[*it].cost(), *it));
    let single = cheapest.iter().take(MOVERS_SINGLE).map(|it| vec![*it]);
    let few = &cheapest[..cheapest.len().min(MOVERS_PAIRED)];
    let pairs = few.iter().enumerate().flat_map(|(at, a)| few[..at].iter().map(|b| vec![*a, *b]));
    let doubling = std::iter::successors(Some(4), |it| Some(2 * it));
    let many = doubling.take_while(|it| *it < 2 * leavers.len().max(1));
    let many = many.map(|it| cheapest.iter().take(it).copied().collect());
    let mut found = Vec::new();
    for gone in single.chain(pairs).chain(many) {
        let mut supposed = base.free.clone();
        gone.iter().for_each(|it| supposed.give(&leavers[*it].place.holds));
        let Some(chosen) = supposed.partition(pool, wanted) else { continue };
        let parts: BTreeSet<PartId> = chosen.parts.iter().copied().collect();
        let is_on = |it: &usize| leavers[*it].place.holds.iter().any(|at| parts.contains(&at.part));
        let mut movers: Vec<usize> = gone.into_iter().filter(is_on).collect();
        movers.sort_unstable();
        let cost = movers.iter().fold(Span::ZERO, |acc, it| acc + leavers[*it].cost());
        found.push(Goal { cost, movers, parts: chosen.parts });
    }
    found
}

/// The moves that empty `goal`, if everybody on it finds another place and the head then fits.
fn reach<'a>(
    base: &Try<'a>,
    pool: PoolId,
    need: &Need,
    goal: &Goal,
    leavers: &[&Movable<'a>],
) -> Option<Try<'a>> {
    let (view, layout) = (base.view, base.view.layout);
    let mut reached = base.clone();
    for &part in &goal.parts {
        reached.free.reserve(Hold { part, seats: layout.seats[part] });
    }
    let mut movers: Vec<&Movable<'a>> = goal.movers.iter().map(|it| leavers[*it]).collect();
    movers.sort_by_key(|it| (std::cmp::Reverse(it.place.n_seats()), it.job));
    let mut then = base.free.clone();
    for job in movers {
        let waiting = Waiting::new(job.job, job.demand, job.need, None);
        let others = layout.pools.ids().filter(|it| *it != pool);
        let pools = std::iter::once(pool).chain(others);
        let mut serving = pools.filter(|it| family::serves(view.fabric, layout, *it, job.demand));
        let place = serving.find_map(|it| place_in(view, &reached.free, it, &waiting))?;
        if place.n_seats() != job.place.n_seats() || !reached.charge(job) {
            return None;
        }
        reached.free.take(&place.holds);
        then.give(&job.place.holds);
        then.take(&place.holds);
        reached.moves.push((job.job, place));
    }
    then.fits(pool, need).then_some(reached)
}

#[cfg(test)]
mod tests;
