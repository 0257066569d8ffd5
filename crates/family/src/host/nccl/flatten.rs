//! Broadcom's switches show as two levels of one switch; the lower level goes.  Notes §3c.
//!
//! NCCL keeps a node's links in a table with a count.  A link that is taken out leaves its last
//! one standing behind the count until another takes that place, and the sorting that moves the
//! link upwards behind all others goes by where the table is empty, not by the count.  So what is
//! left over is kept here too: a switch that loses more links than it gains ends without its link
//! upwards, and NCCL with an error.

use std::collections::BTreeMap;

use crate::host::nccl::build::TopoError;
use crate::host::nccl::graph::{Facts, Graph, Link, LinkKind, NodeIdx, NodeKind};
use crate::host::nccl::profile::Profile;

/// A link behind the count, with the place in NCCL's table of nodes that it points at: when nodes
/// move up, another one is there.
#[derive(Clone, Copy, Debug)]
struct Leftover {
    link: Link,
    at: (NodeKind, usize),
}

/// By node, what stands behind its links.
#[derive(Debug, Default)]
pub(super) struct Leftovers(BTreeMap<NodeIdx, Vec<Leftover>>);

impl Leftovers {
    fn take_out(&mut self, graph: &mut Graph, node: NodeIdx, link: usize) {
        let Some(&last) = graph.node(node).links.last() else { return };
        let at = (graph.node(last.peer).kind, graph.node(last.peer).pos);
        graph.node_mut(node).links.remove(link);
        self.0.entry(node).or_default().insert(0, Leftover { link: last, at });
    }

    fn push(&mut self, graph: &mut Graph, node: NodeIdx, link: Link) {
        graph.node_mut(node).links.push(link);
        if let Some(left) = self.0.get_mut(&node).filter(|it| !it.is_empty()) {
            left.remove(0);
        }
    }

    fn remove(&mut self, graph: &mut Graph, gone: NodeIdx) {
        for node in (0..graph.n_nodes() as u32).map(NodeIdx).filter(|it| *it != gone) {
            while let Some(at) = graph.node(node).links.iter().position(|it| it.peer == gone) {
                self.take_out(graph, node, at);
            }
        }
        self.0.remove(&gone);
        graph.remove(gone);
    }
}

/// Makes each of Broadcom's switches one with those below it; `up` is what a node hangs below.
///
/// # Errors
/// Where NCCL no longer finds a switch that it has done away with.
pub(super) fn flatten(
    graph: &mut Graph,
    mut up: Vec<Option<NodeIdx>>,
) -> Result<Leftovers, TopoError> {
    let mut leftovers = Leftovers::default();
    let profile = graph.profile;
    let mut at = 0;
    while let Some(&upper) = graph.kind(NodeKind::Pci).get(at) {
        let Facts::Pci(device) = graph.node(upper).facts else { break };
        // 2.18 knows generation 4 alone, 2.7 none.
        let known = broadcom(device, 0)
            .filter(|it| profile.has_hosts() || (*it == 4 && !profile.is_seed()));
        let Some(generation) = known else {
            at += 1;
            continue;
        };
        let is_lower = |graph: &Graph, it: &Link| match graph.node(it.peer).facts {
            Facts::Pci(device) => broadcom(device, 1) == Some(generation),
            _ => false,
        };
        let mut lower = Vec::new();
        let links = |graph: &Graph| graph.node(upper).links.clone();
        while let Some(link) = links(graph).iter().position(|it| is_lower(graph, it)) {
            lower.push(graph.node(links(graph)[link].peer).id);
            leftovers.take_out(graph, upper, link);
        }
        let switch = graph.node(upper).id;
        for lower in lower {
            // NCCL goes by the place in its table, where another switch is once nodes move up.
            let sub = graph.find(NodeKind::Pci, lower);
            let upper = graph.kind(NodeKind::Pci).get(at).copied();
            let Some(sub) = sub.filter(|it| Some(*it) != upper) else {
                return Err(TopoError::Twice { switch, lower });
            };
            if let Some(upper) = upper {
                splice(graph, &mut leftovers, &mut up, upper, sub);
            }
            leftovers.remove(graph, sub);
        }
        // A mark that no switch has, so that it is not flattened again; and from the start, for
        // the switches have moved.  Until 2.21 the first one is left out then.
        if let Some(&upper) = graph.kind(NodeKind::Pci).get(at)
            && let Facts::Pci(device) = graph.node(upper).facts
        {
            graph.node_mut(upper).facts = Facts::Pci(marked(profile, device));
        }
        at = usize::from(!profile.has_c2c());
    }
    Ok(leftovers)
}

