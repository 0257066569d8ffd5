//! A simulated plant behind the interface: `selvedge plant-sim`.
//!
//! It keeps a state of its own that the core never reads, and knows of the core only what it is
//! told.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use selvedge_control::core::fabric_of;
use selvedge_driver::files;
use selvedge_driver::lock::{DirLock, LockError};
use selvedge_driver::plant::{
    Devices, Hello, Order, PROTOCOL, Parted, Step, Stepped, Told, Welcome, listen, serve,
};
use selvedge_driver::process::Process;
use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{PartId, PortId};
use selvedge_model::unit::{CentiDb, Generation, Moment};
use selvedge_sim::device::{Dials, Plant};
use selvedge_sim::fault::{Fault, FaultKind, FaultSpec, Rates};

use super::keep::{self, Entry, Keep, KeepError, STATE_FILE};

/// In the plant's folder: which process serves it.
pub(super) const PROCESS_FILE: &str = "process";

/// How a new plant is made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Nature {
    pub(crate) seed: u64,
    pub(crate) rates: Rates,
    pub(crate) dials: Dials,
}

/// What somebody does to a simulated plant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tamper {
    /// Let this happen.
    Inject(FaultSpec),
    /// Put right what is wrong with it.
    Clear(Target),
    /// Put right whatever is wrong anywhere.
    ClearAll,
}

/// How a circuit switch really is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mirrors {
    /// The newest write that it has taken.
    pub(crate) generation: Generation,
    /// For each port by place, how often its mirror was moved.
    pub(crate) moves: Vec<u32>,
}

impl Mirrors {
    /// How often the mirror of a port was moved.
    pub(crate) fn moves_of(&self, port: u16) -> u32 {
        self.moves.get(usize::from(port)).copied().unwrap_or(0)
    }
}

/// What a simulated plant shows of itself: all of it in a welcome, later what has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Truth {
    /// The faults that stand, in the order in which they happened.
    pub(crate) faults: Option<Vec<Fault>>,
    /// How many faults of each kind have happened, in the order of [`FaultKind::ALL`].
    pub(crate) n_faults: Option<[u64; FaultKind::ALL.len()]>,
    /// What the monitor light of switches measures at their ports; none where it is dark.
    pub(crate) losses: BTreeMap<PortId, Option<CentiDb>>,
    /// The switches.
    pub(crate) switches: BTreeMap<PartId, Mirrors>,
}

impl Truth {
    /// Takes over what has changed.
    pub(crate) fn take(&mut self, newer: Truth) {
        self.faults = newer.faults.or_else(|| self.faults.take());
        self.n_faults = newer.n_faults.or(self.n_faults);
        self.losses.extend(newer.losses);
        self.switches.extend(newer.switches);
    }
}

/// Why a plant's process does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The directory is not there, or another process serves it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What it has kept cannot be used.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// What it has kept and its plant files do not go together.
    #[error("the plant kept in {dir} cannot be brought back: {why}")]
    Restore {
        /// The plant's folder.
        dir: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system refuses a file or the socket.
    #[error("cannot serve in {dir}")]
    Io {
        /// The plant's folder.
        dir: PathBuf,
        /// Its reason.
        #[source]
        source: std::io::Error,
    },
}

/// Serves the simulated plant of `dir`, the plant's folder, until it is told to end.
///
/// # Errors
/// [`ServeError`]; what it had kept is as it was.
pub fn serve_plant(dir: &Path) -> Result<(), ServeError> {
    let _lock = DirLock::take(dir)?;
    let io_error = |source| ServeError::Io { dir: dir.to_owned(), source };
    let mut simulated = Simulated::open(dir)?;
    let listener = listen(dir).map_err(io_error)?;
    // Whoever reads this file finds the socket.
    let process = Process::here().map_err(io_error)?;
    let body = serde_json::to_vec(&process).map_err(|error| io_error(error.into()))?;
    files::write_atomically(&dir.join(PROCESS_FILE), &body, files::FILE_MODE).map_err(io_error)?;
    let served = accept(&listener, &mut simulated);
    // A file that stays names a dead process, and readers hold that against it.
    let _ = std::fs::remove_file(dir.join(PROCESS_FILE));
    served.map_err(io_error)
}

/// Serves one after the other: a server that has died leaves its place to the next.
fn accept(listener: &UnixListener, simulated: &mut Simulated) -> std::io::Result<()> {
    loop {
        let (mut line, _) = listener.accept()?;
        match serve(&mut line, simulated) {
            Ok(Parted::End) => return Ok(()),
            Ok(Parted::Gone) => (),
            // Its own words are in the answer, where there was one to give.
            Err(error) => eprintln!("{}", crate::api::error::chain(&error)),
        }
    }
}

/// The plant of one folder.
#[derive(Debug)]
struct Simulated {
    dir: PathBuf,
    living: Option<Living>,
}

