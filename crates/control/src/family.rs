//! The one file that knows which families there are.
//!
//! Everything else in this crate sees parts, seats, links and switches.

use selvedge_family::cluster;
use selvedge_family::cluster::hosts::{Host, Hosts};
use selvedge_family::graph::forward::Tables;
use selvedge_family::torus::shape::{Shape, ShapeError};
use selvedge_family::torus::wiring::WiringError;
use selvedge_family::torus::{self, path, place, wiring};
use selvedge_family::uses;
use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{NodeId, PartId, PoolId, PortId};
use selvedge_model::job::{Collective, Demand, Load, Need, Partition, Place, Xconnect};
use selvedge_model::unit::Ppm;

use crate::capacity::{Capacity, Layout};

/// Why a demand makes no sense on any hardware of its family.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DemandError {
    /// Not a shape that a pod can make.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Nothing asked for.
    #[error("a job needs at least one host")]
    NoParts,
    /// No box of boards.
    #[error("{text:?} is no box of boards; write rows and columns such as 4x6, each 1 to 256")]
    Boards {
        /// As written, cut short.
        text: String,
    },
    /// No chip asked for.
    #[error("a job needs at least one chip")]
    NoChips,
    /// A share beyond all.
    #[error("a job communicates for a share of its time from 0 to 1, not {share}")]
    Share {
        /// As written.
        share: Ppm,
    },
}

/// Whether a text is of two sides: boards of a grid, not chips of a torus.
pub fn is_boards(shape: &str) -> bool {
    shape.matches('x').count() == 1
}

/// The rows and columns of a box of boards.
fn boards(text: &str) -> Result<[u16; 2], DemandError> {
    let side = |it: &str| it.bytes().all(|b| b.is_ascii_digit()).then(|| it.parse().ok())?;
    let read = text.split_once('x').and_then(|(rows, columns)| Some([side(rows)?, side(columns)?]));
    // The longest side of a grid, in boards.
    const MAX: u16 = selvedge_model::limits::GRID_SIDE_MAX / 2;
    let in_range = |it: &[u16; 2]| it.iter().all(|n| (1..=MAX).contains(n));
    let wrong = || DemandError::Boards { text: text.chars().take(32).collect() };
    read.filter(in_range).ok_or_else(wrong)
}

/// Chips and memory in GiB of a board of the grid that a load goes to: of those of several kinds,
/// the one with the least memory.
pub fn board_of(fabric: &Fabric, layout: &Layout) -> Option<(u32, u32)> {
    let sited = layout.pools.pairs().filter(|(pool, _)| layout.is_sited(*pool));
    let firsts = sited.filter_map(|(_, parts)| parts.first().copied());
    let boards = firsts.filter_map(|part| {
        let n_chips = fabric.template_of(part).seats().len() as u32;
        Some((n_chips, n_chips * selvedge_family::chip_memory_gib(fabric, part)?))
    });
    boards.min_by_key(|it| it.1)
}

/// `demand` with what depends on the hardware worked out: the boards that hold a load.
pub fn sized(fabric: &Fabric, layout: &Layout, demand: &Demand) -> Demand {
    let Demand::Load(load) = demand else { return demand.clone() };
    let boards = board_of(fabric, layout)
        .map(|(chips, gib)| load.chips.div_ceil(chips).max(load.memory_gib.div_ceil(gib)));
    Demand::Load(Box::new(Load { boards, ..(**load).clone() }))
}

