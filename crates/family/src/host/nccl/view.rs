//! What one rank's NCCL decides about a server: paths, P2P, GPUDirect RDMA, ports, trimming.
//!
//! The order is NCCL's: paths, the detours that P2P and GDR decisions force on them, removal of
//! GPUs that cannot be reached, and all of it again.  Notes §3d to §3f, seed 002.

use std::collections::BTreeSet;

use crate::host::nccl::build::{TopoError, build};
use crate::host::nccl::graph::{Facts, Graph, LinkKind, NodeIdx, NodeKind};
use crate::host::nccl::path::{Hop, OneWay, Path, PathKind, Paths, SearchRules};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::RefusedSearch;
use crate::host::nccl::settings::{NetDevs, Settings};
use crate::host::nccl::width::Width;
use crate::host::nccl::xml::{Element, Place, XmlError};

/// From where and under what conditions the server is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The version.
    pub profile: Profile,
    /// Equal servers in the job.
    pub nodes: u32,
    /// The rank that looks.
    pub rank: i32,
    /// Environment variables.
    pub settings: Settings,
    /// Pairs of GPUs, by NVML's number, whose P2P the driver reports broken.
    pub broken: BTreeSet<(i32, i32)>,
    /// Whether ranks (0,1), (2,3)… are in containers with a /dev/shm of their own.
    pub shm_pairs: bool,
}

/// Why NCCL would not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedView {
    /// The text is no topology file for NCCL.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// The file makes no graph.
    #[error(transparent)]
    Topo(#[from] TopoError),
    /// No GPU has the rank that looks.
    #[error("no GPU of this server has rank {rank}; choose one of {present}")]
    NoRank {
        /// The rank.
        rank: i32,
        /// Those that are there.
        present: String,
    },
    /// The driver says that P2P is broken where NVLink says that it is there.
    #[error(
        "the driver reports P2P broken between GPU {a} and GPU {b}, which NVLink connects; \
         repair the link, or set NCCL_IGNORE_DISABLED_P2P=1"
    )]
    BrokenP2p {
        /// NVML's number of one.
        a: i32,
        /// And of the other.
        b: i32,
    },
    /// The way between two GPUs leads over a device whose own GPU was trimmed.
    #[error(
        "two GPUs reach each other over NVLinks of GPU {dev}, which was trimmed because no memory \
         is shared with it; this version gives up here: let the containers share /dev/shm, or \
         set NCCL_NVB_DISABLE=1"
    )]
    LostBridge {
        /// NVML's number of the trimmed GPU.
        dev: i32,
    },
    /// The way to a port by way of another GPU does not begin with it.
    #[error(
        "rank {rank} would send through another GPU to NET{dev}, and the way to that GPU does not \
         lead over NVLinks and switches alone; this version gives up here: set NCCL_PXN_DISABLE=1"
    )]
    NoProxy {
        /// Of the GPU.
        rank: i32,
        /// NCCL's number of the port.
        dev: i32,
    },
    /// There is no graph to communicate by.
    #[error(transparent)]
    Search(#[from] RefusedSearch),
    /// A GPU that no CPU can be reached from.
    #[error("GPU {gpu} reaches no CPU; put its <pci> below a <cpu>")]
    NoCpu {
        /// NVML's number.
        gpu: i32,
    },
    /// The same, in a file with a link of negative width, over which no way leads.
    #[error(
        "{place}: link_width=\"{lanes}\" is negative, so no way leads over this link and GPU {gpu} \
         reaches no CPU; write the lanes that the link has, such as 16"
    )]
    NegativeLink {
        /// Where the link stands.
        place: Place,
        /// Its width.
        lanes: i32,
        /// NVML's number.
        gpu: i32,
    },
}

/// A server as one rank sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// How it was asked for.
    pub ask: Ask,
    /// What is left of the server.
    pub graph: Graph,
    /// All paths, after all detours.
    pub paths: Paths,
    /// Ranks in the job.
    pub n_ranks: usize,
    /// Whether the network is needed.
    pub inter: bool,
    /// From 2.27 on, the GPU that serves each port, by the port's place.
    pub local_gpus: Vec<Option<usize>>,
    /// The GPUs of the file that trimming took away; the graph still knows them.
    pub left_out: Vec<NodeIdx>,
}

