//! NCCL's tuning model in its three forms: of 2.7, of 2.18 to 2.23, and from 2.24 on.
//!
//! Where C mixes `float` and `double`, so does this: a product with a constant is worked out in
//! `f64` and rounded to `f32` when it is stored.

use crate::host::nccl::graph::{Arch, NodeKind, Vendor};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::search::{Found, GraphKind, Pattern};
use crate::host::nccl::view::View;
use crate::host::predict::{Algorithm, Entry, Op, Protocol, Wishes};

use Algorithm::{Nvls, NvlsTree, Pat, Ring, Tree};
use Protocol::{Ll, Ll128, Simple};

/// Which form of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Era {
    /// One table for all GPUs but the A100.
    First,
    /// Tables by generation, up to Hopper.
    Middle,
    /// NVLS by what its switches do; Blackwell.
    Late,
}

/// LL, LL128 and Simple, in us.
type Latencies = [f32; 3];

/// Latencies of the hardware by algorithm, of NVLink, PCI and network each.
struct Table {
    base: [Latencies; 5],
    hardware: [[Latencies; 5]; 3],
}

const NVLINK: usize = 0;
const PCI: usize = 1;
const NET: usize = 2;

/// By algorithm: Tree, Ring, NVLS, NVLSTree, PAT.
const FIRST: Table = Table {
    base: [[4.4, 4.4, 0.0], [3.6, 10.0, 8.4], [0.0; 3], [0.0; 3], [0.0; 3]],
    hardware: [
        [[0.52, 1.2, 28.0], [0.47, 1.9, 3.4], [0.0; 3], [0.0; 3], [0.0; 3]],
        [[1.0, 1.9, 28.0], [1.0, 2.5, 5.7], [0.0; 3], [0.0; 3], [0.0; 3]],
        [[5.0, 8.5, 50.0], [2.7, 4.0, 9.6], [0.0; 3], [0.0; 3], [0.0; 3]],
    ],
};

const MIDDLE: Table = Table {
    base: [[6.8, 14.0, 0.0], [6.6, 14.0, 8.4], [0.0; 3], [0.0; 3], [0.0; 3]],
    hardware: [
        [[0.6, 1.25, 28.0], [0.6, 1.9, 3.4], [0.0, 0.0, 23.0], [0.0, 0.0, 23.0], [0.0; 3]],
        [[1.0, 1.9, 28.0], [1.0, 2.5, 5.7], [0.0; 3], [0.0; 3], [0.0; 3]],
        [[5.0, 8.5, 28.0], [2.7, 4.0, 14.0], [0.0, 0.0, 18.0], [0.0, 0.0, 14.0], [0.0; 3]],
    ],
};

const LATE: Table = Table {
    base: [[6.8, 14.0, 8.4], [6.6, 14.0, 8.4], [0.0; 3], [0.0; 3], [8.0; 3]],
    hardware: [
        [[0.6, 1.25, 4.0], [0.6, 1.9, 3.4], [0.0, 0.0, 25.0], [0.0, 0.0, 25.0], [0.0, 0.0, 4.0]],
        [[1.0, 1.9, 4.0], [1.0, 2.5, 5.7], [0.0; 3], [0.0; 3], [0.0, 0.0, 4.0]],
        [[5.0, 8.5, 14.0], [2.7, 4.0, 14.0], [0.0, 0.0, 18.0], [0.0, 0.0, 20.9], [0.0, 0.0, 14.0]],
    ],
};

/// By generation (Volta, Ampere, Hopper, Blackwell) and servers (1, 2, more), GB/s.
type Caps = [[f64; 3]; 4];

/// LL in all; over servers by CPU: the first row of Intel's, the second of AMD's.
const LL_MIDDLE: Caps =
    [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [87.7, 22.5, 19.0], [87.7, 22.5, 19.0]];
const LL_LATE: Caps =
    [[39.0, 39.0, 20.4], [87.7, 22.5, 19.0], [141.0, 45.0, 35.0], [282.0, 90.0, 70.0]];
