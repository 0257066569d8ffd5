//! `selvedge topo`: NCCL's view of one server, without the server and without NCCL.

mod explain;

mod graph;

mod what_if;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use selvedge_family::host::change::{NoAnswer, Question, parse_pair as parse_pair_of_gpus};
use selvedge_family::host::nccl::dump::{dump, refusal};
use selvedge_family::host::nccl::graph::{NodeIdx, NodeKind};
use selvedge_family::host::nccl::path::PathKind;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::view::{Ask, RefusedView, View};
use selvedge_family::host::nccl::xml::{self, Document, Element, Strictness};

use crate::Globals;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Topo {
    #[command(subcommand)]
    verb: Option<TopoVerb>,
    #[command(flatten)]
    show: Show,
}

#[derive(Debug, Subcommand)]
enum TopoVerb {
    /// How far apart GPUs and network ports are, as a matrix.
    Show(Show),
    /// Why two GPUs or a GPU and a port talk as they do, and what would change it.
    Explain(explain::Explain),
    /// What changes to a server or to variables would change.
    WhatIf(what_if::WhatIf),
    /// What one version decides otherwise than another.
    UpgradeDiff(what_if::UpgradeDiff),
    /// Rings, trees and heads as the file that NCCL_GRAPH_FILE takes.
    Graph(graph::Graph),
    /// A rack of servers whose GPUs are one NVLink domain, as a topology file.
    Rack(graph::Rack),
    /// Everything that NCCL decides, as one JSON object.
    Dump(Dump),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 shown, 1 NCCL would refuse the file, 2 it cannot be read.")]
struct Show {
    /// A topology file, as NCCL_TOPO_FILE takes and NCCL_TOPO_DUMP_FILE writes it.
    // Required, and none only where another verb is asked for.
    #[arg(value_name = "XML", required = true)]
    file: Option<PathBuf>,
    /// The version of NCCL: 2.7.8, 2.27.7 or 2.30.7.
    #[arg(long, value_name = "VERSION", default_value = "2.30.7")]
    nccl: Profile,
    /// Equal servers in the job; with one, versions before 2.28 leave the ports out.
    #[arg(long, value_name = "K", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    #[command(flatten)]
    conditions: Conditions,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "The file is read as that NCCL reads it: no XML declaration, no tabs, one \
                        line per tag.\n\
                        Printed: nodes, paths, P2P and GPUDirect RDMA decisions, PXN, ports per \
                        GPU and channel, rings, trees and NVLS or chains.  Without a key: timings \
                        and log lines.\n\
                        Exit status: 0 done, 1 NCCL would refuse (the object then has `error` \
                        and `why`), 2 the file cannot be read or the request has no meaning.")]
struct Dump {
    /// A topology file, as NCCL_TOPO_FILE takes and NCCL_TOPO_DUMP_FILE writes it.
    #[arg(value_name = "XML")]
    file: PathBuf,
    /// The version of NCCL: 2.7.8, 2.27.7 or 2.30.7.
    #[arg(long, value_name = "VERSION")]
    nccl: Profile,
    /// Equal servers in the job.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    #[command(flatten)]
    conditions: Conditions,
}

