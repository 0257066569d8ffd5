//! Jobs to submit: from a trace, or drawn from the published mix.
//!
//! A trace is a table with the columns `#job id,arrival time (sec),topology,shape,size,duration
//! (sec)`.  A job of a Clos cluster has a size only; it takes the shape with the fewest chips
//! that hold it, and of several the one with the smallest diameter.

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
    /// How long it runs on healthy hardware.
    pub duration: Span,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TraceError {
    /// A line without all its columns.
    #[error("{file}, line {line}: {found} columns; there ought to be 6: {COLUMNS}")]
    Columns {
        /// Which file.
        file: String,
        /// Which line, from 1 on.
        line: usize,
        /// How many it has.
        found: usize,
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

/// Reads a trace; `file` is its name for errors.  Jobs come back in the order of their arrival.
///
/// # Errors
/// [`TraceError`], the first one.
pub fn parse(file: &str, text: &str) -> Result<Vec<TraceJob>, TraceError> {
    let mut jobs = Vec::new();
    let mut shapes = BTreeMap::new();
    let mut lines: BTreeMap<u64, usize> = BTreeMap::new();
    for (idx, line) in text.lines().enumerate() {
        if limits::TRACE_LINES_MAX < idx {
            return Err(TraceError::TooLong { file: file.to_owned() });
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
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
        value: value.chars().take(32).collect(),
        right,
    };
    let seconds = |column, value: &str| {
        Span::parse(value).ok().filter(|_| !value.ends_with(char::is_alphabetic)).ok_or_else(|| {
            wrong(column, value, "write seconds, 0 or more, with at most nine decimals")
        })
    };
    let size_right = "write how many chips or GPUs, more than 0 and at most a million";
    let size_number: f64 = size.parse().map_err(|_| wrong("size", size, size_right))?;
    if !(0.0 < size_number && size_number <= 1e6) {
        return Err(wrong("size", size, size_right));
    }
    // Shares of a GPU take a whole one.
    let size_number = size_number.ceil() as u64;
    let (shape, n_chips) = match topology {
        "CLOS" => {
            let shape = shapes.entry(size_number).or_insert_with(|| holding(size_number));
            (shape.clone(), chips_of(shape, size_number))
        }
        "T3D_NT" => (shape.to_owned(), chips_of(shape, size_number)),
        "T3D_T" => (format!("{shape}_twisted"), chips_of(shape, size_number)),
        _ => {
            let right = "write CLOS, T3D_NT (a torus) or T3D_T (a twisted one)";
            return Err(wrong("topology", topology, right));
        }
    };
    Ok(TraceJob {
        number: number
            .parse()
            .map_err(|_| wrong("job id", number, "write a whole number, 0 or more"))?,
        at: seconds("arrival time", arrival)?,
        shape,
        n_chips,
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

/// The load that jobs offer to `n_chips`: chip-seconds asked for in the time until the last one
/// arrives, by what there is.  Only for reports and for scaling.
pub fn load(jobs: &[TraceJob], n_chips: u64) -> f64 {
    let fits = |job: &&TraceJob| job.n_chips <= n_chips;
    let work: f64 =
        (jobs.iter().filter(fits)).map(|job| job.n_chips as f64 * job.duration.as_secs_f64()).sum();
    let span = jobs.last().map_or(0.0, |job| job.at.as_secs_f64());
    if span == 0.0 { 0.0 } else { work / (span * n_chips as f64) }
}

/// What [`scale`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaled {
    /// The times between arrivals.
    Arrivals,
    /// The durations.
    Durations,
}

/// Scales jobs so that they offer `wanted` to `n_chips`; jobs without load stay as they are.
pub fn scale(jobs: &mut [TraceJob], n_chips: u64, wanted: Ppm, what: Scaled) {
    let wanted = f64::from(wanted.parts()) / 1e6;
    let offered = load(jobs, n_chips);
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

/// What a job asks for on a grid of boards: its chips, joined.
pub fn load_of(job: &TraceJob) -> Demand {
    Demand::Load(Box::new(Load {
        chips: u32::try_from(job.n_chips).unwrap_or(u32::MAX),
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
                "a.csv, line 1: 5 columns; there ought to be 6: job id,arrival time (sec),topology,shape,size,duration (sec)"
            ],
        );
        check(
            "#\n1,-2,CLOS,4,4,5\n",
            expect![[
                r#"a.csv, line 2: arrival time is "-2"; write seconds, 0 or more, with at most nine decimals"#
            ]],
        );
        check(
            "1,2h,CLOS,4,4,5\n",
            expect![[
                r#"a.csv, line 1: arrival time is "2h"; write seconds, 0 or more, with at most nine decimals"#
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
    fn scaling_gives_the_load_that_was_asked_for() {
        let job = |number, at, chips, hours| TraceJob {
            number,
            at: Span::hours(at),
            shape: "4x4x4".into(),
            n_chips: chips,
            duration: Span::hours(hours),
        };
        let jobs = vec![job(0, 0, 64, 10), job(1, 5, 64, 10), job(2, 10, 128, 5)];
        assert_eq!(load(&jobs, 128), 1.5);
        for what in [Scaled::Arrivals, Scaled::Durations] {
            let mut jobs = jobs.clone();
            scale(&mut jobs, 128, Ppm::new(850_000), what);
            assert!((load(&jobs, 128) - 0.85).abs() < 1e-9, "{what:?}");
        }
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
