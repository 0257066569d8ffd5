//! What the recorded decisions do not exercise: each variable that flips a decision, processors
//! that no recorded server has, links that one end does not know.

use std::fmt::Write as _;

use selvedge_family::host::decision::Decisions;
use selvedge_family::host::nccl::dump::dump;
use selvedge_family::host::nccl::graph::{Arch, LinkKind, NodeKind};
use selvedge_family::host::nccl::path::PathKind;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search::graphs;
use selvedge_family::host::nccl::settings::{SettingError, Settings};
use selvedge_family::host::nccl::view::{Ask, RefusedView, View};
use selvedge_family::host::nccl::width::Width;
use selvedge_family::host::nccl::xml::{Strictness, read, write};

use Profile::{V2_7_8, V2_18_5, V2_21_5, V2_27_7, V2_29_7, V2_30_7};

const AMD: &str = "arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\"";
const INTEL: &str = "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"";
const OLD_INTEL: &str = "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"79\"";
const ARM: &str = "arch=\"arm64\"";
const POWER: &str = "arch=\"ppc64\"";
const ZHAOXIN: &str = "arch=\"x86_64\" vendor=\"CentaurHauls\" familyid=\"7\" modelid=\"91\"";
const SAPPHIRE: &str = "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"";
const EMERALD: &str = "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\"";

/// Two CPUs; each has a switch with `gpus` GPUs and one port, and `links` inside each GPU.
fn server(cpu: &str, gpus: usize, sm: u32, links: impl Fn(usize) -> String) -> String {
    let mut out = "<system version=\"1\">\n".to_owned();
    let pci = "link_speed=\"16 GT/s\" link_width=\"16\"";
    for numa in 0..2 {
        let _ = write!(
            out,
            "<cpu numaid=\"{numa}\" {cpu}>\n\
             <pci busid=\"0000:{numa}0:00.0\" class=\"0x060400\" {pci}>\n"
        );
        for it in numa * gpus..(numa + 1) * gpus {
            let _ = write!(
                out,
                "<pci busid=\"0000:a{it}:00.0\" class=\"0x030200\" {pci}>\n\
                 <gpu dev=\"{it}\" sm=\"{sm}\" rank=\"{it}\" gdr=\"1\">{}</gpu></pci>\n",
                links(it)
            );
        }
        let _ = write!(
            out,
            "<pci busid=\"0000:b{numa}:00.0\" class=\"0x020000\" {pci}>\n\
             <nic><net dev=\"{numa}\" speed=\"40000\" guid=\"0x{numa}\" gdr=\"1\"/></nic></pci>\n\
             </pci></cpu>\n"
        );
    }
    out + "</system>\n"
}

fn nvlink(target: usize) -> String {
    format!("<nvlink target=\"0000:a{target}:00.0\" count=\"2\" tclass=\"0x030200\"/>")
}

fn no_links(_: usize) -> String {
    String::new()
}

