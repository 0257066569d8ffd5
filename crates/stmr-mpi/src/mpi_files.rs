//! MPI's own files: written once for each cluster, on the files that the program has (`files`).
//!
//! The MPI library's part for this is not used: it blocks, and knows one set only.  A process
//! writes and reads what its view shows by itself, so a call for all is one for each; those that
//! the standard has meet (open, close, a new size) end with a barrier.  What is written goes the
//! way of all that is written to files: it is compared, and the meta writes it.

use std::ffi::{CStr, CString};

use selvedge_stmr::message::EventKind;
use selvedge_stmr::pointer::Motion;
use selvedge_stmr::view::{Piece, View};

use crate::abi::{self, Family, Status};
use crate::calls;
use crate::errors;
use crate::file_errors::{Done, Wrong, done_unless};
use crate::files::{self, Opening};
use crate::names;
use crate::pack::{self, Part};
use crate::pointers::{self, Pointer};
use crate::real::{self, Call};
use crate::representation::Representation;
use crate::request::Request;
use crate::state::State;
use crate::typemap;

const CREATE: i32 = 1;
const RDONLY: i32 = 2;
const WRONLY: i32 = 4;
const RDWR: i32 = 8;
const DELETE_ON_CLOSE: i32 = 16;
const EXCL: i32 = 64;
const APPEND: i32 = 128;
const SEQUENTIAL: i32 = 256;

/// MPI_DISPLACEMENT_CURRENT, the place that all stand at (MPI 4.1 §14.3).
fn current_place() -> i64 {
    match abi::table().family {
        Family::OpenMpi | Family::Mpich => -54_278_278,
        Family::Standard => -1,
    }
}

/// What Open MPI and MPICH call the bits of a mode, and how the standard ABI does, in its order
/// (MPI 5.0, §A.1.1).
const MODES: [(i32, i32); 9] = [
    (APPEND, 1),
    (CREATE, 2),
    (DELETE_ON_CLOSE, 4),
    (EXCL, 8),
    (RDONLY, 16),
    (RDWR, 32),
    (SEQUENTIAL, 64),
    // MPI_MODE_UNIQUE_OPEN, which changes nothing here.
    (32, 128),
    (WRONLY, 256),
];

/// From where a program counts that sets a pointer.
#[derive(Clone, Copy)]
pub(crate) enum Whence {
    Start,
    Here,
    End,
}

impl Whence {
    /// By the program's number.
    pub(crate) fn of(number: i32) -> Done<Self> {
        let [start, here, end] = match abi::table().family {
            Family::OpenMpi | Family::Mpich => [600, 602, 604],
            Family::Standard => [403, 401, 402],
        };
        match number {
            it if it == start => Ok(Self::Start),
            it if it == here => Ok(Self::Here),
            it if it == end => Ok(Self::End),
            _ => Err(Wrong::Argument),
        }
    }
}

/// A file that the program opened by MPI.
pub(crate) struct MpiFile {
    /// A duplicate of the program's communicator.
    pub(crate) comm: usize,
    fd: i32,
    mode: i32,
    path: CString,
    view: View,
    /// What the program called the view's types, and their sizes in bytes.
    etype: usize,
    pub(crate) etype_size: u64,
    filetype: usize,
    representation: Representation,
    /// The next data that it reads or writes without saying where, in bytes.
    position: u64,
    /// The same that all processes of the file share.
    pub(crate) pointer: Pointer,
    is_atomic: bool,
    /// The handler of its errors.
    pub(crate) errhandler: usize,
    /// What a call that was begun came to.
    begun: Option<Status>,
}

/// MPI_FILE_NULL.
pub(crate) fn null() -> usize {
    match abi::table().family {
        Family::OpenMpi => real::symbol(c"ompi_mpi_file_null").unwrap_or_default(),
        Family::Mpich => 0,
        Family::Standard => 0x118,
    }
}

/// A mode as the program gives it, in Open MPI's and MPICH's bits.
fn mode_of(mode: i32) -> i32 {
    match abi::table().family {
        Family::OpenMpi | Family::Mpich => mode,
        Family::Standard => translated(mode, MODES.map(|(own, standard)| (standard, own))),
    }
}

/// A mode as the program knows it.
fn shown_mode(mode: i32) -> i32 {
    match abi::table().family {
        Family::OpenMpi | Family::Mpich => mode,
        Family::Standard => translated(mode, MODES),
    }
}

