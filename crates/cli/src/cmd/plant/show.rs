//! What a plant is made of.

use std::collections::BTreeMap;

use selvedge_family::graph::ChipGraph;
use selvedge_family::host::inside::PREFIX;
use selvedge_family::{Bisection, Warning, bisection, warnings};
use selvedge_model::fabric::{DomainKind, Fabric, LinkKind, NodeKind, Role};
use selvedge_model::hardware::Thresholds;
use selvedge_model::id::{NodeId, PartId};
use selvedge_model::spec::plant::{Control, Family};
use selvedge_model::spec::{Plant, threshold_values};
use serde::Serialize;

use crate::cmd::plant::compare::{Row, rounded};
use crate::render::number::{counted, grouped};
use crate::render::style;
use crate::render::table::Table;

/// The form of `plant show --json`.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    name: String,
    counts: Counts,
    pods: Vec<ShownPod>,
    domains: BTreeMap<&'static str, usize>,
    thresholds: Vec<ShownThreshold>,
    shares: Vec<Share>,
    /// Over chips and the links from chip to chip alone, of the whole plant; none where optical
    /// switches or hosts join them.
    #[serde(flatten)]
    measures: Option<Measures>,
    /// What `topo lint` finds in the topology files of hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    topology_findings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) compare: Vec<Row>,
}

/// What the graph of chips comes to.
#[derive(Clone, Debug, Serialize)]
struct Measures {
    degree: [usize; 2],
    /// None where the chips do not hang together, or are so many that nobody would wait.
    diameter: Option<u32>,
    mean_distance: Option<f64>,
    /// None where it is known between two bounds only.
    bisection: Option<u32>,
    bisection_bounds: Option<Bounds>,
}

/// What is proved of a bisection, and what was found.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Bounds {
    pub(super) at_least: u32,
    pub(super) at_most: u32,
}

impl From<Bisection> for Bounds {
    fn from(it: Bisection) -> Self {
        Self { at_least: it.at_least, at_most: it.at_most }
    }
}

impl Measures {
    /// Of the `chips`, which are those of pod number `pod` if they are of one.
    fn of(
        plant: &Plant,
        fabric: &Fabric,
        chips: impl Iterator<Item = NodeId>,
        pod: Option<usize>,
    ) -> Self {
        let graph = ChipGraph::of_chips(fabric, chips).graph;
        let spread = graph.spread();
        let known = pod.and_then(|it| bisection(plant, fabric, it));
        Self {
            degree: graph.degrees(),
            diameter: spread.map(|it| it.diameter),
            mean_distance: spread.map(|it| rounded(it.mean(), 1e6)),
            bisection: known.filter(|it| it.at_least == it.at_most).map(|it| it.at_most),
            bisection_bounds: known.map(Bounds::from),
        }
    }

    fn said(&self) -> Option<String> {
        match (self.bisection, self.bisection_bounds) {
            (Some(it), _) => Some(it.to_string()),
            (None, Some(it)) => Some(format!("{} to {}", it.at_least, it.at_most)),
            (None, None) => None,
        }
    }
}

/// The chips of these parts.
fn chips(fabric: &Fabric, parts: &[PartId]) -> impl Iterator<Item = NodeId> {
    let nodes = parts.iter().flat_map(|it| fabric.nodes_of(*it));
    nodes.filter(|it| fabric.node(*it).kind == NodeKind::Chip)
}

/// How many there are of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    parts: BTreeMap<String, usize>,
    machines: usize,
    chips: usize,
    nics: usize,
    switches: usize,
    ports: usize,
    /// Chips, as nodes of the graph of chips.
    nodes: usize,
    /// From chip to chip with nothing between, both directions as one.
    links: usize,
    /// Of all kinds, each direction for itself.
    directed_links: usize,
    fibres: usize,
    cables: usize,
}

#[derive(Debug, Serialize)]
struct ShownPod {
    pod: String,
    family: &'static str,
    control: String,
    shape: String,
    chips: usize,
    /// The same of the pod alone.
    #[serde(flatten)]
    measures: Option<Measures>,
}

#[derive(Debug, Serialize)]
struct ShownThreshold {
    key: &'static str,
    value: String,
    source: &'static str,
}

/// What a part of the plant costs at most, as a share of the whole.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Share {
    pod: String,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    capital_max_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    power_max_percent: Option<f64>,
    basis: String,
}

