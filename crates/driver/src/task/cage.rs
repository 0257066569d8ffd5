//! A control group (version 2) for one task, where the system lets us make one: whatever is in it
//! can be killed at one stroke.
//!
//! Where it does not, the supervisor still is the reaper of all that its task brings forth.

use std::fs;
use std::path::{Path, PathBuf};

/// A control group of our own; it goes when this is dropped and it is empty.
#[derive(Debug)]
pub(super) struct Cage(PathBuf);

impl Cage {
    /// Makes one below the group that this process is in.
    pub(super) fn make() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let dir = own_group(&mounts, &own)?.join(format!("selvedge-{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self(dir))
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
