//! `selvedge study allocation`.

mod picture;

use std::fs;
use std::path::PathBuf;

use selvedge_family::grid::policy::Policy;
use selvedge_model::spec::hypersquare::groups_of;
use selvedge_model::unit::Ppm;
use selvedge_sim::study::allocation::{self, Queue, Setup};
use selvedge_sim::study::workload::{self, Workload};
use selvedge_sim::trace;
use serde::Serialize;
use serde_json::json;

use crate::Globals;
use crate::cmd::sim::read;
use crate::cmd::study::thread_time;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::progress::Progress;
use crate::render::table::Table;
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Allocation {
    /// Rules to study, or `all`: first-fit, best-fit, square-first, buddy, anchored, polyomino,
    /// hilbert.
    #[arg(long, value_name = "POLICY", value_delimiter = ',', default_value = "polyomino")]
    policy: Vec<String>,
    /// Where tasks come from.
    #[arg(long, value_name = "WORKLOAD", default_value = "uniform8")]
    workload: Name,
    /// Rows and columns of groups, which are boards of four chips.
    #[arg(long, value_name = "RxC", default_value = "16x16", value_parser = groups)]
    groups: [u16; 2],
    /// For all dice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Average over so many seeds from --seed on.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// How many tasks to draw.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    jobs: u64,
    /// Tasks of a trace in place of a workload: with --reservation they come when they came, in a
    /// window they all wait from the beginning.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "jobs"])]
    trace: Option<PathBuf>,
    /// So many tasks from the front may each start as soon as they fit; 1 is strict order.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    window: u64,
    /// As in production: the first that does not fit is promised a moment, others pass it where
    /// that holds.
    #[arg(long, conflicts_with = "window")]
    reservation: bool,
    /// The share of boards that are dead, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    dead: f64,
    /// The share of its time that each task communicates, 0 to 1, or several to hold against one
    /// another: the more, the squarer its partition, and it waits for one that is good enough.
    #[arg(long, value_name = "X", value_delimiter = ',', default_value = "0")]
    communication: Vec<f64>,
    /// Draw the machine over time into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Uniform8,
    Tpu,
    Crux,
    Philly,
}

impl Name {
    fn workload(self) -> Workload {
        match self {
            Name::Uniform8 => Workload::Uniform8,
            Name::Tpu => Workload::Tpu,
            Name::Crux => Workload::Crux,
            Name::Philly => Workload::Philly,
        }
    }
}

fn groups(text: &str) -> Result<[u16; 2], String> {
    groups_of(text).map_err(|wrong| wrong.to_string())
}

pub(crate) fn run(args: &Allocation, globals: &Globals) -> Outcome {
    let policies = policies(&args.policy)?;
    let rows: Vec<(Policy, f64)> = policies
        .into_iter()
        .flat_map(|policy| args.communication.iter().map(move |share| (policy, *share)))
        .collect();
    if args.svg.is_some() && (rows.len(), args.seeds) != (1, 1) {
        return Err(Failure::new("--svg draws one run")
            .hint("name one policy and one share of communication, and leave out --seeds"));
    }
    if args.seed.checked_add(args.seeds).is_none() {
        return Err(Failure::new(format!(
            "there are no {} seeds from {} on",
            args.seeds, args.seed
        ))
        .hint("begin with a smaller --seed"));
    }
    let mut line = Progress::new();
    let mut runs: Vec<Run> = Vec::new();
    for (policy, communication) in rows {
        let mut outcomes = Vec::new();
        for seed in args.seed..args.seed + args.seeds {
            line.tell(|| format!("{policy}, seed {seed}"));
            let study = timed(&setup(args, policy, communication, seed)?)?;
            if let Some(file) = &args.svg {
                let svg = picture::draw(&title(args, policy), args.groups, &study);
                fs::write(file, svg).within(|| format!("cannot write {}", file.display()))?;
            }
            outcomes.push(study.outcome);
        }
        runs.push(Run { policy, communication, outcomes });
    }
    if globals.json {
        print_json(args, &runs)?;
    } else {
        render::print(&page(args, &runs))?;
    }
    Ok(Answer::Yes)
}

