//! What the documents promise: that their links lead somewhere and their claims are held.

use std::collections::BTreeSet;

use super::{Finding, Rule, rules};
use crate::tree::Tree;

/// Sections that a release may have in CHANGELOG.md.
const CHANGES: [&str; 5] = ["Added", "Changed", "Fixed", "Removed", "Faster"];

/// Sections that a decision has, in this order.
const DECISION_PARTS: [&str; 4] =
    ["Context", "Choice", "What we gave up", "How we would know it was wrong"];

/// What a decision may be.
const DECISION_STATES: [&str; 3] = ["proposed", "accepted", "replaced"];

/// Crates whose every public item is documented.
const CRATES_DOCUMENTED: [&str; 3] = ["model", "stmr", "control"];

/// The rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        name: "libs_begin_with_what_they_are",
        why: "the first lines of a crate say what it is and in which order to read it",
        check: libs_begin_with_what_they_are,
    },
    Rule {
        name: "crates_are_in_architecture",
        why: "a newcomer finds every crate on one map",
        check: crates_are_in_architecture,
    },
    Rule {
        name: "links_live",
        why: "a link that leads nowhere says that nobody reads the page",
        check: links_live,
    },
    Rule {
        name: "changelog_form",
        why: "users read the changelog by release and by kind of change",
        check: changelog_form,
    },
    Rule {
        name: "decisions_are_numbered",
        why: "a decision is cited by its number, so numbers have no gaps and each page its place",
        check: decisions_are_numbered,
    },
    Rule {
        name: "ci_runs_what_the_readme_says",
        why: "who reads the README runs what CI runs; a second command would drift from the first",
        check: ci_runs_what_the_readme_says,
    },
    Rule {
        name: "promises_name_what_holds_them",
        why: "an invariant or a promised number that no test holds is a wish",
        check: promises_name_what_holds_them,
    },
];

fn libs_begin_with_what_they_are(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in tree.crates() {
        let path = format!("crates/{name}/src/lib.rs");
        let Some(text) = tree.text(&path) else { continue };
        if !text.starts_with("//!") {
            findings.push(Finding::new(&path, 1, "begin with `//!` and what the crate is"));
        }
        if CRATES_DOCUMENTED.contains(&name) && !text.contains("#![warn(missing_docs)]") {
            findings.push(Finding::new(&path, 1, "switch on #![warn(missing_docs)]"));
        }
    }
    findings
}

fn crates_are_in_architecture(tree: &Tree) -> Vec<Finding> {
    let map = tree.text("ARCHITECTURE.md").unwrap_or_default();
    let named: BTreeSet<&str> = map
        .match_indices("crates/")
        .map(|(at, it)| &map[at + it.len()..])
        .map(|rest| &rest[..rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())])
        .collect();
    let missing = tree.crates().filter(|it| !named.contains(it));
    missing
        .map(|it| Finding::new("ARCHITECTURE.md", 1, format!("crates/{it} is not in the code map")))
        .collect()
}

fn links_live(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        let folder = path.rsplit_once('/').map_or("", |it| it.0);
        for (line, target) in links(text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let is_elsewhere = file.contains("://") || file.starts_with("mailto:");
            if is_elsewhere {
                continue;
            }
            let Some(at) = resolve(folder, file, path) else {
                findings.push(Finding::new(path, line, format!("{target} leaves the repository")));
                continue;
            };
            if !tree.has(&at) {
                findings.push(Finding::new(path, line, format!("{target} leads nowhere")));
            } else if !anchor.is_empty() && at.ends_with(".md") {
                let text = tree.text(&at).unwrap_or_default();
                if !headings(text).any(|it| slug(it) == anchor) {
                    let text = format!("{at} has no heading that reads #{anchor}");
                    findings.push(Finding::new(path, line, text));
                }
            }
        }
    }
    findings
}

