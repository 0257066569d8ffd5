//! What the compares of clusters put on the links.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::cluster::Triple;
use crate::cluster::hosts::Hosts;

/// How compares lie on links, when each two replicas of each cluster tell each other once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Pairs of replicas over the busiest link.
    pub most: u32,
    /// Where that is.
    pub busiest: Option<[u32; 2]>,
    /// Links that carry any.
    pub n_used: usize,
    /// All hops of all pairs.
    pub hops_sum: u64,
    /// The most hops between two replicas of one cluster.
    pub hops_max: u32,
    /// Pairs that nothing joins, and which are in none of the above.
    pub n_cut: usize,
}

/// Puts the compares of `triples` on shortest ways, on those links that carry the fewest so far.
pub fn load(hosts: &Hosts, triples: &[Triple]) -> Load {
    let mut of_link: BTreeMap<[u32; 2], u32> = BTreeMap::new();
    let (mut hops_sum, mut hops_max, mut n_cut) = (0, 0, 0);
    // Two replicas of one host use no link.
    for triple in triples {
        let [meta, a, b] = triple.hosts.map(|it| it as u32);
        for (source, target) in [(meta, a), (meta, b), (a, b)] {
            let way = way(hosts, source, target, &of_link);
            n_cut += usize::from(way.is_empty() && source != target);
            hops_sum += way.len() as u64;
            hops_max = hops_max.max(way.len() as u32);
            way.into_iter().for_each(|it| *of_link.entry(it).or_default() += 1);
        }
    }
    let busiest = of_link.iter().max_by_key(|it| (it.1, std::cmp::Reverse(it.0)));
    Load {
        most: busiest.map_or(0, |it| *it.1),
        busiest: busiest.map(|it| *it.0),
        n_used: of_link.len(),
        hops_sum,
        hops_max,
        n_cut,
    }
}

/// Three jobs side by side, each on a third of the hosts in their order: the classic way (seed 003,
/// §1.2).
pub fn three_blocks(hosts: &Hosts, n: usize) -> Vec<Triple> {
    let third = hosts.n() / 3;
    let triple = |it: usize| Triple { hosts: [it, third + it, 2 * third + it], hops: [0; 3] };
    (0..third.min(n)).map(triple).collect()
}

/// The links of a shortest way; of several, step by step the one that carries least.
fn way(
    hosts: &Hosts,
    source: u32,
    target: u32,
    of_link: &BTreeMap<[u32; 2], u32>,
) -> Vec<[u32; 2]> {
    let graph = &hosts.graph;
    // Distances from the target, as far as the source.
    let mut distance: BTreeMap<u32, u32> = BTreeMap::from([(target, 0)]);
    let mut ring = vec![target];
    let mut hops = 0;
    while !distance.contains_key(&source) && !ring.is_empty() {
        hops += 1;
        let mut next = Vec::new();
        for &to in ring.iter().flat_map(|it| graph.neighbours(*it as usize)) {
            if let Entry::Vacant(place) = distance.entry(to) {
                place.insert(hops);
                next.push(to);
            }
        }
        ring = next;
    }
    let (mut at, mut links) = (source, Vec::new());
    while at != target {
        let Some(&left) = distance.get(&at) else { return Vec::new() };
        let nearer = |it: &&u32| distance.get(it).is_some_and(|it| it + 1 == left);
        let carries = |it: &&u32| of_link.get(&link(at, **it)).copied().unwrap_or(0);
        let next = graph.neighbours(at as usize).iter().filter(nearer).min_by_key(carries);
        let Some(&next) = next else { return Vec::new() };
        links.push(link(at, next));
        at = next;
    }
    links
}

fn link(a: u32, b: u32) -> [u32; 2] {
    [a.min(b), a.max(b)]
}
