use super::*;

fn attrs() -> LinkAttrs {
    LinkAttrs { capacity: BitRate::gigabytes(50), latency: Span::nanos(100), kind: LinkKind::Ici }
}

/// Two chips on one machine, joined to each other, each with one port to the outside.
fn board() -> Template {
    let node = |kind, name: &str, parent| NodeSpec { kind, name: name.into(), parent };
    let port = |node, name: &str| PortSpec { node, name: name.into(), side: Side::Plain };
    Template::new(
        "board",
        Role::Compute,
        vec![
            node(NodeKind::Machine, "m0", None),
            node(NodeKind::Chip, "chip0", Some(0)),
            node(NodeKind::Chip, "chip1", Some(0)),
        ],
        vec![port(1, "a"), port(2, "b"), port(1, "out0"), port(2, "out1")],
        vec![LinkSpec { a: 0, b: 1, attrs: attrs() }],
        vec![1, 2],
    )
    .unwrap()
}

#[test]
fn ids_stay_when_parts_and_cables_come_and_go() {
    let mut fabric = Fabric::new();
    let pool = fabric.add_pool("pod0");
    let board = fabric.add_template(board());
    let a = fabric.add_part("a", board, Some(pool), &[]).unwrap();
    let b = fabric.add_part("b", board, Some(pool), &[]).unwrap();
    let out = |fabric: &Fabric, part| fabric.port_at(part, 2);
    let loss = CentiDb::new(150);
    let first = fabric.add_cable(out(&fabric, a), out(&fabric, b), attrs(), loss).unwrap();
    let c = fabric.add_part("c", board, Some(pool), &[]).unwrap();
    fabric.retire_part(b);
    let second = fabric.add_cable(out(&fabric, a), out(&fabric, c), attrs(), loss).unwrap();
    assert_eq!(fabric.audit(), fabric.n_links());
    assert_eq!((first, second), (LinkId::new(4), LinkId::new(8)));
    assert!(fabric.link_retired(first) && !fabric.link_retired(second));
    assert_eq!(fabric.link_from(out(&fabric, c)), Some(fabric.reverse(second)));
    assert_eq!(fabric.peer_of(out(&fabric, a)), Some(out(&fabric, c)));
    assert_eq!(fabric.link(second).target, out(&fabric, c));
    assert_eq!(fabric.part_of_node(fabric.node_at(c, 2)), c);
    assert_eq!(fabric.link_local(LinkId::new(7)), Some((c, 1)));
}

#[test]
fn a_port_takes_one_cable_and_says_where_its_first_leads() {
    let mut fabric = Fabric::new();
    let board = fabric.add_template(board());
    let a = fabric.add_part("a", board, None, &[]).unwrap();
    let b = fabric.add_part("b", board, None, &[]).unwrap();
    let (a2, b2, b3) = (fabric.port_at(a, 2), fabric.port_at(b, 2), fabric.port_at(b, 3));
    fabric.add_cable(a2, b2, attrs(), CentiDb::default()).unwrap();
    let err = fabric.add_cable(a2, b3, attrs(), CentiDb::default()).unwrap_err();
    assert_eq!(
        err.to_string(),
        "port a/out0 is cabled twice: it already leads to b/out0; use a free port"
    );
    let err = fabric.add_part("a", board, None, &[]).unwrap_err();
    assert_eq!(err.to_string(), "a stands twice in the fabric; give the second another name");
}

#[test]
fn paths_name_parts_nodes_and_ports_both_ways() {
    let mut fabric = Fabric::new();
    let board = fabric.add_template(board());
    let part = fabric.add_part("pod1/b7", board, None, &[]).unwrap();
    for path in ["pod1/b7", "pod1/b7/m0", "pod1/b7/chip1", "pod1/b7/out0"] {
        let target = fabric.find(path).unwrap();
        assert_eq!(fabric.path(target), path);
    }
    assert_eq!(fabric.find("pod1/b7"), Some(Target::Part(part)));
    assert_eq!(fabric.find("pod1"), None);
    assert_eq!(fabric.find("pod1/b7/chip9"), None);
}

#[test]
fn a_link_is_used_by_whoever_holds_all_seats_at_its_ends() {
    let board = board();
    assert_eq!(board.seats_of_link(0), 0b11);
    assert_eq!(board.seats_under(0), 0b11);
    assert_eq!(board.all_seats(), 0b11);
}
