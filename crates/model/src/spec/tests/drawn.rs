//! Plants drawn by dice, and files broken by dice.

use std::collections::BTreeSet;

use crate::fabric::{DomainKind, LinkAttrs, LinkKind};
use crate::spec::hypersquare::{HyperSquare, Wire};
use crate::spec::plant::{
    CableSpec, Control, DomainSpec, Family, GridChip, MachineSpec, Missing, Named, PartSpec, Patch,
    Plant, TopologySpec,
};
use crate::spec::tests::FULL;
use crate::spec::{At, diff};
use crate::unit::{BitRate, CentiDb, Length, Span};

/// A small generator of numbers (xorshift): tests need no more.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn named(name: impl Into<String>) -> Named {
    Named { name: name.into(), at: At::NOWHERE }
}

fn draw_family(dice: &mut Dice) -> Family {
    match dice.below(4) {
        0 => {
            let cubes = 1 + dice.below(64) as u16;
            let deployed: BTreeSet<u16> = (0..cubes).filter(|_| dice.below(4) != 0).collect();
            Family::Tpuv4 { cubes, deployed }
        }
        1 => {
            let chip = [GridChip::Tpuv2, GridChip::Tpuv3][dice.below(2) as usize];
            let mut side = || 2 + 2 * dice.below(40) as u16;
            let sides = [side(), side()];
            Family::Grid { chip, sides, wraps: [dice.below(2) == 0, dice.below(2) == 0] }
        }
        2 => {
            let mut side = || 1 + dice.below(64) as u16;
            let mut it = HyperSquare::of_groups([side(), side()]);
            it.wire = [Wire::Copper, Wire::Fibre][dice.below(2) as usize];
            it.reach = match dice.below(2) {
                0 => it.wire.reach(),
                _ => Length::mm(700 + dice.below(999) as u32),
            };
            it.pitch = Length::mm(1 + dice.below(700) as u32);
            it.ns_per_m = 4 + dice.below(3) as u16;
            it.rate = BitRate::gbps(1 + dice.below(800));
            Family::HyperSquare(it)
        }
        _ => Family::Hosts { hosts: 1 + dice.below(50) as u32 },
    }
}

fn draw_plant(dice: &mut Dice) -> Plant {
    let families: Vec<Family> = (0..1 + dice.below(4)).map(|_| draw_family(dice)).collect();
    let mut plant = Plant::of_pods("say \"drawn\" \\ 中", families);
    if dice.below(2) == 0 {
        plant.pods[0].control = Control::Address(format!("[::1]:{}", 1 + dice.below(65_535)));
    }
    plant.thresholds.loss_max = CentiDb::new(dice.below(10_001) as u16);
    plant.thresholds.flap_window = Span::nanos(dice.below(3_000_000_000));
    plant.thresholds.flaps_max = dice.below(3601) as u16;
    plant.thresholds.bits_per_error_min = 1 + dice.below(1 << 60);
    plant.optics.loss = CentiDb::new(dice.below(300) as u16);
    plant.power.boards_per_rack = 1 + dice.below(40) as u16;
    if let Some(pod) = plant.pods.iter_mut().find(|it| it.family.word() == "hosts") {
        pod.topology = (dice.below(2) == 0).then(|| named("racks/a b.xml"));
    }
    for idx in 0..dice.below(3) {
        let name = format!("{idx}.xml");
        plant
            .machines
            .push(MachineSpec { name: named(format!("host{idx}")), topology: named(&name) });
        let xml = ["<a b=\"\\\"/>\n", "\r\n\t\u{7f}", "'", ""][dice.below(4) as usize]
            .repeat(idx as usize + 1);
        plant.topologies.push(TopologySpec { name, xml, at: At::NOWHERE });
    }
    for idx in 0..dice.below(4) {
        let pool = (dice.below(2) == 0).then(|| "toys".to_owned());
        let (name, template) = (format!("toy{idx}"), named("host"));
        plant.parts.push(PartSpec { name, template, pool, at: At::NOWHERE });
        let kind = [LinkKind::Ethernet, LinkKind::Board][dice.below(2) as usize];
        let (capacity, latency) = (BitRate::gbps(1 + dice.below(800)), Span::nanos(idx));
        plant.cables.push(CableSpec {
            a: named(format!("toy{idx}/nic0/port")),
            b: named(format!("toy{idx}/nic1/port")),
            attrs: LinkAttrs { capacity, latency, kind },
            loss: CentiDb::new(dice.below(200) as u16),
            length: (dice.below(2) == 0).then(|| Length::mm(1 + dice.below(2000) as u32)),
        });
        let kind = [DomainKind::Rack, DomainKind::Cooling][dice.below(2) as usize];
        let parts = vec![named(format!("toy{idx}"))];
        plant.domains.push(DomainSpec { name: format!("d{idx}"), kind, parts, at: At::NOWHERE });
        let port = (dice.below(2) == 0).then(|| named(format!("x{idx}/s64")));
        let loss = Some(CentiDb::new(dice.below(200) as u16));
        plant.patches.push(Patch { end: named(format!("cube0/x/in/{idx}")), port, loss });
        plant.missing.push(Missing::Cable(named(format!("cube1/y/out/{idx}"))));
    }
    plant
}

#[test]
fn drawn_plants_read_back_what_they_render() {
    let mut dice = Dice(7);
    for _ in 0..300 {
        let plant = draw_plant(&mut dice);
        let text = plant.render();
        let again =
            Plant::parse("drawn.toml", &text).unwrap_or_else(|it| panic!("{it:?} in {text}"));
        assert_eq!(again, plant, "{text}");
        assert_eq!(again.render(), text);
    }
}

#[test]
fn plants_are_equal_exactly_where_they_have_no_difference() {
    let mut dice = Dice(11);
    let plants: Vec<Plant> = (0..40).map(|_| draw_plant(&mut dice)).collect();
    for a in &plants {
        for b in &plants {
            assert_eq!(diff(a, b).is_empty(), a == b, "{} {}", a.render(), b.render());
        }
    }
}

/// Goal: no file, however broken, panics.  Method: valid files with up to four bytes changed,
/// dropped or doubled, or a run of bytes copied elsewhere; whatever still reads must also render
/// and read back.
#[test]
fn broken_files_are_refused_without_panic() {
    let mut dice = Dice(3);
    let (mut n_read, mut n_refused) = (0, 0);
    for _ in 0..6000 {
        let mut bytes = FULL.as_bytes().to_vec();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bytes.len() as u64) as usize;
            match dice.below(4) {
                0 => bytes[at] = dice.below(256) as u8,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"\"[]{}=.,-09\n'"[dice.below(13) as usize]),
                _ => {
                    let end = bytes.len().min(at + dice.below(40) as usize);
                    let run = bytes[at..end].to_vec();
                    let to = dice.below(bytes.len() as u64) as usize;
                    bytes.splice(to..to, run);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match Plant::parse("broken.toml", &text) {
            Ok(plant) => {
                n_read += 1;
                let again = Plant::parse("again.toml", &plant.render());
                assert_eq!(again.as_ref(), Ok(&plant), "{text}");
            }
            Err(errors) => {
                n_refused += 1;
                assert!(errors.iter().all(|it| !it.to_string().is_empty()));
            }
        }
    }
    assert!(100 < n_read && 100 < n_refused, "{n_read} read, {n_refused} refused");
}
