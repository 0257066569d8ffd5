//! Commands that the program starts through a shell: `system`, and `popen` to read.
//!
//! What a command does to files is done once: the meta starts it, and all replicas are given what
//! it prints and how it ends.  Its line is compared before.  Who is promoted while it runs starts
//! it again, and leaves out as much of what it prints as all have been given.

#![allow(unreachable_pub, reason = "the C library's names are reached by the linker alone")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_short, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use libc::{pid_t, size_t, ssize_t};
use selvedge_stmr::message::EventKind;

use crate::cycles::{untrapped, without};
use crate::environment::Environment;
use crate::files::{failed, last_error, let_out_waiting};
use crate::real::{self, Inside};
use crate::stack;
use crate::state;
use crate::streams::next;
use crate::told::told;

const COMMANDS: u64 = u64::MAX - 4;

/// What is taken from a command at a time.
const PIECE: usize = 64 << 10;

/// Where a command prints to.
const OUT: usize = 0;
const ERROR: usize = 1;
const N_STREAMS: usize = 2;

/// What all replicas are given of a command.
enum News {
    Printed {
        stream: usize,
        bytes: Vec<u8>,
    },
    /// It prints no more to its standard output.
    Quiet,
    /// What wait(2) says of it, and the error where it could not be started or waited for.
    Ended([c_int; 2]),
}

impl News {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Printed { stream, bytes } => [&[*stream as u8], &bytes[..]].concat(),
            Self::Quiet => vec![2],
            Self::Ended(words) => {
                [3].into_iter().chain(words.iter().flat_map(|it| it.to_le_bytes())).collect()
            }
        }
    }

    fn of(row: &[u8]) -> Self {
        let word = |at: usize| {
            row.get(at..)
                .and_then(|it| it.first_chunk())
                .map_or(0, |it: &[u8; 4]| c_int::from_le_bytes(*it))
        };
        match row.split_first() {
            None | Some((3, _)) => Self::Ended([word(1), word(5)]),
            Some((2, _)) => Self::Quiet,
            Some((stream, bytes)) => {
                Self::Printed { stream: usize::from(*stream), bytes: bytes.to_vec() }
            }
        }
    }
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It prints no more to its standard output, also what it has left behind.
    Quiet,
    Ended,
}

/// A command as the one replica has it that has started it.
struct Running {
    pid: pid_t,
    /// Closed where it is negative.
    streams: [c_int; N_STREAMS],
    /// So much of what it prints was given to all before.
    skipped: [u64; N_STREAMS],
    ended: Option<[c_int; 2]>,
}

