//! `selvedge mpirun`: an unmodified MPI program in replicas that outvote errors.

mod determinism;

pub(crate) mod slice;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use selvedge_driver::mpirun::{self, MpirunOptions, Summary};
use serde::Serialize;

use crate::Globals;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::number;

/// The library that is preloaded into each replica.
static LIBRARY: &[u8] = include_bytes!(env!("SELVEDGE_MPI_LIBRARY"));

const EXAMPLES: &str = "\
Examples:
  selvedge mpirun -n 4 ./app in.txt
      4 processes in 3 replicas each, on this machine
  selvedge mpirun -n 4 --launcher-arg --hostfile --launcher-arg hosts ./app in.txt
      the same on the hosts that the file hosts names";

const RUNS: &str = "What runs";
const COMPARING: &str = "Comparing";
const FAULTS: &str = "Faults and restarts";
const LAUNCHER: &str = "Launcher";
const OUTPUT: &str = "Output";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mpirun {
    /// Processes, as the program sees them.
    #[arg(short = 'n', long, value_name = "P", value_parser = ranks(), help_heading = RUNS)]
    ranks: u32,
    /// Replicas of each process: 1 counts, 2 detects, 3 masks.
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = replicas())]
    #[arg(help_heading = RUNS)]
    replicas: u8,
    /// What replicas tell each other of what they send.
    #[arg(long, value_enum, default_value_t = Compare::Digest, help_heading = COMPARING)]
    compare: Compare,
    /// Run the program twice without replicas; say which sends differ and why that may be.
    #[arg(long, conflicts_with = "json_summary", help_heading = COMPARING)]
    check_determinism: bool,
    /// Whether what is sent is compared before it leaves, or where it comes in.
    #[arg(long, value_enum, default_value_t = CompareAt::Send, help_heading = COMPARING)]
    compare_at: CompareAt,
    /// Compare W sends at a time: an error is found within W sends, but may have left the process
    /// by then. Not with `--compare-at`.
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = window())]
    #[arg(conflicts_with = "compare_at", help_heading = COMPARING)]
    window: u32,
    /// What to do when a cluster cannot go on: two errors in it, or no whole set left.
    #[arg(long, value_enum, default_value_t = OnDouble::Restart, help_heading = FAULTS)]
    on_double: OnDouble,
    /// Shell command that resumes the program, as from its checkpoint, instead of starting it over.
    #[arg(long, value_name = "LINE", help_heading = FAULTS)]
    restart_cmd: Option<OsString>,
    /// How often at the most the program starts again when a cluster cannot go on.
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = FAULTS)]
    restarts_max: u32,
    /// One more argument for the launcher.
    #[arg(long, value_name = "X", allow_hyphen_values = true, help_heading = LAUNCHER)]
    launcher_arg: Vec<OsString>,
    /// The machine's own launcher, if it is not the one in PATH that belongs to the program's MPI;
    /// `none`: you start the processes yourself, with the environment that is printed.
    #[arg(long, value_name = "PROGRAM", help_heading = LAUNCHER)]
    launcher: Option<PathBuf>,
    /// With `--launcher none`: write that environment to this file, for a shell to read.
    #[arg(long, value_name = "FILE", requires = "launcher", help_heading = LAUNCHER)]
    env_file: Option<PathBuf>,
    /// Whether processes may run on other hosts than this, which then listens for them.
    #[arg(long, value_enum, default_value_t = BetweenHosts::Auto, value_name = "WHEN")]
    #[arg(help_heading = LAUNCHER)]
    between_hosts: BetweenHosts,
    /// Whether the launcher starts all replicas as one job, or each set of them as a job.
    #[arg(long, value_enum, default_value_t = Sets::One, help_heading = LAUNCHER)]
    sets: Sets,
    /// Write what became of the program to this file, as JSON.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    json_summary: Option<PathBuf>,
    /// What every verb takes, and this one changes nothing that it would be a reason for.
    #[arg(long = "reason", id = "reason", value_name = "TEXT", hide = true)]
    _reason: Option<String>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

fn replicas() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(1..=3)
}

fn window() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1_000_000)
}

