//! The inner structure of a board: four chips, a host processor and the bridge between them
//! (seed 004, claim 11).
//!
//! Chip L has seat 0 to 3 in the order A B C D and six ports at places `6·seat + direction`, named
//! `A/west` and so on: west, east, north and south take cables to its like on the next board, row
//! and column lead to the chip beside it and the chip above or below it on its own board.

use selvedge_model::fabric::{
    LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
};
use selvedge_model::spec::hypersquare::{HyperSquare, Wire};
use selvedge_model::unit::{BitRate, Span};

use crate::hypersquare::group::Letter;

/// Chips of a board.
pub const SEATS: usize = 4;

/// Ways out of a chip, in the order of their ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the next board to the west.
    West,
    /// To the next board to the east.
    East,
    /// To the next board to the north.
    North,
    /// To the next board to the south.
    South,
    /// To the chip beside it on its board.
    Row,
    /// To the chip above or below it on its board.
    Column,
}

const WAYS: [(Way, &str); 6] = [
    (Way::West, "west"),
    (Way::East, "east"),
    (Way::North, "north"),
    (Way::South, "south"),
    (Way::Row, "row"),
    (Way::Column, "column"),
];

/// One chip's PCIe lanes to the bridge, and the bridge's to the host processor.  Assumed: 16 lanes
/// of generation 4.
pub const PCIE: LinkAttrs =
    LinkAttrs { capacity: BitRate::gbps(252), latency: Span::nanos(500), kind: LinkKind::Pcie };

/// The place of the port of chip `letter` that leads `way`.
pub const fn port(letter: Letter, way: Way) -> usize {
    WAYS.len() * letter.seat() + way as usize
}

/// A link between two chips of a board.
pub const fn board_link(machine: &HyperSquare) -> LinkAttrs {
    let latency = machine.delay(machine.board_length());
    LinkAttrs { capacity: machine.rate, latency, kind: LinkKind::Ici }
}

/// A cable between two boards.
pub const fn cable(machine: &HyperSquare) -> LinkAttrs {
    let kind = match machine.wire {
        Wire::Copper => LinkKind::Board,
        Wire::Fibre => LinkKind::Fibre,
    };
    LinkAttrs { capacity: machine.rate, latency: machine.delay(machine.pitch), kind }
}

/// Memory of a chip.  Assumed: no source says what the chips of such a machine have.
pub const MEMORY_GIB: u32 = 32;

/// What every name of a board's template begins with.
pub const TEMPLATE: &str = "hypersquare-board";

/// What boards of `machine` are called: those with other links than usual have names of their own.
pub fn template_name(machine: &HyperSquare) -> String {
    let (own, usual) = (board_link(machine), board_link(&HyperSquare::of_groups(machine.groups)));
    if own == usual {
        return TEMPLATE.to_owned();
    }
    let (gbps, nanos) = (own.capacity.bps() / 1_000_000_000, own.latency.as_nanos());
    format!("{TEMPLATE}-{gbps}g-{nanos}ns")
}

/// The inner structure of a board.
pub fn board(machine: &HyperSquare) -> Template {
    let node = |kind, name: &str, parent| NodeSpec { kind, name: name.to_owned(), parent };
    let mut nodes = vec![
        node(NodeKind::Machine, "m0", None),
        node(NodeKind::Cpu, "m0/cpu", Some(0)),
        node(NodeKind::Switch, "m0/bridge", Some(0)),
    ];
    let (cpu, bridge, first_chip) = (1, 2, 3);
    let (mut ports, mut links, mut seats) = (Vec::new(), Vec::new(), Vec::new());
    for (seat, letter) in (0..).zip(Letter::ALL) {
        nodes.push(node(NodeKind::Chip, letter.word(), Some(0)));
        seats.push(first_chip + seat);
        for (_, way) in WAYS {
            let name = format!("{}/{way}", letter.word());
            ports.push(PortSpec { node: first_chip + seat, name, side: Side::Plain });
        }
    }
    let attrs = board_link(machine);
    use Letter::{A, B, C, D};
    for (a, b, way) in
        [(A, B, Way::Row), (C, D, Way::Row), (A, C, Way::Column), (B, D, Way::Column)]
    {
        links.push(LinkSpec { a: port(a, way) as u32, b: port(b, way) as u32, attrs });
    }
    let mut join = |ends: [(u32, String); 2]| {
        let a = ports.len() as u32;
        ports.extend(ends.map(|(node, name)| PortSpec { node, name, side: Side::Plain }));
        links.push(LinkSpec { a, b: a + 1, attrs: PCIE });
    };
    for (seat, letter) in (0..).zip(Letter::ALL) {
        let chip_end = (first_chip + seat, format!("{}/pcie", letter.word()));
        join([chip_end, (bridge, format!("m0/bridge/{}", letter.word()))]);
    }
    join([(bridge, "m0/bridge/host".to_owned()), (cpu, "m0/cpu/bridge".to_owned())]);
    Template::new(template_name(machine), Role::Compute, nodes, ports, links, seats)
        .expect("4 seats, and every port linked once")
}
