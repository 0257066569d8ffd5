//! P2P and GPUDirect RDMA: the decision, and the rule that took it.  Notes §3d and §3e, seed 002.
//!
//! What explains a decision is what took it: there is one function for both.

use crate::host::nccl::graph::{Arch, NodeIdx, NodeKind, Vendor};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::{RefusedView, View};

/// A P2P decision about two GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P2p {
    /// Whether they may reach each other's memory.
    pub usable: bool,
    /// Whether reading is preferred to writing.
    pub read: bool,
    /// The GPU between them.
    pub via: Option<NodeIdx>,
    /// What decided.
    pub rule: P2pRule,
}

/// What decides whether GPUs reach each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P2pRule {
    /// They are in containers that share no memory.
    Containers,
    /// How far apart they are.
    Distance {
        /// Their path's kind.
        distance: PathKind,
        /// The farthest that is taken.
        limit: PathKind,
    },
    /// The driver reports P2P broken between two GPUs, by NVML's number.
    Broken {
        /// One.
        a: i32,
        /// The other.
        b: i32,
    },
}

/// A decision about a GPU, a port and a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gdr {
    /// Whether the port reaches the GPU's memory.
    pub usable: bool,
    /// Whether it goes by the bus although the GPU has a chip-to-chip link, from 2.25 on.
    pub by_bus: bool,
    /// What decided.
    pub rule: GdrRule,
}

impl Gdr {
    /// NCCL's number for it: 0 not at all, 1 yes, 2 by the bus.
    pub fn mode(self) -> u8 {
        u8::from(self.usable) + u8::from(self.by_bus)
    }
}

/// What decides whether a port reaches a GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GdrRule {
    /// The port, or its driver, cannot.
    Port,
    /// The GPU cannot be reached by any.
    Gpu,
    /// `NCCL_NET_GDR_READ=0`.
    ReadVariable,
    /// Without an NVLink peer, reading a GPU's memory is not worth while.
    ReadPeer,
    /// How far apart they are, or how far the GPU is that sends in this one's place.
    Distance {
        /// The path's kind.
        distance: PathKind,
        /// The farthest that is taken.
        limit: PathKind,
        /// Who sends: the GPU itself, or its peer under PXN.
        proxy: NodeIdx,
    },
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// The user's variable.
    Variable,
    /// The processor: P2P through this one is slow or wrong.
    Processor,
    /// Two GPUs at most on an AMD processor.
    FewOnAmd,
    /// `NCCL_NET_GDR_C2C` is on: the way over the chip-to-chip link is near.
    ChipToChip,
    /// Neither: the version's own.
    Default,
}

