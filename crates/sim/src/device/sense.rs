//! What the plant's senses answer: measurements, the sample workload, and what chips see.

use std::collections::BTreeSet;

use selvedge_control::family;
use selvedge_control::input::{Errand, Readings};
use selvedge_model::fabric::Role;
use selvedge_model::fault::Target;
use selvedge_model::id::{PartId, PoolId, PortId};
use selvedge_model::job::{Hold, Place};
use selvedge_model::unit::CentiDb;

use crate::device::Plant;
use crate::fault::{Fault, FaultKind};

impl Plant {
    /// What the health daemons of the held seats measure.
    ///
    /// An outer end that no mirror joins to another is measured by the switch's own monitor
    /// light: it has a signal as long as its own cable has.
    pub(super) fn inspect(&self, hold: Hold) -> Readings {
        let (light, part) = (&self.light, hold.part);
        let form = &light.forms[self.fabric.part(part).template];
        let n_seats = form.pcie_gbps.len();
        let base = self.fabric.port_at(part, 0).idx();
        let mut readings = Readings {
            chip_errors: vec![0; n_seats],
            pcie_gbps: form.pcie_gbps.clone(),
            link_errors: vec![0; form.net.len()],
            loss: form.net.iter().map(|&local| light.loss[base + local as usize]).collect(),
        };
        if light.any_dark() {
            let dead = light.dead[part] & hold.seats;
            for seat in (0..n_seats).filter(|seat| dead >> seat & 1 == 1) {
                readings.chip_errors[seat] = u16::MAX;
                readings.pcie_gbps[seat] = 0;
            }
            for (&local, errors) in form.net.iter().zip(&mut readings.link_errors) {
                let local = local as usize;
                let port = PortId::at(base + local);
                let lit = match light.far(port) {
                    Some(_) => light.seen(port).is_some(),
                    None => !light.cable_dark(port),
                };
                if !lit && form.is_held(local, hold.seats) {
                    *errors = u16::MAX;
                }
            }
        }
        for id in &light.on_part[part] {
            self.deviate(part, hold.seats, &self.truth.faults[id], &mut readings);
        }
        readings
    }

    /// What the monitor light of a circuit switch measures at one of its ports; nothing where
    /// there is no fibre, no light, or no answer.
    pub fn loss_at(&self, port: PortId) -> Option<CentiDb> {
        let switch = self.fabric.part_of_port(port);
        let end = self.light.end(port)?;
        if !self.answers(switch) || self.light.cable_dark(end) {
            return None;
        }
        let mut loss = self.light.loss[end.idx()];
        for id in &self.light.on_part[switch] {
            let fault = &self.truth.faults[id];
            if fault.kind == FaultKind::PortLossHigh && fault.target == Target::Port(port) {
                loss = loss.max(fault.value);
            }
        }
        Some(CentiDb::new(loss))
    }

