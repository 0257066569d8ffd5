//! A server as NCCL sees it: drop a topology file or a log, and see matrix, picture and findings.
//!
//! Nothing of the pod is shown and nothing that is sent is kept: the answer is drawn from the
//! request alone, so whoever may look may use it.  One file is worked on at a time, away from the
//! threads that answer everybody else.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use tokio::sync::Semaphore;

use selvedge_family::host::change::{NoAnswer, Question};
use selvedge_family::host::hwloc;
use selvedge_family::host::lint::{Finding, lint};
use selvedge_family::host::log;
use selvedge_family::host::machine::topology;
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::graph::NodeIdx;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Element, Strictness, read, write};
use selvedge_family::host::picture::{Picture, STYLE, svg_of_log_without_style, svg_without_style};
use selvedge_family::host::place::{PlaceError, PlaceName, find_in_view, find_part, ranks, walk};
use selvedge_family::host::views::left_out_note;

use crate::api::body::Json;
use crate::api::error::ApiError;
use crate::house::House;
use crate::limits;
use crate::page::{SCRIPT, THEME, top, whole};

pub(super) fn routes() -> Router<House> {
    Router::new()
        .route("/topo", get(page))
        .route("/topo/look", post(look))
        .route("/topo.css", get(style))
        .route("/topo.js", get(|| asset(SCRIPT, include_str!("topo.js"))))
}

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    /// A topology file, an hwloc file or a log.
    text: String,
    /// What people call it.
    #[serde(default)]
    name: String,
    /// The version of NCCL; the newest without it.
    #[serde(default)]
    nccl: Option<String>,
    /// Equal servers in the job.
    #[serde(default)]
    nodes: Option<u32>,
    /// The rank that looks; the lowest without it, of a log the first that says enough.
    #[serde(default)]
    rank: Option<i32>,
    /// The ends of a way that is drawn out, such as `GPU0`; none where they are empty.
    #[serde(default)]
    from: String,
    /// The other.
    #[serde(default)]
    to: String,
}

impl Look {
    /// The ends of the way that is asked for, if one is.
    fn way(
        &self,
        find: impl Fn(&PlaceName) -> Result<NodeIdx, PlaceError>,
    ) -> Result<Option<(NodeIdx, NodeIdx)>, PlaceError> {
        if self.from.trim().is_empty() && self.to.trim().is_empty() {
            return Ok(None);
        }
        let part = |name: &str| find(&name.trim().parse()?);
        Ok(Some((part(&self.from)?, part(&self.to)?)))
    }

    /// What it is called in pictures and complaints.
    fn title(&self) -> &str {
        if self.name.is_empty() { "the file" } else { &self.name }
    }
}

