//! Where each chip sits, and what each of its ports ought to see.

use selvedge_model::fabric::Fabric;
use selvedge_model::id::PortId;
use selvedge_model::job::Place;

use crate::grid::Grid;
use crate::torus::hardware::{ICI_PORTS, SIDE, chip, ici_port, seat};
use crate::torus::lattice::{Direction, Lattice, Point};
use crate::torus::shape::Shape;

/// Where a chip of a slice sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Which of the place's holds.
    pub hold_idx: u16,
    /// The seat in that part.
    pub seat: u8,
}

/// Where each chip id of a slice sits.
///
/// A shape within a cube lies in any orientation: its x, y and z run along those axes of the
/// cube along which its box is as long, the first fitting axis first.
///
/// # Panics
/// If `place` is no place of `shape`.
pub fn seats(shape: &Shape, place: &Place) -> Vec<Seat> {
    let lattice = shape.chips();
    let n_chips = lattice.n_points();
    if shape.cubes().is_some() {
        assert_eq!(place.holds.len(), shape.n_cubes(), "cubes of {shape}");
        let cubes = shape.cube_lattice().expect("it has cubes");
        return (0..n_chips).map(|idx| seat_in_cubes(&cubes, lattice.point(idx))).collect();
    }
    let [hold] = place.holds[..] else { panic!("{shape} lies in one cube") };
    let block = Grid::mesh([SIDE; 3]).block_of(hold.seats);
    let block = block.unwrap_or_else(|| panic!("{:#x} is no box for {shape}", hold.seats));
    let axes = axes(shape.dims(), block.sides);
    let axes = axes.unwrap_or_else(|| panic!("{:?} is no {shape}", block.sides));
    let in_cube = |at: Point| {
        let mut cell = block.origin;
        for (dim, &axis) in axes.iter().enumerate() {
            cell[axis] += usize::from(at[dim]);
        }
        Seat { hold_idx: 0, seat: seat(cell) as u8 }
    };
    (0..n_chips).map(|idx| in_cube(lattice.point(idx))).collect()
}

/// What each of the ICI ports of hold `hold_idx` ought to see, by the port's place in its cube:
/// the inner neighbour, or over the mirrors the opposite face of the neighbouring cube (seed 000
/// §3.4.1).  Within a cube, a port that leaves the hold has no peer that matters: `None`.
///
/// # Panics
/// If `place` is no place of `shape`, or `hold_idx` none of its holds.
pub fn expected_peers(
    fabric: &Fabric,
    shape: &Shape,
    place: &Place,
    hold_idx: usize,
) -> Vec<Option<PortId>> {
    let hold = place.holds[hold_idx];
    let base = |idx: usize| fabric.port_at(place.holds[idx].part, 0).number();
    let Some(cubes) = shape.cube_lattice() else {
        let own = base(hold_idx);
        let is_held = |place: usize| hold.seats >> (place / 6) & 1 == 1;
        let peer = |port: usize| {
            let (peer, is_inner) = (usize::from(PEERS.place[port]), PEERS.way[port] == INNER);
            let is_used = is_inner && is_held(port) && is_held(peer);
            is_used.then(|| PortId::new(own + peer as u32))
        };
        return (0..ICI_PORTS).map(peer).collect();
    };
    assert_eq!(place.holds.len(), cubes.n_points(), "cubes of {shape}");
    let at = cubes.point(hold_idx);
    let mut bases = [base(hold_idx); 7];
    for direction in Direction::ALL {
        let next = cubes.step(at, direction).expect("cubes are joined all the way round");
        bases[direction.idx()] = base(cubes.idx(next));
    }
    let peer = |port: usize| bases[usize::from(PEERS.way[port])] + u32::from(PEERS.place[port]);
    (0..ICI_PORTS).map(|port| Some(PortId::new(peer(port)))).collect()
}

/// Stands for "in the same cube" beside the six directions.
const INNER: u8 = 6;

/// For each ICI port of a cube, the place of its peer, and the cube that this is in: the one in a
/// direction, or its own.
struct Peers {
    place: [u16; ICI_PORTS],
    way: [u8; ICI_PORTS],
}

static PEERS: Peers = peers();

const fn peers() -> Peers {
    let mut peers = Peers { place: [0; ICI_PORTS], way: [INNER; ICI_PORTS] };
    let mut port = 0;
    while port < ICI_PORTS {
        let (mut at, dim, out) = (chip(port / 6), port % 6 / 2, port % 2 == 1);
        let end = if out { SIDE - 1 } else { 0 };
        if at[dim] == end {
            peers.way[port] = (port % 6) as u8;
            at[dim] = SIDE - 1 - end;
        } else {
            at[dim] = if out { at[dim] + 1 } else { at[dim] - 1 };
        }
        peers.place[port] = ici_port(at, dim, !out) as u16;
        port += 1;
    }
    peers
}

fn seat_in_cubes(cubes: &Lattice, at: Point) -> Seat {
    let cube = cubes.idx(at.map(|it| it / SIDE as u16));
    Seat { hold_idx: cube as u16, seat: seat(at.map(|it| usize::from(it) % SIDE)) as u8 }
}

/// For each dimension of a shape, the axis of the cube that it runs along.
fn axes(dims: Point, sides: [usize; 3]) -> Option<[usize; 3]> {
    let mut axes = [0; 3];
    let mut is_used = [false; 3];
    for (dim, &side) in dims.iter().enumerate() {
        let fits = |&axis: &usize| !is_used[axis] && sides[axis] == usize::from(side);
        let axis = (0..3).find(fits)?;
        axes[dim] = axis;
        is_used[axis] = true;
    }
    Some(axes)
}
