//! `topo graph`: rings, trees and heads as a graph file, held against a server, or as log lines.

use std::path::PathBuf;

use selvedge_family::host::change::NoAnswer;
use selvedge_family::host::nccl::graph_xml::{
    Finding, Severity, check, malformed, refused_form, to_xml,
};
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search::Found;
use selvedge_family::host::nccl::view::{RefusedView, View};
use selvedge_family::host::nccl::xml::{self, Document, XmlError};
use selvedge_family::host::place::ranges;
use selvedge_family::host::views::{connected, others_note, searched, seen_by, views};

use crate::Globals;
use crate::cmd::topo::{Beside, Server, graph_document, name, tell_unread, unanswered};
use crate::failure::{Answer, Failure, Outcome};
use crate::render;
use crate::render::number::counted;

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
    let unread = tell_unread(&question)?;
    let views = views(&question).map_err(|error| unanswered(error, &name_of_file, profile))?;
    if let Some(graph_file) = &args.check {
        let document = graph_document(graph_file, profile)?;
        let held = |view: &View| Held { ranks: seen_by(view), findings: findings(view, &document) };
        let held: Vec<Held> = views.iter().map(held).collect();
        return print_findings(&name(graph_file), &held, &unread, globals);
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
        let root = to_xml(&views[0], &found.cloned().collect::<Vec<Found>>())
            .map_err(|error| Failure::refusal(error).hint("add `--log` to see the channels"))?;
        let ranks: Vec<Vec<i32>> = views.iter().map(seen_by).collect();
        if let Some(note) = others_note(&ranks) {
            anstream::eprintln!("note: {note}, whose ranks take a file of their own (--rank)");
        }
        print_file(&xml::write(&root), &ranks, &unread, globals)?;
    }
    Ok(Answer::Yes)
}

pub(super) fn run_rack(args: &Rack, globals: &Globals) -> Outcome {
    let rack = rack(RackShape { hosts: args.hosts, cpus: args.cpus });
    print_file(&xml::write(&rack), &[], &[], globals)?;
    Ok(Answer::Yes)
}

fn print_object(shown: &serde_json::Value, unread: &[String]) -> Outcome<()> {
    let text = serde_json::to_string(&Beside { shown, unread })?;
    render::print(&format!("{text}\n"))?;
    Ok(())
}

/// The file itself, or for programs inside an object, as `topo read` and `topo vm` have it.
fn print_file(text: &str, ranks: &[Vec<i32>], unread: &[String], globals: &Globals) -> Outcome<()> {
    if globals.json {
        let mut shown = serde_json::json!({ "xml": text });
        if 1 < ranks.len() {
            shown["views"] = ranks.iter().map(|it| serde_json::json!({ "ranks": it })).collect();
        }
        print_object(&shown, unread)?;
    } else {
        render::print(text)?;
    }
    Ok(())
}

/// A graph file held against one view.
struct Held {
    /// Who shares it.
    ranks: Vec<i32>,
    findings: Vec<Finding>,
}

impl Held {
    fn n_errors(&self) -> usize {
        self.findings.iter().filter(|it| it.severity == Severity::Error).count()
    }
}

fn findings(view: &View, document: &Result<Document, XmlError>) -> Vec<Finding> {
    match document {
        Ok(document) => {
            let mut findings = refused_form(&document.tolerated);
            findings.extend(check(view, &document.root));
            findings
        }
        Err(error) => vec![malformed(error)],
    }
}

/// What the asking rank's view, the first, has against the file, and how many errors the others'.
fn print_findings(name: &str, held: &[Held], unread: &[String], globals: &Globals) -> Outcome {
    let severity = |it: &Finding| match it.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let findings = &held[0].findings;
    let bad = 0 < held[0].n_errors();
    let others = held.iter().skip(1);
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
        let mut shown = serde_json::json!({ "file": name, "findings": rows });
        if 1 < held.len() {
            let view =
                |it: &Held| serde_json::json!({ "ranks": it.ranks, "errors": it.n_errors() });
            shown["views"] = held.iter().map(view).collect();
        }
        print_object(&shown, unread)?;
    } else {
        let line = |it: &Finding| format!("{name}:{}: {}: {}\n", it.place, severity(it), it.text);
        let mut page: String = findings.iter().map(line).collect();
        if findings.is_empty() {
            page.push_str(&format!("{name}: NCCL can communicate by it\n"));
        }
        // What is wrong with the file itself is the same in all views.
        for it in others.filter(|it| it.findings != *findings) {
            let who = ranges("GPU", &it.ranks);
            let note = match it.n_errors() {
                0 => format!("the view of {who} takes it"),
                n => {
                    let (n, rank) = (counted(n as u64, "error"), it.ranks.first().unwrap_or(&0));
                    format!("the view of {who} has {n}; --rank {rank} names them")
                }
            };
            page.push_str(&format!("note: {note}\n"));
        }
        render::print(&page)?;
    }
    Ok(if bad { Answer::No } else { Answer::Yes })
}
