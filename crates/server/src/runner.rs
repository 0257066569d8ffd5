//! Real tasks on behalf of the loop: a thread that starts supervisors, looks after them, and says
//! what it sees as inputs of the core.
//!
//! ```text
//!  loop ── start, notify, kill ──► runner ──► driver::task ──► supervisor ──► task
//!    ▲                               │ every 100 ms: who runs, who has ended?
//!    └──── Tasks, Started, Stopped ──┘
//! ```
//! All that it knows is in the data directory, `tasks/JOB/ATTEMPT/TASK`; told again what it has
//! been told, after a restart or because an answer was lost, it repeats its answers.

mod attempt;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use selvedge_control::input::{Answer, Exit, Input};
use selvedge_control::note::StopWhy;
use selvedge_control::state::{Job, JobState};
use selvedge_driver::process::Process;
use selvedge_driver::{task, tree};
use selvedge_model::fabric::Fabric;
use selvedge_model::id::JobId;
use selvedge_model::job::Program;
use selvedge_model::unit::Span;

use crate::limits;
use crate::slice::Slice;
use attempt::Attempt;

/// Which start of which job.
pub(crate) type Key = (JobId, u32);

/// What a start needs.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) name: String,
    /// With the number and the attempt it says which start this is, also to a data directory
    /// whose journal was put back to an earlier state.
    pub(crate) submitted_ns: u64,
    pub(crate) program: Program,
    pub(crate) slice: Slice,
    /// Its tasks, if all are known to have begun: one of which nothing is left then is lost, as in
    /// a data directory that was brought back from a backup, and not begun again unasked.
    pub(crate) begun: Option<Vec<Process>>,
}

#[derive(Debug)]
enum Order {
    Start(Key, Box<Launch>),
    Notify(Key, Span, Reason),
    Kill(Key),
    /// End everything, and say when nothing is left.
    EndAll(Sender<()>),
}

/// Why tasks are told to stop.
#[derive(Debug)]
pub(crate) struct Reason {
    /// In words.
    pub(crate) why: String,
    /// The part of the plant that is drained, by its path, if that is why.
    pub(crate) drained: Option<String>,
}

impl Reason {
    /// Why a job stops.
    pub(crate) fn of(job: &Job, fabric: &Fabric) -> Self {
        let JobState::Stopping { why, .. } = job.state else {
            return Self { why: "it is told to stop".to_owned(), drained: None };
        };
        let target = if let StopWhy::Drained { target } = why { Some(target) } else { None };
        let drained = target.map(|it| crate::words::path(fabric, it));
        Self { why: crate::words::stop_why(why, fabric), drained }
    }
}

/// How a runner says what it saw; false if nobody hears it any longer.
pub(crate) type Say = Box<dyn Fn(Input) -> bool + Send>;

/// The loop's side of the thread.
#[derive(Debug)]
pub(crate) struct Runner {
    orders: Sender<Order>,
    /// Starts whose end has not been heard.
    busy: BTreeSet<Key>,
    _thread: JoinHandle<()>,
}

impl Runner {
    /// A runner for the data directory `data`, whose supervisors are `program`.  Tasks that the
    /// core knows nothing of any more are ended.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn begin(
        data: &Path,
        program: PathBuf,
        known: BTreeSet<Key>,
        say: Say,
    ) -> std::io::Result<Self> {
        let (orders, incoming) = mpsc::channel();
        let house = Watchman { dir: tasks_dir(data), program, say, live: BTreeMap::new() };
        let thread = std::thread::Builder::new().name("selvedge-tasks".to_owned());
        let thread = thread.spawn(move || house.run(&incoming, &known))?;
        Ok(Self { orders, busy: BTreeSet::new(), _thread: thread })
    }

    /// Whether real tasks run, or are being started or ended.
    pub(crate) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// Starts the tasks of a job, or repeats how they stand.
    pub(crate) fn start(&mut self, key: Key, launch: Launch) {
        self.busy.insert(key);
        self.send(Order::Start(key, Box::new(launch)));
    }

    /// Tells the tasks of a job that they will be stopped.
    pub(crate) fn notify(&mut self, key: Key, grace: Span, why: Reason) {
        self.busy.insert(key);
        self.send(Order::Notify(key, grace, why));
    }

    /// Ends the tasks of a job.
    pub(crate) fn kill(&mut self, key: Key) {
        self.busy.insert(key);
        self.send(Order::Kill(key));
    }

    /// Takes note of what the runner said.
    pub(crate) fn heard(&mut self, input: &Input) {
        if let Input::Answer(Answer::Stopped { job, attempt, .. }) = input {
            self.busy.remove(&(*job, *attempt));
        }
    }

    /// Ends all tasks, and waits until nothing is left of them.
    pub(crate) fn end_all(&self) {
        let (done, all_done) = mpsc::channel();
        self.send(Order::EndAll(done));
        if all_done.recv_timeout(limits::TASKS_END_MAX).is_err() {
            tracing::warn!("some tasks have not ended; the next start ends them");
        }
    }

    fn send(&self, order: Order) {
        // The thread lives as long as this does; were it gone, the core would ask again.
        let _ = self.orders.send(order);
    }
}

