//! From where in the program's code a question is asked, by a name that all replicas give it.
//!
//! It is made of the calls that are under way: those in a loop, and those after it, mostly ask by
//! the same few functions.  To unwind them takes microseconds, so what was found is kept with the
//! words of the stack that say so: while those are the same, so are the calls.

use selvedge_stmr::digest::Digest;

use crate::origin::{self, Frame};
use crate::python;
use crate::stack;

/// So many calls make a site: who asks, and by whom it was called.
const CALLS: usize = 32;

/// No more frames are looked at, this library's among them.
const FRAMES_MAX: usize = 64;

/// What was found is kept in so many rows of so many.
const ROWS: usize = 64;
const COLUMNS: usize = 4;

/// Words of the stack are read again no farther from where it was left, in bytes.
const REACH: usize = 64 << 10;

/// Sites that were found.
pub(crate) struct Sites {
    rows: Vec<[Known; COLUMNS]>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// Where the program's stack was left.
    left_at: usize,
    clock: u64,
    /// Where the addresses stand to which these calls return, and what they are.
    returns: [(usize, usize); CALLS],
    n_returns: usize,
    site: u64,
}

impl Known {
    fn is_here(&self, left_at: usize, clock: u64) -> bool {
        let holds = |it: &(usize, usize)| unsafe { *(it.0 as *const usize) } == it.1;
        (self.left_at, self.clock) == (left_at, clock)
            && self.returns[..self.n_returns].iter().all(holds)
    }
}

impl Sites {
    pub(crate) fn none() -> Self {
        Self { rows: Vec::new() }
    }

    /// From where a clock is looked at.  Nothing that is asked of it changes what it is, but for
    /// the calls.
    pub(crate) fn find(&mut self, clock: u64) -> u64 {
        let calls = self.calls(clock);
        match python::position() {
            Some(lines) => Digest::of(&[calls, lines].map(u64::to_le_bytes).concat()).0 as u64,
            None => calls,
        }
    }

    fn calls(&mut self, clock: u64) -> u64 {
        // Another thread than the program's first is on its own stack.
        let left_at = match stack::left() {
            0 => psm::stack_pointer() as usize,
            it => it,
        };
        if self.rows.is_empty() {
            self.rows = vec![<[Known; COLUMNS]>::default(); ROWS];
        }
        let row = &mut self.rows[(left_at / 64 + clock as usize) % ROWS];
        if let Some(known) = row.iter().find(|it| it.is_here(left_at, clock)) {
            return known.site;
        }
        let found = unwind(left_at);
        if 0 < found.n_returns {
            row.rotate_right(1);
            row[0] = Known { left_at, clock, ..found };
        }
        found.site
    }
}

/// What calls are under way; their words on the stack, if it is known where it was left and all
/// have one there.
fn unwind(left_at: usize) -> Known {
    let (mut known, mut names) = (Known::default(), [0; CALLS]);
    let (mut n, mut is_kept) = (0, true);
    origin::each_frame(FRAMES_MAX, |Frame { at, stack }| {
        if at == 0 || origin::is_own(at) {
            // Nobody called who was called first.
            return at != 0;
        }
        names[n] = origin::name_of(at);
        let slot = stack.wrapping_sub(size_of::<usize>());
        is_kept &=
            (left_at..left_at + REACH).contains(&slot) && unsafe { *(slot as *const usize) } == at;
        known.returns[n] = (slot, at);
        n += 1;
        n < CALLS
    });
    known.n_returns = if is_kept { n } else { 0 };
    known.site = Digest::of(&names.map(u64::to_le_bytes).concat()).0 as u64;
    known
}

/// The site of an instruction.
pub(crate) fn of_instruction(at: usize) -> u64 {
    origin::name_of(at)
}
