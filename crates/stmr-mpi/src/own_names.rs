//! Names that are another in each replica, as where `SELVEDGE_SET` is a part of them: what lies
//! there is each one's own, however the program comes to it.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::descriptors::open_path;

/// Those that the program has used.
#[derive(Default)]
pub(crate) struct OwnNames {
    /// As it gave them.
    given: BTreeSet<CString>,
    /// Where they lie, by no links: what a descriptor's path begins with.
    places: BTreeSet<PathBuf>,
}

impl OwnNames {
    /// This one is another in each replica, looked up from the folder `dir`.
    pub(crate) fn keep(&mut self, dir: c_int, name: &CStr) {
        let path = Path::new(OsStr::from_bytes(name.to_bytes()));
        let from =
            if dir == libc::AT_FDCWD { std::env::current_dir().ok() } else { open_path(dir) };
        let path = from.unwrap_or_default().join(path);
        let folder = path.parent().and_then(|it| fs::canonicalize(it).ok());
        let place = folder.zip(path.file_name()).map(|(folder, last)| folder.join(last));
        self.places.extend(place);
        self.keep_given(&[name]);
    }

    /// One of these is another in each replica, or all are: only as they were given.
    pub(crate) fn keep_given(&mut self, names: &[&CStr]) {
        self.given.extend(names.iter().map(|it| (*it).to_owned()));
    }

    /// Whether a name is one of them, or is looked up from a folder that is.
    pub(crate) fn have(&self, dir: c_int, name: &CStr) -> bool {
        self.given.contains(name) || self.have_from(dir, name)
    }

    /// Whether a name is looked up from a folder that is each one's own.
    pub(crate) fn have_from(&self, dir: c_int, name: &CStr) -> bool {
        dir != libc::AT_FDCWD && !name.to_bytes().starts_with(b"/") && self.have_open(dir)
    }

    /// Whether an open file or folder is one of them, or lies in one.
    pub(crate) fn have_open(&self, fd: c_int) -> bool {
        let is_in = |path: PathBuf| path.ancestors().any(|it| self.places.contains(it));
        !self.places.is_empty() && open_path(fd).is_some_and(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_lies_in_a_folder_of_its_own_is_each_replicas_own_by_descriptor_too() {
        let folder = std::env::temp_dir().join(format!("own-names-{}", std::process::id()));
        fs::create_dir_all(folder.join("real/own.1/sub")).expect("made");
        fs::create_dir_all(folder.join("real/own.10")).expect("made");
        symlink("real", folder.join("link")).expect("made");
        let text = folder.join("link/own.1").to_string_lossy().into_owned();
        let name = CString::new(text).expect("no zero");
        let mut names = OwnNames::default();
        let open = |path: &str| fs::File::open(folder.join(path)).expect("it is there");
        let have = |names: &OwnNames, path: &str| names.have_open(open(path).as_raw_fd());
        assert!(!have(&names, "real/own.1"));
        names.keep(libc::AT_FDCWD, &name);
        let rows = [("real/own.1", true), ("link/own.1/sub", true), ("real/own.10", false)];
        for (path, wanted) in rows {
            assert_eq!(have(&names, path), wanted, "{path}");
            assert_eq!(names.have_from(open(path).as_raw_fd(), c"x"), wanted, "{path}");
            assert!(!names.have_from(open(path).as_raw_fd(), c"/x"), "{path}");
        }
        // A name from a folder's descriptor.
        names.keep(open("real").as_raw_fd(), c"own.10");
        assert!(have(&names, "real/own.10"));
        assert!(names.have(libc::AT_FDCWD, &name) && !names.have(libc::AT_FDCWD, c"real"));
        fs::remove_dir_all(&folder).expect("gone");
    }
}
