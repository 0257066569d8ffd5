//! What the recorded decisions do not exercise: processors and links that no recorded server has,
//! ports of several faces, rails and planes.

use selvedge_family::host::nccl::dump::dump;
use selvedge_family::host::nccl::graph::{Arch, LinkKind, NodeKind};
use selvedge_family::host::nccl::path::PathKind;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search::graphs;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::host::nccl::width::Width;
use selvedge_family::host::nccl::xml::{Strictness, read, write};

use crate::fixture::{
    AMD, ARM, EMERALD, INTEL, OLD_INTEL, POWER, SAPPHIRE, ZHAOXIN, no_links, nvlink, p2p, server,
    view,
};
use Profile::{V2_7_8, V2_18_5, V2_21_5, V2_27_7, V2_29_7, V2_30_7};

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
