//! What a log of NCCL's says of a server: its tree, its paths and what was decided about them, as
//! `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET` writes them, in the forms of 2.7 to 2.30.
//!
//! A log is of many ranks whose lines alternate, with whatever a launcher writes before them.  Each
//! line belongs to the thread that its `host:process:thread` names; one thread's tree and paths are
//! taken, the first's that spells them out or the asked rank's.  What is decided between two GPUs
//! or for a port is read from all threads of that host.
//!
//! `tree` reads the tree; widths in it and in paths are rounded to one place by NCCL itself.

mod tree;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::host::level::Release;
use crate::host::matrix::{Cell, Mark, Matrix};
use crate::host::message::version_in;
use crate::host::nccl::graph::{Graph, Link, LinkKind, NodeIdx, NodeKind};
use crate::host::nccl::path::{PathKind, Paths, SearchRules};
use crate::host::nccl::profile::Profile;
use crate::host::place::{label, numa};

/// A server as a log tells it.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The version that wrote it, where the log says so.
    pub release: Option<Release>,
    /// The nearest version whose rules are known here.
    pub profile: Profile,
    /// How far apart GPUs and ports are.
    pub matrix: Matrix,
    /// The tree; none where the log has none.
    pub graph: Option<Graph>,
    /// What was amiss in the log.
    pub notes: Vec<String>,
    ways: BTreeMap<(Named, Named), Way>,
}

/// Why a text is no such log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLog {
    /// No line is NCCL's.
    #[error(
        "neither a topology file nor a log of NCCL's: a file begins with <system, a log has \
         lines with \"NCCL INFO\""
    )]
    NoLine,
    /// Its lines are of other subsystems.
    #[error(
        "a log of NCCL's that spells out neither a tree nor paths; write it with NCCL_DEBUG=INFO \
         NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET"
    )]
    NoGraph,
    /// That rank wrote nothing of it.
    #[error("rank {rank} spells out neither a tree nor paths in this log; {present}")]
    NoRank {
        /// The rank.
        rank: i32,
        /// Who does.
        present: String,
    },
}

/// A way through the tree, as far as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedWay {
    /// The nodes in order.
    pub nodes: Vec<NodeIdx>,
    /// How far.
    pub kind: PathKind,
    /// The narrowest link on it, GB/s.
    pub gb_per_s: f32,
    /// How many hops.
    pub count: u32,
}

/// Why a way cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWay {
    /// The log has no tree.
    #[error("the log has no tree, so no way can be drawn")]
    NoTree,
    /// It says nothing of these two.
    #[error("the log says nothing of the way from {from} to {to}")]
    Untold {
        /// One end.
        from: String,
        /// The other.
        to: String,
    },
    /// No way through its tree is what it says.
    #[error("the log's way from {from} to {to}, {said}, is not in its own tree")]
    Elsewhere {
        /// One end.
        from: String,
        /// The other.
        to: String,
        /// What it says.
        said: String,
    },
}

/// A part as a log names it: its kind and NCCL's id without the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    is_net: bool,
    id: String,
}

type Way = (PathKind, f32, u32);

/// What one thread wrote.
#[derive(Default)]
struct Thread {
    name: String,
    rank: Option<i32>,
    tree: tree::Lines,
    ends: Vec<Named>,
    ways: BTreeMap<(Named, Named), Way>,
}

/// What all threads of one host wrote.
#[derive(Default)]
struct Host {
    /// Ranks by the GPU's id.
    ranks: BTreeMap<String, i32>,
    /// By GPU and port, whether sending and receiving are told to be direct.
    gdr: BTreeMap<(Gpu, Port), [bool; 2]>,
    /// Pairs of ranks that do without P2P.
    no_p2p: BTreeSet<(i32, i32)>,
    /// Whether it is told of any pair of GPUs how they talk.
    tells_p2p: bool,
    /// Whether it is told of any GPU and port whether they talk directly.
    tells_gdr: bool,
}

/// A GPU as lines about GPUDirect RDMA name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Gpu {
    Id(String),
    Rank(i32),
}

