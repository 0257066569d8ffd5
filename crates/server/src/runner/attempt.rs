//! One start of one job: its tasks, from their launch to the last exit.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use selvedge_control::input::{Answer, Exit, Input, Task, TaskExit};
use selvedge_driver::account::Account;
use selvedge_driver::files::{self, FILE_MODE};
use selvedge_driver::process::Process;
use selvedge_driver::task::{self, Known, Look, Notice, TaskError};
use selvedge_model::fault::{Symptom, Target};
use selvedge_model::job::Program;
use selvedge_model::unit::Span;

use super::{Key, Launch, Reason, discard};
use crate::api::error::chain;
use crate::limits;
use crate::slice::Post;

const FILE: &str = "attempt.json";
const SLICE: &str = "slice.json";
/// The status of a job that takes its own supervisors down: what a program killed by SIGKILL has.
const LOST_STATUS: i32 = 137;
/// The directory of who was launched, one file for each attempt.
pub(super) const LAUNCHED: &str = "launched";
/// Written once a task of it has hung: which.
const HUNG: &str = "hung";
/// Written once the tasks have been told to stop: how they end is then not their own doing.
const TOLD: &str = "told";

/// Why an attempt cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttemptError {
    #[error("cannot use {path}")]
    Io {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// What of an attempt outlives the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    submitted_ns: u64,
    master_port: u16,
    machines: Vec<Target>,
    heartbeat: Option<Span>,
}

#[derive(Debug)]
pub(super) struct Attempt {
    key: Key,
    dir: PathBuf,
    kept: Option<Kept>,
    /// Supervisors that this process started and must reap.
    children: BTreeMap<usize, Child>,
    /// Who was launched, also by an earlier server: a program can remove what is kept of it, and
    /// has run all the same.
    known: BTreeMap<usize, Known>,
    /// What of that is on disk.
    known_kept: BTreeMap<usize, Known>,
    /// Since when it is looked for what they write first.
    launched_at: Instant,
    /// What was said last.
    said: Vec<Task>,
    said_started: bool,
    told: bool,
    /// Since when those that run are killed.
    killed: Option<Instant>,
    /// When it was seen that a task had failed, and whether the others have been asked to end.
    failing: Option<(Instant, bool)>,
    /// When those that still run are killed, as all is to end.
    kill_at: Option<Instant>,
    /// The newest heartbeat of each task, and when it was seen: a clock that is set tells nothing
    /// of how long ago that is.
    beats: BTreeMap<usize, (SystemTime, Instant)>,
    /// What was complained of: what stays wrong is met at each look, and said once.
    complaints: RefCell<BTreeSet<String>>,
}

impl Attempt {
    /// The attempt of `dir`, made for `launch` if it is not there.
    pub(super) fn open(dir: PathBuf, key: Key, launch: &Launch) -> Result<Self, AttemptError> {
        let mut attempt = Self::reopen(dir, key);
        if attempt.kept.as_ref().is_some_and(|it| it.submitted_ns != launch.submitted_ns) {
            // A start of another job, from a future that the journal does not know.
            attempt.end();
            let _ = attempt.watch();
            discard(attempt.tasks_dir(), std::slice::from_ref(&attempt.dir));
            attempt.forget();
            attempt = Self::reopen(attempt.dir, key);
        }
        if attempt.kept.is_none() {
            let master = launch.slice.posts[0].address;
            let kept = Kept {
                submitted_ns: launch.submitted_ns,
                master_port: free_port(master, key),
                machines: launch.slice.posts.iter().map(|it| it.machine).collect(),
                heartbeat: launch.program.heartbeat,
            };
            let dir = &attempt.dir;
            let io_error = |source| AttemptError::Io { path: dir.display().to_string(), source };
            fs::create_dir_all(dir).map_err(io_error)?;
            let slice = serde_json::to_vec_pretty(&launch.slice.file).map_err(io::Error::other);
            let slice = slice.map_err(io_error)?;
            // One that the machine no longer has is told by the tasks.
            let account = launch.program.account.as_deref().and_then(|it| Account::of(it).ok());
            match account {
                Some(account) => attempt
                    .let_in()
                    .and_then(|()| account.write_shared(&dir.join(SLICE), &slice))
                    .map_err(io_error)?,
                None => files::write_atomically(&dir.join(SLICE), &slice, FILE_MODE)
                    .map_err(io_error)?,
            }
            let bytes = serde_json::to_vec(&kept).map_err(io::Error::other).map_err(io_error)?;
            files::write_atomically(&dir.join(FILE), &bytes, FILE_MODE).map_err(io_error)?;
            attempt.kept = Some(kept);
        }
        Ok(attempt)
    }

