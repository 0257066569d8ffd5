//! From the graphs of each server to the rings and trees of a job, as users see them in the log.
//!
//! Rings are joined from server to server, and every channel is there twice.  Trees are double
//! binary trees over the servers: of the two copies of a channel each takes one of the trees, so
//! that a server which is inner in one is a leaf in the other.

use std::fmt::Write as _;

use crate::host::nccl::search::{Found, GraphKind, Pattern};
use crate::host::nccl::view::View;

/// Nobody.
const NONE: i32 = -1;

/// Children of a rank in a tree, at most.
const ARITY: usize = 3;

/// A rank's place in one channel's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The parent, -1 at the root.
    pub up: i32,
    /// The children, -1 where there is none.
    pub down: [i32; ARITY],
}

/// All channels of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// By channel, all ranks in the ring's order, from rank 0.
    pub rings: Vec<Vec<i32>>,
    /// By channel and rank.
    pub trees: Vec<Vec<Tree>>,
    /// Channels that all servers found, of rings and of trees; those beyond are these again.
    pub searched: usize,
    /// Whether the log is that of 2.7, which writes each tree down twice.
    old_log: bool,
}

/// Why a job cannot be put together from its servers' graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedConnect {
    /// The GPUs of one server do not all reach each other, and one rank's view is not enough.
    #[error(
        "only {left} of the server's {all} GPUs reach each other, so NCCL takes its parts for \
         servers of their own; that is not what is modelled here"
    )]
    Parts {
        /// GPUs that the asking rank reaches.
        left: usize,
        /// GPUs of the server.
        all: usize,
    },
    /// Ranks of the files are not 0, 1, 2 and so on.
    #[error("the ranks of the file's GPUs are not 0 to {last}; number them so")]
    Ranks {
        /// The last one there would be.
        last: usize,
    },
    /// No ring or no tree.
    #[error("there is no {} to connect servers by", .graph.name())]
    NoGraph {
        /// Which.
        graph: GraphKind,
    },
}

/// One server of a job, or a part of one whose GPUs reach only each other: NCCL takes it for one.
#[derive(Clone, Copy, Debug)]
pub struct Server<'v> {
    /// What its ranks see.
    pub view: &'v View,
    /// The graphs that they found in it.
    pub found: &'v [Found],
    /// The rank in the job of what its file calls rank 0.
    pub first: usize,
}

/// The channels of a job of equal servers with these graphs.
///
/// # Errors
/// If a server's parts are servers of their own, or there is no graph.
pub fn connect(view: &View, found: &[Found]) -> Result<Connected, RefusedConnect> {
    connect_all(&equal(view, found)?)
}

/// How many channels the collectives of such a job have.
///
/// # Errors
/// As [`connect`].
pub fn channels(view: &View, found: &[Found]) -> Result<usize, RefusedConnect> {
    Ok(Job::of(&equal(view, found)?)?.n_channels())
}

fn equal<'v>(view: &'v View, found: &'v [Found]) -> Result<Vec<Server<'v>>, RefusedConnect> {
    let nodes = view.ask.nodes as usize;
    let (left, all) = (view.gpus().len(), view.n_ranks / nodes.max(1));
    if left != all {
        return Err(RefusedConnect::Parts { left, all });
    }
    Ok((0..nodes).map(|it| Server { view, found, first: it * all }).collect())
}

