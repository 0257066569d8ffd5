//! Scenarios: what is simulated, as a TOML file (docs/scenarios.md).

mod written;

use selvedge_control::settings::Settings;
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::Dials;
use crate::fault::Rates;
use crate::summary::{Summary, cell_of};
use crate::trace::mix::{self, Mix};
use crate::trace::{self, Cell, Scaled, TraceJob};
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
    /// The file is wrong somewhere.
    #[error("{drawn}")]
    Written {
        /// The line, from 1 on.
        line: u32,
        /// The column in characters, from 1 on.
        column: u32,
        /// File, line and column, what is wrong, the line with a caret, what would be right.
        drawn: String,
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
    let names_things = scenario.events.iter().any(|(_, it)| it.path().is_some());
    if names_things {
        World::new(setup.clone())?.could_happen(&scenario.events)?;
    }
    // How much the jobs are to be scaled depends on the plant, which the core reads.
    let (cell, on_grid) = match scenario.plant {
        PlantFrom::Pods { pods, cubes } => (Cell::of(pods as u64, 64 * cubes as u64), false),
        PlantFrom::File(_) | PlantFrom::Text(_) => {
            let world = World::new(setup.clone())?;
            let layout = world.core().layout();
            // Where every pod is a grid of boards, a job asks for its chips and not for a torus.
            let on_grid = layout.pools.ids().all(|it| layout.is_sited(it));
            (cell_of(world.core()), on_grid)
        }
    };
    let jobs = jobs(scenario, cell, on_grid)?;
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

fn jobs(scenario: &Scenario, cell: Cell, on_grid: bool) -> Result<Vec<TraceJob>, ScenarioError> {
    Ok(match &scenario.jobs {
        JobsFrom::Nowhere => Vec::new(),
        JobsFrom::Mix { n_jobs, load, scaled } => {
            let mix = Mix { n_jobs: *n_jobs, cell, load: *load, scaled: *scaled };
            mix::draw(scenario.seed, mix)
        }
        JobsFrom::Trace { name, text, load } => {
            let mut jobs = trace::parse(name, text)?;
            if on_grid {
                trace::by_size(&mut jobs);
            }
            if let Some(load) = load {
                trace::scale(&mut jobs, cell, *load, Scaled::Arrivals);
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
    /// [`ScenarioError::Written`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        written::parse(file, text)
    }
}

#[cfg(test)]
mod tests;
