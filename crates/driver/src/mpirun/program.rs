//! The program and its launcher: what they are, how they are started and ended.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, process, thread};

use nix::sys::signal::{self, Signal};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;
use nix::unistd::{AccessFlags, Pid, access};
use selvedge_stmr::verdict::SetId;

use super::daemons::Agent;
use super::folder::Folder;
use super::hosts::Door;
use super::launcher::{self, Family, JOB_OF_SET, Launcher};
use super::{Event, MpirunError, MpirunOptions, command, fits, io_error, reach, script, threads};

/// Where a process that somebody else started finds the program that makes it a replica.
const REPLICA_BY: &str = "SELVEDGE_REPLICA_BY";

/// How much of a program is looked at for the libraries that it wants.
const LOOK_MAX: u64 = 256 << 20;

/// Lines that Open MPI 4 prints whenever a process may die and the rest go on.
const EXPECTED: &str = "PMIX ERROR: BAD-PARAM in file";

/// The files of MPI libraries that programs are linked with.
const LIBRARIES: [(Family, &str); 4] = [
    (Family::OpenMpi, "libmpi.so.40"),
    (Family::Mpich, "libmpich.so.12"),
    (Family::Mpich, "libmpi.so.12"),
    (Family::Mpich, "libmpi_abi.so.1"),
];

/// How a program begins.
const ELF: &[u8] = b"\x7fELF";

/// Looks at what can be known before anything is started, and finds the launcher.
pub(super) fn check(options: &MpirunOptions) -> Result<Launcher, MpirunError> {
    let program = PathBuf::from(&options.program[0]);
    let path = find(&program).ok_or_else(|| match program.is_dir() {
        true => MpirunError::Folder { program: program.clone() },
        false => MpirunError::NoProgram { program: program.clone() },
    })?;
    if !may_be_run(&path) {
        return Err(MpirunError::MayNotRun { program });
    }
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|it| it.take(LOOK_MAX).read_to_end(&mut bytes))
        .map_err(io_error(format!("read {}", path.display())))?;
    let mut library = None;
    if bytes.starts_with(ELF) {
        if has_interpreter(&bytes).ok_or(MpirunError::NotRunnable { program: program.clone() })? {
            library = find_library(&program, &path)?;
        } else {
            return Err(MpirunError::Static { program });
        }
    } else if let Some(interpreter) = script::interpreter(&bytes)
        && !interpreter.exists()
    {
        return Err(MpirunError::NoInterpreter { program, interpreter });
    }
    let launcher = launcher::choose(options, library)?;
    if is_run_by_no_one(&bytes, launcher.family) {
        return Err(MpirunError::NotRunnable { program });
    }
    Ok(launcher)
}

/// Whether a file is no program to the kernel, and to a launcher nothing that a shell may run:
/// hydra gives a text to one, Open MPI does not.
fn is_run_by_no_one(bytes: &[u8], family: Family) -> bool {
    let is_known = bytes.starts_with(ELF) || script::interpreter(bytes).is_some();
    let is_text = family != Family::OpenMpi && !script::is_no_text(bytes);
    !is_known && !is_text && !script::may_be_of_another_kind()
}

/// The MPI that a program is linked with, by itself or by another library, as the dynamic linker
/// finds it; nothing if that does not answer.
fn find_library(
    program: &Path,
    path: &Path,
) -> Result<Option<(Family, &'static str)>, MpirunError> {
    let ask = |ldd: &str| command(Path::new(ldd)).arg(path).stderr(Stdio::null()).output();
    let Ok(out) = ask("ldd").or_else(|_| ask("/usr/bin/ldd")) else { return Ok(None) };
    let text = String::from_utf8_lossy(&out.stdout);
    let named = |file: &str| text.lines().any(|it| it.split_whitespace().next() == Some(file));
    let mut found = LIBRARIES.iter().copied().filter(|it| named(it.1));
    match (found.next(), found.next()) {
        (Some((_, first)), Some((_, second))) => {
            Err(MpirunError::Mixed { program: program.to_owned(), first, second })
        }
        (first, _) => Ok(first),
    }
}

/// Where a program is, as a shell would find it.
pub(super) fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).map(|it| it.join(program)).find(|it| it.is_file() && may_be_run(it))
}

/// Whether a file is one that is run by its name.
fn may_be_run(path: &Path) -> bool {
    access(path, AccessFlags::X_OK).is_ok()
}

/// Whether a program names an interpreter, which is what loads a library before it; nothing if it
/// ends before it says so.
fn has_interpreter(elf: &[u8]) -> Option<bool> {
    let half = |at: usize| elf.get(at..)?.get(..2).map(|it| u16::from_le_bytes([it[0], it[1]]));
    let table = elf.get(32..40)?.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (size, n) = (half(54)?, half(56)?);
    const INTERPRETER: u16 = 3;
    Some((0..u64::from(n)).any(|row| {
        let at = table.wrapping_add(row * u64::from(size));
        usize::try_from(at).ok().and_then(half) == Some(INTERPRETER)
    }))
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|it| it == text)
}

