//! What identifies the contents of a send.

use std::fmt;

use twox_hash::{XxHash3_64, XxHash3_128};

use self::lanes::{BLOCK, Lanes};

mod lanes;

/// From how many bytes on to fold contents costs less than XXH3.
const LONG: usize = 1 << 10;

/// 128 bits that stand for some bytes and, mixed in, for what they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub u128);

/// What a call is beside its contents: which call, how much, of what type, to whom.
///
/// Replicas whose shapes differ no longer run the same program, so no bytes can mend them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Shape(pub u64);

impl Digest {
    /// The digest of contents: of short ones their XXH3, of long ones that of what they are folded
    /// into.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.len() < LONG {
            return Self(XxHash3_128::oneshot(bytes));
        }
        let mut folding = Folding::new();
        folding.add(bytes);
        folding.finish(bytes.len())
    }

    /// The digest of contents that lie in several rows, as of one behind the other.
    #[must_use]
    pub fn of_rows(rows: &[&[u8]]) -> Self {
        if let [row] = rows {
            return Self::of(row);
        }
        let length = rows.iter().map(|it| it.len()).sum();
        if length < LONG {
            return Self::of(&rows.concat());
        }
        let mut folding = Folding::new();
        rows.iter().for_each(|it| folding.add(it));
        folding.finish(length)
    }

    /// This digest with what the receiver of a message knows of it mixed in: its tag, the rank of
    /// its sender and its length in bytes.
    #[must_use]
    pub fn sealed(self, tag: i32, source: i32, length: u64) -> Self {
        let mut row = [0; 32];
        row[..16].copy_from_slice(&self.0.to_le_bytes());
        row[16..20].copy_from_slice(&tag.to_le_bytes());
        row[20..24].copy_from_slice(&source.to_le_bytes());
        row[24..].copy_from_slice(&length.to_le_bytes());
        Self(XxHash3_128::oneshot(&row))
    }
}

/// Contents on their way into lanes.
struct Folding {
    lanes: Lanes,
    /// What has come of a block; what lies behind it is left from another.
    begun: [u8; BLOCK],
    n_begun: usize,
}

impl Folding {
    fn new() -> Self {
        Self { lanes: lanes::NONE, begun: [0; BLOCK], n_begun: 0 }
    }

    fn add(&mut self, mut row: &[u8]) {
        if 0 < self.n_begun {
            let (first, rest) = row.split_at(row.len().min(BLOCK - self.n_begun));
            self.begun[self.n_begun..][..first.len()].copy_from_slice(first);
            self.n_begun += first.len();
            if self.n_begun < BLOCK {
                return;
            }
            lanes::fold(&mut self.lanes, &[self.begun]);
            self.n_begun = 0;
            row = rest;
        }
        let (blocks, rest) = row.as_chunks();
        lanes::fold(&mut self.lanes, blocks);
        self.begun[..rest.len()].copy_from_slice(rest);
        self.n_begun = rest.len();
    }

    /// The digest of all that was added, `length` bytes.
    fn finish(mut self, length: usize) -> Digest {
        if 0 < self.n_begun {
            self.begun[self.n_begun..].fill(0);
            lanes::fold(&mut self.lanes, &[self.begun]);
        }
        let lanes = self.lanes.as_flattened();
        Digest(XxHash3_128::oneshot_with_seed(length as u64, lanes))
    }
}

impl Shape {
    /// The shape that follows this one when a call with these properties is made.
    ///
    /// Calls that send nothing are mixed in too, so that a replica that takes another way is
    /// found at the next compare.
    #[must_use]
    pub fn after(self, call: &[u64]) -> Self {
        Self(XxHash3_64::oneshot_with_seed(self.0, bytemuck::must_cast_slice(call)))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_flip_changes_the_digest() {
        let mut bytes: Vec<u8> = (0..1200_u32).map(|it| (it * 7) as u8).collect();
        for length in [1, 3, 16, 17, 128, 129, 240, 241, LONG - 1, LONG, LONG + 1, 1151, 1152, 1200]
        {
            let whole = Digest::of(&bytes[..length]);
            for bit in 0..length * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Digest::of(&bytes[..length]), whole, "bit {bit} of {length} bytes");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn rows_are_one_behind_the_other() {
        let bytes: Vec<u8> = (0..5000_u32).map(|it| (it * 7 % 251) as u8).collect();
        for ends in [vec![], vec![0], vec![1, 1, 900], vec![240, 241, 4999], vec![1024, 2048]] {
            let mut rows = Vec::new();
            let mut rest = &bytes[..];
            for end in ends {
                let (row, others) = rest.split_at(end - (bytes.len() - rest.len()));
                rows.push(row);
                rest = others;
            }
            rows.push(rest);
            assert_eq!(Digest::of_rows(&rows), Digest::of(&bytes), "{} rows", rows.len());
        }
        assert_eq!(Digest::of_rows(&[]), Digest::of(&[]));
    }

    #[test]
    fn tag_source_and_length_are_part_of_a_seal() {
        let digest = Digest::of(b"contents");
        let seal = digest.sealed(1, 2, 8);
        assert_eq!(seal, digest.sealed(1, 2, 8));
        for other in [digest.sealed(2, 2, 8), digest.sealed(1, 3, 8), digest.sealed(1, 2, 9)] {
            assert_ne!(seal, other);
        }
    }

    #[test]
    fn a_shape_knows_the_order_of_calls() {
        let start = Shape::default();
        assert_ne!(start.after(&[1, 2]), start.after(&[2, 1]));
        assert_ne!(start.after(&[1]).after(&[2]), start.after(&[2]).after(&[1]));
    }
}
