//! Memory of this library in which MPI makes a collective.
//!
//! One that was left at a death may be gone on with: by the thread that was left in it, which moves
//! all that MPI has under way, or by another process, which writes where it was once told to.  The
//! program has something else in its buffers by then.  So what comes in is written here, and
//! reaches the program's memory when it is complete; what such a thread may still read is a copy.
//!
//! What is only moved is moved as bytes without holes, in the order of its parts: it lies in here
//! as siblings are told it.  What is added up keeps its type, and where that has holes, its extent.

use crate::abi;
use crate::comm::Comm;
use crate::pack::{self, Part, extent_of, size_of};
use crate::parts::{Kind, Neighbors, Parts};
use crate::spare::Spare;
use crate::state::State;

/// What siblings are told begins with so many bytes, the first of them MPI's answer: what is added
/// up behind them lies as the widest of types wants it.
pub(crate) const HEAD: usize = 16;

/// A type whose holes take so many times what it holds, and so many bytes more, has no room.
const HOLES_MAX: [usize; 2] = [8, 1 << 20];

/// Room for one collective, which moves while MPI knows where its contents lie.
#[derive(Default)]
pub(crate) struct Room {
    /// A head, and behind it what comes in, as siblings are told it; MPI fills it.
    told: Vec<u8>,
    n_coming: usize,
    /// What comes in with holes.
    wide: Option<Wide>,
    /// MPI has the program's own memory.
    is_direct: bool,
    _given: Vec<u8>,
    _given_wide: Option<Wide>,
    /// Counts, displacements and types, which MPI may look at while the call lasts.
    _words: Vec<Vec<i32>>,
    _rows: Vec<Vec<usize>>,
}

/// What a type with holes takes.
struct Wide {
    _bytes: Vec<u128>,
    part: Part,
}

impl Wide {
    /// Room for so many of a type, unless its holes are out of all proportion.
    fn of(count: usize, datatype: usize) -> Option<Self> {
        let (low, length) = pack::true_extent(datatype);
        let last = extent_of(datatype).checked_mul(count.checked_sub(1)? as isize)?;
        let span = length.checked_add(last.checked_abs()?)?;
        let [times, more] = HOLES_MAX;
        let span = usize::try_from(span).ok()?;
        if times * size_of(datatype) * count + more < span {
            return None;
        }
        const STEP: usize = size_of_val(&0_u128);
        let mut bytes = vec![0_u128; span.div_ceil(STEP) + 1];
        let first = low.checked_add(last.min(0))?;
        let at = (bytes.as_mut_ptr() as usize).wrapping_sub_signed(first).next_multiple_of(STEP);
        Some(Self { _bytes: bytes, part: Part { at, count, datatype } })
    }

    /// The first of it.
    fn part(&self, count: usize) -> Part {
        Part { count, ..self.part }
    }
}

/// A collective that is about to be made.
pub(crate) struct Plan<'p> {
    pub(crate) kind: Kind,
    pub(crate) known: &'p Comm,
    pub(crate) parts: &'p Parts,
    /// What it gives, if that is not read where it lies.
    pub(crate) packed: Vec<u8>,
    /// It may be left while MPI still reads what it gives.
    pub(crate) copies: bool,
}

/// Where a call has a buffer, its count or counts, its displacements and its type or types.
#[derive(Clone, Copy)]
struct Side {
    at: usize,
    count: usize,
    displacements: Option<usize>,
    datatype: usize,
    form: Form,
}

/// How a call says what goes to and comes from each process.
#[derive(Clone, Copy)]
enum Form {
    /// The same for each.
    Even,
    Counts,
    /// And a type for each, at displacements in bytes.
    Types,
    /// At displacements as wide as an address.
    FarTypes,
}

impl Room {
    /// Room for a collective, and where it is in the arguments of the call.
    pub(crate) fn furnish(state: &mut State, plan: Plan<'_>, to: &mut [usize]) -> Self {
        let mut this = Self { _words: std::mem::take(&mut state.arrays), ..Self::default() };
        this.is_direct = state.told.replicas == 1 || !fits(plan.parts);
        if this.is_direct {
            state.spare.keep(plan.packed);
            return this;
        }
        match plan.kind {
            Kind::Barrier => {}
            Kind::Reduce
            | Kind::Allreduce
            | Kind::ReduceScatter
            | Kind::ReduceScatterBlock
            | Kind::Scan
            | Kind::Exscan => this.add_up(state, plan, to),
            _ => this.move_bytes(state, plan, to),
        }
        this
    }

