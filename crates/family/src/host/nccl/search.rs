//! The search for rings, trees and NVLS heads.  Notes §5; the versions' constants: `speeds`.
//!
//! NCCL walks depth first through all orders of GPUs, channel upon channel, taking each link's
//! width as it goes and giving it back on return, under a budget of calls.  What it finds depends
//! on the order of everything: on which GPU is tried first, on how widths are rounded, on when the
//! budget ends.  So this is the same walk with the same budget: `walk` makes it, `drive` sets
//! the conditions from the strictest to the laxest, `ledger` keeps what links have left.
//!
//! Time is bounded by the budgets, whatever the server: 2^19 calls and a round per condition for
//! each graph, 3·2^19 in 2.7.  The stack is the walk's own, on the heap.

pub mod budget;

mod drive;

mod heads;

mod ledger;

mod orders;

mod ports;

mod recall;

mod routes;

mod speeds;

mod state;

mod walk;

use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::View;
use crate::host::nccl::width::Width;
use crate::host::nccl::xml::Place;

/// What a graph looks like, with NCCL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// The port hangs on the first two GPUs, half on each.
    BalancedTree = 1,
    /// The port sends from the first GPU and receives at the second.
    SplitTree = 2,
    /// The port hangs on the first GPU.
    Tree = 3,
    /// From the first GPU to the last and back.
    Ring = 4,
    /// Each channel has a head that the NVSwitches reduce to.
    Nvls = 5,
    /// Each channel has a head that all GPUs talk to.
    CollnetDirect = 6,
}

impl Pattern {
    /// All of them, by number.
    pub const ALL: [Pattern; 6] = [
        Pattern::BalancedTree,
        Pattern::SplitTree,
        Pattern::Tree,
        Pattern::Ring,
        Pattern::Nvls,
        Pattern::CollnetDirect,
    ];
}

/// Which graph is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GraphKind {
    /// Rings.
    Ring,
    /// Trees.
    Tree,
    /// Chains to a network that reduces.
    CollnetChain,
    /// Heads for NVSwitches that reduce.
    Nvls,
    /// Heads for a network that reduces.
    CollnetDirect,
}

impl GraphKind {
    /// NCCL's number for it.
    pub fn id(self) -> u32 {
        self as u32
    }

    /// Its name in the fixed form.
    pub fn name(self) -> &'static str {
        match self {
            GraphKind::Ring => "ring",
            GraphKind::Tree => "tree",
            GraphKind::CollnetChain => "collnetChain",
            GraphKind::Nvls => "nvls",
            GraphKind::CollnetDirect => "collnetDirect",
        }
    }
}

/// One channel of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Ranks in order.
    pub ranks: Vec<i32>,
    /// Ids of the ports at which it begins and ends; none where no port takes part.
    pub nets: Option<[u64; 2]>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What was looked for.
    pub kind: GraphKind,
    /// What it looks like.
    pub pattern: Pattern,
    /// Whether channels may begin and end at different ports: 0 no, 1 yes, 2 in pairs.
    pub cross_nic: i32,
    /// Whether ports must be able to reduce.
    pub collnet: bool,
    /// The fewest channels that were asked for.
    pub channels_min: usize,
    /// The most.
    pub channels_max: usize,
    /// What each channel carries between GPUs.
    pub intra: Width,
    /// What each channel carries to a port.
    pub inter: Width,
    /// Latency of the port that was tried last.
    pub latency: f32,
    /// The farthest that GPUs in a channel are apart.
    pub kind_intra: PathKind,
    /// The farthest that ports are.
    pub kind_inter: PathKind,
    /// Whether all channels had to have the first one's order.
    pub same_channels: bool,
    /// Hops, as NCCL counts them.
    pub hops: i32,
    /// The channels.
    pub channels: Vec<Channel>,
}

/// All graphs of one server, and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Graphs {
    /// In NCCL's order: ring, tree, then chains in 2.7 and NVLS later; under
    /// `NCCL_COLLNET_ENABLE=1` chains and direct channels before NVLS.
    pub found: Vec<Found>,
    /// Calls of the walk, as NCCL's budget counts them.
    pub calls: u64,
    /// The walks for the ring, in order; none where it came from a file.
    pub attempts: Vec<Attempt>,
}

/// One walk: its conditions and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// 1 where conditions become laxer until there is a graph, 2 where it is tried faster.
    pub pass: u8,
    /// What was looked for.
    pub pattern: Pattern,
    /// What each channel was to carry between GPUs.
    pub intra: Width,
    /// And to a port.
    pub inter: Width,
    /// The farthest between GPUs.
    pub kind_intra: PathKind,
    /// The farthest to a port.
    pub kind_inter: PathKind,
    /// Whether channels might begin and end at different ports.
    pub cross_nic: i32,
    /// Whether all channels had to have the first one's order.
    pub same_channels: bool,
    /// Whether something better was found.
    pub better: bool,
    /// How it ended.
    pub end: End,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing better is possible under these conditions.
    Perfect,
    /// All was tried.
    Exhausted,
    /// The budget of calls was spent.
    Budget,
}

