//! By which rule free cells are chosen: rules from the literature and from products, side by side.
//!
//! A rule proposes sets of cells, the one it likes best first; whoever asks takes the first that
//! is good enough for the task, or none.  All but Hilbert's curve propose connected sets.

use std::fmt;

use crate::grid::room::{NO_CELL, Room};
use crate::grid::{Block, Grid, curve, orientations, polyomino};

/// A rule by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// The first free box of the smallest size that holds the task (Zhu 1992).
    FirstFit,
    /// Of all such boxes the one that touches most of what is taken (Zhu 1992, by contact).
    BestFit,
    /// The smallest square that holds the task, else a box (US 11,922,219).
    SquareFirst,
    /// Squares of 2^i cells a side that halve a larger one (Li and Cheng 1991).
    Buddy,
    /// Boxes whose origin is a multiple of their sides, and of these the one that breaks the
    /// fewest free places of the next larger box (Slurm topology/torus3d).
    Anchored,
    /// A box of the exact size, else any connected set.
    #[default]
    Polyomino,
    /// The shortest run of a curve through all cells that holds enough free ones; not connected.
    Hilbert,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Policy::FirstFit,
        Policy::BestFit,
        Policy::SquareFirst,
        Policy::Buddy,
        Policy::Anchored,
        Policy::Polyomino,
        Policy::Hilbert,
    ];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Policy::FirstFit => "first-fit",
            Policy::BestFit => "best-fit",
            Policy::SquareFirst => "square-first",
            Policy::Buddy => "buddy",
            Policy::Anchored => "anchored",
            Policy::Polyomino => "polyomino",
            Policy::Hilbert => "hilbert",
        }
    }

    /// The rule of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == text)
    }

    /// Whether all that it proposes is connected.
    pub const fn is_contiguous(self) -> bool {
        !matches!(self, Policy::Hilbert)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a task needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<const D: usize> {
    /// How many cells, at least one.
    pub n_cells: usize,
    /// The sides of the box that it would like, in any order; their product is `n_cells`.
    pub sides: Option<[usize; D]>,
    /// Whether nothing but that box will do.
    pub exact: bool,
    /// Whether the best box of each shape is asked for, the squarest first, and not only the best
    /// of all: a task that communicates weighs how square it is.
    pub each_shape: bool,
}

/// Sets of cells for `wanted`, worked out one after the other as they are asked for.  A set may
/// have more cells than are wanted, where the rule deals in boxes.
pub fn candidates<'r, const D: usize>(
    room: &'r Room<'_, D>,
    wanted: Wanted<D>,
    policy: Policy,
) -> Candidates<'r, 'r, D> {
    Candidates { room, wanted, policy, stage: 0, later: Vec::new() }
}

/// See [`candidates`].
pub struct Candidates<'r, 'g, const D: usize> {
    room: &'r Room<'g, D>,
    wanted: Wanted<D>,
    policy: Policy,
    stage: u8,
    /// The sets that are proposed after the one before them, the next one last.
    later: Vec<Vec<u32>>,
}

impl<const D: usize> Iterator for Candidates<'_, '_, D> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        if self.room.n_free() < self.wanted.n_cells {
            return None;
        }
        if let Some(next) = self.later.pop() {
            return Some(next);
        }
        loop {
            self.stage += 1;
            let found = match (self.policy, self.stage) {
                (Policy::FirstFit, 1) => self.first_box(&self.boxes()),
                (Policy::BestFit, 1) => self.best_box(&self.boxes()),
                (Policy::SquareFirst, 1) => self.first_box(&[square(self.square_side())]),
                (Policy::SquareFirst, 2) => self.first_box(&self.boxes()),
                (Policy::Buddy, 1) => self.buddy(),
                (Policy::Anchored, 1) => self.anchored(),
                (Policy::Hilbert, 1) => self.run(),
                (Policy::Polyomino, 1) if self.wanted.each_shape => {
                    let shapes = self.exact_boxes();
                    let shapes = shapes.chunk_by(|a, b| sorted(*a) == sorted(*b));
                    self.later = shapes.filter_map(|it| self.best_box(it)).collect();
                    self.later.reverse();
                    self.later.pop()
                }
                (Policy::Polyomino, 1) => self.best_box(&self.exact_boxes()),
                (Policy::Polyomino, 2) if !self.wanted.exact => {
                    let found = polyomino::find(self.room, self.wanted.n_cells);
                    self.later.extend(found.any);
                    found.sturdy.or_else(|| self.later.pop())
                }
                _ => return None,
            };
            if found.is_some() {
                return found;
            }
        }
    }
}

impl<const D: usize> Candidates<'_, '_, D> {
    /// Whether the next may still be a box of exactly as many cells as are wanted.
    pub fn may_be_box(&self) -> bool {
        self.stage == 0 || self.stage == 1 && !self.later.is_empty()
    }

