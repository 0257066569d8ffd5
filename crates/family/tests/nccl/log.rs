//! A server as a log of NCCL's tells it: tree, matrix, ways and picture.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use expect_test::expect;
use selvedge_family::host::change::Question;
use selvedge_family::host::log::{self, NoLog};
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::graph::{Facts, LinkKind, NodeIdx, NodeKind};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::view::View;
use selvedge_family::host::nccl::xml::{Strictness, read};
use selvedge_family::host::picture::svg_of_log;

/// Two processes' lines in turns, as 2.21 writes them.
const LOG: &str = "\
n:7:9 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
n:7:9 [0] NCCL INFO === System : maxBw 24.0 totalBw 240.0 ===
n:8:9 [1] NCCL INFO === System : maxBw 1.0 totalBw 1.0 ===
n:7:9 [0] NCCL INFO CPU/0-0 (1/1/2)
n:8:9 [1] NCCL INFO CPU/0-5 (1/1/2)
n:7:9 [0] NCCL INFO + PCI[24.0] - PCI/0-5000 (ffffffffffffffff)
n:7:9 [0] NCCL INFO               + PCI[24.0] - GPU/0-7000 (0)
n:7:9 [0] NCCL INFO                             + NVL[240.0] - NVS/0
n:8:9 [1] NCCL INFO ==========================================
n:7:9 [0] NCCL INFO + PCI[24.0] - GPU/0-f000 (1)
n:7:9 [0] NCCL INFO               + NVL[240.0] - NVS/0
n:7:9 [0] NCCL INFO + PCI[24.0] - NIC/0-9000
n:7:9 [0] NCCL INFO               + NET[25.0] - NET/A (b060/1/25.000000)
n:7:9 [0] NCCL INFO ==========================================
n:7:9 [0] NCCL INFO GPU/7000 :GPU/0-7000 (0/5000.0/LOC) GPU/0-f000 (2/240.0/NVL) \
CPU/0-0 (2/24.0/PHB) NET/0-a (4/24.0/PHB)
n:8:9 [1] NCCL INFO GPU/7000 :GPU/0-7000 (0/5000.0/LOC) GPU/0-f000 (2/1.0/SYS)
n:8:9 [1] NCCL INFO GPU/F000 :GPU/0-7000 (2/1.0/SYS) GPU/0-f000 (0/5000.0/LOC)
n:7:9 [0] NCCL INFO GPU/F000 :GPU/0-7000 (2/240.0/NVL) GPU/0-f000 (0/5000.0/LOC)
n:7:9 [0] NCCL INFO NET/A :GPU/0-7000 (4/24.0/PHB) GPU/0-f000 (3/24.0/PHB)
n:7:9 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 7000 / HCA a (distance 6 <= 6), read 1
n:7:9 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 7000 / HCA a (distance 6 <= 6), read 0
m:7:9 [0] NCCL INFO GPU Direct RDMA Enabled for GPU f000 / HCA a (distance 6 <= 6), read 0
n:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct
";

