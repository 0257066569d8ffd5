//! What can be wrong with a journal, and how it is told.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::DirError;
use crate::limits::{BODY_BYTES_MAX, SNAPSHOT_BYTES_MAX, VERSION_BYTES_MAX};
use crate::lock::LockError;
use crate::store::FORMAT;

/// Why the journal could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The data directory cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The directory to write to will not do.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// There is no journal to read.
    #[error("{dir} has no journal.db; name a data directory of selvedge")]
    NoJournal {
        /// The directory.
        dir: PathBuf,
    },
    /// A later version wrote it.
    #[error("{path} is of format `{found}`, this version reads `{FORMAT}`; run a newer selvedge")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format it names.
        found: String,
    },
    /// What follows row `last_good` cannot be trusted.
    #[error(
        "the journal in {dir} is damaged after row {last_good}, the last good one; \
         see what is wrong: selvedge journal verify {dir}; \
         copy what is good: selvedge journal salvage {dir} --out NEW"
    )]
    Damaged {
        /// The data directory.
        dir: PathBuf,
        /// The last row up to which the journal is whole.
        last_good: u64,
        /// What is wrong behind it.
        #[source]
        damage: Damage,
    },
    /// Part of a journal lies there without the rest.
    #[error("{path} lies there without {missing}; put both back from where they were moved")]
    Orphan {
        /// What is there.
        path: PathBuf,
        /// What is not.
        missing: PathBuf,
    },
    /// Rows must follow each other without a gap.
    #[error("row {number} cannot be appended: the next row is {expected}")]
    OutOfOrder {
        /// The number that came.
        number: u64,
        /// The number that must come.
        expected: u64,
    },
    /// The body is longer than a row may be.
    #[error("the body of row {number} has {bytes} bytes, more than {BODY_BYTES_MAX}")]
    BodyTooLong {
        /// The row.
        number: u64,
        /// Its length.
        bytes: usize,
    },
    /// The body is empty or has line breaks.
    #[error("the body of row {number} is not one line; write JSON without line breaks")]
    BodyNotALine {
        /// The row.
        number: u64,
    },
    /// The time does not fit the file.
    #[error("row {number} is of {at_ns} ns, later than the journal can say")]
    TimeTooLate {
        /// The row or the snapshot's row.
        number: u64,
        /// Its time.
        at_ns: u64,
    },
    /// Not one row of a damaged journal is good.
    #[error("not one row of the journal in {dir} is good: restore the directory from a backup")]
    NothingGood {
        /// The data directory.
        dir: PathBuf,
        /// What is wrong with it.
        #[source]
        damage: Damage,
    },
    /// The snapshot is of no row that it may be of.
    #[error("no snapshot can be of row {number}: it must be of one from {oldest} to {last}")]
    SnapshotOutOfRange {
        /// The row it names.
        number: u64,
        /// The oldest row it may name.
        oldest: u64,
        /// The last row.
        last: u64,
    },
    /// The snapshot is longer than one may be.
    #[error(
        "the snapshot of row {number} has {bytes} bytes and a version of {version_bytes}, \
         more than {SNAPSHOT_BYTES_MAX} or {VERSION_BYTES_MAX}"
    )]
    SnapshotTooLong {
        /// Its row.
        number: u64,
        /// The length of its body.
        bytes: usize,
        /// The length of its version.
        version_bytes: usize,
    },
    /// There is no such row to read after.
    #[error("there is no row {number} to read after")]
    NoSuchRow {
        /// The row.
        number: u64,
    },
    /// The disk is full; nothing of the batch is in the journal.
    #[error(
        "the disk of {dir} is full: nothing of rows {first} to {last} was written; \
         make room and retry"
    )]
    Full {
        /// The data directory.
        dir: PathBuf,
        /// The batch's first row.
        first: u64,
        /// The batch's last row.
        last: u64,
        /// `SQLite`'s words.
        #[source]
        source: rusqlite::Error,
    },
    /// The write failed; nothing of the batch is in the journal.
    #[error("cannot write to the journal in {dir}: nothing of rows {first} to {last} was written")]
    NotWritten {
        /// The data directory.
        dir: PathBuf,
        /// The batch's first row.
        first: u64,
        /// The batch's last row.
        last: u64,
        /// `SQLite`'s words.
        #[source]
        source: rusqlite::Error,
    },
    /// The write failed and could not be undone on the disk.
    #[error(
        "cannot write to the journal in {dir}, nor take rows {first} to {last} back ({wipe}); \
         they may be there after a restart"
    )]
    InDoubt {
        /// The data directory.
        dir: PathBuf,
        /// The batch's first row.
        first: u64,
        /// The batch's last row.
        last: u64,
        /// Why it could not be undone.
        wipe: io::Error,
        /// `SQLite`'s words about the write.
        #[source]
        source: rusqlite::Error,
    },
    /// An earlier batch is in doubt.
    #[error("the journal in {dir} takes nothing more: an earlier batch is in doubt; restart")]
    Closed {
        /// The data directory.
        dir: PathBuf,
    },
    /// `SQLite` failed, and not because of damage.
    #[error("cannot {what} in {path}")]
    Sqlite {
        /// What was being done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Its words.
        #[source]
        source: rusqlite::Error,
    },
    /// The system failed.
    #[error("cannot use {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    pub(crate) fn io(path: &Path, source: io::Error) -> StoreError {
        StoreError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn sqlite(what: &'static str, path: &Path, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { what, path: path.to_owned(), source }
    }
}

