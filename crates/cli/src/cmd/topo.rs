//! `selvedge topo`: NCCL's view of one server, without the server and without NCCL.

mod explain;

mod graph;

mod lint;

mod make;

mod predict;

mod show;

mod what_if;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use selvedge_family::host::change::{
    Change, NoAnswer, Question, gpu_numbers, parse_pair as parse_pair_of_gpus,
};
use selvedge_family::host::hwloc;
use selvedge_family::host::machine::topology;
use selvedge_family::host::nccl::XML_BYTES;
use selvedge_family::host::nccl::dump::{dump, refusal};
use selvedge_family::host::nccl::graph_xml::malformed;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::search::RefusedSearch;
use selvedge_family::host::nccl::settings::{GRAPH_FILE, TOPO_FILE};
use selvedge_family::host::nccl::view::{RefusedView, View};
use selvedge_family::host::nccl::xml::{self, Document, Element, Strictness, Tolerated, XmlError};
use selvedge_family::host::views::left_out_note;
use serde::Serialize;

use crate::Globals;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Topo {
    #[command(subcommand)]
    verb: Option<TopoVerb>,
    #[command(flatten)]
    show: show::Show,
}

#[derive(Debug, Subcommand)]
enum TopoVerb {
    /// How far apart GPUs and network ports are, as a matrix.
    Show(show::Show),
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
    /// What is wrong or doubtful in a topology file, and the patch that mends it.
    Lint(lint::Lint),
    /// Many servers: those that NCCL decides about alike, and the odd ones.
    Fleet(lint::Fleet),
    /// What NCCL would choose for each size, and how fast it takes itself to be.
    Predict(predict::Predict),
    /// The topology file of this machine, of a recorded one, or from hwloc.
    Read(make::Read),
    /// A VM's topology file from its server's and from what the guest's lspci shows.
    Vm(make::Vm),
    /// Everything that NCCL decides, as one JSON object.
    Dump(Dump),
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
    /// The version of NCCL: 2.7.8, 2.18.5, 2.21.5, 2.27.7, 2.29.7 or 2.30.7.
    #[arg(long, value_name = "VERSION")]
    nccl: Profile,
    /// Equal servers in the job.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    #[command(flatten)]
    conditions: Conditions,
}

#[derive(Debug, clap::Args)]
struct Conditions {
    /// The rank that looks; 0 unless named, of a log the first that says enough.
    #[arg(long, value_name = "R")]
    rank: Option<i32>,
    /// An environment variable of NCCL's graph code; may be given several times.  The file that
    /// NCCL_GRAPH_FILE names is taken in place of a search, that of NCCL_TOPO_FILE in place of XML.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// A pair of GPUs, by NVML's number, whose P2P the driver reports broken.
    #[arg(long, value_name = "I-J", value_parser = parse_broken)]
    p2p_broken: Vec<(i32, i32)>,
    /// Ranks (0,1), (2,3)… are in containers with a /dev/shm of their own.
    #[arg(long)]
    shm_pairs: bool,
}

/// `NAME=VALUE` of an environment variable.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("write it as NAME=VALUE, such as NCCL_P2P_LEVEL=PHB")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn parse_broken(text: &str) -> Result<(i32, i32), String> {
    parse_pair_of_gpus(text).ok_or_else(|| "write it as I-J, such as 0-1".to_owned())
}

pub(crate) fn run(args: &Topo, globals: &Globals) -> Outcome {
    render::told_as_json(answer(args, globals), globals)
}