impl View {
    /// Whether `a` may reach the memory of `b`, and why.
    ///
    /// # Errors
    /// If the driver contradicts NVLink and nobody said to ignore it.
    pub fn check_p2p(&self, a: NodeIdx, b: NodeIdx) -> Result<P2p, RefusedView> {
        let profile = self.ask.profile;
        let path = self.path(a, b);
        let rule = P2pRule::Containers;
        let mut p2p = P2p { usable: false, read: false, via: None, rule };
        if profile.has_c2c() && !self.same_shm(a, b) {
            return Ok(p2p);
        }
        p2p.via = self.bridge(path)?.filter(|_| a != b);
        let (distance, limit) = (path.kind, self.p2p_limit());
        p2p.rule = P2pRule::Distance { distance, limit };
        p2p.usable = distance <= limit;
        if p2p.usable && !profile.is_seed() && a != b && self.ask.settings.ignore_disabled_p2p != 2
        {
            let stations = [Some(a), p2p.via, Some(b)];
            let stations: Vec<i32> =
                stations.into_iter().flatten().map(|it| self.graph.gpu(it).dev).collect();
            for pair in stations.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                if !self.ask.broken.contains(&(a.min(b), a.max(b))) {
                    continue;
                }
                if self.ask.settings.ignore_disabled_p2p == 0 && path.kind <= PathKind::Nvb {
                    return Err(RefusedView::BrokenP2p { a, b });
                }
                p2p.usable = false;
                p2p.rule = P2pRule::Broken { a, b };
            }
        }
        let (near, far) = (self.graph.gpu(a), self.graph.gpu(b));
        p2p.read = path.kind == PathKind::Nvl && near.sm == far.sm && near.sm == 80;
        Ok(p2p)
    }

    /// The farthest path over which GPUs reach each other's memory.
    pub fn p2p_limit(&self) -> PathKind {
        self.p2p_limit_and_source().0
    }

    /// The same with where it comes from.
    pub fn p2p_limit_and_source(&self) -> (PathKind, LimitSource) {
        if let Some(level) = self.ask.settings.p2p_level {
            return (level, LimitSource::Variable);
        }
        // NCCL asks the first CPU alone.
        let cpu = self.graph.kind(NodeKind::Cpu).first().map(|it| self.graph.cpu(*it));
        let arch = cpu.and_then(|it| it.arch);
        let vendor = cpu.and_then(|it| it.vendor);
        if !self.ask.profile.has_c2c() {
            let seed = self.ask.profile.is_seed();
            let limit = match (arch, vendor) {
                (Some(Arch::Arm), _) => PathKind::Pxb,
                (Some(Arch::X86), Some(Vendor::Intel)) => {
                    // 2.7 lets all but Broadwell go through a CPU.
                    let newer = cpu.is_some_and(|it| it.model != 1);
                    if seed && newer { PathKind::Phb } else { PathKind::Pxb }
                }
                (Some(Arch::X86), Some(Vendor::Zhaoxin)) if !seed => PathKind::Pxb,
                _ => return (PathKind::Sys, LimitSource::Default),
            };
            return (limit, LimitSource::Processor);
        }
        let amd = arch == Some(Arch::X86) && vendor == Some(Vendor::Amd);
        // In 2.30 devices count, which stay when their GPUs are trimmed.
        let devices = self.graph.kind(NodeKind::Dev).len();
        let count = if self.ask.profile.has_devices() { devices } else { self.gpus().len() };
        if amd && count <= 2 {
            (PathKind::Sys, LimitSource::FewOnAmd)
        } else {
            (PathKind::Pxb, LimitSource::Default)
        }
    }

    /// Whether the port reaches the GPU's memory; `send` asks for reading it.
    pub fn check_gdr(&self, gpu: NodeIdx, net: NodeIdx, send: bool) -> bool {
        self.judge_gdr(gpu, net, send).usable
    }

    /// The same with the rule that decided.
    pub fn judge_gdr(&self, gpu: NodeIdx, net: NodeIdx, send: bool) -> Gdr {
        let refused = |rule| Gdr { usable: false, by_bus: false, rule };
        // NCCL finds the port by its number: twins are judged by the first.
        let net = self.graph.find(NodeKind::Net, self.graph.node(net).id).unwrap_or(net);
        if !self.graph.net(net).gdr {
            return refused(GdrRule::Port);
        }
        if !self.graph.gpu(gpu).gdr {
            return refused(GdrRule::Gpu);
        }
        if send && let Some(rule) = self.forbids_read(gpu) {
            return refused(rule);
        }
        let limit = self.gdr_limit_and_source().0;
        let path = self.path(gpu, net);
        let proxy = self.proxy(gpu, net);
        let distance = if proxy == gpu { path.kind } else { self.path(proxy, net).kind };
        let usable = distance <= limit;
        let rule = GdrRule::Distance { distance, limit, proxy };
        // Of the GPU that sends.
        let to_cpu = self.local_cpu(proxy).map(|it| self.path(proxy, it).kind);
        let by_bus = usable && to_cpu == Ok(PathKind::C2c) && distance != PathKind::P2c;
        Gdr { usable, by_bus, rule }
    }

    /// The farthest path over which ports reach a GPU's memory, and where that comes from.
    pub fn gdr_limit_and_source(&self) -> (PathKind, LimitSource) {
        match (self.ask.settings.gdr_level, self.ask.settings.gdr_c2c) {
            (Some(level), _) => (level, LimitSource::Variable),
            (None, true) if self.ask.profile.has_c2c() => (PathKind::P2c, LimitSource::ChipToChip),
            (None, _) => (PathKind::Pxb, LimitSource::Default),
        }
    }

    /// What keeps ports from reading that GPU's memory.
    fn forbids_read(&self, gpu: NodeIdx) -> Option<GdrRule> {
        match self.ask.settings.gdr_read {
            Some(0) => return Some(GdrRule::ReadVariable),
            Some(it) if it > 0 => return None,
            _ => {}
        }
        // From 2.19 on only older GPUs ask for an NVLink peer.
        if self.ask.profile.has_hosts() && self.graph.gpu(gpu).sm >= 80 {
            return None;
        }
        let peer = |it: &NodeIdx| *it != gpu && self.path(gpu, *it).kind == PathKind::Nvl;
        let has_peer = self.gpus().len() == 1 || self.gpus().iter().any(peer);
        (!has_peer).then_some(GdrRule::ReadPeer)
    }
}
