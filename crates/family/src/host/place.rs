//! What people call the parts of a server: `GPU0` by rank, `NET0` by number, `CPU0` by NUMA number,
//! or any of them by bus id.

use std::fmt;
use std::str::FromStr;

use crate::host::nccl::graph::{Facts, Graph, NodeIdx, NodeKind};
use crate::host::nccl::view::View;
use crate::host::nccl::xml::Element;

/// A part of a server by the name that people use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceName {
    /// A GPU by its rank.
    Gpu(i32),
    /// A port by its number.
    Net(i32),
    /// A CPU by its NUMA number; -1 where the kernel gave none.
    Cpu(i32),
    /// The NVSwitches.
    Nvs,
    /// A PCI device by its bus id, in small letters.
    Bus(String),
    /// A port by the name of its device, such as `mlx5_0`.
    Device(String),
}

/// A name of no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It is no name.
    #[error("{text:?} names no part; write GPU0, NET0, CPU0, NVS, mlx5_0 or 0000:1a:00.0")]
    NoName {
        /// The text.
        text: String,
    },
    /// Nothing here has it.
    #[error("there is no {name} here; there are {present}")]
    Absent {
        /// The name.
        name: PlaceName,
        /// Those of its kind that are there.
        present: String,
    },
    /// It is there, and NCCL took it from that rank's view.
    #[error(
        "NCCL leaves {name} out of rank {rank}'s view: it uses neither P2P nor shared memory there, \
         and goes over the network; ask as rank {gpu}"
    )]
    LeftOut {
        /// The name.
        name: PlaceName,
        /// Who looks.
        rank: i32,
        /// The rank of the GPU.
        gpu: i32,
    },
    /// It is there, and the version does without.
    #[error("this version leaves NET{dev} out where no network is needed; ask for two servers")]
    NoNetwork {
        /// The port.
        dev: i32,
    },
    /// It is of the wrong kind.
    #[error("{name} is no {wanted}; {wanted}s are {present}")]
    Kind {
        /// The name.
        name: PlaceName,
        /// What was asked for.
        wanted: &'static str,
        /// Those of that kind that are there.
        present: String,
    },
}

impl fmt::Display for PlaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceName::Gpu(it) => write!(f, "GPU{it}"),
            PlaceName::Net(it) => write!(f, "NET{it}"),
            PlaceName::Cpu(it) => f.write_str(&cpu_name(*it)),
            PlaceName::Nvs => f.write_str("NVS"),
            PlaceName::Bus(it) | PlaceName::Device(it) => f.write_str(it),
        }
    }
}

impl FromStr for PlaceName {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let small = text.to_ascii_lowercase();
        let numbered = |prefix: &str| small.strip_prefix(prefix).and_then(|it| it.parse().ok());
        if let Some(rank) = numbered("gpu") {
            return Ok(PlaceName::Gpu(rank));
        }
        if let Some(dev) = numbered("net").or_else(|| numbered("nic")) {
            return Ok(PlaceName::Net(dev));
        }
        if let Some(numa) = numbered("cpu").or((small == "cpu").then_some(-1)) {
            return Ok(PlaceName::Cpu(numa));
        }
        if small == "nvs" {
            return Ok(PlaceName::Nvs);
        }
        if small.contains(':')
            && small.chars().all(|it| it.is_ascii_hexdigit() || ":.".contains(it))
        {
            return Ok(PlaceName::Bus(small));
        }
        let word = |it: char| it.is_ascii_alphanumeric() || "_-@:".contains(it);
        if text.starts_with(|it: char| it.is_ascii_alphabetic()) && text.chars().all(word) {
            return Ok(PlaceName::Device(text.to_owned()));
        }
        Err(PlaceError::NoName { text: text.to_owned() })
    }
}

