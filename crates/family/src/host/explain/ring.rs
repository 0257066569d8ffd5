//! Why the rings are as they are: the walk that found them, what stopped the next faster speed,
//! the link that is fullest, and single changes that make them faster or slower, each made.
//!
//! What rings carry is their number times the width of each.  A change costs one search; at most
//! `TRIES` are made.

use std::fmt;

use serde::Serialize;

use crate::host::change::{Change, NoAnswer, Question};
use crate::host::nccl::graph::{LinkKind, NodeIdx, NodeKind};
use crate::host::nccl::path::Hop;
use crate::host::nccl::search::{Attempt, End, Found, Graphs, graphs};
use crate::host::nccl::view::{RefusedView, View};
use crate::host::place::{PlaceName, bus_text, counted, label, ranges, short};
use crate::host::views::{others_note, seen_by, views};

/// Changes that are tried.
const TRIES: usize = 16;

/// The fullest link of the rings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fullest {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Its kind.
    pub link: &'static str,
    /// What it carries, GB/s.
    pub gb_per_s: f32,
    /// What the rings take of it, GB/s.
    pub taken_gb_per_s: f32,
    /// Channels that go over it.
    pub channels: usize,
}

/// A single change and what the rings are then.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RingFlip {
    /// The change, as `what-if` takes it.
    pub change: String,
    /// Channels then.
    pub channels: usize,
    /// What each carries then, GB/s.
    pub gb_per_s: f32,
    /// Whether that is more in all than before.
    pub faster: bool,
    #[serde(skip)]
    made: Vec<Change>,
}

impl RingFlip {
    /// The change, to be made again.
    pub fn made(&self) -> &[Change] {
        &self.made
    }
}

/// What the ranks of one view find.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ViewRings {
    /// Who shares the view.
    pub ranks: Vec<i32>,
    /// Rings.
    pub channels: usize,
    /// What each carries, GB/s.
    pub gb_per_s: f32,
}

/// Why the rings are as they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RingExplanation {
    /// Whose rules.
    pub nccl: String,
    /// Servers in the job.
    pub nodes: u32,
    /// Rings.
    pub channels: usize,
    /// What each carries, GB/s.
    pub gb_per_s: f32,
    /// Which walk found them, in words.
    pub found_by: String,
    /// What stopped the next faster speed, in words.
    pub stopped_by: String,
    /// Walks that were made.
    pub walks: usize,
    /// The fullest link; none where the rings go over none.
    pub fullest: Option<Fullest>,
    /// Single changes that make the rings carry another amount.
    pub flips: Vec<RingFlip>,
    /// Where ranks see other topologies, what is found in each, the asking rank's first: what is
    /// told is of that one, and a job goes by the fewest and the slowest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<ViewRings>,
}

/// Why the rings of that server are as they are.
///
/// # Errors
/// If NCCL refuses the server.
pub fn explain_ring(question: &Question) -> Result<RingExplanation, NoAnswer> {
    let view = question.view()?;
    let Graphs { found, attempts, .. } = search(&view)?;
    let ring = &found[0];
    let loads = Loads::of(&view, ring);
    let fullest = loads.fullest();
    let mut explanation = RingExplanation {
        nccl: question.profile.to_string(),
        nodes: question.nodes,
        channels: ring.channels.len(),
        gb_per_s: width(&view, ring),
        found_by: found_by(ring, &attempts),
        stopped_by: stopped_by(&view, ring, &attempts, &loads),
        walks: attempts.len(),
        fullest: fullest.map(|it| it.named(&view)),
        flips: Vec::new(),
        views: of_each(question)?,
    };
    let before = (explanation.channels, explanation.gb_per_s);
    for change in suggestions(&view, question, fullest, ring).into_iter().take(TRIES) {
        let Ok(changed) = question.with(&change) else { continue };
        let Ok(after) = outcome(&changed) else { continue };
        let total = |(channels, each): (usize, f32)| channels as f32 * each;
        if total(after) != total(before) {
            explanation.flips.push(RingFlip {
                change: change.to_string(),
                channels: after.0,
                gb_per_s: after.1,
                faster: total(after) > total(before),
                made: vec![change],
            });
        }
    }
    // What helps comes first.
    explanation.flips.sort_by_key(|it| !it.faster);
    Ok(explanation)
}

