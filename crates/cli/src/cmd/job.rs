//! `selvedge job …`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Globals;
use crate::client::Client;
use crate::cmd::job_logs;
use crate::cmd::job_orders::{self, Ids};
use crate::cmd::watch::{Watch, pause};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::table::{Cell, Table};
use crate::render::{self, facts, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Job {
    #[command(subcommand)]
    verb: JobVerb,
}

#[derive(Debug, Subcommand)]
enum JobVerb {
    /// Put a job into the queue.
    Submit(Box<Submit>),
    /// All jobs, finished ones too.
    List(List),
    /// One job with its timeline.
    Show(Show),
    /// Why a job waits and what would free it, computed now.
    Explain(Id),
    /// End jobs, wherever they stand.
    Cancel(Ids),
    /// Do not start jobs until they are released.
    Hold(Ids),
    /// Let held jobs start again.
    Release(Ids),
    /// Stop jobs with notice and put them back into the queue.
    Requeue(Ids),
    /// What the tasks of a job wrote.
    Logs(job_logs::Logs),
    /// Wait until a job is over; exit 0 if it finished, 1 if not.
    Wait(Wait),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Times are written 90s, 15m, 2h, 3d or a bare number of seconds, and are \
                        plant time.\nExit status: 0 accepted (or, with --dry-run, can start), \
                        1 with --dry-run: can never start, 2 error.")]
struct Submit {
    /// Chips along x, y and z: 4x4x4, 8x8x16_twisted, 2x2x1; or rows and columns of boards of a
    /// grid: 4x6.
    #[arg(long, value_name = "SHAPE", required_unless_present_any = ["hosts", "chips"])]
    shape: Option<String>,
    /// Whole hosts of a cluster, in place of a shape.
    #[arg(long, value_name = "N", conflicts_with = "shape")]
    hosts: Option<u32>,
    /// Chips at least, joined with one another on boards of a grid, in place of a shape.
    #[arg(long, value_name = "N", conflicts_with_all = ["shape", "hosts"])]
    chips: Option<u32>,
    /// Memory of those chips together at least, in GiB.
    #[arg(long, value_name = "GIB", requires = "chips")]
    memory: Option<u32>,
    /// The share of its time that it communicates on the best partition of its size, 0 to 1; 0.3
    /// without.
    #[arg(long, value_name = "X", requires = "chips")]
    communication: Option<f64>,
    /// What it communicates by, all-reduce or all-gather; all-reduce without.
    #[arg(long, value_name = "COLLECTIVE", requires = "chips")]
    collective: Option<String>,
    /// For people; need not be unique.
    #[arg(long)]
    name: String,
    /// Higher goes first, 0 to 9; 3 without.
    #[arg(long, value_name = "0..9", value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// A job of higher priority may take its hardware, after a notice; only such a job is moved
    /// where a larger one fits if others move together.
    #[arg(long)]
    preemptible: bool,
    /// How long it may run from each start; without, as long as it likes.
    #[arg(long, value_name = "SPAN")]
    limit: Option<String>,
    /// How long its simulated work takes; 1h without.
    #[arg(long, value_name = "SPAN")]
    duration: Option<String>,
    /// How long one simulated step takes; 1s without.
    #[arg(long, value_name = "SPAN")]
    step: Option<String>,
    /// How long it computes between checkpoints; 10m without.
    #[arg(long, value_name = "SPAN")]
    checkpoint_every: Option<String>,
    /// Who owns it; you without.
    #[arg(long)]
    owner: Option<String>,
    /// On whose account; `default` without.
    #[arg(long)]
    project: Option<String>,
    /// How often it is started again after it failed by itself; 0 without.
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// 3: an MPI program in three replicas, on clusters of three machines close together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3))]
    redundancy: Option<u32>,
    /// A variable for the command, or the name of one of yours to hand on; may be repeated.
    #[arg(long, value_name = "NAME[=VALUE]", requires = "command")]
    env: Vec<String>,
    /// Where the command begins; here without.
    #[arg(long, value_name = "DIR", requires = "command")]
    dir: Option<PathBuf>,
    /// How long a task may go without touching its heartbeat file before it counts as hung.
    #[arg(long, value_name = "SECONDS", requires = "command")]
    heartbeat: Option<u32>,
    /// Submit so many jobs, each NAME with its number from 0 on in brackets; a command finds the
    /// number in $JOB_ARRAY_INDEX.
    #[arg(long, value_name = "N", conflicts_with = "dry_run")]
    array: Option<u32>,
    /// A text that makes a repeated submit the same job.
    #[arg(long)]
    key: Option<String>,
    /// Accept nothing; say whether it would start now, later or never.
    #[arg(long)]
    dry_run: bool,
    /// A program and its arguments, run once on each machine of the slice.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only jobs in these states.
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<JobState>,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The job's number, as `job list` shows it.
    #[arg(value_name = "JOB")]
    id: u32,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, clap::Args)]
struct Id {
    /// The job's number, as `job list` shows it.
    #[arg(value_name = "JOB")]
    id: u32,
}

#[derive(Debug, clap::Args)]
struct Wait {
    /// The job's number, as `job list` shows it.
    #[arg(value_name = "JOB")]
    id: u32,
    /// Wait only until it runs.
    #[arg(long)]
    running: bool,
    /// Give up after so many seconds of real time, and answer no.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobState {
    Queued,
    Starting,
    Running,
    Stopping,
    Finished,
    Failed,
    Cancelled,
    Refused,
}

/// What the server wants to be sent; what is absent is left to it.
#[derive(Debug, Serialize)]
struct NewJob<'a> {
    name: &'a str,
    #[serde(flatten)]
    given: serde_json::Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<JobRow>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct JobRow {
    pub(crate) id: u32,
    pub(crate) name: String,
    state: JobState,
    generation: Option<u64>,
    owner: String,
    project: String,
    by: String,
    pub(crate) shape: String,
    priority: u8,
    preemptible: bool,
    redundancy: u8,
    pub(crate) chips: u32,
    attempt: u32,
    limit_s: Option<f64>,
    duration_s: Option<f64>,
    command: Option<Vec<String>>,
    account: Option<String>,
    submitted_s: f64,
    started_s: Option<f64>,
    ended_s: Option<f64>,
    cubes: Vec<String>,
    stage: Option<String>,
    held: bool,
    why: Option<String>,
    kept_steps: u64,
    retries: u32,
    n_failed: u32,
    n_interrupted: u32,
    n_preempted: u32,
    #[serde(default)]
    timeline: Vec<Line>,
    #[serde(default)]
    tasks: Vec<TaskRow>,
}

#[derive(Debug, Deserialize)]
struct TaskRow {
    index: usize,
    pid: u32,
    machine: String,
    exit: Option<i32>,
    signal: Option<i32>,
    lost: bool,
}

#[derive(Debug, Deserialize)]
struct Line {
    at_s: f64,
    what: String,
}

#[derive(Debug, Deserialize)]
struct Array {
    ids: Vec<u32>,
}

#[derive(Debug, Deserialize)]
struct Forecast {
    start: String,
    at_s: Option<f64>,
    cubes: Vec<String>,
    why: String,
}

#[derive(Debug, Deserialize)]
struct Explained {
    summary: String,
    n_ahead: u64,
    #[serde(default)]
    is_too_long: bool,
    room: Vec<Room>,
    need: Option<String>,
    bounds: Option<String>,
    replicas: Option<String>,
    steps: Option<Vec<Step>>,
    forecast: Option<Forecast>,
}

#[derive(Debug, Deserialize)]
struct Room {
    pod: String,
    n_free: u64,
    n_parts: u64,
    largest_box: Option<String>,
    largest_set: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
struct Step {
    step: String,
    target: String,
    text: String,
}

pub(crate) fn run(args: &Job, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        JobVerb::Submit(args) if args.dry_run => forecast(args, &client, globals),
        JobVerb::Submit(args) => submit(args, &client, globals),
        JobVerb::List(args) => list(args, &client, globals),
        JobVerb::Show(args) => show(args, &client, globals),
        JobVerb::Explain(Id { id }) => explain(*id, &client, globals),
        JobVerb::Cancel(args) => job_orders::run(args, "cancel", &client, globals),
        JobVerb::Hold(args) => job_orders::run(args, "hold", &client, globals),
        JobVerb::Release(args) => job_orders::run(args, "release", &client, globals),
        JobVerb::Requeue(args) => job_orders::run(args, "requeue", &client, globals),
        JobVerb::Logs(args) => job_logs::run(args, &client, globals),
        JobVerb::Wait(args) => wait(args, &client, globals),
    }
}

fn submit(args: &Submit, client: &Client, globals: &Globals) -> Outcome {
    let text = client.post_text("/v1/jobs", &new_job(args)?)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    if args.array.is_some() {
        let Array { ids } = client.read("/v1/jobs", &text)?;
        let (first, last) = (ids.first().unwrap_or(&0), ids.last().unwrap_or(&0));
        let n = number::counted(ids.len() as u64, "job");
        render::print(&format!("{n}, {first} to {last}\n"))?;
        return Ok(Answer::Yes);
    }
    let job: JobRow = client.read("/v1/jobs", &text)?;
    let plain = format!("job {} {}: {}\n", job.id, job.name, state_word(&job));
    render::print(&plain)?;
    // Sides may come in any order; everywhere else the job goes by the shape that they make.
    if let Some(asked) = args.shape.as_ref().filter(|it| **it != job.shape) {
        anstream::eprintln!("note: {asked} is {}", job.shape);
    }
    anstream::eprintln!(
        "`selvedge job explain {0}` says why it waits, `selvedge job wait {0}` \
                         waits for its end",
        job.id
    );
    Ok(Answer::Yes)
}

fn new_job(args: &Submit) -> Outcome<NewJob<'_>> {
    let mut given = serde_json::Map::new();
    if let Some(n_jobs) = args.array {
        given.insert("array".to_owned(), n_jobs.into());
    }
    let texts = [
        ("shape", &args.shape),
        ("limit", &args.limit),
        ("duration", &args.duration),
        ("step", &args.step),
        ("checkpoint_every", &args.checkpoint_every),
        ("owner", &args.owner),
        ("project", &args.project),
        ("key", &args.key),
        ("collective", &args.collective),
    ];
    for (field, text) in texts {
        if let Some(text) = text {
            given.insert(field.to_owned(), text.as_str().into());
        }
    }
    let numbers = [
        ("hosts", args.hosts),
        ("chips", args.chips),
        ("memory_gib", args.memory),
        ("priority", args.priority.map(u32::from)),
        ("retries", args.retries),
        ("redundancy", args.redundancy),
    ];
    for (field, number) in numbers {
        if let Some(number) = number {
            given.insert(field.to_owned(), number.into());
        }
    }
    if let Some(share) = args.communication {
        if !share.is_finite() {
            // JSON has no word for it, and the server would take its own share.
            return Err(Failure::new(format!("--communication is {share}"))
                .hint("write a share of the job's time, from 0 to 1"));
        }
        given.insert("communication".to_owned(), share.into());
    }
    if args.preemptible {
        given.insert("preemptible".to_owned(), true.into());
    }
    if !args.command.is_empty() {
        given.insert("command".to_owned(), args.command.clone().into());
        given.insert("dir".to_owned(), dir_of(args)?.into());
        given.insert("env".to_owned(), Value::Object(env_of(args)?));
    }
    if let Some(heartbeat) = args.heartbeat {
        given.insert("heartbeat".to_owned(), format!("{heartbeat}s").into());
    }
    Ok(NewJob { name: &args.name, given })
}

