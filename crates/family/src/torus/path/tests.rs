use std::collections::BTreeMap;
use std::collections::VecDeque;

use expect_test::{Expect, expect};
use selvedge_model::fabric::Fabric;
use selvedge_model::id::{PoolId, PortId};
use selvedge_model::job::{Hold, Need, Place};

use super::*;
use crate::torus::build;
use crate::torus::hardware::{ICI_PORTS, chip, ici_port};
use crate::torus::wiring::xconnects;

/// What every chip sees: one list for each hold.
type Seen = Vec<Vec<Option<PortId>>>;

fn shape(text: &str) -> Shape {
    text.parse().unwrap()
}

fn place_of(fabric: &Fabric, shape: &Shape) -> Place {
    let part = |idx: usize| fabric.part_named(&format!("cube{}", (idx * 37 + 11) % 64)).unwrap();
    let hold = |idx| Hold { part: part(idx), seats: u64::MAX };
    Place::of(PoolId::new(0), (0..shape.n_cubes()).map(hold).collect())
}

/// What the chips see when the switches are set as `wiring` says: along cable, mirror and cable.
fn seen_through_mirrors(fabric: &Fabric, shape: &Shape, place: &Place) -> Seen {
    let mut mirrors = BTreeMap::new();
    for (switch, it) in xconnects(fabric, shape, place).unwrap() {
        let [north, south] =
            [it.north, it.south].map(|local| fabric.port_at(switch, usize::from(local)));
        mirrors.insert(north, south);
        mirrors.insert(south, north);
    }
    let see = |port| {
        let peer = fabric.peer_of(port)?;
        if fabric.part_of_port(peer) == fabric.part_of_port(port) {
            return Some(peer);
        }
        mirrors.get(&peer).and_then(|&it| fabric.peer_of(it))
    };
    let look = |hold: &Hold| (0..ICI_PORTS).map(|it| see(fabric.port_at(hold.part, it))).collect();
    place.holds.iter().map(look).collect()
}

#[test]
fn what_chips_ought_to_see_is_what_the_wiring_shows_them() {
    let fabric = build::pods(1, 64).unwrap();
    for shape in Shape::all().into_iter().filter(|it| it.cubes().is_some()) {
        let place = place_of(&fabric, &shape);
        let seen = seen_through_mirrors(&fabric, &shape, &place);
        for (hold_idx, seen) in seen.iter().enumerate() {
            let expected = expected_peers(&fabric, &shape, &place, hold_idx);
            assert_eq!(expected.len(), ICI_PORTS);
            assert_eq!(expected, *seen, "{shape}, hold {hold_idx}");
        }
        let found = discover(&fabric, &shape, &place, &seen).unwrap();
        assert_eq!(found.n_hops_max, shape.diameter());
        assert_eq!(found.chips.len() as u32, shape.n_chips());
    }
}

/// The place of the port that leaves a chip in a direction of its slice.
fn port_of(seat: Seat, way: Direction, axes: &[usize; 3]) -> usize {
    ici_port(chip(usize::from(seat.seat)), axes[way.dim()], way.out())
}

/// Goal: chip ids and their seats agree with the lattice, in every orientation within a cube.
/// Method: whoever is one step away in the lattice is behind the port that is looked at.
#[test]
fn chips_next_to_each_other_sit_next_to_each_other() {
    let fabric = build::pods(1, 64).unwrap();
    for shape in Shape::all().into_iter().filter(|it| it.n_chips() <= 512) {
        let masks = match shape.need() {
            Need::Whole { .. } | Need::Partition(_) => vec![u64::MAX],
            Need::Within { masks } => masks,
        };
        for mask in masks {
            let mut place = place_of(&fabric, &shape);
            place.holds[0].seats = mask;
            let seats = seats(&shape, &place);
            let expected: Vec<_> = (0..place.holds.len())
                .map(|it| expected_peers(&fabric, &shape, &place, it))
                .collect();
            let axes = axes(&shape, &place);
            let lattice = shape.chips();
            let mut n_links = 0;
            for (id, &seat) in seats.iter().enumerate() {
                let hold = place.holds[usize::from(seat.hold_idx)];
                assert_eq!(hold.seats >> seat.seat & 1, 1);
                for way in Direction::ALL {
                    let local = port_of(seat, way, &axes);
                    let seen = expected[usize::from(seat.hold_idx)][local];
                    let next = lattice.step(lattice.point(id), way);
                    let wanted = next.map(|next| {
                        let next = seats[lattice.idx(next)];
                        let part = place.holds[usize::from(next.hold_idx)].part;
                        fabric.port_at(part, port_of(next, way.reverse(), &axes))
                    });
                    assert_eq!(seen, wanted, "{shape} in {mask:#x}, chip {id} {way}");
                    n_links += usize::from(seen.is_some());
                }
            }
            // Nothing is expected of seats that are not held.
            let n_expected: usize = expected.iter().map(|it| it.iter().flatten().count()).sum();
            assert_eq!(n_links, n_expected);
        }
    }
}

