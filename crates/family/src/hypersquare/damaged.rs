//! Rings through groups whose cables are out in such a way that no tree of them opens sides of its
//! own: any ring whatever, which may cross between two groups by a single cable, or a proof that
//! there is none.
//!
//! 1. Proofs that take linear time: a chip that all ways to a group pass; a group whose cables, or
//!    two groups that nothing else joins whose cables, are all of one colour.  (The graph has two
//!    colours, A D and B C, changing places from group to group.  A ring passes groups in paths
//!    that meet as many chips of one colour as of the other, so as many of their ends are of one as
//!    of the other.)
//! 2. Up to [`EXACT_GROUPS_MAX`] groups, the exact search (`graph::circuit`).
//! 3. Beyond, rings of as many trees as fit, patched together: where two rings touch, some groups
//!    are taken out, what is left of the rings becomes paths, and the exact search leads one ring
//!    through those groups and all of the paths.  When there is one ring, it is done.
//! 4. When patching comes to no end, the exact search on the whole: it reaches far where the
//!    groups are a long and narrow set.

use crate::graph::Graph;
use crate::graph::circuit::{Search, search};
use crate::hypersquare::group::Letter;
use crate::hypersquare::rounds::{Rounds, SIDES, number};

/// Groups up to which the exact search comes first.
const EXACT_GROUPS_MAX: usize = 10;
/// Steps in all, some seconds.
const STEPS_MAX: u64 = 1 << 22;
/// Steps for one place where two rings touch.
const PATCH_STEPS_MAX: u64 = 1 << 14;
/// Narrow seams that are looked at for a way round.
const SEAMS_MAX: usize = 256;
/// Groups that are taken out there, at first and at last.
const PATCH_GROUPS: [usize; 5] = [2, 3, 4, 6, 8];

/// Two groups, by their places in the set, with the letters whose chips a cable joins, by seats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    /// The groups.
    pub(super) ends: [usize; 2],
    /// The letters.
    pub(super) letters: u8,
}

/// Why no ring is returned.
#[derive(Debug)]
pub(super) enum Hopeless {
    /// There is none: a chip without which the rest is not joined, and a group beyond it.
    OneChip {
        /// The number of the chip.
        chip: u32,
        /// The place of the group.
        beyond: usize,
    },
    /// There is none: a group with cables of these two chips alone.
    OneColour {
        /// The place of the group.
        idx: usize,
        /// The chips.
        letters: &'static str,
    },
    /// There is none: two groups beside each other, joined by cables of these two chips alone,
    /// and by no way round.
    OneSeam {
        /// Their places.
        ends: [usize; 2],
        /// The chips.
        letters: &'static str,
    },
    /// There is none.
    RuledOut {
        /// Steps of the search.
        n_steps: u64,
    },
    /// It is not known.
    TooLong {
        /// Steps of the search.
        n_steps: u64,
    },
}

/// A ring through every chip of groups joined by `crossings`, which `forest` goes through in rings.
pub(super) fn ring(crossings: &[Crossing], mut forest: Rounds) -> Result<Vec<u32>, Hopeless> {
    let n_groups = forest.beside.len() / 4;
    let graph = chips(n_groups, crossings);
    if let Some(hopeless) = proof(n_groups, crossings, &graph) {
        return Err(hopeless);
    }
    let mut n_steps_left = STEPS_MAX;
    if EXACT_GROUPS_MAX < n_groups && is_patched(&mut forest, &graph, &mut n_steps_left) {
        return Ok(forest.ring());
    }
    match search(&graph, &mut n_steps_left) {
        Search::Found(ring) => Ok(ring),
        Search::None => Err(Hopeless::RuledOut { n_steps: STEPS_MAX - n_steps_left }),
        Search::TooLong => Err(Hopeless::TooLong { n_steps: STEPS_MAX - n_steps_left }),
    }
}

