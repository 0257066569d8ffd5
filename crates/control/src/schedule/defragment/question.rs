//! A question about moves as it leaves the core: all that its planner reads, so that it can be
//! worked out elsewhere, and worked out again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{JobId, PartId};
use selvedge_model::job::{Demand, Need, Place};
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Span};

use crate::capacity::Layout;
use crate::input::{Input, Proposed};
use crate::schedule::{View, Waiting, defragment};
use crate::settings::Settings;
use crate::state::PartState;

/// A running job that may be moved.
#[derive(Clone, Debug)]
pub struct Movable {
    /// Which.
    pub job: JobId,
    /// Whose.
    pub owner: String,
    /// What it asked for.
    pub demand: Demand,
    /// What its family made of that.
    pub need: Arc<Need>,
    /// Where it is.
    pub place: Place,
    /// What one chip of it loses by a move.
    pub loss: Span,
}

/// What a question is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The number of the request.
    pub number: u64,
    /// When it was asked.
    pub now: Moment,
    /// The hardware.
    pub fabric: Arc<Fabric>,
    /// Which parts take jobs.
    pub layout: Arc<Layout>,
    /// What is known of each part.
    pub parts: IdVec<PartId, PartState>,
    /// The south port of each north port of each circuit switch, where there is more than one pool.
    pub pairs: BTreeMap<PartId, BTreeMap<u16, u16>>,
    /// What the operator has set.
    pub settings: Settings,
    /// The job that waits.
    pub head: JobId,
    /// What it asked for.
    pub demand: Demand,
    /// What its family made of that.
    pub need: Arc<Need>,
    /// Who may be moved.
    pub movable: Vec<Movable>,
    /// What each owner may still lose, in chip time.
    pub allowance: BTreeMap<String, Span>,
    /// What all moves together may cost, in chip time.
    pub worth: Span,
}

/// Whom to move so that a job fits, as it was asked at one moment.
#[derive(Clone, Debug)]
pub struct Question {
    parts: Parts,
}

impl Question {
    /// A question.
    pub fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// The number of the request.
    pub fn number(&self) -> u64 {
        self.parts.number
    }

    /// The answer, as the core takes it.
    pub fn answer(&self) -> Input {
        Input::Planned { request: self.parts.number, moves: self.moves() }
    }

    /// Who goes where; none where nothing helps, or costs more than it is worth.
    pub fn moves(&self) -> Option<Proposed> {
        let Parts { settings, layout, fabric, parts, pairs, .. } = &self.parts;
        let current = |switch: PartId, north: u16| pairs.get(&switch)?.get(&north).copied();
        let view = View {
            now: self.parts.now,
            fabric,
            layout,
            parts,
            doubted: &BTreeSet::new(),
            busy: &[],
            means: settings.means,
            aging: settings.aging,
            setup_max: settings.setup_max,
            stop_max: settings.notice + settings.grace,
            window: None,
            current: &current,
            planted: settings.planted(),
        };
        let head = Waiting::new(self.parts.head, &self.parts.demand, &self.parts.need, None);
        let movable: Vec<defragment::Movable<'_>> = self.parts.movable.iter().map(lent).collect();
        let allowance =
            self.parts.allowance.iter().map(|(owner, may)| (owner.as_str(), *may)).collect();
        defragment::propose(&view, &head, &movable, &allowance, self.parts.worth)
    }
}

fn lent(it: &Movable) -> defragment::Movable<'_> {
    let Movable { job, owner, demand, need, place, loss } = it;
    defragment::Movable { job: *job, owner, demand, need, place, loss: *loss }
}
