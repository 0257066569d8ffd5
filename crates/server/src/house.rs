//! The loop as the routes see it: a door to ask through, and what does not change while it runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use axum::extract::FromRequestParts;
use axum::http::{StatusCode, request::Parts};
use tokio::sync::{Mutex, oneshot, watch};

use selvedge_control::core::{Accepted, Refused};
use selvedge_control::input::{Ask, Input};
use selvedge_model::fabric::{Fabric, NodeKind, Role as FabricRole};
use selvedge_model::fault::{Mark, Target};
use selvedge_model::id::PartId;

use crate::api::error::{ApiError, chain};
use crate::api::guard::Guard;
use crate::api::listed::Listed;
use crate::limits;
use crate::plant::{Parting, Tamper};
use crate::share::Shares;
use crate::shell::{Request, Shell, Then, Trouble};
use crate::tally::Tally;
use crate::users::{Role, Who};
use crate::words;

/// Goes on to its end, also where who asked hangs up in between.
pub(crate) async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    let stopped = |_| Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    tokio::spawn(work).await.unwrap_or_else(stopped)
}

/// What all routes share.
#[derive(Clone, Debug)]
pub(crate) struct House(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requests: SyncSender<Request>,
    stop: watch::Sender<bool>,
    /// Whether all that was started ends too.
    ends_all: AtomicBool,
    guard: Arc<Guard>,
    tally: Tally,
    shares: Shares,
    listed: Mutex<Option<Listed>>,
    data: PathBuf,
    task_account: Option<String>,
}

impl House {
    pub(crate) fn new(
        requests: SyncSender<Request>,
        stop: watch::Sender<bool>,
        guard: Arc<Guard>,
        data: PathBuf,
        task_account: Option<String>,
    ) -> Self {
        let (tally, shares, ends_all, listed) = Default::default();
        Self(Arc::new(Inner {
            requests,
            stop,
            ends_all,
            guard,
            tally,
            shares,
            listed,
            data,
            task_account,
        }))
    }

    /// The list of jobs that was sent last.
    pub(crate) fn listed(&self) -> &Mutex<Option<Listed>> {
        &self.0.listed
    }

    /// The streams that are open.
    pub(crate) fn shares(&self) -> &Shares {
        &self.0.shares
    }

