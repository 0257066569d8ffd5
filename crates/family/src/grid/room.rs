//! Which cells are joined, which of them are free, and where a box of free cells lies.
//!
//! Cells stand in rows along the first axis, one word of bits for each row.  Every place of a box
//! is found at once: a bit stays where all cells of the box that begins there are free, by shifts
//! along the row and conjunctions across rows, doubling the length at each step.  So a question
//! costs O(rows · log side) words, whatever the number of places.

use std::collections::BTreeMap;

use crate::grid::{Block, Grid};

/// The most cells along the first axis: one word of bits.  A site whose first axis is longer takes
/// its second for the first.
pub const ROW_MAX: usize = 64;

/// No neighbour: the grid ends there, or the two cells are not joined.
pub const NO_CELL: u32 = u32::MAX;

/// Cells and which of them are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground<const D: usize> {
    grid: Grid<D>,
    /// The neighbours of each cell, along each axis: backward, forward.
    around: Vec<[[u32; 2]; D]>,
    /// For each axis and row, which cells are joined with the next along the axis; absent where
    /// all are.
    joints: Option<Vec<Vec<u64>>>,
    /// For each joint that some lanes are left of, forward from a cell along an axis: those that
    /// are gone, a bit each.
    worn: BTreeMap<(u32, u8), u16>,
}

/// One lane of a joint, which is as many cables as there are lanes: from a cell to the next along
/// an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strand {
    /// The cell.
    pub cell: usize,
    /// The axis along which the next one lies.
    pub axis: usize,
    /// Which lane.
    pub lane: usize,
    /// Of so many, 16 at most.
    pub n_lanes: usize,
}

impl<const D: usize> Ground<D> {
    /// A ground on which all neighbours are joined.
    ///
    /// # Panics
    /// If the first axis has more than [`ROW_MAX`] cells, or an axis has none.
    pub fn whole(grid: Grid<D>) -> Self {
        assert!(grid.sides[0] <= ROW_MAX, "{} cells to a row of 64 bits", grid.sides[0]);
        assert!(grid.sides.iter().all(|&it| 0 < it), "an axis without cells");
        let around = (0..grid.n_cells()).map(|cell| {
            let at = grid.at(cell);
            std::array::from_fn(|axis| {
                let side = grid.sides[axis];
                let wraps = grid.wraps[axis] && 1 < side;
                let beside = |to: Option<usize>| {
                    let mut at = at;
                    to.map_or(NO_CELL, |to| {
                        at[axis] = to;
                        grid.cell(at) as u32
                    })
                };
                let back = at[axis].checked_sub(1).or(wraps.then_some(side - 1));
                let next = (at[axis] + 1 < side).then_some(at[axis] + 1);
                [beside(back), beside(next.or(wraps.then_some(0)))]
            })
        });
        Self { grid, around: around.collect(), joints: None, worn: BTreeMap::new() }
    }

    /// The cells.
    pub fn grid(&self) -> &Grid<D> {
        &self.grid
    }

    /// The neighbours of `cell`, along each axis backward and forward, [`NO_CELL`] where there is
    /// none.
    pub fn around(&self, cell: usize) -> &[[u32; 2]; D] {
        &self.around[cell]
    }

