//! Aligned tables.

use std::fmt::{self, Write as _};

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use crate::render::style;

/// To which side a column is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One field of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

/// Rows under a head, each column as wide as its widest field.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    /// Each as long as `columns`.
    rows: Vec<Vec<Cell>>,
}

impl Cell {
    /// A field in the colour of its meaning.
    pub(crate) fn styled(text: impl ToString, style: Style) -> Self {
        Self { text: one_line(text.to_string()), style }
    }
}

/// A line that ends within a field would look like a row.
pub(crate) fn one_line(text: String) -> String {
    if text.contains('\n') { text.replace('\n', "\\n") } else { text }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, style::PLAIN)
    }
}

impl Table {
    /// A table without rows.  A name that starts with `>` stands over numbers.
    pub(crate) fn new(names: &[&str]) -> Self {
        let column = |name: &&str| match name.strip_prefix('>') {
            Some(name) => (name.to_owned(), Align::Right),
            None => ((*name).to_owned(), Align::Left),
        };
        Self { columns: names.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds one row.
    ///
    /// # Panics
    /// If it does not have as many fields as there are columns.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.row_of(cells.into());
    }

    /// The same for a table whose width is known only when it is made.
    ///
    /// # Panics
    /// As [`Table::row`].
    pub(crate) fn row_of(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "fields of a row");
        self.rows.push(cells);
    }
}

const GAP: &str = "  ";

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head: Vec<Cell> =
            self.columns.iter().map(|(name, _)| Cell::styled(name, style::FAINT)).collect();
        let lines = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].text.width()).max();
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
        for row in lines() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.text.width());
                let styled = format!("{}{}{:#}", cell.style, cell.text, cell.style);
                let is_last = column + 1 == row.len();
                match self.columns[column].1 {
                    Align::Right => write!(line, "{pad}{styled}")?,
                    // Nothing is padded up to the edge: lines do not end in blanks.
                    Align::Left if is_last => line.push_str(&styled),
                    Align::Left => write!(line, "{styled}{pad}")?,
                }
                if !is_last {
                    line.push_str(GAP);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &Table, expected: &expect_test::Expect) {
        expected.assert_eq(&anstream::adapter::strip_str(&table.to_string()).to_string());
    }

    #[test]
    fn numbers_go_right_words_go_left_and_lines_end_in_no_blanks() {
        let mut table = Table::new(&["name", ">chips", "state"]);
        table.row(["train".into(), 4096.into(), Cell::styled("running", style::GOOD)]);
        table.row(["a".into(), 1.into(), "".into()]);
        check(
            &table,
            &expect_test::expect![[r#"
                name   chips  state
                train   4096  running
                a          1
            "#]],
        );
    }

    #[test]
    fn wide_characters_count_as_two() {
        let mut table = Table::new(&["name", "state"]);
        table.row(["训练".into(), "running".into()]);
        table.row(["abcde".into(), "queued".into()]);
        check(
            &table,
            &expect_test::expect![[r#"
                name   state
                训练   running
                abcde  queued
            "#]],
        );
    }
}
