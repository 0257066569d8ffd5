//! `/v1/jobs`.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use selvedge_collective::bound;
use selvedge_control::core::{Accepted, Core};
use selvedge_control::input::{Ask, Task, TaskExit};
use selvedge_control::state::{Job, JobState};
use selvedge_driver::task::output;
use selvedge_family::graph::Graph;
use selvedge_model::fabric::Fabric;
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::job::{Collective, Demand, JobSpec, Load, Program, Work};
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::api::array;
use crate::api::body::{Json, Params};
use crate::api::error::{ApiError, ErrorBody, chain};
use crate::api::listed;
use crate::house::{By, House, whole};
use crate::limits;
use crate::runner;
use crate::shell::Shell;
use crate::words;

/// A job to submit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobForm {
    /// For people; need not be unique.
    pub name: String,
    /// A slice of a torus pod: `4x8x8`, `4x8x8_twisted`, `2x2x1`; or a box of boards of a grid:
    /// `4x6`.
    #[serde(default)]
    pub shape: Option<String>,
    /// Whole hosts instead of a shape.
    #[serde(default)]
    pub hosts: Option<u32>,
    /// Chips at least, joined with one another on boards of a grid, instead of a shape.
    #[serde(default)]
    pub chips: Option<u32>,
    /// Memory of those chips together at least, in GiB.
    #[serde(default)]
    pub memory_gib: Option<u32>,
    /// The share of its time that the job communicates on the best partition of its size, 0 to 1;
    /// 0.3 where absent.
    #[serde(default)]
    pub communication: Option<f64>,
    /// What it communicates by: `all-reduce` or `all-gather`; all-reduce where absent.
    #[serde(default)]
    pub collective: Option<String>,
    /// Higher goes first, 0 to 9; 3 where absent.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Whether a job of higher priority may take its hardware, after a notice.
    #[serde(default)]
    pub preemptible: bool,
    /// Who asked; the request's `Selvedge-By` where absent.
    #[serde(default)]
    pub owner: Option<String>,
    /// On whose account; `default` where absent.
    #[serde(default)]
    pub project: Option<String>,
    /// How long it may run from each dispatch: `2h`.
    #[serde(default)]
    pub limit: Option<String>,
    /// How long its simulated steps take together: `1h`.
    #[serde(default)]
    pub duration: Option<String>,
    /// How long one simulated step takes: `1s`.
    #[serde(default)]
    pub step: Option<String>,
    /// How long it computes between two checkpoints: `10m`.
    #[serde(default)]
    pub checkpoint_every: Option<String>,
    /// A program and its arguments, run once on each machine of the slice, in place of simulated
    /// steps.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Variables that the program is given beyond those of its slice.
    #[serde(default)]
    pub env: Option<BTreeMap<String, String>>,
    /// The directory that the program begins in, absolute; where absent a scratch directory.
    #[serde(default)]
    pub dir: Option<String>,
    /// How long a task may go without touching its heartbeat file before it counts as hung: `30s`.
    #[serde(default)]
    pub heartbeat: Option<String>,
    /// How often it is started again after it failed by itself.
    #[serde(default)]
    pub retries: u32,
    /// 3 for an MPI program in three replicas: its machines are taken in clusters of three.
    #[serde(default)]
    pub redundancy: Option<u8>,
    /// Makes a repeated submit the same job; the header `Idempotency-Key` says the same.
    #[serde(default)]
    pub key: Option<String>,
    /// So many jobs that differ by their number alone, 1 to 10,000: they are called `name[0]`,
    /// `name[1]`, …, and programs find it in `JOB_ARRAY_INDEX` and `JOB_ARRAY_SIZE`.
    #[serde(default)]
    pub array: Option<u32>,
}

