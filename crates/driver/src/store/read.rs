//! Reading and checking a journal, which changes nothing in it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rusqlite::types::{FromSqlError, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use crate::limits::{
    BUSY_WAIT_MAX, PAGE_FINDINGS_MAX, READ_BYTES_MAX, ROWS_PER_READ, ROWS_WALKED_AT_OPEN_MAX,
};
use crate::store::chain::{Chain, Link, digest};
use crate::store::{
    Damage, FORMAT, JOURNAL_FILE, Opened, Row, Snapshot, SnapshotFault, StoreError, TABLES,
    WAL_FILE, wal,
};

/// What a check of a journal found.
#[derive(Debug)]
#[must_use]
pub struct Report {
    /// The last row up to which the journal is whole.
    pub last_good: u64,
    /// That row's checksum.
    pub chain: Chain,
    /// The last row that was acknowledged, if its record can be read.
    pub head: Option<u64>,
    /// The chain was walked from the row after this one: 0 if it was walked whole.
    pub checked_after: u64,
    /// What is wrong behind `last_good`.
    pub damage: Option<Damage>,
    /// The snapshots, newest first.
    pub snapshots: Vec<SnapshotReport>,
    /// What `SQLite` finds wrong with the pages of the file; asked for by `verify` alone.
    pub pages: Vec<String>,
}

impl Report {
    /// Whether nothing at all is wrong.
    pub fn is_sound(&self) -> bool {
        self.damage.is_none()
            && self.pages.is_empty()
            && self.snapshots.iter().all(|it| it.fault.is_none())
    }
}

/// One snapshot in a [`Report`].
#[derive(Debug)]
pub struct SnapshotReport {
    /// The last row that it contains.
    pub number: u64,
    /// Why it cannot be used.
    pub fault: Option<SnapshotFault>,
}

/// Rows of a journal in order, each checked as it is read.
#[derive(Debug)]
pub struct Rows<'a> {
    walk: Walk<'a>,
    dir: &'a Path,
}

impl<'a> Rows<'a> {
    pub(crate) fn after(
        db: &'a Connection,
        dir: &'a Path,
        number: u64,
    ) -> Result<Self, StoreError> {
        let from = link_of(db, number).map_err(|it| it.told(dir, number.saturating_sub(1)))?;
        let from = from.ok_or(StoreError::NoSuchRow { number })?;
        Ok(Rows { walk: Walk::new(db, from), dir })
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let last_good = self.walk.at.number;
        let next = self.walk.next()?;
        Some(next.map(|(row, _)| row).map_err(|it| it.told(self.dir, last_good)))
    }
}

/// Where and how far back [`newest`] looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Only rows before this one.
    pub before: u64,
    /// How many rows to look through at most.
    pub n_rows_max: u64,
    /// How many to return at most.
    pub n_max: usize,
    /// Only rows whose body has one of these in it.
    pub texts: [&'a str; 3],
}

/// What `pick` makes of the rows of the journal in `dir`, newest first, and the row before which
/// older ones may follow.  Its owner may live; the chain is not walked.
///
/// # Errors
/// If there is no journal, or it cannot be read.
pub fn newest<T>(
    dir: &Path,
    page: Page<'_>,
    mut pick: impl FnMut(Row) -> Option<T>,
) -> Result<(Vec<T>, Option<u64>), StoreError> {
    let reader = Reader::open(dir)?;
    let mut read = || -> rusqlite::Result<(Vec<T>, Option<u64>)> {
        let db = reader.connection();
        let last = db.query_row("SELECT max(number) FROM journal", [], |it| it.get(0))?;
        let before = page.before.min(Option::<u64>::unwrap_or(last, 0).saturating_add(1));
        let from = before.saturating_sub(page.n_rows_max).max(1);
        let mut query = db.prepare(
            "SELECT number, at_ns, body FROM journal WHERE number >= ?1 AND number < ?2
             AND (instr(body, ?3) OR instr(body, ?4) OR instr(body, ?5))
             ORDER BY number DESC",
        )?;
        let [first, second, third] = page.texts;
        let mut rows = query.query(rusqlite::params![from, before, first, second, third])?;
        let mut picked = Vec::new();
        while let Some(row) = rows.next()? {
            let row = Row { number: row.get(0)?, at_ns: row.get(1)?, body: row.get(2)? };
            let number = row.number;
            picked.extend(pick(row));
            if page.n_max <= picked.len() {
                return Ok((picked, (1 < number).then_some(number)));
            }
        }
        Ok((picked, (1 < from).then_some(from)))
    };
    read().map_err(|source| Fault::of(0, source).told(dir, 0))
}

