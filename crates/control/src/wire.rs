//! From a place to the writes of the switches (seed 000 §3.4.1, step 4).
//!
//! A blueprint holds the smallest set of changes against the state that the switches were read
//! back in: pairs that stand already are left alone; a port that is joined elsewhere is freed
//! first.  It is immutable, numbered, and names its parent.

use std::collections::BTreeMap;

use selvedge_model::id::PartId;
use selvedge_model::job::Xconnect;

use crate::state::{Blueprint, SwitchSet, SwitchState};

/// The changes that bring `wanted` about.  `wanted` is sorted by switch.
///
/// Pairs of other jobs are never touched: their ports are not among those of the wanted pairs,
/// which `check` holds independently.
pub fn changes(
    wanted: &[(PartId, Xconnect)],
    switches: &BTreeMap<PartId, SwitchState>,
) -> Vec<SwitchSet> {
    let mut sets = Vec::new();
    for run in wanted.chunk_by(|a, b| a.0 == b.0) {
        let switch = run[0].0;
        let state = &switches[&switch];
        let mut set = SwitchSet { switch, remove: Vec::new(), add: Vec::new() };
        // South ports that get another north: their old pairs must go first.
        let mut south_taken: Vec<u16> = Vec::with_capacity(run.len());
        for (_, pair) in run {
            match state.pairs.get(&pair.north) {
                Some(&south) if south == pair.south => continue,
                Some(&south) => set.remove.push(Xconnect { north: pair.north, south }),
                None => (),
            }
            south_taken.push(pair.south);
            set.add.push(*pair);
        }
        if set.add.is_empty() {
            continue;
        }
        south_taken.sort_unstable();
        for (&north, &south) in &state.pairs {
            let old = Xconnect { north, south };
            if south_taken.binary_search(&south).is_ok() && !set.remove.contains(&old) {
                set.remove.push(old);
            }
        }
        set.remove.sort_unstable();
        sets.push(set);
    }
    sets
}

/// The changes that take back what `blueprint` changed on the switches that have `done` it; an old
/// pair is made again only where it `may_add`.
pub fn undo(
    blueprint: &Blueprint,
    done: impl Fn(PartId) -> bool,
    may_add: impl Fn(PartId, &Xconnect) -> bool,
) -> Vec<SwitchSet> {
    let sets = blueprint.sets.iter().filter(|it| done(it.switch));
    sets.map(|it| {
        let again = it.remove.iter().filter(|pair| may_add(it.switch, pair));
        SwitchSet { switch: it.switch, remove: it.add.clone(), add: again.copied().collect() }
    })
    .collect()
}

/// What a switch's pairs are after `set`.
pub fn apply(pairs: &mut BTreeMap<u16, u16>, set: &SwitchSet) {
    for pair in &set.remove {
        if pairs.get(&pair.north) == Some(&pair.south) {
            pairs.remove(&pair.north);
        }
    }
    for pair in &set.add {
        pairs.insert(pair.north, pair.south);
    }
}
