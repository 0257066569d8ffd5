//! `selvedge job cancel|hold|release|requeue JOB …`: one order, for one job or for many.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::cmd::job::{JobRow, state_word};
use crate::failure::{Answer, Outcome};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(super) struct Ids {
    /// Jobs by number, as `job list` shows them; 7-104 is all from 7 to 104.
    #[arg(value_name = "JOB", required = true, value_parser = run_of_jobs)]
    jobs: Vec<RangeInclusive<u32>>,
}

/// `7`, or `7-104`.
fn run_of_jobs(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |it: &str| -> Result<u32, String> {
        it.parse().map_err(|_| "must be a job's number, as 7, or a run of them, as 7-104".into())
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    match last.checked_sub(first) {
        None => Err(format!("must run upwards: {last}-{first}")),
        Some(n) if JOBS_MAX <= n => Err(format!("must be at most {JOBS_MAX} jobs")),
        Some(_) => Ok(first..=last),
    }
}

/// Jobs that one order may name.
const JOBS_MAX: u32 = 10_000;

/// Tells the jobs.
pub(super) fn run(args: &Ids, order: &str, client: &Client, globals: &Globals) -> Outcome {
    let ids: Vec<u32> = args.jobs.iter().cloned().flatten().collect();
    match ids[..] {
        [id] => order_one(id, order, client, globals),
        _ => order_many(&ids, order, client, globals),
    }
}

/// Jobs of one reason that are named.
const NAMED_MAX: usize = 6;

/// What became of an order for many jobs.
#[derive(Debug, Deserialize)]
struct Ordered {
    done: Vec<u32>,
    refused: Vec<RefusedOrder>,
}

#[derive(Debug, Deserialize)]
struct RefusedOrder {
    id: u32,
    error: String,
}

fn order_many(ids: &[u32], order: &str, client: &Client, globals: &Globals) -> Outcome {
    let body = serde_json::json!({ "order": order, "ids": ids });
    let text = client.post_text("/v1/orders", &body)?;
    let ordered: Ordered = client.read("/v1/orders", &text)?;
    let answer = if ordered.refused.is_empty() { Answer::Yes } else { Answer::No };
    if globals.json {
        render::print_raw(&text)?;
        return Ok(answer);
    }
    let done = number::counted(ordered.done.len() as u64, "job");
    let mut page = format!("{order}: {done}\n");
    let why: BTreeMap<String, Vec<u32>> =
        ordered.refused.iter().fold(BTreeMap::new(), |mut all, it| {
            // The same reason for all, whichever of them it names.
            let error = it.error.replace(&format!("job {}", it.id), "such job");
            all.entry(error).or_default().push(it.id);
            all
        });
    for (error, ids) in why {
        let first: Vec<String> = ids.iter().take(NAMED_MAX).map(u32::to_string).collect();
        let more = match ids.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        page.push_str(&format!("not {}{more}: {error}\n", first.join(", ")));
    }
    render::print(&page)?;
    Ok(answer)
}

fn order_one(id: u32, order: &str, client: &Client, globals: &Globals) -> Outcome {
    let path = format!("/v1/jobs/{id}/{}", path_text(order));
    let text = client.post_text(&path, &serde_json::json!({}))?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let job: JobRow = client.read(&path, &text)?;
    render::print(&format!("job {} {}: {}\n", job.id, job.name, state_word(&job)))?;
    Ok(Answer::Yes)
}
