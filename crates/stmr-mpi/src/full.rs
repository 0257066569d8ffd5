//! Comparing in full: replicas also tell each other their contents, so that it is known at which
//! byte one differs, and that nothing hangs on a digest.

use std::collections::BTreeMap;

use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::Message;
use selvedge_stmr::verdict::{Double, SetId};

use crate::state::State;

/// What siblings told of compares that are not over, by set and call.
#[derive(Default)]
pub(crate) struct Contents(BTreeMap<(SetId, u64), Vec<u8>>);

impl Contents {
    pub(crate) fn keep(&mut self, set: SetId, call: u64, bytes: Vec<u8>) {
        self.0.insert((set, call), bytes);
    }

    /// What was told of a compare; what is older goes.
    fn take(&mut self, call: u64) -> Vec<(SetId, Vec<u8>)> {
        let mut found = Vec::new();
        let rest = std::mem::take(&mut self.0);
        for ((set, at), bytes) in rest {
            if at == call {
                found.push((set, bytes));
            } else if call < at {
                self.0.insert((set, at), bytes);
            }
        }
        found
    }
}

/// Where two contents first differ, in words; nothing if they are equal.
fn difference(bytes: &[u8], right: &[u8]) -> Option<String> {
    if bytes.len() != right.len() {
        return Some(format!("in length: {} bytes for {}", bytes.len(), right.len()));
    }
    let at = bytes.iter().zip(right).position(|(a, b)| a != b)?;
    let (length, byte, wanted) = (bytes.len(), bytes[at], right[at]);
    Some(format!("at byte {at} of {length}: {byte:#04x} for {wanted:#04x}"))
}

impl State {
    /// Tells the siblings what is about to be offered.
    pub(crate) fn tell_contents(&mut self, rows: &[&[u8]]) {
        if self.told.compares_full {
            let message = Message::Contents { call: self.replica.n_calls(), bytes: rows.concat() };
            self.tell_siblings(&message);
        }
    }

    /// Says who differs from the contents that were agreed on at compare `call`, and where; they
    /// are this replica's own if no others are given.
    pub(crate) fn check_contents(&mut self, call: u64, own: &[&[u8]], right: Option<&[u8]>) {
        if !self.told.compares_full {
            return;
        }
        let marked = std::mem::take(&mut self.marked);
        let mut all = self.contents.take(call);
        let own = own.concat();
        let right = right.map_or_else(|| own.clone(), <[u8]>::to_vec);
        all.push((SetId::new(self.told.set), own));
        let (rank, doing) = (self.told.rank, self.doing);
        for (set, bytes) in all {
            let Some(what) = difference(&bytes, &right) else { continue };
            let is_unseen = Digest::of(&bytes) == Digest::of(&right);
            if !is_unseen && !marked.contains(&set) {
                continue;
            }
            self.note(&format!("rank {rank}: {set} differs in {doing} {what}"));
            let alike = bytes.iter().zip(&right).take_while(|(a, b)| a == b).count();
            self.tell_mark(set, Some(alike));
            if is_unseen {
                // The digests let a difference through; it is known now, and cannot be mended here.
                self.restart(Double::NoMajority);
            }
        }
    }

    /// Starts the program again, after a compare that came to nothing: where no two replicas have
    /// the same, it is told of which call, in the same words by all, and `what` is their message.
    #[cold]
    pub(crate) fn end_undecided(&mut self, why: Double, own: &[&[u8]], what: &str) -> ! {
        let offers = self.replica.offers();
        if offers.len() < 2 {
            self.restart(why)
        }
        let (call, rank, doing) = (self.replica.n_calls(), self.told.rank, self.doing);
        let length: usize = own.iter().map(|it| it.len()).sum();
        let contents = match self.told.window {
            0 | 1 => format!("{length} bytes{what}"),
            window => format!("the last {window} sends"),
        };
        let place = format!("{doing}, compare {call} ({contents})");
        if offers.windows(2).all(|it| it[0].1.is_same_call(&it[1].1)) {
            let who = match &offers[..] {
                [one, other] => format!("{} and {}", one.0, other.0),
                _ => "all three replicas".to_owned(),
            };
            self.note(&format!("rank {rank}: {who} differ in {place}"));
            self.tell_differences(call, own);
        } else {
            let own = self.told.set;
            self.note(&format!("rank {rank}: set{own} makes a call of its own, {place}"));
        }
        self.restart_as_said(why)
    }

    /// Says where contents differ of which none was agreed on.
    fn tell_differences(&mut self, call: u64, own: &[&[u8]]) {
        if !self.told.compares_full {
            return;
        }
        let mut all = self.contents.take(call);
        all.push((SetId::new(self.told.set), own.concat()));
        all.sort();
        let (rank, doing) = (self.told.rank, self.doing);
        for (idx, (set, bytes)) in all.iter().enumerate() {
            for (other, others) in &all[idx + 1..] {
                if let Some(what) = difference(bytes, others) {
                    self.note(&format!("rank {rank}: {set} and {other} differ in {doing} {what}"));
                }
            }
        }
    }
}
