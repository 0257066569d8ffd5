//! Collectives: what a process gives to one is compared before it does, and what it gets is kept
//! for a twin, so that a result is never computed again in another order.

use selvedge_stmr::message::EventKind;

use crate::abi::{self, Family, Status};
use crate::calls;
use crate::comm::Comm;
use crate::memory::For;
use crate::p2p::tested;
use crate::pack::{self, Part, extent_of};
use crate::real::{self, Call};
use crate::request::Request;
use crate::state::State;

/// A collective under way.
pub(crate) struct Running {
    /// Nothing if this replica had left MPI when it began.
    real: Option<usize>,
    /// Of which communicator.
    comm: usize,
    done: bool,
    code: i32,
    gets: Vec<Part>,
    /// Counts that MPI may still look at.
    _arrays: Vec<Vec<i32>>,
}

impl Running {
    /// Whether MPI has it complete.
    pub(crate) fn is_ready(&mut self) -> bool {
        if let (false, Some(real)) = (self.done, &mut self.real) {
            let (done, status) = tested(real);
            (self.done, self.code) = (done, status.error);
        }
        self.done
    }
}

impl State {
    /// Waits for a collective; what it brings is in the program's memory then.
    pub(crate) fn finish_collective(&mut self, mut running: Running) -> Status {
        let (bytes, did) = self.event_for(For::Collective, EventKind::Data, |state| {
            if !running.is_ready() {
                return None;
            }
            if let Some(known) = state.comms.get(&running.comm) {
                state.wake_partners(known);
            }
            let length = running.gets.iter().map(|it| it.count * pack::size_of(it.datatype));
            let mut bytes = state.spare.room(4 + length.sum::<usize>());
            bytes.extend(running.code.to_le_bytes());
            if 1 < state.told.replicas {
                running.gets.iter().for_each(|it| pack::pack(state, *it, &mut bytes));
            }
            Some(bytes)
        });
        take_gets(self, &bytes, did, &running.gets)
    }
}

/// Puts what a twin got where it belongs, unless this process got it itself and it is right.
fn take_gets(state: &mut State, bytes: &[u8], did: bool, gets: &[Part]) -> Status {
    let (code, mut rest) = bytes.split_first_chunk().expect("an event begins with its code");
    let code = i32::from_le_bytes(*code);
    let right = if gets.is_empty() { None } else { state.compare_coming(rest) };
    if let Some(right) = &right {
        rest = right;
    }
    if !did || right.is_some() {
        for part in gets {
            let length = (part.count * pack::size_of(part.datatype)).min(rest.len());
            pack::unpack(state, &rest[..length], *part);
            rest = &rest[length..];
        }
    }
    Status { error: code, ..Status::empty() }
}

pub(crate) fn blocking(state: &mut State, call: Call, args: &[usize]) -> usize {
    // MPICH 5 and Intel MPI add in another order in the form that does not block, and the program's
    // sums are to be those of a run without replicas to the last bit.  Where there are two sides,
    // Open MPI's does not count those who have nothing to say, and their next one never ends.
    let adds_otherwise = abi::table().family != Family::OpenMpi && is_reduction(call);
    if adds_otherwise || state.comm(args[args.len() - 1]).remote.is_some() {
        return as_it_is(state, call, args);
    }
    let running = begin(state, call, args);
    let comm = args[args.len() - 1];
    let code = state.finish_collective(running).error;
    state.error(comm, code, call)
}

pub(crate) fn nonblocking(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (at, args) = args.split_last().expect("each of these calls has arguments");
    let running = begin(state, call, args);
    state.keep_request(Request::Collective(running), *at);
    0
}

fn is_reduction(call: Call) -> bool {
    [
        calls::REDUCE,
        calls::ALLREDUCE,
        calls::REDUCE_SCATTER,
        calls::REDUCE_SCATTER_BLOCK,
        calls::SCAN,
        calls::EXSCAN,
    ]
    .contains(&call)
}