/// How much of the chain a check walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// All of it up to so many rows, else what follows the newest good snapshot.
    Bounded {
        /// How many.
        n_rows_max: u64,
    },
}

impl Extent {
    /// What a start walks.
    pub(crate) const AT_OPEN: Extent = Extent::Bounded { n_rows_max: ROWS_WALKED_AT_OPEN_MAX };
}

/// What a check found, and what it came by.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) report: Report,
    pub(crate) snapshot: Option<Snapshot>,
}

impl Checked {
    /// What a start needs, if the rows are undamaged; snapshots may be.
    pub(crate) fn into_opened(self, dir: &Path) -> Result<(Opened, Link), StoreError> {
        let Report { last_good, chain, checked_after, damage, snapshots, .. } = self.report;
        if let Some(damage) = damage {
            return Err(StoreError::Damaged { dir: dir.to_owned(), last_good, damage });
        }
        let set_aside = snapshots.into_iter().filter_map(|it| it.fault).collect();
        let opened = Opened { snapshot: self.snapshot, set_aside, last: last_good, checked_after };
        Ok((opened, Link { number: last_good, chain }))
    }
}

/// One state of a journal, held still while it is read, whether or not its owner lives.
#[derive(Debug)]
pub(crate) struct Reader {
    db: Connection,
    dir: PathBuf,
}

impl Reader {
    /// Opens the journal of `dir` for reading alone.
    pub(crate) fn open(dir: &Path) -> Result<Reader, StoreError> {
        let path = dir.join(JOURNAL_FILE);
        if !path.try_exists().map_err(|source| StoreError::io(&path, source))? {
            return Err(StoreError::NoJournal { dir: dir.to_owned() });
        }
        let sqlite_error = |source| StoreError::sqlite("open", &path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&path, flags).map_err(sqlite_error)?;
        db.busy_timeout(BUSY_WAIT_MAX).map_err(sqlite_error)?;
        // `writable_schema` writes nothing here: with it SQLite reads as far as it can in a file
        // that is shorter than its header says, where it otherwise reads not even the first page.
        db.execute_batch(
            "PRAGMA writable_schema=ON; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF;
             BEGIN;",
        )
        .map_err(sqlite_error)?;
        Ok(Reader { db, dir: dir.to_owned() })
    }

    /// The connection, to copy from.
    pub(crate) fn connection(&self) -> &Connection {
        &self.db
    }

    /// Walks the chain and looks at the snapshots.
    ///
    /// # Errors
    /// If the format is newer, or the disk fails for a reason other than damage, which is part
    /// of the report.
    pub(crate) fn check(&self, extent: Extent) -> Result<Checked, StoreError> {
        let mut damage = self.check_format()?.or(self.check_tables()?).or(self.check_log()?);
        let head = self.damage_apart(&mut damage, Damage::NoHead, self.head())?;
        let mut snapshot = None;
        let snapshots = self.check_snapshots(extent, &mut snapshot, &mut damage)?;

        let from = match (extent, &snapshot, head) {
            (Extent::Bounded { n_rows_max }, Some((_, under)), Some(head))
                if n_rows_max < head.number =>
            {
                *under
            }
            _ => Link::START,
        };
        let mut walk = Walk::new(&self.db, from);
        let broken = walk.by_ref().find_map(Result::err);
        let mut last = walk.at;
        match broken {
            // What is wrong with the rows says more than what is wrong with the records of them.
            Some(Fault::Damage(it)) => damage = Some(it),
            Some(it @ Fault::Sqlite(_)) => return Err(it.told(&self.dir, last.number)),
            None => {
                let end = head.and_then(|head| end_damage(last, head));
                if let Some((last_good, found)) = end {
                    let chain =
                        self.damage_apart(&mut None, Damage::NoHead, self.link(last_good))?;
                    last = chain.unwrap_or(Link::START);
                    damage = Some(found);
                }
            }
        }
        let report = Report {
            last_good: last.number,
            chain: last.chain,
            head: head.map(|it| it.number),
            checked_after: from.number,
            damage,
            snapshots,
            pages: Vec::new(),
        };
        Ok(Checked { report, snapshot: snapshot.map(|(it, _)| it) })
    }

