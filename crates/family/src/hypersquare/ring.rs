//! Rings: of each row and column, the torus that they are together, and one through every chip of
//! any connected set of groups.

use crate::grid::Grid;
use crate::hypersquare::damaged::{self, Crossing, Hopeless};
use crate::hypersquare::group::{Chip, Group, Letter};
use crate::hypersquare::machine::{cell, grid};
use crate::hypersquare::rounds::{Rounds, SIDES};
use crate::hypersquare::tree::{Crowded, Joint, sided_forest, sided_tree};

/// The ring of one half of the row of groups `row` from column `first` to `last`, both included:
/// eastward over one chip of each group and back over the other (seed 004, claims 4 and 5).
///
/// # Panics
/// If there is no group between `first` and `last`.
pub fn row_ring(row: u16, [first, last]: [u16; 2], is_south: bool) -> Vec<Chip> {
    let chip = |column, is_east| Group::at(row, column).chip(Letter::of_halves(is_south, is_east));
    closed(first, last, chip)
}

/// The ring of one half of the column of groups `column` from row `first` to `last`.
///
/// # Panics
/// If there is no group between `first` and `last`.
pub fn column_ring(column: u16, [first, last]: [u16; 2], is_east: bool) -> Vec<Chip> {
    let chip = |row, is_south| Group::at(row, column).chip(Letter::of_halves(is_south, is_east));
    closed(first, last, chip)
}

/// Claims 4 and 5: A1, then B1 B2 … Bn, then An … A2.
fn closed(first: u16, last: u16, chip: impl Fn(u16, bool) -> Chip) -> Vec<Chip> {
    assert!(first <= last, "{first} to {last}");
    let there = (first..=last).map(|it| chip(it, true));
    let back = (first + 1..=last).rev().map(|it| chip(it, false));
    std::iter::once(chip(first, false)).chain(there).chain(back).collect()
}

/// All row rings of a machine: two of each row of groups, 2C chips each.
pub fn row_rings(groups: [u16; 2]) -> impl Iterator<Item = Vec<Chip>> {
    let [n_rows, n_columns] = groups;
    let halves = move |row| [false, true].map(|half| row_ring(row, [0, n_columns - 1], half));
    (0..n_rows).flat_map(halves)
}

/// All column rings of a machine: two of each column of groups, 2R chips each.
pub fn column_rings(groups: [u16; 2]) -> impl Iterator<Item = Vec<Chip>> {
    let [n_rows, n_columns] = groups;
    let halves = move |column| [false, true].map(|half| column_ring(column, [0, n_rows - 1], half));
    (0..n_columns).flat_map(halves)
}

/// The sides of the embedded torus: chips along a row ring and along a column ring.
pub const fn torus_sides(groups: [u16; 2]) -> [usize; 2] {
    [2 * groups[1] as usize, 2 * groups[0] as usize]
}

/// The chip at `[x, y]` of the embedded torus: it is folded, so the way back is on the other half.
///
/// # Panics
/// If `[x, y]` is outside of [`torus_sides`].
pub fn torus_chip(groups: [u16; 2], [x, y]: [usize; 2]) -> Chip {
    let fold = |at: usize, n_groups: u16| {
        let n = usize::from(n_groups);
        assert!(at < 2 * n, "{at} of {}", 2 * n);
        let (place, is_back) = if at < n { (at, false) } else { (2 * n - 1 - at, true) };
        (u16::try_from(place).expect("less than n_groups"), is_back)
    };
    let ((column, is_east), (row, is_south)) = (fold(x, groups[1]), fold(y, groups[0]));
    Group::at(row, column).chip(Letter::of_halves(is_south, is_east))
}

