//! Folders for a job's own files: those for temporary files, but for names that the dynamic linker
//! or a socket cannot have.
//!
//! The library lies in the job's folder and is preloaded by its path.  `LD_PRELOAD` ends a path at
//! a space or a colon, and nothing in it can say that one is a part of a name; `$ORIGIN` and its
//! kin are replaced (ld.so(8)).

use std::env;
use std::path::{Path, PathBuf, absolute};

use nix::unistd::{AccessFlags, access};

use super::{MpirunError, io_error};

/// What else there may be, where the folder for temporary files has such a name.
const OTHERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Bytes of a socket's path, with the one that ends it.
const SOCKET_MAX: usize = 108;

/// What a job adds at the most: `/selvedge-mpi-`, words for the job and the host, `/launcher`.
const ADDED_MAX: usize = 14 + 16 + 1 + 8 + 9;

/// The folder for temporary files, or another one if its name cannot be used.
///
/// # Errors
/// [`MpirunError::Unnameable`] if there is no other.
pub fn temp_dir() -> Result<PathBuf, MpirunError> {
    let wanted = env::temp_dir();
    // Nothing was meant by an empty name.
    let wanted = if wanted.as_os_str().is_empty() { OTHERS[0].into() } else { wanted };
    let wanted = absolute(&wanted).map_err(io_error(format!("find {}", wanted.display())))?;
    let Some(why) = fault_of(&wanted) else { return Ok(wanted) };
    let rights = AccessFlags::W_OK | AccessFlags::X_OK;
    let mut others = OTHERS.iter().map(PathBuf::from);
    let other = others.find(|it| it.is_dir() && access(it, rights).is_ok());
    other.ok_or(MpirunError::Unnameable { folder: wanted, why })
}

/// Why a job's files cannot lie in a folder of this name.
fn fault_of(folder: &Path) -> Option<&'static str> {
    let is_split = |it: char| it.is_whitespace() || it == ':';
    match folder.to_str() {
        None => Some("is no text"),
        Some(it) if it.contains(is_split) => Some("has a space or a colon in it"),
        Some(it) if it.contains('$') => Some("has a $ in it"),
        Some(it) if it.contains(char::is_control) => Some("has a control character in it"),
        Some(it) if SOCKET_MAX <= it.len() + ADDED_MAX => Some("is too long for a socket in it"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_the_dynamic_linker_cannot_name_is_known_by_its_name() {
        let long = format!("/{}", "l".repeat(SOCKET_MAX - ADDED_MAX - 1));
        for bad in ["/a b", "/a:b", "/$ORIGIN", "/a\nb", "/a\u{7}", &long] {
            assert!(fault_of(Path::new(bad)).is_some(), "{bad:?}");
        }
        for good in ["/tmp", "/data/ü,ö;'\"", &long[1..]] {
            assert_eq!(fault_of(Path::new(good)), None, "{good:?}");
        }
    }
}