    /// The machine's account that a command of `owner`'s runs under, if `by` submits it: the
    /// owner's own, that of whoever submits, or what `up` was told.
    pub(crate) fn account_for(&self, owner: &str, by: &By) -> Option<String> {
        let of_owner = self.guard().users().find(|it| it.name == owner);
        let own = of_owner.and_then(|it| it.account).or_else(|| by.account.clone());
        own.or_else(|| self.0.task_account.clone())
    }

    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.0.guard
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.0.tally
    }

    pub(crate) fn data(&self) -> &PathBuf {
        &self.0.data
    }

    /// Asks the server to end; answers under way are still given.
    pub(crate) fn stop(&self, parting: Parting) {
        if parting == Parting::End {
            self.0.ends_all.store(true, Ordering::SeqCst);
        }
        self.0.stop.send_replace(true);
    }

    /// What becomes of all that was started; whoever wants it to end has the last word.
    pub(crate) fn parting(&self) -> Parting {
        if self.0.ends_all.load(Ordering::SeqCst) { Parting::End } else { Parting::Leave }
    }

    /// Turns true when everything is to end.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stop.subscribe()
    }

    /// What `look` sees of everything, after the newest durable change.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Shell) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (to, from) = oneshot::channel();
        self.send(Request::Look(Box::new(move |shell| {
            // Whoever asked may have gone; then nobody misses the answer.
            let _ = to.send(shell.map(look).map_err(ApiError::from));
        })))?;
        from.await.map_err(|_| ApiError::stopping())?
    }

    /// What `path` names in the plant.
    pub(crate) async fn find(&self, path: String) -> Result<Target, ApiError> {
        self.look(move |shell| target_named(shell, &path)).await?
    }

    /// Changes something; `view` then makes the answer of it.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        by: By,
        what: Ask,
        view: impl FnOnce(&Shell, Accepted) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let By { name: by, reason, .. } = by;
        self.change(|then| Request::Ask { input: Input::Ask { by, what }, reason, then }, view)
            .await
    }

    /// Keeps in the journal that something outside the core was ordered, before it is done.
    pub(crate) async fn remark(&self, by: By, what: String) -> Result<(), ApiError> {
        let By { name: by, reason, .. } = by;
        let input = Input::Remark { by, what };
        self.change(|then| Request::Ask { input, reason, then }, |_, _| ()).await
    }

    /// Tells the core that a replica was outvoted on `target`.
    pub(crate) async fn mark(&self, by: By, target: Target, mark: Mark) -> Result<(), ApiError> {
        let By { name: by, reason, .. } = by;
        let input = Input::Marked { by, target, mark };
        self.change(|then| Request::Ask { input, reason, then }, |_, _| ()).await
    }

    /// Does something to the simulated plant.
    pub(crate) async fn tamper(&self, tamper: Tamper) -> Result<(), ApiError> {
        self.change(|then| Request::Tamper { tamper, then }, |_, _| ()).await
    }

    /// Copies the journal and the plant to the new directory `to`.
    pub(crate) async fn back_up(&self, to: PathBuf) -> Result<(), ApiError> {
        self.change(|then| Request::Backup { to, then }, |_, _| ()).await
    }

    async fn change<T: Send + 'static>(
        &self,
        request: impl FnOnce(Then) -> Request,
        view: impl FnOnce(&Shell, Accepted) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (to, from) = oneshot::channel();
        let then: Then = Box::new(move |shell, outcome| {
            let _ = to.send(match outcome {
                Ok(accepted) => Ok(view(shell, accepted)),
                Err(trouble) => Err(ApiError::from(trouble)),
            });
        });
        self.send(request(then))?;
        from.await.map_err(|_| ApiError::stopping())?
    }

    fn send(&self, request: Request) -> Result<(), ApiError> {
        self.0.requests.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => ApiError::busy(),
            TrySendError::Disconnected(_) => ApiError::stopping(),
        })
    }
}

/// What `path` names; a port that a link leaves names the link, by its even direction.
pub(crate) fn target_named(shell: &Shell, path: &str) -> Result<Target, ApiError> {
    let fabric = shell.core().fabric();
    let found = fabric.find(path).ok_or_else(|| {
        ApiError::no_such("part of the plant called", path)
            .hint(format!("things go by paths like {}", paths_like(fabric)))
    })?;
    let Target::Port(port) = found else { return Ok(found) };
    let on_switch = fabric.template_of(fabric.part_of_port(port)).role == FabricRole::CircuitSwitch;
    Ok(match fabric.link_from(port) {
        Some(link) if !on_switch => Target::Link(link.min(fabric.reverse(link))),
        Some(_) | None => found,
    })
}

/// Paths of this plant, one of each sort: `cube0, cube0/m00, cube0/x/in/0, x0, x0/n0`.
fn paths_like(fabric: &Fabric) -> String {
    let first = |switch: bool| {
        let is_switch = |it: PartId| fabric.template_of(it).role != FabricRole::Compute;
        let parts = fabric.parts().pairs().filter(|(_, it)| !it.retired).map(|(id, _)| id);
        parts.into_iter().find(|it| is_switch(*it) == switch)
    };
    let mut paths: Vec<String> = Vec::new();
    for part in [first(false), first(true)].into_iter().flatten() {
        paths.push(fabric.part(part).name.to_string());
        let machine = fabric.nodes_of(part).find(|it| fabric.node(*it).kind == NodeKind::Machine);
        paths.extend(machine.map(|it| words::path(fabric, Target::Node(it))));
        let port = fabric.ports_of(part).find(|it| fabric.cable_at(*it).is_some());
        paths.extend(port.map(|it| fabric.port_path(it)));
    }
    paths.dedup();
    paths.join(", ")
}

/// Who asks, what they may do, and why they say that they ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct By {
    /// By their token; whoever holds the data directory's own says it.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The machine's account that their commands run under, if they have one of their own.
    pub(crate) account: Option<String>,
    pub(crate) reason: Option<String>,
}