fn answer(args: &Topo, globals: &Globals) -> Outcome {
    match &args.verb {
        Some(TopoVerb::Dump(args)) => print_dump(args),
        Some(TopoVerb::Show(args)) => show::run(args, globals),
        Some(TopoVerb::Explain(args)) => explain::run(args, globals),
        Some(TopoVerb::Lint(args)) => lint::run(args, globals),
        Some(TopoVerb::Fleet(args)) => lint::run_fleet(args, globals),
        Some(TopoVerb::Predict(args)) => predict::run(args, globals),
        Some(TopoVerb::Read(args)) => make::run_read(args, globals),
        Some(TopoVerb::Vm(args)) => make::run_vm(args, globals),
        Some(TopoVerb::WhatIf(args)) => what_if::run(args, globals),
        Some(TopoVerb::Graph(args)) => graph::run(args, globals),
        Some(TopoVerb::Rack(args)) => graph::run_rack(args, globals),
        Some(TopoVerb::UpgradeDiff(args)) => what_if::run_upgrade(args, globals),
        None => show::run(&args.show, globals),
    }
}

fn print_dump(args: &Dump) -> Outcome {
    let (text, name) = (read(&args.file)?, name(&args.file));
    let as_nccl = Strictness::as_nccl(args.nccl);
    let strictly = |text: &str| xml::read(text, as_nccl).map(|it| it.root);
    // What the variables say is an error of the request, whatever the files are; what the files
    // say that they name is NCCL's to refuse.  NCCL's graph code reads both by one parser, and a
    // file that the parser refuses ends it in every version.
    let mut refused: BTreeMap<String, XmlError> = BTreeMap::new();
    let blank = Question::new(Element::new("system"), args.nccl);
    let question = args.conditions.question_by(blank, args.nodes, |question, variable, file| {
        if !matches!(variable, GRAPH_FILE | TOPO_FILE) {
            return Ok(());
        }
        refused.remove(variable);
        let root = strictly(&read(Path::new(file))?).unwrap_or_else(|error| {
            refused.insert(variable.to_owned(), error);
            Element::new("graphs")
        });
        question.files.insert(file.to_owned(), root);
        Ok(())
    })?;
    let ask = question.ask().within(|| "this --env has no meaning")?;
    tell_unread(&question)?;
    let topology = match refused.remove(TOPO_FILE) {
        Some(error) => Err(error),
        None if args.conditions.names_topology() => Ok(question.root),
        None => strictly(&text),
    };
    let dumped = topology
        .map_err(RefusedView::from)
        .and_then(|root| {
            tell_broken(&root, &args.conditions.p2p_broken);
            View::of(&root, ask)
        })
        .and_then(|view| match refused.remove(GRAPH_FILE) {
            Some(error) => Err(RefusedSearch::from(malformed(&error)).into()),
            None => dump(&view, &name),
        });
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

impl Conditions {
    fn names_topology(&self) -> bool {
        self.env.iter().any(|(name, _)| name == TOPO_FILE)
    }

    fn question(&self, root: Element, profile: Profile, nodes: u32) -> Outcome<Question> {
        self.question_by(Question::new(root, profile), nodes, read_named)
    }

    /// The same, with what reads the file that a variable names, if it names one.
    fn question_by(
        &self,
        mut question: Question,
        nodes: u32,
        mut read_named: impl FnMut(&mut Question, &str, &str) -> Outcome<()>,
    ) -> Outcome<Question> {
        (question.nodes, question.rank) = (nodes, self.rank.unwrap_or(0));
        question.shm_pairs = self.shm_pairs;
        question.broken = self.p2p_broken.iter().copied().collect();
        for (name, value) in &self.env {
            read_named(&mut question, name, value)?;
            let set = Change::Set { name: name.clone(), value: value.clone() };
            question = question.with(&set).within(|| "this --env has no meaning")?;
        }
        Ok(question)
    }
}

/// Tells of pairs whose P2P is to be broken, and of which a GPU is not there.
fn tell_broken(root: &Element, pairs: &[(i32, i32)]) {
    let devices = gpu_numbers(root);
    for (a, b) in pairs {
        for gone in [a, b].into_iter().filter(|it| !devices.contains(it)) {
            anstream::eprintln!("note: --p2p-broken {a}-{b}: no GPU has the number {gone} (dev)");
        }
    }
}

/// Reads the file that a variable names, if it is one that names a file to be read.
fn read_named(question: &mut Question, variable: &str, file: &str) -> Outcome<()> {
    let path = Path::new(file);
    let root = match variable {
        GRAPH_FILE => graph_root(path, question.profile)?,
        TOPO_FILE => root_of(&read(path)?, &name(path), question.profile)?,
        _ => return Ok(()),
    };
    question.files.insert(file.to_owned(), root);
    Ok(())
}

/// A graph file's outermost element, read leniently; what NCCL would refuse is told on the way.
fn graph_root(file: &Path, profile: Profile) -> Outcome<Element> {
    let shown = name(file);
    let document = graph_document(file, profile)?.within(|| format!("{shown} is no graph file"))?;
    tell_tolerated(&shown, &document.tolerated);
    Ok(document.root)
}

/// What is told of a file's form, a line each.
pub(crate) fn tolerated_notes(name: &str, tolerated: &[Tolerated]) -> Vec<String> {
    tolerated.iter().map(|it| format!("{name}:{}: {}", it.place, it.quirk)).collect()
}

fn tell_tolerated(name: &str, tolerated: &[Tolerated]) {
    for note in tolerated_notes(name, tolerated) {
        anstream::eprintln!("note: {note}");
    }
}

/// A graph file, read leniently.
fn graph_document(file: &Path, profile: Profile) -> Outcome<Result<Document, XmlError>> {
    Ok(xml::read(&read(file)?, Strictness::lenient(profile)))
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
    /// The version of NCCL: 2.7.8, 2.18.5, 2.21.5, 2.27.7, 2.29.7 or 2.30.7.
    #[arg(long, value_name = "VERSION", default_value = "2.30.7")]
    nccl: Profile,
    /// Equal servers in the job; with one, versions before 2.28 leave the ports out.
    #[arg(long, value_name = "K", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
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
        tell_broken(&root, &self.conditions.p2p_broken);
        self.conditions.question(root, self.nccl, self.nodes)
    }
}

