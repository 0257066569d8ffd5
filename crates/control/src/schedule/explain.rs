//! Why a job waits, and what would let it start; when a job would start if it came now.
//!
//! Nothing here is canned: a step is named only if a pass in which all named steps are done
//! starts the job, and no pass in which one of them is left out does.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::Place;
use selvedge_model::table::IdVec;
use selvedge_model::unit::Moment;

use crate::capacity;
use crate::schedule::{self, Busy, View, Waiting};
use crate::state::PartState;

/// One thing that would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Let the held job start.
    Release {
        /// It itself.
        job: JobId,
    },
    /// Nothing but time: it failed lately and is not tried earlier.
    Wait {
        /// Until when.
        until: Moment,
    },
    /// Bring back what is drained or at fault.
    Return {
        /// What.
        target: Target,
    },
    /// Let a running job end, or cancel it.
    End {
        /// Which.
        job: JobId,
    },
    /// Hold a job that stands before it in the queue.
    Hold {
        /// Which.
        job: JobId,
    },
}

/// The steps that together let `job` start; none of them can be left out.  `None` if not even
/// all of them are enough: then the plant itself must change.
pub fn steps(
    view: &View<'_>,
    job: &Waiting<'_>,
    outages: &BTreeMap<Target, BTreeMap<PartId, PartState>>,
    candidates: &[Step],
) -> Option<Vec<Step>> {
    let starts = |done: &[Step]| starts_with(view, job, outages, done);
    let mut needed: Vec<Step> = candidates.to_vec();
    if !starts(&needed) {
        return None;
    }
    // Leave out ever smaller runs of steps, until no single one can be spared.
    let mut n_run = needed.len().max(1);
    loop {
        let mut at = 0;
        while at < needed.len() {
            let mut fewer = needed.clone();
            fewer.drain(at..(at + n_run).min(needed.len()));
            if starts(&fewer) {
                needed = fewer;
            } else {
                at += n_run;
            }
        }
        if n_run == 1 {
            break;
        }
        n_run = n_run.div_ceil(2);
    }
    // Sparing one step may have made another needless; one more round settles it.
    let mut at = 0;
    while at < needed.len() {
        let mut fewer = needed.clone();
        fewer.remove(at);
        if starts(&fewer) {
            needed = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    Some(needed)
}

/// Whether a pass with these steps done starts `job`.
fn starts_with(
    view: &View<'_>,
    job: &Waiting<'_>,
    outages: &BTreeMap<Target, BTreeMap<PartId, PartState>>,
    done: &[Step],
) -> bool {
    let done: BTreeSet<Step> = done.iter().copied().collect();
    let mut parts = view.parts.clone();
    for part in parts.iter_mut() {
        part.out = 0;
        part.links_out.clear();
        part.outer_out = 0;
        part.cut.clear();
    }
    for (target, outage) in outages {
        if !done.contains(&Step::Return { target: *target }) {
            for (part, out) in outage {
                parts[*part].worsen(out);
            }
        }
    }
    let mut busy: Vec<Busy<'_>> = Vec::with_capacity(view.busy.len());
    for row in view.busy {
        if done.contains(&Step::End { job: row.job }) {
            for hold in row.holds {
                parts[hold.part].held &= !hold.seats;
            }
        } else {
            busy.push(*row);
        }
    }
    let kept = |it: &&Waiting<'_>| !done.contains(&Step::Hold { job: it.job });
    let queue: Vec<Waiting<'_>> = view.queue.iter().filter(kept).copied().collect();
    let supposed = View { parts: &parts, queue: &queue, busy: &busy, ..*view };
    let (plan, _) = schedule::plan(&supposed);
    plan.starts.iter().any(|it| it.job == job.job)
}

/// When a job that came now would start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forecast {
    /// At once, here.
    Now {
        /// Where.
        place: Place,
    },
    /// At the latest then, by the limits of those before it.
    At {
        /// When.
        at: Moment,
    },
    /// When these jobs, which have no limit, end or what is out of use returns.
    Unknown {
        /// Jobs without limit on hardware that it could use.
        jobs: Vec<JobId>,
    },
    /// No hardware of this plant can hold it.
    Never,
}

/// Plays the queue forward by the limits alone until `job`, which stands in the view's queue,
/// starts.
pub fn forecast(view: &View<'_>, job: JobId) -> Forecast {
    let (plan, _) = schedule::plan(view);
    if let Some(start) = plan.starts.into_iter().find(|it| it.job == job) {
        return Forecast::Now { place: start.place };
    }
    match play(view, job) {
        Some(at) => Forecast::At { at },
        None => Forecast::Unknown { jobs: endless(view) },
    }
}

fn endless(view: &View<'_>) -> Vec<JobId> {
    view.busy.iter().filter(|it| it.release_by == Moment::NEVER).map(|it| it.job).collect()
}

/// The moment at which `job` starts if every job runs to its limit.
fn play(view: &View<'_>, job: JobId) -> Option<Moment> {
    let mut parts: IdVec<PartId, PartState> = view.parts.clone();
    let mut queue: Vec<Waiting<'_>> = view.queue.to_vec();
    let mut now = view.now;
    let mut held: Vec<(JobId, Place, Moment, u8)> = view
        .busy
        .iter()
        .map(|it| {
            let place = Place { pool: it.pool, holds: it.holds.to_vec() };
            (it.job, place, it.release_by, it.priority)
        })
        .collect();
    // Each round starts somebody or lets somebody leave.
    for _ in 0..2 * (held.len() + queue.len()) + 2 {
        let busy: Vec<Busy<'_>> = held
            .iter()
            .map(|(job, place, release_by, priority)| Busy {
                job: *job,
                holds: &place.holds,
                pool: place.pool,
                release_by: *release_by,
                priority: *priority,
                preemptible: false,
                leaving: false,
                since: now,
            })
            .collect();
        let supposed = View { now, parts: &parts, queue: &queue, busy: &busy, ..*view };
        let (plan, _) = schedule::plan(&supposed);
        let starts = plan.starts;
        if starts.iter().any(|it| it.job == job) {
            return Some(now);
        }
        let mut started: Vec<(JobId, Place, Moment, u8)> = Vec::new();
        for start in starts {
            let at = queue.iter().position(|it| it.job == start.job)?;
            let row = queue.remove(at);
            for hold in &start.place.holds {
                parts[hold.part].held |= hold.seats;
            }
            let release_by = schedule::release_by(&View { now, ..*view }, &row);
            started.push((row.job, start.place, release_by, row.priority));
        }
        if !started.is_empty() {
            held.extend(started);
            continue;
        }
        let next = held.iter().map(|it| it.2).min().filter(|it| *it != Moment::NEVER)?;
        now = now.max(next);
        held.retain(|(_, place, release_by, _)| {
            let stays = now < *release_by;
            if !stays {
                for hold in &place.holds {
                    parts[hold.part].held &= !hold.seats;
                }
            }
            stays
        });
    }
    None
}

/// What an outage list takes out, once for each target.
pub fn outages<'a>(
    fabric: &selvedge_model::fabric::Fabric,
    targets: impl Iterator<Item = &'a Target>,
) -> BTreeMap<Target, BTreeMap<PartId, PartState>> {
    targets.map(|it| (*it, capacity::outage(fabric, *it))).collect()
}
