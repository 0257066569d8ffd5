//! One job: where it stands and why, what happened to it, where it lies, what it runs.

use maud::{Markup, html};

use selvedge_control::core::Explanation;
use selvedge_control::family::is_boards;
use selvedge_control::state::{Event, Job, JobState};
use selvedge_model::id::JobId;
use selvedge_model::job::Demand;

use crate::api::error::ApiError;
use crate::api::explain;
use crate::api::job::{self, ExplanationView, JobDetail, TaskView};
use crate::page::queue::explained;
use crate::page::sheet::{
    Part, Sheet, badge, clock, colour, cube_link, inert, lasting, name, none, table, tile, words,
};
use crate::shell::Shell;

/// Parts that the page names; the slice view shows all of a large job.
const PARTS_SHOWN: usize = 256;

/// What a job did for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Waiting,
    Starting,
    Running,
    Stopping,
}

impl Doing {
    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// A stretch of a job's life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) doing: Doing,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
}

/// One job.
#[derive(Clone, Debug)]
pub(super) struct JobPage {
    pub(super) detail: JobDetail,
    pub(super) why: ExplanationView,
    pub(super) life: Vec<Stretch>,
    /// Whether its slice is a torus, which has a picture.
    pub(super) has_slice: bool,
}

impl JobPage {
    /// The job of now, with what was found out about why it waits.
    pub(super) fn of(
        shell: &Shell,
        id: u32,
        explained: Option<Explanation>,
    ) -> Result<Self, ApiError> {
        let id = JobId::new(id);
        let job = job::find(shell, id)?;
        let now_s = shell.plant_now().as_secs_f64();
        let is_waiting = matches!(job.state, JobState::Queued { .. });
        let explained = explained.filter(|_| is_waiting);
        let of_torus = matches!(&job.spec.demand, Demand::Shape(text) if !is_boards(text));
        Ok(Self {
            detail: job::detail(shell, id, job),
            why: explain::explain(shell, id, job, explained),
            life: life(job, now_s),
            has_slice: of_torus && job.place.is_some(),
        })
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let job = &self.detail.job;
        let mut parts = vec![self.head(), self.why(), self.timeline(), self.places()];
        if job.command.is_some() {
            parts.push(self.tasks());
        }
        Sheet { title: format!("job {}", job.id), layout: "job", parts }
    }

    fn head(&self) -> Part {
        let job = &self.detail.job;
        Part::head(
            "head",
            html! {
                h1 {
                    svg.dot viewBox="0 0 10 10" aria-hidden="true" {
                        rect width="10" height="10" rx="3" fill=(colour(job.id)) {}
                    }
                    "Job " (job.id) " " (name(&job.name)) " " (badge(&job.state, &job.state))
                }
                dl.tiles {
                    (tile("shape", html! { (job.shape) small { " " (job.chips) " chips" } }))
                    (tile("owner", html! { (name(&job.owner)) }))
                    (tile("project", html! { (name(&job.project)) }))
                    (tile("priority", html! { (job.priority)
                        @if job.preemptible { small { " preemptible" } } }))
                    (tile("starts", html! { (job.attempt) }))
                    (tile("interrupted", html! { (job.n_interrupted) small { " by faults" }
                        @if 0 < job.n_preempted {
                            ", " (job.n_preempted) small { " by others" } } }))
                    @if 0.0 < job.allocated_s {
                        (tile("held hardware", html! { (lasting(job.allocated_s)) }))
                    }
                    @if let Some(limit) = job.limit_s {
                        (tile("limit", html! { (lasting(limit)) }))
                    }
                    @if 0 < job.kept_steps { (tile("steps kept", html! { (job.kept_steps) })) }
                    @if let Some(generation) = job.generation {
                        (tile("generation", html! { (generation) }))
                    }
                }
            },
        )
    }

    fn why(&self) -> Part {
        let heading = match self.detail.job.state.as_str() {
            "queued" => "Why not now",
            _ => "Where it stands",
        };
        Part::new("why", heading, explained(&self.why))
    }

    fn timeline(&self) -> Part {
        let lines = &self.detail.timeline;
        Part::new(
            "timeline",
            "Timeline",
            html! {
                (bars(&self.life))
                ol.timeline { @for line in lines {
                    li { time { (clock(line.at_s)) } span { (inert(&line.what)) } }
                } }
            },
        )
    }

