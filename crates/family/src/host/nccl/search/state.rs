//! Where a search stands: the graph that grows, the best one so far, and what is in use.

use std::collections::BTreeMap;

use crate::host::nccl::graph::{Arch, Facts, Net, NodeKind, Vendor};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::ledger::Ledger;
use crate::host::nccl::search::orders::Orders;
use crate::host::nccl::search::ports::Ports;
use crate::host::nccl::search::recall::Recall;
use crate::host::nccl::search::routes::{Routes, Toll};
use crate::host::nccl::search::walk::{List, Task};
use crate::host::nccl::search::{Attempt, Channel, Found, GraphKind, Pattern, RefusedSearch};
use crate::host::nccl::view::View;
use crate::host::nccl::width::Width;

/// Where a channel meets the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    /// The port at that place.
    At(usize),
    /// A port by its id, whether it is there or not.
    Id(u64),
}

/// A graph under way, as NCCL holds it.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) kind: GraphKind,
    pub(super) pattern: Pattern,
    pub(super) cross_nic: i32,
    pub(super) collnet: bool,
    pub(super) channels_min: usize,
    pub(super) channels_max: usize,
    pub(super) channels: usize,
    pub(super) intra: f32,
    pub(super) inter: f32,
    pub(super) latency: f32,
    pub(super) kind_intra: PathKind,
    pub(super) kind_inter: PathKind,
    pub(super) same: bool,
    pub(super) hops: i32,
    /// Places of GPUs, channel by channel.
    pub(super) gpus: Vec<u16>,
    pub(super) ports: Vec<[Port; 2]>,
}

impl Draft {
    /// Takes over all that `other` says.
    pub(super) fn copy_from(&mut self, other: &Draft, gpus: usize) {
        let (mut order, mut ports) =
            (std::mem::take(&mut self.gpus), std::mem::take(&mut self.ports));
        let used = other.channels * gpus;
        order.resize(other.gpus.len(), 0);
        order[..used].copy_from_slice(&other.gpus[..used]);
        ports.resize(other.ports.len(), NO_PORTS);
        ports[..other.channels].copy_from_slice(&other.ports[..other.channels]);
        *self = Draft { gpus: order, ports, ..*other };
    }
}

pub(super) const NO_PORTS: [Port; 2] = [Port::Id(0); 2];

/// The tolls of the graph's present speeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolls {
    pub(super) intra: Toll,
    pub(super) inter: Toll,
    /// Half of it, for each of a balanced tree's first two GPUs.
    pub(super) half: Toll,
    /// Twice, for the head of an NVLS channel.
    pub(super) twice: Toll,
    /// One GPU's share, for the head of a direct channel.
    pub(super) share: Toll,
}

impl Tolls {
    pub(super) fn new(ledger: &mut Ledger, draft: &Draft, gpus: usize, profile: Profile) -> Tolls {
        ledger.forget_amounts();
        let others = gpus.saturating_sub(1).max(1) as f32;
        let share = (1.0 / f64::from(others)) as f32;
        Tolls {
            intra: Toll::new(ledger, draft.intra, profile),
            inter: Toll::new(ledger, draft.inter, profile),
            half: Toll::new(ledger, draft.inter / 2.0, profile),
            twice: Toll::new(ledger, draft.intra * 2.0, profile),
            share: Toll::new(ledger, draft.intra * share, profile),
        }
    }
}

/// A search over one server; graph after graph, for each leaves traces that the next one meets.
pub(super) struct Search<'v> {
    pub(super) view: &'v View,
    pub(super) profile: Profile,
    pub(super) routes: Routes,
    pub(super) ledger: Ledger,
    pub(super) ports: Ports,
    pub(super) known: Orders,
    /// By port, what it has left and how many channels it still takes.
    pub(super) left: Vec<(f32, i32)>,
    pub(super) nets: Vec<Net>,
    /// Ports that share a card's port, and by port which of these it is among.
    pub(super) cards: (Vec<Vec<u16>>, Vec<u16>),
    /// By port, how wide and how far the GPUs are that are widest and then nearest from it.
    pub(super) widest_by_port: Vec<(f32, i32)>,
    /// By GPU, a bit for each channel that it is in.
    pub(super) used: Vec<u64>,
    pub(super) gpus: usize,
    /// Whether there are NVSwitches.
    pub(super) switched: bool,
    /// Whether the search begins at ports.
    pub(super) by_port: bool,
    pub(super) draft: Draft,
    pub(super) best: Draft,
    /// How often something better was found.
    pub(super) n_best: u64,
    pub(super) recall: Recall,
    pub(super) tolls: Tolls,
    /// Why NCCL would give up on the way.
    pub(super) refused: Option<RefusedSearch>,
    /// The walks so far.
    pub(super) attempts: Vec<Attempt>,
    /// Calls left; -1 once nothing better can be found.
    pub(super) time: i32,
    pub(super) calls: u64,
    pub(super) tasks: Vec<Task>,
    /// GPUs that are being tried, of all levels of the walk.
    pub(super) lists: Vec<List>,
    /// Orders of GPUs to be tried, of all levels of the walk.
    pub(super) orders: Vec<u16>,
    /// The widest way that the search may hope for, and the widest sum of a GPU's links.
    pub(super) widest: (f32, f32),
    /// The lowest compute capability.
    pub(super) sm_min: i32,
    pub(super) amd: bool,
}

