//! What is wrong or doubtful in a topology file, from what NCCL refuses to what it does less well
//! than the server could.  Notes §4.3.

mod mend;

mod rules;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::host::change::{NoAnswer, Question};
use crate::host::decision::{PortKey, port_keys};
use crate::host::hwloc;
use crate::host::lint::mend::{Edit, mended};
use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::search::graphs;
use crate::host::nccl::view::{RefusedView, View};
use crate::host::nccl::xml::{Document, Element, Place, Strictness, XmlError, read, write};
use crate::host::nccl::{TopoError, graph_of};
use crate::host::place::{joined, label, ranks, short};
use crate::host::views::{left_out, views};
use crate::host::widest::Widest;

/// Every rule, in the order in which they came: a rule's number stays, new ones come at the end.
pub const RULES: [&str; 37] = [
    "syntax",
    "version",
    "refused",
    "no-cpu",
    "no-pci",
    "affinity",
    "self-link",
    "one-way",
    "duplicate-busid",
    "duplicate-rank",
    "duplicate-dev",
    "duplicate-numa",
    "no-rank",
    "narrow-uplink",
    "uneven-link",
    "uneven-nvlink",
    "missing-target",
    "duplicate-net",
    "many-ports",
    "port-speed",
    "trimmed",
    "no-gdr",
    "fallback",
    "no-gpu",
    "guessed-link",
    "port-gdr",
    "idle-port",
    "wider-way",
    "no-graph",
    "number",
    "entity",
    "lopsided-nvlink",
    "busid",
    "nul",
    "rank-gap",
    "arch",
    "vendor",
];

/// A rule's number; that of no rule is the one after the last.
pub fn number_of(rule: &str) -> u16 {
    RULES.iter().position(|it| *it == rule).unwrap_or(RULES.len()) as u16
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// NCCL refuses it, or works on what is not there.
    Error,
    /// It costs, or will surprise.
    Warning,
    /// Worth knowing.
    Note,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// Which rule; stays from version to version.
    pub rule: &'static str,
    /// Where in the file; none of the server as a whole.
    #[serde(serialize_with = "as_text")]
    pub place: Option<Place>,
    /// What was found.
    pub what: String,
    /// What to do.
    pub advice: String,
    /// Whether `fixed` does it.
    pub is_fixed: bool,
}

/// All findings, and the file without those that can be mended without asking.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Worst first, then in the file's order.
    pub findings: Vec<Finding>,
    /// The mended file as NCCL would write it.
    pub fixed: String,
    /// Whether anything was mended.
    pub is_mended: bool,
}

fn as_text<S: serde::Serializer>(place: &Option<Place>, to: S) -> Result<S::Ok, S::Error> {
    match place {
        Some(place) => to.collect_str(place),
        None => to.serialize_none(),
    }
}

/// Findings as the rules come upon them.
#[derive(Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
    /// Changes that mend findings, by their places in the list.
    edits: Vec<(usize, Edit)>,
}

