//! What each kind of fault can happen to, and how one of them is drawn.

use selvedge_model::fabric::{Fabric, NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{LinkId, NodeId, PartId, PortId};

use crate::device::Plant;
use crate::fault::FaultKind;

/// How often a draw that hits something retired or faulty already is repeated.
const DRAWS: usize = 64;

/// What faults can happen to, counted once for each fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Things {
    machines: Vec<Target>,
    chips: Vec<Target>,
    links: Vec<Target>,
    switches: Vec<Target>,
    circuits: Vec<Target>,
    switch_ports: Vec<Target>,
    fibre_ends: Vec<Target>,
    parts: Vec<Target>,
}

impl Things {
    fn of(&self, kind: FaultKind) -> &[Target] {
        match kind {
            FaultKind::MachineDown => &self.machines,
            FaultKind::ChipFailed
            | FaultKind::PcieDegraded
            | FaultKind::LatentIntent
            | FaultKind::LatentExercise => &self.chips,
            FaultKind::LinkDown | FaultKind::LinkFlapping | FaultKind::LinkDegraded => &self.links,
            FaultKind::SwitchDown => &self.switches,
            FaultKind::PortFailed | FaultKind::PortLossHigh => &self.switch_ports,
            FaultKind::Miswired => &self.fibre_ends,
            FaultKind::Silent => &self.parts,
            FaultKind::ForeignChange => &self.circuits,
        }
    }
}

impl Plant {
    /// Lists what faults can happen to.
    ///
    /// A link that can fail is a cable: one between parts, or one inside a part between two
    /// machines.  Traces on a board are not cables, and NSDI'24's rate is for cables.
    pub(super) fn list_things(&mut self) {
        let fabric = &self.fabric;
        let mut things = Things::default();
        for (part_id, part) in fabric.parts().pairs().filter(|(_, part)| !part.retired) {
            let template = fabric.template_of(part_id);
            things.parts.push(Target::Part(part_id));
            match template.role {
                Role::Compute => (),
                Role::PacketSwitch => things.switches.push(Target::Part(part_id)),
                Role::CircuitSwitch => {
                    things.switches.push(Target::Part(part_id));
                    things.circuits.push(Target::Part(part_id));
                    continue;
                }
            }
            for (local, node) in template.nodes().iter().enumerate() {
                if node.kind == NodeKind::Machine {
                    things.machines.push(Target::Node(fabric.node_at(part_id, local)));
                }
            }
            let seats = template.seats().iter();
            things
                .chips
                .extend(seats.map(|&it| Target::Node(fabric.node_at(part_id, it as usize))));
            let form = &self.light.forms[part.template];
            for &(local, _) in form.inner.iter() {
                let link = fabric.link_from(fabric.port_at(part_id, local as usize));
                let link = link.expect("inner ports have a link");
                let machine = |port: PortId| machine_of(fabric, fabric.node_of_port(port));
                let ends = fabric.link(link);
                if link.number().is_multiple_of(2) && machine(ends.source) != machine(ends.target) {
                    things.links.push(Target::Link(link));
                }
            }
        }
        let role = |port: PortId| fabric.template_of(fabric.part_of_port(port)).role;
        for cable in fabric.cables().iter().filter(|it| !it.retired) {
            let link = fabric.link_from(cable.a).expect("a cabled port has a link");
            things.links.push(Target::Link(even(link)));
            for (port, end) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if self.light.turns_beyond(port) {
                    things.fibre_ends.push(Target::Port(port));
                    things.switch_ports.push(Target::Port(end));
                } else if (role(port), role(end)) == (Role::Compute, Role::PacketSwitch) {
                    things.fibre_ends.push(Target::Port(port));
                }
            }
        }
        self.things = things;
    }

    pub(super) fn n_things(&self, kind: FaultKind) -> usize {
        self.things.of(kind).len()
    }

    /// Something that this kind of fault can happen to and has not.
    pub(super) fn drawn(&mut self, kind: FaultKind) -> Option<Target> {
        let n_things = self.n_things(kind);
        if n_things == 0 {
            return None;
        }
        for _ in 0..DRAWS {
            let nth = self.truth.fault_dice.index(n_things);
            let target = self.things.of(kind)[nth];
            if self.fitting(kind, target).is_some() && !self.stands(kind, target) {
                return Some(target);
            }
        }
        None
    }

    pub(super) fn stands(&self, kind: FaultKind, target: Target) -> bool {
        self.truth.faults.values().any(|it| it.kind == kind && it.target == target)
    }

    /// The target in the form that the kind stands on; none where it cannot happen.
    pub(super) fn fitting(&self, kind: FaultKind, target: Target) -> Option<Target> {
        let fabric = &self.fabric;
        let role = |part: PartId| fabric.template_of(part).role;
        let circuit_port = |port: PortId| role(fabric.part_of_port(port)) == Role::CircuitSwitch;
        let found = match (kind, target) {
            (FaultKind::MachineDown, Target::Node(node)) => {
                fabric.node(node).kind == NodeKind::Machine
            }
            (
                FaultKind::ChipFailed
                | FaultKind::PcieDegraded
                | FaultKind::LatentIntent
                | FaultKind::LatentExercise,
                Target::Node(node),
            ) => {
                let (part, local) = fabric.node_local(node);
                fabric.template_of(part).seats().iter().any(|&it| it as usize == local)
            }
            (
                FaultKind::LinkDown | FaultKind::LinkFlapping | FaultKind::LinkDegraded,
                Target::Link(link),
            ) => return (link.idx() < fabric.n_links()).then(|| Target::Link(even(link))),
            (
                FaultKind::LinkDown | FaultKind::LinkFlapping | FaultKind::LinkDegraded,
                Target::Port(port),
            ) => return fabric.link_from(port).map(|link| Target::Link(even(link))),
            (FaultKind::SwitchDown, Target::Part(part)) => role(part) != Role::Compute,
            (FaultKind::PortFailed | FaultKind::PortLossHigh, Target::Port(port)) => {
                circuit_port(port)
            }
            (FaultKind::Miswired, Target::Port(port)) => self.swappable(port).is_some(),
            (FaultKind::Silent, Target::Part(_)) => true,
            (FaultKind::ForeignChange, Target::Part(part)) => role(part) == Role::CircuitSwitch,
            (_kind, _target) => false,
        };
        found.then_some(target)
    }

    /// The next port whose fibre or cable goes to the same switch and side, if neither is swapped.
    pub(super) fn swappable(&self, port: PortId) -> Option<PortId> {
        let planned = |port: PortId| {
            let end = self.fabric.peer_of(port)?;
            let (switch, local) = self.fabric.port_local(end);
            let template = self.fabric.template_of(switch);
            (template.role != Role::Compute).then(|| (switch, template.ports()[local].side))
        };
        let here = planned(port)?;
        let is_swapped = |port: PortId| {
            let mut faults = self.truth.faults.values();
            faults.any(|it| it.target == Target::Port(port) || it.partner == Some(port))
        };
        if is_swapped(port) {
            return None;
        }
        let ends = self.fabric.ports_of(here.0).filter_map(|it| self.fabric.peer_of(it));
        let mut ends = ends.filter(|&it| it != port && planned(it) == Some(here));
        ends.find(|&it| !is_swapped(it))
    }
}

fn even(link: LinkId) -> LinkId {
    LinkId::new(link.number() & !1)
}

/// The outermost node that holds `node`.
fn machine_of(fabric: &Fabric, node: NodeId) -> NodeId {
    std::iter::successors(Some(node), |&it| fabric.parent_of(it)).last().unwrap_or(node)
}
