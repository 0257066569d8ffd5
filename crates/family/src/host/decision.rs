//! What NCCL decided about a server, as lines that can be compared, and how two outcomes differ.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::host::nccl::connect::channels;
use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::search::{Channel, Found, GraphKind, graphs};
use crate::host::nccl::view::{RefusedView, View};
use crate::host::nccl::width::Width;
use crate::host::place::{counted, label, short};

/// What a decision is about.  GPUs by rank, ports by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// All of it.
    Server,
    /// The GPUs that are left after trimming.
    Gpus,
    /// The ports that are left.
    Ports,
    /// How one GPU sends to another.
    Pair {
        /// Who sends.
        from: i32,
        /// Who is sent to.
        to: i32,
    },
    /// How a GPU and a port reach each other.
    Reach {
        /// The GPU.
        gpu: i32,
        /// The port.
        net: PortKey,
    },
    /// One kind of graph.
    Graph(GraphKind),
    /// The ports that a GPU's channels use in turn.
    PortsOf(i32),
    /// The GPU that serves a port.
    ServerOf(PortKey),
    /// How many channels there are.
    Channels,
    /// By which port and by whom a GPU's data leave for each place on another server, on the first
    /// channel.
    Outlets(i32),
    /// On which processors the asking rank's threads run.
    Processors,
    /// Which files are written, and by whom.
    Files,
    /// Whether a GPU waits until what a port wrote has arrived.
    Flush {
        /// The GPU.
        gpu: i32,
        /// The port.
        net: PortKey,
    },
}

/// A port: its number, and which of those that share the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortKey {
    /// NCCL's number.
    pub dev: i32,
    /// 0 for the first of that number.
    pub twin: u32,
}

/// How two GPUs of one server talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Into each other's memory.
    P2p,
    /// Through the CPU's memory.
    Shm,
    /// Over the network.
    Net,
}

/// Everything decided about a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decisions {
    lines: BTreeMap<Subject, String>,
}

/// One decision that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// About what.
    pub subject: Subject,
    /// How it was; none where it was not there.
    pub before: Option<String>,
    /// How it is; none where it is not there.
    pub after: Option<String>,
}

/// Decisions that differ alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// About what.
    pub subjects: Vec<String>,
    /// How it was.
    pub before: Option<String>,
    /// How it is.
    pub after: Option<String>,
}

impl Decisions {
    /// What the view decided.
    ///
    /// # Errors
    /// As [`View::check_p2p`] and [`graphs`].
    pub fn of(view: &View) -> Result<Decisions, RefusedView> {
        let mut lines = BTreeMap::new();
        let (widest, total) = view.widest();
        let network = if view.inter { "needs the network" } else { "needs no network" };
        let (widest, total) = (short(widest.0), short(total.0));
        let server = format!("{network}, hopes for {widest}GB/s, {total}GB/s at a GPU");
        lines.insert(Subject::Server, server);
        let rank = |it: NodeIdx| view.graph.gpu(it).rank;
        let gpus: Vec<String> = view.gpus().iter().map(|it| rank(*it).to_string()).collect();
        lines.insert(Subject::Gpus, gpus.join(" "));
        let ports = port_keys(view);
        let names: Vec<String> = ports.iter().map(|(_, key)| key.to_string()).collect();
        lines.insert(Subject::Ports, names.join(" "));
        for &a in view.gpus() {
            for &b in view.gpus() {
                if a != b {
                    let subject = Subject::Pair { from: rank(a), to: rank(b) };
                    lines.insert(subject, pair(view, a, b)?);
                }
            }
            for (net, key) in &ports {
                let subject = Subject::Reach { gpu: rank(a), net: *key };
                lines.insert(subject, reach(view, a, *net));
            }
            if let Some(line) = ports_of(view, a, &ports) {
                lines.insert(Subject::PortsOf(rank(a)), line);
            }
        }
        for ((_, key), gpu) in ports.iter().zip(&view.local_gpus) {
            let gpu = gpu
                .map_or_else(|| "no GPU".to_owned(), |it| format!("GPU{}", rank(view.gpus()[it])));
            lines.insert(Subject::ServerOf(*key), gpu);
        }
        transfers(view, &ports, &mut lines);
        lines.insert(Subject::Processors, processors(view));
        lines.insert(Subject::Files, files(view));
        let found = graphs(view)?.found;
        if let Ok(channels) = channels(view, &found) {
            lines.insert(Subject::Channels, channels_line(view, channels));
        }
        for found in found.into_iter().filter(|it| !it.channels.is_empty()) {
            let line = graph_line(view, &found, &ports);
            lines.insert(Subject::Graph(found.kind), line);
        }
        Ok(Decisions { lines })
    }