/// A port as they name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Port {
    /// In sixteens, as elsewhere.
    Id(String),
    /// In tens.
    Number(u64),
    /// In tens where ids have no host, as up to 2.20; in sixteens from then on.
    Either(String),
}

/// What the log says of a server; of several ranks as `rank` sees it, else as the first that spells
/// it out.
///
/// # Errors
/// If it says nothing of the kind.
pub fn read(log: &str, rank: Option<i32>) -> Result<Logged, NoLog> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    let mut is_nccl = false;
    for line in log.lines() {
        is_nccl |= line.contains("NCCL");
        let (owner, text) = split(line);
        let at = *places.entry(owner).or_insert_with(|| {
            threads.push(Thread { name: owner.to_owned(), ..Thread::default() });
            threads.len() - 1
        });
        let host = hosts.entry(host_of(owner).to_owned()).or_default();
        threads[at].line(text, host);
        host.line(text);
    }
    let told = |it: &&Thread| !it.ways.is_empty() || !it.tree.is_empty();
    let thread = match rank {
        Some(rank) => threads.iter().filter(told).find(|it| it.rank == Some(rank)),
        // The whole of it first, then what there is.
        None => {
            let whole = |it: &&Thread| !it.ways.is_empty() && !it.tree.is_empty();
            let some = threads.iter().find(|it| !it.ways.is_empty());
            threads.iter().find(whole).or(some).or_else(|| threads.iter().find(told))
        }
    };
    let Some(thread) = thread else {
        return Err(match rank {
            Some(rank) if threads.iter().any(|it| told(&it)) => {
                let told = threads.iter().filter(told).filter_map(|it| it.rank);
                let told: Vec<String> = told.map(|it| it.to_string()).collect();
                let present = if told.is_empty() {
                    "it names no rank: write it with NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET".to_owned()
                } else {
                    format!("these do: {}", told.join(", "))
                };
                NoLog::NoRank { rank, present }
            }
            _ if is_nccl => NoLog::NoGraph,
            _ => NoLog::NoLine,
        });
    };
    let host = &hosts[host_of(&thread.name)];
    Ok(thread.logged(host, version_in(log)))
}

/// Whose line it is, and what it says.  Before `host:process:thread [device] NCCL INFO ` launchers
/// and clocks write what they like; a line without all that is nobody's.
fn split(line: &str) -> (&str, &str) {
    let Some((before, text)) = line.split_once("NCCL INFO ") else { return ("", line) };
    let is_thread = |word: &&str| {
        let mut parts = word.rsplitn(3, ':');
        let is_number = |it: Option<&str>| {
            it.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
        };
        is_number(parts.next()) && is_number(parts.next()) && parts.next().is_some()
    };
    (before.split_whitespace().rev().find(is_thread).unwrap_or(""), text)
}

fn host_of(thread: &str) -> &str {
    thread.rsplitn(3, ':').nth(2).unwrap_or("")
}

impl Thread {
    fn line(&mut self, text: &str, host: &mut Host) {
        if let Some((base, rest)) = text.trim().split_once(" :")
            && let Some(base) = named(base.trim())
        {
            self.ways_line(&base, rest);
        } else if let Some((rank, bus)) = init_line(text) {
            self.rank.get_or_insert(rank);
            host.ranks.entry(bus).or_insert(rank);
        } else {
            self.tree.line(text);
        }
    }

    fn ways_line(&mut self, base: &Named, rest: &str) {
        if !self.ends.contains(base) {
            if ENDS_MAX <= self.ends.len() {
                return;
            }
            self.ends.push(base.clone());
        }
        let mut words = rest.split_whitespace();
        while let (Some(name), Some(facts)) = (words.next(), words.next()) {
            let Some(end) = named(name) else { continue };
            // NCCL cuts long lines off, so the last may be half there.
            let Some(facts) = facts.strip_prefix('(').and_then(|it| it.strip_suffix(')')) else {
                continue;
            };
            let mut facts = facts.split('/');
            let parsed = (|| {
                let hops = facts.next()?.parse().ok()?;
                let width: f32 = facts.next()?.parse().ok()?;
                let name = facts.next()?;
                let kind = PathKind::ALL.into_iter().find(|it| it.name() == name)?;
                width.is_finite().then_some((kind, width, hops))
            })();
            if let Some(way) = parsed {
                self.ways.entry((base.clone(), end)).or_insert(way);
            }
        }
    }