/// The channels of a job of these servers.
///
/// They tell each other what they found and go by the least: the fewest channels, the slowest, the
/// most crossing.  They are joined in the order of their lowest ranks.
///
/// # Errors
/// If ranks are missing or doubled, or a server has no graph.
pub fn connect_all(servers: &[Server<'_>]) -> Result<Connected, RefusedConnect> {
    let job = Job::of(servers)?;
    let searched = job.searched;
    let mut rings: Vec<_> = (0..searched).map(|it| job.ring(it)).collect();
    rings.extend_from_within(..);
    let mut trees: Vec<_> =
        (0..2 * searched).map(|it| job.tree(it % searched, it / searched)).collect();
    let count = job.n_channels();
    for channels in [rings.len(), count] {
        rings.truncate(channels);
        trees.truncate(channels);
    }
    // More channels are the first ones again.
    for at in rings.len()..count {
        rings.push(rings[at % (2 * searched)].clone());
        trees.push(trees[at % (2 * searched)].clone());
    }
    Ok(Connected { rings, trees, searched, old_log: job.old })
}

struct Member<'f> {
    ring: &'f Found,
    tree: &'f Found,
    /// The rank in the job of what its file calls rank 0.
    first: i32,
    /// Its ranks in the job, ascending.
    ranks: Vec<i32>,
}

impl<'f> Member<'f> {
    fn of(server: &Server<'f>) -> Result<Member<'f>, RefusedConnect> {
        let graph = |graph: GraphKind| {
            let found = server.found.iter().find(|it| it.kind == graph && !it.channels.is_empty());
            found.ok_or(RefusedConnect::NoGraph { graph })
        };
        let (ring, tree) = (graph(GraphKind::Ring)?, graph(GraphKind::Tree)?);
        let first = server.first as i32;
        let gpus = server.view.gpus().iter();
        let rank = |it| first.saturating_add(server.view.graph.gpu(it).rank);
        let mut ranks: Vec<i32> = gpus.copied().map(rank).collect();
        ranks.sort_unstable();
        Ok(Member { ring, tree, first, ranks })
    }

    /// Where the channel's tree hangs together with those of other servers: its uppermost rank,
    /// and those below which a first and a second server hang.
    fn joints(&self, channel: usize) -> (i32, [i32; 2]) {
        let order = &self.tree.channels[channel].ranks;
        let second = usize::from(self.ranks.len() > 1);
        let below = match self.tree.pattern {
            Pattern::BalancedTree => [second, 0],
            Pattern::SplitTree => [second, second],
            _ => [0, 0],
        };
        (self.first + order[0], below.map(|it| self.first + order[it]))
    }
}

struct Job<'f> {
    members: Vec<Member<'f>>,
    n_ranks: usize,
    /// Channels that all graphs have.
    searched: usize,
    /// Whether every second server exchanges the channels of a pair, so that a ring stays on its
    /// rail.
    exchanges: bool,
    old: bool,
    /// NCCL's bound on channels.
    limit: usize,
    /// Whether few fast rings do not fill the way out of a server.
    doubles: bool,
    /// The fewest and the most channels that are wished for.
    wished: (Option<i64>, Option<i64>),
}

