//! What a process does to another's window (MPI 4.1 §12), as bytes that say all of it.
//!
//! Accesses wait until the epoch ends, are compared and sent like a message, and are carried out by
//! the process whose window it is, in the order of who sent them: so all replicas of that process
//! change the same memory at the same place of the program.  Whose types these are does not know
//! them, so they travel as the bytes that they have in the window.

/// What is done to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Bytes are put there.
    Put,
    /// What is there is told.
    Get,
    /// Bytes are combined with what is there; both as Fortran's numbers, which all processes share.
    Combine {
        /// The operation.
        op: i32,
        /// The type of each element.
        datatype: i32,
        /// What was there before is told.
        tells: bool,
    },
    /// The first half of the bytes is put there if the second is what is there, and what was there
    /// before is told.
    Swap,
}

/// Where one of a type has its bytes, in the order in which they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// From one to the next, in bytes.
    pub extent: i64,
    /// Where each run begins and how long it is, in bytes.
    pub runs: Vec<(i64, u64)>,
    /// How far apart numbers are of whose bytes some are no part of their value; 0 if there are
    /// none.
    pub padding: u64,
}

impl Layout {
    /// Bytes of one of the type.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.runs.iter().map(|it| it.1).sum()
    }

    /// A layout by the place that each byte has, in the order in which they are sent.
    #[must_use]
    pub fn of_places(extent: i64, places: impl Iterator<Item = i64>) -> Self {
        let mut runs: Vec<(i64, u64)> = Vec::new();
        for at in places {
            match runs.last_mut() {
                Some((begin, length)) if *begin + *length as i64 == at => *length += 1,
                _ => runs.push((at, 1)),
            }
        }
        Self { extent, runs, padding: 0 }
    }
}

/// One access to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// What is done.
    pub deed: Deed,
    /// Where the first of the type is, in bytes from the window's begin.
    pub at: i64,
    /// How many of the type there are.
    pub count: u64,
    /// The type.
    pub layout: Layout,
    /// What is brought.
    pub bytes: Vec<u8>,
}

/// A piece of a window: where it begins and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first byte.
    pub at: usize,
    /// How many there are.
    pub length: usize,
}

/// An access that is not within its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes from byte {at} on do not lie in a window of {size} bytes")]
pub struct Outside {
    /// Where they begin.
    pub at: i64,
    /// How many there are.
    pub length: u64,
    /// How many the window has.
    pub size: usize,
}

/// Bytes that are no accesses: they came from something that does not run this library's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes from byte {at} on are no access to a window")]
pub struct NoAccess {
    /// Where it begins.
    pub at: usize,
    /// How many bytes there are in all.
    pub length: usize,
}

/// Words before the runs.
const HEAD: usize = 9;
const WORD: usize = 8;

impl Access {
    /// Bytes that are told to who made it.
    #[must_use]
    pub fn answer_length(&self) -> usize {
        match self.deed {
            Deed::Put | Deed::Combine { tells: false, .. } => 0,
            Deed::Get | Deed::Swap | Deed::Combine { tells: true, .. } => {
                (self.count * self.layout.size()) as usize
            }
        }
    }

    /// Where its bytes are in a window of `size` bytes, in the order in which they are sent; pieces
    /// that touch are one.
    ///
    /// # Errors
    /// [`Outside`] if one of them is not in the window.
    pub fn pieces(&self, size: usize) -> Result<Vec<Piece>, Outside> {
        let mut found: Vec<Piece> = Vec::new();
        for idx in 0..self.count {
            for (begin, length) in &self.layout.runs {
                let (at, length) = (place(self.at, idx, self.layout.extent, *begin), *length);
                let outside = Outside { at: at.unwrap_or(i64::MAX), length, size };
                let at = at.and_then(|it| usize::try_from(it).ok()).ok_or(outside)?;
                let length = usize::try_from(length).map_err(|_| outside)?;
                if size < at.checked_add(length).ok_or(outside)? {
                    return Err(outside);
                }
                match found.last_mut() {
                    Some(it) if it.at + it.length == at => it.length += length,
                    _ => found.push(Piece { at, length }),
                }
            }
        }
        Ok(found)
    }

    /// Appends it to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (deed, op, datatype) = match self.deed {
            Deed::Put => (0, 0, 0),
            Deed::Get => (1, 0, 0),
            Deed::Combine { op, datatype, tells: false } => (2, op, datatype),
            Deed::Combine { op, datatype, tells: true } => (3, op, datatype),
            Deed::Swap => (4, 0, 0),
        };
        let Layout { extent, runs, padding } = &self.layout;
        let words = [
            deed,
            op as u32 as u64,
            datatype as u32 as u64,
            self.at as u64,
            self.count,
            *extent as u64,
            runs.len() as u64,
            self.bytes.len() as u64,
            *padding,
        ];
        let runs = runs.iter().flat_map(|(at, length)| [*at as u64, *length]);
        for word in words.into_iter().chain(runs) {
            out.extend(word.to_le_bytes());
        }
        out.extend(&self.bytes);
    }
}

