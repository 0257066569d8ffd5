//! What a simulated plant's process keeps on disk: its state, and every request since.
//!
//! ```text
//! DIR/plant/state       a line of JSON (format, epoch, plant files, digest), then the plant itself
//! DIR/plant/log.EPOCH   every request since, each with its length and checksum
//! ```
//! A request is in the log before it is carried out, and a plant does the same from the same state
//! and requests, so that what it answered is there again after a kill at any point.  The log is
//! not synced, as mirrors are not a file: a machine that loses power takes its simulated plant
//! back a moment, which the core finds out by reading the devices.  The state is synced and takes
//! the log's place when the log has grown; its epoch says which log follows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use selvedge_driver::files::{self, FILE_MODE};
use selvedge_driver::plant::Step;
use selvedge_model::unit::Moment;
use selvedge_sim::device::PlantError;

use crate::limits;

/// The state's file in the plant's folder.
pub(super) const STATE_FILE: &str = "state";

/// The format that is written.
const FORMAT: u32 = 2;

/// Length and checksum before each entry of a log.
const HEAD_BYTES: usize = 12;

/// Why what a plant keeps cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The system said no.
    #[error("cannot use {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// It is not as it was written.
    #[error("{path} is damaged: {what}; restore the data directory from a backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// It is whole, and no plant's state.
    #[error("{path} does not read; restore the data directory from a backup")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: PlantError,
    },
}

/// One request, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The line was cut and somebody has come again.
    Hello { plants: Vec<String>, now: Moment },
    /// A step.
    Step(Step),
}

/// What was kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) plants: Vec<String>,
    pub(super) plant: Vec<u8>,
    /// What followed.
    pub(super) entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    epoch: u64,
    plants: Vec<String>,
    /// SHA-256 of the plant that follows, in hexadecimal.
    digest: String,
}

/// The files of one plant, open for appending.
#[derive(Debug)]
pub(super) struct Keep {
    dir: PathBuf,
    epoch: u64,
    log: File,
    n_bytes: u64,
}

impl Keep {
    /// The files in `dir`, if there are any.
    ///
    /// # Errors
    /// [`KeepError`].
    pub(super) fn open(dir: &Path) -> Result<Option<(Self, Kept)>, KeepError> {
        let path = dir.join(STATE_FILE);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let (header, plant) = parse(&bytes).map_err(|what| damaged(&path, what))?;
        let log_path = log_path(dir, header.epoch);
        let Some(log_bytes) = read(&log_path)? else {
            return Err(damaged(&log_path, "it is not there".to_owned()));
        };
        let (entries, n_good) = entries(&log_bytes).map_err(|what| damaged(&log_path, what))?;
        let io_error = |source| KeepError::Io { path: log_path.clone(), source };
        let log = OpenOptions::new().append(true).open(&log_path).map_err(io_error)?;
        // A request that was cut off in the middle was never carried out.
        log.set_len(n_good).map_err(io_error)?;
        let keep = Self { dir: dir.to_owned(), epoch: header.epoch, log, n_bytes: n_good };
        keep.sweep();
        let kept = Kept { plants: header.plants, plant: plant.to_vec(), entries };
        Ok(Some((keep, kept)))
    }

