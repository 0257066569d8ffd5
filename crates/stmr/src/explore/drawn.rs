//! Programs of many processes in three replicas, under orders and faults that a seed draws.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use twox_hash::XxHash3_64;

use super::dice::Dice;
use super::world::{Act, Faults, Pid, World};
use super::{N, Op};
use crate::verdict::Double;

/// A fault that is due after so many acts.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: usize,
    pid: Pid,
    is_kill: bool,
}

/// What a run came to.
#[derive(PartialEq, Eq, Debug)]
struct Ran {
    n_acts: usize,
    n_faults: u32,
    restarted: Option<Double>,
    digest: u64,
}

struct Run {
    world: World,
    dice: Dice,
    due: Vec<Due>,
    /// One in so many times a process does something when it might.
    pace: Vec<usize>,
    n_acts: usize,
    hasher: XxHash3_64,
    acts: Vec<Act>,
}

impl Run {
    fn of(programs: &[Vec<Op>], seed: u64, due: Vec<Due>) -> Ran {
        let kills = due.iter().filter(|it| it.is_kill).count() as u32;
        let flips = due.len() as u32 - kills;
        let faults = Faults { kills, flips, ..Faults::NONE };
        let mut dice = Dice(seed);
        let pace = (0..programs.len() * N).map(|_| 1 + dice.below(3)).collect();
        let mut this = Self {
            world: World::of_job(programs.to_vec(), faults).untraced(),
            dice,
            due,
            pace,
            n_acts: 0,
            hasher: XxHash3_64::with_seed(0),
            acts: Vec::new(),
        };
        // A round in which some do nothing may come to nothing by chance.
        while this.world.restarted.is_none() && (this.round(false) || this.round(true)) {}
        let restarted = this.world.restarted.map(|it| it.1);
        if restarted.is_some() {
            this.world.check(this.world.may_restart(), "nobody starts again without need");
        } else {
            this.world.check_end();
        }
        this.world.key().hash(&mut this.hasher);
        Ran {
            n_acts: this.n_acts,
            n_faults: this.world.faults,
            restarted,
            digest: this.hasher.finish(),
        }
    }

    /// Each process in turn, in an order that is drawn, does one thing of those that it can.
    fn round(&mut self, is_full: bool) -> bool {
        let mut order: Vec<Pid> = (0..self.pace.len()).collect();
        for idx in (1..order.len()).rev() {
            order.swap(idx, self.dice.below(idx + 1));
        }
        let mut came = false;
        for pid in order {
            if self.world.restarted.is_some() {
                return true;
            }
            if !is_full && !self.dice.one_in(self.pace[pid]) {
                continue;
            }
            came |= self.act(pid);
            came |= self.fail();
            if let Some(act) = self.world.launch().filter(|_| is_full || self.dice.one_in(100)) {
                came |= self.apply(act);
            }
        }
        came
    }

    fn act(&mut self, pid: Pid) -> bool {
        let mut acts = std::mem::take(&mut self.acts);
        acts.clear();
        self.world.acts(pid, &mut acts);
        let mut came = false;
        while !came && !acts.is_empty() {
            let act = acts.swap_remove(self.dice.below(acts.len()));
            came = self.apply(act);
        }
        self.acts = acts;
        came
    }

    /// Does what is due of faults: somebody has no value to be flipped yet, or has ended.
    fn fail(&mut self) -> bool {
        let due = |it: &Due| it.at <= self.n_acts;
        let Some(idx) = self.due.iter().position(due) else { return false };
        let Due { pid, is_kill, .. } = self.due[idx];
        let mut acts = Vec::new();
        self.world.breaks(pid, &mut acts);
        acts.retain(|it| matches!(it, Act::Kill { .. }) == is_kill);
        if acts.is_empty() {
            if !self.world.processes[pid].is_there() {
                self.due.swap_remove(idx);
            }
            return false;
        }
        self.due.swap_remove(idx);
        let act = acts[self.dice.below(acts.len())];
        self.apply(act)
    }

    fn apply(&mut self, act: Act) -> bool {
        let came = self.world.apply(act);
        self.n_acts += usize::from(came);
        (act, came).hash(&mut self.hasher);
        came
    }
}

/// All send to the next, and receive from the one before, some times.
fn ring(n: usize) -> Vec<Vec<Op>> {
    let turn = |rank: usize| [Op::SendTo((rank + 1) % n), Op::ReceiveFrom((rank + n - 1) % n)];
    (0..n).map(|rank| [&turn(rank).repeat(3)[..], &[Op::Send]].concat()).collect()
}

