//! The hosts of a fabric and how many hops lie between them.
//!
//! A host is what is lost as a whole: a machine of a part of several (a TPUv4 cube), else the whole
//! part (a server, a board).  A hop is a link from one host or packet switch to the next, so two
//! hosts that are cabled to each other are one hop apart, and two at one switch are two.  What a
//! circuit switch would join is not counted: its mirrors turn with every job.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::fabric::{DomainKind, Fabric, NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{DomainId, NodeId, PartId};

use crate::graph::Graph;

/// What is lost as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// The part.
    pub part: PartId,
    /// The machine in it, where the part has several.
    pub machine: Option<NodeId>,
}

impl Host {
    /// The host that `target` is, or lies in; `None` for what is no part of one.
    pub fn of(fabric: &Fabric, target: Target) -> Option<Self> {
        let part = match target {
            Target::Part(part) => part,
            Target::Node(node) => fabric.part_of_node(node),
            Target::Port(_) | Target::Link(_) => return None,
        };
        if fabric.template_of(part).role != Role::Compute {
            return None;
        }
        if is_one(fabric, part) {
            return Some(Self { part, machine: None });
        }
        let Target::Node(node) = target else { return None };
        match of_several(fabric, part, node) {
            Vertex::Host(host) => Some(host),
            Vertex::Between(..) => None,
        }
    }

    /// What is drained where the host is.
    pub fn target(self) -> Target {
        self.machine.map_or(Target::Part(self.part), Target::Node)
    }

    /// What people call it: `host7`, `board0.3`, `cube17/m03`.
    pub fn path(self, fabric: &Fabric) -> String {
        match self.machine {
            Some(node) => fabric.node_path(node),
            None => fabric.part(self.part).name.to_string(),
        }
    }
}

/// Hosts, the packet switches between them, and the links.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The hosts that are there and live, in the order of the fabric.
    pub hosts: Vec<Host>,
    /// The graph of hosts, which come first, and of all else that passes on.
    pub graph: Graph,
    /// What each vertex of the graph is called.
    pub names: Vec<String>,
    /// The failure domains of each host.
    domains: Vec<Vec<(DomainKind, DomainId)>>,
}

/// A machine of `part` and everything in it, or what lies beside the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Vertex {
    Host(Host),
    /// A packet switch, or a node beside the machines of a part of several.
    Between(PartId, Option<NodeId>),
}

impl Hosts {
    /// All hosts of `fabric` that are there and live, with what joins them.
    pub fn of(fabric: &Fabric, is_live: impl Fn(Host) -> bool) -> Self {
        let parts = fabric.parts().pairs().filter(|it| !it.1.retired).map(|it| it.0);
        Self::of_parts(fabric, parts, is_live)
    }

    /// The hosts of these parts that are live, with what joins them; a dead host passes nothing on.
    pub fn of_parts(
        fabric: &Fabric,
        parts: impl Iterator<Item = PartId>,
        is_live: impl Fn(Host) -> bool,
    ) -> Self {
        let mut vertices: Vec<(Vertex, NodeId)> = Vec::new();
        for part in parts {
            let template = fabric.template_of(part);
            if template.role == Role::CircuitSwitch {
                continue;
            }
            let is_one = is_one(fabric, part);
            for node in fabric.nodes_of(part) {
                let vertex = match template.role {
                    Role::Compute if is_one => Vertex::Host(Host { part, machine: None }),
                    Role::Compute => of_several(fabric, part, node),
                    Role::PacketSwitch | Role::CircuitSwitch => Vertex::Between(part, None),
                };
                if !matches!(vertex, Vertex::Host(host) if !is_live(host)) {
                    vertices.push((vertex, node));
                }
            }
        }
        Self::of_vertices(fabric, vertices)
    }

    /// The vertex of each node, hosts first, and the links between them.
    fn of_vertices(fabric: &Fabric, nodes: Vec<(Vertex, NodeId)>) -> Self {
        let vertices: BTreeSet<Vertex> = nodes.iter().map(|it| it.0).collect();
        let places: BTreeMap<Vertex, u32> = vertices.iter().copied().zip(0..).collect();
        let place_of: BTreeMap<NodeId, u32> =
            nodes.iter().map(|(vertex, node)| (*node, places[vertex])).collect();
        let graph = Graph::of_links(places.len(), links(fabric, &place_of));
        let (mut hosts, mut names) = (Vec::new(), Vec::new());
        for vertex in vertices {
            match vertex {
                Vertex::Host(host) => {
                    hosts.push(host);
                    names.push(host.path(fabric));
                }
                Vertex::Between(_, Some(node)) => names.push(fabric.node_path(node)),
                Vertex::Between(part, None) => names.push(fabric.part(part).name.to_string()),
            }
        }
        let kinds = |host: &Host| {
            let domains = fabric.domains_of(host.part).iter();
            domains.map(|it| (fabric.domains()[*it].kind, *it)).collect()
        };
        let domains = hosts.iter().map(kinds).collect();
        Self { hosts, graph, names, domains }
    }

    /// How many there are.
    pub fn n(&self) -> usize {
        self.hosts.len()
    }

    /// The first failure domain of `kind` that `host` belongs to.
    pub fn domain(&self, host: usize, kind: DomainKind) -> Option<DomainId> {
        self.domains[host].iter().find(|it| it.0 == kind).map(|it| it.1)
    }

    /// Whether a vertex of the graph is a host.
    pub fn is_host(&self, vertex: u32) -> bool {
        (vertex as usize) < self.n()
    }
}

/// Whether a part is one host: it has no machine but itself, or one.
fn is_one(fabric: &Fabric, part: PartId) -> bool {
    let nodes = fabric.template_of(part).nodes().iter();
    nodes.filter(|it| it.kind == NodeKind::Machine).count() < 2
}

/// What a node of a part of several machines belongs to.
fn of_several(fabric: &Fabric, part: PartId, node: NodeId) -> Vertex {
    let mut up = Some(node);
    while let Some(node) = up {
        if fabric.node(node).kind == NodeKind::Machine {
            return Vertex::Host(Host { part, machine: Some(node) });
        }
        up = fabric.parent_of(node);
    }
    Vertex::Between(part, Some(node))
}

/// The links from one vertex to another, parallel ones as one.
fn links(fabric: &Fabric, place_of: &BTreeMap<NodeId, u32>) -> Vec<[u32; 2]> {
    let mut links = Vec::new();
    for (&node, &a) in place_of {
        for link in fabric.links_from(node) {
            let peer = fabric.node_of_port(fabric.link(link).target);
            // Each link is met from both of its ends.
            if let Some(&b) = place_of.get(&peer)
                && a < b
            {
                links.push([a, b]);
            }
        }
    }
    links.sort_unstable();
    links.dedup();
    links
}
