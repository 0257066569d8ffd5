//! Running an MPI program in replicas, around the machine's own launcher.
//!
//! [`run`] starts `ranks` × `replicas` processes under one mpirun.  Each becomes a replica in
//! [`become_replica`]: it is told its number, its output goes into pipes, addresses are not random,
//! and the library is preloaded.  Over a socket the replicas say how far they are; what follows is
//! decided by `stmr::job`, and what is printed by `stmr::output`.
//!
//! mpirun's own exit status says nothing: it may have been ended, or its processes been killed.

#![allow(
    clippy::disallowed_methods,
    reason = "processes that do not end in time are ended by the real clock"
)]

mod agent;

mod avoid;

mod away;

mod daemons;

mod early;

mod error;

mod exports;

mod finish;

mod fits;

mod folder;

mod hosts;

mod input;

mod launcher;

mod letter;

mod outlet;

mod print;

mod printed;

mod program;

mod reach;

mod readers;

mod replica;

mod script;

mod signals;

mod summary;

mod temporary;

mod threads;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use selvedge_stmr::job::{Job, N_COUNTS, Order, Rank};
use selvedge_stmr::quits::{self, Agreed, Quit};
use selvedge_stmr::report::{Differed, Report};
use selvedge_stmr::restarts::{Next, Over, RestartOptions, Restarts};
use selvedge_stmr::verdict::{Double, SetId};

pub use agent::{serve_host, start_host};
use avoid::Avoided;
pub use away::Places;
use early::{Init, WithoutMpi};
pub use error::MpirunError;
use error::io_error;
use folder::Folder;
use hosts::{Awaited, Door, Host, HostId};
use input::{Feed, Input};
use launcher::Launcher;
pub use launcher::NONE;
use letter::{Kind, Letter};
use outlet::{Out, Outlet};
use print::{Printing, printings};
use printed::Printed;
use program::Known;
use readers::Readers;
pub use replica::become_replica;
pub use summary::Summary;
pub use temporary::temp_dir;

/// How long replicas that die of a fault may take to print what they have to say of it.
const DYING_WAIT: Duration = Duration::from_secs(2);

/// How long printed bytes without a line's end wait for the rest, if a person waits for them.
///
/// Otherwise they wait until there is a whole line: programs print in blocks of some kilobytes, and
/// another process's line would come into the middle of one.
const LINE_WAIT: Duration = Duration::from_millis(50);

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct MpirunOptions {
    /// Replicas of each process: 1 counts, 2 detects, 3 masks.
    pub replicas: usize,
    /// Processes as the program sees them.
    pub ranks: usize,
    /// The launcher, if it is not that of the program's MPI.
    pub launcher: Option<PathBuf>,
    /// Where the processes' environment is written if somebody else starts them ([`NONE`]), and not
    /// on standard error.
    pub env_file: Option<PathBuf>,
    /// Further arguments for it.
    pub launcher_args: Vec<OsString>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// This program, which each process starts as.
    pub own_program: PathBuf,
    /// The library to preload.
    pub library: &'static [u8],
    /// Contents are compared in full, beside their digests.
    pub compares_full: bool,
    /// So many sends are compared at a time: above 1 an error is found within so many, and what
    /// left before is not taken back.
    pub window: u32,
    /// What is sent is compared where it comes in, and not before it leaves.
    pub compares_at_receiver: bool,
    /// Whether processes may run on other hosts than this; where that is not said, what the
    /// launcher is given tells.
    pub between_hosts: Option<bool>,
    /// Each set is a job of its own, with its own launcher, and not a part of one job.
    pub sets_are_jobs: bool,
    /// How often the program is started again after two errors in one cluster.
    pub restarts_max: u32,
    /// What is started then, in a shell, if it is something else.
    pub restart_command: Option<OsString>,
    /// A folder where each process writes down what it sends, to compare two runs.
    pub sends: Option<PathBuf>,
    /// What the program prints is not shown.
    pub is_silent: bool,
    /// Who is to hear of marks when they are made.
    pub marks: Option<Sender<Marked>>,
    /// The machines of a control plane's slice, and where it says that one is to go.
    pub places: Option<Places>,
}

