//! The core's answers to "why" and "when".

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use selvedge_family::torus::shape::ShapeError;
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Demand, JobSpec, Need, Work};
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Span};

use crate::core::{Core, Refused, fabric_of};
use crate::family;
use crate::note::{CaseState, Owner};
use crate::schedule::Waiting;
use crate::schedule::explain::{self, Forecast, Never, Outages, Step, TooLong};
use crate::schedule::promise::Promise;
use crate::state::{Drain, Job, JobState, State, Timer};

/// Why a job is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Which.
    pub job: JobId,
    /// `queued`, `running`, …
    pub state: String,
    /// How many jobs stand before it in the queue.
    pub n_ahead: usize,
    /// What it needs, in parts or seats.
    pub need: Need,
    /// For each pool that could serve it, how many whole parts are free and sound (on a grid
    /// also beside a dead cable), and how many
    /// there are.
    pub room: Vec<(String, usize, usize)>,
    /// What all together would let it start now; each is needed.  None if it does not wait, or
    /// if nothing of this would be enough.
    pub steps: Result<Option<Vec<Step>>, TooLong>,
    /// When it starts by the limits if nothing is done.
    pub forecast: Option<Forecast>,
    /// What it was promised, if it is the head of the queue.
    pub promise: Option<Promise>,
}

impl Core {
    /// Why `job` waits and what would let it start.
    pub fn explain(&self, job: JobId) -> Option<Explanation> {
        let known = self.state.jobs.get(job)?;
        let need = self.need_of(job).as_ref().clone();
        let demand = &known.spec.demand;
        let pools = self.layout.pools.pairs();
        let serving =
            pools.filter(|(pool, _)| family::serves(&self.fabric, &self.layout, *pool, demand));
        let free = crate::capacity::Capacity::now(&self.layout, &self.state.parts);
        let room = serving
            .map(|(pool, parts)| {
                (self.fabric.pools()[pool].clone(), free.n_free(pool), parts.len())
            })
            .collect();
        let mut explanation = Explanation {
            job,
            state: known.state.word().to_owned(),
            n_ahead: self.n_ahead(job),
            need,
            room,
            steps: Ok(None),
            forecast: None,
            promise: self
                .head
                .as_ref()
                .filter(|it| it.job == job)
                .and_then(|it| it.promise.clone()),
        };
        if let JobState::Queued { .. } = known.state {
            explanation.steps = self.steps_for(job);
            explanation.forecast = Some(self.forecast_of(job));
        } else {
            explanation.n_ahead = 0;
        }
        Some(explanation)
    }

    /// A copy that can be asked what would be, while this core goes on.  Of what is over it knows
    /// only that it is; it is good for questions about jobs that wait or do not exist, and for
    /// nothing else.
    pub fn apart(&self) -> Self {
        let state = &self.state;
        let mut jobs = IdVec::new();
        for job in state.jobs.iter() {
            jobs.push(if job.state.is_over() { faded(job) } else { job.clone() });
        }
        let state = State {
            now: state.now,
            settings: state.settings.clone(),
            // The hardware is built already.
            plants: vec![String::new(); state.plants.len()],
            jobs,
            keys: BTreeMap::new(),
            key_order: BTreeMap::new(),
            queue: state.queue.clone(),
            active: state.active.clone(),
            parts: state.parts.clone(),
            switches: state.switches.clone(),
            drains: state.drains.clone(),
            set_aside: state.set_aside.clone(),
            cases: state.cases.clone(),
            open_cases: state.open_cases.clone(),
            sightings: BTreeMap::new(),
            marks: BTreeMap::new(),
            breaker: Vec::new(),
            maintenances: state.maintenances.clone(),
            wirings: state.wirings.clone(),
            awaited: state.awaited.clone(),
            seen: BTreeMap::new(),
            generation: state.generation,
            n_plans: state.n_plans,
            timers: state.timers.clone(),
            deadlines: state.deadlines.clone(),
            moves: state.moves.clone(),
            proposal: state.proposal.clone(),
            planning: state.planning,
            n_requests: state.n_requests,
            strays: state.strays.clone(),
            attempts_seen: state.attempts_seen,
        };
        Self {
            state,
            fabric: Arc::clone(&self.fabric),
            layout: Arc::clone(&self.layout),
            needs: self.needs.clone(),
            needs_of: self.needs_of.clone(),
            tables: self.tables.clone(),
            outputs: VecDeque::new(),
            adopted: Vec::new(),
            replaying: None,
            dirty: self.dirty,
            wake: self.wake,
            head: self.head.clone(),
            question: None,
            planned: None,
        }
    }

