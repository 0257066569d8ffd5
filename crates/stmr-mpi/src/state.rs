//! The one state of a replica, and how it waits.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::FromRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use selvedge_stmr::digest::{Digest, Shape};
use selvedge_stmr::job::N_COUNTS;
use selvedge_stmr::message::{EventKind, Place};
use selvedge_stmr::receives::Receives;
use selvedge_stmr::replica::{Passed, Replica, ReplicaOptions, Step};
use selvedge_stmr::report::Report;
use selvedge_stmr::verdict::{Double, SetId};

use crate::abi::Handles;
use crate::attributes::Attributes;
use crate::batch::Batch;
use crate::clock;
use crate::codes::Codes;
use crate::comm::Comm;
use crate::crashes;
use crate::ends;
use crate::errors::Due;
use crate::files;
use crate::full::Contents;
use crate::input;
use crate::link::{self, Link, Sibling};
use crate::looks::Asked;
use crate::matched::Matched;
use crate::memory::{For, Memory};
use crate::mpi_files::MpiFile;
use crate::own;
use crate::own_names::OwnNames;
use crate::p2p::Outgoing;
use crate::real::{self, Blocking, Call};
use crate::receives::Buffer;
use crate::request::Request;
use crate::sends::{Log, Source};
use crate::sites::Sites;
use crate::spare::Spare;
use crate::stack;
use crate::threads;
use crate::told::{self, Told, native_pid, tell_launcher, told};
use crate::wait::Wait;
use crate::windows::Windows;

/// Equal compares after which a marked replica is trusted again.
const TRUST_AFTER: u32 = 16;

/// What is kept for siblings before an empty compare lets go of it, in bytes.
const LOG_MAX: usize = 32 << 20;

/// After so many events without a compare comes an empty one, so that no replica is far behind, and
/// one that computes without end is known by what the others did since.
const UNCOMPARED_MAX: u32 = 256;

/// Whether this process is a replica.
pub(crate) fn is_replica() -> bool {
    !OVER.load(Ordering::Relaxed) && told().is_some()
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The program has called MPI_Finalize.
pub(crate) static ENDING: AtomicBool = AtomicBool::new(false);

/// Whether the program has called MPI_Finalize.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// The process has ended for its siblings: what it still calls is passed on.
pub(crate) static OVER: AtomicBool = AtomicBool::new(false);

/// This process has linked itself with its siblings.
static CONNECTED: AtomicBool = AtomicBool::new(false);

/// Whether it has.
pub(crate) fn is_linked() -> bool {
    CONNECTED.load(Ordering::Relaxed)
}

/// The program ends with `code` and has not called MPI: its launcher would wait for it.
///
/// Only of the process that was started as the replica: one that it starts itself, or that a script
/// starts before the program, ends as it likes.
pub(crate) fn tell_never(code: i32) {
    let is_early = is_replica() && !CONNECTED.load(Ordering::Relaxed);
    if is_early && told().is_some_and(|it| it.first == Some(native_pid())) {
        tell_launcher(Report::Never(code));
    }
}

/// Ends the process at once if MPI ends it within a call of the program's, which is then no end
/// of the program's: to its siblings it is a death, as a crash there is.
pub(crate) fn end_if_held(code: i32) {
    if is_held() {
        let call = Call(CALLED.load(Ordering::Relaxed)).name();
        let rank = told().map_or(0, |it| it.rank);
        tell_launcher(Report::Note(&format!("rank {rank}: MPI ended a process in {call}")));
        ends::leave(code)
    }
}

/// The thread whose calls have an order among replicas.
static THREAD: AtomicU32 = AtomicU32::new(0);

/// Whether links are up and this is the thread that all replicas' order is about.
pub(crate) fn is_ordered() -> bool {
    is_replica() && stack::thread_id() == THREAD.load(Ordering::Relaxed)
}

/// The thread of that number has the order from here on.
pub(crate) fn give_order(thread: u32) {
    THREAD.store(thread, Ordering::Relaxed);
}

/// Whether this is another thread than the one that all replicas' order is about.
pub(crate) fn is_beside() -> bool {
    CONNECTED.load(Ordering::Relaxed) && !is_ordered()
}

/// What a replica was told, if this is its program's first thread before it calls MPI.
pub(crate) fn early() -> Option<&'static Told> {
    let is_early = !CONNECTED.load(Ordering::Relaxed) && is_replica();
    told().filter(|it| is_early && it.pid == stack::thread_id() as usize)
}