/// Where the output of a task lies.
pub(crate) fn task_dir(data: &Path, (job, attempt): Key, task: usize) -> PathBuf {
    attempt_dir(&tasks_dir(data), (job, attempt)).join(task.to_string())
}

fn tasks_dir(data: &Path) -> PathBuf {
    data.join("tasks")
}

fn attempt_dir(tasks: &Path, (job, attempt): Key) -> PathBuf {
    tasks.join(job.number().to_string()).join(attempt.to_string())
}

/// Ends the real tasks that a server has left behind in `data`, and says of how many starts.
pub fn end_left(data: &Path) -> usize {
    let dir = tasks_dir(data);
    let reopened = ever(&dir).into_iter().map(|(key, dir)| Attempt::reopen(dir, key));
    let mut live: Vec<Attempt> = reopened.filter(Attempt::is_live).collect();
    live.iter_mut().for_each(Attempt::end);
    let n_live = live.len();
    let deadline = Instant::now() + limits::TASKS_END_MAX;
    while Instant::now() < deadline {
        live.retain_mut(|it| {
            it.watch();
            it.is_live()
        });
        if live.is_empty() {
            break;
        }
        std::thread::sleep(limits::TASKS_POLL);
    }
    n_live
}

/// The thread's belongings.
struct Watchman {
    dir: PathBuf,
    program: PathBuf,
    say: Say,
    live: BTreeMap<Key, Attempt>,
}

