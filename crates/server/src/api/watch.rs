//! `/v1/events`, `/v1/status`, `/v1/check`, `/v1/shutdown`, `/v1/keys`.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use utoipa::{IntoParams, ToSchema};

use selvedge_control::note::CaseState;
use selvedge_model::spec::Plant;

use crate::api::body::{Json, Params};
use crate::api::error::{ApiError, ErrorBody};
use crate::api::job::Empty;
use crate::feed::{Event, Subscription};
use crate::house::{By, House};
use crate::limits;
use crate::listen;
use crate::plant::{Parting, Remote};
use crate::share::Share;
use crate::shell::Shell;
use crate::users::{Role, Who};
use crate::words;

/// One event.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    /// Its place among all events of this journal, from 1 on.
    pub number: u64,
    /// When.
    pub at_s: f64,
    /// What kind it is: `job_started`.
    pub kind: String,
    /// In one line.
    pub text: String,
    /// As data; ids are numbers.
    #[schema(value_type = Object)]
    pub note: serde_json::Value,
}

/// The newest events.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// Oldest first.
    pub events: Vec<EventView>,
    /// The number of the newest event there is.
    pub newest: u64,
}

/// What an independent check finds wrong.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckAnswer {
    /// Empty is well.
    pub violations: Vec<String>,
}

/// How the server and its plant are.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// The plant's name.
    pub name: String,
    /// The plant's version.
    pub version: u64,
    /// The program's version.
    pub program: String,
    /// Plant time.
    pub now_s: f64,
    /// How fast plant time runs.
    pub speed: f64,
    /// What may be done without being asked.
    pub level: String,
    /// Whether the plant is simulated.
    pub simulated: bool,
    /// Jobs by state.
    pub jobs: BTreeMap<String, u64>,
    /// Chips in all.
    pub chips: u64,
    /// Chips that jobs hold.
    pub chips_used: u64,
    /// Chips out of use.
    pub chips_out: u64,
    /// Cases that are not closed.
    pub cases_open: usize,
    /// The newest row of the journal.
    pub journal: u64,
    /// Whether the journal can be written.
    pub journal_ok: bool,
    /// Why not.
    pub journal_error: Option<String>,
    /// Whether the plant's process answers; true where there is none.
    pub plant_ok: bool,
    /// Why not: plant time stands still until it does.
    pub plant_error: Option<String>,
    /// The process of a simulated plant.
    pub plant_pid: Option<u32>,
    /// How often this server has lost it.
    pub plant_losses: u64,
    /// A digest of the core's whole state.
    pub digest: String,
    /// The data directory.
    pub data: String,
    /// The server's process.
    pub pid: u32,
    /// How long it has run, in real seconds.
    pub up_s: f64,
}

/// That the server ends.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Stopping {
    /// True.
    pub stopping: bool,
}

/// Where a backup goes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupForm {
    /// A directory of the server's machine that is not there or empty, as a whole path.
    pub to: String,
}

/// Whom a link to the dashboard is for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyForm {
    /// A user; whoever asks where absent.
    #[serde(default)]
    pub user: Option<String>,
}

