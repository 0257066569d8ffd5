//! The pointer that all processes of one file of MPI's share (MPI 4.1 §14.4.4): who takes some of
//! the file gets the bytes from it on, and moves it behind them.
//!
//! Each process has a row of its own, which it writes as a whole; where the pointer stands is what
//! the last of them says.  So a process that dies either took or did not, and its successor, which
//! comes to the same taking, finds which.

/// What one process took last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How many times this process has taken or moved, with this one; 0: never.
    pub sequence: u64,
    /// The first byte of data that it took.
    pub start: u64,
    /// Where the pointer stands since.
    pub end: u64,
    /// How many rows have been written in all, with this one.
    pub stamp: u64,
}

/// Bytes of a row: eight for each of its words.
pub const ROW_BYTES: usize = 32;

impl Row {
    /// Its form in a file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ROW_BYTES] {
        let mut out = [0; ROW_BYTES];
        let words = [self.sequence, self.start, self.end, self.stamp];
        for (at, word) in out.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The rows in `bytes`; what is left at the end is no row.
    #[must_use]
    pub fn all(bytes: &[u8]) -> Vec<Self> {
        let (rows, _) = bytes.as_chunks::<ROW_BYTES>();
        let row = |it: &[u8; ROW_BYTES]| {
            let (words, _) = it.as_chunks();
            let [sequence, start, end, stamp] =
                [0, 1, 2, 3].map(|idx: usize| u64::from_le_bytes(words[idx]));
            Self { sequence, start, end, stamp }
        };
        rows.iter().map(row).collect()
    }
}

/// What a process does to the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// It takes so many bytes of data.
    Take(u64),
    /// It puts the pointer there.
    Put(u64),
}

/// Where the pointer stands.
#[must_use]
pub fn position(rows: &[Row]) -> u64 {
    rows.iter().max_by_key(|it| it.stamp).map_or(0, |it| it.end)
}

/// Moves the pointer as the `sequence`-th motion of process `own`: the row that this process has
/// then, and whether it is new, so that it has to be written.
///
/// # Panics
/// If `own` has no row among `rows`.
#[must_use]
pub fn moved(rows: &[Row], own: usize, sequence: u64, motion: Motion) -> (Row, bool) {
    if rows[own].sequence == sequence {
        // Who led before this replica did it, and died before it could tell.
        return (rows[own], false);
    }
    let stamp = 1 + rows.iter().map(|it| it.stamp).max().unwrap_or(0);
    let row = match motion {
        Motion::Take(length) => {
            let start = position(rows);
            Row { sequence, start, end: start.saturating_add(length), stamp }
        }
        Motion::Put(at) => Row { sequence, start: at, end: at, stamp },
    };
    (row, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_what_nobody_has_and_none_takes_twice() {
        let mut rows = [Row::default(); 3];
        let mut taken = Vec::new();
        let motions = [(1, 1, 10), (0, 1, 5), (1, 2, 7), (1, 2, 7), (2, 1, 0), (0, 2, 3)];
        for (own, sequence, length) in motions {
            let (row, is_new) = moved(&rows, own, sequence, Motion::Take(length));
            if is_new {
                rows[own] = row;
            }
            taken.push((row.start, row.end, is_new));
        }
        let wanted = [
            (0, 10, true),
            (10, 15, true),
            (15, 22, true),
            (15, 22, false),
            (22, 22, true),
            (22, 25, true),
        ];
        assert_eq!(taken, wanted);
        assert_eq!(position(&rows), 25);
        let (row, is_new) = moved(&rows, 2, 2, Motion::Put(4));
        assert!(is_new);
        rows[2] = row;
        assert_eq!(position(&rows), 4);
        assert_eq!(moved(&rows, 0, 3, Motion::Take(1)).0.start, 4);
    }

    #[test]
    fn rows_come_out_of_a_file_as_they_went_in() {
        let row = Row { sequence: 1, start: 2, end: u64::MAX, stamp: 4 };
        let bytes = [row.to_bytes(), Row::default().to_bytes()].concat();
        assert_eq!(Row::all(&bytes), [row, Row::default()]);
        assert_eq!(Row::all(&bytes[..40]), [row]);
        assert_eq!(position(&[]), 0);
    }
}
