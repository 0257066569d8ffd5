//! What is strange about a plant but not wrong.

use std::collections::BTreeMap;
use std::fmt;

use selvedge_model::fabric::{Fabric, FileFault, Part};
use selvedge_model::id::{PartId, TemplateId};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::{Control, Family};
use selvedge_model::unit::CentiDb;

use crate::host::inside::PREFIX;

/// Something that a plant may be, though it is likely not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A pod of which no cube is deployed.
    EmptyPod {
        /// The pod.
        pod: usize,
    },
    /// A pod of real devices.
    RealDevices {
        /// The pod.
        pod: usize,
        /// Their address.
        address: String,
    },
    /// A port that an empty slot will need once it is filled.
    PortOfEmptySlot {
        /// The port.
        port: String,
        /// The cube whose port it will be.
        cube: String,
    },
    /// A topology file in which `topo lint` finds something.
    TopologyFile {
        /// Whether preflight takes the hosts that have it out of use.
        is_error: bool,
        /// The inner structure that is built from it.
        template: String,
        /// How many hosts have it.
        n_hosts: usize,
        /// The rule.
        rule: &'static str,
        /// Where, as line and column; empty of the server as a whole.
        place: String,
        /// What.
        what: String,
        /// In how many more places.
        n_more: usize,
        /// What to do about it.
        advice: String,
    },
    /// Fibres that lose more than the thresholds allow before anything is wrong with them.
    LossExpected {
        /// How many there are.
        n_fibres: usize,
        /// The port of one of them.
        port: String,
        /// Its expected loss.
        loss: CentiDb,
        /// The threshold.
        max: CentiDb,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::EmptyPod { pod } => write!(f, "pod{pod} has no cube"),
            Warning::RealDevices { pod, address } => write!(
                f,
                "pod{pod} names real devices at {address}: Selvedge only observes them until told \
                 otherwise by --act"
            ),
            Warning::PortOfEmptySlot { port, cube } => {
                write!(f, "{port} is patched, and {cube} will need it once it is deployed")
            }
            Warning::TopologyFile {
                is_error,
                template,
                n_hosts,
                rule,
                place,
                what,
                n_more,
                advice,
            } => {
                let file = template.strip_prefix(PREFIX).unwrap_or(template);
                let hosts = if *n_hosts == 1 { "host" } else { "hosts" };
                let end = match is_error {
                    true => "preflight takes them out of use",
                    false => "preflight says so and goes on",
                };
                let colon = if place.is_empty() { "" } else { ":" };
                let more = match n_more {
                    0 => String::new(),
                    1 => ", and in 1 more place".to_owned(),
                    n => format!(", and in {n} more places"),
                };
                write!(
                    f,
                    "{file}{colon}{place}: {what}{more} [{rule}], of {n_hosts} {hosts}: {end}; {advice}"
                )
            }
            Warning::LossExpected { n_fibres, port, loss, max } => write!(
                f,
                "fibres that are expected to lose more than loss_max_db ({max}): {n_fibres}, such \
                 as {port} with {loss}; they would not pass preflight"
            ),
        }
    }
}

/// What is strange about `plant`, whose fabric is `fabric`.
pub fn warnings(plant: &Plant, fabric: &Fabric) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (pod, spec) in plant.pods.iter().enumerate() {
        match &spec.family {
            Family::Tpuv4 { deployed, .. } if deployed.is_empty() => {
                warnings.push(Warning::EmptyPod { pod });
            }
            Family::Tpuv4 { .. }
            | Family::Grid { .. }
            | Family::HyperSquare(_)
            | Family::Hosts { .. } => {}
        }
        if let Control::Address(address) = &spec.control {
            warnings.push(Warning::RealDevices { pod, address: address.clone() });
        }
    }
    for patch in &plant.patches {
        let Some(port) = &patch.port else { continue };
        if let Some(cube) = cube_of_slot(plant, fabric, &port.name) {
            warnings.push(Warning::PortOfEmptySlot { port: port.name.clone(), cube });
        }
    }
    warnings.extend(topology_files(fabric));
    let max = fabric.thresholds.loss_max;
    let lossy = || fabric.cables().iter().filter(|it| !it.retired && max < it.loss_expected);
    if let Some(first) = lossy().next() {
        warnings.push(Warning::LossExpected {
            n_fibres: lossy().count(),
            port: fabric.port_path(first.a),
            loss: first.loss_expected,
            max,
        });
    }
    warnings
}

/// What is found in the topology files of hosts, each file once.
fn topology_files(fabric: &Fabric) -> Vec<Warning> {
    let mut n_hosts: BTreeMap<TemplateId, (PartId, usize)> = BTreeMap::new();
    for (id, part) in fabric.parts().pairs().filter(|(_, it)| !it.retired) {
        n_hosts.entry(part.template).or_insert((id, 0)).1 += 1;
    }
    let mut warnings = Vec::new();
    for (part, n_hosts) in n_hosts.into_values() {
        let template = &fabric.template_of(part).name;
        let faults = fabric.file_faults_of(part);
        for (idx, it) in faults.iter().enumerate() {
            let (place, what) = placed(&it.what);
            let is_alike =
                |other: &&FileFault| other.name == it.name && placed(&other.what).1 == what;
            // What stands in many places of a file is told once, at the first.
            if faults[..idx].iter().any(|it| is_alike(&it)) {
                continue;
            }
            warnings.push(Warning::TopologyFile {
                is_error: it.is_error,
                template: template.clone(),
                n_hosts,
                rule: it.name,
                place: place.to_owned(),
                what: what.to_owned(),
                n_more: faults[idx + 1..].iter().filter(is_alike).count(),
                advice: it.advice.clone(),
            });
        }
    }
    warnings
}

/// `5:9: what` in its two parts; the first is empty where the text names no place.
fn placed(what: &str) -> (&str, &str) {
    let is_place = |it: &str| {
        let mut numbers = it.split(':');
        let mut number = || numbers.next().is_some_and(|it| it.parse::<u32>().is_ok());
        number() && number() && numbers.next().is_none()
    };
    what.split_once(": ").filter(|it| is_place(it.0)).unwrap_or(("", what))
}

/// The cube that is not deployed but to whose slot the switch port `path` belongs.
fn cube_of_slot(plant: &Plant, fabric: &Fabric, path: &str) -> Option<String> {
    let (switch, port) = path.rsplit_once('/')?;
    let slot: u16 = port.get(1..)?.parse().ok()?;
    let switch: &Part = fabric.part(fabric.part_named(switch)?);
    let pool = &fabric.pools()[switch.pool?];
    let pod: usize = pool.strip_prefix("pod")?.parse().ok()?;
    match &plant.pods.get(pod)?.family {
        Family::Tpuv4 { cubes, deployed } if slot < *cubes && !deployed.contains(&slot) => {
            Some(format!("cube{}", plant.first_cubes()[pod] + u32::from(slot)))
        }
        Family::Tpuv4 { .. }
        | Family::Grid { .. }
        | Family::HyperSquare(_)
        | Family::Hosts { .. } => None,
    }
}
