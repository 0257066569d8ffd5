//! What is different between two plants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::fabric::{LinkAttrs, Template};
use crate::spec::hypersquare;
use crate::spec::parse::DOMAIN_KINDS;
use crate::spec::plant::{CableSpec, Control, Family, Missing, Plant, Pod};
use crate::spec::render::{db, power_values, threshold_values, word, wrap_word};
use crate::spec::template::{LINK_KINDS, NODE_KINDS, ROLES, SIDES};

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entity {
    /// The plant's own name.
    Plant,
    /// A generator.
    Pod,
    /// A cube of a pod.
    Cube,
    /// A host of a pod.
    Host,
    /// A golden threshold.
    Threshold,
    /// The expected loss of all fibres.
    Optics,
    /// How parts share racks and feeds.
    Power,
    /// An inner structure.
    Template,
    /// A topology file.
    Topology,
    /// A host with a topology of its own.
    Machine,
    /// A part written down.
    Part,
    /// A cable, generated or written down.
    Cable,
    /// A failure domain.
    Domain,
    /// Something that is not there.
    Missing,
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entity::Plant => "plant",
            Entity::Pod => "pod",
            Entity::Cube => "cube",
            Entity::Host => "host",
            Entity::Threshold => "threshold",
            Entity::Optics => "optics",
            Entity::Power => "power",
            Entity::Template => "template",
            Entity::Topology => "topology",
            Entity::Machine => "machine",
            Entity::Part => "part",
            Entity::Cable => "cable",
            Entity::Domain => "domain",
            Entity::Missing => "missing",
        })
    }
}

/// One difference: `from` without `to` is a removal, `to` without `from` an addition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What kind of thing it is.
    pub entity: Entity,
    /// Its name, or the key that says it.
    pub name: String,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { entity, name, from, to } = self;
        let tail = |text: &str| match text.is_empty() {
            true => String::new(),
            false => format!(": {text}"),
        };
        // `cube17` says by itself that it is a cube.
        let entity = entity.to_string();
        let name = match name.starts_with(&entity) {
            true => name.clone(),
            false => format!("{entity} {name}"),
        };
        match (from, to) {
            (Some(from), Some(to)) => write!(f, "~ {name}: {from} -> {to}"),
            (Some(from), None) => write!(f, "- {name}{}", tail(from)),
            (None, Some(to)) => write!(f, "+ {name}{}", tail(to)),
            (None, None) => write!(f, "  {name}"),
        }
    }
}

/// Everything in which `new` differs from `old`: in the order of [`Entity`], then by name.
/// Equal plants give nothing.
pub fn diff(old: &Plant, new: &Plant) -> Vec<Change> {
    let (old, new) = (facts(old), facts(new));
    let keys: BTreeSet<&Key> = old.keys().chain(new.keys()).collect();
    let change = |key: &Key| {
        let (from, to) = (old.get(key), new.get(key));
        let (entity, _, name) = key.clone();
        (from != to).then(|| Change { entity, name, from: from.cloned(), to: to.cloned() })
    };
    keys.into_iter().filter_map(change).collect()
}

/// Entity, number for the order of names that count, name.
type Key = (Entity, u32, String);

/// A plant as a flat table of facts.
fn facts(plant: &Plant) -> BTreeMap<Key, String> {
    let mut facts = BTreeMap::new();
    let mut add = |entity, number, name: &str, value: String| {
        facts.insert((entity, number, name.to_owned()), value);
    };
    add(Entity::Plant, 0, "name", plant.name.clone());
    let firsts = plant.first_cubes().into_iter().zip(plant.first_hosts());
    for ((idx, pod), (first_cube, first_host)) in plant.pods.iter().enumerate().zip(firsts) {
        let number = u32::try_from(idx).expect("few pods");
        add(Entity::Pod, number, &format!("pod{idx}"), pod_words(pod));
        match &pod.family {
            Family::Tpuv4 { deployed, .. } => {
                for slot in deployed {
                    let cube = first_cube + u32::from(*slot);
                    let place = format!("pod{idx} slot {slot}");
                    add(Entity::Cube, cube, &format!("cube{cube}"), place);
                }
            }
            Family::Hosts { hosts } => {
                for host in first_host..first_host + hosts {
                    add(Entity::Host, host, &format!("host{host}"), format!("pod{idx}"));
                }
            }
            Family::Grid { .. } | Family::HyperSquare(_) => {}
        }
    }
    let numbers = 0..;
    for (number, (key, value)) in numbers.zip(threshold_values(&plant.thresholds)) {
        add(Entity::Threshold, number, key, value);
    }
    add(Entity::Optics, 0, "loss_db", db(plant.optics.loss));
    for (number, (key, value)) in (0..).zip(power_values(&plant.power)) {
        add(Entity::Power, number, key, value.to_string());
    }
    written(plant, &mut add);
    facts
}

