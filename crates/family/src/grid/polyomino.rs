//! Connected sets of free cells (polyominoes, where the grid is flat).
//!
//! Any connected set of free cells serves a task that can close a ring through it, so a task fits
//! as soon as one piece of free cells is large enough.  Which set is taken decides what is left:
//! one that hugs what is taken already leaves the rest in one piece.  A set grows from a corner of
//! the free cells, each time by the cell that most sides are closed around, by what is taken, by
//! the edge of the grid or by the set itself.  A cell that ends up with one neighbour in the set
//! has half the links of the others; such cells are moved to where they have two.  Two neighbours
//! that are not joined may both be in a set that is joined around them.
//!
//! Cells wait in buckets by how closed they are, so growing costs O(cells of the set).

use std::collections::VecDeque;

use crate::grid::room::{Ground, NO_CELL, Room};

/// How many corners a set is grown from; the best result is kept.
const STARTS_MAX: usize = 6;

/// The sets that were found for one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polyominoes {
    /// The best in which every cell has two neighbours or more.
    pub sturdy: Option<Vec<u32>>,
    /// The best of all; absent where it is the sturdy one.
    pub any: Option<Vec<u32>>,
}

/// Connected sets of `n` free cells, if a piece of free cells is that large.
pub fn find<const D: usize>(room: &Room<'_, D>, n: usize) -> Polyominoes {
    let (piece_of, sizes) = room.pieces();
    let large = sizes.iter().zip(0u32..).filter(|it| n <= *it.0 as usize);
    // The smallest that is large enough, so that larger ones stay large.
    let Some((&size, piece)) = large.min_by_key(|it| *it.0) else {
        return Polyominoes::default();
    };
    let mut growth = Growth::new(room);
    let cells = room.free_cells().filter(|&it| piece_of[it] == piece);
    let mut best: [Option<(u32, Vec<u32>)>; 2] = [None, None];
    let starts = match size as usize == n {
        true => cells.take(1).collect(),
        false => growth.corners(cells),
    };
    for start in starts {
        growth.grow(start, n);
        if growth.set.len() < n {
            continue;
        }
        let is_sturdy = growth.steady();
        let cost = growth.exposed();
        let kept = &mut best[usize::from(is_sturdy)];
        if kept.as_ref().is_none_or(|it| cost < it.0) {
            *kept = Some((cost, growth.set.clone()));
        }
    }
    let [frail, sturdy] = best;
    let is_better = |a: &(u32, Vec<u32>)| sturdy.as_ref().is_none_or(|b| a.0 < b.0);
    let any = frail.filter(is_better).map(|it| it.1);
    Polyominoes { sturdy: sturdy.map(|it| it.1), any }
}

/// Whether sets of `n` cells exist in which every cell has two neighbours: a square, or more than
/// six.  (Five cells are a square and one beside it, or have more such ends.)
pub const fn can_be_sturdy(n: usize) -> bool {
    n == 4 || 6 <= n
}

/// A set that grows, and the cells beside it.
struct Growth<'r, 'g, const D: usize> {
    room: &'r Room<'g, D>,
    ground: &'g Ground<D>,
    set: Vec<u32>,
    /// Whether each cell is in the set.
    is_in: Vec<bool>,
    /// How many neighbours of each cell are in the set; of cells beside it only.
    n_in: Vec<u8>,
    /// How many sides of each cell are closed by what is taken and by the edge; computed once.
    walls: Vec<u8>,
    buckets: Vec<VecDeque<u32>>,
    /// All cells that were beside the set at some time.
    touched: Vec<u32>,
}

const UNKNOWN: u8 = u8::MAX;

impl<'r, 'g, const D: usize> Growth<'r, 'g, D> {
    fn new(room: &'r Room<'g, D>) -> Self {
        let n_cells = room.ground().grid().n_cells();
        Self {
            room,
            ground: room.ground(),
            set: Vec::new(),
            is_in: vec![false; n_cells],
            n_in: vec![0; n_cells],
            walls: vec![UNKNOWN; n_cells],
            buckets: vec![VecDeque::new(); 4 * D + 2],
            touched: Vec::new(),
        }
    }

    fn walls(&mut self, cell: u32) -> u8 {
        let cell = cell as usize;
        if self.walls[cell] == UNKNOWN {
            let is_wall = |it: &&u32| **it == NO_CELL || !self.room.is_free(**it as usize);
            let around = self.ground.around(cell).iter().flatten();
            self.walls[cell] = around.filter(is_wall).count() as u8;
        }
        self.walls[cell]
    }

