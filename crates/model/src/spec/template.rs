//! Inner structures written down in a plant file.

use std::collections::BTreeMap;

use crate::fabric::{
    LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
    TemplateError,
};
use crate::spec::error::Wrong;
use crate::spec::hypersquare::{NS_PER_M, Wire};
use crate::spec::plant::{Named, TemplateSpec};
use crate::spec::reader::{Names, Reader, Table, nearest_of};
use crate::unit::{BitRate, Span};

const TEMPLATE: &[&str] = &["name", "role", "nodes", "ports", "links", "seats"];
const LINK: &[&str] = &["a", "b", "kind", "gbps", "latency_ns"];
const ROLE_WORDS: &[&str] = &["compute", "circuit-switch", "packet-switch"];
const NODE_WORDS: &[&str] = &["chip", "machine", "tray", "cpu", "nic", "switch"];
const SIDE_WORDS: &[&str] = &["plain", "north", "south"];
pub(super) const ROLES: [(&str, Role); 3] = [
    ("compute", Role::Compute),
    ("circuit-switch", Role::CircuitSwitch),
    ("packet-switch", Role::PacketSwitch),
];
pub(super) const NODE_KINDS: [(&str, NodeKind); 6] = [
    ("chip", NodeKind::Chip),
    ("machine", NodeKind::Machine),
    ("tray", NodeKind::Tray),
    ("cpu", NodeKind::Cpu),
    ("nic", NodeKind::Nic),
    ("switch", NodeKind::Switch),
];
pub(super) const SIDES: [(&str, Side); 3] =
    [("plain", Side::Plain), ("north", Side::North), ("south", Side::South)];

pub(super) const LINK_KINDS: [(&str, LinkKind); 7] = [
    ("ici", LinkKind::Ici),
    ("fibre", LinkKind::Fibre),
    ("pcie", LinkKind::Pcie),
    ("nvlink", LinkKind::NvLink),
    ("ethernet", LinkKind::Ethernet),
    ("board", LinkKind::Board),
    ("socket", LinkKind::Socket),
];
pub(super) const LINK_WORDS: &[&str] =
    &["ici", "fibre", "pcie", "nvlink", "ethernet", "board", "socket"];

pub(super) fn read_all(reader: &mut Reader, text: &str, root: &Table<'_>) -> Vec<TemplateSpec> {
    let mut templates = Vec::new();
    let mut names = Names::of("template", text);
    for table in reader.tables(root, "template", "[[template]]", TEMPLATE) {
        let Some(name) = reader.need_name(&table, "name", "name = \"host\"") else { continue };
        names.add(reader, &name);
        let Some(template) = read(reader, text, &table, &name) else { continue };
        templates.push(TemplateSpec { template, at: name.at });
    }
    templates
}

/// The places of names in one list, for references to them.
struct Places {
    what: &'static str,
    template: String,
    places: BTreeMap<String, u32>,
}

impl Places {
    fn of(what: &'static str, template: &Named) -> Self {
        Self { what, template: template.name.clone(), places: BTreeMap::new() }
    }

    fn add(&mut self, name: &str) {
        let place = u32::try_from(self.places.len()).expect("limits keep files below 4 GiB");
        self.places.entry(name.to_owned()).or_insert(place);
    }

    /// A node that holds others stands before them.
    fn find_parent(&self, reader: &mut Reader, name: &Named) -> Option<u32> {
        self.find_as("node before this one", reader, name)
    }

    fn find(&self, reader: &mut Reader, name: &Named) -> Option<u32> {
        self.find_as(self.what, reader, name)
    }

    fn find_as(&self, what: &'static str, reader: &mut Reader, name: &Named) -> Option<u32> {
        let found = self.places.get(&name.name).copied();
        if found.is_none() {
            let near = nearest_of(&name.name, self.places.keys().map(String::as_str));
            let wrong = Wrong::NoSuch {
                what,
                name: name.name.clone(),
                table: format!("template {}", self.template),
                near: near.map(str::to_owned),
            };
            reader.fault(name.at, wrong);
        }
        found
    }
}