#[test]
fn a_whole_slice_numbers_its_chips_x_fastest() {
    let fabric = build::pods(1, 64).unwrap();
    let shape = shape("4x8x8");
    let seats = seats(&shape, &place_of(&fabric, &shape));
    // Chip (1,5,2) of 4x8x8 lies in cube (0,1,0) at (1,1,2).
    let found = seats[1 + 4 * (5 + 8 * 2)];
    assert_eq!((found.hold_idx, chip(usize::from(found.seat))), (1, [1, 1, 2]));
}

fn check_discovery(shape: &Shape, spoil: &dyn Fn(&Fabric, &Place, &mut Seen), expected: Expect) {
    let fabric = build::pods(1, 64).unwrap();
    let mut place = place_of(&fabric, shape);
    if let Need::Within { masks } = shape.need() {
        place.holds[0].seats = masks[0];
    }
    let mut seen = match shape.cubes() {
        Some(_) => seen_through_mirrors(&fabric, shape, &place),
        None => vec![expected_peers(&fabric, shape, &place, 0)],
    };
    spoil(&fabric, &place, &mut seen);
    let answer = match discover(&fabric, shape, &place, &seen) {
        Ok(found) => format!("{} chips, {} hops", found.chips.len(), found.n_hops_max),
        Err(Differs { mismatches: wrong, .. }) => {
            let lines: Vec<String> = wrong.iter().take(4).map(Mismatch::to_string).collect();
            let n_cut = wrong.iter().filter(|it| !it.reached).count();
            format!("{} wrong, {n_cut} of them cut off\n{}", wrong.len(), lines.join("\n"))
        }
    };
    expected.assert_eq(&answer);
}