impl Running {
    fn start(line: &CStr, given: [u64; N_STREAMS]) -> Self {
        let mut pipes = [[-1; 2]; N_STREAMS];
        for pipe in &mut pipes {
            if unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
                let error = last_error();
                pipes.iter().flatten().for_each(|it| close(*it));
                let ended = Some([-1, error]);
                return Self { pid: 0, streams: [-1; N_STREAMS], skipped: given, ended };
            }
        }
        let mut pid = 0;
        let error = without(|| unsafe { spawn(&mut pid, line, pipes.map(|it| it[1])) });
        for [from, to] in pipes {
            close(to);
            unsafe { libc::fcntl(from, libc::F_SETFL, libc::O_NONBLOCK) };
        }
        let ended = (error != 0).then_some([-1, error]);
        Self { pid, streams: pipes.map(|it| it[0]), skipped: given, ended }
    }

    /// What there is of it, if there is something.
    fn look(&mut self, until: Until) -> Option<News> {
        if let Some(news) = self.read() {
            return Some(news);
        }
        if until == Until::Quiet && 0 <= self.streams[OUT] {
            return None;
        }
        if self.ended.is_none() {
            let mut status = 0;
            let wait = libc::SYS_wait4;
            let got = unsafe { libc::syscall(wait, self.pid, &mut status, libc::WNOHANG, 0) };
            match got {
                0 => return None,
                -1 => self.ended = Some([-1, last_error()]),
                _ => self.ended = Some([status, 0]),
            }
            // What it printed last is there by now.
            if let Some(news) = self.read() {
                return Some(news);
            }
        }
        self.ended.map(News::Ended)
    }

    fn read(&mut self) -> Option<News> {
        for stream in [OUT, ERROR] {
            while 0 <= self.streams[stream] {
                // Each turn of waiting comes here: what is not read into is not written.
                let mut bytes = Vec::<u8>::with_capacity(PIECE);
                let fd = self.streams[stream];
                let got = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), PIECE) };
                let Ok(got) = usize::try_from(got) else { break };
                if got == 0 {
                    self.shut(stream);
                    if stream == OUT {
                        return Some(News::Quiet);
                    }
                    break;
                }
                unsafe { bytes.set_len(got) };
                let skipped = self.skipped[stream].min(got as u64);
                self.skipped[stream] -= skipped;
                bytes.drain(..skipped as usize);
                if !bytes.is_empty() {
                    return Some(News::Printed { stream, bytes });
                }
            }
        }
        None
    }

    /// Nobody reads it from here on.
    fn shut(&mut self, stream: usize) {
        close(std::mem::replace(&mut self.streams[stream], -1));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::syscall(libc::SYS_wait4, self.pid, null_mut::<c_int>(), 0, 0);
            }
        }
        // What it has left behind may go on, and is to find no end of what it prints to.
        let left = self.streams.into_iter().filter(|it| 0 <= *it);
        left.for_each(|fd| without(|| drop(std::thread::spawn(move || read_up(fd)))));
    }
}

/// Reads what nobody wants, up to its end.
fn read_up(fd: c_int) {
    let _inside = Inside::enter();
    let mut bytes = [0_u8; 4096];
    unsafe { libc::fcntl(fd, libc::F_SETFL, 0) };
    while 0 < unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) } {}
    close(fd);
}

fn close(fd: c_int) {
    if 0 <= fd {
        unsafe { libc::close(fd) };
    }
}

/// Starts a shell as system(3) does; the error, or 0.
unsafe fn spawn(pid: &mut pid_t, line: &CStr, to: [c_int; N_STREAMS]) -> c_int {
    type Spawn = unsafe extern "C" fn(
        *mut pid_t,
        *const c_char,
        *const libc::posix_spawn_file_actions_t,
        *const libc::posix_spawnattr_t,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    unsafe {
        let spawn = std::mem::transmute::<usize, Spawn>(next(c"posix_spawn"));
        let mut actions = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&mut actions);
        for (idx, fd) in to.into_iter().enumerate() {
            libc::posix_spawn_file_actions_adddup2(&mut actions, fd, 1 + idx as c_int);
        }
        let mut attributes = std::mem::zeroed();
        libc::posix_spawnattr_init(&mut attributes);
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGINT);
        libc::sigaddset(&mut signals, libc::SIGQUIT);
        libc::posix_spawnattr_setsigdefault(&mut attributes, &signals);
        // Not what is blocked here while it is waited for.
        libc::pthread_sigmask(libc::SIG_SETMASK, null(), &mut signals);
        libc::sigdelset(&mut signals, libc::SIGCHLD);
        libc::posix_spawnattr_setsigmask(&mut attributes, &signals);
        let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        libc::posix_spawnattr_setflags(&mut attributes, flags as c_short);
        let args = [c"sh".as_ptr(), c"-c".as_ptr(), line.as_ptr(), null()];
        let environment = Environment::plain();
        let (shell, with) = (c"/bin/sh".as_ptr(), environment.as_ptr());
        let error = spawn(pid, shell, &actions, &attributes, args.as_ptr(), with);
        libc::posix_spawnattr_destroy(&mut attributes);
        libc::posix_spawn_file_actions_destroy(&mut actions);
        error
    }
}

/// A command as each replica has it.
struct Command {
    line: CString,
    running: Option<Running>,
    given: [u64; N_STREAMS],
}

