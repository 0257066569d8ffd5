//! The dashboard: HTML and SVG drawn here, and kept live by one small script.
//!
//! A page is an address ([`Page`]).  The loop is asked for what the page shows (`see`), and what it
//! answers is drawn outside the loop, by pure functions from views to markup: a [`sheet::Sheet`] of
//! parts with names.  Whoever looks at a page is sent those parts that change ([`live`]).
//!
//! In reading order: the small things of which all is made (`sheet`), the line of state that heads
//! every page (`state`); then the pages: the pods (`pod`), the switches (`panel`, `ports`), grids
//! of boards (`grid`), a cube (`cube`), a slice (`slice`), the queue (`queue`), a job (`job`),
//! health (`health`), events (`events`) and the first page of all (`home`); then how they are kept
//! live (`live`).
//!
//! Everything that a person wrote is escaped by the templates, and shown by code where it does not
//! print; colours are presentation attributes and classes, because the policy lets no inline style
//! in.

mod sheet;

mod state;

mod pod;

mod panel;

mod ports;

mod grid;

mod cube;

mod slice;

mod queue;

mod job;

mod health;

mod events;

mod home;

mod live;

mod still;

mod topo;

pub use still::first_page;

use axum::Extension;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::percent_decode_str;

use selvedge_control::core::Explanation;
use selvedge_control::state::{Job, JobState};
use selvedge_model::fabric::{NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;

use crate::api::error::ApiError;
use crate::api::explain;
use crate::house::{House, target_named};
use crate::limits;
use crate::page::sheet::{Part, Sheet, address, inert};
use crate::page::state::Standing;
use crate::shell::Shell;
use crate::words;

/// What can be looked at, each by its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Page {
    Home,
    Switches,
    Switch(String),
    Cube(String),
    Queue,
    Job(u32),
    Slice(u32, slice::Focus),
    Health,
    Case(u32),
    Events(events::Filter),
}

/// What remains to be done outside the loop.
type Drawing = Box<dyn FnOnce() -> Sheet + Send>;

/// What was seen of a page at one look.
enum Seen {
    /// All of it.
    Page(Box<Standing>, Result<Drawing, ApiError>),
    /// That it says why this job waits, which is worked out on a copy, outside the loop.
    Question(JobId),
}

impl Seen {
    /// All of it: what has to be asked first is asked.
    async fn whole(
        self,
        house: &House,
        page: Page,
    ) -> Result<(Standing, Result<Drawing, ApiError>), ApiError> {
        let id = match self {
            Seen::Page(standing, drawing) => return Ok((*standing, drawing)),
            Seen::Question(id) => id,
        };
        let turn = explain::turn().await?;
        let core = house.look(|shell| shell.core().apart()).await?;
        let explained = explain::asked(turn, core, move |core| core.explain(id)).await?;
        house.look(move |shell| (Standing::of(shell), page.see(shell, explained))).await
    }
}

/// The pages that every page leads to.
const PLACES: [(&str, &str); 6] = [
    ("/", "Pod"),
    ("/switches", "Switches"),
    ("/queue", "Queue"),
    ("/health", "Health"),
    ("/events", "Events"),
    ("/topo", "Topology"),
];

impl Page {
    /// The page at `path`, which may be encoded as addresses are.
    fn of(path: &str, query: Option<&str>) -> Option<Self> {
        let query = query.unwrap_or_default();
        let path = percent_decode_str(path).decode_utf8().ok()?;
        let path = path.strip_prefix('/')?;
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let number = || words::job_named(rest).map(|it| it.number());
        Some(match (first, rest) {
            ("", "") if path.is_empty() => Self::Home,
            ("switches", "") => Self::Switches,
            ("switches", name) => Self::Switch(name.to_owned()),
            ("cubes", name) if !name.is_empty() => Self::Cube(name.to_owned()),
            ("queue", "") => Self::Queue,
            ("jobs", rest) => match rest.strip_suffix("/slice") {
                Some(id) => Self::Slice(words::job_named(id)?.number(), slice::Focus::of(query)),
                None => Self::Job(number()?),
            },
            ("health", "") => Self::Health,
            ("cases", id) => Self::Case(id.strip_prefix("case").unwrap_or(id).parse().ok()?),
            ("events", "") => Self::Events(events::Filter::of(query)),
            _ => return None,
        })
    }

    /// The job of which the page says why it waits.
    fn asks(&self, shell: &Shell) -> Option<JobId> {
        match self {
            Self::Queue => shell.core().head().map(|it| it.job),
            Self::Job(id) => {
                let waits = |job: &Job| matches!(job.state, JobState::Queued { .. });
                let id = JobId::new(*id);
                shell.core().state().jobs.get(id).is_some_and(waits).then_some(id)
            }
            _ => None,
        }
    }

