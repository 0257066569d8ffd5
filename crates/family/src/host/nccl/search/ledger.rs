//! What each link has left to carry.
//!
//! NCCL rounds to three places after every change, and what it puts back is not always what it
//! took: a link keeps the rest until the next search.  So widths are changed as NCCL changes them,
//! in `f32` and in its order, but each change of one width by one amount is worked out once and
//! then looked up: a search makes millions of changes between a few hundred widths.

use std::collections::BTreeMap;

/// A width's number in the ledger.
type Number = u32;

/// No link: the way has no other direction to pay.
pub(crate) const NO_LINK: u32 = u32::MAX;

/// Not worked out yet.
const UNKNOWN: Number = u32::MAX;

/// The width is below the amount.
const NARROW: Number = u32::MAX - 1;

/// An amount that is taken, or with a minus given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(u16);

/// All links of one server.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    now: Vec<Number>,
    widths: Vec<f32>,
    numbers: BTreeMap<u32, Number>,
    amounts: Vec<f32>,
    /// By amount, what each width becomes.
    becomes: Vec<Vec<Number>>,
}

impl Ledger {
    pub(crate) fn new(widths: impl IntoIterator<Item = f32>) -> Ledger {
        let mut ledger = Ledger {
            now: Vec::new(),
            widths: Vec::new(),
            numbers: BTreeMap::new(),
            amounts: Vec::new(),
            becomes: Vec::new(),
        };
        for width in widths {
            let number = ledger.number(width);
            ledger.now.push(number);
        }
        ledger
    }

    /// What the link has left.
    pub(crate) fn width(&self, link: u32) -> f32 {
        self.widths[self.now[link as usize] as usize]
    }

    pub(crate) fn amount(&mut self, amount: f32) -> Amount {
        let same = |it: &f32| it.to_bits() == amount.to_bits();
        let at = self.amounts.iter().position(same).unwrap_or_else(|| {
            self.amounts.push(amount);
            self.becomes.push(Vec::new());
            self.amounts.len() - 1
        });
        Amount(u16::try_from(at).expect("a search has a few dozen speeds"))
    }

    /// Takes the amount from the link, and another from the link back if there is one; neither
    /// if one of them is too narrow.
    pub(crate) fn take(&mut self, link: u32, amount: Amount, back: u32, other: Amount) -> bool {
        let Some(next) = self.after(link, amount) else { return false };
        if back != NO_LINK {
            let Some(next) = self.after(back, other) else { return false };
            self.now[back as usize] = next;
        }
        self.now[link as usize] = next;
        true
    }

    #[inline]
    fn after(&mut self, link: u32, amount: Amount) -> Option<Number> {
        let now = self.now[link as usize];
        let known = self.becomes[amount.0 as usize].get(now as usize);
        let next = match known {
            Some(&next) if next != UNKNOWN => next,
            _ => self.work_out(now, amount),
        };
        (next != NARROW).then_some(next)
    }

    #[cold]
    fn work_out(&mut self, now: Number, amount: Amount) -> Number {
        let (width, taken) = (self.widths[now as usize], self.amounts[amount.0 as usize]);
        let next = if width < taken { NARROW } else { self.number(rounded(width - taken)) };
        let becomes = &mut self.becomes[amount.0 as usize];
        if becomes.len() <= now as usize {
            becomes.resize(self.widths.len().max(now as usize + 1), UNKNOWN);
        }
        becomes[now as usize] = next;
        next
    }

    fn number(&mut self, width: f32) -> Number {
        let new = Number::try_from(self.widths.len()).expect("a search meets a few hundred widths");
        let number = *self.numbers.entry(width.to_bits()).or_insert(new);
        if number == new {
            self.widths.push(width);
        }
        number
    }
}

/// To three places, halves away from zero.
fn rounded(width: f32) -> f32 {
    (width * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::{Ledger, NO_LINK};

    #[test]
    fn a_link_keeps_what_rounding_left_on_it() {
        let mut ledger = Ledger::new([0.3125, 20.0]);
        let (less, more) = (ledger.amount(0.24), ledger.amount(-0.24));
        assert!(ledger.take(0, less, NO_LINK, less));
        assert_eq!(ledger.width(0), 0.073);
        assert!(ledger.take(0, more, NO_LINK, more));
        assert_eq!(ledger.width(0), 0.313);
    }

    #[test]
    fn both_directions_are_taken_or_none() {
        let mut ledger = Ledger::new([10.0, 1.0]);
        let (all, eighth) = (ledger.amount(10.0), ledger.amount(1.25));
        assert!(!ledger.take(0, all, 1, eighth));
        assert_eq!((ledger.width(0), ledger.width(1)), (10.0, 1.0));
    }
}
