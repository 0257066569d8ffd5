//! What a part of the walk led to, for the next time that everything stands the same.
//!
//! Deep in a walk the same thing happens over and over: in whatever order a channel takes the same
//! GPUs over the same switch, the links are as full afterwards, and what is tried next is the
//! same.  Where a part of the walk brought nothing better and put everything back, only its calls
//! matter: from the same state they are counted and not made.
//!
//! A state is all that such a part reads: what links and ports have left, where the channel began
//! and where it stands, the GPUs that it has, and its ports and those of the channel before.
//! Whether something is better depends on the best graph, which must be the same, and on the hops
//! so far, which must not be fewer.  The order of the channel's GPUs so far is read only by a next
//! channel that takes them in the same order: what such a one was part of is not kept.

use std::collections::VecDeque;

use crate::host::nccl::search::Pattern;
use crate::host::nccl::search::state::{Draft, NO_PORTS, Port, Search};
use crate::host::nccl::search::walk::{At, Task};

/// Where a channel's first GPU is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Among all GPUs.
    All,
    /// Among those near a port.
    Near(u16),
}

/// Where a part of the walk begins.
#[derive(Clone, Copy, Debug)]
enum Place {
    Choice(Choice),
    /// A GPU of the channel, from which all that are left are tried.
    Gpu(At),
}

/// Words of all states that are kept: 4 MB.
const WORDS_MAX: usize = 1 << 20;

/// Places of the table, a power of two.
const SLOTS: usize = 1 << 14;

/// GPUs of a server whose single steps are kept: the bits of two words.
const GPUS_MAX: usize = 64;

/// Calls of a walk before anything of it is kept: short ones are not worth it.
const CALLS_MIN: u64 = 256;

/// GPUs that are still to come where it pays to look a state up.
const LEFT_MIN: usize = 2;

/// Looks at one depth after which they must have paid: one in `LOOKS_PER_HIT` found something.
const LOOKS_MIN: u32 = 256;
const LOOKS_PER_HIT: u32 = 8;

/// Words written to look choices up before that must have paid: as many calls in `WORDS_PER_CALL`
/// of them must have been saved.  A server of hundreds of ports has long states, none like another.
const WORDS_MIN: u64 = 1 << 20;
const WORDS_PER_CALL: u64 = 16;

/// Words of a state before those of links and ports.
const HEAD_WORDS: usize = 12;

/// What was seen of one part.
#[derive(Clone, Copy, Debug)]
struct Seen {
    hash: u64,
    /// Hops on arrival.
    hops: i32,
    /// What it cost.
    calls: i32,
    /// The latency that it left behind, if it came to a port.
    latency: Option<f32>,
}

/// A part of the walk under way; its state is the last of those pending.
#[derive(Clone, Copy, Debug)]
struct Frame {
    seen: Seen,
    time: i32,
    best: u64,
    /// Ports begun at, and steps of this channel repeated by the next, when it began.
    begun: u64,
    repeated: Option<u64>,
}

/// A whole walk that changed nothing and brought nothing.
#[derive(Debug)]
struct Walked {
    /// What it was to do and how much time it was given.
    draft: Draft,
    time: i32,
    best: u64,
    open: Vec<bool>,
    links: Vec<u32>,
    left: Vec<(f32, i32)>,
    /// Time and latency that were left, and what it cost.
    time_left: i32,
    latency: f32,
    calls: u64,
}

/// Whole walks that are kept; the last ones.
const WALKS_MAX: usize = 8;

