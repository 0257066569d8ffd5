//! From the XML tree to the graph.  Notes §3c and §3h.
//!
//! NCCL walks the file in order and so do we: CPUs with the PCI trees below them, then NVLinks,
//! chip-to-chip links and switch links, then the links between CPUs; at last every link that
//! leads upwards is moved behind its node's other links.

use crate::host::nccl::flatten;
use crate::host::nccl::graph::{
    Arch, Cpu, Facts, Gpu, Graph, LinkKind, Net, NodeIdx, NodeKind, Vendor,
};
use crate::host::nccl::number::{float, hex, int};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::room;
use crate::host::nccl::width::Width;
use crate::host::nccl::xml::{Element, Place};

/// Why NCCL builds no graph from the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopoError {
    /// The outermost element is another one.
    #[error("{place}: <{found}> is no topology; the outermost element is <system version=\"1\">")]
    NoSystem {
        /// Where.
        place: Place,
        /// The element.
        found: String,
    },
    /// A file of another version, such as RCCL's.
    #[error("{place}: the file's version is {found:?}; NCCL takes version=\"1\" alone")]
    Version {
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
    },
    /// An attribute is missing.
    #[error("{place}: <{element}> has no {attr}; NCCL {profile} asks for it")]
    Missing {
        /// Where.
        place: Place,
        /// Whose.
        element: String,
        /// Which.
        attr: &'static str,
        /// Who asks.
        profile: Profile,
    },
    /// NVLinks of a GPU that is not there.
    #[error(
        "{place}: the GPU of this <{element}> is not part of the graph, for it has no rank or stands \
         below no <cpu> and <pci>"
    )]
    NoGpu {
        /// Where.
        place: Place,
        /// The element.
        element: String,
    },
    /// A GPU below no CPU.
    #[error("{place}: no CPU above the GPU of this <{element}>")]
    NoCpu {
        /// Where.
        place: Place,
        /// The element.
        element: String,
    },
    /// More nodes than any server has.
    #[error("{place}: more than {limit} {kind} nodes", kind = .kind.name())]
    Limit {
        /// Where.
        place: Place,
        /// Of what.
        kind: NodeKind,
        /// How many are taken.
        limit: usize,
    },
    /// More elements than the version reads.
    #[error("{place}: NCCL {profile} reads {limit} elements of a file; this is the next")]
    Elements {
        /// Of the first that is too many.
        place: Place,
        /// How many are read.
        limit: usize,
        /// By whom.
        profile: Profile,
    },
    /// More children than the version keeps.
    #[error("{place}: NCCL {profile} takes {limit} elements in one <{element}>; this is the next")]
    Children {
        /// Of the first that is too many.
        place: Place,
        /// In which element.
        element: String,
        /// How many are taken.
        limit: usize,
        /// By whom.
        profile: Profile,
    },
    /// More links than the version keeps.
    #[error("{kind} {id:x} has more than {limit} links, which is all that NCCL {profile} takes")]
    Links {
        /// Of what kind.
        kind: &'static str,
        /// Of which node.
        id: u64,
        /// How many are taken.
        limit: usize,
        /// By whom.
        profile: Profile,
    },
    /// A GPU whose class is that of a bridge or of nothing known.
    #[error(
        "{place}: the GPU's class {class:?} is a bridge's to NCCL 2.30, which gives up here; \
         write 0x030200"
    )]
    GpuClass {
        /// Of the PCI device.
        place: Place,
        /// Its class.
        class: String,
    },
    /// A switch that is named twice among those to be made one with it.
    #[error(
        "PCI {switch:x} leads twice to the switch {lower:x}, which NCCL makes one with it and then \
         no longer finds; it gives up here: leave one <pcilink> out"
    )]
    Twice {
        /// The upper switch.
        switch: u64,
        /// The lower one.
        lower: u64,
    },
    /// A switch whose link upwards is lost among what other links left behind.
    #[error(
        "PCI {switch:x} loses its link upwards when NCCL makes Broadcom's switches below it one \
         with it; it gives up here: leave out the <pcilink> or the empty switch below it"
    )]
    LostUplink {
        /// The switch.
        switch: u64,
    },
    /// Of two ends of a link that paths need, one does not know it.
    #[error(
        "{near} {near_id:x} has a link to {far} {far_id:x} that leads one way only; \
         name it at both ends"
    )]
    OneWay {
        /// Kind of the end that knows it.
        near: &'static str,
        /// Its id.
        near_id: u64,
        /// Kind of the other end.
        far: &'static str,
        /// Its id.
        far_id: u64,
    },
    /// Nothing to compute for.
    #[error("the file has no GPU with a rank")]
    NoRanks,
    /// GPUs with ranks, none of them where NCCL looks.
    #[error(
        "{place}: this GPU and all others are on no <pci> below a <cpu>, so NCCL sees none; put its \
         <pci> below the <cpu> of its NUMA node"
    )]
    Outside {
        /// Where the first stands.
        place: Place,
    },
}

