use std::collections::BTreeMap;

use selvedge_model::id::PoolId;
use selvedge_model::job::Hold;
use selvedge_model::unit::CentiDb;

use super::*;
use crate::torus::build;
use crate::torus::hardware::{FIBRE, SIDE, ici_port, north_port, south_port};

/// A place of whole cubes, scattered over the pod so that order and id differ.
fn scattered(fabric: &Fabric, shape: &Shape) -> Place {
    let part = |idx: usize| fabric.part_named(&format!("cube{}", (idx * 37 + 11) % 64)).unwrap();
    let hold = |idx| Hold { part: part(idx), seats: u64::MAX };
    Place::of(PoolId::new(0), (0..shape.n_cubes()).map(hold).collect())
}

fn cube_shapes() -> impl Iterator<Item = Shape> {
    Shape::all().into_iter().filter(|it| it.cubes().is_some())
}

#[test]
fn known_counts_of_seed_000() {
    let fabric = build::pods(1, 64).unwrap();
    for (text, n_each) in [("8x8x8", 8), ("4x4x4", 1), ("16x16x16", 64), ("4x8x8_twisted", 4)] {
        let shape: Shape = text.parse().unwrap();
        let xconnects = xconnects(&fabric, &shape, &scattered(&fabric, &shape)).unwrap();
        let mut n_on: BTreeMap<PartId, usize> = BTreeMap::new();
        for (switch, _) in &xconnects {
            *n_on.entry(*switch).or_default() += 1;
        }
        assert_eq!(n_on.len(), 48, "{text}");
        assert!(n_on.values().all(|&it| it == n_each), "{text}: {n_on:?}");
        assert!(xconnects.is_sorted());
    }
    let shape: Shape = "2x2x4".parse().unwrap();
    let hold = Hold { part: fabric.part_named("cube3").unwrap(), seats: 0xffff };
    let place = Place::of(PoolId::new(0), vec![hold]);
    assert_eq!(xconnects(&fabric, &shape, &place), Ok(Vec::new()));
}

#[test]
fn a_lone_cube_is_looped_through_its_own_ports() {
    let fabric = build::pods(1, 64).unwrap();
    let shape: Shape = "4x4x4".parse().unwrap();
    let place = scattered(&fabric, &shape);
    for (_, xconnect) in xconnects(&fabric, &shape, &place).unwrap() {
        assert_eq!(usize::from(xconnect.north), north_port(11));
        assert_eq!(usize::from(xconnect.south), south_port(11));
    }
}

/// Goal: the whole way from a chip's + port over cable, mirror and cable to another chip, for
/// every shape that there is, against coordinates reckoned here from the seed's sentences alone.
#[test]
fn each_shape_joins_every_end_once_with_the_chip_that_the_seed_names() {
    let fabric = build::pods(1, 64).unwrap();
    for shape in cube_shapes() {
        let place = scattered(&fabric, &shape);
        let xconnects = xconnects(&fabric, &shape, &place).unwrap();
        assert_eq!(xconnects.len(), 48 * shape.n_cubes(), "{shape}");
        let mut mirrors = BTreeMap::new();
        for (switch, xconnect) in &xconnects {
            let port = |local: u16| fabric.port_at(*switch, usize::from(local));
            assert!(mirrors.insert(port(xconnect.north), port(xconnect.south)).is_none());
        }
        let mut souths: Vec<PortId> = mirrors.values().copied().collect();
        souths.sort_unstable();
        souths.dedup();
        assert_eq!(souths.len(), mirrors.len(), "{shape}: a south port is used twice");

        let sides = shape.dims().map(usize::from);
        for dim in 0..3 {
            let (a, b) = ((dim + 1) % 3, (dim + 2) % 3);
            // Every chip on the + face of some cube, by its coordinates in the slice.
            for own in (SIDE - 1..sides[dim]).step_by(SIDE) {
                for (at_a, at_b) in (0..sides[a]).flat_map(|it| (0..sides[b]).map(move |b| (it, b)))
                {
                    let mut chip = [0; 3];
                    (chip[dim], chip[a], chip[b]) = (own, at_a, at_b);
                    let north = fabric.peer_of(ici(&fabric, &shape, &place, chip, dim, true));
                    let south = mirrors[&north.unwrap()];
                    let target = brute_force_next(&shape, chip, dim);
                    assert_eq!(
                        fabric.peer_of(south),
                        Some(ici(&fabric, &shape, &place, target, dim, false)),
                        "{shape}: {chip:?} along {dim}"
                    );
                }
            }
        }
    }
}

