//! Places of groups and chips, as people write them: `0,1` and `0,1,A`.

use std::fmt;
use std::str::FromStr;

/// The place of a group, which is a board.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Counted from the north.
    pub row: u16,
    /// Counted from the west.
    pub column: u16,
}

/// One chip of a group, drawn A B above C D.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Letter {
    /// North-west.
    A,
    /// North-east.
    B,
    /// South-west.
    C,
    /// South-east.
    D,
}

/// A chip by its group and letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chip {
    /// Its group.
    pub group: Group,
    /// Which of the four it is.
    pub letter: Letter,
}

impl Letter {
    /// All four, in the order of their seats.
    pub const ALL: [Self; 4] = [Letter::A, Letter::B, Letter::C, Letter::D];

    /// Its seat on the board.
    pub const fn seat(self) -> usize {
        self as usize
    }

    /// The letter of the file.
    pub const fn word(self) -> &'static str {
        match self {
            Letter::A => "A",
            Letter::B => "B",
            Letter::C => "C",
            Letter::D => "D",
        }
    }

    /// Whether it stands on the eastern half of its board.
    pub const fn is_east(self) -> bool {
        matches!(self, Letter::B | Letter::D)
    }

    /// Whether it stands on the southern half of its board.
    pub const fn is_south(self) -> bool {
        matches!(self, Letter::C | Letter::D)
    }

    /// The chip on these halves of a board.
    pub const fn of_halves(is_south: bool, is_east: bool) -> Self {
        Self::ALL[2 * is_south as usize + is_east as usize]
    }
}

impl Group {
    /// The group at `row` and `column`.
    pub const fn at(row: u16, column: u16) -> Self {
        Self { row, column }
    }

    /// One of its chips.
    pub const fn chip(self, letter: Letter) -> Chip {
        Chip { group: self, letter }
    }
}

/// A text that is no place of a group.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is no group; say row,column such as 0,1, both counted from 0")]
pub struct NoGroup {
    text: String,
}

impl FromStr for Group {
    type Err = NoGroup;

    fn from_str(text: &str) -> Result<Self, NoGroup> {
        let number = |it: &str| {
            let is_number = !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| it.parse().ok()).flatten()
        };
        let read = text
            .split_once(',')
            .and_then(|(row, column)| Some(Group { row: number(row)?, column: number(column)? }));
        read.ok_or_else(|| NoGroup { text: text.chars().take(60).collect() })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.row, self.column)
    }
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.group, self.letter.word())
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Debug for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
