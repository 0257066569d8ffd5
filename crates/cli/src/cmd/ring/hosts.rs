//! `ring --hosts`: the rings of jobs on hosts, through each host and the network between, and what
//! jobs leave each other where they meet.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_collective::share::{Share, max_min};
use selvedge_family::host::change::Question;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::settings::{GRAPH_FILE, TOPO_FILE};
use selvedge_family::host::nccl::xml::Element;
use selvedge_family::host::rings::{Bound, Conditions, Files, Member, Rings, rings};
use selvedge_model::fabric::{Fabric, LinkKind};
use selvedge_model::id::{LinkId, PartId};
use selvedge_model::spec::Plant;
use serde::Serialize;

use crate::Globals;
use crate::client::Client;
use crate::cmd::topo::{note_unread, tolerated_notes};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::table::Table;
use crate::render::{self, number, style};

/// Kinds of links that are shown, the tightest first.
const LINKS_SHOWN: usize = 8;

/// How the jobs' NCCL is set.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Setting {
    /// The version of NCCL, of jobs on hosts: 2.7.8, 2.18.5, 2.21.5, 2.27.7, 2.29.7 or 2.30.7.
    #[arg(long, value_name = "VERSION", default_value = "2.30.7")]
    nccl: Profile,
    /// An environment variable of NCCL's graph code, of jobs on hosts; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::cmd::topo::parse_pair)]
    env: Vec<(String, String)>,
}

/// One job: hosts as the user wrote them, or one that a server has placed.
struct Asked<'p> {
    text: String,
    members: Vec<Member<'p>>,
}

