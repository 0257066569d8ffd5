//! Placement held against its bound, an exact search, and machines by hand.

use std::collections::BTreeSet;

use selvedge_model::fabric::DomainKind;
use selvedge_model::spec::Plant;

use super::hosts::Hosts;
use super::load::{load, three_blocks};
use super::near::Near;
use super::*;
use crate::build;

/// Knuth's multiplier; the upper bits are the good ones.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

fn fabric(pods: &str) -> selvedge_model::fabric::Fabric {
    let text = format!("format = 1\nname = \"test\"\n{pods}");
    let plant = Plant::parse("test.toml", &text).unwrap();
    build(&plant).unwrap()
}

fn mesh(rows: usize, columns: usize, wrap: &str) -> String {
    let grid = format!("{}x{}", 2 * columns, 2 * rows);
    format!("[[pod]]\nfamily = \"tpuv2\"\ngrid = \"{grid}\"\nwrap = \"{wrap}\"\n")
}

fn hypersquare(rows: usize, columns: usize) -> String {
    format!("[[pod]]\nfamily = \"hypersquare\"\ngroups = \"{rows}x{columns}\"\n")
}

/// The hosts of `fabric` without so many per cent of them.
fn damaged(fabric: &selvedge_model::fabric::Fabric, per_cent: usize, dice: &mut Dice) -> Hosts {
    let whole = Hosts::of(fabric, |_| true);
    let n_dead = whole.n() * per_cent / 100;
    let mut dead = BTreeSet::new();
    while dead.len() < n_dead {
        dead.insert(whole.hosts[dice.throw(whole.n())]);
    }
    Hosts::of(fabric, |it| !dead.contains(&it))
}

/// All that a packing within two hops must be, whoever made it.
fn hold(hosts: &Hosts, clusters: &Clusters) {
    let mut seen = BTreeSet::new();
    for triple in &clusters.triples {
        let [meta, a, b] = triple.hosts;
        let hops = |from: usize, to: usize| hosts.graph.distances(from)[to];
        assert_eq!(triple.hops, [hops(meta, a), hops(meta, b), hops(a, b)], "{triple:?}");
        assert!(triple.hops.iter().all(|it| (1..=2).contains(it)), "{triple:?}");
        // Whoever is in the middle leads: nobody has fewer hops to the two others.
        let [to_a, to_b, between] = triple.hops;
        assert!(to_a + to_b <= between + to_a.min(to_b), "{triple:?}");
        assert!(triple.hosts.iter().all(|it| seen.insert(*it)), "{triple:?} shares a host");
    }
    assert!(clusters.left.iter().all(|it| seen.insert(*it)));
    assert_eq!(seen.len(), hosts.n());
    assert!(clusters.triples.len() <= clusters.bound);
    assert!(clusters.hops_bound <= clusters.hops_sum());
}

/// Whether some packing leaves at most `spare` of the hosts of a set over; by trying all, the
/// lowest host first, each state once.
fn fits(
    near: &Near,
    left: &[bool],
    spare: usize,
    failed: &mut BTreeSet<(Vec<bool>, usize)>,
) -> bool {
    let Some(first) = left.iter().position(|it| *it) else { return true };
    if failed.contains(&(left.to_vec(), spare)) {
        return false;
    }
    let choices: Vec<u32> =
        near.of_host(first as u32).iter().map(|it| it.0).filter(|it| left[*it as usize]).collect();
    for (place, &a) in choices.iter().enumerate() {
        for &b in choices[place + 1..].iter().filter(|it| near.hops(a, **it).is_some()) {
            let mut rest = left.to_vec();
            [first, a as usize, b as usize].into_iter().for_each(|it| rest[it] = false);
            if fits(near, &rest, spare, failed) {
                return true;
            }
        }
    }
    let mut rest = left.to_vec();
    rest[first] = false;
    if 0 < spare && fits(near, &rest, spare - 1, failed) {
        return true;
    }
    failed.insert((left.to_vec(), spare));
    assert!(failed.len() < 2_000_000, "the exact search takes too long");
    false
}

/// The most triples there can be, from `found` up.
fn most(hosts: &Hosts, clusters: &Clusters) -> usize {
    let near = Near::of(hosts);
    let mut n = 0;
    for set in near.set_of.iter().copied().collect::<BTreeSet<u32>>() {
        let left: Vec<bool> = near.set_of.iter().map(|it| *it == set).collect();
        let size = left.iter().filter(|it| **it).count();
        let is_ours = |it: &&Triple| near.set_of[it.hosts[0]] == set;
        let mut most = clusters.triples.iter().filter(is_ours).count();
        while most < size / 3 && fits(&near, &left, size - 3 * (most + 1), &mut BTreeSet::new()) {
            most += 1;
        }
        n += most;
    }
    n
}

