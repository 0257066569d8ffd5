//! What each link has left to carry.
//!
//! NCCL rounds to three places after every change, and what it puts back is not always what it
//! took: a link keeps the rest until the next search.  So widths are changed as NCCL changes them,
//! in `f32` and in its order, but each change of one width by one amount is worked out once and
//! then looked up: a search makes millions of changes between a few hundred widths.

use std::collections::BTreeMap;

/// A width's place in the ledger: where the row of what becomes of it begins.
type Row = u32;

/// No link: the way has no other direction to pay.
pub(crate) const NO_LINK: u32 = u32::MAX;

/// Not worked out yet.
const UNKNOWN: Row = u32::MAX;

/// The width is below the amount.
const NARROW: Row = u32::MAX - 1;

/// Amounts that a walk may name at once, given back ones included.
pub(crate) const AMOUNTS: usize = 64;

/// One of the walk's amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(u8);

/// All links of one server.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    now: Vec<Row>,
    widths: Vec<f32>,
    rows: BTreeMap<u32, Row>,
    amounts: Vec<f32>,
    /// By width and amount, what becomes of the width.
    becomes: Vec<Row>,
}

impl Ledger {
    pub(crate) fn new(widths: impl IntoIterator<Item = f32>) -> Ledger {
        let mut ledger = Ledger {
            now: Vec::new(),
            widths: Vec::new(),
            rows: BTreeMap::new(),
            amounts: Vec::new(),
            becomes: Vec::new(),
        };
        for width in widths {
            let row = ledger.row(width);
            ledger.now.push(row);
        }
        ledger
    }

    /// What the link has left.
    pub(crate) fn width(&self, link: u32) -> f32 {
        self.widths[self.now[link as usize] as usize / AMOUNTS]
    }

    /// What all links have left: equal states are equal to the last bit.
    pub(crate) fn state(&self) -> &[Row] {
        &self.now
    }

    /// Forgets all amounts; those of the next walk follow.
    pub(crate) fn forget_amounts(&mut self) {
        self.amounts.clear();
        self.becomes.fill(UNKNOWN);
    }

    /// # Panics
    /// If a walk names too many.
    pub(crate) fn amount(&mut self, amount: f32) -> Amount {
        let same = |it: &f32| it.to_bits() == amount.to_bits();
        let at = self.amounts.iter().position(same).unwrap_or_else(|| {
            assert!(self.amounts.len() < AMOUNTS, "a walk names 40 amounts at most");
            self.amounts.push(amount);
            self.amounts.len() - 1
        });
        Amount(at as u8)
    }

    /// Takes the amount from the link, and another from the link back if there is one; neither
    /// if one of them is too narrow.
    #[inline(always)]
    pub(crate) fn take(&mut self, link: u32, amount: Amount, back: u32, other: Amount) -> bool {
        let next = self.after(link, amount);
        if next == NARROW {
            return false;
        }
        if back != NO_LINK {
            let next = self.after(back, other);
            if next == NARROW {
                return false;
            }
            self.now[back as usize] = next;
        }
        self.now[link as usize] = next;
        true
    }

    #[inline(always)]
    fn after(&mut self, link: u32, amount: Amount) -> Row {
        let now = self.now[link as usize];
        let next = self.becomes[now as usize + usize::from(amount.0)];
        if next == UNKNOWN { self.work_out(now, amount) } else { next }
    }

    #[cold]
    fn work_out(&mut self, now: Row, amount: Amount) -> Row {
        let width = self.widths[now as usize / AMOUNTS];
        let taken = self.amounts[usize::from(amount.0)];
        let next = if width < taken { NARROW } else { self.row(rounded(width - taken)) };
        self.becomes[now as usize + usize::from(amount.0)] = next;
        next
    }

    fn row(&mut self, width: f32) -> Row {
        let new = (self.widths.len() * AMOUNTS) as Row;
        assert!(new < NARROW, "a search meets a few hundred widths");
        let row = *self.rows.entry(width.to_bits()).or_insert(new);
        if row == new {
            self.widths.push(width);
            self.becomes.resize(self.widths.len() * AMOUNTS, UNKNOWN);
        }
        row
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
