//! Where each part of a server is drawn: CPUs side by side with what hangs on them below.  More
//! than four stand in two rows whose GPUs face each other, NVLinks between them.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::nccl::graph::{Facts, Graph, LinkKind, NodeIdx, NodeKind};

const LEAF: (f32, f32) = (72.0, 58.0);
const GAP: f32 = 10.0;
const CPU_HEIGHT: f32 = 44.0;
const PCI_HEIGHT: f32 = 24.0;
const ROW: f32 = 34.0;
const CPU_GAP: f32 = 46.0;
const NVS_HEIGHT: f32 = 28.0;
const MARGIN: f32 = 24.0;
/// Room above the CPUs for each step that a link passes over.
const ARC: f32 = 20.0;
/// CPUs in one row.
const ROW_MAX: usize = 4;
/// Room outside two rows for a link that leads around them.
const LANE: f32 = 18.0;

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
    /// Boxes of the lower of two rows, which stand upside down.
    lower: BTreeSet<NodeIdx>,
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
pub(super) fn shown(graph: &Graph, node: NodeIdx) -> NodeIdx {
    match graph.node(node).facts {
        Facts::Dev { gpu: Some(gpu), .. } => gpu,
        Facts::Net(_) => {
            let card = graph.node(node).links.iter().find(|it| it.kind == LinkKind::Net);
            card.map_or(node, |it| it.peer)
        }
        _ => node,
    }
}

impl Layout {
    /// Of a way that is drawn out, `hot` are the boxes: links on it are there in any case.
    pub(super) fn of(graph: &Graph, hot: &[NodeIdx]) -> Layout {
        let mut layout = Layout::default();
        let cpus = graph.kind(NodeKind::Cpu).to_vec();
        let mut trees = Trees { graph, below: BTreeMap::new(), seen: BTreeSet::new() };
        for &cpu in &cpus {
            trees.grow(cpu);
        }
        let depth = cpus.iter().map(|it| trees.depth(*it)).max().unwrap_or(0).max(1);
        let is_split = ROW_MAX < cpus.len();
        let arcs = if (3..=ROW_MAX).contains(&cpus.len()) { cpus.len() as f32 - 1.0 } else { 0.0 };
        let top = if is_split { LANE } else { arcs * ARC };
        let leaves = top + CPU_HEIGHT + ROW + (depth as f32 - 1.0) * (PCI_HEIGHT + ROW);
        let rows = if is_split { cpus.len().div_ceil(2) } else { cpus.len().max(1) };
        for (row, cpus) in cpus.chunks(rows).enumerate() {
            let before: BTreeSet<NodeIdx> = layout.boxes.keys().copied().collect();
            layout.row(&trees, cpus, top, leaves);
            if row > 0 {
                let new = layout.boxes.keys().filter(|it| !before.contains(it));
                layout.lower = new.copied().collect();
            }
        }
        let bottom = leaves + LEAF.1;
        let gap = if is_split { layout.gap(graph) } else { 0.0 };
        for node in &layout.lower {
            let area = layout.boxes.get_mut(node).expect("it was placed above");
            area.y = 2.0 * bottom + gap - area.y - area.h;
        }
        layout.ports(graph);
        layout.tree_links(&trees);
        if is_split {
            layout.cpu_rows(graph, &cpus, hot);
        } else {
            layout.cpu_links(graph, &cpus, top);
        }
        let end = layout.nvlinks(graph, bottom, gap);
        layout.height = if is_split { 2.0 * bottom + gap + 26.0 } else { end + 26.0 };
        layout
    }

    /// CPUs side by side.
    fn row(&mut self, trees: &Trees<'_>, cpus: &[NodeIdx], top: f32, leaves: f32) {
        let mut x = MARGIN;
        for &cpu in cpus {
            let width = trees.width(cpu).max(LEAF.0 * 1.6);
            let inset = (width - trees.width(cpu)) / 2.0;
            self.boxes.insert(cpu, Area { x, y: top, w: width, h: CPU_HEIGHT });
            self.place(trees, cpu, x + inset, top + CPU_HEIGHT, leaves);
            x += width + CPU_GAP;
        }
        self.width = self.width.max(x - CPU_GAP + MARGIN);
    }

