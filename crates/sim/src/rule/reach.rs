//! What a thing out of use takes from a job, worked out from the cables alone: the core's own
//! account of what is out is not asked.

use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{LinkId, NodeId, PartId, PortId};
use selvedge_model::job::Place;

/// What people and cases call a thing: a link end goes by its link, a link by the lower number
/// of its two directions.
pub(super) fn named(fabric: &Fabric, target: Target) -> Target {
    let lower = |link: LinkId| Target::Link(link.min(fabric.reverse(link)));
    match target {
        Target::Port(port) => fabric.link_from(port).map_or(target, lower),
        Target::Link(link) => lower(link),
        Target::Part(_) | Target::Node(_) => target,
    }
}

/// What stays of a thing when fibres are re-patched: one that leads to a switch goes by its other
/// end.
pub(super) fn anchor(fabric: &Fabric, target: Target) -> Target {
    let named = named(fabric, target);
    let Target::Link(link) = named else { return named };
    let (mut at_switch, mut elsewhere) = (None, None);
    for port in ends_of(fabric, link) {
        let is_switch = is_switch(fabric, fabric.part_of_port(port));
        *(if is_switch { &mut at_switch } else { &mut elsewhere }) = Some(port);
    }
    at_switch.and(elsewhere).map_or(named, Target::Port)
}

/// Whether a thing is still part of the plant.
pub(super) fn is_there(fabric: &Fabric, target: Target) -> bool {
    let stands = |part: PartId| !fabric.part(part).retired;
    match target {
        Target::Part(part) => stands(part),
        Target::Node(node) => stands(fabric.part_of_node(node)),
        Target::Port(port) => stands(fabric.part_of_port(port)),
        Target::Link(link) => !fabric.link_retired(link),
    }
}

/// Whether a job that holds `place` cannot go on when `target` is out of use.
pub(super) fn hits(fabric: &Fabric, target: Target, place: &Place) -> bool {
    match named(fabric, target) {
        Target::Part(part) if is_switch(fabric, part) => {
            let leads_there =
                |port| fabric.peer_of(port).is_some_and(|peer| fabric.part_of_port(peer) == part);
            let mut parts = place.holds.iter().map(|it| it.part);
            is_whole(fabric, place) && parts.any(|it| fabric.ports_of(it).any(leads_there))
        }
        // Whoever sends over a switch uses a cable to it.
        Target::Part(part) if fabric.template_of(part).role == Role::PacketSwitch => {
            let mut cables = fabric.ports_of(part).filter_map(|it| Some([it, fabric.peer_of(it)?]));
            cables.any(|it| is_cable_used(fabric, it, place))
        }
        Target::Part(part) => place.holds.iter().any(|it| it.part == part),
        Target::Node(node) if !takes_jobs(fabric, fabric.part_of_node(node)) => {
            hits(fabric, Target::Part(fabric.part_of_node(node)), place)
        }
        Target::Node(node) => {
            let (part, seats) = seats_of(fabric, node);
            place.holds.iter().any(|it| it.part == part && it.seats & seats != 0)
        }
        // Nothing is plugged in there.
        Target::Port(_) => false,
        Target::Link(link) => match fabric.link_local(link) {
            Some((part, local)) => {
                let ends = fabric.template_of(part).seats_of_link(local);
                place.holds.iter().any(|it| it.part == part && it.seats & ends == ends)
            }
            None => is_cable_used(fabric, ends_of(fabric, link), place),
        },
    }
}

/// Whether a job on `place` uses the cable between two ports, by who holds what is at its ends.
fn is_cable_used(fabric: &Fabric, ports: [PortId; 2], place: &Place) -> bool {
    let ends = ports.map(|port| fabric.part_of_port(port));
    let is_held = |part: &PartId| place.holds.iter().any(|it| it.part == *part);
    let roles = ends.map(|part| fabric.template_of(part).role);
    let is_used = match roles {
        // With no switch at either end it is used by whoever holds both parts, unless the place was
        // made without it.
        [Role::Compute, Role::Compute] => {
            ends.iter().all(is_held) && !ports.iter().any(|port| place.without.contains(port))
        }
        // Through mirrors also the one part that there is meets itself.
        _ if roles.contains(&Role::CircuitSwitch) => ends.iter().any(is_held),
        // To a switch that passes on what is sent one goes to reach others.
        _ => ends.iter().any(is_held) && 1 < place.holds.len(),
    };
    is_whole(fabric, place) && is_used
}

/// Whether a change from one fabric to another takes the cable at `port`, or brings one there, that
/// a job on `place` uses.
pub(super) fn is_rejoined(before: &Fabric, after: &Fabric, port: PortId, place: &Place) -> bool {
    let (was, is) = (before.peer_of(port), after.peer_of(port));
    let used = |fabric, far: Option<PortId>| {
        far.is_some_and(|far| is_cable_used(fabric, [port, far], place))
    };
    was != is && (used(before, was) || used(after, is))
}

/// The ports at both ends of a link.
pub(super) fn ends_of(fabric: &Fabric, link: LinkId) -> [PortId; 2] {
    let link = fabric.link(link);
    [link.source, link.target]
}

/// Whether work on `whole` is work on `target` too, because it lies in it or is plugged there.
pub(super) fn contains(fabric: &Fabric, whole: Target, target: Target) -> bool {
    let mut nodes = match target {
        Target::Part(part) => return whole == Target::Part(part),
        Target::Node(node) => vec![node],
        Target::Port(port) => vec![fabric.node_of_port(port)],
        Target::Link(link) => ends_of(fabric, link).map(|it| fabric.node_of_port(it)).to_vec(),
    };
    while let Some(node) = nodes.pop() {
        if whole == Target::Node(node) || whole == Target::Part(fabric.part_of_node(node)) {
            return true;
        }
        nodes.extend(fabric.parent_of(node));
    }
    false
}

/// Whether a place is of whole parts.
fn is_whole(fabric: &Fabric, place: &Place) -> bool {
    place.holds.iter().all(|it| it.seats == fabric.template_of(it.part).all_seats())
}

fn takes_jobs(fabric: &Fabric, part: PartId) -> bool {
    fabric.template_of(part).role == Role::Compute
}

pub(super) fn is_switch(fabric: &Fabric, part: PartId) -> bool {
    fabric.template_of(part).role == Role::CircuitSwitch
}

/// The seats in and under a node; for what has none, as a CPU, those of what holds it.
fn seats_of(fabric: &Fabric, node: NodeId) -> (PartId, u64) {
    let (part, local) = fabric.node_local(node);
    match (fabric.template_of(part).seats_under(local), fabric.parent_of(node)) {
        (0, Some(parent)) => seats_of(fabric, parent),
        (seats, _) => (part, seats),
    }
}
