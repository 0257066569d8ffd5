//! What those who wait and those who are moved are promised: whoever is first and fits starts,
//! nobody who passes a head makes its start later, as it follows from the limits, nobody passes one
//! who asks for no more, and nobody loses more to moves than their share.
//!
//! Held where it happens, at the input whose plan starts or moves somebody.  As each start past a
//! head leaves the head's moment where it was, so do all of them together.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_control::core::{Adopted, Core};
use selvedge_control::family;
use selvedge_control::schedule::Start;
use selvedge_control::state::{Job, JobState, QueueKey};
use selvedge_model::id::{JobId, PoolId};
use selvedge_model::job::{Demand, Hold, Need};
use selvedge_model::unit::{Moment, Span};

use super::Violation;

/// What was seen of queue and moves.
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    /// The queue before the input that is being handled.
    stood: BTreeSet<(QueueKey, JobId)>,
    /// What was lost to moves, each with the record that began it.
    losses: Vec<Loss>,
}

/// What one move costs its owner.
#[derive(Clone, Debug)]
struct Loss {
    number: u64,
    at: Moment,
    job: JobId,
    attempt: u32,
    owner: String,
    lost: Span,
}

impl Fair {
    /// The core is about to hear something.
    pub(super) fn hears(&mut self, core: &Core) {
        self.stood.clone_from(&core.state().queue);
    }

    /// The power failed; nothing after this record is left.
    pub(super) fn crashed(&mut self, newest: u64) {
        self.losses.retain(|it| it.number <= newest);
    }

    /// The core has handled record `number` and adopted `plans` for it.
    pub(super) fn planned(
        &mut self,
        core: &Core,
        number: u64,
        plans: &[Adopted],
    ) -> Vec<Violation> {
        let mut found = self.passed(core, plans);
        found.extend(self.passed_by_equals(core, plans));
        found.extend(left_standing(core));
        found.extend(self.moved(core, number));
        found
    }

    /// Of each plan's starts, those that pass the head must leave its moment where it was.
    fn passed(&self, core: &Core, plans: &[Adopted]) -> Vec<Violation> {
        let mut found = Vec::new();
        if !plans.iter().any(|it| matches!(it, Adopted::Schedule(plan) if !plan.starts.is_empty()))
        {
            return found;
        }
        let queue = &core.state().queue;
        let mut waiting: BTreeSet<_> = self.stood.union(queue).copied().collect();
        // Where those were put whose start failed at once: they were there when others passed.
        let mut failed: Vec<&Start> = Vec::new();
        for plan in plans {
            let Adopted::Schedule(plan) = plan else { continue };
            failed.extend(
                plan.starts
                    .iter()
                    .filter(|it| core.state().jobs[it.job].place.as_ref() != Some(&it.place)),
            );
            let keys: BTreeMap<JobId, QueueKey> =
                waiting.iter().map(|(key, job)| (*job, *key)).collect();
            waiting.retain(|it| !plan.starts.iter().any(|start| start.job == it.1));
            // One that started by a later plan of the same input has not waited.
            let Some((key, head)) = waiting.iter().find(|it| is_head(core, it.1)).copied() else {
                continue;
            };
            // Nor is it known since when one has waited that is back in the queue by this input.
            let has_waited = self.stood.contains(&(key, head)) || submitted(core, head).is_some();
            if !queue.contains(&(key, head)) || !has_waited {
                continue;
            }
            let passes = |start: &Start| {
                let stands = keys.get(&start.job).copied();
                let stands = stands.or_else(|| submitted(core, start.job));
                stands.is_some_and(|it| (key, head) < (it, start.job))
            };
            let starts = plan.starts.iter().filter(|it| passes(it));
            let passing: BTreeSet<JobId> = starts.map(|it| it.job).collect();
            let Some(&first) = passing.first() else { continue };
            let Some(before) = earliest(core, head, &passing, &failed) else { continue };
            let nobody = BTreeSet::new();
            let after = earliest(core, head, &nobody, &failed).expect("the same job's need");
            if before < after || before == Moment::NEVER {
                found.push(Violation::HeadDelayed { job: first, head, before, after });
            }
        }
        found
    }

