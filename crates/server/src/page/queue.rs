//! The queue and what is free: who waits and why not now, who runs, who has ended.

use maud::{Markup, html};

use selvedge_control::capacity::Capacity;
use selvedge_control::core::Explanation;
use selvedge_family::torus::shape::Shape;
use selvedge_model::id::PoolId;
use selvedge_model::job::Need;

use crate::api::explain;
use crate::api::hardware::{self, PodView};
use crate::api::job::{self, ExplanationView, JobView};
use crate::limits;
use crate::page::sheet::{
    Part, Sheet, badge, clock, inert, job_link, lasting, more, name, none, stretches, table,
};
use crate::shell::Shell;

/// Stretches of parts of a job that a row names; it says how many more parts there are.
const PARTS_SHOWN: usize = 4;

/// Shapes that the room of a pod is told in, small ones first.
const SHAPES: [&str; 7] = ["2x2x1", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "16x16x16"];

/// Jobs that wait, hold hardware or have ended lately, as many as a page shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Queue {
    /// In the order in which they are served, with why the first of them wait.
    pub(super) waiting: Vec<(JobView, Option<String>)>,
    pub(super) n_waiting: usize,
    pub(super) active: Vec<JobView>,
    pub(super) n_active: usize,
    /// Newest first.
    pub(super) ended: Vec<JobView>,
    pub(super) n_ended: usize,
    /// Now, in seconds of plant time.
    pub(super) now_s: f64,
}

/// What is free in a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Room {
    pub(super) pod: PodView,
    /// How often each shape would fit, were nobody waiting; none for other families than the torus.
    pub(super) fits: Vec<(&'static str, usize)>,
    /// The largest box of a grid, and the boards of its largest connected set.
    pub(super) largest: Option<(String, u32)>,
}

impl Queue {
    /// The jobs of now.
    pub(super) fn of(shell: &Shell) -> Self {
        let state = shell.core().state();
        let held = state.jobs.pairs().filter(|(id, job)| {
            job.state.word() == "queued" && !state.queue.iter().any(|(_, it)| it == id)
        });
        let held: Vec<_> = held.map(|(id, _)| id).collect();
        let queued = state.queue.iter().map(|(_, id)| *id).chain(held);
        let n_waiting = queued.clone().count();
        let waiting = queued.take(limits::PAGE_JOBS_MAX).enumerate().map(|(idx, id)| {
            let job = &state.jobs[id];
            let why = (idx < limits::PAGE_REASONS_MAX).then(|| explain::summary(shell, id, job));
            (job::view(shell, id, job), why)
        });
        let waiting: Vec<_> = waiting.collect();
        let is_active = |id: &&selvedge_model::id::JobId| state.jobs[**id].state.word() != "queued";
        let active = state.active.iter().rev().filter(is_active);
        let n_active = active.clone().count();
        let active = active.take(limits::PAGE_JOBS_MAX);
        let active = active.map(|id| job::view(shell, *id, &state.jobs[*id])).collect();
        let mut ended: Vec<_> =
            state.jobs.pairs().filter_map(|(id, it)| Some((it.ended?, id))).collect();
        let n_ended = ended.len();
        ended.sort_unstable_by(|a, b| b.cmp(a));
        ended.truncate(limits::PAGE_JOBS_MAX);
        let ended = ended.into_iter().map(|(_, id)| job::view(shell, id, &state.jobs[id]));
        let ended = ended.collect();
        let now_s = shell.plant_now().as_secs_f64();
        Self { waiting, n_waiting, active, n_active, ended, n_ended, now_s }
    }

    /// Jobs that wait, with why not now.
    pub(super) fn waiting(&self) -> Part {
        let heading = html! { "Waiting" span.sum { (self.n_waiting) } };
        let body = if self.waiting.is_empty() {
            none("Nothing waits.")
        } else {
            let heads = ["job", "name", "owner", "shape", "priority", "waits", "why not now"];
            html! {
                (table("jobs that wait", &heads, html! {
                    @for (job, why) in &self.waiting { (self.row_waiting(job, why.as_deref())) }
                }))
                (more(self.n_waiting, self.waiting.len(), "selvedge job list"))
            }
        };
        Part::with("queue", heading, body)
    }

