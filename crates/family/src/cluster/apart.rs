//! Triples whose hosts share no rack, switch or power feed, as close together as that allows.
//!
//! As many triples as there can be: a domain gives at most one host to each of t triples, so t is
//! the greatest number with `sum of min(hosts of a domain, t) >= 3t`, and taking from the fullest
//! domains keeps that true to the end.  Each triple takes the nearest hosts that leave enough to
//! the others; then triples exchange hosts, with each other and with those left over, as long as
//! that makes ways shorter.  Hosts with the same links are as far from everyone, so distances are
//! kept for each kind of host once.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::hosts::Hosts;
use crate::cluster::{Apart, ClusterError, Clusters, Triple, ordered};
use crate::graph::Graph;

/// Kinds of hosts whose distances are kept: 8,192 take 64 MiB.
const KINDS_MAX: usize = 8192;
/// Exchanges that are tried in all.
const EXCHANGES_MAX: usize = 4_000_000;
/// The distance of hosts that nothing joins; three of them still fit a sum.
const FAR: u32 = 1 << 16;

/// Packs `hosts` into at most `n_max` triples.
pub(super) fn pack(hosts: &Hosts, apart: Apart, n_max: usize) -> Result<Clusters, ClusterError> {
    let domains = domains(hosts, apart)?;
    let far = Far::of(hosts)?;
    let all: Vec<usize> = (0..hosts.n()).collect();
    let (triples, bound) = nearest(&all, n_max, &domains, &far);
    let mut left = all;
    leave_out(&mut left, &triples);
    Ok(Clusters {
        hops_bound: hops_bound(hosts.n(), triples.len(), &domains, &far),
        bound,
        left,
        triples: triples.into_iter().map(|it| ordered(it, |a, b| far.hops(a, b))).collect(),
    })
}

/// As many triples of some hosts as can be joined, however far apart; then hosts that nothing
/// joins, or that are too many to be told apart, three by three.  Returns how many are joined.
pub(super) fn pack_rest(hosts: &Hosts, mut of: Vec<usize>) -> (Vec<Triple>, usize) {
    let Ok(far) = Far::of(hosts) else {
        let unknown = |it: &[usize; 3]| Triple { hosts: *it, hops: [FAR; 3] };
        return (of.as_chunks().0.iter().map(unknown).collect(), 0);
    };
    let domains: Vec<usize> = (0..hosts.n()).collect();
    let (mut triples, _) = nearest(&of, usize::MAX, &domains, &far);
    let n_joined = triples.len();
    leave_out(&mut of, &triples);
    triples.extend(of.as_chunks().0);
    (triples.into_iter().map(|it| ordered(it, |a, b| far.hops(a, b))).collect(), n_joined)
}

/// At most `n_max` triples of these hosts, and how many there can be.
///
/// Fewer than that are the shortest of as many as there can be.
fn nearest(of: &[usize], n_max: usize, domains: &[usize], far: &Far) -> (Vec<[usize; 3]>, usize) {
    let mut sets: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &host in of {
        sets.entry(far.set_of[host]).or_default().push(host);
    }
    let (mut triples, mut bound) = (Vec::new(), 0);
    for set in sets.values() {
        let n = most(&sizes(set, domains));
        bound += n;
        triples.extend(greedy(set, domains, far, n));
    }
    let mut spare = of.to_vec();
    leave_out(&mut spare, &triples);
    shorten(&mut triples, &mut spare, domains, far);
    if n_max < triples.len() {
        triples.sort_by_key(|it| far.cost(*it));
        spare.extend(triples.drain(n_max..).flatten());
        spare.sort_unstable();
        shorten(&mut triples, &mut spare, domains, far);
    }
    (triples, bound)
}

/// Takes the hosts of triples out of a list.
fn leave_out(hosts: &mut Vec<usize>, triples: &[[usize; 3]]) {
    let taken: BTreeSet<usize> = triples.iter().flatten().copied().collect();
    hosts.retain(|it| !taken.contains(it));
}

/// The domain of each host by number; a host in none is one of its own.
fn domains(hosts: &Hosts, apart: Apart) -> Result<Vec<usize>, ClusterError> {
    let keys: Vec<Option<u32>> = match apart {
        Apart::Host => vec![None; hosts.n()],
        Apart::Switch => switches(hosts),
        Apart::Domain(kind) => {
            (0..hosts.n()).map(|it| hosts.domain(it, kind).map(|it| it.number())).collect()
        }
    };
    if apart != Apart::Host && keys.iter().all(Option::is_none) {
        return Err(ClusterError::NoDomain { what: apart.word() });
    }
    let mut names: BTreeMap<(Option<u32>, usize), usize> = BTreeMap::new();
    let key = |(host, key): (usize, Option<u32>)| (key, if key.is_some() { 0 } else { host });
    let keys = keys.into_iter().enumerate().map(key);
    Ok(keys
        .map(|it| {
            let next = names.len();
            *names.entry(it).or_insert(next)
        })
        .collect())
}

