//! `selvedge topo what-if` and `upgrade-diff`: two outcomes and how they differ.

use std::path::PathBuf;

use selvedge_family::host::change::{Change, Question};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::place::ranks;
use selvedge_family::host::views::{Alike, Seen, decided, differing_alike};
use serde::Serialize;

use crate::Globals;
use crate::cmd::topo::{
    Conditions, Server, listed, name, note_unread, read, read_named, root_of, tell_unread,
    unanswered,
};
use crate::failure::{Answer, Outcome, Within as _};
use crate::render;

/// Subjects that one line of text names before it counts the others.
const NAMED: usize = 6;

#[derive(Debug, clap::Args)]
#[command(after_help = "Changes: NCCL_NAME=VALUE (empty to unset), GPU0.link_width=8, \
                        NET0.speed=400000, GPU0.gdr=0, GPU0-GPU1.nvlink=0, GPU0-NVS.nvlink=12, \
                        NET3=gone, 0000:1a:00.0=gone, broken=0-1, repaired=0-1, shm=pairs, \
                        shm=shared, nodes=2, rank=1, nccl=2.27.7.\n\
                        Exit status: 0 something is decided otherwise, 1 nothing is, or NCCL \
                        refuses, 2 error.")]
pub(crate) struct WhatIf {
    #[command(flatten)]
    server: Server,
    /// Changes, made in order.
    #[arg(value_name = "EDIT", required = true, value_parser = parse_change)]
    edits: Vec<Change>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 something is decided otherwise, 1 nothing is, 2 error.")]
pub(crate) struct UpgradeDiff {
    /// A topology file.
    #[arg(value_name = "XML")]
    file: PathBuf,
    /// The version that is there.
    #[arg(value_name = "OLD")]
    old: Profile,
    /// The version that it may become.
    #[arg(value_name = "NEW")]
    new: Profile,
    /// Equal servers in the job.
    #[arg(long, value_name = "K", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    #[command(flatten)]
    conditions: Conditions,
}

fn parse_change(text: &str) -> Result<Change, String> {
    text.parse().map_err(|error: selvedge_family::host::change::ChangeError| error.to_string())
}

/// Both outcomes; a refusal is an outcome too.
#[derive(Debug, Serialize)]
struct Report {
    before: Side,
    after: Side,
    differences: Vec<Alike>,
}

#[derive(Debug, Serialize)]
struct Side {
    nccl: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Variables that this version does not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
}

pub(crate) fn run(args: &WhatIf, globals: &Globals) -> Outcome {
    let mut question = args.server.question()?;
    for edit in &args.edits {
        if let Change::Set { name, value } = edit {
            read_named(&mut question, name, value)?;
        }
    }
    let mut changed = question.with_all(&args.edits).within(|| "this change cannot be made")?;
    // Where the change took the asking GPU away, it is our question that lacks its rank.
    let (before, after) = (ranks(&question.root), ranks(&changed.root));
    let lost = before.contains(&changed.rank) && !after.contains(&changed.rank);
    if let Some(&rank) = after.iter().min().filter(|_| lost) {
        anstream::eprintln!("note: rank {} is gone, so rank {rank} looks", changed.rank);
        (question.rank, changed.rank) = (rank, rank);
    }
    print(&question, &changed, &name(&args.server.file), globals)
}

pub(crate) fn run_upgrade(args: &UpgradeDiff, globals: &Globals) -> Outcome {
    let name = name(&args.file);
    let root = root_of(&read(&args.file)?, &name, args.old)?;
    let question = args.conditions.question(root, args.old, args.nodes)?;
    let changed = Question { profile: args.new, ..question.clone() };
    print(&question, &changed, &name, globals)
}

fn print(before: &Question, after: &Question, name: &str, globals: &Globals) -> Outcome {
    let unread = tell_unread(before)?;
    let unread_after = after.unread().within(|| "this variable has no meaning")?;
    // What both sides have alike is told once.
    let is_new = |it: &&String| before.profile != after.profile || !unread.contains(it);
    note_unread(after.profile, &unread_after.iter().filter(is_new).cloned().collect::<Vec<_>>());
    let old = decide(before, name)?;
    let new = decide(after, name)?;
    let differences = match (&old, &new) {
        (Ok(old), Ok(new)) => differing_alike(old, new),
        _ => Vec::new(),
    };
    let side = |question: &Question, outcome: &Result<Vec<Seen>, String>, unread| Side {
        nccl: question.profile.to_string(),
        error: outcome.as_ref().err().cloned(),
        unread,
    };
    let (before, after) = (side(before, &old, unread), side(after, &new, unread_after));
    let report = Report { before, after, differences };
    // What NCCL refuses afterwards is an answer no, and so is what shows in no decision.
    let changed = match (&old, &new) {
        (Ok(_), Ok(_)) => !report.differences.is_empty(),
        (Err(_), Ok(_)) => true,
        (_, Err(_)) => false,
    };
    if globals.json {
        render::print_json(&report)?;
    } else {
        render::print(&text(&report, changed))?;
    }
    Ok(if changed { Answer::Yes } else { Answer::No })
}

/// What is decided in each rank's view, or why NCCL refuses.
fn decide(question: &Question, name: &str) -> Outcome<Result<Vec<Seen>, String>> {
    use selvedge_family::host::change::NoAnswer;
    match decided(question) {
        Ok(decisions) => Ok(Ok(decisions)),
        Err(NoAnswer::Refused(error)) => Ok(Err(error.to_string())),
        Err(error @ NoAnswer::Setting(_)) => Err(unanswered(error, name, question.profile)),
    }
}

fn text(report: &Report, changed: bool) -> String {
    let mut out = String::new();
    for (word, side) in [("before", &report.before), ("after", &report.after)] {
        if let Some(error) = &side.error {
            out.push_str(&format!("{word}: NCCL {} refuses: {error}\n", side.nccl));
        }
    }
    if !changed && report.after.error.is_none() {
        out.push_str("nothing is decided otherwise\n");
    }
    let mut rank = None;
    for Alike { rank: own, differences: group } in &report.differences {
        if let Some(own) = own.filter(|_| *own != rank) {
            out.push_str(&format!("as rank {own} sees it:\n"));
        }
        rank = *own;
        let (named, more) = listed(&group.subjects, NAMED);
        out.push_str(&format!("{named}{more}\n"));
        for (sign, line) in [("-", &group.before), ("+", &group.after)] {
            if let Some(line) = line {
                out.push_str(&format!("  {sign} {line}\n"));
            }
        }
    }
    out
}
