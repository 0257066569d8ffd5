//! `selvedge plant new|check|show|diff`: plant files, without a server; `get|apply`: with one.

mod compare;

mod show;

mod running;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use selvedge_family::warnings;
use selvedge_model::fabric::Fabric;
use selvedge_model::fabric::{LinkAttrs, LinkKind};
use selvedge_model::spec::hypersquare::{self, HyperSquare};
use selvedge_model::spec::plant::{CUBES_MAX, CableSpec, Family, GridChip, Named};
use selvedge_model::spec::{At, Change, Plant, PlantError, point};
use selvedge_model::unit::{BitRate, CentiDb, Span};
use serde::Serialize;

use crate::Globals;
use crate::cmd::ring;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::{self, style};

#[derive(Debug, clap::Args)]
pub(crate) struct PlantArgs {
    #[command(subcommand)]
    verb: PlantVerb,
}

#[derive(Debug, Subcommand)]
enum PlantVerb {
    /// Write a plant file of so many pods.
    New(New),
    /// Say what is wrong with a plant file, and what is strange about it.
    Check(File),
    /// What a plant is made of, what fails together, and what its optics cost.
    Show(Show),
    /// In what two plants differ.
    Diff(Diff),
    /// Print the plant file that a server runs by.
    Get,
    /// Give a running server another plant file, shown as a difference first.
    Apply(running::Apply),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "The format is described in docs/plant-files.md.")]
struct New {
    /// What the pods are.
    #[arg(value_enum)]
    kind: Kind,
    /// How many pods.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pods: u16,
    /// tpuv4: slots on the switches of each pod [default: 64].
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=CUBES_MAX as i64))]
    cubes: Option<u16>,
    /// tpuv4: which slots of each pod hold a cube, such as 0-15,20 [default: all].
    #[arg(long, value_name = "LIST")]
    deployed: Option<String>,
    /// hypersquare: rows and columns of groups, such as 16x16.
    #[arg(long, value_name = "RxC")]
    groups: Option<String>,
    /// hosts: how many in each pod [default: 2, cabled to one another].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    hosts: Option<u32>,
    /// What the plant is called.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where to write it; standard output without it.  A file that is there is left alone.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Cubes of 4x4x4 chips on 48 optical switches.
    Tpuv4,
    /// 1,024 chips in a fixed 32x32 torus.
    Tpuv3,
    /// 256 chips in a fixed 16x16 torus.
    Tpuv2,
    /// 4,096 chips in a fixed 128x32 mesh.
    Tpuv3Multipod,
    /// Boards of four chips in a mesh, every row and column closed to rings.
    #[value(name = "hypersquare")]
    HyperSquare,
    /// Servers of eight accelerators.
    Hosts,
}

#[derive(Debug, clap::Args)]
struct File {
    /// The plant file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// The plant file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A hyper-square machine beside as many chips wired otherwise.
    #[arg(long, value_enum, value_name = "TOPOLOGIES", value_delimiter = ',')]
    compare: Vec<compare::Other>,
    /// Draw the hyper-square machine, and what it is compared with, into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Which pod of the plant is compared or drawn [default: its only hyper-square machine].
    #[arg(long, value_name = "N")]
    pod: Option<usize>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 they are equal, 1 they differ, 2 one cannot be read.")]
struct Diff {
    /// The old plant file.
    #[arg(value_name = "A")]
    old: PathBuf,
    /// The new plant file.
    #[arg(value_name = "B")]
    new: PathBuf,
}

pub(crate) fn run(args: &PlantArgs, globals: &Globals) -> Outcome {
    match &args.verb {
        PlantVerb::New(args) => new(args),
        PlantVerb::Check(args) => check(&args.file, globals),
        PlantVerb::Show(args) => show(args, globals),
        PlantVerb::Diff(args) => diff(args, globals),
        PlantVerb::Get => running::get(globals),
        PlantVerb::Apply(args) => running::apply(args, globals),
    }
}

fn new(args: &New) -> Outcome {
    let text = draft(args)?.render();
    let Some(path) = &args.output else {
        render::print(&text)?;
        return Ok(Answer::Yes);
    };
    let file = fs::File::options().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| {
        Failure::from(error)
            .within(format!("cannot write {}", path.display()))
            .hint("choose a file that is not there yet, in a directory that is")
    })?;
    file.write_all(text.as_bytes()).within(|| format!("cannot write {}", path.display()))?;
    Ok(Answer::Yes)
}

