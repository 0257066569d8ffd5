//! Scenarios: what is simulated, as a TOML file (docs/scenarios.md).

use std::collections::BTreeMap;

use serde::Deserialize;

use selvedge_control::settings::Settings;
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::Dials;
use crate::fault::{FaultKind, Rates};
use crate::limits;
use crate::summary::{Summary, n_chips};
use crate::trace::mix::{self, Mix};
use crate::trace::{self, Scaled, TraceJob};
use crate::world::{Crashes, Happening, Planning, Setup, Syncs, World, WorldError};

/// The newest format that is read.
pub const FORMAT: u32 = 1;

/// The plant file of `n_pods` pods with `n_cubes` cubes each.
pub fn pods(n_pods: usize, n_cubes: usize) -> String {
    let pod = format!("\n[[pod]]\nfamily = \"tpuv4\"\ncubes = {n_cubes}\n");
    format!("format = 1\nname = \"simulated\"\n{}", pod.repeat(n_pods))
}

/// Where the plant comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlantFrom {
    /// Generated.
    Pods {
        /// How many pods.
        pods: usize,
        /// Cubes of each.
        cubes: usize,
    },
    /// A file, which the caller reads.
    File(String),
    /// Its text.
    Text(String),
}

/// Where the jobs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsFrom {
    /// There are none.
    Nowhere,
    /// Drawn from the published mix.
    Mix {
        /// How many.
        n_jobs: u64,
        /// The load that they offer.
        load: Ppm,
        /// What is scaled to that end.
        scaled: Scaled,
    },
    /// A trace file, which the caller reads.
    File {
        /// Its path.
        file: String,
        /// Arrivals are scaled to this load.
        load: Option<Ppm>,
    },
    /// A trace's text.
    Trace {
        /// Its name, for errors.
        name: String,
        /// Its text.
        text: String,
        /// Arrivals are scaled to this load.
        load: Option<Ppm>,
    },
}

/// One simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// For people.
    pub name: String,
    /// For all dice.
    pub seed: u64,
    /// When it ends; without it when all jobs are over.
    pub end: Option<Moment>,
    /// The plant.
    pub plant: PlantFrom,
    /// The jobs.
    pub jobs: JobsFrom,
    /// What the operator has set.
    pub settings: Settings,
    /// How often things fail.
    pub rates: Rates,
    /// How else the plant misbehaves.
    pub dials: Dials,
    /// What happens at which moment.
    pub events: Vec<(Moment, Happening)>,
    /// Everything is checked each so many inputs.
    pub check_every: u64,
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, or not a scenario's TOML.
    #[error("{file} is no scenario")]
    Toml {
        /// Which file.
        file: String,
        /// Line, caret and what was wrong.
        source: Box<toml::de::Error>,
    },
    /// Written for a newer version.
    #[error("{file}: format {format} is newer than this program reads; it reads {FORMAT}")]
    Newer {
        /// Which file.
        file: String,
        /// As written.
        format: u32,
    },
    /// A value that fits its type and nothing else.
    #[error("{file}: {key} is {value:?}; {right}")]
    Value {
        /// Which file.
        file: String,
        /// Which key.
        key: String,
        /// As written.
        value: String,
        /// What would be right.
        right: String,
    },
    /// The caller has not read a file that the scenario names.
    #[error("{path} has not been read")]
    Unread {
        /// Which.
        path: String,
    },
    /// The trace is wrong.
    #[error(transparent)]
    Trace(#[from] trace::TraceError),
    /// The world came to a stop.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The simulated moment.
    pub now: Moment,
    /// Jobs handed in so far.
    pub n_submitted: u64,
    /// Jobs that there are.
    pub n_jobs: u64,
    /// Jobs that are over.
    pub n_over: u64,
    /// Inputs so far.
    pub n_inputs: u64,
}

/// Steps between two reports of progress.
const PROGRESS_EVERY: u64 = 1 << 14;

/// How long after the last arrival a run may take that has no end of its own.
const AFTER_MAX: Span = Span::days(3650);

