//! Graphs as the XML that `NCCL_GRAPH_FILE` takes and `NCCL_GRAPH_DUMP_FILE` writes: written,
//! read, and held against the server they are meant for.  Notes §3h.

use crate::host::attribute::whole;
use crate::host::nccl::graph::{Facts, NodeIdx};
use crate::host::nccl::number::{float, hex, int};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::budget::{End, overdrawn};
use crate::host::nccl::search::{Channel, Found, GraphKind, Pattern, RefusedSearch};
use crate::host::nccl::view::View;
use crate::host::nccl::width::Width;
use crate::host::nccl::xml::{Element, Place, Tolerated, XmlError};

/// A graph that its own version could not write or read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("graph {id}: NCCL {profile} has no word for {kind} in a graph file", kind = .kind.name())]
pub struct NoWord {
    /// The graph's number.
    id: u32,
    /// The kind of path.
    kind: PathKind,
    /// Whose words.
    profile: Profile,
}

/// Whether a graph file of that version can name the kind.
fn has_word(profile: Profile, kind: PathKind) -> bool {
    kind.exists_in(profile) && !matches!(kind, PathKind::C2c | PathKind::Net | PathKind::Dis)
}

/// The file's outermost element.
///
/// # Errors
/// Where a graph has paths that the file has no word for.
pub fn to_xml(view: &View, found: &[Found]) -> Result<Element, NoWord> {
    let mut root = Element::new("graphs").with("version", 1);
    for graph in found {
        root.children.push(graph_to_xml(view, graph)?);
    }
    Ok(root)
}

fn graph_to_xml(view: &View, found: &Found) -> Result<Element, NoWord> {
    let profile = view.ask.profile;
    for kind in [found.kind_intra, found.kind_inter] {
        if !has_word(profile, kind) {
            return Err(NoWord { id: found.kind.id(), kind, profile });
        }
    }
    let mut element = Element::new("graph")
        .with("id", found.kind.id())
        .with("pattern", found.pattern as u32)
        .with("crossnic", found.cross_nic)
        .with("nchannels", found.channels.len())
        .with("speedintra", found.intra.six_digits())
        .with("speedinter", found.inter.six_digits());
    if !profile.is_seed() {
        element = element.with("latencyinter", Width(found.latency).six_digits());
    }
    element = element
        .with("typeintra", found.kind_intra.name())
        .with("typeinter", found.kind_inter.name())
        .with("samechannels", u8::from(found.same_channels));
    for channel in &found.channels {
        element.children.push(channel_to_xml(view, channel));
    }
    Ok(element)
}

fn channel_to_xml(view: &View, channel: &Channel) -> Element {
    let mut element = Element::new("channel");
    let net = |id: u64| Element::new("net").with("dev", number(view.ask.profile, id));
    element.children.extend(channel.nets.map(|it| net(it[0])));
    for rank in &channel.ranks {
        let dev = view.graph.gpu_of_rank(*rank).map_or(0, |it| dev_of(view, it));
        let gpu = Element::new("gpu").with("dev", number(view.ask.profile, dev));
        // In 2.30 the rank is told too, for a device may have several.
        let ranked = view.ask.profile.has_devices();
        element.children.push(if ranked { gpu.with("rank", rank) } else { gpu });
    }
    element.children.extend(channel.nets.map(|it| net(it[1])));
    element
}

/// The GPU's number in a graph file: NVML's, with the host above it.
fn dev_of(view: &View, gpu: NodeIdx) -> u64 {
    let seat = match view.graph.node(gpu).facts {
        Facts::Gpu { parent: Some(device), .. } => device,
        _ => gpu,
    };
    (view.graph.node(seat).id >> 56 << 56) | view.graph.gpu(gpu).dev as u64
}

fn number(profile: Profile, number: u64) -> String {
    match (profile.has_hosts(), number) {
        (false, _) | (true, 0) => number.to_string(),
        (true, _) => format!("{number:#x}"),
    }
}

/// The graph of that kind in a graph file; none where the file leaves it to the search.
///
/// `crosses` tells whether channels may begin and end at different ports: where they may not, a
/// graph that says so is passed over.
///
/// # Errors
/// Names the first place at which NCCL would give up, or communicate wrongly afterwards.
pub(crate) fn load(
    view: &View,
    root: &Element,
    kind: GraphKind,
    crosses: bool,
) -> Result<Option<Found>, RefusedSearch> {
    let mut check = Check { view, findings: Vec::new() };
    check.is_graph_file(root);
    let mut loaded = None;
    for element in &root.children {
        let is_this = check.int(element, "id") == Some(kind.id().into());
        if !is_this || (!crosses && element.attr("crossnic").map(int) == Some(1)) {
            continue;
        }
        // The last one of a kind counts.
        loaded = check.graph(element).or(loaded);
    }
    let error = check.findings.into_iter().find(|it| it.severity == Severity::Error);
    match error {
        Some(finding) => Err(finding.into()),
        None => Ok(loaded),
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// NCCL takes it; it will be slower or other than it says.
    Warning,
    /// NCCL refuses it, or communicates wrongly by it.
    Error,
}

/// Something about a graph file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// How bad.
    pub severity: Severity,
    /// What is wrong, and what would be right.
    pub text: String,
}

