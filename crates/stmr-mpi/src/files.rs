//! Files that the program writes: each replica has them open, one writes.
//!
//! ```text
//! open, unlink, … ──► compare ──► the meta does it, and tells ──► shadows open what it opened
//! write ──► waits ──► compare ──► the meta writes at agreed places, and tells
//!                  (1 MiB, a short write, a close, a read, a name, any compare of a message)
//! ```
//! The kernel's offset of each replica is the program's own, so reads are made as they are.  A meta
//! that dies is followed by one that writes the same bytes to the same places; where that is the
//! end of a file, by one that looks whether they are there.
//!
//! Only the thread that calls MPI is served, as with clocks: others have no order.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use libc::{off_t, ssize_t};
use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::EventKind;
use selvedge_stmr::writes::{self, AT_END, Again, Change, Record, Writes};

use crate::devices;
use crate::opened::question_at;
use crate::real::{self, Inside};
use crate::state::{self, State};
use crate::threads;

/// Descriptors from this one on are passed on as they are.
const DESCRIPTORS_MAX: usize = 1 << 16;

/// What calls about files are mixed in as.
pub(crate) const FILES: u64 = u64::MAX - 2;

/// What a replica does that changes names, or what stands behind them.
pub(crate) const CHANGE: &str = "a change of a file's name";

/// What the system calls a file: its device and its number.
pub(crate) type Identity = [u64; 2];

/// What a descriptor is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes with places.
    Regular,
    /// A pipe, a terminal: bytes go and come, and have no places.
    Stream,
    /// `/dev/urandom`: the dice that all replicas share.
    Dice,
}

/// A file that the program has open for writing.
pub(crate) struct File {
    pub(crate) kind: Kind,
    /// What is written goes to the end.
    pub(crate) appends: bool,
    /// What the program opened it with.
    pub(crate) flags: c_int,
    /// What a write that was let out later came to, until the program is told.
    pub(crate) error: c_int,
}

/// What goes to a descriptor of the C library's own, such as that of standard output after
/// `freopen`: it goes to memory, and from there to its file.
struct Drain {
    from: c_int,
    to: c_int,
    length: u64,
}

pub(crate) struct Table {
    pub(crate) of: BTreeMap<c_int, u64>,
    files: BTreeMap<u64, File>,
    n_files: u64,
    writes: Writes,
    drains: Vec<Drain>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    of: BTreeMap::new(),
    files: BTreeMap::new(),
    n_files: 0,
    writes: Writes::new(),
    drains: Vec::new(),
});

/// Which descriptors stand in the table, to be asked without a lock.
static KNOWN: [AtomicBool; DESCRIPTORS_MAX] = [const { AtomicBool::new(false) }; DESCRIPTORS_MAX];

/// Something waits to be let out.
pub(crate) static WAITING: AtomicBool = AtomicBool::new(false);

pub(crate) fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(|it| it.into_inner())
}

impl Table {
    pub(crate) fn file(&mut self, fd: c_int) -> Option<(u64, &mut File)> {
        let id = *self.of.get(&fd)?;
        Some((id, self.files.get_mut(&id)?))
    }

    fn descriptor(&self, file: u64) -> Option<c_int> {
        self.of.iter().find(|it| *it.1 == file).map(|it| *it.0)
    }

    pub(crate) fn enter(&mut self, fd: c_int, id: u64) {
        if let Some(it) = usize::try_from(fd).ok().and_then(|it| KNOWN.get(it)) {
            it.store(true, Ordering::Relaxed);
            self.of.insert(fd, id);
        }
    }

    pub(crate) fn strike(&mut self, fd: c_int) {
        if let Some(it) = usize::try_from(fd).ok().and_then(|it| KNOWN.get(it)) {
            it.store(false, Ordering::Relaxed);
        }
        let Some(id) = self.of.remove(&fd) else { return };
        if self.descriptor(id).is_none() {
            self.files.remove(&id);
        }
    }