/// What is found in each view; none where there is one.
fn of_each(question: &Question) -> Result<Vec<ViewRings>, NoAnswer> {
    let views = views(question)?;
    if views.len() < 2 {
        return Ok(Vec::new());
    }
    let of = |view: &View| {
        let found = search(view)?.found;
        let (channels, gb_per_s) = (found[0].channels.len(), width(view, &found[0]));
        Ok(ViewRings { ranks: seen_by(view), channels, gb_per_s })
    };
    views.iter().map(of).collect()
}

/// How many rings there are, and what each carries in GB/s.
///
/// # Errors
/// If NCCL refuses the server.
pub fn outcome(question: &Question) -> Result<(usize, f32), NoAnswer> {
    let view = question.view()?;
    let found = search(&view)?.found;
    Ok((found[0].channels.len(), width(&view, &found[0])))
}

fn search(view: &View) -> Result<Graphs, NoAnswer> {
    graphs(view).map_err(|it| NoAnswer::Refused(RefusedView::Search(it)))
}

/// What a ring carries: to the ports, or inside a server that needs none.
fn width(view: &View, ring: &Found) -> f32 {
    if view.inter { ring.inter.0 } else { ring.intra.0 }
}

fn conditions(it: &Attempt) -> String {
    let order = if it.same_channels { "the first ring's order for all" } else { "any order" };
    let ports = match it.cross_nic {
        0 => "",
        1 => ", beginning and ending at different ports",
        _ => ", in pairs that exchange their ports",
    };
    let (intra, inter) = (it.kind_intra.name(), it.kind_inter.name());
    let each = short(it.inter.0);
    format!("{each}GB/s each, GPUs {intra} apart at most, ports {inter}, {order}{ports}")
}

fn found_by(ring: &Found, attempts: &[Attempt]) -> String {
    if attempts.is_empty() {
        return "the graph file that NCCL_GRAPH_FILE names, as it stands there".to_owned();
    }
    let Some(at) = attempts.iter().rposition(|it| it.better) else {
        return format!(
            "no walk: of {} none found an order with any width, so NCCL takes the GPUs in their \
             own order",
            attempts.len()
        );
    };
    let (it, walk, walks) = (&attempts[at], at + 1, attempts.len());
    let pass = if it.pass == 1 { "while relaxing" } else { "while trying faster" };
    let copies = if ring.inter.0 < it.inter.0 {
        "; then each ring was made two of half the width"
    } else {
        ""
    };
    format!("walk {walk} of {walks}, {pass}: {}{copies}", conditions(it))
}

/// Why no walk at a higher speed found rings.
fn stopped_by(view: &View, ring: &Found, attempts: &[Attempt], loads: &Loads) -> String {
    if attempts.is_empty() {
        return "nothing was searched: NCCL takes a graph file's speeds as they are".to_owned();
    }
    let accepted = attempts.iter().rev().find(|it| it.better).map_or(0.0, |it| it.inter.0);
    let faster = attempts.iter().map(|it| it.inter.0).filter(|it| *it > accepted);
    let next = faster.fold(f32::INFINITY, f32::min);
    let (widest, total) = view.widest();
    if next == f32::INFINITY {
        return format!(
            "no faster speed was tried: the widest way carries {}GB/s and all links of a GPU {}GB/s",
            short(widest.0),
            short(total.0)
        );
    }
    let at_next = attempts.iter().filter(|it| it.inter.0 == next);
    let spent = at_next.clone().filter(|it| it.end == End::Budget).count();
    let tried = at_next.count();
    let share = next / accepted.max(f32::MIN_POSITIVE);
    let mut text =
        format!("at {}GB/s {} found no more in all", short(next), counted(tried, "walk"));
    if let Some(full) = loads.first_beyond(share) {
        let named = full.named(view);
        text += &format!(
            "; {} to {} would carry {:.1} of {:.1}GB/s",
            named.from,
            named.to,
            named.taken_gb_per_s * share,
            named.gb_per_s
        );
    } else if let Some(port) = narrow_port(view, ring, next) {
        text += &format!("; {port} is narrower");
    }
    if spent > 0 {
        text += &format!("; {spent} of them spent their budget of calls");
    }
    text
}

