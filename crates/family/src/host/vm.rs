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
    /// A virtual function of the server's kind of card, and the order of bus ids.
    VirtualFunction,
    /// The kind of device alone, for the dump has no numbers, and the order of bus ids.
    Kind,
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
    /// A GPU on a card, or on something that is neither.
    #[error("--map puts {host}, which is a {host_kind}, on {guest}, which is a {guest_kind}")]
    Kinds {
        /// The server's bus id.
        host: String,
        /// What is there.
        host_kind: String,
        /// The guest's.
        guest: String,
        /// What is there.
        guest_kind: String,
    },
    /// Nothing in common.
    #[error("no GPU and no card of the dump is in the guest")]
    Nothing,
}

/// A leaf of the server's tree: a GPU or a card.
struct Leaf {
    bus: String,
    /// Four digits.
    class: String,
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
        // The host's name for itself and its processors' numbers mean nothing in the guest.  NCCL
        // reads the masks of the node of that number itself, but only where the file has none.
        kept.attrs.retain(|(name, _)| !matches!(name.as_str(), "host_hash" | "affinity"));
        if !kept.children.is_empty() {
            root.children.push(kept);
        }
    }
    numa(&root, guest, &mut findings);
    if bare.children.iter().any(|it| it.attr("affinity").is_some()) {
        let what = "the server's masks of processors (affinity) are left out: NCCL reads the \
                    guest's own for a NUMA node of the same number";
        findings.push((Severity::Note, what.to_owned()));
    }
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
            let class = short("class").chars().take(4).collect();
            Leaf { bus, class, vendor: short("vendor"), device: short("device"), guids }
        })
        .collect()
}

fn is_device(element: &Element) -> bool {
    let class = element.attr("class").unwrap_or_default();
    let is_end = class.starts_with("0x03") || class.starts_with("0x02");
    element.name == "pci" && element.children.iter().all(|it| it.name != "pci") && is_end
}

/// What a class of devices is to us: GPUs and network cards are what is mapped.
fn kind_of(class: &str) -> String {
    match class.get(..2) {
        Some("03" | "12") => "GPU".to_owned(),
        Some("02") => "network card".to_owned(),
        Some("06") => format!("bridge (class {class})"),
        _ => format!("device of class {class}"),
    }
}

/// The number of a card's virtual functions, of NVIDIA's and Mellanox's: from ConnectX-6 Dx on all
/// have one.
fn virtual_function(vendor: &str, device: &str) -> Option<&'static str> {
    let number = match (vendor, device) {
        ("15b3", "1013") => "1014",
        ("15b3", "1015") => "1016",
        ("15b3", "1017") => "1018",
        ("15b3", "1019") => "101a",
        ("15b3", "101b") => "101c",
        ("15b3", "a2d2") => "a2d3",
        ("15b3", "101d" | "101f" | "1021" | "1023" | "a2d6" | "a2dc") => "101e",
        _ => return None,
    };
    Some(number)
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
        let Some(leaf) = leaves.iter().find(|it| it.bus == host) else {
            return Err(VmError::NoHost { bus: host });
        };
        let Some(device) = guest.iter().find(|it| it.bus == bus) else {
            return Err(VmError::NoGuest { bus });
        };
        let (host_kind, guest_kind) = (kind_of(&leaf.class), kind_of(&device.class));
        if host_kind != guest_kind {
            return Err(VmError::Kinds { host, host_kind, guest: bus, guest_kind });
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
    for by in [By::Order, By::VirtualFunction, By::Kind] {
        by_order(leaves, guest, by, &mut matches, findings);
    }
    suggested(leaves, guest, &matches, findings);
    matches.sort_by(|a, b| a.host.cmp(&b.host));
    Ok(matches)
}

/// What devices of both worlds have alike, in words; none where it does not tell.
fn likeness(leaf: &Leaf, by: By) -> Option<String> {
    let Leaf { vendor, device, class, .. } = leaf;
    match by {
        By::Map | By::Serial => None,
        By::Order => (!device.is_empty()).then(|| format!("{vendor}:{device}")),
        By::VirtualFunction => {
            let function = virtual_function(vendor, device)?;
            Some(format!("{vendor}:{function} of class {class}"))
        }
        By::Kind => device.is_empty().then(|| kind_of(class)),
    }
}

fn is_like(leaf: &Leaf, device: &Device, by: By) -> bool {
    match by {
        By::Map | By::Serial => false,
        By::Order => leaf.vendor == device.vendor && leaf.device == device.device,
        By::VirtualFunction => {
            leaf.vendor == device.vendor
                && leaf.class == device.class
                && virtual_function(&leaf.vendor, &leaf.device) == Some(&device.device)
        }
        By::Kind => is_leaf(device) && kind_of(&leaf.class) == kind_of(&device.class),
    }
}

