//! Where each part of a server is drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::nccl::graph::{Facts, LinkKind, NodeIdx, NodeKind};
use crate::host::nccl::view::View;

const LEAF: (f32, f32) = (72.0, 58.0);
const GAP: f32 = 10.0;
const CPU_HEIGHT: f32 = 44.0;
const PCI_HEIGHT: f32 = 24.0;
const ROW: f32 = 34.0;
const CPU_GAP: f32 = 46.0;
const MARGIN: f32 = 24.0;
/// Room above the CPUs for each step that a link passes over.
const ARC: f32 = 20.0;

/// A box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) w: f32,
    pub(super) h: f32,
}

/// A link between two boxes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawn {
    pub(super) a: NodeIdx,
    pub(super) b: NodeIdx,
    pub(super) kind: LinkKind,
    pub(super) gb_per_s: f32,
    pub(super) shape: String,
    /// Where its figure stands.
    pub(super) figure: Option<(f32, f32)>,
}

/// The whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layout {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) boxes: BTreeMap<NodeIdx, Area>,
    /// The ports that a card's box stands for.
    pub(super) ports: BTreeMap<NodeIdx, Vec<NodeIdx>>,
    pub(super) links: Vec<Drawn>,
}

impl Drawn {
    /// Wider links are drawn wider, by their logarithm's kin: the square root.
    pub(super) fn stroke(&self) -> f32 {
        (self.gb_per_s.sqrt() / 3.0).clamp(1.2, 5.0)
    }
}

impl Area {
    fn middle(self) -> f32 {
        self.x + self.w / 2.0
    }

    fn bottom(self) -> f32 {
        self.y + self.h
    }
}

/// The box in which a node is shown: a GPU's device is its GPU, a port is its card.
pub(super) fn shown(view: &View, node: NodeIdx) -> NodeIdx {
    match view.graph.node(node).facts {
        Facts::Dev { gpu: Some(gpu), .. } => gpu,
        Facts::Net(_) => {
            let card = view.graph.node(node).links.iter().find(|it| it.kind == LinkKind::Net);
            card.map_or(node, |it| it.peer)
        }
        _ => node,
    }
}

impl Layout {
    pub(super) fn of(view: &View) -> Layout {
        let mut layout = Layout::default();
        let cpus = view.graph.kind(NodeKind::Cpu).to_vec();
        let mut trees = Trees { view, below: BTreeMap::new(), seen: BTreeSet::new() };
        for &cpu in &cpus {
            trees.grow(cpu);
        }
        let depth = cpus.iter().map(|it| trees.depth(*it)).max().unwrap_or(0).max(1);
        let arcs = if (3..=4).contains(&cpus.len()) { cpus.len() as f32 - 1.0 } else { 0.0 };
        let top = arcs * ARC;
        let leaves = top + CPU_HEIGHT + ROW + (depth as f32 - 1.0) * (PCI_HEIGHT + ROW);
        let mut x = MARGIN;
        for &cpu in &cpus {
            let width = trees.width(cpu).max(LEAF.0 * 1.6);
            let inset = (width - trees.width(cpu)) / 2.0;
            layout.boxes.insert(cpu, Area { x, y: top, w: width, h: CPU_HEIGHT });
            layout.place(&trees, cpu, x + inset, top + CPU_HEIGHT, leaves);
            x += width + CPU_GAP;
        }
        layout.width = x - CPU_GAP + MARGIN;
        layout.ports(view);
        layout.tree_links(&trees);
        layout.cpu_links(view, &cpus, top);
        layout.height = layout.nvlinks(view, leaves + LEAF.1);
        layout
    }

    fn place(&mut self, trees: &Trees, node: NodeIdx, mut x: f32, bottom: f32, leaves: f32) {
        for &child in trees.below(node) {
            let width = trees.width(child);
            let is_switch = trees.view.graph.node(child).kind == NodeKind::Pci;
            let area = if is_switch {
                Area { x, y: bottom + ROW, w: width, h: PCI_HEIGHT }
            } else {
                Area { x, y: leaves, w: width, h: LEAF.1 }
            };
            self.boxes.insert(child, area);
            self.place(trees, child, x, bottom + ROW + PCI_HEIGHT, leaves);
            x += width + GAP;
        }
    }

