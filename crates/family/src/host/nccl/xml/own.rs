//! The reading of NCCL's own parser, byte for byte: what it takes, what it makes of it, where it
//! gives up.
//!
//! It is laxer than XML and stricter at once.  Names and values are any bytes up to the one that
//! ends them; each blank in a tag begins an attribute, also one without a name; what stands below
//! an element that it does not know is passed over without a look at the names of end tags.  The
//! parsers of 2.7.8 to 2.21.5 are alike; those from 2.27.7 on end a value at the quote that began
//! it and bound its length.  Held against 2.7.8's own parser on mutated files.

use crate::host::nccl::limits;
use crate::host::nccl::xml::{Element, Place, Quirk, XmlError};

/// What NCCL reads.
pub(super) struct Own {
    /// The first element that is a topology or a set of graphs; none where there is none.
    pub(super) root: Option<Element>,
    /// The first attribute that it has no room for.
    pub(super) passed_over: Option<Place>,
}

/// What NCCL makes of the text.
///
/// # Errors
/// Where it gives up.
pub(super) fn parse(text: &str, single_quotes: bool) -> Result<Own, XmlError> {
    let place = Place { line: 1, column: 1 };
    Parser { text, at: 0, place, single_quotes, n_elements: 0, passed_over: None }.load()
}

/// Whether NCCL keeps such an element there, in some version.
pub(super) fn is_known(parent: Option<&str>, name: &str) -> bool {
    match parent {
        None => matches!(name, "system" | "graphs"),
        Some("system") => name == "cpu",
        Some("cpu") => matches!(name, "pci" | "nic"),
        Some("pci") => matches!(name, "pci" | "gpu" | "nic" | "pcilink"),
        Some("gpu") => matches!(name, "nvlink" | "c2c"),
        Some("nic") => matches!(name, "net" | "gin" | "rma"),
        Some("graphs") => name == "graph",
        Some("graph") => name == "channel",
        Some("channel") => matches!(name, "net" | "gpu"),
        Some(_) => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Single,
    Close,
}

/// A name, the value behind it, and the byte that ended them.
struct Token<'t> {
    name: &'t str,
    value: Option<&'t str>,
    last: u8,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    place: Place,
    single_quotes: bool,
    n_elements: usize,
    passed_over: Option<Place>,
}

impl<'t> Parser<'t> {
    fn load(mut self) -> Result<Own, XmlError> {
        let mut root: Option<Element> = None;
        let mut open: Vec<Element> = Vec::new();
        // Below an element that is not known, any end tag ends what was opened last.
        let mut n_unknown = 0;
        while let Some((kind, element)) = self.node()? {
            let parent = open.last().map(|it| &*it.name);
            let done = match kind {
                Kind::Open if 0 < n_unknown => {
                    n_unknown += 1;
                    continue;
                }
                Kind::Close if 0 < n_unknown => {
                    n_unknown -= 1;
                    continue;
                }
                Kind::Close if parent == Some(&*element.name) => open.pop(),
                Kind::Close if parent.is_some() => return Err(crossed(open.pop(), element)),
                // Without anything open, an end tag begins an element of its name.
                Kind::Open | Kind::Close if !is_known(parent, &element.name) => {
                    n_unknown += 1;
                    continue;
                }
                Kind::Open => {
                    self.check_room(&open, element.place)?;
                    open.push(element);
                    continue;
                }
                Kind::Single if 0 < n_unknown || !is_known(parent, &element.name) => continue,
                Kind::Single | Kind::Close => Some(element),
            };
            let Some(done) = done else { continue };
            self.keep(done, open.last_mut(), &mut root)?;
        }
        if 0 < n_unknown || !open.is_empty() {
            return Err(self.unexpected("an end tag"));
        }
        Ok(Own { root, passed_over: self.passed_over })
    }

    /// Limits of this reader, not of NCCL's.
    fn check_room(&mut self, open: &[Element], place: Place) -> Result<(), XmlError> {
        self.n_elements += 1;
        let limits = [
            (self.n_elements, "elements", limits::XML_ELEMENTS),
            (open.len() + 1, "nested elements", limits::XML_DEPTH),
        ];
        match limits.into_iter().find(|(n, _, limit)| limit < n) {
            Some((_, what, limit)) => Err(XmlError::Limit { place, what, limit }),
            None => Ok(()),
        }
    }

    fn keep(
        &mut self,
        done: Element,
        parent: Option<&mut Element>,
        root: &mut Option<Element>,
    ) -> Result<(), XmlError> {
        let place = done.place;
        match parent {
            Some(parent) => {
                parent.children.push(done);
                if limits::NCCL_CHILDREN < parent.children.len() {
                    return Err(XmlError::Refused { place, quirk: Quirk::Children });
                }
            }
            None if root.is_none() => *root = Some(done),
            // Of several the first counts, and each needs its version.
            None if done.attr("version").is_none_or(|it| it.trim() != "1") => {
                let found = format!("another <{}> without version=\"1\"", done.name);
                return Err(XmlError::Unexpected { place, found, expected: "the end of the file" });
            }
            None => {}
        }
        Ok(())
    }

