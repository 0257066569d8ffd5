use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use selvedge_model::fabric::{Fabric, LinkKind, NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::PortId;
use selvedge_model::spec::plant::{Family, GridChip, Missing, Named, Patch};
use selvedge_model::spec::{At, Plant};
use selvedge_model::unit::CentiDb;

use super::*;

fn parse(text: &str) -> Plant {
    Plant::parse("demo.toml", text).unwrap_or_else(|it| panic!("{it:?}"))
}

/// What a plant that reads but cannot be built prints.
fn check(rest: &str, expected: Expect) {
    let text = format!("format = 1\nname = \"demo\"\n{rest}");
    let error = build(&parse(&text)).unwrap_err();
    expected.assert_eq(&(error.show("demo.toml", &text) + "\n"));
}

fn port(fabric: &Fabric, path: &str) -> PortId {
    match fabric.find(path) {
        Some(Target::Port(port)) => port,
        other => panic!("{path} is {other:?}"),
    }
}

fn peer(fabric: &Fabric, path: &str) -> Option<String> {
    fabric.peer_of(port(fabric, path)).map(|it| fabric.port_path(it))
}

fn n_nodes(fabric: &Fabric, kind: NodeKind) -> usize {
    let live = fabric.parts().pairs().filter(|(_, it)| !it.retired);
    let nodes = live.flat_map(|(part, _)| fabric.nodes_of(part));
    nodes.filter(|it| fabric.node(*it).kind == kind).count()
}

#[test]
fn a_full_pod_is_as_seed_000_counts_it() {
    let fabric = build(&Plant::of_pods("full", [Family::tpuv4(64)])).unwrap();
    fabric.audit();
    assert_eq!(n_nodes(&fabric, NodeKind::Chip), 4096);
    assert_eq!(n_nodes(&fabric, NodeKind::Machine), 1024);
    assert_eq!(n_nodes(&fabric, NodeKind::Switch), 48);
    assert_eq!(fabric.cables().len(), 6144);
    for part in fabric.parts().ids() {
        let template = fabric.template_of(part);
        let cabled = fabric.ports_of(part).filter(|it| fabric.cable_at(*it).is_some()).count();
        match template.role {
            Role::CircuitSwitch => {
                let letters = template.ports().iter().map(|it| it.name.as_bytes()[0]);
                assert_eq!(letters.filter(|it| *it == b'n').count(), 68);
                assert_eq!((template.ports().len(), cabled), (136, 128));
            }
            Role::Compute | Role::PacketSwitch => assert_eq!(cabled, 96),
        }
    }
    // Seed 000 §2.2: the 16 machines of a cube stand in one rack.
    let racks: Vec<_> = fabric.domains().iter().filter(|it| it.name.contains("/rack")).collect();
    assert_eq!(racks.len(), 64 + 3);
}

#[test]
fn cubes_keep_their_numbers_whether_others_are_there_or_not() {
    let text = r#"format = 1
name = "two"
pod = [{ family = "tpuv4", cubes = 20, deployed = "3,7" }, { family = "tpuv4", deployed = "0" }]
"#;
    let fabric = build(&parse(text)).unwrap();
    let compute = fabric.parts().iter().filter(|it| it.name.starts_with("cube"));
    assert_eq!(compute.map(|it| &*it.name).collect::<Vec<_>>(), ["cube3", "cube7", "cube20"]);
    assert_eq!(peer(&fabric, "cube7/z/out/15").as_deref(), Some("z15/n7"));
    assert_eq!(peer(&fabric, "cube20/x/in/0").as_deref(), Some("pod1/x0/s0"));
}

/// Each chip's neighbour in each direction, by the chip's place in the whole grid.
fn grid_neighbour(fabric: &Fabric, at: [usize; 2], dim: usize, out: bool) -> Option<String> {
    let sign = if out { '+' } else { '-' };
    let letter = ['x', 'y'][dim];
    let path =
        format!("board{}.{}/chip{}.{}/{sign}{letter}", at[0] / 2, at[1] / 2, at[0] % 2, at[1] % 2);
    peer(fabric, &path)
}

fn check_grid(family: Family, n_chips: usize) {
    let Family::Grid { sides, wraps, .. } = family else { panic!("a grid") };
    let fabric = build(&Plant::of_pods("grid", [family])).unwrap();
    fabric.audit();
    assert_eq!(n_nodes(&fabric, NodeKind::Chip), n_chips);
    assert_eq!(n_nodes(&fabric, NodeKind::Machine), n_chips / 4);
    let sides = sides.map(usize::from);
    for x in 0..sides[0] {
        for y in 0..sides[1] {
            for dim in 0..2 {
                let mut next = [x, y];
                let is_last = next[dim] + 1 == sides[dim];
                next[dim] = if is_last { 0 } else { next[dim] + 1 };
                let letter = ['x', 'y'][dim];
                let expected = format!(
                    "board{}.{}/chip{}.{}/-{letter}",
                    next[0] / 2,
                    next[1] / 2,
                    next[0] % 2,
                    next[1] % 2
                );
                let expected = (!is_last || wraps[dim]).then_some(expected);
                assert_eq!(grid_neighbour(&fabric, [x, y], dim, true), expected, "{x},{y}");
            }
        }
    }
    let boards = fabric.cables().iter().all(|it| it.attrs.kind == LinkKind::Board);
    assert!(boards, "boards are joined by board cables");
}

/// Seed 000 §2.1: 256 chips in 16x16, 1024 in 32x32, and four pods in a 128x32 mesh.
#[test]
fn static_pods_are_as_seed_000_counts_them() {
    let grid = |chip, sides, wraps| Family::Grid { chip, sides, wraps };
    check_grid(grid(GridChip::Tpuv2, [16, 16], [true, true]), 256);
    check_grid(grid(GridChip::Tpuv3, [32, 32], [true, true]), 1024);
    check_grid(grid(GridChip::Tpuv3, [128, 32], [false, false]), 4096);
    check_grid(grid(GridChip::Tpuv2, [2, 4], [true, false]), 8);
}

#[test]
fn two_hosts_and_a_cable_are_written_down_by_hand() {
    let text = r#"format = 1
name = "toy"
[[template]]
name = "toy"
nodes = [
  { name = "m0", kind = "machine" },
  { name = "gpu0", kind = "chip", parent = "m0" },
  { name = "gpu1", kind = "chip", parent = "m0" },
]
ports = [
  { name = "gpu0/a", node = "gpu0" },
  { name = "gpu1/a", node = "gpu1" },
  { name = "m0/port", node = "m0" },
]
links = [{ a = "gpu0/a", b = "gpu1/a", kind = "nvlink", gbps = 900, latency_ns = 300 }]
seats = ["gpu0", "gpu1"]
[[part]]
name = "left"
template = "toy"
pool = "toys"
[[part]]
name = "right"
template = "toy"
pool = "toys"
[[cable]]
a = "left/m0/port"
b = "right/m0/port"
gbps = 100
[[domain]]
name = "feed"
kind = "power"
parts = ["left", "right"]
"#;
    let fabric = build(&parse(text)).unwrap();
    assert_eq!(fabric.audit(), 6);
    assert_eq!(peer(&fabric, "left/m0/port").as_deref(), Some("right/m0/port"));
    let left = fabric.part_named("left").unwrap();
    assert_eq!(fabric.template_of(left).all_seats(), 0b11);
    assert_eq!(fabric.domains_of(left).len(), 1);
    assert_eq!(fabric.pools().as_slice(), ["toys"]);
}

#[test]
fn a_patched_end_leads_to_its_spare_port() {
    let text = r#"format = 1
name = "demo"
pod = [{ family = "tpuv4", cubes = 4 }]
[[cable]]
end = "cube1/x/in/7"
port = "x7/s66"
loss_db = 1.25
[[cable]]
end = "cube2/y/out/0"
loss_db = 0.5
[[missing]]
part = "z3"
[[missing]]
cable = "cube0/y/in/2"
"#;
    let fabric = build(&parse(text)).unwrap();
    assert_eq!(peer(&fabric, "cube1/x/in/7").as_deref(), Some("x7/s66"));
    assert_eq!(peer(&fabric, "x7/s1"), None);
    let loss = |path| fabric.cable_at(port(&fabric, path)).unwrap().loss_expected;
    let losses = [loss("cube1/x/in/7"), loss("cube2/y/out/0"), loss("cube1/y/out/0")];
    assert_eq!(losses.map(CentiDb::centi), [125, 50, 100]);
    assert_eq!(fabric.part_named("z3"), None);
    assert_eq!((peer(&fabric, "cube0/z/in/3"), peer(&fabric, "cube0/y/in/2")), (None, None));
    assert_eq!(fabric.cables().len(), 4 * 96 - 4 * 2 - 1);
}

#[test]
fn a_part_in_a_domain_of_the_file_leaves_the_generated_one_of_that_kind() {
    let text = r#"format = 1
name = "demo"
pod = [{ family = "tpuv4", cubes = 8 }]
[[domain]]
name = "own"
kind = "power"
parts = ["cube5"]
"#;
    let fabric = build(&parse(text)).unwrap();
    let names = |part| {
        let domains = fabric.domains_of(fabric.part_named(part).unwrap());
        domains.iter().map(|&it| fabric.domains()[it].name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("cube5"), ["pod0/rack5", "own"]);
    assert_eq!(names("cube6"), ["pod0/rack6", "pod0/feed1"]);
    assert_eq!(names("x4"), ["pod0/rack-x"]);
}

/// The examples of docs/plant-files.md, each below a head where it has none of its own.
#[test]
fn the_examples_of_the_documentation_are_plants() {
    let page = include_str!("../../../../docs/plant-files.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        let own = block.split("```").next().unwrap();
        let head = "format = 1\nname = \"demo\"\n[[pod]]\nfamily = \"tpuv4\"\n";
        let text = if own.starts_with("format") { own.to_owned() } else { format!("{head}{own}") };
        // What the page leaves out of a topology file, and the file that stands elsewhere.
        let text = text.replace("<system version=\"1\">…", SERVER);
        let odd = Plant::topologies_missing(&text);
        let files: Vec<_> = odd.into_iter().map(|it| (it.name, SERVER.to_owned())).collect();
        build(&parse(&Plant::with_topologies(&text, &files))).unwrap().audit();
    }
}

const SERVER: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1"/>
    </pci>
  </cpu>
</system>"#;

/// A small generator of numbers (xorshift): tests need no more.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

mod refused;

mod broken;

mod extended;
