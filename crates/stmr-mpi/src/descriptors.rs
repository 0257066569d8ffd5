//! Descriptors as the C library's calls have them, on the files that the program has (`files`).

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use libc::{off_t, size_t, ssize_t};
use selvedge_stmr::message::EventKind;

use crate::file_locks;
use crate::files::{
    FILES, Kind, WAITING, bytes_of, divert, end_diverting, failed, is_begun, is_known, last_error,
    let_out_waiting, native_close, native_seek, table, take, words,
};
use crate::input::{self, Came};
use crate::names;
use crate::opened;
use crate::real::{self, Inside};
use crate::stack;
use crate::state;

/// See close(2).
#[unsafe(no_mangle)]
pub extern "C" fn close(fd: c_int) -> c_int {
    stack::on_own(|| {
        end_locks(fd);
        input::forget(fd);
        if !is_known(fd) {
            return native_close(fd);
        }
        let_out_waiting();
        let error = table().file(fd).map_or(0, |it| std::mem::take(&mut it.1.error));
        table().strike(fd);
        let code = native_close(fd);
        if error != 0 { failed(error) } else { code }
    })
}

/// A second descriptor of the same file.
fn known_too(from: c_int, to: c_int) -> c_int {
    if 0 <= to {
        let mut table = table();
        table.strike(to);
        if let Some(&id) = table.of.get(&from) {
            table.enter(to, id);
        }
    }
    to
}

/// What the program has made of a descriptor: of a file that is known, of standard input, of a
/// folder by its name.
fn made_from(from: c_int, to: c_int) -> c_int {
    if 0 <= to {
        input::follow(from, to);
        opened::follow(from, to);
    }
    if is_known(from) { known_too(from, to) } else { to }
}

/// See dup(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup(fd: c_int) -> c_int {
    stack::on_own(|| made_from(fd, unsafe { libc::syscall(libc::SYS_dup, fd) as c_int }))
}

/// See dup2(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    stack::on_own(|| {
        if fd == to {
            return unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFD) as c_int }.min(0)
                + to;
        }
        dup3(fd, to, 0)
    })
}

/// See dup2(2).
#[unsafe(no_mangle)]
pub extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    stack::on_own(|| {
        if real::is_program_asking() {
            give_up(to);
            if is_known(fd) && (to == libc::STDOUT_FILENO || to == libc::STDERR_FILENO) {
                return divert(to, fd);
            }
        }
        made_from(fd, unsafe { libc::syscall(libc::SYS_dup3, fd, to, flags) as c_int })
    })
}

/// A number is about to be that of something else.
pub(crate) fn give_up(fd: c_int) {
    end_locks(fd);
    end_diverting(fd);
    if is_known(fd) {
        let_out_waiting();
        table().strike(fd);
    }
}

/// See fcntl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, what: c_int, with: usize) -> c_int {
    stack::on_own(|| {
        let native = || unsafe { libc::syscall(libc::SYS_fcntl, fd, what, with) as c_int };
        if let Some(lock) = Asked::of(what) {
            return unsafe { lock_part(fd, lock, with as *mut libc::flock) };
        }
        if let libc::F_DUPFD | libc::F_DUPFD_CLOEXEC = what {
            return made_from(fd, native());
        }
        if !is_known(fd) {
            return native();
        }
        match what {
            libc::F_GETFL => {
                let flags = table().file(fd).map_or(0, |it| it.1.flags);
                native() & !libc::O_ACCMODE | flags & (libc::O_APPEND | libc::O_ACCMODE)
            }
            libc::F_SETFL => {
                if let Some((_, file)) = table().file(fd) {
                    file.appends = with as c_int & libc::O_APPEND != 0;
                    file.flags = file.flags & !libc::O_APPEND | with as c_int & libc::O_APPEND;
                }
                let with = with & !(libc::O_APPEND | libc::O_DIRECT) as usize;
                unsafe { libc::syscall(libc::SYS_fcntl, fd, what, with) as c_int }
            }
            _ => native(),
        }
    })
}

