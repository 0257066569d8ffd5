//! `selvedge sim`: the same core without a server, as fast as it goes.

mod page;

mod picture;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use selvedge_control::settings::Means;
use selvedge_model::unit::{Moment, Ppm, Span};
use selvedge_sim::fault::{FaultKind, Rates};
use selvedge_sim::judge::{self, Trial};
use selvedge_sim::limits::TRACE_BYTES_MAX;
use selvedge_sim::scenario::{self, JobsFrom, PlantFrom, Progress, Scenario, ScenarioError};
use selvedge_sim::summary::Summary;
use selvedge_sim::trace::Scaled;
use serde::Serialize;
use serde_json::json;

use crate::Globals;
use crate::cmd::plant;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::{self, number, progress, style};

#[derive(Debug, clap::Args)]
#[command(after_help = "Without a scenario or a trace, jobs are drawn from the published TPUv4 \
                        slice mix.  The same seed gives the same object but for wall_s and \
                        inputs_per_s.\nTimes are written 90s, 15m, 2h, 3d.\n\
                        Exit status: 0 no rule was broken, 1 one was, 2 error.")]
pub(crate) struct Sim {
    /// A scenario file (docs/scenarios.md); options given beside it go before it.
    #[arg(value_name = "SCENARIO")]
    scenario: Option<PathBuf>,
    /// Jobs from a table: job id, arrival (s), topology, shape, size, duration (s).
    #[arg(long, value_name = "FILE", conflicts_with = "mix")]
    trace: Option<PathBuf>,
    /// Jobs drawn from a published mix.
    #[arg(long, value_name = "MIX")]
    mix: Option<MixName>,
    /// How many jobs to draw; 1000 without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: Option<u64>,
    /// Chip-time asked for by chip-time there is, such as 0.85, got by scaling arrivals.
    #[arg(long, value_name = "X", value_parser = load)]
    load: Option<Ppm>,
    /// Get the load of a mix by scaling durations in place of arrivals.
    #[arg(long)]
    scale_durations: bool,
    /// For all dice; 1 without.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Cubes of each pod, 1 to 64; 64 without.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=64))]
    cubes: Option<u64>,
    /// How many pods; 1 without.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u64).range(1..=256))]
    pods: Option<u64>,
    /// A plant file in place of pods and cubes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cubes", "pods"])]
    plant: Option<PathBuf>,
    /// End at this moment, jobs over or not.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    until: Option<Span>,
    /// Nothing fails; without, things fail as often as published.
    #[arg(long)]
    no_faults: bool,
    /// Later jobs do not pass a waiting one.
    #[arg(long)]
    no_backfill: bool,
    /// No job gives way to one of higher priority.
    #[arg(long)]
    no_preempt: bool,
    /// No running job is moved so that a large one fits.
    #[arg(long)]
    no_defragment: bool,
    /// Run with backfill, preemption and defragmentation each on and off.
    #[arg(long, conflicts_with_all = ["no_backfill", "no_preempt", "no_defragment", "svg"])]
    compare: bool,
    /// With --compare, repeat it with so many seeds, from --seed on, and print mean and spread.
    #[arg(long, value_name = "N", requires = "compare",
          value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Draw who uses which cube at the end (see --until) into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Run one seed of the judge, who draws everything from it and breaks what can break.
    #[arg(long, value_name = "N", conflicts_with_all = [
        "scenario", "trace", "mix", "jobs", "load", "scale_durations", "seed", "cubes", "pods",
        "plant", "until", "no_faults", "no_backfill", "no_preempt", "no_defragment", "compare",
        "svg",
    ])]
    judge_seed: Option<u64>,
    /// Let the power fail at every sync of the judge's seed, as `cargo xtask soak` does.
    #[arg(long, requires = "judge_seed")]
    crashes_everywhere: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MixName {
    /// The published TPUv4 slice mix.
    Tpuv4,
}

/// A run and how long it really took.
#[derive(Debug, Serialize)]
struct Timed<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    wall_s: f64,
    inputs_per_s: f64,
}

/// A run under some of the scheduler's means.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    backfill: bool,
    preempt: bool,
    defragment: bool,
    #[serde(flatten)]
    summary: Summary,
}

pub(crate) fn run(args: &Sim, globals: &Globals) -> Outcome {
    if let Some(seed) = args.judge_seed {
        return judge_seed(
            Trial { crashes_everywhere: args.crashes_everywhere, ..Trial::of(seed) },
            globals,
        );
    }
    let scenario = scenario_of(args)?;
    if let Some(path) = &args.scenario {
        // What its events name is looked for before anything runs.
        scenario::setup(&scenario).within(|| format!("{} cannot be run", path.display()))?;
    }
    if let Some(file) = &args.svg {
        return draw(&scenario, file);
    }
    if args.compare {
        return compare(&scenario, args.seeds.unwrap_or(1), globals);
    }
    let (summary, wall) = timed(&scenario, &scenario.name)?;
    let wall_s = wall.as_secs_f64();
    if globals.json {
        let inputs_per_s = summary.inputs as f64 / wall_s.max(1e-9);
        render::print_json(&Timed { summary: &summary, wall_s, inputs_per_s })?;
    } else {
        render::print(&page::summary(&scenario.name, &summary, wall_s))?;
    }
    Ok(verdict(summary.violations == 0))
}

