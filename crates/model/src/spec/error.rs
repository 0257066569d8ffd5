//! What can be wrong with a plant file, and how it is shown at its place.

use std::fmt::{self, Write as _};

use crate::limits;
use crate::unit::Length;

/// A place in a file, in bytes.  Two places are always equal: where a thing stands is no part of
/// what it is.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl At {
    /// The place of what was not read from a file.
    pub const NOWHERE: Self = Self { start: 0, end: 0 };

    /// Its line and column in `text`, from 1 on; the column counts characters.
    pub fn line_column(self, text: &str) -> (u32, u32) {
        line_column(text, self.start as usize)
    }

    /// Whether it was not read from a file.
    pub const fn is_nowhere(self) -> bool {
        self.end == 0
    }
}

impl PartialEq for At {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for At {}

/// What is wrong.  Its text says what, [`Wrong::right`] says what would be right.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Wrong {
    /// Not TOML.
    #[error("this is not TOML: {message}")]
    Syntax {
        /// What the TOML reader said.
        message: String,
    },
    /// A text value without its quotes.
    #[error("{word} stands without quotes")]
    Unquoted {
        /// Whose value it is.
        key: String,
        /// As written.
        word: String,
    },
    /// More text than any plant needs.
    #[error("the file has {bytes} bytes")]
    FileTooLong {
        /// How many.
        bytes: usize,
    },
    /// `format` is missing.
    #[error("the file does not say which format it has")]
    NoFormat,
    /// Written for a later version.
    #[error("format {found} is newer than this version reads")]
    FormatTooNew {
        /// What the file says.
        found: String,
    },
    /// A key that the table does not know.
    #[error("unknown key {key:?} in {table}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The table, as it is written.
        table: &'static str,
        /// The known key that looks most like it.
        near: Option<&'static str>,
        /// All known keys.
        known: &'static [&'static str],
    },
    /// A key that another family has.
    #[error("{key:?} says nothing of a pod of family {family}")]
    KeyOfOtherFamily {
        /// The key.
        key: &'static str,
        /// The pod's family.
        family: &'static str,
        /// Which keys it has.
        known: &'static [&'static str],
    },
    /// A key without which the table says nothing.
    #[error("{table} has no {key}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The table, as it is written.
        table: &'static str,
        /// A line that would do.
        example: &'static str,
    },
    /// A value of another type.
    #[error("{key} is {found}")]
    WrongType {
        /// The key.
        key: String,
        /// What it is.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// A number beyond its bounds.
    #[error("{key} = {value} is out of range")]
    OutOfRange {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The least.
        min: String,
        /// The most.
        max: String,
    },
    /// A word that is none of the known ones.
    #[error("unknown {key} {value:?}")]
    UnknownWord {
        /// The key.
        key: &'static str,
        /// The word.
        value: String,
        /// The known word that looks most like it.
        near: Option<&'static str>,
        /// All known words.
        known: &'static [&'static str],
    },
    /// A name that cannot stand in a path.
    #[error("{key} {value:?} is not a name")]
    BadName {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
    },
    /// A value that cannot be read.
    #[error("{key} {value:?} cannot be read")]
    BadForm {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// What it should look like.
        form: &'static str,
    },
    /// A cube that stands twice in a list.
    #[error("cube {slot} is deployed twice")]
    SlotTwice {
        /// The slot.
        slot: u16,
    },
    /// A cube beyond the slots.
    #[error("cube {slot} is deployed, but the pod has {cubes} slots")]
    SlotBeyond {
        /// The slot.
        slot: u16,
        /// How many slots there are.
        cubes: u16,
    },
    /// A name that stands twice.
    #[error("{what} {name:?} stands twice; the first is in line {first_line}")]
    Twice {
        /// What it names.
        what: &'static str,
        /// The name.
        name: String,
        /// Where the first stands.
        first_line: u32,
    },
    /// A port with two cables.
    #[error("port {port} is cabled twice: in line {first_line} and in line {line}")]
    CabledTwice {
        /// The port's path.
        port: String,
        /// Where the first cable stands.
        first_line: u32,
        /// Where the second stands.
        line: u32,
    },
    /// A cable from a port to itself.
    #[error("both ends of the cable are port {port}")]
    OneEnd {
        /// The port's path.
        port: String,
    },
    /// A cable that is neither an override nor a cable of its own.
    #[error("this cable has neither an end nor an a and a b")]
    NoCableForm,
    /// A cable that is both.
    #[error("this cable is both an override and a cable of its own: it has end and {key}")]
    MixedCable {
        /// The key that does not go with `end`.
        key: &'static str,
    },
    /// An override that overrides nothing.
    #[error("this override of {end} changes nothing")]
    EmptyPatch {
        /// The end.
        end: String,
    },
    /// A missing thing that is neither a part nor a cable, or both.
    #[error("one missing thing is either a part or a cable")]
    MissingForm,
    /// A name of nothing.
    #[error("there is no {what} {name:?}{}", within(.table))]
    NoSuch {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// Where it was looked for.
        table: String,
        /// The name that looks most like it.
        near: Option<String>,
    },
    /// More seats than a hold can name.
    #[error("template {template} has {n_seats} seats")]
    TooManySeats {
        /// The template.
        template: String,
        /// How many.
        n_seats: usize,
    },
    /// A port of a template with two links.
    #[error("port {port} has two links")]
    LinkedTwice {
        /// The port, with its template.
        port: String,
    },
    /// A name that would mean two things.
    #[error("{name} is a node and a port")]
    NodeAndPort {
        /// The name.
        name: String,
    },
    /// A plant of nothing.
    #[error("the plant has no hardware")]
    NoHardware,
    /// A cable beyond what its kind carries.
    #[error("cables of {length} are longer than {wire} carries, which is {reach}")]
    WireTooLong {
        /// What the cables are made of.
        wire: &'static str,
        /// How long they are.
        length: Length,
        /// The longest that there may be.
        reach: Length,
    },
    /// One cable beyond what its kind carries.
    #[error("a cable of {length} is longer than {wire} carries, which is {reach}")]
    CableTooLong {
        /// What it is made of.
        wire: &'static str,
        /// How long it is.
        length: Length,
        /// The longest that there may be.
        reach: Length,
    },
    /// More than the tables hold.
    #[error("the plant has {n} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        n: u64,
        /// How many there may be.
        max: u64,
    },
}

