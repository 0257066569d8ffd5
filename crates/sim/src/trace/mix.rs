//! Jobs drawn from the published TPUv4 slice mix.
//!
//! Shapes and times between arrivals come from the published tables, durations from the
//! percentiles of a production GPU cluster.  The mix is normalised, as its shares add up to
//! 97.5 %; 1x1x2 and 1x2x2 are let as the machine that they lie in.

use selvedge_family::torus::shape::Shape;
use selvedge_model::unit::{Ppm, Span};

use crate::dice::Dice;
use crate::trace::{Cell, Scaled, TraceJob, scale};

const SLICES: &str = include_str!("../../data/slices.csv");
const ARRIVALS: &str = include_str!("../../data/arrivals.csv");
const DURATIONS: &str = include_str!("../../data/durations.csv");

/// A table of things with their weights.
struct Table<T> {
    rows: Vec<(T, u64)>,
    total: u64,
}

impl<T: Clone> Table<T> {
    fn read(text: &str, thing: impl Fn(&str) -> T) -> Self {
        let rows: Vec<(T, u64)> =
            rows(text).map(|(left, right)| (thing(left), number(right))).collect();
        let total = rows.iter().map(|it| it.1).sum();
        Self { rows, total }
    }

    fn draw(&self, dice: &mut Dice) -> T {
        let mut drawn = dice.below(self.total);
        for (thing, weight) in &self.rows {
            if drawn < *weight {
                return thing.clone();
            }
            drawn -= weight;
        }
        unreachable!("a number below the total lies in a row")
    }
}

const COMMITTED: &str = "the committed tables are well-formed: a test reads them";

fn number(text: &str) -> u64 {
    text.parse().expect(COMMITTED)
}

/// The two columns of each row, after the comments and the heading.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).skip(1);
    rows.map(|line| line.split_once(',').expect(COMMITTED))
}

/// A duration between two neighbouring percentiles, each point between them as likely.
fn duration(percentiles: &[Span], dice: &mut Dice) -> Span {
    let low = dice.index(percentiles.len() - 1);
    dice.span(percentiles[low], percentiles[low + 1])
}

/// How many jobs to draw, for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// How many.
    pub n_jobs: u64,
    /// For which plant; shapes that none of its pods holds are drawn again.
    pub cell: Cell,
    /// The load that they are to offer.
    pub load: Ppm,
    /// What is scaled to that end.
    pub scaled: Scaled,
}

/// Draws jobs.
pub fn draw(seed: u64, mix: Mix) -> Vec<TraceJob> {
    let shapes = Table::read(SLICES, |text| Shape::parse(text).expect(COMMITTED).0);
    let gaps = Table::read(ARRIVALS, |text| Span::millis(number(text)));
    let percentiles: Vec<Span> =
        rows(DURATIONS).map(|(_, seconds)| Span::secs(number(seconds))).collect();
    let (mut shape_dice, mut gap_dice) = (Dice::new(seed, "shapes"), Dice::new(seed, "arrivals"));
    let mut duration_dice = Dice::new(seed, "durations");
    let fits = |shape: &Shape| u64::from(shape.n_chips()) <= mix.cell.largest_pod;
    assert!(shapes.rows.iter().any(|(shape, _)| fits(shape)), "a plant holds a chip at least");
    let mut at = Span::ZERO;
    let mut jobs: Vec<TraceJob> = (0..mix.n_jobs)
        .map(|number| {
            at += gaps.draw(&mut gap_dice);
            let mut shape = shapes.draw(&mut shape_dice);
            while !fits(&shape) {
                shape = shapes.draw(&mut shape_dice);
            }
            let duration = duration(&percentiles, &mut duration_dice);
            let n_chips = u64::from(shape.n_chips());
            TraceJob { number, at, shape: shape.to_string(), n_chips, size: n_chips, duration }
        })
        .collect();
    scale(&mut jobs, mix.cell, mix.load, mix.scaled);
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::load;

    #[test]
    fn the_drawn_mix_is_the_published_one() {
        let mix = Mix {
            n_jobs: 50_800,
            cell: Cell::of(1, 4096),
            load: Ppm::new(850_000),
            scaled: Scaled::Durations,
        };
        let jobs = draw(1, mix);
        assert_eq!(jobs.len(), 50_800);
        let share = |shape: &str| {
            jobs.iter().filter(|it| it.shape == shape).count() as f64 / jobs.len() as f64
        };
        // 13.9, 16.0 and 6.7 + 0.4 of 97.5 per cent.
        assert!((share("4x4x4") - 0.1426).abs() < 0.005, "{}", share("4x4x4"));
        assert!((share("4x4x8_twisted") - 0.1641).abs() < 0.005, "{}", share("4x4x8_twisted"));
        assert!((share("2x2x1") - 0.0728).abs() < 0.005, "{}", share("2x2x1"));
        assert!((load(&jobs, Cell::of(1, 4096)) - 0.85).abs() < 1e-6);
        // 50,800 arrivals make a year.
        let days = jobs.last().unwrap().at.as_secs() / 86_400;
        assert!((355..=375).contains(&days), "{days}");
        assert_eq!(draw(1, mix), jobs);
        assert_ne!(draw(2, mix)[0..50], jobs[0..50]);
    }
}
