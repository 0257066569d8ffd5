//! New versions of a plant on the fabric of the old one.

use super::*;

/// All that is there by path: ports with their peers and losses, nodes, parts with domains.
fn contents(fabric: &Fabric) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for (id, part) in fabric.parts().pairs().filter(|(_, it)| !it.retired) {
        assert_eq!(fabric.part_named(&part.name), Some(id));
        let domains = fabric.domains_of(id).iter().map(|&it| &*fabric.domains()[it].name);
        let pool = part.pool.map(|it| &*fabric.pools()[it]);
        let domains: Vec<&str> = domains.collect();
        let template = &fabric.template_of(id).name;
        contents.insert(part.name.to_string(), format!("{template} {pool:?} {domains:?}"));
        for port in fabric.ports_of(id) {
            let cable = fabric.cable_at(port).map(|it| (it.loss_expected, it.attrs));
            let peer = fabric.peer_of(port).map(|it| fabric.port_path(it));
            contents.insert(fabric.port_path(port), format!("{peer:?} {cable:?}"));
        }
    }
    contents
}

/// The links that are there by the paths of their ends.
fn links(fabric: &Fabric) -> BTreeMap<(String, String), selvedge_model::id::LinkId> {
    let all = (0..fabric.n_links()).map(selvedge_model::id::LinkId::at);
    let live = all.filter(|it| !fabric.link_retired(*it));
    live.map(|id| {
        let link = fabric.link(id);
        ((fabric.port_path(link.source), fabric.port_path(link.target)), id)
    })
    .collect()
}

fn named(name: String) -> Named {
    Named { name, at: At::NOWHERE }
}

fn draw(dice: &mut Dice) -> Plant {
    let cubes = 6;
    let deployed: std::collections::BTreeSet<u16> =
        (0..cubes).filter(|_| dice.below(3) != 0).collect();
    let last = match dice.below(4) {
        0 => Family::Hosts { hosts: 1 + dice.below(4) as u32 },
        1 => Family::tpuv4(1 + dice.below(3) as u16),
        2 => {
            let groups = [1 + dice.below(3) as u16, 1 + dice.below(3) as u16];
            Family::HyperSquare(HyperSquare::of_groups(groups))
        }
        _ => {
            let sides = [4, 2 + 2 * dice.below(3) as u16];
            Family::Grid { chip: GridChip::Tpuv2, sides, wraps: [true, dice.below(2) == 0] }
        }
    };
    let first = Family::Tpuv4 { cubes, deployed: deployed.clone() };
    let n_pods = 1 + dice.below(2) as usize;
    let mut plant = Plant::of_pods("drawn", [first, last].into_iter().take(n_pods));
    plant.power.cubes_per_rack = 1 + dice.below(2) as u16;
    for slot in deployed {
        let end = |dim: u64| named(format!("cube{slot}/{}/in/7", ['x', 'y', 'z'][dim as usize]));
        match dice.below(4) {
            0 if slot < 4 => plant.patches.push(Patch {
                end: end(0),
                port: Some(named(format!("x7/s{}", 64 + slot))),
                loss: Some(CentiDb::new(dice.below(3) as u16 * 50)),
            }),
            1 => plant.missing.push(Missing::Cable(end(1))),
            _ => {}
        }
    }
    if dice.below(3) == 0 {
        plant.missing.push(Missing::Part(named(format!("z{}", dice.below(16)))));
    }
    plant
}