#[test]
fn a_log_s_lines_make_the_matrix() {
    let logged = log::read(LOG, None).expect("paths are spelled out");
    expect![[r#"
               GPU0  GPU1  NET10  CPU  width
        GPU0   X     NVL!  PHB*   0    240GB/s
        GPU1   NVL   X     ?      0    240GB/s
        NET10  PHB*  PHB   X      -    25GB/s

        GB/s   GPU0  GPU1  NET10
        GPU0   X     240   24
        GPU1   240   X     ?
        NET10  24    24    X

        !  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving
        ? alone  the log says nothing of the way
        width: of a GPU's widest way to another, of a port

        NVL  NVLink
        PHB  through a CPU
    "#]]
    .assert_eq(&logged.matrix.text());
    assert_eq!(logged.profile, Profile::V2_21_5);
    assert_eq!(logged.notes, Vec::<String>::new());
}

/// Versions name GPUs and ports in these lines by id or rank, in tens or in sixteens.
#[test]
fn lines_of_gpudirect_rdma_are_read_in_every_version_s_form() {
    let gdr = |line: &str| !line.contains("GPU Direct RDMA");
    let rest: Vec<&str> = LOG.lines().filter(|it| gdr(it)).collect();
    let rest = rest.join("\n") + "\n";
    for (version, line) in [
        ("2.18.3", "GPU 7000 / HCA 10 (distance 6 <= 6), read 1"),
        ("2.21.5", "GPU 7000 / HCA a (distance 6 <= 6), read 1"),
        ("2.27.7", "GPU 0 / HCA a (distance 8 <= 8), read 1 mode Default"),
        ("2.29.7", "GPU/0-28672 (rank 0) - NET/0-10 (distance 8 <= 8, read 1, mode Default)"),
        (
            "2.29.7",
            "GPU/0-28672 (rank 0) - NET/0-10 ( using PXN via GPU/0-61440, distance 4 <= 6, read 1, \
             mode Default)",
        ),
    ] {
        let log = rest.replace("2.21.5", version);
        let log = format!("{log}n:7:9 [0] NCCL INFO GPU Direct RDMA Enabled for {line}\n");
        let text = log::read(&log, None).expect(version).matrix.text();
        assert!(text.contains("GPU0   X      NVL!  PHBs?"), "{version}: {text}");
    }
}

/// Lines of NCCL 2.28.9's on a machine with a GPU and no card: what it says of its ways to carry
/// has the form of a port's ways.
#[test]
fn ways_to_carry_are_no_ports() {
    let log = "\
vm:651:651 [0] NCCL INFO NCCL version 2.28.9+cuda13.0
vm:651:651 [0] NCCL INFO NET/IB : No device found.
vm:651:651 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.2<0>
vm:651:651 [0] NCCL INFO NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'
vm:651:651 [0] NCCL INFO GPU/0-60 :GPU/0-60 (0/5000.0/LOC) CPU/0-ffffffffffffff (1/48.0/PHB) \
NET/0-0 (3/1.2/PHB)
vm:651:651 [0] NCCL INFO NET/0-0 :GPU/0-60 (3/1.2/PHB) NET/0-0 (0/5000.0/LOC)
";
    let logged = log::read(log, None).expect("paths are spelled out");
    assert_eq!(logged.matrix.ends, ["GPU/60", "NET0"]);
}

/// What launchers, clocks and mail make of a log does not change what it says.
#[test]
fn what_stands_around_a_log_s_lines_does_not_matter() {
    let plain = log::read(LOG, None).expect("paths are spelled out");
    let each = |before: &str| LOG.lines().fold(String::new(), |all, it| all + before + it + "\n");
    let mut clock = 0;
    let mut timed = String::new();
    for line in LOG.lines() {
        clock += 1;
        let _ = writeln!(timed, "2026-01-01T00:00:{clock:02}.5Z [1,0]<stdout>: {line}");
    }
    for (what, log) in [
        ("CRLF", LOG.replace('\n', "\r\n")),
        ("a launcher", each("3: ")),
        ("torchrun", each("[rank0]: ")),
        ("clocks", timed),
        ("a program", format!("epoch 1 | loss 0.5\n{LOG}epoch 2: CPU/GPU (50%)\n+ done\n")),
        ("a second communicator", format!("{LOG}{}", LOG.replace("240.0", "1.0"))),
    ] {
        let logged = log::read(&log, None).expect(what);
        assert_eq!(logged.matrix, plain.matrix, "{what}");
        assert_eq!(logged.json().nodes.len(), plain.json().nodes.len(), "{what}");
    }
    // Blanks that were lost leave parts in place and are told of.
    let flat: String = LOG.lines().map(|it| it.replace("INFO   ", "INFO ") + "\n").collect();
    let flat = (0..40).fold(flat, |it, _| it.replace("INFO  ", "INFO "));
    let logged = log::read(&flat, None).expect("a flat log");
    assert_eq!(logged.matrix.cells, plain.matrix.cells);
    assert!(logged.notes[0].contains("indentation"), "{:?}", logged.notes);
}

/// NCCL logs for every pair whether receiving is direct, and for the ports in use alone whether
/// sending is.
#[test]
fn what_a_log_says_of_receiving_alone_leaves_sending_open() {
    let log: String =
        LOG.lines().filter(|it| !it.contains("read 1")).map(|it| format!("{it}\n")).collect();
    let text = log::read(&log, None).expect("paths are spelled out").matrix.text();
    assert!(text.contains("GPU0   X      NVL!  PHBr?"), "{text}");
    assert!(text.contains("the log does not say whether for the other too"), "{text}");
}

#[test]
fn a_rank_s_own_tree_is_taken_where_it_is_asked_for() {
    let init = "n:8:9 [1] NCCL INFO ncclCommInitRank comm 0x5 rank 1 nranks 2 cudaDev 1 nvmlDev 1 \
                busId f000 commId 0x9 - Init START\n";
    let log = format!("{init}{LOG}");
    let logged = log::read(&log, Some(1)).expect("rank 1 spells paths out");
    let cell = logged.matrix.cells[0][1].expect("it is told");
    assert_eq!((cell.kind, cell.gb_per_s), ("SYS", 1.0));
    let error = log::read(&log, Some(7)).expect_err("no rank 7").to_string();
    expect!["rank 7 spells out neither a tree nor paths in this log; these do: 1"]
        .assert_eq(&error);
}

#[test]
fn what_is_no_such_log_is_said() {
    let error = |text: &str| log::read(text, None).expect_err(text);
    assert_eq!(error("nothing of the kind"), NoLog::NoLine);
    assert_eq!(error(""), NoLog::NoLine);
    assert_eq!(error("n:1:2 [0] NCCL INFO Bootstrap : Using eth0"), NoLog::NoGraph);
    assert_eq!(error("GPU/1 :broken (x/y/z) GPU/2"), NoLog::NoLine);
    // Paths alone make a matrix and no picture.
    let paths: Vec<&str> = LOG.lines().filter(|it| it.contains(" :")).collect();
    let logged = log::read(&paths.join("\n"), None).expect("paths");
    assert!(logged.graph.is_none());
    assert_eq!(svg_of_log(&logged, "x", None), None);
}

/// Wherever a log is cut, what is left is read without a panic, and drawn.
#[test]
fn no_cut_of_a_log_makes_it_panic() {
    for at in 0..LOG.len() {
        for part in [&LOG[..at], &LOG[at..]] {
            if let Ok(logged) = log::read(part, None) {
                let _ = logged.matrix.text();
                let _ = svg_of_log(&logged, "cut", None);
            }
        }
    }
}

/// The view's tree and paths as the version of that profile logs them.
fn log_of(view: &View) -> String {
    let profile = view.ask.profile;
    let graph = &view.graph;
    let long = |node: NodeIdx| {
        let it = graph.node(node);
        let (host, id) = (it.id >> 56, it.id & (u64::MAX >> 8));
        match profile {
            Profile::V2_7_8 | Profile::V2_18_5 => format!("{}/{id:X}", it.kind.name()),
            _ => format!("{}/{host:x}-{id:x}", it.kind.name()),
        }
    };
    let mut out = "=== System : maxBw 1.0 totalBw 1.0 ===\n".to_owned();
    // What is still to be written: what leads to it, where from, and how far to the right.
    let mut todo: Vec<(String, NodeIdx, Option<NodeIdx>, usize)> = Vec::new();
    for &cpu in graph.kind(NodeKind::Cpu).iter().rev() {
        todo.push((String::new(), cpu, None, 0));
    }
    while let Some((before, node, from, column)) = todo.pop() {
        let it = graph.node(node);
        let facts = match it.facts {
            Facts::Gpu { gpu, parent: None } => format!(" ({})", gpu.rank),
            Facts::Cpu(cpu) => {
                let number = |it: Option<i32>| it.unwrap_or(-1);
                let (arch, vendor) = (cpu.arch.map(|it| it as i32), cpu.vendor.map(|it| it as i32));
                format!(" ({}/{}/{})", number(arch), number(vendor), cpu.model)
            }
            Facts::Pci(device) => format!(" ({device:x})"),
            Facts::Net(net) => format!(" ({:x}/{}/{:.6})", net.asic, net.port, net.width.0),
            _ => String::new(),
        };
        let _ = writeln!(out, "{:column$}{before}{}{facts}", "", long(node));
        let column = column + before.len();
        if before.starts_with("+ ") && !before.starts_with("+ PCI") {
            continue;
        }
        for link in it.links.iter().rev() {
            let back = link.kind == LinkKind::Pci && Some(link.peer) == from;
            let own = link.kind == LinkKind::Loc && link.peer == node;
            let out_of_card = it.kind == NodeKind::Nic && link.kind == LinkKind::Pci;
            if !back && !own && !out_of_card {
                let before = format!("+ {}[{:.1}] - ", link.kind.name(), link.width.0);
                todo.push((before, link.peer, Some(node), column));
            }
        }
    }
    out.push_str("==========================================\n");
    for &from in view.gpus().iter().chain(view.nets()) {
        let _ = write!(out, "{} :", long(from));
        for &to in view.gpus().iter().chain(view.nets()) {
            let path = view.path(from, to);
            let (kind, width) = (path.kind.name(), path.width.0);
            let _ = write!(out, "{} ({}/{width:.1}/{kind}) ", long(to), path.count);
        }
        out.push('\n');
    }
    for &gpu in view.gpus() {
        let (id, rank) = (graph.node(gpu).id & (u64::MAX >> 8), graph.gpu(gpu).rank);
        let _ = writeln!(out, "Init comm 0x1 rank {rank} nranks 8 cudaDev 0 busId {id:x}");
    }
    out.lines().fold(String::new(), |all, it| all + "n:7:9 [0] NCCL INFO " + it + "\n")
}

/// Real servers in every version's form: the log of a view tells the view's parts, links, distances
/// and ways again.
#[test]
fn a_view_s_own_log_tells_the_view_again() {
    let Some(folder) = env::var_os("SELVEDGE_DATA").map(PathBuf::from) else {
        println!("not run: SELVEDGE_DATA is not set, nccl/topos is not there");
        return;
    };
    let (mut ways, mut untold, mut twins) = (0, 0, 0);
    for entry in fs::read_dir(folder.join("nccl/topos")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("readable");
        let root = read(&text, Strictness::Lenient { single_quotes: true });
        let root = root.expect("well-formed").root;
        for profile in Profile::ALL {
            let view = Question::new(root.clone(), profile).view().expect("NCCL takes it");
            // Parts of one number are one to a log.
            let all = NodeKind::ALL.into_iter().flat_map(|it| view.graph.kind(it));
            let id = |it: &NodeIdx| (view.graph.node(*it).kind, view.graph.node(*it).id);
            let mut ids: Vec<_> = all.map(id).collect();
            ids.sort_unstable();
            if ids.windows(2).any(|it| it[0] == it[1]) {
                twins += 1;
                continue;
            }
            let place = format!("{} {profile}", path.display());
            let logged = log::read(&log_of(&view), None).expect("a log");
            let graph = logged.graph.as_ref().expect("a tree");
            let kinds = [NodeKind::Gpu, NodeKind::Net, NodeKind::Cpu, NodeKind::Pci, NodeKind::Nic];
            for kind in kinds {
                let n_links = |graph: &selvedge_family::host::nccl::graph::Graph| {
                    let all = graph.kind(kind).iter();
                    all.map(|it| {
                        let links = graph.node(*it).links.iter();
                        links.filter(|link| link.peer != *it).count()
                    })
                    .sum::<usize>()
                };
                assert_eq!(graph.kind(kind).len(), view.graph.kind(kind).len(), "{place}");
                assert_eq!(n_links(graph), n_links(&view.graph), "{place} {kind:?}");
            }
            let own = Matrix::of(&view).expect("nothing is broken");
            for (row, from) in logged.matrix.ends.iter().enumerate() {
                for (column, to) in logged.matrix.ends.iter().enumerate() {
                    let at = |it: &String| own.ends.iter().position(|own| own == it);
                    let (from, to) = (at(from).expect("an end"), at(to).expect("an end"));
                    let (own, told) = (own.cells[from][to], logged.matrix.cells[row][column]);
                    let (own, told) = (own.expect("a cell"), told.expect("a cell"));
                    assert_eq!((own.kind, own.hops), (told.kind, told.hops), "{place}");
                    assert!((own.gb_per_s - told.gb_per_s).abs() < 0.06, "{place}");
                }
            }
            let all = || graph.kind(NodeKind::Gpu).iter().chain(graph.kind(NodeKind::Net));
            for &from in all() {
                for &to in all().filter(|it| **it != from) {
                    ways += 1;
                    untold += usize::from(logged.way(from, to).is_err());
                }
            }
        }
    }
    // The log says how long a detour is, not where it leads; nearly all are found again.
    assert!(untold * 50 < ways, "{untold} of {ways} ways are not found in their own tree");
    println!("{ways} ways, {untold} of them not found; {twins} servers have twins and count not");
}