fn verdict(is_clean: bool) -> Answer {
    if is_clean { Answer::Yes } else { Answer::No }
}

#[allow(clippy::disallowed_methods, reason = "how long a run really took is told to a person")]
fn timed(scenario: &Scenario, what: &str) -> Outcome<(Summary, Duration)> {
    let since = Instant::now();
    let mut line = progress::Progress::new();
    let summary = scenario::run(scenario, &mut |at| line.tell(|| far(what, &at)))?;
    Ok((summary, since.elapsed()))
}

/// `pod: day 12, 1,234 of 2,498 jobs over, 1,000,000 inputs`.
fn far(what: &str, at: &Progress) -> String {
    format!(
        "{what}: {}, {} of {} jobs over, {} inputs",
        number::clock(at.now.as_secs_f64()),
        number::grouped(at.n_over),
        number::grouped(at.n_jobs),
        number::grouped(at.n_inputs)
    )
}

fn compare(scenario: &Scenario, n_seeds: u64, globals: &Globals) -> Outcome {
    let mut runs = Vec::new();
    for bits in 0..8u8 {
        let [defragment, preempt, backfill] = [bits & 1 == 0, bits & 2 == 0, bits & 4 == 0];
        for seed in scenario.seed..scenario.seed.saturating_add(n_seeds) {
            let mut scenario = scenario.clone();
            scenario.settings.means = Means { backfill, preempt, defragment };
            scenario.seed = seed;
            let number = runs.len() + 1;
            let (summary, _) = timed(&scenario, &format!("{number} of {}", 8 * n_seeds))?;
            runs.push(Compared { backfill, preempt, defragment, summary });
        }
    }
    let is_clean = runs.iter().all(|it| it.summary.violations == 0);
    if globals.json {
        let seed = scenario.seed;
        render::print_json(&json!({"seed": seed, "seeds": n_seeds, "runs": runs}))?;
    } else {
        render::print(&page::comparison(&scenario.name, scenario.seed, n_seeds, &runs))?;
    }
    Ok(verdict(is_clean))
}

fn draw(scenario: &Scenario, file: &Path) -> Outcome {
    let mut world = scenario::begin(scenario)?;
    let end = scenario.end.unwrap_or(Moment::NEVER);
    while !(scenario.end.is_none() && world.is_done()) && world.step(end).map_err(scenario_error)? {
    }
    let svg = picture::draw(&scenario.name, &world);
    fs::write(file, svg).within(|| format!("cannot write {}", file.display()))?;
    render::print(&format!("{}\n", file.display()))?;
    Ok(Answer::Yes)
}

fn scenario_error(error: selvedge_sim::world::WorldError) -> ScenarioError {
    ScenarioError::World(error)
}

fn judge_seed(trial: Trial, globals: &Globals) -> Outcome {
    let seed = trial.seed;
    let outcome = judge::run(trial).within(|| format!("the judge's seed {seed} cannot go on"))?;
    let is_clean = outcome.violations.is_empty();
    if globals.json {
        render::print_json(&outcome)?;
        return Ok(verdict(is_clean));
    }
    let faults: u64 = outcome.n_faults.iter().sum();
    let kinds = FaultKind::ALL.iter().zip(outcome.n_faults).filter(|(_, n)| *n != 0);
    let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} {}", kind.word())).collect();
    let mut page = format!(
        "seed {seed}: {}\n{}, {}, {}, {}; digest {}\n",
        outcome.options,
        number::counted(outcome.n_inputs, "input"),
        number::counted(outcome.n_jobs, "job"),
        number::counted(faults, "fault"),
        number::counted(outcome.n_crashes, "power failure"),
        outcome.digest
    );
    page.push_str(&format!("faults: {}\n", kinds.join(", ")));
    let (good, bad) = (style::GOOD, style::BAD);
    if is_clean {
        page.push_str(&format!("{good}no rule was broken{good:#}\n"));
    }
    for violation in &outcome.violations {
        page.push_str(&format!("{bad}broken:{bad:#} {violation}\n"));
    }
    render::print(&page)?;
    Ok(verdict(is_clean))
}