    /// When a job that came now would start.
    ///
    /// # Errors
    /// What a submit of it would be refused for.
    pub fn dry_run(&self, spec: &JobSpec) -> Result<Forecast, Refused> {
        match self.acceptable(spec) {
            Err(Refused::TooLarge { n_parts, .. }) => {
                return Ok(Forecast::Never { why: Never::TooLarge { n_parts } });
            }
            // So large a shape fits no pod of its kind, whatever the plant.
            Err(Refused::Demand(family::DemandError::Shape(ShapeError::TooLarge { .. }))) => {
                let pools = self.layout.pools.pairs();
                let serving = pools.filter(|(pool, _)| {
                    family::serves(&self.fabric, &self.layout, *pool, &spec.demand)
                });
                let n_parts = serving.map(|(_, parts)| parts.len()).max().unwrap_or(0);
                return Ok(Forecast::Never { why: Never::TooLarge { n_parts } });
            }
            Err(refused) => return Err(refused),
            Ok(_) => (),
        }
        // The fork is told to submit it; what it does with it stays in the fork.
        let mut fork = self.apart();
        let ask = crate::input::Ask::Submit { key: None, spec: spec.clone() };
        let input = crate::input::Input::Ask { by: "dry run".to_owned(), what: ask };
        let means = fork.state.settings.means;
        fork.state.settings.means.preempt = false;
        fork.state.settings.means.defragment = false;
        let accepted = fork.handle(self.state.now, input)?;
        fork.state.settings.means = means;
        let super::Accepted::Job(job) = accepted else { unreachable!("a submit makes a job") };
        let known = &fork.state.jobs[job];
        if let (JobState::Starting { .. }, Some(place)) = (&known.state, &known.place) {
            return Ok(Forecast::Now { place: place.clone() });
        }
        Ok(fork.forecast_of(job))
    }

    /// What becomes of a new plant file, were it applied to these versions; a copy can be asked,
    /// which has the hardware but not their texts.
    ///
    /// # Errors
    /// What `plant apply` would be refused for.
    pub fn would_apply(&self, mut plants: Vec<String>, plant: String) -> Result<(), Refused> {
        plants.push(plant);
        self.untouched(&fabric_of(&plants)?)
    }

    fn forecast_of(&self, job: JobId) -> Forecast {
        let JobState::Queued { held: true, .. } = self.state.jobs[job].state else {
            return self.forecast_of_free(job);
        };
        // Nobody knows when it is released, and what then would be is no more than a guess.
        let release = Step::Release { job };
        match self.forecast_of_free(job) {
            Forecast::Now { .. } | Forecast::At { .. } => {
                Forecast::Unknown { steps: vec![release] }
            }
            Forecast::Unknown { mut steps } => {
                steps.insert(0, release);
                Forecast::Unknown { steps }
            }
            other @ (Forecast::Never { .. } | Forecast::TooLong) => other,
        }
    }

    /// The same, were it not held.
    fn forecast_of_free(&self, job: JobId) -> Forecast {
        let coming = self.coming(job);
        let comes = coming.iter().any(|it| it.1.job == job);
        let queue = self.queue_with((!comes).then_some(job));
        let outages = self.outages();
        let busy = self.busy_rows();
        self.with_view(&busy, |view| explain::forecast(view, &queue, job, &outages, &coming))
    }

    /// How many stand, or would stand, before `job`.
    fn n_ahead(&self, job: JobId) -> usize {
        let key = (self.queue_key(job), job);
        self.state.queue.iter().take_while(|it| **it < key).count()
    }

    /// Jobs that failed lately, each with the moment from which it is tried again.  One that waits
    /// on its parts does not come into the queue, unless it is the one that is asked about.
    fn coming(&self, asked: JobId) -> Vec<(Moment, Waiting<'_>)> {
        let deadlines = self.state.deadlines.keys();
        let jobs = deadlines.filter_map(|it| match it {
            Timer::Job(job) => Some(*job),
            Timer::Case(_) | Timer::Switch(_) | Timer::Plan | Timer::Breaker | Timer::Strays => {
                None
            }
        });
        let comes = |job: JobId| {
            let known = &self.state.jobs[job];
            let JobState::Queued { not_before, held: false, .. } = known.state else { return None };
            let joins = known.place.is_none() || job == asked;
            (joins && self.state.now < not_before).then(|| (not_before, self.waiting(job)))
        };
        jobs.filter_map(comes).collect()
    }

