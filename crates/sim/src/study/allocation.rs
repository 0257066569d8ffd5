//! Rules of placement on one grid of boards, under a workload (notes on allocation; seed 004,
//! claim 12).
//!
//! Tasks wait in one queue; whenever one comes or ends, the production scheduler makes a pass over
//! it.  What a task cannot get from the sound boards of an otherwise empty machine is refused when
//! it comes; what lasts no time and could be held is finished when it comes.  Shares are over the
//! time from the first tenth of all starts to the last.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use selvedge_control::capacity::{Capacity, Layout};
use selvedge_control::partition;
use selvedge_control::planted::Planted;
use selvedge_control::schedule::{self, Busy, View, Waiting};
use selvedge_control::settings::Means;
use selvedge_control::state::PartState;
use selvedge_family::grid::policy::{self, Policy};
use selvedge_family::grid::site::Site;
use selvedge_model::fabric::Fabric;
use selvedge_model::id::{JobId, PartId, PoolId};
use selvedge_model::job::{Collective, Demand, Load, Need, Partition, Place};
use selvedge_model::spec::Plant;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::spec::plant::Family;
use selvedge_model::table::IdVec;
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::dice::Dice;
use crate::study::workload::Task;

/// In which order tasks may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Whoever fits among so many from the front; nothing is kept for those before.  One is strict
    /// order.
    Window(usize),
    /// As in production: the first that does not fit is promised a moment by the limits of those
    /// that run, and others pass it where that holds.
    Reservation,
}

/// What is studied.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Rows and columns of groups.
    pub groups: [u16; 2],
    /// The rule.
    pub policy: Policy,
    /// The order.
    pub queue: Queue,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The share of boards that are dead.
    pub dead: Ppm,
    /// The share of its time that each task communicates.
    pub communication: Ppm,
    /// For all dice.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Boards that tasks needed and held, by sound boards and time.
    pub utilisation: f64,
    /// Boards that tasks held, by sound boards and time.
    pub allocated: f64,
    /// Tasks that the sound machine can never hold.
    pub refused: u64,
    /// Their share of all work, in boards and time.
    pub refused_work: f64,
    /// Tasks that last no time: finished when they come, without a place.
    pub at_once: u64,
    /// Tasks, those that are refused or finished at once among them.
    pub jobs: u64,
    /// Sound boards.
    pub live_boards: u32,
    /// Boards of the largest connected set of sound ones.
    pub largest_live: u32,
    /// The share of held boards that their task does not need.
    pub internal_fragmentation: f64,
    /// The share of sound boards that is free though the first that waits needs no more of them.
    pub external_fragmentation: f64,
    /// Links of a chip within its partition, on average over chips and time.
    pub links_per_chip: f64,
    /// The share of chips, by time, in partitions all of whose boards have two neighbours.
    pub sturdy: f64,
    /// The share of chips, by time, in partitions of several pieces.
    pub split: f64,
    /// The time of a task by that on the best partition of its size, on average over boards and
    /// time: what it computes and what it communicates.
    pub slowdown: f64,
    /// From coming to starting, on average.
    pub queue_s: f64,
    /// From coming to ending, on average.
    pub completion_s: f64,
    /// From the first moment to the last end.
    pub makespan_s: f64,
    /// Decisions of the scheduler: a task that started or was found not to fit.
    pub decisions: u64,
    /// Time of a decision by the clock that was given, on average.
    pub us_per_decision: f64,
    /// Of a hundred decisions, one takes longer.
    pub us_p99: f64,
}

/// The machine at one moment.
#[derive(Clone, Debug)]
pub struct Frame {
    /// When.
    pub at: Moment,
    /// Who holds each cell.
    pub holders: Vec<Option<u32>>,
}

/// One moment of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When.
    pub at: Moment,
    /// Boards that tasks need and hold.
    pub useful: u32,
    /// Boards of the largest free box.
    pub largest_box: u32,
    /// Boards of the largest connected set of free ones.
    pub largest_set: u32,
}