    fn row_waiting(&self, job: &JobView, why: Option<&str>) -> Markup {
        html! {
            tr data-key=(job.id) data-waits=(job.id) {
                td { (job_link(job.id)) }
                td { (name(&job.name)) }
                td { (name(&job.owner)) }
                td { (job.shape) }
                td.n { (job.priority) }
                td.n { (lasting(self.now_s - job.submitted_s)) }
                td.why {
                    @match why {
                        Some(why) => (inert(why)),
                        // To find it for each would keep everybody waiting.
                        None => a href=(format!("/jobs/{}", job.id)) { "on its page" },
                    }
                }
            }
        }
    }

    /// Jobs that hold hardware.
    pub(super) fn active(&self) -> Part {
        let heading = html! { "On the plant" span.sum { (self.n_active) } };
        let body = if self.active.is_empty() {
            none("No job holds hardware.")
        } else {
            let heads = ["job", "name", "owner", "shape", "state", "for", "where"];
            html! {
                (table("jobs that hold hardware", &heads, html! {
                    @for job in &self.active { (self.row_active(job)) }
                }))
                (more(self.n_active, self.active.len(), "selvedge job list"))
            }
        };
        Part::with("active", heading, body)
    }

    fn row_active(&self, job: &JobView) -> Markup {
        let since = job.placed_s.unwrap_or(job.submitted_s);
        html! {
            tr data-key=(job.id) data-active=(job.id) {
                td { (job_link(job.id)) }
                td { (name(&job.name)) }
                td { (name(&job.owner)) }
                td { (job.shape) }
                td { (badge(&job.state, &job.state))
                    @if let Some(stage) = &job.stage { " " (stage) } }
                td.n { (lasting(self.now_s - since)) }
                td.where { (stretches(&job.cubes, PARTS_SHOWN)) }
            }
        }
    }

    /// Jobs that are over.
    pub(super) fn ended(&self) -> Part {
        let heading = html! { "Ended" span.sum { (self.n_ended) } };
        let body = if self.ended.is_empty() {
            none("No job has ended yet.")
        } else {
            let heads = ["job", "name", "owner", "shape", "state", "ended", "ran in all", "why"];
            html! {
                (table("jobs that have ended", &heads, html! {
                    @for job in &self.ended {
                        tr data-key=(job.id) data-ended=(job.id) {
                            td { (job_link(job.id)) }
                            td { (name(&job.name)) }
                            td { (name(&job.owner)) }
                            td { (job.shape) }
                            td { (badge(&job.state, &job.state)) }
                            td.n { (clock(job.ended_s.unwrap_or(0.0))) }
                            td.n { (lasting(job.allocated_s)) }
                            td.why { (job.why.as_deref().map_or_else(String::new, inert)) }
                        }
                    }
                }))
                (more(self.n_ended, self.ended.len(), "selvedge job list"))
            }
        };
        Part::with("ended", heading, body)
    }
}

/// What is free now, by pod.
pub(super) fn rooms(shell: &Shell) -> Vec<Room> {
    let pools = shell.core().fabric().pools();
    let views = hardware::pod_views(shell).into_iter().zip(pools.ids());
    let room = |(pod, pool): (PodView, PoolId)| {
        let largest = explain::largest(shell, &pod.name);
        let largest = largest.map(|it| (format!("{}x{}", it.rows, it.columns), it.connected));
        Room { fits: fits(shell, pool), largest, pod }
    };
    views.map(room).collect()
}

/// How often each of [`SHAPES`] fits into `pool`.
fn fits(shell: &Shell, pool: PoolId) -> Vec<(&'static str, usize)> {
    let (layout, parts) = (shell.core().layout(), &shell.core().state().parts);
    let is_pod =
        |&part: &selvedge_model::id::PartId| shell.core().fabric().template_of(part).name == "cube";
    if !layout.pools[pool].iter().all(is_pod) {
        return Vec::new();
    }
    let n_fits = |text: &str| {
        let Ok((shape, _)) = Shape::parse(text) else { return 0 };
        let need = shape.need();
        let mut room = Capacity::now(layout, parts);
        if let Need::Whole { n_parts } = need {
            return room.free_parts(pool, n_parts as usize).len() / n_parts as usize;
        }
        let mut n = 0;
        while let Some(hold) = room.within(pool, &need) {
            room.take(&[hold]);
            n += 1;
        }
        n
    };
    SHAPES.into_iter().map(|it| (it, n_fits(it))).collect()
}