/// Collectives that are made in the form that blocks, beside a thread that waits.  Those of
/// neighbours are: Open MPI 4's forms that do not block take the two sides of a ring of two the
/// other way round.
pub(crate) fn as_it_is(state: &mut State, call: Call, args: &[usize]) -> usize {
    let Prepared { behind, gives, gets, .. } = prepare(state, call, args);
    let mut to = args.to_vec();
    *to.last_mut().expect("each of these calls has arguments") = behind;
    // A thread that is left behind may go on, and must not write where the program computes.
    let room = if is_reduction(call) { room_for(&gives, &gets, args) } else { None };
    let room = room.unwrap_or_default();
    if !room.is_empty() {
        to[1] = room.as_ptr() as usize;
    }
    let (bytes, did) = state.event_for(For::Message, EventKind::Data, |state| {
        let code = state.block(call, &to)? as i32;
        if let (Some(it), false) = (gets.first(), room.is_empty()) {
            let length = it.count * pack::size_of(it.datatype);
            unsafe {
                std::ptr::copy_nonoverlapping(room.as_ptr().cast(), it.at as *mut u8, length)
            };
        }
        let mut bytes = code.to_le_bytes().to_vec();
        gets.iter().for_each(|it| pack::pack(state, *it, &mut bytes));
        Some(bytes)
    });
    if !did {
        std::mem::forget(room);
    }
    let status = take_gets(state, &bytes, did, &gets);
    state.error(args[args.len() - 1], status.error, call)
}

/// Memory for a reduction's result, with what it starts from if that is where it is to be; nothing
/// if there is none, or its type has holes.
fn room_for(gives: &[Part], gets: &[Part], args: &[usize]) -> Option<Vec<u128>> {
    let (given, got) = (gives.first()?, gets.first()?);
    let size = pack::size_of(got.datatype);
    if !pack::is_plain(got.datatype, size) {
        return None;
    }
    let is_in_place = args[0] == abi::table().in_place;
    let count = if is_in_place { given.count.max(got.count) } else { got.count };
    let mut room = vec![0_u128; (count * size).div_ceil(size_of::<u128>())];
    if is_in_place {
        let from = args[1] as *const u8;
        let length = given.count * size;
        unsafe { std::ptr::copy_nonoverlapping(from, room.as_mut_ptr().cast(), length) };
    }
    Some(room)
}

/// A collective whose contribution was compared.
struct Prepared {
    starts: Call,
    behind: usize,
    gives: Vec<Part>,
    gets: Vec<Part>,
}

/// A collective that is started again and again.
pub(crate) fn persistent(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (given, rest) = args.split_at(args.len() - 2);
    let mut arrays = std::mem::take(&mut state.arrays);
    let mut args = given.to_vec();
    for Array { idx, n_words } in arrays_of(state, call, given) {
        let from = args[idx] as *const i32;
        let copy: Vec<i32> =
            (0..n_words).map(|it| unsafe { from.add(it).read_unaligned() }).collect();
        args[idx] = copy.as_ptr() as usize;
        arrays.push(copy);
    }
    let request = Request::Persistent { call, args, arrays, active: None };
    state.keep_request(request, rest[1]);
    abi::SUCCESS as usize
}

/// An argument that is an array, and how many words of 32 bits it has.
struct Array {
    idx: usize,
    n_words: usize,
}

