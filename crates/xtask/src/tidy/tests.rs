//! Each rule is broken by at least one case here, and none by the repository itself.

use std::collections::BTreeSet;

use super::*;

const WIDE: &str = "//                                                                    \
                    one hundred and one columns, of which the last is too much";
const GOOD_DECISION: &str = "# 1. A\n\nStatus: accepted\n\n## Context\n\n## Choice\n\n\
                             ## What we gave up\n\n## How we would know it was wrong\n";

/// A rule, the files that break it, and what it says of each break: none where it must be silent.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const CASES: &[Case] = &[
    ("rust_reads", &[("crates/a/src/b.rs", "fn f() {\n)")], &["crates/a/src/b.rs:2: this is not"]),
    ("line_length", &[("crates/a/src/b.rs", WIDE)], &["crates/a/src/b.rs:1: 128 columns"]),
    ("no_own_paths", &[("a.md", concat!("see /ho", "me/me/x"))], &["a.md:1: /ho"]),
    ("no_own_paths", &[("a.md", concat!("see net/wo", "rk/x and ../wo", "rk/y"))], &[]),
    ("nothing_unfinished", &[("a.md", concat!("FIX", "ME later"))], &["a.md:1: FIX"]),
    ("nothing_unfinished", &[("a.rs", concat!("// TO", "DO later"))], &["a.rs:1: TO"]),
    ("nothing_unfinished", &[("a.rs", concat!("// TO", "DO(#7): later"))], &[]),
    ("nothing_unfinished", &[("a.rs", "fn f() { dbg!(1) }")], &["a.rs:1: dbg! is for"]),
    ("nothing_unfinished", &[("a.rs", "fn f() { todo!() }")], &["a.rs:1: todo! is for"]),
    ("nothing_unfinished", &[("a.rs", "// todo! and \"dbg!\" in a comment")], &[]),
    ("no_climbing", &[("a.rs", "use super::super::b;")], &["a.rs:1: super::super::b climbs"]),
    ("no_climbing", &[("a.rs", "pub mod prelude;")], &["a.rs:1: a prelude"]),
    (
        "no_io_in_the_core",
        &[(
            "crates/model/src/a.rs",
            "use std::{fs, net::TcpStream};\nfn f(_: std::time::Duration) {}",
        )],
        &[
            "crates/model/src/a.rs:1: std::fs is a file",
            "crates/model/src/a.rs:1: std::net::TcpStream is a socket",
            "crates/model/src/a.rs:2: std::time::Duration is a clock",
        ],
    ),
    (
        "no_io_in_the_core",
        &[("crates/control/src/a.rs", "type A = HashMap<u8, u8>; fn f() { rand::random(); }")],
        &[
            "crates/control/src/a.rs:1: HashMap is an order",
            "crates/control/src/a.rs:1: rand::random is dice",
        ],
    ),
    (
        "no_io_in_the_core",
        &[
            ("crates/model/src/a.rs", "// std::fs\n#[cfg(test)]\nmod t { use std::fs; }"),
            ("crates/model/tests/b.rs", "use std::fs;"),
            ("crates/sim/src/flow/tests.rs", "use std::collections::HashSet;"),
            ("crates/driver/src/a.rs", "use std::{fs, net, thread, time::Instant};"),
        ],
        &[],
    ),
    (
        "unsafe_in_one_crate",
        &[
            ("crates/stmr-mpi/src/a.rs", "fn f() { unsafe { g() } }"),
            ("crates/driver/src/a.rs", "// unsafe\nfn f() { unsafe { g() } }"),
        ],
        &["crates/driver/src/a.rs:2: unsafe code stands in"],
    ),
    (
        "no_inexact_functions",
        &[("crates/sim/src/a.rs", "fn f(x: f64) -> f64 { x.ln() + x.sqrt() }")],
        &["crates/sim/src/a.rs:1: .ln() is not"],
    ),
    (
        "no_inexact_functions",
        &[(
            "crates/sim/src/a.rs",
            "const F: fn(f64) -> f64 = f64::ln;\nfn g() { libm::log(2.0); }",
        )],
        &["crates/sim/src/a.rs:1: f64::ln is not"],
    ),
    (
        "only_the_server_names_http",
        &[
            ("crates/control/src/a.rs", "use axum::Router;"),
            ("crates/server/src/a.rs", "use axum::Router;"),
            ("crates/cli/src/client.rs", "use ureq::Agent;"),
            ("crates/cli/src/cmd/job.rs", "use ureq::Agent;"),
            ("crates/cli/Cargo.toml", "[dependencies]\nureq = \"3\"\ntower-http = \"1\""),
        ],
        &[
            "crates/cli/src/cmd/job.rs:1: ureq::Agent speaks",
            "crates/control/src/a.rs:1: axum::Router speaks",
            "crates/cli/Cargo.toml:1: tower_http",
        ],
    ),
    (
        "families_do_not_know_each_other",
        &[
            ("crates/family/src/torus.rs", "use super::clos::Plane;"),
            ("crates/family/src/torus/twist.rs", "use crate::{grid::Cells, torus::hardware};"),
            ("crates/family/src/grid/mod.rs", "use crate::torus;"),
            ("crates/family/src/clos/mod.rs", "use super::torus;"),
        ],
        &[
            "crates/family/src/grid/mod.rs:1: grid names crate::torus",
            "crates/family/src/torus.rs:1: torus names super::clos::Plane",
        ],
    ),
    (
        "modules_look_backwards",
        &[
            ("crates/control/src/lib.rs", "//! C\npub mod schedule;\npub mod wire;\npub mod core;"),
            ("crates/control/src/schedule.rs", "use crate::wire::Plan;"),
            ("crates/control/src/wire/mod.rs", "use crate::{core, schedule};"),
            ("crates/control/src/core.rs", "use crate::schedule::place;\nuse super::wire;"),
        ],
        &[
            "crates/control/src/schedule.rs:1: schedule names crate::wire::Plan",
            "crates/control/src/wire/mod.rs:1: wire names crate::core",
        ],
    ),
    (
        "libs_begin_with_what_they_are",
        &[
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", "pub mod b;"),
            ("crates/model/Cargo.toml", ""),
            ("crates/model/src/lib.rs", "//! What exists."),
        ],
        &["crates/a/src/lib.rs:1: begin with", "crates/model/src/lib.rs:1: switch on"],
    ),
    (
        "crates_are_in_architecture",
        &[
            ("crates/a/Cargo.toml", ""),
            ("crates/ab/Cargo.toml", ""),
            ("ARCHITECTURE.md", "`crates/ab`: …"),
        ],
        &["ARCHITECTURE.md:1: crates/a is not"],
    ),
    (
        "links_live",
        &[
            (
                "docs/a.md",
                "# One two\n[a](b.md) [b](../c.md#x-y) [c](#one-two) [d](../../e) `[f](g)`\n\
                 <!-- [h](i) -->\n```\n[j](k)\n```\n[l](https://m.n) [o](#p)",
            ),
            ("c.md", "## X Y"),
        ],
        &[
            "docs/a.md:2: b.md leads nowhere",
            "docs/a.md:2: ../../e leaves",
            "docs/a.md:7: docs/a.md has no heading that reads #p",
        ],
    ),
    ("changelog_form", &[], &["CHANGELOG.md:1: there is no changelog"]),
    (
        "changelog_form",
        &[("CHANGELOG.md", "# Changes\n\n## 1.0\n\n### Novel\n\n### Added\n\ntext\n\n## 0.9\n")],
        &[
            "CHANGELOG.md:1: begin with",
            "CHANGELOG.md:3: the first release",
            "CHANGELOG.md:5: a change is one of",
            "CHANGELOG.md:5: nothing stands",
            "CHANGELOG.md:9: a change is a `- `",
            "CHANGELOG.md:11: a release reads",
        ],
    ),
    (
        "changelog_form",
        &[(
            "CHANGELOG.md",
            "# Changelog\n\nWords.\n\n## Unreleased\n\n### Added\n\n- a\n  b\n\n\
             ## 0.1.0 - 2026-01-31\n",
        )],
        &[],
    ),
    (
        "decisions_are_numbered",
        &[
            ("docs/decisions/0001-a.md", GOOD_DECISION),
            ("docs/decisions/0003-b.md", "# 3. B\n\nStatus: hoped\n"),
            ("docs/decisions/README.md", "- [a](0001-a.md)"),
        ],
        &[
            "docs/decisions/0003-b.md:1: the next page is 0002-",
            "docs/decisions/README.md:1: 0003-b.md is not",
            "docs/decisions/0003-b.md:1: say `Status: `",
            "docs/decisions/0003-b.md:1: its parts are",
        ],
    ),
    (
        "ci_runs_what_the_readme_says",
        &[
            (".ci/run", "cargo fetch\nexec cargo xtask test --install --fast\n"),
            ("README.md", "`cargo test`"),
        ],
        &[".ci/run:1: end with", ".ci/run:1: call cargo once", "README.md:1: show the"],
    ),
    (
        "promises_name_what_holds_them",
        &[
            ("crates/a/src/b.rs", "#[test]\nfn it_holds() {}\nfn nobody() {}"),
            (
                "ARCHITECTURE.md",
                "**Invariant:** a. Held by `b::it_holds`\nand `links_live`.\n\n**Invariant:** b.\n\n\
                 - **Invariant:** c. Held by `nobody`.\n",
            ),
            (
                "SPECIFICATION.md",
                "| promise | held by |\n|---|---|\n| a | `it_holds` |\n| b | |\n| c | \
                 `cargo xtask bench` |\n",
            ),
        ],
        &[
            "ARCHITECTURE.md:4: say which test",
            "ARCHITECTURE.md:6: there is no test, scenario or tidy rule called nobody",
            "SPECIFICATION.md:4: say which test",
        ],
    ),
];

