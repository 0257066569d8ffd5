//! `selvedge topo lint`: findings, and the file mended as a patch; `topo fleet`: many files.

use std::path::{self, Component, Path, PathBuf};
use std::{env, fs};

use selvedge_family::host::change::NoAnswer;
use selvedge_family::host::diff::unified;
use selvedge_family::host::fleet::{Group, group};
use selvedge_family::host::lint::{Finding, Report, Severity, lint, malformed};
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::{Document, Element};
use selvedge_family::host::views::{Alike, Seen, decided};
use serde::Serialize;

use crate::Globals;
use crate::cmd::topo::{
    Beside, Look, document_of, listed, name, read, read_any, tell_unread, unanswered,
};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 no errors and no warnings, 1 some, 2 the file cannot be read."
)]
pub(crate) struct Lint {
    /// A topology file.
    #[arg(value_name = "XML")]
    file: PathBuf,
    /// The version of NCCL that is to read it.
    #[arg(long, value_name = "VERSION", default_value = "2.30.7")]
    nccl: Profile,
    /// Print a patch that mends what can be mended without asking; `patch -p1` takes it from the
    /// folder one stands in, or with `-d /` where the file is not below that.
    #[arg(long)]
    fix: bool,
    /// With --fix, write the mended file there and print no patch.
    #[arg(long, value_name = "FILE", requires = "fix")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 all alike, 1 some are odd or are no topology files, 2 the folder \
                        or a file in it cannot be opened.  Text is cut short; --json has all of it."
)]
pub(crate) struct Fleet {
    /// A folder; every .xml file in it and below is a server.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    look: Look,
}

#[derive(Debug, Serialize)]
struct Findings {
    nccl: String,
    findings: Vec<Finding>,
    /// The patch; empty where nothing is mended.
    patch: String,
}

pub(crate) fn run(args: &Lint, globals: &Globals) -> Outcome {
    let ((text, is_utf8), shown) = (read_any(&args.file)?, name(&args.file));
    if !is_utf8 && args.fix {
        return Err(Failure::new(format!("{shown} is not UTF-8, so no patch fits it"))
            .hint("write it as UTF-8 first; `topo lint` without --fix takes it as it is"));
    }
    let report = lint(&text, args.nccl).unwrap_or_else(|error| Report {
        findings: vec![malformed(&error)],
        fixed: text.clone(),
        is_mended: false,
    });
    let patch = if report.is_mended && is_utf8 {
        unified(&named_in_patch(&args.file), &text, &report.fixed)
    } else {
        String::new()
    };
    if let Some(output) = &args.output {
        let mended = if report.is_mended { &report.fixed } else { &text };
        fs::write(output, mended).within(|| format!("cannot write {}", output.display()))?;
    }
    let bad = report.findings.iter().any(|it| it.severity < Severity::Note);
    if globals.json {
        let nccl = args.nccl.to_string();
        render::print_json(&Findings { nccl, findings: report.findings, patch })?;
    } else if args.fix {
        if args.output.is_none() {
            render::print(&patch)?;
        }
        for it in report.findings.iter().filter(|it| !it.is_fixed) {
            anstream::eprintln!("{shown}:{it}");
        }
    } else {
        for it in &report.findings {
            render::print(&format!("{shown}:{it}\n"))?;
        }
    }
    Ok(if bad { Answer::No } else { Answer::Yes })
}

/// The file as `patch -p1` finds it from here; one that is not below this folder as
/// `patch -p1 -d /` does, for patch takes no path that leads upwards.
fn named_in_patch(file: &Path) -> String {
    let whole = path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let climbs = file.components().any(|it| it == Component::ParentDir);
    let whole = if climbs { fs::canonicalize(file).unwrap_or(whole) } else { whole };
    let here = env::current_dir().ok().and_then(|it| Some(whole.strip_prefix(it).ok()?.to_owned()));
    let named = here.unwrap_or(whole);
    named.display().to_string().trim_start_matches('/').to_owned()
}