    fn ports(&mut self, view: &View) {
        for &net in view.nets() {
            self.ports.entry(shown(view, net)).or_default().push(net);
        }
    }

    fn tree_links(&mut self, trees: &Trees) {
        for (&parent, children) in &trees.below {
            let up = self.boxes[&parent];
            for &child in children {
                let down = self.boxes[&child];
                let Some((kind, gb_per_s)) = trees.link(child, parent) else { continue };
                let x = down.middle();
                let shape = format!("M{x:.1} {:.1}V{:.1}", up.bottom(), down.y);
                let figure = Some((x + 12.0, down.y - ROW / 2.0 + 4.0));
                self.links.push(Drawn { a: parent, b: child, kind, gb_per_s, shape, figure });
            }
        }
    }

    fn cpu_links(&mut self, view: &View, cpus: &[NodeIdx], top: f32) {
        for (i, &a) in cpus.iter().enumerate() {
            for (j, &b) in cpus.iter().enumerate().skip(i + 1) {
                let links = view.graph.node(a).links.iter();
                let link = links.clone().find(|it| it.peer == b && it.kind == LinkKind::Sys);
                let Some(link) = link else { continue };
                let (left, right) = (self.boxes[&a], self.boxes[&b]);
                let next = j == i + 1;
                if !next && cpus.len() > 4 {
                    continue;
                }
                let (x, to) = (left.x + left.w, right.x);
                let y = top + CPU_HEIGHT / 2.0;
                let (shape, figure) = if next {
                    (format!("M{x:.1} {y:.1}H{to:.1}"), ((x + to) / 2.0, y - 6.0))
                } else {
                    let (x, to) = (left.middle(), right.middle());
                    let peak = top - ARC * (j - i) as f32 * 1.25;
                    let shape = format!(
                        "M{x:.1} {top:.1}C{x:.1} {peak:.1} {to:.1} {peak:.1} {to:.1} {top:.1}"
                    );
                    (shape, ((x + to) / 2.0, top + (peak - top) * 0.75 - 3.0))
                };
                let figure = (link.width.0 < 1000.0).then_some(figure);
                let (kind, gb_per_s) = (LinkKind::Sys, link.width.0);
                self.links.push(Drawn { a, b, kind, gb_per_s, shape, figure });
            }
        }
    }

    /// NVLinks below the GPUs; returns where the picture ends.
    fn nvlinks(&mut self, view: &View, bottom: f32) -> f32 {
        let mut end = bottom;
        let gpus = view.gpus();
        if let Some(&nvs) = view.graph.kind(NodeKind::Nvs).first() {
            let placed = gpus.iter().filter_map(|it| self.boxes.get(it)).copied();
            let left = placed.clone().map(|it| it.x).fold(f32::MAX, f32::min);
            let right = placed.map(|it| it.x + it.w).fold(0.0, f32::max);
            let y = bottom + ROW + 4.0;
            self.boxes.insert(nvs, Area { x: left, y, w: right - left, h: 28.0 });
            end = y + 28.0;
        }
        for (idx, &gpu) in gpus.iter().enumerate() {
            for link in &view.graph.node(view.seat(gpu)).links {
                let far = shown(view, link.peer);
                let (Some(&near), Some(&there)) = (self.boxes.get(&gpu), self.boxes.get(&far))
                else {
                    continue;
                };
                let x = near.middle();
                let (kind, gb_per_s) = (link.kind, link.width.0);
                if kind != LinkKind::Nvl {
                    continue;
                }
                let is_gpu = view.graph.node(far).kind == NodeKind::Gpu;
                let other = gpus.iter().position(|it| *it == far);
                if is_gpu && other.is_some_and(|it| it <= idx) {
                    continue;
                }
                let (shape, figure) = if is_gpu {
                    let (dip, shape) = arc(x, there.middle(), bottom);
                    end = end.max(bottom + dip * 0.75);
                    (shape, None)
                } else if there.y >= bottom {
                    let figure = Some((x + 16.0, bottom + ROW / 2.0 + 5.0));
                    (format!("M{x:.1} {bottom:.1}V{:.1}", there.y), figure)
                } else {
                    (format!("M{x:.1} {:.1}V{:.1}", near.y, there.bottom()), None)
                };
                self.links.push(Drawn { a: gpu, b: far, kind, gb_per_s, shape, figure });
            }
        }
        self.mesh_figures(bottom);
        end + 26.0
    }

