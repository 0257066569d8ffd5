use std::collections::VecDeque;

use expect_test::{Expect, expect};

use super::*;
use crate::torus::lattice::Direction;

fn check(text: &str, expected: Expect) {
    let answer = match Shape::parse(text) {
        Ok((shape, notes)) => {
            let notes: Vec<String> = notes.iter().map(ShapeNote::to_string).collect();
            [vec![shape.to_string()], notes].concat().join("; ")
        }
        Err(error) => format!("error: {error}"),
    };
    expected.assert_eq(&answer);
}

#[test]
fn sides_come_in_any_order_and_a_note_says_so() {
    check("4x4x8", expect!["4x4x8"]);
    check("8x4x4", expect!["4x4x8; 8x4x4 is 4x4x8"]);
    check("192x4x4", expect!["4x4x192; 192x4x4 is 4x4x192"]);
    check("16x8x8_twisted", expect!["8x8x16_twisted; 16x8x8 is 8x8x16"]);
    check("4x4x8_untwisted", expect!["4x4x8"]);
    check("2x2x1", expect!["2x2x1"]);
    check("1x2x2", expect!["2x2x1; 1x2x2 is 2x2x1"]);
    check("1x1x2", expect!["2x2x1; 1x1x2 takes a whole machine, 2x2x1"]);
    check("4x2x4", expect!["2x4x4; 4x2x4 is 2x4x4"]);
}

