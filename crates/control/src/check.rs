//! Looks at every plan before it may become current, and at the whole state on demand.
//!
//! Shares no code with the planners: it works from the fabric's cables and counts, not from the
//! family's wiring or the scheduler's capacity.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use selvedge_model::fabric::{Fabric, Role, Side};
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, NodeId, PartId, PortId};
use selvedge_model::job::{Demand, Hold, Place};
use selvedge_model::unit::Span;

use crate::planted::Defect;
use crate::schedule::Plan;
use crate::schedule::swap::Swap;
use crate::state::{Blueprint, Cut, JobState, Moves, State};

/// A rule that a plan or the state breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant's text names its fields")]
pub enum Violation {
    /// Two jobs on one seat.
    #[error("{a} and {b} both hold seats {seats:#x} of {part}")]
    SeatHeldTwice { part: PartId, seats: u64, a: JobId, b: JobId },
    /// A hold on nothing, or on more than there is.
    #[error("{job} holds seats of {part} beyond those there are")]
    NoSuchSeats { job: JobId, part: PartId },
    /// The part's account differs from the jobs'.
    #[error("{part} is booked with {booked:#x}, its jobs hold {held:#x}")]
    BookedWrong { part: PartId, booked: u64, held: u64 },
    /// A start on something out of use.
    #[error("{job} would start on {part}, which is out of use")]
    PartOut { job: JobId, part: PartId },
    /// A move of a job that does not run, moves already, or would get another size.
    #[error("{job} cannot be moved as planned")]
    NotMovable { job: JobId },
    /// Moves that cost an owner more than its share within the window.
    #[error("{owner} would lose {lost} of chip time to moves, where its share is {may}")]
    ShareOverdrawn { owner: String, lost: Span, may: Span },
    /// A blueprint touches a port of a part that its job does not hold and that is not free.
    #[error("a blueprint for {job} touches {port} of {holder}'s {part}")]
    PortOfAnother { job: JobId, port: PortId, part: PartId, holder: JobId },
    /// A pair that is no north with a south port.
    #[error(
        "a blueprint for {job} joins ports {north} and {south} of {switch}, \
         which are not a north and a south port"
    )]
    NotNorthSouth { job: JobId, switch: PartId, north: u16, south: u16 },
    /// A port in two pairs.
    #[error("a blueprint for {job} leaves port {port} of {switch} in two pairs")]
    PortTwice { job: JobId, switch: PartId, port: u16 },
    /// A job's outer end that no mirror joins to another end of the same job.
    #[error("{job}: {end} leads to {seen:?}, not to a port of the job")]
    EndLoose { job: JobId, end: PortId, seen: Option<PortId> },
    /// A job's dimension does not close.
    #[error("{job}: following {end} does not come back after {n} parts")]
    RingBroken { job: JobId, end: PortId, n: u32 },
    /// A table that sends a chip's data over no link of the job.
    #[error("{job}: the table of {from} sends what is for {to} out of the partition")]
    TableLeaves { job: JobId, from: NodeId, to: NodeId },
    /// A table by which data never arrives.
    #[error("{job}: what {from} sends to {to} never arrives")]
    TableLost { job: JobId, from: NodeId, to: NodeId },
    /// Links that may wait for one another in a ring.
    #[error("{job}: {n} links may wait for one another for ever")]
    TablesLock { job: JobId, n: u32 },
    /// A generation that is not newer than the last.
    #[error("a blueprint for {job} carries an old generation")]
    OldGeneration { job: JobId },
}

mod forward;

pub use forward::{Claim, tables};

/// Holds the starts of a schedule plan against what is held and out of use.
pub fn starts(fabric: &Fabric, state: &State, plan: &Plan) -> Vec<Violation> {
    taken(fabric, state, plan.starts.iter().map(|it| (it.job, &it.place)))
}

/// Holds the places on which jobs go on after a loss against what is held and out of use.
pub fn swaps(fabric: &Fabric, state: &State, swaps: &[Swap]) -> Vec<Violation> {
    let places = swaps.iter().filter_map(|it| Some((it.job, it.place.as_ref()?)));
    taken(fabric, state, places)
}

