//! A VM's topology file from a dump of the bare-metal server and what the guest's lspci shows.
//!
//! The guest sees its GPUs and cards on made-up buses; NCCL then finds neither switches nor
//! widths.  The file made here keeps the server's CPUs, switches and links, and puts the guest's
//! bus ids on the devices; NCCL fills in the rest when it runs (notes §4.2).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::host::lint::Severity;
use crate::host::lspci::Device;
use crate::host::nccl::xml::Element;

/// How a device of the server was found in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The user said so.
    Map,
    /// The card's GUID or MAC is the guest's serial number.
    Serial,
    /// The numbers of vendor and device, and the order of bus ids.
    Order,
}

/// One device in both worlds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Match {
    /// Its bus id on the server.
    pub host: String,
    /// Its bus id in the guest.
    pub guest: String,
    /// How it was found.
    pub by: By,
}

/// The file and what there is to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The outermost element.
    pub root: Element,
    /// Which device is which.
    pub matches: Vec<Match>,
    /// Doubts, worst first.
    pub findings: Vec<(Severity, String)>,
}

/// What is to be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Pairs of bus ids, the server's and the guest's.
    pub map: BTreeMap<String, String>,
    /// Whether GPUs' and ports' own facts stay, for a look at the file without NCCL.
    pub filled: bool,
}

/// Why no file can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmError {
    /// A mapped device is not on the server.
    #[error("--map names {bus}, which is no GPU and no card of the dump")]
    NoHost {
        /// Its bus id.
        bus: String,
    },
    /// A mapped device is not in the guest.
    #[error("--map names {bus}, which the guest's lspci does not list")]
    NoGuest {
        /// Its bus id.
        bus: String,
    },
    /// Two devices of the server on one of the guest.
    #[error("--map puts two devices on {bus}")]
    Twice {
        /// The guest's bus id.
        bus: String,
    },
    /// Nothing in common.
    #[error("no GPU and no card of the dump is in the guest")]
    Nothing,
}

/// A leaf of the server's tree: a GPU or a card.
struct Leaf {
    bus: String,
    vendor: String,
    device: String,
    guids: Vec<String>,
}

/// The guest's file.
///
/// # Errors
/// If `map` names what is not there, or nothing is found at all.
pub fn build(bare: &Element, guest: &[Device], options: &Options) -> Result<Built, VmError> {
    let leaves = leaves(bare);
    let mut findings = Vec::new();
    let matches = matched(&leaves, guest, options, &mut findings)?;
    if matches.is_empty() {
        return Err(VmError::Nothing);
    }
    let to: BTreeMap<&str, &str> =
        matches.iter().map(|it| (it.host.as_str(), it.guest.as_str())).collect();
    for leaf in leaves.iter().filter(|it| !to.contains_key(it.bus.as_str())) {
        findings.push((Severity::Note, format!("{} is not in the guest; left out", leaf.bus)));
    }
    for it in guest.iter().filter(|it| is_leaf(it) && !to.values().any(|bus| *bus == it.bus)) {
        let what = format!(
            "the guest's {} ({}:{}) is not on the server's dump; NCCL will put it below a CPU",
            it.bus, it.vendor, it.device
        );
        findings.push((Severity::Warning, what));
    }
    let mut switches = 0;
    let mut root = Element::new("system").with("version", 1);
    for cpu in bare.children.iter().filter(|it| it.name == "cpu") {
        let mut kept = kept(cpu, &to, options.filled, &mut switches);
        // The host's name for itself means nothing in the guest.
        kept.attrs.retain(|(name, _)| name != "host_hash");
        if !kept.children.is_empty() {
            root.children.push(kept);
        }
    }
    numa(&root, guest, &mut findings);
    findings.sort_by_key(|it| it.0);
    Ok(Built { root, matches, findings })
}

fn leaves(bare: &Element) -> Vec<Leaf> {
    let all = crate::host::place::walk(bare);
    let leaves = all.iter().map(|it| it.1).filter(|it| is_device(it));
    leaves
        .map(|it| {
            let nets = crate::host::place::walk(it);
            let guids = nets.iter().filter_map(|it| it.1.attr("guid")).map(digits).collect();
            let short = |name| digits(it.attr(name).unwrap_or_default());
            let bus = it.attr("busid").unwrap_or_default().to_ascii_lowercase();
            Leaf { bus, vendor: short("vendor"), device: short("device"), guids }
        })
        .collect()
}

