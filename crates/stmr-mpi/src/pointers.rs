//! The pointer that all processes of one file of MPI's share.
//!
//! It stands in a file of the job's, behind a lock.  Who comes to it first is a matter of luck, so
//! the meta of each process moves it and tells its shadows where that was; what follows is an
//! access at a place like any other.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use selvedge_stmr::message::EventKind;
use selvedge_stmr::pointer::{self, Motion, ROW_BYTES, Row};

use crate::calls;
use crate::collective;
use crate::file_errors::{Done, Wrong};
use crate::files;
use crate::mpi_files::{self, Whence};
use crate::real::Call;
use crate::sends::Source;
use crate::state::State;

/// The shared pointer of one file.
pub(crate) struct Pointer {
    /// Where its rows are, one for each process of the job.
    path: PathBuf,
    /// How often this process has moved it.
    motions: u64,
}

impl Pointer {
    /// That of the file that is the `number`-th which process `rank` opened as the first of its
    /// communicator.
    pub(crate) fn of(state: &State, rank: u64, number: u64) -> Self {
        Self { path: state.told.folder.join(format!("pointer.{rank}.{number}")), motions: 0 }
    }
}

/// The rows and their file, which nobody else changes while it is open here.
fn lock(path: &Path, ranks: usize) -> std::io::Result<(std::fs::File, Vec<Row>)> {
    let mut options = std::fs::File::options();
    let mut file = options.read(true).write(true).create(true).truncate(false).open(path)?;
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    bytes.resize(ranks * ROW_BYTES, 0);
    Ok((file, Row::all(&bytes)))
}

impl State {
    /// Moves the pointer; returns the first byte of data that it passed.
    pub(crate) fn move_pointer(&mut self, handle: usize, motion: Motion) -> Done<u64> {
        if self.is_between_hosts {
            self.refuse_at_once("a pointer that processes on several hosts share in a file");
        }
        let pointer = &mut self.mpi_file(handle)?.pointer;
        pointer.motions += 1;
        let (path, sequence) = (pointer.path.clone(), pointer.motions);
        let (own, ranks) = (self.told.rank, self.told.ranks);
        let attempt = || -> std::io::Result<u64> {
            let (file, rows) = lock(&path, ranks)?;
            let (row, is_new) = pointer::moved(&rows, own, sequence, motion);
            if is_new {
                file.write_all_at(&row.to_bytes(), (own * ROW_BYTES) as u64)?;
            }
            Ok(row.start)
        };
        self.pointer_event(attempt)
    }

    /// Where the pointer stands, in bytes of data.
    pub(crate) fn pointer_position(&mut self, handle: usize) -> Done<u64> {
        let (path, ranks) = (self.mpi_file(handle)?.pointer.path.clone(), self.told.ranks);
        self.pointer_event(|| Ok(pointer::position(&lock(&path, ranks)?.1)))
    }

    fn pointer_event(&mut self, attempt: impl Fn() -> std::io::Result<u64>) -> Done<u64> {
        // What others take before this process does is another thing in each run.
        self.sources.insert(Source::Wildcard);
        self.mix(&[files::FILES, 6]);
        let (answer, _) = self.event(EventKind::Decision, |_| {
            Some(files::bytes_of(&[attempt().unwrap_or(u64::MAX)]))
        });
        match files::words(&answer)[0] {
            u64::MAX => Err(Wrong::Other),
            start => Ok(start),
        }
    }

    /// Tells all processes of a file what its first one has to say.
    pub(crate) fn tell_members<const N: usize>(
        &mut self,
        comm: usize,
        mut words: [u64; N],
    ) -> [u64; N] {
        let byte = self.handles().byte;
        let at = words.as_mut_ptr() as usize;
        collective::blocking(self, calls::BCAST, &[at, 8 * N, byte, 0, comm]);
        words
    }
}

/// Where each process's part stands, one behind the other in the order of their numbers.
pub(crate) fn in_order(state: &mut State, handle: usize, length: u64) -> Done<u64> {
    let comm = state.mpi_file(handle)?.comm;
    let known = state.comm(comm);
    let byte = state.handles().byte;
    let mut lengths = vec![0_u64; known.size as usize];
    let (from, to) = (&raw const length as usize, lengths.as_mut_ptr() as usize);
    collective::blocking(state, calls::ALLGATHER, &[from, 8, byte, to, 8, byte, comm]);
    let mut start = u64::MAX;
    if known.rank == 0 {
        let all = lengths.iter().sum();
        start = state.move_pointer(handle, Motion::Take(all)).unwrap_or(u64::MAX);
    }
    match state.tell_members(comm, [start])[0] {
        u64::MAX => Err(Wrong::Other),
        start => Ok(start + lengths[..known.rank as usize].iter().sum::<u64>()),
    }
}

/// Puts the pointer somewhere, for all processes of the file.
pub(crate) fn put(
    state: &mut State,
    handle: usize,
    at: impl Fn(&mut State) -> Done<u64>,
) -> Done<()> {
    let comm = state.mpi_file(handle)?.comm;
    // Each process took before what it takes before in its program.
    state.meet(comm);
    let mut done = 0;
    if state.comm(comm).rank == 0 {
        let moved = at(state).and_then(|it| state.move_pointer(handle, Motion::Put(it)));
        done = u64::from(moved.is_err());
    }
    match state.tell_members(comm, [done])[0] {
        0 => Ok(()),
        _ => Err(Wrong::Argument),
    }
}

pub(crate) fn seek(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (handle, offset, whence) = (args[0], args[1] as i64, args[2] as i32);
    let done = put(state, handle, |state| {
        let from = match Whence::of(whence)? {
            Whence::Start => 0,
            Whence::Here => state.pointer_position(handle)?,
            Whence::End => mpi_files::end_of_data(state, handle)?,
        };
        let step = state.mpi_file(handle)?.etype_size as i64;
        let to = offset.checked_mul(step).and_then(|it| it.checked_add_unsigned(from));
        to.and_then(|it| u64::try_from(it).ok()).ok_or(Wrong::Argument)
    });
    state.done_with_file(handle, call, done)
}

pub(crate) fn position(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let at = state.pointer_position(args[0])? / state.mpi_file(args[0])?.etype_size;
        unsafe { *(args[1] as *mut i64) = at as i64 };
        Ok(())
    })();
    state.done_with_file(args[0], call, done)
}
