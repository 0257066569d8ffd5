use selvedge_family::grid::Grid;
use selvedge_family::grid::site::Profile;

use super::*;

fn site() -> Site {
    let grid = Grid::mesh([8, 8, 1]);
    let parts: Vec<PartId> = (0..64).map(PartId::new).collect();
    Site::whole(grid, &parts, Profile::chip(2))
}

fn wanted(n_parts: u32, share: u32) -> Partition {
    let communication = Ppm::new(share);
    Partition {
        n_parts,
        sides: None,
        exact: false,
        communication,
        collective: Collective::AllGather,
    }
}

#[test]
fn who_communicates_much_waits_for_a_better_partition() {
    // One row of the machine is free: sets on it have ends with one link, others have two.
    let site = site();
    let is_free = |part: PartId| part.number() < 8;
    let choose =
        |share| choose(&site, site.ground(), is_free, &wanted(6, share), Policy::Polyomino);
    let chosen = choose(200_000).unwrap();
    assert_eq!((chosen.parts.len(), chosen.score.least), (6, 1));
    assert_eq!(chosen.score.slowdown, Ppm::new(1_200_000));
    assert_eq!(choose(300_000), None);
}

#[test]
fn parts_with_a_cut_cable_are_not_taken_together() {
    let site = site();
    let mut ground = site.ground().clone();
    for (a, b) in (0..8).map(|x| (PartId::new(8 * 3 + x), PartId::new(8 * 4 + x))) {
        let (cell, axis) = site.joint(&ground, a, b).unwrap();
        assert_eq!(site.joint(&ground, b, a), Some((cell, axis)), "whichever is named first");
        ground.sever(cell, axis);
        assert_eq!(site.joint(&ground, a, b), None);
    }
    let all = |_: PartId| true;
    let wanted_32 = wanted(32, 0);
    let chosen = choose(&site, &ground, all, &wanted_32, Policy::Polyomino).unwrap();
    let is_north = |it: &PartId| it.number() < 32;
    assert!(chosen.parts.iter().all(is_north) || !chosen.parts.iter().any(is_north));
    assert_eq!(choose(&site, &ground, all, &wanted(33, 0), Policy::Polyomino), None);
}

#[test]
fn the_best_of_a_size_is_what_a_square_reaches() {
    let site = site();
    let chosen =
        choose(&site, site.ground(), |_| true, &wanted(16, 1_000_000), Policy::Polyomino).unwrap();
    assert_eq!((chosen.score.n_links, chosen.score.least), (24, 2));
    assert_eq!(chosen.score.slowdown, Ppm::new(1_000_000));
}