#[track_caller]
fn view(text: &str, profile: Profile, env: &[(&str, &str)]) -> View {
    let document = read(text, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    let settings = Settings::read(profile, env.iter().copied()).expect("known variables");
    let broken = Default::default();
    let ask = Ask { profile, nodes: 2, rank: 0, settings, broken, shm_pairs: false };
    View::of(&document.root, ask).expect("NCCL takes it")
}

#[track_caller]
fn p2p(view: &View, a: i32, b: i32) -> bool {
    let gpu = |it| view.graph.gpu_of_rank(it).expect("the GPU is left");
    view.check_p2p(gpu(a), gpu(b)).expect("nothing is broken").usable
}

fn gdr(view: &View, rank: i32, net: usize, send: bool) -> bool {
    let gpu = view.graph.gpu_of_rank(rank).expect("the GPU is left");
    view.check_gdr(gpu, view.nets()[net], send)
}

#[test]
fn processors_set_how_far_p2p_goes() {
    let across = |cpu, gpus, profile| {
        p2p(&view(&server(cpu, gpus, 80, no_links), profile, &[]), 0, gpus as i32)
    };
    // AMD has no rule in 2.7, and one for pairs of GPUs later.
    assert!(across(AMD, 2, V2_7_8));
    for profile in [V2_18_5, V2_21_5] {
        assert!(across(AMD, 2, profile) && across(POWER, 2, profile));
        for cpu in [INTEL, OLD_INTEL, ARM, ZHAOXIN] {
            assert!(!across(cpu, 1, profile), "{profile} {cpu}");
        }
    }
    for profile in [V2_27_7, V2_29_7, V2_30_7] {
        assert!(across(AMD, 1, profile));
        assert!(!across(AMD, 2, profile));
        assert!(!across(INTEL, 1, profile));
    }
    for cpu in [INTEL, OLD_INTEL, ARM] {
        assert!(!across(cpu, 1, V2_7_8), "{cpu}");
    }
    assert!(across(POWER, 1, V2_7_8));
    let limit = |cpu| view(&server(cpu, 1, 80, no_links), V2_7_8, &[]).p2p_limit();
    assert_eq!([INTEL, OLD_INTEL, ARM].map(limit), [PathKind::Phb, PathKind::Pxb, PathKind::Pxb]);
}

#[test]
fn links_between_processors_have_their_version_s_width() {
    let between = |cpu, profile| {
        let view = view(&server(cpu, 1, 80, no_links), profile, &[]);
        let cpu = view.graph.kind(NodeKind::Cpu)[0];
        let links = view.graph.node(cpu).links.iter();
        links.clone().find(|it| it.kind == LinkKind::Sys).expect("two CPUs").width
    };
    let widths = |cpu| Profile::ALL.map(|it| between(cpu, it).0);
    assert_eq!(widths(ARM), [6.0; 6]);
    assert_eq!(widths(POWER), [32.0; 6]);
    assert_eq!(widths(AMD), [5000.0, 5000.0, 16.0, 16.0, 16.0, 16.0]);
    assert_eq!(widths(ZHAOXIN), [5000.0, 9.0, 9.0, 9.0, 9.0, 9.0]);
    assert_eq!(widths(OLD_INTEL), [6.0; 6]);
    assert_eq!(widths(INTEL), [9.0, 10.0, 10.0, 10.0, 10.0, 10.0]);
    assert_eq!(widths(SAPPHIRE), [9.0, 10.0, 10.0, 22.0, 22.0, 22.0]);
    assert_eq!(widths(EMERALD), [9.0, 10.0, 10.0, 40.0, 40.0, 40.0]);
}

#[test]
fn levels_move_p2p_and_gdr() {
    let server = server(INTEL, 2, 80, no_links);
    for profile in Profile::ALL {
        let open = view(&server, profile, &[("NCCL_P2P_LEVEL", "SYS")]);
        assert!(p2p(&open, 0, 2));
        let old_number = view(&server, profile, &[("NCCL_P2P_LEVEL", "4")]);
        assert!(p2p(&old_number, 0, 2));
        let closed = view(&server, profile, &[("NCCL_P2P_DISABLE", "1")]);
        assert!(!p2p(&closed, 0, 1));
        let default = view(&server, profile, &[]);
        assert!(gdr(&default, 0, 0, false) && !gdr(&default, 0, 1, false), "{profile}");
        let far = view(&server, profile, &[("NCCL_NET_GDR_LEVEL", "SYS")]);
        assert!(gdr(&far, 0, 1, false));
        let near = view(&server, profile, &[("NCCL_NET_GDR_LEVEL", "LOC")]);
        assert!(!gdr(&near, 0, 0, false));
    }
}

#[test]
fn reading_gpu_memory_has_a_variable_and_a_rule_by_age() {
    for profile in Profile::ALL {
        for sm in [70, 80] {
            let send = |env: &[(&str, &str)]| {
                gdr(&view(&server(INTEL, 2, sm, no_links), profile, env), 0, 0, true)
            };
            assert_eq!(send(&[]), profile >= V2_21_5 && sm == 80, "{profile} {sm}");
            assert!(send(&[("NCCL_NET_GDR_READ", "1")]));
            assert!(!send(&[("NCCL_NET_GDR_READ", "0")]));
        }
    }
}

#[test]
fn without_shared_memory_and_p2p_a_gpu_is_alone() {
    let server = server(INTEL, 2, 80, no_links);
    for profile in Profile::ALL {
        let left = |env: &[(&str, &str)]| view(&server, profile, env).gpus().len();
        assert_eq!(left(&[]), 4, "{profile}");
        // 2.7 asks for shared memory alone.
        let without = if profile == V2_7_8 { 1 } else { 2 };
        assert_eq!(left(&[("NCCL_SHM_DISABLE", "1")]), without, "{profile}");
        let both = [("NCCL_SHM_DISABLE", "1"), ("NCCL_P2P_DISABLE", "1")];
        assert_eq!(left(&both), 1, "{profile}");
    }
}

#[test]
fn gpus_that_are_trimmed_are_cut_off_in_2_18_and_a_network_apart_later() {
    let text = server(INTEL, 1, 80, no_links);
    let document = read(&text, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    let both = [("NCCL_SHM_DISABLE", "1"), ("NCCL_P2P_DISABLE", "1")];
    for profile in Profile::ALL.into_iter().filter(|it| *it != V2_7_8) {
        let settings = Settings::read(profile, both).expect("known variables");
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: false };
        let whole = View::whole(&document.root, ask).expect("NCCL takes it");
        let kind = whole.path(whole.gpus()[0], whole.gpus()[1]).kind;
        let apart = if profile == V2_18_5 { PathKind::Dis } else { PathKind::Net };
        assert_eq!(kind, apart, "{profile}");
    }
}

/// What is set before, what is set then, on which server, from which version on.
type Case<'c> = (&'c [(&'c str, &'c str)], (&'c str, &'c str), &'c str, Profile);

#[test]
fn every_variable_shows_in_what_is_decided() {
    let chip = "<c2c bw=\"44712\" count=\"10\"/>";
    let linked = server(AMD, 1, 80, |it| nvlink(1 - it));
    let plain = server(AMD, 2, 90, no_links);
    let fast = server(INTEL, 2, 80, no_links).replace("\"40000\"", "\"200000\"");
    let ends = |it: usize| match it {
        0 => nvlink(1),
        1 => nvlink(0) + &nvlink(2),
        2 => nvlink(1),
        _ => String::new(),
    };
    let bridged = server(INTEL, 2, 80, ends);
    let net = "<net dev=\"0\" speed=\"40000\" guid=\"0x0\" gdr=\"1\"/>";
    let ports: String =
        (0..4).map(|it| net.replace("dev=\"0\"", &format!("dev=\"{it}\""))).collect();
    let ports = server(INTEL, 2, 80, no_links).replace(net, &ports);
    // The ports hang on the CPUs, so that the chip's link is the way to them.
    let beside = server(ARM, 1, 90, |it| chip.to_owned() + &nvlink(1 - it))
        .replace("<pci busid=\"0000:b", "</pci>\n<pci busid=\"0000:b")
        .replace("</pci>\n</pci></cpu>", "</pci></cpu>");
    let switch = "<nvlink target=\"ffff:ff:ff\" count=\"18\" tclass=\"0x068000\"/>";
    let switched = server(INTEL, 2, 90, |_| switch.to_owned());
    let reducing = ports.replace("gdr=\"1\"/></nic>", "gdr=\"1\" coll=\"1\"/></nic>");
    let cases: [Case; 23] = [
        (&[], ("NCCL_P2P_LEVEL", "LOC"), &plain, V2_7_8),
        (&[], ("NCCL_P2P_DISABLE", "1"), &linked, V2_7_8),
        (&[("NCCL_P2P_DISABLE", "1")], ("NCCL_SHM_DISABLE", "1"), &plain, V2_7_8),
        (&[], ("NCCL_NET_GDR_LEVEL", "LOC"), &linked, V2_7_8),
        (&[], ("NCCL_NET_GDR_READ", "0"), &linked, V2_7_8),
        (&[], ("NCCL_NET_GDR_C2C", "0"), &beside, V2_27_7),
        (&[], ("NCCL_NET_DISABLE_INTRA", "1"), &fast, V2_18_5),
        (&[], ("NCCL_NVB_DISABLE", "1"), &bridged, V2_18_5),
        (&[], ("NCCL_PXN_DISABLE", "1"), &linked, V2_18_5),
        (&[], ("NCCL_P2P_PXN_LEVEL", "0"), &linked, V2_18_5),
        (&[("NCCL_PXN_DISABLE", "1")], ("NCCL_CROSS_NIC", "0"), &linked, V2_18_5),
        (&[], ("NCCL_NET_FORCE_FLUSH", "1"), &plain, V2_18_5),
        (&[], ("NCCL_MIN_NCHANNELS", "30"), &linked, V2_7_8),
        (&[], ("NCCL_MAX_NCHANNELS", "1"), &linked, V2_7_8),
        (&[], ("NCCL_MIN_NRINGS", "30"), &linked, V2_7_8),
        (&[], ("NCCL_MAX_NRINGS", "1"), &linked, V2_7_8),
        (&[], ("NCCL_MIN_P2P_NCHANNELS", "32"), &linked, V2_7_8),
        (&[], ("NCCL_MAX_P2P_NCHANNELS", "1"), &linked, V2_7_8),
        (&[], ("NCCL_P2P_PER_CHANNEL_NET_BW", "1"), &plain, V2_29_7),
        (&[], ("NCCL_NETDEVS_POLICY", "ALL"), &ports, V2_29_7),
        (&[], ("NCCL_PXN_C2C", "0"), &beside, V2_29_7),
        (&[], ("NCCL_NVLS_ENABLE", "0"), &switched, V2_18_5),
        (&[], ("NCCL_COLLNET_ENABLE", "1"), &reducing, V2_18_5),
    ];
    let mut silent = Vec::new();
    for (before, (name, value), text, since) in cases {
        for profile in Profile::ALL.into_iter().filter(|it| *it >= since) {
            let env = [before, &[(name, value)]].concat();
            let decided = |env| Decisions::of(&view(text, profile, env)).expect("NCCL goes on");
            let differences = decided(before).differences(&decided(&env));
            if differences.is_empty() {
                silent.push(format!("{profile} {name}={value}"));
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn another_gpu_s_port_is_reached_by_nvlink_unless_forbidden() {
    let linked = server(INTEL, 1, 80, |it| nvlink(1 - it));
    let kind = |profile, env: &[(&str, &str)]| {
        let view = view(&linked, profile, env);
        view.path(view.gpus()[0], view.nets()[1]).kind
    };
    assert_eq!(kind(V2_7_8, &[]), PathKind::Sys);
    for profile in [V2_27_7, V2_30_7] {
        assert_eq!(kind(profile, &[]), PathKind::Pxn);
        assert_eq!(kind(profile, &[("NCCL_PXN_DISABLE", "1")]), PathKind::Sys);
    }
    // From 2.28 on the GPU beside the port must be able to send from its memory.
    let no_read = [("NCCL_NET_GDR_READ", "0")];
    assert_eq!(kind(V2_27_7, &no_read), PathKind::Pxn);
    assert_eq!(kind(V2_30_7, &no_read), PathKind::Sys);
}

#[test]
fn nvlink_by_way_of_another_gpu_can_be_forbidden() {
    let ends = |it: usize| match it {
        0 => nvlink(1),
        1 => nvlink(0) + &nvlink(2),
        2 => nvlink(1),
        _ => String::new(),
    };
    let chain = server(INTEL, 2, 80, ends);
    let kind = |profile, env: &[(&str, &str)]| {
        let view = view(&chain, profile, env);
        view.path(view.gpus()[0], view.gpus()[2]).kind
    };
    for profile in [V2_27_7, V2_30_7] {
        assert_eq!(kind(profile, &[]), PathKind::Nvb);
        assert_ne!(kind(profile, &[("NCCL_NVB_DISABLE", "1")]), PathKind::Nvb);
    }
}

#[test]
fn ports_are_spread_as_the_policy_says() {
    let net = "<net dev=\"0\" speed=\"40000\" guid=\"0x0\" gdr=\"1\"/>";
    let more: String =
        (0..4).map(|it| net.replace("dev=\"0\"", &format!("dev=\"{it}\""))).collect();
    let server = server(INTEL, 2, 80, no_links).replace(net, &more);
    let ports = |env: &[(&str, &str)]| {
        let view = view(&server, V2_30_7, env);
        let net = |channel| view.local_net(view.gpus()[0], channel).expect("ports are left");
        [0, 1, 2, 3].map(|it| view.graph.net(net(it)).dev)
    };
    assert_eq!(ports(&[]), [0, 1, 0, 1]);
    assert_eq!(ports(&[("NCCL_NETDEVS_POLICY", "ALL")]), [0, 1, 2, 3]);
    assert_eq!(ports(&[("NCCL_NETDEVS_POLICY", "MAX:1")]), [0, 0, 0, 0]);
}

#[test]
fn a_network_faster_than_the_bus_is_used_inside_the_server() {
    let slow = server(INTEL, 2, 80, no_links).replace("\"40000\"", "\"200000\"");
    for profile in [V2_27_7, V2_30_7] {
        let prefers = |env: &[(&str, &str)]| {
            let view = view(&slow, profile, env);
            let gpu = |it| view.graph.gpu_of_rank(it);
            gpu(0).zip(gpu(2)).map(|(a, b)| view.prefers_net(a, b))
        };
        // Across the CPUs 10 GB/s, to the ports 24: rank 2 is left to the network.
        assert_eq!(prefers(&[]), None, "{profile}");
        assert_eq!(prefers(&[("NCCL_NET_DISABLE_INTRA", "1")]), Some(false), "{profile}");
    }
}

#[test]
fn a_variable_of_another_version_is_named_and_an_unknown_one_refused() {
    let settings = Settings::read(V2_7_8, [("NCCL_PXN_DISABLE", "1")]).expect("known to others");
    assert_eq!(settings.unread, ["NCCL_PXN_DISABLE"]);
    let refused =
        |name: &str, value| Settings::read(V2_30_7, [(name, value)]).expect_err("refused");
    let name = "NCCL_P2P_LEVL".to_owned();
    assert_eq!(refused("NCCL_P2P_LEVL", "PHB"), SettingError::Unknown { name });
    let name = "NCCL_NET_MERGE_LEVEL".to_owned();
    assert_eq!(refused("NCCL_NET_MERGE_LEVEL", "LOC"), SettingError::NotReproduced { name });
    assert!(matches!(refused("NCCL_P2P_LEVEL", "near"), SettingError::Value { .. }));
    assert!(matches!(refused("NCCL_NETDEVS_POLICY", "MAX:0"), SettingError::Value { .. }));
}

#[test]
fn a_link_that_one_end_does_not_know_is_refused() {
    let text = server(INTEL, 1, 80, |it| if it == 0 { nvlink(1) } else { String::new() });
    let document = read(&text, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    for profile in Profile::ALL {
        let settings = Settings::defaults(profile);
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: false };
        let error = View::of(&document.root, ask).expect_err("one way").to_string();
        assert!(error.contains("leads one way only; name it at both ends"), "{error}");
    }
}

#[test]
fn behind_an_nvlink_to_a_power_cpu_the_next_cpu_is_near() {
    let to_cpu = "<nvlink target=\"0000:00:00.0\" count=\"3\" tclass=\"0x068001\"/>".to_owned();
    for profile in Profile::ALL {
        let view = view(&server(POWER, 1, 70, |_| to_cpu.clone()), profile, &[]);
        let (gpu, cpu) = (view.gpus()[0], view.graph.kind(NodeKind::Cpu)[1]);
        // Seed 002: the rule looks from the GPU outwards, so it holds one way only.
        assert_eq!(view.path(gpu, cpu).kind, PathKind::Sys, "{profile}");
        // Later versions do not have it.
        let near = if profile == V2_7_8 { PathKind::Nvl } else { PathKind::Sys };
        let far = view.path(cpu, gpu);
        assert_eq!((far.kind, far.width), (near, Width(32.0)), "{profile}");
    }
}

#[test]
fn a_rack_is_one_nvlink_domain_whose_rings_visit_every_gpu() {
    let root = rack(RackShape { hosts: 3, cpus: 1 });
    let text = write(&root);
    let document =
        read(&text, Strictness::AsNccl { single_quotes: false }).expect("as NCCL has it");
    for (nodes, inter) in [(1, false), (2, true)] {
        let settings = Settings::defaults(V2_30_7);
        let broken = Default::default();
        let ask = Ask { profile: V2_30_7, nodes, rank: 0, settings, broken, shm_pairs: false };
        let view = View::of(&document.root, ask).expect("the rack is well made");
        assert_eq!((view.gpus().len(), view.inter), (6, inter));
        let found = graphs(&view).expect("there are ports").found;
        assert_eq!(found[0].kind_intra, PathKind::Nvl);
        for channel in found[0].channels.iter().chain(&found[1].channels) {
            let mut ranks = channel.ranks.clone();
            ranks.sort_unstable();
            assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
            assert_eq!(channel.nets.is_some(), inter);
        }
    }
}

#[test]
fn without_any_port_the_newest_version_cannot_span_servers() {
    let lonely = server(INTEL, 1, 80, |it| nvlink(1 - it)).replace("<net ", "<other ");
    for (profile, refused) in [(V2_7_8, false), (V2_27_7, false), (V2_30_7, true)] {
        let view = view(&lonely, profile, &[]);
        assert_eq!(graphs(&view).err().is_some(), refused, "{profile}");
    }
}

#[test]
fn an_unknown_processor_is_taken_and_has_no_rules() {
    let strange = "arch=\"riscv64\"";
    let vendor = "arch=\"x86_64\" vendor=\"HygonGenuine\"";
    for (cpu, word) in [(strange, Some(Arch::Unknown)), (vendor, Some(Arch::X86))] {
        for profile in Profile::ALL {
            let view = view(&server(cpu, 1, 80, no_links), profile, &[]);
            let first = view.graph.kind(NodeKind::Cpu)[0];
            assert_eq!(view.graph.cpu(first).arch, word, "{profile}");
            let links = view.graph.node(first).links.iter();
            let width = links.clone().find(|it| it.kind == LinkKind::Sys).map(|it| it.width);
            assert_eq!(width, Some(Width::LOCAL), "{profile}");
        }
    }
}

#[test]
fn on_amd_the_newest_version_counts_devices_that_trimming_leaves() {
    let four = server(AMD, 2, 80, no_links);
    let limit = |profile| {
        let document =
            read(&four, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
        let settings = Settings::defaults(profile);
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: true };
        let view = View::of(&document.root, ask).expect("NCCL takes it");
        assert_eq!(view.gpus().len(), 2);
        view.p2p_limit()
    };
    assert_eq!([V2_27_7, V2_30_7].map(limit), [PathKind::Sys, PathKind::Pxb]);
}

#[test]
fn an_nvlink_has_its_version_s_width() {
    let width = |sm, profile| {
        let server = server(INTEL, 1, sm, |it| nvlink(1 - it));
        let view = view(&server, profile, &[]);
        let seat = view.seat(view.gpus()[0]);
        let links = view.graph.node(seat).links.iter();
        // Two links join the GPUs.
        links.clone().find(|it| it.kind == LinkKind::Nvl).map(|it| it.width.0 / 2.0)
    };
    let widths = |sm| Profile::ALL.map(|it| width(sm, it).expect("the GPUs are linked"));
    assert_eq!(widths(60), [18.0; 6]);
    assert_eq!(widths(70), [21.0, 20.0, 20.0, 20.0, 20.0, 20.0]);
    assert_eq!(widths(80), [21.0, 20.0, 20.0, 20.0, 20.0, 20.0]);
    assert_eq!(widths(86), [21.0, 12.0, 12.0, 12.0, 12.0, 12.0]);
    assert_eq!(widths(90), [21.0, 20.0, 20.6, 20.6, 20.6, 20.6]);
    assert_eq!(widths(100), [21.0, 20.0, 20.6, 40.1, 40.1, 40.1]);
}

#[test]
fn over_the_chip_to_chip_link_a_port_is_near_once_the_link_is_a_kind_of_its_own() {
    let c2c = |_| "<c2c bw=\"44712\" count=\"10\"/>".to_owned();
    let level = |profile| {
        let view = view(&server(ARM, 1, 90, c2c), profile, &[]);
        let limit = view.gdr_limit_and_source().0;
        (limit, view.path(view.gpus()[0], view.graph.kind(NodeKind::Cpu)[0]).kind)
    };
    use PathKind::{C2c, Nvl, P2c, Phb, Pxb};
    let expected = [(Pxb, Phb), (Pxb, Phb), (Pxb, Nvl), (P2c, C2c), (P2c, C2c), (P2c, C2c)];
    assert_eq!(Profile::ALL.map(level), expected);
    let off = [("NCCL_NET_GDR_C2C", "0")];
    for profile in [V2_27_7, V2_29_7, V2_30_7] {
        let view = view(&server(ARM, 1, 90, c2c), profile, &off);
        assert_eq!(view.gdr_limit_and_source().0, Pxb, "{profile}");
    }
}

#[test]
fn containers_of_their_own_keep_p2p_from_being_used_in_every_version() {
    let document = read(&server(AMD, 2, 80, no_links), Strictness::AsNccl { single_quotes: false });
    let root = document.expect("well-formed").root;
    for profile in Profile::ALL {
        let settings = Settings::defaults(profile);
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: true };
        let view = View::of(&root, ask).expect("NCCL takes it");
        assert_eq!(view.gpus().len(), 2, "{profile}");
    }
}

#[test]
fn a_port_has_other_faces_from_2_29_on() {
    let one = server(AMD, 1, 90, no_links);
    let faced = one.replace("<net dev=\"0\"", "<net net=\"0\" gin=\"1\" rma=\"1\" dev=\"0\"");
    let kinds = |profile| {
        let view = view(&faced, profile, &[("NCCL_NET_DISABLE_INTRA", "1")]);
        [NodeKind::Net, NodeKind::Gin, NodeKind::Rma].map(|it| view.graph.kind(it).len())
    };
    let old = [2, 0, 0];
    assert_eq!(Profile::ALL.map(kinds), [old, old, old, old, [1, 1, 0], [1, 1, 1]]);
}

#[test]
fn a_guid_without_0x_is_none_until_2_28() {
    let odd = server(AMD, 1, 90, no_links).replace("guid=\"0x0\"", "guid=\"12ab\"");
    let asic = |profile| {
        let view = view(&odd, profile, &[]);
        view.graph.net(view.nets()[0]).asic
    };
    assert_eq!(Profile::ALL.map(asic), [0, 0, 0, 0, 0x12ab, 0x12ab]);
}

/// The digests of bus ids were recorded from NCCL 2.30.7 itself.
#[test]
fn cards_are_told_apart_by_a_digest_of_their_bus_id_from_2_29_on() {
    let card = server(AMD, 1, 90, no_links).replace("0000:b0:00.0", "0000:10:1b.0");
    for profile in Profile::ALL {
        let view = view(&card, profile, &[("NCCL_NET_DISABLE_INTRA", "1")]);
        let text = dump(&view, "card").expect("nothing is broken");
        let is_told = text.contains("\"pciId\":\"b39578e7302c7994\"");
        assert_eq!(is_told, profile >= V2_29_7, "{profile}");
    }
    let other = card.replace("0000:10:1b.0", "0000:20:1b.0");
    let text = dump(&view(&other, V2_30_7, &[]), "card").expect("nothing is broken");
    assert!(text.contains("\"pciId\":\"e1a61b2606cf00d\""), "{text}");
}

/// Two GPUs joined by NVLink, a port beside each: the ports at which each ring comes in and leaves.
fn ends(text: &str, profile: Profile, cross_nic: &str) -> Vec<[u64; 2]> {
    let view = view(text, profile, &[("NCCL_CROSS_NIC", cross_nic)]);
    let ring = &graphs(&view).expect("there are ports").found[0];
    let mut ends: Vec<[u64; 2]> = ring.channels.iter().filter_map(|it| it.nets).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn with_ports(attribute: &str, values: [i32; 2]) -> String {
    let mut text = server(INTEL, 1, 80, |it| nvlink(1 - it));
    for (dev, value) in values.iter().enumerate() {
        let port = format!("<net dev=\"{dev}\"");
        text = text.replace(&port, &format!("{port} {attribute}=\"{value}\""));
    }
    text
}

#[test]
fn a_ring_stays_in_the_plane_of_its_port_from_2_30_on() {
    for profile in Profile::ALL {
        let free = ends(&with_ports("plane", [0, 0]), profile, "1");
        assert!(free.iter().any(|[from, to]| from != to), "{profile}: {free:?}");
        let planes = ends(&with_ports("plane", [0, 1]), profile, "1");
        let crosses = planes.iter().any(|[from, to]| from != to);
        assert_eq!(crosses, profile != V2_30_7, "{profile}: {planes:?}");
        // A plane that one port alone names parts nothing.
        assert_eq!(ends(&with_ports("plane", [0, -1]), profile, "1"), free, "{profile}");
    }
}

#[test]
fn without_crossing_a_ring_may_change_cards_of_one_rail_from_2_30_on() {
    for profile in Profile::ALL {
        let apart = ends(&with_ports("rail", [0, 1]), profile, "0");
        assert!(apart.iter().all(|[from, to]| from == to), "{profile}: {apart:?}");
        let one = ends(&with_ports("rail", [0, 0]), profile, "0");
        let crosses = one.iter().any(|[from, to]| from != to);
        assert_eq!(crosses, profile == V2_30_7, "{profile}: {one:?}");
        // A rail that one port alone names joins nothing: the card counts.
        assert_eq!(ends(&with_ports("rail", [0, -1]), profile, "0"), apart, "{profile}");
    }
}

#[test]
fn with_a_chip_to_chip_link_the_bus_is_a_way_of_its_own() {
    let c2c = |_| "<c2c bw=\"44712\" count=\"10\"/>".to_owned();
    let mode = |profile| {
        let view = view(&server(ARM, 1, 90, c2c), profile, &[]);
        view.judge_gdr(view.gpus()[0], view.nets()[0], false).mode()
    };
    // The port is behind the GPU's own switch.
    assert_eq!(Profile::ALL.map(mode), [1, 1, 1, 2, 2, 2]);
}

#[test]
fn the_port_s_own_gpu_sends_as_far_as_the_level_says() {
    let linked = server(INTEL, 1, 80, |it| nvlink(1 - it));
    let outlet = |profile, env: &[(&str, &str)]| {
        let view = view(&linked, profile, env);
        let outlet = view.outlet(view.gpus()[0], view.gpus()[1], 0).expect("there are ports");
        (view.graph.net(outlet.net).dev, view.graph.gpu(outlet.proxy).rank)
    };
    for profile in Profile::ALL.into_iter().filter(|it| *it != V2_7_8) {
        assert_eq!(outlet(profile, &[]), (1, 1), "{profile}");
        assert_eq!(outlet(profile, &[("NCCL_P2P_PXN_LEVEL", "1")]), (1, 1), "{profile}");
        assert_eq!(outlet(profile, &[("NCCL_P2P_PXN_LEVEL", "0")]), (0, 0), "{profile}");
        assert_eq!(outlet(profile, &[("NCCL_PXN_DISABLE", "1")]), (0, 0), "{profile}");
        let rail = [("NCCL_PXN_DISABLE", "1"), ("NCCL_CROSS_NIC", "0")];
        assert_eq!(outlet(profile, &rail), (1, 0), "{profile}");
    }
}

#[test]
fn a_flush_is_saved_on_hopper_unless_it_is_forced() {
    let flush = |profile, sm, env: &[(&str, &str)]| {
        let view = view(&server(INTEL, 1, sm, no_links), profile, env);
        view.needs_flush(view.gpus()[0], view.nets()[0])
    };
    for profile in Profile::ALL {
        assert!(flush(profile, 80, &[]), "{profile}");
        assert_eq!(flush(profile, 90, &[]), profile == V2_7_8, "{profile}");
        assert!(flush(profile, 90, &[("NCCL_NET_FORCE_FLUSH", "1")]), "{profile}");
    }
    let c2c = |_| "<c2c bw=\"44712\" count=\"10\"/>".to_owned();
    let view = view(&server(ARM, 1, 90, c2c), V2_30_7, &[]);
    assert!(view.needs_flush(view.gpus()[0], view.nets()[0]));
}

#[test]
fn variables_bound_the_channels_of_sends_and_receives() {
    for profile in Profile::ALL {
        let channels = |env: &[(&str, &str)]| {
            view(&server(INTEL, 1, 80, no_links), profile, env).p2p_channels(6)
        };
        assert_eq!(channels(&[]), 8, "{profile}");
        assert_eq!(channels(&[("NCCL_MAX_P2P_NCHANNELS", "3")]), 4, "{profile}");
        assert_eq!(channels(&[("NCCL_MIN_P2P_NCHANNELS", "12")]), 16, "{profile}");
    }
}

#[test]
fn two_nvlink_domains_are_told_and_double_the_rings() {
    let pairs = server(INTEL, 2, 80, |it| nvlink(it ^ 1));
    for (profile, least) in [(V2_21_5, 1), (V2_27_7, 2), (V2_29_7, 2), (V2_30_7, 2)] {
        let view = view(&pairs, profile, &[]);
        assert_eq!(graphs(&view).expect("there are ports").found[0].channels_min, least);
        let text = dump(&view, "pairs").expect("nothing is broken");
        let told = text.contains("\"splitNvlink\":1");
        assert_eq!(told, profile >= V2_29_7, "{profile}");
        // The slower of two ports: in 2.29 of all, in 2.30 of the asking rank's own.
        assert_eq!(text.contains("\"minNetBw\":5,"), profile >= V2_29_7, "{profile}");
    }
}

/// Four GPUs, each below a CPU of its own; two have NVLinks to the first.
fn chain() -> String {
    let mut out = "<system version=\"1\">\n".to_owned();
    for it in 0..4 {
        let links: &[usize] = match it {
            0 => &[2, 3],
            2 | 3 => &[0],
            _ => &[],
        };
        let links: String = links.iter().map(|it| nvlink(*it)).collect();
        let _ = writeln!(
            out,
            "<cpu numaid=\"{it}\" {INTEL}><pci busid=\"0000:a{it}:00.0\" class=\"0x030200\" \
             link_speed=\"16 GT/s\" link_width=\"16\">\
             <gpu dev=\"{it}\" sm=\"80\" rank=\"{it}\" gdr=\"1\">{links}</gpu></pci></cpu>"
        );
    }
    out + "</system>\n"
}

#[test]
fn a_way_over_the_device_of_a_trimmed_gpu_ends_2_30() {
    let document = read(&chain(), Strictness::AsNccl { single_quotes: false }).expect("XML");
    for profile in Profile::ALL {
        // Ranks 2 and 3 share memory with each other alone, and meet over GPU 0's NVLinks.
        let ask = |env: &[(&str, &str)]| {
            let settings = Settings::read(profile, env.iter().copied()).expect("known");
            let broken = Default::default();
            Ask { profile, nodes: 1, rank: 2, settings, broken, shm_pairs: true }
        };
        let seen = View::of(&document.root, ask(&[]));
        if profile == V2_30_7 {
            assert_eq!(seen.err(), Some(RefusedView::LostBridge { dev: 0 }));
            let without = View::of(&document.root, ask(&[("NCCL_NVB_DISABLE", "1")]));
            assert_eq!(without.expect("no way over GPU 0 is looked for").gpus().len(), 2);
        } else {
            assert_eq!(seen.expect("the trimmed GPU's links are gone").gpus().len(), 2);
        }
    }
}

#[test]
fn a_level_of_another_version_is_passed_over_and_named() {
    let read = |profile, value| Settings::read(profile, [("NCCL_P2P_LEVEL", value)]);
    let old = read(V2_21_5, "P2C").expect("a level of later versions");
    assert_eq!((old.p2p_level, old.unread), (None, vec!["NCCL_P2P_LEVEL=P2C".to_owned()]));
    let new = read(V2_27_7, "P2C").expect("its own level");
    assert_eq!((new.p2p_level, new.unread), (Some(PathKind::P2c), vec![]));
    assert!(matches!(read(V2_27_7, "PBX"), Err(SettingError::Value { .. })));
}

#[test]
fn a_gpu_of_a_bridge_s_class_ends_2_30() {
    let text = server(INTEL, 1, 80, no_links).replacen("0x030200", "0x120000", 1);
    let document = read(&text, Strictness::AsNccl { single_quotes: false }).expect("XML");
    for profile in Profile::ALL {
        let settings = Settings::defaults(profile);
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 1, settings, broken, shm_pairs: false };
        let seen = View::of(&document.root, ask);
        if profile == V2_30_7 {
            let error = seen.expect_err("a class that is a bridge's").to_string();
            assert_eq!(
                error,
                "4:1: the GPU's class \"0x120000\" is a bridge's to NCCL 2.30, \
                 which gives up here; write 0x030200"
            );
        } else if profile == V2_7_8 {
            assert!(seen.is_err(), "2.7 goes by the class");
        } else {
            assert_eq!(seen.expect("what is inside counts").gpus().len(), 2, "{profile}");
        }
    }
}

/// Two bridges, a GPU below each, and what the bridges name.
fn bridges(first: &str, second: &str) -> String {
    let mut text = server(INTEL, 1, 80, no_links);
    for (bus, more) in [("0000:b0:00.0", first), ("0000:b1:00.0", second)] {
        let at = text.find(&format!("<pci busid=\"{bus}\"")).expect("a port");
        text.insert_str(at, more);
    }
    text
}

#[test]
fn bridges_that_name_each_other_are_two_bridges_apart() {
    let link = |bus: usize| format!("<pcilink target=\"0000:{bus}0:00.0\"/>");
    for profile in [V2_27_7, V2_29_7, V2_30_7] {
        let seen = view(&bridges(&link(1), &link(0)), profile, &[]);
        let path = seen.path(seen.gpus()[0], seen.gpus()[1]);
        assert_eq!((path.kind, path.width), (PathKind::Pxb, Width(24.0)), "{profile}");
    }
}

#[test]
fn a_bridge_that_alone_names_the_other_is_refused() {
    let text = bridges("<pcilink target=\"0000:10:00.0\"/>", "");
    let document = read(&text, Strictness::AsNccl { single_quotes: false }).expect("XML");
    for profile in [V2_27_7, V2_29_7, V2_30_7] {
        let settings = Settings::defaults(profile);
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: false };
        let error = View::of(&document.root, ask).expect_err("reached over it first").to_string();
        assert!(error.contains("leads one way only"), "{error}");
    }
}

/// Chains come before NVLS where the network may reduce, direct channels from 2.22 on; in 2.7
/// chains always.  A port that cannot reduce heads none.
#[test]
fn chains_and_direct_channels_are_searched_where_the_network_may_reduce() {
    use selvedge_family::host::nccl::search::GraphKind;
    let plain = server(AMD, 2, 80, no_links);
    let reducing = plain.replace("gdr=\"1\"/></nic>", "gdr=\"1\" coll=\"1\"/></nic>");
    let found = |text: &str, profile, env: &[(&str, &str)]| {
        let found = graphs(&view(text, profile, env)).expect("NCCL goes on").found;
        let of_network = found.into_iter().filter(|it| it.collnet);
        of_network.map(|it| (it.kind, it.channels.len())).collect::<Vec<_>>()
    };
    let on = [("NCCL_COLLNET_ENABLE", "1")];
    for profile in Profile::ALL {
        let chains = |count| (GraphKind::CollnetChain, count);
        let direct = |count| (GraphKind::CollnetDirect, count);
        let rings = graphs(&view(&reducing, profile, &on)).expect("NCCL goes on").found;
        let rings = rings[0].channels.len();
        let (none, some) = match profile {
            V2_7_8 | V2_18_5 | V2_21_5 => (vec![chains(0)], vec![chains(rings)]),
            _ => (vec![chains(0), direct(0)], vec![chains(rings), direct(2)]),
        };
        assert_eq!(found(&plain, profile, &on), none, "{profile}");
        assert_eq!(found(&reducing, profile, &on), some, "{profile}");
        let off = if profile == V2_7_8 { some } else { Vec::new() };
        assert_eq!(found(&reducing, profile, &[]), off, "{profile}");
    }
}

/// One GPU without NVLinks beside others on switches: up to 2.21 inside a server NCCL gives up,
/// where channels begin at ports it finds none; later the switches are left to the others.
#[test]
fn a_gpu_without_nvlinks_beside_switches_ends_nvls_in_old_versions() {
    let switch = "<nvlink target=\"ffff:ff:ff\" count=\"18\" tclass=\"0x068000\"/>";
    let text = server(INTEL, 2, 90, |it| if it == 0 { String::new() } else { switch.to_owned() });
    let document = read(&text, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    for profile in Profile::ALL.into_iter().filter(|it| *it != V2_7_8) {
        for nodes in [1, 2] {
            let settings = Settings::defaults(profile);
            let broken = Default::default();
            let ask = Ask { profile, nodes, rank: 0, settings, broken, shm_pairs: false };
            let view = View::of(&document.root, ask).expect("NCCL takes it");
            let found = graphs(&view).map(|it| it.found[2].channels.len());
            let old = profile <= V2_21_5;
            match found {
                Err(error) => assert!(old && nodes == 1, "{profile} {nodes}: {error}"),
                Ok(count) => {
                    assert!((!old || nodes == 2) && count == 0, "{profile} {nodes} {count}")
                }
            }
        }
    }
}

/// Each version's tables have room for so much; the first that is too many is named.
#[test]
fn what_a_version_has_no_room_for_is_refused() {
    let crowd = |bridges: usize, ports: usize| {
        let bridge = |it: usize| {
            format!(
                "<pci busid=\"{:04x}:{:02x}:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" \
                 link_width=\"16\"/>\n",
                0x100 + it / 256,
                it % 256
            )
        };
        let port = |it: usize| format!("<net dev=\"{}\" guid=\"0x0\" gdr=\"1\"/>", 10 + it);
        let bridges: String = (0..bridges).map(bridge).collect();
        let ports: String = (0..ports).map(port).collect();
        let text = server(AMD, 1, 80, no_links);
        let text = text.replacen("</pci></cpu>", &format!("</pci>\n{bridges}</cpu>"), 1);
        text.replacen("</nic>", &format!("{ports}</nic>"), 1)
    };
    // A CPU's children are its own bridge and the others; a card's links are its ports and the bus.
    for (bridges, ports, refusing, word) in [
        (126, 0, &[][..], ""),
        (128, 0, &[V2_21_5, V2_27_7][..], "takes 128 elements in one <cpu>"),
        (0, 126, &[][..], ""),
        (0, 127, &[V2_21_5][..], "has more than 128 links"),
        (576, 0, &[V2_29_7, V2_30_7][..], "has more than 576 links"),
    ] {
        for profile in Profile::ALL.into_iter().filter(|it| *it >= V2_21_5) {
            if bridges == 576 && profile < V2_29_7 {
                continue;
            }
            let text = crowd(bridges, ports);
            let strictness = Strictness::AsNccl { single_quotes: false };
            let document = read(&text, strictness).expect("well-formed");
            let settings = Settings::defaults(profile);
            let broken = Default::default();
            let ask = Ask { profile, nodes: 2, rank: 0, settings, broken, shm_pairs: false };
            let error = View::of(&document.root, ask).err().map(|it| it.to_string());
            let told = error.as_ref().is_some_and(|it| it.contains(word));
            let wanted = refusing.contains(&profile);
            assert_eq!(told, wanted, "{profile} {bridges} {ports}: {error:?}");
            assert!(wanted || error.is_none(), "{profile} {bridges} {ports}: {error:?}");
        }
    }
}
