//! How the parts of a pool stand on the cells of a grid, found by following their cables.
//!
//! Knows no family: which of a part's ports lead which way is given.

use selvedge_model::fabric::{Fabric, LinkKind, Template};
use selvedge_model::id::{PartId, PortId};

use crate::grid::Grid;
use crate::grid::room::{Ground, NO_CELL, ROW_MAX, Room, Strand};

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
    /// Links of each chip within the part.
    inner: Vec<u16>,
    /// For each lane along each axis the chips at which it leaves and arrives, by their seats.
    ends: [Vec<[Option<usize>; 2]>; AXES],
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
    /// The cables along each axis, and the number of the first port of the part on each cell.
    lanes: [Vec<Lane>; AXES],
    bases: Vec<usize>,
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
    /// The fewest links of a chip, or of all that hangs on one joint that some lanes are gone of.
    pub least: usize,
    /// Chips of one part.
    pub part_chips: usize,
    /// The fewest links that end at one part's chips, those between them among them.
    pub least_part: usize,
}

/// The cables along each axis.
struct Cables<'a> {
    fabric: &'a Fabric,
    lanes: &'a [Vec<Lane>; AXES],
}

impl Cables<'_> {
    fn is_there(&self, a: PartId, b: PartId, [out, into]: Lane) -> bool {
        self.fabric.peer_of(self.fabric.port_at(a, out)) == Some(self.fabric.port_at(b, into))
    }

    /// Whether one leads from `a` to `b`, the next along `axis`.
    fn any(&self, a: PartId, b: PartId, axis: usize) -> bool {
        self.lanes[axis].iter().any(|lane| self.is_there(a, b, *lane))
    }

    /// The cells of `grid`, joined where cables of parts beside each other are there.
    fn ground(&self, grid: Grid<AXES>, of_cell: &[Option<PartId>]) -> Ground<AXES> {
        let mut ground = Ground::whole(grid);
        for (cell, &part) in of_cell.iter().enumerate() {
            for (axis, lanes) in self.lanes.iter().enumerate() {
                let next = ground.around(cell)[axis][1];
                let beside = of_cell.get(next as usize).copied().flatten();
                // Where a board is not there, nothing lies on the cell anyway.
                let (Some(a), Some(b)) = (part, beside) else { continue };
                if lanes.is_empty() {
                    ground.sever(cell, axis);
                }
                for (lane, _) in lanes.iter().enumerate().filter(|it| !self.is_there(a, b, *it.1)) {
                    ground.wear(Strand { cell, axis, lane, n_lanes: lanes.len() });
                }
            }
        }
        ground
    }
}

/// The cell of each part, in the order of the parts.
fn cells_of(parts: &[Option<PartId>]) -> Vec<(PartId, u32)> {
    let numbered = parts.iter().zip(0u32..);
    let mut cells: Vec<(PartId, u32)> =
        numbered.filter_map(|(part, cell)| Some(((*part)?, cell))).collect();
    cells.sort_unstable();
    cells
}

/// Whether the cells that `is_in` fall apart without the joint from `cell` forward along `axis`.
fn is_bridge(ground: &Ground<AXES>, is_in: &[bool], cell: usize, axis: usize) -> bool {
    let beyond = ground.around(cell)[axis][1];
    let mut left = is_in.to_vec();
    left[cell] = false;
    let mut found = vec![cell];
    while let Some(at) = found.pop() {
        for (along, ends) in ground.around(at).iter().enumerate() {
            for (forward, &beside) in ends.iter().enumerate() {
                let is_it = (at, along, forward) == (cell, axis, 1);
                if is_it || beside == NO_CELL || !left[beside as usize] {
                    continue;
                }
                if beside == beyond {
                    return false;
                }
                left[beside as usize] = false;
                found.push(beside as usize);
            }
        }
    }
    true
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
        let ends =
            std::array::from_fn(|axis| lanes[axis].iter().map(|it| it.map(seat_of)).collect());
        Self::of_ends(n_links, inner, ends)
    }

    fn of_ends(n_links: usize, inner: Vec<u16>, ends: [Vec<[Option<usize>; 2]>; AXES]) -> Self {
        let n_lanes = std::array::from_fn(|axis| ends[axis].len());
        let mut profile =
            Self { n_chips: inner.len(), n_links, n_lanes, inner, ends, least: Vec::new() };
        let none = [[0; 2]; AXES];
        profile.least =
            (0..1 << (2 * AXES)).map(|sides| profile.least_without(sides, none)).collect();
        profile
    }

    /// The fewest links of a chip of a part with neighbours on these sides, where some lanes of the
    /// joints backward and forward along each axis are gone.
    fn least_without(&self, sides: usize, gone: [[u16; 2]; AXES]) -> u16 {
        let mut links = self.inner.clone();
        for (axis, lanes) in self.ends.iter().enumerate() {
            for (lane, &[out, into]) in lanes.iter().enumerate() {
                // Backward lanes arrive here, forward ones leave.
                for (forward, seat) in [(0, into), (1, out)] {
                    let is_there = sides >> (2 * axis + forward) & 1 == 1
                        && gone[axis][forward] >> lane & 1 == 0;
                    if let (true, Some(seat)) = (is_there, seat) {
                        links[seat] += 1;
                    }
                }
            }
        }
        links.into_iter().min().unwrap_or(0)
    }

    /// Parts that are single chips with one cable to each neighbour along the first `n_axes`.
    pub fn chip(n_axes: usize) -> Self {
        let lanes = |axis| if axis < n_axes { vec![[Some(0); 2]] } else { Vec::new() };
        Self::of_ends(0, vec![0], std::array::from_fn(lanes))
    }
}

