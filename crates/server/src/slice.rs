//! What a real task is told of its slice: the variables that TPU and PyTorch users know, and a
//! file with chips, rings and links (docs/jobs.md).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use selvedge_control::core::Core;
use selvedge_control::family::{self, is_boards};
use selvedge_family::torus::hardware::{self, DIMS};
use selvedge_family::torus::lattice::Direction;
use selvedge_family::torus::path;
use selvedge_family::torus::shape::Shape;
use selvedge_model::fabric::{Fabric, NodeKind};
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, NodeId, PartId, PortId};
use selvedge_model::job::{Demand, Place};

/// Where the first process of a JAX or libtpu worker listens, as those expect it.
const PROCESS_PORT: u16 = 8476;

/// Where libtpu serves the measurements of a worker's first chip.
const METRICS_PORT: u16 = 8431;

/// A slice as its tasks see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// One task for each machine, by rank.
    pub(crate) posts: Vec<Post>,
    /// The content of the slice file.
    pub(crate) file: Value,
}

/// Where one task runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Post {
    /// The machine.
    pub(crate) machine: Target,
    /// Its address.
    pub(crate) address: Ipv4Addr,
    /// What its slice says to it.
    pub(crate) env: BTreeMap<String, String>,
}

/// A chip of a slice.
struct Chip {
    seat: usize,
    part: PartId,
    node: NodeId,
    machine: NodeId,
    at: [u16; 3],
}

/// The slice that `job` runs on when it lies at `place`.
pub(crate) fn of(core: &Core, job: JobId, place: &Place) -> Slice {
    let known = &core.state().jobs[job];
    let mut slice = match &known.spec.demand {
        Demand::Shape(text) if !is_boards(text) => {
            let (shape, _) = Shape::parse(text).expect("an accepted job's shape has been parsed");
            of_torus(core, &shape, place)
        }
        Demand::Shape(_) | Demand::Parts(_) | Demand::Load(_) => of_hosts(core.fabric(), place),
    };
    let n = slice.posts.len();
    let master = slice.posts[0].address;
    let names: Vec<String> = slice.posts.iter().map(|it| it.address.to_string()).collect();
    for (rank, post) in slice.posts.iter_mut().enumerate() {
        let mut set = |name: &str, value: String| post.env.insert(name.to_owned(), value);
        set("MASTER_ADDR", master.to_string());
        set("RANK", rank.to_string());
        set("WORLD_SIZE", n.to_string());
        set("LOCAL_RANK", "0".to_owned());
        set("LOCAL_WORLD_SIZE", "1".to_owned());
        set("TPU_WORKER_ID", rank.to_string());
        set("TPU_WORKER_HOSTNAMES", names.join(","));
    }
    let about = slice.file.as_object_mut().expect("both families make an object");
    about.insert("job".to_owned(), job.number().into());
    about.insert("attempt".to_owned(), known.attempt.into());
    if 1 < known.spec.redundancy {
        about.insert("clusters".to_owned(), clusters(core.fabric(), place, &slice.posts));
    }
    slice
}

/// The tasks of each cluster of machines, the meta's first: replica s runs on the s-th.
fn clusters(fabric: &Fabric, place: &Place, posts: &[Post]) -> Value {
    let rank = |machine: Target| posts.iter().position(|it| host(fabric, it.machine) == machine);
    let found = family::clusters(fabric, place).machines;
    found.into_iter().map(|it| json!(it.map(rank))).collect()
}

fn host(fabric: &Fabric, machine: Target) -> Target {
    family::host_at(fabric, machine).unwrap_or(machine)
}