/// The lowest switch of those that a host is cabled to, and that others at them are cabled to.
fn switches(hosts: &Hosts) -> Vec<Option<u32>> {
    let n = hosts.graph.n_nodes();
    let between = |it: usize| {
        let to = hosts.graph.neighbours(it).iter().copied();
        to.filter(|it| !hosts.is_host(*it)).collect::<Vec<u32>>()
    };
    let mut lowest: Vec<u32> = (0..n as u32).collect();
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for host in 0..hosts.n() {
            let at = between(host);
            let Some(least) = at.iter().map(|it| lowest[*it as usize]).min() else { continue };
            for it in at {
                is_changed |= lowest[it as usize] != least;
                lowest[it as usize] = least;
            }
        }
    }
    (0..hosts.n()).map(|it| between(it).first().map(|it| lowest[*it as usize])).collect()
}

/// How far hosts are from each other.
struct Far {
    kind_of: Vec<usize>,
    /// From each kind to each, row by row.
    hops: Vec<u16>,
    n_kinds: usize,
    /// For each host, the set that links join.
    set_of: Vec<u32>,
}

impl Far {
    fn of(hosts: &Hosts) -> Result<Self, ClusterError> {
        let mut kinds: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let mut firsts = Vec::new();
        let kind_of: Vec<usize> = (0..hosts.n())
            .map(|host| {
                let mut key = hosts.graph.neighbours(host).to_vec();
                key.sort_unstable();
                // Hosts without a link are not alike: nothing joins them.
                if key.is_empty() {
                    key.push(host as u32);
                }
                *kinds.entry(key).or_insert_with(|| {
                    firsts.push(host);
                    firsts.len() - 1
                })
            })
            .collect();
        let n_kinds = firsts.len();
        if KINDS_MAX < n_kinds {
            return Err(ClusterError::TooMany { n: n_kinds, max: KINDS_MAX });
        }
        let mut hops = Vec::with_capacity(n_kinds * n_kinds);
        let mut set_of = vec![u32::MAX; hosts.n()];
        for &first in &firsts {
            let distances = hosts.graph.distances(first);
            hops.extend(firsts.iter().map(|it| u16::try_from(distances[*it]).unwrap_or(u16::MAX)));
            if set_of[first] == u32::MAX {
                for host in 0..hosts.n() {
                    if distances[host] != Graph::APART {
                        set_of[host] = first as u32;
                    }
                }
            }
        }
        Ok(Self { kind_of, hops, n_kinds, set_of })
    }

    fn hops(&self, a: usize, b: usize) -> u32 {
        let [row, column] = [a, b].map(|it| self.kind_of[it]);
        match self.hops[row * self.n_kinds + column] {
            // Two of one kind are as far as their common neighbour.
            0 if a != b => 2,
            u16::MAX => FAR,
            hops => u32::from(hops),
        }
    }

    fn cost(&self, [a, b, c]: [usize; 3]) -> u32 {
        self.hops(a, b) + self.hops(a, c) + self.hops(b, c)
    }
}

/// How many of `set` are in each domain.
fn sizes(set: &[usize], domains: &[usize]) -> Vec<usize> {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    set.iter().for_each(|it| *sizes.entry(domains[*it]).or_default() += 1);
    sizes.into_values().collect()
}

/// The most triples with three domains each.
fn most(sizes: &[usize]) -> usize {
    let n: usize = sizes.iter().sum();
    let fits = |t: usize| 3 * t <= sizes.iter().map(|it| *it.min(&t)).sum();
    (0..=n / 3).rev().find(|it| fits(*it)).unwrap_or(0)
}

/// `n` triples of `set`, each of the nearest hosts that leave enough for the rest.
fn greedy(set: &[usize], domains: &[usize], far: &Far, n: usize) -> Vec<[usize; 3]> {
    let mut by_domain: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    set.iter().for_each(|it| by_domain.entry(domains[*it]).or_default().push(*it));
    let mut free: Vec<Vec<usize>> = by_domain.into_values().collect();
    let mut triples = Vec::with_capacity(n);
    for n_later in (0..n).rev() {
        let (mut triple, mut taken) = (Vec::with_capacity(3), Vec::with_capacity(3));
        while triple.len() < 3 {
            // The nearest host of each domain; a new triple begins in the fullest.
            let near = |it: &usize| triple.iter().map(|at| far.hops(*at, *it)).sum::<u32>();
            let nearest = |(domain, hosts): (usize, &Vec<usize>)| {
                let host = hosts.iter().copied().min_by_key(near)?;
                Some((near(&host), usize::MAX - hosts.len(), domain, host))
            };
            let open = free.iter().enumerate().filter(|it| !taken.contains(&it.0));
            let mut choices: Vec<_> = open.filter_map(nearest).collect();
            choices.sort_unstable();
            let leaves_enough = |it: &&(u32, usize, usize, usize)| {
                let taken: Vec<usize> = taken.iter().copied().chain([it.2]).collect();
                is_enough(&free, &taken, it.2, n_later)
            };
            let Some(&(.., domain, host)) = choices.iter().find(leaves_enough) else {
                return triples;
            };
            free[domain].retain(|it| *it != host);
            triple.push(host);
            taken.push(domain);
        }
        triples.push([triple[0], triple[1], triple[2]]);
    }
    triples
}