    /// Enters one fault's value into the readings of a part.
    fn deviate(&self, part: PartId, seats: u64, fault: &Fault, readings: &mut Readings) {
        let form = &self.light.forms[self.fabric.part(part).template];
        let local_end = |port: PortId| {
            let (owner, local) = self.fabric.port_local(port);
            let place = self.fabric.template_of(owner).network_place(local);
            place.filter(|_| owner == part && form.is_held(local, seats))
        };
        match (fault.kind, fault.target) {
            (FaultKind::PcieDegraded | FaultKind::LatentIntent, Target::Node(node)) => {
                let (_, local) = self.fabric.node_local(node);
                let under = self.fabric.template_of(part).seats_under(local) & seats;
                for seat in (0..readings.chip_errors.len()).filter(|seat| under >> seat & 1 == 1) {
                    if fault.kind == FaultKind::PcieDegraded {
                        readings.pcie_gbps[seat] = readings.pcie_gbps[seat].min(fault.value);
                    } else {
                        readings.chip_errors[seat] = readings.chip_errors[seat].max(fault.value);
                    }
                }
            }
            (FaultKind::LinkDegraded | FaultKind::LinkFlapping, Target::Link(link)) => {
                let link = self.fabric.link(link);
                for local in [link.source, link.target].into_iter().filter_map(local_end) {
                    readings.link_errors[local] = readings.link_errors[local].max(fault.value);
                }
            }
            (FaultKind::PortLossHigh, Target::Port(port)) => {
                if let Some(local) = self.light.end(port).and_then(local_end) {
                    readings.loss[local] = readings.loss[local].max(fault.value);
                }
            }
            // What is dark is entered for all ports at once; the others are not measured.
            (
                FaultKind::MachineDown
                | FaultKind::ChipFailed
                | FaultKind::LinkDown
                | FaultKind::SwitchDown
                | FaultKind::PortFailed
                | FaultKind::LatentExercise
                | FaultKind::Miswired
                | FaultKind::Silent
                | FaultKind::ForeignChange
                | FaultKind::PcieDegraded
                | FaultKind::LatentIntent
                | FaultKind::LinkDegraded
                | FaultKind::LinkFlapping
                | FaultKind::PortLossHigh,
                _,
            ) => (),
        }
    }

    /// What a small sample workload over these seats finds broken.
    pub(super) fn exercise(&self, errand: Errand, holds: &[Hold]) -> Vec<Target> {
        let mut found = BTreeSet::new();
        for hold in holds {
            for id in &self.light.on_part[hold.part] {
                let fault = &self.truth.faults[id];
                if fault.kind == FaultKind::LatentExercise && self.is_under(fault.target, *hold) {
                    found.insert(fault.target);
                }
            }
        }
        if matches!(errand, Errand::Case(..)) && !self.light.any_dark() {
            return found.into_iter().collect();
        }
        // Nobody says in which pool; nor which cables the job does without, so their findings are
        // named too.
        let place = Place::of(PoolId::new(0), holds.to_vec());
        for hold in holds {
            // A part under repair is joined to nothing: its outer links are not exercised.
            self.exercise_part(*hold, &place, matches!(errand, Errand::Job(..)), &mut found);
        }
        found.into_iter().collect()
    }

    fn exercise_part(&self, hold: Hold, place: &Place, joined: bool, found: &mut BTreeSet<Target>) {
        let (light, fabric, part) = (&self.light, &self.fabric, hold.part);
        let form = &light.forms[fabric.part(part).template];
        let base = fabric.port_at(part, 0).idx();
        let dead = light.dead[part] & hold.seats;
        for (seat, &node) in fabric.template_of(part).seats().iter().enumerate() {
            if dead >> seat & 1 == 1 {
                found.insert(Target::Node(fabric.node_at(part, node as usize)));
            }
        }
        for &(local, seats) in &form.inner {
            let port = PortId::at(base + local as usize);
            let used = seats & hold.seats == seats && seats & dead == 0;
            if used && light.any_dark() && light.seen(port).is_none() {
                let link = fabric.link_from(port).expect("inner ports have a link");
                found.insert(Target::Link(link.min(fabric.reverse(link))));
            }
        }
        if hold.seats != fabric.template_of(part).all_seats() {
            return;
        }
        for local in form.net.iter().map(|&it| it as usize) {
            let port = PortId::at(base + local);
            let lit = if joined { light.seen(port).is_some() } else { !light.cable_dark(port) };
            if lit || fabric.cable_at(port).is_none() || form.seats_at[local] & dead != 0 {
                continue;
            }
            // Under test a cable is looked at from whatever end is free.
            let is_used = match joined {
                true => family::uses_cable(fabric, place, port),
                false => !self.leads_away(port, &place.holds),
            };
            if is_used {
                found.insert(self.blame(port));
            }
        }
    }

