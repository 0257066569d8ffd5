//! As many triples within two hops as can be found.
//!
//! A greedy takes the host with the fewest free ones near it first.  What is left over then walks:
//! a host without a triple takes the place of a member of a near triple, which is without one from
//! there on.  Three that have come together are a triple; where they are close but do not fit, the
//! triples around them are packed anew with them, exactly.  At last triples that are near each
//! other exchange hosts where that shortens their ways.  A walk is one breadth-first search,
//! O(hosts times those near one); there are few for each host that the greedy leaves over.

use std::collections::BTreeSet;

use crate::cluster::hosts::Hosts;
use crate::cluster::near::Near;
use crate::cluster::{Clusters, Triple, exact};

const NONE: u32 = u32::MAX;
/// Free hosts near one that the greedy looks at.
const CHOICES: usize = 24;
/// Walks with other beginnings for three hosts that do not come together.
const TRIES: u32 = 60;
/// Triples that are packed anew around three hosts.
const WINDOWS: [usize; 6] = [0, 1, 3, 5, 7, 9];
/// Times that all triples look at those near them.
const SWEEPS: usize = 12;

/// Packs `hosts` into triples; `n_max` of them are wanted.
pub(super) fn pack(hosts: &Hosts, n_max: usize) -> Clusters {
    let near = Near::of(hosts);
    let mut packing = Packing::greedy(&near);
    packing.gather();
    packing.shorten();
    let triples: Vec<Triple> = packing.triples.iter().map(|it| packing.ordered(*it)).collect();
    let mut costs: Vec<u32> = (0..hosts.n() as u32).filter_map(|it| near.cost_min(it)).collect();
    costs.sort_unstable();
    let cheapest = costs.iter().take(3 * triples.len().min(n_max)).map(|it| u64::from(*it));
    let is_left = |it: &usize| packing.owner[*it] == NONE;
    Clusters {
        hops_bound: cheapest.sum::<u64>().div_ceil(3),
        bound: near.bound(),
        left: (0..hosts.n()).filter(is_left).collect(),
        triples,
    }
}

struct Packing<'n> {
    near: &'n Near,
    /// The triple of each host, or `NONE`.
    owner: Vec<u32>,
    triples: Vec<[u32; 3]>,
    /// Where the next walk begins differs from try to try.
    dice: u64,
}

impl<'n> Packing<'n> {
    fn greedy(near: &'n Near) -> Self {
        let n = near.set_of.len();
        let mut packing = Self { near, owner: vec![NONE; n], triples: Vec::new(), dice: 1 };
        let mut n_free: Vec<usize> = (0..n as u32).map(|it| near.of_host(it).len()).collect();
        let mut waiting: BTreeSet<(usize, u32)> = n_free.iter().copied().zip(0..).collect();
        while let Some((_, host)) = waiting.pop_first() {
            let found = packing.cheapest(host, &n_free);
            // Who is in no triple is not waited for either.
            let gone: Vec<u32> = found.map_or_else(|| vec![host], |it| it.to_vec());
            if let Some(triple) = found {
                packing.add(triple);
            }
            for &host in &gone {
                waiting.remove(&(n_free[host as usize], host));
            }
            for &(other, _) in gone.iter().flat_map(|it| near.of_host(*it)) {
                if waiting.remove(&(n_free[other as usize], other)) {
                    n_free[other as usize] -= 1;
                    waiting.insert((n_free[other as usize], other));
                }
            }
        }
        packing
    }

    /// The triple of free hosts with `host` that has the fewest hops, then leaves the most free
    /// hosts to others.
    fn cheapest(&self, host: u32, n_free: &[usize]) -> Option<[u32; 3]> {
        let free = self.near.of_host(host).iter().filter(|it| self.is_free(it.0));
        let mut free: Vec<u32> = free.map(|it| it.0).collect();
        free.sort_by_key(|it| n_free[*it as usize]);
        free.truncate(CHOICES);
        let mut best = None;
        for (place, &a) in free.iter().enumerate() {
            for &b in &free[place + 1..] {
                let Some(cost) = self.near.cost([host, a, b]) else { continue };
                let key = (cost, n_free[a as usize] + n_free[b as usize]);
                if best.is_none_or(|(least, _)| key < least) {
                    best = Some((key, [host, a, b]));
                }
            }
        }
        best.map(|it| it.1)
    }

    fn is_free(&self, host: u32) -> bool {
        self.owner[host as usize] == NONE
    }

    fn add(&mut self, triple: [u32; 3]) {
        let place = self.triples.len() as u32;
        self.triples.push(triple);
        triple.into_iter().for_each(|it| self.owner[it as usize] = place);
    }

    fn set(&mut self, place: u32, triple: [u32; 3]) {
        self.triples[place as usize] = triple;
        triple.into_iter().for_each(|it| self.owner[it as usize] = place);
    }

