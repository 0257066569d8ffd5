//! What parts can take: the one place that says whether a need fits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use selvedge_family::grid::policy::Policy;
use selvedge_family::grid::room::Ground;
use selvedge_family::grid::site::{AXES, Site};
use selvedge_family::uses;
use selvedge_model::fabric::{Fabric, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{PartId, PoolId, PortId};
use selvedge_model::job::{Hold, Need, Partition, Place};
use selvedge_model::table::IdVec;

use crate::partition::{self, Chosen};
use crate::state::{Cut, PartState};

/// The largest that a pool on a grid could give at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    /// Free and sound parts.
    pub n_free: u32,
    /// Rows of the largest box of them.
    pub rows: u32,
    /// Columns of it.
    pub columns: u32,
    /// Its first row.
    pub row: u32,
    /// Its first column.
    pub column: u32,
    /// Parts of the largest connected set of them.
    pub connected: u32,
}

/// What never changes under one version of the plant: which parts of which pool take jobs.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The parts of each pool that jobs run on, in the order of their ids.
    pub pools: IdVec<PoolId, Vec<PartId>>,
    /// All seats of each part; none for a switch or a retired part.
    pub seats: IdVec<PartId, u64>,
    /// How the parts of each pool stand on a grid, if they do.
    pub sites: IdVec<PoolId, Option<Site>>,
    /// Whether the parts of each pool are joined through circuit switches, so that each of them
    /// needs all of its cables, whoever its neighbours are.
    pub switched: IdVec<PoolId, bool>,
    /// By which rule cells of a grid are chosen.
    pub policy: Policy,
}

impl Layout {
    /// The layout of a fabric.
    pub fn of(fabric: &Fabric) -> Self {
        let mut layout = Self::default();
        for _ in fabric.pools().ids() {
            layout.pools.push(Vec::new());
        }
        for (id, part) in fabric.parts().pairs() {
            let template = fabric.template_of(id);
            let takes_jobs = template.role == Role::Compute && !part.retired;
            layout.seats.push(if takes_jobs { template.all_seats() } else { 0 });
            if let (true, Some(pool)) = (takes_jobs, part.pool) {
                layout.pools[pool].push(id);
            }
        }
        for parts in layout.pools.iter() {
            layout.sites.push(selvedge_family::site_of(fabric, parts));
            let first = parts.first();
            layout.switched.push(first.is_some_and(|it| uses::is_switched(fabric, *it)));
        }
        layout
    }

    /// Whether the parts of `pool` stand on a grid.
    pub fn is_sited(&self, pool: PoolId) -> bool {
        self.sites[pool].is_some()
    }

    /// Whether all of a part of `pool` is sound, with its fibres to circuit switches: all parts of
    /// a pool have those, or none.  A cable to a neighbour concerns those who hold both.
    pub fn is_sound(&self, pool: PoolId, part: &PartState) -> bool {
        if self.switched[pool] { part.is_whole() } else { part.is_whole_inside() }
    }

    /// Seats of all parts together.
    pub fn n_seats(&self) -> u64 {
        self.seats.iter().map(|it| u64::from(it.count_ones())).sum()
    }
}

impl PartState {
    /// Whether nothing of the part, its inner links and its outer links is out of use.
    pub fn is_whole(&self) -> bool {
        self.out == 0 && self.links_out.is_empty() && self.outer_out == 0
    }

    /// Whether nothing of the part and its inner links is out of use; what lies beyond may be.
    pub fn is_whole_inside(&self) -> bool {
        self.out == 0 && self.links_out.is_empty()
    }

    /// Whether something that a job on `place`, which has `hold` of this part, uses is out of use.
    pub fn hits(&self, fabric: &Fabric, hold: Hold, place: &Place) -> bool {
        if !self.is_sound(hold.seats) {
            return true;
        }
        // Fibres to circuit switches are counted, all other cables are listed.
        let is_switched = self.cut.len() < usize::from(self.outer_out)
            && uses::is_switched(fabric, hold.part)
            && hold.seats == fabric.template_of(hold.part).all_seats();
        is_switched || self.cut.iter().any(|it| uses::uses_cable(fabric, place, it.port))
    }

    /// Whether a job could use exactly these seats and the links among them, held or not.
    pub fn is_sound(&self, mask: u64) -> bool {
        self.out & mask == 0 && self.links_out.iter().all(|ends| ends & mask != *ends)
    }
}

/// The parts with what is held on them, real or supposed.
#[derive(Clone, Debug)]
pub struct Capacity<'a> {
    layout: &'a Layout,
    parts: &'a IdVec<PartId, PartState>,
    held: Vec<u64>,
}

impl<'a> Capacity<'a> {
    /// What is held now.
    pub fn now(layout: &'a Layout, parts: &'a IdVec<PartId, PartState>) -> Self {
        Self { layout, parts, held: parts.iter().map(|it| it.held).collect() }
    }

