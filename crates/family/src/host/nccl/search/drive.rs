//! Under which conditions the walk is made: the strictest first, then laxer and laxer ones, at
//! last faster ones.  Notes §5.7 and §5.8.

use crate::host::nccl::graph::NodeKind;
use crate::host::nccl::graph_xml;
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::speeds::speeds;
use crate::host::nccl::search::state::{Draft, NO_PORTS, Port, Search, Tolls};
use crate::host::nccl::search::{Attempt, End, Found, GraphKind, Pattern, RefusedSearch};
use crate::host::nccl::width::Width;

/// Calls for all walks of one graph.
fn budget(profile: Profile) -> i64 {
    if profile.is_seed() { 3 << 19 } else { 1 << 19 }
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    kind: GraphKind,
    pattern: Pattern,
    collnet: bool,
    channels_min: usize,
    channels_max: usize,
}

impl Goal {
    pub(super) fn ring(profile: Profile) -> Goal {
        let channels_max = profile.channels() / 2;
        let (kind, pattern) = (GraphKind::Ring, Pattern::Ring);
        Goal { kind, pattern, collnet: false, channels_min: 1, channels_max }
    }

    pub(super) fn tree(profile: Profile, rings: usize) -> Goal {
        let kind = GraphKind::Tree;
        let (pattern, channels_min) = if profile.is_seed() {
            (Pattern::SplitTree, 1)
        } else {
            (Pattern::BalancedTree, rings)
        };
        Goal { kind, pattern, collnet: false, channels_min, channels_max: rings }
    }

    pub(super) fn collnet_chain(rings: usize) -> Goal {
        let (kind, pattern) = (GraphKind::CollnetChain, Pattern::Tree);
        Goal { kind, pattern, collnet: true, channels_min: rings, channels_max: rings }
    }

    /// From 2.22 on.
    pub(super) fn collnet_direct(profile: Profile) -> Goal {
        let (kind, pattern) = (GraphKind::CollnetDirect, Pattern::CollnetDirect);
        let channels_max = profile.channels();
        Goal { kind, pattern, collnet: true, channels_min: 1, channels_max }
    }

    pub(super) fn nvls(profile: Profile) -> Goal {
        let (kind, pattern) = (GraphKind::Nvls, Pattern::Nvls);
        let channels_max = profile.channels();
        Goal { kind, pattern, collnet: false, channels_min: 1, channels_max }
    }
}

/// Heads of NVLS channels.
const NVLS_HEADS: usize = 32;

/// Heads of direct channels.
const DIRECT_HEADS: usize = 8;

/// The laxest conditions that are tried, and where they begin again.
struct Limits {
    speeds: &'static [f32],
    /// Which speed is tried.
    speed: usize,
    /// The fastest one to begin with.
    widest: f32,
    intra: (PathKind, PathKind),
    inter: (PathKind, PathKind),
    cross_nic: i64,
    cross_nic_first: i32,
    try_same: bool,
    budget_left: i64,
    /// Which pass it is.
    pass: u8,
}

