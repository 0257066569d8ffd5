//! Hot swap: a lost part costs one part (seed 000 §2.2: the healthy cubes are used on).
//!
//! A job whose hardware failed under it keeps its healthy parts; each lost one is replaced by a
//! free part of the same pool at the same coordinate, so that only its xconnects move.

use serde::{Deserialize, Serialize};

use selvedge_model::id::{JobId, PartId, PortId};
use selvedge_model::job::{Hold, Place};

use crate::capacity::Capacity;
use crate::schedule::View;

/// A job that stopped and keeps its place.
#[derive(Clone, Copy, Debug)]
pub struct Resuming<'a> {
    /// Which.
    pub job: JobId,
    /// What it holds.
    pub place: &'a Place,
    /// Whether any parts would do in place of those that it has.
    pub swaps: bool,
}

/// What becomes of such a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Which.
    pub job: JobId,
    /// Where it goes on; none if there are not enough spares, so that it gives its place up.
    pub place: Option<Place>,
}

/// Finds spares for those who wait for them, in their order.
#[must_use]
pub fn plan(view: &View<'_>, resuming: &[Resuming<'_>]) -> Vec<Swap> {
    let mut free = Capacity::now(view.layout, view.parts);
    let mut swaps = Vec::with_capacity(resuming.len());
    for job in resuming {
        let place = substituted(view, &free, job);
        if let Some(place) = &place {
            let new = place.holds.iter().filter(|it| !job.place.holds.contains(it));
            free.take(&new.copied().collect::<Vec<_>>());
        }
        swaps.push(Swap { job: job.job, place });
    }
    swaps
}

fn substituted(view: &View<'_>, free: &Capacity<'_>, job: &Resuming<'_>) -> Option<Place> {
    let mut place = job.place.clone();
    let is_lost = |hold: &Hold| {
        view.layout.seats[hold.part] & hold.seats != hold.seats
            || view.parts[hold.part].hits(view.fabric, *hold, job.place)
    };
    if !place.holds.iter().any(is_lost) {
        return Some(place);
    }
    if !job.swaps {
        return None;
    }
    let (kept, mut spares) = free.spares(&place);
    // What another has left joined would have to be taken apart first.
    spares.sort_by_key(|it| (view.doubted.contains(it), n_joined(view, *it)));
    let mut spares = spares.into_iter();
    for hold in place.holds.iter_mut().filter(|it| !kept.contains(&it.part)) {
        let spare: PartId = spares.next()?;
        hold.part = spare;
        hold.seats = view.layout.seats[spare];
    }
    Some(place)
}

/// How many ends of a part are joined through circuit switches, counted at their north ports.
fn n_joined(view: &View<'_>, part: PartId) -> usize {
    let ends = view.fabric.ports_of(part).filter_map(|it| view.fabric.cable_at(it).map(|_| it));
    let fars = ends.filter_map(|it| view.fabric.peer_of(it));
    let is_joined = |far: &PortId| {
        let (switch, local) = view.fabric.port_local(*far);
        u16::try_from(local).is_ok_and(|it| (view.current)(switch, it).is_some())
    };
    fars.filter(is_joined).count()
}
