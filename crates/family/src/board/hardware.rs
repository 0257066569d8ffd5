//! The inner structure of a board: one machine with 2x2 chips.
//!
//! Chip (x,y) of a board has seat `x + 2y` and four ICI ports at places `4·seat + direction`,
//! directions in the order -x +x -y +y, named `chip1.0/+x`.  Those that lead to the board's other
//! chips are linked inside; the other eight take cables.

use selvedge_model::fabric::{
    LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
};
use selvedge_model::spec::plant::GridChip;
use selvedge_model::unit::{BitRate, Span};

/// Chips along each side of a board.
pub const SIDE: usize = 2;
/// Chips of a board.
pub const CHIPS: usize = 4;

/// One ICI link of these chips.  Jouppi et al., CACM 63(7), 2020: 496 Gb/s and 656 Gb/s in each
/// direction.  The latency is assumed.
pub const fn ici(chip: GridChip, kind: LinkKind) -> LinkAttrs {
    let capacity = match chip {
        GridChip::Tpuv2 => BitRate::gbps(496),
        GridChip::Tpuv3 => BitRate::gbps(656),
    };
    LinkAttrs { capacity, latency: Span::nanos(100), kind }
}

/// One chip's PCIe lanes.  Assumed: 16 lanes of generation 3.
pub const PCIE: LinkAttrs =
    LinkAttrs { capacity: BitRate::gbps(126), latency: Span::nanos(500), kind: LinkKind::Pcie };

/// The chips that such boards have.
pub const GRID_CHIPS: [GridChip; 2] = [GridChip::Tpuv2, GridChip::Tpuv3];

/// High-bandwidth memory of a chip, which is two cores (Jouppi et al., CACM 63(7), 2020).
pub const fn memory_gib(chip: GridChip) -> u32 {
    match chip {
        GridChip::Tpuv2 => 16,
        GridChip::Tpuv3 => 32,
    }
}

/// The place of the ICI port of chip `at` in direction `+dim` (`out`) or `-dim`.
pub const fn ici_port(at: [usize; 2], dim: usize, out: bool) -> usize {
    4 * (at[0] + SIDE * at[1]) + 2 * dim + out as usize
}

/// What boards of these chips are called.
pub const fn template_name(chip: GridChip) -> &'static str {
    match chip {
        GridChip::Tpuv2 => "tpuv2-board",
        GridChip::Tpuv3 => "tpuv3-board",
    }
}

/// The inner structure of a board.
pub fn board(chip: GridChip) -> Template {
    let node = |kind, name: &str, parent| NodeSpec { kind, name: name.to_owned(), parent };
    let mut nodes = vec![
        node(NodeKind::Machine, "m0", None),
        node(NodeKind::Cpu, "m0/cpu", Some(0)),
        node(NodeKind::Tray, "m0/tray", Some(0)),
    ];
    let (cpu, tray, first_chip) = (1, Some(2), 3);
    let (mut ports, mut links, mut seats) = (Vec::new(), Vec::new(), Vec::new());
    let chips = [[0, 0], [1, 0], [0, 1], [1, 1]];
    for (seat, at) in (0..).zip(chips) {
        let name = format!("chip{}.{}", at[0], at[1]);
        nodes.push(node(NodeKind::Chip, &name, tray));
        seats.push(first_chip + seat);
        for direction in ["-x", "+x", "-y", "+y"] {
            let name = format!("{name}/{direction}");
            ports.push(PortSpec { node: first_chip + seat, name, side: Side::Plain });
        }
    }
    for at in chips {
        for dim in 0..2 {
            if at[dim] == 0 {
                let mut next = at;
                next[dim] = 1;
                let a = ici_port(at, dim, true) as u32;
                let b = ici_port(next, dim, false) as u32;
                links.push(LinkSpec { a, b, attrs: ici(chip, LinkKind::Ici) });
            }
        }
    }
    for (seat, at) in (0..).zip(chips) {
        let a = ports.len() as u32;
        let name = format!("chip{}.{}/pcie", at[0], at[1]);
        ports.push(PortSpec { node: first_chip + seat, name, side: Side::Plain });
        ports.push(PortSpec { node: cpu, name: format!("m0/pcie{seat}"), side: Side::Plain });
        links.push(LinkSpec { a, b: a + 1, attrs: PCIE });
    }
    Template::new(template_name(chip), Role::Compute, nodes, ports, links, seats)
        .expect("4 seats, and every port linked once")
}