    /// Lets the accounts of tasks pass from the data directory to this one, and see nothing else.
    fn let_in(&self) -> io::Result<()> {
        let tasks = self.tasks_dir();
        if let (Some(data), Some(name)) = (tasks.parent(), tasks.file_name()) {
            files::let_pass(data, Path::new(name))?;
        }
        for dir in self.dir.ancestors().take(2) {
            files::pass_dir(dir)?;
        }
        Ok(())
    }

    /// The attempt of `dir`, as far as anything is there.
    pub(super) fn reopen(dir: PathBuf, key: Key) -> Self {
        let kept = files::read_plain(&dir.join(FILE), limits::ATTEMPT_BYTES_MAX).ok();
        let kept = kept.and_then(|it| serde_json::from_slice(&it).ok());
        let told = dir.join(TOLD).exists();
        let children = BTreeMap::new();
        let known = fs::read(known_file(&dir, key)).ok();
        let known: BTreeMap<_, _> =
            known.and_then(|it| serde_json::from_slice(&it).ok()).unwrap_or_default();
        Self {
            key,
            dir,
            kept,
            children,
            known_kept: known.clone(),
            known,
            launched_at: Instant::now(),
            said: Vec::new(),
            said_started: false,
            told,
            killed: None,
            kill_at: None,
            failing: None,
            beats: BTreeMap::new(),
            complaints: RefCell::default(),
        }
    }