/// A study with what is needed to draw it.
#[derive(Clone, Debug)]
pub struct Study {
    /// What came of it.
    pub outcome: Outcome,
    /// The machine now and then.
    pub frames: Vec<Frame>,
    /// The curves.
    pub samples: Vec<Sample>,
    /// Which cells are dead.
    pub dead: Vec<bool>,
}

/// Pictures of the machine.
const FRAMES: usize = 12;

/// Why a study cannot be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StudyError {
    /// Nothing to do.
    #[error("there is no task to place")]
    NoTask,
    /// No board is sound.
    #[error("every board is dead; ask for a smaller share")]
    AllDead,
}

/// Runs a study; `clock` is real time, which is told and decides nothing.
///
/// # Errors
/// [`StudyError`].
pub fn run(setup: &Setup, clock: &mut dyn FnMut() -> Span) -> Result<Study, StudyError> {
    let family = Family::HyperSquare(HyperSquare::of_groups(setup.groups));
    let plant = Plant::of_pods("study", [family]);
    let fabric = selvedge_family::build(&plant).expect("a generated machine can be built");
    let mut layout = Layout::of(&fabric);
    layout.policy = setup.policy;
    let mut machine = Machine::new(&fabric, &layout, setup)?;
    machine.admit(setup);
    machine.play(setup, clock);
    Ok(machine.end(setup))
}

/// A task that runs.
struct Running {
    job: JobId,
    place: Place,
    release_by: Moment,
}

/// How a partition weighs in the integrals.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    useful: f64,
    allocated: f64,
    /// Chips times links.
    links: f64,
    sturdy: f64,
    split: f64,
    slowdown: f64,
}

struct Machine<'a> {
    fabric: &'a Fabric,
    layout: &'a Layout,
    site: &'a Site,
    pool: PoolId,
    parts: IdVec<PartId, PartState>,
    tasks: &'a [Task],
    demands: Vec<Demand>,
    needs: Vec<Need>,
    limits: Vec<Span>,
    /// Tasks that wait, in their order.
    queue: Vec<usize>,
    running: BTreeMap<(Moment, JobId), Running>,
    weights: BTreeMap<JobId, Weight>,
    now: Moment,
    n_live: u32,
    starts: Vec<(Moment, Moment)>,
    /// The integrals' steps: until when, the weight, the free boards that the head could not use.
    steps: Vec<(Moment, Weight, f64)>,
    spent: Vec<(f64, u64)>,
    out: Outcome,
    frames: Vec<Frame>,
    samples: Vec<Sample>,
    dead: Vec<bool>,
}

impl<'a> Machine<'a> {
    fn new(fabric: &'a Fabric, layout: &'a Layout, setup: &'a Setup) -> Result<Self, StudyError> {
        let pool = PoolId::new(0);
        let site = layout.sites[pool].as_ref().expect("a machine of boards stands on a grid");
        let n_cells = site.ground().grid().n_cells();
        let mut order: Vec<usize> = (0..n_cells).collect();
        Dice::new(setup.seed, "dead boards").shuffle(&mut order);
        let n_dead = (n_cells as f64 * f64::from(setup.dead.parts()) / 1e6).round() as usize;
        let mut parts: IdVec<PartId, PartState> = IdVec::new();
        parts.grow(fabric.parts().len(), PartState::default());
        let mut dead = vec![false; n_cells];
        for &cell in &order[..n_dead.min(n_cells)] {
            let part = site.part(cell).expect("a generated machine has a board on each cell");
            parts[part].out = layout.seats[part];
            dead[cell] = true;
        }
        if n_cells <= n_dead {
            return Err(StudyError::AllDead);
        }
        if setup.tasks.is_empty() {
            return Err(StudyError::NoTask);
        }
        let need = |it: &Task| {
            Need::Partition(Partition {
                n_parts: it.n_boards,
                sides: it.sides,
                exact: false,
                communication: setup.communication,
                collective: Collective::AllReduce,
            })
        };
        let demand = |it: &Task| {
            Demand::Load(Box::new(Load {
                chips: 4 * it.n_boards,
                memory_gib: 0,
                communication: setup.communication,
                collective: Collective::AllReduce,
                boards: Some(it.n_boards),
            }))
        };
        Ok(Self {
            fabric,
            layout,
            site,
            pool,
            parts,
            tasks: &setup.tasks,
            demands: setup.tasks.iter().map(demand).collect(),
            needs: setup.tasks.iter().map(need).collect(),
            limits: limits(setup),
            queue: Vec::new(),
            running: BTreeMap::new(),
            weights: BTreeMap::new(),
            now: Moment::START,
            n_live: (n_cells - n_dead) as u32,
            starts: Vec::new(),
            steps: Vec::new(),
            spent: Vec::new(),
            out: Outcome::default(),
            frames: Vec::new(),
            samples: Vec::new(),
            dead,
        })
    }