    fn add(&mut self, fd: c_int, file: File) {
        let id = self.n_files;
        self.n_files += 1;
        self.files.insert(id, file);
        self.enter(fd, id);
    }
}

/// Whether the program asks for it, for what changes files: that is shared before MPI_Init as well,
/// if this is a program of MPI.
pub(crate) fn is_begun() -> bool {
    real::is_program_asking() || (real::early_asking().is_some() && real::is_loaded())
}

pub(crate) fn is_known(fd: c_int) -> bool {
    let known = usize::try_from(fd).ok().and_then(|it| KNOWN.get(it));
    known.is_some_and(|it| it.load(Ordering::Relaxed)) && !is_elsewhere()
}

/// Whether this is another thread than the one that is served.
fn is_elsewhere() -> bool {
    !state::is_ordered() && state::early().is_none()
}

/// Another descriptor of the same open file, if it is known.
pub(crate) fn other_of(fd: c_int) -> Option<c_int> {
    let table = table();
    let id = table.of.get(&fd)?;
    table.of.iter().find(|it| it.1 == id && *it.0 != fd).map(|it| *it.0)
}

/// Whether two descriptors are of the same open file.
pub(crate) fn is_same(a: c_int, b: c_int) -> bool {
    let table = table();
    a == b || table.of.get(&a).is_some_and(|it| table.of.get(&b) == Some(it))
}

pub(crate) fn last_error() -> c_int {
    unsafe { *libc::__errno_location() }
}

/// What a C function that failed gives back.
pub(crate) fn failed(error: c_int) -> c_int {
    unsafe { *libc::__errno_location() = error };
    -1
}

pub(crate) fn native_open(
    dir: c_int,
    path: &CStr,
    flags: c_int,
    mode: libc::mode_t,
) -> Result<c_int, c_int> {
    let fd = unsafe { libc::syscall(libc::SYS_openat, dir, path.as_ptr(), flags, mode) } as c_int;
    if fd < 0 { Err(last_error()) } else { Ok(fd) }
}

pub(crate) fn native_close(fd: c_int) -> c_int {
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}

pub(crate) fn native_seek(fd: c_int, at: off_t, whence: c_int) -> off_t {
    unsafe { libc::syscall(libc::SYS_lseek, fd, at, whence) as off_t }
}

pub(crate) fn native_stat(fd: c_int) -> Option<libc::stat> {
    let mut row: libc::stat = unsafe { std::mem::zeroed() };
    let code = unsafe { libc::syscall(libc::SYS_fstat, fd, &raw mut row) };
    (code == 0).then_some(row)
}

/// Replicas of this process are on several hosts.
static SPANS_HOSTS: AtomicBool = AtomicBool::new(false);

/// Says that they are: a file system that hosts share has another device's number on each.
pub(crate) fn span_hosts() {
    SPANS_HOSTS.store(true, Ordering::Relaxed);
}

/// Whether they are.
pub(crate) fn spans_hosts() -> bool {
    SPANS_HOSTS.load(Ordering::Relaxed)
}

fn identity_in(row: &libc::stat) -> Identity {
    [if spans_hosts() { 0 } else { row.st_dev }, row.st_ino]
}

/// Where numbers of processes mean the same.
fn home() -> u64 {
    static HOME: OnceLock<u64> = OnceLock::new();
    *HOME.get_or_init(|| {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = std::fs::metadata("/proc/self/ns/pid").map_or(0, |it| it.ino());
        Digest::of(&[&boot, &space.to_le_bytes()[..]].concat()).0 as u64
    })
}

/// What stands behind a name, itself and not what it leads to.
pub(crate) fn identity(dir: c_int, path: &CStr) -> Option<Identity> {
    let mut row: libc::stat = unsafe { std::mem::zeroed() };
    let (at, flags) = (path.as_ptr(), libc::AT_SYMLINK_NOFOLLOW);
    let code = unsafe { libc::syscall(libc::SYS_newfstatat, dir, at, &raw mut row, flags) };
    (code == 0).then(|| identity_in(&row))
}

