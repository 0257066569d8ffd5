//! Files that are none: the kernel's dice, and what it says of itself, which differs between
//! replicas and moments.  The meta's answer is all replicas' answer.

use std::ffi::{CStr, c_int};

use crate::files::{self, Opening};
use crate::state::State;

/// The most that is shared of what the kernel says in one file, in bytes.
const TEXT_MAX: usize = 1 << 20;

/// What is each process's own and of use to nobody else.
const OWN: [&[u8]; 8] =
    [b"maps", b"smaps", b"mem", b"pagemap", b"auxv", b"exe", b"comm", b"environ"];

/// Short texts that say how things stand: a program may look at one again and again while it waits.
const LOOKED_AT: [&[u8]; 6] = [b"stat", b"statm", b"status", b"loadavg", b"meminfo", b"uptime"];

/// Whether it is random bytes.
pub(crate) fn is_dice(path: &CStr) -> bool {
    matches!(path.to_bytes(), b"/dev/urandom" | b"/dev/random")
}

/// Whether it is a device.  In the folder of memory that has names, files are files: what MPI keeps
/// there it makes within its own calls.  Where replicas are on several hosts each has that of its
/// own.
pub(crate) fn is_device(path: &CStr) -> bool {
    let rest = path.to_bytes().strip_prefix(b"/dev/");
    rest.is_some_and(|it| !it.starts_with(b"shm/") || files::spans_hosts())
}

/// Whether the kernel makes its contents up.
pub(crate) fn is_kernels(path: &CStr) -> bool {
    let path = path.to_bytes();
    path.starts_with(b"/proc/") || path.starts_with(b"/sys/")
}

fn file_name(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|it| *it == b'/').next().unwrap_or_default()
}

/// Whether it is a text of the kernel's that all replicas are to read alike.
pub(crate) fn is_shared_text(path: &CStr, flags: c_int) -> bool {
    is_kernels(path)
        && flags & (libc::O_ACCMODE | libc::O_DIRECTORY | libc::O_PATH) == libc::O_RDONLY
        && !OWN.contains(&file_name(path))
}

/// Opens what the meta reads there, as a file in memory.
pub(crate) fn open_text(state: &mut State, opening: &Opening<'_>) -> Result<c_int, c_int> {
    let &Opening { dir, path, flags, mode } = opening;
    // An error, whether it is a text, and the text.
    let look = || match files::native_open(dir, path, flags, mode) {
        Err(error) => files::bytes_of(&[error as u64, 1]),
        Ok(fd) => {
            let text = read_all(fd);
            files::native_close(fd);
            let mut row = files::bytes_of(&[0, u64::from(text.is_some())]);
            row.extend(text.unwrap_or_default());
            row
        }
    };
    let what = [files::FILES, 6];
    let answer = if LOOKED_AT.contains(&file_name(path)) {
        state.look_or_recall(files::question(&what, path), look)
    } else {
        state.settled(&what, look)
    };
    let words = files::words(&answer[..16]);
    match (words[0], words[1]) {
        (0, 0) => files::native_open(dir, path, flags, mode),
        (0, _) => {
            let memory = in_memory(&answer[16..]);
            if memory < 0 { Err(files::last_error()) } else { Ok(memory) }
        }
        (error, _) => Err(error as c_int),
    }
}

/// All that can be read, if it is a text of bearable length.
fn read_all(fd: c_int) -> Option<Vec<u8>> {
    let (mut text, mut chunk) = (Vec::new(), [0_u8; 1 << 14]);
    loop {
        let to = chunk.as_mut_ptr();
        match unsafe { libc::syscall(libc::SYS_read, fd, to, chunk.len()) } {
            0 => return Some(text),
            n if 0 < n && text.len() < TEXT_MAX => text.extend(&chunk[..n as usize]),
            _ => return None,
        }
    }
}

fn in_memory(text: &[u8]) -> c_int {
    let memory = unsafe { libc::memfd_create(c"selvedge".as_ptr(), libc::MFD_CLOEXEC) };
    let mut done = 0;
    while 0 <= memory && done < text.len() {
        let from = text[done..].as_ptr();
        let n = unsafe { libc::syscall(libc::SYS_write, memory, from, text.len() - done) };
        if n <= 0 {
            files::native_close(memory);
            return -1;
        }
        done += n as usize;
    }
    files::native_seek(memory, 0, libc::SEEK_SET);
    memory
}
