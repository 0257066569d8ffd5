//! What a submit costs beside the bare fsync that it needs, alone and among many, and the memory of
//! a server with 1,000 jobs behind it.  What a long history costs is `cargo xtask prove load`.
//!
//! `cargo bench -p xtask --bench served [-- DIR]` builds `selvedge`, starts it on a data directory
//! of its own in DIR (the temporary folder without), and ends it.  It only prints: how long a disk
//! takes is for a person to judge.  DIR must be on the disk that is to be measured.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::print_stdout, reason = "a measurement prints what it measured")]

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// About what a submitted job takes in the journal.
const ROW_BYTES: usize = 300;

fn main() -> Outcome<()> {
    let base = env::args_os().skip(1).find(|it| it != "--bench");
    let base = base.map_or_else(env::temp_dir, PathBuf::from);
    let dir = tempfile::Builder::new().prefix("served").tempdir_in(base)?;
    let program = build()?;
    let bare = bare_fsync(dir.path())?;
    println!("bare write of {ROW_BYTES} bytes and fsync: median {bare:?}");

    let mut server = Server::start(&program, dir.path())?;
    println!("first start: answers after {:?}", server.answered_after);
    let alone = server.submit(1, 200)?;
    println!("1 client: {alone}, {:.1} times the bare fsync", alone.times(bare));
    println!("32 clients, 25 submits each: {}", server.submit(32, 25)?);
    println!("memory then: {} KiB at the most", server.peak_kib()?);
    server.down(&program, dir.path())
}

/// The release build of the program beside this bench.
fn build() -> Outcome<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--quiet", "-p", "selvedge"]);
    command.arg("--message-format=json-render-diagnostics").current_dir(root);
    let said = command.stderr(Stdio::inherit()).output()?.stdout;
    let messages = String::from_utf8(said)?;
    let path = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_ours = message["target"]["name"] == "selvedge";
        message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
    });
    Ok(path.ok_or("cargo named no program called selvedge")?)
}

fn bare_fsync(dir: &Path) -> Outcome<Duration> {
    let row = [b'x'; ROW_BYTES];
    let mut file = OpenOptions::new().create_new(true).append(true).open(dir.join("bare"))?;
    let mut taken = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        file.write_all(&row)?;
        file.sync_all()?;
        taken.push(start.elapsed());
    }
    taken.sort();
    Ok(taken[taken.len() / 2])
}

/// How long requests took.
struct Took {
    sorted: Vec<Duration>,
    all: Duration,
}

impl Took {
    fn at(&self, percent: usize) -> Duration {
        self.sorted[(self.sorted.len() - 1) * percent / 100]
    }

    fn times(&self, other: Duration) -> f64 {
        self.at(50).as_secs_f64() / other.as_secs_f64()
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.sorted.len() as f64 / self.all.as_secs_f64();
        write!(f, "median {:?}, p99 {:?}, {rate:.0} a second", self.at(50), self.at(99))
    }
}

struct Server {
    child: Child,
    at: SocketAddr,
    token: String,
    answered_after: Duration,
}

impl Server {
    fn start(program: &Path, dir: &Path) -> Outcome<Self> {
        let at = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let started = Instant::now();
        let mut command = command(program, dir);
        command.arg("up").arg("--listen").arg(at.to_string());
        command.arg("--data").arg(dir.join("data"));
        let child = command.stdout(Stdio::null()).spawn()?;
        let mut server = Self { child, at, token: String::new(), answered_after: Duration::ZERO };
        while started.elapsed() < Duration::from_secs(60) {
            server.token = fs::read_to_string(dir.join("data/token")).unwrap_or_default();
            server.token.truncate(server.token.trim_end().len());
            if !server.token.is_empty() && server.status().is_ok() {
                server.answered_after = started.elapsed();
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err("the server did not answer within 60 s".into())
    }

    fn status(&self) -> Outcome<Value> {
        Client::new(self)?.ask("GET", "/v1/status", "")
    }

    /// Submits `n_each` jobs from each of `n_clients` at once.
    fn submit(&self, n_clients: usize, n_each: usize) -> Outcome<Took> {
        let start = Instant::now();
        let submits = |client: usize| -> Result<Vec<Duration>, String> {
            let mut connection = Client::new(self).map_err(|e| e.to_string())?;
            let mut taken = Vec::with_capacity(n_each);
            for it in 0..n_each {
                let body =
                    format!(r#"{{"name": "c{client}-{it}", "shape": "2x2x1", "duration": "1m"}}"#);
                let begin = Instant::now();
                connection.ask("POST", "/v1/jobs", &body).map_err(|e| e.to_string())?;
                taken.push(begin.elapsed());
            }
            Ok(taken)
        };
        let mut sorted = Vec::new();
        thread::scope(|scope| -> Outcome<()> {
            let submits = &submits;
            let clients: Vec<_> =
                (0..n_clients).map(|it| scope.spawn(move || submits(it))).collect();
            for client in clients {
                sorted.extend(client.join().map_err(|_| "a client ended badly")??);
            }
            Ok(())
        })?;
        sorted.sort();
        Ok(Took { sorted, all: start.elapsed() })
    }

    /// The most memory that the server held at once.
    fn peak_kib(&self) -> Outcome<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
        let number = line.and_then(|it| it.trim().strip_suffix(" kB"));
        Ok(number.ok_or("the kernel tells the peak of a process")?.parse()?)
    }

    fn down(&mut self, program: &Path, dir: &Path) -> Outcome<()> {
        let mut down = command(program, dir);
        down.arg("down").arg("--data").arg(dir.join("data")).stdout(Stdio::null());
        if !down.status()?.success() {
            return Err("the server did not end".into());
        }
        self.child.wait()?;
        Ok(())
    }
}

/// The program, with files of its own for what users share.
fn command(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("SELVEDGE_RUNTIME_DIR", dir).stdin(Stdio::null());
    command
}

/// One connection that is kept.
struct Client<'a> {
    stream: BufReader<TcpStream>,
    server: &'a Server,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server) -> Outcome<Self> {
        let stream = TcpStream::connect(server.at)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::new(stream), server })
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<Value> {
        let (at, token) = (self.server.at, &self.server.token);
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n\
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
        if !status.starts_with('2') {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(serde_json::from_slice(&body)?)
    }
}