/// A job as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    /// Its number.
    pub id: u32,
    /// As its owner called it.
    pub name: String,
    /// `queued`, `starting`, `running`, `stopping`, `finished`, `failed` or `cancelled`.
    pub state: String,
    /// The number that its wiring was set with; none without outer links.
    pub generation: Option<u64>,
    /// Who asked.
    pub owner: String,
    /// On whose account.
    pub project: String,
    /// Who submitted it.
    pub by: String,
    /// What it asked for.
    pub shape: String,
    /// 0 to 9.
    pub priority: u8,
    /// Whether it may be preempted.
    pub preemptible: bool,
    /// Replicas of each process of its program.
    pub redundancy: u8,
    /// How many chips it holds, or will.
    pub chips: u32,
    /// How often it was placed.
    pub attempt: u32,
    /// How long it may run from each dispatch.
    pub limit_s: Option<f64>,
    /// How long its simulated steps take together; none for a program.
    pub duration_s: Option<f64>,
    /// The program that it runs.
    pub command: Option<Vec<String>>,
    /// The machine's account that its program runs under; none where that is the server's own.
    #[serde(default)]
    pub account: Option<String>,
    /// How many processes it runs it in, one on each machine; 0 where its steps are simulated.
    pub n_tasks: u32,
    /// When it was accepted.
    pub submitted_s: f64,
    /// When it was placed last.
    pub placed_s: Option<f64>,
    /// When it first ran.
    pub started_s: Option<f64>,
    /// When it ended.
    pub ended_s: Option<f64>,
    /// The parts that it holds, in the order of its shape.
    pub cubes: Vec<String>,
    /// How far its start has come.
    pub stage: Option<String>,
    /// Whether somebody holds it back.
    pub held: bool,
    /// It does not start before this.
    pub not_before_s: Option<f64>,
    /// Why it is held, stopping or failed.
    pub why: Option<String>,
    /// Steps that checkpoints keep.
    pub kept_steps: u64,
    /// How often it may be started again after it failed by itself.
    pub retries: u32,
    /// How often it failed by itself.
    pub n_failed: u32,
    /// How often a fault interrupted it.
    pub n_interrupted: u32,
    /// How often it was preempted or moved.
    pub n_preempted: u32,
    /// How long it held hardware, over all its starts.
    pub allocated_s: f64,
}

/// A job with what happened to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// What happened to it, oldest first.
    pub timeline: Vec<TimelineView>,
    /// What it holds.
    pub places: Vec<PlaceView>,
    /// The processes of its newest start, by rank, once all have begun; none if it runs no program.
    pub tasks: Vec<TaskView>,
}

/// One process of a job that runs a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Its rank.
    pub index: usize,
    /// Its number in the system.
    pub pid: u32,
    /// When it began, in the system's clock ticks: field 22 of `/proc/PID/stat`.
    pub began: u64,
    /// The machine that it is on.
    pub machine: String,
    /// How it ended: its status, as a shell says it 128 and the signal for one that died of it, and
    /// 255 for one whose supervisor is gone; none while it runs.
    pub exit: Option<i32>,
    /// The signal that it died of.
    pub signal: Option<i32>,
    /// Whether its supervisor is gone, so that nobody knows how it ended.
    pub lost: bool,
}

/// A line of a job's timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimelineView {
    /// When.
    pub at_s: f64,
    /// What.
    pub what: String,
}

/// A job's hold on one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlaceView {
    /// The part.
    pub part: String,
    /// How many of its chips.
    pub chips: u32,
}

/// All jobs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// In the order of their numbers.
    pub jobs: Vec<JobView>,
}

/// What would become of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ForecastView {
    /// `now`, `at`, `never` or `unknown`.
    pub start: String,
    /// When, as far as limits say.
    pub at_s: Option<f64>,
    /// Where, if now.
    pub cubes: Vec<String>,
    /// In words.
    pub why: String,
}

