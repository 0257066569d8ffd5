//! Names of files: changed once for all replicas, and asked about with one answer.
//!
//! A change is compared first, so a replica that erred removes nothing.  What stood behind its
//! names is told before the meta makes it, so that who is promoted in the middle knows whether it
//! was made.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint};

use libc::{mode_t, off_t};
use selvedge_stmr::message::EventKind;
use selvedge_stmr::writes::{self, Again, Change};

use crate::devices;
use crate::files::{
    FILES, Opening, bytes_of, failed, identity, identity_of, identity_words, is_begun, is_known,
    last_error, let_out_waiting, open_for, words,
};
use crate::input;
use crate::opened::{self, question_at};
use crate::own;
use crate::real;
use crate::real::Inside;
use crate::stack;
use crate::state::{self, State};
use crate::streams::next;

const HERE: c_int = libc::AT_FDCWD;

unsafe fn name<'a>(path: *const c_char) -> &'a CStr {
    if path.is_null() { c"" } else { unsafe { CStr::from_ptr(path) } }
}

/// A name from a folder.
#[derive(Clone, Copy)]
struct Place {
    dir: c_int,
    path: *const c_char,
}

impl Place {
    fn here(path: *const c_char) -> Self {
        Self { dir: HERE, path }
    }
}

fn is_devices(place: Place) -> bool {
    let path = unsafe { name(place.path) };
    devices::is_device(path) || devices::is_kernels(path)
}

/// Changes names once for all replicas.  `numbers` say what else the call is; `make` is given the
/// names that a majority has.
fn change(
    kind: Option<Change>,
    places: &[Place],
    numbers: &[u64],
    make: impl Fn(&[*const c_char]) -> c_long,
) -> c_int {
    let own: Vec<*const c_char> = places.iter().map(|it| it.path).collect();
    if !is_begun() || places.iter().any(|it| is_devices(*it)) {
        return make(&own) as c_int;
    }
    let _inside = Inside::enter();
    let error = state::with(|state| change_in(state, kind, places, numbers, make));
    if error == 0 { 0 } else { failed(error) }
}

/// See [`change`]; the error, or 0.
fn change_in(
    state: &mut State,
    kind: Option<Change>,
    places: &[Place],
    numbers: &[u64],
    make: impl Fn(&[*const c_char]) -> c_long,
) -> c_int {
    let own: Vec<*const c_char> = places.iter().map(|it| it.path).collect();
    let own_names: Vec<&CStr> = own.iter().map(|it| unsafe { name(*it) }).collect();
    let native = || if make(&own) == 0 { 0 } else { last_error() };
    if places.iter().zip(&own_names).any(|(it, name)| state.own_names.have_from(it.dir, name)) {
        return native();
    }
    let row = bytes_of(numbers);
    let fixed = row.len();
    state.mix(&[FILES, 7]);
    let given: Vec<_> = places.iter().map(|it| it.dir).zip(own_names).collect();
    let Some(row) = state.compare_change(row, &given) else { return native() };
    let names: Vec<CString> = row[fixed..]
        .split(|it| *it == 0)
        .take(places.len())
        .map(|it| CString::new(it).expect("it was split at zeros"))
        .collect();
    let right: Vec<*const c_char> = names.iter().map(|it| it.as_ptr()).collect();
    let look = || {
        let at = |idx: usize| places.get(idx).and_then(|it| identity(it.dir, &names[idx]));
        [at(0), at(1)]
    };
    let (before, is_first) =
        state.event(EventKind::Decision, |_| Some(bytes_of(&look().map(identity_words).concat())));
    let before = words(&before);
    let before = [identity_of(&before[..3]), identity_of(&before[3..])];
    let (answer, _) = state.event(EventKind::Decision, |_| {
        let is_made = |it: Change| writes::again(it, before, look()) == Again::Made;
        let is_done = !is_first && kind.is_some_and(is_made) || make(&right) == 0;
        Some(bytes_of(&[if is_done { 0 } else { last_error() } as u64]))
    });
    words(&answer)[0] as c_int
}

