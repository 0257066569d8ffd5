//! A job's folder: the library, the sockets and the pipes, and the memory that its processes share;
//! all gone when the job is.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::Sender;

use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use selvedge_stmr::job::{BROKEN_AT, EVENTS_IDX, HELD_AT, N_COUNTS, Rank, TALLIES_AT, TALLY_WORDS};
use selvedge_stmr::usage::Usage;
use selvedge_stmr::verdict::SetId;

use super::launcher::Launcher;
use super::outlet::Room;
use super::readers::{Pipe, Readers};
use super::{Channel, Event, MpirunError, MpirunOptions, exports, io_error, temporary, threads};

/// The library's name in the folder.
pub(super) const LIBRARY: &str = "selvedge-mpi.so";

/// The socket at which its processes call.
pub(super) const LAUNCHER: &str = "launcher";

/// What leads to the memory, on a host that is not the launcher's.
pub(super) const MEMORY: &str = "memory";

/// Which of its host's processes each process is, a line for each, once all have called.
pub(super) const LOCALS: &str = "locals";

/// How the kernel calls the memory, where it says to what a descriptor leads.
const MEMORY_NAME: &str = "selvedge-mpi";

/// The folder, which goes with its owner.
pub(super) struct Folder {
    path: PathBuf,
    /// Empty as it is made: those who share it give it its size.
    memory: File,
}

impl Folder {
    /// Makes it, with the library and all pipes in it.
    pub(super) fn make(options: &MpirunOptions, launcher: &Launcher) -> Result<Self, MpirunError> {
        let temp_dir = temporary::temp_dir()?;
        let path = tempfile::Builder::new()
            .prefix("selvedge-mpi-")
            .tempdir_in(&temp_dir)
            .map_err(io_error(format!("make a folder in {}", temp_dir.display())))?
            .keep();
        // What cannot be read is not looked at: the program may still be served.
        let mpi = launcher.library().and_then(|it| fs::read(it).ok());
        let bytes = match mpi {
            Some(mpi) => exports::keep_shared(options.library, &mpi),
            None => options.library.to_vec(),
        };
        let this = Self::around(path, &bytes)?;
        for rank in 0..options.ranks {
            for set in SetId::all(options.replicas) {
                let rank = Rank(rank as u32);
                this.make_pipe(&pipe_name(Channel::Out, rank, set))?;
                this.make_pipe(&pipe_name(Channel::Err, rank, set))?;
            }
        }
        for set in SetId::all(options.replicas) {
            this.make_pipe(&input_name(set))?;
        }
        Ok(this)
    }

    /// One in a folder that is there, without pipes.
    pub(super) fn around(path: PathBuf, library: &[u8]) -> Result<Self, MpirunError> {
        let memory = memfd_create(MEMORY_NAME, MFdFlags::MFD_CLOEXEC)
            .map_err(|e| io_error("make memory for the replicas to share")(e.into()))?;
        let this = Self { path, memory: memory.into() };
        let at = this.library();
        fs::write(&at, library).map_err(io_error(format!("write {}", at.display())))?;
        Ok(this)
    }

