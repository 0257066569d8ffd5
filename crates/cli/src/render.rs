//! What people and programs see.

pub(crate) mod style;

pub(crate) mod chart;

pub(crate) mod facts;

pub(crate) mod number;

pub(crate) mod pod_map;

pub(crate) mod progress;

pub(crate) mod table;

use std::io::{self, Write as _};

use crate::Globals;
use crate::failure::Outcome;

/// Writes `text` to standard output; colours only reach a terminal that wants them.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes one JSON value and a line's end to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// The outcome; a program that asked for JSON gets an object also where there is nothing else to
/// show.
pub(crate) fn told_as_json(outcome: Outcome, globals: &Globals) -> Outcome {
    if let Err(failure) = &outcome
        && globals.json
        && !failure.is_broken_pipe()
    {
        print(&format!("{}\n", serde_json::json!({ "error": failure.text() })))?;
    }
    outcome
}

/// Writes JSON as a server sent it, ended by one line's end.
pub(crate) fn print_raw(text: &str) -> io::Result<()> {
    print(&line(text.to_owned()))
}

/// `text` ended by exactly one line's end.
pub(crate) fn line(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// At most `n` characters, the last an ellipsis where some are left out.
pub(crate) fn clip(text: &str, n: usize) -> String {
    if text.chars().count() <= n {
        return text.to_owned();
    }
    text.chars().take(n - 1).chain(['…']).collect()
}