    /// What siblings are told of a collective that is complete.
    pub(crate) fn take_told(&mut self, state: &mut State, code: i32, gets: &[Part]) -> Vec<u8> {
        let mut told = std::mem::take(&mut self.told);
        let is_there = HEAD <= told.capacity();
        if !is_there {
            let length = if self.is_direct { bytes_of(gets) } else { self.n_coming };
            told = state.spare.room(HEAD + length);
        }
        told.clear();
        told.extend(code.to_le_bytes());
        told.resize(HEAD, 0);
        if let Some(wide) = &self.wide {
            gets.iter().for_each(|it| pack::pack(state, wide.part(it.count), &mut told));
        } else if is_there {
            // MPI has written so many behind the head.
            unsafe { told.set_len(HEAD + self.n_coming) };
        } else if self.is_direct && 1 < state.told.replicas {
            gets.iter().for_each(|it| pack::pack(state, *it, &mut told));
        }
        told
    }

    /// Whether MPI has put what came in where the program wants it.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// A place for what comes in, in the order in which it is told.
    fn place(&mut self, spare: &mut Spare, length: usize) -> *mut u8 {
        self.told = spare.room(HEAD + length);
        unsafe { self.told.as_mut_ptr().add(HEAD) }
    }

    fn move_bytes(&mut self, state: &mut State, plan: Plan<'_>, to: &mut [usize]) {
        let Plan { kind, known, parts, packed, copies } = plan;
        let Parts { gives, gets } = parts;
        let byte = state.handles().byte;
        let (sends, receives) = sides(kind);
        let is_in_place = to[sends.at] == abi::table().in_place;
        let [block_of, n_of_block] = [to[receives.datatype], to[receives.count]];
        let mut place = std::ptr::null_mut();
        self.n_coming = bytes_of(gets);
        if 0 < self.n_coming {
            place = self.place(&mut state.spare, self.n_coming);
            if let Kind::Neighbors(_) = kind {
                // What comes from a neighbour that a grid has not stays as it is.
                self.told.resize(HEAD, 0);
                gets.iter().for_each(|it| pack::pack(state, *it, &mut self.told));
            }
            to[receives.at] = place as usize;
            self.put_side(receives, gets, to, byte);
        }
        let n_given = bytes_of(gives);
        if n_given == 0 {
            return;
        }
        // What is not packed lies in one piece.
        let lies = if packed.is_empty() { pack::joined(gives) } else { None };
        let lie = |packed: &Vec<u8>| match lies {
            Some(it) if packed.is_empty() => it.at,
            _ => packed.as_ptr() as usize,
        };
        if is_in_place {
            let before = match receives.form {
                _ if n_given == self.n_coming => 0,
                Form::Even => {
                    size_of(block_of) * (n_of_block as i32 as usize) * known.rank as usize
                }
                _ => bytes_of(&gets[..known.rank as usize]),
            };
            unsafe {
                std::ptr::copy_nonoverlapping(lie(&packed) as *const u8, place.add(before), n_given)
            };
            return;
        }
        let packed = match lies {
            Some(it) if copies => unsafe { pack::contents(it) }.to_vec(),
            _ => packed,
        };
        to[sends.at] = lie(&packed);
        self._given = packed;
        self.put_side(sends, gives, to, byte);
    }

    /// Says in the arguments that a side is bytes, one part behind the other.
    fn put_side(&mut self, side: Side, parts: &[Part], to: &mut [usize], byte: usize) {
        let lengths = || parts.iter().map(|it| it.count * size_of(it.datatype));
        let starts = || lengths().scan(0, |at, it| Some(std::mem::replace(at, *at + it)));
        if let Form::Even = side.form {
            let length = size_of(to[side.datatype]) * (to[side.count] as i32 as usize);
            (to[side.count], to[side.datatype]) = (length, byte);
            return;
        }
        to[side.count] = self.keep_words(lengths());
        if let Some(at) = side.displacements {
            to[at] = match side.form {
                Form::FarTypes => self.keep_row(starts().collect()),
                _ => self.keep_words(starts()),
            };
        }
        to[side.datatype] = match side.form {
            Form::Types | Form::FarTypes => {
                let mut row = vec![0; parts.len() + 1];
                let at = row.as_mut_ptr() as usize;
                (0..parts.len()).for_each(|idx| unsafe { abi::put_handle(at, idx, byte) });
                self.keep_row(row)
            }
            _ => byte,
        };
    }