/// The chips of the groups and their links.
fn chips(n_groups: usize, crossings: &[Crossing]) -> Graph {
    let own = (0..n_groups).flat_map(|idx| SIDES.map(|side| side.map(|it| number(idx, it))));
    let cables = crossings.iter().flat_map(|it| {
        let live = Letter::ALL.into_iter().filter(|letter| it.letters >> letter.seat() & 1 == 1);
        live.map(|letter| it.ends.map(|idx| number(idx, letter)))
    });
    Graph::of_links(4 * n_groups, own.chain(cables).collect())
}

fn proof(n_groups: usize, crossings: &[Crossing], graph: &Graph) -> Option<Hopeless> {
    if n_groups == 1 {
        return None;
    }
    let mut letters = vec![0; n_groups];
    for it in crossings {
        it.ends.iter().for_each(|end| letters[*end] |= it.letters);
    }
    let colours = [([Letter::A, Letter::D], "A and D"), ([Letter::B, Letter::C], "B and C")];
    let colours = colours.map(|(two, word)| (two.iter().fold(0, |it, l| it | 1 << l.seat()), word));
    for (only, word) in colours {
        if let Some(idx) = letters.iter().position(|it| it & !only == 0) {
            return Some(Hopeless::OneColour { idx, letters: word });
        }
    }
    for (only, word) in colours {
        let narrow = crossings.iter().filter(|it| it.letters & !only == 0).take(SEAMS_MAX);
        for &Crossing { ends: [a, b], .. } in narrow {
            let is_seam = |from: u32, to: u32| [from, to].map(|it| it as usize / 4) == [a, b];
            let reached = reached(graph, 4 * a as u32, is_seam);
            if !reached[4 * b] {
                return Some(Hopeless::OneSeam { ends: [a, b], letters: word });
            }
        }
    }
    let chip = graph.cut_node()?;
    // The other chips of its group hang together without it.
    let mate = number(chip as usize / 4, Letter::ALL[(chip as usize + 1) % 4]);
    let reached = reached(graph, mate, |_, to| to == chip);
    let beyond = (0..n_groups).find(|it| !reached[4 * it] && 4 * it != chip as usize);
    Some(Hopeless::OneChip { chip, beyond: beyond.expect("the chip parts groups, not a board") })
}

/// Which nodes can be reached from `start` without the steps that are barred.
fn reached(graph: &Graph, start: u32, is_barred: impl Fn(u32, u32) -> bool) -> Vec<bool> {
    let mut reached = vec![false; graph.n_nodes()];
    let mut found = vec![start];
    reached[start as usize] = true;
    while let Some(at) = found.pop() {
        for &to in graph.neighbours(at as usize) {
            if !is_barred(at, to) && !std::mem::replace(&mut reached[to as usize], true) {
                found.push(to);
            }
        }
    }
    reached
}

/// Whether the rings were patched together to one.
fn is_patched(rounds: &mut Rounds, graph: &Graph, n_steps_left: &mut u64) -> bool {
    // What is left for the search of the whole.
    let reserve = *n_steps_left / 2;
    loop {
        let firsts = rounds.firsts();
        let ring_of = |it: u32| firsts[it as usize];
        let seams = graph.links().iter().filter(|[a, b]| ring_of(*a) != ring_of(*b));
        let mut seams: Vec<[usize; 2]> = seams.map(|link| link.map(|it| it as usize / 4)).collect();
        if seams.is_empty() {
            return true;
        }
        seams.dedup();
        let mut windows =
            seams.iter().flat_map(|seam| PATCH_GROUPS.map(|n| window(graph, *seam, n)));
        let is_better = windows.any(|window| {
            let cutout = Cutout::of(rounds, graph, &window);
            let mut n_own = PATCH_STEPS_MAX.min(n_steps_left.saturating_sub(reserve));
            *n_steps_left -= n_own;
            let found = search(&cutout.graph, &mut n_own);
            *n_steps_left += n_own;
            match found {
                Search::Found(ring) => {
                    cutout.put_back(rounds, &ring);
                    true
                }
                Search::None | Search::TooLong => false,
            }
        });
        if !is_better {
            return false;
        }
    }
}

