//! Where each part of a server is drawn: CPUs side by side with what hangs on them below.  More
//! than four stand in two rows whose GPUs face each other, NVLinks between them.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::nccl::graph::{Facts, Graph, LinkKind, NodeIdx, NodeKind};
use crate::host::place::bus_text;

const LEAF: (f32, f32) = (72.0, 58.0);
/// Of a box with a bus number that needs its domain.
const LEAF_WITH_DOMAIN: f32 = 88.0;
/// NCCL's width of what never leaves a device.
const INNER_GB_PER_S: f32 = 5000.0;
/// How far from a box's middle each of two links to the same box is.
const BESIDE: f32 = 14.0;
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
    /// For how many links it stands, if for others of its kind and width too.
    pub(super) stands_for: Option<usize>,
}

/// A link between two boxes on a way.
pub(super) type Hop = (NodeIdx, NodeIdx, LinkKind);

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
    /// Whether it leads nowhere: what is inside one device has the width of NCCL's `LOC`.
    fn is_inner(&self) -> bool {
        INNER_GB_PER_S <= self.gb_per_s
    }

    /// Wider links are drawn wider, by their logarithm's kin: the square root.
    pub(super) fn stroke(&self) -> f32 {
        if self.is_inner() {
            return 1.2;
        }
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
    pub(super) fn of(graph: &Graph, hot: &[Hop]) -> Layout {
        let mut layout = Layout::default();
        let cpus = graph.kind(NodeKind::Cpu).to_vec();
        let trees = Trees::of(graph, &cpus);
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
        layout.passing_links(&trees);
        if is_split {
            layout.cpu_rows(graph, &cpus, hot);
        } else {
            layout.cpu_links(graph, &cpus, top);
        }
        let end = layout.nvlinks(graph, bottom, gap);
        for link in layout.links.iter_mut().filter(|it| it.is_inner()) {
            link.figure = None;
        }
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
                let links = trees.links(child, parent);
                // Something else may come down past the parent.
                let has_passing = trees.passing.iter().any(|it| it.1 == child);
                for (nth, &(kind, gb_per_s)) in links.iter().enumerate() {
                    let off = match links.len() {
                        1 if !has_passing => 0.0,
                        _ if nth == 0 => -BESIDE,
                        _ => BESIDE,
                    };
                    let x = down.middle() + off;
                    let (from, to, y) = if self.lower.contains(&child) {
                        (up.y, down.bottom(), down.bottom() + ROW / 2.0 + 4.0)
                    } else {
                        (up.bottom(), down.y, down.y - ROW / 2.0 + 4.0)
                    };
                    let shape = format!("M{x:.1} {from:.1}V{to:.1}");
                    let aside = if off < 0.0 { -13.0 } else { 13.0 };
                    let figure = Some((x + aside, y));
                    let (a, b) = (parent, child);
                    let stands_for = None;
                    self.links.push(Drawn { a, b, kind, gb_per_s, shape, figure, stands_for });
                }
            }
        }
    }

    /// Links that pass what stands between their boxes: behind it, beside the tree's own.
    fn passing_links(&mut self, trees: &Trees<'_>) {
        for &(above, below, kind, gb_per_s) in &trees.passing {
            let (Some(&up), Some(&down)) = (self.boxes.get(&above), self.boxes.get(&below)) else {
                continue;
            };
            let x = down.middle() + BESIDE;
            let (from, to, y) = if self.lower.contains(&below) {
                (up.y, down.bottom(), down.bottom() + ROW / 2.0 + 4.0)
            } else {
                (up.bottom(), down.y, down.y - ROW / 2.0 + 4.0)
            };
            // Of a CPU that stands elsewhere it leads there slantwise.
            let over = x.clamp(up.x + 8.0, up.x + up.w - 8.0);
            let shape = format!("M{over:.1} {from:.1}L{x:.1} {to:.1}");
            let figure = Some((x + 14.0, y));
            let (a, b, stands_for) = (above, below, None);
            self.links.push(Drawn { a, b, kind, gb_per_s, shape, figure, stands_for });
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
                let figure = Some(figure);
                let (kind, stands_for) = (LinkKind::Sys, None);
                self.links.push(Drawn { a, b, kind, gb_per_s, shape, figure, stands_for });
            }
        }
    }

    /// In two rows.  Where each leads to each by links of one width, one line around the rows
    /// stands for all, and those on the way are drawn out on it.
    fn cpu_rows(&mut self, graph: &Graph, cpus: &[NodeIdx], hot: &[Hop]) {
        let on_way = |a: NodeIdx, b: NodeIdx| {
            hot.iter().any(|&(from, to, kind)| {
                kind == LinkKind::Sys && ((from, to) == (a, b) || (from, to) == (b, a))
            })
        };
        let pairs = || {
            let later = |i: usize| cpus[i + 1..].iter().copied();
            cpus.iter().enumerate().flat_map(move |(i, a)| later(i).map(move |b| (i, *a, b)))
        };
        let mut widths = pairs().map(|(_, a, b)| between_cpus(graph, a, b));
        let first = widths.next().flatten();
        let trunk = first.filter(|_| widths.all(|it| it == first));
        if let Some(gb_per_s) = trunk {
            let (shape, figure) = self.trunk(cpus);
            let (kind, figure) = (LinkKind::Sys, Some(figure));
            let (a, b, stands_for) = (cpus[0], cpus[1], Some(pairs().count()));
            self.links.push(Drawn { a, b, kind, gb_per_s, shape, figure, stands_for });
        }
        for (i, a, b) in pairs() {
            let Some(gb_per_s) = between_cpus(graph, a, b) else { continue };
            let is_next =
                cpus.get(i + 1) == Some(&b) && self.lower.contains(&a) == self.lower.contains(&b);
            let (shape, figure) = match trunk {
                Some(_) if !on_way(a, b) => continue,
                None if is_next => straight(self.boxes[&a], self.boxes[&b]),
                Some(_) | None => self.around(a, b),
            };
            let figure = trunk.is_none().then_some(figure);
            let (kind, stands_for) = (LinkKind::Sys, None);
            self.links.push(Drawn { a, b, kind, gb_per_s, shape, figure, stands_for });
        }
    }

    /// A line around the rows with a branch to each CPU.
    fn trunk(&self, cpus: &[NodeIdx]) -> (String, (f32, f32)) {
        let ends = cpus.iter().map(|it| (self.boxes[it], self.lower.contains(it)));
        let (left, right) = (MARGIN / 2.0, self.width - MARGIN / 2.0);
        let (mut top, mut bottom) = (0.0_f32, 0.0_f32);
        let mut branches = String::new();
        for (area, is_lower) in ends {
            let (edge, lane) = if is_lower {
                (area.bottom(), area.bottom() + LANE * 0.7)
            } else {
                (area.y, area.y - LANE * 0.7)
            };
            if is_lower {
                bottom = lane
            } else {
                top = lane
            }
            branches.push_str(&format!("M{:.1} {lane:.1}V{edge:.1}", area.middle()));
        }
        let ring = format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z{branches}");
        (ring, ((left + right) / 2.0, top - 4.0))
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
            let (kind, stands_for) = (LinkKind::Nvl, None);
            self.links.push(Drawn { a: gpu, b: far, kind, gb_per_s, shape, figure, stands_for });
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
            // Those to CPUs come down beside the tree's.
            if !known && graph.node(far).kind != NodeKind::Cpu {
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
    /// Links past what stands between: the upper box, the lower, kind and width.
    passing: Vec<(NodeIdx, NodeIdx, LinkKind, f32)>,
    seen: BTreeSet<NodeIdx>,
    leaf: f32,
}

impl<'g> Trees<'g> {
    fn of(graph: &'g Graph, cpus: &[NodeIdx]) -> Self {
        let has_domain = |it: &NodeIdx| !bus_text(graph.node(*it).id).starts_with("0000:");
        let leaf = match graph.kind(NodeKind::Gpu).iter().any(has_domain) {
            true => LEAF_WITH_DOMAIN,
            false => LEAF.0,
        };
        let (below, seen) = (BTreeMap::new(), BTreeSet::new());
        let mut trees = Self { graph, below, passing: Vec::new(), seen, leaf };
        // A GPU with both hangs on its bus.
        for kind in [LinkKind::Pci, LinkKind::C2c] {
            for &cpu in cpus {
                trees.grow(cpu, kind);
            }
        }
        for &cpu in cpus {
            trees.pass(cpu);
        }
        trees
    }

    /// Depth comes from a file, so the stack is ours.
    fn grow(&mut self, root: NodeIdx, by: LinkKind) {
        let mut todo = vec![root];
        self.seen.insert(root);
        while let Some(node) = todo.pop() {
            let graph = self.graph;
            let mut children = Vec::new();
            for link in &graph.node(self.seat(node)).links {
                let child = shown(graph, link.peer);
                let kind = graph.node(child).kind;
                // A device stays where trimming took its GPU.
                let is_left = match kind {
                    NodeKind::Cpu | NodeKind::Dev => false,
                    NodeKind::Gpu => graph.kind(NodeKind::Gpu).contains(&child),
                    _ => true,
                };
                if link.kind == by && is_left && self.seen.insert(child) {
                    children.push(child);
                    if kind == NodeKind::Pci {
                        todo.push(child);
                    }
                }
            }
            let below = self.below.entry(node).or_default();
            below.extend(children);
            // Ports left of GPUs, switches as the file has them.
            below.sort_by_key(|it| {
                let node = graph.node(*it);
                (node.kind == NodeKind::Gpu, node.pos)
            });
        }
    }

    /// What leads from a CPU to GPUs that hang on something else.
    fn pass(&mut self, cpu: NodeIdx) {
        for link in &self.graph.node(cpu).links {
            let gpu = shown(self.graph, link.peer);
            let is_gpu = self.graph.kind(NodeKind::Gpu).contains(&gpu);
            let passes = matches!(link.kind, LinkKind::Pci | LinkKind::C2c | LinkKind::Nvl);
            if is_gpu && passes && !self.below(cpu).contains(&gpu) {
                self.passing.push((cpu, gpu, link.kind, link.width.0));
            }
        }
    }

    fn seat(&self, node: NodeIdx) -> NodeIdx {
        if self.graph.node(node).kind == NodeKind::Gpu { self.graph.seat(node) } else { node }
    }

    fn below(&self, node: NodeIdx) -> &[NodeIdx] {
        self.below.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The links between two boxes, one under the other, the bus first.
    fn links(&self, child: NodeIdx, parent: NodeIdx) -> Vec<(LinkKind, f32)> {
        let links = self.graph.node(self.seat(child)).links.iter();
        let links = links.filter(|it| shown(self.graph, it.peer) == parent);
        let mut links: Vec<_> = links.map(|it| (it.kind, it.width.0)).collect();
        links.sort_by_key(|it| it.0 != LinkKind::Pci);
        links
    }

    /// Boxes below a node, one under another; the reader bounds the depth of a file.
    fn depth(&self, node: NodeIdx) -> usize {
        self.below(node).iter().map(|it| 1 + self.depth(*it)).max().unwrap_or(0)
    }

    fn width(&self, node: NodeIdx) -> f32 {
        let children = self.below(node);
        if children.is_empty() {
            return self.leaf;
        }
        let sum: f32 = children.iter().map(|it| self.width(*it)).sum();
        sum + GAP * (children.len() - 1) as f32
    }
}
