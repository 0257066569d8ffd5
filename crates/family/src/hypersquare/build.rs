//! From rows and columns of groups to boards and their cables.

use selvedge_model::spec::At;
use selvedge_model::spec::hypersquare::{HyperSquare, Wire};
use selvedge_model::spec::plant::Power;
use selvedge_model::unit::CentiDb;

use crate::build::{Racks, add_generated, pod_prefix};
use crate::hypersquare::group::Letter;
use crate::hypersquare::hardware::{self, Way};
use crate::layout::{CablePlan, Layout, PartDraft};

/// The place of the template of boards of `machine`.
pub(crate) fn template(layout: &mut Layout, machine: &HyperSquare) -> usize {
    layout.template(&hardware::template_name(machine), || hardware::board(machine))
}

/// Adds the boards of `machine`, called `board{row}.{column}`, row by row in one pool, and the
/// cables between them: four to the east and four to the south of each.
pub(crate) fn add(
    layout: &mut Layout,
    pod: usize,
    machine: &HyperSquare,
    loss: CentiDb,
    power: &Power,
) {
    let template = template(layout, machine);
    let pool = layout.pool(&format!("pod{pod}"));
    let prefix = pod_prefix(pod);
    let [n_rows, n_columns] = machine.groups.map(usize::from);
    let mut racks = Racks::of(pod, power.boards_per_rack, power.racks_per_feed);
    let first = layout.parts.len();
    for idx in 0..machine.n_groups() {
        let domains = racks.domains(layout, idx);
        let name = format!("{prefix}{}", board_name(idx / n_columns, idx % n_columns));
        add_generated(layout, PartDraft { name, template, pool: Some(pool), domains });
    }
    // Copper loses no light.
    let loss = if machine.wire == Wire::Copper { CentiDb::new(0) } else { loss };
    for idx in 0..machine.n_groups() {
        let (row, column) = (idx / n_columns, idx % n_columns);
        let east = (column + 1 < n_columns).then_some((idx + 1, Way::East, Way::West));
        let south = (row + 1 < n_rows).then_some((idx + n_columns, Way::South, Way::North));
        for (next, out, into) in [east, south].into_iter().flatten() {
            for letter in Letter::ALL {
                layout.cables.push(CablePlan {
                    a: layout.port(first + idx, hardware::port(letter, out)),
                    b: layout.port(first + next, hardware::port(letter, into)),
                    attrs: hardware::cable(machine),
                    loss,
                    missing: false,
                    at: At::NOWHERE,
                });
            }
        }
    }
}

/// What the board at `row` and `column` is called, but for what stands before it.
pub(crate) fn board_name(row: usize, column: usize) -> String {
    format!("board{row}.{column}")
}
