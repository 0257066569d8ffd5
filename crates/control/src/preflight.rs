//! The intent check: every chip, PCIe link and link end against its golden threshold
//! (seed 000 §3.6.2), and a host's topology file against the rules of `topo lint`.

use selvedge_model::fabric::{Fabric, LinkKind, Template};
use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{PartId, PortId};
use selvedge_model::unit::CentiDb;

use crate::input::Readings;

/// One thing that is not up to its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub target: Target,
    /// What is wrong.
    pub symptom: Symptom,
    /// The measured value in the symptom's unit.
    pub value: u32,
}

/// Why readings cannot be judged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReadingsError {
    /// Another number of values than the part has seats or network ports.
    #[error("{part} has {want} {what}, its readings list {got}")]
    Length {
        /// Which part.
        part: String,
        /// What is counted.
        what: &'static str,
        /// How many there ought to be.
        want: usize,
        /// How many there are.
        got: usize,
    },
}

/// Holds the readings of `part` against the thresholds of its plant; only what a job on `seats`
/// uses counts, and of the cables that leave the part those at the ports that it `uses`.
///
/// # Errors
/// [`ReadingsError`].
pub fn judge(
    fabric: &Fabric,
    part: PartId,
    seats: u64,
    uses: &dyn Fn(PortId) -> bool,
    readings: &Readings,
) -> Result<Vec<Finding>, ReadingsError> {
    let template = fabric.template_of(part);
    let n_ports = template.network_ports().len();
    let check = |what, want: usize, got: usize| {
        let part = fabric.part(part).name.to_string();
        let fits = got == want;
        if fits { Ok(()) } else { Err(ReadingsError::Length { part, what, want, got }) }
    };
    check("seats", template.seats().len(), readings.chip_errors.len())?;
    check("seats", template.seats().len(), readings.pcie_gbps.len())?;
    check("network ports", n_ports, readings.link_errors.len())?;
    check("network ports", n_ports, readings.loss.len())?;

    let golden = &fabric.thresholds;
    let pcie_min = pcie_gbps(golden.pcie_lanes_min, golden.pcie_generation_min);
    let mut findings = Vec::new();
    for (seat, &node) in template.seats().iter().enumerate() {
        if seats >> seat & 1 == 0 {
            continue;
        }
        let target = Target::Node(fabric.node_at(part, node as usize));
        let errors = readings.chip_errors[seat];
        if golden.chip_errors_per_hour_max < errors {
            findings.push(Finding { target, symptom: Symptom::ChipFailed, value: errors.into() });
        }
        let rate = readings.pcie_gbps[seat];
        if rate < pcie_min && rate < planned_gbps(template, node as usize) {
            findings.push(Finding { target, symptom: Symptom::PcieDegraded, value: rate.into() });
        }
    }
    for (place, &port) in template.network_ports().iter().enumerate() {
        let port = port as usize;
        let (errors, loss) = (readings.link_errors[place], readings.loss[place]);
        let is_noisy = errors != 0 && errors_max(fabric, part, port) < u64::from(errors);
        let is_dim = loss != 0 && loss_max(fabric, part, port) < loss;
        if !is_noisy && !is_dim {
            continue;
        }
        let Some(target) = link_in_use(fabric, part, seats, uses, port) else { continue };
        let (symptom, value) = match (errors, is_noisy) {
            (u16::MAX, _) => (Symptom::LinkDown, u32::from(errors)),
            (_, true) => (Symptom::LinkDegraded, u32::from(errors)),
            (_, false) => (Symptom::PortLossHigh, u32::from(loss)),
        };
        findings.push(Finding { target, symptom, value });
    }
    findings.extend(of_file(fabric, part, Symptom::TopologyFaulty));
    Ok(findings)
}

/// What is worth a warning about the topology file of `part`; it stops no job.
pub fn doubts(fabric: &Fabric, part: PartId) -> Vec<Finding> {
    of_file(fabric, part, Symptom::TopologyDoubtful)
}

