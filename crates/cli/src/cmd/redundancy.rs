//! `selvedge redundancy`: where the replicas of an MPI program go.

pub(crate) mod names;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use selvedge_family::cluster::hosts::{Host, Hosts};
use selvedge_family::cluster::load::{Load, load, three_blocks};
use selvedge_family::cluster::{Apart, Clusters, place};
use selvedge_model::fabric::{DomainKind, Fabric};
use selvedge_model::fault::Target;
use selvedge_sim::dice::Dice;
use selvedge_stmr::launch::Layout;
use serde::Serialize;

use crate::Globals;
use crate::client::Client;
use crate::cmd::mpirun::slice::Slice;
use crate::cmd::plant;
use crate::failure::{Answer, Failure, Outcome};
use crate::render::facts::Facts;
use crate::render::table::Table;
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Redundancy {
    #[command(subcommand)]
    verb: RedundancyVerb,
}

#[derive(Debug, clap::Subcommand)]
enum RedundancyVerb {
    /// Give the three replicas of each process hosts that are close together, and write them as
    /// launchers read it.
    Place(Place),
    /// Tell a server that a replica was outvoted: evidence against its machine.
    Mark(Mark),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
selvedge redundancy place --plant pod.toml --ranks 64                     what it comes to
selvedge redundancy place --plant pod.toml --ranks 64 --format rankfile   for mpirun --rankfile
selvedge redundancy place --plant pod.toml --apart rack                   no rack holds two replicas
selvedge redundancy place --slice $SELVEDGE_SLICE_FILE --format rankfile  on a job's own clusters")]
struct Place {
    /// The plant file.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["same_host", "slice"])]
    plant: Option<PathBuf>,
    /// On the clusters of a job's slice, whose file its tasks find in SELVEDGE_SLICE_FILE.
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["plant", "apart", "without", "dead", "names", "same_host"])]
    slice: Option<PathBuf>,
    /// Processes, as the program sees them [default: as many as fit].
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    ranks: Option<u32>,
    /// Processes that each host takes [default: 1; with --same-host, as many as are wanted]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    slots: Option<u32>,
    /// What two replicas of a process must not share.
    #[arg(long, value_enum, default_value_t = Level::Host)]
    apart: Level,
    /// Leave a part, or a machine of it, out: it is dead or drained.
    #[arg(long, value_name = "PATH")]
    without: Vec<String>,
    /// Leave out so many per cent of the hosts, drawn by --seed.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    dead: f64,
    /// For the dice of --dead.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Names of hosts as launchers know them: lines of a path in the plant and a name.
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// All replicas on this one machine, without a plant: on --slots, or sharing as many cores as
    /// the machine has on which this is asked.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "localhost")]
    #[arg(conflicts_with_all = ["plant", "apart", "without", "dead", "names"], requires = "ranks")]
    same_host: Option<String>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, clap::Args)]
struct Mark {
    /// The machine that it ran on: host7, board0.3, cube17/m03.
    machine: String,
    /// Which process of the program.
    #[arg(long, value_name = "N")]
    rank: u32,
    /// Which of its replicas, from 0 on.
    #[arg(long, value_name = "N")]
    set: u8,
    /// The number of the call whose contents differed.
    #[arg(long, value_name = "N")]
    call: u64,
    /// The first byte that differs; none where only digests were compared.
    #[arg(long, value_name = "N")]
    byte: Option<u64>,
    /// The server's job that it belongs to.
    #[arg(long, value_name = "ID")]
    job: Option<u32>,
}

/// What a server answers to a mark.
#[derive(Debug, serde::Deserialize)]
struct Marked {
    cases: Vec<MarkedCase>,
}

#[derive(Debug, serde::Deserialize)]
struct MarkedCase {
    id: u32,
    target: String,
    severity: String,
    n_seen: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// A host; within two hops.
    Host,
    /// A packet switch.
    #[value(alias = "tor")]
    Switch,
    /// A rack.
    Rack,
    /// A power feed.
    Power,
    /// A cooling loop.
    Cooling,
    /// A network plane.
    Plane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// What it comes to, for people.
    Table,
    /// Open MPI: mpirun --rankfile FILE.
    Rankfile,
    /// MPICH: mpiexec -f FILE.
    Hostlist,
    /// Slurm: SLURM_HOSTFILE=FILE srun --distribution=arbitrary.
    Slurm,
}

