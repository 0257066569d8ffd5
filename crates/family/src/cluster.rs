//! Where the clusters of a program in replicas lie (seed 003, definitions 3 and 4): triples of
//! hosts that are close to one another, never two replicas on one host.
//!
//! In reading order: which hosts there are and what joins them ([`hosts`]), who is close to whom
//! (`near`), searches that try all (`exact`), as many triples as there can be within two hops
//! (`pack`), triples whose hosts share no rack, switch or power feed (`apart`), and what their
//! compares put on the links ([`load`]).
//!
//! No packing has more triples than a third of each set of hosts that hang together, rounded down;
//! that is the bound told beside what was found.

pub mod hosts;

mod near;

mod exact;

mod pack;

mod apart;

pub mod load;

use selvedge_model::fabric::DomainKind;

use crate::cluster::hosts::Hosts;

/// What the replicas of one process must not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// A host; they lie within two hops (definition 4).
    Host,
    /// A packet switch that hosts are cabled to, nor a chain of such.
    Switch,
    /// A failure domain of this kind.
    Domain(DomainKind),
}

impl Apart {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Apart::Host => "host",
            Apart::Switch => "switch",
            Apart::Domain(DomainKind::Rack) => "rack",
            Apart::Domain(DomainKind::Power) => "power feed",
            Apart::Domain(DomainKind::Cooling) => "cooling loop",
            Apart::Domain(DomainKind::Plane) => "plane",
        }
    }
}

/// The hosts of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triple {
    /// By number among the hosts; the first is the nearest to the others, where the meta runs.
    pub hosts: [usize; 3],
    /// From the first to the second, to the third, and from the second to the third.
    pub hops: [u32; 3],
}

impl Triple {
    /// All hops of one exchange between each two.
    pub fn hops_sum(&self) -> u32 {
        self.hops.iter().sum()
    }
}

/// Triples, and what bounds them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Clusters {
    /// In the order of their first hosts.
    pub triples: Vec<Triple>,
    /// No packing has more.
    pub bound: usize,
    /// No such packing, of as many triples, has fewer hops in all.
    pub hops_bound: u64,
    /// Live hosts in no triple.
    pub left: Vec<usize>,
}

impl Clusters {
    /// All hops of one exchange between each two hosts of each triple.
    pub fn hops_sum(&self) -> u64 {
        self.triples.iter().map(|it| u64::from(it.hops_sum())).sum()
    }

    /// Keeps the first `n` triples.
    fn keep(&mut self, n: usize) {
        for triple in self.triples.drain(n.min(self.triples.len())..) {
            self.left.extend(triple.hosts);
        }
        self.left.sort_unstable();
    }
}

/// Why there is no placement.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClusterError {
    /// Nothing to run on.
    #[error("there are {n} live hosts; a cluster takes three")]
    TooFew {
        /// How many there are.
        n: usize,
    },
    /// No host belongs to such a thing.
    #[error("no host belongs to a {what}; the plant names none")]
    NoDomain {
        /// What was to be kept apart.
        what: &'static str,
    },
    /// More than anyone would wait for.
    #[error("{n} kinds of hosts by their distances are more than {max}; place a pod at a time")]
    TooMany {
        /// Sets of hosts with the same links.
        n: usize,
        /// The limit.
        max: usize,
    },
}

/// As many triples of `hosts` as can be found, at most `n_max`, close together and `apart`.
///
/// # Errors
/// [`ClusterError`].
pub fn place(hosts: &Hosts, apart: Apart, n_max: usize) -> Result<Clusters, ClusterError> {
    if hosts.n() < 3 {
        return Err(ClusterError::TooFew { n: hosts.n() });
    }
    let mut clusters = match apart {
        Apart::Host => pack::pack(hosts, n_max),
        Apart::Switch | Apart::Domain(_) => apart::pack(hosts, apart, n_max)?,
    };
    clusters.triples.sort_unstable_by_key(|it| it.hosts);
    clusters.keep(n_max);
    Ok(clusters)
}

/// Triples of hosts that are given, near or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct All {
    /// A third of the hosts: first those within two hops, then those that links join however far,
    /// then the others in their order.
    pub triples: Vec<Triple>,
    /// How many are within two hops.
    pub n_near: usize,
    /// How many links join, with those.
    pub n_joined: usize,
}

/// Puts all `hosts` but two at the most into triples, as many as can be within two hops.
pub fn place_all(hosts: &Hosts) -> All {
    let Ok(near) = place(hosts, Apart::Host, usize::MAX) else { return All::default() };
    let mut triples = near.triples;
    let n_near = triples.len();
    let (rest, n_joined) = match near.left.len() {
        0..3 => (Vec::new(), 0),
        _ => apart::pack_rest(hosts, near.left),
    };
    triples.extend(rest);
    All { triples, n_near, n_joined: n_near + n_joined }
}

/// Three hosts, the one with the fewest hops to the two others first.
fn ordered(hosts: [usize; 3], hops: impl Fn(usize, usize) -> u32) -> Triple {
    let [a, b, c] = hosts;
    let orders = [[a, b, c], [b, a, c], [c, a, b]];
    let way = |it: &[usize; 3]| (hops(it[0], it[1]) + hops(it[0], it[2]), it[0]);
    let [meta, a, b] = orders.into_iter().min_by_key(way).expect("three orders");
    let (a, b) = (a.min(b), a.max(b));
    Triple { hosts: [meta, a, b], hops: [hops(meta, a), hops(meta, b), hops(a, b)] }
}

#[cfg(test)]
mod tests;