impl TopoError {
    /// Where in the file; none of the server as a whole.
    pub fn place(&self) -> Option<Place> {
        match self {
            TopoError::NoSystem { place, .. }
            | TopoError::Version { place, .. }
            | TopoError::Missing { place, .. }
            | TopoError::NoGpu { place, .. }
            | TopoError::NoCpu { place, .. }
            | TopoError::GpuClass { place, .. }
            | TopoError::Children { place, .. }
            | TopoError::Elements { place, .. }
            | TopoError::Outside { place }
            | TopoError::Limit { place, .. } => Some(*place),
            TopoError::OneWay { .. }
            | TopoError::Links { .. }
            | TopoError::Twice { .. }
            | TopoError::LostUplink { .. }
            | TopoError::NoRanks => None,
        }
    }
}

/// The graph of the server that `root` describes.
///
/// # Errors
/// Says what in the file NCCL could not make a graph from.
pub(crate) fn build(root: &Element, profile: Profile) -> Result<Graph, TopoError> {
    if root.name != "system" {
        return Err(TopoError::NoSystem { place: root.place, found: root.name.clone() });
    }
    // NCCL reads the number as C does.
    if root.attr("version").map(int) != Some(1) {
        let found = root.attr("version").unwrap_or("none").to_owned();
        return Err(TopoError::Version { place: root.place, found });
    }
    room::check_elements(root, profile)?;
    let mut builder =
        Builder { graph: Graph::new(profile), hosts: Vec::new(), up: Vec::new(), profile };
    for cpu in root.children.iter().filter(|it| it.name == "cpu") {
        builder.cpu(cpu)?;
    }
    builder.links(root, "nvlink")?;
    if !profile.is_seed() {
        if profile.has_hosts() {
            builder.links(root, "c2c")?;
        }
        if profile.has_c2c() {
            builder.links(root, "pcilink")?;
        }
    }
    let up = std::mem::take(&mut builder.up);
    let leftovers = flatten::flatten(&mut builder.graph, up)?;
    builder.join_cpus();
    room::check_links(&builder.graph)?;
    flatten::sort(&mut builder.graph, &leftovers);
    if builder.graph.kind(NodeKind::Gpu).is_empty() {
        return Err(
            first_outside(root).map_or(TopoError::NoRanks, |place| TopoError::Outside { place })
        );
    }
    Ok(builder.graph)
}

/// Where the first GPU with a rank stands, if none is where GPUs are looked for.
fn first_outside(root: &Element) -> Option<Place> {
    let mut first = None;
    // Whether an element is on a <pci> chain below a <cpu>; the stack is ours: depth comes from a
    // file.
    let mut todo: Vec<(&Element, bool)> = vec![(root, false)];
    while let Some((element, is_seen)) = todo.pop() {
        for child in element.children.iter().rev() {
            match child.name.as_str() {
                "cpu" => todo.push((child, element.name == "system")),
                "gpu" if child.attr("rank").is_some() => {
                    if is_seen && element.name == "pci" {
                        return None;
                    }
                    first = Some(first.map_or(child.place, |it: Place| it.min(child.place)));
                }
                name => todo.push((child, is_seen && name == "pci")),
            }
        }
    }
    first
}

