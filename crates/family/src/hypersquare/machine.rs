//! A hyper-square machine in a fabric: which boards, chips and cables of it are there.

use std::collections::BTreeMap;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{NodeId, PartId, PortId};
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::Family;

use crate::build::{numbers_behind, pod_prefix};
use crate::graph::ChipGraph;
use crate::graph::drawn::Drawn;
use crate::grid::Grid;
use crate::grid::site::{Lane, Site};
use crate::hypersquare::bisection::bisection;
use crate::hypersquare::build::board_name;
use crate::hypersquare::group::{Chip, Group, Letter};
use crate::hypersquare::hardware::{self, Way};
use crate::hypersquare::ring::{self, RingError};

/// One machine as it stands in a fabric.
#[derive(Clone, Debug)]
pub struct Machine<'f> {
    /// The fabric.
    pub fabric: &'f Fabric,
    /// What the plant says of it.
    pub spec: HyperSquare,
    /// The board of each group, row by row, `None` where it is not there.
    boards: Vec<Option<PartId>>,
}

impl<'f> Machine<'f> {
    /// The machine that pod number `pod` of `plant` makes in its `fabric`; `None` where that pod
    /// is no hyper-square machine.
    pub fn of_pod(plant: &Plant, fabric: &'f Fabric, pod: usize) -> Option<Self> {
        let Family::HyperSquare(spec) = plant.pods.get(pod)?.family else { return None };
        let [n_rows, n_columns] = spec.groups.map(usize::from);
        let prefix = pod_prefix(pod);
        let cells = (0..n_rows * n_columns).map(|it| (it / n_columns, it % n_columns));
        let named = |(row, column)| format!("{prefix}{}", board_name(row, column));
        let boards = cells.map(|it| fabric.part_named(&named(it))).collect();
        Some(Self { fabric, spec, boards })
    }

    /// Its groups as cells; columns are the first axis, so that cells go row by row.
    pub fn grid(&self) -> Grid<2> {
        grid(self.spec.groups)
    }

    /// The board of `group`, if it is there.
    pub fn board(&self, group: Group) -> Option<PartId> {
        self.boards[cell(&self.grid(), group)?]
    }

    /// The chip in the fabric.
    pub fn node(&self, chip: Chip) -> Option<NodeId> {
        let part = self.board(chip.group)?;
        let local = self.fabric.template_of(part).seats()[chip.letter.seat()];
        Some(self.fabric.node_at(part, local as usize))
    }

    /// All chips that are there, row by row, in the order of their letters.
    pub fn chips(&self) -> impl Iterator<Item = Chip> + '_ {
        let grid = self.grid();
        let there = self.boards.iter().enumerate().filter(|it| it.1.is_some());
        there.flat_map(move |(cell, _)| {
            let [column, row] = grid.at(cell);
            Letter::ALL.map(|letter| Group::at(row as u16, column as u16).chip(letter))
        })
    }

    /// A ring through every chip of the groups of `set`, over boards and cables that are there.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn ring(&self, set: &[Group]) -> Result<Vec<Chip>, RingError> {
        let grid = self.grid();
        let is_gone = |it: &&Group| cell(&grid, **it).is_some_and(|it| self.boards[it].is_none());
        if let Some(&group) = set.iter().find(is_gone) {
            return Err(RingError::NoBoard { group });
        }
        ring::through_all(self.spec.groups, set, |a, b| self.letters_joined(a, b))
    }

    /// All groups whose boards are there, row by row.
    pub fn groups(&self) -> Vec<Group> {
        self.chips().map(|it| it.group).step_by(Letter::ALL.len()).collect()
    }

    /// The machine as it would be drawn, boards and cables that are not there left out.
    pub fn drawn(&self) -> Drawn {
        let chips: BTreeMap<NodeId, Chip> =
            self.chips().filter_map(|it| Some((self.node(it)?, it))).collect();
        let graph = ChipGraph::of_chips(self.fabric, chips.keys().copied());
        let at = chips.values().map(|Chip { group, letter }| {
            let (east, south) = (u16::from(letter.is_east()), u16::from(letter.is_south()));
            [2 * group.column + east, 2 * group.row + south]
        });
        let [r, c] = self.spec.groups.map(usize::from);
        let is_whole = graph.graph.links().len() == 12 * r * c - 4 * (r + c);
        let bisection = is_whole.then(|| bisection(self.spec.groups));
        Drawn { at: at.collect(), graph: graph.graph, bisection }
    }

    /// The letters, by their seats, whose chips on two boards side by side a cable joins; none
    /// where the boards are not there or not side by side.
    pub fn letters_joined(&self, a: Group, b: Group) -> u8 {
        let (Some((out, into)), Some(from), Some(to)) = (ways(a, b), self.board(a), self.board(b))
        else {
            return 0;
        };
        let port = |part, letter, way| -> PortId {
            self.fabric.port_at(part, hardware::port(letter, way))
        };
        let is_joined = |letter: &Letter| {
            self.fabric.peer_of(port(from, *letter, out)) == Some(port(to, *letter, into))
        };
        let joined = Letter::ALL.into_iter().filter(is_joined);
        joined.fold(0, |letters, it| letters | 1 << it.seat())
    }
}

/// How the boards of one machine stand: columns along the first axis, rows along the second, four
/// cables from each to the next.
pub fn site_of(fabric: &Fabric, parts: &[PartId]) -> Option<Site> {
    let lanes = |out: Way, into: Way| -> Vec<Lane> {
        Letter::ALL.map(|it| [out, into].map(|way| hardware::port(it, way))).to_vec()
    };
    let place = |name: &str| {
        let [row, column] = numbers_behind(name, "board")?;
        Some([column, row, 0])
    };
    let (east, south) = (lanes(Way::East, Way::West), lanes(Way::South, Way::North));
    Site::survey(fabric, parts, place, &[east, south, Vec::new()])
}

/// Where the chip at `seat` of a board stands, as a product of paths: its column and row of
/// boards, and its halves of the board.
pub(crate) fn chip_place(name: &str, seat: usize) -> Option<[u16; 4]> {
    let board = numbers_behind(name, "board")?;
    let [row, column] = board.map(|it| u16::try_from(it).ok());
    let letter = Letter::ALL.get(seat)?;
    Some([column?, row?, u16::from(letter.is_east()), u16::from(letter.is_south())])
}

/// The groups of a machine as cells, row by row.
pub(crate) fn grid(groups: [u16; 2]) -> Grid<2> {
    Grid::mesh([usize::from(groups[1]), usize::from(groups[0])])
}

/// The cell of `group`; `None` where it lies outside.
pub(crate) fn cell(grid: &Grid<2>, group: Group) -> Option<usize> {
    let at = [usize::from(group.column), usize::from(group.row)];
    let is_inside = at[0] < grid.sides[0] && at[1] < grid.sides[1];
    is_inside.then(|| grid.cell(at))
}

/// The ways from `a` to its neighbour `b` and back.
fn ways(a: Group, b: Group) -> Option<(Way, Way)> {
    let by = |it: u16, other: u16| i32::from(other) - i32::from(it);
    match (by(a.row, b.row), by(a.column, b.column)) {
        (0, 1) => Some((Way::East, Way::West)),
        (0, -1) => Some((Way::West, Way::East)),
        (1, 0) => Some((Way::South, Way::North)),
        (-1, 0) => Some((Way::North, Way::South)),
        _ => None,
    }
}
