//! Explanations on every pair of every real server: what they name as turning a decision round is
//! done, and the decision turns round.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use selvedge_family::host::change::{Change, Question};
use selvedge_family::host::decision::{Transport, port_keys};
use selvedge_family::host::explain::ring::{explain_ring, outcome};
use selvedge_family::host::explain::{Lab, Pair};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::view::View;
use selvedge_family::host::nccl::xml::{Strictness, read};

/// One of the real inputs; none where SELVEDGE_DATA is not set.
fn real_input(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env::var_os("SELVEDGE_DATA")?).join(path))
}

/// Each server with its name.
fn servers() -> Vec<(String, String)> {
    let Some(folder) = real_input("nccl/topos") else {
        println!("not run: SELVEDGE_DATA is not set, nccl/topos is not there");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|it| it.expect("an entry").path()).collect();
    files.sort();
    let name = |it: &PathBuf| it.file_stem().expect("a file").to_string_lossy().into_owned();
    files.iter().map(|it| (name(it), fs::read_to_string(it).expect("readable"))).collect()
}

fn pairs(question: &Question) -> Vec<Pair> {
    let whole = question.whole().expect("NCCL takes every real file");
    let ranks: Vec<i32> = whole.gpus().iter().map(|it| whole.graph.gpu(*it).rank).collect();
    let mut pairs = Vec::new();
    for &a in &ranks {
        pairs.extend(ranks.iter().filter(|b| **b != a).map(|b| Pair::P2p { a, b: *b }));
        for (_, net) in port_keys(&whole) {
            pairs.extend([true, false].map(|send| Pair::Gdr { gpu: a, net, send }));
        }
    }
    pairs
}