    /// Who starts while one waits that stood before it and asks for the same for no longer.
    fn passed_by_equals(&self, core: &Core, plans: &[Adopted]) -> Vec<Violation> {
        let plans = plans.iter().filter_map(|it| match it {
            Adopted::Schedule(plan) => Some(plan),
            _ => None,
        });
        let started: BTreeSet<JobId> = plans.flat_map(|it| &it.starts).map(|it| it.job).collect();
        if started.is_empty() {
            return Vec::new();
        }
        let (jobs, queue) = (&core.state().jobs, &core.state().queue);
        let new = started.iter().filter_map(|it| Some((submitted(core, *it)?, *it)));
        let stood: BTreeSet<(QueueKey, JobId)> = self.stood.iter().copied().chain(new).collect();
        let longest = |job: JobId| jobs[job].spec.limit.unwrap_or(Span::MAX);
        // Of each demand who of those that still wait may run for the shortest time.
        let mut shortest: BTreeMap<&Demand, JobId> = BTreeMap::new();
        let mut found = Vec::new();
        for (key, job) in stood {
            let known = shortest.get(&jobs[job].spec.demand).copied();
            let is_shorter = known.is_none_or(|it| longest(job) < longest(it));
            if started.contains(&job) {
                let passed = known.filter(|it| longest(*it) <= longest(job));
                found.extend(passed.map(|stood| Violation::PassedByEqual { job, stood }));
            } else if is_shorter && queue.contains(&(key, job)) {
                shortest.insert(&jobs[job].spec.demand, job);
            }
        }
        found
    }

    /// Whoever is being moved loses what a move takes at most, and no owner more than its share.
    fn moved(&mut self, core: &Core, number: u64) -> Vec<Violation> {
        let state = core.state();
        let (now, settings) = (state.now, &state.settings);
        let n_before = self.losses.len();
        for &job in &state.active {
            let known = &state.jobs[job];
            let (Some(place), Some(_)) = (&known.place, &known.next) else { continue };
            let is_same = |it: &Loss| it.job == job && it.attempt == known.attempt;
            if self.losses.iter().rev().any(is_same) {
                continue;
            }
            let each = settings.notice + settings.grace + settings.setup_max;
            let lost = each.times(u64::from(place.n_seats()));
            let (attempt, owner) = (known.attempt, known.spec.owner.clone());
            self.losses.push(Loss { number, at: now, job, attempt, owner, lost });
        }
        let owners: BTreeSet<&str> =
            self.losses[n_before..].iter().map(|it| it.owner.as_str()).collect();
        let mut found = Vec::new();
        for owner in owners {
            let lately = self
                .losses
                .iter()
                .filter(|it| it.owner == owner && now.since(it.at) <= settings.moves_window);
            let lost = lately.fold(Span::ZERO, |acc, it| acc + it.lost);
            let jobs = state.active.iter().map(|it| &state.jobs[*it]);
            let chips: u64 = (jobs.filter(|it| it.spec.owner == owner))
                .filter_map(|it| it.place.as_ref())
                .map(|it| u64::from(it.n_seats()))
                .sum();
            let runs = u128::from(settings.moves_window.as_nanos()) * u128::from(chips);
            let may = runs * u128::from(settings.moves_share.parts()) / 1_000_000;
            if may < u128::from(lost.as_nanos()) {
                let may = Span::nanos(u64::try_from(may).unwrap_or(u64::MAX));
                found.push(Violation::ShareOverdrawn { owner: owner.to_owned(), lost, may });
            }
        }
        found
    }
}

/// Whether others may only pass `job` if that does not delay it: not if it waits for a repair.
fn is_head(core: &Core, job: JobId) -> bool {
    let backfills = core.state().settings.means.backfill;
    !backfills || Room::idle(core).holds(core, job).unwrap_or(true)
}

/// The first that waits, but for those that wait for a repair, fits nowhere now.
fn left_standing(core: &Core) -> Option<Violation> {
    let (_, head) = core.state().queue.iter().find(|it| is_head(core, it.1)).copied()?;
    let mut room = Room::idle(core);
    for &active in &core.state().active {
        let known = &core.state().jobs[active];
        known.place.iter().chain(&known.next).for_each(|it| room.take(&it.holds));
    }
    room.holds(core, head)?.then_some(Violation::LeftStanding { job: head })
}

/// Where a job stood in the queue that was submitted by the input that is being handled.
fn submitted(core: &Core, job: JobId) -> Option<QueueKey> {
    let (state, known) = (core.state(), &core.state().jobs[job]);
    let is_new = known.submitted == state.now && known.attempt <= 1;
    let ahead = i128::from(state.settings.aging.as_nanos()) * i128::from(known.spec.priority);
    let rank = i128::from(known.submitted.as_nanos()) - ahead;
    is_new.then_some(QueueKey { unclaimed: true, rank })
}