impl Counts {
    pub(super) fn of(fabric: &Fabric) -> Self {
        let parts = fabric.parts().pairs().filter(|(_, it)| !it.retired).map(|it| it.0);
        Self::of_parts(fabric, parts)
    }

    fn of_parts(fabric: &Fabric, parts: impl Iterator<Item = PartId>) -> Self {
        let mut counts = Self::default();
        let (mut n_inner, mut n_ends, mut n_fibre_ends, mut n_chip_ends) = (0, 0, 0, 0);
        let is_chip = |port| fabric.node(fabric.node_of_port(port)).kind == NodeKind::Chip;
        for part in parts {
            let template = fabric.template_of(part);
            *counts.parts.entry(template.name.clone()).or_default() += 1;
            let kind = |kind| template.nodes().iter().filter(|it| it.kind == kind).count();
            counts.machines += kind(NodeKind::Machine);
            counts.chips += kind(NodeKind::Chip);
            counts.nics += kind(NodeKind::Nic);
            counts.switches += usize::from(template.role != Role::Compute);
            counts.ports += template.ports().len();
            n_inner += template.n_links();
            let inner_chip = |port: u32| {
                let node = template.ports()[port as usize].node;
                template.nodes()[node as usize].kind == NodeKind::Chip
            };
            let inner = template.link_pairs().iter();
            counts.links += inner.filter(|it| inner_chip(it.a) && inner_chip(it.b)).count();
            for cable in fabric.ports_of(part).filter_map(|it| fabric.cable_at(it)) {
                n_ends += 1;
                n_chip_ends += usize::from(is_chip(cable.a) && is_chip(cable.b));
                n_fibre_ends += usize::from(cable.attrs.kind == LinkKind::Fibre);
            }
        }
        counts.cables = n_ends / 2;
        counts.fibres = n_fibre_ends / 2;
        counts.nodes = counts.chips;
        counts.links += n_chip_ends / 2;
        counts.directed_links = n_inner + n_ends;
        counts
    }

    /// `64 cubes, 48 ocses, 4,096 chips, …`.
    pub(super) fn line(&self) -> String {
        let mut pieces: Vec<String> =
            self.parts.iter().map(|(name, n)| parts_counted(*n as u64, name)).collect();
        pieces.push(counted(self.machines as u64, "machine"));
        pieces.push(counted(self.chips as u64, "chip"));
        pieces.push(counted(self.cables as u64, "cable"));
        pieces.join(", ")
    }
}

/// As [`counted`], for the names of templates.
fn parts_counted(n: u64, name: &str) -> String {
    if let Some(file) = name.strip_prefix(PREFIX) {
        return format!("{} of {file}", counted(n, "host"));
    }
    match name {
        "ocs" if n == 1 => "1 OCS".to_owned(),
        "ocs" => format!("{} OCSes", grouped(n)),
        _ => counted(n, name),
    }
}

impl Shown {
    pub(super) fn of(plant: &Plant, fabric: &Fabric) -> Self {
        let mut domains = BTreeMap::new();
        for domain in fabric.domains().iter() {
            *domains.entry(domain_word(domain.kind)).or_default() += 1;
        }
        let live = || fabric.parts().pairs().filter(|(_, it)| !it.retired).map(|it| it.0);
        let pods = plant.pods.iter().enumerate();
        let pods = pods.map(|(idx, pod)| {
            let name = format!("pod{idx}");
            let is_in = |it: &PartId| {
                fabric.part(*it).pool.is_some_and(|pool| fabric.pools()[pool] == name)
            };
            let parts: Vec<PartId> = live().filter(is_in).collect();
            let counts = Counts::of_parts(fabric, parts.iter().copied());
            let measures = is_fixed(&pod.family)
                .then(|| Measures::of(plant, fabric, chips(fabric, &parts), Some(idx)));
            let shape = match &pod.family {
                Family::Tpuv4 { cubes, deployed } => format!("{} of {cubes} cubes", deployed.len()),
                Family::Grid { sides: [x, y], wraps, .. } => match wraps {
                    [true, true] => format!("{x}x{y} torus"),
                    [false, false] => format!("{x}x{y} mesh"),
                    [true, false] => format!("{x}x{y}, rings along x"),
                    [false, true] => format!("{x}x{y}, rings along y"),
                },
                Family::HyperSquare(it) => format!("{}x{} groups", it.groups[0], it.groups[1]),
                Family::Hosts { hosts } => {
                    let of = pod.topology.as_ref().map(|it| format!(" of {}", it.name));
                    format!("{}{}", counted(u64::from(*hosts), "host"), of.unwrap_or_default())
                }
            };
            let control = match &pod.control {
                Control::Simulated => "simulated".to_owned(),
                Control::Address(address) => address.clone(),
            };
            let chips = counts.chips;
            ShownPod { pod: name, family: pod.family.word(), control, shape, chips, measures }
        });
        let pods: Vec<ShownPod> = pods.collect();
        let counts = Counts::of(fabric);
        let measures = match &pods[..] {
            // What stands beside the pod by hand belongs to the plant too.
            [only] if only.chips == counts.chips => only.measures.clone(),
            [..] => {
                let all: Vec<PartId> = live().collect();
                let measures = || Measures::of(plant, fabric, chips(fabric, &all), None);
                let is_any_fixed = plant.pods.iter().any(|it| is_fixed(&it.family));
                (is_any_fixed || pods.is_empty()).then(measures)
            }
        };
        Self {
            name: plant.name.clone(),
            counts,
            pods,
            domains,
            thresholds: thresholds(plant),
            shares: shares(plant),
            measures,
            topology_findings: topology_findings(plant, fabric),
            compare: Vec::new(),
        }
    }

