//! `selvedge topo predict`: what NCCL would choose and how fast it takes itself to be, beside what
//! nccl-tests measured.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use selvedge_family::host::predict::measured::{self, Measured};
use selvedge_family::host::predict::{Entry, Forecast, NoPrediction, Op, Prediction, predict};
use serde::Serialize;

use crate::Globals;
use crate::cmd::topo::{Beside, Server, name, note_unread, read, unanswered};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;
use crate::render::number::counted;
use crate::render::table::{Cell, Table};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "NCCL's own tuning model and constants, worked out from the rings, trees and \
                        NVLS that it finds: what it believes, held by no measurement of this \
                        program.  NCCL_ALGO and NCCL_PROTO count: --env NCCL_ALGO=Ring; so do \
                        NCCL_COLLNET_ENABLE and _NODE_THRESHOLD, NCCL_NVLS_ENABLE, NCCL_PAT_ENABLE, \
                        NCCL_NET_OVERHEAD and NCCL_LL128_C2C.\n\
                        Sizes are bytes as nccl-tests counts them; K, M and G are powers of 1024.\n\
                        Exit status: 0 done, 1 NCCL would refuse the file or has nothing to choose \
                        from, 2 error."
)]
pub(super) struct Predict {
    #[command(flatten)]
    server: Server,
    /// The operation: all_reduce, all_gather, reduce_scatter, broadcast or reduce
    /// [default: that of --compare, else all_reduce].
    #[arg(long, value_name = "OP")]
    op: Option<Op>,
    /// Sizes: a list such as 8,1M,64M, or a range such as 8-8G of powers of two
    /// [default: those of --compare, else 8-8G].
    #[arg(long, value_name = "SIZES")]
    sizes: Option<Sizes>,
    /// What a program of nccl-tests printed; - for standard input.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes(Vec<u64>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |it: &str| {
            bytes(it.trim()).ok_or_else(|| {
                format!("{it:?} is no size; write bytes, or 64K, 8M, 1G, from 1 to 1024G")
            })
        };
        if let Some((first, last)) = text.split_once('-') {
            let (first, last) = (size(first)?, size(last)?);
            if last < first {
                return Err(format!("{text:?} ends before it begins"));
            }
            let sizes = std::iter::successors(Some(first), |it| it.checked_mul(2));
            return Ok(Sizes(sizes.take_while(|it| *it <= last).collect()));
        }
        Ok(Sizes(text.split(',').map(size).collect::<Result<_, _>>()?))
    }
}

/// `64K` as 65536.
fn bytes(text: &str) -> Option<u64> {
    /// More than any buffer.
    const MOST: u64 = 1 << 40;
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return None,
    };
    let whole = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (1..=MOST).contains(&whole).then_some(whole)
}

/// The form of `--json`.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    nccl: String,
    op: &'static str,
    ranks: usize,
    channels: usize,
    sizes: Vec<Line>,
    /// What there is to choose from: latency and bandwidth, as NCCL's log has them.
    table: &'a [Entry],
    /// Where ranks of a server see other topologies: those that share one, for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    views: Vec<ViewOf<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct ViewOf<'a> {
    ranks: &'a [i32],
}

#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    forecast: Forecast,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_busbw_gbps: Option<f64>,
    /// The measured bus bandwidth as a share of the forecast, from the times: the bandwidth of
    /// a small size is printed as 0.00.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_of_forecast: Option<f64>,
}

