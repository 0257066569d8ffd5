//! Which parts of a grid a job gets: the family proposes sets, and they are scored by what the
//! job's own collective reaches on them.
//!
//! All-gather is bounded by the chip with the fewest links; all-reduce by that, by the links of all
//! and by those of one part (partitions into single chips, and into one part's chips and the rest,
//! in the formula of Nash-Williams and Tutte), so a set is scored in O(parts), weighted by the
//! share of its time that the job communicates.  Against that stands what the set leaves: each
//! side that stays open to free parts costs a little ([`OPEN_COST`]), so a job that communicates
//! much gets the squarest box, and one that hardly does the one that fits into a gap.  A set on
//! which the job would take longer than [`SLOWDOWN_MAX`] of what it would take on the best of its
//! size is not taken: the job waits.  Where the sound parts give no set as good as that, as on a
//! machine with dead ones, it is held against the best that they give, whoever holds them.

use serde::{Deserialize, Serialize};

use selvedge_family::grid::policy::{Policy, Wanted, candidates};
use selvedge_family::grid::room::{Ground, Room};
use selvedge_family::grid::site::{AXES, Joined, Site};
use selvedge_model::id::PartId;
use selvedge_model::job::{Collective, Partition};
use selvedge_model::unit::Ppm;

use crate::limits::{OPEN_COST, SLOWDOWN_MAX};

/// Parts for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The parts, in the order of their cells.
    pub parts: Vec<PartId>,
    /// How good they are.
    pub score: Score,
}

/// How good a set of parts is for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Links between its chips, both directions as one.
    pub n_links: u32,
    /// The fewest links of a chip.
    pub least: u32,
    /// The time of the job on it by that on the best of its size.
    pub slowdown: Ppm,
}

/// The best of the sets that the rule proposes from what `is_free`, if one is good enough; all but
/// Hilbert's are connected by the joints of `ground`.  A set is good enough if the job takes no
/// longer on it than [`SLOWDOWN_MAX`] of what it takes on the best of its size, or on the best that
/// is proposed from all that `is_sound`, whoever holds it.
pub(crate) fn choose(
    site: &Site,
    ground: &Ground<AXES>,
    is_free: impl Fn(PartId) -> bool,
    is_sound: impl Fn(PartId) -> bool,
    wanted: &Partition,
    policy: Policy,
) -> Option<Chosen> {
    let found = best(site, &site.room(ground, is_free), wanted, policy)?;
    // Who asks for a box, or for another rule, takes what there is.
    let is_good = !is_picky(wanted, policy) || found.score.slowdown <= SLOWDOWN_MAX;
    let is_good_here = || {
        let on_all = best(site, &site.room(ground, is_sound), wanted, policy);
        on_all.is_none_or(|it| {
            let best = u64::from(it.score.slowdown.parts());
            let limit = best * u64::from(SLOWDOWN_MAX.parts()) / 1_000_000;
            u64::from(found.score.slowdown.parts()) <= limit
        })
    };
    (is_good || is_good_here()).then_some(found)
}

fn is_picky(wanted: &Partition, policy: Policy) -> bool {
    policy == Policy::Polyomino && !wanted.exact
}

/// The best set that the rule proposes from `room`, the best for anybody where there are such.
fn best(site: &Site, room: &Room<'_, AXES>, wanted: &Partition, policy: Policy) -> Option<Chosen> {
    let ground = room.ground();
    let n_cells = wanted.n_parts as usize;
    let sides = wanted.sides.map(|it| it.map(usize::from));
    let is_picky = is_picky(wanted, policy);
    let weighs = is_picky && wanted.communication != Ppm::new(0);
    let asked = Wanted { n_cells, sides, exact: wanted.exact, each_shape: weighs };
    let best_joined = site.best(n_cells);
    let mut best: Option<((bool, u32), Score, Vec<u32>)> = None;
    let mut proposed = candidates(room, asked, policy);
    loop {
        // Nothing is faster than the best of its size.
        let is_fastest = best.as_ref().is_some_and(|it| it.1.slowdown <= Ppm::new(1_000_000));
        if is_fastest && (!weighs || !proposed.may_be_box()) {
            break;
        }
        let Some(cells) = proposed.next() else { break };
        let joined = site.joined(ground, &cells);
        let score = Score {
            n_links: u32::try_from(joined.n_links).unwrap_or(u32::MAX),
            least: u32::try_from(joined.least).unwrap_or(u32::MAX),
            slowdown: slowdown(&joined, &best_joined, wanted),
        };
        let is_bad = is_picky && SLOWDOWN_MAX < score.slowdown;
        // Of those that are good for nobody the fastest, whatever it leaves.
        let open = if weighs && !is_bad { cost_of_open(room, &cells) } else { 0 };
        let cost = (is_bad, score.slowdown.parts().saturating_add(open));
        if best.as_ref().is_none_or(|it| cost < it.0) {
            best = Some((cost, score, cells));
        }
    }
    let (_, score, mut cells) = best?;
    cells.sort_unstable();
    let parts = cells.iter().filter_map(|&it| site.part(it as usize)).collect();
    Some(Chosen { parts, score })
}

/// What it costs that sides of `cells` stay open to free cells, in parts of a million of the job's
/// time: [`OPEN_COST`] for as many as a square has.
fn cost_of_open(room: &Room<'_, AXES>, cells: &[u32]) -> u32 {
    let n_open: usize = room.n_open(cells);
    let n_sides = 4 * cells.len().isqrt().max(1);
    u32::try_from(OPEN_COST.parts() as usize * n_open / n_sides).unwrap_or(u32::MAX)
}

/// The time of a job on `joined` by that on `best`: what it computes takes as long on both.
pub fn slowdown(joined: &Joined, best: &Joined, wanted: &Partition) -> Ppm {
    let share = u128::from(wanted.communication.parts());
    let [on_this, on_best] = [joined, best].map(|it| bound(it, wanted.collective));
    // on_this / on_best, as parts of a million; nothing is better than the best.
    let (above, below) = (on_this[0] * on_best[1], on_this[1] * on_best[0]);
    let ratio = if below == 0 { 1_000_000 } else { (above * 1_000_000).div_ceil(below) };
    let ratio = ratio.max(1_000_000);
    let slowdown = (1_000_000 - share) + (share * ratio).div_ceil(1_000_000);
    Ppm::new(u32::try_from(slowdown).unwrap_or(u32::MAX))
}

/// The least time of a collective in units of bytes by link rate, as a fraction.
fn bound(it: &Joined, collective: Collective) -> [u128; 2] {
    let (n_chips, n_links, least) = (it.n_chips as u128, it.n_links as u128, it.least as u128);
    if n_chips < 2 {
        return [0, 1];
    }
    if least == 0 {
        // Not joined at all: worse than any that is.
        return [n_chips, 1];
    }
    // All-gather: the chip with the fewest links.  All-reduce: of the ways to cut the set into
    // pieces, pieces less one by the links between them, every chip a piece; or one part's chips
    // pieces and the rest another, which weighs where a part hangs on one neighbour.
    let mut worst = [1, least];
    if collective == Collective::AllReduce {
        let (part_chips, least_part) = (it.part_chips as u128, it.least_part as u128);
        let of_part = if part_chips < n_chips { [part_chips, least_part] } else { worst };
        for other in [[n_chips - 1, n_links], of_part] {
            if worst[0] * other[1] < other[0] * worst[1] {
                worst = other;
            }
        }
    }
    worst
}

#[cfg(test)]
mod tests;
