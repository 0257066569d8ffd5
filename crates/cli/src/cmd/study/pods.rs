//! `selvedge study pods`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use selvedge_model::unit::{Ppm, Span};
use selvedge_sim::study::pods::{self, Ask, Pod, Run};
use selvedge_sim::trace::mix::{self, Mix};
use selvedge_sim::trace::{self, Scaled, TraceJob};
use serde_json::json;

use crate::Globals;
use crate::cmd::study::allocation::policies;
use crate::failure::{Answer, Outcome, Within as _};
use crate::render::table::Table;
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Pods {
    /// Jobs from a table: job id, arrival (s), topology, shape, size, duration (s); without, 400
    /// drawn from the published TPUv4 slice mix at load 0.85.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Rules of placement on the static pod: first-fit, best-fit, anchored and so on as in
    /// `study allocation`, or `all`.
    #[arg(long, value_name = "POLICY", value_delimiter = ',')]
    #[arg(default_value = "first-fit,best-fit,anchored")]
    policy: Vec<String>,
    /// For all dice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Times are those of so many jobs from the first on.
    #[arg(long, value_name = "N", default_value_t = 101)]
    watched: usize,
    /// Draw the largest slice that could be placed over time, and the usable chips while cubes
    /// arrive, into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Chips of the published mix's pod.
const CHIPS: u64 = 4096;
/// Jobs where no trace is given.
const JOBS: u64 = 400;

pub(crate) fn run(args: &Pods, globals: &Globals) -> Outcome {
    let jobs = jobs(args)?;
    let ask = Ask { n_watched: args.watched, curve: true };
    let fixed = policies(&args.policy)?.into_iter().map(Pod::Static);
    let pods = std::iter::once(Pod::Switched).chain(fixed);
    let runs: Vec<Run> = pods.map(|pod| timed(pod, &jobs, ask)).collect();
    let arriving = pods::while_cubes_arrive(args.seed);
    if let Some(file) = &args.svg {
        fs::write(file, draw(&runs, &arriving))
            .within(|| format!("cannot write {}", file.display()))?;
    }
    let source = args.trace.as_ref().map_or_else(
        || format!("{JOBS} jobs of the tpuv4 mix at load 0.85, seed {}", args.seed),
        |it| it.display().to_string(),
    );
    if globals.json {
        let arriving = arriving.iter().map(|[a, b]| json!({"switched": a, "static": b}));
        let arriving: Vec<_> = arriving.collect();
        let outcomes: Vec<_> = runs.iter().map(|it| &it.outcome).collect();
        render::print_json(&json!({
            "trace": source,
            "watched": args.watched,
            "pods": outcomes,
            "arriving": arriving,
        }))?;
        return Ok(Answer::Yes);
    }
    render::print(&page(&source, args.watched, &runs, &arriving))?;
    Ok(Answer::Yes)
}

fn page(source: &str, n_watched: usize, runs: &[Run], arriving: &[[u32; 2]]) -> String {
    let mut table = Table::new(&[
        "pod", ">jobs", ">refused", ">queue", ">done", ">used", ">largest", ">passes",
    ]);
    for Run { outcome: it, .. } in runs {
        table.row([
            it.pod.as_str().into(),
            it.jobs.into(),
            it.refused.into(),
            format!("{:.2} h", it.queue_h).into(),
            format!("{:.2} h", it.completion_h).into(),
            format!("{:.3}", it.utilisation).into(),
            format!("{:.0} chips", it.largest_mean).into(),
            number::seconds(it.passes_s).into(),
        ]);
    }
    let nearly = arriving.len().saturating_sub(2);
    format!(
        "{source}, strict order, no set-up time; queue and done: means over the first {n_watched} \
         jobs\n{table}largest: the slice that could have been placed, mean over time; passes: real \
         time of the scheduler\nwhile cubes arrive: with {} of {} there, {} chips can be used \
         together on a switched pod and {} on a static one\n",
        nearly + 1,
        arriving.len(),
        number::grouped(u64::from(arriving[nearly][0])),
        number::grouped(u64::from(arriving[nearly][1])),
    )
}

fn jobs(args: &Pods) -> Outcome<Vec<TraceJob>> {
    let Some(path) = &args.trace else {
        let load = Ppm::new(850_000);
        let mix = Mix { n_jobs: JOBS, n_chips: CHIPS, load, scaled: Scaled::Arrivals };
        return Ok(mix::draw(args.seed, mix));
    };
    let text = fs::read_to_string(path).within(|| format!("cannot read {}", path.display()))?;
    Ok(trace::parse(&path.display().to_string(), &text)?)
}

#[allow(clippy::disallowed_methods, reason = "how long a run really took is told to a person")]
fn timed(pod: Pod, jobs: &[TraceJob], ask: Ask) -> Run {
    let since = Instant::now();
    let mut clock = || Span::nanos(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    pods::run(pod, jobs, ask, &mut clock)
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const COLOURS: [&str; 8] =
    ["#2166ac", "#b2182b", "#d6604d", "#f4a582", "#1b7837", "#762a83", "#8c510a", "#4d4d4d"];
/// Names in a row of the legend.
const PER_ROW: usize = 4;

fn draw(runs: &[Run], arriving: &[[u32; 2]]) -> String {
    let end = runs.iter().filter_map(|it| it.largest.last()).map(|it| it.at).max();
    let end = end.map_or(1.0, |it| it.as_secs_f64()).max(1e-9);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n",
        WIDTH + 60.0,
        2.0 * HEIGHT + 160.0
    );
    let frame = |svg: &mut String, top: f64, title: &str| {
        let _ = writeln!(
            svg,
            "<text x=\"30\" y=\"{:.0}\" font-size=\"15\">{title}</text>\n<rect x=\"30\" \
             y=\"{top:.0}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#888\"/>",
            top - 8.0
        );
    };
    let y = |top: f64, chips: u32| top + HEIGHT * (1.0 - f64::from(chips) / CHIPS as f64);
    frame(&mut svg, 40.0, "chips of the largest slice that could be placed, over time");
    for (nth, run) in runs.iter().enumerate() {
        let (mut points, mut before) = (String::new(), None);
        for it in &run.largest {
            let x = 30.0 + WIDTH * it.at.as_secs_f64() / end;
            if let Some(before) = before {
                let _ = write!(points, "{x:.1},{before:.1} ");
            }
            let at = y(40.0, it.chips);
            let _ = write!(points, "{x:.1},{at:.1} ");
            before = Some(at);
        }
        line(&mut svg, points.trim_end(), COLOURS[nth % COLOURS.len()]);
        legend(&mut svg, nth, 40.0, &run.outcome.pod);
    }
    let top = HEIGHT + 110.0;
    frame(&mut svg, top, "chips that can be used together while cubes arrive");
    for (nth, name) in ["switched", "static"].into_iter().enumerate() {
        let mut points = String::new();
        for (idx, it) in arriving.iter().enumerate() {
            let x = 30.0 + WIDTH * (idx + 1) as f64 / arriving.len() as f64;
            let _ = write!(points, "{x:.1},{:.1} ", y(top, it[nth]));
        }
        line(&mut svg, points.trim_end(), COLOURS[nth]);
        legend(&mut svg, nth, top, name);
    }
    svg.push_str("</svg>\n");
    svg
}

fn line(svg: &mut String, points: &str, colour: &str) {
    let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\"/>");
}

fn legend(svg: &mut String, nth: usize, top: f64, name: &str) {
    let (column, row) = (nth % PER_ROW, nth / PER_ROW);
    let (x, y) = (30.0 + 200.0 * column as f64, top + HEIGHT + 18.0 * (row + 1) as f64);
    let colour = COLOURS[nth % COLOURS.len()];
    let _ = writeln!(svg, "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{colour}\">{name}</text>");
}
