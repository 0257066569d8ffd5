//! Why a job waits, and what would become of one: asked of the core, never canned.

use selvedge_collective::bound;
use selvedge_control::capacity::{Capacity, Largest};
use selvedge_control::core::{Core, Explanation};
use selvedge_control::family;
use selvedge_control::schedule::explain::{Forecast, Never, Step, TooLong};
use selvedge_control::state::{Job, JobState};
use selvedge_family::graph::{ChipGraph, Graph};
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::job::{Demand, JobSpec};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::error::ApiError;
use crate::api::job::{ExplanationView, ForecastView, RoomView, StepView};
use crate::limits;
use crate::shell::Shell;
use crate::words;

/// How many chips a job holds or will hold.
pub(crate) fn chips(shell: &Shell, _: JobId, job: &Job) -> u32 {
    match &job.place {
        Some(place) => place.n_seats(),
        None => {
            family::need(&job.spec.demand).map_or(0, |(_, need)| need.n_seats(n_part_seats(shell)))
        }
    }
}

/// How many seats the largest part has.
fn n_part_seats(shell: &Shell) -> u32 {
    let templates = shell.core().fabric().templates();
    templates.iter().map(|it| it.all_seats().count_ones()).max().unwrap_or(0)
}

/// Questions that are thought about at once; others wait for their turn.
static QUESTIONS: Semaphore = Semaphore::const_new(limits::QUESTIONS_MAX);

/// Leave to have a copy of the core and to think about it.
pub(crate) type Turn = SemaphorePermit<'static>;

/// Waits for its turn: who waits has no copy yet.
pub(crate) async fn turn() -> Result<Turn, ApiError> {
    QUESTIONS.acquire().await.map_err(|_| ApiError::stopping())
}

/// What a question comes to that may take seconds: it is no time of the loop's.
pub(crate) async fn asked<T: Send + 'static>(
    turn: Turn,
    core: Core,
    question: impl FnOnce(&Core) -> T + Send + 'static,
) -> Result<T, ApiError> {
    // Also when whoever asked has gone away: the thought is not over before it is over.
    let thought = move |core: &Core| (question(core), turn).0;
    tried(core, thought).await
}

/// What a copy of the core says, thought apart from the loop.
pub(crate) async fn tried<T: Send + 'static>(
    core: Core,
    question: impl FnOnce(&Core) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let answer = tokio::task::spawn_blocking(move || question(&core)).await;
    answer.map_err(|_| ApiError::stopping())
}

/// What would become of a job, in words.
pub(crate) fn forecast(shell: &Shell, spec: &JobSpec, forecast: &Forecast) -> ForecastView {
    let core = shell.core();
    let mut view = forecast_view(shell, forecast);
    let demand = family::sized(core.fabric(), core.layout(), &spec.demand);
    if let Some(need) = need_words(shell, &demand) {
        view.why = format!("{}; {need}", view.why);
    }
    view
}

fn forecast_view(shell: &Shell, forecast: &Forecast) -> ForecastView {
    let fabric = shell.core().fabric();
    let (start, at, cubes, why) = match forecast {
        Forecast::Now { place } => {
            let parts = place.holds.iter().map(|it| words::path(fabric, Target::Part(it.part)));
            let now = Some(shell.core().state().now);
            ("now", now, parts.collect(), "there is room for it".to_owned())
        }
        Forecast::At { at, after, preempts } => {
            ("at", Some(*at), Vec::new(), timely_words(shell, after, *preempts))
        }
        Forecast::TooLong => ("unknown", None, Vec::new(), TOO_LONG.to_owned()),
        Forecast::Unknown { steps } => ("unknown", None, Vec::new(), awaited_words(shell, steps)),
        Forecast::Never { why: Never::TooLarge { n_parts } } => {
            let parts = words::counted(*n_parts as u64, "part");
            let why = format!("the largest pool of this plant has {parts} for it");
            ("never", None, Vec::new(), why)
        }
        Forecast::Never { why: Never::NoRoom } => {
            let why = "it would not start either if it were alone and everything sound";
            ("never", None, Vec::new(), why.to_owned())
        }
    };
    let at_s = at.map(selvedge_model::unit::Moment::as_secs_f64);
    ForecastView { start: start.to_owned(), at_s, cubes, why }
}

