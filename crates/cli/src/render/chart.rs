//! What the pictures of studies share: a sheet that is readable on light and on dark, and frames
//! with scales, curves and a legend.

use std::fmt::Write as _;

use crate::render::number;

/// The first lines of a document of this size, with its title for those who hear it.  Who knows no
/// media queries sees it on white.
pub(crate) fn sheet(width: f64, height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
        escaped(title)
    )
}

const STYLE: &str = ".bg{fill:#ffffff}text{fill:#1f2733}.s{fill:#5b6675}.h{font-size:16px}\
    .b{font-weight:600}.e{text-anchor:end}.m{text-anchor:middle}.frame{fill:none;stroke:#8a94a3}\
    .rule{stroke:#e3e7ec}.line{fill:none;stroke-width:1.6}.free{fill:#ffffff;stroke:#b9c1cc}\
    .task{stroke:#b9c1cc}.dead{fill:none;stroke:#1f2733}.node{fill:#1f2733}\
    .wire{fill:none;stroke:#1f2733}.long{fill:none;stroke:#8a94a3}\
    @media(prefers-color-scheme:dark){.bg{fill:#0f141a}text{fill:#e6eaf0}.s{fill:#9aa5b4}\
    .frame{stroke:#6b7686}.rule{stroke:#28313c}.free{fill:#161d26;stroke:#3d4855}\
    .task{stroke:#3d4855}.dead{stroke:#e6eaf0}.node{fill:#e6eaf0}.wire{stroke:#e6eaf0}\
    .long{stroke:#7d8898}}";

/// Colours of curves, which differ on light and on dark.
const COLOURS: [&str; 8] =
    ["#2f7ed8", "#d9534f", "#d98e0b", "#2e9e5b", "#9561c9", "#17a2b8", "#c2478f", "#8a8f98"];

/// The colour of the curve number `nth`.
pub(crate) fn colour(nth: usize) -> &'static str {
    COLOURS[nth % COLOURS.len()]
}

/// `text` as it stands between tags.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What is told along one side, from zero on.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it is, with its unit.
    pub(crate) name: String,
    /// The greatest value.
    pub(crate) high: f64,
}

impl Axis {
    /// Time up to `end` in seconds, in a unit that gives short numbers; and that unit in seconds.
    pub(crate) fn time(end: f64) -> (Self, f64) {
        let units = [("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)];
        let unit = units.into_iter().find(|it| 3.0 * it.1 <= end);
        let (name, unit) = unit.unwrap_or(("seconds", 1.0));
        (Self { name: format!("time, {name}"), high: (end / unit).max(1e-9) }, unit)
    }

    /// Where strokes stand: quarters of what is a power of two, else round numbers.
    fn ticks(&self) -> Vec<f64> {
        let whole = self.high as u64;
        let step = if whole.is_power_of_two() && 8 <= whole && self.high == whole as f64 {
            self.high / 4.0
        } else {
            let rough = self.high / 6.0;
            let mut decade = 1.0;
            while rough < decade {
                decade /= 10.0;
            }
            while 10.0 * decade <= rough {
                decade *= 10.0;
            }
            let round = [1.0, 2.0, 5.0].map(|it| it * decade);
            round.into_iter().find(|it| rough <= *it).unwrap_or(10.0 * decade)
        };
        let n = (self.high / step + 1e-9) as u32;
        (0..=n).map(|it| f64::from(it) * step).collect()
    }
}

/// A frame with two scales.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What is shown.
    pub(crate) title: String,
    /// The upper left corner of the frame.
    pub(crate) at: [f64; 2],
    /// Its width and height.
    pub(crate) size: [f64; 2],
    /// Rightward.
    pub(crate) x: Axis,
    /// Upward.
    pub(crate) y: Axis,
}

/// Room that a chart wants below its frame, without its legend, and to the left of it.
pub(crate) const BELOW: f64 = 42.0;
pub(crate) const BESIDE: f64 = 62.0;
/// A row of a legend.
pub(crate) const LEGEND_ROW: f64 = 18.0;

impl Chart {
    fn point(&self, x: f64, y: f64) -> [f64; 2] {
        let ([left, top], [width, height]) = (self.at, self.size);
        [left + width * x / self.x.high, top + height * (1.0 - y / self.y.high)]
    }