/// Of a channel.
const RING_LL128: Caps = [[20.0; 3], [20.0; 3], [36.7; 3], [40.0; 3]];
const TREE_LL128: Caps = [[20.0; 3], [20.0; 3], [36.7, 36.7, 29.0], [55.6, 31.67, 20.0]];
const TREE: Caps = [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [38.7, 41.4, 36.0], [70.0, 42.8, 24.0]];
const NVLS_TREE: Caps =
    [[26.5, 18.5, 10.0], [24.0, 23.6, 17.8], [0.0, 57.7, 45.5], [0.0, 96.0, 80.0]];

/// What NVLS reaches of its graph's width, by generation.
const NVLS_EFFICIENCY: [f32; 4] = [0.0, 0.0, 0.85, 0.74];

/// LL128 of a channel in 2.7, by operation.
const LL128_FIRST: [f64; 5] = [18.8, 12.0, 18.3, 15.2, 16.7];

/// What a tree loses at middle sizes: by protocol and power of two from 64 B on.
const TREE_FIRST: [[f32; 22]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.5, 0.6, 0.6, 0.7, 0.7,
        0.8, 0.9, 0.9, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6,
        0.6, 0.7, 0.8, 0.9,
    ],
];
const TREE_LATER: [[f32; 23]; 3] = [
    [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8,
        0.9, 1.0, 1.0, 1.0, 1.0,
    ],
    [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9,
        0.9, 0.9, 0.9, 1.0, 1.0,
    ],
    [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8,
        0.7, 0.7, 0.8, 0.9, 0.9,
    ],
];

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

/// All that the model needs of a job.
pub(super) struct Model {
    era: Era,
    n_ranks: usize,
    n_nodes: usize,
    n_channels: usize,
    /// Least and greatest compute capability.
    sm: (i32, i32),
    arch: Option<Arch>,
    vendor: Option<Vendor>,
    ring: Graph,
    tree: Graph,
    nvls: Option<Graph>,
}

impl Model {
    /// The graphs must have a ring and a tree.
    pub(super) fn of(view: &View, found: &[Found], n_channels: usize) -> Model {
        let graph = |kind: GraphKind| {
            let found = found.iter().find(|it| it.kind == kind && !it.channels.is_empty())?;
            Some(Graph {
                channels: found.channels.len() as f32,
                intra: found.intra.0,
                inter: found.inter.0,
                latency: found.latency,
                kind_intra: found.kind_intra,
                kind_inter: found.kind_inter,
                same_channels: found.same_channels,
                pattern: found.pattern,
            })
        };
        let sms = view.gpus().iter().map(|it| view.graph.gpu(*it).sm);
        let sm = (sms.clone().min().unwrap_or(0), sms.max().unwrap_or(0));
        let cpu = view.graph.kind(NodeKind::Cpu).first().map(|it| view.graph.cpu(*it));
        let era = match view.ask.profile.code() {
            ..20800 => Era::First,
            20800..22400 => Era::Middle,
            _ => Era::Late,
        };
        let ring = graph(GraphKind::Ring).expect("servers were connected by a ring");
        let tree = graph(GraphKind::Tree).expect("servers were connected by a tree");
        Model {
            era,
            n_ranks: view.n_ranks,
            n_nodes: view.ask.nodes as usize,
            n_channels,
            sm,
            arch: cpu.and_then(|it| it.arch),
            vendor: cpu.and_then(|it| it.vendor),
            ring,
            tree,
            nvls: graph(GraphKind::Nvls).filter(|_| 90 <= sm.0),
        }
    }

