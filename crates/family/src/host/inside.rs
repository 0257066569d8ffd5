//! A host from its topology file: what stands in NCCL's file becomes nodes, ports and links that
//! the house knows, with what each link carries.
//!
//! GPUs are `gpu0`, `gpu1`, … by rank, then by their place in the file; network ports `nic0/port`,
//! `nic1/port`, … by NCCL's number, so that a cable's name does not depend on where its card sits.
//! In a virtual machine's file, which names PCI devices alone, their classes say what they are.
//! Ports that lead out come first, then NVLinks, then the rest: what has lanes and errors of its
//! own is measured before a job starts.

mod devices;

use std::collections::BTreeMap;

pub use devices::Devices;

use selvedge_model::fabric::{
    FileFault, LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
};
use selvedge_model::limits::SEATS_MAX;
use selvedge_model::spec::{At, point};
use selvedge_model::unit::BitRate;

use crate::host::hardware::{NVLINK, PCIE};
use crate::host::lint::{self, Severity};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::{Element, Place, Strictness, XmlError, read};
use crate::host::nccl::{self, graph};

/// The most nodes that one host may have.
const NODES_MAX: usize = 4096;

/// What stands before the file's name in the name of a host's structure.
pub const PREFIX: &str = "host:";

/// All NVSwitches of a host together.
const NVSWITCH: &str = "m0/nvswitch";

/// What two sockets exchange in GB/s where the file does not say which CPUs they are.  Assumed:
/// what NCCL takes for Skylake.
const SOCKET_GB: f32 = 10.0;

/// A host as its topology file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Its structure, called [`PREFIX`] and the file's name.
    pub template: Template,
    /// What `topo lint` says of the file, without its notes.
    pub faults: Vec<FileFault>,
}

/// Why a file gives no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoInside {
    /// Not well-formed.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// Well-formed, but something else.
    #[error("<{found}> is no topology of NCCL; its files begin with <system")]
    NoSystem {
        /// The outermost element.
        found: String,
        /// Where.
        place: Place,
    },
    /// Nothing to place a job on.
    #[error("no GPU below a CPU; use a file that NCCL_TOPO_DUMP_FILE wrote")]
    NoGpu {
        /// Where the file begins.
        place: Place,
    },
    /// More than a job's hold has bits for.
    #[error("{n} GPUs; one host of a plant has at most {SEATS_MAX}")]
    ManyGpus {
        /// How many.
        n: usize,
        /// The first that is too many.
        place: Place,
    },
    /// More than any host has.
    #[error("more than {NODES_MAX} devices; a host has fewer")]
    TooLarge {
        /// The first that is too many.
        place: Place,
    },
}

impl NoInside {
    /// Where in the file.
    pub fn place(&self) -> Place {
        match self {
            NoInside::Xml(error) => error.place(),
            NoInside::NoSystem { place, .. }
            | NoInside::NoGpu { place }
            | NoInside::ManyGpus { place, .. }
            | NoInside::TooLarge { place } => *place,
        }
    }
}

/// An error at its place in the file, drawn as a plant file's faults are.
pub fn draw(name: &str, xml: &str, error: &NoInside) -> String {
    let place = error.place();
    let before: usize = xml.split_inclusive('\n').take(place.line as usize - 1).map(str::len).sum();
    let start = u32::try_from(before + place.column as usize - 1).unwrap_or(u32::MAX);
    let wrong = error.to_string();
    let wrong = wrong.strip_prefix(&format!("{place}: ")).unwrap_or(&wrong);
    let right = "NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it";
    point(name, xml, At { start, end: start.saturating_add(1) }, wrong, right)
}

/// The host that the file called `name` describes.
///
/// # Errors
/// [`NoInside`]: what NCCL would refuse but can be read is a fault of the file, not an error.
pub fn inside(name: &str, xml: &str) -> Result<Inside, NoInside> {
    let newest = Profile::ALL[Profile::ALL.len() - 1];
    let root = read(xml, Strictness::Lenient { single_quotes: true })?.root;
    if root.name != "system" {
        return Err(NoInside::NoSystem { found: root.name, place: root.place });
    }
    let template = Build::of(&root)?.template(name, socket_rate(&root, newest));
    let faults = lint::lint(xml, newest)?.findings.iter().filter_map(fault).collect();
    Ok(Inside { template, faults })
}

