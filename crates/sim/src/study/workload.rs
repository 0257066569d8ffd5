//! Tasks for a study: how many boards, for how long.

use selvedge_model::unit::Span;

use crate::dice::Dice;
use crate::trace::TraceJob;

const SLICES: &str = include_str!("../../data/slices.csv");
const CRUX: &str = include_str!("../../data/crux.csv");
const PHILLY: &str = include_str!("../../data/philly.csv");

/// Chips of one board.
pub const BOARD_CHIPS: u64 = 4;

/// Where tasks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Boxes of 1 to 8 by 1 to 8 boards, each side as likely; service times are exponential.
    Uniform8,
    /// The published TPUv4 slice sizes; service times are exponential.
    Tpu,
    /// Sizes and durations of a production GPU cluster: 4 GPUs and 60 s or more, a week at most.
    Crux,
    /// Sizes and durations of another: 8 GPUs and 60 s or more, a week at most.
    Philly,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Workload::Uniform8, Workload::Tpu, Workload::Crux, Workload::Philly];

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Workload::Uniform8 => "uniform8",
            Workload::Tpu => "tpu",
            Workload::Crux => "crux",
            Workload::Philly => "philly",
        }
    }
}

/// One task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// When it comes.
    pub at: Span,
    /// How many boards it needs.
    pub n_boards: u32,
    /// The sides of the box that it would like.
    pub sides: Option<[u16; 3]>,
    /// How long it runs.
    pub service: Span,
}

/// The mean of the service times that are drawn; all results scale with it.
pub const SERVICE: Span = Span::hours(1);

const COMMITTED: &str = "the committed tables are well-formed: a test reads them";

/// The rows of a committed table, as numbers.
fn rows<const N: usize>(text: &str) -> Vec<[u64; N]> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).skip(1);
    let row = |line: &str| {
        let mut cells = line.split(',').map(|it| it.parse().expect(COMMITTED));
        std::array::from_fn(|_| cells.next().expect(COMMITTED))
    };
    lines.map(row).collect()
}

/// One of `rows`, by the weight that `weight` gives each.
fn one_of<'r, T>(rows: &'r [T], weight: impl Fn(&T) -> u64, dice: &mut Dice) -> &'r T {
    let mut drawn = dice.below(rows.iter().map(&weight).sum());
    for row in rows {
        if drawn < weight(row) {
            return row;
        }
        drawn -= weight(row);
    }
    unreachable!("a number below the sum lies in a row")
}

/// Draws `n` tasks that all wait from the beginning, each for at most `n_boards` boards.
pub fn draw(workload: Workload, n: usize, n_boards: u32, seed: u64) -> Vec<Task> {
    let (mut sizes, mut services) = (Dice::new(seed, "sizes"), Dice::new(seed, "services"));
    match workload {
        Workload::Uniform8 => (0..n)
            .map(|_| {
                let mut side = || u16::try_from(1 + sizes.below(8)).expect("at most 8");
                let sides = [side(), side(), 1];
                let n_boards = u32::from(sides[0]) * u32::from(sides[1]);
                let service = services.exponential(SERVICE);
                Task { at: Span::ZERO, n_boards, sides: Some(sides), service }
            })
            .collect(),
        Workload::Tpu => {
            let mix = slices(n_boards);
            let mut draw = || *one_of(&mix, |it| it.1, &mut sizes);
            let mut task = || {
                let (n_boards, _) = draw();
                let service = services.exponential(SERVICE);
                Task { at: Span::ZERO, n_boards, sides: None, service }
            };
            (0..n).map(|_| task()).collect()
        }
        Workload::Crux => {
            let mut rows = rows::<3>(CRUX);
            rows.retain(|it| boards(it[0]) <= n_boards);
            let mut draw = || *one_of(&rows, |it| it[2], &mut sizes);
            let mut task = || {
                let [gpus, seconds, _] = draw();
                let (n_boards, service) = (boards(gpus), Span::secs(seconds));
                Task { at: Span::ZERO, n_boards, sides: None, service }
            };
            (0..n).map(|_| task()).collect()
        }
        Workload::Philly => {
            let rows = rows::<4>(PHILLY);
            let sizes_of: Vec<&[[u64; 4]]> = rows
                .chunk_by(|a, b| a[0] == b[0])
                .filter(|it| boards(it[0][0]) <= n_boards)
                .collect();
            (0..n)
                .map(|_| {
                    let points = one_of(&sizes_of, |it| it[0][1], &mut sizes);
                    let service = between(points, &mut services);
                    Task { at: Span::ZERO, n_boards: boards(points[0][0]), sides: None, service }
                })
                .collect()
        }
    }
}

