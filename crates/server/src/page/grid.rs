//! The boards of a grid by the partition that they are in, and the most that could be placed now:
//! the largest box of free boards, outlined, and the largest connected set, told.

use std::collections::BTreeMap;

use maud::{Markup, html};

use selvedge_control::capacity::{Capacity, Largest};
use selvedge_model::id::PartId;

use crate::page::sheet::colour;
use crate::shell::Shell;

/// Side of a board's square and the step to the next one.
const SIDE: usize = 12;
const STEP: usize = 14;
/// On a grid of more boards than this the squares are no links: a page of thousands is slow.
const LINKS_MAX: usize = 1024;

/// One grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// The pod.
    name: String,
    /// Rows and columns.
    sides: [usize; 2],
    boards: Vec<Board>,
    /// Ends of cables out of use, by the boards that they lead from: half the way to the other.
    cuts: Vec<[[usize; 2]; 2]>,
    largest: Largest,
}

/// One board.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Board {
    name: String,
    /// Row and column.
    at: [usize; 2],
    /// The job whose partition it is in.
    job: Option<u32>,
    /// Whether something of it is out of use.
    out: bool,
}

impl Grid {
    /// All grids of the plant.
    pub(super) fn all(shell: &Shell) -> Vec<Self> {
        let core = shell.core();
        let free = Capacity::now(core.layout(), &core.state().parts);
        let mut holders: BTreeMap<PartId, u32> = BTreeMap::new();
        for &job in &core.state().active {
            let places = core.state().jobs[job].place.iter();
            let holds = places.flat_map(|it| &it.holds);
            holders.extend(holds.map(|it| (it.part, job.number())));
        }
        let pools = core.layout().sites.pairs();
        let grids = pools.filter_map(|(pool, site)| {
            let site = site.as_ref()?;
            let grid = site.ground().grid();
            let at = |cell: usize| site.rows_and_columns(grid.at(cell));
            let (mut boards, mut cuts) = (Vec::new(), Vec::new());
            for cell in 0..grid.n_cells() {
                let Some(part) = site.part(cell) else { continue };
                let state = &core.state().parts[part];
                boards.push(Board {
                    name: core.fabric().part(part).name.to_string(),
                    at: at(cell),
                    job: holders.get(&part).copied(),
                    out: !state.is_whole_inside(),
                });
                let far = state.cut.iter().filter_map(|it| site.cell_of(it.to));
                cuts.extend(far.map(|it| [at(cell), at(it)]));
            }
            cuts.sort_unstable();
            cuts.dedup();
            let name = core.fabric().pools()[pool].clone();
            let sides = site.rows_and_columns(grid.sides);
            Some(Self { name, sides, boards, cuts, largest: free.largest(pool)? })
        });
        grids.collect()
    }

    /// The grid and what is free on it.
    pub(super) fn draw(&self) -> Markup {
        let [height, width] = self.sides.map(|it| STEP * it + 2);
        html! {
            h3 { (self.name) }
            svg.grid viewBox=(format!("0 0 {width} {height}")) role="img"
                aria-label=(format!("boards of {} by partition", self.name)) {
                @for board in &self.boards {
                    @if self.boards.len() <= LINKS_MAX {
                        a href=(format!("/cubes/{}", board.name)) aria-label=(board.title()) {
                            title { (board.title()) }
                            (board.square())
                        }
                    } @else { (board.square()) }
                }
                @for [from, to] in &self.cuts {
                    @if let Some(line) = cut(*from, *to) { path.cut d=(line) {} }
                }
                @for [y, x, height, width] in self.outline() {
                    rect.room x=(STEP * x) y=(STEP * y) width=(STEP * width) height=(STEP * height)
                        rx="3" data-room=(self.name) {}
                }
            }
            p.sum { (self.said()) }
        }
    }

