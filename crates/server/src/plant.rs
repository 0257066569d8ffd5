//! The simulated plant as the loop sees it: a process of its own behind a line that may break.
//!
//! ```text
//!            ┌────────────── Stepped ──────────────┐
//!            ▼                                     │
//!          Idle ── orders, or something is due ──► Stepping ── Lost ──► Away ── Back ──► Idle
//!            └───────────────────── Lost ─────────────────────────────►  ▲ │ Lost: again later
//!                                                                        └─┘
//! ```
//! The loop goes on taking requests while a step is under way or the plant is away; plant time
//! does not pass them.  The core learns of the plant only by what is heard; what the plant shows
//! of itself (`Truth`) is for people who want to know what really is.

mod keep;

mod link;

mod simulated;

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Instant;

use selvedge_control::core::Core;
use selvedge_control::output::Command;
use selvedge_driver::plant::{
    Hello, Line, Order, PLANT_DIR, PROTOCOL, Step, Stepped, Told, Welcome,
};
use selvedge_driver::process::Process;
use selvedge_model::id::{PartId, PortId};
use selvedge_model::unit::{CentiDb, Moment};
use selvedge_sim::fault::{Fault, FaultKind};

use crate::api::error::chain;
use crate::limits;
use crate::shell::Request;
use link::{Errand, Host};

pub(crate) use link::News;
pub use link::{BackupError, LinkError, MANIFEST_FILE, Manifest};
use simulated::Truth;
pub(crate) use simulated::{Mirrors, Nature, Tamper};
pub use simulated::{ServeError, serve_plant};

/// What becomes of the plant's process when the server goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// It stays, for the next server.
    Leave,
    /// It ends.
    End,
}

/// Where the plant stands.
#[derive(Debug)]
enum Standing {
    Idle,
    Stepping,
    Away {
        why: String,
        /// When it is looked for again; none while that is under way.
        retry_at: Option<Instant>,
        n_tries: u32,
    },
}

/// The plant at the other end of the line.
#[derive(Debug)]
pub(crate) struct Remote {
    errands: Sender<Errand>,
    thread: Option<JoinHandle<()>>,
    standing: Standing,
    /// What is told with the next step.
    orders: Vec<Order>,
    /// When something happens in it next.
    next_at: Option<Moment>,
    truth: Truth,
    process: Process,
    /// Whether its process was there before this server.
    was_there: bool,
    n_losses: u64,
}

/// A line that was opened, and not yet given to its thread.
pub(crate) struct Opened {
    host: Host,
    line: Line,
    was_there: bool,
    pub(crate) welcome: Welcome,
}

impl Opened {
    /// Finds the plant of `data` or starts its process, and says hello.
    ///
    /// # Errors
    /// [`LinkError`]; a process that was started for it has ended.
    pub(crate) fn open(data: &Path, hello: &Hello) -> Result<Self, LinkError> {
        let was_there = link::serving(&data.join(PLANT_DIR)).is_some();
        let mut host = Host::new(data);
        let mut n_tries = 0;
        loop {
            n_tries += 1;
            match link::greet(&mut host, hello) {
                Ok((line, welcome)) => return Ok(Self { host, line, was_there, welcome }),
                // One that dies just now may still take the line: there is another, or none.
                Err(error) if error.is_cut() && n_tries < limits::PLANT_GREETS_MAX => {
                    tracing::info!(
                        error = chain(&error),
                        "the plant's process is looked for again"
                    );
                    std::thread::sleep(limits::PLANT_GREET_AGAIN);
                }
                Err(error) => {
                    if !was_there {
                        link::end(&mut host, None);
                    }
                    return Err(error);
                }
            }
        }
    }
}

impl Remote {
    /// Gives the line to a thread, which sends what it hears to `news`.
    pub(crate) fn new(opened: Opened, news: SyncSender<Request>) -> std::io::Result<Self> {
        let Opened { host, line, was_there, welcome } = opened;
        let (errands, incoming): (_, Receiver<Errand>) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("selvedge-plant".to_owned())
            .spawn(move || link::run(host, line, &incoming, &news))?;
        let mut remote = Self {
            errands,
            thread: Some(thread),
            standing: Standing::Idle,
            orders: Vec::new(),
            next_at: None,
            truth: Truth::default(),
            process: welcome.process,
            was_there,
            n_losses: 0,
        };
        remote.welcomed(&welcome);
        Ok(remote)
    }