fn translated(mode: i32, bits: [(i32, i32); MODES.len()]) -> i32 {
    bits.iter().filter(|it| mode & it.0 != 0).map(|it| it.1).sum()
}

/// A handle of MPI's files is an address in all its kin.
fn idx(handle: usize) -> usize {
    handle.wrapping_sub(BASE) / STEP
}

const BASE: usize = 0x5e23 << 32;
const STEP: usize = 16;
const FORTRAN: i32 = 1 << 27;

impl MpiFile {
    /// Whether it was opened for that.
    fn may(&self, write: bool) -> Done<()> {
        match (write, self.mode & (RDONLY | WRONLY)) {
            (true, RDONLY) => Err(Wrong::ReadOnly),
            (false, WRONLY) => Err(Wrong::Access),
            _ => Ok(()),
        }
    }

    /// Whether it may be read and written at any place, not only where all stand.  Open MPI does
    /// not ask.
    fn has_places(&self) -> Done<()> {
        let asks = abi::table().family != Family::OpenMpi;
        if asks && self.mode & SEQUENTIAL != 0 { Err(Wrong::Unsupported) } else { Ok(()) }
    }
}

impl State {
    pub(crate) fn mpi_file(&mut self, handle: usize) -> Done<&mut MpiFile> {
        self.mpi_files.get_mut(idx(handle)).and_then(Option::as_mut).ok_or(Wrong::Handle)
    }
}

pub(crate) fn open(state: &mut State, call: Call, args: &[usize]) -> usize {
    let (mode, to) = (mode_of(args[2] as i32), args[4] as *mut usize);
    let path = unsafe { CStr::from_ptr(args[1] as *const libc::c_char) }.to_owned();
    let mut comm = 0_usize;
    // The program may free its own while the file is open.
    let code = crate::make(state, calls::COMM_DUP, &[args[0], &raw mut comm as usize]);
    if code as i32 == abi::SUCCESS {
        state.comm(args[0]).owed.add_one(calls::ALLREDUCE);
    }
    let opened = open_all(state, comm, path, mode);
    match opened {
        Ok(file) => {
            let end = (file.mode & APPEND != 0).then_some(file.position);
            let slot = abi::keep_in(&mut state.mpi_files, file);
            let handle = BASE + slot * STEP;
            unsafe { *to = handle };
            let done = end.map_or(Ok(()), |end| pointers::put(state, handle, |_| Ok(end)));
            state.done_with_file(handle, call, done)
        }
        Err(wrong) => {
            crate::make(state, calls::COMM_FREE, &[&raw mut comm as usize]);
            unsafe { *to = null() };
            state.done_with_file(null(), call, Err(wrong))
        }
    }
}

/// The first process of the communicator makes the file, then the others open it.
fn open_all(state: &mut State, comm: usize, path: CString, mode: i32) -> Done<MpiFile> {
    let access = match mode & (RDONLY | WRONLY | RDWR) {
        RDONLY if mode & (CREATE | EXCL) == 0 => libc::O_RDONLY,
        // What is written by parts may have to be read.
        WRONLY => libc::O_WRONLY,
        RDWR if mode & SEQUENTIAL == 0 => libc::O_RDWR,
        _ => return Err(Wrong::Mode),
    };
    let make = if mode & CREATE == 0 { 0 } else { libc::O_CREAT }
        | if mode & EXCL == 0 { 0 } else { libc::O_EXCL };
    let is_first = state.comm(comm).rank == 0;
    let first = is_first.then(|| open_one(state, &path, access | make));
    let error = first.and_then(Result::err).unwrap_or(0);
    let byte = state.handles().byte;
    state.n_mpi_files += u64::from(is_first);
    let told = [error as u64, state.told.rank as u64, state.n_mpi_files];
    let [error, rank, number] = state.tell_members(comm, told);
    done_unless(error as i32)?;
    let opened = first.unwrap_or_else(|| open_one(state, &path, access));
    let fd = opened.map_err(Wrong::of_errno)?;
    let position = if mode & APPEND == 0 { 0 } else { size(state, fd)? };
    Ok(MpiFile {
        comm,
        fd,
        mode,
        path,
        view: View::whole(0),
        etype: byte,
        etype_size: 1,
        filetype: byte,
        representation: Representation::Native,
        position,
        pointer: Pointer::of(state, rank, number),
        is_atomic: false,
        errhandler: state.errhandler_of_no_file(),
        begun: None,
    })
}

