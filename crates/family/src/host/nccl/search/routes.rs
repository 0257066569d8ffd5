//! The ways of one server, laid out for the search: which links each takes, and how much of them.

use crate::host::nccl::graph::{Arch, Facts, LinkKind, NodeIdx, NodeKind, Vendor};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::ledger::{Amount, Ledger, NO_LINK};
use crate::host::nccl::view::View;

/// One link of a way.
#[derive(Clone, Copy, Debug)]
struct Step {
    link: u32,
    /// The link back, if it is paid too.
    back: u32,
    /// Whether an Intel CPU on the way makes this link pay more.
    dear: bool,
    /// Whether the link back pays all, or an eighth.
    all_back: bool,
}

/// A way from one end to another, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteIdx(u32);

/// What is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    start: u32,
    /// How many links.
    pub(crate) hops: i32,
    /// How far.
    pub(crate) kind: PathKind,
    /// How far the other way round.
    pub(crate) kind_back: PathKind,
    /// How wide, cut to whole GB/s as the search compares it.
    pub(crate) whole_width: i32,
    /// How wide.
    pub(crate) width: f32,
}

/// What following a way takes from its links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Plainly, and through an Intel CPU.
    forth: [Amount; 2],
    /// An eighth of each, for the link back of older GPUs.
    eighth: [Amount; 2],
}

impl Rate {
    pub(crate) fn new(ledger: &mut Ledger, width: f32, profile: Profile) -> Rate {
        // INTEL_P2P_OVERHEAD of notes §3c.
        let dear = if profile.is_seed() { width * 12.0 / 9.0 } else { width * 6.0 / 5.0 };
        Rate {
            forth: [ledger.amount(width), ledger.amount(dear)],
            eighth: [ledger.amount(width / 8.0), ledger.amount(dear / 8.0)],
        }
    }
}

/// A rate and its opposite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toll {
    /// Taken.
    pub(crate) take: Rate,
    /// Given back.
    pub(crate) give: Rate,
}

impl Toll {
    pub(crate) fn new(ledger: &mut Ledger, width: f32, profile: Profile) -> Toll {
        let take = Rate::new(ledger, width, profile);
        Toll { take, give: Rate::new(ledger, -width, profile) }
    }
}

/// All ways that a search follows, by the places of their ends among their kinds: from GPUs to
/// GPUs, to ports, from ports to GPUs, from GPUs to the switches and back.
#[derive(Debug)]
pub(crate) struct Routes {
    steps: Vec<Step>,
    all: Vec<Route>,
    /// Whether the walk's conditions let it go that way.
    open: Vec<bool>,
    gpus: usize,
    nets: usize,
    /// By GPU, its first PCI link and the link that comes back over it.
    pci: Vec<Option<[u32; 2]>>,
}

impl Routes {
    /// The ways of `view`, and its links with all that they carry.
    pub(crate) fn new(view: &View) -> (Routes, Ledger) {
        let graph = &view.graph;
        let mut first = Vec::with_capacity(graph.n_nodes());
        let mut widths = Vec::new();
        for node in 0..graph.n_nodes() {
            first.push(widths.len() as u32);
            let node = graph.node(NodeIdx(node as u32));
            widths.extend(node.links.iter().map(|it| it.width.0));
        }
        let mut layout = Layout { view, first, steps: Vec::new(), all: Vec::new() };
        let (gpus, nets) = (view.gpus(), view.nets());
        let switches = graph.kind(NodeKind::Nvs);
        let switch = &switches[..switches.len().min(1)];
        for (from, to) in [(gpus, gpus), (gpus, nets), (nets, gpus), (gpus, switch), (switch, gpus)]
        {
            layout.between(from, to);
        }
        let pci = gpus.iter().map(|it| layout.pci(*it)).collect();
        let open = vec![false; layout.all.len()];
        let (gpus, nets) = (gpus.len(), nets.len());
        let routes = Routes { steps: layout.steps, all: layout.all, open, gpus, nets, pci };
        (routes, Ledger::new(widths))
    }