/// What is started.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) options: &'a MpirunOptions,
    pub(super) folder: &'a Folder,
    /// Where other hosts call, if there may be any.
    pub(super) door: Option<&'a Door>,
    /// It is not the first start of the program.
    pub(super) again: bool,
}

/// Starts the launcher, or one for each set, and tells when it has ended.
pub(super) fn launch(
    start: Start<'_>,
    launcher: &Launcher,
    sender: &Sender<Event>,
) -> Result<Vec<Child>, MpirunError> {
    let Start { options, folder, door, again } = start;
    let mut shared = shared_variables(options)?;
    shared.push(("SELVEDGE_FOLDER", folder.path().into()));
    shared.push(("SELVEDGE_MEMORY", folder.memory().into()));
    shared.push(("SELVEDGE_LAUNCHER", launcher.word().into()));
    shared.extend(door.into_iter().flat_map(Door::variables));
    if launcher.is_nobody() {
        shared.push((REPLICA_BY, options.own_program.clone().into()));
        let names: Vec<&str> = shared.iter().map(|it| it.0).collect();
        shared.push((ADDED, names.join(" ").into()));
        tell_variables(options, folder, &shared)?;
        return Ok(Vec::new());
    }
    shared.extend(fits::files_before());
    let agent = Agent::guard(options, launcher, folder)?;
    let start = |n: usize, set: Option<SetId>| {
        // Two launchers of Open MPI 4 that share a folder remove each other's in it.
        let scratch = match set {
            Some(set) => folder.path().join(format!("set-{}", set.idx())),
            None => folder.path().to_owned(),
        };
        let set = set.map(|it| (JOB_OF_SET, OsString::from(it.idx().to_string())));
        let told: Vec<_> =
            shared.iter().cloned().chain(set).chain([(ADDED, OsString::new())]).collect();
        let names = told.iter().map(|it| it.0).filter(|_| door.is_some());
        let args = agent.args(&options.launcher_args);
        let mut command = launcher.command(options, &args, &scratch, n, names);
        command.arg(&options.own_program).arg("mpirun-replica").arg("--");
        match &options.restart_command {
            Some(line) if again => command.args(["sh", "-c"]).arg(line),
            _ => command.args(&options.program),
        };
        command.envs(told);
        let added = added(&command);
        command.env(ADDED, added);
        spawn(&mut command, launcher, sender)
    };
    if options.sets_are_jobs {
        let one = |set| start(options.ranks, Some(set));
        SetId::all(options.replicas).map(one).collect()
    } else {
        Ok(vec![start(options.ranks * options.replicas, None)?])
    }
}

/// What is added to the environment of processes, by name: what their program has a shell do finds
/// what it would without replicas.  A name that others have too stands with its value, for the
/// program may give it another.
pub(super) const ADDED: &str = "SELVEDGE_ADDED";

/// What a launcher is told that was not there before.
fn added(command: &Command) -> OsString {
    let is_new = |name: &OsStr, value: &OsStr| env::var_os(name).is_none_or(|it| it != value);
    let row = |(name, value): (&OsStr, Option<&OsStr>)| {
        let value = value.filter(|it| is_new(name, it))?.to_str()?;
        let name = name.to_str()?;
        let is_own = name.starts_with("SELVEDGE_") || value.contains(' ');
        Some(if is_own { name.to_owned() } else { format!("{name}={value}") })
    };
    let rows: Vec<String> = command.get_envs().filter_map(row).collect();
    rows.join(" ").into()
}

