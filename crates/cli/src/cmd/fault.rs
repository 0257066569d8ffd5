//! `selvedge fault inject|clear|list`: on simulated plants only.

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::table::Table;
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Fault {
    #[command(subcommand)]
    verb: FaultVerb,
}

#[derive(Debug, Subcommand)]
enum FaultVerb {
    /// Break a simulated thing.
    Inject(On),
    /// Heal a simulated thing.
    Clear(On),
    /// What is broken in the simulated plant, whether the core knows it or not.
    List(List),
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
struct Faults {
    faults: Vec<FaultRow>,
}

#[derive(Debug, Deserialize)]
struct FaultRow {
    target: Option<String>,
    kind: String,
    since_s: f64,
}

#[derive(Debug, clap::Args)]
struct On {
    /// What sort of thing.
    #[arg(value_name = "WHAT")]
    sort: Sort,
    /// As the plant calls it: cube17/m03, cube17/chip1.2.3, cube17/x/out/7, x5, x5/n17.
    #[arg(value_name = "NAME")]
    target: String,
    /// What is wrong, such as link_degraded; without, what breaks such a thing altogether (to
    /// clear: everything).
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// A machine of four chips.
    Machine,
    /// One chip.
    Chip,
    /// A link, by the port that it leaves.
    Link,
    /// An optical switch.
    Ocs,
    /// A port of an optical switch.
    Port,
}

pub(crate) fn run(args: &Fault, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let (action, on) = match &args.verb {
        FaultVerb::Inject(on) => ("inject", on),
        FaultVerb::Clear(on) => ("clear", on),
        FaultVerb::List(args) => return list(args, &client, globals),
    };
    let kind = match (&on.kind, action) {
        (Some(kind), _) => Some(kind.as_str()),
        (None, "inject") => Some(on.sort.breaks()),
        (None, _) => None,
    };
    let mut body = json!({"target": on.target, "action": action});
    if let Some(kind) = kind {
        body["kind"] = kind.into();
    }
    let text = client.post_text("/v1/faults", &body)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let what = kind.map_or("every fault".to_owned(), |it| it.replace('_', " "));
    let done = if action == "inject" { "injected" } else { "cleared" };
    render::print(&format!("{}: {what} {done}\n", on.target))?;
    Ok(Answer::Yes)
}

fn list(args: &List, client: &Client, globals: &Globals) -> Outcome {
    args.watch.show(|| {
        let text = client.get_text("/v1/faults")?;
        if globals.json {
            return Ok(render::line(text));
        }
        let Faults { faults } = client.read("/v1/faults", &text)?;
        if faults.is_empty() {
            return Ok("nothing is broken\n".to_owned());
        }
        let mut table = Table::new(&["what", "fault", ">since"]);
        for fault in faults {
            table.row([
                fault.target.unwrap_or_else(|| "-".to_owned()).into(),
                fault.kind.replace('_', " ").into(),
                number::clock(fault.since_s).into(),
            ]);
        }
        Ok(table.to_string())
    })?;
    Ok(Answer::Yes)
}

impl Sort {
    /// What breaks such a thing altogether.
    fn breaks(self) -> &'static str {
        match self {
            Sort::Machine => "machine_down",
            Sort::Chip => "chip_failed",
            Sort::Link => "link_down",
            Sort::Ocs => "switch_down",
            Sort::Port => "port_failed",
        }
    }
}
