//! TLS with a certificate that the operator gives.
//!
//! Both files are looked at now and then: once they have changed and serve, whoever comes next is
//! shown the new certificate.  While they do not serve, the one that was read before does.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use crate::limits;

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM: the server's certificate, then those that lead to its root.
    pub cert: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
}

/// Why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Anybody on the machine can read the key.
    #[error("{path} has mode {mode:03o}, so that every user can read the key; chmod 600 {path}")]
    Open {
        /// The key.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// There is nothing of that sort in the file.
    #[error("{path} has no {what} in PEM form")]
    Missing {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// The file is not PEM.
    #[error("{path} does not read as PEM")]
    Pem {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: pem::Error,
    },
    /// The two do not belong together, or are of a kind that is not served.
    #[error("the certificate {cert} and the key {key} cannot be served")]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// What is wrong with them.
        #[source]
        source: tokio_rustls::rustls::Error,
    },
}

/// A certificate that serves.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// The names that it is for, but for those that stand for many.
    names: Vec<String>,
    /// Its own certificate, the first in the file.
    own: CertificateDer<'static>,
}

impl Tls {
    /// Reads the certificate and its key.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { cert, key } = files;
        let mode = fs::metadata(key)
            .map_err(|source| TlsError::File { path: key.clone(), source })?
            .permissions()
            .mode()
            & 0o777;
        if mode & 0o007 != 0 {
            return Err(TlsError::Open { path: key.clone(), mode });
        }
        let certs: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes_of(cert)?)
            .collect::<Result<_, _>>()
            .map_err(|source| TlsError::Pem { path: cert.clone(), source })?;
        let Some(own) = certs.first() else {
            return Err(TlsError::Missing { path: cert.clone(), what: "certificate" });
        };
        let (own, names) = (own.clone(), names_in(own));
        let secret = PrivateKeyDer::from_pem_slice(&bytes_of(key)?).map_err(|source| {
            let path = key.clone();
            match source {
                pem::Error::NoItemsFound => TlsError::Missing { path, what: "private key" },
                source => TlsError::Pem { path, source },
            }
        })?;
        let pair = |source| TlsError::Pair { cert: cert.clone(), key: key.clone(), source };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair)?
            .with_no_client_auth()
            .with_single_cert(certs, secret)
            .map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), names, own })
    }

    /// Why programs that come at `now` will not accept the certificate, whoever has signed it.
    fn doubt(&self, now: UnixTime) -> Option<String> {
        let own = webpki::EndEntityCert::try_from(&self.own).ok()?;
        // Nobody is trusted, so that it ends at the latest with an unknown issuer, after all that
        // is asked of the certificate itself (RFC 5280 section 6.1.3).
        let for_servers = webpki::KeyUsage::server_auth();
        let found = own.verify_for_usage(&[], &[], &[], now, for_servers, None, None).err()?;
        let why = match found {
            webpki::Error::CertExpired { not_after, .. } => {
                let ago = now.as_secs().saturating_sub(not_after.as_secs());
                format!("it expired {} days ago", ago / DAY_S)
            }
            webpki::Error::CertNotValidYet { not_before, .. } => {
                let left = not_before.as_secs().saturating_sub(now.as_secs());
                format!("it is valid in {} days", left.div_ceil(DAY_S))
            }
            webpki::Error::CaUsedAsEndEntity => "it may sign others (CA:TRUE); make one with \
                 openssl req … -addext basicConstraints=critical,CA:FALSE"
                .to_owned(),
            webpki::Error::RequiredEkuNotFoundContext(_) => {
                "it is for other uses than servers (extendedKeyUsage)".to_owned()
            }
            _ => return None,
        };
        Some(why)
    }

    /// How a server at `address` is reached under a name of the certificate.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        let (ip, port) = (address.ip(), address.port());
        let here = if ip.is_loopback() { Some("localhost") } else { None };
        let name = match here {
            Some(here) => self.names.iter().find(|it| *it == here),
            None => self.names.first(),
        };
        let host = match (name, ip) {
            (Some(name), _) => name.clone(),
            (None, ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
            (None, IpAddr::V4(ip)) => ip.to_string(),
            (None, IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        format!("https://{host}:{port}")
    }
}

/// Seconds of a day.
const DAY_S: u64 = 24 * 60 * 60;

/// Says in the log if nobody will accept the certificate that is shown from now on.
fn tell_doubt(files: &TlsFiles, tls: &Tls) {
    if let Some(why) = tls.doubt(UnixTime::now()) {
        tracing::warn!(cert = ?files.cert, why, "programs will not accept the certificate");
    }
}

/// What tells one state of the files from another: device, number, length and time of change.
type Stamp = [Option<(u64, u64, u64, i64, i64)>; 2];

fn stamp(files: &TlsFiles) -> Stamp {
    [&files.cert, &files.key].map(|path| {
        let it = fs::metadata(path).ok()?;
        Some((it.dev(), it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
    })
}

/// The certificate that is shown, renewed with its files.
pub(crate) struct Renewed {
    files: TlsFiles,
    /// The files as they were when they were read last.
    read: Stamp,
    shown: watch::Sender<TlsAcceptor>,
}

impl Renewed {
    /// Reads the certificate, which is shown from now on; also says what else is known of it.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(crate) fn read(files: &TlsFiles) -> Result<(Self, Tls), TlsError> {
        // Taken before: what changes while they are read is read again.
        let read = stamp(files);
        let tls = Tls::read(files)?;
        tell_doubt(files, &tls);
        let shown = watch::Sender::new(tls.acceptor.clone());
        Ok((Self { files: files.clone(), read, shown }, tls))
    }

    /// What to shake hands with.
    pub(crate) fn shown(&self) -> watch::Receiver<TlsAcceptor> {
        self.shown.subscribe()
    }

    /// Looks at the files until nobody shakes hands any more.
    pub(crate) async fn watch(mut self) {
        let mut ticks = tokio::time::interval(limits::TLS_LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.shown.closed() => return,
                _ = ticks.tick() => {}
            }
            match self.look() {
                Ok(true) => tracing::info!(cert = ?self.files.cert, "the certificate is renewed"),
                Ok(false) => {}
                Err(error) => {
                    let error = crate::api::error::chain(&error);
                    tracing::error!(error, "a new certificate does not serve; the old one does");
                }
            }
        }
    }

    /// Reads the files if they have changed since they were last read; says whether.
    fn look(&mut self) -> Result<bool, TlsError> {
        let stamp = stamp(&self.files);
        if stamp == self.read {
            return Ok(false);
        }
        self.read = stamp;
        let tls = Tls::read(&self.files)?;
        tell_doubt(&self.files, &tls);
        self.shown.send_replace(tls.acceptor);
        Ok(true)
    }
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

fn names_in(cert: &CertificateDer<'_>) -> Vec<String> {
    // One that does not read is refused, with its reason, where it is to be served.
    let Ok(cert) = webpki::EndEntityCert::try_from(cert) else { return Vec::new() };
    cert.valid_dns_names().filter(|it| !it.contains('*')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A certificate for `names` and its key, in `dir`.
    fn files(dir: &Path, names: &[&str]) -> TlsFiles {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let files = TlsFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
        fs::write(&files.cert, made.cert.pem()).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        close(&files.key, 0o600);
        files
    }

    fn close(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refused(files: &TlsFiles) -> String {
        crate::api::error::chain(&Tls::read(files).err().expect("it is refused"))
    }

    #[test]
    fn a_server_is_reached_under_a_name_of_its_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let tls =
            Tls::read(&files(dir.path(), &["*.example", "pod.example", "localhost"])).unwrap();
        for (address, url) in [
            ("0.0.0.0:7070", "https://pod.example:7070"),
            ("192.0.2.1:1", "https://pod.example:1"),
            ("127.0.0.1:7070", "https://localhost:7070"),
        ] {
            assert_eq!(tls.url(address.parse().unwrap()), url);
        }
        let tls = Tls::read(&files(dir.path(), &["192.0.2.1"])).unwrap();
        assert_eq!(tls.url("192.0.2.1:7070".parse().unwrap()), "https://192.0.2.1:7070");
        assert_eq!(tls.url("[::]:7070".parse().unwrap()), "https://127.0.0.1:7070");
    }

    /// Whether the two moments' certificate is doubted, days from 2026-01-01 on.
    fn doubt(change: impl FnOnce(&mut rcgen::CertificateParams), day: u64) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path(), &["a.example"]);
        let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 1, 31);
        change(&mut params);
        let key = rcgen::KeyPair::generate().unwrap();
        fs::write(&files.cert, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        let start = 1_767_225_600;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(start + day * DAY_S));
        Tls::read(&files).unwrap().doubt(now)
    }

    #[test]
    fn a_certificate_that_no_program_accepts_is_doubted_and_a_good_one_is_not() {
        use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa};
        assert_eq!(doubt(|_| (), 10), None);
        assert_eq!(doubt(|_| (), 40).unwrap(), "it expired 10 days ago");
        let early = doubt(|it| it.not_before = rcgen::date_time_ymd(2026, 1, 20), 10).unwrap();
        assert_eq!(early, "it is valid in 9 days");
        let signs = doubt(|it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained), 10).unwrap();
        assert!(signs.contains("CA:TRUE") && signs.contains("CA:FALSE"), "{signs}");
        let client = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = doubt(|it| it.extended_key_usages = client, 10).unwrap();
        assert!(client.contains("extendedKeyUsage"), "{client}");
    }

    #[test]
    fn files_that_cannot_be_served_are_named_with_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let good = files(dir.path(), &["a.example"]);
        close(&good.key, 0o644);
        assert!(refused(&good).contains("chmod 600"), "{}", refused(&good));
        close(&good.key, 0o640);
        assert!(Tls::read(&good).is_ok(), "a group may hold the key");
        let swapped = TlsFiles { cert: good.key.clone(), key: good.key.clone() };
        assert!(refused(&swapped).contains("no certificate"), "{}", refused(&swapped));
        close(&good.cert, 0o600);
        let swapped = TlsFiles { cert: good.cert.clone(), key: good.cert.clone() };
        assert!(refused(&swapped).contains("no private key"), "{}", refused(&swapped));
        let other = tempfile::tempdir().unwrap();
        let other = files(other.path(), &["a.example"]);
        let mixed = TlsFiles { cert: good.cert.clone(), key: other.key };
        assert!(refused(&mixed).contains("cannot be served"), "{}", refused(&mixed));
        let gone = TlsFiles { cert: dir.path().join("gone"), key: good.key };
        assert!(refused(&gone).contains("gone"), "{}", refused(&gone));
    }

    #[test]
    fn a_certificate_is_renewed_with_its_files_and_one_that_does_not_serve_is_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let old = files(dir.path(), &["old.example"]);
        let (mut renewed, tls) = Renewed::read(&old).unwrap();
        let mut shown = renewed.shown();
        assert_eq!(tls.names, ["old.example"]);
        assert!(!renewed.look().unwrap(), "nothing has changed");
        // Half of a renewal: the certificate is there, its key is not yet.
        let other = tempfile::tempdir().unwrap();
        let new = files(other.path(), &["much-longer-name.example"]);
        fs::copy(&new.cert, &old.cert).unwrap();
        assert!(renewed.look().is_err(), "the two do not belong together");
        assert!(!renewed.look().unwrap(), "it is said once");
        assert!(!shown.has_changed().unwrap());
        fs::rename(&new.key, &old.key).unwrap();
        assert!(renewed.look().unwrap());
        assert!(shown.has_changed().unwrap());
        drop(shown.borrow_and_update());
        assert!(!renewed.look().unwrap());
    }
}