fn open_one(state: &mut State, path: &CStr, flags: i32) -> Result<i32, i32> {
    let opening = Opening { dir: libc::AT_FDCWD, path, flags, mode: 0o666 };
    if flags == libc::O_RDONLY {
        state.open_to_read(&opening)
    } else {
        state.open_to_write(&opening)
    }
}

/// The meta's answer: others may write meanwhile.
fn size(state: &mut State, fd: i32) -> Done<u64> {
    state.let_out();
    let (answer, _) = state.event(EventKind::Decision, |_| {
        Some(files::bytes_of(&[files::native_size(fd).unwrap_or(u64::MAX)]))
    });
    match files::words(&answer)[0] {
        u64::MAX => Err(Wrong::Other),
        size => Ok(size),
    }
}

pub(crate) fn close(state: &mut State, call: Call, args: &[usize]) -> usize {
    let at = args[0] as *mut usize;
    let handle = unsafe { *at };
    let Some(file) = state.mpi_files.get_mut(idx(handle)).and_then(Option::take) else {
        return state.done_with_file(handle, call, Err(Wrong::Handle));
    };
    unsafe { *at = null() };
    state.let_out();
    let error = files::forget(file.fd);
    let mut comm = file.comm;
    state.meet(comm);
    if file.mode & DELETE_ON_CLOSE != 0 && state.comm(comm).rank == 0 {
        names::remove_file(state, &file.path);
    }
    state.meet(comm);
    crate::make(state, calls::COMM_FREE, &[&raw mut comm as usize]);
    state.done_with_file(null(), call, done_unless(error))
}

pub(crate) fn delete(state: &mut State, call: Call, args: &[usize]) -> usize {
    let path = unsafe { CStr::from_ptr(args[0] as *const libc::c_char) };
    let error = names::remove_file(state, path);
    state.done_with_file(null(), call, done_unless(error))
}

/// MPI_File_set_size and MPI_File_preallocate, which makes a file longer only.
pub(crate) fn set_size(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let &mut MpiFile { comm, fd, .. } = state.mpi_file(args[0])?;
        state.mpi_file(args[0])?.may(true)?;
        if (args[1] as i64) < 0 {
            return Err(Wrong::Place);
        }
        let grows = call.name() == "MPI_File_preallocate";
        state.meet(comm);
        let now = size(state, fd)?;
        let mut error = 0;
        if state.comm(comm).rank == 0 && (!grows || now < args[1] as u64) {
            error = files::set_length(state, fd, args[1] as i64);
        }
        state.meet(comm);
        done_unless(error)
    })();
    state.done_with_file(args[0], call, done)
}

pub(crate) fn get_size(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let fd = state.mpi_file(args[0])?.fd;
        let size = size(state, fd)?;
        unsafe { *(args[1] as *mut i64) = size as i64 };
        Ok(())
    })();
    state.done_with_file(args[0], call, done)
}

pub(crate) fn sync(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let &mut MpiFile { comm, fd, .. } = state.mpi_file(args[0])?;
        state.let_out();
        let error = files::sync(state, fd);
        state.meet(comm);
        done_unless(error)
    })();
    state.done_with_file(args[0], call, done)
}

/// What is known of a file without looking at it.
pub(crate) fn about(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let file = state.mpi_file(args[0])?;
        let put = |at: usize, value: i32| unsafe { *(args[at] as *mut i32) = value };
        match call.name() {
            "MPI_File_get_amode" => put(1, shown_mode(file.mode)),
            "MPI_File_get_atomicity" => put(1, i32::from(file.is_atomic)),
            "MPI_File_set_atomicity" => file.is_atomic = args[1] as i32 != 0,
            "MPI_File_set_info" => {}
            "MPI_File_get_info" => {
                real::call(calls::INFO_CREATE, &[args[1]]);
            }
            "MPI_File_get_group" => {
                let comm = file.comm;
                crate::make(state, calls::COMM_GROUP, &[comm, args[1]]);
            }
            "MPI_File_get_position" => {
                let at = file.position / file.etype_size;
                unsafe { *(args[1] as *mut i64) = at as i64 };
            }
            "MPI_File_get_byte_offset" => {
                let at = file.view.place(args[1] as u64 * file.etype_size);
                unsafe { *(args[2] as *mut i64) = at as i64 };
            }
            "MPI_File_get_type_extent" | "MPI_File_get_type_extent_c" => {
                let extent = pack::extent_of(abi::cut(args[1]));
                unsafe { *(args[2] as *mut isize) = extent };
            }
            "MPI_File_get_view" => {
                unsafe { *(args[1] as *mut i64) = file.view.start as i64 };
                for (at, handle) in [(2, file.etype), (3, file.filetype)] {
                    let copy = copy_of(handle);
                    unsafe { abi::put_handle(args[at], 0, copy) };
                }
                let (from, to) = (file.representation.name(), args[4] as *mut u8);
                let from = from.to_bytes_with_nul();
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
            }
            _ => return Err(Wrong::Other),
        }
        Ok(())
    })();
    state.done_with_file(args[0], call, done)
}

