//! What 2.30 asks of a whole server: its NVLink domains, its slowest port, channels per peer.

use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::View;
use crate::host::nccl::width::Width;

impl View {
    /// Whether the GPUs fall into several NVLink domains of more than one GPU.  NCCL hands a
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
        sizes.filter(|it| *it > 1).count() > 1
    }

    /// The narrowest of the ways between a port and the GPU that serves it.
    pub(crate) fn narrowest_net(&self) -> Width {
        let mut narrowest: Option<Width> = None;
        for (net, gpu) in self.nets().iter().zip(&self.local_gpus) {
            let Some(gpu) = *gpu else { continue };
            let width = self.path(*net, self.gpus()[gpu]).width;
            narrowest = Some(narrowest.map_or(width, |it| it.min(width)));
        }
        narrowest.unwrap_or(Width::ZERO)
    }

    /// How many of its ports a GPU needs to fill its way to the CPU.
    fn nets_by_width(&self, gpu: NodeIdx) -> i64 {
        let nets = self.nearest(gpu, NodeKind::Net);
        let Ok(cpu) = self.local_cpu(gpu) else { return 0 };
        let enough = self.path(gpu, cpu).width;
        let (mut sum, mut count) = (Width::ZERO, 0);
        for net in nets {
            if sum < enough {
                sum.0 += self.graph.net(net).width.0;
                count += 1;
            }
        }
        count
    }

    /// Channels that two ranks of the job use for sending to each other.
    pub(crate) fn channels_per_peer(&self) -> i64 {
        /// NCCL's bound on channels.
        const CHANNELS: i64 = 64;
        let mut least = CHANNELS;
        for &gpu in self.gpus() {
            for &peer in self.gpus() {
                let path = self.path(peer, gpu);
                if peer == gpu {
                    continue;
                }
                let links = if path.kind == PathKind::Nvl {
                    let one = self.ask.profile.nvlink(self.graph.gpu(gpu).sm);
                    ((path.width.0 / one.0) as i64).max(1)
                } else {
                    1
                };
                least = least.min(2 * links);
            }
        }
        if self.gpus().len() < self.n_ranks {
            let each = self.ask.settings.p2p_per_channel_net as f32;
            let by_width = ((self.narrowest_net().0 / each).ceil() as i64).max(1);
            for &gpu in self.gpus() {
                least = least.min(by_width.max(self.nets_by_width(gpu)));
            }
        }
        least
    }
}
