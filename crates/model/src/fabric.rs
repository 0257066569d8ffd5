//! The fabric: nodes, ports and directed links, with equal inner structure stored once.
//!
//! A fabric is a list of *parts* (a cube, a host, a board, a switch), each an instance of a
//! [`Template`], and of *cables* between ports of different parts.  Ids are running numbers over
//! all parts in the order in which they were added, so 12,500 equal hosts cost one template and a
//! few words each.  An id, once given, never names another thing: retiring leaves a hole.
//!
//! Links are directed and come in pairs: the reverse of link `2k` is `2k + 1`.  Two nodes may
//! have several links; a port has one.  What is up, degraded or drained is not said here.

mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use template::{LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template, TemplateError};

use crate::fault::Target;
use crate::hardware::Thresholds;
use crate::id::{DomainId, LinkId, NodeId, PartId, PoolId, PortId, TemplateId};
use crate::limits;
use crate::table::{Id as _, IdVec};
use crate::unit::{BitRate, CentiDb, Span};

/// What a link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// Between chips inside a part, on copper.
    Ici,
    /// A fibre from a part to an optical switch.
    Fibre,
    /// Between a chip or NIC and its CPU.
    Pcie,
    /// Between accelerators of one host.
    NvLink,
    /// A cable of a packet network.
    Ethernet,
    /// A cable between boards.
    Board,
    /// Between the CPU sockets of one host.
    Socket,
}

impl LinkKind {
    /// Whether its ends are measured and asked as those of a network are: PCIe lanes are measured
    /// at the device that they serve, and what joins sockets is the machine's own.
    pub const fn is_network(self) -> bool {
        match self {
            LinkKind::Ici
            | LinkKind::Fibre
            | LinkKind::NvLink
            | LinkKind::Ethernet
            | LinkKind::Board => true,
            LinkKind::Pcie | LinkKind::Socket => false,
        }
    }
}

/// What every link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAttrs {
    /// How much passes in this direction.
    pub capacity: BitRate,
    /// How long a bit takes.
    pub latency: Span,
    /// What it is made of.
    pub kind: LinkKind,
}

/// One directed link as a reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leaves.
    pub source: PortId,
    /// Where it arrives.
    pub target: PortId,
    /// Capacity, latency and kind.
    pub attrs: LinkAttrs,
}

/// A cable between ports of two parts: two directed links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// One end.
    pub a: PortId,
    /// The other end.
    pub b: PortId,
    /// The same in both directions.
    pub attrs: LinkAttrs,
    /// The loss that the installation was measured or planned with.
    pub loss_expected: CentiDb,
    /// Whether it has been taken out.
    pub retired: bool,
}

/// What makes things fail together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DomainKind {
    /// One rack.
    Rack,
    /// One power feed.
    Power,
    /// One cooling loop.
    Cooling,
    /// One network plane.
    Plane,
}

/// Things that fail together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// For people.
    pub name: String,
    /// What they share.
    pub kind: DomainKind,
}

/// Something wrong with the file that an inner structure was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// The rule that found it, by a number that stays.
    pub rule: u16,
    /// The rule's name.
    pub name: &'static str,
    /// Whether a part with such a file is not to be used; else it is worth a warning.
    pub is_error: bool,
    /// Where and what.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// One instance of a template.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name, unique in the fabric.
    pub name: Box<str>,
    /// Its inner structure.
    pub template: TemplateId,
    /// The set of parts that one set of switches can join; none for a part of its own.
    pub pool: Option<PoolId>,
    /// Whether it has been taken out.
    pub retired: bool,
    domains: (u32, u32),
    node_base: u32,
    port_base: u32,
    link_base: u32,
}

/// Where a run of link ids comes from.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u32,
    from: RunFrom,
}

#[derive(Clone, Copy, Debug)]
enum RunFrom {
    Part(PartId),
    Cables(u32),
}