fn read(reader: &mut Reader, text: &str, table: &Table<'_>, name: &Named) -> Option<Template> {
    let n_faults = reader.faults.len();
    let role = reader.word(table, "role", ROLE_WORDS).map_or(Role::Compute, |it| ROLES[it].1);
    let (nodes, node_places) = read_nodes(reader, text, table, name);
    let (ports, port_places) = read_ports(reader, text, table, name, &node_places);
    let mut links = Vec::new();
    for link in reader.tables(table, "links", "a link of a template", LINK) {
        let a = reader.need_name(&link, "a", "a = \"gpu0/pcie\"");
        let b = reader.need_name(&link, "b", "b = \"cpu/pcie0\"");
        let attrs = read_attrs(reader, &link);
        let (Some(a), Some(b)) = (a, b) else { continue };
        if a.name == b.name {
            reader.fault(b.at, Wrong::OneEnd { port: b.name });
            continue;
        }
        let (a, b) = (port_places.find(reader, &a), port_places.find(reader, &b));
        links.extend(a.zip(b).map(|(a, b)| LinkSpec { a, b, attrs }));
    }
    let mut seats = Vec::new();
    let mut seat_names = Names::of("seat", text);
    for seat in reader.names(table, "seats") {
        seat_names.add(reader, &seat);
        seats.extend(node_places.find(reader, &seat));
    }
    if n_faults < reader.faults.len() {
        return None;
    }
    let n_seats = seats.len();
    match Template::new(name.name.clone(), role, nodes, ports, links, seats) {
        Ok(template) => Some(template),
        Err(TemplateError::TooManySeats { name: template, max: _ }) => {
            reader.fault(table.value_at("seats"), Wrong::TooManySeats { template, n_seats });
            None
        }
        Err(TemplateError::PortLinkedTwice { name: template, port }) => {
            let name = format!("{template}/{port}");
            reader.fault(table.value_at("links"), Wrong::LinkedTwice { port: name });
            None
        }
    }
}

fn read_nodes(
    reader: &mut Reader,
    text: &str,
    table: &Table<'_>,
    template: &Named,
) -> (Vec<NodeSpec>, Places) {
    let (mut nodes, mut places) = (Vec::new(), Places::of("node", template));
    let mut names = Names::of("node", text);
    let known = &["name", "kind", "parent"];
    let tables = reader.tables(table, "nodes", "a node of a template", known);
    if tables.is_empty() {
        let example = "nodes = [{ name = \"gpu0\", kind = \"chip\" }]";
        reader.fault(table.at, Wrong::MissingKey { key: "nodes", table: table.name, example });
    }
    for node in tables {
        let name = reader.need_name(&node, "name", "name = \"gpu0\"");
        reader.need_text(&node, "kind", "kind = \"chip\"");
        let kind = reader.word(&node, "kind", NODE_WORDS);
        let parent = reader.name(&node, "parent");
        let (Some(name), Some(kind)) = (name, kind) else { continue };
        let parent = parent.and_then(|it| places.find_parent(reader, &it));
        names.add(reader, &name);
        places.add(&name.name);
        nodes.push(NodeSpec { kind: NODE_KINDS[kind].1, name: name.name, parent });
    }
    (nodes, places)
}

fn read_ports(
    reader: &mut Reader,
    text: &str,
    table: &Table<'_>,
    template: &Named,
    nodes: &Places,
) -> (Vec<PortSpec>, Places) {
    let (mut ports, mut places) = (Vec::new(), Places::of("port", template));
    let mut names = Names::of("port", text);
    for port in reader.tables(table, "ports", "a port of a template", &["name", "node", "side"]) {
        let name = reader.need_name(&port, "name", "name = \"nic0/port\"");
        let node = reader.need_name(&port, "node", "node = \"nic0\"");
        let side = reader.word(&port, "side", SIDE_WORDS).map_or(Side::Plain, |it| SIDES[it].1);
        let (Some(name), Some(node)) = (name, node) else { continue };
        names.add(reader, &name);
        if nodes.places.contains_key(&name.name) {
            reader.fault(name.at, Wrong::NodeAndPort { name: name.name.clone() });
        }
        places.add(&name.name);
        let node = nodes.find(reader, &node);
        ports.extend(node.map(|node| PortSpec { node, name: name.name, side }));
    }
    (ports, places)
}

/// What a cable or an inner link has; a 400 Gb/s Ethernet cable where nothing is said.
pub(super) fn read_attrs(reader: &mut Reader, table: &Table<'_>) -> LinkAttrs {
    let kind = reader.word(table, "kind", LINK_WORDS);
    let gbps = reader.number(table, "gbps", 1, 1_000_000);
    let latency = reader.number(table, "latency_ns", 0, 1_000_000_000);
    let kind = kind.map_or(LinkKind::Ethernet, |it| LINK_KINDS[it].1);
    LinkAttrs {
        capacity: BitRate::gbps(gbps.unwrap_or(CABLE_GBPS)),
        latency: latency.map_or_else(|| latency_of(kind), Span::nanos),
        kind,
    }
}

/// What a bit takes over the longest cable of `kind`, and over 100 m of fibre where the kind says
/// nothing of its wire.
fn latency_of(kind: LinkKind) -> Span {
    Wire::of(kind).unwrap_or(Wire::Fibre).reach().time_at(NS_PER_M)
}

/// Assumed: what a port of today's training clusters carries.
pub(super) const CABLE_GBPS: u64 = 400;
