//! The scenarios of `cargo xtask bench`, one of them in each run of this binary.
//!
//! `--list` prints their names; a name runs that one and prints its counts as `key value` lines.
//! Instructions and memory are measured from outside, so a scenario holds no clock.
#![allow(clippy::print_stdout, reason = "counts go to the bench on standard output")]

use std::collections::BTreeSet;
use std::env;
use std::process::ExitCode;

use selvedge_control as control;
use selvedge_control::core::Core;
use selvedge_control::input::Input;
use selvedge_driver::store::Store;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::torus::build;
use selvedge_model::fabric::{
    Fabric, LinkAttrs, LinkKind, LinkSpec, NodeKind, NodeSpec, PortSpec, Role, Side, Template,
};
use selvedge_model::id::PartId;
use selvedge_model::job::{Demand, JobSpec, Work};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::Family;
use selvedge_model::unit::{BitRate, CentiDb, Moment, Span};
use selvedge_sim::scenario::{self, Scenario as Simulated};

use crate::pod::{Pod, mix};

#[path = "support/grid.rs"]
mod grid;

#[path = "support/pod.rs"]
mod pod;

type Counts = Vec<(&'static str, usize)>;

struct Scenario {
    name: &'static str,
    run: fn() -> Counts,
}

/// A scenario keeps its name: the baseline is found by it.
const SCENARIOS: &[Scenario] = &[
    Scenario { name: "clusters_4096_hosts", run: grid::clusters_4096_hosts },
    Scenario { name: "core_with_1000_jobs", run: core_with_1000_jobs },
    Scenario { name: "dashboard_pod", run: dashboard_pod },
    Scenario { name: "fabric_100k_nodes", run: fabric_100k_nodes },
    Scenario { name: "fabric_12500_hosts", run: fabric_12500_hosts },
    Scenario { name: "grid_decisions_16x16", run: grid::decisions_16x16 },
    Scenario { name: "grid_decisions_64x64", run: grid::decisions_64x64 },
    Scenario { name: "grid_tables_4096_chips", run: grid::tables_4096_chips },
    Scenario { name: "month_of_a_pod", run: month_of_a_pod },
    Scenario { name: "nccl_rack_of_72", run: nccl_rack_of_72 },
    Scenario { name: "pods_400_slices", run: grid::pods_400_slices },
    Scenario { name: "torus_pod", run: torus_pod },
];

fn main() -> ExitCode {
    let wanted = env::args().nth(1).unwrap_or_default();
    // `cargo bench` adds an argument of its own and means all of them.
    if wanted == "--list" || wanted == "--bench" {
        SCENARIOS.iter().for_each(|it| println!("{}", it.name));
        return ExitCode::SUCCESS;
    }
    let Some(scenario) = SCENARIOS.iter().find(|it| it.name == wanted) else {
        eprintln!("error: there is no scenario called {wanted:?}; --list names them");
        return ExitCode::FAILURE;
    };
    for (key, count) in (scenario.run)() {
        println!("{key} {count}");
    }
    ExitCode::SUCCESS
}

/// The core of a full pod that has 1,000 jobs of the published mix behind it or running: what it
/// remembers is what its heap holds.
fn core_with_1000_jobs() -> Counts {
    const JOBS: usize = 1_000;
    let mut pod = Pod::new();
    let mix = mix();
    let total = mix.iter().map(|it| it.1).sum();
    for _ in 0..JOBS {
        while 4096 * 85 / 100 < pod.n_held() {
            pod.finish_one();
        }
        let shape = pod.draw_shape(&mix, total);
        pod.submit(&shape);
    }
    vec![("jobs", JOBS), ("waiting", pod.n_waiting())]
}

/// A twelfth of the year that a pod of 64 cubes is promised to be simulated in: published mix and
/// fault rates, polls each minute, the independent check on.
fn month_of_a_pod() -> Counts {
    const MONTH: &str = "format = 1\nname = \"month\"\nseed = 1\n[plant]\ncubes = 64\n\
                         [jobs]\nmix = 4233\nload = 0.85\nscale = \"durations\"\n";
    let month = Simulated::parse("month.toml", MONTH).expect("it is well written");
    let summary = scenario::run(&month, &mut |_| ()).expect("it runs to its end");
    assert_eq!(summary.violations, 0, "the judge watches: {:?}", summary.violation_list);
    vec![("finished", summary.jobs.finished as usize), ("inputs", summary.inputs as usize)]
}

/// The first page of the dashboard: a full pod whose cubes are all held, in the middle of a switch,
/// with jobs that wait.
fn dashboard_pod() -> Counts {
    let plant = Plant::of_pods("bench", [Family::tpuv4(64)]).render();
    let mut core = Core::new();
    let begin = Input::Begin { plant, settings: control::settings::Settings::simulated() };
    core.handle(Moment::START, begin).expect("a fresh core begins");
    for (idx, shape) in ["8x8x8", "8x16x16", "4x8x8", "4x4x8", "2x2x1"].into_iter().enumerate() {
        for n in 0..6 {
            let spec = JobSpec {
                name: format!("job {idx}.{n}"),
                owner: "bench".to_owned(),
                project: "bench".to_owned(),
                demand: Demand::Shape(shape.to_owned()),
                priority: 3,
                preemptible: false,
                limit: None,
                retries: 0,
                redundancy: 1,
                work: Work::Simulated {
                    duration: Span::hours(9),
                    step: Span::secs(1),
                    checkpoint_every: Span::mins(10),
                },
            };
            let what = control::input::Ask::Submit { key: None, spec };
            let ask = Input::Ask { by: "bench".to_owned(), what };
            core.handle(Moment::START, ask).expect("the job is well made");
        }
    }
    let dir = tempfile::tempdir().expect("there is room for a directory");
    let (journal, _) = Store::open(dir.path()).expect("an empty directory takes a journal");
    let page = selvedge_server::first_page(core, journal);
    let n = |what: &str| page.matches(what).count();
    vec![("bytes", page.len()), ("cubes", n("data-cube=")), ("switches", n("data-ocs="))]
}

/// 100,000 parts of one node each, and 600,000 directed links: nothing is shared but a template
/// of six ports, which is the worst case of a fabric.
fn fabric_100k_nodes() -> Counts {
    const NODES: usize = 100_000;
    const STEPS: [usize; 3] = [1, 317, 9_973];
    let mut fabric = Fabric::new();
    let switch = fabric.add_template(switch(2 * STEPS.len()));
    let parts: Vec<PartId> = (0..NODES)
        .map(|it| fabric.add_part(format!("s{it}"), switch, None, &[]).expect("names differ"))
        .collect();
    fabric.reserve_cables(NODES * STEPS.len());
    for (side, step) in STEPS.into_iter().enumerate() {
        for (part_idx, part) in parts.iter().enumerate() {
            let a = fabric.port_at(*part, 2 * side);
            let b = fabric.port_at(parts[(part_idx + step) % NODES], 2 * side + 1);
            fabric.add_cable(a, b, attrs(), CentiDb::default()).expect("each port is used once");
        }
    }
    counts(&fabric)
}

/// NCCL's paths and search over 72 GPUs in one NVLink domain, in a job of two such racks.
fn nccl_rack_of_72() -> Counts {
    let profile = Profile::V2_30_7;
    let settings = Settings::defaults(profile);
    let broken = BTreeSet::new();
    let ask = Ask { profile, nodes: 2, rank: 0, settings, broken, shm_pairs: false };
    let view = View::of(&rack(RackShape::NVL72), ask).expect("the rack is well made");
    let graphs = search::graphs(&view).expect("the rack has ports");
    let mut counts = vec![("gpus", view.gpus().len()), ("calls", graphs.calls as usize)];
    let names = ["rings", "trees", "heads"];
    counts.extend(names.into_iter().zip(graphs.found.iter().map(|it| it.channels.len())));
    counts
}

/// 12,500 hosts with 40 inner nodes each, 8 of them GPUs, whose 8 network ports are cabled to
/// switches of 64 ports.
fn fabric_12500_hosts() -> Counts {
    const HOSTS: usize = 12_500;
    const RAILS: usize = 8;
    const SWITCH_PORTS: usize = 64;
    let mut fabric = Fabric::new();
    let host = fabric.add_template(host(RAILS));
    let switch = fabric.add_template(switch(SWITCH_PORTS));
    let hosts: Vec<PartId> = (0..HOSTS)
        .map(|it| fabric.add_part(format!("h{it}"), host, None, &[]).expect("names differ"))
        .collect();
    let switches: Vec<PartId> = (0..(HOSTS * RAILS).div_ceil(SWITCH_PORTS))
        .map(|it| fabric.add_part(format!("s{it}"), switch, None, &[]).expect("names differ"))
        .collect();
    fabric.reserve_cables(HOSTS * RAILS);
    for (cable_idx, (host, rail)) in
        hosts.iter().flat_map(|host| (0..RAILS).map(move |rail| (host, rail))).enumerate()
    {
        let a = fabric.port_at(*host, rail);
        let b = fabric.port_at(switches[cable_idx / SWITCH_PORTS], cable_idx % SWITCH_PORTS);
        fabric.add_cable(a, b, attrs(), CentiDb::default()).expect("each port is used once");
    }
    counts(&fabric)
}

/// One full pod: 64 cubes and 48 switches.
fn torus_pod() -> Counts {
    counts(&build::pods(1, 64).expect("a full pod fits"))
}

fn counts(fabric: &Fabric) -> Counts {
    let n_links = fabric.audit();
    let n_parts = fabric.parts().len();
    vec![("parts", n_parts), ("nodes", fabric.n_nodes()), ("links", n_links)]
}

fn attrs() -> LinkAttrs {
    LinkAttrs {
        capacity: BitRate::gigabytes(50),
        latency: Span::nanos(100),
        kind: LinkKind::Ethernet,
    }
}

fn switch(n_ports: usize) -> Template {
    let node = NodeSpec { kind: NodeKind::Switch, name: String::new(), parent: None };
    let ports = (0..n_ports).map(|it| port(0, format!("p{it}"))).collect();
    Template::new("switch", Role::PacketSwitch, vec![node], ports, Vec::new(), Vec::new())
        .expect("a switch has no inner links")
}

/// A machine that holds `n_rails` groups of a GPU, a network card and three switches of PCIe.
fn host(n_rails: usize) -> Template {
    let node = |kind, name: String| NodeSpec { kind, name, parent: Some(0) };
    let mut nodes = vec![NodeSpec { kind: NodeKind::Machine, name: "m".into(), parent: None }];
    let mut ports: Vec<PortSpec> = Vec::new();
    let mut inner: Vec<(u32, u32)> = Vec::new();
    let mut seats = Vec::new();
    for rail in 0..n_rails {
        let first = u32::try_from(nodes.len()).expect("a host is small");
        seats.push(first);
        nodes.push(node(NodeKind::Chip, format!("gpu{rail}")));
        nodes.push(node(NodeKind::Nic, format!("nic{rail}")));
        nodes.extend((0..3).map(|it| node(NodeKind::Switch, format!("pcie{rail}.{it}"))));
        ports.push(port(first + 1, format!("net{rail}")));
        // GPU and network card hang on one switch each, and both on the third.
        inner.extend([
            (first, first + 2),
            (first + 1, first + 3),
            (first + 2, first + 4),
            (first + 3, first + 4),
        ]);
    }
    let links = inner
        .into_iter()
        .map(|(a, b)| {
            let end = |node, ports: &mut Vec<PortSpec>| {
                let place = u32::try_from(ports.len()).expect("a host is small");
                ports.push(port(node, format!("i{place}")));
                place
            };
            LinkSpec { a: end(a, &mut ports), b: end(b, &mut ports), attrs: attrs() }
        })
        .collect();
    Template::new("host", Role::Compute, nodes, ports, links, seats)
        .expect("each inner port has one link")
}

fn port(node: u32, name: String) -> PortSpec {
    PortSpec { node, name, side: Side::Plain }
}
