//! The simulated plant of a server, with the file that it lives in.
//!
//! The core never reads that file: it learns of the plant by asking, also after a restart.  The
//! file is written after each round of the loop, whole or not at all.  It is not synced: a server
//! that is killed finds it as it was; a machine that loses power takes its simulated plant back a
//! moment, which the core finds out as it would of any plant.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use selvedge_control::input::Input;
use selvedge_control::output::Command;
use selvedge_driver::files::FILE_MODE;
use selvedge_model::fabric::Fabric;
use selvedge_model::fault::Target;
use selvedge_model::id::PortId;
use selvedge_model::unit::{CentiDb, Moment};
use selvedge_sim::device::{Dials, Plant, PlantError};
use selvedge_sim::fault::{Fault, FaultError, FaultKind, FaultSpec, Rates};
use selvedge_sim::world::Happening;

use crate::limits;

/// The name of the plant's file in a data directory.
const STATE_FILE: &str = "plant.state";

/// Why the plant's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system said no.
    #[error("cannot use {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// It is not what a plant wrote.
    #[error(
        "{path} does not read; restore it from a copy, or remove it to begin with healthy devices"
    )]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: PlantError,
    },
}

/// How a simulated plant is: what a new one begins with, and what a scenario lets happen to it.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) seed: u64,
    pub(crate) rates: Rates,
    pub(crate) dials: Dials,
    pub(crate) happenings: Vec<(Moment, Happening)>,
}

/// What somebody does to a simulated plant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tamper {
    /// Let this happen.
    Inject(FaultSpec),
    /// Put right what is wrong with it.
    Clear(Target),
    /// Put right whatever is wrong anywhere.
    ClearAll,
}

/// A simulated plant on its bench.
#[derive(Debug)]
pub(crate) struct Bench {
    plant: Plant,
    path: PathBuf,
    /// Whether the plant has changed since it was written.
    dirty: bool,
}

impl Bench {
    /// The plant of `data` as it was left, or a new one for `fabric`.
    ///
    /// # Errors
    /// [`BenchError`].
    pub(crate) fn open(
        data: &Path,
        fabric: Fabric,
        nature: &Nature,
        now: Moment,
    ) -> Result<Self, BenchError> {
        let path = data.join(STATE_FILE);
        let fabric = Arc::new(fabric);
        let plant = match read(&path) {
            Ok(Some(bytes)) => {
                let restored = Plant::restore(fabric, &bytes);
                let mut plant =
                    restored.map_err(|source| BenchError::State { path: path.clone(), source })?;
                plant.reconnect(now);
                plant
            }
            Ok(None) => Plant::new(fabric, nature.seed, nature.rates, nature.dials),
            Err(source) => return Err(BenchError::Io { path, source }),
        };
        Ok(Self { plant, path, dirty: true })
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.plant.next_at()
    }

    /// Lets everything happen up to `to`.
    pub(crate) fn advance(&mut self, to: Moment) -> Vec<Input> {
        self.dirty = true;
        self.plant.advance(to)
    }

    /// Tells a device.
    pub(crate) fn tell(&mut self, now: Moment, command: &Command) {
        self.dirty = true;
        self.plant.tell(now, command);
    }

    /// The hardware was changed by somebody.
    pub(crate) fn adopt(&mut self, fabric: &Fabric) {
        self.dirty = true;
        self.plant.adopt(Arc::new(fabric.clone()));
    }

    /// Does something to the plant behind the core's back.
    ///
    /// # Errors
    /// [`FaultError`]; nothing has happened.
    pub(crate) fn tamper(&mut self, now: Moment, tamper: Tamper) -> Result<(), FaultError> {
        self.dirty = true;
        match tamper {
            Tamper::Inject(spec) => self.plant.inject(now, spec).map(|_| ()),
            Tamper::Clear(target) => self.plant.clear(now, target).map(|_| ()),
            Tamper::ClearAll => {
                self.plant.clear_all(now);
                Ok(())
            }
        }
    }

    /// The faults that stand.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.plant.faults()
    }

    /// How many faults of each kind have happened.
    pub(crate) fn n_faults(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        FaultKind::ALL.into_iter().zip(self.plant.n_faults())
    }

    /// What the monitor light of a switch measures at one of its ports.
    pub(crate) fn loss_at(&self, port: PortId) -> Option<CentiDb> {
        self.plant.loss_at(port)
    }

    /// Writes the plant's file, if the plant has changed.
    ///
    /// # Errors
    /// If the system does; the old file is then whole.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        if !self.dirty {
            return Ok(());
        }
        let scratch = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        options.open(&scratch)?.write_all(&self.plant.save())?;
        fs::rename(&scratch, &self.path)?;
        self.dirty = false;
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Ok(meta) if limits::PLANT_STATE_BYTES_MAX < meta.len() => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than any plant"))
        }
        Ok(_) => fs::read(path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
