//! The journal as the loop uses it.

use selvedge_driver::store::{Row, Snapshot, Store, StoreError};

/// What keeps rows: the real store, or in tests one that fails when told to.
pub(crate) trait Journal: Send {
    /// Appends rows; they are durable when it returns, or none of them is there.
    fn append(&mut self, rows: &[Row]) -> Result<(), StoreError>;
    /// The store itself, to read what it holds.
    fn store(&self) -> &Store;
    /// Keeps a snapshot.
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError>;
}

impl Journal for Store {
    fn append(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        Store::append(self, rows)
    }

    fn store(&self) -> &Store {
        self
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        Store::snapshot(self, snapshot)
    }
}

#[cfg(test)]
pub(crate) mod chaos {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A store whose disk is full while the switch is on.
    pub(crate) struct Chaos {
        pub(crate) store: Box<dyn Journal>,
        pub(crate) full: Arc<AtomicBool>,
    }

    impl Chaos {
        fn refuse(&self, first: u64, last: u64) -> Result<(), StoreError> {
            if !self.full.load(Ordering::SeqCst) {
                return Ok(());
            }
            let dir = PathBuf::from("/chaos");
            let source = rusqlite_full();
            Err(StoreError::Full { dir, first, last, source })
        }
    }

    impl Journal for Chaos {
        fn append(&mut self, rows: &[Row]) -> Result<(), StoreError> {
            let number = |row: Option<&Row>| row.map_or(0, |it| it.number);
            self.refuse(number(rows.first()), number(rows.last()))?;
            self.store.append(rows)
        }

        fn store(&self) -> &Store {
            self.store.store()
        }

        fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
            self.refuse(snapshot.number, snapshot.number)?;
            self.store.snapshot(snapshot)
        }
    }

    fn rusqlite_full() -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(13), None)
    }
}