/// Two threads call MPI at a time, which nobody was told that they may; in milliseconds.
const OVERLAP_MS: u64 = 30_000;

/// What the thread that has the state calls.
static CALLED: AtomicUsize = AtomicUsize::new(0);

/// Does a call's work with the state.  A call of another thread is waited for, but not for ever: it
/// may wait for what this thread is about to do.
pub(crate) fn with_turn<R>(call: Call, what: impl FnOnce(&mut State) -> R) -> R {
    if let Some(lent) = Lent::take() {
        return lent.within(what);
    }
    let mut until_ms = None;
    let guard = loop {
        match STATE.try_lock() {
            Ok(it) => break it,
            Err(TryLockError::Poisoned(it)) => break it.into_inner(),
            Err(TryLockError::WouldBlock)
                if clock::coarse_ms()
                    <= *until_ms.get_or_insert_with(|| clock::coarse_ms() + OVERLAP_MS) =>
            {
                unsafe { libc::usleep(200) };
            }
            Err(TryLockError::WouldBlock) => {
                let other = match input::is_waited_for() {
                    true => "a wait for standard input",
                    false => Call(CALLED.load(Ordering::Relaxed)).name(),
                };
                let call = call.name();
                let words = format!("{call} of a thread while another is in {other}");
                tell_launcher(Report::Refuse(&words));
                break lock();
            }
        }
    };
    CALLED.store(call.0, Ordering::Relaxed);
    within(guard, what)
}

/// Does something with the state.
pub(crate) fn with<R>(what: impl FnOnce(&mut State) -> R) -> R {
    match Lent::take() {
        Some(lent) => lent.within(what),
        None => within(lock(), what),
    }
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with the state, which the first call makes.
fn within<R>(mut guard: MutexGuard<'_, Option<State>>, what: impl FnOnce(&mut State) -> R) -> R {
    // What MPI or a wait came to is not the program's, and is another in each replica.
    let error = unsafe { *libc::__errno_location() };
    if guard.is_none() {
        let made = stack::on_own(State::connect);
        own::know(made.pids[0] as libc::pid_t);
        *guard = Some(made);
    }
    let state = guard.as_mut().expect("it was made above");
    HELD.with(|it| it.set(true));
    let answer = stack::on_own(|| what(state));
    unsafe { *libc::__errno_location() = error };
    HELD.with(|it| it.set(false));
    answer
}

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
    /// The state while a call of this thread calls something of the program's.
    static LENT: Cell<*mut State> = const { Cell::new(std::ptr::null_mut()) };
}

/// The state in hand of what the program does while a call of its own calls it.
struct Lent(*mut State);

impl Lent {
    /// What [`State::in_program`] has lent this thread, and nobody uses yet.
    fn take() -> Option<Self> {
        Some(LENT.replace(std::ptr::null_mut())).filter(|it| !it.is_null()).map(Self)
    }

    fn within<R>(self, what: impl FnOnce(&mut State) -> R) -> R {
        HELD.set(true);
        // Who lent it looks at it no more until the program's function is over.
        let answer = stack::on_own(|| what(unsafe { &mut *self.0 }));
        HELD.set(false);
        LENT.set(self.0);
        answer
    }
}

impl State {
    /// Has something of the program's called from within a call: what it calls is served.
    pub(crate) fn in_program<R>(&mut self, what: impl FnOnce() -> R) -> R {
        let before = LENT.replace(self);
        HELD.set(false);
        let answer = stack::on_programs(|| real::outside(what));
        HELD.set(true);
        LENT.set(before);
        answer
    }
}

/// This thread is the one that all replicas' order is about from here on, and the others wait for
/// the state for ever.  False if another has it for more than `limit_ms`.
pub(crate) fn take_for_good(limit_ms: u64) -> bool {
    let until_ms = clock::coarse_ms() + limit_ms;
    let mut guard = loop {
        match STATE.try_lock() {
            Ok(it) => break it,
            Err(TryLockError::Poisoned(it)) => break it.into_inner(),
            Err(TryLockError::WouldBlock) if clock::coarse_ms() <= until_ms => unsafe {
                libc::usleep(200);
            },
            Err(TryLockError::WouldBlock) => return false,
        }
    };
    let Some(state) = guard.as_mut() else { return false };
    LENT.set(state);
    std::mem::forget(guard);
    give_order(stack::thread_id());
    true
}