/// What is left, by what `by` says and by order.
fn by_order(
    leaves: &[Leaf],
    guest: &[Device],
    by: By,
    matches: &mut Vec<Match>,
    findings: &mut Vec<(Severity, String)>,
) {
    let free = |matches: &[Match], bus: &str| matches.iter().all(|it| it.guest != bus);
    let mut kinds: BTreeMap<String, Vec<&Leaf>> = BTreeMap::new();
    for leaf in leaves.iter().filter(|it| matches.iter().all(|other| other.host != it.bus)) {
        if let Some(alike) = likeness(leaf, by) {
            kinds.entry(alike).or_default().push(leaf);
        }
    }
    for (alike, mut leaves) in kinds {
        leaves.sort_by(|a, b| a.bus.cmp(&b.bus));
        let same = guest.iter().filter(|it| is_like(leaves[0], it, by));
        let mut buses: Vec<&str> =
            same.map(|it| it.bus.as_str()).filter(|it| free(matches, it)).collect();
        buses.sort_unstable();
        if buses.is_empty() {
            continue;
        }
        let (n, n_leaves) = (buses.len(), leaves.len());
        findings.push(by_order_alone(by, &alike, n, leaves.as_slice()));
        // Of one kind alone a server has none to spare, so that more in the guest are others too.
        if n < n_leaves || (by != By::Order && n_leaves < n) {
            let what = format!(
                "the guest has {n} for the server's {n_leaves} devices ({alike}); by order the first \
                 are taken, which is a guess"
            );
            findings.push((Severity::Error, what));
        }
        for (leaf, bus) in leaves.iter().zip(buses) {
            matches.push(Match { host: leaf.bus.clone(), guest: bus.to_owned(), by });
        }
    }
}

fn by_order_alone(by: By, alike: &str, n: usize, leaves: &[&Leaf]) -> (Severity, String) {
    let count = n.min(leaves.len());
    let what = match by {
        By::VirtualFunction => {
            let mut cards: Vec<String> =
                leaves.iter().map(|it| format!("{}:{}", it.vendor, it.device)).collect();
            cards.sort();
            cards.dedup();
            format!(
                "{count} of virtual functions {alike} were matched to cards {}",
                cards.join(", ")
            )
        }
        By::Kind => format!(
            "the dump has no vendor and device of its {} {alike}s, of which {count} were matched",
            leaves.len()
        ),
        By::Map | By::Serial | By::Order => format!("{count} of {alike} were matched"),
    };
    let compare = match leaves.iter().all(|it| kind_of(&it.class) == "GPU") {
        true => "compare UUIDs with `nvidia-smi -L`",
        false => "compare GUIDs with `ibstat`",
    };
    let advice = format!(
        "by the order of bus ids alone; hypervisors need not keep it: {compare} and use --map"
    );
    let is_sure = by == By::Order && n == 1 && leaves.len() == 1;
    let severity = if is_sure { Severity::Note } else { Severity::Warning };
    (severity, format!("{what} {advice}"))
}

/// Devices of one kind that are left on both sides: nothing says that they are the same.
fn suggested(
    leaves: &[Leaf],
    guest: &[Device],
    matches: &[Match],
    findings: &mut Vec<(Severity, String)>,
) {
    for kind in ["GPU", "network card"] {
        let hosts = leaves.iter().filter(|it| kind_of(&it.class) == kind);
        let mut hosts: Vec<&Leaf> =
            hosts.filter(|it| matches.iter().all(|other| other.host != it.bus)).collect();
        let guests = guest.iter().filter(|it| is_leaf(it) && kind_of(&it.class) == kind);
        let mut guests: Vec<&Device> =
            guests.filter(|it| matches.iter().all(|other| other.guest != it.bus)).collect();
        hosts.sort_by(|a, b| a.bus.cmp(&b.bus));
        guests.sort_by(|a, b| a.bus.cmp(&b.bus));
        for (host, guest) in hosts.into_iter().zip(guests) {
            let what = format!(
                "the server's {kind} {} ({}:{}) may be the guest's {} ({}:{}), which nothing says: \
                 if it is, --map {}={}",
                host.bus,
                host.vendor,
                host.device,
                guest.bus,
                guest.vendor,
                guest.device,
                host.bus,
                guest.bus
            );
            findings.push((Severity::Error, what));
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
