//! The names that the program has opened folders by: what it looks up from a folder's descriptor is
//! asked about, and compared, by its whole name, as that of the folder may be another in each
//! replica.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int};
use std::sync::{Mutex, MutexGuard};

use crate::files::question;
use crate::own;

/// Of longer names their ends are left out.
const NAME_MAX: usize = 4096;

/// What was opened to be read, by its descriptor: the name that the program gave.  Which of them
/// are folders is not asked, and one that is closed stays here until its number is another's.
static NAMES: Mutex<BTreeMap<c_int, CString>> = Mutex::new(BTreeMap::new());

fn names() -> MutexGuard<'static, BTreeMap<c_int, CString>> {
    NAMES.lock().unwrap_or_else(|it| it.into_inner())
}

/// The program has opened this, a name looked up from the folder `dir`.
pub(crate) fn keep(fd: c_int, dir: c_int, name: &CStr) {
    let name = whole(dir, name).into_owned();
    names().insert(fd, name);
}

/// The program has made the second descriptor of the first.
pub(crate) fn follow(from: c_int, to: c_int) {
    if from == to || !own::is_here() {
        return;
    }
    let mut names = names();
    match names.get(&from).cloned() {
        Some(name) => names.insert(to, name),
        None => names.remove(&to),
    };
}

/// The name that a folder was opened by, if that is known.
pub(crate) fn name(fd: c_int) -> Option<CString> {
    if fd < 0 { None } else { names().get(&fd).cloned() }
}

/// The name of the folder that a name is looked up from, if that is a descriptor's and known.
pub(crate) fn folder(dir: c_int, path: &CStr) -> Option<CString> {
    if path.to_bytes().starts_with(b"/") { None } else { name(dir) }
}

/// A name with that of the folder that it is looked up from.
fn whole(dir: c_int, path: &CStr) -> Cow<'_, CStr> {
    let Some(folder) = folder(dir, path) else { return Cow::Borrowed(path) };
    let mut bytes = [folder.to_bytes(), b"/", path.to_bytes()].concat();
    bytes.truncate(NAME_MAX);
    Cow::Owned(CString::new(bytes).expect("names have no zeros"))
}

/// What is asked about a name that is looked up from a folder.
pub(crate) fn question_at(words: &[u64], dir: c_int, path: &CStr) -> u64 {
    question(words, &whole(dir, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_by_all_folders_that_it_was_opened_from() {
        let (top, low) = (1 << 20, (1 << 20) + 1);
        keep(top, libc::AT_FDCWD, c"own.1");
        keep(low, top, c"x");
        assert_eq!(name(low).as_deref(), Some(c"own.1/x"));
        assert_eq!(whole(low, c"f").as_ref(), c"own.1/x/f");
        assert_eq!(whole(low, c"/f").as_ref(), c"/f");
        assert_eq!(whole(libc::AT_FDCWD, c"f").as_ref(), c"f");
        keep(low, libc::AT_FDCWD, c"y");
        assert_eq!(folder(low, c"f").as_deref(), Some(c"y"));
    }
}
