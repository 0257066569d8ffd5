//! The least time of a collective on chips that are joined by equal full-duplex links.
//!
//! **All-reduce** of S bytes, no reduction in the network, takes at least S/b times the greatest
//! `(|P| - 1) / |E(P)|` over all partitions P of the chips, where b is what a link carries each
//! way and E(P) are the links between its classes; packing undirected spanning trees (reduce up,
//! broadcast down) reaches that in the limit (Nash-Williams and Tutte 1961).  The inverse is the
//! strength of the graph (Cunningham 1985).  **All-gather** takes at least (N-1)/N · S/b by the
//! fewest links of a chip, where each chip brings S/N.
//!
//! The strength is found exactly.  For λ = p/q, `q|E(P)| - p(|P| - 1)` is minimised over all P by a
//! greedy over the chips (Barahona 1992), which asks one minimum cut for each; if the minimum is
//! negative its partition has a smaller ratio, which becomes the next λ (Dinkelbach).  Few rounds
//! are needed; each takes N minimum cuts, each of them from the flow of the one before (`flow`).
//! A machine of 1,024 chips takes some tenths of a second; beyond, [`bracket`] tells between which
//! two the bound lies.

mod flow;

use std::cmp::Ordering;
use std::fmt;

use crate::bound::flow::{Arcs, Flow};

/// An exact ratio, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above the line.
    pub above: u64,
    /// Below the line, not zero.
    pub below: u64,
}

impl Ratio {
    /// `above / below` in lowest terms.
    ///
    /// # Panics
    /// If `below` is zero.
    pub fn of(above: u64, below: u64) -> Self {
        assert!(below != 0, "{above} by nothing");
        let divisor = gcd(above, below).max(1);
        Self { above: above / divisor, below: below / divisor }
    }

    /// As a number, for a report.
    pub fn value(self) -> f64 {
        self.above as f64 / self.below as f64
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        wide(self.above, other.below).cmp(&wide(other.above, self.below))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.above, self.below)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What no collective on these chips can beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least time of an all-reduce of S bytes, in units of S/b.
    pub all_reduce: Ratio,
    /// The class of each chip in the partition that proves it.
    pub classes: Vec<u32>,
    /// The least time of an all-gather of S bytes in all, in units of S/b.
    pub all_gather: Ratio,
    /// The chip with the fewest links, which proves it.
    pub poorest: u32,
}

/// Why there is no bound.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BoundError {
    /// One chip talks to nobody.
    #[error("a collective takes two chips at least, not {n}")]
    TooFew {
        /// How many there are.
        n: usize,
    },
    /// Some chips cannot be reached.
    #[error("the chips are not joined: {n_reached} of {n} hang together with the first")]
    Apart {
        /// How many hang together with the first.
        n_reached: usize,
        /// How many there are.
        n: usize,
    },
    /// A link that leads nowhere.
    #[error("a link leads to chip {end}; chips are 0 to {last}")]
    NoChip {
        /// The end.
        end: u32,
        /// The last chip.
        last: usize,
    },
}

/// Chips up to which [`bounds`] is worked out for somebody who waits: a machine of 16x16 groups.
/// It takes some tenths of a second for so many, and ten to twenty times that for four times as
/// many.
pub const EXACT_CHIPS_MAX: usize = 1024;

/// Between what no collective on these chips can beat and what one reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// No all-reduce of S bytes takes less, in units of S/b.
    pub least: Ratio,
    /// One over trees takes this, in the limit.
    pub most: Ratio,
    /// The trees, which share no link.
    pub n_trees: u64,
    /// The least time of an all-gather, as in [`Bounds`].
    pub all_gather: Ratio,
}

/// The bounds of `n_chips` chips joined by `links`, both directions as one.
///
/// # Errors
/// [`BoundError`].
pub fn bounds(n_chips: usize, links: &[[u32; 2]]) -> Result<Bounds, BoundError> {
    let links = joined(n_chips, links)?;
    let (poorest, least) = poorest(n_chips, &links);
    let n = n_chips as u64;
    // Single chips, or the poorest against all others: the better of the two begins.
    let single: Vec<u32> = (0..n_chips as u32).collect();
    let mut best = (Ratio::of(links.len() as u64, n - 1), single);
    if Ratio::of(least, 1) < best.0 {
        let apart = |chip: usize| u32::from(chip == poorest);
        best = (Ratio::of(least, 1), (0..n_chips).map(apart).collect());
    }
    while let Some(better) = improved(n_chips, &links, best.0) {
        best = better;
    }
    Ok(Bounds {
        all_reduce: Ratio::of(best.0.below, best.0.above),
        classes: best.1,
        all_gather: Ratio::of(n - 1, n * least),
        poorest: poorest as u32,
    })
}

/// What is known of the bounds without the strength of the graph, in time linear in the links: the
/// partitions into single chips and of the poorest chip from below, and trees that share no link
/// from above.
///
/// # Errors
/// [`BoundError`].
pub fn bracket(n_chips: usize, links: &[[u32; 2]]) -> Result<Bracket, BoundError> {
    let links = joined(n_chips, links)?;
    let (_, fewest) = poorest(n_chips, &links);
    let n = n_chips as u64;
    let n_trees = n_trees(n_chips, &links);
    Ok(Bracket {
        least: Ratio::of(n - 1, links.len() as u64).max(Ratio::of(1, fewest)),
        most: Ratio::of(1, n_trees),
        n_trees,
        all_gather: Ratio::of(n - 1, n * fewest),
    })
}

