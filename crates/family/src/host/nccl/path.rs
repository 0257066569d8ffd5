//! Paths from every node to each GPU, port, CPU and NVSwitch.  Notes §3a and §3b, seed 002.
//!
//! A breadth-first search from each base, level by level: a node improved in one level hands its
//! path on in the next.  What counts as better differs between versions, and in none of them does
//! a later improvement of a node reach those that copied its path before, unless it improves them
//! too; so paths are copied hop by hop here as well.  O(bases × links × depth).

use crate::host::nccl::graph::{Arch, Facts, Graph, Link, LinkKind, N_KINDS, NodeIdx, NodeKind};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::width::Width;

/// How far apart two nodes are, nearest first.  A version uses those it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathKind {
    /// The node itself.
    Loc,
    /// NVLink all the way.
    Nvl,
    /// NVLink by way of another GPU.
    Nvb,
    /// The chip-to-chip link.
    C2c,
    /// One PCI switch.
    Pix,
    /// Several PCI switches.
    Pxb,
    /// Chip-to-chip to the CPU, PCI from there.
    P2c,
    /// By NVLink to the GPU next to the port.
    Pxn,
    /// Through a CPU.
    Phb,
    /// Between CPUs.
    Sys,
    /// Over the network.
    Net,
    /// Not at all.
    Dis,
}

impl PathKind {
    /// All of them, nearest first.
    pub const ALL: [PathKind; 12] = [
        PathKind::Loc,
        PathKind::Nvl,
        PathKind::Nvb,
        PathKind::C2c,
        PathKind::Pix,
        PathKind::Pxb,
        PathKind::P2c,
        PathKind::Pxn,
        PathKind::Phb,
        PathKind::Sys,
        PathKind::Net,
        PathKind::Dis,
    ];

    /// NCCL's name.
    pub fn name(self) -> &'static str {
        match self {
            PathKind::Loc => "LOC",
            PathKind::Nvl => "NVL",
            PathKind::Nvb => "NVB",
            PathKind::C2c => "C2C",
            PathKind::Pix => "PIX",
            PathKind::Pxb => "PXB",
            PathKind::P2c => "P2C",
            PathKind::Pxn => "PXN",
            PathKind::Phb => "PHB",
            PathKind::Sys => "SYS",
            PathKind::Net => "NET",
            PathKind::Dis => "DIS",
        }
    }

    /// Whether that version knows it.
    pub fn exists_in(self, profile: Profile) -> bool {
        use PathKind::{C2c, Dis, Nvb, P2c, Pxn};
        match self {
            Nvb | Pxn | Dis => !profile.is_seed(),
            C2c | P2c => profile.has_c2c(),
            _ => true,
        }
    }

    /// The next farther kind that the version knows.
    pub(crate) fn next(self, profile: Profile) -> PathKind {
        let farther = PathKind::ALL.into_iter().filter(|it| *it > self && it.exists_in(profile));
        farther.min().unwrap_or(PathKind::Dis)
    }

    /// Two paths joined.  Chip-to-chip on one side and a CPU's PCI on the other is P2C.
    pub(crate) fn joined(self, other: PathKind) -> PathKind {
        match (self.min(other), self.max(other)) {
            (PathKind::C2c, PathKind::Phb) => PathKind::P2c,
            (_, far) => far,
        }
    }

    fn of(link: LinkKind) -> PathKind {
        match link {
            // The way from a card to its port costs nothing.
            LinkKind::Loc | LinkKind::Net => PathKind::Loc,
            LinkKind::Nvl => PathKind::Nvl,
            LinkKind::C2c => PathKind::C2c,
            LinkKind::Pci => PathKind::Pix,
            LinkKind::Sys => PathKind::Sys,
        }
    }
}

/// One hop: a node and one of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Whose link.
    pub node: NodeIdx,
    /// Which.
    pub link: u32,
}

/// A way from a node to a base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// How far.
    pub kind: PathKind,
    /// The narrowest link on it.
    pub width: Width,
    /// How many hops.
    pub count: u32,
    start: u32,
}

/// All paths of one graph.
#[derive(Clone, Debug)]
pub struct Paths {
    /// First slot of a kind's bases within a node's row.
    offset: [usize; N_KINDS],
    row: usize,
    slots: Vec<Path>,
    /// Which kinds of bases a node has slots for: slots come with the first visit.
    known: Vec<u16>,
    hops: Vec<Hop>,
}

