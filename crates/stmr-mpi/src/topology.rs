//! Topologies of communicators: what a twin is told of one, and what MPI would answer about it.

use crate::abi::{self, Family};
use crate::calls;
use crate::parts::Degrees;
use crate::real::{self, Call};

/// How the processes of a communicator lie to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Topology {
    #[default]
    Unknown,
    /// Extents and whether they close.
    Grid(Vec<(i32, i32)>),
    /// Where the neighbours of each process end, and all neighbours.
    Graph { ends: Vec<i32>, all: Vec<i32> },
    /// From whom this process gets and to whom it gives.
    Neighbors { sources: Ends, targets: Ends },
}

/// One end of some edges: the processes there, and the weights if there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    ranks: Vec<i32>,
    weights: Option<Vec<i32>>,
}

impl Ends {
    fn words(&self) -> Vec<i32> {
        let weights = self.weights.as_deref();
        let head = [self.ranks.len() as i32, i32::from(weights.is_some())];
        [&head, &self.ranks[..], weights.unwrap_or_default()].concat()
    }

    /// What [`Ends::words`] says, and what is behind it.
    fn read(words: &[i32]) -> Option<(Self, &[i32])> {
        let (&[n, is_weighted], rest) = words.split_first_chunk()?;
        let (ranks, rest) = rest.split_at_checked(n as usize)?;
        let n_weights = if is_weighted == 0 { 0 } else { ranks.len() };
        let (weights, rest) = rest.split_at_checked(n_weights)?;
        let weights = (is_weighted != 0).then(|| weights.to_vec());
        Some((Self { ranks: ranks.to_vec(), weights }, rest))
    }

    /// Writes as many as there is room for.
    unsafe fn write(&self, room: usize, to: usize, weights_to: usize) {
        let n = self.ranks.len().min(room as i32 as usize);
        unsafe { put(to, &self.ranks[..n]) };
        let are_wanted = ![0, unweighted()].contains(&weights_to);
        if let Some(weights) = self.weights.as_ref().filter(|_| are_wanted) {
            unsafe { put(weights_to, &weights[..n]) };
        }
    }
}

impl Topology {
    /// That of a communicator of MPI's.
    pub(crate) fn of(comm: usize) -> Self {
        let (mut kind, mut n) = (0_i32, [0_i32; 3]);
        let at = n.as_mut_ptr() as usize;
        real::call(calls::TOPO_TEST, &[comm, &raw mut kind as usize]);
        match kind {
            it if it == abi::table().cart => {
                real::call(calls::CARTDIM_GET, &[comm, at]);
                let [mut dims, mut periods, mut coords] =
                    [(); 3].map(|()| vec![0_i32; n[0] as usize]);
                let to = [&mut dims, &mut periods, &mut coords].map(|it| it.as_mut_ptr() as usize);
                real::call(calls::CART_GET, &[&[comm, n[0] as usize], &to[..]].concat());
                Self::Grid(dims.into_iter().zip(periods).collect())
            }
            it if it == abi::table().graph => {
                real::call(calls::GRAPHDIMS_GET, &[comm, at, at + 4]);
                let [mut ends, mut all] = [n[0], n[1]].map(|it| vec![0_i32; it as usize]);
                let to = [&mut ends, &mut all].map(|it| it.as_mut_ptr() as usize);
                let room = [n[0] as usize, n[1] as usize];
                real::call(calls::GRAPH_GET, &[&[comm], &room[..], &to[..]].concat());
                Self::Graph { ends, all }
            }
            it if it == abi::table().dist_graph => {
                real::call(calls::DIST_GRAPH_NEIGHBORS_COUNT, &[comm, at, at + 4, at + 8]);
                let room = |n: i32| [(); 2].map(|()| vec![0_i32; n as usize]);
                let (mut sources, mut targets) = (room(n[0]), room(n[1]));
                let from = sources.each_mut().map(|it| it.as_mut_ptr() as usize);
                let to = targets.each_mut().map(|it| it.as_mut_ptr() as usize);
                let args = [comm, n[0] as usize, from[0], from[1], n[1] as usize, to[0], to[1]];
                real::call(calls::DIST_GRAPH_NEIGHBORS, &args);
                let ends = |[ranks, weights]: [Vec<i32>; 2]| Ends {
                    ranks,
                    weights: (n[2] != 0).then_some(weights),
                };
                Self::Neighbors { sources: ends(sources), targets: ends(targets) }
            }
            _ => Self::Unknown,
        }
    }

