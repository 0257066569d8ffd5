//! The fewest links between two halves of a graph.
//!
//! Which is as hard as any problem in NP, so it is told exactly where few nodes stand between those
//! that have come and those that have not, in a good order ([`exact`]), and else bounded from above
//! by halves that are found ([`at_most`]).  With an odd number of nodes one half has one more.

use std::collections::BTreeSet;

use crate::graph::Graph;
use crate::graph::frontier::narrow_order;

/// Nodes beyond which no good order is looked for.
const EXACT_NODES_MAX: usize = 1024;
/// Steps of the exact count at most: about half a second.
const STEPS_MAX: u64 = 1 << 29;
/// No way to be in this state.
const NEVER: u32 = u32::MAX / 2;

/// The fewest links between two halves, where it can be counted in a short time.
///
/// Nodes come one after the other and take a side.  What matters of the past is who of those with
/// neighbours still to come is inside, and how many are inside in all; of equal pasts the one with
/// the fewest links across is kept.  O(nodes² · 2^frontier).
pub fn exact(graph: &Graph) -> Option<u32> {
    let n = graph.n_nodes();
    if !(2..=EXACT_NODES_MAX).contains(&n) {
        return None;
    }
    let beside: Vec<Vec<u32>> = (0..n).map(|it| graph.neighbours(it).to_vec()).collect();
    let (half, order) = (n / 2, narrow_order(&beside));
    let mut n_left: Vec<usize> = beside.iter().map(Vec::len).collect();
    // The steps are counted before any is made.
    let (mut width, mut widest, mut n_steps) = (0u32, 0, 0u64);
    let mut seats: Vec<Option<u32>> = vec![None; n];
    let (mut free, mut turns): (Vec<u32>, Vec<Turn>) = (Vec::new(), Vec::new());
    for &node in &order {
        let seat = free.pop().unwrap_or(width);
        width = width.max(seat + 1);
        seats[node as usize] = Some(seat);
        let come = || beside[node as usize].iter().copied().filter(|it| *it != node);
        let around = come().filter_map(|it| seats[it as usize]).collect();
        let mut closed = Vec::new();
        // A link is done with when both of its ends have come.
        for other in come().filter(|it| seats[*it as usize].is_some()) {
            n_left[other as usize] -= 1;
            n_left[node as usize] -= 1;
        }
        for end in come().chain([node]) {
            if n_left[end as usize] == 0 {
                closed.extend(seats[end as usize].take());
            }
        }
        widest = widest.max(width);
        n_steps = n_steps.checked_add((half as u64 + 1).checked_shl(width)?)?;
        if 32 <= width || STEPS_MAX < n_steps {
            return None;
        }
        free.extend(&closed);
        turns.push(Turn { seat, around, closed });
    }
    let mut best = vec![NEVER; (half + 1) << widest];
    best[0] = 0;
    let mut active = 0usize;
    for turn in &turns {
        turn.take(&mut best, active, half);
        active |= 1 << turn.seat;
        for &seat in &turn.closed {
            active &= !(1 << seat);
            fold(&mut best, active, seat, half);
        }
    }
    (best[half] != NEVER).then_some(best[half])
}

/// A node that comes.
struct Turn {
    seat: u32,
    /// The seats of its neighbours that came before, once for each link.
    around: Vec<u32>,
    /// The seats of those whose neighbours have all come then.
    closed: Vec<u32>,
}

impl Turn {
    /// Puts the node outside, which costs its links to those inside, or inside.
    fn take(&self, best: &mut [u32], active: usize, half: usize) {
        let own = 1 << self.seat;
        for inside in subsets(active) {
            let n_inside = self.around.iter().filter(|it| inside >> **it & 1 == 1).count() as u32;
            let n_outside = self.around.len() as u32 - n_inside;
            let (from, to) = (inside * (half + 1), (inside | own) * (half + 1));
            best[to] = NEVER;
            for n in 0..half {
                best[to + n + 1] = (best[from + n] + n_outside).min(NEVER);
            }
            best[from..=from + half].iter_mut().for_each(|it| *it = (*it + n_inside).min(NEVER));
        }
    }
}

/// Forgets on which side the node on `seat` is.
fn fold(best: &mut [u32], active: usize, seat: u32, half: usize) {
    for inside in subsets(active) {
        let (to, from) = (inside * (half + 1), (inside | 1 << seat) * (half + 1));
        for n in 0..=half {
            best[to + n] = best[to + n].min(best[from + n]);
        }
    }
}

/// All sets of the bits of `of`.
fn subsets(of: usize) -> impl Iterator<Item = usize> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let it = next?;
        next = (it != of).then(|| (it | !of).wrapping_add(1) & of);
        Some(it)
    })
}

/// Nodes beyond which halves are not improved by moves.
const MOVES_NODES_MAX: usize = 4096;
/// Rounds of moves.
const ROUNDS_MAX: usize = 8;

