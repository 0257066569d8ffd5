//! Typed access to a TOML tree, with every fault kept at its place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::limits;
use crate::spec::error::{At, Wrong, line_column};
use crate::spec::plant::Named;
use crate::unit::{CentiDb, Span};

/// One table of the file.
#[derive(Clone, Copy)]
pub(super) struct Table<'t> {
    /// As it is written: `[[pod]]`.
    pub(super) name: &'static str,
    /// Where it starts.
    pub(super) at: At,
    items: &'t DeTable<'t>,
}

/// A value and its place.
pub(super) type Placed<T> = (T, At);

/// What has been found wrong so far.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) faults: Vec<(At, Wrong)>,
}

pub(super) fn at<T>(spanned: &Spanned<T>) -> At {
    let span = spanned.span();
    let small = |n: usize| u32::try_from(n).expect("limits keep files below 4 GiB");
    At { start: small(span.start), end: small(span.end) }
}

impl<'t> Table<'t> {
    /// Whether `key` is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.items.contains_key(key)
    }

    /// Where `key` itself stands.
    pub(super) fn key_at(&self, key: &str) -> At {
        self.items.keys().find(|it| it.get_ref() == key).map_or(self.at, at)
    }

    /// Where the value of `key` stands.
    pub(super) fn value_at(&self, key: &str) -> At {
        self.value(key).map_or(self.at, at)
    }

    fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.items.get(key)
    }
}

impl Reader {
    /// Keeps a fault; a file that is wrong all over is not told so a million times.
    pub(super) fn fault(&mut self, at: At, wrong: Wrong) {
        if !self.is_full() {
            self.faults.push((at, wrong));
        }
    }

    /// Whether there are more faults already than will be shown.
    pub(super) fn is_full(&self) -> bool {
        limits::PLANT_ERRORS_MAX < self.faults.len()
    }

    /// Starts on a table: reports the keys that it does not know.
    pub(super) fn open<'t>(
        &mut self,
        name: &'static str,
        at: At,
        items: &'t DeTable<'t>,
        known: &'static [&'static str],
    ) -> Table<'t> {
        for key in items.keys() {
            if !known.contains(&key.get_ref().as_ref()) && !self.is_full() {
                let wrong = Wrong::UnknownKey {
                    key: key.get_ref().to_string(),
                    table: name,
                    near: nearest(key.get_ref(), known),
                    known,
                };
                self.fault(self::at(key), wrong);
            }
        }
        Table { name, at, items }
    }

    /// The text at `key`, if it is there and a text.
    pub(super) fn text<'t>(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
    ) -> Option<Placed<&'t str>> {
        let value = table.value(key)?;
        self.as_text(key, value)
    }

    fn as_text<'t>(
        &mut self,
        key: &str,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<Placed<&'t str>> {
        match value.get_ref() {
            DeValue::String(text) => Some((text.as_ref(), at(value))),
            other => {
                self.wrong_type(key, other, at(value), "a text in quotes");
                None
            }
        }
    }

    /// The text at `key`; its absence is a fault.
    pub(super) fn need_text<'t>(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
        example: &'static str,
    ) -> Option<Placed<&'t str>> {
        if !table.has(key) {
            self.fault(table.at, Wrong::MissingKey { key, table: table.name, example });
        }
        self.text(table, key)
    }

    /// The name or path at `key`, if it is there and fit to be one.
    pub(super) fn name(&mut self, table: &Table<'_>, key: &'static str) -> Option<Named> {
        let placed = self.text(table, key)?;
        self.as_name(key, placed)
    }

    /// The name or path at `key`; its absence is a fault.
    pub(super) fn need_name(
        &mut self,
        table: &Table<'_>,
        key: &'static str,
        example: &'static str,
    ) -> Option<Named> {
        let placed = self.need_text(table, key, example)?;
        self.as_name(key, placed)
    }

    fn as_name(&mut self, key: &'static str, (text, at): Placed<&str>) -> Option<Named> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
        let bare_ends = !text.starts_with('/') && !text.ends_with('/') && !text.contains("//");
        let length_ok = !text.is_empty() && text.len() <= limits::NAME_MAX;
        if !length_ok || !bare_ends || !text.chars().all(is_fit) {
            self.fault(at, Wrong::BadName { key, value: shortened(text) });
            return None;
        }
        Some(Named { name: text.to_owned(), at })
    }

    /// The names in the list at `key`; none where it is not there.
    pub(super) fn names(&mut self, table: &Table<'_>, key: &'static str) -> Vec<Named> {
        let values = self.list(table, key, "a list of names");
        let mut names = Vec::with_capacity(values.len());
        for value in values {
            let placed = self.as_text(key, value);
            names.extend(placed.and_then(|it| self.as_name(key, it)));
        }
        names
    }

    /// One of `words` at `key`, by its place in the list.
    pub(super) fn word(
        &mut self,
        table: &Table<'_>,
        key: &'static str,
        words: &'static [&'static str],
    ) -> Option<usize> {
        let (text, at) = self.text(table, key)?;
        let found = words.iter().position(|it| *it == text);
        if found.is_none() {
            let near = nearest(text, words);
            self.fault(at, Wrong::UnknownWord { key, value: shortened(text), near, known: words });
        }
        found
    }

    /// The whole number at `key` within its bounds.
    pub(super) fn number(
        &mut self,
        table: &Table<'_>,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Option<u64> {
        let value = table.value(key)?;
        let DeValue::Integer(number) = value.get_ref() else {
            self.wrong_type(key, value.get_ref(), at(value), "a whole number");
            return None;
        };
        let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
        let in_range = read.filter(|it| min <= *it && *it <= max);
        if in_range.is_none() {
            self.out_of_range(key, &number.to_string(), at(value), min, max);
        }
        in_range
    }

    /// The decibels at `key`: at most 100, at most two digits after the point.
    pub(super) fn decibel(&mut self, table: &Table<'_>, key: &'static str) -> Option<CentiDb> {
        let value = table.value(key)?;
        let text = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => Cow::from(number.as_str()),
            DeValue::Float(number) => Cow::from(number.as_str()),
            other => {
                self.wrong_type(key, other, at(value), "decibels such as 1.25");
                return None;
            }
        };
        let read = hundredths(&text).filter(|it| *it <= 10_000);
        if read.is_none() {
            let form = "decibels from 0 to 100 with at most two digits after the point";
            let wrong = Wrong::BadForm { key, value: shortened(&text), form };
            self.fault(at(value), wrong);
        }
        read.map(CentiDb::new)
    }

    /// The span of time at `key`.
    pub(super) fn span(&mut self, table: &Table<'_>, key: &'static str) -> Option<Span> {
        let (text, at) = self.text(table, key)?;
        let read = Span::parse(text).ok();
        if read.is_none() {
            let form = "a time such as \"500ms\", \"2s\" or \"15m\"";
            self.fault(at, Wrong::BadForm { key, value: shortened(text), form });
        }
        read
    }

    /// The table at `key`.
    pub(super) fn table<'t>(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Option<Table<'t>> {
        let value = table.value(key)?;
        match value.get_ref() {
            DeValue::Table(items) => Some(self.open(name, at(value), items, known)),
            other => {
                self.wrong_type(key, other, at(value), name);
                None
            }
        }
    }

    /// The tables at `key`, written `[[key]]` or as a list of inline tables.
    pub(super) fn tables<'t>(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
        name: &'static str,
        known: &'static [&'static str],
    ) -> Vec<Table<'t>> {
        let values = self.list(table, key, name);
        let mut tables = Vec::with_capacity(values.len());
        for value in values {
            match value.get_ref() {
                DeValue::Table(items) => tables.push(self.open(name, at(value), items, known)),
                other => self.wrong_type(key, other, at(value), name),
            }
        }
        tables
    }

    fn list<'t>(
        &mut self,
        table: &Table<'t>,
        key: &'static str,
        wanted: &'static str,
    ) -> &'t [Spanned<DeValue<'t>>] {
        let Some(value) = table.value(key) else { return &[] };
        match value.get_ref() {
            DeValue::Array(items) => items,
            other => {
                self.wrong_type(key, other, at(value), wanted);
                &[]
            }
        }
    }

    fn wrong_type(&mut self, key: &str, found: &DeValue<'_>, at: At, wanted: &'static str) {
        let found = match found {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(at, Wrong::WrongType { key: key.to_owned(), found, wanted });
    }

    pub(super) fn out_of_range(&mut self, key: &str, value: &str, at: At, min: u64, max: u64) {
        let wrong = Wrong::OutOfRange {
            key: key.to_owned(),
            value: shortened(value),
            min: min.to_string(),
            max: max.to_string(),
        };
        self.fault(at, wrong);
    }
}