/// The outermost element, read leniently; what NCCL would refuse is told on the way.
fn root_of(text: &str, name: &str, profile: Profile) -> Outcome<Element> {
    Ok(document_of(text, name, profile)?.root)
}

/// The same with what was told.
fn document_of(text: &str, name: &str, profile: Profile) -> Outcome<Document> {
    if hwloc::is_hwloc(text) {
        let machine = hwloc::machine(text, name).within(|| "this hwloc file cannot be used")?;
        for it in &machine.assumed {
            anstream::eprintln!("note: {name}: {it}");
        }
        return Ok(Document { root: topology(&machine), tolerated: Vec::new() });
    }
    let document = xml::read(text, Strictness::lenient(profile))
        .within(|| format!("{name} is no topology file"))?;
    tell_tolerated(name, &document.tolerated);
    Ok(document)
}

/// The variables that are set and that the question's version does not read, told on the way.
///
/// Every verb that takes variables asks here, and puts them beside what it shows to programs.
fn tell_unread(question: &Question) -> Outcome<Vec<String>> {
    let unread = question.unread().within(|| "this variable has no meaning")?;
    note_unread(question.profile, &unread);
    Ok(unread)
}

/// What NCCL leaves out of the view that is shown, told on the way.
fn tell_left_out(view: &View) {
    if let Some(note) = left_out_note(view) {
        anstream::eprintln!("note: {note}; --rank shows it");
    }
}

pub(crate) fn note_unread(profile: Profile, unread: &[String]) {
    for name in unread {
        anstream::eprintln!("note: NCCL {profile} does not read {name}");
    }
}

/// What a program is shown, with the variables beside it that were set and not read.
#[derive(Debug, Serialize)]
struct Beside<'a, T> {
    #[serde(flatten)]
    shown: &'a T,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unread: &'a [String],
}