/// Why a job stands as it does.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplanationView {
    /// Its number.
    pub id: u32,
    /// Where it stands.
    pub state: String,
    /// In one line.
    pub summary: String,
    /// How many jobs stand before it in the queue.
    pub n_ahead: usize,
    /// Whether so much waits and runs that the steps would take too long to work out.
    #[serde(default)]
    pub is_too_long: bool,
    /// What is free in each pod that could serve it.
    pub room: Vec<RoomView>,
    /// What all together would let it start now, each needed; none if nothing of this would, if it
    /// does not wait, or if they would take too long to work out.
    pub steps: Option<Vec<StepView>>,
    /// What its collectives cannot beat on the partition that it has; only on a grid of boards.
    pub bounds: Option<String>,
    /// How the boards that it needs follow from what it asked for; only for a load.
    pub need: Option<String>,
    /// Where the replicas of its processes run, once it has hardware; only with redundancy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<String>,
    /// When it starts if nothing is done.
    pub forecast: Option<ForecastView>,
}

/// What is free in a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoomView {
    /// The pod.
    pub pod: String,
    /// Parts that are free and whole.
    pub n_free: usize,
    /// Parts in all.
    pub n_parts: usize,
    /// The largest free box of boards, as rows and columns: `4x6`; only where the pod is a grid.
    pub largest_box: Option<String>,
    /// The boards of the largest connected set of free ones; only where the pod is a grid.
    pub largest_set: Option<u32>,
}

/// One thing that would help a job start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    /// `release`, `wait`, `return`, `end` or `hold`.
    pub step: String,
    /// What: `job7`, a path, or a moment.
    pub target: String,
    /// In words, as in "it starts if you …".
    pub text: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubmitParams {
    /// Say what would become of it, and accept nothing.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// States to keep, with commas between them.
    #[serde(default)]
    state: Option<String>,
}

/// What a job can be.
const STATES: [&str; 7] =
    ["queued", "starting", "running", "stopping", "finished", "failed", "cancelled"];

/// All jobs, finished ones too, unpaged.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(ListParams),
    responses((status = 200, body = JobList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(house): State<House>,
    Params(params): Params<ListParams>,
) -> Result<axum::response::Response, ApiError> {
    use axum::response::IntoResponse as _;
    let asked = Instant::now();
    let keep = params.state;
    for word in keep.iter().flat_map(|it| it.split(',')) {
        if !STATES.contains(&word) {
            let hint = format!("a job is {}", STATES.join(", "));
            return Err(ApiError::bad(format!("{word:?} is no state of a job")).hint(hint));
        }
    }
    let body = listed::body(&house, keep, asked).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Submits a job, or says what would become of it.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", params(SubmitParams), request_body = JobForm,
    responses((status = 201, body = JobView), (status = 200, body = ForecastView),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn submit(
    State(house): State<House>,
    Params(params): Params<SubmitParams>,
    headers: HeaderMap,
    by: By,
    Json(form): Json<JobForm>,
) -> Result<axum::response::Response, ApiError> {
    use axum::response::IntoResponse as _;
    let key = key_of(&headers, form.key.clone())?;
    let array = form.array;
    let mut spec = spec_of(form, &by)?;
    by.may_change_job_of(&spec.owner)?;
    if let Work::Command(program) = &mut spec.work {
        program.account = house.account_for(&spec.owner, &by);
    }
    if spec.work.program().is_some() && !house.look(Shell::runs_tasks).await? {
        return Err(ApiError::unprocessable("this server runs no programs").hint(
            "programs run on the machines of simulated plants; real ones have no agent yet",
        ));
    }
    if params.dry_run {
        let turn = super::explain::turn().await?;
        let core = house.look(|shell| shell.core().apart()).await?;
        let wanted = spec.clone();
        let thought = move |core: &Core| core.dry_run(&wanted);
        let forecast = super::explain::asked(turn, core, thought).await??;
        let view = house.look(move |shell| super::explain::forecast(shell, &spec, &forecast));
        return Ok(Answer(view.await?).into_response());
    }
    if let Some(n_jobs) = array {
        let ids = whole(async move { array::submit(&house, &by, key, spec, n_jobs).await }).await?;
        return Ok((StatusCode::CREATED, Answer(array::ArrayView { ids })).into_response());
    }
    let wanted = spec.clone();
    let submitted = house
        .ask(by, Ask::Submit { key, spec }, |shell, accepted| match accepted {
            Accepted::Job(id) => Ok(view(shell, id, &shell.core().state().jobs[id])),
            Accepted::Done | Accepted::Case(_) | Accepted::Plant(_) => {
                Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "a submit made no job"))
            }
        })
        .await;
    match submitted {
        Ok(job) => Ok((StatusCode::CREATED, Answer(job?)).into_response()),
        Err(error) => match error.job {
            // The key says that this very submit has come before.
            Some(id) => Ok(Answer(repeated(&house, id, wanted, error).await?).into_response()),
            None => Err(error),
        },
    }
}

/// The job that a key had made, if it was the same that is asked for.
async fn repeated(
    house: &House,
    id: JobId,
    wanted: JobSpec,
    used: ApiError,
) -> Result<JobView, ApiError> {
    let found = house.look(move |shell| {
        let job = find(shell, id)?;
        if is_same(job, wanted) { Ok(view(shell, id, job)) } else { Err(used.hint(ANOTHER)) }
    });
    found.await?
}

/// What is said of a key that was used for something else.
pub(super) const ANOTHER: &str = "that job is another; take a new key for this one";

/// Whether `job` is what is asked for again.
pub(super) fn is_same(job: &Job, mut wanted: JobSpec) -> bool {
    // Sides of a shape may be written in any order.
    if let Ok((demand, _)) = selvedge_control::family::need(&wanted.demand) {
        wanted.demand = demand;
    }
    job.spec == wanted
}

/// One job with its timeline.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path)),
    responses((status = 200, body = JobDetail), (status = "default", body = ErrorBody)))]
