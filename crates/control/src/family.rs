//! The one file that knows which families there are.
//!
//! Everything else in this crate sees parts, seats, links and switches.

use selvedge_family::torus::shape::{Shape, ShapeError};
use selvedge_family::torus::wiring::WiringError;
use selvedge_family::torus::{self, path, place, wiring};
use selvedge_model::fabric::Fabric;
use selvedge_model::id::{PartId, PoolId, PortId};
use selvedge_model::job::{Demand, Need, Place, Xconnect};

use crate::capacity::{Capacity, Layout};
use crate::preflight;

/// Why a demand makes no sense on any hardware of its family.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DemandError {
    /// Not a shape that a pod can make.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Nothing asked for.
    #[error("a job needs at least one host")]
    NoParts,
}

/// What the scheduler needs to know of a demand, and the demand in its canonical form.
///
/// # Errors
/// [`DemandError`].
pub fn need(demand: &Demand) -> Result<(Demand, Need), DemandError> {
    match demand {
        Demand::Shape(text) => {
            let (shape, _) = Shape::parse(text)?;
            Ok((Demand::Shape(shape.to_string()), shape.need()))
        }
        Demand::Parts(0) => Err(DemandError::NoParts),
        Demand::Parts(n_parts) => Ok((demand.clone(), Need::Whole { n_parts: *n_parts })),
    }
}

/// How many tasks a job of this demand has: one for each machine.
pub fn n_tasks(demand: &Demand, need: &Need) -> u32 {
    const MACHINE_CHIPS: u32 = (torus::hardware::CHIPS / torus::hardware::MACHINES) as u32;
    match demand {
        Demand::Shape(_) => need.n_seats(torus::hardware::CHIPS as u32).div_ceil(MACHINE_CHIPS),
        Demand::Parts(n_parts) => *n_parts,
    }
}

/// The name of the template that a demand's parts have; any but a cube serves hosts.
fn is_for(fabric: &Fabric, part: PartId, demand: &Demand) -> bool {
    let is_cube = fabric.template_of(part).name == "cube";
    match demand {
        Demand::Shape(_) => is_cube,
        Demand::Parts(_) => !is_cube,
    }
}

/// Whether the parts of `pool` are of the kind that `demand` asks for.
pub fn serves(fabric: &Fabric, layout: &Layout, pool: PoolId, demand: &Demand) -> bool {
    layout.pools[pool].first().is_some_and(|&part| is_for(fabric, part, demand))
}

/// Whether some pool could hold `need`, were everything free and sound.
pub fn could_hold(fabric: &Fabric, layout: &Layout, demand: &Demand, need: &Need) -> bool {
    let mut pools = layout.pools.ids();
    pools.any(|pool| {
        serves(fabric, layout, pool, demand) && Capacity::could_hold(layout, pool, need)
    })
}

/// Chooses among `free`, the free and sound parts of `pool`, and gives each its coordinate, so
/// that few mirrors turn.  There must be enough.
pub fn arrange(
    fabric: &Fabric,
    demand: &Demand,
    pool: PoolId,
    free: &[PartId],
    current: &dyn Fn(PartId, u16) -> Option<u16>,
) -> Place {
    match demand {
        Demand::Shape(_) => {
            let shape = shape(demand);
            let chosen = place::choose(fabric, free, &shape, current)
                .expect("the caller counted the free parts");
            place::arrange(fabric, &shape, &chosen, current)
        }
        Demand::Parts(n_parts) => {
            let hold = |&part: &PartId| selvedge_model::job::Hold {
                part,
                seats: fabric.template_of(part).all_seats(),
            };
            Place { pool, holds: free.iter().take(*n_parts as usize).map(hold).collect() }
        }
    }
}

/// The pairs that make `place` what was asked for, by switch and north port.
///
/// # Errors
/// [`WiringError`], where an end has no cable or two ends no common switch.
pub fn xconnects(
    fabric: &Fabric,
    demand: &Demand,
    place: &Place,
) -> Result<Vec<(PartId, Xconnect)>, WiringError> {
    match demand {
        Demand::Shape(_) => wiring::xconnects(fabric, &shape(demand), place),
        Demand::Parts(_) => Ok(Vec::new()),
    }
}

/// Whether jobs with this need use the outer links of their parts.
pub fn is_outer(need: &Need) -> bool {
    match need {
        Need::Whole { .. } => true,
        Need::Within { .. } => false,
    }
}

/// The network ports of hold `hold_idx` that do not see what they ought to.
pub fn mismatches(
    fabric: &Fabric,
    demand: &Demand,
    place: &Place,
    hold_idx: usize,
    seen: &[Option<PortId>],
) -> Vec<PortId> {
    let part = place.holds[hold_idx].part;
    let expected: Vec<Option<PortId>> = match demand {
        Demand::Shape(_) => path::expected_peers(fabric, &shape(demand), place, hold_idx),
        Demand::Parts(_) => (0..preflight::n_network_ports(fabric, part))
            .map(|local| fabric.peer_of(fabric.port_at(part, local)))
            .collect(),
    };
    if seen == expected {
        return Vec::new();
    }
    let differs = |local: &usize| {
        expected[*local].is_some_and(|peer| seen.get(*local).copied().flatten() != Some(peer))
    };
    (0..expected.len()).filter(differs).map(|local| fabric.port_at(part, local)).collect()
}

/// A digest of the job's forwarding tables: equal demands have equal tables.
pub fn table_digest(demand: &Demand) -> u64 {
    match demand {
        Demand::Shape(_) => path::table(&shape(demand)).digest(),
        Demand::Parts(_) => 0,
    }
}

fn shape(demand: &Demand) -> Shape {
    let Demand::Shape(text) = demand else { unreachable!("only torus demands come here") };
    let (shape, _) = Shape::parse(text).expect("an accepted job's shape has been parsed");
    shape
}