fn of_torus(core: &Core, shape: &Shape, place: &Place) -> Slice {
    let fabric = core.fabric();
    let axes = path::axes(shape, place);
    let lattice = shape.chips();
    let seats = path::seats(shape, place);
    let chips: Vec<Chip> = (seats.iter().enumerate())
        .map(|(id, it)| {
            let (part, seat) = (place.holds[usize::from(it.hold_idx)].part, usize::from(it.seat));
            let node = fabric.node_at(part, fabric.template_of(part).seats()[seat] as usize);
            Chip { seat, part, node, machine: machine_of(fabric, node), at: lattice.point(id) }
        })
        .collect();
    let mut machines: Vec<(NodeId, Vec<usize>)> = Vec::new();
    for (id, chip) in chips.iter().enumerate() {
        match machines.iter_mut().find(|(machine, _)| *machine == chip.machine) {
            Some((_, ids)) => ids.push(id),
            None => machines.push((chip.machine, vec![id])),
        }
    }
    let env = torus_env(shape, axes);
    let posts: Vec<Post> = (machines.iter())
        .map(|(machine, ids)| {
            let local = |id: &usize| local_chip(fabric, &chips[*id]);
            let mut visible: Vec<usize> = ids.iter().map(local).collect();
            visible.sort_unstable();
            post(fabric, Target::Node(*machine), &visible, env.clone())
        })
        .collect();
    let rank_of = |machine| machines.iter().position(|(it, _)| *it == machine);
    let chip_list: Vec<Value> = (chips.iter().enumerate())
        .map(|(id, it)| {
            let (path, task) = (fabric.path(Target::Node(it.node)), rank_of(it.machine));
            json!({ "id": id, "at": it.at, "path": path, "task": task })
        })
        .collect();
    let rings: Vec<Value> = (path::rings(shape).iter())
        .map(|it| json!({ "axis": DIMS[it.axis], "closed": it.closed, "rings": it.rings }))
        .collect();
    let file = json!({
        "shape": shape.to_string(),
        "twisted": shape.twisted(),
        "dims": shape.dims(),
        "tasks": tasks(fabric, &posts, machines.iter().map(|(_, ids)| ids)),
        "chips": chip_list,
        "rings": rings,
        "links": links(core, shape, axes, &chips),
    });
    Slice { posts, file }
}

fn of_hosts(fabric: &Fabric, place: &Place) -> Slice {
    let env: BTreeMap<String, String> = BTreeMap::new();
    let posts: Vec<Post> = (place.holds.iter())
        .map(|hold| {
            let visible: Vec<usize> = (0..fabric.template_of(hold.part).seats().len()).collect();
            post(fabric, Target::Part(hold.part), &visible, env.clone())
        })
        .collect();
    let none: Vec<Vec<usize>> = posts.iter().map(|_| Vec::new()).collect();
    let file = json!({ "hosts": posts.len(), "tasks": tasks(fabric, &posts, none.iter()) });
    Slice { posts, file }
}

fn tasks<'a>(
    fabric: &Fabric,
    posts: &[Post],
    chips: impl Iterator<Item = &'a Vec<usize>>,
) -> Vec<Value> {
    let tasks = posts.iter().zip(chips).enumerate();
    let one = |(task, (post, chips)): (usize, (&Post, &Vec<usize>))| {
        let (machine, address) = (fabric.path(post.machine), post.address.to_string());
        json!({ "task": task, "machine": machine, "address": address, "chips": chips })
    };
    tasks.map(one).collect()
}

fn post(
    fabric: &Fabric,
    machine: Target,
    visible: &[usize],
    mut env: BTreeMap<String, String>,
) -> Post {
    let address = address_of(fabric, machine);
    let list = |it: Vec<String>| it.join(",");
    let chips = list(visible.iter().map(ToString::to_string).collect());
    let metrics = (0..visible.len()).map(|it| (usize::from(METRICS_PORT) + it).to_string());
    env.insert("TPU_RUNTIME_METRICS_PORTS".to_owned(), list(metrics.collect()));
    env.insert("TPU_VISIBLE_CHIPS".to_owned(), chips.clone());
    env.insert("TPU_VISIBLE_DEVICES".to_owned(), chips);
    env.insert("TPU_PROCESS_PORT".to_owned(), PROCESS_PORT.to_string());
    env.insert("TPU_SKIP_MDS_QUERY".to_owned(), "true".to_owned());
    Post { machine, address, env }
}