    /// The rows from the first on, each with its checksum.
    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk::new(&self.db, Link::START)
    }

    /// The snapshot of row `number`, with the link of that row, if it is whole.
    pub(crate) fn snapshot(&self, number: u64) -> Result<(Snapshot, Link), Fault> {
        let fault = |source| Fault::of(number, source);
        let (snapshot, stored) = self
            .db
            .query_row(
                "SELECT at_ns, version, body, digest FROM snapshot WHERE number = ?1",
                [number],
                |it| {
                    let (at_ns, version, body) = (it.get(0)?, it.get(1)?, it.get(2)?);
                    Ok((Snapshot { number, at_ns, version, body }, it.get::<_, Vec<u8>>(3)?))
                },
            )
            .map_err(fault)?;
        match self.link(number)? {
            Some(under) if digest(&snapshot, under.chain)[..] == stored[..] => {
                Ok((snapshot, under))
            }
            Some(_) | None => Err(Fault::Damage(Damage::Changed { number })),
        }
    }

    /// What `SQLite` itself finds wrong with the file, a line each.
    pub(crate) fn check_pages(&self) -> Result<Vec<String>, StoreError> {
        let read = || {
            let mut query =
                self.db.prepare(&format!("PRAGMA integrity_check({PAGE_FINDINGS_MAX})"))?;
            let lines = query.query_map([], |it| it.get::<_, String>(0))?;
            lines.collect::<rusqlite::Result<Vec<String>>>()
        };
        match read().map_err(|source| Fault::of(0, source)) {
            Ok(mut lines) => {
                lines.retain(|it| it != "ok");
                Ok(lines)
            }
            Err(Fault::Damage(Damage::Unreadable { source, .. })) => Ok(vec![source.to_string()]),
            Err(it) => Err(it.told(&self.dir, 0)),
        }
    }

    /// Lets a journal of our format pass, and one whose format cannot be read.
    pub(crate) fn check_format(&self) -> Result<Option<Damage>, StoreError> {
        let mut damage = None;
        let found = self.damage_apart(&mut damage, Damage::NoFormat, self.meta("format"))?;
        match found.as_deref() {
            None => Ok(Some(Damage::NoFormat)),
            Some(FORMAT) => Ok(None),
            Some(found) => {
                let path = self.dir.join(JOURNAL_FILE);
                let newer = found.strip_prefix("selvedge-journal ");
                match newer.and_then(|it| it.parse::<u32>().ok()) {
                    Some(_) => Err(StoreError::Newer { path, found: found.to_owned() }),
                    None => Ok(Some(Damage::NoFormat)),
                }
            }
        }
    }

    /// The first table whose definition has changed, and with it perhaps the meaning of its rows.
    fn check_tables(&self) -> Result<Option<Damage>, StoreError> {
        for (table, expected) in TABLES {
            let sql = self
                .db
                .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [table], |it| it.get(0))
                .optional()
                .map_err(|source| Fault::of(0, source));
            let other = Damage::OtherTable { table };
            let mut damage = None;
            let found: Option<String> = self.damage_apart(&mut damage, other, sql)?;
            if found.is_none_or(|it| it != expected) {
                return Ok(Some(Damage::OtherTable { table }));
            }
        }
        Ok(None)
    }

    /// What lies lost in the write-ahead log.
    fn check_log(&self) -> Result<Option<Damage>, StoreError> {
        let path = self.dir.join(WAL_FILE);
        let find = || wal::find_damage(&path).map_err(|source| StoreError::io(&path, source));
        // An owner that lives may just be writing where we look, and then has written when we
        // look again; damage stays.
        let first = find()?;
        if first.is_none() || first != find()? {
            return Ok(None);
        }
        Ok(first.map(|frame| Damage::LogBroken { frame }))
    }

    fn check_snapshots(
        &self,
        extent: Extent,
        good: &mut Option<(Snapshot, Link)>,
        damage: &mut Option<Damage>,
    ) -> Result<Vec<SnapshotReport>, StoreError> {
        let mut reports = Vec::new();
        let numbers = match self.snapshot_numbers() {
            Ok(it) => it,
            Err(Fault::Damage(Damage::Unreadable { source, .. })) => {
                *damage = Some(Damage::NoSnapshots(source));
                Vec::new()
            }
            Err(it) => return Err(it.told(&self.dir, 0)),
        };
        for number in numbers {
            // A start needs one; only a whole check also reads the one behind it.
            if good.is_some() && extent != Extent::Whole {
                break;
            }
            let fault = match self.snapshot(number) {
                Ok(it) => {
                    good.get_or_insert(it);
                    None
                }
                Err(Fault::Damage(Damage::Unreadable { source, .. })) => {
                    Some(SnapshotFault::Unreadable { number, source })
                }
                Err(Fault::Damage(_)) => Some(SnapshotFault::Changed { number }),
                Err(it @ Fault::Sqlite(_)) => return Err(it.told(&self.dir, 0)),
            };
            reports.push(SnapshotReport { number, fault });
        }
        Ok(reports)
    }

    /// The rows that have snapshots, newest first.
    fn snapshot_numbers(&self) -> Result<Vec<u64>, Fault> {
        let read = || {
            let mut query = self.db.prepare("SELECT number FROM snapshot ORDER BY number DESC")?;
            query.query_map([], |it| it.get(0))?.collect::<rusqlite::Result<Vec<u64>>>()
        };
        read().map_err(|source| Fault::of(0, source))
    }

    /// The link that `meta` records as the last.
    fn head(&self) -> Result<Option<Link>, Fault> {
        let text = self.meta("head")?;
        Ok(text.and_then(|text| {
            let (number, chain) = text.split_once(' ')?;
            Some(Link { number: number.parse().ok()?, chain: Chain::from_hex(chain)? })
        }))
    }

    fn meta(&self, key: &str) -> Result<Option<String>, Fault> {
        let text = self
            .db
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |it| it.get(0))
            .optional();
        text.map_err(|source| Fault::of(0, source))
    }

    /// The link of row `number` as it is stored.
    fn link(&self, number: u64) -> Result<Option<Link>, Fault> {
        link_of(&self.db, number)
    }

    /// `read`, with damage put into `damage` as `what`, and nothing for it.
    fn damage_apart<T>(
        &self,
        damage: &mut Option<Damage>,
        what: Damage,
        read: Result<Option<T>, Fault>,
    ) -> Result<Option<T>, StoreError> {
        match read {
            Ok(Some(it)) => Ok(Some(it)),
            Ok(None) | Err(Fault::Damage(_)) => {
                damage.get_or_insert(what);
                Ok(None)
            }
            Err(it @ Fault::Sqlite(_)) => Err(it.told(&self.dir, 0)),
        }
    }
}

