//! The newest plant time that somebody was told, so that a restart never begins before it.
//!
//! The journal has the moment of its last input, and the plant that of its last step; where nothing
//! happens for a while, what people are told runs ahead of both.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use selvedge_model::unit::Moment;

/// The file in the data directory.
const FILE: &str = "clock";

/// What was told, and the file that outlives the process.
#[derive(Debug)]
pub(super) struct Told {
    path: PathBuf,
    /// Open once something had to be kept.
    file: Option<File>,
    newest: Moment,
}

impl Told {
    /// What an earlier process has told; the first moment, if there was none or its file is lost.
    pub(super) fn of(data: &Path) -> Self {
        let path = data.join(FILE);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let newest = text.trim().parse().map_or(Moment::START, Moment::from_nanos);
        Self { path, file: None, newest }
    }

    /// The newest moment that was told.
    pub(super) fn newest(&self) -> Moment {
        self.newest
    }

    /// Keeps a moment that is about to be told, where nothing else does.  It has to outlive the
    /// process and not the machine, so one small write in place is enough: this stands on the way
    /// of every answer.
    pub(super) fn keep(&mut self, now: Moment, journalled: Moment) {
        if now <= self.newest.max(journalled) {
            return;
        }
        self.newest = now;
        if let Err(error) = self.write(now) {
            tracing::debug!(%error, "the time that was told cannot be kept");
        }
    }

    fn write(&mut self, now: Moment) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                // Not cut first: whoever is killed before the write leaves what was there.
                let mut options = OpenOptions::new();
                let file = options.create(true).write(true).truncate(false).open(&self.path)?;
                self.file.insert(file)
            }
        };
        // As long as every other, so that nothing of an earlier one is left behind it.
        file.write_all_at(format!("{:020}\n", now.as_nanos()).as_bytes(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_known_to_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let at = Moment::from_nanos;
        let mut told = Told::of(dir.path());
        assert_eq!(told.newest(), Moment::START);
        told.keep(at(7), at(7));
        assert!(!dir.path().join(FILE).exists(), "the journal knows it");
        told.keep(at(9), at(7));
        told.keep(at(8), at(7));
        assert_eq!(Told::of(dir.path()).newest(), at(9));
        fs::write(dir.path().join(FILE), "half a numb").unwrap();
        assert_eq!(Told::of(dir.path()).newest(), Moment::START);
    }
}
