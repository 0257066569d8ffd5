//! Real tasks: one process for each machine of a job, each under a small supervisor of its own
//! that outlives the server.
//!
//! ```text
//!  server ── launch ──► supervisor ── fork ──► stub ── told to go ──► exec: the task
//!    │                   │  own session, reaper of all that the task brings forth
//!    │                   └─ output (bounded), exit.json once the task and all of it are dead
//!    └─ look, notify, kill: by files, and by pid with start time
//! ```
//! A task's directory holds all that is known of it; every file is whole or absent:
//!
//! | file          | by         | what                                                        |
//! |---------------|------------|-------------------------------------------------------------|
//! | `task.json`   | server     | the [`Order`]                                               |
//! | `lock`        | supervisor | held while it lives, so that a task has one supervisor      |
//! | `cage`        | supervisor | the control group that the task is in, where it has one     |
//! | `run.json`    | supervisor | who runs: itself and the task; the task goes only then      |
//! | `output`      | supervisor | what the task wrote, up to [`crate::limits::OUTPUT_BYTES_MAX`] |
//! | `exit.json`   | supervisor | how the task ended; all that it brought forth is dead       |
//! | `notice.json` | server     | that the task is about to be stopped, when and why          |
//! | `heartbeat`   | task       | touched, if it wants to be watched                          |
//! | `work`        | task       | a directory to begin in, whose files are its own affair     |
//!
//! A task that runs under another account owns `heartbeat` and `work`, reads its notice, and can
//! list or read nothing else.
//!
//! A supervisor that is found dead without an `exit.json` has lost its task; the kernel kills the
//! task with it.  While it lives it has not said how the task ended, whatever stands there.
//!
//! A task without an account of its own can put anything in the place of any of these.  What does
//! not read as what was written there counts as not there; nothing is waited for, no link followed.

mod cage;

mod supervise;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::files::{self, DIR_MODE, FILE_MODE};
use crate::kin::{kill_descendants, kill_marked, signal, signal_group};
use crate::process::Process;

pub use supervise::{become_task, supervise};

/// The hidden verb of the program that [`supervise`]s; its argument is the task's directory.
pub const SUPERVISE_VERB: &str = "task-run";

/// The hidden verb of the program that [`become_task`]s.
pub const BECOME_VERB: &str = "task-become";

const ORDER: &str = "task.json";
const LOCK: &str = "lock";
const RUN: &str = "run.json";
const OUTPUT: &str = "output";
const EXIT: &str = "exit.json";
const CAGE: &str = "cage";

/// What a file of ours here holds at most; an order with all its variables is the largest.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The file that a task finds when it is about to be stopped.
pub const NOTICE: &str = "notice.json";

/// The variable that tells a task where its notice is; it marks all that the task brings forth.
pub const NOTICE_VARIABLE: &str = "SELVEDGE_NOTICE_FILE";

/// The file that a task touches to say that it lives.
pub const HEARTBEAT: &str = "heartbeat";

/// The directory that a task begins in unless told otherwise.
pub const WORK: &str = "work";

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All its variables.
    pub env: BTreeMap<String, String>,
    /// Where it begins.
    pub dir: String,
    /// The account that it runs under; the supervisor's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// Who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The supervisor.
    pub supervisor: Process,
    /// The task.
    pub task: Process,
}

/// Who of a task is known from elsewhere than its directory, which a program can remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The supervisor.
    pub supervisor: Option<Process>,
    /// The task, once it was seen.
    pub task: Option<Process>,
}

impl Known {
    /// Whether one of them lives.
    pub fn lives(self) -> bool {
        [self.supervisor, self.task].into_iter().flatten().any(|it| it.lives())
    }

    /// Both, where one stands for the other that is not known; none if nobody is.
    pub fn run(self) -> Option<Run> {
        let supervisor = self.supervisor.or(self.task)?;
        Some(Run { supervisor, task: self.task.unwrap_or(supervisor) })
    }
}

impl From<Run> for Known {
    fn from(run: Run) -> Self {
        Self { supervisor: Some(run.supervisor), task: Some(run.task) }
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Its status, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// How many bytes it wrote.
    pub n_written: u64,
    /// How many of them were kept.
    pub n_kept: u64,
}

/// What a task is told before it is stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Why, in words.
    pub why: String,
    /// The part of the plant that is drained, by its path, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<String>,
    /// How long the task has, in seconds from the moment of the notice.
    pub grace_s: f64,
    /// When it was told, in seconds since 1970.
    pub at_unix_s: f64,
    /// When it is killed, in seconds since 1970.
    pub kill_unix_s: f64,
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nobody runs it: [`launch`] it.
    Absent,
    /// Its supervisor has begun.
    Starting,
    /// It runs.
    Running(Run),
    /// It has ended, and all that it brought forth.
    Ended(Run, Exit),
    /// Its supervisor is dead and has not said how it ended.
    Lost(Run),
}