impl From<Finding> for RefusedSearch {
    fn from(Finding { place, text, .. }: Finding) -> Self {
        RefusedSearch::GraphFile { place, text }
    }
}

/// What NCCL's own reader refuses in a text, or makes something else of.
pub fn refused_form(tolerated: &[Tolerated]) -> Vec<Finding> {
    let finding = |it: &Tolerated| {
        let severity = if it.quirk.is_error() { Severity::Error } else { Severity::Warning };
        Finding { place: it.place, severity, text: it.quirk.to_string() }
    };
    tolerated.iter().map(finding).collect()
}

/// The one finding about a text that is not well-formed.
pub fn malformed(error: &XmlError) -> Finding {
    Finding { place: error.place(), severity: Severity::Error, text: error.what() }
}

/// What is wrong with the graph file `root` on the server of `view`, in the file's order; nothing
/// if NCCL can communicate by it.
pub fn check(view: &View, root: &Element) -> Vec<Finding> {
    let mut check = Check { view, findings: Vec::new() };
    if !check.is_graph_file(root) {
        return check.findings;
    }
    let mut seen = Vec::new();
    for graph in &root.children {
        if let Some(found) = check.graph(graph) {
            if seen.contains(&found.kind) {
                let text = format!("graph {} stands twice; the last one counts", found.kind.id());
                check.warning(graph, text);
            }
            seen.push(found.kind);
            check.budget(graph, &found);
        }
    }
    if seen.is_empty() && check.findings.is_empty() {
        let text = "there is no <graph> in it, so NCCL searches all of them itself".to_owned();
        check.warning(root, text);
    }
    for graph in root.children.iter().filter(|it| it.name == "graph" && it.children.is_empty()) {
        let id = graph.attr("id").unwrap_or("?");
        let text = format!("graph {id} has no channel, so NCCL searches it itself");
        check.warning(graph, text);
    }
    check.findings.sort_by_key(|it| it.place);
    check.findings
}

