//! Packings by trying all.

use std::collections::BTreeSet;

use crate::cluster::near::Near;

/// Steps of a search for a packing that leaves nobody over.
const STEPS: u32 = 20_000;
/// Hosts of a set that is packed by trying all: the bits of a state.
const HOSTS_MAX: usize = 192;
/// States of one such search.
const STATES_MAX: usize = 100_000;

/// A packing of `free` that leaves nobody over, if one is found soon.
pub(super) fn whole(near: &Near, free: Vec<u32>) -> Option<Vec<[u32; 3]>> {
    let mut search = Whole { near, free, steps: STEPS, triples: Vec::new() };
    search.run().then_some(search.triples)
}

/// A packing of `members` into more than `n` triples, if there is one and it is found soon.
pub(super) fn more_than(near: &Near, members: &[u32], n: usize) -> Option<Vec<[u32; 3]>> {
    let spare = members.len().checked_sub(3 * (n + 1))?;
    if HOSTS_MAX < members.len() {
        return None;
    }
    let place = |it: u32| members.binary_search(&it).ok();
    let near_of = |it: &u32| near.of_host(*it).iter().filter_map(|it| place(it.0)).collect();
    let mut search = Most {
        near: members.iter().map(near_of).collect(),
        failed: BTreeSet::new(),
        triples: Vec::new(),
    };
    let mut left = [0; HOSTS_MAX / 64];
    (0..members.len()).for_each(|it| flip(&mut left, it));
    let is_found = search.run(left, spare);
    is_found.then(|| search.triples.iter().map(|it| it.map(|it| members[it])).collect())
}

/// Which hosts have no triple yet.
type State = [u64; HOSTS_MAX / 64];

fn flip(state: &mut State, it: usize) {
    state[it / 64] ^= 1 << (it % 64);
}

fn has(state: &State, it: usize) -> bool {
    state[it / 64] >> (it % 64) & 1 == 1
}

/// A search that gives the lowest host a triple or leaves it over, and comes to no state twice.
struct Most {
    /// For each, those near it, ascending.
    near: Vec<Vec<usize>>,
    failed: BTreeSet<(State, usize)>,
    triples: Vec<[usize; 3]>,
}

impl Most {
    fn run(&mut self, left: State, spare: usize) -> bool {
        let Some(word) = left.iter().position(|it| *it != 0) else { return true };
        if STATES_MAX <= self.failed.len() || self.failed.contains(&(left, spare)) {
            return false;
        }
        let first = 64 * word + left[word].trailing_zeros() as usize;
        let mut rest = left;
        flip(&mut rest, first);
        let choices: Vec<usize> =
            self.near[first].iter().copied().filter(|it| has(&rest, *it)).collect();
        for (place, &a) in choices.iter().enumerate() {
            for &b in &choices[place + 1..] {
                if self.near[a].binary_search(&b).is_err() {
                    continue;
                }
                let mut rest = rest;
                [a, b].into_iter().for_each(|it| flip(&mut rest, it));
                self.triples.push([first, a, b]);
                if self.run(rest, spare) {
                    return true;
                }
                self.triples.pop();
            }
        }
        if 0 < spare && self.run(rest, spare - 1) {
            return true;
        }
        self.failed.insert((left, spare));
        false
    }
}

/// A search for a packing that leaves nobody over.
struct Whole<'n> {
    near: &'n Near,
    free: Vec<u32>,
    steps: u32,
    triples: Vec<[u32; 3]>,
}

impl Whole<'_> {
    fn run(&mut self) -> bool {
        if self.free.is_empty() {
            return true;
        }
        let near =
            |it: u32| self.free.iter().filter(|to| self.near.hops(it, **to).is_some()).count();
        let (place, &host) =
            self.free.iter().enumerate().min_by_key(|it| near(*it.1)).expect("not empty");
        self.free.swap_remove(place);
        let choices: Vec<u32> =
            self.free.iter().copied().filter(|it| self.near.hops(host, *it).is_some()).collect();
        for (place, &a) in choices.iter().enumerate() {
            for &b in &choices[place + 1..] {
                if self.steps == 0 {
                    return false;
                }
                if self.near.hops(a, b).is_none() {
                    continue;
                }
                self.steps -= 1;
                let before = self.free.clone();
                self.free.retain(|it| *it != a && *it != b);
                self.triples.push([host, a, b]);
                if self.run() {
                    return true;
                }
                self.triples.pop();
                self.free = before;
            }
        }
        self.free.push(host);
        false
    }
}