/// What NCCL takes two of these sockets to exchange.
fn socket_rate(root: &Element, profile: Profile) -> BitRate {
    /// NCCL's word for "no limit".
    const NO_LIMIT: f32 = 5000.0;
    let known = nccl::graph_of(root, profile).ok().and_then(|graph| {
        let cpu = *graph.kind(graph::NodeKind::Cpu).first()?;
        let mut links = graph.node(cpu).links.iter();
        links.find(|it| it.kind == graph::LinkKind::Sys).map(|it| it.width.0)
    });
    let gigabytes = known.filter(|it| *it < NO_LIMIT).unwrap_or(SOCKET_GB);
    BitRate::gbps((gigabytes * 8.0) as u64)
}

fn fault(finding: &lint::Finding) -> Option<FileFault> {
    let is_error = match finding.severity {
        Severity::Error => true,
        Severity::Warning => false,
        Severity::Note => return None,
    };
    let place = finding.place.map(|it| format!("{it}: ")).unwrap_or_default();
    let (rule, name) = (lint::number_of(finding.rule), finding.rule);
    let what = format!("{place}{}", finding.what);
    let mended = if finding.is_fixed { "; `selvedge topo lint --fix` does it" } else { "" };
    Some(FileFault { rule, name, is_error, what, advice: format!("{}{mended}", finding.advice) })
}

/// What one piece of the file is.
enum Piece {
    Cpu,
    Switch,
    Gpu { rank: i64, sm: u32 },
    Card { devs: Vec<i64> },
}

/// A piece with what it hangs on.
struct Placed {
    piece: Piece,
    /// A place in the list of pieces; none of a CPU.
    above: Option<usize>,
    bus: String,
    rate: BitRate,
    place: Place,
}

/// An NVLink, a chip-to-chip link or a link between switches, as one end names it.
struct Named {
    from: usize,
    kind: String,
    target: String,
    class: String,
    count: u64,
    each: u64,
}

#[derive(Default)]
struct Build {
    pieces: Vec<Placed>,
    named: Vec<Named>,
}

impl Build {
    fn of(root: &Element) -> Result<Build, NoInside> {
        let mut build = Build::default();
        for cpu in root.children.iter().filter(|it| it.name == "cpu") {
            let at = build.add(cpu, Piece::Cpu, None)?;
            let mut todo: Vec<(&Element, usize)> =
                cpu.children.iter().rev().map(|it| (it, at)).collect();
            while let Some((element, above)) = todo.pop() {
                match element.name.as_str() {
                    "pci" => {
                        let at = build.device(element, above)?;
                        let below = element.children.iter().rev();
                        todo.extend(below.filter(|it| it.name == "pci").map(|it| (it, at)));
                    }
                    // Ports without a PCI device.
                    "nic" => drop(build.add(element, card(Some(element)), Some(above))?),
                    _ => {}
                }
            }
        }
        let gpus = build.pieces.iter().filter(|it| matches!(it.piece, Piece::Gpu { .. }));
        let n = gpus.clone().count();
        match gpus.clone().nth(SEATS_MAX) {
            Some(it) => Err(NoInside::ManyGpus { n, place: it.place }),
            None if n == 0 => Err(NoInside::NoGpu { place: root.place }),
            None => Ok(build),
        }
    }