    /// Supposes that nobody holds anything.
    pub fn idle(layout: &'a Layout, parts: &'a IdVec<PartId, PartState>) -> Self {
        Self { layout, parts, held: vec![0; parts.len()] }
    }

    /// Supposes that these holds are taken.
    pub fn take(&mut self, holds: &[Hold]) {
        for hold in holds {
            debug_assert!(self.held[hold.part.idx()] & hold.seats == 0, "{hold:?} is held");
            self.held[hold.part.idx()] |= hold.seats;
        }
    }

    /// Keeps a hold for somebody, whoever is on it now.
    pub fn reserve(&mut self, hold: Hold) {
        self.held[hold.part.idx()] |= hold.seats;
    }

    /// Supposes that these holds are given back.
    pub fn give(&mut self, holds: &[Hold]) {
        for hold in holds {
            self.held[hold.part.idx()] &= !hold.seats;
        }
    }

    /// What is held of `part`.
    pub fn held(&self, part: PartId) -> u64 {
        self.held[part.idx()]
    }

    /// Whether all of `part` is free and sound.
    pub fn is_free(&self, pool: PoolId, part: PartId) -> bool {
        self.held[part.idx()] == 0 && self.layout.is_sound(pool, &self.parts[part])
    }

    /// How many parts of `pool` are free and sound, each by itself.
    pub fn n_free(&self, pool: PoolId) -> usize {
        let parts = self.layout.pools[pool].iter();
        parts.filter(|it| self.is_free(pool, **it)).count()
    }

    /// Free and sound parts of `pool` out of which a job may have any `n_parts`: no cable that it
    /// would use is out of use.
    pub fn free_parts(&self, pool: PoolId, n_parts: usize) -> Vec<PartId> {
        let parts = self.layout.pools[pool].iter().copied();
        let free = parts.filter(|&it| self.is_free(pool, it)).collect();
        self.together(pool, n_parts, free, &[])
    }

    /// What a job keeps of the parts that it holds, where any would do, and what there is in place
    /// of the others.
    pub fn spares(&self, place: &Place) -> (Vec<PartId>, Vec<PartId>) {
        let (pool, n_parts) = (place.pool, place.holds.len());
        let is_there = |it: &&Hold| self.layout.seats[it.part] == it.seats;
        let own = place.holds.iter().filter(is_there).map(|it| it.part);
        let own = own.filter(|&it| self.layout.is_sound(pool, &self.parts[it])).collect();
        let kept = self.together(pool, n_parts, own, &[]);
        let parts = self.layout.pools[pool].iter().copied();
        let free = parts.filter(|&it| self.is_free(pool, it)).collect();
        let spares = self.together(pool, n_parts, free, &kept);
        (kept, spares)
    }

    /// Those of `parts` that go together, and with those `kept`, in a job of `n_parts`.
    ///
    /// Of two with a dead cable between them one is left out: the one with more such neighbours, so
    /// that few are.  (The fewest are a vertex cover of the dead cables; where no two of those
    /// meet, this is it.)
    fn together(
        &self,
        pool: PoolId,
        n_parts: usize,
        mut parts: Vec<PartId>,
        kept: &[PartId],
    ) -> Vec<PartId> {
        if self.layout.switched[pool] {
            return parts;
        }
        let cut = |part: PartId| self.parts[part].cut.iter().map(|it| it.to);
        if n_parts <= 1 {
            // One alone misses no cable: those that could go with others are left to them.
            parts.sort_by_key(|it| std::cmp::Reverse(cut(*it).count()));
            return parts;
        }
        // What takes no jobs is a switch, between all that are on it.
        let is_alone = |to: PartId| self.layout.seats[to] == 0 || kept.contains(&to);
        parts.retain(|it| !cut(*it).any(is_alone));
        loop {
            let n_apart = |part: PartId| {
                let far: BTreeSet<PartId> = cut(part).filter(|it| parts.contains(it)).collect();
                far.len()
            };
            let worst = parts.iter().map(|&it| (n_apart(it), it)).max();
            let Some((_, part)) = worst.filter(|it| it.0 != 0) else { return parts };
            parts.retain(|it| *it != part);
        }
    }

    /// How many may be chosen from once `holds` were given back, where `n_before` could before.
    pub fn n_free_with(
        &self,
        pool: PoolId,
        n_parts: usize,
        n_before: usize,
        holds: &[Hold],
    ) -> usize {
        match self.layout.switched[pool] {
            true => n_before + holds.iter().filter(|it| self.is_free(pool, it.part)).count(),
            false => self.free_parts(pool, n_parts).len(),
        }
    }

