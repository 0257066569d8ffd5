//! `selvedge journal verify|export|salvage|backup`: on the directory, without a server.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use selvedge_driver::store::{self, Report};
use serde_json::json;

use crate::Globals;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Journal {
    #[command(subcommand)]
    verb: JournalVerb,
}

#[derive(Debug, Subcommand)]
enum JournalVerb {
    /// Check every row, snapshot and page; exit 0 whole, 1 damaged, 2 cannot be read.
    Verify(Of),
    /// Write all rows as JSON lines, each with its checksum.
    Export(Export),
    /// Copy the good rows at the start of a damaged journal to a new directory.
    Salvage(To),
    /// Copy a journal, also one in use, to a new directory.
    Backup(To),
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The data directory, as `up --data` names it.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Export {
    /// The data directory, as `up --data` names it.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// A file that does not exist yet; standard output without.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct To {
    /// The data directory, as `up --data` names it.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// A directory that does not exist yet.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(args: &Journal, globals: &Globals) -> Outcome {
    match &args.verb {
        JournalVerb::Verify(args) => verify(&args.dir, globals),
        JournalVerb::Export(args) => export(args),
        JournalVerb::Salvage(args) => salvage(args, globals),
        JournalVerb::Backup(args) => backup(args, globals),
    }
}

fn verify(dir: &Path, globals: &Globals) -> Outcome {
    let report = store::verify(dir)?;
    if globals.json {
        render::print_json(&report_json(&report))?;
    } else {
        render::print(&report_page(dir, &report))?;
    }
    if report.is_sound() {
        return Ok(Answer::Yes);
    }
    if report.damage.is_some() || !report.pages.is_empty() {
        let dir = dir.display();
        anstream::eprintln!(
            "{0}hint:{0:#} `selvedge journal salvage {dir} --out NEW` brings the good rows over",
            style::HINT
        );
    }
    Ok(Answer::No)
}

fn report_json(report: &Report) -> serde_json::Value {
    let snapshots = report.snapshots.iter();
    let snapshots: Vec<_> = snapshots
        .map(|it| json!({"number": it.number, "fault": it.fault.as_ref().map(ToString::to_string)}))
        .collect();
    json!({
        "sound": report.is_sound(),
        "last_good": report.last_good,
        "chain": report.chain.to_string(),
        "head": report.head,
        "damage": report.damage.as_ref().map(ToString::to_string),
        "snapshots": snapshots,
        "pages": report.pages,
    })
}

fn report_page(dir: &Path, report: &Report) -> String {
    let (good, bad) = (style::GOOD, style::BAD);
    let rows = number::counted(report.last_good, "row");
    let mut page = match &report.damage {
        None => format!("{good}whole{good:#}: {rows} in {}\n", dir.display()),
        Some(damage) => format!(
            "{bad}damaged{bad:#}: {damage}\n  row {} is the last good one\n",
            report.last_good
        ),
    };
    page.push_str(&format!("  checksum {}\n", report.chain));
    for snapshot in &report.snapshots {
        page.push_str(&match &snapshot.fault {
            None => format!("  the snapshot of row {} is whole\n", snapshot.number),
            Some(fault) => format!("  {bad}damaged{bad:#}: {fault}\n"),
        });
    }
    let has_bad_snapshot = report.snapshots.iter().any(|it| it.fault.is_some());
    if has_bad_snapshot && report.damage.is_none() {
        page.push_str(
            "  the rows hold all that it held: `selvedge up` passes it over, and says so\n",
        );
    }
    for finding in &report.pages {
        page.push_str(&format!("  {bad}damaged{bad:#}: {finding}\n"));
    }
    page
}

fn export(args: &Export) -> Outcome {
    let n_rows = match &args.out {
        None => store::export(&args.dir, &mut io::stdout().lock())?,
        Some(path) => {
            let file = File::create_new(path)
                .map_err(|error| Failure::from(error).hint("name a file that does not exist yet"))
                .within(|| format!("cannot make {}", path.display()))?;
            let mut out = BufWriter::new(file);
            let n_rows = store::export(&args.dir, &mut out)?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all().within(|| format!("cannot sync {}", path.display()))?;
            n_rows
        }
    };
    anstream::eprintln!("{}", number::counted(n_rows, "row"));
    Ok(Answer::Yes)
}

fn salvage(args: &To, globals: &Globals) -> Outcome {
    let salvaged = store::salvage(&args.dir, &args.out)?;
    let (n_rows, n_snapshots) = (salvaged.n_rows, salvaged.n_snapshots);
    if globals.json {
        render::print_json(&json!({
            "rows": n_rows, "snapshots": n_snapshots, "original": report_json(&salvaged.report),
        }))?;
    } else {
        let rows = number::counted(n_rows, "row");
        let snapshots = number::counted(n_snapshots as u64, "snapshot");
        render::print(&format!("{rows} and {snapshots} are in {}\n", args.out.display()))?;
        render::print(&what_comes_next(args, &salvaged.report))?;
    }
    Ok(Answer::Yes)
}

/// What to do with the copy, and what becomes of what is not in it.
fn what_comes_next(args: &To, original: &Report) -> String {
    let (dir, out) = (args.dir.display(), args.out.display());
    let n_lost = original.head.and_then(|it| it.checked_sub(original.last_good));
    let lost = match (&original.damage, n_lost) {
        (None, _) => "nothing is lost".to_owned(),
        (Some(_), Some(n)) if n != 0 => format!("lost: {}", number::counted(n, "row")),
        (Some(_), _) => "what came after them is lost".to_owned(),
    };
    format!(
        "{lost}; next:\n  mkdir {dir}/damaged && mv {dir}/journal.db* {dir}/damaged/\n  \
         mv {out}/journal.db* {dir}/\n  selvedge up --data {dir}\n\
         Jobs that only the lost rows knew are gone, and their numbers are given out anew. What \
         the plant still runs for them is ended first: nobody is placed there before.\n"
    )
}

fn backup(args: &To, globals: &Globals) -> Outcome {
    let report = store::backup(&args.dir, &args.out)?;
    if globals.json {
        render::print_json(&report_json(&report))?;
    } else {
        render::print(&report_page(&args.out, &report))?;
    }
    Ok(Answer::Yes)
}