/// All that was seen in a walk.
#[derive(Debug, Default)]
pub(super) struct Recall {
    /// By hash, one more than the number of what was seen; 0 for nothing.
    slots: Vec<u32>,
    seen: Vec<Seen>,
    /// States, of equal length: first those of what was seen, and apart those of the frames.
    states: Vec<u32>,
    pending: Vec<u32>,
    frames: Vec<Frame>,
    /// The links that the walk can take anything from; none until it is worth it.
    links: Vec<u32>,
    is_ready: bool,
    /// Calls of the search when the walk began.
    calls: u64,
    /// Whether single steps are kept too, and by depth how often one was looked for and found.
    steps: bool,
    looks: Vec<(u32, u32)>,
    /// Words that looking choices up took, and calls that it saved.
    choices: (u64, u64),
    /// How many channels began at a port.
    begun: u64,
    /// By channel, how often the next one took over a step of it beyond the first.
    repeated: Vec<u64>,
    walked: VecDeque<Walked>,
    /// Whether everything is walked.
    #[cfg(test)]
    pub(in crate::host::nccl::search) is_off: bool,
}

impl Recall {
    /// Forgets all, for a walk under other conditions.
    pub(super) fn forget(&mut self, calls: u64, channels: usize, steps: Option<usize>) {
        self.calls = calls;
        self.is_ready = false;
        self.repeated.resize(channels, 0);
        self.steps = steps.is_some_and(|it| it <= GPUS_MAX);
        self.looks.clear();
        self.looks.resize(steps.unwrap_or(0), (0, 0));
        self.choices = (0, 0);
    }

    /// Whether looking choices up has paid so far.
    fn pays(&self) -> bool {
        let (words, calls) = self.choices;
        words < WORDS_MIN || words <= calls.saturating_mul(WORDS_PER_CALL)
    }

    fn begin_to_keep(&mut self, links: Vec<u32>) {
        self.is_ready = true;
        self.links = links;
        self.slots.resize(SLOTS, 0);
        self.empty();
    }

    fn empty(&mut self) {
        self.slots.fill(0);
        self.seen.clear();
        self.states.clear();
    }

    /// A channel begins at a port.
    pub(super) fn begins(&mut self) {
        self.begun += 1;
    }

    /// A step of that channel beyond the first is taken over by the next one.
    pub(super) fn repeats(&mut self, channel: usize) {
        self.repeated[channel] += 1;
    }

    /// The number of what was seen from the last pending state, or the slot for it.
    fn find(&self, hash: u64, words: usize) -> Result<usize, usize> {
        let state = &self.pending[self.pending.len() - words..];
        let mut slot = hash as usize % SLOTS;
        while let Some(at) = (self.slots[slot] as usize).checked_sub(1) {
            if self.seen[at].hash == hash && self.states[at * words..][..words] == *state {
                return Ok(at);
            }
            slot = (slot + 1) % SLOTS;
        }
        Err(slot)
    }

    /// Keeps what was seen from the last pending state.
    fn keep(&mut self, seen: Seen, words: usize) {
        if self.states.len() + words > WORDS_MAX || self.seen.len() * 2 > SLOTS {
            self.empty();
        }
        match self.find(seen.hash, words) {
            Ok(at) => self.seen[at] = seen,
            Err(slot) => {
                self.states.extend_from_slice(&self.pending[self.pending.len() - words..]);
                self.seen.push(seen);
                self.slots[slot] = self.seen.len() as u32;
            }
        }
    }
}

