//! From a plant to its canonical text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::fabric::{LinkAttrs, Template};
use crate::hardware::Thresholds;
use crate::limits::PLANT_FORMAT;
use crate::spec::hypersquare;
use crate::spec::parse::DOMAIN_KINDS;
use crate::spec::plant::{CableSpec, Control, Family, Missing, Optics, Patch, Plant, Pod, Power};
use crate::spec::template::{LINK_KINDS, NODE_KINDS, ROLES, SIDES};
use crate::spec::topology;
use crate::unit::{CentiDb, Span};

impl Plant {
    /// The plant as canonical TOML, which reads back equal.  What is as by default is left out.
    pub fn render(&self) -> String {
        let mut out = format!("format = {PLANT_FORMAT}\nname = {}\n", quoted(&self.name));
        self.pods.iter().for_each(|it| pod(&mut out, it));
        thresholds(&mut out, &self.thresholds);
        if self.optics != Optics::DEFAULT {
            let _ = write!(out, "\n[optics]\nloss_db = {}\n", db(self.optics.loss));
        }
        power(&mut out, &self.power);
        self.templates.iter().for_each(|it| template(&mut out, &it.template));
        topology::render(&mut out, self);
        for part in &self.parts {
            let _ = write!(out, "\n[[part]]\nname = {}\n", quoted(&part.name));
            let _ = writeln!(out, "template = {}", quoted(&part.template.name));
            if let Some(pool) = &part.pool {
                let _ = writeln!(out, "pool = {}", quoted(pool));
            }
        }
        for domain in &self.domains {
            let _ = write!(out, "\n[[domain]]\nname = {}\n", quoted(&domain.name));
            let _ = writeln!(out, "kind = {}", quoted(word(&DOMAIN_KINDS, domain.kind)));
            let parts = list(domain.parts.iter().map(|it| quoted(&it.name)));
            let _ = writeln!(out, "parts = {parts}");
        }
        self.patches.iter().for_each(|it| patch(&mut out, it));
        self.cables.iter().for_each(|it| cable(&mut out, it, self.optics.loss));
        for missing in &self.missing {
            let (key, name) = match missing {
                Missing::Part(it) => ("part", it),
                Missing::Cable(it) => ("cable", it),
            };
            let _ = write!(out, "\n[[missing]]\n{key} = {}\n", quoted(&name.name));
        }
        out
    }
}

fn pod(out: &mut String, pod: &Pod) {
    let _ = write!(out, "\n[[pod]]\nfamily = {}\n", quoted(pod.family.word()));
    match &pod.family {
        Family::Tpuv4 { cubes, deployed } => {
            let _ = writeln!(out, "cubes = {cubes}");
            if deployed.len() < usize::from(*cubes) {
                let _ = writeln!(out, "deployed = {}", quoted(&slots(deployed)));
            }
        }
        Family::Grid { chip, sides, wraps } => {
            if *sides != chip.sides() {
                let _ = writeln!(out, "grid = \"{}x{}\"", sides[0], sides[1]);
            }
            if *wraps != [true, true] {
                let _ = writeln!(out, "wrap = {}", quoted(wrap_word(*wraps)));
            }
        }
        Family::HyperSquare(it) => hypersquare::render(out, it),
        Family::Hosts { hosts } => {
            let _ = writeln!(out, "hosts = {hosts}");
        }
    }
    if let Some(topology) = &pod.topology {
        let _ = writeln!(out, "topology = {}", quoted(&topology.name));
    }
    if let Control::Address(address) = &pod.control {
        let _ = writeln!(out, "control = {}", quoted(address));
    }
}

/// The word for which sides of a grid close to rings.
pub(super) const fn wrap_word(wraps: [bool; 2]) -> &'static str {
    match wraps {
        [true, true] => "xy",
        [true, false] => "x",
        [false, true] => "y",
        [false, false] => "none",
    }
}

