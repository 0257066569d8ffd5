//! Folders that the program lists: all replicas are given the meta's listing.
//!
//! It is taken when a folder is opened or rewound, as readdir(3p) allows.  What other processes
//! make or remove meanwhile is seen at one moment, in one order of names.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock};

use libc::{DIR, dirent64, size_t};

use crate::descriptors;
use crate::files::{FILES, bytes_of, failed, last_error, let_out_waiting, question, words};
use crate::opened;
use crate::own;
use crate::real::{self, Inside};
use crate::stack;
use crate::state::{self, State};
use crate::streams::next;

/// One row of a listing.
struct Entry {
    inode: u64,
    kind: u8,
    name: Vec<u8>,
}

/// Bytes of a row before its name: the inode, the kind and how long the name is.
const HEAD: usize = 10;

/// The longest name of a row, in bytes.
const NAME_MAX: usize = 255;

/// A folder that is open, as the meta found it.
struct Folder {
    entries: Vec<Entry>,
    next: usize,
    /// What it was opened by, if it was by a name.
    name: Option<CString>,
    /// Where the program finds the row that it was given last, on its own heap.
    row: *mut dirent64,
}

// SAFETY: that memory is this folder's alone.
unsafe impl Send for Folder {}

static FOLDERS: Mutex<BTreeMap<usize, Folder>> = Mutex::new(BTreeMap::new());

fn folders() -> MutexGuard<'static, BTreeMap<usize, Folder>> {
    FOLDERS.lock().unwrap_or_else(|it| it.into_inner())
}

/// The C library's own functions.
mod native {
    use super::{CStr, DIR, OnceLock, c_char, c_int, dirent64, next};

    macro_rules! of {
        ($($name:ident($($arg:ident: $kind:ty),*) -> $answer:ty;)*) => {$(
            pub(super) unsafe fn $name($($arg: $kind),*) -> $answer {
                type Function = unsafe extern "C" fn($($kind),*) -> $answer;
                static REAL: OnceLock<usize> = OnceLock::new();
                let name = concat!(stringify!($name), "\0").as_bytes();
                let name = CStr::from_bytes_with_nul(name).expect("it ends with a zero");
                let real = *REAL.get_or_init(|| next(name));
                let real = unsafe { std::mem::transmute::<usize, Function>(real) };
                unsafe { real($($arg),*) }
            }
        )*};
    }

    of! {
        opendir(path: *const c_char) -> *mut DIR;
        fdopendir(fd: c_int) -> *mut DIR;
        readdir64(of: *mut DIR) -> *mut dirent64;
        readdir64_r(of: *mut DIR, row: *mut dirent64, to: *mut *mut dirent64) -> c_int;
        rewinddir(of: *mut DIR) -> ();
        telldir(of: *mut DIR) -> libc::c_long;
        seekdir(of: *mut DIR, to: libc::c_long) -> ();
        closedir(of: *mut DIR) -> c_int;
        scandirat64(
            dir: c_int,
            path: *const c_char,
            to: *mut *mut *mut dirent64,
            select: Option<super::Select>,
            compare: Option<super::Compare>
        ) -> c_int;
    }
}

/// What there is in a folder here, as bytes: the error, and the rows.
fn list(dir: *mut DIR, error: c_int) -> Vec<u8> {
    let mut bytes = bytes_of(&[error as u64]);
    if dir.is_null() {
        return bytes;
    }
    unsafe { native::rewinddir(dir) };
    loop {
        let row = unsafe { native::readdir64(dir).as_ref() };
        let Some(row) = row else { return bytes };
        let name = unsafe { CStr::from_ptr(row.d_name.as_ptr()) }.to_bytes();
        bytes.extend(row.d_ino.to_le_bytes());
        bytes.extend([row.d_type, name.len() as u8]);
        bytes.extend(name);
    }
}

/// The rows of what [`list`] made.
fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(HEAD) {
        let (inode, kind) = (head.first_chunk().copied().unwrap_or_default(), head[8]);
        let length = usize::from(head[9]).min(rest.len());
        let (name, rest) = rest.split_at(length);
        found.push(Entry { inode: u64::from_le_bytes(inode), kind, name: name.to_vec() });
        bytes = rest;
    }
    found
}

