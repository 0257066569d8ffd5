//! The fixed JSON form of a [`View`], with the keys of NCCL's own decisions as recorded.
//!
//! Written by hand, for its floats carry nine significant digits, which serializers do not write.

use std::fmt::{self, Display, Write as _};

use crate::host::nccl::build::TopoError;
use crate::host::nccl::graph::{Facts, Graph, NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::{self, Found, GraphKind, Graphs};
use crate::host::nccl::view::{RefusedView, View};
use crate::host::nccl::width::Width;

/// Channels whose port is listed.
const CHANNELS: usize = 8;

/// The view as one JSON object; `file` is the name it is shown under.
///
/// # Errors
/// As [`View::check_p2p`].
pub fn dump(view: &View, file: &str) -> Result<String, RefusedView> {
    Ok(fixed(view, file)?.end())
}

/// The same and, where the view leaves GPUs out, their ranks as `leftOut`.
///
/// # Errors
/// As [`dump`].
pub fn dump_and_left_out(view: &View, file: &str) -> Result<String, RefusedView> {
    let mut out = fixed(view, file)?;
    if !view.left_out.is_empty() {
        out.key("leftOut");
        out.open('[');
        for gpu in &view.left_out {
            out.item(view.graph.gpu(*gpu).rank);
        }
        out.close(']');
    }
    Ok(out.end())
}

/// The object, not yet closed.
fn fixed(view: &View, file: &str) -> Result<Json, RefusedView> {
    let profile = view.ask.profile;
    let mut out = Json::default();
    let (widest, total) = view.widest();
    out.open('{');
    out.field("nccl", profile.code());
    out.field("file", Quoted(file));
    out.field("rank", view.ask.rank);
    out.field("nRanks", view.n_ranks);
    out.field("localRanks", view.gpus().len());
    out.field("inter", u8::from(view.inter));
    out.field("maxBw", widest.nine_digits());
    if !profile.is_seed() {
        out.field("totalBw", total.nine_digits());
    }
    nodes(view, &mut out);
    paths(view, &mut out);
    p2p(view, &mut out)?;
    gdr(view, &mut out);
    ports(view, &mut out);
    if profile.keeps_ports() {
        summary(view, &mut out)?;
    }
    graphs(&search::graphs(view)?, profile, &mut out);
    if !view.ask.settings.unread.is_empty() {
        out.key("unread");
        out.open('[');
        for name in &view.ask.settings.unread {
            out.item(Quoted(name));
        }
        out.close(']');
    }
    Ok(out)
}

/// The object that stands for a refusal.
pub fn refusal(profile: Profile, file: &str, refused: &RefusedView) -> String {
    let mut out = Json::default();
    out.open('{');
    out.field("nccl", profile.code());
    out.field("file", Quoted(file));
    let error = match refused {
        // NCCL's ncclUnhandledCudaError, from where it gives up.
        RefusedView::BrokenP2p { .. } => {
            "ncclTopoComputePaths(s, PATHARG): ncclResult 1".to_owned()
        }
        // And its ncclInternalError.
        RefusedView::LostBridge { .. }
        | RefusedView::NoProxy { .. }
        | RefusedView::Topo(TopoError::OneWay { .. } | TopoError::LostUplink { .. }) => {
            "ncclTopoComputePaths(s, PATHARG): ncclResult 3".to_owned()
        }
        other => other.to_string(),
    };
    out.field("error", Quoted(&error));
    out.field("why", Quoted(&refused.to_string()));
    out.close('}');
    out.text.push('\n');
    out.text
}

fn nodes(view: &View, out: &mut Json) {
    out.key("nodes");
    out.open('[');
    for kind in NodeKind::ALL {
        for &node in view.graph.kind(kind) {
            out.next();
            node_fields(view, node, out);
        }
    }
    out.close(']');
}

fn node_fields(view: &View, idx: NodeIdx, out: &mut Json) {
    let (graph, profile) = (&view.graph, view.ask.profile);
    let node = graph.node(idx);
    out.open('{');
    out.field("t", Quoted(node.kind.name()));
    out.field("i", node.pos);
    out.field("id", Hex(node.id));
    match node.facts {
        Facts::Gpu { gpu, parent } => {
            out.field("dev", gpu.dev);
            out.field("rank", gpu.rank);
            out.field("sm", gpu.sm);
            out.field("gdr", u8::from(gpu.gdr));
            if let Some(parent) = parent {
                out.field("mlopart", -1);
                out.field("parent", graph.node(parent).pos);
            }
        }
        Facts::Pci(device) if !profile.is_seed() => out.field("device", Hex(device)),
        Facts::Cpu(cpu) => {
            out.field("arch", cpu.arch.map_or(-1, |it| it as i32));
            out.field("vendor", cpu.vendor.map_or(-1, |it| it as i32));
            out.field("model", cpu.model);
        }
        Facts::Net(net) => {
            out.field("asic", Hex(net.asic));
            out.field("port", net.port);
            out.field("bw", net.width.nine_digits());
            out.field("gdr", u8::from(net.gdr));
            out.field("coll", net.coll);
            out.field("maxconn", net.connections);
            if !profile.is_seed() {
                out.field("latency", Width(net.latency).nine_digits());
            }
            if profile.has_hosts() {
                out.field("dev", net.dev);
            }
            if profile.has_c2c() {
                out.field("localGpu", place(view.local_gpus[node.pos]));
            }
            if profile.has_devices() {
                out.field("rail", net.rail);
                out.field("plane", net.plane);
            }
            if profile.keeps_ports() {
                out.field("pciId", Hex(net.pci));
            }
        }
        Facts::Dev { dev, sm, gpu } => {
            out.field("dev", dev);
            out.field("sm", sm);
            // A device keeps its count when trimming takes its GPU.
            out.field("ngpus", u8::from(gpu.is_some()));
        }
        Facts::Pci(_) | Facts::Nvs | Facts::Nic | Facts::Face => {}
    }
    out.key("links");
    out.open('[');
    for link in &node.links {
        out.next();
        hop(graph, link.kind.name(), link.width, link.peer, out);
    }
    out.close(']');
    out.close('}');
}

fn paths(view: &View, out: &mut Json) {
    const ENDS: [NodeKind; 4] = [NodeKind::Gpu, NodeKind::Nvs, NodeKind::Cpu, NodeKind::Net];
    out.key("paths");
    out.open('[');
    for from_kind in ENDS {
        for &from in view.graph.kind(from_kind) {
            for to_kind in ENDS {
                if !view.paths.knows(from, to_kind) {
                    continue;
                }
                for &to in view.graph.kind(to_kind) {
                    out.next();
                    path(view, from, to, out);
                }
            }
        }
    }
    out.close(']');
}

fn path(view: &View, from: NodeIdx, to: NodeIdx, out: &mut Json) {
    let graph = &view.graph;
    let path = view.path(from, to);
    out.open('{');
    for (key, node) in [("f", from), ("t", to)] {
        out.key(key);
        let node = graph.node(node);
        let _ = write!(out.text, "[\"{}\",{}]", node.kind.name(), node.pos);
    }
    out.field("type", Quoted(path.kind.name()));
    out.field("bw", path.width.nine_digits());
    out.field("n", path.count);
    out.key("hops");
    out.open('[');
    for step in view.paths.hops(path) {
        let link = graph.node(step.node).links[step.link as usize];
        out.next();
        hop(graph, link.kind.name(), link.width, link.peer, out);
    }
    out.close(']');
    out.close('}');
}

fn hop(graph: &Graph, kind: &str, width: Width, peer: NodeIdx, out: &mut Json) {
    let peer = graph.node(peer);
    let (width, peer_kind) = (width.nine_digits(), peer.kind.name());
    let _ = write!(out.text, "[\"{kind}\",{width},\"{peer_kind}\",{}]", peer.pos);
    out.started = true;
}

fn p2p(view: &View, out: &mut Json) -> Result<(), RefusedView> {
    let rank = |it: NodeIdx| view.graph.gpu(it).rank;
    out.key("p2p");
    out.open('[');
    for &a in view.gpus() {
        for &b in view.gpus() {
            if a == b {
                continue;
            }
            let p2p = view.check_p2p(a, b)?;
            out.next();
            out.open('{');
            out.field("a", rank(a));
            out.field("b", rank(b));
            out.field("p2p", u8::from(p2p.usable));
            out.field("read", u8::from(p2p.read));
            out.field("via", p2p.via.map_or(-1, rank));
            out.field("useNet", u8::from(view.prefers_net(a, b)));
            out.field("canP2p", u8::from(view.can_p2p(a, b)?));
            out.field("canShm", u8::from(view.can_shm(a, b)));
            out.close('}');
        }
    }
    out.close(']');
    Ok(())
}

fn gdr(view: &View, out: &mut Json) {
    out.key("gdr");
    out.open('[');
    for &gpu in view.gpus() {
        for &net in view.nets() {
            out.next();
            out.open('{');
            out.field("gpu", view.graph.gpu(gpu).rank);
            out.field("net", Hex(view.graph.node(net).id));
            out.field("recv", view.judge_gdr(gpu, net, false).mode());
            out.field("send", view.judge_gdr(gpu, net, true).mode());
            let proxy = view.graph.gpu(view.proxy(gpu, net)).rank;
            out.field("proxy", if view.ask.profile.is_seed() { -1 } else { proxy });
            out.close('}');
        }
    }
    out.close(']');
}

fn ports(view: &View, out: &mut Json) {
    let seed = view.ask.profile.is_seed();
    out.key("localNet");
    out.open('[');
    for &gpu in view.gpus() {
        if seed || view.nets().is_empty() {
            continue;
        }
        out.next();
        out.open('{');
        out.field("rank", view.graph.gpu(gpu).rank);
        out.key("byChannel");
        out.open('[');
        for net in (0..CHANNELS).filter_map(|it| view.local_net(gpu, it)) {
            out.item(Hex(view.graph.node(net).id));
        }
        out.close(']');
        out.close('}');
    }
    out.close(']');
    if seed {
        return;
    }
    out.key("localGpu");
    out.open('[');
    for (net, gpu) in view.nets().iter().zip(&view.local_gpus) {
        out.next();
        out.open('[');
        out.item(Hex(view.graph.node(*net).id));
        out.item(place(*gpu));
        out.close(']');
    }
    out.close(']');
    out.key("nvb");
    out.open('[');
    for &gpu in view.gpus() {
        out.next();
        out.open('[');
        for &peer in view.gpus() {
            if view.path(gpu, peer).kind == PathKind::Nvb {
                out.item(view.graph.gpu(peer).rank);
            }
        }
        out.close(']');
    }
    out.close(']');
}

/// What 2.29 and 2.30 ask of the whole server.
fn summary(view: &View, out: &mut Json) -> Result<(), RefusedView> {
    let pairs = || {
        let gpus = view.gpus();
        gpus.iter().flat_map(move |a| gpus.iter().map(move |b| view.path(*a, *b).kind))
    };
    out.field("allNvlink", u8::from(pairs().all(|it| it <= PathKind::Nvb)));
    // Before 2.30 a GPU that is alone has no NVLink.
    let alone = !view.ask.profile.has_devices() && view.gpus().len() == 1;
    let direct = pairs().all(|it| it <= PathKind::Nvl) && !alone;
    out.field("allDirectNvlink", u8::from(direct));
    out.field("splitNvlink", u8::from(view.is_split()));
    out.key("localCpu");
    out.open('[');
    for &gpu in view.gpus() {
        let cpu = view.local_cpu(gpu)?;
        out.item(view.graph.node(cpu).pos);
    }
    out.close(']');
    out.field("minNetBw", view.narrowest_net().nine_digits());
    out.field("p2pnChannelsPerPeer", view.channels_per_peer());
    Ok(())
}

/// What the search found; `null` where nothing was looked for: NVLS that is switched off, and at
/// the end what no version here looks for.
fn graphs(graphs: &Graphs, profile: Profile, out: &mut Json) {
    out.key("graphs");
    out.open('[');
    for found in &graphs.found {
        out.next();
        graph(found, profile, out);
    }
    let has_nvls = graphs.found.iter().any(|it| it.kind == GraphKind::Nvls);
    if !profile.is_seed() && !has_nvls {
        out.item("null");
    }
    out.item("null");
    out.close(']');
}

fn graph(found: &Found, profile: Profile, out: &mut Json) {
    out.open('{');
    out.field("name", Quoted(found.kind.name()));
    out.field("id", found.kind.id());
    out.field("pattern", found.pattern as u32);
    out.field("crossNic", found.cross_nic);
    out.field("collNet", u8::from(found.collnet));
    out.field("minChannels", found.channels_min);
    out.field("maxChannels", found.channels_max);
    out.field("nChannels", found.channels.len());
    out.field("bwIntra", found.intra.nine_digits());
    out.field("bwInter", found.inter.nine_digits());
    if !profile.is_seed() {
        out.field("latencyInter", Width(found.latency).nine_digits());
    }
    out.field("typeIntra", Quoted(found.kind_intra.name()));
    out.field("typeInter", Quoted(found.kind_inter.name()));
    out.field("sameChannels", u8::from(found.same_channels));
    out.field("nHops", found.hops);
    out.key("channels");
    out.open('[');
    for channel in &found.channels {
        out.next();
        out.open('{');
        out.key("intra");
        out.open('[');
        channel.ranks.iter().for_each(|it| out.item(it));
        out.close(']');
        if let Some(nets) = channel.nets {
            out.key("inter");
            out.open('[');
            nets.iter().for_each(|it| out.item(Hex(*it)));
            out.close(']');
        }
        out.close('}');
    }
    out.close(']');
    out.close('}');
}

fn place(pos: Option<usize>) -> i64 {
    pos.map_or(-1, |it| it as i64)
}

/// JSON text under way.
#[derive(Default)]
struct Json {
    text: String,
    started: bool,
}

impl Json {
    /// The text of the object that was opened first.
    fn end(mut self) -> String {
        self.close('}');
        self.text.push('\n');
        self.text
    }

    fn next(&mut self) {
        if self.started {
            self.text.push(',');
        }
        self.started = true;
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.started = false;
    }

    fn close(&mut self, bracket: char) {
        self.text.push(bracket);
        self.started = true;
    }

    fn key(&mut self, key: &str) {
        self.next();
        let _ = write!(self.text, "\"{key}\":");
    }

    fn field(&mut self, key: &str, value: impl Display) {
        self.key(key);
        let _ = write!(self.text, "{value}");
    }

    fn item(&mut self, value: impl Display) {
        self.next();
        let _ = write!(self.text, "{value}");
    }
}

struct Hex(u64);

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{:x}\"", self.0)
    }
}

struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for it in self.0.chars() {
            match it {
                '"' | '\\' => write!(f, "\\{it}")?,
                it if it < ' ' => write!(f, "\\u{:04x}", it as u32)?,
                it => f.write_char(it)?,
            }
        }
        f.write_char('"')
    }
}
