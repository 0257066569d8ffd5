//! Rules that the compiler does not hold: a table of them, each with its reason.
//!
//! In reading order: how the text is written ([`text`]), which crate and module may name what
//! ([`walls`]), and what the documents promise ([`documents`]).  To add a rule, add a row to one
//! of their tables and a case to `tests.rs`, which fails for a rule that no case breaks.

use std::fmt;

use crate::tree::Tree;

pub mod text;

pub mod walls;

pub mod documents;

/// One thing that must hold.
pub struct Rule {
    /// What a finding and an invariant call it.
    pub name: &'static str,
    /// Why it must.
    pub why: &'static str,
    /// Finds where it does not.
    pub check: fn(&Tree) -> Vec<Finding>,
}

/// Whether a finding stops the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It does.
    Fails,
    /// It is told and passed over.
    Warns,
}

/// One place where a rule does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// What was found and what would be right.
    pub text: String,
    /// Whether it stops the tests.
    pub weight: Weight,
}

impl Finding {
    /// A finding that stops the tests.
    pub fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into(), weight: Weight::Fails }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    text::RULES.iter().chain(walls::RULES).chain(documents::RULES)
}

/// What all rules find, with the rule that found it.
#[must_use]
pub fn findings(tree: &Tree) -> Vec<(&'static Rule, Finding)> {
    rules().flat_map(|rule| (rule.check)(tree).into_iter().map(move |it| (rule, it))).collect()
}

/// Prints `findings`, each rule's reason once, and returns how many stop the tests.
pub fn report(findings: &[(&'static Rule, Finding)]) -> usize {
    for rule in rules() {
        let mut of_rule = findings.iter().filter(|(by, _)| by.name == rule.name).peekable();
        if of_rule.peek().is_none() {
            continue;
        }
        println!("{}: {}", rule.name, rule.why);
        for (_, finding) in of_rule {
            let mark = if finding.weight == Weight::Warns { " (a warning)" } else { "" };
            println!("  {finding}{mark}");
        }
    }
    findings.iter().filter(|(_, it)| it.weight == Weight::Fails).count()
}

#[cfg(test)]
mod tests;
