//! `selvedge study pods`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use selvedge_model::unit::Ppm;
use selvedge_sim::study::pods::{self, Ask, Largest, Pod, Run};
use selvedge_sim::trace::mix::{self, Mix};
use selvedge_sim::trace::{self, Cell, Scaled, TraceJob};
use serde_json::json;

use crate::Globals;
use crate::cmd::sim::read;
use crate::cmd::study::allocation::policies;
use crate::cmd::study::thread_time;
use crate::failure::{Answer, Outcome, Within as _};
use crate::render::chart::{Axis, BELOW, BESIDE, Chart, LEGEND_ROW, escaped, sheet};
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
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    watched: u64,
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
    let n_watched = usize::try_from(args.watched).unwrap_or(usize::MAX).min(jobs.len());
    let ask = Ask { n_watched, curve: true };
    let fixed = policies(&args.policy)?.into_iter().map(Pod::Static);
    let pods = std::iter::once(Pod::Switched).chain(fixed);
    let runs: Vec<Run> = pods.map(|pod| timed(pod, &jobs, ask)).collect();
    let arriving = pods::while_cubes_arrive(args.seed);
    let source = args.trace.as_ref().map_or_else(
        || format!("{JOBS} jobs of the tpuv4 mix at load 0.85, seed {}", args.seed),
        |it| it.display().to_string(),
    );
    if let Some(file) = &args.svg {
        fs::write(file, draw(&source, &runs, &arriving))
            .within(|| format!("cannot write {}", file.display()))?;
    }
    if globals.json {
        let arriving = arriving.iter().map(|[a, b]| json!({"switched": a, "static": b}));
        let arriving: Vec<_> = arriving.collect();
        let outcomes: Vec<_> = runs.iter().map(|it| &it.outcome).collect();
        render::print_json(&json!({
            "trace": source,
            "watched": n_watched,
            "pods": outcomes,
            "arriving": arriving,
        }))?;
        return Ok(Answer::Yes);
    }
    render::print(&page(&source, n_watched, &runs, &arriving))?;
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
         jobs\n{table}largest: the slice that could have been placed, mean over time; passes: \
         processor time of the scheduler\nwhile cubes arrive: with {} of {} there, {} chips can be used \
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
        let mix = Mix { n_jobs: JOBS, cell: Cell::of(1, CHIPS), load, scaled: Scaled::Arrivals };
        return Ok(mix::draw(args.seed, mix));
    };
    Ok(trace::parse(&path.display().to_string(), &read(path)?)?)
}

fn timed(pod: Pod, jobs: &[TraceJob], ask: Ask) -> Run {
    let mut clock = thread_time();
    pods::run(pod, jobs, ask, &mut clock)
}

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 240.0;
/// The height of a chart of one rule among many.
const LOW: f64 = 110.0;
/// More curves than these in one chart are a tangle; then each rule has a chart of its own.
const CURVES_MAX: usize = 4;
/// Above a chart.
const ABOVE: f64 = 40.0;
fn draw(source: &str, runs: &[Run], arriving: &[[u32; 2]]) -> String {
    let end = runs.iter().filter_map(|it| it.largest.last()).map(|it| it.at).max();
    let (time, unit) = Axis::time(end.map_or(1.0, |it| it.as_secs_f64()));
    let chips = || Axis { name: "chips".to_owned(), high: CHIPS as f64 };
    // The switched pod is the first, and stands beside each of the others.
    let shown: Vec<Vec<usize>> = match runs.len() {
        n if n <= CURVES_MAX => vec![(0..n).collect()],
        n => (1..n).map(|nth| vec![0, nth]).collect(),
    };
    let height = if shown.len() == 1 { HEIGHT } else { LOW };
    let room = |height: f64| height + BELOW + LEGEND_ROW + ABOVE;
    let title = format!("a switched and a static pod: {source}");
    let below = 40.0 + shown.len() as f64 * room(height);
    let mut svg = sheet(WIDTH + BESIDE + 24.0, below + room(HEIGHT) + 20.0, &title);
    let _ = writeln!(svg, "<text class=\"h\" x=\"{BESIDE}\" y=\"26\">{}</text>", escaped(&title));
    for (place, which) in shown.iter().enumerate() {
        let chart = Chart {
            title: "largest slice that could be placed".to_owned(),
            at: [BESIDE, 40.0 + ABOVE + place as f64 * room(height)],
            size: [WIDTH, height],
            x: time.clone(),
            y: chips(),
        };
        chart.frame(&mut svg);
        for (nth, run) in which.iter().map(|it| &runs[*it]).enumerate() {
            let at = |it: &Largest| (it.at.as_secs_f64() / unit, f64::from(it.chips));
            let points: Vec<(f64, f64)> = run.largest.iter().map(at).collect();
            chart.steps(&mut svg, &points, nth);
        }
        let names: Vec<String> = which.iter().map(|it| runs[*it].outcome.pod.clone()).collect();
        chart.legend(&mut svg, &names, CURVES_MAX);
    }
    let n_cubes = arriving.len();
    let chart = Chart {
        title: "chips that can be used together while cubes arrive one by one".to_owned(),
        at: [BESIDE, below + ABOVE],
        size: [WIDTH, HEIGHT],
        x: Axis { name: "cubes that are there".to_owned(), high: n_cubes as f64 },
        y: chips(),
    };
    chart.frame(&mut svg);
    for nth in 0..2 {
        let at = |(it, n): (&[u32; 2], u32)| (f64::from(n), f64::from(it[nth]));
        let points: Vec<(f64, f64)> =
            std::iter::once((0.0, 0.0)).chain(arriving.iter().zip(1..).map(at)).collect();
        chart.steps(&mut svg, &points, nth);
    }
    chart.legend(&mut svg, &["switched", "static"].map(str::to_owned), CURVES_MAX);
    svg.push_str("</svg>\n");
    svg
}