/// What the scheduler needs to know of a demand, and the demand in its canonical form.
///
/// # Errors
/// [`DemandError`].
pub fn need(demand: &Demand) -> Result<(Demand, Need), DemandError> {
    match demand {
        Demand::Shape(text) if is_boards(text) => {
            let [rows, columns] = boards(text)?;
            let partition = Partition {
                n_parts: u32::from(rows) * u32::from(columns),
                sides: Some([rows, columns, 1]),
                exact: true,
                communication: Ppm::new(0),
                collective: Collective::AllReduce,
            };
            Ok((Demand::Shape(format!("{rows}x{columns}")), Need::Partition(partition)))
        }
        Demand::Load(load) if load.chips == 0 => Err(DemandError::NoChips),
        Demand::Load(load) if 1_000_000 < load.communication.parts() => {
            Err(DemandError::Share { share: load.communication })
        }
        Demand::Load(load) => {
            let partition = Partition {
                n_parts: load.boards.unwrap_or_else(|| load.chips.div_ceil(4)),
                sides: None,
                exact: false,
                communication: load.communication,
                collective: load.collective,
            };
            Ok((demand.clone(), Need::Partition(partition)))
        }
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
    match (demand, need) {
        // A board is a machine.
        (_, Need::Partition(it)) => it.n_parts,
        (Demand::Parts(n_parts), _) => *n_parts,
        (Demand::Shape(_) | Demand::Load(_), _) => {
            need.n_seats(torus::hardware::CHIPS as u32).div_ceil(MACHINE_CHIPS)
        }
    }
}

/// The name of the template that a demand's parts have; any but a cube serves hosts.
fn is_for(fabric: &Fabric, part: PartId, demand: &Demand) -> bool {
    let is_cube = fabric.template_of(part).name == "cube";
    match demand {
        Demand::Shape(text) => is_cube && !is_boards(text),
        Demand::Parts(_) => !is_cube,
        Demand::Load(_) => false,
    }
}

/// Whether the parts of `pool` are of the kind that `demand` asks for.
pub fn serves(fabric: &Fabric, layout: &Layout, pool: PoolId, demand: &Demand) -> bool {
    if layout.is_sited(pool) {
        return match demand {
            Demand::Shape(text) => is_boards(text),
            Demand::Parts(_) => false,
            Demand::Load(_) => true,
        };
    }
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
            Place::of(pool, free.iter().take(*n_parts as usize).map(hold).collect())
        }
        Demand::Load(_) => unreachable!("a partition is chosen where it lies"),
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
        // Boards are joined by cables alone.
        Demand::Shape(text) if is_boards(text) => Ok(Vec::new()),
        Demand::Shape(_) => wiring::xconnects(fabric, &shape(demand), place),
        Demand::Parts(_) | Demand::Load(_) => Ok(Vec::new()),
    }
}

/// Whether a job on `place` uses the cable at `port`, an end on one of its parts.
pub fn uses_cable(fabric: &Fabric, place: &Place, port: PortId) -> bool {
    uses::uses_cable(fabric, place, port)
}

/// Whether a job on `place` uses `target`, as far as that is a cable: what lies in a part is judged
/// by the seats that it holds.
pub fn uses_as_cable(fabric: &Fabric, place: &Place, target: Target) -> bool {
    let Target::Link(link) = target else { return true };
    let ends = [fabric.link(link).source, fabric.link(link).target];
    let is_cable = fabric.cable_at(ends[0]).is_some();
    !is_cable || ends.into_iter().any(|it| uses::uses_cable(fabric, place, it))
}

/// Whether mirrors are turned for a job on `place`.
pub fn is_switched(fabric: &Fabric, place: &Place) -> bool {
    let mut parts = place.holds.iter().map(|it| it.part);
    parts.all(|it| uses::is_switched(fabric, it) && uses::holds_whole(fabric, place, it))
}

/// Whether the parts of jobs with this need are joined by cables alone, over which their chips
/// forward to one another.
pub fn is_joined(need: &Need) -> bool {
    matches!(need, Need::Partition(_))
}

/// How a slice differs from what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// Network ports that do not see what they ought to.
    pub ports: Vec<PortId>,
    /// Chips that a search from the first one does not come to.
    pub n_chips_lost: usize,
}

/// Holds what the chips of a place see, by hold and network port, against the request.
///
/// # Errors
/// [`Differs`].
pub fn discover(
    fabric: &Fabric,
    demand: &Demand,
    place: &Place,
    seen: &[Vec<Option<PortId>>],
) -> Result<(), Differs> {
    let expected: &dyn Fn(PartId) -> Vec<Option<PortId>> = match demand {
        Demand::Shape(text) if is_boards(text) => &|part| peers_among(fabric, place, part),
        Demand::Load(_) => &|part| peers_among(fabric, place, part),
        Demand::Shape(_) => {
            let found = path::discover(fabric, &shape(demand), place, seen);
            return found.map(drop).map_err(|wrong| Differs {
                ports: wrong.mismatches.iter().map(|it| it.port).collect(),
                n_chips_lost: wrong.n_lost,
            });
        }
        Demand::Parts(_) => &|part| peers_among(fabric, place, part),
    };
    let mut ports = Vec::new();
    for (hold, seen) in place.holds.iter().zip(seen) {
        let expected = network_ports(fabric, hold.part).zip(expected(hold.part));
        for (place, (port, expected)) in expected.enumerate() {
            if expected.is_some() && seen.get(place).copied().flatten() != expected {
                ports.push(port);
            }
        }
    }
    if ports.is_empty() { Ok(()) } else { Err(Differs { ports, n_chips_lost: 0 }) }
}

