//! Seeded dice: one for each purpose, so that a new draw in one place moves nothing elsewhere.

use serde::{Deserialize, Serialize};

use selvedge_model::unit::{Ppm, Span};

/// A small generator (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dice(u64);

const MILLION: u64 = 1_000_000;

impl Dice {
    /// The dice for `purpose` under `seed`.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let tag = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |acc, byte| {
            (acc ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // Neighbouring seeds must not give neighbouring streams: the first draw mixes them.
        let mut dice = Self(seed ^ tag);
        Self(dice.draw())
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n != 0, "no number lies below 0");
        // The high half of the product is uniform up to 2^-64 · n, far below what we can see.
        let product = u128::from(self.draw()) * u128::from(n);
        u64::try_from(product >> 64).expect("the high half of 128 bits fits 64")
    }

    /// An index into something of length `len`.
    ///
    /// # Panics
    /// If `len` is zero.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("smaller than a length")
    }

    /// True with this chance.
    pub fn chance(&mut self, chance: Ppm) -> bool {
        chance.parts() != 0 && self.below(MILLION) < u64::from(chance.parts())
    }

    /// A span from `shortest` up to, not including, `longest`; `shortest` if there is none.
    pub fn span(&mut self, shortest: Span, longest: Span) -> Span {
        match longest.minus(shortest).as_nanos() {
            0 => shortest,
            room => shortest + Span::nanos(self.below(room)),
        }
    }

    /// A span with this mean from the exponential distribution, at least a nanosecond.
    pub fn exponential(&mut self, mean: Span) -> Span {
        // 53 bits in (0, 1]: the logarithm is finite.  libm gives the same bits everywhere.
        let unit = ((self.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let nanos = -libm::log(unit) * mean.as_nanos() as f64;
        Span::nanos((nanos as u64).max(1))
    }

    /// Brings `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for idx in (1..items.len()).rev() {
            items.swap(idx, self.index(idx + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_stream_for_each_purpose() {
        let draws = |seed, purpose| {
            let mut dice = Dice::new(seed, purpose);
            [dice.draw(), dice.draw(), dice.draw()]
        };
        assert_eq!(draws(7, "faults"), draws(7, "faults"));
        assert_ne!(draws(7, "faults"), draws(7, "delays"));
        assert_ne!(draws(7, "faults"), draws(8, "faults"));
    }

    #[test]
    fn exponential_spans_have_their_mean_and_median() {
        let mut dice = Dice::new(1, "test");
        let mean = Span::secs(1000);
        let mut spans: Vec<Span> = (0..20_000).map(|_| dice.exponential(mean)).collect();
        let total: u64 = spans.iter().map(|it| it.as_secs()).sum();
        let average = total / 20_000;
        assert!((970..=1030).contains(&average), "{average}");
        spans.sort();
        // ln 2 of the mean.
        let median = spans[10_000].as_secs();
        assert!((670..=716).contains(&median), "{median}");
    }

    #[test]
    fn every_face_of_a_small_die_comes_up_about_as_often() {
        let mut dice = Dice::new(3, "test");
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[dice.index(6)] += 1;
        }
        assert!(counts.iter().all(|it| (9_600..=10_400).contains(it)), "{counts:?}");
        let mut order: Vec<u32> = (0..52).collect();
        dice.shuffle(&mut order);
        assert_ne!(order, (0..52).collect::<Vec<_>>());
        order.sort();
        assert_eq!(order, (0..52).collect::<Vec<_>>());
    }
}
