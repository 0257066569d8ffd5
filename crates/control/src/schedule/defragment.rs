//! Which running jobs to move so that a waiting one fits (seed 000 §3.3: several sub-cube jobs
//! into fewer cubes, or multi-cube jobs into another pod, minimal and fair; on a grid, jobs out of
//! the way of a box or a connected set).
//!
//! A proposal is reviewable: who goes where, and what it costs in lost chip time.  No owner loses
//! more than its share within a window, and all together lose less than the head gains.

mod partition;
pub mod question;

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::id::{JobId, PartId, PoolId};
use selvedge_model::job::{Demand, Hold, Need, Place};
use selvedge_model::unit::Span;

use crate::capacity::Capacity;
use crate::family;
use crate::input::Proposed;
use crate::planted::Defect;
use crate::schedule::{View, Waiting, place_in};

/// A running job that may be moved.
#[derive(Clone, Copy, Debug)]
pub struct Movable<'a> {
    /// Which.
    pub job: JobId,
    /// Whose.
    pub owner: &'a str,
    /// What it asked for.
    pub demand: &'a Demand,
    /// What its family made of that.
    pub need: &'a Need,
    /// Where it is.
    pub place: &'a Place,
    /// What one chip of it loses by a move.
    pub loss: Span,
}

/// What each owner may still lose within the window, in chip time.
pub type Allowance<'a> = BTreeMap<&'a str, Span>;

/// The cheapest moves found that let `head` start, if there are any and they cost no more chip time
/// than they are `worth`.  Greedy: parts are emptied in the order of what that costs, then whole
/// jobs leave the pool, smallest first.
pub fn propose(
    view: &View<'_>,
    head: &Waiting<'_>,
    movable: &[Movable<'_>],
    allowance: &Allowance<'_>,
    worth: Span,
) -> Option<Proposed> {
    let pools = view.layout.pools.ids();
    pools
        .filter(|&pool| family::serves(view.fabric, view.layout, pool, head.demand))
        .filter(|&pool| Capacity::could_hold(view.layout, pool, head.need))
        .filter_map(|pool| {
            let mut try_ = Try {
                view,
                free: Capacity::now(view.layout, view.parts),
                left: allowance.clone(),
                moves: Vec::new(),
                lost: Span::ZERO,
                emptied: BTreeSet::new(),
            };
            let Try { moves, lost, .. } = match head.need {
                Need::Whole { n_parts } => {
                    try_.make_room(pool, *n_parts as usize, movable).then_some(try_)
                }
                Need::Partition(wanted) => partition::make_room(&try_, pool, wanted, movable),
                Need::Within { .. } => None,
            }?;
            Some(Proposed { job: head.job, moves, lost })
        })
        .filter(|it| it.lost <= worth)
        .min_by_key(|it| (it.lost, it.moves.len()))
}

impl Movable<'_> {
    /// What all chips of it together lose by a move.
    fn cost(&self) -> Span {
        self.loss.times(u64::from(self.place.n_seats()))
    }
}

#[derive(Clone)]
struct Try<'a> {
    view: &'a View<'a>,
    free: Capacity<'a>,
    left: Allowance<'a>,
    moves: Vec<(JobId, Place)>,
    lost: Span,
    /// Parts that are to become free: nobody moves onto them.
    emptied: BTreeSet<PartId>,
}