    /// Refuses what can never be held.
    fn admit(&mut self, setup: &Setup) {
        let idle = Capacity::idle(self.layout, &self.parts);
        let largest = idle.largest(self.pool).map_or(0, |it| it.connected);
        let work = |it: &Task| f64::from(it.n_boards) * it.service.as_secs_f64();
        let (mut refused, mut known) = (0.0, BTreeMap::new());
        for (idx, task) in setup.tasks.iter().enumerate() {
            let need = &self.needs[idx];
            let fits = known
                .entry((task.n_boards, task.sides))
                .or_insert_with(|| idle.fits(self.pool, need));
            match (*fits, task.service) {
                (false, _) => {
                    self.out.refused += 1;
                    refused += work(task);
                }
                (true, Span::ZERO) => self.out.at_once += 1,
                (true, _) => self.queue.push(idx),
            }
        }
        self.out.jobs = setup.tasks.len() as u64;
        self.out.live_boards = self.n_live;
        self.out.largest_live = largest;
        self.out.refused_work = refused / setup.tasks.iter().map(work).sum::<f64>().max(1e-9);
    }

    fn play(&mut self, setup: &Setup, clock: &mut dyn FnMut() -> Span) {
        let mut coming = std::mem::take(&mut self.queue);
        coming.sort_by_key(|&it| self.tasks[it].at);
        coming.reverse();
        let n_all = coming.len();
        loop {
            let arrival = coming.last().map(|&it| Moment::START + self.tasks[it].at);
            let end = self.running.first_key_value().map(|(&(at, _), _)| at);
            let Some(next) = [arrival, end].into_iter().flatten().min() else { break };
            self.now = next;
            while coming.last().is_some_and(|&it| Moment::START + self.tasks[it].at <= next) {
                self.queue.extend(coming.pop());
            }
            while let Some(entry) = self.running.first_entry()
                && entry.key().0 <= next
            {
                let over = entry.remove();
                for hold in &over.place.holds {
                    self.parts[hold.part].held &= !hold.seats;
                }
                self.weights.remove(&over.job);
            }
            self.pass(setup, clock);
            self.note(n_all);
        }
    }

    fn busy<'b>(&'b self, it: &'b Running) -> Busy<'b> {
        let idx = it.job.idx();
        Busy {
            job: it.job,
            demand: &self.demands[idx],
            need: &self.needs[idx],
            limit: Some(self.limits[idx]),
            holds: &it.place.holds,
            pool: it.place.pool,
            release_by: it.release_by,
            priority: 0,
            waited: Span::ZERO,
            preemptible: false,
            leaving: false,
            since: Moment::START,
        }
    }

