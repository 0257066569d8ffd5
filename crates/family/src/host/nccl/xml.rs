//! NCCL's topology XML: read strictly (as NCCL's own reader would), read leniently, written back.
//!
//! The reader knows elements and attributes and nothing else: no entities are expanded, no
//! document type is obeyed, nothing outside the text is looked at.  It visits each byte once.

use std::fmt::Write as _;

use crate::host::nccl::limits;

/// How much of XML a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// What the parser of that NCCL accepts: no prolog, no tabs, one line per tag.
    AsNccl {
        /// Whether an attribute may stand in single quotes, as it may from 2.27.7 on.
        single_quotes: bool,
    },
    /// Any well-formed file; what NCCL would refuse is reported beside it.
    Lenient {
        /// As above, for the report.
        single_quotes: bool,
    },
}

/// A place in the text, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One element with its attributes in order and its children in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The tag's name.
    pub name: String,
    /// Attributes, in order, each name once.
    pub attrs: Vec<(String, String)>,
    /// Child elements.
    pub children: Vec<Element>,
    /// Where its tag begins.
    pub place: Place,
}

/// A file's root and what NCCL's own reader would not have taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The outermost element.
    pub root: Element,
    /// What was tolerated; always empty after a strict reading.
    pub tolerated: Vec<Tolerated>,
}

/// Something that a lenient reading passed over and NCCL would refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerated {
    /// Where.
    pub place: Place,
    /// What.
    pub quirk: Quirk,
}

/// Well-formed XML that NCCL refuses all the same.  Notes §3h, measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// `<?xml …?>` before the first element.
    Prolog,
    /// A byte order mark before it.
    Mark,
    /// A tab between tags or attributes.
    Tab,
    /// A line break inside a tag.
    BrokenTag,
    /// An attribute in single quotes.
    SingleQuotes,
    /// More attributes than NCCL has room for.
    Attributes,
    /// A name or value longer than NCCL has room for.
    Length,
    /// More children than NCCL has room for.
    Children,
    /// More elements than NCCL has room for.
    Elements,
}

impl Quirk {
    /// Whether writing the file anew takes it away.
    pub fn is_form(self) -> bool {
        use Quirk::{BrokenTag, Mark, Prolog, SingleQuotes, Tab};
        matches!(self, Prolog | Mark | Tab | BrokenTag | SingleQuotes)
    }
}

impl std::fmt::Display for Quirk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Quirk::Prolog => "an XML declaration; delete it, a file begins with its first tag",
            Quirk::Mark => "a byte order mark; write the file as UTF-8 without one",
            Quirk::Tab => "a tab; indent with spaces",
            Quirk::BrokenTag => "a line break inside a tag; put the tag on one line",
            Quirk::SingleQuotes => "an attribute in single quotes; use double quotes",
            Quirk::Attributes => "more than 16 attributes in a tag",
            Quirk::Length => "a name or value of more than 255 bytes",
            Quirk::Children => "more than 640 children in an element",
            Quirk::Elements => "more than 256 elements per rank",
        })
    }
}

/// Why a text is no topology file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// Well-formed, but NCCL would refuse it.
    #[error("{place}: NCCL refuses {quirk}")]
    Refused {
        /// Where.
        place: Place,
        /// What.
        quirk: Quirk,
    },
    /// Not well-formed.
    #[error("{place}: found {found}, expected {expected}")]
    Unexpected {
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
        /// What ought to stand there.
        expected: &'static str,
    },
    /// An end tag that closes another element.
    #[error("{place}: </{found}> closes <{open}> of {opened}; close <{open}> first")]
    Crossed {
        /// Where.
        place: Place,
        /// The end tag's name.
        found: String,
        /// The element that is open.
        open: String,
        /// Where that one began.
        opened: Place,
    },
    /// An attribute that its tag has already.
    #[error("{place}: attribute {name} stands twice in one tag; keep one")]
    Twice {
        /// Where.
        place: Place,
        /// Its name.
        name: String,
    },
    /// Past a limit that protects the reader itself.
    #[error("{place}: more than {limit} {what}; a server has fewer")]
    Limit {
        /// Where.
        place: Place,
        /// Of what.
        what: &'static str,
        /// How many are read.
        limit: usize,
    },
}

impl XmlError {
    /// The error without its place.
    pub fn what(&self) -> String {
        let text = self.to_string();
        text.split_once(": ").map_or(text.clone(), |it| it.1.to_owned())
    }

    /// Where the text stops being a topology file.
    pub fn place(&self) -> Place {
        match self {
            XmlError::Refused { place, .. }
            | XmlError::Unexpected { place, .. }
            | XmlError::Crossed { place, .. }
            | XmlError::Twice { place, .. }
            | XmlError::Limit { place, .. } => *place,
        }
    }
}

