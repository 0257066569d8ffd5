//! Compiling MPI programs, and running them plain and in replicas.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "how long a run took is told")]
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, UNIX_EPOCH};
use std::{env, fs};

/// The plain runs so far.
static N_PLAIN: AtomicUsize = AtomicUsize::new(0);

/// No run takes longer than this, in seconds, on a slow machine that does other work, too; the long
/// programs of full proofs have more.
pub(crate) fn limit_s() -> &'static str {
    if is_full() { "900" } else { "300" }
}

/// What `timeout` ends with whom it ended.
pub(crate) const OVER_LIMIT: i32 = 124;

/// All of these in a proof, in its short form the first `n`.
pub(crate) fn first<T>(n: usize, of: &[T]) -> &[T] {
    if is_full() { of } else { &of[..n] }
}

/// Whether this is a proof, and not its short form.
pub(crate) fn is_full() -> bool {
    env::var("SELVEDGE_PROOF").is_ok_and(|it| it == "full")
}

/// Names what is not here, for want of which something is not run: a proof, which was to show just
/// that, fails by it.
pub(crate) fn missing(what: &str) {
    assert!(!is_full(), "this proof needs what is not here: {what}");
    println!("not run, for want of it: {what}");
}

/// One MPI of this machine: how programs are compiled for it, and its launcher.
#[derive(Clone, Debug)]
pub(crate) struct Mpi {
    /// What it is called in tables, and in `SELVEDGE_MPI`.
    pub(crate) name: String,
    /// The compiler with what comes before a source, and what comes after it.
    compiler: [Vec<String>; 2],
    /// The same for Fortran, if there is one.
    fortran: Option<String>,
    launcher: String,
    /// The virtual environment in which `selvedge mpirun` does not find it by itself.
    home: Option<PathBuf>,
}

impl Mpi {
    /// All that are here: Debian's Open MPI and MPICH, and those of the Python packages `mpich`,
    /// `openmpi` and `impi-rt` in the virtual environments of these names under `SELVEDGE_MPIS`.
    pub(crate) fn all() -> Vec<Self> {
        let debian = |name: &str, launcher: &str| Self {
            name: name.to_owned(),
            compiler: [vec![format!("mpicc.{name}")], vec![]],
            fortran: Some(format!("mpif90.{name}")),
            launcher: launcher.to_owned(),
            home: None,
        };
        let mut all = vec![debian("openmpi", "mpirun.openmpi"), debian("mpich", "mpiexec.hydra")];
        if let Some(folder) = env::var_os("SELVEDGE_MPIS") {
            for name in ["openmpi", "mpich", "impi"] {
                all.extend(Self::of_packages(name, &Path::new(&folder).join(name)));
            }
        }
        all.retain(Self::is_here);
        if all.is_empty() {
            missing("an MPI (an mpicc and its launcher)");
        }
        all
    }

    /// Those under which a test is made: all of them in a proof, and where `SELVEDGE_MPIS` names
    /// more; else one of Debian's, by turns, as `word` has it.
    pub(crate) fn in_turn(word: &str) -> Vec<Self> {
        let mut all = Self::all();
        if !is_full() && env::var_os("SELVEDGE_MPIS").is_none() && !all.is_empty() {
            let turn = word.bytes().map(usize::from).sum::<usize>() % all.len();
            all = vec![all.swap_remove(turn)];
        }
        all
    }

    fn of_packages(name: &str, home: &Path) -> Vec<Self> {
        let path = |rest: &str| home.join(rest).to_str().unwrap().to_owned();
        let own = path("include");
        // Intel's package has no header; its ABI is MPICH's.
        let debian = "/usr/include/x86_64-linux-gnu/mpich".to_owned();
        let include = if Path::new(&own).join("mpi.h").is_file() { own } else { debian };
        let (lib, launcher) = (path("lib"), path("bin/mpiexec"));
        let plain = Self {
            name: format!("{name}-package"),
            compiler: [
                vec!["cc".into(), format!("-I{include}")],
                vec![format!("-L{lib}"), "-lmpi".into(), format!("-Wl,-rpath,{lib}")],
            ],
            fortran: None,
            launcher,
            home: Some(home.to_owned()),
        };
        let standard = Self {
            name: format!("{name}-standard-abi"),
            compiler: [vec![path("bin/mpicc_abi")], vec![format!("-Wl,-rpath,{lib}")]],
            ..plain.clone()
        };
        vec![plain, standard]
    }