/// Holds moves against what is held and out of use, and against what their owners may lose: those
/// who move run, and go where nobody is, they themselves included.
pub fn moves(fabric: &Fabric, state: &State, moves: &Moves) -> Vec<Violation> {
    let mut found = taken(fabric, state, moves.moves.iter().map(|(job, place)| (*job, place)));
    for (job, place) in &moves.moves {
        let job = *job;
        let known = &state.jobs[job];
        let n_before = known.place.as_ref().map_or(0, Place::n_seats);
        let runs = matches!(known.state, JobState::Running { .. }) && known.next.is_none();
        if !runs || place.n_seats() != n_before {
            found.push(Violation::NotMovable { job });
        }
        for hold in place.holds.iter().filter(|it| state.parts[it.part].held & it.seats != 0) {
            found.push(Violation::SeatHeldTwice {
                part: hold.part,
                seats: hold.seats,
                a: job,
                b: job,
            });
        }
    }
    found.extend(shares(state, moves));
    found
}

/// No owner loses more within the window than its share of what it runs.
fn shares(state: &State, moves: &Moves) -> Vec<Violation> {
    let settings = &state.settings;
    let each = settings.notice + settings.grace + settings.setup_max;
    let mut lost: BTreeMap<&str, Span> = BTreeMap::new();
    for (job, place) in &moves.moves {
        let owner = state.jobs[*job].spec.owner.as_str();
        *lost.entry(owner).or_default() += each.times(u64::from(place.n_seats()));
    }
    let mut found = Vec::new();
    for (owner, mut lost) in lost {
        for (at, before) in state.moves.get(owner).into_iter().flatten() {
            if state.now.since(*at) <= settings.moves_window {
                lost += *before;
            }
        }
        let of_owner = state.active.iter().map(|it| &state.jobs[*it]);
        let of_owner = of_owner.filter(|it| it.spec.owner == owner);
        let n_chips: u64 =
            of_owner.filter_map(|it| it.place.as_ref()).map(|it| u64::from(it.n_seats())).sum();
        let runs = u128::from(settings.moves_window.times(n_chips).as_nanos());
        let may = runs * u128::from(settings.moves_share.parts()) / 1_000_000;
        let may = Span::nanos(u64::try_from(may).unwrap_or(u64::MAX));
        if may < lost && !settings.has(Defect::ShareIgnored) {
            found.push(Violation::ShareOverdrawn { owner: owner.to_owned(), lost, may });
        }
    }
    found
}

/// Holds places that jobs are to take together against what is held and out of use.
fn taken<'a>(
    fabric: &Fabric,
    state: &State,
    places: impl Iterator<Item = (JobId, &'a Place)>,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut taken: BTreeMap<PartId, Vec<(JobId, u64)>> = BTreeMap::new();
    for (job, place) in places {
        // Whoever takes a part whole uses its outer links too: those through circuit switches if it
        // is joined by a shape, those to packet switches if it has somebody to reach.
        let whole = place.holds.iter().all(|hold| is_all(fabric, hold));
        let is_shaped = matches!(state.jobs[job].spec.demand, Demand::Shape(_));
        let is_alone = place.holds.len() == 1;
        for hold in &place.holds {
            let part = hold.part;
            let known = &state.parts[part];
            if hold.seats == 0 || fabric.template_of(part).all_seats() & hold.seats != hold.seats {
                found.push(Violation::NoSuchSeats { job, part });
            }
            let links_out = known.links_out.iter().any(|ends| hold.seats & ends == *ends);
            // A cable that leads directly to a part concerns only those who hold both and use it.
            let is_used = |it: &Cut| match fabric.template_of(it.to).role {
                Role::PacketSwitch => !is_alone,
                _ => place.has_part(it.to) && !place.is_without(it.port),
            };
            let through = is_shaped && known.cut.len() < usize::from(known.outer_out);
            let outer_out = whole && (through || known.cut.iter().any(is_used));
            if known.out & hold.seats != 0 || links_out || outer_out || fabric.part(part).retired {
                found.push(Violation::PartOut { job, part });
            }
            let before = taken.entry(part).or_insert_with(|| holders(state, part));
            for (other, seats) in before.iter().filter(|it| it.0 != job) {
                let both = seats & hold.seats;
                if both != 0 {
                    found.push(Violation::SeatHeldTwice { part, seats: both, a: *other, b: job });
                }
            }
            before.push((job, hold.seats));
        }
    }
    found
}

