//! Whether the links of a server carry a given graph: each channel takes its widths from them as
//! the search would.

use crate::host::nccl::search::ledger::Ledger;
use crate::host::nccl::search::routes::{RouteIdx, Routes, Toll};
use crate::host::nccl::search::{Found, Pattern};
use crate::host::nccl::view::View;

/// One end of a hop of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The GPU at that place.
    Gpu(usize),
    /// The port at that place.
    Net(usize),
}

/// A hop for which some link has not enough left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdrawn {
    /// Which channel.
    pub channel: usize,
    /// From where.
    pub from: End,
    /// To where.
    pub to: End,
}

/// The hops that no longer fit, channel by channel; a hop that does not fit takes nothing.
///
/// NVLS and direct channels have heads and no hops: nothing is said of them.
pub fn overdrawn(view: &View, found: &Found) -> Vec<Overdrawn> {
    let (routes, mut ledger) = Routes::new(view);
    ledger.forget_amounts();
    let profile = view.ask.profile;
    let tolls = [
        Toll::new(&mut ledger, found.intra.0, profile),
        Toll::new(&mut ledger, found.inter.0, profile),
        Toll::new(&mut ledger, found.inter.0 / 2.0, profile),
    ];
    let mut over = Vec::new();
    for (channel, it) in found.channels.iter().enumerate() {
        let gpu = |rank: &i32| view.graph.gpu_of_rank(*rank).map(|it| view.graph.node(it).pos);
        let Some(gpus) = it.ranks.iter().map(gpu).collect::<Option<Vec<_>>>() else { continue };
        let net = |id: u64| view.nets().iter().position(|it| view.graph.node(*it).id == id);
        let nets = it.nets.and_then(|[a, b]| Some([net(a)?, net(b)?]));
        for (from, to, toll) in hops(found.pattern, &gpus, nets) {
            if !follow(&routes, &mut ledger, from, to, tolls[toll]) {
                over.push(Overdrawn { channel, from, to });
            }
        }
    }
    over
}

/// The hops of one channel and which toll each pays: 0 between GPUs, 1 to a port, 2 half of it.
fn hops(pattern: Pattern, gpus: &[usize], nets: Option<[usize; 2]>) -> Vec<(End, End, usize)> {
    let mut hops = Vec::new();
    let (Some(&first), Some(&last)) = (gpus.first(), gpus.last()) else { return hops };
    if matches!(pattern, Pattern::Nvls | Pattern::CollnetDirect) {
        return hops;
    }
    let chain = gpus.windows(2).map(|it| (End::Gpu(it[0]), End::Gpu(it[1]), 0));
    let second = gpus.get(1).copied().unwrap_or(first);
    if let Some([start, end]) = nets {
        hops.push((End::Net(start), End::Gpu(first), 1));
        let back: &[(usize, usize)] = match pattern {
            Pattern::BalancedTree => &[(first, 2), (second, 2)],
            Pattern::SplitTree => &[(second, 1)],
            Pattern::Ring => &[(last, 1)],
            _ => &[(first, 1)],
        };
        hops.extend(chain);
        hops.extend(back.iter().map(|(gpu, toll)| (End::Gpu(*gpu), End::Net(end), *toll)));
    } else {
        hops.extend(chain);
        if pattern == Pattern::Ring && gpus.len() > 1 {
            hops.push((End::Gpu(last), End::Gpu(first), 0));
        }
    }
    hops
}

fn follow(routes: &Routes, ledger: &mut Ledger, from: End, to: End, toll: Toll) -> bool {
    let route: RouteIdx = match (from, to) {
        (End::Gpu(from), End::Gpu(to)) => routes.gpu_to_gpu(from, to),
        (End::Gpu(gpu), End::Net(net)) => routes.gpu_to_net(gpu, net),
        (End::Net(net), End::Gpu(gpu)) => routes.net_to_gpu(net, gpu),
        (End::Net(_), End::Net(_)) => return true,
    };
    routes.follow(ledger, route, &toll)
}
