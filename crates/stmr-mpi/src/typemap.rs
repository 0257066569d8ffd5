//! Where the bytes of a type stand, read from how it was made (MPI 4.1 §5.1.13).
//!
//! A type is looked through down to MPI's own.  What that takes follows from the runs of bytes that
//! there are, and not from the memory that they span: a block of an array of terabytes is as cheap
//! as one of kilobytes.

use std::sync::OnceLock;

use selvedge_stmr::access::Layout;

use crate::abi::{self, Family};
use crate::calls;
use crate::pack::{self, Part};
use crate::real;
use crate::state::State;

/// What is said of a type whose runs are not found, or are more than are kept.
pub(crate) const NOT_SERVED: &str =
    "a type of more than 67108864 pieces of memory, or of which MPI does not say how it was made,";

const RUNS_MAX: usize = 1 << 26;

/// A type of MPI's own, or one that MPI does not tell of, may have so many bytes from its first to
/// its last: it is looked at byte by byte.
const SPAN_MAX: usize = 1 << 20;

/// Where some bytes begin, and how many there are in a row.
pub(crate) type Run = (i64, u64);

/// Where one of a type has its bytes, in the order in which they are sent; nothing for a type that
/// is not served.
pub(crate) fn runs_of(state: &State, datatype: usize) -> Option<Vec<Run>> {
    let made = Made::of(datatype);
    let n = &made.numbers;
    let number = |idx: usize| n.get(idx).copied().unwrap_or(0);
    let count = number(0).max(0) as usize;
    let places = |from: usize, step: i64| (0..count).map(move |idx| number(from + idx) * step);
    let lengths = || (0..count).map(|idx| number(1 + idx));
    let inner = || {
        let inner = *made.types.first()?;
        Some((runs_of(state, inner)?, pack::extent_of(inner) as i64))
    };
    let mut found = Runs::default();
    match made.combiner {
        Combiner::Named | Combiner::Other => found.add(&probed(state, datatype)?, 0, 1, 0)?,
        Combiner::Dup | Combiner::Resized => return Some(inner()?.0),
        Combiner::Contiguous => {
            let (runs, extent) = inner()?;
            found.add(&runs, 0, number(0), extent)?;
        }
        Combiner::Vector | Combiner::Hvector => {
            let (runs, extent) = inner()?;
            let stride = number(2) * if made.combiner == Combiner::Vector { extent } else { 1 };
            let mut block = Runs::default();
            block.add(&runs, 0, number(1), extent)?;
            found.add(&block.0, 0, number(0), stride)?;
        }
        Combiner::Indexed | Combiner::Hindexed => {
            let (runs, extent) = inner()?;
            let step = if made.combiner == Combiner::Indexed { extent } else { 1 };
            for (at, length) in places(1 + count, step).zip(lengths()) {
                found.add(&runs, at, length, extent)?;
            }
        }
        Combiner::IndexedBlock | Combiner::HindexedBlock => {
            let (runs, extent) = inner()?;
            let step = if made.combiner == Combiner::IndexedBlock { extent } else { 1 };
            for at in places(2, step) {
                found.add(&runs, at, number(1), extent)?;
            }
        }
        Combiner::Struct => {
            for ((at, length), inner) in places(1 + count, 1).zip(lengths()).zip(&made.types) {
                found.add(&runs_of(state, *inner)?, at, length, pack::extent_of(*inner) as i64)?;
            }
        }
        Combiner::Subarray | Combiner::Darray => {
            let (runs, extent) = inner()?;
            let axes = if made.combiner == Combiner::Subarray { subarray(n)? } else { darray(n)? };
            found = in_array(runs, extent, &axes)?;
        }
    }
    Some(found.0)
}