fn changelog_form(tree: &Tree) -> Vec<Finding> {
    let path = "CHANGELOG.md";
    let Some(text) = tree.text(path) else {
        return vec![Finding::new(path, 1, "there is no changelog")];
    };
    let mut findings = Vec::new();
    let mut find = |line, text: &str| findings.push(Finding::new(path, line, text));
    if text.lines().next() != Some("# Changelog") {
        find(1, "begin with `# Changelog`");
    }
    let mut last: Option<(usize, &str)> = None;
    let mut releases = 0;
    for (line, text) in text.lines().enumerate().map(|(idx, text)| (idx + 1, text)) {
        if let Some(title) = text.strip_prefix("## ") {
            if releases == 0 && title != "Unreleased" {
                find(line, "the first release is `## Unreleased`");
            }
            if releases != 0 && !is_release(title) {
                find(line, "a release reads `## 1.2.3 - 2026-01-31`");
            }
            releases += 1;
        } else if let Some(kind) = text.strip_prefix("### ") {
            if !CHANGES.contains(&kind) {
                find(line, &format!("a change is one of {}", CHANGES.join(", ")));
            }
            if let Some((line, _)) = last.filter(|(_, it)| it.starts_with("### ")) {
                find(line, "nothing stands under this heading");
            }
        } else if releases != 0 && !text.is_empty() {
            let is_item = text.starts_with("- ") || text.starts_with("  ");
            if !is_item {
                find(line, "a change is a `- ` item, its further lines indented by two");
            }
        }
        if !text.is_empty() {
            last = Some((line, text));
        }
    }
    if let Some((line, _)) = last.filter(|(_, it)| it.starts_with("### ")) {
        find(line, "nothing stands under this heading");
    }
    findings
}

fn decisions_are_numbered(tree: &Tree) -> Vec<Finding> {
    const FOLDER: &str = "docs/decisions/";
    const INDEX: &str = "docs/decisions/README.md";
    let index = tree.text(INDEX).unwrap_or_default();
    let pages = tree.texts().filter(|(path, _)| path.starts_with(FOLDER) && *path != INDEX);
    let mut findings = Vec::new();
    for (idx, (path, text)) in pages.enumerate() {
        let name = path.strip_prefix(FOLDER).expect("pages lie in the folder");
        let wanted = format!("{:04}-", idx + 1);
        if !name.starts_with(&wanted) || !name.ends_with(".md") {
            findings.push(Finding::new(path, 1, format!("the next page is {wanted}….md")));
        }
        if !links(index).any(|(_, target)| target == name) {
            findings.push(Finding::new(INDEX, 1, format!("{name} is not in the index")));
        }
        let state = text.lines().find_map(|it| it.strip_prefix("Status: ")).unwrap_or_default();
        if !DECISION_STATES.iter().any(|it| state.starts_with(it)) {
            let text = format!("say `Status: ` and one of {}", DECISION_STATES.join(", "));
            findings.push(Finding::new(path, 1, text));
        }
        let parts: Vec<&str> = text.lines().filter_map(|it| it.strip_prefix("## ")).collect();
        if parts != DECISION_PARTS {
            let text = format!("its parts are {}", DECISION_PARTS.join(", "));
            findings.push(Finding::new(path, 1, text));
        }
    }
    findings
}

fn ci_runs_what_the_readme_says(tree: &Tree) -> Vec<Finding> {
    const COMMAND: &str = "cargo xtask test --install";
    let mut findings = Vec::new();
    let run = tree.text(".ci/run").unwrap_or_default();
    let code = run.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    if code.clone().next_back() != Some(&*format!("exec {COMMAND}")) {
        findings.push(Finding::new(".ci/run", 1, format!("end with `exec {COMMAND}`")));
    }
    if code.filter(|it| it.contains("cargo ")).count() != 1 {
        findings.push(Finding::new(".ci/run", 1, "call cargo once"));
    }
    let readme = tree.text("README.md").unwrap_or_default();
    if !readme.lines().any(|it| it.starts_with(COMMAND)) {
        findings.push(Finding::new("README.md", 1, format!("show the command `{COMMAND}`")));
    }
    findings
}