impl Place {
    fn slots(&self) -> u32 {
        self.slots.unwrap_or(1)
    }
}

impl Level {
    fn apart(self) -> Apart {
        match self {
            Level::Host => Apart::Host,
            Level::Switch => Apart::Switch,
            Level::Rack => Apart::Domain(DomainKind::Rack),
            Level::Power => Apart::Domain(DomainKind::Power),
            Level::Cooling => Apart::Domain(DomainKind::Cooling),
            Level::Plane => Apart::Domain(DomainKind::Plane),
        }
    }
}

pub(crate) fn run(args: &Redundancy, globals: &Globals) -> Outcome {
    match &args.verb {
        RedundancyVerb::Place(args) => run_place(args, globals),
        RedundancyVerb::Mark(args) => run_mark(args, globals),
    }
}

fn run_mark(args: &Mark, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let Mark { machine, rank, set, call, byte, job } = args;
    let body = serde_json::json!({
        "machine": machine, "rank": rank, "set": set, "call": call, "byte": byte, "job": job,
    });
    let text = client.post_text("/v1/mark", &body)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let marked: Marked = client.read("/v1/mark", &text)?;
    for MarkedCase { id, target, severity, n_seen } in &marked.cases {
        let seen = number::counted(u64::from(*n_seen), "time");
        render::print(&format!("case {id}: {target}, {severity}, seen {seen}\n"))?;
    }
    Ok(Answer::Yes)
}

fn run_place(args: &Place, globals: &Globals) -> Outcome {
    if let Some(host) = &args.same_host {
        return run_same_host(args, host, globals);
    }
    if let Some(path) = &args.slice {
        return run_slice(args, path, globals);
    }
    let path = args.plant.as_deref().expect("clap asks for it without --same-host and --slice");
    let (plant, fabric) = plant::load(path)?;
    let hosts = live(args, &fabric)?;
    let n_max = args.ranks.map_or(usize::MAX, |it| it.div_ceil(args.slots()) as usize);
    let cannot = || format!("cannot place replicas on {}", path.display());
    let clusters = place(&hosts, args.apart.apart(), n_max).map_err(|it| {
        Failure::refusal(it)
            .hint("selvedge plant show FILE says what the plant has")
            .within(cannot())
    })?;
    if clusters.triples.is_empty() {
        let what = args.apart.apart().word();
        let is_bare = (0..hosts.n()).all(|it| hosts.graph.neighbours(it).is_empty());
        let why = match args.apart {
            _ if is_bare => "no cables join the hosts, so that none is near another".to_owned(),
            Level::Host => "no three live hosts lie within two hops of each other".to_owned(),
            _ => format!("the live hosts that hang together belong to fewer than three: {what}"),
        };
        return Err(Failure::refusal(why)
            .hint(match args.apart {
                _ if is_bare => "write the cables to the switches in the plant file",
                Level::Host => {
                    "the plant's cables say which hosts are near; --apart rack and its \
                                kin take hosts that are farther apart"
                }
                _ => "choose another --apart, or a plant with more hosts",
            })
            .within(cannot()));
    }
    let names = names::of(args.names.as_deref(), &fabric, &hosts)?;
    let named = |it: &[usize; 3]| it.iter().map(|it| names[*it].clone()).collect();
    let lists: Vec<Vec<String>> = clusters.triples.iter().map(|it| named(&it.hosts)).collect();
    let slots = args.slots() as usize;
    let n_ranks = args.ranks.map_or(lists.len() * slots, |it| it as usize);
    let layout = Layout::over(lists, n_ranks, slots).map_err(|it| {
        Failure::refusal(it)
            .hint("ask for fewer --ranks, or give each host more --slots")
            .within(cannot())
    })?;
    if args.format == Format::Rankfile {
        let used: Vec<String> = layout.world().map(|it| it.host.to_owned()).collect();
        names::for_open_mpi(&used).map_err(|it| it.within(cannot()))?;
    }
    if args.format != Format::Table && !globals.json {
        render::print(&file(&layout, args.format))?;
        return Ok(Answer::Yes);
    }
    let found = Found::of(&plant.name, args, &hosts, &clusters, &layout);
    if globals.json {
        render::print_json(&found)?;
    } else {
        render::print(&page(&found, args, &clusters))?;
    }
    Ok(Answer::Yes)
}

