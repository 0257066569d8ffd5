//! Which crate and which module may name what (DESIGN: a crate is a wall, a module a room).

use std::collections::BTreeMap;

use super::{Finding, Rule};
use crate::source::Named;
use crate::tree::Tree;

/// Crates that are told everything and do nothing themselves.
const CRATES_NO_IO: [&str; 6] = ["model", "family", "collective", "control", "sim", "stmr"];

/// What those may not name outside their tests, and why.
const FORBIDDEN: [(Name, &str); 15] = [
    (Name::Path("std::net"), "a socket: let driver or server hold it"),
    (Name::Path("std::fs"), "a file: take its text"),
    (Name::Path("std::env"), "the surroundings: take them as parameters"),
    (Name::Path("std::process"), "a process: let driver hold it"),
    (Name::Path("std::thread"), "a thread: the caller has them"),
    (Name::Path("std::time"), "a clock: take `now: Moment`"),
    (Name::Word("Instant"), "a clock: take `now: Moment`"),
    (Name::Word("SystemTime"), "a clock: take `now: Moment`"),
    (Name::Word("HashMap"), "an order that differs from run to run: use BTreeMap or IdVec"),
    (Name::Word("HashSet"), "an order that differs from run to run: use BTreeSet"),
    (Name::Crate("rand"), "dice of nobody's seed: take a Dice"),
    (Name::Crate("getrandom"), "dice of nobody's seed: take a Dice"),
    (Name::Crate("tokio"), "a runtime: only server and driver have one"),
    (Name::Crate("tracing"), "a log: return a Note"),
    (Name::Crate("chrono"), "a calendar and a clock: take `now: Moment`"),
];

/// Crates whose results a digest covers.
const CRATES_DIGESTED: [&str; 4] = ["model", "family", "control", "sim"];

/// Methods of std whose last bits are the platform's.
const METHODS_INEXACT: [&str; 19] = [
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "powf", "powi", "cbrt", "hypot",
    "sin", "cos", "tan", "sin_cos", "asin", "acos", "atan", "atan2",
];

/// Crates that speak HTTP.
const HTTP: [&str; 11] = [
    "axum",
    "h2",
    "http",
    "http_body",
    "http_body_util",
    "hyper",
    "hyper_util",
    "reqwest",
    "tower",
    "tower_http",
    "ureq",
];

/// Who may name which of them: the server all, the command line's client what it asks with, and the
/// tests that ask as programs of others do.
const MAY_NAME_HTTP: [(&str, &[&str]); 4] = [
    ("crates/server/", &HTTP),
    ("crates/cli/src/client", &["ureq", "http"]),
    ("crates/cli/tests/operate/", &["ureq"]),
    ("crates/cli/Cargo.toml", &["ureq"]),
];

/// The kinds of machines in crates/family.
const FAMILIES: [&str; 6] = ["torus", "board", "clos", "hypersquare", "host", "hosts"];

/// The rooms in crates/family that all families use and that know none.
const FAMILIES_SHARED: [&str; 3] = ["grid", "graph", "cluster"];

/// Crates whose modules look only backwards in the order of their lib.rs.
const CRATES_ORDERED: [&str; 2] = ["model", "control"];

/// The only place for unsafe code: the library that C calls and that calls C.
const UNSAFE: &str = "crates/stmr-mpi/";

/// The rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        name: "no_io_in_the_core",
        why: "what the core does must follow from its inputs alone, or no run can be repeated",
        check: no_io_in_the_core,
    },
    Rule {
        name: "no_inexact_functions",
        why: "std leaves the last bits of exp, ln, powf and sin to the platform; draw through libm",
        check: no_inexact_functions,
    },
    Rule {
        name: "only_the_server_names_http",
        why: "the core and the drivers serve any shell; one crate knows how the web asks",
        check: only_the_server_names_http,
    },
    Rule {
        name: "families_do_not_know_each_other",
        why: "families meet in model::Fabric; one that reads another is not a family",
        check: families_do_not_know_each_other,
    },
    Rule {
        name: "unsafe_in_one_crate",
        why: "what the compiler cannot check is read with care, in one place",
        check: unsafe_in_one_crate,
    },
    Rule {
        name: "modules_look_backwards",
        why: "modules stand in reading order: a room is understood from those before it",
        check: modules_look_backwards,
    },
];

/// How a forbidden thing is named.
#[derive(Clone, Copy)]
enum Name {
    /// Itself and everything below it.
    Path(&'static str),
    /// This word anywhere in a path.
    Word(&'static str),
    /// Anything in this crate.
    Crate(&'static str),
}

impl Name {
    fn is_in(self, path: &str) -> bool {
        match self {
            Self::Path(it) => path.strip_prefix(it).is_some_and(is_end),
            Self::Word(it) => path.split("::").any(|word| word == it),
            Self::Crate(it) => path.strip_prefix(it).is_some_and(|rest| rest.starts_with("::")),
        }
    }
}

fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with("::")
}

fn no_io_in_the_core(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, named) in paths_outside_tests(tree, &CRATES_NO_IO) {
        if let Some((_, why)) = FORBIDDEN.iter().find(|(it, _)| it.is_in(&named.text)) {
            findings.push(Finding::new(path, named.line, format!("{} is {why}", named.text)));
        }
    }
    findings
}

fn no_inexact_functions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| is_inside(path, &CRATES_DIGESTED)) {
        let methods = source.methods.iter().filter(|it| !it.in_test);
        for named in methods.filter(|it| METHODS_INEXACT.contains(&&*it.text)) {
            let text = format!(".{}() is not the same everywhere; use libm", named.text);
            findings.push(Finding::new(path, named.line, text));
        }
        for named in source.paths.iter().filter(|it| !it.in_test) {
            let name = named.text.strip_prefix("f64::").or(named.text.strip_prefix("f32::"));
            if name.is_some_and(|it| METHODS_INEXACT.contains(&it)) {
                let text = format!("{} is not the same everywhere; use libm", named.text);
                findings.push(Finding::new(path, named.line, text));
            }
        }
    }
    findings
}