    fn logged(&self, host: &Host, release: Option<Release>) -> Logged {
        let mut ranks = host.ranks.clone();
        ranks.extend(self.tree.ranks());
        let has_tree = !self.tree.is_empty();
        let profile = self.profile(release);
        let mut notes = Vec::new();
        let graph = has_tree.then(|| self.tree.graph(profile, &ranks, &mut notes));
        let mut ends = self.ends.clone();
        if ends.is_empty()
            && let Some(graph) = &graph
        {
            notes.push("the log has a tree and no paths".to_owned());
            let all = graph.kind(NodeKind::Gpu).iter().chain(graph.kind(NodeKind::Net));
            ends.extend(all.map(|it| Named {
                is_net: graph.node(*it).kind == NodeKind::Net,
                id: format!("{:x}", graph.node(*it).id & LOCAL),
            }));
            ends.dedup();
        }
        // GPUs by rank where it is known, then ports.
        ends.sort_by_key(|it| {
            (it.is_net, ranks.get(&it.id).copied().unwrap_or(i32::MAX), it.id.len(), it.id.clone())
        });
        let untold = [
            (host.tells_p2p, "which GPUs talk directly (INIT and P2P among the subsystems say so)"),
            (host.tells_gdr, "where GPUDirect RDMA is used (NET among the subsystems says so)"),
        ];
        let untold = untold.iter().filter(|it| !it.0);
        notes.extend(untold.map(|(_, what)| format!("the log does not say {what}")));
        let matrix = self.matrix(&ends, host, &ranks, (profile, graph.as_ref()));
        Logged { release, profile, matrix, graph, notes, ways: self.ways.clone() }
    }

    /// The newest version known here that is not newer than the log's; without a version the one
    /// that its tree looks like.
    fn profile(&self, release: Option<Release>) -> Profile {
        let known = Profile::ALL.into_iter().rev();
        match release {
            Some(release) => {
                let mut known = known.filter(|it| Release::of(*it) <= release);
                known.next().unwrap_or(Profile::ALL[0])
            }
            None if self.tree.has_devices() => Profile::V2_30_7,
            None if self.tree.has_hosts() => Profile::V2_27_7,
            None => Profile::V2_18_5,
        }
    }

    fn matrix(
        &self,
        ends: &[Named],
        host: &Host,
        ranks: &BTreeMap<String, i32>,
        (profile, graph): (Profile, Option<&Graph>),
    ) -> Matrix {
        let title = |it: &Named| match (it.is_net, ranks.get(&it.id)) {
            (true, _) => format!("NET{}", u32::from_str_radix(&it.id, 16).unwrap_or(0)),
            (false, Some(rank)) => format!("GPU{rank}"),
            (false, None) => format!("GPU/{}", it.id),
        };
        let mut matrix = Matrix { ends: ends.iter().map(title).collect(), ..Matrix::default() };
        for from in ends {
            let cells: Vec<Option<Cell>> =
                ends.iter().map(|to| self.cell(from, to, host, ranks, profile)).collect();
            let node = graph.and_then(|graph| find(graph, from));
            let others = cells.iter().zip(ends).filter(|(_, to)| !to.is_net && *to != from);
            let widest = others.filter_map(|it| it.0.map(|it| it.gb_per_s)).reduce(f32::max);
            matrix.widths.push(match (from.is_net, graph.zip(node)) {
                (true, Some((graph, node))) => Some(graph.net(node).width.0),
                (true, None) => None,
                (false, _) => widest.filter(|_| graph.is_some()),
            });
            let cpu = graph.zip(node).and_then(|(graph, node)| cpu_above(graph, node));
            let cpu = cpu.filter(|_| !from.is_net).zip(graph);
            matrix.cpus.push(cpu.map(|(cpu, graph)| numa(graph, cpu)));
            matrix.cells.push(cells);
        }
        matrix
    }

