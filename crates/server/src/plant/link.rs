//! The line to the plant's process, in a thread of its own, so that the loop never waits for it.
//!
//! ```text
//!   loop ── Step, Hello, Backup, Leave, End ──► thread ──► socket ──► the plant's process
//!    ▲                                          │        (found by process and start time,
//!    └──────── Stepped, Back, Lost, … ──────────┘         or started)
//! ```

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use selvedge_driver::files::{self, DirError, FILE_MODE};
use selvedge_driver::plant::{self, Hello, Line, Step, Stepped, Welcome};
use selvedge_driver::process::Process;
use selvedge_driver::store::{self, StoreError};

use super::simulated::PROCESS_FILE;
use crate::api::error::chain;
use crate::limits;
use crate::shell::Request;
use crate::users::USERS_FILE;

/// In a backup: what is in it; written last, so that a backup without it is none.
pub const MANIFEST_FILE: &str = "backup.json";

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of a backup.
    pub format: u32,
    /// The version that made it.
    pub program: String,
    /// The newest row of its journal.
    pub rows: u64,
    /// The checksum over all its rows.
    pub chain: String,
    /// Whether the state of a simulated plant is in it.
    pub plant: bool,
    /// Whether the people with tokens of their own are in it, by the digests of those.
    #[serde(default)]
    pub users: bool,
}

/// In the plant's folder: what its process had to say.
const WORDS_FILE: &str = "words";

/// Why there is no plant to talk to.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Its folder cannot be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// No process can be started.
    #[error("cannot start the plant's process")]
    Start {
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// It ended at once.
    #[error("the plant's process ended at once: {words}")]
    Ended {
        /// What it said.
        words: String,
    },
    /// It ended at once, without a word: somebody has killed it.
    #[error("the plant's process ended at once: it said nothing")]
    Killed,
    /// It does not listen.
    #[error(
        "the plant's process does not listen in {dir} after {} s",
        limits::PLANT_START_MAX.as_secs()
    )]
    Deaf {
        /// The plant's folder.
        dir: PathBuf,
    },
    /// It does not talk, or not with us.
    #[error(transparent)]
    Plant(#[from] plant::PlantError),
}

impl LinkError {
    /// Whether the other side was there, and is gone: another may be there, or be started.
    pub(super) fn is_cut(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self {
            Self::Plant(plant::PlantError::Lost { source }) => {
                matches!(source.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
            }
            Self::Killed => true,
            Self::Dir(_)
            | Self::Start { .. }
            | Self::Ended { .. }
            | Self::Deaf { .. }
            | Self::Plant(_) => false,
        }
    }
}

/// Where the plant's process is found, and how it is started.
#[derive(Debug)]
pub(super) struct Host {
    /// The plant's folder.
    dir: PathBuf,
    started: Option<Started>,
}

#[cfg(not(test))]
type Started = std::process::Child;

/// In unit tests the process is a thread that serves the same folder in the same way.
#[cfg(test)]
type Started = std::thread::JoinHandle<()>;

impl Host {
    pub(super) fn new(data: &Path) -> Self {
        Self { dir: data.join(plant::PLANT_DIR), started: None }
    }

    /// The line to the plant's process, which is started if none runs.
    ///
    /// # Errors
    /// [`LinkError`].
    pub(super) fn connect(&mut self) -> Result<Line, LinkError> {
        files::own_dir(&self.dir)?;
        let deadline = Instant::now() + limits::PLANT_START_MAX;
        let mut has_started = false;
        while Instant::now() < deadline {
            if let Some(process) = serving(&self.dir) {
                if let Ok(line) = Line::to(&self.dir, limits::PLANT_ANSWER_MAX) {
                    tracing::debug!(pid = process.pid, "the plant's process answers");
                    return Ok(line);
                }
            } else if !has_started {
                self.started = Some(self.start().map_err(|source| LinkError::Start { source })?);
                has_started = true;
            } else if self.has_ended() {
                return Err(self.why_ended());
            }
            std::thread::sleep(limits::PLANT_LOOK_EVERY);
        }
        Err(LinkError::Deaf { dir: self.dir.clone() })
    }

