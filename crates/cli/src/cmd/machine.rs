//! `selvedge machine show|drain|undrain`.

use clap::Subcommand;
use serde::Deserialize;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::cmd::cube::numbers;
use crate::cmd::drain::{self, Drain, DrainRow, Undrain};
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::facts::Facts;
use crate::render::{self, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Machine {
    #[command(subcommand)]
    verb: MachineVerb,
}

#[derive(Debug, Subcommand)]
enum MachineVerb {
    /// One machine with its chips.
    Show(Show),
    /// Take a machine out of use; running jobs leave it after a notice.
    Drain(Drain),
    /// Take back your own drain.
    Undrain(Undrain),
}

#[derive(Debug, clap::Args)]
struct Show {
    /// Such as cube17/m03.
    #[arg(value_name = "MACHINE")]
    path: String,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
pub(crate) struct MachineRow {
    path: String,
    cube: String,
    pub(crate) chips: Vec<Chip>,
    out: bool,
    drains: Vec<DrainRow>,
    cases: Vec<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Chip {
    path: String,
    pub(crate) job: Option<u32>,
    pub(crate) out: bool,
}

pub(crate) fn run(args: &Machine, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        MachineVerb::Show(args) => show(args, &client, globals),
        MachineVerb::Drain(args) => drain::drain("machine", args, &client, globals),
        MachineVerb::Undrain(args) => drain::undrain("machine", args, &client, globals),
    }
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    let path = format!("/v1/machines/{}", path_text(&args.path));
    args.watch.show(|| {
        let text = client.get_text(&path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        Ok(page(&client.read(&path, &text)?))
    })?;
    Ok(Answer::Yes)
}

fn page(machine: &MachineRow) -> String {
    let title = style::TITLE;
    let mut facts = Facts::new(format!("{title}{}{title:#}: {}", machine.path, state(machine)));
    facts.add("cube", &machine.cube);
    facts.add("cases", numbers(&machine.cases));
    for drain in &machine.drains {
        facts.add("out of use", drain.text());
    }
    facts.add_list("chips", machine.chips.iter().map(chip_line).collect());
    facts.to_string()
}

/// `cube17/m03: in use by 7`.
pub(crate) fn machine_line(machine: &MachineRow) -> String {
    let mut jobs: Vec<u32> = machine.chips.iter().filter_map(|it| it.job).collect();
    jobs.dedup();
    let jobs = if jobs.is_empty() { "free".to_owned() } else { format!("job {}", numbers(&jobs)) };
    format!("{}: {}, {jobs}", machine.path, state(machine))
}

fn state(machine: &MachineRow) -> &'static str {
    if machine.out { "out of use" } else { "in the pool" }
}

fn chip_line(chip: &Chip) -> String {
    let job = chip.job.map_or("free".to_owned(), |it| format!("job {it}"));
    let out = if chip.out { ", out of use" } else { "" };
    format!("{}: {job}{out}", chip.path)
}
