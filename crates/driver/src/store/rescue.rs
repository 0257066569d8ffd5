//! What a person does with a journal: verify, export, back up, and salvage what is good.
//!
//! None of these changes the journal it reads.  `verify`, `export` and `backup` also work while
//! its owner lives, and then see the state of one moment.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ffi};

use crate::files;
use crate::limits::ROWS_PER_COPY;
use crate::lock;
use crate::store::read::{Extent, Reader, Report};
use crate::store::{JOURNAL_FILE, Row, Store, StoreError, create_file, publish};

/// What a salvage brought over.
#[derive(Debug)]
#[must_use]
pub struct Salvaged {
    /// What was found in the original.
    pub report: Report,
    /// Rows in the copy.
    pub n_rows: u64,
    /// Snapshots in the copy.
    pub n_snapshots: usize,
}

/// Checks all of the journal in `dir`: the chain from the first row on, every snapshot, every page.
///
/// # Errors
/// If there is no journal, its format is newer, or the disk fails; damage is in the report.
pub fn verify(dir: &Path) -> Result<Report, StoreError> {
    let reader = Reader::open(dir)?;
    let mut report = reader.check(Extent::Whole)?.report;
    report.pages = reader.check_pages()?;
    Ok(report)
}

/// Writes the journal in `dir` to `out`, one row a line:
/// `{"number":…,"at_ns":…,"body":<the JSON>,"chain":"<hex>"}`; returns how many.
///
/// # Errors
/// If the disk or `out` fails.  Damage is an error after the last good row has been written.
pub fn export(dir: &Path, out: &mut dyn Write) -> Result<u64, StoreError> {
    let reader = Reader::open(dir)?;
    // A newer format is refused; what else is wrong, the check at the end says.
    reader.check_format()?;
    let out_error = |source| StoreError::io(Path::new("the output"), source);
    let mut walk = reader.walk();
    while let Some(next) = walk.next() {
        let (row, chain) = next.map_err(|it| it.told(dir, walk.at.number))?;
        let Row { number, at_ns, body } = row;
        writeln!(out, r#"{{"number":{number},"at_ns":{at_ns},"body":{body},"chain":"{chain}"}}"#)
            .map_err(out_error)?;
    }
    let n_rows = walk.at.number;
    out.flush().map_err(out_error)?;
    // The rows are out; whether they are all that were acknowledged is for the check to say.
    let (opened, _) = reader.check(Extent::AT_OPEN)?.into_opened(dir)?;
    assert!(opened.last == n_rows, "{} and {n_rows} of one moment", opened.last);
    Ok(n_rows)
}

/// Copies the journal in `dir`, whose owner may go on appending, to a new directory `out`.
///
/// # Errors
/// If `out` is not new, a disk fails, or the copy, which is verified, is damaged.
pub fn backup(dir: &Path, out: &Path) -> Result<Report, StoreError> {
    let reader = Reader::open(dir)?;
    // A newer format is refused; what else is wrong, the check at the end says.
    reader.check_format()?;
    files::own_new_dir(out)?;
    let path = out.join(JOURNAL_FILE);
    let scratch = out.join(format!("{JOURNAL_FILE}.new"));
    create_file(&scratch)?;
    copy_pages(reader.connection(), &scratch)
        .map_err(|source| StoreError::sqlite("copy the journal to", &scratch, source))?;
    publish(&scratch, &path)?;
    let report = verify(out)?;
    match report.damage {
        Some(damage) => {
            Err(StoreError::Damaged { dir: dir.to_owned(), last_good: report.last_good, damage })
        }
        None => Ok(report),
    }
}

/// Copies the good rows at the start of the journal in `dir`, and the good snapshots of them,
/// to a new directory `out`.
///
/// # Errors
/// If `dir` is in use, `out` is not new, a disk fails, or there is not one good row: an empty
/// journal would pass for that of a new plant, so `out` is then not made.
pub fn salvage(dir: &Path, out: &Path) -> Result<Salvaged, StoreError> {
    let path = dir.join(JOURNAL_FILE);
    if !path.try_exists().map_err(|source| StoreError::io(&path, source))? {
        return Err(StoreError::NoJournal { dir: dir.to_owned() });
    }
    // Its owner would go on writing what is copied here file by file.
    let still = lock::hold_still(dir)?;
    files::own_new_dir(out)?;
    let copy = out.join("damaged");
    files::own_new_dir(&copy)?;
    // A copy is read, because SQLite brings files up to date that a crash has left.
    copy_files(dir, &copy)?;
    drop(still);
    let salvaged = copy_good(&copy, out);
    let scrap = if salvaged.is_ok() { &*copy } else { out };
    fs::remove_dir_all(scrap).map_err(|source| StoreError::io(scrap, source))?;
    salvaged.map_err(|error| match error {
        StoreError::NothingGood { damage, .. } => {
            StoreError::NothingGood { dir: dir.to_owned(), damage }
        }
        other => other,
    })
}

fn copy_pages(from: &Connection, path: &Path) -> rusqlite::Result<()> {
    let mut to = Connection::open(path)?;
    {
        let copy = Backup::new(from, &mut to)?;
        // All at once: the reader's transaction holds the journal still.
        let step = copy.step(-1)?;
        if step != StepResult::Done {
            let busy = ffi::Error::new(ffi::SQLITE_BUSY);
            return Err(rusqlite::Error::SqliteFailure(busy, Some(format!("{step:?}"))));
        }
    }
    to.close().map_err(|(_, source)| source)
}

fn copy_files(dir: &Path, copy: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal"] {
        let name = format!("{JOURNAL_FILE}{suffix}");
        match fs::copy(dir.join(&name), copy.join(&name)) {
            Ok(_) => (),
            Err(it) if it.kind() == io::ErrorKind::NotFound && suffix == "-wal" => (),
            Err(source) => return Err(StoreError::io(&dir.join(&name), source)),
        }
    }
    Ok(())
}

fn copy_good(from: &Path, out: &Path) -> Result<Salvaged, StoreError> {
    let reader = Reader::open(from)?;
    let report = reader.check(Extent::Whole)?.report;
    if report.last_good == 0
        && let Some(damage) = report.damage
    {
        return Err(StoreError::NothingGood { dir: from.to_owned(), damage });
    }
    let (mut store, opened) = Store::open(out)?;
    assert!(opened.last == 0, "a new directory holds no rows");
    let mut batch = Vec::with_capacity(ROWS_PER_COPY);
    for next in reader.walk() {
        let Ok((row, _)) = next else {
            break;
        };
        if report.last_good < row.number {
            break;
        }
        batch.push(row);
        if batch.len() == ROWS_PER_COPY {
            store.append(&batch)?;
            batch.clear();
        }
    }
    store.append(&batch)?;
    let mut n_snapshots = 0;
    // Oldest first, as they were taken.
    for it in report.snapshots.iter().rev() {
        if it.fault.is_none() && it.number <= store.last() {
            match reader.snapshot(it.number) {
                Ok((snapshot, _)) => store.snapshot(&snapshot)?,
                Err(fault) => return Err(fault.told(from, report.last_good)),
            }
            n_snapshots += 1;
        }
    }
    let n_rows = store.last();
    assert!(n_rows == report.last_good, "{n_rows} of {} good rows", report.last_good);
    Ok(Salvaged { report, n_rows, n_snapshots })
}
