use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fabric::{Fabric, LinkKind, NodeKind};
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::Family;
use selvedge_model::unit::Span;

use crate::graph::ChipGraph;
use crate::hypersquare::group::{Chip, Group, Letter};
use crate::hypersquare::machine::Machine;

mod cuts;

mod rings;

/// A machine of so many groups as a plant with its fabric.
fn built(groups: [u16; 2]) -> (Plant, Fabric) {
    let family = Family::HyperSquare(HyperSquare::of_groups(groups));
    let plant = Plant::of_pods("square", [family]);
    let fabric = crate::build(&plant).unwrap();
    (plant, fabric)
}

/// Links between chips by their names, ends in order, as the fabric has them.
fn links_of(machine: &Machine<'_>) -> BTreeSet<[Chip; 2]> {
    let chips: BTreeMap<_, _> = machine.chips().map(|it| (machine.node(it).unwrap(), it)).collect();
    let graph = ChipGraph::of(machine.fabric);
    let chip = |node: u32| chips[&graph.chips[node as usize]];
    let ends = |it: &[u32; 2]| {
        let mut ends = it.map(chip);
        ends.sort();
        ends
    };
    graph.graph.links().iter().map(ends).collect()
}

fn every_size() -> impl Iterator<Item = [u16; 2]> {
    (1..=16).flat_map(|rows| (1..=16).map(move |columns| [rows, columns]))
}

/// Notes §1: nodes, links, degree, diameter, with no cable twice.
#[test]
fn the_formulas_hold_on_the_built_graph_of_every_size_up_to_16() {
    for groups in every_size() {
        let (plant, fabric) = built(groups);
        let [r, c] = groups.map(usize::from);
        let graph = ChipGraph::of(&fabric).graph;
        assert_eq!(graph.n_nodes(), 4 * r * c);
        assert_eq!(graph.links().len(), 12 * r * c - 4 * (r + c), "{groups:?}");
        assert_eq!(fabric.cables().len(), 4 * (2 * r * c - r - c));
        let around = |n: usize| [0, 1, 2].map(|it| it.min(n - 1));
        let most = 2 + around(r)[2] + around(c)[2];
        let least = 2 + usize::from(1 < r) + usize::from(1 < c);
        assert_eq!(graph.degrees(), [least, most], "{groups:?}");
        // The product of two paths and a ring of four: what is farthest from a corner is farthest.
        let farthest = graph.distances(0).into_iter().max().unwrap();
        assert_eq!(farthest as usize, r + c, "{groups:?}");
        let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
        assert_eq!(links_of(&machine).len(), graph.links().len(), "no two links join a pair");
    }
}

/// Notes §1, the table; and HS(3,5) by its product of paths.
#[test]
fn distances_are_those_of_the_notes() {
    let measured = |groups| {
        let spread = ChipGraph::of(&built(groups).1).graph.spread().unwrap();
        (spread.diameter, (1000.0 * spread.mean()).round() / 1000.0)
    };
    assert_eq!(measured([1, 1]), (2, 1.333));
    assert_eq!(measured([1, 2]), (3, 1.714));
    assert_eq!(measured([2, 2]), (4, 2.133));
    assert_eq!(measured([4, 4]), (8, 3.556));
    assert_eq!(measured([8, 8]), (16, 6.275));
    assert_eq!(measured([3, 5]).0, 8);
}

