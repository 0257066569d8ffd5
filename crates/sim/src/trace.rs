//! Jobs to submit: from a trace, or drawn from the published mix.
//!
//! A trace is a table of job id, arrival time (sec), topology, shape, size, duration (sec); a first
//! line that names the columns may stand with or without a `#`.  A job of a Clos cluster has a size
//! only; it takes the shape with the fewest chips that hold it, and of several the one with the
//! smallest diameter.

pub mod mix;

use std::collections::BTreeMap;

use selvedge_family::torus::shape::Shape;
use selvedge_model::job::{Collective, Demand, JobSpec, Load, Work};
use selvedge_model::unit::{Ppm, Span};

use crate::dice::Dice;
use crate::limits;

/// One job of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Its number in the trace.
    pub number: u64,
    /// When it is submitted, from the first moment on.
    pub at: Span,
    /// The slice that it asks for.
    pub shape: String,
    /// How many chips that are.
    pub n_chips: u64,
    /// How many it needs: of a job of a Clos cluster its size, of any other all of its slice.
    pub size: u64,
    /// How long it runs on healthy hardware.
    pub duration: Span,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TraceError {
    /// A line without all its columns.
    #[error(
        "{file}, line {line}: {found} {}; there ought to be 6, with commas between them: {COLUMNS}",
        if *found == 1 { "column" } else { "columns" }
    )]
    Columns {
        /// Which file.
        file: String,
        /// Which line, from 1 on.
        line: usize,
        /// How many it has.
        found: usize,
    },
    /// A first line that names other columns, or these in another order.
    #[error(
        "{file}, line {line}: column {column} is called {found:?}; it ought to be {right:?}, and the \
         columns these: {COLUMNS}"
    )]
    Header {
        /// Which file.
        file: String,
        /// Which line.
        line: usize,
        /// Which column, from 1 on.
        column: usize,
        /// What it is called, cut short.
        found: String,
        /// What it ought to be called.
        right: &'static str,
    },
    /// A column that is no number of its kind.
    #[error("{file}, line {line}: {column} is {value:?}; {right}")]
    Value {
        /// Which file.
        file: String,
        /// Which line.
        line: usize,
        /// Which column.
        column: &'static str,
        /// As written, cut short.
        value: String,
        /// What would be right.
        right: &'static str,
    },
    /// Two jobs of one number: the second would pass for the first, asked for again.
    #[error("{file}, line {line}: job id {number} stands on line {first} already; number it anew")]
    Twice {
        /// Which file.
        file: String,
        /// Which line.
        line: usize,
        /// The number.
        number: u64,
        /// Where it stands first.
        first: usize,
    },
    /// Nothing to do.
    #[error("{file} holds no job; its lines ought to be: {COLUMNS}")]
    Empty {
        /// Which file.
        file: String,
    },
    /// More than a run takes.
    #[error("{file} has more than {max} lines; cut it into parts", max = limits::TRACE_LINES_MAX)]
    TooLong {
        /// Which file.
        file: String,
    },
}

const COLUMNS: &str = "job id,arrival time (sec),topology,shape,size,duration (sec)";

/// What the names of the columns begin with.
const NAMES: [&str; 6] = ["job id", "arrival time", "topology", "shape", "size", "duration"];

/// Decimals that are read; the rest is cut off.
const DECIMALS_READ: usize = 18;

/// How much of a value an error shows, in characters.
const SHOWN_MAX: usize = 32;

