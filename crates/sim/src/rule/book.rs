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
use selvedge_model::id::JobId;

use super::Violation;
use super::reach;

/// Something that a person has done.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// What is drained goes by the name of what stays of it, which outlives what it names.
    Drained {
        path: String,
        by: String,
    },
    Undrained {
        path: String,
        by: String,
    },
    Held(JobId),
    Released(JobId),
    Cancelled(JobId),
}

impl Deed {
    /// The deed in an input, if it is one that the book keeps.
    pub(crate) fn of(fabric: &Fabric, input: &Input) -> Option<Self> {
        let Input::Ask { by, what } = input else { return None };
        let by = by.clone();
        let path = |target| fabric.path(reach::anchor(fabric, target));
        match what {
            &Ask::Drain { target, .. } => Some(Deed::Drained { path: path(target), by }),
            &Ask::Undrain { target } => Some(Deed::Undrained { path: path(target), by }),
            Ask::UndrainRetired { path } => Some(Deed::Undrained { path: path.clone(), by }),
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
    /// What is drained by whom: things by the names of their anchors, which stay when fibres move
    /// and when parts leave and come again.
    drains: BTreeSet<(String, String)>,
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
            Deed::Drained { path, by } => drop(self.drains.insert((path, by))),
            Deed::Undrained { path, by } => drop(self.drains.remove(&(path, by))),
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
    pub(super) fn check(&self, core: &Core) -> Vec<Violation> {
        let (state, fabric) = (core.state(), core.fabric());
        let mut found = Vec::new();
        let stands = |path: &str, by: &str| {
            // What has left the plant is drained once it comes again.
            let there = fabric.find(path).filter(|it| reach::is_there(fabric, *it));
            let Some(target) = there.map(|it| reach::named(fabric, it)) else { return true };
            let drains = state.drains.get(&target).into_iter().flatten();
            drains.into_iter().any(|it| it.by == Owner::Person(by.to_owned()))
        };
        for (path, by) in self.drains.iter().filter(|it| !stands(&it.0, &it.1)) {
            found.push(Violation::DrainTaken { path: path.clone(), by: by.clone() });
        }
        for (&target, drains) in &state.drains {
            for drain in drains {
                let Owner::Person(by) = &drain.by else { continue };
                let path = fabric.path(reach::anchor(fabric, target));
                if !self.drains.contains(&(path.clone(), by.clone())) {
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
