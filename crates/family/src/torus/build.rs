//! From counts to a fabric.

use selvedge_model::fabric::{Fabric, FabricError};
use selvedge_model::unit::CentiDb;

use crate::torus::hardware::{
    self, CUBES_MAX, DIMS, FACE, FIBRE, SWITCHES, face_port, north_port, south_port,
};

/// The loss that a fibre is planned with.  Assumed: half of the switch's 2 dB budget.
pub const LOSS_EXPECTED: CentiDb = CentiDb::new(100);

/// A fabric of `n_pods` pods with `n_cubes` cubes each.  Cubes are `cube0`, `cube1`, … over all
/// pods; switches are `x0`..`z15`, with `pod1/` and so on before them from the second pod on.
///
/// # Errors
/// [`FabricError::TooLarge`].
pub fn pods(n_pods: usize, n_cubes: usize) -> Result<Fabric, FabricError> {
    assert!(n_cubes <= CUBES_MAX, "{n_cubes} cubes in a pod");
    let mut fabric = Fabric::new();
    let cube = fabric.add_template(hardware::cube());
    let switch = fabric.add_template(hardware::switch());
    for pod in 0..n_pods {
        let pool = fabric.add_pool(format!("pod{pod}"));
        let mut switches = Vec::with_capacity(SWITCHES);
        for letter in DIMS {
            for index in 0..FACE {
                let name = match pod {
                    0 => format!("{letter}{index}"),
                    _ => format!("pod{pod}/{letter}{index}"),
                };
                switches.push(fabric.add_part(name, switch, Some(pool), &[])?);
            }
        }
        for slot in 0..n_cubes {
            let name = format!("cube{}", pod * n_cubes + slot);
            let part = fabric.add_part(name, cube, Some(pool), &[])?;
            for dim in 0..3 {
                for index in 0..FACE {
                    let ocs = switches[FACE * dim + index];
                    for (out, port) in [(true, north_port(slot)), (false, south_port(slot))] {
                        let end = fabric.port_at(part, face_port(dim, out, index));
                        fabric.add_cable(end, fabric.port_at(ocs, port), FIBRE, LOSS_EXPECTED)?;
                    }
                }
            }
        }
    }
    Ok(fabric)
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