/// A link for a person.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyAnswer {
    /// It opens the dashboard once.
    pub url: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventParams {
    /// Events after this one; the header `Last-Event-ID` says the same.
    #[serde(default)]
    after: Option<u64>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecentParams {
    /// How many; 100 where absent.
    #[serde(default)]
    n: Option<usize>,
}

/// Everything that happens, as server-sent events.
#[utoipa::path(get, path = "/v1/events", tag = "watching", params(EventParams),
    responses((status = 200, body = EventView, content_type = "text/event-stream"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn events(
    State(house): State<House>,
    Extension(who): Extension<Who>,
    Params(params): Params<EventParams>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, Infallible>>>, ApiError> {
    let after = match headers.get("last-event-id") {
        Some(value) => {
            let number = value.to_str().ok().and_then(|it| it.trim().parse().ok());
            Some(number.ok_or_else(|| ApiError::bad("Last-Event-ID is no event's number"))?)
        }
        None => params.after,
    };
    let share = house.shares().take(&who)?;
    let reader = Reader::begin(house, after, share).await?;
    let stream = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// The newest events.
#[utoipa::path(get, path = "/v1/events/recent", tag = "watching", params(RecentParams),
    responses((status = 200, body = EventList), (status = "default", body = ErrorBody)))]
pub(crate) async fn recent(
    State(house): State<House>,
    Params(params): Params<RecentParams>,
) -> Result<Answer<EventList>, ApiError> {
    let n = params.n.unwrap_or(100).min(limits::EVENTS_RECENT_MAX);
    let (events, newest) =
        house.look(move |shell| (shell.feed().recent(n), shell.feed().newest())).await?;
    Ok(Answer(EventList { events: events.iter().map(|it| view(it)).collect(), newest }))
}

/// Holds the whole state against its invariants.
#[utoipa::path(get, path = "/v1/check", tag = "watching",
    responses((status = 200, body = CheckAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn check(State(house): State<House>) -> Result<Answer<CheckAnswer>, ApiError> {
    let violations = house.look(|shell| {
        let found = shell.core().check();
        found.iter().map(ToString::to_string).collect()
    });
    Ok(Answer(CheckAnswer { violations: violations.await? }))
}

/// How the server and its plant are.
#[utoipa::path(get, path = "/v1/status", tag = "watching",
    responses((status = 200, body = StatusView), (status = "default", body = ErrorBody)))]
pub(crate) async fn status(State(house): State<House>) -> Result<Answer<StatusView>, ApiError> {
    let data = house.data().display().to_string();
    house.look(move |shell| status_view(shell, data)).await.map(Answer)
}

/// Copies the journal and the simulated plant to a new directory of the server's machine.
#[utoipa::path(post, path = "/v1/backup", tag = "watching", request_body = BackupForm,
    responses((status = 200, body = BackupForm), (status = "default", body = ErrorBody)))]
pub(crate) async fn backup(
    State(house): State<House>,
    by: By,
    Json(form): Json<BackupForm>,
) -> Result<Answer<BackupForm>, ApiError> {
    let to = PathBuf::from(&form.to);
    if !to.is_absolute() {
        let text = format!("{:?} is not a whole path", form.to);
        return Err(ApiError::unprocessable(text).hint("begin it with a slash"));
    }
    house.remark(by, format!("backup to {:?}", form.to)).await?;
    house.back_up(to).await?;
    Ok(Answer(form))
}

/// Ends the server and all that it started.
#[utoipa::path(post, path = "/v1/shutdown", tag = "watching",
    responses((status = 200, body = Stopping), (status = "default", body = ErrorBody)))]
pub(crate) async fn shutdown(
    State(house): State<House>,
    by: By,
    Json(_): Json<Empty>,
) -> Answer<Stopping> {
    // A server whose disk is full can still be ended.
    if let Err(error) = house.remark(by, "shutdown".to_owned()).await {
        tracing::warn!(error = error.body.error, "a shutdown is not in the audit trail");
    }
    house.stop(Parting::End);
    Answer(Stopping { stopping: true })
}

/// A link that opens the dashboard once, for oneself or, if an operator asks, for another.
#[utoipa::path(post, path = "/v1/keys", tag = "watching", request_body = KeyForm,
    responses((status = 200, body = KeyAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn new_key(
    State(house): State<House>,
    Extension(asks): Extension<Who>,
    by: By,
    Json(form): Json<KeyForm>,
) -> Result<Answer<KeyAnswer>, ApiError> {
    let who = match form.user {
        None => asks,
        Some(name) => {
            let user = house.guard().users().find(|it| it.name == name);
            let user = user.ok_or_else(|| ApiError::no_such("user", &name))?;
            if asks.role != Role::Operator && asks.name.as_ref() != Some(&name) {
                let text = format!("a link for {name} takes an operator");
                return Err(ApiError::new(StatusCode::FORBIDDEN, text));
            }
            Who { name: Some(name), role: user.role, account: user.account }
        }
    };
    let whose = who.name.as_deref().unwrap_or("the operator");
    house.remark(by, format!("link to the dashboard for {whose}")).await?;
    let url = house.guard().link(who).map_err(|error| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, format!("no key can be made: {error}"))
    })?;
    Ok(Answer(KeyAnswer { url }))
}

