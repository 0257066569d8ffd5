//! What people do while all may go wrong: each has something in mind, and asks for it as the
//! state then stands.  Some of it is refused, which is part of the test.

use std::collections::BTreeSet;

use selvedge_control::input::{Ask, JobOrder};
use selvedge_control::note::{CaseState, Owner};
use selvedge_control::settings::Level;
use selvedge_control::state::JobState;
use selvedge_model::fabric::{Role, Side};
use selvedge_model::fault::{Severity, Target};
use selvedge_model::id::{CaseId, JobId, PartId, PortId};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::Family;
use selvedge_model::unit::{Moment, Span};

use crate::crew::CREW;
use crate::dice::Dice;
use crate::judge::draw::{Kind, Size};
use crate::world::World;

/// Those who ask.
const NAMES: [&str; 3] = ["operator", "ada", "bo"];

/// What somebody has in mind.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// To change a job's fate.
    Job { job: JobId, order: JobOrder },
    /// To start some running job anew.
    Requeue,
    /// To take something out of use.
    Drain { path: String },
    /// To take a drain back, one's own or another's.
    Undrain { path: String },
    /// To re-patch the fibre on some port of some switch.
    MovePort,
    /// To bring a cube in, or to take one away.
    Redeploy,
    /// To work on some things in waves.
    Maintain,
    /// To look whether moves are proposed, and to accept them.
    AcceptMoves,
    /// To repair something oneself.
    Take,
    /// To say that one's repairs are done.
    Finish,
    /// To change what may be done without being asked.
    SetLevel { level: Level },
}