#[test]
fn of_1000_damaged_machines_95_in_100_reach_the_bound() {
    let mut dice = Dice(7);
    let (mut n_reached, mut n) = (0, 0);
    let side = |dice: &mut Dice| 2 + dice.throw(15);
    for nth in 0..1000 {
        let (rows, columns) = (side(&mut dice), side(&mut dice));
        let pod = match nth % 3 {
            0 => mesh(rows, columns, "none"),
            1 => mesh(rows, columns, "xy"),
            _ => hypersquare(rows, columns),
        };
        let per_cent = dice.throw(11);
        let hosts = damaged(&fabric(&pod), per_cent, &mut dice);
        let Ok(clusters) = place(&hosts, Apart::Host, usize::MAX) else { continue };
        hold(&hosts, &clusters);
        n += 1;
        n_reached += usize::from(clusters.triples.len() == clusters.bound);
    }
    println!("{n_reached} of {n}");
    assert!(990 < n && n_reached == n, "{n_reached} of {n}");
}

#[test]
fn up_to_144_hosts_the_most_that_there_can_be_is_one_more_at_most() {
    let mut dice = Dice(11);
    let (mut n_worse, mut n_checked) = (0, 0);
    for nth in 0..300 {
        let (rows, columns) = (2 + dice.throw(11), 2 + dice.throw(11));
        let pod = match nth % 3 {
            0 => mesh(rows, columns, "none"),
            1 => mesh(rows, columns, "xy"),
            _ => hypersquare(rows, columns),
        };
        let per_cent = dice.throw(46);
        let hosts = damaged(&fabric(&pod), per_cent, &mut dice);
        let Ok(clusters) = place(&hosts, Apart::Host, usize::MAX) else { continue };
        hold(&hosts, &clusters);
        let most = most(&hosts, &clusters);
        n_checked += usize::from(clusters.triples.len() < clusters.bound);
        n_worse += most - clusters.triples.len();
        assert!(most <= clusters.triples.len() + 1, "{rows}x{columns}: {most}");
    }
    println!("{n_worse} missed, {n_checked} below the bound");
    assert!(n_worse <= 1 && 0 < n_checked, "{n_worse} worse, {n_checked} below the bound");
}

#[test]
fn a_cube_s_machines_make_five_clusters_each() {
    let hosts = Hosts::of(&fabric("[[pod]]\nfamily = \"tpuv4\"\ncubes = 3\n"), |_| true);
    assert_eq!(hosts.n(), 48);
    let clusters = place(&hosts, Apart::Host, usize::MAX).unwrap();
    hold(&hosts, &clusters);
    assert_eq!((clusters.triples.len(), clusters.bound), (15, 15));
    let cube = |it: usize| hosts.hosts[it].part;
    for triple in &clusters.triples {
        assert!(triple.hosts.iter().all(|it| cube(*it) == cube(triple.hosts[0])));
    }
}

#[test]
fn hosts_that_are_near_are_not_taken_apart_because_others_are_far() {
    // Of five hosts at each of two switches, three of each are near; the four others are not.
    let hosts = Hosts::of(&fabric(&tree(2, 5)), |_| true);
    let all = place_all(&hosts);
    assert_eq!((all.triples.len(), all.n_near, all.n_joined), (3, 2, 3));
    let hops = |it: &Triple| it.hops.into_iter().max();
    assert_eq!(all.triples.iter().map(hops).collect::<Vec<_>>(), [Some(2), Some(2), Some(4)]);
    // Each cube's machines make five; of one in each of three cubes nothing joins two.
    let hosts = Hosts::of(&fabric("[[pod]]\nfamily = \"tpuv4\"\ncubes = 3\n"), |_| true);
    let all = place_all(&hosts);
    assert_eq!((all.triples.len(), all.n_near, all.n_joined), (16, 15, 15));
    let mut seen = BTreeSet::new();
    assert!(all.triples.iter().flat_map(|it| it.hosts).all(|it| seen.insert(it)));
    // Two hosts make none.
    let hosts = Hosts::of(&fabric(&hypersquare(1, 2)), |_| true);
    assert_eq!(place_all(&hosts), All::default());
}

/// Method: three switches hang on the one above, and three each behind one more, which come first.
/// One cluster is asked for where there could be four: it takes the near ones.
#[test]
fn fewer_clusters_than_there_can_be_are_the_shortest() {
    let mut text = tree(6, 2);
    for tor in 0..3 {
        text = text.replace(&format!("b = \"spine/p{tor}\""), &format!("b = \"far{tor}/p0\""));
        text += &format!("[[part]]\nname = \"far{tor}\"\ntemplate = \"tor\"\n");
        text += &format!("[[cable]]\na = \"far{tor}/p1\"\nb = \"spine/p{tor}\"\n");
    }
    let hosts = Hosts::of(&fabric(&text), |_| true);
    for apart in [Apart::Switch, Apart::Domain(DomainKind::Rack)] {
        for (n, hops) in [(1, 12), (2, 24)] {
            let some = place(&hosts, apart, n).unwrap();
            assert_eq!((some.triples.len(), some.bound), (n, 4));
            assert_eq!((some.hops_sum(), some.hops_bound), (hops, hops), "{apart:?} {n}");
        }
    }
}

