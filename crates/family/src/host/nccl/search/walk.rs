//! The walk: channel upon channel, GPU upon GPU, depth first, on a stack of its own.
//!
//! ```text
//!   begin ── by port ──> Ports ──> Starts ──> visit ──> Each ──> visit … ──> solved ──> begin
//!     └────── inside ──> Firsts ─────────────────^  └──> Back ──> visit …     (next channel)
//! ```
//!
//! Each task on the stack is a loop under way or something to be put back; a task pushes what
//! comes after it first.  Notes §5.1 to §5.6.

use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::Pattern;
use crate::host::nccl::search::orders::{Asking, Sort};
use crate::host::nccl::search::recall::Choice;
use crate::host::nccl::search::routes::{RouteIdx, Toll};
use crate::host::nccl::search::state::{Port, Search};

/// Which GPU a walk goes to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Whichever the order of trying says.
    Free,
    /// The next in number.
    Pci,
    /// As in the channel before.
    Replay,
}

/// A GPU that the walk stands at.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) gpu: u16,
    /// How many GPUs of the channel come before it.
    pub(super) step: u16,
    /// The step at which the channel comes back to a port; -1 for never.
    pub(super) back_to_net: i32,
    /// The step at which it comes back to its first GPU; -1 for never.
    back_to_first: i32,
    order: Order,
}

/// GPUs that are tried next, from `next` to `end` of all orders; the list began at `base`.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    at: At,
    next: u32,
    end: u32,
    base: u32,
    /// Whether what comes of it is remembered.
    kept: bool,
}

/// Where the walk came from.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    Nowhere,
    Net(u16),
}

/// What is still to be done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Come back from the GPU before the last list's next, and try the rest.
    Each,
    /// Try the GPUs of the last list.
    List,
    /// Try the ports that the GPU may come back to.
    Back { at: At, next: u32 },
    /// Try the ports to begin at.
    Ports { next: u32, headed: bool },
    /// Choose a first GPU.
    Choose(Choice),
    /// Try the GPUs nearest to a port.
    Starts { net: u16, next: u32 },
    /// The same until 2.18, which looks twice.
    SeedStarts { net: u16, next: u32, again: bool },
    /// The same in 2.21, from another GPU for each channel.
    WideStarts { net: u16, next: u32 },
    /// Try each GPU as the first.
    Firsts { next: u32 },
    /// The GPU is out of the channel again.
    LeaveGpu { from: From, gpu: u16 },
    /// The channel's way back to its first GPU is given up.
    LeaveFirst { gpu: u16, first: u16 },
    /// The channel's way back to a port is given up.
    LeavePort { gpu: u16, net: u16 },
    /// The port is free again.
    FreePort { net: u16, width: i32 },
    /// The heads' ways over the switches are given up.
    LeaveSwitch { head: u16, down: u32, up: u32 },
    /// The head's ways to all others are given up.
    LeaveDirect { head: u16, forth: u32, back: u32 },
    /// The channel is taken off again.
    Unsolve,
    /// The probe is over and had its own budget.
    ProbeEnd { time: i32 },
    /// All first GPUs are tried.
    Remember,
}

