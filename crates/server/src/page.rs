//! The dashboard: HTML and SVG drawn here, and kept live by one small script.
//!
//! A page is the frame and its live part.  The script asks for the live part again whenever the
//! feed has something to say.  Everything that a person wrote is escaped by the templates; colours
//! are presentation attributes and classes, because the policy lets no inline style in.

mod grid;

mod lists;

mod panel;

mod pod;

mod topo;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};

use crate::api::error::ApiError;
use crate::api::watch::StatusView;
use crate::api::{case, hardware, job, switch, watch};
use crate::house::House;
use crate::limits;
use crate::words;

/// All pages and what they are drawn with.
pub(crate) fn routes() -> Router<House> {
    Router::new()
        .route("/", get(home))
        .route("/live", get(live_home))
        .route("/jobs/{id}", get(job_page))
        .route("/live/jobs/{id}", get(live_job))
        .route("/cubes/{*name}", get(cube_page))
        .route("/live/cubes/{*name}", get(live_cube))
        .route("/switches/{*name}", get(switch_page))
        .route("/live/switches/{*name}", get(live_switch))
        .route("/page.css", get(|| asset("text/css; charset=utf-8", include_str!("page/page.css"))))
        .route(
            "/page.js",
            get(|| asset("text/javascript; charset=utf-8", include_str!("page/page.js"))),
        )
        .merge(topo::routes())
        .route("/icon.svg", get(|| asset("image/svg+xml", include_str!("page/icon.svg"))))
}

/// What somebody sees who has neither token nor cookie.
pub(crate) fn closed() -> Response {
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { "Selvedge" } }
            body {
                h1 { "Selvedge" }
                p { "This dashboard is open to the user who started the server." }
                p { "Open the link that " code { "selvedge up" } " printed. It works once; "
                    code { "selvedge dashboard" } " prints a new one." }
            }
        }
    };
    page_of(StatusCode::UNAUTHORIZED, body)
}

async fn home(State(house): State<House>) -> Response {
    framed("/live", "pod", home_view(&house).await)
}

async fn live_home(State(house): State<House>) -> Response {
    bare(home_view(&house).await)
}

async fn job_page(State(house): State<House>, Path(id): Path<String>) -> Response {
    framed(&format!("/live/jobs/{id}"), "job", job_view(&house, id).await)
}

async fn live_job(State(house): State<House>, Path(id): Path<String>) -> Response {
    bare(job_view(&house, id).await)
}

async fn cube_page(State(house): State<House>, Path(name): Path<String>) -> Response {
    framed(&format!("/live/cubes/{name}"), &name, cube_view(&house, &name).await)
}

async fn live_cube(State(house): State<House>, Path(name): Path<String>) -> Response {
    bare(cube_view(&house, &name).await)
}

async fn switch_page(State(house): State<House>, Path(name): Path<String>) -> Response {
    framed(&format!("/live/switches/{name}"), &name, switch_view(&house, &name).await)
}

async fn live_switch(State(house): State<House>, Path(name): Path<String>) -> Response {
    bare(switch_view(&house, &name).await)
}

