//! `selvedge link show|drain|undrain`.

use clap::Subcommand;
use serde::Deserialize;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::cmd::cube::numbers;
use crate::cmd::drain::{self, Drain, DrainRow, Undrain};
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::table::{Cell, Table};
use crate::render::{self, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Link {
    #[command(subcommand)]
    verb: LinkVerb,
}

#[derive(Debug, Subcommand)]
enum LinkVerb {
    /// The links at a part, machine, chip or port; without one, those out of use.
    Show(Show),
    /// Take a link out of use at both ends; machines stay usable for jobs that do not need it.
    Drain(Drain),
    /// Take back your own drain.
    Undrain(Undrain),
}

#[derive(Debug, clap::Args)]
struct Show {
    /// Such as cube17, cube17/m03 or cube17/x/out/7.
    #[arg(value_name = "NAME")]
    of: Option<String>,
    /// Only links out of use.
    #[arg(long)]
    out: bool,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
struct Links {
    links: Vec<LinkRow>,
}

#[derive(Debug, Deserialize)]
struct LinkRow {
    from: String,
    to: String,
    kind: String,
    gbps: u64,
    loss_db: Option<f64>,
    out: bool,
    drains: Vec<DrainRow>,
    cases: Vec<u32>,
}

pub(crate) fn run(args: &Link, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        LinkVerb::Show(args) => show(args, &client, globals),
        LinkVerb::Drain(args) => drain::drain("link", args, &client, globals),
        LinkVerb::Undrain(args) => drain::undrain("link", args, &client, globals),
    }
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    let out = args.out || args.of.is_none();
    let of = args.of.as_ref().map(|it| format!("of={}", path_text(it)));
    let query: Vec<String> = of.into_iter().chain(out.then(|| "out=true".to_owned())).collect();
    let path = format!("/v1/links?{}", query.join("&"));
    args.watch.show(|| {
        let text = client.get_text(&path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        let Links { links } = client.read(&path, &text)?;
        if links.is_empty() {
            return Ok(if out { "no links out of use\n" } else { "no links\n" }.to_owned());
        }
        Ok(table(links))
    })?;
    Ok(Answer::Yes)
}

fn table(links: Vec<LinkRow>) -> String {
    let mut table = Table::new(&["from", "to", "kind", ">Gb/s", ">loss dB", "state", "cases"]);
    for link in links {
        let (state, colour) = match (link.out, link.drains.first()) {
            (_, Some(drain)) => (format!("out of use {}", drain.text()), style::BAD),
            (true, None) => ("out of use".to_owned(), style::BAD),
            (false, None) => ("ok".to_owned(), style::GOOD),
        };
        table.row([
            link.from.into(),
            link.to.into(),
            link.kind.into(),
            link.gbps.into(),
            link.loss_db.map_or("-".to_owned(), |it| format!("{it:.2}")).into(),
            Cell::styled(state, colour),
            numbers(&link.cases).into(),
        ]);
    }
    table.to_string()
}
