//! What is different between two plants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::fabric::LinkAttrs;
use crate::spec::parse::DOMAIN_KINDS;
use crate::spec::plant::{CableSpec, Control, Family, Missing, Plant, Pod};
use crate::spec::render::{db, power_values, threshold_values, word, wrap_word};

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
            Family::Grid { .. } => {}
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
    for spec in &plant.templates {
        let it = &spec.template;
        add(Entity::Template, 0, &it.name, template_words(it));
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

fn cable_words(cable: &CableSpec) -> String {
    let LinkAttrs { capacity, latency, kind } = cable.attrs;
    let latency = latency.as_nanos();
    format!("to {}, {kind:?}, {capacity}, {latency}ns, {}", cable.b.name, cable.loss)
}

fn pod_words(pod: &Pod) -> String {
    let size = match &pod.family {
        Family::Tpuv4 { cubes, .. } => format!("{cubes} slots"),
        Family::Grid { sides, wraps, .. } => {
            format!("{}x{} wrap {}", sides[0], sides[1], wrap_word(*wraps))
        }
        Family::Hosts { .. } => "hosts".to_owned(),
    };
    let control = match &pod.control {
        Control::Simulated => "simulated",
        Control::Address(address) => address,
    };
    match pod.family {
        Family::Hosts { .. } => format!("hosts, {control}"),
        Family::Tpuv4 { .. } | Family::Grid { .. } => {
            format!("{} {size}, {control}", pod.family.word())
        }
    }
}

/// A template's counts, and a checksum so that equal counts do not hide a change.
fn template_words(template: &crate::fabric::Template) -> String {
    let mut sum: u32 = 0x811c_9dc5;
    for byte in format!("{template:?}").bytes() {
        sum = (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let (n_nodes, n_ports) = (template.nodes().len(), template.ports().len());
    let (n_links, n_seats) = (template.link_pairs().len(), template.seats().len());
    format!("{n_nodes} nodes, {n_ports} ports, {n_links} links, {n_seats} seats, sum {sum:08x}")
}
