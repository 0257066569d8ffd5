//! What a process gives to a collective and what it gets, by its arguments.

use crate::abi;
use crate::calls;
use crate::comm::Comm;
use crate::pack::{Part, extent_of};
use crate::real::{self, Call};
use crate::state::State;

/// What a process gives to a collective, and what it gets.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) gives: Vec<Part>,
    pub(crate) gets: Vec<Part>,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Exscan,
    Neighbors(Neighbors),
}

/// Those among the neighbours in a topology.
#[derive(Clone, Copy)]
pub(crate) enum Neighbors {
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
}

/// A collective in its three forms.
pub(crate) struct Row {
    pub(crate) blocking: Call,
    pub(crate) starts: Call,
    pub(crate) persistent: Call,
    pub(crate) kind: Kind,
}

const fn row(blocking: Call, starts: Call, persistent: Call, kind: Kind) -> Row {
    Row { blocking, starts, persistent, kind }
}

/// All of them.
pub(crate) const ROWS: [Row; 22] = [
    row(calls::BARRIER, calls::IBARRIER, calls::BARRIER_INIT, Kind::Barrier),
    row(calls::BCAST, calls::IBCAST, calls::BCAST_INIT, Kind::Bcast),
    row(calls::REDUCE, calls::IREDUCE, calls::REDUCE_INIT, Kind::Reduce),
    row(calls::ALLREDUCE, calls::IALLREDUCE, calls::ALLREDUCE_INIT, Kind::Allreduce),
    row(calls::GATHER, calls::IGATHER, calls::GATHER_INIT, Kind::Gather),
    row(calls::GATHERV, calls::IGATHERV, calls::GATHERV_INIT, Kind::Gatherv),
    row(calls::SCATTER, calls::ISCATTER, calls::SCATTER_INIT, Kind::Scatter),
    row(calls::SCATTERV, calls::ISCATTERV, calls::SCATTERV_INIT, Kind::Scatterv),
    row(calls::ALLGATHER, calls::IALLGATHER, calls::ALLGATHER_INIT, Kind::Allgather),
    row(calls::ALLGATHERV, calls::IALLGATHERV, calls::ALLGATHERV_INIT, Kind::Allgatherv),
    row(calls::ALLTOALL, calls::IALLTOALL, calls::ALLTOALL_INIT, Kind::Alltoall),
    row(calls::ALLTOALLV, calls::IALLTOALLV, calls::ALLTOALLV_INIT, Kind::Alltoallv),
    row(calls::ALLTOALLW, calls::IALLTOALLW, calls::ALLTOALLW_INIT, Kind::Alltoallw),
    row(
        calls::REDUCE_SCATTER,
        calls::IREDUCE_SCATTER,
        calls::REDUCE_SCATTER_INIT,
        Kind::ReduceScatter,
    ),
    row(
        calls::REDUCE_SCATTER_BLOCK,
        calls::IREDUCE_SCATTER_BLOCK,
        calls::REDUCE_SCATTER_BLOCK_INIT,
        Kind::ReduceScatterBlock,
    ),
    row(calls::SCAN, calls::ISCAN, calls::SCAN_INIT, Kind::Scan),
    row(calls::EXSCAN, calls::IEXSCAN, calls::EXSCAN_INIT, Kind::Exscan),
    row(
        calls::NEIGHBOR_ALLGATHER,
        calls::INEIGHBOR_ALLGATHER,
        calls::NEIGHBOR_ALLGATHER_INIT,
        Kind::Neighbors(Neighbors::Allgather),
    ),
    row(
        calls::NEIGHBOR_ALLGATHERV,
        calls::INEIGHBOR_ALLGATHERV,
        calls::NEIGHBOR_ALLGATHERV_INIT,
        Kind::Neighbors(Neighbors::Allgatherv),
    ),
    row(
        calls::NEIGHBOR_ALLTOALL,
        calls::INEIGHBOR_ALLTOALL,
        calls::NEIGHBOR_ALLTOALL_INIT,
        Kind::Neighbors(Neighbors::Alltoall),
    ),
    row(
        calls::NEIGHBOR_ALLTOALLV,
        calls::INEIGHBOR_ALLTOALLV,
        calls::NEIGHBOR_ALLTOALLV_INIT,
        Kind::Neighbors(Neighbors::Alltoallv),
    ),
    row(
        calls::NEIGHBOR_ALLTOALLW,
        calls::INEIGHBOR_ALLTOALLW,
        calls::NEIGHBOR_ALLTOALLW_INIT,
        Kind::Neighbors(Neighbors::Alltoallw),
    ),
];

/// Arrays of C ints that the program passes.
#[derive(Clone, Copy)]
struct Ints(usize);