    /// Makes triples of what the greedy left over, set by set.
    fn gather(&mut self) {
        let n = self.owner.len();
        let mut sets: Vec<(u32, u32)> = (0..n as u32)
            .filter(|it| self.is_free(*it))
            .map(|it| (self.near.set_of[it as usize], it))
            .collect();
        sets.sort_unstable();
        for set in sets.chunk_by(|a, b| a.0 == b.0) {
            let mut left: Vec<u32> = set.iter().map(|it| it.1).collect();
            let mut tries = 0;
            while 3 <= left.len() && tries < TRIES {
                tries += 1;
                if self.meet(&mut left) {
                    tries = 0;
                }
            }
            if 3 <= left.len() {
                self.try_all(set[0].0);
            }
        }
    }

    /// Packs one set anew, with one triple more each time, as long as a search that tries all finds
    /// that; larger sets stay as they are.
    fn try_all(&mut self, set: u32) {
        let near = self.near;
        let members: Vec<u32> =
            (0..self.owner.len() as u32).filter(|it| near.set_of[*it as usize] == set).collect();
        let places: BTreeSet<u32> = members.iter().map(|it| self.owner[*it as usize]).collect();
        let mut places: Vec<u32> = places.into_iter().filter(|it| *it != NONE).collect();
        while let Some(found) = exact::more_than(near, &members, places.len()) {
            members.iter().for_each(|it| self.owner[*it as usize] = NONE);
            for (place, triple) in places.iter().zip(&found) {
                self.set(*place, *triple);
            }
            for triple in &found[places.len()..] {
                places.push(self.triples.len() as u32);
                self.add(*triple);
            }
        }
    }

    fn throw(&mut self, n: usize) -> usize {
        // Knuth's multiplier; the upper bits are the good ones.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) as usize % n
    }

    /// Lets three of the `left` walk together; whether they became a triple.
    fn meet(&mut self, left: &mut Vec<u32>) -> bool {
        let first = self.throw(left.len());
        left.swap(0, first);
        if !self.walk(left, 1) || !self.walk_last(left) {
            return false;
        }
        let three = [left[0], left[1], left[2]];
        let is_done = WINDOWS.iter().any(|n| self.pack_around(three, *n));
        if is_done {
            left.drain(..3);
        } else {
            // The next try finds the others elsewhere.
            let one = self.throw(left.len());
            self.stray(&mut left[one]);
        }
        is_done
    }

    /// Brings the first of `left` near to another, which becomes the second.
    fn walk(&mut self, left: &mut [u32], n_fixed: usize) -> bool {
        let others: BTreeSet<u32> = left[n_fixed..].iter().copied().collect();
        let near = self.near;
        let meets = |at: u32| near.of_host(at).iter().any(|it| others.contains(&it.0));
        let Some(at) = self.lead(left[0], meets) else { return false };
        left[0] = at;
        let is_near = |it: &u32| near.hops(at, *it).is_some();
        let other = left[1..].iter().position(is_near).expect("the walk ended near it");
        left.swap(1, other + 1);
        true
    }

    /// Brings one of the others near to the first two; it becomes the third.
    fn walk_last(&mut self, left: &mut [u32]) -> bool {
        let near = self.near;
        let two = [left[0], left[1]];
        let fits = |at: u32| near.cost([two[0], two[1], at]).is_some();
        let is_beside = |at: u32| two.iter().any(|it| near.hops(*it, at).is_some());
        let third = 2 + self.throw(left.len() - 2);
        let at = self.lead(left[third], fits).or_else(|| self.lead(left[third], is_beside));
        let Some(at) = at else { return false };
        left[third] = at;
        left.swap(2, third);
        true
    }

    /// Moves a hole by a few triples in no particular direction.
    fn stray(&mut self, hole: &mut u32) {
        for _ in 0..4 {
            let moves = self.moves(*hole);
            if moves.is_empty() {
                return;
            }
            let (place, out) = moves[self.throw(moves.len())];
            *hole = self.take(place, *hole, out);
        }
    }

    /// All ways in which `hole` can take a place in a triple: the triple, and who leaves it.
    fn moves(&self, hole: u32) -> Vec<(u32, u32)> {
        let near = self.near.of_host(hole).iter();
        let mut places: Vec<u32> = near.map(|it| self.owner[it.0 as usize]).collect();
        places.sort_unstable();
        places.dedup();
        let mut moves = Vec::new();
        for place in places.into_iter().filter(|it| *it != NONE) {
            let triple = self.triples[place as usize];
            let near = triple.map(|it| self.near.hops(hole, it).is_some());
            for (out, &host) in triple.iter().enumerate() {
                if near[(out + 1) % 3] && near[(out + 2) % 3] {
                    moves.push((place, host));
                }
            }
        }
        moves
    }

    /// Puts `into` in the place of `out`, which is returned.
    fn take(&mut self, place: u32, into: u32, out: u32) -> u32 {
        let triple = self.triples[place as usize].map(|it| if it == out { into } else { it });
        self.owner[out as usize] = NONE;
        self.set(place, triple);
        out
    }

