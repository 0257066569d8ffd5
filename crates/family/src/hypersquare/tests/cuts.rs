//! The bisection: counted on the built graph for every size, proved minimal in two ways.

use std::collections::BTreeMap;

use crate::graph::ChipGraph;
use crate::hypersquare::bisection::{bisection, is_inside};
use crate::hypersquare::group::{Chip, Group, Letter};
use crate::hypersquare::machine::Machine;
use crate::hypersquare::ring::{torus_chip, torus_sides};
use crate::hypersquare::tests::{built, every_size, links_of};

#[test]
fn the_cut_of_every_size_up_to_16_halves_the_chips_and_crosses_as_many_links_as_said() {
    for groups in every_size() {
        let (plant, fabric) = built(groups);
        let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
        let graph = ChipGraph::of(&fabric);
        let mut inside = vec![false; graph.chips.len()];
        for chip in machine.chips() {
            inside[graph.node_of(machine.node(chip).unwrap()).unwrap()] = is_inside(groups, chip);
        }
        assert_eq!(2 * inside.iter().filter(|it| **it).count(), inside.len(), "{groups:?}");
        let crossed = graph.graph.cut(|it| inside[it]);
        assert_eq!(crossed as u32, bisection(groups), "{groups:?}");
    }
    assert_eq!([[1, 2], [2, 2], [4, 4], [8, 8]].map(bisection), [4, 8, 16, 32]);
}

/// An all-to-all of one unit from each chip to each other, over the embedded torus: first along
/// the row ring, then along the column ring, the shorter way, ties half and half.  A cut into
/// halves is crossed by N²/4 units each way, and no link carries more than the busiest, so no
/// such cut has fewer links than N²/4 over the busiest load.
#[test]
fn for_even_sizes_no_cut_is_smaller_by_the_load_of_an_all_to_all() {
    for groups in every_size().filter(|it| it.iter().all(|n| n.is_multiple_of(2))) {
        let (plant, fabric) = built(groups);
        let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
        let links = links_of(&machine);
        let sides = torus_sides(groups);
        // Twice the load of one ring's links by their place; all rings of a kind carry the same.
        let mut busiest = 0;
        for axis in 0..2 {
            let n = sides[axis];
            let mut twice = vec![0u64; n];
            for (from, to) in (0..n * n).map(|it| (it / n, it % n)) {
                let ahead = (to + n - from) % n;
                // Every source of the ring sends this to as many chips as the other side has.
                let units = (sides[1 - axis] as u64) * if 2 * ahead == n { 1 } else { 2 };
                if 2 * ahead <= n {
                    (0..ahead).for_each(|step| twice[(from + step) % n] += units);
                }
            }
            busiest = twice.into_iter().max().unwrap().max(busiest);
        }
        // The rings' links are links of the machine.
        for (x, y) in (0..sides[0] * sides[1]).map(|it| (it % sides[0], it / sides[0])) {
            for next in [[(x + 1) % sides[0], y], [x, (y + 1) % sides[1]]] {
                let mut ends = [torus_chip(groups, [x, y]), torus_chip(groups, next)];
                ends.sort();
                assert!(links.contains(&ends), "{groups:?}: {ends:?}");
            }
        }
        let n_chips = (sides[0] * sides[1]) as u64;
        let least = (2 * n_chips * n_chips / 4).div_ceil(busiest);
        assert_eq!(u64::from(bisection(groups)), least, "{groups:?}");
    }
}

/// The fewest links between two halves, by trying all halves: chip by chip along the boards,
/// keeping for each half of the last R boards and each number of chips inside the fewest links.
fn fewest_links(groups: [u16; 2]) -> u32 {
    let (plant, fabric) = built(groups);
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let links = links_of(&machine);
    // Column by column, so that the chips still met by later links are those of R boards.
    let order: Vec<Chip> = (0..groups[1])
        .flat_map(|column| (0..groups[0]).map(move |row| Group::at(row, column)))
        .flat_map(|group| Letter::ALL.map(|letter| group.chip(letter)))
        .collect();
    let places: BTreeMap<Chip, usize> = order.iter().copied().zip(0..).collect();
    let width = 4 * usize::from(groups[0]);
    let (n_half, n_windows) = (order.len() / 2, 1 << width);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    for [a, b] in &links {
        let (a, b) = (places[a], places[b]);
        assert!(a.abs_diff(b) <= width, "the window is wide enough");
        before[a.max(b)].push(a.abs_diff(b));
    }
    const NONE: u32 = u32::MAX;
    let cell = |window: usize, n_inside: usize| window * (n_half + 1) + n_inside;
    let mut fewest = vec![NONE; n_windows * (n_half + 1)];
    fewest[0] = 0;
    for (place, back) in before.iter().enumerate() {
        let mut after = vec![NONE; fewest.len()];
        for (window, n_inside) in
            (0..n_windows).flat_map(|it| (0..=place.min(n_half)).map(move |n| (it, n)))
        {
            let so_far = fewest[cell(window, n_inside)];
            for is_in in [0, 1] {
                if so_far == NONE || n_half < n_inside + is_in {
                    continue;
                }
                // Bit k of a window is the chip k + 1 places back.
                let crossed = back.iter().filter(|it| (window >> (**it - 1)) & 1 != is_in).count();
                let next = (window << 1 | is_in) & (n_windows - 1);
                let best = &mut after[cell(next, n_inside + is_in)];
                *best = (*best).min(so_far + crossed as u32);
            }
        }
        fewest = after;
    }
    (0..n_windows).map(|it| fewest[cell(it, n_half)]).min().unwrap()
}

#[test]
fn up_to_3x5_and_4x4_no_half_at_all_has_a_smaller_cut() {
    let sizes = (1..=3).flat_map(|rows| (rows..=5).map(move |columns| [rows, columns]));
    for groups in sizes.chain([[4, 4]]) {
        assert_eq!(fewest_links(groups), bisection(groups), "{groups:?}");
    }
}