/// Whether this thread does something with the state already, and so cannot begin to.
pub(crate) fn is_held() -> bool {
    HELD.with(std::cell::Cell::get)
}

/// What the summary counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sends: u64,
    pub(crate) compares: u64,
    pub(crate) bytes: u64,
    pub(crate) marks: u64,
    pub(crate) promotions: u64,
    /// Written to files.
    pub(crate) file_bytes: u64,
    /// Told to siblings, and how many bytes that took.
    pub(crate) link_messages: u64,
    pub(crate) link_bytes: u64,
    /// The most that was kept for siblings, in bytes.
    log_max: usize,
    /// How long compares took, in milliseconds of a clock with coarse ticks.
    compare_ms: u64,
}

impl Counts {
    pub(crate) fn words(&self) -> [u64; N_COUNTS] {
        let log_max = self.log_max as u64;
        let Self { sends, compares, bytes, marks, promotions, .. } = *self;
        let Self { link_messages, link_bytes, compare_ms, .. } = *self;
        [sends, compares, bytes, marks, promotions, link_messages, link_bytes, log_max, compare_ms]
    }
}

/// A replica: the core, its links, and the program's objects.
pub(crate) struct State {
    pub(crate) told: &'static Told,
    pub(crate) replica: Replica,
    pub(crate) memory: Memory,
    pub(crate) siblings: Vec<Option<Sibling>>,
    pub(crate) pids: Vec<u32>,
    pub(crate) launcher: Link,
    /// Some process of the job is on another host than the launcher.
    pub(crate) is_between_hosts: bool,
    pub(crate) counts: Counts,
    /// What siblings told in full.
    pub(crate) contents: Contents,
    /// Who was marked at the compare that is over, until it is said where they differ.
    pub(crate) marked: Vec<SetId>,
    /// All calls so far, so that a replica that takes another way is seen.
    pub(crate) shape: Shape,
    /// The messages that have come to it so far, in whatever order.
    pub(crate) came: u64,
    pub(crate) asked: Asked,
    /// Events since the last compare.
    n_uncompared: u32,
    pub(crate) handles: Option<Handles>,
    /// The communicator that the program takes for that of all processes.
    pub(crate) world: usize,
    /// Another of the same processes, for messages of this library's own.
    pub(crate) hidden: usize,
    pub(crate) comms: BTreeMap<usize, Arc<Comm>>,
    pub(crate) n_comms: u64,
    pub(crate) errhandlers: BTreeMap<usize, usize>,
    /// Codes of errors that the program has got.
    pub(crate) codes: Codes,
    /// Errors that handlers of the program's are to hear of.
    pub(crate) due: Vec<Due>,
    pub(crate) requests: Vec<Option<Request>>,
    /// The places of requests that are over, for the next ones.
    /// The lowest is used first: replicas may complete the same ones in another order.
    pub(crate) requests_free: BTreeSet<usize>,
    /// What the program has freed and requests still need, and the call that frees it.
    pub(crate) held: Vec<(Call, usize)>,
    /// Counts and displacements that were narrowed for the call that is made.
    pub(crate) arrays: Vec<Vec<i32>>,
    /// Where Open MPI's requests hold their Fortran number, once looked for.
    pub(crate) fortran_offset: Option<Option<usize>>,
    /// Sends that are not compared yet.
    pub(crate) batch: Batch,
    pub(crate) outgoing: Vec<Outgoing>,
    pub(crate) receives: Receives<Buffer>,
    pub(crate) attributes: Attributes,
    /// Messages that probes found and that are not received.
    pub(crate) matched: Vec<Option<Matched>>,
    pub(crate) blocking: Option<Blocking>,
    /// Another thread is in MPI, which is told of one thread at a time.
    pub(crate) in_block: bool,
    /// The launcher has said that all processes are where this one waits for them: through
    /// MPI_Init, and then at the program's end.
    pub(crate) gone_on: bool,
    /// It has told its siblings that its end is no death.
    pub(crate) has_said_bye: bool,
    pub(crate) wait: Wait,
    pub(crate) spare: Spare,
    /// What came in since the last compare that two runs of a program may differ in.
    pub(crate) sources: BTreeSet<Source>,
    pub(crate) sites: Sites,
    pub(crate) mpi_files: Vec<Option<MpiFile>>,
    /// Those of them that this process opened as the first of its communicator, in all.
    pub(crate) n_mpi_files: u64,
    /// The handler of MPI_FILE_NULL, if the program has said one.
    pub(crate) file_errhandler: Option<usize>,
    /// What handlers of errors call, of whatever object, that C has made.
    pub(crate) handlers_of_errors: BTreeMap<usize, usize>,
    pub(crate) windows: Windows,
    /// Signals that the launcher told of, and how many of them are due.
    pub(crate) signals: Vec<u64>,
    pub(crate) n_signals_due: usize,
    /// Names of files that are another in each replica.
    pub(crate) own_names: OwnNames,
    pub(crate) log: Log,
    /// Sends that were not compared yet.
    n_in_window: u64,
    /// The call that is made.
    pub(crate) doing: &'static str,
}