impl Ints {
    fn at(self, idx: usize) -> isize {
        unsafe { *(self.0 as *const i32).add(idx) as isize }
    }
}

fn part(at: usize, count: usize, datatype: usize) -> Part {
    Part { at, count: count as i32 as usize, datatype }
}

/// `n` parts of so many each, one behind the other.
fn times(at: usize, each: usize, n: usize, datatype: usize) -> Part {
    let one = part(at, each, datatype);
    // What is below 0 stays so, and is refused.
    Part { count: one.count.wrapping_mul(n), ..one }
}

/// One part for each process, at displacements counted in extents.
fn spread(at: usize, counts: usize, displacements: usize, datatype: usize, n: usize) -> Vec<Part> {
    let extent = extent_of(datatype);
    let one = |idx: usize| Part {
        at: at.wrapping_add_signed(Ints(displacements).at(idx) * extent),
        count: Ints(counts).at(idx) as usize,
        datatype,
    };
    (0..n).map(one).collect()
}

/// One part for each process, at displacements in bytes and each of its own type.
fn spread_types(at: usize, counts: usize, offsets: usize, datatypes: usize, n: usize) -> Vec<Part> {
    let one = |idx: usize| Part {
        at: at.wrapping_add_signed(Ints(offsets).at(idx)),
        count: Ints(counts).at(idx) as usize,
        datatype: unsafe { abi::handle_at(datatypes, idx) },
    };
    (0..n).map(one).collect()
}

/// The part of `idx` in a row of equal parts.
fn nth(at: usize, count: usize, datatype: usize, idx: usize) -> Part {
    let step = extent_of(datatype) * (count as i32 as isize);
    part(at.wrapping_add_signed(step * idx as isize), count, datatype)
}

/// What a process gives and gets.
pub(crate) fn of(state: &State, kind: Kind, a: &[usize], comm: &Comm) -> Parts {
    match kind {
        Kind::Neighbors(kind) => {
            neighbor_parts(kind, a, degrees(state.behind(a[a.len() - 1]), comm))
        }
        kind if comm.remote.is_some() => parts_between(kind, a, comm),
        kind => parts(kind, a, comm),
    }
}

fn parts(kind: Kind, a: &[usize], comm: &Comm) -> Parts {
    let (rank, n) = (comm.rank as usize, comm.size as usize);
    match kind {
        Kind::Barrier => Parts::default(),
        Kind::Bcast => {
            let it = vec![part(a[0], a[1], a[2])];
            if a[3] as i32 == comm.rank {
                Parts { gives: it, gets: vec![] }
            } else {
                Parts { gives: vec![], gets: it }
            }
        }
        Kind::Reduce => {
            let is_root = a[5] as i32 == comm.rank;
            let from = if a[0] == abi::table().in_place { a[1] } else { a[0] };
            let gets = if is_root { vec![part(a[1], a[2], a[3])] } else { vec![] };
            Parts { gives: vec![part(from, a[2], a[3])], gets }
        }
        Kind::Allreduce | Kind::Scan | Kind::Exscan => {
            let from = if a[0] == abi::table().in_place { a[1] } else { a[0] };
            let nothing = matches!(kind, Kind::Exscan) && rank == 0;
            let gets = if nothing { vec![] } else { vec![part(a[1], a[2], a[3])] };
            Parts { gives: vec![part(from, a[2], a[3])], gets }
        }
        Kind::ReduceScatter => {
            let all: isize = (0..n).map(|it| Ints(a[2]).at(it)).sum();
            let from = if a[0] == abi::table().in_place { a[1] } else { a[0] };
            let own = Ints(a[2]).at(rank) as usize;
            Parts { gives: vec![part(from, all as usize, a[3])], gets: vec![part(a[1], own, a[3])] }
        }
        Kind::ReduceScatterBlock => {
            let from = if a[0] == abi::table().in_place { a[1] } else { a[0] };
            Parts { gives: vec![times(from, a[2], n, a[3])], gets: vec![part(a[1], a[2], a[3])] }
        }
        Kind::Gather | Kind::Gatherv | Kind::Scatter | Kind::Scatterv => rooted(kind, a, comm),
        Kind::Allgather => {
            let gives = match a[0] {
                it if it == abi::table().in_place => nth(a[3], a[4], a[5], rank),
                from => part(from, a[1], a[2]),
            };
            Parts { gives: vec![gives], gets: vec![times(a[3], a[4], n, a[5])] }
        }
        Kind::Allgatherv => {
            let gets = spread(a[3], a[4], a[5], a[6], n);
            let gives =
                if a[0] == abi::table().in_place { gets[rank] } else { part(a[0], a[1], a[2]) };
            Parts { gives: vec![gives], gets }
        }
        Kind::Alltoall => {
            let gets = times(a[3], a[4], n, a[5]);
            let gives =
                if a[0] == abi::table().in_place { gets } else { times(a[0], a[1], n, a[2]) };
            Parts { gives: vec![gives], gets: vec![gets] }
        }
        Kind::Alltoallv => {
            let gets = spread(a[4], a[5], a[6], a[7], n);
            let in_place = a[0] == abi::table().in_place;
            let gives = if in_place { gets.clone() } else { spread(a[0], a[1], a[2], a[3], n) };
            Parts { gives, gets }
        }
        Kind::Alltoallw => {
            let gets = spread_types(a[4], a[5], a[6], a[7], n);
            let in_place = a[0] == abi::table().in_place;
            let gives =
                if in_place { gets.clone() } else { spread_types(a[0], a[1], a[2], a[3], n) };
            Parts { gives, gets }
        }
        Kind::Neighbors(_) => unreachable!("they go by their neighbours"),
    }
}