/// What the view says about two parts that it has.
fn decided(view: &View, pair: Pair) -> Option<bool> {
    match pair {
        Pair::P2p { a, b } => {
            let (a, b) = view.graph.gpu_of_rank(a).zip(view.graph.gpu_of_rank(b))?;
            Some(view.can_p2p(a, b).expect("nothing is broken"))
        }
        Pair::Gdr { gpu, net, send } => {
            let gpu = view.graph.gpu_of_rank(gpu)?;
            let net = port_keys(view).into_iter().find(|it| it.1 == net)?.0;
            Some(view.check_gdr(gpu, net, send))
        }
    }
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn what_is_said_to_flip_a_decision_flips_it() {
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for (name, text) in servers() {
        for profile in Profile::ALL {
            let document = read(&text, Strictness::AsNccl { single_quotes: false });
            let question = Question::new(document.expect("well-formed").root, profile);
            let lab = Lab::new(question.clone());
            let view = question.view().expect("NCCL takes every real file");
            let mut labs: BTreeMap<Vec<Change>, Lab> = BTreeMap::new();
            for pair in pairs(&question) {
                let explanation = lab.explain(pair).expect("there is an answer");
                let before = explanation.verdict();
                if let Some(on) = decided(&view, pair) {
                    assert_eq!(before.on, on, "{name} {profile} {pair:?}");
                }
                let [on, off, fixed] = counts.entry(profile.to_string()).or_default();
                *if before.on { on } else { off } += 1;
                *fixed += usize::from(explanation.flips.is_empty());
                assert_eq!(explanation.flips.is_empty(), explanation.fixed.is_some());
                for flip in &explanation.flips {
                    let changed = labs.entry(flip.made().to_vec()).or_insert_with(|| {
                        Lab::new(question.with_all(flip.made()).expect("the parts are there"))
                    });
                    let after = changed.verdict(pair, &[]).expect("there is an answer");
                    assert_ne!(before.on, after.on, "{name} {profile} {pair:?} {flip:?}");
                }
                if explanation.flips.is_empty() {
                    println!("{name} {profile} {pair:?}: {}", explanation.because);
                }
            }
        }
    }
    for (profile, [on, off, fixed]) in counts {
        println!("{profile}: {on} on, {off} off, of these {fixed} that nothing flips");
    }
}

const PAIR: &str = "<system version=\"1\">
  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">
    <pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">
      <pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
        <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\">
          <nvlink target=\"0000:04:00.0\" count=\"4\" tclass=\"0x030200\"/>
        </gpu>
      </pci>
      <pci busid=\"0000:04:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
        <gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\">
          <nvlink target=\"0000:03:00.0\" count=\"4\" tclass=\"0x030200\"/>
        </gpu>
      </pci>
      <pci busid=\"0000:05:00.0\" class=\"0x020000\" link_speed=\"16 GT/s\" link_width=\"16\">
        <nic><net name=\"m\" dev=\"0\" speed=\"100000\" port=\"1\" guid=\"0x1\" gdr=\"1\"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
";

/// Every change that is named is made again, and the rings carry what was said.
fn check_ring(name: &str, question: &Question) -> usize {
    let told = explain_ring(question).expect("there are rings");
    let before = outcome(question).expect("there are rings");
    assert_eq!((told.channels, told.gb_per_s), before, "{name}");
    for flip in &told.flips {
        let changed = question.with_all(flip.made()).expect("the parts are there");
        let after = outcome(&changed).expect("it was found before");
        assert_eq!(after, (flip.channels, flip.gb_per_s), "{name} {}", flip.change);
        let total = |(channels, each): (usize, f32)| channels as f32 * each;
        assert_ne!(total(after), total(before), "{name} {}", flip.change);
        assert_eq!(flip.faster, total(after) > total(before), "{name} {}", flip.change);
    }
    told.flips.len()
}

#[test]
fn what_is_said_to_make_rings_faster_or_slower_does() {
    let document = read(PAIR, Strictness::AsNccl { single_quotes: false }).expect("well-formed");
    for profile in Profile::ALL {
        let mut question = Question::new(document.root.clone(), profile);
        question.nodes = 2;
        assert!(check_ring("pair", &question) > 0, "{profile}");
        let told = explain_ring(&question).expect("there are rings");
        // One port of 12.5 GB/s is what bounds them, and a faster one helps.
        let faster: Vec<_> = told.flips.iter().filter(|it| it.faster).collect();
        assert!(faster.iter().any(|it| it.change == "NET0.speed=200000"), "{profile} {told}");
        assert!(told.stopped_by.contains("12.5GB/s") || told.stopped_by.contains("NET0"), "{told}");
    }
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn rings_of_real_servers_are_explained_by_changes_that_change_them() {
    let names = ["simllm-perlmutter_a100", "nccl-pr2202-gb10", "oci-H100-topology"];
    for (name, text) in servers().into_iter().filter(|it| names.contains(&it.0.as_str())) {
        let document = read(&text, Strictness::AsNccl { single_quotes: false });
        let root = document.expect("well-formed").root;
        for profile in [Profile::V2_21_5, Profile::V2_27_7, Profile::V2_30_7] {
            let mut question = Question::new(root.clone(), profile);
            question.nodes = 2;
            check_ring(&name, &question);
        }
    }
}

#[test]
fn where_data_take_the_network_no_way_inside_the_server_is_told_as_taken() {
    let root = read(PAIR, Strictness::AsNccl { single_quotes: false }).expect("well-formed").root;
    for profile in Profile::ALL {
        let told = |names: &[&str]| {
            let set = |it: &&str| ((*it).to_owned(), "1".to_owned());
            let env = names.iter().map(set).collect();
            let question = Question { env, ..Question::new(root.clone(), profile) };
            Lab::new(question).explain(Pair::P2p { a: 0, b: 1 }).expect("NCCL takes it")
        };
        // Through the CPU's memory there is another way, and it is told.
        let by_memory = told(&["NCCL_P2P_DISABLE"]);
        assert_eq!(by_memory.transport, Some(Transport::Shm), "{profile}");
        assert!(by_memory.to_string().contains("  taken    "), "{profile}: {by_memory}");
        let by_network = told(&["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"]);
        assert_eq!(by_network.transport, Some(Transport::Net), "{profile}");
        assert_eq!(by_network.instead, None, "{profile}");
        assert!(!by_network.to_string().contains("  taken    "), "{profile}: {by_network}");
    }
}