/// The links between two halves that were found: the best of all runs of half the nodes along each
/// of `orders`, closed to rings, improved by moves (Fiduccia and Mattheyses 1982).
pub fn at_most(graph: &Graph, orders: &[Vec<u32>]) -> u32 {
    let n = graph.n_nodes();
    let run = |order: &[u32], start: usize| {
        let mut inside = vec![false; n];
        order.iter().cycle().skip(start).take(n / 2).for_each(|it| inside[*it as usize] = true);
        inside
    };
    let step = n.div_ceil(RUNS_MAX).max(1);
    let starts = || orders.iter().flat_map(|it| (0..n).step_by(step).map(move |at| (it, at)));
    let runs = starts().map(|(order, start)| run(order, start));
    let best = runs.min_by_key(|inside| graph.cut(|it| inside[it]));
    let Some(mut inside) = best else { return 0 };
    let mut n_links = graph.cut(|it| inside[it]);
    if n <= MOVES_NODES_MAX {
        for _ in 0..ROUNDS_MAX {
            if !is_improved(graph, &mut inside) {
                break;
            }
        }
        n_links = graph.cut(|it| inside[it]).min(n_links);
    }
    n_links as u32
}

/// Runs along an order.
const RUNS_MAX: usize = 256;

/// One round of moves: each node changes sides once, the one that gains most first, always from the
/// larger half; then all moves after the best moment are taken back.
fn is_improved(graph: &Graph, inside: &mut [bool]) -> bool {
    let n = graph.n_nodes();
    let gain = |inside: &[bool], node: usize| -> i64 {
        let across = |it: &&u32| inside[**it as usize] != inside[node];
        let around = graph.neighbours(node);
        2 * around.iter().filter(across).count() as i64 - around.len() as i64
    };
    let mut gains: Vec<i64> = (0..n).map(|it| gain(inside, it)).collect();
    let mut sides: [BTreeSet<(i64, usize)>; 2] = Default::default();
    for node in 0..n {
        sides[usize::from(inside[node])].insert((gains[node], node));
    }
    let mut n_inside = inside.iter().filter(|it| **it).count();
    let start = n_inside;
    let (mut sum, mut best, mut moved) = (0, (0, 0), Vec::new());
    loop {
        let from = usize::from(start <= n_inside);
        let Some((gained, node)) = sides[from].pop_last() else { break };
        inside[node] = !inside[node];
        n_inside = if from == 1 { n_inside - 1 } else { n_inside + 1 };
        sum += gained;
        moved.push(node);
        for &other in graph.neighbours(node) {
            let other = other as usize;
            let side = &mut sides[usize::from(inside[other])];
            // Those that have moved stay where they are.
            if side.remove(&(gains[other], other)) {
                gains[other] = gain(inside, other);
                side.insert((gains[other], other));
            }
        }
        if n_inside == start && best.0 < sum {
            best = (sum, moved.len());
        }
    }
    moved[best.1..].iter().for_each(|it| inside[*it] = !inside[*it]);
    0 < best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::drawn::{Drawn, Wiring};

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }
    }

    /// Method: drawn graphs of 2 to 12 nodes, some links twice, against all halves.
    #[test]
    fn no_two_halves_of_all_have_fewer_links_and_what_is_found_is_never_less() {
        let mut dice = Dice(0x5eed_0031);
        let mut n_met = 0;
        for _ in 0..400 {
            let n = 2 + dice.below(11) as u32;
            let density = 1 + dice.below(6);
            let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| [a, b]));
            let mut links: Vec<[u32; 2]> = pairs.filter(|_| dice.below(8) < density).collect();
            links.extend(links.clone().iter().filter(|_| dice.below(5) == 0));
            let graph = Graph::of_links(n as usize, links);
            let halves = (0u32..1 << n).filter(|it| it.count_ones() == n / 2);
            let least = halves.map(|half| graph.cut(|it| half >> it & 1 == 1)).min().unwrap();
            assert_eq!(exact(&graph), Some(least as u32), "{:?}", graph.links());
            let found = at_most(&graph, &[(0..n).collect()]);
            assert!(least as u32 <= found);
            n_met += u32::from(found == least as u32);
        }
        assert!(360 <= n_met, "{n_met} of 400 by moves");
    }

    #[test]
    fn rectangles_are_halved_as_their_formula_has_it() {
        for (sides, wiring) in [
            ([2, 2], Wiring::Torus),
            ([4, 4], Wiring::Torus),
            ([6, 6], Wiring::Torus),
            ([20, 4], Wiring::Torus),
            ([8, 6], Wiring::Mesh),
            ([12, 12], Wiring::Mesh),
        ] {
            let drawn = Drawn::rectangle(sides, wiring);
            assert_eq!(exact(&drawn.graph), drawn.bisection, "{sides:?} {wiring:?}");
        }
        // Too wide to be counted.
        assert_eq!(exact(&Drawn::rectangle([32, 32], Wiring::Torus).graph), None);
    }
}
