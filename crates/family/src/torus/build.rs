//! From the slots of a pod to cubes, switches and fibres.

use std::collections::BTreeSet;

use selvedge_model::fabric::{DomainKind, Fabric};
use selvedge_model::spec::plant::{Family, Power};
use selvedge_model::spec::{At, Plant};
use selvedge_model::unit::CentiDb;

use crate::build::{BuildError, Racks, add_generated, pod_prefix};
use crate::layout::{CablePlan, Layout, PartDraft};
use crate::torus::hardware::{
    self, DIMS, FACE, FIBRE, SWITCHES, face_port, north_port, south_port,
};

/// A pod to be built.
pub(crate) struct Slots<'a> {
    /// Its number in the plant.
    pub(crate) pod: usize,
    /// The number of the cube in its first slot.
    pub(crate) first: u32,
    /// The slots that hold a cube.
    pub(crate) deployed: &'a BTreeSet<u16>,
    /// What each fibre loses.
    pub(crate) loss: CentiDb,
}

/// Adds the switches of a pod, `x0`..`z15` with `pod1/` and so on before them from the second pod
/// on, then its cubes, numbered over all pods, then the fibres: 96 to a cube.
pub(crate) fn add(layout: &mut Layout, slots: &Slots<'_>, power: &Power) {
    let pod = slots.pod;
    let cube = layout.template(hardware::TEMPLATE, hardware::cube);
    let switch = layout.template("ocs", hardware::switch);
    let pool = Some(layout.pool(&format!("pod{pod}")));
    let prefix = pod_prefix(pod);
    let mut switches = Vec::with_capacity(SWITCHES);
    for letter in DIMS {
        // Assumed: the 16 switches of a dimension share a rack, and have two feeds each.
        let rack = layout.domain(format!("pod{pod}/rack-{letter}"), DomainKind::Rack);
        for index in 0..FACE {
            let name = format!("{prefix}{letter}{index}");
            let draft = PartDraft { name, template: switch, pool, domains: vec![rack] };
            switches.push(add_generated(layout, draft));
        }
    }
    let mut racks = Racks::of(pod, power.cubes_per_rack, power.racks_per_feed);
    let mut cubes = Vec::with_capacity(slots.deployed.len());
    for &slot in slots.deployed {
        let name = format!("cube{}", slots.first + u32::from(slot));
        let domains = racks.domains(layout, usize::from(slot));
        cubes.push(add_generated(layout, PartDraft { name, template: cube, pool, domains }));
    }
    for (&part, &slot) in cubes.iter().zip(slots.deployed) {
        let slot = usize::from(slot);
        for dim in 0..DIMS.len() {
            for index in 0..FACE {
                let ocs = switches[FACE * dim + index];
                for (out, port) in [(true, north_port(slot)), (false, south_port(slot))] {
                    layout.cables.push(CablePlan {
                        a: layout.port(part, face_port(dim, out, index)),
                        b: layout.port(ocs, port),
                        attrs: FIBRE,
                        loss: slots.loss,
                        missing: false,
                        at: At::NOWHERE,
                    });
                }
            }
        }
    }
}

/// A fabric of `n_pods` pods with `n_cubes` cubes each, all deployed.
///
/// # Errors
/// [`BuildError`], where the tables do not hold so many.
///
/// # Panics
/// If a pod would have no cube or more than 64.
pub fn pods(n_pods: usize, n_cubes: usize) -> Result<Fabric, BuildError> {
    let slots = u16::try_from(n_cubes).expect("at most 64 cubes in a pod");
    crate::build(&Plant::of_pods("pods", (0..n_pods).map(|_| Family::tpuv4(slots))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pod_has_6144_fibres_on_48_switches() {
        let fabric = pods(1, 64).unwrap();
        assert_eq!(fabric.cables().len(), 6144);
        assert_eq!(fabric.parts().len(), 48 + 64);
        fabric.audit();
        let end = fabric.find("cube17/x/in/7").unwrap();
        let selvedge_model::fault::Target::Port(end) = end else { panic!("{end:?}") };
        assert_eq!(fabric.port_path(fabric.peer_of(end).unwrap()), "x7/s17");
    }
}