/// Runs in their order; of those that touch, one.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    fn push(&mut self, (at, length): Run) {
        match self.0.last_mut() {
            _ if length == 0 => {}
            Some((begin, known)) if *begin + *known as i64 == at => *known += length,
            _ => self.0.push((at, length)),
        }
    }

    /// Adds `n` of what has these runs, from `at` on, each `step` bytes behind the one before;
    /// nothing if that is too much.
    fn add(&mut self, runs: &[Run], at: i64, n: i64, step: i64) -> Option<()> {
        if let [(begin, length)] = *runs
            && (length as i64 == step || n == 1)
        {
            self.push((at + begin, length * n.max(0) as u64));
            return Some(());
        }
        let times = if runs.is_empty() { 0 } else { n };
        for idx in 0..times {
            if RUNS_MAX < self.0.len() {
                return None;
            }
            runs.iter().for_each(|(begin, length)| self.push((at + idx * step + begin, *length)));
        }
        Some(())
    }
}

/// How many there are along an axis of an array, and which of them are meant: from where on, and
/// how many.
struct Axis {
    n: i64,
    parts: Vec<(i64, i64)>,
}

/// A part of an array whose elements have these runs; of its axes the first is the one along which
/// elements lie side by side.
fn in_array(mut runs: Vec<Run>, extent: i64, axes: &[Axis]) -> Option<Runs> {
    let mut step = extent;
    for axis in axes {
        let mut found = Runs::default();
        for (start, length) in &axis.parts {
            found.add(&runs, start * step, *length, step)?;
        }
        runs = found.0;
        step *= axis.n;
    }
    Some(Runs(runs))
}

/// Axes as Fortran has them, the first first.
fn in_order(mut axes: Vec<Axis>, order: i64) -> Vec<Axis> {
    let is_fortrans = order == i64::from(kinds().order_fortran);
    if !is_fortrans {
        axes.reverse();
    }
    axes
}

/// The numbers of MPI_Type_create_subarray: axes, sizes, sizes of the part, starts, order.
fn subarray(numbers: &[i64]) -> Option<Vec<Axis>> {
    let n = usize::try_from(*numbers.first()?).ok()?;
    let row = |which: usize| numbers.get(1 + which * n..1 + (which + 1) * n);
    let axis =
        |idx: usize| Some(Axis { n: row(0)?[idx], parts: vec![(row(2)?[idx], row(1)?[idx])] });
    let axes = (0..n).map(axis).collect::<Option<_>>()?;
    Some(in_order(axes, *numbers.get(1 + 3 * n)?))
}

/// The numbers of MPI_Type_create_darray: processes, which of them, axes, sizes, how each is
/// distributed, by how many, processes along each, order.
fn darray(numbers: &[i64]) -> Option<Vec<Axis>> {
    let n = usize::try_from(*numbers.get(2)?).ok()?;
    let row = |which: usize| numbers.get(3 + which * n..3 + (which + 1) * n);
    let (sizes, ways, by, processes) = (row(0)?, row(1)?, row(2)?, row(3)?);
    // Processes are in C's order, whatever that of the array is.
    let mut rest = *numbers.get(1)?;
    let mut axes = Vec::new();
    for idx in (0..n).rev() {
        let all = processes[idx].max(1);
        let own = rest % all;
        rest /= all;
        axes.push(Axis { n: sizes[idx], parts: parts(sizes[idx], ways[idx], by[idx], [own, all]) });
    }
    axes.reverse();
    Some(in_order(axes, *numbers.get(3 + 4 * n)?))
}

/// Which of `n` along an axis are those of process `own` of `all`.
fn parts(n: i64, way: i64, by: i64, [own, all]: [i64; 2]) -> Vec<(i64, i64)> {
    let Kinds { block, cyclic, by_itself, .. } = kinds();
    let block_length = if way == i64::from(*cyclic) { 1 } else { (n + all - 1) / all };
    let length = if by == i64::from(*by_itself) { block_length } else { by }.max(1);
    let part = |start: i64| (start, length.min(n - start));
    match way {
        it if it == i64::from(*block) => {
            let start = own * length;
            if start < n { vec![part(start)] } else { vec![] }
        }
        it if it == i64::from(*cyclic) => {
            let step = usize::try_from(length * all).unwrap_or(1).max(1);
            (own * length..n).step_by(step).map(part).collect()
        }
        _ => vec![(0, n)],
    }
}