#[derive(Debug, clap::Args)]
struct Conditions {
    /// The rank that looks.
    #[arg(long, value_name = "R", default_value_t = 0)]
    rank: i32,
    /// An environment variable of NCCL's graph code; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// A pair of GPUs, by NVML's number, whose P2P the driver reports broken.
    #[arg(long, value_name = "I-J", value_parser = parse_broken)]
    p2p_broken: Vec<(i32, i32)>,
    /// Ranks (0,1), (2,3)… are in containers with a /dev/shm of their own.
    #[arg(long)]
    shm_pairs: bool,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("write it as NAME=VALUE, such as NCCL_P2P_LEVEL=PHB")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn parse_broken(text: &str) -> Result<(i32, i32), String> {
    parse_pair_of_gpus(text).ok_or_else(|| "write it as I-J, such as 0-1".to_owned())
}

pub(crate) fn run(args: &Topo, globals: &Globals) -> Outcome {
    match &args.verb {
        Some(TopoVerb::Dump(args)) => print_dump(args),
        Some(TopoVerb::Show(args)) => print_matrix(args, globals),
        Some(TopoVerb::Explain(args)) => explain::run(args, globals),
        Some(TopoVerb::WhatIf(args)) => what_if::run(args, globals),
        Some(TopoVerb::Graph(args)) => graph::run(args, globals),
        Some(TopoVerb::Rack(args)) => graph::run_rack(args),
        Some(TopoVerb::UpgradeDiff(args)) => what_if::run_upgrade(args, globals),
        None => print_matrix(&args.show, globals),
    }
}

fn print_dump(args: &Dump) -> Outcome {
    let text = read(&args.file)?;
    let ask = args.conditions.ask(args.nccl, args.nodes)?;
    let name = name(&args.file);
    let strictness = Strictness::AsNccl { single_quotes: !args.nccl.is_seed() };
    let dumped = xml::read(&text, strictness)
        .map_err(RefusedView::from)
        .and_then(|document| View::of(&document.root, ask))
        .and_then(|view| dump(&view, &name));
    match dumped {
        Ok(text) => {
            render::print(&text)?;
            Ok(Answer::Yes)
        }
        Err(refused) => {
            render::print(&refusal(args.nccl, &name, &refused))?;
            Ok(Answer::No)
        }
    }
}

fn print_matrix(args: &Show, globals: &Globals) -> Outcome {
    let file = args.file.as_deref().ok_or_else(|| {
        Failure::new("no topology file was named").hint("selvedge topo show FILE.xml")
    })?;
    let text = read(file)?;
    let ask = args.conditions.ask(args.nccl, args.nodes)?;
    let name = name(file);
    let root = root_of(&text, &name, args.nccl)?;
    let view = View::of(&root, ask).map_err(|refused| {
        Failure::refusal(refused).within(format!("NCCL {} does not take {name}", args.nccl))
    })?;
    for name in &view.ask.settings.unread {
        anstream::eprintln!("note: NCCL {} does not read {name}", args.nccl);
    }
    if globals.json {
        render::print(&dump(&view, &name).within(|| "the decisions cannot be shown")?)?;
    } else {
        render::print(&matrix(&view)?)?;
    }
    Ok(Answer::Yes)
}

impl Conditions {
    fn ask(&self, profile: Profile, nodes: u32) -> Outcome<Ask> {
        let root = Element::new("system");
        self.question(root, profile, nodes).ask().within(|| "this --env has no meaning")
    }

