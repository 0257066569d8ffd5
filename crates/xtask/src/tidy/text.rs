//! How the text is written: lengths, and words that may not stay.

use super::{Finding, Rule, Weight};
use crate::tree::Tree;

const COLUMNS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_WARN: usize = 800;
const FILE_LINES_MAX: usize = 1000;

/// Macros that mark a place as unfinished.
const MACROS_UNFINISHED: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Words that mark a place as unfinished, put together here so that this file holds none.
const WORD_BROKEN: &str = concat!("FIX", "ME");
const WORD_OWED: &str = concat!("TO", "DO");

/// Where a developer's own files lie.
const PLACES_OWN: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

/// STYLE.md names the words that it forbids.
const MAY_NAME_WORDS: [&str; 1] = ["STYLE.md"];

/// The rules of this file.
pub const RULES: &[Rule] = &[
    Rule {
        name: "rust_reads",
        why: "a file that does not read as Rust hides from every other rule",
        check: rust_reads,
    },
    Rule {
        name: "line_length",
        why: "two files fit side by side (texts that span lines or fill one are data and free)",
        check: line_length,
    },
    Rule {
        name: "function_length",
        why: "a function of 70 lines fits a screen: push `if` up, `for` down, helpers below",
        check: function_length,
    },
    Rule {
        name: "file_length",
        why: "a file is read from top to bottom: beyond 800 lines it is two things",
        check: file_length,
    },
    Rule {
        name: "nothing_unfinished",
        why: "what is not done has an issue with a number, not a word in the code",
        check: nothing_unfinished,
    },
    Rule {
        name: "no_own_paths",
        why: "the repository works wherever it is checked out",
        check: no_own_paths,
    },
    Rule {
        name: "no_climbing",
        why: "`super::super` and preludes hide where a name comes from: write `crate::…`",
        check: no_climbing,
    },
];

fn rust_reads(tree: &Tree) -> Vec<Finding> {
    let text = "this is not Rust from here on; close what is open";
    tree.unread().map(|(path, line)| Finding::new(path, line, text)).collect()
}

fn line_length(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let is_held = path.ends_with(".rs") || path == ".ci/run";
        if !is_held {
            continue;
        }
        let texts = tree.source(path).map_or(&[][..], |it| &it.texts);
        for (line, row) in text.lines().enumerate() {
            let (line, n_columns) = (line + 1, row.chars().count());
            let is_data = texts.iter().any(|it| it.0 <= line && line <= it.1) || is_one_text(row);
            if COLUMNS_MAX < n_columns && !is_data {
                let text = format!("{n_columns} columns; {COLUMNS_MAX} is the limit");
                findings.push(Finding::new(path, line, text));
            }
        }
    }
    findings
}

/// Whether a line holds one text and nothing else: the golden of a message on one line.
fn is_one_text(row: &str) -> bool {
    let row = row.trim().trim_end_matches([',', ')', ']']);
    let raw = row.strip_prefix("r#\"").and_then(|it| it.strip_suffix("\"#"));
    let plain = row.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    raw.or(plain).is_some_and(|inner| raw.is_some() || !inner.contains('"'))
}

fn function_length(tree: &Tree) -> Vec<Finding> {
    let long = |path, source: &crate::source::Source| -> Vec<Finding> {
        let long = source.functions.iter().filter(|it| FUNCTION_LINES_MAX < it.n_lines);
        long.map(|it| {
            let text = format!("fn {} has {} lines", it.name, it.n_lines);
            Finding::new(path, it.line, format!("{text}; {FUNCTION_LINES_MAX} is the limit"))
        })
        .collect()
    };
    tree.sources().flat_map(|(path, source)| long(path, source)).collect()
}

fn file_length(tree: &Tree) -> Vec<Finding> {
    let rust = tree.texts().filter(|(path, _)| path.ends_with(".rs"));
    rust.filter_map(|(path, text)| {
        let n_lines = text.lines().count();
        let weight = if FILE_LINES_MAX < n_lines { Weight::Fails } else { Weight::Warns };
        let text = format!("{n_lines} lines; {FILE_LINES_WARN} is enough, {FILE_LINES_MAX} fails");
        (FILE_LINES_WARN < n_lines).then(|| Finding { weight, ..Finding::new(path, n_lines, text) })
    })
    .collect()
}

fn nothing_unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !MAY_NAME_WORDS.contains(path)) {
        for (line, text) in numbered(text) {
            if text.contains(WORD_BROKEN) {
                findings.push(Finding::new(path, line, format!("{WORD_BROKEN}: mend it")));
            }
            let owed = text.match_indices(WORD_OWED).any(|(at, _)| {
                let rest = &text[at + WORD_OWED.len()..];
                !rest.starts_with("(#") && !rest.starts_with(|c: char| c.is_alphanumeric())
            });
            if owed {
                let text = format!("{WORD_OWED} without an issue; write {WORD_OWED}(#n)");
                findings.push(Finding::new(path, line, text));
            }
        }
    }
    for (path, source) in tree.sources() {
        let left = source.macros.iter().filter(|it| MACROS_UNFINISHED.contains(&&*it.text));
        findings.extend(left.map(|it| {
            Finding::new(path, it.line, format!("{}! is for the desk, not for the tree", it.text))
        }));
    }
    findings
}

fn no_own_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (line, text) in numbered(text) {
            for place in PLACES_OWN {
                // `a/work/b` is a place in something else; only a path from the root is one's own.
                let is_own = text.match_indices(place).any(|(at, _)| {
                    let before = text[..at].chars().next_back();
                    before.is_none_or(|c| !(c.is_alphanumeric() || ".-_}$~*)".contains(c)))
                });
                if is_own {
                    let text = format!("{place} is a place of one machine; take it as a parameter");
                    findings.push(Finding::new(path, line, text));
                }
            }
        }
    }
    findings
}

fn no_climbing(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for named in &source.paths {
            if named.text.starts_with("super::super") {
                let text = format!("{} climbs twice; write crate::…", named.text);
                findings.push(Finding::new(path, named.line, text));
            }
        }
        if source.modules.iter().any(|it| it == "prelude") {
            findings.push(Finding::new(path, 1, "a prelude; let each file name what it uses"));
        }
    }
    findings
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(idx, line)| (idx + 1, line))
}
