//! From text to a plant.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::DeTable;

use crate::fabric::{DomainKind, LinkKind};
use crate::hardware::Thresholds;
use crate::limits;
use crate::spec::error::{At, PlantError, Wrong, line_column};
use crate::spec::hypersquare::{self, NS_PER_M, Wire};
use crate::spec::plant::{
    CUBES_MAX, CableSpec, Control, DomainSpec, Family, GridChip, Missing, Named, Optics, PartSpec,
    Patch, Plant, Pod, Power,
};
use crate::spec::reader::{Names, Reader, Table, at, shortened};
use crate::spec::template::{self, read_attrs};
use crate::spec::topology;
use crate::unit::{CentiDb, Length};

const ROOT: &[&str] = &[
    "format",
    "name",
    "pod",
    "thresholds",
    "optics",
    "power",
    "domain",
    "template",
    "topology",
    "machine",
    "part",
    "cable",
    "missing",
];
const POD: &[&str] = &[
    "family", "cubes", "deployed", "grid", "wrap", "hosts", "groups", "pitch_mm", "wire",
    "reach_mm", "ns_per_m", "gbps", "control", "topology",
];
const FAMILIES: &[&str] = &["tpuv4", "tpuv3", "tpuv2", "hypersquare", "hosts"];
const THRESHOLDS: &[&str] = &[
    "loss_max_db",
    "loss_excess_max_db",
    "bits_per_error_min",
    "pcie_lanes_min",
    "pcie_generation_min",
    "chip_errors_per_hour_max",
    "flaps_max",
    "flap_window",
];
const POWER: &[&str] = &["cubes_per_rack", "boards_per_rack", "hosts_per_rack", "racks_per_feed"];
const CABLE: &[&str] =
    &["end", "port", "a", "b", "kind", "gbps", "latency_ns", "length_mm", "loss_db"];
pub(super) const DOMAIN_KINDS: [(&str, DomainKind); 4] = [
    ("rack", DomainKind::Rack),
    ("power", DomainKind::Power),
    ("cooling", DomainKind::Cooling),
    ("plane", DomainKind::Plane),
];
const DOMAIN_WORDS: &[&str] = &["rack", "power", "cooling", "plane"];
impl Plant {
    /// Reads a plant file; `file_name` is for the messages alone.
    ///
    /// # Errors
    /// All that is wrong with the file, in the order of the places.
    pub fn parse(file_name: &str, text: &str) -> Result<Plant, Vec<PlantError>> {
        let error = |(at, wrong)| PlantError::new(file_name, text, at, wrong);
        if limits::PLANT_TEXT_MAX < text.len() {
            return Err(vec![error((At::NOWHERE, Wrong::FileTooLong { bytes: text.len() }))]);
        }
        let mut reader = Reader::default();
        let plant = match DeTable::parse(text) {
            Ok(root) => read_root(&mut reader, text, &root),
            Err(err) => {
                let span = err.span().unwrap_or(0..0);
                // An error at the end of the text still has a place.
                let (start, end) = (span.start, span.end.max(span.start + 1));
                let at = at(&Spanned::new(start..end, ()));
                let message = err.message().lines().next().unwrap_or_default().to_owned();
                reader.fault(at, unquoted(text, start).unwrap_or(Wrong::Syntax { message }));
                None
            }
        };
        match plant {
            Some(plant) if reader.faults.is_empty() => Ok(plant),
            _ => {
                let mut faults = reader.faults;
                faults.sort_by_key(|(at, _)| at.start);
                faults.truncate(limits::PLANT_ERRORS_MAX);
                Err(faults.into_iter().map(error).collect())
            }
        }
    }
}