/// What stands behind a descriptor.
pub(crate) fn identity_of_open(fd: c_int) -> Option<Identity> {
    native_stat(fd).map(|it| identity_in(&it))
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    let row = |it: &[u8]| u64::from_le_bytes(it.try_into().expect("eight bytes"));
    bytes.chunks_exact(8).map(row).collect()
}

pub(crate) fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|it| it.to_le_bytes()).collect()
}

pub(crate) fn identity_words(of: Option<Identity>) -> [u64; 3] {
    of.map_or([0; 3], |[device, number]| [1, device, number])
}

pub(crate) fn identity_of(words: &[u64]) -> Option<Identity> {
    (words[0] == 1).then(|| [words[1], words[2]])
}

/// A file that is to be opened.
pub(crate) struct Opening<'a> {
    pub(crate) dir: c_int,
    pub(crate) path: &'a CStr,
    pub(crate) flags: c_int,
    pub(crate) mode: libc::mode_t,
}

impl Opening<'_> {
    fn writes(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY
            || self.flags & (libc::O_CREAT | libc::O_TRUNC) != 0
    }

    /// Whether the file has no name that others could see.
    fn is_nameless(&self) -> bool {
        self.flags & libc::O_TMPFILE == libc::O_TMPFILE
    }
}

/// Opens a file for the program.
pub(crate) fn open_for(opening: &Opening<'_>) -> c_int {
    let &Opening { dir, path, flags, mode } = opening;
    let native = || native_open(dir, path, flags, mode).unwrap_or(-1);
    if !real::is_program_asking() && real::early_asking().is_none() {
        threads::note_opening(path, flags);
        return native();
    }
    if devices::is_dice(path) {
        let fd = native();
        if 0 <= fd {
            let file = File { kind: Kind::Dice, appends: false, flags, error: 0 };
            table().add(fd, file);
        }
        return fd;
    }
    let is_kernels = devices::is_kernels(path);
    if opening.is_nameless() || devices::is_device(path) {
        return native();
    }
    let opened = if opening.writes() && !is_kernels && is_begun() {
        let _inside = Inside::enter();
        state::with(|state| state.open_to_write(opening))
    } else if real::is_program_asking() {
        let _inside = Inside::enter();
        state::with(|state| match devices::is_shared_text(path, flags) {
            true => devices::open_text(state, opening),
            false => state.open_to_read(opening),
        })
    } else {
        return native();
    };
    opened.unwrap_or_else(failed)
}

impl State {
    /// Opens for reading; whether there is such a file is the meta's to say, since it may come or
    /// go.
    pub(crate) fn open_to_read(&mut self, opening: &Opening<'_>) -> Result<c_int, c_int> {
        self.let_out();
        let &Opening { dir, path, flags, mode } = opening;
        if self.own_names.have(dir, path) {
            return native_open(dir, path, flags, mode);
        }
        let own = Cell::new(None);
        let answer = self.look_or_recall(question_at(&[FILES, 1, flags as u64], dir, path), || {
            let opened = native_open(dir, path, flags, mode);
            own.set(Some(opened));
            bytes_of(&[opened.err().unwrap_or(0) as u64])
        });
        let error = words(&answer)[0] as c_int;
        own.get().unwrap_or_else(|| match error {
            0 => native_open(dir, path, flags, mode),
            error => Err(error),
        })
    }

