//! The machine's own launchers: which one a program needs, and what each is told.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::socket::{self, MsgFlags};
use nix::unistd::Uid;

use super::program::find;
use super::{MpirunError, MpirunOptions, avoid, command};

/// Tells the processes of a job that is a set of its own which set that is.
pub(super) const JOB_OF_SET: &str = "SELVEDGE_JOB_OF_SET";

/// What is given as a launcher where somebody else starts the processes.
pub const NONE: &str = "none";

/// Up to how many bytes Open MPI's messages on one host go without being asked for: its own limit,
/// and a seal.
const EAGER_LIMIT: usize = 4096 + 16;

/// Set where a resource manager or a person has given a launcher hosts in another way than by its
/// arguments.
const ALLOCATIONS: [&str; 8] = [
    "SLURM_JOB_ID",
    "PBS_NODEFILE",
    "LSB_HOSTS",
    "LSB_DJOB_HOSTFILE",
    "PE_HOSTFILE",
    "HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
];

/// Whose MPI a program is linked with, or a launcher belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    OpenMpi,
    /// MPICH and what keeps its ABI; all are started by hydra.
    Mpich,
    /// Slurm's srun, which starts programs of either.
    Slurm,
    /// Somebody else starts the processes.
    Nobody,
}

impl Family {
    /// What the library in the program is told, to stop before harm if its MPI is another.
    fn word(self) -> &'static str {
        match self {
            Self::OpenMpi => "open-mpi",
            Self::Mpich => "hydra",
            // They have no MPI that a program's could differ from.
            Self::Slurm | Self::Nobody => "",
        }
    }

    fn candidates(wanted: Option<Self>) -> &'static [&'static str] {
        match wanted {
            None => &["mpirun"],
            Some(Self::OpenMpi) => &["mpirun", "mpirun.openmpi", "mpiexec"],
            Some(Self::Mpich) => &["mpiexec.hydra", "mpirun.mpich", "mpiexec", "mpirun"],
            Some(Self::Slurm) => &["srun"],
            Some(Self::Nobody) => &[],
        }
    }

    /// Whether a launcher of this kind starts programs of that MPI.
    fn starts(self, mpi: Self) -> bool {
        self == mpi || matches!(self, Self::Slurm | Self::Nobody)
    }
}

/// A launcher that can be used.
#[derive(Clone, Debug)]
pub(super) struct Launcher {
    pub(super) path: PathBuf,
    pub(super) family: Family,
    /// It is Open MPI's before it became PRRTE's.
    pub(super) is_open_mpi_4: bool,
    /// The program's, where that is known.
    mpi: Option<Family>,
}

/// The launcher that was asked for, or that of the program's MPI.
pub(super) fn choose(
    options: &MpirunOptions,
    library: Option<(Family, &'static str)>,
) -> Result<Launcher, MpirunError> {
    let program = || PathBuf::from(&options.program[0]);
    let wanted = library.map(|it| it.0);
    if let Some(path) = &options.launcher {
        if path == Path::new(NONE) {
            let path = path.clone();
            let family = Family::Nobody;
            return Ok(Launcher { path, family, is_open_mpi_4: false, mpi: wanted });
        }
        let found = identify(path)?;
        if let Some((wanted, library)) = library
            && !found.family.starts(wanted)
        {
            let launcher = path.clone();
            return Err(MpirunError::WrongLauncher { program: program(), library, launcher });
        }
        return Ok(Launcher { mpi: wanted, ..found });
    }
    let mut first = None;
    for name in Family::candidates(wanted) {
        match identify(Path::new(name)) {
            Ok(found) if wanted.is_none_or(|it| it == found.family) => {
                return Ok(Launcher { mpi: wanted, ..found });
            }
            Ok(_) => {}
            Err(e) => first = first.or(Some(e)),
        }
    }
    match (library, first) {
        (None, Some(MpirunError::Launcher { launcher: name, source }))
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Err(MpirunError::NoLauncherAtAll { name })
        }
        (None, Some(e)) => Err(e),
        (Some((_, library)), _) => Err(MpirunError::NoLauncher { program: program(), library }),
        (None, None) => unreachable!("any launcher does for a program whose MPI is not known"),
    }
}

/// Asks a launcher for its version.
fn identify(path: &Path) -> Result<Launcher, MpirunError> {
    let launcher = path.to_owned();
    let said = command(path)
        .arg("--version")
        .output()
        .map_err(|source| MpirunError::Launcher { launcher: launcher.clone(), source })?;
    let text = String::from_utf8_lossy(&said.stdout);
    let said = text.lines().find(|it| !it.trim().is_empty()).unwrap_or_default().to_owned();
    let is = |words: &[&str]| words.iter().any(|it| said.contains(it));
    let family = if said.starts_with("slurm") {
        Family::Slurm
    } else if is(&["Open MPI", "OpenRTE", "PRRTE"]) {
        Family::OpenMpi
    } else if is(&["HYDRA", "Intel(R) MPI"]) {
        Family::Mpich
    } else {
        return Err(MpirunError::OtherLauncher { launcher, said });
    };
    let is_open_mpi_4 = is(&["OpenRTE", "(Open MPI) 4", "(Open MPI) 3"]);
    Ok(Launcher { path: launcher, family, is_open_mpi_4, mpi: None })
}