fn narrow_port(view: &View, ring: &Found, speed: f32) -> Option<String> {
    let used = ring.channels.iter().filter_map(|it| it.nets).flatten();
    let nets = view.nets().iter();
    let mut narrow = used.filter_map(|id| {
        let mut same = nets.clone().filter(|it| view.graph.node(**it).id == id);
        same.find(|it| view.graph.net(**it).width.0 < speed.trunc())
    });
    narrow.next().map(|it| label(&view.graph, *it))
}

/// A link with what the rings take of it.
#[derive(Clone, Copy, Debug)]
struct Load {
    node: NodeIdx,
    link: u32,
    taken: f32,
    channels: usize,
    width: f32,
}

impl Load {
    fn named(self, view: &View) -> Fullest {
        let link = view.graph.node(self.node).links[self.link as usize];
        Fullest {
            from: label(&view.graph, self.node),
            to: label(&view.graph, link.peer),
            link: link.kind.name(),
            gb_per_s: link.width.0,
            taken_gb_per_s: self.taken,
            channels: self.channels,
        }
    }
}

/// All links that the rings go over, in the order in which they come to them.
struct Loads(Vec<Load>);

impl Loads {
    fn of(view: &View, ring: &Found) -> Loads {
        let mut loads = Loads(Vec::new());
        for channel in &ring.channels {
            let gpu = |rank: &i32| view.graph.gpu_of_rank(*rank);
            let gpus: Vec<NodeIdx> = channel.ranks.iter().filter_map(gpu).collect();
            let net = |id: u64| view.graph.find(NodeKind::Net, id);
            let nets = channel.nets.map(|it| it.map(net));
            for pair in gpus.windows(2) {
                loads.add(view, pair[0], pair[1], ring.intra.0);
            }
            let (Some(&first), Some(&last)) = (gpus.first(), gpus.last()) else { continue };
            match nets {
                Some([Some(start), Some(end)]) => {
                    loads.add(view, start, first, ring.inter.0);
                    loads.add(view, last, end, ring.inter.0);
                }
                _ if gpus.len() > 1 => loads.add(view, last, first, ring.intra.0),
                _ => {}
            }
        }
        loads
    }

    fn add(&mut self, view: &View, from: NodeIdx, to: NodeIdx, speed: f32) {
        for &Hop { node, link } in view.paths.hops(view.path(from, to)) {
            let known = self.0.iter_mut().find(|it| (it.node, it.link) == (node, link));
            if let Some(load) = known {
                load.taken += speed;
                load.channels += 1;
            } else {
                let width = view.graph.node(node).links[link as usize].width.0;
                self.0.push(Load { node, link, taken: speed, channels: 1, width });
            }
        }
    }

    /// The link of which the rings take the greatest share.
    fn fullest(&self) -> Option<Load> {
        let share = |it: &Load| it.taken / it.width;
        let mut fullest: Option<Load> = None;
        for it in &self.0 {
            if fullest.is_none_or(|full| share(it) > share(&full)) {
                fullest = Some(*it);
            }
        }
        fullest
    }

    /// The first link that is too narrow for so many times what the rings take.
    fn first_beyond(&self, times: f32) -> Option<Load> {
        self.0.iter().find(|it| it.taken * times > it.width).copied()
    }
}

fn suggestions(
    view: &View,
    question: &Question,
    fullest: Option<Load>,
    ring: &Found,
) -> Vec<Change> {
    let mut out = Vec::new();
    if let Some(load) = fullest {
        out.extend(wider(view, load));
    }
    let ports = ring.channels.iter().filter_map(|it| it.nets);
    if let Some(net) = ports.flatten().find_map(|id| view.graph.find(NodeKind::Net, id)) {
        let net = view.graph.net(net);
        for mbps in [net.width.0 * 16_000.0, net.width.0 * 4000.0] {
            out.push(attribute(PlaceName::Net(net.dev), "speed", (mbps as i64).to_string()));
        }
    }
    let links = ring.channels.iter().flat_map(|it| it.ranks.windows(2));
    if let Some(pair) = links.clone().next() {
        out.extend(no_nvlink(view, pair[0], pair[1]));
    }
    for (name, value) in [
        ("NCCL_CROSS_NIC", "0"),
        ("NCCL_CROSS_NIC", "1"),
        ("NCCL_P2P_LEVEL", "SYS"),
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_NET_GDR_LEVEL", "SYS"),
        ("NCCL_NET_GDR_LEVEL", "LOC"),
        ("NCCL_PXN_DISABLE", "1"),
        ("NCCL_NVB_DISABLE", "1"),
        ("NCCL_NET_DISABLE_INTRA", "1"),
    ] {
        if question.env.iter().all(|it| (it.0.as_str(), it.1.as_str()) != (name, value)) {
            out.push(Change::Set { name: name.to_owned(), value: value.to_owned() });
        }
    }
    out
}

