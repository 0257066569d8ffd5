//! What a run comes to: one object, the same for the same seed.

use serde::Serialize;

use selvedge_control::core::Core;
use selvedge_control::state::JobState;
use selvedge_model::fabric::Role;
use selvedge_model::unit::{Moment, Span};

use crate::tally::Availability;
use crate::trace::Cell;
use crate::world::World;

/// How jobs ended; the five after the first add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobCounts {
    /// Handed in.
    pub submitted: u64,
    /// Done.
    pub finished: u64,
    /// Ended without success.
    pub failed: u64,
    /// Not accepted.
    pub refused: u64,
    /// Ended by somebody.
    pub cancelled: u64,
    /// Neither over nor refused: those that still held hardware or waited when the run was ended,
    /// and those, never any, that were accepted and are known no more.
    pub lost: u64,
    /// Of the lost ones, those that held hardware when the run was ended.
    pub running: u64,
    /// Of the lost ones, those that waited when the run was ended.
    pub waiting: u64,
}

/// Seconds from submitting to the first start, or to the end of a job that never started.  One
/// that still waited when the run was ended counts with what it had waited: were there any, the
/// figures are lower bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// On average.
    pub mean: f64,
    /// Half wait no longer.
    pub p50: f64,
    /// Of a hundred, one waits longer.
    pub p99: f64,
}

/// How many faults of one kind there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    /// Which.
    pub kind: &'static str,
    /// How many.
    pub n: u64,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// For all dice.
    pub seed: u64,
    /// Of the core's last state and of all that passed.
    pub digest: String,
    /// How jobs ended.
    pub jobs: JobCounts,
    /// Rules that were broken.
    pub violations: u64,
    /// The first of them, in words.
    pub violation_list: Vec<String>,
    /// Share of chip-time that jobs held, until the last one ended or, where some had not, until
    /// the run was ended.
    pub utilisation: f64,
    /// The same until the last job arrived, or the run was ended before: what no single job that
    /// stays long after the others changes.
    pub utilisation_to_last_arrival: f64,
    /// How long jobs waited.
    pub wait_s: Waits,
    /// Share of jobs that ran and were interrupted by a fault.
    pub interrupted: f64,
    /// Kept work by the chip-time that jobs held; of those that still ran when the run was ended,
    /// what their last checkpoint holds.
    pub goodput: f64,
    /// How often slices of each size could be placed.
    pub availability: Vec<Availability>,
    /// Repairs finished.
    pub repairs: u64,
    /// Cases opened.
    pub cases: u64,
    /// Jobs that gave way to others.
    pub preemptions: u64,
    /// Defragmentations carried out.
    pub moves: u64,
    /// Faults that happened.
    pub faults: Vec<FaultCount>,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Inputs that were accepted.
    pub inputs: u64,
    /// Commands to devices.
    pub commands: u64,
    /// Polls that switches answered, nearly all of them by this counter.
    pub polls: u64,
    /// Polls that switches did not answer.
    pub polls_missed: u64,
    /// Times that the power failed.
    pub crashes: u64,
}

impl World {
    /// Chip-seconds that jobs have held until `until`, before which nothing has changed since the
    /// last event.
    pub(crate) fn held_until(&self, until: Moment) -> f64 {
        let core = self.core();
        let jobs = core.state().jobs.pairs().map(|(job_id, job)| {
            let holds = job.place.as_ref().map_or(Span::ZERO, |_| until.since(job.placed_at));
            (job.allocated + holds).as_secs_f64() * f64::from(n_seats(core, job_id))
        });
        jobs.sum()
    }

