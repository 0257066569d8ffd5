//! Whether this machine lets a job be started, so far as that can be known before.
//!
//! Each replica takes three open files of this process: its link and the pipes of what it prints.
//! Where it may have more of them than it has, it takes what it needs; replicas get back what this
//! process had ([`give_back`]), since programs read that limit.

use std::ffi::OsString;
use std::sync::OnceLock;
use std::{env, fs, io};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Uid;

use super::launcher::{Family, Launcher};
use super::{MpirunError, MpirunOptions, io_error};

/// Tells replicas how many files they may have open, if that was changed.
const FILES: &str = "SELVEDGE_FILES";

/// Of each replica.
const FILES_OF_EACH: u64 = 3;

/// Beside them: this process's own, and those of launchers and of links to other hosts.
const FILES_BESIDE: u64 = 64;

/// So many times as many are asked for: launchers, which get this process's limit, take more of
/// them for each process that they start.
const ASKED_FOR: u64 = 4;

/// How many files this process might have open when it was started.
static FILES_BEFORE: OnceLock<u64> = OnceLock::new();

/// Refuses what cannot be started here, and makes room for the rest.
pub(super) fn check(options: &MpirunOptions, launcher: &Launcher) -> Result<(), MpirunError> {
    let replicas = (options.ranks * options.replicas) as u64;
    if !launcher.may_leave_host(options) {
        check_processes(replicas, launcher.family)?;
    }
    let failed = "read how many files may be open";
    let (soft, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| io_error(failed)(e.into()))?;
    FILES_BEFORE.get_or_init(|| soft);
    let files = FILES_OF_EACH * replicas + FILES_BESIDE;
    if hard < files {
        return Err(MpirunError::TooManyFiles { replicas, files, limit: hard });
    }
    let wanted = hard.min(ASKED_FOR * files);
    if soft < wanted {
        let failed = "open more files";
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(|e| io_error(failed)(e.into()))?;
    }
    Ok(())
}

/// Replicas and what starts them: hydra's have a supervisor each ([`super::replica`]).
fn check_processes(replicas: u64, family: Family) -> Result<(), MpirunError> {
    let processes = if family == Family::Mpich { 2 * replicas } else { replicas };
    for (whose, limit) in limits() {
        if limit < processes {
            return Err(MpirunError::TooManyProcesses { replicas, processes, limit, whose });
        }
    }
    Ok(())
}

/// Whatever limits how many processes may run here.
fn limits() -> Vec<(String, u64)> {
    let read = |path: String| {
        let limit = fs::read_to_string(&path).ok().and_then(|it| it.trim().parse().ok());
        limit.map(|it: u64| (path, it))
    };
    let kernels = ["threads-max", "pid_max"].map(|it| format!("/proc/sys/kernel/{it}"));
    let mut all: Vec<_> = kernels.into_iter().chain(group()).filter_map(read).collect();
    if let (false, Ok((soft, _))) = (Uid::effective().is_root(), getrlimit(Resource::RLIMIT_NPROC))
    {
        all.push(("`ulimit -u`".to_owned(), soft));
    }
    all
}

/// The file of the limit of the control group that this process is in.
fn group() -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|it| it.strip_prefix("0::"))?;
    Some(format!("/sys/fs/cgroup{}/pids.max", path.trim_end_matches('/')))
}

/// What replicas are told of how many files they may have open, if that was changed.
pub(super) fn files_before() -> Option<(&'static str, OsString)> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let before = FILES_BEFORE.get().filter(|it| **it < soft)?;
    Some((FILES, before.to_string().into()))
}

/// Has a replica as many files as it would have without what was changed for its launcher.
pub(super) fn give_back() -> Result<(), MpirunError> {
    let Some(files) = env::var(FILES).ok().and_then(|it| it.parse::<u64>().ok()) else {
        return Ok(());
    };
    let failed = "limit open files as before";
    let set = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, files.min(hard), hard));
    set.map_err(|e| io_error(failed)(io::Error::from(e)))
}