/// `0-15,20`; `none` for no slot at all.
pub(super) fn slots(slots: &BTreeSet<u16>) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for &slot in slots {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    if ranges.is_empty() {
        return "none".to_owned();
    }
    let piece = |&(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(piece).collect::<Vec<_>>().join(",")
}

/// Every threshold by its key, as a value of TOML.
pub fn threshold_values(it: &Thresholds) -> [(&'static str, String); 8] {
    [
        ("loss_max_db", db(it.loss_max)),
        ("loss_excess_max_db", db(it.loss_excess_max)),
        ("bits_per_error_min", it.bits_per_error_min.to_string()),
        ("pcie_lanes_min", it.pcie_lanes_min.to_string()),
        ("pcie_generation_min", it.pcie_generation_min.to_string()),
        ("chip_errors_per_hour_max", it.chip_errors_per_hour_max.to_string()),
        ("flaps_max", it.flaps_max.to_string()),
        ("flap_window", quoted(&span(it.flap_window))),
    ]
}

/// Every number of the power section by its key.
pub(super) fn power_values(it: &Power) -> [(&'static str, u16); 4] {
    [
        ("cubes_per_rack", it.cubes_per_rack),
        ("boards_per_rack", it.boards_per_rack),
        ("hosts_per_rack", it.hosts_per_rack),
        ("racks_per_feed", it.racks_per_feed),
    ]
}

fn thresholds(out: &mut String, thresholds: &Thresholds) {
    let golden = threshold_values(&Thresholds::GOLDEN);
    let changed = threshold_values(thresholds).into_iter().zip(golden);
    let changed: Vec<_> = changed.filter(|(own, golden)| own.1 != golden.1).collect();
    if !changed.is_empty() {
        out.push_str("\n[thresholds]\n");
    }
    for ((key, value), _) in changed {
        let _ = writeln!(out, "{key} = {value}");
    }
}

fn power(out: &mut String, power: &Power) {
    if *power == Power::DEFAULT {
        return;
    }
    out.push_str("\n[power]\n");
    let pairs = power_values(power).into_iter().zip(power_values(&Power::DEFAULT));
    for ((key, value), _) in pairs.filter(|(own, default)| own.1 != default.1) {
        let _ = writeln!(out, "{key} = {value}");
    }
}

fn template(out: &mut String, template: &Template) {
    let _ = write!(out, "\n[[template]]\nname = {}\n", quoted(&template.name));
    let _ = writeln!(out, "role = {}", quoted(word(&ROLES, template.role)));
    let (nodes, ports) = (template.nodes(), template.ports());
    let node = |place: u32| quoted(&nodes[place as usize].name);
    let port = |place: u32| quoted(&ports[place as usize].name);
    let lines = nodes.iter().map(|it| {
        let parent = it.parent.map(|place| format!(", parent = {}", node(place)));
        let kind = quoted(word(&NODE_KINDS, it.kind));
        let parent = parent.unwrap_or_default();
        format!("{{ name = {}, kind = {kind}{parent} }}", quoted(&it.name))
    });
    rows(out, "nodes", lines);
    let lines = ports.iter().map(|it| {
        let side = match word(&SIDES, it.side) {
            "plain" => String::new(),
            side => format!(", side = {}", quoted(side)),
        };
        format!("{{ name = {}, node = {}{side} }}", quoted(&it.name), node(it.node))
    });
    rows(out, "ports", lines);
    let lines = template.link_pairs().iter().map(|it| {
        let attrs = attrs(&it.attrs).join(", ");
        format!("{{ a = {}, b = {}, {attrs} }}", port(it.a), port(it.b))
    });
    rows(out, "links", lines);
    let seats = list(template.seats().iter().map(|&it| node(it)));
    if !template.seats().is_empty() {
        let _ = writeln!(out, "seats = {seats}");
    }
}

fn rows(out: &mut String, key: &str, rows: impl ExactSizeIterator<Item = String>) {
    if rows.len() == 0 {
        return;
    }
    let _ = writeln!(out, "{key} = [");
    for row in rows {
        let _ = writeln!(out, "  {row},");
    }
    out.push_str("]\n");
}

fn attrs(attrs: &LinkAttrs) -> [String; 3] {
    [
        format!("kind = {}", quoted(word(&LINK_KINDS, attrs.kind))),
        format!("gbps = {}", attrs.capacity.bps() / 1_000_000_000),
        format!("latency_ns = {}", attrs.latency.as_nanos()),
    ]
}

fn patch(out: &mut String, patch: &Patch) {
    let _ = write!(out, "\n[[cable]]\nend = {}\n", quoted(&patch.end.name));
    if let Some(port) = &patch.port {
        let _ = writeln!(out, "port = {}", quoted(&port.name));
    }
    if let Some(loss) = patch.loss {
        let _ = writeln!(out, "loss_db = {}", db(loss));
    }
}

fn cable(out: &mut String, cable: &CableSpec, default_loss: CentiDb) {
    let (a, b) = (quoted(&cable.a.name), quoted(&cable.b.name));
    let _ = write!(out, "\n[[cable]]\na = {a}\nb = {b}\n");
    for line in attrs(&cable.attrs) {
        let _ = writeln!(out, "{line}");
    }
    if let Some(length) = cable.length {
        let _ = writeln!(out, "length_mm = {}", length.as_mm());
    }
    if cable.loss != default_loss {
        let _ = writeln!(out, "loss_db = {}", db(cable.loss));
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

pub(super) fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|it| it.1 == value).expect("every value has its word").0
}

/// Decibels as TOML writes them.
pub(super) fn db(loss: CentiDb) -> String {
    format!("{}.{:02}", loss.centi() / 100, loss.centi() % 100)
}

/// A span as `Span::parse` reads it, exactly.
pub(super) fn span(span: Span) -> String {
    let nanos = span.as_nanos();
    let (millis, rest) = (nanos / 1_000_000, nanos % 1_000_000);
    match rest {
        0 if millis != 0 && millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        0 if millis.is_multiple_of(1000) => format!("{}s", millis / 1000),
        0 => format!("{millis}ms"),
        _ => format!("{millis}.{rest:06}ms"),
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
