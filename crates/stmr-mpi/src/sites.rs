//! From where in the program's code a question is asked, by a name that all replicas give it.
//!
//! It is made of the calls that are under way: those in a loop, and those after it, mostly ask by
//! the same few functions.  To unwind them takes microseconds, so what was found is kept with the
//! words of the stack that say so: while those are the same, so are the calls.

use std::ops::Range;

use selvedge_stmr::digest::Digest;

use crate::origin::{self, Frame, OfLoaded};
use crate::python;
use crate::stack::{self, Entry};

/// So many calls make a site: who asks, and by whom it was called.
const CALLS: usize = 32;

/// No more frames are looked at, this library's among them.
const FRAMES_MAX: usize = 64;

/// What was found is kept in so many rows, of so many at the most.
const ROWS: usize = 64;
const COLUMNS_MAX: usize = 64;

/// Words of the stack are read again no farther from where it was left, in bytes.
const REACH: usize = 64 << 10;

/// Sites that were found.
#[derive(Default)]
pub(crate) struct Sites {
    rows: Vec<Vec<Known>>,
    code: OfLoaded<Named>,
}

/// Where code is, and a name of its file.
type Named = Vec<(Range<usize>, u64)>;

fn look_for_code() -> Named {
    let name = |it: Vec<u8>| Digest::of(&it).0 as u64;
    origin::named_code().into_iter().map(|(code, file)| (code, name(file))).collect()
}

/// The name of an instruction, which it has wherever its library was loaded; 0 if it is of nothing
/// that was loaded.
fn name(code: &Named, at: usize) -> u64 {
    let found = code.iter().find(|(code, _)| code.contains(&at));
    found.map_or(0, |(code, file)| named([(at - code.start) as u64, *file]))
}

fn named<const N: usize>(parts: [u64; N]) -> u64 {
    Digest::of(parts.map(u64::to_le_bytes).as_flattened()).0 as u64
}

#[derive(Clone, Copy, Default)]
struct Known {
    entry: Entry,
    /// Where the addresses stand to which these calls return, and what they are.  The first is
    /// where that of the function is by which the program has come here.
    returns: [(usize, usize); CALLS],
    n_returns: usize,
    site: u64,
}

impl Known {
    fn is_here(&self, entry: Entry) -> bool {
        let holds = |it: &(usize, usize)| unsafe { *(it.0 as *const usize) } == it.1;
        self.entry == entry && self.returns[..self.n_returns].iter().all(holds)
    }
}

impl Sites {
    /// The site of an instruction that looks by itself.
    pub(crate) fn name(&mut self, at: usize) -> u64 {
        name(self.code.look(look_for_code), at)
    }

    /// From where a clock is looked at.
    pub(crate) fn find(&mut self) -> u64 {
        let calls = self.calls();
        python::position().map_or(calls, |lines| named([calls, lines]))
    }

    fn calls(&mut self) -> u64 {
        // Only the program's first thread has left a stack of its own.
        let Some(entry) = stack::entry() else { return self.unwind(Entry::default()).site };
        if self.rows.is_empty() {
            self.rows.resize_with(ROWS, Vec::new);
        }
        let row_idx = entry.stack() / 16 % ROWS;
        if let Some(known) = self.rows[row_idx].iter().find(|it| it.is_here(entry)) {
            return known.site;
        }
        let found = self.unwind(entry);
        if 0 < found.n_returns {
            let row = &mut self.rows[row_idx];
            row.truncate(COLUMNS_MAX - 1);
            row.insert(0, found);
        }
        found.site
    }

    /// What calls are under way; their words on the stack, if all have one there.
    fn unwind(&mut self, entry: Entry) -> Known {
        let (mut known, mut names) = (Known { entry, ..Known::default() }, [0; CALLS]);
        let (mut n, mut is_kept) = (0, true);
        let reach = entry.stack()..entry.stack() + REACH;
        let code = self.code.look(look_for_code);
        origin::each_frame(FRAMES_MAX, |Frame { at, stack }| {
            if at == 0 || origin::is_own(at) {
                // Nobody called who was called first.
                return at != 0;
            }
            names[n] = name(code, at);
            let slot = stack.wrapping_sub(size_of::<usize>());
            is_kept &= reach.contains(&slot) && unsafe { *(slot as *const usize) } == at;
            known.returns[n] = (slot, at);
            n += 1;
            n < CALLS
        });
        known.n_returns = if is_kept { n } else { 0 };
        known.site = named(names);
        known
    }
}
