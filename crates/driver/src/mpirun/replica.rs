//! What a process does before it becomes the program.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, io, process, thread};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{self, MsgFlags};
use selvedge_stmr::job::Rank;
use selvedge_stmr::numbers::{self, LAUNCHERS, Place};
use selvedge_stmr::verdict::{REPLICAS_MAX, SetId};

use super::folder::{
    LAUNCHER, LIBRARY, LOCALS, MEMORY, input_name, is_memory, make_pipe, pipe_name,
};
use super::hosts::REACH;
use super::program::ADDED;
use super::{Channel, MpirunError, agent, fits, io_error, launcher};

/// Where launchers write a process's number.
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];

/// Says in the environment of a process that it has a supervisor.
const SUPERVISED: &str = "SELVEDGE_SUPERVISED";

/// Stands between hydra and a replica.
///
/// Hydra ends the whole job when a process ends and its socket closes before the process has said
/// `cmd=finalize`.  So the process that hydra knows keeps that socket open, starts the replica,
/// and says it when the replica is gone, however it went.
fn supervise() -> Result<std::convert::Infallible, MpirunError> {
    let own = env::current_exe().map_err(io_error("find this program itself"))?;
    let replica = Command::new(own).args(env::args_os().skip(1)).env(SUPERVISED, "1").status();
    replica.map_err(io_error("start a replica"))?;
    // A socket that is closed has nobody who could be told.
    let _ = launcher::tell_finalized();
    process::exit(0)
}

/// Becomes `program` as the replica that the launcher's number says; returns only if it cannot.
///
/// World rank 3h + s is replica s of rank h (seed 003 §3.1), unless each set is a job.
///
/// # Errors
/// [`MpirunError`].
pub fn become_replica(program: &[OsString]) -> Result<std::convert::Infallible, MpirunError> {
    if launcher::is_hydra() {
        if env::var_os(SUPERVISED).is_none() {
            return supervise();
        }
        // Without the process that hydra knows, nobody could end this one.
        prctl::set_pdeathsig(Signal::SIGKILL)
            .map_err(|e| io_error("be tied to its supervisor")(e.into()))?;
    }
    let number = |name: &str| -> Option<usize> { env::var(name).ok()?.parse().ok() };
    let missing = || io::Error::other("selvedge mpirun starts it with its variables set");
    let found = RANKS.iter().find_map(|it| number(it));
    let sizes = (number("SELVEDGE_RANKS"), number("SELVEDGE_REPLICAS"));
    let rows = (found, sizes, env::var_os("SELVEDGE_FOLDER"));
    let (Some(number), (Some(ranks), Some(replicas @ 1..=REPLICAS_MAX)), Some(folder)) = rows
    else {
        return Err(io_error("become a replica")(missing()));
    };
    let (rank, set) = match number_of_set() {
        Some(set) => (number, set.min(replicas - 1)),
        None => (number / replicas, number % replicas),
    };
    let (rank, set) = (Rank(rank as u32), SetId::new(set));
    // First of all, so that the launcher sees this process's end whenever it comes.
    let Home { folder, memory, mut link } = find_home(PathBuf::from(folder), rank, set)?;
    let hello = format!("hello {} {} {}\n", rank.0, set.idx(), process::id());
    link.write_all(hello.as_bytes()).map_err(io_error("call the launcher"))?;
    fcntl(&link, FcntlArg::F_SETFD(FdFlag::empty()))
        .map_err(|e| io_error("call the launcher")(e.into()))?;
    let open = |name: String| {
        let path = folder.join(name);
        let opened = File::options().write(true).open(&path);
        opened.map_err(io_error(format!("open {}", path.display())))
    };
    let out = open(pipe_name(Channel::Out, rank, set))?;
    let err = open(pipe_name(Channel::Err, rank, set))?;
    let input = if rank.0 == 0 { folder.join(input_name(set)) } else { "/dev/null".into() };
    let input = File::open(&input).map_err(io_error(format!("open {}", input.display())))?;
    // Addresses that differ between replicas are printed, sorted by and sent.
    personality::get()
        .and_then(|it| personality::set(it | Persona::ADDR_NO_RANDOMIZE))
        .map_err(|e| io_error("turn off random addresses")(e.into()))?;
    let preload = preload(&folder);
    let world = Place { rank: rank.0 as usize, ranks };
    let local = find_local(&folder, &link, world)?;
    let told: [(&str, OsString); 9] = [
        (numbers::LOCAL, local.to_text().into()),
        ("SELVEDGE_SET", set.idx().to_string().into()),
        ("SELVEDGE_RANK", rank.0.to_string().into()),
        ("SELVEDGE_FIRST", process::id().to_string().into()),
        ("SELVEDGE_TAKEN", "0000000000".into()),
        ("SELVEDGE_LINK", link.as_raw_fd().to_string().into()),
        ("SELVEDGE_FOLDER", folder.into()),
        ("SELVEDGE_MEMORY", memory),
        (PRELOAD, preload),
    ];
    let error = Command::new(&program[0])
        .args(&program[1..])
        .env_clear()
        .envs(environment(told, world, local))
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(out))
        .stderr(Stdio::from(err))
        .exec();
    // Nobody is left to hear that this could not be said.
    let _ = link.write_all(b"never 126\n");
    Err(io_error(format!("start {}", program[0].display()))(error))
}

/// The library, before what else is preloaded.
fn preload(folder: &Path) -> OsString {
    let mut preload = folder.join(LIBRARY).into_os_string();
    if let Some(others) = env::var_os(PRELOAD) {
        preload.push(":");
        preload.push(others);
    }
    preload
}