impl Wrong {
    /// What would be right.
    pub fn right(&self) -> String {
        match self {
            Wrong::Syntax { .. } => "see https://toml.io for how TOML is written".to_owned(),
            Wrong::Unquoted { key, word } => format!("{key} = \"{word}\""),
            Wrong::FileTooLong { .. } => {
                format!("at most {} bytes; split the plant", limits::PLANT_TEXT_MAX)
            }
            Wrong::NoFormat => format!("start the file with `format = {}`", limits::PLANT_FORMAT),
            Wrong::FormatTooNew { .. } => {
                format!(
                    "format = {}, or a newer selvedge that reads this file",
                    limits::PLANT_FORMAT
                )
            }
            Wrong::UnknownKey { near: Some(near), .. } => format!("did you mean {near:?}?"),
            Wrong::UnknownKey { near: None, known, .. } => format!("one of {}", known.join(", ")),
            Wrong::KeyOfOtherFamily { known, .. } => format!("it has {}", known.join(", ")),
            Wrong::MissingKey { example, .. } => format!("add a line such as `{example}`"),
            Wrong::WrongType { wanted, .. } => (*wanted).to_owned(),
            Wrong::OutOfRange { min, max, .. } => format!("a number from {min} to {max}"),
            Wrong::UnknownWord { near, known, .. } => {
                let near = near.map(|it| format!("; did you mean {it:?}?")).unwrap_or_default();
                format!("one of {}{near}", known.join(", "))
            }
            Wrong::BadName { .. } => {
                format!("1 to {} letters, digits or any of `. _ - / +`", limits::NAME_MAX)
            }
            Wrong::BadForm { form, .. } => (*form).to_owned(),
            Wrong::SlotTwice { .. } => "name each cube once".to_owned(),
            Wrong::SlotBeyond { cubes, .. } => {
                format!("cubes are numbered 0 to {} within their pod", cubes - 1)
            }
            Wrong::Twice { what: "seat" | "member" | "missing thing", .. } => {
                "leave out the second".to_owned()
            }
            Wrong::Twice { what, .. } => format!("give the second {what} a name of its own"),
            Wrong::CabledTwice { .. } => "a port takes one cable: use a free port".to_owned(),
            Wrong::OneEnd { .. } => "a cable joins two ports".to_owned(),
            Wrong::NoCableForm => "`end = \"cube17/x/in/7\"` with `port = \"x7/s66\"` or \
                 `loss_db = 1.2` for a generated cable, `a` and `b` for one of its own"
                .to_owned(),
            Wrong::MixedCable { .. } => "end goes with port and loss_db; a and b go with kind, \
                 gbps, latency_ns and loss_db"
                .to_owned(),
            Wrong::EmptyPatch { .. } => "add port, loss_db or both".to_owned(),
            Wrong::MissingForm => "`part = \"x7\"` or `cable = \"cube17/x/in/7\"`".to_owned(),
            Wrong::NoSuch { what, near, .. } => match near {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("name a {what} that there is"),
            },
            Wrong::TooManySeats { .. } => {
                format!("at most {}; cut the part into smaller ones", limits::SEATS_MAX)
            }
            Wrong::LinkedTwice { .. } => "a port takes one link: add a port".to_owned(),
            Wrong::NodeAndPort { name } => format!("call the port {name}/port"),
            Wrong::NoHardware => "add a [[pod]] with a family, or a [[part]]".to_owned(),
            Wrong::WireTooLong { reach, .. } => {
                format!("boards at most {reach} apart, or another wire")
            }
            Wrong::CableTooLong { reach, .. } => {
                format!("at most {reach}, or a kind that reaches farther")
            }
            Wrong::TooMany { max, .. } => format!("at most {max}; split the plant"),
        }
    }
}