    /// What the page shows, or which job is to be asked about first; called on the loop's thread.
    fn look(&self, shell: &Shell) -> Seen {
        match self.asks(shell) {
            Some(id) => Seen::Question(id),
            None => Seen::Page(Box::new(Standing::of(shell)), self.see(shell, None)),
        }
    }

    /// What the page shows; called on the loop's thread.
    fn see(&self, shell: &Shell, explained: Option<Explanation>) -> Result<Drawing, ApiError> {
        Ok(match self {
            Self::Home => {
                let page = home::Home::of(shell);
                Box::new(move || page.sheet())
            }
            Self::Switches => {
                let page = panel::Panel::of(shell);
                Box::new(move || page.sheet())
            }
            Self::Switch(name) => {
                let page = ports::SwitchPage::of(shell, name)?;
                Box::new(move || page.sheet())
            }
            Self::Cube(name) => {
                let page = cube::CubePage::of(shell, name)?;
                Box::new(move || page.sheet())
            }
            Self::Queue => {
                let page = queue::QueuePage::of(shell, explained);
                Box::new(move || page.sheet())
            }
            Self::Job(id) => {
                let page = job::JobPage::of(shell, *id, explained)?;
                Box::new(move || page.sheet())
            }
            Self::Slice(id, focus) => {
                let page = slice::SlicePage::of(shell, *id, *focus)?;
                Box::new(move || page.sheet())
            }
            Self::Health => {
                let page = health::HealthPage::of(shell);
                Box::new(move || page.sheet())
            }
            Self::Case(id) => {
                let page = health::CasePage::of(shell, *id)?;
                Box::new(move || page.sheet())
            }
            Self::Events(filter) => {
                let page = events::Events::of(shell, *filter, limits::EVENTS_PER_PAGE);
                Box::new(move || page.sheet())
            }
        })
    }

    /// Which of [`PLACES`] it belongs to.
    fn place(&self) -> &'static str {
        match self {
            Self::Home | Self::Cube(_) => "/",
            Self::Switches | Self::Switch(_) => "/switches",
            Self::Queue | Self::Job(_) | Self::Slice(..) => "/queue",
            Self::Health | Self::Case(_) => "/health",
            Self::Events(_) => "/events",
        }
    }
}

/// All pages and what they are drawn with.
pub(crate) fn routes() -> Router<House> {
    let pages = ["/", "/switches", "/switches/{*name}", "/cubes/{*name}", "/queue", "/jobs/{id}"]
        .into_iter()
        .chain(["/jobs/{id}/slice", "/health", "/cases/{id}", "/events"])
        .fold(Router::new(), |router, path| router.route(path, get(page)));
    pages
        .route("/live/", get(live::live))
        .route("/live/{*page}", get(live::live))
        .layer(Extension(live::Hub::default()))
        .merge(topo::routes())
        .route("/find/{*path}", get(find))
        .route("/page.css", get(|| asset("text/css; charset=utf-8", include_str!("page/page.css"))))
        .route("/page.js", get(|| asset(SCRIPT, include_str!("page/page.js"))))
        .route("/theme.js", get(|| asset(SCRIPT, include_str!("page/theme.js"))))
        .route("/icon.svg", get(|| asset("image/svg+xml", include_str!("page/icon.svg"))))
}

/// What somebody sees who has neither token nor cookie.
pub(crate) fn closed() -> Response {
    let body = html! {
        header.top { a.brand href="/" { (PreEscaped(include_str!("page/icon.svg"))) "Selvedge" } }
        main.one #main {
            section aria-labelledby="h-closed" {
                h2 #h-closed { "A link opens this dashboard" }
                p { "Whoever started the server has one: " code { "selvedge up" } " printed it. \
                     It works once, and then this browser is known; " code { "selvedge dashboard" }
                    " prints a new one." }
                p { "Anybody else asks an operator for a link of one's own: "
                    code { "selvedge dashboard --user NAME" } " prints it." }
            }
        }
    };
    page_of(StatusCode::UNAUTHORIZED, whole("dashboard", html! {}, body))
}

async fn page(State(house): State<House>, uri: Uri) -> Response {
    let found = Page::of(uri.path(), uri.query());
    let place = found.as_ref().map_or("", Page::place);
    let seen = match found {
        None => Err(ApiError::no_such("page", uri.path())),
        Some(found) => seen(&house, found).await,
    };
    let (status, sheet) = match seen {
        Ok((standing, drawing)) => {
            let mut sheet = drawing();
            sheet.parts.insert(0, standing.draw());
            (StatusCode::OK, sheet)
        }
        Err(error) => {
            let parts = trouble_parts(&error);
            (error.status, Sheet { title: "not found".to_owned(), layout: "one", parts })
        }
    };
    page_of(status, framed(&sheet, place))
}

