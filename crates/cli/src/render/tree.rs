//! Pages of facts, and anything that JSON holds as an indented list.

use std::fmt;

use serde_json::Value;

use crate::render::style;

/// A title and facts under it, their names aligned.
#[derive(Debug)]
pub(crate) struct Facts {
    title: String,
    facts: Vec<(&'static str, String)>,
    lists: Vec<(&'static str, Vec<String>)>,
}

impl Facts {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), facts: Vec::new(), lists: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &'static str, text: impl Into<String>) {
        self.facts.push((name, text.into()));
    }

    /// Lines below all facts; nothing where there are none.
    pub(crate) fn add_list(&mut self, name: &'static str, lines: Vec<String>) {
        if !lines.is_empty() {
            self.lists.push((name, lines));
        }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faint = style::FAINT;
        writeln!(f, "{}", self.title)?;
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, text) in &self.facts {
            writeln!(f, "  {faint}{name:width$}{faint:#}  {text}")?;
        }
        for (name, lines) in &self.lists {
            writeln!(f, "\n{faint}{name}{faint:#}")?;
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}

/// `value` as an indented list, one name or item a line.
pub(crate) fn of_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(&mut text, value, 1);
    text
}

fn write_json(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('_', " ");
                match leaf(value) {
                    Some(leaf) => text.push_str(&format!("{indent}{name}: {leaf}\n")),
                    None => {
                        text.push_str(&format!("{indent}{name}:\n"));
                        write_json(text, value, depth + 1);
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match leaf(item) {
                    Some(leaf) => text.push_str(&format!("{indent}- {leaf}\n")),
                    None => {
                        let mut inner = String::new();
                        write_json(&mut inner, item, depth + 1);
                        // The first field stands beside the dash.
                        inner.replace_range(0..indent.len() + 2, &format!("{indent}- "));
                        text.push_str(&inner);
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&format!("{indent}{}\n", leaf(value).unwrap_or_default()));
        }
    }
}

/// What fits on one line: anything without an inner structure.
fn leaf(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("none".to_owned()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Object(fields) if fields.is_empty() => Some("none".to_owned()),
        Value::Array(items) => {
            let leaves: Option<Vec<String>> = items
                .iter()
                .map(|it| leaf(it).filter(|_| !it.is_array() && !it.is_object()))
                .collect();
            leaves.map(|it| it.join(" ")).filter(|it| it.len() <= LINE_MAX)
        }
        Value::Object(_) => None,
    }
}

/// The longest list that stays on one line.
const LINE_MAX: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_an_indented_list() {
        let value = serde_json::json!({
            "waits_for": ["cube1", "cube2"],
            "steps": [{"drain": "cube17", "at": 3}, {"free": {"job": 7, "ends_s": null}}],
            "held": false,
        });
        expect_test::expect![[r#"
            why
              held: no
              steps:
                - at: 3
                  drain: cube17
                - free:
                    ends s: none
                    job: 7
              waits for: cube1 cube2
        "#]]
        .assert_eq(&format!("why\n{}", of_json(&value)));
    }

    #[test]
    fn facts_are_aligned_under_their_title() {
        let mut facts = Facts::new("job 7");
        facts.add("on", "cube1 cube2");
        facts.add("priority", "3");
        facts.add_list("timeline", vec!["0s submitted".to_owned()]);
        facts.add_list("nothing", Vec::new());
        let text = anstream::adapter::strip_str(&facts.to_string()).to_string();
        expect_test::expect![[r#"
            job 7
              on        cube1 cube2
              priority  3

            timeline
              0s submitted
        "#]]
        .assert_eq(&text);
    }
}