    /// The one that a proof is for: Debian's Open MPI if none is named, or what is here where this
    /// is no proof.
    pub(crate) fn chosen() -> Option<Self> {
        let all = Self::all();
        match env::var("SELVEDGE_MPI") {
            Ok(name) => {
                let names: Vec<&str> = all.iter().map(|it| &*it.name).collect();
                let found = all.iter().find(|it| it.name == name);
                assert!(found.is_some(), "there is no {name} here, only {names:?}");
                found.cloned()
            }
            Err(_) if is_full() => Self::named("openmpi"),
            Err(_) => all.into_iter().next(),
        }
    }

    /// One by its name, if it is here.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let found = Self::all().into_iter().find(|it| it.name == name);
        if found.is_none() {
            missing(&format!("the MPI {name}"));
        }
        found
    }

    fn is_here(&self) -> bool {
        let answers = |program: &str| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|it| it.success())
        };
        answers(&self.compiler[0][0]) && answers(&self.launcher)
    }

    pub(crate) fn is_open_mpi(&self) -> bool {
        self.name.starts_with("openmpi")
    }

    /// Compiles the program called `name` into `folder`.
    pub(crate) fn compile(&self, name: &str, folder: &Path) -> PathBuf {
        let program = folder.join(format!("{name}-{}", self.name));
        self.compile_with(name, &program, &[]);
        program
    }

    /// The same with more words for the compiler; `to` is what comes of it.
    pub(crate) fn compile_with(&self, name: &str, to: &Path, words: &[&str]) {
        let [before, after] = &self.compiler;
        let mut command = Command::new(&before[0]);
        // What is to compute as real programs do is compiled as they are.
        let level = if name == "patterns" { "-O2" } else { "-O1" };
        command.args(&before[1..]).args([level, "-w", "-o"]).arg(to);
        // What has functions in place of the C library's is to be asked first.
        command.args(["late", "begins"].contains(&name).then_some("-rdynamic"));
        command.arg(sources().join(name).with_extension("c")).args(after).args(words).arg("-lm");
        succeed(&mut command);
    }

    /// The Python whose mpi4py uses it, if there is one.
    pub(crate) fn python(&self) -> Option<String> {
        match &self.home {
            None => (self.name == "openmpi").then(|| "/usr/bin/python3".to_owned()),
            Some(_) if self.name.ends_with("abi") => None,
            Some(home) => Some(home.join("bin/python3").to_str().unwrap().to_owned()),
        }
    }

    /// The same where it has mpi4py, which is missing from a Python that has not.
    pub(crate) fn mpi4py(&self) -> Option<String> {
        let python = self.python()?;
        let mut asked = Command::new(&python);
        asked.args(["-c", "import mpi4py"]).stderr(Stdio::null());
        if asked.status().is_ok_and(|it| it.success()) {
            return Some(python);
        }
        missing(&format!("mpi4py of {python}, for {}", self.name));
        None
    }

    /// A LAMMPS that is linked with it: Debian's, which is missing where it is not here, or that of
    /// the Python package `lammps`, which need not be there, and whose command is a Python program
    /// that starts LAMMPS as a process of its own.  Both need Debian's examples.
    pub(crate) fn lammps(&self) -> Option<PathBuf> {
        let debian = || (self.name == "openmpi").then(|| PathBuf::from("/usr/bin/lmp"));
        let Some(program) = self.beside("lmp").or_else(debian) else {
            println!("no LAMMPS is linked with {}", self.name);
            return None;
        };
        let is_here = program.is_file() && Path::new(LAMMPS_EXAMPLES).is_dir();
        if !is_here {
            missing("LAMMPS and its examples (lammps, lammps-examples)");
        }
        is_here.then_some(program)
    }

    /// Where ScaLAPACK's testers for it are, and their input: for each of Debian's MPIs there are
    /// some, which are missing where they are not here.
    pub(crate) fn scalapack(&self) -> Option<PathBuf> {
        if !["openmpi", "mpich"].contains(&&*self.name) {
            return None;
        }
        let folder = "/usr/lib/x86_64-linux-gnu/scalapack";
        let tests = Path::new(folder).join(self.name.clone() + "-tests");
        let is_here = tests.join("xddblu").is_file();
        if !is_here {
            missing(&format!("ScaLAPACK's testers for {} (scalapack-mpi-test)", self.name));
        }
        is_here.then_some(tests)
    }

    /// Its Fortran compiler.
    pub(crate) fn fortran(&self) -> Option<&str> {
        self.fortran.as_deref()
    }

    /// Whether a process of a plain run leaves the processor to others where it waits: Debian's
    /// MPICH, which is 4.0.2, has no option for it.
    pub(crate) fn yields(&self) -> bool {
        self.name != "mpich"
    }

    /// A run on four processes without replicas.
    pub(crate) fn plain_command(&self, program: &[&str]) -> Command {
        self.plain_on(4, program)
    }

    /// A run without replicas.
    pub(crate) fn plain_on(&self, ranks: u32, program: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        // One that lets others run where it waits takes no longer in a proof either.
        command.args([if self.yields() { "300" } else { limit_s() }, &self.launcher]);
        if self.is_open_mpi() {
            command.args(["--oversubscribe", "--bind-to", "none"]);
            command.args(["--mca", "mpi_yield_when_idle", "1"]);
            // Two launchers that share a folder may remove each other's in it.
            let name = format!("plain-{}", N_PLAIN.fetch_add(1, Ordering::Relaxed));
            let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            command.env("OMPI_MCA_orte_tmpdir_base", scratch);
        } else {
            // MPICH's from 4.3 on then yields where it waits, too.
            command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1");
            command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "1");
        }
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(name, "1").env(name.replace("OMPI", "PRTE"), "1");
        }
        command.args(["-n", &ranks.to_string()]).args(program).stdin(Stdio::null());
        command
    }

    /// What the program prints on four processes without replicas, in lines.
    pub(crate) fn plain(&self, program: &Path, args: &[&str]) -> String {
        let mut command = self.plain_command(&[&[program.to_str().unwrap()], args].concat());
        lines(&String::from_utf8(succeed(&mut command).stdout).unwrap())
    }

    /// A run on four processes in three replicas each.
    pub(crate) fn tripled(&self, summary: &Path, program: &[&str]) -> Command {
        self.tripled_on(4, summary, program)
    }

    /// A run in three replicas of each process.
    pub(crate) fn tripled_on(&self, ranks: u32, summary: &Path, program: &[&str]) -> Command {
        self.replicated("3", ranks, summary, program)
    }

    /// A run in so many replicas of each process.
    pub(crate) fn replicated(
        &self,
        replicas: &str,
        ranks: u32,
        summary: &Path,
        program: &[&str],
    ) -> Command {
        let mut command = Command::new("timeout");
        command
            .args([limit_s(), env!("CARGO_BIN_EXE_selvedge"), "mpirun", "-r", replicas])
            .args(["-n", &ranks.to_string()])
            .args(self.launcher_args())
            .arg("--json-summary")
            .arg(summary)
            .args(program)
            .stdin(Stdio::null());
        command
    }

    /// A program that comes with it.
    pub(crate) fn beside(&self, name: &str) -> Option<PathBuf> {
        // What comes in packages is not linked with the standard ABI.
        let home = self.home.as_ref().filter(|_| !self.name.ends_with("abi"));
        home.map(|it| it.join("bin").join(name)).filter(|it| it.is_file())
    }

    /// Its launcher.
    pub(crate) fn launcher(&self) -> &str {
        &self.launcher
    }

    /// What `selvedge mpirun` is told of the launcher where it starts the program itself.
    pub(crate) fn launcher_args(&self) -> Vec<&str> {
        if self.home.is_some() { vec!["--launcher", &self.launcher] } else { vec![] }
    }

    /// What it is told beside that where the program does not show whose it is: a script, say.
    pub(crate) fn launcher_of_a_script(&self) -> Vec<&str> {
        if self.home.is_some() { vec![] } else { vec!["--launcher", &self.launcher] }
    }
}

