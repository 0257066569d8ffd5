//! A hyper-square machine beside other ways to wire as many chips: a table and a picture.

use std::fmt::Write as _;

use clap::ValueEnum;
use selvedge_family::Bisection;
use selvedge_family::graph::drawn::{Drawn, Wiring};
use selvedge_family::hypersquare::machine::Machine;
use selvedge_model::spec::hypersquare::HyperSquare;
use selvedge_model::unit::Length;
use serde::Serialize;

use crate::cmd::plant::show::Bounds;
use crate::render::chart::sheet;
use crate::render::number::grouped;
use crate::render::style;
use crate::render::table::{Cell, Table};

/// What a machine can be compared with: rectangles of as many chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Other {
    /// Each chip to its neighbours.
    Mesh,
    /// A mesh whose rows and columns close over their whole length.
    Torus,
    /// A torus laid out so that no wire is long.
    FoldedTorus,
}

/// One way to wire the chips; the form of an entry of `compare`.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    topology: String,
    nodes: usize,
    links: usize,
    cables: usize,
    degree_min: usize,
    degree_max: usize,
    diameter: Option<u32>,
    mean_distance: Option<f64>,
    /// None where it is known between two bounds only.
    bisection: Option<u32>,
    bisection_bounds: Option<Bounds>,
    wire_max_mm: u64,
    wire_mean_mm: f64,
    wire_total_mm: u64,
    delay_max_ns: f64,
    delay_mean_ns: f64,
    /// Whether no wire is longer than the machine's kind of cable reaches.
    within_reach: bool,
    #[serde(skip)]
    drawn: Drawn,
}

/// The machine first, of which so much is known, then the others in the order asked for.
pub(super) fn rows(machine: &Machine<'_>, known: Option<Bisection>, others: &[Other]) -> Vec<Row> {
    let spec = &machine.spec;
    let [rows, columns] = spec.groups;
    let mut own = row(format!("hypersquare {rows}x{columns}"), machine.drawn(), known, spec);
    if own.nodes < 4 * usize::from(rows) * usize::from(columns) {
        own.topology.push_str(", damaged");
    }
    let mut table = vec![own];
    let sides = [2 * columns, 2 * rows];
    for other in others {
        let (name, wiring) = match other {
            Other::Mesh => ("mesh", Wiring::Mesh),
            Other::Torus => ("torus", Wiring::Torus),
            Other::FoldedTorus => ("folded torus", Wiring::FoldedTorus),
        };
        let name = format!("{name} {}x{}", sides[1], sides[0]);
        let drawn = Drawn::rectangle(sides, wiring);
        let known = drawn.bisection.map(|it| Bisection { at_least: it, at_most: it });
        table.push(row(name, drawn, known, spec));
    }
    table
}

fn row(topology: String, drawn: Drawn, known: Option<Bisection>, spec: &HyperSquare) -> Row {
    let step = u64::from(spec.board_length().as_mm());
    let lengths = || drawn.lengths().map(|it| u64::from(it) * step);
    let n_links = drawn.graph.links().len();
    let (longest, all) = (lengths().max().unwrap_or(0), lengths().sum::<u64>());
    let mean_mm = all as f64 / n_links.max(1) as f64;
    let ns_per_mm = f64::from(spec.ns_per_m) / 1000.0;
    let [degree_min, degree_max] = drawn.graph.degrees();
    let spread = drawn.graph.spread();
    Row {
        topology,
        nodes: drawn.graph.n_nodes(),
        links: n_links,
        cables: drawn.n_cables(),
        degree_min,
        degree_max,
        diameter: spread.map(|it| it.diameter),
        mean_distance: spread.map(|it| rounded(it.mean(), 1e6)),
        bisection: known.filter(|it| it.at_least == it.at_most).map(|it| it.at_most),
        bisection_bounds: known.map(Bounds::from),
        wire_max_mm: longest,
        wire_mean_mm: rounded(mean_mm, 10.0),
        wire_total_mm: all,
        delay_max_ns: rounded(longest as f64 * ns_per_mm, 10.0),
        delay_mean_ns: rounded(mean_mm * ns_per_mm, 10.0),
        within_reach: longest <= u64::from(spec.reach.as_mm()),
        drawn,
    }
}

