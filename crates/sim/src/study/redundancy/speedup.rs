//! Formulas (1) to (9) of seed 003, with every constant that they need.

use serde::Serialize;

/// What the formulas take.  Seconds, bits and bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Constants {
    /// T'_P: computing of each node.
    pub compute_s: f64,
    /// T by T'_P on one node: what the program spends beside computing.
    pub other_share: f64,
    /// t_o: beginning and ending a transfer.
    pub transfer_s: f64,
    /// t_r: passing one router.
    pub router_s: f64,
    /// b: one link, one direction.
    pub link_bps: f64,
    /// d: the memory of one node.
    pub memory_bits: f64,
    /// M: how often TMR compares memories.
    pub compares: f64,
    /// K_j: how often a process of STMR sends, and compares before; once more at the end.
    pub sends: f64,
    /// F: how often an error is found.
    pub errors: f64,
    /// The traffic in D_size on one node: what a compare before a send carries.  The last compare
    /// carries `memory_bits` (§2.4).
    pub message_bits: f64,
    /// How fast a node compares.
    pub compare_bps: f64,
    /// How fast a node copies what it was sent.
    pub assign_bps: f64,
}

impl Constants {
    /// BlueGene/L, and what the paper leaves open.
    pub const BLUE_GENE_L: Self = Self {
        compute_s: 3600.0,
        other_share: 0.1,
        transfer_s: 3e-6,
        router_s: 1e-7,
        link_bps: 1.4e9,
        memory_bits: 4e9,
        compares: 60.0,
        sends: 59.0,
        errors: 1.0,
        message_bits: 8.0 * 1_048_576.0,
        compare_bps: 22e9,
        assign_bps: 22e9,
    };

    /// Name, unit and source of each, in the order of the fields.
    pub const SOURCES: [(&'static str, &'static str, &'static str); 12] = [
        ("T'_P", "s", "assumed: an hour of computing on each node"),
        ("T / T'_P at P = 1", "", "assumed: a tenth"),
        ("t_o", "s", "assumed: the latency of an MPI message"),
        ("t_r", "s", "assumed: a router's delay"),
        ("b", "bit/s", "seed 003 [9]: BlueGene/L, one direction of a link"),
        ("d", "bit", "seed 003 [9]: BlueGene/L, the memory of a node"),
        ("M", "", "assumed: a compare a minute"),
        ("K_j", "", "assumed: M - 1, since one compare more follows at the end"),
        ("F", "", "assumed: one error in the run"),
        ("D_size of a send at P = 1", "bit", "assumed: 1 MiB a send"),
        ("compare", "bit/s", "assumed: half of a node's memory bandwidth of 5.5 GB/s"),
        ("assignment", "bit/s", "assumed: the same"),
    ];

    /// Their values in the order of the fields.
    pub fn values(&self) -> [f64; 12] {
        [
            self.compute_s,
            self.other_share,
            self.transfer_s,
            self.router_s,
            self.link_bps,
            self.memory_bits,
            self.compares,
            self.sends,
            self.errors,
            self.message_bits,
            self.compare_bps,
            self.assign_bps,
        ]
    }
}

/// A power of P, or its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// The same at any P.
    Constant,
    /// log2 P.
    Log,
    /// P^(1/3).
    CubeRoot,
    /// P^(1/2).
    Root,
    /// P^(2/3).
    TwoThirds,
    /// P.
    Linear,
}

impl Growth {
    /// Its value at `p` nodes.
    pub fn at(self, p: f64) -> f64 {
        match self {
            Growth::Constant => 1.0,
            Growth::Log => libm::log2(p).max(1.0),
            Growth::CubeRoot => libm::cbrt(p),
            Growth::Root => p.sqrt(),
            Growth::TwoThirds => libm::pow(p, 2.0 / 3.0),
            Growth::Linear => p,
        }
    }

    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Growth::Constant => "constant",
            Growth::Log => "log P",
            Growth::CubeRoot => "P^1/3",
            Growth::Root => "√P",
            Growth::TwoThirds => "P^2/3",
            Growth::Linear => "P",
        }
    }
}