fn is_all(fabric: &Fabric, hold: &Hold) -> bool {
    hold.seats == fabric.template_of(hold.part).all_seats()
}

fn holders(state: &State, part: PartId) -> Vec<(JobId, u64)> {
    let mut found = Vec::new();
    if state.parts[part].held == 0 {
        return found;
    }
    for &job in &state.active {
        for hold in places(state, job).flat_map(|it| &it.holds).filter(|it| it.part == part) {
            found.push((job, hold.seats));
        }
    }
    found
}

fn places(state: &State, job: JobId) -> impl Iterator<Item = &Place> {
    let job = &state.jobs[job];
    job.place.iter().chain(job.next.iter())
}

/// Holds a blueprint against the fabric and the other jobs.
pub fn blueprint(fabric: &Fabric, state: &State, plan: &Blueprint) -> Vec<Violation> {
    let job = plan.job;
    let mut found = Vec::new();
    if plan.generation <= state.generation {
        found.push(Violation::OldGeneration { job });
    }
    // Who holds each part, once for the whole plan.
    let mut holder: BTreeMap<PartId, JobId> = BTreeMap::new();
    for &other in &state.active {
        for hold in places(state, other).flat_map(|it| &it.holds) {
            if is_all(fabric, hold) {
                holder.insert(hold.part, other);
            }
        }
    }
    for set in &plan.sets {
        let switch = set.switch;
        let ports = fabric.template_of(switch).ports();
        let mut after: BTreeMap<u16, u16> = state.switches[&switch].pairs.clone();
        for pair in set.remove.iter().chain(&set.add) {
            let side = |port: u16| ports.get(port as usize).map(|it| it.side);
            let sides = (side(pair.north), side(pair.south));
            if sides != (Some(Side::North), Some(Side::South)) {
                let (north, south) = (pair.north, pair.south);
                found.push(Violation::NotNorthSouth { job, switch, north, south });
                continue;
            }
            let ends = [pair.north, pair.south].map(|local| {
                let port = fabric.port_at(switch, local as usize);
                let part = fabric.part_of_port(fabric.peer_of(port)?);
                Some((port, part, *holder.get(&part)?))
            });
            // A pair that an end of the job's own is in joins nobody else: the other end may be
            // another job's by now, and the pair is left from before.
            let is_left_over = set.remove.contains(pair)
                && ends.iter().flatten().any(|(_, _, holder)| *holder == job);
            for (port, part, holder) in ends.into_iter().flatten() {
                if holder != job && !is_left_over {
                    found.push(Violation::PortOfAnother { job, port, part, holder });
                }
            }
        }
        for pair in &set.remove {
            after.remove(&pair.north);
        }
        for pair in &set.add {
            if after.insert(pair.north, pair.south).is_some() {
                found.push(Violation::PortTwice { job, switch, port: pair.north });
            }
        }
        let souths: BTreeSet<u16> = after.values().copied().collect();
        if souths.len() != after.len() {
            let port = set.add.first().map_or(0, |it| it.south);
            found.push(Violation::PortTwice { job, switch, port });
        }
    }
    found
}

/// Follows the mirrors from every outer end of a job's parts: each must lead to the opposite
/// face of a part of the same job, and going on in one direction must come back to the start.
/// Knows of shapes only that they are closed; the family's own discovery knows the rest.
pub fn wiring(fabric: &Fabric, state: &State, job: JobId, place: &Place) -> Vec<Violation> {
    let mut found = Vec::new();
    // The job's ends on each switch: those at north ports by part, all others.
    let mut norths: BTreeMap<(PartId, PartId), PortId> = BTreeMap::new();
    let mut souths: BTreeSet<PortId> = BTreeSet::new();
    for hold in &place.holds {
        for end in fabric.ports_of(hold.part) {
            let Some(at) = switch_port(fabric, end) else { continue };
            let (switch, local) = fabric.port_local(at);
            if fabric.template_of(switch).ports()[local].side == Side::North {
                norths.insert((switch, hold.part), end);
            } else {
                souths.insert(end);
            }
        }
    }
    // From a part's north end to the part that light arrives at, on the same switch.
    let mut next: BTreeMap<(PartId, PartId), PartId> = BTreeMap::new();
    for (&(switch, part), &end) in &norths {
        let seen = through(fabric, state, end);
        match seen.filter(|it| souths.remove(it)) {
            Some(there) => drop(next.insert((switch, part), fabric.part_of_port(there))),
            None => found.push(Violation::EndLoose { job, end, seen }),
        }
    }
    found.extend(souths.iter().map(|&end| Violation::EndLoose { job, end, seen: None }));
    for (&(switch, start), &end) in &norths {
        let mut at = start;
        let closes = place.holds.iter().any(|_| {
            at = next.get(&(switch, at)).copied().unwrap_or(at);
            at == start
        });
        if !closes {
            let n = u32::try_from(place.holds.len()).unwrap_or(u32::MAX);
            found.push(Violation::RingBroken { job, end, n });
        }
    }
    found
}