fn connect_launcher(told: &Told) -> Link {
    // Processes that the program starts do not hold it, or its end would not be seen.
    unsafe { libc::fcntl(told.link, libc::F_SETFD, libc::FD_CLOEXEC) };
    Link::new(unsafe { UnixStream::from_raw_fd(told.link) })
        .unwrap_or_else(|e| real::fail(&format!("the launcher cannot be reached: {e}")))
}

impl State {
    /// Links this process with the launcher and its siblings.
    fn connect() -> Self {
        let told = told().unwrap_or_else(|| real::fail("this process is no replica"));
        real::check_launcher();
        let mut launcher = connect_launcher(told);
        let memory = Memory::open(told);
        let (siblings, pids) = link::connect_siblings(told, memory, &mut launcher);
        if siblings.iter().flatten().any(Sibling::is_away) {
            files::span_hosts();
        }
        told::take_place();
        threads::have_order();
        let own = SetId::new(told.set);
        let options = ReplicaOptions { own, replicas: told.replicas, trust_after: TRUST_AFTER };
        let this = Self {
            told,
            replica: Replica::new(options),
            memory,
            siblings,
            pids,
            launcher,
            is_between_hosts: false,
            counts: Counts::default(),
            contents: Contents::default(),
            marked: Vec::new(),
            shape: Shape::default(),
            came: 0,
            asked: Asked::default(),
            n_uncompared: 0,
            handles: None,
            world: 0,
            hidden: 0,
            comms: BTreeMap::new(),
            n_comms: 0,
            errhandlers: BTreeMap::new(),
            codes: Codes::default(),
            due: Vec::new(),
            requests: Vec::new(),
            requests_free: BTreeSet::new(),
            held: Vec::new(),
            arrays: Vec::new(),
            fortran_offset: None,
            batch: Batch::default(),
            outgoing: Vec::new(),
            receives: Receives::default(),
            attributes: Attributes::default(),
            matched: Vec::new(),
            blocking: None,
            in_block: false,
            gone_on: false,
            has_said_bye: false,
            wait: Wait::new(told.replicas),
            spare: Spare::default(),
            sources: BTreeSet::new(),
            sites: Sites::default(),
            mpi_files: Vec::new(),
            n_mpi_files: 0,
            file_errhandler: None,
            handlers_of_errors: BTreeMap::new(),
            windows: Windows::default(),
            signals: Vec::new(),
            n_signals_due: 0,
            own_names: OwnNames::default(),
            log: Log::open(told),
            n_in_window: 0,
            doing: "MPI_Init",
        };
        CONNECTED.store(true, Ordering::Relaxed);
        crate::cycles::begin();
        this
    }

    pub(crate) fn handles(&self) -> Handles {
        self.handles
            .unwrap_or_else(|| real::stop(&format!("{} was called before MPI_Init", self.doing)))
    }

    /// Mixes what a call is into the order of all calls.
    pub(crate) fn mix(&mut self, words: &[u64]) {
        self.shape = self.shape.after(words);
        crashes::keep_place(self.shape);
    }