/// See fcntl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, what: c_int, with: usize) -> c_int {
    unsafe { fcntl(fd, what, with) }
}

/// What is asked of a lock on a part of a file.
#[derive(Clone, Copy)]
struct Asked {
    /// Whose it is: that of the process, or of the open file.
    is_of_file: bool,
    waits: bool,
    /// Only who has it is asked.
    looks: bool,
}

impl Asked {
    /// By the number of fcntl(2).
    fn of(what: c_int) -> Option<Self> {
        let is_of_file = libc::F_OFD_GETLK <= what;
        let of = |waits, looks| Some(Self { is_of_file, waits, looks });
        match what {
            libc::F_GETLK | libc::F_OFD_GETLK => of(false, true),
            libc::F_SETLK | libc::F_OFD_SETLK => of(false, false),
            libc::F_SETLKW | libc::F_OFD_SETLKW => of(true, false),
            _ => None,
        }
    }

    fn number(self, waits: bool) -> c_int {
        let Self { is_of_file, looks, .. } = self;
        match (is_of_file, looks, waits) {
            (false, true, _) => libc::F_GETLK,
            (true, true, _) => libc::F_OFD_GETLK,
            (false, false, false) => libc::F_SETLK,
            (true, false, false) => libc::F_OFD_SETLK,
            (false, false, true) => libc::F_SETLKW,
            (true, false, true) => libc::F_OFD_SETLKW,
        }
    }
}

/// A lock on a part of a file, as the meta gets it or sees it: to the system its shadows are
/// others.
unsafe fn lock_part(fd: c_int, asked: Asked, lock: *mut libc::flock) -> c_int {
    let native = |what: c_int, lock: *mut libc::flock| unsafe {
        libc::syscall(libc::SYS_fcntl, fd, what, lock) as c_int
    };
    if lock.is_null() || !is_begun() {
        return native(asked.number(asked.waits), lock);
    }
    if asked.looks {
        let of = asked.number(false) as u64;
        let wanted = unsafe { *lock };
        return names::ask(&[5, of, wanted.l_type as u64], None, lock, |to| {
            unsafe { *to = wanted };
            native(asked.number(false), to)
        });
    }
    if unsafe { (*lock).l_type } == libc::F_UNLCK as i16 {
        meet();
    }
    let row = [4, u64::from(asked.waits)];
    let done = lock_for(row, asked.waits, || native(asked.number(false), lock));
    if done == 0 {
        file_locks::keep_part(fd, asked.is_of_file, unsafe { &*lock });
    }
    done
}

/// See lockf(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockf(fd: c_int, how: c_int, length: off_t) -> c_int {
    stack::on_own(|| {
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        (lock.l_whence, lock.l_len) = (libc::SEEK_CUR as i16, length);
        let (what, kind) = match how {
            libc::F_ULOCK => (libc::F_SETLK, libc::F_UNLCK),
            libc::F_LOCK => (libc::F_SETLKW, libc::F_WRLCK),
            libc::F_TLOCK => (libc::F_SETLK, libc::F_WRLCK),
            libc::F_TEST => (libc::F_GETLK, libc::F_RDLCK),
            _ => return failed(libc::EINVAL),
        };
        lock.l_type = kind as i16;
        let done = unsafe { fcntl(fd, what, &raw mut lock as usize) };
        let is_taken = how == libc::F_TEST && lock.l_type != libc::F_UNLCK as i16;
        if done == 0 && is_taken { failed(libc::EACCES) } else { done }
    })
}

/// See lockf(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockf64(fd: c_int, how: c_int, length: off_t) -> c_int {
    unsafe { lockf(fd, how, length) }
}

/// See flock(2).
#[unsafe(no_mangle)]
pub extern "C" fn flock(fd: c_int, how: c_int) -> c_int {
    stack::on_own(|| {
        let native = |how: c_int| unsafe { libc::syscall(libc::SYS_flock, fd, how) as c_int };
        if !is_begun() {
            return native(how);
        }
        if how & !libc::LOCK_NB == libc::LOCK_UN {
            meet();
        }
        let waits = how & libc::LOCK_NB == 0;
        let done = lock_for([6, how as u64], waits, || native(how | libc::LOCK_NB));
        if done == 0 {
            file_locks::keep_whole(fd, how);
        }
        done
    })
}

