//! Files that are whole or absent, and directories that nobody else reads.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The mode of a data directory: its owner's alone.
pub const DIR_MODE: u32 = 0o700;

/// The mode of every file in a data directory.
pub const FILE_MODE: u32 = 0o600;

/// The mode of a directory that others pass through to what is theirs, and do not look into.
pub const PASS_MODE: u32 = 0o711;

/// The mode of a file that its group reads.
pub const SHARED_MODE: u32 = 0o640;

/// Why a directory cannot hold data of ours.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The path names something else.
    #[error("{dir} is not a directory; name a directory, or one that does not exist yet")]
    NotADir {
        /// The path.
        dir: PathBuf,
    },
    /// Others can look into it, and it is not ours to close.
    #[error("{dir} has mode {mode:03o} and holds files; close it first: chmod 700 {dir}")]
    OpenToOthers {
        /// The directory.
        dir: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It already holds something.
    #[error("{dir} is not empty; name a new directory")]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// The system said no.
    #[error("cannot use {dir} as a directory of data")]
    Io {
        /// The directory.
        dir: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
}

/// Creates `dir` with mode 0700, or sees to it that an existing one is closed to others.
///
/// An empty directory is closed; one that holds files is refused while others can look into it,
/// for those files may be shared on purpose.  That they pass through is what [`let_pass`] does.
///
/// # Errors
/// If `dir` is something else, is open to others, or cannot be made.
pub fn own_dir(dir: &Path) -> Result<(), DirError> {
    let io_error = |source| DirError::Io { dir: dir.to_owned(), source };
    match fs::metadata(dir) {
        Ok(it) if !it.is_dir() => Err(DirError::NotADir { dir: dir.to_owned() }),
        Ok(it) => {
            let mode = it.permissions().mode() & 0o777;
            if mode & !PASS_MODE == 0 {
                return Ok(());
            }
            if !is_empty(dir).map_err(io_error)? {
                return Err(DirError::OpenToOthers { dir: dir.to_owned(), mode });
            }
            fs::set_permissions(dir, Permissions::from_mode(DIR_MODE)).map_err(io_error)
        }
        Err(it) if it.kind() == io::ErrorKind::NotFound => {
            let made = DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir);
            made.and_then(|()| sync_dir(parent(dir))).map_err(io_error)
        }
        Err(it) => Err(io_error(it)),
    }
}

/// Creates `dir` like [`own_dir`], and refuses one that already holds something.
///
/// # Errors
/// As [`own_dir`], and if `dir` is not empty.
pub fn own_new_dir(dir: &Path) -> Result<(), DirError> {
    let io_error = |source| DirError::Io { dir: dir.to_owned(), source };
    if dir.is_dir() && !is_empty(dir).map_err(io_error)? {
        return Err(DirError::NotEmpty { dir: dir.to_owned() });
    }
    own_dir(dir)
}

/// Lets others pass through the data directory `dir` to its entry `open`, and closes all its other
/// entries to them.
///
/// # Errors
/// The system's.
pub fn let_pass(dir: &Path, open: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() != *open.as_os_str() {
            match close(&entry) {
                // Scratch of a file that has got its name meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
    }
    pass_dir(&dir.join(open))?;
    fs::set_permissions(dir, Permissions::from_mode(PASS_MODE))
}

/// Takes from others what they may do with `entry`.
fn close(entry: &fs::DirEntry) -> io::Result<()> {
    // A link has no mode of its own, and what it leads to is not ours to close.
    if entry.file_type()?.is_symlink() {
        return Ok(());
    }
    let mode = entry.metadata()?.permissions().mode() & 0o700;
    fs::set_permissions(entry.path(), Permissions::from_mode(mode))
}

/// Makes `dir`, if it is not there, one that others pass through and do not look into.
///
/// # Errors
/// The system's.
pub fn pass_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(PASS_MODE))
}

/// Puts `bytes` at `path` with exactly `mode`, so that a reader, or a start after a crash,
/// finds the old file or the whole new one.
///
/// # Errors
/// If the file cannot be written, synced or renamed; the old file then stands as it was.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    static N_WRITTEN: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    // Two writers of one path each need a name of their own; the last rename wins.
    let turn = N_WRITTEN.fetch_add(1, Ordering::Relaxed);
    let name = format!(".{}.{}-{turn}", name.to_string_lossy(), process::id());
    let scratch = parent(path).join(name);
    let written = write_new(&scratch, bytes, mode).and_then(|()| fs::rename(&scratch, path));
    if let Err(error) = written {
        // The first error is the one to tell; the scratch file may never have been made.
        let _ = fs::remove_file(&scratch);
        return Err(error);
    }
    sync_dir(parent(path))
}

/// Opens for reading a file that others may have put something else in the place of: no link is
/// followed, and no pipe waited for.
///
/// # Errors
/// If there is none, or what is there is no file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    plain(OpenOptions::new().read(true), path)
}

