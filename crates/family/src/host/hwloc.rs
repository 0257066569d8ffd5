//! A server from what `lstopo server.xml` wrote (hwloc 2).
//!
//! Speeds stand there in GB/s of data, so link and lanes are the pair that carries as much.

use std::collections::BTreeMap;

use crate::host::machine::{Device, Machine, NoMachine, Node, Part, Port, capability};
use crate::host::nccl::xml::{Element, Strictness, read};

/// The machine in the text of an hwloc file.
///
/// # Errors
/// If it is no such file, or shows neither a GPU nor a card.
pub fn machine(text: &str, place: &str) -> Result<Machine, NoMachine> {
    let other = |what: String| NoMachine::Other { place: place.to_owned(), what };
    let text = without_type(text);
    let lenient = Strictness::Lenient { single_quotes: true };
    let root = read(&text, lenient).map_err(|error| other(error.to_string()))?.root;
    if root.name != "topology" {
        let what = format!("<{}> is no hwloc file; write one with `lstopo FILE.xml`", root.name);
        return Err(other(what));
    }
    let mut found = Found::default();
    for object in root.children.iter().filter(|it| it.name == "object") {
        found.object(object, &Above::default());
    }
    if found.machine.devices.iter().all(|it| it.part == Part::Switch) {
        return Err(NoMachine::Nothing { place: place.to_owned() });
    }
    found.nvlinks(&root);
    Ok(found.machine)
}

/// Whether a text is what hwloc's lstopo writes, and no topology of NCCL's.
pub fn is_hwloc(text: &str) -> bool {
    text.contains("<topology") && !text.contains("<system")
}

/// The text with its document type blanked out, so that places stay.
pub(crate) fn without_type(text: &str) -> String {
    let Some(start) = text.find("<!DOCTYPE") else { return text.to_owned() };
    let Some(end) = text[start..].find('>').map(|it| start + it + 1) else {
        return text.to_owned();
    };
    // An inner subset is nothing that hwloc writes, and is left for the reader to refuse.
    if text[start..end].contains('[') {
        return text.to_owned();
    }
    format!("{}{}{}", &text[..start], " ".repeat(end - start), &text[end..])
}

/// Where in the tree an object is.
#[derive(Clone, Debug, Default)]
struct Above {
    numa: i32,
    /// Bridges on the way, outermost first.
    bridges: Vec<String>,
    cpu: Node,
}

#[derive(Default)]
struct Found {
    machine: Machine,
    n_gpus: u32,
    n_ports: u32,
    /// hwloc's numbers of objects inside GPUs, for its matrices.
    gpus: BTreeMap<String, String>,
}

impl Found {
    /// Depth is bounded by the reader of the text.
    fn object(&mut self, object: &Element, above: &Above) {
        let mut here = above.clone();
        for (name, value) in infos(object) {
            match name {
                "CPUVendor" => value.clone_into(&mut here.cpu.vendor),
                "CPUFamilyNumber" => here.cpu.family = value.parse().unwrap_or(0),
                "CPUModelNumber" => here.cpu.model = value.parse().unwrap_or(0),
                "Architecture" => here.cpu.arch = architecture(value).to_owned(),
                _ => {}
            }
        }
        let memory = object.children.iter().find(|it| it.attr("type") == Some("NUMANode"));
        if let Some(memory) = memory {
            here.numa = memory.attr("os_index").and_then(|it| it.parse().ok()).unwrap_or(0);
            here.cpu.affinity = affinity(memory.attr("cpuset").unwrap_or_default());
            if here.cpu.arch.is_empty() {
                "x86_64".clone_into(&mut here.cpu.arch);
            }
            self.machine.nodes.insert(here.numa, here.cpu.clone());
        }
        match object.attr("type") {
            Some("Bridge") => {
                if let Some(bus) = object.attr("pci_busid") {
                    self.device(object, &here, Part::Switch);
                    here.bridges.push(bus.to_ascii_lowercase());
                }
            }
            Some("PCIDev") => self.pci(object, &here),
            _ => {}
        }
        for child in object.children.iter().filter(|it| it.name == "object") {
            self.object(child, &here);
        }
    }

    fn pci(&mut self, object: &Element, here: &Above) {
        let kind = object.attr("pci_type").unwrap_or_default();
        let is_nvidia = kind.contains("[10de:");
        if kind.starts_with("03") && is_nvidia {
            let device = kind.split("[10de:").nth(1).and_then(|it| it.get(..4));
            let device = device.and_then(|it| u32::from_str_radix(it, 16).ok());
            let sm = device.and_then(capability).unwrap_or(80);
            let bus = object.attr("pci_busid").unwrap_or_default().to_ascii_lowercase();
            self.machine.assumed.push(format!("{bus}: sm {sm} by its device number"));
            for child in inside(object) {
                let index = child.attr("gp_index").or(child.attr("os_index")).unwrap_or_default();
                self.gpus.insert(index.to_owned(), bus.clone());
            }
            let (dev, nvlinks) = (self.n_gpus, Vec::new());
            self.n_gpus += 1;
            self.device(object, here, Part::Gpu { dev, sm, gdr: true, nvlinks });
            return;
        }
        let ports = self.ports(object);
        if kind.starts_with("02") && !ports.is_empty() {
            self.device(object, here, Part::Nic(ports));
        }
    }

