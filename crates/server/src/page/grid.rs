//! The boards of a grid, which are its pod map: each partition in its job's colour and outlined,
//! what is out of use or drained marked, and the most that could be placed now: the largest box of
//! free boards, outlined, and the largest connected set, told.

use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_control::capacity::{Capacity, Largest};

use crate::page::pod::Map;
use crate::page::sheet::{address, colour, map_legend};
use crate::shell::Shell;

/// Side of a board's square and the step to the next one.
const SIDE: usize = 24;
const STEP: usize = 27;
/// Room for the numbers of rows, and for those of columns.
const LEFT: usize = 30;
const ABOVE: usize = 20;
/// On a grid of more boards than this only those that are not well are links: a page of thousands
/// is slow.
const LINKS_MAX: usize = 1024;
/// Numbers of rows or columns, at most.
const NUMBERS_MAX: usize = 32;

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
    /// What it is and does, in words.
    label: String,
    /// Row and column.
    at: [usize; 2],
    /// The job whose partition it is in.
    job: Option<u32>,
    /// `ok`, `degraded` or `out`.
    health: String,
    drained: bool,
    n_cases: usize,
}

impl Grid {
    /// All grids of the plant, taken off the map of pods.
    pub(super) fn all(shell: &Shell, map: &mut Map) -> Vec<Self> {
        let core = shell.core();
        let free = Capacity::now(core.layout(), &core.state().parts);
        let pools = core.layout().sites.pairs();
        let grids = pools.filter_map(|(pool, site)| {
            let site = site.as_ref()?;
            let name = core.fabric().pools()[pool].clone();
            let largest = free.largest(pool)?;
            let plan = map.take(&name)?;
            let grid = site.ground().grid();
            let at = |cell: usize| site.rows_and_columns(grid.at(cell));
            let (mut boards, mut cuts) = (Vec::new(), Vec::new());
            for spot in &plan.spots {
                let view = &spot.view;
                let Some(part) = core.fabric().part_named(&view.name) else { continue };
                let Some(cell) = site.cell_of(part) else { continue };
                boards.push(Board {
                    name: view.name.clone(),
                    label: map.label(spot),
                    at: at(cell),
                    job: view.jobs.first().copied(),
                    health: view.health.to_string(),
                    drained: spot.has_drain(),
                    n_cases: view.cases.len(),
                });
                let far = core.state().parts[part].cut.iter();
                let far = far.filter_map(|it| site.cell_of(it.to));
                cuts.extend(far.map(|it| [at(cell), at(it)]));
            }
            cuts.sort_unstable();
            cuts.dedup();
            let sides = site.rows_and_columns(grid.sides);
            Some(Self { name, sides, boards, cuts, largest })
        });
        grids.collect()
    }

    /// The grid and what is free on it.
    pub(super) fn draw(&self) -> Markup {
        let [rows, columns] = self.sides;
        let (width, height) = (LEFT + STEP * columns + 2, ABOVE + STEP * rows + 2);
        let n = self.boards.len();
        html! {
            figure {
                figcaption { (self.name) ": " (rows) " rows and " (columns) " columns of boards" }
                svg.pod.grid viewBox=(format!("0 0 {width} {height}")) role="group"
                    data-keys=(columns)
                    aria-label=(format!("boards of {} by partition", self.name)) {
                    (self.numbers())
                    g transform=(format!("translate({LEFT} {ABOVE})")) {
                        @for board in &self.boards {
                            (board.draw(n <= LINKS_MAX || !board.is_well()))
                        }
                        @for (job, line) in self.outlines() {
                            path.bounds d=(line) data-bounds=(job) {}
                        }
                        @for [from, to] in &self.cuts {
                            @if let Some(line) = cut(*from, *to) { path.cut d=(line) {} }
                        }
                        @for [y, x, height, width] in self.room() {
                            rect.room x=(STEP * x) y=(STEP * y) width=(STEP * width - 1)
                                height=(STEP * height - 1) rx="4" data-room=(self.name) {}
                        }
                    }
                }
                p.sum { (self.said()) }
                (map_legend("held, one colour and outline for each partition",
                    &[("linkill", "cable out of use"), ("largest", "largest free box")]))
            }
        }
    }

    /// The numbers of rows and columns, each on its row or column.
    fn numbers(&self) -> Markup {
        let [rows, columns] = self.sides;
        let of = |n: usize| (0..n).step_by(n.div_ceil(NUMBERS_MAX).max(1));
        html! {
            @for column in of(columns) {
                text.axis.m x=(LEFT + STEP * column + STEP / 2) y=(ABOVE - 6) { (column) }
            }
            @for row in of(rows) {
                text.axis.e x=(LEFT - 6) y=(ABOVE + STEP * row + STEP / 2 + 4) { (row) }
            }
        }
    }

