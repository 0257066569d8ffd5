//! A static pod against a switched one, under the same trace (seed 000 §2.1, figure 2).
//!
//! The switched pod is cubes of 4x4x4 chips of which any may be joined; jobs within a cube are
//! packed.  The static pod is a torus of single chips, in which a slice is a box that may lie over
//! the edge, in any orientation.  Both run the production scheduler in strict order; a slice takes
//! no time to set up, so that the difference is the placement's alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use selvedge_control::capacity::{Capacity, Layout};
use selvedge_control::planted::Planted;
use selvedge_control::schedule::{self, View, Waiting};
use selvedge_control::settings::Means;
use selvedge_control::state::PartState;
use selvedge_family::grid::policy::Policy;
use selvedge_family::grid::room::{Ground, Room};
use selvedge_family::grid::site::{Profile, Site};
use selvedge_family::grid::{Grid, orientations};
use selvedge_family::torus::shape::Shape;
use selvedge_model::fabric::Fabric;
use selvedge_model::id::{JobId, PartId, PoolId};
use selvedge_model::job::{Collective, Demand, Load, Need, Partition, Place};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::Family;
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::dice::Dice;
use crate::trace::TraceJob;

/// Chips along each side of the pod.
const SIDE: usize = 16;
/// Cubes along each side of the pod.
const CUBES: usize = 4;
/// Chips of a cube.
const CUBE_CHIPS: u32 = 64;

/// Which pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pod {
    /// Any cubes may be joined.
    Switched,
    /// A fixed torus, whose slices are chosen by this rule.
    Static(Policy),
}

/// What came of a trace on one pod.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Which pod, in words.
    pub pod: String,
    /// Jobs that ran.
    pub jobs: u64,
    /// Jobs that the pod can never hold.
    pub refused: u64,
    /// From coming to starting, of the first jobs, on average.
    pub queue_h: f64,
    /// From coming to ending, of the first jobs, on average.
    pub completion_h: f64,
    /// Chips that jobs held, by all chips, until the last of the first jobs ended.
    pub utilisation: f64,
    /// Chips of the largest slice that could have been placed, on average over that time.
    pub largest_mean: f64,
    /// Time of all passes by the clock that was given.
    pub passes_s: f64,
}

/// The largest slice that could be placed, from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Largest {
    /// From when.
    pub at: Moment,
    /// Chips of the slice.
    pub chips: u32,
}

/// A run with its curve.
#[derive(Clone, Debug)]
pub struct Run {
    /// What came of it.
    pub outcome: Outcome,
    /// The largest slice that could be placed.
    pub largest: Vec<Largest>,
}

/// What a trace is run with.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Times are told of so many jobs from the first on.
    pub n_watched: usize,
    /// Whether the largest slice is looked for at each event.
    pub curve: bool,
}

/// Runs the jobs of a trace on a pod; `clock` is real time, which is told and decides nothing.
pub fn run(pod: Pod, jobs: &[TraceJob], ask: Ask, clock: &mut dyn FnMut() -> Span) -> Run {
    let (fabric, layout) = hardware(pod);
    let mut parts = IdVec::new();
    parts.grow(layout.seats.len(), PartState::default());
    let mut world = World {
        pod,
        fabric: &fabric,
        layout: &layout,
        parts,
        demands: Vec::new(),
        waiting: Vec::new(),
        running: BTreeMap::new(),
        now: Moment::START,
        held: 0,
    };
    world.play(jobs, ask, clock)
}

/// The pod, and which of its parts take jobs.
fn hardware(pod: Pod) -> (Fabric, Layout) {
    let cubes = u16::try_from(CUBES.pow(3)).expect("64");
    let plant = Plant::of_pods("study", [Family::tpuv4(cubes)]);
    let fabric = selvedge_family::build(&plant).expect("a generated pod can be built");
    let Pod::Static(policy) = pod else {
        let layout = Layout::of(&fabric);
        return (fabric, layout);
    };
    // Chips as parts of their own; nothing but their places matters to the scheduler.
    let chips: Vec<PartId> = (0..SIDE.pow(3)).map(|it| PartId::new(it as u32)).collect();
    let grid = Grid { sides: [SIDE; 3], wraps: [true; 3] };
    let mut layout = Layout { policy, ..Layout::default() };
    layout.sites.push(Some(Site::whole(grid, &chips, Profile::chip(3))));
    layout.seats.grow(chips.len(), 1);
    layout.pools.push(chips);
    (fabric, layout)
}

