//! A server from what an operating system says about it, as NCCL makes its own file from it:
//! of each device its nearest switch, of each switch the next, up to the CPU.

use std::collections::BTreeMap;

use crate::host::nccl::xml::Element;

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// NUMA nodes, by number.
    pub nodes: BTreeMap<i32, Node>,
    /// GPUs, cards and all bridges.
    pub devices: Vec<Device>,
    /// What had to be assumed.
    pub assumed: Vec<String>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its processors, as words of eight hexadecimal digits.
    pub affinity: String,
    /// `x86_64`, `arm64` or `ppc64`.
    pub arch: String,
    /// `GenuineIntel`, `AuthenticAMD` and so on; x86 alone has one.
    pub vendor: String,
    /// CPU family.
    pub family: u32,
    /// CPU model.
    pub model: u32,
}

/// A PCI device.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its bus id.
    pub bus: String,
    /// The switch that it hangs below, by its upstream port; none below a CPU.
    pub above: Option<String>,
    /// Its NUMA node; -1 where the machine does not say, as virtual ones do.
    pub numa: i32,
    /// Such as `0x030200`.
    pub class: String,
    /// Vendor, device and the same of the subsystem, each as `0x10de`.
    pub ids: [String; 4],
    /// Such as `16.0 GT/s PCIe`.
    pub speed: String,
    /// Lanes.
    pub width: u32,
    /// What it is.
    pub part: Part,
}

/// What a device is to NCCL.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A bridge.
    Switch,
    /// A GPU.
    Gpu {
        /// NVML's number.
        dev: u32,
        /// Compute capability.
        sm: u32,
        /// Whether a port can reach it.
        gdr: bool,
        /// Bus id of the far end, count, and its class.
        nvlinks: Vec<(String, u32, String)>,
    },
    /// A card with ports.
    Nic(Vec<Port>),
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Such as `mlx5_0`.
    pub name: String,
    /// NCCL's number.
    pub dev: u32,
    /// Mbit/s.
    pub speed: u32,
    /// Port on the card.
    pub port: u32,
    /// The card's GUID, as NCCL writes it.
    pub guid: u64,
    /// Whether it can reach GPU memory.
    pub gdr: bool,
}

/// Why there is no topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMachine {
    /// Nothing that NCCL would look at.
    #[error("{place} shows no GPU and no network card")]
    Nothing {
        /// Where.
        place: String,
    },
    /// The text is of another kind.
    #[error("{place}: {what}")]
    Other {
        /// Where.
        place: String,
        /// What is wrong and what would be right.
        what: String,
    },
}

/// The topology file of a machine.
pub fn topology(machine: &Machine) -> Element {
    let mut root = Element::new("system").with("version", 1);
    let mut numas: Vec<i32> = machine.devices.iter().map(|it| it.numa).collect();
    numas.sort_unstable();
    numas.dedup();
    for numa in numas {
        let mut cpu = cpu(numa, machine.nodes.get(&numa));
        let above = |it: &&Device| it.above.is_none() && it.numa == numa;
        for device in machine.devices.iter().filter(above) {
            cpu.children.extend(element(machine, device, 0));
        }
        if !cpu.children.is_empty() {
            root.children.push(cpu);
        }
    }
    root
}

fn cpu(numa: i32, node: Option<&Node>) -> Element {
    let none = Node { arch: "x86_64".to_owned(), ..Node::default() };
    let node = node.unwrap_or(&none);
    let mut cpu = Element::new("cpu").with("numaid", numa);
    if !node.affinity.is_empty() {
        cpu = cpu.with("affinity", &node.affinity);
    }
    cpu = cpu.with("arch", &node.arch);
    if node.arch == "x86_64" {
        cpu = cpu.with("vendor", &node.vendor);
        cpu = cpu.with("familyid", node.family).with("modelid", node.model);
    }
    cpu
}

/// A device with all below it; nothing where a switch has nothing below it.
fn element(machine: &Machine, device: &Device, depth: usize) -> Option<Element> {
    /// PCI has 256 buses, and no tree of bridges is deeper than this.
    const DEPTH: usize = 32;
    const NAMES: [&str; 4] = ["vendor", "device", "subsystem_vendor", "subsystem_device"];
    let mut out = Element::new("pci").with("busid", &device.bus).with("class", &device.class);
    for (name, value) in NAMES.into_iter().zip(&device.ids) {
        out = out.with(name, value);
    }
    out = out.with("link_speed", &device.speed).with("link_width", device.width);
    match &device.part {
        Part::Switch => {
            let below = machine.devices.iter().filter(|it| it.above.as_ref() == Some(&device.bus));
            let below = below.filter(|_| depth < DEPTH);
            out.children = below.filter_map(|it| element(machine, it, depth + 1)).collect();
            return (!out.children.is_empty()).then_some(out);
        }
        Part::Gpu { dev, sm, gdr, nvlinks } => {
            let mut gpu = Element::new("gpu").with("dev", dev).with("sm", sm).with("rank", dev);
            gpu = gpu.with("gdr", u8::from(*gdr));
            for (target, count, class) in nvlinks {
                let link = Element::new("nvlink").with("target", target).with("count", count);
                gpu.children.push(link.with("tclass", class));
            }
            out.children.push(gpu);
        }
        Part::Nic(ports) => {
            let mut nic = Element::new("nic");
            for it in ports {
                let net = Element::new("net").with("name", &it.name).with("dev", it.dev);
                let net = net.with("speed", it.speed).with("port", it.port).with("latency", 0);
                let net = net.with("guid", format!("{:#x}", it.guid)).with("maxconn", 131_072);
                nic.children.push(net.with("gdr", u8::from(it.gdr)));
            }
            out.children.push(nic);
        }
    }
    Some(out)
}

/// Compute capability by the number of the device, which NVIDIA gives in blocks by chip.
pub fn capability(device: u32) -> Option<u32> {
    Some(match device {
        0x15f0..=0x15ff => 60,
        0x1b00..=0x1cff => 61,
        0x1d80..=0x1dff => 70,
        0x1e00..=0x1fff | 0x2180..=0x21ff => 75,
        0x2080..=0x20ff => 80,
        0x2300..=0x23ff => 90,
        0x2200..=0x22ff | 0x2400..=0x25ff => 86,
        0x2600..=0x28ff => 89,
        0x2900..=0x29ff => 100,
        0x3180..=0x31ff => 103,
        0x2b00..=0x2d7f => 120,
        0x2e00..=0x2eff => 121,
        _ => return None,
    })
}