/// A plant that has been made.
#[derive(Debug)]
struct Living {
    keep: Keep,
    plants: Vec<String>,
    plant: Plant,
    fabric: Arc<Fabric>,
    /// What the server knows of it.
    shown: Truth,
    /// Whether nobody has ever told it anything.
    untouched: bool,
}

impl Simulated {
    fn open(dir: &Path) -> Result<Self, ServeError> {
        let living = match Keep::open(dir)? {
            Some((keep, kept)) => Some(Living::restore(dir, keep, kept)?),
            None => None,
        };
        Ok(Self { dir: dir.to_owned(), living })
    }

    /// Makes the plant that `hello` asks for.
    fn create(&self, hello: &Hello, nature: &str) -> Result<Living, String> {
        let nature: Nature = serde_json::from_str(nature).map_err(|it| it.to_string())?;
        let fabric = Arc::new(fabric_of(&hello.plants).map_err(|it| it.to_string())?);
        let plant = Plant::new(Arc::clone(&fabric), nature.seed, nature.rates, nature.dials);
        let keep = Keep::create(&self.dir, &hello.plants, &plant.save());
        let keep = keep.map_err(|it| format!("cannot write in {}: {it}", self.dir.display()))?;
        let (plants, shown) = (hello.plants.clone(), Truth::default());
        Ok(Living { keep, plants, plant, fabric, shown, untouched: true })
    }
}

impl Devices for Simulated {
    fn hello(&mut self, hello: &Hello) -> Result<Welcome, String> {
        let state = self.dir.join(STATE_FILE);
        let state = state.display();
        let living = match (&mut self.living, &hello.create) {
            (None, None) => {
                return Err(format!(
                    "the simulated plant's state {state} is gone, though the journal knows a \
                     plant: restore the data directory from a backup, or begin with dark mirrors \
                     and healthy devices: selvedge up --new-plant"
                ));
            }
            (Some(living), Some(_)) if !living.untouched => {
                return Err(format!(
                    "{state} is the state of a plant that has been told things, and the journal \
                     knows none or --new-plant was said: remove {} if that plant is to be \
                     forgotten",
                    self.dir.display()
                ));
            }
            (Some(living), None) => living,
            (_, Some(nature)) => {
                let living = self.create(hello, nature)?;
                self.living.insert(living)
            }
        };
        living.greet(hello)
    }

    fn step(&mut self, step: Step) -> Result<Stepped, String> {
        let living = self.living.as_mut().ok_or("there is no plant yet")?;
        living.step(step)
    }

    fn copy(&mut self, to: &Path) -> Result<(), String> {
        let living = self.living.as_ref().ok_or("there is no plant yet")?;
        let copied = keep::copy(to, &living.plants, &living.plant.save());
        copied.map_err(|error| format!("cannot write in {}: {error}", to.display()))
    }
}

impl Living {
    fn restore(dir: &Path, keep: Keep, kept: keep::Kept) -> Result<Self, ServeError> {
        let wrong = |why: String| ServeError::Restore { dir: dir.to_owned(), why };
        let fabric = Arc::new(fabric_of(&kept.plants).map_err(|it| wrong(it.to_string()))?);
        let plant = Plant::restore(Arc::clone(&fabric), &kept.plant)
            .map_err(|source| KeepError::State { path: dir.join(STATE_FILE), source })?;
        // Folding comes only after requests, which are gone then.
        let untouched = kept.entries.iter().all(|it| matches!(it, Entry::Hello { .. }))
            && plant.now() == Moment::START;
        let (plants, shown) = (kept.plants, Truth::default());
        let mut living = Self { keep, plants, plant, fabric, shown, untouched };
        for entry in kept.entries {
            match entry {
                Entry::Hello { plants, now } => living.meet(plants, now).map_err(wrong)?,
                Entry::Step(step) => {
                    living.carry_out(step).map_err(wrong)?;
                }
            }
        }
        Ok(living)
    }

    fn greet(&mut self, hello: &Hello) -> Result<Welcome, String> {
        if !hello.plants.starts_with(&self.plants) {
            return Err(format!(
                "the simulated plant has version {} of its plant file, the journal version {}, and \
                 they do not follow from each other: journal and plant are not of one backup",
                self.plants.len(),
                hello.plants.len(),
            ));
        }
        // It may have come later by steps that were not worth keeping.
        let now = hello.now.max(self.plant.now());
        let entry = Entry::Hello { plants: hello.plants.clone(), now };
        self.keep.push(&entry).map_err(|it| format!("the plant's state cannot be kept: {it}"))?;
        self.meet(hello.plants.clone(), now)?;
        self.shown = Truth::default();
        let truth = Some(encode(&self.show()));
        let Told { n_jobs, starts, generation } = &hello.told;
        let starts = starts.iter().copied().collect();
        let ahead = self.plant.ahead(*n_jobs, &starts, *generation);
        Ok(Welcome {
            ahead,
            protocol: PROTOCOL,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            process: Process::here().map_err(|it| it.to_string())?,
            now: self.plant.now(),
            next_at: self.plant.next_at(),
            truth,
        })
    }

