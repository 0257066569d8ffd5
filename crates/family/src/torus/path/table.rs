//! The first forwarding table of a slice: shortest ways, x before y before z.
//!
//! Every point of a torus, twisted or not, sees the same torus, so one byte for each offset
//! serves every chip: 4 KiB for 4096 chips.  Within a cube there are no wraps, and the sign of
//! the difference decides.
//!
//! Untwisted, a target half-way round a ring is as near either way; then chips at even
//! coordinates go one way and chips at odd ones the other, which loads both ways alike: the
//! busiest link of an all-to-all carries what the plane cut demands of it and no more.
//!
//! Twisted, many offsets have several shortest ways, and each offset takes the one that loads
//! the six directions most evenly: the busiest link carries 75 where 73.3 (the sum of distances
//! by 6) is the least for 4x4x8, and within 0.6 % of the least for the larger shapes.  Offsets
//! choose by distance, nearest first.  An offset may only take a way that goes on, after its
//! first hop, as the offset there has chosen to go: so ways are of dimension order from end to
//! end although each chip only looks up one hop.  One such way always exists: where any shortest
//! way goes along x, the choice of the offset behind that hop with the hop before it is one;
//! where none does, the same holds of y, then z.  Afterwards offsets that no other goes on with
//! choose again until none gains.  Time: a few looks at each offset, 0.5 ms for the largest
//! twisted slice.

use crate::torus::lattice::{Direction, Lattice, Point};
use crate::torus::shape::Shape;

/// Which way to the next chip, for every pair of chips of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it is for.
    pub shape: Shape,
    lattice: Lattice,
    /// For each offset (each target less its source, by number): the direction from a source at
    /// an even coordinate in the low half, at an odd one in the high half; both in the same
    /// dimension.  `HERE` at offset zero.  Within a cube there is no entry: the sign decides.
    next: Vec<u8>,
}

const HERE: u8 = 0xff;

/// The first forwarding table of `shape`.
pub fn table(shape: &Shape) -> Table {
    let lattice = shape.chips();
    let next = match (shape.cubes().is_some(), shape.twisted()) {
        (false, _) => Vec::new(),
        (true, false) => straight(&lattice),
        (true, true) => twisted(&lattice),
    };
    Table { shape: *shape, lattice, next }
}