pub(super) fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// What is told of each, in words for a picture.
type Figure = (&'static str, fn(&Row) -> String);

/// Which of them is the longest wire.
const LONGEST: usize = 7;

const FIGURES: [Figure; 12] = [
    ("chips", |it| grouped(it.nodes as u64)),
    ("links", |it| grouped(it.links as u64)),
    ("cables between boards", |it| grouped(it.cables as u64)),
    ("links of a chip", |it| match it.degree_min == it.degree_max {
        true => it.degree_min.to_string(),
        false => format!("{}..{}", it.degree_min, it.degree_max),
    }),
    ("diameter", |it| it.diameter.map_or("-".to_owned(), |it| it.to_string())),
    ("mean distance", |it| it.mean_distance.map_or("-".to_owned(), |it| format!("{it:.3}"))),
    ("bisection", |it| match (it.bisection, it.bisection_bounds) {
        (Some(it), _) => it.to_string(),
        (None, Some(it)) => format!("{}..{}", it.at_least, it.at_most),
        (None, None) => "-".to_owned(),
    }),
    ("longest wire", |it| format!("{:.1} m", it.wire_max_mm as f64 / 1000.0)),
    ("mean wire", |it| format!("{:.2} m", it.wire_mean_mm / 1000.0)),
    ("all wire", |it| format!("{:.1} m", it.wire_total_mm as f64 / 1000.0)),
    ("worst wire delay", |it| format!("{:.1} ns", it.delay_max_ns)),
    ("mean wire delay", |it| format!("{:.1} ns", it.delay_mean_ns)),
];

/// The same for people.
pub(super) fn page(rows: &[Row], spec: &HyperSquare) -> String {
    let mut table = Table::new(&[
        "topology",
        ">chips",
        ">links",
        ">cables",
        ">degree",
        ">diameter",
        ">mean hops",
        ">bisection",
        ">longest",
        ">mean wire",
        ">all wire",
        ">worst",
        ">mean delay",
    ]);
    for it in rows {
        let reach = if it.within_reach { style::PLAIN } else { style::BAD };
        let cells = FIGURES.iter().enumerate().map(|(nth, (_, told))| match nth == LONGEST {
            true => Cell::styled(told(it), reach),
            false => told(it).into(),
        });
        table.row_of(std::iter::once((&it.topology).into()).chain(cells).collect());
    }
    let mut page = format!("{table}");
    let chips = Length::mm(spec.board_length().as_mm());
    let (wire, reach) = (spec.wire.word(), spec.reach);
    let _ = writeln!(page, "chips {chips} apart; means over pairs of chips, then over links");
    if let [own, others @ ..] = rows
        && let Some(whole) = others.iter().find(|it| own.nodes < it.nodes)
    {
        let n_gone = grouped((whole.nodes - own.nodes) as u64);
        let _ = writeln!(page, "{n_gone} chips of the machine are missing; the others are whole");
    }
    for it in rows.iter().filter(|it| !it.within_reach) {
        let _ = writeln!(
            page,
            "{}: its longest wire is longer than {wire} carries, which is {reach}",
            it.topology
        );
    }
    page
}

/// Between two chips of the picture, in points.
const STEP: u32 = 24;
/// Around each drawing.
const EDGE: u32 = 36;
/// The least width of a drawing, for the figures below it.
const WIDTH_MIN: u32 = 240;
/// A line of figures.
const LINE: u32 = 17;

/// How far a long wire leaves the straight line at most: it stays within its drawing.
const BOW_MAX: u32 = EDGE - 4;

/// All rows side by side, each chip a dot, short wires straight and long ones bowed, and what they
/// come to below.
pub(super) fn svg(rows: &[Row], spec: &HyperSquare) -> String {
    let extent = |axis: usize| {
        let all = rows.iter().flat_map(|it| &it.drawn.at).map(move |it| u32::from(it[axis]));
        STEP * all.max().unwrap_or(0) + 2 * EDGE
    };
    let (width, high) = (extent(0).max(WIDTH_MIN), extent(1));
    let all_width = width * rows.len() as u32;
    let height = high + LINE * (FIGURES.len() as u32 + 4);
    let n_chips = rows.first().map_or(0, |it| it.nodes);
    let title = match rows.len() {
        1 => format!("{n_chips} chips"),
        n => format!("{n} ways to wire {n_chips} chips"),
    };
    let mut out = sheet(f64::from(all_width), f64::from(height), &title);
    for (idx, row) in (0..).zip(rows) {
        let _ = writeln!(out, "<g transform=\"translate({} 0)\">", idx * width);
        let _ = writeln!(out, "<text class=\"b\" x=\"{EDGE}\" y=\"18\">{}</text>", row.topology);
        drawing(&mut out, &row.drawn);
        for (nth, (name, told)) in (0..).zip(FIGURES) {
            let y = high + LINE * (nth + 1);
            let _ = writeln!(
                out,
                "<text class=\"s\" x=\"{EDGE}\" y=\"{y}\">{name}</text><text class=\"e\" \
                 x=\"{}\" y=\"{y}\">{}</text>",
                EDGE + WIDTH_MIN - 50,
                told(row)
            );
        }
        out.push_str("</g>\n");
    }
    let y = high + LINE * (FIGURES.len() as u32 + 2);
    let reach = (spec.wire.word(), spec.reach);
    let too_long: Vec<&str> =
        rows.iter().filter(|it| !it.within_reach).map(|it| it.topology.as_str()).collect();
    let note = match too_long[..] {
        [] => format!("no wire is longer than {} carries, which is {}", reach.0, reach.1),
        [..] => format!(
            "longer than {} carries, which is {}: {}",
            reach.0,
            reach.1,
            too_long.join(", ")
        ),
    };
    let _ = writeln!(
        out,
        "<text class=\"s\" x=\"{EDGE}\" y=\"{y}\">a dot is a chip, {} from the next; short wires \
         dark, long ones bowed</text>\n<text class=\"s\" x=\"{EDGE}\" y=\"{}\">{note}</text>",
        Length::mm(spec.board_length().as_mm()),
        y + LINE
    );
    out.push_str("</svg>\n");
    out
}

fn drawing(out: &mut String, drawn: &Drawn) {
    let point = |node: u32| drawn.at[node as usize].map(|it| EDGE + STEP * u32::from(it));
    out.push_str("<g>\n");
    for (&[a, b], length) in drawn.graph.links().iter().zip(drawn.lengths()) {
        let ([x1, y1], [x2, y2]) = (point(a), point(b));
        let _ = match length {
            0 | 1 => writeln!(out, "<path class=\"wire\" d=\"M{x1} {y1}L{x2} {y2}\"/>"),
            // A long wire passes beside the chips between its ends.
            _ => {
                let bow = (STEP / 3 + length).min(BOW_MAX);
                let (x, y) = match y1 == y2 {
                    true => (x1.midpoint(x2), y1 - bow),
                    false => (x1 - bow, y1.midpoint(y2)),
                };
                writeln!(out, "<path class=\"long\" d=\"M{x1} {y1}Q{x} {y} {x2} {y2}\"/>")
            }
        };
    }
    out.push_str("</g>\n");
    for node in 0..drawn.at.len() as u32 {
        let [x, y] = point(node);
        let _ = writeln!(out, "<circle class=\"node\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>");
    }
}

#[cfg(test)]
mod tests {
    use selvedge_model::spec::Plant;
    use selvedge_model::spec::plant::Family;

    use super::*;

    const ALL: [Other; 3] = [Other::Mesh, Other::Torus, Other::FoldedTorus];

    fn with_rows<T>(groups: [u16; 2], of: impl Fn(&[Row]) -> T) -> T {
        let family = Family::HyperSquare(HyperSquare::of_groups(groups));
        let plant = Plant::of_pods("square", [family]);
        let fabric = selvedge_family::build(&plant).unwrap();
        let known = selvedge_family::bisection(&plant, &fabric, 0);
        of(&rows(&Machine::of_pod(&plant, &fabric, 0).unwrap(), known, &ALL))
    }

    /// Notes on hyper-square machines, §1: against a folded torus there are as many cables, as
    /// long a wire, the same diameter and bisection, and shorter ways.
    #[test]
    fn against_a_folded_torus_only_ports_and_distances_differ() {
        for n in [4, 8, 16] {
            with_rows([n, n], |rows| {
                let [own, _, flat, folded] = rows else { panic!("four rows") };
                let same = |it: &Row| (it.cables, it.wire_max_mm, it.diameter, it.bisection);
                assert_eq!(same(own), same(folded));
                assert!(own.mean_distance < folded.mean_distance);
                assert_eq!((own.degree_max, folded.degree_max), (6, 4));
                assert_eq!(flat.wire_max_mm, 300 * (2 * u64::from(n) - 1));
                assert_eq!(flat.within_reach, n < 4, "7 steps of 300 mm are too long for copper");
            });
        }
    }

    #[test]
    fn every_chip_and_every_wire_is_drawn_within_the_picture() {
        for groups in [[1, 1], [3, 2], [20, 16]] {
            with_rows(groups, |rows| {
                let svg = svg(rows, &HyperSquare::of_groups(groups));
                assert_eq!(svg.matches(">mean distance<").count(), rows.len());
                let n_chips: usize = rows.iter().map(|it| it.nodes).sum();
                let n_links: usize = rows.iter().map(|it| it.links).sum();
                assert_eq!(svg.matches("<circle").count(), n_chips);
                assert_eq!(svg.matches("<path").count(), n_links);
                assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
            });
        }
    }
}