/// What one rule came to with one share of communication, for each seed.
struct Run {
    policy: Policy,
    communication: f64,
    outcomes: Vec<allocation::Outcome>,
}

/// One object for one run, else all of them under `runs`.
fn print_json(args: &Allocation, runs: &[Run]) -> Outcome<()> {
    let row = |run: &Run, seed: u64, outcome| Row {
        policy: run.policy.word(),
        communication: run.communication,
        workload: args.source(),
        groups: format!("{}x{}", args.groups[0], args.groups[1]),
        seed,
        queue: args.order(),
        outcome,
    };
    let rows: Vec<Row<'_>> = runs
        .iter()
        .flat_map(|run| run.outcomes.iter().zip(args.seed..).map(|(it, seed)| row(run, seed, it)))
        .collect();
    match &rows[..] {
        [row] => render::print_json(row)?,
        rows => render::print_json(&json!({ "runs": rows }))?,
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    policy: &'static str,
    communication: f64,
    workload: String,
    groups: String,
    seed: u64,
    queue: String,
    #[serde(flatten)]
    outcome: &'a allocation::Outcome,
}

fn title(args: &Allocation, policy: Policy) -> String {
    let [rows, columns] = args.groups;
    format!("{policy}: {} on {rows}x{columns} groups, {}", args.source(), args.order())
}

fn page(args: &Allocation, runs: &[Run]) -> String {
    let [rows, columns] = args.groups;
    let seeds = match args.seeds {
        1 => format!("seed {}", args.seed),
        n => format!("mean over seeds {} to {}", args.seed, args.seed + n - 1),
    };
    let dead = if args.dead == 0.0 { String::new() } else { format!(", {} % dead", args.dead) };
    let mut table = Table::new(&[
        "policy", ">share", ">used", ">held", ">within", ">beside", ">refused", ">sturdy",
        ">split", ">links", ">slow", ">queue", ">done", ">us", ">p99",
    ]);
    for Run { policy, communication, outcomes } in runs {
        let n = outcomes.len() as f64;
        let mean = |get: fn(&allocation::Outcome) -> f64| outcomes.iter().map(get).sum::<f64>() / n;
        let share = |get| format!("{:.3}", mean(get));
        let few = |get| format!("{:.1}", mean(get));
        table.row([
            policy.word().into(),
            format!("{communication}").into(),
            share(|it| it.utilisation).into(),
            share(|it| it.allocated).into(),
            share(|it| it.internal_fragmentation).into(),
            share(|it| it.external_fragmentation).into(),
            share(|it| it.refused_work).into(),
            share(|it| it.sturdy).into(),
            share(|it| it.split).into(),
            format!("{:.2}", mean(|it| it.links_per_chip)).into(),
            share(|it| it.slowdown).into(),
            number::seconds(mean(|it| it.queue_s)).into(),
            number::seconds(mean(|it| it.completion_s)).into(),
            few(|it| it.us_per_decision).into(),
            few(|it| it.us_p99).into(),
        ]);
    }
    format!(
        "{} on {rows}x{columns} groups{dead}, {}; {seeds}\n{table}{}\
         used, held: sound boards that tasks need, and hold; within: the share of held boards that \
         is not needed;\nbeside: the share of sound boards that is free although the first that \
         waits needs no more;\nrefused: work that the sound machine can never hold; sturdy: chips \
         in partitions whose boards all have\ntwo neighbours; split: chips in partitions of \
         several pieces; links: of a chip within its partition\n",
        args.source(),
        args.order(),
        left_out(runs),
    )
}

/// How many tasks never started, and why: once, where it is the same for all.
fn left_out(runs: &[Run]) -> String {
    let counts = |run: &Run| {
        let sum = |get: fn(&allocation::Outcome) -> u64| run.outcomes.iter().map(get).sum::<u64>();
        format!(
            "of {} tasks {} refused (more boards than the sound machine can ever give them), {} \
             finished at once (they last no time)",
            sum(|it| it.jobs),
            sum(|it| it.refused),
            sum(|it| it.at_once)
        )
    };
    let mut said: Vec<(&Run, String)> = runs.iter().map(|it| (it, counts(it))).collect();
    said.dedup_by(|b, a| a.1 == b.1);
    match &said[..] {
        [(_, only)] => format!("{only}\n"),
        many => many.iter().map(|(run, it)| format!("{}: {it}\n", run.policy)).collect(),
    }
}

impl Allocation {
    fn source(&self) -> String {
        match &self.trace {
            Some(path) => path.display().to_string(),
            None => format!("{} {}", self.jobs, self.workload.workload().word()),
        }
    }

    fn order(&self) -> String {
        let order = match (self.reservation, self.window) {
            (true, _) => "reservation".to_owned(),
            (false, 1) => "strict order".to_owned(),
            (false, n) => format!("window {n}"),
        };
        match (&self.trace, self.reservation) {
            (Some(_), true) => format!("{order}, as they came"),
            (Some(_), false) => format!("{order}, all waiting from the beginning"),
            (None, _) => order,
        }
    }
}

pub(super) fn policies(words: &[String]) -> Outcome<Vec<Policy>> {
    if words.iter().any(|it| it == "all") {
        return Ok(Policy::ALL.to_vec());
    }
    let read = |word: &String| {
        Policy::parse(word).ok_or_else(|| {
            let all: Vec<&str> = Policy::ALL.iter().map(|it| it.word()).collect();
            Failure::new(format!("there is no policy {word:?}"))
                .hint(format!("write one of {}, or all", all.join(", ")))
        })
    };
    let mut named: Vec<Policy> = Vec::new();
    for policy in words.iter().map(read) {
        // Named twice it is meant once.
        let policy = policy?;
        if !named.contains(&policy) {
            named.push(policy);
        }
    }
    Ok(named)
}

fn share(what: &str, value: f64) -> Outcome<Ppm> {
    if (0.0..=1.0).contains(&value) {
        return Ok(Ppm::new((value * 1e6).round() as u32));
    }
    Err(Failure::new(format!("{what} is {value}")).hint("write a share of the whole"))
}

fn per_cent(what: &str, value: f64) -> Outcome<Ppm> {
    if (0.0..=100.0).contains(&value) {
        return Ok(Ppm::new((value * 1e4).round() as u32));
    }
    Err(Failure::new(format!("{what} is {value}")).hint("write per cent, 0 to 100"))
}

fn setup(args: &Allocation, policy: Policy, communication: f64, seed: u64) -> Outcome<Setup> {
    let n_boards = u32::from(args.groups[0]) * u32::from(args.groups[1]);
    let tasks = match &args.trace {
        None => workload::draw(args.workload.workload(), args.jobs as usize, n_boards, seed),
        Some(path) => {
            let jobs = trace::parse(&path.display().to_string(), &read(path)?)
                .within(|| format!("cannot use {}", path.display()))?;
            workload::of_trace(&jobs, args.reservation)
        }
    };
    let queue = match args.reservation {
        true => Queue::Reservation,
        false => Queue::Window(args.window as usize),
    };
    Ok(Setup {
        groups: args.groups,
        policy,
        queue,
        tasks,
        dead: per_cent("--dead", args.dead)?,
        communication: share("--communication", communication)?,
        seed,
    })
}

fn timed(setup: &Setup) -> Outcome<allocation::Study> {
    let mut clock = thread_time();
    allocation::run(setup, &mut clock).within(|| "cannot run the study".to_owned())
}
