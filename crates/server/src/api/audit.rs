//! `/v1/audit`: who ordered what and why, from the journal itself.
//!
//! An order is in the journal in its place among all inputs, so the trail is as durable as the
//! state that follows from it, and `selvedge journal verify` shows whether anybody changed it.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use selvedge_control::commit::Record;
use selvedge_control::input::{Ask, Input, JobOrder};
use selvedge_driver::store::{self, Page};
use selvedge_model::fabric::Fabric;
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::unit::Moment;

use crate::api::body::Params;
use crate::api::error::{ApiError, ErrorBody, chain};
use crate::house::House;
use crate::limits;
use crate::shell::Shell;
use crate::words;

/// One order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditView {
    /// Its row in the journal.
    pub row: u64,
    /// When, in plant time.
    pub at_s: f64,
    /// When, in seconds of the server's Unix clock; none in journals of earlier versions.
    pub unix_s: Option<u64>,
    /// Who.
    pub by: String,
    /// What, in one line.
    pub what: String,
    /// Why, if it was said.
    pub reason: Option<String>,
}

/// A part of the trail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// Newest first.
    pub orders: Vec<AuditView>,
    /// What to give as `before` for what is older; none at the trail's beginning.
    pub next_before: Option<u64>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditParams {
    /// How many; 100 where absent, at most 1,000.
    #[serde(default)]
    n: Option<usize>,
    /// Only those before this row of the journal.
    #[serde(default)]
    before: Option<u64>,
    /// Only those of this person or program.
    #[serde(default)]
    by: Option<String>,
}

/// Who ordered what and why, newest first.
#[utoipa::path(get, path = "/v1/audit", tag = "watching", params(AuditParams),
    responses((status = 200, body = AuditList), (status = "default", body = ErrorBody)))]
pub(crate) async fn audit(
    State(house): State<House>,
    Params(params): Params<AuditParams>,
) -> Result<Answer<AuditList>, ApiError> {
    let data = house.data().clone();
    let read = tokio::task::spawn_blocking(move || {
        let page = Page {
            before: params.before.unwrap_or(u64::MAX),
            n_rows_max: limits::AUDIT_ROWS_MAX,
            n_max: params.n.unwrap_or(100).clamp(1, limits::AUDIT_MAX),
            // Only what stands outside of a string has quotes that nothing escapes.
            texts: [r#""input":{"ask":"#, r#""input":{"remark":"#, r#""input":{"marked":"#],
        };
        store::newest(&data, page, |row| {
            let record: Record = serde_json::from_str(&row.body).ok()?;
            let wanted = params.by.as_ref().is_none_or(|it| Some(it) == by(&record.input));
            wanted.then_some(record)
        })
    });
    let broken = |text| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, text);
    let read = read.await.map_err(|_| ApiError::stopping())?;
    let (records, next_before) = read.map_err(|error| broken(chain(&error)))?;
    let orders = house.look(move |shell| views(shell, records)).await?;
    Ok(Answer(AuditList { orders, next_before }))
}

fn by(input: &Input) -> Option<&String> {
    match input {
        Input::Ask { by, .. } | Input::Remark { by, .. } | Input::Marked { by, .. } => Some(by),
        Input::Begin { .. }
        | Input::Restarted
        | Input::Tick
        | Input::Answer(_)
        | Input::Planned { .. }
        | Input::Report { .. }
        | Input::Unanswered { .. }
        | Input::Ahead(_) => None,
    }
}

fn views(shell: &Shell, records: Vec<Record>) -> Vec<AuditView> {
    let mut submitted: BTreeMap<Moment, Vec<JobId>> = BTreeMap::new();
    for (id, job) in shell.core().state().jobs.pairs() {
        submitted.entry(job.submitted).or_default().push(id);
    }
    let view = |record: Record| {
        let by = by(&record.input)?.clone();
        let (what, own) = match &record.input {
            Input::Ask { what, .. } => {
                let jobs = submitted.get(&record.now).map_or(&[][..], |it| it);
                (order(shell, what, jobs), said_in(what))
            }
            Input::Remark { what, .. } => (what.clone(), None),
            Input::Marked { target, mark, .. } => {
                let machine = words::path(shell.core().fabric(), *target);
                let (rank, set, call) = (mark.rank, mark.set, mark.call);
                (format!("mark replica {set} of rank {rank} on {machine}, call {call}"), None)
            }
            _other => return None,
        };
        let (unix_s, reason) = record.said.map_or((None, None), |it| (Some(it.unix_s), it.reason));
        let (row, at_s) = (record.number, record.now.as_secs_f64());
        Some(AuditView { row, at_s, unix_s, by, what, reason: reason.or(own) })
    };
    records.into_iter().filter_map(view).collect()
}

/// The reason that some orders carry in themselves.
fn said_in(ask: &Ask) -> Option<String> {
    match ask {
        Ask::Drain { why, .. } | Ask::Maintain { why, .. } => Some(why.clone()),
        _other => None,
    }
}

/// An order in one line; `jobs` are those that were submitted at its moment.
fn order(shell: &Shell, ask: &Ask, jobs: &[JobId]) -> String {
    let fabric = shell.core().fabric();
    match ask {
        Ask::Submit { spec, .. } => {
            let known = |id: &&JobId| {
                let job = &shell.core().state().jobs[**id];
                job.spec.name == spec.name && job.spec.owner == spec.owner
            };
            let job = jobs.iter().find(known).map_or("a job".to_owned(), ToString::to_string);
            let (name, owner) = (&spec.name, &spec.owner);
            let run = spec.work.program().map(|it| {
                let under = it.account.as_ref().map(|it| format!(" under the account {it}"));
                format!(", to run {:?}{}", it.argv.join(" "), under.unwrap_or_default())
            });
            format!("submit {job} {name:?} of {owner}, {}{}", spec.demand, run.unwrap_or_default())
        }
        Ask::Job { job, order } => format!("{} {job}", job_order(*order)),
        Ask::Drain { target, .. } => format!("drain {}", words::path(fabric, *target)),
        Ask::UndrainRetired { path } => format!("undrain {path}, which has left the plant"),
        Ask::Undrain { target } => format!("undrain {}", words::path(fabric, *target)),
        Ask::TakeRepair { case } => format!("take the repair of {case}"),
        Ask::FinishRepair { case } => format!("say that the repair of {case} is done"),
        Ask::MovePort { from, to } => {
            let path = |port| words::path(fabric, Target::Port(port));
            format!("move a fibre from {} to {}", path(*from), path(*to))
        }
        Ask::Maintain { targets, n_at_once, work, .. } => {
            let what = targets_text(fabric, targets);
            format!("maintain {what}, {n_at_once} at once, {work} each")
        }
        Ask::Defragment { plan } => format!("accept the moves of {plan}"),
        Ask::ApplyPlant { expected, .. } => format!("apply plant version {}", expected + 1),
        Ask::SetLevel { level } => format!("set level {}", words::level(*level)),
    }
}

fn job_order(order: JobOrder) -> &'static str {
    match order {
        JobOrder::Cancel => "cancel",
        JobOrder::Hold => "hold",
        JobOrder::Release => "release",
        JobOrder::Requeue => "requeue",
    }
}

/// The first few of them, and how many more there are.
fn targets_text(fabric: &Fabric, targets: &[Target]) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<String> =
        targets.iter().take(SHOWN).map(|it| words::path(fabric, *it)).collect();
    if SHOWN < targets.len() {
        names.push(format!("{} more", targets.len() - SHOWN));
    }
    names.join(", ")
}
