//! A Linux host from its sysfs: PCI tree, NUMA nodes, InfiniBand devices.
//!
//! Reading is the driver's; here is what was read, as paths below `/sys` with their contents.  The
//! value of `class/infiniband/mlx5_0/device` is the path that the link leads to.  As NCCL does, a
//! device hangs below the bridge two steps up, its own port being no node, and its link is the
//! slower of its own and that port's fastest.

use std::collections::BTreeMap;

use crate::host::machine::{Device, Machine, NoMachine, Node, Part, Port, capability};

/// What was read: paths below `/sys`, without the leading slash, and contents.
pub type Files = BTreeMap<String, String>;

/// What the driver knows of a GPU, where there is a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// Its bus id.
    pub bus: String,
    /// NVML's number.
    pub dev: u32,
    /// Compute capability.
    pub sm: u32,
    /// Bus ids of the far ends of its NVLinks that are up, one for each link, with their class.
    pub links: Vec<(String, String)>,
}

/// The machine that was read; `cpuinfo` is the text of `/proc/cpuinfo`.
///
/// # Errors
/// If there is neither a GPU nor a card.
pub fn machine(files: &Files, cpuinfo: &str, gpus: &[GpuFacts]) -> Result<Machine, NoMachine> {
    let mut machine = Machine::default();
    let devices = pci_devices(files);
    let ports = ports(files, &mut machine.assumed);
    let mut number = 0;
    for path in devices.values() {
        let bus = last(path).to_owned();
        let class = text(files, path, "class");
        let above = above(path);
        let part = if class.starts_with("0x0604") {
            Part::Switch
        } else if is_gpu(files, path, &class) {
            number += 1;
            gpu(files, path, &bus, number - 1, gpus, &mut machine.assumed)
        } else if let Some(ports) = ports.get(*path) {
            Part::Nic(ports.clone())
        } else {
            continue;
        };
        let numa = text(files, path, "numa_node").parse().unwrap_or(0);
        let ids = ["vendor", "device", "subsystem_vendor", "subsystem_device"];
        let ids = ids.map(|it| text(files, path, it));
        let (speed, width) = link(files, path);
        machine.devices.push(Device { bus, above, numa, class, ids, speed, width, part });
    }
    if machine.devices.iter().all(|it| it.part == Part::Switch) {
        return Err(NoMachine::Nothing { place: "sysfs".to_owned() });
    }
    let (vendor, family, model) = processor(cpuinfo);
    let arch = if cpuinfo.contains("CPU implementer") { "arm64" } else { "x86_64" };
    for numa in machine.devices.iter().map(|it| it.numa) {
        let map = format!("devices/system/node/node{numa}/cpumap");
        let affinity = files.get(&map).map_or("", |it| it.trim()).to_owned();
        if affinity.is_empty() && !machine.nodes.contains_key(&numa) {
            machine.assumed.push(format!(
                "NUMA node {numa}: {map} is not there, so its processors are not known"
            ));
        }
        let (arch, vendor) = (arch.to_owned(), vendor.clone());
        machine.nodes.insert(numa, Node { affinity, arch, vendor, family, model });
    }
    Ok(machine)
}

/// Real paths of PCI devices, by bus id.
fn pci_devices(files: &Files) -> BTreeMap<&str, &str> {
    let classes = files.keys().filter_map(|it| it.strip_suffix("/class"));
    classes.filter(|it| is_bus(last(it))).map(|it| (last(it), it)).collect()
}

fn is_gpu(files: &Files, path: &str, class: &str) -> bool {
    class.starts_with("0x03") && text(files, path, "vendor") == "0x10de"
}

fn gpu(
    files: &Files,
    path: &str,
    bus: &str,
    number: u32,
    gpus: &[GpuFacts],
    assumed: &mut Vec<String>,
) -> Part {
    let gdr = true;
    if let Some(facts) = gpus.iter().find(|it| it.bus.eq_ignore_ascii_case(bus)) {
        let mut nvlinks: Vec<(String, u32, String)> = Vec::new();
        for (target, class) in &facts.links {
            match nvlinks.iter_mut().find(|it| it.0 == *target) {
                Some(known) => known.1 += 1,
                None => nvlinks.push((target.clone(), 1, class.clone())),
            }
        }
        return Part::Gpu { dev: facts.dev, sm: facts.sm, gdr, nvlinks };
    }
    let device = text(files, path, "device");
    let known = u32::from_str_radix(device.trim_start_matches("0x"), 16).ok().and_then(capability);
    let sm = known.unwrap_or(80);
    let whence = if known.is_some() { "by its device number" } else { "for want of better" };
    assumed.push(format!("{bus}: sm {sm} {whence}; no driver to ask, so NVLinks are not known"));
    Part::Gpu { dev: number, sm, gdr, nvlinks: Vec::new() }
}

