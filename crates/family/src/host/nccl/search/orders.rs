//! In which order the GPUs that are left are tried next.  Notes §5.5.

use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::Pattern;
use crate::host::nccl::search::ledger::Ledger;
use crate::host::nccl::search::routes::Routes;

/// What the channel's port has to say in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Nothing.
    Plain,
    /// The next GPU comes back to the port, so the nearest to it goes first.
    Near,
    /// A later one does; among GPUs that are all alike the farthest goes first.
    Far,
}

/// Orders that do not depend on what is in use, worked out when first asked for.
#[derive(Debug)]
pub(super) struct Orders {
    gpus: usize,
    /// By port and GPU, and at last by GPU alone.
    known: Vec<Option<Box<[u16]>>>,
    ports: usize,
    /// What is left of candidates' PCI links, for the sort under way.
    left: Vec<i32>,
}

impl Orders {
    pub(super) fn new(gpus: usize, ports: usize) -> Orders {
        Orders { gpus, ports, known: vec![None; (ports + 1) * gpus], left: Vec::new() }
    }

    fn known<'o>(&'o mut self, routes: &Routes, gpu: usize, net: Option<usize>) -> &'o [u16] {
        let at = net.unwrap_or(self.ports) * self.gpus + gpu;
        let gpus = self.gpus;
        self.known[at].get_or_insert_with(|| sorted(routes, gpus, gpu, net))
    }
}

/// All GPUs that are reached from `gpu`: those that are widest to the port first, then those with
/// fewest hops to it, then the widest from here, the nearest from here, the next in number.
fn sorted(routes: &Routes, gpus: usize, gpu: usize, net: Option<usize>) -> Box<[u16]> {
    let others = (1..gpus).map(|it| (gpu + it) % gpus);
    let mut order: Vec<u16> = others
        .filter(|it| routes.get(routes.gpu_to_gpu(gpu, *it)).hops > 0)
        .map(|it| it as u16)
        .collect();
    order.sort_by_key(|it| {
        let to = usize::from(*it);
        let here = routes.get(routes.gpu_to_gpu(gpu, to));
        let inter = net.map_or((0, 0), |net| {
            let route = routes.get(routes.net_to_gpu(net, to));
            (-i64::from(route.whole_width), route.hops)
        });
        (inter, -i64::from(here.whole_width), here.hops)
    });
    order.into_boxed_slice()
}

/// Who is asking for the next GPU.
pub(super) struct Asking<'s> {
    pub(super) profile: Profile,
    pub(super) pattern: Pattern,
    pub(super) routes: &'s Routes,
    pub(super) ledger: &'s Ledger,
    /// By GPU, the channels it is in, and the bit of the present one.
    pub(super) used: &'s [u64],
    pub(super) flag: u64,
    /// Whether there are NVSwitches.
    pub(super) switched: bool,
    pub(super) gpu: usize,
    /// The port of the channel's start, where it has a say.
    pub(super) net: Option<usize>,
    pub(super) sort: Sort,
}

impl Orders {
    /// Appends the GPUs to be tried to `out`.
    pub(super) fn next(&mut self, ask: &Asking<'_>, out: &mut Vec<u16>) {
        if ask.switched && ask.profile.has_hosts() {
            return neighbours(ask, self.gpus, out);
        }
        let from = out.len();
        let net = ask.net.filter(|_| ask.sort != Sort::Plain);
        let known = self.known(ask.routes, ask.gpu, net);
        out.extend(known.iter().filter(|it| ask.used[usize::from(**it)] & ask.flag == 0));
        let order = &mut out[from..];
        if let Some(net) = net {
            by_pci_left(ask, net, order, &mut self.left);
        }
        if ask.sort == Sort::Far && all_alike(ask, order) {
            order.reverse();
        }
    }
}

/// Among GPUs that are equally wide to the port, those with most left on their PCI link first.
fn by_pci_left(ask: &Asking<'_>, net: usize, order: &mut [u16], left: &mut Vec<i32>) {
    left.clear();
    left.extend(order.iter().map(|it| ask.routes.pci_left(ask.ledger, usize::from(*it))));
    if left.windows(2).all(|it| it[0] == it[1]) {
        return;
    }
    let routes = ask.routes;
    let width = |it: u16| routes.get(routes.net_to_gpu(net, usize::from(it))).whole_width;
    // By insertion, which keeps equals as they are; there are a handful.
    for at in 1..order.len() {
        let mut at = at;
        while at > 0 && width(order[at - 1]) == width(order[at]) && left[at - 1] < left[at] {
            order.swap(at - 1, at);
            left.swap(at - 1, at);
            at -= 1;
        }
    }
}

fn all_alike(ask: &Asking<'_>, order: &[u16]) -> bool {
    let score = |it: &u16| {
        let route = ask.routes.get(ask.routes.gpu_to_gpu(ask.gpu, usize::from(*it)));
        (route.whole_width, route.hops)
    };
    order.first().is_none_or(|first| order.iter().all(|it| score(it) == score(first)))
}

/// NVSwitches like few peers: only the GPUs next in number are tried.
fn neighbours(ask: &Asking<'_>, gpus: usize, out: &mut Vec<u16>) {
    let (before, after) = ((ask.gpu + gpus - 1) % gpus, (ask.gpu + 1) % gpus);
    let tried: &[usize] = match ask.pattern {
        Pattern::Ring if before != after => &[before, after],
        Pattern::SplitTree | Pattern::BalancedTree if before != after => &[after, before],
        _ => &[after],
    };
    for &gpu in tried {
        let free = ask.used[gpu] & ask.flag == 0;
        let route = ask.routes.gpu_to_gpu(ask.gpu, gpu);
        if gpu != ask.gpu && free && ask.routes.get(route).hops > 0 {
            out.push(gpu as u16);
        }
    }
}
