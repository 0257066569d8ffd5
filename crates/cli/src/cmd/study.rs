//! `selvedge study …`: seeded studies of the production planners.

mod allocation;

mod pods;

mod redundancy;

use clap::Subcommand;
use nix::time::{ClockId, clock_gettime};
use selvedge_model::unit::Span;

use crate::Globals;
use crate::failure::Outcome;

#[derive(Debug, clap::Args)]
pub(crate) struct Study {
    #[command(subcommand)]
    verb: StudyVerb,
}

#[derive(Debug, Subcommand)]
enum StudyVerb {
    /// Rules of placement on a grid of boards, held against one another.
    Allocation(allocation::Allocation),
    /// A static pod against a switched one, under the same trace.
    Pods(pods::Pods),
    /// What replicas of MPI programs cost as machines grow: figure 13 of the STMR paper, restarts,
    /// and measured points.
    Redundancy(redundancy::Redundancy),
}

pub(crate) fn run(args: &Study, globals: &Globals) -> Outcome {
    match &args.verb {
        StudyVerb::Allocation(args) => allocation::run(args, globals),
        StudyVerb::Pods(args) => pods::run(args, globals),
        StudyVerb::Redundancy(args) => redundancy::run(args, globals),
    }
}

/// The processor time that this thread has used, as a clock: what else runs on the machine does not
/// count.
fn thread_time() -> impl FnMut() -> Span {
    || {
        let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        let used = used.expect("a thread can always ask for its own time");
        let part = |it: i64| u64::try_from(it).expect("a thread's time is not negative");
        Span::nanos(1_000_000_000 * part(used.tv_sec()) + part(used.tv_nsec()))
    }
}