/// The fault of a value without its quotes, where the reader stopped at one: `family = tpuv4`.
fn unquoted(text: &str, start: usize) -> Option<Wrong> {
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |it| it + 1);
    let line = text[line_start..].lines().next()?;
    let (key, value) = line.split_once('=')?;
    let is_bare = |it: &str| {
        let mut chars = it.chars();
        chars.next().is_some_and(|it| it.is_ascii_alphabetic())
            && chars.all(|it| it.is_ascii_alphanumeric() || "._-/+".contains(it))
    };
    let (key, word) = (key.trim(), value.split('#').next()?.trim());
    let stopped_in_it = line_start + line.find('=')? < start;
    (stopped_in_it && is_bare(key) && is_bare(word))
        .then(|| Wrong::Unquoted { key: key.to_owned(), word: word.to_owned() })
}

fn read_root(reader: &mut Reader, text: &str, root: &Spanned<DeTable<'_>>) -> Option<Plant> {
    // A newer file may hold anything: nothing else of it is looked at.
    read_format(reader, root)?;
    let start = At { start: 0, end: 1 };
    let root = reader.open("the file", start, root.get_ref(), ROOT);
    let name = read_title(reader, &root);
    let pods = reader.tables(&root, "pod", "[[pod]]", POD);
    if limits::PODS_MAX < pods.len() {
        let wrong =
            Wrong::TooMany { what: "pods", n: pods.len() as u64, max: limits::PODS_MAX as u64 };
        reader.fault(root.key_at("pod"), wrong);
        return None;
    }
    let pods: Vec<Pod> = pods.iter().filter_map(|it| read_pod(reader, it)).collect();
    let thresholds = read_thresholds(reader, &root);
    let optics = read_optics(reader, &root);
    let power = read_power(reader, &root);
    let templates = template::read_all(reader, text, &root);
    let topologies = topology::read_all(reader, text, &root);
    let machines = topology::read_machines(reader, text, &root);
    let parts = read_parts(reader, text, &root);
    let domains = read_domains(reader, text, &root);
    let (patches, cables) = read_cables(reader, text, &root, optics.loss);
    let missing = read_missing(reader, text, &root);
    if !root.has("pod") && !root.has("part") {
        reader.fault(root.value_at("name"), Wrong::NoHardware);
    }
    let n_hosts: u64 = pods.iter().map(|it| u64::from(n_hosts(&it.family))).sum();
    if u64::from(limits::HOSTS_MAX) < n_hosts {
        let max = u64::from(limits::HOSTS_MAX);
        reader.fault(root.key_at("pod"), Wrong::TooMany { what: "hosts", n: n_hosts, max });
    }
    let n_boards: u64 = pods.iter().map(|it| n_boards(&it.family)).sum();
    if limits::BOARDS_MAX < n_boards {
        let wrong = Wrong::TooMany { what: "boards", n: n_boards, max: limits::BOARDS_MAX };
        reader.fault(root.key_at("pod"), wrong);
    }
    topology::hold_limit(reader, &topologies);
    Some(Plant {
        name: name?,
        pods,
        thresholds,
        optics,
        power,
        domains,
        templates,
        topologies,
        machines,
        parts,
        patches,
        cables,
        missing,
    })
}

fn n_boards(family: &Family) -> u64 {
    match family {
        Family::Grid { sides: [x, y], .. } => u64::from(*x) * u64::from(*y) / 4,
        Family::HyperSquare(it) => it.n_groups() as u64,
        Family::Tpuv4 { .. } | Family::Hosts { .. } => 0,
    }
}

fn n_hosts(family: &Family) -> u32 {
    match family {
        Family::Hosts { hosts } => *hosts,
        Family::Tpuv4 { .. } | Family::Grid { .. } | Family::HyperSquare(_) => 0,
    }
}

