//! The token, the cookie and the one-use keys.
//!
//! The token is made once per data directory and lies there with mode 0600.  The dashboard's
//! cookie is a digest of it: it outlives a restart, and does not give the token away.  A key
//! opens the dashboard once and is then worth nothing.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use selvedge_driver::files;

use crate::limits;

/// The name of the token's file in a data directory.
pub const TOKEN_FILE: &str = "token";

/// Bytes of a token or key before they are written in hexadecimal.
const SECRET_BYTES: usize = 32;

/// What opens the server.
#[derive(Debug)]
pub(crate) struct Secrets {
    token: Digest,
    cookie: String,
    keys: Mutex<VecDeque<Digest>>,
}

/// Two of these are compared, not two secrets: how long that takes says nothing about a secret.
type Digest = [u8; 32];

impl Secrets {
    /// The secrets of the data directory `data`, whose token is made if there is none.
    ///
    /// # Errors
    /// If the token can be neither read nor written.
    pub(crate) fn of(data: &Path) -> io::Result<Self> {
        let path = data.join(TOKEN_FILE);
        let token = match fs::read_to_string(&path) {
            Ok(text) if 2 * SECRET_BYTES <= text.trim().len() => text.trim().to_owned(),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, TooShort)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = draw()?;
                files::write_atomically(&path, format!("{token}\n").as_bytes(), 0o600)?;
                token
            }
            Err(error) => return Err(error),
        };
        let cookie = hex(&digest(&format!("selvedge dashboard {token}")));
        Ok(Self { token: digest(&token), cookie, keys: Mutex::new(VecDeque::new()) })
    }

    /// Whether `token` is the token.
    pub(crate) fn is_token(&self, token: &str) -> bool {
        digest(token) == self.token
    }

    /// Whether `cookie` is the cookie's value.
    pub(crate) fn is_cookie(&self, cookie: &str) -> bool {
        digest(cookie) == digest(&self.cookie)
    }

    /// The cookie's value.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// A fresh key that opens the dashboard once.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(crate) fn new_key(&self) -> io::Result<String> {
        let key = draw()?;
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if limits::KEYS_MAX <= keys.len() {
            keys.pop_front();
        }
        keys.push_back(digest(&key));
        Ok(key)
    }

    /// Whether `key` is a key that has not been used; it then has.
    pub(crate) fn use_key(&self, key: &str) -> bool {
        let asked = digest(key);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let n_before = keys.len();
        keys.retain(|it| *it != asked);
        keys.len() < n_before
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the token is too short to be one; remove the file, and a new one is made")]
struct TooShort;

fn draw() -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let first = Secrets::of(dir.path()).unwrap();
        let path = dir.path().join(TOKEN_FILE);
        let token = fs::read_to_string(&path).unwrap();
        assert_eq!(token.trim().len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(first.is_token(token.trim()) && !first.is_token("") && !first.is_token(&token));
        let again = Secrets::of(dir.path()).unwrap();
        assert!(again.is_token(token.trim()) && again.is_cookie(first.cookie()));
        assert!(!again.is_cookie(token.trim()) && !again.is_token(first.cookie()));
        fs::write(&path, "short").unwrap();
        assert!(Secrets::of(dir.path()).is_err());
    }

    #[test]
    fn a_key_opens_once_and_old_keys_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::of(dir.path()).unwrap();
        let key = secrets.new_key().unwrap();
        assert!(!secrets.use_key("other"));
        assert!(secrets.use_key(&key) && !secrets.use_key(&key));
        let oldest = secrets.new_key().unwrap();
        for _ in 0..limits::KEYS_MAX {
            secrets.new_key().unwrap();
        }
        assert!(!secrets.use_key(&oldest));
    }
}
