//! The inner structure that equal parts share.

use crate::fabric::LinkAttrs;
use crate::limits;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// An accelerator chip that computes.
    Chip,
    /// A computer with its accelerators: what a person pulls out of a rack.
    Machine,
    /// A tray of accelerators inside a machine.
    Tray,
    /// A CPU socket or CPU tray.
    Cpu,
    /// A network interface card.
    Nic,
    /// A switch, optical, packet or PCIe.
    Switch,
}

/// What a part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Jobs run on it.
    Compute,
    /// It joins one port to another, as told.
    CircuitSwitch,
    /// It forwards packets.
    PacketSwitch,
}

/// Which side of a circuit switch a port is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Not on a circuit switch.
    Plain,
    /// A cross-connect begins here.
    North,
    /// A cross-connect ends here.
    South,
}

/// A node of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// What it is.
    pub kind: NodeKind,
    /// Its name inside the part; empty for a part that is one node.
    pub name: String,
    /// The node that holds it, by place; always an earlier one.
    pub parent: Option<u32>,
}

/// A port of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The node that it sits on, by place.
    pub node: u32,
    /// Its name inside the part.
    pub name: String,
    /// Which side of a circuit switch.
    pub side: Side,
}

/// A pair of directed links between two ports of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// One end, by place.
    pub a: u32,
    /// The other end, by place.
    pub b: u32,
    /// The same in both directions.
    pub attrs: LinkAttrs,
}

/// Why a template cannot be built.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TemplateError {
    /// A job's hold on a part is a 64-bit mask.
    #[error("template {name} has more than {max} seats; cut the part into smaller ones")]
    TooManySeats {
        /// The template.
        name: String,
        /// The limit.
        max: usize,
    },
    /// A port has one link.
    #[error("port {port} of template {name} has two links")]
    PortLinkedTwice {
        /// The template.
        name: String,
        /// The port's name.
        port: String,
    },
}