/// Why a thing cannot be added to a fabric.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FabricError {
    /// Names are how people and files point at parts.
    #[error("{name} stands twice in the fabric; give the second another name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A port has one link.
    #[error("port {port} is cabled twice: it already leads to {other}; use a free port")]
    PortCabled {
        /// The port's path.
        port: String,
        /// Where its first cable leads.
        other: String,
    },
    /// An id beyond the table.
    #[error("the fabric has no port {port}; it has {n_ports}")]
    NoPort {
        /// The id asked for.
        port: PortId,
        /// How many there are.
        n_ports: usize,
    },
    /// More than the tables hold.
    #[error("the fabric would have more than {max} {what}; split it")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}

/// The modelled hardware as a graph.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// What healthy hardware of this plant is measured against.
    pub thresholds: Thresholds,
    templates: IdVec<TemplateId, Arc<Template>>,
    parts: IdVec<PartId, Part>,
    pools: IdVec<PoolId, String>,
    domains: IdVec<DomainId, Domain>,
    part_domains: Vec<DomainId>,
    names: BTreeMap<Box<str>, PartId>,
    cables: Vec<Cable>,
    /// The cable at each port, or `NO_CABLE`; as long as there are ports.
    cable_at: Vec<u32>,
    runs: Vec<Run>,
    n_nodes: u32,
    n_links: u32,
    /// What is wrong with the file of a template, of those that are from one with faults.
    file_faults: BTreeMap<TemplateId, Arc<[FileFault]>>,
}

const NO_CABLE: u32 = u32::MAX;

impl Fabric {
    /// A fabric without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an inner structure that parts may share.
    pub fn add_template(&mut self, template: Template) -> TemplateId {
        self.templates.push(Arc::new(template))
    }

    /// Says what is wrong with the file that `template` was read from, in place of what was said
    /// before.
    pub fn set_file_faults(&mut self, template: TemplateId, faults: Vec<FileFault>) {
        if faults.is_empty() {
            self.file_faults.remove(&template);
        } else {
            self.file_faults.insert(template, faults.into());
        }
    }

    /// What is wrong with the file that the inner structure of `part` was read from.
    pub fn file_faults_of(&self, part: PartId) -> &[FileFault] {
        self.file_faults.get(&self.parts[part].template).map_or(&[], |it| it)
    }

    /// Adds a set of parts that one set of switches can join.
    pub fn add_pool(&mut self, name: impl Into<String>) -> PoolId {
        self.pools.push(name.into())
    }

    /// Adds a failure domain.
    pub fn add_domain(&mut self, name: impl Into<String>, kind: DomainKind) -> DomainId {
        self.domains.push(Domain { name: name.into(), kind })
    }

    /// Adds one instance of `template` and returns its id.
    ///
    /// # Errors
    /// [`FabricError::NameTaken`], [`FabricError::TooLarge`].
    pub fn add_part(
        &mut self,
        name: impl Into<Box<str>>,
        template: TemplateId,
        pool: Option<PoolId>,
        domains: &[DomainId],
    ) -> Result<PartId, FabricError> {
        let name = name.into();
        if self.names.contains_key(&name) {
            return Err(FabricError::NameTaken { name: name.into() });
        }
        let shape = &self.templates[template];
        let too_large = |what| FabricError::TooLarge { what, max: limits::TABLE_MAX };
        let n_nodes = self.n_nodes as usize + shape.nodes().len();
        let n_ports = self.cable_at.len() + shape.ports().len();
        let n_links = self.n_links as usize + shape.n_links();
        if limits::TABLE_MAX < n_nodes || limits::TABLE_MAX < n_ports || limits::TABLE_MAX < n_links
        {
            return Err(too_large("nodes, ports or links"));
        }
        let first_domain = index(self.part_domains.len());
        self.part_domains.extend_from_slice(domains);
        let part = Part {
            name: name.clone(),
            template,
            pool,
            retired: false,
            domains: (first_domain, index(self.part_domains.len())),
            node_base: self.n_nodes,
            port_base: index(self.cable_at.len()),
            link_base: self.n_links,
        };
        let has_links = shape.n_links() != 0;
        self.n_nodes = index(n_nodes);
        self.n_links = index(n_links);
        self.cable_at.resize(n_ports, NO_CABLE);
        let start = part.link_base;
        let id = self.parts.push(part);
        if has_links {
            self.runs.push(Run { start, from: RunFrom::Part(id) });
        }
        self.names.insert(name, id);
        Ok(id)
    }