#[test]
fn a_board_has_four_chips_a_host_processor_and_a_bridge() {
    let (plant, fabric) = built([2, 3]);
    fabric.audit();
    let machine = Machine::of_pod(&plant, &fabric, 0).unwrap();
    let board = machine.board(Group::at(1, 2)).unwrap();
    assert_eq!(&*fabric.part(board).name, "board1.2");
    let template = fabric.template_of(board);
    let n_nodes = |kind| template.nodes().iter().filter(|it| it.kind == kind).count();
    let counts = [NodeKind::Chip, NodeKind::Cpu, NodeKind::Switch, NodeKind::Machine].map(n_nodes);
    assert_eq!((counts, template.all_seats()), ([4, 1, 1, 1], 0b1111));
    let pools: BTreeSet<_> = fabric.parts().iter().map(|it| it.pool).collect();
    assert_eq!(pools.len(), 1, "all boards of a machine are in one pool");
    // Claim 1: A to B and C, D to B and C; the same letters from board to board.
    let links = links_of(&machine);
    use Letter::{A, B, C, D};
    for group in [Group::at(0, 0), Group::at(1, 1)] {
        for [a, b] in [[A, B], [A, C], [B, D], [C, D]] {
            assert!(links.contains(&[group.chip(a), group.chip(b)]), "{group} {a:?}{b:?}");
        }
        assert!(!links.contains(&[group.chip(A), group.chip(D)]));
    }
    for letter in Letter::ALL {
        let chip = |row, column| Group::at(row, column).chip(letter);
        assert!(links.contains(&[chip(0, 1), chip(0, 2)]));
        assert!(links.contains(&[chip(0, 1), chip(1, 1)]));
        assert!(!links.contains(&[chip(0, 0), chip(0, 2)]), "no cable wraps");
    }
}

#[test]
fn cables_have_their_kind_and_take_as_long_as_their_pitch() {
    let text = "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"2x2\"\n";
    let fibre = format!("{text}pitch_mm = 3000\nwire = \"fibre\"\nns_per_m = 5\ngbps = 800\n");
    for (text, kind, own, board) in
        [(text, LinkKind::Board, 3, 2), (fibre.as_str(), LinkKind::Fibre, 15, 8)]
    {
        let plant = Plant::parse("demo.toml", text).unwrap();
        let fabric = crate::build(&plant).unwrap();
        for cable in fabric.cables() {
            assert_eq!((cable.attrs.kind, cable.attrs.latency), (kind, Span::nanos(own)));
            let is_lit = cable.loss_expected.centi() != 0;
            assert_eq!(is_lit, kind == LinkKind::Fibre, "copper loses no light");
        }
        let graph = ChipGraph::of(&fabric);
        let inner = graph.attrs.iter().filter(|it| it.kind == LinkKind::Ici);
        assert!(inner.clone().all(|it| it.latency == Span::nanos(board)));
        assert_eq!(inner.count(), 16);
    }
}

#[test]
fn machines_with_other_links_have_boards_of_their_own() {
    let square = HyperSquare::of_groups([1, 2]);
    let rate = selvedge_model::unit::BitRate::gbps(100);
    let slow = HyperSquare { rate, ..square };
    let plant = Plant::of_pods("two", [square, slow].map(Family::HyperSquare));
    let fabric = crate::build(&plant).unwrap();
    fabric.audit();
    let rates = |pod| {
        let machine = Machine::of_pod(&plant, &fabric, pod).unwrap();
        let chips = machine.chips().map(|it| machine.node(it).unwrap());
        let graph = ChipGraph::of_chips(&fabric, chips);
        assert_eq!(graph.graph.n_nodes(), 8);
        graph.attrs.iter().map(|it| it.capacity).collect::<BTreeSet<_>>()
    };
    assert_eq!((rates(0), rates(1)), ([square.rate].into(), [rate].into()));
    assert!(Machine::of_pod(&plant, &fabric, 2).is_none());
}

/// Notes §1, the table: links, cables, longest wire, all wire, bisection.
#[test]
fn wires_are_as_the_table_of_the_notes_has_them() {
    for (groups, expected) in [
        ([1, 2], [12, 4, 2, 16, 4]),
        ([2, 2], [32, 16, 2, 48, 8]),
        ([4, 4], [160, 96, 2, 256, 16]),
        ([8, 8], [704, 448, 2, 1152, 32]),
    ] {
        let (plant, fabric) = built(groups);
        let drawn = Machine::of_pod(&plant, &fabric, 0).unwrap().drawn();
        let n_links = drawn.graph.links().len() as u32;
        let (longest, all) = (drawn.lengths().max().unwrap(), drawn.lengths().sum::<u32>());
        let measured = [n_links, drawn.n_cables() as u32, longest, all, drawn.bisection.unwrap()];
        assert_eq!(measured, expected, "{groups:?}");
    }
}
