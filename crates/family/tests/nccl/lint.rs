//! Findings on real files and on hostile ones; the widest ways against brute force.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};
use selvedge_family::host::change::Question;
use selvedge_family::host::decision::Decisions;
use selvedge_family::host::lint::{Report, Severity, lint};
use selvedge_family::host::nccl::dump::dump;
use selvedge_family::host::nccl::graph::{NodeIdx, NodeKind};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::view::View;
use selvedge_family::host::nccl::xml::{Strictness, read, write};
use selvedge_family::host::widest::Widest;

const NEWEST: Profile = Profile::V2_30_7;

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

/// Each server with its name.
fn servers() -> BTreeMap<String, String> {
    let Some(folder) = real_input("nccl/topos") else {
        println!("not run: SELVEDGE_DATA is not set, nccl/topos is not there");
        return BTreeMap::new();
    };
    let paths = fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path());
    let name = |it: &PathBuf| it.file_stem().expect("a file").to_string_lossy().into_owned();
    paths.map(|it| (name(&it), fs::read_to_string(it).expect("readable"))).collect()
}

fn rules(report: &Report) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for it in &report.findings {
        *counts.entry(format!("{}[{}]", it.severity, it.rule)).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(rule, n)| format!("{rule} x{n}")).collect();
    counts.join(", ")
}

#[test]
fn real_files_have_the_findings_that_people_reported() {
    let servers = servers();
    if servers.is_empty() {
        return;
    }
    let of = |name: &str| rules(&lint(&servers[name], NEWEST).expect("well-formed"));
    // Four NVLinks that point at their own GPU; switches with 0.19 GB/s upwards.
    expect!["error[self-link] x4, note[guessed-link] x1, note[port-gdr] x1, warning[no-gdr] x1"]
        .assert_eq(&of("azure-ncv4-topo"));
    expect!["note[guessed-link] x1, warning[narrow-uplink] x8"].assert_eq(&of("ibm-vpc_h100"));
    expect!["warning[no-gdr] x1"].assert_eq(&of("simllm-perlmutter_a100"));
    expect!["note[idle-port] x1, warning[trimmed] x1, warning[uneven-link] x1"]
        .assert_eq(&of("rtpllm-8gpu_gen6-filled"));
    expect!["error[duplicate-busid] x2"].assert_eq(&of("synth-dgx1v"));
}

#[test]
fn what_is_mended_is_taken_by_nccl_and_found_no_more() {
    for (name, text) in servers() {
        let report = lint(&text, NEWEST).expect("well-formed");
        let strict = Strictness::AsNccl { single_quotes: false };
        read(&report.fixed, strict).expect("NCCL reads what is written back");
        if report.is_mended {
            let again = lint(&report.fixed, NEWEST).expect("well-formed");
            assert!(!again.is_mended, "{name}: {}", rules(&again));
        }
    }
}

/// What `topo dump` would print, but for what NCCL refuses.
fn dumped(text: &str, profile: Profile, nodes: u32) -> Option<String> {
    let strict = Strictness::as_nccl(profile);
    let root = read(text, strict).ok()?.root;
    let question = Question { nodes, ..Question::new(root, profile) };
    dump(&question.view().ok()?, "it").ok()
}

/// That the mended file has no error that the file has not, and that no version refuses it that
/// takes the file.
#[track_caller]
fn no_worse(name: &str, text: &str, report: &Report) {
    let errors = |report: &Report| {
        let errors = report.findings.iter().filter(|it| it.severity == Severity::Error);
        errors.map(|it| (it.rule, it.what.clone())).collect::<Vec<_>>()
    };
    let before = errors(report);
    let after = errors(&lint(&report.fixed, NEWEST).expect("well-formed"));
    let new: Vec<_> = after.iter().filter(|it| !before.contains(it)).collect();
    assert!(new.is_empty(), "{name}: {new:?}");
    for profile in [Profile::V2_7_8, Profile::V2_27_7, NEWEST] {
        for nodes in [1, 2] {
            if dumped(text, profile, nodes).is_some() {
                let after = dumped(&report.fixed, profile, nodes);
                assert!(after.is_some(), "{name} {profile} {nodes}");
            }
        }
    }
}