    /// Whether all of `part` is free and sound, whatever is with the cables that leave it.
    pub fn is_free_inside(&self, part: PartId) -> bool {
        self.held[part.idx()] == 0 && self.parts[part].is_whole_inside()
    }

    /// The cells of `pool`'s grid without the cables that are out of use: the one account of what
    /// is joined, for whoever places, explains, draws or studies.
    pub(crate) fn ground(&self, pool: PoolId) -> Option<Cow<'a, Ground<AXES>>> {
        let site = self.layout.sites[pool].as_ref()?;
        let mut ground = Cow::Borrowed(site.ground());
        for &part in &self.layout.pools[pool] {
            for cut in &self.parts[part].cut {
                // Each cable is met from both of its ends, and leads forward from one.
                if let Some(lane) = site.lane_at(part, cut.port) {
                    ground.to_mut().wear(lane);
                }
            }
        }
        Some(ground)
    }

    /// Both ends of each cable between `parts` that is out of use, ascending.
    pub(crate) fn cut_within(&self, parts: &[PartId]) -> Vec<PortId> {
        let cuts = parts.iter().flat_map(|it| &self.parts[*it].cut);
        let mut ends: Vec<PortId> =
            cuts.filter(|it| parts.contains(&it.to)).map(|it| it.port).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Whether `need` fits into `pool`.
    pub fn fits(&self, pool: PoolId, need: &Need) -> bool {
        match need {
            Need::Whole { n_parts } => {
                let n_parts = *n_parts as usize;
                n_parts <= self.free_parts(pool, n_parts).len()
            }
            Need::Within { .. } => self.within(pool, need).is_some(),
            Need::Partition(wanted) => self.partition(pool, wanted).is_some(),
        }
    }

    /// The best partition of `pool` for what is `wanted`, if one is good enough.
    pub fn partition(&self, pool: PoolId, wanted: &Partition) -> Option<Chosen> {
        self.partition_of(pool, wanted, |_| true)
    }

    /// The same, of parts that `may_be` taken.
    pub fn partition_of(
        &self,
        pool: PoolId,
        wanted: &Partition,
        may_be: impl Fn(PartId) -> bool,
    ) -> Option<Chosen> {
        let site = self.layout.sites[pool].as_ref()?;
        let ground = self.ground(pool)?;
        let is_free = |part: PartId| self.is_free_inside(part) && may_be(part);
        let is_sound = |part: PartId| self.parts[part].is_whole_inside();
        partition::choose(site, &ground, is_free, is_sound, wanted, self.layout.policy)
    }

    /// The free and sound cells of `pool`, if it has a grid: the largest box and the largest
    /// connected set of them, in parts.
    pub fn largest(&self, pool: PoolId) -> Option<Largest> {
        let site = self.layout.sites[pool].as_ref()?;
        let ground = self.ground(pool)?;
        let room = site.room(&ground, |part| self.is_free_inside(part));
        let found = room.largest_box();
        let [rows, columns] = found.map_or([0; 2], |it| site.rows_and_columns(it.sides));
        let [row, column] = found.map_or([0; 2], |it| site.rows_and_columns(it.origin));
        let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        Some(Largest {
            n_free: number(room.n_free()),
            rows: number(rows),
            columns: number(columns),
            row: number(row),
            column: number(column),
            connected: number(room.largest_piece()),
        })
    }

    /// Whether `pool` could ever hold `need`, were everything free and sound.
    pub fn could_hold(layout: &Layout, pool: PoolId, need: &Need) -> bool {
        match need {
            Need::Whole { n_parts } => *n_parts as usize <= layout.pools[pool].len(),
            Need::Within { masks } => layout.pools[pool]
                .iter()
                .any(|&part| masks.iter().any(|mask| layout.seats[part] & mask == *mask)),
            Need::Partition(wanted) => layout.sites[pool].as_ref().is_some_and(|site| {
                let all = |_: PartId| true;
                partition::choose(site, site.ground(), all, all, wanted, layout.policy).is_some()
            }),
        }
    }

    /// The best place for a need within one part: on the part that is fullest already, so that
    /// whole parts stay whole; there, the first mask that fits.
    pub fn within(&self, pool: PoolId, need: &Need) -> Option<Hold> {
        self.within_those(pool, need, |_| true)
    }

    /// The same, on parts that `may_be` taken.
    pub fn within_those(
        &self,
        pool: PoolId,
        need: &Need,
        may_be: impl Fn(PartId) -> bool,
    ) -> Option<Hold> {
        let Need::Within { masks } = need else { return None };
        let mut best: Option<(u32, Hold)> = None;
        for &part in &self.layout.pools[pool] {
            let room = self.free_seats(part);
            if room < masks[0].count_ones() || best.is_some_and(|(least, _)| least <= room) {
                continue;
            }
            if !may_be(part) {
                continue;
            }
            if let Some(seats) = self.first_mask(part, masks) {
                best = Some((room, Hold { part, seats }));
            }
        }
        best.map(|(_, hold)| hold)
    }

    /// The first of `masks` that fits on `part`.
    pub fn first_mask(&self, part: PartId, masks: &[u64]) -> Option<u64> {
        let state = &self.parts[part];
        let taken = self.held[part.idx()] | !self.layout.seats[part];
        masks.iter().copied().find(|mask| taken & mask == 0 && state.is_sound(*mask))
    }

    /// How many seats of `part` are neither held nor out of use.
    pub fn free_seats(&self, part: PartId) -> u32 {
        let taken = self.held[part.idx()] | self.parts[part].out;
        (self.layout.seats[part] & !taken).count_ones()
    }
}

