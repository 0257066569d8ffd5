//! How few links join one half of the chips to the other.
//!
//! The formula is proved minimal in the tests: for every size up to 3x5 by a search over all
//! halves, and for even sizes by the load of an all-to-all on the embedded torus.

use crate::hypersquare::group::Chip;

/// One way to halve a machine.
#[derive(Clone, Copy)]
struct Cut {
    /// Whether rows and columns change places.
    is_turned: bool,
    /// Whether the middle column's boards are cut in two; else the cut goes between boards and
    /// takes a step in the middle column.
    through_boards: bool,
    n_links: u32,
}

/// The fewest links between two halves of HS(R,C) with `groups` = [R, C].
pub fn bisection(groups: [u16; 2]) -> u32 {
    best(groups).n_links
}

/// Whether `chip` is in one half of a cut of [`bisection`] links.
pub fn is_inside(groups: [u16; 2], chip: Chip) -> bool {
    let cut = best(groups);
    let [mut rows, mut columns] = groups;
    let (mut row, mut column) = (chip.group.row, chip.group.column);
    let (mut is_south, mut is_east) = (chip.letter.is_south(), chip.letter.is_east());
    if cut.is_turned {
        (rows, columns) = (columns, rows);
        (row, column, is_south, is_east) = (column, row, is_east, is_south);
    }
    let middle = columns / 2;
    if columns.is_multiple_of(2) || column != middle {
        return column < middle;
    }
    if cut.through_boards {
        return !is_east;
    }
    // Between boards as far as it goes; the board that is left over is cut in two.
    let is_left_over = !rows.is_multiple_of(2) && row == rows / 2;
    if is_left_over { !is_south } else { row < rows / 2 }
}

fn best(groups: [u16; 2]) -> Cut {
    let [rows, columns] = groups.map(u32::from);
    let mut cuts = Vec::new();
    for (is_turned, rows, columns) in [(false, rows, columns), (true, columns, rows)] {
        let through = match columns {
            _ if columns.is_multiple_of(2) => 4 * rows,
            1 => 2 * rows,
            _ => 6 * rows,
        };
        cuts.push(Cut { is_turned, through_boards: true, n_links: through });
        if 1 < columns && !columns.is_multiple_of(2) {
            let n_links = 4 * rows + if rows.is_multiple_of(2) { 4 } else { 6 };
            cuts.push(Cut { is_turned, through_boards: false, n_links });
        }
    }
    cuts.into_iter().min_by_key(|it| it.n_links).expect("each orientation has a cut")
}
