//! Each variable that the graph code reads, and the decision that it flips in every version that
//! reads it.

use selvedge_family::host::change::{Change, Question};
use selvedge_family::host::decision::Decisions;
use selvedge_family::host::nccl::graph_xml::to_xml;
use selvedge_family::host::nccl::path::PathKind;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::search::{Found, graphs};
use selvedge_family::host::nccl::settings::{SettingError, Settings, VARIABLES};
use selvedge_family::host::nccl::width::Width;
use selvedge_family::host::nccl::xml::{Element, Strictness, read};

use crate::fixture::{AMD, ARM, INTEL, gdr, no_links, nvlink, p2p, server, view};
use Profile::{V2_7_8, V2_18_5, V2_21_5, V2_27_7, V2_29_7, V2_30_7};

/// What merges cards, splits devices or goes over a rack.
const REFUSED: [&str; 7] = [
    "NCCL_NET_GDR_MLOPART",
    "NCCL_NET_MERGE_LEVEL",
    "NCCL_NET_FORCE_MERGE",
    "NCCL_NET_MERGE_POLICY",
    "NCCL_MNNVL_SCATTER_NETS_ENABLE",
    "NCCL_MNNVL_RAIL_PER_HOST",
    "NCCL_TOPO_SPLIT_MLOPART",
];

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
    let topo_dump = ("NCCL_TOPO_DUMP_FILE", "topo.xml");
    let graph_dump = ("NCCL_GRAPH_DUMP_FILE", "graph.xml");
    let paired = server(INTEL, 2, 80, |it| nvlink(it ^ 1));
    let cases: [Case; 32] = [
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
        (&[], ("NCCL_CROSS_NIC", "0"), &paired, V2_7_8),
        (&[], ("NCCL_NET_FORCE_FLUSH", "1"), &plain, V2_18_5),
        (&[], ("NCCL_MIN_NCHANNELS", "30"), &linked, V2_7_8),
        (&[], ("NCCL_MAX_NCHANNELS", "1"), &linked, V2_7_8),
        (&[], ("NCCL_MIN_NRINGS", "30"), &linked, V2_7_8),
        (&[], ("NCCL_MAX_NRINGS", "1"), &linked, V2_7_8),
        (&[], ("NCCL_MIN_CTAS", "30"), &linked, V2_18_5),
        (&[], ("NCCL_MAX_CTAS", "1"), &linked, V2_18_5),
        (&[], ("NCCL_IGNORE_CPU_AFFINITY", "1"), &plain, V2_7_8),
        (&[], ("NCCL_TOPO_DUMP_FILE", "topo.xml"), &plain, V2_7_8),
        (&[topo_dump], ("NCCL_TOPO_DUMP_FILE_RANK", "1"), &plain, V2_7_8),
        (&[], ("NCCL_GRAPH_DUMP_FILE", "graph.xml"), &plain, V2_7_8),
        (&[graph_dump], ("NCCL_GRAPH_DUMP_FILE_RANK", "1"), &plain, V2_7_8),
        (&[], ("NCCL_MIN_P2P_NCHANNELS", "32"), &linked, V2_7_8),
        (&[], ("NCCL_MAX_P2P_NCHANNELS", "1"), &linked, V2_7_8),
        (&[], ("NCCL_P2P_PER_CHANNEL_NET_BW", "1"), &plain, V2_29_7),
        (&[], ("NCCL_NETDEVS_POLICY", "ALL"), &ports, V2_29_7),
        (&[], ("NCCL_PXN_C2C", "1"), &beside, V2_27_7),
        (&[], ("NCCL_PXN_C2C", "0"), &beside, V2_29_7),
        (&[], ("NCCL_NVLS_ENABLE", "0"), &switched, V2_18_5),
        (&[], ("NCCL_COLLNET_ENABLE", "1"), &reducing, V2_18_5),
    ];
    flips_in_every_version(&cases);
}

