//! Why two GPUs may reach each other's memory or not, why a port may reach a GPU's or not, and
//! what would change that.
//!
//! Nothing here is looked up in a table of answers: the rule is the one that took the decision,
//! and a change is named only after it was made and the decision was seen to flip.  At most
//! `TRIES` outcomes are computed for one explanation, each once for all explanations of one
//! [`Lab`].

pub mod ring;

mod words;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use serde::Serialize;

use crate::host::change::{Change, NoAnswer, Question};
use crate::host::decision::{PortKey, Transport, port_keys, transport};
use crate::host::level::{Release, Scheme};
use crate::host::nccl::graph::{Link, LinkKind, NodeIdx, NodeKind};
use crate::host::nccl::path::{Hop, PathKind};
use crate::host::nccl::verdict::{GdrRule, LimitSource, P2pRule};
use crate::host::nccl::view::{RefusedView, View};
use crate::host::place::{PlaceName, label};

/// Outcomes that one explanation computes at most.
const TRIES: usize = 64;

/// Changes that one way out consists of at most.
const DEPTH: usize = 4;

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pair {
    /// Whether a port reaches a GPU's memory.
    Gdr {
        /// The GPU's rank.
        gpu: i32,
        /// The port.
        net: PortKey,
        /// Whether for sending, which reads the memory, or for receiving, which writes it.
        send: bool,
    },
    /// Whether a GPU reaches another's memory.
    P2p {
        /// One rank.
        a: i32,
        /// The other.
        b: i32,
    },
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Containers that share no memory.
    Containers,
    /// A distance against a limit.
    Distance {
        /// The path's kind.
        distance: PathKind,
        /// The farthest that is taken.
        limit: PathKind,
        /// Who set it.
        source: LimitSource,
        /// Whose distance: the rank itself, or the one that sends for it under PXN.
        proxy: Option<i32>,
    },
    /// The driver reports P2P broken.
    Broken {
        /// NVML's number of one.
        a: i32,
        /// And of the other.
        b: i32,
        /// Whether NCCL gives up because of it.
        fatal: bool,
    },
    /// The network is faster than the way inside the server.
    Network,
    /// The port cannot.
    Port,
    /// The GPU cannot.
    Gpu,
    /// `NCCL_NET_GDR_READ=0`.
    ReadVariable,
    /// No NVLink peer.
    ReadPeer,
    /// One server needs no network, so this version leaves its ports out.
    NoNetwork,
}

/// A decision with the rule that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What was decided.
    pub on: bool,
    /// By what.
    pub rule: Rule,
    /// How the two then talk; only of two GPUs.
    pub transport: Option<Transport>,
}

/// A way through the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// How far, by NCCL's name.
    pub kind: &'static str,
    /// Its narrowest link, GB/s.
    pub gb_per_s: f32,
    /// From the first part.
    pub from: String,
    /// Link after link.
    pub hops: Vec<Step>,
}

/// One link of a way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The link's kind.
    pub link: &'static str,
    /// What it carries, GB/s.
    pub gb_per_s: f32,
    /// Where it ends.
    pub to: String,
    /// Whether this is the hop that makes the way as far as it is.
    pub costs: bool,
}

/// A level with its number in that version's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Its name.
    pub name: &'static str,
    /// Its number; none where this version has none for it.
    pub number: Option<usize>,
}

/// Changes that together turn the decision round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flip {
    /// What to change, as `what-if` takes it.
    pub changes: Vec<String>,
    /// What is decided then.
    pub then: String,
    #[serde(skip)]
    made: Vec<Change>,
}

