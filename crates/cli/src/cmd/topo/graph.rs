//! `topo graph`: rings, trees and heads as a graph file, held against a server, or as log lines.

use std::path::PathBuf;

use selvedge_family::host::change::NoAnswer;
use selvedge_family::host::nccl::graph_xml::{
    Finding, Severity, check, malformed, refused_form, to_xml,
};
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search::Found;
use selvedge_family::host::nccl::view::{RefusedView, View};
use selvedge_family::host::nccl::xml;
use selvedge_family::host::views::{connected, searched};

use crate::Globals;
use crate::cmd::topo::{Beside, Server, graph_document, name, tell_unread, unanswered};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(after_help = "Without --check or --log, prints a file that NCCL_GRAPH_FILE takes.\n\
                        Exit status: 0 done, 1 NCCL would refuse the server or the graph file, \
                        2 a file cannot be read.")]
pub(super) struct Graph {
    #[command(flatten)]
    server: Server,
    /// Hold this graph file against the server instead of searching.
    #[arg(long, value_name = "GRAPHS", conflicts_with = "log")]
    check: Option<PathBuf>,
    /// Print what NCCL logs: channels over all ranks, and each rank's trees.
    #[arg(long)]
    log: bool,
}

/// The largest NVLink domain that is made.
#[derive(Debug, clap::Args)]
pub(super) struct Rack {
    /// Servers in the rack.
    #[arg(long, value_name = "N", default_value_t = 18,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    hosts: u16,
    /// CPUs of each server, with two GPUs and two ports each.
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=4))]
    cpus: u16,
}

pub(super) fn run(args: &Graph, globals: &Globals) -> Outcome {
    let (file, profile) = (&args.server.file, args.server.look.nccl);
    let name_of_file = name(file);
    let question = args.server.question()?;
    let ask = question.ask().within(|| "this variable has no meaning")?;
    let unread = tell_unread(&question)?;
    let view = View::of(&question.root, ask)
        .map_err(|refused| unanswered(refused.into(), &name_of_file, profile))?;
    if let Some(graph_file) = &args.check {
        let findings = match graph_document(graph_file, profile)? {
            Ok(document) => {
                let mut findings = refused_form(&document.tolerated);
                findings.extend(check(&view, &document.root));
                findings
            }
            Err(error) => vec![malformed(&error)],
        };
        return print_findings(&name(graph_file), &findings, &unread, globals);
    }
    let searched = searched(&question).map_err(|error| match error {
        NoAnswer::Refused(RefusedView::Search(refused)) => Failure::refusal(refused)
            .within(format!("NCCL {profile} finds nothing for {name_of_file}")),
        other => unanswered(other, &name_of_file, profile),
    })?;
    if args.log {
        let log = connected(&searched).map_err(Failure::refusal)?.log();
        if globals.json {
            let lines: Vec<&str> = log.lines().collect();
            print_object(&serde_json::json!({ "log": lines }), &unread)?;
        } else {
            render::print(&log)?;
        }
    } else {
        let found = searched[0].found.iter().filter(|it| !it.channels.is_empty());
        let root = to_xml(&view, &found.cloned().collect::<Vec<Found>>())
            .map_err(|error| Failure::refusal(error).hint("add `--log` to see the channels"))?;
        print_file(&xml::write(&root), &unread, globals)?;
    }
    Ok(Answer::Yes)
}

pub(super) fn run_rack(args: &Rack, globals: &Globals) -> Outcome {
    let rack = rack(RackShape { hosts: args.hosts, cpus: args.cpus });
    print_file(&xml::write(&rack), &[], globals)?;
    Ok(Answer::Yes)
}

fn print_object(shown: &serde_json::Value, unread: &[String]) -> Outcome<()> {
    let text = serde_json::to_string(&Beside { shown, unread })?;
    render::print(&format!("{text}\n"))?;
    Ok(())
}

/// The file itself, or for programs inside an object, as `topo read` and `topo vm` have it.
fn print_file(text: &str, unread: &[String], globals: &Globals) -> Outcome<()> {
    if globals.json {
        print_object(&serde_json::json!({ "xml": text }), unread)?;
    } else {
        render::print(text)?;
    }
    Ok(())
}

fn print_findings(
    name: &str,
    findings: &[Finding],
    unread: &[String],
    globals: &Globals,
) -> Outcome {
    let severity = |it: &Finding| match it.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let bad = findings.iter().any(|it| it.severity == Severity::Error);
    if globals.json {
        let rows: Vec<_> = findings
            .iter()
            .map(|it| {
                serde_json::json!({
                    "line": it.place.line, "column": it.place.column,
                    "severity": severity(it), "text": it.text,
                })
            })
            .collect();
        print_object(&serde_json::json!({ "file": name, "findings": rows }), unread)?;
    } else if findings.is_empty() {
        render::print(&format!("{name}: NCCL can communicate by it\n"))?;
    } else {
        let line = |it: &Finding| format!("{name}:{}: {}: {}\n", it.place, severity(it), it.text);
        render::print(&findings.iter().map(line).collect::<String>())?;
    }
    Ok(if bad { Answer::No } else { Answer::Yes })
}
