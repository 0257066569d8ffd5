//! What a program may do more often in one replica than in another: look at a clock, and ask
//! whether something has come.  See [`selvedge_stmr::replica::Replica::look`].

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_stmr::digest::Shape;
use selvedge_stmr::message::EventKind;
use selvedge_stmr::replica::{Question, Seen};

use crate::clock;
use crate::memory::For;
use crate::origin::{self, OfLoaded};
use crate::state::{self, State};
use crate::wait::{LATE_CPU_MS, LATE_SLEEP_MS};

/// A replica that asks in vain for so long for what who leads has gone on without, in milliseconds
/// of processor time or of any, wants to know who of both has erred.  Its siblings take it for lost
/// after twice that.
const VAIN_CPU_MS: u64 = LATE_CPU_MS / 2;
const VAIN_SLEEP_MS: u64 = LATE_SLEEP_MS / 2;

/// So many answers are kept of what is asked for.
const ANSWERS_MAX: usize = 256;

/// What is remembered of looks.
#[derive(Default)]
pub(crate) struct Asked {
    in_vain: Option<InVain>,
    /// What the meta answered last to what hardly changes, by the question.
    answers: BTreeMap<u64, Vec<u8>>,
    /// Threads of the program may call MPI in turn.
    pub(crate) may_take_turns: bool,
    /// They do, for all that is known.
    take_turns: bool,
    has_openmp: OfLoaded<bool>,
}

/// What who leads has gone on without, and since when this replica asks for it.
#[derive(Clone, Copy)]
struct InVain {
    what: Shape,
    at_ms: u64,
    cpu_ms: u64,
}

impl State {
    /// What a look at a clock shows, which `answer` tells where this replica leads; nothing if who
    /// leads has gone on without such a look, so that nothing tells what it would show.
    pub(crate) fn look(
        &mut self,
        question: Question,
        answer: impl Fn() -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        self.see(question, |_| answer())
    }

    /// The meta's answer to what hardly changes: where it did not ask, what it last was, or else
    /// what it is here.
    pub(crate) fn look_or_recall(&mut self, clock: u64, answer: impl Fn() -> Vec<u8>) -> Vec<u8> {
        let question = Question { clock, site: self.sites.find() };
        if let Some(seen) = self.look(question, &answer) {
            if ANSWERS_MAX <= self.asked.answers.len() {
                self.asked.answers.clear();
            }
            self.asked.answers.insert(clock, seen.clone());
            return seen;
        }
        self.asked.answers.get(&clock).cloned().unwrap_or_else(answer)
    }

    /// The meta's answer to a question that is a part of the program's way.
    pub(crate) fn settled(&mut self, what: &[u64], answer: impl Fn() -> Vec<u8>) -> Vec<u8> {
        self.mix(what);
        self.event(EventKind::Decision, |_| Some(answer())).0
    }

    /// The same, told by who leads as it is then.
    pub(crate) fn see(
        &mut self,
        question: Question,
        mut answer: impl FnMut(&mut Self) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        self.send_held();
        self.begin_look();
        let seen = loop {
            let is_past = self.is_past_looks();
            match self.replica.look(question, is_past) {
                Seen::Do => {
                    self.follow_locks(true);
                    self.tell_signals();
                    let bytes = answer(self);
                    if !self.replica.is_meta() {
                        // Its set was found to be broken.
                        continue;
                    }
                    self.replica.tell_look(question, bytes.clone().into());
                    break Some(bytes);
                }
                Seen::Take(bytes) => {
                    self.follow_locks(false);
                    break Some(Arc::unwrap_or_clone(bytes));
                }
                Seen::Past => break None,
                Seen::Wait => {
                    self.wait.answers = true;
                    self.wait_for_siblings(Self::late_to_look);
                }
                Seen::Leave => self.stray(),
                Seen::Restart(why) => self.restart(why),
            }
        };
        self.wait.answers = true;
        self.end_wait();
        self.count_kept();
        self.send_out();
        self.take_signals();
        seen
    }

    /// What has come of what the program asks for, which `found` tells where this replica leads;
    /// nothing if nothing has.  `wanted` tells it from what else the program asks for, and is no
    /// part of its way: one replica may ask more often than another, and find what came later.
    pub(crate) fn inquire(
        &mut self,
        wanted: &[u64],
        found: impl Fn(&mut Self) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let what = self.shape.after(wanted);
        if self.take_turns() {
            return self.settle_what_came(what, found);
        }
        let question = Question { clock: what.0, site: self.sites.find() };
        let mut does = false;
        let seen = self.see(question, |state| {
            does = true;
            found(state).unwrap_or_default()
        });
        match seen {
            Some(_) => self.asked.in_vain = None,
            None if self.has_long_asked_in_vain(what) => {
                // Who leads has erred, or this replica: as with any event, that is found out.
                self.asked.in_vain = None;
                return self.settle_what_came(what, found);
            }
            None => {}
        }
        let is_told = seen.is_some() && !does;
        let row = seen.filter(|it| !it.is_empty());
        if row.is_none() && !is_told {
            self.spin_in_vain();
        }
        row
    }

    /// The same as an event, which all replicas come to as often.
    fn settle_what_came(
        &mut self,
        what: Shape,
        found: impl Fn(&mut Self) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let settle = |state: &mut Self| Some(found(state).unwrap_or_default());
        let (row, did) = self.aside(what, |state| state.event(EventKind::Decision, settle));
        if did && row.is_empty() {
            self.spin_in_vain();
        }
        Some(row).filter(|it| !it.is_empty())
    }

    fn spin_in_vain(&mut self) {
        self.wait.answers = false;
        self.spin(For::Message);
        self.wait.answers = true;
    }

    /// Whether several threads ask, each in its turn: looks of one at clocks come between what
    /// another asks, at no place that replicas share, and to OpenMP it is the same which of them
    /// asks.
    fn take_turns(&mut self) -> bool {
        let asked = &mut self.asked;
        asked.take_turns = asked.take_turns
            || !state::is_ordered()
            || (asked.may_take_turns && *asked.has_openmp.look(origin::has_openmp));
        asked.take_turns
    }

    /// Does what is known by what it is, and not by where on its way the program comes to it.
    pub(crate) fn aside<R>(&mut self, what: Shape, does: impl FnOnce(&mut Self) -> R) -> R {
        let way = std::mem::replace(&mut self.shape, what);
        let answer = does(self);
        self.shape = way;
        answer
    }

    /// Whether who leads has long gone on without what this replica asks for.
    fn has_long_asked_in_vain(&mut self, what: Shape) -> bool {
        let at_ms = clock::coarse_ms();
        let cpu_ms = || clock::now_ms(libc::CLOCK_PROCESS_CPUTIME_ID);
        let Some(since) = self.asked.in_vain.filter(|it| it.what == what) else {
            self.asked.in_vain = Some(InVain { what, at_ms, cpu_ms: cpu_ms() });
            return false;
        };
        let has_computed = || since.cpu_ms + VAIN_CPU_MS < cpu_ms();
        since.at_ms + VAIN_CPU_MS < at_ms && (since.at_ms + VAIN_SLEEP_MS < at_ms || has_computed())
    }
}
