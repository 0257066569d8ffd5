use std::collections::BTreeMap;

use expect_test::expect;
use selvedge_model::job::Xconnect;

use super::*;
use crate::torus::build;
use crate::torus::wiring::xconnects;

/// A pod, and what its switches join.
struct Pod {
    fabric: Fabric,
    mirrors: BTreeMap<(PartId, u16), u16>,
}

impl Pod {
    fn new() -> Self {
        Self { fabric: build::pods(1, 64).unwrap(), mirrors: BTreeMap::new() }
    }

    fn cube(&self, number: usize) -> PartId {
        self.fabric.part_named(&format!("cube{number}")).unwrap()
    }

    fn cubes(&self, numbers: &[usize]) -> Vec<PartId> {
        numbers.iter().map(|&it| self.cube(it)).collect()
    }

    fn numbers(&self, place: &Place) -> Vec<usize> {
        let number = |hold: &Hold| self.fabric.part(hold.part).name[4..].parse().unwrap();
        place.holds.iter().map(number).collect()
    }

    fn arrange(&self, shape: &str, parts: &[PartId]) -> Place {
        let current = |switch, north| self.mirrors.get(&(switch, north)).copied();
        arrange(&self.fabric, &shape.parse().unwrap(), parts, &current)
    }

    fn choose(&self, shape: &str, free: &[usize]) -> Option<Vec<PartId>> {
        let current = |switch, north| self.mirrors.get(&(switch, north)).copied();
        choose(&self.fabric, &self.cubes(free), &shape.parse().unwrap(), &current)
    }

    /// How many mirrors of each switch (in all dimensions) would turn.
    fn n_turned(&self, shape: &str, place: &Place) -> usize {
        let xconnects = xconnects(&self.fabric, &shape.parse().unwrap(), place).unwrap();
        let turns = |(switch, it): &(PartId, Xconnect)| {
            self.mirrors.get(&(*switch, it.north)) != Some(&it.south)
        };
        xconnects.iter().filter(|it| turns(it)).count() / FACE
    }

    /// Turns the mirrors and says how many of each switch (in all dimensions) had to turn.
    fn wire(&mut self, shape: &str, place: &Place) -> usize {
        let xconnects = xconnects(&self.fabric, &shape.parse().unwrap(), place).unwrap();
        let mut n_turned = 0;
        for (switch, Xconnect { north, south }) in xconnects {
            if self.mirrors.get(&(switch, north)) != Some(&south) {
                self.mirrors.retain(|&(on, _), it| on != switch || *it != south);
                self.mirrors.insert((switch, north), south);
                n_turned += 1;
            }
        }
        assert_eq!(n_turned % FACE, 0);
        n_turned / FACE
    }

    /// Wires `shape` on these cubes in this order.
    fn wire_on(&mut self, shape: &str, cubes: &[usize]) {
        let place = whole(&self.fabric, &self.cubes(cubes));
        self.wire(shape, &place);
    }
}

#[test]
fn a_blank_pod_is_filled_from_the_lowest_cube_on() {
    let pod = Pod::new();
    let free: Vec<usize> = (3..40).rev().collect();
    assert_eq!(pod.choose("4x8x8", &free), Some(pod.cubes(&[3, 4, 5, 6])));
    let place = pod.arrange("4x8x8", &pod.cubes(&[9, 4, 30, 7]));
    assert_eq!(pod.numbers(&place), [4, 7, 9, 30]);
    assert!(place.holds.iter().all(|it| it.seats == u64::MAX));
    assert_eq!(pod.choose("16x16x16", &free), None);
    assert_eq!(pod.choose("2x2x1", &free), None);
}

#[test]
fn the_same_cubes_in_the_same_shape_turn_no_mirror() {
    for shape in ["4x4x4", "4x4x8_twisted", "4x8x8_twisted", "8x8x8", "4x4x64", "16x16x16"] {
        let mut pod = Pod::new();
        let n_cubes = shape.parse::<Shape>().unwrap().n_cubes();
        // A permutation of 64: 29 is odd.
        let cubes: Vec<usize> = (0..n_cubes).map(|it| (it * 29 + 5) % 64).collect();
        pod.wire_on(shape, &cubes);
        let mut parts = pod.cubes(&cubes);
        parts.sort_unstable();
        let place = pod.arrange(shape, &parts);
        assert_eq!(pod.wire(shape, &place), 0, "{shape}");
    }
}

#[test]
fn joined_cubes_are_chosen_before_lower_ones() {
    let mut pod = Pod::new();
    pod.wire_on("4x4x12", &[20, 31, 25]);
    pod.wire_on("4x4x8", &[50, 40]);
    let free: Vec<usize> = (0..64).collect();
    assert_eq!(pod.choose("4x4x8", &free), Some(pod.cubes(&[40, 50])));
    assert_eq!(pod.choose("4x4x12", &free), Some(pod.cubes(&[20, 25, 31])));
    // All five are taken, and both chains stay whole but for the joints that close them.
    let chosen = pod.choose("4x4x20", &free).unwrap();
    assert_eq!(chosen, pod.cubes(&[20, 25, 31, 40, 50]));
    let place = pod.arrange("4x4x20", &chosen);
    assert_eq!(pod.wire("4x4x20", &place), 2);
}