/// Counts, displacements and types that are to stay as they are though the program lets go of them.
fn arrays_of(state: &mut State, call: Call, args: &[usize]) -> Vec<Array> {
    let Some(row) = ROWS.iter().find(|it| it.persistent == call) else { return Vec::new() };
    let comm = args[args.len() - 1];
    let known = state.comm(comm);
    let behind = state.behind(comm);
    let root = |at: usize| match known.remote {
        Some(_) => args[at] as i32 == abi::table().root,
        None => args[at] as i32 == known.rank,
    };
    let n = known.peers().len();
    let handle = abi::handle_words();
    let of = |n: usize, rows: &[(usize, usize)]| -> Vec<Array> {
        rows.iter().map(|(idx, words)| Array { idx: *idx, n_words: n * words }).collect()
    };
    let in_place = args[0] == abi::table().in_place;
    let (sent, far) = (if in_place { 0 } else { n }, 2);
    match row.kind {
        Kind::Gatherv if root(7) => of(n, &[(4, 1), (5, 1)]),
        Kind::Scatterv if root(7) => of(n, &[(1, 1), (2, 1)]),
        Kind::Allgatherv => of(n, &[(4, 1), (5, 1)]),
        Kind::Alltoallv => {
            [of(sent, &[(1, 1), (2, 1)]), of(n, &[(5, 1), (6, 1)])].into_iter().flatten().collect()
        }
        Kind::Alltoallw => {
            let sides =
                [of(sent, &[(1, 1), (2, 1), (3, handle)]), of(n, &[(5, 1), (6, 1), (7, handle)])];
            sides.into_iter().flatten().collect()
        }
        Kind::ReduceScatter => of(known.size as usize, &[(2, 1)]),
        Kind::Neighbors(kind) => {
            let Degrees { sources, targets } = degrees(state, behind, &known);
            let sides = match kind {
                Neighbors::Allgather | Neighbors::Alltoall => [Vec::new(), Vec::new()],
                Neighbors::Allgatherv => [Vec::new(), of(sources, &[(4, 1), (5, 1)])],
                Neighbors::Alltoallv => {
                    [of(targets, &[(1, 1), (2, 1)]), of(sources, &[(5, 1), (6, 1)])]
                }
                Neighbors::Alltoallw => [
                    of(targets, &[(1, 1), (2, far), (3, handle)]),
                    of(sources, &[(5, 1), (6, far), (7, handle)]),
                ],
            };
            sides.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// Compares what this process gives, and starts the collective in the form that does not block.
pub(crate) fn begin(state: &mut State, call: Call, args: &[usize]) -> Running {
    let Prepared { starts, behind, gets, .. } = prepare(state, call, args);
    if state.replica.has_left() {
        let (real, done, code) = (None, false, 0);
        return Running { real, comm: behind, done, code, gets, _arrays: Vec::new() };
    }
    let mut real = 0_usize;
    let mut to = args.to_vec();
    *to.last_mut().expect("each of these calls has arguments") = behind;
    to.push(&raw mut real as usize);
    let code = real::code(starts, &to);
    let arrays = std::mem::take(&mut state.arrays);
    if let Some(known) = state.comms.get(&behind) {
        state.wake_partners(known);
    }
    let (real, done) = (Some(real), code != abi::SUCCESS);
    Running { real, comm: behind, done, code, gets, _arrays: arrays }
}

/// Compares what this process gives.
fn prepare(state: &mut State, call: Call, args: &[usize]) -> Prepared {
    let forms = |it: &Row| [it.blocking, it.starts, it.persistent].contains(&call);
    let Some(&Row { kind, starts, .. }) = ROWS.iter().find(|it| forms(it)) else {
        state.refuse(call)
    };
    let comm = args[args.len() - 1];
    let known = state.comm(comm);
    let behind = state.behind(comm);
    state.mix(&[known.number]);
    let Parts { gives, gets } = match kind {
        Kind::Neighbors(kind) => neighbor_parts(kind, args, degrees(state, behind, &known)),
        kind if known.remote.is_some() => parts_between(kind, args, &known),
        kind => parts(kind, args, &known),
    };
    if gives.is_empty() && matches!(kind, Kind::Barrier) {
        // Whoever comes through one knows that this process came to it, and may change files that
        // it looked at before: so have all its replicas come, also those that no MPI holds back.
        state.compare(Vec::new());
    }
    if !gives.is_empty() {
        state.counts.sends += 1;
        let mut packed = Vec::new();
        let bytes = match gives[..] {
            // What lies as it is sent is compared where it lies.
            [it] if pack::is_plain(it.datatype, pack::size_of(it.datatype)) => unsafe {
                pack::contents(it)
            },
            _ => {
                let length = gives.iter().map(|it| it.count * pack::size_of(it.datatype));
                packed = state.spare.room(length.sum());
                gives.iter().for_each(|it| pack::pack(state, *it, &mut packed));
                &packed
            }
        };
        let length = bytes.len();
        let right = state.compare_leaving(bytes).0.filter(|it| it.len() == length);
        state.spare.keep(packed);
        if let Some(right) = right {
            // This replica erred: what it gives is mended where it lies.
            let mut rest = &right[..];
            for part in &gives {
                let length = part.count * pack::size_of(part.datatype);
                pack::unpack(state, &rest[..length], *part);
                rest = &rest[length..];
            }
        }
    }
    Prepared { starts, behind, gives, gets }
}

/// What a process gives to a collective, and what it gets.
#[derive(Default)]
struct Parts {
    gives: Vec<Part>,
    gets: Vec<Part>,
}

#[derive(Clone, Copy)]
enum Kind {
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
enum Neighbors {
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
}

/// A collective in its three forms.
struct Row {
    blocking: Call,
    starts: Call,
    persistent: Call,
    kind: Kind,
}

const fn row(blocking: Call, starts: Call, persistent: Call, kind: Kind) -> Row {
    Row { blocking, starts, persistent, kind }
}

const ROWS: [Row; 22] = [
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
            Parts { gives: vec![part(from, a[2] * n, a[3])], gets: vec![part(a[1], a[2], a[3])] }
        }
        Kind::Gather | Kind::Gatherv | Kind::Scatter | Kind::Scatterv => rooted(kind, a, comm),
        Kind::Allgather => {
            let gives = match a[0] {
                it if it == abi::table().in_place => nth(a[3], a[4], a[5], rank),
                from => part(from, a[1], a[2]),
            };
            Parts { gives: vec![gives], gets: vec![part(a[3], a[4] * n, a[5])] }
        }
        Kind::Allgatherv => {
            let gets = spread(a[3], a[4], a[5], a[6], n);
            let gives =
                if a[0] == abi::table().in_place { gets[rank] } else { part(a[0], a[1], a[2]) };
            Parts { gives: vec![gives], gets }
        }
        Kind::Alltoall => {
            let gets = part(a[3], a[4] * n, a[5]);
            let gives =
                if a[0] == abi::table().in_place { gets } else { part(a[0], a[1] * n, a[2]) };
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
            Side::Root => gets(part(a[3], a[4] * n, a[5])),
            Side::Beside => Parts::default(),
            Side::Other => gives(part(a[0], a[1], a[2])),
        },
        Kind::Gatherv => match side(7) {
            Side::Root => Parts { gives: vec![], gets: spread(a[3], a[4], a[5], a[6], n) },
            Side::Beside => Parts::default(),
            Side::Other => gives(part(a[0], a[1], a[2])),
        },
        Kind::Scatter => match side(6) {
            Side::Root => gives(part(a[0], a[1] * n, a[2])),
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
        Kind::ReduceScatterBlock => both(part(a[0], a[2] * own, a[3]), part(a[1], a[2], a[3])),
        Kind::Allgather => both(part(a[0], a[1], a[2]), part(a[3], a[4] * n, a[5])),
        Kind::Allgatherv => {
            Parts { gives: vec![part(a[0], a[1], a[2])], gets: spread(a[3], a[4], a[5], a[6], n) }
        }
        Kind::Alltoall => both(part(a[0], a[1] * n, a[2]), part(a[3], a[4] * n, a[5])),
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
#[derive(Clone, Copy)]
pub(crate) struct Degrees {
    pub(crate) sources: usize,
    pub(crate) targets: usize,
}

/// The neighbours of this process in a topology.
pub(crate) fn degrees(state: &State, comm: usize, known: &Comm) -> Degrees {
    let even = |n: usize| Degrees { sources: n, targets: n };
    if let Some(made) = &known.made {
        return even(made.n_neighbors().unwrap_or_else(|| {
            let (rank, set) = (state.told.rank, state.told.set);
            real::fail(&format!("rank {rank} set {set}: neighbours in a graph made after a death"))
        }));
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
            gets: vec![part(a[3], a[4] * sources, a[5])],
        },
        Neighbors::Allgatherv => Parts {
            gives: vec![part(a[0], a[1], a[2])],
            gets: spread(a[3], a[4], a[5], a[6], sources),
        },
        Neighbors::Alltoall => Parts {
            gives: vec![part(a[0], a[1] * targets, a[2])],
            gets: vec![part(a[3], a[4] * sources, a[5])],
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
            let gets = if is_root { vec![part(a[3], a[4] * n, a[5])] } else { vec![] };
            Parts { gives: vec![gives], gets }
        }
        Kind::Gatherv => {
            let gets = if is_root { spread(a[3], a[4], a[5], a[6], n) } else { vec![] };
            let gives =
                if a[0] == abi::table().in_place { gets[rank] } else { part(a[0], a[1], a[2]) };
            Parts { gives: vec![gives], gets }
        }
        Kind::Scatter => {
            let gives = if is_root { vec![part(a[0], a[1] * n, a[2])] } else { vec![] };
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
