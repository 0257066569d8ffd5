//! Accounts of the machine that tasks run under, so that what a person submits reads and ends what
//! that person may, and not what the server may.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, User, initgroups, setgid, setuid};

use crate::files::{self, SHARED_MODE};

/// An account that a task can run under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// As the machine knows it.
    pub name: String,
    /// Where its files are.
    pub home: PathBuf,
    /// What it works with.
    pub shell: PathBuf,
    uid: Uid,
    gid: Gid,
}

/// Why nothing runs under an account.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The machine does not know it.
    #[error("this machine has no account {name:?}; make it (adduser), or name another")]
    Unknown {
        /// As asked for.
        name: String,
    },
    /// It may do everything.
    #[error("{name} is the machine's superuser, and no task runs as that; name another account")]
    Superuser {
        /// As asked for.
        name: String,
    },
    /// Only the superuser starts processes of others.
    #[error(
        "tasks run under {name} only if the server is started by root; this one runs as user {uid}"
    )]
    NotRoot {
        /// As asked for.
        name: String,
        /// Who the server is.
        uid: u32,
    },
    /// What is handed to its tasks lies where it cannot go.
    #[error(
        "the account {name} cannot pass through {dir}, and what its tasks are handed lies below; \
         let others pass (chmod o+x {dir}), or keep the data elsewhere"
    )]
    Shut {
        /// As asked for.
        name: String,
        /// The directory that is closed to it.
        dir: PathBuf,
    },
    /// The system said no.
    #[error("cannot {what} the account {name}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The account.
        name: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

impl Account {
    /// The account called `name`, if this process can start tasks under it.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn of(name: &str) -> Result<Self, AccountError> {
        let named = || name.to_owned();
        let found = User::from_name(name).map_err(|source| AccountError::Io {
            what: "look up",
            name: named(),
            source: source.into(),
        })?;
        let User { uid, gid, dir: home, shell, .. } =
            found.ok_or_else(|| AccountError::Unknown { name: named() })?;
        if uid.is_root() {
            return Err(AccountError::Superuser { name: named() });
        }
        if !Uid::effective().is_root() {
            return Err(AccountError::NotRoot { name: named(), uid: Uid::effective().as_raw() });
        }
        Ok(Self { name: named(), home, shell, uid, gid })
    }

    /// Sees to it that the account gets as far as the data directory `data`, by the permission bits
    /// of those above it.
    ///
    /// # Errors
    /// [`AccountError::Shut`].
    pub fn reaches(&self, data: &Path) -> Result<(), AccountError> {
        // One that cannot be looked at is the owner's of the data directory to tell of.
        let Ok(data) = data.canonicalize() else { return Ok(()) };
        let may_pass = |dir: &&Path| {
            fs::metadata(dir).is_ok_and(|it| {
                let bits = if it.uid() == self.uid.as_raw() {
                    0o100
                } else if it.gid() == self.gid.as_raw() {
                    0o010
                } else {
                    0o001
                };
                it.mode() & bits != 0
            })
        };
        match data.ancestors().skip(1).find(|it| !may_pass(it)) {
            None => Ok(()),
            Some(dir) => Err(AccountError::Shut { name: self.name.clone(), dir: dir.to_owned() }),
        }
    }

    /// Puts `bytes` at `path` whole, for this process to write and the account's group to read.
    ///
    /// # Errors
    /// The system's; the old file then stands as it was.
    pub fn write_shared(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".shared");
        // Nobody meets the file before its group is right.
        let scratch = path.with_file_name(name);
        files::write_atomically(&scratch, bytes, SHARED_MODE)?;
        chown(&scratch, None, Some(self.gid.as_raw()))?;
        fs::rename(&scratch, path)
    }

    /// Gives `path` to the account.
    ///
    /// # Errors
    /// The system's.
    pub fn give(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
    }

    /// Turns this process into one of the account's for good, with all of its groups.
    ///
    /// # Errors
    /// [`AccountError::Io`]; the process may then be half another's, and must end.
    pub(crate) fn assume(&self) -> Result<(), AccountError> {
        let failed = |source: io::Error| AccountError::Io {
            what: "become",
            name: self.name.clone(),
            source,
        };
        let name = CString::new(self.name.as_str()).map_err(|it| failed(it.into()))?;
        // The groups first: whoever is no longer root cannot change them.
        initgroups(&name, self.gid).map_err(|it| failed(it.into()))?;
        setgid(self.gid).map_err(|it| failed(it.into()))?;
        setuid(self.uid).map_err(|it| failed(it.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_superuser_and_nobody_known_are_no_accounts_for_tasks() {
        let refused = |name: &str| Account::of(name).unwrap_err().to_string();
        assert!(refused("root").contains("superuser"));
        assert!(refused("no-such-account").contains("no account"));
        assert!(refused("a\0b").contains("a\\0b"));
    }

    #[test]
    fn a_directory_that_others_cannot_pass_is_named() {
        // Somebody who owns nothing and is in no group here.
        let (uid, gid) = (Uid::from_raw(u32::MAX - 7), Gid::from_raw(u32::MAX - 7));
        let path = || PathBuf::from("/");
        let account = Account { name: "ada".to_owned(), home: path(), shell: path(), uid, gid };
        let dir = files::temp_dir();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        let refused = account.reaches(&data).unwrap_err().to_string();
        assert!(refused.contains(&format!("chmod o+x {}", dir.path().display())), "{refused}");
        files::pass_dir(dir.path()).unwrap();
        account.reaches(&data).unwrap();
    }
}
