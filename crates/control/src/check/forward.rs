//! Whether forwarding tables stay inside a place, arrive, and cannot lock.
//!
//! Works from the fabric's links and the tables alone: for each destination it looks at the next
//! hop of every chip, and notes which link may wait for which.  No deadlock is possible where those
//! notes form no ring (Dally and Seitz 1987); and where they form none, every way ends, which it
//! can only at its destination, for every other chip has a next hop.
//!
//! A chip of a partition has few links, so a hop is a number below 64 and all that a link may wait
//! for is one word: O(chips squared) in all, some nanoseconds for each pair.

use std::collections::BTreeMap;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{JobId, NodeId};
use selvedge_model::job::Place;

use crate::check::Violation;
use crate::limits::TABLE_ENTRIES_MAX;

/// What chips of a place forward to one another, as the check reads it.
pub struct Claim<'a> {
    /// Who is forwarded to, in the order in which `toward` counts.
    pub chips: &'a [NodeId],
    /// For each chip, the number of the chip to which it sends what is for chip number `to`.
    pub toward: &'a dyn Fn(usize) -> Vec<u32>,
}

/// Holds the tables of a job at `place` against the fabric.  Of a partition of more than 4,096
/// chips the entries for so many destinations are looked at, spread evenly, as
/// [`TABLE_ENTRIES_MAX`] allows.
pub fn tables(fabric: &Fabric, job: JobId, place: &Place, claim: &Claim<'_>) -> Vec<Violation> {
    let held = place.holds.iter().flat_map(|hold| {
        let seats = fabric.template_of(hold.part).seats().iter().enumerate();
        let held = seats.filter(|(seat, _)| hold.seats >> seat & 1 == 1);
        held.map(|(_, local)| fabric.node_at(hold.part, *local as usize))
    });
    let numbers: BTreeMap<NodeId, u32> = claim.chips.iter().copied().zip(0..).collect();
    let is_known = |it: NodeId| numbers.contains_key(&it);
    let held: Vec<NodeId> = held.collect();
    if held.len() != claim.chips.len() || !held.iter().all(|it| is_known(*it)) {
        let from = held.iter().copied().find(|it| !is_known(*it));
        let from = from.or(claim.chips.first().copied()).unwrap_or(NodeId::new(0));
        return vec![Violation::TableLeaves { job, from, to: from }];
    }
    // For each chip, the chips of the place that it has a link to.
    let mut out: Vec<Vec<u32>> = Vec::with_capacity(claim.chips.len());
    for &chip in claim.chips {
        // The cables that the place does without carry nothing.
        let links = fabric.links_from(chip).map(|link| fabric.link(link));
        let links = links.filter(|link| !place.is_without(link.source));
        let far = links.map(|link| fabric.node_of_port(link.target));
        let mut to: Vec<u32> = far.filter_map(|it| numbers.get(&it).copied()).collect();
        to.sort_unstable();
        to.dedup();
        out.push(to);
    }
    Hops::new(&out).follow(job, claim)
}

/// The links of the place by number: those of one chip stand together.
struct Hops<'a> {
    out: &'a [Vec<u32>],
    /// The number of each chip's first link.
    first: Vec<usize>,
    /// For each link, to which links of the chip at its end data may go on: a bit for each.
    waits: Vec<u64>,
}

/// No next hop.
const NONE: u8 = u8::MAX;

impl<'a> Hops<'a> {
    fn new(out: &'a [Vec<u32>]) -> Self {
        let mut first = Vec::with_capacity(out.len());
        let mut n_links = 0;
        for links in out {
            assert!(links.len() <= 64, "{} links of one chip do not fit a word", links.len());
            first.push(n_links);
            n_links += links.len();
        }
        Self { out, first, waits: vec![0; n_links] }
    }

    fn follow(&mut self, job: JobId, claim: &Claim<'_>) -> Vec<Violation> {
        let n_chips = claim.chips.len();
        let stride = (n_chips * n_chips).div_ceil(TABLE_ENTRIES_MAX).max(1);
        for to in (0..n_chips).step_by(stride) {
            if let Err(from) = self.note((claim.toward)(to), to) {
                let (from, to) = (claim.chips[from], claim.chips[to]);
                return vec![Violation::TableLeaves { job, from, to }];
            }
        }
        let n = self.n_locked();
        if n == 0 {
            return Vec::new();
        }
        // It may be the data for one destination that goes round.
        for to in (0..n_chips).step_by(stride) {
            if let Some(from) = lost(&(claim.toward)(to), to) {
                let (from, to) = (claim.chips[from], claim.chips[to]);
                return vec![Violation::TableLost { job, from, to }];
            }
        }
        vec![Violation::TablesLock { job, n }]
    }

    /// Notes which links may wait for which by the next hops `next` toward `to`.
    ///
    /// # Errors
    /// The chip whose next hop is none of its links.
    fn note(&mut self, next: Vec<u32>, to: usize) -> Result<(), usize> {
        if next.len() != self.out.len() {
            return Err(to);
        }
        let slot = |from: usize| match from == to {
            true => Some(NONE),
            false => self.out[from].iter().position(|it| *it == next[from]).map(|it| it as u8),
        };
        let slots: Vec<u8> =
            (0..next.len()).map(|from| slot(from).ok_or(from)).collect::<Result<_, _>>()?;
        for (from, &slot) in slots.iter().enumerate() {
            if slot == NONE {
                continue;
            }
            let then = slots[next[from] as usize];
            if then != NONE {
                self.waits[self.first[from] + usize::from(slot)] |= 1 << then;
            }
        }
        Ok(())
    }

    /// How many links are left when those that wait for nobody are taken away again and again.
    fn n_locked(&self) -> u32 {
        let mut ends: Vec<usize> = Vec::with_capacity(self.waits.len());
        for links in self.out {
            ends.extend(links.iter().map(|it| *it as usize));
        }
        let mut n_left: Vec<u32> = self.waits.iter().map(|it| it.count_ones()).collect();
        let mut awaited_by: Vec<Vec<usize>> = vec![Vec::new(); self.waits.len()];
        for (link, &waits) in self.waits.iter().enumerate() {
            for slot in (0..64).filter(|it| waits >> it & 1 == 1) {
                awaited_by[self.first[ends[link]] + slot].push(link);
            }
        }
        let mut free: Vec<usize> = (0..n_left.len()).filter(|it| n_left[*it] == 0).collect();
        let mut n_locked = n_left.len();
        while let Some(link) = free.pop() {
            n_locked -= 1;
            for &by in &awaited_by[link] {
                n_left[by] -= 1;
                if n_left[by] == 0 {
                    free.push(by);
                }
            }
        }
        u32::try_from(n_locked).unwrap_or(u32::MAX)
    }
}

/// A chip from which data for `to` never arrives.
fn lost(next: &[u32], to: usize) -> Option<usize> {
    // From the destination back: whoever is not come to sends elsewhere.
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); next.len()];
    for (chip, &next) in next.iter().enumerate().filter(|it| it.0 != to) {
        from[next as usize].push(chip);
    }
    let mut arrives = vec![false; next.len()];
    arrives[to] = true;
    let mut found = vec![to];
    while let Some(chip) = found.pop() {
        for &before in from[chip].iter().filter(|it| !arrives[**it]) {
            found.push(before);
        }
        from[chip].iter().for_each(|it| arrives[*it] = true);
    }
    arrives.iter().position(|it| !it)
}

#[cfg(test)]
mod tests;