    /// Opens for writing: the meta makes or empties the file, and the others open what it opened.
    pub(crate) fn open_to_write(&mut self, opening: &Opening<'_>) -> Result<c_int, c_int> {
        let native = || native_open(opening.dir, opening.path, opening.flags, opening.mode);
        if self.own_names.have_from(opening.dir, opening.path) {
            return native();
        }
        self.mix(&[FILES, 2]);
        let row = bytes_of(&[opening.flags as u64, opening.mode.into()]);
        let Some(row) = self.compare_change(row, &[(opening.dir, opening.path)]) else {
            return native();
        };
        // Which name is opened is the majority's, as what is sent is.
        let path = CStr::from_bytes_until_nul(&row[16..]).unwrap_or(c"").to_owned();
        let right = words(&row[..16]);
        let flags = right[0] as c_int;
        let (dir, mode) = (opening.dir, right[1] as libc::mode_t);
        let wants = flags & !(libc::O_APPEND | libc::O_DIRECT);
        let (before, is_first) = self
            .event(EventKind::Decision, |_| Some(bytes_of(&identity_words(identity(dir, &path)))));
        let before = identity_of(&words(&before));
        let mut own = None;
        let (answer, did) = self.event(EventKind::Decision, |_| {
            let now = identity(dir, &path);
            let made = writes::again(Change::Make, [before, None], [now, None]) == Again::Made;
            let wants = if !is_first && made { wants & !libc::O_EXCL } else { wants };
            let opened = open_readable(dir, &path, wants, mode, flags & libc::O_APPEND != 0);
            let row = opened.ok().and_then(native_stat);
            own = opened.ok();
            let [device, number] = row.as_ref().map_or([0; 2], identity_in);
            let kind = row.map_or(0, |it| u64::from(it.st_mode));
            let pid = unsafe { libc::syscall(libc::SYS_getpid) } as u64;
            let (error, fd) = (opened.err().unwrap_or(0) as u64, opened.unwrap_or(0) as u64);
            Some(bytes_of(&[error, device, number, kind, pid, fd, home()]))
        });
        let answer = words(&answer);
        if answer[0] != 0 {
            return Err(answer[0] as c_int);
        }
        let fd = match own.filter(|_| did) {
            Some(it) => it,
            None => open_after(dir, &path, wants, &answer),
        };
        let is_regular = answer[3] & u64::from(libc::S_IFMT) == u64::from(libc::S_IFREG);
        let kind = if is_regular { Kind::Regular } else { Kind::Stream };
        let appends = flags & libc::O_APPEND != 0;
        table().add(fd, File { kind, appends, flags, error: 0 });
        Ok(fd)
    }

    /// Lets out what the program wrote: it is compared, and the meta writes it.
    pub(crate) fn let_out(&mut self) {
        if !WAITING.load(Ordering::Relaxed) {
            return;
        }
        let bytes = {
            let mut table = table();
            table.drain();
            table.writes.take()
        };
        WAITING.store(!table().drains.is_empty(), Ordering::Relaxed);
        if bytes.is_empty() {
            return;
        }
        self.mix(&[FILES, 3]);
        self.counts.file_bytes += bytes.len() as u64;
        let doing = std::mem::replace(&mut self.doing, "a write to a file");
        let (right, _) = self.compare(bytes);
        let records = writes::records(&right)
            .unwrap_or_else(|e| real::fail(&format!("what was agreed on cannot be written: {e}")));
        let (at_end, placed): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|it| it.at == AT_END && !is_stream(it.file));
        if !placed.is_empty() {
            let (answer, _) =
                self.event(EventKind::Decision, |_| Some(bytes_of(&write_placed(&placed))));
            keep_errors(&words(&answer));
        }
        for record in at_end {
            self.append(&record);
        }
        self.doing = doing;
    }

    /// Writes to the end of a file, once, whoever else does so too.
    fn append(&mut self, record: &Record) {
        let Some(fd) = table().descriptor(record.file) else { return };
        let size = || native_stat(fd).map_or(0, |it| it.st_size as u64);
        let folder = &self.told.folder;
        let path =
            native_stat(fd).map(|it| folder.join(format!("end.{}.{}", it.st_dev, it.st_ino)));
        let mut held = None;
        let (end, is_first) = self.event(EventKind::Decision, |_| {
            held = path.as_deref().and_then(lock);
            Some(bytes_of(&[size()]))
        });
        let end = words(&end)[0];
        let (answer, _) = self.event(EventKind::Decision, |_| {
            let mut at = end;
            if !is_first {
                // Who led before may have written it, or others of the program's processes theirs.
                held = path.as_deref().and_then(lock);
                let now = size();
                let is_there = end < now && read_at(fd, end, record.bytes.len()) == record.bytes;
                if !is_there && end < now {
                    at = now;
                }
            }
            let error = write_at(fd, at, &record.bytes).err().unwrap_or(0);
            Some(bytes_of(&[record.file, error as u64, at]))
        });
        drop(held);
        let answer = words(&answer);
        keep_errors(&answer[..2]);
        native_seek(fd, (answer[2] + record.bytes.len() as u64) as off_t, libc::SEEK_SET);
    }
}

