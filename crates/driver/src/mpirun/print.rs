//! What the program prints: of standard output what two replicas agree on, of standard error what
//! one says, in whole lines (see `stmr::output`).

use std::io::{self, Write as _};
use std::time::Instant;

use selvedge_stmr::job::Rank;
use selvedge_stmr::output::{Found, Output};
use selvedge_stmr::verdict::Double;

use super::{Attempt, Channel, Ended, LINE_WAIT};

/// What one cluster prints on one channel.
pub(super) struct Printing {
    pub(super) output: Output,
    /// Bytes that wait for their line's end.
    pub(super) waiting: Vec<u8>,
    pub(super) since: Instant,
    /// Bytes that an earlier start of the program has printed already.
    pub(super) skip: u64,
}

impl Attempt<'_> {
    pub(super) fn printing(&mut self, channel: Channel, rank: Rank) -> &mut Printing {
        &mut self.outputs[rank.0 as usize][usize::from(channel == Channel::Err)]
    }

    pub(super) fn print(&mut self, channel: Channel, rank: Rank) -> Option<Ended> {
        let printing = self.printing(channel, rank);
        let mut bytes = Vec::new();
        let found = printing.output.draw(&mut bytes);
        if printing.waiting.is_empty() {
            printing.since = Instant::now();
        }
        let skipped = (printing.skip as usize).min(bytes.len());
        printing.skip -= skipped as u64;
        printing.waiting.extend(&bytes[skipped..]);
        let end = printing.waiting.iter().rposition(|it| *it == b'\n');
        let lines: Vec<u8> = printing.waiting.drain(..end.map_or(0, |it| it + 1)).collect();
        self.write(channel, &lines);
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

    fn write(&self, channel: Channel, bytes: &[u8]) {
        if !self.options.is_silent {
            write(channel, bytes);
        }
    }

    /// Prints lines without an end that have waited long enough.
    pub(super) fn print_waiting(&mut self, all: bool) {
        for printings in &mut self.outputs {
            for (channel, it) in [Channel::Out, Channel::Err].into_iter().zip(printings) {
                let asks = self.is_interactive && LINE_WAIT <= it.since.elapsed();
                if !it.waiting.is_empty() && (all || asks) {
                    let waiting = std::mem::take(&mut it.waiting);
                    if !self.options.is_silent {
                        write(channel, &waiting);
                    }
                }
            }
        }
    }

    /// How much each cluster has printed, on both channels.
    pub(super) fn lengths(&self) -> Vec<[u64; 2]> {
        self.outputs.iter().map(|[out, err]| [out.output.length(), err.output.length()]).collect()
    }
}

fn write(channel: Channel, bytes: &[u8]) {
    // Whoever reads our output may have gone; the program runs on for its files.
    let _ = match channel {
        Channel::Out => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Channel::Err => io::stderr().write_all(bytes),
    };
}