    /// Tells the launcher what is to be known there.
    pub(crate) fn say(&mut self, report: Report<'_>) {
        self.launcher.unsent.extend(format!("{report}\n").as_bytes());
        self.launcher.flush();
    }

    /// Tells it words for people.
    pub(crate) fn note(&mut self, text: &str) {
        self.say(Report::Note(text));
    }

    /// Tells the launcher what was counted, which may be on another host.
    pub(crate) fn tell_counts(&mut self) {
        self.say(Report::Counts(self.counts.words()));
    }

    /// Compares contents that are about to leave; returns those that may.
    pub(crate) fn compare(&mut self, bytes: Vec<u8>) -> (Vec<u8>, Digest) {
        let (right, digest) = self.compare_there(&bytes);
        (right.unwrap_or(bytes), digest)
    }

    /// Compares contents where they lie; returns those of the majority if they are others.
    pub(crate) fn compare_there(&mut self, bytes: &[u8]) -> (Option<Vec<u8>>, Digest) {
        self.compare_rows(&[bytes])
    }

    /// Compares contents that leave together; returns those of the majority, one behind the other,
    /// if they are others.
    pub(crate) fn compare_rows(&mut self, rows: &[&[u8]]) -> (Option<Vec<u8>>, Digest) {
        self.compare_rows_of(rows, String::new)
    }

    /// The same of contents that `what` names, where no two replicas have the same.
    pub(crate) fn compare_rows_of(
        &mut self,
        rows: &[&[u8]],
        what: impl FnOnce() -> String,
    ) -> (Option<Vec<u8>>, Digest) {
        match self.compare_unless_own(rows, false) {
            Ok(it) => it,
            Err(why) => self.end_undecided(why, rows, &what()),
        }
    }

    /// Whether each send is compared by itself, before it leaves.
    pub(crate) fn compares_each(&self) -> bool {
        self.told.window <= 1 && !self.told.compares_at_receiver
    }

    /// Compares contents that leave to other processes, as was asked for: before they do, with more
    /// of them later, or where they come in.  `what` names them where no two replicas' are alike.
    pub(crate) fn compare_leaving(
        &mut self,
        bytes: &[u8],
        what: impl FnOnce() -> String,
    ) -> (Option<Vec<u8>>, Digest) {
        let Told { window, compares_at_receiver, .. } = *self.told;
        if self.compares_each() {
            return self.compare_rows_of(&[bytes], what);
        }
        self.let_out();
        let digest = Digest::of(bytes);
        if compares_at_receiver {
            return (None, digest);
        }
        // From here on it makes other calls than its siblings if it has sent something else.
        self.mix(&[digest.0 as u64, (digest.0 >> 64) as u64]);
        self.n_in_window += 1;
        if self.n_in_window < window {
            self.counts.bytes += bytes.len() as u64;
        } else {
            self.n_in_window = 0;
            let (_, of_none) = self.compare_there(&[]);
            self.counts.bytes += bytes.len() as u64;
            debug_assert_eq!(of_none, Digest::of(&[]), "nothing is agreed to be something");
        }
        (None, digest)
    }

    /// Compares contents that came in, if that is where they are; returns the majority's if those
    /// are others.
    pub(crate) fn compare_coming(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.told.compares_at_receiver {
            return None;
        }
        self.compare_there(bytes).0.filter(|it| it.len() == bytes.len())
    }