/// Nobody else of this job writes to the end of the file while this lives.
fn lock(path: &std::path::Path) -> Option<std::fs::File> {
    use std::os::fd::AsRawFd as _;
    let file = std::fs::File::options().create(true).append(true).open(path).ok()?;
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    Some(file)
}

fn is_stream(file: u64) -> bool {
    table().files.get(&file).is_some_and(|it| it.kind == Kind::Stream)
}

/// A file whose end may have to be read to see whether something stands there.
fn open_readable(
    dir: c_int,
    path: &CStr,
    flags: c_int,
    mode: libc::mode_t,
    appends: bool,
) -> Result<c_int, c_int> {
    if appends && flags & libc::O_ACCMODE == libc::O_WRONLY {
        let both = flags & !libc::O_ACCMODE | libc::O_RDWR;
        if let Ok(fd) = native_open(dir, path, both, mode) {
            return Ok(fd);
        }
    }
    native_open(dir, path, flags, mode)
}

/// Opens what the meta opened, wherever its name has gone since.
fn open_after(dir: c_int, path: &CStr, flags: c_int, answer: &[u64]) -> c_int {
    let flags = flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
    let that = |path: &CStr, flags: c_int| {
        let fd = open_readable(dir, path, flags, 0, true).ok()?;
        let is_same = identity_of_open(fd).is_some_and(|it| it == answer[1..3]);
        if !is_same {
            native_close(fd);
        }
        is_same.then_some(fd)
    };
    let (pid, number, is_at_home) = (answer[4], answer[5], answer[6] == home());
    let other = CString::new(format!("/proc/{pid}/fd/{number}")).expect("numbers have no zeros");
    let by_process = || that(&other, flags & !libc::O_NOFOLLOW);
    that(path, flags).or_else(|| is_at_home.then(by_process).flatten()).unwrap_or_else(|| {
        let name = path.to_string_lossy();
        let where_to = if is_at_home { "" } else { ": it has to lie where all hosts see it" };
        real::fail(&format!("cannot open {name}, as its replicas did{where_to}"))
    })
}

/// Writes all of it there.
fn write_at(fd: c_int, at: u64, bytes: &[u8]) -> Result<(), c_int> {
    let mut done = 0;
    while done < bytes.len() {
        let (from, length) = (bytes[done..].as_ptr(), bytes.len() - done);
        let place = at + done as u64;
        let n = unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, length, place) };
        match n {
            n if 0 < n => done += n as usize,
            0 => return Err(libc::ENOSPC),
            _ if last_error() == libc::EINTR => {}
            _ => return Err(last_error()),
        }
    }
    Ok(())
}

fn write_on(fd: c_int, bytes: &[u8]) -> Result<(), c_int> {
    let mut done = 0;
    while done < bytes.len() {
        let (from, length) = (bytes[done..].as_ptr(), bytes.len() - done);
        match unsafe { libc::syscall(libc::SYS_write, fd, from, length) } {
            n if 0 < n => done += n as usize,
            0 => return Err(libc::EIO),
            _ if last_error() == libc::EINTR => {}
            _ => return Err(last_error()),
        }
    }
    Ok(())
}

pub(crate) fn read_at(fd: c_int, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let n = unsafe { libc::syscall(libc::SYS_pread64, fd, bytes.as_mut_ptr(), length, at) };
    bytes.truncate(usize::try_from(n).unwrap_or(0));
    bytes
}