/// The moment from which `job` fits if everybody stays as long as their limits let them, those of
/// `gone` left out and those of `failed` counted as if they were still there; `NEVER` if that needs
/// somebody without a limit to end, or a repair.  Nothing where the judge does not know how the
/// need is placed.
fn earliest(core: &Core, job: JobId, gone: &BTreeSet<JobId>, failed: &[&Start]) -> Option<Moment> {
    let state = core.state();
    let mut room = Room::idle(core);
    let mut leaving: Vec<(Moment, &[Hold])> = Vec::new();
    for start in failed.iter().filter(|it| !gone.contains(&it.job)) {
        room.take(&start.place.holds);
        let settings = &state.settings;
        let busy = settings.setup_max + settings.notice + settings.grace;
        let limit = state.jobs[start.job].spec.limit;
        let at = limit.map_or(Moment::NEVER, |limit| state.now + busy + limit);
        leaving.push((at, &start.place.holds));
    }
    for &active in state.active.iter().filter(|it| !gone.contains(it)) {
        let known = &state.jobs[active];
        if let Some(next) = &known.next {
            room.take(&next.holds);
        }
        if let Some(place) = &known.place {
            room.take(&place.holds);
            leaving.push((leaves_by(core, known), &place.holds));
        }
    }
    leaving.sort_by_key(|it| it.0);
    if room.holds(core, job)? {
        return Some(state.now);
    }
    for (at, holds) in leaving.into_iter().filter(|it| it.0 < Moment::NEVER) {
        room.give(holds);
        if room.holds(core, job)? {
            return Some(at.max(state.now));
        }
    }
    Some(Moment::NEVER)
}

/// When a job has left what it holds, by its limit.
fn leaves_by(core: &Core, known: &Job) -> Moment {
    let settings = &core.state().settings;
    let stop = settings.notice + settings.grace;
    match (&known.state, known.spec.limit) {
        (JobState::Stopping { kill_at, .. }, _) => *kill_at + settings.grace,
        (_, None) => Moment::NEVER,
        (JobState::Running { since }, Some(limit)) => *since + limit + stop,
        (_, Some(limit)) => known.placed_at + settings.setup_max + limit + stop,
    }
}

/// What of each part is taken, by the jobs' own word on where they are.
struct Room {
    taken: Vec<u64>,
}

impl Room {
    /// Nobody holds anything.
    fn idle(core: &Core) -> Self {
        Self { taken: vec![0; core.state().parts.len()] }
    }

    fn take(&mut self, holds: &[Hold]) {
        holds.iter().for_each(|it| self.taken[it.part.idx()] |= it.seats);
    }

    fn give(&mut self, holds: &[Hold]) {
        holds.iter().for_each(|it| self.taken[it.part.idx()] &= !it.seats);
    }

    /// Whether some pool has room for `job`.
    fn holds(&self, core: &Core, job: JobId) -> Option<bool> {
        let (fabric, layout) = (core.fabric(), core.layout());
        let demand = &core.state().jobs[job].spec.demand;
        let mut pools = layout.pools.ids();
        let serves = |pool: &PoolId| family::serves(fabric, layout, *pool, demand);
        match core.need_of(job).as_ref() {
            // Which parts go together where a cable between them is dead is not known here.
            Need::Whole { .. } if core.state().parts.iter().any(|it| !it.cut.is_empty()) => None,
            Need::Whole { n_parts } => Some(pools.any(|pool| {
                let parts = layout.pools[pool].iter().filter(|it| {
                    let known = &core.state().parts[**it];
                    let sound =
                        known.out == 0 && known.links_out.is_empty() && known.outer_out == 0;
                    sound && self.taken[it.idx()] == 0
                });
                serves(&pool) && *n_parts as usize <= parts.count()
            })),
            Need::Within { masks } => Some(pools.any(|pool| {
                let mut parts = layout.pools[pool].iter();
                serves(&pool)
                    && parts.any(|it| {
                        let known = &core.state().parts[*it];
                        let taken = self.taken[it.idx()] | known.out | !layout.seats[*it];
                        let is_whole =
                            |mask: u64| known.links_out.iter().all(|ends| ends & mask != *ends);
                        masks.iter().any(|mask| taken & mask == 0 && is_whole(*mask))
                    })
            })),
            Need::Partition(_) => None,
        }
    }
}