/// Why a decision is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// What was asked.
    pub about: String,
    /// Whose rules.
    pub nccl: String,
    /// The rank whose decision it is.
    pub rank: i32,
    /// The decision.
    pub on: bool,
    /// How two GPUs then talk.
    pub transport: Option<Transport>,
    /// The rule, in words.
    pub because: String,
    /// What was compared.
    pub distance: Option<Level>,
    /// With what.
    pub limit: Option<Level>,
    /// The way as the search finds it.
    pub way: Option<Way>,
    /// The way that is taken where it is another one.
    pub instead: Option<Way>,
    /// What would turn the decision round; each was tried.
    pub flips: Vec<Flip>,
    /// Why nothing turns it round, where nothing does.
    pub fixed: Option<String>,
    /// Ports that this GPU does reach with GPUDirect RDMA in this direction.
    pub near: Vec<String>,
    #[serde(skip)]
    verdict: Verdict,
}

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoExplanation {
    /// The server as a whole is refused.
    #[error(transparent)]
    Answer(#[from] NoAnswer),
    /// No such GPU.
    #[error("there is no GPU of rank {rank} here")]
    NoGpu {
        /// The rank.
        rank: i32,
    },
    /// No such port.
    #[error("there is no {net} here")]
    NoNet {
        /// The port.
        net: PortKey,
    },
}

/// A question and every outcome computed for changes to it.
#[derive(Debug)]
pub struct Lab {
    question: Question,
    seen: RefCell<BTreeMap<Vec<Change>, Rc<Seen>>>,
}

#[derive(Debug)]
struct Seen {
    question: Question,
    view: OnceCell<Result<View, NoAnswer>>,
    whole: OnceCell<Result<View, NoAnswer>>,
    /// Both before their detours.
    raw: OnceCell<View>,
    raw_whole: OnceCell<View>,
}

impl Seen {
    fn of(question: Question) -> Seen {
        let (view, whole) = (OnceCell::new(), OnceCell::new());
        Seen { question, view, whole, raw: OnceCell::new(), raw_whole: OnceCell::new() }
    }

    /// What is seen of two GPUs, and the same before detours: after trimming where both are left,
    /// else before.
    fn of_gpus(&self, a: i32, b: i32) -> Result<(&View, &View), &NoAnswer> {
        let view = self.view().as_ref()?;
        if [a, b].iter().all(|it| view.graph.gpu_of_rank(*it).is_some()) {
            return Ok((view, self.raw.get_or_init(|| view.undiverted())));
        }
        let whole = self.whole().as_ref()?;
        Ok((whole, self.raw_whole.get_or_init(|| whole.undiverted())))
    }

    fn view(&self) -> &Result<View, NoAnswer> {
        self.view.get_or_init(|| self.question.view())
    }

    fn whole(&self) -> &Result<View, NoAnswer> {
        self.whole.get_or_init(|| self.question.whole())
    }
}

impl Flip {
    /// The changes, to be made again.
    pub fn made(&self) -> &[Change] {
        &self.made
    }
}

impl Explanation {
    /// The decision and its rule.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn set_ways(&mut self, view: &View, raw: &View, ends: Option<(NodeIdx, NodeIdx)>) {
        let Some((from, to)) = ends else { return };
        // Of ports with one number NCCL knows the first's paths.
        let to = view.graph.find(view.graph.node(to).kind, view.graph.node(to).id).unwrap_or(to);
        let way = way(raw, from, to);
        let taken = self::way(view, from, to);
        if taken != way {
            self.instead = taken;
        }
        self.way = way;
    }
}

impl Lab {
    /// For that question.
    pub fn new(question: Question) -> Lab {
        Lab { question, seen: RefCell::default() }
    }

    /// The decision after some changes.
    ///
    /// # Errors
    /// If NCCL refuses the server, or a part is not there.
    pub fn verdict(&self, pair: Pair, changes: &[Change]) -> Result<Verdict, NoExplanation> {
        let seen = self.seen(changes);
        match pair {
            Pair::P2p { a, b } => judge_p2p(&seen, a, b),
            Pair::Gdr { gpu, net, send } => {
                let seen = self.by_rank(&seen, changes, gpu);
                judge_gdr(&seen, gpu, net, send)
            }
        }
    }

    /// The decision, its rule, what it costs and what flips it.
    ///
    /// # Errors
    /// If NCCL refuses the server, or a part is not there.
    pub fn explain(&self, pair: Pair) -> Result<Explanation, NoExplanation> {
        let verdict = self.verdict(pair, &[])?;
        let flips = self.flips(pair, verdict);
        let mut explanation = Explanation {
            about: words::about(pair),
            nccl: self.question.profile.to_string(),
            rank: self.question.rank,
            on: verdict.on,
            transport: verdict.transport,
            because: String::new(),
            distance: None,
            limit: None,
            way: None,
            instead: None,
            fixed: None,
            near: Vec::new(),
            flips,
            verdict,
        };
        if let Rule::Distance { distance, limit, .. } = verdict.rule {
            explanation.distance = Some(self.level(distance));
            explanation.limit = Some(self.level(limit));
        }
        self.add_ways(pair, &mut explanation);
        explanation.because = words::because(pair, verdict, &explanation);
        if explanation.flips.is_empty() {
            explanation.fixed = Some(words::fixed(pair, verdict));
        }
        Ok(explanation)
    }