    fn grid(&self) -> &Grid<D> {
        self.room.ground().grid()
    }

    /// The sides of the boxes of the fewest cells that hold the task, the squarest first.
    fn boxes(&self) -> Vec<[usize; D]> {
        match self.wanted.sides {
            Some(sides) => orientations(sides),
            None => self.boxes_of(self.wanted.n_cells),
        }
    }

    /// The sides of the smallest flat boxes that hold `n` cells, the squarest first.
    fn boxes_of(&self, n: usize) -> Vec<[usize; D]> {
        let sides = self.grid().sides;
        let height = |width: usize| n.div_ceil(width);
        let fits = |width: &usize| height(*width) <= if 1 < D { sides[1] } else { 1 };
        let widths = || (1..=sides[0]).filter(fits);
        let Some(least) = widths().map(|it| it * height(it)).min() else { return Vec::new() };
        let mut found: Vec<[usize; D]> = widths()
            .filter(|it| it * height(*it) == least)
            .map(|it| flat(it, height(it)))
            .collect();
        found.sort_by_key(|it| (it[0].abs_diff(it[1 % D]), it[0]));
        found
    }

    /// The boxes of exactly as many cells as are wanted, and no lines of more than three where
    /// there are others.
    fn exact_boxes(&self) -> Vec<[usize; D]> {
        let mut boxes = match self.wanted.exact {
            true => return self.boxes(),
            false => {
                let mut boxes = self.boxes_of(self.wanted.n_cells);
                boxes.extend(self.wanted.sides.into_iter().flat_map(orientations));
                boxes
            }
        };
        boxes.retain(|it| {
            let n_long = it.iter().filter(|side| 1 < **side).count();
            it.iter().product::<usize>() == self.wanted.n_cells
                && (1 < n_long || self.wanted.n_cells < 4)
        });
        // The squarest first, which is taken where others are no better.
        boxes.sort_unstable_by_key(|it| (it.iter().sum::<usize>(), sorted(*it), *it));
        boxes.dedup();
        boxes
    }

    fn square_side(&self) -> usize {
        let n = self.wanted.n_cells;
        (1..).find(|it| n <= it * it).expect("squares grow without end")
    }

    fn first_box(&self, boxes: &[[usize; D]]) -> Option<Vec<u32>> {
        let mut places = boxes.iter().flat_map(|sides| self.room.boxes(*sides));
        places.next().map(|it| self.room.cells(it))
    }

    /// The box with the fewest sides open to free cells.
    fn best_box(&self, boxes: &[[usize; D]]) -> Option<Vec<u32>> {
        let mut best: Option<([usize; 2], Block<D>)> = None;
        for block in boxes.iter().flat_map(|sides| self.room.corner_boxes(*sides)) {
            let contact = self.room.contact(block);
            let open = |[touched, all]: [usize; 2]| all - touched;
            if best.is_none_or(|it| open(contact) < open(it.0)) {
                best = Some((contact, block));
                if open(contact) == 0 {
                    break;
                }
            }
        }
        best.map(|it| self.room.cells(it.1))
    }

    fn buddy(&self) -> Option<Vec<u32>> {
        let longest = self.wanted.sides.map(|it| it.into_iter().max().unwrap_or(1));
        let side = longest.unwrap_or_else(|| self.square_side()).next_power_of_two();
        let is_buddy = |it: &Block<D>| it.origin.iter().all(|at| at.is_multiple_of(side));
        let found = self.room.boxes(square(side)).find(is_buddy);
        found.map(|it| self.room.cells(it))
    }

    fn anchored(&self) -> Option<Vec<u32>> {
        let is_anchor =
            |it: &Block<D>| (0..D).all(|axis| it.origin[axis].is_multiple_of(it.sides[axis]));
        let mut best: Option<(usize, Block<D>)> = None;
        for sides in self.boxes() {
            // The next larger box has its shortest side doubled.
            let shortest = (0..D.min(2)).min_by_key(|&axis| sides[axis]).unwrap_or(0);
            let mut larger = sides;
            larger[shortest] *= 2;
            let broken: Vec<Block<D>> = self.room.boxes(larger).filter(is_anchor).collect();
            for block in self.room.boxes(sides).filter(is_anchor) {
                let cost = broken.iter().filter(|it| meet(it, &block)).count();
                if best.is_none_or(|it| cost < it.0) {
                    best = Some((cost, block));
                }
            }
        }
        best.map(|it| self.room.cells(it.1))
    }

    /// The free cells of the shortest run of the curve that has enough of them.
    fn run(&self) -> Option<Vec<u32>> {
        let curve = curve::hilbert(self.grid());
        let free: Vec<(usize, u32)> =
            curve.into_iter().enumerate().filter(|it| self.room.is_free(it.1 as usize)).collect();
        let n = self.wanted.n_cells;
        let best = free.windows(n).min_by_key(|it| it[n - 1].0 - it[0].0)?;
        Some(best.iter().map(|it| it.1).collect())
    }
}