/// Hangs what is below `sub` below `upper`.
fn splice(
    graph: &mut Graph,
    leftovers: &mut Leftovers,
    up: &mut [Option<NodeIdx>],
    upper: NodeIdx,
    sub: NodeIdx,
) {
    for link in graph.node(sub).links.clone() {
        if link.peer == upper {
            continue;
        }
        leftovers.push(graph, upper, link);
        let back = graph.node_mut(link.peer).links.iter_mut().find(|it| it.peer == sub);
        if let Some(back) = back {
            back.peer = upper;
        }
        if up[link.peer.usize()] == Some(sub) {
            up[link.peer.usize()] = Some(upper);
        }
    }
}

/// Times that a node is sorted on average, before a circle of bridges is taken for one: NCCL goes
/// round in it until its stack is full.
const ROUNDS_MAX: usize = 8;

/// The link upwards goes last, all the way down each PCI tree.  What is below two switches is
/// sorted once from each.
pub(super) fn sort(graph: &mut Graph, leftovers: &Leftovers) {
    let mut ups: Vec<Option<NodeIdx>> = vec![None; graph.n_nodes()];
    let mut left = graph.n_nodes() * ROUNDS_MAX;
    for cpu in graph.kind(NodeKind::Cpu).to_vec() {
        let mut todo = vec![(cpu, None)];
        while let Some((node, up)) = todo.pop() {
            let Some(less) = left.checked_sub(1) else { break };
            left = less;
            if let Some(up) = up {
                ups[node.usize()].get_or_insert(up);
                move_last(graph, leftovers, node, up);
            }
            let below = graph.node(node).links.iter().filter(|it| it.kind == LinkKind::Pci);
            let below: Vec<_> = below.map(|it| it.peer).filter(|it| Some(*it) != up).collect();
            todo.extend(below.into_iter().rev().map(|it| (it, Some(node))));
        }
    }
    let lost = |(at, up): (usize, &Option<NodeIdx>)| {
        let node = NodeIdx(at as u32);
        let is_lost = up.is_some_and(|up| graph.node(node).links.iter().all(|it| it.peer != up));
        is_lost.then_some(node)
    };
    graph.lost = ups.iter().enumerate().find_map(lost);
}

fn move_last(graph: &mut Graph, leftovers: &Leftovers, node: NodeIdx, up: NodeIdx) {
    let count = graph.node(node).links.len();
    let mut links = std::mem::take(&mut graph.node_mut(node).links);
    for left in leftovers.0.get(&node).into_iter().flatten() {
        let (kind, pos) = left.at;
        let peer = graph.kind(kind).get(pos).copied().unwrap_or(node);
        links.push(Link { peer, ..left.link });
    }
    if let Some(at) = links.iter().position(|it| it.peer == up) {
        let link = links.remove(at);
        links.push(link);
    }
    links.truncate(count);
    graph.node_mut(node).links = links;
}

fn marked(profile: Profile, device: u64) -> u64 {
    /// What 2.18 makes of a switch that it has flattened.
    const FLATTENED: u64 = 0x1000_c010_1000_0000;
    if profile.has_hosts() { device | 0xffff } else { FLATTENED }
}

/// The PCI generation of a Broadcom switch's upper (0) or lower (1) level.
fn broadcom(device: u64, level: u64) -> Option<u8> {
    match device & !0xfff {
        0x1000_c010_1000_a000 => Some(4),
        it if it == 0x1000_c030_1000_0000 | (level << 12) => Some(5),
        _ => None,
    }
}