/// A replica that was found to differ from its siblings (seed 003, definition 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which process of the program.
    pub rank: u32,
    /// Which of its replicas.
    pub set: u8,
    /// The number of the compare.
    pub call: u64,
    /// The first byte that differs, where contents are compared in full.
    pub byte: Option<u64>,
}

/// A mark, and the machine of a slice that its replica runs on, if it runs on one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// What was found.
    pub mark: Mark,
    /// By its path in the plant.
    pub machine: Option<String>,
}

/// What reaches the one thread that decides.
enum Event {
    Said(Rank, SetId, String),
    Called(Rank, SetId, i32, Arc<UnixStream>),
    Gone(Rank, SetId),
    Printed(Channel, Rank, SetId, Vec<u8>),
    Closed(Channel, Rank, SetId),
    LauncherEnded(i32),
    Signalled(i32),
    HostCalled(HostId, Host),
    /// The link of a host that says nothing.
    Pulse(HostId, TcpStream),
    HostSaid(HostId, Letter),
    HostGone(HostId, Option<io::Error>),
    /// Somebody called who is none of this job's.
    Stranger(String),
    /// The run cannot go on.
    Failed(MpirunError),
}

/// What the launcher tells a process through.
enum Line {
    Here(Arc<UnixStream>),
    There(Sender<Letter>, Rank, SetId),
}

impl Line {
    /// Whoever is gone is told about by the end of its link.
    fn say(&mut self, line: &str) {
        match self {
            Self::Here(link) => drop(writeln!(&**link, "{line}")),
            Self::There(outbox, rank, set) => {
                drop(outbox.send(Letter::of(Kind::Tell, *rank, *set, line)));
            }
        }
    }
}

/// Standard output or standard error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Out,
    Err,
}

/// Runs the program until it has ended in all clusters.
///
/// # Errors
/// [`MpirunError`] if it could not be started.
pub fn run(options: &MpirunOptions) -> Result<Summary, MpirunError> {
    let launcher = program::check(options)?;
    fits::check(options, &launcher)?;
    for it in launcher.warnings(options).iter().filter(|_| !options.is_silent) {
        let _ = writeln!(io::stderr(), "selvedge: {it}");
    }
    let mut summary =
        Summary { ranks: options.ranks, replicas: options.replicas, ..Summary::default() };
    let mut restarts = Restarts::new(RestartOptions {
        restarts_max: options.restarts_max,
        replicas: options.replicas,
        is_started_here: !launcher.is_nobody(),
    });
    let (mut printed, mut avoided) = (Vec::new(), Avoided::default());
    let mut in_full = options.compares_full;
    let (input, outlet) = (Input::default(), Outlet::default());
    loop {
        let given = avoided.options(options, in_full);
        let before = std::mem::take(&mut printed);
        let again = 0 < restarts.n();
        let mut attempt = Attempt::start(&given, &launcher, again, before, (&input, &outlet))?;
        let ended = attempt.go_on();
        printed = attempt.take_printed();
        let over = match &ended {
            Ok(ended) => ended.over(&input),
            Err(MpirunError::NotStarted { .. }) => {
                Over::NotStarted { is_elsewhere: avoided.give_up() }
            }
            Err(_) => Over::Refused,
        };
        let next = restarts.after(over);
        let ended = match ended {
            Ok(it) => it,
            Err(MpirunError::NotStarted { code, .. }) if next == Next::Back => {
                let why = format!("{} ended with {code}", launcher.path.display());
                summary.notes.push(format!("the program does not start elsewhere: {why}"));
                continue;
            }
            Err(e) => {
                attempt.finish(Ended::Refused(e.to_string()));
                return Err(e);
            }
        };
        attempt.sum_up(&mut summary);
        summary.restarts = restarts.n();
        let words = ended.words();
        match next {
            Next::Stop(stop) => return Ok(summary.stopped(stop, words, &input)),
            Next::Again { compares_full } => {
                let is_new = compares_full && !in_full;
                let full = if is_new { ", with contents compared in full" } else { "" };
                in_full |= compares_full;
                summary.notes.push(format!("{words}; the program starts again{full}"));
                let args = &options.launcher_args;
                summary.notes.extend(avoided.learn(&attempt, launcher.family, args));
            }
            Next::Back => unreachable!("it has started"),
        }
    }
}