    /// The neighbours of `cell` that there are.
    pub fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> + '_ {
        self.around[cell].iter().flatten().filter(|&&it| it != NO_CELL).map(|&it| it as usize)
    }

    /// Parts `cell` from the next along `axis`: no box holds both, and no connected set is joined
    /// there.
    pub fn sever(&mut self, cell: usize, axis: usize) {
        let next = std::mem::replace(&mut self.around[cell][axis][1], NO_CELL);
        if next == NO_CELL {
            return;
        }
        self.around[next as usize][axis][0] = NO_CELL;
        self.worn.remove(&(cell as u32, axis as u8));
        self.spoil(cell, axis);
    }

    /// Takes one lane of a joint away.  The cells are joined as long as one is left; boxes, which
    /// are to be as good as any of their size, have whole joints only.
    ///
    /// # Panics
    /// If there is no such lane, or there are more than 16.
    pub fn wear(&mut self, Strand { cell, axis, lane, n_lanes }: Strand) {
        assert!(lane < n_lanes && n_lanes <= 16, "lane {lane} of {n_lanes}");
        if self.around[cell][axis][1] == NO_CELL {
            return;
        }
        let gone = self.worn.entry((cell as u32, axis as u8)).or_default();
        *gone |= 1 << lane;
        if gone.count_ones() as usize == n_lanes {
            self.sever(cell, axis);
        } else {
            self.spoil(cell, axis);
        }
    }

    /// No box crosses from `cell` along `axis`.
    fn spoil(&mut self, cell: usize, axis: usize) {
        let (side, n_rows) = (self.grid.sides[0], self.grid.n_cells() / self.grid.sides[0]);
        let joints = self.joints.get_or_insert_with(|| vec![vec![all(side); n_rows]; D]);
        joints[axis][cell / side] &= !(1 << (cell % side));
    }

    /// The lanes that are gone of the joint from `cell` forward along `axis`, a bit each.
    pub fn gone(&self, cell: usize, axis: usize) -> u16 {
        self.worn.get(&(cell as u32, axis as u8)).copied().unwrap_or(0)
    }

    /// Whether there is a joint that some lanes are gone of.
    pub fn is_worn(&self) -> bool {
        !self.worn.is_empty()
    }

    /// Whether both cells are beside each other and joined.
    pub fn is_joined(&self, a: usize, b: usize) -> bool {
        self.neighbours(a).any(|it| it == b)
    }
}

/// The lowest `n` bits.
fn all(n: usize) -> u64 {
    if n == 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Free cells of a ground.
#[derive(Clone, Debug)]
pub struct Room<'g, const D: usize> {
    ground: &'g Ground<D>,
    /// The free cells of each row.
    rows: Vec<u64>,
}

impl<'g, const D: usize> Room<'g, D> {
    /// The cells that `is_free` says are free.
    pub fn of(ground: &'g Ground<D>, mut is_free: impl FnMut(usize) -> bool) -> Self {
        let side = ground.grid.sides[0];
        let row =
            |first: usize| (0..side).fold(0, |row, x| row | u64::from(is_free(first + x)) << x);
        let rows = (0..ground.grid.n_cells()).step_by(side).map(row).collect();
        Self { ground, rows }
    }