/// Writes records to their places; returns a file and its error for each that failed.
fn write_placed(records: &[Record]) -> Vec<u64> {
    let mut errors = Vec::new();
    for it in records {
        let Some(fd) = table().descriptor(it.file) else { continue };
        let written = match is_stream(it.file) {
            true => write_on(fd, &it.bytes),
            false => write_at(fd, it.at, &it.bytes),
        };
        if let Err(error) = written {
            errors.extend([it.file, error as u64]);
        }
    }
    errors
}

fn keep_errors(errors: &[u64]) {
    let mut table = table();
    for it in errors.chunks_exact(2).filter(|it| it[1] != 0) {
        if let Some(file) = table.files.get_mut(&it[0]) {
            file.error = it[1] as c_int;
        }
    }
}

/// Lets out what waits, before something looks at files.
pub(crate) fn let_out_waiting() {
    if WAITING.load(Ordering::Relaxed) && state::is_ordered() && !state::is_held() {
        let _inside = Inside::enter();
        state::with(State::let_out);
    }
}

/// Takes what the program writes to a descriptor in the table.
pub(crate) fn take(fd: c_int, place: Option<u64>, bytes: &[u8]) -> ssize_t {
    let due = {
        let mut table = table();
        let Some((id, file)) = table.file(fd) else { return failed(libc::EBADF) as ssize_t };
        if file.flags & libc::O_ACCMODE == libc::O_RDONLY {
            return failed(libc::EBADF) as ssize_t;
        }
        let error = std::mem::take(&mut file.error);
        if error != 0 {
            return failed(error) as ssize_t;
        }
        let at = match place {
            _ if file.appends || file.kind == Kind::Stream => AT_END,
            Some(it) => it,
            None => {
                let at = native_seek(fd, bytes.len() as off_t, libc::SEEK_CUR);
                if at < 0 {
                    return -1;
                }
                at as u64 - bytes.len() as u64
            }
        };
        if bytes.is_empty() {
            return 0;
        }
        WAITING.store(true, Ordering::Relaxed);
        table.writes.push(id, at, bytes) || is_stream_kind(&table, id)
    };
    if due {
        let_out_waiting();
        let error = table().file(fd).map_or(0, |it| std::mem::take(&mut it.1.error));
        if error != 0 {
            return failed(error) as ssize_t;
        }
    }
    bytes.len() as ssize_t
}

fn is_stream_kind(table: &Table, id: u64) -> bool {
    table.files.get(&id).is_some_and(|it| it.kind == Kind::Stream)
}

impl Table {
    /// Takes what came to memory instead of to a file.
    fn drain(&mut self) {
        for idx in 0..self.drains.len() {
            let Drain { from, to, length } = self.drains[idx];
            let Some(end) = native_stat(from).map(|it| it.st_size as u64) else { continue };
            let Some(&id) = self.of.get(&to) else { continue };
            if length < end {
                let bytes = read_at(from, length, (end - length) as usize);
                self.drains[idx].length = length + bytes.len() as u64;
                let appends = self.files.get(&id).is_some_and(|it| it.appends);
                let at = if appends {
                    AT_END
                } else {
                    (native_seek(to, bytes.len() as off_t, libc::SEEK_CUR) as u64)
                        .wrapping_sub(bytes.len() as u64)
                };
                self.writes.push(id, at, &bytes);
            }
        }
    }
}

/// From here on, what the C library itself writes to `fd`, which it does not ask for by name, goes
/// to the file that `to` has open.
pub(crate) fn divert(fd: c_int, to: c_int) -> c_int {
    let Some(memory) = memory_for(to) else { return failed(last_error()) };
    unsafe { libc::syscall(libc::SYS_dup3, memory, fd, 0) as c_int }
}