    /// What is free, in words.
    fn said(&self) -> String {
        let Largest { n_free, rows, columns, row, column, connected } = self.largest;
        let all = self.boards.len();
        if n_free == 0 {
            return format!("none of {all} boards is free and sound");
        }
        format!(
            "{n_free} of {all} boards free and sound; the largest box {rows}x{columns} from row \
             {row}, column {column}; the largest connected set {connected}"
        )
    }

    /// The largest box as rectangles of row, column, rows and columns: a box over the edge of a
    /// torus is several.
    fn outline(&self) -> Vec<[usize; 4]> {
        let Largest { rows, columns, row, column, .. } = self.largest;
        let pieces = |from: u32, long: u32, side: usize| {
            let (from, long) = (from as usize, long as usize);
            let first = long.min(side.saturating_sub(from));
            [(from, first), (0, long - first)].into_iter().filter(|it| it.1 != 0)
        };
        let down = pieces(row, rows, self.sides[0]);
        down.flat_map(|(y, height)| {
            pieces(column, columns, self.sides[1]).map(move |(x, width)| [y, x, height, width])
        })
        .collect()
    }
}

impl Board {
    fn title(&self) -> String {
        let job = self.job.map_or("free".to_owned(), |it| format!("job {it}"));
        let out = if self.out { ", out of use" } else { "" };
        format!("{}: {job}{out}", self.name)
    }

    fn square(&self) -> Markup {
        let [y, x] = self.at.map(|it| STEP * it + 1);
        let class = if self.out { "board out" } else { "board" };
        html! {
            rect class=(class) x=(x) y=(y) width=(SIDE) height=(SIDE) rx="2"
                fill=[self.job.map(colour)] data-job=[self.job] {}
            @if self.out {
                @let (right, low) = (x + SIDE - 3, y + SIDE - 3);
                @let (left, high) = (x + 3, y + 3);
                path.dead d=(format!("M{left} {high}L{right} {low}M{right} {high}L{left} {low}")) {}
            }
        }
    }
}

/// A stroke between two boards beside each other; none over the edge of a torus, where both ends
/// are drawn as boards of their own.
fn cut(from: [usize; 2], to: [usize; 2]) -> Option<String> {
    let [y, x] = from.map(|it| STEP * it);
    match (to[0].checked_sub(from[0]), to[1].checked_sub(from[1])) {
        (Some(0), Some(1)) => Some(format!("M{} {}v{SIDE}", x + STEP, y + 1)),
        (Some(1), Some(0)) => Some(format!("M{} {}h{SIDE}", x + 1, y + STEP)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(largest: Largest) -> Grid {
        let board =
            |at| Board { name: format!("board{}.{}", at, 0), at: [at, 0], job: None, out: false };
        let boards = (0..4).map(board).collect();
        Grid { name: "pod0".to_owned(), sides: [4, 8], boards, cuts: Vec::new(), largest }
    }

    #[test]
    fn a_box_over_the_edge_is_outlined_on_both_sides() {
        let none = Largest { n_free: 0, rows: 0, columns: 0, row: 0, column: 0, connected: 0 };
        assert_eq!(grid(none).outline(), [[0; 4]; 0]);
        assert_eq!(grid(none).said(), "none of 4 boards is free and sound");
        let inside = Largest { rows: 2, columns: 3, row: 1, column: 5, ..none };
        assert_eq!(grid(inside).outline(), [[1, 5, 2, 3]]);
        let over = Largest { rows: 2, columns: 3, row: 3, column: 7, ..none };
        let pieces = [[3, 7, 1, 1], [3, 0, 1, 2], [0, 7, 1, 1], [0, 0, 1, 2]];
        assert_eq!(grid(over).outline(), pieces);
    }

    #[test]
    fn a_dead_cable_is_a_stroke_between_its_boards() {
        assert_eq!(cut([1, 1], [1, 2]).as_deref(), Some("M28 15v12"));
        assert_eq!(cut([1, 1], [2, 1]).as_deref(), Some("M15 28h12"));
        // Named from the other end, and over the edge of a torus.
        assert_eq!((cut([1, 2], [1, 1]), cut([0, 0], [0, 7])), (None, None));
    }
}