/// Boards that hold so many chips.
fn boards(n_chips: u64) -> u32 {
    u32::try_from(n_chips.div_ceil(BOARD_CHIPS)).unwrap_or(u32::MAX)
}

/// Boards of the published slices with their weights, no slice larger than the machine.
fn slices(n_boards: u32) -> Vec<(u32, u64)> {
    let lines = SLICES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).skip(1);
    let row = |line: &str| {
        let (shape, share) = line.split_once(',').expect(COMMITTED);
        // By what is written: smaller shapes take whole boards anyway.
        let sides = shape.trim_end_matches("_twisted").split('x');
        let n_chips = sides.map(|it| it.parse::<u64>().expect(COMMITTED)).product();
        (boards(n_chips), share.parse::<u64>().expect(COMMITTED))
    };
    lines.map(row).filter(|it| it.0 <= n_boards).collect()
}

/// A duration between two neighbouring percentiles, each point between them as likely.
fn between(points: &[[u64; 4]], dice: &mut Dice) -> Span {
    let drawn = dice.below(100);
    let upper = points.iter().position(|it| drawn < it[2]).expect("the last percentile is 100");
    let [low, high] = [points[upper.saturating_sub(1)], points[upper]].map(|it| it[3]);
    dice.span(Span::secs(low), Span::secs(high.max(low + 1)))
}

/// The jobs of a trace as tasks, each of them: those that no machine holds and those that last no
/// time too.  They all wait from the beginning, or come as they came.
pub fn of_trace(jobs: &[TraceJob], comes_in_time: bool) -> Vec<Task> {
    let task = |it: &TraceJob| Task {
        at: if comes_in_time { it.at } else { Span::ZERO },
        n_boards: boards(it.size),
        sides: None,
        service: it.duration,
    };
    jobs.iter().map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_have_the_sizes_that_their_tables_say() {
        let tasks = |workload| draw(workload, 20_000, 256, 1);
        let mean = |tasks: &[Task]| {
            tasks.iter().map(|it| f64::from(it.n_boards)).sum::<f64>() / tasks.len() as f64
        };
        // 4.5 squared; the published mix up to 1,024 chips; 1,941 jobs of the production cluster.
        let uniform = mean(&tasks(Workload::Uniform8));
        assert!((uniform - 20.25).abs() < 0.4, "{uniform}");
        let crux = tasks(Workload::Crux);
        assert!(crux.iter().all(|it| Span::secs(60) <= it.service && it.n_boards <= 186));
        let tpu = tasks(Workload::Tpu);
        let share = |k: u32| tpu.iter().filter(|it| it.n_boards == k).count() as f64 / 20_000.0;
        // 13.9 of 88.4 per cent are cubes, 17.5 are two cubes.
        assert!((share(16) - 0.157).abs() < 0.02 && (share(32) - 0.198).abs() < 0.02);
        let philly = tasks(Workload::Philly);
        let eight = philly.iter().filter(|it| it.n_boards == 2).count() as f64 / 20_000.0;
        assert!((eight - 1613.0 / 1875.0).abs() < 0.01, "{eight}");
        for workload in Workload::ALL {
            assert_eq!(draw(workload, 100, 256, 3), draw(workload, 100, 256, 3));
            assert_ne!(draw(workload, 100, 256, 3), draw(workload, 100, 256, 4));
        }
    }
}
