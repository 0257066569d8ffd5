//! Chips and the links between them as an undirected graph, and its measures.  Knows no family.

pub(crate) mod circuit;

pub mod drawn;

pub mod forward;

pub(crate) mod frontier;

pub mod halves;

pub(crate) mod sets;

use selvedge_model::fabric::{Fabric, LinkAttrs, NodeKind};
use selvedge_model::id::{NodeId, PortId};

/// Undirected links between numbered nodes.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The two ends of each link.
    links: Vec<[u32; 2]>,
    /// Where each node's neighbours begin in `to`; one more than there are nodes.
    start: Vec<u32>,
    /// The neighbours of all nodes, node by node.
    to: Vec<u32>,
}

/// How far nodes lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The longest of the shortest ways, in links.
    pub diameter: u32,
    /// The sum of the shortest ways over all ordered pairs.
    pub distance_sum: u64,
    /// Ordered pairs of different nodes.
    pub n_pairs: u64,
}

impl Spread {
    /// The mean of the shortest ways over all ordered pairs, for a report.
    pub fn mean(&self) -> f64 {
        self.distance_sum as f64 / self.n_pairs.max(1) as f64
    }
}

/// Links times nodes beyond which nobody waits for all shortest ways.
const SPREAD_STEPS_MAX: u64 = 1 << 31;

impl Graph {
    /// The graph of these links; two nodes may have several.
    ///
    /// # Panics
    /// If a link has an end that is no node.
    pub fn of_links(n_nodes: usize, links: Vec<[u32; 2]>) -> Self {
        let mut start = vec![0; n_nodes + 1];
        for &end in links.iter().flatten() {
            start[end as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            start[node + 1] += start[node];
        }
        let mut free = start.clone();
        let mut to = vec![0; 2 * links.len()];
        for &[a, b] in &links {
            for (from, into) in [(a, b), (b, a)] {
                to[free[from as usize] as usize] = into;
                free[from as usize] += 1;
            }
        }
        Self { links, start, to }
    }

    /// How many nodes there are.
    pub fn n_nodes(&self) -> usize {
        self.start.len() - 1
    }

    /// All links, both directions as one.
    pub fn links(&self) -> &[[u32; 2]] {
        &self.links
    }

    /// The nodes that links lead to from `node`.
    pub fn neighbours(&self, node: usize) -> &[u32] {
        &self.to[self.start[node] as usize..self.start[node + 1] as usize]
    }

    /// The fewest and the most links of a node; zeros where there is none.
    pub fn degrees(&self) -> [usize; 2] {
        let degrees = || (0..self.n_nodes()).map(|it| self.neighbours(it).len());
        [degrees().min().unwrap_or(0), degrees().max().unwrap_or(0)]
    }

    /// The links from each node to `node`, [`Graph::APART`] where none lead there.
    pub fn distances(&self, node: usize) -> Vec<u32> {
        let mut distances = vec![Self::APART; self.n_nodes()];
        let mut found = vec![node as u32];
        distances[node] = 0;
        let mut next = 0;
        while let Some(&node) = found.get(next) {
            next += 1;
            for &neighbour in self.neighbours(node as usize) {
                if distances[neighbour as usize] == Self::APART {
                    distances[neighbour as usize] = distances[node as usize] + 1;
                    found.push(neighbour);
                }
            }
        }
        distances
    }

    /// The distance of nodes that no links join.
    pub const APART: u32 = u32::MAX;

    /// How far nodes lie apart; `None` where some are not joined at all, where there is none, or
    /// where there are so many that nobody would wait.
    ///
    /// One breadth-first search from each node: O(nodes · links).
    pub fn spread(&self) -> Option<Spread> {
        let n = self.n_nodes() as u64;
        let steps = n.checked_mul(n + 2 * self.links.len() as u64)?;
        let is_joined = 0 < n && !self.distances(0).contains(&Self::APART);
        if SPREAD_STEPS_MAX < steps || !is_joined {
            return None;
        }
        let mut spread = Spread { diameter: 0, distance_sum: 0, n_pairs: n * (n - 1) };
        for node in 0..self.n_nodes() {
            for distance in self.distances(node) {
                spread.diameter = spread.diameter.max(distance);
                spread.distance_sum += u64::from(distance);
            }
        }
        Some(spread)
    }

    /// How many links have one end among the nodes of `is_inside`.
    pub fn cut(&self, is_inside: impl Fn(usize) -> bool) -> usize {
        let crosses = |&&[a, b]: &&[u32; 2]| is_inside(a as usize) != is_inside(b as usize);
        self.links.iter().filter(crosses).count()
    }
}

impl Graph {
    /// A node without which the others are not joined, of a graph that is joined (Hopcroft and
    /// Tarjan 1973).  Linear.
    pub(crate) fn cut_node(&self) -> Option<u32> {
        let n = self.n_nodes();
        // When each node was come to, counted from 1, and the earliest that can be reached from
        // it and what was come to after it, by one link back.
        let (mut come, mut low) = (vec![0u32; n], vec![0u32; n]);
        let mut way: Vec<(u32, usize)> = vec![(0, 0)];
        let (mut n_come, mut n_from_root) = (1, 0);
        (come[0], low[0]) = (1, 1);
        while let Some((node, nth)) = way.last_mut() {
            let at = *node;
            if let Some(&next) = self.neighbours(at as usize).get(*nth) {
                *nth += 1;
                if come[next as usize] == 0 {
                    n_come += 1;
                    (come[next as usize], low[next as usize]) = (n_come, n_come);
                    way.push((next, 0));
                } else {
                    low[at as usize] = low[at as usize].min(come[next as usize]);
                }
                continue;
            }
            way.pop();
            let Some(&(from, _)) = way.last() else { break };
            low[from as usize] = low[from as usize].min(low[at as usize]);
            if from == 0 {
                n_from_root += 1;
            } else if come[from as usize] <= low[at as usize] {
                return Some(from);
            }
        }
        (1 < n_from_root).then_some(0)
    }
}

const NO_PLACE: u32 = u32::MAX;

/// The chips of a fabric and the links that lead from chip to chip, with nothing between.
#[derive(Clone, Debug)]
pub struct ChipGraph {
    /// The chip of each node, ascending.
    pub chips: Vec<NodeId>,
    /// The links between them.
    pub graph: Graph,
    /// What each link has, in the order of the graph's links.
    pub attrs: Vec<LinkAttrs>,
}

impl ChipGraph {
    /// The graph of the chips of `fabric` that are there.
    pub fn of(fabric: &Fabric) -> Self {
        let live = fabric.parts().pairs().filter(|(_, it)| !it.retired);
        let nodes = live.flat_map(|(part, _)| fabric.nodes_of(part));
        Self::of_chips(fabric, nodes.filter(|it| fabric.node(*it).kind == NodeKind::Chip))
    }