/// The document in `text`.
///
/// # Errors
/// Says where the text stops being a topology file, and what would be right there.
pub fn read(text: &str, strictness: Strictness) -> Result<Document, XmlError> {
    let mut reader = Reader {
        bytes: text.as_bytes(),
        text,
        at: 0,
        place: Place { line: 1, column: 1 },
        strictness,
        tolerated: Vec::new(),
        n_elements: 0,
    };
    if text.len() > limits::XML_BYTES {
        let (what, limit) = ("bytes", limits::XML_BYTES);
        return Err(XmlError::Limit { place: reader.place, what, limit });
    }
    let root = reader.document()?;
    Ok(Document { root, tolerated: reader.tolerated })
}

/// The element as NCCL writes it: two spaces a level, one tag a line.
pub fn write(root: &Element) -> String {
    let mut out = String::new();
    // Explicit stack, as the reader's: depth comes from a file.
    let mut todo = vec![(root, 0, false)];
    while let Some((element, depth, close)) = todo.pop() {
        let indent = "  ".repeat(depth);
        if close {
            let _ = writeln!(out, "{indent}</{}>", element.name);
            continue;
        }
        let _ = write!(out, "{indent}<{}", element.name);
        for (name, value) in &element.attrs {
            // A value that holds double quotes stood in single ones; none can hold both.
            let quote = if value.contains('"') { '\'' } else { '"' };
            let _ = write!(out, " {name}={quote}{value}{quote}");
        }
        if element.children.is_empty() {
            out.push_str("/>\n");
            continue;
        }
        out.push_str(">\n");
        todo.push((element, depth, true));
        todo.extend(element.children.iter().rev().map(|it| (it, depth + 1, false)));
    }
    out
}

impl Element {
    /// One of that name, without attributes and children, from no file.
    pub fn new(name: &str) -> Element {
        let place = Place { line: 0, column: 0 };
        Element { name: name.to_owned(), attrs: Vec::new(), children: Vec::new(), place }
    }