    /// The ground.
    pub fn ground(&self) -> &'g Ground<D> {
        self.ground
    }

    /// Whether `cell` is free.
    pub fn is_free(&self, cell: usize) -> bool {
        let side = self.ground.grid.sides[0];
        self.rows[cell / side] >> (cell % side) & 1 == 1
    }

    /// How many cells are free.
    pub fn n_free(&self) -> usize {
        self.rows.iter().map(|it| it.count_ones() as usize).sum()
    }

    /// Takes cells.
    pub fn take(&mut self, cells: &[u32]) {
        let side = self.ground.grid.sides[0];
        for &cell in cells {
            self.rows[cell as usize / side] &= !(1 << (cell as usize % side));
        }
    }

    /// The places of a box of `sides` as they stand, all of whose cells are free and joined; in the
    /// order of their origins, each once.
    pub fn boxes(&self, sides: [usize; D]) -> impl Iterator<Item = Block<D>> + use<D> {
        let grid = self.ground.grid;
        let found = self.origins(sides);
        found.into_iter().enumerate().flat_map(move |(row, bits)| {
            let first = row * grid.sides[0];
            Bits(bits).map(move |x| Block { origin: grid.at(first + x), sides })
        })
    }

    /// The places of a box of `sides` that cannot be pushed both ways along any axis: those that
    /// stand against something, and of a row of places the first and the last.  There is one if
    /// there is any place at all.
    pub fn corner_boxes(&self, sides: [usize; D]) -> impl Iterator<Item = Block<D>> + use<D> {
        let grid = self.ground.grid;
        let found = self.origins(sides);
        let mut ends = found.clone();
        for axis in 0..D {
            if axis == 0 {
                ends.iter_mut().zip(&found).for_each(|(row, it)| *row &= !(it << 1 & it >> 1));
                continue;
            }
            let stride: usize = grid.sides[1..axis].iter().product();
            for (idx, row) in ends.iter_mut().enumerate() {
                let at = idx / stride % grid.sides[axis];
                if 0 < at && at + 1 < grid.sides[axis] {
                    *row &= !(found[idx - stride] & found[idx + stride]);
                }
            }
        }
        ends.into_iter().enumerate().flat_map(move |(row, bits)| {
            let first = row * grid.sides[0];
            Bits(bits).map(move |x| Block { origin: grid.at(first + x), sides })
        })
    }

    /// Whether a box of `sides`, as they stand, is free somewhere.
    pub fn has_box(&self, sides: [usize; D]) -> bool {
        self.origins(sides).iter().any(|&it| it != 0)
    }

    fn origins(&self, sides: [usize; D]) -> Vec<u64> {
        let grid = &self.ground.grid;
        if (0..D).any(|axis| sides[axis] == 0 || grid.sides[axis] < sides[axis]) {
            return Vec::new();
        }
        let mut found = self.rows.clone();
        for (axis, &side) in sides.iter().enumerate() {
            self.run(&mut found, axis, side);
        }
        for (axis, joints) in self.ground.joints.iter().flatten().enumerate() {
            if sides[axis] < 2 {
                continue;
            }
            let mut joined = joints.clone();
            for (other, &side) in sides.iter().enumerate() {
                self.run(&mut joined, other, if other == axis { side - 1 } else { side });
            }
            found.iter_mut().zip(joined).for_each(|(row, joined)| *row &= joined);
        }
        // A box that goes all the way round is one box, wherever it is said to start; one that may
        // not wrap has been shifted out at the end.
        for (axis, side) in sides.into_iter().enumerate() {
            if side == grid.sides[axis] && grid.wraps[axis] {
                keep_first(grid, axis, &mut found);
            }
        }
        found
    }

    /// Leaves a bit where `len` bits in a run along `axis` stand.
    fn run(&self, rows: &mut [u64], axis: usize, len: usize) {
        let grid = &self.ground.grid;
        let (side, wraps) = (grid.sides[axis], grid.wraps[axis]);
        let mut have = 1;
        while have < len {
            let step = have.min(len - have);
            have += step;
            if axis == 0 {
                let keep = all(side);
                for row in rows.iter_mut() {
                    let back = if wraps { *row << (side - step) & keep } else { 0 };
                    *row &= *row >> step | back;
                }
                continue;
            }
            let stride: usize = grid.sides[1..axis].iter().product();
            let before = rows.to_vec();
            for (idx, row) in rows.iter_mut().enumerate() {
                let at = idx / stride % side;
                *row &= match (at + step < side, wraps) {
                    (true, _) => before[idx + step * stride],
                    (false, true) => before[idx + step * stride - side * stride],
                    (false, false) => 0,
                };
            }
        }
    }

    /// How many cells around `block` are taken or beyond the grid, and how many there could be.
    pub fn contact(&self, block: Block<D>) -> [usize; 2] {
        let grid = &self.ground.grid;
        let mut touched = 0;
        let mut all = 0;
        for axis in 0..D {
            let face: usize = block.sides.iter().product::<usize>() / block.sides[axis];
            if block.sides[axis] == grid.sides[axis] && grid.wraps[axis] {
                continue;
            }
            for forward in [false, true] {
                all += face;
                let mut slab = block;
                slab.sides[axis] = 1;
                let side = grid.sides[axis];
                let end = block.origin[axis] + block.sides[axis];
                let at = match (forward, grid.wraps[axis]) {
                    (true, false) => (end < side).then_some(end),
                    (true, true) => Some(end % side),
                    (false, false) => block.origin[axis].checked_sub(1),
                    (false, true) => Some((block.origin[axis] + side - 1) % side),
                };
                touched += match at {
                    None => face,
                    Some(at) => {
                        slab.origin[axis] = at;
                        face - self.n_free_in(slab)
                    }
                };
            }
        }
        [touched, all]
    }

    /// How many cells of `block` are free.
    fn n_free_in(&self, block: Block<D>) -> usize {
        let grid = &self.ground.grid;
        let (first, width) = (block.origin[0], block.sides[0]);
        let beyond = (first + width).saturating_sub(grid.sides[0]);
        let mask = all(width - beyond) << first | all(beyond);
        let n_rows: usize = block.sides[1..].iter().product();
        let mut n_free = 0;
        for nth in 0..n_rows {
            let (mut left, mut row, mut stride) = (nth, 0, 1);
            for axis in 1..D {
                let side = grid.sides[axis];
                let at = block.origin[axis] + left % block.sides[axis];
                left /= block.sides[axis];
                row += stride * if side <= at { at - side } else { at };
                stride *= side;
            }
            n_free += (self.rows[row] & mask).count_ones() as usize;
        }
        n_free
    }

    /// How many sides of `cells` lead to free cells that are none of them: O(cells of the grid).
    pub fn n_open(&self, cells: &[u32]) -> usize {
        let mut is_in = vec![false; self.ground.grid.n_cells()];
        cells.iter().for_each(|&it| is_in[it as usize] = true);
        let is_open = |it: &usize| !is_in[*it] && self.is_free(*it);
        let open = |it: &u32| self.ground.neighbours(*it as usize).filter(is_open).count();
        cells.iter().map(open).sum()
    }

    /// The cells of `block`, those of its origin first.
    pub fn cells(&self, block: Block<D>) -> Vec<u32> {
        self.ground.grid.cells(block).map(|it| it as u32).collect()
    }

    /// The pieces into which the free cells fall, by their joints: the piece of each cell,
    /// [`NO_CELL`] for a taken one, and how many cells each piece has.
    pub fn pieces(&self) -> (Vec<u32>, Vec<u32>) {
        let n_cells = self.ground.grid.n_cells();
        let (mut piece_of, mut sizes) = (vec![NO_CELL; n_cells], Vec::new());
        let mut found: Vec<u32> = Vec::with_capacity(n_cells);
        let side = self.ground.grid.sides[0];
        for (row, &bits) in self.rows.iter().enumerate() {
            for cell in Bits(bits).map(|x| row * side + x) {
                if piece_of[cell] != NO_CELL {
                    continue;
                }
                let piece = sizes.len() as u32;
                piece_of[cell] = piece;
                found.clear();
                found.push(cell as u32);
                let mut next = 0;
                while let Some(&cell) = found.get(next) {
                    next += 1;
                    for &beside in self.ground.around[cell as usize].iter().flatten() {
                        if beside != NO_CELL
                            && piece_of[beside as usize] == NO_CELL
                            && self.is_free(beside as usize)
                        {
                            piece_of[beside as usize] = piece;
                            found.push(beside);
                        }
                    }
                }
                sizes.push(found.len() as u32);
            }
        }
        (piece_of, sizes)
    }

    /// How many cells the largest connected set of free cells has.
    pub fn largest_piece(&self) -> usize {
        self.pieces().1.into_iter().max().unwrap_or(0) as usize
    }

    /// All free cells, ascending.
    pub fn free_cells(&self) -> impl Iterator<Item = usize> + '_ {
        let side = self.ground.grid.sides[0];
        self.rows
            .iter()
            .enumerate()
            .flat_map(move |(row, &bits)| Bits(bits).map(move |x| row * side + x))
    }
}