/// A node's name: the one by which it can be asked for again, where there is one.
pub fn label(graph: &Graph, node: NodeIdx) -> String {
    let it = graph.node(node);
    match &it.facts {
        // Logs of some versions name no ranks.
        Facts::Gpu { gpu, .. } if gpu.rank < 0 => format!("GPU {}", bus_text(it.id)),
        Facts::Gpu { gpu, .. } => format!("GPU{}", gpu.rank),
        Facts::Net(net) => format!("NET{}", net.dev),
        Facts::Cpu(_) => cpu_name(numa_of(it.id)),
        Facts::Nvs => "NVS".to_owned(),
        Facts::Pci(_) => format!("PCI {}", bus_text(it.id)),
        Facts::Nic => format!("NIC {}", bus_text(it.id)),
        Facts::Face => format!("{} {}", it.kind.name(), local(it.id)),
        Facts::Dev { .. } => format!("DEV {}", bus_text(it.id)),
    }
}

/// The NUMA number of a CPU, as the file has it.
pub fn numa(graph: &Graph, cpu: NodeIdx) -> String {
    numa_of(graph.node(cpu).id).to_string()
}

/// An id keeps 56 bits of its number, which may be negative.
fn numa_of(id: u64) -> i32 {
    ((id << 8) as i64 >> 8) as i32
}

/// A machine without NUMA numbers its one node -1, which people do not say.
fn cpu_name(numa: i32) -> String {
    if numa < 0 { "CPU".to_owned() } else { format!("CPU{numa}") }
}

/// A number that NCCL made from a bus id, as a bus id again.
pub fn bus_text(id: u64) -> String {
    let id = local(id);
    let (domain, bus, device, function) = (id >> 20, id >> 12 & 0xff, id >> 4 & 0xff, id & 0xf);
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
}

/// An id without the host that it is on.
fn local(id: u64) -> u64 {
    id & (u64::MAX >> 8)
}

/// Where in a file's tree an element is: the number of the child at each level.
pub type TreePath = Vec<usize>;

/// The element at a place.
pub fn at<'e>(root: &'e Element, path: &[usize]) -> &'e Element {
    path.iter().fold(root, |element, child| &element.children[*child])
}

/// The element at a place, to be changed.
pub fn at_mut<'e>(root: &'e mut Element, path: &[usize]) -> &'e mut Element {
    path.iter().fold(root, |element, child| &mut element.children[*child])
}

/// Every element with its place, in the file's order.
pub fn walk(root: &Element) -> Vec<(TreePath, &Element)> {
    let mut out = Vec::new();
    let mut todo = vec![(TreePath::new(), root)];
    while let Some((path, element)) = todo.pop() {
        for (idx, child) in element.children.iter().enumerate().rev() {
            let mut below = path.clone();
            below.push(idx);
            todo.push((below, child));
        }
        out.push((path, element));
    }
    out
}

/// Ranks of all GPUs in the file.
pub fn ranks(root: &Element) -> Vec<i32> {
    let gpus = walk(root).into_iter().filter(|it| it.1.name == "gpu");
    gpus.filter_map(|it| it.1.attr("rank")?.trim().parse().ok()).collect()
}

/// The `<gpu>`, `<net>`, `<cpu>` or `<pci>` of that name.
///
/// # Errors
/// If none has it, with those that are there.
pub fn find_element(root: &Element, name: &PlaceName) -> Result<TreePath, PlaceError> {
    let all = walk(root);
    let found = all.iter().find(|(_, it)| is_called(it, name));
    if let Some((path, element)) = found {
        // A device's bus id stands at its <pci>; what people mean is what is on it.
        let inside = element.children.iter().position(|it| it.name == "gpu");
        let mut path = path.clone();
        if element.name == "pci" {
            path.extend(inside);
        }
        return Ok(path);
    }
    let names = all.iter().filter_map(|(_, it)| of_kind(it, name));
    let present = listed(names);
    Err(PlaceError::Absent { name: name.clone(), present })
}