/// Where the command begins, as an absolute path.
fn dir_of(args: &Submit) -> Outcome<String> {
    let here = std::env::current_dir().within(|| "cannot tell the current directory")?;
    let dir = args.dir.as_ref().map_or(here.clone(), |it| here.join(it));
    dir.into_os_string().into_string().map_err(|dir| {
        Failure::new(format!("the directory {dir:?} is not UTF-8")).hint("say another: --dir DIR")
    })
}

fn env_of(args: &Submit) -> Outcome<serde_json::Map<String, Value>> {
    let mut env = serde_json::Map::new();
    for text in &args.env {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => match std::env::var(text) {
                Ok(value) => (text.as_str(), value),
                Err(error) => {
                    return Err(Failure::new(format!("--env {text}: {error}"))
                        .hint("write NAME=VALUE, or the name of a variable that you have"));
                }
            },
        };
        env.insert(name.to_owned(), value.into());
    }
    Ok(env)
}

fn forecast(args: &Submit, client: &Client, globals: &Globals) -> Outcome {
    let path = "/v1/jobs?dry_run=true";
    let text = client.post_text(path, &new_job(args)?)?;
    let forecast: Forecast = client.read(path, &text)?;
    let answer = if forecast.start == "never" { Answer::No } else { Answer::Yes };
    if globals.json {
        render::print_raw(&text)?;
        return Ok(answer);
    }
    render::print(&format!("{}\n", forecast.text()))?;
    Ok(answer)
}

