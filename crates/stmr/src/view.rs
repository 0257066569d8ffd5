//! What a process sees of a file of MPI's: a displacement, and a type laid out behind it again and
//! again, of which only the data is seen (MPI 4.1 §14.3).

/// Data and holes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Where the first type begins, in bytes of the file.
    pub start: u64,
    /// From one type to the next, in bytes.
    pub extent: u64,
    /// Data of the type: where each run begins in it and how long it is, in order.
    runs: Vec<(u64, u64)>,
    /// Bytes of data before each run.
    before: Vec<u64>,
    /// Bytes of data in one type.
    size: u64,
}

/// Some of a file: where it begins and how long it is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first byte.
    pub at: u64,
    /// How many there are.
    pub length: u64,
}

impl View {
    /// All of a file from `start` on.
    #[must_use]
    pub fn whole(start: u64) -> Self {
        Self { start, extent: 1, runs: vec![(0, 1)], before: vec![0], size: 1 }
    }

    /// A type whose data are `runs`, in order.  A type without data shows nothing.
    #[must_use]
    pub fn new(start: u64, extent: u64, runs: Vec<(u64, u64)>) -> Self {
        if runs == [(0, extent)] && 0 < extent {
            return Self::whole(start);
        }
        let mut size = 0;
        let before = runs.iter().map(|(_, length)| {
            size += length;
            size - length
        });
        Self { start, extent, before: before.collect(), runs, size }
    }

    /// Where `length` bytes of data stand, beginning with the one at `from` among all data.
    #[must_use]
    pub fn pieces(&self, from: u64, length: u64) -> Vec<Piece> {
        let mut found: Vec<Piece> = Vec::new();
        if self.size == 0 {
            return found;
        }
        if self.is_whole() {
            found.push(Piece { at: self.start + from, length });
            return found;
        }
        let (mut at, mut left) = (from, length);
        while 0 < left {
            let (tile, within) = (at / self.size, at % self.size);
            let first = self.before.partition_point(|it| *it <= within) - 1;
            let mut within = within - self.before[first];
            for (begin, run) in &self.runs[first..] {
                let piece = Piece {
                    at: self.start + tile * self.extent + begin + within,
                    length: left.min(run - within),
                };
                within = 0;
                at += piece.length;
                left -= piece.length;
                match found.last_mut() {
                    Some(it) if it.at + it.length == piece.at => it.length += piece.length,
                    _ => found.push(piece),
                }
                if left == 0 {
                    break;
                }
            }
        }
        found
    }

    /// Which byte of the file the data at `from` is.
    #[must_use]
    pub fn place(&self, from: u64) -> u64 {
        self.pieces(from, 1).first().map_or(self.start, |it| it.at)
    }

    /// Bytes of data before byte `end` of the file.
    #[must_use]
    pub fn data_before(&self, end: u64) -> u64 {
        let Some(length) = end.checked_sub(self.start) else { return 0 };
        if self.is_whole() {
            return length;
        }
        let (tiles, rest) = (length / self.extent.max(1), length % self.extent.max(1));
        let part: u64 =
            self.runs.iter().map(|(begin, run)| rest.saturating_sub(*begin).min(*run)).sum();
        tiles * self.size + part
    }

    fn is_whole(&self) -> bool {
        self.runs == [(0, self.extent)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of all data below `n`, one by one.
    fn places(view: &View, n: u64) -> Vec<u64> {
        (0..n).map(|it| view.place(it)).collect()
    }

    #[test]
    fn data_stand_in_the_runs_of_each_type() {
        let view = View::new(100, 10, vec![(1, 2), (5, 3)]);
        assert_eq!(places(&view, 7), [101, 102, 105, 106, 107, 111, 112]);
        let piece = |at, length| Piece { at, length };
        assert_eq!(view.pieces(1, 5), [piece(102, 1), piece(105, 3), piece(111, 1)]);
        assert_eq!(view.pieces(4, 0), []);
        assert_eq!(View::whole(7).pieces(3, 1 << 40), [piece(10, 1 << 40)]);
        // Runs that touch, within a type and from one to the next, are one piece.
        let dense = View::new(0, 6, vec![(0, 2), (2, 4)]);
        assert_eq!(dense.pieces(1, 20), [piece(1, 20)]);
        assert_eq!(View::new(0, 8, vec![]).pieces(0, 9), []);
    }

    #[test]
    fn data_before_a_byte_are_those_whose_places_are_lower() {
        for view in [
            View::new(3, 10, vec![(1, 2), (5, 3)]),
            View::new(0, 4, vec![(3, 1)]),
            View::whole(5),
            View::new(2, 6, vec![(0, 6)]),
        ] {
            let places = places(&view, 40);
            for end in 0..30 {
                let wanted = places.iter().filter(|it| **it < end).count() as u64;
                assert_eq!(view.data_before(end), wanted, "{view:?} before {end}");
            }
        }
    }
}