fn ici(
    fabric: &Fabric,
    shape: &Shape,
    place: &Place,
    chip: [usize; 3],
    dim: usize,
    out: bool,
) -> PortId {
    let [x, y, z] = chip.map(|it| it / SIDE);
    let [cubes_x, cubes_y, _] = shape.dims().map(|it| usize::from(it) / SIDE);
    let part = place.holds[x + cubes_x * (y + cubes_y * z)].part;
    fabric.port_at(part, ici_port(chip.map(|it| it % SIDE), dim, out))
}

/// The next chip in + direction, as §3.4.1 and §3.4.2 say it, offsets in chips.
fn brute_force_next(shape: &Shape, chip: [usize; 3], dim: usize) -> [usize; 3] {
    let [x, y, z] = shape.dims().map(usize::from);
    let mut next = chip;
    next[dim] += 1;
    if next[dim] == [x, y, z][dim] {
        next[dim] = 0;
        if shape.twisted() && x == y && dim != 2 {
            next[2] = (next[2] + x) % z;
        }
        if shape.twisted() && x != y && dim == 0 {
            next[1] = (next[1] + x) % y;
            next[2] = (next[2] + x) % z;
        }
    }
    next
}

#[test]
fn an_end_on_a_spare_port_is_found_there() {
    let mut fabric = build::pods(1, 2).unwrap();
    let shape: Shape = "4x4x8".parse().unwrap();
    let [cube0, cube1, z5] = ["cube0", "cube1", "z5"].map(|it| fabric.part_named(it).unwrap());
    let end = fabric.port_at(cube1, face_port(2, true, 5));
    fabric.retire_cable_at(end);
    let spare = fabric.port_at(z5, north_port(66));
    fabric.add_cable(end, spare, FIBRE, CentiDb::new(100)).unwrap();
    let hold = |part| Hold { part, seats: u64::MAX };
    let place = Place::of(PoolId::new(0), vec![hold(cube0), hold(cube1)]);
    let xconnects = xconnects(&fabric, &shape, &place).unwrap();
    let on_z5: Vec<_> = xconnects.iter().filter(|it| it.0 == z5).map(|it| it.1).collect();
    let xconnect = |north, south| Xconnect { north: north as u16, south: south as u16 };
    assert_eq!(
        on_z5,
        [xconnect(north_port(0), south_port(1)), xconnect(north_port(66), south_port(0)),]
    );
}

#[test]
fn what_cannot_be_joined_is_named() {
    let mut fabric = build::pods(1, 2).unwrap();
    let shape: Shape = "4x4x8".parse().unwrap();
    let [cube0, cube1] = ["cube0", "cube1"].map(|it| fabric.part_named(it).unwrap());
    let hold = |part| Hold { part, seats: u64::MAX };
    let place = Place::of(PoolId::new(0), vec![hold(cube0), hold(cube1)]);
    let error = |fabric: &Fabric| xconnects(fabric, &shape, &place).unwrap_err().to_string();

    let end = fabric.port_at(cube0, face_port(2, false, 5));
    fabric.retire_cable_at(end);
    assert_eq!(
        error(&fabric),
        "cube0/z/in/5 has no cable; cable it to a switch, or choose another cube"
    );
    let port_of = |fabric: &Fabric, switch: &str, port| {
        fabric.port_at(fabric.part_named(switch).unwrap(), port)
    };
    let spare = port_of(&fabric, "z5", north_port(65));
    fabric.add_cable(end, spare, FIBRE, CentiDb::new(100)).unwrap();
    assert_eq!(
        error(&fabric),
        "cube0/z/in/5 is cabled to z5/n65; a + face needs a north port of an optical switch, \
         a - face a south port"
    );
    fabric.retire_cable_at(end);
    let other = port_of(&fabric, "z6", south_port(65));
    fabric.add_cable(end, other, FIBRE, CentiDb::new(100)).unwrap();
    assert_eq!(
        error(&fabric),
        "cube1/z/out/5 ends on z5 and cube0/z/in/5 on z6; both must end on one switch to be joined"
    );
}