impl Command {
    /// Starts it; nothing if its line is another in each replica, as with `SELVEDGE_SET` in it, or
    /// the folder that it would be started in.
    fn begin(line: &CStr, which: u64) -> Option<Self> {
        let_out_waiting();
        let _inside = Inside::enter();
        let right = state::with(|state| {
            if state.own_names.have_here() {
                return None;
            }
            state.mix(&[COMMANDS, which]);
            state.compare_names("a command", Vec::new(), &[line])
        })?;
        let line = CStr::from_bytes_until_nul(&right).unwrap_or(line).to_owned();
        let mut this = Self { line, running: None, given: [0; N_STREAMS] };
        this.event(|_| Some(Vec::new()));
        Some(this)
    }

    /// Has the meta do something with the command, which it starts if it has not.
    fn event(&mut self, what: impl Fn(&mut Running) -> Option<Vec<u8>>) -> Vec<u8> {
        let (row, did) = state::with(|state| {
            state.mix(&[COMMANDS, 0]);
            state.event(EventKind::Decision, |_| {
                let start = || Running::start(&self.line, self.given);
                what(self.running.get_or_insert_with(start))
            })
        });
        if !did {
            // Another leads, and has started it.
            self.running = None;
        }
        row
    }

    /// What comes of it next; the meta waits for it, as for a message.
    fn next(&mut self, until: Until) -> News {
        let _inside = Inside::enter();
        let row = self.event(|it| it.look(until).map(|it| it.to_bytes()));
        let news = News::of(&row);
        if let News::Printed { stream, bytes } = &news {
            self.given[*stream] += bytes.len() as u64;
        }
        news
    }

    /// How it ends; what it prints meanwhile is let out where that is wanted.
    fn end(&mut self, lets_out: [bool; N_STREAMS]) -> [c_int; 2] {
        loop {
            match self.next(Until::Ended) {
                News::Printed { stream, bytes } if lets_out[stream] => print(stream, &bytes),
                News::Printed { .. } | News::Quiet => {}
                News::Ended(words) => return words,
            }
        }
    }
}

/// Prints as the program does: to a file, if that is where it prints.
fn print(stream: usize, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let fd = 1 + stream as c_int;
        let did = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(did) {
            Ok(did) => bytes = &bytes[did..],
            Err(_) if last_error() == libc::EINTR => {}
            Err(_) => return,
        }
    }
}

/// While it lives, the program hears of no child that ends.
struct Childless(libc::sigset_t);

impl Childless {
    fn begin() -> Self {
        unsafe {
            let (mut child, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut child);
            libc::sigaddset(&mut child, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &child, &mut before);
            Self(before)
        }
    }
}

impl Drop for Childless {
    fn drop(&mut self) {
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, null_mut()) };
    }
}

fn answer([status, error]: [c_int; 2]) -> c_int {
    if error == 0 { status } else { failed(error) }
}

/// Whether a command is one for all replicas.
fn is_shared(line: *const c_char) -> bool {
    let has_siblings = || told().is_some_and(|it| 1 < it.replicas);
    !line.is_null() && real::is_program_asking() && has_siblings()
}

/// See system(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(line: *const c_char) -> c_int {
    type Function = unsafe extern "C" fn(*const c_char) -> c_int;
    let native = || {
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"system")) };
        untrapped(|| unsafe { real(line) })
    };
    stack::on_own(|| {
        if !is_shared(line) {
            return native();
        }
        let Some(mut command) = Command::begin(unsafe { CStr::from_ptr(line) }, 1) else {
            return native();
        };
        let _childless = Childless::begin();
        answer(command.end([true; N_STREAMS]))
    })
}

/// What popen(3) has given to read from.
struct Reader {
    command: Command,
    left: Vec<u8>,
    is_quiet: bool,
    ended: Option<[c_int; 2]>,
}

