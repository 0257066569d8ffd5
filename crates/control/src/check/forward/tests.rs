use selvedge_model::fault::Target;
use selvedge_model::id::{PartId, PoolId};
use selvedge_model::job::{Collective, Hold, Partition};
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::{Family, GridChip};
use selvedge_model::table::IdVec;
use selvedge_model::unit::Ppm;

use super::*;
use crate::capacity::{self, Capacity, Layout};
use crate::family;
use crate::state::PartState;

fn place(fabric: &Fabric, cells: &[usize]) -> Place {
    let parts: Vec<PartId> = fabric.parts().ids().collect();
    let hold = |it: &usize| {
        let part = parts[*it];
        Hold { part, seats: fabric.template_of(part).all_seats() }
    };
    Place::of(PoolId::new(0), cells.iter().map(hold).collect())
}

fn verdict(fabric: &Fabric, cells: &[usize]) -> Vec<Violation> {
    let place = place(fabric, cells);
    let (chips, made) = selvedge_family::forwarding(fabric, &parts_of(fabric, cells), &[]).unwrap();
    let claim = Claim { chips: &chips, toward: &|to| made.toward(to) };
    tables(fabric, JobId::new(0), &place, &claim)
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
            if selvedge_family::forwarding(&fabric, &parts_of(&fabric, cells), &[]).is_some() {
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
    let job = JobId::new(0);
    // The chips A of four boards, which are a ring of four.
    let mut only_a = place(&square, &[0, 1, 5, 4]);
    only_a.holds.iter_mut().for_each(|it| it.seats = 1);
    let chip = |it: &Hold| square.node_at(it.part, square.template_of(it.part).seats()[0] as usize);
    let chips: Vec<NodeId> = only_a.holds.iter().map(chip).collect();
    let check = |place: &Place, toward: &dyn Fn(usize) -> Vec<u32>| {
        let chips: Vec<NodeId> = place.holds.iter().map(chip).collect();
        tables(&square, job, place, &Claim { chips: &chips, toward })
    };
    let leaves = |it: &[Violation]| matches!(it, [Violation::TableLeaves { .. }]);
    assert!(leaves(&check(&only_a, &|_| vec![9; 4])), "to nobody");
    assert!(leaves(&check(&only_a, &|to| vec![to as u32; 4])), "across, where no link is");
    assert!(leaves(&check(&only_a, &|_| Vec::new())), "nothing said");
    let others = Claim { chips: &chips[..3], toward: &|_| vec![0; 3] };
    assert!(leaves(&tables(&square, job, &only_a, &others)), "a chip forgotten");
    // Always the same way round: every link waits for the next.
    let one_way = |to: usize| (0..4).map(move |at| if at == to { at } else { (at + 1) % 4 } as u32);
    let locks = check(&only_a, &|to| one_way(to).collect());
    assert_eq!(locks, [Violation::TablesLock { job, n: 4 }]);
    // Across over the first two only: no link waits for one that waits for it.
    let turns = [[0, 0, 1, 0], [1, 1, 1, 0], [1, 2, 2, 2], [3, 0, 3, 3]];
    assert_eq!(check(&only_a, &|to| turns[to].to_vec()), []);
    // Between the first two for ever, which the third is sent to.
    let pair = Place::of(only_a.pool, only_a.holds[..2].to_vec());
    assert_eq!(check(&pair, &|to| vec![to as u32; 2]), []);
    let three = Place::of(only_a.pool, only_a.holds[..3].to_vec());
    let to_and_fro = |to: usize| [vec![0, 0, 1], vec![1, 1, 1], vec![1, 0, 2]][to].clone();
    let (from, to) = (chips[0], chips[2]);
    assert_eq!(check(&three, &to_and_fro), [Violation::TableLost { job, from, to }]);
}

/// Every pair of chips is followed link by link, as data would go, and every pair of links that a
/// way uses one after the other is noted; none of it with the check's arrays.
#[test]
fn the_check_says_of_ways_and_waits_what_following_each_of_them_says() {
    for fabric in machines() {
        for cells in [vec![0, 1, 2, 4, 6, 8, 9, 10], (0..16).collect()] {
            let parts = parts_of(&fabric, &cells);
            let (chips, made) = selvedge_family::forwarding(&fabric, &parts, &[]).unwrap();
            let n = chips.len();
            let mut waits: std::collections::BTreeSet<([usize; 2], [usize; 2])> = [].into();
            for to in 0..n {
                let next = made.toward(to);
                for from in 0..n {
                    let mut way = vec![from];
                    while *way.last().unwrap() != to {
                        way.push(next[*way.last().unwrap()] as usize);
                        assert!(way.len() <= n, "{from} to {to}");
                    }
                    waits.extend(way.windows(3).map(|it| ([it[0], it[1]], [it[1], it[2]])));
                }
            }
            // Take away who waits for nobody, until nothing is left.
            loop {
                let waiting: Vec<[usize; 2]> = waits.iter().map(|it| it.0).collect();
                let before = waits.len();
                waits.retain(|it| waiting.binary_search(&it.1).is_ok());
                if waits.len() == before {
                    break;
                }
            }
            assert_eq!(waits.len(), 0);
            assert_eq!(verdict(&fabric, &cells), []);
        }
    }
}

#[test]
fn the_tables_of_a_whole_machine_of_4096_chips_are_all_looked_at() {
    let square = Family::HyperSquare(HyperSquare::of_groups([32, 32]));
    let fabric = selvedge_family::build(&Plant::of_pods("made", [square])).unwrap();
    let all: Vec<usize> = (0..1024).collect();
    assert_eq!(verdict(&fabric, &all), []);
    // One wrong entry among sixteen million is found: the last destination's farthest chip.
    let place = place(&fabric, &all);
    let (chips, made) =
        selvedge_family::forwarding(&fabric, &parts_of(&fabric, &all), &[]).unwrap();
    let wrong = |to: usize| {
        let mut next = made.toward(to);
        if to == 4095 {
            next[0] = 4095;
        }
        next
    };
    let found = tables(&fabric, JobId::new(0), &place, &Claim { chips: &chips, toward: &wrong });
    let (job, from, to) = (JobId::new(0), chips[0], chips[4095]);
    assert_eq!(found, [Violation::TableLeaves { job, from, to }]);
}

/// A machine of which a third of the cables is out of use: whoever asks gets a set exactly as large
/// as the largest that is told, and its tables stay on live cables.
#[test]
fn partitions_are_as_large_as_told_and_their_tables_keep_to_live_cables() {
    let fabric = machines()[0].clone();
    let layout = Layout::of(&fabric);
    let pool = PoolId::new(0);
    let mut state = 0x5eed_0006_u64;
    let mut n_without = 0;
    for _ in 0..20 {
        let mut parts: IdVec<PartId, PartState> = IdVec::new();
        parts.grow(fabric.parts().len(), PartState::default());
        for cable in fabric.cables() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if (state >> 11).is_multiple_of(3) {
                let link = fabric.link_from(cable.a).unwrap();
                for (part, outage) in capacity::outage(&fabric, Target::Link(link)) {
                    parts[part].worsen(&outage);
                }
            }
        }
        let free = Capacity::now(&layout, &parts);
        let largest = free.largest(pool).unwrap();
        assert_eq!(largest.n_free, 16);
        for n_parts in 1..=16 {
            let wanted = Partition {
                n_parts,
                sides: None,
                exact: false,
                communication: Ppm::new(0),
                collective: Collective::AllReduce,
            };
            let chosen = free.partition(pool, &wanted);
            assert_eq!(chosen.is_some(), n_parts <= largest.connected, "{n_parts}");
            let Some(chosen) = chosen else { continue };
            let hold = |part: &PartId| Hold { part: *part, seats: layout.seats[*part] };
            let holds = chosen.parts.iter().map(hold).collect();
            let without = free.cut_within(&chosen.parts);
            n_without += without.len();
            let place = Place { without, ..Place::of(pool, holds) };
            let made = family::forwarding(&fabric, &place).unwrap();
            let claim = Claim { chips: made.chips(), toward: &|to| made.toward(to) };
            assert_eq!(tables(&fabric, JobId::new(0), &place, &claim), []);
            // Tables made as if the cables were there are found to use them.
            let whole = Place::of(pool, place.holds.clone());
            let made = family::forwarding(&fabric, &whole).unwrap();
            let claim = Claim { chips: made.chips(), toward: &|to| made.toward(to) };
            let uses_dead = !tables(&fabric, JobId::new(0), &place, &claim).is_empty();
            assert!(uses_dead || place.without.len() < 8, "{:?}", place.without);
        }
    }
    assert!(1000 < n_without, "{n_without}");
}
