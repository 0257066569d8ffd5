//! Files that are run and are no programs themselves.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// How much of a file shows whether it is text.
const LOOK_BYTES: usize = 512;

/// The program that a script names in its first line, as the kernel reads it.
pub(super) fn interpreter(bytes: &[u8]) -> Option<PathBuf> {
    let line = bytes.strip_prefix(b"#!")?.split(|it| *it == b'\n').next()?;
    let word = line.split(|it| matches!(it, b' ' | b'\t')).find(|it| !it.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
}

/// Whether no shell can read this: it has characters that no text has.
pub(super) fn is_no_text(bytes: &[u8]) -> bool {
    const OF_TEXT: &[u8] = b"\t\n\x0c\r\x1b";
    bytes[..bytes.len().min(LOOK_BYTES)].iter().any(|it| *it < b' ' && !OF_TEXT.contains(it))
}

/// Whether the kernel was told how to run further kinds of files (binfmt_misc).
pub(super) fn may_be_of_another_kind() -> bool {
    let kinds = fs::read_dir("/proc/sys/fs/binfmt_misc").into_iter().flatten().flatten();
    kinds.map(|it| it.file_name()).any(|it| it != "register" && it != "status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_what_runs_it() {
        let check = |text: &str, wanted: Option<&str>| {
            assert_eq!(interpreter(text.as_bytes()), wanted.map(PathBuf::from), "{text:?}");
        };
        check("#!/bin/sh\nexit\n", Some("/bin/sh"));
        check("#! /usr/bin/env python3", Some("/usr/bin/env"));
        check("#!\t./own\tword\n", Some("./own"));
        check("#!/bin/sh\r\n", Some("/bin/sh\r"));
        check("#!\n/bin/sh", None);
        check("exit 0\n", None);
        assert!(is_no_text(b"a\0") && is_no_text(b"\x01") && !is_no_text("ü\t\n".as_bytes()));
        assert!(!is_no_text(b""));
    }
}
