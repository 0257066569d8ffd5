//! Where each chip sits, and what each of its ports ought to see.

use selvedge_model::fabric::Fabric;
use selvedge_model::id::PortId;
use selvedge_model::job::Place;

use crate::grid::{Block, Grid};
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
/// # Panics
/// If `place` is no place of `shape`.
pub fn seats(shape: &Shape, place: &Place) -> Vec<Seat> {
    let lattice = shape.chips();
    let chips = (0..lattice.n_points()).map(|idx| lattice.point(idx));
    if let Some(cubes) = shape.cube_lattice() {
        assert_eq!(place.holds.len(), cubes.n_points(), "cubes of {shape}");
        return chips.map(|at| seat_in_cubes(&cubes, at)).collect();
    }
    let (origin, axes) = (block(shape, place).origin, axes(shape, place));
    let seat_of = |at: Point| {
        let mut cell = origin;
        for (dim, &axis) in axes.iter().enumerate() {
            cell[axis] += usize::from(at[dim]);
        }
        Seat { hold_idx: 0, seat: seat(cell) as u8 }
    };
    chips.map(seat_of).collect()
}

/// For each dimension of a slice, the dimension of its cubes that it runs along: a shape within a
/// cube lies in any orientation, and each of its dimensions takes the first along which its box
/// is as long.  The port that leaves a chip in a direction is
/// `ici_port(chip, axes[direction.dim()], direction.out())`.
///
/// # Panics
/// If `place` is no place of `shape`.
pub fn axes(shape: &Shape, place: &Place) -> [usize; 3] {
    if shape.cubes().is_some() {
        return [0, 1, 2];
    }
    let sides = block(shape, place).sides;
    let mut is_used = [false; 3];
    shape.dims().map(|side| {
        let fits = |&axis: &usize| !is_used[axis] && sides[axis] == usize::from(side);
        let axis = (0..3).find(fits).unwrap_or_else(|| panic!("a box of {sides:?} is no {shape}"));
        is_used[axis] = true;
        axis
    })
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

/// The box that a shape within a cube holds.
fn block(shape: &Shape, place: &Place) -> Block<3> {
    let [hold] = place.holds[..] else { panic!("{shape} lies in one cube") };
    let block = Grid::mesh([SIDE; 3]).block_of(hold.seats);
    block.unwrap_or_else(|| panic!("seats {:#x} are no box for {shape}", hold.seats))
}