    /// Compares contents, rows one behind the other, or says why it comes to nothing; where
    /// `may_differ`, it may be that no two replicas have the same, and all go on.
    pub(crate) fn compare_unless_own(
        &mut self,
        rows: &[&[u8]],
        may_differ: bool,
    ) -> Result<(Option<Vec<u8>>, Digest), Double> {
        self.send_held();
        // Who hears of this may look at files that it tells of.
        self.let_out();
        self.tell_signals();
        let digest = Digest::of_rows(rows);
        let length = rows.iter().map(|it| it.len()).sum();
        self.write_log(digest, length);
        self.n_uncompared = 0;
        self.counts.compares += 1;
        self.counts.bytes += length as u64;
        let call = self.replica.n_calls();
        self.tell_contents(rows);
        self.replica.offer(self.shape.after(&[self.came]), digest, length as u64);
        self.send_out();
        self.begin_compare();
        loop {
            let passed = self.replica.passed();
            if passed.is_some() {
                self.counts.compare_ms += self.end_compare();
            }
            match passed {
                None => self.wait_for_siblings(|it| it.replica.late()),
                Some(Passed::Go) => {
                    self.send_out();
                    self.take_signals();
                    self.check_contents(call, rows, None);
                    self.spare.take_back();
                    return Ok((None, digest));
                }
                Some(Passed::Serve(wrong)) => {
                    self.replica.serve(&wrong, &rows.concat());
                    self.send_out();
                    self.take_signals();
                    self.check_contents(call, rows, None);
                    return Ok((None, digest));
                }
                Some(Passed::Replace(right)) => {
                    self.send_out();
                    self.take_signals();
                    self.check_contents(call, rows, Some(&right));
                    let digest = Digest::of(&right);
                    return Ok((Some(right), digest));
                }
                Some(Passed::Leave) => self.stray(),
                Some(Passed::Restart(why)) => {
                    if may_differ {
                        self.concede(why);
                    }
                    return Err(why);
                }
            }
        }
    }

    /// Settles or takes what comes in.  `attempt` is asked until it has something, if this
    /// replica settles it; the second of the answer is whether it did.
    pub(crate) fn event(
        &mut self,
        kind: EventKind,
        attempt: impl FnMut(&mut Self) -> Option<Vec<u8>>,
    ) -> (Vec<u8>, bool) {
        let (bytes, did) = self.event_for(For::Message, kind, attempt);
        (Arc::unwrap_or_clone(bytes), did)
    }

    /// [`State::event`] of something that comes with what the bell is rung for.
    pub(crate) fn event_for(
        &mut self,
        what: For,
        kind: EventKind,
        mut attempt: impl FnMut(&mut Self) -> Option<Vec<u8>>,
    ) -> (Arc<Vec<u8>>, bool) {
        self.event_with(what, kind, |state, settles| if settles { attempt(state) } else { None })
    }

    /// What is kept for siblings by now may be the most so far.
    pub(crate) fn count_kept(&mut self) {
        self.counts.log_max = self.counts.log_max.max(self.replica.kept_bytes());
    }

    /// The same where who waits for its settling is to do its part as well: `attempt` is told
    /// whether this replica settles it.
    pub(crate) fn event_with(
        &mut self,
        what: For,
        kind: EventKind,
        mut attempt: impl FnMut(&mut Self, bool) -> Option<Vec<u8>>,
    ) -> (Arc<Vec<u8>>, bool) {
        self.send_held();
        self.n_uncompared += 1;
        if LOG_MAX < self.replica.log_bytes() || UNCOMPARED_MAX < self.n_uncompared {
            self.compare(Vec::new());
        }
        let shape = self.shape;
        self.begin_wait();
        self.look_around();
        self.wait.place = Some(Place { event: self.replica.next_event(), kind, shape });
        loop {
            match self.replica.begin(kind, shape) {
                Step::Do => {
                    if kind == EventKind::Decision {
                        self.follow_locks(true);
                    }
                    if let Some(bytes) = attempt(self, true) {
                        self.end_wait();
                        self.wait.place = None;
                        let bytes = Arc::new(bytes);
                        let answer = bytes.clone();
                        self.replica.finish(kind, shape, bytes);
                        self.count_kept();
                        self.memory.keep_events(self.replica.next_event());
                        self.send_out();
                        self.spare.lend(&answer);
                        return (answer, true);
                    }
                    self.spin(what);
                }
                Step::Take(bytes) => {
                    if kind == EventKind::Decision {
                        self.follow_locks(false);
                    }
                    self.end_wait();
                    self.wait.place = None;
                    self.memory.keep_events(self.replica.next_event());
                    self.send_out();
                    return (bytes, false);
                }
                Step::Wait => {
                    if !self.has_no_mpi() {
                        attempt(self, false);
                    }
                    self.wait_for_siblings(|it| it.replica.settlers());
                }
                Step::Leave => self.stray(),
                Step::Restart(why) => self.restart(why),
            }
        }
    }
}
