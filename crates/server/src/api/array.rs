//! Arrays: many jobs of one submit, which differ by their number alone.

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use selvedge_control::core::{Accepted, Refused};
use selvedge_control::input::Ask;
use selvedge_model::id::JobId;
use selvedge_model::job::{JobSpec, Work};

use crate::api::error::ApiError;
use crate::api::job;
use crate::house::{By, House};
use crate::limits;
use crate::shell::Shell;

/// The jobs of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayView {
    /// Their numbers, in the order of the array.
    pub ids: Vec<u32>,
}

/// Submits `n_jobs` jobs; what could be wrong with any is looked at before the first.
pub(crate) async fn submit(
    house: &House,
    by: &By,
    key: Option<String>,
    spec: JobSpec,
    n_jobs: u32,
) -> Result<Vec<u32>, ApiError> {
    if !(1..=limits::ARRAY_MAX).contains(&n_jobs) {
        let what = format!("an array of {n_jobs} jobs");
        let hint = format!("from 1 to {} jobs make an array", limits::ARRAY_MAX);
        return Err(ApiError::unprocessable(what).hint(hint));
    }
    let element = |idx: u32| {
        let mut spec = spec.clone();
        spec.name = format!("{}[{idx}]", spec.name);
        if let Work::Command(program) = &mut spec.work {
            program.env.insert("JOB_ARRAY_INDEX".to_owned(), idx.to_string());
            program.env.insert("JOB_ARRAY_SIZE".to_owned(), n_jobs.to_string());
        }
        Ask::Submit { key: key.as_ref().map(|it| format!("{it}[{idx}]")), spec }
    };
    // The last has the longest name and key.
    let Ask::Submit { spec: last, key: last_key } = element(n_jobs - 1) else { return Ok(vec![]) };
    if last_key.is_some_and(|it| selvedge_control::limits::KEY_MAX < it.len()) {
        return Err(ApiError::unprocessable("the key is too long for an array of this size"));
    }
    house.look(move |shell| shell.core().check_array(&last, n_jobs)).await??;
    if key.is_some() {
        let all: Vec<Ask> = (0..n_jobs).map(element).collect();
        house.look(move |shell| all.into_iter().try_for_each(|it| unused(shell, it))).await??;
    }
    let mut ids = Vec::with_capacity(n_jobs as usize);
    let indices: Vec<u32> = (0..n_jobs).collect();
    for stride in indices.chunks(limits::ARRAY_STRIDE) {
        let submits = stride.iter().map(|idx| {
            house.ask(by.clone(), element(*idx), |_, accepted| match accepted {
                Accepted::Job(id) => Some(id),
                Accepted::Done | Accepted::Case(_) | Accepted::Plant(_) => None,
            })
        });
        for submitted in join_all(submits).await {
            let id = match submitted {
                Ok(id) => id,
                // A key says that this very submit has come before.
                Err(error) if error.job.is_some() => error.job,
                Err(mut error) => {
                    let n = ids.len();
                    error.body.error =
                        format!("{n} of {n_jobs} jobs were submitted, then: {}", error.body.error);
                    return Err(error);
                }
            };
            ids.extend(id.map(JobId::number));
        }
    }
    Ok(ids)
}

/// Whether the key of a submit is free, or was used for the very same job.
fn unused(shell: &Shell, submit: Ask) -> Result<(), ApiError> {
    let Ask::Submit { key: Some(key), spec } = submit else { return Ok(()) };
    let state = shell.core().state();
    match state.keys.get(&key) {
        Some(&job) if !job::is_same(&state.jobs[job], spec) => {
            Err(ApiError::from(Refused::KeyUsed { job }).hint(job::ANOTHER))
        }
        Some(_) | None => Ok(()),
    }
}
