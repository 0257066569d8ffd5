//! Rings that go through every chip of some groups once, as the two neighbours of each chip.
//! Chip L of group k of the set is number 4k and the seat of L.

use crate::hypersquare::group::Letter;
use crate::hypersquare::tree::Edge;

/// The sides of a group's own ring A B D C, by colour.
pub(super) const SIDES: [[Letter; 2]; 4] = [
    [Letter::A, Letter::B],
    [Letter::B, Letter::D],
    [Letter::D, Letter::C],
    [Letter::C, Letter::A],
];

/// Rings of three chips at least, each chip in one.
pub(super) struct Rounds {
    /// The neighbours of each chip.
    pub(super) beside: Vec<[u32; 2]>,
}

impl Rounds {
    /// Each group's own ring, its sides opened by `edges`: each joins two groups by the two cables
    /// of a side.  As many rings as the edges leave trees.
    ///
    /// # Panics
    /// If a side is opened twice.
    pub(super) fn of(n_groups: usize, edges: &[Edge]) -> Self {
        // For each group and colour the group on the other end, itself where the side is closed.
        let mut leads_to: Vec<[usize; 4]> = (0..n_groups).map(|it| [it; 4]).collect();
        for Edge { ends: [a, b], colour } in edges {
            for (from, to) in [(*a, *b), (*b, *a)] {
                assert!(leads_to[from][*colour] == from, "a side is opened once");
                leads_to[from][*colour] = to;
            }
        }
        let mut beside = Vec::with_capacity(4 * n_groups);
        for (idx, leads_to) in leads_to.iter().enumerate() {
            for letter in Letter::ALL {
                // Each letter lies on two sides.
                let mut sides = (0..4).filter(|it| SIDES[*it].contains(&letter)).map(|colour| {
                    let [one, other] = SIDES[colour];
                    let far = if letter == one { other } else { one };
                    match leads_to[colour] == idx {
                        true => number(idx, far),
                        false => number(leads_to[colour], letter),
                    }
                });
                beside.push([(); 2].map(|()| sides.next().expect("two sides")));
            }
        }
        Self { beside }
    }

    /// The ring that the first chip is in, from it on.
    pub(super) fn ring(&self) -> Vec<u32> {
        self.ring_from(0)
    }

    fn ring_from(&self, start: u32) -> Vec<u32> {
        let mut ring = vec![start];
        let (mut last, mut at) = (start, self.beside[start as usize][0]);
        while at != start {
            ring.push(at);
            let [one, other] = self.beside[at as usize];
            (last, at) = (at, if one == last { other } else { one });
        }
        ring
    }

    /// The first chip of the ring that each chip is in.
    pub(super) fn firsts(&self) -> Vec<u32> {
        let mut firsts = vec![u32::MAX; self.beside.len()];
        for chip in 0..self.beside.len() as u32 {
            if firsts[chip as usize] == u32::MAX {
                for it in self.ring_from(chip) {
                    firsts[it as usize] = chip;
                }
            }
        }
        firsts
    }
}

/// The number of a chip.
pub(super) fn number(idx: usize, letter: Letter) -> u32 {
    (4 * idx + letter.seat()) as u32
}
