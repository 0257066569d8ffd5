//! The minimum cuts that one round of the greedy asks for, each from the flow of the one before.
//!
//! Every chip may give to the flow what its value is, or take what it lacks, and chips that have
//! not been looked at take whatever arrives.  To look at a chip is to let it give as much as it
//! can: what then arrives is the cut, and what is given and not taken the chips within.  After that
//! the chip has a value of its own, and the flow is mended around it: what it may not give is
//! supplied by others or withdrawn, what it may not keep is returned.  A step of a grid-like graph
//! touches few chips around it; from scratch each cut would touch all.

/// The links of each chip as arcs; an arc and its reverse stand side by side.
pub(super) struct Arcs {
    /// Where each chip's arcs begin in `of_chip`; one more than there are chips.
    start: Vec<u32>,
    /// The arcs that leave each chip, chip by chip.
    of_chip: Vec<u32>,
    /// Where each arc leads.
    to: Vec<u32>,
}

impl Arcs {
    /// The arcs of these links.
    pub(super) fn of(n_chips: usize, links: &[[u32; 2]]) -> Self {
        let mut start = vec![0u32; n_chips + 1];
        for &end in links.iter().flatten() {
            start[end as usize + 1] += 1;
        }
        for chip in 0..n_chips {
            start[chip + 1] += start[chip];
        }
        let mut free = start.clone();
        let (mut of_chip, mut to) = (vec![0; 2 * links.len()], Vec::with_capacity(2 * links.len()));
        for (&[a, b], first) in links.iter().zip((0u32..).step_by(2)) {
            to.extend([b, a]);
            for (arc, end) in [(first, a), (first + 1, b)] {
                of_chip[free[end as usize] as usize] = arc;
                free[end as usize] += 1;
            }
        }
        Self { start, of_chip, to }
    }

    /// Where `arc` leads.
    pub(super) fn to(&self, arc: u32) -> u32 {
        self.to[arc as usize]
    }

    fn n_chips(&self) -> usize {
        self.start.len() - 1
    }

    /// The arcs that leave `chip`.
    pub(super) fn of_chip(&self, chip: u32) -> &[u32] {
        &self.of_chip[self.start[chip as usize] as usize..self.start[chip as usize + 1] as usize]
    }
}

/// What a chip gives to the flow or takes from it, and how much more it could.
#[derive(Clone, Copy, Debug)]
struct Share {
    flows: i64,
    left: i64,
}

impl Share {
    const NONE: Self = Self { flows: 0, left: 0 };

    fn of(capacity: i64) -> Self {
        Self { flows: 0, left: capacity }
    }
}

/// As much as anybody asks for.
const ANY: i64 = i64::MAX / 4;

/// Where a way begins or ends that mends the flow of one chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// Forward, to a chip that can take more.
    Taken,
    /// Forward, to a chip that gives less for it.
    Returned,
    /// Backward, from a chip that can give more.
    Supplied,
    /// Backward, from a chip that takes less for it.
    Withdrawn,
}

impl Goal {
    fn is_forward(self) -> bool {
        matches!(self, Goal::Taken | Goal::Returned)
    }
}

/// The flow of one round.
pub(super) struct Flow<'a> {
    arcs: &'a Arcs,
    /// What a link carries each way.
    capacity: i64,
    /// What each arc can carry beyond what it does.
    left: Vec<i64>,
    gives: Vec<Share>,
    takes: Vec<Share>,
    /// What all chips take.
    arrives: i64,
    /// The search in which each chip was last found, and the arc by which.
    found: Vec<(u32, u32)>,
    n_searches: u32,
    queue: Vec<u32>,
}

impl<'a> Flow<'a> {
    /// No flow, over links that carry `capacity` each way.
    pub(super) fn new(arcs: &'a Arcs, capacity: i64) -> Self {
        Self {
            arcs,
            capacity,
            left: vec![capacity; arcs.to.len()],
            gives: vec![Share::NONE; arcs.n_chips()],
            takes: vec![Share::of(ANY); arcs.n_chips()],
            arrives: 0,
            found: vec![(0, 0); arcs.n_chips()],
            n_searches: 0,
            queue: Vec::new(),
        }
    }

    /// The least of `capacity · d(A)` and of the positive values outside A and the negative ones
    /// inside, over the sets A of `chip` and chips that have values which hold `chip`.
    pub(super) fn least_cut(&mut self, chip: u32) -> i64 {
        self.arrives -= self.takes[chip as usize].flows;
        self.takes[chip as usize] = Share::NONE;
        while self.moved(chip, ANY, Goal::Taken) != 0 {}
        self.arrives
    }