impl Launcher {
    /// Whether it is somebody else who starts the processes.
    pub(super) fn is_nobody(&self) -> bool {
        self.family == Family::Nobody
    }

    /// What is to be told before anything starts: what may keep a death from being outlived, and
    /// that the launcher has no room.
    pub(super) fn warnings(&self, options: &MpirunOptions) -> Vec<String> {
        let of_deaths = self.warning_of_deaths(options).map(str::to_owned);
        of_deaths.into_iter().chain(self.warning_of_slots(options)).collect()
    }

    /// The launcher says it too, in some 25 lines, and not of how many replicas.
    fn warning_of_slots(&self, options: &MpirunOptions) -> Option<String> {
        let (ranks, replicas, args) = (options.ranks, options.replicas, &options.launcher_args);
        if self.family != Family::OpenMpi || oversubscribes(args) {
            return None;
        }
        let there = avoid::slots(args)?;
        let (wanted, product) = match options.sets_are_jobs {
            true => (ranks, format!("{ranks} processes in each set")),
            false => (ranks * replicas, format!("{ranks} processes x {replicas} replicas")),
        };
        (there < wanted).then(|| {
            format!(
                "this run needs {wanted} slots ({product}), and the launcher's arguments name {there}"
            )
        })
    }

    fn warning_of_deaths(&self, options: &MpirunOptions) -> Option<&'static str> {
        // Fewer replicas outlive none.
        if options.replicas < 3 {
            return None;
        }
        match (self.family, self.mpi) {
            (Family::Slurm, Some(Family::Mpich)) => Some(
                "under srun a program of MPICH may stand still when a replica dies; start it by \
                 MPICH's own launcher to outlive deaths",
            ),
            // Under hydra each replica has a process before it that stays.
            (Family::Nobody, mpi) if mpi != Some(Family::Mpich) => Some(
                "a death is outlived if your launcher goes on when one of its processes dies, as \
                 Open MPI's does with --enable-recovery",
            ),
            (Family::OpenMpi | Family::Mpich | Family::Slurm | Family::Nobody, _) => None,
        }
    }

    /// What the library in each process is told of it.
    pub(super) fn word(&self) -> &'static str {
        self.family.word()
    }

    /// The MPI library that stands where the launcher was installed.
    pub(super) fn library(&self) -> Option<PathBuf> {
        let names: &[&str] = match (self.family, self.mpi) {
            (Family::OpenMpi, _) | (Family::Slurm, Some(Family::OpenMpi)) => &["libmpi.so.40"],
            (Family::Mpich, _) | (Family::Slurm, Some(Family::Mpich)) => {
                &["libmpi.so.12", "libmpich.so.12"]
            }
            (Family::Slurm | Family::Nobody, _) => return None,
        };
        let home = find(&self.path).and_then(|it| Some(it.parent()?.parent()?.to_owned()));
        let folders = ["lib", "lib/x86_64-linux-gnu", "lib64"];
        let pairs = || folders.iter().flat_map(|folder| names.iter().map(move |it| (folder, it)));
        let paths = |home: PathBuf| pairs().map(move |it| home.join(it.0).join(it.1));
        home.into_iter().flat_map(paths).find(|it| it.is_file())
    }

    /// Whether processes may come to run on other hosts than this.
    pub(super) fn may_leave_host(&self, options: &MpirunOptions) -> bool {
        let is_allocated = || ALLOCATIONS.iter().any(|it| std::env::var_os(it).is_some());
        options.between_hosts.unwrap_or_else(|| {
            let others = matches!(self.family, Family::Slurm | Family::Nobody);
            others || !options.launcher_args.is_empty() || is_allocated()
        })
    }

    /// The launcher with its own options and these arguments, up to the number `n` of processes.
    /// What it keeps while it runs it keeps in the folder `scratch`.  Where processes may run on
    /// other hosts they are given these variables, which not all launchers do by themselves.
    pub(super) fn command<'a>(
        &self,
        options: &MpirunOptions,
        args: &[OsString],
        scratch: &Path,
        n: usize,
        variables: impl Iterator<Item = &'a str>,
    ) -> Command {
        let mut command = command(&self.path);
        if self.family == Family::OpenMpi {
            variables.for_each(|it| _ = command.args(["-x", it]));
        }
        match self.family {
            Family::OpenMpi => tell_open_mpi(&mut command, options, scratch),
            Family::Mpich => tell_hydra(&mut command),
            Family::Slurm => tell_slurm(&mut command, options, self.mpi),
            Family::Nobody => {}
        }
        command.args(args);
        command.arg("-n").arg(n.to_string());
        command
    }
}