fn read_format(reader: &mut Reader, root: &Spanned<DeTable<'_>>) -> Option<()> {
    let start = At { start: 0, end: 1 };
    let Some(value) = root.get_ref().get("format") else {
        reader.fault(start, Wrong::NoFormat);
        return None;
    };
    let Some(number) = value.get_ref().as_integer() else {
        let (key, wanted) = ("format".to_owned(), "a whole number");
        reader.fault(at(value), Wrong::WrongType { key, found: "no number", wanted });
        return None;
    };
    match u64::from_str_radix(number.as_str(), number.radix()) {
        Ok(limits::PLANT_FORMAT) => Some(()),
        Ok(found) if found < limits::PLANT_FORMAT => {
            reader.out_of_range(
                "format",
                &found.to_string(),
                at(value),
                limits::PLANT_FORMAT,
                limits::PLANT_FORMAT,
            );
            None
        }
        Err(_) if number.as_str().starts_with('-') => {
            reader.out_of_range(
                "format",
                number.as_str(),
                at(value),
                limits::PLANT_FORMAT,
                limits::PLANT_FORMAT,
            );
            None
        }
        Ok(_) | Err(_) => {
            let found = shortened(&number.to_string());
            reader.fault(at(value), Wrong::FormatTooNew { found });
            None
        }
    }
}

fn read_title(reader: &mut Reader, root: &Table<'_>) -> Option<String> {
    let (text, at) = reader.need_text(root, "name", "name = \"demo\"")?;
    let printable = text.chars().all(|c| !c.is_control());
    if text.trim().is_empty() || limits::NAME_MAX < text.len() || !printable {
        let form = "1 to 128 printable characters";
        reader.fault(at, Wrong::BadForm { key: "name", value: shortened(text), form });
        return None;
    }
    Some(text.to_owned())
}

fn read_pod(reader: &mut Reader, table: &Table<'_>) -> Option<Pod> {
    reader.need_text(table, "family", "family = \"tpuv4\"")?;
    let word = FAMILIES[reader.word(table, "family", FAMILIES)?];
    let known: &'static [&'static str] = match word {
        "tpuv4" => &["cubes", "deployed", "control"],
        "tpuv3" | "tpuv2" => &["grid", "wrap", "control"],
        "hypersquare" => hypersquare::KEYS,
        _ => &["hosts", "topology", "control"],
    };
    for key in &POD[1..] {
        if table.has(key) && !known.contains(key) {
            let wrong = Wrong::KeyOfOtherFamily { key, family: word, known };
            reader.fault(table.key_at(key), wrong);
        }
    }
    let family = match word {
        "tpuv4" => read_cubes(reader, table),
        "tpuv3" => read_grid(reader, table, GridChip::Tpuv3),
        "tpuv2" => read_grid(reader, table, GridChip::Tpuv2),
        "hypersquare" => hypersquare::read(reader, table),
        _ => read_hosts(reader, table),
    };
    let control = read_control(reader, table);
    let topology = topology::read_reference(reader, table);
    Some(Pod { family: family?, control: control?, topology, at: table.at })
}

fn read_cubes(reader: &mut Reader, table: &Table<'_>) -> Option<Family> {
    let cubes = match table.has("cubes") {
        true => reader.number(table, "cubes", 1, u64::from(CUBES_MAX))?,
        false => u64::from(CUBES_MAX),
    };
    let cubes = u16::try_from(cubes).expect("at most 64");
    if !table.has("deployed") {
        return Some(Family::tpuv4(cubes));
    }
    let (text, at) = reader.text(table, "deployed")?;
    match Family::tpuv4_with(cubes, text) {
        Ok(family) => Some(family),
        Err(wrong) => {
            reader.fault(at, wrong);
            None
        }
    }
}

impl Family {
    /// A pod of `cubes` slots with the cubes in `deployed`: `0-15,20`, `all` or `none`.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn tpuv4_with(cubes: u16, deployed: &str) -> Result<Self, Wrong> {
        let deployed = match deployed.trim() {
            "all" => (0..cubes).collect(),
            "none" => BTreeSet::new(),
            list => slots(list, cubes)?,
        };
        Ok(Family::Tpuv4 { cubes, deployed })
    }
}

