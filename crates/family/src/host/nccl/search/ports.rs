//! Which ports a channel may begin at or come back to, and in which order they are tried.

use crate::host::nccl::graph::NodeKind;
use crate::host::nccl::path::PathKind;
use crate::host::nccl::settings::NetDevs;
use crate::host::nccl::view::View;

/// A server's ports as the search sees them.
#[derive(Debug)]
pub(super) struct Ports {
    ids: Vec<u64>,
    /// By port, the first one with its id: ports of one id share a place.
    firsts: Vec<usize>,
    /// By GPU, the ports of its channels, in order and each once.
    preferred: Vec<Vec<usize>>,
    /// By port, the GPUs that are nearest to it.
    near: Vec<Vec<usize>>,
    /// Lists by how far ports may be: for the start, then for each GPU.
    lists: Vec<Option<Vec<Vec<usize>>>>,
}

impl Ports {
    pub(super) fn new(view: &View) -> Ports {
        let nets = view.nets();
        let ids: Vec<u64> = nets.iter().map(|it| view.graph.node(*it).id).collect();
        let first = |id: &u64| ids.iter().position(|it| it == id).unwrap_or(0);
        let firsts: Vec<usize> = ids.iter().map(first).collect();
        let profile = view.ask.profile;
        let (mut preferred, mut near) = (Vec::new(), Vec::new());
        if !profile.is_seed() {
            preferred = (0..view.gpus().len()).map(|it| of_channels(view, &firsts, it)).collect();
            let gpus = |net| view.nearest(net, NodeKind::Gpu);
            let places = |it| gpus(it).into_iter().map(|it| view.graph.node(it).pos).collect();
            near = nets.iter().map(|it| places(*it)).collect();
        }
        Ports { ids, firsts, preferred, near, lists: vec![None; PathKind::ALL.len() + 1] }
    }

    pub(super) fn id(&self, net: usize) -> u64 {
        self.ids[net]
    }

    pub(super) fn first(&self, net: usize) -> usize {
        self.firsts[net]
    }

    /// GPUs nearest to the port.
    pub(super) fn near(&self, net: usize) -> &[usize] {
        &self.near[net]
    }

    /// Works out the lists for ports that are `farthest` away at most, or for preferred ones alone.
    pub(super) fn prepare(&mut self, view: &View, farthest: Option<PathKind>) {
        let at = slot(farthest);
        if self.lists[at].is_some() {
            return;
        }
        let gpus = view.gpus().len();
        let mut lists = Vec::with_capacity(gpus + 1);
        if view.ask.profile.is_seed() {
            let all: Vec<usize> = (0..self.ids.len()).collect();
            lists.resize(gpus + 1, all);
        } else {
            lists.push(self.list(view, farthest, 0..gpus));
            for gpu in 0..gpus {
                lists.push(self.list(view, farthest, gpu..gpu + 1));
            }
        }
        self.lists[at] = Some(lists);
    }

    /// The ports to begin at, or those that the GPU may come back to.
    pub(super) fn of(&self, farthest: Option<PathKind>, gpu: Option<usize>) -> &[usize] {
        let lists = self.lists[slot(farthest)].as_ref();
        &lists.expect("lists are worked out before each walk")[gpu.map_or(0, |it| it + 1)]
    }

    fn list(
        &self,
        view: &View,
        farthest: Option<PathKind>,
        gpus: std::ops::Range<usize>,
    ) -> Vec<usize> {
        let mut list = Vec::new();
        let add = |list: &mut Vec<usize>, net: usize| {
            if !list.contains(&net) {
                list.push(net);
            }
        };
        if view.ask.profile.has_c2c() && view.hosts() > 1 {
            self.by_turns(gpus.clone(), &mut list, view.ask.profile.channels());
        } else {
            for net in self.preferred[gpus.clone()].iter().flatten() {
                add(&mut list, *net);
            }
        }
        let most = match view.ask.settings.netdevs {
            NetDevs::Max(each) => each * gpus.len(),
            _ => usize::MAX,
        };
        let seen =
            if view.ask.profile.has_hosts() { view.ask.profile.channels() } else { usize::MAX };
        let Some(farthest) = farthest else { return list };
        for kind in PathKind::ALL.into_iter().filter(|it| *it <= farthest) {
            for gpu in gpus.clone() {
                for (net, node) in view.nets().iter().enumerate().take(seen) {
                    if list.len() >= most {
                        return list;
                    }
                    if view.path(view.gpus()[gpu], *node).kind == kind {
                        add(&mut list, net);
                    }
                }
            }
        }
        list
    }

    /// In a system of several hosts, each GPU's first port comes before any GPU's second.
    fn by_turns(&self, gpus: std::ops::Range<usize>, list: &mut Vec<usize>, turns: usize) {
        for turn in 0..turns {
            for preferred in &self.preferred[gpus.clone()] {
                if let Some(net) = preferred.get(turn)
                    && !list.contains(net)
                {
                    list.push(*net);
                }
            }
        }
    }
}

fn slot(farthest: Option<PathKind>) -> usize {
    farthest.map_or(0, |it| it as usize + 1)
}

/// The GPU's ports by channel, until the first one comes again.
fn of_channels(view: &View, firsts: &[usize], gpu: usize) -> Vec<usize> {
    let mut ports: Vec<usize> = Vec::new();
    let Some(spread) = view.spread(view.gpus()[gpu]) else { return ports };
    for channel in 0..view.ask.profile.channels() {
        let Some(node) = spread.on(channel) else { break };
        let net = firsts[view.graph.node(node).pos];
        if !ports.is_empty() && ports[0] == net {
            break;
        }
        ports.push(net);
    }
    ports
}