    /// Waits until the plant's process is gone, and ends it if it does not go.
    pub(super) fn see_off(&mut self, serving: Option<Process>, wait: Duration) {
        let deadline = Instant::now() + wait;
        let lives = |it: &Process| it.pid != std::process::id() && it.lives();
        while serving.as_ref().is_some_and(lives) && Instant::now() < deadline {
            // One that we have started goes only once it is asked how it ended.
            self.has_ended();
            std::thread::sleep(limits::PLANT_LOOK_EVERY);
        }
        if let Some(process) = serving.filter(lives)
            && let Err(error) = process.kill()
        {
            tracing::warn!(%error, pid = process.pid, "the plant's process cannot be ended");
        }
        self.reap();
    }

    #[cfg(not(test))]
    fn start(&self) -> io::Result<Started> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(FILE_MODE);
        let words = options.open(self.dir.join(WORDS_FILE))?;
        let data = self.dir.parent().unwrap_or(&self.dir);
        let args = ["plant-sim".as_ref(), "--data".as_ref(), data.as_os_str()];
        selvedge_driver::process::start_self(&args, words)
    }

    #[cfg(test)]
    fn start(&self) -> io::Result<Started> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(FILE_MODE);
        let mut words = options.open(self.dir.join(WORDS_FILE))?;
        let dir = self.dir.clone();
        std::thread::Builder::new().name("plant-sim".to_owned()).spawn(move || {
            if let Err(error) = super::simulated::serve_plant(&dir) {
                io::Write::write_all(&mut words, chain(&error).as_bytes()).expect("room for words");
            }
        })
    }

    /// Whether the process that we have started has ended.
    fn has_ended(&mut self) -> bool {
        #[cfg(not(test))]
        return self.started.as_mut().is_none_or(|it| !matches!(it.try_wait(), Ok(None)));
        #[cfg(test)]
        return self.started.as_ref().is_none_or(|it| it.is_finished());
    }

    fn reap(&mut self) {
        #[cfg(not(test))]
        if let Some(mut child) = self.started.take() {
            // It has been told to end, or killed.
            let _ = child.wait();
        }
        #[cfg(test)]
        if let Some(thread) = self.started.take() {
            thread.join().expect("a plant's thread does not panic");
        }
    }

    fn why_ended(&self) -> LinkError {
        let words = fs::read_to_string(self.dir.join(WORDS_FILE)).unwrap_or_default();
        match words.trim() {
            "" => LinkError::Killed,
            words => LinkError::Ended { words: words.to_owned() },
        }
    }
}

/// The live process that serves `dir`, the plant's folder.
pub(super) fn serving(dir: &Path) -> Option<Process> {
    let process: Process = serde_json::from_slice(&fs::read(dir.join(PROCESS_FILE)).ok()?).ok()?;
    process.lives().then_some(process)
}

/// What the loop asks of the thread.
#[derive(Debug)]
pub(super) enum Errand {
    /// Find the process, or start it, and say hello.
    Hello(Box<Hello>),
    /// Tell and go on.
    Step(Step),
    /// Copy what the journal of a data directory holds, and what the plant keeps, to a new
    /// directory.
    Backup { data: PathBuf, to: PathBuf },
    /// Let the process be.
    Leave,
    /// End the process.
    End,
}

/// What the loop hears of the thread.
#[derive(Debug)]
pub(crate) enum News {
    /// A step was carried out.
    Stepped(Box<Stepped>),
    /// How a backup ended: the newest row in it, or why there is none.
    Copied(Result<u64, String>),
    /// There is a process again.
    Back(Box<Welcome>),
    /// There is none, or it cannot be talked to.
    Lost(String),
}

