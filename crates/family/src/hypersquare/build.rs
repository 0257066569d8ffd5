//! From rows and columns of groups to boards and their cables.

use selvedge_model::spec::At;
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::{HyperSquare, Wire};
use selvedge_model::spec::plant::{CableSpec, Family, Power};
use selvedge_model::unit::{CentiDb, Length};

use crate::build::error::LengthBy;
use crate::build::{BuildError, Racks, add_generated, numbers_behind, pod_prefix};
use crate::hypersquare::group::Letter;
use crate::hypersquare::hardware::{self, Way};
use crate::layout::{CablePlan, Layout, PartDraft, PortPlan};

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

/// Holds a cable that is written down between two boards of one machine against what its kind
/// carries: by where its ends stand, for wires run along rows and columns, and by how long it says
/// that a bit takes.
///
/// # Errors
/// [`BuildError::CableTooLong`].
pub(crate) fn check_reach(
    layout: &Layout,
    plant: &Plant,
    cable: &CableSpec,
    ends: [PortPlan; 2],
) -> Result<(), BuildError> {
    let Some(wire) = Wire::of(cable.attrs.kind) else { return Ok(()) };
    let names = ends.map(|it| layout.parts[layout.port_local(it).0].name.as_str());
    for (idx, pod) in plant.pods.iter().enumerate() {
        let Family::HyperSquare(machine) = &pod.family else { continue };
        let prefix = pod_prefix(idx);
        let place = |name: &str| {
            let at = numbers_behind(name.strip_prefix(prefix.as_str())?, "board")?;
            (board_name(at[0], at[1]).len() + prefix.len() == name.len()).then_some(at)
        };
        let [Some(from), Some(to)] = names.map(place) else { continue };
        let n_steps: usize = (0..2).map(|axis| from[axis].abs_diff(to[axis])).sum();
        let placed = n_steps as u64 * u64::from(machine.pitch.as_mm());
        let delayed = 1000 * cable.attrs.latency.as_nanos() / u64::from(machine.ns_per_m.max(1));
        let reach = if wire == machine.wire { machine.reach } else { wire.reach() };
        // A delay is told in whole nanoseconds, rounded up.
        let longest = machine.delay(reach);
        let (length, by) = match longest < cable.attrs.latency && placed <= delayed {
            true => (delayed, LengthBy::Delay(longest)),
            false => (placed, LengthBy::Place),
        };
        if by == LengthBy::Place && placed <= u64::from(reach.as_mm()) {
            continue;
        }
        let length = Length::mm(u32::try_from(length).unwrap_or(u32::MAX));
        let [a, b] = [&cable.a, &cable.b].map(|it| it.name.clone());
        let (wire, at) = (wire.word(), cable.b.at);
        return Err(BuildError::CableTooLong { a, b, length, wire, reach, by, at });
    }
    Ok(())
}

/// What the board at `row` and `column` is called, but for what stands before it.
pub(crate) fn board_name(row: usize, column: usize) -> String {
    format!("board{row}.{column}")
}