/// Names that must not stand twice.
pub(super) struct Names<'t> {
    what: &'static str,
    text: &'t str,
    seen: BTreeMap<String, At>,
}

impl<'t> Names<'t> {
    pub(super) fn of(what: &'static str, text: &'t str) -> Self {
        Self { what, text, seen: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, reader: &mut Reader, name: &Named) {
        match self.seen.get(&name.name) {
            // Finding a line takes time: none is looked up in vain.
            Some(_) if reader.is_full() => {}
            Some(first) => {
                let first_line = line_column(self.text, first.start as usize).0;
                let (what, name_text) = (self.what, name.name.clone());
                reader.fault(name.at, Wrong::Twice { what, name: name_text, first_line });
            }
            None => {
                self.seen.insert(name.name.clone(), name.at);
            }
        }
    }
}

/// A text as short as a message wants it.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    text.chars().take(MAX).chain(['…']).collect()
}

/// `1.25` as 125: exact, where a binary fraction would not be.
fn hundredths(text: &str) -> Option<u16> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |it: &str| it.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let part = part.trim_end_matches('0');
    let cents = match part.len() {
        0 => 0,
        1 => part.parse::<u16>().ok()? * 10,
        2 => part.parse::<u16>().ok()?,
        _ => return None,
    };
    whole.parse::<u16>().ok()?.checked_mul(100)?.checked_add(cents)
}

/// The one of `known` that a slip of the fingers turns into `word`.
pub(super) fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    nearest_of(word, known.iter().copied())
}

/// As `nearest`, over any names.
pub fn nearest_of<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if LONGEST < word.len() {
        return None;
    }
    let slips_max = 1 + word.len() / 4;
    let ranked = known.filter(|it| it.len() <= LONGEST).map(|it| (distance(word, it), it));
    ranked.filter(|(slips, _)| *slips <= slips_max).min_by_key(|(slips, _)| *slips).map(|it| it.1)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let differ = usize::from(a[i - 1] != b[j - 1]);
            let mut best =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + differ);
            if 1 < i && 1 < j && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
