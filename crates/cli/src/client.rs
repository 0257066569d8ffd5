//! How a running server is found and asked (docs/api.md).

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use selvedge_server::inert;
use selvedge_server::runtime::{self, Server};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http;
use ureq::tls::{Certificate, PemItem, RootCerts};

use crate::Globals;
use crate::cmd::watch::pause;
use crate::failure::{Failure, Outcome, Within as _};

/// A server that answers.
#[derive(Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    /// `http://127.0.0.1:7070`, without a slash behind it.
    url: String,
    /// Where it is asked: the same, or the nearest way to it on this machine.
    door: String,
    /// Its process, where that is known: whoever takes its address after it is told no token.
    process: Option<Server>,
    /// Sent with every request; found by itself, and only while its server lives.
    token: String,
    /// Who asks, for the audit trail.
    by: String,
    /// Why something is changed, for the same.
    reason: Option<String>,
}

/// How a server says that something is wrong.
#[derive(serde::Deserialize)]
struct Refusal {
    error: String,
    hint: Option<String>,
}

/// How often whoever follows something looks for a server that is away, as during an upgrade.
const AWAY_LOOKS: u32 = 30;

/// Between two looks for it.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

/// How long a server may take to answer before it counts as stuck: longer than the slowest disk.
const ANSWER_MAX: Duration = Duration::from_secs(60);

impl Client {
    /// The server that `--server` names, else the only one that runs on this machine.
    pub(crate) fn connect(globals: &Globals) -> Outcome<Self> {
        let url = server_url(globals);
        match token_file(globals) {
            None => Self::of(&find(url.as_deref())?, url.as_deref(), globals),
            Some(path) => {
                let url = url.ok_or_else(|| {
                    Failure::new("there is a token, but no server to give it to")
                        .hint("say which: --server https://HOST:PORT")
                })?;
                Self::with_token(&url, &path, globals)
            }
        }
    }

    /// A client of somebody else's server, with a token that `selvedge user add` made.
    fn with_token(url: &str, path: &Path, globals: &Globals) -> Outcome<Self> {
        let url = url.trim_end_matches('/').to_owned();
        if !url.starts_with("https://") && !is_here(&url) {
            let what = format!("{url} would be sent the token for everybody to read");
            return Err(Failure::new(what).hint("write https:// before the host"));
        }
        let token =
            fs::read_to_string(path).within(|| format!("cannot read {}", path.display()))?;
        let token = token.trim().to_owned();
        if !is_header_text(&token) {
            return Err(Failure::new(format!("{} holds no token", path.display()))
                .hint("`selvedge user add NAME` prints one"));
        }
        let roots = roots(&url, globals)?;
        Ok(Self::new(url.clone(), url, roots, token, globals))
    }

    /// A client of a server of this user on this machine, which was found by `url` if there is one.
    pub(crate) fn of(server: &Server, url: Option<&str>, globals: &Globals) -> Outcome<Self> {
        let token = server.token()?;
        // A name that somebody gives is the one that the certificate is held against, and so is
        // the server's own where somebody says whom to believe.  Without either, the process that
        // has bound the address is known, and needs no certificate to say who it is.
        let named = url.filter(|it| it.starts_with("https://"));
        let named = named.map(|it| it.trim_end_matches('/').to_owned());
        let is_known = named.is_none() && globals.ca.is_none();
        let url = named.unwrap_or_else(|| server.url());
        let door = if is_known { server.near_url() } else { url.clone() };
        let roots = if is_known { None } else { roots(&url, globals)? };
        let process = Some(server.clone());
        let client = Self { process, ..Self::new(url, door, roots, token, globals) };
        client.check_process()?;
        Ok(client)
    }

