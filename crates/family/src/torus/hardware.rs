//! The inner structure of a cube and of an optical switch.
//!
//! A cube is 4x4x4 chips = 16 machines of 2x2x1 (seed 000 §2.2).  Chip (x,y,z) has seat
//! `x + 4y + 16z`; its six ICI ports stand at places `6·seat + direction`, directions in the
//! order -x +x -y +y -z +z.  A port on a face is an optical end and is named
//! `{dim}/{in|out}/{index}` (seed 000 §3.4.1: `{cube_id, dim, index, polarity}`): `out` is the +
//! face, `in` the - face, `index = 4a + b` with a and b the other two coordinates in the order
//! x, y, z.  All other ICI ports are named `chip1.2.3/+x`.  After the 384 ICI ports come the PCIe
//! ports, one pair for each chip: `chip1.2.3/pcie`, `m05/pcie2`.

use selvedge_model::fabric::{
    LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
};
use selvedge_model::unit::{BitRate, Span};

/// Chips along each side of a cube.
pub const SIDE: usize = 4;
/// The name of a cube's inner structure.
pub const TEMPLATE: &str = "cube";
/// Chips of a cube.
pub const CHIPS: usize = 64;
/// Machines of a cube.
pub const MACHINES: usize = 16;
/// Optical ends of one face; also switches of one dimension.
pub const FACE: usize = 16;
/// ICI ports of a cube.
pub const ICI_PORTS: usize = 6 * CHIPS;
/// Switches of a pod.
pub const SWITCHES: usize = 3 * FACE;
/// Cubes that the switches of one pod can join.
pub const CUBES_MAX: usize = 64;
/// Ports of a switch: 64 north, 64 south, 8 spare (4 of each side).
pub const SWITCH_PORTS: usize = 136;
/// Spare ports of each side of a switch.
pub const SPARES: usize = 4;

/// A dimension of the torus.
pub const DIMS: [char; 3] = ['x', 'y', 'z'];

/// Seed 000 §2.3: each ICI link carries 50 GB/s in each direction.
pub const ICI: LinkAttrs = LinkAttrs {
    capacity: BitRate::gigabytes(50),
    // Assumed: no source gives the ICI hop latency of TPUv4.
    latency: Span::nanos(100),
    kind: LinkKind::Ici,
};

/// One fibre between a cube and a switch.  Assumed: some 20 m of fibre at 5 ns/m.
pub const FIBRE: LinkAttrs = LinkAttrs {
    capacity: BitRate::gigabytes(50),
    latency: Span::nanos(100),
    kind: LinkKind::Fibre,
};

/// One chip's PCIe lanes.  Assumed: 16 lanes of generation 3.
pub const PCIE: LinkAttrs =
    LinkAttrs { capacity: BitRate::gbps(126), latency: Span::nanos(500), kind: LinkKind::Pcie };

/// The seat of chip (x,y,z).
pub const fn seat(at: [usize; 3]) -> usize {
    at[0] + SIDE * at[1] + SIDE * SIDE * at[2]
}

/// The chip of a seat.
pub const fn chip(seat: usize) -> [usize; 3] {
    [seat % SIDE, seat / SIDE % SIDE, seat / (SIDE * SIDE)]
}

/// The machine of chip (x,y,z): 2x2x1 chips each, x fastest.
pub const fn machine(at: [usize; 3]) -> usize {
    at[0] / 2 + 2 * (at[1] / 2) + 4 * at[2]
}

/// The index of chip `at` on the faces of `dim`: `4a + b`, a and b the other coordinates.
pub const fn face_index(dim: usize, at: [usize; 3]) -> usize {
    match dim {
        0 => SIDE * at[1] + at[2],
        1 => SIDE * at[0] + at[2],
        _ => SIDE * at[0] + at[1],
    }
}

/// The chip at `index` of a face of `dim`; `out` is the + face.
pub const fn face_chip(dim: usize, out: bool, index: usize) -> [usize; 3] {
    let (a, b) = (index / SIDE, index % SIDE);
    let own = if out { SIDE - 1 } else { 0 };
    match dim {
        0 => [own, a, b],
        1 => [a, own, b],
        _ => [a, b, own],
    }
}

/// The place of the ICI port of chip `at` in direction `+dim` (`out`) or `-dim`.
pub const fn ici_port(at: [usize; 3], dim: usize, out: bool) -> usize {
    6 * seat(at) + 2 * dim + out as usize
}

/// The place of the optical end `{dim, in|out, index}` among a cube's ports.
pub const fn face_port(dim: usize, out: bool, index: usize) -> usize {
    ici_port(face_chip(dim, out, index), dim, out)
}