    fn places(&self) -> Part {
        let places = &self.detail.places;
        let shown = &places[..places.len().min(PARTS_SHOWN)];
        Part::new(
            "places",
            "Where",
            html! {
                @if places.is_empty() { (none("It holds no hardware.")) }
                @if self.has_slice {
                    p { a.go href=(format!("/jobs/{}/slice", self.detail.job.id)) {
                        "its slice in three dimensions, with its rings" } }
                }
                ul.parts { @for place in shown {
                    li data-place=(place.part) { (cube_link(&place.part))
                        small { " " (place.chips) " chips" } }
                } }
                @if shown.len() < places.len() {
                    p.more { "and " (places.len() - shown.len()) " more" }
                }
            },
        )
    }

    fn tasks(&self) -> Part {
        let job = &self.detail.job;
        let heads = ["task", "machine", "process", "state"];
        Part::new(
            "tasks",
            "Program",
            html! {
                p.command {
                    @for word in job.command.iter().flatten().take(64) { (words(word)) " " }
                }
                @if let Some(account) = &job.account {
                    p.caption { "under the account " (words(account)) }
                }
                p.caption {
                    code { "selvedge job logs " (job.id) " --task N" } " shows what a task wrote"
                }
                @if self.detail.tasks.is_empty() { (none("None of its tasks has begun.")) }
                @else {
                    (table("tasks", &heads, html! {
                        @for task in &self.detail.tasks {
                            tr data-key=(task.index) data-task=(task.index) {
                                td.n { (task.index) } td { (task.machine) } td.n { (task.pid) }
                                td { (how(task)) }
                            }
                        }
                    }))
                }
            },
        )
    }
}

fn how(task: &TaskView) -> Markup {
    match (task.lost, task.signal, task.exit) {
        (true, ..) => badge("failed", "lost with its supervisor"),
        (_, Some(signal), _) => badge("failed", &format!("died of signal {signal}")),
        (_, None, Some(0)) => badge("finished", "exit 0"),
        (_, None, Some(exit)) => badge("failed", &format!("exit {exit}")),
        (_, None, None) => badge("running", "runs"),
    }
}

/// The stretches of a job's life up to `now_s`.
fn life(job: &Job, now_s: f64) -> Vec<Stretch> {
    let mut life: Vec<Stretch> = Vec::new();
    for (at, event) in &job.timeline {
        let at_s = at.as_secs_f64();
        if let Some(last) = life.last_mut() {
            last.to_s = at_s;
        }
        let doing = match event {
            Event::Submitted | Event::Requeued => Doing::Waiting,
            Event::Placed | Event::Staged(_) => Doing::Starting,
            Event::Started => Doing::Running,
            Event::Notified(_) | Event::Stopped(_) => Doing::Stopping,
            Event::Ended => return life,
        };
        match life.last_mut() {
            Some(last) if last.doing == doing => last.to_s = now_s,
            Some(_) | None => life.push(Stretch { doing, from_s: at_s, to_s: now_s }),
        }
    }
    life
}

/// The stretches as a bar; what is too short to be seen is drawn two pixels wide.
fn bars(life: &[Stretch]) -> Markup {
    const WIDTH: f64 = 1000.0;
    let (Some(first), Some(last)) = (life.first(), life.last()) else { return html! {} };
    let whole = (last.to_s - first.from_s).max(1e-9);
    let mut x = 0.0;
    html! {
        svg.life viewBox="0 0 1000 34" preserveAspectRatio="none" role="img"
            aria-label="what it did, from its submit on" {
            @for stretch in life {
                @let width = (WIDTH * (stretch.to_s - stretch.from_s) / whole).max(3.0);
                @let title = format!("{} for {}", stretch.doing.word(),
                    lasting(stretch.to_s - stretch.from_s));
                g {
                    title { (title) }
                    rect class=(stretch.doing.word()) x=(format!("{x:.1}")) y="2"
                        width=(format!("{width:.1}")) height="30" {}
                }
                ({ x += width; "" })
            }
        }
        p.scale {
            span { (clock(first.from_s)) } span { (lasting(whole)) } span { (clock(last.to_s)) }
        }
        ul.legend {
            @for doing in [Doing::Waiting, Doing::Starting, Doing::Running, Doing::Stopping] {
                @let took: f64 = life.iter().filter(|it| it.doing == doing)
                    .map(|it| it.to_s - it.from_s).sum();
                @if 0.0 < took {
                    li { span class=(format!("swatch {}", doing.word())) {}
                        (doing.word()) " " (lasting(took)) }
                }
            }
        }
    }
}
