//! `selvedge status`: the server and its plant on one page.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::facts::Facts;
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
struct StatusPage {
    name: String,
    version: u64,
    program: String,
    now_s: f64,
    speed: f64,
    level: String,
    simulated: bool,
    jobs: BTreeMap<String, u64>,
    chips: u64,
    chips_used: u64,
    chips_out: u64,
    cases_open: u64,
    journal: u64,
    journal_ok: bool,
    #[serde(default)]
    plant_error: Option<String>,
    #[serde(default)]
    plant_pid: Option<u32>,
    digest: String,
    data: String,
    pid: u32,
    up_s: f64,
}

pub(crate) fn run(args: &Status, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    args.watch.show(|| {
        let text = client.get_text("/v1/status")?;
        if globals.json {
            return Ok(render::line(text));
        }
        Ok(page(&client.read("/v1/status", &text)?, client.url()))
    })?;
    Ok(Answer::Yes)
}

fn page(status: &StatusPage, url: &str) -> String {
    let title = style::TITLE;
    let kind = if status.simulated { "simulated" } else { "real" };
    let mut facts = Facts::new(format!(
        "{title}{}{title:#}, {kind}, plant version {}, at {url}",
        status.name, status.version
    ));
    let speed = if status.speed == 1.0 { String::new() } else { format!(" at {}x", status.speed) };
    facts.add("plant time", format!("{}{speed}", number::clock(status.now_s)));
    facts.add("acts at", &status.level);
    let share = number::share(status.chips_used as f64 / status.chips as f64);
    facts.add(
        "chips",
        format!(
            "{}, {} used ({share}), {} out",
            number::grouped(status.chips),
            number::grouped(status.chips_used),
            number::grouped(status.chips_out)
        ),
    );
    let jobs: Vec<String> = status
        .jobs
        .iter()
        .filter(|(_, n)| **n != 0)
        .map(|(state, n)| format!("{} {state}", number::grouped(*n)))
        .collect();
    facts.add("jobs", if jobs.is_empty() { "none".to_owned() } else { jobs.join(", ") });
    facts.add("open cases", number::grouped(status.cases_open));
    let (journal, colour) = match status.journal_ok {
        true => ("", style::PLAIN),
        false => (", cannot be written", style::BAD),
    };
    let rows = number::counted(status.journal, "input");
    facts.add("journal", format!("{colour}{rows}{journal}{colour:#}, state {}", status.digest));
    match (&status.plant_error, status.plant_pid) {
        (Some(why), _) => {
            let bad = style::BAD;
            facts.add("plant", format!("{bad}away, its time stands still: {why}{bad:#}"));
        }
        (None, Some(pid)) => facts.add("plant", format!("process {pid}")),
        (None, None) => (),
    }
    facts.add("data", &status.data);
    let (up, pid) = (number::seconds(status.up_s), status.pid);
    facts.add("process", format!("{pid}, version {}, up for {up}", status.program));
    facts.to_string()
}
