//! A Rust file as tokens: which paths, macros, methods and functions it names, and where.
//!
//! Tokens, not text, so that a word in a comment or a string is never taken for code; tokens, not
//! a syntax tree, so that the bodies of macros are read as well.

use std::str::FromStr as _;

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Counted from 1.
    pub line: usize,
    /// The name; a path keeps its `::`.
    pub text: String,
    /// Whether it stands in an item that only tests compile.
    pub in_test: bool,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name alone.
    pub name: String,
    /// The line of `fn`.
    pub line: usize,
    /// Lines from `fn` to the closing brace; a text that spans lines counts as one.
    pub n_lines: usize,
    /// Whether it carries `#[test]`.
    pub is_test: bool,
    /// Every path that its body names.
    pub names: Vec<String>,
}

/// What a Rust file names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Paths with `use` groups spelt out: `use a::{b, c::d}` is `a::b` and `a::c::d`.
    pub paths: Vec<Named>,
    /// `name!`.
    pub macros: Vec<Named>,
    /// `.name(…)` and `.name`.
    pub methods: Vec<Named>,
    /// Every `fn` with a body.
    pub functions: Vec<Function>,
    /// First and last line of each literal that spans lines.
    pub texts: Vec<(usize, usize)>,
    /// `mod name` at the top of the file, in order.
    pub modules: Vec<String>,
}

/// Reads `text`.
///
/// # Errors
/// The line at which it stops being Rust tokens.
pub fn read(text: &str) -> Result<Source, usize> {
    let tokens = TokenStream::from_str(text).map_err(|e| e.span().start().line)?;
    let mut source = Source::default();
    let place = Place { prefix: String::new(), in_test: false, is_top: true };
    source.walk(tokens, &place);
    for function in &mut source.functions {
        let end = function.line + function.n_lines;
        let texts = source.texts.iter().filter(|it| function.line <= it.0 && it.1 < end);
        function.n_lines -= texts.map(|it| it.1 - it.0).sum::<usize>();
    }
    Ok(source)
}

/// Where a walk stands.
struct Place {
    /// What a `use` group's paths begin with.
    prefix: String,
    in_test: bool,
    is_top: bool,
}

impl Source {
    fn walk(&mut self, tokens: TokenStream, place: &Place) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut attrs = Attrs::default();
        let mut idx = 0;
        while idx < tokens.len() {
            let in_test = place.in_test || attrs.cfg_test || attrs.test;
            match &tokens[idx] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let bang = is_punct(tokens.get(idx + 1), '!');
                    let at = idx + 1 + usize::from(bang);
                    if let Some(group) = group_at(&tokens, at, Delimiter::Bracket) {
                        // `#![…]` speaks of what it stands in, so it opens no item.
                        if !bang {
                            attrs.read(group);
                        }
                        self.walk(group.stream(), &inner(place, in_test));
                        idx = at;
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => attrs = Attrs::default(),
                TokenTree::Punct(_) => {}
                TokenTree::Group(group) => {
                    self.walk(group.stream(), &inner(place, in_test));
                    if group.delimiter() == Delimiter::Brace {
                        attrs = Attrs::default();
                    }
                }
                TokenTree::Literal(literal) => {
                    let (start, end) = (literal.span().start().line, literal.span().end().line);
                    if start < end {
                        self.texts.push((start, end));
                    }
                }
                TokenTree::Ident(ident) => {
                    if place.is_top && ident == "mod" {
                        self.modules.extend(tokens.get(idx + 1).map(ToString::to_string));
                    }
                    if ident == "fn" {
                        self.note_function(&tokens, idx, attrs.test);
                    }
                    idx = self.note_path(&tokens, idx, place, in_test);
                }
            }
            idx += 1;
        }
    }

    /// Reads the path that starts at `idx` and returns the index of its last token.
    fn note_path(
        &mut self,
        tokens: &[TokenTree],
        idx: usize,
        place: &Place,
        in_test: bool,
    ) -> usize {
        let line = tokens[idx].span().start().line;
        let mut text = join(&place.prefix, &tokens[idx].to_string());
        let mut last = idx;
        while is_path_sep(tokens, last + 1) {
            match tokens.get(last + 3) {
                Some(TokenTree::Ident(ident)) => {
                    text = join(&text, &ident.to_string());
                    last += 3;
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inner = Place { prefix: text, in_test, is_top: false };
                    self.walk(group.stream(), &inner);
                    return last + 3;
                }
                _ => break,
            }
        }
        let named = Named { line, text, in_test };
        if is_punct(tokens.get(last + 1), '!') && !is_punct(tokens.get(last + 2), '=') {
            self.macros.push(named.clone());
        }
        if idx.checked_sub(1).is_some_and(|before| is_punct(tokens.get(before), '.')) {
            self.methods.push(named);
        } else {
            self.paths.push(named);
        }
        last
    }

    fn note_function(&mut self, tokens: &[TokenTree], idx: usize, is_test: bool) {
        let Some(TokenTree::Ident(name)) = tokens.get(idx + 1) else { return };
        let end = tokens[idx..].iter().find(|it| is_punct(Some(it), ';') || is_brace(it));
        let Some(TokenTree::Group(body)) = end else { return };
        let mut names = Source::default();
        names.walk(body.stream(), &Place { prefix: String::new(), in_test: true, is_top: false });
        let line = tokens[idx].span().start().line;
        self.functions.push(Function {
            name: name.to_string(),
            line,
            n_lines: body.span_close().end().line - line + 1,
            is_test,
            names: names.paths.into_iter().map(|it| it.text).collect(),
        });
    }
}

