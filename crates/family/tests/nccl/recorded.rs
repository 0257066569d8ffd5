//! NCCL's own recorded decisions, field by field.
//!
//! `SELVEDGE_DATA/nccl/expected/VERSION/TOPOLOGY.Kn.json.gz` is what that version decides for
//! `topos/TOPOLOGY.xml` with K equal servers; `expected_env` the same with one thing changed.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use selvedge_family::host::nccl::dump::{dump, refusal};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::host::nccl::xml::{self, Strictness};
use serde_json::Value;

/// Keys that are timings or text, and no decisions.
const NO_RESULTS: [&str; 3] = ["ms", "cpuMsTotal", "log"];

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

#[test]
fn recorded_decisions_are_met() {
    compare_all("nccl/expected");
}

#[test]
fn recorded_decisions_under_changed_conditions_are_met() {
    compare_all("nccl/expected_env");
}

fn compare_all(folder: &str) {
    let Some(folder) = real_input(folder) else {
        println!("not run: SELVEDGE_DATA is not set, {folder} is not there");
        return;
    };
    let topos = folder.with_file_name("topos");
    let mut wrong = Vec::new();
    for profile in Profile::ALL {
        let recorded = folder.join(profile.to_string());
        if !recorded.exists() {
            println!(
                "not run: {} is not there; NCCL {profile} goes by the rules",
                recorded.display()
            );
            continue;
        }
        let mut tally = Tally::default();
        for file in files(&recorded) {
            compare(&file, &topos, profile, &mut tally);
        }
        tally.print(&folder, profile);
        wrong.extend(tally.wrong);
    }
    for line in wrong.iter().take(40) {
        println!("{line}");
    }
    assert!(wrong.is_empty(), "{} fields differ", wrong.len());
}

#[derive(Default)]
struct Tally {
    cases: usize,
    /// By top-level key: fields compared, fields that differ.
    fields: BTreeMap<String, (usize, usize)>,
    wrong: Vec<String>,
}

