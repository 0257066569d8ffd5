//! The journal on disk: one `SQLite` file in a data directory that has one owner.
//!
//! ```text
//! DIR/lock            the owner's process number, under an exclusive lock
//! DIR/journal.db      meta (format, head) · journal (number, at_ns, body, chain) · snapshot
//! DIR/journal.db-wal  what was appended since SQLite last moved it over
//! ```
//!
//! In reading order: the checksums ([`Chain`]), what can be wrong and how it is told (`error`),
//! the log that a crash leaves (`wal`), reading and checking without changing anything (`read`),
//! what a person does with a journal (`rescue`), and here the [`Store`] that appends.
//!
//! # What an append costs, and why it is durable
//! The file is in WAL mode with `synchronous=FULL`: a commit appends the changed pages to
//! `journal.db-wal` and syncs that file once before it returns.  A rollback journal takes two
//! to four syncs for the same promise; `synchronous=NORMAL` takes none, and loses what it
//! acknowledged when the power goes.  A torn tail fails SQLite's own frame checksums and is
//! dropped whole, so that a batch is in the journal or is not.
//!
//! # What is noticed
//! Each row carries a checksum over all before it, and `meta.head` names the last one, in the
//! same transaction: a row changed, moved, added or missing, also at the end, is damage, and
//! damage refuses to start.  So does a byte changed in the middle of `journal.db-wal`.  What
//! cannot be told from a commit that never ended is damage to the last one or two commits in
//! that file after a crash: only a copy elsewhere could tell.

mod chain;

mod error;

mod wal;

mod read;

mod rescue;

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

pub use chain::Chain;
pub use error::{Damage, SnapshotFault, StoreError};
pub use read::{Page, Report, Rows, SnapshotReport, newest};
pub use rescue::{Salvaged, backup, export, salvage, verify};

use crate::files::{self, FILE_MODE};
use crate::limits::{
    BODY_BYTES_MAX, BUSY_WAIT_MAX, SNAPSHOT_BYTES_MAX, SNAPSHOTS_KEPT, VERSION_BYTES_MAX,
};
use crate::lock::DirLock;
use chain::{Link, digest};
use read::{Extent, Fault, Reader};

/// The journal's file in a data directory.
pub const JOURNAL_FILE: &str = "journal.db";

/// What `SQLite` has not yet moved over into [`JOURNAL_FILE`].
pub(crate) const WAL_FILE: &str = "journal.db-wal";

/// The format that this version writes, as `meta` names it.
pub const FORMAT: &str = "selvedge-journal 1";

/// The tables, word for word as `SQLite` keeps their definitions: a start compares them.
pub(crate) const TABLES: [(&str, &str); 3] =
    [("meta", META), ("journal", JOURNAL), ("snapshot", SNAPSHOT)];

const META: &str =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID";

const JOURNAL: &str = "CREATE TABLE journal (
    number INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL,
    body TEXT NOT NULL, chain BLOB NOT NULL) STRICT";

const SNAPSHOT: &str = "CREATE TABLE snapshot (
    number INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL,
    version TEXT NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL) STRICT";

/// One row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// 1 for the first row, then one more each.
    pub number: u64,
    /// When it was accepted, on the clock of the writer, in nanoseconds.
    pub at_ns: u64,
    /// One line of JSON; the store never looks into it.
    pub body: String,
}

/// The state after a row of the journal, so that a start need not replay what came before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last row that the state contains.
    pub number: u64,
    /// When it was taken, on the clock of the writer, in nanoseconds.
    pub at_ns: u64,
    /// Who can read the body: the writer's version.
    pub version: String,
    /// The state; the store never looks into it.
    pub body: Vec<u8>,
}

/// What a start found.
#[derive(Debug)]
#[must_use]
pub struct Opened {
    /// The newest snapshot that is whole.
    pub snapshot: Option<Snapshot>,
    /// Newer snapshots that are damaged: tell the operator that they were passed over.
    pub set_aside: Vec<SnapshotFault>,
    /// The last row's number; 0 in a new journal.
    pub last: u64,
    /// The chain was walked from the row after this one: 0 if it was walked whole.
    pub checked_after: u64,
}

impl Opened {
    /// Rows after this one are to be replayed over [`Opened::snapshot`].
    pub fn replay_after(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |it| it.number)
    }
}

/// The journal of one data directory, open for appending.
///
/// Invariant: `last` is the link of the last committed row.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    dir: PathBuf,
    last: Link,
    /// A failed batch could not be wiped from the file, so that only a new start can tell.
    in_doubt: bool,
    /// Given back last, after the connection has closed.
    _lock: DirLock,
}