struct Check<'v> {
    view: &'v View,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn error(&mut self, at: &Element, text: String) {
        self.findings.push(Finding { place: at.place, severity: Severity::Error, text });
    }

    fn warning(&mut self, at: &Element, text: String) {
        self.findings.push(Finding { place: at.place, severity: Severity::Warning, text });
    }

    fn is_graph_file(&mut self, root: &Element) -> bool {
        let is_one = root.name == "graphs";
        if !is_one {
            let name = &root.name;
            let text = format!("<{name}> is no graph file; it begins with <graphs version=\"1\">");
            self.error(root, text);
        } else if root.attr("version") != Some("1") {
            self.error(root, "<graphs> has no version=\"1\"".to_owned());
        }
        is_one
    }

    /// The graph, as far as it can be read; errors are noted.
    fn graph(&mut self, element: &Element) -> Option<Found> {
        if element.name != "graph" {
            self.error(element, format!("<{}> stands where a <graph> ought to", element.name));
            return None;
        }
        let id = self.int(element, "id")?;
        let kind = match id {
            0 => GraphKind::Ring,
            1 => GraphKind::Tree,
            2 => GraphKind::CollnetChain,
            3 => GraphKind::Nvls,
            4 => GraphKind::CollnetDirect,
            _ => {
                self.error(element, format!("graph id {id} is none of 0 to 4"));
                return None;
            }
        };
        let pattern = self.int(element, "pattern")?;
        let known = Pattern::ALL.into_iter().find(|it| *it as i64 == pattern);
        let Some(pattern) = known else {
            self.error(element, format!("pattern {pattern} is none of 1 to 6"));
            return None;
        };
        let cross_nic = self.int(element, "crossnic")? as i32;
        let count = self.int(element, "nchannels")?;
        if count != element.children.len() as i64 {
            let channels = element.children.len();
            let text = format!("nchannels is {count}, but there are {channels} channels");
            self.error(element, text);
        }
        let profile = self.view.ask.profile;
        if let Some(channel) = element.children.get(profile.channels()) {
            let room = profile.channels();
            self.error(channel, format!("NCCL {profile} has room for {room} channels of a graph"));
        }
        let found = Found {
            kind,
            pattern,
            cross_nic,
            collnet: matches!(kind, GraphKind::CollnetChain | GraphKind::CollnetDirect),
            channels_min: 1,
            channels_max: element.children.len(),
            intra: self.speed(element, "speedintra")?,
            inter: self.speed(element, "speedinter")?,
            latency: self.latency(element)?,
            kind_intra: self.kind(element, "typeintra")?,
            kind_inter: self.kind(element, "typeinter")?,
            same_channels: self.int(element, "samechannels")? != 0,
            hops: 0,
            channels: Vec::new(),
        };
        let channels = element.children.iter().filter_map(|it| self.channel(it, &found)).collect();
        Some(Found { channels, ..found })
    }

    fn text<'e>(&mut self, element: &'e Element, attr: &str) -> Option<&'e str> {
        let value = element.attr(attr);
        if value.is_none() {
            let name = &element.name;
            self.error(element, format!("<{name}> has no {attr}, which NCCL asks for"));
        }
        value
    }

    fn int(&mut self, element: &Element, attr: &str) -> Option<i64> {
        let text = self.text(element, attr)?;
        let number = int(text);
        if whole(text.trim()).is_none() {
            let text = format!("{attr} is {text:?}, which is no whole number; NCCL reads {number}");
            self.warning(element, text);
        }
        Some(number.into())
    }

    fn speed(&mut self, element: &Element, attr: &str) -> Option<Width> {
        self.fraction(element, attr, "speed in GB/s").map(Width)
    }

    fn fraction(&mut self, element: &Element, attr: &str, what: &str) -> Option<f32> {
        let text = self.text(element, attr)?;
        let number = float(text);
        if !number.is_finite() || number < 0.0 {
            self.error(element, format!("{attr} is {text:?}, which is no {what}"));
            return None;
        }
        if text.trim().parse::<f32>().is_err() {
            let text = format!("{attr} is {text:?}, which is no {what}; NCCL reads {number}");
            self.warning(element, text);
        }
        Some(number)
    }

    /// From 2.18 on a graph may say it.
    fn latency(&mut self, element: &Element) -> Option<f32> {
        if self.view.ask.profile.is_seed() || element.attr("latencyinter").is_none() {
            return Some(0.0);
        }
        self.fraction(element, "latencyinter", "latency in us")
    }

    fn kind(&mut self, element: &Element, attr: &str) -> Option<PathKind> {
        let text = self.text(element, attr)?;
        let profile = self.view.ask.profile;
        let words = || PathKind::ALL.into_iter().filter(|it| has_word(profile, *it));
        let kind = words().find(|it| it.name() == text);
        if kind.is_none() {
            let words: Vec<_> = words().map(PathKind::name).collect();
            let words = words.join(", ");
            self.error(element, format!("{attr} is {text:?}; NCCL {profile} knows {words}"));
        }
        kind
    }

    fn channel(&mut self, element: &Element, graph: &Found) -> Option<Channel> {
        if element.name != "channel" {
            self.error(element, format!("<{}> stands where a <channel> ought to", element.name));
            return None;
        }
        let (mut ranks, mut nets) = (Vec::new(), Vec::new());
        for child in &element.children {
            match child.name.as_str() {
                "gpu" => ranks.extend(self.rank(child)),
                "net" => nets.extend(self.net(child)),
                other => self.error(child, format!("<{other}> is neither a <gpu> nor a <net>")),
            }
        }
        let gpus = self.view.gpus().len();
        // Of NVLS the head counts alone; NCCL itself writes as many as there are GPUs.
        if graph.kind == GraphKind::Nvls && (1..=gpus).contains(&ranks.len()) {
            ranks.truncate(1);
        }
        let wanted = if graph.kind == GraphKind::Nvls { 1 } else { gpus };
        if ranks.len() != wanted {
            let found = ranks.len();
            self.error(element, format!("the channel names {found} GPUs, it takes {wanted}"));
        }
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|it| it[0] == it[1]);
        if let Some(twice) = twice.filter(|_| graph.kind != GraphKind::CollnetDirect) {
            self.error(element, format!("rank {} is in the channel twice", twice[0]));
        }
        let ports = if self.view.inter { 2 } else { 0 };
        if nets.len() != ports {
            let found = nets.len();
            self.error(element, format!("the channel names {found} ports, it takes {ports}"));
        }
        let nets = <[u64; 2]>::try_from(nets).ok();
        let channel = Channel { ranks, nets };
        self.distances(element, graph, &channel);
        Some(channel)
    }

    fn rank(&mut self, element: &Element) -> Option<i32> {
        let dev = self.text(element, "dev")?;
        let told = element.attr("rank").filter(|_| self.view.ask.profile.has_devices());
        let rank = match told {
            Some(rank) => Some(int(rank)).filter(|it| self.view.graph.gpu_of_rank(*it).is_some()),
            None => {
                let number = self.parsed(dev);
                let same = |it: &&NodeIdx| dev_of(self.view, **it) == number;
                // NCCL goes by the last of equals.
                let gpu = self.view.gpus().iter().rev().find(same);
                gpu.map(|it| self.view.graph.gpu(*it).rank)
            }
        };
        if rank.is_none() {
            let which = told.map_or(format!("dev {dev}"), |rank| format!("rank {rank}"));
            self.error(element, format!("this server has no GPU of {which}"));
        }
        rank
    }

    fn net(&mut self, element: &Element) -> Option<u64> {
        let dev = self.text(element, "dev")?;
        let ids = self.view.nets().iter().map(|it| self.view.graph.node(*it).id);
        let id = Some(self.parsed(dev)).filter(|it| ids.clone().any(|id| id == *it));
        if id.is_none() {
            let ids: Vec<_> = ids.map(|it| number(self.view.ask.profile, it)).collect();
            let text = if ids.is_empty() {
                format!("this server has no port {dev}: in this job it uses none")
            } else {
                format!("this server has no port {dev}; it has {}", ids.join(", "))
            };
            self.error(element, text);
        }
        id
    }

    /// An `int` in any base until 2.18, 64 bits in base 16 later, with or without 0x.
    fn parsed(&self, text: &str) -> u64 {
        if !self.view.ask.profile.has_hosts() {
            return i64::from(int(text)) as u64;
        }
        hex(text)
    }

    /// Hops that are farther than the graph says.
    fn distances(&mut self, element: &Element, graph: &Found, channel: &Channel) {
        if matches!(graph.pattern, Pattern::Nvls | Pattern::CollnetDirect) {
            return;
        }
        let mut far = Vec::new();
        for pair in channel.ranks.windows(2) {
            let gpu = |it| self.view.graph.gpu_of_rank(it);
            let (Some(a), Some(b)) = (gpu(pair[0]), gpu(pair[1])) else { continue };
            let kind = self.view.path(a, b).kind;
            if kind > graph.kind_intra {
                far.push(format!("rank {} to rank {} is {}", pair[0], pair[1], kind.name()));
            }
        }
        if !far.is_empty() {
            let said = graph.kind_intra.name();
            let text = format!("typeintra is {said}, but {}", far.join(", "));
            self.warning(element, text);
        }
        self.ends(element, graph, channel);
    }

    /// Ports that are farther than the graph says, others than it says, or to no purpose.
    fn ends(&mut self, element: &Element, graph: &Found, channel: &Channel) {
        let Some([first, last]) = channel.nets else { return };
        // The search holds the way in alone to what it says.
        let net = |it: &&NodeIdx| self.view.graph.node(**it).id == first;
        let gpu = channel.ranks.first().and_then(|it| self.view.graph.gpu_of_rank(*it));
        if let Some((gpu, net)) = gpu.zip(self.view.nets().iter().find(net)) {
            let kind = self.view.path(gpu, *net).kind;
            if kind > graph.kind_inter {
                let port = number(self.view.ask.profile, first);
                let (rank, said) = (channel.ranks[0], graph.kind_inter.name());
                let text = format!(
                    "typeinter is {said}, but rank {rank} to port {port} is {}",
                    kind.name()
                );
                self.warning(element, text);
            }
        }
        if graph.cross_nic == 0 && first != last && graph.pattern == Pattern::Ring {
            let text =
                "crossnic is 0, but the ring leaves by another port than it enters".to_owned();
            self.warning(element, text);
        }
        if graph.inter.0 == 0.0 {
            let text = "speedinter is 0, so NCCL takes the network for of no use".to_owned();
            self.warning(element, text);
        }
    }

    fn budget(&mut self, element: &Element, found: &Found) {
        for over in overdrawn(self.view, found) {
            let end = |it: End| match it {
                End::Gpu(gpu) => {
                    format!("rank {}", self.view.graph.gpu(self.view.gpus()[gpu]).rank)
                }
                End::Net(net) => {
                    let id = self.view.graph.node(self.view.nets()[net]).id;
                    format!("port {}", number(self.view.ask.profile, id))
                }
            };
            let (from, to) = (end(over.from), end(over.to));
            let at = element.children.get(over.channel).unwrap_or(element);
            let text = format!(
                "no link from {from} to {to} has the speed left that this graph asks for; \
                 lower speedintra {} or speedinter {}, or name fewer channels",
                found.intra.0, found.inter.0
            );
            self.warning(at, text);
        }
    }
}
