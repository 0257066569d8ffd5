//! How the parts of a pool stand on the cells of a grid, found by following their cables.
//!
//! Knows no family: which of a part's ports lead which way is given.

use selvedge_model::fabric::{Fabric, LinkKind, Template};
use selvedge_model::id::PartId;

use crate::grid::Grid;
use crate::grid::room::{Ground, NO_CELL, ROW_MAX, Room};

/// Axes of a site; a flat one has one layer along the third.
pub const AXES: usize = 3;

/// One cable from a part to the next along an axis: the port that it leaves by, and the port that
/// it arrives at on the next part.
pub type Lane = [usize; 2];

/// What one part is like, wherever it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Chips of a part.
    pub n_chips: usize,
    /// Links between chips of one part.
    pub n_links: usize,
    /// Links between two parts that are joined along each axis.
    pub n_lanes: [usize; AXES],
    /// The fewest links of a chip of a part that has neighbours on these sides: bit `2·axis` for
    /// backward, the next for forward.
    least: Vec<u16>,
}

/// Parts on a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    ground: Ground<AXES>,
    /// The part on each cell.
    parts: Vec<Option<PartId>>,
    /// The cell of each part, in the order of the parts.
    cells: Vec<(PartId, u32)>,
    /// Whether the first two axes have been exchanged, so that a row of cells fits into a word.
    is_turned: bool,
    profile: Profile,
}

/// How well a set of parts is joined within itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Chips.
    pub n_chips: usize,
    /// Links between them, both directions as one.
    pub n_links: usize,
    /// The fewest links of a chip.
    pub least: usize,
}

impl Profile {
    /// The profile of parts of `template`, whose cables leave by `lanes`.
    pub fn of(template: &Template, lanes: &[Vec<Lane>; AXES]) -> Self {
        let seats = template.seats();
        let seat_of = |port: usize| {
            let node = template.ports()[port].node;
            seats.iter().position(|it| *it == node)
        };
        let mut inner = vec![0u16; seats.len()];
        let mut n_links = 0;
        for link in template.link_pairs() {
            let ends = [link.a, link.b].map(|it| seat_of(it as usize));
            if let ([Some(a), Some(b)], true) = (ends, link.attrs.kind != LinkKind::Pcie) {
                inner[a] += 1;
                inner[b] += 1;
                n_links += 1;
            }
        }
        let least = (0..1 << (2 * AXES)).map(|sides: usize| {
            let mut links = inner.clone();
            for (axis, lanes) in lanes.iter().enumerate() {
                for &[out, into] in lanes {
                    for (bit, port) in [(2 * axis, into), (2 * axis + 1, out)] {
                        if let (1, Some(seat)) = (sides >> bit & 1, seat_of(port)) {
                            links[seat] += 1;
                        }
                    }
                }
            }
            links.into_iter().min().unwrap_or(0)
        });
        let (n_chips, least) = (seats.len(), least.collect());
        Self { n_chips, n_links, n_lanes: std::array::from_fn(|axis| lanes[axis].len()), least }
    }

    /// Parts that are single chips with one cable to each neighbour along the first `n_axes`.
    pub fn chip(n_axes: usize) -> Self {
        let least = (0..1u32 << (2 * AXES)).map(|sides| sides.count_ones() as u16).collect();
        let n_lanes = std::array::from_fn(|axis| usize::from(axis < n_axes));
        Self { n_chips: 1, n_links: 0, n_lanes, least }
    }
}

impl Site {
    /// A site with a part on each cell, all joined.
    ///
    /// # Panics
    /// If there are more cells than parts, or fewer.
    pub fn whole(grid: Grid<AXES>, parts: &[PartId], profile: Profile) -> Self {
        assert_eq!(grid.n_cells(), parts.len(), "a part on each cell");
        let parts = parts.iter().map(|it| Some(*it)).collect();
        Self::new(Ground::whole(grid), parts, false, profile)
    }

