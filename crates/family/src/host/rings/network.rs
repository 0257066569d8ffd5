//! What lies between hosts: cables, and packet switches that spread over all shortest ways.

use std::collections::BTreeMap;

use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::id::{LinkId, NodeId, PortId};

const APART: u32 = u32::MAX;

/// The packet switches of a fabric and how far each is from those that were asked for.
pub(super) struct Network<'f> {
    fabric: &'f Fabric,
    /// Nodes of packet switches, ascending.
    nodes: Vec<NodeId>,
    /// By node: the links to other packet switches, and where they lead.
    links: Vec<Vec<(LinkId, usize)>>,
    /// By target: the hops from every node.
    distances: BTreeMap<usize, Vec<u32>>,
}

impl<'f> Network<'f> {
    pub(super) fn of(fabric: &'f Fabric) -> Network<'f> {
        let live = fabric.parts().pairs().filter(|(_, it)| !it.retired).map(|it| it.0);
        let switches = live.filter(|it| fabric.template_of(*it).role == Role::PacketSwitch);
        let nodes: Vec<NodeId> = switches.flat_map(|it| fabric.nodes_of(it)).collect();
        let place = |node: NodeId| nodes.binary_search(&node).ok();
        let links = nodes.iter().map(|node| {
            let links = fabric.links_from(*node);
            let far = |it: &LinkId| place(fabric.node_of_port(fabric.link(*it).target));
            links.filter_map(|it| Some((it, far(&it)?))).collect()
        });
        let links = links.collect();
        Network { fabric, nodes, links, distances: BTreeMap::new() }
    }

    /// Gives `add` each link of the ways from one port to another with the share of the traffic
    /// that it carries, and returns how many switches the shortest passes; none where they are not
    /// joined.  What leaves by a port and comes in by the same turns round in its switch.
    pub(super) fn spread(
        &mut self,
        [out, into]: [PortId; 2],
        mut add: impl FnMut(LinkId, f64),
    ) -> Option<u32> {
        let first = self.fabric.link_from(out)?;
        if self.fabric.peer_of(out)? == into {
            add(first, 1.0);
            return Some(0);
        }
        let from = self.switch_at(out)?;
        let to = self.switch_at(into)?;
        let distances = self.distances_to(to);
        let n_hops = distances[from];
        if n_hops == APART {
            return None;
        }
        let distances = &self.distances[&to];
        add(first, 1.0);
        let mut here: BTreeMap<usize, f64> = BTreeMap::from([(from, 1.0)]);
        for left in (0..n_hops).rev() {
            let mut next: BTreeMap<usize, f64> = BTreeMap::new();
            for (&node, &share) in &here {
                let nearer = || self.links[node].iter().filter(|it| distances[it.1] == left);
                let each = share / nearer().count() as f64;
                for &(link, far) in nearer() {
                    add(link, each);
                    *next.entry(far).or_default() += each;
                }
            }
            here = next;
        }
        add(self.fabric.reverse(self.fabric.link_from(into)?), 1.0);
        Some(n_hops + 1)
    }

    /// The switch that a port is cabled to.
    fn switch_at(&self, port: PortId) -> Option<usize> {
        let far = self.fabric.node_of_port(self.fabric.peer_of(port)?);
        self.nodes.binary_search(&far).ok()
    }

    /// Hops to `to`, by one search backwards: links come in pairs.
    fn distances_to(&mut self, to: usize) -> &[u32] {
        let links = &self.links;
        self.distances.entry(to).or_insert_with(|| {
            let mut distances = vec![APART; links.len()];
            distances[to] = 0;
            let mut level = vec![to];
            let mut hops = 0;
            while !level.is_empty() {
                hops += 1;
                let mut next = Vec::new();
                for &(_, far) in level.iter().flat_map(|it| &links[*it]) {
                    if distances[far] == APART {
                        distances[far] = hops;
                        next.push(far);
                    }
                }
                level = next;
            }
            distances
        })
    }
}