/// How a start of the program was over.
enum Ended {
    With(i32),
    /// With this code, and no process has called MPI_Init.
    WithoutMpi(i32),
    Again(Rank, Double),
    Refused(String),
}

impl Ended {
    fn over(&self, input: &Input) -> Over {
        match self {
            Self::With(code) => Over::Ended(*code),
            Self::WithoutMpi(code) => Over::WithoutMpi(*code),
            Self::Again(_, why) => {
                Over::Double { why: *why, is_input_lost: input.is_lost().is_some() }
            }
            Self::Refused(_) => Over::Refused,
        }
    }

    /// Why it has come to no end of its own, if it has not.
    fn words(&self) -> String {
        match self {
            Self::With(_) | Self::WithoutMpi(_) => String::new(),
            Self::Again(rank, why) => format!("{rank}: {why}"),
            Self::Refused(why) => why.clone(),
        }
    }
}

/// One start of the program.
struct Attempt<'a> {
    began: Instant,
    options: &'a MpirunOptions,
    folder: Folder,
    /// One for all sets, or one for each.
    launchers: Vec<Child>,
    launchers_ended: usize,
    path: PathBuf,
    events: Receiver<Event>,
    sender: Sender<Event>,
    job: Job,
    processes: Vec<Vec<Process>>,
    outputs: Vec<[Printing; 2]>,
    notes: Vec<String>,
    marked: Vec<Mark>,
    deaths: u64,
    init: Init,
    /// Since when most replicas of a process die of the same fault, and the program's code.
    dying: Option<(Rank, Instant, i32)>,
    without_mpi: WithoutMpi,
    /// A person may be asked something.
    is_interactive: bool,
    signals: signals::Signals,
    away: away::Away,
    /// Where other hosts call, if there may be any.  It is held open.
    door: Option<Door>,
    hosts: BTreeMap<HostId, Host>,
    known: avoid::Known,
    awaited: Awaited,
    input: Input,
    /// What each replica of the first process is to read, until it is known where that is.
    feeds: Vec<Option<Feed>>,
    out: Out,
    /// They read as long as they are held.
    _readers: Readers,
}

#[derive(Default)]
struct Process {
    link: Option<Line>,
    pid: i32,
    /// The process itself, if it is on the launcher's host.
    known: Option<Known>,
    /// The host that it is on, if that is not the launcher's.
    host: Option<HostId>,
    /// Where it listens for siblings on other hosts, once it does.
    port: u16,
    /// It was given up: what it still says and prints is nothing.
    is_parted: bool,
    /// It has called MPI_Init.
    entered: bool,
    /// It has come through it.
    running: bool,
    /// What it prints on each channel has ended, and nobody knows yet whether it has or died.
    closed: [bool; 2],
    /// What it told of what it counted.
    counts: [u64; N_COUNTS],
    /// How often it printed something else than its siblings.
    misprints: u64,
    /// It made other calls than its siblings.
    strayed: bool,
    /// A thread of it ends it that has no order among replicas, and waits.
    quit: Option<Quit>,
    /// It dies of a signal of its own.
    fault: Option<Quit>,
    ended: bool,
}