    fn kind(&self) -> i32 {
        match self {
            Self::Unknown => abi::UNDEFINED,
            Self::Grid(_) => abi::table().cart,
            Self::Graph { .. } => abi::table().graph,
            Self::Neighbors { .. } => abi::table().dist_graph,
        }
    }

    /// What a twin is told.
    pub(crate) fn words(&self) -> Vec<i32> {
        let rest = match self {
            Self::Unknown => Vec::new(),
            Self::Grid(grid) => grid.iter().flat_map(|it| [it.0, it.1]).collect(),
            Self::Graph { ends, all } => [&[ends.len() as i32], &ends[..], &all[..]].concat(),
            Self::Neighbors { sources, targets } => [sources.words(), targets.words()].concat(),
        };
        [&[self.kind()], &rest[..]].concat()
    }

    /// What [`Topology::words`] says.
    pub(crate) fn read(words: &[i32]) -> Self {
        let Some((&kind, rest)) = words.split_first() else { return Self::Unknown };
        let read = || match kind {
            it if it == abi::table().cart => {
                Some(Self::Grid(rest.chunks_exact(2).map(|it| (it[0], it[1])).collect()))
            }
            it if it == abi::table().graph => {
                let (&n, rest) = rest.split_first()?;
                let (ends, all) = rest.split_at_checked(n as usize)?;
                Some(Self::Graph { ends: ends.to_vec(), all: all.to_vec() })
            }
            it if it == abi::table().dist_graph => {
                let (sources, rest) = Ends::read(rest)?;
                let (targets, _) = Ends::read(rest)?;
                Some(Self::Neighbors { sources, targets })
            }
            _ => None,
        };
        read().unwrap_or_default()
    }

    /// How many extents a grid has.
    pub(crate) fn dimensions(&self) -> usize {
        if let Self::Grid(grid) = self { grid.len() } else { 0 }
    }

    /// How many neighbours process `rank` has, if it has any.
    pub(crate) fn degrees(&self, rank: i32) -> Option<Degrees> {
        let even = |n: usize| Degrees { sources: n, targets: n };
        match self {
            Self::Unknown => None,
            Self::Grid(grid) => Some(even(2 * grid.len())),
            Self::Graph { .. } => Some(even(self.neighbors(rank).len())),
            Self::Neighbors { sources, targets } => {
                Some(Degrees { sources: sources.ranks.len(), targets: targets.ranks.len() })
            }
        }
    }

    /// The neighbours of any process, in a graph that all know.
    fn neighbors(&self, rank: i32) -> &[i32] {
        let Self::Graph { ends, all } = self else { return &[] };
        let end = |rank: usize| ends.get(rank).map_or(0, |it| *it as usize);
        let rank = rank as usize;
        let begin = rank.checked_sub(1).map_or(0, end);
        all.get(begin..end(rank)).unwrap_or_default()
    }

    /// What MPI would answer to process `rank`; returns whether it is about this.
    pub(crate) fn answer(&self, call: Call, args: &[usize], rank: i32) -> bool {
        if call == calls::TOPO_TEST {
            unsafe { put(args[1], &[self.kind()]) };
            return true;
        }
        match self {
            Self::Unknown => false,
            Self::Grid(grid) => answer_grid(call, args, grid, rank),
            Self::Graph { ends, all } => self.answer_graph(call, args, ends, all),
            Self::Neighbors { sources, targets } => answer_neighbors(call, args, sources, targets),
        }
    }