impl Paths {
    /// No paths yet, with room for the graph as it is.
    pub(crate) fn new(graph: &Graph) -> Paths {
        let mut offset = [0; N_KINDS];
        let mut row = 0;
        for kind in [NodeKind::Gpu, NodeKind::Nvs, NodeKind::Cpu, NodeKind::Net, NodeKind::Dev] {
            offset[kind as usize] = row;
            row += graph.kind(kind).len();
        }
        // Until 2.18 a slot is zero, and LOC is the zero among kinds.
        let kind = if graph.profile.has_hosts() { PathKind::Dis } else { PathKind::Loc };
        let none = Path { kind, width: Width::ZERO, count: 0, start: 0 };
        Paths {
            offset,
            row,
            slots: vec![none; row * graph.n_nodes()],
            known: vec![0; graph.n_nodes()],
            hops: Vec::with_capacity(row * graph.n_nodes() * 4),
        }
    }

    /// The path from `node` to the base of that kind at that place.
    pub fn at(&self, node: NodeIdx, kind: NodeKind, pos: usize) -> Path {
        self.slots[node.usize() * self.row + self.offset[kind as usize] + pos]
    }

    /// The paths from `node` to the first bases of that kind, in the order of their places.
    pub(crate) fn to(&self, node: NodeIdx, kind: NodeKind, count: usize) -> &[Path] {
        &self.slots[node.usize() * self.row + self.offset[kind as usize]..][..count]
    }

    /// The path from `node` to `base`.
    pub fn between(&self, graph: &Graph, node: NodeIdx, base: NodeIdx) -> Path {
        let base = graph.node(base);
        self.at(node, base.kind, base.pos)
    }

    /// Its hops.
    pub fn hops(&self, path: Path) -> &[Hop] {
        &self.hops[path.start as usize..][..path.count as usize]
    }

    /// Whether NCCL has room for paths from `node` to that kind.
    pub fn knows(&self, node: NodeIdx, kind: NodeKind) -> bool {
        self.known[node.usize()] & (1 << kind as u8) != 0
    }

    pub(crate) fn at_mut(&mut self, node: NodeIdx, kind: NodeKind, pos: usize) -> &mut Path {
        &mut self.slots[node.usize() * self.row + self.offset[kind as usize] + pos]
    }

    fn know(&mut self, node: NodeIdx, kind: NodeKind) {
        self.known[node.usize()] |= 1 << kind as u8;
    }

    /// Sets all paths to `base`.
    ///
    /// # Errors
    /// Where the first path of a node would come over a link that leads one way.
    pub(crate) fn search(
        &mut self,
        graph: &Graph,
        base: NodeIdx,
        rules: SearchRules,
    ) -> Result<(), OneWay> {
        let kind = graph.node(base).kind;
        // NCCL finds the slot by the id, so that ports of one number share the first one's slot.
        let id = graph.node(base).id;
        let first = graph.find(kind, id).expect("the base has its own id");
        let pos = graph.node(first).pos;
        if !self.knows(base, kind) && !graph.profile.has_c2c() {
            // Slots that a base gets for itself are zero, and LOC is the zero among kinds.
            for at in 0..graph.kind(kind).len() {
                self.at_mut(base, kind, at).kind = PathKind::Loc;
            }
        }
        self.know(base, kind);
        let start = self.hops.len() as u32;
        *self.at_mut(base, kind, pos) =
            Path { kind: PathKind::Loc, width: Width::LOCAL, count: 0, start };
        let mut level = vec![base];
        let mut next = Vec::new();
        let mut queued = vec![false; graph.n_nodes()];
        while !level.is_empty() {
            next.clear();
            for &node in &level {
                for link in &graph.node(node).links {
                    let far = link.peer;
                    self.know(far, kind);
                    if !rules.may_pass(graph, base, node, link, self.at(node, kind, pos)) {
                        continue;
                    }
                    if !self.relax(graph, node, link, kind, pos)? {
                        continue;
                    }
                    let passes = !graph.profile.is_seed() || graph.node(far).kind != NodeKind::Gpu;
                    if passes && !queued[far.usize()] {
                        queued[far.usize()] = true;
                        next.push(far);
                    }
                }
            }
            std::mem::swap(&mut level, &mut next);
            for node in &level {
                queued[node.usize()] = false;
            }
        }
        Ok(())
    }