impl Search<'_> {
    /// The best graph for that goal.
    ///
    /// # Errors
    /// From 2.28 on, where there is none and no port to fall back to.
    pub(super) fn find(&mut self, goal: Goal) -> Result<Found, RefusedSearch> {
        let mut limits = self.limits(goal);
        self.best = Draft {
            kind: goal.kind,
            pattern: goal.pattern,
            cross_nic: limits.cross_nic_first,
            collnet: goal.collnet,
            channels_min: goal.channels_min,
            channels_max: goal.channels_max,
            channels: 0,
            intra: 0.0,
            inter: 0.0,
            latency: 0.0,
            kind_intra: limits.intra.0,
            kind_inter: limits.inter.0,
            same: limits.try_same,
            hops: 0,
            gpus: Vec::new(),
            ports: Vec::new(),
        };
        if let Some(found) = self.taken_from_file()? {
            return Ok(found);
        }
        if goal.pattern == Pattern::Nvls && (!self.switched || self.sm_min < 90) {
            return Ok(self.found());
        }
        self.adjust_goal();
        let room = self.best.channels_max.max(1);
        self.best.gpus = vec![0; room * self.gpus];
        self.best.ports = vec![NO_PORTS; room];
        self.draft = self.best.clone();
        self.begin_with_speed(&mut limits);
        self.first_pass(&mut limits);
        // Until 2.18 the second pass comes first.
        if self.profile.has_hosts() {
            self.duplicate();
        }
        self.second_pass(&mut limits);
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        if self.best.channels == 0 && !goal.collnet && goal.pattern != Pattern::Nvls {
            self.fall_back()?;
        }
        if !self.profile.has_hosts() {
            self.duplicate();
        }
        Ok(self.found())
    }

    /// What the graph file has in place of the best graph.  A graph without channels there says how
    /// the search begins.
    fn taken_from_file(&mut self) -> Result<Option<Found>, RefusedSearch> {
        let Some(root) = &self.view.ask.settings.graph_file else { return Ok(None) };
        let crosses = match self.profile.is_seed() {
            true => self.best.cross_nic != 0,
            false => self.view.ask.settings.cross_nic != 0,
        };
        let Some(mut found) = graph_xml::load(self.view, root, self.best.kind, crosses)? else {
            return Ok(None);
        };
        let best = &mut self.best;
        (found.channels_min, found.channels_max) = (best.channels_min, best.channels_max);
        found.collnet = best.collnet;
        if !found.channels.is_empty() {
            return Ok(Some(found));
        }
        (best.pattern, best.cross_nic, best.same) =
            (found.pattern, found.cross_nic, found.same_channels);
        (best.intra, best.inter, best.latency) = (found.intra.0, found.inter.0, found.latency);
        (best.kind_intra, best.kind_inter) = (found.kind_intra, found.kind_inter);
        Ok(None)
    }

    fn limits(&self, goal: Goal) -> Limits {
        let settings = &self.view.ask.settings;
        let crosses = match goal.pattern {
            Pattern::Ring | Pattern::BalancedTree | Pattern::SplitTree => true,
            _ => self.profile.is_seed(),
        };
        let cross_nic = if crosses && self.nets.len() > 1 { settings.cross_nic } else { 0 };
        let (intra, inter) = if self.profile.has_c2c() { self.kinds() } else { self.seed_kinds() };
        Limits {
            speeds: speeds(self.profile, self.sm_min, self.by_port),
            speed: 0,
            widest: self.widest.0,
            intra,
            inter,
            cross_nic,
            // Until 2.18 it is set whether there are several ports or not.
            cross_nic_first: match (self.profile.has_hosts(), settings.cross_nic) {
                (true, _) => i32::from(cross_nic == 1),
                (false, 2) => 0,
                (false, it) => it as i32,
            },
            try_same: goal.pattern != Pattern::Nvls,
            budget_left: budget(self.profile),
            pass: 1,
        }
    }

    fn seed_kinds(&self) -> ((PathKind, PathKind), (PathKind, PathKind)) {
        let near = if self.gpus == 1 { PathKind::Loc } else { PathKind::Nvl };
        ((near, PathKind::Sys), (PathKind::Pix, PathKind::Sys))
    }

    /// The nearest and the farthest between GPUs, and to ports.
    fn kinds(&self) -> ((PathKind, PathKind), (PathKind, PathKind)) {
        let between = |kind| {
            let (mut near, mut far) = (PathKind::Sys, PathKind::Loc);
            for &gpu in self.view.gpus() {
                if !self.view.paths.knows(gpu, kind) {
                    continue;
                }
                for &other in self.view.graph.kind(kind).iter().filter(|it| **it != gpu) {
                    let path = self.view.path(gpu, other).kind;
                    (near, far) = (near.min(path), far.max(path));
                }
            }
            (near, far)
        };
        let mut intra = (PathKind::Loc, PathKind::Sys);
        let mut inter = (PathKind::Pix, PathKind::Sys);
        if self.gpus > 1 {
            intra = between(NodeKind::Gpu);
        }
        if self.by_port {
            inter = between(NodeKind::Net);
            intra.1 = inter.1;
        }
        // Trees of older GPUs may have to come back through a CPU.
        if self.profile.keeps_ports() && self.sm_min < 90 {
            inter.1 = PathKind::Sys;
        }
        (intra, inter)
    }

    /// What the server makes of the goal.
    fn adjust_goal(&mut self) {
        let best = &mut self.best;
        match best.pattern {
            Pattern::Nvls if self.profile.has_c2c() => {
                best.channels_max = self.gpus.min(NVLS_HEADS);
            }
            // 2.18 bounds them only where no port does.
            Pattern::Nvls if self.profile.has_hosts() || !self.by_port => {
                best.channels_max = self.gpus;
            }
            Pattern::CollnetDirect => best.channels_max = self.gpus.min(DIRECT_HEADS),
            _ => {}
        }
        if self.gpus == 1 && best.pattern != Pattern::Ring {
            best.pattern = Pattern::Tree;
        }
        if !self.by_port && best.pattern == Pattern::Nvls {
            best.channels_min = best.channels_max;
        }
        // Two NVLink domains: trees will want two channels, and rings must have as many.
        let split = self.profile.has_c2c() && self.view.is_split();
        if best.pattern == Pattern::Ring
            && split
            && best.channels_max >= 2
            && best.channels_min == 1
        {
            best.channels_min = 2;
        }
    }

    fn begin_with_speed(&mut self, limits: &mut Limits) {
        let seed = self.profile.is_seed();
        let mut total = self.widest.1;
        let sharing = match self.profile.has_devices() {
            true => self.view.graph.kind(NodeKind::Dev).len(),
            false => self.gpus,
        };
        // Only a ring comes back to where it began.  2.18 divides by nothing for a single GPU.
        let tree = self.draft.pattern != Pattern::Ring;
        let alone = self.profile == Profile::V2_18_5 && sharing == 1;
        if (sharing > 1 && tree) || alone {
            let sharing = sharing as f64;
            total = (f64::from(total) * (sharing / (sharing - 1.0))) as f32;
        }
        let channels = self.draft.channels_min as f32;
        let too_fast = |it: f32| it > limits.widest || (!seed && it * channels > total);
        while too_fast(limits.speeds[limits.speed]) && limits.speed + 1 < limits.speeds.len() {
            limits.speed += 1;
        }
        self.set_speed(limits.speeds[limits.speed]);
    }

    fn set_speed(&mut self, speed: f32) {
        (self.draft.intra, self.draft.inter) = (speed, speed);
    }

    /// One walk, and whether nothing better is to be hoped for.
    fn search(&mut self, limits: &mut Limits) -> bool {
        let seed = self.profile.is_seed();
        self.time = match (self.draft.same, self.draft.pattern) {
            (true, _) => {
                if seed {
                    1 << 10
                } else {
                    1 << 8
                }
            }
            (false, Pattern::Tree) if seed => 1 << 17,
            (false, _) => {
                if seed {
                    1 << 18
                } else {
                    1 << 14
                }
            }
        };
        self.draft.channels = 0;
        limits.budget_left -= i64::from(self.time);
        self.ports.prepare(self.view, Some(self.draft.kind_inter));
        self.tolls = Tolls::new(&mut self.ledger, &self.draft, self.gpus, self.profile);
        let (intra, inter) = (self.draft.kind_intra, self.draft.kind_inter);
        let tree = matches!(
            self.draft.pattern,
            Pattern::BalancedTree | Pattern::SplitTree | Pattern::Tree
        );
        self.routes.open(self.profile, intra, inter, tree);
        // Where switches leave two neighbours to try, no order of GPUs comes to the same.
        let steps = (!self.switched || !self.profile.has_hosts()).then_some(self.gpus);
        self.recall.forget(self.calls, self.draft.channels_max + 1, steps);
        let better = self.n_best;
        self.walk_or_recall();
        self.note(limits.pass, better != self.n_best);
        if self.refused.is_some() {
            return true;
        }
        if seed {
            return self.best.channels == self.best.channels_max
                && self.best.inter == self.widest.0;
        }
        self.time == -1 || self.best.channels as f32 * self.best.inter >= self.widest.1
    }

    /// Keeps what this walk was and what came of it.
    fn note(&mut self, pass: u8, better: bool) {
        let draft = &self.draft;
        self.attempts.push(Attempt {
            pass,
            pattern: draft.pattern,
            intra: Width(draft.intra),
            inter: Width(draft.inter),
            kind_intra: draft.kind_intra,
            kind_inter: draft.kind_inter,
            cross_nic: draft.cross_nic,
            same_channels: draft.same,
            better,
            end: match self.time {
                -1 => End::Perfect,
                0 => End::Budget,
                _ => End::Exhausted,
            },
        });
    }

    /// Until there is a solution that laxer conditions cannot better.
    fn first_pass(&mut self, limits: &mut Limits) {
        while !self.search(limits) && self.relax(limits) {}
    }

    /// The next conditions; false where there are none.
    fn relax(&mut self, limits: &mut Limits) -> bool {
        let seed = self.profile.is_seed();
        // From 2.19 on through AMD's CPUs all channels take the same order.
        let bound = self.profile.has_hosts() && self.amd && self.draft.kind_intra == PathKind::Sys;
        if self.draft.same && !bound {
            self.draft.same = false;
            return true;
        }
        self.draft.same = limits.try_same;
        if self.time == -1 {
            limits.budget_left = budget(self.profile);
        } else {
            limits.budget_left += i64::from(self.time);
        }
        if limits.budget_left < 0 && (seed || self.best.channels > 0) {
            return false;
        }
        if !seed {
            if self.sm_min >= 90 && self.draft.pattern == Pattern::BalancedTree {
                self.draft.pattern = Pattern::Tree;
                return true;
            }
            self.draft.pattern = self.best.pattern;
        }
        if self.relax_kinds(limits) {
            return true;
        }
        if seed {
            if self.draft.pattern == Pattern::SplitTree {
                self.draft.pattern = Pattern::Tree;
                return true;
            }
            self.draft.pattern = self.best.pattern;
        }
        self.relax_ports(limits) || self.relax_speed(limits)
    }

    fn relax_kinds(&mut self, limits: &Limits) -> bool {
        let none = self.best.channels == 0;
        let farthest = if self.by_port { self.draft.kind_inter } else { limits.intra.1 };
        if self.draft.kind_intra < farthest
            && (none || self.draft.kind_intra < self.best.kind_intra)
        {
            self.draft.kind_intra = self.draft.kind_intra.next(self.profile);
            if self.draft.kind_intra < PathKind::Dis {
                return true;
            }
        }
        self.draft.kind_intra = limits.intra.0;
        let always = if self.profile.is_seed() { PathKind::Pxb } else { PathKind::Pxn };
        if self.by_port
            && self.draft.kind_inter < limits.inter.1
            && (none
                || self.draft.kind_inter < self.best.kind_inter
                || self.draft.kind_inter < always)
        {
            self.draft.kind_inter = self.draft.kind_inter.next(self.profile);
            if self.draft.kind_inter < PathKind::Dis {
                return true;
            }
        }
        self.draft.kind_inter = limits.inter.0;
        false
    }

    fn relax_ports(&mut self, limits: &Limits) -> bool {
        if !self.profile.has_hosts() {
            if limits.cross_nic != 0 && self.draft.cross_nic == 0 {
                self.draft.cross_nic = 1;
                return true;
            }
            self.draft.cross_nic = 0;
            return false;
        }
        if !self.profile.has_c2c() {
            let crosses = limits.cross_nic == 2 && self.draft.cross_nic == 0;
            self.draft.cross_nic = i32::from(crosses || limits.cross_nic == 1);
            return crosses;
        }
        let pairs = matches!(self.best.pattern, Pattern::Ring | Pattern::BalancedTree);
        if limits.cross_nic == 2 && self.draft.cross_nic == 0 && pairs {
            self.draft.cross_nic = 2;
            return true;
        }
        self.draft.cross_nic = i32::from(limits.cross_nic == 1);
        false
    }

    fn relax_speed(&mut self, limits: &mut Limits) -> bool {
        let next = limits.speeds.get(limits.speed + 1);
        let worth = |it: f32| self.best.channels == 0 || f64::from(it / self.best.inter) > 0.49;
        let Some(&speed) = next.filter(|it| worth(**it)) else { return false };
        limits.speed += 1;
        self.set_speed(speed);
        true
    }

    /// As many channels again, each with half the width, where that serves the GPUs better.
    fn duplicate(&mut self) {
        let best = &mut self.best;
        if best.intra < 25.0 {
            return;
        }
        if !self.profile.is_seed() {
            // Many slow channels stay as they are.
            let few = self.sm_min > 80 && best.intra < 50.0 && best.channels > 4;
            if best.channels == 0 || best.pattern == Pattern::Nvls || few {
                return;
            }
        }
        let (old, gpus) = (best.channels, self.gpus);
        let new = (old * 2).min(best.channels_max);
        best.gpus.copy_within(..(new - old) * gpus, old * gpus);
        best.ports.copy_within(..new - old, old);
        let share = new.div_ceil(old) as f32;
        best.intra /= share;
        best.inter /= share;
        best.channels = new;
    }

    /// With what is found as the least that is good enough: is it to be had faster?
    fn second_pass(&mut self, limits: &mut Limits) {
        self.draft = self.best.clone();
        limits.pass = 2;
        limits.speed = 0;
        while limits.speeds[limits.speed] > self.best.inter
            && limits.speed + 1 < limits.speeds.len()
        {
            limits.speed += 1;
        }
        self.set_speed(limits.speeds[limits.speed]);
        self.draft.channels_min = self.best.channels;
        self.time = -1;
        while self.hasten(limits) {
            self.search(limits);
        }
    }

    fn hasten(&mut self, limits: &mut Limits) -> bool {
        if self.time == 0 || limits.speed == 0 || self.refused.is_some() {
            return false;
        }
        let faster = limits.speeds[limits.speed - 1];
        let (draft, best) = (&mut self.draft, &self.best);
        if best.pattern == Pattern::Ring {
            if !self.profile.has_hosts() {
                return false;
            }
            (draft.intra, draft.inter) = (faster, faster);
        } else if self.profile.has_hosts()
            && best.pattern == Pattern::Nvls
            && draft.inter == best.inter
            && draft.inter < draft.intra * 2.0
        {
            (draft.channels_min, draft.channels_max) = (best.channels, best.channels);
            draft.inter = faster;
        } else if draft.intra == best.intra && draft.intra < draft.inter * 2.0 {
            draft.intra = faster;
        } else {
            return false;
        }
        limits.speed -= 1;
        true
    }

    /// No graph at any speed: the GPUs in their order, hardly any width.
    fn fall_back(&mut self) -> Result<(), RefusedSearch> {
        for gpu in 0..self.gpus {
            self.best.gpus[gpu] = gpu as u16;
        }
        self.best.channels = 1;
        self.best.intra = 0.1;
        self.best.kind_intra = PathKind::Sys;
        let mut ends = Some(NO_PORTS);
        if self.profile.keeps_ports() {
            if self.nets.is_empty() {
                return Err(RefusedSearch::NoWay);
            }
            self.ports.prepare(self.view, None);
            let end = |gpu| Some(Port::At(*self.ports.of(None, Some(gpu)).first()?));
            let first = end(0);
            ends = first.and_then(|first| Some([first, end(self.gpus - 1)?]));
        }
        if let Some(ends) = ends {
            (self.best.inter, self.best.kind_inter) = (0.1, PathKind::Sys);
            self.best.ports[0] = ends;
        } else {
            (self.best.inter, self.best.kind_inter) = (0.0, PathKind::Dis);
            self.best.ports[0] = [Port::Id(u64::MAX); 2];
        }
        Ok(())
    }
}