impl Tally {
    fn print(&self, folder: &Path, profile: Profile) {
        let compared: usize = self.fields.values().map(|it| it.0).sum();
        let differing: usize = self.fields.values().map(|it| it.1).sum();
        let (folder, cases) = (folder.display(), self.cases);
        println!("{folder} {profile}: {cases} cases, {compared} fields, {differing} differ");
        for (key, (compared, differing)) in &self.fields {
            println!("  {key}: {compared} fields, {differing} differ");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of the data");
    let mut files: Vec<_> = entries.map(|it| it.expect("a readable entry").path()).collect();
    files.sort();
    files
}

fn compare(file: &Path, topos: &Path, profile: Profile, tally: &mut Tally) {
    let name = file.file_name().and_then(|it| it.to_str()).expect("ASCII names");
    let mut parts = name.trim_end_matches(".json.gz").split('.');
    let topology = parts.next().expect("a topology");
    let nodes = parts.next().expect("a number of nodes").trim_end_matches('n');
    let nodes = nodes.parse().expect("a number");
    let ask = ask(profile, nodes, parts.next());
    let mut text = String::new();
    let compressed = File::open(file).expect("a readable file");
    GzDecoder::new(compressed).read_to_string(&mut text).expect("a gzip file");
    let expected: Value = serde_json::from_str(&text).expect("JSON");
    let text = fs::read_to_string(topos.join(format!("{topology}.xml"))).expect("a topology");
    let strict = Strictness::as_nccl(profile);
    let document = xml::read(&text, strict).expect("what NCCL reads");
    let xml_name = format!("{topology}.xml");
    let found = match View::of(&document.root, ask).and_then(|view| dump(&view, &xml_name)) {
        Ok(found) => found,
        Err(refused) => refusal(profile, &xml_name, &refused),
    };
    let found: Value = serde_json::from_str(&found).expect("the form is JSON");
    tally.cases += 1;
    for (key, expected) in expected.as_object().expect("an object") {
        if NO_RESULTS.contains(&key.as_str()) {
            continue;
        }
        let mut differing = Vec::new();
        let at = format!("{profile} {name} {key}");
        let compared = differences(expected, &found[key], &at, &mut differing);
        let counts = tally.fields.entry(key.clone()).or_default();
        *counts = (counts.0 + compared, counts.1 + differing.len());
        tally.wrong.extend(differing);
    }
    for key in found.as_object().expect("an object").keys() {
        // The changed conditions were recorded without graphs for 2.7.
        let extra = ["why", "unread", "graphs"].contains(&key.as_str());
        assert!(extra || expected.get(key).is_some(), "{name}: {key} is not in the fixed form");
    }
}

/// What each recorded case changed.
fn ask(profile: Profile, nodes: u32, case: Option<&str>) -> Ask {
    let mut ask = Ask {
        profile,
        nodes,
        rank: 0,
        settings: Settings::defaults(profile),
        broken: BTreeSet::new(),
        shm_pairs: false,
    };
    let Some(case) = case else { return ask };
    let mut set = Vec::new();
    match case {
        "p2p_disable" => set.push(("NCCL_P2P_DISABLE", "1")),
        "shm_disable" => set.push(("NCCL_SHM_DISABLE", "1")),
        "p2p_shm_disable" => {
            set.extend([("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1")]);
        }
        "gdrread0" => set.push(("NCCL_NET_GDR_READ", "0")),
        "gdrread1" => set.push(("NCCL_NET_GDR_READ", "1")),
        "gdr_c2c0" => set.push(("NCCL_NET_GDR_C2C", "0")),
        "pxn_c2c0" => set.push(("NCCL_PXN_C2C", "0")),
        "pxn_disable" => set.push(("NCCL_PXN_DISABLE", "1")),
        "nvb_disable" => set.push(("NCCL_NVB_DISABLE", "1")),
        "disable_intra_net" => set.push(("NCCL_NET_DISABLE_INTRA", "1")),
        "crossnic0" => set.push(("NCCL_CROSS_NIC", "0")),
        "crossnic1" => set.push(("NCCL_CROSS_NIC", "1")),
        "netdevs_all" => set.push(("NCCL_NETDEVS_POLICY", "ALL")),
        "netdevs_max1" => set.push(("NCCL_NETDEVS_POLICY", "MAX:1")),
        "rank1" => ask.rank = 1,
        "split" => ask.shm_pairs = true,
        "split_rank2" => {
            ask.shm_pairs = true;
            ask.rank = 2;
        }
        "broken01" => {
            ask.broken.insert((0, 1));
            set.push(("NCCL_IGNORE_DISABLED_P2P", "1"));
        }
        "broken01_fatal" => {
            ask.broken.insert((0, 1));
        }
        other => match other.split_once('_') {
            Some(("p2p", level)) => set.push(("NCCL_P2P_LEVEL", level)),
            Some(("gdr", level)) => set.push(("NCCL_NET_GDR_LEVEL", level)),
            _ => panic!("{other} is not in the data's README"),
        },
    }
    ask.settings = Settings::read(profile, set).expect("variables that NCCL reads");
    ask
}

/// Counts leaves; equal means equal as recorded, to the last of nine digits.
fn differences(expected: &Value, found: &Value, at: &str, differing: &mut Vec<String>) -> usize {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            if expected.len() != found.len() {
                let lengths = (expected.len(), found.len());
                differing.push(format!("{at}: length {} became {}", lengths.0, lengths.1));
            }
            let pairs = expected.iter().zip(found).enumerate();
            pairs.map(|(i, (e, f))| differences(e, f, &format!("{at}[{i}]"), differing)).sum()
        }
        (Value::Object(expected), Value::Object(found)) => {
            for key in found.keys().filter(|it| !expected.contains_key(*it)) {
                differing.push(format!("{at}.{key}: not in the fixed form"));
            }
            let field = |(key, it): (&String, &Value)| {
                let found = found.get(key).unwrap_or(&Value::Null);
                differences(it, found, &format!("{at}.{key}"), differing)
            };
            let results = expected.iter().filter(|(key, _)| !NO_RESULTS.contains(&key.as_str()));
            results.map(field).sum()
        }
        _ => {
            let equal = match (expected.as_f64(), found.as_f64()) {
                (Some(expected), Some(found)) => expected == found,
                _ => expected == found,
            };
            if !equal {
                differing.push(format!("{at}: {expected} became {found}"));
            }
            1
        }
    }
}