impl Room<'_, 2> {
    /// The largest box of free cells, by cells and then by its shorter side.
    pub fn largest_box(&self) -> Option<Block<2>> {
        largest(self, self.ground.grid.sides)
    }
}

impl Room<'_, 3> {
    /// The largest box of free cells of one layer, by cells and then by its shorter side.
    pub fn largest_box(&self) -> Option<Block<3>> {
        largest(self, self.ground.grid.sides)
    }
}

/// The largest box that spans the first two axes and one cell of all others.
///
/// For each width the greatest height, which can only fall as the width grows: O(w + h) questions.
fn largest<const D: usize>(room: &Room<'_, D>, most: [usize; D]) -> Option<Block<D>> {
    let mut best: Option<Block<D>> = None;
    let mut sides = [1; D];
    sides[1] = most[1];
    for width in 1..=most[0] {
        sides[0] = width;
        while sides[1] != 0 && !room.has_box(sides) {
            sides[1] -= 1;
        }
        if sides[1] == 0 {
            break;
        }
        let worth = |it: &[usize; D]| (it[0] * it[1], it[0].min(it[1]));
        if best.is_none_or(|it| worth(&it.sides) < worth(&sides)) {
            best = room.boxes(sides).next();
        }
    }
    best
}

/// Clears the bits of all cells but those at 0 along `axis`.
fn keep_first<const D: usize>(grid: &Grid<D>, axis: usize, rows: &mut [u64]) {
    if axis == 0 {
        rows.iter_mut().for_each(|row| *row &= 1);
        return;
    }
    let stride: usize = grid.sides[1..axis].iter().product();
    for (idx, row) in rows.iter_mut().enumerate() {
        if !(idx / stride).is_multiple_of(grid.sides[axis]) {
            *row = 0;
        }
    }
}