/// How the server and its plant are.
pub(crate) fn status_view(shell: &Shell, data: String) -> StatusView {
    let core = shell.core();
    let state = core.state();
    let plant = shell.plant();
    let away = plant.and_then(Remote::away);
    let mut jobs: BTreeMap<String, u64> = JOB_STATES.map(|it| (it.to_owned(), 0)).into();
    for job in state.jobs.iter() {
        *jobs.entry(job.state.word().to_owned()).or_default() += 1;
    }
    let count = |mask: fn(&selvedge_control::state::PartState) -> u64| {
        state.parts.iter().map(|it| u64::from(mask(it).count_ones())).sum()
    };
    StatusView {
        name: plant_name(shell),
        version: state.plants.len() as u64,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        now_s: shell.plant_now().as_secs_f64(),
        speed: shell.clock().speed().factor(),
        level: words::level(state.settings.level).to_owned(),
        simulated: plant.is_some(),
        jobs,
        chips: core.layout().n_seats(),
        chips_used: count(|it| it.held),
        chips_out: count(|it| it.out),
        cases_open: state.cases.iter().filter(|it| it.state != CaseState::Closed).count(),
        journal: shell.saved(),
        journal_ok: shell.journal_error().is_none(),
        journal_error: shell.journal_error().map(str::to_owned),
        plant_ok: away.is_none(),
        plant_error: away.map(str::to_owned),
        plant_pid: plant.map(|it| it.process().pid),
        plant_losses: plant.map_or(0, Remote::n_losses),
        digest: format!("{:016x}", core.digest()),
        data,
        pid: std::process::id(),
        up_s: shell.meter().begun.elapsed().as_secs_f64(),
    }
}

/// All words of a job's state.
pub(crate) const JOB_STATES: [&str; 7] =
    ["queued", "starting", "running", "stopping", "finished", "failed", "cancelled"];

/// What the plant file calls the plant.
pub(crate) fn plant_name(shell: &Shell) -> String {
    let text = shell.core().state().plants.last().map_or("", String::as_str);
    Plant::parse("plant", text).map_or_else(|_| String::new(), |plant| plant.name)
}

fn view(event: &Event) -> EventView {
    EventView {
        number: event.number,
        at_s: event.at.as_secs_f64(),
        kind: words::kind(&event.note),
        text: event.text.clone(),
        note: serde_json::to_value(&event.note).expect("a note's keys are text"),
    }
}

/// One reader of the feed.
struct Reader {
    house: House,
    /// The newest event that it was given.
    at: Option<u64>,
    gap: Option<(u64, u64)>,
    backlog: VecDeque<Arc<Event>>,
    live: broadcast::Receiver<Arc<Event>>,
    stop: watch::Receiver<bool>,
    share: Share,
}

impl Reader {
    async fn begin(house: House, after: Option<u64>, share: Share) -> Result<Self, ApiError> {
        let stop = house.stopping();
        let feed = house.look(move |shell| shell.feed().subscribe(after)).await?;
        let ((_, live), backlog) = (broadcast::channel(1), VecDeque::new());
        let mut reader = Self { house, at: after, gap: None, backlog, live, stop, share };
        reader.take(feed);
        Ok(reader)
    }

    fn take(&mut self, feed: Subscription) {
        self.gap = feed.lost_to.map(|to| (self.at.unwrap_or(0) + 1, to - 1));
        self.backlog = feed.backlog.into();
        self.live = feed.live;
    }

    /// The next event; none once the server stops.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some((from, to)) = self.gap.take() {
                let data = serde_json::json!({ "from": from, "to": to });
                return Some(SseEvent::default().event("gap").data(data.to_string()));
            }
            if let Some(event) = self.backlog.pop_front() {
                return Some(self.give(&event));
            }
            let received = tokio::select! {
                () = listen::stopped(&mut self.stop) => return None,
                () = self.share.ended() => return None,
                received = self.live.recv() => received,
            };
            match received {
                Ok(event) => return Some(self.give(&event)),
                Err(RecvError::Closed) => return None,
                Err(RecvError::Lagged(_)) => {
                    // Too slow for the channel, but perhaps not for the ring.
                    let after = self.at;
                    let feed = self.house.look(move |shell| shell.feed().subscribe(after));
                    self.take(feed.await.ok()?);
                }
            }
        }
    }

    fn give(&mut self, event: &Event) -> SseEvent {
        self.at = Some(event.number);
        let data = serde_json::to_string(&view(event)).expect("an event's keys are text");
        SseEvent::default().id(event.number.to_string()).data(data)
    }
}
