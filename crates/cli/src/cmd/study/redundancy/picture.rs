//! Figure 13 with the three readings, mean times to a restart, useful shares, and measured points.

use std::fmt::Write as _;

use selvedge_sim::study::redundancy::figure::{CURVES, P_MAX, Panel};
use selvedge_sim::study::redundancy::restart::Until;
use selvedge_sim::study::redundancy::speedup::{Growth, Mechanism, Reading};

use crate::cmd::study::redundancy::measured::{Measured, Point};
use crate::cmd::study::redundancy::{SHARED, Study, UsefulRow};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 62.0;
const ABOVE: f64 = 66.0;
const COLUMN: f64 = WIDTH + 90.0;
const ROW: f64 = HEIGHT + 96.0;

/// From where to where an axis goes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    /// Decades.
    Log([f64; 2]),
    /// Steps of this length, for what may lie below zero.
    Linear([f64; 2], f64),
}

impl Axis {
    /// The decades that hold all of these above zero; those of `least` where there are none.
    fn decades(values: impl Iterator<Item = f64>, least: [f64; 2]) -> Self {
        let logs: Vec<f64> = values.filter(|it| 0.0 < *it).map(f64::log10).collect();
        if logs.is_empty() {
            return Axis::Log(least);
        }
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        Axis::Log([low, high.max(low + 1.0)])
    }

    /// Ends that hold all of these and zero, a handful of round steps apart.
    fn linear(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.fold((0.0, 0.0), |(low, high): (f64, f64), it| (low.min(it), high.max(it)));
        let rough = (high - low).max(1.0) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().map(|it| it * power).find(|it| rough <= *it);
        let step = step.unwrap_or(10.0 * power);
        // A step beyond the last, so that no dot lies on the frame.
        let beyond = |it: f64| ((it / step).floor() + 1.0) * step;
        let low = if low < 0.0 { -beyond(-low) } else { 0.0 };
        Axis::Linear([low, beyond(high)], step)
    }

    /// How far along it a value lies: 0 to 1 for what it was made for.
    fn along(self, value: f64) -> f64 {
        match self {
            Axis::Log([low, high]) => (value.log10() - low) / (high - low),
            Axis::Linear([low, high], _) => (value - low) / (high - low),
        }
    }

    /// Where a line is drawn and what stands beside it.
    fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Axis::Log([low, high]) => {
                let step = if high - low <= 5.0 { 1 } else { ((high - low) / 5.0).ceil() as usize };
                (low as i32..=high as i32)
                    .step_by(step)
                    .map(|it| {
                        let share = (f64::from(it) - low) / (high - low);
                        (share, format!("10<tspan dy=\"-5\" font-size=\"9\">{it}</tspan>"))
                    })
                    .collect()
            }
            Axis::Linear([low, high], step) => {
                let n = ((high - low) / step).round() as i32;
                let value = |it: i32| low + step * f64::from(it);
                (0..=n).map(|it| (f64::from(it) / f64::from(n), label(value(it), step))).collect()
            }
        }
    }
}