/// A wish with its moment and its owner.
pub(super) type Wished = (Moment, &'static str, Wish);

/// How many attempts somebody makes at something that is busy.
const TRIES: usize = 6;

/// What people will want until `end`.
pub(super) fn draw(seed: u64, size: &Size) -> Vec<Wished> {
    let (n_jobs, reviews) = (size.n_jobs, size.reviews);
    let n_cubes = size.n_cubes * size.n_pods;
    let dice = &mut Dice::new(seed, "people");
    let room = size.end.since(Moment::START);
    let mut wishes = Vec::new();
    let mut add = |dice: &mut Dice, wish| {
        let at = Moment::START + dice.span(Span::secs(1), room);
        wishes.push((at, NAMES[dice.index(NAMES.len())], wish));
    };
    for _ in 0..n_jobs / 3 {
        let orders = [JobOrder::Cancel, JobOrder::Hold, JobOrder::Release, JobOrder::Requeue];
        let order = orders[dice.index(orders.len())];
        let job = JobId::at(dice.index(n_jobs));
        add(dice, Wish::Job { job, order });
        if dice.below(4) == 0 {
            add(dice, Wish::Requeue);
        }
    }
    for _ in 0..dice.index(10) {
        let path = some_path(dice, size.kind, n_cubes);
        add(dice, Wish::Drain { path: path.clone() });
        add(dice, Wish::Undrain { path });
    }
    for _ in 0..dice.index(5) {
        add(dice, Wish::MovePort);
    }
    for _ in 0..dice.index(4) {
        add(dice, Wish::Redeploy);
    }
    for _ in 0..dice.index(4) {
        add(dice, Wish::Maintain);
    }
    for _ in 0..dice.index(8) {
        add(dice, Wish::Take);
    }
    if !reviews && dice.below(2) == 0 {
        for _ in 0..dice.index(5) {
            let levels = [Level::Observe, Level::Quarantine, Level::Drain, Level::Repair];
            let level = levels[dice.index(levels.len())];
            add(dice, Wish::SetLevel { level });
        }
    }
    let every = Span::mins(10 + dice.below(50));
    for nth in 1..room.div(every) {
        let at = Moment::START + every.times(nth);
        wishes.push((at, NAMES[dice.index(NAMES.len())], Wish::Finish));
    }
    let every = if reviews { Span::secs(20 + dice.below(200)) } else { Span::mins(20) };
    for nth in 1..room.div(every) {
        wishes.push((Moment::START + every.times(nth), NAMES[0], Wish::AcceptMoves));
    }
    wishes.sort_by_key(|it| it.0);
    wishes
}

fn some_path(dice: &mut Dice, kind: Kind, n_cubes: usize) -> String {
    let cube = dice.index(n_cubes);
    let board = |[a, b]: [usize; 2]| format!("board{}.{}", cube / b % a, cube % b);
    let nth = dice.below(4);
    match (kind, nth) {
        (Kind::Cubes, 0) => format!("cube{cube}"),
        (Kind::Cubes, 1) => format!("cube{cube}/m{:02}", dice.below(16)),
        (Kind::Cubes, 2) => {
            format!("cube{cube}/chip{}.{}.{}", dice.below(4), dice.below(4), dice.below(4))
        }
        (Kind::Cubes, _) => format!("cube{cube}/x/out/{}", dice.below(16)),
        (Kind::Groups(sides) | Kind::Boards(sides), 0) => board(sides),
        (Kind::Groups(sides) | Kind::Boards(sides), 1) => format!("{}/m0", board(sides)),
        (Kind::Groups(sides), 2) => format!("{}/B", board(sides)),
        (Kind::Groups(sides), _) => format!("{}/C/east", board(sides)),
        (Kind::Boards(sides), 2) => format!("{}/chip1.0", board(sides)),
        (Kind::Boards(sides), _) => format!("{}/chip1.0/+x", board(sides)),
        (Kind::Hosts | Kind::Toy, 0) => format!("host{cube}"),
        (Kind::Hosts | Kind::Toy, 1) => format!("host{cube}/m0"),
        (Kind::Hosts | Kind::Toy, 2) => format!("host{cube}/gpu1"),
        (Kind::Hosts, _) => format!("host{cube}/nic{}/port", cube % 3),
        (Kind::Toy, _) => format!("host{cube}/m0/port"),
    }
}

/// Somebody asks for what was in mind.
pub(super) fn ask(world: &mut World, dice: &mut Dice, by: &str, wish: Wish) {
    match wish {
        Wish::Job { job, order } => drop(world.ask(by, Ask::Job { job, order })),
        Wish::Requeue => {
            let active: Vec<JobId> = world.core().state().active.iter().copied().collect();
            if !active.is_empty() {
                let job = active[dice.index(active.len())];
                world.ask(by, Ask::Job { job, order: JobOrder::Requeue });
            }
        }
        Wish::Drain { path } => {
            // It may have been taken out of the plant.
            if let Some(target) = world.core().fabric().find(&path) {
                world.ask(by, Ask::Drain { target, why: "by hand".to_owned() });
            }
        }
        Wish::Undrain { path } => undrain(world, by, &path),
        Wish::MovePort => move_port(world, dice, by),
        Wish::Redeploy => redeploy(world, dice, by),
        Wish::Maintain => maintain(world, dice, by),
        Wish::AcceptMoves => {
            if let Some(plan) = world.core().state().proposal.as_ref().map(|it| it.id) {
                world.ask(by, Ask::Defragment { plan });
            }
        }
        Wish::Take => take(world, dice, by),
        Wish::Finish => finish(world, dice, by),
        Wish::SetLevel { level } => drop(world.ask(by, Ask::SetLevel { level })),
    }
}

/// Whoever comes first tries; where it is another's drain, its owner has to.
fn undrain(world: &mut World, by: &str, path: &str) {
    let Some(target) = world.core().fabric().find(path) else { return };
    if world.ask(by, Ask::Undrain { target }).is_none() {
        for other in NAMES.iter().filter(|it| **it != by) {
            world.ask(other, Ask::Undrain { target });
        }
    }
}

fn move_port(world: &mut World, dice: &mut Dice, by: &str) {
    for _ in 0..TRIES {
        let Some((from, to)) = two_ports(world, dice) else { return };
        if world.ask(by, Ask::MovePort { from, to }).is_some() {
            return;
        }
    }
}

/// A port of a circuit switch with a fibre, and a free one of the same side.
fn two_ports(world: &World, dice: &mut Dice) -> Option<(PortId, PortId)> {
    let fabric = world.core().fabric();
    let switches: Vec<PartId> = world.core().state().switches.keys().copied().collect();
    if switches.is_empty() {
        return None;
    }
    let switch = switches[dice.index(switches.len())];
    let side = [Side::North, Side::South][dice.index(2)];
    let ports: Vec<PortId> = fabric
        .ports_of(switch)
        .zip(fabric.template_of(switch).ports())
        .filter(|(_, spec)| spec.side == side)
        .map(|(port, _)| port)
        .collect();
    let (used, free): (Vec<PortId>, Vec<PortId>) =
        ports.into_iter().partition(|&port| fabric.peer_of(port).is_some());
    if used.is_empty() || free.is_empty() {
        return None;
    }
    Some((used[dice.index(used.len())], free[dice.index(free.len())]))
}

/// Brings a cube in, or takes one away; on each slot whatever is possible.
fn redeploy(world: &mut World, dice: &mut Dice, by: &str) {
    for _ in 0..TRIES {
        let (pod, slot) = (dice.index(4), dice.below(64));
        let changed = replanned(world, |plant| {
            if plant.pods.is_empty() {
                return;
            }
            let idx = pod % plant.pods.len();
            let Family::Tpuv4 { cubes, deployed } = &mut plant.pods[idx].family else { return };
            let slot = u16::try_from(slot).expect("below 64") % *cubes;
            if !deployed.remove(&slot) || deployed.is_empty() {
                deployed.insert(slot);
            }
        });
        if world.ask(by, changed).is_some() {
            return;
        }
    }
}

/// Every slot has its cube again; where a fibre stands in the way, all go back to their places.
pub(super) fn deploy_all(world: &mut World) {
    let plants = &world.core().state().plants;
    let text = plants.last().expect("a world has begun");
    let plant = Plant::parse("plant", text).expect("an adopted plant has been parsed before");
    let is_whole = plant.pods.iter().all(|it| match &it.family {
        Family::Tpuv4 { cubes, deployed } => deployed.len() == usize::from(*cubes),
        _other => true,
    });
    if is_whole {
        return;
    }
    for keeps_patches in [true, false] {
        let changed = replanned(world, |plant| {
            for pod in &mut plant.pods {
                if let Family::Tpuv4 { cubes, deployed } = &mut pod.family {
                    *deployed = (0..*cubes).collect::<BTreeSet<u16>>();
                }
            }
            if !keeps_patches {
                plant.patches.clear();
            }
        });
        if world.ask(NAMES[0], changed).is_some() {
            return;
        }
    }
}

fn replanned(world: &World, change: impl FnOnce(&mut Plant)) -> Ask {
    let plants = &world.core().state().plants;
    let text = plants.last().expect("a world has begun");
    let mut plant = Plant::parse("plant", text).expect("an adopted plant has been parsed before");
    change(&mut plant);
    let cubes = deployed_cubes(&plant);
    // A fibre goes with its cube.
    plant.patches.retain(|it| {
        let cube = it.end.name.split('/').next().and_then(|it| it.strip_prefix("cube"));
        cube.and_then(|it| it.parse().ok()).is_none_or(|it: u32| cubes.contains(&it))
    });
    Ask::ApplyPlant { plant: plant.render(), expected: plants.len() as u64 }
}

/// The numbers of all cubes that are there.
fn deployed_cubes(plant: &Plant) -> BTreeSet<u32> {
    let firsts = plant.first_cubes();
    let pods = plant.pods.iter().zip(firsts);
    pods.flat_map(|(pod, first)| match &pod.family {
        Family::Tpuv4 { deployed, .. } => {
            deployed.iter().map(|&slot| first + u32::from(slot)).collect()
        }
        _other => Vec::new(),
    })
    .collect()
}

fn maintain(world: &mut World, dice: &mut Dice, by: &str) {
    let fabric = world.core().fabric();
    let parts: Vec<PartId> =
        fabric.parts().pairs().filter(|(_, it)| !it.retired).map(|(part, _)| part).collect();
    let targets: Vec<Target> = (0..1 + dice.index(5))
        .map(|_| {
            let part = parts[dice.index(parts.len())];
            let nodes: Vec<_> = fabric.nodes_of(part).collect();
            let is_whole = fabric.template_of(part).role == Role::CircuitSwitch;
            match dice.below(2) {
                0 if !is_whole => Target::Node(nodes[dice.index(nodes.len())]),
                _ => Target::Part(part),
            }
        })
        .collect();
    let n_at_once = 1 + u32::try_from(dice.below(3)).expect("below 3");
    let work = dice.span(Span::mins(5), Span::hours(2));
    let why = "a new firmware".to_owned();
    world.ask(by, Ask::Maintain { targets, n_at_once, work, why });
}

fn take(world: &mut World, dice: &mut Dice, by: &str) {
    let state = world.core().state();
    let takes = |case: &CaseId| {
        matches!(state.cases[*case].state, CaseState::Observed | CaseState::Waiting)
    };
    let cases: Vec<CaseId> = state.open_cases.values().copied().filter(takes).collect();
    if cases.is_empty() {
        return;
    }
    let case = cases[dice.index(cases.len())];
    world.ask(by, Ask::TakeRepair { case });
}

/// Says of all that is being repaired that it is done, one's own or not, true or not.
fn finish(world: &mut World, dice: &mut Dice, by: &str) {
    let state = world.core().state();
    let cases: Vec<(CaseId, Target, bool)> = (state.open_cases.values())
        .map(|&case| (case, &state.cases[case]))
        .filter(|(_, it)| it.state == CaseState::UnderRepair)
        .map(|(case, it)| (case, it.target, it.taken_by.as_deref() == Some(by)))
        .collect();
    for (case, target, is_own) in cases {
        if is_own && dice.below(3) != 0 {
            let now = world.now();
            // There may have been nothing to repair.
            let _cleared = world.plant_mut().clear(now, target);
        }
        if is_own || dice.below(8) == 0 {
            world.ask(by, Ask::FinishRepair { case });
        }
    }
}

/// What a person on duty does each half hour once all is healed: lets held jobs go, takes cases
/// that Selvedge may not touch by itself, and ends the repairs that people have begun.
pub(super) fn attend(world: &mut World) {
    deploy_all(world);
    // What was drained when it left the plant has come back drained.
    undrain_all(world);
    let held: Vec<JobId> = (world.core().state().jobs.pairs())
        .filter(|(_, job)| matches!(job.state, JobState::Queued { held: true, .. }))
        .map(|(job, _)| job)
        .collect();
    for job in held {
        world.ask(NAMES[0], Ask::Job { job, order: JobOrder::Release });
    }
    let state = world.core().state();
    let cases: Vec<(CaseId, CaseState, Option<String>)> = (state.open_cases.values())
        .map(|&case| (case, &state.cases[case]))
        .map(|(case, it)| (case, it.state, it.taken_by.clone()))
        .collect();
    for (case, state, taken_by) in cases {
        match state {
            CaseState::Observed if !passes(world, case) => {
                world.ask(NAMES[0], Ask::TakeRepair { case });
            }
            CaseState::UnderRepair => {
                if let Some(by) = taken_by.filter(|it| it != CREW) {
                    world.ask(&by, Ask::FinishRepair { case });
                }
            }
            CaseState::Observed
            | CaseState::Draining
            | CaseState::Waiting
            | CaseState::Verifying
            | CaseState::Probation { .. }
            | CaseState::Closed => (),
        }
    }
}

/// Whether a case closes by itself when nothing is seen again.
fn passes(world: &World, case: CaseId) -> bool {
    world.core().state().cases[case].severity < Severity::Critical
}

/// Nobody holds anything back any more: each takes back what is theirs.
pub(super) fn undrain_all(world: &mut World) {
    let drains: Vec<(String, Target)> = (world.core().state().drains.iter())
        .flat_map(|(&target, drains)| drains.iter().map(move |it| (target, it)))
        .filter_map(|(target, drain)| match &drain.by {
            Owner::Person(name) => Some((name.clone(), target)),
            Owner::Case(_) => None,
        })
        .collect();
    for (by, target) in drains {
        world.ask(&by, Ask::Undrain { target });
    }
}