struct Builder {
    graph: Graph,
    /// Hashes of hosts, in order of appearance.
    hosts: Vec<u64>,
    /// What a node hangs below, by node.
    up: Vec<Option<NodeIdx>>,
    profile: Profile,
}

impl Builder {
    fn cpu(&mut self, element: &Element) -> Result<(), TopoError> {
        let system = self.system(element);
        let numa = self.int(element, "numaid")?;
        let facts = Facts::Cpu(self.cpu_facts(element)?);
        let id = self.id(system, numa as u64);
        let cpu = self.node(element, NodeKind::Cpu, id, facts, None)?;
        for child in &element.children {
            match child.name.as_str() {
                "pci" => self.pci(child, cpu, system)?,
                "nic" => {
                    // Ports without a PCI device share one card below the CPU.
                    let id = self.id(system, 0);
                    // 2.21 looks for the first host's.
                    let known = if self.profile.has_c2c() { id } else { 0 };
                    let nic = match self.graph.find(NodeKind::Nic, known) {
                        Some(nic) => nic,
                        None => {
                            let facts = Facts::Nic;
                            let nic = self.node(child, NodeKind::Nic, id, facts, Some(cpu))?;
                            self.join(cpu, nic, LinkKind::Pci, Width::LOCAL);
                            nic
                        }
                    };
                    self.nets(child, nic, system, "")?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn cpu_facts(&self, element: &Element) -> Result<Cpu, TopoError> {
        // The first word that the value begins with decides; what NCCL has no word for is 0.
        const ARCHS: [(&str, Arch); 3] =
            [("x86_64", Arch::X86), ("arm64", Arch::Arm), ("ppc64", Arch::Power)];
        let text = self.text(element, "arch")?;
        let arch = ARCHS.iter().find(|(it, _)| text.starts_with(it));
        let arch = arch.map_or(Arch::Unknown, |(_, arch)| *arch);
        let mut cpu = Cpu { arch: Some(arch), vendor: None, model: -1 };
        if arch == Arch::X86 {
            let vendor = self.vendor(self.text(element, "vendor")?);
            cpu.vendor = Some(vendor);
            if matches!(vendor, Vendor::Intel | Vendor::Zhaoxin) {
                let family = self.int(element, "familyid")?;
                let model = self.int(element, "modelid")?;
                cpu.model =
                    match vendor {
                        Vendor::Intel if !self.profile.has_c2c() => {
                            if family == 6 && model >= 0x55 { 2 } else { 1 }
                        }
                        // Broadwell, Skylake, Sapphire Rapids, Emerald Rapids.
                        Vendor::Intel if family == 6 => match model {
                            0xcf.. => 4,
                            0x8f.. => 3,
                            0x55.. => 2,
                            _ => 1,
                        },
                        Vendor::Intel => 1,
                        _ if family == 7 && model == 0x5b => 1,
                        _ => -1,
                    };
            }
        }
        Ok(cpu)
    }

    fn vendor(&self, text: &str) -> Vendor {
        const VENDORS: [(&str, Vendor); 4] = [
            ("GenuineIntel", Vendor::Intel),
            ("AuthenticAMD", Vendor::Amd),
            ("CentaurHauls", Vendor::Zhaoxin),
            ("  Shanghai  ", Vendor::Zhaoxin),
        ];
        let known = if self.profile.is_seed() { &VENDORS[..2] } else { &VENDORS };
        let vendor = known.iter().find(|(it, _)| text.starts_with(it));
        vendor.map_or(Vendor::Unknown, |(_, vendor)| *vendor)
    }

    /// A PCI device and all below it.  The stack is ours: depth comes from a file.
    fn pci(&mut self, element: &Element, above: NodeIdx, system: u64) -> Result<(), TopoError> {
        let mut todo = vec![(element, above, None)];
        while let Some((element, above, node)) = todo.pop() {
            // A bridge is linked upwards after all that is below it.
            if let Some(node) = node {
                self.link_up(element, node, above)?;
                continue;
            }
            let class = class(self.text(element, "class")?);
            let busid = self.text(element, "busid")?.to_owned();
            let bus = bus_number(&busid);
            let (gpu, nic) = (element.child("gpu"), element.child("nic"));
            // 2.7 goes by the class, later versions by what is inside.
            let by_class = self.profile.is_seed();
            let node = if (class == NodeKind::Gpu || !by_class) && gpu.is_some() {
                let Some(gpu) = gpu else { continue };
                let node = self.gpu(gpu, self.id(system, bus), above)?;
                // 2.30 then looks for devices below what it takes for a bridge.
                if node.is_some() && class == NodeKind::Pci && self.profile.has_devices() {
                    let class = self.text(element, "class")?.to_owned();
                    return Err(TopoError::GpuClass { place: element.place, class });
                }
                node
            } else if (class == NodeKind::Nic || !by_class) && nic.is_some() {
                let Some(nic) = nic else { continue };
                self.card(nic, &busid, bus, above, system)?
            } else if class == NodeKind::Pci {
                let id = self.id(system, bus);
                let facts = Facts::Pci(device_number(element));
                let node = self.node(element, NodeKind::Pci, id, facts, Some(above))?;
                todo.push((element, above, Some(node)));
                let below = element.children.iter().rev().filter(|it| it.name == "pci");
                todo.extend(below.map(|it| (it, node, None)));
                if by_class && let Some(child) = element.children.iter().find(|it| it.name != "pci")
                {
                    self.text(child, "busid")?;
                }
                None
            } else {
                None
            };
            if let Some(node) = node {
                self.link_up(element, node, above)?;
            }
        }
        Ok(())
    }

    fn link_up(
        &mut self,
        element: &Element,
        node: NodeIdx,
        above: NodeIdx,
    ) -> Result<(), TopoError> {
        let width = self.int(element, "link_width")?;
        if width < 0 && self.graph.negative.is_none() {
            self.graph.negative = Some((element.place, width));
        }
        let lanes = if width == 0 { 16 } else { width };
        let speed = self.profile.lane(self.text(element, "link_speed")?);
        self.join(node, above, LinkKind::Pci, Width(lanes as f32 * speed / 80.0));
        Ok(())
    }

    /// What hangs on the PCI bus for the GPU: itself, or in 2.30 its device.
    fn gpu(
        &mut self,
        element: &Element,
        id: u64,
        above: NodeIdx,
    ) -> Result<Option<NodeIdx>, TopoError> {
        // A GPU without a rank is another job's.
        let Some(rank) = element.attr("rank").map(int) else { return Ok(None) };
        let sm = self.int(element, "sm")?;
        let dev = self.int(element, "dev")?;
        let gdr = self.int(element, "gdr")? != 0;
        let gpu = Gpu { dev, rank, sm, gdr };
        if !self.profile.has_devices() {
            let facts = Facts::Gpu { gpu, parent: None };
            let node = self.node(element, NodeKind::Gpu, id, facts, Some(above))?;
            if !self.profile.has_c2c() {
                self.graph.connect(node, node, LinkKind::Loc, Width::LOCAL);
            }
            return Ok(Some(node));
        }
        let facts = Facts::Dev { dev, sm, gpu: None };
        let device = self.node(element, NodeKind::Dev, id, facts, Some(above))?;
        let facts = Facts::Gpu { gpu, parent: Some(device) };
        let node = self.node(element, NodeKind::Gpu, id, facts, Some(device))?;
        self.graph.node_mut(device).facts = Facts::Dev { dev, sm, gpu: Some(node) };
        self.join(node, device, LinkKind::Loc, Width::LOCAL);
        Ok(Some(device))
    }

    fn card(
        &mut self,
        element: &Element,
        busid: &str,
        bus: u64,
        above: NodeIdx,
        system: u64,
    ) -> Result<Option<NodeIdx>, TopoError> {
        // Until 2.23 the functions of one card were one node.
        let bus = if self.profile.has_c2c() { bus } else { bus & !0xf };
        let id = self.id(system, bus);
        let (nic, new) = match self.graph.find(NodeKind::Nic, id) {
            Some(nic) => (nic, None),
            None => {
                let nic = self.node(element, NodeKind::Nic, id, Facts::Nic, Some(above))?;
                (nic, Some(nic))
            }
        };
        self.nets(element, nic, system, busid)?;
        Ok(new)
    }

    fn nets(
        &mut self,
        element: &Element,
        nic: NodeIdx,
        system: u64,
        busid: &str,
    ) -> Result<(), TopoError> {
        for child in element.children.iter().filter(|it| it.name == "net") {
            let Some(dev) = child.attr("dev").map(int) else { continue };
            let mbps = or(child, "speed", 0);
            let mbps = if mbps <= 0 { 10_000 } else { mbps };
            let id = self.id(system, dev as u64);
            // From 2.29 on a port may have other faces, and even no face of its own.
            let new = self.profile.keeps_ports();
            let width = Width((f64::from(mbps) / 8000.0) as f32);
            if !new || or(child, "net", 1) != 0 {
                self.net(child, nic, id, (dev, width), busid)?;
            }
            let faces =
                [("gin", NodeKind::Gin, new), ("rma", NodeKind::Rma, self.profile.has_devices())];
            for (attr, kind, known) in faces {
                if !known || or(child, attr, 0) == 0 {
                    continue;
                }
                let face = self.node(child, kind, id, Facts::Face, Some(nic))?;
                self.join(nic, face, LinkKind::Net, width);
            }
        }
        Ok(())
    }

    /// The port itself, of that number and width.
    fn net(
        &mut self,
        child: &Element,
        nic: NodeIdx,
        id: u64,
        (dev, width): (i32, Width),
        busid: &str,
    ) -> Result<(), TopoError> {
        // Without a GUID the port itself is told apart, later across hosts too.
        let own = if self.profile.keeps_ports() { id } else { dev as u64 };
        let asic = child.attr("guid").map_or(own, |it| self.guid(it));
        let net = Net {
            dev,
            asic,
            port: or(child, "port", 0),
            width,
            latency: child.attr("latency").map_or(0.0, float),
            gdr: or(child, "gdr", 0) != 0,
            coll: or(child, "coll", 0),
            connections: or(child, "maxconn", self.profile.channels() as i32),
            rail: or(child, "rail", -1),
            plane: or(child, "plane", -1),
            pci: match busid {
                "" => digest(&asic.to_le_bytes()),
                busid => digest(busid.as_bytes()),
            },
        };
        let node = self.node(child, NodeKind::Net, id, Facts::Net(net), Some(nic))?;
        self.join(nic, node, LinkKind::Net, net.width);
        Ok(())
    }

    /// The links of one kind, wherever they stand in the tree.
    fn links(&mut self, root: &Element, name: &str) -> Result<(), TopoError> {
        let mut todo = vec![(root, 0, 0)];
        while let Some((element, bus, system)) = todo.pop() {
            if element.name == name {
                match name {
                    "nvlink" => self.nvlink(element, bus, system)?,
                    "c2c" => self.c2c(element, bus, system)?,
                    _ => self.switch_link(element, bus, system)?,
                }
                continue;
            }
            let system = if element.name == "cpu" { self.system(element) } else { system };
            let bus = element.attr("busid").map_or(bus, bus_number);
            todo.extend(element.children.iter().rev().map(|it| (it, bus, system)));
        }
        Ok(())
    }

    fn nvlink(&mut self, element: &Element, bus: u64, system: u64) -> Result<(), TopoError> {
        let gpu = self.linked_gpu(element, bus, system)?;
        let near = self.seat(gpu);
        let sm = self.graph.gpu(gpu).sm;
        let count = self.int(element, "count")?;
        let width = Width(count as f32 * self.profile.nvlink(sm).0);
        let far = match class(self.text(element, "tclass")?) {
            NodeKind::Gpu => {
                let target = self.id(system, bus_number(self.text(element, "target")?));
                // A target that is not there is another job's GPU.
                self.graph.find(NodeKind::Gpu, target).map(|it| self.seat(it))
            }
            NodeKind::Cpu => Some(self.cpu_above(element, near)?),
            _ => Some(match self.graph.kind(NodeKind::Nvs).first() {
                Some(nvs) => *nvs,
                None => self.node(element, NodeKind::Nvs, 0, Facts::Nvs, None)?,
            }),
        };
        let Some(far) = far else { return Ok(()) };
        self.graph.connect(near, far, LinkKind::Nvl, width);
        // Two GPUs name their links each for itself.
        if !matches!(self.graph.node(far).kind, NodeKind::Gpu | NodeKind::Dev) {
            self.graph.connect(far, near, LinkKind::Nvl, width);
        }
        Ok(())
    }

    fn c2c(&mut self, element: &Element, bus: u64, system: u64) -> Result<(), TopoError> {
        let gpu = self.linked_gpu(element, bus, system)?;
        let near = self.seat(gpu);
        let count = self.int(element, "count")?;
        let each = self.int(element, "bw")?;
        let width = Width((f64::from(count) * f64::from(each) / 1000.0) as f32);
        let cpu = self.cpu_above(element, near)?;
        let kind = if self.profile.has_c2c() { LinkKind::C2c } else { LinkKind::Nvl };
        self.join(near, cpu, kind, width);
        Ok(())
    }

    fn switch_link(&mut self, element: &Element, bus: u64, system: u64) -> Result<(), TopoError> {
        let target = self.id(system, bus_number(self.text(element, "target")?));
        let near = self.graph.find(NodeKind::Pci, self.id(system, bus));
        let far = self.graph.find(NodeKind::Pci, target);
        if let (Some(near), Some(far)) = (near, far) {
            self.graph.connect(near, far, LinkKind::Loc, Width::LOCAL);
        }
        Ok(())
    }

    fn linked_gpu(&self, element: &Element, bus: u64, system: u64) -> Result<NodeIdx, TopoError> {
        let (place, name) = (element.place, element.name.clone());
        let found = self.graph.find(NodeKind::Gpu, self.id(system, bus));
        found.ok_or(TopoError::NoGpu { place, element: name })
    }

    /// Where the GPU's outer links are: itself, or its device.
    fn seat(&self, gpu: NodeIdx) -> NodeIdx {
        match self.graph.node(gpu).facts {
            Facts::Gpu { parent: Some(device), .. } => device,
            _ => gpu,
        }
    }

    fn cpu_above(&self, element: &Element, node: NodeIdx) -> Result<NodeIdx, TopoError> {
        let mut at = node;
        while let Some(up) = self.up[at.usize()] {
            at = up;
        }
        if self.graph.node(at).kind == NodeKind::Cpu {
            return Ok(at);
        }
        Err(TopoError::NoCpu { place: element.place, element: element.name.clone() })
    }

    fn join_cpus(&mut self) {
        let cpus = self.graph.kind(NodeKind::Cpu).to_vec();
        for &from in &cpus {
            for &to in &cpus {
                if from != to && self.graph.host(from) == self.graph.host(to) {
                    let width = self.between_cpus(self.graph.cpu(from));
                    self.graph.connect(from, to, LinkKind::Sys, width);
                }
            }
        }
    }

    fn between_cpus(&self, cpu: Cpu) -> Width {
        let seed = self.profile.is_seed();
        match (cpu.arch, cpu.vendor) {
            (Some(Arch::Power), _) => Width(32.0),
            (Some(Arch::Arm), _) => Width(6.0),
            (_, Some(Vendor::Intel)) => Width(match cpu.model {
                4 => 40.0,
                3 => 22.0,
                2 if seed => 9.0,
                2 => 10.0,
                _ => 6.0,
            }),
            (_, Some(Vendor::Amd)) if self.profile.has_hosts() => Width(16.0),
            (_, Some(Vendor::Zhaoxin)) => Width(if cpu.model == 1 { 9.0 } else { 6.0 }),
            _ => Width::LOCAL,
        }
    }

    fn node(
        &mut self,
        element: &Element,
        kind: NodeKind,
        id: u64,
        facts: Facts,
        up: Option<NodeIdx>,
    ) -> Result<NodeIdx, TopoError> {
        let limit = room::nodes(self.profile);
        if self.graph.kind(kind).len() == limit {
            return Err(TopoError::Limit { place: element.place, kind, limit });
        }
        self.up.push(up);
        Ok(self.graph.add(kind, id, facts, Some(element.place)))
    }

    fn join(&mut self, a: NodeIdx, b: NodeIdx, kind: LinkKind, width: Width) {
        self.graph.connect(a, b, kind, width);
        self.graph.connect(b, a, kind, width);
    }

    /// The number of the CPU's host among those of the file.
    fn system(&mut self, cpu: &Element) -> u64 {
        if !self.profile.has_hosts() {
            return 0;
        }
        let hash = cpu.attr("host_hash").map_or(0, hex);
        let at = self.hosts.iter().position(|it| *it == hash).unwrap_or_else(|| {
            self.hosts.push(hash);
            self.hosts.len() - 1
        });
        at as u64
    }

    /// From 2.21 on, ids carry the host in their upper byte.
    fn id(&self, system: u64, local: u64) -> u64 {
        match (self.profile.has_hosts(), self.profile.has_c2c()) {
            (false, _) => local,
            // 2.21 does not keep a number below its host's.
            (true, false) => (system << 56).wrapping_add(local),
            (true, true) => (system << 56) | (local & (u64::MAX >> 8)),
        }
    }

    /// A port's GUID, which early versions read only where it begins with 0x.
    fn guid(&self, text: &str) -> u64 {
        if self.profile.keeps_ports() || text.starts_with("0x") { hex(text) } else { 0 }
    }

    fn text<'e>(&self, element: &'e Element, attr: &'static str) -> Result<&'e str, TopoError> {
        let (place, profile) = (element.place, self.profile);
        let missing = || TopoError::Missing { place, element: element.name.clone(), attr, profile };
        element.attr(attr).ok_or_else(missing)
    }

    fn int(&self, element: &Element, attr: &'static str) -> Result<i32, TopoError> {
        self.text(element, attr).map(int)
    }
}

/// A PCI class's meaning, by its beginning.  Notes §3h.
fn class(text: &str) -> NodeKind {
    const KINDS: [(&str, NodeKind); 6] = [
        ("0x060400", NodeKind::Pci),
        ("0x080100", NodeKind::Pci),
        ("0x068000", NodeKind::Nvs),
        ("0x068001", NodeKind::Cpu),
        ("0x03", NodeKind::Gpu),
        ("0x02", NodeKind::Nic),
    ];
    KINDS.iter().find(|(it, _)| text.starts_with(it)).map_or(NodeKind::Pci, |(_, kind)| *kind)
}

/// `0000:1a:00.0` as a number: its hexadecimal digits in a row, up to what is none.
fn bus_number(text: &str) -> u64 {
    let digits = text.chars().filter(|it| !matches!(it, ':' | '.'));
    let digits = digits.map_while(|it| it.to_digit(16));
    digits.fold(0, |number, digit| (number << 4) | u64::from(digit))
}

fn device_number(element: &Element) -> u64 {
    let part = |name| element.attr(name).map_or(0, |it| i64::from(int(it)) as u64);
    (part("vendor") << 48)
        .wrapping_add(part("device") << 32)
        .wrapping_add(part("subsystem_vendor") << 16)
        .wrapping_add(part("subsystem_device"))
}

fn or(element: &Element, attr: &str, default: i32) -> i32 {
    element.attr(attr).map_or(default, int)
}

/// The digest by which 2.30 tells cards apart: two accumulators, eight bytes at a time.
fn digest(bytes: &[u8]) -> u64 {
    let (mut a, mut b): (u64, u64) = (1 ^ bytes.len() as u64, 1);
    for chunk in bytes.chunks(8) {
        a = a.wrapping_add(b);
        b ^= a;
        a ^= a >> 31;
        a = a.wrapping_mul(0x9de6_2bbc_8cef_3ce3);
        b ^= b >> 32;
        b = b.wrapping_mul(0x485c_d631_1b59_9e79);
        let word = chunk.iter().rev().fold(0, |word: u64, it| (word << 8) | u64::from(*it));
        a = a.wrapping_add(word);
    }
    a ^= a >> 31;
    a = a.wrapping_mul(0xbac3_bd56_2846_de6b);
    a = a.wrapping_add(b);
    a ^= a >> 32;
    a.wrapping_mul(0x995a_187a_14e7_b445)
}