/// Where the programs stand.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../stmr-mpi/programs")
}

/// Runs what must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", told(&out));
    out
}

/// Numbers on lines of LAMMPS that hold one of these are times.
const LAMMPS_CLOCKS: &[&str] =
    &["CPU", "Loop time", "Performance", "wall time", " | ", "timesteps", "Memory", "Per MPI"];

/// Where Debian has LAMMPS's examples.
pub(crate) const LAMMPS_EXAMPLES: &str = "/usr/share/lammps/examples";

/// What ScaLAPACK's testers call columns of times, and of rates.
const SCALAPACK_TIMES: &[&str] = &["Time", "WALL", "CPU", "MFLOPS", "MFLOP2"];

/// And those of residuals, of whose last digits the order decides in which something was added.
const SCALAPACK_RESIDUALS: &[&str] = &["CHK", "QTQ", "Residual"];

/// What `in.restart` leaves: a step's own file, those of the end of both runs, and what was written
/// on the way.
pub(crate) const RESTART_FILES: &[&str] =
    &["step.20.restart", "step.40.restart", "end.restart", "again.restart", "dump.melt"];

/// What is compared of what a program prints, in lines.
pub(crate) type Mask = fn(&[u8]) -> Vec<String>;

/// All of it.
pub(crate) fn whole(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_owned).collect()
}

