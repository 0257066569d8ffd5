//! Boxes of cells on a d-dimensional grid, with or without wrap.  Knows no family.
//!
//! A grid of at most 64 cells also speaks in masks: bit `i` is cell `i`, first axis fastest.  On
//! larger grids a box is walked cell by cell.
//!
//! In reading order: which cells are free and joined, and where a box of them lies ([`room`]);
//! connected sets of cells ([`polyomino`]); a [`curve`] through all; by which [`policy`] cells are
//! chosen; and how parts of a fabric stand on cells ([`site`]).

pub mod room;

pub mod polyomino;

pub mod curve;

pub mod policy;

pub mod site;

use std::ops::RangeInclusive;

/// Cells in `D` dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid<const D: usize> {
    /// Cells along each axis, at least one.
    pub sides: [usize; D],
    /// Whether a box may leave at the end of an axis and come in at its start.
    pub wraps: [bool; D],
}

/// A box of cells: `sides` from `origin` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block<const D: usize> {
    /// Its first cell.
    pub origin: [usize; D],
    /// Cells along each axis, at least one.
    pub sides: [usize; D],
}

impl<const D: usize> Grid<D> {
    /// A grid without wrap.
    pub const fn mesh(sides: [usize; D]) -> Self {
        Self { sides, wraps: [false; D] }
    }

    /// How many cells there are.
    pub fn n_cells(&self) -> usize {
        self.sides.iter().product()
    }

    /// The number of the cell at `at`, first axis fastest.
    pub fn cell(&self, at: [usize; D]) -> usize {
        (0..D).rev().fold(0, |cell, axis| cell * self.sides[axis] + at[axis])
    }

    /// Where cell number `cell` is.
    pub fn at(&self, mut cell: usize) -> [usize; D] {
        self.sides.map(|side| {
            let at = cell % side;
            cell /= side;
            at
        })
    }

    /// Every place of a box of `sides` as they stand, in the order of their origins.
    pub fn blocks(&self, sides: [usize; D]) -> impl Iterator<Item = Block<D>> + use<D> {
        let mut origins = self.sides;
        for axis in 0..D {
            origins[axis] = match (self.sides[axis].checked_sub(sides[axis]), self.wraps[axis]) {
                (None, _) => 0,
                // A box that goes all the way round is one box, wherever it is said to start.
                (Some(0), _) => 1,
                (Some(_), true) => self.sides[axis],
                (Some(room), false) => room + 1,
            };
        }
        let origins = Grid::mesh(origins);
        (0..origins.n_cells()).map(move |idx| Block { origin: origins.at(idx), sides })
    }

    /// The cells of `block`.
    pub fn cells(&self, block: Block<D>) -> impl Iterator<Item = usize> + use<D> {
        let (grid, inner) = (*self, Grid::mesh(block.sides));
        (0..inner.n_cells()).map(move |idx| {
            let mut at = inner.at(idx);
            for (axis, at) in at.iter_mut().enumerate() {
                *at = (block.origin[axis] + *at) % grid.sides[axis];
            }
            grid.cell(at)
        })
    }

    /// The places of a box of `sides`, as they stand, none of whose cells is taken.
    pub fn free_blocks<'a>(
        &self,
        sides: [usize; D],
        is_taken: &'a dyn Fn(usize) -> bool,
    ) -> impl Iterator<Item = Block<D>> + use<'a, D> {
        let grid = *self;
        self.blocks(sides).filter(move |&block| !grid.cells(block).any(is_taken))
    }

    /// The cells of `block` as a mask.
    ///
    /// # Panics
    /// If the grid has more than 64 cells.
    pub fn mask(&self, block: Block<D>) -> u64 {
        assert!(self.n_cells() <= 64, "{} cells do not fit a mask", self.n_cells());
        self.cells(block).fold(0, |mask, cell| mask | 1 << cell)
    }

    /// The box that `mask` is, if it is one that does not wrap.
    pub fn block_of(&self, mask: u64) -> Option<Block<D>> {
        if mask == 0 || 64 < self.n_cells() || mask.checked_shr(self.n_cells() as u32) > Some(0) {
            return None;
        }
        // Numbering is monotone in every axis, so the corners are the first and the last cell.
        let first = self.at(mask.trailing_zeros() as usize);
        let last = self.at(63 - mask.leading_zeros() as usize);
        let mut sides = [0; D];
        for axis in 0..D {
            sides[axis] = last[axis].checked_sub(first[axis])? + 1;
        }
        let block = Block { origin: first, sides };
        (self.mask(block) == mask).then_some(block)
    }
}