/// `n_tors` switches of `n` hosts each, all cabled to one switch above them.
fn tree(n_tors: usize, n: usize) -> String {
    let mut text = format!(
        "[[pod]]\nfamily = \"hosts\"\nhosts = {}\n[power]\nhosts_per_rack = {n}\n",
        n_tors * n
    );
    for (name, ports) in [("tor", n + 1), ("spine", n_tors)] {
        text += &format!("[[template]]\nname = \"{name}\"\nrole = \"packet-switch\"\n");
        text += "nodes = [{ name = \"sw\", kind = \"switch\" }]\nports = [\n";
        for port in 0..ports {
            text += &format!("{{ name = \"p{port}\", node = \"sw\" }},\n");
        }
        text += "]\n";
    }
    text += "[[part]]\nname = \"spine\"\ntemplate = \"spine\"\n";
    for tor in 0..n_tors {
        text += &format!("[[part]]\nname = \"tor{tor}\"\ntemplate = \"tor\"\n");
        text += &format!("[[cable]]\na = \"tor{tor}/p{n}\"\nb = \"spine/p{tor}\"\n");
        for port in 0..n {
            let host = tor * n + port;
            text += &format!("[[cable]]\na = \"host{host}/nic0/port\"\nb = \"tor{tor}/p{port}\"\n");
        }
    }
    text
}

#[test]
fn under_switches_a_cluster_is_two_hops_and_across_them_four() {
    let fabric = fabric(&tree(4, 5));
    let hosts = Hosts::of(&fabric, |_| true);
    let near = place(&hosts, Apart::Host, usize::MAX).unwrap();
    hold(&hosts, &near);
    // Five hosts to a switch leave two over at each.
    assert_eq!((near.triples.len(), near.bound, near.hops_sum()), (4, 4, 24));
    for apart in [Apart::Switch, Apart::Domain(DomainKind::Rack)] {
        let far = place(&hosts, apart, usize::MAX).unwrap();
        assert_eq!((far.triples.len(), far.bound), (6, 6));
        assert_eq!((far.hops_sum(), far.hops_bound), (6 * 12, 6 * 12));
        for triple in &far.triples {
            let racks = triple.hosts.map(|it| hosts.domain(it, DomainKind::Rack));
            assert_eq!(racks.iter().collect::<BTreeSet<_>>().len(), 3);
        }
        let load = load(&hosts, &far.triples);
        assert_eq!((load.hops_sum, load.hops_max), (72, 4));
        // Two pairs of each cluster of a host pass its own link.
        assert_eq!(load.most, 10);
    }
    assert_eq!(
        place(&hosts, Apart::Domain(DomainKind::Cooling), usize::MAX),
        Err(ClusterError::NoDomain { what: "cooling loop" })
    );
}

#[test]
fn uneven_racks_give_as_many_clusters_as_they_can() {
    // Three racks of four and one of two: four clusters, and two hosts over.
    let fabric = fabric(&tree(4, 4));
    let gone = ["host14", "host15"];
    let hosts = Hosts::of(&fabric, |it| !gone.contains(&it.path(&fabric).as_str()));
    let far = place(&hosts, Apart::Domain(DomainKind::Rack), usize::MAX).unwrap();
    assert_eq!((far.triples.len(), far.bound, far.left.len()), (4, 4, 2));
    // One rack of four and two of one: one cluster.
    let gone: Vec<String> = (0..16)
        .filter(|it| ![0, 1, 2, 3, 4, 8].contains(it))
        .map(|it| format!("host{it}"))
        .collect();
    let hosts = Hosts::of(&fabric, |it| !gone.contains(&it.path(&fabric)));
    let far = place(&hosts, Apart::Domain(DomainKind::Rack), usize::MAX).unwrap();
    assert_eq!((far.triples.len(), far.bound, far.left.len()), (1, 1, 3));
}

#[test]
fn on_a_mesh_compares_stay_local_and_three_blocks_cross_it() {
    let hosts = Hosts::of(&fabric(&mesh(12, 12, "none")), |_| true);
    let clusters = place(&hosts, Apart::Host, usize::MAX).unwrap();
    assert_eq!((clusters.triples.len(), clusters.hops_sum()), (48, 48 * 4));
    assert_eq!(clusters.hops_bound, 48 * 4);
    let near = load(&hosts, &clusters.triples);
    let far = load(&hosts, &three_blocks(&hosts, 48));
    assert!(near.most <= 3 && near.hops_max == 2, "{near:?}");
    assert!(8 <= far.hops_max && 3 * near.most < far.most, "{far:?}");
}

#[test]
fn fewer_than_three_hosts_are_refused() {
    let hosts = Hosts::of(&fabric(&hypersquare(1, 2)), |_| true);
    assert_eq!(place(&hosts, Apart::Host, 1), Err(ClusterError::TooFew { n: 2 }));
}
