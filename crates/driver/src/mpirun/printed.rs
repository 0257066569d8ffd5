//! What has been printed, so that a program that starts again prints nothing twice and loses
//! nothing: one that computes all of it again prints the same lines again, and one that goes on
//! from its own checkpoint prints others.

use selvedge_stmr::digest::Digest;

/// What the starts of a program have printed on one channel of one cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Printed {
    /// Digests of the lines that were let out.
    lines: Vec<u64>,
    /// What was let out of the line behind them.
    begun: Vec<u8>,
    /// So many of the lines has the start that prints now printed too.
    again: usize,
}

/// What comes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fresh<'a> {
    /// What is to be let out.
    pub(super) bytes: &'a [u8],
    /// The number from 1 on of the line in whose stead an earlier start printed another.
    pub(super) other: Option<usize>,
}

impl Printed {
    /// Another start begins to print.
    pub(super) fn rewind(&mut self) {
        self.again = 0;
    }

    /// The start prints a line, with its end.
    pub(super) fn line<'a>(&mut self, line: &'a [u8]) -> Fresh<'a> {
        let digest = Digest::of(line).0 as u64;
        if self.lines.get(self.again) == Some(&digest) {
            self.again += 1;
            return Fresh { bytes: &[], other: None };
        }
        let fresh = self.go_on(line);
        self.lines.push(digest);
        self.begun.clear();
        self.again += 1;
        fresh
    }

    /// The start has begun a line with this, and its end is not waited for.  It may still become
    /// one that was let out already, unless it is the last that is printed.
    pub(super) fn part<'a>(&mut self, part: &'a [u8], is_last: bool) -> Fresh<'a> {
        if self.again < self.lines.len() && !is_last {
            return Fresh { bytes: &[], other: None };
        }
        let fresh = self.go_on(part);
        if !self.begun.starts_with(part) {
            self.begun = part.to_vec();
        }
        fresh
    }

    /// Goes on behind the lines that were printed too.
    fn go_on<'a>(&mut self, text: &'a [u8]) -> Fresh<'a> {
        let mut other = None;
        if self.again < self.lines.len() {
            self.lines.truncate(self.again);
            self.begun.clear();
            other = Some(self.again + 1);
        }
        let bytes = if self.begun.starts_with(text) {
            &[]
        } else if let Some(rest) = text.strip_prefix(&*self.begun) {
            rest
        } else {
            other = Some(self.again + 1);
            text
        };
        Fresh { bytes, other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is let out of starts that print these texts, the last up to its end, and the lines in
    /// whose stead there were others.
    fn check(starts: &[&str], wanted: &str, others: &[usize]) {
        let (mut printed, mut out, mut told) = (Printed::default(), Vec::new(), Vec::new());
        for (at, text) in starts.iter().enumerate() {
            printed.rewind();
            for line in text.as_bytes().split_inclusive(|it| *it == b'\n') {
                let fresh = match line.last() {
                    Some(b'\n') => printed.line(line),
                    _ => printed.part(line, at + 1 == starts.len()),
                };
                out.extend(fresh.bytes);
                told.extend(fresh.other);
            }
        }
        assert_eq!(String::from_utf8(out).unwrap(), wanted, "{starts:?}");
        assert_eq!(told, others, "{starts:?}");
    }

    #[test]
    fn what_is_printed_again_is_let_out_once() {
        check(&["a\nb\nc\n"], "a\nb\nc\n", &[]);
        check(&["a\nb\n", "a\nb\nc\n"], "a\nb\nc\n", &[]);
        // The second comes less far than the first.
        check(&["a\nb\nc\n", "a\n", "a\nb\nc\nd\n"], "a\nb\nc\nd\n", &[]);
        check(&["a\nbe", "a\nb", "a\nbegun\n"], "a\nbegun\n", &[]);
        check(&["a\nb\n", "a", "a\nb\nc"], "a\nb\nc", &[]);
        check(&["", "a\n"], "a\n", &[]);
    }

    #[test]
    fn what_a_start_prints_that_none_has_printed_before_is_let_out_whole() {
        let starts = ["begin\nstep 1\nstep 2\n", "begin\nfrom step 2\nstep 3\nend\n"];
        check(&starts, "begin\nstep 1\nstep 2\nfrom step 2\nstep 3\nend\n", &[2]);
        // The third prints what the second did.
        let starts = ["a\nb\n", "a\nc\nd\n", "a\nc\nd\ne\n"];
        check(&starts, "a\nb\nc\nd\ne\n", &[2]);
        // Without ends of lines.
        check(&["a\nst", "a\nother\n"], "a\nstother\n", &[2]);
        check(&["a\nb\nc\n", "a\nx"], "a\nb\nc\nx", &[2]);
        check(&["a\nb\nc\n", "a\nx", "a\nb\nc\nd\n"], "a\nb\nc\nd\n", &[]);
    }
}