    /// When something happens next, as far as is known: nothing is while a step is under way.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.next_at
    }

    /// Whether time may not pass: what the plant says next is not known.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.standing, Standing::Idle)
    }

    /// Why the plant is away, while it is.
    pub(crate) fn away(&self) -> Option<&str> {
        match &self.standing {
            Standing::Away { why, .. } => Some(why),
            Standing::Idle | Standing::Stepping => None,
        }
    }

    /// When it is looked for again.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        match self.standing {
            Standing::Away { retry_at, .. } => retry_at,
            Standing::Idle | Standing::Stepping => None,
        }
    }

    /// Tells a device, with the next step.
    pub(crate) fn tell(&mut self, command: Command) {
        self.order(Order::Tell(command));
    }

    /// The hardware was changed by somebody: every version of the plant file.
    pub(crate) fn adopt(&mut self, plants: Vec<String>) {
        self.order(Order::Plant(plants));
    }

    /// Does something to the plant behind the core's back; its outcome stands in the step's answer.
    pub(crate) fn tamper(&mut self, tamper: Tamper) {
        let text = serde_json::to_string(&tamper).expect("a tamper's keys are text");
        self.order(Order::Extra(text));
    }

    fn order(&mut self, order: Order) {
        // A plant that is away is told everything anew when it is back.
        if self.away().is_none() {
            self.orders.push(order);
        }
    }

    /// Whether there is something to tell.
    pub(crate) fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Tells what there is to tell at `now`, and lets the plant go on to `until` or to the first
    /// thing heard.
    pub(crate) fn step(&mut self, now: Moment, until: Moment) {
        assert!(!self.is_busy(), "one step at a time");
        let step = Step { now, orders: std::mem::take(&mut self.orders), until: until.max(now) };
        self.standing = Standing::Stepping;
        self.send(Errand::Step(step));
    }

    /// A step has come back.
    pub(crate) fn stepped(&mut self, stepped: &mut Stepped) {
        self.standing = Standing::Idle;
        self.next_at = stepped.next_at;
        self.show(stepped.truth.take());
    }

    /// The process is there again.
    pub(crate) fn welcomed(&mut self, welcome: &Welcome) {
        self.standing = Standing::Idle;
        self.next_at = welcome.next_at;
        self.process = welcome.process;
        self.truth = Truth::default();
        self.show(welcome.truth.clone());
    }

    /// The line is broken, or nobody is found, or nothing can be kept.
    pub(crate) fn lost(&mut self, why: String) {
        let n_tries = match &self.standing {
            Standing::Away { n_tries, .. } => n_tries + 1,
            Standing::Idle | Standing::Stepping => {
                self.n_losses += 1;
                0
            }
        };
        let wait = limits::PLANT_RETRY_MIN.saturating_mul(1 << n_tries.min(16));
        let retry_at = Some(Instant::now() + wait.min(limits::PLANT_RETRY_MAX));
        self.standing = Standing::Away { why, retry_at, n_tries };
        self.orders.clear();
    }

    /// Looks for the process, or starts one, in the line's thread.
    pub(crate) fn look_for(&mut self, plants: Vec<String>, now: Moment, told: Told) {
        if let Standing::Away { retry_at, .. } = &mut self.standing {
            *retry_at = None;
            self.send(Errand::Hello(Box::new(hello(plants, now, None, told))));
        }
    }

    /// Copies journal and plant to a new directory, while time stands still.
    pub(crate) fn back_up(&mut self, data: &Path, to: &Path) {
        assert!(!self.is_busy(), "one step at a time");
        self.standing = Standing::Stepping;
        self.send(Errand::Backup { data: data.to_owned(), to: to.to_owned() });
    }

    /// A backup has ended.
    pub(crate) fn copied(&mut self) {
        if matches!(self.standing, Standing::Stepping) {
            self.standing = Standing::Idle;
        }
    }

    /// Ends the conversation.
    pub(crate) fn part(mut self, parting: Parting) {
        self.send(match parting {
            Parting::Leave => Errand::Leave,
            Parting::End => Errand::End,
        });
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the plant's thread panicked");
        }
    }

    /// The plant's process.
    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// Whether its process was there before this server.
    pub(crate) fn was_there(&self) -> bool {
        self.was_there
    }

    /// How often the line was lost.
    pub(crate) fn n_losses(&self) -> u64 {
        self.n_losses
    }

    /// The faults that stand.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.truth.faults.iter().flatten()
    }

    /// How many faults of each kind have happened.
    pub(crate) fn n_faults(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        FaultKind::ALL.into_iter().zip(self.truth.n_faults.into_iter().flatten())
    }

    /// What the monitor light of a switch measures at one of its ports.
    pub(crate) fn loss_at(&self, port: PortId) -> Option<CentiDb> {
        self.truth.losses.get(&port).copied().flatten()
    }

    /// How a switch really is.
    pub(crate) fn mirrors(&self, switch: PartId) -> Option<&Mirrors> {
        self.truth.switches.get(&switch)
    }

    fn show(&mut self, truth: Option<String>) {
        let Some(text) = truth else { return };
        match serde_json::from_str(&text) {
            Ok(newer) => self.truth.take(newer),
            Err(error) => tracing::warn!(%error, "what the plant shows of itself does not read"),
        }
    }

    fn send(&self, errand: Errand) {
        // A thread that is gone has panicked, and is told so when it is joined.
        let _ = self.errands.send(errand);
    }
}