/// Of LAMMPS.
pub(crate) fn of_lammps(text: &[u8]) -> Vec<String> {
    without_times(LAMMPS_CLOCKS, text)
}

/// Of ScaLAPACK's testers: all but times and rates.
pub(crate) fn of_scalapack(text: &[u8]) -> Vec<String> {
    let is_time = |name: &str, _: &Row<'_>| SCALAPACK_TIMES.iter().any(|it| name.contains(it));
    without_columns(is_time, text)
}

/// Of those which add what comes from several processes in the order in which it comes: plain runs
/// have other residuals each time where a row or column of the grid has more than two processes,
/// of which it is compared whether they are small enough.
pub(crate) fn of_scalapack_sums(text: &[u8]) -> Vec<String> {
    let is_out = |name: &str, row: &Row<'_>| {
        let is_long = |it: &(&str, &str)| {
            ["P", "Q"].contains(&it.0) && it.1.parse::<u32>().is_ok_and(|it| 2 < it)
        };
        SCALAPACK_TIMES.iter().any(|it| name.contains(it))
            || SCALAPACK_RESIDUALS.contains(&name) && row.iter().any(is_long)
    };
    without_columns(is_out, text)
}

/// Lines of a text, those that hold one of `clocks` without what may be a time: numbers but whole
/// ones, and whole ones in columns of times, where one may have nothing behind its point.
pub(crate) fn without_times(clocks: &[&str], text: &[u8]) -> Vec<String> {
    // 1.25, 3e-7, 0:00:12, 99.8%; and what LAMMPS calls a thousand or a million.
    let is_time = |word: &str, in_columns: bool| {
        if word.ends_with("atom-step/s") {
            return true;
        }
        let in_number = |it: char| it.is_ascii_digit() || ".:,;%()+-*eE".contains(it);
        let is_whole = word.bytes().all(|it| it.is_ascii_digit());
        word.chars().all(in_number) && (in_columns || !is_whole)
    };
    let mask = |line: &str| {
        if clocks.iter().any(|it| line.contains(it)) {
            let in_columns = line.contains(" | ");
            let words = line.split_whitespace().filter(|it| !is_time(it, in_columns));
            words.collect::<Vec<_>>().join(" ")
        } else {
            line.to_owned()
        }
    };
    String::from_utf8_lossy(text).lines().map(mask).collect()
}

