//! Why a job waits, and what would let it start; when a job would start if it came now.
//!
//! Nothing here is canned: steps are named only if doing them one after the other, with every
//! pass between them, starts the job, and leaving out any one of them does not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use selvedge_model::fabric::Fabric;
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::Place;
use selvedge_model::unit::Moment;

use crate::capacity;
use crate::limits;
use crate::schedule::effort::Effort;
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

/// What is out of use.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// What each target takes out, part by part.
    pub out: BTreeMap<Target, BTreeMap<PartId, PartState>>,
    /// When those that come back by themselves are in use again, at the latest.
    pub returning: BTreeMap<Target, Moment>,
}

impl Outages {
    /// What an outage of these targets takes out; none of them comes back by itself.
    pub fn of<'a>(fabric: &Fabric, targets: impl Iterator<Item = &'a Target>) -> Self {
        let out = targets.map(|it| (*it, capacity::outage(fabric, *it))).collect();
        Self { out, returning: BTreeMap::new() }
    }
}

/// It would take too long to find out ([`limits::EFFORT_MAX`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The steps that together let `job`, which stands in the `queue`, start, in the order in
/// which they are done; none of them can be left out.  `None` if not even all of them are enough:
/// then the plant itself must change.
///
/// It is true of this moment: of what waits and runs now, if nobody comes and nothing ends or
/// fails by itself until the last step is done.
///
/// Complexity: O(n log n) passes of the planner for n candidates.
///
/// # Errors
/// [`TooLong`].
pub fn steps(
    view: &View<'_>,
    queue: &[Waiting<'_>],
    job: JobId,
    outages: &Outages,
    candidates: &[Step],
) -> Result<Option<Vec<Step>>, TooLong> {
    let effort = Effort::new(limits::EFFORT_MAX);
    let steps = Case { view, queue, job, outages, effort: &effort }.steps(candidates);
    if effort.is_spent() { Err(TooLong) } else { Ok(steps) }
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
    let mut is_settled;
    loop {
        is_settled = true;
        let mut at = 0;
        while at < needed.len() {
            let mut fewer = needed.clone();
            fewer.drain(at..(at + n_run).min(needed.len()));
            if is_enough(&fewer) {
                needed = fewer;
                is_settled = false;
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
    let mut at = if is_settled { needed.len() } else { 0 };
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
    queue: &'a [Waiting<'v>],
    job: JobId,
    outages: &'a Outages,
    effort: &'a Effort,
}

impl Case<'_, '_> {
    fn steps(&self, candidates: &[Step]) -> Option<Vec<Step>> {
        let mut needed = fewest(candidates.to_vec(), |done| self.starts_by(done).is_ok())?;
        sort(&mut needed, self.queue);
        // What is freed first may be taken by others before the last step is done: they are held.
        for round in 0.. {
            let Err(others) = self.starts_in_order(&needed) else { break };
            let everybody =
                || self.queue.iter().map(|it| it.job).filter(|it| *it != self.job).collect();
            let others: BTreeSet<JobId> = if round < ROUNDS_MAX { others } else { everybody() };
            let more = others.into_iter().map(|job| Step::Hold { job });
            let n_before = needed.len();
            let all: BTreeSet<Step> = needed.into_iter().chain(more).collect();
            needed = all.into_iter().collect();
            sort(&mut needed, self.queue);
            if needed.len() == n_before {
                return None;
            }
        }
        fewest(needed, |done| self.starts_in_order(done).is_ok())
    }

    /// Whether the job starts once all of `done` is done; else who started instead.
    fn starts_by(&self, done: &[Step]) -> Result<(), BTreeSet<JobId>> {
        let mut then = Supposed::new(self.view, self.queue, self.outages, self.effort);
        let mut back = Vec::new();
        for step in done {
            match step {
                Step::Hold { job } => then.hold(*job),
                Step::End { job } => then.end(*job),
                Step::Return { target } => back.push(*target),
                Step::Release { .. } | Step::Wait { .. } => (),
            }
        }
        then.bring_back(back);
        if then.settle(self.job) { Ok(()) } else { Err(then.started.into_iter().collect()) }
    }

    /// Whether the job starts if the steps are done one after the other, each with all that
    /// follows from it; else who started instead.
    fn starts_in_order(&self, steps: &[Step]) -> Result<(), BTreeSet<JobId>> {
        let mut then = Supposed::new(self.view, self.queue, self.outages, self.effort);
        if then.settle(self.job) {
            return Ok(());
        }
        for step in steps {
            match step {
                Step::Release { .. } | Step::Wait { .. } => (),
                Step::Hold { job } => then.hold(*job),
                Step::Return { target } => {
                    // It is tested and watched before it serves.
                    then.pass(then.now + self.view.setup_max);
                    then.bring_back([*target]);
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

    /// When the job starts, if nothing is done.
    fn forecast(&self, coming: &[(Moment, Waiting<'_>)]) -> Forecast {
        if let Some(played) = self.play(coming, &[]) {
            return Forecast::At { at: played.at, after: played.after, preempts: played.preempts };
        }
        let played = |done: &[Step]| self.play(coming, done);
        let mut steps = endless(self.view, self.queue, self.job, coming);
        let stays_out = |it: &&Target| !self.outages.returning.contains_key(*it);
        let out = self.outages.out.keys().filter(stays_out);
        steps.extend(out.map(|&target| Step::Return { target }));
        let mut found = played(&steps);
        if found.is_none() {
            let others = self.queue.iter().chain(coming.iter().map(|it| &it.1)).map(|it| it.job);
            let holds = others.filter(|it| *it != self.job).map(|job| Step::Hold { job });
            // Others are held last: who is to leave the queue is asked where nothing else helps.
            steps.splice(0..0, holds);
            found = played(&steps);
        }
        let Some(found) = found else { return Forecast::Never { why: Never::NoRoom } };
        // Who had not to end is not waited for; the rest is tried one by one.
        steps.retain(|step| {
            let Step::End { job } = step else { return true };
            found.ended.contains(job)
        });
        if steps.len() <= limits::FORECAST_STEPS_MAX
            && let Some(fewer) = fewest(steps.clone(), |done| played(done).is_some())
        {
            steps = fewer;
        }
        Forecast::Unknown { steps }
    }

    /// How the job starts if everything takes as long as it may and `done` is done: what is to
    /// return and who is to be held at once, who is to end when nothing else is left to come.
    fn play(&self, coming: &[(Moment, Waiting<'_>)], done: &[Step]) -> Option<Played> {
        let mut then =
            Supposed::at_latest(self.view, self.queue, self.outages, self.effort, coming);
        // One that waits for a spare goes on with the parts that it has.
        then.end(self.job);
        let mut ends = BTreeSet::new();
        let mut back = Vec::new();
        for step in done {
            match *step {
                Step::Hold { job } => then.hold(job),
                Step::Return { target } => back.push(target),
                Step::End { job } => drop(ends.insert(job)),
                Step::Release { .. } | Step::Wait { .. } => (),
            }
        }
        then.bring_back(back);
        let (mut ended, mut after) = (BTreeSet::new(), Vec::new());
        loop {
            if self.effort.is_spent() {
                return None;
            }
            if then.settle(self.job) {
                return Some(Played { at: then.now, after, preempts: false, ended });
            }
            if self.view.means.preempt && then.stops_others_for(self.job) {
                return Some(Played {
                    at: then.now + self.view.stop_max,
                    after,
                    preempts: true,
                    ended,
                });
            }
            match then.next_event() {
                Some(next) => after = then.go_on(next),
                None => drop(ended.insert(then.end_one_of(&ends)?)),
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
    /// Then, if everything takes as long as it may: at the latest for the head, and where nobody
    /// passes anybody; else mostly.
    At {
        /// When.
        at: Moment,
        /// What happens just then by itself, after all else that it waits for: who leaves by a
        /// limit, what is in use again, until when it was not tried.
        after: Vec<Step>,
        /// Whether others are then stopped for it.
        preempts: bool,
    },
    /// Nobody knows: it would take too long to find out.
    TooLong,
    /// When this has happened, for which there is no time: jobs without a limit end, what is out of
    /// use is brought back, and those who stand before it and cannot start themselves are held.
    Unknown {
        /// What it waits for; none of it can be left out, unless it is more than
        /// [`limits::FORECAST_STEPS_MAX`].
        steps: Vec<Step>,
    },
    /// At no time.
    Never {
        /// Why.
        why: Never,
    },
}

/// Why a job can never start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Never {
    /// It is larger than any pool.
    TooLarge {
        /// How many parts of its kind the largest pool has.
        n_parts: usize,
    },
    /// It would not start either if it were alone and everything sound.
    NoRoom,
}

/// Plays the queue forward until `job` starts: jobs run to their limits, what comes back by itself
/// comes back, and those of `coming` join the queue at their moments.  `job` stands in the `queue`
/// or among those.
pub fn forecast(
    view: &View<'_>,
    queue: &[Waiting<'_>],
    job: JobId,
    outages: &Outages,
    coming: &[(Moment, Waiting<'_>)],
) -> Forecast {
    let (plan, _) = schedule::plan(view, queue);
    if let Some(start) = plan.starts.into_iter().find(|it| it.job == job) {
        return Forecast::Now { place: start.place };
    }
    let effort = Effort::new(limits::EFFORT_MAX);
    let forecast = Case { view, queue, job, outages, effort: &effort }.forecast(coming);
    if effort.is_spent() { Forecast::TooLong } else { forecast }
}

/// Jobs before which nobody knows when they end.
fn endless(
    view: &View<'_>,
    queue: &[Waiting<'_>],
    job: JobId,
    coming: &[(Moment, Waiting<'_>)],
) -> Vec<Step> {
    let busy = view.busy.iter().filter(|it| it.release_by == Moment::NEVER).map(|it| it.job);
    let waiting = queue.iter().chain(coming.iter().map(|it| &it.1));
    let waiting = waiting.filter(|it| it.limit.is_none()).map(|it| it.job);
    let all: BTreeSet<JobId> = busy.chain(waiting).filter(|it| *it != job).collect();
    all.into_iter().map(|job| Step::End { job }).collect()
}

/// How a job comes to start in thought.
struct Played {
    at: Moment,
    /// What happened last before it.
    after: Vec<Step>,
    /// Whether others are stopped for it.
    preempts: bool,
    /// Who had to end for it that has no end of its own.
    ended: BTreeSet<JobId>,
}

#[cfg(test)]
mod tests {
    use selvedge_model::job::Demand;
    use selvedge_model::table::IdVec;
    use selvedge_model::unit::Span;

    use super::*;
    use crate::capacity::Layout;
    use crate::family;
    use crate::planted::Planted;
    use crate::settings::Means;

    #[test]
    fn a_question_that_takes_more_than_it_may_is_given_up() {
        let plant = "format = 1\nname = \"t\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 2\n";
        let fabric = crate::core::fabric_of(&[plant.to_owned()]).unwrap();
        let layout = Layout::of(&fabric);
        let mut parts: IdVec<PartId, PartState> = IdVec::new();
        parts.grow(layout.seats.len(), PartState::default());
        let view = View {
            now: Moment::START,
            fabric: &fabric,
            layout: &layout,
            parts: &parts,
            doubted: &BTreeSet::new(),
            busy: &[],
            means: Means { backfill: true, preempt: true, defragment: true },
            aging: Span::ZERO,
            setup_max: Span::ZERO,
            stop_max: Span::ZERO,
            window: None,
            current: &|_, _| None,
            planted: Planted::NONE,
        };
        let (demand, need) = family::need(&Demand::Shape("4x4x8".to_owned())).unwrap();
        let id = JobId::new;
        let job = |it| Waiting::new(id(it), &demand, &need, Some(Span::hours(1)));
        let queue: Vec<Waiting<'_>> = (0..40).map(job).collect();
        let outages = Outages::default();
        let holds: Vec<Step> = (0..39).map(|it| Step::Hold { job: id(it) }).collect();
        let found = |n: u64| {
            let effort = Effort::new(n);
            let (view, queue, outages) = (&view, &queue, &outages);
            let case = Case { view, queue, job: id(39), outages, effort: &effort };
            (case.steps(&holds), case.forecast(&[]), effort.is_spent())
        };
        let (_, forecast, is_spent) = found(limits::EFFORT_MAX);
        assert!(matches!(forecast, Forecast::At { .. }), "{forecast:?}");
        assert!(!is_spent);
        let (_, _, is_spent) = found(1_000);
        assert!(is_spent);
    }
}