    fn cell(
        &self,
        from: &Named,
        to: &Named,
        host: &Host,
        ranks: &BTreeMap<String, i32>,
        profile: Profile,
    ) -> Option<Cell> {
        let (kind, gb_per_s, hops) = *self.ways.get(&(from.clone(), to.clone()))?;
        let in_tens = !profile.has_hosts();
        let rank = |it: &Named| ranks.get(&it.id).copied();
        let mark = match (from.is_net, to.is_net) {
            (false, false) => {
                let off = rank(from).zip(rank(to)).is_some_and(|it| host.no_p2p.contains(&it));
                match off {
                    true => Mark::NoP2p,
                    false if from == to || host.tells_p2p => Mark::None,
                    false => Mark::Untold,
                }
            }
            (true, true) => Mark::None,
            (true, false) => host.gdr_mark(to, rank(to), from, in_tens),
            (false, true) => host.gdr_mark(from, rank(from), to, in_tens),
        };
        Some(Cell { kind: kind.name(), gb_per_s, hops, mark })
    }
}

/// GPUs and ports of one server: NCCL's own tables hold 576 of a kind.
const ENDS_MAX: usize = 1 << 10;

/// Bits of an id that are not the host's.
const LOCAL: u64 = u64::MAX >> 8;

fn find(graph: &Graph, it: &Named) -> Option<NodeIdx> {
    let id = u64::from_str_radix(&it.id, 16).ok()?;
    let kind = if it.is_net { NodeKind::Net } else { NodeKind::Gpu };
    graph.kind(kind).iter().copied().find(|it| graph.node(*it).id & LOCAL == id)
}

/// The CPU nearest to a part by way of bridges, of which one may hang beside another.
fn cpu_above(graph: &Graph, node: NodeIdx) -> Option<NodeIdx> {
    let mut seen = BTreeSet::from([graph.seat(node)]);
    let mut todo = VecDeque::from([graph.seat(node)]);
    while let Some(at) = todo.pop_front() {
        for link in &graph.node(at).links {
            let leads = matches!(link.kind, LinkKind::Pci | LinkKind::C2c | LinkKind::Net);
            match graph.node(link.peer).kind {
                NodeKind::Cpu if leads => return Some(link.peer),
                NodeKind::Pci if leads && seen.insert(link.peer) => todo.push_back(link.peer),
                _ => (),
            }
        }
    }
    None
}

impl Host {
    fn line(&mut self, text: &str) {
        self.gdr_line(text);
        self.via_line(text);
    }

    /// Up to 2.21 `GPU Direct RDMA Enabled for GPU 7000 / HCA 0 (distance 4 <= 4), read 1`, then
    /// the rank in place of the id, from 2.29 on the id in tens:
    /// `… for GPU/0-28672 (rank 0) - NET/0-0 (distance 4 <= 6, read 1, mode Default)`.
    fn gdr_line(&mut self, text: &str) {
        self.tells_gdr |= text.contains("GPU Direct RDMA Enabled for GPU")
            || text.contains("GPU Direct RDMA Disabled for GPU");
        let Some((_, rest)) = text.split_once("GPU Direct RDMA Enabled for GPU") else { return };
        let rest = rest.trim_end();
        let mut words = rest.trim_start_matches(['/', ' ']).split_whitespace();
        let Some(first) = words.next() else { return };
        let (gpu, net) = if let Some((_, after)) = rest.split_once("(rank ") {
            let rank = after.split(')').next().and_then(|it| it.parse().ok());
            let net = after.split_once("NET/").and_then(|it| it.1.split_whitespace().next());
            if let (Some(rank), Ok(id)) = (rank, local_id(first).parse::<u64>()) {
                self.ranks.entry(format!("{id:x}")).or_insert(rank);
            }
            let net = net.and_then(|it| local_id(it).parse().ok());
            (rank.map(Gpu::Rank), net.map(Port::Number))
        } else {
            let net = words.skip_while(|it| *it != "HCA").nth(1).map(local_id);
            if rest.contains(" mode ") {
                (first.parse().ok().map(Gpu::Rank), net.map(Port::Id))
            } else {
                (Some(Gpu::Id(local_id(first))), net.map(Port::Either))
            }
        };
        let (Some(gpu), Some(net)) = (gpu, net) else { return };
        let marks = self.gdr.entry((gpu, net)).or_default();
        match rest.split_once("read ").map(|it| it.1.as_bytes().first()) {
            Some(Some(b'1')) => marks[0] = true,
            Some(_) => marks[1] = true,
            None => *marks = [true, true],
        }
    }

