//! Graphs beyond what is recorded: as files for NCCL, held against a server, joined over servers.

use selvedge_family::host::nccl::connect::{Connected, connect};
use selvedge_family::host::nccl::graph_xml::{Finding, Severity, check, to_xml};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search::{Found, graphs};
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::host::nccl::xml::{Strictness, read, write};

use Profile::{V2_7_8, V2_27_7, V2_30_7};

/// One server of four GPUs on NVSwitches, with four ports.
fn view(profile: Profile, nodes: u32, env: &[(&str, &str)]) -> View {
    // Without chip-to-chip links: a graph file has no word for them.
    let mut root = rack(RackShape { hosts: 1, cpus: 2 });
    let gpus = root.children.iter_mut().flat_map(|it| &mut it.children);
    let gpus = gpus.flat_map(|it| &mut it.children).flat_map(|it| &mut it.children);
    gpus.for_each(|it| it.children.retain(|it| it.name != "c2c"));
    let settings = Settings::read(profile, env.iter().copied()).expect("known variables");
    let broken = Default::default();
    let ask = Ask { profile, nodes, rank: 0, settings, broken, shm_pairs: false };
    View::of(&root, ask).expect("the server is well made")
}

fn found(view: &View) -> Vec<Found> {
    let found = graphs(view).expect("there are ports").found;
    found.into_iter().filter(|it| !it.channels.is_empty()).collect()
}

/// What is said of the server's own graph file after `edit`.
fn findings(profile: Profile, nodes: u32, edit: impl Fn(String) -> String) -> Vec<Finding> {
    let view = view(profile, nodes, &[]);
    let root = to_xml(&view, &found(&view)).expect("all paths have a word");
    let text = edit(write(&root));
    let strictness = Strictness::AsNccl { single_quotes: false };
    check(&view, &read(&text, strictness).expect("well-formed").root)
}

#[test]
fn a_searched_graph_passes_its_own_check() {
    for profile in [V2_7_8, V2_27_7, V2_30_7] {
        for nodes in [1, 2] {
            assert_eq!(findings(profile, nodes, |it| it), [], "{profile} {nodes}");
        }
    }
}

#[test]
fn what_is_wrong_in_a_graph_file_is_told_with_its_place() {
    #[track_caller]
    fn told(edit: impl Fn(String) -> String, severity: Severity, part: &str) {
        let findings = findings(V2_27_7, 2, edit);
        let found = findings.iter().find(|it| it.text.contains(part));
        let found = found.unwrap_or_else(|| panic!("{part:?} is not in {findings:?}"));
        assert_eq!(found.severity, severity);
        assert!(found.place.line >= 1);
    }
    let once = |from: &'static str, to: &'static str| {
        move |it: String| {
            assert!(it.contains(from), "{from:?} is not in {it}");
            it.replacen(from, to, 1)
        }
    };
    told(once("<graphs version=\"1\"", "<graphs version=\"2\""), Severity::Error, "version=\"1\"");
    told(once(" samechannels=\"0\"", ""), Severity::Error, "has no samechannels");
    told(once("typeintra=\"NVL\"", "typeintra=\"NVLINK\""), Severity::Error, "knows LOC, NVL, NVB");
    told(once("pattern=\"4\"", "pattern=\"9\""), Severity::Error, "none of 1 to 6");
    told(once("<gpu dev=\"0x1\"/>", "<gpu dev=\"0x9\"/>"), Severity::Error, "no GPU of dev 0x9");
    told(once("<gpu dev=\"0x1\"/>", "<gpu dev=\"0x2\"/>"), Severity::Error, "twice");
    told(once("<gpu dev=\"0x1\"/>\n", ""), Severity::Error, "names 3 GPUs, it takes 4");
    told(once("<net dev=\"0x1\"/>", "<net dev=\"0x7\"/>"), Severity::Error, "no port 0x7");
    told(once("nchannels=\"", "nchannels=\"1"), Severity::Error, "channels");
    told(once("speedinter=\"", "speedinter=\"9"), Severity::Warning, "lower speedintra");
    told(once("typeintra=\"NVL\"", "typeintra=\"LOC\""), Severity::Warning, "typeintra is LOC");
}

#[test]
fn a_rank_in_a_graph_file_counts_from_2_28_on() {
    let wrong = |profile| findings(profile, 1, |it| it.replacen("dev=\"0x1\"", "dev=\"0x77\"", 1));
    assert_eq!(wrong(V2_30_7), []);
    assert!(wrong(V2_27_7).iter().any(|it| it.severity == Severity::Error));
}

fn connected(profile: Profile, nodes: u32, env: &[(&str, &str)]) -> Connected {
    let view = view(profile, nodes, env);
    connect(&view, &found(&view)).expect("all servers are equal")
}