fn place(at: i64, idx: u64, extent: i64, begin: i64) -> Option<i64> {
    at.checked_add(extent.checked_mul(i64::try_from(idx).ok()?)?)?.checked_add(begin)
}

/// All accesses that `bytes` say.
///
/// # Errors
/// [`NoAccess`] if `bytes` are not what [`Access::write`] made.
pub fn accesses(bytes: &[u8]) -> Result<Vec<Access>, NoAccess> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (access, length) = read(&bytes[at..]).ok_or(NoAccess { at, length: bytes.len() })?;
        found.push(access);
        at += length;
    }
    Ok(found)
}

/// The first access, and how many bytes say it.
fn read(bytes: &[u8]) -> Option<(Access, usize)> {
    let word = |idx: usize| {
        let row = bytes.get(WORD * idx..WORD * (idx + 1))?;
        Some(u64::from_le_bytes(row.try_into().ok()?))
    };
    let (op, datatype) = (word(1)? as u32 as i32, word(2)? as u32 as i32);
    let deed = match word(0)? {
        0 => Deed::Put,
        1 => Deed::Get,
        2 => Deed::Combine { op, datatype, tells: false },
        3 => Deed::Combine { op, datatype, tells: true },
        4 => Deed::Swap,
        _ => return None,
    };
    let n_runs = usize::try_from(word(6)?).ok()?;
    if bytes.len() / (2 * WORD) < n_runs {
        return None;
    }
    let run = |idx: usize| Some((word(HEAD + 2 * idx)? as i64, word(HEAD + 2 * idx + 1)?));
    let runs: Vec<(i64, u64)> = (0..n_runs).map(run).collect::<Option<_>>()?;
    let begin = WORD * (HEAD + 2 * n_runs);
    let end = begin.checked_add(usize::try_from(word(7)?).ok()?)?;
    let layout = Layout { extent: word(5)? as i64, runs, padding: word(8)? };
    let bytes = bytes.get(begin..end)?.to_vec();
    Some((Access { deed, at: word(3)? as i64, count: word(4)?, layout, bytes }, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(deed: Deed, at: i64, count: u64, extent: i64, runs: &[(i64, u64)]) -> Access {
        let layout = Layout { extent, runs: runs.to_vec(), padding: extent.unsigned_abs() };
        Access { deed, at, count, layout, bytes: vec![7; 5] }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let combine = |tells| Deed::Combine { op: -3, datatype: 0x4c00_0405, tells };
        let all: Vec<Access> = [Deed::Put, Deed::Get, combine(false), combine(true), Deed::Swap]
            .into_iter()
            .enumerate()
            .map(|(idx, deed)| access(deed, -(idx as i64), 3, -8, &[(4, 2), (0, 1)][..idx % 3]))
            .collect();
        let mut bytes = Vec::new();
        all.iter().for_each(|it| it.write(&mut bytes));
        assert_eq!(accesses(&bytes), Ok(all));
        for cut in 1..bytes.len() {
            // No part of it panics, and whatever is read of one is no more than was written.
            let read = accesses(&bytes[..cut]);
            assert!(read.is_err() || read.is_ok_and(|it| it.len() < 5), "{cut} bytes");
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] = 0xff;
            let _ = accesses(&wrong);
        }
        assert_eq!(accesses(&[9; 80]), Err(NoAccess { at: 0, length: 80 }));
    }

    #[test]
    fn pieces_are_those_of_each_of_the_type_in_order() {
        let piece = |at, length| Piece { at, length };
        // The type has its bytes in another order than memory, as types may.
        let it = access(Deed::Put, 10, 2, 8, &[(4, 2), (0, 1)]);
        let wanted = [piece(14, 2), piece(10, 1), piece(22, 2), piece(18, 1)];
        assert_eq!(it.pieces(24).unwrap(), wanted);
        assert_eq!(it.pieces(23), Err(Outside { at: 22, length: 2, size: 23 }));
        // Runs that touch are one, also from one of the type to the next.
        let dense = access(Deed::Get, 1, 4, 4, &[(0, 4)]);
        assert_eq!(dense.pieces(17).unwrap(), [piece(1, 16)]);
        assert_eq!(dense.answer_length(), 16);
        let before = access(Deed::Put, -1, 1, 1, &[(0, 1)]);
        assert_eq!(before.pieces(8), Err(Outside { at: -1, length: 1, size: 8 }));
        let far = access(Deed::Put, 0, u64::MAX, i64::MAX, &[(0, 1)]);
        assert!(far.pieces(8).is_err());
        assert_eq!(access(Deed::Put, 99, 0, 4, &[(0, 4)]).pieces(8).unwrap(), []);
    }

    #[test]
    fn places_make_a_layout() {
        let layout = Layout::of_places(16, [8, 9, 10, 0, 1, 12].into_iter());
        assert_eq!(layout, Layout { extent: 16, runs: vec![(8, 3), (0, 2), (12, 1)], padding: 0 });
        assert_eq!(layout.size(), 6);
    }
}
