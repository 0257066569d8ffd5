//! The widest way between two GPUs, whatever NCCL takes.
//!
//! Seed 002 opens with it: among all ways take the one whose narrowest link is widest.  A maximum
//! spanning tree holds such a way for every pair, and in the tree that Kruskal's merging draws the
//! width is the one at the lowest common ancestor.  GPUs are no transit, so the tree spans all
//! other parts, and a GPU is joined to it by each of its own links.  O(E log E) once, O(d² h) a
//! pair for d links of a GPU and height h.

use std::collections::BTreeMap;

use crate::host::nccl::graph::{Graph, NodeIdx, NodeKind};
use crate::host::nccl::view::View;
use crate::host::nccl::width::Width;

/// Widths between all parts that data may pass through.
#[derive(Clone, Debug)]
pub struct Widest<'v> {
    view: &'v View,
    /// Parts, then one node for each merge.
    leaf: BTreeMap<NodeIdx, usize>,
    up: Vec<Option<usize>>,
    depth: Vec<usize>,
    width: Vec<Width>,
}

impl Widest<'_> {
    /// Of that view.
    pub fn of(view: &View) -> Widest<'_> {
        let graph = &view.graph;
        let parts: Vec<NodeIdx> = NodeKind::ALL
            .into_iter()
            .filter(|it| is_transit(*it))
            .flat_map(|it| graph.kind(it).to_vec())
            .collect();
        let leaf: BTreeMap<NodeIdx, usize> =
            parts.iter().enumerate().map(|(idx, it)| (*it, idx)).collect();
        let mut links = links(graph, &leaf);
        links.sort_by(|a, b| b.0.0.total_cmp(&a.0.0));
        let mut up: Vec<Option<usize>> = vec![None; parts.len()];
        let mut root: Vec<usize> = (0..parts.len()).collect();
        let mut width = vec![Width::LOCAL; parts.len()];
        for (wide, a, b) in links {
            let (a, b) = (top(&mut root, a), top(&mut root, b));
            if a == b {
                continue;
            }
            let merge = up.len();
            up.push(None);
            root.push(merge);
            width.push(wide);
            for it in [a, b] {
                up[it] = Some(merge);
                root[it] = merge;
            }
        }
        // A merge has a higher number than what it merges, so depths come from the end.
        let mut depth = vec![0; up.len()];
        for it in (0..up.len()).rev() {
            depth[it] = up[it].map_or(0, |up| depth[up] + 1);
        }
        Widest { view, leaf, up, depth, width }
    }

    /// The widest way between two GPUs; zero where there is none.
    pub fn between(&self, a: NodeIdx, b: NodeIdx) -> Width {
        let graph = &self.view.graph;
        let (a, b) = (self.view.seat(a), self.view.seat(b));
        let mut best = Width::ZERO;
        for near in &graph.node(a).links {
            if near.peer == b {
                best = best.max(near.width);
            }
            let Some(&x) = self.leaf.get(&near.peer) else { continue };
            for far in &graph.node(b).links {
                let Some(&y) = self.leaf.get(&far.peer) else { continue };
                best = best.max(near.width.min(self.narrowest(x, y)).min(far.width));
            }
        }
        best
    }

    fn narrowest(&self, mut a: usize, mut b: usize) -> Width {
        if a == b {
            return Width::LOCAL;
        }
        while a != b {
            let lower = if self.depth[a] < self.depth[b] { &mut b } else { &mut a };
            match self.up[*lower] {
                Some(up) => *lower = up,
                None => return Width::ZERO,
            }
        }
        self.width[a]
    }
}

/// Whether data may pass through: everything but GPUs and what they sit on.
fn is_transit(kind: NodeKind) -> bool {
    !matches!(kind, NodeKind::Gpu | NodeKind::Dev)
}

fn links(graph: &Graph, leaf: &BTreeMap<NodeIdx, usize>) -> Vec<(Width, usize, usize)> {
    let mut links = Vec::new();
    for (node, &a) in leaf {
        for link in &graph.node(*node).links {
            if let Some(&b) = leaf.get(&link.peer) {
                links.push((link.width, a, b));
            }
        }
    }
    links
}

fn top(root: &mut [usize], mut node: usize) -> usize {
    while root[node] != node {
        root[node] = root[root[node]];
        node = root[node];
    }
    node
}