fn ranks() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=10_000)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Sets {
    /// One job of all replicas of all processes.
    One,
    /// As many jobs as there are replicas, each a whole copy of the program.
    Jobs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BetweenHosts {
    /// Yes if the launcher has arguments, or is srun or `none`, or a resource manager has given
    /// hosts.
    Auto,
    /// They may run on any host that the launcher knows.
    Yes,
    /// All processes run here.
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Compare {
    /// A digest of 128 bits.
    Digest,
    /// The contents as well, so that the first byte that differs is told.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CompareAt {
    /// Nothing wrong leaves a process.
    Send,
    /// What is wrong is found by who gets it.
    Receive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnDouble {
    /// Start the program again.
    Restart,
    /// End it.
    Abort,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MpirunReplica {
    #[arg(required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MpirunHost {
    /// It is apart from who started it already.
    #[arg(long)]
    serve: bool,
}

/// Exit code of a program that did not come to its own end.
const FAILED: i32 = 2;

/// The summary's fixed form.
#[derive(Serialize)]
struct Row<'a> {
    ranks: usize,
    replicas: usize,
    sends: u64,
    compares: u64,
    bytes: u64,
    marks: u64,
    promotions: u64,
    deaths: u64,
    restarts: u32,
    result: &'a str,
    link_messages: u64,
    link_bytes: u64,
    log_bytes_max: u64,
    marked: Vec<serde_json::Value>,
    /// The program's, all starts of it.
    seconds: f64,
    /// In compares, of a process on average.
    compare_seconds: f64,
    notes: &'a [String],
}

impl<'a> Row<'a> {
    fn of(summary: &'a Summary) -> Self {
        Self {
            ranks: summary.ranks,
            replicas: summary.replicas,
            sends: summary.sends,
            compares: summary.compares,
            bytes: summary.bytes,
            marks: summary.marks,
            promotions: summary.promotions,
            deaths: summary.deaths,
            restarts: summary.restarts,
            result: &summary.result,
            link_messages: summary.link_messages,
            link_bytes: summary.link_bytes,
            log_bytes_max: summary.log_bytes_max,
            marked: summary.marked.iter().map(slice::as_json).collect(),
            seconds: seconds(summary),
            compare_seconds: compare_seconds(summary),
            notes: &summary.notes,
        }
    }
}

pub(crate) fn run(args: &Mpirun, globals: &Globals) -> Outcome {
    let options = options(args)?;
    if args.check_determinism {
        return determinism::check(&options, globals);
    }
    let mut evidence = slice::Evidence::begin(globals)?;
    let (marks, places) = (evidence.marks(), evidence.places());
    let code = run_replicated(args, &MpirunOptions { marks, places, ..options }, globals);
    evidence.finish();
    match code? {
        0 => Ok(Answer::Yes),
        // The program's own exit code is this program's.
        code => process::exit(code),
    }
}

fn options(args: &Mpirun) -> Outcome<MpirunOptions> {
    let restarts_max = if args.on_double == OnDouble::Abort { 0 } else { args.restarts_max };
    let is_none = args.launcher.as_deref() == Some(Path::new(mpirun::NONE));
    if args.env_file.is_some() && !is_none {
        return Err(Failure::new("--env-file is for --launcher none, which starts nothing itself"));
    }
    if is_none && (args.sets == Sets::Jobs || args.check_determinism) {
        return Err(Failure::new(
            "--launcher none starts nothing: `--sets jobs` and `--check-determinism` need a launcher",
        ));
    }
    if args.restart_cmd.as_ref().is_some_and(|it| it.is_empty()) {
        return Err(Failure::new(
            "--restart-cmd is empty: give the command that goes on from a checkpoint",
        ));
    }
    if let Some(path) = &args.json_summary {
        // What cannot be written is said before the program has run, and what one left that ran
        // before is not taken for this one's.
        fs::File::create(path).within(|| format!("cannot write {}", path.display()))?;
    }
    Ok(MpirunOptions {
        replicas: args.replicas.into(),
        ranks: args.ranks as usize,
        launcher: args.launcher.clone(),
        launcher_args: args.launcher_arg.clone(),
        env_file: args.env_file.clone(),
        program: args.program.clone(),
        own_program: env::current_exe().within(|| "cannot find this program itself".to_owned())?,
        library: LIBRARY,
        between_hosts: match args.between_hosts {
            BetweenHosts::Auto => None,
            BetweenHosts::Yes => Some(true),
            BetweenHosts::No => Some(false),
        },
        sets_are_jobs: args.sets == Sets::Jobs,
        compares_full: args.compare == Compare::Full,
        compares_at_receiver: args.compare_at == CompareAt::Receive,
        window: args.window,
        restarts_max,
        restart_command: args.restart_cmd.clone(),
        sends: None,
        is_silent: false,
        marks: None,
        places: None,
    })
}

/// The program's exit code.
fn run_replicated(args: &Mpirun, options: &MpirunOptions, globals: &Globals) -> Outcome<i32> {
    let ran = mpirun::run(options).within(|| "cannot run the program in replicas".to_owned());
    let summary = match ran {
        Ok(it) => it,
        Err(failure) => {
            let (ranks, replicas) = (options.ranks, options.replicas);
            let nothing = Summary { ranks, replicas, result: failure.text(), ..Summary::default() };
            write_summary(args, &Row::of(&nothing))?;
            return Err(failure);
        }
    };
    let row = Row::of(&summary);
    if globals.json {
        // Standard output is the program's.
        anstream::eprintln!("{}", serde_json::json!(row));
    } else {
        tell(&summary);
    }
    write_summary(args, &row)?;
    let failed = summary.code != 0 && !summary.has_own_end;
    match (failed, globals.json) {
        (false, _) => Ok(summary.code),
        // It was said above.
        (true, true) => Ok(FAILED),
        (true, false) => Err(Failure::new(&summary.result)),
    }
}

fn write_summary(args: &Mpirun, row: &Row<'_>) -> Outcome<()> {
    let Some(path) = &args.json_summary else { return Ok(()) };
    let text = serde_json::to_string_pretty(row).within(|| "cannot write JSON".to_owned())?;
    fs::write(path, text + "\n").within(|| format!("cannot write {}", path.display()))
}

/// Prints what was noticed and the sums.
fn tell(summary: &Summary) {
    for note in &summary.notes {
        anstream::eprintln!("selvedge: {note}");
    }
    let Summary { result, ranks, replicas, .. } = summary;
    let [sends, compares, bytes] =
        [summary.sends, summary.compares, summary.bytes].map(number::grouped);
    let [messages, carried, kept] =
        [summary.link_messages, summary.link_bytes, summary.log_bytes_max].map(number::grouped);
    let [all_s, compares_s] = [seconds(summary), compare_seconds(summary)];
    let processes = match ranks {
        1 => "1 process".to_owned(),
        n => format!("{n} processes"),
    };
    let replicas = number::counted(*replicas as u64, "replica");
    anstream::eprintln!("selvedge: {processes} x {replicas}, {all_s:.1} s: {result}");
    anstream::eprintln!(
        "selvedge: {}, {}, {}, {}",
        number::counted(summary.marks, "mark"),
        number::counted(summary.promotions, "promotion"),
        number::counted(summary.deaths, "death"),
        number::counted(summary.restarts.into(), "restart")
    );
    anstream::eprintln!(
        "selvedge: {sends} sends; {compares} compares of {bytes} bytes, {compares_s:.1} s of each \
         process; {messages} messages of {carried} bytes between replicas, {kept} bytes kept at most"
    );
}

fn seconds(summary: &Summary) -> f64 {
    summary.ms as f64 / 1000.0
}

/// In compares, with waiting for siblings to come to them, of a process on average.
fn compare_seconds(summary: &Summary) -> f64 {
    summary.compare_ms as f64 / 1000.0 / (summary.ranks * summary.replicas) as f64
}

pub(crate) fn run_replica(args: &MpirunReplica) -> Outcome {
    match mpirun::become_replica(&args.program) {
        Err(e) => Err(Failure::from(e)),
        Ok(never) => match never {},
    }
}

pub(crate) fn run_host(args: &MpirunHost) -> Outcome {
    if args.serve {
        mpirun::serve_host()?
    } else {
        mpirun::start_host()?
    }
    Ok(Answer::Yes)
}