impl Store {
    /// Takes `dir`, makes a journal if there is none, and checks the one that is there.
    ///
    /// The check changes nothing.  It walks the whole chain, or, when the journal is longer than
    /// [`crate::limits::ROWS_WALKED_AT_OPEN_MAX`], what follows the newest good snapshot.
    ///
    /// # Errors
    /// If the directory is in use, the journal is damaged or of a newer format, or the disk fails.
    pub fn open(dir: &Path) -> Result<(Store, Opened), StoreError> {
        let lock = DirLock::take(dir)?;
        let path = dir.join(JOURNAL_FILE);
        if !path.try_exists().map_err(|source| StoreError::io(&path, source))? {
            create(dir)?;
        }
        // Checked by a reader that is gone before the writer comes: what is damaged stays as it is.
        let (opened, last) = Reader::open(dir)?.check(Extent::AT_OPEN)?.into_opened(dir)?;
        let damaged = |source| Fault::of(last.number, source).told(dir, last.number);
        let db = connect(&path).map_err(damaged)?;
        let store = Store { db, dir: dir.to_owned(), last, in_doubt: false, _lock: lock };
        // What a crash left behind the last commit would lie behind the next ones, and look as
        // if it had been acknowledged.
        store.wipe_uncommitted().map_err(|source| StoreError::io(&dir.join(WAL_FILE), source))?;
        Ok((store, opened))
    }

    /// The last row's number; 0 in a new journal.
    pub fn last(&self) -> u64 {
        self.last.number
    }

    /// Appends `rows` in one transaction, which is on the disk when this returns.
    ///
    /// # Errors
    /// Then nothing of `rows` is in the journal, and the same call may succeed later: after
    /// [`StoreError::Full`] once there is room.  [`StoreError::InDoubt`] is the exception: the
    /// disk failed even to take the batch back, and the store refuses all work until reopened.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        self.refuse_in_doubt()?;
        let links = self.link(rows)?;
        let Some(last) = links.last() else {
            return Ok(());
        };
        match self.write(rows, &links) {
            Ok(()) => {
                self.last = *last;
                Ok(())
            }
            Err(source) => Err(self.take_back(source, rows[0].number, last.number)),
        }
    }

    /// Keeps `snapshot`, and of the older ones the newest.
    ///
    /// # Errors
    /// If it is of no row of this journal, or older than one that is kept, or as [`Store::append`].
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.refuse_in_doubt()?;
        let number = snapshot.number;
        let newest = self
            .db
            .query_row("SELECT max(number) FROM snapshot", [], |it| it.get::<_, Option<u64>>(0))
            .map_err(|source| StoreError::sqlite("look for snapshots", &self.dir, source))?;
        let oldest = newest.unwrap_or(1).max(1);
        if number < oldest || self.last.number < number {
            return Err(StoreError::SnapshotOutOfRange { number, oldest, last: self.last.number });
        }
        if SNAPSHOT_BYTES_MAX < snapshot.body.len() || VERSION_BYTES_MAX < snapshot.version.len() {
            return Err(StoreError::SnapshotTooLong {
                number,
                bytes: snapshot.body.len(),
                version_bytes: snapshot.version.len(),
            });
        }
        let at_ns = stored(snapshot.at_ns, number)?;
        self.write_snapshot(snapshot, at_ns)
            .map_err(|source| self.take_back(source, number, number))
    }

    /// What a start would find now: what is durable, whatever has failed since.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn look_again(&self) -> Result<Opened, StoreError> {
        Ok(Reader::open(&self.dir)?.check(Extent::AT_OPEN)?.into_opened(&self.dir)?.0)
    }

    /// The rows after row `number`, each checked again as it is read.
    ///
    /// # Errors
    /// If there is no row `number`, or the disk fails.
    pub fn rows_after(&self, number: u64) -> Result<Rows<'_>, StoreError> {
        Rows::after(&self.db, &self.dir, number)
    }

    /// The links of `rows`, if they may follow the last row.
    fn link(&self, rows: &[Row]) -> Result<Vec<Link>, StoreError> {
        let mut last = self.last;
        let mut links = Vec::with_capacity(rows.len());
        for row in rows {
            let (number, expected) = (row.number, last.number + 1);
            if number != expected {
                return Err(StoreError::OutOfOrder { number, expected });
            }
            if BODY_BYTES_MAX < row.body.len() {
                return Err(StoreError::BodyTooLong { number, bytes: row.body.len() });
            }
            // One row is one line of an export, from which the chain can be computed again.
            if row.body.is_empty() || row.body.contains(['\n', '\r']) {
                return Err(StoreError::BodyNotALine { number });
            }
            stored(row.at_ns, number)?;
            last = last.then(row);
            links.push(last);
        }
        Ok(links)
    }

    fn write(&mut self, rows: &[Row], links: &[Link]) -> rusqlite::Result<()> {
        let change = begin(&mut self.db)?;
        {
            let mut insert = change.prepare_cached(
                "INSERT INTO journal (number, at_ns, body, chain) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for (row, link) in rows.iter().zip(links) {
                insert.execute(params![row.number, row.at_ns, row.body, link.chain.0])?;
            }
            let last = links.last().expect("a batch is not empty");
            let head = format!("{} {}", last.number, last.chain);
            let n_changed = change
                .prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'head'")?
                .execute([head])?;
            if n_changed != 1 {
                return Err(rusqlite::Error::StatementChangedRows(n_changed));
            }
        }
        change.commit()
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot, at_ns: i64) -> rusqlite::Result<()> {
        let change = begin(&mut self.db)?;
        let under = change.query_row(
            "SELECT chain FROM journal WHERE number = ?1",
            [snapshot.number],
            |it| it.get(0),
        )?;
        let digest = digest(snapshot, Chain(under));
        change.execute(
            "INSERT OR REPLACE INTO snapshot (number, at_ns, version, body, digest)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![snapshot.number, at_ns, snapshot.version, snapshot.body, digest],
        )?;
        change.execute(
            "DELETE FROM snapshot WHERE number NOT IN
             (SELECT number FROM snapshot ORDER BY number DESC LIMIT ?1)",
            [SNAPSHOTS_KEPT],
        )?;
        change.commit()
    }

    fn refuse_in_doubt(&self) -> Result<(), StoreError> {
        match self.in_doubt {
            true => Err(StoreError::Closed { dir: self.dir.clone() }),
            false => Ok(()),
        }
    }

    /// The error of a batch that failed, after seeing to it that the batch is not in the file.
    ///
    /// `SQLite` has rolled it back, but only in memory: a sync that failed after the pages had
    /// been written leaves a whole commit at the end of the WAL, and a start after a crash would
    /// take it for one that was acknowledged.
    fn take_back(&mut self, source: rusqlite::Error, first: u64, last: u64) -> StoreError {
        let dir = self.dir.clone();
        if let Err(wipe) = self.wipe_uncommitted() {
            self.in_doubt = true;
            return StoreError::InDoubt { dir, first, last, wipe, source };
        }
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full { dir, first, last, source },
            _ => StoreError::NotWritten { dir, first, last, source },
        }
    }

    /// Cuts from the WAL what follows its last commit.
    fn wipe_uncommitted(&self) -> Result<(), io::Error> {
        let (n_frames, page_bytes): (i64, u64) = self
            .db
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |it| it.get(1))
            .and_then(|n| Ok((n, self.db.query_row("PRAGMA page_size", [], |it| it.get(0))?)))
            .map_err(io::Error::other)?;
        let n_frames = u64::try_from(n_frames).map_err(io::Error::other)?;
        // No process keeps locks on this file, so that it may be opened beside SQLite; the same
        // with `journal.db` would drop SQLite's locks on it.
        let path = self.dir.join(WAL_FILE);
        let log = match OpenOptions::new().write(true).open(path) {
            Ok(it) => it,
            Err(it) if it.kind() == io::ErrorKind::NotFound && n_frames == 0 => return Ok(()),
            Err(it) => return Err(it),
        };
        let len = wal::len(n_frames, page_bytes);
        if len < log.metadata()?.len() {
            log.set_len(len)?;
            log.sync_all()?;
        }
        Ok(())
    }
}