/// Reads a trace; `file` is its name for errors.  Jobs come back in the order of their arrival.
///
/// # Errors
/// [`TraceError`], the first one.
pub fn parse(file: &str, text: &str) -> Result<Vec<TraceJob>, TraceError> {
    let mut jobs = Vec::new();
    let mut shapes = BTreeMap::new();
    let mut lines: BTreeMap<u64, usize> = BTreeMap::new();
    // Spreadsheets put a mark in front that says how bytes are ordered.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut is_first = true;
    for (idx, line) in text.lines().enumerate() {
        if limits::TRACE_LINES_MAX < idx {
            return Err(TraceError::TooLong { file: file.to_owned() });
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if std::mem::take(&mut is_first) && is_header(line) {
            header(file, idx + 1, line)?;
            continue;
        }
        let job = job(file, idx + 1, line, &mut shapes)?;
        if let Some(first) = lines.insert(job.number, idx + 1) {
            let (file, number) = (file.to_owned(), job.number);
            return Err(TraceError::Twice { file, line: idx + 1, number, first });
        }
        jobs.push(job);
    }
    if jobs.is_empty() {
        return Err(TraceError::Empty { file: file.to_owned() });
    }
    // Stable, so that jobs of one moment stay in the order of the file.
    jobs.sort_by_key(|it: &TraceJob| it.at);
    Ok(jobs)
}

/// Whether a line names columns: nothing of it that a job has as a number is one.
fn is_header(line: &str) -> bool {
    let mut columns = line.split(',').map(str::trim);
    let is_word = |it: &str| it.contains(char::is_alphabetic) && it.parse::<f64>().is_err();
    columns.clone().count() == NAMES.len()
        && columns.next().is_some_and(is_word)
        && columns.next().is_some_and(is_word)
        && columns.next_back().is_some_and(is_word)
}

/// Holds the names of the columns against those that are read.
fn header(file: &str, line: usize, text: &str) -> Result<(), TraceError> {
    for ((found, right), column) in text.split(',').map(str::trim).zip(NAMES).zip(1..) {
        let plain = found.trim_matches('"').to_lowercase().replace(['_', '-'], " ");
        // `job`, `arrival`, `duration_s` are the same words.
        let first = right.split(' ').next().unwrap_or(right);
        if !plain.starts_with(first) {
            let found = found.chars().take(SHOWN_MAX).collect();
            return Err(TraceError::Header { file: file.to_owned(), line, column, found, right });
        }
    }
    Ok(())
}

/// Seconds as written: `90`, `60.5`, `1.5e3`, to the nearest nanosecond.
fn seconds(text: &str) -> Option<Span> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    // Programs write 0.1 + 0.2 as 0.30000000000000004; what is far below a nanosecond says nothing.
    let part = part.get(..DECIMALS_READ).unwrap_or(part).trim_end_matches('0');
    let digits: u128 = match format!("{whole}{part}").trim_start_matches('0') {
        "" => return Some(Span::ZERO),
        digits => digits.parse().ok()?,
    };
    let shift = exponent.checked_sub(i32::try_from(part.len()).ok()?)?.checked_add(9)?;
    let ten = 10u128.checked_pow(shift.unsigned_abs());
    let nanos = if 0 <= shift {
        digits.checked_mul(ten?)?
    } else {
        // So small a share of a nanosecond that no number tells by how much is none.
        ten.map_or(0, |ten| (digits + ten / 2) / ten)
    };
    u64::try_from(nanos).ok().map(Span::nanos)
}

/// A whole number as written: `7`, `7.0`, `1e3`.
fn whole(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let nanos = seconds(text)?.as_nanos();
    nanos.is_multiple_of(1_000_000_000).then_some(nanos / 1_000_000_000)
}

/// Whether three sides are written, whatever fits them.
fn has_sides(shape: &str) -> bool {
    let sides: Vec<&str> = shape.split('x').collect();
    sides.len() == 3 && sides.iter().all(|it| it.parse::<u16>().is_ok_and(|it| it != 0))
}

fn job(
    file: &str,
    line_no: usize,
    line: &str,
    shapes: &mut BTreeMap<u64, String>,
) -> Result<TraceJob, TraceError> {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let [number, arrival, topology, shape, size, duration] = columns[..] else {
        let found = columns.len();
        return Err(TraceError::Columns { file: file.to_owned(), line: line_no, found });
    };
    let wrong = |column, value: &str, right| TraceError::Value {
        file: file.to_owned(),
        line: line_no,
        column,
        value: value.chars().take(SHOWN_MAX).collect(),
        right,
    };
    let seconds = |column, value: &str| {
        let right = "write seconds, such as 90, 60.5 or 1e3, from 0 to 18446744073";
        seconds(value).ok_or_else(|| wrong(column, value, right))
    };
    let size_right = "write how many chips or GPUs, more than 0 and at most a million";
    let size_number: f64 = size.parse().map_err(|_| wrong("size", size, size_right))?;
    if !(0.0 < size_number && size_number <= 1e6) {
        return Err(wrong("size", size, size_right));
    }
    // Shares of a GPU take a whole one.
    let size_number = size_number.ceil() as u64;
    let shape = match topology {
        "CLOS" => shapes.entry(size_number).or_insert_with(|| holding(size_number)).clone(),
        "T3D_NT" | "T3D_T" if !has_sides(shape) => {
            return Err(wrong("shape", shape, "write three sides in chips, such as 4x4x8"));
        }
        "T3D_NT" => shape.to_owned(),
        "T3D_T" => format!("{shape}_twisted"),
        _ => {
            let right = "write CLOS, T3D_NT (a torus) or T3D_T (a twisted one)";
            return Err(wrong("topology", topology, right));
        }
    };
    let n_chips = chips_of(&shape, size_number);
    Ok(TraceJob {
        number: whole(number)
            .ok_or_else(|| wrong("job id", number, "write a whole number, 0 or more"))?,
        at: seconds("arrival time", arrival)?,
        shape,
        n_chips,
        size: if topology == "CLOS" { size_number } else { n_chips },
        duration: seconds("duration", duration)?,
    })
}