impl Findings {
    fn add(
        &mut self,
        (severity, rule): (Severity, &'static str),
        place: Option<Place>,
        what: String,
        advice: &str,
    ) -> &mut Finding {
        let (advice, is_fixed) = (advice.to_owned(), false);
        self.found.push(Finding { severity, rule, place, what, advice, is_fixed });
        self.found.last_mut().expect("just added")
    }

    /// What mends the last finding.
    fn mend(&mut self, edit: Edit) {
        let last = self.found.len().checked_sub(1).expect("a finding comes before its cure");
        self.edits.push((last, edit));
    }
}

/// What that version would make of the file, on two equal servers seen by the first rank there is.
///
/// # Errors
/// If the text is not well-formed, so that nothing can be said about it.
pub fn lint(text: &str, profile: Profile) -> Result<Report, XmlError> {
    // A file of hwloc's begins with a document type: what is wrong with it here is another thing.
    let is_hwloc = hwloc::is_hwloc(text);
    let text = if is_hwloc { &hwloc::without_type(text) } else { text };
    let Document { root, mut tolerated } = read(text, Strictness::lenient(profile))?;
    tolerated.retain(|_| !is_hwloc);
    let mut findings = Findings::default();
    for it in &tolerated {
        let severity = if it.quirk.is_error() { Severity::Error } else { Severity::Warning };
        let (what, advice) = (it.quirk.to_string(), "write the file as NCCL does");
        findings.add((severity, "syntax"), Some(it.place), what, advice).is_fixed =
            it.quirk.is_form();
    }
    rules::file(&root, &mut findings);
    server(&root, profile, &mut findings);
    let Findings { mut found, edits } = findings;
    let edits = if is_hwloc { Vec::new() } else { edits };
    let (fixed, is_mended) = mended(&root, profile, &found, &edits);
    found.iter_mut().zip(is_mended).for_each(|(it, is_mended)| it.is_fixed |= is_mended);
    found.sort_by_key(|it| (it.severity, it.place));
    let is_mended = found.iter().any(|it| it.is_fixed);
    Ok(Report { findings: found, fixed: write(&fixed), is_mended })
}

/// The one finding about a text that no rule can look at.
pub fn malformed(error: &XmlError) -> Finding {
    let what = error.what();
    // Where it says what would be right, or how much there may be, nothing is to be added.
    let advice = if what.contains("DOCTYPE") || what.contains("entit") {
        "NCCL gives up here: a topology file has elements, attributes in double quotes and comments, \
         no DOCTYPE and no entities of its own"
    } else {
        "write the file as NCCL does (NCCL_TOPO_DUMP_FILE): elements within one <system>, attributes \
         in double quotes"
    };
    Finding {
        severity: Severity::Error,
        rule: "syntax",
        place: Some(error.place()),
        what,
        advice: advice.to_owned(),
        is_fixed: false,
    }
}

/// What the decisions show.
fn server(root: &Element, profile: Profile, findings: &mut Findings) {
    let mut question = Question::new(root.clone(), profile);
    let views = match ranks(root).into_iter().min() {
        // What the view of one rank leaves out, another's shows.
        Some(rank) => {
            question.rank = rank;
            views(&question)
        }
        // A file for a VM names no GPUs, or no ranks: NCCL fills them in when it runs, if it takes
        // the rest.
        None => match graph_of(root, profile) {
            Ok(_) => return,
            Err(error) if is_filled_in(&error) => return,
            Err(error) => Err(NoAnswer::Refused(RefusedView::Topo(error))),
        },
    };
    let views = match views {
        Ok(views) => views,
        Err(error) => {
            let topo = match &error {
                NoAnswer::Refused(RefusedView::Topo(error)) => Some(error),
                _ => None,
            };
            // What a rule of the file found is not said twice.
            let told = |rule| findings.found.iter().any(|it| it.rule == rule);
            if matches!(error, NoAnswer::Refused(RefusedView::NegativeLink { .. }))
                && told("number")
            {
                return;
            }
            match topo {
                Some(TopoError::NoSystem { .. }) if told("refused") => return,
                Some(TopoError::Version { .. }) if told("version") => return,
                Some(TopoError::OneWay { .. }) if told("one-way") => return,
                Some(
                    TopoError::NoGpu { .. } | TopoError::NoCpu { .. } | TopoError::Outside { .. },
                ) if told("no-cpu") || told("no-pci") => return,
                _ => {}
            }
            let place = topo.and_then(TopoError::place);
            let what = format!("NCCL {profile} refuses the server: {error}");
            findings.add((Severity::Error, "refused"), place, what, advice_on(topo));
            return;
        }
    };
    trimmed(&views[0], findings);
    no_gdr(&views, findings);
    idle_ports(&views, findings);
    narrower(&views, findings);
    fallback(&views[0], profile, findings);
}

/// Whether NCCL itself fills in what is missing: GPUs and ranks, and what it knows of processors.
fn is_filled_in(error: &TopoError) -> bool {
    const FILLED: [&str; 5] = ["affinity", "arch", "vendor", "familyid", "modelid"];
    match error {
        TopoError::NoGpu { .. } | TopoError::NoRanks => true,
        TopoError::Missing { attr, .. } => FILLED.contains(attr),
        _ => false,
    }
}

/// What to do where NCCL refuses a server.
fn advice_on(error: Option<&TopoError>) -> &'static str {
    match error {
        Some(TopoError::Missing { .. }) => "write the attribute, or take the element out",
        Some(
            TopoError::Limit { .. }
            | TopoError::Elements { .. }
            | TopoError::Children { .. }
            | TopoError::Links { .. },
        ) => "leave out what the job does not use; NCCL has no room for more",
        _ => "change what the finding names; NCCL ends here",
    }
}

fn trimmed(view: &View, findings: &mut Findings) {
    let gone: Vec<String> = left_out(view).iter().map(|it| format!("GPU{it}")).collect();
    if !gone.is_empty() {
        let what = format!(
            "rank {} does not see {} on its own server: neither P2P nor shared memory is used \
             between them, so all goes over the network",
            view.ask.rank,
            gone.join(", ")
        );
        let advice = "ask `topo explain p2p` why; often a port is faster than the way between the \
                      GPUs, and NCCL_NET_DISABLE_INTRA=1 keeps them together";
        findings.add((Severity::Warning, "trimmed"), None, what, advice);
    }
}

