//! What `study allocation --svg` draws: the machine now and then, and its curves over time.

use std::fmt::Write as _;

use selvedge_sim::study::allocation::{Sample, Study};

use crate::render::number;

/// Pictures of the machine side by side.
const COLUMNS: usize = 4;
/// The side of one of them, in pixels.
const SIDE: f64 = 200.0;
const GAP: f64 = 24.0;
const TOP: f64 = 56.0;
const CURVES: f64 = 180.0;

/// A document of its own.
pub(super) fn draw(title: &str, groups: [u16; 2], study: &Study) -> String {
    let n_rows = study.frames.len().div_ceil(COLUMNS).max(1);
    let width = COLUMNS as f64 * (SIDE + GAP) + GAP;
    let below = TOP + n_rows as f64 * (SIDE + GAP + 14.0);
    let height = below + CURVES + 2.0 * GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n<text x=\"{GAP}\" y=\"24\" font-size=\"16\">{title}</text>\n\
         <text x=\"{GAP}\" y=\"42\" fill=\"#555\">a colour is a task, white is free, black is dead; \
         used {}</text>\n",
        number::share(study.outcome.utilisation)
    );
    let (rows, columns) = (usize::from(groups[0]), usize::from(groups[1]));
    let cell = SIDE / rows.max(columns) as f64;
    for (idx, frame) in study.frames.iter().enumerate() {
        let left = GAP + (idx % COLUMNS) as f64 * (SIDE + GAP);
        let top = TOP + (idx / COLUMNS) as f64 * (SIDE + GAP + 14.0);
        let at = number::seconds(frame.at.as_secs_f64());
        let _ = writeln!(svg, "<text x=\"{left:.1}\" y=\"{:.1}\">{at}</text>", top + 10.0);
        for (nth, holder) in frame.holders.iter().enumerate() {
            let (x, y) = (nth % columns, nth / columns);
            let fill = match (holder, study.dead[nth]) {
                (_, true) => "#000".to_owned(),
                (None, false) => "#fff".to_owned(),
                // Golden angle: tasks that follow one another differ.
                (Some(task), false) => {
                    format!("hsl({} 60% {}%)", u64::from(*task) * 137 % 360, 55 + task % 3 * 12)
                }
            };
            let _ = writeln!(
                svg,
                "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{cell:.2}\" height=\"{cell:.2}\" \
                 fill=\"{fill}\" stroke=\"#bbb\" stroke-width=\"0.4\"/>",
                left + x as f64 * cell,
                top + 14.0 + y as f64 * cell
            );
        }
    }
    curves(&mut svg, study, (width, below));
    svg.push_str("</svg>\n");
    svg
}

/// From one curve's name to the next.
const LEGEND: f64 = 310.0;

/// How much of the sound machine is used, and what its largest free set and box are.
fn curves(svg: &mut String, study: &Study, (width, top): (f64, f64)) {
    let (left, wide) = (GAP, width - 2.0 * GAP);
    let end = study.samples.last().map_or(1.0, |it| it.at.as_secs_f64()).max(1e-9);
    let all = f64::from(study.outcome.live_boards.max(1));
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{CURVES}\" fill=\"none\" \
         stroke=\"#888\"/>"
    );
    type Curve = (&'static str, &'static str, fn(&Sample) -> u32);
    let lines: [Curve; 3] = [
        ("used", "#1b7837", |it| it.useful),
        ("largest free connected set", "#2166ac", |it| it.largest_set),
        ("largest free box", "#b2182b", |it| it.largest_box),
    ];
    for (nth, (name, colour, get)) in lines.into_iter().enumerate() {
        let mut points = String::new();
        let mut before: Option<f64> = None;
        for it in &study.samples {
            let x = left + wide * it.at.as_secs_f64() / end;
            let y = top + CURVES * (1.0 - f64::from(get(it)) / all);
            // It stays as it is until something happens.
            if let Some(before) = before.filter(|it| (it - y).abs() > 0.05) {
                let _ = write!(points, "{x:.1},{before:.1} ");
            }
            let _ = write!(points, "{x:.1},{y:.1} ");
            before = Some(y);
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n<text x=\"{:.1}\" \
             y=\"{:.1}\" fill=\"{colour}\">{name}, boards of {all}</text>",
            points.trim_end(),
            left + nth as f64 * LEGEND,
            top + CURVES + 18.0
        );
    }
}
