//! A plant as data.

use std::collections::BTreeSet;

use crate::fabric::{DomainKind, LinkAttrs, Template};
use crate::hardware::Thresholds;
use crate::spec::error::At;
use crate::spec::hypersquare::HyperSquare;
use crate::unit::{CentiDb, Length};

/// Slots on the switches of one pod: the north ports that are not spare (seed 000 §2.2).
pub const CUBES_MAX: u16 = 64;

/// One plant: generators with their parameters, explicit entities, and what holds for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plant {
    /// For people.
    pub name: String,
    /// Generators, in order: cubes and hosts are numbered over all of them.
    pub pods: Vec<Pod>,
    /// What healthy hardware is measured against.
    pub thresholds: Thresholds,
    /// What a fibre loses where nothing else is said of it.
    pub optics: Optics,
    /// How parts share racks and power feeds.
    pub power: Power,
    /// Failure domains by name; a part in one of them leaves the generated one of that kind.
    pub domains: Vec<DomainSpec>,
    /// Inner structures for [`Plant::parts`].
    pub templates: Vec<TemplateSpec>,
    /// Topology files of NCCL that hosts are built from.
    pub topologies: Vec<TopologySpec>,
    /// Hosts whose topology is not that of their pod.
    pub machines: Vec<MachineSpec>,
    /// Parts written down one by one.
    pub parts: Vec<PartSpec>,
    /// Generated cables that lead elsewhere or lose more or less than the others.
    pub patches: Vec<Patch>,
    /// Cables written down one by one.
    pub cables: Vec<CableSpec>,
    /// What a generator would make but is not there.
    pub missing: Vec<Missing>,
}

/// One generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// What it makes.
    pub family: Family,
    /// Who turns its switches.
    pub control: Control,
    /// The topology file that its hosts are built from, if they are not the built-in ones.
    pub topology: Option<Named>,
    /// Where it stands in the file.
    pub at: At,
}

/// What a generator makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// Cubes of 4x4x4 chips on 48 optical switches (seed 000 §2.2).
    Tpuv4 {
        /// Slots on the switches, 1..=64.
        cubes: u16,
        /// The slots that hold a cube.
        deployed: BTreeSet<u16>,
    },
    /// Boards of 2x2 chips in a fixed grid (seed 000 §2.1).
    Grid {
        /// Which chips.
        chip: GridChip,
        /// Chips along x and y, both even.
        sides: [u16; 2],
        /// Whether the rows along x and the columns along y close to rings.
        wraps: [bool; 2],
    },
    /// Boards of four chips in a mesh (seed 004).
    HyperSquare(HyperSquare),
    /// Servers of 8 accelerators and 8 network ports, not cabled to one another.
    Hosts {
        /// How many.
        hosts: u32,
    },
}

/// The chips of a fixed grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GridChip {
    /// 256 of them in a 16x16 torus.
    Tpuv2,
    /// 1024 of them in a 32x32 torus.
    Tpuv3,
}

impl GridChip {
    /// Sides of the published pod (seed 000 §2.1).
    pub const fn sides(self) -> [u16; 2] {
        match self {
            GridChip::Tpuv2 => [16, 16],
            GridChip::Tpuv3 => [32, 32],
        }
    }
}

impl Family {
    /// The word of the file.
    pub const fn word(&self) -> &'static str {
        match self {
            Family::Tpuv4 { .. } => "tpuv4",
            Family::Grid { chip: GridChip::Tpuv2, .. } => "tpuv2",
            Family::Grid { chip: GridChip::Tpuv3, .. } => "tpuv3",
            Family::HyperSquare(_) => "hypersquare",
            Family::Hosts { .. } => "hosts",
        }
    }

    /// A pod of `cubes` slots, all deployed.
    ///
    /// # Panics
    /// If there are none or more than [`CUBES_MAX`].
    pub fn tpuv4(cubes: u16) -> Self {
        assert!(0 < cubes && cubes <= CUBES_MAX, "{cubes} slots");
        Family::Tpuv4 { cubes, deployed: (0..cubes).collect() }
    }
}

/// Who turns the switches of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Selvedge's own simulated devices.
    Simulated,
    /// Real devices behind this `host:port`.
    Address(String),
}

/// What a fibre loses where nothing else is said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optics {
    /// The loss that each fibre is planned with.
    pub loss: CentiDb,
}

impl Optics {
    /// Assumed: half of the switch's 2 dB budget.
    pub const DEFAULT: Self = Self { loss: CentiDb::new(100) };
}

/// How parts share racks and power feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power {
    /// Cubes to a rack.
    pub cubes_per_rack: u16,
    /// Boards of a fixed grid to a rack.
    pub boards_per_rack: u16,
    /// Hosts to a rack.
    pub hosts_per_rack: u16,
    /// Racks to a power feed.
    pub racks_per_feed: u16,
}

