//! Codes of errors, alike in all replicas.
//!
//! MPICH's code of an error has its class in the lowest bits, and in high ones the number of a text
//! that says more, of which each process keeps the last 128 (`errutil.c`).  MPI numbers those of
//! its own affairs as well, which differ between sets.  So the program gets a code with a number
//! that counts its own errors alone, and MPI gets its own code back when it is asked about it.  The
//! text is the meta's: in it are handles, which differ as well.

use std::collections::VecDeque;

use selvedge_stmr::message::EventKind;

use crate::abi::{self, Family};
use crate::calls;
use crate::real::{self, Call};
use crate::state::{self, State};

/// So many texts MPI keeps.
const KEPT: usize = 128;

/// Which kind of error it is, where it says more than its class: then it has a number too.
const KIND: i32 = 0x7_ff00;

/// Where the number lies in a code.
const NUMBER: i32 = 0x3ff8_0000;

/// How far the number lies from the lowest bit.
const SHIFT: u32 = 19;

/// Set in codes of the program's own (`MPI_Add_error_class`), which have no number.
const OWN: i32 = 0x4000_0000;

/// Longer than any text of MPI's (MPICH's are the longest), in bytes.
const TEXT_MAX: usize = 4096;

/// Calls that are given a code, and which of their arguments it is.
const ASKING: [(Call, usize); 5] = [
    (calls::ERROR_CLASS, 0),
    (calls::ERROR_STRING, 0),
    (calls::COMM_CALL_ERRHANDLER, 1),
    (calls::WIN_CALL_ERRHANDLER, 1),
    (calls::FILE_CALL_ERRHANDLER, 1),
];

/// A code as MPI has it, and as the program has it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    of_mpi: i32,
    of_program: i32,
}

/// The last codes that the program has got.
#[derive(Default)]
pub(crate) struct Codes {
    last: VecDeque<Known>,
    /// How many there were.
    n: u32,
    /// The one that this call is about.
    now: Option<Known>,
}

impl Codes {
    /// MPI's code of an error, as the program gets it; the same that it got before for an error of
    /// this call.
    pub(crate) fn shared(&mut self, code: i32) -> i32 {
        let is_numbered = code & KIND != 0 && code & OWN == 0;
        if !is_numbered || abi::table().family == Family::OpenMpi {
            return code;
        }
        if let Some(now) = self.now.filter(|it| [it.of_mpi, it.of_program].contains(&code)) {
            return now.of_program;
        }
        let numbers = (NUMBER >> SHIFT) as u32;
        let number = (1 + self.n % numbers) << SHIFT;
        self.n += 1;
        let known = Known { of_mpi: code, of_program: code & !NUMBER | number as i32 };
        self.last.truncate(KEPT - 1);
        self.last.push_front(known);
        self.now = Some(known);
        known.of_program
    }

    /// The program's code, which this call is about from here on, as MPI knows it.
    fn of_mpi(&mut self, of_program: i32) -> i32 {
        let found = self.last.iter().find(|it| it.of_program == of_program);
        let of_mpi = found.map_or(of_program, |it| it.of_mpi);
        self.now = Some(Known { of_mpi, of_program });
        of_mpi
    }
}

impl State {
    /// A call begins: what it is about is another error than those before.
    pub(crate) fn begin_codes(&mut self, call: Call, args: &mut [usize]) {
        self.codes.now = None;
        if let Some((_, at)) = ASKING.iter().find(|it| it.0 == call) {
            args[*at] = self.codes.of_mpi(args[*at] as i32) as usize;
        }
    }

    /// Calls something of the program's; MPI's code of what that returns, which the program may
    /// have got from another call.
    pub(crate) fn code_in_program(&mut self, what: impl FnOnce() -> i32) -> i32 {
        match self.in_program(what) {
            abi::SUCCESS => abi::SUCCESS,
            code => self.codes.of_mpi(code),
        }
    }

    /// MPI's words for an error, the meta's, or the code of what MPI says to such a question.
    pub(crate) fn text_of(&mut self, code: i32) -> Result<Vec<u8>, i32> {
        let (row, _) = self.event(EventKind::Decision, |_| {
            let (mut text, mut length) = ([0_u8; TEXT_MAX], 0_i32);
            let args = [code as usize, text.as_mut_ptr() as usize, &raw mut length as usize];
            let answer = real::code(calls::ERROR_STRING, &args);
            let text = &text[..(length.max(0) as usize).min(TEXT_MAX)];
            Some([&answer.to_le_bytes(), text].concat())
        });
        let (answer, text) = row.split_first_chunk().expect("four bytes come first");
        match i32::from_le_bytes(*answer) {
            abi::SUCCESS => Ok(text.to_vec()),
            wrong => Err(wrong),
        }
    }
}

/// `MPI_Error_string`, where texts are not the same in all processes.  Threads beside the one that
/// calls MPI ask in no order, and get their own process's.
pub(crate) fn text(state: &mut State, call: Call, args: &[usize]) -> Option<usize> {
    let differs = call == calls::ERROR_STRING && abi::table().family != Family::OpenMpi;
    let has_room = differs && args[1] != 0 && args[2] != 0;
    if !has_room || state.handles.is_none() || !state::is_ordered() {
        return None;
    }
    Some(match state.text_of(args[0] as i32) {
        Ok(text) => {
            unsafe {
                let to = args[1] as *mut u8;
                std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
                *to.add(text.len()) = 0;
                *(args[2] as *mut i32) = text.len() as i32;
            }
            abi::SUCCESS as usize
        }
        Err(code) => state.error_of_none(code, call),
    })
}
