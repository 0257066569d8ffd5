//! `selvedge maintain start|list`: planned work on many things, in waves.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::table::Table;
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Maintain {
    #[command(subcommand)]
    verb: MaintainVerb,
}

#[derive(Debug, Subcommand)]
enum MaintainVerb {
    /// Work on machines, chips or switches, so many at a time: drain, work, test, return.
    Start(Start),
    /// Planned works and how far they have come.
    List(List),
}

#[derive(Debug, clap::Args)]
struct Start {
    /// As the plant calls them.
    #[arg(value_name = "NAME", required = true)]
    targets: Vec<String>,
    /// How many at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    at_once: u32,
    /// How long the work on one takes, in plant time: 90s, 15m, 2h, 3d.
    #[arg(long, value_name = "SPAN", default_value = "30m")]
    work: String,
    /// Why, for whoever finds them out of use.
    #[arg(long, value_name = "TEXT", default_value = "planned maintenance")]
    why: String,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
struct Planned {
    id: u32,
}

#[derive(Debug, Deserialize)]
struct Works {
    maintenance: Vec<Work>,
}

#[derive(Debug, Deserialize)]
struct Work {
    id: u32,
    by: String,
    why: String,
    n_waiting: u32,
    n_at_work: u32,
    n_done: u32,
    at_once: u32,
    work_s: f64,
}

const PATH: &str = "/v1/maintenance";

pub(crate) fn run(args: &Maintain, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        MaintainVerb::Start(args) => start(args, &client, globals),
        MaintainVerb::List(args) => list(args, &client, globals),
    }
}

fn start(args: &Start, client: &Client, globals: &Globals) -> Outcome {
    let body = json!({
        "targets": args.targets, "at_once": args.at_once, "work": args.work, "why": args.why,
    });
    let text = client.post_text(PATH, &body)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let Planned { id } = client.read(PATH, &text)?;
    let n = number::counted(args.targets.len() as u64, "thing");
    render::print(&format!("maintenance {id}: {n}, {} at a time\n", args.at_once))?;
    Ok(Answer::Yes)
}

fn list(args: &List, client: &Client, globals: &Globals) -> Outcome {
    args.watch.show(|| {
        let text = client.get_text(PATH)?;
        if globals.json {
            return Ok(render::line(text));
        }
        let Works { maintenance } = client.read(PATH, &text)?;
        if maintenance.is_empty() {
            return Ok("no planned work\n".to_owned());
        }
        let mut table = Table::new(&[
            ">work", ">waiting", ">at work", ">done", ">at once", ">each", "by", "why",
        ]);
        for work in maintenance {
            table.row([
                work.id.into(),
                work.n_waiting.into(),
                work.n_at_work.into(),
                work.n_done.into(),
                work.at_once.into(),
                number::seconds(work.work_s).into(),
                work.by.into(),
                work.why.into(),
            ]);
        }
        Ok(table.to_string())
    })?;
    Ok(Answer::Yes)
}
