//! Counts that no flip makes more.

/// A count that is kept twice, of which the lower is believed: all replicas would wait for what a
/// flip has made more, and for ever.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Twice([u32; 2]);

impl Twice {
    pub(super) fn of(n: u32) -> Self {
        Self([n; 2])
    }

    pub(super) fn get(self) -> u32 {
        let Self([a, b]) = self;
        a.min(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flip_makes_it_no_more() {
        let Twice(both) = Twice::of(5);
        assert_eq!(Twice(both).get(), 5);
        for bit in 0..64 {
            let mut flipped = both;
            flipped[bit / 32] ^= 1 << (bit % 32);
            assert!(Twice(flipped).get() <= 5, "bit {bit}");
        }
    }
}