/// What the page is drawn from, and the line of state above it.
async fn seen(house: &House, page: Page) -> Result<(Standing, Drawing), ApiError> {
    let looked = page.clone();
    let seen = house.look(move |shell| looked.look(shell)).await?;
    let (standing, drawing) = seen.whole(house, page).await?;
    Ok((standing, drawing?))
}

/// Leads to the page that shows a thing, whatever it is.
async fn find(State(house): State<House>, Path(path): Path<String>) -> Response {
    let found = house.look(move |shell| {
        let fabric = shell.core().fabric();
        let target = target_named(shell, &path)?;
        let (part, within) = match target {
            Target::Part(part) => (part, None),
            Target::Node(node) => {
                let above = std::iter::successors(Some(node), |it| fabric.parent_of(*it));
                let mut machines = above.filter(|it| fabric.node(*it).kind == NodeKind::Machine);
                (fabric.part_of_node(node), machines.next())
            }
            Target::Port(port) => (fabric.part_of_port(port), None),
            Target::Link(link) => (fabric.part_of_port(fabric.link(link).source), None),
        };
        let start = match fabric.template_of(part).role {
            Role::CircuitSwitch => "/switches/",
            Role::Compute | Role::PacketSwitch => "/cubes/",
        };
        let at = within.map_or(String::new(), |_| "#machines".to_owned());
        Ok::<_, ApiError>(address(start, &fabric.part(part).name) + &at)
    });
    match found.await.and_then(|it| it) {
        Ok(to) => Redirect::to(&to).into_response(),
        Err(error) => cannot(&error),
    }
}

/// A page that says why there is no other.
pub(crate) fn cannot(error: &ApiError) -> Response {
    let parts = trouble_parts(error);
    let sheet = Sheet { title: "not found".to_owned(), layout: "one", parts };
    page_of(error.status, framed(&sheet, ""))
}

/// A whole page: the frame that all have, and its parts.
fn framed(sheet: &Sheet, place: &str) -> Markup {
    let extra = html! { span #live.live role="status" { "…" } };
    let body = html! {
        a.skip href="#main" { "to the content" }
        (top(place, extra))
        main #main class=(sheet.layout) tabindex="-1" {
            @for part in &sheet.parts { (PreEscaped(&part.html)) }
        }
    };
    whole(&sheet.title, html! { (THEME) script src="/page.js" {} }, body)
}

/// What every page with a bar above it has in its head.
const THEME: PreEscaped<&str> = PreEscaped("<script src=\"/theme.js\"></script>");

/// The bar above a page: the way to all pages, then `extra`.
fn top(place: &str, extra: Markup) -> Markup {
    html! {
        header.top {
            a.brand href="/" { (PreEscaped(include_str!("page/icon.svg"))) "Selvedge" }
            nav aria-label="pages" {
                @for (to, text) in PLACES {
                    a href=(to) aria-current=[(to == place).then_some("page")] { (text) }
                }
            }
            (extra)
            button #theme type="button" aria-label="light or dark" hidden { "auto" }
        }
    }
}

/// A document in the house's style, with `head` in its head beside the usual.
fn whole(title: &str, head: Markup, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (inert(title)) " · Selvedge" }
                link rel="icon" href="/icon.svg";
                link rel="stylesheet" href="/page.css";
                (head)
            }
            body { (body) }
        }
    }
}

/// What is shown in place of a page that cannot be.
fn trouble_parts(error: &ApiError) -> Vec<Part> {
    let body = html! {
        p.alarm role="alert" { (inert(&error.body.error)) }
        @if let Some(hint) = &error.body.hint { p { (inert(hint)) } }
        p { a href="/" { "to the pod" } }
    };
    vec![Part::new("trouble", "This cannot be shown", body)]
}

fn page_of(status: StatusCode, body: Markup) -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    (status, [(header::CONTENT_TYPE, kind)], body.into_string()).into_response()
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

async fn asset(kind: &'static str, body: &'static str) -> impl IntoResponse {
    let keep = HeaderValue::from_static("private, max-age=60");
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CACHE_CONTROL, keep)], body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_address() {
        let job = |id| Some(Page::Job(id));
        assert_eq!(Page::of("/", None), Some(Page::Home));
        assert_eq!(Page::of("/jobs/7", None), job(7));
        assert_eq!(Page::of("/jobs/job7", None), job(7));
        assert_eq!(Page::of("/cubes/pod0/a%20b", None), Some(Page::Cube("pod0/a b".to_owned())));
        assert_eq!(Page::of("/cases/case3", None), Some(Page::Case(3)));
        for bad in ["", "jobs/7", "/jobs/", "/jobs/-1", "/jobs/7/x", "/cubes/", "/%ff", "/x", "//"]
        {
            assert_eq!(Page::of(bad, None), None, "{bad}");
        }
        // The last one looks at files, not at the plant.
        for (to, _) in &PLACES[..5] {
            let to = *to;
            assert_eq!(Page::of(to, None).map(|it| it.place()), Some(to));
        }
    }
}
