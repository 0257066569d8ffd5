//! Names that are another in each replica, as where `SELVEDGE_SET` is a part of them: what lies
//! there is each one's own, however the program comes to it.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use selvedge_stmr::message::EventKind;
use selvedge_stmr::verdict::Double;

use crate::descriptors::open_path;
use crate::files::{CHANGE, FILES, bytes_of, last_error, words};
use crate::opened;
use crate::state::State;

/// Names are compared in rows of a multiple of so many bytes.
const NAMES_STEP: usize = 512;

/// What a replica does that enters a folder, or lists it by its descriptor.
const FOLDER: &str = "the name of a folder";

/// Those that the program has used.
#[derive(Default)]
pub(crate) struct OwnNames {
    /// As it gave them.
    given: BTreeSet<CString>,
    /// Where they lie, by no links: what a descriptor's path begins with.
    places: BTreeSet<PathBuf>,
    /// The working folder is one of them, or lies in one.
    is_here: bool,
}

/// Where a name lies that is looked up from the folder `dir`, by no links but its last part.
fn place_of(dir: c_int, name: &CStr) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    let from = if dir == libc::AT_FDCWD { std::env::current_dir().ok() } else { open_path(dir) };
    let path = from.unwrap_or_default().join(path);
    match path.file_name() {
        Some(last) => Some(fs::canonicalize(path.parent()?).ok()?.join(last)),
        None => fs::canonicalize(path).ok(),
    }
}

/// Whether a name may lead out of the folder that it is looked up from.
fn may_lead_out(name: &CStr) -> bool {
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    let mut parts = path.components();
    let first = parts.next();
    first == Some(Component::ParentDir) || first.is_some() && parts.next().is_some()
}

impl OwnNames {
    /// This one is another in each replica, looked up from the folder `dir`.
    fn keep(&mut self, dir: c_int, name: &CStr) {
        self.places.extend(place_of(dir, name));
        self.given.insert(name.to_owned());
    }

    /// Whether a name is one of them, or is looked up from a folder that is.
    pub(crate) fn have(&self, dir: c_int, name: &CStr) -> bool {
        self.given.contains(name) || self.have_from(dir, name)
    }

    /// Whether a name is looked up from a folder that is each one's own, and leads to what lies
    /// there.
    pub(crate) fn have_from(&self, dir: c_int, name: &CStr) -> bool {
        let is_from = match dir {
            libc::AT_FDCWD => self.is_here,
            _ => !self.places.is_empty() && self.have_open(dir),
        };
        let stays =
            || !may_lead_out(name) || place_of(dir, name).is_none_or(|it| self.have_place(&it));
        !name.to_bytes().starts_with(b"/") && is_from && stays()
    }

    /// Whether an open file or folder is one of them, or lies in one.
    pub(crate) fn have_open(&self, fd: c_int) -> bool {
        !self.places.is_empty() && open_path(fd).is_some_and(|it| self.have_place(&it))
    }

    /// Whether the working folder is one of them, or lies in one.
    pub(crate) fn have_here(&self) -> bool {
        self.is_here
    }

    fn have_place(&self, place: &Path) -> bool {
        place.ancestors().any(|it| self.places.contains(it))
    }
}

/// A part of what is compared of a name: what was given, or what its folder was opened by.
struct Part {
    dir: c_int,
    name: CString,
    is_folder: bool,
}

impl State {
    /// Compares what is done to files of these names; nothing if they are another in each replica,
    /// as where `SELVEDGE_SET` is a part of them: then each does it by itself.
    pub(crate) fn compare_names(
        &mut self,
        doing: &'static str,
        mut row: Vec<u8>,
        names: &[&CStr],
    ) -> Option<Vec<u8>> {
        for it in names {
            row.extend(it.to_bytes_with_nul());
        }
        // Names of other lengths are other names of the same call.
        row.resize(row.len().next_multiple_of(NAMES_STEP), 0);
        let doing = std::mem::replace(&mut self.doing, doing);
        let compared = self.compare_unless_own(&[&row], true);
        if let Err(Double::NoMajority) = compared {
            // Of two that differ one has erred, unless they differ in nothing but their sets.
            let own = self.told.set as u8;
            let (metas, _) = self.event(EventKind::Decision, |_| Some([&[own], &row[..]].concat()));
            let differ_in_sets = differ_in_sets(metas[0], &metas[1..], own, &row);
            self.compare(vec![u8::from(differ_in_sets)]);
        }
        self.doing = doing;
        compared.ok().map(|it| it.0.unwrap_or(row))
    }

