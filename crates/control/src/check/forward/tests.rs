use selvedge_model::id::{PartId, PoolId};
use selvedge_model::job::Hold;
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::{Family, GridChip};

use super::*;

fn place(fabric: &Fabric, cells: &[usize]) -> Place {
    let parts: Vec<PartId> = fabric.parts().ids().collect();
    let hold = |it: &usize| {
        let part = parts[*it];
        Hold { part, seats: fabric.template_of(part).all_seats() }
    };
    Place { pool: PoolId::new(0), holds: cells.iter().map(hold).collect() }
}

fn verdict(fabric: &Fabric, cells: &[usize]) -> Vec<Violation> {
    let place = place(fabric, cells);
    let parts: Vec<PartId> = place.holds.iter().map(|it| it.part).collect();
    let (chips, made) = selvedge_family::forwarding(fabric, &parts).unwrap();
    let idx = |chip: NodeId| chips.binary_search(&chip).unwrap();
    tables(fabric, JobId::new(0), &place, &|from, to| Some(chips[made.next(idx(from), idx(to))]))
}

fn machines() -> [Fabric; 2] {
    let square = Family::HyperSquare(HyperSquare::of_groups([4, 4]));
    let torus = Family::Grid { chip: GridChip::Tpuv2, sides: [8, 8], wraps: [true, true] };
    [square, torus].map(|it| selvedge_family::build(&Plant::of_pods("made", [it])).unwrap())
}

#[test]
fn tables_of_boxes_and_polyominoes_stay_inside_and_cannot_lock() {
    // A board, rows, boxes, an L, a ring with a hole, all of a torus: every kind of set.
    let sets: [&[usize]; 8] = [
        &[5],
        &[4, 5, 6, 7],
        &[0, 1, 4, 5],
        &[1, 2, 5, 6, 9, 10, 13, 14],
        &[0, 4, 8, 12, 13, 14, 15],
        &[0, 1, 2, 4, 6, 8, 9, 10],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        &[0, 3, 12, 15, 1, 2],
    ];
    for fabric in machines() {
        for cells in sets {
            // Two corners of a mesh hang together only over the wraps of a torus.
            if selvedge_family::forwarding(&fabric, &parts_of(&fabric, cells)).is_some() {
                assert_eq!(verdict(&fabric, cells), [], "{cells:?}");
            }
        }
    }
}

fn parts_of(fabric: &Fabric, cells: &[usize]) -> Vec<PartId> {
    place(fabric, cells).holds.iter().map(|it| it.part).collect()
}

#[test]
fn a_table_that_leaves_loops_or_locks_is_found() {
    let [square, _] = machines();
    let two_by_two = place(&square, &[0, 1, 4, 5]);
    let job = JobId::new(0);
    let chips: Vec<NodeId> = (two_by_two.holds.iter())
        .flat_map(|it| square.template_of(it.part).seats().iter().map(|at| (it.part, *at)))
        .map(|(part, at)| square.node_at(part, at as usize))
        .collect();
    let nowhere = tables(&square, job, &two_by_two, &|_, _| None);
    assert!(matches!(nowhere[0], Violation::TableLeaves { .. }), "{nowhere:?}");
    // Round the four boards by their chips A, always the same way: every link waits for the next.
    let round = [chips[0], chips[4], chips[12], chips[8]];
    let one_way = |from: NodeId, _: NodeId| {
        let at = round.iter().position(|it| *it == from)?;
        Some(round[(at + 1) % 4])
    };
    let seats = |it: &Hold| Hold { seats: 1, ..*it };
    let only_a =
        Place { pool: two_by_two.pool, holds: two_by_two.holds.iter().map(seats).collect() };
    assert_eq!(tables(&square, job, &only_a, &one_way), [Violation::TablesLock { job, n: 4 }]);
    // To and fro for ever.
    let to_and_fro =
        |from: NodeId, _: NodeId| Some(if from == round[0] { round[1] } else { round[0] });
    let pair = Place { pool: only_a.pool, holds: vec![only_a.holds[0], only_a.holds[1]] };
    assert_eq!(tables(&square, job, &pair, &to_and_fro), []);
    let three = Place { pool: only_a.pool, holds: only_a.holds[..3].to_vec() };
    let lost = tables(&square, job, &three, &to_and_fro);
    assert!(!lost.is_empty(), "the third is never reached");
}