/// The two groups of a seam and those around them, `n` in all if there are.
fn window(graph: &Graph, seam: [usize; 2], n: usize) -> Vec<usize> {
    let mut window = seam.to_vec();
    let mut next = 0;
    while let Some(&idx) = window.get(next) {
        next += 1;
        for chip in 4 * idx..4 * idx + 4 {
            for &to in graph.neighbours(chip) {
                let beside = to as usize / 4;
                if window.len() < n && !window.contains(&beside) {
                    window.push(beside);
                }
            }
        }
    }
    window
}

/// Some groups and, as paths, what the rings that go through them are elsewhere.
struct Cutout {
    /// First the chips of the groups; then of each path its only chip, or its first, a node that
    /// stands for what is between, and its last.
    graph: Graph,
    /// The chip of each node; none in the middle of a path.
    chips: Vec<Option<u32>>,
    /// For nodes at the ends of longer paths, the chip that follows inside.
    inner: Vec<Option<u32>>,
}

impl Cutout {
    fn of(rounds: &Rounds, graph: &Graph, window: &[usize]) -> Self {
        let inside: Vec<u32> =
            window.iter().flat_map(|idx| Letter::ALL.map(|it| number(*idx, it))).collect();
        let node_of = |chip: u32| inside.iter().position(|it| *it == chip);
        let mut chips: Vec<Option<u32>> = inside.iter().copied().map(Some).collect();
        let mut inner = vec![None; chips.len()];
        let (mut links, mut met): (Vec<[u32; 2]>, Vec<u32>) = (Vec::new(), Vec::new());
        for (&chip, from) in inside.iter().zip(0..) {
            for &to in graph.neighbours(chip as usize) {
                let to = node_of(to).map(|it| it as u32);
                links.extend(to.filter(|to| from < *to).map(|to| [from, to]));
            }
        }
        for &start in &inside {
            for first in rounds.beside[start as usize] {
                // Each path is met from both of its ends.
                if node_of(first).is_some() || met.contains(&first) {
                    continue;
                }
                let (mut before, mut last, mut n_chips) = (start, first, 1);
                let second = follow(rounds, start, first);
                loop {
                    let next = follow(rounds, before, last);
                    if node_of(next).is_some() {
                        break;
                    }
                    (before, last) = (last, next);
                    n_chips += 1;
                }
                met.extend([first, last]);
                let node = chips.len() as u32;
                let ends = match n_chips {
                    1 => {
                        chips.push(Some(first));
                        inner.push(None);
                        vec![(node, first)]
                    }
                    _ => {
                        chips.extend([Some(first), None, Some(last)]);
                        inner.extend([Some(second), None, Some(before)]);
                        links.extend([[node, node + 1], [node + 1, node + 2]]);
                        vec![(node, first), (node + 2, last)]
                    }
                };
                for (node, chip) in ends {
                    let near = graph.neighbours(chip as usize).iter();
                    links.extend(near.filter_map(|it| Some([node_of(*it)? as u32, node])));
                }
            }
        }
        let graph = Graph::of_links(chips.len(), links);
        Self { graph, chips, inner }
    }

    /// Makes the rings go as `ring` does.
    fn put_back(&self, rounds: &mut Rounds, ring: &[u32]) {
        let n = ring.len();
        for (place, &node) in ring.iter().enumerate() {
            let Some(chip) = self.chips[node as usize] else { continue };
            let around = [ring[(place + n - 1) % n], ring[(place + 1) % n]];
            let inner = self.inner[node as usize];
            rounds.beside[chip as usize] =
                around.map(|it| self.chips[it as usize].or(inner).expect("a path has an inside"));
        }
    }
}

/// The chip after `at` on its ring, coming from `before`.
fn follow(rounds: &Rounds, before: u32, at: u32) -> u32 {
    let [one, other] = rounds.beside[at as usize];
    if one == before { other } else { one }
}