/// The distinct orders of `sides`, ascending.
pub fn orientations<const D: usize>(sides: [usize; D]) -> Vec<[usize; D]> {
    let mut sorted = sides;
    sorted.sort_unstable();
    let mut found = vec![sorted];
    while let Some(next) = next_order(found[found.len() - 1]) {
        found.push(next);
    }
    found
}

/// The order that follows in the dictionary, if there is one.
fn next_order<const D: usize>(mut order: [usize; D]) -> Option<[usize; D]> {
    let falls: RangeInclusive<usize> = 1..=D.checked_sub(1)?;
    let pivot = falls.rev().find(|&at| order[at - 1] < order[at])? - 1;
    let larger = (0..D).rev().find(|&at| order[pivot] < order[at])?;
    order.swap(pivot, larger);
    order[pivot + 1..].reverse();
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_count_the_first_axis_fastest() {
        let grid = Grid::mesh([4, 3, 2]);
        assert_eq!(grid.cell([1, 2, 1]), 1 + 4 * 2 + 12);
        for cell in 0..grid.n_cells() {
            assert_eq!(grid.cell(grid.at(cell)), cell);
        }
    }

    #[test]
    fn a_wrap_adds_the_places_that_cross_it_and_no_place_twice() {
        let mesh = Grid::mesh([4, 4]);
        assert_eq!(mesh.blocks([2, 4]).count(), 3);
        assert_eq!(mesh.blocks([5, 1]).count(), 0);
        let torus = Grid { sides: [4, 4], wraps: [true, true] };
        let mut masks: Vec<u64> = torus.blocks([2, 4]).map(|it| torus.mask(it)).collect();
        assert_eq!(masks.len(), 4);
        assert!(masks.contains(&0b1001_1001_1001_1001));
        masks.sort_unstable();
        masks.dedup();
        assert_eq!(masks.len(), 4);
    }

    #[test]
    fn free_boxes_hold_no_taken_cell_on_a_grid_larger_than_a_mask() {
        let grid = Grid { sides: [32, 8], wraps: [true, false] };
        // One taken cell spoils the boxes that cover it: 4 origins along x, 2 along y.
        let taken = grid.cell([0, 1]);
        let is_taken = |cell| cell == taken;
        let free: Vec<_> = grid.free_blocks([4, 2], &is_taken).collect();
        assert_eq!(free.len(), 32 * 7 - 4 * 2);
        assert!(free.iter().all(|&it| grid.cells(it).all(|cell| cell != taken)));
    }

    #[test]
    fn a_mask_is_read_back_as_the_box_that_it_is() {
        let grid = Grid::mesh([4, 4, 4]);
        for sides in orientations([1, 2, 4]) {
            for block in grid.blocks(sides) {
                assert_eq!(grid.block_of(grid.mask(block)), Some(block));
            }
        }
        assert_eq!(grid.block_of(u64::MAX).map(|it| it.sides), Some([4, 4, 4]));
        for no_box in [0, 0b101, 0b1_0010] {
            assert_eq!(grid.block_of(no_box), None);
        }
        assert_eq!(Grid::mesh([2, 2]).block_of(0b11_0000), None);
    }

    #[test]
    fn orientations_are_distinct_and_complete() {
        assert_eq!(orientations([2, 1, 2]), [[1, 2, 2], [2, 1, 2], [2, 2, 1]]);
        assert_eq!(orientations([3, 1, 2]).len(), 6);
        assert_eq!(orientations([4, 4, 4]), [[4, 4, 4]]);
    }
}