/// The plant that `plant new` was asked for.
fn draft(args: &New) -> Outcome<Plant> {
    let kind = args.kind.to_possible_value().expect("every kind has a name");
    let kind = kind.get_name().to_owned();
    for (flag, is_given, owner) in [
        ("--cubes", args.cubes.is_some(), Kind::Tpuv4),
        ("--deployed", args.deployed.is_some(), Kind::Tpuv4),
        ("--groups", args.groups.is_some(), Kind::HyperSquare),
        ("--hosts", args.hosts.is_some(), Kind::Hosts),
    ] {
        if is_given && args.kind != owner {
            return Err(Failure::new(format!("{flag} says nothing of {kind}")).hint("leave it out"));
        }
    }
    let grid = |chip: GridChip, sides, wraps| Family::Grid { chip, sides, wraps };
    let family = match args.kind {
        Kind::Tpuv4 => slots(args.cubes.unwrap_or(CUBES_MAX), args.deployed.as_deref())?,
        Kind::Tpuv3 => grid(GridChip::Tpuv3, GridChip::Tpuv3.sides(), [true; 2]),
        Kind::Tpuv2 => grid(GridChip::Tpuv2, GridChip::Tpuv2.sides(), [true; 2]),
        // Seed 000 §2.1: four pods joined to a 128x32 mesh.
        Kind::Tpuv3Multipod => grid(GridChip::Tpuv3, [128, 32], [false; 2]),
        Kind::HyperSquare => groups(args.groups.as_deref())?,
        Kind::Hosts => Family::Hosts { hosts: args.hosts.unwrap_or(2) },
    };
    let families = (0..args.pods).map(|_| family.clone());
    let mut plant = Plant::of_pods(args.name.clone().unwrap_or(kind), families);
    if args.kind == Kind::Hosts && args.hosts.is_none() {
        plant.cables = (0..args.pods).flat_map(|pod| rails(2 * u32::from(pod))).collect();
    }
    // What is written must read back: a name with a line's end in it would not.
    let text = plant.render();
    match Plant::parse("the new plant", &text) {
        Ok(plant) => Ok(plant),
        Err(errors) => Err(faults("the new plant", &errors)),
    }
}

fn slots(cubes: u16, deployed: Option<&str>) -> Outcome<Family> {
    let Some(deployed) = deployed else { return Ok(Family::tpuv4(cubes)) };
    Family::tpuv4_with(cubes, deployed).map_err(|wrong| Failure::new(&wrong).hint(wrong.right()))
}

fn groups(groups: Option<&str>) -> Outcome<Family> {
    let Some(groups) = groups else {
        return Err(Failure::new("hypersquare does not say how large it is")
            .hint("rows and columns of groups, such as --groups 16x16"));
    };
    let read = hypersquare::groups_of(groups);
    let groups = read.map_err(|wrong| Failure::new(&wrong).hint(wrong.right()))?;
    Ok(Family::HyperSquare(HyperSquare::of_groups(groups)))
}

/// Port k of a host to port k of the next.
fn rails(first: u32) -> impl Iterator<Item = CableSpec> {
    let port = move |host: u32, nic: usize| Named {
        name: format!("host{host}/nic{nic}/port"),
        at: At::NOWHERE,
    };
    (0..selvedge_family::host::hardware::SEATS).map(move |nic| CableSpec {
        a: port(first, nic),
        b: port(first + 1, nic),
        attrs: LinkAttrs {
            capacity: BitRate::gbps(400),
            latency: Span::nanos(500),
            kind: LinkKind::Ethernet,
        },
        loss: CentiDb::new(100),
        length: None,
    })
}

/// The form of `plant check --json`.
#[derive(Debug, Serialize)]
struct Checked {
    good: bool,
    errors: Vec<Fault>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<show::Counts>,
}

#[derive(Debug, Serialize)]
struct Fault {
    line: u32,
    column: u32,
    wrong: String,
    right: String,
    shown: String,
}

fn check(path: &Path, globals: &Globals) -> Outcome {
    let text = read(path)?;
    let name = path.display().to_string();
    let checked = checked(&name, &text);
    if globals.json {
        render::print_json(&checked)?;
    } else {
        render::print(&check_page(&name, &checked))?;
    }
    Ok(if checked.good { Answer::Yes } else { Answer::No })
}

fn checked(name: &str, text: &str) -> Checked {
    let bad = |errors| Checked { good: false, errors, warnings: Vec::new(), counts: None };
    let plant = match Plant::parse(name, text) {
        Ok(plant) => plant,
        Err(errors) => {
            let fault = |it: &PlantError| Fault {
                line: it.line,
                column: it.column,
                wrong: it.wrong.to_string(),
                right: it.wrong.right(),
                shown: it.to_string(),
            };
            return bad(errors.iter().map(fault).collect());
        }
    };
    let fabric = match selvedge_family::build(&plant) {
        Ok(fabric) => fabric,
        Err(error) => {
            let (line, column) = error.at().line_column(text);
            let (wrong, right) = (error.to_string(), error.right());
            return bad(vec![Fault { line, column, wrong, right, shown: error.show(name, text) }]);
        }
    };
    let warnings = warnings(&plant, &fabric).iter().map(ToString::to_string).collect();
    let counts = Some(show::Counts::of(&fabric));
    Checked { good: true, errors: Vec::new(), warnings, counts }
}