impl Search<'_> {
    /// Makes the walk that the draft asks for, or counts what it cost when all was the same.
    pub(super) fn walk_or_recall(&mut self) {
        #[cfg(test)]
        if self.recall.is_off {
            return self.walk();
        }
        if let Some(it) = self.recall.walked.iter().find(|it| self.is_as_walked(it)) {
            (self.time, self.draft.latency) = (it.time_left, it.latency);
            self.calls += it.calls;
            return;
        }
        let draft = Draft { gpus: Vec::new(), ports: Vec::new(), ..self.draft };
        let (time, best, calls) = (self.time, self.n_best, self.calls);
        let (links, left) = (self.ledger.state().to_vec(), self.left.clone());
        self.walk();
        let cost = self.calls - calls;
        if cost < CALLS_MIN || best != self.n_best || links != self.ledger.state() {
            return;
        }
        self.recall.walked.truncate(WALKS_MAX - 1);
        self.recall.walked.push_front(Walked {
            draft,
            time,
            best,
            open: self.routes.all_open().to_vec(),
            links,
            left,
            time_left: self.time,
            latency: self.draft.latency,
            calls: cost,
        });
    }

    fn is_as_walked(&self, walked: &Walked) -> bool {
        let (old, new) = (&walked.draft, &self.draft);
        let heads = matches!(new.pattern, Pattern::Nvls | Pattern::CollnetDirect);
        // How far is asked by way of what is open; but for heads, and for ports from 2.8 on.
        old.kind == new.kind
            && old.pattern == new.pattern
            && (old.cross_nic, old.collnet, old.same) == (new.cross_nic, new.collnet, new.same)
            && (old.channels_min, old.channels_max) == (new.channels_min, new.channels_max)
            && (old.intra, old.inter) == (new.intra, new.inter)
            && (old.kind_intra == new.kind_intra || !heads)
            && (old.kind_inter == new.kind_inter || (self.profile.is_seed() && !heads))
            && old.hops <= new.hops
            && (walked.time, walked.best) == (self.time, self.n_best)
            && walked.open == self.routes.all_open()
            && walked.links == self.ledger.state()
            && walked.left == self.left
    }

    /// Makes a choice, or counts what it cost when all was the same.
    pub(super) fn choose(&mut self, choice: Choice) {
        if self.is_worth_it() && self.recall.pays() {
            let calls = self.calls;
            let found = self.recall(Place::Choice(choice));
            let words = HEAD_WORDS + self.recall.links.len() + 2 * self.left.len();
            self.recall.choices.0 += words as u64;
            self.recall.choices.1 += self.calls - calls;
            if found {
                return;
            }
            self.tasks.push(Task::Remember);
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

    /// Whether what follows from that GPU is to be looked for and kept.
    pub(super) fn is_kept(&self, at: At) -> bool {
        let depth = usize::from(at.step);
        if !self.recall.is_ready || !self.recall.steps || depth + LEFT_MIN >= self.gpus {
            return false;
        }
        let (looks, hits) = self.recall.looks[depth];
        looks < LOOKS_MIN || hits * LOOKS_PER_HIT >= looks
    }

    /// Counts what trying all GPUs from this one cost when all was the same; where it was not,
    /// the caller tries them and then says so by [`Search::remember`].
    pub(super) fn recall_step(&mut self, at: At) -> bool {
        let found = self.recall(Place::Gpu(at));
        let (looks, hits) = &mut self.recall.looks[usize::from(at.step)];
        (*looks, *hits) = (*looks + 1, *hits + u32::from(found));
        found
    }

    fn is_worth_it(&mut self) -> bool {
        #[cfg(test)]
        if self.recall.is_off {
            return false;
        }
        if !self.recall.is_ready && self.calls - self.recall.calls >= CALLS_MIN {
            let heads = matches!(self.draft.pattern, Pattern::Nvls | Pattern::CollnetDirect);
            let links = self.ledger.state().len();
            let links = if heads { (0..links as u32).collect() } else { self.routes.links(links) };
            self.recall.begin_to_keep(links);
        }
        self.recall.is_ready
    }

    fn recall(&mut self, place: Place) -> bool {
        let before = self.recall.pending.len();
        self.write_state(place);
        let words = self.recall.pending.len() - before;
        let hash = hashed(&self.recall.pending[before..]);
        let hops = self.draft.hops;
        if let Ok(at) = self.recall.find(hash, words)
            && let seen = self.recall.seen[at]
            && seen.hops <= hops
            && seen.calls <= self.time
        {
            self.recall.pending.truncate(before);
            self.time -= seen.calls;
            self.calls += seen.calls as u64;
            self.draft.latency = seen.latency.unwrap_or(self.draft.latency);
            return true;
        }
        // Up to a channel's second GPU its state says all of its order.
        let repeated = match place {
            Place::Gpu(at) if at.step > 1 => Some(self.recall.repeated[self.draft.channels]),
            _ => None,
        };
        self.recall.frames.push(Frame {
            seen: Seen { hash, hops, calls: 0, latency: None },
            time: self.time,
            best: self.n_best,
            begun: self.recall.begun,
            repeated,
        });
        false
    }

    /// After a part: whether it was seen to its end, changed nothing and brought nothing.
    pub(super) fn remember(&mut self) {
        let frame = self.recall.frames.pop().expect("each part that is remembered was begun");
        let words = HEAD_WORDS + self.recall.links.len() + 2 * self.left.len();
        let repeated = self.recall.repeated[self.draft.channels];
        let is_whole = self.time > 0
            && frame.best == self.n_best
            && frame.repeated.is_none_or(|it| it == repeated);
        if is_whole && self.is_as_pending() {
            let calls = frame.time - self.time;
            let latency = (frame.begun != self.recall.begun).then_some(self.draft.latency);
            self.recall.keep(Seen { calls, latency, ..frame.seen }, words);
        }
        let before = self.recall.pending.len() - words;
        self.recall.pending.truncate(before);
    }

    /// Whether links and ports have left what the last pending state says.
    fn is_as_pending(&self) -> bool {
        let Recall { pending, links, .. } = &self.recall;
        let (rest, ports) = pending.split_at(pending.len() - 2 * self.left.len());
        let now = self.ledger.state();
        let before = &rest[rest.len() - links.len()..];
        links.iter().zip(before).all(|(link, was)| now[*link as usize] == *was)
            && self.left.iter().zip(ports.chunks_exact(2)).all(|(it, was)| port_words(it) == *was)
    }

    /// Appends the present state to those pending.
    fn write_state(&mut self, place: Place) {
        let channels = self.draft.channels;
        let port = |port: Port| match port {
            Port::At(net) => net as u32,
            Port::Id(_) => u32::MAX,
        };
        let (mut before, mut here, mut used) = (NO_PORTS, NO_PORTS, 0_u64);
        if let Some(channel) = channels.checked_sub(1).filter(|_| self.by_port) {
            before = self.draft.ports[channel];
        }
        let stand = match place {
            Place::Choice(Choice::All) => [u32::MAX; 4],
            Place::Choice(Choice::Near(net)) => [u32::MAX, u32::MAX, u32::MAX, u32::from(net)],
            Place::Gpu(at) => {
                let flag = 1 << channels;
                for (gpu, of) in self.used.iter().enumerate() {
                    used |= u64::from(of & flag != 0) << gpu;
                }
                if self.by_port {
                    here = self.draft.ports[channels];
                    if i32::from(at.step) < at.back_to_net {
                        // The channel is not back yet.
                        here[1] = NO_PORTS[1];
                    }
                }
                let first = self.draft.gpus[channels * self.gpus];
                let back = [at.back_to_net as u32, u32::from(at.step)];
                [u32::from(first), u32::from(at.gpu), back[0], back[1]]
            }
        };
        let Recall { pending, links, .. } = &mut self.recall;
        let best = self.n_best;
        pending.extend([best as u32, channels as u32, used as u32, (used >> 32) as u32]);
        pending.extend(stand);
        pending.extend([port(before[0]), port(before[1]), port(here[0]), port(here[1])]);
        let now = self.ledger.state();
        pending.extend(links.iter().map(|it| now[*it as usize]));
        pending.extend(self.left.iter().flat_map(port_words));
    }
}

fn port_words((width, channels): &(f32, i32)) -> [u32; 2] {
    [width.to_bits(), *channels as u32]
}

/// Two rows of multiplications, so that one need not wait for the other.
fn hashed(words: &[u32]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut a, mut b) = (K, !K);
    let mut fours = words.chunks_exact(4);
    for it in &mut fours {
        let (c, d) =
            (u64::from(it[0]) << 32 | u64::from(it[1]), u64::from(it[2]) << 32 | u64::from(it[3]));
        a = (a.rotate_left(23) ^ c).wrapping_mul(K);
        b = (b.rotate_left(29) ^ d).wrapping_mul(K);
    }
    for it in fours.remainder() {
        a = (a.rotate_left(23) ^ u64::from(*it)).wrapping_mul(K);
    }
    let sum = a ^ b.rotate_left(32);
    sum ^ sum >> 29
}