/// Removes a file; the error, or 0.
pub(crate) fn remove_file(state: &mut State, path: &CStr) -> c_int {
    let place = Place::here(path.as_ptr());
    change_in(state, Some(Change::Remove), &[place], &[1, 0], |it| unsafe {
        libc::syscall(libc::SYS_unlinkat, HERE, it[0], 0)
    })
}

/// No error, and the answer is where it is wanted: of a name that is each replica's own.
const OWN: c_int = -1;

/// Asks the meta about names from folders, or files: its error and what it was given.
pub(crate) fn ask<T: Copy>(
    row: &[u64],
    name: Option<(c_int, &CStr)>,
    to: *mut T,
    answer: impl Fn(*mut T) -> c_int,
) -> c_int {
    if !real::is_program_asking() {
        return answer(to);
    }
    let_out_waiting();
    let _inside = Inside::enter();
    let given = Cell::new(None);
    let error = state::with(|state| {
        if name.is_some_and(|(dir, it)| state.own_names.have(dir, it)) {
            return if answer(to) == 0 { OWN } else { last_error() };
        }
        let of = [&[FILES, 8], row].concat();
        let look = || {
            let mut value: T = unsafe { std::mem::zeroed() };
            let error = if answer(&raw mut value) == 0 { 0 } else { last_error() };
            let at = (&raw const value).cast::<u8>();
            let mut row = bytes_of(&[error as u64]);
            row.extend(unsafe { std::slice::from_raw_parts(at, size_of::<T>()) });
            row
        };
        let told = match name {
            Some((dir, name)) => state.look_or_recall(question_at(&of, dir, name), look),
            None => state.settled(&of, look),
        };
        if told.len() == 8 + size_of::<T>() {
            given.set(Some(unsafe { told[8..].as_ptr().cast::<T>().read_unaligned() }));
        }
        words(&told[..8])[0] as c_int
    });
    match (error, given.get()) {
        (OWN, _) => 0,
        (0, Some(value)) => {
            if !to.is_null() {
                unsafe { *to = value };
            }
            0
        }
        (error, _) => failed(error),
    }
}

/// See open(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    stack::on_own(|| {
        let makes = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let mode = if makes { mode } else { 0 };
        let path = own::path(unsafe { name(path) });
        let fd = open_for(&Opening { dir, path: &path, flags, mode });
        if fd < 0 {
            return fd;
        }
        input::note_opened(fd, &path);
        let is_to_read = flags & libc::O_ACCMODE == libc::O_RDONLY;
        if is_to_read && (real::is_program_asking() || real::early_asking().is_some()) {
            opened::keep(fd, dir, &path);
        }
        fd
    })
}

/// See open(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    unsafe { openat(dir, path, flags, mode) }
}

/// See open(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    unsafe { openat(HERE, path, flags, mode) }
}

/// See open(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    unsafe { openat(HERE, path, flags, mode) }
}

/// What a program that is compiled with checks calls for open(2) without a mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    unsafe { openat(HERE, path, flags, 0) }
}

/// See [`__open_2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    unsafe { openat(HERE, path, flags, 0) }
}

/// See [`__open_2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __openat_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    unsafe { openat(dir, path, flags, 0) }
}

/// See [`__open_2`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    unsafe { openat(dir, path, flags, 0) }
}

/// See open(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn creat(path: *const c_char, mode: mode_t) -> c_int {
    stack::on_own(|| unsafe {
        openat(HERE, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode)
    })
}

/// See open(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn creat64(path: *const c_char, mode: mode_t) -> c_int {
    unsafe { creat(path, mode) }
}

/// See unlink(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    stack::on_own(|| {
        change(Some(Change::Remove), &[Place { dir, path }], &[1, flags as u64], |it| unsafe {
            libc::syscall(libc::SYS_unlinkat, dir, it[0], flags)
        })
    })
}