/// Why a set of groups has no ring.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RingError {
    /// No group at all.
    #[error("a ring goes through at least one group; name some, such as 0,0")]
    NoGroup,
    /// A group beyond the machine.
    #[error(
        "there is no group {group}; rows are 0 to {}, columns 0 to {}",
        .groups[0] - 1,
        .groups[1] - 1
    )]
    Outside {
        /// The group.
        group: Group,
        /// Rows and columns of the machine.
        groups: [u16; 2],
    },
    /// A group whose board is not there.
    #[error("group {group} has no board; leave it out")]
    NoBoard {
        /// The group.
        group: Group,
    },
    /// A group named twice.
    #[error("group {group} is named twice; name each once")]
    Twice {
        /// The group.
        group: Group,
    },
    /// Groups that do not hang together.
    #[error("the groups are {} pieces that no cables join: {}; add the groups between them, or \
             take one piece", .pieces.len(), shown(.pieces))]
    Apart {
        /// Each piece, the largest first.
        pieces: Vec<Vec<Group>>,
    },
    /// A chip that every way between two groups passes.
    #[error(
        "there is none: group {beyond} hangs on chip {chip} alone, and a ring passes a chip once; \
         mend another cable to what lies beyond it, or leave that out"
    )]
    OneChip {
        /// The chip.
        chip: Chip,
        /// A group that can be reached by it alone.
        beyond: Group,
    },
    /// A group whose cables lead from two chips that are no neighbours.
    #[error(
        "there is none: the cables left of group {group} are of its chips {letters} alone; a ring \
         comes and goes by {letters} as often as by the other two; mend a cable of those, or leave \
         it out"
    )]
    OneColour {
        /// The group.
        group: Group,
        /// The chips.
        letters: &'static str,
    },
    /// Groups joined by cables of two chips that are no neighbours, and by no way round.
    #[error(
        "there is none: the cables left between groups {} and {} are of chips {letters} alone, and \
         nothing else joins what lies beyond; a ring comes and goes by {letters} as often as by the \
         other two; mend a cable of those", .groups[0], .groups[1]
    )]
    OneSeam {
        /// The groups.
        groups: [Group; 2],
        /// The chips.
        letters: &'static str,
    },
    /// A search through all ways found none.
    #[error(
        "there is none: a search through every way was over after {n_steps} steps; mend a cable, \
         or leave a group out, such as {group}"
    )]
    RuledOut {
        /// Steps of the search.
        n_steps: u64,
        /// A group that is hard to join.
        group: Group,
    },
    /// Neither a ring nor a proof.
    #[error(
        "none was found within {n_steps} steps, which is no proof that there is none; mend a \
         cable, or leave a group out, such as {group}"
    )]
    NotFound {
        /// Steps of the search.
        n_steps: u64,
        /// A group that is hard to join.
        group: Group,
    },
}

impl RingError {
    /// Whether it is an answer about groups that there are and that hang together: whether it is
    /// proved that they have no ring, or not known.
    pub fn is_proof(&self) -> Option<bool> {
        match self {
            RingError::NoGroup
            | RingError::Outside { .. }
            | RingError::NoBoard { .. }
            | RingError::Twice { .. }
            | RingError::Apart { .. } => None,
            RingError::OneChip { .. }
            | RingError::OneColour { .. }
            | RingError::OneSeam { .. }
            | RingError::RuledOut { .. } => Some(true),
            RingError::NotFound { .. } => Some(false),
        }
    }
}

/// Groups of a piece that a message names.
const SHOWN_MAX: usize = 8;

fn shown(pieces: &[Vec<Group>]) -> String {
    let piece = |it: &Vec<Group>| {
        let mut text: Vec<String> = it.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
        if SHOWN_MAX < it.len() {
            text.push(format!("and {} more", it.len() - SHOWN_MAX));
        }
        format!("({})", text.join(" "))
    };
    let mut text: Vec<String> = pieces.iter().take(SHOWN_MAX).map(piece).collect();
    if SHOWN_MAX < pieces.len() {
        text.push(format!("and {} more pieces", pieces.len() - SHOWN_MAX));
    }
    text.join(", ")
}

/// Letters as bits, by their seats.
pub const ALL_LETTERS: u8 = 0b1111;