/// Each variable that a version reads flips in one of the cases, or is refused by name.
fn flips_in_every_version(cases: &[Case]) {
    // These have a test of their own.
    let apart = ["NCCL_GRAPH_FILE", "NCCL_TOPO_FILE", "NCCL_IGNORE_DISABLED_P2P"];
    let flips = |(before, set, text, _): &Case, profile| {
        let env = [*before, &[*set]].concat();
        let decided = |env| Decisions::of(&view(text, profile, env)).expect("NCCL goes on");
        !decided(before).differences(&decided(&env)).is_empty()
    };
    let mut silent = Vec::new();
    for (name, since) in VARIABLES {
        let read = Settings::read(V2_30_7, [(name, "1")]);
        let refused = matches!(read, Err(SettingError::NotReproduced { .. }));
        assert_eq!(refused, REFUSED.contains(&name), "{name}: {read:?}");
        if refused || apart.contains(&name) {
            continue;
        }
        for profile in Profile::ALL.into_iter().filter(|it| *it >= since) {
            // 2.7 looks for chains whether it is set or not.
            let always = (name, profile) == ("NCCL_COLLNET_ENABLE", V2_7_8);
            let mut cases = cases.iter().filter(|it| it.1.0 == name && it.3 <= profile);
            if !always && !cases.any(|it| flips(it, profile)) {
                silent.push(format!("{profile} {name}"));
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
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
}

/// As 2.7.8 decides with these values, and as 2.27.7's code reads them.
#[test]
fn values_that_are_none_are_taken_as_nccl_takes_them_and_named() {
    let read = |profile, name, value| {
        Settings::read(profile, [(name, value)]).expect("all values are taken")
    };
    for profile in Profile::ALL {
        for (name, value) in [("NCCL_P2P_LEVEL", "PBX"), ("NCCL_P2P_LEVEL", "pix")] {
            let it = read(profile, name, value);
            assert_eq!((it.p2p_level, it.unread), (None, vec![format!("{name}={value}")]));
        }
        let it = read(profile, "NCCL_NET_GDR_LEVEL", "0x2");
        assert_eq!((it.gdr_level, it.unread), (Some(PathKind::Pxb), vec![]));
        assert_eq!(read(profile, "NCCL_P2P_LEVEL", "-3").p2p_level, None);
        assert_eq!(read(profile, "NCCL_P2P_LEVEL", "99").p2p_level, Some(PathKind::Sys));
        for name in ["NCCL_CROSS_NIC", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_READ"] {
            assert_eq!(read(profile, name, ""), Settings::defaults(profile));
        }
        let it = read(profile, "NCCL_CROSS_NIC", "abc");
        assert_eq!((it.cross_nic, it.unread), (0, vec!["NCCL_CROSS_NIC=abc (taken for 0)".into()]));
        assert_eq!(read(profile, "NCCL_P2P_DISABLE", "yes").p2p_level, None);
        assert_eq!(read(profile, "NCCL_P2P_DISABLE", "0x1").p2p_level, Some(PathKind::Loc));
        let octal = if profile == V2_7_8 { 10 } else { 8 };
        assert_eq!(read(profile, "NCCL_CROSS_NIC", "010").cross_nic, octal, "{profile}");
        let large = if profile == V2_7_8 { i64::MAX } else { 2 };
        let it = read(profile, "NCCL_CROSS_NIC", "9999999999999999999");
        assert_eq!(it.cross_nic, large, "{profile}");
    }
    let it = read(V2_30_7, "NCCL_NETDEVS_POLICY", "MAX:0");
    assert_eq!(it.unread, ["NCCL_NETDEVS_POLICY=MAX:0"]);
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
fn a_level_of_another_version_is_passed_over_and_named() {
    let read = |profile, value| Settings::read(profile, [("NCCL_P2P_LEVEL", value)]);
    let old = read(V2_21_5, "P2C").expect("a level of later versions");
    assert_eq!((old.p2p_level, old.unread), (None, vec!["NCCL_P2P_LEVEL=P2C".to_owned()]));
    let new = read(V2_27_7, "P2C").expect("its own level");
    assert_eq!((new.p2p_level, new.unread), (Some(PathKind::P2c), vec![]));
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

fn question(text: &str, profile: Profile) -> Question {
    let document = read(text, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    Question::new(document.root, profile)
}

fn change(name: &str, value: &str) -> Change {
    Change::Set { name: name.to_owned(), value: value.to_owned() }
}

#[test]
fn a_graph_file_stands_in_place_of_the_search() {
    let text = server(INTEL, 2, 80, |it| nvlink(it ^ 1));
    for profile in Profile::ALL {
        let mut asked = question(&text, profile);
        let view = asked.view().expect("a sound server");
        let found = graphs(&view).expect("there are ports").found;
        let ring = Found { intra: Width(7.0), inter: Width(6.0), ..found[0].clone() };
        let ring = Found { channels: vec![found[0].channels[0].clone()], cross_nic: 0, ..ring };
        let file = to_xml(&view, std::slice::from_ref(&ring)).expect("a ring has words");
        asked.files.insert("ring.xml".to_owned(), file.clone());
        let changed = asked.with(&change("NCCL_GRAPH_FILE", "ring.xml")).expect("it is read");
        let after = changed.view().expect("a sound server");
        let taken = graphs(&after).expect("a sound file");
        assert_eq!(taken.found[0].channels, ring.channels, "{profile}");
        assert_eq!((taken.found[0].intra, taken.found[0].inter), (Width(7.0), Width(6.0)));
        assert!(taken.attempts.is_empty(), "{profile}: nothing is searched");
        let [before, after] = [&view, &after].map(|it| Decisions::of(it).expect("NCCL goes on"));
        assert!(!before.differences(&after).is_empty(), "{profile}");
        // A tree that the file does not have is searched, with as many channels as the rings.
        assert!(taken.found[1].channels_max <= 1, "{profile}");

        let mut strange = file.clone();
        let channel = &mut strange.children[0].children[0];
        channel.children.retain(|it| it.name == "net");
        asked.files.insert("ring.xml".to_owned(), strange);
        let changed = asked.with(&change("NCCL_GRAPH_FILE", "ring.xml")).expect("it is read");
        let error = graphs(&changed.view().expect("a sound server")).expect_err("no GPUs");
        assert!(error.to_string().contains("names 0 GPUs, it takes 4"), "{error}");

        // A graph that crosses ports is not for those who may not.
        let mut crossing = file;
        crossing.children[0].attrs.retain(|(name, _)| name != "crossnic");
        let crossing_graph = std::mem::replace(&mut crossing.children[0], Element::new("graph"));
        crossing.children[0] = crossing_graph.with("crossnic", 1);
        asked.files.insert("ring.xml".to_owned(), crossing);
        let set = [change("NCCL_GRAPH_FILE", "ring.xml"), change("NCCL_CROSS_NIC", "0")];
        let changed = asked.with_all(&set).expect("it is read");
        let searched = graphs(&changed.view().expect("a sound server")).expect("there are ports");
        assert!(!searched.attempts.is_empty(), "{profile}");
    }
}

#[test]
fn a_topology_file_stands_in_place_of_the_server() {
    let text = server(AMD, 2, 90, no_links);
    let other = question(&server(AMD, 1, 90, no_links), V2_30_7).root;
    for profile in Profile::ALL {
        let mut asked = question(&text, profile);
        asked.files.insert("other.xml".to_owned(), other.clone());
        let changed = asked.with(&change("NCCL_TOPO_FILE", "other.xml")).expect("it is read");
        let gpus = |it: &Question| it.view().expect("a sound server").gpus().len();
        assert_eq!((gpus(&asked), gpus(&changed)), (4, 2), "{profile}");
        let unread = asked.with(&change("NCCL_TOPO_FILE", "none.xml")).expect_err("not at hand");
        assert!(unread.to_string().contains("which nobody has read"), "{unread}");
    }
}

#[test]
fn a_broken_pair_is_fatal_unless_it_is_ignored() {
    let text = server(AMD, 1, 90, |it| nvlink(1 - it));
    for profile in Profile::ALL {
        let mut asked = question(&text, profile);
        asked.broken.insert((0, 1));
        let ignored = asked.with(&change("NCCL_IGNORE_DISABLED_P2P", "1")).expect("a variable");
        ignored.view().expect("it is ignored");
        // 2.7 does not ask the driver.
        assert_eq!(asked.view().is_err(), profile >= V2_18_5, "{profile}");
    }
}