/// See unlink(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    unsafe { unlinkat(HERE, path, 0) }
}

/// See rmdir(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    stack::on_own(|| unsafe { unlinkat(HERE, path, libc::AT_REMOVEDIR) })
}

/// See remove(3): a file, or else a folder.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remove(path: *const c_char) -> c_int {
    stack::on_own(|| {
        change(Some(Change::Remove), &[Place::here(path)], &[2], |it| unsafe {
            let done = libc::syscall(libc::SYS_unlinkat, HERE, it[0], 0);
            let is_folder = done != 0 && [libc::EISDIR, libc::EPERM].contains(&last_error());
            match is_folder {
                true => libc::syscall(libc::SYS_unlinkat, HERE, it[0], libc::AT_REMOVEDIR),
                false => done,
            }
        })
    })
}

/// See rename(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    stack::on_own(|| {
        let places = [Place { dir: from_dir, path: from }, Place { dir: to_dir, path: to }];
        change(Some(Change::Rename), &places, &[3, flags.into()], |it| unsafe {
            libc::syscall(libc::SYS_renameat2, from_dir, it[0], to_dir, it[1], flags)
        })
    })
}

/// See rename(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
) -> c_int {
    unsafe { renameat2(from_dir, from, to_dir, to, 0) }
}

/// See rename(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    unsafe { renameat2(HERE, from, HERE, to, 0) }
}

/// See mkdir(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdirat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int {
    stack::on_own(|| {
        change(Some(Change::Make), &[Place { dir, path }], &[4, mode.into()], |it| unsafe {
            libc::syscall(libc::SYS_mkdirat, dir, it[0], mode)
        })
    })
}

/// See mkdir(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    unsafe { mkdirat(HERE, path, mode) }
}

/// Makes another folder the working one.
fn move_to(place: Result<c_int, &CStr>) -> c_int {
    let_out_waiting();
    let _inside = Inside::enter();
    let error = state::with(|state| state.move_to(place));
    if error == 0 { 0 } else { failed(error) }
}

/// See chdir(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chdir(path: *const c_char) -> c_int {
    stack::on_own(|| match is_begun() && !path.is_null() {
        true => move_to(Err(&own::path(unsafe { name(path) }))),
        false => unsafe { libc::syscall(libc::SYS_chdir, path) as c_int },
    })
}

/// See chdir(2).
#[unsafe(no_mangle)]
pub extern "C" fn fchdir(fd: c_int) -> c_int {
    stack::on_own(|| match is_begun() {
        true => move_to(Ok(fd)),
        false => unsafe { libc::syscall(libc::SYS_fchdir, fd) as c_int },
    })
}

/// See mknod(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mknodat(
    dir: c_int,
    path: *const c_char,
    mode: mode_t,
    device: libc::dev_t,
) -> c_int {
    stack::on_own(|| {
        let numbers = [10, mode.into(), device];
        change(Some(Change::Make), &[Place { dir, path }], &numbers, |it| unsafe {
            libc::syscall(libc::SYS_mknodat, dir, it[0], mode, device)
        })
    })
}

/// See mknod(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mknod(path: *const c_char, mode: mode_t, device: libc::dev_t) -> c_int {
    unsafe { mknodat(HERE, path, mode, device) }
}

/// What programs that were linked before glibc 2.33 call for mknod(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __xmknod(
    _form: c_int,
    path: *const c_char,
    mode: mode_t,
    device: *const libc::dev_t,
) -> c_int {
    unsafe { mknodat(HERE, path, mode, *device) }
}

/// See [`__xmknod`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __xmknodat(
    _form: c_int,
    dir: c_int,
    path: *const c_char,
    mode: mode_t,
    device: *const libc::dev_t,
) -> c_int {
    unsafe { mknodat(dir, path, mode, *device) }
}