fn attribute(place: PlaceName, attr: &str, value: String) -> Change {
    Change::Attribute { place, attr: attr.to_owned(), value }
}

/// The link's lower end with twice the lanes, or its GPU's NVLinks twice and none.
fn wider(view: &View, load: Load) -> Vec<Change> {
    let link = view.graph.node(load.node).links[load.link as usize];
    if link.kind != LinkKind::Pci {
        return Vec::new();
    }
    // The link upwards is a node's last.
    let is_lower = |low: NodeIdx, up: NodeIdx| {
        view.graph.node(low).links.last().is_some_and(|it| it.peer == up)
    };
    let low = if is_lower(load.node, link.peer) { load.node } else { link.peer };
    let node = view.graph.node(low);
    if matches!(node.kind, NodeKind::Cpu | NodeKind::Nvs | NodeKind::Net) {
        return Vec::new();
    }
    let place = PlaceName::Bus(bus_text(node.id));
    [("link_width", "32"), ("link_width", "4")]
        .map(|(attr, value)| attribute(place.clone(), attr, value.to_owned()))
        .to_vec()
}

/// The GPUs without the NVLinks between them, or of the first to the switches.
fn no_nvlink(view: &View, a: i32, b: i32) -> Option<Change> {
    let seat = view.graph.gpu_of_rank(a).map(|it| view.seat(it))?;
    let other = view.graph.gpu_of_rank(b).map(|it| view.seat(it))?;
    let links = &view.graph.node(seat).links;
    let nvlink = |peer: NodeIdx| links.iter().any(|it| it.kind == LinkKind::Nvl && it.peer == peer);
    let switches = view.graph.kind(NodeKind::Nvs).first().copied();
    let peer = if nvlink(other) {
        PlaceName::Gpu(b)
    } else if switches.is_some_and(nvlink) {
        PlaceName::Nvs
    } else {
        return None;
    };
    Some(Change::NvLink { gpu: PlaceName::Gpu(a), peer, count: 0 })
}

impl fmt::Display for RingExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = short(self.channels as f32 * self.gb_per_s);
        writeln!(
            f,
            "{} of {}GB/s each, {total}GB/s in all  NCCL {}, {}",
            counted(self.channels, "ring"),
            short(self.gb_per_s),
            self.nccl,
            counted(self.nodes as usize, "node")
        )?;
        writeln!(f, "  found by   {}", self.found_by)?;
        writeln!(f, "  stopped by {}", self.stopped_by)?;
        if let Some(it) = &self.fullest {
            writeln!(
                f,
                "  fullest    {} to {} ({}): {:.1} of {:.1}GB/s, {}",
                it.from,
                it.to,
                it.link,
                it.taken_gb_per_s,
                it.gb_per_s,
                counted(it.channels, "ring")
            )?;
        }
        for it in &self.flips {
            let way = if it.faster { "faster" } else { "slower" };
            let (change, rings, each) =
                (&it.change, counted(it.channels, "ring"), short(it.gb_per_s));
            writeln!(f, "  {way}     {change}: {rings} of {each}GB/s")?;
        }
        if self.flips.is_empty() {
            writeln!(f, "  no single change that was tried makes them carry another amount")?;
        }
        let ranks: Vec<Vec<i32>> = self.views.iter().map(|it| it.ranks.clone()).collect();
        let Some(note) = others_note(&ranks) else { return Ok(()) };
        writeln!(f, "  views      {note}; a job goes by the fewest rings and the slowest")?;
        for it in &self.views {
            let (rings, each) = (counted(it.channels, "ring"), short(it.gb_per_s));
            writeln!(f, "             {}: {rings} of {each}GB/s", ranges("GPU", &it.ranks))?;
        }
        Ok(())
    }
}