pub(crate) fn run_fleet(args: &Fleet, globals: &Globals) -> Outcome {
    let mut files = Vec::new();
    collect(&args.folder, &mut files)?;
    if files.is_empty() {
        return Err(Failure::new(format!("no .xml file in {}", args.folder.display())));
    }
    let nothing = Element::new("system");
    let (nccl, nodes) = (args.look.nccl, args.look.nodes);
    let unread = tell_unread(&args.look.conditions.question(nothing, nccl, nodes)?)?;
    let mut members = Vec::new();
    for file in &files {
        let shown = file.strip_prefix(&args.folder).unwrap_or(file).display().to_string();
        members.push((shown, decide(file, args)?));
    }
    let groups = group(members);
    if globals.json {
        let shown = groups.iter().map(|shown| Beside { shown, unread: &unread });
        render::print_json(&shown.collect::<Vec<_>>())?;
    } else {
        render::print(&fleet_text(&groups, files.len()))?;
    }
    Ok(if groups.len() == 1 { Answer::Yes } else { Answer::No })
}

/// A file that cannot be read as one is an odd server, not the end of the look; so is one whose
/// form NCCL gives up at.  Where that stands is told on the way, so that servers with the same
/// fault are one group.
fn decide(file: &Path, args: &Fleet) -> Outcome<Result<Vec<Seen>, String>> {
    let Look { nccl, nodes, conditions } = &args.look;
    let asked = read(file).and_then(|text| {
        let Document { root, tolerated } = document_of(&text, &name(file), *nccl)?;
        Ok((conditions.question(root, *nccl, *nodes)?, tolerated))
    });
    let (question, tolerated) = match asked {
        Ok(asked) => asked,
        Err(failure) => return Ok(Err(failure.text())),
    };
    if let Some(it) = tolerated.iter().find(|it| it.quirk.is_refused()) {
        return Ok(Err(it.quirk.to_string()));
    }
    match decided(&question) {
        Ok(seen) => Ok(Ok(seen)),
        Err(NoAnswer::Refused(error)) => Ok(Err(error.to_string())),
        Err(error) => Err(unanswered(error, &name(file), args.look.nccl)),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome<()> {
    let entries = fs::read_dir(folder).within(|| format!("cannot read {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.within(|| format!("cannot read {}", folder.display()))?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "xml") {
            files.push(path);
        }
    }
    Ok(())
}

fn fleet_text(groups: &[Group], total: usize) -> String {
    /// Names on a line, and differences of a group.
    const SHOWN: usize = 8;
    let mut out = String::new();
    for (idx, group) in groups.iter().enumerate() {
        let (named, more) = listed(&group.servers, SHOWN);
        let names = format!("{}{more}", cut(&named));
        let word = if idx == 0 { "usual" } else { "odd" };
        out.push_str(&format!("{word}: {} of {total}: {names}\n", group.servers.len()));
        if let Some(error) = &group.error {
            out.push_str(&format!("  refused: {error}\n"));
        }
        let mut rank = None;
        for Alike { rank: own, differences: it } in group.differences.iter().take(SHOWN) {
            if let Some(own) = own.filter(|_| *own != rank) {
                out.push_str(&format!("  as rank {own} sees it:\n"));
            }
            rank = *own;
            let (named, more) = listed(&it.subjects, SHOWN);
            out.push_str(&format!("  {}{more}\n", cut(&named)));
            for (sign, line) in [("-", &it.before), ("+", &it.after)] {
                if let Some(line) = line {
                    out.push_str(&format!("    {sign} {}\n", cut(line)));
                }
            }
        }
        let more = group.differences.len().saturating_sub(SHOWN);
        if more > 0 {
            out.push_str(&format!("  and {more} more; --json has them\n"));
        }
    }
    out
}

/// A line as far as a screen goes.
fn cut(line: &str) -> String {
    const COLUMNS: usize = 90;
    match line.char_indices().nth(COLUMNS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