/// The same by what MPI packs: memory in which each byte holds a part of its own place.
fn probed(state: &State, datatype: usize) -> Option<Vec<Run>> {
    let size = pack::size_of(datatype);
    let (low, span) = pack::true_extent(datatype);
    let span = span.max(0) as usize;
    if size == span || size == 0 {
        return Some(vec![(low as i64, size as u64)]);
    }
    if SPAN_MAX < span {
        return None;
    }
    let mut places = vec![0_i64; size];
    let mut memory = vec![0_u8; span];
    let mut shift = 0;
    while shift == 0 || span >> shift != 0 {
        memory.iter_mut().enumerate().for_each(|(at, it)| *it = (at >> shift) as u8);
        let at = (memory.as_ptr() as usize).wrapping_sub_signed(low);
        let mut packed = Vec::with_capacity(size);
        pack::pack_as_it_is(state, Part { at, count: 1, datatype }, &mut packed);
        places.iter_mut().zip(packed).for_each(|(place, it)| *place |= i64::from(it) << shift);
        shift += 8;
    }
    let places = places.into_iter().map(|it| it + low as i64);
    Some(Layout::of_places(0, places).runs)
}

/// By which call a type was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combiner {
    Named,
    Dup,
    Contiguous,
    Vector,
    Hvector,
    Indexed,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    Struct,
    Subarray,
    Darray,
    Resized,
    /// By one that gives MPI's own, or that is not known here.
    Other,
}

/// What MPIs call these, from MPI_COMBINER_NAMED on, and the ways to distribute an array.
struct Kinds {
    combiners: &'static [Combiner],
    order_fortran: i32,
    block: i32,
    cyclic: i32,
    /// As many as fit.
    by_itself: i32,
}

use Combiner::*;

/// Open MPI's and MPICH's; some stand twice, for calls of MPI 1.
const OLD: &[Combiner] = &[
    Named,
    Dup,
    Contiguous,
    Vector,
    Hvector,
    Hvector,
    Indexed,
    Hindexed,
    Hindexed,
    IndexedBlock,
    Struct,
    Struct,
    Subarray,
    Darray,
    Other,
    Other,
    Other,
    Resized,
    HindexedBlock,
];

/// The standard ABI's (MPI 5.0, §A.1.1).
const STANDARD: &[Combiner] = &[
    Named,
    Dup,
    Contiguous,
    Vector,
    Hvector,
    Indexed,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    Struct,
    Subarray,
    Darray,
    Other,
    Other,
    Other,
    Resized,
];

fn kinds() -> &'static Kinds {
    match abi::table().family {
        Family::OpenMpi => {
            &Kinds { combiners: OLD, order_fortran: 1, block: 0, cyclic: 1, by_itself: -1 }
        }
        Family::Mpich => {
            const BY_ITSELF: i32 = -49_767;
            &Kinds {
                combiners: OLD,
                order_fortran: 57,
                block: 121,
                cyclic: 122,
                by_itself: BY_ITSELF,
            }
        }
        Family::Standard => {
            &Kinds { combiners: STANDARD, order_fortran: 15, block: 17, cyclic: 18, by_itself: 19 }
        }
    }
}

/// How a type was made.
struct Made {
    combiner: Combiner,
    /// What its call was given, in the call's order.
    numbers: Vec<i64>,
    /// Of which types; they are let go of with this.
    types: Vec<usize>,
}