fn only_the_server_names_http(tree: &Tree) -> Vec<Finding> {
    let may = |path: &str, name: &str| {
        MAY_NAME_HTTP.iter().any(|(by, names)| path.starts_with(by) && names.contains(&name))
    };
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for named in &source.paths {
            let first = named.text.split("::").next().unwrap_or_default();
            let is_crate = named.text != first && HTTP.contains(&first);
            if is_crate && !may(path, first) {
                let text = format!("{} speaks HTTP; only crates/server may", named.text);
                findings.push(Finding::new(path, named.line, text));
            }
        }
    }
    for name in tree.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let text = tree.text(&path).unwrap_or_default();
        for wanted in dependencies(text) {
            let wanted = wanted.replace('-', "_");
            if HTTP.contains(&&*wanted) && !may(&path, &wanted) {
                let text = format!("{wanted} speaks HTTP; only crates/server may");
                findings.push(Finding::new(&path, 1, text));
            }
        }
    }
    findings
}

fn unsafe_in_one_crate(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| !path.starts_with(UNSAFE)) {
        for named in source.paths.iter().filter(|it| it.text == "unsafe") {
            let text = format!("unsafe code stands in {UNSAFE} alone");
            findings.push(Finding::new(path, named.line, text));
        }
    }
    findings
}

fn families_do_not_know_each_other(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let Some(own) = room_of(path, "family") else { continue };
        if !FAMILIES.contains(&own) && !FAMILIES_SHARED.contains(&own) {
            continue;
        }
        for named in &source.paths {
            let Some(other) = room_named(path, &named.text, "selvedge_family") else { continue };
            if other != own && FAMILIES.contains(&other) {
                let text = format!("{own} names {}; let both meet in the fabric", named.text);
                findings.push(Finding::new(path, named.line, text));
            }
        }
    }
    findings
}

fn modules_look_backwards(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in CRATES_ORDERED {
        let Some(lib) = tree.source(&format!("crates/{name}/src/lib.rs")) else { continue };
        let order: BTreeMap<&str, usize> =
            lib.modules.iter().enumerate().map(|(idx, it)| (it.as_str(), idx)).collect();
        for (path, source) in tree.sources() {
            let Some(own) = room_of(path, name) else { continue };
            let Some(own_idx) = order.get(own) else { continue };
            for named in source.paths.iter().filter(|it| !it.in_test && !is_test_file(path)) {
                let this = format!("selvedge_{name}");
                let Some(other) = room_named(path, &named.text, &this) else { continue };
                if order.get(other).is_some_and(|other_idx| own_idx < other_idx) {
                    let text = format!("{own} names {}, which comes later in lib.rs", named.text);
                    findings.push(Finding::new(path, named.line, text));
                }
            }
        }
    }
    findings
}

/// The crate that `path` lies in.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

fn is_inside(path: &str, crates: &[&str]) -> bool {
    let in_src = crate_of(path).is_some_and(|it| {
        crates.contains(&it) && path["crates/".len() + it.len()..].starts_with("/src/")
    });
    in_src && !is_test_file(path)
}

/// Whether only tests compile `path`: tests may read files and count in any order.
fn is_test_file(path: &str) -> bool {
    path.split('/').any(|it| ["tests", "benches", "tests.rs", "testing.rs"].contains(&it))
}

/// The top module that `path` belongs to in the crate `name`.
fn room_of<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix("crates/")?.strip_prefix(name)?.strip_prefix("/src/")?;
    let first = rest.split('/').next()?;
    let room = first.strip_suffix(".rs").unwrap_or(first);
    (room != "lib" && room != "main").then_some(room)
}

/// The top module that `named` reaches into from the file at `path`.
fn room_named<'a>(path: &str, named: &'a str, own_crate: &str) -> Option<&'a str> {
    let (first, rest) = named.split_once("::")?;
    // In `src/a.rs` the crate's root is `super`.
    let is_at_top = path.split('/').count() == 4;
    let from_root = first == "crate" || first == own_crate || (first == "super" && is_at_top);
    from_root.then(|| rest.split("::").next().unwrap_or(rest))
}

fn paths_outside_tests<'a>(
    tree: &'a Tree,
    crates: &'a [&str],
) -> impl Iterator<Item = (&'a str, &'a Named)> {
    let sources = tree.sources().filter(|(path, _)| is_inside(path, crates));
    sources.flat_map(|(path, source)| {
        source.paths.iter().filter(|it| !it.in_test).map(move |it| (path, it))
    })
}

/// What a manifest says that a crate needs, outside its tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let Ok(table) = manifest.parse::<toml::Table>() else { return Vec::new() };
    let wanted = table.get("dependencies").and_then(toml::Value::as_table);
    wanted.map(|it| it.keys().cloned().collect()).unwrap_or_default()
}