/// What is wrong in a damaged journal.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Damage {
    /// A row has another number than must come.
    #[error("row {number} is missing: row {found} follows row {}", number - 1)]
    Missing {
        /// The number that must come.
        number: u64,
        /// The number that comes.
        found: u64,
    },
    /// A row is not what was appended after the row before it.
    #[error(
        "row {number} is not what was written: its checksum does not follow from the row before"
    )]
    Changed {
        /// The row.
        number: u64,
    },
    /// The row holds values that no row has.
    #[error("row {number} is not a row: {what}")]
    NotARow {
        /// The number that must come.
        number: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The journal ends before its recorded end.
    #[error("the journal ends at row {last}, but rows up to {head} were acknowledged")]
    EndMissing {
        /// The last row there.
        last: u64,
        /// The last row acknowledged.
        head: u64,
    },
    /// The journal goes on behind its recorded end, or ends in another row.
    #[error("row {number} does not agree with the record of the last row (meta `head`)")]
    NotRecorded {
        /// The first row that is not on record.
        number: u64,
    },
    /// Commits lie in the write-ahead log behind a frame that is not what was written.
    #[error(
        "frame {frame} of journal.db-wal is damaged, and rows acknowledged later lie behind it"
    )]
    LogBroken {
        /// The frame; 0 for the log's header.
        frame: u64,
    },
    /// The record of the last row is gone.
    #[error("the record of the last row (meta `head`) is missing or unreadable")]
    NoHead,
    /// The definition of a table is not that of the format.
    #[error("the definition of table `{table}` is not what was written")]
    OtherTable {
        /// The table.
        table: &'static str,
    },
    /// The record of the format is gone.
    #[error("the record of the format (meta `format`) is missing or unreadable")]
    NoFormat,
    /// The table of snapshots cannot be read.
    #[error("the table of snapshots is unreadable")]
    NoSnapshots(#[source] rusqlite::Error),
    /// The file cannot be read from there on.
    #[error("what follows row {after} is unreadable")]
    Unreadable {
        /// The last row that could be read.
        after: u64,
        /// `SQLite`'s words.
        #[source]
        source: rusqlite::Error,
    },
}

/// A snapshot that cannot be used, and why.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SnapshotFault {
    /// It is not what was written, or not over these rows.
    #[error("the snapshot of row {number} is damaged: its digest does not match")]
    Changed {
        /// The snapshot's row.
        number: u64,
    },
    /// It cannot be read.
    #[error("the snapshot of row {number} is unreadable")]
    Unreadable {
        /// The snapshot's row.
        number: u64,
        /// `SQLite`'s words.
        #[source]
        source: rusqlite::Error,
    },
}