    fn question(&self, root: Element, profile: Profile, nodes: u32) -> Question {
        let (rank, env, shm_pairs) = (self.rank, self.env.clone(), self.shm_pairs);
        let broken = self.p2p_broken.iter().copied().collect();
        Question { root, profile, nodes, rank, env, broken, shm_pairs }
    }
}

/// A server and conditions from the command line.
#[derive(Debug, clap::Args)]
struct Server {
    /// A topology file, as NCCL_TOPO_FILE takes and NCCL_TOPO_DUMP_FILE writes it.
    #[arg(value_name = "XML")]
    file: PathBuf,
    #[command(flatten)]
    look: Look,
}

/// Version, servers and conditions.
#[derive(Debug, clap::Args)]
struct Look {
    /// The version of NCCL: 2.7.8, 2.27.7 or 2.30.7.
    #[arg(long, value_name = "VERSION", default_value = "2.30.7")]
    nccl: Profile,
    /// Equal servers in the job; with one, versions before 2.28 leave the ports out.
    #[arg(long, value_name = "K", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..))]
    nodes: u32,
    #[command(flatten)]
    conditions: Conditions,
}

impl Server {
    fn question(&self) -> Outcome<Question> {
        self.look.question(&self.file)
    }
}

impl Look {
    fn question(&self, file: &Path) -> Outcome<Question> {
        let root = root_of(&read(file)?, &name(file), self.nccl)?;
        Ok(self.conditions.question(root, self.nccl, self.nodes))
    }
}

/// The outermost element, read leniently; what NCCL would refuse is told on the way.
fn root_of(text: &str, name: &str, profile: Profile) -> Outcome<Element> {
    let strictness = Strictness::Lenient { single_quotes: !profile.is_seed() };
    let Document { root, tolerated } =
        xml::read(text, strictness).within(|| format!("{name} is no topology file"))?;
    for it in tolerated {
        anstream::eprintln!("note: {name}:{}: NCCL refuses {}", it.place, it.quirk);
    }
    Ok(root)
}

/// A question's failure: NCCL's refusal is the answer no.
fn unanswered(error: NoAnswer, name: &str, profile: Profile) -> Failure {
    match error {
        NoAnswer::Setting(error) => Failure::from(error).within("this variable has no meaning"),
        NoAnswer::Refused(refused) => {
            Failure::refusal(refused).within(format!("NCCL {profile} does not take {name}"))
        }
    }
}

fn read(file: &Path) -> Outcome<String> {
    fs::read_to_string(file).within(|| format!("cannot read {}", file.display()))
}

fn name(file: &Path) -> String {
    file.file_name().map_or_else(|| file.display().to_string(), |it| it.to_string_lossy().into())
}

/// Rows and columns are GPUs and ports; a mark says what is on or off.
fn matrix(view: &View) -> Outcome<String> {
    let ends: Vec<NodeIdx> = view.gpus().iter().chain(view.nets()).copied().collect();
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(ends.iter().map(|it| title(view, *it)));
    rows[0].extend(["CPU".to_owned(), "width".to_owned()]);
    for &from in &ends {
        let mut row = vec![title(view, from)];
        for &to in &ends {
            row.push(cell(view, from, to)?);
        }
        row.extend(last_cells(view, from)?);
        rows.push(row);
    }
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|it| it[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out.push_str(&legend(view));
    Ok(out)
}

fn title(view: &View, node: NodeIdx) -> String {
    match view.graph.node(node).kind {
        NodeKind::Gpu => format!("GPU{}", view.graph.gpu(node).dev),
        _ => format!("NET{}", view.graph.net(node).dev),
    }
}

fn cell(view: &View, from: NodeIdx, to: NodeIdx) -> Outcome<String> {
    if from == to {
        return Ok("X".to_owned());
    }
    let kind = view.path(from, to).kind.name();
    let mark = match (view.graph.node(from).kind, view.graph.node(to).kind) {
        (NodeKind::Gpu, NodeKind::Gpu) => {
            let usable = view.can_p2p(from, to).within(|| "P2P cannot be decided")?;
            if usable { "" } else { "!" }
        }
        (NodeKind::Gpu, _) => gdr_mark(view, from, to),
        (_, NodeKind::Gpu) => gdr_mark(view, to, from),
        _ => "",
    };
    Ok(format!("{kind}{mark}"))
}

fn gdr_mark(view: &View, gpu: NodeIdx, net: NodeIdx) -> &'static str {
    match (view.check_gdr(gpu, net, true), view.check_gdr(gpu, net, false)) {
        (true, true) => "*",
        (true, false) => "s",
        (false, true) => "r",
        (false, false) => "",
    }
}

/// The nearest CPU of a GPU, and the widest way to another end.
fn last_cells(view: &View, node: NodeIdx) -> Outcome<[String; 2]> {
    if view.graph.node(node).kind != NodeKind::Gpu {
        return Ok(["-".to_owned(), view.graph.net(node).width.to_string()]);
    }
    let cpu = view.local_cpu(node).within(|| "a GPU has no CPU")?;
    let widest = view.gpus().iter().filter(|it| **it != node).map(|it| view.path(node, *it));
    let widest = widest.map(|it| it.width).reduce(|a, b| a.max(b));
    let cpu = view.graph.node(cpu).pos.to_string();
    Ok([cpu, widest.map_or("-".to_owned(), |it| it.to_string())])
}

fn legend(view: &View) -> String {
    let mut out = String::from(
        "\n!  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving\n\
         width: of a GPU's widest way to another, of a port\n\n",
    );
    let ends = || view.gpus().iter().chain(view.nets());
    for kind in PathKind::ALL {
        let text = match kind {
            PathKind::Loc | PathKind::Net => continue,
            PathKind::Nvl => "NVLink",
            PathKind::Nvb => "NVLink by way of another GPU",
            PathKind::C2c => "the chip-to-chip link",
            PathKind::Pix => "one PCI switch at most",
            PathKind::Pxb => "several PCI switches, no CPU",
            PathKind::P2c => "chip-to-chip to the CPU, PCI from there",
            PathKind::Pxn => "NVLink to the GPU next to the port (PXN)",
            PathKind::Phb => "through a CPU",
            PathKind::Sys => "between CPUs",
            PathKind::Dis => "not connected",
        };
        if ends().any(|a| ends().any(|b| a != b && view.path(*a, *b).kind == kind)) {
            out.push_str(&format!("{}  {text}\n", kind.name()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{parse_broken, parse_pair};

    #[test]
    fn a_pair_of_gpus_is_two_numbers_in_any_order() {
        assert_eq!(parse_broken("1-0"), Ok((0, 1)));
        for text in ["", "0", "0-0", "a-b", "0-", "-1-0"] {
            parse_broken(text).expect_err(text);
        }
    }

    #[test]
    fn a_variable_is_a_name_and_a_value() {
        assert_eq!(parse_pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        for text in ["", "A", "=b"] {
            parse_pair(text).expect_err(text);
        }
    }
}
