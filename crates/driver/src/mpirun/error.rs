//! What can keep a program from being run in replicas.

use std::io;
use std::path::PathBuf;

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum MpirunError {
    /// There is no such program.
    #[error("there is no program {program}")]
    NoProgram {
        /// What was to be run.
        program: PathBuf,
    },
    /// It is a folder.
    #[error("{program} is a folder; name a program, which may be one in it")]
    Folder {
        /// What was to be run.
        program: PathBuf,
    },
    /// It is a script, and what runs it is not there.
    #[error(
        "{program} is a script that {interpreter:?} is to run, and there is no such program; mend \
         its first line"
    )]
    NoInterpreter {
        /// The script.
        program: PathBuf,
        /// What its first line names.
        interpreter: PathBuf,
    },
    /// Nothing runs it.
    #[error(
        "{program} may be executed and is no program: neither a whole ELF file nor a script that \
         begins with #! and what runs it"
    )]
    NotRunnable {
        /// What was to be run.
        program: PathBuf,
    },
    /// The names of folders for temporary files are such that nothing can be preloaded from them.
    #[error(
        "the name of {folder:?}, where temporary files go, {why}, and neither /tmp nor /var/tmp \
         nor /dev/shm is there to write to; set TMPDIR to a folder without that"
    )]
    Unnameable {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There are not so many files.
    #[error(
        "{replicas} replicas take {files} open files of selvedge mpirun, and it may have {limit}; \
         raise that limit (`ulimit -Hn`), or start fewer"
    )]
    TooManyFiles {
        /// To be started.
        replicas: u64,
        /// What they take.
        files: u64,
        /// What there is.
        limit: u64,
    },
    /// There may not be so many processes.
    #[error(
        "{replicas} replicas on this host are {processes} processes, and {whose} allows {limit}; \
         raise that limit, start fewer, or start them on several hosts"
    )]
    TooManyProcesses {
        /// To be started.
        replicas: u64,
        /// They, and what starts them.
        processes: u64,
        /// How many there may be.
        limit: u64,
        /// What says so.
        whose: String,
    },
    /// It is there, and not to be run.
    #[error("{program} may not be executed; make it so (chmod +x), or name what runs it first")]
    MayNotRun {
        /// The program.
        program: PathBuf,
    },
    /// Nothing can be preloaded into it.
    #[error(
        "{program} is statically linked, so no library can be put before its MPI; link it \
         dynamically"
    )]
    Static {
        /// The program.
        program: PathBuf,
    },
    /// It is linked with two.
    #[error("{program} is linked with two MPI libraries, {first} and {second}; it can have one")]
    Mixed {
        /// The program.
        program: PathBuf,
        /// One of them.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
    /// The launcher is another MPI's than the program's.
    #[error(
        "{program} is linked with {library}, and {launcher} starts programs of another MPI; give \
         that MPI's own launcher, or none"
    )]
    WrongLauncher {
        /// The program.
        program: PathBuf,
        /// The library it wants.
        library: &'static str,
        /// The launcher.
        launcher: PathBuf,
    },
    /// There is none for the program's MPI.
    #[error("{program} is linked with {library}, and no launcher of that MPI is in PATH")]
    NoLauncher {
        /// The program.
        program: PathBuf,
        /// The library it wants.
        library: &'static str,
    },
    /// There is none at all.
    #[error(
        "no launcher is in PATH: there is no {name}; install an MPI, or name its launcher \
         (--launcher)"
    )]
    NoLauncherAtAll {
        /// What was looked for.
        name: PathBuf,
    },
    /// The launcher is not one of those that are served.
    #[error("{launcher} is neither Open MPI's mpirun nor a hydra nor srun, but says it is: {said}")]
    OtherLauncher {
        /// The launcher.
        launcher: PathBuf,
        /// The first line of its version.
        said: String,
    },
    /// The launcher cannot be started.
    #[error("cannot start {launcher}")]
    Launcher {
        /// The launcher.
        launcher: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The launcher ended before the program's processes were there.
    #[error(
        "{launcher} ended with {code} before the program had called MPI_Init in all processes; \
         what it said is above, and the program takes {processes} slots with its replicas"
    )]
    NotStarted {
        /// The launcher.
        launcher: PathBuf,
        /// Its exit code.
        code: i32,
        /// So many the launcher was to start.
        processes: usize,
    },
    /// The launcher started fewer processes than it was to, and these have ended.
    #[error(
        "{launcher} started {started} of {processes} processes, which ended without MPI, and no \
         other in 10 s; what it said is above"
    )]
    NotAllStarted {
        /// The launcher.
        launcher: PathBuf,
        /// So many it started.
        started: usize,
        /// So many it was to start.
        processes: usize,
    },
    /// The system said no.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// For `map_err`: what was tried when the system said no.
pub(super) fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> MpirunError {
    let what = what.into();
    move |source| MpirunError::Io { what, source }
}