/// Which of the processes on its host this one is.  Where there may be several hosts, that is known
/// once all processes have called, and is the same for all replicas of one.
fn find_local(folder: &Path, link: &UnixStream, world: Place) -> Result<Place, MpirunError> {
    if env::var_os(REACH).is_none() {
        return Ok(world);
    }
    let failed = "learn which processes run on this host";
    loop {
        if let Ok(text) = fs::read_to_string(folder.join(LOCALS)) {
            let place = text.lines().nth(world.rank).and_then(Place::from_text);
            let none = || io_error(failed)(io::ErrorKind::InvalidData.into());
            return place.ok_or_else(none);
        }
        // What the launcher says meanwhile is for the library to read.
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        if let Ok(0) = socket::recv(link.as_raw_fd(), &mut [0], flags) {
            return Err(io_error(failed)(io::ErrorKind::UnexpectedEof.into()));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// How often a process looks whether all have called.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What the program finds in its environment.
fn environment(
    told: [(&str, OsString); 9],
    world: Place,
    local: Place,
) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = env::vars_os().collect();
    hide_numbers(&mut all, world, local);
    let names = told.each_ref().map(|it| it.0);
    all.extend(told.map(|(name, value)| (name.into(), value)));
    // What the program prints goes to a pipe, but in lines where it would to a terminal.
    all.remove(OsStr::new(TERMINAL));
    if io::stdout().is_terminal() {
        all.insert(TERMINAL.into(), "1".into());
    }
    all.insert(ADDED.into(), added(&all, &names));
    all.insert(FILL.into(), fill(&all));
    all
}

/// What was added to the environment before, and what this process adds to it, also under `names`.
fn added(all: &BTreeMap<OsString, OsString>, names: &[&str]) -> OsString {
    let names = names.iter().filter(|it| **it != PRELOAD);
    let names = names.chain(&[TERMINAL, FILL, SUPERVISED, ADDED]).map(OsStr::new);
    let is_kept = |it: &&OsString| it.as_encoded_bytes().starts_with(LAUNCHERS.as_bytes());
    let kept = all.keys().filter(is_kept).map(OsString::as_os_str);
    let before = all.get(OsStr::new(ADDED)).map(OsString::as_os_str);
    before.into_iter().chain(names).chain(kept).collect::<Vec<_>>().join(OsStr::new(" "))
}

/// What is loaded before the program's libraries; what others have there stays.
const PRELOAD: &str = "LD_PRELOAD";

/// What the program finds in its environment is its own number, as without replicas; MPI gets what
/// its launcher said, from beside it, when it begins.
fn hide_numbers(all: &mut BTreeMap<OsString, OsString>, world: Place, local: Place) {
    for (name, own) in numbers::own(world, local) {
        let Some(launchers) = all.get_mut(OsStr::new(name)) else { continue };
        let launchers = std::mem::replace(launchers, own.into());
        all.insert(format!("{}{name}", LAUNCHERS).into(), launchers);
    }
}

/// What makes a replica's environment as long as its siblings': the program's stack begins below
/// it, and programs send addresses of what lies there.
fn fill(all: &BTreeMap<OsString, OsString>) -> OsString {
    let is_each_ones =
        |name: &OsString| EACH_ONES.iter().any(|it| name.as_encoded_bytes().starts_with(it));
    let rows = all.iter().filter(|it| is_each_ones(it.0));
    let length: usize = rows.map(|(name, value)| name.len() + value.len()).sum();
    "-".repeat(FILLED.saturating_sub(length)).into()
}

/// Says that the launcher gives its processes a terminal to print to.
const TERMINAL: &str = "SELVEDGE_TERMINAL";

/// Fills what launchers and this one say to each process.
const FILL: &str = "SELVEDGE_FILL";

/// How the names begin of what may be another in each replica.
const EACH_ONES: [&[u8]; 8] =
    [b"SELVEDGE_", b"OMPI_", b"OPAL_", b"ORTE_", b"PRTE_", b"PMI", b"MPI", b"SLURM_"];

/// Bytes that all of these have together.
const FILLED: usize = 8192;

/// The set that the whole job of this process is, if it is one.
fn number_of_set() -> Option<usize> {
    env::var(launcher::JOB_OF_SET).ok()?.parse().ok()
}

/// What a process finds on its host: the job's folder, the memory that it shares with the others
/// there, and the link to the launcher, which the program inherits.
struct Home {
    folder: PathBuf,
    memory: OsString,
    link: UnixStream,
}

/// The launcher's own host if this is it, or else one whose agent speaks for it.
fn find_home(folder: PathBuf, rank: Rank, set: SetId) -> Result<Home, MpirunError> {
    let memory = env::var_os("SELVEDGE_MEMORY").unwrap_or_default();
    let failed = |e: io::Error| io_error("call the launcher")(e);
    let called = UnixStream::connect(folder.join(LAUNCHER));
    // Another host may have the folder as well, and this number be another process's there.
    match called {
        Ok(link) if is_memory(Path::new(&memory)) => {
            fits::give_back()?;
            return Ok(Home { folder, memory, link });
        }
        Err(e) if env::var_os(REACH).is_none() => {
            let why = "this process is on another host than selvedge mpirun, which listens for \
                       none; give it --between-hosts yes";
            return Err(failed(io::Error::new(e.kind(), format!("{why}: {e}"))));
        }
        Ok(_) | Err(_) => {}
    }
    let folder = agent::join()?;
    for channel in [Channel::Out, Channel::Err] {
        make_pipe(&folder.join(pipe_name(channel, rank, set)))?;
    }
    if rank.0 == 0 {
        make_pipe(&folder.join(input_name(set)))?;
    }
    let link = UnixStream::connect(folder.join(LAUNCHER)).map_err(failed)?;
    let memory = folder.join(MEMORY).into_os_string();
    Ok(Home { folder, memory, link })
}
