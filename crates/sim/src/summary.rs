//! What a run comes to: one object, the same for the same seed.

use serde::Serialize;

use selvedge_control::core::Core;
use selvedge_control::state::JobState;
use selvedge_model::fabric::Role;
use selvedge_model::unit::Moment;

use crate::tally::Availability;
use crate::world::World;

/// How jobs ended; the last five add up to the first.
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
    /// Accepted, and neither over nor known any more, or not over at the end of the run.
    pub lost: u64,
}

/// Seconds from submitting to the first start.
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
    /// Share of chip-time that jobs held, until the last one ended.
    pub utilisation: f64,
    /// How long jobs waited.
    pub wait_s: Waits,
    /// Share of jobs that ran and were interrupted by a fault.
    pub interrupted: f64,
    /// Kept work by the chip-time that jobs held.
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
    /// Polls of switches, nearly all of them answered by this counter.
    pub polls: u64,
    /// Times that the power failed.
    pub crashes: u64,
}

impl World {
    /// What the run came to, as it stands now.
    pub fn summary(&self, seed: u64) -> Summary {
        let (core, tally) = (self.core(), self.tally());
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
                JobState::Queued { .. }
                | JobState::Starting { .. }
                | JobState::Running { .. }
                | JobState::Stopping { .. } => counts.lost += 1,
            }
            last_end = last_end.max(job.ended.unwrap_or(self.now()));
            if let Some(first) = job.first_started.or(job.ended) {
                waits.push(first.since(job.submitted).as_secs_f64());
            }
            let n_seats = f64::from(n_seats(core, job_id));
            let (duration, step, _) = job.spec.work.steps();
            held += job.allocated.as_secs_f64() * n_seats;
            kept += step.times(job.kept).min(duration).as_secs_f64() * n_seats;
            n_started += u64::from(job.first_started.is_some());
            n_interrupted += u64::from(job.n_interrupted != 0);
        }
        counts.lost += tally.n_submitted.saturating_sub(
            counts.finished + counts.failed + counts.refused + counts.cancelled + counts.lost,
        );
        let chips = n_chips(core) as f64;
        Summary {
            seed,
            digest: format!("{:016x}", core.digest() ^ tally.running),
            jobs: counts,
            violations: self.rules().n_found(),
            violation_list: self.rules().list().iter().map(ToString::to_string).collect(),
            utilisation: ratio(held, chips * last_end.as_secs_f64()),
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
            simulated_s: self.now().as_secs_f64(),
            inputs: tally.n_inputs,
            commands: tally.n_commands,
            polls: self.plant().n_polls(self.now()),
            crashes: tally.n_crashes,
        }
    }
}

/// Chips of all parts that jobs run on.
pub fn n_chips(core: &Core) -> u64 {
    let fabric = core.fabric();
    let parts = fabric.parts().pairs().filter(|(_, part)| !part.retired);
    let roles = parts.map(|(id, _)| fabric.template_of(id));
    roles.filter(|it| it.role == Role::Compute).map(|it| it.seats().len() as u64).sum()
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