/// Memory from which all that is written to it goes to the file that `to` has open.  Who writes to
/// it stands where `to` does.
pub(crate) fn memory_for(to: c_int) -> Option<c_int> {
    let far = |fd: c_int| unsafe {
        libc::syscall(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 100) as c_int
    };
    // It may be made under the number that is to become it, where the program has closed that.
    let made = unsafe { libc::memfd_create(c"selvedge".as_ptr(), libc::MFD_CLOEXEC) };
    let (memory, kept) = (far(made), far(to));
    native_close(made);
    if memory < 0 || kept < 0 {
        return None;
    }
    let place = native_seek(to, 0, libc::SEEK_CUR).max(0);
    unsafe { libc::ftruncate(memory, place) };
    native_seek(memory, place, libc::SEEK_SET);
    let mut table = table();
    if let Some(&id) = table.of.get(&to) {
        table.enter(kept, id);
        table.drains.push(Drain { from: memory, to: kept, length: place as u64 });
        WAITING.store(true, Ordering::Relaxed);
    }
    Some(memory)
}

/// Lets out all that was diverted from `fd`, which becomes something else.
pub(crate) fn end_diverting(fd: c_int) {
    let memory = identity_of_open(fd);
    let is_it = |it: &Drain| identity_of_open(it.from) == memory;
    if !table().drains.iter().any(is_it) {
        return;
    }
    let_out_waiting();
    let mut table = table();
    if let Some(idx) = table.drains.iter().position(is_it) {
        let gone = table.drains.remove(idx);
        table.strike(gone.to);
        native_close(gone.to);
        native_close(gone.from);
    }
}

impl State {
    /// Something about an open file that changes it, and may be done twice; its error, or 0.
    pub(crate) fn change_open(
        &mut self,
        fd: c_int,
        row: &[u64],
        attempt: impl Fn() -> c_int,
    ) -> c_int {
        self.let_out();
        let file = table().file(fd).map_or(0, |it| it.0);
        self.mix(&[FILES, 5]);
        self.compare(bytes_of(&[row, &[file]].concat()));
        let (answer, _) = self.event(EventKind::Decision, |_| {
            let error = if attempt() == 0 { 0 } else { last_error() };
            Some(bytes_of(&[error as u64]))
        });
        words(&answer)[0] as c_int
    }
}

/// What is asked about a name.
pub(crate) fn question(words: &[u64], path: &CStr) -> u64 {
    Digest::of_rows(&[&bytes_of(words), path.to_bytes()]).0 as u64
}

/// How long a file is that one descriptor is of.
pub(crate) fn native_size(fd: c_int) -> Option<u64> {
    native_stat(fd).map(|it| it.st_size as u64)
}

/// Makes a file this long; its error, or 0.
pub(crate) fn set_length(state: &mut State, fd: c_int, length: off_t) -> c_int {
    let native = || unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) as c_int };
    match is_known(fd) {
        true => state.change_open(fd, &[1, length as u64], native),
        false if native() == 0 => 0,
        false => last_error(),
    }
}

/// Has a file's bytes on its disk; its error, or 0.
pub(crate) fn sync(state: &mut State, fd: c_int) -> c_int {
    if !is_known(fd) {
        return 0;
    }
    state.change_open(fd, &[3], || unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int })
}

/// Closes what was opened by [`State::open_to_write`] or [`State::open_to_read`], when nothing of
/// it waits; the error that nobody was told, or 0.
pub(crate) fn forget(fd: c_int) -> c_int {
    let error = error_of(fd);
    table().strike(fd);
    native_close(fd);
    error
}

/// The error of a write that was let out, or 0.
pub(crate) fn error_of(fd: c_int) -> c_int {
    table().file(fd).map_or(0, |it| std::mem::take(&mut it.1.error))
}

/// Bytes that stand there, once they are let out; of a file that is each replica's own, at once.
pub(crate) fn push(fd: c_int, at: u64, bytes: &[u8]) -> Result<(), c_int> {
    let mut table = table();
    let Some(&id) = table.of.get(&fd) else { return write_at(fd, at, bytes) };
    table.writes.push(id, at, bytes);
    WAITING.store(true, Ordering::Relaxed);
    Ok(())
}