fn check_page(name: &str, checked: &Checked) -> String {
    let (good, bad, wait) = (style::GOOD, style::BAD, style::WAIT);
    let mut page = String::new();
    for error in &checked.errors {
        page.push_str(&format!("{bad}error:{bad:#} {}\n", error.shown));
    }
    if let Some(counts) = &checked.counts {
        page.push_str(&format!("{name}: {good}good{good:#}, {}\n", counts.line()));
    }
    for warning in &checked.warnings {
        page.push_str(&format!("{wait}warning:{wait:#} {warning}\n"));
    }
    page
}

fn show(args: &Show, globals: &Globals) -> Outcome {
    let (plant, fabric) = load(&args.file)?;
    let mut shown = show::Shown::of(&plant, &fabric);
    if !args.compare.is_empty() || args.svg.is_some() || args.pod.is_some() {
        let pod = args.pod.map_or_else(|| ring::only_machine(&plant), Ok)?;
        let machine = ring::machine(&plant, &fabric, pod)?;
        let known = selvedge_family::bisection(&plant, &fabric, pod);
        let rows = compare::rows(&machine, known, &args.compare);
        if let Some(path) = &args.svg {
            let written = fs::write(path, compare::svg(&rows, &machine.spec));
            written.within(|| format!("cannot write {}", path.display()))?;
        }
        shown.compare = rows;
        if !globals.json {
            render::print(&compare::page(&shown.compare, &machine.spec))?;
            return Ok(Answer::Yes);
        }
    }
    if globals.json {
        render::print_json(&shown)?;
    } else {
        render::print(&shown.page())?;
    }
    Ok(Answer::Yes)
}

fn diff(args: &Diff, globals: &Globals) -> Outcome {
    let ((old, _), (new, _)) = (load(&args.old)?, load(&args.new)?);
    let changes = selvedge_model::spec::diff(&old, &new);
    if globals.json {
        render::print_json(&serde_json::json!({ "changes": changes }))?;
    } else {
        render::print(&diff_page(&changes))?;
    }
    Ok(if changes.is_empty() { Answer::Yes } else { Answer::No })
}

fn diff_page(changes: &[Change]) -> String {
    let mut page = String::new();
    for change in changes {
        let colour = match (&change.from, &change.to) {
            (None, _) => style::GOOD,
            (_, None) => style::BAD,
            (Some(_), Some(_)) => style::WAIT,
        };
        page.push_str(&format!("{colour}{change}{colour:#}\n"));
    }
    page
}

/// The plant in a file, and its fabric.
pub(crate) fn load(path: &Path) -> Outcome<(Plant, Fabric)> {
    let (_, plant, fabric) = read_all(path)?;
    Ok((plant, fabric))
}

/// A plant file's text, which a plant can be built of.
pub(crate) fn sound_text(path: &Path) -> Outcome<String> {
    Ok(read_all(path)?.0)
}

fn read_all(path: &Path) -> Outcome<(String, Plant, Fabric)> {
    let text = read(path)?;
    let name = path.display().to_string();
    let plant = Plant::parse(&name, &text).map_err(|errors| faults(&name, &errors))?;
    let fabric = selvedge_family::build(&plant).map_err(|error| {
        Failure::new(error.show(&name, &text)).within(format!("{name} is no plant"))
    })?;
    Ok((text, plant, fabric))
}

/// A plant file with the topology files that it names in it.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    let text = read_text(path)?;
    let mut files = Vec::new();
    for named in Plant::topologies_missing(&text) {
        let beside = path.parent().unwrap_or(Path::new("")).join(&named.name);
        let xml = fs::read_to_string(&beside).map_err(|error| {
            let wrong = format!("cannot read {}: {error}", beside.display());
            let right = "the path of a topology file, from the plant file on";
            let name = path.display().to_string();
            Failure::new(point(&name, &text, named.at, &wrong, right))
                .within(format!("{name} is no plant"))
        })?;
        files.push((named.name, xml));
    }
    Ok(Plant::with_topologies(&text, &files))
}

fn read_text(path: &Path) -> Outcome<String> {
    let bytes = fs::read(path).within(|| format!("cannot read {}", path.display()))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("{} is no text: byte {at} is not UTF-8", path.display()))
            .hint("a plant file is TOML")
    })
}

fn faults(name: &str, errors: &[PlantError]) -> Failure {
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failure::new(shown.join("\n")).within(format!("{name} is no plant"))
}

#[cfg(test)]
mod tests;
