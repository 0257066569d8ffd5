//! NCCL's topology XML: read strictly (as NCCL's own reader would), read leniently, written back.
//!
//! The reader knows elements and attributes and nothing else: no entities are expanded, no
//! document type is obeyed, nothing outside the text is looked at.  It visits each byte once.

mod own;

use std::fmt::Write as _;

use crate::host::nccl::limits;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::own::Own;

/// How much of XML a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// What the parser of that NCCL accepts: no prolog, no tabs, one line per tag.
    AsNccl {
        /// Whether an attribute may stand in single quotes, as it may from 2.27.7 on.
        single_quotes: bool,
    },
    /// Any well-formed file and any that NCCL takes; what NCCL would refuse or make something else
    /// of is reported beside it.
    Lenient {
        /// As above, for the report.
        single_quotes: bool,
    },
}

impl Strictness {
    /// As the parser of that version.
    pub fn as_nccl(profile: Profile) -> Strictness {
        Strictness::AsNccl { single_quotes: profile.ends_values_as_begun() }
    }

    /// Anything that can be read, beside what that version would refuse.
    pub fn lenient(profile: Profile) -> Strictness {
        Strictness::Lenient { single_quotes: profile.ends_values_as_begun() }
    }
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

impl Place {
    /// The place behind a byte at this one.
    fn after(self, byte: u8) -> Place {
        match byte {
            b'\n' => Place { line: self.line + 1, column: 1 },
            _ => Place { column: self.column + 1, ..self },
        }
    }
}

/// One element with its attributes in order and its children in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The tag's name.
    pub name: String,
    /// Attributes, in order; of several with one name the first counts.
    pub attrs: Vec<(String, String)>,
    /// Child elements.
    pub children: Vec<Element>,
    /// Where its tag begins.
    pub place: Place,
}

/// A file's root and where NCCL's own reader and others do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The outermost element: as NCCL reads it where it does.
    pub root: Element,
    /// What was tolerated; always empty after a strict reading.
    pub tolerated: Vec<Tolerated>,
}

/// Something that a lenient reading passed over, and NCCL or other readers would not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerated {
    /// Where.
    pub place: Place,
    /// What.
    pub quirk: Quirk,
}

/// Where NCCL's reader is no reader of XML.  Notes §3h, measured.
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
    /// A name or value longer than NCCL has room for.
    Length,
    /// More children than NCCL has room for.
    Children,
    /// Another way of writing that NCCL gives up at.
    Form,
    /// A tab or quote that NCCL makes part of a name or value.
    Misread,
    /// More attributes than NCCL has room for.
    Attributes,
    /// An attribute that its tag has already.
    Twice,
    /// `<` inside a value.
    Less,
    /// A text that NCCL reads and that is not well-formed.
    Malformed,
}

impl Quirk {
    /// Whether writing the file anew takes it away.
    pub fn is_form(self) -> bool {
        use Quirk::{BrokenTag, Form, Mark, Prolog, SingleQuotes, Tab};
        matches!(self, Prolog | Mark | Tab | BrokenTag | SingleQuotes | Form)
    }

    /// Whether NCCL gives up at it.
    pub fn is_refused(self) -> bool {
        self.is_form() || matches!(self, Quirk::Length | Quirk::Children)
    }

    /// Whether NCCL gives up at it, or makes something else of it than what stands there.
    pub fn is_error(self) -> bool {
        self.is_refused() || self == Quirk::Misread
    }
}

impl std::fmt::Display for Quirk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Quirk::Prolog => {
                "NCCL refuses an XML declaration; delete it, a file begins with its first tag"
            }
            Quirk::Mark => "NCCL refuses a byte order mark; write the file as UTF-8 without one",
            Quirk::Tab => "NCCL refuses a tab; indent with spaces",
            Quirk::BrokenTag => {
                "NCCL refuses a line break inside a tag; put the tag on one line"
            }
            Quirk::SingleQuotes => {
                "NCCL refuses an attribute in single quotes; use double quotes"
            }
            Quirk::Length => "NCCL refuses so long a name or value; it has room for 253 bytes",
            Quirk::Children => "NCCL refuses more than 640 children in an element",
            Quirk::Form => "NCCL refuses what is written like this; write it as it does",
            Quirk::Misread => {
                "NCCL makes this part of a name or value; put one space between attributes and use \
                 double quotes"
            }
            Quirk::Attributes => {
                "NCCL passes over what comes after 16 attributes, each blank too many counting as one"
            }
            Quirk::Twice => "NCCL takes the first of two attributes of one name; keep one",
            Quirk::Less => "NCCL alone takes < inside a value; other programs refuse the file",
            Quirk::Malformed => "NCCL alone takes what is written like this; it is no XML",
        })
    }
}

/// Why a text is no topology file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// Well-formed, but NCCL would refuse it.
    #[error("{place}: {quirk}")]
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
            | XmlError::Limit { place, .. } => *place,
        }
    }
}