/// What the attributes before an item say of it.
#[derive(Default)]
struct Attrs {
    cfg_test: bool,
    test: bool,
}

impl Attrs {
    fn read(&mut self, group: &Group) {
        let text = group.stream().to_string();
        let words = || text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        self.test |= text == "test" || text.starts_with("tokio :: test");
        self.cfg_test |= text.starts_with("cfg") && !words().any(|it| it == "not") && {
            words().any(|it| it == "test" || it == "testing")
        };
    }
}

fn inner(place: &Place, in_test: bool) -> Place {
    Place { prefix: place.prefix.clone(), in_test, is_top: false }
}

fn join(prefix: &str, rest: &str) -> String {
    if prefix.is_empty() { rest.to_owned() } else { format!("{prefix}::{rest}") }
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

fn is_brace(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn is_path_sep(tokens: &[TokenTree], idx: usize) -> bool {
    let joint = matches!(tokens.get(idx), Some(TokenTree::Punct(punct))
        if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
    joint && is_punct(tokens.get(idx + 1), ':')
}

fn group_at(tokens: &[TokenTree], idx: usize, delimiter: Delimiter) -> Option<&Group> {
    match tokens.get(idx) {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let shown = |it: &Named| format!("{}{}", if it.in_test { "test " } else { "" }, it.text);
        read(text).unwrap().paths.iter().map(shown).collect()
    }

    #[test]
    fn use_groups_are_spelt_out_and_comments_and_texts_are_not_code() {
        let found = paths(
            "use std::{fs, io::{self, Read as _}};\n// std::net\nconst A: &str = \"std::time\";",
        );
        for wanted in ["std::fs", "std::io::self", "std::io::Read"] {
            assert!(found.iter().any(|it| it == wanted), "{wanted} in {found:?}");
        }
        assert!(!found.iter().any(|it| it == "std::net" || it == "std::time"), "{found:?}");
    }

    #[test]
    fn what_only_tests_compile_is_known_as_such() {
        let text = "#[cfg(test)]\nmod tests { use std::fs; }\nuse std::net;\n\
                    #[cfg(not(test))]\nuse std::time;\n#[test]\nfn a() { std::env::args(); }";
        let found = paths(text);
        for wanted in ["test std::fs", "std::net", "std::time", "test std::env::args"] {
            assert!(found.iter().any(|it| it == wanted), "{wanted} in {found:?}");
        }
    }

    #[test]
    fn a_function_is_measured_to_its_closing_brace_with_a_text_as_one_line() {
        let text = "impl A {\n    fn long(&self)\n    where\n        A: B,\n    {\n        let a = \
                    \"1\n2\n3\";\n    }\n}\ntrait T { fn bare(&self); }\n";
        let source = read(text).unwrap();
        let found: Vec<_> = source.functions.iter().map(|it| (&*it.name, it.n_lines)).collect();
        assert_eq!(found, [("long", 6)]);
    }

    #[test]
    fn macros_methods_and_modules_are_told_apart() {
        let source = read("pub mod a;\nmod b {}\nfn f() { x.ln(); dbg!(y); 1 != 2; }").unwrap();
        assert_eq!(source.modules, ["a", "b"]);
        assert_eq!(source.macros.len(), 1, "{:?}", source.macros);
        assert_eq!(source.methods[0].text, "ln");
        assert_eq!(read("fn f() {\n  )"), Err(2));
    }
}
