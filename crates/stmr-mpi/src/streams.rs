//! Streams of the C library on files of the program's, and files with names of chance.
//!
//! The C library writes its streams by ways that no other library can stand in.  So a stream on a
//! file that is written is one whose reading and writing it asks for.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex;

use libc::{FILE, off_t, size_t, ssize_t};

use crate::descriptors;
use crate::files::{self, Opening, failed, is_begun, is_known, last_error, open_for};
use crate::own;
use crate::prints;
use crate::program_heap;
use crate::real;
use crate::stack;
use crate::threads;

/// What the C library keeps of a file before it writes it, in bytes.
const BLOCK: usize = 4096;

/// What stands behind a stream.
struct Cookie {
    fd: c_int,
    stream: *mut FILE,
}

#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut off_t, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

/// The descriptors of our streams, by address, and where their cookies are.
static STREAMS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

fn cookie_of(stream: *mut FILE) -> Option<*mut Cookie> {
    let streams = STREAMS.lock().unwrap_or_else(|it| it.into_inner());
    streams.get(&(stream as usize)).map(|it| *it as *mut Cookie)
}

unsafe extern "C" fn read(cookie: *mut c_void, to: *mut c_char, length: size_t) -> ssize_t {
    unsafe { descriptors::read((*cookie.cast::<Cookie>()).fd, to.cast(), length) }
}

unsafe extern "C" fn write(cookie: *mut c_void, from: *const c_char, length: size_t) -> ssize_t {
    // The C library takes 0 for a failure here.
    unsafe { descriptors::write((*cookie.cast::<Cookie>()).fd, from.cast(), length) }.max(0)
}

unsafe extern "C" fn seek(cookie: *mut c_void, at: *mut off_t, whence: c_int) -> c_int {
    let found =
        descriptors::lseek(unsafe { (*cookie.cast::<Cookie>()).fd }, unsafe { *at }, whence);
    if found < 0 {
        return -1;
    }
    unsafe { *at = found };
    0
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    stack::on_own(|| {
        let Cookie { fd, stream } = unsafe { cookie.cast::<Cookie>().read() };
        unsafe { program_heap::release(cookie) };
        STREAMS.lock().unwrap_or_else(|it| it.into_inner()).remove(&(stream as usize));
        descriptors::close(fd)
    })
}

/// A stream of ours on a descriptor.
fn stream_on(fd: c_int, mode: *const c_char) -> *mut FILE {
    // The C library puts its address on the program's stack.
    let cookie = program_heap::zeros(size_of::<Cookie>(), align_of::<Cookie>()).cast::<Cookie>();
    if cookie.is_null() {
        return std::ptr::null_mut();
    }
    unsafe { cookie.write(Cookie { fd, stream: std::ptr::null_mut() }) };
    let functions =
        Functions { read: Some(read), write: Some(write), seek: Some(seek), close: Some(close) };
    let stream = unsafe { fopencookie(cookie.cast(), mode, functions) };
    if stream.is_null() {
        unsafe { program_heap::release(cookie.cast()) };
        return stream;
    }
    unsafe { (*cookie).stream = stream };
    let mut streams = STREAMS.lock().unwrap_or_else(|it| it.into_inner());
    streams.insert(stream as usize, cookie as usize);
    stream
}

/// Whether a stream is one of ours.
pub(crate) fn is_ours(stream: *mut FILE) -> bool {
    cookie_of(stream).is_some()
}

/// The C library's own function.
pub(crate) fn next(name: &CStr) -> usize {
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
}

/// What fopen(3) opens a file with; nothing if the mode is none.
fn flags_of(mode: &CStr) -> Option<c_int> {
    let (first, rest) = mode.to_bytes().split_first()?;
    let rest = rest.split(|it| *it == b',').next().unwrap_or_default();
    let both = rest.contains(&b'+');
    let base = match first {
        b'r' => 0,
        b'w' => libc::O_CREAT | libc::O_TRUNC,
        b'a' => libc::O_CREAT | libc::O_APPEND,
        _ => return None,
    };
    let access = match (first, both) {
        (_, true) => libc::O_RDWR,
        (b'r', false) => libc::O_RDONLY,
        _ => libc::O_WRONLY,
    };
    let more = [(b'x', libc::O_EXCL), (b'e', libc::O_CLOEXEC)];
    let more = more.iter().filter(|it| rest.contains(&it.0)).fold(0, |sum, it| sum | it.1);
    Some(base | access | more)
}

