//! What jobs are ordered to: one job, or many by one request.

use axum::Json as Answer;
use axum::extract::{Path, State};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use selvedge_control::input::{Ask, JobOrder};
use selvedge_model::id::JobId;

use crate::api::body::Json;
use crate::api::error::{ApiError, ErrorBody};
use crate::api::job::{Empty, JobView, find, id_of, view};
use crate::house::{By, House, whole};
use crate::limits;

/// Changes its fate: `cancel`, `hold`, `release` or `requeue`.
#[utoipa::path(post, path = "/v1/jobs/{id}/{order}", tag = "jobs",
    params(("id" = String, Path), ("order" = String, Path)),
    responses((status = 200, body = JobView), (status = "default", body = ErrorBody)))]
pub(crate) async fn order(
    State(house): State<House>,
    Path((id, order)): Path<(String, String)>,
    by: By,
    Json(_): Json<Empty>,
) -> Result<Answer<JobView>, ApiError> {
    let (job, order) = (id_of(&id)?, order_of(&order)?);
    obey(&house, by, job, order).await.map(Answer)
}

/// What a job may be ordered to.
pub(crate) fn order_of(word: &str) -> Result<JobOrder, ApiError> {
    Ok(match word {
        "cancel" => JobOrder::Cancel,
        "hold" => JobOrder::Hold,
        "release" => JobOrder::Release,
        "requeue" => JobOrder::Requeue,
        other => {
            return Err(ApiError::no_such("order", other)
                .hint("jobs take cancel, hold, release and requeue"));
        }
    })
}

/// Carries out an order of somebody who may give it; the job as it stands after it.
pub(crate) async fn obey(
    house: &House,
    by: By,
    job: JobId,
    order: JobOrder,
) -> Result<JobView, ApiError> {
    // A job's owner never changes, so that looking first is soon enough.
    let owner = house.look(move |shell| find(shell, job).map(|it| it.spec.owner.clone()));
    by.may_change_job_of(&owner.await??)?;
    let what = Ask::Job { job, order };
    house.ask(by, what, move |shell, _| view(shell, job, &shell.core().state().jobs[job])).await
}

/// One order for many jobs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Orders {
    /// `cancel`, `hold`, `release` or `requeue`.
    order: String,
    /// For which jobs.
    ids: Vec<u32>,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrdersView {
    /// The jobs that have taken it, in the order in which they were named.
    pub done: Vec<u32>,
    /// Those that have not.
    pub refused: Vec<RefusedView>,
}

/// A job that does not take an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedView {
    /// Which.
    pub id: u32,
    /// Why not.
    pub error: String,
}

/// Changes the fate of many jobs, each by itself: one that does not take it stops no other.
#[utoipa::path(post, path = "/v1/orders", tag = "jobs", request_body = Orders,
    responses((status = 200, body = OrdersView), (status = "default", body = ErrorBody)))]
pub(crate) async fn order_many(
    State(house): State<House>,
    by: By,
    Json(orders): Json<Orders>,
) -> Result<Answer<OrdersView>, ApiError> {
    let order = order_of(&orders.order)?;
    let n_jobs = orders.ids.len();
    if (limits::ARRAY_MAX as usize) < n_jobs {
        let hint = format!("at most {} at once", limits::ARRAY_MAX);
        return Err(ApiError::unprocessable(format!("an order for {n_jobs} jobs")).hint(hint));
    }
    whole(async move { Ok(Answer(obey_all(&house, &by, &orders.ids, order).await)) }).await
}

async fn obey_all(house: &House, by: &By, ids: &[u32], order: JobOrder) -> OrdersView {
    let mut view = OrdersView { done: Vec::new(), refused: Vec::new() };
    for stride in ids.chunks(limits::ARRAY_STRIDE) {
        let obeyed = stride.iter().map(|&id| obey(house, by.clone(), JobId::new(id), order));
        for (&id, obeyed) in stride.iter().zip(join_all(obeyed).await) {
            match obeyed {
                Ok(_) => view.done.push(id),
                Err(error) => view.refused.push(RefusedView { id, error: error.body.error }),
            }
        }
    }
    view
}