/// The inner structure of equal parts: nodes, ports, links, and the *seats* on which a job can
/// be placed, numbered 0..64 so that a hold is a `u64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// For people: `cube`, `ocs`, `host`.
    pub name: String,
    /// What such parts are for.
    pub role: Role,
    nodes: Vec<NodeSpec>,
    ports: Vec<PortSpec>,
    links: Vec<LinkSpec>,
    /// The node of each seat.
    seats: Vec<u32>,
    /// The seats in and under each node.
    seats_under: Vec<u64>,
    /// The directed link that leaves each port, or `NONE`.
    link_at: Vec<u32>,
    /// The network ports, ascending.
    network_ports: Vec<u32>,
    /// Ports sorted by node, and where each node's ports start.
    port_order: Vec<u32>,
    port_start: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Template {
    /// Builds a template from its lists; `seats` are nodes by place, in the order of the mask.
    ///
    /// # Errors
    /// [`TemplateError`].
    ///
    /// # Panics
    /// If a place lies beyond its list, or a parent after its child.
    pub fn new(
        name: impl Into<String>,
        role: Role,
        nodes: Vec<NodeSpec>,
        ports: Vec<PortSpec>,
        links: Vec<LinkSpec>,
        seats: Vec<u32>,
    ) -> Result<Self, TemplateError> {
        let name = name.into();
        if limits::SEATS_MAX < seats.len() {
            return Err(TemplateError::TooManySeats { name, max: limits::SEATS_MAX });
        }
        let mut seats_under = vec![0u64; nodes.len()];
        for (seat, &node) in seats.iter().enumerate() {
            seats_under[node as usize] |= 1 << seat;
        }
        for (node_idx, node) in nodes.iter().enumerate().rev() {
            let Some(parent) = node.parent else { continue };
            assert!((parent as usize) < node_idx, "{name}: a parent stands before its children");
            seats_under[parent as usize] |= seats_under[node_idx];
        }
        let mut link_at = vec![NONE; ports.len()];
        for (link_idx, link) in links.iter().enumerate() {
            for (port, directed) in [(link.a, 2 * link_idx), (link.b, 2 * link_idx + 1)] {
                if link_at[port as usize] != NONE {
                    let port = ports[port as usize].name.clone();
                    return Err(TemplateError::PortLinkedTwice { name, port });
                }
                link_at[port as usize] = place(directed);
            }
        }
        let is_network = |port: &u32| match link_at[*port as usize] {
            NONE => true,
            link => links[link as usize / 2].attrs.kind.is_network(),
        };
        let network_ports = (0..place(ports.len())).filter(is_network).collect();
        let mut port_order: Vec<u32> = (0..place(ports.len())).collect();
        port_order.sort_by_key(|&port| ports[port as usize].node);
        let port_start = (0..=place(nodes.len()))
            .map(|node| place(port_order.partition_point(|&port| ports[port as usize].node < node)))
            .collect();
        Ok(Self {
            name,
            role,
            nodes,
            ports,
            links,
            seats,
            seats_under,
            link_at,
            network_ports,
            port_order,
            port_start,
        })
    }

    /// All nodes.
    pub fn nodes(&self) -> &[NodeSpec] {
        &self.nodes
    }

    /// All ports.
    pub fn ports(&self) -> &[PortSpec] {
        &self.ports
    }

    /// All links, a pair of directions each.
    pub fn link_pairs(&self) -> &[LinkSpec] {
        &self.links
    }

    /// How many directed links there are.
    pub fn n_links(&self) -> usize {
        2 * self.links.len()
    }

    /// Source, target and attributes of one directed link, by place.
    pub fn link(&self, directed: usize) -> (u32, u32, LinkAttrs) {
        let link = &self.links[directed / 2];
        if directed.is_multiple_of(2) {
            (link.a, link.b, link.attrs)
        } else {
            (link.b, link.a, link.attrs)
        }
    }

    /// The directed inner link that leaves `port`.
    pub fn link_from(&self, port: usize) -> Option<usize> {
        let link = self.link_at[port];
        (link != NONE).then_some(link as usize)
    }

    /// The network ports in order: those whose light and errors are measured before a job starts
    /// and that are asked what they see, wherever they stand among the others.  A port is one if it
    /// leads out of the part, or into it by a link of a network, which
    /// [`LinkKind::is_network`](crate::fabric::LinkKind::is_network) tells.
    pub fn network_ports(&self) -> &[u32] {
        &self.network_ports
    }

    /// The place of a port among the network ports, if it is one.
    pub fn network_place(&self, port: usize) -> Option<usize> {
        self.network_ports.binary_search(&u32::try_from(port).ok()?).ok()
    }

    /// The ports on `node`, by place.
    pub fn ports_on(&self, node: usize) -> &[u32] {
        &self.port_order[self.port_start[node] as usize..self.port_start[node + 1] as usize]
    }

    /// The node of each seat, by place.
    pub fn seats(&self) -> &[u32] {
        &self.seats
    }

    /// All seats as a mask.
    pub fn all_seats(&self) -> u64 {
        match self.seats.len() {
            limits::SEATS_MAX => u64::MAX,
            n => (1 << n) - 1,
        }
    }

    /// The seats in and under `node`, as a mask.
    pub fn seats_under(&self, node: usize) -> u64 {
        self.seats_under[node]
    }

    /// The seats at both ends of a directed inner link.  A job that holds `mask` uses the link
    /// exactly if it holds all of these: an end without a seat (a CPU) belongs to whoever holds
    /// the other.
    pub fn seats_of_link(&self, directed: usize) -> u64 {
        let link = &self.links[directed / 2];
        let end = |port: u32| self.seats_under[self.ports[port as usize].node as usize];
        end(link.a) | end(link.b)
    }

    /// The node called `name`.
    pub fn node_named(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|it| it.name == name)
    }

    /// The port called `name`.
    pub fn port_named(&self, name: &str) -> Option<usize> {
        self.ports.iter().position(|it| it.name == name)
    }
}

fn place(n: usize) -> u32 {
    u32::try_from(n).expect("limits keep every table below 2^32")
}
