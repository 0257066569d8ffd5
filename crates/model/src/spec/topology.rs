//! Topology files of NCCL: `topology = "ndv5.xml"` at a pod or a machine, and the file's own text
//! in a `[[topology]]`, so that a plant is one text wherever it goes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::limits;
use crate::spec::error::{At, Wrong};
use crate::spec::plant::{MachineSpec, Named, Plant, TopologySpec};
use crate::spec::reader::{Names, Reader, Table, shortened};
use crate::spec::render::quoted;

/// The name at `topology`: a path from the plant file on.
pub(super) fn read_reference(reader: &mut Reader, table: &Table<'_>) -> Option<Named> {
    let (text, at) = reader.text(table, "topology")?;
    read_name(reader, text, at)
}

fn read_name(reader: &mut Reader, text: &str, at: At) -> Option<Named> {
    let is_fit = |c: char| !c.is_control() && c != '"' && c != '\\';
    if text.trim().is_empty() || limits::NAME_MAX < text.len() || !text.chars().all(is_fit) {
        let form = "a path from the plant file on, such as \"ndv5.xml\", of at most 128 bytes";
        reader.fault(at, Wrong::BadForm { key: "topology", value: shortened(text), form });
        return None;
    }
    Some(Named { name: text.to_owned(), at })
}

/// All `[[topology]]`.
pub(super) fn read_all(reader: &mut Reader, text: &str, root: &Table<'_>) -> Vec<TopologySpec> {
    let mut topologies = Vec::new();
    let mut names = Names::of("topology", text);
    for table in reader.tables(root, "topology", "[[topology]]", &["name", "xml"]) {
        let name = reader.need_text(&table, "name", "name = \"ndv5.xml\"");
        let name = name.and_then(|(text, at)| read_name(reader, text, at));
        let xml = reader.need_text(&table, "xml", "xml = '''<system version=\"1\">…'''");
        let (Some(name), Some((xml, _))) = (name, xml) else { continue };
        names.add(reader, &name);
        let xml = xml.to_owned();
        topologies.push(TopologySpec { name: name.name, xml, at: name.at });
    }
    topologies
}

/// All `[[machine]]`.
pub(super) fn read_machines(reader: &mut Reader, text: &str, root: &Table<'_>) -> Vec<MachineSpec> {
    let mut machines = Vec::new();
    let mut names = Names::of("machine", text);
    for table in reader.tables(root, "machine", "[[machine]]", &["name", "topology"]) {
        let name = reader.need_name(&table, "name", "name = \"host3\"");
        reader.need_text(&table, "topology", "topology = \"ndv5.xml\"");
        let topology = read_reference(reader, &table);
        let (Some(name), Some(topology)) = (name, topology) else { continue };
        names.add(reader, &name);
        machines.push(MachineSpec { name, topology });
    }
    machines
}

/// Refuses more files than a plant may have.
pub(super) fn hold_limit(reader: &mut Reader, topologies: &[TopologySpec]) {
    let (n, max) = (topologies.len() as u64, limits::TOPOLOGIES_MAX as u64);
    if let Some(first) = topologies.get(limits::TOPOLOGIES_MAX) {
        reader.fault(first.at, Wrong::TooMany { what: "topology files", n, max });
    }
}

/// `[[machine]]` and `[[topology]]` as text.
pub(super) fn render(out: &mut String, plant: &Plant) {
    for machine in &plant.machines {
        let _ = write!(out, "\n[[machine]]\nname = {}\n", quoted(&machine.name.name));
        let _ = writeln!(out, "topology = {}", quoted(&machine.topology.name));
    }
    for topology in &plant.topologies {
        render_one(out, &topology.name, &topology.xml);
    }
}

fn render_one(out: &mut String, name: &str, xml: &str) {
    let _ = write!(out, "\n[[topology]]\nname = {}\n", quoted(name));
    let is_plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if xml.contains("'''") || xml.ends_with('\'') || !xml.chars().all(is_plain) {
        let _ = writeln!(out, "xml = {}", escaped(xml));
    } else {
        // The line's end after the opening quotes is no part of the text.
        let _ = writeln!(out, "xml = '''\n{xml}'''");
    }
}

/// Any text in double quotes, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Plant {
    /// The names of topology files that a plant file wants and does not hold itself, each at its
    /// place; none of a file that cannot be read.
    pub fn topologies_missing(text: &str) -> Vec<Named> {
        let Ok(plant) = Plant::parse("plant", text) else { return Vec::new() };
        let held: BTreeSet<&str> = plant.topologies.iter().map(|it| it.name.as_str()).collect();
        let wanted = plant.topologies_wanted().into_iter();
        wanted.filter(|it| !held.contains(it.name.as_str())).cloned().collect()
    }

    /// The plant file with topology files, by name and text, in it.  Places before its end stay.
    pub fn with_topologies(text: &str, files: &[(String, String)]) -> String {
        let mut out = text.to_owned();
        if !files.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        files.iter().for_each(|(name, xml)| render_one(&mut out, name, xml));
        out
    }
}