/// Makes an empty journal in `dir`: whole, or not at all.
///
/// A file of no bytes is therefore never a new journal, but one that has lost everything.
fn create(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(JOURNAL_FILE);
    for suffix in ["-wal", "-journal"] {
        let orphan = dir.join(format!("{JOURNAL_FILE}{suffix}"));
        if orphan.exists() {
            return Err(StoreError::Orphan { path: orphan, missing: path });
        }
    }
    let scratch = dir.join(format!("{JOURNAL_FILE}.new"));
    create_file(&scratch)?;
    // The new name makes it whole, after one sync: SQLite need keep no journal of its own.
    let sqlite_error = |source| StoreError::sqlite("create", &path, source);
    let db = Connection::open(&scratch).map_err(sqlite_error)?;
    db.execute_batch(&format!(
        "PRAGMA journal_mode=MEMORY;
         PRAGMA synchronous=OFF;
         BEGIN;
         {META}; {JOURNAL}; {SNAPSHOT};
         INSERT INTO meta VALUES ('format', '{FORMAT}'), ('head', '0 {}');
         COMMIT;",
        Link::START.chain
    ))
    .map_err(sqlite_error)?;
    db.close().map_err(|(_, source)| sqlite_error(source))?;
    publish(&scratch, &path)
}

/// An empty file of our mode, in place of whatever a crash left there.
fn create_file(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(FILE_MODE);
    options.open(path).map(drop).map_err(|source| StoreError::io(path, source))
}

/// Syncs `scratch` and gives it its name.
fn publish(scratch: &Path, path: &Path) -> Result<(), StoreError> {
    File::open(scratch)
        .and_then(|it| it.sync_all())
        .and_then(|()| fs::rename(scratch, path))
        .and_then(|()| files::sync_dir(files::parent(path)))
        .map_err(|source| StoreError::io(path, source))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_WAIT_MAX)?;
    db.execute_batch(
        "PRAGMA journal_mode=WAL;
         PRAGMA synchronous=FULL;
         PRAGMA fullfsync=ON;
         PRAGMA cell_size_check=ON;
         PRAGMA trusted_schema=OFF;",
    )?;
    Ok(db)
}

fn begin(db: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    db.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// `at_ns` as `SQLite` keeps it, whose integers are signed: good until the year 2262.
fn stored(at_ns: u64, number: u64) -> Result<i64, StoreError> {
    i64::try_from(at_ns).map_err(|_| StoreError::TimeTooLate { number, at_ns })
}
