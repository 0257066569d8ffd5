//! The tree in a log: each CPU, and below it, as far to the right as the name above it begins, what
//! hangs on it.
//!
//! ```text
//! CPU/0-0 (1/1/2)
//! + PCI[24.0] - PCI/0-1000 (ffffffffffffffff)
//!               + PCI[24.0] - GPU/0-7000 (0)
//!                             + NVL[240.0] - NVS/0-0
//! + SYS[10.0] - CPU/0-1
//! ```

use std::collections::BTreeMap;

use crate::host::log::LOCAL;
use crate::host::nccl::graph::{Arch, Cpu, Facts, Gpu, Graph, LinkKind, Net};
use crate::host::nccl::graph::{NodeIdx, NodeKind, Vendor};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::width::Width;

/// Lines of one tree: a rack of 72 GPUs has a thousand.
const LINES_MAX: usize = 1 << 12;

/// Parts one below another.
const DEPTH_MAX: usize = 64;

/// A thread's first tree, as it was written.
#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    is_over: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    /// Where its link's sign stands; none of a CPU.
    link: Option<(usize, LinkKind, f32)>,
    /// Where its name begins.
    column: usize,
    kind: NodeKind,
    id: u64,
    has_host: bool,
    /// What stands in brackets.
    facts: String,
}

impl Lines {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn has_devices(&self) -> bool {
        self.lines.iter().any(|it| it.kind == NodeKind::Dev)
    }

    pub(super) fn has_hosts(&self) -> bool {
        self.lines.iter().any(|it| it.has_host)
    }

    /// Ranks by the GPU's id, where the tree names them.
    pub(super) fn ranks(&self) -> impl Iterator<Item = (String, i32)> {
        let gpus = self.lines.iter().filter(|it| it.kind == NodeKind::Gpu);
        gpus.filter_map(|it| Some((format!("{:x}", it.id & LOCAL), first_number(&it.facts)?)))
    }

    pub(super) fn line(&mut self, text: &str) {
        // Of a second communicator's tree nothing is taken.
        let bare = text.trim();
        if bare.starts_with("=== System") {
            self.is_over |= !self.lines.is_empty();
            return;
        }
        if bare.len() > 8 && bare.bytes().all(|it| it == b'=') {
            self.is_over |= !self.lines.is_empty();
            return;
        }
        if self.is_over || LINES_MAX <= self.lines.len() {
            return;
        }
        let Some(line) = read(text) else { return };
        if line.link.is_some() && self.lines.is_empty() {
            // Its CPU's line was cut away.
            return;
        }
        self.lines.push(line);
    }

    pub(super) fn graph(
        &self,
        profile: Profile,
        ranks: &BTreeMap<String, i32>,
        notes: &mut Vec<String>,
    ) -> Graph {
        let mut reader = Reader {
            graph: Graph::new(profile),
            ranks,
            stack: Vec::new(),
            later: Vec::new(),
            is_flat: self.is_flat(),
        };
        if reader.is_flat {
            let note = "the log has lost its indentation; parts are shown below the last bridge \
                        before them";
            notes.push(note.to_owned());
        }
        for line in &self.lines {
            reader.line(line);
        }
        reader.graph(notes)
    }

    /// Whether blanks before links were taken away, as pasting does.
    fn is_flat(&self) -> bool {
        let below = |it: &Line| {
            matches!(it.link, Some((_, LinkKind::Nvl | LinkKind::Net | LinkKind::Loc, _)))
        };
        let column = |it: &Line| it.link.map_or(0, |it| it.0);
        self.lines.iter().any(below) && self.lines.iter().all(|it| column(it) == 0)
    }
}