/// What stops a reading.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file is not what was written.
    Damage(Damage),
    /// The file cannot be read at the moment, or by us.
    Sqlite(rusqlite::Error),
}

impl Fault {
    /// What it means that `SQLite` fails behind row `after`.
    pub(crate) fn of(after: u64, source: rusqlite::Error) -> Fault {
        let passing = [
            ErrorCode::DatabaseBusy,
            ErrorCode::DatabaseLocked,
            ErrorCode::OutOfMemory,
            ErrorCode::CannotOpen,
            ErrorCode::PermissionDenied,
            ErrorCode::ReadOnly,
        ];
        match source.sqlite_error_code() {
            Some(code) if passing.contains(&code) => Fault::Sqlite(source),
            _ => Fault::Damage(Damage::Unreadable { after, source }),
        }
    }

    pub(crate) fn told(self, dir: &Path, last_good: u64) -> StoreError {
        match self {
            Fault::Damage(damage) => StoreError::Damaged { dir: dir.to_owned(), last_good, damage },
            Fault::Sqlite(source) => StoreError::sqlite("read", &dir.join(JOURNAL_FILE), source),
        }
    }
}

/// A walk along the chain, which ends at the end of the journal or at the first damage.
///
/// Rows are read some hundred at a time by number, so that a walk needs little memory and no
/// statement stays open; what it yields is in order and chained however the file's pages lie.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    db: &'a Connection,
    /// The last row that was yielded.
    pub(crate) at: Link,
    read: VecDeque<(Row, Chain)>,
    /// Nothing more comes once `read` is empty, but for this.
    stop: Option<Option<Fault>>,
}

