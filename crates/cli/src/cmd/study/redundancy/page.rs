//! The study as tables.

use std::fmt::Write as _;

use selvedge_sim::study::redundancy::figure::Verdict;
use selvedge_sim::study::redundancy::restart::Until;
use selvedge_sim::study::redundancy::speedup::{Constants, Reading};

use crate::cmd::study::redundancy::{Crossings, SHARED, Study, Useful};
use crate::render::number;
use crate::render::table::Table;

/// All of them, one below the other.
pub(super) fn draw(study: &Study) -> String {
    let mut page = format!("constants\n{}\n", constants(&study.constants));
    let _ = write!(
        page,
        "T_R on {} nodes in its parts, a scalable program whose traffic grows as √P\n{}{}\n",
        number::grouped(study.overheads[0].nodes as u64),
        overheads(study),
        beside_overheads(study)
    );
    for panel in &study.panels {
        let _ = write!(
            page,
            "figure 13 ({}): {} program, {}, traffic {}\n{}\n",
            panel.panel,
            panel.program,
            panel.network,
            panel.traffic,
            curves(panel)
        );
    }
    let _ = write!(page, "what the paper says, by what D_size is\n{}\n", sentences(study));
    let _ = write!(
        page,
        "mean time to a restart, nodes of {} h, not repaired; in brackets by the plain job's; drawn: {} \
         jobs, seed {}\n{}{}\n",
        study.node_mttf_h,
        study.trials,
        study.seed,
        restarts(study),
        beside_restarts(study)
    );
    let _ = write!(
        page,
        "useful share of all node-hours, checkpoints of {:.1} min at Daly's interval; drawn: {} jobs, \
         seed {}\n{}{}\n",
        study.checkpoint_h * 60.0,
        study.trials,
        study.seed,
        useful(study),
        beside_useful(study)
    );
    let _ = write!(
        page,
        "speed-up with failures counted, a scalable program on a 2D mesh of P nodes for each copy, \
         checkpoints as above\n{}S^R by formula (2), times the useful share by Daly; the sentences above count no failures\n\n",
        recoveries(study)
    );
    if !study.measured.is_empty() {
        let _ = write!(page, "measured\n{}", measured(study));
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// `1.4e9` for what nobody reads in full.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        it if (0.001..1e5).contains(&it) => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => {
            let text = format!("{value:.2e}");
            text.replace(".00e", "e").replace("0e", "e")
        }
    }
}

fn constants(constants: &Constants) -> Table {
    let mut table = Table::new(&["constant", ">value", "unit", "source"]);
    for ((name, unit, source), value) in Constants::SOURCES.into_iter().zip(constants.values()) {
        table.row([name.into(), short(value).into(), unit.into(), source.into()]);
    }
    table
}

fn overheads(study: &Study) -> Table {
    let mut table = Table::new(&[
        "network",
        "mechanism",
        ">traffic",
        ">last traffic",
        ">repair",
        ">compare",
        ">last compare",
        ">assign",
        ">T_R",
        ">S^R/S",
        "T_R grows",
        ">fitted",
        "class",
        "fitted class",
    ]);
    for it in &study.overheads {
        let parts = &it.overhead;
        let secs = |it: f64| format!("{} s", short(it));
        table.row([
            it.network.into(),
            it.mechanism.as_str().into(),
            secs(parts.compare_traffic_s).into(),
            secs(parts.last_traffic_s).into(),
            secs(parts.repair_traffic_s).into(),
            secs(parts.compare_s).into(),
            secs(parts.last_compare_s).into(),
            secs(parts.assignment_s).into(),
            secs(it.sum_s).into(),
            format!("{:.3}", it.share_of_plain).into(),
            it.grows_as.as_str().into(),
            format!("{:.2}", (100.0 * it.power_fitted).round() / 100.0 + 0.0).into(),
            it.class.into(),
            it.class_fitted.into(),
        ]);
    }
    table
}

/// What the parts leave open.
fn beside_overheads(study: &Study) -> String {
    let tmr = &study.overheads[0];
    format!(
        "last: both shadows' memories in the last compare, which §2.4 counts into D_size; definition 8 \
         compares the final result there, so that this is the most\nrepair: the upper bound of (5) and \
         (6); on a {} T_G lies between {:.6} s and {:.6} s\n",
        tmr.network, tmr.overhead.repair_traffic_min_s, tmr.overhead.repair_traffic_s
    )
}

fn curves(panel: &super::PanelRow) -> Table {
    let mut table = Table::new(&[
        "mechanism",
        "grows",
        "class",
        ">fitted power",
        "fitted class",
        ">S^R/S at end",
    ]);
    for it in &panel.curves {
        table.row([
            it.mechanism.as_str().into(),
            it.grows_as.as_str().into(),
            it.class.into(),
            format!("{:.2}", it.power_fitted.max(0.0)).into(),
            it.class_fitted.into(),
            short(it.share_of_plain).into(),
        ]);
    }
    table
}

fn sentences(study: &Study) -> Table {
    let [a, b, c] = Reading::ALL.map(Reading::word);
    let mut table = Table::new(&["place", "says", a, b, c, "found"]);
    for it in &study.sentences {
        let [a, b, c] = it.verdicts.map(Verdict::word);
        table.row([
            it.place.into(),
            it.says.into(),
            a.into(),
            b.into(),
            c.into(),
            it.found.as_str().into(),
        ]);
    }
    table
}

fn hours(hours: f64) -> String {
    if hours * 3600.0 < 1.0 {
        format!("{} ms", short(hours * 3.6e6))
    } else {
        number::seconds(hours * 3600.0)
    }
}