fn read(text: &str) -> Option<Line> {
    let text = text.trim_end();
    let rest = text.trim_start();
    let blanks = text.len() - rest.len();
    let (link, rest, column) = match rest.strip_prefix("+ ") {
        Some(after) => {
            let (kind, after) = after.split_once('[')?;
            let kind = link_kind(kind)?;
            let (width, name) = after.split_once("] - ")?;
            let width: f32 = width.parse().ok().filter(|it: &f32| it.is_finite())?;
            (Some((blanks, kind, width)), name, text.len() - name.len())
        }
        None => (None, rest, blanks),
    };
    let (name, facts) = rest.split_once(' ').unwrap_or((rest, ""));
    let (kind, id) = name.split_once('/')?;
    let kind = NodeKind::ALL.into_iter().find(|it| it.name() == kind)?;
    if link.is_none() && (kind != NodeKind::Cpu || !facts.starts_with('(')) {
        return None;
    }
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (id, has_host) = match id.split_once('-') {
        Some((host, id)) => (number(host)? << 56 | number(id)? & LOCAL, true),
        None => (number(id)?, false),
    };
    let facts = facts.trim_matches(['(', ')', ' ']).to_owned();
    Some(Line { link, column, kind, id, has_host, facts })
}

fn link_kind(name: &str) -> Option<LinkKind> {
    let all = [LinkKind::Loc, LinkKind::Nvl, LinkKind::C2c, LinkKind::Pci, LinkKind::Sys];
    all.into_iter().chain([LinkKind::Net]).find(|it| it.name() == name)
}

fn first_number(facts: &str) -> Option<i32> {
    facts.split('/').next()?.parse().ok()
}

struct Reader<'r> {
    graph: Graph,
    ranks: &'r BTreeMap<String, i32>,
    /// Nodes above the present line, with the column at which each's name begins.
    stack: Vec<(usize, NodeIdx)>,
    /// Links whose far end may come later.
    later: Vec<(NodeIdx, LinkKind, f32, NodeKind, u64)>,
    is_flat: bool,
}

