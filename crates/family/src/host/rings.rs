//! The rings of a job on hosts of a plant: NCCL's channels over all of them, followed through each
//! host's links and the network between.
//!
//! Each host has the topology file that the plant names for it.  NCCL's decisions about the file
//! say which ranks follow each other and by which ports a channel leaves and enters; `inner`
//! finds the links of the host that this uses, `network` those between hosts.  What comes of it is
//! how much of the job's traffic each link of the [`Fabric`] carries, GPU to GPU, which bounds what
//! the job can reach and shows where jobs meet.
//!
//! A step of a ring inside a host goes by the path that NCCL takes, with its detours through a
//! CPU's memory; one between hosts leaves by the port at the channel's end, through another GPU
//! under PXN.  In the network it is spread evenly over all ways with the fewest links, as switches
//! do on average that choose by a hash for each of many flows.

mod inner;

mod network;

use std::collections::BTreeMap;
use std::ops::Range;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{LinkId, NodeId, PartId, PortId};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::TopologySpec;

use crate::host::change::{NoAnswer, Question};
use crate::host::decision::{Transport, transport};
use crate::host::inside::{self, Devices, NoInside};
use crate::host::nccl::connect::{RefusedConnect, Server, connect_all};
use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::{Found, GraphKind, RefusedSearch};
use crate::host::nccl::view::{RefusedView, View};
use crate::host::nccl::xml::{Element, Strictness, Tolerated, read};
use crate::host::place::label;
use crate::host::rings::inner::Inner;
use crate::host::rings::network::Network;
use crate::host::views::{Searched, searched};

/// GPUs of one host that a job has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'p> {
    /// The host.
    pub part: PartId,
    /// The seats whose GPUs it has, in the order of their ranks.
    pub seats: Vec<usize>,
    /// The name of the host's topology file, and what stands in it.
    pub file: (&'p str, &'p Element),
}

/// The topology files of a plant, read, with their texts.
#[derive(Clone, Debug)]
pub struct Files<'p>(BTreeMap<&'p str, (&'p str, Element)>);

impl<'p> Files<'p> {
    /// Those that can be read, which all are of a plant that a fabric was built of.
    pub fn of(plant: &'p Plant) -> Files<'p> {
        let strictness = Strictness::Lenient { single_quotes: true };
        let root = |it: &'p TopologySpec| {
            let root = read(&it.xml, strictness).ok()?.root;
            Some((it.name.as_str(), (it.xml.as_str(), root)))
        };
        Files(plant.topologies.iter().filter_map(root).collect())
    }

    /// The name and the content of the file that `part` was made from; none of a host without one.
    pub fn of_part(&self, fabric: &Fabric, part: PartId) -> Option<(&'p str, &Element)> {
        let name = fabric.template_of(part).name.strip_prefix(inside::PREFIX)?;
        self.0.get_key_value(name).map(|(name, (_, root))| (*name, root))
    }

    /// What NCCL of that version would refuse of the file called `name`, or make something else of,
    /// although its rings can be followed.
    pub fn tolerated(&self, name: &str, profile: Profile) -> Vec<Tolerated> {
        let read = self.0.get(name).map(|(text, _)| read(text, Strictness::lenient(profile)));
        read.and_then(Result::ok).map_or(Vec::new(), |it| it.tolerated)
    }
}

/// How a job's NCCL is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Whose rules.
    pub profile: Profile,
    /// Environment variables, the same on all hosts.
    pub env: Vec<(String, String)>,
}

/// A job's rings, and what they put on the links.
#[derive(Clone, Debug, PartialEq)]
pub struct Rings {
    /// The chip of each rank.
    pub ranks: Vec<NodeId>,
    /// By channel.
    pub channels: Vec<Ring>,
    /// Of how many channels each link carries a step; a part of one where steps are spread.
    pub load: BTreeMap<LinkId, f64>,
    /// Channels that all hosts found, before NCCL makes more of them.
    pub n_searched: usize,
    /// What NCCL takes each of those to carry in GB/s, between GPUs and to ports.
    pub taken_gb: [f32; 2],
}

/// The ring of one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// All ranks, in its order.
    pub ranks: Vec<usize>,
    /// Its steps through the network, in its order.
    pub crossings: Vec<Crossing>,
}

