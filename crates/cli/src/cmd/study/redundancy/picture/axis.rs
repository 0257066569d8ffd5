//! Axes of the picture, and what stands beside them.

/// From where to where an axis goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Axis {
    /// Decades.
    Log([f64; 2]),
    /// Powers of two, for few processes.
    Octaves([f64; 2]),
    /// Steps of this length, for what may lie below zero.
    Linear([f64; 2], f64),
}

impl Axis {
    /// The decades that hold all of these above zero; those of `least` where there are none.
    pub(super) fn decades(values: impl Iterator<Item = f64>, least: [f64; 2]) -> Self {
        let logs: Vec<f64> = values.filter(|it| 0.0 < *it).map(f64::log10).collect();
        if logs.is_empty() {
            return Axis::Log(least);
        }
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        Axis::Log([low, high.max(low + 1.0)])
    }

    /// Half an octave on either side of these, none of which is below one.
    pub(super) fn octaves(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.map(f64::log2).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
                (low.min(it), high.max(it))
            });
        Axis::Octaves([low.floor() - 0.5, high.ceil() + 0.5])
    }

    /// Ends that hold all of these and zero, a handful of round steps apart.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
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
    pub(super) fn along(self, value: f64) -> f64 {
        match self {
            Axis::Log([low, high]) => (value.log10() - low) / (high - low),
            Axis::Octaves([low, high]) => (value.log2() - low) / (high - low),
            Axis::Linear([low, high], _) => (value - low) / (high - low),
        }
    }

    /// Where a line is drawn and what stands beside it.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Axis::Log([low, high]) => {
                let step = if high - low <= 5.0 { 1 } else { ((high - low) / 5.0).ceil() as usize };
                (low as i32..=high as i32)
                    .step_by(step)
                    .map(|it| {
                        let share = (f64::from(it) - low) / (high - low);
                        (share, raised(10, it))
                    })
                    .collect()
            }
            Axis::Octaves([low, high]) => {
                let step = ((high - low) / 7.0).ceil() as usize;
                let text = |it: i32| if it < 14 { (1 << it).to_string() } else { raised(2, it) };
                (low.ceil() as i32..=high.floor() as i32)
                    .step_by(step)
                    .map(|it| ((f64::from(it) - low) / (high - low), text(it)))
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

/// A power.
fn raised(base: u32, power: i32) -> String {
    format!("{base}<tspan dy=\"-5\" font-size=\"9\">{power}</tspan>")
}

/// A value on an axis of such steps, without the last bits of a sum.
fn label(value: f64, step: f64) -> String {
    if 1e5 <= value.abs() {
        return format!("{value:e}");
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.trim_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Axis, label};

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
        assert_eq!(label(200_000_000.0, 1e8), "2e8");
    }

    #[test]
    fn few_processes_are_told_apart_by_powers_of_two() {
        let labels = |values: &[f64]| -> Vec<String> {
            let axis = Axis::octaves(values.iter().copied());
            inside(axis, values);
            axis.ticks().into_iter().map(|it| it.1).collect()
        };
        assert_eq!(labels(&[2.0, 3.0, 16.0]), ["2", "4", "8", "16"]);
        assert_eq!(labels(&[1.0]), ["1"]);
        assert_eq!(labels(&[3.0]), ["2", "4"]);
        assert!(labels(&[1.0, f64::from(u32::MAX)]).len() <= 8);
        // In the order of the values, an octave as wide everywhere.
        let axis = Axis::octaves([2.0, 16.0].into_iter());
        let [a, b, c] = [2.0, 4.0, 8.0].map(|it| axis.along(it));
        assert!((b - a - (c - b)).abs() < 1e-9 && a < b);
    }
}