    fn place(&mut self, trees: &Trees<'_>, node: NodeIdx, mut x: f32, bottom: f32, leaves: f32) {
        for &child in trees.below(node) {
            let width = trees.width(child);
            let is_switch = trees.graph.node(child).kind == NodeKind::Pci;
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

    /// Room between two rows of GPUs for what is drawn there.
    fn gap(&self, graph: &Graph) -> f32 {
        if !graph.kind(NodeKind::Nvs).is_empty() {
            return 2.0 * (ROW + 4.0) + NVS_HEIGHT;
        }
        let (mut dips, mut crossing) = ([0.0_f32; 2], false);
        for (a, b, ..) in nvlinks(graph) {
            let (Some(near), Some(there)) = (self.boxes.get(&a), self.boxes.get(&b)) else {
                continue;
            };
            let rows = [a, b].map(|it| usize::from(self.lower.contains(&it)));
            if rows[0] == rows[1] {
                let dip = arc_dip(near.middle(), there.middle()) * 0.75;
                dips[rows[0]] = dips[rows[0]].max(dip);
            } else {
                crossing = true;
            }
        }
        let least = if crossing { 150.0 } else { 40.0 };
        (dips[0] + dips[1] + 34.0).max(least)
    }

    fn ports(&mut self, graph: &Graph) {
        for &net in graph.kind(NodeKind::Net) {
            self.ports.entry(shown(graph, net)).or_default().push(net);
        }
    }

    fn tree_links(&mut self, trees: &Trees<'_>) {
        for (&parent, children) in &trees.below {
            let up = self.boxes[&parent];
            for &child in children {
                let down = self.boxes[&child];
                let Some((kind, gb_per_s)) = trees.link(child, parent) else { continue };
                let x = down.middle();
                let (from, to, y) = if self.lower.contains(&child) {
                    (up.y, down.bottom(), down.bottom() + ROW / 2.0 + 4.0)
                } else {
                    (up.bottom(), down.y, down.y - ROW / 2.0 + 4.0)
                };
                let shape = format!("M{x:.1} {from:.1}V{to:.1}");
                let figure = Some((x + 12.0, y));
                self.links.push(Drawn { a: parent, b: child, kind, gb_per_s, shape, figure });
            }
        }
    }

    fn cpu_links(&mut self, graph: &Graph, cpus: &[NodeIdx], top: f32) {
        for (i, &a) in cpus.iter().enumerate() {
            for (j, &b) in cpus.iter().enumerate().skip(i + 1) {
                let Some(gb_per_s) = between_cpus(graph, a, b) else { continue };
                let (left, right) = (self.boxes[&a], self.boxes[&b]);
                let (shape, figure) = if j == i + 1 {
                    straight(left, right)
                } else {
                    let (x, to) = (left.middle(), right.middle());
                    let peak = top - ARC * (j - i) as f32 * 1.25;
                    let shape = format!(
                        "M{x:.1} {top:.1}C{x:.1} {peak:.1} {to:.1} {peak:.1} {to:.1} {top:.1}"
                    );
                    (shape, ((x + to) / 2.0, top + (peak - top) * 0.75 - 3.0))
                };
                let figure = (gb_per_s < 1000.0).then_some(figure);
                self.links.push(Drawn { a, b, kind: LinkKind::Sys, gb_per_s, shape, figure });
            }
        }
    }

    /// In two rows: links between neighbours, and around the rows those on the way.
    fn cpu_rows(&mut self, graph: &Graph, cpus: &[NodeIdx], hot: &[NodeIdx]) {
        let on_way =
            |a: NodeIdx, b: NodeIdx| hot.windows(2).any(|it| *it == [a, b] || *it == [b, a]);
        for (i, &a) in cpus.iter().enumerate() {
            for (j, &b) in cpus.iter().enumerate().skip(i + 1) {
                let Some(gb_per_s) = between_cpus(graph, a, b) else { continue };
                let next = j == i + 1 && self.lower.contains(&a) == self.lower.contains(&b);
                let (left, right) = (self.boxes[&a], self.boxes[&b]);
                let (shape, figure) = if next {
                    straight(left, right)
                } else if on_way(a, b) {
                    self.around(a, b)
                } else {
                    continue;
                };
                let figure = (gb_per_s < 1000.0).then_some(figure);
                self.links.push(Drawn { a, b, kind: LinkKind::Sys, gb_per_s, shape, figure });
            }
        }
    }

    /// A link outside the rows, by the nearer side where it leads from one to the other.
    fn around(&self, a: NodeIdx, b: NodeIdx) -> (String, (f32, f32)) {
        let end = |it: NodeIdx| {
            let area = self.boxes[&it];
            let (edge, lane) = if self.lower.contains(&it) {
                (area.bottom(), area.bottom() + LANE * 0.7)
            } else {
                (area.y, area.y - LANE * 0.7)
            };
            (area.middle(), edge, lane)
        };
        let ((x, edge, lane), (to, there, far)) = (end(a), end(b));
        if self.lower.contains(&a) == self.lower.contains(&b) {
            let shape = format!("M{x:.1} {edge:.1}V{lane:.1}H{to:.1}V{there:.1}");
            return (shape, ((x + to) / 2.0, lane - 3.0));
        }
        let side = if x + to < self.width { MARGIN / 2.0 } else { self.width - MARGIN / 2.0 };
        let shape = format!("M{x:.1} {edge:.1}V{lane:.1}H{side:.1}V{far:.1}H{to:.1}V{there:.1}");
        (shape, ((x + side) / 2.0, lane - 3.0))
    }

    /// NVLinks below the GPUs, or between two rows of them; returns where the picture ends.
    fn nvlinks(&mut self, graph: &Graph, bottom: f32, gap: f32) -> f32 {
        let mut end = bottom;
        if let Some(&nvs) = graph.kind(NodeKind::Nvs).first() {
            let placed = graph.kind(NodeKind::Gpu).iter();
            let placed = placed.filter_map(|it| self.boxes.get(it)).copied();
            let left = placed.clone().map(|it| it.x).fold(f32::MAX, f32::min);
            let right = placed.map(|it| it.x + it.w).fold(0.0, f32::max);
            let y = bottom + ROW + 4.0;
            // GPUs may all hang outside any tree.
            let (x, w) = if left < right { (left, right - left) } else { (MARGIN, LEAF.0) };
            self.boxes.insert(nvs, Area { x, y, w, h: NVS_HEIGHT });
            end = y + NVS_HEIGHT;
        }
        for (gpu, far, gb_per_s) in nvlinks(graph) {
            let (Some(&near), Some(&there)) = (self.boxes.get(&gpu), self.boxes.get(&far)) else {
                continue;
            };
            let x = near.middle();
            let is_gpu = graph.node(far).kind == NodeKind::Gpu;
            let is_lower = self.lower.contains(&gpu);
            let y = if is_lower { bottom + gap } else { bottom };
            let (shape, figure) = if is_gpu && is_lower == self.lower.contains(&far) {
                let (dip, shape) = arc(x, there.middle(), y, is_lower);
                end = end.max(bottom + dip * 0.75);
                (shape, None)
            } else if is_gpu {
                (crossing([x, y], [there.middle(), 2.0 * bottom + gap - y]), None)
            } else if is_lower {
                let figure = Some((x + 16.0, y - ROW / 2.0 + 3.0));
                (format!("M{x:.1} {y:.1}V{:.1}", there.bottom()), figure)
            } else if there.y >= bottom {
                let figure = Some((x + 16.0, bottom + ROW / 2.0 + 5.0));
                (format!("M{x:.1} {bottom:.1}V{:.1}", there.y), figure)
            } else {
                (format!("M{x:.1} {:.1}V{:.1}", near.y, there.bottom()), None)
            };
            let kind = LinkKind::Nvl;
            self.links.push(Drawn { a: gpu, b: far, kind, gb_per_s, shape, figure });
        }
        self.mesh_figures(bottom, gap);
        end
    }

    /// Of links between GPUs, each width is written once, at its lowest link.
    fn mesh_figures(&mut self, bottom: f32, gap: f32) {
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
            let rows = [link.a, link.b].map(|it| self.lower.contains(&it));
            let dip = arc_dip(a, b) * 0.75;
            let y = match rows {
                [false, false] => bottom + dip + 12.0,
                [true, true] => bottom + gap - dip - 6.0,
                _ => bottom + gap / 2.0 + 4.0,
            };
            self.links[idx].figure = Some(((a + b) / 2.0, y));
        }
    }
}

/// Each NVLink once, as a GPU, the box at its other end and its width.
fn nvlinks(graph: &Graph) -> Vec<(NodeIdx, NodeIdx, f32)> {
    let gpus = graph.kind(NodeKind::Gpu);
    let mut out = Vec::new();
    for (idx, &gpu) in gpus.iter().enumerate() {
        for link in graph.node(graph.seat(gpu)).links.iter().filter(|it| it.kind == LinkKind::Nvl) {
            let far = shown(graph, link.peer);
            let is_gpu = graph.node(far).kind == NodeKind::Gpu;
            let known = is_gpu && gpus[..=idx].contains(&far);
            if !known {
                out.push((gpu, far, link.width.0));
            }
        }
    }
    out
}

fn between_cpus(graph: &Graph, a: NodeIdx, b: NodeIdx) -> Option<f32> {
    let mut links = graph.node(a).links.iter();
    links.find(|it| it.peer == b && it.kind == LinkKind::Sys).map(|it| it.width.0)
}

/// Between two neighbours.
fn straight(left: Area, right: Area) -> (String, (f32, f32)) {
    let (x, to, y) = (left.x + left.w, right.x, left.y + CPU_HEIGHT / 2.0);
    (format!("M{x:.1} {y:.1}H{to:.1}"), ((x + to) / 2.0, y - 6.0))
}

/// How far from its row a curve's handles are.
fn arc_dip(x: f32, to: f32) -> f32 {
    22.0 + (to - x).abs() * 0.17
}

/// A curve under a row of GPUs, or over one: how far off its handles are, and its shape.
fn arc(x: f32, to: f32, y: f32, is_over: bool) -> (f32, String) {
    let dip = arc_dip(x, to);
    let far = if is_over { y - dip } else { y + dip };
    (dip, format!("M{x:.1} {y:.1}C{x:.1} {far:.1} {to:.1} {far:.1} {to:.1} {y:.1}"))
}

/// From one row to the other.
fn crossing([x, y]: [f32; 2], [to, there]: [f32; 2]) -> String {
    let middle = (y + there) / 2.0;
    format!("M{x:.1} {y:.1}C{x:.1} {middle:.1} {to:.1} {middle:.1} {to:.1} {there:.1}")
}

/// What hangs below what.
struct Trees<'g> {
    graph: &'g Graph,
    below: BTreeMap<NodeIdx, Vec<NodeIdx>>,
    seen: BTreeSet<NodeIdx>,
}

impl Trees<'_> {
    /// Depth comes from a file, so the stack is ours.
    fn grow(&mut self, root: NodeIdx) {
        let mut todo = vec![root];
        self.seen.insert(root);
        while let Some(node) = todo.pop() {
            let graph = self.graph;
            let mut children = Vec::new();
            for link in &graph.node(self.seat(node)).links {
                let child = shown(graph, link.peer);
                let hangs = matches!(link.kind, LinkKind::Pci | LinkKind::C2c);
                let kind = graph.node(child).kind;
                // A device stays where trimming took its GPU.
                let is_left = match kind {
                    NodeKind::Cpu | NodeKind::Dev => false,
                    NodeKind::Gpu => graph.kind(NodeKind::Gpu).contains(&child),
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
        if self.graph.node(node).kind == NodeKind::Gpu { self.graph.seat(node) } else { node }
    }

    fn below(&self, node: NodeIdx) -> &[NodeIdx] {
        self.below.get(&node).map_or(&[], Vec::as_slice)
    }

    fn link(&self, child: NodeIdx, parent: NodeIdx) -> Option<(LinkKind, f32)> {
        let links = &self.graph.node(self.seat(child)).links;
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