fn is_device(element: &Element) -> bool {
    let class = element.attr("class").unwrap_or_default();
    let is_end = class.starts_with("0x03") || class.starts_with("0x02");
    element.name == "pci" && element.children.iter().all(|it| it.name != "pci") && is_end
}

fn is_leaf(device: &Device) -> bool {
    device.class == "0302"
        || (device.class == "0300" && device.vendor == "10de")
        || device.class.starts_with("02") && device.vendor == "15b3"
}

fn digits(text: &str) -> String {
    text.trim_start_matches("0x").to_ascii_lowercase()
}

/// Whether a card's GUID is a guest's serial number, written either way round, or both are made
/// from one MAC: the middle of an EUI-64 is filler.
fn same_card(guid: &str, serial: &str) -> bool {
    let padded = format!("{guid:0>16}");
    if padded.len() != 16 || !padded.is_ascii() {
        return false;
    }
    let bytes: Vec<&str> = (0..8).map(|it| &padded[it * 2..it * 2 + 2]).collect();
    let turned: String = bytes.iter().rev().copied().collect();
    let mac = |it: &str| format!("{}{}", &it[..6], &it[10..]);
    [padded.as_str(), turned.as_str()]
        .into_iter()
        .any(|it| it == serial || mac(it) == mac(serial) && mac(it) != "000000000000")
}

/// The pairs that the user names.
fn mapped(leaves: &[Leaf], guest: &[Device], options: &Options) -> Result<Vec<Match>, VmError> {
    let mut matches: Vec<Match> = Vec::new();
    for (host, bus) in &options.map {
        let (host, bus) = (host.to_ascii_lowercase(), bus.to_ascii_lowercase());
        if !leaves.iter().any(|it| it.bus == host) {
            return Err(VmError::NoHost { bus: host });
        }
        if !guest.iter().any(|it| it.bus == bus) {
            return Err(VmError::NoGuest { bus });
        }
        if matches.iter().any(|it| it.guest == bus) {
            return Err(VmError::Twice { bus });
        }
        matches.push(Match { host, guest: bus, by: By::Map });
    }
    Ok(matches)
}

fn matched(
    leaves: &[Leaf],
    guest: &[Device],
    options: &Options,
    findings: &mut Vec<(Severity, String)>,
) -> Result<Vec<Match>, VmError> {
    let mut matches = mapped(leaves, guest, options)?;
    let free = |matches: &[Match], bus: &str| matches.iter().all(|it| it.guest != bus);
    let open = |matches: &[Match], bus: &str| matches.iter().all(|it| it.host != bus);
    for leaf in leaves {
        let serials = guest.iter().filter(|it| {
            let serial = it.serial.as_deref().unwrap_or_default();
            serial.len() == 16 && leaf.guids.iter().any(|guid| same_card(guid, serial))
        });
        let found = serials.map(|it| it.bus.clone()).find(|it| free(&matches, it));
        if let (true, Some(bus)) = (open(&matches, &leaf.bus), found) {
            matches.push(Match { host: leaf.bus.clone(), guest: bus, by: By::Serial });
        }
    }
    by_order(leaves, guest, &mut matches, findings);
    matches.sort_by(|a, b| a.host.cmp(&b.host));
    Ok(matches)
}

