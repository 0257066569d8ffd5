//! `selvedge study redundancy`.

mod measured;

mod page;

mod picture;

use std::fs;
use std::path::PathBuf;

use selvedge_sim::dice::Dice;
use selvedge_sim::study::redundancy::class::{self, Order};
use selvedge_sim::study::redundancy::figure::{self, CURVES, Curve, P_MAX, Panel, Sentence};
use selvedge_sim::study::redundancy::recovery::{self, Recovery};
use selvedge_sim::study::redundancy::restart::{self, Checkpoints, NODE_HOURS, Until};
use selvedge_sim::study::redundancy::speedup::{
    Case, Constants, Growth, Mechanism, Network, Overhead,
};
use serde::Serialize;

use crate::Globals;
use crate::cmd::study::redundancy::measured::{About, Measured, Program};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
pub(crate) struct Redundancy {
    /// T'_P: computing of each node, in seconds.
    #[arg(long, value_name = "S", default_value_t = Constants::BLUE_GENE_L.compute_s)]
    compute: f64,
    /// M: how often TMR compares memories; 1 at least, the last compare.
    #[arg(long, value_name = "N", default_value_t = Constants::BLUE_GENE_L.compares)]
    compares: f64,
    /// Sends of a process in the run, each compared before it leaves (K_j); one compare follows at
    /// the end.
    #[arg(long, value_name = "N", default_value_t = Constants::BLUE_GENE_L.sends)]
    sends: f64,
    /// F: how often an error is found; 0 for none.
    #[arg(long, value_name = "N", default_value_t = Constants::BLUE_GENE_L.errors)]
    errors: f64,
    /// D_size on one node: what a send carries, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1.0)]
    message_mib: f64,
    /// d: the memory of a node, in Gbit.
    #[arg(long, value_name = "GBIT", default_value_t = 4.0)]
    memory_gbit: f64,
    /// b: one link, one direction, in Gbit/s.
    #[arg(long, value_name = "GBPS", default_value_t = 1.4)]
    link_gbps: f64,
    /// Mean time to failure of a node, in hours.
    #[arg(long, value_name = "H", default_value_t = NODE_HOURS)]
    node_mttf: f64,
    /// What every 64 nodes write checkpoints with, in Gbit/s.
    #[arg(long, value_name = "GBPS", default_value_t = 1.0)]
    io_gbps: f64,
    /// Drawn jobs for each mean time.
    #[arg(long, value_name = "N", default_value_t = 400)]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=100_000))]
    trials: u32,
    /// For all dice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Measured points to show beside the model in place of ours, which the page names; `none`
    /// for no points: {"points":[{"program","mpi","ranks","replicas", "overhead_cpu",
    /// "messages_per_send","bytes_per_send"}]}.
    #[arg(long, value_name = "FILE|none")]
    measured: Option<PathBuf>,
    /// Draw figure 13, the mean times and the measured points into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The machine whose T_R is told part by part: BlueGene/L's 64 racks.
const P_TOLD: f64 = 65_536.0;
/// Machines for which mean times are told; the drawn ones up to the fourth.
const JOBS: [f64; 6] = [4.0, 100.0, 1_000.0, 10_000.0, 1e6, 1e8];
/// The largest job that is drawn: a million processes take seconds until a cluster is empty.
const DRAWN_MAX: f64 = 10_000.0;
/// The largest job whose useful share is drawn: no share waits for an empty cluster.
const SHARED_MAX: f64 = 1e6;
/// Whose useful share is told.
const SHARED: [Until; 5] =
    [Until::First, Until::PairEmpty, Until::PairFirst, Until::OneLeft, Until::JobsOneLeft];

/// All that is told.
#[derive(Debug, Serialize)]
struct Study {
    seed: u64,
    trials: u32,
    constants: Constants,
    overheads: Vec<OverheadRow>,
    panels: Vec<PanelRow>,
    sentences: Vec<Sentence>,
    node_mttf_h: f64,
    restarts: Vec<RestartRow>,
    mended: Mended,
    checkpoint_h: f64,
    useful: Vec<UsefulRow>,
    /// The same for the picture.
    #[serde(skip)]
    useful_curve: Vec<UsefulRow>,
    crossings: Crossings,
    /// The same by the sum over the chance of still running.
    crossings_exact: Crossings,
    recoveries: Vec<Recovery>,
    /// Where the points come from, if their file says it.
    measured_about: Option<About>,
    measured: Vec<Program>,
}

/// The mean time to a restart of classic TMR where all errors are silent and mended at the next
/// compare.
#[derive(Debug, Serialize)]
struct Mended {
    processes: f64,
    compares_every_s: f64,
    hours: f64,
}

/// T_R of one mechanism on one network.
#[derive(Debug, Serialize)]
struct OverheadRow {
    network: &'static str,
    mechanism: String,
    nodes: f64,
    #[serde(flatten)]
    overhead: Overhead,
    sum_s: f64,
    speedup: f64,
    share_of_plain: f64,
    grows_as: String,
    /// The power of P with which T_R grows on figure 13's largest machines.
    power_fitted: f64,
    class: &'static str,
    class_fitted: &'static str,
}

/// One panel of figure 13.
#[derive(Debug, Serialize)]
struct PanelRow {
    panel: char,
    program: &'static str,
    network: &'static str,
    traffic: &'static str,
    curves: Vec<CurveRow>,
}

#[derive(Debug, Serialize)]
struct CurveRow {
    mechanism: String,
    power_fitted: f64,
    class_fitted: &'static str,
    grows_as: String,
    class: &'static str,
    share_of_plain: f64,
}

/// One mean time to a restart.
#[derive(Debug, Serialize)]
struct RestartRow {
    processes: f64,
    case: &'static str,
    replicas: u32,
    hours: f64,
    /// In units of the plain job's.
    of_plain: f64,
    drawn_hours: Option<f64>,
    drawn_error_hours: Option<f64>,
}

/// What of all nodes' time is of use.
#[derive(Debug, Serialize)]
struct UsefulRow {
    processes: f64,
    useful: Vec<Useful>,
}

/// The same of one case, by each node-hour that is paid for.
#[derive(Debug, Serialize)]
struct Useful {
    case: &'static str,
    /// By Daly, whose hazard is constant.
    closed: f64,
    drawn: Option<f64>,
    drawn_error: Option<f64>,
}

/// From how many processes on more replicas leave more useful node-hours, two as deaths alone.
#[derive(Debug, Serialize)]
struct Crossings {
    two_over_one: Option<u64>,
    three_over_one: Option<u64>,
    three_over_two: Option<u64>,
}

pub(crate) fn run(args: &Redundancy, globals: &Globals) -> Outcome {
    let constants = constants(args)?;
    let measured = measured::choose(args.measured.as_deref())?;
    let panels = figure::panels(constants);
    let study = study(args, constants, &panels, &measured);
    if let Some(file) = &args.svg {
        let means: Vec<(Until, Vec<(f64, f64)>)> =
            Until::ALL.map(|it| (it, means(args, it))).into();
        let svg = picture::draw(&panels, &means, &study);
        fs::write(file, svg).within(|| format!("cannot write {}", file.display()))?;
    }
    if globals.json {
        render::print_json(&study)?;
    } else {
        render::print(&page::draw(&study))?;
    }
    Ok(Answer::Yes)
}

fn study(args: &Redundancy, constants: Constants, panels: &[Panel], measured: &Measured) -> Study {
    let checkpoints = checkpoints(args);
    let mttf = args.node_mttf;
    let by_daly = |until, p| restart::useful_share(mttf * restart::mean(until, p), checkpoints);
    let by_sum = |until, p| restart::exact_share(until, p, mttf, checkpoints);
    Study {
        seed: args.seed,
        trials: args.trials,
        constants,
        overheads: overheads(constants),
        panels: panels.iter().map(panel_row).collect(),
        sentences: figure::sentences(constants),
        node_mttf_h: mttf,
        restarts: restarts(args),
        mended: mended(args, 10_000.0),
        checkpoint_h: checkpoints.write_h,
        useful: usefuls(args, checkpoints),
        useful_curve: decades(8, 5).map(|p| useful(mttf, checkpoints, p)).collect(),
        crossings: crossings(by_daly),
        crossings_exact: crossings(by_sum),
        recoveries: recovery::recoveries(&scalable(constants, Network::MESH), mttf, checkpoints),
        measured_about: measured.about.clone(),
        measured: measured.programs(constants),
    }
}

fn constants(args: &Redundancy) -> Outcome<Constants> {
    // Beyond these the formulas' products are no longer numbers.
    let (tiny, huge) = (1e-9, 1e15);
    let given = [
        ("--compute", args.compute, tiny),
        ("--compares", args.compares, 1.0),
        ("--sends", args.sends, 0.0),
        ("--errors", args.errors, 0.0),
        ("--message-mib", args.message_mib, tiny),
        ("--memory-gbit", args.memory_gbit, tiny),
        ("--link-gbps", args.link_gbps, tiny),
        ("--node-mttf", args.node_mttf, tiny),
        ("--io-gbps", args.io_gbps, tiny),
    ];
    for (name, value, least) in given {
        if !(least..=huge).contains(&value) {
            let text = |it: f64| {
                if it.abs() < 1e6 && (it == 0.0 || 1e-3 <= it.abs()) {
                    it.to_string()
                } else {
                    format!("{it:e}")
                }
            };
            return Err(Failure::new(format!("{name} is {}", text(value))).hint(format!(
                "write a number from {} to {}",
                text(least),
                text(huge)
            )));
        }
    }
    Ok(Constants {
        compute_s: args.compute,
        compares: args.compares,
        sends: args.sends,
        errors: args.errors,
        message_bits: args.message_mib * 8.0 * 1_048_576.0,
        memory_bits: args.memory_gbit * 1e9,
        link_bps: args.link_gbps * 1e9,
        ..Constants::BLUE_GENE_L
    })
}

/// Each 64 nodes write their memories over one line of input and output, as BlueGene/L's did.
fn checkpoints(args: &Redundancy) -> Checkpoints {
    let write_h = 64.0 * args.memory_gbit / args.io_gbps / 3600.0;
    Checkpoints { write_h, restart_h: write_h }
}

/// A scalable program with the most traffic that §4 gives one.
fn scalable(constants: Constants, network: Network) -> Case {
    Case { constants, network, other: Growth::Constant, traffic: Growth::Root }
}

fn overheads(constants: Constants) -> Vec<OverheadRow> {
    let mut rows = Vec::new();
    for network in Network::REAL {
        let case = scalable(constants, network);
        for mechanism in CURVES.into_iter().filter(|it| *it != Mechanism::Plain) {
            let overhead = case.overhead(mechanism, P_TOLD);
            let fit = class::fit(&case, mechanism, P_MAX);
            let order = class::overhead_order(&case, mechanism);
            rows.push(OverheadRow {
                network: network.name,
                mechanism: mechanism.word(),
                nodes: P_TOLD,
                overhead,
                sum_s: overhead.sum(),
                speedup: case.redundant_speedup(mechanism, P_TOLD),
                share_of_plain: case.redundant_speedup(mechanism, P_TOLD) / case.speedup(P_TOLD),
                grows_as: order.expect("all but plain have a T_R").to_string(),
                power_fitted: fit.overhead_power.expect("and it takes time"),
                class: class::class(&case, mechanism).word(),
                class_fitted: fit.class.word(),
            });
        }
    }
    rows
}

fn panel_row(panel: &Panel) -> PanelRow {
    let row = |mechanism: Mechanism| {
        let Curve { fit, class, share_at_end, .. } = figure::curve(&panel.case, mechanism);
        let order: Order = class::redundant_order(&panel.case, mechanism);
        CurveRow {
            mechanism: mechanism.word(),
            power_fitted: fit.redundant_power,
            class_fitted: fit.class.word(),
            grows_as: order.to_string(),
            class: class.word(),
            share_of_plain: share_at_end,
        }
    };
    PanelRow {
        panel: panel.letter,
        program: match panel.case.other {
            Growth::Constant => "scalable",
            _ => "weakly scalable",
        },
        network: panel.case.network.name,
        traffic: panel.case.traffic.word(),
        curves: CURVES.into_iter().map(row).collect(),
    }
}

fn restarts(args: &Redundancy) -> Vec<RestartRow> {
    let mut dice = Dice::new(args.seed, "redundancy/restart");
    let mut rows = Vec::new();
    for p in JOBS {
        for until in Until::ALL {
            let mean = restart::mean(until, p);
            let drawn = (p <= DRAWN_MAX)
                .then(|| restart::simulated(until, p as u64, args.trials, &mut dice));
            rows.push(RestartRow {
                processes: p,
                case: until.word(),
                replicas: until.replicas(),
                hours: args.node_mttf * mean,
                of_plain: mean * p,
                drawn_hours: drawn.map(|it| args.node_mttf * it.0),
                drawn_error_hours: drawn.map(|it| args.node_mttf * it.1),
            });
        }
    }
    rows
}

fn mended(args: &Redundancy, processes: f64) -> Mended {
    let compares_every_s = args.compute / args.compares;
    let every = compares_every_s / 3600.0 / args.node_mttf;
    let hours = args.node_mttf * restart::mean_mended(processes, every);
    Mended { processes, compares_every_s, hours }
}

fn useful(node_mttf: f64, checkpoints: Checkpoints, p: f64) -> UsefulRow {
    let of = |until: Until| {
        let share = restart::useful_share(node_mttf * restart::mean(until, p), checkpoints);
        let closed = share / f64::from(until.replicas());
        Useful { case: until.word(), closed, drawn: None, drawn_error: None }
    };
    UsefulRow { processes: p, useful: SHARED.map(of).into() }
}

/// What is told, with drawn ones beside it.
fn usefuls(args: &Redundancy, checkpoints: Checkpoints) -> Vec<UsefulRow> {
    let mut dice = Dice::new(args.seed, "redundancy/useful");
    let mut rows: Vec<UsefulRow> =
        JOBS.iter().map(|p| useful(args.node_mttf, checkpoints, *p)).collect();
    for row in rows.iter_mut().filter(|it| it.processes <= SHARED_MAX) {
        for (until, it) in SHARED.into_iter().zip(&mut row.useful) {
            let job = (until, row.processes as u64);
            let trials = (args.trials, &mut dice);
            let (share, error) = restart::drawn_share(job, args.node_mttf, checkpoints, trials);
            let replicas = f64::from(until.replicas());
            it.drawn = Some(share / replicas);
            it.drawn_error = Some(error / replicas);
        }
    }
    rows
}

/// By what a job's share of its nodes' time is.
fn crossings(share: impl Fn(Until, f64) -> f64) -> Crossings {
    let by_node = |until: Until, p| share(until, p) / f64::from(until.replicas());
    let first = |less, more| first_where(|p| by_node(less, p as f64) < by_node(more, p as f64));
    Crossings {
        two_over_one: first(Until::First, Until::PairEmpty),
        three_over_one: first(Until::First, Until::OneLeft),
        three_over_two: first(Until::PairEmpty, Until::OneLeft),
    }
}

/// The first number up to 10^9 from which something is so: twentieths of decades find between
/// which two it begins, bisection where.
fn first_where(is_so: impl Fn(u64) -> bool) -> Option<u64> {
    let mut below = 0;
    for p in decades(9, 20).map(|it| it.ceil() as u64) {
        if is_so(p) {
            let mut from = p;
            while 1 < from - below {
                let middle = below + (from - below) / 2;
                if is_so(middle) {
                    from = middle;
                } else {
                    below = middle;
                }
            }
            return Some(from);
        }
        below = p;
    }
    None
}

/// The curve of one mean time, from one process to 10^8.
fn means(args: &Redundancy, until: Until) -> Vec<(f64, f64)> {
    decades(8, 5).map(|p| (p, args.node_mttf * restart::mean(until, p))).collect()
}

/// From 1 to 10^n, so many a decade.
fn decades(n: i32, of_each: i32) -> impl Iterator<Item = f64> {
    (0..=n * of_each).map(move |it| 10f64.powf(f64::from(it) / f64::from(of_each)))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use selvedge_sim::study::redundancy::figure;
    use unicode_width::UnicodeWidthStr as _;

    use super::{Redundancy, constants, first_where, measured, page, picture, study};

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: Redundancy,
    }

