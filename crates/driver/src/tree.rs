//! Directory trees that somebody else has made, removed however they are built.
//!
//! A task may nest directories deeper than any path or stack reaches, and may put links where
//! directories were while we look.  So nothing here goes down: what lies two levels below is moved
//! up first, and every step is relative to a directory that is held open, never through a link.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmodat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Removes the directory `dir` and all below it, links themselves and not where they lead.
///
/// # Errors
/// The system's; what is left can be removed by calling again.
pub fn remove(dir: &Path) -> io::Result<()> {
    let mut top = open(AT_FDCWD, dir)?;
    let mut moved = 0u64;
    loop {
        let names = names(&mut top)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            if is_dir(&top, &name)? {
                lift(&top, &name, &mut moved)?;
            } else {
                unlinkat(&top, name.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
            }
        }
    }
    Ok(unlinkat(AT_FDCWD, dir, UnlinkatFlags::RemoveDir)?)
}

/// Empties the directory `name` of `top`, whose own directories come up into `top`, and removes it.
fn lift(top: &Dir, name: &CStr, moved: &mut u64) -> io::Result<()> {
    // Its owner may have shut it, also to itself.
    let _ = fchmodat(top, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink);
    let mut inner = open(top, name)?;
    for below in names(&mut inner)? {
        if !is_dir(&inner, &below)? {
            unlinkat(&inner, below.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
            continue;
        }
        loop {
            *moved += 1;
            let free = CString::new(format!("~{moved}")).expect("it has no zero byte");
            match renameat(&inner, below.as_c_str(), top, free.as_c_str()) {
                // A name that the tree has already, of a directory that is not empty or a file.
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                done => break done?,
            }
        }
    }
    Ok(unlinkat(top, name, UnlinkatFlags::RemoveDir)?)
}

fn open<F: AsFd, P: ?Sized + nix::NixPath>(at: F, path: &P) -> io::Result<Dir> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(Dir::openat(at, path, flags, Mode::empty())?)
}

/// What lies in `dir`, which is read from its beginning.
fn names(dir: &mut Dir) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in dir.iter() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

fn is_dir(dir: &Dir, name: &CStr) -> io::Result<bool> {
    let found = fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_tree_deeper_than_a_path_goes_and_what_links_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "mine").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        for name in ["~1", "~2", "a"] {
            fs::create_dir_all(tree.join(name).join("b/c")).unwrap();
            fs::write(tree.join(name).join("b/file"), "x").unwrap();
        }
        fs::write(tree.join("~3"), "a file of a name that is taken").unwrap();
        symlink(&kept, tree.join("link")).unwrap();
        symlink(&kept, tree.join("a/b/link")).unwrap();
        fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
        // Deeper than a path may be long, and than a stack of two mebibytes holds frames.
        let mut at = open(AT_FDCWD, &tree).unwrap();
        for _ in 0..20_000 {
            nix::sys::stat::mkdirat(&at, "deep", Mode::S_IRWXU).unwrap();
            at = open(&at, "deep").unwrap();
        }
        drop(at);
        remove(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "mine");
        assert!(remove(&tree).is_err());
        symlink(&kept, &tree).unwrap();
        assert!(remove(&tree).is_err(), "a link is no tree");
        assert!(kept.join("file").exists());
    }
}