    /// The smallest set that has this cut: what can be reached from `chip` and from whoever could
    /// give more.
    pub(super) fn within(&mut self, chip: u32) -> &[u32] {
        let givers = (0..chip).filter(|it| 0 < self.gives[*it as usize].left);
        let starts: Vec<u32> = std::iter::once(chip).chain(givers).collect();
        self.search(&starts, true, |_, _| false);
        &self.queue
    }

    /// Gives `chip` its value, and mends the flow around it.
    pub(super) fn settle(&mut self, chip: u32, value: i64) {
        let at = chip as usize;
        let carried = |arc: &u32| self.capacity - self.left[*arc as usize];
        let mut leaves: i64 = self.arcs.of_chip(chip).iter().map(carried).sum();
        let own = leaves.clamp(0, value.max(0));
        self.gives[at] = Share { flows: own, left: value.max(0) - own };
        leaves -= own;
        let own = (-leaves).clamp(0, (-value).max(0));
        self.takes[at] = Share { flows: own, left: (-value).max(0) - own };
        self.arrives += own;
        leaves += own;
        // Withdrawn only where nobody can supply it: the flow stays as large as it can be.
        let goals = if 0 < leaves {
            [Goal::Supplied, Goal::Withdrawn]
        } else {
            [Goal::Returned, Goal::Returned]
        };
        let mut missing = leaves.abs();
        for goal in goals {
            while 0 < missing {
                let moved = self.moved(chip, missing, goal);
                if moved == 0 {
                    break;
                }
                missing -= moved;
            }
        }
        assert!(missing == 0, "what flows through a chip comes from a giver and goes to a taker");
    }

    /// Moves at most `most` along a shortest way between `chip` and a goal; nothing where there is
    /// no way.
    fn moved(&mut self, chip: u32, most: i64, goal: Goal) -> i64 {
        let is_goal = |flow: &Self, it: u32| it != chip && 0 < flow.most_at(it, goal);
        let Some(end) = self.search(&[chip], goal.is_forward(), is_goal) else { return 0 };
        let mut amount = most.min(self.most_at(end, goal));
        for pass in [false, true] {
            let mut at = end;
            while at != chip {
                let arc = self.found[at as usize].1;
                let along = if goal.is_forward() { arc } else { arc ^ 1 };
                if pass {
                    self.left[along as usize] -= amount;
                    self.left[(along ^ 1) as usize] += amount;
                } else {
                    amount = amount.min(self.left[along as usize]);
                }
                at = self.arcs.to[(arc ^ 1) as usize];
            }
        }
        let (share, by) = match goal {
            Goal::Taken => (&mut self.takes[end as usize], amount),
            Goal::Withdrawn => (&mut self.takes[end as usize], -amount),
            Goal::Supplied => (&mut self.gives[end as usize], amount),
            Goal::Returned => (&mut self.gives[end as usize], -amount),
        };
        share.flows += by;
        // Whoever takes anything goes on taking anything.
        share.left = if share.left == ANY { ANY } else { share.left - by };
        if matches!(goal, Goal::Taken | Goal::Withdrawn) {
            self.arrives += by;
        }
        amount
    }

    fn most_at(&self, chip: u32, goal: Goal) -> i64 {
        let (gives, takes) = (self.gives[chip as usize], self.takes[chip as usize]);
        match goal {
            Goal::Taken => takes.left,
            Goal::Withdrawn => takes.flows,
            Goal::Supplied => gives.left,
            Goal::Returned => gives.flows,
        }
    }

    /// Finds chips breadth first from `starts`, along arcs that can carry more or against those,
    /// up to one that is a goal.
    fn search(
        &mut self,
        starts: &[u32],
        is_forward: bool,
        is_goal: impl Fn(&Self, u32) -> bool,
    ) -> Option<u32> {
        self.n_searches += 1;
        self.queue.clear();
        self.queue.extend_from_slice(starts);
        starts.iter().for_each(|it| self.found[*it as usize].0 = self.n_searches);
        let mut next = 0;
        while let Some(&chip) = self.queue.get(next) {
            next += 1;
            if is_goal(self, chip) {
                return Some(chip);
            }
            for &arc in self.arcs.of_chip(chip) {
                let along = if is_forward { arc } else { arc ^ 1 };
                let to = self.arcs.to[arc as usize];
                if 0 < self.left[along as usize] && self.found[to as usize].0 != self.n_searches {
                    self.found[to as usize] = (self.n_searches, arc);
                    self.queue.push(to);
                }
            }
        }
        None
    }
}
