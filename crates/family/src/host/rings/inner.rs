//! The links of a host that a way of NCCL's goes by.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use selvedge_model::fabric::{LinkKind, NodeKind, Template};

use crate::host::inside::Devices;
use crate::host::nccl::graph::{self, NodeIdx};
use crate::host::nccl::view::View;

/// A host's structure with the ways that were asked for.
pub(super) struct Inner {
    pub(super) devices: Devices,
    /// By node and kind of link: the directed links that leave it, and where they lead.
    links: BTreeMap<u32, Vec<(LinkKind, usize, u32)>>,
    known: BTreeMap<(NodeIdx, NodeIdx), Option<Vec<usize>>>,
}

impl Inner {
    pub(super) fn of(template: &Template, devices: Devices) -> Inner {
        let mut links: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for link in 0..template.n_links() {
            let (source, target, attrs) = template.link(link);
            let [near, far] = [source, target].map(|it| template.ports()[it as usize].node);
            links.entry(near).or_default().push((attrs.kind, link, far));
        }
        Inner { devices, links, known: BTreeMap::new() }
    }

    /// The directed links of `template`, by place, from one end to the other; none where the
    /// host has no such way.
    pub(super) fn way(
        &mut self,
        template: &Template,
        view: &View,
        ends: (NodeIdx, NodeIdx),
    ) -> Option<&[usize]> {
        let way = match self.known.remove(&ends) {
            Some(way) => way,
            None => self.find(template, view, ends),
        };
        self.known.entry(ends).or_insert(way).as_deref()
    }

    fn find(
        &self,
        template: &Template,
        view: &View,
        (from, to): (NodeIdx, NodeIdx),
    ) -> Option<Vec<usize>> {
        let mut way = Vec::new();
        let mut at = self.devices.node(view.graph.node(from))?;
        // Cards that a version takes for one are several here; what counts is where the way ends.
        let is_passed = |it: &graph::Node| it.kind != graph::NodeKind::Nic;
        let mut kind = None;
        // Ports of one number share the first one's paths.
        let base = view.graph.node(to);
        let base = view.graph.find(base.kind, base.id).unwrap_or(to);
        for hop in view.paths.hops(view.path(from, base)) {
            let link = &view.graph.node(hop.node).links[hop.link as usize];
            let far = view.graph.node(link.peer);
            kind = match link.kind {
                graph::LinkKind::Nvl | graph::LinkKind::C2c => Some(LinkKind::NvLink),
                graph::LinkKind::Pci => Some(LinkKind::Pcie),
                graph::LinkKind::Sys => Some(LinkKind::Socket),
                // Between two switches, or inside a device.
                graph::LinkKind::Loc if far.kind == graph::NodeKind::Pci => Some(LinkKind::Pcie),
                // What led to a card leads on to its port.
                graph::LinkKind::Loc | graph::LinkKind::Net => kind,
            };
            let Some(next) = self.devices.node(far).filter(|_| is_passed(far)) else { continue };
            if next != at {
                way.extend(self.stretch(template, [at, next], kind?)?);
                at = next;
            }
        }
        (at == self.devices.node(view.graph.node(to))?).then_some(way)
    }

    /// The fewest links of one kind between two nodes, through no GPU: one, but for switches that
    /// NCCL takes for one with those below them.
    fn stretch(
        &self,
        template: &Template,
        [from, to]: [u32; 2],
        kind: LinkKind,
    ) -> Option<Vec<usize>> {
        let mut came: BTreeMap<u32, Option<(u32, usize)>> = BTreeMap::from([(from, None)]);
        let mut todo = VecDeque::from([from]);
        while let Some(node) = todo.pop_front() {
            if node == to {
                break;
            }
            if node != from && template.nodes()[node as usize].kind == NodeKind::Chip {
                continue;
            }
            for &(own, link, far) in self.links.get(&node).into_iter().flatten() {
                if own == kind
                    && let Entry::Vacant(place) = came.entry(far)
                {
                    place.insert(Some((node, link)));
                    todo.push_back(far);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = to;
        while let Some((before, link)) = *came.get(&at)? {
            way.push(link);
            at = before;
        }
        way.reverse();
        Some(way)
    }
}