/// What is to be run: the file, and what was given beside it.
fn scenario_of(args: &Sim) -> Outcome<Scenario> {
    let mut scenario = match &args.scenario {
        Some(path) => read_scenario(path)?,
        None => Scenario::new(args.cubes.unwrap_or(64) as usize, 1),
    };
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    if let Some(path) = &args.plant {
        scenario.plant = PlantFrom::Text(plant::sound_text(path)?);
    } else if args.cubes.is_some() || args.pods.is_some() {
        let (pods, cubes) = (args.pods.unwrap_or(1), args.cubes.unwrap_or(64));
        scenario.plant = PlantFrom::Pods { pods: pods as usize, cubes: cubes as usize };
    }
    if let Some(until) = args.until {
        scenario.end = Some(Moment::START + until);
    }
    if args.no_faults {
        scenario.rates = Rates::NONE;
    }
    let means = &mut scenario.settings.means;
    means.backfill &= !args.no_backfill;
    means.preempt &= !args.no_preempt;
    means.defragment &= !args.no_defragment;
    if let Some(jobs) = jobs_of(args)? {
        scenario.jobs = jobs;
    }
    if args.scenario.is_none() {
        scenario.name = title_of(args);
    }
    Ok(scenario)
}

/// The load of a mix unless told otherwise: that of docs/study.md's first table.
const LOAD: Ppm = Ppm::new(850_000);

fn jobs_of(args: &Sim) -> Outcome<Option<JobsFrom>> {
    if let Some(path) = &args.trace {
        let (name, text) = (path.display().to_string(), read(path)?);
        return Ok(Some(JobsFrom::Trace { name, text, load: args.load }));
    }
    let is_asked = args.mix.is_some() || args.scenario.is_none() || args.jobs.is_some();
    if !is_asked {
        if args.load.is_some() {
            return Err(Failure::new("--load beside a scenario has no jobs to scale")
                .hint("write the load into the scenario, or name jobs: --mix tpuv4 or --trace"));
        }
        return Ok(None);
    }
    let scaled = if args.scale_durations { Scaled::Durations } else { Scaled::Arrivals };
    let (n_jobs, load) = (args.jobs.unwrap_or(1000), args.load.unwrap_or(LOAD));
    Ok(Some(JobsFrom::Mix { n_jobs, load, scaled }))
}

fn title_of(args: &Sim) -> String {
    let jobs = match &args.trace {
        Some(path) => path.display().to_string(),
        None => {
            let load = f64::from(args.load.unwrap_or(LOAD).parts()) / 1e6;
            format!(
                "{} of the tpuv4 mix at load {load}",
                number::counted(args.jobs.unwrap_or(1000), "job")
            )
        }
    };
    let plant = match &args.plant {
        Some(path) => path.display().to_string(),
        None => {
            let pods = number::counted(args.pods.unwrap_or(1), "pod");
            format!("{pods} of {}", number::counted(args.cubes.unwrap_or(64), "cube"))
        }
    };
    format!("{jobs} on {plant}")
}

/// A scenario with the files that it names.
pub(crate) fn read_scenario(path: &Path) -> Outcome<Scenario> {
    let mut scenario = Scenario::parse(&path.display().to_string(), &read(path)?)?;
    // Files that it names lie beside it.
    let beside = |file: &str| path.parent().unwrap_or(Path::new("")).join(file);
    if let PlantFrom::File(file) = &scenario.plant {
        scenario.plant = PlantFrom::Text(plant::sound_text(&beside(file))?);
    }
    if let JobsFrom::File { file, load } = &scenario.jobs {
        let (name, text) = (file.clone(), read(&beside(file))?);
        scenario.jobs = JobsFrom::Trace { name, text, load: *load };
    }
    Ok(scenario)
}

pub(crate) fn read(path: &Path) -> Outcome<String> {
    let cannot = || format!("cannot read {}", path.display());
    let mut bytes = Vec::new();
    let file = fs::File::open(path).within(cannot)?;
    file.take(TRACE_BYTES_MAX + 1).read_to_end(&mut bytes).within(cannot)?;
    if TRACE_BYTES_MAX < bytes.len() as u64 {
        let mib = TRACE_BYTES_MAX >> 20;
        return Err(Failure::new(format!("{} is longer than {mib} MiB", path.display()))
            .hint("cut it into pieces, and simulate one after the other"));
    }
    let packers: [(&[u8], &str); 3] =
        [(b"\x1f\x8b", "gunzip"), (b"\x28\xb5\x2f\xfd", "unzstd"), (b"\xfd7zXZ", "unxz")];
    if let Some((_, tool)) = packers.iter().find(|it| bytes.starts_with(it.0)) {
        return Err(Failure::new(format!("{} is compressed", path.display()))
            .hint(format!("unpack it first: {tool} -k {}", path.display())));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|it| **it == b'\n').count();
        Failure::new(format!("{}, line {line}, is no text in UTF-8", path.display()))
            .hint("write it as plain text in UTF-8")
    })
}

fn load(text: &str) -> Result<Ppm, String> {
    let right = "must be a number from 0.01 to 100";
    let load: f64 = text.parse().map_err(|_| right.to_owned())?;
    if !(0.01..=100.0).contains(&load) {
        return Err(right.to_owned());
    }
    Ok(Ppm::new((load * 1e6).round() as u32))
}

fn span(text: &str) -> Result<Span, String> {
    Span::parse(text).map_err(|_| "write a time such as 90s, 15m, 2h or 30d".to_owned())
}