/// What a job of the trace asks of a pod; none where its shape is no box of chips.
fn demand(pod: Pod, job: &TraceJob) -> Option<(Demand, Need, u32)> {
    let written = job.shape.split('_').next()?;
    let sides: Vec<u16> = written.split('x').map_while(|it| it.parse().ok()).collect();
    let sides: [u16; 3] = sides.try_into().ok()?;
    let n_chips = sides.iter().map(|it| u32::from(*it)).product();
    if pod == Pod::Switched {
        let (shape, _) = Shape::parse(&job.shape).ok()?;
        return Some((Demand::Shape(shape.to_string()), shape.need(), n_chips));
    }
    let (communication, collective) = (Ppm::new(0), Collective::AllReduce);
    let need = Need::Partition(Partition {
        n_parts: n_chips,
        sides: Some(sides),
        exact: true,
        communication,
        collective,
    });
    let boards = Some(n_chips);
    let load = Load { chips: n_chips, memory_gib: 0, communication, collective, boards };
    Some((Demand::Load(Box::new(load)), need, n_chips))
}

struct World<'a> {
    pod: Pod,
    fabric: &'a Fabric,
    layout: &'a Layout,
    parts: IdVec<PartId, PartState>,
    demands: Vec<(Demand, Need, u32)>,
    /// Jobs that wait, in their order, and when they came.
    waiting: Vec<usize>,
    running: BTreeMap<(Moment, usize), Place>,
    now: Moment,
    held: u32,
}

impl World<'_> {
    fn play(&mut self, jobs: &[TraceJob], ask: Ask, clock: &mut dyn FnMut() -> Span) -> Run {
        let mut out = Outcome { pod: self.words(), ..Outcome::default() };
        let pool = PoolId::new(0);
        let mut accepted: Vec<&TraceJob> = Vec::new();
        for job in jobs {
            match demand(self.pod, job) {
                Some(it) if Capacity::could_hold(self.layout, pool, &it.1) => {
                    self.demands.push(it);
                    accepted.push(job);
                }
                _ => out.refused += 1,
            }
        }
        let mut times: Vec<(Moment, Moment)> = vec![(Moment::NEVER, Moment::NEVER); accepted.len()];
        let mut n_come = 0;
        let (mut curve, mut steps) = (Vec::new(), Vec::new());
        loop {
            let arrival = accepted.get(n_come).map(|it| Moment::START + it.at);
            let end = self.running.first_key_value().map(|it| it.0.0);
            let Some(next) = [arrival, end].into_iter().flatten().min() else { break };
            self.now = next;
            while accepted.get(n_come).is_some_and(|it| Moment::START + it.at <= next) {
                self.waiting.push(n_come);
                n_come += 1;
            }
            self.leave(next);
            let before = clock();
            let starts = self.pass();
            out.passes_s += clock().minus(before).as_secs_f64();
            for (job, place) in starts {
                let end = self.now + accepted[job].duration;
                times[job] = (self.now, end);
                for hold in &place.holds {
                    self.parts[hold.part].held |= hold.seats;
                }
                self.held += self.demands[job].2;
                self.running.insert((end, job), place);
            }
            steps.push((self.now, self.held));
            if ask.curve {
                curve.push(Largest { at: self.now, chips: self.largest() });
            }
        }
        self.sum_up(&mut out, &accepted, &times, &steps, &curve, ask);
        Run { outcome: out, largest: curve }
    }

    fn words(&self) -> String {
        match self.pod {
            Pod::Switched => "switched".to_owned(),
            Pod::Static(policy) => format!("static {policy}"),
        }
    }

    fn leave(&mut self, now: Moment) {
        while let Some(entry) = self.running.first_entry()
            && entry.key().0 <= now
        {
            let ((_, job), place) = entry.remove_entry();
            for hold in &place.holds {
                self.parts[hold.part].held &= !hold.seats;
            }
            self.held -= self.demands[job].2;
        }
    }

    fn pass(&mut self) -> Vec<(usize, Place)> {
        let waiting = |&idx: &usize| {
            let (demand, need, _) = &self.demands[idx];
            Waiting::new(JobId::new(idx as u32), demand, need, None)
        };
        let queue: Vec<Waiting<'_>> = self.waiting.iter().map(waiting).collect();
        let view = View {
            now: self.now,
            fabric: self.fabric,
            layout: self.layout,
            parts: &self.parts,
            doubted: &BTreeSet::new(),
            busy: &[],
            means: Means { backfill: false, preempt: false, defragment: false },
            aging: Span::ZERO,
            setup_max: Span::ZERO,
            stop_max: Span::ZERO,
            window: Some(1),
            current: &|_, _| None,
            planted: Planted::NONE,
        };
        let (plan, _report) = schedule::plan(&view, &queue);
        let starts: Vec<(usize, Place)> =
            plan.starts.into_iter().map(|it| (it.job.idx(), it.place)).collect();
        // In strict order, those that start are the first.
        self.waiting.drain(..starts.len());
        starts
    }

    /// Chips of the largest slice that could be placed now.
    fn largest(&self) -> u32 {
        let pool = PoolId::new(0);
        let free = Capacity::now(self.layout, &self.parts);
        let mut shapes = Shape::all();
        shapes
            .retain(|it| !it.twisted() && it.dims().iter().all(|side| usize::from(*side) <= SIDE));
        shapes.reverse();
        let site = self.layout.sites[pool].as_ref();
        let room = site.map(|it| it.room(it.ground(), |part| free.held(part) == 0));
        let fits = |shape: &Shape| match &room {
            None => free.fits(pool, &shape.need()),
            Some(room) => {
                let sides = shape.dims().map(usize::from);
                orientations(sides).into_iter().any(|it| room.has_box(it))
            }
        };
        shapes.iter().find(|it| fits(it)).map_or(0, Shape::n_chips)
    }

    fn sum_up(
        &self,
        out: &mut Outcome,
        accepted: &[&TraceJob],
        times: &[(Moment, Moment)],
        steps: &[(Moment, u32)],
        curve: &[Largest],
        ask: Ask,
    ) {
        let n = ask.n_watched.min(accepted.len());
        let hours = |it: Span| it.as_secs_f64() / 3600.0;
        let come = |idx: usize| Moment::START + accepted[idx].at;
        let mean = |get: &dyn Fn(usize) -> f64| (0..n).map(get).sum::<f64>() / n.max(1) as f64;
        out.jobs = accepted.len() as u64;
        out.queue_h = mean(&|it| hours(times[it].0.since(come(it))));
        out.completion_h = mean(&|it| hours(times[it].1.since(come(it))));
        let last = times[..n].iter().map(|it| it.1).max().unwrap_or(Moment::START);
        let long = last.since(Moment::START).as_secs_f64().max(1e-9);
        let until = |it: Moment| it.min(last);
        let area = steps
            .windows(2)
            .map(|it| f64::from(it[0].1) * until(it[1].0).since(until(it[0].0)).as_secs_f64());
        out.utilisation = area.sum::<f64>() / long / SIDE.pow(3) as f64;
        let area = curve.windows(2).map(|it| {
            f64::from(it[0].chips) * until(it[1].at).since(until(it[0].at)).as_secs_f64()
        });
        out.largest_mean = area.sum::<f64>() / long;
    }
}