    /// InfiniBand devices on a card; hwloc's type of them is 3 or OpenFabrics.
    fn ports(&mut self, object: &Element) -> Vec<Port> {
        let mut ports = Vec::new();
        for child in inside(object) {
            let kind = child.attr("osdev_type").unwrap_or_default();
            if kind != "3" && !kind.contains("OpenFabrics") {
                continue;
            }
            let info: BTreeMap<&str, &str> = infos(child).collect();
            let guid = info.get("SysImageGUID").or(info.get("NodeGUID")).copied().unwrap_or("0");
            let guid = u64::from_str_radix(&guid.replace(':', ""), 16).unwrap_or(0).swap_bytes();
            let name = child.attr("name").unwrap_or_default().to_owned();
            let (dev, gdr) = (self.n_ports, true);
            self.n_ports += 1;
            self.machine
                .assumed
                .push(format!("{name}: 100 Gbit/s and GPUDirect RDMA, which hwloc does not tell"));
            ports.push(Port { name, dev, speed: 100_000, port: 1, guid, gdr });
        }
        ports
    }

    fn device(&mut self, object: &Element, here: &Above, part: Part) {
        let bus = object.attr("pci_busid").unwrap_or_default().to_ascii_lowercase();
        let kind = object.attr("pci_type").unwrap_or_default();
        let class = kind.get(..4).unwrap_or("0604");
        // `0302 [10de:20b0] [10de:144e] a1`: what stands in brackets.
        let brackets = kind.split('[').skip(1).filter_map(|it| it.split(']').next());
        let ids: Vec<&str> = brackets.flat_map(|it| it.split(':')).collect();
        let id = |at: usize| format!("0x{}", ids.get(at).copied().unwrap_or("0000"));
        let speed = object.attr("pci_link_speed").and_then(|it| it.parse().ok()).unwrap_or(0.0);
        let (speed, width) = link(speed);
        // As in sysfs: a device's own port is no node, the bridge above the port is.
        let above = here.bridges.len().checked_sub(2).map(|it| here.bridges[it].clone());
        self.machine.devices.push(Device {
            bus,
            above,
            numa: here.numa,
            class: format!("0x{class}00"),
            ids: [id(0), id(1), id(2), id(3)],
            speed: speed.to_owned(),
            width,
            part,
        });
    }

    /// The matrix of NVLinks, where hwloc had a driver to ask: MB/s each way.
    fn nvlinks(&mut self, root: &Element) {
        let named = |it: &&Element| it.attr("name") == Some("NVLinkBandwidth");
        if root.children.iter().any(|it| named(&it)) {
            self.machine
                .assumed
                .push("hwloc's matrix of NVLinks is not read; NVLinks are not known".to_owned());
        }
    }
}

fn inside(object: &Element) -> impl Iterator<Item = &Element> {
    object.children.iter().filter(|it| it.name == "object")
}

fn infos(object: &Element) -> impl Iterator<Item = (&str, &str)> {
    let infos = object.children.iter().filter(|it| it.name == "info");
    infos.filter_map(|it| Some((it.attr("name")?, it.attr("value")?)))
}

fn architecture(text: &str) -> &'static str {
    match text {
        "aarch64" | "arm64" => "arm64",
        it if it.starts_with("ppc") => "ppc64",
        _ => "x86_64",
    }
}

/// `0x0000ffff,0xffffffff` without its marks.
fn affinity(text: &str) -> String {
    text.split(',').map(|it| it.trim_start_matches("0x")).collect::<Vec<_>>().join(",")
}

/// The speed and lanes that carry so many GB/s: of several pairs the widest, as servers have it.
fn link(gb_per_s: f32) -> (&'static str, u32) {
    const LANES: [(&str, f32); 6] = [
        ("2.5 GT/s PCIe", 0.25),
        ("5.0 GT/s PCIe", 0.5),
        ("8.0 GT/s PCIe", 0.984_6),
        ("16.0 GT/s PCIe", 1.969_2),
        ("32.0 GT/s PCIe", 3.938_5),
        ("64.0 GT/s PCIe", 7.563),
    ];
    for width in [16, 8, 4, 2, 1] {
        for (speed, lane) in LANES {
            let carried = lane * width as f32;
            if (carried - gb_per_s).abs() < carried * 0.04 {
                return (speed, width);
            }
        }
    }
    ("", 0)
}