    fn new(
        ground: Ground<AXES>,
        parts: Vec<Option<PartId>>,
        is_turned: bool,
        profile: Profile,
    ) -> Self {
        let numbered = parts.iter().zip(0u32..);
        let mut cells: Vec<(PartId, u32)> =
            numbered.filter_map(|(part, cell)| Some(((*part)?, cell))).collect();
        cells.sort_unstable();
        Self { ground, parts, cells, is_turned, profile }
    }

    /// The site of those of `parts` that have a place, by the cables that there are.
    ///
    /// Two parts beside each other are joined where all cables of the way from one to the other
    /// are there; an axis wraps where such cables lead from its last cell to its first.  `None`
    /// where no part has a place, or both first axes are longer than [`ROW_MAX`].
    pub fn survey(
        fabric: &Fabric,
        parts: &[PartId],
        place: impl Fn(&str) -> Option<[usize; AXES]>,
        lanes: &[Vec<Lane>; AXES],
    ) -> Option<Self> {
        let mut placed: Vec<(PartId, [usize; AXES])> = parts
            .iter()
            .filter_map(|&part| Some((part, place(&fabric.part(part).name)?)))
            .collect();
        let first = placed.first()?.0;
        let mut lanes = lanes.clone();
        let mut sides = [1; AXES];
        for (axis, side) in sides.iter_mut().enumerate() {
            *side = placed.iter().map(|it| it.1[axis] + 1).max().unwrap_or(1);
        }
        let is_turned = ROW_MAX < sides[0];
        if is_turned {
            placed.iter_mut().for_each(|it| it.1.swap(0, 1));
            lanes.swap(0, 1);
            sides.swap(0, 1);
        }
        if ROW_MAX < sides[0] {
            return None;
        }
        let profile = Profile::of(fabric.template_of(first), &lanes);
        let mut grid = Grid::mesh(sides);
        let mut of_cell = vec![None; grid.n_cells()];
        for (part, at) in &placed {
            of_cell[grid.cell(*at)] = Some(*part);
        }
        let is_joined = |a: PartId, b: PartId, axis: usize| {
            !lanes[axis].is_empty()
                && lanes[axis].iter().all(|&[out, into]| {
                    fabric.peer_of(fabric.port_at(a, out)) == Some(fabric.port_at(b, into))
                })
        };
        for axis in 0..AXES {
            let last = |cell: &usize| grid.at(*cell)[axis] + 1 == sides[axis];
            grid.wraps[axis] = 1 < sides[axis]
                && (0..grid.n_cells()).filter(last).any(|cell| {
                    let mut at = grid.at(cell);
                    at[axis] = 0;
                    let ends = [of_cell[cell], of_cell[grid.cell(at)]];
                    matches!(ends, [Some(a), Some(b)] if is_joined(a, b, axis))
                });
        }
        let mut ground = Ground::whole(grid);
        for cell in 0..grid.n_cells() {
            for axis in 0..AXES {
                let next = ground.around(cell)[axis][1];
                if next == NO_CELL {
                    continue;
                }
                // Where a board is not there, nothing lies on the cell anyway.
                let (Some(a), Some(b)) = (of_cell[cell], of_cell[next as usize]) else { continue };
                if !is_joined(a, b, axis) {
                    ground.sever(cell, axis);
                }
            }
        }
        Some(Self::new(ground, of_cell, is_turned, profile))
    }

    /// The cells and which of them are joined.
    pub fn ground(&self) -> &Ground<AXES> {
        &self.ground
    }

    /// What one part is like.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The part on `cell`.
    pub fn part(&self, cell: usize) -> Option<PartId> {
        self.parts[cell]
    }

    /// The cell of `part`.
    pub fn cell_of(&self, part: PartId) -> Option<usize> {
        let found = self.cells.binary_search_by_key(&part, |it| it.0).ok()?;
        Some(self.cells[found].1 as usize)
    }

    /// The joint of two parts on `ground`: the cell of one of them and the axis along which the
    /// other is next; `None` where they are not joined.
    pub fn joint(&self, ground: &Ground<AXES>, a: PartId, b: PartId) -> Option<(usize, usize)> {
        let ends = [self.cell_of(a)?, self.cell_of(b)?];
        let axis_of = |from: usize, to: usize| {
            (0..AXES).find(|axis| ground.around(from)[*axis][1] as usize == to)
        };
        let [a, b] = ends;
        axis_of(a, b).map(|it| (a, it)).or_else(|| axis_of(b, a).map(|it| (b, it)))
    }