/// Tells whoever starts the processes what they need in their environment, as a shell reads it.
fn tell_variables(
    options: &MpirunOptions,
    folder: &Folder,
    shared: &[(&'static str, OsString)],
) -> Result<(), MpirunError> {
    let quote = |it: &OsString| format!("'{}'", it.to_string_lossy().replace('\'', "'\\''"));
    let mut text: String =
        shared.iter().map(|(name, it)| format!("export {name}={}\n", quote(it))).collect();
    let preload = quote(&folder.library().into());
    text += &format!("export LD_PRELOAD={preload}${{LD_PRELOAD:+:$LD_PRELOAD}}\n");
    let n = options.ranks * options.replicas;
    let program = options.program[0].display();
    let Some(path) = &options.env_file else {
        let head = format!("selvedge: start {n} processes of {program} as one job with this:\n");
        return io::stderr()
            .write_all((head + &text).as_bytes())
            .map_err(io_error("write on standard error"));
    };
    // Who waits for it to be there finds all of it.
    let part = path.with_extension("part");
    fs::write(&part, text)
        .and_then(|()| fs::rename(&part, path))
        .map_err(io_error(format!("write {}", path.display())))
}

/// What programs and MPIs are told, unless it is set otherwise.
const DEFAULTS: [(&str, &str); 6] = [
    // UCX's standard output is the program's, whose output is compared.
    ("UCX_LOG_FILE", "stderr"),
    ("PYTHONHASHSEED", "0"),
    // A process that waits in MPICH lets others run; from 4.3 on it sleeps after so many looks.
    ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
    ("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"),
    ("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "100"),
    // Where such memory ends, which all sets have in common, MPICH adds in another order, and in
    // one set sooner than in another; in KiB, whose bytes are 31 bits.
    ("MPIR_CVAR_COLL_SHM_LIMIT_PER_NODE", "2097151"),
];

/// What every process is told.
fn shared_variables(options: &MpirunOptions) -> Result<Vec<(&'static str, OsString)>, MpirunError> {
    let dice = u64::from_le_bytes(reach::draw().map_err(io_error("read /dev/urandom"))?);
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_nanos());
    let mut rows: Vec<(&str, OsString)> = vec![
        ("SELVEDGE_RANKS", options.ranks.to_string().into()),
        ("SELVEDGE_EPOCH", epoch.to_string().into()),
        ("SELVEDGE_UPTIME", uptime_ns().to_string().into()),
        ("SELVEDGE_DICE", dice.to_string().into()),
        ("SELVEDGE_PARENT", process::id().to_string().into()),
        ("SELVEDGE_REPLICAS", options.replicas.to_string().into()),
    ];
    rows.extend(DEFAULTS.map(|(name, value)| (name, env::var_os(name).unwrap_or(value.into()))));
    if options.compares_full {
        rows.push(("SELVEDGE_COMPARE", "full".into()));
    }
    if options.compares_at_receiver {
        rows.push(("SELVEDGE_COMPARE_AT", "receive".into()));
    }
    rows.push(("SELVEDGE_WINDOW", options.window.to_string().into()));
    rows.extend(options.sends.iter().map(|it| ("SELVEDGE_SENDS", it.clone().into_os_string())));
    Ok(rows)
}

fn spawn(
    command: &mut Command,
    launcher: &Launcher,
    sender: &Sender<Event>,
) -> Result<Child, MpirunError> {
    // A signal to all of a task is this process's to pass on; launchers end their job at one.
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let launcher = launcher.path.clone();
    let mut child = command.spawn().map_err(|source| MpirunError::Launcher { launcher, source })?;
    for pipe in [
        child.stdout.take().map(|it| Box::new(it) as Box<dyn io::Read + Send>),
        child.stderr.take().map(|it| Box::new(it) as Box<dyn io::Read + Send>),
    ] {
        let pipe = pipe.expect("both were asked for");
        threads::begin(sender, move || pass_on(pipe));
    }
    let (pid, ended) = (child.id(), sender.clone());
    threads::begin(sender, move || {
        let code = wait(pid);
        let _ = ended.send(Event::LauncherEnded(code));
    });
    Ok(child)
}

/// The clock that is never set, in nanoseconds.
fn uptime_ns() -> i64 {
    ClockId::CLOCK_MONOTONIC.now().map_or(0, |it| it.num_nanoseconds())
}

/// What the launcher says itself, but for what it always says.
fn pass_on(pipe: Box<dyn io::Read + Send>) {
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        if !holds(&line, EXPECTED.as_bytes()) {
            let _ = io::stderr().write_all(&[&line[..], b"\n"].concat());
        }
    }
}

/// Waits for a process of ours without taking its status from whoever waits later.
fn wait(pid: u32) -> i32 {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(Pid::from_raw(pid as i32)), flags) {
        Ok(WaitStatus::Exited(_, code)) => code,
        _ => 1,
    }
}

/// Ends the launcher, in order if it will.
pub(super) fn end(child: &mut Child) {
    let pid = Pid::from_raw(child.id() as i32);
    let _ = signal::kill(pid, Signal::SIGTERM);
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A replica of this host, which its number alone does not name: another process may have that
/// later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pid: i32,
    /// When it began, by the kernel's clock; nothing if it was gone already.
    since: Option<u64>,
}

impl Known {
    /// The process that has this number now.
    pub(super) fn of(pid: i32) -> Self {
        Self { pid, since: begun_at(pid) }
    }

    /// Ends it, if it is there.
    pub(super) fn kill(self) {
        if self.since.is_some() && begun_at(self.pid) == self.since {
            let _ = signal::kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }
}

/// When a process began, in ticks of the kernel's clock.
fn begun_at(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The 22nd word, of which the second, the program's name, may hold anything.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ended_whatever_its_environment_is_and_another_with_its_number_is_not() {
        let mut sleep = command(Path::new("sleep")).arg("60").env_clear().spawn().unwrap();
        let known = Known::of(sleep.id() as i32);
        Known { since: known.since.map(|it| it - 1), ..known }.kill();
        Known { since: None, ..known }.kill();
        thread::sleep(Duration::from_millis(50));
        assert!(sleep.try_wait().unwrap().is_none(), "another process was ended");
        known.kill();
        assert_eq!(sleep.wait().unwrap().code(), None);
        assert_eq!(Known::of(sleep.id() as i32).since, None, "it is gone");
    }
}
