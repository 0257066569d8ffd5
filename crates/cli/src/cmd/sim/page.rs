//! A study's outcome for people.

use selvedge_sim::summary::Summary;

use crate::cmd::sim::Compared;
use crate::render::facts::Facts;
use crate::render::table::{Cell, Table};
use crate::render::{number, style};

/// One run: what became of the jobs, how long they waited, what broke.
pub(super) fn summary(title: &str, run: &Summary, wall_s: f64) -> String {
    let bold = style::TITLE;
    let mut facts = Facts::new(format!("{bold}{title}{bold:#}, seed {}", run.seed));
    facts.add("jobs", jobs(run));
    let wait = &run.wait_s;
    let [mean, half, most] = [wait.mean, wait.p50, wait.p99].map(number::seconds);
    let least = if run.jobs.waiting == 0 { "" } else { ", at least: some still wait" };
    facts.add(
        "wait",
        format!("{mean} on average, half up to {half}, 99 of 100 up to {most}{least}"),
    );
    let [utilisation, arriving, goodput, hit] =
        [run.utilisation, run.utilisation_to_last_arrival, run.goodput, run.interrupted]
            .map(number::share);
    facts.add(
        "utilisation",
        format!("{utilisation} of chip-time held by jobs, {arriving} until the last one arrived"),
    );
    facts.add("goodput", format!("{goodput} of that kept as work"));
    facts.add("interrupted", format!("{hit} of the jobs that ran, by faults (published: ~1 %)"));
    let preemptions = number::counted(run.preemptions, "preemption");
    let moves = number::counted(run.moves, "defragmentation");
    facts.add("scheduling", format!("{preemptions}, {moves}"));
    let (cases, repairs) = (number::counted(run.cases, "case"), number::grouped(run.repairs));
    facts.add("repair", format!("{cases} opened, {repairs} closed"));
    let (verdict, colour) = match run.violations {
        0 => ("no rule was broken".to_owned(), style::GOOD),
        n => (format!("rules were broken {}", number::counted(n, "time")), style::BAD),
    };
    facts.add("judge", format!("{colour}{verdict}{colour:#}"));
    facts.add("digest", &run.digest);
    let rate = number::grouped((run.inputs as f64 / wall_s.max(1e-9)) as u64);
    let [simulated, wall] = [run.simulated_s, wall_s].map(number::seconds);
    let inputs = number::counted(run.inputs, "input");
    facts.add("simulated", format!("{simulated}, {inputs}"));
    facts.add("took", format!("{wall}, {rate} inputs a second"));
    facts.add_list("violations", run.violation_list.clone());
    let availability = run.availability.iter().map(|it| {
        let chips = number::grouped(u64::from(it.chips));
        format!("{chips:>6} chips  {}", number::share(it.share))
    });
    facts.add_list("a slice could have been placed on sound parts", availability.collect());
    let faults = run.faults.iter().filter(|it| it.n != 0);
    let faults =
        faults.map(|it| format!("{:>6}  {}", number::grouped(it.n), it.kind.replace('_', " ")));
    facts.add_list("faults", faults.collect());
    facts.to_string()
}

fn jobs(run: &Summary) -> String {
    let jobs = &run.jobs;
    let ends = [
        (jobs.finished, "finished"),
        (jobs.failed, "failed"),
        (jobs.refused, "refused"),
        (jobs.cancelled, "cancelled"),
        (jobs.running, "still running"),
        (jobs.waiting, "still waiting"),
        (jobs.lost.saturating_sub(jobs.running + jobs.waiting), "lost"),
    ];
    let ends = ends.iter().filter(|(n, _)| *n != 0);
    let ends: Vec<String> =
        ends.map(|(n, word)| format!("{} {word}", number::grouped(*n))).collect();
    let submitted = number::grouped(jobs.submitted);
    if ends.is_empty() {
        return format!("{submitted} submitted");
    }
    format!("{submitted} submitted: {}", ends.join(", "))
}

/// The same jobs with backfill, preemption and defragmentation each on and off, with each of the
/// seeds from `seed` on: means, and where there are several seeds the least and the most.
pub(super) fn comparison(title: &str, seed: u64, n_seeds: u64, runs: &[Compared]) -> String {
    let mut table = Table::new(&[
        "backfill",
        "preempt",
        "defragment",
        ">mean wait",
        ">half wait up to",
        ">99 of 100 up to",
        ">utilisation",
        ">to last arrival",
        ">preemptions",
        ">moves",
        ">violations",
    ]);
    let n_seeds = usize::try_from(n_seeds).unwrap_or(usize::MAX).max(1);
    for same in runs.chunks(n_seeds) {
        let Some(Compared { backfill, preempt, defragment, .. }) = same.first() else { continue };
        let on = |it: &bool| match it {
            true => Cell::styled("on", style::GOOD),
            false => Cell::styled("off", style::FAINT),
        };
        let each = |get: fn(&Summary) -> f64, show: fn(f64) -> String| {
            spread(same.iter().map(|it| get(&it.summary)).collect(), show)
        };
        let count = |it: f64| number::grouped(it.round() as u64);
        let n_violations: u64 = same.iter().map(|it| it.summary.violations).sum();
        let colour = if n_violations == 0 { style::PLAIN } else { style::BAD };
        table.row([
            on(backfill),
            on(preempt),
            on(defragment),
            each(|it| it.wait_s.mean, number::seconds).into(),
            each(|it| it.wait_s.p50, number::seconds).into(),
            each(|it| it.wait_s.p99, number::seconds).into(),
            each(|it| it.utilisation, number::share).into(),
            each(|it| it.utilisation_to_last_arrival, number::share).into(),
            each(|it| it.preemptions as f64, count).into(),
            each(|it| it.moves as f64, count).into(),
            Cell::styled(number::grouped(n_violations), colour),
        ]);
    }
    let bold = style::TITLE;
    let seeds = match n_seeds {
        1 => format!("seed {seed}; --seeds 5 shows how much hangs on it"),
        n => {
            let last = seed.saturating_add(n as u64 - 1);
            format!("seeds {seed} to {last}: mean (least to most)")
        }
    };
    format!("{bold}{title}{bold:#}, {seeds}\n\n{table}")
}

/// The mean of a figure over several runs, with the least and the most; one run's alone.
fn spread(values: Vec<f64>, show: fn(f64) -> String) -> String {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let least = values.iter().copied().min_by(f64::total_cmp).unwrap_or(mean);
    let most = values.iter().copied().max_by(f64::total_cmp).unwrap_or(mean);
    match values.len() {
        0 | 1 => show(mean),
        _ => format!("{} ({} to {})", show(mean), show(least), show(most)),
    }
}
