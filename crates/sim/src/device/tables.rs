//! The forwarding tables that chips hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use selvedge_model::id::PartId;
use selvedge_model::job::Hold;
use selvedge_model::unit::Generation;

/// What was written to a chip last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The write's number.
    pub generation: Generation,
    /// The digest of the whole job's table.
    pub digest: u64,
}

/// The tables of all chips; none until the first is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tables {
    by_part: BTreeMap<PartId, Vec<Option<Table>>>,
}

impl Tables {
    /// The table of a chip by its part and seat.
    pub(super) fn at(&self, part: PartId, seat: usize) -> Option<Table> {
        self.by_part.get(&part)?.get(seat).copied().flatten()
    }

    /// The newest generation that a chip has taken, if any has.
    pub(super) fn generation(&self) -> Option<Generation> {
        self.by_part.values().flatten().flatten().map(|it| it.generation).max()
    }

    /// Writes `table` to all chips of `hold`, or, if one of them has taken a newer one, to none.
    ///
    /// # Errors
    /// The newest generation among these chips.
    pub(super) fn set(&mut self, hold: Hold, table: Table) -> Result<(), Generation> {
        let chips = self.by_part.entry(hold.part).or_default();
        let n_seats = (u64::BITS - hold.seats.leading_zeros()) as usize;
        if chips.len() < n_seats {
            chips.resize(n_seats, None);
        }
        let held = |(seat, _): &(usize, &mut Option<Table>)| hold.seats >> seat & 1 == 1;
        let newest = chips
            .iter_mut()
            .enumerate()
            .filter(held)
            .filter_map(|(_, it)| Some(it.as_ref()?.generation))
            .max();
        if let Some(newest) = newest.filter(|it| table.generation < *it) {
            return Err(newest);
        }
        chips.iter_mut().enumerate().filter(held).for_each(|(_, it)| *it = Some(table));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_write_changes_no_chip_and_names_the_newest() {
        let table = |generation| Table { generation: Generation::new(generation), digest: 7 };
        let hold = |seats| Hold { part: PartId::new(0), seats };
        let mut tables = Tables::default();
        assert_eq!(tables.set(hold(0b0011), table(5)), Ok(()));
        assert_eq!(tables.set(hold(0b0110), table(4)), Err(Generation::new(5)));
        assert_eq!(tables.at(PartId::new(0), 2), None);
        assert_eq!(tables.set(hold(0b1100), table(4)), Ok(()));
        // Told twice is as good as once.
        assert_eq!(tables.set(hold(0b0011), table(5)), Ok(()));
        assert_eq!(tables.at(PartId::new(0), 0), Some(table(5)));
        assert_eq!(tables.at(PartId::new(0), 3), Some(table(4)));
    }
}