fn found(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let rule = rules().find(|it| it.name == rule).unwrap();
    (rule.check)(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

#[test]
fn the_repository_is_tidy() {
    let tree = Tree::load(&crate::root()).unwrap();
    assert_eq!(report(&findings(&tree)), 0, "the findings are printed above");
}

#[test]
fn each_rule_finds_what_breaks_it_and_nothing_else() {
    for (rule, files, wanted) in CASES {
        let found = found(rule, files);
        let fits = found.len() == wanted.len()
            && found.iter().zip(*wanted).all(|(found, wanted)| found.starts_with(wanted));
        assert!(fits, "{rule} on {files:?}\nfound  {found:#?}\nwanted {wanted:#?}");
    }
}

#[test]
fn every_rule_has_a_case_that_breaks_it_and_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        assert!(names.insert(rule.name), "{} stands twice", rule.name);
        let by_length = ["function_length", "file_length"].contains(&rule.name);
        let is_broken =
            CASES.iter().any(|(name, _, wanted)| *name == rule.name && !wanted.is_empty());
        assert!(is_broken || by_length, "no case breaks {}", rule.name);
    }
}

#[test]
fn lengths_are_held_at_their_limits() {
    let function = |n_lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(n_lines - 2));
    let found_in = |rule: &str, text: &str| found(rule, &[("a.rs", text)]);
    assert_eq!(found_in("function_length", &function(70)), Vec::<String>::new());
    assert_eq!(
        found_in("function_length", &function(71)),
        ["a.rs:1: fn f has 71 lines; 70 is the limit"]
    );
    assert_eq!(found_in("line_length", &"x".repeat(100)), Vec::<String>::new());
    let golden = format!("const A: &str = \"\n{}\n\";", "x".repeat(101));
    assert_eq!(found_in("line_length", &golden), Vec::<String>::new());
    let filled = format!("        r#\"{}\"#,", "x".repeat(101));
    assert_eq!(found_in("line_length", &filled), Vec::<String>::new());
    let two = format!("f(\"{}\", \"b\");", "x".repeat(101));
    assert_eq!(found_in("line_length", &two).len(), 1);

    let file_rule = rules().find(|it| it.name == "file_length").unwrap();
    let weights = [800, 801, 1000, 1001].map(|n_lines| {
        let tree = Tree::of(&[("a.rs", &*"//\n".repeat(n_lines))]);
        (file_rule.check)(&tree).first().map(|it| it.weight)
    });
    use Weight::{Fails, Warns};
    assert_eq!(weights, [None, Some(Warns), Some(Warns), Some(Fails)]);
}