/// What the server says first.
pub(crate) fn hello(
    plants: Vec<String>,
    now: Moment,
    create: Option<&Nature>,
    told: Told,
) -> Hello {
    let create = create.map(|it| serde_json::to_string(it).expect("a nature's keys are text"));
    let program = env!("CARGO_PKG_VERSION").to_owned();
    Hello { protocol: PROTOCOL, program, plants, now, create, told }
}

/// What the core remembers of what it has told devices.
pub(crate) fn told(core: &Core) -> Told {
    let state = core.state();
    let open = state.jobs.pairs().filter(|(_, it)| !it.state.is_over());
    Told {
        n_jobs: u32::try_from(state.jobs.len()).unwrap_or(u32::MAX),
        starts: open.map(|(job, it)| (job, it.attempt)).collect(),
        generation: state.generation,
    }
}

/// The process that keeps the simulated plant of `data`, if one runs.
pub fn left_in(data: &Path) -> Option<Process> {
    link::serving(&data.join(PLANT_DIR))
}

/// Ends the process that keeps the simulated plant of `data`, if one runs, and says which it was.
pub fn end_left(data: &Path) -> Option<Process> {
    let process = left_in(data)?;
    link::end(&mut Host::new(data), None);
    Some(process)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use selvedge_driver::files;
    use selvedge_sim::device::Dials;
    use selvedge_sim::fault::Rates;

    use super::*;

    /// Its socket still takes a line, and then there is nobody.
    #[test]
    fn a_plant_that_dies_as_it_answers_is_looked_for_again() {
        let data = tempfile::tempdir().unwrap();
        let dir = data.path().join(PLANT_DIR);
        files::own_dir(&dir).unwrap();
        let process = dir.join(simulated::PROCESS_FILE);
        fs::write(&process, serde_json::to_vec(&Process::here().unwrap()).unwrap()).unwrap();
        let dying = UnixListener::bind(dir.join("socket")).unwrap();
        let death = std::thread::spawn(move || {
            let (line, _) = dying.accept().unwrap();
            fs::remove_file(process).unwrap();
            drop((line, dying));
        });
        let plants = vec![selvedge_sim::scenario::pods(1, 1)];
        let nature = Nature { seed: 1, rates: Rates::NONE, dials: Dials::QUIET };
        let hello = hello(plants, Moment::START, Some(&nature), Told::default());
        let opened = Opened::open(data.path(), &hello).unwrap();
        death.join().unwrap();
        let Opened { mut host, line, .. } = opened;
        link::end(&mut host, Some(line));
    }
}