impl Search<'_> {
    /// One walk under the draft's conditions.
    pub(super) fn walk(&mut self) {
        self.begin();
        while let Some(task) = self.tasks.pop() {
            self.go_on(task);
        }
    }

    fn go_on(&mut self, task: Task) {
        match task {
            Task::Each => {
                let List { at, next, .. } = self.lists[self.lists.len() - 1];
                self.leave(at.gpu, self.orders[next as usize - 1]);
                self.each();
            }
            Task::List => self.each(),
            Task::Back { at, next } => self.back(at, next),
            Task::Ports { next, headed } => self.start_at_ports(next, headed),
            Task::Starts { net, next } => self.start_near(net, next),
            Task::SeedStarts { net, next, again } => self.start_near_in_seed(net, next, again),
            Task::WideStarts { net, next } => self.start_near_by_turns(net, next),
            Task::Firsts { next } => {
                if (next as usize) < self.gpus {
                    self.tasks.push(Task::Firsts { next: next + 1 });
                    self.try_gpu(From::Nowhere, self.first(next as usize, Order::Free));
                }
            }
            Task::LeaveGpu { from, gpu } => {
                self.used[usize::from(gpu)] ^= self.flag();
                if let From::Net(net) = from {
                    let route = self.routes.net_to_gpu(net.into(), gpu.into());
                    self.unfollow(route, self.tolls.inter);
                }
            }
            Task::LeaveFirst { gpu, first } => {
                let route = self.routes.gpu_to_gpu(gpu.into(), first.into());
                self.unfollow(route, self.tolls.intra);
            }
            Task::LeavePort { gpu, net } => {
                let route = self.routes.gpu_to_net(gpu.into(), net.into());
                self.unfollow(route, self.port_toll());
            }
            Task::FreePort { net, width } => {
                if self.profile.is_seed() {
                    self.left[usize::from(net)].1 += 1;
                }
                self.take_port(net, -width);
            }
            Task::LeaveSwitch { head, down, up } => self.leave_switch(head, down, up),
            Task::LeaveDirect { head, forth, back } => self.leave_direct(head, forth, back),
            Task::Unsolve => self.draft.channels -= 1,
            Task::Remember => self.remember(),
            Task::Choose(choice) => self.choose(choice),
            Task::ProbeEnd { time } => {
                if self.time != -1 {
                    self.time = time;
                }
            }
        }
    }

    /// Begins a channel.
    fn begin(&mut self) {
        if self.by_port {
            self.tasks.push(Task::Ports { next: 0, headed: false });
            return;
        }
        let channels = self.draft.channels;
        if self.draft.pattern == Pattern::Nvls {
            self.try_gpu(From::Nowhere, self.first(channels, Order::Free));
            return;
        }
        if channels == 0 || !self.draft.same {
            self.tasks.push(Task::Choose(Choice::All));
        }
        // The order of the bus first, then that of the channel before.
        if channels == 0 {
            self.try_gpu(From::Nowhere, self.first(0, Order::Pci));
        } else {
            self.try_gpu(From::Nowhere, self.first(self.replayed(0), Order::Replay));
        }
    }

    /// The GPU as the first of its channel.
    fn first(&self, gpu: usize, order: Order) -> At {
        let last = self.gpus as i32 - 1;
        let ring = self.draft.pattern == Pattern::Ring;
        let (back_to_net, back_to_first) = match (self.by_port, self.draft.pattern) {
            (true, Pattern::Ring) => (last, -1),
            (true, Pattern::SplitTree) => (1, -1),
            (true, _) => (0, -1),
            (false, _) => (-1, if ring { last } else { -1 }),
        };
        At { gpu: gpu as u16, step: 0, back_to_net, back_to_first, order }
    }

    /// The GPU that the channel before has at that step.
    fn replayed(&self, step: usize) -> usize {
        self.draft.gpus[(self.draft.channels - 1) * self.gpus + step].into()
    }

    fn flag(&self) -> u64 {
        1 << self.draft.channels
    }

    /// Begins a channel with a GPU, if the way from the port is near and wide enough.
    fn try_gpu(&mut self, from: From, at: At) {
        if let From::Net(net) = from {
            let route = self.routes.net_to_gpu(net.into(), at.gpu.into());
            if !self.follow(route, self.tolls.inter) {
                return;
            }
        }
        self.used[usize::from(at.gpu)] ^= self.flag();
        self.tasks.push(Task::LeaveGpu { from, gpu: at.gpu });
        self.visit_and_list(at);
    }

    fn follow(&mut self, route: RouteIdx, toll: Toll) -> bool {
        let followed =
            self.routes.is_open(route) && self.routes.follow(&mut self.ledger, route, &toll);
        if followed {
            self.draft.hops += self.routes.get(route).hops;
        }
        followed
    }

    fn unfollow(&mut self, route: RouteIdx, toll: Toll) {
        self.routes.unfollow(&mut self.ledger, route, &toll);
        self.draft.hops -= self.routes.get(route).hops;
    }

    /// A channel of which only the head matters is complete.
    pub(super) fn visit_end(&mut self, head: u16) {
        let step = self.gpus as u16;
        let at = At { gpu: head, step, back_to_net: -1, back_to_first: -1, order: Order::Free };
        self.visit_and_list(at);
    }

    fn visit_and_list(&mut self, at: At) {
        if self.visit(at) {
            self.tasks.push(Task::List);
        }
    }

    /// One call, as the budget counts them; whether there is a list more, of the GPUs to be tried
    /// next.
    fn visit(&mut self, at: At) -> bool {
        if self.time <= 0 {
            return false;
        }
        self.time -= 1;
        self.calls += 1;
        let step = usize::from(at.step);
        if step == self.gpus {
            self.solved();
            return false;
        }
        let place = self.draft.channels * self.gpus + step;
        self.draft.gpus[place] = at.gpu;
        if i32::from(at.step) == at.back_to_net {
            if self.by_port {
                self.tasks.push(Task::Back { at, next: 0 });
            }
        } else if self.draft.pattern == Pattern::Nvls {
            self.try_switch(at.gpu);
        } else if self.draft.pattern == Pattern::CollnetDirect {
            self.try_direct(at.gpu);
        } else if step + 1 < self.gpus {
            return self.list_next(at);
        } else if i32::from(at.step) == at.back_to_first {
            self.close(at);
        } else {
            let end = At { step: self.gpus as u16, back_to_net: -1, back_to_first: -1, ..at };
            self.visit_and_list(end);
        }
        false
    }

    /// The last GPU of a ring goes back to the first.
    fn close(&mut self, at: At) {
        let first = self.draft.gpus[self.draft.channels * self.gpus];
        let route = self.routes.gpu_to_gpu(at.gpu.into(), first.into());
        if self.follow(route, self.tolls.intra) {
            self.tasks.push(Task::LeaveFirst { gpu: at.gpu, first });
            self.visit_and_list(At { gpu: first, step: at.step + 1, back_to_first: -1, ..at });
        }
    }

    fn list_next(&mut self, at: At) -> bool {
        let kept = at.order == Order::Free && self.is_kept(at);
        if kept && self.recall_step(at) {
            return false;
        }
        let base = self.orders.len() as u32;
        match at.order {
            Order::Pci => self.orders.push(at.step + 1),
            Order::Replay => {
                self.recall.repeats(self.draft.channels - 1);
                let next = self.replayed(usize::from(at.step) + 1) as u16;
                self.orders.push(next);
            }
            Order::Free => {
                let sort = match at.back_to_net {
                    -1 => Sort::Plain,
                    it if it == i32::from(at.step) + 1 => Sort::Near,
                    _ => Sort::Far,
                };
                let net = (sort != Sort::Plain)
                    .then(|| self.port_place(self.draft.ports[self.draft.channels][0]));
                let ask = Asking {
                    profile: self.profile,
                    pattern: self.draft.pattern,
                    routes: &self.routes,
                    ledger: &self.ledger,
                    used: &self.used,
                    flag: 1 << self.draft.channels,
                    switched: self.switched,
                    gpu: at.gpu.into(),
                    net,
                    sort,
                };
                self.known.next(&ask, &mut self.orders);
            }
        }
        self.lists.push(List { at, next: base, end: self.orders.len() as u32, base, kept });
        true
    }

    /// Tries the GPUs of the last list, and those listed by each of them, until something else is
    /// to be done.
    fn each(&mut self) {
        let intra = self.tolls.intra;
        // A list is changed where it lies: to copy one costs as much as to follow a way.
        while let Some(list) = self.lists.last_mut()
            && list.next < list.end
        {
            let (at, gpu) = (list.at, self.orders[list.next as usize]);
            list.next += 1;
            let route = self.routes.gpu_to_gpu(at.gpu.into(), gpu.into());
            if !self.routes.is_open(route) || !self.routes.follow(&mut self.ledger, route, &intra) {
                continue;
            }
            self.draft.hops += self.routes.get(route).hops;
            self.used[usize::from(gpu)] ^= self.flag();
            let depth = self.tasks.len();
            self.tasks.push(Task::Each);
            let has_list = self.visit(At { gpu, step: at.step + 1, ..at });
            if !has_list && self.tasks.len() > depth + 1 {
                return;
            }
            if !has_list {
                self.tasks.pop();
                self.leave(at.gpu, gpu);
            }
        }
        let done = self.lists.pop();
        let done = done.expect("lists are tried where there is one");
        self.orders.truncate(done.base as usize);
        if done.kept {
            self.remember();
        }
    }

    /// Back from a GPU to the one before.
    fn leave(&mut self, from: u16, gpu: u16) {
        self.used[usize::from(gpu)] ^= self.flag();
        let route = self.routes.gpu_to_gpu(from.into(), gpu.into());
        self.routes.unfollow(&mut self.ledger, route, &self.tolls.intra);
        self.draft.hops -= self.routes.get(route).hops;
    }

    /// A channel is complete: is the graph better than the best, and is there room for more?
    fn solved(&mut self) {
        self.draft.channels += 1;
        if self.is_better() {
            self.best.copy_from(&self.draft, self.gpus);
            self.n_best += 1;
            if self.draft.channels == self.draft.channels_max {
                self.time = -1;
            }
        }
        self.tasks.push(Task::Unsolve);
        if self.draft.channels < self.draft.channels_max {
            self.begin();
        }
    }

    fn is_better(&self) -> bool {
        let (draft, best) = (&self.draft, &self.best);
        if draft.channels < draft.channels_min {
            return false;
        }
        let sum = |channels: usize, width: f32| channels as f32 * width;
        if draft.pattern == Pattern::Nvls {
            let more = draft.channels > best.channels && draft.channels <= self.gpus;
            let wider = sum(draft.channels, draft.inter) > sum(best.channels, best.inter);
            return more || (self.profile.has_hosts() && wider);
        }
        let (new, mut old) = (sum(draft.channels, draft.intra), sum(best.channels, best.intra));
        if self.profile == Profile::V2_18_5 {
            // What does not cross ports may be so much slower.
            let target = 1.0 - f64::from(best.cross_nic - draft.cross_nic) * 0.15;
            old *= target as f32;
        }
        if new != old {
            return new > old;
        }
        // 2.7 compares hops of different patterns as well.
        (self.profile.is_seed() || draft.pattern == best.pattern)
            && draft.cross_nic == best.cross_nic
            && draft.hops < best.hops
    }

    /// The toll of the way from a GPU to a port.
    fn port_toll(&self) -> Toll {
        if self.draft.pattern == Pattern::BalancedTree { self.tolls.half } else { self.tolls.inter }
    }

    fn back(&mut self, at: At, next: u32) {
        let ports = self.ports.of(Some(self.draft.kind_inter), Some(at.gpu.into()));
        let Some(&net) = ports.get(next as usize) else { return };
        self.tasks.push(Task::Back { at, next: next + 1 });
        if !self.may_come_back(net, at.step) {
            return;
        }
        let route = self.routes.gpu_to_net(at.gpu.into(), net);
        if !self.follow(route, self.port_toll()) {
            return;
        }
        self.draft.ports[self.draft.channels][1] = Port::At(net);
        self.tasks.push(Task::LeavePort { gpu: at.gpu, net: net as u16 });
        let balanced = self.draft.pattern == Pattern::BalancedTree;
        let back_to_net = if balanced && at.step == 0 { 1 } else { -1 };
        self.visit_and_list(At { back_to_net, ..at });
    }

    /// Whether a channel that began at its port may end at `net`.
    fn may_come_back(&self, net: usize, step: u16) -> bool {
        let draft = &self.draft;
        let [start, end] = draft.ports[draft.channels];
        let (near, far) = (&self.nets[self.port_place(start)], &self.nets[net]);
        let id = self.ports.id(net);
        let new = self.profile.has_devices();
        if new && near.plane != -1 && far.plane != -1 && near.plane != far.plane {
            return false;
        }
        if draft.pattern == Pattern::Tree && id != self.port_id(start) {
            return false;
        }
        let same_card = near.asic == far.asic && near.port == far.port;
        if self.profile.is_seed() {
            return draft.cross_nic == 1 || same_card;
        }
        if !self.profile.has_c2c() {
            let pair = self.profile.has_hosts() && draft.cross_nic != 0 && draft.channels & 1 == 1;
            if (draft.cross_nic != 1 && !same_card)
                || (pair && id != self.port_id(draft.ports[draft.channels - 1][0]))
            {
                return false;
            }
        } else if draft.pattern == Pattern::Ring && draft.cross_nic == 2 {
            let pair = draft.channels & 1 == 1;
            if pair && id != self.port_id(draft.ports[draft.channels - 1][0]) {
                return false;
            }
        } else if draft.cross_nic == 0 {
            let railed = new && near.rail != -1 && far.rail != -1;
            if if railed { near.rail != far.rail } else { !same_card } {
                return false;
            }
        }
        draft.pattern != Pattern::BalancedTree || step == 0 || id == self.port_id(end)
    }

    /// Takes the speed from every port that shares the card's port with `net`.
    fn take_port(&mut self, net: u16, width: i32) {
        let (cards, of) = &self.cards;
        for net in &cards[usize::from(of[usize::from(net)])] {
            self.left[usize::from(*net)].0 -= width as f32;
        }
    }

    fn start_at_ports(&mut self, next: u32, headed: bool) {
        let draft = &self.draft;
        let heads = matches!(draft.pattern, Pattern::Nvls | Pattern::CollnetDirect);
        let ports = self.ports.of(Some(draft.kind_inter), None);
        let count = ports.len();
        // 2.21 looks for a head at the first port alone.
        let once = self.profile.has_hosts() && !self.profile.has_c2c();
        if next as usize >= count || (heads && (headed || (once && next > 0))) {
            return;
        }
        let seed = self.profile.is_seed();
        let by_turns = self.profile.has_hosts();
        let turn = if by_turns { draft.channels } else { 0 };
        let net = ports[(turn + next as usize) % count];
        // NCCL keeps whole GB/s here.
        let width = draft.inter as i32;
        let pair = if self.profile.has_c2c() {
            draft.pattern == Pattern::Ring && draft.cross_nic == 2
        } else {
            draft.cross_nic != 0
        };
        let odd = draft.channels & 1 == 1;
        let skipped = (draft.collnet && self.nets[net].coll == 0)
            || self.left[net].0 < width as f32
            || (seed && self.left[net].1 == 0)
            || (by_turns
                && pair
                && odd
                && self.ports.id(net) != self.port_id(draft.ports[draft.channels - 1][1]));
        if skipped {
            self.tasks.push(Task::Ports { next: next + 1, headed });
            return;
        }
        let channels = draft.channels;
        self.draft.ports[channels][0] = Port::At(net);
        self.draft.latency = self.nets[net].latency;
        self.recall.begins();
        self.take_port(net as u16, width);
        if seed {
            self.left[net].1 -= 1;
        }
        let head = if heads { self.head_at(net) } else { None };
        let headed = head.is_some() && self.profile.has_c2c();
        self.tasks.push(Task::Ports { next: next + 1, headed });
        self.tasks.push(Task::FreePort { net: net as u16, width });
        match head {
            Some(gpu) => {
                // In 2.18 the way from the port to the head is free.
                let from = if by_turns { From::Net(net as u16) } else { From::Nowhere };
                self.try_gpu(from, self.first(gpu, Order::Free));
            }
            None if heads => {}
            None if !self.profile.has_c2c() => self.start_channel_in_seed(net),
            None => self.start_channel(net),
        }
    }

    /// The GPU that heads a channel at the port: the one that the port serves, if it heads no
    /// other channel yet.
    fn head_at(&self, net: usize) -> Option<usize> {
        let ports = self.ports.of(Some(self.draft.kind_inter), None);
        // 2.18 goes by the channel, whatever port it begins at.
        let by_channel = *ports.get(self.draft.channels)?;
        let net = if self.profile.has_hosts() { net } else { by_channel };
        let gpu = self.view.local_gpus[net]?;
        if !self.profile.has_c2c() {
            return Some(gpu);
        }
        let heads = (0..self.draft.channels).map(|it| self.draft.gpus[it * self.gpus]);
        (!heads.map(usize::from).any(|it| it == gpu)).then_some(gpu)
    }

    fn start_channel(&mut self, net: usize) {
        let from = From::Net(net as u16);
        if self.draft.channels > 0 && self.draft.same {
            return self.try_gpu(from, self.first(self.replayed(0), Order::Replay));
        }
        self.tasks.push(Task::Choose(Choice::Near(net as u16)));
        if self.draft.channels == 0 && !self.switched {
            self.probe(from);
        }
    }

    /// The order of the bus, as a first reference with a small budget of its own.
    fn probe(&mut self, from: From) {
        self.tasks.push(Task::ProbeEnd { time: self.time });
        self.time = 1 << 10;
        self.try_gpu(from, self.first(0, Order::Pci));
    }

    /// The GPU that the port serves, then its other nearest ones.
    fn start_near(&mut self, net: u16, next: u32) {
        let served = self.view.local_gpus[usize::from(net)];
        for next in next as usize..=self.ports.near(net.into()).len() {
            let gpu = match next.checked_sub(1) {
                None => served,
                Some(at) => Some(self.ports.near(net.into())[at]).filter(|it| Some(*it) != served),
            };
            let rest = Task::Starts { net, next: next as u32 + 1 };
            if gpu.is_some_and(|gpu| self.start(net, gpu, rest)) {
                return;
            }
        }
    }

    /// Whether a channel begins with that GPU; then the others come after it.
    fn start(&mut self, net: u16, gpu: usize, rest: Task) -> bool {
        let depth = self.tasks.len();
        self.tasks.push(rest);
        self.try_gpu(From::Net(net), self.first(gpu, Order::Free));
        let has_begun = self.tasks.len() > depth + 1;
        if !has_begun {
            self.tasks.pop();
        }
        has_begun
    }

    fn start_channel_in_seed(&mut self, net: usize) {
        let from = From::Net(net as u16);
        let (channels, same) = (self.draft.channels, self.draft.same);
        if channels == 0 || !same {
            self.tasks.push(Task::Choose(Choice::Near(net as u16)));
        }
        if channels == 0 {
            // From 2.19 on the switches make every order equal.
            if !(self.profile.has_hosts() && self.switched) {
                self.probe(from);
            }
        } else {
            self.try_gpu(from, self.first(self.replayed(0), Order::Replay));
        }
    }

    /// The GPUs that are widest and then nearest from the port, from the channel's own number on.
    fn start_near_by_turns(&mut self, net: u16, next: u32) {
        let widest = self.widest_by_port[usize::from(net)];
        if widest.0 < (self.draft.inter as i32) as f32 {
            return;
        }
        for next in next as usize..self.gpus {
            let gpu = (self.draft.channels + next) % self.gpus;
            let route = self.routes.get(self.routes.net_to_gpu(net.into(), gpu));
            let rest = Task::WideStarts { net, next: next as u32 + 1 };
            if (route.width, route.hops) == widest && self.start(net, gpu, rest) {
                return;
            }
        }
    }

    /// The GPUs that are widest and then nearest from the port: the ones with PCI width left, and
    /// on the second look those without.
    fn start_near_in_seed(&mut self, net: u16, next: u32, again: bool) {
        let widest = self.widest_by_port[usize::from(net)];
        if widest.0 < (self.draft.inter as i32) as f32 {
            return;
        }
        let first = next as usize + if again { self.gpus } else { 0 };
        for at in first..2 * self.gpus {
            let (gpu, again) = (at % self.gpus, at >= self.gpus);
            let route = self.routes.get(self.routes.net_to_gpu(net.into(), gpu));
            if (route.width, route.hops) != widest {
                continue;
            }
            let full = self.routes.pci_left(&self.ledger, gpu) <= 0;
            let rest = Task::SeedStarts { net, next: gpu as u32 + 1, again };
            if full == again && self.start(net, gpu, rest) {
                return;
            }
        }
    }
}
