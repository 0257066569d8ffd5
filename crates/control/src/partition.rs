//! Which parts of a grid a job gets: the family proposes sets, and they are scored by what the
//! job's own collective reaches on them.
//!
//! All-gather is bounded by the chip with the fewest links, all-reduce by that and by the links of
//! all (a partition into single chips in the formula of Nash-Williams and Tutte), so a set is
//! scored in O(parts).  A set on which the job would take longer than [`SLOWDOWN_MAX`] of what it
//! would take on the best of its size is not taken: the job waits.

use serde::{Deserialize, Serialize};

use selvedge_family::grid::policy::{Policy, Wanted, candidates};
use selvedge_family::grid::room::Ground;
use selvedge_family::grid::site::{AXES, Joined, Site};
use selvedge_model::id::PartId;
use selvedge_model::job::{Collective, Partition};
use selvedge_model::unit::Ppm;

use crate::limits::SLOWDOWN_MAX;

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

/// The best of the sets that the rule proposes from what `is_free`, if one is good enough; no set
/// holds two parts beside each other that are not joined on `ground`.
pub(crate) fn choose(
    site: &Site,
    ground: &Ground<AXES>,
    is_free: impl Fn(PartId) -> bool,
    wanted: &Partition,
    policy: Policy,
) -> Option<Chosen> {
    let room = site.room(ground, is_free);
    let n_cells = wanted.n_parts as usize;
    let sides = wanted.sides.map(|it| it.map(usize::from));
    let asked = Wanted { n_cells, sides, exact: wanted.exact };
    let best_joined = site.best(n_cells);
    let mut best: Option<(Score, Vec<u32>)> = None;
    for cells in candidates(&room, asked, policy) {
        let joined = site.joined(&cells);
        let score = Score {
            n_links: u32::try_from(joined.n_links).unwrap_or(u32::MAX),
            least: u32::try_from(joined.least).unwrap_or(u32::MAX),
            slowdown: slowdown(&joined, &best_joined, wanted),
        };
        if best.as_ref().is_none_or(|it| score.slowdown < it.0.slowdown) {
            best = Some((score, cells));
        }
        if score.slowdown <= Ppm::new(1_000_000) {
            break;
        }
    }
    // Who asks for a box, or for another rule, takes what there is.
    let is_picky = policy == Policy::Polyomino && !wanted.exact;
    let (score, mut cells) = best.filter(|it| !is_picky || it.0.slowdown <= SLOWDOWN_MAX)?;
    cells.sort_unstable();
    let parts = cells.iter().filter_map(|&it| site.part(it as usize)).collect();
    Some(Chosen { parts, score })
}

/// The time of a job on `joined` by that on `best`: what it computes takes as long on both.
fn slowdown(joined: &Joined, best: &Joined, wanted: &Partition) -> Ppm {
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
    match collective {
        Collective::AllGather => [1, least],
        Collective::AllReduce if n_links < (n_chips - 1) * least => [n_chips - 1, n_links],
        Collective::AllReduce => [1, least],
    }
}

#[cfg(test)]
mod tests;
