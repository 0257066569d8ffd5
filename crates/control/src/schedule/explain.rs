//! Why a job waits, and what would let it start; when a job would start if it came now.
//!
//! Nothing here is canned: steps are named only if doing them one after the other, with every
//! pass between them, starts the job, and leaving out any one of them does not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::Place;
use selvedge_model::unit::Moment;

use crate::capacity;
use crate::schedule::suppose::Supposed;
use crate::schedule::{self, View, Waiting};
use crate::state::PartState;

/// One thing that would help.  Steps are done in this order, each once the one before has taken
/// effect: whoever waits would take what is freed meanwhile.
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
    /// Hold a job that waits too, and would take what is freed.
    Hold {
        /// Which.
        job: JobId,
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
}

/// The steps that together let `job`, which stands in the view's queue, start, in the order in
/// which they are done; none of them can be left out.  `None` if not even all of them are enough:
/// then the plant itself must change.
///
/// It is true of this moment: of what waits and runs now, if nobody comes and nothing ends or
/// fails by itself until the last step is done.
///
/// Complexity: O(n log n) passes of the planner for n candidates.
pub fn steps(
    view: &View<'_>,
    job: JobId,
    outages: &BTreeMap<Target, BTreeMap<PartId, PartState>>,
    candidates: &[Step],
) -> Option<Vec<Step>> {
    let case = Case { view, job, outages };
    let mut needed = fewest(candidates.to_vec(), |done| case.starts_by(done).is_ok())?;
    sort(&mut needed, view.queue);
    // What is freed first may be taken by others before the last step is done: they are held.
    for round in 0.. {
        let Err(others) = case.starts_in_order(&needed) else { break };
        let everybody = || view.queue.iter().map(|it| it.job).filter(|it| *it != job).collect();
        let others: BTreeSet<JobId> = if round < ROUNDS_MAX { others } else { everybody() };
        let more = others.into_iter().map(|job| Step::Hold { job });
        let n_before = needed.len();
        let all: BTreeSet<Step> = needed.into_iter().chain(more).collect();
        needed = all.into_iter().collect();
        sort(&mut needed, view.queue);
        if needed.len() == n_before {
            return None;
        }
    }
    fewest(needed, |done| case.starts_in_order(done).is_ok())
}

/// In the order in which they are best done.  Those who wait are held from the back of the queue:
/// whoever stands first keeps the others from what is free until it is held itself.
fn sort(steps: &mut [Step], queue: &[Waiting<'_>]) {
    let behind = |job: JobId| queue.len() - queue.iter().take_while(|it| it.job != job).count();
    steps.sort_by_key(|step| match step {
        Step::Hold { job } => (Step::Hold { job: JobId::new(0) }, behind(*job)),
        other => (*other, 0),
    });
}

/// How often those who would take what is freed are looked for before all others are held.
const ROUNDS_MAX: u32 = 4;

/// A smallest sublist for which `is_enough` still holds; none if it does not hold for all.
fn fewest(all: Vec<Step>, is_enough: impl Fn(&[Step]) -> bool) -> Option<Vec<Step>> {
    let mut needed = all;
    if !is_enough(&needed) {
        return None;
    }
    // Leave out ever smaller runs of steps, until no single one can be spared.
    let mut n_run = needed.len().max(1);
    loop {
        let mut at = 0;
        while at < needed.len() {
            let mut fewer = needed.clone();
            fewer.drain(at..(at + n_run).min(needed.len()));
            if is_enough(&fewer) {
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
        if is_enough(&fewer) {
            needed = fewer;
            at = 0;
        } else {
            at += 1;
        }
    }
    Some(needed)
}

/// One question: what would let this job start.
struct Case<'a, 'v> {
    view: &'a View<'v>,
    job: JobId,
    outages: &'a BTreeMap<Target, BTreeMap<PartId, PartState>>,
}

impl Case<'_, '_> {
    /// Whether the job starts once all of `done` is done; else who started instead.
    fn starts_by(&self, done: &[Step]) -> Result<(), BTreeSet<JobId>> {
        let mut then = Supposed::new(self.view);
        let done: BTreeSet<Step> = done.iter().copied().collect();
        for step in &done {
            match step {
                Step::Hold { job } => then.hold(*job),
                Step::End { job } => then.end(*job),
                Step::Release { .. } | Step::Wait { .. } | Step::Return { .. } => (),
            }
        }
        self.leave_out(&mut then, &done);
        if then.settle(self.job) { Ok(()) } else { Err(then.started.into_iter().collect()) }
    }

    /// Whether the job starts if the steps are done one after the other, each with all that
    /// follows from it; else who started instead.
    fn starts_in_order(&self, steps: &[Step]) -> Result<(), BTreeSet<JobId>> {
        let mut then = Supposed::new(self.view);
        let mut done: BTreeSet<Step> = BTreeSet::new();
        self.leave_out(&mut then, &done);
        if then.settle(self.job) {
            return Ok(());
        }
        for step in steps {
            match step {
                Step::Release { .. } | Step::Wait { .. } => (),
                Step::Hold { job } => then.hold(*job),
                Step::Return { .. } => {
                    done.insert(*step);
                    // It is tested and watched before it serves.
                    then.pass(then.now + self.view.setup_max);
                    self.leave_out(&mut then, &done);
                }
                Step::End { job } => {
                    then.pass(then.now + self.view.stop_max);
                    then.end(*job);
                }
            }
            if then.settle(self.job) {
                return Ok(());
            }
        }
        Err(then.started.into_iter().collect())
    }

    /// Takes out of use what has not been brought back.
    fn leave_out(&self, then: &mut Supposed<'_>, done: &BTreeSet<Step>) {
        for part in then.parts.iter_mut() {
            part.out = 0;
            part.links_out.clear();
            part.outer_out = 0;
            part.cut.clear();
        }
        for (target, outage) in self.outages {
            if !done.contains(&Step::Return { target: *target }) {
                for (part, out) in outage {
                    then.parts[*part].worsen(out);
                }
            }
        }
    }
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
    if plan.preempts.iter().any(|it| it.1 == job) {
        return Forecast::At { at: view.now + view.stop_max };
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
    let mut then = Supposed::at_latest(view);
    while !then.settle(job) {
        let next = then.next_end()?;
        then.pass(next);
    }
    Some(then.now)
}

/// What an outage list takes out, once for each target.
pub fn outages<'a>(
    fabric: &selvedge_model::fabric::Fabric,
    targets: impl Iterator<Item = &'a Target>,
) -> BTreeMap<Target, BTreeMap<PartId, PartState>> {
    targets.map(|it| (*it, capacity::outage(fabric, *it))).collect()
}