/// The same where a collective has two sides: each gets what the other gives.
fn parts_between(kind: Kind, a: &[usize], comm: &Comm) -> Parts {
    let (own, n) = (comm.size as usize, comm.peers().len());
    let gives = |it: Part| Parts { gives: vec![it], gets: vec![] };
    let gets = |it: Part| Parts { gives: vec![], gets: vec![it] };
    let both = |give: Part, get: Part| Parts { gives: vec![give], gets: vec![get] };
    // The one process at one side, those beside it, and those at the other side.
    let side = |root: usize| match a[root] as i32 {
        it if it == abi::table().root => Side::Root,
        it if it == abi::table().proc_null => Side::Beside,
        _ => Side::Other,
    };
    match kind {
        Kind::Barrier | Kind::Neighbors(_) => Parts::default(),
        Kind::Bcast => match side(3) {
            Side::Root => gives(part(a[0], a[1], a[2])),
            Side::Beside => Parts::default(),
            Side::Other => gets(part(a[0], a[1], a[2])),
        },
        Kind::Reduce => match side(5) {
            Side::Root => gets(part(a[1], a[2], a[3])),
            Side::Beside => Parts::default(),
            Side::Other => gives(part(a[0], a[2], a[3])),
        },
        Kind::Gather => match side(6) {
            Side::Root => gets(times(a[3], a[4], n, a[5])),
            Side::Beside => Parts::default(),
            Side::Other => gives(part(a[0], a[1], a[2])),
        },
        Kind::Gatherv => match side(7) {
            Side::Root => Parts { gives: vec![], gets: spread(a[3], a[4], a[5], a[6], n) },
            Side::Beside => Parts::default(),
            Side::Other => gives(part(a[0], a[1], a[2])),
        },
        Kind::Scatter => match side(6) {
            Side::Root => gives(times(a[0], a[1], n, a[2])),
            Side::Beside => Parts::default(),
            Side::Other => gets(part(a[3], a[4], a[5])),
        },
        Kind::Scatterv => match side(7) {
            Side::Root => Parts { gives: spread(a[0], a[1], a[2], a[3], n), gets: vec![] },
            Side::Beside => Parts::default(),
            Side::Other => gets(part(a[4], a[5], a[6])),
        },
        Kind::Allreduce | Kind::Scan | Kind::Exscan => {
            both(part(a[0], a[2], a[3]), part(a[1], a[2], a[3]))
        }
        Kind::ReduceScatter => {
            let all: isize = (0..own).map(|it| Ints(a[2]).at(it)).sum();
            let one = Ints(a[2]).at(comm.rank as usize) as usize;
            both(part(a[0], all as usize, a[3]), part(a[1], one, a[3]))
        }
        Kind::ReduceScatterBlock => both(times(a[0], a[2], own, a[3]), part(a[1], a[2], a[3])),
        Kind::Allgather => both(part(a[0], a[1], a[2]), times(a[3], a[4], n, a[5])),
        Kind::Allgatherv => {
            Parts { gives: vec![part(a[0], a[1], a[2])], gets: spread(a[3], a[4], a[5], a[6], n) }
        }
        Kind::Alltoall => both(times(a[0], a[1], n, a[2]), times(a[3], a[4], n, a[5])),
        Kind::Alltoallv => Parts {
            gives: spread(a[0], a[1], a[2], a[3], n),
            gets: spread(a[4], a[5], a[6], a[7], n),
        },
        Kind::Alltoallw => Parts {
            gives: spread_types(a[0], a[1], a[2], a[3], n),
            gets: spread_types(a[4], a[5], a[6], a[7], n),
        },
    }
}

