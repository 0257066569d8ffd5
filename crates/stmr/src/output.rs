//! One copy of what a cluster prints: bytes that two replicas agree on, each of them once.
//!
//! Replicas print at their own pace.  What two have printed alike is let out; a third that prints
//! something else at the same place has erred.  A stream is heard until its end, so what a replica
//! printed before it died counts, and the output goes on at the last byte that was let out.

use crate::verdict::{Double, SetId};

/// What is found when replicas print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This replica printed something else than the others.
    Wrong(SetId),
    /// Nobody can say which is right.
    Undecided(Double),
}

#[derive(Clone, Debug, Default)]
struct Stream {
    /// What it printed and is not yet compared; its first byte is at `at`.
    ahead: Vec<u8>,
    at: u64,
    ended: bool,
    /// Its end, where it has not ended yet, is not of its own doing.
    is_cut: bool,
    wrong: bool,
}

/// The voted output of one cluster.
#[derive(Clone, Debug)]
pub struct Output {
    streams: Vec<Stream>,
    /// Bytes that were let out and that a slower replica has yet to print, from `kept_from` on.
    kept: Vec<u8>,
    kept_from: u64,
    /// Differences between replicas are no errors: the lowest leads.
    follows: bool,
}

impl Output {
    /// Output that is voted.
    #[must_use]
    pub fn voted(replicas: usize) -> Self {
        let streams = vec![Stream::default(); replicas];
        Self { streams, kept: Vec::new(), kept_from: 0, follows: false }
    }

    /// Output that follows the lowest replica that still prints: what libraries say of themselves
    /// differs between processes.
    #[must_use]
    pub fn followed(replicas: usize) -> Self {
        Self { follows: true, ..Self::voted(replicas) }
    }