/// The links from a chip to another, if all chips hang together by them.
fn joined(n_chips: usize, links: &[[u32; 2]]) -> Result<Vec<[u32; 2]>, BoundError> {
    if n_chips < 2 {
        return Err(BoundError::TooFew { n: n_chips });
    }
    if let Some(&end) = links.iter().flatten().find(|it| n_chips <= **it as usize) {
        return Err(BoundError::NoChip { end, last: n_chips - 1 });
    }
    let links: Vec<[u32; 2]> = links.iter().copied().filter(|[a, b]| a != b).collect();
    let n_reached = reached(n_chips, &links);
    if n_reached < n_chips {
        return Err(BoundError::Apart { n_reached, n: n_chips });
    }
    Ok(links)
}

/// The chip with the fewest links, and how many it has.
fn poorest(n_chips: usize, links: &[[u32; 2]]) -> (usize, u64) {
    let mut degrees = vec![0u64; n_chips];
    links.iter().flatten().for_each(|&it| degrees[it as usize] += 1);
    let fewest = degrees.into_iter().enumerate().min_by_key(|it| it.1);
    fewest.expect("there are two chips at least")
}

fn reached(n_chips: usize, links: &[[u32; 2]]) -> usize {
    let mut classes = Classes::single(n_chips);
    links.iter().for_each(|&[a, b]| classes.join(a, b));
    let first = classes.of(0);
    (0..n_chips as u32).filter(|it| classes.of(*it) == first).count()
}

/// Chips by class, joined one after the other.
struct Classes(Vec<u32>);

impl Classes {
    fn single(n: usize) -> Self {
        Self((0..n as u32).collect())
    }

    fn of(&mut self, chip: u32) -> u32 {
        let mut root = chip;
        while self.0[root as usize] != root {
            self.0[root as usize] = self.0[self.0[root as usize] as usize];
            root = self.0[root as usize];
        }
        root
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// A partition whose links by classes less one are fewer than `than`, with its ratio.
///
/// `2(q|E(P)| - p|P|)` is the sum over the classes A of `q·d(A) - 2p`, where d(A) links leave A.
/// The least such sum over all partitions is the greatest sum of values of the chips that no set
/// exceeds (Dilworth truncation), and a greedy finds them: each chip in turn gets as much as the
/// sets of it and earlier chips leave, which is one minimum cut, and a set that is exhausted by it
/// is put together.
fn improved(n_chips: usize, links: &[[u32; 2]], than: Ratio) -> Option<(Ratio, Vec<u32>)> {
    let [p, q] = [than.above, than.below].map(|it| i64::try_from(it).expect("counts of links"));
    let arcs = Arcs::of(n_chips, links);
    let mut flow = Flow::new(&arcs, q);
    let mut classes = Classes::single(n_chips);
    let mut positive = 0;
    for chip in 0..n_chips as u32 {
        let value = flow.least_cut(chip) - positive - 2 * p;
        flow.within(chip).iter().for_each(|&it| classes.join(chip, it));
        positive += value.max(0);
        flow.settle(chip, value);
    }
    let ids: Vec<u32> = (0..n_chips as u32).map(|it| classes.of(it)).collect();
    let mut names: Vec<u32> = ids.clone();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 {
        return None;
    }
    let n_crossing = links.iter().filter(|[a, b]| ids[*a as usize] != ids[*b as usize]).count();
    let found = Ratio::of(n_crossing as u64, names.len() as u64 - 1);
    let class = |id: &u32| names.binary_search(id).expect("every class is named") as u32;
    (found < than).then(|| (found, ids.iter().map(class).collect()))
}

/// How often trees are looked for, from other chips each time.
const TREE_TRIES: usize = 8;

/// How many spanning trees that share no link are found, the most of a few tries.
fn n_trees(n_chips: usize, links: &[[u32; 2]]) -> u64 {
    let arcs = Arcs::of(n_chips, links);
    let tries = (0..TREE_TRIES).map(|nth| trees_from(&arcs, n_chips, nth * n_chips / TREE_TRIES));
    tries.max().unwrap_or(0)
}

/// Trees one after the other, each by a depth-first search, which takes few links of any one chip,
/// and goes to where most are left.
fn trees_from(arcs: &Arcs, n_chips: usize, root: usize) -> u64 {
    let mut n_left: Vec<usize> = (0..n_chips as u32).map(|it| arcs.of_chip(it).len()).collect();
    let mut is_used = vec![false; n_left.iter().sum::<usize>() / 2];
    let mut n_found = 0;
    loop {
        let mut is_in = vec![false; n_chips];
        // From another chip each time, so that none loses its links to all.
        let root = (root + n_found as usize * n_chips / 3) % n_chips;
        is_in[root] = true;
        let (mut way, mut n_in) = (vec![root as u32], 1);
        while let Some(&chip) = way.last() {
            let is_new =
                |arc: &&u32| !is_used[**arc as usize / 2] && !is_in[arcs.to(**arc) as usize];
            let new = arcs.of_chip(chip).iter().filter(is_new);
            let Some(&arc) = new.max_by_key(|it| n_left[arcs.to(**it) as usize]) else {
                way.pop();
                continue;
            };
            let next = arcs.to(arc);
            is_used[arc as usize / 2] = true;
            is_in[next as usize] = true;
            n_left[chip as usize] -= 1;
            n_left[next as usize] -= 1;
            way.push(next);
            n_in += 1;
        }
        if n_in < n_chips {
            return n_found;
        }
        n_found += 1;
    }
}

#[cfg(test)]
mod tests;
