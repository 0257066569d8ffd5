//! What goes wrong with MPI's files, and who hears of it.
//!
//! Errors of a file go to its handler, those of no file (one cannot be opened, a handle is none) to
//! that of MPI_FILE_NULL, which a file has as well when it is opened.  Both return the error unless
//! the program says otherwise (MPI 4.1 §14.7).

use crate::abi::{self, Family};
use crate::calls;
use crate::errors;
use crate::mpi_files;
use crate::real::Call;
use crate::state::State;

/// What went wrong, as MPI calls it.
#[derive(Clone, Copy)]
pub(crate) enum Wrong {
    Access,
    Mode,
    Exists,
    Full,
    Missing,
    ReadOnly,
    Representation,
    Unsupported,
    /// A place before the beginning.
    Place,
    /// The place that all stand at, where they need not.
    Displacement,
    Handle,
    Argument,
    Other,
    /// What MPI says itself, by its code.
    Said(i32),
}

impl Wrong {
    pub(crate) fn of_errno(error: i32) -> Self {
        match error {
            libc::EACCES | libc::EPERM => Self::Access,
            libc::EEXIST => Self::Exists,
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Self::Full,
            libc::ENOENT | libc::ENOTDIR => Self::Missing,
            libc::EROFS => Self::ReadOnly,
            _ => Self::Other,
        }
    }

    fn code(self) -> i32 {
        // The standard ABI's classes are Open MPI's, but for two.
        let family = abi::table().family;
        let pick = |open_mpi: i32, mpich: i32| match family {
            Family::Mpich => mpich,
            Family::OpenMpi | Family::Standard => open_mpi,
        };
        match self {
            Self::Access => 20,
            Self::Mode => 21,
            Self::Exists => pick(28, 25),
            Self::Full => pick(41, 36),
            Self::Missing => pick(42, 37),
            Self::ReadOnly => pick(45, 40),
            Self::Representation if family == Family::Standard => 54,
            Self::Representation => pick(51, 43),
            Self::Unsupported if family == Family::Standard => 55,
            Self::Unsupported => pick(52, 44),
            Self::Handle => pick(30, 27),
            Self::Place if family == Family::OpenMpi => 16,
            Self::Displacement if family == Family::OpenMpi => 26,
            Self::Argument | Self::Place | Self::Displacement => pick(13, 12),
            Self::Other => pick(35, 32),
            Self::Said(code) => code,
        }
    }
}

pub(crate) type Done<T> = Result<T, Wrong>;

/// Done, if `error` of errno is none.
pub(crate) fn done_unless(error: i32) -> Done<()> {
    if error == 0 { Ok(()) } else { Err(Wrong::of_errno(error)) }
}

impl State {
    /// The end of a call about a file, or about none: who is to hear of what went wrong is told.
    /// Returns the code.
    pub(crate) fn done_with_file(&mut self, handle: usize, call: Call, done: Done<()>) -> usize {
        match done {
            Ok(()) => abi::SUCCESS as usize,
            Err(wrong) => self.file_error(handle, wrong.code(), call),
        }
    }

    /// Does what the program wants done about an error of a file; returns the code.
    pub(crate) fn file_error(&mut self, handle: usize, code: i32, call: Call) -> usize {
        let code = self.codes.shared(code);
        let of_none = self.errhandler_of_no_file();
        let (handle, handler) = match self.mpi_file(handle) {
            Ok(file) => (handle, file.errhandler),
            Err(_) => (mpi_files::null(), of_none),
        };
        let handles = self.handles();
        match self.handlers_of_errors.get(&handler).copied() {
            _ if handler == handles.errors_return => {}
            _ if handles.are_final(handler) => self.die_of(code, call),
            Some(function) => {
                self.tell_of_own(handle, function, code);
                return errors::answered(code);
            }
            None => {
                self.tell_fortran_of_file(handler, code);
                return errors::answered(code);
            }
        }
        code as usize
    }

    /// The handler of MPI_FILE_NULL.
    pub(crate) fn errhandler_of_no_file(&self) -> usize {
        self.file_errhandler.unwrap_or(self.handles().errors_return)
    }
}

/// MPI_File_call_errhandler and its kin.
pub(crate) fn errhandler(state: &mut State, call: Call, args: &[usize]) -> usize {
    let of_none = state.errhandler_of_no_file();
    let is_none = args[0] == mpi_files::null();
    let own = match state.mpi_file(args[0]) {
        Ok(file) => file.errhandler,
        Err(_) if is_none => of_none,
        Err(wrong) => return state.done_with_file(args[0], call, Err(wrong)),
    };
    match call {
        calls::FILE_SET_ERRHANDLER => {
            let handler = match held(state, abi::cut(args[1])) {
                Ok(handler) => handler,
                Err(code) => return state.file_error(args[0], code, call),
            };
            match state.mpi_file(args[0]) {
                Ok(file) => file.errhandler = handler,
                Err(_) => state.file_errhandler = Some(handler),
            }
        }
        calls::FILE_GET_ERRHANDLER => {
            let handler = held(state, own).unwrap_or(own);
            unsafe { abi::put_handle(args[1], 0, handler) };
        }
        _ => {
            state.file_error(args[0], args[1] as i32, call);
        }
    }
    abi::SUCCESS as usize
}

/// One more hold of a handler of files.
fn held(state: &State, handler: usize) -> Result<usize, i32> {
    let calls = [calls::FILE_SET_ERRHANDLER, calls::FILE_GET_ERRHANDLER];
    errors::held(calls, mpi_files::null(), handler, state.handles().errors_return)
}
