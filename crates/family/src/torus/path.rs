//! What the chips of a slice see and how they forward (seed 000 §3.5).
//!
//! Chip ids run over the whole slice, x fastest, then y, then z.  In reading order: where each
//! chip id sits ([`seats`], [`axes`]), what each of its ports ought to see ([`expected_peers`]),
//! whether the chips see that ([`discover`]), the first forwarding table ([`table`](fn@table)),
//! and the rings that collective operations go round ([`rings`]).

mod discovery;
mod peers;
mod table;

pub use discovery::{Differs, Discovery, Mismatch, discover};
pub use peers::{Seat, axes, expected_peers, seats};
pub use table::{Table, table};

use crate::torus::lattice::Direction;
use crate::torus::shape::Shape;

/// The rings, or lines, along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// The axis: 0 for x.
    pub axis: usize,
    /// Whether the last chip of each is joined with its first.
    pub closed: bool,
    /// Chip ids in + direction, from the lowest of each ring on; rings by their lowest chip.
    pub rings: Vec<Vec<u32>>,
}

/// The rings along x, y and z.  A twisted wrap leads into another row, so rings of the twisted
/// axes go twice round (seed 000 §3.4.2); within a cube there are lines.
pub fn rings(shape: &Shape) -> [Rings; 3] {
    let lattice = shape.chips();
    [0, 1, 2].map(|axis| {
        let (ahead, back) = (Direction::new(axis, true), Direction::new(axis, false));
        let mut is_seen = vec![false; lattice.n_points()];
        let mut rings = Vec::new();
        for first in 0..lattice.n_points() {
            let starts_line = lattice.step(lattice.point(first), back).is_none();
            if is_seen[first] || !(lattice.wraps() || starts_line) {
                continue;
            }
            let mut ring = Vec::new();
            let mut next = Some(first);
            while let Some(chip) = next.filter(|&it| !is_seen[it]) {
                is_seen[chip] = true;
                ring.push(chip as u32);
                next = lattice.step(lattice.point(chip), ahead).map(|it| lattice.idx(it));
            }
            rings.push(ring);
        }
        Rings { axis, closed: lattice.wraps(), rings }
    })
}

#[cfg(test)]
mod tests;