    /// `Channel 00/0 : 0[7000] -> 1[f000] via SHM/direct`.
    fn via_line(&mut self, text: &str) {
        let Some((ends, via)) = text.split_once(" via ") else { return };
        let Some((from, to)) = ends.split_once(" -> ") else { return };
        let number = |text: &str| text.split('[').next().and_then(|it| it.trim().parse().ok());
        let from = from.rsplit([' ', ':']).find(|it| !it.is_empty()).and_then(number);
        let (Some(from), Some(to)) = (from, number(to)) else { return };
        self.tells_p2p = true;
        if !via.starts_with("P2P") {
            self.no_p2p.insert((from, to));
        }
    }

    /// `in_tens` where the version counts ports so and does not show it.
    fn gdr_mark(&self, gpu: &Named, rank: Option<i32>, net: &Named, in_tens: bool) -> Mark {
        let number = u64::from_str_radix(&net.id, 16).unwrap_or(u64::MAX);
        let either = if in_tens { number.to_string() } else { net.id.clone() };
        let ports = [Port::Id(net.id.clone()), Port::Number(number), Port::Either(either)];
        let gpus = [Some(Gpu::Id(gpu.id.clone())), rank.map(Gpu::Rank)];
        let all = gpus.iter().flatten().flat_map(|gpu| ports.iter().map(move |it| (gpu, it)));
        let known = all.filter_map(|(gpu, port)| self.gdr.get(&(gpu.clone(), port.clone())));
        match known.copied().reduce(|a, b| [a[0] || b[0], a[1] || b[1]]) {
            // NCCL writes of every pair whether it receives so, and only of the ports in use
            // whether it sends so.
            Some([true, true]) => Mark::Gdr,
            Some([true, false]) => Mark::GdrSendAtLeast,
            Some([false, true]) => Mark::GdrReceiveAtLeast,
            _ if self.tells_gdr => Mark::None,
            _ => Mark::Untold,
        }
    }
}

/// A log's server, to be written as JSON.
#[derive(Debug, Serialize)]
pub struct LoggedJson<'l> {
    /// The version that wrote the log, where it says so.
    pub nccl: Option<Release>,
    /// Ends, kinds, widths and marks.
    #[serde(flatten)]
    pub matrix: &'l Matrix,
    /// The tree.
    pub nodes: Vec<NodeJson>,
    /// What was amiss.
    pub notes: &'l [String],
}

/// One node of a log's tree, with the keys of `topo dump`.
#[derive(Debug, Serialize)]
pub struct NodeJson {
    /// Its kind.
    pub t: &'static str,
    /// Its place among its kind.
    pub i: usize,
    /// Its id, in sixteens.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Kind, width in GB/s, and the kind and place of the far end of each link.
    pub links: Vec<(&'static str, f32, &'static str, usize)>,
}