/// The first names, and behind them how many more there are.
fn listed(names: &[String], shown: usize) -> (String, String) {
    let more = match names.len().saturating_sub(shown) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (names.iter().take(shown).cloned().collect::<Vec<_>>().join(", "), more)
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

/// A file's text; `-` is standard input.
fn read(file: &Path) -> Outcome<String> {
    let (text, is_utf8) = read_any(file)?;
    if !is_utf8 && text.trim_start().starts_with('<') {
        anstream::eprintln!("note: {} is not UTF-8; read as Latin-1", file.display());
    }
    Ok(text)
}

/// The most that is read of a file or of standard input: logs of large jobs are longer than any
/// topology.
const TEXT_MAX: usize = 256 << 20;

/// Reads a topology file up to what its reader takes, which refuses what is longer, and other texts
/// up to what a log has.
fn read_some(mut from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.by_ref().take(XML_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if !bytes.trim_ascii_start().starts_with(b"<") {
        from.take((TEXT_MAX - XML_BYTES) as u64).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// A file's text and whether it was UTF-8.  Logs hold what programs wrote, so not all of it is
/// text; a topology file is bytes to NCCL, each of which Latin-1 has a letter for.
fn read_any(file: &Path) -> Outcome<(String, bool)> {
    let bytes = if file == Path::new("-") {
        read_some(io::stdin().lock())
    } else {
        fs::File::open(file).and_then(read_some)
    };
    let bytes = bytes.within(|| format!("cannot read {}", file.display()))?;
    if TEXT_MAX < bytes.len() {
        let what = format!("{} has more than {TEXT_MAX} bytes", file.display());
        return Err(Failure::new(what)
            .hint("topologies have some kilobytes; of a log give the lines with NCCL INFO"));
    }
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok((text, true)),
        Err(error) => error,
    };
    let bytes = error.as_bytes();
    if bytes.windows(9).any(|it| it == b"NCCL INFO") {
        return Ok((String::from_utf8_lossy(bytes).into_owned(), false));
    }
    if bytes.trim_ascii_start().starts_with(b"<") {
        return Ok((bytes.iter().copied().map(char::from).collect(), false));
    }
    let shown = file.display();
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let what = format!("{shown}:1:1: found UTF-16, expected UTF-8 without a byte order mark");
        return Err(Failure::new(what));
    }
    let before = &bytes[..error.utf8_error().valid_up_to()];
    let line = 1 + before.iter().filter(|it| **it == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|it| **it != b'\n').count();
    let what = format!("{shown}:{line}:{column}: found a byte that is no UTF-8, expected text");
    Err(Failure::new(what))
}

fn name(file: &Path) -> String {
    if file == Path::new("-") {
        return "standard input".to_owned();
    }
    file.file_name().map_or_else(|| file.display().to_string(), |it| it.to_string_lossy().into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{parse_broken, parse_pair, read_any};

    #[test]
    fn a_text_in_another_encoding_is_read_as_latin_1_or_refused_with_its_place() {
        let folder = tempfile::tempdir().expect("a folder of its own");
        let file = folder.path().join("s.xml");
        let read = |bytes: &[u8]| {
            fs::write(&file, bytes).expect("its file");
            read_any(&file).map_err(|it| it.text())
        };
        let name = file.display();
        let latin = read(b"<system version=\"1\" name=\"M\xfcnchen\"/>").expect("a topology");
        assert_eq!(latin, ("<system version=\"1\" name=\"M\u{fc}nchen\"/>".to_owned(), false));
        let log = read(b"h:1:1 NCCL INFO caf\xe9").expect("a log");
        assert_eq!(log, ("h:1:1 NCCL INFO caf\u{fffd}".to_owned(), false));
        for mark in [[0xff, 0xfe], [0xfe, 0xff]] {
            let wide = read(&[&mark[..], b"<\0s\0"].concat()).expect_err("two bytes a letter");
            let wanted = "found UTF-16, expected UTF-8 without a byte order mark";
            assert_eq!(wide, format!("{name}:1:1: {wanted}"));
        }
        let other = read(b"a b\ncd\xff").expect_err("no text");
        assert_eq!(other, format!("{name}:2:3: found a byte that is no UTF-8, expected text"));
    }

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