/// A network as the formulas see it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Network {
    /// For people.
    pub name: &'static str,
    /// Links over the cut between the copies, by this factor and growth.
    pub cut: (f64, Growth),
    /// Hops from a node to its like, on average.
    pub hops: (f64, Growth),
    /// Hops of a repair at least (formula 5).
    pub repair_hops_min: (f64, Growth),
    /// Hops of a repair at most.
    pub repair_hops_max: (f64, Growth),
}

impl Network {
    /// Formulas (4) to (6): a mesh of √P x √P.
    pub const MESH: Self = Self {
        name: "2D mesh",
        cut: (1.0, Growth::Root),
        hops: (0.5, Growth::Root),
        repair_hops_min: (1.0 / 3.0, Growth::Root),
        repair_hops_max: (2.0 / 3.0, Growth::Root),
    };
    /// A torus of three equal sides as BlueGene/L's, cut twice; each copy is a third of one side
    /// away, and both directions lead there.
    pub const TORUS: Self = Self {
        name: "3D torus",
        cut: (2.0, Growth::TwoThirds),
        hops: (1.0 / 3.0, Growth::CubeRoot),
        repair_hops_min: (1.0 / 3.0, Growth::CubeRoot),
        repair_hops_max: (1.0 / 3.0, Growth::CubeRoot),
    };
    /// A tree whose levels all carry what its nodes send; up and down, eight children a switch.
    pub const FAT_TREE: Self = Self {
        name: "fat tree",
        cut: (0.5, Growth::Linear),
        hops: (2.0 / 3.0, Growth::Log),
        repair_hops_min: (2.0 / 3.0, Growth::Log),
        repair_hops_max: (2.0 / 3.0, Growth::Log),
    };
    /// Figure 13 (a) and (c): nothing grows.
    pub const CONSTANT: Self = Self {
        name: "constant bisection",
        cut: (1.0, Growth::Constant),
        hops: (2.0, Growth::Constant),
        repair_hops_min: (2.0, Growth::Constant),
        repair_hops_max: (2.0, Growth::Constant),
    };
    /// Figure 13 (b) and (d).
    pub const ROOT: Self = Self {
        name: "bisection √P",
        cut: (1.0, Growth::Root),
        hops: (1.0, Growth::Log),
        repair_hops_min: (1.0, Growth::Log),
        repair_hops_max: (1.0, Growth::Log),
    };

    /// Those that machines have.
    pub const REAL: [Self; 3] = [Self::MESH, Self::TORUS, Self::FAT_TREE];
}

/// What D_size is on P nodes, of which the paper says different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// What a process sends does not depend on P (§2.4, formula 9).
    Constant,
    /// The program's traffic grows as §4.1 says, and a cluster compares its share of it.
    Share,
    /// What a send carries itself grows as §4.1 says.
    Literal,
}

impl Reading {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Constant, Self::Share, Self::Literal];

    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Reading::Constant => "constant",
            Reading::Share => "share",
            Reading::Literal => "literal",
        }
    }
}

/// A mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// None.
    Plain,
    /// Three jobs whose memories are compared (§1.2).
    Tmr,
    /// Clusters that compare what they send (§2.4).
    Stmr(Reading),
}

impl Mechanism {
    /// For people.
    pub fn word(self) -> String {
        match self {
            Mechanism::Plain => "plain".to_owned(),
            Mechanism::Tmr => "TMR".to_owned(),
            Mechanism::Stmr(reading) => format!("STMR, {}", reading.word()),
        }
    }
}

/// T_R in its parts, in seconds: the four of §1.2, and what the last compare of STMR adds (§2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overhead {
    /// Sending what is compared; of STMR what is compared before sends.
    pub compare_traffic_s: f64,
    /// Sending the shadows' memories for the last compare of STMR.
    pub last_traffic_s: f64,
    /// Sending what an erring node is given: the upper bound of formula (6).
    pub repair_traffic_s: f64,
    /// The lower bound of formula (6); no part of the sum.
    pub repair_traffic_min_s: f64,
    /// Comparing; of STMR before sends.
    pub compare_s: f64,
    /// The last compare of STMR.
    pub last_compare_s: f64,
    /// Putting it into the erring node's memory.
    pub assignment_s: f64,
}