impl Watchman {
    fn run(mut self, orders: &Receiver<Order>, known: &BTreeSet<Key>) {
        sweep(&self.dir);
        self.end_unknown(known);
        let mut ending: Option<Sender<()>> = None;
        loop {
            match orders.recv_timeout(self.patience()) {
                Ok(Order::EndAll(done)) => {
                    self.live.values_mut().for_each(Attempt::end);
                    ending = Some(done);
                }
                Ok(order) => self.take(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.watch();
            if self.live.is_empty()
                && let Some(done) = ending.take()
            {
                // Whoever waited longer than it wanted to is not told.
                let _ = done.send(());
            }
        }
    }

    fn patience(&self) -> Duration {
        if self.live.is_empty() { limits::SLEEP_MAX } else { limits::TASKS_POLL }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Start(key, launch) => {
                if let Err(error) = self.start(key, &launch) {
                    // The core asks again, and gives up where it must.
                    tracing::warn!(error = crate::api::error::chain(&error), "a real task");
                }
            }
            Order::Notify(key, grace, why) => self.attempt(key).notify(grace, &why),
            Order::Kill(key) => self.attempt(key).kill(),
            Order::EndAll(_) => (),
        }
    }

    fn start(&mut self, key: Key, launch: &Launch) -> Result<(), attempt::AttemptError> {
        let dir = attempt_dir(&self.dir, key);
        if launch.begun.is_some() && !self.live.contains_key(&key) && !Attempt::is_kept(&dir) {
            let (job, attempt) = key;
            let exit = Exit::Lost;
            (self.say)(Input::Answer(Answer::Stopped { job, attempt, exit, kept: 0 }));
            return Ok(());
        }
        let attempt = match self.live.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Attempt::open(dir, key, launch)?),
        };
        attempt.start(&self.program, launch)
    }

    /// The attempt `key`, which is looked after from now on, as far as anything is known of it.
    fn attempt(&mut self, key: Key) -> &mut Attempt {
        let dir = attempt_dir(&self.dir, key);
        self.live.entry(key).or_insert_with(|| Attempt::reopen(dir, key))
    }

    fn watch(&mut self) {
        let mut over = Vec::new();
        for (key, attempt) in &mut self.live {
            for seen in attempt.watch() {
                let is_over = matches!(seen, Input::Answer(Answer::Stopped { .. }));
                if !(self.say)(seen) {
                    return;
                }
                if is_over {
                    over.push(*key);
                }
            }
        }
        let ended = over.iter().filter_map(|it| self.live.remove(it));
        let ended: Vec<Attempt> = ended.collect();
        ended.iter().for_each(Attempt::forget);
        let work: Vec<PathBuf> = ended.iter().flat_map(Attempt::work).collect();
        discard(&self.dir, &work);
        if !over.is_empty() {
            self.forget_oldest(limits::ATTEMPTS_KEPT, limits::OUTPUT_KEPT_BYTES);
        }
    }

    /// Ends tasks that run though the core knows nothing of them.
    fn end_unknown(&mut self, known: &BTreeSet<Key>) {
        for (key, dir) in ever(&self.dir) {
            if known.contains(&key) {
                continue;
            }
            let mut attempt = Attempt::reopen(dir, key);
            if attempt.is_live() {
                tracing::warn!(job = %key.0, attempt = key.1, "tasks that nobody asked for end");
                attempt.end();
                self.live.insert(key, attempt);
            } else {
                attempt.forget();
            }
        }
    }

    /// Forgets the output of the oldest attempts that are over, down to so many and so much; the
    /// newest is kept however much it wrote.
    fn forget_oldest(&self, n_max: usize, n_bytes_max: u64) {
        let mut kept: Vec<_> = (all(&self.dir).into_iter())
            .filter(|(key, _)| !self.live.contains_key(key))
            .map(|(key, dir)| (modified(&dir), key, dir))
            .collect();
        kept.sort_by(|a, b| b.cmp(a));
        let (mut n_bytes, mut forgotten) = (0, Vec::new());
        for (idx, (_, (job, attempt), dir)) in kept.into_iter().enumerate() {
            n_bytes += output_of(&dir);
            if idx == 0 || idx < n_max && n_bytes <= n_bytes_max {
                continue;
            }
            tracing::info!(%job, attempt, "the output of a job is no longer kept");
            forgotten.push(dir);
        }
        discard(&self.dir, &forgotten);
        // A job of which nothing is left needs no directory; one that is not empty stays.
        for of_job in forgotten.iter().filter_map(|it| it.parent()) {
            let _ = fs::remove_dir(of_job);
        }
    }
}

/// All attempts of which something is kept.
fn all(tasks: &Path) -> Vec<(Key, PathBuf)> {
    let numbers = |dir: &Path| -> Vec<(u32, PathBuf)> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let numbered = |it: fs::DirEntry| Some((it.file_name().to_str()?.parse().ok()?, it.path()));
        entries.filter_map(numbered).collect()
    };
    let mut all = Vec::new();
    for (job, dir) in numbers(tasks) {
        let attempts = numbers(&dir).into_iter();
        all.extend(attempts.map(|(attempt, dir)| ((JobId::new(job), attempt), dir)));
    }
    all
}

/// The same, and those of which only is known who was launched.
fn ever(tasks: &Path) -> BTreeMap<Key, PathBuf> {
    let launched = tasks.with_file_name(attempt::LAUNCHED);
    let files = fs::read_dir(launched).into_iter().flatten().flatten();
    let key = |it: fs::DirEntry| -> Option<Key> {
        let name = it.file_name();
        let (job, attempt) = name.to_str()?.split_once('-')?;
        Some((JobId::new(job.parse().ok()?), attempt.parse().ok()?))
    };
    let launched = files.filter_map(key).map(|it| (it, attempt_dir(tasks, it)));
    all(tasks).into_iter().chain(launched).collect()
}