impl View {
    /// What the asking rank's NCCL makes of the server that `root` describes.
    ///
    /// # Errors
    /// Where NCCL would give up, says where and why.
    pub fn of(root: &Element, ask: Ask) -> Result<View, RefusedView> {
        let mut view = View::whole(root, ask)?;
        view.trim();
        view.compute()?;
        Ok(view)
    }

    /// The same before anything is trimmed: every GPU and port of the file is there.
    ///
    /// # Errors
    /// As [`View::of`].
    pub fn whole(root: &Element, ask: Ask) -> Result<View, RefusedView> {
        let graph = build(root, ask.profile)?;
        if graph.gpu_of_rank(ask.rank).is_none() {
            let ranks = graph.kind(NodeKind::Gpu).iter().map(|it| graph.gpu(*it).rank.to_string());
            let present = ranks.collect::<Vec<_>>().join(", ");
            return Err(RefusedView::NoRank { rank: ask.rank, present });
        }
        let n_ranks = graph.kind(NodeKind::Gpu).len() * ask.nodes as usize;
        let paths = Paths::new(&graph);
        let (local_gpus, left_out) = (Vec::new(), Vec::new());
        let mut view = View { ask, graph, paths, n_ranks, inter: true, local_gpus, left_out };
        view.compute()?;
        Ok(view)
    }

    /// The GPUs that are left.
    pub fn gpus(&self) -> &[NodeIdx] {
        self.graph.kind(NodeKind::Gpu)
    }

    /// The ports that are left.
    pub fn nets(&self) -> &[NodeIdx] {
        self.graph.kind(NodeKind::Net)
    }

    /// The path between two nodes; the second is a GPU, a port, a CPU or the NVSwitches.
    pub fn path(&self, from: NodeIdx, to: NodeIdx) -> Path {
        self.paths.between(&self.graph, from, to)
    }

    /// The same server with its paths as the search finds them, before any detour.
    #[must_use]
    pub fn undiverted(&self) -> View {
        let mut view = self.clone();
        view.search().expect("the same server was searched before");
        view
    }

    fn search(&mut self) -> Result<(), RefusedView> {
        self.paths = Paths::new(&self.graph);
        let rules = SearchRules { bridges: !self.ask.settings.nvb_disabled };
        for kind in [NodeKind::Cpu, NodeKind::Dev, NodeKind::Gpu, NodeKind::Net, NodeKind::Nvs] {
            // In 2.7 a GPU's detours come before the next GPU's search; neither reads the
            // other's slots, save for the CPU's, which come first in both.
            if kind == NodeKind::Nvs && self.ask.profile.is_seed() {
                continue;
            }
            for &base in self.graph.kind(kind) {
                self.paths.search(&self.graph, base, rules).map_err(|it| self.one_way(it))?;
            }
        }
        Ok(())
    }

    fn one_way(&self, found: OneWay) -> RefusedView {
        let (near, far) = (self.graph.node(found.near), self.graph.node(found.far));
        if self.graph.lost == Some(found.far) {
            return RefusedView::Topo(TopoError::LostUplink { switch: far.id });
        }
        RefusedView::Topo(TopoError::OneWay {
            near: near.kind.name(),
            near_id: near.id,
            far: far.kind.name(),
            far_id: far.id,
        })
    }

    fn compute(&mut self) -> Result<(), RefusedView> {
        self.search()?;
        self.divert_gpus()?;
        self.divert_nets()?;
        if !self.ask.profile.is_seed() {
            self.local_gpus = self.nets().iter().map(|it| self.gpu_for(*it)).collect();
        }
        Ok(())
    }

    /// Where P2P is off, GPUs talk by way of a CPU; where shared memory is off too, not at all.
    fn divert_gpus(&mut self) -> Result<(), RefusedView> {
        let gpus = self.gpus().to_vec();
        for &g in &gpus {
            for &p in &gpus {
                if !self.check_p2p(p, g)?.usable {
                    let cpu = self.local_cpu(g)?;
                    self.paths.detour(&self.graph, p, cpu, g);
                }
            }
            for &p in &gpus {
                if p == g {
                    continue;
                }
                let pos = self.graph.node(g).pos;
                if self.ask.profile.is_seed() {
                    // Seed 002's second doubt: P2P is not asked.
                    if !self.can_shm(p, g) {
                        self.paths.at_mut(p, NodeKind::Gpu, pos).count = 0;
                    }
                } else if !self.can_p2p(p, g)? && !self.can_shm(p, g) {
                    // 2.18 cuts them off, later ones leave the network.
                    let known = self.ask.profile.has_hosts();
                    let apart = if known { PathKind::Net } else { PathKind::Dis };
                    self.paths.at_mut(p, NodeKind::Gpu, pos).kind = apart;
                }
            }
        }
        Ok(())
    }