    /// Whether anything is left of the attempt in `dir`.
    pub(super) fn is_kept(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Launches what is not running and has not run; says everything again.
    pub(super) fn start(&mut self, program: &Path, launch: &Launch) -> Result<(), AttemptError> {
        self.said.clear();
        self.said_started = false;
        if self.told {
            return Ok(());
        }
        for (idx, &begun) in launch.begun.iter().flatten().enumerate() {
            let task = Some(begun);
            self.known.entry(idx).or_insert(Known { supervisor: None, task });
        }
        let port = self.kept.as_ref().map_or(0, |it| it.master_port);
        for (idx, post) in launch.slice.posts.iter().enumerate() {
            let dir = self.task_dir(idx);
            if self.known.contains_key(&idx) || task::look(&dir)? != Look::Absent {
                continue;
            }
            task::prepare(&dir, &self.order(launch, idx, post, port))?;
            let child = task::launch(program, &dir)?;
            self.launched_at = Instant::now();
            let pid = child.id();
            let launched = Process::of(pid).unwrap_or(Process { pid, started: 0 });
            self.known.insert(idx, Known { supervisor: Some(launched), task: None });
            self.children.insert(idx, child);
        }
        self.keep_known();
        Ok(())
    }

    fn order(&self, launch: &Launch, idx: usize, post: &Post, port: u16) -> task::Order {
        let dir = self.task_dir(idx);
        let mut env = inherited(launch.program.account.is_some());
        // The machines are simulated: all their addresses are on the loopback interface.
        for name in ["GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"] {
            env.insert(name.to_owned(), "lo".to_owned());
        }
        env.extend(launch.program.env.clone());
        env.extend(post.env.clone());
        let path = |it: PathBuf| it.display().to_string();
        let (job, attempt) = self.key;
        let own = [
            ("MASTER_PORT", port.to_string()),
            ("CLOUD_TPU_TASK_ID", idx.to_string()),
            ("SELVEDGE_JOB_ID", job.number().to_string()),
            ("SELVEDGE_JOB_NAME", launch.name.clone()),
            ("SELVEDGE_ATTEMPT", attempt.to_string()),
            ("SELVEDGE_TASK", idx.to_string()),
            ("SELVEDGE_ADDRESS", post.address.to_string()),
            ("SELVEDGE_SLICE_FILE", path(self.dir.join(SLICE))),
            (task::NOTICE_VARIABLE, path(dir.join(task::NOTICE))),
            ("SELVEDGE_HEARTBEAT_FILE", path(dir.join(task::HEARTBEAT))),
        ];
        env.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let Program { argv, dir: begin, account, .. } = launch.program.clone();
        let begin = begin.unwrap_or_else(|| path(dir.join(task::WORK)));
        task::Order { argv, env, dir: begin, account }
    }

    /// Tells the tasks that they will be stopped.
    pub(super) fn notify(&mut self, grace: Span, reason: &Reason) {
        self.said.clear();
        if !self.is_live() {
            return;
        }
        self.tell();
        let at = unix_s();
        let grace_s = grace.as_secs_f64();
        let (why, drained) = (reason.why.clone(), reason.drained.clone());
        let notice = Notice { why, drained, grace_s, at_unix_s: at, kill_unix_s: at + grace_s };
        for idx in 0..self.n_tasks() {
            if let Err(error) = task::notify(&self.task_dir(idx), &notice, self.known_of(idx)) {
                self.complain("a real task", &error);
            }
        }
    }

    /// Ends the tasks.
    pub(super) fn kill(&mut self) {
        self.said.clear();
        if self.kept.is_none() || self.is_live() || self.any_absent() {
            self.tell();
        }
        self.killed.get_or_insert_with(Instant::now);
    }

    /// Ends the tasks because the whole server ends: asked first, killed after a grace.
    pub(super) fn end(&mut self) {
        let why = "the server is told to end everything".to_owned();
        let reason = Reason { why, drained: None };
        let grace = Span::secs(limits::TASKS_END_GRACE.as_secs());
        if self.is_live() {
            self.notify(grace, &reason);
        } else {
            self.kill();
        }
        self.kill_at = Some(Instant::now() + limits::TASKS_END_GRACE);
    }

    /// The directories that its tasks began in, which go once they are over: what lies there was
    /// made by programs, and is theirs to keep elsewhere.
    pub(super) fn work(&self) -> Vec<PathBuf> {
        let work = (0..self.n_tasks()).map(|it| self.task_dir(it).join(task::WORK));
        work.filter(|it| it.exists()).collect()
    }

    /// The directory of all attempts, by job and number.
    fn tasks_dir(&self) -> &Path {
        self.dir.ancestors().nth(2).unwrap_or(&self.dir)
    }

    /// Whether a task of it runs.
    pub(super) fn is_live(&self) -> bool {
        self.looks().iter().any(|it| matches!(it, Look::Starting | Look::Running(_)))
    }

    /// Looks after it; returns what is new.  Once that holds its end, it is over.
    pub(super) fn watch(&mut self) -> Vec<Input> {
        for child in self.children.values_mut() {
            // Only reaped: what it did is read from its files.
            let _ = child.try_wait();
        }
        if self.kill_at.is_some_and(|it| it <= Instant::now()) {
            self.killed.get_or_insert_with(Instant::now);
        }
        let looks = self.looks();
        for (idx, look) in looks.iter().enumerate() {
            if let Look::Running(run) = look {
                self.known.insert(idx, Known::from(*run));
            }
        }
        self.keep_known();
        if self.killed.is_some_and(|it| limits::SUPERVISOR_END_MAX < it.elapsed()) {
            self.each(task::kill_supervisor);
        } else if self.killed.is_some() || looks.iter().any(|it| matches!(it, Look::Lost(_))) {
            self.each(task::kill);
        }
        let mut seen = Vec::new();
        let (job, attempt) = self.key;
        let tasks = self.tasks(&looks);
        if let Some(tasks) = &tasks {
            if *tasks != self.said {
                self.said.clone_from(tasks);
                let tasks = tasks.clone();
                seen.push(Input::Answer(Answer::Tasks { job, attempt, tasks }));
            }
            if !self.said_started {
                self.said_started = true;
                seen.push(Input::Answer(Answer::Started { job, attempt }));
            }
        }
        let is_over = |it: &Look| match it {
            Look::Ended(..) | Look::Lost(_) => true,
            // What was never launched, and will not be.
            Look::Absent => self.killed.is_some() && self.told,
            Look::Starting | Look::Running(_) => false,
        };
        if looks.iter().all(is_over) && (tasks.is_some() || self.killed.is_some()) {
            let dirs: Vec<PathBuf> = (0..self.n_tasks()).map(|it| self.task_dir(it)).collect();
            task::sweep(&dirs);
            let exit = self.exit(&looks);
            seen.push(Input::Answer(Answer::Stopped { job, attempt, exit, kept: 0 }));
            return seen;
        }
        seen.extend(self.find_hung(&looks));
        self.end_with_the_first(&looks);
        seen
    }

    /// How the tasks stand, once each has begun.
    fn tasks(&self, looks: &[Look]) -> Option<Vec<Task>> {
        let machines = &self.kept.as_ref()?.machines;
        let one = |(look, &machine): (&Look, &Target)| {
            let (run, exit) = match *look {
                Look::Absent | Look::Starting => return None,
                Look::Running(run) => (run, None),
                Look::Lost(run) => (run, Some(TaskExit::Lost)),
                Look::Ended(run, exit) => (run, Some(task_exit(exit))),
            };
            Some(Task { machine, pid: run.task.pid, began: run.task.started, exit })
        };
        looks.iter().zip(machines).map(one).collect()
    }

    /// How the job ended: with its hardware, as told, or as the task that failed first did.
    fn exit(&self, looks: &[Look]) -> Exit {
        if self.told {
            return Exit::Told;
        }
        if looks.iter().any(|it| matches!(it, Look::Lost(_))) {
            let is_own_doing = limits::LOST_STARTS_MAX <= self.key.1 && self.was_short();
            return if is_own_doing { Exit::Failed(LOST_STATUS) } else { Exit::Lost };
        }
        if let Some(task) = self.hung() {
            // However well it ended when it was asked to, it has not done its work.
            return Exit::Hung { task };
        }
        let failed = looks.iter().filter_map(|it| match it {
            Look::Ended(_, exit) if task_exit(*exit) != TaskExit::Code(0) => Some(*exit),
            Look::Ended(..) | Look::Absent | Look::Starting | Look::Running(_) | Look::Lost(_) => {
                None
            }
        });
        let first = failed.min_by_key(|it| it.at_ms);
        first.map_or(Exit::Done, |it| Exit::Failed(task_exit(it).status()))
    }

    /// Which task was found to hang, if one was.
    fn hung(&self) -> Option<u32> {
        let told = files::read_plain(&self.dir.join(HUNG), limits::ATTEMPT_BYTES_MAX).ok()?;
        Some(String::from_utf8_lossy(&told).trim().parse().unwrap_or(0))
    }

    /// Whether a task that is lost was so soon after its start.
    fn was_short(&self) -> bool {
        // Of one that has removed what was kept of it nobody knows, and it has done so itself.
        let is_soon =
            |idx| task::ran_for(&self.task_dir(idx)).is_none_or(|it| it < limits::LOST_SOON);
        (0..self.n_tasks()).any(is_soon)
    }

    /// Whether tasks have not touched their heartbeat for too long: then the job ends as if one had
    /// failed.  Where one stands still the others wait for it, so that of one start the first that
    /// did alone speaks against its machine.
    fn find_hung(&mut self, looks: &[Look]) -> Option<Input> {
        let Some(Kept { heartbeat: Some(heartbeat), machines, .. }) = &self.kept else {
            return None;
        };
        if self.told || self.failing.is_some() {
            return None;
        }
        let now = Instant::now();
        let mut beats = std::mem::take(&mut self.beats);
        let silent = |(idx, look): (usize, &Look)| {
            let lives = matches!(look, Look::Running(_));
            let heard = task::heard(&self.task_dir(idx)).filter(|_| lives)?;
            let beat = beats.entry(idx).or_insert((heard, now));
            if beat.0 != heard {
                *beat = (heard, now);
            }
            let silence = now.duration_since(beat.1);
            let is_hung = heartbeat.as_secs_f64() < silence.as_secs_f64();
            if is_hung {
                let text = format!(
                    "its heartbeat was not touched for {:.1} s, and {heartbeat} is the limit: it ends",
                    silence.as_secs_f64(),
                );
                // What cannot be said there still stands in the case.
                let _ = task::remark(&self.task_dir(idx), &text);
            }
            is_hung.then_some((idx, silence))
        };
        let hung = looks.iter().enumerate().filter_map(silent);
        let first = hung.max_by_key(|(idx, silence)| (*silence, Reverse(*idx)));
        self.beats = beats;
        let (first, _) = first?;
        let machine = machines[first];
        // Also for a server that comes up before they have ended.
        let (which, path) = (first.to_string(), self.dir.join(HUNG));
        if let Err(error) = files::write_atomically(&path, which.as_bytes(), FILE_MODE) {
            tracing::warn!(%error, "that a task hung cannot be kept");
        }
        self.failing = Some((Instant::now(), true));
        self.each(task::terminate);
        let value = Some(self.key.0.number());
        Some(Input::Report { target: machine, symptom: Symptom::TaskHung, value })
    }

    /// Once a task has failed, the others are given a moment to find out, then asked to end, then
    /// ended: a job without one of its tasks goes nowhere, and none may hang.
    fn end_with_the_first(&mut self, looks: &[Look]) {
        let has_failed = |it: &Look| match it {
            Look::Ended(_, exit) => task_exit(*exit) != TaskExit::Code(0),
            Look::Lost(_) => true,
            Look::Absent | Look::Starting | Look::Running(_) => false,
        };
        if self.told || self.failing.is_none() && !looks.iter().any(has_failed) {
            return;
        }
        let (since, asked) = *self.failing.get_or_insert((Instant::now(), false));
        if !asked && limits::FAILED_WAIT <= since.elapsed() {
            self.failing = Some((since, true));
            self.each(task::terminate);
        } else if limits::FAILED_WAIT + limits::FAILED_GRACE <= since.elapsed() {
            let waited = since.elapsed() - limits::FAILED_WAIT - limits::FAILED_GRACE;
            let is_stuck = limits::SUPERVISOR_END_MAX < waited;
            self.each(if is_stuck { task::kill_supervisor } else { task::kill });
        }
    }

    fn each(&self, what: fn(&Path, Known) -> Result<(), TaskError>) {
        for idx in 0..self.n_tasks() {
            let known = match self.look(idx) {
                Look::Running(run) | Look::Lost(run) => Known::from(run),
                Look::Absent | Look::Starting | Look::Ended(..) => self.known_of(idx),
            };
            if let Err(error) = what(&self.task_dir(idx), known) {
                self.complain("a real task", &error);
            }
        }
    }

    fn complain(&self, of: &str, error: &dyn std::error::Error) {
        let error = chain(error);
        if self.complaints.borrow_mut().insert(error.clone()) {
            tracing::warn!(error, "{of}");
        }
    }

    /// Also for a server that comes up before they have ended, as far as it can be kept.
    fn tell(&mut self) {
        let path = self.dir.join(TOLD);
        let kept = fs::create_dir_all(&self.dir);
        if let Err(error) = kept.and_then(|()| files::write_atomically(&path, b"", FILE_MODE)) {
            self.complain("that tasks are to end cannot be kept", &error);
        }
        self.told = true;
    }

    fn looks(&self) -> Vec<Look> {
        (0..self.n_tasks()).map(|idx| self.look(idx)).collect()
    }

    /// How a task stands, by its files, and by who was launched where they say nothing.
    fn look(&self, idx: usize) -> Look {
        let by_files = || match task::look(&self.task_dir(idx)) {
            Ok(look) => look,
            Err(error) => {
                self.complain("a real task", &error);
                Look::Starting
            }
        };
        let look = by_files();
        let known = self.known_of(idx);
        let (Look::Absent | Look::Starting, Some(run)) = (look, known.run()) else { return look };
        if !known.lives() {
            // What it wrote before its death is there by now; its lock may be held by whoever it
            // forked.
            let last = by_files();
            let is_silent = matches!(last, Look::Absent | Look::Starting);
            return if is_silent { Look::Lost(run) } else { last };
        }
        // One that has not said so for so long, or whose order is gone, has begun all the same.
        let has_begun = known.task.is_some()
            || limits::TASK_BEGIN_MAX < self.launched_at.elapsed()
            || !task::has_order(&self.task_dir(idx));
        if has_begun { Look::Running(run) } else { Look::Starting }
    }

    fn any_absent(&self) -> bool {
        self.looks().contains(&Look::Absent)
    }

    fn n_tasks(&self) -> usize {
        let n_known = self.known.last_key_value().map_or(0, |it| it.0 + 1);
        self.kept.as_ref().map_or(n_known, |it| it.machines.len())
    }

    fn known_of(&self, idx: usize) -> Known {
        self.known.get(&idx).copied().unwrap_or_default()
    }

    /// Writes down who was launched, where no program of a user looks.
    fn keep_known(&mut self) {
        if self.known == self.known_kept {
            return;
        }
        let file = known_file(&self.dir, self.key);
        let kept = || -> io::Result<()> {
            files::own_dir(file.parent().unwrap_or(&self.dir)).map_err(io::Error::other)?;
            let bytes = serde_json::to_vec(&self.known).map_err(io::Error::other)?;
            files::write_atomically(&file, &bytes, FILE_MODE).map_err(io::Error::other)
        };
        match kept() {
            Ok(()) => self.known_kept.clone_from(&self.known),
            Err(error) => self.complain("who was launched cannot be kept", &error),
        }
    }

    /// It is over, and has been said to be: nobody asks who was launched.
    pub(super) fn forget(&self) {
        let _ = fs::remove_file(known_file(&self.dir, self.key));
    }

    fn task_dir(&self, idx: usize) -> PathBuf {
        self.dir.join(idx.to_string())
    }
}

/// Where it is kept who was launched for the attempt of `dir`: beside all that tasks are told of.
fn known_file(dir: &Path, (job, attempt): Key) -> PathBuf {
    let tasks = dir.ancestors().nth(2).unwrap_or(dir);
    tasks.with_file_name(LAUNCHED).join(format!("{}-{attempt}", job.number()))
}

fn task_exit(exit: task::Exit) -> TaskExit {
    match (exit.code, exit.signal) {
        (Some(code), _) => TaskExit::Code(code),
        (None, Some(signal)) => TaskExit::Signal(signal),
        (None, None) => TaskExit::Lost,
    }
}

/// What a task gets of the server's own variables: what any program needs, and no secrets; what is
/// of the server's account only if the task is.
fn inherited(is_others: bool) -> BTreeMap<String, String> {
    const OF_MACHINE: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];
    const OF_ACCOUNT: [&str; 5] = ["HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];
    let get = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    let of_account = OF_ACCOUNT.iter().filter(|_| !is_others);
    OF_MACHINE.iter().chain(of_account).filter_map(get).collect()
}

/// A port of the job's own on its first machine: by its number and attempt, so that no other job
/// takes it, and free now.
fn free_port(address: Ipv4Addr, (job, attempt): Key) -> u16 {
    const FIRST: u16 = 20_000;
    const N: u32 = 10_000;
    let mut offset = (job.number().wrapping_mul(16).wrapping_add(attempt)) % N;
    for _ in 0..N {
        let port = FIRST + u16::try_from(offset).unwrap_or(0);
        if TcpListener::bind((address, port)).is_ok() {
            return port;
        }
        offset = (offset + 1) % N;
    }
    FIRST
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}
