//! What an operator relies on: who may do what, what is watched, and what the documents tell people
//! to type.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

mod documents;

mod hostile;

mod load;

mod monitoring;

mod packaging;

mod secure;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A server in a directory of its own, which ends with the test.
pub(crate) struct Up {
    child: Child,
    pub(crate) url: String,
    /// None once it has been handed on.
    dir: Option<tempfile::TempDir>,
}

impl Up {
    /// `selvedge up` with `options`, in `dir`.
    pub(crate) fn start(dir: tempfile::TempDir, options: &[&str]) -> Self {
        let mut up = program(dir.path());
        up.args(["up", "--json", "--data", "data"]).args(options);
        Self::of(up, dir)
    }

    /// The server that `up`, which runs in `dir`, brings up.
    pub(crate) fn of(mut up: Command, dir: tempfile::TempDir) -> Self {
        let mut child = up.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let up: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        // Whatever else it prints must find room.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: up["url"].as_str().unwrap().to_owned(), dir: Some(dir) }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power failure does; what it started goes on.
    pub(crate) fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.dir.take().unwrap()
    }

    /// Ends it as an upgrade does; what it started goes on.
    pub(crate) fn leave(mut self) -> tempfile::TempDir {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        self.dir.take().unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        program(self.dir()).args(args).output().unwrap()
    }

    pub(crate) fn text(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert!(!done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stdout));
        String::from_utf8(done.stderr).unwrap()
    }

    /// What the server answers to `GET path`.
    pub(crate) fn get(&self, path: &str) -> String {
        let token = fs::read_to_string(self.dir().join("data/token")).unwrap();
        let request = ureq::get(format!("{}{path}", self.url));
        let answer = request.header("Authorization", format!("Bearer {}", token.trim())).call();
        answer.unwrap().body_mut().read_to_string().unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Our own child, by its handle; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(dir) = &self.dir {
            let _ = program(dir.path()).args(["down", "--data", "data"]).output();
        }
    }
}

pub(crate) fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command
        .current_dir(dir)
        .env("SELVEDGE_RUNTIME_DIR", dir)
        .env("USER", "root")
        .stdin(Stdio::null());
    command
}

/// A file of the repository.
pub(crate) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Whether this machine has `name`; says what is not run where it has not.
pub(crate) fn has_program(name: &str, wanted_for: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|it| it.join(name).is_file()));
    if !found {
        println!("not run: {wanted_for}, because {name} is not here");
    }
    found
}
