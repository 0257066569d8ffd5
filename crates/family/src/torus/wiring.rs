//! Which mirrors join the cubes of a slice (seed 000 §3.4.1, §3.4.2).
//!
//! Steps 1 to 3 of the seed: every cube has a coordinate ([`crate::torus::place`]), coordinates
//! have neighbours (twist included), and each of the 48 switches joins the + face of a cube with
//! the - face of its neighbour.  The + face enters at a north port, the - face leaves at a
//! south port.  Which ports these are is read from the fabric's cables, since an end may have
//! been re-patched to a spare.  Step 4, leaving out what already stands, needs the device's state
//! and is not done here.  Time is one cable lookup per cube end: some 0.1 ms for 64 cubes.

use selvedge_model::fabric::{Fabric, Role, Side};
use selvedge_model::id::{PartId, PortId};
use selvedge_model::job::{Place, Xconnect};
use serde::{Deserialize, Serialize};

use crate::torus::hardware::{FACE, face_port};
use crate::torus::lattice::Direction;
use crate::torus::shape::Shape;

/// Why a slice cannot be wired.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WiringError {
    /// An end that leads nowhere.
    #[error("{name} has no cable; cable it to a switch, or choose another cube")]
    NoCable {
        /// The cube's end.
        end: PortId,
        /// Its path.
        name: String,
    },
    /// An end that leads to something other than the side of a switch that it needs.
    #[error(
        "{end_name} is cabled to {port_name}; a + face needs a north port of an optical switch, \
         a - face a south port"
    )]
    WrongPort {
        /// The cube's end.
        end: PortId,
        /// Its path.
        end_name: String,
        /// Where its cable leads.
        port: PortId,
        /// That port's path.
        port_name: String,
    },
    /// Two ends that no one switch can join.
    #[error(
        "{out_name} ends on {out_switch_name} and {in_name} on {in_switch_name}; \
         both must end on one switch to be joined"
    )]
    TwoSwitches {
        /// The end on a + face.
        out_end: PortId,
        /// Its path.
        out_name: String,
        /// The switch that its cable leads to.
        out_switch_name: String,
        /// The end on the neighbour's - face.
        in_end: PortId,
        /// Its path.
        in_name: String,
        /// The switch that its cable leads to.
        in_switch_name: String,
    },
}

/// The xconnects that make `place` a slice of `shape`, sorted by switch, then by north port;
/// none for a shape within a cube.
///
/// # Errors
/// [`WiringError`], for the first end in the order of coordinates that cannot be joined.
///
/// # Panics
/// If `place` does not hold as many cubes as `shape` takes.
pub fn xconnects(
    fabric: &Fabric,
    shape: &Shape,
    place: &Place,
) -> Result<Vec<(PartId, Xconnect)>, WiringError> {
    let Some(lattice) = shape.cube_lattice() else { return Ok(Vec::new()) };
    assert_eq!(place.holds.len(), shape.n_cubes(), "cubes of {shape}");
    let mut joined = Vec::with_capacity(3 * FACE * place.holds.len());
    for (idx, hold) in place.holds.iter().enumerate() {
        for dim in 0..3 {
            let next = lattice
                .step(lattice.point(idx), Direction::new(dim, true))
                .expect("cubes are joined all the way round");
            let next = place.holds[lattice.idx(next)].part;
            for index in 0..FACE {
                let out_end = fabric.port_at(hold.part, face_port(dim, true, index));
                let in_end = fabric.port_at(next, face_port(dim, false, index));
                let (switch, north) = mirror(fabric, out_end, Side::North)?;
                let (in_switch, south) = mirror(fabric, in_end, Side::South)?;
                if switch != in_switch {
                    return Err(WiringError::TwoSwitches {
                        out_end,
                        out_name: fabric.port_path(out_end),
                        out_switch_name: fabric.part(switch).name.to_string(),
                        in_end,
                        in_name: fabric.port_path(in_end),
                        in_switch_name: fabric.part(in_switch).name.to_string(),
                    });
                }
                joined.push((switch, Xconnect { north, south }));
            }
        }
    }
    joined.sort_unstable();
    Ok(joined)
}

/// The switch that the cable at `end` leads to, and the port by its place there.
pub(crate) fn mirror(
    fabric: &Fabric,
    end: PortId,
    side: Side,
) -> Result<(PartId, u16), WiringError> {
    let Some(cable) = fabric.cable_at(end) else {
        return Err(WiringError::NoCable { end, name: fabric.port_path(end) });
    };
    let port = if cable.a == end { cable.b } else { cable.a };
    let (switch, local) = fabric.port_local(port);
    let template = fabric.template_of(switch);
    let is_mirror = template.role == Role::CircuitSwitch && template.ports()[local].side == side;
    match u16::try_from(local) {
        Ok(local) if is_mirror => Ok((switch, local)),
        Ok(_) | Err(_) => Err(WiringError::WrongPort {
            end,
            end_name: fabric.port_path(end),
            port,
            port_name: fabric.port_path(port),
        }),
    }
}

#[cfg(test)]
mod tests;
