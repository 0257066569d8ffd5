//! `selvedge cube show|drain|undrain`.

use std::collections::{BTreeMap, BTreeSet};

use clap::Subcommand;
use serde::Deserialize;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::cmd::drain::{self, Drain, DrainRow, Undrain};
use crate::cmd::machine::{MachineRow, machine_line};
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::facts::Facts;
use crate::render::table::{Cell, Table};
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Cube {
    #[command(subcommand)]
    verb: CubeVerb,
}

#[derive(Debug, Subcommand)]
enum CubeVerb {
    /// All cubes (hosts, in a cluster), or one with its machines and fibres.
    Show(Show),
    /// Take a cube out of use; running jobs leave it after a notice.
    Drain(Drain),
    /// Take back your own drain.
    Undrain(Undrain),
}

#[derive(Debug, clap::Args)]
struct Show {
    /// Such as cube17; all without.
    #[arg(value_name = "CUBE")]
    name: Option<String>,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Cubes {
    pub(crate) cubes: Vec<CubeRow>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CubeRow {
    pub(crate) name: String,
    pub(crate) pod: String,
    chips: u32,
    chips_used: u32,
    chips_out: u32,
    ends_out: u32,
    jobs: Vec<u32>,
    health: String,
    drained: bool,
    links_drained: u32,
    cases: Vec<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CubePage {
    #[serde(flatten)]
    cube: CubeRow,
    pub(crate) machines: Vec<MachineRow>,
    ends: Vec<End>,
    drains: Vec<DrainRow>,
}

#[derive(Debug, Deserialize)]
struct End {
    path: String,
    to: String,
    peer: Option<String>,
    out: bool,
}

pub(crate) fn run(args: &Cube, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        CubeVerb::Show(args) => show(args, &client, globals),
        CubeVerb::Drain(args) => drain::drain("cube", args, &client, globals),
        CubeVerb::Undrain(args) => drain::undrain("cube", args, &client, globals),
    }
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    let path = match &args.name {
        Some(name) => format!("/v1/cubes/{}", path_text(name)),
        None => "/v1/cubes".to_owned(),
    };
    args.watch.show(|| {
        let text = client.get_text(&path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        if args.name.is_some() {
            return Ok(cube_page(&client.read(&path, &text)?));
        }
        let Cubes { cubes } = client.read(&path, &text)?;
        Ok(cube_table(&cubes))
    })?;
    Ok(Answer::Yes)
}

pub(crate) fn cube_table(cubes: &[CubeRow]) -> String {
    let mut table = Table::new(&[
        "cube",
        "pod",
        "health",
        ">chips",
        ">used",
        ">out",
        ">fibres out",
        "jobs",
        "cases",
    ]);
    for cube in cubes {
        table.row([
            (&cube.name).into(),
            (&cube.pod).into(),
            Cell::styled(health_word(cube), health_style(&cube.health)),
            cube.chips.into(),
            cube.chips_used.into(),
            cube.chips_out.into(),
            cube.ends_out.into(),
            numbers(&cube.jobs).into(),
            numbers(&cube.cases).into(),
        ]);
    }
    table.to_string()
}

fn cube_page(page: &CubePage) -> String {
    let cube = &page.cube;
    let (title, health) = (style::TITLE, health_style(&cube.health));
    let word = health_word(cube);
    let mut facts = Facts::new(format!(
        "{title}{}{title:#} in {}: {health}{word}{health:#}",
        cube.name, cube.pod
    ));
    let chips = format!("{}, {} used, {} out", cube.chips, cube.chips_used, cube.chips_out);
    facts.add("chips", chips);
    facts.add("jobs", numbers(&cube.jobs));
    facts.add("cases", numbers(&cube.cases));
    for drain in &page.drains {
        facts.add("out of use", drain.text());
    }
    facts.add_list("machines", page.machines.iter().map(machine_line).collect());
    facts.add_list("fibres", faces(&page.ends));
    facts.to_string()
}

/// One line a face: a cube has 16 fibres on each of six, and they lead to one neighbour.
fn faces(ends: &[End]) -> Vec<String> {
    let face = |path: &str| path.rsplit_once('/').map_or(path, |it| it.0).to_owned();
    let mut faces: BTreeMap<String, Vec<&End>> = BTreeMap::new();
    for end in ends {
        faces.entry(face(&end.path)).or_default().push(end);
    }
    let mut lines = Vec::new();
    for (name, ends) in faces {
        let peers: BTreeSet<String> =
            ends.iter().filter_map(|it| Some(face(it.peer.as_deref()?))).collect();
        let to = match peers.len() {
            0 => "joined with nothing".to_owned(),
            _ => format!("to {}", peers.into_iter().collect::<Vec<_>>().join(" ")),
        };
        // What leads to another part without a switch is copper.
        let is_direct = ends.iter().all(|it| it.peer.as_ref() == Some(&it.to));
        let word = if is_direct { "cable" } else { "fibre" };
        lines.push(format!("{name}: {}, {to}", number::counted(ends.len() as u64, word)));
        for end in ends.iter().filter(|it| it.out) {
            lines.push(format!("  {} on {}, out of use", end.path, end.to));
        }
    }
    lines
}

fn health_word(cube: &CubeRow) -> String {
    match cube.links_drained {
        _ if cube.drained => format!("{}, drained", cube.health),
        0 => cube.health.clone(),
        n => format!("{}, {} drained", cube.health, number::counted(u64::from(n), "link")),
    }
}

fn health_style(health: &str) -> anstyle::Style {
    match health {
        "ok" => style::GOOD,
        "degraded" => style::WAIT,
        _ => style::BAD,
    }
}

/// `7 9`, or a dash.
pub(crate) fn numbers(numbers: &[u32]) -> String {
    match numbers.len() {
        0 => "-".to_owned(),
        _ => numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    }
}