fn no_gdr(views: &[View], findings: &mut Findings) {
    let mut without: Vec<(i32, String)> = Vec::new();
    for view in views.iter().filter(|it| !it.nets().is_empty()) {
        let is_without =
            |gpu: &&NodeIdx| view.nets().iter().all(|net| !view.check_gdr(**gpu, *net, false));
        let gpus = view.gpus().iter().filter(is_without);
        without.extend(gpus.map(|it| (view.graph.gpu(*it).rank, label(&view.graph, *it))));
    }
    without.sort();
    let without: Vec<String> = without.into_iter().map(|it| it.1).collect();
    if !without.is_empty() {
        let what = format!("no port reaches the memory of {} (GPUDirect RDMA)", joined(&without));
        let advice = "ask `topo explain gdr` which rule decides";
        findings.add((Severity::Warning, "no-gdr"), None, what, advice);
    }
}

/// Ports that no GPU has on any channel, in no rank's view.
fn idle_ports(views: &[View], findings: &mut Findings) {
    let mut is_idle: BTreeMap<PortKey, bool> = BTreeMap::new();
    for view in views {
        for ((_, key), gpu) in port_keys(view).into_iter().zip(&view.local_gpus) {
            *is_idle.entry(key).or_insert(true) &= gpu.is_none();
        }
    }
    let idle: Vec<String> = is_idle.iter().filter(|it| *it.1).map(|it| it.0.to_string()).collect();
    if !idle.is_empty() && idle.len() < is_idle.len() {
        let what = match idle.as_slice() {
            [one] => format!("{one} is nobody's nearest port"),
            _ => format!("{} are nobody's nearest port", joined(&idle)),
        };
        let advice = "a port that is to be used wants a GPU on its own switch, or as wide and near a \
                      way as the others have";
        findings.add((Severity::Note, "idle-port"), None, what, advice);
    }
}

/// Ways that are wider than those that NCCL takes.
fn narrower(views: &[View], findings: &mut Findings) {
    const NAMED: usize = 4;
    let mut pairs = Vec::new();
    for view in views {
        let widest = Widest::of(view);
        for (idx, &a) in view.gpus().iter().enumerate() {
            for &b in &view.gpus()[idx + 1..] {
                let (taken, best) = (view.path(a, b), widest.between(a, b));
                if taken.kind < PathKind::Net && best.0 > taken.width.0 * 1.001 {
                    let [near, far] = [a, b].map(|it| label(&view.graph, it));
                    let (kind, best) = (taken.kind.name(), short(best.0));
                    let width = short(taken.width.0);
                    pairs.push(format!("{near}-{far} ({kind} {width} GB/s, {best} possible)"));
                }
            }
        }
    }
    if pairs.is_empty() {
        return;
    }
    let more = pairs.len().saturating_sub(NAMED);
    pairs.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = format!("wider ways than those that NCCL takes: {}{more}", pairs.join(", "));
    let advice =
        "NCCL takes the nearest kind or the fewest hops first; `topo explain p2p` says why";
    findings.add((Severity::Note, "wider-way"), None, what, advice);
}

fn fallback(view: &View, profile: Profile, findings: &mut Findings) {
    /// What NCCL writes where no speed of its tables worked, GB/s.
    const NOTHING: f32 = 0.1;
    match graphs(view) {
        Ok(graphs) => {
            let slow = graphs.found.iter().filter(|it| !it.channels.is_empty());
            for it in slow.filter(|it| it.intra.0 <= NOTHING) {
                let what = format!(
                    "NCCL {profile} finds no {} at any speed of its tables and falls back to the \
                     ranks' order at 0.1 GB/s",
                    it.kind.name()
                );
                let advice = "the narrowest way between two GPUs, or to a port, is below the tables' \
                              last speed; `topo show` has the widths";
                findings.add((Severity::Warning, "fallback"), None, what, advice);
            }
        }
        Err(error) => {
            let severity = if view.graph.kind(NodeKind::Net).is_empty() {
                Severity::Note
            } else {
                Severity::Error
            };
            let what = format!("on several servers NCCL {profile} gives up: {error}");
            findings.add((severity, "no-graph"), None, what, "name the server's ports in the file");
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        let mended = if self.is_fixed { " (--fix does it)" } else { "" };
        write!(f, "{}[{}]: {}\n    {}{mended}", self.severity, self.rule, self.what, self.advice)
    }
}