    /// Makes room for `n` more cables at once.
    pub fn reserve_cables(&mut self, n: usize) {
        self.cables.reserve_exact(n);
    }

    /// Joins two ports and returns the link from `a` to `b`; the link back is its reverse.
    ///
    /// # Errors
    /// [`FabricError::NoPort`], [`FabricError::PortCabled`], [`FabricError::TooLarge`].
    pub fn add_cable(
        &mut self,
        a: PortId,
        b: PortId,
        attrs: LinkAttrs,
        loss_expected: CentiDb,
    ) -> Result<LinkId, FabricError> {
        for port in [a, b] {
            if self.n_ports() <= port.idx() {
                return Err(FabricError::NoPort { port, n_ports: self.n_ports() });
            }
            if let Some(link) = self.link_from(port) {
                let other = self.link(link).target;
                return Err(FabricError::PortCabled {
                    port: self.port_path(port),
                    other: self.port_path(other),
                });
            }
        }
        if a == b {
            let port = self.port_path(a);
            return Err(FabricError::PortCabled { other: port.clone(), port });
        }
        if limits::TABLE_MAX < self.n_links as usize + 2 {
            return Err(FabricError::TooLarge { what: "links", max: limits::TABLE_MAX });
        }
        let cable_idx = index(self.cables.len());
        if !matches!(self.runs.last(), Some(Run { from: RunFrom::Cables(_), .. })) {
            self.runs.push(Run { start: self.n_links, from: RunFrom::Cables(cable_idx) });
        }
        self.cables.push(Cable { a, b, attrs, loss_expected, retired: false });
        self.cable_at[a.idx()] = cable_idx;
        self.cable_at[b.idx()] = cable_idx;
        let link = LinkId::new(self.n_links);
        self.n_links += 2;
        Ok(link)
    }

    /// Puts `part` into these failure domains and no others.
    pub fn move_part(&mut self, part: PartId, domains: &[DomainId]) {
        if self.domains_of(part) == domains {
            return;
        }
        let start = index(self.part_domains.len());
        self.part_domains.extend_from_slice(domains);
        self.parts[part].domains = (start, index(self.part_domains.len()));
    }

    /// Notes the loss that the cable at `port` was measured or planned with; a port without a
    /// cable is left alone.
    pub fn note_loss(&mut self, port: PortId, loss_expected: CentiDb) {
        if let Some(cable) = self.cables.get_mut(self.cable_at[port.idx()] as usize) {
            cable.loss_expected = loss_expected;
        }
    }

    /// Takes a part out, with the cables that end on it.  Its ids stay its own for ever; its
    /// name is free again, for what stands in its place next.
    pub fn retire_part(&mut self, part: PartId) {
        self.parts[part].retired = true;
        let name = &self.parts[part].name;
        if self.names.get(name) == Some(&part) {
            self.names.remove(name);
        }
        for port in self.ports_of(part) {
            self.retire_cable_at(port);
        }
    }

    /// Takes out the cable at `port`, if there is one; both ports are free again.
    pub fn retire_cable_at(&mut self, port: PortId) {
        let cable_idx = self.cable_at[port.idx()];
        let Some(cable) = self.cables.get_mut(cable_idx as usize) else { return };
        cable.retired = true;
        let (a, b) = (cable.a, cable.b);
        self.cable_at[a.idx()] = NO_CABLE;
        self.cable_at[b.idx()] = NO_CABLE;
    }