    fn answer_graph(&self, call: Call, args: &[usize], ends: &[i32], all: &[i32]) -> bool {
        let some = |of: &[i32], room: usize| of[..of.len().min(room as i32 as usize)].to_vec();
        match call {
            calls::GRAPHDIMS_GET => unsafe {
                put(args[1], &[ends.len() as i32]);
                put(args[2], &[all.len() as i32]);
            },
            calls::GRAPH_GET => unsafe {
                put(args[3], &some(ends, args[1]));
                put(args[4], &some(all, args[2]));
            },
            calls::GRAPH_NEIGHBORS_COUNT => unsafe {
                put(args[2], &[self.neighbors(args[1] as i32).len() as i32]);
            },
            calls::GRAPH_NEIGHBORS => unsafe {
                put(args[3], &some(self.neighbors(args[1] as i32), args[2]));
            },
            _ => return false,
        }
        true
    }
}

fn answer_neighbors(call: Call, args: &[usize], sources: &Ends, targets: &Ends) -> bool {
    match call {
        calls::DIST_GRAPH_NEIGHBORS_COUNT => unsafe {
            put(args[1], &[sources.ranks.len() as i32]);
            put(args[2], &[targets.ranks.len() as i32]);
            put(args[3], &[i32::from(sources.weights.is_some())]);
        },
        calls::DIST_GRAPH_NEIGHBORS => unsafe {
            sources.write(args[1], args[2], args[3]);
            targets.write(args[4], args[5], args[6]);
        },
        _ => return false,
    }
    true
}

/// Answers what is asked of a grid; returns whether it was that.
fn answer_grid(call: Call, args: &[usize], grid: &[(i32, i32)], rank: i32) -> bool {
    let n = grid.len();
    match call {
        calls::CARTDIM_GET => unsafe { put(args[1], &[n as i32]) },
        calls::CART_GET => {
            let n = n.min(args[1] as i32 as usize);
            let (dims, periods): (Vec<i32>, Vec<i32>) = grid[..n].iter().copied().unzip();
            unsafe {
                put(args[2], &dims);
                put(args[3], &periods);
                put(args[4], &coords_of(grid, rank)[..n]);
            }
        }
        calls::CART_COORDS => {
            let coords = coords_of(grid, args[1] as i32);
            unsafe { put(args[3], &coords[..n.min(args[2] as i32 as usize)]) };
        }
        calls::CART_RANK => {
            let found = rank_at(grid, unsafe { ints(args[1], n) });
            unsafe { put(args[2], &[found.unwrap_or(abi::table().proc_null)]) };
        }
        calls::CART_SHIFT => {
            let along = |by: i32| {
                let mut coords = coords_of(grid, rank);
                *coords.get_mut(args[1] as i32 as usize)? += by;
                rank_at(grid, &coords)
            };
            let by = args[2] as i32;
            unsafe {
                put(args[3], &[along(-by).unwrap_or(abi::table().proc_null)]);
                put(args[4], &[along(by).unwrap_or(abi::table().proc_null)]);
            }
        }
        _ => return false,
    }
    true
}

/// Where a process stands in a grid, row by row.
fn coords_of(grid: &[(i32, i32)], rank: i32) -> Vec<i32> {
    let mut rest = rank;
    let mut found: Vec<i32> = grid
        .iter()
        .rev()
        .map(|(dim, _)| {
            let at = rest % dim.max(&1);
            rest /= dim.max(&1);
            at
        })
        .collect();
    found.reverse();
    found
}

/// Who stands there, if anybody does.
fn rank_at(grid: &[(i32, i32)], coords: &[i32]) -> Option<i32> {
    grid.iter().zip(coords).try_fold(0, |rank, ((dim, period), at)| {
        let at = if *period != 0 { at.rem_euclid(*dim) } else { *at };
        (0..*dim).contains(&at).then_some(rank * dim + at)
    })
}

pub(crate) unsafe fn ints<'a>(at: usize, n: usize) -> &'a [i32] {
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at as *const i32, n) } }
}

pub(crate) unsafe fn put(at: usize, values: &[i32]) {
    for (idx, value) in values.iter().enumerate() {
        unsafe { *(at as *mut i32).add(idx) = *value };
    }
}

/// MPI_UNWEIGHTED.
pub(crate) fn unweighted() -> usize {
    match abi::table().family {
        Family::OpenMpi => 2,
        Family::Mpich => {
            real::symbol(c"MPI_UNWEIGHTED").map_or(0, |at| unsafe { *(at as *const usize) })
        }
        Family::Standard => 10,
    }
}
