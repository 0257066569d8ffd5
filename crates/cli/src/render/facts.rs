//! A page of facts: a title, named facts under it, lists under those.

use std::fmt;

use crate::render::style;
use crate::render::table::one_line;

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
        self.facts.push((name, one_line(text.into())));
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

#[cfg(test)]
mod tests {
    use super::*;

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