/// See fopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    stack::on_own(|| {
        let flags = flags_of(unsafe { CStr::from_ptr(mode) });
        let path = own::path(unsafe { CStr::from_ptr(path) });
        let flags = match flags {
            Some(it) if real::is_program_asking() || is_begun() => it,
            other => {
                other.into_iter().for_each(|it| threads::note_opening(&path, it));
                type Function = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE;
                let real = unsafe { std::mem::transmute::<usize, Function>(next(c"fopen")) };
                return unsafe { real(path.as_ptr(), mode) };
            }
        };
        let fd = open_for(&Opening { dir: libc::AT_FDCWD, path: &path, flags, mode: 0o666 });
        if fd < 0 {
            return std::ptr::null_mut();
        }
        let stream = unsafe { fdopen(fd, mode) };
        if stream.is_null() {
            let error = last_error();
            descriptors::close(fd);
            failed(error);
        }
        stream
    })
}

/// See fopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    unsafe { fopen(path, mode) }
}

/// See fdopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    stack::on_own(|| {
        if is_known(fd) {
            let flags = flags_of(unsafe { CStr::from_ptr(mode) });
            if !flags.is_some_and(|it| fits(fd, it)) {
                failed(libc::EINVAL);
                return std::ptr::null_mut();
            }
            flags.into_iter().for_each(|it| begin_to_append(fd, it));
            return stream_on(fd, mode);
        }
        type Function = unsafe extern "C" fn(c_int, *const c_char) -> *mut FILE;
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"fdopen")) };
        unsafe { real(fd, mode) }
    })
}

/// Whether a descriptor was opened for all that a stream with these flags does.
fn fits(fd: c_int, flags: c_int) -> bool {
    let has = unsafe { descriptors::fcntl(fd, libc::F_GETFL, 0) } & libc::O_ACCMODE;
    has == libc::O_RDWR || has == flags & libc::O_ACCMODE
}

/// Has a stream with these flags write at the end, if it does.  One that only appends stands there
/// at once, as the C library's does.
fn begin_to_append(fd: c_int, flags: c_int) {
    if flags & libc::O_APPEND == 0 {
        return;
    }
    let has = unsafe { descriptors::fcntl(fd, libc::F_GETFL, 0) };
    if has & libc::O_APPEND == 0 {
        unsafe { descriptors::fcntl(fd, libc::F_SETFL, (has | libc::O_APPEND) as usize) };
    }
    if flags & libc::O_ACCMODE == libc::O_WRONLY {
        descriptors::lseek(fd, 0, libc::SEEK_END);
    }
}

/// Where streams of the C library's own keep what is written since they are on a file; they stay.
static ROOMS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Has a stream on something else keep what is written until it has a block of it, as the C
/// library does then, whatever was said of it before: MPICH says that there is no room at all.
fn fill_whole(stream: *mut FILE, fd: c_int) {
    let mut rooms = ROOMS.lock().unwrap_or_else(|it| it.into_inner());
    // The C library puts its address on the program's stack.
    let new = || program_heap::zeros(BLOCK, align_of::<u64>()) as usize;
    let room = *rooms.entry(stream as usize).or_insert_with(new) as *mut c_char;
    let how = if prints::isatty(fd) == 1 { libc::_IOLBF } else { libc::_IOFBF };
    unsafe { libc::setvbuf(stream, room, how, BLOCK) };
}

/// The C library's own freopen(3).
unsafe fn native_freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
    type Function = unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
    let real = unsafe { std::mem::transmute::<usize, Function>(next(c"freopen")) };
    unsafe { real(path, mode, stream) }
}

/// The name of an open file, for one who opens it again in another way.
fn name_of(fd: c_int) -> Option<CString> {
    CString::new(descriptors::open_path(fd)?.into_os_string().into_encoded_bytes()).ok()
}

