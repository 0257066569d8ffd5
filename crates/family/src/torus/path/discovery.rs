//! Whether the chips see what was asked for (seed 000 §3.5).
//!
//! Every chip says what each of its ports sees.  If that is what the shape demands, the slice is
//! the request itself and its chips have the ids that the request gives them; a search would walk
//! the same graph again.  If not, a breadth-first search from chip 0 over what was seen tells
//! how far the slice reaches.

use std::collections::VecDeque;
use std::fmt;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::PortId;
use selvedge_model::job::Place;
use serde::{Deserialize, Serialize};

use crate::torus::hardware::{CHIPS, ICI_PORTS};
use crate::torus::path::{Seat, expected_peers, seats};
use crate::torus::shape::Shape;

/// A slice that is what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// Where each chip id sits: x fastest over the whole slice, then y, then z.
    pub chips: Vec<Seat>,
    /// How many hops the farthest chip is from chip 0.
    pub n_hops_max: u32,
}

/// A port that does not see what the request demands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// The port.
    pub port: PortId,
    /// Its path.
    pub name: String,
    /// What it ought to see.
    pub expected: PortId,
    /// That port's path.
    pub expected_name: String,
    /// What it sees, if it sees anything.
    pub seen: Option<PortId>,
    /// That port's path.
    pub seen_name: Option<String>,
    /// Whether the search from chip 0 came to the chip that the port is on.
    pub reached: bool,
}

/// A slice that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// Every port that does not see what it ought to, in the order of holds and places.
    pub mismatches: Vec<Mismatch>,
    /// How many chips a search from chip 0 does not come to.
    pub n_lost: usize,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, expected_name, .. } = self;
        match &self.seen_name {
            Some(seen) => write!(f, "{name} sees {seen}, not {expected_name}")?,
            None => write!(f, "{name} sees nothing, not {expected_name}")?,
        }
        if !self.reached {
            write!(f, "; its chip cannot be reached from chip 0")?;
        }
        Ok(())
    }
}

/// Holds what the chips saw against the request.  `seen` has one list for each hold, with what
/// each ICI port of that cube sees by the port's place; what is missing was not seen.
///
/// Within a cube, ports that leave the hold are not looked at: they are another job's.
///
/// # Errors
/// [`Differs`].
///
/// # Panics
/// If `place` is no place of `shape`.
pub fn discover(
    fabric: &Fabric,
    shape: &Shape,
    place: &Place,
    seen: &[Vec<Option<PortId>>],
) -> Result<Discovery, Differs> {
    let mut wrong: Vec<(usize, usize, PortId)> = Vec::new();
    for hold_idx in 0..place.holds.len() {
        let expected = expected_peers(fabric, shape, place, hold_idx);
        let seen: &[_] = seen.get(hold_idx).map_or(&[], |it| it);
        if seen == expected {
            continue;
        }
        for (port, expected) in expected.into_iter().enumerate() {
            let Some(expected) = expected else { continue };
            if seen_at(seen, port) != Some(expected) {
                wrong.push((hold_idx, port, expected));
            }
        }
    }
    let chips = seats(shape, place);
    if wrong.is_empty() {
        // All points of a torus are alike, and chip 0 of a mesh is a corner: from chip 0 the
        // farthest chip is as far as any two are.
        return Ok(Discovery { chips, n_hops_max: shape.diameter() });
    }
    let is_reached = reach(fabric, place, &chips, seen);
    let n_lost = chips
        .iter()
        .filter(|it| !is_reached[usize::from(it.hold_idx) * CHIPS + usize::from(it.seat)])
        .count();
    let path = |port| fabric.port_path(port);
    let mismatch = |(hold_idx, local, expected): (usize, usize, PortId)| {
        let port = fabric.port_at(place.holds[hold_idx].part, local);
        let seen = seen.get(hold_idx).and_then(|it| seen_at(it, local));
        // A device may answer with a port that the fabric does not have.
        let seen_name = seen
            .map(|it| if it.idx() < fabric.n_ports() { path(it) } else { format!("unknown {it}") });
        Mismatch {
            port,
            name: path(port),
            expected,
            expected_name: path(expected),
            seen,
            seen_name,
            reached: is_reached[hold_idx * CHIPS + local / 6],
        }
    };
    Err(Differs { mismatches: wrong.into_iter().map(mismatch).collect(), n_lost })
}

fn seen_at(seen: &[Option<PortId>], port: usize) -> Option<PortId> {
    seen.get(port).copied().flatten()
}

/// Which seats of which holds a search from chip 0 comes to, over links that their near end
/// sees; by `hold · 64 + seat`.
fn reach(
    fabric: &Fabric,
    place: &Place,
    chips: &[Seat],
    seen: &[Vec<Option<PortId>>],
) -> Vec<bool> {
    let mut hold_of: Vec<_> =
        place.holds.iter().enumerate().map(|(at, it)| (it.part, at)).collect();
    hold_of.sort_unstable();
    let find = |port: PortId| {
        if fabric.n_ports() <= port.idx() {
            return None;
        }
        let (part, local) = fabric.port_local(port);
        let at = hold_of.binary_search_by_key(&part, |&(part, _)| part).ok()?;
        let (hold_idx, seat) = (hold_of[at].1, local / 6);
        let is_held = local < ICI_PORTS && place.holds[hold_idx].seats >> seat & 1 == 1;
        is_held.then_some((hold_idx, seat))
    };
    let mut is_reached = vec![false; place.holds.len() * CHIPS];
    let first = (usize::from(chips[0].hold_idx), usize::from(chips[0].seat));
    let mut queue = VecDeque::from([first]);
    is_reached[first.0 * CHIPS + first.1] = true;
    while let Some((hold_idx, seat)) = queue.pop_front() {
        let Some(seen) = seen.get(hold_idx) else { continue };
        for port in 6 * seat..6 * seat + 6 {
            let Some((hold_idx, seat)) = seen_at(seen, port).and_then(find) else { continue };
            if !std::mem::replace(&mut is_reached[hold_idx * CHIPS + seat], true) {
                queue.push_back((hold_idx, seat));
            }
        }
    }
    is_reached
}