/// Runs a scenario to its end.
///
/// # Errors
/// [`ScenarioError`].
pub fn run(
    scenario: &Scenario,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, ScenarioError> {
    let mut world = begin(scenario)?;
    let last = scenario.end.unwrap_or(world.last_arrival() + AFTER_MAX);
    let n_jobs = world.n_to_submit();
    let mut n_steps = 0u64;
    while world.step(last)? {
        n_steps += 1;
        if n_steps.is_multiple_of(PROGRESS_EVERY) {
            let tally = world.tally();
            progress(Progress {
                now: world.now(),
                n_submitted: tally.n_submitted,
                n_jobs,
                n_over: tally.n_over,
                n_inputs: tally.n_inputs,
            });
        }
        if scenario.end.is_none() && world.is_done() {
            break;
        }
    }
    if let Some(end) = scenario.end {
        // The last event came before: what jobs hold and wait for they do until the end.
        world.rest(end);
    }
    world.check();
    Ok(world.summary(scenario.seed))
}

/// The world of a scenario at its first moment.
///
/// # Errors
/// [`ScenarioError`].
pub fn begin(scenario: &Scenario) -> Result<World, ScenarioError> {
    Ok(World::new(setup(scenario)?)?)
}

/// What a scenario's world is made of: its plant, and everything that comes from outside.
///
/// # Errors
/// [`ScenarioError`].
pub fn setup(scenario: &Scenario) -> Result<Setup, ScenarioError> {
    let plant = match &scenario.plant {
        PlantFrom::Pods { pods: n_pods, cubes } => pods(*n_pods, *cubes),
        PlantFrom::Text(text) => text.clone(),
        PlantFrom::File(path) => return Err(ScenarioError::Unread { path: path.clone() }),
    };
    let mut setup = Setup {
        plant,
        settings: scenario.settings.clone(),
        seed: scenario.seed,
        rates: scenario.rates,
        dials: scenario.dials,
        happenings: Vec::new(),
        syncs: Syncs::AtOnce,
        crashes: Crashes::Never,
        planning: Planning::AtOnce,
        check_every: scenario.check_every,
    };
    // How much the jobs are to be scaled depends on the plant, which the core reads.
    let (n_chips, on_grid) = match scenario.plant {
        PlantFrom::Pods { pods, cubes } => (64 * (pods * cubes) as u64, false),
        PlantFrom::File(_) | PlantFrom::Text(_) => {
            let world = World::new(setup.clone())?;
            let layout = world.core().layout();
            // Where every pod is a grid of boards, a job asks for its chips and not for a torus.
            let on_grid = layout.pools.ids().all(|it| layout.is_sited(it));
            (n_chips(world.core()), on_grid)
        }
    };
    let jobs = jobs(scenario, n_chips)?;
    let submits = jobs.iter().map(|job| {
        let mut spec = trace::spec(job, scenario.seed);
        if on_grid {
            spec.demand = trace::load_of(job);
        }
        (Moment::START + job.at, Happening::Submit(spec))
    });
    setup.happenings = submits.chain(scenario.events.iter().cloned()).collect();
    setup.happenings.sort_by_key(|it| it.0);
    Ok(setup)
}

fn jobs(scenario: &Scenario, n_chips: u64) -> Result<Vec<TraceJob>, ScenarioError> {
    Ok(match &scenario.jobs {
        JobsFrom::Nowhere => Vec::new(),
        JobsFrom::Mix { n_jobs, load, scaled } => {
            let mix = Mix { n_jobs: *n_jobs, n_chips, load: *load, scaled: *scaled };
            mix::draw(scenario.seed, mix)
        }
        JobsFrom::Trace { name, text, load } => {
            let mut jobs = trace::parse(name, text)?;
            if let Some(load) = load {
                trace::scale(&mut jobs, n_chips, *load, Scaled::Arrivals);
            }
            jobs
        }
        JobsFrom::File { file, .. } => return Err(ScenarioError::Unread { path: file.clone() }),
    })
}

impl Scenario {
    /// One pod with published fault rates and no jobs.
    pub fn new(n_cubes: usize, seed: u64) -> Self {
        Self {
            name: "pod".to_owned(),
            seed,
            end: None,
            plant: PlantFrom::Pods { pods: 1, cubes: n_cubes },
            jobs: JobsFrom::Nowhere,
            settings: Settings::simulated(),
            rates: Rates::published(),
            dials: Dials::QUIET,
            events: Vec::new(),
            check_every: 10_000,
        }
    }

    /// Reads a scenario; `file` is its name for errors.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let wrong_toml =
            |source| ScenarioError::Toml { file: file.to_owned(), source: Box::new(source) };
        // The format first: a newer file may have keys that we do not know.
        let format: Format = toml::from_str(text).map_err(wrong_toml)?;
        if FORMAT < format.format {
            return Err(ScenarioError::Newer { file: file.to_owned(), format: format.format });
        }
        let written: Written = toml::from_str(text).map_err(wrong_toml)?;
        let reader = Reader { file };
        reader.scenario(written)
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[allow(dead_code, reason = "read before")]
    format: u32,
    name: String,
    #[serde(default)]
    seed: u64,
    end: Option<String>,
    plant: WrittenPlant,
    jobs: Option<WrittenJobs>,
    means: Option<WrittenMeans>,
    #[serde(default)]
    rates: BTreeMap<String, WrittenRate>,
    #[serde(default = "yes")]
    published_rates: bool,
    #[serde(default)]
    dials: BTreeMap<String, u32>,
    #[serde(default)]
    event: Vec<WrittenEvent>,
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPlant {
    file: Option<String>,
    pods: Option<usize>,
    cubes: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenJobs {
    trace: Option<String>,
    mix: Option<u64>,
    load: Option<f64>,
    scale: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMeans {
    #[serde(default = "yes")]
    backfill: bool,
    #[serde(default = "yes")]
    preempt: bool,
    #[serde(default = "yes")]
    defragment: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRate {
    ppm_per_day: u32,
    /// Where the figure is from, or "assumed".
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvent {
    at: String,
    fault: Option<String>,
    clear: Option<String>,
    drain: Option<String>,
    undrain: Option<String>,
    path: Option<String>,
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn scenario(&self, written: Written) -> Result<Scenario, ScenarioError> {
        let moment = |key: &str, text: &str| {
            let span = Span::parse(text)
                .map_err(|_| self.wrong(key, text, "write a time such as 90s, 15m, 2h or 30d"))?;
            Ok::<_, ScenarioError>(Moment::START + span)
        };
        let mut settings = Settings::simulated();
        if let Some(means) = written.means {
            settings.means.backfill = means.backfill;
            settings.means.preempt = means.preempt;
            settings.means.defragment = means.defragment;
        }
        if limits::EVENTS_MAX < written.event.len() {
            let n = written.event.len().to_string();
            let right = format!("write at most {} events", limits::EVENTS_MAX);
            return Err(self.wrong("event", &n, &right));
        }
        let mut events = Vec::new();
        for event in &written.event {
            events.push((moment("event.at", &event.at)?, self.happening(event)?));
        }
        Ok(Scenario {
            name: written.name,
            seed: written.seed,
            end: written.end.as_deref().map(|text| moment("end", text)).transpose()?,
            plant: self.plant(written.plant)?,
            jobs: written.jobs.map_or(Ok(JobsFrom::Nowhere), |it| self.jobs(it))?,
            settings,
            rates: self.rates(written.published_rates, &written.rates)?,
            dials: self.dials(&written.dials)?,
            events,
            check_every: 10_000,
        })
    }

    fn wrong(&self, key: &str, value: &str, right: &str) -> ScenarioError {
        ScenarioError::Value {
            file: self.file.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            right: right.to_owned(),
        }
    }

    fn plant(&self, written: WrittenPlant) -> Result<PlantFrom, ScenarioError> {
        let in_range = |key: &str, n: usize, most: usize| {
            let fits = (1..=most).contains(&n);
            let right = format!("write a number from 1 to {most}");
            if fits { Ok(n) } else { Err(self.wrong(key, &n.to_string(), &right)) }
        };
        match (written.file, written.pods, written.cubes) {
            (Some(file), None, None) => Ok(PlantFrom::File(file)),
            (Some(file), ..) => {
                Err(self.wrong("plant.file", &file, "write a file, or pods and cubes, not both"))
            }
            (None, n_pods, cubes) => Ok(PlantFrom::Pods {
                pods: in_range("plant.pods", n_pods.unwrap_or(1), 64)?,
                cubes: in_range("plant.cubes", cubes.unwrap_or(64), 64)?,
            }),
        }
    }

    fn jobs(&self, written: WrittenJobs) -> Result<JobsFrom, ScenarioError> {
        let load = written.load.map(|load| {
            let fits = (0.001..=100.0).contains(&load);
            let right = "write a load such as 0.85, from 0.001 to 100";
            if fits {
                Ok(Ppm::new((load * 1e6) as u32))
            } else {
                Err(self.wrong("jobs.load", &load.to_string(), right))
            }
        });
        let load = load.transpose()?;
        let scaled = match written.scale.as_deref() {
            None | Some("arrivals") => Scaled::Arrivals,
            Some("durations") => Scaled::Durations,
            Some(other) => {
                let right = "write \"arrivals\" or \"durations\"";
                return Err(self.wrong("jobs.scale", other, right));
            }
        };
        match (written.trace, written.mix) {
            (Some(file), None) => Ok(JobsFrom::File { file, load }),
            (None, Some(n_jobs)) if (1..=10_000_000).contains(&n_jobs) => {
                Ok(JobsFrom::Mix { n_jobs, load: load.unwrap_or(Ppm::new(850_000)), scaled })
            }
            (None, Some(n)) => {
                Err(self.wrong("jobs.mix", &n.to_string(), "write from 1 to 10000000 jobs"))
            }
            (trace, _) => {
                let value = trace.unwrap_or_default();
                Err(self.wrong("jobs.trace", &value, "write either a trace file or mix = N"))
            }
        }
    }

    fn rates(
        &self,
        published: bool,
        written: &BTreeMap<String, WrittenRate>,
    ) -> Result<Rates, ScenarioError> {
        let mut rates = if published { Rates::published() } else { Rates::NONE };
        for (word, rate) in written {
            let key = format!("rates.{word}");
            let kind = FaultKind::parse(word).ok_or_else(|| {
                let known: Vec<&str> = FaultKind::ALL.iter().map(|it| it.word()).collect();
                self.wrong(&key, word, &format!("write one of {}", known.join(", ")))
            })?;
            if rate.source.trim().is_empty() {
                let right = "say where the figure is from, or write \"assumed\"";
                return Err(self.wrong(&format!("{key}.source"), &rate.source, right));
            }
            rates = rates.with(kind, Ppm::new(rate.ppm_per_day));
        }
        Ok(rates)
    }

    fn dials(&self, written: &BTreeMap<String, u32>) -> Result<Dials, ScenarioError> {
        let mut dials = Dials::QUIET;
        for (word, &ppm) in written {
            let key = format!("dials.{word}");
            if 1_000_000 < ppm {
                return Err(self.wrong(&key, &ppm.to_string(), "write at most 1000000 (always)"));
            }
            let dial = match word.as_str() {
                "lose_ppm" => &mut dials.lose,
                "echo_ppm" => &mut dials.echo,
                "untrained_ppm" => &mut dials.untrained,
                "stubborn_ppm" => &mut dials.stubborn,
                "fail_ppm" => &mut dials.fail,
                "botch_ppm" => &mut dials.botch,
                _ => {
                    let right = "write one of lose_ppm, echo_ppm, untrained_ppm, stubborn_ppm, \
                                 fail_ppm, botch_ppm";
                    return Err(self.wrong(&key, word, right));
                }
            };
            *dial = Ppm::new(ppm);
        }
        Ok(dials)
    }

    fn happening(&self, event: &WrittenEvent) -> Result<Happening, ScenarioError> {
        match (&event.fault, &event.clear, &event.drain, &event.undrain) {
            (Some(word), None, None, None) => {
                let kind = FaultKind::parse(word).ok_or_else(|| {
                    let known: Vec<&str> = FaultKind::ALL.iter().map(|it| it.word()).collect();
                    let right = format!("write one of {}", known.join(", "));
                    self.wrong("event.fault", word, &right)
                })?;
                Ok(Happening::Fault { kind, path: event.path.clone() })
            }
            (None, Some(path), None, None) => {
                Ok(Happening::Clear { path: (path != "all").then(|| path.clone()) })
            }
            (None, None, Some(path), None) => {
                Ok(Happening::Drain { path: path.clone(), undo: false })
            }
            (None, None, None, Some(path)) => {
                Ok(Happening::Drain { path: path.clone(), undo: true })
            }
            _ => {
                let right = "write exactly one of fault, clear, drain, undrain";
                Err(self.wrong("event", &event.at, right))
            }
        }
    }
}

#[cfg(test)]
mod tests;