    /// Bytes let out so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.kept_from + self.kept.len() as u64
    }

    /// A replica printed this.
    pub fn print(&mut self, set: SetId, bytes: &[u8]) {
        self.streams[set.idx()].ahead.extend(bytes);
    }

    /// A replica prints no more.
    pub fn end(&mut self, set: SetId) {
        self.streams[set.idx()].ended = true;
    }

    /// A replica is about to be ended, wherever it is: what it has not printed says nothing.
    pub fn cut(&mut self, set: SetId) {
        let it = &mut self.streams[set.idx()];
        it.is_cut = !it.ended;
    }

    /// Whether no replica prints any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.streams.iter().all(|it| it.ended)
    }

    /// Appends what may be let out to `out`, and returns what was found on the way.
    pub fn draw(&mut self, out: &mut Vec<u8>) -> Vec<Found> {
        let mut found = Vec::new();
        loop {
            self.compare_kept(&mut found);
            let before = (self.length(), self.follows);
            if self.follows {
                self.follow(out);
            } else {
                self.vote(out, &mut found);
            }
            if (self.length(), self.follows) == before {
                self.trim();
                return found;
            }
        }
    }

    /// Takes from each stream what has been let out already.
    fn compare_kept(&mut self, found: &mut Vec<Found>) {
        for (set, stream) in SetId::all(self.streams.len()).zip(&mut self.streams) {
            let from = (stream.at - self.kept_from) as usize;
            let n = stream.ahead.len().min(self.kept.len() - from);
            if !stream.wrong && !self.follows && stream.ahead[..n] != self.kept[from..from + n] {
                stream.wrong = true;
                found.push(Found::Wrong(set));
            }
            stream.ahead.drain(..n);
            stream.at += n as u64;
        }
    }

    fn follow(&mut self, out: &mut Vec<u8>) {
        let end = self.length();
        let next = self.streams.iter().find(|it| !it.wrong && (!it.ended || !it.ahead.is_empty()));
        let Some(stream) = next.filter(|it| it.at == end) else { return };
        let bytes = stream.ahead.clone();
        out.extend(&bytes);
        self.kept.extend(bytes);
    }

    fn vote(&mut self, out: &mut Vec<u8>, found: &mut Vec<Found>) {
        let end = self.length();
        let at_end = |it: &Stream| !it.wrong && it.at == end && !it.ahead.is_empty();
        let there: Vec<usize> =
            (0..self.streams.len()).filter(|it| at_end(&self.streams[*it])).collect();
        let needed = self.streams.len().min(2);
        let alike = |a: usize, b: usize| {
            let (a, b) = (&self.streams[a].ahead, &self.streams[b].ahead);
            a.iter().zip(b).take_while(|(a, b)| a == b).count()
        };
        let best = match there[..] {
            [] => return,
            [one] if needed == 1 => Some((self.streams[one].ahead.len(), one)),
            [_] => None,
            [a, b] => Some((alike(a, b), a)),
            _ => [(0, 1), (0, 2), (1, 2)].iter().map(|(a, b)| (alike(*a, *b), *a)).max(),
        };
        let (n, from) = best.unwrap_or((0, 0));
        if 0 < n {
            let bytes = self.streams[from].ahead[..n].to_vec();
            out.extend(&bytes);
            self.kept.extend(bytes);
            return;
        }
        // Nobody agrees: either somebody has yet to print, or nobody can say who is right.
        let may_come = self
            .streams
            .iter()
            .any(|it| !it.wrong && !it.ended && (it.ahead.is_empty() || it.at < end));
        if may_come {
            return;
        }
        let why = match there.len() {
            3.. => Double::NotDeterministic,
            2 => Double::NoMajority,
            _ => {
                self.one_goes_on(there[0], out, found);
                return;
            }
        };
        found.push(Found::Undecided(why));
        // A program that is not deterministic has no right output; its lowest replica's is one of
        // its own.  Without a majority the program does not go on.
        let from = if why == Double::NotDeterministic { there[0] + 1 } else { 0 };
        for stream in &mut self.streams[from..] {
            stream.wrong = true;
        }
        self.follows = why == Double::NotDeterministic;
    }

    /// All others have ended here: those that ended in order are right to, those that died are no
    /// judges.
    fn one_goes_on(&mut self, one: usize, out: &mut Vec<u8>, found: &mut Vec<Found>) {
        let end = self.length();
        let judges = |it: &(usize, &Stream)| {
            it.0 != one && !it.1.wrong && it.1.ended && !it.1.is_cut && it.1.at == end
        };
        if 2 <= self.streams.iter().enumerate().filter(judges).count() {
            self.streams[one].wrong = true;
            found.push(Found::Wrong(SetId::new(one)));
            return;
        }
        let bytes = self.streams[one].ahead.clone();
        out.extend(&bytes);
        self.kept.extend(bytes);
    }

    /// Lets go of what every replica that still counts has printed.
    fn trim(&mut self) {
        let end = self.length();
        let counts = |it: &&Stream| !it.wrong && !it.ended && !self.follows;
        let least = self.streams.iter().filter(counts).map(|it| it.at).min().unwrap_or(end);
        let n = (least.min(end) - self.kept_from) as usize;
        // In followed output the next to lead goes on where this one ends.
        let n = if self.follows {
            let behind = self.streams.iter().filter(|it| !it.ended).map(|it| it.at).min();
            ((behind.unwrap_or(end) - self.kept_from) as usize).min(self.kept.len())
        } else {
            n
        };
        self.kept.drain(..n);
        self.kept_from += n as u64;
        for it in &mut self.streams {
            if it.at < self.kept_from {
                // It has erred or ended: where it stands does not matter.
                it.at = self.kept_from;
                it.ahead.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows`: which replica prints what; `.` is its end, `!` one that it is not asked about.
    fn check(replicas: usize, rows: &[(usize, &str)], wanted: &str) {
        let mut output = Output::voted(replicas);
        let (mut out, mut found) = (Vec::new(), Vec::new());
        for (set, text) in rows {
            match *text {
                "." => output.end(SetId::new(*set)),
                "!" => {
                    output.cut(SetId::new(*set));
                    output.end(SetId::new(*set));
                }
                text => output.print(SetId::new(*set), text.as_bytes()),
            }
            found.extend(output.draw(&mut out));
        }
        let text = String::from_utf8(out).unwrap();
        let told = if found.is_empty() { text } else { format!("{text} {found:?}") };
        assert_eq!(told, wanted, "{rows:?}");
    }

    #[test]
    fn two_that_print_alike_are_believed() {
        check(3, &[(0, "abc")], "");
        check(3, &[(0, "abc"), (1, "abd")], "ab");
        check(3, &[(0, "abc"), (1, "abd"), (2, "abd")], "abd [Wrong(set0)]");
        check(3, &[(0, "abc"), (1, "abc"), (2, "abx")], "abc [Wrong(set2)]");
        check(3, &[(2, "ab"), (1, "abc"), (0, "a"), (2, "cd"), (0, "bcd")], "abcd");
        check(1, &[(0, "abc")], "abc");
    }

    #[test]
    fn what_a_replica_printed_before_it_died_counts_and_nothing_is_doubled() {
        check(3, &[(0, "ab"), (0, "."), (1, "abcd"), (2, "a"), (2, "bcd")], "abcd");
        check(3, &[(0, "."), (1, "x"), (2, "x"), (1, "."), (2, ".")], "x");
    }

    #[test]
    fn who_prints_on_when_two_have_ended_is_wrong() {
        check(3, &[(0, "a"), (1, "a"), (0, "."), (1, "."), (2, "ab")], "a [Wrong(set2)]");
        check(3, &[(0, "a"), (1, "a"), (0, "!"), (1, "."), (2, "ab")], "ab");
        check(3, &[(2, "ab"), (0, "!"), (1, "!"), (2, "!")], "ab");
    }

    #[test]
    fn differences_without_a_majority_are_told() {
        check(2, &[(0, "a"), (1, "b")], " [Undecided(NoMajority)]");
        check(3, &[(0, "1"), (1, "2"), (2, "3")], "1 [Undecided(NotDeterministic)]");
        check(3, &[(0, "."), (1, "2"), (2, "3")], " [Undecided(NoMajority)]");
    }

    #[test]
    fn followed_output_goes_on_with_the_next_where_the_lowest_died() {
        let mut output = Output::followed(3);
        let mut out = Vec::new();
        output.print(SetId::new(1), b"onetwo");
        output.print(SetId::new(0), b"one");
        output.draw(&mut out);
        assert_eq!(out, b"one");
        output.end(SetId::new(0));
        output.draw(&mut out);
        assert_eq!(out, b"onetwo");
    }
}