/// The bridge two steps up, whose port the device is on.
fn above(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let port = parts.len().checked_sub(2).map(|it| parts[it])?;
    let bridge = parts.len().checked_sub(3).map(|it| parts[it])?;
    (is_bus(port) && is_bus(bridge)).then(|| bridge.to_owned())
}

/// The slower of the device's and its port's fastest, in speed and in lanes.
fn link(files: &Files, path: &str) -> (String, u32) {
    let port = path.rsplit_once('/').map_or("", |it| it.0);
    let speed = |path: &str| {
        let text = text(files, path, "max_link_speed");
        let number = text.split_whitespace().next().and_then(|it| it.parse::<f32>().ok());
        number.map(|it| (it, text))
    };
    let speeds = [speed(path), speed(port)].into_iter().flatten();
    let slowest = speeds.min_by(|a, b| a.0.total_cmp(&b.0));
    // Where one of them says nothing NCCL writes 0, and takes 16 lanes for it.
    let width = |path: &str| text(files, path, "max_link_width").parse().unwrap_or(0);
    (slowest.map_or_else(String::new, |it| it.1), width(path).min(width(port)))
}

/// Ports of active InfiniBand and RoCE devices by the path of their card.
fn ports(files: &Files, assumed: &mut Vec<String>) -> BTreeMap<String, Vec<Port>> {
    const CLASS: &str = "class/infiniband/";
    let peer = ["module/nvidia_peermem/", "module/nv_peer_mem/"];
    let gdr = files.keys().any(|it| peer.iter().any(|peer| it.starts_with(peer)));
    let mut out: BTreeMap<String, Vec<Port>> = BTreeMap::new();
    let mut dev = 0;
    for (key, path) in files.iter().filter(|it| it.0.starts_with(CLASS)) {
        let Some(name) = key[CLASS.len()..].strip_suffix("/device") else { continue };
        let own = format!("{CLASS}{name}");
        let guid = text(files, &own, "sys_image_guid");
        let guid = if guid.is_empty() { text(files, &own, "node_guid") } else { guid };
        // NCCL prints the number that the network's byte order makes on a small-endian machine.
        let guid = u64::from_str_radix(&guid.replace(':', ""), 16).unwrap_or(0).swap_bytes();
        for port in 1..=8 {
            let at = format!("{own}/ports/{port}");
            let state = text(files, &at, "state");
            if !state.contains("ACTIVE") {
                continue;
            }
            let rate = text(files, &at, "rate");
            let gbps = rate.split_whitespace().next().and_then(|it| it.parse::<f32>().ok());
            let speed = (gbps.unwrap_or(10.0) * 1000.0) as u32;
            let name = name.to_owned();
            out.entry(path.clone()).or_default().push(Port { name, dev, speed, port, guid, gdr });
            dev += 1;
        }
    }
    if !gdr && dev > 0 {
        assumed.push(
            "no nvidia_peermem module is loaded: ports are taken as without GPUDirect RDMA, though \
             DMA-BUF may give it"
                .to_owned(),
        );
    }
    out
}

/// Vendor, family and model.
fn processor(cpuinfo: &str) -> (String, u32, u32) {
    let field = |name: &str| {
        let line =
            cpuinfo.lines().find(|it| it.split(':').next().is_some_and(|it| it.trim() == name));
        line.and_then(|it| it.split_once(':')).map_or("", |it| it.1.trim())
    };
    let number = |name| field(name).parse().unwrap_or(0);
    (field("vendor_id").to_owned(), number("cpu family"), number("model"))
}

fn text(files: &Files, path: &str, name: &str) -> String {
    files.get(&format!("{path}/{name}")).map_or_else(String::new, |it| it.trim().to_owned())
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether it reads like `0000:1a:00.0`.
fn is_bus(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let hex = |it: &&str| !it.is_empty() && it.chars().all(|it| it.is_ascii_hexdigit());
    parts.len() == 4 && parts.iter().all(hex)
}
