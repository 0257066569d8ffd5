//! What trying all GPUs as a channel's first led to, for the next time that links stand the same.
//!
//! Deep in a walk the same thing happens over and over: in whatever order the last channel takes
//! the GPUs, the links are as full afterwards, and nothing fits on top of it.  Where trying all
//! first GPUs brought nothing better and put everything back, only its calls matter: from the same
//! state they are counted and not made.  A state is all that the walk reads: what links and ports
//! have left, the channel's number, and the ports of the channel before.  Whether something is
//! better depends on the best graph, which must be the same, and on the hops so far, which must
//! not be fewer.

use crate::host::nccl::search::state::{NO_PORTS, Port, Search};
use crate::host::nccl::search::walk::Task;

/// Where a channel's first GPU is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Among all GPUs.
    All,
    /// Among those near a port.
    Near(u16),
}

/// What was seen of one choice.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Whether it may be recalled.
    whole: bool,
    links: Vec<u32>,
    left: Vec<(f32, i32)>,
    before: Option<[Port; 2]>,
    /// Number of the best graph, hops on arrival.
    best: u64,
    hops: i32,
    /// What it cost, and the latency that it left behind.
    calls: i32,
    latency: f32,
}

/// All that was seen in a walk, by channel and choice.
#[derive(Debug, Default)]
pub(super) struct Recall {
    seen: Vec<Seen>,
    choices: usize,
}

impl Recall {
    /// Forgets all, for a walk under other conditions.
    pub(super) fn forget(&mut self, channels: usize, ports: usize) {
        self.choices = ports + 1;
        self.seen.resize_with(channels * self.choices, Seen::default);
        self.seen.iter_mut().for_each(|it| it.whole = false);
    }
}

impl Search<'_> {
    /// Makes a choice, or counts what it cost when all was the same.
    pub(super) fn choose(&mut self, choice: Choice) {
        let slot = self.draft.channels * self.recall.choices
            + match choice {
                Choice::All => 0,
                Choice::Near(net) => usize::from(net) + 1,
            };
        let before = self.ports_before();
        let seen = &mut self.recall.seen[slot];
        let same = seen.whole
            && seen.best == self.n_best
            && seen.hops <= self.draft.hops
            && seen.before == before
            && seen.left == self.left
            && seen.links == self.ledger.state();
        if same && seen.calls <= self.time {
            self.time -= seen.calls;
            self.calls += seen.calls as u64;
            self.draft.latency = seen.latency;
            return;
        }
        if !same {
            seen.whole = false;
            seen.links.clear();
            seen.links.extend_from_slice(self.ledger.state());
            seen.left.clone_from(&self.left);
            (seen.before, seen.best, seen.hops) = (before, self.n_best, self.draft.hops);
            self.tasks.push(Task::Remember { slot: slot as u32, time: self.time });
        }
        match choice {
            Choice::All => self.tasks.push(Task::Firsts { next: 0 }),
            Choice::Near(net) if !self.profile.has_hosts() => {
                self.tasks.push(Task::SeedStarts { net, next: 0, again: false });
            }
            Choice::Near(net) if !self.profile.has_c2c() => {
                self.tasks.push(Task::WideStarts { net, next: 0 });
            }
            Choice::Near(net) => self.tasks.push(Task::Starts { net, next: 0 }),
        }
    }

    /// After a choice: whether it was seen to its end, changed nothing and brought nothing.
    pub(super) fn remember(&mut self, slot: u32, time: i32) {
        let seen = &mut self.recall.seen[slot as usize];
        seen.calls = time - self.time;
        seen.latency = self.draft.latency;
        seen.whole = self.time > 0
            && seen.best == self.n_best
            && seen.left == self.left
            && seen.links == self.ledger.state();
    }

    fn ports_before(&self) -> Option<[Port; 2]> {
        if !self.by_port {
            return None;
        }
        let before = self.draft.channels.checked_sub(1);
        Some(before.map_or(NO_PORTS, |it| self.draft.ports[it]))
    }
}
