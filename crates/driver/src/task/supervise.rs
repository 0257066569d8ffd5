//! The supervisor of one task, and the stub that becomes the task.
//!
//! The stub is forked first and waits; only when the supervisor has written down both numbers
//! does it go on.  So there is no moment at which a task runs that nobody could find again.

use std::error::Error as _;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getppid, set_child_subreaper,
    set_parent_process_death_signal, setsid, wait,
};

use super::cage::{self, Cage};
use super::{BECOME_VERB, EXIT, Exit, LOCK, ORDER, OUTPUT, Order, RUN, Run, TaskError, io_error};
use crate::account::Account;
use crate::files::FILE_MODE;
use crate::kin::{descendants, kill_descendants};
use crate::limits;
use crate::process::Process;

/// Runs the task of `dir` to its end: what the hidden verb [`super::SUPERVISE_VERB`] does.
///
/// # Errors
/// [`TaskError`], if the task could not be begun; nothing then runs.
pub fn supervise(dir: &Path) -> Result<(), TaskError> {
    let lock_path = dir.join(LOCK);
    let mut options = OpenOptions::new();
    let lock = options.write(true).create(true).truncate(false).mode(FILE_MODE).open(&lock_path);
    let lock = lock.map_err(|source| io_error("open", &lock_path, source))?;
    // Held until this process ends.
    if !is_first(&lock) || super::read::<Run>(&dir.join(RUN))?.is_some() {
        return Ok(());
    }
    // It fails for a process that leads a session already, which is as good.
    let _ = setsid();
    let refused = |what, source: rustix::io::Errno| io_error(what, dir, source.into());
    set_child_subreaper(Some(own_pid())).map_err(|it| refused("reap for", it))?;
    let cage = Cage::make(dir);
    let (reader, task) = begin(dir, cage.as_ref())?;
    let kept = drain(reader, dir);
    let status = reap(task);
    bury(cage.as_ref());
    let kept = kept.recv_timeout(limits::OUTPUT_WAIT_MAX).unwrap_or_default();
    let exit = Exit {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        at_ms: now_ms(),
        n_written: kept.n_written,
        n_kept: kept.n_kept,
    };
    // Nobody else knows how the task ended: a full disk is waited for, but not a directory that
    // somebody has removed.
    let path = dir.join(EXIT);
    while super::write(&path, &exit).is_err() && dir.is_dir() {
        if path.is_dir() {
            // One that the task has put there does not go by itself.
            let _ = std::fs::rename(&path, dir.join(format!("{EXIT}.{}", now_ms())));
        }
        pause(limits::EXIT_RETRY);
    }
    Ok(())
}

/// Takes the lock; false where another supervisor has it.  Whoever only looks has it for a moment.
fn is_first(lock: &File) -> bool {
    for _ in 0..limits::LOCK_TRIES {
        if lock.try_lock().is_ok() {
            return true;
        }
        pause(limits::LOCK_RETRY);
    }
    false
}

/// Becomes the task of `dir` once told to: what the hidden verb [`super::BECOME_VERB`] does.
/// Returns only what went wrong, and the status to end with.
pub fn become_task(dir: &Path, supervisor: u32, cage: Option<&Path>) -> (String, u8) {
    let mut go = [0; 1];
    if io::stdin().read_exact(&mut go).is_err() || !goes_with(supervisor) {
        return ("the supervisor is gone".to_owned(), 125);
    }
    if let Some(cage) = cage {
        cage::join(cage);
    }
    // A session, and so a process group, of its own: signals reach it and what it starts.
    let _ = setsid();
    let order = match super::read::<Order>(&dir.join(ORDER)) {
        Ok(Some(order)) => order,
        Ok(None) => return ("there is no order".to_owned(), 125),
        Err(error) => return (error.to_string(), 125),
    };
    let Some((program, args)) = order.argv.split_first() else {
        return ("the order names no program".to_owned(), 125);
    };
    let mut env = order.env;
    if let Some(account) = &order.account {
        match become_of(account, supervisor) {
            Ok(own) => own.into_iter().for_each(|(name, value)| {
                env.entry(name).or_insert(value);
            }),
            Err(text) => return (text, 126),
        }
    }
    if let Err(error) = std::env::set_current_dir(&order.dir) {
        return (format!("cannot begin in {}: {error}", order.dir), 126);
    }
    heed_signals();
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&env).stdin(Stdio::null());
    let error = command.exec();
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot run {program}: {error}"), status)
}

/// Lets the program that this process becomes be reached by signals that whoever started the server
/// had ignored, as a shell does for what it starts in the background.
fn heed_signals() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
    for number in (1..=31).filter(|it| mask >> (it - 1) & 1 == 1) {
        // A handler does not outlive the change of program: the signal then acts as by default.
        let _ = signal_hook::flag::register(number, Arc::default());
    }
}