/// Why NCCL gives up looking.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedSearch {
    /// The job needs the network and no GPU reaches any port.
    #[error(
        "the job spans servers and this server has no network port; \
         name one in the file, or ask for one server"
    )]
    NoPort,
    /// The graph file that is to be taken in place of a search.
    #[error("the graph file, {place}: {text}")]
    GraphFile {
        /// Where in it.
        place: Place,
        /// What is wrong, and what would be right.
        text: String,
    },
    /// No graph at any speed, and no port to name in the graph that NCCL would then take.
    #[error(
        "no order of the GPUs has any width, and this server has no network port to fall back \
         to; this version gives up here"
    )]
    NoWay,
    /// Some GPUs hang on NVSwitches and this one has no NVLink at all.
    #[error(
        "rank {rank}'s GPU has no NVLink while others hang on NVSwitches; this version gives up \
         here: set NCCL_NVLS_ENABLE=0, or mend the GPU's links"
    )]
    NoSwitch {
        /// Of the GPU.
        rank: i32,
    },
}

/// The graphs that NCCL looks for when a job starts.
///
/// # Errors
/// Where NCCL would give up.
pub fn graphs(view: &View) -> Result<Graphs, RefusedSearch> {
    let profile = view.ask.profile;
    if profile.keeps_ports() && view.inter && view.nets().is_empty() {
        return Err(RefusedSearch::NoPort);
    }
    find_all(state::Search::new(view))
}

fn find_all(mut search: state::Search<'_>) -> Result<Graphs, RefusedSearch> {
    let profile = search.profile;
    let ring = search.find(drive::Goal::ring(profile))?;
    let attempts = std::mem::take(&mut search.attempts);
    let channels = ring.channels.len();
    let tree = search.find(drive::Goal::tree(profile, channels))?;
    let mut goals = Vec::new();
    // 2.7 always looks for chains, later versions where a network may reduce.
    if profile.is_seed() || search.view.ask.settings.collnet {
        goals.push(drive::Goal::collnet_chain(channels));
        if profile.has_c2c() {
            goals.push(drive::Goal::collnet_direct(profile));
        }
    }
    if !profile.is_seed() && search.view.ask.settings.nvls {
        goals.push(drive::Goal::nvls(profile));
    }
    let mut found = vec![ring, tree];
    for goal in goals {
        found.push(search.find(goal)?);
    }
    Ok(Graphs { found, calls: search.calls, attempts })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{find_all, state::Search};
    use crate::host::change::Question;
    use crate::host::nccl::profile::Profile;
    use crate::host::nccl::xml::{Strictness, read};

    /// Two processors with a bridge each, two GPUs and a port on either, NVLinks in a ring of the
    /// given widths.
    fn server(vendor: &str, nvlinks: [u32; 4]) -> String {
        let mut text = "<system version=\"1\">\n".to_owned();
        for cpu in 0..2_usize {
            let _ = write!(
                text,
                "<cpu numaid=\"{cpu}\" affinity=\"ff\" arch=\"x86_64\" vendor=\"{vendor}\" \
                 familyid=\"6\" modelid=\"85\">\n<pci busid=\"0000:{cpu}0:00.0\" \
                 class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">\n"
            );
            for gpu in [2 * cpu, 2 * cpu + 1] {
                let _ = writeln!(
                    text,
                    "<pci busid=\"0000:{cpu}{}:00.0\" class=\"0x030200\" link_speed=\"8 GT/s\" \
                     link_width=\"16\">\n<gpu dev=\"{gpu}\" sm=\"70\" rank=\"{gpu}\" gdr=\"1\">",
                    gpu + 1
                );
                let before = (gpu + 3) % 4;
                for (peer, count) in [((gpu + 1) % 4, nvlinks[gpu]), (before, nvlinks[before])] {
                    if count > 0 {
                        let _ = writeln!(
                            text,
                            "<nvlink target=\"0000:{}{}:00.0\" count=\"{count}\" \
                             tclass=\"0x030200\"/>",
                            peer / 2,
                            peer + 1
                        );
                    }
                }
                text.push_str("</gpu>\n</pci>\n");
            }
            let _ = writeln!(
                text,
                "<pci busid=\"0000:{cpu}9:00.0\" class=\"0x020000\" link_speed=\"8 GT/s\" \
                 link_width=\"16\">\n<nic>\n<net name=\"n{cpu}\" dev=\"{cpu}\" speed=\"100000\" \
                 port=\"1\" guid=\"0x{cpu}\" maxconn=\"64\" gdr=\"1\"/>\n</nic>\n</pci>"
            );
            text.push_str("</pci>\n</cpu>\n");
        }
        text + "</system>\n"
    }

    #[test]
    fn what_is_recalled_costs_and_brings_what_walking_it_does() {
        let mut recalled = 0;
        let servers =
            [("GenuineIntel", [2, 1, 2, 1]), ("AuthenticAMD", [0; 4]), ("", [3, 0, 1, 0])];
        for (vendor, nvlinks) in servers {
            let text = server(vendor, nvlinks);
            let document = read(&text, Strictness::AsNccl { single_quotes: false });
            let document = document.expect("a server as NCCL reads it");
            for profile in Profile::ALL {
                for nodes in [1, 2] {
                    let mut question = Question::new(document.root.clone(), profile);
                    question.nodes = nodes;
                    let view = question.view().expect("a sound server");
                    let mut plain = Search::new(&view);
                    plain.recall.is_off = true;
                    let walked = find_all(plain);
                    let mut search = Search::new(&view);
                    search.recall.is_off = false;
                    assert_eq!(walked, find_all(search), "{vendor} {profile} {nodes}");
                    recalled += walked.map_or(0, |it| usize::from(it.calls > 10_000));
                }
            }
        }
        assert!(recalled > 8, "{recalled} long searches are few");
    }
}
