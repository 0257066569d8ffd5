//! Graphs whose edges any process may name (`MPI_Dist_graph_create`).
//!
//! Who are neighbours is the same in all sets, but MPI has them in the order in which its own
//! messages came.  Here each edge goes to both its ends in a collective of the program's, so that
//! all replicas have one order.

use crate::calls;
use crate::collective;
use crate::comm;
use crate::real::Call;
use crate::state::State;
use crate::topology::{ints, unweighted};

/// An edge that a process named.
#[derive(Clone, Copy)]
struct Edge {
    from: i32,
    to: i32,
    weight: i32,
}

/// The edges that this process names in MPI_Dist_graph_create, unless MPI refuses them.
fn named_edges(args: &[usize], size: i32) -> Option<Vec<Edge>> {
    let n = usize::try_from(args[1] as i32).ok()?;
    let is_known = |it: &i32| (0..size).contains(it);
    let (sources, degrees) = unsafe { (listed(args[2], n)?, listed(args[3], n)?) };
    let degrees: Vec<usize> =
        degrees.iter().map(|it| usize::try_from(*it).ok()).collect::<Option<_>>()?;
    let n_edges = degrees.iter().sum();
    let targets = unsafe { listed(args[4], n_edges)? };
    let weights = match args[5] {
        it if it == unweighted() => None,
        it => Some(unsafe { listed(it, n_edges)? }),
    };
    let sources = sources.iter().zip(degrees).flat_map(|it| std::iter::repeat_n(*it.0, it.1));
    let edges: Vec<Edge> = sources
        .zip(targets)
        .enumerate()
        .map(|(idx, (from, to))| Edge { from, to: *to, weight: weights.map_or(0, |it| it[idx]) })
        .collect();
    let are_right = edges.iter().all(|it| is_known(&it.from) && is_known(&it.to) && 0 <= it.weight);
    are_right.then_some(edges)
}

/// An array of the program's, if there is one.
unsafe fn listed<'a>(at: usize, n: usize) -> Option<&'a [i32]> {
    (n == 0 || at != 0).then(|| unsafe { ints(at, n) })
}

/// MPI_Dist_graph_create, as MPI_Dist_graph_create_adjacent.  Ranks stay what they are: where MPI
/// moves them, it need not move them alike in all sets.
pub(crate) fn create(state: &mut State, call: Call, args: &[usize]) -> usize {
    let known = state.comm(args[0]);
    let edges = named_edges(args, known.size).filter(|_| known.remote.is_none());
    let Some(edges) = edges else { return comm::create(state, call, args) };
    let mut rows = vec![Vec::new(); known.size as usize];
    for Edge { from, to, weight } in edges {
        rows[from as usize].extend([1, to, weight]);
        rows[to as usize].extend([0, from, weight]);
    }
    let words = exchange(state, args[0], &rows);
    let is_weighted = args[5] != unweighted();
    let [sources, targets] = [0, 1].map(|which| {
        let mine = || words.chunks_exact(3).filter(move |it| it[0] == which);
        let ranks: Vec<i32> = mine().map(|it| it[1]).collect();
        // Without neighbours too it is an address.
        let mut weights: Vec<i32> = mine().map(|it| it[2]).collect();
        weights.push(0);
        (ranks, weights)
    });
    let end = |(ranks, weights): &(Vec<i32>, Vec<i32>)| {
        let weights = if is_weighted { weights.as_ptr() as usize } else { args[5] };
        [ranks.len(), ranks.as_ptr() as usize, weights]
    };
    let adjacent =
        [&[args[0]], &end(&sources)[..], &end(&targets), &[args[6], 0, args[8]]].concat();
    comm::create(state, calls::DIST_GRAPH_CREATE_ADJACENT, &adjacent)
}

/// Gives each process its row; returns what this one got, in the order of who gave it.
fn exchange(state: &mut State, comm: usize, rows: &[Vec<i32>]) -> Vec<i32> {
    let int = state.handles().int;
    let given: Vec<i32> = rows.iter().map(|it| it.len() as i32).collect();
    let mut got = vec![0_i32; rows.len()];
    let (from, to) = (given.as_ptr() as usize, got.as_mut_ptr() as usize);
    collective::blocking(state, calls::ALLTOALL, &[from, 1, int, to, 1, int, comm]);
    let begins = |counts: &[i32]| -> Vec<i32> {
        let mut end = 0;
        counts.iter().map(|it| (end, end += it).0).collect()
    };
    let (given_at, got_at) = (begins(&given), begins(&got));
    let sent = rows.concat();
    let mut received = vec![0_i32; got.iter().sum::<i32>() as usize];
    let [from, given_at, to, got_at] = [
        sent.as_ptr() as usize,
        given_at.as_ptr() as usize,
        received.as_mut_ptr() as usize,
        got_at.as_ptr() as usize,
    ];
    let (given, got) = (given.as_ptr() as usize, got.as_ptr() as usize);
    let args = [from, given, given_at, int, to, got, got_at, int, comm];
    collective::blocking(state, calls::ALLTOALLV, &args);
    received
}
