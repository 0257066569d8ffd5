//! Whether forwarding tables stay inside a place, arrive, and cannot lock.
//!
//! Works from the fabric's links and the table alone: for each destination it follows the next
//! hops of all chips, and notes which link may wait for which.  No deadlock is possible where those
//! notes form no ring (Dally and Seitz 1987).  O(chips squared).

use std::collections::BTreeMap;

use selvedge_model::fabric::Fabric;
use selvedge_model::id::{JobId, LinkId, NodeId};
use selvedge_model::job::Place;

use crate::check::Violation;

/// Holds the tables of a job at `place` against the fabric: `next` says to which chip a chip sends
/// what is for another.
pub fn tables(
    fabric: &Fabric,
    job: JobId,
    place: &Place,
    next: &dyn Fn(NodeId, NodeId) -> Option<NodeId>,
) -> Vec<Violation> {
    let chips: Vec<NodeId> = (place.holds.iter())
        .flat_map(|hold| {
            let seats = fabric.template_of(hold.part).seats().iter().enumerate();
            let held = seats.filter(|(seat, _)| hold.seats >> seat & 1 == 1);
            held.map(|(_, local)| fabric.node_at(hold.part, *local as usize))
        })
        .collect();
    let places: BTreeMap<NodeId, usize> = chips.iter().copied().zip(0..).collect();
    // The link from a chip to each other chip of the place that it is joined with.
    let mut links: Vec<BTreeMap<usize, LinkId>> = vec![BTreeMap::new(); chips.len()];
    for (idx, &chip) in chips.iter().enumerate() {
        for link in fabric.links_from(chip) {
            let to = fabric.node_of_port(fabric.link(link).target);
            if let Some(&to) = places.get(&to) {
                links[idx].insert(to, link);
            }
        }
    }
    let mut found = Vec::new();
    let mut waits: BTreeMap<LinkId, Vec<LinkId>> = BTreeMap::new();
    for (goal, &to) in chips.iter().enumerate() {
        let mut hops: Vec<Option<(usize, LinkId)>> = vec![None; chips.len()];
        for (idx, &from) in chips.iter().enumerate().filter(|it| it.0 != goal) {
            let hop = next(from, to).and_then(|it| places.get(&it).copied());
            hops[idx] = hop.and_then(|it| Some((it, *links[idx].get(&it)?)));
            if hops[idx].is_none() {
                found.push(Violation::TableLeaves { job, from, to });
            }
        }
        if !found.is_empty() {
            return found;
        }
        // Ways that have been followed to their end are not followed again.
        let mut arrives = vec![false; chips.len()];
        for (idx, &from) in chips.iter().enumerate() {
            let (mut at, mut n) = (idx, 0);
            while let Some((next, link)) = hops[at].filter(|_| !arrives[at]) {
                if let Some((_, then)) = hops[next] {
                    let waiting = waits.entry(link).or_default();
                    if !waiting.contains(&then) {
                        waiting.push(then);
                    }
                }
                at = next;
                n += 1;
                if chips.len() < n {
                    return vec![Violation::TableLost { job, from, to }];
                }
            }
            at = idx;
            while let Some((next, _)) = hops[at].filter(|_| !arrives[at]) {
                arrives[at] = true;
                at = next;
            }
        }
    }
    match n_locked(&waits) {
        0 => found,
        n => vec![Violation::TablesLock { job, n }],
    }
}

/// How many links are left when those that wait for nobody are taken away again and again.
fn n_locked(waits: &BTreeMap<LinkId, Vec<LinkId>>) -> u32 {
    let mut n_waiting: BTreeMap<LinkId, usize> = BTreeMap::new();
    let mut awaited_by: BTreeMap<LinkId, Vec<LinkId>> = BTreeMap::new();
    for (&link, those) in waits {
        n_waiting.insert(link, those.len());
        for &that in those {
            n_waiting.entry(that).or_insert(0);
            awaited_by.entry(that).or_default().push(link);
        }
    }
    let mut free: Vec<LinkId> = n_waiting.iter().filter(|it| *it.1 == 0).map(|it| *it.0).collect();
    let mut n_left = n_waiting.len();
    while let Some(link) = free.pop() {
        n_left -= 1;
        for by in awaited_by.get(&link).into_iter().flatten() {
            let left = n_waiting.get_mut(by).expect("who waits is counted");
            *left -= 1;
            if *left == 0 {
                free.push(*by);
            }
        }
    }
    u32::try_from(n_left).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
