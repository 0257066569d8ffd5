//! `selvedge topo show`: a matrix, from a topology file or a log, and a picture.

use std::fs;
use std::path::PathBuf;

use selvedge_family::host::log::{self, LoggedWay};
use selvedge_family::host::matrix::Matrix;
use selvedge_family::host::nccl::dump::{dump_and_left_out, refusal};
use selvedge_family::host::picture::{Picture, svg, svg_of_log};
use selvedge_family::host::place::{PlaceName, find_in_view, find_part};

use crate::Globals;
use crate::cmd::topo::{Look, name, read, root_of, tell_left_out, tell_unread, unanswered};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(after_help = "Of a log of several ranks the first that spells a tree and paths out \
                        counts, or the one that --rank names.\n\
                        Exit status: 0 shown, 1 NCCL would refuse the file, 2 it cannot be read.")]
pub(crate) struct Show {
    /// A topology file, as NCCL_TOPO_FILE takes and NCCL_TOPO_DUMP_FILE writes it; or a log with
    /// NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET; - is standard input.
    // Required, and none only where another verb is asked for.
    #[arg(value_name = "XML|LOG", required = true)]
    file: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
    /// Write a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Two parts whose way is drawn out, such as GPU0,NET3.
    #[arg(long, value_name = "A,B", requires = "svg", value_parser = parse_path)]
    path: Option<[PlaceName; 2]>,
}

fn parse_path(text: &str) -> Result<[PlaceName; 2], String> {
    let (a, b) = text.split_once(',').ok_or("write it as A,B, such as GPU0,NET3")?;
    let place = |it: &str| it.trim().parse::<PlaceName>().map_err(|error| error.to_string());
    Ok([place(a)?, place(b)?])
}

pub(crate) fn run(args: &Show, globals: &Globals) -> Outcome {
    let file = args.file.as_deref().ok_or_else(|| {
        Failure::new("no topology file was named").hint("selvedge topo show FILE.xml")
    })?;
    let (text, shown) = (read(file)?, name(file));
    // What begins as no markup is a log; launchers may write <stdout> before a log's lines.
    let begins = text.trim_start_matches('\u{feff}').trim_start();
    if !begins.starts_with('<') || begins.contains("NCCL INFO ") {
        return show_log(&text, &shown, args, globals);
    }
    let profile = args.look.nccl;
    let root = root_of(&text, &shown, profile)?;
    let question = args.look.conditions.question(root, profile, args.look.nodes)?;
    let view = question.view().map_err(|error| unanswered(error, &shown, profile))?;
    tell_unread(&question)?;
    tell_left_out(&view);
    if let Some(picture) = &args.svg {
        let way = match &args.path {
            Some([a, b]) => {
                let find = |it| find_in_view(&view, &question.root, it);
                let no_end = || "the path has no such end";
                Some((find(a).within(no_end)?, find(b).within(no_end)?))
            }
            None => None,
        };
        let text = svg(&view, &Picture { title: shown.clone(), way });
        fs::write(picture, text).within(|| format!("cannot write {}", picture.display()))?;
    }
    if globals.json {
        match dump_and_left_out(&view, &shown) {
            Ok(text) => render::print(&text)?,
            Err(refused) => {
                render::print(&refusal(profile, &shown, &refused))?;
                return Ok(Answer::No);
            }
        }
    } else {
        let matrix = Matrix::of(&view).within(|| "the decisions cannot be shown")?;
        render::print(&matrix.text())?;
    }
    Ok(Answer::Yes)
}

fn show_log(text: &str, shown: &str, args: &Show, globals: &Globals) -> Outcome {
    let logged =
        log::read(text, args.look.conditions.rank).within(|| format!("{shown} cannot be shown"))?;
    for note in &logged.notes {
        anstream::eprintln!("note: {shown}: {note}");
    }
    if let Some(picture) = &args.svg {
        let way = match (&args.path, &logged.graph) {
            (Some([a, b]), Some(graph)) => {
                let find = |it| find_part(graph, it).within(|| "the path has no such end");
                let way = logged.way(find(a)?, find(b)?);
                Some(way.within(|| "the way cannot be drawn")?)
            }
            _ => None,
        };
        let text = drawn_log(&logged, shown, way.as_ref())?;
        fs::write(picture, text).within(|| format!("cannot write {}", picture.display()))?;
    }
    if globals.json {
        render::print_json(&logged.json())?;
    } else {
        render::print(&logged.matrix.text())?;
    }
    Ok(Answer::Yes)
}

fn drawn_log(logged: &log::Logged, shown: &str, way: Option<&LoggedWay>) -> Outcome<String> {
    svg_of_log(logged, shown, way).ok_or_else(|| {
        Failure::new(format!("{shown} spells paths out and no tree, so nothing can be drawn")).hint(
            "a log has the tree from its line \"=== System\" on; else name the file that \
             NCCL_TOPO_DUMP_FILE wrote",
        )
    })
}
