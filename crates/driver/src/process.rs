//! Processes of ours: known by number *and* start time, started in a session of their own.
//!
//! A number alone names whoever has it today.  With the moment at which its process started it
//! names that process for as long as the machine runs, so that it can be found again, and ended,
//! by somebody who did not start it.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

/// One process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub started: u64,
}

impl Process {
    /// This process.
    ///
    /// # Errors
    /// If the system does not say when it started.
    pub fn here() -> io::Result<Self> {
        let silent = || io::Error::other("/proc does not say when this process started");
        Self::of(std::process::id()).ok_or_else(silent)
    }

    /// The process that has this number; none if nobody has, or it has ended and its parent has
    /// not asked how.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: start_time(pid)? })
    }

    /// Whether it still runs.
    pub fn lives(&self) -> bool {
        start_time(self.pid) == Some(self.started)
    }

    /// Ends it as kill -9 does, if it still runs and is not this one.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&self) -> io::Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        match pid {
            Some(pid) if self.pid != std::process::id() && self.lives() => {
                let killed = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                killed.map_err(io::Error::from)
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Makes this process the first of a session of its own: a Ctrl-C at the terminal that it was
/// started from, or the end of that terminal, does not reach it.
///
/// # Errors
/// If it leads a group of processes already.
pub fn own_session() -> io::Result<()> {
    rustix::process::setsid().map(drop).map_err(io::Error::from)
}

/// Keeps what this process was started with, but for its three streams, from all that it starts:
/// neither a task under another account nor a plant that outlives it gets what a caller had open.
pub fn keep_files() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// Starts this very program with other arguments, with nothing to read, its words going to
/// `stderr`.  It is the same program also where the file has been replaced meanwhile.
///
/// # Errors
/// If the system starts nothing.
pub fn start_self(args: &[&std::ffi::OsStr], stderr: File) -> io::Result<Child> {
    let name = std::env::args_os().next().unwrap_or_else(|| "selvedge".into());
    Command::new("/proc/self/exe")
        .arg0(name)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
}

/// Field 22 of `/proc/PID/stat`.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command's name in parentheses, and may hold any character.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    if has_ended { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_number_and_its_start_and_ends_when_killed() {
        let mut here = Process::here().unwrap();
        assert!(here.lives());
        here.started += 1;
        assert!(!here.lives(), "another process with the same number");
        assert_eq!(Process::of(u32::MAX), None);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        let other = Process { started: process.started + 1, ..process };
        other.kill().unwrap();
        assert!(process.lives(), "another process was meant");
        process.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.lives());
        process.kill().unwrap();
    }
}