/// What is said where the core has given a question up.
const TOO_LONG: &str = "so much waits and runs that it takes too long to work out";

/// What happens by itself just before a job starts.
fn timely_words(shell: &Shell, after: &[Step], preempts: bool) -> String {
    let fabric = shell.core().fabric();
    let happens = |step: &Step| match *step {
        Step::End { job } => format!("{job} has left by then at the latest"),
        Step::Return { target } => {
            format!("{} is tested by then, and in use again", words::path(fabric, target))
        }
        Step::Wait { .. } => "it is not tried again before".to_owned(),
        Step::Hold { job } => format!("{job} is held"),
        Step::Release { job } => format!("{job} is released"),
    };
    let mut all: Vec<String> = after.iter().take(AWAITED_SHOWN).map(happens).collect();
    if let Some(n) = after.len().checked_sub(AWAITED_SHOWN).filter(|it| 0 < *it) {
        all.push(format!("and {n} more"));
    }
    if preempts {
        all.push("jobs of lower priority have given way to it".to_owned());
    }
    if all.is_empty() {
        all.push("those before it have started by then".to_owned());
    }
    all.join("; ")
}

/// What has to happen first, for which nobody knows the time.
fn awaited_words(shell: &Shell, steps: &[Step]) -> String {
    let fabric = shell.core().fabric();
    let awaited = |step: &Step| match *step {
        Step::End { job } => format!("{job} has ended, which has no limit"),
        Step::Return { target } => {
            format!("{} is in use again", words::path(fabric, target))
        }
        Step::Hold { job } => {
            format!("{job} no longer stands before it, which cannot start itself")
        }
        Step::Release { job } => format!("{job} is released"),
        Step::Wait { until } => format!("it is {}", words::clock(until)),
    };
    let all: Vec<String> = steps.iter().take(AWAITED_SHOWN).map(awaited).collect();
    let more = match steps.len().checked_sub(AWAITED_SHOWN) {
        Some(n) if 0 < n => format!("; and {n} more"),
        Some(_) | None => String::new(),
    };
    format!("it starts once {}{more}; nobody knows when", all.join("; "))
}

/// Things that a job waits for in one line.
const AWAITED_SHOWN: usize = 4;

/// Why a job stands as it does, and what would let it start if it waits.
pub(crate) fn explain(
    shell: &Shell,
    id: JobId,
    job: &Job,
    explained: Option<Explanation>,
) -> ExplanationView {
    let room = explained.iter().flat_map(|it| &it.room).map(|(pod, n_free, n_parts)| RoomView {
        pod: pod.clone(),
        n_free: *n_free,
        n_parts: *n_parts,
        largest_box: largest(shell, pod).map(|it| format!("{}x{}", it.rows, it.columns)),
        largest_set: largest(shell, pod).map(|it| it.connected),
    });
    let steps = explained.as_ref().map(|it| it.steps.as_ref());
    let is_too_long = steps.is_some_and(|it| it.is_err());
    let steps = steps.and_then(|it| it.ok()?.as_ref());
    ExplanationView {
        id: id.number(),
        state: job.state.word().to_owned(),
        summary: match &explained {
            Some(explained) => said(shell, explained),
            None => summary(shell, id, job),
        },
        n_ahead: explained.as_ref().map_or(0, |it| it.n_ahead),
        is_too_long,
        room: room.collect(),
        bounds: partition(shell, id, job).and_then(|it| bounds_words(&it, AT_ONCE_CHIPS_MAX)),
        need: need_words(shell, &job.spec.demand),
        replicas: replica_words(shell, job),
        steps: steps.map(|steps| steps.iter().map(|it| step_view(shell, it)).collect()),
        forecast: explained
            .as_ref()
            .and_then(|it| it.forecast.as_ref())
            .map(|it| forecast_view(shell, it)),
    }
}

/// The largest box and connected set of free boards of a pod, if it is a grid.
pub(crate) fn largest(shell: &Shell, pod: &str) -> Option<Largest> {
    let (core, fabric) = (shell.core(), shell.core().fabric());
    let pool = fabric.pools().pairs().find(|(_, name)| **name == *pod)?.0;
    Capacity::now(core.layout(), &core.state().parts).largest(pool)
}

