//! NCCL's tuning model as its versions have it: 2.7, 2.18 and 2.21, 2.27, and from 2.28 on.
//!
//! Where C mixes `float` and `double`, so does this: a product with a constant is worked out in
//! `f64` and rounded to `f32` when it is stored.

use std::collections::BTreeSet;

use crate::host::nccl::graph::{Arch, NodeKind, Vendor};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::{Found, GraphKind, Pattern};
use crate::host::nccl::view::View;
use crate::host::predict::constants::{
    Caps, Constants, LL128_FIRST, NET, NVLINK, NVLS_EFFICIENCY, PCI, bend,
};
use crate::host::predict::{Algorithm, Entry, Op, Protocol, Wishes};

use Algorithm::{Collnet, CollnetChain, CollnetDirect, Nvls, NvlsTree, Pat, Ring, Tree};
use Protocol::{Ll, Ll128, Simple};

/// GPUs of one server that a network's reduction may take together.
const COLLNET_GPUS: usize = 8;

/// GPUs of one server whose pieces NVLS may gather, from 2.22 on.
const NVLS_GPUS: usize = 32;

/// One graph's figures.
#[derive(Clone, Copy, Debug)]
struct Graph {
    channels: f32,
    intra: f32,
    inter: f32,
    latency: f32,
    kind_intra: PathKind,
    kind_inter: PathKind,
    same_channels: bool,
    pattern: Pattern,
}

impl Graph {
    fn of(found: &Found) -> Graph {
        Graph {
            channels: found.channels.len() as f32,
            intra: found.intra.0,
            inter: found.inter.0,
            latency: found.latency,
            kind_intra: found.kind_intra,
            kind_inter: found.kind_inter,
            same_channels: found.same_channels,
            pattern: found.pattern,
        }
    }
}

/// What a network that reduces gives.
#[derive(Clone, Copy, Debug)]
struct Reducing {
    chain: Graph,
    /// Whether the chains begin at GPUs that were joined to the network.
    has_chains: bool,
    direct: Graph,
    /// GPUs that were joined to the network.
    n_heads: usize,
}

impl Reducing {
    /// None where no channel was found to such a network.
    fn of(profile: Profile, found: &[Found]) -> Option<Reducing> {
        let kind = |kind| found.iter().find(|it| it.kind == kind && !it.channels.is_empty());
        let chain = kind(GraphKind::CollnetChain)?;
        // Until 2.21 the chains are the direct channels' graph too.
        let direct = kind(GraphKind::CollnetDirect).unwrap_or(chain);
        let first = |it: &Found| -> BTreeSet<i32> {
            it.channels.iter().filter_map(|it| it.ranks.first().copied()).collect()
        };
        // Later the heads of NVLS come before those of direct channels.
        let nvls = kind(GraphKind::Nvls).filter(|_| profile.has_c2c());
        let heads = first(nvls.unwrap_or(direct));
        Some(Reducing {
            chain: Graph::of(chain),
            has_chains: !profile.has_devices() || first(chain).is_subset(&heads),
            direct: Graph::of(direct),
            n_heads: heads.len(),
        })
    }
}

/// All that the model needs of a job.
pub(super) struct Model<'a> {
    profile: Profile,
    constants: &'static Constants,
    wishes: &'a Wishes,
    n_ranks: usize,
    n_nodes: usize,
    n_channels: usize,
    /// Least and greatest compute capability.
    sm: (i32, i32),
    arch: Option<Arch>,
    vendor: Option<Vendor>,
    has_switches: bool,
    ring: Graph,
    tree: Graph,
    nvls: Option<Graph>,
    /// None where the network only carries.
    reducing: Option<Reducing>,
}