pub(crate) async fn show(
    State(house): State<House>,
    Path(id): Path<String>,
) -> Result<Answer<JobDetail>, ApiError> {
    let id = id_of(&id)?;
    house.look(move |shell| find(shell, id).map(|job| detail(shell, id, job))).await?.map(Answer)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogParams {
    /// Which task, by rank.
    #[serde(default)]
    task: u32,
    /// Which start; the newest where absent.
    #[serde(default)]
    attempt: Option<u32>,
    /// The byte to begin with.
    #[serde(default)]
    from: u64,
}

/// What a task wrote, from a byte on, as it wrote it; at most 1 MiB at a time.
#[utoipa::path(get, path = "/v1/jobs/{id}/logs", tag = "jobs",
    params(("id" = String, Path), LogParams),
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn logs(
    State(house): State<House>,
    Path(id): Path<String>,
    Params(params): Params<LogParams>,
) -> Result<axum::response::Response, ApiError> {
    use axum::response::IntoResponse as _;
    let id = id_of(&id)?;
    let LogParams { task, attempt, from } = params;
    if i64::try_from(from).is_err() {
        return Err(ApiError::bad(format!("no output is {from} bytes long")));
    }
    let of = house.look(move |shell| {
        let job = find(shell, id)?;
        if job.spec.work.program().is_none() {
            return Err(ApiError::no_such("output of job", id.number())
                .hint("its steps are simulated; a job with a command has output"));
        }
        let n = n_tasks(shell, id, job);
        if n <= task {
            let text = format!("task {task} of job {}; it has {n}", id.number());
            return Err(ApiError::no_such("output of", text));
        }
        let attempt = attempt.unwrap_or(job.attempt);
        Ok((attempt, attempt == job.attempt && !job.state.is_over()))
    });
    let (attempt, may_begin) = of.await??;
    let dir = runner::task_dir(house.data(), (id, attempt), task as usize);
    let read = tokio::task::spawn_blocking(move || {
        if from == 0 && !dir.is_dir() {
            None
        } else {
            Some(output(&dir, from, limits::LOG_BYTES_MAX))
        }
    });
    let failed = |error: &dyn std::error::Error| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, chain(error))
    };
    let bytes = match read.await.map_err(|it| failed(&it))? {
        None if may_begin => Vec::new(),
        None => {
            let text = format!("the output of start {attempt} of job {} is not kept", id.number());
            let hint = format!("the newest {} starts keep theirs", limits::ATTEMPTS_KEPT);
            return Err(ApiError::new(StatusCode::NOT_FOUND, text).hint(hint));
        }
        Some(bytes) => bytes.map_err(|it| failed(&it))?,
    };
    let text = [(header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned())];
    Ok((text, [("selvedge-attempt", attempt.to_string())], bytes).into_response())
}

