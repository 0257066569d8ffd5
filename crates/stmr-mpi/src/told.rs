//! What the launcher told a replica, and who of its processes is the replica.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::sync::OnceLock;

use selvedge_stmr::greet::Secret;
use selvedge_stmr::numbers::{LOCAL, Place};
use selvedge_stmr::report::Report;

/// What the launcher told this process in its environment.
pub(crate) struct Told {
    pub(crate) set: usize,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// Which of its host's processes this one is.
    pub(crate) local: Place,
    pub(crate) replicas: usize,
    pub(crate) folder: PathBuf,
    /// Where the memory is that all processes of the job share.
    pub(crate) memory: CString,
    /// The socket to the launcher, which this process inherited.
    pub(crate) link: i32,
    /// What all processes of the job know, if some may be on other hosts.
    pub(crate) secret: Option<Secret>,
    /// This process when it was loaded: one that it forks is another.
    pub(crate) pid: usize,
    /// The process that was started as the replica: this one, or it has started this one.
    pub(crate) first: Option<usize>,
    /// Who has started the job.
    pub(crate) parent: usize,
    /// Drawn by the launcher, the same for all replicas of a process.
    pub(crate) dice: u64,
    /// Contents are compared in full, beside their digests.
    pub(crate) compares_full: bool,
    /// What is sent is compared where it comes in.
    pub(crate) compares_at_receiver: bool,
    /// So many sends are compared at a time.
    pub(crate) window: u64,
    /// MPI's own communicator of all processes is this replica's set.
    pub(crate) is_whole_job: bool,
    /// The launcher gives its processes a terminal for what they print.
    pub(crate) has_terminal: bool,
    /// When the launcher started: since 1970, and of the clock that is never set, in nanoseconds.
    pub(crate) epoch: [u64; 2],
}

/// Who has taken the place of this replica, for the processes that it starts: a process's number,
/// or 0 with room for one.
const TAKEN: &CStr = c"SELVEDGE_TAKEN";

/// What this process was told, if it is a replica.
pub(crate) fn told() -> Option<&'static Told> {
    static TOLD: OnceLock<Option<Told>> = OnceLock::new();
    TOLD.get_or_init(|| {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let told = Told {
            set: number("SELVEDGE_SET")?,
            rank: number("SELVEDGE_RANK")?,
            ranks: number("SELVEDGE_RANKS")?,
            local: Place::from_text(&std::env::var(LOCAL).ok()?)?,
            replicas: number("SELVEDGE_REPLICAS")?,
            folder: std::env::var_os("SELVEDGE_FOLDER")?.into(),
            memory: CString::new(std::env::var("SELVEDGE_MEMORY").ok()?).ok()?,
            link: number("SELVEDGE_LINK")? as i32,
            secret: std::env::var("SELVEDGE_SECRET").ok().and_then(|it| Secret::from_text(&it)),
            pid: native_pid(),
            first: number("SELVEDGE_FIRST"),
            parent: number("SELVEDGE_PARENT")?,
            dice: number("SELVEDGE_DICE")? as u64,
            is_whole_job: std::env::var_os("SELVEDGE_JOB_OF_SET").is_some(),
            compares_full: std::env::var("SELVEDGE_COMPARE").is_ok_and(|it| it == "full"),
            compares_at_receiver: std::env::var_os("SELVEDGE_COMPARE_AT").is_some(),
            window: number("SELVEDGE_WINDOW").unwrap_or(1) as u64,
            has_terminal: std::env::var_os("SELVEDGE_TERMINAL").is_some(),
            epoch: [number("SELVEDGE_EPOCH")? as u64, number("SELVEDGE_UPTIME")? as u64],
        };
        // A process that a replica starts is none, though it inherits the variables.
        let taken: Option<usize> = TAKEN.to_str().ok().and_then(number);
        taken.is_none_or(|it| [0, native_pid()].contains(&it)).then_some(told)
    })
    .as_ref()
}

/// Takes the place of the replica.
pub(crate) fn take_place() {
    let at = unsafe { libc::getenv(TAKEN.as_ptr()) };
    if at.is_null() {
        return;
    }
    // To add to the environment takes memory of the program's allocator, which may be what asks.
    let length = unsafe { CStr::from_ptr(at) }.count_bytes();
    let text = format!("{:0length$}", native_pid());
    if text.len() == length {
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), length) };
    }
}

/// This process's true number.
pub(crate) fn native_pid() -> usize {
    unsafe { libc::syscall(libc::SYS_getpid) as usize }
}

/// Tells the launcher something, whatever is under way.
pub(crate) fn tell_launcher(report: Report<'_>) {
    tell_launcher_line(&format!("{report}\n"));
}

/// The same of a line that is written already, with its end.
pub(crate) fn tell_launcher_line(line: &str) {
    let link = told().map_or(-1, |it| it.link);
    unsafe { libc::send(link, line.as_ptr().cast(), line.len(), libc::MSG_NOSIGNAL) };
}