/// The inner structure of a cube.
pub fn cube() -> Template {
    let mut nodes: Vec<NodeSpec> = Vec::with_capacity(MACHINES * 3 + CHIPS);
    for idx in 0..MACHINES {
        let name = format!("m{idx:02}");
        nodes.push(NodeSpec { kind: NodeKind::Machine, name, parent: None });
    }
    for idx in 0..MACHINES {
        let parent = Some(idx as u32);
        nodes.push(NodeSpec { kind: NodeKind::Cpu, name: format!("m{idx:02}/cpu"), parent });
        nodes.push(NodeSpec { kind: NodeKind::Tray, name: format!("m{idx:02}/tray"), parent });
    }
    let cpu_of = |machine: usize| MACHINES + 2 * machine;
    let first_chip = nodes.len();
    for seat in 0..CHIPS {
        let at = chip(seat);
        let parent = Some(cpu_of(machine(at)) as u32 + 1);
        let name = format!("chip{}.{}.{}", at[0], at[1], at[2]);
        nodes.push(NodeSpec { kind: NodeKind::Chip, name, parent });
    }

    let (mut ports, mut links) = (Vec::new(), Vec::new());
    for seat in 0..CHIPS {
        let (at, node) = (chip(seat), (first_chip + seat) as u32);
        for (dim, letter) in DIMS.iter().enumerate() {
            for out in [false, true] {
                let on_face = at[dim] == if out { SIDE - 1 } else { 0 };
                let name = if on_face {
                    let polarity = if out { "out" } else { "in" };
                    format!("{letter}/{polarity}/{}", face_index(dim, at))
                } else {
                    let sign = if out { '+' } else { '-' };
                    format!("chip{}.{}.{}/{sign}{letter}", at[0], at[1], at[2])
                };
                ports.push(PortSpec { node, name, side: Side::Plain });
            }
        }
    }
    for seat in 0..CHIPS {
        for dim in 0..3 {
            let mut next = chip(seat);
            next[dim] += 1;
            if next[dim] < SIDE {
                let a = ici_port(chip(seat), dim, true) as u32;
                links.push(LinkSpec { a, b: ici_port(next, dim, false) as u32, attrs: ICI });
            }
        }
    }
    let mut lanes = [0usize; MACHINES];
    for seat in 0..CHIPS {
        let at = chip(seat);
        let host = machine(at);
        let a = ports.len() as u32;
        let name = format!("chip{}.{}.{}/pcie", at[0], at[1], at[2]);
        ports.push(PortSpec { node: (first_chip + seat) as u32, name, side: Side::Plain });
        let name = format!("m{host:02}/pcie{}", lanes[host]);
        ports.push(PortSpec { node: cpu_of(host) as u32, name, side: Side::Plain });
        lanes[host] += 1;
        links.push(LinkSpec { a, b: a + 1, attrs: PCIE });
    }
    let seats = (0..CHIPS).map(|seat| (first_chip + seat) as u32).collect();
    Template::new(TEMPLATE, Role::Compute, nodes, ports, links, seats)
        .expect("64 seats, and every port linked once")
}

/// The place of north port `slot` on a switch; 64..68 are the spares of that side.
pub const fn north_port(slot: usize) -> usize {
    if slot < CUBES_MAX { slot } else { 2 * CUBES_MAX + (slot - CUBES_MAX) }
}

/// The place of south port `slot` on a switch; 64..68 are the spares of that side.
pub const fn south_port(slot: usize) -> usize {
    if slot < CUBES_MAX { CUBES_MAX + slot } else { 2 * CUBES_MAX + SPARES + (slot - CUBES_MAX) }
}

/// The inner structure of an optical switch: ports `n0`..`n63`, `s0`..`s63`, then the spares
/// `n64`..`n67`, `s64`..`s67`.
pub fn switch() -> Template {
    let node = NodeSpec { kind: NodeKind::Switch, name: String::new(), parent: None };
    let mut ports = Vec::with_capacity(SWITCH_PORTS);
    let mut add = |slots: std::ops::Range<usize>, letter: char, side: Side| {
        for slot in slots {
            ports.push(PortSpec { node: 0, name: format!("{letter}{slot}"), side });
        }
    };
    add(0..CUBES_MAX, 'n', Side::North);
    add(0..CUBES_MAX, 's', Side::South);
    add(CUBES_MAX..CUBES_MAX + SPARES, 'n', Side::North);
    add(CUBES_MAX..CUBES_MAX + SPARES, 's', Side::South);
    Template::new("ocs", Role::CircuitSwitch, vec![node], ports, Vec::new(), Vec::new())
        .expect("a switch has no seats and no inner links")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cube_is_as_seed_000_counts_it() {
        let cube = cube();
        assert_eq!(cube.seats().len(), CHIPS);
        let optical = cube.ports()[..ICI_PORTS].iter().filter(|it| !it.name.contains("chip"));
        assert_eq!(optical.count(), 96);
        let ici = cube.link_pairs().iter().filter(|it| it.attrs.kind == LinkKind::Ici).count();
        assert_eq!(ici, 3 * 4 * 4 * 3);
        // Seed 000 §3.6.1: a machine watches 24 one-way ICI links: four chips, six each.
        assert_eq!(cube.seats_under(0).count_ones(), 4);
        for (dim, out, index) in [(0, true, 7), (1, false, 0), (2, true, 15)] {
            let port = &cube.ports()[face_port(dim, out, index)];
            let polarity = if out { "out" } else { "in" };
            assert_eq!(port.name, format!("{}/{polarity}/{index}", DIMS[dim]));
        }
        assert_eq!(switch().ports().len(), SWITCH_PORTS);
        assert_eq!(switch().ports()[south_port(66)].name, "s66");
    }
}