    /// Each decision in words.
    pub fn lines(&self) -> impl Iterator<Item = (Subject, &str)> {
        self.lines.iter().map(|(subject, line)| (*subject, line.as_str()))
    }

    /// One decision in words.
    pub fn line(&self, subject: Subject) -> Option<&str> {
        self.lines.get(&subject).map(String::as_str)
    }

    /// What is decided otherwise in `after`.
    pub fn differences(&self, after: &Decisions) -> Vec<Difference> {
        let mut subjects: Vec<Subject> =
            self.lines.keys().chain(after.lines.keys()).copied().collect();
        subjects.sort_unstable();
        subjects.dedup();
        let mut out = Vec::new();
        for subject in subjects {
            let (old, new) = (self.lines.get(&subject), after.lines.get(&subject));
            // What a part that came or went does besides is not worth a line.
            if old != new && (subject.order() < DETAILS || (old.is_some() && new.is_some())) {
                out.push(Difference { subject, before: old.cloned(), after: new.cloned() });
            }
        }
        out
    }
}

/// Where NCCL binds the asking rank's threads: to what is near its GPU.
fn processors(view: &View) -> String {
    let gpu = view.graph.gpu_of_rank(view.ask.rank);
    let Some(cpu) = gpu.and_then(|it| view.local_cpu(it).ok()) else { return "any".to_owned() };
    let cpu = label(&view.graph, cpu);
    if view.ask.settings.ignore_affinity {
        format!("all of {cpu}, whatever the process was bound to")
    } else {
        format!("those of {cpu} that the process may use")
    }
}

fn files(view: &View) -> String {
    let what = ["the topology", "the graphs"].into_iter().zip(&view.ask.settings.dumps);
    let written = what.filter_map(|(what, (file, rank))| {
        file.as_ref().map(|file| format!("rank {rank} writes {what} to {file}"))
    });
    let written = written.collect::<Vec<_>>().join(", ");
    if written.is_empty() { "none are written".to_owned() } else { written }
}

/// Differences that read alike stand together, in the order of the first of each.
pub fn grouped(differences: &[Difference]) -> Vec<Differences> {
    let mut out: Vec<(u8, Differences)> = Vec::new();
    for it in differences {
        let kind = it.subject.order();
        let alike = |other: &&mut (u8, Differences)| {
            other.0 == kind && other.1.before == it.before && other.1.after == it.after
        };
        let subject = it.subject.to_string();
        match out.iter_mut().find(alike) {
            Some((_, group)) => group.subjects.push(subject),
            None => {
                let (before, after) = (it.before.clone(), it.after.clone());
                out.push((kind, Differences { subjects: vec![subject], before, after }));
            }
        }
    }
    out.into_iter().map(|(_, group)| group).collect()
}

/// How `a` sends to `b` inside the server.
///
/// # Errors
/// As [`View::check_p2p`].
pub fn transport(view: &View, a: NodeIdx, b: NodeIdx) -> Result<Transport, RefusedView> {
    // NCCL tries P2P, shared memory, the network, in this order, in every version.
    Ok(if view.can_p2p(a, b)? {
        Transport::P2p
    } else if view.can_shm(a, b) {
        Transport::Shm
    } else {
        Transport::Net
    })
}

/// The ports in order, each with its key.
pub fn port_keys(view: &View) -> Vec<(NodeIdx, PortKey)> {
    let mut seen: BTreeMap<i32, u32> = BTreeMap::new();
    let key = |net: &NodeIdx| {
        let dev = view.graph.net(*net).dev;
        let count = seen.entry(dev).or_insert(0);
        let twin = std::mem::replace(count, *count + 1);
        (*net, PortKey { dev, twin })
    };
    view.nets().iter().map(key).collect()
}