impl<'a> Try<'a> {
    fn make_room(&mut self, pool: PoolId, n_parts: usize, movable: &[Movable<'a>]) -> bool {
        let free = self.free.free_parts(pool, n_parts);
        let mut n_free = free.len();
        self.emptied.extend(free);
        for part in self.by_cost(pool, movable) {
            if n_parts <= n_free {
                return true;
            }
            if self.empty(pool, part, movable) {
                n_free += 1;
            }
        }
        let mut whole: Vec<&Movable<'a>> = movable
            .iter()
            .filter(|it| it.place.pool == pool && matches!(it.need, Need::Whole { .. }))
            .collect();
        whole.sort_by_key(|it| (it.place.n_seats(), it.job));
        for job in whole {
            if n_parts <= n_free {
                return true;
            }
            if self.leave_pool(pool, job) {
                n_free = self.free.n_free_with(pool, n_parts, n_free, &job.place.holds);
            }
        }
        n_parts <= n_free
    }

    /// The sound, partly held parts of `pool`, cheapest to empty first.
    fn by_cost(&self, pool: PoolId, movable: &[Movable<'a>]) -> Vec<PartId> {
        let mut parts: Vec<(u32, PartId)> = Vec::new();
        for &part in &self.view.layout.pools[pool] {
            let held = self.free.held(part);
            let on = movable.iter().filter(|it| !matches!(it.need, Need::Whole { .. }));
            let seats = on
                .flat_map(|it| &it.place.holds)
                .filter(|it| it.part == part)
                .fold(0, |acc, it| acc | it.seats);
            if held != 0 && held == seats && self.view.parts[part].is_whole() {
                parts.push((held.count_ones(), part));
            }
        }
        parts.sort_unstable();
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// Moves all jobs off `part` onto parts that are partly held anyway; all or none.
    fn empty(&mut self, pool: PoolId, part: PartId, movable: &[Movable<'a>]) -> bool {
        let before = (self.free.clone(), self.left.clone(), self.moves.len(), self.lost);
        self.emptied.insert(part);
        let on = movable.iter().filter(|it| it.place.holds.iter().any(|hold| hold.part == part));
        for job in on {
            let Some(hold) = self.nook(job.need).filter(|_| self.charge(job)) else {
                self.emptied.remove(&part);
                self.moves.truncate(before.2);
                (self.free, self.left, self.lost) = (before.0, before.1, before.3);
                return false;
            };
            let into = self.view.fabric.part(hold.part).pool.expect("parts that take jobs");
            self.free.give(&job.place.holds);
            self.free.take(&[hold]);
            self.moves.push((job.job, Place::of(into, vec![hold])));
        }
        if self.free.is_free(pool, part) {
            return true;
        }
        // Somebody was moved onto it before.
        self.emptied.remove(&part);
        self.moves.truncate(before.2);
        (self.free, self.left, self.lost) = (before.0, before.1, before.3);
        false
    }

    /// Room within a part that is partly held and stays so.
    fn nook(&self, need: &Need) -> Option<Hold> {
        let Need::Within { masks } = need else { return None };
        let parts = self.view.layout.pools.iter().flatten().copied();
        let mut best: Option<(u32, Hold)> = None;
        for part in parts.filter(|it| !self.emptied.contains(it) && self.free.held(*it) != 0) {
            let room = self.free.free_seats(part);
            if best.is_none_or(|(least, _)| room < least)
                && let Some(seats) = self.free.first_mask(part, masks)
            {
                best = Some((room, Hold { part, seats }));
            }
        }
        best.map(|(_, hold)| hold)
    }

    /// Moves a whole job into another pool.
    fn leave_pool(&mut self, pool: PoolId, job: &Movable<'a>) -> bool {
        let waiting = Waiting::new(job.job, job.demand, job.need, None);
        let others = self.view.layout.pools.ids().filter(|&it| it != pool);
        let serving =
            others.filter(|&it| family::serves(self.view.fabric, self.view.layout, it, job.demand));
        let mut places = serving.filter_map(|it| place_in(self.view, &self.free, it, &waiting));
        let Some(place) = places.next() else { return false };
        drop(places);
        if !self.charge(job) {
            return false;
        }
        self.free.give(&job.place.holds);
        self.free.take(&place.holds);
        self.moves.push((job.job, place));
        true
    }

    /// Takes the job's loss from its owner's allowance, if that is enough.
    fn charge(&mut self, job: &Movable<'a>) -> bool {
        let loss = job.cost();
        let Some(left) = self.left.get_mut(job.owner) else { return false };
        if *left < loss && !self.view.planted.has(Defect::ShareIgnored) {
            return false;
        }
        *left = left.minus(loss);
        self.lost += loss;
        true
    }
}