impl Reader {
    fn read(&mut self, to: &mut [u8]) -> usize {
        while self.left.is_empty() && !self.is_quiet {
            match self.command.next(Until::Quiet) {
                News::Printed { stream: OUT, bytes } => self.left = bytes,
                News::Printed { stream, bytes } => print(stream, &bytes),
                News::Quiet => self.is_quiet = true,
                News::Ended(words) => (self.is_quiet, self.ended) = (true, Some(words)),
            }
        }
        let n = self.left.len().min(to.len());
        to[..n].copy_from_slice(&self.left[..n]);
        self.left.drain(..n);
        n
    }
}

/// The streams that are such readers, and how those ended that are closed.
static READERS: Mutex<BTreeMap<usize, Option<[c_int; 2]>>> = Mutex::new(BTreeMap::new());

fn readers<R>(what: impl FnOnce(&mut BTreeMap<usize, Option<[c_int; 2]>>) -> R) -> R {
    what(&mut READERS.lock().unwrap_or_else(|it| it.into_inner()))
}

unsafe extern "C" fn read_reader(at: *mut c_void, to: *mut c_char, length: size_t) -> ssize_t {
    stack::on_own(|| {
        if !real::is_program_asking() {
            // A thread that has no order among replicas, or a child.
            return failed(libc::EIO) as ssize_t;
        }
        let reader = unsafe { &mut *at.cast::<(usize, Reader)>() };
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast(), length) };
        reader.1.read(to) as ssize_t
    })
}

unsafe extern "C" fn close_reader(at: *mut c_void) -> c_int {
    stack::on_own(|| {
        let (stream, mut reader) = *unsafe { Box::from_raw(at.cast::<(usize, Reader)>()) };
        if real::is_program_asking() {
            if let Some(running) = &mut reader.command.running {
                running.shut(OUT);
            }
            let _childless = Childless::begin();
            let end = || reader.command.end([false, true]);
            let ended = reader.ended.unwrap_or_else(end);
            readers(|it| it.insert(stream, Some(ended)));
        } else {
            // A child's copy: the command is its parent's.
            std::mem::forget(reader);
        }
        0
    })
}

#[repr(C)]
struct Functions {
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t>,
    seek: Option<unsafe extern "C" fn(*mut c_void, *mut libc::off64_t, c_int) -> c_int>,
    close: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    fn fopencookie(with: *mut c_void, mode: *const c_char, how: Functions) -> *mut libc::FILE;
}

/// See popen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(line: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    type Function = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE;
    let native = || {
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"popen")) };
        untrapped(|| unsafe { real(line, mode) })
    };
    stack::on_own(|| {
        let reads = || matches!(unsafe { CStr::from_ptr(mode) }.to_bytes(), b"r" | b"re");
        if !is_shared(line) || !reads() {
            return native();
        }
        let Some(command) = Command::begin(unsafe { CStr::from_ptr(line) }, 2) else {
            return native();
        };
        let reader = Reader { command, left: Vec::new(), is_quiet: false, ended: None };
        let reader = Box::into_raw(Box::new((0, reader)));
        let (read, close) = (Some(read_reader as _), Some(close_reader as _));
        let how = Functions { read, write: None, seek: None, close };
        let stream = unsafe { fopencookie(reader.cast(), c"r".as_ptr(), how) };
        if stream.is_null() {
            drop(unsafe { Box::from_raw(reader) });
        } else {
            unsafe { (*reader).0 = stream as usize };
            readers(|it| it.insert(stream as usize, None));
        }
        stream
    })
}

/// See popen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pclose(stream: *mut libc::FILE) -> c_int {
    type Function = unsafe extern "C" fn(*mut libc::FILE) -> c_int;
    if !readers(|it| it.contains_key(&(stream as usize))) {
        let real = unsafe { std::mem::transmute::<usize, Function>(next(c"pclose")) };
        return unsafe { real(stream) };
    }
    unsafe { libc::fclose(stream) };
    let ended = readers(|it| it.remove(&(stream as usize))).flatten();
    ended.map_or_else(|| failed(libc::ECHILD), answer)
}