    /// The page, none of whose lines is too wide for a terminal, and the picture without its mean
    /// times.
    fn drawn(words: &[&str]) -> (String, String) {
        let args = [&["study", "--trials", "10"], words].concat();
        let args = Words::try_parse_from(args).unwrap().args;
        let constants = constants(&args).unwrap();
        let measured = measured::choose(args.measured.as_deref()).unwrap();
        let panels = figure::panels(constants);
        let study = study(&args, constants, &panels, &measured);
        let page = anstream::adapter::strip_str(&page::draw(&study)).to_string();
        for line in page.lines() {
            assert!(line.width() <= 100, "{words:?}: {} columns: {line}", line.width());
        }
        (page, picture::draw(&panels, &[], &study))
    }

    #[test]
    fn no_line_is_wider_than_a_hundred_columns_with_small_constants_or_large() {
        let small =
            ["--memory-gbit", "1e-6", "--sends", "0", "--errors", "0", "--node-mttf", "1e9"];
        let large =
            ["--compute", "1e9", "--compares", "1e6", "--sends", "1e9", "--link-gbps", "1e-3"];
        for words in [small, large] {
            let (page, _) = drawn(&words);
            assert!(page.contains("by an option"), "{page}");
        }
    }

    /// Goal: points that were measured stand beside the model, with their machine, and their
    /// numbers of processes can be read.  Method: the page and the picture with and without them.
    #[test]
    fn measured_points_are_drawn_unless_none_are_asked_for() {
        let (page, picture) = drawn(&[]);
        let in_one_line = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [&in_one_line, &picture] {
            for said in ["measured on two cores", "2026-", "Open MPI 4.1.4", "stmr-cost", "ring"] {
                assert!(text.contains(said), "{said}: {text}");
            }
        }
        for ticks in ["2", "4", "8", "16"] {
            let tick = format!("text-anchor=\"middle\" fill=\"#555\">{ticks}</text>");
            assert_eq!(picture.matches(&tick).count(), 4, "{ticks} in each of four frames");
        }
        // 18 points in each frame, and a name for each of eight programs.
        assert_eq!(picture.matches("<polygon").count(), 4 * 18 + 8);
        let (page, picture) = drawn(&["--measured", "none"]);
        for text in [&page, &picture] {
            assert!(!text.contains("measured on") && !text.contains("<polygon"), "{text}");
        }
    }

    #[test]
    fn a_crossing_is_the_first_number_and_not_the_next_point_of_a_grid() {
        for first in [1, 2, 3, 1_196, 2_402, 999_999_999] {
            assert_eq!(first_where(|p| first <= p), Some(first));
        }
        assert_eq!(first_where(|_| false), None);
        assert_eq!(first_where(|p| 1_000_000_000 < p), None);
    }
}
