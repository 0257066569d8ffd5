//! Measured points: what must not grow with the processes, and what a run costs.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::fmt::Write as _;

use crate::cmd::study::redundancy::Study;
use crate::cmd::study::redundancy::measured::{About, Point, Program};
use crate::cmd::study::redundancy::picture::axis::Axis;
use crate::cmd::study::redundancy::picture::{
    COLUMN, Frame, HEIGHT, ROW, WIDTH, cut, escaped, frame,
};

/// Names of programs beside each other, below the frames.
const NAMES: usize = 4;
/// Letters of a name that fit.
const LETTERS: usize = 36;
/// Letters of a line as wide as both frames.
const WIDE: usize = 160;
/// How high a line of text is.
const LINE: f64 = 18.0;

/// Corners of a mark, by which part of a turn they are turned, and how far in the corners between
/// them lie.
const SHAPES: [(u32, f64, f64); 8] = [
    (16, 0.0, 1.0),
    (4, 0.125, 0.71),
    (3, 0.75, 0.5),
    (4, 0.0, 0.71),
    (3, 0.25, 0.5),
    (4, 0.0, 0.35),
    (5, 0.75, 0.4),
    (4, 0.125, 0.35),
];
const COLOURS: [&str; 9] = [
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#e08214", "#17a2b8", "#c2378f", "#6b4a3a",
    "#4d4d4d",
];

/// What all of it takes of the page.
pub(super) fn height(study: &Study) -> f64 {
    2.0 * ROW + LINE * (study.measured.len().div_ceil(NAMES) + beside(study).len()) as f64
}

/// What is told of a point.
type Count = fn(&Point) -> f64;

/// How one program's marks look, and where they stand.
struct Look<'a> {
    nth: usize,
    colour: &'static str,
    program: &'a Program,
}

/// Four frames and the names below them.
pub(super) fn draw(svg: &mut String, study: &Study) {
    let all = || study.measured.iter().flat_map(|it| &it.points);
    let ranks = Axis::octaves(all().map(|it| f64::from(it.ranks)));
    let looks: Vec<Look<'_>> = study.measured.iter().enumerate().map(look).collect();
    let places = places(study);
    let counts: [(&str, &str, Count); 2] = [
        ("messages between replicas for each send", "messages", |it| it.messages_per_send),
        ("bytes between replicas for each send", "bytes", |it| it.bytes_per_send),
    ];
    for (nth, (title, unit, count)) in counts.into_iter().enumerate() {
        let frame = frame(6 + nth, ranks, Axis::linear(all().map(count)));
        frame.draw(svg, &format!("measured: {title}"), "processes P", unit);
        for look in &looks {
            let heights = look.program.points.iter().map(|it| Some((count(it), 0.0)));
            marks(svg, &frame, look, &places, heights);
        }
    }
    let cost = |it: &Point| (100.0 * it.overhead_cpu, 100.0 * it.spread_cpu.unwrap_or(0.0));
    let ends = all().map(cost).flat_map(|(it, spread)| [it - spread, it + spread]);
    let costs = frame(8, ranks, Axis::linear(ends));
    costs.draw(svg, "measured: processor time beyond three plain runs", "processes P", "per cent");
    let zero = costs.top + HEIGHT * (1.0 - costs.y.along(0.0));
    let _ = writeln!(svg, "<path d=\"M{:.1} {zero:.1}h{WIDTH}\" stroke=\"#888\"/>", costs.left);
    for look in &looks {
        marks(svg, &costs, look, &places, look.program.points.iter().map(|it| Some(cost(it))));
    }
    let reckoned = || study.measured.iter().flat_map(|it| it.by_formula.iter().flatten());
    if reckoned().any(|it| 0.0 < *it) {
        let shares = Axis::decades(reckoned().map(|it| 100.0 * it), [0.0, 1.0]);
        let model = frame(9, ranks, shares);
        let title = "the model: T_R by formula (9) for the same sends, contents in full";
        model.draw(svg, title, "processes P", "per cent of the plain process's time");
        for look in &looks {
            let above = |it: &Option<f64>| it.filter(|it| 0.0 < *it).map(|it| (100.0 * it, 0.0));
            marks(svg, &model, look, &places, look.program.by_formula.iter().map(above));
        }
    }
    names(svg, &looks, study);
}

fn look((nth, program): (usize, &Program)) -> Look<'_> {
    Look { nth, colour: COLOURS[nth % COLOURS.len()], program }
}