#[test]
fn what_is_mended_is_no_worse_anywhere() {
    let mut mended = 0;
    for (name, text) in servers() {
        let report = lint(&text, NEWEST).expect("well-formed");
        if report.is_mended {
            mended += 1;
            no_worse(&name, &text, &report);
        }
    }
    println!("{mended} files are mended");
}

/// A server of sixteen GPUs that 2.30.7 refuses with wider bridges, for ports are then faster than
/// the ways between GPUs.
#[test]
fn a_change_after_which_nccl_refuses_is_not_made() {
    let Some(text) = servers().remove("rccl-topo_16p1h") else { return };
    let report = lint(&text, NEWEST).expect("well-formed");
    assert!(!report.is_mended, "{}", rules(&report));
    let (real, virtual_) =
        ("\"16.0 GT/s PCIe\" link_width=\"8\"", "\"2.5 GT/s PCIe\" link_width=\"1\"");
    let text = text.replace(real, virtual_);
    let report = lint(&text, NEWEST).expect("well-formed");
    let narrow: Vec<_> = report.findings.iter().filter(|it| it.rule == "narrow-uplink").collect();
    assert!(narrow.len() == 16 && narrow.iter().all(|it| !it.is_fixed), "{}", rules(&report));
    no_worse("rccl-topo_16p1h with virtual bridges", &text, &report);
}

#[test]
fn only_a_made_up_switch_gets_a_wider_link() {
    let server_of = |speed: &str, width: &str| {
        let switch = format!("link_speed=\"{speed}\" link_width=\"{width}\"");
        let inside = gpu(1, "") + &gpu(2, "");
        server(&format!(
            "<pci busid=\"0000:40:00.0\" class=\"0x060400\" {switch}>\n{inside}</pci>\n{}",
            port(0)
        ))
    };
    let found = |text: &str| {
        let report = lint(text, NEWEST).expect("well-formed");
        let narrow = report.findings.iter().find(|it| it.rule == "narrow-uplink");
        (narrow.map(|it| it.is_fixed), report.fixed)
    };
    let (is_fixed, fixed) = found(&server_of("2.5 GT/s PCIe", "1"));
    assert_eq!(is_fixed, Some(true));
    assert_eq!(fixed, {
        let root =
            read(&server_of("16.0 GT/s PCIe", "16"), Strictness::Lenient { single_quotes: true });
        write(&root.expect("well-formed").root)
    });
    // A real one that trained badly is the server's fault and not the file's.
    for (speed, width) in [("2.5 GT/s PCIe", "16"), ("16.0 GT/s PCIe", "4"), ("8.0 GT/s PCIe", "4")]
    {
        assert_eq!(found(&server_of(speed, width)).0, Some(false), "{speed} x{width}");
    }
}

#[test]
fn the_tree_s_widest_ways_are_those_of_brute_force() {
    let mut pairs = 0;
    for (name, text) in servers() {
        for profile in Profile::ALL {
            let root = read(&text, Strictness::Lenient { single_quotes: true });
            let question = Question::new(root.expect("well-formed").root, profile);
            let view = question.whole().expect("NCCL takes every real file");
            let widest = Widest::of(&view);
            for &a in view.gpus() {
                for &b in view.gpus().iter().filter(|b| **b != a) {
                    let brute = brute_force(&view, a, b);
                    assert_eq!(widest.between(a, b).0, brute, "{name} {profile}");
                    pairs += 1;
                }
            }
        }
    }
    println!("{pairs} pairs");
}

/// The highest width at which the far GPU is still reached without passing through a GPU.
fn brute_force(view: &View, from: NodeIdx, to: NodeIdx) -> f32 {
    let graph = &view.graph;
    let all = NodeKind::ALL.into_iter().flat_map(|it| graph.kind(it));
    let mut widths: Vec<f32> =
        all.flat_map(|it| graph.node(*it).links.iter().map(|it| it.width.0)).collect();
    widths.sort_by(f32::total_cmp);
    widths.dedup();
    let seats: Vec<NodeIdx> = [from, to].map(|it| view.seat(it)).to_vec();
    let reached = |least: f32| {
        let mut seen = vec![seats[0]];
        let mut at = 0;
        while let Some(&node) = seen.get(at) {
            at += 1;
            let is_end = matches!(graph.node(node).kind, NodeKind::Gpu | NodeKind::Dev);
            if is_end && node != seats[0] {
                continue;
            }
            for link in graph.node(node).links.iter().filter(|it| it.width.0 >= least) {
                if !seen.contains(&link.peer) {
                    seen.push(link.peer);
                }
            }
        }
        seen.contains(&seats[1])
    };
    widths.into_iter().rev().find(|it| reached(*it)).unwrap_or(0.0)
}