    /// A server has come again.
    fn meet(&mut self, plants: Vec<String>, now: Moment) -> Result<(), String> {
        if self.plants != plants {
            self.adopt(plants)?;
        }
        self.plant.reconnect(now);
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<Stepped, String> {
        let is_due = self.plant.next_at().is_some_and(|it| it <= step.until);
        // A step in which nothing is told and nothing happens is not worth keeping.
        if is_due || !step.orders.is_empty() {
            self.untouched = false;
            self.keep.push(&Entry::Step(step.clone())).map_err(|it| it.to_string())?;
        }
        let mut stepped = self.carry_out(step)?;
        let changes = self.show();
        stepped.truth = (changes != Truth::default()).then(|| encode(&changes));
        if self.keep.is_long()
            && let Err(error) = self.keep.fold(&self.plants, &self.plant.save())
        {
            // The log goes on growing, and nothing is lost.
            eprintln!("the plant's log cannot be folded: {error}");
        }
        Ok(stepped)
    }

    fn carry_out(&mut self, step: Step) -> Result<Stepped, String> {
        let now = step.now.max(self.plant.now());
        let mut extras = Vec::new();
        for order in step.orders {
            match order {
                Order::Tell(command) => self.plant.tell(now, &command),
                Order::Plant(plants) => self.adopt(plants)?,
                Order::Extra(text) => extras.push(self.tamper(now, &text)),
            }
        }
        let mut heard = Vec::new();
        while heard.is_empty()
            && let Some(at) = self.plant.next_at().filter(|it| *it <= step.until)
        {
            heard = self.plant.advance(at);
        }
        let at = if heard.is_empty() { step.until.max(now) } else { self.plant.now() };
        if heard.is_empty() {
            self.plant.advance(at);
        }
        Ok(Stepped { at, heard, next_at: self.plant.next_at(), extras, truth: None })
    }

    fn tamper(&mut self, now: Moment, text: &str) -> Result<String, String> {
        let tamper: Tamper = serde_json::from_str(text).map_err(|it| it.to_string())?;
        let done = match tamper {
            Tamper::Inject(spec) => self.plant.inject(now, spec).map(drop),
            Tamper::Clear(target) => self.plant.clear(now, target).map(drop),
            Tamper::ClearAll => {
                self.plant.clear_all(now);
                Ok(())
            }
        };
        done.map(|()| String::new()).map_err(|error| error.to_string())
    }

    fn adopt(&mut self, plants: Vec<String>) -> Result<(), String> {
        self.fabric = Arc::new(fabric_of(&plants).map_err(|it| it.to_string())?);
        self.plant.adopt(Arc::clone(&self.fabric));
        self.plants = plants;
        self.shown.faults = None;
        Ok(())
    }

    /// What the server does not know yet.
    fn show(&mut self) -> Truth {
        let mut changes = Truth::default();
        let shown = self.shown.faults.as_deref().unwrap_or_default();
        if self.shown.faults.is_none() || !self.plant.faults().eq(shown) {
            changes.faults = Some(self.plant.faults().copied().collect());
            // Light changes with faults and with the fabric, and with nothing else.
            changes.losses = self.losses();
            changes.losses.retain(|port, it| self.shown.losses.get(port) != Some(it));
        }
        let n_faults = self.plant.n_faults();
        changes.n_faults = (self.shown.n_faults != Some(n_faults)).then_some(n_faults);
        for (part, ocs) in self.plant.switches() {
            let is_shown = self
                .shown
                .switches
                .get(&part)
                .is_some_and(|it| it.generation == ocs.generation && it.moves == ocs.moves());
            if !is_shown {
                let moves = ocs.moves().to_vec();
                changes.switches.insert(part, Mirrors { generation: ocs.generation, moves });
            }
        }
        self.shown.take(changes.clone());
        changes
    }

    fn losses(&self) -> BTreeMap<PortId, Option<CentiDb>> {
        let fabric = &self.fabric;
        let is_switch = |it: &PartId| fabric.template_of(*it).role == Role::CircuitSwitch;
        let switches = fabric.parts().pairs().map(|(it, _)| it).filter(is_switch);
        let ports = switches.flat_map(|it| fabric.ports_of(it));
        let cabled = ports.filter(|it| fabric.cable_at(*it).is_some());
        cabled.map(|port| (port, self.plant.loss_at(port))).collect()
    }
}

fn encode(truth: &Truth) -> String {
    serde_json::to_string(truth).expect("keys of what a plant shows are numbers")
}
