//! Explanations on every pair of every real server: what they name as turning a decision round is
//! done, and the decision turns round.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use selvedge_family::host::change::{Change, Question};
use selvedge_family::host::decision::port_keys;
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