impl Site {
    /// A site with a part on each cell, all joined.
    ///
    /// # Panics
    /// If there are more cells than parts, or fewer.
    pub fn whole(grid: Grid<AXES>, parts: &[PartId], profile: Profile) -> Self {
        assert_eq!(grid.n_cells(), parts.len(), "a part on each cell");
        let parts: Vec<Option<PartId>> = parts.iter().map(|it| Some(*it)).collect();
        let (bases, lanes) = (vec![0; grid.n_cells()], [const { Vec::new() }; AXES]);
        let cells = cells_of(&parts);
        let ground = Ground::whole(grid);
        Self { ground, parts, cells, lanes, bases, is_turned: false, profile }
    }

    /// The site of those of `parts` that have a place, by the cables that there are.
    ///
    /// Two parts beside each other are joined where a cable of the way from one to the other is
    /// there; an axis wraps where such cables lead from its last cell to its first.  `None`
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
        let cables = Cables { fabric, lanes: &lanes };
        for axis in 0..AXES {
            let last = |cell: &usize| grid.at(*cell)[axis] + 1 == sides[axis];
            grid.wraps[axis] = 1 < sides[axis]
                && (0..grid.n_cells()).filter(last).any(|cell| {
                    let mut at = grid.at(cell);
                    at[axis] = 0;
                    let ends = [of_cell[cell], of_cell[grid.cell(at)]];
                    matches!(ends, [Some(a), Some(b)] if cables.any(a, b, axis))
                });
        }
        let ground = cables.ground(grid, &of_cell);
        let base = |part: &Option<PartId>| part.map_or(0, |it| fabric.port_at(it, 0).idx());
        let (bases, cells) = (of_cell.iter().map(base).collect(), cells_of(&of_cell));
        Some(Self { ground, parts: of_cell, cells, lanes, bases, is_turned, profile })
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

    /// The cable that leaves forward from `part` at `port`; `None` where none does.
    pub fn lane_at(&self, part: PartId, port: PortId) -> Option<Strand> {
        let cell = self.cell_of(part)?;
        let local = port.idx().checked_sub(self.bases[cell])?;
        let found = (0..AXES).find_map(|axis| {
            Some((axis, self.lanes[axis].iter().position(|[out, _]| *out == local)?))
        });
        let (axis, lane) = found?;
        Some(Strand { cell, axis, lane, n_lanes: self.lanes[axis].len() })
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

    /// How the parts on `cells` are joined within themselves on `ground`: O(cells), and as much for
    /// each joint between them that some lanes are gone of.
    pub fn joined(&self, ground: &Ground<AXES>, cells: &[u32]) -> Joined {
        let mut is_in = vec![false; self.parts.len()];
        cells.iter().for_each(|&it| is_in[it as usize] = true);
        let (mut n_links, mut least) = (cells.len() * self.profile.n_links, usize::MAX);
        let mut least_part = usize::MAX;
        for &cell in cells {
            let (mut sides, mut gone) = (0, [[0; 2]; AXES]);
            for (axis, ends) in ground.around(cell as usize).iter().enumerate() {
                for (forward, &beside) in ends.iter().enumerate() {
                    if beside == NO_CELL || !is_in[beside as usize] {
                        continue;
                    }
                    sides |= 1 << (2 * axis + forward);
                    if ground.is_worn() {
                        let from = if forward == 1 { cell } else { beside };
                        gone[axis][forward] = ground.gone(from as usize, axis);
                    }
                }
                let n_gone = gone[axis][1].count_ones() as usize;
                n_links += self.profile.n_lanes[axis] * (sides >> (2 * axis + 1) & 1) - n_gone;
                // All that lies beyond may hang on what is left of one joint.
                let n_left = self.profile.n_lanes[axis] - n_gone;
                if n_gone != 0 && n_left < least && is_bridge(ground, &is_in, cell as usize, axis) {
                    least = n_left;
                }
            }
            least_part = least_part.min(self.profile.n_links + self.n_leading(sides, &gone));
            let of_chip = match gone == [[0; 2]; AXES] {
                true => self.profile.least[sides],
                false => self.profile.least_without(sides, gone),
            };
            least = least.min(usize::from(of_chip));
        }
        let part_chips = self.profile.n_chips;
        Joined { n_chips: cells.len() * part_chips, n_links, least, part_chips, least_part }
    }

    /// Links that lead out of a part to others by these sides, without those that are gone.
    fn n_leading(&self, sides: usize, gone: &[[u16; 2]; AXES]) -> usize {
        let of_side = |side: usize| {
            let n_gone = gone[side / 2][side % 2].count_ones() as usize;
            (self.profile.n_lanes[side / 2] - n_gone) * (sides >> side & 1)
        };
        (0..2 * AXES).map(of_side).sum()
    }

    /// The fewest parts of `cells` that one of them is joined with: O(cells).
    pub fn fewest_neighbours(&self, cells: &[u32]) -> usize {
        let mut is_in = vec![false; self.parts.len()];
        cells.iter().for_each(|&it| is_in[it as usize] = true);
        let n_beside =
            |it: &u32| self.ground.neighbours(*it as usize).filter(|it| is_in[*it]).count();
        cells.iter().map(n_beside).min().unwrap_or(0)
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
        let n_beside = match (n, is_sturdy) {
            (1, _) => 0,
            (_, true) => 2,
            (_, false) => 1,
        };
        let part_chips = self.profile.n_chips;
        let least_part = self.profile.n_links + n_beside * n_lanes;
        Joined { n_chips: n * part_chips, n_links, least, part_chips, least_part }
    }
}
