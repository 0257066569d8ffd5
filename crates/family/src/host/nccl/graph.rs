//! The graph of one server as NCCL builds it: nodes by kind in order, links by width in order.
//!
//! Order decides everywhere: the search takes the first of equals, so nodes and links stand in
//! exactly NCCL's order.  A node keeps its [`NodeIdx`] for good; [`Node::pos`] is its place among
//! the nodes of its kind that are left.

use crate::host::nccl::profile::Profile;
use crate::host::nccl::width::Width;
use crate::host::nccl::xml::Place;

/// A node's place in [`Graph`]; it never names another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeIdx(pub u32);

impl NodeIdx {
    pub(crate) fn usize(self) -> usize {
        self.0 as usize
    }
}

/// How many kinds of nodes there are.
pub(crate) const N_KINDS: usize = 9;

/// Kinds of nodes, in the order in which NCCL lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// An accelerator.
    Gpu,
    /// A PCI switch or bridge.
    Pci,
    /// All NVSwitches together.
    Nvs,
    /// A NUMA node.
    Cpu,
    /// A network card.
    Nic,
    /// A network port.
    Net,
    /// A port that GPUs start transfers on by themselves (2.29).
    Gin,
    /// A port for one-sided transfers (2.30).
    Rma,
    /// The PCI device on which GPUs sit (2.30).
    Dev,
}

impl NodeKind {
    /// All kinds, in order.
    pub const ALL: [NodeKind; N_KINDS] = [
        NodeKind::Gpu,
        NodeKind::Pci,
        NodeKind::Nvs,
        NodeKind::Cpu,
        NodeKind::Nic,
        NodeKind::Net,
        NodeKind::Gin,
        NodeKind::Rma,
        NodeKind::Dev,
    ];

    /// NCCL's name.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Gpu => "GPU",
            NodeKind::Pci => "PCI",
            NodeKind::Nvs => "NVS",
            NodeKind::Cpu => "CPU",
            NodeKind::Nic => "NIC",
            NodeKind::Net => "NET",
            NodeKind::Gin => "GIN",
            NodeKind::Rma => "RMA",
            NodeKind::Dev => "DEV",
        }
    }
}

/// Kinds of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// Within one device.
    Loc,
    /// NVLink.
    Nvl,
    /// The chip-to-chip link between a GPU and its CPU.
    C2c,
    /// PCI.
    Pci,
    /// Between CPUs.
    Sys,
    /// Between a network card and its port.
    Net,
}

impl LinkKind {
    /// NCCL's name.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Loc => "LOC",
            LinkKind::Nvl => "NVL",
            LinkKind::C2c => "C2C",
            LinkKind::Pci => "PCI",
            LinkKind::Sys => "SYS",
            LinkKind::Net => "NET",
        }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// What it is.
    pub kind: LinkKind,
    /// What it carries.
    pub width: Width,
    /// Where it ends.
    pub peer: NodeIdx,
}

/// A GPU's facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// NVML's number.
    pub dev: i32,
    /// Rank in the job.
    pub rank: i32,
    /// Compute capability, 80 for 8.0.
    pub sm: i32,
    /// Whether it can be read and written by a NIC.
    pub gdr: bool,
}

/// A network port's facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Net {
    /// The plugin's number.
    pub dev: i32,
    /// GUID of the card's chip.
    pub asic: u64,
    /// Port on the card.
    pub port: i32,
    /// What it carries.
    pub width: Width,
    /// As the file has it, in µs.
    pub latency: f32,
    /// Whether it can reach GPU memory.
    pub gdr: bool,
    /// Whether its switch can reduce.
    pub coll: i32,
    /// Connections at once.
    pub connections: i32,
    /// Rail, where the file names one.
    pub rail: i32,
    /// Plane, where the file names one.
    pub plane: i32,
    /// A digest of the card's bus id, or of `asic` where it has none (2.30).
    pub pci: u64,
}

/// Processor architectures, with NCCL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// One that NCCL has no word for.
    Unknown = 0,
    /// x86-64.
    X86 = 1,
    /// POWER.
    Power = 2,
    /// ARM.
    Arm = 3,
}

/// Makers of x86 processors, with NCCL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// One that NCCL has no word for.
    Unknown = 0,
    /// Intel.
    Intel = 1,
    /// AMD.
    Amd = 2,
    /// Zhaoxin.
    Zhaoxin = 3,
}

/// A CPU's facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpu {
    /// Architecture.
    pub arch: Option<Arch>,
    /// Maker.
    pub vendor: Option<Vendor>,
    /// NCCL's number for the generation, -1 where it tells none apart.
    pub model: i32,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Facts {
    /// An accelerator, and in 2.30 the device it sits on.
    Gpu {
        /// Its own facts.
        gpu: Gpu,
        /// The device.
        parent: Option<NodeIdx>,
    },
    /// A PCI switch; its vendor, device and subsystem ids in one number.
    Pci(u64),
    /// The NVSwitches.
    Nvs,
    /// A NUMA node.
    Cpu(Cpu),
    /// A card.
    Nic,
    /// A port.
    Net(Net),
    /// A port's other faces: GIN and RMA.
    Face,
    /// A GPU's device.
    Dev {
        /// NVML's number.
        dev: i32,
        /// Compute capability.
        sm: i32,
        /// The GPU on it.
        gpu: Option<NodeIdx>,
    },
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its kind.
    pub kind: NodeKind,
    /// NCCL's id: a bus id, a NUMA number, a port's number.
    pub id: u64,
    /// Its place among its kind.
    pub pos: usize,
    /// What it is.
    pub facts: Facts,
    /// The first element of the file that it was made from; none in a log.
    pub place: Option<Place>,
    /// Links, in NCCL's order.
    pub links: Vec<Link>,
}