impl Table {
    /// A digest of the entries: equal shapes have equal tables (FNV-1a).
    pub fn digest(&self) -> u64 {
        let name = self.shape.to_string();
        name.bytes().chain(self.next.iter().copied()).fold(0xcbf2_9ce4_8422_2325, |acc, byte| {
            (acc ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Which way chip `source` forwards what is for chip `target`; `None` if it is there.
    ///
    /// # Panics
    /// If one of them is no chip of the slice.
    pub fn next(&self, source: u32, target: u32) -> Option<Direction> {
        self.way(self.point(source), self.point(target))
    }

    /// What chip `source` is programmed with: the way to every chip by its id.
    ///
    /// # Panics
    /// If `source` is no chip of the slice.
    pub fn row(&self, source: u32) -> impl ExactSizeIterator<Item = Option<Direction>> + '_ {
        let from = self.point(source);
        (0..self.lattice.n_points()).map(move |target| self.way(from, self.lattice.point(target)))
    }

    /// The chips on the way from `source` to `target`, both included.
    ///
    /// # Panics
    /// If one of them is no chip of the slice.
    pub fn route(&self, source: u32, target: u32) -> Vec<u32> {
        let (mut at, end) = (self.point(source), self.point(target));
        let mut chips = vec![source];
        while let Some(way) = self.way(at, end) {
            at = self.lattice.step(at, way).expect("a table leads along links that exist");
            chips.push(self.lattice.idx(at) as u32);
        }
        chips
    }

    fn point(&self, chip: u32) -> Point {
        let (chip, n_chips) = (chip as usize, self.lattice.n_points());
        assert!(chip < n_chips, "chip {chip} of {n_chips}");
        self.lattice.point(chip)
    }

    fn way(&self, source: Point, target: Point) -> Option<Direction> {
        if !self.lattice.wraps() {
            let dim = (0..3).find(|&dim| source[dim] != target[dim])?;
            return Some(Direction::new(dim, source[dim] < target[dim]));
        }
        let entry = self.next[self.lattice.idx(self.lattice.offset(source, target))];
        if entry == HERE {
            return None;
        }
        let even = Direction::ALL[usize::from(entry & 0xf)];
        let is_odd = source[even.dim()] % 2 == 1;
        Some(if is_odd { Direction::ALL[usize::from(entry >> 4)] } else { even })
    }
}

fn entry(even: Direction, odd: Direction) -> u8 {
    (even.idx() | odd.idx() << 4) as u8
}

fn straight(lattice: &Lattice) -> Vec<u8> {
    let way = |offset: Point| {
        let Some(dim) = (0..3).find(|&dim| offset[dim] != 0) else { return HERE };
        let back = lattice.sides()[dim] - offset[dim];
        let (even_out, odd_out) = (offset[dim] <= back, offset[dim] < back);
        entry(Direction::new(dim, even_out), Direction::new(dim, odd_out))
    };
    (0..lattice.n_points()).map(|offset| way(lattice.point(offset))).collect()
}

fn twisted(lattice: &Lattice) -> Vec<u8> {
    let mut choice = Choice::nearest_first(lattice);
    choice.even_out();
    let way = |offset: usize| match choice.chosen[offset] {
        [0, 0, 0] => HERE,
        way => entry(first_hop(&way).0, first_hop(&way).0),
    };
    (0..lattice.n_points()).map(way).collect()
}

/// One shortest way for each offset of a twisted torus.
struct Choice<'a> {
    lattice: &'a Lattice,
    /// All shortest ways of each offset.
    ways: Vec<Vec<[i32; 3]>>,
    /// Offsets by distance, and opposite ones one after the other, so that the second evens out
    /// what the first loads; without offset zero.
    order: Vec<usize>,
    /// The way of each offset; none at offset zero.
    chosen: Vec<[i32; 3]>,
    /// How many offsets go on as this one has chosen.  While there are any, it stays as it is.
    n_behind: Vec<u32>,
    /// Hops in each direction if every chip sends to every offset that has chosen: the load of
    /// every link of that direction, since every chip sees the same.
    load: [i64; 6],
}

impl<'a> Choice<'a> {
    fn nearest_first(lattice: &'a Lattice) -> Self {
        let n_points = lattice.n_points();
        let ways: Vec<Vec<[i32; 3]>> =
            (0..n_points).map(|offset| lattice.shortest(lattice.point(offset))).collect();
        let mut order: Vec<usize> = (1..n_points).collect();
        order.sort_by_cached_key(|&offset| {
            let opposite = lattice.idx(lattice.offset(lattice.point(offset), [0; 3]));
            (length(&ways[offset][0]), offset.min(opposite), offset)
        });
        let (chosen, n_behind) = (vec![[0; 3]; n_points], vec![0; n_points]);
        let mut choice = Self { lattice, ways, order, chosen, n_behind, load: [0; 6] };
        for at in 0..choice.order.len() {
            choice.choose(choice.order[at]);
        }
        choice
    }

    /// Lets offsets that no other goes on with choose again, farthest first and back, until
    /// none gains by it.  It ends because every new choice lowers the weight.
    fn even_out(&mut self) {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            self.order.reverse();
            for at in 0..self.order.len() {
                let offset = self.order[at];
                has_changed |= self.n_behind[offset] == 0 && self.choose(offset);
            }
        }
    }

    /// Takes the way that loads the directions most evenly; says whether that is a new one.
    fn choose(&mut self, offset: usize) -> bool {
        let old = self.chosen[offset];
        let without = add(&self.load, &old, -1);
        let way = *self.ways[offset]
            .iter()
            .filter(|way| {
                let (_, rest) = first_hop(way);
                self.chosen[self.lattice.idx(self.lattice.reduce(rest))] == rest
            })
            .min_by_key(|way| (weight(&add(&without, way, 1)), **way != old))
            .expect("a way whose rest is chosen exists, see the head of this file");
        if way == old {
            return false;
        }
        let rest_of = |way| self.lattice.idx(self.lattice.reduce(first_hop(way).1));
        if old != [0; 3] {
            self.n_behind[rest_of(&old)] -= 1;
        }
        self.n_behind[rest_of(&way)] += 1;
        self.chosen[offset] = way;
        self.load = add(&without, &way, 1);
        true
    }
}

fn length(way: &[i32; 3]) -> i32 {
    way.iter().map(|hops| hops.abs()).sum()
}

/// The first hop of a way in dimension order, and what is left after it.
fn first_hop(way: &[i32; 3]) -> (Direction, [i32; 3]) {
    let dim = (0..3).find(|&dim| way[dim] != 0).expect("only offset zero has no hop");
    let mut rest = *way;
    rest[dim] -= way[dim].signum();
    (Direction::new(dim, 0 < way[dim]), rest)
}

/// `load` with `way` taken so many times more.
fn add(load: &[i64; 6], way: &[i32; 3], times: i64) -> [i64; 6] {
    let mut load = *load;
    for (dim, &hops) in way.iter().enumerate() {
        load[Direction::new(dim, 0 < hops).idx()] += times * i64::from(hops.abs());
    }
    load
}

/// Smaller the more evenly a load lies; a way's length is the same for all that are compared.
fn weight(load: &[i64; 6]) -> i64 {
    load.iter().map(|it| it * it).sum()
}