#[test]
fn every_ring_visits_every_rank_and_every_tree_is_one_tree() {
    for profile in [V2_7_8, V2_27_7, V2_30_7] {
        for nodes in 1..8 {
            let connected = connected(profile, nodes, &[]);
            let ranks = 4 * nodes as i32;
            for ring in &connected.rings {
                let mut ring = ring.clone();
                assert_eq!(ring[0], 0);
                ring.sort_unstable();
                assert_eq!(ring, (0..ranks).collect::<Vec<_>>());
            }
            for tree in &connected.trees {
                assert_eq!(tree.iter().filter(|it| it.up == -1).count(), 1);
                for (rank, it) in tree.iter().enumerate().filter(|(_, it)| it.up != -1) {
                    let parent = &tree[it.up as usize];
                    assert!(parent.down.contains(&(rank as i32)), "{profile} {nodes} {rank}");
                }
                let children = tree.iter().flat_map(|it| it.down).filter(|it| *it != -1);
                assert_eq!(children.count() as i32, ranks - 1);
            }
        }
    }
}

#[test]
fn variables_set_how_many_channels_there_are() {
    let count = |env: &[(&str, &str)]| connected(V2_27_7, 1, env).rings.len();
    let default = count(&[]);
    assert!(default > 4);
    assert_eq!(count(&[("NCCL_MAX_NCHANNELS", "3")]), 3);
    assert_eq!(count(&[("NCCL_MAX_NRINGS", "2")]), 2);
    assert_eq!(count(&[("NCCL_MAX_NRINGS", "2"), ("NCCL_MAX_NCHANNELS", "3")]), 3);
    assert_eq!(count(&[("NCCL_MIN_NCHANNELS", "64")]), 64);
}

#[test]
fn the_log_has_a_line_for_each_channel_and_each_rank() {
    let log = connected(V2_27_7, 2, &[("NCCL_MAX_NCHANNELS", "2")]).log();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 2 + 8);
    assert!(lines[0].starts_with("Channel 00/02 : 0 "), "{log}");
    assert!(lines[2].starts_with("[0] Trees [0] "), "{log}");
    assert!(connected(V2_7_8, 2, &[]).log().contains("->0->-1|-1->0->"));
}

/// NCCL reads a graph file's numbers by C's library: other ways of writing one are the same number,
/// and what is none is one all the same.
#[test]
fn numbers_of_a_graph_file_are_read_as_c_reads_them() {
    let first = |it: String, from: &str, to: &str| {
        assert!(it.contains(from), "{from:?} is not in {it}");
        it.replacen(from, to, 1)
    };
    for profile in [V2_7_8, V2_27_7, V2_30_7] {
        let edit = |it: String| {
            let it = first(it, "id=\"0\"", "id=\"0x0\"");
            let it = first(it, "pattern=\"4\"", "pattern=\" 4\"");
            first(it, "<gpu dev=\"0\"", "<gpu dev=\"0x0\"")
        };
        assert_eq!(findings(profile, 2, edit), [], "{profile}");
        let words = |it: String| {
            let it = first(it, "samechannels=\"0\"", "samechannels=\"no\"");
            first(it, "speedintra=\"", "speedintra=\"0x")
        };
        let found = findings(profile, 2, words);
        let told = |part: &str| found.iter().any(|it| it.text.contains(part));
        assert!(
            told("samechannels is \"no\", which is no whole number; NCCL reads 0"),
            "{found:?}"
        );
        assert!(told("which is no speed in GB/s; NCCL reads"), "{found:?}");
    }
    let nonsense = |it: String| first(it, "speedinter=\"", "speedinter=\"nan");
    let found = findings(V2_30_7, 2, nonsense);
    assert!(found.iter().any(|it| it.severity == Severity::Error), "{found:?}");
}

#[test]
fn what_a_graph_file_says_of_its_ports_is_held_against_them() {
    let all = |from: &'static str, to: &'static str| move |it: String| it.replace(from, to);
    let told = |edit: &dyn Fn(String) -> String, part: &str| {
        let found = findings(V2_27_7, 2, edit);
        let is_told =
            found.iter().any(|it| it.severity == Severity::Warning && it.text.contains(part));
        assert!(is_told, "{part:?} is not in {found:?}");
    };
    told(&all("typeinter=\"PHB\"", "typeinter=\"LOC\""), "typeinter is LOC, but rank");
    let slow = |it: String| {
        let at = it.find("speedinter=\"").expect("a speed") + 12;
        let end = at + it[at..].find('"').expect("its end");
        format!("{}0{}", &it[..at], &it[end..])
    };
    told(&slow, "speedinter is 0");
}