/// Where a process stands in a collective of two sides with one process at one of them.
enum Side {
    Root,
    Beside,
    Other,
}

/// How many neighbours a process gets from and gives to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Degrees {
    pub(crate) sources: usize,
    pub(crate) targets: usize,
}

/// The neighbours of this process in a topology.
pub(crate) fn degrees(comm: usize, known: &Comm) -> Degrees {
    let even = |n: usize| Degrees { sources: n, targets: n };
    if let Some(made) = &known.made {
        return made.topology.degrees(known.rank).unwrap_or_default();
    }
    let mut kind = 0_i32;
    real::call(calls::TOPO_TEST, &[comm, &raw mut kind as usize]);
    let mut n = [0_i32; 3];
    let at = n.as_mut_ptr() as usize;
    match kind {
        it if it == abi::table().cart => {
            real::call(calls::CARTDIM_GET, &[comm, at]);
            even(2 * n[0] as usize)
        }
        it if it == abi::table().graph => {
            real::call(calls::GRAPH_NEIGHBORS_COUNT, &[comm, known.rank as usize, at]);
            even(n[0] as usize)
        }
        _ => {
            real::call(calls::DIST_GRAPH_NEIGHBORS_COUNT, &[comm, at, at + 4, at + 8]);
            Degrees { sources: n[0] as usize, targets: n[1] as usize }
        }
    }
}

fn neighbor_parts(kind: Neighbors, a: &[usize], degrees: Degrees) -> Parts {
    let Degrees { sources, targets } = degrees;
    match kind {
        Neighbors::Allgather => Parts {
            gives: vec![part(a[0], a[1], a[2])],
            gets: vec![times(a[3], a[4], sources, a[5])],
        },
        Neighbors::Allgatherv => Parts {
            gives: vec![part(a[0], a[1], a[2])],
            gets: spread(a[3], a[4], a[5], a[6], sources),
        },
        Neighbors::Alltoall => Parts {
            gives: vec![times(a[0], a[1], targets, a[2])],
            gets: vec![times(a[3], a[4], sources, a[5])],
        },
        Neighbors::Alltoallv => Parts {
            gives: spread(a[0], a[1], a[2], a[3], targets),
            gets: spread(a[4], a[5], a[6], a[7], sources),
        },
        // Displacements are in bytes here, and of the width of an address.
        Neighbors::Alltoallw => Parts {
            gives: spread_far(a[0], a[1], a[2], a[3], targets),
            gets: spread_far(a[4], a[5], a[6], a[7], sources),
        },
    }
}

/// One part for each neighbour, at displacements in bytes that are addresses wide.
fn spread_far(at: usize, counts: usize, offsets: usize, datatypes: usize, n: usize) -> Vec<Part> {
    let one = |idx: usize| Part {
        at: at.wrapping_add_signed(unsafe { *(offsets as *const isize).add(idx) }),
        count: Ints(counts).at(idx) as usize,
        datatype: unsafe { abi::handle_at(datatypes, idx) },
    };
    (0..n).map(one).collect()
}

/// Collectives with one process at one side.
fn rooted(kind: Kind, a: &[usize], comm: &Comm) -> Parts {
    let (rank, n) = (comm.rank as usize, comm.size as usize);
    let root = a[if matches!(kind, Kind::Gatherv | Kind::Scatterv) { 7 } else { 6 }] as i32;
    let is_root = root == comm.rank;
    match kind {
        Kind::Gather => {
            let gives = match a[0] {
                it if it == abi::table().in_place => nth(a[3], a[4], a[5], rank),
                from => part(from, a[1], a[2]),
            };
            let gets = if is_root { vec![times(a[3], a[4], n, a[5])] } else { vec![] };
            Parts { gives: vec![gives], gets }
        }
        Kind::Gatherv => {
            let gets = if is_root { spread(a[3], a[4], a[5], a[6], n) } else { vec![] };
            let gives =
                if a[0] == abi::table().in_place { gets[rank] } else { part(a[0], a[1], a[2]) };
            Parts { gives: vec![gives], gets }
        }
        Kind::Scatter => {
            let gives = if is_root { vec![times(a[0], a[1], n, a[2])] } else { vec![] };
            let in_place = a[3] == abi::table().in_place;
            let gets = if in_place { vec![] } else { vec![part(a[3], a[4], a[5])] };
            Parts { gives, gets }
        }
        _ => {
            let gives = if is_root { spread(a[0], a[1], a[2], a[3], n) } else { vec![] };
            let in_place = a[4] == abi::table().in_place;
            let gets = if in_place { vec![] } else { vec![part(a[4], a[5], a[6])] };
            Parts { gives, gets }
        }
    }
}