    /// Of a cell's place or a box's sides: along the rows that the machine counts, and along its
    /// columns.
    pub fn rows_and_columns(&self, it: [usize; AXES]) -> [usize; 2] {
        if self.is_turned { [it[0], it[1]] } else { [it[1], it[0]] }
    }

    /// How many parts have a place.
    pub fn n_parts(&self) -> usize {
        self.cells.len()
    }

    /// The cells whose part `is_free`.
    pub fn room<'g>(
        &self,
        ground: &'g Ground<AXES>,
        is_free: impl Fn(PartId) -> bool,
    ) -> Room<'g, AXES> {
        Room::of(ground, |cell| self.parts[cell].is_some_and(&is_free))
    }

    /// How the parts on `cells` are joined within themselves: O(cells).
    pub fn joined(&self, cells: &[u32]) -> Joined {
        let mut is_in = vec![false; self.parts.len()];
        cells.iter().for_each(|&it| is_in[it as usize] = true);
        let (mut n_links, mut least) = (cells.len() * self.profile.n_links, usize::MAX);
        for &cell in cells {
            let mut sides = 0;
            for (axis, ends) in self.ground.around(cell as usize).iter().enumerate() {
                for (bit, &beside) in (2 * axis..).zip(ends) {
                    if beside != NO_CELL && is_in[beside as usize] {
                        sides |= 1 << bit;
                    }
                }
                n_links += self.profile.n_lanes[axis] * (sides >> (2 * axis + 1) & 1);
            }
            least = least.min(usize::from(self.profile.least[sides]));
        }
        Joined { n_chips: cells.len() * self.profile.n_chips, n_links, least }
    }

    /// The fewest parts of `cells` that one of them is joined with: O(cells).
    pub fn fewest_neighbours(&self, cells: &[u32]) -> usize {
        let mut is_in = vec![false; self.parts.len()];
        cells.iter().for_each(|&it| is_in[it as usize] = true);
        let beside =
            |it: &u32| self.ground.neighbours(*it as usize).filter(|it| is_in[*it]).count();
        cells.iter().map(beside).min().unwrap_or(0)
    }

    /// How well the best set of `n` parts of an undamaged machine of this size is joined: a box as
    /// square as there is room for, or one with a row begun beside it.  No set of `n` cells of a
    /// grid has more neighbours than `2n - a - b` pairs, where an `a` by `b` box holds it (Harary
    /// and Harborth 1976).
    pub fn best(&self, n: usize) -> Joined {
        let [width, height, _] = self.ground.grid().sides;
        let narrow = width.min(height).min(n.isqrt().max(1));
        // The half perimeter falls up to the square root.
        let wide = n.div_ceil(narrow);
        let wider = n.div_ceil(narrow + 1);
        let half = match narrow < width.min(height) {
            true => (narrow + wide).min(narrow + 1 + wider),
            false => narrow + wide,
        };
        let n_joints = (2 * n).saturating_sub(half);
        let n_lanes = self.profile.n_lanes[..2].iter().max().copied().unwrap_or(0);
        let is_flat = width.min(height) < 2;
        let is_sturdy = !is_flat && super::polyomino::can_be_sturdy(n);
        let least = |sides: &[usize]| {
            let least = sides.iter().map(|it| self.profile.least[*it]);
            usize::from(least.min().unwrap_or(0))
        };
        let least = match (n, is_sturdy) {
            (1, _) => least(&[0]),
            // The four corners of a box; else the ends of a row or column.
            (_, true) => least(&[0b1010, 0b1001, 0b0110, 0b0101]),
            (_, false) => least(&[0b0001, 0b0010]).max(least(&[0b0100, 0b1000])),
        };
        let n_links = n * self.profile.n_links + n_joints * n_lanes;
        Joined { n_chips: n * self.profile.n_chips, n_links, least }
    }
}
