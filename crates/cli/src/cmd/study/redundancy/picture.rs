//! Figure 13 with the three readings, mean times to a restart, useful shares, and measured points.

use std::fmt::Write as _;

use selvedge_sim::study::redundancy::figure::{CURVES, P_MAX, Panel};
use selvedge_sim::study::redundancy::restart::Until;
use selvedge_sim::study::redundancy::speedup::{Growth, Mechanism, Reading};

use crate::cmd::study::redundancy::Study;
use crate::cmd::study::redundancy::measured::Measured;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 62.0;
const ABOVE: f64 = 66.0;
const COLUMN: f64 = WIDTH + 90.0;
const ROW: f64 = HEIGHT + 96.0;

/// A frame with two logarithmic axes.
struct Frame {
    left: f64,
    top: f64,
    /// Decades from and to.
    x: [f64; 2],
    y: [f64; 2],
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        let along = |value: f64, [low, high]: [f64; 2]| (value.log10() - low) / (high - low);
        [
            self.left + WIDTH * along(x, self.x),
            self.top + HEIGHT * (1.0 - along(y, self.y).clamp(0.0, 1.0)),
        ]
    }

    fn draw(&self, svg: &mut String, title: &str, below: &str, beside: &str) {
        let Self { left, top, .. } = self;
        let _ = writeln!(
            svg,
            "<text x=\"{left:.0}\" y=\"{:.0}\" font-size=\"13\" \
             font-weight=\"bold\">{title}</text>",
            top - 12.0
        );
        for (axis, is_x) in [(self.x, true), (self.y, false)] {
            let step = if axis[1] - axis[0] <= 5.0 { 1 } else { 2 };
            for decade in (axis[0] as i32..=axis[1] as i32).step_by(step) {
                let share = (f64::from(decade) - axis[0]) / (axis[1] - axis[0]);
                let (x, y) = (left + WIDTH * share, top + HEIGHT * (1.0 - share));
                let [x1, y1, x2, y2] = match is_x {
                    true => [x, *top, x, top + HEIGHT],
                    false => [*left, y, left + WIDTH, y],
                };
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#e4e4e4\"/>"
                );
                let (tx, ty, anchor) = match is_x {
                    true => (x, top + HEIGHT + 16.0, "middle"),
                    false => (left - 6.0, y + 4.0, "end"),
                };
                let _ = writeln!(
                    svg,
                    "<text x=\"{tx:.1}\" y=\"{ty:.1}\" text-anchor=\"{anchor}\" fill=\"#555\">\
                     10<tspan dy=\"-5\" font-size=\"9\">{decade}</tspan></text>"
                );
            }
        }
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             fill=\"none\" stroke=\"#888\"/>\n<text x=\"{:.0}\" y=\"{:.0}\" \
             text-anchor=\"middle\" fill=\"#555\">{below}</text>\n<text transform=\"translate(\
             {:.0} {:.0}) rotate(-90)\" text-anchor=\"middle\" fill=\"#555\">{beside}</text>",
            left + WIDTH / 2.0,
            top + HEIGHT + 34.0,
            left - 42.0,
            top + HEIGHT / 2.0
        );
    }

    fn line(&self, svg: &mut String, points: &[(f64, f64)], style: &str) {
        let mut path = String::new();
        for &(x, y) in points {
            let [x, y] = self.at(x, y);
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let path = path.trim_end();
        let _ = writeln!(svg, "<polyline points=\"{path}\" fill=\"none\" {style}/>");
    }
}

fn style(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Plain => "stroke=\"#bdbdbd\" stroke-width=\"7\" stroke-linecap=\"round\"",
        Mechanism::Tmr => "stroke=\"#b2182b\" stroke-width=\"2\"",
        Mechanism::Stmr(Reading::Constant) => "stroke=\"#2166ac\" stroke-width=\"2\"",
        Mechanism::Stmr(Reading::Share) => {
            "stroke=\"#1b7837\" stroke-width=\"2\" stroke-dasharray=\"7 5\""
        }
        Mechanism::Stmr(Reading::Literal) => {
            "stroke=\"#762a83\" stroke-width=\"2\" stroke-dasharray=\"2 3\""
        }
    }
}

fn name(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Plain => "S, no redundancy",
        Mechanism::Tmr => "S^R, TMR",
        Mechanism::Stmr(Reading::Constant) => "S^R, STMR: D_size constant",
        Mechanism::Stmr(Reading::Share) => "STMR: a cluster's share",
        Mechanism::Stmr(Reading::Literal) => "STMR: literal",
    }
}

/// The whole page.
pub(super) fn draw(
    panels: &[Panel; 4],
    means: &[(Until, Vec<(f64, f64)>)],
    study: &Study,
    measured: &Measured,
) -> String {
    let rows = if measured.points.is_empty() { 3.0 } else { 4.0 };
    let (wide, high) = (2.0 * COLUMN + 20.0, ABOVE + rows * ROW);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.0} {high:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    let mut x = LEFT;
    for mechanism in CURVES {
        legend(&mut svg, &mut x, 20.0, style(mechanism), name(mechanism));
    }
    for (nth, panel) in panels.iter().enumerate() {
        speedups(&mut svg, &frame(nth, [0.0, 9.3], [0.0, 9.3]), panel);
    }
    restarts(&mut svg, means, study);
    useful(&mut svg, study);
    if !measured.points.is_empty() {
        points(&mut svg, study);
    }
    svg.push_str("</svg>\n");
    svg
}

