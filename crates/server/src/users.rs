//! People and programs with tokens of their own, and what each may do.
//!
//! They stand in `users.json` of the data directory (mode 0600) by the digests of their tokens: a
//! token is told once, to whoever made it.  It is 256 random bits, so that a plain digest of it
//! cannot be turned back.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use selvedge_driver::files;

use crate::limits;
use crate::secret::{self, Digest};

/// The name of the users' file in a data directory.
pub const USERS_FILE: &str = "users.json";

/// The format that this version writes.
const FORMAT: u32 = 1;

/// What somebody may do; each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look at everything.
    Viewer,
    /// Submit jobs, and change those of one's own.
    User,
    /// Everything.
    Operator,
}

impl Role {
    /// All of them, from the least to the most.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::User, Role::Operator];

    /// As people write it.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::User => "user",
            Role::Operator => "operator",
        }
    }

    /// What stands before its word.
    pub(crate) const fn article(self) -> &'static str {
        match self {
            Role::Viewer | Role::User => "a",
            Role::Operator => "an",
        }
    }

    /// What it may do, after "who may".
    pub(crate) const fn may(self) -> &'static str {
        match self {
            Role::Viewer => "look, and change nothing",
            Role::User => "submit jobs and change their own",
            Role::Operator => "do everything",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// Their name; none for whoever holds the data directory's own token.
    pub(crate) name: Option<String>,
    /// What they may do.
    pub(crate) role: Role,
    /// The machine's account that their commands run under, if they have one of their own.
    pub(crate) account: Option<String>,
}

impl Who {
    /// Whoever holds the data directory's own token.
    pub(crate) const KEEPER: Who = Who { name: None, role: Role::Operator, account: None };

    /// What errors call them.
    pub(crate) fn called(&self) -> &str {
        self.name.as_deref().unwrap_or("whoever holds the server's own token")
    }
}

/// One user as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The digest of the token.
    #[serde(with = "as_hex")]
    pub(crate) token: Digest,
    /// When the token was made, in seconds of the Unix clock.
    pub(crate) since: u64,
    /// The machine's account that its commands run under, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
}

/// Why a user is not added, changed or read.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// Its name cannot be one.
    #[error(
        "{name:?} cannot be a user's name; write 1 to {} of a-z, A-Z, 0-9 and . _ - @, the first a \
         letter or digit, and not `operator`",
        limits::USER_NAME_MAX
    )]
    Name {
        /// As asked for.
        name: String,
    },
    /// There is one already.
    #[error("there is a user {name} already")]
    Known {
        /// Who.
        name: String,
    },
    /// There is none.
    #[error("there is no user {name}")]
    Unknown {
        /// Who.
        name: String,
    },
    /// There are as many as may be.
    #[error("there are {} users, and no more may be", limits::USERS_MAX)]
    TooMany,
    /// The file is no list of users.
    #[error("{path} is no list of users")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A later version wrote the file.
    #[error("{path} has format {format}, which this version does not read")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The file cannot be read or written, or the system has no randomness.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: u32,
    users: Vec<User>,
}

/// All users of a data directory.
///
/// Invariant: what is in memory is in the file.
#[derive(Debug)]
pub(crate) struct Users {
    path: PathBuf,
    list: RwLock<Vec<User>>,
}

impl Users {
    /// The users of the data directory `data`; nobody where it has no list.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub(crate) fn of(data: &Path) -> Result<Self, UserError> {
        let path = data.join(USERS_FILE);
        let users = match std::fs::read(&path) {
            Ok(bytes) => {
                let kept: Kept = serde_json::from_slice(&bytes)
                    .map_err(|source| UserError::Format { path: path.clone(), source })?;
                if kept.format != FORMAT {
                    return Err(UserError::Newer { path, format: kept.format });
                }
                kept.users
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(UserError::File { path, source }),
        };
        Ok(Self { path, list: RwLock::new(users) })
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<User> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first of whom `is_it` holds.
    pub(crate) fn find(&self, is_it: impl Fn(&User) -> bool) -> Option<User> {
        let users = self.list.read().unwrap_or_else(PoisonError::into_inner);
        users.iter().find(|it| is_it(it)).cloned()
    }

    /// Whether `name` may be added.
    ///
    /// # Errors
    /// [`UserError::Name`], [`UserError::Known`], [`UserError::TooMany`].
    pub(crate) fn may_add(&self, name: &str) -> Result<(), UserError> {
        check_name(name)?;
        let users = self.list.read().unwrap_or_else(PoisonError::into_inner);
        refuse_known(&users, name)
    }

    /// Adds a user, and returns the token, which is kept nowhere.
    ///
    /// # Errors
    /// As [`Users::may_add`], and if the list cannot be written.
    pub(crate) fn add(
        &self,
        name: &str,
        role: Role,
        account: Option<String>,
    ) -> Result<String, UserError> {
        check_name(name)?;
        let (token, user) = Self::draw(name, role, account)?;
        self.change(|users| {
            refuse_known(users, name)?;
            users.push(user);
            users.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(())
        })?;
        Ok(token)
    }

    /// A new token for a user, in place of the old one.
    ///
    /// # Errors
    /// If there is no such user, or the list cannot be written.
    pub(crate) fn renew(&self, name: &str) -> Result<(Role, String), UserError> {
        let unknown = || UserError::Unknown { name: name.to_owned() };
        let User { role, account, .. } = self.find(|it| it.name == name).ok_or_else(unknown)?;
        let (token, user) = Self::draw(name, role, account)?;
        self.change(|users| {
            let known = users.iter_mut().find(|it| it.name == name).ok_or_else(unknown)?;
            *known = user;
            Ok(())
        })?;
        Ok((role, token))
    }

    /// Forgets a user; the token opens nothing from then on.
    ///
    /// # Errors
    /// If there is no such user, or the list cannot be written.
    pub(crate) fn remove(&self, name: &str) -> Result<(), UserError> {
        self.change(|users| {
            let n_before = users.len();
            users.retain(|it| it.name != name);
            if users.len() == n_before {
                return Err(UserError::Unknown { name: name.to_owned() });
            }
            Ok(())
        })
    }

    fn draw(name: &str, role: Role, account: Option<String>) -> Result<(String, User), UserError> {
        let token = secret::draw()
            .map_err(|source| UserError::File { path: PathBuf::from("/dev/urandom"), source })?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let token_digest = secret::digest(&token);
        let user = User { name: name.to_owned(), role, token: token_digest, since, account };
        Ok((token, user))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<User>) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let mut users = list.clone();
        change(&mut users)?;
        let kept = Kept { format: FORMAT, users };
        let mut text =
            serde_json::to_vec_pretty(&kept).expect("names and digests have a JSON form");
        text.push(b'\n');
        files::write_atomically(&self.path, &text, files::FILE_MODE)
            .map_err(|source| UserError::File { path: self.path.clone(), source })?;
        *list = kept.users;
        Ok(())
    }
}

