//! What the program prints: of standard output what two replicas agree on, of standard error what
//! one says, in whole lines (see `stmr::output`).

use std::time::Instant;

use selvedge_stmr::job::Rank;
use selvedge_stmr::output::{Found, Output};
use selvedge_stmr::verdict::{Double, SetId};

use super::printed::Printed;
use super::{Attempt, Channel, Ended, LINE_WAIT, MpirunOptions};

/// A longer line is several: each start of a program cuts it at the same places.
const PIECE_MAX: usize = 64 << 10;

/// What one cluster prints on one channel.
pub(super) struct Printing {
    pub(super) output: Output,
    /// Bytes that wait for their line's end.
    waiting: Vec<u8>,
    since: Instant,
    /// What was let out, by earlier starts of the program as well.
    printed: Printed,
}

/// What a process prints on both channels, of which this was printed by earlier starts.
pub(super) fn printings(options: &MpirunOptions, printed: Option<[Printed; 2]>) -> [Printing; 2] {
    let is_other = options.restart_command.is_some();
    let [out, err] = printed.filter(|_| !is_other).unwrap_or_default();
    let printing = |output, mut printed: Printed| {
        printed.rewind();
        Printing { output, waiting: Vec::new(), since: Instant::now(), printed }
    };
    let n = options.replicas;
    [printing(Output::voted(n), out), printing(Output::followed(n), err)]
}

impl Attempt<'_> {
    pub(super) fn printing(&mut self, channel: Channel, rank: Rank) -> &mut Printing {
        &mut self.outputs[rank.0 as usize][channel as usize]
    }

    pub(super) fn print(&mut self, channel: Channel, rank: Rank) -> Option<Ended> {
        let printing = self.printing(channel, rank);
        let mut bytes = Vec::new();
        let found = printing.output.draw(&mut bytes);
        if printing.waiting.is_empty() {
            printing.since = Instant::now();
        }
        let n_waiting = printing.waiting.len();
        let end = bytes.iter().rposition(|it| *it == b'\n').map_or(0, |it| n_waiting + it + 1);
        printing.waiting.extend(bytes);
        let end = end + (printing.waiting.len() - end) / PIECE_MAX * PIECE_MAX;
        let lines: Vec<u8> = printing.waiting.drain(..end).collect();
        let (mut fresh, mut other) = (Vec::new(), None);
        let lines = lines.split_inclusive(|it| *it == b'\n');
        for line in lines.flat_map(|it| it.chunks(PIECE_MAX)) {
            let it = printing.printed.line(line);
            fresh.extend(it.bytes);
            other = other.or(it.other);
        }
        // What libraries say of themselves on standard error is another in each start.
        if let Some(line) = other.filter(|_| channel == Channel::Out) {
            self.notes.push(format!(
                "{rank}: from line {line} on the program prints something else than before it \
                 started again, as one that goes on from its own checkpoint; both are shown"
            ));
        }
        self.write(channel, &fresh);
        for found in found {
            match found {
                Found::Wrong(set) => {
                    self.notes.push(format!("{rank}: {set} printed something else"));
                    self.process(rank, set).misprints += 1;
                }
                Found::Undecided(Double::NotDeterministic) => {
                    let at = self.printing(channel, rank).output.length();
                    self.notes.push(format!(
                        "{rank}: all replicas print something else at byte {at}: the program is \
                         not deterministic here; the first one's output is shown"
                    ));
                }
                Found::Undecided(why) => return Some(Ended::Again(rank, why)),
            }
        }
        None
    }

    /// Ends the outputs of a process that have ended, once it is known why: what one that died has
    /// not printed says nothing about its siblings.  `is_over` if nothing more is waited for.
    pub(super) fn end_outputs(&mut self, rank: Rank, set: SetId, is_over: bool) -> Option<Ended> {
        let process = self.process(rank, set);
        if process.link.is_some() && !process.ended && !is_over {
            return None;
        }
        let has_died = process.pid != 0 && !process.ended;
        let closed = std::mem::take(&mut process.closed);
        let mut ended = None;
        for channel in [Channel::Out, Channel::Err] {
            if closed[channel as usize] {
                let output = &mut self.printing(channel, rank).output;
                if has_died {
                    output.cut(set);
                }
                output.end(set);
                ended = self.print(channel, rank).or(ended);
            }
        }
        ended
    }

    fn write(&self, channel: Channel, bytes: &[u8]) {
        if !self.options.is_silent {
            self.out.outlet.put(channel, bytes);
        }
    }

    /// Prints lines without an end that have waited long enough.
    pub(super) fn print_waiting(&mut self) {
        if self.is_interactive {
            self.print_begun(|it| LINE_WAIT <= it.since.elapsed(), false);
        }
    }

    /// Prints what waits for its line's end in vain; `is_last` if the program does not start again.
    pub(super) fn print_rest(&mut self, is_last: bool) {
        self.print_begun(|_| true, is_last);
    }

    fn print_begun(&mut self, is_due: impl Fn(&Printing) -> bool, is_last: bool) {
        for printings in &mut self.outputs {
            for (channel, it) in [Channel::Out, Channel::Err].into_iter().zip(printings) {
                if !it.waiting.is_empty() && is_due(it) {
                    let fresh = it.printed.part(&it.waiting, is_last);
                    if !self.options.is_silent {
                        self.out.outlet.put(channel, fresh.bytes);
                    }
                }
            }
        }
    }

    /// What each cluster has printed, on both channels.
    pub(super) fn take_printed(&mut self) -> Vec<[Printed; 2]> {
        let of = |it: &mut [Printing; 2]| it.each_mut().map(|it| std::mem::take(&mut it.printed));
        self.outputs.iter_mut().map(of).collect()
    }
}