/// What is free, as figures and bars.
pub(super) fn capacity(rooms: &[Room]) -> Part {
    let body = html! {
        @for room in rooms { (pod_room(room)) }
        @if rooms.is_empty() { (none("The plant has no pods.")) }
    };
    Part::new("capacity", "Capacity", body)
}

fn pod_room(room: &Room) -> Markup {
    let pod = &room.pod;
    let share = |n: u64| format!("{:.2}", 100.0 * n as f64 / pod.n_chips.max(1) as f64);
    let free = pod.n_chips.saturating_sub(pod.chips_used + pod.chips_out);
    html! {
        div.room data-pod=(pod.name) {
            h3 { (pod.name) span.sum {
                (pod.cubes_free) " of " (pod.n_cubes) " parts free and whole, "
                (free) " of " (pod.n_chips) " chips neither held nor out"
            } }
            svg.meter.tall viewBox="0 0 100 8" preserveAspectRatio="none" role="img"
                aria-label=(format!("{} chips held, {} out, {} in all",
                    pod.chips_used, pod.chips_out, pod.n_chips)) {
                rect.rail width="100" height="8" {}
                rect.used width=(share(pod.chips_used)) height="8" {}
                rect.gone x=(share(pod.n_chips - pod.chips_out.min(pod.n_chips)))
                    width=(share(pod.chips_out)) height="8" {}
            }
            @if !room.fits.is_empty() {
                p.caption { "How often each shape fits now, were nobody waiting:" }
                dl.fits { @for (shape, n) in &room.fits {
                    div class=(if *n == 0 { "fit full" } else { "fit" }) {
                        dt { (shape) } dd { (n) }
                    }
                } }
            }
            @if let Some((sides, connected)) = &room.largest {
                p { "The largest free box is " b { (sides) } " boards, the largest connected set "
                    "of "
                    "free boards " b { (connected) } "." }
            }
        }
    }
}

/// Why a job does not start now, and what would change that.
pub(super) fn explained(why: &ExplanationView) -> Markup {
    html! {
        p.verdict { (inert(&why.summary)) "." }
        @if 0 < why.n_ahead { p { (why.n_ahead) " jobs stand before it in the queue." } }
        @if let Some(need) = &why.need { p { (inert(need)) } }
        @if let Some(steps) = why.steps.as_ref().filter(|it| !it.is_empty()) {
            p.caption { "All of this together would let it start now:" }
            ol.steps { @for step in steps { li { (inert(&step.text)) } } }
        }
        @if let Some(forecast) = &why.forecast {
            p { "If nothing is done: "
                @if let Some(at) = forecast.at_s { "at " (clock(at)) ", " }
                (inert(&forecast.why)) "." }
        }
        @for room in &why.room {
            p.caption { (room.pod) ": " (room.n_free) " of " (room.n_parts) " parts free and whole"
                @if let Some(sides) = &room.largest_box { ", largest free box " (sides) }
                @if let Some(n) = room.largest_set { ", largest connected set " (n) } }
        }
        @if let Some(bounds) = &why.bounds { p { (inert(bounds)) } }
    }
}

/// The page of the queue.
#[derive(Clone, Debug)]
pub(super) struct QueuePage {
    pub(super) queue: Queue,
    pub(super) rooms: Vec<Room>,
    /// Why the first job that waits does.
    pub(super) head: Option<(JobView, ExplanationView)>,
}

impl QueuePage {
    /// The page of now, with what was found out about the head of the queue.
    pub(super) fn of(shell: &Shell, explained: Option<Explanation>) -> Self {
        let head = shell.core().head().map(|it| it.job).map(|id| {
            let job = &shell.core().state().jobs[id];
            // Another may have become the head meanwhile; the next drawing explains it.
            let explained = explained.filter(|it| it.job == id);
            let explained = explain::explain(shell, id, job, explained);
            (job::view(shell, id, job), explained)
        });
        Self { queue: Queue::of(shell), rooms: rooms(shell), head }
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let head = match &self.head {
            None => none("Every job that may start has started."),
            Some((job, why)) => html! {
                p { (job_link(job.id)) " " (name(&job.name)) ", " (job.shape)
                    ", is the first that does not fit." }
                (explained(why))
            },
        };
        let head = Part::new("head", "Why not now", head);
        let parts = vec![
            head,
            capacity(&self.rooms),
            self.queue.waiting(),
            self.queue.active(),
            self.queue.ended(),
        ];
        Sheet { title: "queue".to_owned(), layout: "queue", parts }
    }
}