    pub(super) fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    /// Where the forecast is more than NCCL's own words.
    pub(super) fn doubts(&self, op: Op) -> Vec<&'static str> {
        let mut doubts = vec![
            "the model and its constants are NCCL's own; no measurement that came with them is held \
             against them here",
        ];
        if self.era == Era::Middle {
            doubts.push(
                "2.18 to 2.23 share one form of the model here; they differ in constants of single \
                 algorithms",
            );
        }
        if self.nvls.is_some() && op == Op::AllReduce {
            doubts.push(
                "NVLS is taken to be there; driver, fabric manager or a container can say no",
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
    pub(super) fn table(&self, op: Op, wishes: &Wishes) -> Vec<Entry> {
        let mut table = Vec::new();
        for algorithm in Algorithm::ALL {
            let Some(graph) = self.graph(op, algorithm) else { continue };
            for protocol in Protocol::ALL {
                if protocol != Simple && matches!(algorithm, Nvls | NvlsTree | Pat) {
                    continue;
                }
                let (is_wanted, is_named) = wishes.protocol(op, protocol);
                let is_used = wishes.has_algorithm(op, algorithm)
                    && is_wanted
                    && (protocol != Ll128 || is_named || self.has_ll128(&graph));
                let bandwidth_gbps =
                    if is_used { self.bandwidth(op, algorithm, protocol, &graph) } else { 0.0 };
                let latency_us = self.latency(op, algorithm, protocol, &graph);
                table.push(Entry { algorithm, protocol, latency_us, bandwidth_gbps });
            }
        }
        table
    }

    /// The graph by which an algorithm does `op`; none where it cannot.
    fn graph(&self, op: Op, algorithm: Algorithm) -> Option<Graph> {
        let many = self.n_nodes > 1;
        match algorithm {
            Ring => Some(self.ring),
            Tree => (op == Op::AllReduce).then_some(self.tree),
            // Over servers it takes a network that reduces.
            Nvls if many => None,
            Nvls => {
                let can = !matches!(op, Op::Broadcast | Op::Reduce);
                self.nvls.filter(|it| can && (self.era < Era::Late || 2.0 <= it.channels))
            }
            NvlsTree => self.nvls.filter(|it| {
                many && op == Op::AllReduce && (self.era < Era::Late || 2.0 <= it.channels)
            }),
            Pat => {
                let can = matches!(op, Op::AllGather | Op::ReduceScatter);
                let alone = self.n_nodes == self.n_ranks && 60 <= self.sm.0;
                (self.era == Era::Late && can && alone).then_some(self.tree)
            }
        }
    }

    /// Whether LL128 is used without being asked for: elsewhere it was not tried, and loses data
    /// where stores of 16 bytes are split.
    fn has_ll128(&self, graph: &Graph) -> bool {
        let (least, most) = self.sm;
        let near = |farthest| graph.kind_inter <= farthest;
        match self.era {
            Era::First => {
                near(PathKind::Pxb)
                    && graph.kind_intra <= PathKind::Nvl
                    && least == most
                    && matches!(least, 70 | 80)
            }
            Era::Middle => {
                (near(PathKind::Pxb) || 90 <= least && near(PathKind::Pxn))
                    && graph.kind_intra <= PathKind::Nvb
                    && least == most
                    && matches!(least, 70 | 80 | 90)
            }
            Era::Late => {
                near(if 90 <= least { PathKind::Pxn } else { PathKind::Pxb })
                    && graph.kind_intra <= PathKind::Nvb
                    && (least == most || 90 <= least)
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
            100.. if self.era == Era::Late => 3,
            90.. => 2,
            80.. => 1,
            _ => 0,
        }
    }

    fn ll_cap(&self) -> f64 {
        let caps = if self.era == Era::Late { &LL_LATE } else { &LL_MIDDLE };
        let row = match self.n_nodes {
            1 => self.generation(),
            _ => usize::from(self.vendor == Some(Vendor::Amd)),
        };
        caps[row][self.scale()]
    }

    fn bandwidth(&self, op: Op, algorithm: Algorithm, protocol: Protocol, graph: &Graph) -> f32 {
        let bus = match (algorithm, self.era) {
            (Nvls | NvlsTree, Era::Late) => graph.channels * self.nvls_width(op, algorithm, graph),
            (Nvls, _) => graph.channels * graph.intra.min(graph.inter),
            (NvlsTree, _) => {
                let inter = if self.n_nodes <= 2 { graph.inter } else { graph.inter / 2.0 };
                graph.channels * graph.intra.min(inter)
            }
            _ if self.n_nodes <= 2 => graph.channels * graph.intra,
            _ => graph.channels * graph.inter,
        };
        let bus = match self.era {
            Era::First => self.refined_first(op, algorithm, protocol, bus, graph.channels),
            Era::Middle | Era::Late => self.refined(op, algorithm, protocol, bus, graph),
        };
        let ring = (self.n_ranks as f64 / self.n_steps(op) as f64) as f32;
        let is_piecewise = matches!(op, Op::AllGather | Op::ReduceScatter);
        let ratio = match (algorithm, self.era) {
            (Ring, _) => ring,
            (Nvls | NvlsTree, Era::Late) if is_piecewise => 1.0,
            (Nvls | NvlsTree, Era::Late) => ring,
            (Nvls | NvlsTree, _) => (5.0_f64 / 6.0) as f32,
            (Pat, _) => 1.0,
            (Tree, _) => 0.5,
        };
        bus * ratio
    }

    /// What a channel of NVLS carries: its switches move less than its links could, one channel
    /// is lost, and an all-reduce goes up and down at once.
    fn nvls_width(&self, op: Op, algorithm: Algorithm, graph: &Graph) -> f32 {
        let share = (graph.channels - 1.0) / graph.channels;
        let mut intra = graph.intra * NVLS_EFFICIENCY[self.generation()] * share;
        let per_node = self.n_ranks as f32 / self.n_nodes as f32;
        intra *= if op == Op::AllReduce { 2.0 } else { (per_node - 1.0) / per_node };
        if self.n_nodes == 1 {
            // Nothing leaves the server: its inner width is what the search has for both.
            return intra.min(graph.inter);
        }
        let pair = if self.n_nodes <= 2 && algorithm == NvlsTree { 2.0 } else { 1.0 };
        let cap = match algorithm {
            NvlsTree => NVLS_TREE[self.generation()][self.scale()] as f32,
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
        let per_node = self.n_ranks as f32 / self.n_nodes as f32;
        match (algorithm, protocol) {
            (Ring, Ll) => {
                let reduces = matches!(op, Op::AllReduce | Op::Reduce);
                bus = times(bus, if many || reduces { 1.0 / 4.0 } else { 1.0 / 3.0 });
            }
            (Ring, Ll128) => {
                let share = if per_node < 2.0 { 0.7 } else { 0.92 };
                bus = (f64::from(bus) * share).min(ll128) as f32;
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
        let per_node = self.n_ranks as f32 / self.n_nodes as f32;
        let late = self.era == Era::Late;
        match (algorithm, protocol) {
            (Ring, Ll) => {
                let reduces = matches!(op, Op::AllReduce | Op::Reduce);
                let share = match late {
                    true => 0.5,
                    false if self.n_nodes > 1 || reduces => 1.0 / 4.0,
                    false => 1.0 / 3.0,
                };
                bus = (f64::from(bus) * share).min(self.ll_cap()) as f32;
            }
            (Ring, Ll128) => {
                let share = if !late && per_node < 2.0 { 0.7 } else { 0.92 };
                bus = (f64::from(bus) * share).min(of(&RING_LL128)) as f32;
            }
            (Pat, _) => bus = times(bus, 0.75),
            _ => {}
        }
        if algorithm != Tree {
            return bus;
        }
        bus = (f64::from(bus) * 0.92).min(of(&TREE)) as f32;
        match protocol {
            Ll => bus = (f64::from(bus) / 3.8).min(self.ll_cap()) as f32,
            Ll128 => {
                let share = if self.n_nodes == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                bus = (f64::from(bus) * share).min(of(&TREE_LL128)) as f32;
            }
            Simple => {}
        }
        if graph.pattern == Pattern::Tree { times(bus, 0.85) } else { bus }
    }

    fn constants(&self) -> &'static Table {
        match self.era {
            Era::First => &FIRST,
            Era::Middle => &MIDDLE,
            Era::Late => &LATE,
        }
    }

    fn latency(&self, op: Op, algorithm: Algorithm, protocol: Protocol, graph: &Graph) -> f32 {
        let (table, a, p) = (self.constants(), algorithm as usize, protocol as usize);
        let inner = if graph.kind_intra == PathKind::Nvl { NVLINK } else { PCI };
        let nodes_log = log2(self.n_nodes as u64) as f32;
        let base = table.base[a][p];
        let mut intra = table.hardware[inner][a][p];
        // Power's PCI is no farther in a tree than in a ring.
        if self.era > Era::First && self.arch == Some(Arch::Power) && algorithm == Tree {
            let on_pci = inner == PCI && protocol == Simple;
            intra = if on_pci { table.hardware[PCI][Ring as usize][p] } else { intra };
        }
        let alone = self.era == Era::Late && self.n_ranks == self.n_nodes;
        let mut inter = table.hardware[NET][if alone { Tree as usize } else { a }][p];
        if self.era == Era::First {
            // LL over servers is slower inside them too.
            let slower = self.n_nodes > 1 && protocol == Ll;
            intra = if slower { times(intra, 1.8) } else { intra };
        } else {
            inter += graph.latency;
            // Simple flushes what has come.
            inter += if protocol == Simple { graph.latency } else { 0.0 };
        }
        let per_node = (self.n_ranks / self.n_nodes) as f32;
        match algorithm {
            Ring => base + self.ring_latency(op, protocol, graph, (inner, intra, inter)),
            Tree => base + 2.0 * ((per_node - 1.0) * intra + nodes_log * inter),
            Nvls => intra,
            NvlsTree => base + intra + 2.0 * nodes_log * inter,
            Pat => {
                let steps = f64::from(nodes_log) * (f64::from(inter) / 3.5);
                (f64::from(base) + steps + self.n_ranks as f64 * 2.8) as f32
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
        let (table, p, steps) = (self.constants(), protocol as usize, self.n_steps(op));
        let hop = if self.n_nodes == 1 { inner } else { NET };
        if matches!(op, Op::Reduce | Op::Broadcast) {
            if graph.same_channels {
                return table.hardware[hop][Ring as usize][p];
            }
            // A chunk is waited for.
            let of = if protocol == Simple { Tree } else { Ring };
            let mut lat = table.hardware[hop][of as usize][p];
            let power = self.era > Era::First && self.arch == Some(Arch::Power);
            if power && hop == PCI && protocol == Simple {
                lat = table.hardware[PCI][Ring as usize][p];
            }
            return steps as f32 * lat;
        }
        if self.era > Era::First && self.n_nodes > 1 {
            // Each step costs the CPU a post, AMD's twice as much.
            let amd = (self.arch, self.vendor) == (Some(Arch::X86), Some(Vendor::Amd));
            let post = if amd { 2.0 } else { 1.0 };
            intra = intra.max(if protocol == Simple { 3.0 * post } else { post });
        }
        let between = match (op, self.era) {
            _ if self.n_nodes == 1 => 0,
            (Op::AllReduce, Era::Middle) => 2 * self.n_nodes,
            (Op::AllReduce, _) => 2 * (self.n_nodes - 1),
            _ => self.n_nodes - 1,
        };
        (steps as f32 - between as f32) * intra + between as f32 * inter
    }

    /// How long `bytes` last, in us.
    pub(super) fn time(&self, op: Op, entry: &Entry, bytes: u64) -> f32 {
        let (mut bw, mut lat) = (entry.bandwidth_gbps, entry.latency_us);
        let (at, p) = (log2(bytes >> 6), entry.protocol as usize);
        let factor = match self.era {
            Era::First => TREE_FIRST[p].get(at),
            Era::Middle | Era::Late => TREE_LATER[p].get(at),
        };
        let bends = match entry.algorithm {
            Tree => op == Op::AllReduce,
            NvlsTree => self.era == Era::Late && 100 <= self.sm.0 && self.arch == Some(Arch::X86),
            Ring | Nvls | Pat => false,
        };
        bw *= factor.filter(|_| bends).copied().unwrap_or(1.0);
        let is_plateau = match self.era {
            Era::First => self.n_ranks as f64 / 16.0 * 65536.0 <= bytes as f64,
            Era::Middle | Era::Late => 64 <= bytes / (self.n_channels.max(1) * self.n_ranks) as u64,
        };
        let simple_ring = entry.algorithm == Ring && entry.protocol == Simple;
        if simple_ring && self.n_nodes > 1 && op == Op::AllReduce && is_plateau {
            let slow = self.era == Era::First || self.sm.0 < 80;
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