fn is_called(element: &Element, name: &PlaceName) -> bool {
    let number = |attr| element.attr(attr).and_then(|it| it.trim().parse().ok());
    match (name, element.name.as_str()) {
        (PlaceName::Gpu(rank), "gpu") => number("rank") == Some(*rank),
        (PlaceName::Net(dev), "net") => number("dev") == Some(*dev),
        (PlaceName::Cpu(numa), "cpu") => number("numaid") == Some(*numa),
        (PlaceName::Bus(bus), "pci") => {
            element.attr("busid").is_some_and(|it| it.eq_ignore_ascii_case(bus))
        }
        (PlaceName::Device(device), "net") => element.attr("name") == Some(device),
        _ => false,
    }
}

fn of_kind(element: &Element, name: &PlaceName) -> Option<String> {
    match (name, element.name.as_str()) {
        (PlaceName::Gpu(_) | PlaceName::Nvs, "gpu") => {
            Some(format!("GPU{}", element.attr("rank")?))
        }
        (PlaceName::Net(_), "net") => Some(format!("NET{}", element.attr("dev")?)),
        (PlaceName::Cpu(_), "cpu") => Some(match element.attr("numaid")?.trim().parse() {
            Ok(numa) => cpu_name(numa),
            Err(_) => format!("CPU{}", element.attr("numaid")?),
        }),
        (PlaceName::Bus(_), "pci") => element.attr("busid").map(str::to_owned),
        (PlaceName::Device(_), "net") => element.attr("name").map(str::to_owned),
        _ => None,
    }
}

/// The GPU of that name.
///
/// # Errors
/// If there is none.
pub fn find_gpu(graph: &Graph, name: &PlaceName) -> Result<NodeIdx, PlaceError> {
    let gpus = graph.kind(NodeKind::Gpu);
    let found = match name {
        PlaceName::Gpu(rank) => graph.gpu_of_rank(*rank),
        PlaceName::Bus(bus) => gpus.iter().copied().find(|it| bus_text(graph.node(*it).id) == *bus),
        _ => {
            let present = listed(gpus.iter().map(|it| label(graph, *it)));
            return Err(PlaceError::Kind { name: name.clone(), wanted: "GPU", present });
        }
    };
    found.ok_or_else(|| {
        let present = listed(gpus.iter().map(|it| label(graph, *it)));
        PlaceError::Absent { name: name.clone(), present }
    })
}

/// The number of the port of that name, by number, device or bus id.
///
/// # Errors
/// If there is none.
pub fn find_net(root: &Element, name: &PlaceName) -> Result<i32, PlaceError> {
    let nets = || walk(root).into_iter().map(|it| it.1).filter(|it| it.name == "net");
    let dev = |it: &Element| it.attr("dev").and_then(|it| it.trim().parse().ok());
    let found = match name {
        PlaceName::Net(number) => nets().filter_map(dev).find(|it| it == number),
        PlaceName::Device(_) => nets().find(|it| is_called(it, name)).and_then(dev),
        PlaceName::Bus(_) => {
            let path = find_element(root, name)?;
            let below = walk(at(root, &path)).into_iter().map(|it| it.1);
            below.filter(|it| it.name == "net").find_map(dev)
        }
        PlaceName::Gpu(_) | PlaceName::Cpu(_) | PlaceName::Nvs => None,
    };
    let present = || listed(nets().filter_map(|it| Some(format!("NET{}", it.attr("dev")?))));
    found.ok_or_else(|| match name {
        PlaceName::Net(_) | PlaceName::Device(_) => {
            PlaceError::Absent { name: name.clone(), present: present() }
        }
        _ => PlaceError::Kind { name: name.clone(), wanted: "port", present: present() },
    })
}