/// The meta's answer to what there is in a folder; nothing where its name is another in each
/// replica.
fn ask(name: Option<&CStr>, dir: *mut DIR, error: c_int) -> Option<Vec<u8>> {
    state::with(|state| {
        if is_each_ones_own(state, name, dir) {
            return None;
        }
        let look = || list(dir, error);
        Some(match name {
            Some(name) => state.look_or_recall(question(&[FILES, 18], name), look),
            None => state.settled(&[FILES, 19], look),
        })
    })
}

/// Whether a folder is another in each replica, by the name that it was opened by or by where it
/// lies.
fn is_each_ones_own(state: &State, name: Option<&CStr>, dir: *mut DIR) -> bool {
    let is_open = || !dir.is_null() && state.own_names.have_open(unsafe { libc::dirfd(dir) });
    name.is_some_and(|it| state.own_names.have(libc::AT_FDCWD, it)) || is_open()
}

/// Whether what lies there is of use to this process alone: what it has open, its threads.
fn is_each_ones(path: &[u8]) -> bool {
    let of_process = |it: &[u8]| it.starts_with(b"self") || it.starts_with(b"thread-self");
    let in_proc = path.strip_prefix(b"/proc/").is_some_and(of_process);
    in_proc || path.starts_with(b"/dev/fd")
}

/// Gives the program a folder that was opened here or not, as the meta has it.
fn give(name: Option<&CStr>, open: impl Fn() -> *mut DIR) -> *mut DIR {
    let_out_waiting();
    // On the program's heap, as all that it has of a folder: it may look at where that lies.
    let dir = open();
    let error = if dir.is_null() { last_error() } else { 0 };
    let asked = {
        let _inside = Inside::enter();
        ask(name, dir, error)
    };
    let Some(told) = asked else {
        failed(error);
        return dir;
    };
    let (error, rows) = told.split_at(told.len().min(size_of::<u64>()));
    let error = words(error)[0] as c_int;
    if error != 0 {
        if !dir.is_null() {
            unsafe { native::closedir(dir) };
        }
        failed(error);
        return null_mut();
    }
    // It has gone here since the meta looked.
    let dir = if dir.is_null() { unsafe { native::opendir(c"/".as_ptr()) } } else { dir };
    let row = taken(size_of::<dirent64>()).cast();
    let name = name.map(CStr::to_owned);
    folders().insert(dir as usize, Folder { entries: entries(rows), next: 0, name, row });
    dir
}

/// See opendir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    stack::on_own(|| {
        let name = if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } };
        let seen = own::path(name);
        let open = || unsafe { native::opendir(seen.as_ptr()) };
        let is_asked = !path.is_null() && real::is_program_asking();
        let is_shared = is_asked && !is_each_ones(seen.to_bytes());
        let dir = if is_shared { give(Some(name), open) } else { open() };
        if is_shared && !dir.is_null() {
            opened::keep(unsafe { libc::dirfd(dir) }, libc::AT_FDCWD, name);
        }
        dir
    })
}

/// See opendir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopendir(fd: c_int) -> *mut DIR {
    stack::on_own(|| {
        let real = || unsafe { native::fdopendir(fd) };
        if !real::is_program_asking() {
            return real();
        }
        let path = descriptors::open_path(fd).unwrap_or_default();
        if is_procs(path.as_os_str().as_bytes()) {
            return real();
        }
        let_out_waiting();
        {
            let _inside = Inside::enter();
            state::with(|state| state.meet_folder(fd));
        }
        give(None, real)
    })
}

/// Whether it is a process's folder of the kernel's, by the number that the process has here.
fn is_procs(path: &[u8]) -> bool {
    let of_process = |it: &[u8]| it.first().is_some_and(u8::is_ascii_digit);
    path.strip_prefix(b"/proc/").is_some_and(of_process)
}

/// The next row of a folder that is ours: null at its end, nothing where it is not ours.
fn step(dir: *mut DIR) -> Option<*mut dirent64> {
    let mut folders = folders();
    let folder = folders.get_mut(&(dir as usize))?;
    let Some(entry) = folder.entries.get(folder.next) else { return Some(null_mut()) };
    folder.next += 1;
    let row = unsafe { &mut *folder.row };
    row.d_ino = entry.inode;
    row.d_off = folder.next as i64;
    row.d_type = entry.kind;
    let length = entry.name.len().min(NAME_MAX);
    for (to, from) in row.d_name.iter_mut().zip(&entry.name[..length]) {
        *to = *from as c_char;
    }
    row.d_name[length] = 0;
    row.d_reclen = (offset_of!(dirent64, d_name) + length + 1).next_multiple_of(8) as u16;
    Some(row)
}

