//! The inner structure of a plain server: one CPU, eight accelerators on one NVSwitch, eight NICs.
//!
//! It stands for no product; its figures are those of servers of its time and marked so.
//! Accelerator k has port `gpu{k}/nvlink` to the switch and `gpu{k}/pcie` to the CPU; NIC k has
//! `nic{k}/pcie` to the CPU and `nic{k}/port` to the outside.

use selvedge_model::fabric::{
    LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
};
use selvedge_model::unit::{BitRate, Span};

/// Accelerators of a host; also its NICs.
pub const SEATS: usize = 8;

/// One accelerator's way to the switch.  Assumed: 450 GB/s in each direction, as NVLink 4 has.
pub const NVLINK: LinkAttrs = LinkAttrs {
    capacity: BitRate::gigabytes(450),
    latency: Span::nanos(300),
    kind: LinkKind::NvLink,
};

/// PCIe lanes of one device.  Assumed: 16 lanes of generation 5.
pub const PCIE: LinkAttrs =
    LinkAttrs { capacity: BitRate::gbps(504), latency: Span::nanos(500), kind: LinkKind::Pcie };

/// The inner structure of a host.
pub fn host() -> Template {
    let node = |kind, name: String, parent| NodeSpec { kind, name, parent };
    let mut nodes = vec![
        node(NodeKind::Machine, "m0".to_owned(), None),
        node(NodeKind::Cpu, "m0/cpu".to_owned(), Some(0)),
        node(NodeKind::Switch, "m0/nvswitch".to_owned(), Some(0)),
    ];
    let (cpu, switch) = (1, 2);
    let (mut ports, mut links, mut seats) = (Vec::new(), Vec::new(), Vec::new());
    let mut join = |ports: &mut Vec<PortSpec>, ends: [(u32, String); 2], attrs| {
        let a = ports.len() as u32;
        ports.extend(ends.map(|(node, name)| PortSpec { node, name, side: Side::Plain }));
        links.push(LinkSpec { a, b: a + 1, attrs });
    };
    for idx in 0..SEATS {
        let gpu = nodes.len() as u32;
        nodes.push(node(NodeKind::Chip, format!("gpu{idx}"), Some(0)));
        seats.push(gpu);
        let ends = [(gpu, format!("gpu{idx}/nvlink")), (switch, format!("m0/nvswitch/{idx}"))];
        join(&mut ports, ends, NVLINK);
        let ends = [(gpu, format!("gpu{idx}/pcie")), (cpu, format!("m0/cpu/gpu{idx}"))];
        join(&mut ports, ends, PCIE);
    }
    for idx in 0..SEATS {
        let nic = nodes.len() as u32;
        nodes.push(node(NodeKind::Nic, format!("nic{idx}"), Some(0)));
        let ends = [(nic, format!("nic{idx}/pcie")), (cpu, format!("m0/cpu/nic{idx}"))];
        join(&mut ports, ends, PCIE);
        let name = format!("nic{idx}/port");
        ports.push(PortSpec { node: nic, name, side: Side::Plain });
    }
    Template::new("host", Role::Compute, nodes, ports, links, seats)
        .expect("8 seats, and every port linked at most once")
}