    /// The frame, its title, rules with their numbers, and what the scales are.
    pub(crate) fn frame(&self, svg: &mut String) {
        let ([left, top], [width, height]) = (self.at, self.size);
        let (right, bottom) = (left + width, top + height);
        let _ = writeln!(
            svg,
            "<text class=\"b\" x=\"{left:.0}\" y=\"{:.0}\">{}</text>",
            top - 8.0,
            escaped(&self.title)
        );
        for tick in self.x.ticks() {
            let [x, _] = self.point(tick, 0.0);
            let _ = writeln!(
                svg,
                "<path class=\"rule\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/><text class=\"s m\" \
                 x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 15.0,
                told(tick)
            );
        }
        for tick in self.y.ticks() {
            let [_, y] = self.point(0.0, tick);
            let _ = writeln!(
                svg,
                "<path class=\"rule\" d=\"M{left:.1} {y:.1}H{right:.1}\"/><text class=\"s e\" \
                 x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                y + 4.0,
                told(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>\n<text class=\"s m\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n\
             <text class=\"s m\" transform=\"translate({:.1} {:.1}) rotate(-90)\">{}</text>",
            left + width / 2.0,
            bottom + 32.0,
            escaped(&self.x.name),
            left - 46.0,
            top + height / 2.0,
            escaped(&self.y.name)
        );
    }

    /// A curve that stays as it is until the next point.
    pub(crate) fn steps(&self, svg: &mut String, points: &[(f64, f64)], nth: usize) {
        let mut path = String::new();
        let mut before: Option<f64> = None;
        for &(x, y) in points {
            let [x, y] = self.point(x, y);
            if before.is_none_or(|it| 0.05 < (it - y).abs()) {
                let _ = match before {
                    None => write!(path, "M{x:.1} {y:.1}"),
                    Some(_) => write!(path, "H{x:.1}V{y:.1}"),
                };
                before = Some(y);
            }
        }
        if let Some(&(x, _)) = points.last() {
            let _ = write!(path, "H{:.1}", self.point(x, 0.0)[0]);
        }
        let _ = writeln!(svg, "<path class=\"line\" stroke=\"{}\" d=\"{path}\"/>", colour(nth));
    }

    /// What each curve is, below the frame, so many in a row.
    pub(crate) fn legend(&self, svg: &mut String, names: &[String], per_row: usize) {
        let ([left, top], [width, height]) = (self.at, self.size);
        for (nth, name) in names.iter().enumerate() {
            let x = left + width / per_row as f64 * (nth % per_row) as f64;
            let y = top + height + BELOW + LEGEND_ROW * (nth / per_row) as f64 + 10.0;
            let _ = writeln!(
                svg,
                "<path class=\"line\" stroke=\"{}\" d=\"M{x:.1} {:.1}h24\"/><text x=\"{:.1}\" \
                 y=\"{y:.1}\">{}</text>",
                colour(nth),
                y - 4.0,
                x + 30.0,
                escaped(name)
            );
        }
    }
}

/// A number on a scale.
fn told(value: f64) -> String {
    if value.fract().abs() < 1e-9 {
        return number::grouped(value.round() as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(high: f64) -> Vec<String> {
        Axis { name: String::new(), high }.ticks().into_iter().map(told).collect()
    }

    #[test]
    fn scales_have_few_round_numbers_and_quarters_of_powers_of_two() {
        assert_eq!(ticks(4096.0), ["0", "1,024", "2,048", "3,072", "4,096"]);
        assert_eq!(ticks(256.0), ["0", "64", "128", "192", "256"]);
        assert_eq!(ticks(240.0), ["0", "50", "100", "150", "200"]);
        assert_eq!(ticks(1.3), ["0", "0.5", "1"]);
        assert_eq!(ticks(33.4), ["0", "10", "20", "30"]);
        for high in [1e-9, 0.003, 1.0, 7.7, 99.0, 12_345.0, 3e7] {
            let n = ticks(high).len();
            assert!((2..=8).contains(&n), "{high}: {n}");
        }
    }

    #[test]
    fn time_is_told_in_a_unit_that_gives_short_numbers() {
        for (end, name) in [
            (1e6, "days"),
            (20_000.0, "hours"),
            (600.0, "minutes"),
            (100.0, "seconds"),
            (0.0, "seconds"),
        ] {
            let (axis, unit) = Axis::time(end);
            assert_eq!(axis.name, format!("time, {name}"));
            assert!(0.0 < axis.high && (end == 0.0 || axis.high == end / unit));
        }
    }

    #[test]
    fn a_curve_stays_as_it_is_until_the_next_point() {
        let axis = |high| Axis { name: String::new(), high };
        let chart = Chart {
            title: "<a>".to_owned(),
            at: [0.0, 0.0],
            size: [10.0, 10.0],
            x: axis(10.0),
            y: axis(10.0),
        };
        let mut svg = String::new();
        chart.steps(&mut svg, &[(0.0, 1.0), (2.0, 1.0), (5.0, 4.0), (9.0, 4.0)], 0);
        assert!(svg.contains("d=\"M0.0 9.0H5.0V6.0H9.0\""), "{svg}");
        chart.frame(&mut svg);
        assert!(svg.contains("&lt;a&gt;"));
    }
}
