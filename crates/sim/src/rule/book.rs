//! What people were promised, kept beside the core: their drains, holds and cancellations.
//!
//! A deed counts from the moment at which its record is durable; what a crash takes was never
//! promised.

use std::collections::BTreeSet;

use selvedge_control::core::Core;
use selvedge_control::input::{Ask, Input, JobOrder};
use selvedge_control::note::Owner;
use selvedge_control::state::JobState;
use selvedge_model::fabric::Fabric;
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;

use super::Violation;
use super::reach;

/// Something that a person has done.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Drained { target: Target, by: String },
    Undrained { target: Target, by: String },
    Held(JobId),
    Released(JobId),
    Cancelled(JobId),
}

impl Deed {
    /// The deed in an input, if it is one that the book keeps.
    pub(crate) fn of(fabric: &Fabric, input: &Input) -> Option<Self> {
        let Input::Ask { by, what } = input else { return None };
        let by = by.clone();
        match what {
            &Ask::Drain { target, .. } => {
                Some(Deed::Drained { target: reach::anchor(fabric, target), by })
            }
            &Ask::Undrain { target } => {
                Some(Deed::Undrained { target: reach::anchor(fabric, target), by })
            }
            &Ask::Job { job, order: JobOrder::Hold } => Some(Deed::Held(job)),
            &Ask::Job { job, order: JobOrder::Release } => Some(Deed::Released(job)),
            &Ask::Job { job, order: JobOrder::Cancel } => Some(Deed::Cancelled(job)),
            _other => None,
        }
    }
}

/// The book.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// Deeds whose records are not known to be durable.
    open: Vec<(u64, Deed)>,
    /// What is drained by whom: things by their anchors, which stay when fibres move.
    drains: BTreeSet<(Target, String)>,
    held: BTreeSet<JobId>,
    cancelled: BTreeSet<JobId>,
}

impl Book {
    pub(super) fn note(&mut self, number: u64, deed: Deed) {
        self.open.push((number, deed));
    }

    /// All records up to this one are durable.
    pub(super) fn synced(&mut self, number: u64) {
        let open = std::mem::take(&mut self.open);
        let (done, open) = open.into_iter().partition(|it| it.0 <= number);
        self.open = open;
        done.into_iter().for_each(|(_, deed)| self.enter(deed));
    }

    /// The power failed; nothing after this record is left.
    pub(super) fn crashed(&mut self, newest: u64) {
        self.synced(newest);
        self.open.clear();
    }

    fn enter(&mut self, deed: Deed) {
        match deed {
            Deed::Drained { target, by } => drop(self.drains.insert((target, by))),
            Deed::Undrained { target, by } => drop(self.drains.remove(&(target, by))),
            Deed::Held(job) => drop(self.held.insert(job)),
            Deed::Released(job) => drop(self.held.remove(&job)),
            Deed::Cancelled(job) => drop(self.cancelled.insert(job)),
        }
    }

    /// Whether somebody has cancelled this job.
    pub(super) fn has_cancelled(&self, job: JobId) -> bool {
        self.cancelled.contains(&job)
    }

    /// Holds the core against the book.
    pub(super) fn check(&mut self, core: &Core) -> Vec<Violation> {
        let (state, fabric) = (core.state(), core.fabric());
        // A drain ends with a thing that has left the plant.
        self.drains.retain(|(target, _)| reach::is_there(fabric, *target));
        let mut found = Vec::new();
        let stands = |target: &Target, by: &str| {
            let drains = state.drains.get(&reach::named(fabric, *target)).into_iter().flatten();
            drains.into_iter().any(|it| it.by == Owner::Person(by.to_owned()))
        };
        for (target, by) in self.drains.iter().filter(|it| !stands(&it.0, &it.1)) {
            let path = fabric.path(*target);
            found.push(Violation::DrainTaken { path, by: by.clone() });
        }
        for (&target, drains) in &state.drains {
            for drain in drains {
                let Owner::Person(by) = &drain.by else { continue };
                if !self.drains.contains(&(reach::anchor(fabric, target), by.clone())) {
                    let path = fabric.path(target);
                    found.push(Violation::DrainUnasked { path, by: by.clone() });
                }
            }
        }
        for &job in &self.held {
            let Some(known) = state.jobs.get(job) else { continue };
            let waits = matches!(known.state, JobState::Queued { held: true, .. });
            if !waits && !known.state.is_over() {
                found.push(Violation::HoldIgnored { job, word: known.state.word() });
            }
        }
        for &job in &self.cancelled {
            let Some(known) = state.jobs.get(job) else { continue };
            let leaves = matches!(known.state, JobState::Stopping { .. });
            if !leaves && !known.state.is_over() {
                found.push(Violation::CancelIgnored { job, word: known.state.word() });
            }
        }
        found
    }
}