    fn pass(&mut self, setup: &Setup, clock: &mut dyn FnMut() -> Span) {
        let reserves = setup.queue == Queue::Reservation;
        let waiting: Vec<Waiting<'_>> = self
            .queue
            .iter()
            .map(|&idx| {
                let limit = reserves.then(|| self.limits[idx]);
                let job = JobId::new(idx as u32);
                Waiting::new(job, &self.demands[idx], &self.needs[idx], limit)
            })
            .collect();
        let busy: Vec<Busy<'_>> = match reserves {
            true => self.running.values().map(|it| self.busy(it)).collect(),
            false => Vec::new(),
        };
        let view = View {
            now: self.now,
            fabric: self.fabric,
            layout: self.layout,
            parts: &self.parts,
            doubted: &BTreeSet::new(),
            busy: &busy,
            means: Means { backfill: reserves, preempt: false, defragment: false },
            aging: Span::ZERO,
            setup_max: Span::ZERO,
            stop_max: Span::ZERO,
            window: match setup.queue {
                Queue::Window(window) => Some(window),
                Queue::Reservation => None,
            },
            current: &|_, _| None,
            planted: Planted::NONE,
        };
        let before = clock();
        let (plan, report) = schedule::plan(&view, &waiting);
        let spent = clock().minus(before);
        let n_failed = u64::from(report.head.is_some());
        let n_starts = plan.starts.len() as u64;
        let n_decided = u64::from(report.n_looked).max(n_starts + n_failed).max(1);
        self.spent.push((spent.as_secs_f64() * 1e6, n_decided));
        let mut started: BTreeSet<usize> = BTreeSet::new();
        for start in plan.starts {
            started.insert(start.job.idx());
            self.start(start.job, start.place);
        }
        self.queue.retain(|it| !started.contains(it));
    }

    fn start(&mut self, job: JobId, place: Place) {
        let task = &self.tasks[job.idx()];
        let end = self.now + task.service;
        let cells: Vec<u32> = place
            .holds
            .iter()
            .filter_map(|it| self.site.cell_of(it.part))
            .map(|it| it as u32)
            .collect();
        for hold in &place.holds {
            self.parts[hold.part].held |= hold.seats;
        }
        let ground = self.site.ground();
        let joined = self.site.joined(ground, &cells);
        let room = self.site.room(ground, |_| true);
        let is_split = 1 < policy::n_pieces(&room, &cells);
        let slowdown = match &self.needs[job.idx()] {
            Need::Partition(wanted) => {
                let best = self.site.best(cells.len());
                f64::from(partition::slowdown(&joined, &best, wanted).parts()) / 1e6
            }
            Need::Whole { .. } | Need::Within { .. } => 1.0,
        };
        let useful = f64::from(task.n_boards);
        let allocated = place.holds.len() as f64;
        let is_sturdy = 2 <= self.site.fewest_neighbours(&cells) && !is_split;
        self.weights.insert(
            job,
            Weight {
                useful,
                allocated,
                links: allocated * 2.0 * joined.n_links as f64 / joined.n_chips.max(1) as f64,
                sturdy: if is_sturdy { allocated } else { 0.0 },
                split: if is_split { allocated } else { 0.0 },
                slowdown: allocated * slowdown,
            },
        );
        let came = Moment::START + task.at;
        self.out.queue_s += self.now.since(came).as_secs_f64();
        self.out.completion_s += end.since(came).as_secs_f64();
        self.starts.push((self.now, end));
        let release_by = self.now + self.limits[job.idx()];
        self.running.insert((end, job), Running { job, place, release_by });
    }

    /// Notes how things stand from here to the next event.
    fn note(&mut self, n_all: usize) {
        let mut sum = Weight::default();
        for it in self.weights.values() {
            sum.useful += it.useful;
            sum.allocated += it.allocated;
            sum.links += it.links;
            sum.sturdy += it.sturdy;
            sum.split += it.split;
            sum.slowdown += it.slowdown;
        }
        let free = f64::from(self.n_live) - sum.allocated;
        let head = self.queue.first().map(|&it| f64::from(self.tasks[it].n_boards));
        let wasted = if head.is_some_and(|it| it <= free) { free } else { 0.0 };
        self.steps.push((self.now, sum, wasted));
        let room = Capacity::now(self.layout, &self.parts).largest(self.pool);
        let sample = room.map(|it| Sample {
            at: self.now,
            useful: sum.useful as u32,
            largest_box: it.rows * it.columns,
            largest_set: it.connected,
        });
        self.samples.extend(sample);
        let due = (2 * self.frames.len() + 1) * n_all / (2 * FRAMES);
        if self.frames.len() < FRAMES && due <= self.starts.len() {
            let mut holders = vec![None; self.dead.len()];
            for it in self.running.values() {
                for hold in &it.place.holds {
                    if let Some(cell) = self.site.cell_of(hold.part) {
                        holders[cell] = Some(it.job.number());
                    }
                }
            }
            self.frames.push(Frame { at: self.now, holders });
        }
    }

    fn end(mut self, setup: &Setup) -> Study {
        let n = self.starts.len();
        let out = &mut self.out;
        let first = self.starts.get(n / 10).map_or(Moment::START, |it| it.0);
        let last = self.starts.get(9 * n / 10).map_or(Moment::START, |it| it.0);
        let (mut sum, mut wasted) = (Weight::default(), 0.0);
        for pair in self.steps.windows(2) {
            let (from, until) = (pair[0].0.max(first), pair[1].0.min(last));
            let long = until.since(from).as_secs_f64();
            if until <= from {
                continue;
            }
            let it = &pair[0].1;
            sum.useful += long * it.useful;
            sum.allocated += long * it.allocated;
            sum.links += long * it.links;
            sum.sturdy += long * it.sturdy;
            sum.split += long * it.split;
            sum.slowdown += long * it.slowdown;
            wasted += long * pair[0].2;
        }
        let all = f64::from(self.n_live) * last.since(first).as_secs_f64();
        let ratio = |part: f64, whole: f64| if whole == 0.0 { 0.0 } else { part / whole };
        out.utilisation = ratio(sum.useful, all);
        out.allocated = ratio(sum.allocated, all);
        out.internal_fragmentation = ratio(sum.allocated - sum.useful, sum.allocated);
        out.external_fragmentation = ratio(wasted, all);
        out.links_per_chip = ratio(sum.links, sum.allocated);
        out.sturdy = ratio(sum.sturdy, sum.allocated);
        out.split = ratio(sum.split, sum.allocated);
        out.slowdown = ratio(sum.slowdown, sum.allocated);
        out.queue_s = ratio(out.queue_s, n as f64);
        out.completion_s = ratio(out.completion_s, n as f64);
        let end = self.starts.iter().map(|it| it.1).max().unwrap_or(Moment::START);
        out.makespan_s = end.as_secs_f64();
        out.decisions = self.spent.iter().map(|it| it.1).sum();
        let all_us: f64 = self.spent.iter().map(|it| it.0).sum();
        out.us_per_decision = ratio(all_us, out.decisions as f64);
        let mut each: Vec<f64> = self
            .spent
            .iter()
            .flat_map(|&(us, n)| std::iter::repeat_n(us / n as f64, n as usize))
            .collect();
        each.sort_by(f64::total_cmp);
        let p99 = (each.len() * 99).div_ceil(100).saturating_sub(1);
        out.us_p99 = each.get(p99).copied().unwrap_or(0.0);
        debug_assert!(self.queue.is_empty() || setup.queue == Queue::Reservation, "all have run");
        Study { outcome: self.out, frames: self.frames, samples: self.samples, dead: self.dead }
    }
}

/// As in production: owners ask for one to three times what they need.
fn limits(setup: &Setup) -> Vec<Span> {
    let mut dice = Dice::new(setup.seed, "limits");
    let limit = |it: &Task| {
        let ppm = u128::from(1_000_000 + dice.below(2_000_001));
        let nanos = u128::from(it.service.as_nanos()) * ppm / 1_000_000;
        Span::nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    setup.tasks.iter().map(limit).collect()
}