/// Chips of a partition up to which the exact bound takes less than a millisecond, so that every
/// page that is drawn has it.
pub(crate) const AT_ONCE_CHIPS_MAX: usize = 64;

/// The chips of the partition that a job has and the links that it uses between them.
pub(crate) fn partition(shell: &Shell, id: JobId, job: &Job) -> Option<Graph> {
    let core = shell.core();
    let place = job.place.as_ref().filter(|_| family::is_joined(core.need_of(id)))?;
    let fabric = core.fabric();
    let seats = |part| fabric.template_of(part).seats().iter().map(move |it| (part, *it as usize));
    let chips = place.holds.iter().flat_map(|it| seats(it.part));
    let chips = chips.map(|(part, at)| fabric.node_at(part, at));
    Some(ChipGraph::without(fabric, chips, &place.without).graph)
}

/// What no schedule of a collective can beat on a partition: exactly up to so many chips, and
/// beyond between which two it lies.
pub(crate) fn bounds_words(graph: &Graph, exact_max: usize) -> Option<String> {
    let (n, n_links, least) = (graph.n_nodes(), graph.links().len(), graph.degrees()[0]);
    let links = format!("{n} chips with {n_links} links, {least} at least each");
    if n <= exact_max {
        let bounds = bound::bounds(n, graph.links()).ok()?;
        return Some(format!(
            "{links}; an all-reduce of S bytes takes exactly {} S/b at best (the strength of the \
             graph), an all-gather {} S/b, b a link's rate",
            bounds.all_reduce, bounds.all_gather
        ));
    }
    let bracket = bound::bracket(n, graph.links()).ok()?;
    let how = match n <= bound::EXACT_CHIPS_MAX {
        true => "`job explain` works it out exactly".to_owned(),
        false => format!("it is worked out exactly up to {} chips", bound::EXACT_CHIPS_MAX),
    };
    let trees = match bracket.n_trees {
        1 => "one tree takes".to_owned(),
        n => format!("{n} trees that share no link take"),
    };
    Some(format!(
        "{links}; an all-reduce of S bytes takes at best between {:.4} S/b, by its links, and {:.4} \
         S/b, which {trees} ({how}); an all-gather {} S/b, b a link's rate",
        bracket.least.value(),
        bracket.most.value(),
        bracket.all_gather
    ))
}

/// Clusters that are named in an explanation.
const CLUSTERS_NAMED: usize = 4;

/// Where the replicas of a job's processes run (seed 003, definition 4).
fn replica_words(shell: &Shell, job: &Job) -> Option<String> {
    let place = job.place.as_ref().filter(|_| 1 < job.spec.redundancy)?;
    let fabric = shell.core().fabric();
    let found = family::clusters(fabric, place);
    let named = found.machines.iter().take(CLUSTERS_NAMED).map(|it| {
        let [meta, a, b] = it.map(|it| words::path(fabric, it));
        format!("{meta} leads {a} and {b}")
    });
    let more = match found.machines.len().checked_sub(CLUSTERS_NAMED) {
        Some(n) if 0 < n => format!(", and {n} more"),
        Some(_) | None => String::new(),
    };
    let left = match found.n_left {
        0 => String::new(),
        n => format!("; {n} of its machines are in no cluster"),
    };
    let far = found.n_joined - found.n_near;
    let apart = found.machines.len() - found.n_joined;
    let kinds = [
        (found.n_near, " within two hops of each other".to_owned()),
        (far, format!(" up to {} hops apart", found.hops_max)),
        (apart, " that no cables join, in their order".to_owned()),
    ];
    let kinds = kinds.into_iter().filter(|it| 0 < it.0);
    let kinds = kinds.map(|(n, how)| {
        let n = words::counted(n as u64, "cluster");
        format!("{n} of machines{how}")
    });
    Some(format!(
        "{}: {}{more}{left}",
        kinds.collect::<Vec<_>>().join(", "),
        named.collect::<Vec<_>>().join(", ")
    ))
}

