//! The intent check: every chip, PCIe link and link end against its golden threshold
//! (seed 000 §3.6.2).

use selvedge_model::fabric::{Fabric, LinkKind};
use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{PartId, PortId};

use crate::input::Readings;
use crate::settings::Golden;

/// One thing that is not up to its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub target: Target,
    /// What is wrong.
    pub symptom: Symptom,
    /// The measured value in the symptom's unit.
    pub value: u32,
}

/// Why readings cannot be judged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReadingsError {
    /// Another number of values than the part has seats or network ports.
    #[error("{part} has {want} {what}, its readings list {got}")]
    Length {
        /// Which part.
        part: String,
        /// What is counted.
        what: &'static str,
        /// How many there ought to be.
        want: usize,
        /// How many there are.
        got: usize,
    },
}

/// How many of a part's ports are network ports: those before the first on a PCIe link.
pub fn n_network_ports(fabric: &Fabric, part: PartId) -> usize {
    let template = fabric.template_of(part);
    let is_pcie = |port: usize| {
        let link = template.link_from(port);
        link.is_some_and(|link| template.link(link).2.kind == LinkKind::Pcie)
    };
    (0..template.ports().len()).find(|&port| is_pcie(port)).unwrap_or(template.ports().len())
}

/// Holds the readings of `part` against the thresholds; only what a job on `seats` uses counts,
/// its outer links only if `outer`.
///
/// # Errors
/// [`ReadingsError`].
pub fn judge(
    fabric: &Fabric,
    part: PartId,
    seats: u64,
    outer: bool,
    readings: &Readings,
    golden: &Golden,
) -> Result<Vec<Finding>, ReadingsError> {
    let template = fabric.template_of(part);
    let n_ports = n_network_ports(fabric, part);
    let check = |what, want: usize, got: usize| {
        let part = fabric.part(part).name.to_string();
        let fits = got == want;
        if fits { Ok(()) } else { Err(ReadingsError::Length { part, what, want, got }) }
    };
    check("seats", template.seats().len(), readings.chip_errors.len())?;
    check("seats", template.seats().len(), readings.pcie_gbps.len())?;
    check("network ports", n_ports, readings.link_errors.len())?;
    check("network ports", n_ports, readings.loss.len())?;

    let mut findings = Vec::new();
    for (seat, &node) in template.seats().iter().enumerate() {
        if seats >> seat & 1 == 0 {
            continue;
        }
        let target = Target::Node(fabric.node_at(part, node as usize));
        let errors = readings.chip_errors[seat];
        if golden.chip_errors_max < errors {
            findings.push(Finding { target, symptom: Symptom::ChipFailed, value: errors.into() });
        }
        let rate = readings.pcie_gbps[seat];
        if rate < golden.pcie_gbps_min {
            findings.push(Finding { target, symptom: Symptom::PcieDegraded, value: rate.into() });
        }
    }
    for port in 0..n_ports {
        let (errors, loss) = (readings.link_errors[port], readings.loss[port]);
        if errors <= golden.errors_max && loss <= golden.loss_max.centi() {
            continue;
        }
        let Some(target) = link_in_use(fabric, part, seats, outer, port) else { continue };
        let (symptom, value) = match (errors, golden.errors_max < errors) {
            (u16::MAX, _) => (Symptom::LinkDown, u32::from(errors)),
            (_, true) => (Symptom::LinkDegraded, u32::from(errors)),
            (_, false) => (Symptom::PortLossHigh, u32::from(loss)),
        };
        findings.push(Finding { target, symptom, value });
    }
    Ok(findings)
}

/// Holds the number of peers that the chips of `part` name against its network ports.
///
/// # Errors
/// [`ReadingsError`].
pub fn check_peers(
    fabric: &Fabric,
    part: PartId,
    peers: &[Option<PortId>],
) -> Result<(), ReadingsError> {
    let (want, got) = (n_network_ports(fabric, part), peers.len());
    if got == want {
        return Ok(());
    }
    let part = fabric.part(part).name.to_string();
    Err(ReadingsError::Length { part, what: "network ports", want, got })
}

/// The link at a port by its even direction, if a job on `seats` uses it.
fn link_in_use(
    fabric: &Fabric,
    part: PartId,
    seats: u64,
    outer: bool,
    port: usize,
) -> Option<Target> {
    let template = fabric.template_of(part);
    if let Some(inner) = template.link_from(port) {
        let ends = template.seats_of_link(inner);
        return (ends & seats == ends).then(|| Target::Link(fabric.link_at(part, inner & !1)));
    }
    let link = fabric.link_from(fabric.port_at(part, port))?;
    let here = template.seats_under(template.ports()[port].node as usize);
    (outer && here & seats == here).then(|| Target::Link(even(link)))
}

/// The direction of a link by which the pair is named.
pub fn even(link: selvedge_model::id::LinkId) -> selvedge_model::id::LinkId {
    selvedge_model::id::LinkId::new(link.number() & !1)
}