/// Where an open file lies.
pub(crate) fn open_path(fd: c_int) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()
}

/// A descriptor is about to go, and with it what locks hang on it.
fn end_locks(fd: c_int) {
    if file_locks::is_held(fd) {
        meet();
    }
    file_locks::forget(fd);
}

/// A lock is about to go: each replica has read by then what it reads under it.
fn meet() {
    if !real::is_program_asking() {
        return;
    }
    let_out_waiting();
    let _inside = Inside::enter();
    state::with(|state| {
        state.mix(&[FILES, 20]);
        state.compare(Vec::new());
    });
}

/// A lock against other programs is the meta's: its replicas would wait for each other.
fn lock_for(row: [u64; 2], waits: bool, attempt: impl Fn() -> c_int) -> c_int {
    let_out_waiting();
    let error = decided(&row, || {
        if attempt() == 0 {
            return Some(0);
        }
        let error = last_error();
        let is_taken = error == libc::EAGAIN || error == libc::EACCES;
        (!waits || !is_taken).then_some(error)
    });
    if error == 0 { 0 } else { failed(error) }
}

/// The meta's error, or 0; it is asked again until it has an answer.
fn decided(which: &[u64], attempt: impl Fn() -> Option<c_int>) -> c_int {
    let _inside = Inside::enter();
    state::with(|state| {
        state.mix(&[&[FILES], which].concat());
        let (answer, _) =
            state.event(EventKind::Decision, |_| Some(bytes_of(&[attempt()? as u64])));
        words(&answer)[0] as c_int
    })
}

/// Something about an open file, asked for by the program.
fn change_open(fd: c_int, row: &[u64], attempt: impl Fn() -> c_int) -> c_int {
    if !is_known(fd) || !real::is_program_asking() {
        return attempt();
    }
    let error = {
        let _inside = Inside::enter();
        state::with(|state| state.change_open(fd, row, attempt))
    };
    let earlier = table().file(fd).map_or(0, |it| std::mem::take(&mut it.1.error));
    match (earlier, error) {
        (0, 0) => 0,
        (0, error) | (error, _) => failed(error),
    }
}

/// See ftruncate(2).
#[unsafe(no_mangle)]
pub extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    stack::on_own(|| {
        change_open(fd, &[1, length as u64], || unsafe {
            libc::syscall(libc::SYS_ftruncate, fd, length) as c_int
        })
    })
}

/// See ftruncate(2).
#[unsafe(no_mangle)]
pub extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    ftruncate(fd, length)
}

/// See fallocate(2).
#[unsafe(no_mangle)]
pub extern "C" fn fallocate(fd: c_int, how: c_int, at: off_t, length: off_t) -> c_int {
    stack::on_own(|| {
        change_open(fd, &[2, how as u64, at as u64, length as u64], || unsafe {
            libc::syscall(libc::SYS_fallocate, fd, how, at, length) as c_int
        })
    })
}

/// See fallocate(2).
#[unsafe(no_mangle)]
pub extern "C" fn fallocate64(fd: c_int, how: c_int, at: off_t, length: off_t) -> c_int {
    fallocate(fd, how, at, length)
}

/// See posix_fallocate(3), which returns the error.
#[unsafe(no_mangle)]
pub extern "C" fn posix_fallocate(fd: c_int, at: off_t, length: off_t) -> c_int {
    stack::on_own(|| if fallocate(fd, 0, at, length) == 0 { 0 } else { last_error() })
}

/// See posix_fallocate(3).
#[unsafe(no_mangle)]
pub extern "C" fn posix_fallocate64(fd: c_int, at: off_t, length: off_t) -> c_int {
    posix_fallocate(fd, at, length)
}