/// See freopen(3).  What goes to a stream of the C library's own goes to memory first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    stack::on_own(|| {
        let flags = flags_of(unsafe { CStr::from_ptr(mode) });
        let cookie = cookie_of(stream);
        let same = cookie.filter(|_| path.is_null()).and_then(|it| name_of(unsafe { (*it).fd }));
        let path = same.as_ref().map_or(path, |it| it.as_ptr());
        let (Some(flags), true) = (flags, real::is_program_asking() && !path.is_null()) else {
            return unsafe { native_freopen(path, mode, stream) };
        };
        unsafe { libc::fflush(stream) };
        if let Some(cookie) = cookie {
            descriptors::close(unsafe { (*cookie).fd });
        }
        let path = unsafe { CStr::from_ptr(path) };
        let fd = open_for(&Opening { dir: libc::AT_FDCWD, path, flags, mode: 0o666 });
        if let Some(cookie) = cookie {
            unsafe { (*cookie).fd = fd };
        }
        if fd < 0 {
            return std::ptr::null_mut();
        }
        if is_known(fd) {
            begin_to_append(fd, flags);
        }
        if cookie.is_some() {
            unsafe { begin_again(stream, flags) };
            return stream;
        }
        let done = unsafe { reopen_native(stream, fd, flags, mode) };
        descriptors::close(fd);
        done
    })
}

/// A stream of ours, which had another file, is one with these flags from here on.
unsafe fn begin_again(stream: *mut FILE, flags: c_int) {
    // What the C library keeps of how a stream was opened, in its first word (libio.h).
    const NO_READS: c_int = 4;
    const NO_WRITES: c_int = 8;
    const APPENDS: c_int = 0x1000;
    unsafe extern "C" {
        fn __fpurge(stream: *mut FILE);
    }
    let access = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => NO_WRITES,
        libc::O_WRONLY => NO_READS,
        _ => 0,
    };
    let appends = if flags & libc::O_APPEND == 0 { 0 } else { APPENDS };
    unsafe {
        __fpurge(stream);
        let word = stream.cast::<c_int>();
        *word = *word & !(NO_READS | NO_WRITES | APPENDS) | access | appends;
        libc::clearerr(stream);
    }
}

/// Has a stream of the C library's own go to what `fd` has open.  It can be read from, but not
/// written to, as ours are.
unsafe fn reopen_native(
    stream: *mut FILE,
    fd: c_int,
    flags: c_int,
    mode: *const c_char,
) -> *mut FILE {
    let own = unsafe { fileno(stream) };
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
    descriptors::give_up(own);
    let done = if writes && is_known(fd) {
        let Some(memory) = files::memory_for(fd) else { return std::ptr::null_mut() };
        unsafe { reopen_by_number(stream, memory, mode) }
    } else if is_regular(fd) {
        unsafe { reopen_by_number(stream, fd, mode) }
    } else if 0 <= descriptors::dup3(fd, own, 0) {
        unsafe { begin_again(stream, flags) };
        stream
    } else {
        return std::ptr::null_mut();
    };
    if writes && !done.is_null() {
        fill_whole(stream, own);
    }
    done
}

fn is_regular(fd: c_int) -> bool {
    let kind = files::native_stat(fd).map(|it| it.st_mode & libc::S_IFMT);
    kind == Some(libc::S_IFREG)
}

/// The C library's own freopen(3) with what is open under another number.
unsafe fn reopen_by_number(stream: *mut FILE, fd: c_int, mode: *const c_char) -> *mut FILE {
    // It is there already, whoever was to make it.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let until = mode.iter().position(|it| *it == b',').unwrap_or(mode.len());
    let is_kept = |(at, it): &(usize, &u8)| until <= *at || **it != b'x';
    let mode: Vec<u8> = mode.iter().enumerate().filter(is_kept).map(|it| *it.1).collect();
    match (CString::new(format!("/proc/self/fd/{fd}")), CString::new(mode)) {
        (Ok(path), Ok(mode)) => unsafe { native_freopen(path.as_ptr(), mode.as_ptr(), stream) },
        _ => std::ptr::null_mut(),
    }
}

/// See freopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freopen64(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    unsafe { freopen(path, mode, stream) }
}

/// See fileno(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno(stream: *mut FILE) -> c_int {
    stack::on_own(|| {
        if let Some(cookie) = cookie_of(stream) {
            return unsafe { (*cookie).fd };
        }
        type Function = unsafe extern "C" fn(*mut FILE) -> c_int;
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"fileno")) };
        unsafe { real(stream) }
    })
}

/// See fileno(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fileno_unlocked(stream: *mut FILE) -> c_int {
    unsafe { fileno(stream) }
}