impl Reader<'_> {
    fn line(&mut self, line: &Line) {
        let Some((column, link, width)) = line.link else {
            let cpu = self.node(line, None);
            self.stack = vec![(line.column, cpu)];
            return;
        };
        let Some(above) = self.above(column, link, line.kind) else { return };
        match link {
            LinkKind::Pci | LinkKind::Net => {
                let node = self.node(line, None);
                self.join(above, node, link, width);
                if self.stack.len() < DEPTH_MAX || self.is_flat {
                    let column = if self.is_flat { self.stack.len() } else { line.column };
                    self.stack.push((column, node));
                }
            }
            // A device and its GPU; of itself a GPU of old versions.
            LinkKind::Loc if line.kind == NodeKind::Gpu => {
                let of_device = self.graph.node(above).kind == NodeKind::Dev;
                if of_device {
                    let gpu = self.node(line, Some(above));
                    self.join(above, gpu, link, width);
                }
            }
            LinkKind::Loc | LinkKind::Nvl | LinkKind::C2c | LinkKind::Sys => {
                self.later.push((above, link, width, line.kind, line.id));
            }
        }
    }

    /// What the link at that column hangs on.
    fn above(&mut self, column: usize, link: LinkKind, below: NodeKind) -> Option<NodeIdx> {
        if !self.is_flat {
            // A missing line leaves the nearest above it.
            while self.stack.len() > 1 && self.stack.last().is_some_and(|it| column < it.0) {
                self.stack.pop();
            }
            return self.stack.last().map(|it| it.1);
        }
        use NodeKind::{Cpu, Dev, Gpu, Nic, Pci};
        let holders: &[NodeKind] = match link {
            LinkKind::Net => &[Nic],
            LinkKind::Nvl | LinkKind::Loc => &[Dev, Gpu],
            LinkKind::C2c => &[Dev, Gpu, Cpu],
            LinkKind::Sys => &[Cpu],
            LinkKind::Pci if below == Pci => &[Cpu],
            LinkKind::Pci => &[Pci, Cpu],
        };
        let kind = |it: &&(usize, NodeIdx)| self.graph.node(it.1).kind;
        self.stack.iter().rev().find(|it| holders.contains(&kind(it))).map(|it| it.1)
    }

    fn node(&mut self, line: &Line, device: Option<NodeIdx>) -> NodeIdx {
        // Ports and bridges may share a number; of all else one number is one part.
        let is_one = !matches!(line.kind, NodeKind::Net | NodeKind::Pci);
        if let Some(node) = self.graph.find(line.kind, line.id).filter(|_| is_one) {
            return node;
        }
        let mut numbers = line.facts.split('/');
        let mut number = || numbers.next().and_then(|it| it.parse::<i32>().ok());
        let local = line.id & LOCAL;
        let facts = match line.kind {
            NodeKind::Gpu => {
                let rank = number().or_else(|| self.ranks.get(&format!("{local:x}")).copied());
                // Of the rest the log says nothing.
                let gpu = Gpu { dev: -1, rank: rank.unwrap_or(-1), sm: 0, gdr: true };
                Facts::Gpu { gpu, parent: device }
            }
            NodeKind::Cpu => Facts::Cpu(Cpu {
                arch: number().map(arch),
                vendor: number().map(vendor),
                model: number().unwrap_or(-1),
            }),
            NodeKind::Pci => Facts::Pci(u64::from_str_radix(&line.facts, 16).unwrap_or(0)),
            NodeKind::Nvs => Facts::Nvs,
            NodeKind::Nic => Facts::Nic,
            NodeKind::Dev => Facts::Dev { dev: -1, sm: 0, gpu: None },
            NodeKind::Gin | NodeKind::Rma => Facts::Face,
            NodeKind::Net => {
                let width = line.facts.rsplit('/').next().and_then(|it| it.parse::<f32>().ok());
                let width = width.filter(|it| it.is_finite()).unwrap_or(0.0);
                Facts::Net(Net {
                    dev: local as i32,
                    asic: 0,
                    port: 0,
                    width: Width(width),
                    latency: 0.0,
                    gdr: true,
                    coll: 0,
                    connections: 0,
                    rail: -1,
                    plane: -1,
                    pci: 0,
                })
            }
        };
        let node = self.graph.add(line.kind, line.id, facts, None);
        if let Some(device) = device
            && let Facts::Dev { gpu, .. } = &mut self.graph.node_mut(device).facts
        {
            *gpu = Some(node);
        }
        node
    }

    fn join(&mut self, from: NodeIdx, to: NodeIdx, kind: LinkKind, width: f32) {
        for (from, to) in [(from, to), (to, from)] {
            self.lead(from, to, kind, width);
        }
    }

    /// One direction, if it is not there.
    fn lead(&mut self, from: NodeIdx, to: NodeIdx, kind: LinkKind, width: f32) {
        let mut links = self.graph.node(from).links.iter();
        if !links.any(|it| it.peer == to && it.kind == kind) {
            self.graph.connect(from, to, kind, Width(width));
        }
    }

    fn graph(mut self, notes: &mut Vec<String>) -> Graph {
        let later = std::mem::take(&mut self.later);
        let mut lost = 0;
        let mut found = Vec::new();
        for (from, link, width, kind, id) in later {
            let same = |it: &NodeIdx| self.graph.node(*it).id & LOCAL == id & LOCAL;
            let to = self.graph.find(kind, id);
            let to = to.or_else(|| self.graph.kind(kind).iter().copied().find(same));
            let to = match to {
                // Switches are named by those who hang on them alone.
                None if kind == NodeKind::Nvs => Some(self.graph.add(kind, id, Facts::Nvs, None)),
                to => to,
            };
            let Some(to) = to else {
                lost += 1;
                continue;
            };
            self.lead(from, to, link, width);
            found.push((to, from, link, width));
        }
        for (from, to, link, width) in found {
            self.lead(from, to, link, width);
        }
        if lost > 0 {
            notes.push(format!("{lost} links lead to parts that the log does not show"));
        }
        self.graph
    }
}

fn arch(number: i32) -> Arch {
    let all = [Arch::X86, Arch::Power, Arch::Arm];
    all.into_iter().find(|it| *it as i32 == number).unwrap_or(Arch::Unknown)
}

fn vendor(number: i32) -> Vendor {
    let all = [Vendor::Intel, Vendor::Amd, Vendor::Zhaoxin];
    all.into_iter().find(|it| *it as i32 == number).unwrap_or(Vendor::Unknown)
}