/// The places of the bits of a word, ascending.
#[derive(Clone, Copy, Debug)]
struct Bits(u64);

impl Iterator for Bits {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let at = self.0.trailing_zeros() as usize;
        (self.0 != 0).then(|| {
            self.0 &= self.0 - 1;
            at
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Draws that need no crate: shifts and exclusive ors are enough to scatter cells.
    pub(in crate::grid) fn scattered(n_cells: usize, seed: u64, share: u64) -> Vec<bool> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 33
        };
        (0..n_cells).map(|_| draw() % 100 < share).collect()
    }

    #[test]
    fn boxes_found_by_bits_are_those_found_cell_by_cell() {
        for seed in 0..60 {
            let wraps = [seed % 2 == 0, seed % 3 == 0, seed % 5 == 0];
            let grid = Grid { sides: [5, 4, 3], wraps };
            let ground = Ground::whole(grid);
            let free = scattered(grid.n_cells(), seed + 1, 70);
            let room = Room::of(&ground, |it| free[it]);
            let is_taken = |cell: usize| !free[cell];
            for sides in [[1, 1, 1], [2, 2, 1], [5, 1, 2], [3, 4, 1], [1, 2, 3], [6, 1, 1]] {
                let slow: Vec<_> = grid.free_blocks(sides, &is_taken).collect();
                let mut fast: Vec<_> = room.boxes(sides).collect();
                fast.sort_by_key(|it| grid.cell(it.origin));
                assert_eq!(fast, slow, "{sides:?} {wraps:?}");
                assert_eq!(room.has_box(sides), !slow.is_empty());
            }
        }
    }

