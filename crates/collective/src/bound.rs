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
//! are needed; each takes N minimum cuts.

use std::cmp::Ordering;
use std::fmt;

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

/// The bounds of `n_chips` chips joined by `links`, both directions as one.
///
/// # Errors
/// [`BoundError`].
pub fn bounds(n_chips: usize, links: &[[u32; 2]]) -> Result<Bounds, BoundError> {
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
    let mut degrees = vec![0u64; n_chips];
    links.iter().flatten().for_each(|&it| degrees[it as usize] += 1);
    let (poorest, &least) =
        degrees.iter().enumerate().min_by_key(|it| it.1).expect("there are two chips at least");
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
    let mut values: Vec<i64> = Vec::with_capacity(n_chips);
    let mut classes = Classes::single(n_chips);
    for chip in 0..n_chips {
        let (least, set) = least_left(links, q, &values);
        values.push(least - 2 * p);
        set.into_iter().for_each(|it| classes.join(chip as u32, it));
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

/// The least of `q·d(A) - values(A)` over the sets A of the next chip and earlier ones that hold
/// the next chip, and the earlier chips of the largest such set.
fn least_left(links: &[[u32; 2]], q: i64, values: &[i64]) -> (i64, Vec<u32>) {
    let next = values.len();
    let (source, sink) = (next, next + 1);
    let mut flow = Flow::new(next + 2);
    let mut all = 0;
    for (chip, &value) in values.iter().enumerate() {
        if 0 < value {
            // What it would bring is lost where it is outside.
            flow.arc(source, chip, value);
            all -= value;
        } else {
            flow.arc(chip, sink, -value);
        }
    }
    for &[a, b] in links {
        // Later chips are outside of every set.
        let end = |it: u32| (it as usize <= next).then_some(it as usize);
        match (end(a), end(b)) {
            (Some(a), Some(b)) => flow.edge(a, b, q),
            (Some(a), None) | (None, Some(a)) => flow.arc(a, sink, q),
            (None, None) => (),
        }
    }
    let cut = flow.run(source, sink);
    let outside = flow.reaching(sink);
    let set = (0..next).filter(|it| !outside[*it]).map(|it| it as u32).collect();
    (all + cut, set)
}

/// Maximum flow by shortest augmenting ways in levels (Dinic 1970).
struct Flow {
    /// For each node its arcs; an arc and its reverse stand side by side.
    arcs_of: Vec<Vec<u32>>,
    to: Vec<u32>,
    left: Vec<i64>,
}

impl Flow {
    fn new(n: usize) -> Self {
        Self { arcs_of: vec![Vec::new(); n], to: Vec::new(), left: Vec::new() }
    }

    fn arc(&mut self, a: usize, b: usize, capacity: i64) {
        self.pair(a, b, [capacity, 0]);
    }

    fn edge(&mut self, a: usize, b: usize, capacity: i64) {
        self.pair(a, b, [capacity, capacity]);
    }

    fn pair(&mut self, a: usize, b: usize, capacity: [i64; 2]) {
        let idx = self.to.len() as u32;
        self.arcs_of[a].push(idx);
        self.arcs_of[b].push(idx + 1);
        self.to.extend([b as u32, a as u32]);
        self.left.extend(capacity);
    }

    fn run(&mut self, source: usize, sink: usize) -> i64 {
        let mut total = 0;
        loop {
            let levels = self.levels(source);
            if levels[sink] == u32::MAX {
                return total;
            }
            let mut next = vec![0; self.arcs_of.len()];
            loop {
                let pushed = self.push(source, sink, i64::MAX / 2, &levels, &mut next);
                if pushed == 0 {
                    break;
                }
                total += pushed;
            }
        }
    }

    fn levels(&self, source: usize) -> Vec<u32> {
        let mut levels = vec![u32::MAX; self.arcs_of.len()];
        levels[source] = 0;
        let mut found = vec![source];
        let mut at = 0;
        while let Some(&node) = found.get(at) {
            at += 1;
            for &arc in &self.arcs_of[node] {
                let to = self.to[arc as usize] as usize;
                if 0 < self.left[arc as usize] && levels[to] == u32::MAX {
                    levels[to] = levels[node] + 1;
                    found.push(to);
                }
            }
        }
        levels
    }

    /// One augmenting way, as a loop: machines may have more chips than a stack has frames.
    fn push(
        &mut self,
        source: usize,
        sink: usize,
        most: i64,
        levels: &[u32],
        next: &mut [usize],
    ) -> i64 {
        let mut way: Vec<u32> = Vec::new();
        let mut node = source;
        while node != sink {
            let Some(&arc) = self.arcs_of[node].get(next[node]) else {
                // A dead end: back, and past the arc that led here.
                let Some(arc) = way.pop() else { return 0 };
                node = self.to[(arc ^ 1) as usize] as usize;
                next[node] += 1;
                continue;
            };
            let to = self.to[arc as usize] as usize;
            if 0 < self.left[arc as usize] && levels[to] == levels[node] + 1 {
                way.push(arc);
                node = to;
            } else {
                next[node] += 1;
            }
        }
        let pushed = way.iter().map(|it| self.left[*it as usize]).min().unwrap_or(0).min(most);
        for arc in way {
            self.left[arc as usize] -= pushed;
            self.left[(arc ^ 1) as usize] += pushed;
        }
        pushed
    }

    /// The nodes from which `sink` can still be reached.
    fn reaching(&self, sink: usize) -> Vec<bool> {
        let mut reaches = vec![false; self.arcs_of.len()];
        reaches[sink] = true;
        let mut found = vec![sink];
        while let Some(node) = found.pop() {
            for &arc in &self.arcs_of[node] {
                // The reverse of an arc away from here leads here.
                let from = self.to[arc as usize] as usize;
                if 0 < self.left[(arc ^ 1) as usize] && !reaches[from] {
                    reaches[from] = true;
                    found.push(from);
                }
            }
        }
        reaches
    }
}

#[cfg(test)]
mod tests;
