//! Graphs drawn on a plane, so that their wires have lengths: rectangles of chips as a mesh, a
//! torus, and a torus folded so that no wire is long.

use crate::graph::Graph;

/// A graph whose nodes stand on the crossings of a grid.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The links.
    pub graph: Graph,
    /// Where each node stands: column and row, a chip's distance apart.
    pub at: Vec<[u16; 2]>,
    /// The fewest links between two halves, where it is known.
    pub bisection: Option<u32>,
}

/// How a rectangle of chips is wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// Each chip to the next.
    Mesh,
    /// And the last to the first, across the whole side.
    Torus,
    /// The same links, with every second chip of a ring on the way back.
    FoldedTorus,
}

impl Drawn {
    /// `sides` chips along x and y, both even, wired so.
    ///
    /// # Panics
    /// If a side is odd or none.
    pub fn rectangle(sides: [u16; 2], wiring: Wiring) -> Self {
        assert!(sides.iter().all(|it| 0 < *it && it.is_multiple_of(2)), "{sides:?}");
        let closes = |n: u16| wiring != Wiring::Mesh && 2 < n;
        let node = |x: u16, y: u16| u32::from(x) + u32::from(sides[0]) * u32::from(y);
        let (mut links, mut at) = (Vec::new(), Vec::new());
        for (x, y) in (0..sides[1]).flat_map(|y| (0..sides[0]).map(move |x| (x, y))) {
            let next = |it: u16, n: u16| match it + 1 == n {
                false => Some(it + 1),
                true => closes(n).then_some(0),
            };
            links.extend(next(x, sides[0]).map(|to| [node(x, y), node(to, y)]));
            links.extend(next(y, sides[1]).map(|to| [node(x, y), node(x, to)]));
            at.push(match wiring {
                Wiring::Mesh | Wiring::Torus => [x, y],
                Wiring::FoldedTorus => [folded(x, sides[0]), folded(y, sides[1])],
            });
        }
        let graph = Graph::of_links(at.len(), links);
        Self { graph, at, bisection: Some(bisection(sides, sides.map(closes))) }
    }

    /// How long each wire is, in distances between chips; wires run along the grid.
    pub fn lengths(&self) -> impl Iterator<Item = u32> + '_ {
        self.graph.links().iter().map(|link| {
            let [a, b] = link.map(|it| self.at[it as usize]);
            u32::from(a[0].abs_diff(b[0])) + u32::from(a[1].abs_diff(b[1]))
        })
    }

    /// How many links lead from one board of 2x2 chips to another.
    pub fn n_cables(&self) -> usize {
        let board = |node: u32| self.at[node as usize].map(|it| it / 2);
        self.graph.links().iter().filter(|[a, b]| board(*a) != board(*b)).count()
    }
}

/// The fewest links between two halves of a rectangle of chips with even sides, whose rows and
/// columns close to rings as said.
///
/// No cut is smaller: an all-to-all, first along x and then along y, loads the busiest link of a
/// ring of n chips with n²/8 for each chip of the other side, of a path with n²/4.
pub fn bisection(sides: [u16; 2], closes: [bool; 2]) -> u32 {
    let along = |axis: usize| u32::from(sides[1 - axis]) * (1 + u32::from(closes[axis]));
    along(0).min(along(1))
}

/// Where the chip at `place` of a ring of `n` stands: out over the even places, back over the odd.
const fn folded(place: u16, n: u16) -> u16 {
    if place < n / 2 { 2 * place } else { 2 * (n - 1 - place) + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes §1: links, cables, diameter, bisection, longest wire and all wire of a row of the
    /// table.
    fn check(sides: [u16; 2], wiring: Wiring, expected: [u32; 6]) {
        let drawn = Drawn::rectangle(sides, wiring);
        let spread = drawn.graph.spread().unwrap();
        let n_links = drawn.graph.links().len() as u32;
        let (longest, all) = (drawn.lengths().max().unwrap(), drawn.lengths().sum());
        let bisection = drawn.bisection.unwrap();
        let n_cables = drawn.n_cables() as u32;
        let measured = [n_links, n_cables, spread.diameter, bisection, longest, all];
        assert_eq!(measured, expected, "{sides:?} {wiring:?}");
    }

    #[test]
    fn rectangles_are_as_the_table_of_the_notes_has_them() {
        use Wiring::{FoldedTorus, Mesh, Torus};
        check([4, 2], Mesh, [10, 2, 4, 2, 1, 10]);
        check([4, 2], Torus, [12, 4, 3, 4, 3, 16]);
        check([4, 4], Mesh, [24, 8, 6, 4, 1, 24]);
        check([4, 4], Torus, [32, 16, 4, 8, 3, 48]);
        check([8, 8], Mesh, [112, 48, 14, 8, 1, 112]);
        check([8, 8], Torus, [128, 64, 8, 16, 7, 224]);
        check([8, 8], FoldedTorus, [128, 96, 8, 16, 2, 224]);
        check([16, 16], Mesh, [480, 224, 30, 16, 1, 480]);
        check([16, 16], Torus, [512, 256, 16, 32, 15, 960]);
        check([16, 16], FoldedTorus, [512, 448, 16, 32, 2, 960]);
    }

    #[test]
    fn folding_moves_chips_and_no_links() {
        let flat = Drawn::rectangle([12, 6], Wiring::Torus);
        let folded = Drawn::rectangle([12, 6], Wiring::FoldedTorus);
        assert_eq!(flat.graph.links(), folded.graph.links());
        let mut at = folded.at.clone();
        at.sort_unstable();
        at.dedup();
        assert_eq!(at.len(), 72, "each chip stands on a place of its own");
    }
}
