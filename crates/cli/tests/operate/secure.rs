//! A server that others reach: TLS, tokens of their own, and the audit trail.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::{Up, program};

/// A server by TLS on every address of this machine.
fn up() -> Up {
    let dir = tempfile::tempdir().unwrap();
    certify(dir.path());
    serve(dir)
}

/// A server with the certificate in `dir`.
fn serve(dir: TempDir) -> Up {
    serve_with_log(dir, Stdio::inherit())
}

/// The same, which writes its log there.
fn serve_with_log(dir: TempDir, log: Stdio) -> Up {
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let mut up = program(dir.path());
    up.args(["up", "--json", "--data", "data", "--listen", "0.0.0.0:0"]).args(tls);
    up.stderr(log);
    Up::of(up, dir)
}

/// Adds a user, whose token is then in a file of that name.
fn add(up: &Up, name: &str, role: &str) {
    let token = up.text(&["--ca", "ca.pem", "user", "add", name, "--role", role]);
    fs::write(up.dir().join(name), token).unwrap();
}

/// An authority, and a certificate that it has signed for this machine.
fn certify(dir: &Path) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let own = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(dir.join("cert.pem"), own.pem()).unwrap();
    fs::write(dir.join("key.pem"), key.serialize_pem()).unwrap();
    close_key(dir);
    let other = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(dir.join("other.pem"), params.self_signed(&other).unwrap().pem()).unwrap();
}

fn close_key(dir: &Path) {
    fs::set_permissions(dir.join("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn whoever_reaches_a_server_by_tls_is_known_by_a_token_of_their_own() {
    let up = up();
    assert!(up.url.starts_with("https://localhost:"), "{}", up.url);
    // Nobody whom this machine believes has signed the certificate.
    let text = up.refusal(&["--server", &up.url, "status"]);
    assert!(text.contains("UnknownIssuer") && text.contains("--ca"), "{text}");
    // Its process is known on this machine, and so needs nobody's word.
    assert!(up.text(&["status"]).contains(&up.url));
    assert!(up.refusal(&["--ca", "other.pem", "status"]).contains("certificate"));
    assert!(up.refusal(&["--ca", "key.pem", "status"]).contains("no certificate"));
    assert!(up.text(&["--ca", "ca.pem", "status"]).contains(&up.url));

    add(&up, "ada", "user");
    add(&up, "vi", "viewer");
    let of = |name: &'static str| {
        ["--server", &*up.url, "--ca", "ca.pem", "--token-file", name].map(str::to_owned)
    };
    let by = |name: &'static str, args: &[&str]| {
        let all: Vec<String> =
            of(name).into_iter().chain(args.iter().map(|it| (*it).into())).collect();
        up.run(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let submit =
        ["job", "submit", "--shape", "4x4x4", "--name", "n", "--reason", "to test ünïcode"];
    let done = by("ada", &submit);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let done = by("vi", &submit);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("vi is a viewer"));
    assert!(by("vi", &["job", "list"]).status.success());
    assert!(!by("ada", &["down"]).status.success(), "ending a server takes an operator");
    let trail = up.text(&["--ca", "ca.pem", "events", "--audit"]);
    let line = trail.lines().last().unwrap();
    assert!(line.contains("ada") && line.contains("submit job0"), "{trail}");
    assert!(line.ends_with("to test ünïcode"), "{trail}");
    let users = up.text(&["--ca", "ca.pem", "user", "list"]);
    assert!(users.contains("ada") && users.contains("viewer"), "{users}");
    up.text(&["--ca", "ca.pem", "user", "remove", "vi"]);
    assert!(!by("vi", &["job", "list"]).status.success());
}

/// What `openssl req -x509` makes: signed by itself, and one that may sign others.
#[test]
fn the_owner_of_a_server_reaches_it_whatever_its_certificate_is() {
    let dir = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["pod.invalid".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(dir.path().join("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
    close_key(dir.path());
    let up = serve(dir);
    // Its name leads nowhere; its process is known all the same.
    assert!(up.url.starts_with("https://pod.invalid:"), "{}", up.url);
    assert!(up.text(&["status"]).contains(&up.url));
    let here = up.url.replace("pod.invalid", "127.0.0.1");
    let text = up.refusal(&["--server", &here, "--ca", "cert.pem", "status"]);
    assert!(text.contains("CA:TRUE") && text.contains("CA:FALSE"), "{text}");
    assert!(up.text(&["down", "--data", "data"]).contains("has ended"));
}

#[test]
fn a_token_is_not_sent_in_the_clear_and_nobody_listens_widely_without_tls() {
    let up = up();
    let port = up.url.rsplit(':').next().unwrap();
    let plain = format!("http://example.org:{port}");
    fs::write(up.dir().join("token"), "0".repeat(64)).unwrap();
    let text = up.refusal(&["--server", &plain, "--token-file", "token", "status"]);
    assert!(text.contains("for everybody to read") && text.contains("https://"), "{text}");
    // Whoever speaks plain HTTP to a server of TLS is not answered.
    let here = format!("http://127.0.0.1:{port}");
    up.refusal(&["--server", &here, "--token-file", "token", "status"]);
    let wide = up.refusal(&["up", "--listen", "0.0.0.0:0", "--data", "other"]);
    assert!(wide.contains("--tls-cert") && wide.contains("127.0.0.1"), "{wide}");
    assert!(!up.dir().join("other").exists());
    let half = up.refusal(&["up", "--listen", "0.0.0.0:0", "--tls-cert", "cert.pem"]);
    assert!(half.contains("--tls-key"), "{half}");
}

#[test]
fn a_renewed_certificate_is_served_without_a_restart_and_a_bad_one_is_told() {
    let dir = tempfile::tempdir().unwrap();
    certify(dir.path());
    let log = dir.path().join("log");
    let up = serve_with_log(dir, fs::File::create(&log).unwrap().into());
    assert!(up.run(&["--ca", "ca.pem", "status"]).status.success());
    let pid = up.pid();
    std::fs::rename(up.dir().join("ca.pem"), up.dir().join("old.pem")).unwrap();
    certify(up.dir());
    let since = std::time::Instant::now();
    while !up.run(&["--ca", "ca.pem", "status"]).status.success() {
        assert!(since.elapsed() < crate::support::PATIENCE, "the old certificate is still served");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(up.refusal(&["--ca", "old.pem", "status"]).contains("certificate"));
    fs::write(up.dir().join("cert.pem"), "no certificate").unwrap();
    let told = || fs::read_to_string(&log).unwrap();
    while !told().contains("a new certificate does not serve") {
        assert!(since.elapsed() < crate::support::PATIENCE, "the log says: {}", told());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(told().contains("cert.pem has no certificate"), "{}", told());
    assert!(up.run(&["--ca", "ca.pem", "status"]).status.success());
    assert_eq!(up.pid(), pid);
}