    /// PXN, and where GDR is off the way through a CPU.
    fn divert_nets(&mut self) -> Result<(), RefusedView> {
        let gpus = self.gpus().to_vec();
        let nets = self.nets().to_vec();
        if self.ask.profile.has_c2c() {
            self.mark_c2c(&gpus, &nets)?;
        }
        for &net in &nets {
            // Who is next to the port changes with a way to or from it alone.
            let mut beside = self.beside(net);
            for &gpu in &gpus {
                if !self.ask.profile.is_seed() {
                    if self.try_pxn(gpu, net, beside)? {
                        beside = self.beside(net);
                    }
                    // From 2.21 on a path through a CPU stays as it is.
                    let stays = self.ask.profile.has_hosts();
                    if stays && self.path(gpu, net).kind >= PathKind::Phb {
                        continue;
                    }
                }
                self.check_proxy(gpu, net)?;
                if !self.check_gdr(gpu, net, false) {
                    let cpu = self.local_cpu(gpu)?;
                    self.paths.detour(&self.graph, net, cpu, gpu);
                    self.paths.detour(&self.graph, gpu, cpu, net);
                    beside = self.beside(net);
                }
            }
        }
        Ok(())
    }

    /// Paths over a chip-to-chip link and a CPU's PCI are P2C.
    fn mark_c2c(&mut self, gpus: &[NodeIdx], nets: &[NodeIdx]) -> Result<(), RefusedView> {
        let mut near = Vec::new();
        for &net in nets {
            for &gpu in gpus {
                let cpu = self.local_cpu(gpu)?;
                let (to_gpu, to_net) = (self.path(gpu, cpu), self.path(net, cpu));
                if to_gpu.kind.joined(to_net.kind) != PathKind::P2c {
                    continue;
                }
                // From 2.28 on only for ports that are the GPU's nearest.
                if !self.ask.profile.keeps_ports()
                    || self.nearest(gpu, NodeKind::Net).contains(&net)
                {
                    near.push((gpu, net));
                }
            }
        }
        for (gpu, net) in near {
            for (from, to) in [(gpu, net), (net, gpu)] {
                let (kind, pos) = (self.graph.node(to).kind, self.graph.node(to).pos);
                let path = self.paths.at_mut(from, kind, pos);
                path.kind = path.kind.min(PathKind::P2c);
            }
        }
        Ok(())
    }

    /// The GPU by way of which others may send; 2.7 knows no such way.
    fn beside(&self, net: NodeIdx) -> Option<usize> {
        if self.ask.profile.is_seed() { None } else { self.gpu_for(net) }
    }

    /// Whether the GPU sends by way of the one beside the port from now on.
    fn try_pxn(
        &mut self,
        gpu: NodeIdx,
        net: NodeIdx,
        beside: Option<usize>,
    ) -> Result<bool, RefusedView> {
        let peer = beside.map(|it| self.gpus()[it]).filter(|it| *it != gpu);
        let Some(peer) = peer.filter(|_| !self.ask.settings.pxn_disabled) else { return Ok(false) };
        let has_c2c = self.ask.profile.has_c2c();
        let c2c = has_c2c && self.ask.settings.pxn_c2c;
        let limit = if c2c { PathKind::P2c } else { PathKind::Pxb };
        let (peer_net, own_net) = (self.path(peer, net), self.path(gpu, net));
        let same_host = self.graph.host(peer) == self.graph.host(gpu);
        let near = if has_c2c { PathKind::Pxn } else { PathKind::Pxb };
        let pays = peer_net.width > own_net.width || own_net.kind > near;
        let gdr = !self.ask.profile.has_devices() || self.check_gdr(peer, net, true);
        let sends = peer_net.kind <= limit
            && self.path(peer, gpu).kind <= PathKind::Nvl
            && same_host
            && pays
            && gdr;
        if sends {
            self.paths.detour(&self.graph, gpu, peer, net);
        }
        Ok(sends)
    }