fn modified(dir: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(dir).ok()?.modified().ok()
}

/// How many bytes of output the tasks of the attempt of `dir` have left.
fn output_of(dir: &Path) -> u64 {
    let tasks = fs::read_dir(dir).into_iter().flatten().flatten();
    tasks.map(|it| task::n_output(&it.path())).sum()
}

/// Puts directories below `tasks` out of the way at once and removes them apart from here, for what
/// a task has made may be large; what an earlier server did not come to goes with them.
fn discard(tasks: &Path, dirs: &[PathBuf]) {
    static N_DISCARDED: AtomicU64 = AtomicU64::new(0);
    if dirs.is_empty() {
        return;
    }
    for dir in dirs {
        let nth = N_DISCARDED.fetch_add(1, Ordering::Relaxed);
        let gone = tasks.join(format!("{GONE}{}-{nth}", std::process::id()));
        if let Err(error) = fs::rename(dir, gone) {
            tracing::warn!(%error, dir = %dir.display(), "what a task has left cannot be removed");
        }
    }
    sweep(tasks);
}

/// What the name of a directory begins with that is being removed.
const GONE: &str = ".gone-";

/// Removes what was put out of the way, in a thread of its own.
fn sweep(tasks: &Path) {
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    let gone = entries.filter(|it| it.file_name().to_string_lossy().starts_with(GONE));
    let gone: Vec<PathBuf> = gone.map(|it| it.path()).collect();
    if gone.is_empty() {
        return;
    }
    let remove = move || {
        for dir in gone {
            // Another sweep may be at it; what cannot be removed now is tried at the next end.
            if let Err(error) = tree::remove(&dir)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::debug!(%error, dir = %dir.display(), "not removed yet");
            }
        }
    };
    // Without a thread it stays until the next end.
    let _ = std::thread::Builder::new().name("selvedge-sweep".to_owned()).spawn(remove);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_output_goes_first_and_what_may_still_run_stays() {
        let data = tempfile::tempdir().unwrap();
        let live = BTreeMap::new();
        let say: Say = Box::new(|_| true);
        let dir = tasks_dir(data.path());
        let mut watchman = Watchman { dir, program: PathBuf::new(), say, live };
        let keys: Vec<Key> = (0..5).map(|job| (JobId::new(job), 1)).collect();
        for (age, key) in keys.iter().rev().enumerate() {
            let dir = attempt_dir(&watchman.dir, *key);
            fs::create_dir_all(dir.join("0")).unwrap();
            fs::write(dir.join("0/output"), [0; 100]).unwrap();
            let then = std::time::SystemTime::now() - Duration::from_secs(60 * age as u64);
            fs::File::open(&dir).unwrap().set_modified(then).unwrap();
        }
        // The oldest of all may still run.
        let oldest = attempt_dir(&watchman.dir, keys[0]);
        watchman.live.insert(keys[0], Attempt::reopen(oldest, keys[0]));
        let left = |it: &Watchman| {
            all(&it.dir).iter().map(|(key, _)| key.0.number()).collect::<BTreeSet<_>>()
        };
        watchman.forget_oldest(3, 1000);
        assert_eq!(left(&watchman), BTreeSet::from([0, 2, 3, 4]));
        watchman.forget_oldest(3, 250);
        assert_eq!(left(&watchman), BTreeSet::from([0, 3, 4]));
        assert!(!watchman.dir.join("1").exists(), "nor does its empty directory stay");
        // What a task has made beside its output is not counted, nor is the newest ever dropped.
        let work = attempt_dir(&watchman.dir, keys[3]).join("0/work");
        fs::create_dir(&work).unwrap();
        fs::File::create(work.join("large")).unwrap().set_len(1 << 40).unwrap();
        watchman.forget_oldest(3, 250);
        assert_eq!(left(&watchman), BTreeSet::from([0, 3, 4]));
        watchman.forget_oldest(3, 1);
        assert_eq!(left(&watchman).len(), 2);
    }
}