impl<'a> Walk<'a> {
    fn new(db: &'a Connection, from: Link) -> Self {
        Walk { db, at: from, read: VecDeque::new(), stop: None }
    }

    fn fill(&mut self) -> rusqlite::Result<()> {
        let mut query = self.db.prepare_cached(
            "SELECT number, at_ns, body, chain FROM journal
             WHERE number > ?1 ORDER BY number LIMIT ?2",
        )?;
        let mut rows = query.query([self.at.number, ROWS_PER_READ])?;
        let mut n_bytes = 0;
        let mut number = self.at.number;
        while n_bytes < READ_BYTES_MAX {
            let Some(row) = rows.next()? else {
                break;
            };
            number += 1;
            match read_row(row, number) {
                Ok(it) => {
                    n_bytes += it.0.body.len();
                    self.read.push_back(it);
                }
                Err(damage) => {
                    self.stop = Some(Some(Fault::Damage(damage)));
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<(Row, Chain), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read.is_empty() && self.stop.is_none() {
            if let Err(source) = self.fill() {
                let after = self.at.number + self.read.len() as u64;
                self.stop = Some(Some(Fault::of(after, source)));
            } else if self.read.is_empty() {
                self.stop.get_or_insert(None);
            }
        }
        let Some((row, stored)) = self.read.pop_front() else {
            return self.stop.as_mut().and_then(Option::take).map(Err);
        };
        let link = self.at.then(&row);
        if link.chain != stored {
            self.read.clear();
            self.stop = Some(None);
            return Some(Err(Fault::Damage(Damage::Changed { number: row.number })));
        }
        self.at = link;
        Some(Ok((row, stored)))
    }
}

/// The row under the cursor, which must be row `number`.
fn read_row(row: &rusqlite::Row<'_>, number: u64) -> Result<(Row, Chain), Damage> {
    let read = || -> Result<(i64, i64, &str, [u8; 32]), FromSqlError> {
        let value = |column: usize| row.get_ref(column).unwrap_or(ValueRef::Null);
        let chain = value(3).as_blob()?;
        let chain = chain.try_into().map_err(|_| FromSqlError::InvalidType)?;
        Ok((value(0).as_i64()?, value(1).as_i64()?, value(2).as_str()?, chain))
    };
    let (found, at_ns, body, chain) =
        read().map_err(|it| Damage::NotARow { number, what: it.to_string() })?;
    let found = u64::try_from(found).unwrap_or(0);
    if found != number {
        return Err(Damage::Missing { number, found });
    }
    let Ok(at_ns) = u64::try_from(at_ns) else {
        return Err(Damage::NotARow { number, what: format!("its time is {at_ns} ns") });
    };
    Ok((Row { number, at_ns, body: body.to_owned() }, Chain(chain)))
}

/// The link of row `number` as it is stored.
fn link_of(db: &Connection, number: u64) -> Result<Option<Link>, Fault> {
    if number == 0 {
        return Ok(Some(Link::START));
    }
    let chain = db
        .query_row("SELECT chain FROM journal WHERE number = ?1", [number], |it| it.get(0))
        .optional()
        .map_err(|source| Fault::of(number - 1, source))?;
    Ok(chain.map(|it| Link { number, chain: Chain(it) }))
}

/// What is wrong where the rows end in `last` and the record says `head`, and the last good row.
fn end_damage(last: Link, head: Link) -> Option<(u64, Damage)> {
    if last.number < head.number {
        return Some((last.number, Damage::EndMissing { last: last.number, head: head.number }));
    }
    if head.number < last.number {
        return Some((head.number, Damage::NotRecorded { number: head.number + 1 }));
    }
    let number = last.number;
    (head != last).then(|| (number.saturating_sub(1), Damage::NotRecorded { number }))
}