impl By {
    /// Holds it against whose job is changed.
    ///
    /// # Errors
    /// 403 where they may change their own only, and this is not.
    pub(crate) fn may_change_job_of(&self, owner: &str) -> Result<(), ApiError> {
        if self.role != Role::User || self.name == owner {
            return Ok(());
        }
        let (name, role) = (&self.name, self.role);
        let text = format!("the job is {owner}'s, and {name} is a {role}, who may {}", role.may());
        Err(ApiError::new(StatusCode::FORBIDDEN, text).hint("its owner or an operator may"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let said = text_header(parts, "selvedge-by", limits::BY_MAX)?;
        let reason = text_header(parts, "selvedge-reason", limits::REASON_MAX)?;
        // The guard has let them in; a route outside it would be nobody's.
        let who = parts.extensions.get::<Who>().ok_or_else(ApiError::nobody)?;
        let name = who.name.clone().or(said).unwrap_or_else(|| "operator".to_owned());
        Ok(By { name, role: who.role, account: who.account.clone(), reason })
    }
}

/// What a header says that people read.
fn text_header(parts: &Parts, name: &str, bytes_max: usize) -> Result<Option<String>, ApiError> {
    let Some(value) = parts.headers.get(name) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default().trim();
    if text.is_empty() || bytes_max < text.len() || text.chars().any(char::is_control) {
        let what = format!("{name} must be 1 to {bytes_max} bytes of printable UTF-8");
        return Err(ApiError::bad(what));
    }
    Ok(Some(text.to_owned()))
}

impl From<Trouble> for ApiError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(refused) => refused.into(),
            Trouble::Fault(error) => ApiError::unprocessable(error),
            Trouble::NotBackedUp(why) => {
                ApiError::unprocessable(format!("nothing was backed up: {why}"))
            }
            Trouble::PlantAway(why) => {
                let text = format!("the plant is away: {why}");
                let hint = "it is looked for; try again in a moment, and see `selvedge status`";
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text).hint(hint)
            }
            Trouble::NotSimulated => {
                ApiError::new(StatusCode::CONFLICT, "the plant is real: faults are not injected")
            }
            Trouble::NotSaved { error, full, in_doubt } => {
                let status = if full {
                    StatusCode::INSUFFICIENT_STORAGE
                } else {
                    StatusCode::SERVICE_UNAVAILABLE
                };
                let hint = if in_doubt {
                    "nothing is acknowledged, but it may still be carried out once the journal can \
                     be written: repeat it with the same key, or look first"
                } else {
                    "nothing was done; make room where the data directory is, and try again"
                };
                ApiError::new(status, format!("the journal cannot be written: {error}")).hint(hint)
            }
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        let status = match &refused {
            Refused::NotBegun | Refused::QueueFull { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Refused::NoJob { .. }
            | Refused::NoCase { .. }
            | Refused::NoTarget { .. }
            | Refused::NoMoves => StatusCode::NOT_FOUND,
            Refused::Plant { .. }
            | Refused::Spec(_)
            | Refused::Demand(_)
            | Refused::TooLarge { .. }
            | Refused::TooManyTasks { .. }
            | Refused::TooLong { .. }
            | Refused::TooFewMachines { .. }
            | Refused::NotAHost { .. }
            | Refused::NoReplica { .. }
            | Refused::NoReplicas { .. }
            | Refused::NotOfJob { .. }
            | Refused::Maintenance { .. }
            | Refused::Readings(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Refused::BegunAlready
            | Refused::PlantVersion { .. }
            | Refused::PlantBusy { .. }
            | Refused::KeyUsed { .. }
            | Refused::JobState { .. }
            | Refused::DrainsFull { .. }
            | Refused::NotYours { .. }
            | Refused::DeviceAnswer { .. }
            | Refused::CaseState { .. }
            | Refused::CaseTaken { .. }
            | Refused::Move { .. }
            | Refused::Stale
            | Refused::NothingDue => StatusCode::CONFLICT,
        };
        let mut error = ApiError::new(status, chain(&refused));
        if let Refused::KeyUsed { job } = refused {
            error.job = Some(job);
        }
        error
    }
}