/// All exchange with those whose numbers differ in one bit, one after the other.
fn butterfly(n: usize) -> Vec<Vec<Op>> {
    let bits = || (0..usize::BITS).map(|it| 1 << it).take_while(|it| *it < n);
    let turn = |it: usize| [Op::SendTo(it), Op::ReceiveFrom(it)];
    let of = |rank: usize| {
        let partners = bits().map(|it| rank ^ it).filter(|it| *it < n);
        [Op::Choose].into_iter().chain(partners.flat_map(turn)).chain([Op::Send]).collect()
    };
    (0..n).map(of).collect()
}

/// One takes what comes from whomever, and answers that one; the others ask it twice.
fn farm(n: usize) -> Vec<Vec<Op>> {
    let master = [Op::ReceiveAny, Op::Answer].repeat(2 * (n - 1));
    let worker = [Op::Choose, Op::SendTo(0), Op::ReceiveFrom(0)].repeat(2);
    let all = [vec![master], vec![worker; n - 1]].concat();
    all.into_iter().map(|it| [it, vec![Op::Send]].concat()).collect()
}

/// Kills in different clusters, in two of the sets, and flips in others.
fn outlived(n: usize, n_acts: usize, dice: &mut Dice) -> Vec<Due> {
    let whole = dice.below(N);
    let mut ranks: Vec<usize> = (0..n).collect();
    let n_faults = 1 + dice.below(n.min(12));
    let due = |_| {
        let rank = ranks.swap_remove(dice.below(ranks.len()));
        let is_kill = dice.one_in(2);
        let set = if is_kill { (whole + 1 + dice.below(N - 1)) % N } else { dice.below(N) };
        Due { at: dice.below(n_acts), pid: rank * N + set, is_kill }
    };
    (0..n_faults).map(due).collect()
}

/// Two kills in one cluster, or one in each set, of other clusters.
fn not_outlived(n: usize, n_acts: usize, dice: &mut Dice) -> (Vec<Due>, Double) {
    let (first, is_double) = (dice.below(n), dice.one_in(2));
    let mut due = |pid| Due { at: dice.below(n_acts / 2), pid, is_kill: true };
    if is_double || n < N {
        return ((0..2).map(|set| due(first * N + set)).collect(), Double::Lone);
    }
    let of = |set: usize| due((first + set) % n * N + set);
    ((0..N).map(of).collect(), Double::NoWholeSet)
}

fn check(name: &str, programs: &[Vec<Op>], seeds: Range<u64>) {
    let n = programs.len();
    let (mut n_acts, mut n_faults) = (0, 0);
    for seed in seeds.clone() {
        let calm = Run::of(programs, seed, Vec::new());
        assert_eq!(calm.restarted, None);
        let mut dice = Dice(seed);
        let due = outlived(n, calm.n_acts, &mut dice);
        let ran = Run::of(programs, seed, due.clone());
        assert_eq!(ran.restarted, None, "{name} of {n}, seed {seed}: {due:?}");
        n_acts += ran.n_acts;
        n_faults += ran.n_faults;
        let (fatal, why) = not_outlived(n, calm.n_acts, &mut dice);
        let lost = Run::of(programs, seed, fatal.clone());
        assert_eq!(lost.restarted, Some(why), "{name} of {n}, seed {seed}: {fatal:?}");
        if seed == 0 {
            assert_eq!(ran, Run::of(programs, seed, due), "a seed says all");
            assert_ne!(ran, Run::of(programs, 1, Vec::new()), "another says something else");
        }
    }
    println!("{name} of {n}, seeds {seeds:?}: {n_faults} faults outlived in {n_acts} acts");
}

#[test]
fn of_few_processes_all_go_right_or_all_start_again() {
    for n in 2..6 {
        check("ring", &ring(n), 0..60);
        check("butterfly", &butterfly(n), 0..60);
        check("farm", &farm(n), 0..60);
    }
}

/// One of two that died had offered what it alone had heard of the other; whoever is left came to
/// another value, and found that two differ.
#[test]
fn who_is_left_alone_says_so_whatever_the_dead_offered() {
    check("butterfly", &butterfly(5), 625..626);
}

#[test]
fn of_many_processes_all_go_right_or_all_start_again() {
    check("ring", &ring(64), 0..4);
    check("butterfly", &butterfly(64), 0..4);
    check("farm", &farm(64), 0..2);
    check("ring", &ring(1_000), 0..2);
}

#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn of_many_processes_in_many_orders_all_go_right_or_all_start_again() {
    for n in 2..6 {
        check("ring", &ring(n), 0..1_000);
        check("butterfly", &butterfly(n), 0..1_000);
        check("farm", &farm(n), 0..1_000);
    }
    check("ring", &ring(1_000), 0..4);
    check("butterfly", &butterfly(1_000), 0..4);
    check("farm", &farm(64), 0..10);
}