impl<'v> Search<'v> {
    pub(super) fn new(view: &'v View) -> Search<'v> {
        let profile = view.ask.profile;
        let (routes, mut ledger) = Routes::new(view);
        let nets: Vec<Net> = view.nets().iter().map(|it| view.graph.net(*it)).collect();
        let gpus = view.gpus().len();
        let draft = Draft {
            kind: GraphKind::Ring,
            pattern: Pattern::Ring,
            cross_nic: 0,
            collnet: false,
            channels_min: 0,
            channels_max: 0,
            channels: 0,
            intra: 0.0,
            inter: 0.0,
            latency: 0.0,
            kind_intra: PathKind::Loc,
            kind_inter: PathKind::Loc,
            same: true,
            hops: 0,
            gpus: Vec::new(),
            ports: Vec::new(),
        };
        let tolls = Tolls::new(&mut ledger, &draft, gpus, profile);
        let (widest, total) = view.widest();
        Search {
            view,
            profile,
            ports: Ports::new(view),
            cards: cards(&nets),
            widest_by_port: (0..nets.len()).map(|it| widest_from(&routes, it, gpus)).collect(),
            known: Orders::new(gpus, nets.len()),
            routes,
            ledger,
            left: nets.iter().map(|it| (it.width.0, it.connections)).collect(),
            used: vec![0; gpus],
            gpus,
            switched: !view.graph.kind(NodeKind::Nvs).is_empty(),
            by_port: if profile.keeps_ports() { view.inter } else { !nets.is_empty() },
            nets,
            best: draft.clone(),
            n_best: 0,
            recall: Recall::default(),
            draft,
            tolls,
            refused: None,
            attempts: Vec::new(),
            time: 0,
            calls: 0,
            tasks: Vec::new(),
            lists: Vec::new(),
            orders: Vec::new(),
            widest: (widest.0, total.0),
            sm_min: lowest_sm(view),
            amd: is_amd(view),
        }
    }

    /// The id of a channel's port.
    pub(super) fn port_id(&self, port: Port) -> u64 {
        match port {
            Port::At(net) => self.ports.id(net),
            Port::Id(id) => id,
        }
    }

    /// The place of the first port with that id.
    pub(super) fn port_place(&self, port: Port) -> usize {
        match port {
            Port::At(net) => self.ports.first(net),
            Port::Id(_) => 0,
        }
    }

    /// The best graph as others see it.
    pub(super) fn found(&self) -> Found {
        let best = &self.best;
        let rank = |it: &u16| self.view.graph.gpu(self.view.gpus()[usize::from(*it)]).rank;
        let heads_only = best.kind == GraphKind::Nvls;
        let channel = |at: usize| {
            let order = &best.gpus[at * self.gpus..][..self.gpus];
            let order = if heads_only { &order[..order.len().min(1)] } else { order };
            let nets = best.ports[at].map(|it| self.port_id(it));
            Channel { ranks: order.iter().map(rank).collect(), nets: self.by_port.then_some(nets) }
        };
        Found {
            kind: best.kind,
            pattern: best.pattern,
            cross_nic: best.cross_nic,
            collnet: best.collnet,
            channels_min: best.channels_min,
            channels_max: best.channels_max,
            intra: Width(best.intra),
            inter: Width(best.inter),
            latency: best.latency,
            kind_intra: best.kind_intra,
            kind_inter: best.kind_inter,
            same_channels: best.same,
            hops: best.hops,
            channels: (0..best.channels).map(channel).collect(),
        }
    }
}

fn cards(nets: &[Net]) -> (Vec<Vec<u16>>, Vec<u16>) {
    let mut known = BTreeMap::new();
    let (mut cards, mut of) = (Vec::new(), Vec::new());
    for (at, net) in nets.iter().enumerate() {
        let card = *known.entry((net.asic, net.port)).or_insert(cards.len());
        if card == cards.len() {
            cards.push(Vec::new());
        }
        cards[card].push(at as u16);
        of.push(card as u16);
    }
    (cards, of)
}

fn widest_from(routes: &Routes, net: usize, gpus: usize) -> (f32, i32) {
    let ways = (0..gpus).map(|it| routes.get(routes.net_to_gpu(net, it)));
    ways.fold((0.0, i32::MAX), |(width, hops), it| {
        if it.width > width {
            (it.width, it.hops)
        } else if it.width == width {
            (width, hops.min(it.hops))
        } else {
            (width, hops)
        }
    })
}

fn lowest_sm(view: &View) -> i32 {
    let devices = view.graph.kind(NodeKind::Dev).iter();
    let devices = devices.filter_map(|it| match view.graph.node(*it).facts {
        Facts::Dev { sm, .. } => Some(sm),
        _ => None,
    });
    // A device outlives its GPU, and counts.
    let lowest = devices.min();
    lowest.or_else(|| view.gpus().iter().map(|it| view.graph.gpu(*it).sm).min()).unwrap_or(0)
}

/// Whether the first CPU is AMD's, which is all that NCCL looks at.
fn is_amd(view: &View) -> bool {
    let first = view.graph.kind(NodeKind::Cpu).first().map(|it| view.graph.cpu(*it));
    first.is_some_and(|it| it.arch == Some(Arch::X86) && it.vendor == Some(Vendor::Amd))
}