/// What the ports of a part ought to see, as far as the job uses what is there: the links within
/// it, and its cables.
fn peers_among(fabric: &Fabric, place: &Place, part: PartId) -> Vec<Option<PortId>> {
    let peer = |port: PortId| match fabric.cable_at(port) {
        Some(_) if !uses_cable(fabric, place, port) => None,
        _ => fabric.peer_of(port),
    };
    network_ports(fabric, part).map(peer).collect()
}

/// The network ports of a part, in order.
fn network_ports(fabric: &Fabric, part: PartId) -> impl Iterator<Item = PortId> + '_ {
    let ports = fabric.template_of(part).network_ports();
    ports.iter().map(move |&local| fabric.port_at(part, local as usize))
}

/// How the chips of a partition forward to one another.
#[derive(Clone, Debug)]
pub struct Forwarding {
    chips: Vec<NodeId>,
    tables: Tables,
}

impl Forwarding {
    /// Who is forwarded to, ascending.
    pub fn chips(&self) -> &[NodeId] {
        &self.chips
    }

    /// For each chip, in their order, the chip to which it sends what is for chip number `to`.
    pub fn toward(&self, to: usize) -> Vec<u32> {
        self.tables.toward(to)
    }

    /// A number that differs where tables do.
    pub fn digest(&self) -> u64 {
        self.tables.digest()
    }
}

/// The tables of a partition, over the cables that it has; none where its chips are not all joined
/// by those.
pub fn forwarding(fabric: &Fabric, place: &Place) -> Option<Forwarding> {
    let parts: Vec<PartId> = place.holds.iter().map(|it| it.part).collect();
    let (chips, tables) = selvedge_family::forwarding(fabric, &parts, &place.without)?;
    Some(Forwarding { chips, tables })
}

/// A digest of the job's forwarding tables: equal demands have equal tables.
pub fn table_digest(demand: &Demand) -> u64 {
    match demand {
        Demand::Load(_) => unreachable!("the tables of a partition follow from its place"),
        Demand::Shape(_) => path::table(&shape(demand)).digest(),
        Demand::Parts(_) => 0,
    }
}

/// The machine that `target` is or lies in: what is lost as a whole.
pub fn host_at(fabric: &Fabric, target: Target) -> Option<Target> {
    Host::of(fabric, target).map(Host::target)
}

/// Whether a place has seats of a machine.
fn is_held(fabric: &Fabric, place: &Place, host: Host) -> bool {
    let hold = place.holds.iter().find(|it| it.part == host.part);
    let seats = hold.map_or(0, |it| it.seats);
    let under = host.machine.map_or(u64::MAX, |node| {
        fabric.template_of(host.part).seats_under(fabric.node_local(node).1)
    });
    seats & under != 0
}

/// Whether a place has seats of the machine that `target` is or lies in.
pub fn runs_on(fabric: &Fabric, place: &Place, target: Target) -> bool {
    Host::of(fabric, target).is_some_and(|it| is_held(fabric, place, it))
}

/// Where the replicas of a program's processes run in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// The machines of each cluster; the first is the meta's.  Those within two hops come first,
    /// then those that are farther apart, then those that nothing joins.
    pub machines: Vec<[Target; 3]>,
    /// How many are within two hops.
    pub n_near: usize,
    /// How many cables join, with those.
    pub n_joined: usize,
    /// The most hops between two machines of one that they join; 0 if there is none.
    pub hops_max: u32,
    /// Machines that are in no cluster.
    pub n_left: usize,
}

/// The clusters of a job's machines (seed 003, definition 4): as many within two hops as there can
/// be, and the rest as near as can be.
pub fn clusters(fabric: &Fabric, place: &Place) -> Clusters {
    let is_switch = |part: &PartId| fabric.template_of(*part).role == Role::PacketSwitch;
    let live = fabric.parts().pairs().filter(|it| !it.1.retired).map(|it| it.0);
    let mut parts: Vec<PartId> = place.holds.iter().map(|it| it.part).collect();
    parts.extend(live.filter(is_switch));
    let hosts = Hosts::of_parts(fabric, parts.into_iter(), |it| is_held(fabric, place, it));
    let found = cluster::place_all(&hosts);
    let joined = &found.triples[..found.n_joined];
    let target = |it: usize| hosts.hosts[it].target();
    Clusters {
        machines: found.triples.iter().map(|it| it.hosts.map(target)).collect(),
        n_near: found.n_near,
        n_joined: found.n_joined,
        hops_max: joined.iter().flat_map(|it| it.hops).max().unwrap_or(0),
        n_left: hosts.n() - 3 * found.triples.len(),
    }
}

fn shape(demand: &Demand) -> Shape {
    let Demand::Shape(text) = demand else { unreachable!("only torus demands come here") };
    let (shape, _) = Shape::parse(text).expect("an accepted job's shape has been parsed");
    shape
}