impl<'f> Job<'f> {
    fn of(servers: &[Server<'f>]) -> Result<Job<'f>, RefusedConnect> {
        let mut members: Vec<Member<'f>> =
            servers.iter().map(Member::of).collect::<Result<_, _>>()?;
        members.sort_by_key(|it| it.ranks.first().copied());
        let mut ranks: Vec<i32> = members.iter().flat_map(|it| it.ranks.iter().copied()).collect();
        ranks.sort_unstable();
        let n_ranks = ranks.len();
        if (0..).zip(&ranks).any(|(at, rank)| at != *rank) {
            return Err(RefusedConnect::Ranks { last: n_ranks - 1 });
        }
        let none = RefusedConnect::NoGraph { graph: GraphKind::Ring };
        let first = servers.first().ok_or(none)?.view;
        let counts = |it: &Member<'_>| it.ring.channels.len().min(it.tree.channels.len());
        let searched = members.iter().map(counts).min().unwrap_or(0);
        let profile = first.ask.profile;
        let crossing = members.iter().map(|it| it.ring.cross_nic).max();
        let pairs = profile.has_hosts().then_some(if profile.has_c2c() { 2 } else { 1 });
        let exchanges = pairs.is_some() && pairs == crossing && searched.is_multiple_of(2);
        let old = profile.is_seed();
        let sms = servers.iter().flat_map(|it| {
            let gpus = it.view.gpus().iter();
            gpus.map(|gpu| it.view.graph.gpu(*gpu).sm)
        });
        let is_fast = members.iter().all(|it| 45.0 < it.ring.intra.0);
        let doubles = !old && 90 <= sms.min().unwrap_or(0) && 1 < members.len() && is_fast;
        let (limit, wished) = (profile.channels(), first.ask.settings.channels);
        Ok(Job { members, n_ranks, searched, exchanges, old, limit, doubles, wished })
    }

    fn n_channels(&self) -> usize {
        let mut count = (2 * self.searched).min(self.limit);
        if self.doubles && count < 16 {
            count *= 2;
        }
        let (least, most) = self.wished;
        let most = most.map_or(self.limit, |it| (it.max(1) as usize).min(self.limit));
        let least = least.map_or(0, |it| (it.max(0) as usize).min(self.limit));
        count.min(most).max(least)
    }

    /// The channel's ring over all servers, from rank 0.
    fn ring(&self, channel: usize) -> Vec<i32> {
        let mut ring = Vec::with_capacity(self.n_ranks);
        for (node, member) in self.members.iter().enumerate() {
            let exchanged = self.exchanges && node % 2 == 1;
            let order = &member.ring.channels[channel ^ usize::from(exchanged)].ranks;
            ring.extend(order.iter().map(|it| member.first + it));
        }
        let first = ring.iter().position(|it| *it == 0).unwrap_or(0);
        ring.rotate_left(first);
        ring
    }

    /// Each rank's place in the channel's tree; `second` tells which of the two trees.
    fn tree(&self, channel: usize, second: usize) -> Vec<Tree> {
        let mut trees = vec![Tree { up: NONE, down: [NONE; ARITY] }; self.n_ranks];
        for (node, member) in self.members.iter().enumerate() {
            let order: Vec<i32> = {
                let ranks = member.tree.channels[channel].ranks.iter();
                ranks.map(|it| member.first + it).collect()
            };
            for (at, rank) in order.iter().enumerate() {
                let tree = &mut trees[*rank as usize];
                tree.up = if at == 0 { NONE } else { order[at - 1] };
                tree.down[0] = order.get(at + 1).copied().unwrap_or(NONE);
            }
            let (root, below) = member.joints(channel);
            let place = double_tree(self.members.len(), node, self.old)[second];
            if let Some(up) = place.up {
                let (_, above) = self.members[up].joints(channel);
                trees[root as usize].up = above[usize::from(place.is_second_child)];
            }
            for (rank, down) in below.into_iter().zip(place.down) {
                let Some(down) = down else { continue };
                let parent = &mut trees[rank as usize];
                if let Some(free) = parent.down.iter_mut().find(|it| **it == NONE) {
                    *free = self.members[down].joints(channel).0;
                }
            }
        }
        trees
    }
}

/// A server's place in a binary tree over servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    up: Option<usize>,
    down: [Option<usize>; 2],
    /// Whether it hangs on its parent's second side.
    is_second_child: bool,
}

/// A binary tree in which leaves and inner nodes take turns: node 0 is the root, and a node of
/// lowest bit `b` lies between those of half that bit on both sides.
fn binary_tree(nodes: usize, node: usize) -> Place {
    let mut bit = 1;
    while bit < nodes && bit & node == 0 {
        bit <<= 1;
    }
    if node == 0 {
        let down = [None, (nodes > 1).then_some(bit >> 1)];
        return Place { up: None, down, is_second_child: false };
    }
    let above = (node ^ bit) | (bit << 1);
    let up = if above < nodes { above } else { node ^ bit };
    let half = bit >> 1;
    // What is out of bounds gives way to its own lower child.
    let mut lower = half;
    while lower > 0 && node + lower >= nodes {
        lower >>= 1;
    }
    let down = [(half > 0).then(|| node - half), (lower > 0).then(|| node + lower)];
    Place { up: Some(up), down, is_second_child: node >= up }
}

/// The tree and its complement: mirrored for an even number of servers, shifted for an odd one; in
/// 2.7, which is `old`, the other way round.
fn double_tree(nodes: usize, node: usize, old: bool) -> [Place; 2] {
    let mirrored = nodes.is_multiple_of(2) != old;
    let to = |it: usize| if mirrored { nodes - 1 - it } else { (it + nodes - 1) % nodes };
    let back = |it: usize| if mirrored { nodes - 1 - it } else { (it + 1) % nodes };
    let other = binary_tree(nodes, to(node));
    let (up, down) = (other.up.map(back), other.down.map(|it| it.map(back)));
    [binary_tree(nodes, node), Place { up, down, is_second_child: other.is_second_child }]
}

impl Connected {
    /// The lines that NCCL writes about it: rings once, then each rank's trees.
    pub fn log(&self) -> String {
        let mut out = String::new();
        let count = self.rings.len();
        for (channel, ring) in self.rings.iter().enumerate() {
            let _ = write!(out, "Channel {channel:02}/{count:02} :");
            for rank in ring {
                let _ =
                    if self.old_log { write!(out, " {rank:>4}") } else { write!(out, " {rank}") };
            }
            out.push('\n');
        }
        let ranks = self.rings.first().map_or(0, Vec::len);
        for rank in 0..ranks {
            let _ = write!(out, "[{rank}] Trees");
            for (channel, trees) in self.trees.iter().enumerate() {
                let Tree { up, down: [a, b, c] } = trees[rank];
                let _ = write!(out, " [{channel}] {a}/{b}/{c}->{rank}->{up}");
                if self.old_log {
                    let _ = write!(out, "|{up}->{rank}->{a}/{b}/{c}");
                }
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::double_tree;

    #[test]
    fn every_server_but_the_root_is_the_child_that_its_parent_knows() {
        for (nodes, old) in (1..70).flat_map(|nodes| [(nodes, false), (nodes, true)]) {
            for second in 0..2 {
                let place = |node| double_tree(nodes, node, old)[second];
                let roots = (0..nodes).filter(|it| place(*it).up.is_none()).count();
                assert_eq!(roots, 1, "{nodes}");
                for node in 0..nodes {
                    if let Some(up) = place(node).up {
                        let side = usize::from(place(node).is_second_child);
                        assert_eq!(place(up).down[side], Some(node), "{node} of {nodes}");
                    }
                    for down in place(node).down.into_iter().flatten() {
                        assert_eq!(place(down).up, Some(node), "{down} of {nodes}");
                    }
                }
            }
        }
    }

    #[test]
    fn of_an_even_number_of_servers_none_is_inner_in_both_trees() {
        for nodes in (2..70).step_by(2) {
            for node in 0..nodes {
                let children =
                    double_tree(nodes, node, false).map(|it| it.down.iter().flatten().count());
                assert!(children.contains(&0), "{node} of {nodes}");
            }
        }
    }

    /// As the lines that 2.7.8 itself writes for 8 and for 3 servers have it.
    #[test]
    fn the_second_tree_of_2_7_is_shifted_for_an_even_number_of_servers() {
        let parents = |nodes, old| -> Vec<_> {
            (0..nodes).map(|node| double_tree(nodes, node, old)[1].up).collect()
        };
        let parent = |it: [usize; 8], root: usize| -> Vec<_> {
            it.iter().enumerate().map(|(at, up)| Some(*up).filter(|_| at != root)).collect()
        };
        assert_eq!(parents(8, true), parent([7, 0, 3, 5, 3, 1, 7, 5], 1));
        assert_eq!(parents(8, false), parent([1, 3, 1, 7, 5, 3, 5, 0], 7));
        assert_eq!(parents(3, true), [Some(2), Some(0), None]);
    }
}