pub(super) fn run(args: &Predict, globals: &Globals) -> Outcome {
    let measured = args.compare.as_deref().map(read_table).transpose()?;
    let op = args.op.or(measured.as_ref().and_then(|it| it.op)).unwrap_or(Op::AllReduce);
    if let Some(other) = measured.as_ref().and_then(|it| it.op).filter(|it| *it != op) {
        let (other, op) = (other.name(), op.name());
        return Err(Failure::new(format!("--compare has measured {other}, not {op}"))
            .hint("leave --op out, or give the table of that operation"));
    }
    let adds = matches!(op, Op::AllReduce | Op::ReduceScatter | Op::Reduce);
    if let Some(other) = measured.as_ref().and_then(|it| it.adds).filter(|it| *it != adds) {
        let (what, hint) = match other {
            true => ("adds something up", "give --op all_reduce, reduce_scatter or reduce"),
            false => ("adds nothing up (redop none)", "give --op all_gather or broadcast"),
        };
        let text = format!("--compare has measured an operation that {what}, not {}", op.name());
        return Err(Failure::new(text).hint(hint));
    }
    let sizes = match (&args.sizes, &measured) {
        (Some(sizes), _) => sizes.0.clone(),
        // nccl-tests begins with sizes that round to nothing.
        (None, Some(it)) => it.rows.iter().map(|it| it.bytes).filter(|it| *it != 0).collect(),
        (None, None) => "8-8G".parse::<Sizes>().map_err(Failure::new)?.0,
    };
    let question = args.server.question()?;
    let mut found = predict(&question, op, &sizes).map_err(|error| match error {
        NoPrediction::Answer(error) => {
            unanswered(error, &name(&args.server.file), args.server.look.nccl)
        }
        error @ NoPrediction::Word(_) => Failure::from(error).within("this --env has no meaning"),
        error => Failure::refusal(error),
    })?;
    if let Some(n) = measured.as_ref().and_then(|it| it.n_ranks).filter(|it| *it != found.n_ranks) {
        let ranks = found.n_ranks;
        found.doubts.push(format!("--compare lists {n} ranks; the forecast is for {ranks}"));
    }
    let lines: Vec<Line> = found.forecasts.iter().map(|it| line(it, measured.as_ref())).collect();
    note_unread(question.profile, &found.unread);
    if globals.json {
        let views = found.views.iter().map(|ranks| ViewOf { ranks });
        let shown = Shown {
            nccl: question.profile.to_string(),
            op: op.name(),
            ranks: found.n_ranks,
            channels: found.n_channels,
            sizes: lines,
            table: &found.table,
            views: views.filter(|_| 1 < found.views.len()).collect(),
            notes: &found.doubts,
        };
        render::print_json(&Beside { shown: &shown, unread: &found.unread })?;
    } else {
        render::print(&page(&found, &lines, measured.is_some()))?;
    }
    Ok(Answer::Yes)
}

fn read_table(path: &Path) -> Outcome<Measured> {
    let (text, shown) = if path.as_os_str() == "-" {
        let text = std::io::read_to_string(std::io::stdin());
        (text.within(|| "cannot read standard input")?, "standard input".to_owned())
    } else {
        (read(path)?, name(path))
    };
    measured::read(&text).within(|| format!("{shown} is no table of nccl-tests"))
}

fn line(forecast: &Forecast, measured: Option<&Measured>) -> Line {
    let mut rows = measured.into_iter().flat_map(|it| &it.rows);
    let row = rows.rfind(|it| it.bytes == forecast.bytes);
    Line {
        forecast: *forecast,
        measured_us: row.map(|it| it.time_us),
        measured_busbw_gbps: row.map(|it| it.busbw_gbps),
        measured_of_forecast: row.map(|it| forecast.time_us / it.time_us),
    }
}

fn page(found: &Prediction, lines: &[Line], is_compared: bool) -> String {
    let mut page = format!(
        "{} over {} ranks, {}\n",
        found.op.name(),
        found.n_ranks,
        counted(found.n_channels as u64, "channel")
    );
    let mut heads = vec![">bytes", "algorithm", "protocol", ">us", ">algbw GB/s", ">busbw GB/s"];
    if is_compared {
        heads.extend([">measured us", ">measured busbw", ">of forecast"]);
    }
    let mut table = Table::new(&heads);
    for line in lines {
        let it = &line.forecast;
        let [bytes, algorithm, protocol] =
            [it.bytes.to_string(), it.algorithm.to_string(), it.protocol.to_string()];
        let [time, algbw, busbw] =
            [it.time_us, it.algbw_gbps, it.busbw_gbps].map(|it| format!("{it:.2}"));
        let own = [bytes, algorithm, protocol, time, algbw, busbw];
        let [a, b, c, d, e, f] = own.map(Cell::from);
        if is_compared {
            let shown = |it: Option<f64>| it.map_or("-".to_owned(), |it| format!("{it:.2}"));
            let share = line.measured_of_forecast.filter(|it| it.is_finite());
            let share = share.map_or("-".to_owned(), |it| format!("{:.0} %", 100.0 * it));
            let measured = [shown(line.measured_us), shown(line.measured_busbw_gbps), share];
            let [g, h, i] = measured.map(Cell::from);
            table.row([a, b, c, d, e, f, g, h, i]);
        } else {
            table.row([a, b, c, d, e, f]);
        }
    }
    page.push_str(&table.to_string());
    for it in &found.doubts {
        page.push_str(&format!("note: {it}\n"));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::Sizes;

    #[test]
    fn sizes_are_a_list_or_powers_of_two_up_to_a_last_one() {
        let read = |text: &str| text.parse::<Sizes>().map(|it| it.0);
        assert_eq!(read("8,1M, 64k"), Ok(vec![8, 1 << 20, 64 << 10]));
        assert_eq!(read("8-64"), Ok(vec![8, 16, 32, 64]));
        assert_eq!(read("3-10"), Ok(vec![3, 6]));
        for text in ["", "0", "-", "8-", "64-8", "1T", "1.5M", "2048G", "-8", "é", "8M8"] {
            read(text).expect_err(text);
        }
    }
}