/// Why it waits and what would free it.
#[utoipa::path(get, path = "/v1/jobs/{id}/explain", tag = "jobs", params(("id" = String, Path)),
    responses((status = 200, body = ExplanationView), (status = "default", body = ErrorBody)))]
pub(crate) async fn explain(
    State(house): State<House>,
    Path(id): Path<String>,
) -> Result<Answer<ExplanationView>, ApiError> {
    let id = id_of(&id)?;
    let waits = |job: &Job| matches!(job.state, JobState::Queued { .. });
    let mut explained = None;
    if house.look(move |shell| find(shell, id).map(waits)).await?? {
        let turn = super::explain::turn().await?;
        let core = house.look(|shell| shell.core().apart()).await?;
        explained = super::explain::asked(turn, core, move |core| core.explain(id)).await?;
    }
    let view = house.look(move |shell| {
        find(shell, id).map(|job| {
            let view = super::explain::explain(shell, id, job, explained);
            (view, super::explain::partition(shell, id, job))
        })
    });
    let (mut view, partition) = view.await??;
    // What takes longer is worked out beside the loop.
    let is_left = |it: &Graph| {
        (super::explain::AT_ONCE_CHIPS_MAX + 1..=bound::EXACT_CHIPS_MAX).contains(&it.n_nodes())
    };
    if let Some(graph) = partition.filter(is_left) {
        let words = move || super::explain::bounds_words(&graph, bound::EXACT_CHIPS_MAX);
        let exact = tokio::task::spawn_blocking(words).await;
        view.bounds = exact.map_err(|_| ApiError::stopping())?;
    }
    Ok(Answer(view))
}

/// A body that says nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

/// A job as it is shown.
pub(crate) fn view(shell: &Shell, id: JobId, job: &Job) -> JobView {
    let fabric = shell.core().fabric();
    let (duration, program) = match &job.spec.work {
        Work::Simulated { duration, .. } => (Some(duration.as_secs_f64()), None),
        Work::Command(program) => (None, Some(program)),
    };
    let (held, not_before) = match job.state {
        JobState::Queued { held, not_before, .. } => (held, later(not_before, shell)),
        JobState::Starting { .. }
        | JobState::Running { .. }
        | JobState::Stopping { .. }
        | JobState::Finished
        | JobState::Failed { .. }
        | JobState::Cancelled => (false, None),
    };
    let stage = match job.state {
        JobState::Starting { stage, .. } => Some(words::stage(stage).to_owned()),
        JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::Stopping { .. }
        | JobState::Finished
        | JobState::Failed { .. }
        | JobState::Cancelled => None,
    };
    let holds = job.place.iter().flat_map(|place| &place.holds);
    JobView {
        id: id.number(),
        name: job.spec.name.clone(),
        state: job.state.word().to_owned(),
        generation: job.generation.map(|it| it.number()),
        owner: job.spec.owner.clone(),
        project: job.spec.project.clone(),
        by: job.by.clone(),
        shape: job.spec.demand.to_string(),
        priority: job.spec.priority,
        preemptible: job.spec.preemptible,
        redundancy: job.spec.redundancy,
        chips: super::explain::chips(shell, id, job),
        attempt: job.attempt,
        limit_s: job.spec.limit.map(Span::as_secs_f64),
        duration_s: duration,
        command: program.map(|it| it.argv.clone()),
        account: program.and_then(|it| it.account.clone()),
        n_tasks: program.map_or(0, |_| n_tasks(shell, id, job)),
        submitted_s: job.submitted.as_secs_f64(),
        placed_s: (0 < job.attempt).then(|| job.placed_at.as_secs_f64()),
        started_s: job.first_started.map(Moment::as_secs_f64),
        ended_s: job.ended.map(Moment::as_secs_f64),
        cubes: holds.map(|hold| fabric.path(Target::Part(hold.part))).collect(),
        stage,
        held,
        not_before_s: not_before.map(Moment::as_secs_f64),
        why: words::job_why(job, fabric),
        kept_steps: job.kept,
        retries: job.spec.retries,
        n_failed: job.n_failed,
        n_interrupted: job.n_interrupted,
        n_preempted: job.n_preempted,
        allocated_s: job.allocated.as_secs_f64(),
    }
}