impl Logged {
    /// All of it, to be written as JSON.
    pub fn json(&self) -> LoggedJson<'_> {
        let node = |graph: &Graph, at: NodeIdx| {
            let it = graph.node(at);
            let link = |it: &Link| {
                let peer = graph.node(it.peer);
                (it.kind.name(), it.width.0, peer.kind.name(), peer.pos)
            };
            let links = it.links.iter().map(link).collect();
            let (t, id) = (it.kind.name(), format!("{:x}", it.id));
            NodeJson { t, i: it.pos, id, name: label(graph, at), links }
        };
        let nodes = |graph: &Graph| -> Vec<NodeJson> {
            let kinds = NodeKind::ALL.into_iter();
            kinds.flat_map(|it| graph.kind(it)).map(|it| node(graph, *it)).collect()
        };
        LoggedJson {
            nccl: self.release,
            matrix: &self.matrix,
            nodes: self.graph.as_ref().map(nodes).unwrap_or_default(),
            notes: &self.notes,
        }
    }

    /// The nodes on the way between two: the way of that version's rules through the log's tree
    /// where it is what the log says, else one by a CPU or a GPU that is.
    ///
    /// # Errors
    /// If the log says nothing of these two, or what is not in its tree.
    pub fn way(&self, from: NodeIdx, to: NodeIdx) -> Result<LoggedWay, NoWay> {
        let graph = self.graph.as_ref().ok_or(NoWay::NoTree)?;
        let name = |node: NodeIdx| Named {
            is_net: graph.node(node).kind == NodeKind::Net,
            id: format!("{:x}", graph.node(node).id & LOCAL),
        };
        let ends = || (label(graph, from), label(graph, to));
        let Some(&(kind, gb_per_s, count)) = self.ways.get(&(name(from), name(to))) else {
            let (from, to) = ends();
            return Err(NoWay::Untold { from, to });
        };
        let mut paths = Paths::new(graph);
        for of in [NodeKind::Cpu, NodeKind::Gpu, NodeKind::Net] {
            for &base in graph.kind(of) {
                // A link that leads one way only takes no way with it but its own.
                let _ = paths.search(graph, base, SearchRules { bridges: true });
            }
        }
        let walk = |from: NodeIdx, to: NodeIdx| {
            let path = paths.between(graph, from, to);
            let hops = paths.hops(path).iter();
            let mut nodes = vec![from];
            nodes.extend(hops.map(|it| graph.node(it.node).links[it.link as usize].peer));
            (path.count > 0 && nodes.last() == Some(&to)).then_some((path, nodes))
        };
        if let Some((path, nodes)) = walk(from, to)
            && (path.kind, path.count) == (kind, count)
        {
            return Ok(LoggedWay { nodes, kind, gb_per_s, count });
        }
        let middles = match kind {
            PathKind::Pxn => graph.kind(NodeKind::Gpu),
            _ => graph.kind(NodeKind::Cpu),
        };
        let by = |middle: &NodeIdx| {
            let ((first, mut nodes), (second, rest)) = (walk(from, *middle)?, walk(*middle, to)?);
            nodes.extend(&rest[1..]);
            (first.count + second.count == count).then_some(nodes)
        };
        let nodes = middles.iter().find_map(by).ok_or_else(|| {
            let ((from, to), said) = (ends(), format!("{} in {count} hops", kind.name()));
            NoWay::Elsewhere { from, to, said }
        })?;
        Ok(LoggedWay { nodes, kind, gb_per_s, count })
    }
}

/// `ncclCommInitRank comm 0x5 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId c1000 commId 0x9 - Init …`:
/// rank and bus id.
fn init_line(text: &str) -> Option<(i32, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|it| *it == name)?;
        words.get(at + 1).copied()
    };
    after("nranks")?;
    let bus = after("busId")?;
    u64::from_str_radix(bus.trim_start_matches("0x"), 16).ok()?;
    Some((after("rank")?.parse().ok()?, local_id(bus)))
}

/// `GPU/0-7000` or `NET/1`; of other kinds nothing, nor of `NET/Socket`, as NCCL calls who carries.
fn named(text: &str) -> Option<Named> {
    let (kind, id) = text.split_once('/')?;
    let is_net = match kind {
        "GPU" => false,
        "NET" => true,
        _ => return None,
    };
    let id = local_id(id);
    let is_number = !id.is_empty() && id.bytes().all(|it| it.is_ascii_hexdigit());
    is_number.then_some(Named { is_net, id })
}

/// An id without the host's number, in small letters.
fn local_id(text: &str) -> String {
    let id = text.rsplit(['-', '/']).next().unwrap_or(text);
    id.trim_start_matches("0x").to_ascii_lowercase()
}