/// The GPU, port or CPU of that name in a graph alone, where no file says what devices are called.
///
/// # Errors
/// If there is none.
pub fn find_part(graph: &Graph, name: &PlaceName) -> Result<NodeIdx, PlaceError> {
    let all = || {
        let kinds = [NodeKind::Gpu, NodeKind::Net, NodeKind::Cpu].into_iter();
        kinds.flat_map(|it| graph.kind(it).iter().copied())
    };
    let found = all().find(|it| answers_to(graph, *it, name));
    found.ok_or_else(|| PlaceError::Absent {
        name: name.clone(),
        present: listed(all().map(|it| label(graph, it))),
    })
}

/// Whether that is the part's name, as far as the graph knows: no file says what devices are
/// called.
fn answers_to(graph: &Graph, part: NodeIdx, name: &PlaceName) -> bool {
    let node = graph.node(part);
    match (name, &node.facts) {
        (PlaceName::Gpu(rank), Facts::Gpu { gpu, .. }) => gpu.rank == *rank,
        (PlaceName::Bus(bus), Facts::Gpu { .. }) => bus_text(node.id) == *bus,
        (PlaceName::Net(dev), Facts::Net(net)) => net.dev == *dev,
        (PlaceName::Cpu(numa), Facts::Cpu(_)) => numa_of(node.id) == *numa,
        _ => false,
    }
}

/// The part of that name in a view of the server that `root` describes.
///
/// # Errors
/// If there is none, or the view leaves it out.
pub fn find_in_view(view: &View, root: &Element, name: &PlaceName) -> Result<NodeIdx, PlaceError> {
    let missing = match find_part(&view.graph, name) {
        Ok(part) => return Ok(part),
        Err(error) => error,
    };
    if let Some(gpu) = view.left_out.iter().find(|it| answers_to(&view.graph, **it, name)) {
        let (rank, gpu) = (view.ask.rank, view.graph.gpu(*gpu).rank);
        return Err(PlaceError::LeftOut { name: name.clone(), rank, gpu });
    }
    if !matches!(name, PlaceName::Net(_) | PlaceName::Device(_) | PlaceName::Bus(_)) {
        return Err(missing);
    }
    let dev = find_net(root, name).map_err(|error| match name {
        PlaceName::Net(_) => missing,
        _ => error,
    })?;
    let net = view.nets().iter().copied().find(|it| view.graph.net(*it).dev == dev);
    net.ok_or(PlaceError::NoNetwork { dev })
}

/// Numbered parts in words: `GPU1, GPU3 to GPU5`.
pub fn ranges(word: &str, numbers: &[i32]) -> String {
    let follows = |a: &i32, b: &i32| a.checked_add(1) == Some(*b);
    let names = numbers.chunk_by(follows).flat_map(|run| match run {
        [first, .., last] if 2 < run.len() => vec![format!("{word}{first} to {word}{last}")],
        _ => run.iter().map(|it| format!("{word}{it}")).collect(),
    });
    listed(names)
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub(crate) fn joined(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A number of things: `1 ring`, `2 rings`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    let end = if n == 1 { "" } else { "s" };
    format!("{n} {what}{end}")
}

/// GB/s for people: three decimals at most.
pub fn short(gb_per_s: f32) -> String {
    let text = format!("{gb_per_s:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// At most a dozen names, and how many more.
fn listed(names: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::{PlaceName, bus_text};

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["GPU0", "NET12", "CPU1", "CPU", "NVS", "mlx5_0", "0000:1a:00.0"] {
            let name: PlaceName = text.parse().expect("a name");
            assert_eq!(name.to_string(), text);
        }
        assert_eq!("nic3".parse(), Ok(PlaceName::Net(3)));
        for text in ["", "5", "a b", "<gpu>"] {
            text.parse::<PlaceName>().expect_err(text);
        }
    }

    #[test]
    fn a_number_is_a_bus_id_again() {
        assert_eq!(bus_text(0x1a000), "0000:1a:00.0");
        assert_eq!(bus_text(3 << 56 | 0xac1_1f7), "000a:c1:1f.7");
    }
}