    /// The files of a new plant in `dir`.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn create(dir: &Path, plants: &[String], plant: &[u8]) -> io::Result<Self> {
        let (epoch, log) = (1, create_log(dir, 1)?);
        write_state(dir, epoch, plants, plant)?;
        let keep = Self { dir: dir.to_owned(), epoch, log, n_bytes: 0 };
        keep.sweep();
        Ok(keep)
    }

    /// Keeps a request.
    ///
    /// # Errors
    /// If the system refuses; the log is then as it was.
    pub(super) fn push(&mut self, entry: &Entry) -> io::Result<()> {
        let body = serde_json::to_vec(entry).map_err(io::Error::other)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&checksum(&body));
        bytes.extend_from_slice(&body);
        if let Err(error) = self.log.write_all(&bytes) {
            // What is left of it would stand before the next one.
            self.log.set_len(self.n_bytes)?;
            return Err(error);
        }
        self.n_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Whether the log has grown enough to be folded.
    pub(super) fn is_long(&self) -> bool {
        limits::PLANT_LOG_BYTES_MAX <= self.n_bytes
    }

    /// Puts the state in the log's place.
    ///
    /// # Errors
    /// If the system refuses; the old state and log then still hold.
    pub(super) fn fold(&mut self, plants: &[String], plant: &[u8]) -> io::Result<()> {
        let epoch = self.epoch + 1;
        let log = create_log(&self.dir, epoch)?;
        write_state(&self.dir, epoch, plants, plant)?;
        (self.epoch, self.log, self.n_bytes) = (epoch, log, 0);
        self.sweep();
        Ok(())
    }

    /// Removes logs that no state refers to.
    fn sweep(&self) {
        let own = log_path(&self.dir, self.epoch);
        let Ok(files) = fs::read_dir(&self.dir) else { return };
        for path in files.filter_map(|it| Some(it.ok()?.path())) {
            let is_log =
                path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"log."));
            if is_log && path != own {
                // One that stays is in nobody's way.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Writes the state of a plant into `dir` as that of epoch 1, with an empty log.
///
/// # Errors
/// If the system refuses.
pub(super) fn copy(dir: &Path, plants: &[String], plant: &[u8]) -> io::Result<()> {
    files::own_dir(dir).map_err(io::Error::other)?;
    create_log(dir, 1)?;
    write_state(dir, 1, plants, plant)
}

fn write_state(dir: &Path, epoch: u64, plants: &[String], plant: &[u8]) -> io::Result<()> {
    let digest = hex(&Sha256::digest(plant));
    let header = Header { format: FORMAT, epoch, plants: plants.to_vec(), digest };
    let mut bytes = serde_json::to_vec(&header).map_err(io::Error::other)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(plant);
    files::write_atomically(&dir.join(STATE_FILE), &bytes, FILE_MODE)
}

fn create_log(dir: &Path, epoch: u64) -> io::Result<File> {
    let path = log_path(dir, epoch);
    let mut options = OpenOptions::new();
    // One of this epoch that is there already was made before its state, which never came.
    options.create(true).write(true).truncate(true).mode(FILE_MODE);
    options.open(&path)?.sync_all()?;
    OpenOptions::new().append(true).open(&path)
}

fn log_path(dir: &Path, epoch: u64) -> PathBuf {
    dir.join(format!("log.{epoch}"))
}

fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
    let end = bytes.iter().position(|it| *it == b'\n').ok_or("it has no first line")?;
    let (head, plant) = (&bytes[..end], &bytes[end + 1..]);
    let header: Header =
        serde_json::from_slice(head).map_err(|error| format!("its first line: {error}"))?;
    if header.format != FORMAT {
        return Err(format!("it has format {}, this program reads {FORMAT}", header.format));
    }
    if header.digest != hex(&Sha256::digest(plant)) {
        return Err("it is not what its first line says".to_owned());
    }
    Ok((header, plant))
}

/// All whole entries, and where the last one ends.
fn entries(bytes: &[u8]) -> Result<(Vec<Entry>, u64), String> {
    let (mut entries, mut at) = (Vec::new(), 0);
    while let Some(head) = bytes.get(at..at + HEAD_BYTES) {
        let (length, sum) = head.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes were split off"));
        let end = at + HEAD_BYTES + length as usize;
        let Some(body) = bytes.get(at + HEAD_BYTES..end) else { break };
        if checksum(body) != sum {
            // The last one may have been cut off; one in the middle was changed.
            if end == bytes.len() {
                break;
            }
            return Err(format!("the request at byte {at} is not as it was written"));
        }
        let entry = serde_json::from_slice(body)
            .map_err(|error| format!("the request at byte {at} does not read: {error}"))?;
        entries.push(entry);
        at = end;
    }
    Ok((entries, at as u64))
}

