//! A list of jobs as it is sent.  One is drawn at a time, and who asked before that has it too, so
//! that a crowd who ask for ten thousand jobs cost the server two lists.

use std::time::Instant;

use axum::body::Bytes;

use selvedge_control::state::Job;

use crate::api::error::ApiError;
use crate::api::job::{JobList, view};
use crate::house::House;

/// The list that was sent last.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The states that were asked for.
    keep: Option<String>,
    drawn: Instant,
    body: Bytes,
}

/// The jobs in the states `keep`, all without it, for somebody who asked at `asked`.
pub(super) async fn body(
    house: &House,
    keep: Option<String>,
    asked: Instant,
) -> Result<Bytes, ApiError> {
    let mut listed = house.listed().lock().await;
    if let Some(it) = listed.as_ref().filter(|it| it.keep == keep && asked <= it.drawn) {
        return Ok(it.body.clone());
    }
    let it = drawn(house, keep).await?;
    Ok(listed.insert(it).body.clone())
}

async fn drawn(house: &House, keep: Option<String>) -> Result<Listed, ApiError> {
    let drawn = Instant::now();
    let wanted = keep.clone();
    let jobs = house.look(move |shell| {
        let wanted = |job: &Job| match &wanted {
            Some(keep) => keep.split(',').any(|it| it == job.state.word()),
            None => true,
        };
        let jobs = shell.core().state().jobs.pairs().filter(|(_, job)| wanted(job));
        jobs.map(|(id, job)| view(shell, id, job)).collect()
    });
    let body = serde_json::to_vec(&JobList { jobs: jobs.await? }).expect("its keys are text");
    Ok(Listed { keep, drawn, body: body.into() })
}