impl Overhead {
    /// T_R.
    pub fn sum(&self) -> f64 {
        self.compare_traffic_s
            + self.last_traffic_s
            + self.repair_traffic_s
            + self.compare_s
            + self.last_compare_s
            + self.assignment_s
    }
}

/// A program on a network: all that S and S^R depend on but P.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Case {
    /// The constants.
    pub constants: Constants,
    /// The network.
    pub network: Network,
    /// How T grows: constant for a scalable program, √P for a weakly scalable one (§4.1).
    pub other: Growth,
    /// How the program's traffic grows (§4.1).
    pub traffic: Growth,
}

/// Formula (3): one transfer of `bits` over `bps` and `hops` routers.
pub fn transfer_s(constants: &Constants, bits: f64, bps: f64, hops: f64) -> f64 {
    constants.transfer_s + bits / bps + hops * constants.router_s
}

impl Case {
    /// T.
    pub fn other_s(&self, p: f64) -> f64 {
        self.constants.compute_s * self.constants.other_share * self.other.at(p)
    }

    /// Formula (1).
    pub fn speedup(&self, p: f64) -> f64 {
        p / (1.0 + self.other_s(p) / self.constants.compute_s)
    }

    /// Formula (2).
    pub fn redundant_speedup(&self, mechanism: Mechanism, p: f64) -> f64 {
        let overhead = self.overhead(mechanism, p).sum();
        p / (1.0 + (self.other_s(p) + overhead) / self.constants.compute_s)
    }

    /// What a compare before a send carries, in bits.
    pub fn size_bits(&self, reading: Reading, p: f64) -> f64 {
        let grown = self.constants.message_bits * self.traffic.at(p);
        match reading {
            Reading::Constant => self.constants.message_bits,
            Reading::Share => grown / p,
            Reading::Literal => grown,
        }
    }

    /// T_R.
    pub fn overhead(&self, mechanism: Mechanism, p: f64) -> Overhead {
        match mechanism {
            Mechanism::Plain => Overhead::default(),
            Mechanism::Tmr => self.tmr(p),
            Mechanism::Stmr(reading) => self.stmr(reading, p),
        }
    }

    fn tmr(&self, p: f64) -> Overhead {
        let it = &self.constants;
        let of = |(factor, growth): (f64, Growth)| factor * growth.at(p);
        // Two thirds of all memories cross the cut (formula 4).
        let bits = it.memory_bits * 2.0 * p / 3.0;
        let compare =
            transfer_s(it, bits, it.link_bps * of(self.network.cut), of(self.network.hops));
        // Formulas (5) and (6).
        let repair = |hops| it.errors * transfer_s(it, it.memory_bits, it.link_bps, of(hops));
        Overhead {
            compare_traffic_s: it.compares * compare,
            repair_traffic_s: repair(self.network.repair_hops_max),
            repair_traffic_min_s: repair(self.network.repair_hops_min),
            compare_s: it.compares * 2.0 * it.memory_bits / it.compare_bps,
            assignment_s: it.errors * it.memory_bits / it.assign_bps,
            ..Overhead::default()
        }
    }

    /// Formulas (7) to (9) with (K_j + 1) D_size = K_j sends and one memory; marking sends nothing.
    ///
    /// §2.4: D_size comes from the program's traffic "and the memory of the nodes on which the two
    /// shadows run in the last compare"; definition 8 compares the final result there, which is
    /// the memory at most.  All of it is taken, under every reading: no reading lets a node's
    /// memory grow with P.
    fn stmr(&self, reading: Reading, p: f64) -> Overhead {
        let it = &self.constants;
        let sends = it.sends * self.size_bits(reading, p);
        Overhead {
            compare_traffic_s: 2.0 * sends / it.link_bps,
            last_traffic_s: 2.0 * it.memory_bits / it.link_bps,
            compare_s: 2.0 * sends / it.compare_bps,
            last_compare_s: 2.0 * it.memory_bits / it.compare_bps,
            ..Overhead::default()
        }
    }
}