fn frame(nth: usize, x: [f64; 2], y: [f64; 2]) -> Frame {
    let (column, row) = ((nth % 2) as f64, (nth / 2) as f64);
    Frame { left: LEFT + column * COLUMN, top: ABOVE + row * ROW, x, y }
}

fn legend(svg: &mut String, x: &mut f64, y: f64, style: &str, name: &str) {
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.0} {:.0}h26\" {style}/><text x=\"{:.0}\" y=\"{y:.0}\">{name}</text>",
        y - 4.0,
        *x + 34.0
    );
    *x += 58.0 + 6.6 * name.chars().count() as f64;
}

fn speedups(svg: &mut String, frame: &Frame, panel: &Panel) {
    let program = match panel.case.other {
        Growth::Constant => "scalable program",
        _ => "weakly scalable program",
    };
    let title = format!(
        "({}) {program}; {}; traffic {}",
        panel.letter,
        panel.case.network.name,
        panel.case.traffic.word()
    );
    frame.draw(svg, &title, "nodes P", "speed-up");
    let n = 93;
    for mechanism in CURVES {
        let p = |it: i32| P_MAX.powf(f64::from(it) / f64::from(n));
        let points: Vec<(f64, f64)> =
            (0..=n).map(|it| (p(it), panel.case.redundant_speedup(mechanism, p(it)))).collect();
        let inside: Vec<(f64, f64)> = points.into_iter().filter(|it| 1.0 <= it.1).collect();
        frame.line(svg, &inside, style(mechanism));
    }
}

const COLOURS: [&str; 4] = ["#4d4d4d", "#d6604d", "#2166ac", "#92c5de"];

fn restarts(svg: &mut String, means: &[(Until, Vec<(f64, f64)>)], study: &Study) {
    let frame = frame(4, [0.0, 8.0], [-6.0, 4.0]);
    let title = "mean time to a restart: lines by the closed form, dots drawn";
    frame.draw(svg, title, "processes P", "hours");
    for (nth, ((until, curve), colour)) in means.iter().zip(COLOURS).enumerate() {
        let style = format!("stroke=\"{colour}\" stroke-width=\"2\"");
        frame.line(svg, curve, &style);
        let (mut x, y) = (frame.left + 10.0, frame.top + HEIGHT - 10.0 - 16.0 * nth as f64);
        legend(svg, &mut x, y, &style, until.word());
        let drawn = study.restarts.iter().filter(|it| it.case == until.word());
        for (p, hours) in drawn.filter_map(|it| Some((it.processes, it.drawn_hours?))) {
            let [x, y] = frame.at(p, hours);
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
        }
    }
}

fn useful(svg: &mut String, study: &Study) {
    let frame = frame(5, [0.0, 8.0], [-3.0, 0.0]);
    frame.draw(svg, "useful share of all node-hours, with checkpoints", "processes P", "share");
    for (nth, colour) in COLOURS.iter().take(3).enumerate() {
        let style = format!("stroke=\"{colour}\" stroke-width=\"2\"");
        let share = |it: &super::UsefulRow| (it.processes, it.useful[nth]);
        let curve: Vec<(f64, f64)> = study.useful_curve.iter().map(share).collect();
        let inside: Vec<(f64, f64)> = curve.into_iter().filter(|it| 1e-3 <= it.1).collect();
        frame.line(svg, &inside, &style);
        let mut x = frame.left + 10.0;
        let y = frame.top + HEIGHT - 10.0 - 16.0 * nth as f64;
        legend(svg, &mut x, y, &style, &format!("r = {}", nth + 1));
    }
}

/// Messages and bytes for each send, which must not grow, and what a run costs.
fn points(svg: &mut String, study: &Study) {
    let all = || study.measured.iter().flat_map(|it| &it.points);
    let ranks = all().map(|it| f64::from(it.ranks)).fold(10.0, f64::max).log10().ceil();
    let most = all().map(|it| it.bytes_per_send).fold(10.0, f64::max).log10().ceil();
    let sends = frame(6, [0.0, ranks], [-1.0, most]);
    let title = "measured: messages (dots) and bytes (rings) for each send";
    sends.draw(svg, title, "processes P", "for each send");
    let costs = frame(7, [0.0, ranks], [-1.0, 3.0]);
    costs.draw(svg, "measured: CPU beyond three plain runs, per cent", "processes P", "per cent");
    for (nth, program) in study.measured.iter().enumerate() {
        let colour = format!("hsl({} 60% 42%)", nth * 137 % 360);
        for it in &program.points {
            let p = f64::from(it.ranks);
            let ([x, y], [_, y2]) =
                (sends.at(p, it.messages_per_send), sends.at(p, it.bytes_per_send));
            let per_cent = (100.0 * it.overhead_cpu).max(0.1);
            let [cx, cy] = costs.at(p, per_cent);
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>\
                 <circle cx=\"{x:.1}\" cy=\"{y2:.1}\" r=\"4\" fill=\"none\" stroke=\"{colour}\"/>\
                 <circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"{colour}\"/>"
            );
        }
        let (column, row) = (nth % 2, nth / 2);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\">{} ({})</text>",
            costs.left + 8.0 + 205.0 * column as f64,
            costs.top + 16.0 + 15.0 * row as f64,
            escaped(&program.program),
            escaped(&program.mpi)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