fn sorted<const D: usize>(mut sides: [usize; D]) -> [usize; D] {
    sides.sort_unstable();
    sides
}

/// A box of `width` by `height`, one cell thick.
fn flat<const D: usize>(width: usize, height: usize) -> [usize; D] {
    let mut sides = [1; D];
    sides[0] = width;
    if 1 < D {
        sides[1] = height;
    }
    sides
}

fn square<const D: usize>(side: usize) -> [usize; D] {
    flat(side, side)
}

/// Whether two boxes that do not wrap share a cell.
fn meet<const D: usize>(a: &Block<D>, b: &Block<D>) -> bool {
    (0..D).all(|axis| {
        a.origin[axis] < b.origin[axis] + b.sides[axis]
            && b.origin[axis] < a.origin[axis] + a.sides[axis]
    })
}

/// How many pieces `cells` are, by the joints of the ground of `room`.
pub fn n_pieces<const D: usize>(room: &Room<'_, D>, cells: &[u32]) -> usize {
    let ground = room.ground();
    let mut left = vec![false; ground.grid().n_cells()];
    cells.iter().for_each(|&it| left[it as usize] = true);
    let mut n = 0;
    for &start in cells {
        if !std::mem::take(&mut left[start as usize]) {
            continue;
        }
        n += 1;
        let mut found = vec![start];
        while let Some(cell) = found.pop() {
            for &beside in ground.around(cell as usize).iter().flatten() {
                if beside != NO_CELL && std::mem::take(&mut left[beside as usize]) {
                    found.push(beside);
                }
            }
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::room::Ground;

    fn wanted(n_cells: usize) -> Wanted<2> {
        Wanted { n_cells, sides: None, exact: false, each_shape: false }
    }

    fn first(room: &Room<'_, 2>, wanted: Wanted<2>, policy: Policy) -> Option<Vec<u32>> {
        candidates(room, wanted, policy).next()
    }

    #[test]
    fn every_rule_is_found_by_its_name() {
        for policy in Policy::ALL {
            assert_eq!(Policy::parse(policy.word()), Some(policy));
        }
        assert_eq!(Policy::parse("worst-fit"), None);
    }

    #[test]
    fn each_rule_proposes_free_cells_and_all_but_one_a_connected_set() {
        let ground = Ground::whole(Grid::mesh([8, 8]));
        for policy in Policy::ALL {
            let mut room = Room::of(&ground, |cell| cell % 7 != 3);
            for n in 1..12 {
                for cells in candidates(&room, wanted(n), policy) {
                    assert!(n <= cells.len(), "{policy} {n}");
                    assert!(cells.iter().all(|&it| room.is_free(it as usize)), "{policy} {n}");
                    let is_one = n_pieces(&room, &cells) == 1;
                    assert!(is_one || !policy.is_contiguous(), "{policy} {n}: {cells:?}");
                }
                if let Some(cells) = first(&room, wanted(n), policy) {
                    room.take(&cells);
                }
            }
        }
    }

    #[test]
    fn the_rules_differ_as_they_say() {
        let ground = Ground::whole(Grid::mesh([8, 8]));
        let grid = *ground.grid();
        let room = Room::of(&ground, |cell| grid.at(cell) != [0, 0]);
        let origin = |policy, n| {
            let cells = first(&room, wanted(n), policy).unwrap();
            (grid.at(cells[0] as usize), cells.len())
        };
        assert_eq!(origin(Policy::FirstFit, 4), ([1, 0], 4));
        assert_eq!(origin(Policy::SquareFirst, 5), ([1, 0], 9));
        assert_eq!(origin(Policy::Buddy, 5), ([4, 0], 16));
        // In a corner it touches half of what is around it.
        assert_eq!(
            room.contact(Block { origin: origin(Policy::BestFit, 4).0, sides: [2, 2] }),
            [4, 8]
        );
        assert_eq!(origin(Policy::Anchored, 4).0.map(|it| it % 2), [0, 0]);
        assert_eq!(first(&room, wanted(64), Policy::Polyomino), None);
        assert_eq!(first(&room, wanted(63), Policy::Polyomino).unwrap().len(), 63);
        assert_eq!(first(&room, wanted(63), Policy::FirstFit), None);
    }

    #[test]
    fn a_box_that_is_asked_for_exactly_is_not_replaced() {
        let ground = Ground::whole(Grid::mesh([4, 4]));
        let room = Room::of(&ground, |cell| cell % 5 != 0);
        let exact = Wanted { sides: Some([4, 1]), exact: true, ..wanted(4) };
        assert_eq!(candidates(&room, exact, Policy::Polyomino).count(), 0);
        let like = Wanted { exact: false, ..exact };
        assert!(candidates(&room, like, Policy::Polyomino).next().is_some());
    }
}