impl Attempt<'_> {
    fn start<'a>(
        options: &'a MpirunOptions,
        launcher: &Launcher,
        again: bool,
        printed: Vec<[Printed; 2]>,
        (input, outlet): (&Input, &Outlet),
    ) -> Result<Attempt<'a>, MpirunError> {
        let folder = Folder::make(options, launcher)?;
        let listener = UnixListener::bind(folder.path().join(folder::LAUNCHER))
            .map_err(io_error("make a socket for the replicas"))?;
        let (sender, events) = mpsc::channel();
        let readers = Readers::begin(listener, &sender)?;
        signals::listen(sender.clone())?;
        outlet.begin(&sender);
        let out = Out::new(outlet);
        for rank in 0..options.ranks {
            for set in SetId::all(options.replicas) {
                for channel in [Channel::Out, Channel::Err] {
                    folder.read_pipe(channel, Rank(rank as u32), set, &out.room, &readers)?;
                }
            }
        }
        let mut printed = printed.into_iter();
        let outputs = (0..options.ranks).map(|_| printings(options, printed.next())).collect();
        let path = launcher.path.clone();
        let door = if launcher.may_leave_host(options) {
            let library = folder.library();
            let failed = format!("read {}", library.display());
            let library = fs::read(&library).map_err(io_error(failed))?;
            let size = [options.ranks, options.replicas];
            Some(Door::open(library, size, sender.clone())?)
        } else {
            None
        };
        let start = program::Start { options, folder: &folder, door: door.as_ref(), again };
        let launchers = program::launch(start, launcher, &sender)?;
        let process = |_| (0..options.replicas).map(|_| Process::default()).collect();
        Ok(Attempt {
            began: Instant::now(),
            options,
            folder,
            launchers,
            launchers_ended: 0,
            path,
            events,
            job: Job::new(options.ranks, options.replicas),
            processes: (0..options.ranks).map(process).collect(),
            outputs,
            notes: Vec::new(),
            marked: Vec::new(),
            deaths: 0,
            init: Init::default(),
            dying: None,
            without_mpi: WithoutMpi::default(),
            is_interactive: io::stdin().is_terminal(),
            signals: signals::Signals::new(options.ranks, options.replicas),
            away: away::Away::default(),
            door,
            hosts: BTreeMap::new(),
            known: avoid::Known::default(),
            awaited: Awaited::default(),
            input: input.clone(),
            feeds: input.read(options.replicas, &sender),
            out,
            _readers: readers,
            sender,
        })
    }

    fn go_on(&mut self) -> Result<Ended, MpirunError> {
        loop {
            match self.next_event(LINE_WAIT) {
                Ok(event) => {
                    if let Some(ended) = self.take(event)? {
                        return Ok(self.finish(ended));
                    }
                    self.tell_locals()?;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.print_waiting();
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    unreachable!("readers of output live as long as the launcher's thread")
                }
            }
            self.release_signals();
            self.look_at_dying();
            if let Some(ended) = self.look_at_early() {
                return Ok(self.finish(ended));
            }
            if let Some(ended) = self.look_at_without_mpi()? {
                return Ok(self.finish(ended));
            }
            while let Some(order) = self.job.poll() {
                match order {
                    Order::LeaveMpi(set) => {
                        // Who hears of it changes what others of its set may still read.
                        self.folder.tell_broken(set)?;
                        self.leave(set);
                    }
                    Order::Part(rank, set) => {
                        if let Some(ended) = self.part(rank, set) {
                            return Ok(self.finish(ended));
                        }
                    }
                    Order::GoOn => self.tell(None, "go"),
                    Order::End(code) => return Ok(self.finish(Ended::With(code))),
                    Order::Restart(rank, why) => return Ok(self.finish(Ended::Again(rank, why))),
                }
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<Option<Ended>, MpirunError> {
        match event {
            Event::Called(rank, set, pid, link) => {
                self.call_in(rank, set, pid, Line::Here(link), None);
            }
            Event::Said(rank, set, _)
            | Event::Gone(rank, set)
            | Event::Printed(_, rank, set, _)
            | Event::Closed(_, rank, set)
                if self.process(rank, set).is_parted => {}
            Event::Said(rank, set, line) => {
                return Ok(self.hear(rank, set, &line));
            }
            Event::Gone(rank, set) => {
                let process = self.process(rank, set);
                process.link = None;
                if !process.ended {
                    self.lose(rank, set);
                }
                return Ok(self.end_outputs(rank, set, false));
            }
            Event::Printed(channel, rank, set, bytes) => {
                self.printing(channel, rank).output.print(set, &bytes);
                return Ok(self.print(channel, rank));
            }
            Event::Closed(channel, rank, set) => {
                self.process(rank, set).closed[channel as usize] = true;
                return Ok(self.end_outputs(rank, set, false));
            }
            Event::Signalled(signal) => {
                if signals::is_end(signal) {
                    return Ok(Some(Ended::With(128 + signal)));
                }
                let here = self.processes.iter().flatten().filter(|it| it.host.is_none());
                let mut pids = here.map(|it| it.pid);
                let is_handled = pids.any(|it| it != 0 && signals::is_handled(it, signal));
                return Ok(self.hear_signal(signal, is_handled));
            }
            Event::HostCalled(id, host) => self.host_called(id, host),
            Event::Pulse(id, stream) => self.keep_pulse(id, stream),
            Event::HostSaid(id, letter) => return Ok(self.hear_host(id, letter)),
            Event::HostGone(id, why) => return Ok(self.lose_host(id, why)),
            Event::Stranger(what) => self.note_stranger(what),
            Event::Failed(why) => return Err(why),
            Event::LauncherEnded(code) => {
                self.launchers_ended += 1;
                let is_told = self.without_mpi.code != 0 || !self.lacks_some();
                if self.without_mpi.has_any() && is_told {
                    return Ok(Some(Ended::WithoutMpi(self.without_mpi.code)));
                }
                if self.lacks_some() {
                    let launcher = self.path.clone();
                    let processes = self.processes.iter().flatten().count();
                    return Err(MpirunError::NotStarted { launcher, code, processes });
                }
            }
        }
        Ok(None)
    }

    /// A replica dies of a fault: the program ends where most of a process do.
    fn hear_fault(&mut self, rank: Rank, set: SetId, fault: Quit) {
        self.process(rank, set).fault = Some(fault);
        let cluster = &self.processes[rank.0 as usize];
        let said: Vec<_> = cluster.iter().map(|it| it.fault).collect();
        if let (None, Agreed::InOrder(Quit { code, .. })) = (self.dying, quits::agree(&said)) {
            let signal = code - 128;
            self.notes.push(format!("{rank}: most replicas die of signal {signal} at one place"));
            self.dying = Some((rank, Instant::now(), code));
        }
    }

    /// Ends the program that dies once its replicas have said what they have to say of it.
    fn look_at_dying(&mut self) {
        let Some((rank, since, code)) = self.dying else { return };
        let mut dying = self.processes[rank.0 as usize].iter().filter(|it| it.fault.is_some());
        if DYING_WAIT < since.elapsed() || dying.all(|it| it.link.is_none()) {
            self.job.abort(code);
        }
    }

    /// Whether a process was never there.
    fn lacks_some(&self) -> bool {
        self.processes.iter().flatten().any(|it| it.pid == 0)
    }

    /// A process is there.
    fn call_in(&mut self, rank: Rank, set: SetId, pid: i32, link: Line, host: Option<HostId>) {
        let process = self.process(rank, set);
        process.pid = pid;
        process.known = host.is_none().then(|| Known::of(pid));
        process.link = Some(link);
        process.host = host;
        if !self.hosts.is_empty() {
            self.tell_process(rank, set, "hosts");
        }
        self.feed(rank, set, host);
    }

    /// A process is gone that had not ended.
    fn lose(&mut self, rank: Rank, set: SetId) {
        self.deaths += 1;
        self.known.lost.push((rank, set));
        if rank == Rank(0) {
            self.input.taken(set, None);
        }
        self.notes.push(format!("{rank}: {set} is gone"));
        self.init.lose(rank, set);
        self.settle_quits(rank);
    }

    /// Lets those end by another thread that are most of a process's replicas.
    fn settle_quits(&mut self, rank: Rank) {
        let cluster = &mut self.processes[rank.0 as usize];
        let lives = |it: &Process| it.link.is_some() && !it.ended;
        let said: Vec<_> = cluster.iter().filter(|it| lives(it)).map(|it| it.quit).collect();
        match quits::agree(&said) {
            Agreed::NotYet => {}
            Agreed::InOrder(quit) => {
                let agree = cluster.iter_mut().filter(|it| it.quit == Some(quit));
                agree.filter_map(|it| it.link.as_mut()).for_each(|it| it.say("quit"));
            }
            Agreed::AtOnce(code) => self.job.abort(code),
            Agreed::Never => self.job.restart(rank, Double::NoMajority),
        }
    }

    fn hear(&mut self, rank: Rank, set: SetId, line: &str) -> Option<Ended> {
        let report = match Report::from_text(line, self.options.replicas) {
            Ok(it) => it,
            // It may have said its end in these words: its link then ends as at a death.
            Err(e) => {
                self.notes.push(format!("{rank}: {set} said {e}"));
                return None;
            }
        };
        match report {
            Report::Entering => self.process(rank, set).entered = true,
            Report::Running => self.hear_through(rank, set),
            Report::Counts(counts) => self.process(rank, set).counts = counts,
            Report::Note(text) => {
                // Each replica of a cluster notes the same.
                if !self.notes.iter().any(|it| it == text) {
                    self.notes.push(text.to_owned());
                }
            }
            Report::Mark(it) => self.hear_mark(rank, it),
            Report::Strayed(it) => self.hear_stray(rank, it),
            Report::Signal(signal) => {
                if self.signals.came(rank, set, signal) {
                    self.pass_on(Some(rank), signal);
                }
            }
            Report::Yielded => self.away.yielded(rank, set),
            Report::At(port) => self.hear_port(rank, set, port),
            Report::Missed(it) if it != set => self.hear_missed(rank, set, it),
            Report::End(it) if it != set => self.job.part(rank, it),
            Report::Usage(it) if it != set => self.ask_usage(rank, set, it),
            // None has such a word of itself.
            Report::Missed(_) | Report::End(_) | Report::Usage(_) => {}
            Report::Ending => self.job.ending(rank, set),
            Report::Ended(code) => {
                self.process(rank, set).ended = true;
                self.job.ended(rank, set, code);
                return self.end_outputs(rank, set, false);
            }
            Report::Early(code) => {
                self.process(rank, set).ended = true;
                self.job.abort(code);
                return self.end_outputs(rank, set, false);
            }
            Report::Abort(code) => self.job.abort(code),
            Report::Quit(quit) => {
                self.process(rank, set).quit = Some(quit);
                self.settle_quits(rank);
            }
            Report::Fault(fault) => self.hear_fault(rank, set, fault),
            Report::Stop(why) => return Some(Ended::Refused(why.to_owned())),
            Report::Refuse(what) => {
                return Some(Ended::Refused(format!("{what} is not served with replicas")));
            }
            // Who is left of a cluster that dies has nobody to compare with.
            Report::Restart(_) if self.dying.is_some() => {}
            Report::Restart(why) => self.job.restart(rank, why),
            // A script ends behind the program that it started.
            Report::Never(_) if self.process(rank, set).running => {}
            Report::Never(code) => {
                self.process(rank, set).ended = true;
                self.without_mpi.end(code);
            }
        }
        None
    }

    /// A replica of a cluster says who differed: each of them says the same.
    fn hear_mark(&mut self, rank: Rank, Differed { set, call, byte }: Differed) {
        let mark = Mark { rank: rank.0, set: set.idx() as u8, call, byte };
        if !self.marked.contains(&mark) {
            self.marked.push(mark);
            self.tell_of(mark);
        }
    }

    /// A replica makes other calls, says it itself or one that found it.  At which compare each of
    /// them was may be another, and the replica is gone: it is one mark.
    fn hear_stray(&mut self, rank: Rank, it: Differed) {
        if !std::mem::replace(&mut self.process(rank, it.set).strayed, true) {
            self.hear_mark(rank, it);
        }
    }

    fn process(&mut self, rank: Rank, set: SetId) -> &mut Process {
        &mut self.processes[rank.0 as usize][set.idx()]
    }

    /// Tells a line to the processes of a set, or to all.
    fn tell(&mut self, set: Option<SetId>, line: &str) {
        for cluster in &mut self.processes {
            for (idx, process) in cluster.iter_mut().enumerate() {
                if set.is_none_or(|it| it.idx() == idx)
                    && let Some(link) = &mut process.link
                {
                    link.say(line);
                }
            }
        }
    }

    fn process_of(&self, rank: Rank, set: SetId) -> &Process {
        &self.processes[rank.0 as usize][set.idx()]
    }

    fn tell_process(&mut self, rank: Rank, set: SetId, line: &str) {
        if let Some(link) = &mut self.process(rank, set).link {
            link.say(line);
        }
    }

    /// Tells a line to all replicas of a process.
    fn tell_cluster(&mut self, rank: Rank, line: &str) {
        for link in self.processes[rank.0 as usize].iter_mut().filter_map(|it| it.link.as_mut()) {
            link.say(line);
        }
    }
}

fn command(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}
