//! What is counted while a world runs.

use serde::Serialize;

use selvedge_control::core::{Core, Refused};
use selvedge_control::note::{CaseState, Note, StopWhy};
use selvedge_model::fabric::Role;
use selvedge_model::unit::{Moment, Span};

use crate::order::OrderKind;

/// For how much of the time a slice of so many whole parts could have been placed, had they all
/// been free, on parts that the core knew to be sound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Availability {
    /// Parts of the slice.
    pub parts: u32,
    /// Its chips.
    pub chips: u32,
    /// The share of the time.
    pub share: f64,
}

/// What is counted while a world runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Inputs that were accepted.
    pub n_inputs: u64,
    /// Inputs that were refused because nobody waited for them.
    pub n_stale: u64,
    /// Inputs that were refused for another reason.
    pub n_refused: u64,
    /// Inputs that came while the process was down.
    pub n_lost_inputs: u64,
    /// Orders of each kind that were accepted, in the order of [`OrderKind::ALL`].
    pub n_orders: [u64; OrderKind::ALL.len()],
    /// Jobs handed in.
    pub n_submitted: u64,
    /// Jobs in the core.
    pub n_accepted: u64,
    /// Jobs that were not accepted.
    pub n_refused_jobs: u64,
    /// Jobs that are over.
    pub n_over: u64,
    /// Commands to devices.
    pub n_commands: u64,
    /// Plans that were asked for and never came.
    pub n_plans_lost: u64,
    /// Times that the power failed.
    pub n_crashes: u64,
    pub(crate) n_repairs: u64,
    pub(crate) n_cases: u64,
    pub(crate) n_preempted: u64,
    pub(crate) n_moves: u64,
    /// Of all notes in their order.
    pub(crate) running: u64,
    /// For each pool, samples in which so many parts were sound.
    sound: Vec<Vec<u64>>,
    n_samples: u64,
}

/// How often the soundness of parts is sampled.
const SAMPLE_EVERY: Span = Span::hours(1);

impl Tally {
    pub(crate) fn refuse(&mut self, refused: &Refused) {
        match refused {
            Refused::Stale | Refused::NothingDue => self.n_stale += 1,
            _other => self.n_refused += 1,
        }
    }

    pub(crate) fn note(&mut self, note: &Note) {
        let word = match note {
            Note::JobFinished { job } | Note::JobFailed { job, .. } => {
                self.n_over += 1;
                u64::from(job.number())
            }
            Note::JobCancelled { job, .. } => {
                self.n_over += 1;
                u64::from(job.number()) << 1
            }
            Note::CaseOpened { case, .. } => {
                self.n_cases += 1;
                u64::from(case.number())
            }
            Note::CaseMoved { state: CaseState::Closed, case } => {
                self.n_repairs += 1;
                u64::from(case.number())
            }
            Note::JobNotified { why: StopWhy::Preempted { .. }, job, .. } => {
                self.n_preempted += 1;
                u64::from(job.number())
            }
            Note::MovesAdopted { job, .. } => {
                self.n_moves += 1;
                u64::from(job.number())
            }
            Note::JobPlaced { job, attempt, .. } => {
                u64::from(job.number()) << 32 | u64::from(*attempt)
            }
            Note::JobStopped { job, kept, .. } => u64::from(job.number()) ^ kept.rotate_left(20),
            _other => 1,
        };
        self.running = (self.running ^ word).rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Samples what is sound at every full hour that `to` passes.
    pub(crate) fn pass(&mut self, to: Moment, core: &Core) {
        let n_hours = to.since(Moment::START).div(SAMPLE_EVERY);
        if n_hours < self.n_samples {
            return;
        }
        let n_new = n_hours + 1 - self.n_samples;
        self.n_samples = n_hours + 1;
        let fabric = core.fabric();
        self.sound.resize(fabric.pools().len(), Vec::new());
        let mut counts = vec![0usize; self.sound.len()];
        for (part_id, part) in fabric.parts().pairs() {
            let Some(pool) = part.pool else { continue };
            if part.retired || fabric.template_of(part_id).role != Role::Compute {
                continue;
            }
            let state = &core.state().parts[part_id];
            let sound = core.layout().is_sound(pool, state);
            counts[pool.idx()] += usize::from(sound);
        }
        for (samples, n_sound) in self.sound.iter_mut().zip(counts) {
            if samples.len() <= n_sound {
                samples.resize(n_sound + 1, 0);
            }
            samples[n_sound] += n_new;
        }
    }

    pub(crate) fn availability(&self, core: &Core) -> Vec<Availability> {
        let fabric = core.fabric();
        let mut n_parts = vec![0usize; fabric.pools().len()];
        let mut n_seats = 0;
        for (part_id, part) in fabric.parts().pairs() {
            let template = fabric.template_of(part_id);
            if let (Some(pool), Role::Compute) = (part.pool, template.role) {
                n_parts[pool.idx()] += 1;
                n_seats = n_seats.max(template.seats().len() as u32);
            }
        }
        let largest = n_parts.into_iter().max().unwrap_or(0);
        let sizes = std::iter::successors(Some(1usize), |it| Some(it * 2));
        let sizes = sizes.take_while(|&it| it <= largest);
        sizes
            .map(|size| {
                let enough = |samples: &Vec<u64>| samples.iter().skip(size).sum::<u64>();
                let best = self.sound.iter().map(enough).max().unwrap_or(0);
                let share = ratio(best as f64, self.n_samples as f64);
                Availability { parts: size as u32, chips: size as u32 * n_seats, share }
            })
            .collect()
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}