    #[inline]
    pub(crate) fn gpu_to_gpu(&self, from: usize, to: usize) -> RouteIdx {
        RouteIdx((from * self.gpus + to) as u32)
    }

    pub(crate) fn gpu_to_net(&self, gpu: usize, net: usize) -> RouteIdx {
        RouteIdx((self.gpus * self.gpus + gpu * self.nets + net) as u32)
    }

    pub(crate) fn net_to_gpu(&self, net: usize, gpu: usize) -> RouteIdx {
        let before = self.gpus * self.gpus + self.gpus * self.nets;
        RouteIdx((before + net * self.gpus + gpu) as u32)
    }

    pub(crate) fn gpu_to_switch(&self, gpu: usize) -> RouteIdx {
        let before = self.gpus * self.gpus + 2 * self.gpus * self.nets;
        RouteIdx((before + gpu) as u32)
    }

    pub(crate) fn switch_to_gpu(&self, gpu: usize) -> RouteIdx {
        RouteIdx(self.gpu_to_switch(gpu).0 + self.gpus as u32)
    }

    #[inline]
    pub(crate) fn get(&self, route: RouteIdx) -> &Route {
        &self.all[route.0 as usize]
    }

    /// Opens the ways that are no farther than these; trees ask it of both directions.
    pub(crate) fn open(&mut self, profile: Profile, intra: PathKind, inter: PathKind, tree: bool) {
        let inside = self.gpus * self.gpus;
        for (at, (open, route)) in self.open.iter_mut().zip(&self.all).enumerate() {
            let limit = if at < inside { intra } else { inter };
            let near = route.kind <= limit;
            // Both ways, from 2.8 on.
            let there_and_back = near && !(tree && route.kind_back > limit);
            *open = if profile.is_seed() {
                route.hops == 0 || near
            } else if !profile.has_c2c() {
                // A way of no hops is free, and so is one that is not there.
                route.hops == 0 || there_and_back
            } else {
                route.kind < PathKind::Dis && there_and_back
            };
        }
    }

    #[inline]
    pub(crate) fn is_open(&self, route: RouteIdx) -> bool {
        self.open[route.0 as usize]
    }

    /// The links, of so many, that an open way takes anything from.
    pub(crate) fn links(&self, count: usize) -> Vec<u32> {
        let mut taken = vec![false; count];
        for (route, _) in self.all.iter().zip(&self.open).filter(|(_, open)| **open) {
            for step in &self.steps[route.start as usize..][..route.hops as usize] {
                taken[step.link as usize] = true;
                if step.back != NO_LINK {
                    taken[step.back as usize] = true;
                }
            }
        }
        (0..count as u32).filter(|it| taken[*it as usize]).collect()
    }

    /// By route, whether it is open.
    pub(crate) fn all_open(&self) -> &[bool] {
        &self.open
    }

    /// Follows the way, if every link has enough left.
    #[inline]
    pub(crate) fn follow(&self, ledger: &mut Ledger, route: RouteIdx, toll: &Toll) -> bool {
        let steps = self.steps(route);
        for (done, step) in steps.iter().enumerate() {
            if !take(ledger, step, &toll.take) {
                for step in &steps[..done] {
                    take(ledger, step, &toll.give);
                }
                return false;
            }
        }
        true
    }

    /// Goes back.
    #[inline]
    pub(crate) fn unfollow(&self, ledger: &mut Ledger, route: RouteIdx, toll: &Toll) {
        for step in self.steps(route) {
            take(ledger, step, &toll.give);
        }
    }

    #[inline]
    fn steps(&self, route: RouteIdx) -> &[Step] {
        let route = &self.all[route.0 as usize];
        &self.steps[route.start as usize..][..route.hops as usize]
    }