/// A type that may be freed by the program, or that it may free.
fn copy_of(datatype: usize) -> usize {
    if typemap::is_named(datatype) {
        return datatype;
    }
    let mut copy = 0_usize;
    real::call(calls::TYPE_DUP, &[datatype, &raw mut copy as usize]);
    abi::cut(copy)
}

pub(crate) fn set_view(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let (etype, filetype) = (abi::cut(args[2]), abi::cut(args[3]));
        for datatype in [etype, filetype] {
            check(state, Part { at: errors::SOMEWHERE, count: 1, datatype })?;
        }
        let name = unsafe { CStr::from_ptr(args[4] as *const libc::c_char) };
        let representation = Representation::of(name.to_bytes())?;
        let (extent, runs) = layout(state, filetype)?;
        let size: u64 = runs.iter().map(|it| it.1).sum();
        if !size.is_multiple_of(pack::size_of(etype).max(1) as u64) {
            return Err(Wrong::Argument);
        }
        let start = beginning(state, args[0], args[1] as i64)?;
        let (etype, filetype) = (copy_of(etype), copy_of(filetype));
        {
            let file = state.mpi_file(args[0])?;
            file.view = View::new(start, extent, runs);
            file.etype_size = (pack::size_of(etype) as u64).max(1);
            (file.etype, file.filetype, file.representation) = (etype, filetype, representation);
            file.position = 0;
        }
        pointers::put(state, args[0], |_| Ok(0))
    })();
    state.done_with_file(args[0], call, done)
}

/// Where a view is to begin.
fn beginning(state: &mut State, handle: usize, start: i64) -> Done<u64> {
    if start != current_place() {
        return u64::try_from(start).map_err(|_| Wrong::Argument);
    }
    if state.mpi_file(handle)?.mode & SEQUENTIAL == 0 {
        return Err(Wrong::Displacement);
    }
    let now = state.pointer_position(handle)?;
    Ok(state.mpi_file(handle)?.view.place(now))
}

/// What MPI says of reading or writing this.
fn check(state: &State, part: Part) -> Done<()> {
    match errors::of_part(state, calls::SEND, part) {
        abi::SUCCESS => Ok(()),
        code => Err(Wrong::Said(code)),
    }
}

/// The extent of a type and where its data stand.
fn layout(state: &mut State, filetype: usize) -> Done<(u64, Vec<(u64, u64)>)> {
    let extent = u64::try_from(pack::extent_of(filetype)).map_err(|_| Wrong::Argument)?;
    let Some(runs) = typemap::runs_of(state, filetype) else {
        state.refuse_in_words(typemap::NOT_SERVED);
    };
    let place = |(at, length)| Ok((u64::try_from(at).map_err(|_| Wrong::Argument)?, length));
    let mut runs: Vec<(u64, u64)> = runs.into_iter().map(place).collect::<Done<_>>()?;
    // A view's type has its data in order (MPI 4.1 §14.3).
    runs.sort_by_key(|it| it.0);
    Ok((extent, runs))
}

pub(crate) fn seek(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let offset = args[1] as i64;
        state.mpi_file(args[0])?.has_places()?;
        let from = match Whence::of(args[2] as i32)? {
            Whence::Start => 0,
            Whence::Here => state.mpi_file(args[0])?.position,
            Whence::End => end_of_data(state, args[0])?,
        };
        let file = state.mpi_file(args[0])?;
        let to = from as i64 + offset * file.etype_size as i64;
        file.position = u64::try_from(to).map_err(|_| Wrong::Place)?;
        Ok(())
    })();
    state.done_with_file(args[0], call, done)
}

/// How much data the view shows up to the end of the file.
pub(crate) fn end_of_data(state: &mut State, handle: usize) -> Done<u64> {
    let fd = state.mpi_file(handle)?.fd;
    let end = size(state, fd)?;
    Ok(state.mpi_file(handle)?.view.data_before(end))
}

