//! The table that programs of nccl-tests print.
//!
//! Its columns have changed over the years, and launchers write before each line.  A row is read
//! from both ends: its first word is the size, its last four (or eight, out of place and in place)
//! are time, bandwidths and wrong values.

use serde::Serialize;

use crate::host::predict::Op;

/// One size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Bytes.
    pub bytes: u64,
    /// How long it took out of place, in us.
    pub time_us: f64,
    /// GB/s as compared with a link.
    pub busbw_gbps: f64,
}

/// What a run measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Which operation, where the text says so.
    pub op: Option<Op>,
    /// Whether it adds something up, where its rows say so.
    pub adds: Option<bool>,
    /// How many ranks the text lists.
    pub n_ranks: Option<usize>,
    /// By size, in the order of the file.
    pub rows: Vec<Row>,
}

/// A table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTable {
    /// A row with too few words.
    #[error("line {line}: {found} words; a row has size, count, type, time, algbw, busbw, #wrong")]
    Short {
        /// Which, from 1 on.
        line: usize,
        /// How many words it has.
        found: usize,
    },
    /// A word that is no number.
    #[error("line {line}: {word:?} is no {what}")]
    NoNumber {
        /// Which, from 1 on.
        line: usize,
        /// The word.
        word: String,
        /// What was expected.
        what: &'static str,
    },
    /// No row at all.
    #[error("no row of nccl-tests in {lines} lines; paste all that its program prints")]
    Empty {
        /// How many lines there are.
        lines: usize,
    },
}

/// The largest table that is read: a size of each power of two needs a few dozen rows.
const ROWS_MAX: usize = 1 << 16;

/// Reads what a program of nccl-tests printed.
///
/// # Errors
/// [`NoTable`], with its line.
pub fn read(text: &str) -> Result<Measured, NoTable> {
    let mut measured = Measured { op: None, adds: None, n_ranks: None, rows: Vec::new() };
    // Out of place and in place, unless the heading says that there is one of them.
    let mut n_groups = 2;
    for (number, line) in text.lines().enumerate() {
        let line = without_prefix(line);
        if measured.op.is_none() {
            measured.op = op_in(line);
        }
        if let Some(heading) = line.strip_prefix('#') {
            if is_rank(heading) {
                *measured.n_ranks.get_or_insert(0) += 1;
            }
            let n_times = heading.split_whitespace().filter(|it| *it == "time").count();
            if heading.contains("busbw") && 0 < n_times {
                n_groups = n_times.min(2);
            }
            continue;
        }
        let is_row = line.chars().next().is_some_and(|it| it.is_ascii_digit());
        if is_row && measured.rows.len() < ROWS_MAX {
            measured.rows.push(row(number + 1, line, n_groups)?);
            measured.adds = measured.adds.or(adds(line));
        }
    }
    if measured.rows.is_empty() {
        return Err(NoTable::Empty { lines: text.lines().count() });
    }
    Ok(measured)
}

/// Whether a comment's line names a rank: `Rank  0 Pid 1234 on host device  0 [0x07] …`.
fn is_rank(heading: &str) -> bool {
    let mut words = heading.split_whitespace();
    words.next() == Some("Rank") && words.next().is_some_and(|it| it.parse::<u32>().is_ok())
}

/// Whether a row's operation adds something up: the word behind its type says how, or `none`.
fn adds(row: &str) -> Option<bool> {
    match row.split_whitespace().nth(3)? {
        "none" => Some(false),
        "sum" | "prod" | "min" | "max" | "avg" | "mulsum" | "all" => Some(true),
        _ => None,
    }
}

fn row(line: usize, text: &str, n_groups: usize) -> Result<Row, NoTable> {
    /// Time, algbw, busbw, #wrong.
    const GROUP: usize = 4;
    let words: Vec<&str> = text.split_whitespace().collect();
    // A size, a count and a type at least.
    if words.len() < 3 + GROUP * n_groups {
        return Err(NoTable::Short { line, found: words.len() });
    }
    let first = words.len() - GROUP * n_groups;
    let wrong = |word: &str, what| NoTable::NoNumber { line, word: word.to_owned(), what };
    let bytes = words[0].parse().map_err(|_| wrong(words[0], "size in bytes"))?;
    let number = |at: usize, what| {
        let read = words[at].parse::<f64>().ok().filter(|it| it.is_finite() && 0.0 <= *it);
        read.ok_or_else(|| wrong(words[at], what))
    };
    let time_us = number(first, "time in us")?;
    number(first + 1, "algbw in GB/s")?;
    let busbw_gbps = number(first + 2, "busbw in GB/s")?;
    Ok(Row { bytes, time_us, busbw_gbps })
}

/// A line without what a launcher writes before it: `[1,0]<stdout>:` of mpirun, `0: ` of srun.
fn without_prefix(line: &str) -> &str {
    let line = line.trim_start();
    if let Some((head, rest)) = line.split_once(">:")
        && head.starts_with('[')
    {
        return rest.trim_start();
    }
    match line.split_once(": ") {
        Some((head, rest)) if !head.is_empty() && head.bytes().all(|it| it.is_ascii_digit()) => {
            rest.trim_start()
        }
        _ => line,
    }
}

/// The operation of a line that names a program, such as `all_reduce_perf`.
fn op_in(line: &str) -> Option<Op> {
    // A longer name holds a shorter one: reduce_scatter, all_reduce, reduce.
    const BY_LENGTH: [Op; 5] =
        [Op::ReduceScatter, Op::AllReduce, Op::AllGather, Op::Broadcast, Op::Reduce];
    BY_LENGTH.into_iter().find(|op| line.contains(&format!("{}_perf", op.name())))
}
