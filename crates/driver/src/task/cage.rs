//! A control group (version 2) for one task, where the system lets us make one: whatever is in it
//! can be killed at one stroke.
//!
//! Where it does not, the supervisor still is the reaper of all that its task brings forth.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::files::{self, FILE_MODE};
use crate::task::supervise::pause;

/// What its name begins with; the supervisor's number follows.
const NAME: &str = "selvedge-";

/// A control group of our own; it goes when this is dropped and it is empty.
#[derive(Debug)]
pub(super) struct Cage(PathBuf);

impl Cage {
    /// Makes one below the group that this process is in, and writes down in the directory `task`
    /// which, for whoever comes when this process is gone.
    pub(super) fn make(task: &Path) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let dir = own_group(&mounts, &own)?.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        let cage = Self(dir);
        let path = cage.0.to_str()?.as_bytes();
        files::write_atomically(&task.join(super::CAGE), path, FILE_MODE).ok()?;
        Some(cage)
    }

    /// Its directory, for [`join`].
    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// Kills all that is in it.
    pub(super) fn kill(&self) {
        // A kernel before 5.14 has no such file; then the descendants are killed one by one.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        // One that is not empty, because somebody moved a process into it, stays.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Kills all that is in the group of the task of `task`, whose supervisor is dead, and removes it.
pub(super) fn kill_left(task: &Path) {
    let path = files::read_plain(&task.join(super::CAGE), super::FILE_BYTES_MAX);
    let Some(path) = path.ok().and_then(|it| String::from_utf8(it).ok()) else { return };
    let dir = Path::new(&path);
    let name = dir.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let procs = dir.join("cgroup.procs");
    if !name.starts_with(NAME) || !procs.exists() {
        return;
    }
    let cage = Cage(dir.to_owned());
    cage.kill();
    // It goes once the last of them is dead; one that somebody else has moved into stays.
    for _ in 0..GONE_LOOKS {
        let left = fs::read_to_string(&procs).unwrap_or_default();
        if left.is_empty() {
            return;
        }
        for pid in left.lines().filter_map(|it| it.parse().ok()).filter_map(Pid::from_raw) {
            // For a kernel before 5.14, and whoever was forked meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        pause(GONE_LOOK_EVERY);
    }
}

/// How often, and after how long each, a group is looked at that is to be empty.
const GONE_LOOKS: u32 = 40;
const GONE_LOOK_EVERY: Duration = Duration::from_millis(5);

/// Goes into the group at `dir`.
pub(super) fn join(dir: &Path) {
    // Without it the task is still in its supervisor's reach.
    let _ = fs::write(dir.join("cgroup.procs"), "0");
}

/// The directory of the group that a process with these files in `/proc/self` is in.
fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let is_v2 = |it: &&str| it.split(" - ").nth(1).is_some_and(|it| it.starts_with("cgroup2 "));
    let mount = mounts.lines().find(is_v2)?.split(' ').nth(4)?;
    let group = own.lines().find_map(|it| it.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_lies_below_the_mount_of_the_second_version() {
        let mounts = "29 28 0:25 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
                      30 28 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "1:cpu:/x\n0::/user.slice/app\n";
        let found = own_group(mounts, own).unwrap();
        assert_eq!(found, Path::new("/sys/fs/cgroup/unified/user.slice/app"));
        assert_eq!(own_group(mounts, "0::/\n").unwrap(), Path::new("/sys/fs/cgroup/unified/"));
        assert!(own_group("", own).is_none() && own_group(mounts, "1:cpu:/x\n").is_none());
    }
}