impl Subject {
    fn order(self) -> u8 {
        match self {
            Subject::Server => 0,
            Subject::Gpus => 1,
            Subject::Ports => 2,
            Subject::Pair { .. } => 3,
            Subject::Reach { .. } => 4,
            Subject::Graph(_) => 5,
            Subject::PortsOf(_) => 6,
            Subject::ServerOf(_) => 7,
            Subject::Channels => DETAILS,
            Subject::Outlets(_) => DETAILS + 1,
            Subject::Flush { .. } => DETAILS + 2,
            Subject::Processors => DETAILS + 3,
            Subject::Files => DETAILS + 4,
        }
    }
}

/// The order from which on subjects are details of others.
const DETAILS: u8 = 8;

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Server => f.write_str("server"),
            Subject::Gpus => f.write_str("GPUs"),
            Subject::Ports => f.write_str("ports"),
            Subject::Pair { from, to } => write!(f, "GPU{from}-GPU{to}"),
            Subject::Reach { gpu, net } => write!(f, "GPU{gpu}-{net}"),
            Subject::Graph(kind) => f.write_str(kind.name()),
            Subject::PortsOf(gpu) => write!(f, "ports of GPU{gpu}"),
            Subject::ServerOf(net) => write!(f, "GPU of {net}"),
            Subject::Channels => f.write_str("channels"),
            Subject::Processors => f.write_str("processors"),
            Subject::Files => f.write_str("files"),
            Subject::Outlets(gpu) => write!(f, "GPU{gpu} to other servers"),
            Subject::Flush { gpu, net } => write!(f, "flush of {net} into GPU{gpu}"),
        }
    }
}

impl fmt::Display for PortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NET{}", self.dev)?;
        if self.twin > 0 { write!(f, "#{}", self.twin + 1) } else { Ok(()) }
    }
}

impl Transport {
    /// NCCL's word.
    pub fn name(self) -> &'static str {
        match self {
            Transport::P2p => "P2P",
            Transport::Shm => "SHM",
            Transport::Net => "NET",
        }
    }
}

/// By which port a GPU sends to each place on another server, and what is flushed.
fn transfers(view: &View, ports: &[(NodeIdx, PortKey)], lines: &mut BTreeMap<Subject, String>) {
    let rank = |it: NodeIdx| view.graph.gpu(it).rank;
    for &gpu in view.gpus() {
        for (net, key) in ports {
            let flush = if view.needs_flush(gpu, *net) { "flushed" } else { "not flushed" };
            lines.insert(Subject::Flush { gpu: rank(gpu), net: *key }, flush.to_owned());
        }
        // 2.7 knows no sending in another's place.
        if view.graph.profile.is_seed() || !view.inter {
            continue;
        }
        let mut outlets: Vec<(String, Vec<String>)> = Vec::new();
        for &twin in view.gpus() {
            let Some(outlet) = view.outlet(gpu, twin, 0) else { continue };
            let Some((_, key)) = ports.iter().find(|it| it.0 == outlet.net) else { continue };
            let mut way = key.to_string();
            if outlet.proxy != gpu {
                way.push_str(&format!(" by GPU{}", rank(outlet.proxy)));
            }
            let place = format!("GPU{}", rank(twin));
            match outlets.iter_mut().find(|it| it.0 == way) {
                Some((_, places)) => places.push(place),
                None => outlets.push((way, vec![place])),
            }
        }
        let to = |(way, places): &(String, Vec<String>)| format!("{way} to {}", places.join(" "));
        let line = match outlets.as_slice() {
            [] => continue,
            [(way, _)] => way.clone(),
            _ => outlets.iter().map(to).collect::<Vec<_>>().join(" | "),
        };
        lines.insert(Subject::Outlets(rank(gpu)), line);
    }
}

fn channels_line(view: &View, channels: usize) -> String {
    let transfers = view.p2p_channels(channels);
    let mut line = format!("{channels} for collectives, {transfers} for sends and receives");
    if view.graph.profile.keeps_ports() {
        let each = view.channels_per_peer().min(transfers as i64);
        line.push_str(&format!(", {each} to each peer"));
    }
    line
}

