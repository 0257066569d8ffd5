//! What a submit costs beside the bare fsync that it needs, alone and among many, and the memory of
//! a server with 1,000 jobs behind it.  What a long history costs is `cargo xtask prove load`.
//!
//! `cargo bench -p xtask --bench served [-- DIR]` builds `selvedge`, starts it on a data directory
//! of its own in DIR (the temporary folder without), and ends it.  It only prints: how long a disk
//! takes is for a person to judge.  DIR must be on the disk that is to be measured.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::print_stdout, reason = "a measurement prints what it measured")]

#[path = "../../cli/tests/support/clients.rs"]
#[allow(dead_code, reason = "the tests of the program use all of it")]
mod clients;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use clients::{Client, Door, Outcome};
use serde_json::Value;

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
    let alone = clients::submit(&server.door, 1, 200, "2x2x1")?;
    let times = alone.at(50).as_secs_f64() / bare.as_secs_f64();
    println!("1 client: {alone}, {times:.1} times the bare fsync");
    println!("32 clients, 25 submits each: {}", clients::submit(&server.door, 32, 25, "2x2x1")?);
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

struct Server {
    child: Child,
    door: Door,
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
        let door = Door { address: at.to_string(), token: String::new() };
        let mut server = Self { child, door, answered_after: Duration::ZERO };
        while started.elapsed() < Duration::from_secs(60) {
            let token = fs::read_to_string(dir.join("data/token")).unwrap_or_default();
            token.trim_end().clone_into(&mut server.door.token);
            if !server.door.token.is_empty() && server.status().is_ok() {
                server.answered_after = started.elapsed();
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err("the server did not answer within 60 s".into())
    }

    fn status(&self) -> Outcome<Value> {
        Client::new(&self.door)?.ask("GET", "/v1/status", "")
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