/// See readdir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir64(dir: *mut DIR) -> *mut dirent64 {
    stack::on_own(|| step(dir).unwrap_or_else(|| unsafe { native::readdir64(dir) }))
}

/// See readdir(3); a row is the same with offsets of 64 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir(dir: *mut DIR) -> *mut dirent64 {
    unsafe { readdir64(dir) }
}

/// See readdir_r(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir64_r(
    dir: *mut DIR,
    row: *mut dirent64,
    to: *mut *mut dirent64,
) -> c_int {
    stack::on_own(|| {
        let Some(found) = step(dir) else {
            return unsafe { native::readdir64_r(dir, row, to) };
        };
        unsafe {
            if let Some(found) = found.as_ref() {
                copy(found, row);
            }
            *to = if found.is_null() { null_mut() } else { row };
        }
        0
    })
}

/// See readdir_r(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readdir_r(
    dir: *mut DIR,
    row: *mut dirent64,
    to: *mut *mut dirent64,
) -> c_int {
    unsafe { readdir64_r(dir, row, to) }
}

/// Copies a row, which is as long as its name has it.
unsafe fn copy(row: &dirent64, to: *mut dirent64) {
    let from = std::ptr::from_ref(row).cast::<u8>();
    unsafe { from.copy_to_nonoverlapping(to.cast(), row.d_reclen.into()) };
}

/// See rewinddir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rewinddir(dir: *mut DIR) {
    stack::on_own(|| {
        let known = folders().get(&(dir as usize)).map(|it| it.name.clone());
        let Some(name) = known else { return unsafe { native::rewinddir(dir) } };
        let told = real::is_program_asking().then(|| {
            let_out_waiting();
            let _inside = Inside::enter();
            ask(name.as_deref(), dir, 0)
        });
        let mut folders = folders();
        let Some(folder) = folders.get_mut(&(dir as usize)) else { return };
        folder.next = 0;
        if let Some(told) = told.flatten() {
            folder.entries = entries(told.get(size_of::<u64>()..).unwrap_or_default());
        }
    });
}

/// See telldir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telldir(dir: *mut DIR) -> c_long {
    stack::on_own(|| {
        let known = folders().get(&(dir as usize)).map(|it| it.next as c_long);
        known.unwrap_or_else(|| unsafe { native::telldir(dir) })
    })
}

/// See seekdir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn seekdir(dir: *mut DIR, to: c_long) {
    stack::on_own(|| match folders().get_mut(&(dir as usize)) {
        Some(folder) => folder.next = usize::try_from(to).unwrap_or_default(),
        None => unsafe { native::seekdir(dir, to) },
    });
}

/// See closedir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(dir: *mut DIR) -> c_int {
    stack::on_own(|| {
        let known = folders().remove(&(dir as usize));
        if let Some(Folder { row, .. }) = known {
            stack::on_programs(|| unsafe { libc::free(row.cast()) });
        }
        unsafe { native::closedir(dir) }
    })
}

/// Which rows the program wants.
type Select = unsafe extern "C" fn(*const dirent64) -> c_int;

/// Which of two comes first.
type Compare = unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int;

/// See scandir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scandirat64(
    dir: c_int,
    path: *const c_char,
    to: *mut *mut *mut dirent64,
    select: Option<Select>,
    compare: Option<Compare>,
) -> c_int {
    stack::on_own(|| unsafe {
        if !real::is_program_asking() {
            return native::scandirat64(dir, path, to, select, compare);
        }
        let opened = if dir == libc::AT_FDCWD {
            opendir(path)
        } else {
            let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
            match crate::names::openat(dir, path, flags, 0) {
                -1 => null_mut(),
                fd => fdopendir(fd),
            }
        };
        if opened.is_null() { -1 } else { scan(opened, to, select, compare) }
    })
}

