//! Which node and port of a host each element of its file became, so that what NCCL decides about
//! the file can be followed in the fabric.

use std::collections::BTreeMap;

use selvedge_model::fabric::Template;

use crate::host::inside::{Build, NVSWITCH, NoInside, node_of, number};
use crate::host::nccl::graph::{Node, NodeKind};
use crate::host::nccl::xml::{Element, Place};

/// The elements of a file and what they became in the structure that
/// [`inside`](crate::host::inside::inside) makes of it.
#[derive(Clone, Debug)]
pub struct Devices {
    /// `<cpu>`, `<pci>`, and what stands in a device, by place.
    nodes: BTreeMap<Place, u32>,
    /// Each `<net>`'s port.
    ports: BTreeMap<Place, u32>,
    /// The `<pci>` of the GPU on each seat.
    seats: Vec<Place>,
    nvswitch: Option<u32>,
}

impl Devices {
    /// The elements of the file that `template` was made from.
    ///
    /// # Errors
    /// [`NoInside`], as of the structure itself.
    pub fn of(root: &Element, template: &Template) -> Result<Devices, NoInside> {
        let build = Build::of(root)?;
        let places = |at: &usize| build.pieces[*at].place;
        let seats = build.gpus().iter().map(places).collect();
        let mut nodes: BTreeMap<Place, u32> =
            build.pieces.iter().enumerate().map(|(at, it)| (it.place, node_of(at))).collect();
        // The first port of a number and a card, of several.
        let mut of_dev: BTreeMap<(i64, u32), u32> = BTreeMap::new();
        for (port, (dev, at)) in (0..).zip(build.ports()) {
            of_dev.entry((dev, node_of(at))).or_insert(port);
        }
        let mut ports = BTreeMap::new();
        let mut todo = vec![root];
        while let Some(element) = todo.pop() {
            let own = nodes.get(&element.place).copied();
            for child in &element.children {
                match (own, child.name.as_str()) {
                    (Some(node), "gpu" | "nic") => {
                        // Ports without a PCI device are pieces of their own.
                        nodes.entry(child.place).or_insert(node);
                    }
                    (Some(node), "net") => {
                        nodes.insert(child.place, node);
                        let dev = number(child, "dev").unwrap_or(i64::MAX);
                        if let Some(port) = of_dev.get(&(dev, node)) {
                            ports.insert(child.place, *port);
                        }
                    }
                    _ => {}
                }
                todo.push(child);
            }
        }
        let nvswitch = template.node_named(NVSWITCH).map(|it| it as u32);
        Ok(Devices { nodes, ports, seats, nvswitch })
    }

    /// The node in the host that NCCL's node is; of a port, the card's.
    pub fn node(&self, node: &Node) -> Option<u32> {
        match node.kind {
            NodeKind::Nvs => self.nvswitch,
            _ => self.nodes.get(&node.place?).copied(),
        }
    }

    /// The port in the host that NCCL's port is.
    pub fn port(&self, node: &Node) -> Option<u32> {
        self.ports.get(&node.place?).copied()
    }

    /// The file as NCCL has it in a job on these seats, in this order: their GPUs have the ranks 0,
    /// 1 and so on, and the others are not there.
    #[must_use]
    pub fn with_ranks(&self, root: &Element, seats: &[usize]) -> Element {
        let ranks = seats.iter().enumerate().map(|(rank, seat)| (self.seats[*seat], rank));
        let mut root = root.clone();
        rank(&mut root, &ranks.collect());
        root
    }
}

/// The depth is at most what the reader lets through.
fn rank(element: &mut Element, ranks: &BTreeMap<Place, usize>) {
    element.children.retain_mut(|child| {
        if child.name != "pci" && child.name != "cpu" {
            return true;
        }
        let gpu = child.children.iter().position(|it| it.name == "gpu");
        let Some(gpu) = gpu.filter(|_| child.name == "pci") else {
            rank(child, ranks);
            return true;
        };
        if let Some(rank) = ranks.get(&child.place) {
            let attrs = &mut child.children[gpu].attrs;
            attrs.retain(|(name, _)| name != "rank");
            attrs.push(("rank".to_owned(), rank.to_string()));
            return true;
        }
        // Another job's.
        child.children.remove(gpu);
        !child.children.is_empty()
    });
}