/// Why a task's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The system said no.
    #[error("cannot {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// Writes down what is to be run in `dir`, which is made.
///
/// # Errors
/// [`TaskError`].
pub fn prepare(dir: &Path, order: &Order) -> Result<(), TaskError> {
    let (work, heartbeat) = (dir.join(WORK), dir.join(HEARTBEAT));
    let shut = |path: &Path| fs::set_permissions(path, Permissions::from_mode(DIR_MODE));
    let made = fs::create_dir_all(&work).and_then(|()| shut(&work));
    made.map_err(|source| io_error("make", &work, source))?;
    if let Some(account) = account_of(order) {
        files::pass_dir(dir).map_err(|source| io_error("open", dir, source))?;
        write_bytes(&heartbeat, b"")?;
        for path in [&work, &heartbeat] {
            account.give(path).map_err(|source| io_error("give away", path, source))?;
        }
    }
    write(&dir.join(ORDER), order)
}

/// The account that an order names.  One that the machine no longer has is told by the task itself,
/// which then does not run.
fn account_of(order: &Order) -> Option<Account> {
    order.account.as_deref().and_then(|it| Account::of(it).ok())
}

/// Starts a supervisor for the task of `dir`.  One that finds another at work, or the task run
/// already, ends at once.
///
/// # Errors
/// If `program` cannot be started.
pub fn launch(program: &Path, dir: &Path) -> Result<Child, TaskError> {
    let mut command = Command::new(program);
    command.arg(SUPERVISE_VERB).arg(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A directory that is unmounted or removed under a supervisor is not its concern.
    command.current_dir("/");
    command.spawn().map_err(|source| io_error("start", program, source))
}

/// How the task of `dir` stands.
///
/// # Errors
/// [`TaskError`].
pub fn look(dir: &Path) -> Result<Look, TaskError> {
    let Some(run) = read::<Run>(&dir.join(RUN))? else {
        return Ok(if is_locked(dir)? { Look::Starting } else { Look::Absent });
    };
    // Looked at before the exit is: who is dead by then has written its last.
    if run.supervisor.lives() {
        return Ok(Look::Running(run));
    }
    Ok(read(&dir.join(EXIT))?.map_or(Look::Lost(run), |exit| Look::Ended(run, exit)))
}

/// Whether the order of the task of `dir` is there, as before it begins.
pub fn has_order(dir: &Path) -> bool {
    dir.join(ORDER).exists()
}

/// Tells the task of `dir` that it is about to be stopped: the notice's file first, then SIGTERM
/// to its process group.  A task that has been told is not told again.
///
/// # Errors
/// [`TaskError`]; the task may then know nothing.
pub fn notify(dir: &Path, notice: &Notice, known: Known) -> Result<(), TaskError> {
    let path = dir.join(NOTICE);
    if !dir.is_dir() {
        return terminate(dir, known);
    }
    if fs::symlink_metadata(&path).is_ok_and(|it| it.is_file()) {
        return Ok(());
    }
    let order = read::<Order>(&dir.join(ORDER))?;
    let told = match order.as_ref().and_then(account_of) {
        Some(account) => account
            .write_shared(&path, &json(notice))
            .map_err(|source| io_error("write", &path, source)),
        None => write(&path, notice),
    };
    // It is asked to end all the same.
    terminate(dir, known).and(told)
}

/// Asks the task of `dir` to end by SIGTERM to its process group.
///
/// # Errors
/// [`TaskError`].
pub fn terminate(dir: &Path, known: Known) -> Result<(), TaskError> {
    let task = match look(dir)? {
        Look::Running(run) => Some(run.task),
        Look::Absent | Look::Starting => known.task,
        Look::Lost(_) | Look::Ended(..) => None,
    };
    if let Some(task) = task {
        signal_group(task, Signal::TERM);
    }
    Ok(())
}

/// Ends the task of `dir` and all that it brought forth by SIGKILL.  Its supervisor then writes
/// how it ended; call again until it has.
///
/// # Errors
/// [`TaskError`].
pub fn kill(dir: &Path, known: Known) -> Result<(), TaskError> {
    let marked = || sweep(&[dir.to_owned()]);
    match look(dir)? {
        Look::Running(run) => {
            kill_descendants(run.supervisor.pid);
            // A task may have stopped its supervisor, which then writes nothing down.
            signal(run.supervisor, Signal::CONT);
        }
        // The kernel has killed the task with its supervisor; what it brought forth may live, and
        // is known by the group that it is in, or by what it was given.
        Look::Lost(_) => marked(),
        // What is kept of it is gone, or in part: nothing that its supervisor writes is read.
        Look::Absent | Look::Starting if known.task.is_some() || !dir.join(ORDER).exists() => {
            if let Some(supervisor) = known.supervisor.filter(|it| it.lives()) {
                kill_descendants(supervisor.pid);
                signal(supervisor, Signal::KILL);
            }
            if let Some(task) = known.task {
                signal_group(task, Signal::KILL);
            }
            if known != Known::default() {
                marked();
            }
        }
        Look::Absent | Look::Starting | Look::Ended(..) => {}
    }
    Ok(())
}

/// Ends a supervisor that does not come to write down how its task ended, as where somebody has
/// taken its directory from it.  The task is then lost.
///
/// # Errors
/// [`TaskError`].
pub fn kill_supervisor(dir: &Path, known: Known) -> Result<(), TaskError> {
    kill(dir, known)?;
    let supervisor = match look(dir)? {
        Look::Running(run) => Some(run.supervisor),
        Look::Absent | Look::Starting => known.supervisor,
        Look::Lost(_) | Look::Ended(..) => None,
    };
    if let Some(supervisor) = supervisor {
        signal(supervisor, Signal::KILL);
    }
    Ok(())
}

/// Ends whatever the tasks of `dirs`, which are over, have left: a supervisor leaves nothing, but a
/// task may have ended its own.
pub fn sweep(dirs: &[PathBuf]) {
    for dir in dirs {
        cage::kill_left(dir);
    }
    let mark = |it: &PathBuf| format!("{NOTICE_VARIABLE}={}", it.join(NOTICE).display());
    kill_marked(&dirs.iter().map(mark).collect());
}

/// At most `n_max` bytes of what the task of `dir` wrote, from `from` on.
///
/// # Errors
/// [`TaskError`].
pub fn output(dir: &Path, from: u64, n_max: u64) -> Result<Vec<u8>, TaskError> {
    let path = dir.join(OUTPUT);
    let mut file = match files::open_plain(&path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(source) => return Err(io_error("read", &path, source)),
    };
    let mut bytes = Vec::new();
    let read =
        file.seek(SeekFrom::Start(from)).and_then(|_| file.take(n_max).read_to_end(&mut bytes));
    read.map_err(|source| io_error("read", &path, source))?;
    Ok(bytes)
}

/// How many bytes of output the task of `dir` has left.
pub fn n_output(dir: &Path) -> u64 {
    fs::symlink_metadata(dir.join(OUTPUT)).map_or(0, |it| it.len())
}

/// How long ago the task of `dir` began, if it did, by the clock of its files.
pub fn ran_for(dir: &Path) -> Option<Duration> {
    fs::metadata(dir.join(RUN)).ok()?.modified().ok()?.elapsed().ok()
}

/// Says something of the server's own in the output of the task of `dir`, where its owner looks
/// first.
///
/// # Errors
/// [`TaskError`].
pub fn remark(dir: &Path, text: &str) -> Result<(), TaskError> {
    let path = dir.join(OUTPUT);
    let said = files::append_plain(&path)
        .and_then(|mut it| it.write_all(format!("[selvedge: {text}]\n").as_bytes()));
    said.map_err(|source| io_error("write", &path, source))
}

/// When the task of `dir` last said that it lives, by the clock of its files: its heartbeat, or its
/// start while there is none.
pub fn heard(dir: &Path) -> Option<SystemTime> {
    let modified = |name: &str| fs::metadata(dir.join(name)).ok()?.modified().ok();
    modified(HEARTBEAT).or_else(|| modified(RUN))
}

fn is_locked(dir: &Path) -> Result<bool, TaskError> {
    let path = dir.join(LOCK);
    match files::open_plain(&path) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(source)) => Err(io_error("lock", &path, source)),
        },
        Err(error) if is_absent(&error) => Ok(false),
        Err(source) => Err(io_error("open", &path, source)),
    }
}

fn write(path: &Path, content: &impl Serialize) -> Result<(), TaskError> {
    write_bytes(path, &json(content))
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), TaskError> {
    files::write_atomically(path, bytes, FILE_MODE).map_err(|it| io_error("write", path, it))
}

fn json(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).expect("its keys are text")
}

/// What stands there, if it is what was written there.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, TaskError> {
    match files::read_plain(path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if is_absent(&error) => Ok(None),
        Err(source) => Err(io_error("read", path, source)),
    }
}

/// Whether a file is not there, or something else in its place.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || files::is_misplaced(error)
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> TaskError {
    TaskError::Io { what, path: path.display().to_string(), source }
}