    /// What keeps an outer end dark, as the end-to-end check can tell: the switch, its port, or
    /// else the cable.
    fn blame(&self, port: PortId) -> Target {
        let link = self.fabric.link_from(port).expect("outer ends are cabled");
        let cable = Target::Link(link.min(self.fabric.reverse(link)));
        let Some(end) = self.light.end(port) else { return cable };
        let switch = self.fabric.part_of_port(end);
        let mut faults = self.light.on_part[switch].iter().map(|id| &self.truth.faults[id]);
        let own = faults.find(|fault| match fault.kind {
            FaultKind::SwitchDown => true,
            FaultKind::PortFailed => fault.target == Target::Port(end),
            _other => false,
        });
        own.map_or(cable, |fault| fault.target)
    }

    /// What the chips of the held seats see at their network ports.
    pub(super) fn discover(&self, hold: Hold) -> Vec<Option<PortId>> {
        let form = &self.light.forms[self.fabric.part(hold.part).template];
        let base = self.fabric.port_at(hold.part, 0).idx();
        let seen = |&local: &u32| {
            let held = form.is_held(local as usize, hold.seats);
            held.then(|| self.light.seen(PortId::at(base + local as usize))).flatten()
        };
        form.net.iter().map(seen).collect()
    }

    /// Outer ends of these parts without a signal.
    pub(super) fn dark_ends(&self, parts: &[PartId]) -> Vec<PortId> {
        let mut dark = Vec::new();
        for &part in parts {
            dark.extend(self.outer_ends(part).filter(|&port| self.light.seen(port).is_none()));
        }
        dark
    }

    /// Ports of a part that a cable leaves from, in order.
    pub(super) fn outer_ends(&self, part: PartId) -> impl Iterator<Item = PortId> + '_ {
        let net = &self.light.forms[self.fabric.part(part).template].net;
        let base = self.fabric.port_at(part, 0).idx();
        let ports = net.iter().map(move |&local| PortId::at(base + local as usize));
        ports.filter(|&port| self.fabric.cable_at(port).is_some())
    }

    /// Whether a cable leads, with no switch between, to a part that is none of `holds`: what is
    /// on its other end is another's, and nobody here uses it.
    fn leads_away(&self, end: PortId, holds: &[Hold]) -> bool {
        self.fabric.peer_of(end).is_some_and(|peer| {
            let part = self.fabric.part_of_port(peer);
            self.fabric.template_of(part).role == Role::Compute
                && holds.iter().all(|it| it.part != part)
        })
    }

    /// Whether what holds these seats, as one of the holds of `place`, cannot go on: a chip or a
    /// link that it uses is gone.
    pub(super) fn is_broken(&self, hold: Hold, place: &Place) -> bool {
        let light = &self.light;
        if light.dead[hold.part] & hold.seats != 0 {
            return true;
        }
        let form = &light.forms[self.fabric.part(hold.part).template];
        let base = self.fabric.port_at(hold.part, 0).idx();
        let inner_dark = light.any_dark()
            && form.inner.iter().any(|&(local, seats)| {
                seats & hold.seats == seats
                    && light.seen(PortId::at(base + local as usize)).is_none()
            });
        let whole = hold.seats == self.fabric.template_of(hold.part).all_seats();
        let is_lost =
            |end: PortId| light.seen(end).is_none() && family::uses_cable(&self.fabric, place, end);
        inner_dark || (whole && light.any_dark() && self.outer_ends(hold.part).any(is_lost))
    }

    /// Whether a target lies under a hold: a node with held seats, or a link between such.
    pub(super) fn is_under(&self, target: Target, hold: Hold) -> bool {
        match target {
            Target::Part(part) => part == hold.part,
            Target::Node(node) => {
                let (part, local) = self.fabric.node_local(node);
                let seats = self.fabric.template_of(part).seats_under(local);
                part == hold.part && seats & hold.seats != 0
            }
            Target::Link(link) => match self.fabric.link_local(link) {
                Some((part, local)) => {
                    let seats = self.fabric.template_of(part).seats_of_link(local);
                    part == hold.part && seats & hold.seats == seats
                }
                None => false,
            },
            Target::Port(_) => false,
        }
    }
}