    /// Where a GPU sends through another one, NCCL looks for it behind the switches at the path's
    /// beginning, and behind a device for its GPU.
    fn check_proxy(&self, gpu: NodeIdx, net: NodeIdx) -> Result<(), RefusedView> {
        let path = self.path(gpu, net);
        let asks = self.graph.gpu(gpu).gdr && self.graph.net(net).gdr;
        if path.kind != PathKind::Pxn || !asks || self.intermediate(path).is_some() {
            return Ok(());
        }
        let (rank, dev) = (self.graph.gpu(gpu).rank, self.graph.net(net).dev);
        Err(RefusedView::NoProxy { rank, dev })
    }

    fn intermediate(&self, path: Path) -> Option<NodeIdx> {
        let peer = |hop: &Hop| self.graph.node(hop.node).links[hop.link as usize].peer;
        // From 2.30 on the first hop leads to the GPU's own device.
        let own = usize::from(self.ask.profile.has_devices());
        let ways = self.paths.hops(path).iter().skip(own).map(peer);
        let node = ways.clone().find(|it| self.graph.node(*it).kind != NodeKind::Nvs)?;
        match self.graph.node(node).facts {
            Facts::Gpu { .. } => Some(node),
            Facts::Dev { .. } => {
                let links = self.graph.node(node).links.iter().map(|it| it.peer);
                links.into_iter().find(|it| self.graph.node(*it).kind == NodeKind::Gpu)
            }
            _ => None,
        }
    }

    /// Keeps the GPUs that rank can reach.  One pass, not a transitive union: whether two GPUs
    /// with a common neighbour stay together depends on their order, as in NCCL.
    fn trim(&mut self) {
        let gpus = self.gpus().to_vec();
        let mut domains: Vec<usize> = Vec::with_capacity(gpus.len());
        let mut own = 0;
        for (g, &gpu) in gpus.iter().enumerate() {
            let mut domain = g;
            for (p, reached) in domains.iter().enumerate() {
                let path = self.paths.at(gpu, NodeKind::Gpu, p);
                let reachable = if self.ask.profile.is_seed() {
                    path.count > 0
                } else {
                    path.kind < PathKind::Net
                };
                if reachable {
                    domain = domain.min(*reached);
                }
            }
            domains.push(domain);
            if self.graph.gpu(gpu).rank == self.ask.rank {
                own = domain;
            }
        }
        for (gpu, domain) in gpus.iter().zip(domains) {
            if domain != own {
                self.graph.remove(*gpu);
                self.left_out.push(*gpu);
            }
        }
        self.inter = self.gpus().len() != self.n_ranks;
        // From 2.28.7 on the ports stay and only the search leaves them out.
        if !self.inter && !self.ask.profile.keeps_ports() {
            for net in self.nets().to_vec() {
                self.graph.remove(net);
            }
        }
    }

    /// The GPU in the middle of an NVLink path.
    ///
    /// # Errors
    /// From 2.30 on, where the path goes over a device whose GPU was trimmed.
    pub(crate) fn bridge(&self, path: Path) -> Result<Option<NodeIdx>, RefusedView> {
        let (count, at) = match self.ask.profile {
            Profile::V2_7_8 => return Ok(None),
            Profile::V2_18_5 | Profile::V2_21_5 | Profile::V2_27_7 | Profile::V2_29_7 => (2, 0),
            // GPU, its device, the middle one, the far device, GPU.
            Profile::V2_30_7 => (4, 1),
        };
        if path.count != count {
            return Ok(None);
        }
        let hop = self.paths.hops(path)[at];
        let middle = self.graph.node(hop.node).links[hop.link as usize].peer;
        match self.graph.node(middle).facts {
            Facts::Gpu { .. } => Ok(Some(middle)),
            Facts::Dev { dev, .. } => {
                // NCCL looks for the GPU by the device's number, and gives up without it.
                let host = self.graph.host(middle);
                let is_its =
                    |it: &NodeIdx| self.graph.gpu(*it).dev == dev && self.graph.host(*it) == host;
                let gpu = self.gpus().iter().copied().find(is_its);
                gpu.map(Some).ok_or(RefusedView::LostBridge { dev })
            }
            _ => Ok(None),
        }
    }