/// Reads `0-15,20`.
fn slots(list: &str, cubes: u16) -> Result<BTreeSet<u16>, Wrong> {
    let bad = || Wrong::BadForm {
        key: "deployed",
        value: shortened(list),
        form: "cubes and ranges of cubes such as \"0-15,20\", or \"all\", or \"none\"",
    };
    let number = |it: &str| {
        let it = it.trim();
        let digits = !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| it.parse::<u16>().unwrap_or(u16::MAX)).ok_or_else(bad)
    };
    let mut slots = BTreeSet::new();
    for piece in list.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(bad());
        }
        if cubes <= last {
            return Err(Wrong::SlotBeyond { slot: first.max(cubes).min(last), cubes });
        }
        for slot in first..=last {
            if !slots.insert(slot) {
                return Err(Wrong::SlotTwice { slot });
            }
        }
    }
    Ok(slots)
}

fn read_grid(reader: &mut Reader, table: &Table<'_>, chip: GridChip) -> Option<Family> {
    let mut sides = chip.sides();
    if table.has("grid") {
        let (text, at) = reader.text(table, "grid")?;
        let read = text.split_once('x').and_then(|(x, y)| Some([x.parse().ok()?, y.parse().ok()?]));
        let in_range = |n: &u16| 2 <= *n && *n <= limits::GRID_SIDE_MAX && n.is_multiple_of(2);
        let is_narrow = |it: &[u16; 2]| it.iter().any(|n| *n <= limits::GRID_NARROW_MAX);
        let fits = |it: &[u16; 2]| it.iter().all(in_range) && is_narrow(it);
        let Some(read) = read.filter(fits) else {
            let form = "chips along x and y such as \"128x32\", both even, one of them 2 to 128, \
                        the other 2 to 512";
            reader.fault(at, Wrong::BadForm { key: "grid", value: shortened(text), form });
            return None;
        };
        sides = read;
    }
    const WRAPS: &[&str] = &["xy", "x", "y", "none"];
    let wraps = match table.has("wrap") {
        true => [[true, true], [true, false], [false, true], [false, false]]
            [reader.word(table, "wrap", WRAPS)?],
        false => [true, true],
    };
    Some(Family::Grid { chip, sides, wraps })
}

fn read_hosts(reader: &mut Reader, table: &Table<'_>) -> Option<Family> {
    if !table.has("hosts") {
        let (key, example) = ("hosts", "hosts = 2");
        reader.fault(table.at, Wrong::MissingKey { key, table: table.name, example });
    }
    let hosts = reader.number(table, "hosts", 1, u64::from(limits::HOSTS_MAX))?;
    Some(Family::Hosts { hosts: u32::try_from(hosts).expect("at most 100,000") })
}

fn read_control(reader: &mut Reader, table: &Table<'_>) -> Option<Control> {
    if !table.has("control") {
        return Some(Control::Simulated);
    }
    let (text, at) = reader.text(table, "control")?;
    if text == "simulated" {
        return Some(Control::Simulated);
    }
    let is_port = |it: &str| it.parse::<u16>().is_ok_and(|it| it != 0);
    let fits = |it: &str| it.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\');
    let is_address = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && text.len() <= limits::NAME_MAX && fits(host) && is_port(port)
    });
    if !is_address {
        let form = "\"simulated\", or the host:port of its devices such as \"ocs.example:830\"";
        reader.fault(at, Wrong::BadForm { key: "control", value: shortened(text), form });
        return None;
    }
    Some(Control::Address(text.to_owned()))
}