/// Chips of the largest slice of whole cubes, as cubes come one by one in an order that is drawn:
/// on a switched pod any cubes that are there, on a static one a box of them.
pub fn while_cubes_arrive(seed: u64) -> Vec<[u32; 2]> {
    let ground = Ground::whole(Grid::mesh([CUBES; 3]));
    let n_cubes = ground.grid().n_cells();
    let mut order: Vec<usize> = (0..n_cubes).collect();
    Dice::new(seed, "cubes arrive").shuffle(&mut order);
    let mut is_there = vec![false; n_cubes];
    let mut boxes: Vec<[usize; 3]> =
        (0..n_cubes).map(|it| ground.grid().at(it).map(|side| side + 1)).collect();
    boxes.sort_by_key(|it| std::cmp::Reverse(it.iter().product::<usize>()));
    order
        .iter()
        .zip(1u32..)
        .map(|(&cube, n)| {
            is_there[cube] = true;
            let room = Room::of(&ground, |it| is_there[it]);
            let largest = boxes.iter().find(|it| room.has_box(**it));
            let n_static = largest.map_or(0, |it| it.iter().product::<usize>() as u32);
            [CUBE_CHIPS * n, CUBE_CHIPS * n_static]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switched_pod_grows_by_each_cube_and_a_static_one_waits_for_the_last() {
        let curve = while_cubes_arrive(1);
        assert_eq!(curve.len(), 64);
        for (idx, [switched, fixed]) in curve.iter().enumerate() {
            assert_eq!(*switched, 64 * (idx as u32 + 1));
            assert!(fixed <= switched);
        }
        assert_eq!(curve[63], [4096, 4096]);
        // One cube is missing: at most three of the four layers are whole.
        assert_eq!(curve[62], [4032, 3072]);
    }

    #[test]
    fn a_slice_of_scattered_cubes_starts_at_once_only_where_they_can_be_joined() {
        let job = |number, at, shape: &str, hours| TraceJob {
            number,
            at: Span::secs(at),
            shape: shape.to_owned(),
            n_chips: 0,
            size: 0,
            duration: Span::hours(hours),
        };
        // Four slices of a quarter each; the first and the third leave, and a half is asked for.
        let jobs = [
            job(0, 0, "4x16x16", 1),
            job(1, 1, "4x16x16", 9),
            job(2, 2, "4x16x16", 1),
            job(3, 3, "4x16x16", 9),
            job(4, 4, "8x16x16", 1),
        ];
        let ask = Ask { n_watched: 5, curve: true };
        let mut clock = || Span::ZERO;
        let switched = run(Pod::Switched, &jobs, ask, &mut clock);
        let fixed = run(Pod::Static(Policy::FirstFit), &jobs, ask, &mut clock);
        assert!(switched.outcome.queue_h < 0.21 && 1.7 < fixed.outcome.queue_h);
        assert_eq!(switched.outcome.jobs, 5);
        let most = |run: &Run| run.largest.iter().map(|it| it.chips).max();
        assert_eq!((most(&switched), most(&fixed)), (Some(4096), Some(4096)));
    }
}