/// A step of a ring through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The rank that sends.
    pub from: usize,
    /// The rank that it sends to.
    pub to: usize,
    /// The port by which it leaves.
    pub out: PortId,
    /// The port by which it comes in.
    pub into: PortId,
    /// Packet switches between.
    pub n_switches: u32,
}

/// What a link allows a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The link.
    pub link: LinkId,
    /// Of how many channels it carries a step.
    pub n_channels: f64,
    /// The bus bandwidth in GB/s that the job has if the link is filled, by nccl-tests' measure.
    pub bus_gb: f64,
}

/// Why a job's rings cannot be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoRings {
    /// NCCL would refuse the host's file, or a variable has no meaning.
    #[error("{host}: {source}")]
    Host {
        /// The host.
        host: String,
        /// Why.
        source: NoHost,
    },
    /// The rings of the hosts do not come together.
    #[error(transparent)]
    Connect(#[from] RefusedConnect),
    /// A job of one GPU.
    #[error("a ring takes two GPUs; the job has {n}")]
    Alone {
        /// How many it has.
        n: usize,
    },
    /// A channel's port has no cable.
    #[error("channel {channel} leaves {host} by {port}, which has no cable")]
    NoCable {
        /// The channel.
        channel: usize,
        /// The host.
        host: String,
        /// The port.
        port: String,
    },
    /// The network does not join two ports.
    #[error("channel {channel} goes from {from} to {to}, and no cables and switches join them")]
    NotJoined {
        /// The channel.
        channel: usize,
        /// The port by which it leaves.
        from: String,
        /// The port by which it is to come in.
        to: String,
    },
    /// The host's links do not join what NCCL takes to be joined.
    #[error("{host}: the plant has no link for NCCL's way from {from} to {to}")]
    NoLink {
        /// The host.
        host: String,
        /// Where the way begins.
        from: String,
        /// Where it ends.
        to: String,
    },
}