    fn level(&self, kind: PathKind) -> Level {
        let scheme = Scheme::of(Release::of(self.question.profile));
        Level { name: kind.name(), number: scheme.and_then(|it| it.number(kind)) }
    }

    fn seen(&self, changes: &[Change]) -> Rc<Seen> {
        let mut seen = self.seen.borrow_mut();
        let known = seen.entry(changes.to_vec()).or_insert_with(|| {
            // Every change here is made from parts that were found, so that they are there.
            let question =
                self.question.with_all(changes).unwrap_or_else(|_| self.question.clone());
            Rc::new(Seen::of(question))
        });
        Rc::clone(known)
    }

    /// What the GPU's own rank sees, where trimming took it from the view of the one that asks:
    /// its own NCCL decides about its ports.
    fn by_rank(&self, seen: &Rc<Seen>, changes: &[Change], gpu: i32) -> Rc<Seen> {
        match seen.view() {
            Ok(view) if view.graph.gpu_of_rank(gpu).is_none() => {
                let mut changes = changes.to_vec();
                changes.push(Change::Rank(gpu));
                self.seen(&changes)
            }
            _ => Rc::clone(seen),
        }
    }

    /// Breadth first through the changes that each rule suggests, until the decision is another.
    /// Of those that set one variable only the first that helps is kept: the smallest step.
    fn flips(&self, pair: Pair, verdict: Verdict) -> Vec<Flip> {
        let mut flips: Vec<Flip> = Vec::new();
        let mut names = BTreeSet::new();
        let mut tried = BTreeSet::new();
        let mut todo = VecDeque::from([(Vec::new(), verdict)]);
        while let Some((made, verdict)) = todo.pop_front() {
            for change in self.suggestions(pair, verdict, &made) {
                let mut next = without_old(&made, &change);
                let key = words::key(&change);
                if next.is_empty() && names.contains(&key) {
                    continue;
                }
                next.push(change);
                if tried.len() == TRIES || !tried.insert(next.clone()) {
                    continue;
                }
                let Ok(then) = self.verdict(pair, &next) else { continue };
                if then.on != verdict.on {
                    names.insert(key);
                    let changes = next.iter().map(Change::to_string).collect();
                    flips.push(Flip { changes, then: words::then(pair, then), made: next });
                } else if next.len() < DEPTH && flips.is_empty() {
                    todo.push_back((next, then));
                }
            }
            // The shortest ways out are all of one length.
            if !flips.is_empty() && todo.front().is_none_or(|it| it.0.len() > made.len()) {
                break;
            }
        }
        flips
    }