/// All that reads or writes; which it is, its name says.
pub(crate) fn transfer(state: &mut State, call: Call, args: &[usize]) -> usize {
    let name = call.name().trim_start_matches("MPI_File_");
    let mut rest = &args[1..];
    let done = (|| {
        // MPIs move what all read or write in one step for all: what comes later is later in the
        // file as well, though nobody may count on it (MPI 4.1 §14.6.1).
        let comm = state.mpi_file(args[0])?.comm;
        if name.contains("_all") && !name.starts_with('i') {
            state.meet(comm);
        }
        let offset = if name.contains("_at") {
            let offset = rest[0] as i64;
            rest = &rest[1..];
            let size = state.mpi_file(args[0])?.etype_size;
            Some(u64::try_from(offset).map_err(|_| Wrong::Place)? * size)
        } else {
            None
        };
        let part =
            Part { at: rest[0], count: rest[1] as i32 as usize, datatype: abi::cut(rest[2]) };
        let writes = name.contains("write");
        let is_shared = name.contains("_shared") || name.contains("_ordered");
        let file = state.mpi_file(args[0])?;
        file.may(writes)?;
        if !is_shared {
            file.has_places()?;
        }
        let representation = file.representation;
        check(state, part)?;
        let length = representation.length(part)? as u64;
        let offset = if name.contains("_shared") {
            Some(state.move_pointer(args[0], Motion::Take(length))?)
        } else if name.contains("_ordered") {
            Some(pointers::in_order(state, args[0], length)?)
        } else {
            offset
        };
        if writes {
            write(state, args[0], offset, part)
        } else {
            read(state, args[0], offset, part)
        }
    })();
    let status = match done {
        Ok(count) => Status { count, ..Status::empty() },
        Err(wrong) => return state.done_with_file(args[0], call, Err(wrong)),
    };
    if name.ends_with("_begin") {
        if let Ok(file) = state.mpi_file(args[0]) {
            file.begun = Some(status);
        }
    } else if name.starts_with('i') {
        state.keep_request(Request::Done(status), rest[3]);
    } else {
        unsafe { status.write(rest[3], false) };
    }
    abi::SUCCESS as usize
}

/// The end of what was begun.
pub(crate) fn end(state: &mut State, call: Call, args: &[usize]) -> usize {
    let done = (|| {
        let begun = state.mpi_file(args[0])?.begun.take().ok_or(Wrong::Argument)?;
        unsafe { begun.write(args[2], false) };
        Ok(())
    })();
    state.done_with_file(args[0], call, done)
}

fn write(state: &mut State, handle: usize, offset: Option<u64>, part: Part) -> Done<u64> {
    let representation = state.mpi_file(handle)?.representation;
    let bytes = representation.pack(state, part)?;
    state.counts.sends += 1;
    let file = state.mpi_file(handle)?;
    let from = offset.unwrap_or(file.position);
    let (fd, pieces) = (file.fd, file.view.pieces(from, bytes.len() as u64));
    if offset.is_none() {
        file.position += bytes.len() as u64;
    }
    let mut done = 0;
    for Piece { at, length } in pieces {
        let error = files::push(fd, at, &bytes[done..done + length as usize]).err();
        done_unless(error.unwrap_or(0))?;
        done += length as usize;
    }
    state.let_out();
    done_unless(files::error_of(fd))?;
    Ok((part.count * pack::size_of(part.datatype)) as u64)
}

fn read(state: &mut State, handle: usize, offset: Option<u64>, part: Part) -> Done<u64> {
    let representation = state.mpi_file(handle)?.representation;
    let length = representation.length(part)?;
    state.let_out();
    let file = state.mpi_file(handle)?;
    let from = offset.unwrap_or(file.position);
    let mut bytes = Vec::with_capacity(length);
    for Piece { at, length } in file.view.pieces(from, length as u64) {
        let got = files::read_at(file.fd, at, length as usize);
        let is_short = got.len() < length as usize;
        bytes.extend(got);
        if is_short {
            break;
        }
    }
    if offset.is_none() {
        file.position += bytes.len() as u64;
    }
    representation.unpack(state, &bytes, part)
}

pub(crate) fn to_fortran(_state: &mut State, call: Call, args: &[usize]) -> usize {
    let slot = idx(args[0]);
    if slot < 1 << 20 { FORTRAN as usize + slot } else { real::call(call, args) }
}

pub(crate) fn of_fortran(_state: &mut State, call: Call, args: &[usize]) -> usize {
    let slot = (args[0] as i32).wrapping_sub(FORTRAN);
    if (0..1 << 20).contains(&slot) {
        return BASE + slot as usize * STEP;
    }
    real::call(call, args)
}