/// See fsync(2).
#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: c_int) -> c_int {
    stack::on_own(|| {
        change_open(fd, &[3], || unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int })
    })
}

/// See fsync(2).
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: c_int) -> c_int {
    stack::on_own(|| {
        change_open(fd, &[4], || unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int })
    })
}

/// See lseek(2).
#[unsafe(no_mangle)]
pub extern "C" fn lseek(fd: c_int, at: off_t, whence: c_int) -> off_t {
    stack::on_own(|| {
        if WAITING.load(Ordering::Relaxed) && is_known(fd) {
            let appends = table().file(fd).is_some_and(|it| it.1.appends);
            if appends || (whence != libc::SEEK_SET && whence != libc::SEEK_CUR) {
                let_out_waiting();
            }
        }
        native_seek(fd, at, whence)
    })
}

/// See lseek(2).
#[unsafe(no_mangle)]
pub extern "C" fn lseek64(fd: c_int, at: off_t, whence: c_int) -> off_t {
    lseek(fd, at, whence)
}

unsafe fn slice<'a>(from: *const c_void, length: size_t) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(from.cast(), length) }
}

unsafe fn gathered(rows: *const libc::iovec, n: c_int) -> Vec<u8> {
    let row = |idx: usize| unsafe { *rows.add(idx) };
    let n = usize::try_from(n).unwrap_or(0);
    let part = |it: libc::iovec| unsafe { slice(it.iov_base, it.iov_len) };
    (0..n).flat_map(|idx| part(row(idx))).copied().collect()
}

/// See write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, length: size_t) -> ssize_t {
    stack::on_own(|| {
        if is_known(fd) {
            return take(fd, None, unsafe { slice(from, length) });
        }
        unsafe { libc::syscall(libc::SYS_write, fd, from, length) as ssize_t }
    })
}

/// See pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(
    fd: c_int,
    from: *const c_void,
    length: size_t,
    at: off_t,
) -> ssize_t {
    stack::on_own(|| {
        if is_known(fd) && 0 <= at {
            return take(fd, Some(at as u64), unsafe { slice(from, length) });
        }
        unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, length, at) as ssize_t }
    })
}

/// See pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    fd: c_int,
    from: *const c_void,
    length: size_t,
    at: off_t,
) -> ssize_t {
    unsafe { pwrite(fd, from, length, at) }
}

/// See writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, rows: *const libc::iovec, n: c_int) -> ssize_t {
    stack::on_own(|| {
        if is_known(fd) {
            return take(fd, None, &unsafe { gathered(rows, n) });
        }
        unsafe { libc::syscall(libc::SYS_writev, fd, rows, n) as ssize_t }
    })
}

/// See writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
) -> ssize_t {
    stack::on_own(|| {
        if is_known(fd) && 0 <= at {
            return take(fd, Some(at as u64), &unsafe { gathered(rows, n) });
        }
        unsafe { libc::syscall(libc::SYS_pwritev, fd, rows, n, at, 0) as ssize_t }
    })
}

/// See writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
) -> ssize_t {
    unsafe { pwritev(fd, rows, n, at) }
}

/// See writev(2).  The end of a file by a flag of the call is not there (`EOPNOTSUPP`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    stack::on_own(|| {
        if is_known(fd) && -1 <= at {
            if flags & libc::RWF_APPEND != 0 {
                return failed(libc::EOPNOTSUPP) as ssize_t;
            }
            return take(fd, u64::try_from(at).ok(), &unsafe { gathered(rows, n) });
        }
        let number = libc::SYS_pwritev2;
        unsafe { libc::syscall(number, fd, rows, n, at, 0, flags) as ssize_t }
    })
}

/// See writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64v2(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    unsafe { pwritev2(fd, rows, n, at, flags) }
}

/// See read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, length: size_t) -> ssize_t {
    loop {
        let came = stack::on_own(|| unsafe { read_once(fd, to, length) });
        match came {
            Came::Input(got) => return got,
            // Its handler runs on the program's stack.
            Came::Signal { restarts: false, .. } => return input::end_by_signal() as ssize_t,
            Came::Signal { restarts: true, .. } => {
                input::end_by_signal();
            }
        }
    }
}