/// Why a host gives no rings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoHost {
    /// The file gives no host.
    #[error(transparent)]
    Inside(#[from] NoInside),
    /// NCCL would not go on.
    #[error(transparent)]
    View(#[from] NoAnswer),
}

/// GPUs of a host that reach each other, as they see it; the same of all hosts of one file and with
/// the same seats.
struct Part {
    view: View,
    found: Vec<Found>,
    inner: Inner,
}

impl Part {
    fn ring(&self) -> Option<&Found> {
        self.found.iter().find(|it| it.kind == GraphKind::Ring)
    }

    /// The port at the channel's end at which `rank` is, of a job whose servers all found
    /// `searched` channels; this one may have found more, which the job has no use for.
    ///
    /// A channel begins at its first rank's port and ends at its last one's; NCCL tells the two
    /// ends apart by whether the rank is the first.
    fn port(&self, searched: usize, channel: usize, rank: i32) -> Option<NodeIdx> {
        let own = self.ring()?.channels.get(channel % searched.max(1))?;
        let end = usize::from(own.ranks.first() != Some(&rank));
        let net = self.view.graph.find(NodeKind::Net, own.nets?[end])?;
        // Of several ports of one number, the one that the way to them leads to.
        let way = self.view.path(gpu(&self.view, rank), net);
        let last = self.view.paths.hops(way).last();
        let end = last.map(|hop| self.view.graph.node(hop.node).links[hop.link as usize].peer);
        Some(end.unwrap_or(net))
    }
}

/// Follows the rings of the job on `members`, whose ranks are numbered in their order.
///
/// O(channels · ranks) steps, and one search of the network for each switch that a host hangs on.
///
/// # Errors
/// [`NoRings`].
///
/// # Panics
/// If a member has a seat that its host does not.
pub fn rings(
    fabric: &Fabric,
    members: &[Member<'_>],
    conditions: &Conditions,
) -> Result<Rings, NoRings> {
    let n_ranks = members.iter().map(|it| it.seats.len()).sum();
    if n_ranks < 2 {
        return Err(NoRings::Alone { n: n_ranks });
    }
    let mut follow = Follow {
        fabric,
        members,
        parts: Vec::new(),
        place_of: Vec::with_capacity(n_ranks),
        network: Network::of(fabric),
        searched: 0,
        load: BTreeMap::new(),
    };
    let mut servers = Vec::new();
    let mut known: BTreeMap<(&str, &[usize]), Range<usize>> = BTreeMap::new();
    for (host, member) in members.iter().enumerate() {
        let key = (member.file.0, member.seats.as_slice());
        let own = match known.get(&key) {
            Some(own) => own.clone(),
            None => {
                let new = parts(fabric, member, members.len(), conditions).map_err(|source| {
                    NoRings::Host { host: host_name(fabric, member.part), source }
                })?;
                let first = follow.parts.len();
                follow.parts.extend(new);
                known.insert(key, first..follow.parts.len());
                first..follow.parts.len()
            }
        };
        let first = follow.place_of.len();
        servers.extend(own.clone().map(|part| (part, first)));
        for rank in 0..member.seats.len() as i32 {
            let sees = |it: &usize| follow.parts[*it].view.graph.gpu_of_rank(rank).is_some();
            let part = own.clone().find(sees).expect("each rank has a view");
            follow.place_of.push(RankPlace { host, part, rank });
        }
    }
    let server = |(part, first): &(usize, usize)| {
        let Part { view, found, .. } = &follow.parts[*part];
        Server { view, found, first: *first }
    };
    let connected = connect_all(&servers.iter().map(server).collect::<Vec<_>>())?;
    follow.searched = connected.searched;
    let mut channels = Vec::with_capacity(connected.rings.len());
    for (channel, ranks) in connected.rings.iter().enumerate() {
        let ranks = ranks.iter().map(|it| *it as usize).collect();
        channels.push(follow.ring(channel, ranks)?);
    }
    let chip = |it: &RankPlace| {
        let member = &members[it.host];
        let seat = fabric.template_of(member.part).seats()[member.seats[it.rank as usize]];
        fabric.node_at(member.part, seat as usize)
    };
    let found: Vec<&Found> = follow.parts.iter().filter_map(Part::ring).collect();
    let least = |of: fn(&Found) -> f32| found.iter().map(|it| of(it)).fold(f32::INFINITY, f32::min);
    Ok(Rings {
        ranks: follow.place_of.iter().map(chip).collect(),
        channels,
        n_searched: connected.searched,
        taken_gb: [least(|it| it.intra.0), least(|it| it.inter.0)],
        load: follow.load,
    })
}

fn parts(
    fabric: &Fabric,
    member: &Member<'_>,
    n_hosts: usize,
    conditions: &Conditions,
) -> Result<Vec<Part>, NoHost> {
    let template = fabric.template_of(member.part);
    let devices = Devices::of(member.file.1, template)?;
    let mut question =
        Question::new(devices.with_ranks(member.file.1, &member.seats), conditions.profile);
    question.nodes = n_hosts as u32;
    question.env.clone_from(&conditions.env);
    let part = |Searched { view, found }| Part {
        view,
        found,
        inner: Inner::of(template, devices.clone()),
    };
    Ok(searched(&question)?.into_iter().map(part).collect())
}

fn host_name(fabric: &Fabric, part: PartId) -> String {
    fabric.part(part).name.to_string()
}

/// Where a rank of the job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RankPlace {
    host: usize,
    part: usize,
    /// Its rank in the host.
    rank: i32,
}

struct Follow<'f> {
    fabric: &'f Fabric,
    members: &'f [Member<'f>],
    parts: Vec<Part>,
    /// By rank.
    place_of: Vec<RankPlace>,
    network: Network<'f>,
    /// Channels that all hosts found.
    searched: usize,
    load: BTreeMap<LinkId, f64>,
}