#[test]
fn what_is_no_shape_is_told_what_would_be_one() {
    let texts = [
        "",
        "4x4",
        "4x4x4x4",
        "4x4x+4",
        "0x4x4",
        "4x4x99999999999999999999999999999999999999999999",
        "4x4x8_bent",
        "4x4x6",
        "1x1x3",
        "16x16x20",
        "65532x65532x65532",
        "4x4x4_twisted",
        "1x1x2_twisted",
        "16x16x32_twisted",
        "4x8x16_twisted",
    ];
    let errors = texts.map(|text| Shape::parse(text).unwrap_err().to_string());
    expect![[r#"
        "" is no shape; write three sides, such as 4x4x8 or 4x4x8_twisted
        "4x4" is no shape; write three sides, such as 4x4x8 or 4x4x8_twisted
        "4x4x4x4" is no shape; write three sides, such as 4x4x8 or 4x4x8_twisted
        side "+4" of shape "4x4x+4" must be a whole number from 1 to 256
        side "0" of shape "0x4x4" must be a whole number from 1 to 256
        side "99999999999999999999999999999999" of shape "4x4x9999999999999999999999999999" must be a whole number from 1 to 256
        "_bent" behind shape "4x4x8_bent" must be "_twisted" or "_untwisted"
        4x4x6 is neither whole cubes (each side a multiple of 4) nor one of 1x1x1, 2x2x1, 2x2x2, 2x2x4 and 2x4x4; nearest are 4x4x4 and 4x4x8
        1x1x3 is neither whole cubes (each side a multiple of 4) nor one of 1x1x1, 2x2x1, 2x2x2, 2x2x4 and 2x4x4; nearest are 1x1x1 and 2x2x1
        16x16x20 takes 80 cubes and a pod joins 64; nearest are 12x16x20 and 16x16x16
        65532x65532x65532 takes 4397241253887 cubes and a pod joins 64; nearest are 4x4x256 and 4x4x252
        4x4x4 has no twisted form, which only (4k,4k,8k) and (4k,8k,8k) have; nearest are 4x4x8_twisted and 4x8x8_twisted
        1x1x2 has no twisted form, which only (4k,4k,8k) and (4k,8k,8k) have; nearest are 4x4x8_twisted and 4x8x8_twisted
        16x16x32 takes 128 cubes and a pod joins 64; nearest are 8x16x32 and 4x16x32
        4x8x16 has no twisted form, which only (4k,4k,8k) and (4k,8k,8k) have; nearest are 8x8x16_twisted and 4x8x8_twisted"#]].assert_eq(&errors.join("\n"));
}

#[test]
fn every_shape_reads_back_what_it_prints_and_takes_what_it_says() {
    let all = Shape::all();
    for shape in &all {
        assert_eq!(Shape::parse(&shape.to_string()), Ok((*shape, Vec::new())));
        assert_eq!(shape.chips().n_points() as u32, shape.n_chips());
        let Some(cubes) = shape.cube_lattice() else {
            assert_eq!((shape.n_cubes(), shape.cubes()), (1, None));
            continue;
        };
        assert_eq!(cubes.n_points(), shape.n_cubes());
        assert_eq!(shape.n_chips() as usize, CHIPS * shape.n_cubes());
        assert_eq!(shape.need(), Need::Whole { n_parts: shape.n_cubes() as u32 });
    }
    let twisted: Vec<String> = all.iter().filter(|it| it.twisted()).map(Shape::to_string).collect();
    let known =
        ["4x4x8_twisted", "4x8x8_twisted", "8x8x16_twisted", "8x16x16_twisted", "12x12x24_twisted"];
    assert_eq!(twisted, known);
    // Independent count: sorted triples whose product is at most 64.
    let mut n_cuboids = 0;
    for a in 1..=64 {
        for b in 1..=64 {
            n_cuboids += (1..=64).filter(|c| a <= b && b <= *c && a * b * c <= 64).count();
        }
    }
    assert_eq!(all.len(), 5 + n_cuboids + 5);
}

#[test]
fn a_shape_is_stored_as_its_text() {
    let shape: Shape = "8x8x16_twisted".parse().unwrap();
    assert_eq!(serde_json::to_string(&shape).unwrap(), r#""8x8x16_twisted""#);
    assert_eq!(serde_json::from_str::<Shape>(r#""16x8x8_twisted""#).unwrap(), shape);
    let error = serde_json::from_str::<Shape>(r#""4x4x6""#).unwrap_err();
    assert!(error.to_string().contains("nearest are 4x4x4 and 4x4x8"), "{error}");
}

#[test]
fn the_diameter_is_what_a_search_finds() {
    for shape in Shape::all() {
        let lattice = shape.chips();
        let mut hops = vec![u32::MAX; lattice.n_points()];
        hops[0] = 0;
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            for direction in Direction::ALL {
                let Some(next) = lattice.step(lattice.point(at), direction) else { continue };
                let next = lattice.idx(next);
                if hops[next] == u32::MAX {
                    hops[next] = hops[at] + 1;
                    queue.push_back(next);
                }
            }
        }
        assert_eq!(hops.iter().max(), Some(&shape.diameter()), "{shape}");
        if shape.twisted() {
            for (idx, &hops) in hops.iter().enumerate() {
                for way in lattice.shortest(lattice.point(idx)) {
                    assert_eq!(lattice.idx(lattice.reduce(way)), idx, "{shape}");
                    let length: i32 = way.iter().map(|it| it.abs()).sum();
                    assert_eq!(length, hops as i32, "{shape} {idx}");
                }
            }
        }
    }
}

#[test]
fn steps_lead_back_and_offsets_add_up() {
    for shape in Shape::all().into_iter().filter(|it| it.n_chips() <= 1024) {
        let lattice = shape.chips();
        for idx in 0..lattice.n_points() {
            let at = lattice.point(idx);
            assert_eq!(lattice.idx(at), idx);
            for direction in Direction::ALL {
                let Some(next) = lattice.step(at, direction) else { continue };
                assert_eq!(
                    lattice.step(next, direction.reverse()),
                    Some(at),
                    "{shape} {direction}"
                );
                if lattice.wraps() {
                    let mut hop = [0; 3];
                    hop[direction.dim()] = if direction.out() { 1 } else { -1 };
                    assert_eq!(lattice.offset(at, next), lattice.reduce(hop), "{shape} {at:?}");
                }
            }
        }
    }
}

#[test]
fn a_count_of_chips_takes_the_fewest_chips_then_the_smallest_diameter() {
    let text = |n| Shape::for_chips(n).map(|it| it.to_string());
    for (n, shape) in [
        (0, "1x1x1"),
        (1, "1x1x1"),
        (2, "2x2x1"),
        (5, "2x2x2"),
        (9, "2x2x4"),
        (17, "2x4x4"),
        (33, "4x4x4"),
        (65, "4x4x8_twisted"),
        (200, "4x8x8_twisted"),
        (512, "8x8x8"),
        (513, "4x12x12"),
        (1024, "8x8x16_twisted"),
        (2048, "8x16x16_twisted"),
        (4096, "16x16x16"),
    ] {
        assert_eq!(text(n).as_deref(), Some(shape), "{n}");
    }
    assert_eq!(text(4097), None);
}

fn masks(text: &str) -> Vec<u64> {
    match text.parse::<Shape>().unwrap().need() {
        Need::Within { masks } => masks,
        Need::Whole { .. } | Need::Partition(_) => panic!("{text} lies in a cube"),
    }
}

#[test]
fn boxes_within_a_cube_are_whole_machines_in_every_orientation() {
    for (text, n_masks) in
        [("1x1x1", 64), ("2x2x1", 16), ("2x2x2", 12), ("2x2x4", 4 + 6 + 6), ("2x4x4", 2 + 2 + 3)]
    {
        let masks = masks(text);
        assert_eq!(masks.len(), n_masks, "{text}");
        let n_chips = text.parse::<Shape>().unwrap().n_chips();
        for (idx, &mask) in masks.iter().enumerate() {
            assert_eq!(mask.count_ones(), n_chips);
            assert!(!masks[..idx].contains(&mask));
            for seat in (0..CHIPS).filter(|seat| n_chips != 1 && mask >> seat & 1 == 1) {
                // The other chips of a machine differ in the lowest bits of x and y.
                for mate in [seat ^ 1, seat ^ 4] {
                    assert_eq!(mask >> mate & 1, 1, "{text} {mask:#x} cuts a machine");
                }
            }
        }
    }
}

/// Fills cubes by taking the first free mask, as the scheduler does, and asks after each step
/// whether every larger shape still finds as many places as it could at best.
#[test]
fn taking_the_first_free_box_breaks_no_larger_one_in_vain() {
    let order = ["2x4x4", "2x2x4", "2x2x2", "2x2x1", "1x1x1"];
    for (small, text) in order.iter().enumerate() {
        let small_masks = masks(text);
        let size = small_masks[0].count_ones();
        let mut taken = 0u64;
        for n_taken in 1..=64 / size {
            let first = small_masks.iter().find(|&it| it & taken == 0);
            taken |= first.unwrap_or_else(|| panic!("{n_taken} times {text} fit a cube"));
            for larger in &order[..small] {
                let masks = masks(larger);
                let mut filled = taken;
                while let Some(mask) = masks.iter().find(|&it| it & filled == 0) {
                    filled |= mask;
                }
                let n_more = (filled & !taken).count_ones() / masks[0].count_ones();
                let n_best = (64 - n_taken * size) / masks[0].count_ones();
                assert_eq!(n_more, n_best, "{larger} beside {n_taken} times {text}");
            }
        }
        assert_eq!(taken, u64::MAX);
    }
}
