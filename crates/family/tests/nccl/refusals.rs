//! Files and servers that NCCL gives up on, each version in its way, and those at the edge of it.

use std::fmt::Write as _;

use selvedge_family::host::nccl::path::PathKind;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::search::graphs;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, RefusedView, View};
use selvedge_family::host::nccl::width::Width;
use selvedge_family::host::nccl::xml::{Strictness, read};

use crate::fixture::{AMD, INTEL, POWER, no_links, nvlink, server, view};
use Profile::{V2_7_8, V2_18_5, V2_21_5, V2_27_7, V2_29_7, V2_30_7};

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
fn a_server_whose_gpus_are_all_outside_its_cpus_is_refused_with_the_firsts_place() {
    let gpu = "<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" \
               link_width=\"16\">\n<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>\n</pci>";
    let text = format!("<system version=\"1\">\n<cpu numaid=\"0\" {INTEL}/>\n{gpu}\n</system>\n");
    let without = text.replace("rank=\"0\"", "");
    for profile in Profile::ALL {
        let refused = |text: &str| {
            let root = read(text, Strictness::lenient(profile)).expect("well-formed").root;
            let (settings, broken) = (Settings::defaults(profile), Default::default());
            let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: false };
            View::of(&root, ask).expect_err("no GPU").to_string()
        };
        let error = refused(&text);
        assert!(error.starts_with("4:1: this GPU and all others are on no <pci>"), "{error}");
        assert_eq!(refused(&without), "the file has no GPU with a rank");
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
    let old = [V2_7_8, V2_18_5];
    // A CPU's children are its own bridge and the others, its links the other CPU as well; a card's
    // links are its ports and the bus.
    for (bridges, ports, refusing, word) in [
        (30, 30, &[][..], ""),
        (31, 0, &old[..], "has more than 32 links"),
        (32, 0, &old[..], "takes 32 elements in one <cpu>"),
        (0, 31, &old[..], "has more than 32 links"),
        (0, 32, &old[..], "takes 32 elements in one <nic>"),
        (126, 0, &[V2_7_8, V2_18_5][..], "elements in one <cpu>"),
        (128, 0, &[V2_7_8, V2_18_5, V2_21_5, V2_27_7][..], "elements in one <cpu>"),
        (0, 126, &[V2_7_8, V2_18_5][..], "elements in one <nic>"),
        (0, 127, &[V2_7_8, V2_18_5, V2_21_5][..], ""),
        (576, 0, &Profile::ALL[..], ""),
        (0, 600, &Profile::ALL[..], ""),
    ] {
        for profile in Profile::ALL {
            let text = crowd(bridges, ports);
            let strictness = Strictness::AsNccl { single_quotes: false };
            let document = read(&text, strictness).expect("well-formed");
            let settings = Settings::defaults(profile);
            let broken = Default::default();
            let ask = Ask { profile, nodes: 2, rank: 0, settings, broken, shm_pairs: false };
            let error = View::of(&document.root, ask).err().map(|it| it.to_string());
            let wanted = refusing.contains(&profile);
            assert_eq!(error.is_some(), wanted, "{profile} {bridges} {ports}: {error:?}");
            let told = error.is_none_or(|it| it.contains(word));
            assert!(told, "{profile} {bridges} {ports}: not {word:?}");
        }
    }
}

/// Until 2.18 a kind of node and a file are bounded too, wherever the nodes are.
#[test]
fn old_versions_bound_kinds_of_nodes_and_elements_of_a_file() {
    let tree = |switches: usize, below: usize, rows: usize| {
        let link = "link_speed=\"16 GT/s\" link_width=\"16\"";
        let bridge = |upper: usize, it: usize, inner: &str| {
            format!(
                "<pci busid=\"{upper:04x}:{it:02x}:00.0\" class=\"0x060400\" {link}>{inner}</pci>"
            )
        };
        let lower = |upper| (0..below).map(|it| bridge(upper, it, "")).collect::<String>();
        let upper: String = (0..switches).map(|it| bridge(0x100, it, &lower(it + 1))).collect();
        let text = server(AMD, 1, 80, |_| switch_row().repeat(rows));
        text.replacen("</pci></cpu>", &format!("</pci>\n{upper}</cpu>"), 1)
    };
    let refusal = |text: &str, profile| {
        let strictness = Strictness::AsNccl { single_quotes: false };
        let document = read(text, strictness).expect("well-formed");
        let settings = Settings::defaults(profile);
        let broken = Default::default();
        let ask = Ask { profile, nodes: 1, rank: 0, settings, broken, shm_pairs: false };
        View::of(&document.root, ask).err().map(|it| it.to_string())
    };
    for profile in [V2_7_8, V2_18_5] {
        // Two of the server's own, eleven switches and 22 below each: 255.
        assert_eq!(refusal(&tree(11, 22, 0), profile), None);
        let many = refusal(&tree(11, 23, 0), profile);
        assert!(many.as_ref().is_some_and(|it| it.contains("more than 256 PCI")), "{many:?}");
    }
    let rows = |each: usize, more: usize| {
        let text = server(AMD, 16, 80, |it| switch_row().repeat(each + usize::from(it < more)));
        refusal(&text, V2_18_5)
    };
    // One system, two CPUs and bridges, 32 devices and GPUs, two devices, cards and ports.
    let fixed = 1 + 2 * 2 + 2 * 32 + 3 * 2;
    let (each, more) = ((1023 - fixed) / 32, (1023 - fixed) % 32);
    assert_eq!(rows(each, more), None);
    let many = rows(each, more + 1);
    assert!(many.as_ref().is_some_and(|it| it.contains("reads 1023 elements")), "{many:?}");
}

