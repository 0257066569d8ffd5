//! The study as tables.

use std::fmt::Write as _;

use selvedge_sim::study::redundancy::restart::Until;
use selvedge_sim::study::redundancy::speedup::{Constants, Reading};

use crate::cmd::study::redundancy::Study;
use crate::render::number;
use crate::render::table::Table;

/// All of them, one below the other.
pub(super) fn draw(study: &Study) -> String {
    let mut page = format!("constants\n{}\n", constants(&study.constants));
    let _ = write!(
        page,
        "T_R on {} nodes in its parts, a scalable program whose traffic grows as √P\n{}\n",
        number::grouped(study.overheads[0].nodes as u64),
        overheads(study)
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
         jobs, seed {}\n{}of silent errors r = 1 learns nothing and r = 2 starts again at the first, at \
         half of the plain job's time\n\n",
        study.node_mttf_h,
        study.trials,
        study.seed,
        restarts(study)
    );
    let _ = write!(
        page,
        "useful share of all node-hours, checkpoints of {:.1} min at Daly's interval\n{}{}\n",
        study.checkpoint_h * 60.0,
        useful(study),
        crossings(study)
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
        ">repair",
        ">compare",
        ">assign",
        ">T_R",
        ">S^R/S",
        "grows",
        "class",
        "fitted",
    ]);
    for it in &study.overheads {
        let parts = &it.overhead;
        let secs = |it: f64| format!("{} s", short(it));
        table.row([
            it.network.into(),
            it.mechanism.as_str().into(),
            secs(parts.compare_traffic_s).into(),
            secs(parts.repair_traffic_s).into(),
            secs(parts.compare_s).into(),
            secs(parts.assignment_s).into(),
            secs(it.sum_s).into(),
            format!("{:.3}", it.share_of_plain).into(),
            it.grows_as.as_str().into(),
            it.class.into(),
            it.class_fitted.into(),
        ]);
    }
    table
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
        let [a, b, c] = it.holds.map(|it| if it { "holds" } else { "no" });
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

fn restarts(study: &Study) -> Table {
    let names = Until::ALL.map(Until::word);
    let heads = [">processes", ">r = 1", ">r = 2", ">r = 3", ">r = 3, deaths alone", "drawn"];
    debug_assert_eq!(heads[4].trim_start_matches('>'), names[3]);
    let mut table = Table::new(&heads);
    for rows in study.restarts.chunks(Until::ALL.len()) {
        let mut cells = vec![number::grouped(rows[0].processes as u64)];
        cells.extend(
            rows.iter().map(|it| format!("{} ({})", hours(it.hours), short_of(it.of_plain))),
        );
        let drawn = rows.iter().map(|it| it.drawn_hours.map(hours));
        let drawn: Option<Vec<String>> = drawn.collect();
        cells.push(drawn.map_or_else(|| "-".to_owned(), |it| it.join(" / ")));
        let cells: [String; 6] = cells.try_into().expect("a processes' count, four means, drawn");
        table.row(cells.map(Into::into));
    }
    table
}

fn short_of(times: f64) -> String {
    match times {
        it if it < 10.0 => format!("{it:.2}x"),
        it => format!("{}x", number::grouped(it.round() as u64)),
    }
}

fn useful(study: &Study) -> Table {
    let mut table = Table::new(&[">processes", ">r = 1", ">r = 2", ">r = 3"]);
    for it in &study.useful {
        let [a, b, c] = it.useful.map(|it| format!("{it:.3}"));
        table.row([number::grouped(it.processes as u64).into(), a.into(), b.into(), c.into()]);
    }
    table
}

fn crossings(study: &Study) -> String {
    let it = &study.crossings;
    let from = |p: Option<f64>| {
        p.map_or_else(|| "nowhere".to_owned(), |p| format!("from {} on", number::grouped(p as u64)))
    };
    format!(
        "processes from which more replicas leave more: 2 over 1 {}, 3 over 1 {}, 3 over 2 {}\n",
        from(it.two_over_one),
        from(it.three_over_one),
        from(it.three_over_two)
    )
}

fn measured(study: &Study) -> Table {
    let mut table = Table::new(&[
        "program",
        "mpi",
        ">r",
        ">ranks",
        ">CPU",
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
                format!("{:.2}", it.messages_per_send).into(),
                format!("{:.0}", it.bytes_per_send).into(),
                first(&grow).into(),
                first(program.class.unwrap_or("-")).into(),
            ]);
        }
    }
    table
}