    /// A PCI device; what is on it or, where the file does not say, its class decides.
    fn device(&mut self, element: &Element, above: usize) -> Result<usize, NoInside> {
        let class = element.attr("class").unwrap_or_default();
        let (gpu, nic) = (element.child("gpu"), element.child("nic"));
        let piece = match (gpu, nic) {
            (Some(gpu), _) => {
                let sm = number(gpu, "sm").and_then(|it| u32::try_from(it).ok()).unwrap_or(0);
                Piece::Gpu { rank: number(gpu, "rank").unwrap_or(i64::MAX), sm }
            }
            (None, Some(nic)) => card(Some(nic)),
            (None, None) if class.starts_with("0x03") => Piece::Gpu { rank: i64::MAX, sm: 0 },
            (None, None) if class.starts_with("0x02") => card(None),
            (None, None) => Piece::Switch,
        };
        let at = self.add(element, piece, Some(above))?;
        let own = element.children.iter().filter(|it| it.name == "pcilink");
        for link in gpu.into_iter().flat_map(|it| &it.children).chain(own) {
            let text = |name: &str| link.attr(name).unwrap_or_default().to_owned();
            let count = |name| number(link, name).and_then(|it| u64::try_from(it).ok());
            self.named.push(Named {
                from: at,
                kind: link.name.clone(),
                target: text("target").to_ascii_lowercase(),
                class: text("tclass"),
                count: count("count").unwrap_or(0).min(1 << 10),
                each: count("bw").unwrap_or(0).min(1 << 30),
            });
        }
        Ok(at)
    }

    fn add(
        &mut self,
        element: &Element,
        piece: Piece,
        above: Option<usize>,
    ) -> Result<usize, NoInside> {
        if self.pieces.len() == NODES_MAX {
            return Err(NoInside::TooLarge { place: element.place });
        }
        let bus = element.attr("busid").unwrap_or_default().to_ascii_lowercase();
        let (rate, place) = (pcie_rate(element), element.place);
        self.pieces.push(Placed { piece, above, bus, rate, place });
        Ok(self.pieces.len() - 1)
    }

    /// Pieces of one kind, by `key` and then by their place in the file.
    fn ordered<K: Ord>(&self, key: impl Fn(&Piece) -> Option<K>) -> Vec<usize> {
        let mut found: Vec<(K, usize)> = self
            .pieces
            .iter()
            .enumerate()
            .filter_map(|(at, it)| Some((key(&it.piece)?, at)))
            .collect();
        found.sort();
        found.into_iter().map(|it| it.1).collect()
    }

    /// By rank, then by their place in the file: the order of the seats.
    fn gpus(&self) -> Vec<usize> {
        self.ordered(|it| match it {
            Piece::Gpu { rank, .. } => Some(*rank),
            _other => None,
        })
    }

    /// Every port of every card with its number, in the order of NCCL's numbers.
    fn ports(&self) -> Vec<(i64, usize)> {
        let mut ports: Vec<(i64, usize)> = Vec::new();
        for (at, it) in self.pieces.iter().enumerate() {
            if let Piece::Card { devs } = &it.piece {
                ports.extend(devs.iter().map(|dev| (*dev, at)));
            }
        }
        ports.sort_unstable();
        ports
    }

    fn template(&self, name: &str, socket: BitRate) -> Template {
        let gpus = self.gpus();
        let cpus = self.ordered(|it| matches!(it, Piece::Cpu).then_some(()));
        let switches = self.ordered(|it| matches!(it, Piece::Switch).then_some(()));
        let ports = self.ports();
        let mut names = vec![String::new(); self.pieces.len()];
        for (prefix, order) in [("gpu", &gpus), ("m0/cpu", &cpus), ("m0/pci", &switches)] {
            for (idx, at) in order.iter().enumerate() {
                names[*at] = format!("{prefix}{idx}");
            }
        }
        for (idx, (_, at)) in ports.iter().enumerate().rev() {
            names[*at] = format!("nic{idx}");
        }
        // A card without ports is nobody's port.
        for (at, it) in self.pieces.iter().enumerate() {
            if names[at].is_empty() && matches!(it.piece, Piece::Card { .. }) {
                names[at] = format!("m0/card{at}");
            }
        }
        let mut draft = Draft::of(self, &names);
        for (idx, (_, at)) in ports.iter().enumerate() {
            draft.port(node_of(*at), format!("nic{idx}/port"));
        }
        self.nvlinks(&gpus, &names, &mut draft);
        self.buses(&names, &mut draft);
        self.other_links(&names, &mut draft);
        draft.sockets(&cpus, &names, socket);
        let seats = gpus.iter().map(|it| node_of(*it)).collect();
        Template::new(
            format!("{PREFIX}{name}"),
            Role::Compute,
            draft.nodes,
            draft.ports,
            draft.links,
            seats,
        )
        .expect("at most 64 seats, and every link has ports of its own")
    }