#[test]
fn a_swapped_pair_of_fibres_is_seen_at_all_its_ends() {
    let swap = |_: &Fabric, _: &Place, seen: &mut Seen| {
        use crate::torus::hardware::face_port;
        let (a, b) = (face_port(2, true, 5), face_port(2, true, 6));
        seen[0].swap(a, b);
        let (a, b) = (face_port(2, false, 5), face_port(2, false, 6));
        seen[1].swap(a, b);
    };
    check_discovery(
        &shape("4x4x8"),
        &swap,
        expect![[r#"
        4 wrong, 0 of them cut off
        cube11/z/out/5 sees cube48/z/in/6, not cube48/z/in/5
        cube11/z/out/6 sees cube48/z/in/5, not cube48/z/in/6
        cube48/z/in/5 sees cube11/z/out/6, not cube11/z/out/5
        cube48/z/in/6 sees cube11/z/out/5, not cube11/z/out/6"#]],
    );
}

#[test]
fn a_silent_cube_is_cut_off() {
    let mute = |_: &Fabric, place: &Place, seen: &mut Seen| {
        assert_eq!(place.holds.len(), 2);
        seen.truncate(1);
    };
    check_discovery(
        &shape("4x4x8_twisted"),
        &mute,
        expect![[r#"
        384 wrong, 48 of them cut off
        cube48/x/in/0 sees nothing, not cube11/x/out/0
        cube48/chip0.0.0/+x sees nothing, not cube48/chip1.0.0/-x
        cube48/y/in/0 sees nothing, not cube11/y/out/0
        cube48/chip0.0.0/+y sees nothing, not cube48/chip0.1.0/-y"#]],
    );
    let dark = |fabric: &Fabric, place: &Place, seen: &mut Seen| {
        mute(fabric, place, seen);
        let own = place.holds[0].part;
        for it in &mut seen[0] {
            *it = it.filter(|&it| fabric.part_of_port(it) == own);
        }
    };
    check_discovery(
        &shape("4x4x8_twisted"),
        &dark,
        expect![[r#"
        480 wrong, 384 of them cut off
        cube11/x/in/0 sees nothing, not cube48/x/out/0
        cube11/y/in/0 sees nothing, not cube48/y/out/0
        cube11/z/in/0 sees nothing, not cube48/z/out/0
        cube11/y/in/4 sees nothing, not cube48/y/out/4"#]],
    );
}

#[test]
fn a_foreign_port_is_named_and_one_that_does_not_exist_harms_nobody() {
    let foreign = |fabric: &Fabric, _: &Place, seen: &mut Seen| {
        seen[0][1] = Some(fabric.port_at(fabric.part_named("cube63").unwrap(), 0));
        seen[0][3] = Some(PortId::new(u32::MAX - 1));
        seen[0][383] = None;
    };
    check_discovery(
        &shape("4x4x4"),
        &foreign,
        expect![[r#"
        3 wrong, 0 of them cut off
        cube11/chip0.0.0/+x sees cube63/x/in/0, not cube11/chip1.0.0/-x
        cube11/chip0.0.0/+y sees unknown port4294967294, not cube11/chip0.1.0/-y
        cube11/z/out/15 sees nothing, not cube11/z/in/15"#]],
    );
}

#[test]
fn ports_that_leave_a_slice_within_a_cube_are_not_looked_at() {
    let busy = |fabric: &Fabric, place: &Place, seen: &mut Seen| {
        for (local, seen) in seen[0].iter_mut().enumerate() {
            let port = fabric.port_at(place.holds[0].part, local);
            *seen = seen.or(fabric.peer_of(port));
        }
    };
    check_discovery(&shape("2x2x4"), &busy, expect!["16 chips, 5 hops"]);
    let broken = |fabric: &Fabric, place: &Place, seen: &mut Seen| {
        busy(fabric, place, seen);
        seen[0][1] = None;
    };
    check_discovery(
        &shape("2x2x4"),
        &broken,
        expect![[r#"
        1 wrong, 0 of them cut off
        cube11/chip0.0.0/+x sees nothing, not cube11/chip1.0.0/-x"#]],
    );
}

/// Hops from chip 0 to every chip, by search.
fn search(shape: &Shape, source: usize) -> Vec<u32> {
    let lattice = shape.chips();
    let mut hops = vec![u32::MAX; lattice.n_points()];
    hops[source] = 0;
    let mut queue = VecDeque::from([source]);
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
    hops
}

#[test]
fn every_pair_is_joined_by_a_shortest_way_in_dimension_order() {
    for shape in Shape::all() {
        if 512 < shape.n_chips() {
            continue;
        }
        let table = table(&shape);
        // All chips of a torus see the same but for the parity of their coordinates, so that every
        // seventh does for the larger shapes.
        let is_whole = shape.n_chips() <= 256 || shape.dims() == [8; 3];
        for source in (0..shape.n_chips()).step_by(if is_whole { 1 } else { 7 }) {
            let hops = search(&shape, source as usize);
            for (target, way) in table.row(source).enumerate() {
                let target = target as u32;
                assert_eq!(way, table.next(source, target));
                let route = table.route(source, target);
                let pair = format!("{shape}: {source} to {target}");
                assert_eq!(route.len() as u32 - 1, hops[target as usize], "{pair}");
                assert_eq!(route.last(), Some(&target), "{pair}");
                let dims = route.windows(2).map(|it| table.next(it[0], target).unwrap().dim());
                assert!(dims.is_sorted(), "{pair}");
            }
        }
    }
}

/// notes: exact lattice figures for diameter and mean distance, to the digits printed there.
#[test]
fn diameters_and_mean_distances_are_the_known_ones() {
    for (text, diameter, mean) in [
        ("4x4x4", 6, "3.0476"),
        ("4x4x8", 8, "4.0315"),
        ("4x4x8_twisted", 6, "3.4646"),
        ("4x8x8", 10, "5.0196"),
        ("4x8x8_twisted", 6, "4.3294"),
        ("8x8x8", 12, "6.0117"),
        ("8x8x16", 16, "8.0078"),
        ("8x8x16_twisted", 12, "6.9756"),
        ("8x16x16", 20, "10.0049"),
        ("8x16x16_twisted", 12, "8.7230"),
        ("12x12x24", 24, "12.0035"),
        ("12x12x24_twisted", 18, "10.4822"),
        ("16x16x16", 24, "12.0029"),
    ] {
        let shape = shape(text);
        let table = table(&shape);
        // By the table and not by search: it is as long as it says.
        let hops: Vec<u32> =
            (0..shape.n_chips()).map(|it| table.route(0, it).len() as u32 - 1).collect();
        let sum: u32 = hops.iter().sum();
        assert_eq!(hops.iter().max(), Some(&diameter), "{text}");
        let found = f64::from(sum) / f64::from(shape.n_chips() - 1);
        assert_eq!(format!("{found:.4}"), mean, "{text}");
        assert_eq!(hops, search(&shape, 0), "{text}");
    }
}

/// The ways that cross each link when every chip sends to every other, by chip and direction.
fn all_to_all(shape: &Shape) -> Vec<[u32; 6]> {
    let table = table(shape);
    let mut load = vec![[0; 6]; shape.n_chips() as usize];
    for source in 0..shape.n_chips() {
        for target in 0..shape.n_chips() {
            let mut at = source;
            while let Some(way) = table.next(at, target) {
                load[at as usize][way.idx()] += 1;
                let lattice = shape.chips();
                let next = lattice.step(lattice.point(at as usize), way).unwrap();
                at = lattice.idx(next) as u32;
            }
        }
    }
    load
}

#[test]
fn the_busiest_link_of_an_all_to_all_carries_what_it_must() {
    let mut lines = Vec::new();
    for text in ["4x4x4", "4x4x8", "4x8x8", "8x8x8", "4x4x8_twisted", "4x8x8_twisted"] {
        let shape = shape(text);
        let load = all_to_all(&shape);
        let most = load.iter().flatten().max().unwrap();
        let sum: u32 = load.iter().flatten().sum();
        // The plane cut of an untwisted torus; the mean over all links of a twisted one.
        let longest = u32::from(*shape.dims().iter().max().unwrap());
        let bound = if shape.twisted() {
            f64::from(sum) / f64::from(6 * shape.n_chips())
        } else {
            f64::from(shape.n_chips() * longest / 8)
        };
        assert!(bound <= f64::from(*most), "{text}");
        lines.push(format!("{text}: {most}, at least {bound:.3}"));
    }
    expect![[r#"
        4x4x4: 32, at least 32.000
        4x4x8: 128, at least 128.000
        4x8x8: 256, at least 256.000
        8x8x8: 512, at least 512.000
        4x4x8_twisted: 75, at least 73.333
        4x8x8_twisted: 185, at least 184.000"#]]
    .assert_eq(&lines.join("\n"));
}

/// The larger twisted shapes, by the offsets alone: every chip sees the same.
#[test]
fn large_twisted_tables_load_all_directions_alike() {
    let mut lines = Vec::new();
    for text in ["8x8x16_twisted", "8x16x16_twisted", "12x12x24_twisted"] {
        let shape = shape(text);
        let table = table(&shape);
        let mut load = [0u32; 6];
        for target in 0..shape.n_chips() {
            for it in table.route(0, target).windows(2) {
                load[table.next(it[0], target).unwrap().idx()] += 1;
            }
        }
        let bound = f64::from(load.iter().sum::<u32>()) / 6.0;
        lines.push(format!("{text}: {load:?}, at least {bound:.3}"));
    }
    expect![[r#"
        8x8x16_twisted: [1190, 1190, 1189, 1189, 1189, 1189], at least 1189.333
        8x16x16_twisted: [2976, 2976, 2976, 2976, 2976, 2976], at least 2976.000
        12x12x24_twisted: [6037, 6037, 6037, 6037, 6034, 6034], at least 6036.000"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn rings_go_along_their_axis_and_visit_every_chip_once() {
    let mut lines = Vec::new();
    for text in ["4x4x4", "4x4x8", "4x4x8_twisted", "4x8x8_twisted", "2x2x1", "2x4x4"] {
        let shape = shape(text);
        let lattice = shape.chips();
        let mut lengths = Vec::new();
        for (axis, rings) in rings(&shape).iter().enumerate() {
            assert_eq!(rings.axis, axis);
            assert_eq!(rings.closed, shape.cubes().is_some());
            let ahead = Direction::new(axis, true);
            let mut chips = Vec::new();
            for ring in &rings.rings {
                assert_eq!(ring.iter().min(), ring.first());
                for (at, &chip) in ring.iter().enumerate() {
                    let next = lattice.step(lattice.point(chip as usize), ahead);
                    let next = next.map(|it| lattice.idx(it) as u32);
                    let is_last = at + 1 == ring.len();
                    let wanted = ring.get(at + 1).or(ring.first());
                    let wanted = wanted.copied().filter(|_| rings.closed || !is_last);
                    assert_eq!(next, wanted, "{text}");
                }
                chips.extend_from_slice(ring);
            }
            chips.sort_unstable();
            assert_eq!(chips, (0..shape.n_chips()).collect::<Vec<_>>());
            lengths.push(format!("{} of {}", rings.rings.len(), rings.rings[0].len()));
            assert!(rings.rings.iter().all(|it| it.len() == rings.rings[0].len()));
        }
        lines.push(format!("{text}: {}", lengths.join(", ")));
    }
    expect![[r#"
        4x4x4: 16 of 4, 16 of 4, 16 of 4
        4x4x8: 32 of 4, 32 of 4, 16 of 8
        4x4x8_twisted: 16 of 8, 16 of 8, 16 of 8
        4x8x8_twisted: 32 of 8, 32 of 8, 32 of 8
        2x2x1: 2 of 2, 2 of 2, 4 of 1
        2x4x4: 16 of 2, 8 of 4, 8 of 4"#]]
    .assert_eq(&lines.join("\n"));
}