/// The shape for a size; one that no pod holds where there is none, so that it is refused by the
/// core and counted.
fn holding(size: u64) -> String {
    match Shape::for_chips(size) {
        Some(shape) => shape.to_string(),
        None => format!("4x4x{}", size.div_ceil(64) * 4),
    }
}

fn chips_of(shape: &str, otherwise: u64) -> u64 {
    Shape::parse(shape).map_or(otherwise, |(shape, _)| u64::from(shape.n_chips()))
}

/// How large a plant is, for whoever offers it jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// All its chips.
    pub n_chips: u64,
    /// Those of its largest pod, as no job spans two.
    pub largest_pod: u64,
}

impl Cell {
    /// A plant of `n_pods` equal pods.
    pub const fn of(n_pods: u64, chips_each: u64) -> Self {
        Self { n_chips: n_pods * chips_each, largest_pod: chips_each }
    }
}

/// The load that jobs offer to `cell`: chip-seconds asked for in the time until the last one
/// arrives, by what there is.  What no pod holds is refused, and so is no load.  Only for reports
/// and for scaling.
pub fn load(jobs: &[TraceJob], cell: Cell) -> f64 {
    let fits = |job: &&TraceJob| job.n_chips <= cell.largest_pod;
    let work: f64 =
        (jobs.iter().filter(fits)).map(|job| job.n_chips as f64 * job.duration.as_secs_f64()).sum();
    let span = jobs.last().map_or(0.0, |job| job.at.as_secs_f64());
    if span == 0.0 { 0.0 } else { work / (span * cell.n_chips as f64) }
}

/// What [`scale`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaled {
    /// The times between arrivals.
    Arrivals,
    /// The durations.
    Durations,
}

/// Scales jobs so that they offer `wanted` to `cell`; jobs without load stay as they are.
pub fn scale(jobs: &mut [TraceJob], cell: Cell, wanted: Ppm, what: Scaled) {
    let wanted = f64::from(wanted.parts()) / 1e6;
    let offered = load(jobs, cell);
    if offered == 0.0 || wanted == 0.0 {
        return;
    }
    let times = |span: Span, factor: f64| Span::nanos((span.as_nanos() as f64 * factor) as u64);
    for job in jobs {
        match what {
            Scaled::Arrivals => job.at = times(job.at, offered / wanted),
            Scaled::Durations => job.duration = times(job.duration, wanted / offered),
        }
    }
}

/// The shortest limit that is asked for.  Assumed: also a job of no length asks for something.
const LIMIT_MIN: Span = Span::mins(1);

/// One in so many jobs is of each class.  Assumed, as the traces name no priorities: production
/// is not preempted, batch and best effort are.
const CLASSES: [(u8, bool, u64); 3] = [(7, false, 20), (5, true, 60), (2, true, 20)];

/// Lets each job hold what it needs and no more, as on a grid of boards, where no shape of a pod
/// is the next larger one.
pub fn by_size(jobs: &mut [TraceJob]) {
    for job in jobs {
        job.n_chips = job.size;
    }
}

/// What a job asks for on a grid of boards: its chips, joined.
pub fn load_of(job: &TraceJob) -> Demand {
    Demand::Load(Box::new(Load {
        chips: u32::try_from(job.size).unwrap_or(u32::MAX),
        memory_gib: 0,
        // Assumed: no trace says how much its jobs communicate.
        communication: Ppm::new(300_000),
        collective: Collective::AllReduce,
        boards: None,
    }))
}