#[test]
fn a_part_of_an_old_ring_keeps_its_joints() {
    let mut pod = Pod::new();
    pod.wire_on("4x4x16", &[8, 3, 12, 1]);
    // 12 -> 1 -> 8 stays; 8 -> 12 closes the new ring.
    let place = pod.arrange("4x4x12", &pod.cubes(&[1, 8, 12]));
    assert_eq!(pod.wire("4x4x12", &place), 1);
}

#[test]
fn a_hot_swap_turns_only_the_mirrors_of_the_lost_cube() {
    let mut pod = Pod::new();
    pod.wire_on("8x8x8", &[0, 1, 2, 3, 4, 5, 6, 7]);
    let place = whole(&pod.fabric, &pod.cubes(&[0, 1, 2, 3, 4, 5, 6, 7]));
    let mut swapped = place.clone();
    swapped.holds[5].part = pod.cube(60);
    assert_eq!(pod.numbers(&swapped), [0, 1, 2, 3, 4, 60, 6, 7]);
    // In each dimension its own + face and the + face that leads to it.
    assert_eq!(pod.wire("8x8x8", &swapped), 6);
}

#[test]
fn a_dead_switch_does_not_hide_what_the_others_join() {
    let mut pod = Pod::new();
    pod.wire_on("4x4x16", &[8, 3, 12, 1]);
    for dead in ["z0", "z15"] {
        let dead = pod.fabric.part_named(dead).unwrap();
        let current =
            |switch, north| pod.mirrors.get(&(switch, north)).copied().filter(|_| switch != dead);
        let shape = "4x4x16".parse().unwrap();
        let place = arrange(&pod.fabric, &shape, &pod.cubes(&[1, 3, 8, 12]), &current);
        assert_eq!(pod.n_turned("4x4x16", &place), 0);
    }
}

#[test]
fn a_switch_that_answers_nonsense_is_not_believed() {
    let pod = Pod::new();
    let shape = "4x4x8".parse().unwrap();
    let parts = pod.cubes(&[2, 9]);
    for answer in [u16::MAX, 0, 135, 64 + 9] {
        let place = arrange(&pod.fabric, &shape, &parts, &|_, _| Some(answer));
        assert_eq!(pod.numbers(&place).len(), 2, "{answer}");
    }
}

/// Goal: how much the greedy walk loses.  Method: scenes of a few cubes, joined by earlier
/// slices drawn by chance, against every order of the same cubes.
#[test]
fn the_walk_turns_as_few_mirrors_as_the_best_order() {
    let mut dice = 1u64;
    let mut draw = |n: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % n
    };
    let shapes = ["4x4x8", "4x4x12", "4x4x16", "4x8x8", "4x8x8_twisted", "4x4x20"];
    let (mut n_walk, mut n_best, mut n_lowest_first) = (0, 0, 0);
    for _ in 0..60 {
        let mut pod = Pod::new();
        let mut drawn = || {
            let shape = shapes[draw(shapes.len())];
            let mut rest: Vec<usize> = (0..8).collect();
            let n_cubes = shape.parse::<Shape>().unwrap().n_cubes();
            let cubes: Vec<_> = (0..n_cubes).map(|_| rest.swap_remove(draw(rest.len()))).collect();
            (shape, cubes)
        };
        for _ in 0..4 {
            let (shape, cubes) = drawn();
            pod.wire_on(shape, &cubes);
        }
        let (shape, cubes) = drawn();
        let parts = pod.cubes(&cubes);
        let walk = pod.n_turned(shape, &pod.arrange(shape, &parts));
        let turned =
            orders(&parts).into_iter().map(|it| pod.n_turned(shape, &whole(&pod.fabric, &it)));
        let best = turned.min().unwrap();
        assert!(best <= walk, "{shape} on {cubes:?}");
        (n_walk, n_best) = (n_walk + walk, n_best + best);
        let mut lowest_first = parts.clone();
        lowest_first.sort_unstable();
        n_lowest_first += pod.n_turned(shape, &whole(&pod.fabric, &lowest_first));
    }
    expect!["395 turned, at best 395, lowest cube first 425"].assert_eq(&format!(
        "{n_walk} turned, at best {n_best}, lowest cube first {n_lowest_first}"
    ));
}

fn orders(parts: &[PartId]) -> Vec<Vec<PartId>> {
    let [first, rest @ ..] = parts else { return vec![Vec::new()] };
    let mut found = Vec::new();
    for shorter in orders(rest) {
        for at in 0..parts.len() {
            let mut order = shorter.clone();
            order.insert(at, *first);
            found.push(order);
        }
    }
    found
}
