//! Each variable that the graph code reads, and the decision that it flips in every version that
//! reads it.

#[path = "fixture/mod.rs"]
mod fixture;

use selvedge_family::host::decision::Decisions;
use selvedge_family::host::nccl::path::PathKind;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::search::graphs;
use selvedge_family::host::nccl::settings::{SettingError, Settings};

use Profile::{V2_7_8, V2_18_5, V2_21_5, V2_27_7, V2_29_7, V2_30_7};
use fixture::{AMD, ARM, INTEL, gdr, no_links, nvlink, p2p, server, view};

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
    assert!(matches!(refused("NCCL_P2P_LEVEL", "near"), SettingError::Value { .. }));
    assert!(matches!(refused("NCCL_NETDEVS_POLICY", "MAX:0"), SettingError::Value { .. }));
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
    assert!(matches!(read(V2_27_7, "PBX"), Err(SettingError::Value { .. })));
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