unsafe fn read_once(fd: c_int, to: *mut c_void, length: size_t) -> Came<ssize_t> {
    if is_known(fd) && table().file(fd).is_some_and(|it| it.1.kind == Kind::Dice) {
        return Came::Input(unsafe { crate::clock::getrandom(to, length.min(1 << 20), 0) });
    }
    if input::is_shared(fd) {
        return input::read(fd, to, length);
    }
    let_out_waiting();
    Came::Input(unsafe { libc::syscall(libc::SYS_read, fd, to, length) as ssize_t })
}

/// What a program that is compiled with checks calls for read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    to: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    stack::on_own(|| {
        if room < length {
            real::fail("read() of more bytes than there is room for");
        }
    });
    unsafe { read(fd, to, length) }
}

/// See pread(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread(fd: c_int, to: *mut c_void, length: size_t, at: off_t) -> ssize_t {
    stack::on_own(|| {
        let_out_waiting();
        unsafe { libc::syscall(libc::SYS_pread64, fd, to, length, at) as ssize_t }
    })
}

/// See pread(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, to: *mut c_void, length: size_t, at: off_t) -> ssize_t {
    unsafe { pread(fd, to, length, at) }
}

/// See readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, rows: *const libc::iovec, n: c_int) -> ssize_t {
    let row = stack::on_own(|| {
        let has_rows = (1..=libc::UIO_MAXIOV).contains(&n) && !rows.is_null();
        if !has_rows || !input::is_shared(fd) {
            return None;
        }
        // The first that has room, as a read may be shorter than what there is room for.
        let rows = unsafe { std::slice::from_raw_parts(rows, n as usize) };
        Some(rows.iter().find(|it| it.iov_len != 0).copied().unwrap_or(rows[0]))
    });
    if let Some(row) = row {
        return unsafe { read(fd, row.iov_base, row.iov_len) };
    }
    stack::on_own(|| {
        let_out_waiting();
        unsafe { libc::syscall(libc::SYS_readv, fd, rows, n) as ssize_t }
    })
}

/// See readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
) -> ssize_t {
    stack::on_own(|| {
        let_out_waiting();
        unsafe { libc::syscall(libc::SYS_preadv, fd, rows, n, at, 0) as ssize_t }
    })
}

/// See readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
) -> ssize_t {
    unsafe { preadv(fd, rows, n, at) }
}

/// See readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv2(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    stack::on_own(|| {
        let_out_waiting();
        unsafe { libc::syscall(libc::SYS_preadv2, fd, rows, n, at, 0, flags) as ssize_t }
    })
}

/// See readv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64v2(
    fd: c_int,
    rows: *const libc::iovec,
    n: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    unsafe { preadv2(fd, rows, n, at, flags) }
}

/// See sendfile(2): a program that is told that it cannot copies by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    at: *mut off_t,
    length: size_t,
) -> ssize_t {
    stack::on_own(|| {
        let_out_waiting();
        if is_known(to) {
            return failed(libc::EINVAL) as ssize_t;
        }
        unsafe { libc::syscall(libc::SYS_sendfile, to, from, at, length) as ssize_t }
    })
}

/// See sendfile(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    at: *mut off_t,
    length: size_t,
) -> ssize_t {
    unsafe { sendfile(to, from, at, length) }
}

/// See copy_file_range(2), and [`sendfile`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut off_t,
    to: c_int,
    to_at: *mut off_t,
    length: size_t,
    flags: libc::c_uint,
) -> ssize_t {
    stack::on_own(|| {
        let_out_waiting();
        if is_known(to) {
            return failed(libc::EXDEV) as ssize_t;
        }
        let number = libc::SYS_copy_file_range;
        unsafe { libc::syscall(number, from, from_at, to, to_at, length, flags) as ssize_t }
    })
}