/// What is left, by the numbers of vendor and device and by order.
fn by_order(
    leaves: &[Leaf],
    guest: &[Device],
    matches: &mut Vec<Match>,
    findings: &mut Vec<(Severity, String)>,
) {
    let free = |matches: &[Match], bus: &str| matches.iter().all(|it| it.guest != bus);
    let mut kinds: BTreeMap<(&str, &str), Vec<&Leaf>> = BTreeMap::new();
    let open = |it: &&Leaf| matches.iter().all(|other| other.host != it.bus);
    for leaf in leaves.iter().filter(open) {
        kinds.entry((leaf.vendor.as_str(), leaf.device.as_str())).or_default().push(leaf);
    }
    for ((vendor, device), mut leaves) in kinds {
        leaves.sort_by(|a, b| a.bus.cmp(&b.bus));
        let same = guest.iter().filter(|it| it.vendor == vendor && it.device == device);
        let mut buses: Vec<&str> =
            same.map(|it| it.bus.as_str()).filter(|it| free(matches, it)).collect();
        buses.sort_unstable();
        if buses.is_empty() {
            continue;
        }
        let what = format!(
            "{} of {vendor}:{device} were matched by the order of bus ids alone; hypervisors need not \
             keep it: compare UUIDs with `nvidia-smi -L` and use --map",
            buses.len().min(leaves.len())
        );
        let severity = if buses.len() == leaves.len() && buses.len() == 1 {
            Severity::Note
        } else {
            Severity::Warning
        };
        findings.push((severity, what));
        if buses.len() < leaves.len() {
            let what = format!(
                "the guest has {} of the server's {} devices {vendor}:{device}; by order the first \
                 are taken, which is a guess",
                buses.len(),
                leaves.len()
            );
            findings.push((Severity::Error, what));
        }
        for (leaf, bus) in leaves.iter().zip(buses) {
            let (host, guest) = (leaf.bus.clone(), bus.to_owned());
            matches.push(Match { host, guest, by: By::Order });
        }
    }
}

/// The element with what is in the guest below it, switches on bus ids that no guest has.
fn kept(element: &Element, to: &BTreeMap<&str, &str>, filled: bool, switches: &mut u32) -> Element {
    let mut out = Element { children: Vec::new(), ..element.clone() };
    for child in element.children.iter().filter(|it| it.name == "pci") {
        let bus = child.attr("busid").unwrap_or_default().to_ascii_lowercase();
        if is_device(child) {
            let Some(guest) = to.get(bus.as_str()) else { continue };
            let mut device = child.clone();
            set(&mut device, "busid", guest);
            if filled {
                remap(&mut device, to);
            } else {
                device.children.clear();
            }
            out.children.push(device);
            continue;
        }
        // The number is taken first, so that switches count from the top.
        *switches += 1;
        let number = *switches;
        let mut switch = kept(child, to, filled, switches);
        if !switch.children.is_empty() {
            set(
                &mut switch,
                "busid",
                &format!("ffff:{:02x}:{:02x}.0", 0xff - number / 32, number % 32),
            );
            out.children.push(switch);
        }
    }
    out
}

/// Links inside a device name guests' bus ids too; those to what is not there go.
fn remap(device: &mut Element, to: &BTreeMap<&str, &str>) {
    for inside in &mut device.children {
        inside.children.retain_mut(|it| {
            let target = it.attr("target").map(str::to_ascii_lowercase);
            let is_gpu = it.attr("tclass").is_some_and(|it| it.starts_with("0x03"));
            match target.and_then(|it| to.get(it.as_str()).copied()) {
                Some(bus) => {
                    set(it, "target", bus);
                    true
                }
                None => !is_gpu,
            }
        });
    }
}

fn set(element: &mut Element, name: &str, value: &str) {
    for (it, old) in &mut element.attrs {
        if it == name {
            value.clone_into(old);
        }
    }
}

/// The guest's own NUMA nodes, where it has several, ought to part devices as the server's do.
fn numa(root: &Element, guest: &[Device], findings: &mut Vec<(Severity, String)>) {
    let mut nodes: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for cpu in &root.children {
        let number = cpu.attr("numaid").unwrap_or_default().to_owned();
        for (_, element) in crate::host::place::walk(cpu) {
            let bus = element.attr("busid").unwrap_or_default();
            let Some(device) = guest.iter().find(|it| it.bus == bus) else { continue };
            if let Some(node) = device.numa {
                let own = nodes.entry(node).or_default();
                if !own.contains(&number) {
                    own.push(number.clone());
                }
            }
        }
    }
    let mixed: Vec<String> =
        nodes.iter().filter(|it| it.1.len() > 1).map(|it| it.0.to_string()).collect();
    if root.children.len() > 1 && !mixed.is_empty() {
        let what = format!(
            "the guest's NUMA node {} holds devices of several of the server's: give the guest the \
             server's NUMA nodes, for the <cpu> of this file names theirs",
            mixed.join(", ")
        );
        findings.push((Severity::Warning, what));
    }
}
