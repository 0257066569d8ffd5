//! What the tests of the program share: the program, a server of one's own that ends with its
//! test, processes by their numbers, and clients (`clients`).
#![allow(dead_code, reason = "each test of the program uses its part of it")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

pub(crate) mod clients;

use std::fmt::Display;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything here may take, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// What the program is given: words, or a line of them without quotes.
pub(crate) trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for &str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for &String {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for &[&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for &Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Words for &[&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

/// A server that ends with its test, and all that it started with it.
pub(crate) struct Up {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// What opens its dashboard, once.
    pub(crate) link: String,
    /// Whether the program is told where it is, or finds it by the files of its user.
    is_named: bool,
    /// None once it has been handed on.
    dir: Option<tempfile::TempDir>,
}

impl Up {
    /// A server on a new directory, as `up` without options brings it up.
    pub(crate) fn start() -> Self {
        Self::start_with(dir(), &[])
    }

    /// The same at another speed.
    pub(crate) fn at(speed: &str) -> Self {
        Self::start_with(dir(), &["--speed", speed])
    }

    /// A server on the data of one that was there before, if any was.
    pub(crate) fn start_with(dir: tempfile::TempDir, options: &[&str]) -> Self {
        let mut it = Self::of(up(dir.path(), options), dir);
        it.is_named = true;
        it
    }

    /// The server that `up`, which runs in `dir`, brings up; the program has to find it.
    pub(crate) fn of(up: Command, dir: tempfile::TempDir) -> Self {
        let (child, up) = raise(up);
        let text = |key: &str| up[key].as_str().unwrap().to_owned();
        Self { child, url: text("url"), link: text("link"), is_named: false, dir: Some(dir) }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_ref().expect("it has not been handed on").path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir().join("data")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The token of its data directory.
    pub(crate) fn token(&self) -> String {
        fs::read_to_string(self.data().join("token")).unwrap().trim().to_owned()
    }

    /// Ends it as a power failure would, and leaves its data and what it started.
    pub(crate) fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.dir.take().unwrap()
    }

    /// Sends it a signal and waits for its end.
    pub(crate) fn signal(mut self, name: &str) -> tempfile::TempDir {
        signal(name, self.child.id());
        assert!(self.child.wait().unwrap().success(), "{name}");
        self.dir.take().unwrap()
    }

    /// Ends it with `down`, and all that it started; its data stays.
    pub(crate) fn down(mut self) -> tempfile::TempDir {
        self.text("down");
        self.child.wait().unwrap();
        self.dir.take().unwrap()
    }

    /// Ends it as an upgrade does; what it started goes on.
    pub(crate) fn leave(self) -> tempfile::TempDir {
        self.signal("TERM")
    }

    /// The program with this server to ask.
    pub(crate) fn command(&self, args: impl Words) -> Command {
        let mut command = program(self.dir());
        if self.is_named {
            command.args(["--server", &self.url]);
        }
        command.args(args.words());
        command
    }

    pub(crate) fn run(&self, args: impl Words) -> Output {
        self.command(args).output().unwrap()
    }

    /// What `args` prints, which must work.
    pub(crate) fn text(&self, args: impl Words) -> String {
        let words = args.words();
        let done = self.run(&words);
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub(crate) fn json(&self, args: impl Words) -> Value {
        let words = args.words();
        // A command of the user's own stands behind `--`.
        let words = [&["--json"], &words[..]].concat();
        serde_json::from_str(&self.text(&words)).unwrap()
    }

    /// What `args` answers once `holds` holds of it.
    pub(crate) fn until(&self, args: impl Words, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_within(PATIENCE, args, holds)
    }

    /// The same, which may take no longer than `limit`.
    pub(crate) fn until_within(
        &self,
        limit: Duration,
        args: impl Words,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let since = Instant::now();
        let words = args.words();
        loop {
            let answer = self.json(&words);
            if holds(&answer) {
                return answer;
            }
            assert!(since.elapsed() < limit, "{words:?} still answers {answer}");
            std::thread::sleep(PAUSE);
        }
    }

    /// The job `id` once `holds` holds of it; where it never does, its logs say why.
    pub(crate) fn until_job(&self, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let job = self.job(id);
            if holds(&job) {
                return job;
            }
            let logs = || self.run(&["job", "logs", id]).stdout;
            let is_late = PATIENCE < since.elapsed();
            assert!(!is_late, "not {what}: {job}\n{}", String::from_utf8_lossy(&logs()));
            std::thread::sleep(PAUSE);
        }
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        self.json(&["job", "show", id])
    }

    /// The exit status and standard error of `args`.
    pub(crate) fn refused(&self, args: impl Words) -> (i32, String) {
        let done = self.run(args);
        let code = done.status.code().unwrap();
        (code, String::from_utf8(done.stderr).unwrap())
    }

    /// What `args`, which must not work, says on standard error.
    pub(crate) fn refusal(&self, args: impl Words) -> String {
        let words = args.words();
        let (code, text) = self.refused(&words);
        assert_ne!(code, 0, "{words:?}");
        text
    }

    /// Its own door, with the token of its data directory.
    pub(crate) fn door(&self) -> clients::Door {
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        clients::Door { address, token: self.token() }
    }

    /// What the server answers to `GET path`.
    pub(crate) fn get(&self, path: &str) -> String {
        clients::Client::new(&self.door()).unwrap().text(path).unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Our own child, by its handle; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(dir) = &self.dir {
            end_left(dir.path());
        }
    }
}

/// A directory that nobody else can look into.
pub(crate) fn dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

/// Starts a server on `DIR/data` at a free port; returns it with its address once it answers.
pub(crate) fn begin(dir: &Path, options: &[&str]) -> (Child, String) {
    let (child, up) = raise(up(dir, options));
    (child, up["url"].as_str().unwrap().to_owned())
}

/// `up` on `DIR/data`, at a free port of this machine unless the options say where.
pub(crate) fn up(dir: &Path, options: &[&str]) -> Command {
    let mut up = program(dir);
    up.args(["up", "--json", "--data", "data"]).args(options);
    if !options.contains(&"--listen") {
        up.args(["--listen", "127.0.0.1:0"]);
    }
    up
}

/// Starts what brings a server up; returns it with what it printed once it answers.
fn raise(mut up: Command) -> (Child, Value) {
    let mut child = up.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let up = lines.next().expect("`up` prints its address").unwrap();
    let up = serde_json::from_str(&up).unwrap();
    // Whatever else it prints must find room.
    std::thread::spawn(move || lines.for_each(drop));
    (child, up)
}

/// Ends the plant and the tasks that a killed server has left in `DIR/data`, if it has.
pub(crate) fn end_left(dir: &Path) -> Output {
    program(dir).args(["down", "--data", "data"]).output().unwrap()
}

/// The program in `dir`, which holds its runtime files too.
pub(crate) fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command
        .current_dir(dir)
        .env("SELVEDGE_RUNTIME_DIR", dir)
        .env("USER", "ada")
        .stdin(Stdio::null());
    command
}

/// Whether a process runs, and not only waits for its parent to ask how it ended.
pub(crate) fn lives(pid: impl Display) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, it)| !it.trim_start().starts_with(['Z', 'X']))
}

/// The processes that `parent` has started and that are still its own.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name, which may hold anything: the state, then the parent.
        let rest = stat.rsplit_once(") ").map_or("", |it| it.1);
        rest.split(' ').nth(1).is_some_and(|it| it == parent.to_string())
    };
    pids.filter(is_child).collect()
}

/// Sends a signal to a process of the test's own: `KILL`.
pub(crate) fn signal(name: &str, pid: impl Display) {
    let done = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(done.success(), "{name} {pid}");
}
