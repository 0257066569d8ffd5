//! A ring through every node of a graph, or the proof that there is none.
//!
//! Links are decided one after the other: taken or left.  Nodes come in an order in which few of
//! those that have come have links to nodes that have not, the frontier.  Of all that was decided
//! only this matters for the rest: whether each node of the frontier has no link taken, one, and
//! then which node is the other end of its path, or two.  Decisions that agree in that are one
//! state (Knuth, The Art of Computer Programming 4A, 7.1.4, exercise 225, "simpath").  A state in
//! which a node can no longer get its two links is dropped, and so is one that closes a ring too
//! early; when none is left, there is no ring.  Exponential in the frontier and linear in the
//! nodes; states are counted, and the search ends when there were too many.

use crate::graph::Graph;
use crate::graph::frontier::narrow_order;

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The nodes in the order of a ring.
    Found(Vec<u32>),
    /// There is no ring: every way was ruled out.
    None,
    /// It would take more steps than there are left.
    TooLong,
}

/// Nodes of the frontier at most.
const FRONTIER_MAX: usize = 24;
/// A node with two links taken.
const DONE: u8 = 0xff;
/// A seat that no node has.
const EMPTY: u8 = 0xfe;

/// For each seat of the frontier the other end of the path of the node on it: its own seat where no
/// link of it is taken.
type State = [u8; FRONTIER_MAX];

/// A state by the one that it came from and whether the link was taken.
type Step = (u32, bool);

/// A ring through every node of `graph`; a step is a state, and takes one from those left.
pub(crate) fn search(graph: &Graph, n_steps_left: &mut u64) -> Search {
    let Some(plan) = Plan::of(graph) else {
        // A ring has three nodes at least, each with two neighbours.
        return Search::None;
    };
    if FRONTIER_MAX < plan.n_seats {
        return Search::TooLong;
    }
    let mut states: Vec<State> = vec![[EMPTY; FRONTIER_MAX]];
    let mut history = Vec::with_capacity(plan.links.len());
    for (nth, link) in plan.links.iter().enumerate() {
        for &seat in &link.coming {
            states.iter_mut().for_each(|it| it[seat as usize] = seat);
        }
        let is_last_come = plan.links[nth + 1..].iter().all(|it| it.coming.is_empty());
        let mut next: Vec<(State, Step)> = Vec::with_capacity(2 * states.len());
        for (state, idx) in states.iter().zip(0..) {
            if is_last_come && link.closes(state) {
                history.push(vec![(idx, true)]);
                return Search::Found(plan.ring(graph.n_nodes(), &history));
            }
            for is_taken in [true, false] {
                next.extend(link.decided(*state, is_taken).map(|it| (it, (idx, is_taken))));
            }
        }
        next.sort_unstable();
        next.dedup_by(|b, a| a.0 == b.0);
        if next.is_empty() {
            return Search::None;
        }
        let Some(n_left) = n_steps_left.checked_sub(next.len() as u64) else {
            *n_steps_left = 0;
            return Search::TooLong;
        };
        *n_steps_left = n_left;
        history.push(next.iter().map(|it| it.1).collect());
        states = next.into_iter().map(|it| it.0).collect();
    }
    Search::None
}

/// One link, when it is its turn.
struct Link {
    /// The nodes.
    ends: [u32; 2],
    /// Their seats.
    seats: [u8; 2],
    /// How many links of either are still to come after it.
    n_left: [u8; 2],
    /// The seats that are taken before it.
    coming: Vec<u8>,
}

