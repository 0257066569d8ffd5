//! What single transfers go by: the port towards a peer on another server and who sends to it,
//! whether a receive is flushed, how many channels there are.  Notes §3g.

use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::View;

/// Where a GPU sends to a peer on another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlet {
    /// The port.
    pub net: NodeIdx,
    /// The GPU that sends: the one that asks, or the port's own under PXN.
    pub proxy: NodeIdx,
}

impl View {
    /// The port by which `gpu` sends to a peer that sits on its own server where `twin` sits on
    /// this one; none where no port is reached.  Not of 2.7, which knows no PXN.
    pub fn outlet(&self, gpu: NodeIdx, twin: NodeIdx, channel: usize) -> Option<Outlet> {
        let settings = &self.ask.settings;
        let mut outlet = Outlet { net: self.local_net(gpu, channel)?, proxy: gpu };
        let level = if settings.pxn_disabled { 0 } else { settings.p2p_pxn_level };
        if settings.cross_nic != 0 && level == 0 {
            return Some(outlet);
        }
        let theirs = self.local_net(twin, channel)?;
        // Without crossing, both ends use ports of one rail.
        if settings.cross_nic == 0 {
            outlet.net = theirs;
        }
        match level {
            1 if self.path(gpu, theirs).kind <= PathKind::Pxn => {
                outlet = Outlet { net: theirs, proxy: self.proxy(gpu, theirs) };
            }
            2 => {
                let c2c = self.ask.profile.has_c2c() && settings.pxn_c2c;
                let limit = if c2c { PathKind::P2c } else { PathKind::Pxb };
                let peer = self.local_gpus[self.graph.node(theirs).pos].map(|it| self.gpus()[it]);
                let sends = |it: &NodeIdx| {
                    self.path(*it, gpu).kind <= PathKind::Nvl
                        && self.path(*it, theirs).kind <= limit
                };
                if let Some(peer) = peer.filter(sends) {
                    outlet = Outlet { net: theirs, proxy: peer };
                }
            }
            _ => {}
        }
        Some(outlet)
    }

    /// Whether what `net` wrote into the GPU's memory is flushed before it is used.
    pub fn needs_flush(&self, gpu: NodeIdx, net: NodeIdx) -> bool {
        let profile = self.ask.profile;
        if profile.is_seed() || self.ask.settings.force_flush || self.graph.gpu(gpu).sm < 90 {
            return true;
        }
        // Data by the bus and flags by the chip-to-chip link may overtake each other.
        let net = self.graph.find(NodeKind::Net, self.graph.node(net).id).unwrap_or(net);
        let to_cpu = self.local_cpu(gpu).map(|it| self.path(gpu, it).kind);
        let by_bus = self.path(gpu, net).kind <= PathKind::Pxb;
        profile.has_c2c() && by_bus && to_cpu == Ok(PathKind::C2c)
    }

    /// Channels for sending and receiving, in a job whose collectives have so many.
    pub fn p2p_channels(&self, collective: usize) -> usize {
        let most = self.ask.profile.channels();
        let (least, limit) = self.ask.settings.p2p_channels;
        let clamp = |it: i64| usize::try_from(it).unwrap_or(0).min(most);
        let count = collective.min(limit.map_or(most, clamp)).max(least.map_or(1, clamp));
        count.max(1).next_power_of_two()
    }
}