/// Whether `n_later` triples remain possible after this one has its host from `last` and the rest
/// from the fullest other domains.
fn is_enough(free: &[Vec<usize>], taken: &[usize], last: usize, n_later: usize) -> bool {
    let size = |it: usize| free[it].len() - usize::from(it == last);
    let give = |it: usize| size(it).min(n_later);
    let have: usize = (0..free.len()).map(give).sum();
    let n_more = 3 - taken.len();
    let is_other = |it: &usize| !taken.contains(it) && 0 < size(*it);
    let n_others = (0..free.len()).filter(is_other).take(n_more).count();
    if n_others == n_more && 3 * n_later + n_more <= have {
        return true;
    }
    // Who has more than all later triples can take loses nothing that they need.
    let mut others: Vec<usize> = (0..free.len()).filter(|it| !taken.contains(it)).collect();
    others.sort_unstable_by_key(|it| std::cmp::Reverse(size(*it)));
    let more = others.iter().take(n_more).filter(|it| 0 < size(**it));
    let lost: Vec<usize> = more.map(|it| usize::from(size(*it) <= n_later)).collect();
    lost.len() == n_more && 3 * n_later + lost.iter().sum::<usize>() <= have
}

/// Exchanges hosts between triples, and with those that are in none, as long as that makes ways
/// shorter.
fn shorten(triples: &mut [[usize; 3]], spare: &mut [usize], domains: &[usize], far: &Far) {
    let mut tried = 0;
    let mut is_better = true;
    while is_better && tried < EXCHANGES_MAX {
        is_better = false;
        for triple in &mut *triples {
            tried += 3 * spare.len();
            is_better |= replace(triple, spare, domains, far);
            if EXCHANGES_MAX <= tried {
                return;
            }
        }
        for step in 1..triples.len() {
            for one in 0..triples.len() - step {
                tried += 9;
                is_better |= exchange(triples, [one, one + step], domains, far);
            }
            if EXCHANGES_MAX <= tried {
                return;
            }
        }
    }
}

/// The cheapest exchange of one host for one that is in no triple; whether there is one.
fn replace(triple: &mut [usize; 3], spare: &mut [usize], domains: &[usize], far: &Far) -> bool {
    let mut best = far.cost(*triple);
    let mut found = None;
    for out in 0..3 {
        for (at, other) in spare.iter().enumerate() {
            let mut new = *triple;
            new[out] = *other;
            let cost = far.cost(new);
            if cost < best && is_apart(new, domains) {
                (best, found) = (cost, Some((out, at)));
            }
        }
    }
    if let Some((out, at)) = found {
        std::mem::swap(&mut triple[out], &mut spare[at]);
    }
    found.is_some()
}

/// The cheapest exchange of one host each; whether there is one.
fn exchange(
    triples: &mut [[usize; 3]],
    [one, other]: [usize; 2],
    domains: &[usize],
    far: &Far,
) -> bool {
    let [a, b] = [triples[one], triples[other]];
    let mut best = far.cost(a) + far.cost(b);
    let before = best;
    for out in 0..3 {
        for into in 0..3 {
            let (mut ours, mut theirs) = (a, b);
            (ours[out], theirs[into]) = (b[into], a[out]);
            if !is_apart(ours, domains) || !is_apart(theirs, domains) {
                continue;
            }
            let cost = far.cost(ours) + far.cost(theirs);
            if cost < best {
                best = cost;
                (triples[one], triples[other]) = (ours, theirs);
            }
        }
    }
    best < before
}

fn is_apart(triple: [usize; 3], domains: &[usize]) -> bool {
    let [a, b, c] = triple.map(|it| domains[it]);
    a != b && a != c && b != c
}

/// What `n` triples cost at least: a triple costs half of what its hosts are from their two nearest
/// in other domains.
fn hops_bound(n_hosts: usize, n: usize, domains: &[usize], far: &Far) -> u64 {
    let mut of_host: Vec<u64> = Vec::with_capacity(n_hosts);
    for host in 0..n_hosts {
        // The nearest, and the nearest that is in yet another domain.
        let mut two = [(FAR, usize::MAX); 2];
        for other in (0..n_hosts).filter(|it| domains[*it] != domains[host]) {
            let found = (far.hops(host, other), domains[other]);
            if found.1 == two[0].1 {
                two[0].0 = two[0].0.min(found.0);
            } else if found.0 < two[0].0 {
                two = [found, two[0]];
            } else if found.0 < two[1].0 {
                two[1] = found;
            }
        }
        of_host.push(u64::from(two[0].0) + u64::from(two[1].0));
    }
    of_host.sort_unstable();
    of_host.into_iter().take(3 * n).sum::<u64>().div_ceil(2)
}