impl Follow<'_> {
    fn ring(&mut self, channel: usize, ranks: Vec<usize>) -> Result<Ring, NoRings> {
        let mut crossings = Vec::new();
        let after = ranks.iter().skip(1).chain(ranks.first());
        for (&from, &to) in ranks.iter().zip(after) {
            let [a, b] = [from, to].map(|it| self.place_of[it]);
            let by_network = (a.host, a.part) != (b.host, b.part) || {
                let view = &self.parts[a.part].view;
                let [near, far] = [a, b].map(|it| gpu(view, it.rank));
                let by = transport(view, near, far).map_err(|it| self.refused(a.host, it))?;
                by == Transport::Net
            };
            if by_network {
                crossings.push(self.cross(channel, [from, to])?);
            } else {
                self.inside(a, |view| (gpu(view, a.rank), gpu(view, b.rank)))?;
            }
        }
        Ok(Ring { ranks, crossings })
    }

    fn cross(&mut self, channel: usize, ranks: [usize; 2]) -> Result<Crossing, NoRings> {
        let mut ports = [PortId::new(0); 2];
        for (end, rank) in ranks.into_iter().enumerate() {
            let place = self.place_of[rank];
            let part = &self.parts[place.part];
            let net = part.port(self.searched, channel, place.rank);
            let no_port = || self.refused(place.host, RefusedSearch::NoPort.into());
            let net = net.ok_or_else(no_port)?;
            let port = part.inner.devices.port(part.view.graph.node(net));
            let no_link = || self.no_link(place, (gpu(&part.view, place.rank), net));
            let port = port.ok_or_else(no_link)?;
            let host = self.members[place.host].part;
            ports[end] = self.fabric.port_at(host, port as usize);
            if self.fabric.cable_at(ports[end]).is_none() {
                let (host, port) =
                    (host_name(self.fabric, host), self.fabric.port_path(ports[end]));
                return Err(NoRings::NoCable { channel, host, port });
            }
            self.inside(place, |view| {
                let gpu = gpu(view, place.rank);
                if end == 0 { (gpu, net) } else { (net, gpu) }
            })?;
        }
        let ([out, into], [from, to]) = (ports, ranks);
        let load = &mut self.load;
        let add = |link: LinkId, share: f64| *load.entry(link).or_default() += share;
        let n_switches = self.network.spread(ports, add).ok_or_else(|| {
            let [from, to] = ports.map(|it| self.fabric.port_path(it));
            NoRings::NotJoined { channel, from, to }
        })?;
        Ok(Crossing { from, to, out, into, n_switches })
    }

    /// Puts a step inside a host on its links.
    fn inside(
        &mut self,
        place: RankPlace,
        ends: impl Fn(&View) -> (NodeIdx, NodeIdx),
    ) -> Result<(), NoRings> {
        let part = &mut self.parts[place.part];
        let ends = ends(&part.view);
        let host = self.members[place.host].part;
        let template = self.fabric.template_of(host);
        let Some(way) = part.inner.way(template, &part.view, ends) else {
            return Err(self.no_link(place, ends));
        };
        for &link in way {
            *self.load.entry(self.fabric.link_at(host, link)).or_default() += 1.0;
        }
        Ok(())
    }

    fn no_link(&self, place: RankPlace, ends: (NodeIdx, NodeIdx)) -> NoRings {
        let graph = &self.parts[place.part].view.graph;
        let (from, to) = (label(graph, ends.0), label(graph, ends.1));
        let host = host_name(self.fabric, self.members[place.host].part);
        NoRings::NoLink { host, from, to }
    }

    fn refused(&self, host: usize, refused: RefusedView) -> NoRings {
        let host = host_name(self.fabric, self.members[host].part);
        NoRings::Host { host, source: NoHost::View(refused.into()) }
    }
}

fn gpu(view: &View, rank: i32) -> NodeIdx {
    view.graph.gpu_of_rank(rank).expect("ranks were given to these GPUs")
}

impl Rings {
    /// What each link that carries anything allows, the tightest first; equal ones in the order of
    /// their ids.
    pub fn bounds(&self, fabric: &Fabric) -> Vec<Bound> {
        let n = self.channels.len() as f64;
        let bound = |(&link, &n_channels): (&LinkId, &f64)| {
            let capacity_gb = fabric.link(link).attrs.capacity.bps() as f64 / 8e9;
            Bound { link, n_channels, bus_gb: capacity_gb * n / n_channels }
        };
        let mut bounds: Vec<Bound> = self.load.iter().map(bound).collect();
        bounds.sort_by(|a, b| a.bus_gb.total_cmp(&b.bus_gb));
        bounds
    }

    /// What NCCL counts on, in GB/s of bus bandwidth: as many channels as it searched for, each as
    /// fast as its slowest part.
    pub fn taken_bus_gb(&self) -> f64 {
        let [intra, inter] = self.taken_gb;
        f64::from(intra.min(inter)) * self.n_searched as f64
    }
}