async fn page() -> Response {
    let newest = Profile::ALL.len() - 1;
    let head = html! {
        (THEME)
        link rel="stylesheet" href="/topo.css";
        script src="/topo.js" defer {}
    };
    let body = html! {
        a.skip href="#main" { "to the content" }
        (top("/topo", html! {}))
        main #main tabindex="-1" {
            section aria-labelledby="h-drop" {
                h2 #h-drop { "Topology file or log" }
                p { "Drop what " code { "NCCL_TOPO_DUMP_FILE" } " wrote, an hwloc file, or a log \
                     with " code { "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET" } ". \
                     It is looked at and not kept." }
                form #ask {
                    p { input #file type="file" accept=".xml,.log" aria-label="file"; " "
                        label { "NCCL " select #nccl {
                            @for (idx, it) in Profile::ALL.iter().enumerate() {
                                option selected[idx == newest] { (it) }
                            }
                        } } " "
                        label { "servers "
                            input #nodes type="number" min="1" max="1024" value="2"; } " "
                        label { "rank "
                            input #rank type="number" min="0" placeholder="lowest"; } " "
                        label { "way from "
                            input #from size="6" placeholder="GPU0" spellcheck="false"; } " "
                        label { "to "
                            input #to size="6" placeholder="NET0" spellcheck="false"; } " "
                        button type="submit" { "look" } }
                    textarea #text rows="10" spellcheck="false"
                        aria-label="topology file or log" {}
                }
                p #state role="status" {}
            }
            div #answer aria-live="polite" {}
        }
    };
    html_of(StatusCode::OK, whole("topology", head, body))
}

/// The picture's own style, for pictures in this page alone.
async fn style() -> Response {
    // A picture keeps a size at which its words can be read, and scrolls.
    let text = format!(
        ".picture{{{STYLE}}}\n.picture{{overflow-x:auto}}\n.picture svg{{max-width:none}}\n#text{{width:100%;\
         font-family:ui-monospace,monospace}}\n#text.over{{outline:2px dashed currentColor}}\n\
         #ask label{{white-space:nowrap}}\n#answer{{display:grid;gap:12px;\
         grid-template-columns:minmax(0,1fr)}}\n#answer>section{{background:var(--card);\
         border:1px solid var(--line);border-radius:8px;padding:12px 14px;min-width:0}}\n\
         #answer td:last-child{{white-space:normal;min-width:18rem;overflow-wrap:anywhere}}\n\
         @media(max-width:600px){{#answer thead{{display:none}}#answer td{{display:block;border:0;\
         padding:1px 0}}#answer td:empty{{display:none}}#answer td:last-child{{min-width:0;\
         padding-bottom:10px}}}}\n"
    );
    asset("text/css; charset=utf-8", text).await
}

async fn asset(kind: &'static str, body: impl IntoResponse) -> Response {
    let keep = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "private, max-age=60")];
    (keep, body).into_response()
}

fn html_of(status: StatusCode, body: Markup) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], body.into_string())
        .into_response()
}

fn trouble(error: &ApiError) -> Markup {
    html! {
        p.alarm role="alert" { (error.body.error) }
        @if let Some(hint) = &error.body.hint { p { (hint) } }
    }
}

async fn look(Json(ask): Json<Look>) -> Response {
    let name = ask.name.clone();
    match looked_at(ask).await {
        Ok(body) => html_of(StatusCode::OK, body),
        Err(mut error) => {
            if !name.is_empty() {
                error.body.error = format!("{name}: {}", error.body.error);
            }
            html_of(error.status, trouble(&error))
        }
    }
}

async fn looked_at(ask: Look) -> Result<Markup, ApiError> {
    /// One search takes a core for up to a second.
    static WORK: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(1));
    let stopped = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
    let _turn = WORK.acquire().await.map_err(|_| stopped())?;
    let drawn = tokio::task::spawn_blocking(move || draw(&ask)).await;
    drawn.map_err(|_| stopped())?
}

fn draw(ask: &Look) -> Result<Markup, ApiError> {
    let profile = match &ask.nccl {
        None => Profile::ALL[Profile::ALL.len() - 1],
        Some(text) => text.parse().map_err(|error| refused(&error))?,
    };
    let nodes = ask.nodes.unwrap_or(2);
    if nodes == 0 || limits::TOPO_NODES_MAX < nodes {
        let text = format!("{nodes} servers; a job has 1 to {}", limits::TOPO_NODES_MAX);
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, text));
    }
    let name = ask.title();
    if hwloc::is_hwloc(&ask.text) {
        let machine = hwloc::machine(&ask.text, name).map_err(|error| refused(&error))?;
        let root = topology(&machine);
        let text = write(&root);
        return server(ask, &text, root, profile, nodes);
    }
    if !ask.text.contains("<system") {
        return logged(ask, name);
    }
    let document =
        read(&ask.text, Strictness::lenient(profile)).map_err(|error| refused(&error))?;
    server(ask, &ask.text, document.root, profile, nodes)
}

/// What cannot be looked at, in the words of whoever found out.
fn refused(error: &dyn std::error::Error) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
}