/// What is submitted for a job of a trace.  The scheduler sees a limit of the duration times a
/// factor from 1 to 3, drawn by the job's number under `seed`.
pub fn spec(job: &TraceJob, seed: u64) -> JobSpec {
    let mut dice = Dice::new(seed ^ job.number.wrapping_mul(0x9e37_79b9), "limits");
    let factor_ppm = 1_000_000 + dice.below(2_000_001);
    let limit = u128::from(job.duration.as_nanos()) * u128::from(factor_ppm) / 1_000_000;
    let limit = Span::nanos(u64::try_from(limit).unwrap_or(u64::MAX));
    let mut drawn = dice.below(100);
    let mut class = CLASSES[0];
    for it in CLASSES {
        class = it;
        if drawn < it.2 {
            break;
        }
        drawn -= it.2;
    }
    JobSpec {
        name: format!("trace-{}", job.number),
        owner: format!("team{}", dice.below(8)),
        project: "trace".to_owned(),
        demand: Demand::Shape(job.shape.clone()),
        priority: class.0,
        preemptible: class.1,
        limit: Some(limit.max(LIMIT_MIN)),
        retries: 3,
        redundancy: 1,
        work: Work::Simulated {
            duration: job.duration,
            // Assumed: a step of a second, a checkpoint every ten minutes.
            step: Span::secs(1),
            checkpoint_every: Span::mins(10),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expect: Expect) {
        let found = match parse("a.csv", text) {
            Ok(jobs) => jobs
                .iter()
                .map(|it| {
                    format!("{} {} {} {} {}\n", it.number, it.at, it.shape, it.n_chips, it.duration)
                })
                .collect(),
            Err(err) => err.to_string(),
        };
        expect.assert_eq(&found);
    }

    #[test]
    fn a_job_of_a_clos_cluster_takes_the_fewest_chips_that_hold_it() {
        check(
            "#job id,arrival time (sec),topology,shape,size,duration (sec)\n\
             1,60.5,CLOS,48,48,720.0\n0,0.0,CLOS,0.46,0.46,60\n2,61,T3D_T,4x4x8,128,0\n\
             3,62,CLOS,5000,5000,1\n",
            expect![[r#"
                0 0s 1x1x1 1 1m
                1 60.500s 4x4x4 64 12m
                2 61s 4x4x8_twisted 128 0s
                3 62s 4x4x316 5000 1s
            "#]],
        );
    }

    #[test]
    fn errors_name_file_line_and_what_would_be_right() {
        check(
            "# nothing\n\n",
            expect![
                "a.csv holds no job; its lines ought to be: job id,arrival time (sec),topology,shape,size,duration (sec)"
            ],
        );
        check(
            "1,2,CLOS,4,4\n",
            expect![
                "a.csv, line 1: 5 columns; there ought to be 6, with commas between them: job id,arrival time (sec),topology,shape,size,duration (sec)"
            ],
        );
        check(
            "#\n1,-2,CLOS,4,4,5\n",
            expect![[
                r#"a.csv, line 2: arrival time is "-2"; write seconds, such as 90, 60.5 or 1e3, from 0 to 18446744073"#
            ]],
        );
        check(
            "1,2h,CLOS,4,4,5\n",
            expect![[
                r#"a.csv, line 1: arrival time is "2h"; write seconds, such as 90, 60.5 or 1e3, from 0 to 18446744073"#
            ]],
        );
        check(
            "1,2,MESH,4,4,5\n",
            expect![[
                r#"a.csv, line 1: topology is "MESH"; write CLOS, T3D_NT (a torus) or T3D_T (a twisted one)"#
            ]],
        );
        check(
            "1,2,CLOS,4,NaN,5\n",
            expect![[
                r#"a.csv, line 1: size is "NaN"; write how many chips or GPUs, more than 0 and at most a million"#
            ]],
        );
        check(
            "#h\n5,50,CLOS,4,4,10\n5,100,CLOS,4,4,10\n",
            expect!["a.csv, line 3: job id 5 stands on line 2 already; number it anew"],
        );
        check(
            "x,2,CLOS,4,4,5\n",
            expect![[r#"a.csv, line 1: job id is "x"; write a whole number, 0 or more"#]],
        );
    }

    #[test]
    fn what_spreadsheets_and_programs_write_is_read() {
        check(
            "\u{feff}job_id,Arrival Time (sec),topology,shape,size,duration_s\r\n\
             1,1.5e3,CLOS,4,4,1e3\r\n2.0,2e3,CLOS,4,1e1,2.50E+2\r\n3,2000.5,T3D_T,4x4x8,0128,6000e-1\r\n",
            expect![[r#"
                1 25m 2x2x1 4 1000s
                2 2000s 2x2x4 16 250s
                3 2000.500s 4x4x8_twisted 128 10m
            "#]],
        );
        for (text, span) in [
            ("0", 0),
            ("1e-9", 1),
            ("0.30000000000000004", 300_000_000),
            ("1.9999999999", 2_000_000_000),
            ("1e-10", 0),
            ("1e-99999", 0),
            ("60.123456789123456789123456789123456789", 60_123_456_789),
            ("0.000000001", 1),
            ("1.2300000000000", 1_230_000_000),
            ("18446744073", 18_446_744_073_000_000_000),
        ] {
            assert_eq!(seconds(text), Some(Span::nanos(span)), "{text}");
        }
        for text in ["", ".", "e3", "1e", "-1", "+1", "1e99", "18446744074", "1_000", "NaN"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn one_bad_line_is_named_with_its_column() {
        check(
            "job id,duration (sec),topology,shape,size,arrival time (sec)\n",
            expect![[
                r#"a.csv, line 1: column 2 is called "duration (sec)"; it ought to be "arrival time", and the columns these: job id,arrival time (sec),topology,shape,size,duration (sec)"#
            ]],
        );
        check(
            "1,0,CLOS,4,4,5\njob id,arrival time (sec),topology,shape,size,duration (sec)\n",
            expect![[
                r#"a.csv, line 2: size is "size"; write how many chips or GPUs, more than 0 and at most a million"#
            ]],
        );
        check(
            "1,0,CLOS,4,4,5\n2;3;CLOS;4;4;5\n",
            expect![
                "a.csv, line 2: 1 column; there ought to be 6, with commas between them: job id,arrival time (sec),topology,shape,size,duration (sec)"
            ],
        );
        check(
            "1,0,T3D_NT,4x4,16,5\n",
            expect![[
                r#"a.csv, line 1: shape is "4x4"; write three sides in chips, such as 4x4x8"#
            ]],
        );
        check(
            "1,0,CLOS,4,4,1e400\n",
            expect![[
                r#"a.csv, line 1: duration is "1e400"; write seconds, such as 90, 60.5 or 1e3, from 0 to 18446744073"#
            ]],
        );
    }

    #[test]
    fn scaling_gives_the_load_that_was_asked_for() {
        let job = |number, at, chips, hours| TraceJob {
            number,
            at: Span::hours(at),
            shape: "4x4x4".into(),
            n_chips: chips,
            size: chips,
            duration: Span::hours(hours),
        };
        let jobs = vec![job(0, 0, 64, 10), job(1, 5, 64, 10), job(2, 10, 128, 5)];
        assert_eq!(load(&jobs, Cell::of(1, 128)), 1.5);
        for what in [Scaled::Arrivals, Scaled::Durations] {
            let mut jobs = jobs.clone();
            scale(&mut jobs, Cell::of(1, 128), Ppm::new(850_000), what);
            assert!((load(&jobs, Cell::of(1, 128)) - 0.85).abs() < 1e-9, "{what:?}");
        }
        // In a plant of two pods, neither of which holds the large job, it is refused: no load.
        let cell = Cell::of(2, 64);
        assert_eq!(load(&jobs, cell), 1.0);
        let mix =
            mix::Mix { n_jobs: 2000, cell, load: Ppm::new(700_000), scaled: Scaled::Arrivals };
        let drawn = mix::draw(3, mix);
        assert!(drawn.iter().all(|it| it.n_chips <= 64));
        assert!((load(&drawn, cell) - 0.7).abs() < 1e-6);
    }

    #[test]
    fn limits_are_one_to_three_durations_and_never_nothing() {
        let mut factors = Vec::new();
        for number in 0..200 {
            let mut job = TraceJob {
                number,
                at: Span::ZERO,
                shape: "4x4x4".into(),
                n_chips: 64,
                size: 64,
                duration: Span::secs(1000),
            };
            let spec = spec(&job, 1);
            spec.check().unwrap();
            factors.push(spec.limit.unwrap().as_secs());
            job.duration = Span::ZERO;
            assert_eq!(super::spec(&job, 1).limit, Some(LIMIT_MIN));
        }
        factors.sort();
        assert!(1000 <= factors[0] && factors[0] < 1100 && 2900 < factors[199]);
        assert!(factors[199] <= 3000);
    }
}