/// A value on an axis of such steps, without the last bits of a sum.
fn label(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.trim_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
}

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
    let names = 16.0 * study.measured.len().div_ceil(NAMES) as f64;
    let (wide, high) = (2.0 * COLUMN + 20.0, ABOVE + rows * ROW + names);
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
    if !measured.points.is_empty() {
        points(&mut svg, study);
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

const COLOURS: [&str; 6] = ["#4d4d4d", "#d6604d", "#f4a582", "#2166ac", "#92c5de", "#762a83"];

fn restarts(svg: &mut String, means: &[(Until, Vec<(f64, f64)>)], study: &Study) {
    let lines = means.iter().flat_map(|it| &it.1).map(|it| it.1);
    let dots = study.restarts.iter().filter_map(|it| it.drawn_hours);
    let hours = Axis::decades(lines.chain(dots), [-6.0, 4.0]);
    let frame = frame(4, Axis::Log([0.0, 8.0]), hours);
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
    let frame = frame(5, Axis::Log([0.0, 8.0]), Axis::Log([-3.0, 0.0]));
    let title = "useful share of node-hours: lines by Daly, dots drawn";
    frame.draw(svg, title, "processes P", "share, with checkpoints");
    let is_shown = |it: &(f64, f64)| 1e-3 <= it.1;
    for (nth, until) in SHARED.into_iter().enumerate() {
        let of_all = Until::ALL.iter().position(|it| *it == until);
        let colour = COLOURS[of_all.expect("those that are shared are among all")];
        let style = format!("stroke=\"{colour}\" stroke-width=\"2\"");
        let share = |it: &UsefulRow| (it.processes, it.useful[nth].closed);
        let inside: Vec<(f64, f64)> =
            study.useful_curve.iter().map(share).filter(is_shown).collect();
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

/// Names of programs beside each other, below the frames.
const NAMES: usize = 3;
/// Letters of a name that fit.
const LETTERS: usize = 44;

/// Messages and bytes for each send, which must not grow, and what a run costs.
fn points(svg: &mut String, study: &Study) {
    let all = || study.measured.iter().flat_map(|it| &it.points);
    let ranks = Axis::decades(all().map(|it| f64::from(it.ranks)).chain([1.0]), [0.0, 1.0]);
    let counts = all().flat_map(|it| [it.messages_per_send, it.bytes_per_send]);
    let sends = frame(6, ranks, Axis::decades(counts, [0.0, 1.0]));
    let title = "measured: messages (dots), bytes (rings) for each send";
    sends.draw(svg, title, "processes P", "for each send, where above 0");
    let per_cent = |it: &Point| 100.0 * it.overhead_cpu;
    let reckoned = study.measured.iter().flat_map(|it| it.by_formula.iter().flatten());
    let heights = all().map(per_cent).chain(reckoned.map(|it| 100.0 * it));
    let costs = frame(7, ranks, Axis::linear(heights));
    let title = "measured CPU beyond three plain runs (dots), formula (9) (lines)";
    costs.draw(svg, title, "processes P", "per cent");
    // From one process, where each axis of processes begins, to the right of the frame.
    let [x, y] = costs.at(1.0, 0.0);
    let _ = writeln!(svg, "<path d=\"M{x:.1} {y:.1}h{WIDTH}\" stroke=\"#888\"/>");
    for (nth, program) in study.measured.iter().enumerate() {
        let colour = format!("hsl({} 60% 42%)", nth * 137 % 360);
        for (it, reckoned) in program.points.iter().zip(&program.by_formula) {
            let p = f64::from(it.ranks);
            if let Some(share) = reckoned {
                let [x, y] = costs.at(p, 100.0 * share);
                let (left, width) = (x - 7.0, 14);
                let path = format!("M{left:.1} {y:.1}h{width}");
                let _ = writeln!(svg, "<path d=\"{path}\" stroke=\"{colour}\"/>");
            }
            let mut dot = |[x, y]: [f64; 2], look: &str| {
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {look}/>");
            };
            let full = format!("fill=\"{colour}\"");
            if 0.0 < it.messages_per_send {
                dot(sends.at(p, it.messages_per_send), &full);
            }
            if 0.0 < it.bytes_per_send {
                let ring = format!("fill=\"none\" stroke=\"{colour}\"");
                dot(sends.at(p, it.bytes_per_send), &ring);
            }
            dot(costs.at(p, per_cent(it)), &full);
        }
        let (column, row) = (nth % NAMES, nth / NAMES);
        let name = format!("{} ({}), r = {}", program.program, program.mpi, program.replicas);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" fill=\"{colour}\"><title>{}</title>{}</text>",
            sends.left + 2.0 * COLUMN / NAMES as f64 * column as f64,
            sends.top + HEIGHT + 60.0 + 16.0 * row as f64,
            escaped(&name),
            escaped(&cut(&name))
        );
    }
}

/// What fits of a name; an ellipsis stands for its middle, so that the MPI stays.
fn cut(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LETTERS {
        return name.to_owned();
    }
    let head = LETTERS / 2;
    let tail = letters.len() - (LETTERS - head - 1);
    let part = |it: &[char]| it.iter().collect::<String>();
    format!("{}…{}", part(&letters[..head]), part(&letters[tail..]))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{Axis, LETTERS, cut, label};

    fn inside(axis: Axis, values: &[f64]) {
        for it in values {
            assert!((0.0..=1.0).contains(&axis.along(*it)), "{it} is outside of {axis:?}");
        }
    }

    #[test]
    fn axes_follow_what_is_drawn() {
        for values in [[1e-8, 3e9], [2.0, 2.0], [1.0, 1e7], [999.0, 1e15]] {
            let axis = Axis::decades(values.into_iter(), [0.0, 1.0]);
            inside(axis, &values);
            assert!(axis.ticks().len() <= 7, "{axis:?}");
        }
        // Nothing above zero: the axis that was asked for, and no NaN.
        assert_eq!(Axis::decades([0.0].into_iter(), [0.0, 1.0]), Axis::Log([0.0, 1.0]));
        for values in [[-3.0, 2.0], [-80.0, 12_000.0], [0.0, 0.0], [0.1, 0.2], [-99.0, -1.0]] {
            let axis = Axis::linear(values.into_iter());
            inside(axis, &values);
            inside(axis, &[0.0]);
            assert!((2..=9).contains(&axis.ticks().len()), "{axis:?}");
        }
        // What costs less than nothing lies below the line of zero.
        let axis = Axis::linear([-3.0, 2.0].into_iter());
        assert!(axis.along(-3.0) < axis.along(0.0));
        assert_eq!(label(-0.0, 0.5), "0");
        assert_eq!(label(0.30000000000000004, 0.1), "0.3");
    }

    #[test]
    fn a_long_name_is_cut_in_its_middle() {
        assert_eq!(cut("lu (openmpi), r = 3"), "lu (openmpi), r = 3");
        let long = format!("{} (openmpi), r = 3", "é".repeat(200));
        let short = cut(&long);
        assert_eq!(short.chars().count(), LETTERS);
        assert!(short.contains('…') && short.ends_with("(openmpi), r = 3"), "{short}");
    }
}