/// What libtpu is told of a slice (notes of the GKE device plugin): `4x4x8` is 2,2,8 hosts of
/// 2,2,1 chips, 256 cores, wrapped where each side is a whole cube at least.
fn torus_env(shape: &Shape, axes: [usize; 3]) -> BTreeMap<String, String> {
    let dims = shape.dims();
    // A machine is 2x2x1 chips of its cube, however the slice lies in it.
    let machine = [2, 2, 1];
    let per_host = [0, 1, 2].map(|dim| dims[dim].min(machine[axes[dim]]));
    let hosts = [0, 1, 2].map(|dim| dims[dim] / per_host[dim]);
    let commas = |it: [u16; 3]| it.map(|it| it.to_string()).join(",");
    let wrap = [shape.cubes().is_some(); 3].map(|it| it.to_string()).join(",");
    let resilient = shape.cubes().is_some();
    let pairs = [
        ("TPU_TOPOLOGY", dims.map(|it| it.to_string()).join("x")),
        ("TPU_TOPOLOGY_ALT", shape.twisted().to_string()),
        ("TPU_TOPOLOGY_WRAP", wrap),
        ("TPU_ACCELERATOR_TYPE", format!("v4-{}", 2 * shape.n_chips())),
        ("TPU_CHIPS_PER_HOST_BOUNDS", commas(per_host)),
        ("TPU_HOST_BOUNDS", commas(hosts)),
        ("TPU_CHIPS_PER_PROCESS_BOUNDS", commas(per_host)),
        ("TPU_PROCESS_BOUNDS", commas(hosts)),
        ("ENABLE_ICI_RESILIENCY", resilient.to_string()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The links of a slice that are not healthy, and how many are.  Tables go the shortest way over
/// links in use, and a job is not placed over a link that is out, so none is detoured.
fn links(core: &Core, shape: &Shape, axes: [usize; 3], chips: &[Chip]) -> Value {
    let (fabric, lattice) = (core.fabric(), shape.chips());
    let (mut n, mut degraded) = (0, Vec::new());
    for (id, chip) in chips.iter().enumerate() {
        for dim in 0..3 {
            let Some(next) = lattice.step(chip.at, Direction::new(dim, true)) else { continue };
            let next = lattice.idx(next);
            n += 1;
            let end = |chip: &Chip, out| {
                let local = hardware::ici_port(hardware::chip(chip.seat), axes[dim], out);
                fabric.port_at(chip.part, local)
            };
            let ends = [end(chip, true), end(&chips[next], false)];
            let Some(why) = ends.iter().find_map(|&end| trouble(core, end)) else { continue };
            let port = fabric.port_path(ends[0]);
            let axis = DIMS[dim];
            degraded
                .push(json!({ "from": id, "to": next, "axis": axis, "port": port, "why": why }));
        }
    }
    let none: [Value; 0] = [];
    json!({ "n": n, "healthy": n - degraded.len(), "degraded": degraded, "detoured": none })
}

/// What is known against the link at a port.
fn trouble(core: &Core, end: PortId) -> Option<String> {
    let (fabric, state) = (core.fabric(), core.state());
    let link = fabric.link_from(end).map(|it| Target::Link(it.min(fabric.reverse(it))));
    for target in link.into_iter().chain([Target::Port(end)]) {
        if let Some(case) = state.open_cases.get(&target) {
            return Some(case.to_string());
        }
        if state.drains.contains_key(&target) {
            return Some("drained".to_owned());
        }
    }
    None
}

fn machine_of(fabric: &Fabric, node: NodeId) -> NodeId {
    let mut at = node;
    while fabric.node(at).kind != NodeKind::Machine {
        let Some(parent) = fabric.parent_of(at) else { break };
        at = parent;
    }
    at
}

/// The number of a chip on its machine.
fn local_chip(fabric: &Fabric, chip: &Chip) -> usize {
    let (part, machine) = fabric.node_local(chip.machine);
    let below = fabric.template_of(part).seats_under(machine) & ((1 << chip.seat) - 1);
    below.count_ones() as usize
}

/// The address of a simulated machine: 127.16.17.4 is the fourth machine of part 17.  All of
/// 127.0.0.0/8 is this host; the first sixteen networks are left to others.
fn address_of(fabric: &Fabric, machine: Target) -> Ipv4Addr {
    let (part, local) = match machine {
        Target::Node(node) => fabric.node_local(node),
        Target::Part(part) => (part, 0),
        Target::Port(_) | Target::Link(_) => unreachable!("a machine is a node or a part"),
    };
    // Parts beyond 61,440 share addresses with those at the start; ports are then what differs.
    let part = part.number() % (240 << 8);
    let [_, _, high, low] = part.to_be_bytes();
    let local = u8::try_from(local + 1).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, 16 + high, low, local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_family::torus::build::pods;
    use selvedge_model::job::{Hold, Need};

    fn env(shape: &str, axes: [usize; 3]) -> String {
        let (shape, _) = Shape::parse(shape).unwrap();
        let env = torus_env(&shape, axes);
        let get = |name: &str| env[name].clone();
        ["TPU_TOPOLOGY", "TPU_ACCELERATOR_TYPE", "TPU_HOST_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS"]
            .map(get)
            .join(" ")
            + " "
            + &get("TPU_TOPOLOGY_WRAP")
    }

    #[test]
    fn bounds_are_those_that_the_device_plugin_gives() {
        let straight = [0, 1, 2];
        assert_eq!(env("4x4x8", straight), "4x4x8 v4-256 2,2,8 2,2,1 true,true,true");
        assert_eq!(env("2x2x1", straight), "2x2x1 v4-8 1,1,1 2,2,1 false,false,false");
        assert_eq!(env("2x2x4", straight), "2x2x4 v4-32 1,1,4 2,2,1 false,false,false");
        assert_eq!(env("2x2x4", [1, 2, 0]), "2x2x4 v4-32 1,2,2 2,1,2 false,false,false");
        assert_eq!(env("1x1x1", straight), "1x1x1 v4-2 1,1,1 1,1,1 false,false,false");
    }

    #[test]
    fn machines_have_addresses_of_their_own_on_this_host() {
        let fabric = pods(1, 64).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for cube in 0..64 {
            let part = fabric.part_named(&format!("cube{cube}")).unwrap();
            for machine in 0..16 {
                let node = Target::Node(fabric.node_at(part, machine));
                assert!(seen.insert(address_of(&fabric, node)));
            }
        }
        let part = fabric.part_named("cube17").unwrap();
        let node = Target::Node(fabric.node_at(part, 3));
        let [_, _, high, low] = part.number().to_be_bytes();
        assert_eq!(address_of(&fabric, node), Ipv4Addr::new(127, 16 + high, low, 4));
    }

    #[test]
    fn every_place_of_a_small_shape_has_one_task_for_each_machine_with_its_chips() {
        let fabric = pods(1, 1).unwrap();
        let part = fabric.part_named("cube0").unwrap();
        for text in ["1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4"] {
            let (shape, _) = Shape::parse(text).unwrap();
            let Need::Within { masks } = shape.need() else { unreachable!() };
            for seats in masks {
                let place =
                    Place::of(fabric.pools().ids().next().unwrap(), vec![Hold { part, seats }]);
                let mut core = Core::new();
                let plant = selvedge_model::spec::Plant::of_pods(
                    "p",
                    [selvedge_model::spec::plant::Family::tpuv4(1)],
                );
                let settings = selvedge_control::settings::Settings::simulated();
                let begin =
                    selvedge_control::input::Input::Begin { plant: plant.render(), settings };
                core.handle(selvedge_model::unit::Moment::START, begin).unwrap();
                let slice = of_torus(&core, &shape, &place);
                let n = (shape.n_chips() as usize).div_ceil(4);
                assert_eq!(slice.posts.len(), n, "{text}");
                let visible = if text == "1x1x1" { 1 } else { 4 };
                for post in &slice.posts {
                    assert_eq!(post.env["TPU_VISIBLE_CHIPS"].split(',').count(), visible, "{text}");
                }
                let links = &slice.file["links"];
                assert_eq!(links["n"], links["healthy"]);
            }
        }
    }
}
