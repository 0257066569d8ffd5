//! The token, the cookie and the one-use keys.
//!
//! The token is made once per data directory and lies there with mode 0600; whoever can read it
//! may do everything.  Others have tokens of their own ([`crate::users`]).  A cookie of the
//! dashboard is a digest of the token and of whose it is: it outlives a restart, ends with the
//! user's token, and gives none away.  A key opens the dashboard once and is then worth nothing.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use selvedge_driver::files;

use crate::limits;
use crate::users::{User, UserError, Users, Who};

/// The name of the token's file in a data directory.
pub const TOKEN_FILE: &str = "token";

/// Bytes of a token or key before they are written in hexadecimal.
const SECRET_BYTES: usize = 32;

/// What opens the server.
#[derive(Debug)]
pub(crate) struct Secrets {
    token: Digest,
    cookie: String,
    users: Users,
    /// Those that have not been used, with whom each lets in.
    keys: Mutex<VecDeque<(Digest, Who)>>,
}

/// Two of these are compared, not two secrets: how long that takes says nothing about a secret.
pub(crate) type Digest = [u8; 32];

impl Secrets {
    /// The secrets of the data directory `data`, whose token is made if there is none.
    ///
    /// # Errors
    /// If the token can be neither read nor written, or the list of users cannot be read.
    pub(crate) fn of(data: &Path) -> Result<Self, UserError> {
        let path = data.join(TOKEN_FILE);
        let token = read_token(&path).map_err(|source| UserError::File { path, source })?;
        let cookie = hex(&digest(&format!("selvedge dashboard {token}")));
        let (users, keys) = (Users::of(data)?, Mutex::new(VecDeque::new()));
        Ok(Self { token: digest(&token), cookie, users, keys })
    }

    /// People and programs with tokens of their own.
    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// Whose token `token` is.
    pub(crate) fn who_has_token(&self, token: &str) -> Option<Who> {
        let asked = digest(token);
        if asked == self.token {
            return Some(Who::KEEPER);
        }
        self.users.find(|it| it.token == asked).map(|it| who(&it))
    }

    /// Whose cookie `cookie` is the value of.
    pub(crate) fn who_has_cookie(&self, cookie: &str) -> Option<Who> {
        let asked = digest(cookie);
        if asked == digest(&self.cookie) {
            return Some(Who::KEEPER);
        }
        // It begins with the name, so that one digest is made and not one for each user.
        let (name, _) = cookie.rsplit_once('.')?;
        let user = self.users.find(|it| it.name == name)?;
        (asked == digest(&self.cookie_of_user(&user))).then(|| who(&user))
    }

    /// The cookie's value for `who`; none for a user who is gone.
    pub(crate) fn cookie_of(&self, who: &Who) -> Option<String> {
        match &who.name {
            None => Some(self.cookie.clone()),
            Some(name) => self.users.find(|it| it.name == *name).map(|it| self.cookie_of_user(&it)),
        }
    }

    fn cookie_of_user(&self, user: &User) -> String {
        let (keeper, name) = (&self.cookie, &user.name);
        let secret = digest(&format!("selvedge dashboard {keeper} {name} {}", hex(&user.token)));
        format!("{name}.{}", hex(&secret))
    }

    /// A fresh key that opens the dashboard once, for `who`.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn new_key(&self, who: Who) -> io::Result<String> {
        let key = draw()?;
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // One person's keys push nobody else's out.
        let is_own = |it: &(Digest, Who)| it.1.name == who.name;
        if limits::KEYS_MAX <= keys.iter().filter(|it| is_own(it)).count()
            && let Some(oldest) = keys.iter().position(is_own)
        {
            keys.remove(oldest);
        }
        keys.push_back((digest(&key), who));
        Ok(key)
    }

    /// Whom `key` lets in, if it has not been used; it then has.
    pub(crate) fn use_key(&self, key: &str) -> Option<Who> {
        let asked = digest(key);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let idx = keys.iter().position(|it| it.0 == asked)?;
        keys.remove(idx).map(|it| it.1)
    }
}

fn who(user: &User) -> Who {
    Who { name: Some(user.name.clone()), role: user.role, account: user.account.clone() }
}

fn read_token(path: &Path) -> io::Result<String> {
    Ok(match fs::read_to_string(path) {
        Ok(text) if 2 * SECRET_BYTES <= text.trim().len() => text.trim().to_owned(),
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, TooShort)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = draw()?;
            files::write_atomically(path, format!("{token}\n").as_bytes(), 0o600)?;
            token
        }
        Err(error) => return Err(error),
    })
}

#[derive(Debug, thiserror::Error)]
#[error("the token is too short to be one; remove the file, and a new one is made")]
struct TooShort;

pub(crate) fn draw() -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

pub(crate) fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::users::Role;

    #[test]
    fn a_token_is_made_once_and_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let first = Secrets::of(dir.path()).unwrap();
        let path = dir.path().join(TOKEN_FILE);
        let token = fs::read_to_string(&path).unwrap();
        assert_eq!(token.trim().len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let keeper = Some(Who::KEEPER);
        assert_eq!(first.who_has_token(token.trim()), keeper);
        assert!(first.who_has_token("").is_none() && first.who_has_token(&token).is_none());
        let again = Secrets::of(dir.path()).unwrap();
        let cookie = first.cookie_of(&Who::KEEPER).unwrap();
        assert_eq!(again.who_has_token(token.trim()), keeper);
        assert_eq!(again.who_has_cookie(&cookie), keeper);
        assert!(again.who_has_cookie(token.trim()).is_none());
        assert!(again.who_has_token(&cookie).is_none());
        fs::write(&path, "short").unwrap();
        assert!(Secrets::of(dir.path()).is_err());
    }

    #[test]
    fn a_key_opens_once_and_old_keys_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::of(dir.path()).unwrap();
        let viewer = Who { name: Some("bo".to_owned()), role: Role::Viewer, account: None };
        let key = secrets.new_key(viewer.clone()).unwrap();
        assert!(secrets.use_key("other").is_none());
        assert_eq!(secrets.use_key(&key), Some(viewer));
        assert!(secrets.use_key(&key).is_none());
        let oldest = secrets.new_key(Who::KEEPER).unwrap();
        for _ in 0..limits::KEYS_MAX {
            secrets.new_key(Who::KEEPER).unwrap();
        }
        assert!(secrets.use_key(&oldest).is_none());
    }

    #[test]
    fn a_users_token_and_cookie_end_with_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::of(dir.path()).unwrap();
        let token = secrets.users().add("bo", Role::Viewer, None).unwrap();
        let bo = Who { name: Some("bo".to_owned()), role: Role::Viewer, account: None };
        assert_eq!(secrets.who_has_token(&token), Some(bo.clone()));
        let cookie = secrets.cookie_of(&bo).unwrap();
        assert_eq!(secrets.who_has_cookie(&cookie), Some(bo.clone()));
        assert!(secrets.who_has_cookie(&cookie.replacen("bo.", "ada.", 1)).is_none());
        secrets.users().renew("bo").unwrap();
        assert!(secrets.who_has_token(&token).is_none());
        assert!(secrets.who_has_cookie(&cookie).is_none(), "a new token ends the old one's cookie");
        let cookie = secrets.cookie_of(&bo).unwrap();
        secrets.users().remove("bo").unwrap();
        assert!(secrets.who_has_cookie(&cookie).is_none() && secrets.cookie_of(&bo).is_none());
    }
}
