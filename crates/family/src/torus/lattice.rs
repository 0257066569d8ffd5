//! Points in three dimensions whose ends may be joined, straight or with a twist.
//!
//! The same geometry serves chips and cubes.  Without twist, the step beyond the end of a
//! dimension comes in at its start.  With twist it also moves along later dimensions (seed 000
//! §3.4.2).  Points form a group: `Z³` modulo the vectors `side·e - shift` of the three
//! dimensions, so what is true from one point is true from all.

use std::fmt;

use crate::torus::hardware::DIMS;

/// Coordinates x, y, z.
pub type Point = [u16; 3];

/// One of the six ways to leave a chip, in the order of its ports: -x +x -y +y -z +z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Direction(u8);

impl Direction {
    /// All six, in the order of the ports.
    pub const ALL: [Self; 6] = [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5)];

    /// Along `dim`, forwards (`out`) or back.
    ///
    /// # Panics
    /// If `dim` is not 0, 1 or 2.
    pub const fn new(dim: usize, out: bool) -> Self {
        assert!(dim < 3);
        Self(2 * dim as u8 + out as u8)
    }

    /// The dimension: 0 for x.
    pub const fn dim(self) -> usize {
        self.0 as usize / 2
    }

    /// Whether it leaves by the + face.
    pub const fn out(self) -> bool {
        self.0 % 2 == 1
    }

    /// Its place in the order of the ports, 0..6.
    pub const fn idx(self) -> usize {
        self.0 as usize
    }

    /// The way back.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.out() { '+' } else { '-' }, DIMS[self.dim()])
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A box of points and how its ends are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Points along each dimension, at least one.
    sides: Point,
    /// Whether the ends are joined at all.
    wraps: bool,
    /// What the wrap of each dimension adds to the others; only ever to later ones, so that
    /// reducing x, then y, then z ends.
    shifts: [Point; 3],
}

impl Lattice {
    pub(crate) fn new(sides: Point, wraps: bool, shifts: [Point; 3]) -> Self {
        for (dim, shift) in shifts.iter().enumerate() {
            assert!(shift[..=dim].iter().all(|&it| it == 0), "wrap {dim} shifts {shift:?}");
        }
        Self { sides, wraps, shifts }
    }

    /// Points along each dimension.
    pub const fn sides(&self) -> Point {
        self.sides
    }

    /// Whether the ends of each dimension are joined.
    pub const fn wraps(&self) -> bool {
        self.wraps
    }

    /// How many points there are.
    pub fn n_points(&self) -> usize {
        self.sides.iter().map(|&it| usize::from(it)).product()
    }

    /// The number of a point: x fastest, then y, then z.
    pub fn idx(&self, at: Point) -> usize {
        let [x, y, z] = at.map(usize::from);
        x + usize::from(self.sides[0]) * (y + usize::from(self.sides[1]) * z)
    }

    /// The point with number `idx`.
    pub fn point(&self, idx: usize) -> Point {
        let [a, b, _] = self.sides.map(usize::from);
        [idx % a, idx / a % b, idx / (a * b)].map(|it| it as u16)
    }

    /// The next point in `direction`, or `None` at the end of a mesh.
    pub fn step(&self, at: Point, direction: Direction) -> Option<Point> {
        let (dim, mut next) = (direction.dim(), at);
        let last = self.sides[dim] - 1;
        let (end, start) = if direction.out() { (last, 0) } else { (0, last) };
        if at[dim] != end {
            next[dim] = if direction.out() { at[dim] + 1 } else { at[dim] - 1 };
            return Some(next);
        }
        if !self.wraps {
            return None;
        }
        next[dim] = start;
        for (later, next) in next.iter_mut().enumerate().skip(dim + 1) {
            let (side, shift) = (self.sides[later], self.shifts[dim][later]);
            *next = (*next + if direction.out() { shift } else { side - shift }) % side;
        }
        Some(next)
    }

    /// What `hops` along x, y and z amount to from the origin of a lattice that wraps.
    pub fn reduce(&self, mut hops: [i32; 3]) -> Point {
        for dim in 0..3 {
            let side = i32::from(self.sides[dim]);
            let n_wraps = hops[dim].div_euclid(side);
            hops[dim] -= n_wraps * side;
            for (later, hops) in hops.iter_mut().enumerate().skip(dim + 1) {
                *hops += n_wraps * i32::from(self.shifts[dim][later]);
            }
        }
        hops.map(|it| it as u16)
    }

    /// Where `target` lies as seen from `source`, on a lattice that wraps.
    pub fn offset(&self, source: Point, target: Point) -> Point {
        self.reduce([0, 1, 2].map(|dim| i32::from(target[dim]) - i32::from(source[dim])))
    }

    /// The shortest ways to the point at `offset`, as hops along x, y and z; all of one length,
    /// ascending.
    pub fn shortest(&self, offset: Point) -> Vec<[i32; 3]> {
        let mut found: Vec<[i32; 3]> = Vec::new();
        let sides = self.sides.map(i32::from);
        let mut consider = |hops: [i32; 3]| {
            let length = |it: &[i32; 3]| it.iter().map(|hops| hops.abs()).sum::<i32>();
            match found.first().map(length) {
                Some(best) if best < length(&hops) => return,
                Some(best) if length(&hops) < best => found.clear(),
                Some(_) | None => {}
            }
            found.push(hops);
        };
        // A shortest way goes round no dimension twice; the tests hold this against a search.
        for x_wraps in -1..=1 {
            for y_wraps in -2..=1 {
                let mut hops = offset.map(i32::from);
                for (dim, n_wraps) in [(0, x_wraps), (1, y_wraps)] {
                    hops[dim] += n_wraps * sides[dim];
                    for (later, hops) in hops.iter_mut().enumerate().skip(dim + 1) {
                        *hops -= n_wraps * i32::from(self.shifts[dim][later]);
                    }
                }
                let up = hops[2].rem_euclid(sides[2]);
                for z in [up - sides[2], up] {
                    consider([hops[0], hops[1], z]);
                }
            }
        }
        found.sort_unstable();
        found
    }
}