/// By how much a mark is moved aside, so that those of one number of processes stand beside each
/// other: by processes and program.
fn places(study: &Study) -> BTreeMap<(u32, usize), f64> {
    let mut who: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (nth, program) in study.measured.iter().enumerate() {
        for it in &program.points {
            let there = who.entry(it.ranks).or_default();
            if there.last() != Some(&nth) {
                there.push(nth);
            }
        }
    }
    let aside = |(ranks, there): (u32, Vec<usize>)| {
        let step = (44.0 / there.len() as f64).min(7.0);
        let middle = (there.len() - 1) as f64 / 2.0;
        let of = move |(place, nth)| ((ranks, nth), step * (place as f64 - middle));
        there.into_iter().enumerate().map(of).collect::<Vec<_>>()
    };
    who.into_iter().flat_map(aside).collect()
}

/// The marks of one program at these heights, each with how far it may lie off, and a line through
/// them.
fn marks(
    svg: &mut String,
    frame: &Frame,
    look: &Look<'_>,
    places: &BTreeMap<(u32, usize), f64>,
    heights: impl Iterator<Item = Option<(f64, f64)>>,
) {
    let Look { nth, colour, program } = look;
    let (mut line, mut shapes) = (String::new(), String::new());
    for (it, height) in program.points.iter().zip(heights) {
        let Some((height, spread)) = height else { continue };
        let [x, y] = frame.at(it.ranks.into(), height);
        let x = x + places[&(it.ranks, *nth)];
        let _ = write!(line, "{x:.1},{y:.1} ");
        if 0.0 < spread {
            let [low, high] = [height - spread, height + spread].map(|it| frame.at(1.0, it)[1]);
            let path = format!("M{x:.1} {low:.1}V{high:.1}");
            let _ = writeln!(shapes, "<path d=\"{path}\" stroke=\"{colour}\"/>");
        }
        // One pair says little.
        let fill = if it.pairs == Some(1) { "white" } else { colour };
        mark(&mut shapes, *nth, [x, y], colour, fill);
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"0.45\"/>",
        line.trim_end()
    );
    svg.push_str(&shapes);
}

fn mark(svg: &mut String, nth: usize, [x, y]: [f64; 2], colour: &str, fill: &str) {
    let (corners, turned, inner) = SHAPES[nth % SHAPES.len()];
    let mut path = String::new();
    for corner in 0..2 * corners {
        let angle = TAU * (turned + f64::from(corner) / f64::from(2 * corners));
        let radius = if corner % 2 == 0 { 5.0 } else { 5.0 * inner };
        let _ = write!(path, "{:.1},{:.1} ", x + radius * angle.cos(), y + radius * angle.sin());
    }
    let path = path.trim_end();
    let _ = writeln!(svg, "<polygon points=\"{path}\" fill=\"{fill}\" stroke=\"{colour}\"/>");
}

/// Marks and names, and below them what the marks mean and where they come from.
fn names(svg: &mut String, looks: &[Look<'_>], study: &Study) {
    let Frame { left, top, .. } = frame(8, Axis::Log([0.0, 1.0]), Axis::Log([0.0, 1.0]));
    let top = top + HEIGHT + 64.0;
    for look in looks {
        let Look { nth, colour, program } = look;
        let (column, row) = (nth % NAMES, nth / NAMES);
        let x = left + (2.0 * COLUMN - 60.0) / NAMES as f64 * column as f64;
        let y = top + LINE * row as f64;
        let name = format!("{} ({}), r = {}", program.program, program.mpi, program.replicas);
        mark(svg, *nth, [x + 5.0, y - 4.0], colour, colour);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{y:.0}\"><title>{}</title>{}</text>",
            x + 16.0,
            escaped(&name),
            escaped(&cut(&name, LETTERS))
        );
    }
    let rows = looks.len().div_ceil(NAMES);
    for (nth, line) in beside(study).iter().enumerate() {
        let y = top + LINE * (rows + nth) as f64;
        let line = escaped(&cut(line, WIDE));
        let _ = writeln!(svg, "<text x=\"{left:.0}\" y=\"{y:.0}\" fill=\"#555\">{line}</text>");
    }
}

fn beside(study: &Study) -> Vec<String> {
    let marks = "open marks: one pair of runs; bars: how far plain runs differ; marks of one number \
                 of processes stand beside each other";
    let about = study.measured_about.as_ref().map(About::words);
    std::iter::once(marks.to_owned()).chain(about).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COLOURS, SHAPES, mark};

    /// Goal: programs whose marks lie on each other can be told apart.  Method: marks of as many
    /// programs as there may be, without their places, differ.
    #[test]
    fn seventy_two_programs_have_marks_of_their_own() {
        let n = SHAPES.len() * COLOURS.len();
        let looks: BTreeSet<String> = (0..n)
            .map(|nth| {
                let mut svg = String::new();
                let colour = COLOURS[nth % COLOURS.len()];
                mark(&mut svg, nth, [0.0, 0.0], colour, colour);
                svg
            })
            .collect();
        assert_eq!((n, looks.len()), (72, 72));
    }
}
