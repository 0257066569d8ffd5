//! A journal in memory that loses or tears whatever came after its last sync.
//!
//! ```text
//!  append ─► tail ─ sync ─► kept          crash ─► kept + what survives of the tail
//! ```
//! The tail is written to bytes only when it is torn, so a run without crashes pays nothing.

use std::collections::VecDeque;

use selvedge_control::commit::Record;

use crate::dice::Dice;

/// The journal of a simulated server.
#[derive(Clone, Debug, Default)]
pub struct Store {
    snapshot: Option<(u64, Vec<u8>)>,
    /// Durable records after the snapshot.
    kept: VecDeque<Record>,
    /// Appended and not synced.
    tail: Vec<Record>,
    /// Whether records are kept at all.
    forgets: bool,
    /// Whether the next record is dropped: a defect.
    drops: bool,
}

/// Length and checksum before each record.
const FRAME: usize = 16;

impl Store {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// A journal that counts but keeps nothing, for runs that never crash.
    pub fn forgetful() -> Self {
        Self { forgets: true, ..Self::default() }
    }

    /// Appends records; they are not durable yet.
    pub fn append(&mut self, records: Vec<Record>) {
        if !self.forgets {
            self.tail.extend(records);
        }
    }

    /// From now on the next record is lost, as a defect has it.
    pub(crate) fn drop_next(&mut self) {
        self.drops = true;
    }

    /// Makes everything durable that was appended.
    pub fn sync(&mut self) {
        if self.drops && !self.tail.is_empty() {
            self.tail.remove(0);
            self.drops = false;
        }
        self.kept.extend(self.tail.drain(..));
    }

    /// How many durable records lie after the snapshot.
    pub fn n_kept(&self) -> usize {
        self.kept.len()
    }

    /// Keeps a snapshot of the state after record `number`, and drops what it covers.
    pub fn snapshot(&mut self, number: u64, bytes: Vec<u8>) {
        while self.kept.front().is_some_and(|it| it.number <= number) {
            self.kept.pop_front();
        }
        self.snapshot = Some((number, bytes));
    }

    /// The power fails: of the tail, bytes up to a drawn one reach the disk, the last few of them
    /// perhaps as rubbish.  Returns how many whole records of the tail survived.
    pub fn crash(&mut self, dice: &mut Dice) -> usize {
        let survivors = self.tear(dice);
        self.tail.clear();
        let n_survived = survivors.len();
        self.kept.extend(survivors);
        n_survived
    }

    /// The whole records of the tail that would survive if the power failed.
    pub fn tear(&self, dice: &mut Dice) -> Vec<Record> {
        let mut bytes = encode(&self.tail);
        let n_written = dice.index(bytes.len() + 1);
        bytes.truncate(n_written);
        if !bytes.is_empty() && dice.below(3) == 0 {
            let from = bytes.len() - dice.index(bytes.len().min(64));
            for byte in &mut bytes[from..] {
                *byte = (dice.draw() & 0xff) as u8;
            }
        }
        decode(&bytes)
    }

    /// The durable records that come after this number.
    pub fn rows_after(&self, number: u64) -> Vec<&Record> {
        let newer = self.kept.iter().rev().take_while(|it| number < it.number);
        let mut rows: Vec<&Record> = newer.collect();
        rows.reverse();
        rows
    }

    /// What a new process finds: the snapshot, and the records after it.
    pub fn read(&self) -> (Option<(u64, &[u8])>, impl Iterator<Item = &Record>) {
        let snapshot = self.snapshot.as_ref().map(|(number, bytes)| (*number, bytes.as_slice()));
        (snapshot, self.kept.iter())
    }

    /// The number of the newest durable record, 0 for none.
    pub fn newest(&self) -> u64 {
        let after = self.kept.back().map(|it| it.number);
        after.or(self.snapshot.as_ref().map(|it| it.0)).unwrap_or(0)
    }
}

fn encode(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let text = serde_json::to_vec(record).expect("records have no maps with odd keys");
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(checksum(&text).to_le_bytes());
        bytes.extend(text);
    }
    bytes
}

/// All whole records from the beginning up to the first that is damaged.
fn decode(mut bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((frame, rest)) = bytes.split_at_checked(FRAME) {
        let word = |at: usize| {
            u64::from_le_bytes(frame[at..at + 8].try_into().expect("a frame has two words"))
        };
        let Some((text, rest)) =
            usize::try_from(word(0)).ok().and_then(|len| rest.split_at_checked(len))
        else {
            break;
        };
        if checksum(text) != word(8) {
            break;
        }
        let Ok(record) = serde_json::from_slice(text) else { break };
        records.push(record);
        bytes = rest;
    }
    records
}

/// FNV-1a; a simulated disk needs nothing stronger against rubbish that we draw ourselves.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |acc, byte| {
        (acc ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_control::input::Input;
    use selvedge_model::unit::Moment;

    fn record(number: u64) -> Record {
        let now = Moment::from_nanos(number);
        Record {
            number,
            now,
            version: "0".into(),
            input: Input::Tick,
            said: None,
            plans: Vec::new(),
        }
    }

    #[test]
    fn what_was_synced_survives_and_of_the_rest_a_prefix() {
        let mut survived = [0usize; 6];
        for seed in 0..400 {
            let mut store = Store::new();
            store.append((1..=5).map(record).collect());
            store.sync();
            store.append((6..=10).map(record).collect());
            let n = store.crash(&mut Dice::new(seed, "crash"));
            survived[n] += 1;
            let numbers: Vec<u64> = store.read().1.map(|it| it.number).collect();
            assert_eq!(numbers, (1..=5 + n as u64).collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(store.newest(), 5 + n as u64);
        }
        // Every length of the surviving prefix but perhaps the whole is seen often.
        assert!(survived[..5].iter().all(|&n| 20 < n), "{survived:?}");
    }

    #[test]
    fn a_torn_or_rotten_tail_ends_at_the_last_whole_record() {
        let bytes = encode(&[record(1), record(2)]);
        assert_eq!(decode(&bytes).len(), 2);
        for at in 0..bytes.len() {
            let mut rotten = bytes.clone();
            rotten[at] ^= 0x40;
            let n = decode(&rotten).len();
            assert!(n < 2, "byte {at} is rotten and nobody noticed");
            let torn = decode(&bytes[..at]);
            assert!(torn.len() < 2, "cut at {at}");
        }
    }

    #[test]
    fn a_snapshot_bounds_what_is_replayed() {
        let mut store = Store::new();
        store.append((1..=9).map(record).collect());
        store.sync();
        store.snapshot(6, vec![1, 2, 3]);
        let (snapshot, records) = store.read();
        assert_eq!(snapshot, Some((6, [1, 2, 3].as_slice())));
        assert_eq!(records.map(|it| it.number).collect::<Vec<_>>(), [7, 8, 9]);
        let mut store = Store::forgetful();
        store.append(vec![record(1)]);
        store.sync();
        assert_eq!(store.n_kept(), 0);
    }
}