/// So many of the parts that a job would get are named; `--json` has all.
const PARTS_NAMED: usize = 12;

impl Forecast {
    /// `starts at 01:00:00: by then …`.
    fn text(&self) -> String {
        let start = match (self.start.as_str(), self.at_s) {
            ("at", Some(at)) => format!("starts at {}", number::clock(at)),
            ("now", _) => "starts now".to_owned(),
            ("never", _) => "can never start".to_owned(),
            ("unknown", _) => "starts at no known time".to_owned(),
            (word, _) => format!("start {word}"),
        };
        let on = match self.cubes.len() {
            0 => String::new(),
            n if n <= PARTS_NAMED => format!(" on {}", self.cubes.join(" ")),
            n => {
                let first = self.cubes[..PARTS_NAMED].join(" ");
                format!(" on {first} and {} more", n - PARTS_NAMED)
            }
        };
        format!("{start}{on}: {}", self.why)
    }
}

fn list(args: &List, client: &Client, globals: &Globals) -> Outcome {
    let states: Vec<&str> = args.state.iter().map(|it| it.word()).collect();
    let path = match states.len() {
        0 => "/v1/jobs".to_owned(),
        _ => format!("/v1/jobs?state={}", states.join(",")),
    };
    args.watch.show(|| {
        let text = client.get_text(&path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        let jobs: Jobs = client.read(&path, &text)?;
        Ok(job_table(&jobs.jobs))
    })?;
    Ok(Answer::Yes)
}

fn job_table(jobs: &[JobRow]) -> String {
    if jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let mut table = Table::new(&[
        ">job",
        "name",
        "state",
        "shape",
        ">chips",
        ">prio",
        "owner",
        ">submitted",
        ">started",
        ">ended",
        ">gen",
    ]);
    for job in jobs {
        let moment = |at: Option<f64>| at.map_or("-".to_owned(), number::clock);
        table.row([
            job.id.into(),
            (&job.name).into(),
            Cell::styled(state_word(job), job.state.style()),
            (&job.shape).into(),
            number::grouped(u64::from(job.chips)).into(),
            job.priority.into(),
            (&job.owner).into(),
            number::clock(job.submitted_s).into(),
            moment(job.started_s).into(),
            moment(job.ended_s).into(),
            job.generation.map_or("-".to_owned(), |it| it.to_string()).into(),
        ]);
    }
    table.to_string()
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    let path = format!("/v1/jobs/{}", args.id);
    args.watch.show(|| {
        let text = client.get_text(&path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        Ok(job_page(&client.read(&path, &text)?))
    })?;
    Ok(Answer::Yes)
}

fn job_page(job: &JobRow) -> String {
    let (title, colour) = (style::TITLE, job.state.style());
    let mut facts = facts::Facts::new(format!(
        "{title}job {} {}{title:#}: {colour}{}{colour:#}",
        job.id,
        job.name,
        state_word(job)
    ));
    facts.add("shape", format!("{}, {}", job.shape, number::counted(u64::from(job.chips), "chip")));
    if !job.cubes.is_empty() {
        facts.add("on", job.cubes.join(" "));
    }
    if let Some(generation) = job.generation {
        facts.add("wired with", format!("generation {generation}"));
    }
    let preemptible = if job.preemptible { ", preemptible" } else { "" };
    facts.add("priority", format!("{}{preemptible}", job.priority));
    if 1 < job.redundancy {
        facts.add("redundancy", format!("{} replicas of each process", job.redundancy));
    }
    facts.add("owner", format!("{}, project {}, submitted by {}", job.owner, job.project, job.by));
    facts.add("limit", job.limit_s.map_or("none".to_owned(), number::seconds));
    match (&job.command, job.duration_s) {
        (Some(command), _) => {
            let under = job.account.as_ref().map(|it| format!(", under the account {it}"));
            facts.add("runs", command.join(" ") + &under.unwrap_or_default());
        }
        (None, duration) => {
            let kept = number::counted(job.kept_steps, "step");
            let duration = number::seconds(duration.unwrap_or_default());
            facts.add("work", format!("{duration}, {kept} kept"));
        }
    }
    facts.add(
        "starts",
        format!(
            "{}; {} failed ({} may), {} ended by faults, {} preempted or moved",
            job.attempt, job.n_failed, job.retries, job.n_interrupted, job.n_preempted
        ),
    );
    let lines = job.timeline.iter();
    let lines = lines.map(|it| format!("{:>12}  {}", number::clock(it.at_s), it.what));
    if !job.tasks.is_empty() {
        facts.add_list("tasks", job.tasks.iter().map(task_line).collect());
    }
    facts.add_list("timeline", lines.collect());
    facts.to_string()
}

/// `0  pid 4711 on cube0/m00: exit 1`.
fn task_line(task: &TaskRow) -> String {
    let how = match (task.lost, task.signal, task.exit) {
        (true, ..) => "lost with its supervisor".to_owned(),
        (_, Some(signal), _) => format!("died of signal {signal}"),
        (_, None, Some(exit)) => format!("exit {exit}"),
        (_, None, None) => "runs".to_owned(),
    };
    format!("{:>3}  pid {} on {}: {how}", task.index, task.pid, task.machine)
}

fn explain(id: u32, client: &Client, globals: &Globals) -> Outcome {
    let path = format!("/v1/jobs/{id}/explain");
    let text = client.get_text(&path)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let explained: Explained = client.read(&path, &text)?;
    render::print(&explanation_page(id, &explained))?;
    Ok(Answer::Yes)
}

fn explanation_page(id: u32, explained: &Explained) -> String {
    let title = style::TITLE;
    let mut facts = facts::Facts::new(format!("{title}job {id}{title:#}: {}", explained.summary));
    if let Some(bounds) = &explained.bounds {
        facts.add("partition", bounds.clone());
    }
    if let Some(replicas) = &explained.replicas {
        facts.add("replicas", replicas.clone());
    }
    let Some(forecast) = &explained.forecast else { return facts.to_string() };
    let ahead = number::counted(explained.n_ahead, "job");
    facts.add("before it", format!("{ahead} in the queue"));
    if let Some(need) = &explained.need {
        facts.add("needs", need.clone());
    }
    for Room { pod, n_free, n_parts, largest_box, largest_set } in &explained.room {
        let largest = match (largest_box, largest_set) {
            (Some(sides), Some(n)) => {
                let set = number::counted(u64::from(*n), "board");
                format!("; the largest box {sides}, the largest connected set {set}")
            }
            _ => String::new(),
        };
        facts.add("room", format!("{pod}: {n_free} of {n_parts} free and sound{largest}"));
    }
    facts.add("left alone", forecast.text());
    match &explained.steps {
        None if explained.is_too_long => facts.add("to start now", "not worked out"),
        None => facts.add("to start now", "nothing that can be done is enough"),
        Some(steps) => {
            facts.add_list("it starts once all of this is done", folded(steps));
        }
    }
    facts.to_string()
}

/// Steps of one kind that are more than this are one line.
const ALIKE_MAX: usize = 6;

/// The steps a line each; a long run of one kind, as all switches of a pod, is one line.
fn folded(steps: &[Step]) -> Vec<String> {
    let runs = steps.chunk_by(|a, b| a.step == b.step);
    let lines = runs.flat_map(|run| match run {
        [first, .., last] if ALIKE_MAX < run.len() => {
            let (n, kind) = (run.len(), &first.step);
            let all = first.text.replacen(&first.target, &format!("these {n}"), 1);
            vec![format!("{all}: {} to {} (`--json` has every {kind})", first.target, last.target)]
        }
        _ => run.iter().map(|it| it.text.clone()).collect(),
    });
    lines.collect()
}

/// Between two questions of `job wait`.
const ASK_EVERY: Duration = Duration::from_millis(200);

#[allow(clippy::disallowed_methods, reason = "a person's patience is counted in real time")]
fn wait(args: &Wait, client: &Client, globals: &Globals) -> Outcome {
    let path = format!("/v1/jobs/{}", args.id);
    let mut client = client.clone();
    let since = Instant::now();
    loop {
        let text = client.patiently(globals, |it| it.get_text(&path))?;
        let job: JobRow = client.read(&path, &text)?;
        let answer = match job.state {
            JobState::Finished => Some(Answer::Yes),
            JobState::Failed | JobState::Cancelled | JobState::Refused => Some(Answer::No),
            JobState::Running if args.running => Some(Answer::Yes),
            JobState::Running | JobState::Queued | JobState::Starting | JobState::Stopping => None,
        };
        if let Some(answer) = answer {
            if globals.json {
                render::print_raw(&text)?;
            } else {
                render::print(&format!("job {} {}: {}\n", job.id, job.name, state_word(&job)))?;
            }
            return Ok(answer);
        }
        if args.timeout.is_some_and(|it| Duration::from_secs(it) <= since.elapsed()) {
            let word = state_word(&job);
            let refusal = Failure::refusal(format!("job {} {} is still {word}", job.id, job.name));
            return Err(match job.state {
                JobState::Queued => refusal
                    .hint(format!("`selvedge job explain {}` says what it waits for", job.id)),
                _ => refusal,
            });
        }
        pause(ASK_EVERY);
    }
}

impl JobState {
    fn word(self) -> &'static str {
        match self {
            JobState::Queued => "queued",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Finished => "finished",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Refused => "refused",
        }
    }

    fn style(self) -> anstyle::Style {
        match self {
            JobState::Running => style::GOOD,
            JobState::Starting | JobState::Stopping => style::WAIT,
            JobState::Failed | JobState::Refused => style::BAD,
            JobState::Finished | JobState::Cancelled => style::FAINT,
            JobState::Queued => style::PLAIN,
        }
    }
}

/// `starting: training`, `failed: limit`, `queued: held`.
pub(super) fn state_word(job: &JobRow) -> String {
    let word = job.state.word();
    match (&job.stage, &job.why) {
        (Some(stage), _) => format!("{word}: {stage}"),
        (None, Some(why)) => format!("{word}: {why}"),
        (None, None) if job.held => format!("{word}: held"),
        (None, None) => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_of_steps_of_one_kind_is_one_line() {
        let back = |n: usize| Step {
            step: "return".to_owned(),
            target: format!("x{n}"),
            text: format!("bring x{n} back"),
        };
        let end = Step {
            step: "end".to_owned(),
            target: "job7".to_owned(),
            text: "let job7 end".to_owned(),
        };
        let few: Vec<Step> = std::iter::once(end.clone()).chain((0..ALIKE_MAX).map(back)).collect();
        let lines = folded(&few);
        assert_eq!((lines.len(), &*lines[0], &*lines[1]), (7, "let job7 end", "bring x0 back"));
        let many: Vec<Step> = std::iter::once(end).chain((0..48).map(back)).collect();
        let line = "bring these 48 back: x0 to x47 (`--json` has every return)";
        assert_eq!(folded(&many), ["let job7 end", line]);
    }
}