fn checksum(body: &[u8]) -> [u8; 8] {
    let digest = Sha256::digest(body);
    let mut sum = [0; 8];
    sum.copy_from_slice(&digest[..8]);
    sum
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, KeepError> {
    let io_error = |source| KeepError::Io { path: path.to_owned(), source };
    match fs::metadata(path) {
        Ok(meta) if limits::PLANT_STATE_BYTES_MAX < meta.len() => {
            let source = io::Error::new(io::ErrorKind::FileTooLarge, "larger than any plant");
            Err(io_error(source))
        }
        Ok(_) => fs::read(path).map(Some).map_err(io_error),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io_error(source)),
    }
}

fn damaged(path: &Path, what: String) -> KeepError {
    KeepError::Damaged { path: path.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(n: u64) -> Entry {
        let now = Moment::from_nanos(n);
        Entry::Step(Step { now, orders: Vec::new(), until: now })
    }

    /// A plant of three requests in a directory.
    fn filled() -> (tempfile::TempDir, Vec<Entry>) {
        let dir = tempfile::tempdir().unwrap();
        let entries: Vec<Entry> = (1..=3).map(step).collect();
        let mut keep = Keep::create(dir.path(), &["a plant".to_owned()], b"state").unwrap();
        entries.iter().for_each(|it| keep.push(it).unwrap());
        (dir, entries)
    }

    #[test]
    fn what_was_kept_is_read_back_and_a_cut_off_request_is_none() {
        let (dir, entries) = filled();
        let log = log_path(dir.path(), 1);
        let whole = fs::read(&log).unwrap();
        for cut in 0..whole.len() {
            fs::write(&log, &whole[..cut]).unwrap();
            let (mut keep, kept) = Keep::open(dir.path()).unwrap().unwrap();
            assert!(kept.entries.len() < 3 && entries.starts_with(&kept.entries), "{cut}");
            keep.push(&step(9)).unwrap();
            let (_, again) = Keep::open(dir.path()).unwrap().unwrap();
            assert_eq!(again.entries.last(), Some(&step(9)), "{cut}");
            assert_eq!(again.entries.len(), kept.entries.len() + 1);
        }
        fs::write(&log, &whole).unwrap();
        let (_, kept) = Keep::open(dir.path()).unwrap().unwrap();
        assert_eq!((kept.entries, kept.plant), (entries, b"state".to_vec()));
    }

    #[test]
    fn a_changed_byte_is_noticed_with_its_place_unless_it_is_in_the_last_request() {
        let (dir, _) = filled();
        for name in ["log.1", STATE_FILE] {
            let path = dir.path().join(name);
            let whole = fs::read(&path).unwrap();
            for at in [HEAD_BYTES + 2, whole.len() / 2] {
                let mut bytes = whole.clone();
                bytes[at] ^= 1;
                fs::write(&path, &bytes).unwrap();
                let refused = Keep::open(dir.path()).unwrap_err().to_string();
                assert!(refused.contains(name) && refused.contains("backup"), "{refused}");
            }
            fs::write(&path, &whole).unwrap();
        }
        fs::remove_file(dir.path().join("log.1")).unwrap();
        assert!(matches!(Keep::open(dir.path()), Err(KeepError::Damaged { .. })));
        fs::remove_file(dir.path().join(STATE_FILE)).unwrap();
        assert!(Keep::open(dir.path()).unwrap().is_none());
    }

    #[test]
    fn a_folded_log_is_gone_and_a_fold_that_was_cut_off_changes_nothing() {
        let (dir, entries) = filled();
        // The log of the next epoch was made, its state was not.
        create_log(dir.path(), 2).unwrap();
        let (mut keep, kept) = Keep::open(dir.path()).unwrap().unwrap();
        assert_eq!(kept.entries, entries);
        assert!(!log_path(dir.path(), 2).exists());
        keep.fold(&kept.plants, b"later").unwrap();
        keep.push(&step(4)).unwrap();
        assert!(!log_path(dir.path(), 1).exists());
        let (_, kept) = Keep::open(dir.path()).unwrap().unwrap();
        assert_eq!((kept.plant, kept.entries), (b"later".to_vec(), vec![step(4)]));
    }
}
