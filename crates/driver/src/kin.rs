//! What a process has brought forth, and signals that reach nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::process::Process;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Sends `process` a signal; says whether it ran.
pub(crate) fn signal(process: Process, signal: Signal) -> bool {
    process.lives() && to_pid(process.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Sends a signal to the group that `process` leads; says whether it ran.
pub(crate) fn signal_group(process: Process, signal: Signal) -> bool {
    let lives = process.lives();
    lives && to_pid(process.pid).is_some_and(|pid| kill_process_group(pid, signal).is_ok())
}

/// Ends every process that was given one of `variables`, as `NAME=VALUE`.
pub(crate) fn kill_marked(variables: &BTreeSet<String>) {
    for pid in all() {
        let Some(process) = Process::of(pid) else { continue };
        // That of another user does not read, and is not ours.
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        let mut given = environ.split(|it| *it == 0).filter_map(|it| std::str::from_utf8(it).ok());
        if given.any(|it| variables.contains(it)) {
            signal(process, Signal::KILL);
        }
    }
}

/// All processes that descend from `root`, itself left out.  Of a sub-reaper these are all that
/// it ever brought forth and that still run, also those that left their session.
pub(crate) fn descendants(root: u32) -> Vec<Process> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for pid in all() {
        let Some(stat) = stat(pid).filter(|it| !it.has_ended) else { continue };
        children.entry(stat.parent).or_default().push(Process { pid, started: stat.started });
    }
    let (mut found, mut open) = (Vec::new(), vec![root]);
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// Ends everything that descends from `root`.  Those that fork meanwhile are stopped first, so
/// that none gets away.
pub(crate) fn kill_descendants(root: u32) {
    let first = descendants(root);
    for &it in &first {
        signal(it, Signal::STOP);
    }
    for it in first.into_iter().chain(descendants(root)) {
        signal(it, Signal::KILL);
    }
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect()
}

struct Stat {
    has_ended: bool,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command's name in parentheses, and may hold any character.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    Some(Stat { has_ended, parent, started: fields.nth(17)?.parse().ok()? })
}

pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_a_process_brought_forth_is_found_and_signals_reach_it_only_by_its_start_time() {
        let mut child = Command::new("sleep").arg("60").env("MARK", "one").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(descendants(std::process::id()).contains(&process));
        let other = Process { started: process.started + 1, ..process };
        assert!(!signal(other, Signal::KILL) && process.lives());
        kill_marked(&["MARK=on".to_owned()].into());
        assert!(process.lives());
        kill_marked(&["MARK=two".to_owned(), "MARK=one".to_owned()].into());
        child.wait().unwrap();
        assert!(!signal(process, Signal::KILL));
    }
}