fn run_slice(args: &Place, path: &Path, globals: &Globals) -> Outcome {
    let cannot = || format!("cannot place replicas on the slice {}", path.display());
    let slice = Slice::read(path)?.ok_or_else(|| {
        Failure::refusal("it has no clusters")
            .hint("a job with --redundancy 3 has them")
            .within(cannot())
    })?;
    let lists: Vec<Vec<String>> = slice.hosts().iter().map(|it| it.to_vec()).collect();
    let (n, slots) = (lists.len(), args.slots() as usize);
    let n_ranks = args.ranks.map_or(n * slots, |it| it as usize);
    let layout = Layout::over(lists, n_ranks, slots).map_err(|it| {
        Failure::refusal(it)
            .hint("ask for fewer --ranks, or give each host more --slots")
            .within(cannot())
    })?;
    let clusters = number::counted(n as u64, "cluster");
    print_layout(&layout, args, globals, &format!("the slice's {clusters}"))
}

fn run_same_host(args: &Place, host: &str, globals: &Globals) -> Outcome {
    let ranks = args.ranks.expect("clap asks for it with --same-host") as usize;
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(Failure::new(format!("--same-host {host:?} is no name of a host"))
            .hint("leave the name out for localhost"));
    }
    let slots = args.slots.map(|it| it as usize);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let layout = Layout::on_one(host, ranks, 3, slots, cores)
        .map_err(|it| Failure::refusal(it).hint("--slots is what the machine takes in all"))?;
    let on = format!("{host}: a fault of the machine ends them all");
    print_layout(&layout, args, globals, &on)
}

/// Prints a layout that comes of no plant; for people, on what it is.
fn print_layout(layout: &Layout, args: &Place, globals: &Globals, on: &str) -> Outcome {
    let n = layout.n_ranks();
    if globals.json {
        render::print_json(&serde_json::json!({ "ranks": n, "placement": rows(layout) }))?;
    } else if args.format == Format::Table {
        let ranks = number::counted(n as u64, "rank");
        render::print(&format!("{ranks} in 3 replicas on {on}\n"))?;
    } else {
        render::print(&file(layout, args.format))?;
    }
    Ok(Answer::Yes)
}

fn file(layout: &Layout, format: Format) -> String {
    match format {
        Format::Rankfile => layout.rankfile(),
        Format::Hostlist => layout.host_list(),
        Format::Slurm | Format::Table => layout.slurm(),
    }
}

/// The hosts without those that are left out.
fn live(args: &Place, fabric: &Fabric) -> Outcome<Hosts> {
    if !(0.0..=100.0).contains(&args.dead) {
        return Err(
            Failure::new(format!("--dead is {}", args.dead)).hint("write per cent, 0 to 100")
        );
    }
    let mut out: BTreeSet<Host> = BTreeSet::new();
    let all = Hosts::of(fabric, |_| true);
    for path in &args.without {
        let target = fabric.find(path);
        let is_meant = |it: &&Host| match target {
            Some(Target::Part(part)) => it.part == part,
            Some(Target::Node(node)) => it.machine == Some(node),
            Some(Target::Port(_) | Target::Link(_)) | None => false,
        };
        let before = out.len();
        out.extend(all.hosts.iter().filter(is_meant));
        if before == out.len() && !out.iter().any(|it| is_meant(&it)) {
            return Err(Failure::new(format!("--without {path}: the plant has no such host"))
                .hint("name a part or a machine, such as board0.3 or cube7/m03"));
        }
    }
    let n_dead = (all.n() as f64 * args.dead / 100.0).round() as usize;
    let mut dice = Dice::new(args.seed, "redundancy/dead");
    let mut drawn = all.hosts.clone();
    for _ in 0..n_dead.min(drawn.len()) {
        out.insert(drawn.swap_remove(dice.index(drawn.len())));
    }
    Ok(Hosts::of(fabric, |it| !out.contains(&it)))
}

/// The fixed form of the answer.
#[derive(Debug, Serialize)]
struct Found {
    plant: String,
    seed: u64,
    hosts: usize,
    apart: &'static str,
    clusters: usize,
    clusters_bound: usize,
    slots: u32,
    ranks: usize,
    compares: Compares,
    compares_bound_hops: u64,
    /// The same if each third of the hosts ran a copy of the job.
    three_blocks: Compares,
    placement: Vec<Row>,
}