/// How the boards of a load follow from its chips and memory (seed 004, claim 12).
fn need_words(shell: &Shell, demand: &Demand) -> Option<String> {
    let Demand::Load(load) = demand else { return None };
    let core = shell.core();
    let (chips, gib) = family::board_of(core.fabric(), core.layout())?;
    let of_chips = load.chips.div_ceil(chips);
    let memory = match load.memory_gib {
        0 => String::new(),
        asked => {
            let n = words::counted(asked.div_ceil(gib), "board");
            format!(", {asked} GiB of memory need {n} of {gib} GiB each")
        }
    };
    let share = f64::from(load.communication.parts()) / 1e4;
    Some(format!(
        "{}: {} need {} of {chips} each{memory}; it communicates for {share} % of its time by {}, \
         and waits rather than take more than a quarter longer than on the best partition of its \
         size that the sound boards of its pod give",
        words::counted(load.boards.unwrap_or(of_chips), "board"),
        words::counted(load.chips, "chip"),
        words::counted(of_chips, "board"),
        load.collective.word(),
    ))
}

/// What a waiting job waits for, in one line.
fn said(shell: &Shell, explained: &Explanation) -> String {
    let steps = match explained.steps.as_ref().map(|it| it.as_deref()) {
        Err(TooLong) => return TOO_LONG.to_owned(),
        Ok(None) => return "not even an empty, healthy plant would start it now".to_owned(),
        Ok(Some([])) => return "it starts at the next pass".to_owned(),
        Ok(Some(steps)) => steps,
    };
    let shown: Vec<String> = steps.iter().take(4).map(|it| step_view(shell, it).text).collect();
    let more = match steps.len().checked_sub(4) {
        Some(n) if 0 < n => format!(", and {n} more"),
        Some(_) | None => String::new(),
    };
    format!("it starts if you {}{more}", shown.join(", "))
}

fn step_view(shell: &Shell, step: &Step) -> StepView {
    let fabric = shell.core().fabric();
    let (step, target, text) = match *step {
        Step::Release { job } => ("release", job.to_string(), format!("release {job}")),
        Step::Wait { until } => {
            ("wait", until.to_string(), format!("wait until {}", words::clock(until)))
        }
        Step::Return { target } => {
            let path = words::path(fabric, target);
            let text = format!("bring {path} back");
            ("return", path, text)
        }
        Step::End { job } => ("end", job.to_string(), format!("let {job} end")),
        Step::Hold { job } => ("hold", job.to_string(), format!("hold {job}")),
    };
    StepView { step: step.to_owned(), target, text }
}

/// Why a job stands as it does, in one line.
pub(crate) fn summary(shell: &Shell, id: JobId, job: &Job) -> String {
    if let Some(why) = words::job_why(job, shell.core().fabric()) {
        return why;
    }
    match job.state {
        JobState::Queued { .. } => waiting(shell.core(), id),
        JobState::Starting { stage, .. } => {
            format!("it is being made ready: {}", words::stage(stage))
        }
        JobState::Running { .. } => "it runs".to_owned(),
        JobState::Stopping { .. } => "it is stopping".to_owned(),
        JobState::Finished => "its work is done".to_owned(),
        JobState::Failed { .. } => "it failed".to_owned(),
        JobState::Cancelled => "it was cancelled".to_owned(),
    }
}

fn waiting(core: &selvedge_control::core::Core, id: JobId) -> String {
    let state = core.state();
    if let JobState::Queued { not_before, .. } = state.jobs[id].state
        && state.now < not_before
    {
        return format!("it is not started again before {}", words::clock(not_before));
    }
    let ahead = state.queue.iter().take_while(|(_, job)| *job != id).count();
    let before = if ahead == 1 { "1 job is".to_owned() } else { format!("{ahead} jobs are") };
    let Some(head) = core.head() else { return format!("{before} served before it") };
    if head.job != id {
        return format!("{before} served before it; {} is the first that does not fit", head.job);
    }
    match &head.promise {
        Some(promise) => {
            let at = words::clock(promise.at);
            format!("it fits at {at} at the latest, by the limits of running jobs")
        }
        None => {
            "it waits for hardware that is out of use, or held by jobs without a limit".to_owned()
        }
    }
}