    /// Walks the hole to the nearest place that `is_goal`, each triple changed once at most.
    fn lead(&mut self, hole: u32, is_goal: impl Fn(u32) -> bool) -> Option<u32> {
        if is_goal(hole) {
            return Some(hole);
        }
        // Who came to each place, by which triple.
        let mut from: Vec<Option<(u32, u32)>> = vec![None; self.owner.len()];
        let mut found = vec![hole];
        from[hole as usize] = Some((hole, NONE));
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            for (place, out) in self.moves(at) {
                if from[out as usize].is_some() || is_on_way(&from, at, place) {
                    continue;
                }
                from[out as usize] = Some((at, place));
                if is_goal(out) {
                    self.go(&from, out);
                    return Some(out);
                }
                found.push(out);
            }
        }
        None
    }

    fn go(&mut self, from: &[Option<(u32, u32)>], end: u32) {
        let mut steps = Vec::new();
        let mut at = end;
        while let Some((before, place)) = from[at as usize]
            && place != NONE
        {
            steps.push((place, before, at));
            at = before;
        }
        for (place, into, out) in steps.into_iter().rev() {
            self.take(place, into, out);
        }
    }

    /// Packs three hosts and the `n` triples nearest to them anew, none left over.
    fn pack_around(&mut self, three: [u32; 3], n: usize) -> bool {
        let mut places: Vec<u32> = Vec::new();
        let mut found: Vec<u32> = three.to_vec();
        let mut next = 0;
        while places.len() < n
            && let Some(&host) = found.get(next)
        {
            next += 1;
            for &(other, _) in self.near.of_host(host) {
                let place = self.owner[other as usize];
                if place != NONE && !places.contains(&place) && places.len() < n {
                    places.push(place);
                    found.extend(self.triples[place as usize]);
                }
            }
        }
        if three.iter().any(|it| !self.is_free(*it)) {
            return false;
        }
        let Some(packed) = exact::whole(self.near, found) else { return false };
        for (place, triple) in places.iter().zip(&packed) {
            self.set(*place, *triple);
        }
        packed[places.len()..].iter().for_each(|it| self.add(*it));
        true
    }

    /// Exchanges hosts between triples near each other, and with those left over, as long as that
    /// makes ways shorter.
    fn shorten(&mut self) {
        for _ in 0..SWEEPS {
            let mut is_better = false;
            for place in 0..self.triples.len() as u32 {
                is_better |= self.shorten_one(place);
            }
            if !is_better {
                return;
            }
        }
    }

    fn shorten_one(&mut self, place: u32) -> bool {
        let triple = self.triples[place as usize];
        let cost = |it: [u32; 3]| self.near.cost(it).unwrap_or(NONE);
        if cost(triple) <= 3 {
            return false;
        }
        let near = triple.iter().flat_map(|it| self.near.of_host(*it)).map(|it| it.0);
        let mut others: Vec<(u32, u32)> = near.map(|it| (self.owner[it as usize], it)).collect();
        others.sort_unstable();
        others.dedup_by_key(|it| if it.0 == NONE { (NONE, it.1) } else { (it.0, 0) });
        for (other, host) in others {
            if other == NONE {
                for out in 0..3 {
                    let mut changed = triple;
                    changed[out] = host;
                    if cost(changed) < cost(triple) {
                        self.take(place, host, triple[out]);
                        return true;
                    }
                }
            } else if other != place {
                let theirs = self.triples[other as usize];
                let before = cost(triple) + cost(theirs);
                let better = |it: &[[u32; 3]; 2]| {
                    cost(it[0]).checked_add(cost(it[1])).is_some_and(|it| it < before)
                };
                if let Some([ours, theirs]) = splits(triple, theirs).into_iter().find(better) {
                    self.set(place, ours);
                    self.set(other, theirs);
                    return true;
                }
            }
        }
        false
    }

    /// A triple with the host first that has the fewest hops to the two others.
    fn ordered(&self, triple: [u32; 3]) -> Triple {
        let hops = |a: u32, b: u32| self.near.hops(a, b).expect("a triple is near");
        super::ordered(triple.map(|it| it as usize), |a, b| hops(a as u32, b as u32))
    }
}

fn is_on_way(from: &[Option<(u32, u32)>], mut at: u32, place: u32) -> bool {
    while let Some((before, by)) = from[at as usize]
        && by != NONE
    {
        if by == place {
            return true;
        }
        at = before;
    }
    false
}

/// The ways to split six hosts otherwise into two triples.
fn splits(a: [u32; 3], b: [u32; 3]) -> Vec<[[u32; 3]; 2]> {
    let mut splits = Vec::with_capacity(9);
    for out in 0..3 {
        for into in 0..3 {
            let (mut ours, mut theirs) = (a, b);
            (ours[out], theirs[into]) = (b[into], a[out]);
            splits.push([ours, theirs]);
        }
    }
    splits
}