    pub(super) fn page(&self) -> String {
        let title = style::TITLE;
        let mut page = format!("{title}{}{title:#}\n", self.name);
        if !self.pods.is_empty() {
            let mut table = Table::new(&["pod", "family", "control", "shape", ">chips"]);
            for it in &self.pods {
                let chips = grouped(it.chips as u64);
                let (pod, control) = ((&it.pod).into(), (&it.control).into());
                table.row([pod, it.family.into(), control, (&it.shape).into(), chips.into()]);
            }
            page.push_str(&format!("\n{table}"));
        }
        let mut table = Table::new(&["what", ">count"]);
        let counts = &self.counts;
        let parts = counts.parts.iter().map(|(name, n)| (format!("part {name}"), *n));
        let rest = [
            ("machines", counts.machines),
            ("chips", counts.chips),
            ("network cards", counts.nics),
            ("switches", counts.switches),
            ("ports", counts.ports),
            ("chip-to-chip links", counts.links),
            ("directed links", counts.directed_links),
            ("cables", counts.cables),
            ("of them fibres", counts.fibres),
        ];
        let rest = rest.into_iter().map(|(name, n)| (name.to_owned(), n));
        let domains = self.domains.iter().map(|(kind, n)| (format!("{kind} domains"), *n));
        for (name, n) in parts.chain(rest).chain(domains).filter(|it| it.1 != 0) {
            table.row([name.into(), grouped(n as u64).into()]);
        }
        page.push_str(&format!("\n{table}"));
        let of_pods =
            self.pods.iter().filter_map(|it| Some((it.pod.as_str(), it.measures.as_ref()?)));
        let of_pods: Vec<(&str, &Measures)> = of_pods.collect();
        match (&of_pods[..], &self.measures) {
            ([] | [_], Some(it)) => page.push_str(&measures_page(&[("value", it)])),
            ([], None) => {}
            (several, _) => page.push_str(&measures_page(several)),
        }
        let mut table = Table::new(&["threshold", ">value", "source"]);
        for it in &self.thresholds {
            table.row([it.key.into(), (&it.value).into(), it.source.into()]);
        }
        page.push_str(&format!("\n{table}"));
        let mut table = Table::new(&["pod", "share of", ">capital", ">power", "basis"]);
        let percent = |it: Option<f64>| it.map_or("-".to_owned(), |it| format!("< {it:.1} %"));
        for it in &self.shares {
            let (capital, power) = (percent(it.capital_max_percent), percent(it.power_max_percent));
            let (pod, what) = ((&it.pod).into(), (&it.what).into());
            table.row([pod, what, capital.into(), power.into(), (&it.basis).into()]);
        }
        if !self.shares.is_empty() {
            page.push_str(&format!("\n{table}"));
        }
        let wait = style::WAIT;
        for it in &self.topology_findings {
            page.push_str(&format!("\n{wait}topology:{wait:#} {it}\n"));
        }
        page
    }
}

/// Whether chips of the family are joined with nothing between that could be turned.
fn is_fixed(family: &Family) -> bool {
    match family {
        Family::Grid { .. } | Family::HyperSquare(_) => true,
        Family::Tpuv4 { .. } | Family::Hosts { .. } => false,
    }
}