    /// Whether the way over `link` and `node` is the better one; then it is the path.
    fn relax(
        &mut self,
        graph: &Graph,
        node: NodeIdx,
        link: &Link,
        kind: NodeKind,
        pos: usize,
    ) -> Result<bool, OneWay> {
        let (near, far) = (self.at(node, kind, pos), self.at(link.peer, kind, pos));
        let width = near.width.min(link.width);
        let count = near.count + 1;
        let reached = near.kind.max(step(graph, node, link, near, count));
        let better = match graph.profile {
            Profile::V2_7_8 => far.width < width,
            Profile::V2_18_5 | Profile::V2_21_5 | Profile::V2_27_7 | Profile::V2_29_7 => {
                (far.width == Width::ZERO || far.count > near.count) && far.width < width
            }
            Profile::V2_30_7 => {
                (reached < far.kind)
                    || (reached == far.kind
                        && (far.width < width || (far.width == width && count < far.count)))
            }
        };
        if !better {
            return Ok(false);
        }
        // Until 2.18 any link back is taken for this one's.
        let any = !graph.profile.has_hosts();
        let back = graph.node(link.peer).links.iter();
        let back = back.clone().position(|it| it.peer == node && (any || it.kind == link.kind));
        let first = match back {
            Some(at) => Hop { node: link.peer, link: at as u32 },
            // NCCL keeps the first hop of the path that it replaces.
            None if far.count > 0 => self.hops[far.start as usize],
            None => return Err(OneWay { near: node, far: link.peer }),
        };
        let start = self.hops.len() as u32;
        self.hops.push(first);
        let from = near.start as usize;
        self.hops.extend_from_within(from..from + near.count as usize);
        *self.at_mut(link.peer, kind, pos) = Path { kind: reached, width, count, start };
        Ok(true)
    }

    /// Makes the path from `node` to `base` one by way of `middle`.
    pub(crate) fn detour(&mut self, graph: &Graph, node: NodeIdx, middle: NodeIdx, base: NodeIdx) {
        let first = self.between(graph, node, middle);
        let second = self.between(graph, middle, base);
        let start = self.hops.len() as u32;
        for path in [first, second] {
            let from = path.start as usize;
            self.hops.extend_from_within(from..from + path.count as usize);
        }
        let kind = if graph.node(middle).kind == NodeKind::Gpu {
            PathKind::Pxn
        } else if graph.profile.is_seed() {
            first.kind.max(second.kind)
        } else {
            first.kind.joined(second.kind)
        };
        let count = first.count + second.count;
        let width = second.width.min(first.width);
        let (to, pos) = (graph.node(base).kind, graph.node(base).pos);
        self.know(node, to);
        *self.at_mut(node, to, pos) = Path { kind, width, count, start };
    }
}

/// A link that is needed and that its far end does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneWay {
    pub(crate) near: NodeIdx,
    pub(crate) far: NodeIdx,
}

/// What a search may not pass through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchRules {
    /// Whether NVLink paths may go by way of another GPU.
    pub(crate) bridges: bool,
}

impl SearchRules {
    fn may_pass(
        self,
        graph: &Graph,
        base: NodeIdx,
        node: NodeIdx,
        link: &Link,
        path: Path,
    ) -> bool {
        let far = graph.node(link.peer).kind;
        match (graph.profile, graph.node(node).kind) {
            // Seed 002: GPUs are never queued, so only the base itself comes here.
            (Profile::V2_7_8, _) => true,
            (_, NodeKind::Gpu) if node != base => {
                self.bridges
                    && link.kind == LinkKind::Nvl
                    && far == NodeKind::Gpu
                    && path.count <= 1
            }
            (_, NodeKind::Dev) => {
                let Facts::Dev { gpu, .. } = graph.node(node).facts else { return true };
                // Its own GPU looks out through it freely.
                if node == base || gpu == Some(base) || gpu == Some(link.peer) {
                    return true;
                }
                let count_max = if graph.node(base).kind == NodeKind::Gpu { 2 } else { 1 };
                self.bridges
                    && link.kind == LinkKind::Nvl
                    && far == NodeKind::Dev
                    && path.count <= count_max
            }
            _ => true,
        }
    }
}

/// What the last step, from `node` over `link`, makes of a path.
fn step(graph: &Graph, node: NodeIdx, link: &Link, near: Path, count: u32) -> PathKind {
    let kinds = [graph.node(node).kind, graph.node(link.peer).kind];
    let mut kind = PathKind::of(link.kind);
    let switches = if graph.profile.is_seed() {
        // One PCI node and four hops: a path of two switches and three hops counts as one switch.
        kinds.contains(&NodeKind::Pci) && count > 3
    } else {
        kinds == [NodeKind::Pci; 2]
    };
    // From 2.8 on of whatever kind the link between two of them is.
    if switches && (kind == PathKind::Pix || !graph.profile.is_seed()) {
        kind = PathKind::Pxb;
    }
    if link.kind == LinkKind::Pci && kinds.contains(&NodeKind::Cpu) {
        kind = PathKind::Phb;
    }
    let power = || graph.profile.is_seed() && graph.cpu(link.peer).arch == Some(Arch::Power);
    if near.kind == PathKind::Nvl && kind == PathKind::Sys && kinds[1] == NodeKind::Cpu && power() {
        kind = PathKind::Loc;
    }
    let bridge = !graph.profile.is_seed()
        && matches!(kinds[0], NodeKind::Gpu | NodeKind::Dev)
        && near.kind == PathKind::Nvl
        && kind == PathKind::Nvl
        && count > 1;
    if bridge { PathKind::Nvb } else { kind }
}