impl Link {
    /// The state after it was taken or left; `None` where no ring can come of it.
    fn decided(&self, mut state: State, is_taken: bool) -> Option<State> {
        let [a, b] = self.seats;
        if is_taken {
            let [far_a, far_b] = [state[a as usize], state[b as usize]];
            if far_a == DONE || far_b == DONE || far_a == b {
                return None;
            }
            if far_a != a {
                state[a as usize] = DONE;
            }
            if far_b != b {
                state[b as usize] = DONE;
            }
            state[far_a as usize] = far_b;
            state[far_b as usize] = far_a;
        }
        for (seat, n_left) in self.seats.into_iter().zip(self.n_left) {
            let n_wanted = match state[seat as usize] {
                DONE => 0,
                far if far == seat => 2,
                _ => 1,
            };
            if n_left < n_wanted {
                return None;
            }
            if n_left == 0 {
                state[seat as usize] = EMPTY;
            }
        }
        Some(state)
    }

    /// Whether it joins the two ends of the only path, and no node is left without its two links.
    fn closes(&self, state: &State) -> bool {
        let [a, b] = self.seats;
        let is_over = |(seat, far): (usize, &u8)| {
            seat == usize::from(a) || seat == usize::from(b) || matches!(*far, DONE | EMPTY)
        };
        state[a as usize] == b && state.iter().enumerate().all(is_over)
    }
}

/// The links in the order in which they are decided.
struct Plan {
    links: Vec<Link>,
    n_seats: usize,
}

impl Plan {
    /// `None` where some node has fewer than two neighbours.
    fn of(graph: &Graph) -> Option<Self> {
        let mut beside: Vec<Vec<u32>> =
            (0..graph.n_nodes()).map(|it| graph.neighbours(it).to_vec()).collect();
        for (node, it) in (0..).zip(&mut beside) {
            it.sort_unstable();
            it.dedup();
            it.retain(|other| *other != node);
        }
        if beside.len() < 3 || beside.iter().any(|it| it.len() < 2 || 255 < it.len()) {
            return None;
        }
        let order = narrow_order(&beside);
        let mut n_left: Vec<u8> = beside.iter().map(|it| it.len() as u8).collect();
        let mut seat_of: Vec<Option<u8>> = vec![None; beside.len()];
        let (mut free, mut n_seats): (Vec<u8>, usize) = (Vec::new(), 0);
        let (mut links, mut coming): (Vec<Link>, Vec<u8>) = (Vec::new(), Vec::new());
        for node in order {
            let seat = free.pop().unwrap_or_else(|| {
                n_seats += 1;
                // More than a state has are refused before they are used.
                (n_seats - 1).min(FRONTIER_MAX) as u8
            });
            coming.push(seat);
            seat_of[node as usize] = Some(seat);
            for &other in &beside[node as usize] {
                let Some(far) = seat_of[other as usize] else { continue };
                let ends = [node, other];
                ends.iter().for_each(|it| n_left[*it as usize] -= 1);
                links.push(Link {
                    ends,
                    seats: [seat, far],
                    n_left: ends.map(|it| n_left[it as usize]),
                    coming: std::mem::take(&mut coming),
                });
            }
            for end in beside[node as usize].iter().copied().chain([node]) {
                if n_left[end as usize] == 0 {
                    free.extend(seat_of[end as usize].take());
                }
            }
        }
        Some(Self { links, n_seats })
    }

    /// The ring of the links taken on the way to the last step.
    fn ring(&self, n_nodes: usize, history: &[Vec<Step>]) -> Vec<u32> {
        let mut beside: Vec<Vec<u32>> = vec![Vec::with_capacity(2); n_nodes];
        let mut idx = 0;
        for (link, steps) in self.links.iter().zip(history).rev() {
            let (before, is_taken) = steps[idx];
            if is_taken {
                let [a, b] = link.ends;
                beside[a as usize].push(b);
                beside[b as usize].push(a);
            }
            idx = before as usize;
        }
        let mut ring = vec![0];
        let (mut last, mut at) = (0, beside[0][0]);
        while at != 0 {
            ring.push(at);
            let [one, other] = beside[at as usize][..] else { unreachable!("two links each") };
            let next = if one == last { other } else { one };
            (last, at) = (at, next);
        }
        assert_eq!(ring.len(), n_nodes, "one ring through all");
        ring
    }
}

#[cfg(test)]
mod tests;