/// The thread's work; ends with its line.
pub(super) fn run(
    mut host: Host,
    line: Line,
    errands: &Receiver<Errand>,
    news: &SyncSender<Request>,
) {
    let mut line = Some(line);
    // A loop that is gone hears nothing, and its errands end soon.
    let tell = |it| drop(news.send(Request::Plant(it)));
    loop {
        let errand = match errands.recv_timeout(limits::PLANT_LOOKED_AT_EVERY) {
            Ok(errand) => errand,
            Err(RecvTimeoutError::Timeout) => {
                if line.as_mut().is_some_and(|it| !it.is_open()) {
                    line = None;
                    tell(News::Lost("the plant's process has ended".to_owned()));
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match (errand, &mut line) {
            (Errand::Leave, _) => return,
            (Errand::End, it) => return end(&mut host, it.take()),
            (Errand::Hello(hello), it) => {
                *it = None;
                tell(match greet(&mut host, &hello) {
                    Ok((new, welcome)) => {
                        *it = Some(new);
                        News::Back(Box::new(welcome))
                    }
                    Err(error) => News::Lost(chain(&error)),
                });
            }
            (Errand::Backup { .. }, None) => {
                tell(News::Copied(Err("the plant is away".to_owned())));
            }
            (Errand::Backup { data, to }, Some(open)) => {
                tell(News::Copied(back_up(&data, &to, Some(open)).map_err(|it| chain(&it))));
            }
            (Errand::Step(_), None) => {
                tell(News::Lost("there is no plant's process".to_owned()));
            }
            (Errand::Step(step), Some(open)) => {
                let stepped = open.step(step).map(|it| News::Stepped(Box::new(it)));
                answer(stepped, &mut line, &mut host, tell);
            }
        }
    }
}

/// Why nothing could be backed up.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The journal, or the new directory.
    #[error(transparent)]
    Store(#[from] Box<StoreError>),
    /// The plant.
    #[error(transparent)]
    Plant(#[from] plant::PlantError),
    /// A file of the new directory.
    #[error("cannot write in {to}")]
    Io {
        /// The new directory.
        to: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// Copies the journal of `data`, then what the plant keeps, to the new directory `to`, and writes
/// down last of all what is in it; returns its newest row.
///
/// No step comes between the two, so that they are of one moment: the journal may be behind by
/// changes that the plant has not been told.
pub(super) fn back_up(data: &Path, to: &Path, line: Option<&mut Line>) -> Result<u64, BackupError> {
    let io_error = |source| BackupError::Io { to: to.to_owned(), source };
    let report = store::backup(data, to).map_err(Box::new)?;
    let has_plant = line.is_some();
    if let Some(line) = line {
        let folder = to.join(plant::PLANT_DIR);
        files::own_new_dir(&folder).map_err(|it| io_error(io::Error::other(it)))?;
        line.copy(&folder.canonicalize().map_err(io_error)?)?;
    }
    let users = match fs::read(data.join(USERS_FILE)) {
        Ok(bytes) => {
            files::write_atomically(&to.join(USERS_FILE), &bytes, FILE_MODE).map_err(io_error)?;
            true
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(io_error(error)),
    };
    let manifest = Manifest {
        format: 1,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        rows: report.last_good,
        chain: report.chain.to_string(),
        plant: has_plant,
        users,
    };
    let bytes = serde_json::to_vec_pretty(&manifest).map_err(|it| io_error(it.into()))?;
    files::write_atomically(&to.join(MANIFEST_FILE), &bytes, FILE_MODE).map_err(io_error)?;
    Ok(report.last_good)
}

/// Says hello over a new line.
pub(super) fn greet(host: &mut Host, hello: &Hello) -> Result<(Line, Welcome), LinkError> {
    let mut line = host.connect()?;
    let welcome = line.hello(hello)?;
    Ok((line, welcome))
}

/// Ends the process at the other end, or whoever serves the folder.
pub(super) fn end(host: &mut Host, line: Option<Line>) {
    // Asked before it ends, for it takes its file away first.
    let process = serving(&host.dir);
    let line = line.or_else(|| {
        process?;
        Line::to(&host.dir, limits::PLANT_END_MAX).ok()
    });
    if let Some(Err(error)) = line.map(Line::end) {
        tracing::warn!(error = chain(&error), "the plant's process");
    }
    host.see_off(process, limits::PLANT_END_MAX);
}

fn answer(
    done: Result<News, plant::PlantError>,
    line: &mut Option<Line>,
    host: &mut Host,
    tell: impl Fn(News),
) {
    match done {
        Ok(news) => tell(news),
        // Nothing was done; the next hello finds out whether it can be kept again.
        Err(error @ plant::PlantError::NotKept { .. }) => tell(News::Lost(chain(&error))),
        Err(error) => {
            *line = None;
            if matches!(&error, plant::PlantError::Lost { source } if is_silence(source)) {
                // It lives and does nothing; what it has answered it has kept.
                host.see_off(serving(&host.dir), Duration::ZERO);
            }
            tell(News::Lost(chain(&error)));
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
