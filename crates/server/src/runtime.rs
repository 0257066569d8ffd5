//! Which servers of this user run on this machine, and what token each takes.
//!
//! A server writes one file, `selvedge/servers/PORT-PID.json`, under the user's runtime directory
//! and takes it away when it ends; that of a killed one goes when the next server starts or
//! somebody looks.  A reader believes a file only if it lies in a directory that
//! nobody else can write, and while the very process that wrote it lives: the same number *and*
//! the same start time.  So a token is never sent to whoever took the port of a dead server.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use selvedge_driver::files;
use selvedge_driver::process::Process;

use crate::secret::TOKEN_FILE;

/// One server as its runtime file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its data directory.
    pub data: PathBuf,
    /// Its process.
    pub pid: u32,
    /// When that process started, in clock ticks since the machine did.
    pub started: u64,
    /// How it is reached by TLS, under the name in its certificate; none without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_url: Option<String>,
}

/// Why no token is known for an address.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Not an address of the form that `up` prints.
    #[error("{url:?} is not a server's address; give one like http://127.0.0.1:7070")]
    Url {
        /// As given.
        url: String,
    },
    /// No live server of this user listens there.
    #[error(
        "no server of yours listens at {url}; start one with `selvedge up`, or name your token for \
         somebody else's with --token-file"
    )]
    NotRunning {
        /// As given.
        url: String,
    },
    /// Its token cannot be read.
    #[error("cannot read the token {path}")]
    Token {
        /// The token file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// A server's runtime file; it goes when this is dropped.
#[derive(Debug)]
pub struct Presence {
    path: PathBuf,
}

impl Drop for Presence {
    fn drop(&mut self) {
        // A file that stays names a dead process, and readers hold that against it.
        let _ = fs::remove_file(&self.path);
    }
}

impl Server {
    /// This process as a server that listens at `address` with `data`.
    ///
    /// # Errors
    /// If the system does not say when this process started.
    pub fn here(address: SocketAddr, data: &Path) -> io::Result<Self> {
        let Process { pid, started } = Process::here()?;
        Ok(Self { address, data: data.to_owned(), pid, started, tls_url: None })
    }

    /// Its address as a client writes it.
    pub fn url(&self) -> String {
        self.tls_url.clone().unwrap_or_else(|| format!("http://{}", self.address))
    }

    /// How it is reached from this machine: at the address that its process has bound, so that
    /// no name service is asked, and nobody else can stand there while that process lives.
    pub fn near_url(&self) -> String {
        if self.tls_url.is_none() {
            return self.url();
        }
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        format!("https://{}", SocketAddr::new(ip, self.address.port()))
    }

    /// Whether the process that wrote it is the one that has its number.
    pub fn lives(&self) -> bool {
        Process { pid: self.pid, started: self.started }.lives()
    }

    /// Its token.
    ///
    /// # Errors
    /// [`FindError::Token`].
    pub fn token(&self) -> Result<String, FindError> {
        let path = self.data.join(TOKEN_FILE);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(source) => Err(FindError::Token { path, source }),
        }
    }
}