    /// The graph of these chips alone, each once.
    pub fn of_chips(fabric: &Fabric, chips: impl Iterator<Item = NodeId>) -> Self {
        Self::without(fabric, chips, &[])
    }

    /// The graph of these chips without the links that leave from a port of `without`, whose other
    /// ends are there too.
    pub fn without(
        fabric: &Fabric,
        chips: impl Iterator<Item = NodeId>,
        without: &[PortId],
    ) -> Self {
        let mut chips: Vec<NodeId> = chips.collect();
        chips.sort_unstable();
        let mut places = vec![NO_PLACE; fabric.n_nodes()];
        for (&chip, place) in chips.iter().zip(0..) {
            places[chip.idx()] = place;
        }
        let (mut links, mut attrs) = (Vec::new(), Vec::new());
        for (&chip, place) in chips.iter().zip(0..) {
            for link in fabric.links_from(chip) {
                let link = fabric.link(link);
                let peer = places[fabric.node_of_port(link.target).idx()];
                // Each link is met from both of its ends.
                if place < peer && peer != NO_PLACE && !without.contains(&link.source) {
                    links.push([place, peer]);
                    attrs.push(link.attrs);
                }
            }
        }
        let graph = Graph::of_links(chips.len(), links);
        Self { chips, graph, attrs }
    }

    /// The node of `chip`.
    pub fn node_of(&self, chip: NodeId) -> Option<usize> {
        self.chips.binary_search(&chip).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(n: u32) -> Graph {
        Graph::of_links(n as usize, (0..n).map(|it| [it, (it + 1) % n]).collect())
    }

    #[test]
    fn a_ring_of_six_is_measured_as_by_hand() {
        let ring = ring(6);
        assert_eq!(ring.degrees(), [2, 2]);
        assert_eq!(ring.distances(1), [1, 0, 1, 2, 3, 2]);
        let spread = ring.spread().unwrap();
        assert_eq!((spread.diameter, spread.distance_sum, spread.n_pairs), (3, 6 * 9, 30));
        assert_eq!(ring.cut(|it| it < 3), 2);
        assert_eq!(ring.cut(|it| it % 2 == 0), 6);
    }

    #[test]
    fn nodes_that_are_not_joined_have_no_spread() {
        let apart = Graph::of_links(4, vec![[0, 1], [2, 3]]);
        assert_eq!(apart.spread(), None);
        assert_eq!(apart.distances(0)[2], Graph::APART);
        assert_eq!(Graph::of_links(0, Vec::new()).spread(), None);
        assert_eq!(Graph::of_links(1, Vec::new()).spread().map(|it| it.diameter), Some(0));
    }

    #[test]
    fn two_links_between_two_nodes_count_twice() {
        let twice = Graph::of_links(2, vec![[0, 1], [1, 0]]);
        assert_eq!((twice.degrees(), twice.cut(|it| it == 0)), ([2, 2], 2));
    }
}