/// Lines of a text without what stands in some columns of its tables.  A table begins with a header
/// above a rule of dashes, one run of them for each column.  Its rows are the lines of as many
/// words as it has columns, or one less, where the last column is empty.
fn without_columns(is_out: impl Fn(&str, &Row<'_>) -> bool, text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let (mut kept, mut names) = (Vec::<String>::new(), Vec::<String>::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_rule = 1 < words.len() && words.iter().all(|it| it.bytes().all(|it| it == b'-'));
        if is_rule {
            let header = kept.last().map(String::as_str).unwrap_or_default();
            let name = |at: Range<usize>| {
                let end = at.end.min(header.len());
                header.get(at.start..end).unwrap_or_default().trim().to_owned()
            };
            names = columns_of(line).into_iter().map(name).collect();
        }
        let n_empty = names.len().checked_sub(words.len());
        if !is_rule && 1 < words.len() && n_empty.is_some_and(|it| it < 2) {
            let row: Row<'_> = names.iter().map(String::as_str).zip(words).collect();
            let shown = row.iter().map(|(name, word)| if is_out(name, &row) { "*" } else { word });
            kept.push(shown.collect::<Vec<_>>().join(" "));
        } else {
            kept.push(line.trim_end().to_owned());
        }
    }
    kept
}

/// Names of columns, and what stands there.
type Row<'r> = Vec<(&'r str, &'r str)>;

/// Where the runs of dashes of a rule are, each as far as the next begins.
fn columns_of(rule: &str) -> Vec<Range<usize>> {
    let bytes = rule.as_bytes();
    let begins = |it: &usize| bytes[*it] == b'-' && (*it == 0 || bytes[it - 1] != b'-');
    let firsts: Vec<usize> = (0..bytes.len()).filter(begins).collect();
    let ends = firsts.iter().skip(1).copied().chain([usize::MAX]);
    firsts.iter().copied().zip(ends).map(|(first, end)| first..end).collect()
}

/// What is in a folder: of each file its bytes, of each link where it leads.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if path.is_symlink() {
                found.insert(
                    name,
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                );
            } else if path.is_dir() {
                folders.push(path);
                found.insert(name, Vec::new());
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Lines of different processes come in any order, plain as well.
pub(crate) fn lines(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// What a run said of itself.
pub(crate) fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A number of the summary.
pub(crate) fn count(summary: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(summary).unwrap();
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    row[name].as_u64().unwrap()
}

/// Holds counts of a summary against those that are wanted, by their names.
pub(crate) fn check_counts(summary: &Path, wanted: &[(&str, u64)], said: &str) {
    for (name, wanted) in wanted {
        assert_eq!(count(summary, name), *wanted, "{name}: {said}");
    }
}

/// The dice of a proof: SplitMix64, so that a run is drawn alike whichever ran before it.
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of this run of a proof.
    pub(crate) fn new(seed: u64, run: u64) -> Self {
        let mut this = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ run);
        this.draw();
        this
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.draw() % n
    }
}

/// What the environment says of this proof: how many runs, and the seed.
pub(crate) fn proof(short: u64) -> (u64, u64) {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    (number("SELVEDGE_RUNS").unwrap_or(short), number("SELVEDGE_SEED").unwrap_or(1))
}

/// The number of the process that is this replica of this program.
pub(crate) fn replica(program: &Path, set: u64, rank: u64) -> Option<String> {
    let wanted = [format!("SELVEDGE_SET={set}"), format!("SELVEDGE_RANK={rank}")];
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let environ = fs::read(entry.path().join("environ")).ok()?;
        let has = |it: &String| environ.split(|byte| *byte == 0).any(|row| row == it.as_bytes());
        let is_program = fs::read_link(entry.path().join("exe")).ok()? == program;
        let pid = entry.file_name().into_string().ok()?;
        (is_program && wanted.iter().all(has)).then_some(pid)
    })
}

