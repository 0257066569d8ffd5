//! The hidden verbs under which real tasks run (selvedge_driver::task); people never type them.

use std::path::PathBuf;

use selvedge_driver::task;

use crate::failure::{Answer, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct TaskRun {
    /// The task's directory.
    dir: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TaskBecome {
    /// The task's directory.
    dir: PathBuf,
    /// The supervisor's number.
    supervisor: u32,
    /// The control group to join.
    cage: Option<PathBuf>,
}

pub(crate) fn run(args: &TaskRun) -> Outcome {
    task::supervise(&args.dir)?;
    Ok(Answer::Yes)
}

pub(crate) fn become_task(args: &TaskBecome) -> Outcome {
    let (error, status) = task::become_task(&args.dir, args.supervisor, args.cage.as_deref());
    // It stands in the task's output, where its owner looks first.
    anstream::eprintln!("selvedge: {error}");
    std::process::exit(i32::from(status))
}