    #[test]
    fn no_box_crosses_where_two_cells_are_not_joined() {
        for seed in 0..40u64 {
            let grid = Grid { sides: [6, 5], wraps: [seed % 2 == 0, seed % 4 < 2] };
            let mut ground = Ground::whole(grid);
            let broken = scattered(2 * grid.n_cells(), seed + 7, 15);
            for cell in 0..grid.n_cells() {
                for axis in 0..2 {
                    if broken[2 * cell + axis] {
                        ground.sever(cell, axis);
                    }
                }
            }
            let room = Room::of(&ground, |_| true);
            let joined = |block: &Block<2>| {
                let cells: Vec<usize> = grid.cells(*block).collect();
                // Along each row and column of the box, each cell and the next.
                let beside = |at: [usize; 2], axis: usize| {
                    let mut next = at;
                    next[axis] += 1;
                    (next[axis] < block.sides[axis]).then(|| {
                        let inner = Grid::mesh(block.sides);
                        (cells[inner.cell(at)], cells[inner.cell(next)])
                    })
                };
                (0..cells.len()).all(|idx| {
                    let at = Grid::mesh(block.sides).at(idx);
                    (0..2).all(|axis| {
                        beside(at, axis).is_none_or(|(a, b)| ground.around(a)[axis][1] == b as u32)
                    })
                })
            };
            for sides in [[2, 1], [1, 2], [3, 2], [2, 4], [6, 2], [6, 5]] {
                let slow: Vec<_> = grid.blocks(sides).filter(joined).collect();
                let mut fast: Vec<_> = room.boxes(sides).collect();
                fast.sort_by_key(|it| grid.cell(it.origin));
                assert_eq!(fast, slow, "{sides:?} seed {seed}");
            }
        }
    }

    #[test]
    fn contact_counts_what_is_taken_and_what_is_beyond() {
        let grid = Grid::mesh([4, 4]);
        let ground = Ground::whole(grid);
        let mut room = Room::of(&ground, |_| true);
        let block = Block { origin: [0, 0], sides: [2, 2] };
        assert_eq!(room.contact(block), [4, 8]);
        room.take(&[grid.cell([2, 1]) as u32]);
        assert_eq!(room.contact(block), [5, 8]);
        let torus = Ground::whole(Grid { sides: [4, 4], wraps: [true, true] });
        let mut room = Room::of(&torus, |_| true);
        assert_eq!(room.contact(block), [0, 8]);
        room.take(&[grid.cell([3, 0]) as u32, grid.cell([0, 3]) as u32]);
        assert_eq!(room.contact(block), [2, 8]);
        // All the way round there is nothing beyond.
        assert_eq!(room.contact(Block { origin: [0, 1], sides: [4, 2] }), [2, 8]);
    }

    #[test]
    fn pieces_are_joined_within_and_not_among_one_another() {
        let grid = Grid::mesh([5, 5]);
        let mut ground = Ground::whole(grid);
        for y in 0..5 {
            ground.sever(grid.cell([1, y]), 0);
        }
        let room = Room::of(&ground, |cell| grid.at(cell)[0] != 3);
        let (piece_of, sizes) = room.pieces();
        assert_eq!((sizes.as_slice(), room.largest_piece()), ([10, 5, 5].as_slice(), 10));
        assert_eq!(piece_of[grid.cell([3, 2])], NO_CELL);
        assert_eq!(piece_of[grid.cell([0, 0])], piece_of[grid.cell([1, 4])]);
        assert_ne!(piece_of[grid.cell([1, 0])], piece_of[grid.cell([2, 0])]);
    }

    #[test]
    fn the_largest_box_is_the_one_that_trying_all_finds() {
        for seed in 0..50 {
            let grid = Grid::mesh([7, 6]);
            let ground = Ground::whole(grid);
            let free = scattered(grid.n_cells(), seed + 3, 80);
            let room = Room::of(&ground, |it| free[it]);
            let is_taken = |cell: usize| !free[cell];
            let all = (1..=7).flat_map(|w| (1..=6).map(move |h| [w, h]));
            let slow = all
                .filter(|it| grid.free_blocks(*it, &is_taken).next().is_some())
                .map(|it| it[0] * it[1])
                .max();
            let found = room.largest_box().map(|it| it.sides[0] * it.sides[1]);
            assert_eq!(found, slow);
        }
    }
}