/// What many runs of a class have to show, or the proof proves nothing.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) class: &'static str,
    pub(crate) what: &'static str,
    pub(crate) is: fn(&str) -> bool,
    /// Of the class, in per cent.
    pub(crate) at_least: u64,
}

/// A class of fewer runs may show anything.
const SHARED_RUNS: u64 = 20;

/// What the runs of a proof came to, kept by seed and build until all are done.
pub(crate) struct Book {
    seed: u64,
    folder: PathBuf,
    rows: BTreeMap<u64, String>,
}

impl Book {
    /// The book of this proof, with what an earlier process wrote into it.
    pub(crate) fn open(name: &str, mpi: &Mpi, seed: u64) -> Self {
        let built = fs::metadata(env!("CARGO_BIN_EXE_selvedge")).unwrap().modified().unwrap();
        let built = built.duration_since(UNIX_EPOCH).unwrap().as_secs();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}-{seed}-{built}", mpi.name));
        fs::create_dir_all(&folder).unwrap();
        let text = fs::read_to_string(folder.join("book")).unwrap_or_default();
        let row = |line: &str| {
            let (number, outcome) = line.split_once(' ')?;
            Some((number.parse().ok()?, outcome.to_owned()))
        };
        Self { seed, folder, rows: text.lines().filter_map(row).collect() }
    }

    /// Where the proof may write.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Does a run, unless it was done: it says what it did, and what that came to.
    pub(crate) fn run(&mut self, number: u64, run: impl FnOnce() -> (String, String)) {
        if self.rows.contains_key(&number) {
            return;
        }
        let begun = Instant::now();
        let (what, outcome) = run();
        println!("run {number}: {what}: {outcome} after {} ms", begun.elapsed().as_millis());
        self.write(number, outcome);
    }

    fn write(&mut self, number: u64, outcome: String) {
        self.rows.insert(number, outcome);
        let lines: Vec<String> = self.rows.iter().map(|(n, it)| format!("{n} {it}\n")).collect();
        fs::write(self.folder.join("book"), lines.concat()).unwrap();
    }

    /// What a part came to, which is done unless it was.
    pub(crate) fn keep(&mut self, number: u64, part: impl FnOnce() -> String) -> String {
        if !self.rows.contains_key(&number) {
            let outcome = part();
            self.write(number, outcome);
        }
        self.rows[&number].clone()
    }

    /// What the first runs came to, in their order.
    pub(crate) fn outcomes(&self, runs: u64) -> impl Iterator<Item = &str> {
        self.rows.range(..runs).map(|it| it.1.as_str())
    }

    /// All parts are done.
    pub(crate) fn forget(self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }

    /// Prints the table of all runs, and fails if one came out wrong or hung, or fewer show
    /// something than have to.
    pub(crate) fn close(self, runs: u64, class: impl Fn(u64) -> &'static str, shares: &[Share]) {
        let mut table: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (number, outcome) in self.rows.range(..runs) {
            *table.entry((class(*number), outcome)).or_default() += 1;
        }
        println!("{runs} runs, seed {}", self.seed);
        for ((class, outcome), n) in &table {
            println!("{n:6}  {class:24} {outcome}");
        }
        let failed = |outcome: &str| outcome.starts_with("wrong") || outcome == "hang";
        let n = table.keys().filter(|it| failed(it.1)).count();
        assert_eq!(n, 0, "seed {}: see {}", self.seed, self.folder.display());
        for Share { class, what, is, at_least } in shares {
            let rows = || table.iter().filter(|(it, _)| it.0 == *class);
            let all: u64 = rows().map(|it| it.1).sum();
            let n: u64 = rows().filter(|(it, _)| is(it.1)).map(|it| it.1).sum();
            let is_enough = all < SHARED_RUNS || at_least * all <= 100 * n;
            assert!(is_enough, "{class}: {what} in {n} of {all}, not in {at_least} %");
        }
        self.forget();
    }
}