fn logged(ask: &Look, name: &str) -> Result<Markup, ApiError> {
    let logged = log::read(&ask.text, ask.rank).map_err(|error| refused(&error))?;
    let n_ends = logged.matrix.ends.len();
    if limits::TOPO_DEVICES_MAX < n_ends {
        let (max, text) = (limits::TOPO_DEVICES_MAX, format!("{n_ends} devices"));
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, text)
            .hint(format!("a page takes {max} at most; `selvedge topo show` takes more")));
    }
    // A way that cannot be drawn takes nothing else away.
    let ends = match &logged.graph {
        Some(graph) => ask.way(|it| find_part(graph, it)).map_err(|it| it.to_string()),
        None => Ok(None),
    };
    let way = ends.and_then(|ends| {
        let way = ends.map(|(from, to)| logged.way(from, to)).transpose();
        way.map_err(|error| error.to_string())
    });
    let drawn = svg_of_log_without_style(&logged, name, way.as_ref().ok().and_then(Option::as_ref));
    Ok(html! {
        @for note in &logged.notes { p.none { (note) } }
        @if let Err(error) = &way { (no_way(error)) }
        @if let Some(drawn) = &drawn { (picture(drawn)) }
        (shown(&logged.matrix))
    })
}

fn no_way(error: &str) -> Markup {
    html! { p.alarm role="alert" { "no way is drawn: " (error) } }
}

fn picture(drawn: &str) -> Markup {
    html! {
        section aria-labelledby="h-picture" {
            h2 #h-picture { "Picture" }
            // The picture escapes what stands in the file itself.
            div.picture.wide { (PreEscaped(drawn)) }
        }
    }
}

fn server(
    ask: &Look,
    text: &str,
    root: Element,
    profile: Profile,
    nodes: u32,
) -> Result<Markup, ApiError> {
    let is_end = |it: &&Element| matches!(it.name.as_str(), "gpu" | "net" | "pci");
    let n_ends = walk(&root).into_iter().map(|it| it.1).filter(is_end).count();
    if limits::TOPO_DEVICES_MAX < n_ends {
        let (max, text) = (limits::TOPO_DEVICES_MAX, format!("{n_ends} devices"));
        return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, text)
            .hint(format!("a page takes {max} at most; `selvedge topo show` takes more")));
    }
    let report = lint(text, profile).map_err(|error| refused(&error))?;
    let mut question = Question::new(root, profile);
    question.nodes = nodes;
    question.rank = ask.rank.or(ranks(&question.root).into_iter().min()).unwrap_or(0);
    let view = match question.view() {
        Ok(view) => view,
        Err(NoAnswer::Setting(error)) => return Err(refused(&error)),
        Err(NoAnswer::Refused(error)) => {
            return Ok(html! {
                p.alarm role="alert" { "NCCL " (profile) " does not take it: " (error) }
                (findings(&report.findings))
            });
        }
    };
    let matrix = Matrix::of(&view).map_err(|error| refused(&error))?;
    let way = ask.way(|it| find_in_view(&view, &question.root, it));
    let title = ask.title().to_owned();
    let picture_of = Picture { title, way: way.as_ref().ok().copied().flatten() };
    let drawn = svg_without_style(&view, &picture_of);
    Ok(html! {
        @if let Some(note) = left_out_note(&view) {
            p { (note) "; the field rank shows it" }
        }
        @if let Err(error) = &way { (no_way(&error.to_string())) }
        (findings(&report.findings))
        (picture(&drawn))
        (shown(&matrix))
    })
}

fn shown(matrix: &Matrix) -> Markup {
    html! {
        section aria-labelledby="h-matrix" {
            h2 #h-matrix { "Matrix" }
            pre.wide { (matrix.text()) }
        }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        section aria-labelledby="h-findings" {
            h2 #h-findings { "Findings" }
            @if findings.is_empty() { p.none { "nothing is wrong or doubtful" } }
            @else {
                div.wide { table {
                    thead { tr {
                        @for it in ["severity", "rule", "place", "what, and what to do"] {
                            th { (it) }
                        }
                    } }
                    tbody { @for it in findings {
                        tr {
                            td class=(it.severity) { (it.severity) }
                            td { (it.rule) }
                            td { @if let Some(place) = it.place { (place) } }
                            td { (it.what) "; " (it.advice)
                                @if it.is_fixed {
                                    " (" code { "selvedge topo lint --fix" } " does it)"
                                } }
                        }
                    } }
                } }
            }
        }
    }
}