/// Columns of numbers under these names, after that of the processes.
fn by_case(cases: &[Until]) -> Table {
    let names: Vec<String> = cases.iter().map(|it| format!(">{}", it.word())).collect();
    let names = names.iter().map(String::as_str);
    Table::new(&std::iter::once(">processes").chain(names).collect::<Vec<_>>())
}

fn restarts(study: &Study) -> Table {
    let mut table = by_case(&Until::ALL);
    for rows in study.restarts.chunks(Until::ALL.len()) {
        let mut cells = vec![number::grouped(rows[0].processes as u64).into()];
        cells.extend(
            rows.iter().map(|it| format!("{} ({})", hours(it.hours), short_of(it.of_plain)).into()),
        );
        table.row_of(cells);
        if rows.iter().all(|it| it.drawn_hours.is_some()) {
            let drawn = rows.iter().filter_map(|it| it.drawn_hours).map(|it| hours(it).into());
            table.row_of(std::iter::once("drawn".into()).chain(drawn).collect());
        }
    }
    table
}

/// What the columns assume.
fn beside_restarts(study: &Study) -> String {
    let it = &study.mended;
    format!(
        "r = 2 starts again when a pair has died, or at the first silent error of either copy; no rate \
         of these is given: \"silent\" takes all failures as silent\nr = 1 learns nothing of silent \
         errors; r = 3 starts again at two errors of either kind in a cluster (definition 8)\nTMR: a \
         death ends its whole job of the three, the second all comparing; until the third 11/6 of the \
         plain job's time\nTMR mends silent errors by assignment: these alone, with a compare each {}, \
         start {} processes again after {}\n",
        number::seconds(it.compares_every_s),
        number::grouped(it.processes as u64),
        hours(it.hours)
    )
}

fn short_of(times: f64) -> String {
    match times {
        it if it < 10.0 => format!("{it:.2}x"),
        it => format!("{}x", number::grouped(it.round() as u64)),
    }
}

fn useful(study: &Study) -> Table {
    let mut table = by_case(&SHARED);
    for it in &study.useful {
        let mut cells = vec![number::grouped(it.processes as u64).into()];
        cells.extend(it.useful.iter().map(|it| format!("{:.3}", it.closed).into()));
        table.row_of(cells);
        let drawn = |it: &Useful| Some(format!("{:.3} ± {:.3}", it.drawn?, it.drawn_error?));
        if let Some(drawn) = it.useful.iter().map(drawn).collect::<Option<Vec<_>>>() {
            let drawn = drawn.into_iter().map(Into::into);
            table.row_of(std::iter::once("drawn".into()).chain(drawn).collect());
        }
    }
    table
}

fn beside_useful(study: &Study) -> String {
    let from = |p: Option<u64>| {
        p.map_or_else(|| "nowhere".to_owned(), |p| format!("from {} on", number::grouped(p)))
    };
    let crossings = |it: &Crossings| {
        format!(
            "2 over 1 {}, 3 over 1 {}, 3 over 2 {}",
            from(it.two_over_one),
            from(it.three_over_one),
            from(it.three_over_two)
        )
    };
    format!(
        "r = 2, deaths: there are no silent errors; r = 2, silent: all failures are\nDaly's form takes failures as equally likely at all times; copies that outlive some have fewer \
         left, so for them it is too high on large machines\nprocesses from which more replicas leave \
         more, r = 2 by its deaths alone: {}\nthe same with the rising hazard: {}\n",
        crossings(&study.crossings),
        crossings(&study.crossings_exact)
    )
}

fn recoveries(study: &Study) -> Table {
    let mut table = Table::new(&["mechanism", ">most", ">at processes", "class", "fitted class"]);
    let whole = |it: f64| number::grouped(it.round() as u64);
    for it in &study.recoveries {
        let at = match it.is_growing {
            true => format!("still growing at {}", whole(it.most_at)),
            false if it.most < 1.0 => "-".to_owned(),
            false => whole(it.most_at),
        };
        table.row([
            it.name.into(),
            whole(it.most).into(),
            at.into(),
            it.class.word().into(),
            it.class_fitted.word().into(),
        ]);
    }
    table
}

fn measured(study: &Study) -> Table {
    let mut table = Table::new(&[
        "program",
        "mpi",
        ">r",
        ">ranks",
        ">CPU",
        ">formula (9)",
        ">messages/send",
        ">bytes/send",
        "grow as",
        "class",
    ]);
    for program in &study.measured {
        let power = |it: Option<f64>| it.map_or_else(|| "-".to_owned(), |it| format!("P^{it:.2}"));
        for (nth, it) in program.points.iter().enumerate() {
            let grow = format!("{}, {}", power(program.messages_power), power(program.bytes_power));
            let first = |text: &str| if nth == 0 { text.to_owned() } else { String::new() };
            table.row([
                first(&program.program).into(),
                first(&program.mpi).into(),
                first(&program.replicas.to_string()).into(),
                it.ranks.into(),
                format!("{:+.1} %", 100.0 * it.overhead_cpu).into(),
                program.by_formula[nth]
                    .map_or_else(|| "-".to_owned(), |it| format!("{:+.1} %", 100.0 * it))
                    .into(),
                format!("{:.2}", it.messages_per_send).into(),
                format!("{:.0}", it.bytes_per_send).into(),
                first(&grow).into(),
                first(program.class.unwrap_or("-")).into(),
            ]);
        }
    }
    table
}