fn read_thresholds(reader: &mut Reader, root: &Table<'_>) -> Thresholds {
    let mut it = Thresholds::GOLDEN;
    let Some(table) = reader.table(root, "thresholds", "[thresholds]", THRESHOLDS) else {
        return it;
    };
    let small = |n: u64| u8::try_from(n).expect("bounded by the reader");
    it.loss_max = reader.decibel(&table, "loss_max_db").unwrap_or(it.loss_max);
    it.loss_excess_max = reader.decibel(&table, "loss_excess_max_db").unwrap_or(it.loss_excess_max);
    it.bits_per_error_min = reader
        .number(&table, "bits_per_error_min", 1, i64::MAX as u64)
        .unwrap_or(it.bits_per_error_min);
    it.pcie_lanes_min =
        reader.number(&table, "pcie_lanes_min", 1, 32).map_or(it.pcie_lanes_min, small);
    it.pcie_generation_min =
        reader.number(&table, "pcie_generation_min", 1, 9).map_or(it.pcie_generation_min, small);
    let medium = |n: u64| u16::try_from(n).expect("bounded by the reader");
    it.chip_errors_per_hour_max = reader
        .number(&table, "chip_errors_per_hour_max", 0, 60_000)
        .map_or(it.chip_errors_per_hour_max, medium);
    it.flaps_max = reader.number(&table, "flaps_max", 0, 3600).map_or(it.flaps_max, medium);
    it.flap_window = reader.span(&table, "flap_window").unwrap_or(it.flap_window);
    it
}

fn read_optics(reader: &mut Reader, root: &Table<'_>) -> Optics {
    let table = reader.table(root, "optics", "[optics]", &["loss_db"]);
    let loss = table.and_then(|it| reader.decibel(&it, "loss_db"));
    Optics { loss: loss.unwrap_or(Optics::DEFAULT.loss) }
}

fn read_power(reader: &mut Reader, root: &Table<'_>) -> Power {
    let mut it = Power::DEFAULT;
    let Some(table) = reader.table(root, "power", "[power]", POWER) else { return it };
    let mut read = |key, default| {
        let read = reader.number(&table, key, 1, 10_000);
        read.map_or(default, |n| u16::try_from(n).expect("at most 10,000"))
    };
    it.cubes_per_rack = read("cubes_per_rack", it.cubes_per_rack);
    it.boards_per_rack = read("boards_per_rack", it.boards_per_rack);
    it.hosts_per_rack = read("hosts_per_rack", it.hosts_per_rack);
    it.racks_per_feed = read("racks_per_feed", it.racks_per_feed);
    it
}

fn read_parts(reader: &mut Reader, text: &str, root: &Table<'_>) -> Vec<PartSpec> {
    let mut parts = Vec::new();
    let mut names = Names::of("part", text);
    for table in reader.tables(root, "part", "[[part]]", &["name", "template", "pool"]) {
        let name = reader.need_name(&table, "name", "name = \"host0\"");
        let template = reader.need_name(&table, "template", "template = \"host\"");
        let pool = reader.name(&table, "pool").map(|it| it.name);
        let (Some(name), Some(template)) = (name, template) else { continue };
        names.add(reader, &name);
        parts.push(PartSpec { name: name.name, template, pool, at: name.at });
    }
    parts
}

fn read_domains(reader: &mut Reader, text: &str, root: &Table<'_>) -> Vec<DomainSpec> {
    let mut domains = Vec::new();
    let mut names = Names::of("domain", text);
    for table in reader.tables(root, "domain", "[[domain]]", &["name", "kind", "parts"]) {
        let name = reader.need_name(&table, "name", "name = \"feed3\"");
        reader.need_text(&table, "kind", "kind = \"power\"");
        let kind = reader.word(&table, "kind", DOMAIN_WORDS);
        let mut members = Names::of("member", text);
        let parts = reader.names(&table, "parts");
        parts.iter().for_each(|it| members.add(reader, it));
        let (Some(name), Some(kind)) = (name, kind) else { continue };
        names.add(reader, &name);
        let kind = DOMAIN_KINDS[kind].1;
        domains.push(DomainSpec { name: name.name, kind, parts, at: name.at });
    }
    domains
}