/// The job `id`.
pub(crate) fn find(shell: &Shell, id: JobId) -> Result<&Job, ApiError> {
    shell.core().state().jobs.get(id).ok_or_else(|| ApiError::no_such("job", id.number()))
}

/// A job with what happened to it.
pub(crate) fn detail(shell: &Shell, id: JobId, job: &Job) -> JobDetail {
    let fabric = shell.core().fabric();
    let lines = job.timeline.iter().map(|(at, event)| TimelineView {
        at_s: at.as_secs_f64(),
        what: words::event(event, fabric),
    });
    let holds = job.place.iter().flat_map(|place| &place.holds).map(|hold| PlaceView {
        part: fabric.path(Target::Part(hold.part)),
        chips: hold.seats.count_ones(),
    });
    JobDetail {
        job: view(shell, id, job),
        timeline: lines.collect(),
        places: holds.collect(),
        tasks: tasks(job, fabric),
    }
}

fn n_tasks(shell: &Shell, id: JobId, job: &Job) -> u32 {
    selvedge_control::family::n_tasks(&job.spec.demand, shell.core().need_of(id))
}

fn tasks(job: &Job, fabric: &Fabric) -> Vec<TaskView> {
    let one = |(index, task): (usize, &Task)| TaskView {
        index,
        pid: task.pid,
        began: task.began,
        machine: fabric.path(task.machine),
        exit: task.exit.map(TaskExit::status),
        signal: match task.exit {
            Some(TaskExit::Signal(signal)) => Some(signal),
            Some(TaskExit::Code(_) | TaskExit::Lost) | None => None,
        },
        lost: task.exit == Some(TaskExit::Lost),
    };
    job.tasks.iter().enumerate().map(one).collect()
}

fn later(moment: Moment, shell: &Shell) -> Option<Moment> {
    (shell.core().state().now < moment).then_some(moment)
}

pub(super) fn id_of(text: &str) -> Result<JobId, ApiError> {
    words::job_named(text).ok_or_else(|| {
        ApiError::bad(format!("{text:?} is no job's number")).hint("a job goes by its number")
    })
}

fn key_of(headers: &HeaderMap, key: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(key) };
    let value = value.to_str().map_err(|_| ApiError::bad("Idempotency-Key is not text"))?;
    match key {
        Some(key) if key != value => {
            Err(ApiError::bad("Idempotency-Key and the body's key are not the same"))
        }
        Some(_) | None => Ok(Some(value.to_owned())),
    }
}