async fn home_view(house: &House) -> Result<Markup, ApiError> {
    let data = house.data().display().to_string();
    let scene = house.look(move |shell| {
        let status = watch::status_view(shell, data);
        let jobs = lists::Jobs::of(shell);
        (
            status,
            hardware::cube_views(shell),
            panel::Panel::of(shell),
            grid::Grid::all(shell),
            jobs,
            case::views(shell, true),
            shell.feed().recent(limits::PAGE_EVENTS_MAX),
        )
    });
    let (status, cubes, panel, grids, jobs, cases, events) = scene.await?;
    Ok(html! {
        (bar(&status))
        div.columns {
            section aria-labelledby="h-pod" {
                h2 #h-pod { "Pod map" }
                (pod::map(&cubes, &jobs))
            }
            section aria-labelledby="h-ocs" {
                h2 #h-ocs { "Optical switches" }
                (panel.draw())
            }
        }
        @if !grids.is_empty() {
            section aria-labelledby="h-grid" {
                h2 #h-grid { "Boards by partition" }
                @for grid in &grids { (grid.draw()) }
            }
        }
        section aria-labelledby="h-queue" { h2 #h-queue { "Queue" } (jobs.queue()) }
        section aria-labelledby="h-run" { h2 #h-run { "On the pod" } (jobs.active()) }
        div.columns {
            section aria-labelledby="h-cases" {
                h2 #h-cases { "Open cases" }
                (lists::cases(&cases))
            }
            section aria-labelledby="h-events" {
                h2 #h-events { "Events" }
                (lists::events(&events))
            }
        }
    })
}

async fn job_view(house: &House, id: String) -> Result<Markup, ApiError> {
    let (job, why) = house
        .look(move |shell| {
            let id = words::job_named(&id).ok_or_else(|| ApiError::no_such("job", &id))?;
            let found = job::find(shell, id)?;
            let why = crate::api::explain::summary(shell, id, found);
            Ok::<_, ApiError>((job::detail(shell, id, found), why))
        })
        .await??;
    Ok(lists::job(&job, &why))
}

async fn cube_view(house: &House, name: &str) -> Result<Markup, ApiError> {
    let name = name.to_owned();
    let cube = house.look(move |shell| hardware::cube_detail(shell, &name)).await??;
    Ok(pod::cube(&cube))
}

async fn switch_view(house: &House, name: &str) -> Result<Markup, ApiError> {
    let name = name.to_owned();
    let switch = house.look(move |shell| switch::detail(shell, &name)).await??;
    Ok(panel::one(&switch))
}

/// The line on top: what runs, how fast, and whether all is well.
fn bar(status: &StatusView) -> Markup {
    let share = 100.0 * status.chips_used as f64 / (status.chips.max(1)) as f64;
    html! {
        dl.bar {
            div { dt { "plant" } dd { (status.name) " · version " (status.version) } }
            div { dt { "plant time" } dd { (clock(status.now_s)) " at ×" (status.speed) } }
            div { dt { "level" } dd { (status.level) } }
            div { dt { "chips used" } dd { (status.chips_used) " of " (status.chips)
                " (" (format!("{share:.0}")) " %)" } }
            div { dt { "out of use" } dd { (words::counted(status.chips_out, "chip")) } }
            div { dt { "jobs" } dd { (status.jobs.get("running").unwrap_or(&0)) " running, "
                (status.jobs.get("queued").unwrap_or(&0)) " queued" } }
            div { dt { "journal" } dd { "row " (status.journal) } }
        }
        @if let Some(error) = &status.journal_error {
            p.alarm role="alert" {
                "The journal cannot be written, so nothing is accepted: " (error)
            }
        }
    }
}

/// Plant time as a person reads it.
fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    let (days, hours) = (whole / 86_400, whole / 3600 % 24);
    format!("{days}d {hours:02}:{:02}:{:02}", whole / 60 % 60, whole % 60)
}

fn framed(live: &str, title: &str, content: Result<Markup, ApiError>) -> Response {
    let (status, content) = match content {
        Ok(content) => (StatusCode::OK, content),
        Err(error) => (error.status, trouble(&error)),
    };
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Selvedge" }
                link rel="icon" href="/icon.svg";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
            }
            body {
                header {
                    a.brand href="/" { "Selvedge" }
                    a href="/topo" { "topology" }
                    span #link.link role="status" { "live" }
                }
                main data-live=(live) { (content) }
            }
        }
    };
    page_of(status, body)
}

fn bare(content: Result<Markup, ApiError>) -> Response {
    match content {
        Ok(content) => page_of(StatusCode::OK, content),
        Err(error) => page_of(error.status, trouble(&error)),
    }
}

fn trouble(error: &ApiError) -> Markup {
    html! {
        p.alarm role="alert" { (error.body.error) }
        @if let Some(hint) = &error.body.hint { p { (hint) } }
        p { a href="/" { "to the pod" } }
    }
}

fn page_of(status: StatusCode, body: Markup) -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    (status, [(header::CONTENT_TYPE, kind)], body.into_string()).into_response()
}

async fn asset(kind: &'static str, body: &'static str) -> impl IntoResponse {
    let keep = HeaderValue::from_static("private, max-age=60");
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CACHE_CONTROL, keep)], body)
}

/// The colour of a job: neighbours in number are far apart in hue.
fn colour(job: u32) -> String {
    format!("hsl({} 55% 52%)", u64::from(job) * 137 % 360)
}