    /// A client; without `roots` nobody's certificate is asked for, or it is not looked at.
    fn new(
        url: String,
        door: String,
        roots: Option<RootCerts>,
        token: String,
        globals: &Globals,
    ) -> Self {
        let tls = ureq::tls::TlsConfig::builder().disable_verification(roots.is_none());
        let nobody = || RootCerts::Specific(Arc::new(Vec::new()));
        let tls = tls.root_certs(roots.unwrap_or_else(nobody));
        let agent = ureq::Agent::config_builder()
            .tls_config(tls.build())
            // What went wrong is read from the answer's text.
            .http_status_as_error(false)
            // A proxy would be sent the token.
            .proxy(None)
            // So would whoever a redirect names.
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(5)))
            .timeout_recv_response(Some(ANSWER_MAX))
            .build()
            .new_agent();
        let by = std::env::var("USER").ok().filter(|it| is_header_text(it));
        let by = by.unwrap_or_else(|| "operator".to_owned());
        Self { agent, url, door, process: None, token, by, reason: globals.reason.clone() }
    }

    /// What `ask` is answered; where the server goes away, as for an upgrade, whoever is there
    /// within some seconds is asked again.
    pub(crate) fn patiently<T>(
        &mut self,
        globals: &Globals,
        ask: impl Fn(&Self) -> Outcome<T>,
    ) -> Outcome<T> {
        let mut answer = ask(self);
        let is_away = |it: &Outcome<T>| it.as_ref().is_err_and(nobody_answered);
        if is_away(&answer) {
            let (url, s) = (&self.url, (AWAY_PAUSE * AWAY_LOOKS).as_secs());
            anstream::eprintln!("nobody answers at {url}; looking for a server for {s} s");
        }
        for _ in 0..AWAY_LOOKS {
            if !is_away(&answer) {
                break;
            }
            pause(AWAY_PAUSE);
            // Another process stands there by then, which gets a token only once it is known.
            if let Ok(found) = Self::connect(globals) {
                *self = found;
                answer = ask(self);
            }
        }
        answer
    }

    /// The answer to a question, as the server wrote it.
    pub(crate) fn get_text(&self, path: &str) -> Outcome<String> {
        self.get_response(path)?.read(path)
    }

    /// The answer to a question, byte for byte.
    pub(crate) fn get_bytes(&self, path: &str) -> Outcome<Vec<u8>> {
        let mut answer = self.get_response(path)?.checked(path)?;
        let what = || format!("cannot read what {}{path} answered", self.url);
        answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().within(what)
    }

    /// The answer to a question.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Outcome<T> {
        self.read(path, &self.get_text(path)?)
    }

    /// The answer to `POST`, as the server wrote it.
    pub(crate) fn post_text(&self, path: &str, body: &impl Serialize) -> Outcome<String> {
        self.send("POST", path, body)?.read(path)
    }

    /// The answer to `PUT`, as the server wrote it.
    pub(crate) fn put_text(&self, path: &str, body: &impl Serialize) -> Outcome<String> {
        self.send("PUT", path, body)?.read(path)
    }

    /// What the server told, understood.  What others wrote, in it, cannot act on a terminal.
    pub(crate) fn read<T: DeserializeOwned>(&self, path: &str, text: &str) -> Outcome<T> {
        let told = serde_json::from_str(text).and_then(|mut told| {
            make_inert(&mut told);
            serde_json::from_value(told)
        });
        told.map_err(|error| {
            let what = format!("cannot understand what {}{path} answered", self.url);
            Failure::from(error).within(what).hint(
                "the server may be of another version than this program; compare \
                 `selvedge status` with `selvedge --version`",
            )
        })
    }

    /// A stream of server-sent events, line by line, until the server ends.
    pub(crate) fn stream(
        &self,
        path: &str,
    ) -> Outcome<impl Iterator<Item = std::io::Result<String>> + use<>> {
        let answer = self.get_response(path)?.checked(path)?;
        let reader = BufReader::new(answer.into_body().into_reader());
        Ok(std::io::BufRead::lines(reader))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whoever took the address of a dead server is not told its token.
    fn check_process(&self) -> Outcome<()> {
        if self.process.as_ref().is_none_or(Server::lives) {
            return Ok(());
        }
        let gone = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let failure = Failure::from(gone).within(format!("the server at {} has ended", self.url));
        Err(failure.hint("`selvedge up` starts one"))
    }

    fn get_response(&self, path: &str) -> Outcome<Response<'_>> {
        self.check_process()?;
        let request = self.agent.get(format!("{}{path}", self.door));
        let answer = request
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Selvedge-By", &self.by)
            .call();
        self.response(answer)
    }

    fn send(&self, method: &str, path: &str, body: &impl Serialize) -> Outcome<Response<'_>> {
        self.check_process()?;
        let url = format!("{}{path}", self.door);
        let request = if method == "PUT" { self.agent.put(url) } else { self.agent.post(url) };
        let mut request = request
            .header("Authorization", format!("Bearer {}", self.token))
            .header("Selvedge-By", &self.by)
            .header("Content-Type", "application/json");
        if let Some(reason) = &self.reason {
            let value = http::HeaderValue::from_bytes(reason.as_bytes());
            let value = value.within(|| format!("--reason {reason:?} is more than one line"))?;
            request = request.header("Selvedge-Reason", value);
        }
        let answer = request.send(serde_json::to_vec(body)?);
        self.response(answer)
    }

    fn response(
        &self,
        answer: Result<http::Response<ureq::Body>, ureq::Error>,
    ) -> Outcome<Response<'_>> {
        match answer {
            Ok(answer) => Ok(Response { answer, url: &self.url }),
            Err(error) => {
                let hint = match self.url.starts_with("https://") {
                    true if is_signer(&error) => IS_SIGNER,
                    true => "--ca FILE says whom to believe about its certificate",
                    false => "`selvedge up` starts a server",
                };
                let failure = Failure::from(error).within(format!("cannot ask {}", self.url));
                Err(failure.hint(hint))
            }
        }
    }
}

