//! What `study allocation --svg` draws: the machine now and then, and its curves over time.

use std::fmt::Write as _;

use selvedge_sim::study::allocation::{Sample, Study};

use crate::render::chart::{Axis, BELOW, BESIDE, Chart, LEGEND_ROW, escaped, sheet};
use crate::render::number;

/// Pictures of the machine side by side.
const COLUMNS: usize = 4;
/// The side of one of them, in pixels.
const SIDE: f64 = 200.0;
/// Left of each, for the numbers of its rows, and between it and the next.
const GAP: f64 = 34.0;
/// Above each, for its moment and the numbers of its columns.
const HEAD: f64 = 28.0;
const TOP: f64 = 84.0;
const CURVES: f64 = 200.0;
/// Room above the curves.
const ABOVE: f64 = 44.0;

/// A document of its own.
pub(super) fn draw(title: &str, groups: [u16; 2], study: &Study) -> String {
    let n_rows = study.frames.len().div_ceil(COLUMNS).max(1);
    let width = COLUMNS as f64 * (SIDE + GAP) + GAP;
    let below = TOP + n_rows as f64 * (SIDE + HEAD + 12.0) + ABOVE;
    let height = below + CURVES + BELOW + 2.0 * LEGEND_ROW;
    let mut svg = sheet(width, height, title);
    let _ = writeln!(
        svg,
        "<text class=\"h\" x=\"{GAP}\" y=\"26\">{}</text>\n<text class=\"s\" x=\"{GAP}\" \
         y=\"46\">boards by row and column; of the sound ones {} are used</text>",
        escaped(title),
        number::share(study.outcome.utilisation)
    );
    key(&mut svg);
    let (rows, columns) = (usize::from(groups[0]), usize::from(groups[1]));
    let cell = SIDE / rows.max(columns) as f64;
    for (idx, frame) in study.frames.iter().enumerate() {
        let left = GAP + (idx % COLUMNS) as f64 * (SIDE + GAP);
        let top = TOP + (idx / COLUMNS) as f64 * (SIDE + HEAD + 12.0) + HEAD;
        let at = number::seconds(frame.at.as_secs_f64());
        let _ = writeln!(
            svg,
            "<text class=\"b\" x=\"{left:.1}\" y=\"{:.1}\">after {at}</text>",
            top - 16.0
        );
        numbers(&mut svg, [left, top], cell, [rows, columns]);
        for (nth, holder) in frame.holders.iter().enumerate() {
            let (x, y) =
                (left + (nth % columns) as f64 * cell, top + (nth / columns) as f64 * cell);
            square(&mut svg, [x, y], cell, *holder, study.dead[nth]);
        }
        outlines(&mut svg, [left, top], cell, [rows, columns], &frame.holders);
    }
    curves(&mut svg, study, width, below);
    svg.push_str("</svg>\n");
    svg
}

/// What the squares mean.
fn key(svg: &mut String) {
    let mut x = GAP;
    for (nth, name) in ["free", "held, one colour for each task", "dead"].into_iter().enumerate() {
        square(svg, [x, 56.0], 12.0, (nth == 1).then_some(1), nth == 2);
        let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"66\">{name}</text>", x + 18.0);
        x += 40.0 + 6.6 * name.len() as f64;
    }
}

fn square(svg: &mut String, [x, y]: [f64; 2], side: f64, task: Option<u32>, is_dead: bool) {
    let _ = write!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{side:.2}\" height=\"{side:.2}\" \
         stroke-width=\"0.4\" "
    );
    let _ = match task.filter(|_| !is_dead) {
        None => writeln!(svg, "class=\"free\"/>"),
        // Golden angle: tasks that follow one another differ.
        Some(task) => writeln!(
            svg,
            "class=\"task\" fill=\"hsl({},60%,{}%)\"/>",
            u64::from(task) * 137 % 360,
            50 + task % 3 * 11
        ),
    };
    if is_dead {
        let (near, far) = (0.2 * side, 0.8 * side);
        let _ = writeln!(
            svg,
            "<path class=\"dead\" d=\"M{:.2} {:.2}L{:.2} {:.2}M{:.2} {:.2}L{:.2} {:.2}\"/>",
            x + near,
            y + near,
            x + far,
            y + far,
            x + far,
            y + near,
            x + near,
            y + far
        );
    }
}

/// Lines around each task, so that neighbours of like colours are told apart.
fn outlines(
    svg: &mut String,
    [left, top]: [f64; 2],
    cell: f64,
    [rows, columns]: [usize; 2],
    holders: &[Option<u32>],
) {
    let holder = |row: usize, column: usize| -> Option<u32> {
        let is_inside = row < rows && column < columns;
        is_inside.then(|| holders[row * columns + column]).flatten()
    };
    let mut path = String::new();
    for row in 0..=rows {
        for column in 0..=columns {
            let (x, y) = (left + column as f64 * cell, top + row as f64 * cell);
            let here = holder(row, column);
            let above = row.checked_sub(1).and_then(|it| holder(it, column));
            let before = column.checked_sub(1).and_then(|it| holder(row, it));
            if here != above {
                let _ = write!(path, "M{x:.2} {y:.2}h{cell:.2}");
            }
            if here != before {
                let _ = write!(path, "M{x:.2} {y:.2}v{cell:.2}");
            }
        }
    }
    let _ = writeln!(svg, "<path class=\"wire\" stroke-width=\"0.8\" d=\"{path}\"/>");
}

/// The numbers of some rows and columns.
fn numbers(svg: &mut String, [left, top]: [f64; 2], cell: f64, [rows, columns]: [usize; 2]) {
    // Four numbers or so along the longer side.
    let step = (rows.max(columns) / 4).max(1).next_power_of_two();
    for column in (0..columns).step_by(step) {
        let x = left + (column as f64 + 0.5) * cell;
        let _ = writeln!(
            svg,
            "<text class=\"s m\" font-size=\"9\" x=\"{x:.1}\" y=\"{:.1}\">{column}</text>",
            top - 4.0
        );
    }
    for row in (0..rows).step_by(step) {
        let y = top + (row as f64 + 0.5) * cell + 3.0;
        let _ = writeln!(
            svg,
            "<text class=\"s e\" font-size=\"9\" x=\"{:.1}\" y=\"{y:.1}\">{row}</text>",
            left - 4.0
        );
    }
}

/// How much of the sound machine is used, and what its largest free set and box are.
fn curves(svg: &mut String, study: &Study, width: f64, top: f64) {
    let end = study.samples.last().map_or(1.0, |it| it.at.as_secs_f64());
    let (x, unit) = Axis::time(end);
    let n_live = study.outcome.live_boards.max(1);
    let chart = Chart {
        title: format!("boards over time, of {n_live} sound ones"),
        at: [BESIDE, top],
        size: [width - BESIDE - GAP, CURVES],
        x,
        y: Axis { name: "boards".to_owned(), high: f64::from(n_live) },
    };
    chart.frame(svg);
    type Curve = (&'static str, fn(&Sample) -> u32);
    let lines: [Curve; 3] = [
        ("used", |it| it.useful),
        ("largest free connected set", |it| it.largest_set),
        ("largest free box", |it| it.largest_box),
    ];
    for (nth, (_, get)) in lines.iter().enumerate() {
        let at = |it: &Sample| (it.at.as_secs_f64() / unit, f64::from(get(it)));
        let points: Vec<(f64, f64)> = study.samples.iter().map(at).collect();
        chart.steps(svg, &points, nth);
    }
    chart.legend(svg, &lines.map(|it| it.0.to_owned()), lines.len());
}