    /// The most closed of `cells`, spread over all that are as closed.
    fn corners(&mut self, cells: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut most = 0;
        // Along an axis of one cell both sides of every cell are closed, which tells no corner from
        // another; along each other axis a corner has one.
        let n_flat = self.ground.grid().sides.iter().filter(|it| **it == 1).count();
        let of_corner = (D + n_flat) as u8;
        for cell in cells {
            // Beyond a corner, more walls say no more.
            let walls = self.walls(cell as u32).min(of_corner);
            if most < walls {
                most = walls;
                found.clear();
            }
            if walls == most {
                found.push(cell);
            }
        }
        let n = found.len().min(STARTS_MAX);
        let last = found.len().saturating_sub(1);
        let nth = |it: usize| found[if n < 2 { 0 } else { it * last / (n - 1) }];
        (0..n).map(nth).collect()
    }

    /// How soon a cell is taken: the more of its sides are closed the sooner, and of equals the
    /// one with two neighbours in the set.
    fn rank(&mut self, cell: u32) -> usize {
        let n_in = self.n_in[cell as usize];
        let closed = usize::from(n_in + self.walls(cell));
        2 * closed.min(2 * D) + usize::from(1 < n_in)
    }

    fn grow(&mut self, start: usize, n: usize) {
        for cell in self.touched.drain(..) {
            self.is_in[cell as usize] = false;
            self.n_in[cell as usize] = 0;
        }
        self.set.clear();
        self.buckets.iter_mut().for_each(VecDeque::clear);
        self.touched.push(start as u32);
        self.add(start as u32);
        while self.set.len() < n {
            let Some(cell) = self.next() else { return };
            self.add(cell);
        }
    }

    fn next(&mut self) -> Option<u32> {
        for rank in (0..self.buckets.len()).rev() {
            while let Some(cell) = self.buckets[rank].pop_front() {
                // One that has become more closed since waits in another bucket too.
                let is_current = !self.is_in[cell as usize] && self.rank(cell) == rank;
                if is_current {
                    return Some(cell);
                }
            }
        }
        None
    }

    fn add(&mut self, cell: u32) {
        self.is_in[cell as usize] = true;
        self.set.push(cell);
        let ground = self.ground;
        for &beside in ground.around(cell as usize).iter().flatten() {
            if beside == NO_CELL || !self.room.is_free(beside as usize) {
                continue;
            }
            if self.n_in[beside as usize] == 0 {
                self.touched.push(beside);
            }
            self.n_in[beside as usize] += 1;
            if !self.is_in[beside as usize] {
                let rank = self.rank(beside);
                self.buckets[rank].push_back(beside);
            }
        }
    }

    fn remove(&mut self, idx: usize) {
        let cell = self.set.swap_remove(idx);
        self.is_in[cell as usize] = false;
        let ground = self.ground;
        for beside in ground.neighbours(cell as usize) {
            self.n_in[beside] = self.n_in[beside].saturating_sub(1);
        }
    }

    /// Sides between the set and free cells that are not in it.
    fn exposed(&self) -> u32 {
        let open = |cell: &u32| {
            let neighbours = self.ground.neighbours(*cell as usize);
            neighbours.filter(|&it| !self.is_in[it] && self.room.is_free(it)).count() as u32
        };
        self.set.iter().map(open).sum()
    }

    /// Moves cells until each has two neighbours in the set; returns whether that came about.
    fn steady(&mut self) -> bool {
        if !can_be_sturdy(self.set.len()) {
            return false;
        }
        for _ in 0..STEPS_MAX {
            let Some(idx) = self.set.iter().position(|it| self.n_in[*it as usize] < 2) else {
                return true;
            };
            let moved = self.bring_in(idx) || self.prop(idx);
            if !moved {
                return false;
            }
        }
        false
    }

    /// Moves the end at `idx` to a free cell that has two neighbours in the set without it.
    fn bring_in(&mut self, idx: usize) -> bool {
        let end = self.set[idx];
        let beside = |it: u32| self.ground.neighbours(end as usize).any(|at| at as u32 == it);
        let mut best: Option<(u8, u32)> = None;
        for at in 0..self.touched.len() {
            let cell = self.touched[at];
            if self.is_in[cell as usize] || !self.room.is_free(cell as usize) {
                continue;
            }
            let without = self.n_in[cell as usize] - u8::from(beside(cell));
            let worth = without + self.walls(cell);
            if 1 < without && best.is_none_or(|it| it.0 < worth) {
                best = Some((worth, cell));
            }
        }
        let Some((_, cell)) = best else { return false };
        self.remove(idx);
        self.add(cell);
        true
    }

    /// Gives the end at `idx` a second neighbour, which is taken from a corner of the set.
    fn prop(&mut self, idx: usize) -> bool {
        let end = self.set[idx] as usize;
        let ground = self.ground;
        let props = ground
            .neighbours(end)
            .filter(|&it| !self.is_in[it] && self.room.is_free(it) && 1 < self.n_in[it]);
        let props: Vec<usize> = props.collect();
        for prop in props {
            let is_near = |cell: usize| {
                cell == end || ground.is_joined(cell, prop) || ground.is_joined(cell, end)
            };
            let spare = |cell: &u32| {
                let cell = *cell as usize;
                !is_near(cell) && self.is_spare(cell)
            };
            if let Some(at) = self.set.iter().position(spare) {
                self.remove(at);
                self.add(prop as u32);
                return true;
            }
        }
        false
    }

