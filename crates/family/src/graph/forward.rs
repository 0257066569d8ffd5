//! Forwarding tables inside a set of chips: where each chip sends what is for another.
//!
//! Two ways, both without a virtual channel and without deadlock.  Where the chips are a full box
//! of a mesh (in up to four dimensions: a hyper-square machine is the product of two paths and a
//! ring of four, which is a 2x2 mesh), *dimension order*: the first coordinate that differs first.
//! No turn leads back to an earlier dimension, and ways are shortest.  Else *up and down*
//! (Schroeder et al. 1991): chips are ranked by a breadth-first search; a way goes to lower ranks
//! first and to higher ranks then, never back.  Whoever has a way down takes the shortest of
//! those, so that the next chip goes on down, whatever the way came from.

use crate::graph::Graph;

/// Dimensions of a box.
pub const DIMS: usize = 4;

/// For each destination and chip, the chip that comes next.
///
/// Kept as the rule that they follow from: a table of all pairs of 16,384 chips would take a
/// gibibyte.  The entries for one destination are worked out together.
#[derive(Clone, Debug)]
pub struct Tables {
    graph: Graph,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Dimension order.
    InOrder(Places),
    /// Up and down: the nodes by rank, and the rank of each.
    UpAndDown { order: Vec<u32>, ranks: Vec<u32> },
}

/// Where the nodes of a full box stand.
#[derive(Clone, Debug)]
struct Places {
    of_node: Vec<[u16; DIMS]>,
    low: [u16; DIMS],
    sides: [usize; DIMS],
    node_at: Vec<u32>,
}

impl Tables {
    /// Tables by dimension order; `None` where the nodes at `places` are no full box, or where the
    /// links of the box are not all there.  O(links).
    pub fn in_order(graph: &Graph, places: &[[u16; DIMS]]) -> Option<Self> {
        let places = Places::of_box(graph, places)?;
        Some(Self { graph: graph.clone(), rule: Rule::InOrder(places) })
    }

    /// Tables by up and down; `None` where the nodes are not all joined.  O(links).
    pub fn up_and_down(graph: &Graph) -> Option<Self> {
        let n_nodes = graph.n_nodes();
        if n_nodes == 0 {
            return None;
        }
        let distances = graph.distances(0);
        if distances.contains(&Graph::APART) {
            return None;
        }
        let mut order: Vec<u32> = (0..n_nodes as u32).collect();
        order.sort_by_key(|it| (distances[*it as usize], *it));
        let mut ranks = vec![0u32; n_nodes];
        for (rank, &node) in (0..).zip(&order) {
            ranks[node as usize] = rank;
        }
        Some(Self { graph: graph.clone(), rule: Rule::UpAndDown { order, ranks } })
    }

    /// How many nodes there are.
    pub fn n_nodes(&self) -> usize {
        self.graph.n_nodes()
    }

    /// The next node of each node on the way to `to`; `to` itself for `to`.  O(links).
    pub fn toward(&self, to: usize) -> Vec<u32> {
        match &self.rule {
            Rule::InOrder(places) => (0..self.n_nodes()).map(|it| places.step(it, to)).collect(),
            Rule::UpAndDown { order, ranks } => {
                let mut next = vec![0; self.n_nodes()];
                toward(&self.graph, order, ranks, to, &mut next);
                next
            }
        }
    }

    /// A number that differs where tables do: it is that of what they follow from (FNV-1a).
    pub fn digest(&self) -> u64 {
        let links = self.graph.links().iter().flatten().copied();
        match &self.rule {
            Rule::InOrder(places) => {
                let places = places.of_node.iter().flatten().map(|it| u32::from(*it));
                hash([0].into_iter().chain(places))
            }
            Rule::UpAndDown { ranks, .. } => {
                hash([1].into_iter().chain(ranks.iter().copied()).chain(links))
            }
        }
    }
}

fn hash(numbers: impl Iterator<Item = u32>) -> u64 {
    numbers
        .fold(0xcbf2_9ce4_8422_2325, |acc, it| (acc ^ u64::from(it)).wrapping_mul(0x0100_0000_01b3))
}

impl Places {
    /// The nodes at `places`, if they are a full box whose links are all there.
    fn of_box(graph: &Graph, places: &[[u16; DIMS]]) -> Option<Self> {
        let n_nodes = graph.n_nodes();
        let low: [u16; DIMS] =
            std::array::from_fn(|dim| places.iter().map(|it| it[dim]).min().unwrap_or(0));
        let sides: [usize; DIMS] = std::array::from_fn(|dim| {
            let high = places.iter().map(|it| it[dim]).max().unwrap_or(0);
            usize::from(high - low[dim]) + 1
        });
        if places.len() != n_nodes || sides.iter().product::<usize>() != n_nodes {
            return None;
        }
        let node_at = vec![u32::MAX; n_nodes];
        let mut these = Self { of_node: places.to_vec(), low, sides, node_at };
        for (node, place) in (0..).zip(places) {
            let idx = these.idx(place);
            these.node_at[idx] = node;
        }
        let is_joined = |(node, place): (usize, &[u16; DIMS])| {
            (0..DIMS).filter(|&dim| usize::from(place[dim] - low[dim]) + 1 < sides[dim]).all(
                |dim| {
                    let mut next = *place;
                    next[dim] += 1;
                    graph.neighbours(node).contains(&these.node_at[these.idx(&next)])
                },
            )
        };
        let is_full = !these.node_at.contains(&u32::MAX);
        (is_full && places.iter().enumerate().all(is_joined)).then_some(these)
    }