/// What there is to do about a certificate that is an authority's.
const IS_SIGNER: &str = "its certificate is one that may sign others (CA:TRUE), which serves nobody; whoever \
     runs the server makes one that may not: openssl req … -addext basicConstraints=critical,CA:FALSE";

/// Whether a server showed a certificate that may sign others, as `openssl req -x509` makes it.
fn is_signer(error: &ureq::Error) -> bool {
    // The TLS library's own error is beneath, in another version of it than we could name.
    error.to_string().contains("CaUsedAsEndEntity")
}

/// Whether a question failed because nobody was there to answer it.
fn nobody_answered(failure: &Failure) -> bool {
    use std::io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof,
    };
    failure.causes().any(|cause| {
        let of_request = cause.downcast_ref::<ureq::Error>().and_then(|it| match it {
            ureq::Error::Io(error) => Some(error),
            _ => None,
        });
        let error = of_request.or_else(|| cause.downcast_ref::<std::io::Error>());
        let away = [ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof];
        error.is_some_and(|it| away.contains(&it.kind()))
    })
}

fn make_inert(told: &mut Value) {
    match told {
        Value::String(text) => *text = inert::lines(text),
        Value::Array(all) => all.iter_mut().for_each(make_inert),
        Value::Object(all) => all.values_mut().for_each(make_inert),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What came back, its status not yet looked at.
struct Response<'a> {
    answer: http::Response<ureq::Body>,
    url: &'a str,
}

/// The longest answer that is read: a year of jobs is some 30 MB.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

impl Response<'_> {
    fn read(self, path: &str) -> Outcome<String> {
        let what = format!("cannot read what {}{path} answered", self.url);
        let mut answer = self.checked(path)?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        body.within(|| what)
    }

    /// The answer, if it is not an error; 409 is the answer no.
    fn checked(self, path: &str) -> Outcome<http::Response<ureq::Body>> {
        let Self { mut answer, url } = self;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.body_mut().with_config().limit(1 << 20).read_to_string();
        let text = text.unwrap_or_default();
        let Ok(refusal) = serde_json::from_str::<Refusal>(&text) else {
            return Err(Failure::new(format!("{url}{path} answered {status}"))
                .hint("is that a server of this program? `selvedge up` prints its address"));
        };
        let mut failure = match status {
            http::StatusCode::CONFLICT => Failure::refusal(refusal.error),
            _ => Failure::new(refusal.error),
        };
        if let Some(hint) = refusal.hint {
            failure = failure.hint(hint);
        }
        Err(failure)
    }
}