/// The fixed form of the answer.
#[derive(Debug, Serialize)]
struct Answered {
    nccl: String,
    jobs: Vec<JobRings>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
    /// What NCCL would refuse of the hosts' files, or make something else of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// The rings of one job.  Bandwidths are bus bandwidths in GB/s, as nccl-tests has them.
#[derive(Debug, Serialize)]
struct JobRings {
    hosts: String,
    /// The GPU of each rank.
    ranks: Vec<String>,
    channels: Vec<ChannelRing>,
    links: Vec<LinkLoad>,
    /// What NCCL counts on.
    taken_gb: f64,
    /// What the links allow the job alone.
    alone_gb: f64,
    /// What it has beside the others, at max-min fairness.
    beside_gb: f64,
    /// The link that is full then.
    held_by: String,
}

#[derive(Debug, Serialize)]
struct ChannelRing {
    /// All ranks, in the ring's order.
    ranks: Vec<usize>,
    crossings: Vec<CrossingShown>,
}

#[derive(Debug, Serialize)]
struct CrossingShown {
    from: usize,
    to: usize,
    out: String,
    #[serde(rename = "in")]
    into: String,
    switches: u32,
}

#[derive(Debug, Serialize)]
struct LinkLoad {
    link: String,
    kind: &'static str,
    capacity_gb: f64,
    /// Of how many channels it carries a step.
    channels: f64,
    bus_gb: f64,
}

pub(super) fn run(
    (plant, fabric): (&Plant, &Fabric),
    jobs: &[String],
    setting: &Setting,
    globals: &Globals,
) -> Outcome {
    let files = Files::of(plant);
    let asked: Vec<Asked<'_>> =
        jobs.iter().map(|it| asked(fabric, &files, it)).collect::<Outcome<_>>()?;
    hold_apart(fabric, &asked)?;
    follow((fabric, &files), &asked, setting, globals)
}

/// The same of jobs where a running server has placed them.
pub(super) fn run_placed(jobs: &[u64], setting: &Setting, globals: &Globals) -> Outcome {
    #[derive(serde::Deserialize)]
    struct Running {
        plant: String,
    }
    #[derive(serde::Deserialize)]
    struct Job {
        name: String,
        state: String,
        places: Vec<Place>,
    }
    #[derive(serde::Deserialize)]
    struct Place {
        part: String,
        chips: usize,
    }
    let client = Client::connect(globals)?;
    let Running { plant } = client.get("/v1/plant")?;
    let plant = Plant::parse("the server's plant", &plant)
        .map_err(|_| Failure::new("the server's plant is of another version of Selvedge"))?;
    let fabric = selvedge_family::build(&plant)?;
    let files = Files::of(&plant);
    let mut asked = Vec::with_capacity(jobs.len());
    for (idx, id) in jobs.iter().enumerate() {
        if jobs[..idx].contains(id) {
            return Err(Failure::new(format!("job{id} is named twice"))
                .hint("name each job once; it meets itself nowhere"));
        }
        let job: Job = client.get(&format!("/v1/jobs/{id}"))?;
        if job.places.is_empty() {
            let why = format!("job{id} ({}) is {} and has no hosts", job.name, job.state);
            return Err(Failure::refusal(why).hint("--plant FILE --hosts HOSTS asks what if"));
        }
        let placed = |it: &Place| {
            let member = member(&fabric, &files, &it.part, None)
                .within(|| format!("the rings of job{id} ({}) cannot be followed", job.name))?;
            // A job on hosts has whole ones.
            if it.chips != member.seats.len() {
                let (part, chips) = (&it.part, number::counted(it.chips as u64, "GPU"));
                return Err(Failure::new(format!("job{id} has {chips} of {part}, not which"))
                    .hint("--plant FILE --hosts HOST:GPUS asks for some of a host's GPUs"));
            }
            Ok(member)
        };
        let members = job.places.iter().map(placed).collect::<Outcome<_>>()?;
        asked.push(Asked { text: format!("job{id}"), members });
    }
    follow((&fabric, &files), &asked, setting, globals)
}

fn follow(
    (fabric, files): (&Fabric, &Files<'_>),
    asked: &[Asked<'_>],
    setting: &Setting,
    globals: &Globals,
) -> Outcome {
    let unread = unread(setting)?;
    note_unread(setting.nccl, &unread);
    let notes = notes(files, asked, setting.nccl);
    for note in &notes {
        anstream::eprintln!("note: {note}");
    }
    let conditions = Conditions { profile: setting.nccl, env: setting.env.clone() };
    let mut found = Vec::with_capacity(asked.len());
    for job in asked {
        let rings = rings(fabric, &job.members, &conditions).map_err(|why| {
            Failure::refusal(why).within(format!("{} has no rings to follow", job.text))
        })?;
        found.push(rings);
    }
    let shares = shares(fabric, &found);
    if globals.json {
        let jobs = asked.iter().zip(&found).zip(&shares);
        let jobs = jobs.map(|((asked, rings), share)| told(fabric, asked, rings, share)).collect();
        render::print_json(&Answered { nccl: setting.nccl.to_string(), jobs, unread, notes })?;
    } else {
        let mut page = String::new();
        for (asked, rings) in asked.iter().zip(&found) {
            page.push_str(&job_page(fabric, asked, rings, setting.nccl));
        }
        if 1 < found.len() {
            page.push_str(&meeting(fabric, asked, &found, &shares));
        }
        render::print(&page)?;
    }
    Ok(Answer::Yes)
}

/// The variables that are set and that the version does not read.  One that names a file is of one
/// server, and a job has many.
fn unread(setting: &Setting) -> Outcome<Vec<String>> {
    let is_file = |it: &&(String, String)| [GRAPH_FILE, TOPO_FILE].contains(&it.0.as_str());
    if let Some((name, _)) = setting.env.iter().find(is_file) {
        let what = format!("{name} names the file of one server; the plant names each host's");
        let hint = "name it in the plant by `topology = \"FILE.xml\"`, or ask `selvedge topo`";
        return Err(Failure::new(what).hint(hint));
    }
    let mut question = Question::new(Element::new("system"), setting.nccl);
    question.env.clone_from(&setting.env);
    question.unread().within(|| "this --env has no meaning")
}

/// What NCCL would refuse of the jobs' files, once for each file.
fn notes(files: &Files<'_>, asked: &[Asked<'_>], nccl: Profile) -> Vec<String> {
    let names: BTreeSet<&str> =
        asked.iter().flat_map(|it| &it.members).map(|it| it.file.0).collect();
    names.iter().flat_map(|it| tolerated_notes(it, &files.tolerated(it, nccl))).collect()
}

/// `host[0-3],host9:0-3`: hosts of the plant in the order of their ranks, each with the GPUs that
/// the job has of it.
fn asked<'p>(fabric: &Fabric, files: &'p Files<'_>, text: &'p str) -> Outcome<Asked<'p>> {
    let mut members: Vec<Member<'p>> = Vec::new();
    for word in items(text) {
        let (names, seats) = match word.split_once(':') {
            Some((names, seats)) => (names, Some(seats)),
            None => (word, None),
        };
        for name in expanded(names)? {
            let member = member(fabric, files, &name, seats)?;
            if members.iter().any(|it| it.part == member.part) {
                return Err(Failure::new(format!("{text} names {name} twice"))
                    .hint("name each host once; host0:0-3 takes some of its GPUs"));
            }
            members.push(member);
        }
    }
    Ok(Asked { text: text.to_owned(), members })
}

