//! A circuit switch as a device: pairs of mirrors, a generation, and what it refuses.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use selvedge_control::input::SetOutcome;
use selvedge_model::fabric::Side;
use selvedge_model::job::Xconnect;
use selvedge_model::unit::{Generation, Moment};

const DARK: u16 = u16::MAX;

/// One circuit switch.
///
/// ```text
///  write ──► older than its newest generation? ──► Stale, nothing changed
///        ──► a port that is broken, taken or of the wrong side? ──► Refused, nothing changed
///        ──► all removals, then all additions ──► Done
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ocs {
    /// The newest generation that it has taken.
    pub generation: Generation,
    /// When it has worked off all writes that it was told.
    pub busy_until: Moment,
    /// For each port by place, the port it is joined with, or `DARK`; symmetric.
    joined: Vec<u16>,
    /// For each port by place, how often its mirror was moved.
    moves: Vec<u32>,
    sides: Vec<bool>,
}

impl Ocs {
    /// A switch without pairs, with ports on these sides.
    pub fn new(sides: impl Iterator<Item = Side>) -> Self {
        let sides: Vec<bool> = sides.map(|side| side == Side::North).collect();
        Self {
            generation: Generation::ZERO,
            busy_until: Moment::START,
            joined: vec![DARK; sides.len()],
            moves: vec![0; sides.len()],
            sides,
        }
    }

    /// The port that `port` is joined with.
    pub fn joined(&self, port: u16) -> Option<u16> {
        self.joined.get(usize::from(port)).copied().filter(|&it| it != DARK)
    }

    /// All pairs in the order of their north ports.
    pub fn pairs(&self) -> Vec<Xconnect> {
        let north = self.sides.iter().zip(&self.joined).enumerate();
        north
            .filter(|(_, (is_north, south))| **is_north && **south != DARK)
            .map(|(north, (_, &south))| Xconnect { north: place(north), south })
            .collect()
    }

    /// How often the mirror of each port was moved, by place: a port that is held is not moved.
    pub fn moves(&self) -> &[u32] {
        &self.moves
    }

    /// How many ports it has.
    pub fn n_ports(&self) -> usize {
        self.joined.len()
    }

    /// Carries out a write as above; `broken` are its ports that cannot be connected.
    pub fn set(
        &mut self,
        generation: Generation,
        remove: &[Xconnect],
        add: &[Xconnect],
        broken: &BTreeSet<u16>,
    ) -> SetOutcome {
        if generation < self.generation {
            return SetOutcome::Stale { newest: self.generation };
        }
        let (before, moves) = (self.joined.clone(), self.moves.clone());
        for pair in remove {
            if self.joined(pair.north) == Some(pair.south) {
                self.cut(*pair);
            }
        }
        let mut ports = BTreeSet::new();
        for pair in add {
            let there = self.joined(pair.north) == Some(pair.south);
            if self.is(pair.north, Side::North) && self.is(pair.south, Side::South) && there {
                continue;
            }
            for (port, side) in [(pair.north, Side::North), (pair.south, Side::South)] {
                if !self.is(port, side) || broken.contains(&port) || self.joined(port).is_some() {
                    ports.insert(port);
                }
            }
            if ports.is_empty() {
                self.join(*pair);
            }
        }
        if !ports.is_empty() {
            (self.joined, self.moves) = (before, moves);
            return SetOutcome::Refused { ports: ports.into_iter().collect() };
        }
        self.generation = generation;
        SetOutcome::Done
    }

    /// Takes the pair at `north` away, as somebody at the switch's own console would.
    pub fn cut_at(&mut self, north: u16) -> bool {
        let Some(south) = self.joined(north) else { return false };
        self.cut(Xconnect { north, south });
        true
    }

    /// Joins two free ports, as somebody at the switch's own console would.
    pub fn join_free(&mut self, pair: Xconnect) -> bool {
        let fits = self.is(pair.north, Side::North)
            && self.is(pair.south, Side::South)
            && self.joined(pair.north).is_none()
            && self.joined(pair.south).is_none();
        if fits {
            self.join(pair);
        }
        fits
    }