    /// How many nodes there are, retired ones included.
    pub fn n_nodes(&self) -> usize {
        self.n_nodes as usize
    }

    /// How many ports there are, retired ones included.
    pub fn n_ports(&self) -> usize {
        self.cable_at.len()
    }

    /// How many directed links there are, retired ones included.
    pub fn n_links(&self) -> usize {
        self.n_links as usize
    }

    /// All parts, retired ones included.
    pub fn parts(&self) -> &IdVec<PartId, Part> {
        &self.parts
    }

    /// One part.
    pub fn part(&self, part: PartId) -> &Part {
        &self.parts[part]
    }

    /// All pools by name.
    pub fn pools(&self) -> &IdVec<PoolId, String> {
        &self.pools
    }

    /// All failure domains.
    pub fn domains(&self) -> &IdVec<DomainId, Domain> {
        &self.domains
    }

    /// The failure domains that `part` belongs to.
    pub fn domains_of(&self, part: PartId) -> &[DomainId] {
        let (start, end) = self.parts[part].domains;
        &self.part_domains[start as usize..end as usize]
    }

    /// The inner structure of `part`.
    pub fn template_of(&self, part: PartId) -> &Template {
        &self.templates[self.parts[part].template]
    }

    /// All templates.
    pub fn templates(&self) -> &IdVec<TemplateId, Arc<Template>> {
        &self.templates
    }

    /// All cables in the order of their links, retired ones included.
    pub fn cables(&self) -> &[Cable] {
        &self.cables
    }

    /// The part called `name`.
    pub fn part_named(&self, name: &str) -> Option<PartId> {
        self.names.get(name).copied()
    }

    /// The part that `node` lies in.
    pub fn part_of_node(&self, node: NodeId) -> PartId {
        let after = self.parts.as_slice().partition_point(|it| it.node_base <= node.number());
        PartId::at(after - 1)
    }

    /// The part that `port` lies on.
    pub fn part_of_port(&self, port: PortId) -> PartId {
        let after = self.parts.as_slice().partition_point(|it| it.port_base <= port.number());
        PartId::at(after - 1)
    }

    /// The node at place `local` of `part`'s template.
    pub fn node_at(&self, part: PartId, local: usize) -> NodeId {
        debug_assert!(local < self.template_of(part).nodes().len(), "{local} in {part}");
        NodeId::at(self.parts[part].node_base as usize + local)
    }

    /// The port at place `local` of `part`'s template.
    pub fn port_at(&self, part: PartId, local: usize) -> PortId {
        debug_assert!(local < self.template_of(part).ports().len(), "{local} in {part}");
        PortId::at(self.parts[part].port_base as usize + local)
    }

    /// The inner link at place `local` of `part`'s template.
    pub fn link_at(&self, part: PartId, local: usize) -> LinkId {
        debug_assert!(local < self.template_of(part).n_links(), "{local} in {part}");
        LinkId::at(self.parts[part].link_base as usize + local)
    }

    /// The place of `node` in its part's template.
    pub fn node_local(&self, node: NodeId) -> (PartId, usize) {
        let part = self.part_of_node(node);
        (part, node.idx() - self.parts[part].node_base as usize)
    }

    /// The place of `port` in its part's template.
    pub fn port_local(&self, port: PortId) -> (PartId, usize) {
        let part = self.part_of_port(port);
        (part, port.idx() - self.parts[part].port_base as usize)
    }

    /// The place of `link` in its part's template, or `None` for a cable.
    pub fn link_local(&self, link: LinkId) -> Option<(PartId, usize)> {
        match self.run_of(link) {
            (RunFrom::Part(part), offset) => Some((part, offset)),
            (RunFrom::Cables(_), _) => None,
        }
    }