/// A host of that name with these GPUs, all of them unless some are named.
fn member<'p>(
    fabric: &Fabric,
    files: &'p Files<'_>,
    name: &str,
    seats: Option<&str>,
) -> Outcome<Member<'p>> {
    let part = fabric.part_named(name).ok_or_else(|| {
        Failure::new(format!("the plant has no {name}"))
            .hint("write hosts as `selvedge plant show` has them, such as host[0-3],host7:0-3")
    })?;
    let file = files.of_part(fabric, part).ok_or_else(|| {
        if fabric.template_of(part).name != "host" {
            return Failure::new(format!("{name} is no host"))
                .hint("these rings are of hosts with topology files (docs/topo.md)");
        }
        Failure::new(format!("{name} has no topology file, so its rings are not known"))
            .hint("name one by `topology = \"FILE.xml\"`; docs/plant-files.md says where")
    })?;
    let n_seats = fabric.template_of(part).seats().len();
    let seats = match seats {
        None => (0..n_seats).collect(),
        Some(text) => gpus(name, text, n_seats)?,
    };
    Ok(Member { part, seats, file })
}

/// What commas outside of brackets part.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let split = text.split(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    split.collect()
}

/// The names that `host[0-3,7]` stands for, as Slurm writes lists of hosts.
fn expanded(text: &str) -> Outcome<Vec<String>> {
    let Some((before, rest)) = text.split_once('[') else { return Ok(vec![text.to_owned()]) };
    let wrong = || {
        Failure::new(format!("{text:?} names no hosts"))
            .hint("write host3, host[0-3] or host[0-3,7]")
    };
    let (list, after) = rest.split_once(']').ok_or_else(wrong)?;
    if after.contains(['[', ']']) {
        return Err(wrong());
    }
    let numbers = numbers(list).ok_or_else(wrong)?;
    Ok(numbers.iter().map(|it| format!("{before}{it}{after}")).collect())
}