    /// All mirrors fall back; the generation is kept.
    pub fn lose_mirrors(&mut self) {
        for pair in self.pairs() {
            self.cut(pair);
        }
    }

    fn is(&self, port: u16, side: Side) -> bool {
        self.sides.get(usize::from(port)).is_some_and(|&it| it == (side == Side::North))
    }

    fn cut(&mut self, pair: Xconnect) {
        self.turn(pair.north, DARK);
        self.turn(pair.south, DARK);
    }

    fn join(&mut self, pair: Xconnect) {
        self.turn(pair.north, pair.south);
        self.turn(pair.south, pair.north);
    }

    fn turn(&mut self, port: u16, to: u16) {
        let port = usize::from(port);
        self.joined[port] = to;
        self.moves[port] = self.moves[port].saturating_add(1);
    }
}

fn place(idx: usize) -> u16 {
    u16::try_from(idx).expect("a switch has fewer than 65,536 ports")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ocs() -> Ocs {
        Ocs::new((0..8).map(|idx| if idx < 4 { Side::North } else { Side::South }))
    }

    fn pair(north: u16, south: u16) -> Xconnect {
        Xconnect { north, south }
    }

    #[test]
    fn a_write_is_all_or_nothing_and_twice_is_as_good_as_once() {
        let (mut ocs, none) = (ocs(), BTreeSet::new());
        let add = [pair(0, 4), pair(1, 5)];
        assert_eq!(ocs.set(Generation::new(1), &[], &add, &none), SetOutcome::Done);
        assert_eq!(ocs.set(Generation::new(1), &[], &add, &none), SetOutcome::Done);
        assert_eq!(ocs.pairs(), add);
        assert_eq!(ocs.moves(), [1, 1, 0, 0, 1, 1, 0, 0], "twice turns no mirror twice");
        // South 5 is taken by north 1, so the good pair (2, 6) is not made either.
        let outcome = ocs.set(Generation::new(2), &[], &[pair(2, 6), pair(3, 5)], &none);
        assert_eq!(outcome, SetOutcome::Refused { ports: vec![5] });
        assert_eq!(ocs.pairs(), add);
        assert_eq!(ocs.moves(), [1, 1, 0, 0, 1, 1, 0, 0], "what is refused turns none");
        assert_eq!(ocs.generation, Generation::new(1));
        // Removals come first, so that a port can change its partner in one write.
        let outcome = ocs.set(Generation::new(2), &[pair(1, 5)], &[pair(3, 5)], &none);
        assert_eq!(outcome, SetOutcome::Done);
        assert_eq!(ocs.pairs(), [pair(0, 4), pair(3, 5)]);
        assert_eq!(ocs.moves(), [1, 2, 0, 1, 1, 3, 0, 0]);
    }

    #[test]
    fn an_older_generation_is_refused_with_the_newest() {
        let (mut ocs, none) = (ocs(), BTreeSet::new());
        assert_eq!(ocs.set(Generation::new(7), &[], &[pair(0, 4)], &none), SetOutcome::Done);
        let outcome = ocs.set(Generation::new(6), &[pair(0, 4)], &[], &none);
        assert_eq!(outcome, SetOutcome::Stale { newest: Generation::new(7) });
        assert_eq!(ocs.pairs(), [pair(0, 4)]);
    }

    #[test]
    fn broken_ports_wrong_sides_and_ports_that_are_not_there_are_refused() {
        let mut ocs = ocs();
        let broken = BTreeSet::from([2]);
        for (add, ports) in
            [(pair(2, 4), vec![2]), (pair(4, 0), vec![0, 4]), (pair(0, 99), vec![99])]
        {
            let outcome = ocs.set(Generation::new(1), &[], &[add], &broken);
            assert_eq!(outcome, SetOutcome::Refused { ports });
        }
        // A broken port can still be let go.
        assert_eq!(ocs.set(Generation::new(1), &[pair(2, 4)], &[], &broken), SetOutcome::Done);
    }
}
