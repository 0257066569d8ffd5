//! From the graphs of one server to the rings and trees of a job of equal servers, as users see
//! them in the log.
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
    /// Whether the log is that of 2.7, which writes each tree down twice.
    old_log: bool,
}

/// Why a job cannot be put together from one server's graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedConnect {
    /// The GPUs of one server do not all reach each other, so its parts are servers of their own.
    #[error(
        "only {left} of the server's {all} GPUs reach each other, so NCCL takes its parts for \
         servers, which are not all equal; the channels of such a job are not put together"
    )]
    Parts {
        /// GPUs that the asking rank reaches.
        left: usize,
        /// GPUs of the server.
        all: usize,
    },
    /// Ranks of the file are not 0, 1, 2 and so on.
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

/// The channels of a job of equal servers with these graphs.
///
/// # Errors
/// If servers would not be equal, or there is no graph.
pub fn connect(view: &View, found: &[Found]) -> Result<Connected, RefusedConnect> {
    let job = Job::of(view, found)?;
    let searched = job.searched();
    let mut rings: Vec<_> = (0..searched).map(|it| job.ring(it)).collect();
    rings.extend_from_within(..);
    let mut trees: Vec<_> =
        (0..2 * searched).map(|it| job.tree(it % searched, it / searched)).collect();
    let count = n_channels(view, &job);
    for channels in [rings.len(), count] {
        rings.truncate(channels);
        trees.truncate(channels);
    }
    // More channels are the first ones again.
    for at in rings.len()..count {
        rings.push(rings[at % (2 * searched)].clone());
        trees.push(trees[at % (2 * searched)].clone());
    }
    Ok(Connected { rings, trees, old_log: job.old })
}

/// How many channels the job's collectives have.
///
/// # Errors
/// As [`connect`].
pub fn channels(view: &View, found: &[Found]) -> Result<usize, RefusedConnect> {
    Ok(n_channels(view, &Job::of(view, found)?))
}

fn n_channels(view: &View, job: &Job<'_>) -> usize {
    let limit = job.limit;
    let mut count = (2 * job.searched()).min(limit);
    let sm = view.gpus().iter().map(|it| view.graph.gpu(*it).sm).min().unwrap_or(0);
    // Few fast rings do not fill the way out of a server.
    if !job.old && sm >= 90 && job.nodes > 1 && job.ring.intra.0 > 45.0 && count < 16 {
        count *= 2;
    }
    let (least, most) = view.ask.settings.channels;
    let most = most.map_or(limit, |it| (it.max(1) as usize).min(limit));
    let least = least.map_or(0, |it| (it.max(0) as usize).min(limit));
    count.min(most).max(least)
}

struct Job<'f> {
    ring: &'f Found,
    tree: &'f Found,
    /// Ranks of one server.
    local: usize,
    /// Servers.
    nodes: usize,
    old: bool,
    /// NCCL's bound on channels.
    limit: usize,
    /// The `crossnic` with which every second server exchanges the channels of a pair.
    pairs: Option<i32>,
}

impl<'f> Job<'f> {
    fn of(view: &View, found: &'f [Found]) -> Result<Job<'f>, RefusedConnect> {
        let (local, nodes) = (view.gpus().len(), view.ask.nodes as usize);
        if local * nodes != view.n_ranks {
            return Err(RefusedConnect::Parts { left: local, all: view.n_ranks / nodes.max(1) });
        }
        let mut ranks: Vec<i32> = view.gpus().iter().map(|it| view.graph.gpu(*it).rank).collect();
        ranks.sort_unstable();
        if ranks.iter().enumerate().any(|(at, rank)| *rank != at as i32) {
            return Err(RefusedConnect::Ranks { last: local - 1 });
        }
        let graph = |graph: GraphKind| {
            let found = found.iter().find(|it| it.kind == graph && !it.channels.is_empty());
            found.ok_or(RefusedConnect::NoGraph { graph })
        };
        let (ring, tree) = (graph(GraphKind::Ring)?, graph(GraphKind::Tree)?);
        let profile = view.ask.profile;
        let pairs = profile.has_hosts().then_some(if profile.has_c2c() { 2 } else { 1 });
        let (old, limit) = (profile.is_seed(), profile.channels());
        Ok(Job { ring, tree, local, nodes, old, limit, pairs })
    }

    /// Channels that both graphs have.
    fn searched(&self) -> usize {
        self.ring.channels.len().min(self.tree.channels.len())
    }

    fn rank(&self, node: usize, rank: i32) -> i32 {
        (node * self.local) as i32 + rank
    }

    /// The channel's ring over all servers, from rank 0.
    fn ring(&self, channel: usize) -> Vec<i32> {
        let count = self.ring.channels.len().min(self.tree.channels.len());
        let mut ring = Vec::with_capacity(self.local * self.nodes);
        for node in 0..self.nodes {
            // With channels in pairs, every second server exchanges the two, so that a ring stays
            // on its rail.
            let exchanged =
                self.pairs == Some(self.ring.cross_nic) && count.is_multiple_of(2) && node % 2 == 1;
            let channel = if exchanged { channel ^ 1 } else { channel };
            let order = &self.ring.channels[channel].ranks;
            ring.extend(order.iter().map(|it| self.rank(node, *it)));
        }
        let first = ring.iter().position(|it| *it == 0).unwrap_or(0);
        ring.rotate_left(first);
        ring
    }

    /// Each rank's place in the channel's tree; `second` tells which of the two trees.
    fn tree(&self, channel: usize, second: usize) -> Vec<Tree> {
        let order = &self.tree.channels[channel].ranks;
        let mut trees = vec![Tree { up: NONE, down: [NONE; ARITY] }; self.local * self.nodes];
        // Between servers: up from the first GPU, down to one or two others.
        let second_gpu = usize::from(self.local > 1);
        let (first_child, second_child) = match self.tree.pattern {
            Pattern::BalancedTree => (second_gpu, 0),
            Pattern::SplitTree => (second_gpu, second_gpu),
            _ => (0, 0),
        };
        for node in 0..self.nodes {
            for (at, rank) in order.iter().enumerate() {
                let tree = &mut trees[self.rank(node, *rank) as usize];
                tree.up = if at == 0 { NONE } else { self.rank(node, order[at - 1]) };
                tree.down[0] = order.get(at + 1).map_or(NONE, |it| self.rank(node, *it));
            }
            let place = double_tree(self.nodes, node, self.old)[second];
            let root = self.rank(node, order[0]) as usize;
            if let Some(up) = place.up {
                let from = if place.is_second_child { second_child } else { first_child };
                trees[root].up = self.rank(up, order[from]);
            }
            for (child, down) in [(first_child, place.down[0]), (second_child, place.down[1])] {
                let Some(down) = down else { continue };
                let parent = &mut trees[self.rank(node, order[child]) as usize];
                if let Some(free) = parent.down.iter_mut().find(|it| **it == NONE) {
                    *free = (down * self.local) as i32 + order[0];
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