    /// The next tag; none at the end of the file.  An end tag is an element without attributes.
    fn node(&mut self) -> Result<Option<(Kind, Element)>, XmlError> {
        loop {
            while let Some(b' ' | b'\n' | b'\r') = self.peek() {
                self.step();
            }
            let place = self.place;
            match self.peek() {
                None => return Ok(None),
                Some(b'<') => self.step(),
                Some(_) => return Err(self.unexpected("a tag")),
            }
            let Token { name, mut last, .. } = self.token(false)?;
            if let Some(begun) = name.strip_prefix("!--") {
                self.comment(begun, last)?;
                continue;
            }
            let mut element = Element { place, ..Element::new(name) };
            if name.is_empty() && last == b'/' {
                let Token { name, last, .. } = self.token(false)?;
                name.clone_into(&mut element.name);
                return self.closed(last).map(|()| Some((Kind::Close, element)));
            }
            let mut n_attrs = 0;
            while last == b' ' {
                let at = self.place;
                let token = self.token(true)?;
                last = token.last;
                // A blank alone takes a place too.
                let has_room = n_attrs < limits::NCCL_ATTRS;
                n_attrs += usize::from(has_room);
                if token.name.is_empty() {
                    continue;
                }
                if has_room {
                    let value = token.value.unwrap_or_default().to_owned();
                    element.attrs.push((token.name.to_owned(), value));
                } else {
                    self.passed_over.get_or_insert(at);
                }
            }
            let kind = if last == b'/' { Kind::Single } else { Kind::Open };
            if kind == Kind::Single {
                last = self.token(false)?.last;
            }
            return self.closed(last).map(|()| Some((kind, element)));
        }
    }

    fn closed(&self, last: u8) -> Result<(), XmlError> {
        if last == b'>' {
            return Ok(());
        }
        let found = format!("{:?}", char::from(last));
        Err(XmlError::Unexpected { place: self.place, found, expected: "> right there" })
    }

    /// What stands before a blank, `>`, `/` or a line's end, or an attribute.
    fn token(&mut self, takes_value: bool) -> Result<Token<'t>, XmlError> {
        let (text, start, place) = (self.text, self.at, self.place);
        loop {
            let (at, here) = (self.at, self.place);
            let last = self.next("> of a tag")?;
            let name = || c_string(&text[start..at]);
            match last {
                b'=' if takes_value => {
                    let name = name();
                    let value = self.value()?;
                    let last = self.next("> of a tag")?;
                    return Ok(Token { name, value: Some(value), last });
                }
                b'=' => {
                    let (found, expected) = ("'='".to_owned(), "no = before the first blank");
                    return Err(XmlError::Unexpected { place: here, found, expected });
                }
                // Of what ends a name, all but = take room.
                _ if limits::NCCL_TEXT <= self.at - start => {
                    // A comment is not there in a file that is written anew.
                    if text[start..].starts_with("!--") {
                        let found = "a comment's first word of more than 253 bytes".to_owned();
                        return Err(XmlError::Unexpected {
                            place,
                            found,
                            expected: "a blank in it",
                        });
                    }
                    return Err(XmlError::Refused { place, quirk: Quirk::Length });
                }
                b' ' | b'>' | b'/' | b'\n' | b'\r' => {
                    return Ok(Token { name: name(), value: None, last });
                }
                _ => {}
            }
        }
    }

    fn value(&mut self) -> Result<&'t str, XmlError> {
        let place = self.place;
        let end = match self.peek() {
            Some(quote @ (b'"' | b'\'')) if self.single_quotes => quote,
            // Either quote begins a value, and a double one ends it.
            Some(b'"' | b'\'') => b'"',
            _ => return Err(self.unexpected("a quote")),
        };
        self.step();
        let start = self.at;
        while self.next("the closing quote")? != end {}
        let value = &self.text[start..self.at - 1];
        let max = limits::NCCL_TEXT - if self.single_quotes { 2 } else { 0 };
        if max < value.len() {
            return Err(XmlError::Refused { place, quirk: Quirk::Length });
        }
        Ok(value)
    }

    /// The rest of a comment, whose first word was read as a name.
    fn comment(&mut self, begun: &str, last: u8) -> Result<(), XmlError> {
        let mut end = [b'.'; 3];
        let mut append = |it: u8| {
            end = [end[1], end[2], it];
            end == *b"-->"
        };
        for it in begun.bytes() {
            append(it);
        }
        let mut is_over = append(last);
        while !is_over {
            is_over = append(self.next("--> of a comment")?);
        }
        Ok(())
    }

    fn next(&mut self, expected: &'static str) -> Result<u8, XmlError> {
        let byte = self.peek().ok_or_else(|| self.unexpected(expected))?;
        self.step();
        Ok(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.place = self.place.after(self.text.as_bytes()[self.at]);
        self.at += 1;
    }

    fn unexpected(&self, expected: &'static str) -> XmlError {
        let found = match self.peek() {
            Some(it) if it.is_ascii() => format!("{:?}", char::from(it)),
            Some(_) => "a byte beyond ASCII".to_owned(),
            None => "the end of the file".to_owned(),
        };
        XmlError::Unexpected { place: self.place, found, expected }
    }
}

fn crossed(open: Option<Element>, end: Element) -> XmlError {
    let (open, opened) = open.map_or_else(|| (String::new(), end.place), |it| (it.name, it.place));
    XmlError::Crossed { place: end.place, found: end.name, open, opened }
}

/// A C string ends at its first NUL.
fn c_string(text: &str) -> &str {
    text.find('\0').map_or(text, |end| &text[..end])
}