    /// The library that is preloaded.
    pub(super) fn library(&self) -> PathBuf {
        self.path.join(LIBRARY)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the job's processes find the memory that they share, as long as this one lives.
    pub(super) fn memory(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", process::id(), self.memory.as_raw_fd()).into()
    }

    /// Writes where all processes look that this set has lost one.
    ///
    /// # Errors
    /// [`MpirunError::Io`] if there is no memory for that.
    pub(super) fn tell_broken(&self, set: SetId) -> Result<(), MpirunError> {
        let at = (BROKEN_AT + set.idx()) as u64;
        self.memory.write_all_at(&[1], at).map_err(io_error("write memory that replicas share"))
    }

    /// Says which of its host's processes each is, to those who wait for that.
    ///
    /// # Errors
    /// [`MpirunError::Io`] if it cannot be written.
    pub(super) fn tell_locals(&self, text: &str) -> Result<(), MpirunError> {
        let (part, path) = (self.path.join("locals.part"), self.path.join(LOCALS));
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, &path))
            .map_err(io_error(format!("write {}", path.display())))
    }

    /// Writes where all processes look whether who reads the program's output holds it up.  Where
    /// that cannot be written, one that is held up for long is taken for late.
    pub(super) fn tell_held(&self, is_held: bool) {
        let _ = self.memory.write_all_at(&[u8::from(is_held)], HELD_AT as u64);
    }

    /// What a process on this host has counted, by its number in the whole job; nothing if it has
    /// not begun, or is on another host.
    pub(super) fn counts(&self, number: usize) -> [u64; N_COUNTS] {
        let tally = self.tally(number);
        std::array::from_fn(|idx| tally[idx])
    }

    /// What a process on this host does, by its number in the whole job.
    pub(super) fn usage(&self, number: usize, pid: i32) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Usage::read(&stat, self.tally(number)[EVENTS_IDX])
    }

    fn tally(&self, number: usize) -> [u64; TALLY_WORDS] {
        let row = TALLY_WORDS * size_of::<u64>();
        let mut bytes = [0; TALLY_WORDS * size_of::<u64>()];
        // Who has not begun has not given the memory its size.
        let read = self.memory.read_exact_at(&mut bytes, (TALLIES_AT + number * row) as u64);
        let word = |at: usize| {
            let bytes = bytes[at * 8..].first_chunk().expect("a row has all its words");
            u64::from_le_bytes(*bytes)
        };
        if read.is_ok() { std::array::from_fn(word) } else { [0; TALLY_WORDS] }
    }

    fn make_pipe(&self, name: &str) -> Result<(), MpirunError> {
        make_pipe(&self.path.join(name))
    }

    /// Reads what a replica prints, as far as there is room for it, from when it opens its pipe.
    pub(super) fn read_pipe(
        &self,
        channel: Channel,
        rank: Rank,
        set: SetId,
        room: &Room,
        readers: &Readers,
    ) -> Result<(), MpirunError> {
        let path = self.path.join(pipe_name(channel, rank, set));
        let mut options = File::options();
        let file = options.read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path);
        let file = file.map_err(io_error(format!("open {}", path.display())))?;
        readers.read(Pipe { file, channel, rank, set, room: room.clone() })
    }

    /// Writes what is next to the input of a replica of the first process, on a thread, since one
    /// may be slower than another.  What it has taken is told, and that it takes no more.
    pub(super) fn write_input<C: AsRef<[u8]>>(
        &self,
        set: SetId,
        sender: &Sender<Event>,
        mut next: impl FnMut() -> Option<C> + Send + 'static,
        taken: impl Fn(Option<usize>) + Send + 'static,
    ) {
        let path = self.path.join(input_name(set));
        threads::begin(sender, move || {
            let Ok(mut pipe) = File::options().write(true).open(path) else { return };
            while let Some(chunk) = next() {
                let bytes = chunk.as_ref();
                if pipe.write_all(bytes).is_err() {
                    return taken(None);
                }
                taken(Some(bytes.len()));
            }
        });
    }
}

/// Whether a path leads to the memory of a job on this host.
pub(super) fn is_memory(path: &Path) -> bool {
    let name = fs::read_link(path).unwrap_or_default();
    name.to_string_lossy().starts_with(&format!("/memfd:{MEMORY_NAME}"))
}

/// Makes a pipe that has a name, unless it is there.
pub(super) fn make_pipe(path: &Path) -> Result<(), MpirunError> {
    match mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(io::Error::from) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(io_error(format!("make {}", path.display()))(e))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The pipe of what a replica prints.
pub(super) fn pipe_name(channel: Channel, rank: Rank, set: SetId) -> String {
    let word = if channel == Channel::Out { "out" } else { "err" };
    format!("{word}.{}.{}", rank.0, set.idx())
}

/// The pipe of what a replica of the first process reads.
pub(super) fn input_name(set: SetId) -> String {
    format!("in.{}", set.idx())
}