    /// Whether two GPUs of this server talk over the network because both reach a port faster
    /// than each other.
    pub fn prefers_net(&self, a: NodeIdx, b: NodeIdx) -> bool {
        if self.ask.profile.is_seed() || self.ask.settings.net_disable_intra {
            return false;
        }
        let direct = self.path(a, b).width;
        let fastest = |gpu| {
            let paths = self.nets().iter().map(|net| self.path(gpu, *net));
            let near = paths.filter(|it| it.kind <= PathKind::Pxb);
            near.fold(Width::ZERO, |fastest, it| fastest.max(it.width))
        };
        fastest(a) > direct && fastest(b) > direct
    }

    /// Whether the P2P transport takes the pair.
    ///
    /// # Errors
    /// As [`View::check_p2p`].
    pub fn can_p2p(&self, a: NodeIdx, b: NodeIdx) -> Result<bool, RefusedView> {
        let p2p = self.check_p2p(a, b)?;
        if !self.ask.profile.is_seed() && !self.same_shm(a, b) {
            return Ok(false);
        }
        Ok(p2p.usable && (p2p.via.is_some() || !self.prefers_net(a, b)))
    }

    /// Whether the shared-memory transport takes the pair.
    pub fn can_shm(&self, a: NodeIdx, b: NodeIdx) -> bool {
        !self.ask.settings.shm_disabled && !self.prefers_net(a, b) && self.same_shm(a, b)
    }

    pub(crate) fn same_shm(&self, a: NodeIdx, b: NodeIdx) -> bool {
        let pair = |it| self.graph.gpu(it).rank / 2;
        !self.ask.shm_pairs || pair(a) == pair(b)
    }

    /// The GPU that sends in this one's place: its NVLink peer under PXN, else itself.
    pub fn proxy(&self, gpu: NodeIdx, net: NodeIdx) -> NodeIdx {
        let net = self.graph.find(NodeKind::Net, self.graph.node(net).id).unwrap_or(net);
        let path = self.path(gpu, net);
        if path.kind != PathKind::Pxn {
            return gpu;
        }
        for hop in self.paths.hops(path) {
            let node = self.graph.node(hop.node).links[hop.link as usize].peer;
            match self.graph.node(node).kind {
                NodeKind::Gpu => return node,
                NodeKind::Nvs | NodeKind::Dev => {}
                _ => break,
            }
        }
        gpu
    }

    /// The CPU that the GPU is nearest to.
    ///
    /// # Errors
    /// If it reaches none.
    pub fn local_cpu(&self, gpu: NodeIdx) -> Result<NodeIdx, RefusedView> {
        let mut best: Option<(NodeIdx, Path)> = None;
        for &cpu in self.graph.kind(NodeKind::Cpu) {
            let path = self.path(gpu, cpu);
            let profile = self.ask.profile;
            let better = match best {
                _ if profile.has_c2c() && path.count == 0 => false,
                None => true,
                // NCCL's "no minimum yet" is a minimum of zero.
                Some((_, best)) if !profile.has_c2c() => best.count == 0 || path.count < best.count,
                Some((_, best)) if !profile.has_devices() => path.count < best.count,
                Some((_, best)) => {
                    path.width > best.width
                        || (path.width == best.width
                            && (path.kind, path.count) < (best.kind, best.count))
                }
            };
            if better {
                best = Some((cpu, path));
            }
        }
        let gpu = self.graph.gpu(gpu).dev;
        best.map(|(cpu, _)| cpu).ok_or(match self.graph.negative {
            Some((place, lanes)) => RefusedView::NegativeLink { place, lanes, gpu },
            None => RefusedView::NoCpu { gpu },
        })
    }

    /// Of that kind the nodes that are widest and then nearest from `node`.
    pub fn nearest(&self, node: NodeIdx, kind: NodeKind) -> Vec<NodeIdx> {
        let (mut width, mut nearest, mut found) = (Width::ZERO, PathKind::Dis, Vec::new());
        let others = self.graph.kind(kind);
        for (&other, path) in others.iter().zip(self.paths.to(node, kind, others.len())) {
            if path.width > width || (path.width == width && path.kind < nearest) {
                (width, nearest) = (path.width, path.kind);
                found.clear();
            }
            if path.width == width && path.kind == nearest {
                found.push(other);
            }
        }
        found
    }