    /// The outline of each partition, by its job: every side of a board beyond which another job's
    /// boards lie, or free ones, or none.
    fn outlines(&self) -> Vec<(u32, String)> {
        let [rows, columns] = self.sides;
        let mut jobs = vec![None; rows * columns];
        for board in &self.boards {
            jobs[board.at[0] * columns + board.at[1]] = board.job;
        }
        let mut held: Vec<(u32, [usize; 2])> =
            self.boards.iter().filter_map(|it| Some((it.job?, it.at))).collect();
        held.sort_unstable();
        let mut outlines: Vec<(u32, String)> = Vec::new();
        for (job, [row, column]) in held {
            if outlines.last().is_none_or(|it| it.0 != job) {
                outlines.push((job, String::new()));
            }
            let is_own = |row: Option<usize>, column: Option<usize>| {
                let (Some(row), Some(column)) = (row, column) else { return false };
                row < rows && column < columns && jobs[row * columns + column] == Some(job)
            };
            let (x, y) = (STEP * column, STEP * row);
            let sides = [
                (is_own(row.checked_sub(1), Some(column)), [x, y], "h"),
                (is_own(Some(row + 1), Some(column)), [x, y + STEP], "h"),
                (is_own(Some(row), column.checked_sub(1)), [x, y], "v"),
                (is_own(Some(row), Some(column + 1)), [x + STEP, y], "v"),
            ];
            let line = &mut outlines.last_mut().expect("it was pushed").1;
            for (_, [x, y], way) in sides.into_iter().filter(|it| !it.0) {
                write!(line, "M{x} {y}{way}{STEP}").expect("a string takes it");
            }
        }
        outlines
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
    fn room(&self) -> Vec<[usize; 4]> {
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
    fn is_well(&self) -> bool {
        self.health == "ok" && !self.drained && self.n_cases == 0
    }

    fn draw(&self, is_link: bool) -> Markup {
        let [y, x] = self.at.map(|it| STEP * it + 1);
        let class = format!("cube {}", self.health);
        html! {
            @if is_link {
                a href=(address("/cubes/", &self.name)) data-key=(self.name) data-cube=(self.name)
                    class=(class) aria-label=(self.label) data-drained[self.drained]
                    transform=(format!("translate({x} {y})")) {
                    title { (self.label) }
                    (self.square())
                }
            } @else {
                g class=(class) transform=(format!("translate({x} {y})")) { (self.square()) }
            }
        }
    }

    /// A square in the colour of its job, hatched where it is drained, crossed where it is out of
    /// use, with a dot for open cases.
    fn square(&self) -> Markup {
        let (near, far) = (7, SIDE - 7);
        html! {
            rect.back.board width=(SIDE) height=(SIDE) rx="3" {}
            @if let Some(job) = self.job {
                rect.fill width=(SIDE) height=(SIDE) rx="3" fill=(colour(job)) data-job=(job) {}
            }
            @if self.drained {
                rect.hatch width=(SIDE) height=(SIDE) rx="3" fill="url(#hatch)" {}
            }
            rect.edge x="1.5" y="1.5" width=(SIDE - 3) height=(SIDE - 3) rx="2" {}
            @if self.health == "out" {
                path.dead d=(format!("M{near} {near}L{far} {far}M{far} {near}L{near} {far}")) {}
            }
            @if self.n_cases != 0 { circle.cased cx=(SIDE - 5) cy="5" r="4" {} }
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
        let board = |at| Board {
            name: format!("board{at}.0"),
            label: String::new(),
            at: [at, 0],
            job: None,
            health: "ok".to_owned(),
            drained: false,
            n_cases: 0,
        };
        let boards = (0..4).map(board).collect();
        Grid { name: "pod0".to_owned(), sides: [4, 8], boards, cuts: Vec::new(), largest }
    }

    #[test]
    fn a_partition_is_outlined_where_others_begin() {
        let none = Largest { n_free: 0, rows: 0, columns: 0, row: 0, column: 0, connected: 0 };
        let mut grid = grid(none);
        assert_eq!(grid.outlines(), []);
        grid.boards[1].job = Some(7);
        grid.boards[2].job = Some(7);
        grid.boards[3].job = Some(4);
        let outlines = grid.outlines();
        assert_eq!(outlines.iter().map(|it| it.0).collect::<Vec<_>>(), [4, 7]);
        assert_eq!(outlines[0].1, "M0 81h27M0 108h27M0 81v27M27 81v27");
        // Two boards: six sides, none between them.
        assert_eq!(outlines[1].1.matches('M').count(), 6);
        assert!(!outlines[1].1.contains("M0 54h27"), "{}", outlines[1].1);
    }

    #[test]
    fn a_box_over_the_edge_is_outlined_on_both_sides() {
        let none = Largest { n_free: 0, rows: 0, columns: 0, row: 0, column: 0, connected: 0 };
        assert_eq!(grid(none).room(), [[0; 4]; 0]);
        assert_eq!(grid(none).said(), "none of 4 boards is free and sound");
        let inside = Largest { rows: 2, columns: 3, row: 1, column: 5, ..none };
        assert_eq!(grid(inside).room(), [[1, 5, 2, 3]]);
        let over = Largest { rows: 2, columns: 3, row: 3, column: 7, ..none };
        let pieces = [[3, 7, 1, 1], [3, 0, 1, 2], [0, 7, 1, 1], [0, 0, 1, 2]];
        assert_eq!(grid(over).room(), pieces);
    }

    #[test]
    fn a_dead_cable_is_a_stroke_between_its_boards() {
        assert_eq!(cut([1, 1], [1, 2]).as_deref(), Some("M54 28v24"));
        assert_eq!(cut([1, 1], [2, 1]).as_deref(), Some("M28 54h24"));
        // Named from the other end, and over the edge of a torus.
        assert_eq!((cut([1, 2], [1, 1]), cut([0, 0], [0, 7])), (None, None));
    }
}