impl Power {
    /// What holds where a plant file says nothing.
    pub const DEFAULT: Self = Self {
        // Seed 000 §2.2: the 16 machines of a cube stand in one rack.
        cubes_per_rack: 1,
        // Assumed: no source says how boards of the static pods stand.
        boards_per_rack: 16,
        // Assumed.
        hosts_per_rack: 4,
        // Assumed.
        racks_per_feed: 4,
    };
}

/// A failure domain and who is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSpec {
    /// Its name.
    pub name: String,
    /// What they share.
    pub kind: DomainKind,
    /// Parts by name, with their places.
    pub parts: Vec<Named>,
    /// Where it stands in the file.
    pub at: At,
}

/// A name in a file and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name or path.
    pub name: String,
    /// Where it stands in the file.
    pub at: At,
}

/// An inner structure written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateSpec {
    /// The structure.
    pub template: Template,
    /// Where it stands in the file.
    pub at: At,
}

/// A topology file of NCCL, by the name that the plant calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySpec {
    /// Its name, which is its path from the plant file on.
    pub name: String,
    /// What stands in it.
    pub xml: String,
    /// Where it stands in the file.
    pub at: At,
}

/// A host with a topology of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// The host.
    pub name: Named,
    /// Its topology file.
    pub topology: Named,
}

/// A part written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartSpec {
    /// Its name, unique in the plant.
    pub name: String,
    /// The name of its template: one of the file's or a built-in one.
    pub template: Named,
    /// The set of parts that one set of switches can join, if it is in one.
    pub pool: Option<String>,
    /// Where it stands in the file.
    pub at: At,
}

/// A generated cable that leads elsewhere or loses more or less than the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The end that stays: the optical end of a cube.
    pub end: Named,
    /// The switch port that it leads to, where that is not the generated one.
    pub port: Option<Named>,
    /// Its expected loss, where that is not the plant's.
    pub loss: Option<CentiDb>,
}

/// A cable written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableSpec {
    /// One end.
    pub a: Named,
    /// The other end.
    pub b: Named,
    /// Capacity, latency and kind.
    pub attrs: LinkAttrs,
    /// Its expected loss.
    pub loss: CentiDb,
    /// How long it is, where that is written.
    pub length: Option<Length>,
}

/// Something that a generator would make but is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A board, a host or a switch, with all cables on it.
    Part(Named),
    /// The generated cable at this end.
    Cable(Named),
}

impl Plant {
    /// A plant of these pods with every default.
    pub fn of_pods(name: impl Into<String>, families: impl IntoIterator<Item = Family>) -> Self {
        let pod =
            |family| Pod { family, control: Control::Simulated, topology: None, at: At::NOWHERE };
        Self {
            name: name.into(),
            pods: families.into_iter().map(pod).collect(),
            thresholds: Thresholds::GOLDEN,
            optics: Optics::DEFAULT,
            power: Power::DEFAULT,
            domains: Vec::new(),
            templates: Vec::new(),
            topologies: Vec::new(),
            machines: Vec::new(),
            parts: Vec::new(),
            patches: Vec::new(),
            cables: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// The names of topology files that the plant wants, each at its first place.
    pub fn topologies_wanted(&self) -> Vec<&Named> {
        let pods = self.pods.iter().filter_map(|it| it.topology.as_ref());
        let mut wanted: Vec<&Named> = Vec::new();
        let mut seen = BTreeSet::new();
        for named in pods.chain(self.machines.iter().map(|it| &it.topology)) {
            if seen.insert(named.name.as_str()) {
                wanted.push(named);
            }
        }
        wanted
    }

    /// Whether any pod is turned by real devices.
    pub fn has_real_device(&self) -> bool {
        self.pods.iter().any(|it| it.control != Control::Simulated)
    }

    /// The number of the first cube of each pod: slots count whether deployed or not, so that a
    /// cube keeps its number when others come.
    pub fn first_cubes(&self) -> Vec<u32> {
        self.firsts(|family| match family {
            Family::Tpuv4 { cubes, .. } => u32::from(*cubes),
            Family::Grid { .. } | Family::HyperSquare(_) | Family::Hosts { .. } => 0,
        })
    }

    /// The number of the first host of each pod.
    pub fn first_hosts(&self) -> Vec<u32> {
        self.firsts(|family| match family {
            Family::Hosts { hosts } => *hosts,
            Family::Grid { .. } | Family::HyperSquare(_) | Family::Tpuv4 { .. } => 0,
        })
    }

    fn firsts(&self, count: impl Fn(&Family) -> u32) -> Vec<u32> {
        let mut next = 0;
        let first = |pod: &Pod| {
            let first = next;
            next += count(&pod.family);
            first
        };
        self.pods.iter().map(first).collect()
    }
}