/// See mkfifo(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkfifoat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int {
    unsafe { mknodat(dir, path, mode | libc::S_IFIFO, 0) }
}

/// See mkfifo(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkfifo(path: *const c_char, mode: mode_t) -> c_int {
    unsafe { mkfifoat(HERE, path, mode) }
}

/// See link(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn linkat(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    stack::on_own(|| {
        // The name that comes is the first of the two.
        let places = [Place { dir: to_dir, path: to }, Place { dir: from_dir, path: from }];
        change(Some(Change::Make), &places, &[5, flags as u64], |it| unsafe {
            libc::syscall(libc::SYS_linkat, from_dir, it[1], to_dir, it[0], flags)
        })
    })
}

/// See link(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn link(from: *const c_char, to: *const c_char) -> c_int {
    unsafe { linkat(HERE, from, HERE, to, 0) }
}

/// See symlink(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn symlinkat(leads: *const c_char, dir: c_int, path: *const c_char) -> c_int {
    stack::on_own(|| {
        let places = [Place { dir, path }, Place::here(leads)];
        change(Some(Change::Make), &places, &[6], |it| unsafe {
            libc::syscall(libc::SYS_symlinkat, it[1], dir, it[0])
        })
    })
}

/// See symlink(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn symlink(leads: *const c_char, path: *const c_char) -> c_int {
    unsafe { symlinkat(leads, HERE, path) }
}

/// See truncate(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truncate(path: *const c_char, length: off_t) -> c_int {
    stack::on_own(|| {
        change(None, &[Place::here(path)], &[7, length as u64], |it| unsafe {
            libc::syscall(libc::SYS_truncate, it[0], length)
        })
    })
}

/// See truncate(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truncate64(path: *const c_char, length: off_t) -> c_int {
    unsafe { truncate(path, length) }
}

/// See chmod(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chmod(path: *const c_char, mode: mode_t) -> c_int {
    stack::on_own(|| {
        change(None, &[Place::here(path)], &[8, mode.into()], |it| unsafe {
            libc::syscall(libc::SYS_fchmodat, HERE, it[0], mode)
        })
    })
}

/// See utimensat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn utimensat(
    dir: c_int,
    path: *const c_char,
    times: *const [libc::timespec; 2],
    flags: c_int,
) -> c_int {
    stack::on_own(|| {
        let native = |at: *const c_char| unsafe {
            libc::syscall(libc::SYS_utimensat, dir, at, times, flags)
        };
        if path.is_null() {
            return native(path) as c_int;
        }
        change(None, &[Place { dir, path }], &[9, flags as u64], |it| native(it[0]))
    })
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstatat(
    dir: c_int,
    path: *const c_char,
    to: *mut libc::stat,
    flags: c_int,
) -> c_int {
    stack::on_own(|| {
        let path = own::path(unsafe { name(path) });
        ask(&[1, flags as u64], Some((dir, &path)), to, |to| unsafe {
            libc::syscall(libc::SYS_newfstatat, dir, path.as_ptr(), to, flags) as c_int
        })
    })
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstatat64(
    dir: c_int,
    path: *const c_char,
    to: *mut libc::stat,
    flags: c_int,
) -> c_int {
    unsafe { fstatat(dir, path, to, flags) }
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { fstatat(HERE, path, to, 0) }
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat64(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { fstatat(HERE, path, to, 0) }
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat(path: *const c_char, to: *mut libc::stat) -> c_int {
    stack::on_own(|| unsafe { fstatat(HERE, path, to, libc::AT_SYMLINK_NOFOLLOW) })
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lstat64(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { lstat(path, to) }
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat(fd: c_int, to: *mut libc::stat) -> c_int {
    stack::on_own(|| {
        let native =
            |to: *mut libc::stat| unsafe { libc::syscall(libc::SYS_fstat, fd, to) as c_int };
        if !is_known(fd) {
            return native(to);
        }
        ask(&[2], None, to, native)
    })
}

/// See stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fstat64(fd: c_int, to: *mut libc::stat) -> c_int {
    unsafe { fstat(fd, to) }
}

/// What programs that were linked before glibc 2.33 call for stat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __xstat(_form: c_int, path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat(path, to) }
}

/// See [`__xstat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __xstat64(
    _form: c_int,
    path: *const c_char,
    to: *mut libc::stat,
) -> c_int {
    unsafe { stat(path, to) }
}

/// See [`__xstat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __lxstat(_form: c_int, path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { lstat(path, to) }
}

/// See [`__xstat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __lxstat64(
    _form: c_int,
    path: *const c_char,
    to: *mut libc::stat,
) -> c_int {
    unsafe { lstat(path, to) }
}

/// See [`__xstat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __fxstat(_form: c_int, fd: c_int, to: *mut libc::stat) -> c_int {
    unsafe { fstat(fd, to) }
}