    /// NVLinks to switches, and those between GPUs once for both ends.
    fn nvlinks(&self, gpus: &[usize], names: &[String], draft: &mut Draft) {
        let seat = |at: usize| gpus.iter().position(|it| *it == at);
        let mut to_switch: BTreeMap<usize, u64> = BTreeMap::new();
        let mut pairs: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for link in self.named.iter().filter(|it| it.kind == "nvlink") {
            let Some(from) = seat(link.from) else { continue };
            if link.class.starts_with("0x068000") {
                *to_switch.entry(from).or_default() += link.count;
            } else if link.class.starts_with("0x03") {
                let to = self.pieces.iter().position(|it| it.bus == link.target).and_then(seat);
                let Some(to) = to.filter(|it| *it != from) else { continue };
                let count = pairs.entry((from.min(to), from.max(to))).or_default();
                *count = link.count.max(*count);
            }
        }
        if !to_switch.is_empty() {
            let switch = draft.node(NodeKind::Switch, NVSWITCH.to_owned());
            for (gpu, count) in to_switch {
                let ends = [
                    (node_of(gpus[gpu]), format!("gpu{gpu}/nvlink")),
                    (switch, format!("m0/nvswitch/{gpu}")),
                ];
                draft.link(ends, self.nvlink(gpus[gpu], count));
            }
        }
        for ((a, b), count) in pairs {
            let end = |near: usize, far: usize| {
                (node_of(gpus[near]), format!("{}/nvlink-gpu{far}", names[gpus[near]]))
            };
            draft.link([end(a, b), end(b, a)], self.nvlink(gpus[a], count));
        }
    }

    /// So many NVLinks of a GPU, in one direction, by the data sheets of its generation.
    fn nvlink(&self, at: usize, count: u64) -> LinkAttrs {
        let sm = match self.pieces[at].piece {
            Piece::Gpu { sm, .. } => sm,
            Piece::Cpu | Piece::Switch | Piece::Card { .. } => 0,
        };
        let gigabytes = match sm {
            100.. => 50,
            90.. => 25,
            81..90 => 14,
            60..70 => 20,
            _ => 25,
        };
        LinkAttrs { capacity: BitRate::gigabytes(gigabytes * count.max(1)), ..NVLINK }
    }

    /// Each piece's way to what it hangs on.
    fn buses(&self, names: &[String], draft: &mut Draft) {
        for (at, it) in self.pieces.iter().enumerate() {
            let Some(above) = it.above else { continue };
            let own = names[at].rsplit('/').next().expect("a name has an end");
            let ends = [
                (node_of(at), format!("{}/pcie", names[at])),
                (node_of(above), format!("{}/{own}", names[above])),
            ];
            draft.link(ends, LinkAttrs { capacity: it.rate, ..PCIE });
        }
    }

    /// Chip-to-chip links to a CPU, NVLinks to a CPU, and links between switches.
    fn other_links(&self, names: &[String], draft: &mut Draft) {
        let mut joined = Vec::new();
        for link in &self.named {
            let near = link.from;
            let cpu = || {
                let mut at = near;
                while let Some(above) = self.pieces[at].above {
                    at = above;
                }
                at
            };
            let (far, attrs, word) = match link.kind.as_str() {
                "c2c" => {
                    // NCCL's `bw` is in MB/s for each link.
                    let gbps = (link.count * link.each * 8 / 1000).max(1);
                    (cpu(), LinkAttrs { capacity: BitRate::gbps(gbps), ..NVLINK }, "c2c")
                }
                "nvlink" if link.class.starts_with("0x068001") => {
                    (cpu(), self.nvlink(near, link.count), "nvlink")
                }
                "pcilink" => {
                    let far = self.pieces.iter().position(|it| it.bus == link.target);
                    let Some(far) = far.filter(|it| *it != near) else { continue };
                    (far, LinkAttrs { capacity: self.pieces[near].rate, ..PCIE }, "pcilink")
                }
                _other => continue,
            };
            let pair = (near.min(far), near.max(far), word);
            if joined.contains(&pair) {
                continue;
            }
            joined.push(pair);
            let end = |near: usize, far: usize| {
                let far = names[far].rsplit('/').next().expect("a name has an end");
                (node_of(near), format!("{}/{word}-{far}", names[near]))
            };
            draft.link([end(near, far), end(far, near)], attrs);
        }
    }
}