/// What one exchange between each two replicas of every cluster takes.
#[derive(Debug, Serialize)]
struct Compares {
    hops: u64,
    hops_max: u32,
    busiest_link: u32,
    busiest: Option<[String; 2]>,
    links_used: usize,
    /// Pairs of replicas that no links join.
    cut: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    rank: usize,
    meta: String,
    shadows: Vec<String>,
    slot: usize,
}

fn rows(layout: &Layout) -> Vec<Row> {
    let row = |rank| {
        let seat = layout.seat(rank, 0);
        let shadows = (1..layout.n_replicas()).map(|it| layout.seat(rank, it).host.to_owned());
        Row { rank, meta: seat.host.to_owned(), shadows: shadows.collect(), slot: seat.slot }
    };
    (0..layout.n_ranks()).map(row).collect()
}

impl Found {
    fn of(plant: &str, args: &Place, hosts: &Hosts, clusters: &Clusters, layout: &Layout) -> Self {
        let compares = |it: &Load| Compares {
            hops: it.hops_sum,
            hops_max: it.hops_max,
            busiest_link: it.most,
            busiest: it.busiest.map(|it| it.map(|it| hosts.names[it as usize].clone())),
            links_used: it.n_used,
            cut: it.n_cut,
        };
        let blocks = three_blocks(hosts, clusters.triples.len());
        Self {
            plant: plant.to_owned(),
            seed: args.seed,
            hosts: hosts.n(),
            apart: args.apart.apart().word(),
            clusters: clusters.triples.len(),
            clusters_bound: clusters.bound,
            slots: args.slots(),
            ranks: layout.n_ranks(),
            compares: compares(&load(hosts, &clusters.triples)),
            compares_bound_hops: clusters.hops_bound,
            three_blocks: compares(&load(hosts, &blocks)),
            placement: rows(layout),
        }
    }
}

/// Clusters that are shown to a person.
const SHOWN: usize = 12;

fn page(found: &Found, args: &Place, clusters: &Clusters) -> String {
    let n = |it: usize| number::grouped(it as u64);
    let mut facts = Facts::new(format!(
        "{}: {} in 3 replicas on {}",
        found.plant,
        number::counted(found.ranks as u64, "rank"),
        number::counted(found.clusters as u64, "cluster")
    ));
    let most = match args.ranks {
        Some(_) => format!("{}; there can be {}", n(found.clusters), n(found.clusters_bound)),
        None => format!("{} of at most {}", n(found.clusters), n(found.clusters_bound)),
    };
    facts.add(
        "hosts",
        format!("{} live, {} without a cluster", n(found.hosts), n(clusters.left.len())),
    );
    facts.add("clusters", most);
    facts.add("no two in one", found.apart);
    let over = found.compares.hops as f64 / found.compares_bound_hops.max(1) as f64;
    facts.add(
        "hops",
        format!(
            "{} in all for one exchange between each two replicas, {over:.3} of the bound; {} at most",
            number::grouped(found.compares.hops),
            found.compares.hops_max
        ),
    );
    facts.add("busiest link", carried(&found.compares));
    facts.add(
        "three blocks",
        format!(
            "{} hops, {} at most; busiest link {}",
            number::grouped(found.three_blocks.hops),
            found.three_blocks.hops_max,
            carried(&found.three_blocks)
        ),
    );
    let mut table = Table::new(&["rank", "meta", "shadow", "shadow", ">hops"]);
    // Ranks go to clusters in turn.
    let triples = clusters.triples.iter().cycle();
    for (row, triple) in found.placement.iter().zip(triples).take(SHOWN) {
        let hops = triple.hops.map(|it| it.to_string()).join("+");
        table.row([
            row.rank.into(),
            row.meta.as_str().into(),
            row.shadows[0].as_str().into(),
            row.shadows[1].as_str().into(),
            hops.into(),
        ]);
    }
    let more = found.ranks.saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!("and {} more\n", n(more)) };
    format!("{facts}\n{table}{more}")
}

fn carried(compares: &Compares) -> String {
    let busiest = match &compares.busiest {
        Some([a, b]) => format!("{} pairs of replicas, between {a} and {b}", compares.busiest_link),
        None => "none".to_owned(),
    };
    match compares.cut {
        0 => busiest,
        n => format!("{busiest}; no links join {}", number::counted(n as u64, "pair")),
    }
}