/// `0-3,7`, as a list; none where it is no such list or longer than any plant.
fn numbers(text: &str) -> Option<Vec<usize>> {
    /// As many hosts as a plant may generate.
    const MAX: usize = 100_000;
    let mut numbers = Vec::new();
    for run in text.split(',') {
        let number = |it: &str| {
            let is_plain = !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
            is_plain.then(|| it.parse::<usize>().ok())?
        };
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last) = (number(first)?, number(last)?);
        if last < first || MAX <= last - first || MAX < numbers.len() {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

fn gpus(host: &str, text: &str, n_seats: usize) -> Outcome<Vec<usize>> {
    let list = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    let numbers = numbers(list).filter(|it| it.iter().all(|it| *it < n_seats));
    let mut seats = numbers.ok_or_else(|| {
        Failure::new(format!("{host}:{text} names no GPUs of it; it has 0 to {}", n_seats - 1))
            .hint("write host0:0-3 or host0:[0,2,4]")
    })?;
    seats.sort_unstable();
    seats.dedup();
    Ok(seats)
}

/// Refuses two jobs on one GPU.
fn hold_apart(fabric: &Fabric, asked: &[Asked<'_>]) -> Outcome<()> {
    let mut held: BTreeMap<(PartId, usize), &str> = BTreeMap::new();
    for job in asked {
        for member in &job.members {
            for &seat in &member.seats {
                if let Some(other) = held.insert((member.part, seat), &job.text) {
                    let name = &fabric.part(member.part).name;
                    return Err(Failure::new(format!(
                        "the jobs on {other} and {} both have gpu{seat} of {name}",
                        job.text
                    ))
                    .hint("a GPU serves one job; host0:0-3 takes some of a host's GPUs"));
                }
            }
        }
    }
    Ok(())
}

/// What each job has where links are shared, with the link in place of its number.
fn shares(fabric: &Fabric, found: &[Rings]) -> Vec<(f64, Option<LinkId>)> {
    let mut used: Vec<LinkId> = found.iter().flat_map(|it| it.load.keys().copied()).collect();
    used.sort_unstable();
    used.dedup();
    let capacities: Vec<f64> = used.iter().map(|it| capacity_gb(fabric, *it)).collect();
    let place = |link: &LinkId| used.binary_search(link).expect("it is used");
    let demand = |rings: &Rings| {
        let n = rings.channels.len() as f64;
        rings.load.iter().map(|(link, load)| (place(link), load / n)).collect()
    };
    let demands: Vec<Vec<(usize, f64)>> = found.iter().map(demand).collect();
    let told = |it: Share| (it.rate, it.held_by.map(|it| used[it]));
    max_min(&capacities, &demands).into_iter().map(told).collect()
}

fn capacity_gb(fabric: &Fabric, link: LinkId) -> f64 {
    fabric.link(link).attrs.capacity.bps() as f64 / 8e9
}

fn link_name(fabric: &Fabric, link: LinkId) -> String {
    let link = fabric.link(link);
    format!("{} > {}", fabric.port_path(link.source), fabric.port_path(link.target))
}

const fn word(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Ici => "ici",
        LinkKind::Fibre => "fibre",
        LinkKind::Pcie => "pcie",
        LinkKind::NvLink => "nvlink",
        LinkKind::Ethernet => "ethernet",
        LinkKind::Board => "board",
        LinkKind::Socket => "socket",
    }
}

fn told(
    fabric: &Fabric,
    asked: &Asked<'_>,
    rings: &Rings,
    (rate, held_by): &(f64, Option<LinkId>),
) -> JobRings {
    let bounds = rings.bounds(fabric);
    let link = |it: &Bound| LinkLoad {
        link: link_name(fabric, it.link),
        kind: word(fabric.link(it.link).attrs.kind),
        capacity_gb: capacity_gb(fabric, it.link),
        channels: it.n_channels,
        bus_gb: it.bus_gb,
    };
    let crossing = |it: &selvedge_family::host::rings::Crossing| CrossingShown {
        from: it.from,
        to: it.to,
        out: fabric.port_path(it.out),
        into: fabric.port_path(it.into),
        switches: it.n_switches,
    };
    JobRings {
        hosts: asked.text.clone(),
        ranks: rings.ranks.iter().map(|it| fabric.node_path(*it)).collect(),
        channels: rings
            .channels
            .iter()
            .map(|it| ChannelRing {
                ranks: it.ranks.clone(),
                crossings: it.crossings.iter().map(crossing).collect(),
            })
            .collect(),
        taken_gb: rings.taken_bus_gb(),
        alone_gb: bounds.first().map_or(f64::INFINITY, |it| it.bus_gb),
        beside_gb: *rate,
        held_by: held_by.map(|it| link_name(fabric, it)).unwrap_or_default(),
        links: bounds.iter().map(link).collect(),
    }
}

fn job_page(fabric: &Fabric, asked: &Asked<'_>, rings: &Rings, nccl: Profile) -> String {
    let title = style::TITLE;
    let (n_gpus, n_hosts) = (rings.ranks.len() as u64, asked.members.len() as u64);
    let mut page = format!(
        "{title}{}{title:#}: {} on {}, NCCL {nccl}: {}\n\n",
        asked.text,
        number::counted(n_gpus, "GPU"),
        number::counted(n_hosts, "host"),
        number::counted(rings.channels.len() as u64, "channel"),
    );
    page.push_str(&channels(fabric, rings, asked.members[0].seats.len()));
    page.push('\n');
    let bounds = rings.bounds(fabric);
    page.push_str(&links(fabric, &bounds));
    if let Some(first) = bounds.first() {
        page.push_str(&format!(
            "\nat most {} GB/s of bus bandwidth, by {}; NCCL counts on {}\n\n",
            gb(first.bus_gb),
            link_name(fabric, first.link),
            gb(rings.taken_bus_gb()),
        ));
    }
    page
}

/// What a ring looks like: the first host's GPUs, and each kind of step through the network.
type Look = (Vec<usize>, Vec<(String, String, u32, usize)>);

/// Equal channels on one line.
fn channels(fabric: &Fabric, rings: &Rings, n_first: usize) -> String {
    let own = |it| fabric.port_path(it).split_once('/').map(|it| it.1.to_owned());
    let mut looks: Vec<(Look, Vec<usize>)> = Vec::new();
    for (channel, ring) in rings.channels.iter().enumerate() {
        let first: Vec<usize> = ring.ranks.iter().copied().filter(|it| *it < n_first).collect();
        let mut steps: BTreeMap<(String, String, u32), usize> = BTreeMap::new();
        for it in &ring.crossings {
            let [out, into] = [it.out, it.into].map(|it| own(it).unwrap_or_default());
            *steps.entry((out, into, it.n_switches)).or_default() += 1;
        }
        let steps = steps.into_iter().map(|((out, into, switches), n)| (out, into, switches, n));
        let look = (first, steps.collect());
        match looks.iter_mut().find(|it| it.0 == look) {
            Some((_, known)) => known.push(channel),
            None => looks.push((look, vec![channel])),
        }
    }
    let mut table =
        Table::new(&["CHANNELS", "RANKS OF THE FIRST HOST", ">STEPS", "OUT", "IN", ">SWITCHES"]);
    let listed =
        |it: &[usize], by: &str| it.iter().map(ToString::to_string).collect::<Vec<_>>().join(by);
    for ((first, steps), known) in looks {
        let (mut channels, mut gpus) = (listed(&known, ","), listed(&first, " "));
        if steps.is_empty() {
            table.row([channels.into(), gpus.into(), "".into(), "".into(), "".into(), "".into()]);
            continue;
        }
        for (out, into, switches, n) in steps {
            let (channels, gpus) = (std::mem::take(&mut channels), std::mem::take(&mut gpus));
            let cells = [channels, gpus, n.to_string(), out, into, switches.to_string()];
            table.row(cells.map(Into::into));
        }
    }
    table.to_string()
}

/// Links that are alike on one line, the tightest first.
fn links(fabric: &Fabric, bounds: &[Bound]) -> String {
    let like = |it: &Bound| {
        let attrs = fabric.link(it.link).attrs;
        (word(attrs.kind), attrs.capacity, gb(it.n_channels))
    };
    let mut kinds: Vec<(_, &Bound, u64)> = Vec::new();
    for bound in bounds {
        match kinds.iter_mut().find(|it| it.0 == like(bound)) {
            Some((_, _, n)) => *n += 1,
            None => kinds.push((like(bound), bound, 1)),
        }
    }
    let mut table = Table::new(&[
        "KIND",
        ">GB/S",
        ">LINKS",
        ">CHANNELS ON EACH",
        ">BUS GB/S AT MOST",
        "SUCH AS",
    ]);
    for ((kind, _, channels), bound, n) in kinds.iter().take(LINKS_SHOWN) {
        table.row([
            (*kind).into(),
            gb(capacity_gb(fabric, bound.link)).into(),
            number::grouped(*n).into(),
            channels.clone().into(),
            gb(bound.bus_gb).into(),
            link_name(fabric, bound.link).into(),
        ]);
    }
    let left = kinds.len().saturating_sub(LINKS_SHOWN) as u64;
    let more = if left == 0 {
        String::new()
    } else {
        format!("and {} that carry less\n", number::counted(left, "kind"))
    };
    format!("{table}{more}")
}

/// What the jobs leave each other.
fn meeting(
    fabric: &Fabric,
    asked: &[Asked<'_>],
    found: &[Rings],
    shares: &[(f64, Option<LinkId>)],
) -> String {
    let mut table =
        Table::new(&["JOB", ">ALONE GB/S", ">BESIDE THE OTHERS", "HELD BY", "WHICH IS USED BY"]);
    for ((job, rings), (rate, held_by)) in asked.iter().zip(found).zip(shares) {
        let alone = rings.bounds(fabric).first().map_or(f64::INFINITY, |it| it.bus_gb);
        let link = held_by.map(|it| link_name(fabric, it)).unwrap_or_default();
        let users = asked.iter().zip(found).filter(|(it, rings)| {
            it.text != job.text && held_by.is_some_and(|it| rings.load.contains_key(&it))
        });
        let users: Vec<&str> = users.map(|it| it.0.text.as_str()).collect();
        let users = if users.is_empty() { "itself alone".to_owned() } else { users.join(" ") };
        table.row([
            (&job.text).into(),
            gb(alone).into(),
            gb(*rate).into(),
            link.into(),
            users.into(),
        ]);
    }
    table.to_string()
}

/// Two decimals at most.
fn gb(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{expanded, items, numbers};

    #[test]
    fn lists_of_hosts_are_read_as_slurm_writes_them() {
        assert_eq!(items("a[0-1,3],b:[0,2],c"), ["a[0-1,3]", "b:[0,2]", "c"]);
        assert_eq!(expanded("pod1/h[0-1,3]").unwrap(), ["pod1/h0", "pod1/h1", "pod1/h3"]);
        assert_eq!(expanded("h7").unwrap(), ["h7"]);
        for text in ["h[", "h[]", "h[a]", "h[1-0]", "h[0][1]", "h[+1]", "h[0-99999999]"] {
            assert!(expanded(text).is_err(), "{text}");
        }
        assert_eq!(numbers("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(numbers(""), None);
    }
}
