//! Which hosts lie within two hops of each other.

use crate::cluster::hosts::Hosts;
use crate::graph::sets::Sets;

/// Of those around one switch or host, so many on either side count as near: enough to choose from,
/// and a switch of thousands of ports costs no more than one of sixty-four.
const AROUND: usize = 32;

/// The hosts within two hops of each host.
pub(super) struct Near {
    start: Vec<u32>,
    /// Host by host, ascending; with the hops.
    to: Vec<(u32, u32)>,
    /// For each host, the set that hangs together by such steps.
    pub(super) set_of: Vec<u32>,
}

impl Near {
    /// Looks from every host and across every switch.
    pub(super) fn of(hosts: &Hosts) -> Self {
        let mut pairs: Vec<(u32, u32, u32)> = Vec::new();
        let mut sets = Sets::single(hosts.n());
        for middle in 0..hosts.graph.n_nodes() {
            let mut around: Vec<u32> = hosts.graph.neighbours(middle).to_vec();
            around.retain(|it| hosts.is_host(*it));
            around.sort_unstable();
            around.dedup();
            let is_host = hosts.is_host(middle as u32);
            if is_host {
                pairs.extend(around.iter().map(|it| (middle as u32, *it, 1)));
            }
            let Some(&first) = around.first() else { continue };
            let joined = around.iter().copied().chain(is_host.then_some(middle as u32));
            joined.for_each(|it| {
                sets.join(first, it);
            });
            let n = around.len();
            for (place, &a) in around.iter().enumerate() {
                for step in 1..=AROUND.min(n.saturating_sub(1) / 2 + 1) {
                    let b = around[(place + step) % n];
                    if a != b {
                        pairs.extend([(a, b, 2), (b, a, 2)]);
                    }
                }
            }
        }
        // The fewer hops of two ways stand first.
        pairs.sort_unstable();
        pairs.dedup_by_key(|it| (it.0, it.1));
        let mut start = vec![0; hosts.n() + 1];
        pairs.iter().for_each(|it| start[it.0 as usize + 1] += 1);
        for host in 0..hosts.n() {
            start[host + 1] += start[host];
        }
        let set_of = (0..hosts.n() as u32).map(|it| sets.of(it)).collect();
        Self { start, to: pairs.into_iter().map(|it| (it.1, it.2)).collect(), set_of }
    }

    /// Those within two hops of `host`, with the hops.
    pub(super) fn of_host(&self, host: u32) -> &[(u32, u32)] {
        &self.to[self.start[host as usize] as usize..self.start[host as usize + 1] as usize]
    }

    /// The hops from one to the other, if they are at most two.
    pub(super) fn hops(&self, a: u32, b: u32) -> Option<u32> {
        let near = self.of_host(a);
        near.binary_search_by_key(&b, |it| it.0).ok().map(|it| near[it].1)
    }

    /// The hops between each two of three hosts in all; `None` where two are not near.
    pub(super) fn cost(&self, [a, b, c]: [u32; 3]) -> Option<u32> {
        Some(self.hops(a, b)? + self.hops(a, c)? + self.hops(b, c)?)
    }

    /// The sum over all such sets of a third of their hosts, rounded down.
    pub(super) fn bound(&self) -> usize {
        let mut sizes = vec![0; self.set_of.len()];
        self.set_of.iter().for_each(|it| sizes[*it as usize] += 1);
        sizes.iter().map(|it| it / 3).sum()
    }

    /// No triple with `host` in it costs less; `None` where it is in none.
    pub(super) fn cost_min(&self, host: u32) -> Option<u32> {
        let beside = |it: u32| self.of_host(it).iter().filter(|it| it.1 == 1).map(|it| it.0);
        let n_near = self.of_host(host).len();
        let is_triangle =
            beside(host).any(|a| beside(host).any(|b| a < b && self.hops(a, b) == Some(1)));
        let has_middle =
            2 <= beside(host).count() || beside(host).any(|it| 2 <= beside(it).count());
        match (n_near, beside(host).next()) {
            (0..2, _) => None,
            _ if is_triangle => Some(3),
            _ if has_middle => Some(4),
            (_, Some(_)) => Some(5),
            (_, None) => Some(6),
        }
    }
}