/// Opens such a file to write behind what it holds.
///
/// # Errors
/// As [`open_plain`].
pub fn append_plain(path: &Path) -> io::Result<File> {
    plain(OpenOptions::new().append(true), path)
}

/// All of such a file, of which at most `n_max` bytes are ours.
///
/// # Errors
/// As [`open_plain`], and if it holds more.
pub fn read_plain(path: &Path, n_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(n_max + 1).read_to_end(&mut bytes)?;
    if n_max < bytes.len() as u64 {
        return Err(no_file(format!("it holds more than {n_max} bytes")));
    }
    Ok(bytes)
}

/// Whether a plain file cannot be read because something else is in its place, and not because the
/// system has no room or the file is not there.
pub fn is_misplaced(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
        || error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
        || error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error())
}

fn plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(no_file("it is no file".to_owned()));
    }
    Ok(file)
}

fn no_file(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Makes the names in `dir` durable.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The directory that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(it) if !it.as_os_str().is_empty() => it,
        _ => Path::new("."),
    }
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // Created closed: `mode` may be wider, but not before the bytes are there.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(bytes)?;
    // Set apart from opening, because the umask narrows what opening asks for.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(dir)?.next().is_none())
}

/// A directory for one test, closed to others whatever the umask.
#[cfg(test)]
pub(crate) fn temp_dir() -> tempfile::TempDir {
    let mode = Permissions::from_mode(DIR_MODE);
    tempfile::Builder::new().permissions(mode).tempdir().expect("a test has room for files")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap();
        names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_no_scratch() {
        let dir = temp_dir();
        let path = dir.path().join("token");
        write_atomically(&path, b"a first, longer token", 0o600).unwrap();
        write_atomically(&path, b"second", 0o640).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(mode(&path), 0o640);
        assert_eq!(names(dir.path()), ["token"]);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_scratch() {
        let dir = temp_dir();
        let path = dir.path().join("token");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "kept").unwrap();
        write_atomically(&path, b"new", 0o600).unwrap_err();
        assert_eq!(fs::read(path.join("inside")).unwrap(), b"kept");
        assert_eq!(names(dir.path()), ["token"]);
        write_atomically(Path::new("/"), b"new", 0o600).unwrap_err();
    }

    #[test]
    fn writers_of_one_path_do_not_mix_their_bytes() {
        let dir = temp_dir();
        let path = &dir.path().join("runtime");
        std::thread::scope(|scope| {
            for byte in b'a'..=b'd' {
                scope.spawn(move || {
                    for _ in 0..10 {
                        write_atomically(path, &[byte; 5_000], 0o600).unwrap();
                        let seen = fs::read(path).unwrap();
                        assert!(seen.len() == 5_000 && seen.iter().all(|it| *it == seen[0]));
                    }
                });
            }
        });
        assert_eq!(names(dir.path()), ["runtime"]);
    }

    #[test]
    fn others_pass_to_what_is_open_and_all_else_is_closed() {
        let dir = temp_dir();
        let path = |name: &str| dir.path().join(name);
        for name in ["token", "run"] {
            fs::write(path(name), "x").unwrap();
            fs::set_permissions(path(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(path("journal")).unwrap();
        std::os::unix::fs::symlink("/", path("link")).unwrap();
        let_pass(dir.path(), Path::new("tasks")).unwrap();
        assert_eq!(["token", "run", "journal"].map(|it| mode(&path(it))), [0o700; 3]);
        assert_eq!((mode(dir.path()), mode(&path("tasks"))), (0o711, 0o711));
        own_dir(dir.path()).unwrap();
    }

    #[test]
    fn a_directory_is_made_closed_or_must_be_closed() {
        let dir = temp_dir();
        let fresh = dir.path().join("a/b");
        own_dir(&fresh).unwrap();
        assert_eq!(mode(&fresh), 0o700);
        fs::set_permissions(&fresh, Permissions::from_mode(0o755)).unwrap();
        own_dir(&fresh).unwrap();
        assert_eq!(mode(&fresh), 0o700, "an empty directory is closed");
        fs::write(fresh.join("shared"), "").unwrap();
        own_dir(&fresh).unwrap();
        fs::set_permissions(&fresh, Permissions::from_mode(0o750)).unwrap();
        let refused = own_dir(&fresh).unwrap_err().to_string();
        assert!(refused.contains("has mode 750") && refused.contains("chmod 700"), "{refused}");
        assert_eq!(mode(&fresh), 0o750, "a refusal changes nothing");
        assert!(matches!(own_new_dir(&fresh), Err(DirError::NotEmpty { .. })));
        assert!(matches!(own_dir(&fresh.join("shared")), Err(DirError::NotADir { .. })));
    }
}