fn refuse_known(users: &[User], name: &str) -> Result<(), UserError> {
    if users.iter().any(|it| it.name == name) {
        return Err(UserError::Known { name: name.to_owned() });
    }
    if limits::USERS_MAX <= users.len() {
        return Err(UserError::TooMany);
    }
    Ok(())
}

/// A name that a header, a file and a shell take as it is, and that nobody else goes by.
fn check_name(name: &str) -> Result<(), UserError> {
    let fits = (1..=limits::USER_NAME_MAX).contains(&name.len())
        && name.starts_with(|it: char| it.is_ascii_alphanumeric())
        && name.chars().all(|it| it.is_ascii_alphanumeric() || "._-@".contains(it))
        && !RESERVED.contains(&name);
    if fits { Ok(()) } else { Err(UserError::Name { name: name.to_owned() }) }
}

/// Who asks where nobody says it, and the crew of a simulated plant.
const RESERVED: [&str; 2] = ["operator", "crew"];

mod as_hex {
    use serde::de::{Deserialize as _, Deserializer, Error as _};
    use serde::ser::Serializer;

    use crate::secret::{Digest, hex};

    pub(super) fn serialize<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(digest))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || D::Error::custom("a token's digest is 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut digest = Digest::default();
        for (byte, idx) in digest.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[idx..idx + 2], 16).map_err(|_| wrong())?;
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn users_are_kept_by_the_digests_of_their_tokens_in_a_closed_file() {
        let dir = tempfile::tempdir().unwrap();
        let users = Users::of(dir.path()).unwrap();
        let token = users.add("ada", Role::User, None).unwrap();
        users.add("bo@example.org", Role::Viewer, None).unwrap();
        let path = dir.path().join(USERS_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && text.contains(&secret::hex(&secret::digest(&token))));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Users::of(dir.path()).unwrap();
        assert_eq!(again.all(), users.all());
        let (role, other) = again.renew("ada").unwrap();
        assert_eq!(role, Role::User);
        assert_ne!(other, token);
        again.remove("ada").unwrap();
        assert!(matches!(again.remove("ada"), Err(UserError::Unknown { .. })));
        assert_eq!(Users::of(dir.path()).unwrap().all().len(), 1);
    }

    #[test]
    fn names_that_cannot_be_told_apart_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let users = Users::of(dir.path()).unwrap();
        for name in ["", "operator", "crew", "a b", "<b>", "-x", "a\n", "训", &"x".repeat(65)] {
            assert!(
                matches!(users.add(name, Role::User, None), Err(UserError::Name { .. })),
                "{name:?}"
            );
        }
        users.add("ada", Role::User, None).unwrap();
        assert!(matches!(users.add("ada", Role::Viewer, None), Err(UserError::Known { .. })));
        assert_eq!(users.all()[0].role, Role::User);
    }

    #[test]
    fn a_list_that_does_not_read_is_not_taken_for_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(USERS_FILE);
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(Users::of(dir.path()), Err(UserError::Format { .. })));
        std::fs::write(&path, r#"{"format": 2, "users": []}"#).unwrap();
        assert!(matches!(Users::of(dir.path()), Err(UserError::Newer { format: 2, .. })));
        let short = r#"{"format":1,"users":[{"name":"a","role":"user","token":"ab","since":0}]}"#;
        std::fs::write(&path, short).unwrap();
        assert!(Users::of(dir.path()).unwrap_err().to_string().contains("users.json"));
    }
}
