//! From the sides of a grid to boards and their cables.

use selvedge_model::fabric::{Fabric, LinkKind};
use selvedge_model::id::PartId;
use selvedge_model::spec::At;
use selvedge_model::spec::plant::{GridChip, Power};
use selvedge_model::unit::CentiDb;

use crate::board::hardware::{self, SIDE, ici_port};
use crate::build::{Racks, add_generated, numbers_behind, pod_prefix};
use crate::grid::site::{Lane, Site};
use crate::layout::{CablePlan, Layout, PartDraft};

/// A grid to be built.
pub(crate) struct Grid {
    pub(crate) chip: GridChip,
    pub(crate) sides: [u16; 2],
    pub(crate) wraps: [bool; 2],
}

/// The place of the template of boards with these chips.
pub(crate) fn template(layout: &mut Layout, chip: GridChip) -> usize {
    layout.template(hardware::template_name(chip), || hardware::board(chip))
}

/// Adds the boards of `grid`, called `board{x}.{y}`, row by row, and the cables between them.
pub(crate) fn add(layout: &mut Layout, pod: usize, grid: &Grid, power: &Power) {
    let template = template(layout, grid.chip);
    let pool = layout.pool(&format!("pod{pod}"));
    let prefix = pod_prefix(pod);
    let boards = grid.sides.map(|it| usize::from(it) / SIDE);
    let mut racks = Racks::of(pod, power.boards_per_rack, power.racks_per_feed);
    let first = layout.parts.len();
    for y in 0..boards[1] {
        for x in 0..boards[0] {
            let domains = racks.domains(layout, x + boards[0] * y);
            let name = format!("{prefix}board{x}.{y}");
            add_generated(layout, PartDraft { name, template, pool: Some(pool), domains });
        }
    }
    let board_at = |at: [usize; 2]| first + at[0] + boards[0] * at[1];
    for y in 0..boards[1] {
        for x in 0..boards[0] {
            for dim in 0..2 {
                let own = [x, y];
                let is_last = own[dim] + 1 == boards[dim];
                if is_last && !grid.wraps[dim] {
                    continue;
                }
                let mut next = own;
                next[dim] = if is_last { 0 } else { own[dim] + 1 };
                for lane in 0..SIDE {
                    let (mut last, mut begin) = ([lane; 2], [lane; 2]);
                    (last[dim], begin[dim]) = (SIDE - 1, 0);
                    layout.cables.push(CablePlan {
                        a: layout.port(board_at(own), ici_port(last, dim, true)),
                        b: layout.port(board_at(next), ici_port(begin, dim, false)),
                        attrs: hardware::ici(grid.chip, LinkKind::Board),
                        // Copper loses no light.
                        loss: CentiDb::new(0),
                        missing: false,
                        at: At::NOWHERE,
                    });
                }
            }
        }
    }
}

/// How the boards of one pod stand: `board{x}.{y}`, two lanes along each axis.
pub(crate) fn site_of(fabric: &Fabric, parts: &[PartId]) -> Option<Site> {
    let lanes = |dim: usize| -> Vec<Lane> {
        let lane = |at: usize| {
            let (mut last, mut begin) = ([at; 2], [at; 2]);
            (last[dim], begin[dim]) = (SIDE - 1, 0);
            [ici_port(last, dim, true), ici_port(begin, dim, false)]
        };
        (0..SIDE).map(lane).collect()
    };
    let place = |name: &str| {
        let [x, y] = numbers_behind(name, "board")?;
        Some([x, y, 0])
    };
    Site::survey(fabric, parts, place, &[lanes(0), lanes(1), Vec::new()])
}

/// Where the chip at `seat` of a board stands in the mesh of all chips.
pub(crate) fn chip_place(name: &str, seat: usize) -> Option<[u16; 4]> {
    let board = numbers_behind(name, "board")?;
    let at = |dim: usize| {
        let own = [seat % SIDE, seat / SIDE][dim];
        u16::try_from(SIDE * board[dim] + own).ok()
    };
    Some([at(0)?, at(1)?, 0, 0])
}