impl Made {
    fn of(datatype: usize) -> Self {
        let ([n_ints, n_addresses, n_counts, n_types], combiner) = envelope(datatype);
        let kind = usize::try_from(combiner - abi::table().combiner_named).ok();
        let combiner =
            kind.and_then(|it| kinds().combiners.get(it)).copied().unwrap_or(Combiner::Other);
        let mut this = Self { combiner, numbers: Vec::new(), types: Vec::new() };
        if combiner == Combiner::Named {
            return this;
        }
        let (mut ints, mut addresses) = (vec![0_i32; n_ints], vec![0_i64; n_addresses]);
        let (mut counts, mut types) = (vec![0_i64; n_counts], vec![0_usize; n_types]);
        let [ints_at, addresses_at] = [ints.as_mut_ptr() as usize, addresses.as_mut_ptr() as usize];
        let [counts_at, types_at] = [counts.as_mut_ptr() as usize, types.as_mut_ptr() as usize];
        let all = [datatype, n_ints, n_addresses, n_counts, n_types];
        if has_large() {
            let to = [ints_at, addresses_at, counts_at, types_at];
            real::call(calls::TYPE_GET_CONTENTS_C, &[&all[..], &to].concat());
        } else {
            let numbers = [datatype, n_ints, n_addresses, n_types];
            let to = [ints_at, addresses_at, types_at];
            real::call(calls::TYPE_GET_CONTENTS, &[&numbers[..], &to].concat());
        }
        // Numbers that may be large are in a row of their own, where the type was made by a call
        // with such.
        let first = match combiner {
            _ if counts.is_empty() => ints.len(),
            Combiner::Subarray => 1,
            Combiner::Darray => 3,
            _ => 0,
        };
        let (before, behind) = ints.split_at(first.min(ints.len()));
        let wide = |row: &[i32]| row.iter().map(|it| i64::from(*it)).collect::<Vec<_>>();
        this.numbers = [wide(before), counts, wide(behind), addresses].concat();
        this.types = (0..n_types).map(|idx| unsafe { abi::handle_at(types_at, idx) }).collect();
        this
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for it in &mut self.types {
            if !is_named(*it) {
                real::call(calls::TYPE_FREE, &[std::ptr::from_mut(it) as usize]);
            }
        }
    }
}

/// Whether this MPI has the calls with large counts, which alone tell of types made by such.
fn has_large() -> bool {
    static HAS_LARGE: OnceLock<bool> = OnceLock::new();
    *HAS_LARGE.get_or_init(|| real::theirs(c"PMPI_Type_get_envelope_c").is_some())
}

/// How many integers, addresses, large counts and types a type was made from, and how.
fn envelope(datatype: usize) -> ([usize; 4], i32) {
    let mut combiner = -1_i32;
    let combiner_at = &raw mut combiner as usize;
    let n = if has_large() {
        let mut n = [0_i64; 4];
        let at = n.as_mut_ptr() as usize;
        let to = [datatype, at, at + 8, at + 16, at + 24, combiner_at];
        real::call(calls::TYPE_GET_ENVELOPE_C, &to);
        n
    } else {
        let mut n = [0_i32; 3];
        let at = n.as_mut_ptr() as usize;
        real::call(calls::TYPE_GET_ENVELOPE, &[datatype, at, at + 4, at + 8, combiner_at]);
        [n[0].into(), n[1].into(), 0, n[2].into()]
    };
    (n.map(|it| it.max(0) as usize), combiner)
}

/// Whether a type is one of MPI's own.
pub(crate) fn is_named(datatype: usize) -> bool {
    envelope(datatype).1 == abi::table().combiner_named
}

/// Asks something of each type that a type of the program's was made from.
pub(crate) fn of_inner<R>(datatype: usize, ask: impl FnMut(usize) -> R) -> Vec<R> {
    Made::of(datatype).types.iter().copied().map(ask).collect()
}

/// The type of MPI's own that a type is made of, where it is made of one alone.
pub(crate) fn base_of(datatype: usize) -> usize {
    if is_named(datatype) {
        return datatype;
    }
    of_inner(datatype, base_of).first().copied().unwrap_or(datatype)
}