/// The parts that `target` concerns, as part states see it.
pub fn parts_of(fabric: &Fabric, target: Target) -> Vec<PartId> {
    match target {
        Target::Part(part) if fabric.template_of(part).role == Role::CircuitSwitch => {
            let ports = fabric.ports_of(part);
            let mut parts: Vec<PartId> = ports
                .filter_map(|port| fabric.peer_of(port))
                .map(|port| fabric.part_of_port(port))
                .collect();
            parts.sort_unstable();
            parts.dedup();
            parts
        }
        Target::Part(part) => vec![part],
        Target::Node(node) => vec![fabric.part_of_node(node)],
        Target::Port(port) => {
            let here = fabric.part_of_port(port);
            if fabric.template_of(here).role == Role::CircuitSwitch {
                let peer = fabric.peer_of(port).map(|peer| fabric.part_of_port(peer));
                return peer.into_iter().collect();
            }
            vec![here]
        }
        Target::Link(link) => {
            let link = fabric.link(link);
            let mut parts: Vec<PartId> = [link.source, link.target]
                .into_iter()
                .map(|port| fabric.part_of_port(port))
                .filter(|&part| fabric.template_of(part).role == Role::Compute)
                .collect();
            parts.dedup();
            parts
        }
    }
}

/// What an outage of `target` takes out, part by part.
pub fn outage(fabric: &Fabric, target: Target) -> BTreeMap<PartId, PartState> {
    let mut out: BTreeMap<PartId, PartState> = BTreeMap::new();
    match target {
        Target::Part(to) if fabric.template_of(to).role != Role::Compute => {
            let is_listed = fabric.template_of(to).role == Role::PacketSwitch;
            for port in fabric.ports_of(to).filter_map(|port| fabric.peer_of(port)) {
                let part = fabric.part_of_port(port);
                if fabric.template_of(part).role != Role::Compute {
                    continue;
                }
                let state = out.entry(part).or_default();
                state.outer_out += 1;
                state.cut.extend(is_listed.then_some(Cut { port, to }));
            }
        }
        Target::Part(part) => {
            out.entry(part).or_default().out = fabric.template_of(part).all_seats();
        }
        Target::Node(node) => {
            let (part, local) = fabric.node_local(node);
            let template = fabric.template_of(part);
            if template.role != Role::Compute {
                // What a switch is made of takes the switch along.
                return self::outage(fabric, Target::Part(part));
            }
            // A CPU has no seats of its own: what it serves goes with its machine.
            let parent = template.nodes()[local].parent;
            out.entry(part).or_default().out = match (template.seats_under(local), parent) {
                (0, Some(parent)) => template.seats_under(parent as usize),
                (seats, _) => seats,
            };
        }
        Target::Port(port) => {
            let link = fabric.link_from(port);
            return link.map(|link| outage(fabric, Target::Link(link))).unwrap_or_default();
        }
        Target::Link(link) => match fabric.link_local(link) {
            Some((part, local)) => {
                let ends = fabric.template_of(part).seats_of_link(local);
                out.entry(part).or_default().links_out.push(ends);
            }
            None => {
                let (a, b) = (fabric.link(link).source, fabric.link(link).target);
                for (port, far) in [(a, b), (b, a)] {
                    let (part, to) = (fabric.part_of_port(port), fabric.part_of_port(far));
                    if fabric.template_of(part).role != Role::Compute {
                        continue;
                    }
                    let is_listed = fabric.template_of(to).role != Role::CircuitSwitch;
                    let state = out.entry(part).or_default();
                    state.outer_out += 1;
                    state.cut.extend(is_listed.then_some(Cut { port, to }));
                }
            }
        },
    }
    out
}

impl PartState {
    /// Adds an outage to what is out already; what is held stays as it is.
    pub fn worsen(&mut self, outage: &PartState) {
        self.out |= outage.out;
        self.links_out.extend_from_slice(&outage.links_out);
        self.outer_out += outage.outer_out;
        self.cut.extend_from_slice(&outage.cut);
    }
}