/// See [`__xstat`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __fxstat64(_form: c_int, fd: c_int, to: *mut libc::stat) -> c_int {
    unsafe { fstat(fd, to) }
}

/// See statx(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut libc::statx,
) -> c_int {
    stack::on_own(|| {
        let asked = Some((dir, unsafe { name(path) }));
        ask(&[3, flags as u64, mask.into()], asked, to, |to| unsafe {
            libc::syscall(libc::SYS_statx, dir, path, flags, mask, to) as c_int
        })
    })
}

/// Functions that say how much room there is where a name or a file lies.
macro_rules! room {
    ($($name:ident(path, $row:ident: $number:literal);)*) => {
        $(
            /// See statvfs(3) and statfs(2).
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(path: *const c_char, to: *mut libc::$row) -> c_int {
                type Function = unsafe extern "C" fn(*const c_char, *mut libc::$row) -> c_int;
                stack::on_own(|| {
                    let real = native(concat!(stringify!($name), "\0"));
                    let real = unsafe { std::mem::transmute::<usize, Function>(real) };
                    let path_name = Some((HERE, unsafe { name(path) }));
                    ask(&[$number], path_name, to, |to| unsafe { real(path, to) })
                })
            }
        )*
    };
    ($($name:ident(fd, $row:ident: $number:literal);)*) => {
        $(
            /// See statvfs(3) and statfs(2).
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(fd: c_int, to: *mut libc::$row) -> c_int {
                type Function = unsafe extern "C" fn(c_int, *mut libc::$row) -> c_int;
                stack::on_own(|| {
                    let real = native(concat!(stringify!($name), "\0"));
                    let real = unsafe { std::mem::transmute::<usize, Function>(real) };
                    ask(&[$number], None, to, |to| unsafe { real(fd, to) })
                })
            }
        )*
    };
}

/// The C library's own function, whose name ends with a zero.
fn native(name: &str) -> usize {
    next(CStr::from_bytes_with_nul(name.as_bytes()).expect("it ends with a zero"))
}

room! {
    statvfs(path, statvfs: 10);
    statvfs64(path, statvfs64: 11);
    statfs(path, statfs: 12);
    statfs64(path, statfs64: 13);
}

room! {
    fstatvfs(fd, statvfs: 14);
    fstatvfs64(fd, statvfs64: 15);
    fstatfs(fd, statfs: 16);
    fstatfs64(fd, statfs64: 17);
}

/// See access(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faccessat(
    dir: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    stack::on_own(|| {
        let nothing = std::ptr::null_mut::<u8>();
        let path = own::path(unsafe { name(path) });
        let at = path.as_ptr();
        ask(&[4, mode as u64, flags as u64], Some((dir, &path)), nothing, |_| unsafe {
            match flags {
                0 => libc::syscall(libc::SYS_faccessat, dir, at, mode) as c_int,
                _ => libc::syscall(libc::SYS_faccessat2, dir, at, mode, flags) as c_int,
            }
        })
    })
}

/// See access(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    unsafe { faccessat(HERE, path, mode, 0) }
}