    fn idx(&self, place: &[u16; DIMS]) -> usize {
        let at = |dim: usize| usize::from(place[dim] - self.low[dim]);
        (0..DIMS).rev().fold(0, |acc, dim| acc * self.sides[dim] + at(dim))
    }

    /// The node after `from` on the way to `to`: along the first dimension in which they differ.
    fn step(&self, from: usize, to: usize) -> u32 {
        let (mut at, goal) = (self.of_node[from], self.of_node[to]);
        let Some(dim) = (0..DIMS).find(|&dim| at[dim] != goal[dim]) else { return to as u32 };
        at[dim] = if at[dim] < goal[dim] { at[dim] + 1 } else { at[dim] - 1 };
        self.node_at[self.idx(&at)]
    }
}

/// The next node of each on the way to `to`.
fn toward(graph: &Graph, order: &[u32], ranks: &[u32], to: usize, next: &mut [u32]) {
    // Ways down: a search from the destination that only climbs.
    let mut hops = vec![u32::MAX; next.len()];
    let mut found = vec![to];
    (hops[to], next[to]) = (0, to as u32);
    let mut at = 0;
    while let Some(&node) = found.get(at) {
        at += 1;
        for &upper in graph.neighbours(node) {
            if ranks[upper as usize] < ranks[node] && hops[upper as usize] == u32::MAX {
                hops[upper as usize] = hops[node] + 1;
                next[upper as usize] = node as u32;
                found.push(upper as usize);
            }
        }
    }
    // All others go up, to whoever is nearest; the first of all has a way down to everyone.
    for &node in order {
        if hops[node as usize] != u32::MAX {
            continue;
        }
        let uppers = graph.neighbours(node as usize).iter();
        let uppers = uppers.filter(|it| ranks[**it as usize] < ranks[node as usize]);
        let best = uppers.min_by_key(|it| (hops[**it as usize], ranks[**it as usize]));
        let &upper = best.expect("every node but the first was found from an upper one");
        hops[node as usize] = hops[upper as usize] + 1;
        next[node as usize] = upper;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(tables: &Tables, from: usize, to: usize) -> usize {
        tables.toward(to)[from] as usize
    }

    #[test]
    fn ways_up_and_down_end_and_never_climb_again() {
        // A ring of seven with a chord: shortest ways alone could wait for one another.
        let mut links: Vec<[u32; 2]> = (0..7).map(|it| [it, (it + 1) % 7]).collect();
        links.push([1, 5]);
        let graph = Graph::of_links(7, links);
        let tables = Tables::up_and_down(&graph).unwrap();
        let distances = graph.distances(0);
        let rank = |it: usize| (distances[it], it);
        for (from, to) in (0..7).flat_map(|a| (0..7).map(move |b| (a, b))) {
            let (mut at, mut n, mut descends) = (from, 0, false);
            while at != to {
                let next = next(&tables, at, to);
                assert!(graph.neighbours(at).contains(&(next as u32)));
                assert!(!descends || rank(at) < rank(next), "{from} to {to}");
                descends = rank(at) < rank(next);
                (at, n) = (next, n + 1);
                assert!(n < 8);
            }
        }
    }

    #[test]
    fn a_box_has_shortest_ways_and_anything_else_has_none_by_order() {
        // 3x2 nodes of a mesh.
        let places: Vec<[u16; DIMS]> = (0..6).map(|it| [4 + it % 3, 7 + it / 3, 0, 0]).collect();
        let mut links = Vec::new();
        for (a, from) in (0u32..).zip(&places) {
            for (b, to) in (0u32..).zip(&places) {
                let apart = from[0].abs_diff(to[0]) + from[1].abs_diff(to[1]);
                if a < b && apart == 1 {
                    links.push([a, b]);
                }
            }
        }
        let graph = Graph::of_links(6, links.clone());
        let tables = Tables::in_order(&graph, &places).unwrap();
        // Along the first dimension first.
        assert_eq!((next(&tables, 0, 5), next(&tables, 1, 5), next(&tables, 2, 5)), (1, 2, 5));
        for to in 0..6 {
            let distances = graph.distances(to);
            for from in (0..6).filter(|it| *it != to) {
                assert_eq!(distances[next(&tables, from, to)] + 1, distances[from]);
            }
        }
        links.pop();
        assert!(Tables::in_order(&Graph::of_links(6, links), &places).is_none());
        assert!(Tables::in_order(&Graph::of_links(5, vec![[0, 1]]), &places[..5]).is_none());
        // Twice in one place, and nobody in another.
        let twice = [places[0], places[0], places[2], places[3], places[4], places[5]];
        assert!(Tables::in_order(&graph, &twice).is_none());
    }
}