/// Goal: ids never change their meaning.  Method: histories of drawn plants, each laid on the
/// fabric of the one before; what is there must be what building from nothing gives, every part
/// and link that stays must keep its id, and every id ever given must keep its name.
#[test]
fn extending_gives_the_new_plant_and_keeps_every_id() {
    let mut dice = Dice(5);
    for _ in 0..25 {
        let mut plant = draw(&mut dice);
        let mut fabric = build(&plant).unwrap();
        for _ in 0..5 {
            let next = draw(&mut dice);
            let extended = extend(&fabric, &plant, &next).unwrap();
            extended.audit();
            assert_eq!(contents(&extended), contents(&build(&next).unwrap()));
            for (id, part) in fabric.parts().pairs() {
                assert_eq!(extended.part(id).name, part.name);
                for (port, node) in fabric.ports_of(id).zip(fabric.nodes_of(id)) {
                    assert_eq!(extended.port_path(port), fabric.port_path(port));
                    assert_eq!(extended.node_path(node), fabric.node_path(node));
                }
            }
            let (before, after) = (contents(&fabric), contents(&extended));
            let links_after = links(&extended);
            for ((source, target), id) in links(&fabric) {
                let same_ends = [&source, &target].map(|it| before.get(it) == after.get(it));
                // Replaced parts have new links; a cable that only changed its loss does not.
                if same_ends == [true, true] && part_stays(&fabric, &extended, id) {
                    assert_eq!(links_after.get(&(source, target)), Some(&id));
                }
            }
            (plant, fabric) = (next, extended);
        }
    }
}

fn part_stays(old: &Fabric, new: &Fabric, id: selvedge_model::id::LinkId) -> bool {
    let link = old.link(id);
    [link.source, link.target].into_iter().all(|it| !new.part(old.part_of_port(it)).retired)
}

#[test]
fn a_cube_added_later_gets_the_next_id_and_its_reserved_number() {
    let plant = |deployed: &str| {
        let pod = format!("[[pod]]\nfamily = \"tpuv4\"\ncubes = 8\ndeployed = \"{deployed}\"");
        parse(&format!("format = 1\nname = \"demo\"\n{pod}\n"))
    };
    let first = build(&plant("0-1,3")).unwrap();
    let second = extend(&first, &plant("0-1,3"), &plant("0,2-3")).unwrap();
    let third = extend(&second, &plant("0,2-3"), &plant("0-3")).unwrap();
    let id = |fabric: &Fabric, name: &str| fabric.part_named(name).map(|it| it.number());
    assert_eq!(
        [0, 1, 2, 3].map(|it| id(&first, &format!("cube{it}"))),
        [Some(48), Some(49), None, Some(50)]
    );
    assert_eq!(id(&second, "cube1"), None);
    assert_eq!([id(&second, "cube2"), id(&second, "cube3")], [Some(51), Some(50)]);
    // What stands in slot 1 next is another cube, and says so by its id.
    assert_eq!(id(&third, "cube1"), Some(52));
    assert_eq!(&*third.part(selvedge_model::id::PartId::new(49)).name, "cube1");
}

#[test]
fn a_new_loss_leaves_the_cable_its_id() {
    let plain = Plant::of_pods("demo", [Family::tpuv4(2)]);
    let mut louder = plain.clone();
    louder.optics.loss = CentiDb::new(140);
    let old = build(&plain).unwrap();
    let new = extend(&old, &plain, &louder).unwrap();
    assert_eq!(links(&old), links(&new));
    assert!(new.cables().iter().all(|it| it.loss_expected == CentiDb::new(140)));
}

#[test]
fn a_version_that_would_give_numbers_twice_is_refused() {
    let old = Plant::of_pods("old", [Family::tpuv4(4), Family::tpuv4(4)]);
    let new = Plant::of_pods("new", [Family::tpuv4(8), Family::tpuv4(4)]);
    let err = extend(&build(&old).unwrap(), &old, &new).unwrap_err();
    let text = "pod1 would have other numbers than before: its first was 4, now 8";
    assert_eq!(err.to_string(), text);
}

#[test]
fn a_fabric_of_another_plant_is_refused() {
    let old = Plant::of_pods("old", [Family::tpuv4(4)]);
    let other = Plant::of_pods("other", [Family::tpuv4(5)]);
    let err = extend(&build(&old).unwrap(), &other, &old).unwrap_err();
    assert_eq!(err, BuildError::NotOld { part: "cube4".to_owned() });
    let err = extend(&build(&other).unwrap(), &old, &other).unwrap_err();
    assert_eq!(err, BuildError::NotOld { part: "cube4".to_owned() });
}