    /// The same with one attribute more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Element {
        self.attrs.push((name.to_owned(), value.to_string()));
        self
    }

    /// The attribute's value as NCCL reads it, whose strings end at a NUL.
    pub fn attr(&self, name: &str) -> Option<&str> {
        let value = self.attrs.iter().find(|(it, _)| it == name).map(|(_, value)| value)?;
        Some(value.find('\0').map_or(value, |end| &value[..end]))
    }

    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|it| it.name == name)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    place: Place,
    strictness: Strictness,
    tolerated: Vec<Tolerated>,
    n_elements: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Element, XmlError> {
        self.misc(true)?;
        // The stack of open elements is ours, not the thread's: depth comes from the file.
        let mut open: Vec<Element> = Vec::new();
        loop {
            let place = self.place;
            if !self.skip(b"<") {
                return Err(self.unexpected("a tag"));
            }
            let done = if self.skip(b"/") {
                let name = self.name()?;
                self.blank_in_tag()?;
                self.expect(b">", "> of an end tag")?;
                let Some(element) = open.pop() else {
                    let found = format!("</{name}>");
                    return Err(XmlError::Unexpected { place, found, expected: "a start tag" });
                };
                if element.name != name {
                    let (open, opened) = (element.name, element.place);
                    return Err(XmlError::Crossed { place, found: name, open, opened });
                }
                Some(element)
            } else {
                let (element, empty) = self.tag(place)?;
                if empty {
                    Some(element)
                } else {
                    if open.len() == limits::XML_DEPTH {
                        let (what, limit) = ("nested elements", limits::XML_DEPTH);
                        return Err(XmlError::Limit { place, what, limit });
                    }
                    open.push(element);
                    None
                }
            };
            if let Some(element) = done {
                let Some(parent) = open.last_mut() else {
                    self.misc(false)?;
                    if self.at < self.bytes.len() {
                        return Err(self.unexpected("the end of the file"));
                    }
                    return Ok(element);
                };
                parent.children.push(element);
                if parent.children.len() == limits::NCCL_CHILDREN + 1 {
                    self.quirk(place, Quirk::Children)?;
                }
            }
            self.misc(false)?;
        }
    }

    /// The tag whose `<` is behind us, and whether it closes itself.
    fn tag(&mut self, place: Place) -> Result<(Element, bool), XmlError> {
        self.n_elements += 1;
        if self.n_elements > limits::XML_ELEMENTS {
            let (what, limit) = ("elements", limits::XML_ELEMENTS);
            return Err(XmlError::Limit { place, what, limit });
        }
        if let Some(b'!' | b'?') = self.peek() {
            return Err(self.unexpected(
                "an element: a topology file has no DOCTYPE and no instructions; delete this",
            ));
        }
        let name = self.name()?;
        let mut element = Element { name, attrs: Vec::new(), children: Vec::new(), place };
        loop {
            let blank = self.blank_in_tag()?;
            if self.skip(b"/>") {
                return Ok((element, true));
            }
            if self.skip(b">") {
                return Ok((element, false));
            }
            if !blank {
                return Err(self.unexpected("a blank, /> or >"));
            }
            let at = self.place;
            if element.attrs.len() == limits::XML_ATTRS {
                let (what, limit) = ("attributes in a tag", limits::XML_ATTRS);
                return Err(XmlError::Limit { place: at, what, limit });
            }
            let (name, value) = self.attribute()?;
            if element.attr(&name).is_some() {
                return Err(XmlError::Twice { place: at, name });
            }
            element.attrs.push((name, value));
            if element.attrs.len() == limits::NCCL_ATTRS + 1 {
                self.quirk(at, Quirk::Attributes)?;
            }
        }
    }

    fn attribute(&mut self) -> Result<(String, String), XmlError> {
        let name = self.name()?;
        self.expect(b"=", "= after an attribute's name")?;
        let place = self.place;
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.unexpected("a quote")),
        };
        let (Strictness::AsNccl { single_quotes } | Strictness::Lenient { single_quotes }) =
            self.strictness;
        if quote == b'\'' && !single_quotes {
            self.quirk(place, Quirk::SingleQuotes)?;
        }
        self.step();
        let start = self.at;
        while self.peek().is_some_and(|it| it != quote && it != b'<') {
            self.step();
        }
        let value = self.text[start..self.at].to_owned();
        if self.peek() != Some(quote) {
            return Err(self.unexpected("the closing quote"));
        }
        self.step();
        if value.len() > limits::NCCL_TEXT {
            self.quirk(place, Quirk::Length)?;
        }
        Ok((name, value))
    }

    fn name(&mut self) -> Result<String, XmlError> {
        let (start, place) = (self.at, self.place);
        let part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b':');
        while self.peek().is_some_and(part) {
            self.step();
        }
        if start == self.at {
            return Err(self.unexpected("a name"));
        }
        if self.at - start > limits::NCCL_TEXT {
            self.quirk(place, Quirk::Length)?;
        }
        Ok(self.text[start..self.at].to_owned())
    }

    /// Blanks, comments and, at the file's beginning, a declaration.
    fn misc(&mut self, first: bool) -> Result<(), XmlError> {
        loop {
            let place = self.place;
            match self.peek() {
                Some(b' ' | b'\n' | b'\r') => self.step(),
                Some(b'\t') => {
                    self.quirk(place, Quirk::Tab)?;
                    self.step();
                }
                Some(b'<') if self.rest().starts_with(b"<!--") => {
                    self.past(b"-->", "--> of a comment")?;
                }
                Some(b'<') if first && self.rest().starts_with(b"<?xml") => {
                    self.quirk(place, Quirk::Prolog)?;
                    self.past(b"?>", "?> of the declaration")?;
                }
                Some(b'\xef') if self.at == 0 && self.text.starts_with('\u{feff}') => {
                    self.quirk(place, Quirk::Mark)?;
                    self.at = '\u{feff}'.len_utf8();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Whether there was a blank inside a tag.
    fn blank_in_tag(&mut self) -> Result<bool, XmlError> {
        let start = self.at;
        loop {
            let place = self.place;
            match self.peek() {
                Some(b' ') => {}
                Some(b'\t') => self.quirk(place, Quirk::Tab)?,
                Some(b'\n' | b'\r') => self.quirk(place, Quirk::BrokenTag)?,
                _ => return Ok(self.at > start),
            }
            self.step();
        }
    }

    fn past(&mut self, end: &[u8], expected: &'static str) -> Result<(), XmlError> {
        while !self.rest().starts_with(end) {
            if self.at == self.bytes.len() {
                return Err(self.unexpected(expected));
            }
            self.step();
        }
        self.skip(end);
        Ok(())
    }

    fn quirk(&mut self, place: Place, quirk: Quirk) -> Result<(), XmlError> {
        match self.strictness {
            Strictness::AsNccl { .. } => Err(XmlError::Refused { place, quirk }),
            Strictness::Lenient { .. } => {
                // Each kind once: the first place is where an editor begins.
                if self.tolerated.iter().all(|it| it.quirk != quirk) {
                    self.tolerated.push(Tolerated { place, quirk });
                }
                Ok(())
            }
        }
    }

    fn unexpected(&self, expected: &'static str) -> XmlError {
        let found = match self.text[self.at..].chars().next() {
            Some(it) => format!("{it:?}"),
            None => "the end of the file".to_owned(),
        };
        XmlError::Unexpected { place: self.place, found, expected }
    }

    fn expect(&mut self, what: &[u8], expected: &'static str) -> Result<(), XmlError> {
        if self.skip(what) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn skip(&mut self, what: &[u8]) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            for _ in what {
                self.step();
            }
        }
        found
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// One byte on.  Only ever stops on a character's first byte: multi-byte characters are
    /// passed over in loops that end on ASCII or at the end.
    fn step(&mut self) {
        if self.bytes[self.at] == b'\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        self.at += 1;
    }
}