/// The document in `text`.
///
/// # Errors
/// Says where the text stops being a topology file, and what would be right there.
pub fn read(text: &str, strictness: Strictness) -> Result<Document, XmlError> {
    if text.len() > limits::XML_BYTES {
        let (what, limit) = ("bytes", limits::XML_BYTES);
        return Err(XmlError::Limit { place: Place { line: 1, column: 1 }, what, limit });
    }
    let (Strictness::AsNccl { single_quotes } | Strictness::Lenient { single_quotes }) = strictness;
    let own = match (strictness, own::parse(text, single_quotes)) {
        (Strictness::AsNccl { .. }, Ok(Own { root: Some(root), .. })) => {
            return Ok(Document { root, tolerated: Vec::new() });
        }
        (_, own) => own,
    };
    let document = well_formed(text, strictness);
    match (strictness, own) {
        // Its words say more than where NCCL gives up.
        (Strictness::AsNccl { .. }, Err(error)) => Err(document.err().unwrap_or(error)),
        (Strictness::Lenient { .. }, Ok(Own { root: Some(root), passed_over })) => {
            Ok(as_read(root, passed_over, document))
        }
        (Strictness::Lenient { .. }, Err(error)) => {
            let mut document = document?;
            if document.tolerated.iter().all(|it| !it.quirk.is_refused()) {
                let place = error.place();
                let quirk = match error {
                    XmlError::Refused { quirk, .. } => quirk,
                    _ => Quirk::Form,
                };
                document.tolerated.insert(0, Tolerated { place, quirk });
            }
            Ok(document)
        }
        // NCCL reads it to the end and finds nothing there.
        (Strictness::AsNccl { .. }, Ok(_)) => Ok(Document { tolerated: Vec::new(), ..document? }),
        (Strictness::Lenient { .. }, Ok(_)) => document,
    }
}

fn well_formed(text: &str, strictness: Strictness) -> Result<Document, XmlError> {
    let mut reader = Reader {
        bytes: text.as_bytes(),
        text,
        at: 0,
        place: Place { line: 1, column: 1 },
        strictness,
        tolerated: Vec::new(),
        n_elements: 0,
    };
    let root = reader.document()?;
    Ok(Document { root, tolerated: reader.tolerated })
}

/// A file that NCCL reads as `root`, with what is to be said about it.
fn as_read(
    root: Element,
    passed_over: Option<Place>,
    document: Result<Document, XmlError>,
) -> Document {
    let tolerate = |place, quirk| vec![Tolerated { place, quirk }];
    let Document { root: other, mut tolerated } = match document {
        Ok(document) => document,
        Err(error) => {
            return Document { root, tolerated: tolerate(error.place(), Quirk::Malformed) };
        }
    };
    // What NCCL passes over stays in a file that is written anew.
    if is_alike(&root, &other) {
        tolerated.retain(|it| !it.quirk.is_refused());
        return Document { root: other, tolerated };
    }
    for it in tolerated.iter_mut().filter(|it| it.quirk.is_refused()) {
        it.quirk = Quirk::Misread;
    }
    if tolerated.is_empty() {
        tolerated = match passed_over {
            Some(place) => tolerate(place, Quirk::Attributes),
            None => tolerate(root.place, Quirk::Misread),
        };
    }
    Document { root, tolerated }
}

/// Whether a reading of NCCL's is another one without the elements that NCCL does not know.
fn is_alike(own: &Element, other: &Element) -> bool {
    let known = other.children.iter().filter(|it| own::is_known(Some(&other.name), &it.name));
    let is_equal = own.name == other.name && own.attrs == other.attrs;
    is_equal
        && own.children.len() == known.clone().count()
        && own.children.iter().zip(known).all(|(own, other)| is_alike(own, other))
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
        let mut n_attrs = 0;
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
            if n_attrs == limits::XML_ATTRS {
                let (what, limit) = ("attributes in a tag", limits::XML_ATTRS);
                return Err(XmlError::Limit { place: at, what, limit });
            }
            let attribute = self.attribute()?;
            n_attrs += 1;
            if limits::NCCL_ATTRS < n_attrs {
                self.tolerate(at, Quirk::Attributes);
                continue;
            }
            if element.attr(&attribute.0).is_some() {
                self.tolerate(at, Quirk::Twice);
            }
            element.attrs.push(attribute);
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
        while self.peek().is_some_and(|it| it != quote) {
            if self.peek() == Some(b'<') {
                self.tolerate(self.place, Quirk::Less);
            }
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
                self.tolerate(place, quirk);
                Ok(())
            }
        }
    }

    fn tolerate(&mut self, place: Place, quirk: Quirk) {
        // Each kind once: the first place is where an editor begins.
        if self.tolerated.iter().all(|it| it.quirk != quirk) {
            self.tolerated.push(Tolerated { place, quirk });
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
        self.place = self.place.after(self.bytes[self.at]);
        self.at += 1;
    }
}