/// What graphs of chips come to, side by side.
fn measures_page(graphs: &[(&str, &Measures)]) -> String {
    let heads: Vec<String> = graphs.iter().map(|it| format!(">{}", it.0)).collect();
    let heads: Vec<&str> =
        std::iter::once("over chips").chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    type Line = (&'static str, fn(&Measures) -> Option<String>);
    let lines: [Line; 4] = [
        ("links of a chip", |it| Some(format!("{}..{}", it.degree[0], it.degree[1]))),
        ("diameter", |it| it.diameter.map(|it| it.to_string())),
        ("mean distance", |it| it.mean_distance.map(|it| format!("{it:.3}"))),
        ("bisection", Measures::said),
    ];
    for (name, of) in lines {
        let values: Vec<Option<String>> = graphs.iter().map(|it| of(it.1)).collect();
        if values.iter().any(Option::is_some) {
            let values = values.into_iter().map(|it| it.unwrap_or_else(|| "-".to_owned()).into());
            table.row_of(std::iter::once(name.into()).chain(values).collect());
        }
    }
    format!("\n{table}")
}

fn topology_findings(plant: &Plant, fabric: &Fabric) -> Vec<String> {
    let found = warnings(plant, fabric).into_iter();
    let found = found.filter(|it| matches!(it, Warning::TopologyFile { .. }));
    found.map(|it| it.to_string()).collect()
}

fn domain_word(kind: DomainKind) -> &'static str {
    match kind {
        DomainKind::Rack => "rack",
        DomainKind::Power => "power",
        DomainKind::Cooling => "cooling",
        DomainKind::Plane => "plane",
    }
}

fn thresholds(plant: &Plant) -> Vec<ShownThreshold> {
    let golden = threshold_values(&Thresholds::GOLDEN);
    let own = threshold_values(&plant.thresholds).into_iter().zip(golden);
    let own = own.zip(Thresholds::SOURCES);
    own.map(|(((key, value), (_, golden)), source)| {
        let source = if value == golden { source } else { "the plant file" };
        ShownThreshold { key, value: value.trim_matches('"').to_owned(), source }
    })
    .collect()
}

/// The committed shares; the source stands last and in quotes.
const SHARES: &str = include_str!("shares.csv");

/// What each pod's optics cost at most.
///
/// The figures are published for a full pod.  A pod with fewer cubes has all its switches from the
/// first day on: what they cost then falls on fewer cubes.
pub(super) fn shares(plant: &Plant) -> Vec<Share> {
    let mut shares = Vec::new();
    for (idx, pod) in plant.pods.iter().enumerate() {
        let pod_name = format!("pod{idx}");
        let known = SHARES.lines().skip(1).filter_map(|line| {
            let mut fields = line.splitn(6, ',');
            let is_own = fields.next()? == pod.family.word();
            let what = fields.next()?.to_owned();
            let mut number = || fields.next()?.parse::<f64>().ok();
            let row = [number()?, number()?, number()?];
            let source = fields.next()?.trim_matches('"').to_owned();
            is_own.then_some((what, row, source))
        });
        let known: Vec<_> = known.collect();
        for (what, [n_full, capital, power], source) in &known {
            let n_cubes = match &pod.family {
                Family::Tpuv4 { deployed, .. } => deployed.len() as f64,
                Family::Grid { .. } | Family::HyperSquare(_) | Family::Hosts { .. } => *n_full,
            };
            let basis = match n_cubes < *n_full {
                true => format!("assumed for {n_cubes} cubes, all switches bought; from {source}"),
                false => source.clone(),
            };
            shares.push(Share {
                pod: pod_name.clone(),
                what: what.clone(),
                capital_max_percent: Some(scaled(*capital, n_full / n_cubes)),
                power_max_percent: Some(scaled(*power, n_full / n_cubes)),
                basis,
            });
        }
        if known.is_empty() {
            shares.push(Share {
                pod: pod_name,
                what: "cables between its parts".to_owned(),
                capital_max_percent: None,
                power_max_percent: None,
                basis: format!("no published figure for {}", pod.family.word()),
            });
        }
    }
    shares
}

/// The share of what costs `percent` of a whole, where all else is `times` smaller.
fn scaled(percent: f64, times: f64) -> f64 {
    if times.is_infinite() {
        return 100.0;
    }
    let ratio = percent / (100.0 - percent) * times;
    100.0 * ratio / (1.0 + ratio)
}