impl<'a> Model<'a> {
    /// The graphs must have a ring and a tree.  Views of one server are servers of their own, so
    /// that there may be more of these than asked for.
    pub(super) fn of(
        (view, n_nodes): (&View, usize),
        found: &[Found],
        n_channels: usize,
        wishes: &'a Wishes,
    ) -> Model<'a> {
        let profile = view.ask.profile;
        let graph = |kind| {
            let found = found.iter().find(|it| it.kind == kind && !it.channels.is_empty())?;
            Some(Graph::of(found))
        };
        let gpus = view.gpus().iter().chain(&view.left_out);
        let sms = gpus.map(|it| view.graph.gpu(*it).sm);
        let sm = (sms.clone().min().unwrap_or(0), sms.max().unwrap_or(0));
        let cpu = view.graph.kind(NodeKind::Cpu).first().map(|it| view.graph.cpu(*it));
        let mut ring = graph(GraphKind::Ring).expect("servers were connected by a ring");
        let mut tree = graph(GraphKind::Tree).expect("servers were connected by a tree");
        // What one has more of than the other is given up.
        ring.channels = ring.channels.min(tree.channels);
        tree.channels = ring.channels;
        let n_local = view.n_ranks / n_nodes;
        let reduces = view.ask.settings.collnet
            && wishes.collnet_nodes.max(2) <= n_nodes
            && (profile.is_seed() || profile.has_c2c() || n_local <= COLLNET_GPUS);
        Model {
            profile,
            constants: Constants::of(profile),
            wishes,
            n_ranks: view.n_ranks,
            n_nodes,
            n_channels,
            sm,
            arch: cpu.and_then(|it| it.arch),
            vendor: cpu.and_then(|it| it.vendor),
            has_switches: !view.graph.kind(NodeKind::Nvs).is_empty(),
            ring,
            tree,
            nvls: graph(GraphKind::Nvls).filter(|_| 90 <= sm.0),
            reducing: Reducing::of(profile, found).filter(|_| reduces),
        }
    }

    pub(super) fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    /// Ranks of one server.
    fn n_local(&self) -> usize {
        self.n_ranks / self.n_nodes
    }

    /// The same where NCCL divides it out.
    fn per_node(&self) -> f32 {
        self.n_ranks as f32 / self.n_nodes as f32
    }

    /// Whether operations are asked for one by one, and trees of NVSwitches have a model.
    fn is_late(&self) -> bool {
        self.profile.has_c2c()
    }

    /// Whether NVLS is held to what its switches do, from 2.28 on.
    fn knows_switches(&self) -> bool {
        self.profile.keeps_ports()
    }

    /// Where the forecast is more than NCCL's own words.
    pub(super) fn doubts(&self, op: Op) -> Vec<&'static str> {
        let mut doubts = vec![
            "the model and its constants are NCCL's own; no measurement that came with them is held \
             against them here",
        ];
        if self.profile == Profile::V2_18_5 {
            doubts.push("the constants are 2.18.3's, of which a library is there");
        }
        if self.nvls.is_some() && op == Op::AllReduce {
            doubts.push(
                "NVLS is taken to be there; driver, fabric manager or a container can say no",
            );
        }
        if self.reducing.is_some() {
            doubts.push(
                "the network is taken to reduce, gather and scatter, as its CollNet code may",
            );
        }
        if 1 < self.n_nodes {
            doubts.push(
                "the network is taken to reach its ports' speed, without a plugin's own tuning",
            );
        }
        doubts
    }

    /// All that NCCL chooses from, in its order.
    pub(super) fn table(&self, op: Op) -> Vec<Entry> {
        let mut table = Vec::new();
        for algorithm in Algorithm::ALL {
            let Some(graph) = self.graph(op, algorithm) else { continue };
            for protocol in Protocol::ALL {
                let has_others = matches!(algorithm, Tree | Ring | Collnet);
                if protocol != Simple && !has_others {
                    continue;
                }
                let (is_wanted, is_named) = self.wishes.protocol(op, protocol);
                let is_used = self.has_algorithm(op, algorithm)
                    && is_wanted
                    && (protocol != Ll128 || is_named || self.has_ll128(&graph));
                let bandwidth_gbps =
                    if is_used { self.bandwidth(op, algorithm, protocol, &graph) } else { 0.0 };
                let latency_us = self.latency(op, algorithm, protocol, &graph);
                table.push(Entry { algorithm, protocol, latency_us, bandwidth_gbps });
            }
        }
        // 2.19 to 2.23 take rings, whatever their protocol, where the variables leave nothing.
        let has_backup = self.profile == Profile::V2_21_5;
        if has_backup && table.iter().all(|it| it.bandwidth_gbps == 0.0) {
            for it in table.iter_mut().filter(|it| it.algorithm == Ring) {
                it.bandwidth_gbps = self.bandwidth(op, Ring, it.protocol, &self.ring);
            }
        }
        table
    }

    /// Whether the variables let an algorithm be used.
    fn has_algorithm(&self, op: Op, algorithm: Algorithm) -> bool {
        let wanted = |it| self.wishes.has_algorithm(op, it);
        // Until 2.23 a wish for a network's reduction alone, where there is none, is passed over.
        let is_vain = !self.profile.is_seed()
            && !self.is_late()
            && self.reducing.is_none()
            && ![Ring, Tree, Nvls, NvlsTree].into_iter().any(|it| wanted(it) && self.may(it));
        wanted(algorithm) || is_vain && matches!(algorithm, Ring | Tree)
    }

    /// Whether a server's NVSwitches and the number of servers let an algorithm be used at all.
    fn may(&self, algorithm: Algorithm) -> bool {
        let many = self.n_nodes > 1;
        match algorithm {
            Nvls => !many || self.reducing.is_some(),
            NvlsTree => many,
            _ => true,
        }
    }

    /// The graph by which an algorithm does `op`; none where it cannot.
    fn graph(&self, op: Op, algorithm: Algorithm) -> Option<Graph> {
        let many = self.n_nodes > 1;
        let is_piecewise = matches!(op, Op::AllGather | Op::ReduceScatter);
        match algorithm {
            Ring => Some(self.ring),
            Tree => (op == Op::AllReduce).then_some(self.tree),
            Collnet => {
                let can = self.profile.is_seed() && op == Op::AllReduce;
                self.reducing.filter(|_| can).map(|it| it.chain)
            }
            CollnetDirect => {
                let pieces = is_piecewise && self.profile > Profile::V2_18_5;
                let can = self.has_switches
                    && (op == Op::AllReduce || pieces && self.has_heads())
                    && self.n_local() <= COLLNET_GPUS;
                self.reducing.filter(|_| can && !self.profile.is_seed()).map(|it| it.direct)
            }
            CollnetChain => {
                let can = op == Op::AllReduce && self.n_local() <= COLLNET_GPUS;
                let can = can && !self.profile.is_seed();
                self.reducing.filter(|it| can && it.has_chains).map(|it| it.chain)
            }
            // Over servers it takes a network that reduces.
            Nvls if many && self.reducing.is_none() => None,
            Nvls => {
                let pieces = !many || !self.is_late() || self.has_heads();
                let near = !self.is_late() || self.n_local() <= NVLS_GPUS;
                let gathers = self.profile > Profile::V2_18_5 && pieces && near;
                let can = op == Op::AllReduce || is_piecewise && gathers;
                self.nvls.filter(|it| can && self.has_channels(it))
            }
            NvlsTree => self.nvls.filter(|it| many && op == Op::AllReduce && self.has_channels(it)),
            Pat => {
                let can = is_piecewise && self.is_late() && 60 <= self.sm.0;
                let alone = self.n_nodes == self.n_ranks;
                (can && self.wishes.pat.unwrap_or(alone)).then_some(self.tree)
            }
        }
    }

    /// Whether NVLS has the two channels that its model takes.
    fn has_channels(&self, nvls: &Graph) -> bool {
        !self.knows_switches() || 2.0 <= nvls.channels
    }

    /// Whether each GPU has a port of its own that reduces: pieces need one.
    fn has_heads(&self) -> bool {
        self.reducing.is_some_and(|it| self.n_local() <= it.n_heads)
    }

    /// Whether LL128 is used without being asked for: elsewhere it was not tried, and loses data
    /// where stores of 16 bytes are split.
    fn has_ll128(&self, graph: &Graph) -> bool {
        let (least, most) = self.sm;
        let near = |farthest| graph.kind_inter <= farthest;
        match self.profile {
            Profile::V2_7_8 => {
                near(PathKind::Pxb)
                    && graph.kind_intra <= PathKind::Nvl
                    && least == most
                    && matches!(least, 70 | 80)
            }
            Profile::V2_18_5 | Profile::V2_21_5 => {
                (near(PathKind::Pxb) || 90 <= least && near(PathKind::Pxn))
                    && graph.kind_intra <= PathKind::Nvb
                    && least == most
                    && matches!(least, 70 | 80 | 90)
            }
            Profile::V2_27_7 | Profile::V2_29_7 | Profile::V2_30_7 => {
                let over_c2c = 90 <= least && self.wishes.ll128_c2c;
                near(if over_c2c { PathKind::Pxn } else { PathKind::Pxb })
                    && graph.kind_intra <= PathKind::Nvb
                    && (least == most || self.profile.has_devices() && 90 <= least)
                    && 70 <= least
            }
        }
    }

    /// Steps of a ring.
    fn n_steps(&self, op: Op) -> usize {
        match op {
            Op::AllReduce => 2 * (self.n_ranks - 1),
            Op::ReduceScatter | Op::AllGather => self.n_ranks - 1,
            Op::Broadcast | Op::Reduce => self.n_ranks,
        }
    }

    /// Which column of a cap's table.
    fn scale(&self) -> usize {
        self.n_nodes.min(3) - 1
    }

    fn generation(&self) -> usize {
        match self.sm.0 {
            100.. => 3,
            90.. => 2,
            80.. => 1,
            _ => 0,
        }
    }

    fn ll_cap(&self) -> f64 {
        let row = match self.n_nodes {
            1 => self.generation(),
            _ => usize::from(self.vendor == Some(Vendor::Amd)),
        };
        self.constants.ll[row][self.scale()]
    }

    fn bandwidth(&self, op: Op, algorithm: Algorithm, protocol: Protocol, graph: &Graph) -> f32 {
        let is_piecewise = matches!(op, Op::AllGather | Op::ReduceScatter);
        let width = match algorithm {
            Nvls | NvlsTree if self.knows_switches() => self.nvls_width(op, algorithm, graph),
            // 2.18 has no rule of its own for them.
            Nvls | NvlsTree if self.profile == Profile::V2_18_5 => self.width(graph),
            Nvls if is_piecewise && self.is_late() => {
                let share = (self.per_node() - 1.0) / self.per_node();
                (graph.intra * share).min(graph.inter * 0.9)
            }
            Nvls => graph.intra.min(graph.inter),
            NvlsTree => {
                let inter = if self.n_nodes <= 2 { graph.inter } else { graph.inter / 2.0 };
                graph.intra.min(inter)
            }
            Collnet | CollnetDirect | CollnetChain => graph.intra,
            Tree | Ring | Pat => self.width(graph),
        };
        let bus = graph.channels * width;
        let bus = match self.profile {
            Profile::V2_7_8 => self.refined_first(op, algorithm, protocol, bus, graph.channels),
            _ => self.refined(op, algorithm, protocol, bus, graph),
        };
        bus * self.ratio(op, algorithm)
    }

    /// What a channel carries: that of more than two servers what its ports carry.
    fn width(&self, graph: &Graph) -> f32 {
        if self.n_nodes <= 2 { graph.intra } else { graph.inter }
    }

    /// What of a bus's width an operation's bytes have.
    fn ratio(&self, op: Op, algorithm: Algorithm) -> f32 {
        let is_piecewise = matches!(op, Op::AllGather | Op::ReduceScatter);
        let ring = (self.n_ranks as f64 / self.n_steps(op) as f64) as f32;
        match algorithm {
            Ring => ring,
            CollnetDirect if is_piecewise => 1.0,
            _ if is_piecewise && self.is_late() => 1.0,
            Nvls | NvlsTree if self.knows_switches() => ring,
            NvlsTree if self.profile == Profile::V2_18_5 => {
                let steps = 2.0 * (self.n_nodes - 1) as f64;
                (0.7 * self.n_nodes as f64 / steps) as f32
            }
            Nvls | NvlsTree => (5.0_f64 / 6.0) as f32,
            _ => 0.5,
        }
    }

    /// What a channel of NVLS carries: its switches move less than its links could, one channel
    /// is lost, and an all-reduce goes up and down at once.
    fn nvls_width(&self, op: Op, algorithm: Algorithm, graph: &Graph) -> f32 {
        let share = (graph.channels - 1.0) / graph.channels;
        let mut intra = graph.intra * NVLS_EFFICIENCY[self.generation()] * share;
        let per_node = self.per_node();
        intra *= if op == Op::AllReduce { 2.0 } else { (per_node - 1.0) / per_node };
        if self.n_nodes == 1 {
            // Nothing leaves the server: its inner width is what the search has for both.
            return intra.min(graph.inter);
        }
        let pair = if self.n_nodes <= 2 && algorithm == NvlsTree { 2.0 } else { 1.0 };
        let cap = match algorithm {
            NvlsTree => self.constants.nvls_tree[self.generation()][self.scale()] as f32,
            _ => f32::MAX,
        };
        intra.min(graph.inter * pair).min(cap)
    }

    fn refined_first(
        &self,
        op: Op,
        algorithm: Algorithm,
        protocol: Protocol,
        bus: f32,
        channels: f32,
    ) -> f32 {
        let is_a100 = self.sm == (80, 80);
        let mut bus = if is_a100 { bus.min(235.0) } else { bus };
        let many = self.n_nodes > 1;
        let ll128 = LL128_FIRST[op as usize] * f64::from(channels);
        match (algorithm, protocol) {
            (Ring, Ll) => {
                let reduces = matches!(op, Op::AllReduce | Op::Reduce);
                bus = times(bus, if many || reduces { 1.0 / 4.0 } else { 1.0 / 3.0 });
            }
            (Ring, Ll128) => {
                let share = if self.per_node() < 2.0 { 0.7 } else { 0.92 };
                bus = (f64::from(bus) * share).min(ll128) as f32;
            }
            (Collnet, _) => {
                // Its LL reads nothing over the network directly; LL128 it has none.
                let share = match protocol {
                    Ll => 1.0 / 6.0,
                    Ll128 => 0.0,
                    Simple => 1.0,
                };
                bus = times(times(bus, 0.9), share);
            }
            _ => {}
        }
        if algorithm != Tree {
            return bus;
        }
        let widest = match (self.n_nodes > 2, is_a100 && protocol == Ll128) {
            (true, true) => 105.0,
            (true, false) => 80.0,
            (false, true) => 130.0,
            (false, false) => 110.0,
        };
        bus = (f64::from(bus) * 0.9).min(widest) as f32;
        match protocol {
            Ll => times(bus, 1.0 / 3.8),
            Ll128 => {
                let share = if many { 0.915 } else { 7.0 / 9.0 };
                (f64::from(bus) * share).min(ll128 * 7.0 / 9.0) as f32
            }
            Simple => bus,
        }
    }

    fn refined(
        &self,
        op: Op,
        algorithm: Algorithm,
        protocol: Protocol,
        mut bus: f32,
        graph: &Graph,
    ) -> f32 {
        let channels = f64::from(graph.channels);
        let of = |caps: &Caps| channels * caps[self.generation()][self.scale()];
        match (algorithm, protocol) {
            (Ring, Ll) => {
                let reduces = matches!(op, Op::AllReduce | Op::Reduce);
                let share = match self.profile {
                    Profile::V2_18_5 if self.n_nodes > 1 || reduces => 1.0 / 4.0,
                    Profile::V2_18_5 => 1.0 / 3.0,
                    _ => 0.5,
                };
                bus = (f64::from(bus) * share).min(self.ll_cap()) as f32;
            }
            (Ring, Ll128) => {
                let share = if !self.is_late() && self.per_node() < 2.0 { 0.7 } else { 0.92 };
                bus = (f64::from(bus) * share).min(of(&self.constants.ring_ll128)) as f32;
            }
            (Pat, _) => bus = times(bus, 0.75),
            (CollnetDirect, _) => bus = self.direct_width(op, bus, graph),
            _ => {}
        }
        if algorithm != Tree {
            return bus;
        }
        bus = (f64::from(bus) * 0.92).min(of(&self.constants.tree)) as f32;
        match protocol {
            Ll => bus = (f64::from(bus) / 3.8).min(self.ll_cap()) as f32,
            Ll128 => {
                let share = if self.n_nodes == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                bus = (f64::from(bus) * share).min(of(&self.constants.tree_ll128)) as f32;
            }
            Simple => {}
        }
        if graph.pattern == Pattern::Tree { times(bus, 0.85) } else { bus }
    }

    /// Direct channels reach their speed where each GPU has a port of its own.
    fn direct_width(&self, op: Op, bus: f32, graph: &Graph) -> f32 {
        let per_node = self.per_node();
        if op == Op::AllReduce {
            let mut per_port = (f64::from(per_node) / f64::from(graph.channels)) as f32;
            per_port -= (per_port - 1.0) / 2.0;
            let bus = bus / per_port;
            return if 90 <= self.sm.0 { times(bus, 0.85) } else { bus };
        }
        if self.is_late() {
            return per_node * graph.intra.min(graph.inter * 0.9);
        }
        // Measured with one and with eight GPUs; between them along a line.
        let eight = (per_node - 1.0) / 7.0;
        let share = f64::from(eight) * 0.85 + f64::from(1.0 - eight) * 0.95;
        times(per_node * graph.intra, share)
    }

    fn latency(&self, op: Op, algorithm: Algorithm, protocol: Protocol, graph: &Graph) -> f32 {
        let (table, a, p) = (self.constants, algorithm as usize, protocol as usize);
        let inner = if graph.kind_intra == PathKind::Nvl { NVLINK } else { PCI };
        let nodes_log = log2(self.n_nodes as u64) as f32;
        let base = table.base[a][p];
        let mut intra = table.hardware[inner][a][p];
        // Power's PCI is no farther in a tree than in a ring.
        if !self.profile.is_seed() && self.arch == Some(Arch::Power) && algorithm == Tree {
            let on_pci = inner == PCI && protocol == Simple;
            intra = if on_pci { table.hardware[PCI][Ring as usize][p] } else { intra };
        }
        let alone = self.is_late() && self.n_ranks == self.n_nodes;
        let hop = table.hardware[NET][if alone { Tree as usize } else { a }][p];
        let mut inter = hop;
        if self.profile.is_seed() {
            // LL over servers is slower inside them too.
            let slower = self.n_nodes > 1 && protocol == Ll;
            intra = if slower { times(intra, 1.8) } else { intra };
        } else {
            inter += graph.latency;
            // Simple flushes what has come.
            inter += if protocol == Simple { graph.latency } else { 0.0 };
        }
        let many = self.n_nodes > 1;
        let others = (self.n_local() - 1) as f32;
        match algorithm {
            Ring => base + self.ring_latency(op, protocol, graph, (inner, intra, inter)),
            Tree => base + 2.0 * (others * intra + nodes_log * inter),
            Collnet | CollnetChain => base + (2.0 * others * intra + inter),
            CollnetDirect => {
                // Each further GPU waits for its turn at the port.
                let turn = if self.profile == Profile::V2_18_5 { 0.5 } else { 0.4 };
                let steps = f64::from(others.min(1.0) * intra) + f64::from(others) * turn;
                (f64::from(base) + (2.0 * steps + f64::from(inter))) as f32
            }
            Nvls if self.profile == Profile::V2_18_5 => base + if many { hop } else { 0.0 },
            NvlsTree if self.profile == Profile::V2_18_5 => {
                base + 2.0 * (self.n_nodes - 1) as f32 * hop
            }
            Nvls => intra + if many { inter } else { 0.0 },
            NvlsTree => base + (intra + 2.0 * nodes_log * inter),
            Pat => {
                let steps = f64::from(nodes_log) * (f64::from(inter) / 3.5);
                (f64::from(base) + (steps + self.n_ranks as f64 * 2.8)) as f32
            }
        }
    }

    fn ring_latency(
        &self,
        op: Op,
        protocol: Protocol,
        graph: &Graph,
        (inner, mut intra, inter): (usize, f32, f32),
    ) -> f32 {
        let (table, p, steps) = (self.constants, protocol as usize, self.n_steps(op));
        let hop = if self.n_nodes == 1 { inner } else { NET };
        if matches!(op, Op::Reduce | Op::Broadcast) {
            if graph.same_channels {
                return table.hardware[hop][Ring as usize][p];
            }
            // A chunk is waited for.
            let of = if protocol == Simple { Tree } else { Ring };
            let mut lat = table.hardware[hop][of as usize][p];
            let power = !self.profile.is_seed() && self.arch == Some(Arch::Power);
            if power && hop == PCI && protocol == Simple {
                lat = table.hardware[PCI][Ring as usize][p];
            }
            return steps as f32 * lat;
        }
        if !self.profile.is_seed() && self.n_nodes > 1 {
            // Each step costs the CPU a post, AMD's twice as much.
            let amd = (self.arch, self.vendor) == (Some(Arch::X86), Some(Vendor::Amd));
            let post = self.wishes.net_overhead_us.unwrap_or(if amd { 2.0 } else { 1.0 });
            intra = intra.max(if protocol == Simple { 3.0 * post } else { post });
        }
        let between = match op {
            _ if self.n_nodes == 1 => 0,
            Op::AllReduce if self.profile.is_seed() || self.is_late() => 2 * (self.n_nodes - 1),
            Op::AllReduce => 2 * self.n_nodes,
            _ => self.n_nodes - 1,
        };
        (steps as f32 - between as f32) * intra + between as f32 * inter
    }

    /// How long `bytes` last, in us.
    pub(super) fn time(&self, op: Op, entry: &Entry, bytes: u64) -> f32 {
        let (mut bw, mut lat) = (entry.bandwidth_gbps, entry.latency_us);
        let blackwell = 100 <= self.sm.0 && self.arch == Some(Arch::X86);
        let bends = match entry.algorithm {
            Tree => op == Op::AllReduce,
            NvlsTree => self.knows_switches() && blackwell,
            _ => false,
        };
        if bends {
            bw *= bend(self.profile, entry.protocol, bytes).unwrap_or(1.0);
        }
        let is_plateau = if self.profile.is_seed() {
            self.n_ranks as f64 / 16.0 * 65536.0 <= bytes as f64
        } else {
            64 <= bytes / (self.n_channels.max(1) * self.n_ranks) as u64
        };
        let simple_ring = entry.algorithm == Ring && entry.protocol == Simple;
        if simple_ring && self.n_nodes > 1 && op == Op::AllReduce && is_plateau {
            let slow = self.profile.is_seed() || self.sm.0 < 80;
            lat = times(lat, if slow { 1.9 } else { 1.4 });
        }
        lat + bytes as f32 / (1000.0 * bw)
    }
}

/// A product with one of C's `double` constants, stored as a `float`.
fn times(it: f32, factor: f64) -> f32 {
    (f64::from(it) * factor) as f32
}

/// The whole part of the binary logarithm; 0 of 0, as NCCL has it.
fn log2(n: u64) -> usize {
    n.checked_ilog2().unwrap_or(0) as usize
}
