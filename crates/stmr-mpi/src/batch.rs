//! Sends that do not block are compared together.
//!
//! ```text
//! Isend ──► packed, held ─┐
//! Isend ──► packed, held ─┼──► another call, or an event ──► one compare ──► all leave
//! Start ──► packed, held ─┘
//! ```
//!
//! A compare is a wait for siblings, and a program that sends to many neighbours would wait for
//! each of them; the contents of such a send need not leave before its wait.  A program that
//! computes between such a send and its next call would let its neighbours wait, though: one of the
//! replicas that finds this says so with the compare, and all compare at once for some sends after
//! it.

use selvedge_stmr::digest::Digest;

use crate::calls;
use crate::clock;
use crate::p2p::Leaving;
use crate::real::Call;
use crate::state::State;

/// Calls after which sends are held still.
const GO_ON: [Call; 9] = [
    calls::ISEND,
    calls::ISSEND,
    calls::IRSEND,
    calls::IBSEND,
    calls::IRECV,
    calls::ISENDRECV,
    calls::ISENDRECV_REPLACE,
    calls::START,
    calls::STARTALL,
];

/// So many sends are held at the most, and so many bytes in all.
const SENDS_MAX: usize = 32;
const BYTES_MAX: usize = 256 << 10;

/// A process that computes for so long while it holds something, in nanoseconds, or does anything
/// for so long, in milliseconds, has held it for long.
const COMPUTES_NS: u64 = 200_000;
const HOLDS_MS: u64 = 50;

/// After that so many sends are not held; after each time twice as many, up to the last.
const AT_ONCE: [u32; 2] = [64, 1 << 16];

/// Sends that were begun and not compared.
#[derive(Default)]
pub(crate) struct Batch {
    sends: Vec<Held>,
    /// The call that the last of them was begun in.
    doing: &'static str,
    /// Own processor time and the coarse clock when the last of them was held.
    since: [u64; 2],
    /// So many sends are compared at once from here on, and so many the next time.
    at_once: u32,
    at_once_next: u32,
}

struct Held {
    leaving: Leaving,
    bytes: Vec<u8>,
    digest: Digest,
}

/// What they are, where no two replicas' are alike.
fn words_of(sends: &[Held]) -> String {
    let first = sends.first().map(|it| it.leaving.words()).unwrap_or_default();
    match sends.len() {
        0 | 1 => first,
        n => format!(" in {n} sends, the first{first}"),
    }
}

impl State {
    /// Sends what is held, unless it stays so behind this call, of the form with small counts.
    pub(crate) fn send_held_before(&mut self, call: impl FnOnce() -> Call) {
        if !self.batch.sends.is_empty() && !GO_ON.contains(&call()) {
            self.send_held();
        }
    }

    /// Holds a send of these contents, if it may be; else gives them back.
    pub(crate) fn hold(&mut self, leaving: Leaving, bytes: Vec<u8>) -> Option<(Leaving, Vec<u8>)> {
        let is_plain = 1 < self.told.replicas && self.compares_each();
        if !is_plain || BYTES_MAX < bytes.len() {
            return Some((leaving, bytes));
        }
        let batch = &mut self.batch;
        if 0 < batch.at_once {
            batch.at_once -= 1;
            return Some((leaving, bytes));
        }
        let held: usize = batch.sends.iter().map(|it| it.bytes.len()).sum();
        if batch.sends.len() == SENDS_MAX || BYTES_MAX < held + bytes.len() {
            self.send_held();
        }
        self.mix(&[bytes.len() as u64]);
        // Of what lies here: what changes until it is compared is found there, what changes later
        // by who receives it.
        let digest = Digest::of(&bytes);
        let doing = self.doing;
        let batch = &mut self.batch;
        batch.doing = doing;
        batch.sends.push(Held { leaving, bytes, digest });
        batch.since = [clock::own_ns(), clock::coarse_ms()];
        None
    }

    /// Compares what is held, and lets it leave.
    pub(crate) fn send_held(&mut self) {
        if self.batch.sends.is_empty() {
            return;
        }
        let [own_ns, at_ms] = self.batch.since;
        // Another thread's processor time may be less.
        let computed_ns = clock::own_ns().saturating_sub(own_ns);
        if HOLDS_MS <= clock::coarse_ms().saturating_sub(at_ms) || COMPUTES_NS <= computed_ns {
            self.replica.tell_tarried();
        }
        let doing = std::mem::replace(&mut self.doing, self.batch.doing);
        let mut sends = std::mem::take(&mut self.batch.sends);
        let rows: Vec<&[u8]> = sends.iter().map(|it| &it.bytes[..]).collect();
        let what = || words_of(&sends);
        if let (Some(right), _) = self.compare_rows_of(&rows, what) {
            let mut rest = &right[..];
            for it in &mut sends {
                let (own, others) = rest.split_at(it.bytes.len());
                it.bytes.copy_from_slice(own);
                it.digest = Digest::of(own);
                rest = others;
            }
        }
        if self.replica.tarried() {
            let batch = &mut self.batch;
            let [first, most] = AT_ONCE;
            batch.at_once = batch.at_once_next.max(first);
            batch.at_once_next = (2 * batch.at_once).min(most);
        }
        for Held { leaving, bytes, digest } in sends.drain(..) {
            self.let_leave(leaving, bytes, digest);
        }
        self.batch.sends = sends;
        self.doing = doing;
    }
}