const CPU: &str = "arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\"";
const LINK: &str = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";

fn gpu(number: usize, inside: &str) -> String {
    format!(
        "<pci busid=\"0000:0{number}:00.0\" class=\"0x030200\" {LINK}>\n\
         <gpu dev=\"{number}\" sm=\"80\" rank=\"{number}\" gdr=\"1\">{inside}</gpu></pci>\n"
    )
}

fn port(number: usize) -> String {
    format!(
        "<pci busid=\"0000:9{number:x}:00.0\" class=\"0x020000\" {LINK}>\n<nic>\
         <net name=\"n{number}\" dev=\"{number}\" speed=\"100000\" gdr=\"1\"/></nic></pci>\n"
    )
}

fn server(inside: &str) -> String {
    format!("<system version=\"1\">\n<cpu numaid=\"0\" {CPU}>\n{inside}</cpu>\n</system>\n")
}

/// Every version answers, with a finding or an error, and never panics.
#[track_caller]
fn check(text: &str, expected: Expect) {
    for profile in Profile::ALL {
        let Ok(report) = lint(text, profile) else { continue };
        let document = read(&report.fixed, Strictness::Lenient { single_quotes: true });
        let question = Question::new(document.expect("written by us").root, profile);
        if let Ok(view) = question.view() {
            let _ = Decisions::of(&view);
        }
    }
    let lines = match lint(text, NEWEST) {
        Ok(report) => {
            let lines: Vec<String> = report.findings.iter().map(|it| format!("{it}\n")).collect();
            lines.concat()
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&lines);
}

#[test]
fn a_negative_width_is_named_as_the_cause() {
    let text = server(&(gpu(0, "") + &port(0)));
    let text = text.replacen("link_width=\"16\"", "link_width=\"-4\"", 1);
    for profile in Profile::ALL {
        let found = lint(&text, profile).expect("well-formed").findings;
        let place = found[0].place.expect("an attribute stands somewhere").to_string();
        assert_eq!((found[0].rule, place.as_str()), ("number", "3:1"), "{profile}");
        assert!(found.iter().all(|it| it.rule != "refused"), "{profile}: {found:?}");
    }
    let root = read(&text, Strictness::AsNccl { single_quotes: true }).expect("well-formed").root;
    let mut question = Question::new(root, Profile::V2_27_7);
    question.nodes = 1;
    let error = question.view().expect_err("no way leads over the link");
    let expected = "3:1: link_width=\"-4\" is negative, so no way leads over this link and GPU 0 \
                    reaches no CPU; write the lanes that the link has, such as 16";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn hostile_and_broken_files_have_findings() {
    let two = |a: &str, b: &str| server(&(gpu(0, a) + &gpu(1, b) + &port(0)));
    let link =
        |to: usize| format!("<nvlink target=\"0000:0{to}:00.0\" count=\"2\" tclass=\"0x030200\"/>");
    check(
        &two(&link(0), ""),
        expect![[r#"
            4:39: error[self-link]: an NVLink from a GPU to itself
                name the GPU or the switch at its other end, or delete it (--fix does it)
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
        "#]],
    );
    check(
        &two(&link(7), ""),
        expect![[r#"
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            4:39: warning[missing-target]: an NVLink to 0000:07:00.0, where no GPU is; NCCL passes it over
                name the GPU's own bus id, in a VM the guest's
        "#]],
    );
    check(
        &two(&link(1), ""),
        expect![[r#"
            4:39: error[one-way]: an NVLink to 0000:01:00.0 that 0000:01:00.0 does not name; NCCL gives up
                name the link at both ends (--fix does it)
        "#]],
    );
    check(
        &two("", "").replace("0000:01", "0000:00"),
        expect![[r#"
            5:1: error[duplicate-busid]: busid="0000:00:00.0" of a <pci> stands at 3:1 already
                a bus id names one device; the first is found
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            warning[fallback]: NCCL 2.30.7 finds no ring at any speed of its tables and falls back to the ranks' order at 0.1 GB/s
                the narrowest way between two GPUs, or to a port, is below the tables' last speed; `topo show` has the widths
            warning[fallback]: NCCL 2.30.7 finds no tree at any speed of its tables and falls back to the ranks' order at 0.1 GB/s
                the narrowest way between two GPUs, or to a port, is below the tables' last speed; `topo show` has the widths
        "#]],
    );
    check(
        &two("", "").replace("rank=\"1\"", "rank=\"0\""),
        expect![[r#"
            6:1: error[duplicate-rank]: rank="0" of a <gpu> stands at 4:1 already
                each GPU of a job has a rank of its own
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU0 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
        "#]],
    );
    check(
        &server(&port(0)),
        expect![[r#"
            1:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
                NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
        "#]],
    );
    let outside = server(&gpu(0, "")).replace("</system>", &format!("{}</system>", gpu(1, "")));
    check(
        &outside,
        expect![[r#"
        7:1: error[no-cpu]: a GPU below no <cpu>; NCCL does not see it
            put its <pci> below the <cpu> of its NUMA node
        note[no-graph]: on several servers NCCL 2.30.7 gives up: the job spans servers and this server has no network port; name one in the file, or ask for one server
            name the server's ports in the file
    "#]],
    );
    check(
        &two("", "").replace("link_width=\"16\"", "link_width=\"0\""),
        expect![[r#"
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            3:1: note[guessed-link]: 3 links have a width of 0 or an unknown speed, for which NCCL takes 16 lanes of generation 3, 12 GB/s, or of the speed that stands there
                write the link_speed and link_width of the bare-metal server
        "#]],
    );
    check(
        &two("", "").replace("sm=\"80\"", "sm=\"8.0\""),
        expect![[r#"
            4:1: error[number]: sm="8.0" of <gpu> is no whole number of 1 or more; NCCL reads as far as digits go, which is 8
                write the number that the server has; `nvidia-smi topo -m`, lspci and ibstat show it
            6:1: error[number]: sm="8.0" of <gpu> is no whole number of 1 or more; NCCL reads as far as digits go, which is 8
                write the number that the server has; `nvidia-smi topo -m`, lspci and ibstat show it
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
        "#]],
    );
    check(
        &two("", "").replace("speed=\"100000\"", "speed=\"0\""),
        expect![[r#"
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            8:6: warning[port-speed]: a port without a speed, which NCCL takes for 10 Gbit/s
                write its speed in Mbit/s
        "#]],
    );
    check(
        &two("", "").replace("version=\"1\"", "version=\"2\""),
        expect![[r#"
            1:1: error[version]: the file's version is "2"; NCCL takes version 1 alone
                write version="1"; a file of RCCL's with xgmi links wants more than that (--fix does it)
        "#]],
    );
    let other = "<topology version=\"2.0\">\n<object type=\"Machine\"/>\n</topology>\n";
    check(
        other,
        expect![[r#"
        1:1: error[refused]: <topology> is no topology of NCCL, whose outermost element is <system version="1">
            `selvedge topo read --hwloc FILE` makes one from what lstopo wrote
        1:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
            NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
    "#]],
    );
    check(
        &two("", "").replace("system", "server"),
        expect![[r#"
        1:1: error[refused]: <server> is no topology of NCCL, whose outermost element is <system version="1">
            `selvedge topo read --hwloc FILE` makes one from what lstopo wrote
    "#]],
    );
    let list = two("", "").replace("numaid=\"0\"", "numaid=\"0\" affinity=\"0-63\"");
    check(
        &list,
        expect![[r#"
            2:1: error[affinity]: affinity "0-63" is no mask; NCCL would read other processors from it
                write words of eight hexadecimal digits, such as 00000000,0000ffff (--fix does it)
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
        "#]],
    );
    let many: String = (0..61).map(port).collect();
    check(
        &server(&(gpu(0, "") + &many)),
        expect![[r#"
            37:1: error[busid]: busid "0000:910:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            39:1: error[busid]: busid "0000:911:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            41:1: error[busid]: busid "0000:912:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            43:1: error[busid]: busid "0000:913:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            45:1: error[busid]: busid "0000:914:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            47:1: error[busid]: busid "0000:915:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            49:1: error[busid]: busid "0000:916:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            51:1: error[busid]: busid "0000:917:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            53:1: error[busid]: busid "0000:918:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            55:1: error[busid]: busid "0000:919:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            57:1: error[busid]: busid "0000:91a:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            59:1: error[busid]: busid "0000:91b:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            61:1: error[busid]: busid "0000:91c:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            63:1: error[busid]: busid "0000:91d:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            65:1: error[busid]: busid "0000:91e:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            67:1: error[busid]: busid "0000:91f:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            69:1: error[busid]: busid "0000:920:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            71:1: error[busid]: busid "0000:921:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            73:1: error[busid]: busid "0000:922:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            75:1: error[busid]: busid "0000:923:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            77:1: error[busid]: busid "0000:924:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            79:1: error[busid]: busid "0000:925:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            81:1: error[busid]: busid "0000:926:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            83:1: error[busid]: busid "0000:927:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            85:1: error[busid]: busid "0000:928:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            87:1: error[busid]: busid "0000:929:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            89:1: error[busid]: busid "0000:92a:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            91:1: error[busid]: busid "0000:92b:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            93:1: error[busid]: busid "0000:92c:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            95:1: error[busid]: busid "0000:92d:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            97:1: error[busid]: busid "0000:92e:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            99:1: error[busid]: busid "0000:92f:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            101:1: error[busid]: busid "0000:930:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            103:1: error[busid]: busid "0000:931:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            105:1: error[busid]: busid "0000:932:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            107:1: error[busid]: busid "0000:933:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            109:1: error[busid]: busid "0000:934:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            111:1: error[busid]: busid "0000:935:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            113:1: error[busid]: busid "0000:936:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            115:1: error[busid]: busid "0000:937:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            117:1: error[busid]: busid "0000:938:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            119:1: error[busid]: busid "0000:939:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            121:1: error[busid]: busid "0000:93a:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            123:1: error[busid]: busid "0000:93b:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            125:1: error[busid]: busid "0000:93c:00.0" is no bus id: domains end at ffffffff, buses at ff, devices at 1f, functions at 7
                write it as lspci -D does, such as 0000:1a:00.0
            warning[no-gdr]: no port reaches the memory of GPU0 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            70:6: warning[many-ports]: 61 ports; versions up to 2.18 have room for 32 links of a card and crash
                leave out those that are not used, or use a newer version
        "#]],
    );
}

#[test]
fn numbers_that_stand_twice_and_links_of_no_width_have_findings() {
    let two = |inside: &str| server(&(gpu(0, inside) + &gpu(1, "") + &port(0)));
    check(
        &two("").replace("dev=\"1\"", "dev=\"0\""),
        expect![[r#"
            6:1: error[duplicate-dev]: dev="0" of a <gpu> stands at 4:1 already
                NVML numbers each GPU of a server once
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
        "#]],
    );
    let numa = two("").replace("</cpu>", &format!("</cpu>\n<cpu numaid=\"0\" {CPU}></cpu>"));
    check(
        &numa,
        expect![[r#"
            10:1: error[duplicate-numa]: numaid="0" of a <cpu> stands at 2:1 already
                each NUMA node stands once
            warning[no-gdr]: no port reaches the memory of GPU0 and GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
        "#]],
    );
    check(
        &server(&(gpu(0, "") + &port(0) + &port(1).replace("dev=\"1\"", "dev=\"0\""))),
        expect![[r#"
            warning[no-gdr]: no port reaches the memory of GPU0 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            8:6: warning[duplicate-net]: dev="0" of a <net> stands at 6:6 already
                ports of one number share the first one's paths
        "#]],
    );
    check(
        &two("<nvlink target=\"0000:01:00.0\" count=\"0\" tclass=\"0x030200\"/>"),
        expect![[r#"
            4:39: error[number]: count="0" of <nvlink> is no whole number of 1 or more; NCCL reckons with it all the same
                write the number that the server has; `nvidia-smi topo -m`, lspci and ibstat show it
            4:39: error[one-way]: an NVLink to 0000:01:00.0 that 0000:01:00.0 does not name; NCCL gives up
                name the link at both ends (--fix does it)
        "#]],
    );
    check(
        &two("<c2c bw=\"0\" count=\"0\"/>"),
        expect![[r#"
            4:39: error[number]: count="0" of <c2c> is no whole number of 1 or more; NCCL reckons with it all the same
                write the number that the server has; `nvidia-smi topo -m`, lspci and ibstat show it
            warning[no-gdr]: no port reaches the memory of GPU1 (GPUDirect RDMA)
                ask `topo explain gdr` which rule decides
            warning[fallback]: NCCL 2.30.7 finds no ring at any speed of its tables and falls back to the ranks' order at 0.1 GB/s
                the narrowest way between two GPUs, or to a port, is below the tables' last speed; `topo show` has the widths
            warning[fallback]: NCCL 2.30.7 finds no tree at any speed of its tables and falls back to the ranks' order at 0.1 GB/s
                the narrowest way between two GPUs, or to a port, is below the tables' last speed; `topo show` has the widths
        "#]],
    );
}

#[test]
fn entities_and_documents_types_are_not_obeyed() {
    check(
        "<!DOCTYPE a [<!ENTITY b \"c\">]><system/>",
        expect![[r#"
            1:2: found '!', expected an element: a topology file has no DOCTYPE and no instructions; delete this
        "#]],
    );
    check(
        "<system version=\"&b;\"/>",
        expect![[r#"
            1:1: error[version]: the file's version is "&b;"; NCCL takes version 1 alone
                write version="1"; a file of RCCL's with xgmi links wants more than that (--fix does it)
            1:1: warning[entity]: version="&b;" of <system> holds the entity &b;, which NCCL takes letter by letter
                write what the entity stands for
            1:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
                NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
        "#]],
    );
    check(
        &"<system>".repeat(100_000),
        expect![[r#"
        1:513: more than 64 nested elements; a server has fewer
    "#]],
    );
}

/// GPU 0 counts four links to GPU 1, which counts two back: said once, at the end that has more.
#[test]
fn links_that_two_gpus_count_differently_are_told_once() {
    let gpu = |it: usize, count: usize| {
        format!(
            "<pci busid=\"0000:0{it}:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" \
             link_width=\"16\">\n<gpu dev=\"{it}\" sm=\"80\" rank=\"{it}\" gdr=\"1\">\n\
             <nvlink target=\"0000:0{}:00.0\" count=\"{count}\" tclass=\"0x030200\"/>\n</gpu>\n</pci>\n",
            1 - it
        )
    };
    let cpu = "<cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" \
               familyid=\"23\" modelid=\"49\">\n";
    let server = |back: usize| {
        let (first, second) = (gpu(0, 4), gpu(1, back));
        format!("<system version=\"1\">\n{cpu}{first}{second}</cpu>\n</system>\n")
    };
    let told = |text: &str| {
        let findings = lint(text, NEWEST).expect("well-formed").findings;
        findings.into_iter().filter(|it| it.rule == "lopsided-nvlink").collect::<Vec<_>>()
    };
    assert!(told(&server(4)).is_empty());
    let findings = told(&server(2));
    assert_eq!(findings.len(), 1);
    assert!(findings[0].what.starts_with("4 NVLinks to 0000:01:00.0, which names 2 back"));
}

#[test]
fn what_nccl_reads_otherwise_than_it_is_written_has_a_finding() {
    let one = server(&gpu(1, ""));
    let found = |from: &str, to: &str| {
        let text = one.replace(from, to);
        assert_ne!(text, one);
        let report = lint(&text, NEWEST).expect("well-formed");
        if report.is_mended {
            no_worse("one", &text, &report);
        }
        let findings = report.findings.iter().filter(|it| it.severity < Severity::Note);
        findings
            .map(|it| format!("{}[{}]: {}\n", it.severity, it.rule, it.what))
            .collect::<String>()
    };
    let busid = "busid=\"0000:01:00.0\"";
    expect![[r#"
        error[busid]: busid "zz" is no bus id; NCCL reads hexadecimal digits as far as they go, and 0 where there are none
    "#]].assert_eq(&found(busid, "busid=\"zz\""));
    expect![[r#"
        error[busid]: busid "" is no bus id; NCCL reads hexadecimal digits as far as they go, and 0 where there are none
    "#]].assert_eq(&found(busid, "busid=\"\""));
    expect![[r#"
        warning[number]: rank="2000000000" of <gpu> is more than there is of; NCCL reckons with it all the same
    "#]].assert_eq(&found("rank=\"1\"", "rank=\"2000000000\""));
    expect![[r#"
        warning[nul]: busid="0000:01:00.0\0:zz" of <pci> holds a NUL byte; NCCL reads what stands before it
    "#]].assert_eq(&found(busid, "busid=\"0000:01:00.0\0:zz\""));
    let link = "<nvlink target=\"0000:09:00.0\" count=\"2147483647\" tclass=\"0x068000\"/></gpu>";
    expect![[r#"
        warning[number]: count="2147483647" of <nvlink> is more than there is of; NCCL reckons with it all the same
    "#]].assert_eq(&found("</gpu>", link));
    let net = port(0).replace("dev=\"0\"", "dev=\"99999\"") + "</cpu>";
    expect![[r#"
        warning[no-gdr]: no port reaches the memory of GPU1 (GPUDirect RDMA)
        warning[number]: dev="99999" of <net> is more than there is of; NCCL reckons with it all the same
    "#]].assert_eq(&found("</cpu>", &net));
    // A GPU that is out of the graph for its place is not said to have no rank.
    let outside =
        "<nvlink target=\"0000:09:00.0\" count=\"1\" tclass=\"0x068000\"/></gpu></pci></cpu>";
    let outside = outside.replace("</pci></cpu>", "</pci>");
    let text = one.replace("</gpu></pci>", &outside).replace("</cpu>\n", "");
    let open = text.find("<cpu").expect("a cpu");
    let close = open + text[open..].find(">\n").expect("its end");
    let text = format!("{}{}", &text[..open], &text[close + 2..]);
    let report = lint(&text, NEWEST).expect("well-formed");
    expect!["error[no-cpu] x1"].assert_eq(&rules(&report));
}

#[test]
fn ranks_that_leave_some_out_and_processors_without_figures_have_findings() {
    let found = |from: &str, to: &str| {
        let text = server(&[gpu(0, ""), gpu(1, "")].concat());
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let findings = lint(&changed, NEWEST).expect("well-formed").findings;
        let rules = ["rank-gap", "arch", "vendor"];
        let findings = findings.iter().filter(|it| rules.contains(&it.rule));
        findings.map(|it| format!("{it}\n")).collect::<String>()
    };
    expect![[r#"
        6:1: note[rank-gap]: no GPU has a rank between 0 and 4
            fine where a launcher deals ranks round servers; else a GPU is missing in the file or its rank is mistyped
    "#]].assert_eq(&found("rank=\"1\"", "rank=\"4\""));
    expect![[r#"
        2:1: warning[arch]: arch="mips" is none that NCCL knows; it takes the way to other CPUs for 5000 GB/s wide
            write x86_64, arm64 or ppc64
    "#]].assert_eq(&found("arch=\"x86_64\"", "arch=\"mips\""));
    expect![[r#"
        2:1: note[vendor]: vendor="HygonGenuine" is none that NCCL knows; it takes the way to other CPUs for 5000 GB/s wide
            right where /proc/cpuinfo has this vendor_id; judge what crosses between CPUs by measuring it
    "#]].assert_eq(&found("vendor=\"AuthenticAMD\"", "vendor=\"HygonGenuine\""));
    // Ranks that begin elsewhere are those of another server of the job.
    let text = server(&[gpu(0, ""), gpu(1, "")].concat())
        .replace("rank=\"1\"", "rank=\"9\"")
        .replace("rank=\"0\"", "rank=\"8\"");
    let findings = lint(&text, NEWEST).expect("well-formed").findings;
    assert!(findings.iter().all(|it| it.rule != "rank-gap"), "{findings:?}");
}

/// A file for a VM has no GPUs or no ranks; what NCCL refuses in the rest of it is found all the
/// same.
#[test]
fn what_nccl_refuses_is_found_in_files_without_gpus() {
    let found = |text: &str, profile| {
        let findings = lint(text, profile).expect("well-formed").findings;
        findings.iter().map(|it| format!("{it}\n")).collect::<String>()
    };
    let vm = "<system version=\"1\">\n<cpu affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\" \
              familyid=\"6\" modelid=\"143\">\n\
              <pci busid=\"0000:00:05.0\" class=\"0x030200\"/>\n</cpu>\n</system>\n";
    expect![[r#"
        2:1: error[refused]: NCCL 2.30.7 refuses the server: 2:1: <cpu> has no numaid; NCCL 2.30.7 asks for it
            write the attribute, or take the element out
        1:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
            NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
    "#]].assert_eq(&found(vm, NEWEST));
    let sound = vm.replace("<cpu ", "<cpu numaid=\"0\" ");
    expect![[r#"
        1:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
            NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
    "#]].assert_eq(&found(&sound, NEWEST));
    expect![[r#"
        3:1: error[refused]: NCCL 2.30.7 refuses the server: 3:1: <pci> has no class; NCCL 2.30.7 asks for it
            write the attribute, or take the element out
        1:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
            NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
    "#]].assert_eq(&found(&sound.replace(" class=\"0x030200\"", ""), NEWEST));
}

#[test]
fn latencies_are_read_as_c_reads_them_and_nonsense_has_a_finding() {
    let of = |latency: &str| {
        let net = port(0).replace("<net ", &format!("<net latency=\"{latency}\" "));
        let text = server(&[gpu(0, ""), gpu(1, ""), net].concat());
        let root = read(&text, Strictness::Lenient { single_quotes: true }).expect("read").root;
        let view = Question::new(root, NEWEST).view().expect("a server");
        let dumped: serde_json::Value =
            serde_json::from_str(&dump(&view, "x").expect("decided")).expect("JSON");
        let findings = lint(&text, NEWEST).expect("well-formed").findings;
        let number = findings.iter().find(|it| it.rule == "number");
        let told = number.map_or("-".to_owned(), |it| it.what.clone());
        format!("{latency:8} {} {told}\n", dumped["graphs"][0]["latencyInter"])
    };
    let words = ["5", "5us", " 5", "0x10", "x", "nan", "1e39", "-1"];
    expect![[r#"
        5        5 -
        5us      5 latency="5us" of <net> is no number of 0 or more; NCCL reads as far as digits go, which is 5
         5       5 -
        0x10     16 latency="0x10" of <net> is no number of 0 or more; NCCL reads as far as digits go, which is 16
        x        0 latency="x" of <net> is no number of 0 or more; NCCL reads as far as digits go, which is 0
        nan      null latency="nan" of <net> is no number of 0 or more; NCCL reads as far as digits go, which is NaN
        1e39     null latency="1e39" of <net> is no number of 0 or more; NCCL reads as far as digits go, which is inf
        -1       -1 latency="-1" of <net> is no number of 0 or more; NCCL reckons with it all the same
    "#]].assert_eq(&words.map(of).concat());
}

#[test]
fn a_file_of_hwlocs_is_told_from_a_topology() {
    let text = "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
                <topology version=\"2.0\"/>\n";
    let findings = lint(text, NEWEST).expect("well-formed").findings;
    expect![[r#"
        3:1: error[refused]: <topology> is no topology of NCCL, whose outermost element is <system version="1">
            `selvedge topo read --hwloc FILE` makes one from what lstopo wrote
        3:1: note[no-gpu]: no GPU in the file; decisions can be computed only where GPUs are named
            NCCL fills GPUs in when it runs; for a look without it use a file that NCCL_TOPO_DUMP_FILE wrote
    "#]].assert_eq(&findings.iter().map(|it| format!("{it}\n")).collect::<String>());
}