fn pair(view: &View, a: NodeIdx, b: NodeIdx) -> Result<String, RefusedView> {
    let (path, p2p) = (view.path(a, b), view.check_p2p(a, b)?);
    let transport = transport(view, a, b)?;
    let mut line = format!("{} over {}", transport.name(), way(path.kind, path.width));
    if transport == Transport::P2p {
        if let Some(via) = p2p.via {
            line.push_str(&format!(" by way of GPU{}", view.graph.gpu(via).rank));
        }
        if p2p.read {
            line.push_str(", reading");
        }
    }
    Ok(line)
}

fn reach(view: &View, gpu: NodeIdx, net: NodeIdx) -> String {
    let path = view.path(gpu, net);
    let gdr = match (view.check_gdr(gpu, net, true), view.check_gdr(gpu, net, false)) {
        (true, true) => "GDR",
        (true, false) => "GDR for sending",
        (false, true) => "GDR for receiving",
        (false, false) => "no GDR",
    };
    let mut line = format!("{gdr} over {}", way(path.kind, path.width));
    let proxy = view.proxy(gpu, net);
    if proxy != gpu {
        line.push_str(&format!(" by GPU{}", view.graph.gpu(proxy).rank));
    }
    line
}

fn way(kind: PathKind, width: Width) -> String {
    format!("{} {}GB/s", kind.name(), short(width.0))
}

/// The ports of the first channels, up to where they repeat.
fn ports_of(view: &View, gpu: NodeIdx, ports: &[(NodeIdx, PortKey)]) -> Option<String> {
    if view.graph.profile.is_seed() {
        return None;
    }
    let own = view.graph.kind(NodeKind::Net).len();
    let mut names: Vec<String> = Vec::new();
    for channel in 0..own {
        let net = view.local_net(gpu, channel)?;
        let name = ports.iter().find(|(it, _)| *it == net)?.1.to_string();
        if names.contains(&name) {
            break;
        }
        names.push(name);
    }
    (!names.is_empty()).then(|| names.join(" "))
}

/// Channels, what each carries, and the orders of ranks with how often each is used.
fn graph_line(view: &View, found: &Found, ports: &[(NodeIdx, PortKey)]) -> String {
    let kind = |it: PathKind| it.name();
    let mut line = format!(
        "{} of {}GB/s over {}",
        counted(found.channels.len(), "channel"),
        short(found.intra.0),
        kind(found.kind_intra)
    );
    if found.channels.iter().any(|it| it.nets.is_some()) {
        let inter = (short(found.inter.0), kind(found.kind_inter));
        line.push_str(&format!(", between servers {}GB/s over {}", inter.0, inter.1));
    }
    // What a port costs by itself, which the choice of algorithms counts in.
    if found.latency != 0.0 {
        line.push_str(&format!(", {} us at a port", short(found.latency)));
    }
    let mut orders: Vec<(String, usize)> = Vec::new();
    for channel in &found.channels {
        let order = order(view, channel, ports);
        match orders.iter_mut().find(|it| it.0 == order) {
            Some((_, times)) => *times += 1,
            None => orders.push((order, 1)),
        }
    }
    let times = |times: usize| if times == 1 { String::new() } else { format!(" x{times}") };
    let orders: Vec<String> =
        orders.into_iter().map(|(order, n)| format!("{order}{}", times(n))).collect();
    format!("{line}: {}", orders.join(" | "))
}

fn order(view: &View, channel: &Channel, ports: &[(NodeIdx, PortKey)]) -> String {
    let port = |id: u64| {
        let known = ports.iter().find(|(it, _)| view.graph.node(*it).id == id);
        known.map_or_else(|| "NET?".to_owned(), |(_, key)| key.to_string())
    };
    let ranks: Vec<String> = channel.ranks.iter().map(i32::to_string).collect();
    match channel.nets {
        Some([first, last]) => format!("{} {} {}", port(first), ranks.join(" "), port(last)),
        None => ranks.join(" "),
    }
}
