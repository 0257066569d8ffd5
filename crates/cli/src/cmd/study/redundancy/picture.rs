//! Figure 13 with the three readings, mean times to a restart, useful shares, and measured points.

mod axis;

mod points;

use std::fmt::Write as _;

use selvedge_sim::study::redundancy::figure::{CURVES, P_MAX, Panel};
use selvedge_sim::study::redundancy::restart::Until;
use selvedge_sim::study::redundancy::speedup::{Growth, Mechanism, Reading};

use crate::cmd::study::redundancy::picture::axis::Axis;
use crate::cmd::study::redundancy::{SHARED, Study, UsefulRow};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 62.0;
const ABOVE: f64 = 66.0;
const COLUMN: f64 = WIDTH + 90.0;
const ROW: f64 = HEIGHT + 96.0;

/// A frame with two axes.
struct Frame {
    left: f64,
    top: f64,
    x: Axis,
    y: Axis,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.left + WIDTH * self.x.along(x), self.top + HEIGHT * (1.0 - self.y.along(y))]
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
            for (share, label) in axis.ticks() {
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
                     {label}</text>"
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
        // What leaves the frame is cut off at it.
        let Self { left, top, .. } = self;
        let frame = format!("frame-{left:.0}-{top:.0}");
        let _ = writeln!(
            svg,
            "<clipPath id=\"{frame}\"><rect x=\"{left:.0}\" y=\"{top:.0}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\"/></clipPath><polyline points=\"{path}\" fill=\"none\" \
             clip-path=\"url(#{frame})\" {style}/>"
        );
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
) -> String {
    let below = if study.measured.is_empty() { 0.0 } else { points::height(study) };
    let (wide, high) = (2.0 * COLUMN + 20.0, ABOVE + 3.0 * ROW + below);
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
        let axis = Axis::Log([0.0, 9.3]);
        speedups(&mut svg, &frame(nth, axis, axis), panel);
    }
    restarts(&mut svg, means, study);
    useful(&mut svg, study);
    if !study.measured.is_empty() {
        points::draw(&mut svg, study);
    }
    svg.push_str("</svg>\n");
    svg
}

fn frame(nth: usize, x: Axis, y: Axis) -> Frame {
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
    frame.draw(svg, &title, "nodes P", "speed-up over one node");
    let n = 93;
    for mechanism in CURVES {
        let p = |it: i32| P_MAX.powf(f64::from(it) / f64::from(n));
        let points: Vec<(f64, f64)> =
            (0..=n).map(|it| (p(it), panel.case.redundant_speedup(mechanism, p(it)))).collect();
        frame.line(svg, &points, style(mechanism));
    }
}

const COLOURS: [&str; 6] = ["#4d4d4d", "#d6604d", "#f4a582", "#2166ac", "#92c5de", "#762a83"];

/// Dashes where a line lies beside that of the plain job.
fn line_of(until: Until, colour: &str) -> String {
    let dashes = if until == Until::JobsOneLeft { " stroke-dasharray=\"7 5\"" } else { "" };
    format!("stroke=\"{colour}\" stroke-width=\"2\"{dashes}")
}

/// White under the names of so many lines at the frame's lower left.
fn ground(svg: &mut String, frame: &Frame, n: usize) {
    let high = 16.0 * n as f64 + 6.0;
    let _ = writeln!(
        svg,
        "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"176\" height=\"{high:.0}\" fill=\"white\" \
         fill-opacity=\"0.8\"/>",
        frame.left + 4.0,
        frame.top + HEIGHT - high - 2.0
    );
}

fn restarts(svg: &mut String, means: &[(Until, Vec<(f64, f64)>)], study: &Study) {
    let lines = means.iter().flat_map(|it| &it.1).map(|it| it.1);
    let dots = study.restarts.iter().filter_map(|it| it.drawn_hours);
    let hours = Axis::decades(lines.chain(dots), [-6.0, 4.0]);
    let frame = frame(4, Axis::Log([0.0, 8.0]), hours);
    let title = "mean time to a restart: lines by the closed form, dots drawn";
    frame.draw(svg, title, "processes P", "hours");
    ground(svg, &frame, means.len());
    for (nth, ((until, curve), colour)) in means.iter().zip(COLOURS).enumerate() {
        let style = line_of(*until, colour);
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
    let frame = frame(5, Axis::Log([0.0, 8.0]), Axis::Log([-3.0, 0.0]));
    let title = "useful share of node-hours: lines by Daly, dots drawn";
    frame.draw(svg, title, "processes P", "share of all node-hours");
    let is_shown = |it: &(f64, f64)| 1e-3 <= it.1;
    ground(svg, &frame, SHARED.len());
    for (nth, until) in SHARED.into_iter().enumerate() {
        let of_all = Until::ALL.iter().position(|it| *it == until);
        let colour = COLOURS[of_all.expect("those that are shared are among all")];
        let style = line_of(until, colour);
        let share = |it: &UsefulRow| (it.processes, it.useful[nth].closed);
        // Below it no logarithm is left to draw.
        let inside: Vec<(f64, f64)> =
            study.useful_curve.iter().map(share).filter(|it| 1e-30 < it.1).collect();
        frame.line(svg, &inside, &style);
        let drawn = |it: &UsefulRow| Some((it.processes, it.useful[nth].drawn?));
        for (p, share) in study.useful.iter().filter_map(drawn).filter(is_shown) {
            let [x, y] = frame.at(p, share);
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
        }
        let mut x = frame.left + 10.0;
        let y = frame.top + HEIGHT - 10.0 - 16.0 * nth as f64;
        legend(svg, &mut x, y, &style, until.word());
    }
}

/// What fits of a name; an ellipsis stands for its middle, so that the MPI stays.
fn cut(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let head = most / 2;
    let tail = letters.len() - (most - head - 1);
    let part = |it: &[char]| it.iter().collect::<String>();
    format!("{}…{}", part(&letters[..head]), part(&letters[tail..]))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_long_name_is_cut_in_its_middle() {
        assert_eq!(cut("lu (openmpi), r = 3", 44), "lu (openmpi), r = 3");
        let long = format!("{} (openmpi), r = 3", "é".repeat(200));
        let short = cut(&long, 44);
        assert_eq!(short.chars().count(), 44);
        assert!(short.contains('…') && short.ends_with("(openmpi), r = 3"), "{short}");
    }
}