fn switch_row() -> String {
    "<nvlink target=\"ffff:ff:ff\" count=\"1\" tclass=\"0x068000\"/>".to_owned()
}

fn refusal(text: &str, profile: Profile) -> Option<String> {
    let document = read(text, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    let settings = Settings::defaults(profile);
    let broken = Default::default();
    let ask = Ask { profile, nodes: 2, rank: 0, settings, broken, shm_pairs: false };
    View::of(&document.root, ask).err().map(|it| it.to_string())
}

/// Broadcom's switches below one of theirs are made one with it.
fn switches(below: &str) -> String {
    const CARD: &str = "vendor=\"0x1000\" device=\"0xc010\" subsystem_vendor=\"0x1000\" \
                        subsystem_device=\"0xa096\" link_speed=\"16.0 GT/s PCIe\"";
    let gpu = "<pci busid=\"0000:30:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" \
               link_width=\"16\">\n<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>\n</pci>";
    let below = below.replace("CARD", CARD);
    format!(
        "<system version=\"1\">\n<cpu numaid=\"0\" {AMD}>\n\
         <pci busid=\"0000:10:00.0\" class=\"0x060400\" {CARD} link_width=\"16\">\n{gpu}\n{below}\
         </pci>\n</cpu>\n</system>\n"
    )
}

#[test]
fn a_switch_that_loses_more_links_than_it_gains_loses_its_link_upwards() {
    let lower = |width: u32, inside: &str| {
        format!(
            "<pci busid=\"0000:20:00.0\" class=\"0x060400\" CARD link_width=\"{width}\">{inside}\
             </pci>\n"
        )
    };
    let bridge = "<pci busid=\"0000:40:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" \
                  link_width=\"16\"/>";
    let lost = "PCI 10000 loses its link upwards";
    for profile in Profile::ALL.into_iter().filter(|it| *it >= V2_18_5) {
        // As many links as it loses, and one that is as wide as the link upwards.
        assert_eq!(refusal(&switches(&lower(16, bridge)), profile), None, "{profile}");
        assert_eq!(refusal(&switches(&lower(16, "")), profile), None, "{profile}");
        // A narrower one stood last in the table.
        let found = refusal(&switches(&lower(8, "")), profile);
        assert!(found.as_ref().is_some_and(|it| it.contains(lost)), "{profile}: {found:?}");
    }
    assert_eq!(refusal(&switches(&lower(8, "")), V2_7_8), None);
    let twice = lower(16, bridge) + "<pcilink target=\"0000:20:00.0\"/>\n";
    for profile in [V2_27_7, V2_29_7, V2_30_7] {
        let found = refusal(&switches(&twice), profile);
        let told = found.as_ref().is_some_and(|it| it.contains("leads twice to the switch 20000"));
        assert!(told, "{profile}: {found:?}");
    }
}

/// POWER's GPUs reach each other over NVLinks of their CPU; a proxy must be behind switches alone.
#[test]
fn a_proxy_behind_a_cpu_is_not_found() {
    let gpu = |it: usize| {
        format!(
            "<pci busid=\"0000:a{it}:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">\n\
             <gpu dev=\"{it}\" sm=\"80\" rank=\"{it}\" gdr=\"1\">\n\
             <nvlink target=\"0000:00:00.0\" count=\"3\" tclass=\"0x068001\"/>\n</gpu>\n</pci>\n"
        )
    };
    // The port is beside the second GPU, the first hangs on the CPU itself.
    let text = format!(
        "<system version=\"1\">\n<cpu numaid=\"0\" {POWER}>\n{}\
         <pci busid=\"0000:10:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n{}\
         <pci busid=\"0000:b0:00.0\" class=\"0x020000\" link_speed=\"16 GT/s\" link_width=\"16\">\n\
         <nic>\n<net dev=\"0\" speed=\"40000\" guid=\"0x1\" gdr=\"1\"/>\n</nic>\n</pci>\n</pci>\n\
         </cpu>\n</system>\n",
        gpu(0),
        gpu(1)
    );
    for profile in Profile::ALL {
        let found = refusal(&text, profile);
        let told = found.as_ref().is_some_and(|it| it.contains("set NCCL_PXN_DISABLE=1"));
        assert_eq!(told, profile >= V2_18_5, "{profile}: {found:?}");
    }
}