    /// What is out of use, and when what of it is back that comes back by itself.
    fn outages(&self) -> Outages {
        let targets = self.out_of_use();
        let returning = targets.iter().filter_map(|&it| Some((it, self.returns_by(it)?)));
        let returning = returning.collect();
        Outages { returning, ..Outages::of(&self.fabric, targets.iter()) }
    }

    /// All that wait, with `job` in its place, also if it is held or waits for a spare on its
    /// parts.
    fn queue_with(&self, job: Option<JobId>) -> Vec<Waiting<'_>> {
        let all = self.state.queue.iter();
        let mut queue: Vec<Waiting<'_>> = all.map(|(_, job)| self.waiting(*job)).collect();
        if let Some(job) = job
            && !queue.iter().any(|it| it.job == job)
        {
            let at = self.n_ahead(job).min(queue.len());
            queue.insert(at, self.waiting(job));
        }
        queue
    }

    fn steps_for(&self, job: JobId) -> Result<Option<Vec<Step>>, TooLong> {
        let JobState::Queued { not_before, held, .. } = self.state.jobs[job].state else {
            return Ok(None);
        };
        let mut itself: Vec<Step> = Vec::new();
        if held {
            itself.push(Step::Release { job });
        }
        if self.state.now < not_before {
            itself.push(Step::Wait { until: not_before });
        }
        let queue = self.queue_with(Some(job));
        let busy = self.busy_rows();
        let ahead: Vec<JobId> = queue.iter().map(|it| it.job).take_while(|it| *it != job).collect();
        let mut running: Vec<(u32, JobId)> = busy
            .iter()
            .map(|it| (it.holds.iter().map(|hold| hold.seats.count_ones()).sum(), it.job))
            .collect();
        // Dearest first: the search does without these if it can.
        running.sort_unstable_by(|a, b| b.cmp(a));
        let mut candidates: Vec<Step> = running.iter().map(|it| Step::End { job: it.1 }).collect();
        candidates.extend(ahead.iter().rev().map(|&job| Step::Hold { job }));
        let outages = self.outages();
        let returning = &outages.returning;
        // What comes back by itself costs nothing but time.
        let (alone, others): (Vec<Target>, Vec<Target>) =
            outages.out.keys().partition(|it| returning.contains_key(it));
        candidates.extend(others.iter().chain(&alone).map(|&target| Step::Return { target }));
        let steps =
            self.with_view(&busy, |view| explain::steps(view, &queue, job, &outages, &candidates))?;
        let Some(steps) = steps else { return Ok(None) };
        let waits = |step: &Step| match step {
            Step::Return { target } => returning.get(target).copied(),
            _ => None,
        };
        if let Some(until) = steps.iter().filter_map(waits).max() {
            itself.push(Step::Wait { until });
        }
        itself.extend(steps.into_iter().filter(|it| waits(it).is_none()));
        Ok(Some(itself))
    }

    /// When a target that nobody holds back is in use again, at the latest: it is being verified,
    /// or on probation.
    fn returns_by(&self, target: Target) -> Option<Moment> {
        let settings = &self.state.settings;
        let returns = |drain: &Drain| {
            let Owner::Case(case) = drain.by else { return None };
            match self.state.cases[case].state {
                CaseState::Probation { until } => Some(until),
                CaseState::Verifying => {
                    let verified = settings.exercise_max.times(2) + settings.answer_max;
                    Some(self.state.cases[case].since + verified + settings.probation)
                }
                _ => None,
            }
        };
        let drains = self.state.drains.get(&target)?;
        drains.iter().map(returns).try_fold(Moment::START, |acc, it| Some(acc.max(it?)))
    }

    /// The parts that a running or starting job holds, by name, for people.
    pub fn part_names(&self, job: JobId) -> Vec<(PartId, &str)> {
        let place = self.state.jobs.get(job).and_then(|it| it.place.as_ref());
        let holds = place.into_iter().flat_map(|it| &it.holds);
        holds.map(|it| (it.part, &*self.fabric.part(it.part).name)).collect()
    }
}

/// Of a job that is over, that it is: nothing that takes room.
fn faded(job: &Job) -> Job {
    let spec = JobSpec {
        name: String::new(),
        owner: String::new(),
        project: String::new(),
        demand: Demand::Parts(0),
        work: Work::Simulated {
            duration: Span::ZERO,
            step: Span::ZERO,
            checkpoint_every: Span::ZERO,
        },
        ..job.spec
    };
    Job {
        spec,
        by: String::new(),
        state: job.state.clone(),
        place: None,
        next: None,
        tasks: Vec::new(),
        timeline: Vec::new(),
        ..*job
    }
}