    /// Compares a change of these names, each looked up from a folder: what a majority has, the
    /// names behind `row`.  Where they are another in each replica, nothing; which of them are is
    /// kept then.
    pub(crate) fn compare_change(
        &mut self,
        row: Vec<u8>,
        names: &[(c_int, &CStr)],
    ) -> Option<Vec<u8>> {
        let part = |dir, name, is_folder| Part { dir, name, is_folder };
        let given = names.iter().map(|it| part(it.0, it.1.to_owned(), false));
        let folder = |it: &(c_int, &CStr)| Some(part(it.0, opened::folder(it.0, it.1)?, true));
        let parts: Vec<Part> = given.chain(names.iter().filter_map(folder)).collect();
        let all: Vec<&CStr> = parts.iter().map(|it| it.name.as_c_str()).collect();
        let compared = self.compare_names(CHANGE, row.clone(), &all);
        if compared.is_some() {
            return compared;
        }
        let is_alone = parts.len() == 1;
        let mut is_own = false;
        for Part { dir, name, is_folder } in &parts {
            // The others may be shared.
            if !is_alone && self.compare_names(CHANGE, Vec::new(), &[name]).is_some() {
                continue;
            }
            if *is_folder {
                is_own |= self.keep_place(open_path(*dir));
            } else {
                self.own_names.keep(*dir, name);
                is_own = true;
            }
        }
        // Else folders have several names, and are shared.
        if is_own { None } else { self.compare_names(CHANGE, row, &all[..names.len()]) }
    }

    /// A folder that has another name in each replica is each one's own, unless all of the names
    /// lead to the same one; whether it is.
    fn keep_place(&mut self, place: Option<PathBuf>) -> bool {
        let name = place.as_ref().and_then(|it| CString::new(it.as_os_str().as_bytes()).ok());
        let name = name.unwrap_or_default();
        let is_own = self.compare_names(FOLDER, Vec::new(), &[&name]).is_none();
        self.own_names.places.extend(place.filter(|_| is_own));
        is_own
    }

    /// Learns whether a folder that is open is another in each replica, by the name that it was
    /// opened by, before it is listed or entered.
    pub(crate) fn meet_folder(&mut self, fd: c_int) {
        if self.own_names.have_open(fd) {
            return;
        }
        let Some(name) = opened::name(fd) else { return };
        self.mix(&[FILES, 21]);
        if self.compare_names(FOLDER, Vec::new(), &[&name]).is_none() {
            self.keep_place(open_path(fd));
        }
    }

    /// Makes another folder the working one, the same in all replicas or each one's own; the error,
    /// or 0.
    pub(crate) fn move_to(&mut self, place: Result<c_int, &CStr>) -> c_int {
        let native = |name: &CStr| {
            let done = match place {
                Ok(fd) => unsafe { libc::syscall(libc::SYS_fchdir, fd) },
                Err(_) => unsafe { libc::syscall(libc::SYS_chdir, name.as_ptr()) },
            };
            if done == 0 { 0 } else { last_error() }
        };
        let (given, lies_in_own) = match place {
            Ok(fd) => {
                self.meet_folder(fd);
                (c"", self.own_names.have_open(fd))
            }
            Err(name) => (name, self.own_names.have_from(libc::AT_FDCWD, name)),
        };
        let right = if lies_in_own {
            None
        } else {
            self.mix(&[FILES, 22]);
            self.compare_change(Vec::new(), &[(libc::AT_FDCWD, given)])
        };
        let has_own_name = right.is_none() && !lies_in_own;
        let error = match right {
            None => native(given),
            Some(right) => {
                let name = CStr::from_bytes_until_nul(&right).unwrap_or(given);
                let (told, did) =
                    self.event(EventKind::Decision, |_| Some(bytes_of(&[native(name) as u64])));
                match words(&told)[0] as c_int {
                    0 if !did => native(name),
                    error => error,
                }
            }
        };
        let here = std::env::current_dir().unwrap_or_default();
        // It may be a link's name.
        let is_own = has_own_name && self.keep_place(Some(here.clone()));
        self.own_names.is_here = is_own || self.own_names.have_place(&here);
        error
    }
}

/// Whether two rows of names differ nowhere but where each has its own set's digit.
fn differ_in_sets(set: u8, row: &[u8], other_set: u8, other: &[u8]) -> bool {
    let is_digit = |it: u8, set: u8| it == b'0' + set;
    let alike = |(a, b): (&u8, &u8)| a == b || is_digit(*a, set) && is_digit(*b, other_set);
    row.len() == other.len() && row.iter().zip(other).all(alike)
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
        // A name that leads out of such a folder, and one that leads back.
        let own = open("real/own.1");
        let rows = [(c"../x", false), (c"..", false), (c"sub/x", true), (c"../own.1/x", true)];
        for (name, wanted) in rows {
            assert_eq!(names.have_from(own.as_raw_fd(), name), wanted, "{name:?}");
        }
        // A name from a folder's descriptor.
        names.keep(open("real").as_raw_fd(), c"own.10");
        assert!(have(&names, "real/own.10"));
        assert!(names.have(libc::AT_FDCWD, &name) && !names.have(libc::AT_FDCWD, c"real"));
        fs::remove_dir_all(&folder).expect("gone");
    }
}