    fn suggestions(&self, pair: Pair, verdict: Verdict, made: &[Change]) -> Vec<Change> {
        let set = |name: &str, value: &str| Change::Set {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let attribute =
            |place| Change::Attribute { place, attr: "gdr".to_owned(), value: "1".to_owned() };
        if verdict.on {
            return match pair {
                Pair::P2p { .. } => {
                    vec![set("NCCL_P2P_DISABLE", "1"), set("NCCL_P2P_LEVEL", "LOC")]
                }
                Pair::Gdr { send, .. } => {
                    let read = send.then(|| set("NCCL_NET_GDR_READ", "0"));
                    read.into_iter().chain([set("NCCL_NET_GDR_LEVEL", "LOC")]).collect()
                }
            };
        }
        match (verdict.rule, pair) {
            (Rule::Containers, _) => vec![Change::Shm { pairs: false }],
            (Rule::Network, _) => vec![set("NCCL_NET_DISABLE_INTRA", "1")],
            (Rule::NoNetwork, _) => vec![Change::Nodes(2)],
            (Rule::Broken { a, b, .. }, _) => vec![
                Change::Broken { pair: (a.min(b), a.max(b)), is_broken: false },
                set("NCCL_IGNORE_DISABLED_P2P", "2"),
            ],
            (Rule::Port, Pair::Gdr { net, .. }) => vec![attribute(PlaceName::Net(net.dev))],
            (Rule::Gpu, Pair::Gdr { gpu, .. }) => vec![attribute(PlaceName::Gpu(gpu))],
            (Rule::ReadVariable | Rule::ReadPeer, _) => vec![set("NCCL_NET_GDR_READ", "1")],
            (Rule::Distance { limit, source, .. }, _) => {
                let name = match pair {
                    Pair::P2p { .. } => "NCCL_P2P_LEVEL",
                    Pair::Gdr { .. } => "NCCL_NET_GDR_LEVEL",
                };
                self.levels(name, limit, source, made)
            }
            (Rule::Port | Rule::Gpu, Pair::P2p { .. }) => Vec::new(),
        }
    }

    /// The levels beyond the limit, nearest first; and no level at all where one was set.
    fn levels(
        &self,
        name: &str,
        limit: PathKind,
        source: LimitSource,
        made: &[Change],
    ) -> Vec<Change> {
        let profile = self.question.profile;
        let mut out = Vec::new();
        let is_set = |name: &str| self.question.env.iter().any(|(it, _)| it == name);
        if source == LimitSource::Variable && made.is_empty() {
            let names = [name, "NCCL_P2P_DISABLE"];
            let names = names.into_iter().filter(|it| is_set(it));
            let names = names.filter(|it| name == "NCCL_P2P_LEVEL" || *it == name);
            out.extend(names.map(|it| Change::Unset { name: it.to_owned() }));
        }
        let farther = PathKind::ALL
            .into_iter()
            .filter(|it| *it > limit && *it <= PathKind::Sys && it.exists_in(profile));
        out.extend(
            farther.map(|it| Change::Set { name: name.to_owned(), value: it.name().to_owned() }),
        );
        out
    }

    fn add_ways(&self, pair: Pair, explanation: &mut Explanation) {
        let seen = self.seen(&[]);
        match pair {
            Pair::P2p { a, b } => {
                let Ok((view, raw)) = seen.of_gpus(a, b) else { return };
                let ends = view.graph.gpu_of_rank(a).zip(view.graph.gpu_of_rank(b));
                explanation.set_ways(view, raw, ends);
                // NCCL notes the way inside the server all the same; nothing goes there.
                if explanation.transport == Some(Transport::Net) {
                    explanation.instead = None;
                }
            }
            Pair::Gdr { gpu, net, send } => {
                let seen = self.by_rank(&seen, &[], gpu);
                explanation.rank = seen.question.rank;
                let Ok(view) = seen.view() else { return };
                let raw = seen.raw.get_or_init(|| view.undiverted());
                let Some(gpu) = view.graph.gpu_of_rank(gpu) else { return };
                explanation.near = near(view, gpu, send);
                explanation.set_ways(view, raw, port(view, net).map(|it| (gpu, it)));
            }
        }
    }
}

/// Changes before this one, without those that it replaces.
fn without_old(made: &[Change], change: &Change) -> Vec<Change> {
    let key = words::key(change);
    made.iter().filter(|it| words::key(it) != key).cloned().collect()
}

/// The ports that the GPU reaches with GPUDirect RDMA in that direction.
fn near(view: &View, gpu: NodeIdx, send: bool) -> Vec<String> {
    let ports = port_keys(view).into_iter();
    ports.filter(|(net, _)| view.check_gdr(gpu, *net, send)).map(|(_, it)| it.to_string()).collect()
}

fn port(view: &View, key: PortKey) -> Option<NodeIdx> {
    port_keys(view).into_iter().find(|it| it.1 == key).map(|it| it.0)
}

fn judge_p2p(seen: &Seen, a: i32, b: i32) -> Result<Verdict, NoExplanation> {
    let broken = |error: &NoAnswer| match error {
        NoAnswer::Refused(RefusedView::BrokenP2p { a, b }) => {
            let rule = Rule::Broken { a: *a, b: *b, fatal: true };
            Ok(Verdict { on: false, rule, transport: None })
        }
        other => Err(NoExplanation::Answer(other.clone())),
    };
    let (view, raw) = match seen.of_gpus(a, b) {
        Ok(views) => views,
        Err(error) => return broken(error),
    };
    let gpu = |rank| view.graph.gpu_of_rank(rank).ok_or(NoExplanation::NoGpu { rank });
    let (a, b) = (gpu(a)?, gpu(b)?);
    let refused = |error| NoExplanation::Answer(NoAnswer::Refused(error));
    let transport = transport(view, a, b).map_err(refused)?;
    // What parted two GPUs for good was decided before their path was marked as parted.
    let parted = view.path(a, b).kind >= PathKind::Net;
    let view = if parted { raw } else { view };
    let p2p = view.check_p2p(a, b).map_err(refused)?;
    let on = view.can_p2p(a, b).map_err(refused)?;
    let rule = match p2p.rule {
        _ if p2p.usable && !on => Rule::Network,
        P2pRule::Containers => Rule::Containers,
        P2pRule::Broken { a, b } => Rule::Broken { a, b, fatal: false },
        P2pRule::Distance { distance, limit } => {
            let source = view.p2p_limit_and_source().1;
            Rule::Distance { distance, limit, source, proxy: None }
        }
    };
    Ok(Verdict { on, rule, transport: Some(transport) })
}

fn judge_gdr(seen: &Seen, gpu: i32, net: PortKey, send: bool) -> Result<Verdict, NoExplanation> {
    let view = seen.view().as_ref().map_err(|it| NoExplanation::Answer(it.clone()))?;
    let node = view.graph.gpu_of_rank(gpu).ok_or(NoExplanation::NoGpu { rank: gpu })?;
    let verdict = |on, rule| Ok(Verdict { on, rule, transport: None });
    let Some(port) = port(view, net) else {
        let whole = seen.whole().as_ref().map_err(|it| NoExplanation::Answer(it.clone()))?;
        let is_there = port_keys(whole).iter().any(|it| it.1 == net);
        if is_there {
            return verdict(false, Rule::NoNetwork);
        }
        return Err(NoExplanation::NoNet { net });
    };
    let gdr = view.judge_gdr(node, port, send);
    let rule = match gdr.rule {
        GdrRule::Port => Rule::Port,
        GdrRule::Gpu => Rule::Gpu,
        GdrRule::ReadVariable => Rule::ReadVariable,
        GdrRule::ReadPeer => Rule::ReadPeer,
        GdrRule::Distance { distance, limit, proxy } => {
            let source = view.gdr_limit_and_source().1;
            let proxy = (proxy != node).then(|| view.graph.gpu(proxy).rank);
            Rule::Distance { distance, limit, source, proxy }
        }
    };
    verdict(gdr.usable, rule)
}

/// The way between two parts that a view has; none where there is none.
pub fn way(view: &View, from: NodeIdx, to: NodeIdx) -> Option<Way> {
    let path = view.path(from, to);
    if path.count == 0 {
        return None;
    }
    let hops = view.paths.hops(path);
    let dear = dearest(view, hops, path.kind);
    let link = |hop: &Hop| view.graph.node(hop.node).links[hop.link as usize];
    let steps = hops.iter().enumerate().map(|(idx, hop)| {
        let link = link(hop);
        Step {
            link: link.kind.name(),
            gb_per_s: link.width.0,
            to: label(&view.graph, link.peer),
            costs: Some(idx) == dear,
        }
    });
    Some(Way {
        kind: path.kind.name(),
        gb_per_s: path.width.0,
        from: label(&view.graph, from),
        hops: steps.collect(),
    })
}

/// The hop without which a way would count as nearer.
fn dearest(view: &View, hops: &[Hop], kind: PathKind) -> Option<usize> {
    let kind_of = |node| view.graph.node(node).kind;
    let decides = |hop: &Hop, link: Link| {
        let ends = [kind_of(hop.node), kind_of(link.peer)];
        match kind {
            PathKind::Sys => link.kind == LinkKind::Sys,
            PathKind::Phb => link.kind == LinkKind::Pci && ends.contains(&NodeKind::Cpu),
            PathKind::P2c => link.kind == LinkKind::Pci && ends.contains(&NodeKind::Cpu),
            PathKind::Pxb => link.kind == LinkKind::Pci && ends == [NodeKind::Pci; 2],
            PathKind::Pix => link.kind == LinkKind::Pci,
            PathKind::C2c => link.kind == LinkKind::C2c,
            PathKind::Nvl | PathKind::Pxn => link.kind == LinkKind::Nvl,
            PathKind::Nvb => {
                link.kind == LinkKind::Nvl && matches!(ends[0], NodeKind::Gpu | NodeKind::Dev)
            }
            PathKind::Loc | PathKind::Net | PathKind::Dis => false,
        }
    };
    let found = |hop: &&Hop| decides(hop, view.graph.node(hop.node).links[hop.link as usize]);
    // Of a way by another GPU the second half is what it costs.
    if kind == PathKind::Nvb {
        return hops.iter().rposition(|it| found(&it));
    }
    hops.iter().position(|it| found(&it))
}