    /// Whether the set without `cell` is connected and leaves its neighbours two of their own: a
    /// corner of a square that is all in the set.
    fn is_spare(&self, cell: usize) -> bool {
        let mut inner = self.ground.neighbours(cell).filter(|&it| self.is_in[it]);
        let (Some(a), Some(b), None) = (inner.next(), inner.next(), inner.next()) else {
            return false;
        };
        let mut common = self.ground.neighbours(a);
        let across = common.any(|it| it != cell && self.is_in[it] && self.ground.is_joined(it, b));
        across && 2 < self.n_in[a] && 2 < self.n_in[b]
    }
}

/// Cells moved for one set.
const STEPS_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::grid::room::tests::scattered;

    fn is_connected(ground: &Ground<2>, set: &[u32]) -> bool {
        let mut found = vec![set[0] as usize];
        let mut next = 0;
        while let Some(&cell) = found.get(next) {
            next += 1;
            for beside in ground.neighbours(cell) {
                if set.contains(&(beside as u32)) && !found.contains(&beside) {
                    found.push(beside);
                }
            }
        }
        found.len() == set.len()
    }

    fn least(ground: &Ground<2>, set: &[u32]) -> usize {
        let n_in = |it: &u32| {
            ground.neighbours(*it as usize).filter(|at| set.contains(&(*at as u32))).count()
        };
        set.iter().map(n_in).min().unwrap()
    }

    #[test]
    fn a_set_is_found_exactly_where_a_piece_is_large_enough() {
        for seed in 0..200 {
            let grid = Grid { sides: [9, 8], wraps: [seed % 2 == 0, seed % 3 == 0] };
            let ground = Ground::whole(grid);
            let free = scattered(grid.n_cells(), seed, 60);
            let room = Room::of(&ground, |it| free[it]);
            let largest = room.largest_piece();
            for n in 1..=grid.n_cells() {
                let found = find(&room, n);
                assert_eq!(found.sturdy.is_some() || found.any.is_some(), n <= largest, "{n}");
                for set in found.sturdy.iter().chain(&found.any) {
                    let mut sorted = set.clone();
                    sorted.sort_unstable();
                    sorted.dedup();
                    assert_eq!(sorted.len(), n);
                    assert!(set.iter().all(|&it| free[it as usize]) && is_connected(&ground, set));
                }
                if let Some(set) = &found.sturdy {
                    assert!(2 <= least(&ground, set), "seed {seed}: {set:?}");
                }
            }
        }
    }

    /// A site has three axes, of which the boards of one floor need two.
    #[test]
    fn a_floor_of_a_grid_of_three_axes_is_a_grid_of_two() {
        for seed in 0..100 {
            let floor = Ground::whole(Grid::mesh([9, 8, 1]));
            let free = scattered(72, seed, 15);
            let plane = Ground::whole(Grid::mesh([9, 8]));
            for n in 1..=72 {
                let on_floor = find(&Room::of(&floor, |it| free[it]), n);
                assert_eq!(on_floor, find(&Room::of(&plane, |it| free[it]), n), "{seed}: {n}");
            }
        }
    }

    #[test]
    fn on_an_empty_grid_every_size_that_can_be_sturdy_is() {
        let ground = Ground::whole(Grid::mesh([16, 16]));
        let room = Room::of(&ground, |_| true);
        for n in 1..=256 {
            assert_eq!(find(&room, n).sturdy.is_some(), can_be_sturdy(n), "{n}");
        }
    }

    #[test]
    fn a_set_may_hold_two_neighbours_that_are_joined_only_around() {
        let mut ground = Ground::whole(Grid::mesh([8, 8]));
        let grid = *ground.grid();
        for y in 0..8 {
            ground.sever(grid.cell([3, y]), 0);
        }
        for x in [1, 2, 5] {
            ground.sever(grid.cell([x, 4]), 1);
        }
        let room = Room::of(&ground, |_| true);
        for n in 1..=33 {
            let found = find(&room, n);
            assert_eq!(found.sturdy.is_some() || found.any.is_some(), n <= 32, "{n}");
            for set in found.sturdy.iter().chain(&found.any) {
                assert!(set.len() == n && is_connected(&ground, set), "{set:?}");
            }
        }
        // A square without one of its four joints.
        let mut ground = Ground::whole(Grid::mesh([2, 2]));
        ground.sever(0, 0);
        let room = Room::of(&ground, |_| true);
        assert_eq!(find(&room, 4).any.map(|it| it.len()), Some(4));
        assert!(!room.has_box([2, 2]));
    }
}