/// Sees to it that the kernel ends this process with its supervisor; false where that is gone.
fn goes_with(supervisor: u32) -> bool {
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok()
        && getppid().is_some_and(|it| raw(it) == supervisor)
}

/// Goes on under the account called `name`; returns the variables that tell a program where it is
/// at home, or why not.
fn become_of(name: &str, supervisor: u32) -> Result<[(String, String); 4], String> {
    let account = Account::of(name).map_err(|it| it.to_string())?;
    account.assume().map_err(|error| match error.source() {
        Some(why) => format!("{error}: {why}"),
        None => error.to_string(),
    })?;
    // The kernel forgets whom a process goes with when it becomes somebody else's.
    if !goes_with(supervisor) {
        return Err("the supervisor is gone".to_owned());
    }
    let path = |it: &Path| it.display().to_string();
    Ok([
        ("HOME".to_owned(), path(&account.home)),
        ("SHELL".to_owned(), path(&account.shell)),
        ("USER".to_owned(), account.name.clone()),
        ("LOGNAME".to_owned(), account.name),
    ])
}

/// Forks the stub, writes down who runs, and lets it go.
fn begin(dir: &Path, cage: Option<&Cage>) -> Result<(PipeReader, Process), TaskError> {
    let failed = |what| move |source| io_error(what, dir, source);
    let (reader, writer) = io::pipe().map_err(failed("make a pipe for"))?;
    let for_errors = writer.try_clone().map_err(failed("make a pipe for"))?;
    // This very program, also when its file has been replaced since.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("selvedge").arg(BECOME_VERB).arg(dir).arg(std::process::id().to_string());
    command.args(cage.map(Cage::dir));
    command.stdin(Stdio::piped()).stdout(writer).stderr(for_errors);
    let mut child = command.spawn().map_err(failed("start a task for"))?;
    // It holds the pipe's other end, which would never close.
    drop(command);
    let gone = || io::Error::other("a process just started is gone");
    let stamps = || Some((Process::of(std::process::id())?, Process::of(child.id())?));
    let (supervisor, task) = stamps().ok_or_else(gone).map_err(failed("start a task for"))?;
    super::write(&dir.join(RUN), &Run { supervisor, task })?;
    let mut stdin = child.stdin.take().expect("it was asked for");
    // A stub that has died meanwhile is reaped like any task.
    let _ = stdin.write_all(b"!");
    Ok((reader, task))
}

/// How much of a task's output there was and is.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    n_written: u64,
    n_kept: u64,
}

/// Keeps what comes out of `reader` until its other ends are closed, up to the limit.
fn drain(mut reader: PipeReader, dir: &Path) -> mpsc::Receiver<Kept> {
    let (to, from) = mpsc::channel();
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).mode(FILE_MODE).open(dir.join(OUTPUT)).ok();
    thread::spawn(move || {
        let mut kept = Kept::default();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            kept.take(&buffer[..n], file.as_mut());
        }
        if let (Some(file), true) = (&mut file, kept.n_kept < kept.n_written) {
            let lost = kept.n_written - kept.n_kept;
            let _ = writeln!(file, "[selvedge: {lost} more bytes were written and are not kept]");
        }
        // A supervisor that waits no longer has nobody to tell.
        let _ = to.send(kept);
    });
    from
}

impl Kept {
    fn take(&mut self, bytes: &[u8], file: Option<&mut File>) {
        let was_whole = self.n_kept == self.n_written;
        let room = limits::OUTPUT_BYTES_MAX - self.n_kept;
        self.n_written += bytes.len() as u64;
        let Some(file) = file.filter(|_| was_whole) else { return };
        let n = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        // On a full disk the rest is not kept either, and that is said at the end.
        if file.write_all(&bytes[..n]).is_ok() {
            self.n_kept += n as u64;
            if n < bytes.len() {
                let max = limits::OUTPUT_BYTES_MAX;
                let _ = writeln!(file, "\n[selvedge: output beyond {max} bytes is not kept]");
            }
        }
    }
}

/// Waits for the task's end, and for whoever else of its kin ends before it.
fn reap(task: Process) -> WaitStatus {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if raw(pid) == task.pid => return status,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Without children there is nothing to wait for: the task was reaped, which only
            // this loop does.
            Err(_) => pause(limits::EXIT_RETRY),
        }
    }
}

/// Ends what the task has left behind, until nothing is left.
fn bury(cage: Option<&Cage>) {
    let own = std::process::id();
    loop {
        if let Some(cage) = cage {
            cage.kill();
        }
        kill_descendants(own);
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        if descendants(own).is_empty() {
            return;
        }
        pause(Duration::from_millis(5));
    }
}

fn own_pid() -> Pid {
    rustix::process::getpid()
}

fn raw(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

#[allow(clippy::disallowed_methods, reason = "when a real process ended, people ask in real time")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[allow(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
pub(super) fn pause(span: Duration) {
    thread::sleep(span);
}