/// A server.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Whose rules it was built by.
    pub profile: Profile,
    nodes: Vec<Node>,
    kinds: [Vec<NodeIdx>; N_KINDS],
    /// The first PCI link in the file whose width is negative, with its lanes.
    pub(crate) negative: Option<(Place, i32)>,
    /// The first switch that lost its link upwards.
    pub(crate) lost: Option<NodeIdx>,
}

impl Graph {
    pub(crate) fn new(profile: Profile) -> Graph {
        let (nodes, kinds) = (Vec::new(), Default::default());
        Graph { profile, nodes, kinds, negative: None, lost: None }
    }

    /// How many nodes there are, removed ones included.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes of that kind, in order.
    pub fn kind(&self, kind: NodeKind) -> &[NodeIdx] {
        &self.kinds[kind as usize]
    }

    /// A node.
    pub fn node(&self, node: NodeIdx) -> &Node {
        &self.nodes[node.usize()]
    }

    pub(crate) fn node_mut(&mut self, node: NodeIdx) -> &mut Node {
        &mut self.nodes[node.usize()]
    }

    /// The GPU's facts.
    ///
    /// # Panics
    /// If the node is none.
    pub fn gpu(&self, node: NodeIdx) -> Gpu {
        match self.node(node).facts {
            Facts::Gpu { gpu, .. } => gpu,
            ref other => panic!("{node:?} is {other:?}, no GPU"),
        }
    }

    /// The port's facts.
    ///
    /// # Panics
    /// If the node is none.
    pub fn net(&self, node: NodeIdx) -> Net {
        match self.node(node).facts {
            Facts::Net(net) => net,
            ref other => panic!("{node:?} is {other:?}, no port"),
        }
    }

    /// The CPU's facts.
    ///
    /// # Panics
    /// If the node is none.
    pub fn cpu(&self, node: NodeIdx) -> Cpu {
        match self.node(node).facts {
            Facts::Cpu(cpu) => cpu,
            ref other => panic!("{node:?} is {other:?}, no CPU"),
        }
    }

    /// The number of the node's host among those of the file; 0 in versions without hosts.
    pub fn host(&self, node: NodeIdx) -> u64 {
        if self.profile.has_hosts() { self.node(node).id >> 56 } else { 0 }
    }

    /// The GPU with that rank.
    pub fn gpu_of_rank(&self, rank: i32) -> Option<NodeIdx> {
        self.kind(NodeKind::Gpu).iter().copied().find(|it| self.gpu(*it).rank == rank)
    }

    /// The first node of that kind and id.
    pub fn find(&self, kind: NodeKind, id: u64) -> Option<NodeIdx> {
        self.kind(kind).iter().copied().find(|it| self.node(*it).id == id)
    }

    /// Where the GPU's outer links are: itself, or the device that it sits on.
    pub fn seat(&self, gpu: NodeIdx) -> NodeIdx {
        match self.node(gpu).facts {
            Facts::Gpu { parent: Some(device), .. } => device,
            _ => gpu,
        }
    }

    pub(crate) fn add(
        &mut self,
        kind: NodeKind,
        id: u64,
        facts: Facts,
        place: Option<Place>,
    ) -> NodeIdx {
        let node = NodeIdx(self.nodes.len() as u32);
        let of_kind = &mut self.kinds[kind as usize];
        let pos = of_kind.len();
        of_kind.push(node);
        self.nodes.push(Node { kind, id, pos, facts, place, links: Vec::new() });
        node
    }

    /// Joins two nodes one way.  Equal links add up; a wider link stands before a narrower one
    /// and behind its equals.
    pub(crate) fn connect(&mut self, from: NodeIdx, to: NodeIdx, kind: LinkKind, width: Width) {
        let links = &mut self.node_mut(from).links;
        let same = |it: &Link| it.peer == to && it.kind == kind;
        let mut at = links.iter().position(same).unwrap_or_else(|| {
            links.push(Link { kind, width: Width::ZERO, peer: to });
            links.len() - 1
        });
        links[at].width.0 += width.0;
        while at > 0 && links[at - 1].width < links[at].width {
            links.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Takes a node out, with all links to it.
    pub(crate) fn remove(&mut self, gone: NodeIdx) {
        let (kind, pos) = (self.node(gone).kind, self.node(gone).pos);
        for node in &mut self.nodes {
            node.links.retain(|it| it.peer != gone);
        }
        self.node_mut(gone).links.clear();
        self.kinds[kind as usize].remove(pos);
        for at in pos..self.kinds[kind as usize].len() {
            let node = self.kinds[kind as usize][at];
            self.node_mut(node).pos = at;
        }
    }
}