fn spec_of(mut form: JobForm, by: &By) -> Result<JobSpec, ApiError> {
    if form.name.trim().is_empty() {
        let what = "the job's name must be printable characters, not blanks alone";
        return Err(ApiError::unprocessable(what).hint("for instance train"));
    }
    let work = work_of(&mut form)?;
    let of_load = form.memory_gib.is_some() || form.communication.is_some();
    if form.chips.is_none() && (of_load || form.collective.is_some()) {
        let what = "memory_gib, communication and collective stand beside chips alone";
        return Err(ApiError::unprocessable(what).hint("for instance \"chips\": 48"));
    }
    let demand = match (form.shape, form.hosts, form.chips) {
        (Some(shape), None, None) => Demand::Shape(shape),
        (None, Some(hosts), None) => Demand::Parts(hosts),
        (None, None, Some(chips)) => Demand::Load(Box::new(Load {
            chips,
            memory_gib: form.memory_gib.unwrap_or(0),
            communication: share_of(form.communication)?,
            collective: collective_of(form.collective.as_deref())?,
            boards: None,
        })),
        _ => {
            let what = "a job has a shape, or a number of hosts, or a number of chips";
            return Err(ApiError::unprocessable(what).hint("for instance \"shape\": \"4x4x8\""));
        }
    };
    Ok(JobSpec {
        name: form.name,
        owner: form.owner.unwrap_or_else(|| by.name.clone()),
        project: form.project.unwrap_or_else(|| "default".to_owned()),
        demand,
        priority: form.priority.unwrap_or(3),
        preemptible: form.preemptible,
        limit: form.limit.map(|it| span("limit", &it)).transpose()?,
        retries: form.retries,
        work,
        redundancy: form.redundancy.unwrap_or(1),
    })
}

/// Assumed: what a training job communicates where its owner does not say.
const COMMUNICATION: f64 = 0.3;

fn share_of(share: Option<f64>) -> Result<Ppm, ApiError> {
    let share = share.unwrap_or(COMMUNICATION);
    if (0.0..=1.0).contains(&share) {
        return Ok(Ppm::new((share * 1e6).round() as u32));
    }
    let what = format!("communication is {share}");
    Err(ApiError::unprocessable(what).hint("write a share of the job's time, from 0 to 1"))
}

fn collective_of(word: Option<&str>) -> Result<Collective, ApiError> {
    let known = [Collective::AllReduce, Collective::AllGather];
    let Some(word) = word else { return Ok(known[0]) };
    known.into_iter().find(|it| it.word() == word).ok_or_else(|| {
        ApiError::unprocessable(format!("there is no collective {word:?}"))
            .hint("write all-reduce or all-gather")
    })
}

fn work_of(form: &mut JobForm) -> Result<Work, ApiError> {
    let of_steps = [&form.duration, &form.step, &form.checkpoint_every];
    if let Some(argv) = form.command.take() {
        if of_steps.iter().any(|it| it.is_some()) {
            return Err(ApiError::unprocessable(
                "a job runs a command, or simulated steps of some duration, not both",
            ));
        }
        return Ok(Work::Command(Program {
            argv,
            env: form.env.take().unwrap_or_default(),
            dir: form.dir.take(),
            heartbeat: form.heartbeat.as_deref().map(|it| span("heartbeat", it)).transpose()?,
            account: None,
        }));
    }
    let of_program = [form.env.is_some(), form.dir.is_some(), form.heartbeat.is_some()];
    if of_program.contains(&true) {
        return Err(ApiError::unprocessable("env, dir and heartbeat belong to a command"));
    }
    let or =
        |given: &Option<String>, usual: &str| given.clone().unwrap_or_else(|| usual.to_owned());
    Ok(Work::Simulated {
        duration: span("duration", &or(&form.duration, "1h"))?,
        step: span("step", &or(&form.step, "1s"))?,
        checkpoint_every: span("checkpoint_every", &or(&form.checkpoint_every, "10m"))?,
    })
}

/// A span as written.
pub(crate) fn span(field: &str, text: &str) -> Result<Span, ApiError> {
    Span::parse(text).map_err(|text| {
        ApiError::unprocessable(format!("{field} is {text:?}, which is no span of time"))
            .hint("write 90s, 15m, 2h or 3d")
    })
}
