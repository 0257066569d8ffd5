//! One data directory, one owner.
//!
//! The owner holds an exclusive lock of the system on `DIR/lock` and has written its process
//! number into it.  The system lets go of the lock when the process ends, however it ends, so
//! nothing stale is ever left to clean up; the number is for people.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use crate::files::{self, DirError, FILE_MODE};
use crate::limits;
use crate::process::Process;

/// The name of the lock file in a data directory.
pub const LOCK_FILE: &str = "lock";

/// How often a lock that a dead owner seems to hold is tried again.
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Why a data directory could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The directory itself will not do.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Another process owns it.
    #[error("{dir} is in use by {}; stop it, or name another data directory", holder(*.pid))]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The owner, unless it has not yet said who it is.
        pid: Option<u32>,
    },
    /// The system said no.
    #[error("cannot lock {path}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
}

/// The ownership of one data directory; dropping it, or dying, gives it back.
#[derive(Debug)]
pub struct DirLock {
    file: File,
}

impl DirLock {
    /// Takes `dir`, which is made if it is not there.
    ///
    /// # Errors
    /// If another process, or another place in this one, owns it, or it cannot be made.
    #[allow(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
    pub fn take(dir: &Path) -> Result<DirLock, LockError> {
        files::own_dir(dir)?;
        let path = dir.join(LOCK_FILE);
        let io_error = |source| LockError::Io { path: path.clone(), source };
        // Not truncated on opening: until the lock is ours the number in it is another's.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut file = options.open(&path).map_err(io_error)?;
        let asked = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(io_error(source)),
                Err(TryLockError::WouldBlock) => (),
            }
            let pid = read_pid(&mut file).map_err(io_error)?;
            // An owner that was killed as it started a child is survived, for a moment, by the
            // child's copy of the open file.
            let is_dead = pid.is_some_and(|it| Process::of(it).is_none());
            if !is_dead || limits::LOCK_WAIT_MAX < asked.elapsed() {
                return Err(LockError::Held { dir: dir.to_owned(), pid });
            }
            thread::sleep(LOCK_POLL);
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("{}\n", process::id()).as_bytes()))
            .map_err(io_error)?;
        Ok(DirLock { file })
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // A number that names nobody any longer would only mislead.
        let _ = self.file.set_len(0);
        // Closing is not enough: a child that was just forked holds the open file until it runs
        // its own program.  Should this fail, closing does it a moment later.
        let _ = self.file.unlock();
    }
}

/// Keeps `dir` without an owner until the result is dropped, and changes nothing in it.
///
/// Nothing is held where there is no lock file, as in a copy on a medium that cannot be written.
///
/// # Errors
/// If another process, or another place in this one, owns `dir`.
pub fn hold_still(dir: &Path) -> Result<Option<File>, LockError> {
    let path = dir.join(LOCK_FILE);
    let mut file = match File::open(&path) {
        Ok(it) => it,
        Err(it) if it.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LockError::Io { path, source }),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let pid = read_pid(&mut file).map_err(|source| LockError::Io { path, source })?;
            Err(LockError::Held { dir: dir.to_owned(), pid })
        }
        Err(TryLockError::Error(source)) => Err(LockError::Io { path, source }),
    }
}

/// The owner's number; none while it has not written it.
fn read_pid(file: &mut File) -> io::Result<Option<u32>> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(32).read_to_end(&mut text)?;
    Ok(str::from_utf8(&text).ok().and_then(|it| it.trim().parse().ok()))
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_second_taker_is_told_who_holds_it() {
        let dir = crate::files::temp_dir();
        let first = DirLock::take(dir.path()).unwrap();
        let refused = DirLock::take(dir.path()).unwrap_err();
        assert!(matches!(refused, LockError::Held { pid: Some(it), .. } if it == process::id()));
        assert!(refused.to_string().contains(&format!("in use by process {}", process::id())));
        drop(first);
        assert_eq!(fs::read(dir.path().join(LOCK_FILE)).unwrap(), b"");
        DirLock::take(dir.path()).unwrap();
    }

    #[test]
    fn a_number_left_by_a_dead_owner_holds_nobody_back() {
        let dir = crate::files::temp_dir();
        fs::write(dir.path().join(LOCK_FILE), "4194304999 and more\n").unwrap();
        let lock = DirLock::take(dir.path()).unwrap();
        let text = fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap();
        assert_eq!(text, format!("{}\n", process::id()));
        drop(lock);
    }

    #[test]
    fn a_lock_that_a_dead_owner_still_holds_is_waited_for() {
        let dir = crate::files::temp_dir();
        let mut child = process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let held = File::create(dir.path().join(LOCK_FILE)).unwrap();
        held.try_lock().unwrap();
        (&held).write_all(format!("{}\n", child.id()).as_bytes()).unwrap();
        let holder = thread::spawn(move || {
            #[allow(clippy::disallowed_methods, reason = "the lock is let go of in real time")]
            thread::sleep(Duration::from_millis(100));
            drop(held);
        });
        let lock = DirLock::take(dir.path()).unwrap();
        let text = fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap();
        assert_eq!(text, format!("{}\n", process::id()));
        drop(lock);
        holder.join().unwrap();
    }

    #[test]
    fn a_lock_file_that_cannot_be_one_is_named() {
        let dir = crate::files::temp_dir();
        fs::create_dir(dir.path().join(LOCK_FILE)).unwrap();
        let refused = DirLock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.starts_with("cannot lock ") && refused.ends_with("/lock"), "{refused}");
    }
}
