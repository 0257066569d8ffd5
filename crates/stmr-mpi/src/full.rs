//! Comparing in full: replicas also tell each other their contents, so that it is known at which
//! byte one differs, and that nothing hangs on a digest.

use std::collections::BTreeMap;

use selvedge_stmr::digest::Digest;
use selvedge_stmr::message::Message;
use selvedge_stmr::verdict::{Double, Offer, SetId};

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

/// Who has offered contents of the same call as a replica, which is one of them.
fn of_one_call(own: SetId, offers: &[(SetId, Offer)]) -> Vec<SetId> {
    let its = offers.iter().find(|it| it.0 == own).map(|it| it.1);
    let is_it = |it: &&(SetId, Offer)| its.is_some_and(|its| its.is_same_call(&it.1));
    offers.iter().filter(is_it).map(|it| it.0).collect()
}

/// What those do that come to one call, where no two have the same.
fn said_of(sets: &[SetId]) -> String {
    match sets {
        [one] => format!("{one} makes a call of its own,"),
        [one, other] => format!("{one} and {other} differ in"),
        _ => "all three replicas differ in".to_owned(),
    }
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
        let sets = of_one_call(SetId::new(self.told.set), &offers);
        let what = said_of(&sets);
        self.note(&format!("rank {rank}: {what} {place}"));
        self.tell_differences(call, own, &sets);
        self.restart_as_said(why)
    }

    /// Says where contents of one call differ, of `sets`, of which none was agreed on.
    fn tell_differences(&mut self, call: u64, own: &[&[u8]], sets: &[SetId]) {
        if !self.told.compares_full {
            return;
        }
        let mut all = self.contents.take(call);
        all.retain(|it| sets.contains(&it.0));
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

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_stmr::digest::Shape;

    /// What each of the replicas says that come to these calls, all with other contents.
    fn check(calls: &str, wanted: &[&str]) {
        let offer = |(idx, call): (usize, u8)| {
            let digest = Digest::of(&[idx as u8]);
            let (shape, length) = (Shape(call.into()), 1);
            let (signals, yields, tarries, took) = (0, false, false, false);
            let offer =
                Offer { call: 7, event: 9, shape, digest, length, signals, yields, tarries, took };
            (SetId::new(idx), offer)
        };
        let offers: Vec<_> = calls.bytes().enumerate().map(offer).collect();
        let said = offers.iter().map(|it| said_of(&of_one_call(it.0, &offers)));
        assert_eq!(said.collect::<Vec<_>>(), wanted, "{calls}");
    }

    #[test]
    fn those_that_come_to_one_call_differ_in_it_and_another_makes_its_own() {
        let [first, second] = ["set0 and set1 differ in", "set1 and set2 differ in"];
        let own = |set: u8| format!("set{set} makes a call of its own,");
        check("aa", &[first; 2]);
        check("aaa", &["all three replicas differ in"; 3]);
        check("aab", &[first, first, &own(2)]);
        check("abb", &[&own(0), second, second]);
        check("abc", &[&own(0), &own(1), &own(2)]);
    }
}