/// What `topo lint` finds in the file of a host, each rule once: its errors or its warnings.
fn of_file(fabric: &Fabric, part: PartId, symptom: Symptom) -> Vec<Finding> {
    let wants_errors = symptom == Symptom::TopologyFaulty;
    let faults = fabric.file_faults_of(part).iter().filter(|it| it.is_error == wants_errors);
    let mut rules: Vec<u32> = faults.map(|it| u32::from(it.rule)).collect();
    rules.sort_unstable();
    rules.dedup();
    let target = Target::Part(part);
    rules.into_iter().map(|value| Finding { target, symptom, value }).collect()
}

/// What a topology file's finding says and what to do about it, by the rule's number; nothing where
/// the file has no such finding any longer.
pub fn words_of_rule(fabric: &Fabric, part: PartId, rule: u32) -> Option<String> {
    let of_rule = || fabric.file_faults_of(part).iter().filter(|it| u32::from(it.rule) == rule);
    let first = of_rule().next()?;
    let more = match of_rule().count() - 1 {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(format!("[{}] {}{more}; {}", first.name, first.what, first.advice))
}

/// What so many lanes of a PCIe generation carry in one direction, in whole Gb/s (PCI Express
/// Base Specification: 2.5 and 5 GT/s at 8b/10b, then 8 GT/s at 128b/130b, doubling).
fn pcie_gbps(lanes: u8, generation: u8) -> u16 {
    let mbps_of_lane: u32 = match generation {
        0 | 1 => 2_000,
        2 => 4_000,
        newer => 7_877 << u32::from(newer - 3).min(6),
    };
    u16::try_from(u32::from(lanes) * mbps_of_lane / 1_000).unwrap_or(u16::MAX)
}

/// What the PCIe lanes of a node carry as planned, in whole Gb/s: a machine that is built with
/// fewer lanes is not at fault for it.
fn planned_gbps(template: &Template, node: usize) -> u16 {
    let ports = template.ports_on(node).iter();
    let links = ports.filter_map(|&port| Some(template.link(template.link_from(port as usize)?).2));
    let rates = links.filter(|it| it.kind == LinkKind::Pcie).map(|it| it.capacity.bps());
    u16::try_from(rates.max().unwrap_or(0) / 1_000_000_000).unwrap_or(u16::MAX)
}

/// The most symbol errors a minute at a network port that keep its link within the plant's bits
/// for each error.
fn errors_max(fabric: &Fabric, part: PartId, port: usize) -> u64 {
    let link = fabric.link_from(fabric.port_at(part, port));
    let bps = link.map_or(0, |it| fabric.link(it).attrs.capacity.bps());
    bps.saturating_mul(60) / fabric.thresholds.bits_per_error_min.max(1)
}

/// The most light that may be lost at a network port, in 0.01 dB: what no fibre of the plant may
/// lose, and what this one may lose more than it did when it was installed.
fn loss_max(fabric: &Fabric, part: PartId, port: usize) -> u16 {
    let golden = &fabric.thresholds;
    let cable = fabric.cable_at(fabric.port_at(part, port));
    let excess = |installed: CentiDb| installed.centi() + golden.loss_excess_max.centi();
    let max = golden.loss_max.centi();
    cable.map_or(max, |it| max.min(excess(it.loss_expected)))
}

/// Holds the number of peers that the chips of `part` name against its network ports.
///
/// # Errors
/// [`ReadingsError`].
pub fn check_peers(
    fabric: &Fabric,
    part: PartId,
    peers: &[Option<PortId>],
) -> Result<(), ReadingsError> {
    let (want, got) = (fabric.template_of(part).network_ports().len(), peers.len());
    if got == want {
        return Ok(());
    }
    let part = fabric.part(part).name.to_string();
    Err(ReadingsError::Length { part, what: "network ports", want, got })
}

/// The link at a port by its even direction, if a job on `seats` uses it.
fn link_in_use(
    fabric: &Fabric,
    part: PartId,
    seats: u64,
    uses: &dyn Fn(PortId) -> bool,
    port: usize,
) -> Option<Target> {
    let template = fabric.template_of(part);
    if let Some(inner) = template.link_from(port) {
        let ends = template.seats_of_link(inner);
        return (ends & seats == ends).then(|| Target::Link(fabric.link_at(part, inner & !1)));
    }
    let end = fabric.port_at(part, port);
    let link = fabric.link_from(end)?;
    let here = template.seats_under(template.ports()[port].node as usize);
    (here & seats == here && uses(end)).then(|| Target::Link(even(link)))
}

/// The direction of a link by which the pair is named.
pub fn even(link: selvedge_model::id::LinkId) -> selvedge_model::id::LinkId {
    selvedge_model::id::LinkId::new(link.number() & !1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::spec::Plant;

    #[test]
    fn lanes_and_generation_give_the_rate_of_their_standard() {
        // PCI Express Base Specification: x16 of generations 1 to 5, in Gb/s.
        let rates = [1, 2, 3, 4, 5].map(|generation| pcie_gbps(16, generation));
        assert_eq!(rates, [32, 64, 126, 252, 504]);
        assert_eq!(pcie_gbps(8, 3), 63);
    }

    /// A cube with its switches, whose plant is as `change` says.
    fn cube(change: &str) -> Fabric {
        let text = format!(
            "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 1\n{change}"
        );
        let plant = Plant::parse("demo.toml", &text).expect("a plant");
        selvedge_family::build(&plant).expect("a fabric")
    }

    fn findings(fabric: &Fabric, change: impl FnOnce(&mut Readings)) -> Vec<(Symptom, u32)> {
        let part = fabric.part_named("cube0").expect("a cube");
        let template = fabric.template_of(part);
        let mut readings = Readings {
            chip_errors: vec![0; 64],
            pcie_gbps: vec![126; 64],
            link_errors: vec![0; template.network_ports().len()],
            loss: vec![0; template.network_ports().len()],
        };
        change(&mut readings);
        let found = judge(fabric, part, template.all_seats(), &|_| true, &readings);
        found.expect("the right lengths").iter().map(|it| (it.symptom, it.value)).collect()
    }

    /// The paths of what preflight finds if the end at one network port after the other is dark.
    fn dark_one_by_one(fabric: &Fabric, name: &str) -> Vec<String> {
        let part = fabric.part_named(name).expect("a host");
        let template = fabric.template_of(part);
        let (n_seats, n_ports) = (template.seats().len(), template.network_ports().len());
        let mut found = Vec::new();
        for place in 0..n_ports {
            let mut readings = Readings {
                chip_errors: vec![0; n_seats],
                pcie_gbps: vec![504; n_seats],
                link_errors: vec![0; n_ports],
                loss: vec![0; n_ports],
            };
            readings.link_errors[place] = u16::MAX;
            let all = template.all_seats();
            let findings =
                judge(fabric, part, all, &|_| true, &readings).expect("the right lengths");
            let down = findings.iter().filter(|it| it.symptom == Symptom::LinkDown);
            found.extend(down.map(|it| fabric.path(it.target)));
        }
        found
    }

    /// Goal: no NIC's port and no NVLink of a host is left out, wherever its template has it.
    #[test]
    fn every_nic_port_and_nvlink_of_a_host_is_judged() {
        let ports: Vec<String> =
            (0..16).map(|it| format!("{{ name = \"p{it}\", node = \"sw\" }}")).collect();
        let cables = (0..16).map(|it| {
            let (host, nic) = (it / 8, it % 8);
            format!("[[cable]]\na = \"host{host}/nic{nic}/port\"\nb = \"leaf/p{it}\"\n")
        });
        let leaf = format!(
            "[[template]]\nname = \"leaf\"\nrole = \"packet-switch\"\n\
             nodes = [{{ name = \"sw\", kind = \"switch\" }}]\nports = [{}]\n\
             [[part]]\nname = \"leaf\"\ntemplate = \"leaf\"\n{}",
            ports.join(", "),
            cables.collect::<String>()
        );
        let text =
            format!("format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n{leaf}");
        let build = |text: &str| {
            let plant = Plant::parse("h.toml", text).expect("a plant");
            selvedge_family::build(&plant).expect("a fabric")
        };
        let nics = |host: usize| (0..8).map(move |it| format!("host{host}/nic{it}/port"));
        // An NVLink is one thing with two ends: each end tells of it.
        let nvlinks = (0..8)
            .flat_map(|it| [format!("host1/gpu{it}/nvlink"), format!("host1/gpu{it}/nvlink")]);
        let mut expected: Vec<String> = nvlinks.chain(nics(1)).collect();
        let mut found = dark_one_by_one(&build(&text), "host1");
        expected.sort();
        found.sort();
        assert_eq!(found, expected);

        // The same of a host that a topology file describes.
        let gpu = |rank: usize, own: &str, far: &str| {
            format!(
                "<pci busid=\"{own}\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" \
                 link_width=\"16\"><gpu dev=\"{rank}\" sm=\"80\" rank=\"{rank}\" gdr=\"1\">\
                 <nvlink target=\"{far}\" count=\"4\" tclass=\"0x030200\"/></gpu></pci>"
            )
        };
        let xml = format!(
            "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\" \
             vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">{}{}\
             <pci busid=\"0000:05:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" \
             link_width=\"16\"><nic><net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\" \
             guid=\"0x1\" maxconn=\"1\" gdr=\"1\"/></nic></pci></cpu></system>",
            gpu(0, "0000:03:00.0", "0000:04:00.0"),
            gpu(1, "0000:04:00.0", "0000:03:00.0")
        );
        let text = "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n\
                    topology = \"two.xml\"\n[[cable]]\na = \"host0/nic0/port\"\n\
                    b = \"host1/nic0/port\"\n";
        let text = Plant::with_topologies(text, &[("two.xml".to_owned(), xml)]);
        let found = dark_one_by_one(&build(&text), "host0");
        assert!(found.iter().any(|it| it.contains("nic0/port")), "{found:?}");
        assert!(2 <= found.iter().filter(|it| it.contains("nvlink")).count(), "{found:?}");
    }

    #[test]
    fn a_plants_own_thresholds_decide_what_preflight_finds() {
        let golden = cube("");
        let outer = selvedge_family::torus::hardware::face_port(0, true, 3);
        // 400 Gb/s and one error in 10^12 bits are 24 a minute.
        let noisy = |n| move |it: &mut Readings| it.link_errors[outer] = n;
        assert_eq!(findings(&golden, noisy(24)), []);
        assert_eq!(findings(&golden, noisy(25)), [(Symptom::LinkDegraded, 25)]);
        let lax = cube("[thresholds]\nbits_per_error_min = 100000000000\n");
        assert_eq!(findings(&lax, noisy(240)), []);

        // Installed with 1.00 dB, half a decibel more is allowed, and never above 2.00 dB.
        let dim = |n| move |it: &mut Readings| it.loss[outer] = n;
        assert_eq!(findings(&golden, dim(150)), []);
        assert_eq!(findings(&golden, dim(151)), [(Symptom::PortLossHigh, 151)]);
        let lax = cube("[thresholds]\nloss_excess_max_db = 9.0\n");
        assert_eq!(findings(&lax, dim(200)), []);
        assert_eq!(findings(&lax, dim(201)), [(Symptom::PortLossHigh, 201)]);

        let tired = |n| move |it: &mut Readings| it.chip_errors[7] = n;
        assert_eq!(findings(&golden, tired(51)), [(Symptom::ChipFailed, 51)]);
        let lax = cube("[thresholds]\nchip_errors_per_hour_max = 60\n");
        assert_eq!(findings(&lax, tired(51)), []);

        let narrow = |n| move |it: &mut Readings| it.pcie_gbps[9] = n;
        assert_eq!(findings(&golden, narrow(125)), [(Symptom::PcieDegraded, 125)]);
        let lax = cube("[thresholds]\npcie_lanes_min = 8\n");
        assert_eq!(findings(&lax, narrow(63)), []);
        assert_eq!(findings(&lax, narrow(62)), [(Symptom::PcieDegraded, 62)]);
        // The machines are planned with generation 3: no more can be asked of them.
        let strict = cube("[thresholds]\npcie_generation_min = 5\n");
        assert_eq!(findings(&strict, |_| ()), []);
    }
}