/// See scandir(3), of a folder that is open, and closed then.
unsafe fn scan(
    dir: *mut DIR,
    to: *mut *mut *mut dirent64,
    select: Option<Select>,
    compare: Option<Compare>,
) -> c_int {
    const WORD: usize = size_of::<*mut dirent64>();
    let mut rows: Vec<*mut dirent64> = Vec::new();
    while let Some(row) = unsafe { readdir64(dir).as_ref() } {
        let is_wanted = |select: Select| stack::on_programs(|| unsafe { select(row) }) != 0;
        if select.is_none_or(is_wanted) {
            rows.push(taken(row.d_reclen.into()).cast());
            unsafe { copy(row, *rows.last().expect("one was put there")) };
        }
    }
    unsafe { closedir(dir) };
    let all = taken(rows.len().max(1) * WORD).cast::<*mut dirent64>();
    unsafe { rows.as_ptr().copy_to_nonoverlapping(all, rows.len()) };
    if let Some(compare) = compare {
        type Order = unsafe extern "C" fn(*const c_void, *const c_void) -> c_int;
        let compare = unsafe { std::mem::transmute::<Compare, Order>(compare) };
        stack::on_programs(|| unsafe { libc::qsort(all.cast(), rows.len(), WORD, Some(compare)) });
    }
    unsafe { *to = all };
    rows.len() as c_int
}

/// Memory that the program frees.
fn taken(size: size_t) -> *mut c_void {
    let at = stack::on_programs(|| unsafe { libc::malloc(size) });
    assert!(!at.is_null(), "there is no memory for a row of a folder");
    at
}

/// See scandir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scandirat(
    dir: c_int,
    path: *const c_char,
    to: *mut *mut *mut dirent64,
    select: Option<Select>,
    compare: Option<Compare>,
) -> c_int {
    unsafe { scandirat64(dir, path, to, select, compare) }
}

/// See scandir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scandir64(
    path: *const c_char,
    to: *mut *mut *mut dirent64,
    select: Option<Select>,
    compare: Option<Compare>,
) -> c_int {
    unsafe { scandirat64(libc::AT_FDCWD, path, to, select, compare) }
}

/// See scandir(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scandir(
    path: *const c_char,
    to: *mut *mut *mut dirent64,
    select: Option<Select>,
    compare: Option<Compare>,
) -> c_int {
    unsafe { scandirat64(libc::AT_FDCWD, path, to, select, compare) }
}

/// Whom the program wants to hear of a folder that cannot be read.
type AtError = unsafe extern "C" fn(*const c_char, c_int) -> c_int;

/// `glob_t` of glob.h, with the functions that it lists folders by.
#[repr(C)]
pub struct Glob {
    found: [usize; 3],
    flags: c_int,
    close: unsafe extern "C" fn(*mut DIR) -> c_int,
    read: unsafe extern "C" fn(*mut DIR) -> *mut dirent64,
    open: unsafe extern "C" fn(*const c_char) -> *mut DIR,
    lstat: unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int,
    stat: unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int,
}

type ByPattern = unsafe extern "C" fn(*const c_char, c_int, Option<AtError>, *mut Glob) -> c_int;

/// Has a search list folders by the functions of this file; its flags, and who makes it.
fn by_ours(mut flags: c_int, to: *mut Glob) -> (c_int, ByPattern) {
    const BY_FUNCTIONS: c_int = 1 << 9;
    static REAL: OnceLock<usize> = OnceLock::new();
    let real = *REAL.get_or_init(|| next(c"glob64"));
    if flags & BY_FUNCTIONS == 0 && real::is_program_asking() {
        unsafe {
            (*to).close = closedir;
            (*to).read = readdir64;
            (*to).open = opendir;
            (*to).lstat = crate::names::lstat;
            (*to).stat = crate::names::stat;
        }
        flags |= BY_FUNCTIONS;
    }
    (flags, unsafe { std::mem::transmute::<usize, ByPattern>(real) })
}

/// See glob(3): what it lists, it lists by the functions of this file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glob64(
    pattern: *const c_char,
    flags: c_int,
    at_error: Option<AtError>,
    to: *mut Glob,
) -> c_int {
    let (flags, real) = stack::on_own(|| by_ours(flags, to));
    unsafe { real(pattern, flags, at_error, to) }
}

/// See glob(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glob(
    pattern: *const c_char,
    flags: c_int,
    at_error: Option<AtError>,
    to: *mut Glob,
) -> c_int {
    unsafe { glob64(pattern, flags, at_error, to) }
}
