//! Where light and current go: what each port really leads to, and what is dark.
//!
//! All of it is derived from the fabric and the faults that stand, so it is rebuilt and never
//! stored.  Ports are looked up by the million: dense arrays of numbers, no maps.

use std::collections::BTreeMap;

use selvedge_model::fabric::{Fabric, LinkKind, Role, Template};
use selvedge_model::fault::Target;
use selvedge_model::id::{PartId, PortId, TemplateId};
use selvedge_model::table::IdVec;

use crate::dice::Dice;
use crate::fault::{Fault, FaultKind};

pub(super) const NOWHERE: u32 = u32::MAX;

/// What all parts of one template share.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The network ports, which are asked and measured.
    pub(super) net: Vec<u32>,
    /// What each seat's PCIe lanes carry when healthy, in Gb/s; 0 without lanes.
    pub(super) pcie_gbps: Vec<u16>,
    /// The seats in and under the node of each port.
    pub(super) seats_at: Vec<u64>,
    /// The network ports that inner links leave from, with the seats at both ends.
    pub(super) inner: Vec<(u32, u64)>,
}

impl Form {
    fn new(template: &Template) -> Self {
        let is_pcie = |port: usize| {
            let link = template.link_from(port);
            link.is_some_and(|link| template.link(link).2.kind == LinkKind::Pcie)
        };
        let pcie_of = |&node: &u32| {
            let mut lanes = template.ports_on(node as usize).iter().map(|&port| port as usize);
            let Some(lane) = lanes.find(|&port| is_pcie(port)) else { return 0 };
            let link = template.link_from(lane).expect("PCIe ports have a link");
            let gbps = template.link(link).2.capacity.bps() / 1_000_000_000;
            u16::try_from(gbps).unwrap_or(u16::MAX)
        };
        Self {
            net: template.network_ports().to_vec(),
            pcie_gbps: template.seats().iter().map(pcie_of).collect(),
            seats_at: (template.ports().iter())
                .map(|port| template.seats_under(port.node as usize))
                .collect(),
            inner: (template.network_ports().iter())
                .filter_map(|&port| {
                    let link = template.link_from(port as usize)?;
                    Some((port, template.seats_of_link(link)))
                })
                .collect(),
        }
    }

    /// Whether the port at this place is one of those who hold `seats`: what stands beside the
    /// seats, a switch or a network card within a host, is of whoever sits there.
    pub(super) fn is_held(&self, port: usize, seats: u64) -> bool {
        match self.seats_at[port] {
            0 => seats != 0,
            under => under & seats != 0,
        }
    }
}

/// The light of a whole plant.
#[derive(Clone, Debug)]
pub(super) struct Light {
    pub(super) forms: IdVec<TemplateId, Form>,
    /// For each port, the port at the other end of its cable or inner link, or `NOWHERE`.
    end_of: Vec<u32>,
    /// For each port, what its circuit switch joins it with; `NOWHERE` for a dark mirror.
    across: Vec<u32>,
    /// Whether the port is on a circuit switch.
    turns: Vec<bool>,
    /// How many faults keep the port dark.
    dark: Vec<u16>,
    n_dark: usize,
    /// The loss of each healthy fibre end in 0.01 dB; 0 elsewhere.
    pub(super) loss: Vec<u16>,
    /// Seats of each part whose chip is gone.
    pub(super) dead: IdVec<PartId, u64>,
    /// The faults that concern each part.
    pub(super) on_part: IdVec<PartId, Vec<u32>>,
}

impl Light {
    /// The light of a plant that is as planned; fibres' losses vary a little with `seed`.
    pub(super) fn new(fabric: &Fabric, seed: u64) -> Self {
        let n_ports = fabric.n_ports();
        let (mut end_of, mut turns) = (vec![NOWHERE; n_ports], vec![false; n_ports]);
        let mut loss = vec![0; n_ports];
        for (part_id, part) in fabric.parts().pairs() {
            let template = fabric.template_of(part_id);
            for (local, port) in fabric.ports_of(part_id).enumerate() {
                turns[port.idx()] = template.role == Role::CircuitSwitch;
                if part.retired {
                    continue;
                }
                if let Some(inner) = template.link_from(local) {
                    let peer = fabric.port_at(part_id, template.link(inner).1 as usize);
                    end_of[port.idx()] = peer.number();
                }
            }
        }
        for (cable_idx, cable) in fabric.cables().iter().enumerate().filter(|it| !it.1.retired) {
            end_of[cable.a.idx()] = cable.b.number();
            end_of[cable.b.idx()] = cable.a.number();
            if cable.attrs.kind == LinkKind::Fibre {
                // ±0.15 dB around what was planned, the same at both ends for ever.
                let jitter = Dice::new(seed ^ cable_idx as u64, "loss").below(31) as u16;
                let value = (cable.loss_expected.centi() + jitter).saturating_sub(15);
                loss[cable.a.idx()] = value;
                loss[cable.b.idx()] = value;
            }
        }
        Self {
            forms: fabric.templates().iter().map(|it| Form::new(it)).collect(),
            end_of,
            across: vec![NOWHERE; n_ports],
            turns,
            dark: vec![0; n_ports],
            n_dark: 0,
            loss,
            dead: IdVec::filled(0, fabric.parts().len()),
            on_part: IdVec::filled(Vec::new(), fabric.parts().len()),
        }
    }