    /// What the run came to, as it stands now.
    pub fn summary(&self, seed: u64) -> Summary {
        let (core, tally, now) = (self.core(), self.tally(), self.now());
        let jobs = &core.state().jobs;
        let mut counts = JobCounts {
            submitted: tally.n_submitted,
            refused: tally.n_refused_jobs,
            ..JobCounts::default()
        };
        let mut waits: Vec<f64> = Vec::new();
        let (mut held, mut kept, mut n_started, mut n_interrupted) = (0.0, 0.0, 0u64, 0u64);
        let mut last_end = Moment::START;
        for (job_id, job) in jobs.pairs() {
            match job.state {
                JobState::Finished => counts.finished += 1,
                JobState::Failed { .. } => counts.failed += 1,
                JobState::Cancelled => counts.cancelled += 1,
                JobState::Queued { .. } => counts.waiting += 1,
                JobState::Starting { .. }
                | JobState::Running { .. }
                | JobState::Stopping { .. } => counts.running += 1,
            }
            last_end = last_end.max(job.ended.unwrap_or(now));
            let waited_to = job.first_started.or(job.ended).unwrap_or(now);
            waits.push(waited_to.since(job.submitted).as_secs_f64());
            let n_seats = f64::from(n_seats(core, job_id));
            let (duration, step, _) = job.spec.work.steps();
            // What it holds at the end is entered among what it held only when it gives it up.
            let holds = job.place.as_ref().map_or(Span::ZERO, |_| now.since(job.placed_at));
            held += (job.allocated + holds).as_secs_f64() * n_seats;
            let task = self.plant().tasks().of(job_id).filter(|it| it.is_live());
            let n_kept = task.map_or(job.kept, |it| it.kept_at_death(now));
            kept += step.times(n_kept).min(duration).as_secs_f64() * n_seats;
            n_started += u64::from(job.first_started.is_some());
            n_interrupted += u64::from(job.n_interrupted != 0);
        }
        let n_over = counts.finished + counts.failed + counts.refused + counts.cancelled;
        counts.lost = tally.n_submitted.saturating_sub(n_over);
        let chips = cell_of(core).n_chips as f64;
        Summary {
            seed,
            digest: format!("{:016x}", core.digest() ^ tally.running),
            jobs: counts,
            violations: self.rules().n_found(),
            violation_list: self.rules().list().iter().map(ToString::to_string).collect(),
            utilisation: ratio(held, chips * last_end.as_secs_f64()),
            utilisation_to_last_arrival: {
                let (until, held) = self.held_until_last_arrival();
                ratio(held, chips * until.as_secs_f64())
            },
            wait_s: waits_of(waits),
            interrupted: ratio(n_interrupted as f64, n_started as f64),
            goodput: ratio(kept, held),
            availability: tally.availability(core),
            repairs: tally.n_repairs,
            cases: tally.n_cases,
            preemptions: tally.n_preempted,
            moves: tally.n_moves,
            faults: (crate::fault::FaultKind::ALL.iter().zip(self.plant().n_faults()))
                .map(|(kind, n)| FaultCount { kind: kind.word(), n })
                .collect(),
            simulated_s: now.as_secs_f64(),
            inputs: tally.n_inputs,
            commands: tally.n_commands,
            polls: self.plant().n_polls(now),
            polls_missed: self.plant().n_polls_missed(now),
            crashes: tally.n_crashes,
        }
    }
}

/// How many chips there are, and how many in the largest pod.
pub fn cell_of(core: &Core) -> Cell {
    let fabric = core.fabric();
    let seats = |id| match fabric.template_of(id) {
        it if it.role == Role::Compute => it.seats().len() as u64,
        _ => 0,
    };
    let parts = fabric.parts().pairs().filter(|(_, part)| !part.retired);
    let pods = core.layout().pools.iter();
    Cell {
        n_chips: parts.map(|(id, _)| seats(id)).sum(),
        largest_pod: pods.map(|it| it.iter().map(|&id| seats(id)).sum()).max().unwrap_or(0),
    }
}

fn n_seats(core: &Core, job: selvedge_model::id::JobId) -> u32 {
    let part_seats = core.fabric().templates().iter().map(|it| it.seats().len()).max();
    core.need_of(job).n_seats(part_seats.unwrap_or(0) as u32)
}

fn waits_of(mut waits: Vec<f64>) -> Waits {
    if waits.is_empty() {
        return Waits::default();
    }
    waits.sort_by(f64::total_cmp);
    let at = |per_mille: usize| waits[(waits.len() * per_mille).div_ceil(1000).max(1) - 1];
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    Waits { mean, p50: at(500), p99: at(990) }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}
