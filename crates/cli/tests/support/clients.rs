//! Many clients of one server, each on a connection that it keeps; for tests, proofs and benches.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a client says of what went wrong.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a server is, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    /// `127.0.0.1:7070`.
    pub(crate) address: String,
    pub(crate) token: String,
}

/// One connection that is kept.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    door: Door,
}

impl Client {
    pub(crate) fn new(door: &Door) -> Outcome<Self> {
        let stream = TcpStream::connect(&door.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), door: door.clone() })
    }

    /// What a server answers that has what was asked for.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<Value> {
        Ok(serde_json::from_slice(&self.answer(200, method, path, body)?)?)
    }

    /// What a server answers to `GET path`, as it stands.
    pub(crate) fn text(&mut self, path: &str) -> Outcome<String> {
        Ok(String::from_utf8(self.answer(200, "GET", path, "")?)?)
    }

    /// What a server answers that has taken a job for the first time.
    pub(crate) fn submit(&mut self, body: &str) -> Outcome<Value> {
        Ok(serde_json::from_slice(&self.answer(201, "POST", "/v1/jobs", body)?)?)
    }

    /// The answer to one request, which must have this status.
    fn answer(&mut self, wanted: u16, method: &str, path: &str, body: &str) -> Outcome<Vec<u8>> {
        let Door { address, token } = &self.door;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((key, value)) = line.trim_end().split_once(':') else { break };
            if key.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        if status != wanted.to_string() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(body)
    }
}

/// How long requests took.
pub(crate) struct Took {
    sorted: Vec<Duration>,
    all: Duration,
}

impl Took {
    /// So many of a hundred took no longer.
    pub(crate) fn at(&self, percent: usize) -> Duration {
        self.sorted[(self.sorted.len() - 1) * percent / 100]
    }

    /// How many there were.
    pub(crate) fn n(&self) -> usize {
        self.sorted.len()
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.n() as f64 / self.all.as_secs_f64();
        write!(f, "{rate:.0} a second, median {:.1?}, p99 {:.1?}", self.at(50), self.at(99))
    }
}

/// Submits `n_each` jobs of `shape` from each of `n_clients` at once, each under a key of its own.
pub(crate) fn submit(door: &Door, n_clients: usize, n_each: usize, shape: &str) -> Outcome<Took> {
    let since = Instant::now();
    let one = |client: usize| -> Outcome<Vec<Duration>> {
        let mut connection = Client::new(door)?;
        let submit = |n: usize| {
            let body = serde_json::json!({
                "name": format!("load-{client}-{n}"), "shape": shape, "duration": "10m",
                "key": format!("{n_clients}-{client}-{n}"),
            });
            let since = Instant::now();
            connection.submit(&body.to_string())?;
            Ok(since.elapsed())
        };
        (0..n_each).map(submit).collect()
    };
    let mut sorted = Vec::new();
    std::thread::scope(|scope| -> Outcome<()> {
        let one = &one;
        let clients: Vec<_> = (0..n_clients).map(|it| scope.spawn(move || one(it))).collect();
        for client in clients {
            sorted.extend(client.join().map_err(|_| "a client ended badly")??);
        }
        Ok(())
    })?;
    sorted.sort();
    Ok(Took { sorted, all: since.elapsed() })
}
