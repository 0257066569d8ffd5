//! What readers see: the newest state, which is durable, or while rows cannot be written what the
//! disk holds.  The core has then taken inputs whose rows wait; nobody was told of them, and after
//! a crash they never were.

use selvedge_control::core::Core;

use super::{Shell, Trouble};
use crate::start::{self, StartError};

/// What readers see.
pub(super) enum Shown {
    /// The core as it is.
    Newest,
    /// What a start from the disk would find, while rows wait.
    Durable(Box<Core>),
    /// Rows wait, and the disk cannot be read either.
    Nothing,
}

impl Shell {
    /// The core as readers see it: all that it says is on the disk.
    pub(crate) fn core(&self) -> &Core {
        match &self.shown {
            Shown::Durable(core) => core,
            Shown::Newest | Shown::Nothing => self.commit.core(),
        }
    }

    /// Everything, for a reader.
    pub(super) fn readable(&self) -> Result<&Self, Trouble> {
        match self.shown {
            Shown::Newest | Shown::Durable(_) => Ok(self),
            Shown::Nothing => Err(self.not_writable().unwrap_or(Trouble::NotSaved {
                error: "it cannot be read".to_owned(),
                full: false,
                in_doubt: false,
            })),
        }
    }

    /// Why a change is refused before the core sees it, while rows wait.
    pub(super) fn not_writable(&self) -> Option<Trouble> {
        let error = self.journal_error.clone()?;
        Some(Trouble::NotSaved { error, full: self.meter.disk_full, in_doubt: false })
    }

    /// Rows wait: readers see what the disk holds.  It is read once, for nothing is added to it
    /// meanwhile.
    pub(super) fn show_durable(&mut self) {
        if matches!(self.shown, Shown::Durable(_)) {
            return;
        }
        self.shown = match self.read_again() {
            Ok(core) => Shown::Durable(Box::new(core)),
            Err(error) => {
                let error = crate::api::error::chain(&error);
                tracing::error!(error, "the journal cannot be read either");
                Shown::Nothing
            }
        };
    }

    fn read_again(&self) -> Result<Core, StartError> {
        let store = self.journal.store();
        let opened = store.look_again().map_err(|source| StartError::Store {
            data: self.data.clone(),
            source: Box::new(source),
        })?;
        Ok(start::start(store, opened, &self.data)?.core)
    }
}
