//! The environment of what the program starts by the shell: the program's own, without what
//! `selvedge mpirun` has added to it.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

/// How the name of the file ends that is this library.
const LIBRARY: &[u8] = b"/selvedge-mpi.so";

const PRELOAD: &[u8] = b"LD_PRELOAD=";

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Rows of an environment, one of which may be made for it.
pub(crate) struct Environment {
    rows: Vec<*const c_char>,
    _preload: Option<CString>,
}

impl Environment {
    /// As the program would have it without replicas.
    pub(crate) fn plain() -> Self {
        let added = std::env::var("SELVEDGE_ADDED").unwrap_or_default();
        let added: BTreeSet<&[u8]> = added.split(' ').map(str::as_bytes).collect();
        // There is none behind clearenv(3).
        let all = |idx| unsafe { if environ.is_null() { null() } else { *environ.add(idx) } };
        let all = (0..).map(all).take_while(|it| !it.is_null());
        let (mut rows, mut preload) = (Vec::new(), None);
        for row in all {
            let text = unsafe { CStr::from_ptr(row) }.to_bytes();
            let name = text.split(|it| *it == b'=').next().unwrap_or_default();
            if let Some(paths) = text.strip_prefix(PRELOAD) {
                preload = others(paths);
            } else if !added.contains(name) && !added.contains(text) {
                rows.push(row);
            }
        }
        rows.extend(preload.as_ref().map(|it| it.as_ptr()));
        rows.push(null());
        Self { rows, _preload: preload }
    }

    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.rows.as_ptr()
    }
}

/// What else is preloaded, as a row, if anybody has said something of that.
fn others(paths: &[u8]) -> Option<CString> {
    let is_end = |it: &u8| [b':', b' '].contains(it);
    let mut rest = paths;
    let mut kept = Vec::new();
    let mut had_own = false;
    while !rest.is_empty() {
        let length = rest.iter().position(is_end).map_or(rest.len(), |it| it + 1);
        let (path, after) = rest.split_at(length);
        if path.strip_suffix(b":").unwrap_or(path).ends_with(LIBRARY) {
            had_own = true;
        } else {
            kept.extend(path);
        }
        rest = after;
    }
    let was_alone = had_own && kept.is_empty() && !paths.ends_with(b":");
    if was_alone { None } else { CString::new([PRELOAD, &kept].concat()).ok() }
}