/// Says that `server` runs, for as long as the answer is kept.
///
/// # Errors
/// If there is no directory that only this user can write, or it cannot be written.
pub fn write(server: &Server) -> io::Result<Presence> {
    let body = serde_json::to_vec(server).map_err(io::Error::other)?;
    let name = format!("{}-{}.json", server.address.port(), server.pid);
    // Reading clears away what killed servers have left.
    drop(all());
    let mut failed = io::Error::other("no runtime directory");
    for dir in homes() {
        let path = dir.join(&name);
        match make_own(&dir).and_then(|()| files::write_atomically(&path, &body, 0o600)) {
            Ok(()) => return Ok(Presence { path }),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The live server of this user that listens at `url`.
///
/// # Errors
/// [`FindError::Url`], [`FindError::NotRunning`].
pub fn find(url: &str) -> Result<Server, FindError> {
    let (host, port) = authority(url).ok_or_else(|| FindError::Url { url: url.to_owned() })?;
    let is_it = |server: &Server| {
        let of_tls = server.tls_url.as_deref().and_then(authority);
        if server.tls_url.is_some() != url.starts_with("https://") {
            return false;
        }
        if of_tls == Some((host, port)) {
            return true;
        }
        let ip = server.address.ip();
        let same_host = match host.parse::<IpAddr>() {
            Ok(asked) => asked == ip || (ip.is_unspecified() && asked.is_loopback()),
            Err(_) => host == "localhost" && (ip.is_loopback() || ip.is_unspecified()),
        };
        same_host && server.address.port() == port
    };
    let found = all().into_iter().find(is_it);
    found.ok_or_else(|| FindError::NotRunning { url: url.to_owned() })
}

/// The live server of this user that owns the data directory `data`.
pub fn find_by_data(data: &Path) -> Option<Server> {
    let data = data.canonicalize().ok()?;
    all().into_iter().find(|it| it.data == data)
}

/// All live servers of this user, by address.
pub fn all() -> Vec<Server> {
    let mut servers: Vec<Server> = homes().iter().flat_map(|dir| read(dir)).collect();
    servers.sort_by_key(|it| (it.address, it.pid));
    servers.dedup();
    servers
}

/// Host and port of an address like `http://127.0.0.1:7070/`.
fn authority(url: &str) -> Option<(&str, u16)> {
    let (rest, usual) = match url.strip_prefix("https://") {
        Some(rest) => (rest, 443),
        None => (url.strip_prefix("http://").unwrap_or(url), 80),
    };
    let rest = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (rest, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then_some((host, port))
}

/// Names the only place where servers are written down and looked for: tests and a second set of
/// servers stay apart from those of the machine.
const HOME_VARIABLE: &str = "SELVEDGE_RUNTIME_DIR";

/// Where runtime files may lie, best first.  A reader looks in all of them, for a server may have
/// been started with another environment.
fn homes() -> Vec<PathBuf> {
    let Some(uid) = uid() else { return Vec::new() };
    if let Some(dir) = std::env::var_os(HOME_VARIABLE) {
        return vec![PathBuf::from(dir).join("selvedge/servers")];
    }
    let mut homes = Vec::new();
    if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR") {
        homes.push(PathBuf::from(dir));
    }
    let of_login = PathBuf::from(format!("/run/user/{uid}"));
    homes.push(of_login);
    // Where packaging/selvedge.service keeps it, for a shell of the same user.
    homes.push(PathBuf::from("/run/selvedge"));
    homes.retain(|it| it.is_absolute() && it.is_dir());
    // A machine without logins (a container) has neither.
    homes.push(PathBuf::from(format!("/tmp/selvedge-{uid}")));
    homes.iter().map(|it| it.join("selvedge/servers")).collect()
}

fn uid() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|it| it.uid())
}

/// Makes `dir`, and sees to it that it and what holds it below the home are this user's alone.
fn make_own(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    if is_own(dir) {
        return Ok(());
    }
    let text = format!("{} can be written by others", dir.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Whether `HOME/selvedge/servers` and the two directories above it belong to this user, are no
/// links, and can be written by nobody else.
fn is_own(dir: &Path) -> bool {
    dir.ancestors().take(3).all(|it| {
        fs::symlink_metadata(it).is_ok_and(|meta| {
            meta.is_dir() && Some(meta.uid()) == uid() && meta.mode() & 0o022 == 0
        })
    })
}

fn read(dir: &Path) -> Vec<Server> {
    if !is_own(dir) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let read_one = |path: PathBuf| -> Option<Server> {
        let server: Server = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        if server.lives() {
            return Some(server);
        }
        // Killed, it could not take its file away.  The name holds the process's number, so that
        // no living server's file is meant.
        let _ = fs::remove_file(&path);
        None
    };
    entries.filter_map(|it| read_one(it.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_and_a_port() {
        for (url, want) in [
            ("http://127.0.0.1:7070", Some(("127.0.0.1", 7070))),
            ("http://localhost:1/x?y", Some(("localhost", 1))),
            ("http://[::1]:9/", Some(("::1", 9))),
            ("127.0.0.1:80", Some(("127.0.0.1", 80))),
            ("https://pod.example", Some(("pod.example", 443))),
            ("http://host:port", None),
            ("http://:80", None),
        ] {
            assert_eq!(authority(url), want, "{url}");
        }
    }

    #[test]
    fn a_server_lives_with_its_process_and_its_start_time_only() {
        let mut server = Server::here("127.0.0.1:1".parse().unwrap(), Path::new("/d")).unwrap();
        assert!(server.lives());
        server.started += 1;
        assert!(!server.lives(), "another process with the same number");
        server.pid = u32::MAX;
        assert!(!server.lives());
    }

    #[test]
    fn a_server_is_found_while_its_presence_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().canonicalize().unwrap();
        fs::write(data.join(TOKEN_FILE), "secret\n").unwrap();
        let server = Server::here("127.0.0.1:65001".parse().unwrap(), &data).unwrap();
        let presence = write(&server).unwrap();
        assert_eq!(find("http://localhost:65001").unwrap(), server);
        assert_eq!(find_by_data(&data).unwrap().token().unwrap(), "secret");
        assert!(matches!(find("http://127.0.0.1:65002"), Err(FindError::NotRunning { .. })));
        drop(presence);
        assert!(find("http://127.0.0.1:65001").is_err());
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("selvedge/servers");
        make_own(&dir).unwrap();
        let server = Server::here("127.0.0.1:65003".parse().unwrap(), home.path()).unwrap();
        fs::write(dir.join("a.json"), serde_json::to_vec(&server).unwrap()).unwrap();
        assert_eq!(read(&dir), [server]);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(read(&dir).is_empty());
        assert!(make_own(&dir).is_err());
    }
}