/// A ring through every chip of `set`, from chip A of its first group on.
///
/// Each group is a ring of four.  A spanning tree of the set has degree at most 4, so its edges
/// have a proper colouring with 4 colours, and a colour is a side of the group: each edge opens
/// that side of both its groups and joins them by the two cables there.  No side is opened twice,
/// so one ring is left.  (Batagelj and Pisanski 1982: the product of a tree of degree at most n
/// with a ring of n is Hamiltonian.)  Where cables are out, an edge has the sides only whose two
/// cables are left, and the tree and its colours are chosen so that they fit (`tree`); where none
/// does, rings of any kind are looked for, or a proof that there is none (`damaged`).
/// Linear in the cells of the machine but for that search, whose steps are counted.
///
/// # Errors
/// [`RingError`]; `live` says between which letters of two neighbours there is a cable.
pub fn through_all(
    groups: [u16; 2],
    set: &[Group],
    live: impl Fn(Group, Group) -> u8,
) -> Result<Vec<Chip>, RingError> {
    let places = Places::of(groups, set)?;
    let (crossings, pieces) = survey(&places, set, live);
    if 1 < pieces.len() {
        return Err(RingError::Apart { pieces });
    }
    let chip = |it: u32| set[it as usize / 4].chip(Letter::ALL[it as usize % 4]);
    let joint = |it: &Crossing| Joint { ends: it.ends, open: open(it.letters) };
    let joints: Vec<Joint> = crossings.iter().map(joint).collect();
    let ring = match sided_tree(set.len(), &joints) {
        Ok(tree) => Rounds::of(set.len(), &tree).ring(),
        Err(Crowded { idx }) => {
            let forest = Rounds::of(set.len(), &sided_forest(set.len(), &joints));
            let group = set[idx];
            damaged::ring(&crossings, forest).map_err(|it| match it {
                Hopeless::OneChip { chip: it, beyond } => {
                    RingError::OneChip { chip: chip(it), beyond: set[beyond] }
                }
                Hopeless::OneColour { idx, letters } => {
                    RingError::OneColour { group: set[idx], letters }
                }
                Hopeless::OneSeam { ends, letters } => {
                    RingError::OneSeam { groups: ends.map(|it| set[it]), letters }
                }
                Hopeless::RuledOut { n_steps } => RingError::RuledOut { n_steps, group },
                Hopeless::TooLong { n_steps } => RingError::NotFound { n_steps, group },
            })?
        }
    };
    assert_eq!(ring.len(), 4 * set.len(), "one ring is left");
    Ok(ring.into_iter().map(chip).collect())
}

/// The cables of a set, and the pieces into which it falls by them, the largest first.
fn survey(
    places: &Places,
    set: &[Group],
    live: impl Fn(Group, Group) -> u8,
) -> (Vec<Crossing>, Vec<Vec<Group>>) {
    let (mut crossings, mut pieces) = (Vec::with_capacity(2 * set.len()), Vec::new());
    let mut found = vec![false; set.len()];
    for start in 0..set.len() {
        if std::mem::replace(&mut found[start], true) {
            continue;
        }
        let mut piece = vec![start];
        let mut next = 0;
        while let Some(&at) = piece.get(next) {
            next += 1;
            for beside in places.around(set[at]) {
                let letters = live(set[at], set[beside]);
                if letters == 0 {
                    continue;
                }
                if at < beside {
                    crossings.push(Crossing { ends: [at, beside], letters });
                }
                if !std::mem::replace(&mut found[beside], true) {
                    piece.push(beside);
                }
            }
        }
        pieces.push(piece.into_iter().map(|it| set[it]).collect::<Vec<Group>>());
    }
    pieces.sort_by_key(|it| std::cmp::Reverse(it.len()));
    (crossings, pieces)
}

/// The sides, by colour, both of whose letters are among `letters`.
fn open(letters: u8) -> u8 {
    let has = |it: &Letter| letters >> it.seat() & 1 == 1;
    let sides = SIDES.iter().enumerate().filter(|(_, side)| side.iter().all(has));
    sides.fold(0, |open, (colour, _)| open | 1 << colour)
}

/// Where in a set each cell of the machine is.
struct Places {
    grid: Grid<2>,
    at: Vec<u32>,
}

const NOT_IN: u32 = u32::MAX;

impl Places {
    fn of(groups: [u16; 2], set: &[Group]) -> Result<Self, RingError> {
        if set.is_empty() {
            return Err(RingError::NoGroup);
        }
        let grid = grid(groups);
        let mut at = vec![NOT_IN; grid.n_cells()];
        for (idx, &group) in (0..).zip(set) {
            let cell = cell(&grid, group).ok_or(RingError::Outside { group, groups })?;
            if at[cell] != NOT_IN {
                return Err(RingError::Twice { group });
            }
            at[cell] = idx;
        }
        Ok(Self { grid, at })
    }

    /// The neighbours of `group` that are in the set, by their place in it.
    fn around(&self, group: Group) -> impl Iterator<Item = usize> + '_ {
        let Group { row, column } = group;
        let around = [
            (Some(row), column.checked_add(1)),
            (row.checked_add(1), Some(column)),
            (Some(row), column.checked_sub(1)),
            (row.checked_sub(1), Some(column)),
        ];
        around.into_iter().filter_map(|(row, column)| {
            let cell = cell(&self.grid, Group::at(row?, column?))?;
            let idx = self.at[cell];
            (idx != NOT_IN).then_some(idx as usize)
        })
    }
}
