//! Jobs, cases and events as tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};

use crate::api::case::CaseView;
use crate::api::explain;
use crate::api::job::{self, JobDetail, JobView, TaskView};
use crate::feed::Event;
use crate::limits;
use crate::page::{clock, colour};
use crate::shell::Shell;
use crate::words;

/// Jobs that wait or hold hardware, as many as a page shows.
pub(super) struct Jobs {
    waiting: Vec<(JobView, Option<String>)>,
    n_waiting: usize,
    active: Vec<JobView>,
    n_active: usize,
    names: BTreeMap<u32, String>,
}

impl Jobs {
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
        let names = state.active.iter().map(|id| (id.number(), state.jobs[*id].spec.name.clone()));
        let active =
            state.active.iter().rev().filter(|id| state.jobs[**id].state.word() != "queued");
        let n_active = active.clone().count();
        let active = active.take(limits::PAGE_JOBS_MAX);
        Self {
            waiting: waiting.collect(),
            n_waiting,
            active: active.map(|id| job::view(shell, *id, &state.jobs[*id])).collect(),
            n_active,
            names: names.collect(),
        }
    }

    /// What a job on the pod is called.
    pub(super) fn name_of(&self, job: u32) -> &str {
        self.names.get(&job).map_or("", String::as_str)
    }

    /// Jobs that wait, with why.
    pub(super) fn queue(&self) -> Markup {
        if self.waiting.is_empty() {
            return html! { p.none { "Nothing waits." } };
        }
        html! {
            div.wide { table {
                thead { tr { th { "job" } th { "name" } th { "owner" } th { "shape" }
                    th { "priority" } th { "since" } th { "why not now" } } }
                tbody { @for (job, why) in &self.waiting {
                    tr data-job=(job.id) {
                        td { a href=(format!("/jobs/{}", job.id)) { "#" (job.id) } }
                        td.name { (job.name) } td.name { (job.owner) } td { (job.shape) }
                        td { (job.priority) } td { (clock(job.submitted_s)) }
                        td { (why.as_deref().unwrap_or("")) }
                    }
                } }
            } }
            (more(self.n_waiting, self.waiting.len()))
        }
    }

    /// Jobs that hold hardware.
    pub(super) fn active(&self) -> Markup {
        if self.active.is_empty() {
            return html! { p.none { "No job holds hardware." } };
        }
        html! {
            div.wide { table {
                thead { tr { th { "job" } th { "name" } th { "owner" } th { "shape" } th { "state" }
                    th { "cubes" } th { "generation" } } }
                tbody { @for job in &self.active {
                    tr data-job=(job.id) {
                        td { (dot(job.id)) a href=(format!("/jobs/{}", job.id)) { "#" (job.id) } }
                        td.name { (job.name) } td.name { (job.owner) } td { (job.shape) }
                        td { (job.state) @if let Some(stage) = &job.stage { ": " (stage) }
                            @if let Some(why) = &job.why { ": " (why) } }
                        td.name { (job.cubes.join(" ")) }
                        td { @if let Some(generation) = job.generation { (generation) } }
                    }
                } }
            } }
            (more(self.n_active, self.active.len()))
        }
    }
}

/// One job with its timeline.
pub(super) fn job(detail: &JobDetail, why: &str) -> Markup {
    let job = &detail.job;
    html! {
        h1.name { (dot(job.id)) "Job " (job.id) ": " (job.name) }
        p { (job.state) ": " (why) }
        dl.bar {
            div { dt { "shape" } dd { (job.shape) " · " (words::counted(job.chips, "chip")) } }
            div { dt { "owner" } dd { (job.owner) " · " (job.project) } }
            div { dt { "priority" } dd { (job.priority)
                @if job.preemptible { ", preemptible" } } }
            div { dt { "starts" } dd { (job.attempt) } }
            div { dt { "steps kept" } dd { (job.kept_steps) } }
            div { dt { "interrupted" } dd { (job.n_interrupted) " by faults, "
                (job.n_preempted) " by others" } }
            @if let Some(generation) = job.generation {
                div { dt { "generation" } dd { (generation) } }
            }
        }
        section {
            h2 { "Where" }
            p { @for place in &detail.places {
                a href=(format!("/cubes/{}", place.part)) { (place.part) } " " }
                @if detail.places.is_empty() { "nowhere" } }
        }
        @if let Some(command) = &job.command {
            section {
                h2 { "Runs" }
                p.name { (command.join(" ")) }
                (tasks(&detail.tasks))
            }
        }
        section {
            h2 { "Timeline" }
            ol.timeline { @for line in &detail.timeline {
                li { time { (clock(line.at_s)) } " " (line.what) } } }
        }
    }
}

/// The processes of a job that runs a program.
fn tasks(tasks: &[TaskView]) -> Markup {
    let how = |it: &TaskView| match (it.lost, it.signal, it.exit) {
        (true, ..) => "lost with its supervisor".to_owned(),
        (_, Some(signal), _) => format!("died of signal {signal}"),
        (_, None, Some(exit)) => format!("exit {exit}"),
        (_, None, None) => "runs".to_owned(),
    };
    html! {
        @if !tasks.is_empty() {
            div.wide { table {
                thead { tr { th { "task" } th { "machine" } th { "process" } th { "state" } } }
                tbody { @for task in tasks {
                    tr data-task=(task.index) {
                        td { (task.index) } td { (task.machine) } td { (task.pid) }
                        td { (how(task)) }
                    }
                } }
            } }
        }
    }
}

/// Open cases.
pub(super) fn cases(cases: &[CaseView]) -> Markup {
    if cases.is_empty() {
        return html! { p.none { "No case is open." } };
    }
    let shown = &cases[..cases.len().min(limits::PAGE_JOBS_MAX)];
    html! {
        div.wide { table {
            thead { tr { th { "case" } th { "target" } th { "seen" } th { "severity" }
                th { "state" } th { "taken by" } } }
            tbody { @for case in shown {
                tr data-case=(case.id) {
                    td { (case.id) } td { (case.target) }
                    td { (case.symptom.replace('_', " ")) " ×" (case.n_seen) }
                    // Planned work and what is given back are no faults, however they are graded.
                    @if matches!(&*case.symptom, "planned" | "returned") { td { "–" } }
                    @else { td class=(case.severity) { (case.severity) } }
                    td { (case.state.replace('_', " ")) }
                    td.name { (case.taken_by.as_deref().unwrap_or("")) }
                }
            } }
        } }
        (more(cases.len(), shown.len()))
    }
}

/// The newest events, newest first.
pub(super) fn events(events: &[Arc<Event>]) -> Markup {
    html! {
        ol.events { @for event in events.iter().rev() {
            li data-event=(event.number) {
                time { (clock(event.at.as_secs_f64())) } " " (event.text)
            }
        } }
        @if events.is_empty() { p.none { "Nothing has happened since the last start." } }
    }
}

fn more(n: usize, n_shown: usize) -> Markup {
    html! {
        @if n_shown < n {
            p.more { (n - n_shown) " more; " code { "selvedge job list" } " shows all" }
        }
    }
}

fn dot(job: u32) -> Markup {
    html! {
        svg.dot viewBox="0 0 10 10" aria-hidden="true" {
            circle cx="5" cy="5" r="5" fill=(colour(job)) {}
        }
    }
}