/// The server that `url` names, else the only one of this user on this machine.
pub(crate) fn find(url: Option<&str>) -> Outcome<Server> {
    if let Some(url) = url {
        return Ok(runtime::find(url)?);
    }
    let servers = runtime::all();
    match &servers[..] {
        [server] => Ok(server.clone()),
        [] => Err(Failure::new("no server of yours runs on this machine")
            .hint("`selvedge up` starts one")),
        [first, ..] => {
            let one = |it: &Server| format!("{} ({})", it.url(), it.data.display());
            let all: Vec<String> = servers.iter().map(one).collect();
            Err(Failure::new(format!("{} servers run: {}", all.len(), all.join(", ")))
                .hint(format!("say which, such as --server {}", first.url())))
        }
    }
}

/// The server that `--server` or the environment names.
pub(crate) fn server_url(globals: &Globals) -> Option<String> {
    globals.server.clone().or_else(|| std::env::var("SELVEDGE_SERVER").ok())
}

/// The file with one's token for a server of somebody else.
pub(crate) fn token_file(globals: &Globals) -> Option<PathBuf> {
    file_of(globals.token_file.as_ref(), "SELVEDGE_TOKEN_FILE")
}

/// Whom to believe about the certificate of the server at `url`; nobody is asked without TLS.
fn roots(url: &str, globals: &Globals) -> Outcome<Option<RootCerts>> {
    if !url.starts_with("https://") {
        return Ok(None);
    }
    let Some(path) = file_of(globals.ca.as_ref(), "SELVEDGE_CA") else {
        // What of this machine's store does not read is nobody's word.
        let found = rustls_native_certs::load_native_certs();
        let certs = found.certs.iter().map(|it| Certificate::from_der(it).to_owned());
        return Ok(Some(RootCerts::Specific(Arc::new(certs.collect()))));
    };
    let what = || format!("cannot use {} as --ca", path.display());
    let text = fs::read(&path).within(what)?;
    let mut certs = Vec::new();
    for item in ureq::tls::parse_pem(&text) {
        if let PemItem::Certificate(cert) = item.within(what)? {
            certs.push(cert);
        }
    }
    if certs.is_empty() {
        let what = format!("{} has no certificate in PEM form", path.display());
        return Err(Failure::new(what).hint("name the certificate of who signed the server's"));
    }
    Ok(Some(RootCerts::Specific(Arc::new(certs))))
}

fn file_of(given: Option<&PathBuf>, variable: &str) -> Option<PathBuf> {
    given.cloned().or_else(|| std::env::var_os(variable).map(PathBuf::from))
}

/// Whether a URL leads to this machine.
fn is_here(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let authority = rest.split('/').next().unwrap_or_default();
    let is_here = |it: &std::net::SocketAddr| it.ip().is_loopback();
    authority.parse().as_ref().is_ok_and(is_here)
        || authority.split(':').next() == Some("localhost")
}

/// A path of the plant or an id as a part of a URL; its slashes stay.
pub(crate) fn path_text(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn is_header_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.bytes().all(|it| it.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leaves_this_machine_by_tls_alone() {
        let here = ["http://127.0.0.1:7070", "http://localhost:1/x", "http://[::1]:9", "localhost"];
        assert!(here.iter().all(|it| is_here(it)));
        let away =
            ["http://10.0.0.1:7070", "http://localhost.example", "http://127.0.0.1.example:1"];
        assert!(!away.iter().any(|it| is_here(it)));
    }

    #[test]
    fn what_people_type_never_leaves_its_place_in_a_url() {
        let texts = ["cube17/x/in/7", "a b", "x?y=1#z", "训", "%2e"].map(path_text);
        assert_eq!(texts, ["cube17/x/in/7", "a%20b", "x%3Fy%3D1%23z", "%E8%AE%AD", "%252e"]);
    }
}