fn promises_name_what_holds_them(tree: &Tree) -> Vec<Finding> {
    let mut known: BTreeSet<&str> = rules().map(|it| it.name).collect();
    for (path, source) in tree.sources() {
        // A scenario of the bench holds a promise as a test does; another function does not.
        let is_bench = path.contains("/benches/");
        let holders = source.functions.iter().filter(|it| it.is_test || is_bench);
        known.extend(holders.map(|it| it.name.as_str()));
    }
    let mut findings = Vec::new();
    let mut check = |path: &str, line, holders: &str| {
        let names: Vec<&str> = code_spans(holders).collect();
        if names.is_empty() {
            findings.push(Finding::new(path, line, "say which test holds it, in `backticks`"));
        }
        for name in names {
            let last = name.rsplit("::").next().unwrap_or(name);
            // A command is followed by the name of what it runs.
            if !name.starts_with("cargo xtask ") && !known.contains(last) {
                let text = format!("there is no test, scenario or tidy rule called {name}");
                findings.push(Finding::new(path, line, text));
            }
        }
    };
    let architecture = tree.text("ARCHITECTURE.md").unwrap_or_default();
    for (line, text) in invariants(architecture) {
        let holders = text.rsplit_once("Held by").map_or("", |it| it.1);
        check("ARCHITECTURE.md", line, holders);
    }
    let specification = tree.text("SPECIFICATION.md").unwrap_or_default();
    let rows = specification.lines().enumerate().filter(|(_, it)| it.starts_with('|'));
    for (idx, row) in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let is_head = cells.first() == Some(&"promise") || row.starts_with("|-");
        if !is_head {
            check("SPECIFICATION.md", idx + 1, cells.last().copied().unwrap_or_default());
        }
    }
    findings
}

/// Each paragraph or item that begins with `**Invariant:**`, with the line it starts on.
fn invariants(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (idx, line) in text.lines().enumerate() {
        if line.trim_start_matches("- ").starts_with("**Invariant:**") {
            found.push((idx + 1, line.to_owned()));
            is_open = true;
        } else if line.is_empty() || line.starts_with("- ") || line.starts_with('#') {
            is_open = false;
        } else if is_open && let Some((_, text)) = found.last_mut() {
            text.push(' ');
            text.push_str(line);
        }
    }
    found
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The targets of Markdown links, but for those in code and comments.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_hidden = false;
    text.lines().enumerate().flat_map(move |(idx, line)| {
        let is_fence = line.trim_start().starts_with("```");
        let opens = line.contains("<!--");
        let shown = !is_hidden && !is_fence && !opens;
        if is_fence {
            is_hidden = !is_hidden;
        }
        is_hidden = (is_hidden || opens) && !line.contains("-->");
        let found = if shown { link_targets(line) } else { Vec::new() };
        found.into_iter().map(move |it| (idx + 1, it))
    })
}

fn link_targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_code = false;
    let mut after_text = false;
    let mut start = 0;
    for (at, c) in line.char_indices() {
        match c {
            '`' => is_code = !is_code,
            '(' if after_text && !is_code => start = at + 1,
            ')' if start != 0 => {
                found.push(&line[start..at]);
                start = 0;
            }
            _ => {}
        }
        after_text = c == ']';
    }
    found
}

/// Where `file` lies when a page in `folder` names it; none if outside the repository.
fn resolve(folder: &str, file: &str, page: &str) -> Option<String> {
    if file.is_empty() {
        return Some(page.to_owned());
    }
    let mut at: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for step in file.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                at.pop()?;
            }
            name => at.push(name),
        }
    }
    Some(at.join("/"))
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|it| it.starts_with('#')).map(|it| it.trim_start_matches('#').trim())
}

/// What a heading is called in a link.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn is_release(title: &str) -> bool {
    let Some((version, date)) = title.split_once(" - ") else { return false };
    let numbers = |text: &str, by: char, widths: &[usize]| {
        let parts: Vec<&str> = text.split(by).collect();
        let is_number = |it: &str| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit());
        parts.len() == 3
            && parts.iter().all(|it| is_number(it))
            && parts.iter().zip(widths).all(|(it, width)| it.len() == *width)
    };
    numbers(version, '.', &[]) && numbers(date, '-', &[4, 2, 2])
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}
