//! `selvedge study redundancy`.

mod measured;

mod page;

mod picture;

use std::fs;
use std::path::PathBuf;

use selvedge_sim::dice::Dice;
use selvedge_sim::study::redundancy::class::{self, Order};
use selvedge_sim::study::redundancy::figure::{self, CURVES, Curve, P_MAX, Panel, Sentence};
use selvedge_sim::study::redundancy::restart::{self, Checkpoints, NODE_HOURS, Until};
use selvedge_sim::study::redundancy::speedup::{
    Case, Constants, Growth, Mechanism, Network, Overhead,
};
use serde::Serialize;

use crate::Globals;
use crate::cmd::study::redundancy::measured::{Measured, Program};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
pub(crate) struct Redundancy {
    /// T'_P: computing of each node, in seconds.
    #[arg(long, value_name = "S", default_value_t = Constants::BLUE_GENE_L.compute_s)]
    compute: f64,
    /// M = K_j + 1: how often contents are compared.
    #[arg(long, value_name = "N", default_value_t = Constants::BLUE_GENE_L.compares)]
    compares: f64,
    /// F: how often an error is found.
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
    /// Measured points to show beside the model: {"points":[{"program","mpi","ranks","replicas",
    /// "overhead_cpu","messages_per_send","bytes_per_send"}]}.
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    /// Draw figure 13, the mean times and the measured points into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The machine whose T_R is told part by part: BlueGene/L's 64 racks.
const P_TOLD: f64 = 65_536.0;
/// Machines for which mean times are told; the drawn ones up to the fourth.
const JOBS: [f64; 6] = [4.0, 100.0, 1_000.0, 10_000.0, 1e6, 1e8];
/// The largest job that is drawn: a million processes take seconds.
const DRAWN_MAX: f64 = 10_000.0;

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
    checkpoint_h: f64,
    useful: Vec<UsefulRow>,
    /// The same for the picture.
    #[serde(skip)]
    useful_curve: Vec<UsefulRow>,
    crossings: Crossings,
    measured: Vec<Program>,
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
    /// For r = 1, 2, 3; by each node-hour that is paid for.
    useful: [f64; 3],
}

/// From how many processes on more replicas leave more useful node-hours.
#[derive(Debug, Serialize)]
struct Crossings {
    two_over_one: Option<f64>,
    three_over_one: Option<f64>,
    three_over_two: Option<f64>,
}

pub(crate) fn run(args: &Redundancy, globals: &Globals) -> Outcome {
    let constants = constants(args)?;
    let measured = match &args.measured {
        Some(path) => measured::read(path)?,
        None => Measured::default(),
    };
    let panels = figure::panels(constants);
    let checkpoints = checkpoints(args);
    let study = Study {
        seed: args.seed,
        trials: args.trials,
        constants,
        overheads: overheads(constants),
        panels: panels.iter().map(panel_row).collect(),
        sentences: figure::sentences(constants),
        node_mttf_h: args.node_mttf,
        restarts: restarts(args),
        checkpoint_h: checkpoints.write_h,
        useful: JOBS.iter().map(|p| useful(args.node_mttf, checkpoints, *p)).collect(),
        useful_curve: decades(8, 5).map(|p| useful(args.node_mttf, checkpoints, p)).collect(),
        crossings: crossings(args.node_mttf, checkpoints),
        measured: measured.programs(),
    };
    if let Some(file) = &args.svg {
        let means: Vec<(Until, Vec<(f64, f64)>)> =
            Until::ALL.map(|it| (it, means(args, it))).into();
        let svg = picture::draw(&panels, &means, &study, &measured);
        fs::write(file, svg).within(|| format!("cannot write {}", file.display()))?;
    }
    if globals.json {
        render::print_json(&study)?;
    } else {
        render::print(&page::draw(&study))?;
    }
    Ok(Answer::Yes)
}

fn constants(args: &Redundancy) -> Outcome<Constants> {
    let given = [
        ("--compute", args.compute),
        ("--compares", args.compares),
        ("--errors", args.errors),
        ("--message-mib", args.message_mib),
        ("--memory-gbit", args.memory_gbit),
        ("--link-gbps", args.link_gbps),
        ("--node-mttf", args.node_mttf),
        ("--io-gbps", args.io_gbps),
    ];
    let is_good = |it: f64| it.is_finite() && (1e-9..=1e15).contains(&it);
    if let Some((name, value)) = given.into_iter().find(|it| !is_good(it.1)) {
        return Err(Failure::new(format!("{name} is {value}")).hint("write a number above 0"));
    }
    Ok(Constants {
        compute_s: args.compute,
        compares: args.compares,
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

fn overheads(constants: Constants) -> Vec<OverheadRow> {
    let mut rows = Vec::new();
    for network in Network::REAL {
        let other = Growth::Constant;
        let case = Case { constants, network, other, traffic: Growth::Root };
        for mechanism in CURVES.into_iter().filter(|it| *it != Mechanism::Plain) {
            let overhead = case.overhead(mechanism, P_TOLD);
            rows.push(OverheadRow {
                network: network.name,
                mechanism: mechanism.word(),
                nodes: P_TOLD,
                overhead,
                sum_s: overhead.sum(),
                speedup: case.redundant_speedup(mechanism, P_TOLD),
                share_of_plain: case.redundant_speedup(mechanism, P_TOLD) / case.speedup(P_TOLD),
                grows_as: class::overhead_order(&case, mechanism).to_string(),
                class: class::class(&case, mechanism).word(),
                class_fitted: class::fit(&case, mechanism, P_MAX).class.word(),
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

fn useful(node_mttf: f64, checkpoints: Checkpoints, p: f64) -> UsefulRow {
    let share = |until: Until| {
        let mean_h = node_mttf * restart::mean(until, p);
        restart::useful_share(mean_h, checkpoints) / f64::from(until.replicas())
    };
    let untils = [Until::First, Until::PairEmpty, Until::OneLeft];
    UsefulRow { processes: p, useful: untils.map(share) }
}

fn crossings(node_mttf: f64, checkpoints: Checkpoints) -> Crossings {
    let first = |less: usize, more: usize| {
        let is_better = |p: &f64| {
            let useful = useful(node_mttf, checkpoints, *p).useful;
            useful[less] < useful[more]
        };
        decades(9, 20).find(is_better)
    };
    Crossings {
        two_over_one: first(0, 1),
        three_over_one: first(0, 2),
        three_over_two: first(1, 2),
    }
}

/// The curve of one mean time, from one process to 10^8.
fn means(args: &Redundancy, until: Until) -> Vec<(f64, f64)> {
    decades(8, 5).map(|p| (p, args.node_mttf * restart::mean(until, p))).collect()
}

/// From 1 to 10^n, so many a decade.
fn decades(n: i32, of_each: i32) -> impl Iterator<Item = f64> {
    (0..=n * of_each).map(move |it| 10f64.powf(f64::from(it) / f64::from(of_each)))
}