    /// Works out anew what the faults that stand keep dark.
    pub(super) fn relight(&mut self, fabric: &Fabric, faults: &BTreeMap<u32, Fault>) {
        if self.n_dark != 0 {
            self.dark.fill(0);
            self.n_dark = 0;
        }
        self.dead.iter_mut().for_each(|it| *it = 0);
        self.on_part.iter_mut().for_each(Vec::clear);
        for (&id, fault) in faults {
            self.shade(fabric, id, fault);
        }
    }

    fn shade(&mut self, fabric: &Fabric, id: u32, fault: &Fault) {
        match fault.target {
            Target::Node(node) => {
                let (part, local) = fabric.node_local(node);
                self.on_part[part].push(id);
                if matches!(fault.kind, FaultKind::MachineDown | FaultKind::ChipFailed) {
                    let seats = fabric.template_of(part).seats_under(local);
                    self.dead[part] |= seats;
                    let form = &self.forms[fabric.part(part).template];
                    let held = |it: &(usize, PortId)| form.seats_at[it.0] & seats != 0;
                    let ports: Vec<PortId> =
                        fabric.ports_of(part).enumerate().filter(held).map(|it| it.1).collect();
                    ports.into_iter().for_each(|port| self.darken(port));
                }
            }
            Target::Link(link) => {
                let link = fabric.link(link);
                for port in [link.source, link.target] {
                    self.note_on(fabric.part_of_port(port), id);
                    if fault.kind == FaultKind::LinkDown {
                        self.darken(port);
                    }
                }
            }
            Target::Port(port) => {
                self.note_on(fabric.part_of_port(port), id);
                let ends =
                    [self.end(port), fault.partner, fault.partner.and_then(|it| self.end(it))];
                for end in ends.into_iter().flatten() {
                    self.note_on(fabric.part_of_port(end), id);
                }
                if fault.kind == FaultKind::PortFailed {
                    self.darken(port);
                }
            }
            Target::Part(part) => {
                self.note_on(part, id);
                if fault.kind == FaultKind::SwitchDown {
                    fabric.ports_of(part).for_each(|port| self.darken(port));
                }
            }
        }
    }

    fn note_on(&mut self, part: PartId, id: u32) {
        let list = &mut self.on_part[part];
        if list.last() != Some(&id) {
            list.push(id);
        }
    }

    fn darken(&mut self, port: PortId) {
        self.dark[port.idx()] += 1;
        self.n_dark += 1;
    }

    /// Swaps what two ports lead to.
    pub(super) fn swap(&mut self, a: PortId, b: PortId) {
        self.end_of.swap(a.idx(), b.idx());
        for port in [a, b] {
            if let Some(end) = self.end(port) {
                self.end_of[end.idx()] = port.number();
            }
        }
    }

    /// What the mirrors of a switch do with one of its ports.
    pub(super) fn turn(&mut self, port: PortId, to: Option<PortId>) {
        self.across[port.idx()] = to.map_or(NOWHERE, PortId::number);
    }

    /// The other end of the cable or inner link at `port`.
    pub(super) fn end(&self, port: PortId) -> Option<PortId> {
        let end = self.end_of[port.idx()];
        (end != NOWHERE).then_some(PortId::new(end))
    }

    /// Whether light from `port` may pass a circuit switch.
    pub(super) fn turns_beyond(&self, port: PortId) -> bool {
        self.end(port).is_some_and(|end| self.turns[end.idx()])
    }

    /// Whether the cable at `port` is dark by itself, wherever mirrors send it.
    pub(super) fn cable_dark(&self, port: PortId) -> bool {
        let end = self.end_of[port.idx()];
        self.dark[port.idx()] != 0 || (end != NOWHERE && self.dark[end as usize] != 0)
    }

    /// The port that mirrors and cables lead to from `port`, lit or not.
    pub(super) fn far(&self, port: PortId) -> Option<PortId> {
        let end = self.end(port)?;
        if !self.turns[end.idx()] {
            return Some(end);
        }
        let across = self.across[end.idx()];
        if across == NOWHERE { None } else { self.end(PortId::new(across)) }
    }

    /// The port whose light arrives at `port`.
    pub(super) fn seen(&self, port: PortId) -> Option<PortId> {
        let far = self.far(port)?;
        if self.n_dark == 0 {
            return Some(far);
        }
        (!self.cable_dark(port) && !self.cable_dark(far)).then_some(far)
    }

    /// Whether anything at all is dark.
    pub(super) fn any_dark(&self) -> bool {
        self.n_dark != 0
    }
}
