//! What a replica wrote to files and has not let out: one cluster writes each byte once.
//!
//! What is written waits, is offered to the siblings like a send, and what is agreed on is written
//! by the one that leads.  Each record says where its bytes stand in their file, so who is promoted
//! may write them again: nothing is lost, nothing is there twice.

/// The most bytes that wait; more are let out at once.
pub const WAITING_MAX: usize = 1 << 20;

/// What is written in whole blocks of so many bytes is a part of something longer and waits for the
/// rest; programs that end with less mean somebody to see it.
pub const BLOCK: usize = 512;

/// Where bytes stand that go to the end of their file, wherever that is.
pub const AT_END: u64 = u64::MAX;

/// Bytes and where they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which of the program's files, in the order in which it opened them.
    pub file: u64,
    /// Where its first byte stands in the file, or [`AT_END`].
    pub at: u64,
    /// What stands there.
    pub bytes: Vec<u8>,
}

/// What waits to be let out, in the order in which it was written.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    records: Vec<Record>,
    length: usize,
}

/// Bytes that are no records: a replica offered them that does not run this library's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes from byte {at} on are no record of what was written to a file")]
pub struct NoRecord {
    /// Where the record begins.
    pub at: usize,
    /// How many bytes there are in all.
    pub length: usize,
}

const HEAD: usize = 24;

impl Writes {
    /// Nothing that waits.
    #[must_use]
    pub const fn new() -> Self {
        Self { records: Vec::new(), length: 0 }
    }

    /// Takes what was written; returns whether all that waits is to be let out.
    pub fn push(&mut self, file: u64, at: u64, bytes: &[u8]) -> bool {
        self.length += bytes.len();
        let follows = |it: &Record| match it.at {
            AT_END => at == AT_END,
            start => start + it.bytes.len() as u64 == at,
        };
        match self.records.last_mut() {
            Some(it) if it.file == file && follows(it) => it.bytes.extend(bytes),
            _ => self.records.push(Record { file, at, bytes: bytes.to_vec() }),
        }
        !bytes.len().is_multiple_of(BLOCK) || WAITING_MAX <= self.length
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes what waits, as bytes to compare.
    pub fn take(&mut self) -> Vec<u8> {
        let records = std::mem::take(self).records;
        let mut out = Vec::with_capacity(records.iter().map(|it| HEAD + it.bytes.len()).sum());
        for it in records {
            for word in [it.file, it.at, it.bytes.len() as u64] {
                out.extend(word.to_le_bytes());
            }
            out.extend(it.bytes);
        }
        out
    }
}

/// The records that were agreed on.
///
/// # Errors
/// [`NoRecord`] if `bytes` are not what [`Writes::take`] gave.
pub fn records(bytes: &[u8]) -> Result<Vec<Record>, NoRecord> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let none = NoRecord { at, length: bytes.len() };
        let head = bytes.get(at..at + HEAD).ok_or(none)?;
        let word = |idx: usize| {
            let row = &head[8 * idx..8 * idx + 8];
            u64::from_le_bytes(row.try_into().expect("eight bytes"))
        };
        let length = usize::try_from(word(2)).map_err(|_| none)?;
        let end = (at + HEAD).checked_add(length).ok_or(none)?;
        let rest = bytes.get(at + HEAD..end).ok_or(none)?;
        found.push(Record { file: word(0), at: word(1), bytes: rest.to_vec() });
        at = end;
    }
    Ok(found)
}

/// What became of a change of names that may have been made before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It was not made: make it.
    Make,
    /// It was made by who died before it could tell.
    Made,
}

/// A change that cannot be made twice, by what it does to two names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The name goes: unlink, rmdir.
    Remove,
    /// The name comes: mkdir, link, symlink, an exclusive open.
    Make,
    /// The first name becomes the second.
    Rename,
}

/// Whether who is promoted in the middle of a change has to make it.
///
/// `before` is what stood behind the two names when the change was agreed on, `now` what stands
/// there: device and number of a file, or nothing.
#[must_use]
pub fn again(change: Change, before: [Option<[u64; 2]>; 2], now: [Option<[u64; 2]>; 2]) -> Again {
    let made = match change {
        Change::Remove => before[0].is_some() && now[0].is_none(),
        Change::Make => before[0].is_none() && now[0].is_some(),
        Change::Rename => before[0].is_some() && now[0].is_none() && now[1] == before[0],
    };
    if made { Again::Made } else { Again::Make }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_on_end_is_one_record_and_short_writes_leave_at_once() {
        let mut writes = Writes::default();
        assert!(!writes.push(1, 0, &[7; 1024]));
        assert!(!writes.push(1, 1024, &[8; 512]));
        assert!(!writes.push(1, 4096, &[9; 512]));
        assert!(writes.push(2, 5, b"end\n"));
        assert!(writes.push(3, AT_END, b"a"));
        assert!(writes.push(3, AT_END, b"b"));
        let bytes = writes.take();
        assert!(writes.is_empty());
        let found = records(&bytes).unwrap();
        let told: Vec<_> = found.iter().map(|it| (it.file, it.at, it.bytes.len())).collect();
        assert_eq!(told, [(1, 0, 1536), (1, 4096, 512), (2, 5, 4), (3, AT_END, 2)]);
        assert_eq!(found[2].bytes, b"end\n");
        assert!(writes.push(1, 0, &vec![0; WAITING_MAX]), "that is enough to wait for nobody");
    }

    #[test]
    fn bytes_that_are_cut_are_no_records() {
        let mut writes = Writes::default();
        writes.push(3, 9, b"abc");
        let bytes = writes.take();
        for length in 1..bytes.len() {
            let none = NoRecord { at: 0, length };
            assert_eq!(records(&bytes[..length]), Err(none));
        }
        let mut long = bytes.clone();
        long[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(records(&long), Err(NoRecord { at: 0, length: 27 }));
        assert_eq!(records(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_change_that_the_dead_made_is_not_made_again() {
        let (a, b) = (Some([1, 10]), Some([1, 11]));
        let rows = [
            (Change::Remove, [a, None], [None, None], Again::Made),
            (Change::Remove, [a, None], [a, None], Again::Make),
            // Nothing was there to remove, so the answer is the system's.
            (Change::Remove, [None, None], [None, None], Again::Make),
            (Change::Make, [None, None], [a, None], Again::Made),
            (Change::Make, [None, None], [None, None], Again::Make),
            (Change::Make, [a, None], [a, None], Again::Make),
            (Change::Rename, [a, b], [None, a], Again::Made),
            (Change::Rename, [a, None], [None, a], Again::Made),
            (Change::Rename, [a, b], [a, b], Again::Make),
            (Change::Rename, [a, b], [None, b], Again::Make),
        ];
        for (change, before, now, wanted) in rows {
            assert_eq!(again(change, before, now), wanted, "{change:?} {before:?} {now:?}");
        }
    }
}