/// What is written down one by one.
fn written(plant: &Plant, add: &mut impl FnMut(Entity, u32, &str, String)) {
    plant.templates.iter().for_each(|it| inner(&it.template, add));
    for topology in &plant.topologies {
        add(Entity::Topology, 0, &topology.name, file_words(&topology.xml));
    }
    for machine in &plant.machines {
        add(Entity::Machine, 0, &machine.name.name, machine.topology.name.clone());
    }
    for part in &plant.parts {
        let pool = part.pool.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
        add(Entity::Part, 0, &part.name, format!("{}{pool}", part.template.name));
    }
    for patch in &plant.patches {
        let port = patch.port.as_ref().map_or("its own port", |it| &it.name);
        let loss = patch.loss.map(|it| format!(", {it}")).unwrap_or_default();
        add(Entity::Cable, 0, &patch.end.name, format!("to {port}{loss}"));
    }
    for cable in &plant.cables {
        add(Entity::Cable, 0, &cable.a.name, cable_words(cable));
    }
    for domain in &plant.domains {
        let parts: Vec<&str> = domain.parts.iter().map(|it| it.name.as_str()).collect();
        let kind = word(&DOMAIN_KINDS, domain.kind);
        add(Entity::Domain, 0, &domain.name, format!("{kind} of {}", parts.join(", ")));
    }
    for missing in &plant.missing {
        let (name, what) = match missing {
            Missing::Part(it) => (&it.name, "part"),
            Missing::Cable(it) => (&it.name, "cable"),
        };
        add(Entity::Missing, 0, name, what.to_owned());
    }
}

/// How long a file is and a number that differs where files do (FNV-1a).
fn file_words(text: &str) -> String {
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |acc, byte| {
        (acc ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{} bytes, {digest:016x}", text.len())
}

fn cable_words(cable: &CableSpec) -> String {
    let length = cable.length.map_or_else(String::new, |it| format!(", {it}"));
    format!("to {}, {}, {}{length}", cable.b.name, attrs_words(&cable.attrs), cable.loss)
}

fn pod_words(pod: &Pod) -> String {
    let size = match &pod.family {
        Family::Tpuv4 { cubes, .. } => format!("{cubes} slots"),
        Family::Grid { sides, wraps, .. } => {
            format!("{}x{} wrap {}", sides[0], sides[1], wrap_word(*wraps))
        }
        Family::HyperSquare(it) => hypersquare::words(it),
        Family::Hosts { .. } => "hosts".to_owned(),
    };
    let control = match &pod.control {
        Control::Simulated => "simulated",
        Control::Address(address) => address,
    };
    match pod.family {
        Family::Hosts { .. } => {
            let topology = pod.topology.as_ref().map(|it| format!(" of {}", it.name));
            format!("hosts{}, {control}", topology.unwrap_or_default())
        }
        Family::Tpuv4 { .. } | Family::Grid { .. } | Family::HyperSquare(_) => {
            format!("{} {size}, {control}", pod.family.word())
        }
    }
}

/// The inner structure of a template, one fact for each node, port and link.  Places are part of
/// what it is: ids follow them.
fn inner(template: &Template, add: &mut impl FnMut(Entity, u32, &str, String)) {
    let (nodes, ports) = (template.nodes(), template.ports());
    let node = |it: u32| nodes[it as usize].name.as_str();
    let port = |it: u32| ports[it as usize].name.as_str();
    let mut add = |name: String, value: String| {
        add(Entity::Template, 0, &format!("{} {name}", template.name), value);
    };
    add("role".to_owned(), word(&ROLES, template.role).to_owned());
    for (place, it) in nodes.iter().enumerate() {
        let parent = it.parent.map(|it| format!(" in {}", node(it))).unwrap_or_default();
        let kind = word(&NODE_KINDS, it.kind);
        add(format!("node {}", it.name), format!("{kind}{parent}, place {place}"));
    }
    for (place, it) in ports.iter().enumerate() {
        let (node, side) = (node(it.node), word(&SIDES, it.side));
        add(format!("port {}", it.name), format!("{side} on {node}, place {place}"));
    }
    for (place, it) in template.link_pairs().iter().enumerate() {
        let attrs = attrs_words(&it.attrs);
        add(format!("link {}", port(it.a)), format!("to {}, {attrs}, place {place}", port(it.b)));
    }
    let seats: Vec<&str> = template.seats().iter().map(|&it| node(it)).collect();
    add("seats".to_owned(), seats.join(", "));
}

fn attrs_words(attrs: &LinkAttrs) -> String {
    let kind = word(&LINK_KINDS, attrs.kind);
    format!("{kind}, {}, {}ns", attrs.capacity, attrs.latency.as_nanos())
}
