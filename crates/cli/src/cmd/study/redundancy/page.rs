//! The study as tables.

use selvedge_sim::study::redundancy::figure::Verdict;
use selvedge_sim::study::redundancy::restart::Until;
use selvedge_sim::study::redundancy::speedup::{Constants, Reading};
use unicode_width::UnicodeWidthStr as _;

use crate::cmd::study::redundancy::measured::About;
use crate::cmd::study::redundancy::{Crossings, SHARED, Study, Useful};
use crate::render::number;
use crate::render::table::Table;

/// How wide a line is at most; a table is wider only by names that were given.
const COLUMNS: usize = 100;

/// All of them, one below the other.
pub(super) fn draw(study: &Study) -> String {
    let mut page = format!("constants\n{}\n", constants(&study.constants));
    let nodes = number::grouped(study.overheads[0].nodes as u64);
    let mut say = |head: &str, table: Table, beside: &[String]| {
        page.push_str(&wrapped(head));
        page.push_str(&table.to_string());
        beside.iter().for_each(|it| page.push_str(&wrapped(it)));
        page.push('\n');
    };
    let head = format!(
        "T_R on {nodes} nodes in its parts, in seconds: a scalable program whose traffic grows as √P"
    );
    say(&head, overheads(study), &beside_overheads(study));
    say("how T_R grows, and what it makes of each mechanism", growths(study), &[]);
    for it in &study.panels {
        let head = format!(
            "figure 13 ({}): {} program, {}, traffic {}",
            it.panel, it.program, it.network, it.traffic
        );
        say(&head, curves(it), &[]);
    }
    let head = "what the paper says, by what D_size is; below each sentence what is found, three \
                figures for the three readings";
    say(head, sentences(study), &[]);
    let drawn = format!("drawn: {} jobs, seed {}", study.trials, study.seed);
    let head = format!(
        "mean time to a restart, nodes of {} h, not repaired; by r = 1: times the plain job's; {drawn}",
        study.node_mttf_h
    );
    say(&head, restarts(study), &beside_restarts(study));
    let head = format!(
        "useful share of all node-hours, checkpoints of {:.1} min at Daly's interval; {drawn}",
        study.checkpoint_h * 60.0
    );
    say(&head, useful(study), &beside_useful(study));
    let head = "speed-up with failures counted, a scalable program on a 2D mesh of P nodes for each \
                copy, checkpoints as above";
    let beside = "S^R by formula (2), times the useful share by Daly; the sentences above count no \
                  failures";
    say(head, recoveries(study), &[beside.to_owned()]);
    if !study.measured.is_empty() {
        say(
            "measured; messages and bytes between replicas for each send",
            measured(study),
            &beside_measured(study),
        );
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// A sentence as lines, those after the first a little to the right.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if COLUMNS < line.width() + 1 + word.width() && !line.trim().is_empty() {
            lines.push_str(&line);
            lines.push('\n');
            line = "   ".to_owned();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    format!("{lines}{line}\n")
}

/// `1.4e9` for what nobody reads in full.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        it if (1e4..1e7).contains(&it) => format!("{value:.0}"),
        it if (0.001..1e4).contains(&it) => {
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
    let usual = Constants::BLUE_GENE_L.values();
    let values = constants.values().into_iter().zip(usual);
    for ((name, unit, source), (value, usual)) in Constants::SOURCES.into_iter().zip(values) {
        let source = if value == usual { source } else { "by an option" };
        table.row([name.into(), short(value).into(), unit.into(), source.into()]);
    }
    table
}

fn overheads(study: &Study) -> Table {
    let mut table = Table::new(&[
        "network",
        "mechanism",
        ">traffic",
        ">+ last",
        ">repair",
        ">compare",
        ">+ last",
        ">assign",
        ">T_R",
    ]);
    for it in &study.overheads {
        let parts = &it.overhead;
        table.row([
            it.network.into(),
            it.mechanism.as_str().into(),
            short(parts.compare_traffic_s).into(),
            short(parts.last_traffic_s).into(),
            short(parts.repair_traffic_s).into(),
            short(parts.compare_s).into(),
            short(parts.last_compare_s).into(),
            short(parts.assignment_s).into(),
            short(it.sum_s).into(),
        ]);
    }
    table
}

/// What the parts leave open.
fn beside_overheads(study: &Study) -> [String; 2] {
    let tmr = &study.overheads[0];
    [
        "+ last: of both shadows' memories in the last compare, which §2.4 counts into D_size; definition 8 \
         compares the final result there, so that this is the most"
            .to_owned(),
        format!(
            "repair: the upper bound of (5) and (6); on a {} T_G lies between {:.6} s and {:.6} s",
            tmr.network, tmr.overhead.repair_traffic_min_s, tmr.overhead.repair_traffic_s
        ),
    ]
}

fn growths(study: &Study) -> Table {
    let mut table = Table::new(&[
        "network",
        "mechanism",
        ">S^R/S",
        "T_R grows",
        "class",
        ">fitted power",
        "fitted class",
    ]);
    for it in &study.overheads {
        table.row([
            it.network.into(),
            it.mechanism.as_str().into(),
            format!("{:.3}", it.share_of_plain).into(),
            it.grows_as.as_str().into(),
            it.class.into(),
            format!("{:.2}", (100.0 * it.power_fitted).round() / 100.0 + 0.0).into(),
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

/// What is found stands below its sentence, a little to the right.
fn sentences(study: &Study) -> Table {
    let [a, b, c] = Reading::ALL.map(Reading::word);
    let mut table = Table::new(&["place", a, b, c, "says"]);
    for it in &study.sentences {
        let [a, b, c] = it.verdicts.map(Verdict::word);
        table.row([it.place.into(), a.into(), b.into(), c.into(), it.says.into()]);
        for found in &it.found {
            let found = format!("  {found}");
            table.row(["".into(), "".into(), "".into(), "".into(), found.into()]);
        }
    }
    table
}

fn hours(hours: f64) -> String {
    if hours * 3600.0 < 1.0 {
        format!("{} ms", short(hours * 3.6e6))
    } else if 1e4 * 24.0 < hours {
        format!("{} d", short(hours / 24.0))
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
        cells.extend(rows.iter().map(|it| hours(it.hours).into()));
        table.row_of(cells);
        let times = rows.iter().map(|it| short_of(it.of_plain).into());
        table.row_of(std::iter::once("by r = 1".into()).chain(times).collect());
        if rows.iter().all(|it| it.drawn_hours.is_some()) {
            let drawn = rows.iter().filter_map(|it| it.drawn_hours).map(|it| hours(it).into());
            table.row_of(std::iter::once("drawn".into()).chain(drawn).collect());
        }
    }
    table
}

/// What the columns assume.
fn beside_restarts(study: &Study) -> [String; 4] {
    let it = &study.mended;
    [
        "r = 2 starts again when a pair has died, or at the first silent error of either copy; no rate \
         of these is given: \"silent\" takes all failures as silent"
            .to_owned(),
        "r = 1 learns nothing of silent errors; r = 3 starts again at two errors of either kind in a \
         cluster (definition 8)"
            .to_owned(),
        "TMR: a death ends its whole job of the three, the second all comparing; until the third 11/6 \
         of the plain job's time"
            .to_owned(),
        format!(
            "TMR mends silent errors by assignment: these alone, with a compare each {}, start {} \
             processes again after {}",
            number::seconds(it.compares_every_s),
            number::grouped(it.processes as u64),
            hours(it.hours)
        ),
    ]
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

fn beside_useful(study: &Study) -> [String; 4] {
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
    [
        "r = 2, deaths: there are no silent errors; r = 2, silent: all failures are".to_owned(),
        "Daly's form takes failures as equally likely at all times; copies that outlive some have fewer \
         left, so for them it is too high on large machines"
            .to_owned(),
        format!(
            "processes from which more replicas leave more, r = 2 by its deaths alone: {}",
            crossings(&study.crossings)
        ),
        format!("the same with the rising hazard: {}", crossings(&study.crossings_exact)),
    ]
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
        ">by (9)",
        ">messages",
        ">bytes",
        "grow as",
        "class",
    ]);
    for program in &study.measured {
        // Without the sign of a zero.
        let rounded = |it: f64| format!("P^{:.2}", (100.0 * it).round() / 100.0 + 0.0);
        let power = |it: Option<f64>| it.map_or_else(|| "-".to_owned(), rounded);
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
                    .map_or_else(|| "-".to_owned(), |it| format!("{:+.0} %", 100.0 * it))
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

/// Whose figures these are, and what stands in the columns.
fn beside_measured(study: &Study) -> Vec<String> {
    let about = study.measured_about.as_ref().map(About::words);
    let columns = "CPU: processor time beyond that of three plain runs; by (9): T_R by formula (9) of the same \
                   sends with their contents in full, by the plain process's time";
    about.into_iter().chain([columns.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn a_sentence_ends_at_the_hundredth_column_at_most_and_loses_no_word() {
        let text = "√P ab ".repeat(90);
        let lines = wrapped(&text);
        assert!(lines.lines().all(|it| it.chars().count() <= 100) && 4 < lines.lines().count());
        assert!(
            lines.lines().skip(1).all(|it| it.starts_with("    √P") || it.starts_with("    ab"))
        );
        assert!(lines.split_whitespace().eq(text.split_whitespace()));
        let long = "x".repeat(120);
        assert_eq!(wrapped(&long), format!("{long}\n"));
    }
}