fn card(nic: Option<&Element>) -> Piece {
    let Some(nic) = nic else { return Piece::Card { devs: vec![i64::MAX] } };
    let nets = nic.children.iter().filter(|it| it.name == "net");
    Piece::Card { devs: nets.map(|it| number(it, "dev").unwrap_or(i64::MAX)).collect() }
}

fn number(element: &Element, name: &str) -> Option<i64> {
    element.attr(name)?.trim().parse().ok()
}

/// The node of a piece: the machine itself is the first.
fn node_of(piece: usize) -> u32 {
    u32::try_from(piece + 1).expect("at most 4096 pieces")
}

/// What a device's PCIe lanes carry in one direction (PCI Express Base Specification), or those of
/// generation 3, 16 of them, where the file does not say.
fn pcie_rate(element: &Element) -> BitRate {
    const MBPS_OF_LANE: [(&str, u64); 6] = [
        ("2.5", 2_000),
        ("64", 60_500),
        ("32", 31_508),
        ("16", 15_754),
        ("8", 7_877),
        ("5", 4_000),
    ];
    let speed = element.attr("link_speed").unwrap_or_default();
    let lane = MBPS_OF_LANE.iter().find(|(it, _)| speed.starts_with(it)).map_or(7_877, |it| it.1);
    let lanes = match number(element, "link_width") {
        Some(lanes @ 1..=32) => lanes.unsigned_abs(),
        _ => 16,
    };
    BitRate::gbps((lanes * lane / 1_000).max(1))
}

/// The lists of a template.
struct Draft {
    nodes: Vec<NodeSpec>,
    ports: Vec<PortSpec>,
    links: Vec<LinkSpec>,
}

impl Draft {
    fn of(build: &Build, names: &[String]) -> Draft {
        let machine = NodeSpec { kind: NodeKind::Machine, name: "m0".to_owned(), parent: None };
        let mut draft = Draft { nodes: vec![machine], ports: Vec::new(), links: Vec::new() };
        for (it, name) in build.pieces.iter().zip(names) {
            let kind = match it.piece {
                Piece::Cpu => NodeKind::Cpu,
                Piece::Switch => NodeKind::Switch,
                Piece::Gpu { .. } => NodeKind::Chip,
                Piece::Card { .. } => NodeKind::Nic,
            };
            draft.node(kind, name.clone());
        }
        draft
    }

    fn node(&mut self, kind: NodeKind, name: String) -> u32 {
        self.nodes.push(NodeSpec { kind, name, parent: Some(0) });
        u32::try_from(self.nodes.len() - 1).expect("at most 4096 pieces")
    }

    fn port(&mut self, node: u32, name: String) -> u32 {
        self.ports.push(PortSpec { node, name, side: Side::Plain });
        u32::try_from(self.ports.len() - 1).expect("a file has less than 2^32 links")
    }

    fn link(&mut self, ends: [(u32, String); 2], attrs: LinkAttrs) {
        let [a, b] = ends.map(|(node, name)| self.port(node, name));
        self.links.push(LinkSpec { a, b, attrs });
    }

    /// Every socket to every other.
    fn sockets(&mut self, cpus: &[usize], names: &[String], capacity: BitRate) {
        /// Beyond so many links a file is no host's; a full mesh of them would be large.
        const LINKS_MAX: usize = 512;
        let mut n_links = 0;
        // Assumed, as long as a hop over PCIe.
        let attrs = LinkAttrs { capacity, latency: PCIE.latency, kind: LinkKind::Socket };
        for (idx, &a) in cpus.iter().enumerate() {
            for (far, &b) in cpus.iter().enumerate().skip(idx + 1) {
                let ends = [
                    (node_of(a), format!("{}/cpu{far}", names[a])),
                    (node_of(b), format!("{}/cpu{idx}", names[b])),
                ];
                if n_links < LINKS_MAX {
                    self.link(ends, attrs);
                    n_links += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