fn read_cables(
    reader: &mut Reader,
    text: &str,
    root: &Table<'_>,
    loss: CentiDb,
) -> (Vec<Patch>, Vec<CableSpec>) {
    let (mut patches, mut cables) = (Vec::new(), Vec::new());
    let mut ports = Ports { text, cabled: BTreeMap::new() };
    for table in reader.tables(root, "cable", "[[cable]]", CABLE) {
        if table.has("end") {
            for key in ["a", "b", "kind", "gbps", "latency_ns", "length_mm"] {
                if table.has(key) {
                    reader.fault(table.key_at(key), Wrong::MixedCable { key });
                }
            }
            let end = reader.name(&table, "end");
            let port = reader.name(&table, "port");
            let loss = reader.decibel(&table, "loss_db");
            let Some(end) = end else { continue };
            if !table.has("port") && !table.has("loss_db") {
                reader.fault(table.at, Wrong::EmptyPatch { end: end.name.clone() });
            }
            [Some(&end), port.as_ref()].into_iter().flatten().for_each(|it| ports.add(reader, it));
            patches.push(Patch { end, port, loss });
        } else if table.has("a") || table.has("b") {
            if table.has("port") {
                reader.fault(table.key_at("port"), Wrong::MixedCable { key: "a and b" });
            }
            let a = reader.need_name(&table, "a", "a = \"host0/nic0/port\"");
            let b = reader.need_name(&table, "b", "b = \"host1/nic0/port\"");
            let mut attrs = read_attrs(reader, &table);
            let length = read_length(reader, &table, attrs.kind);
            if let (Some(length), false) = (length, table.has("latency_ns")) {
                attrs.latency = length.time_at(NS_PER_M);
            }
            let loss = reader.decibel(&table, "loss_db").unwrap_or(loss);
            let (Some(a), Some(b)) = (a, b) else { continue };
            if a.name == b.name {
                reader.fault(b.at, Wrong::OneEnd { port: b.name });
                continue;
            }
            [&a, &b].into_iter().for_each(|it| ports.add(reader, it));
            cables.push(CableSpec { a, b, attrs, loss, length });
        } else {
            reader.fault(table.at, Wrong::NoCableForm);
        }
    }
    (patches, cables)
}

/// How long a cable is, which no wire of its kind exceeds.
fn read_length(reader: &mut Reader, table: &Table<'_>, kind: LinkKind) -> Option<Length> {
    let length = reader.number(table, "length_mm", 1, u64::from(limits::WIRE_MM_MAX))?;
    let length = Length::mm(u32::try_from(length).expect("bounded by the reader"));
    let wire = Wire::of(kind);
    if let Some(wire) = wire.filter(|it| it.reach() < length) {
        let reach = wire.reach();
        let wrong = Wrong::CableTooLong { wire: wire.word(), length, reach };
        reader.fault(table.value_at("length_mm"), wrong);
        return None;
    }
    Some(length)
}

fn read_missing(reader: &mut Reader, text: &str, root: &Table<'_>) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut names = Names::of("missing thing", text);
    for table in reader.tables(root, "missing", "[[missing]]", &["part", "cable"]) {
        if table.has("part") == table.has("cable") {
            reader.fault(table.at, Wrong::MissingForm);
            continue;
        }
        let part = reader.name(&table, "part");
        let cable = reader.name(&table, "cable");
        part.iter().chain(&cable).for_each(|it| names.add(reader, it));
        missing.extend(part.map(Missing::Part));
        missing.extend(cable.map(Missing::Cable));
    }
    missing
}

/// Ports that must not be cabled twice.
struct Ports<'t> {
    text: &'t str,
    cabled: BTreeMap<String, At>,
}

impl Ports<'_> {
    fn add(&mut self, reader: &mut Reader, port: &Named) {
        match self.cabled.get(&port.name) {
            // Finding a line takes time: none is looked up in vain.
            Some(_) if reader.is_full() => {}
            Some(first) => {
                let line_of = |at: At| line_column(self.text, at.start as usize).0;
                let (first_line, line) = (line_of(*first), line_of(port.at));
                let wrong = Wrong::CabledTwice { port: port.name.clone(), first_line, line };
                reader.fault(port.at, wrong);
            }
            None => {
                self.cabled.insert(port.name.clone(), port.at);
            }
        }
    }
}