/// The switch port that a part's outer end is cabled to.
fn switch_port(fabric: &Fabric, end: PortId) -> Option<PortId> {
    let cable = fabric.cable_at(end)?;
    let far = if cable.a == end { cable.b } else { cable.a };
    let is_switch = fabric.template_of(fabric.part_of_port(far)).role == Role::CircuitSwitch;
    is_switch.then_some(far)
}

/// Where light that leaves a part at `end`, which is cabled to a north port, comes out.
fn through(fabric: &Fabric, state: &State, end: PortId) -> Option<PortId> {
    let (switch, north) = fabric.port_local(switch_port(fabric, end)?);
    let pairs = &state.switches.get(&switch)?.pairs;
    let south = *pairs.get(&u16::try_from(north).ok()?)?;
    let cable = fabric.cable_at(fabric.port_at(switch, usize::from(south)))?;
    let is_on = |port: PortId| fabric.part_of_port(port) == switch;
    Some(if is_on(cable.a) { cable.b } else { cable.a })
}

/// Holds the whole state against its invariants.
pub fn state(fabric: &Fabric, state: &State) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut held: BTreeMap<PartId, Vec<(JobId, u64)>> = BTreeMap::new();
    for &job in &state.active {
        for hold in places(state, job).flat_map(|it| &it.holds) {
            let part = hold.part;
            let before = held.entry(part).or_default();
            for (other, seats) in before.iter().filter(|it| it.0 != job) {
                let both = seats & hold.seats;
                if both != 0 {
                    found.push(Violation::SeatHeldTwice { part, seats: both, a: *other, b: job });
                }
            }
            before.push((job, hold.seats));
        }
    }
    for (part, known) in state.parts.pairs() {
        let of_jobs = held.get(&part).map(|it| it.iter().fold(0, |acc, (_, seats)| acc | seats));
        let of_jobs = of_jobs.unwrap_or(0);
        if of_jobs != known.held {
            found.push(Violation::BookedWrong { part, booked: known.held, held: of_jobs });
        }
    }
    let diagnosed = diagnosed(fabric, state);
    for &job in &state.active {
        let known = &state.jobs[job];
        if let (JobState::Running { .. }, Some(place), Some(_)) =
            (&known.state, &known.place, known.generation)
        {
            let broken = wiring(fabric, state, job, place).into_iter();
            found.extend(broken.filter(|it| match it {
                Violation::EndLoose { end, .. } | Violation::RingBroken { end, .. } => {
                    let at = switch_port(fabric, *end).map(|it| fabric.part_of_port(it));
                    at.is_none_or(|it| !diagnosed.contains(&it))
                }
                _ => true,
            }));
        }
    }
    found
}

/// The switches that an open case is about, or about a port or fibre of: mirrors that somebody
/// else has turned there are known, and the job is about to leave or left to a person.
fn diagnosed(fabric: &Fabric, state: &State) -> BTreeSet<PartId> {
    let switch_of = |target: &Target| match *target {
        Target::Part(part) => vec![part],
        Target::Port(port) => vec![fabric.part_of_port(port)],
        Target::Link(link) => {
            let link = fabric.link(link);
            vec![fabric.part_of_port(link.source), fabric.part_of_port(link.target)]
        }
        Target::Node(_) => Vec::new(),
    };
    state.open_cases.keys().flat_map(switch_of).collect()
}