    /// What `node` is.
    pub fn node(&self, node: NodeId) -> &NodeSpec {
        let (part, local) = self.node_local(node);
        &self.template_of(part).nodes()[local]
    }

    /// What holds `node`: the machine of a chip, for one.
    pub fn parent_of(&self, node: NodeId) -> Option<NodeId> {
        let (part, local) = self.node_local(node);
        let parent = self.template_of(part).nodes()[local].parent?;
        Some(self.node_at(part, parent as usize))
    }

    /// The node that `port` sits on.
    pub fn node_of_port(&self, port: PortId) -> NodeId {
        let (part, local) = self.port_local(port);
        self.node_at(part, self.template_of(part).ports()[local].node as usize)
    }

    /// All nodes of `part`.
    pub fn nodes_of(&self, part: PartId) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        let base = self.parts[part].node_base;
        (base..base + index(self.template_of(part).nodes().len())).map(NodeId::new)
    }

    /// All ports of `part`.
    pub fn ports_of(&self, part: PartId) -> impl DoubleEndedIterator<Item = PortId> + use<> {
        let base = self.parts[part].port_base;
        (base..base + index(self.template_of(part).ports().len())).map(PortId::new)
    }

    /// The directed link that leaves `port`, if one does.
    pub fn link_from(&self, port: PortId) -> Option<LinkId> {
        let cable_idx = self.cable_at[port.idx()];
        if cable_idx != NO_CABLE {
            let forward = self.cable_link(cable_idx as usize);
            let from_a = self.cables[cable_idx as usize].a == port;
            return Some(if from_a { forward } else { self.reverse(forward) });
        }
        let (part, local) = self.port_local(port);
        let inner = self.template_of(part).link_from(local)?;
        Some(self.link_at(part, inner))
    }

    /// The cable at `port`, if there is one.
    pub fn cable_at(&self, port: PortId) -> Option<&Cable> {
        self.cables.get(self.cable_at[port.idx()] as usize)
    }

    /// The port at the other end of the link that leaves `port`.
    pub fn peer_of(&self, port: PortId) -> Option<PortId> {
        if let Some(cable) = self.cable_at(port) {
            return Some(if cable.a == port { cable.b } else { cable.a });
        }
        let (part, local) = self.port_local(port);
        let template = self.template_of(part);
        let inner = template.link_from(local)?;
        Some(self.port_at(part, template.link(inner).1 as usize))
    }

    /// One directed link.
    pub fn link(&self, link: LinkId) -> Link {
        match self.run_of(link) {
            (RunFrom::Part(part), offset) => {
                let (source, target, attrs) = self.template_of(part).link(offset);
                Link {
                    source: self.port_at(part, source as usize),
                    target: self.port_at(part, target as usize),
                    attrs,
                }
            }
            (RunFrom::Cables(first), offset) => {
                let cable = &self.cables[first as usize + offset / 2];
                let (source, target) =
                    if offset % 2 == 0 { (cable.a, cable.b) } else { (cable.b, cable.a) };
                Link { source, target, attrs: cable.attrs }
            }
        }
    }

    /// The link in the other direction.
    pub fn reverse(&self, link: LinkId) -> LinkId {
        LinkId::new(link.number() ^ 1)
    }

    /// Whether `link` has been taken out.
    pub fn link_retired(&self, link: LinkId) -> bool {
        match self.run_of(link) {
            (RunFrom::Part(part), _) => self.parts[part].retired,
            (RunFrom::Cables(first), offset) => self.cables[first as usize + offset / 2].retired,
        }
    }

    /// The links that leave `node`.
    pub fn links_from(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        let (part, local) = self.node_local(node);
        self.template_of(part)
            .ports_on(local)
            .iter()
            .filter_map(move |&port| self.link_from(self.port_at(part, port as usize)))
    }

    /// `cube17/m03`: the part's name, then the node's; the part's name alone for its first node
    /// without a name.
    pub fn node_path(&self, node: NodeId) -> String {
        let (part, local) = self.node_local(node);
        join(&self.parts[part].name, &self.template_of(part).nodes()[local].name)
    }

    /// `cube17/x/in/7`: the part's name, then the port's.
    pub fn port_path(&self, port: PortId) -> String {
        let (part, local) = self.port_local(port);
        join(&self.parts[part].name, &self.template_of(part).ports()[local].name)
    }

    /// What people call `target`: a link goes by the port that it leaves.
    pub fn path(&self, target: Target) -> String {
        match target {
            Target::Part(part) => self.parts[part].name.to_string(),
            Target::Node(node) => self.node_path(node),
            Target::Port(port) => self.port_path(port),
            Target::Link(link) => self.port_path(self.link(link).source),
        }
    }

    /// What `path` names: a part, a node or a port; `None` where there is no such thing.
    pub fn find(&self, path: &str) -> Option<Target> {
        // A part's name may itself hold slashes (`pod1/x5`): the longest part name wins.
        let mut end = path.len();
        loop {
            if let Some(part) = self.part_named(&path[..end]) {
                let rest = path[end..].trim_start_matches('/');
                if rest.is_empty() {
                    return Some(Target::Part(part));
                }
                let template = self.template_of(part);
                if let Some(local) = template.node_named(rest) {
                    return Some(Target::Node(self.node_at(part, local)));
                }
                if let Some(local) = template.port_named(rest) {
                    return Some(Target::Port(self.port_at(part, local)));
                }
            }
            end = path[..end].rfind('/')?;
        }
    }

    /// Walks every table once and holds the invariants that readers rely on; returns how many
    /// links were looked at.
    ///
    /// # Panics
    /// If an invariant is broken, which is a bug here and never bad input.
    pub fn audit(&self) -> usize {
        let mut n_links = 0;
        for (part_id, part) in self.parts.pairs() {
            n_links += self.templates[part.template].n_links();
            for domain in self.domains_of(part_id) {
                assert!(domain.idx() < self.domains.len(), "{domain} of {part_id}");
            }
        }
        for (cable_idx, cable) in self.cables.iter().enumerate() {
            n_links += 2;
            assert!(cable.a != cable.b, "cable {cable_idx} has one end");
            for port in [cable.a, cable.b] {
                assert!(port.idx() < self.n_ports(), "{port} of cable {cable_idx}");
                let is_here = self.cable_at[port.idx()] as usize == cable_idx;
                assert!(is_here != cable.retired, "{port} of cable {cable_idx}");
            }
        }
        assert_eq!(n_links, self.n_links());
        for pair in self.runs.windows(2) {
            assert!(pair[0].start < pair[1].start, "runs out of order");
        }
        n_links
    }

    fn cable_link(&self, cable_idx: usize) -> LinkId {
        // Cables of later runs lie after the parts that were added in between.
        let run = self
            .runs
            .iter()
            .rev()
            .find(|run| matches!(run.from, RunFrom::Cables(first) if first as usize <= cable_idx))
            .expect("a cable lies in a run");
        let RunFrom::Cables(first) = run.from else { unreachable!("found by that") };
        LinkId::at(run.start as usize + 2 * (cable_idx - first as usize))
    }

    fn run_of(&self, link: LinkId) -> (RunFrom, usize) {
        assert!(link.idx() < self.n_links(), "{link} of {}", self.n_links);
        let after = self.runs.partition_point(|it| it.start <= link.number());
        let run = self.runs[after - 1];
        (run.from, link.idx() - run.start as usize)
    }
}

fn index(n: usize) -> u32 {
    PartId::from_idx(n).number()
}

fn join(part: &str, rest: &str) -> String {
    if rest.is_empty() { part.to_owned() } else { format!("{part}/{rest}") }
}

#[cfg(test)]
mod tests;
