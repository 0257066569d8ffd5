//! A rack of servers whose GPUs are one NVLink domain, as NCCL sees it when it has merged their
//! files: the largest thing that one search has to do with.
//!
//! Each server has Grace CPUs with two GPUs each on chip-to-chip links, two ports per CPU behind
//! PCI switches of their own, and all GPUs of the rack on the same NVSwitches.

use crate::host::nccl::xml::Element;

/// How large a rack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RackShape {
    /// Servers.
    pub hosts: u16,
    /// CPUs of each; a CPU has two GPUs and two ports.
    pub cpus: u16,
}

impl RackShape {
    /// Eighteen servers of four GPUs: 72 GPUs.
    pub const NVL72: RackShape = RackShape { hosts: 18, cpus: 2 };
}

/// GPUs, and as many ports, at each CPU.
const GPUS: u16 = 2;

/// NVLinks of each GPU.
const NVLINKS: u16 = 18;

/// The rack's topology file.
pub fn rack(shape: RackShape) -> Element {
    let mut root = Element::new("system").with("version", 1);
    for host in 0..shape.hosts {
        for cpu in 0..shape.cpus {
            root.children.push(cpu_of(host, cpu, shape));
        }
    }
    root
}

fn cpu_of(host: u16, cpu: u16, shape: RackShape) -> Element {
    let mut element = Element::new("cpu")
        .with("numaid", cpu)
        // NCCL tells hosts apart by a hash; any numbers will do.
        .with("host_hash", format_args!("0x{:x}", 0x5e1f_0000 + u32::from(host)))
        .with("arch", "arm64");
    for nth in 0..GPUS {
        let dev = cpu * GPUS + nth;
        let rank = host * shape.cpus * GPUS + dev;
        element.children.push(gpu_slot(dev, rank));
        element.children.push(port_slot(host, dev));
    }
    element
}

/// A PCI root port with the GPU below it.
fn gpu_slot(dev: u16, rank: u16) -> Element {
    let nvlink = Element::new("nvlink")
        .with("target", "fffffff:ffff:ff")
        .with("count", NVLINKS)
        .with("tclass", "0x068000");
    let c2c = Element::new("c2c").with("bw", 44_712).with("count", 10);
    let mut gpu =
        Element::new("gpu").with("dev", dev).with("sm", 100).with("rank", rank).with("gdr", 1);
    gpu.children.extend([nvlink, c2c]);
    bridge(dev * 2, pci(dev * 2 + 1, "0x030200", gpu))
}

/// A PCI switch with a card below it.
fn port_slot(host: u16, dev: u16) -> Element {
    let net = Element::new("net")
        .with("name", format_args!("mlx5_{dev}"))
        .with("dev", dev)
        .with("speed", 400_000)
        .with("port", 1)
        .with(
            "guid",
            format_args!("0x{:x}", 0x5e1f_0000_0000 + u64::from(host) * 16 + u64::from(dev)),
        )
        .with("maxconn", 131_072)
        .with("gdr", 1);
    let mut nic = Element::new("nic");
    nic.children.push(net);
    bridge(0x40 + dev * 2, pci(0x41 + dev * 2, "0x020000", nic))
}

fn bridge(bus: u16, below: Element) -> Element {
    pci(bus, "0x060400", below)
}

fn pci(bus: u16, class: &str, below: Element) -> Element {
    let mut pci = Element::new("pci")
        .with("busid", format_args!("0000:{bus:02x}:00.0"))
        .with("class", class)
        .with("link_speed", "32.0 GT/s PCIe")
        .with("link_width", 16);
    pci.children.push(below);
    pci
}