fn within(table: &str) -> String {
    if table.is_empty() { String::new() } else { format!(" in {table}") }
}

/// Something wrong with a plant file, at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantError {
    /// What is wrong.
    pub wrong: Wrong,
    /// The line, from 1 on.
    pub line: u32,
    /// The column in characters, from 1 on.
    pub column: u32,
    drawn: String,
}

impl PlantError {
    pub(crate) fn new(file_name: &str, text: &str, at: At, wrong: Wrong) -> Self {
        let (line, column) = line_column(text, at.start as usize);
        let drawn = point(file_name, text, at, &wrong.to_string(), &wrong.right());
        Self { wrong, line, column, drawn }
    }
}

impl fmt::Display for PlantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.drawn)
    }
}

impl std::error::Error for PlantError {}

/// The longest piece of a line that is shown, in characters.
const SHOWN_MAX: usize = 100;

/// Draws what is wrong at its place: file, line and column, the line with a caret under the
/// place, and what would be right.
pub fn point(file_name: &str, text: &str, at: At, wrong: &str, right: &str) -> String {
    if at.is_nowhere() {
        return format!("{file_name}: {wrong}\n  right: {right}");
    }
    let start = floor(text, at.start as usize);
    let (line, column) = line_column(text, start);
    let line_start = text[..start].rfind('\n').map_or(0, |it| it + 1);
    let line_text: Vec<char> = text[line_start..].lines().next().unwrap_or("").chars().collect();
    let end = floor(text, at.end as usize).max(start);
    let width = text[start..end].lines().next().unwrap_or("").chars().count().max(1);
    let caret_at = column as usize - 1;
    // A long line is shown from a little before its place on.
    let cut = if SHOWN_MAX < line_text.len() { caret_at.saturating_sub(20) } else { 0 };
    let shown: String = line_text
        .iter()
        .skip(cut)
        .take(SHOWN_MAX)
        .map(|&c| if c == '\t' { ' ' } else { c })
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    let carets = width.min(SHOWN_MAX.saturating_sub(caret_at - cut)).max(1);
    let number = line.to_string();
    let pad = " ".repeat(number.len());
    let mut out = String::new();
    let _ = writeln!(out, "{file_name}:{line}:{column}: {wrong}");
    let _ = writeln!(out, " {number} | {}", shown.trim_end());
    let _ = writeln!(out, " {pad} | {}{}", " ".repeat(caret_at - cut), "^".repeat(carets));
    let _ = write!(out, " {pad} right: {right}");
    out
}

/// The line and column, from 1 on, of the character at byte `offset`.
pub(crate) fn line_column(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..floor(text, offset)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    (small(line), small(column))
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
