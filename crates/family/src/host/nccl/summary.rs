//! What 2.30 asks of a whole server: its NVLink domains, its slowest port, channels per peer.

use std::collections::BTreeSet;

use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::View;
use crate::host::nccl::width::Width;

impl View {
    /// Whether the GPUs fall into two NVLink domains of more than one GPU.  NCCL hands a
    /// domain's number on to every later neighbour, whatever that one had: on a sparse mesh one
    /// domain may show as two, and does here as well.
    pub(crate) fn is_split(&self) -> bool {
        let gpus = self.gpus();
        let mut domains: Vec<usize> = (0..gpus.len()).collect();
        for a in 0..gpus.len() {
            for b in a + 1..gpus.len() {
                if self.path(gpus[a], gpus[b]).kind == PathKind::Nvl {
                    domains[b] = domains[a];
                }
            }
        }
        let sizes = (0..gpus.len()).map(|it| domains.iter().filter(|d| **d == it).count());
        sizes.filter(|it| *it > 1).count() == 2
    }

    /// How many hosts the file describes.
    pub(crate) fn hosts(&self) -> usize {
        let hosts = self.graph.kind(NodeKind::Cpu).iter().map(|it| self.graph.node(*it).id >> 56);
        hosts.collect::<BTreeSet<_>>().len()
    }

    /// The asking rank's GPU, which trimming keeps.
    fn own_gpu(&self) -> Option<NodeIdx> {
        self.graph.gpu_of_rank(self.ask.rank)
    }

    /// The GPU's ways to the ports of its channels, until the first port comes again.
    fn ways_out(&self, gpu: NodeIdx) -> Vec<Width> {
        let Some(spread) = self.spread(gpu) else { return Vec::new() };
        let ports = (0..CHANNELS).map_while(|it| spread.on(it));
        let mut ids: Vec<u64> = Vec::new();
        let mut ways = Vec::new();
        for port in ports {
            let id = self.graph.node(port).id;
            if ids.first() == Some(&id) {
                break;
            }
            ids.push(id);
            // NCCL finds the port by its id.
            let first = self.graph.find(NodeKind::Net, id).unwrap_or(port);
            ways.push(self.path(gpu, first).width);
        }
        ways
    }

    /// The narrowest of the asking rank's ways to its ports; before 2.30 the narrowest port.
    pub(crate) fn narrowest_net(&self) -> Width {
        if !self.ask.profile.has_devices() {
            let ports = self.nets().iter().map(|it| self.graph.net(*it).width);
            return ports.fold(Width(f32::MAX), Width::min);
        }
        let ways = self.own_gpu().map(|it| self.ways_out(it)).unwrap_or_default();
        ways.into_iter().reduce(Width::min).unwrap_or(Width::ZERO)
    }

    /// How many of its ports a GPU needs to fill its way to the CPU, and their widths' sum.
    fn nets_by_width(&self, gpu: NodeIdx) -> (i64, Width) {
        let Ok(cpu) = self.local_cpu(gpu) else { return (0, Width::ZERO) };
        let enough = self.path(gpu, cpu).width;
        let (mut sum, mut count) = (Width::ZERO, 0);
        for width in self.ways_out(gpu) {
            sum.0 += width.0;
            count += 1;
            if sum >= enough {
                break;
            }
        }
        (count, sum)
    }

    /// Channels that the asking rank uses for sending to any other.
    pub(crate) fn channels_per_peer(&self) -> i64 {
        let mut least = CHANNELS as i64;
        let Some(gpu) = self.own_gpu() else { return least };
        for &peer in self.gpus().iter().filter(|it| **it != gpu) {
            let path = self.path(peer, gpu);
            let bridged = path.kind == PathKind::Nvb && self.ask.profile.has_devices();
            let links = if path.kind == PathKind::Nvl || bridged {
                let one = self.ask.profile.nvlink(self.graph.gpu(gpu).sm);
                ((path.width.0 / one.0) as i64).max(1)
            } else {
                1
            };
            least = least.min(2 * links);
        }
        if self.gpus().len() < self.n_ranks {
            let each = self.ask.settings.p2p_per_channel_net.max(1);
            let (count, width) = self.nets_by_width(gpu);
            let width = width.0 as i64;
            least = least.min(if count == 0 { 2 } else { count.max((width + each - 1) / each) });
        }
        least
    }
}

/// NCCL's bound on channels.
const CHANNELS: usize = 64;