    /// Of links between GPUs, each width is written once, at its lowest link.
    fn mesh_figures(&mut self, bottom: f32) {
        let mut lowest: BTreeMap<u32, (usize, f32)> = BTreeMap::new();
        for (idx, link) in self.links.iter().enumerate() {
            if link.kind != LinkKind::Nvl || link.figure.is_some() || !link.shape.contains('C') {
                continue;
            }
            let (a, b) = (self.boxes[&link.a].middle(), self.boxes[&link.b].middle());
            let span = (a - b).abs();
            let known = lowest.entry(link.gb_per_s.to_bits()).or_insert((idx, span));
            if span > known.1 {
                *known = (idx, span);
            }
        }
        for (idx, _) in lowest.into_values() {
            let link = &self.links[idx];
            let (a, b) = (self.boxes[&link.a].middle(), self.boxes[&link.b].middle());
            let dip = arc(a, b, bottom).0;
            self.links[idx].figure = Some(((a + b) / 2.0, bottom + dip * 0.75 + 12.0));
        }
    }
}

/// A curve under the row of GPUs: how far down its handles are, and its shape.
fn arc(x: f32, to: f32, bottom: f32) -> (f32, String) {
    let dip = 22.0 + (to - x).abs() * 0.17;
    let low = bottom + dip;
    (dip, format!("M{x:.1} {bottom:.1}C{x:.1} {low:.1} {to:.1} {low:.1} {to:.1} {bottom:.1}"))
}

/// What hangs below what.
struct Trees<'v> {
    view: &'v View,
    below: BTreeMap<NodeIdx, Vec<NodeIdx>>,
    seen: BTreeSet<NodeIdx>,
}

impl Trees<'_> {
    /// Depth comes from a file, so the stack is ours.
    fn grow(&mut self, root: NodeIdx) {
        let mut todo = vec![root];
        self.seen.insert(root);
        while let Some(node) = todo.pop() {
            let graph = &self.view.graph;
            let mut children = Vec::new();
            for link in &graph.node(self.seat(node)).links {
                let child = shown(self.view, link.peer);
                let hangs = matches!(link.kind, LinkKind::Pci | LinkKind::C2c);
                let kind = graph.node(child).kind;
                // A device stays where trimming took its GPU.
                let is_left = match kind {
                    NodeKind::Cpu | NodeKind::Dev => false,
                    NodeKind::Gpu => self.view.gpus().contains(&child),
                    _ => true,
                };
                if hangs && is_left && self.seen.insert(child) {
                    children.push(child);
                    if kind == NodeKind::Pci {
                        todo.push(child);
                    }
                }
            }
            // Ports left of GPUs, switches as the file has them.
            children.sort_by_key(|it| {
                let node = graph.node(*it);
                (node.kind == NodeKind::Gpu, node.pos)
            });
            self.below.insert(node, children);
        }
    }

    fn seat(&self, node: NodeIdx) -> NodeIdx {
        if self.view.graph.node(node).kind == NodeKind::Gpu { self.view.seat(node) } else { node }
    }

    fn below(&self, node: NodeIdx) -> &[NodeIdx] {
        self.below.get(&node).map_or(&[], Vec::as_slice)
    }

    fn link(&self, child: NodeIdx, parent: NodeIdx) -> Option<(LinkKind, f32)> {
        let links = &self.view.graph.node(self.seat(child)).links;
        let link = links.iter().find(|it| it.peer == parent)?;
        Some((link.kind, link.width.0))
    }

    /// Boxes below a node, one under another; the reader bounds the depth of a file.
    fn depth(&self, node: NodeIdx) -> usize {
        self.below(node).iter().map(|it| 1 + self.depth(*it)).max().unwrap_or(0)
    }

    fn width(&self, node: NodeIdx) -> f32 {
        let children = self.below(node);
        if children.is_empty() {
            return LEAF.0;
        }
        let sum: f32 = children.iter().map(|it| self.width(*it)).sum();
        sum + GAP * (children.len() - 1) as f32
    }
}
