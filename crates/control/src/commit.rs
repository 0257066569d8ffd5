//! Append, synced, outputs leave: the one order in which an input becomes an effect.
//!
//! ```text
//!   offer ──► handled in memory ──► to_append ──► (the store syncs) ──► synced ──► release
//!      └─ refused: nothing is written
//! ```
//! The world may acknowledge an input only once its record is synced, and an output leaves only
//! then.  The simulator and the server drive this same piece, so that the judge sees it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use selvedge_model::unit::Moment;

use crate::core::{Accepted, Adopted, Core, Refused, ReplayError, VERSION};
use crate::input::Input;
use crate::note::Note;
use crate::output::Output;
use crate::planted::Defect;

/// One row of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number: 1, 2, 3, … without gaps.
    pub number: u64,
    /// When it was handled.
    pub now: Moment,
    /// The version whose planners ran.
    pub version: String,
    /// What happened.
    pub input: Input,
    /// What was said with it where somebody ordered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
    /// The plans that were adopted for it.
    pub plans: Vec<Adopted>,
}

/// What is kept with an order for the audit trail; no state follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// When, in seconds of the Unix clock of whoever wrote it down.
    pub unix_s: u64,
    /// Why, in the words of whoever ordered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A core whose outputs wait for the journal.
#[derive(Clone)]
pub struct Commit {
    core: Core,
    next_number: u64,
    synced: u64,
    unwritten: Vec<Record>,
    waiting: VecDeque<(u64, Output)>,
}

impl Commit {
    /// A core whose next record has this number.
    pub fn new(core: Core, next_number: u64) -> Self {
        Self {
            core,
            next_number,
            synced: next_number - 1,
            unwritten: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Handles an input in memory.  It is accepted, and may be acknowledged, once the number
    /// returned is synced.
    ///
    /// # Errors
    /// [`Refused`]: nothing has changed, nothing is to be written.
    pub fn offer(&mut self, now: Moment, input: Input) -> Result<(u64, Accepted), Refused> {
        self.offer_said(now, input, None)
    }

    /// The same for an input that somebody ordered, with what is kept of that.
    ///
    /// # Errors
    /// As [`Commit::offer`].
    pub fn offer_said(
        &mut self,
        now: Moment,
        input: Input,
        said: Option<Said>,
    ) -> Result<(u64, Accepted), Refused> {
        let recorded = input.clone();
        let accepted = self.core.handle(now, input)?;
        let number = self.next_number;
        let n_before = self.waiting.len();
        while let Some(output) = self.core.poll() {
            self.waiting.push_back((number, output));
        }
        let is_quiet = self.waiting.len() == n_before;
        if is_quiet && self.has(Defect::QuietInputUnwritten) {
            self.core.take_adopted();
            return Ok((number - 1, accepted));
        }
        self.next_number += 1;
        self.unwritten.push(Record {
            number,
            now: self.core.state().now,
            version: VERSION.to_owned(),
            input: recorded,
            said,
            plans: self.core.take_adopted(),
        });
        Ok((number, accepted))
    }

    /// Records that have not been handed out, in order.
    pub fn to_append(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.unwritten)
    }

    /// Whether there are records that have not been handed out.
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// The plans that were adopted for the newest record, while it has not been handed out.
    pub fn newest_plans(&self) -> &[Adopted] {
        self.unwritten.last().map_or(&[], |it| &it.plans)
    }

    /// All records up to this number are durable.
    pub fn synced(&mut self, number: u64) {
        assert!(number < self.next_number, "{number} was never handed out");
        self.synced = self.synced.max(number);
    }

    /// The next output whose record is durable.
    pub fn release(&mut self) -> Option<Output> {
        let (number, _) = self.waiting.front()?;
        if self.newest_synced() < *number {
            return None;
        }
        self.waiting.pop_front().map(|(_, output)| output)
    }

    /// Whether outputs wait for their records to be synced.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The core.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The number of the newest durable record.
    pub fn newest_synced(&self) -> u64 {
        if self.has(Defect::AcknowledgedBeforeSync) { self.next_number - 1 } else { self.synced }
    }

    fn has(&self, defect: Defect) -> bool {
        self.core.state().settings.has(defect)
    }

    /// The number that the next record gets.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }
}

impl Record {
    /// Applies this record to a core that has all records before it; returns the notes it told.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn replay_on(&self, core: &mut Core) -> Result<Vec<Note>, ReplayError> {
        core.replay(self.now, self.input.clone(), &self.plans, &self.version)
    }
}
