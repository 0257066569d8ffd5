//! `selvedge ocs show|drain|undrain` and `ocs port move`.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::cmd::cube::numbers;
use crate::cmd::drain::{self, Drain, DrainRow, Undrain};
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::table::{Cell, Table};
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Ocs {
    #[command(subcommand)]
    verb: OcsVerb,
}

#[derive(Debug, Subcommand)]
enum OcsVerb {
    /// All optical switches, or one with its xconnects, intended against actual.
    Show(Show),
    /// Take a switch, or one of its ports, out of use.
    Drain(Drain),
    /// Take back your own drain.
    Undrain(Undrain),
    /// Work on one port.
    Port(Port),
}

#[derive(Debug, clap::Args)]
struct Show {
    /// Such as x5; all without.
    #[arg(value_name = "OCS")]
    name: Option<String>,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, clap::Args)]
struct Port {
    #[command(subcommand)]
    verb: PortVerb,
}

#[derive(Debug, Subcommand)]
enum PortVerb {
    /// Re-patch a cube's fibre to another port of the same side: a spare, 64 to 67.
    Move(Move),
}

#[derive(Debug, clap::Args)]
struct Move {
    /// The port that the fibre is on, such as x5/n17.
    #[arg(value_name = "FROM")]
    from: String,
    /// The port that it moves to, such as x5/n64.
    #[arg(value_name = "TO")]
    to: String,
}

#[derive(Debug, Deserialize)]
struct Switches {
    switches: Vec<SwitchRow>,
}

#[derive(Debug, Deserialize)]
struct SwitchRow {
    name: String,
    pod: String,
    n_pairs: u32,
    n_intended: u32,
    n_differ: u32,
    generation: u64,
    known: bool,
    silent_s: Option<f64>,
    drained: bool,
    links_drained: u32,
    cases: Vec<u32>,
}

#[derive(Debug, Deserialize)]
struct SwitchPage {
    #[serde(flatten)]
    switch: SwitchRow,
    pairs: Vec<Pair>,
    drains: Vec<DrainRow>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    north: String,
    south: String,
    from: Option<String>,
    to: Option<String>,
    intended: bool,
    actual: bool,
    job: Option<u32>,
}

pub(crate) fn run(args: &Ocs, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        OcsVerb::Show(args) => show(args, &client, globals),
        OcsVerb::Drain(args) => drain::drain("ocs", args, &client, globals),
        OcsVerb::Undrain(args) => drain::undrain("ocs", args, &client, globals),
        OcsVerb::Port(Port { verb: PortVerb::Move(args) }) => move_port(args, &client, globals),
    }
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    let path = match &args.name {
        Some(name) => format!("/v1/switches/{}", path_text(name)),
        None => "/v1/switches".to_owned(),
    };
    args.watch.show(|| {
        let text = client.get_text(&path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        if args.name.is_none() {
            let Switches { switches } = client.read(&path, &text)?;
            return Ok(switch_table(&switches));
        }
        let page: SwitchPage = client.read(&path, &text)?;
        let mut text = switch_table(std::slice::from_ref(&page.switch));
        for drain in &page.drains {
            text.push_str(&format!("{}\n", drain.line()));
        }
        text.push_str(&format!("\n{}", pair_table(&page.pairs)));
        Ok(text)
    })?;
    Ok(Answer::Yes)
}

fn switch_table(switches: &[SwitchRow]) -> String {
    let mut table = Table::new(&[
        "ocs",
        "pod",
        "state",
        ">xconnects",
        ">intended",
        ">differ",
        ">generation",
        "cases",
    ]);
    for switch in switches {
        let (state, colour) = match (switch.known, switch.links_drained) {
            _ if switch.silent_s.is_some() => ("does not answer".to_owned(), style::BAD),
            _ if switch.drained => ("out of use".to_owned(), style::BAD),
            (false, _) => ("not read yet".to_owned(), style::WAIT),
            (true, 0) => ("ok".to_owned(), style::GOOD),
            (true, n) => {
                let ports = number::counted(u64::from(n), "port");
                (format!("ok, {ports} drained"), style::WAIT)
            }
        };
        let differ = if switch.n_differ == 0 { style::PLAIN } else { style::WAIT };
        table.row([
            (&switch.name).into(),
            (&switch.pod).into(),
            Cell::styled(state, colour),
            switch.n_pairs.into(),
            switch.n_intended.into(),
            Cell::styled(switch.n_differ, differ),
            switch.generation.into(),
            numbers(&switch.cases).into(),
        ]);
    }
    table.to_string()
}

fn pair_table(pairs: &[Pair]) -> String {
    if pairs.is_empty() {
        return "no xconnects\n".to_owned();
    }
    let mut table = Table::new(&["north", "south", "from", "to", "mirrors", ">job"]);
    for pair in pairs {
        let (mirrors, colour) = match (pair.intended, pair.actual) {
            (true, true) => ("as intended", style::GOOD),
            (true, false) => ("missing", style::WAIT),
            (false, true) => ("left over", style::PLAIN),
            (false, false) => ("-", style::PLAIN),
        };
        let name = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            (&pair.north).into(),
            (&pair.south).into(),
            name(&pair.from).into(),
            name(&pair.to).into(),
            Cell::styled(mirrors, colour),
            pair.job.map_or("-".to_owned(), |it| it.to_string()).into(),
        ]);
    }
    table.to_string()
}

fn move_port(args: &Move, client: &Client, globals: &Globals) -> Outcome {
    let body = json!({"from": args.from, "to": args.to});
    let text = client.post_text("/v1/switches/move", &body)?;
    if globals.json {
        render::print_raw(&text)?;
    } else {
        render::print(&format!("the fibre of {} is on {}\n", args.from, args.to))?;
    }
    Ok(Answer::Yes)
}