/// Open MPI's words for whether a host may have more processes than it takes.
pub(super) const OVERSUBSCRIBES: [&str; 4] =
    ["-nooversubscribe", "--nooversubscribe", "-oversubscribe", "--oversubscribe"];

/// Whether the launcher may start more processes than hosts take, as these arguments say.
fn oversubscribes(args: &[OsString]) -> bool {
    let is_said = |it: &OsString| OVERSUBSCRIBES[2..].iter().any(|word| it == word);
    // As in `--map-by node:OVERSUBSCRIBE`.
    let is_mapped = |it: &OsString| it.to_string_lossy().to_lowercase().contains(":oversubscribe");
    args.iter().any(|it| is_said(it) || is_mapped(it))
}

fn tell_open_mpi(command: &mut Command, options: &MpirunOptions, scratch: &Path) {
    command.args(["--enable-recovery", "--bind-to", "none"]);
    command.args(["--mca", "mpi_yield_when_idle", "1"]);
    command.arg("--mca").arg("orte_tmpdir_base").arg(scratch);
    // Its daemons wait so long for processes that they end, also where these are gone already.
    let patience = "OMPI_MCA_odls_base_sigkill_timeout";
    if std::env::var_os(patience).is_none() {
        command.env(patience, "0");
    }
    // What goes at once without replicas does so with its seal, unless somebody said what does.
    for name in ["OMPI_MCA_btl_vader_eager_limit", "OMPI_MCA_btl_sm_eager_limit"] {
        if std::env::var_os(name).is_none() {
            command.env(name, EAGER_LIMIT.to_string());
        }
    }
    // Who says how many processes a host takes is not to have more there.
    let args = &options.launcher_args;
    let is_said = args.iter().any(|it| OVERSUBSCRIBES.iter().any(|word| it == word));
    if !is_said && !avoid::name_slots(args, Family::OpenMpi) {
        command.arg("--oversubscribe");
    }
    if Uid::effective().is_root() {
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(name, "1");
            command.env(name.replace("OMPI", "PRTE"), "1");
        }
    }
}

/// hydra takes the end of a process for the end of the job; each process has a supervisor that ends
/// in its stead (see [`super::replica`]).
fn tell_hydra(command: &mut Command) {
    // It pins nobody to a processor that others need.
    command.env("I_MPI_PIN", "0");
}

/// A process that dies, and one that ends before the others, is no reason to end them.
fn tell_slurm(command: &mut Command, options: &MpirunOptions, mpi: Option<Family>) {
    command.args(["--kill-on-bad-exit=0", "--wait=0", "--overcommit"]);
    let is_given = options.launcher_args.iter().any(|it| it.to_string_lossy().contains("--mpi"));
    match mpi {
        Some(Family::OpenMpi) if !is_given => drop(command.arg("--mpi=pmix")),
        // What Debian's and the Python package's MPICH speak, which is hydra's own.
        Some(Family::Mpich) if !is_given => drop(command.arg("--mpi=pmi2")),
        Some(Family::OpenMpi | Family::Mpich | Family::Slurm | Family::Nobody) | None => {}
    }
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    tell_hydra(command);
}

/// Whether the launcher of this process is hydra, which talks to each process over a socket.
pub(super) fn is_hydra() -> bool {
    std::env::var_os("PMI_FD").is_some()
}

/// Tells hydra over this process's socket that the MPI program has come to its end in order.
pub(super) fn tell_finalized() -> io::Result<()> {
    const LINE: &[u8] = b"cmd=finalize\n";
    const ANSWER: &[u8] = b"finalize_ack";
    let number = std::env::var("PMI_FD").ok().and_then(|it| it.parse().ok());
    let Some(number) = number else { return Ok(()) };
    socket::send(number, LINE, MsgFlags::MSG_NOSIGNAL)?;
    // Hydra complains if nobody hears its answer; before it may come what the replica asked for.
    let (mut heard, mut chunk) = (Vec::new(), [0; 1024]);
    while !heard.ends_with(b"\n") || !heard.windows(ANSWER.len()).any(|it| it == ANSWER) {
        match socket::recv(number, &mut chunk, MsgFlags::empty())? {
            0 => break,
            n => heard.extend(&chunk[..n]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_mpi_is_known_gets_a_launcher_of_that_mpi() {
        assert_eq!(Family::candidates(Some(Family::Mpich))[0], "mpiexec.hydra");
        assert_eq!(Family::candidates(Some(Family::OpenMpi))[0], "mpirun");
        assert_eq!(Family::candidates(None), ["mpirun"]);
    }
}