    /// What is left of the GPU's PCI link, in whole GB/s; -1 where it has none.
    pub(crate) fn pci_left(&self, ledger: &Ledger, gpu: usize) -> i32 {
        self.pci[gpu].map_or(-1, |[up, down]| {
            let (up, down) = (ledger.width(up), ledger.width(down));
            (if down < up { down } else { up }) as i32
        })
    }
}

#[inline(always)]
fn take(ledger: &mut Ledger, step: &Step, rate: &Rate) -> bool {
    let dear = usize::from(step.dear);
    let back = if step.all_back { rate.forth[dear] } else { rate.eighth[dear] };
    ledger.take(step.link, rate.forth[dear], step.back, back)
}

/// Routes under way.
struct Layout<'v> {
    view: &'v View,
    /// By node, the number of its first link.
    first: Vec<u32>,
    steps: Vec<Step>,
    all: Vec<Route>,
}

impl Layout<'_> {
    fn between(&mut self, from: &[NodeIdx], to: &[NodeIdx]) {
        for &a in from {
            for &b in to {
                let route = self.route(a, b);
                self.all.push(route);
            }
        }
    }

    fn route(&mut self, from: NodeIdx, to: NodeIdx) -> Route {
        let graph = &self.view.graph;
        let path = self.view.path(from, to);
        let hops = self.view.paths.hops(path);
        let is_gpu = graph.node(from).kind == NodeKind::Gpu;
        let peer =
            |hop: &crate::host::nccl::path::Hop| graph.node(hop.node).links[hop.link as usize].peer;
        let intel = |node: NodeIdx| match graph.node(node).facts {
            Facts::Cpu(cpu) => cpu.arch == Some(Arch::X86) && cpu.vendor == Some(Vendor::Intel),
            _ => false,
        };
        let dear = is_gpu && path.kind == PathKind::Phb && hops.iter().any(|it| intel(peer(it)));
        let start = self.steps.len() as u32;
        for hop in hops {
            let link = graph.node(hop.node).links[hop.link as usize];
            let (old_gpu, power) = match graph.node(link.peer).facts {
                Facts::Gpu { gpu, .. } if !graph.profile.has_devices() => (gpu.sm < 80, false),
                Facts::Dev { sm, .. } => (sm < 80, false),
                Facts::Cpu(cpu) => {
                    (false, graph.profile.is_seed() || cpu.arch == Some(Arch::Power))
                }
                _ => (false, false),
            };
            let all_back = power && link.kind == LinkKind::Nvl;
            let back = if all_back || (old_gpu && !is_gpu) {
                self.back(hop.node, link.peer, link.kind)
            } else {
                NO_LINK
            };
            self.steps.push(Step {
                link: self.first[hop.node.usize()] + hop.link,
                back,
                dear: dear && link.kind == LinkKind::Pci,
                all_back,
            });
        }
        Route {
            start,
            hops: path.count as i32,
            kind: path.kind,
            kind_back: self.view.path(to, from).kind,
            whole_width: path.width.0 as i32,
            width: path.width.0,
        }
    }

    /// The link from `far` to `near`, of the same kind where the version looks at it.
    fn back(&self, near: NodeIdx, far: NodeIdx, kind: LinkKind) -> u32 {
        let any = self.view.graph.profile.is_seed();
        let links = &self.view.graph.node(far).links;
        let found = links.iter().position(|it| it.peer == near && (any || it.kind == kind));
        found.map_or(NO_LINK, |it| self.first[far.usize()] + it as u32)
    }

    fn pci(&self, gpu: NodeIdx) -> Option<[u32; 2]> {
        let graph = &self.view.graph;
        let seat = self.view.seat(gpu);
        for (at, link) in graph.node(seat).links.iter().enumerate() {
            if link.kind != LinkKind::Pci {
                continue;
            }
            let back = graph.node(link.peer).links.iter().position(|it| it.peer == seat);
            if let Some(back) = back {
                let up = self.first[seat.usize()] + at as u32;
                return Some([up, self.first[link.peer.usize()] + back as u32]);
            }
        }
        None
    }
}