    fn keep_words(&mut self, words: impl Iterator<Item = usize>) -> usize {
        // There is one at least, so that it has an address of its own.
        self._words.push(words.map(|it| it as i32).chain([0]).collect());
        self._words.last().map_or(0, |it| it.as_ptr() as usize)
    }

    fn keep_row(&mut self, row: Vec<usize>) -> usize {
        self._rows.push(row);
        self._rows.last().map_or(0, |it| it.as_ptr() as usize)
    }

    /// Of all these calls the first argument is what is given, the second where the result is to
    /// be, the fourth its type.
    fn add_up(&mut self, state: &mut State, plan: Plan<'_>, to: &mut [usize]) {
        let Plan { parts: Parts { gives, gets }, packed, copies, .. } = plan;
        let datatype = to[3];
        let size = size_of(datatype);
        let is_plain = pack::is_plain(datatype, size);
        let is_in_place = to[0] == abi::table().in_place;
        let lies = gives.first().copied();
        if let Some(got) = gets.first().filter(|it| 0 < it.count) {
            let count = lies.filter(|_| is_in_place).map_or(0, |it| it.count).max(got.count);
            let place = if is_plain {
                self.n_coming = got.count * size;
                let at = self.place(&mut state.spare, count * size) as usize;
                Part { at, count, datatype }
            } else if let Some(wide) = Wide::of(count, datatype) {
                self.wide.insert(wide).part
            } else {
                self.is_direct = true;
                state.spare.keep(packed);
                return;
            };
            if let (true, Some(from)) = (is_in_place, lies) {
                fill(state, from, &packed, Part { count: from.count, ..place });
            }
            to[1] = place.at;
        }
        if let (true, false, Some(from)) = (copies, is_in_place, lies)
            && 0 < from.count
        {
            if is_plain {
                self._given = unsafe { pack::contents(from) }.to_vec();
                to[0] = self._given.as_ptr() as usize;
            } else if let Some(wide) = Wide::of(from.count, datatype) {
                fill(state, from, &packed, wide.part);
                to[0] = wide.part.at;
                self._given_wide = Some(wide);
            }
        }
        state.spare.keep(packed);
    }
}

/// Puts what lies at `from`, or is packed, at another place of the same type.
fn fill(state: &State, from: Part, packed: &[u8], place: Part) {
    if packed.is_empty() {
        pack::unpack(state, unsafe { pack::contents(from) }, place);
    } else {
        pack::unpack(state, packed, place);
    }
}

fn bytes_of(parts: &[Part]) -> usize {
    parts.iter().map(|it| it.count * size_of(it.datatype)).sum()
}

/// Whether all can be counted in bytes by 32 bits.
fn fits(parts: &Parts) -> bool {
    [&parts.gives, &parts.gets].into_iter().all(|it| {
        let mut lengths = it.iter().map(|it| it.count.checked_mul(size_of(it.datatype)));
        let all = lengths.try_fold(0_usize, |all, it| all.checked_add(it?));
        all.is_some_and(|it| i32::try_from(it).is_ok())
    })
}

/// What a collective that moves contents sends and receives, by the places of its arguments.
fn sides(kind: Kind) -> (Side, Side) {
    let even =
        |at| Side { at, count: at + 1, displacements: None, datatype: at + 2, form: Form::Even };
    let row =
        |at, form| Side { at, count: at + 1, displacements: Some(at + 2), datatype: at + 3, form };
    match kind {
        Kind::Gatherv | Kind::Allgatherv | Kind::Neighbors(Neighbors::Allgatherv) => {
            (even(0), row(3, Form::Counts))
        }
        Kind::Scatterv => (row(0, Form::Counts), even(4)),
        Kind::Alltoallv | Kind::Neighbors(Neighbors::Alltoallv) => {
            (row(0, Form::Counts), row(4, Form::Counts))
        }
        Kind::Alltoallw => (row(0, Form::Types), row(4, Form::Types)),
        Kind::Neighbors(Neighbors::Alltoallw) => (row(0, Form::FarTypes), row(4, Form::FarTypes)),
        // One buffer is the one or the other.
        Kind::Bcast => (even(0), even(0)),
        _ => (even(0), even(3)),
    }
}