    /// The port that the GPU uses on that channel.
    pub fn local_net(&self, gpu: NodeIdx, channel: usize) -> Option<NodeIdx> {
        self.spread(gpu)?.on(channel)
    }

    /// How the GPU spreads its channels over its ports.
    pub(crate) fn spread(&self, gpu: NodeIdx) -> Option<Spread> {
        let nets = self.nearest(gpu, NodeKind::Net);
        let sharing = self.nearest(*nets.first()?, NodeKind::Gpu).len().max(1);
        let dev = usize::try_from(self.graph.gpu(gpu).dev).unwrap_or(0);
        let share = nets.len().div_ceil(sharing);
        let share = match self.ask.settings.netdevs {
            NetDevs::Auto => share,
            NetDevs::All => nets.len(),
            NetDevs::Max(n) => n.min(nets.len()),
        };
        let dev = if self.ask.profile.has_devices() { dev % sharing } else { dev };
        let first = if nets.len().is_power_of_two() { mirrored(dev, nets.len()) } else { dev };
        Some(Spread { nets, first, share })
    }

    /// The GPU next to a port that has the port on one of its channels.
    pub(crate) fn gpu_for(&self, net: NodeIdx) -> Option<usize> {
        let id = self.graph.node(net).id;
        // NCCL finds the port by its number: twins are served as the first is.
        let near = self.nearest(self.graph.find(NodeKind::Net, id)?, NodeKind::Gpu);
        let spreads: Vec<_> = near.iter().map(|it| self.spread(*it)).collect();
        for channel in 0..self.ask.profile.channels() {
            for (gpu, spread) in near.iter().zip(&spreads) {
                let local = spread.as_ref().and_then(|it| it.on(channel));
                if local.is_some_and(|it| self.graph.node(it).id == id) {
                    return Some(self.graph.node(*gpu).pos);
                }
            }
        }
        None
    }

    /// Where the GPU's outer links are: itself, or the device that it sits on.
    pub fn seat(&self, gpu: NodeIdx) -> NodeIdx {
        self.graph.seat(gpu)
    }

    /// The widest path that the search may hope for, and the widest sum of a GPU's links.
    pub fn widest(&self) -> (Width, Width) {
        let profile = self.ask.profile;
        let devices = profile.has_devices();
        let needs_net = if profile.keeps_ports() { self.inter } else { !self.nets().is_empty() };
        if !needs_net && self.gpus().len() == 1 {
            // 2.18 leaves the sum at nothing.
            let total = if profile.has_hosts() { Width::LOCAL } else { Width::ZERO };
            return (Width::LOCAL, total);
        }
        // From 2.28 on devices are looked at: no detour touches their paths, and they stay when
        // their GPUs are trimmed.
        let seats = self.graph.kind(if devices { NodeKind::Dev } else { NodeKind::Gpu });
        let ends = match (needs_net, devices) {
            (true, _) => self.nets(),
            (false, true) => self.graph.kind(NodeKind::Dev),
            (false, false) => self.gpus(),
        };
        let (mut max, mut total) = (Width::ZERO, Width::ZERO);
        for &seat in seats {
            for &end in ends {
                let path = self.path(seat, end);
                if path.count > 0 {
                    max = max.max(path.width);
                }
            }
            let (mut nvlink, mut pci) = (Width::ZERO, Width::ZERO);
            for link in &self.graph.node(seat).links {
                match link.kind {
                    LinkKind::Nvl => nvlink.0 += link.width.0,
                    LinkKind::Pci => pci = link.width,
                    _ => {}
                }
            }
            total = total.max(nvlink.max(pci));
        }
        (max, total)
    }
}

/// The ports of one GPU and where its channels begin.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    nets: Vec<NodeIdx>,
    first: usize,
    share: usize,
}

impl Spread {
    pub(crate) fn on(&self, channel: usize) -> Option<NodeIdx> {
        let at = self.first + channel % self.share.max(1);
        self.nets.get(at % self.nets.len()).copied()
    }
}

/// The number's bits below `power`, a power of two, in reverse order.
fn mirrored(number: usize, power: usize) -> usize {
    let bits = power.trailing_zeros();
    (0..bits).filter(|it| number & (1 << it) != 0).fold(0, |sum, it| sum | (power >> 1) >> it)
}
