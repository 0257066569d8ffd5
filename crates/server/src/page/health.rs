//! The health matrix, open cases with their evidence, and what is out of use.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_control::note::{CaseState, Owner};
use selvedge_control::state::Case;
use selvedge_model::fabric::{Fabric, NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{CaseId, NodeId, PartId, PortId};

use crate::api::case::{self, CaseView, EvidenceView, MaintenanceView};
use crate::api::error::ApiError;
use crate::api::hardware::{DrainView, drain_views};
use crate::limits;
use crate::page::sheet::{
    Part, Sheet, address, badge, case_link, clock, counted, inert, lasting, more, name, none,
    table, tile,
};
use crate::shell::Shell;

/// Blocks of rows that stand side by side, and the fewest rows of one.
const BLOCKS: usize = 3;
const BLOCK_MIN: usize = 16;
/// Width and height of a cell, and the room for a row's name.
const CELL: [usize; 2] = [13, 11];
const NAME: usize = 58;
/// Parts beyond which only those that are not well have a row.
const ROWS_MAX: usize = 512;

/// How a thing is, from well to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ill {
    /// A case watches it, and nothing has been done.
    Observed,
    /// It has been repaired and is being watched.
    Probation,
    /// It is held back from jobs until it has passed its checks.
    Verifying,
    /// Somebody has taken it out of use.
    Drained,
    /// A case has taken it out of use.
    Waiting,
    /// A crew is at it.
    UnderRepair,
}

impl Ill {
    const ALL: [Self; 6] = [
        Self::Observed,
        Self::Probation,
        Self::Verifying,
        Self::Drained,
        Self::Waiting,
        Self::UnderRepair,
    ];

    fn class(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Probation => "probation",
            Self::Verifying => "verifying",
            Self::Drained => "drained",
            Self::Waiting => "waiting",
            Self::UnderRepair => "repair",
        }
    }

    fn says(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Probation => "on probation",
            Self::Verifying => "being verified",
            Self::Drained => "drained by somebody",
            Self::Waiting => "out, waits for repair",
            Self::UnderRepair => "under repair",
        }
    }

    fn of(state: CaseState) -> Option<Self> {
        match state {
            CaseState::Observed => Some(Self::Observed),
            CaseState::Draining | CaseState::Waiting => Some(Self::Waiting),
            CaseState::UnderRepair => Some(Self::UnderRepair),
            CaseState::Verifying => Some(Self::Verifying),
            CaseState::Probation { .. } => Some(Self::Probation),
            CaseState::Closed => None,
        }
    }
}

/// What stands in one cell: how it is, and what leads to more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) ill: Ill,
    pub(super) says: String,
    /// The case, if it is one.
    pub(super) case: Option<u32>,
}

/// One part of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    /// Where its name leads.
    pub(super) address: String,
    /// What is not well, by column.
    pub(super) marks: BTreeMap<usize, Mark>,
}

/// Parts with the same columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matrix {
    /// What the parts are: `cube`, `switch`.
    pub(super) kind: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
    /// Parts that are well and have no row.
    pub(super) n_hidden: usize,
}

/// The page of health.
#[derive(Clone, Debug)]
pub(super) struct HealthPage {
    pub(super) matrices: Vec<Matrix>,
    pub(super) cases: Vec<CaseView>,
    pub(super) drains: Vec<DrainView>,
    pub(super) maintenance: Vec<MaintenanceView>,
    pub(super) now_s: f64,
}

impl HealthPage {
    /// The page of now.
    pub(super) fn of(shell: &Shell) -> Self {
        let all = case::maintenance_views(shell).into_iter();
        Self {
            matrices: matrices(shell),
            cases: case::views(shell, true),
            drains: drain_views(shell, |_| true),
            maintenance: all.filter(|it| 0 < it.n_waiting + it.n_at_work).collect(),
            now_s: shell.plant_now().as_secs_f64(),
        }
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let mut parts = vec![Part::new("matrix", "Health matrix", self.matrix())];
        parts.push(cases_part(&self.cases, self.now_s));
        parts.push(Part::new("drains", "Out of use", self.drained()));
        if !self.maintenance.is_empty() {
            parts.push(Part::new("maintenance", "Planned work", self.planned()));
        }
        Sheet { title: "health".to_owned(), layout: "one", parts }
    }

    fn matrix(&self) -> Markup {
        html! {
            ul.legend {
                li { span.swatch.well {} "well" }
                @for ill in Ill::ALL {
                    li { span class=(format!("swatch ill-{}", ill.class())) {} (ill.says()) }
                }
            }
            @for matrix in &self.matrices { (matrix.draw()) }
        }
    }

    fn drained(&self) -> Markup {
        let shown = &self.drains[..self.drains.len().min(limits::PAGE_JOBS_MAX)];
        if shown.is_empty() {
            return none("Nothing is out of use.");
        }
        html! {
            (table("what is out of use", &["what", "by", "why", "since", ""], html! {
                @for drain in shown {
                    tr data-drain=(drain.target) {
                        td { (target_link(&drain.target)) }
                        td { @match drain.case {
                            Some(case) => (case_link(case)),
                            None => (name(&drain.by)),
                        } }
                        td.why { (name(&drain.why)) }
                        td.n { (clock(drain.since_s)) }
                        td { @if drain.evicts { "jobs leave it" } @else { "no new jobs" } }
                    }
                }
            }))
            (more(self.drains.len(), shown.len(), "selvedge drain list"))
        }
    }

    fn planned(&self) -> Markup {
        table(
            "planned work",
            &["work", "by", "why", "waiting", "at work", "done"],
            html! {
                @for it in &self.maintenance {
                    tr data-key=(it.id) {
                        td.n { (it.id) } td { (name(&it.by)) } td.why { (name(&it.why)) }
                        td.n { (it.n_waiting) } td.n { (it.n_at_work) " of " (it.at_once) }
                        td.n { (it.n_done) }
                    }
                }
            },
        )
    }
}

impl Matrix {
    fn draw(&self) -> Markup {
        let n_ill = self.rows.iter().filter(|it| !it.marks.is_empty()).count();
        let per_block = self.rows.len().div_ceil(BLOCKS).max(BLOCK_MIN);
        html! {
            h3 { (self.kind) span.sum { (self.rows.len() + self.n_hidden) ", "
                span.warn[0 < n_ill] { (n_ill) " not well" } } }
            @if !self.rows.is_empty() {
                div.matrices {
                    @for rows in self.rows.chunks(per_block) { (self.block(rows)) }
                }
            }
        }
    }

    fn block(&self, rows: &[Row]) -> Markup {
        let width = NAME + CELL[0] * self.columns.len() + 16;
        let height = CELL[1] * (rows.len() + 3);
        let top = CELL[1] * 3;
        html! {
            svg.matrix viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height)
                role="group" data-keys="1"
                aria-label=(format!("health of each {}", self.kind)) {
                @for (idx, column) in self.columns.iter().enumerate() {
                    text.column transform=(format!("translate({} {}) rotate(-60)",
                        NAME + CELL[0] * idx + 6, top - 4)) { (column) }
                }
                @for (idx, row) in rows.iter().enumerate() { (self.row(row, top + CELL[1] * idx)) }
            }
        }
    }

    fn row(&self, row: &Row, y: usize) -> Markup {
        let mut well = String::new();
        for idx in (0..self.columns.len()).filter(|it| !row.marks.contains_key(it)) {
            let (x, side) = (NAME + CELL[0] * idx + 1, CELL[0] - 2);
            write!(well, "M{x} {}h{side}v{}h-{side}z", y + 1, CELL[1] - 2).expect("it takes it");
        }
        let label = match row.marks.len() {
            0 => format!("{}: well", row.name),
            n => format!("{}: {n} of {} not well", row.name, self.columns.len()),
        };
        html! {
            a href=(row.address) data-key=(row.name) aria-label=(label) {
                text.end x=(NAME - 5) y=(y + 9) { (row.name) }
            }
            path.well d=(well) {}
            @for (idx, mark) in &row.marks {
                @let says = format!("{} {}: {}", row.name, self.columns[*idx], mark.says);
                @let of_case = mark.case.map(|it| format!("/cases/{it}"));
                @let to = of_case.unwrap_or_else(|| row.address.clone());
                a href=(to) data-key=(format!("{} {idx}", row.name)) data-ill=(mark.ill.class())
                    aria-label=(says) {
                    title { (says) }
                    rect class=(format!("ill-{}", mark.ill.class())) x=(NAME + CELL[0] * idx + 1)
                        y=(y + 1) width=(CELL[0] - 2) height=(CELL[1] - 2) rx="1.5" {}
                }
            }
        }
    }
}

/// The cases as a part of a page.
pub(super) fn cases_part(cases: &[CaseView], now_s: f64) -> Part {
    let heading = html! { "Open cases" a.sum href="/health" { (cases.len()) } };
    let shown = &cases[..cases.len().min(limits::PAGE_JOBS_MAX)];
    if shown.is_empty() {
        return Part::with("cases", heading, none("No case is open."));
    }
    let heads = ["case", "target", "seen", "severity", "state", "for", "last evidence", "taken by"];
    let body = html! {
        (table("open cases", &heads, html! {
            @for case in shown {
                tr data-key=(case.id) data-case=(case.id) {
                    td { (case_link(case.id)) }
                    td { (target_link(&case.target)) }
                    td { (spaced(&case.symptom))
                        small { " · " (counted(case.n_seen as usize, "sign", "signs")) } }
                    // Planned work and what is given back are no faults, however they are graded.
                    td { @if matches!(&*case.symptom, "planned" | "returned") { "–" }
                        @else { (badge(&case.severity, &case.severity)) } }
                    td { (badge(&format!("state-{}", case.state), &spaced(&case.state)))
                        @if case.held_back_s.is_some() { " held back by the breaker" } }
                    td.n { (lasting(now_s - case.opened_s)) }
                    td { @if let Some(last) = case.evidence.last() {
                        (spaced(&last.symptom)) " " (measured(last)) } }
                    td { @if let Some(by) = &case.taken_by { (name(by)) } }
                }
            }
        }))
        (more(cases.len(), shown.len(), "selvedge repair list"))
    };
    Part::with("cases", heading, body)
}

/// One case.
#[derive(Clone, Debug)]
pub(super) struct CasePage {
    pub(super) case: CaseView,
    pub(super) drains: Vec<DrainView>,
    pub(super) now_s: f64,
}

impl CasePage {
    /// The case of now.
    pub(super) fn of(shell: &Shell, id: u32) -> Result<Self, ApiError> {
        let case = case::view_of(shell, CaseId::new(id))?;
        let by_it = |it: &DrainView| it.case == Some(id);
        let drains = drain_views(shell, |_| true).into_iter().filter(by_it).collect();
        Ok(Self { case, drains, now_s: shell.plant_now().as_secs_f64() })
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let case = &self.case;
        let head = Part::head(
            "head",
            html! {
                h1 { "Case " (case.id) " " (badge(&case.severity, &case.severity)) " "
                    (badge(&format!("state-{}", case.state), &spaced(&case.state))) }
                dl.tiles {
                    (tile("target", target_link(&case.target)))
                    (tile("seen first", html! { (spaced(&case.symptom)) }))
                    (tile("seen", html! { "×" (case.n_seen) }))
                    @if !matches!(&*case.symptom, "planned" | "returned") {
                        (tile("rule", html! { (case.rule) }))
                    }
                    (tile("opened", html! { (clock(case.opened_s)) }))
                    (tile("in this state", html! { (lasting(self.now_s - case.since_s)) }))
                    @if let Some(until) = case.until_s {
                        (tile("trusted again at", html! { (clock(until)) }))
                    }
                    @if let Some(since) = case.held_back_s {
                        (tile("held back by the breaker since", html! { (clock(since)) }))
                    }
                    @if let Some(at) = case.weighed_again_s {
                        (tile("weighed again at", html! { (clock(at))
                            small { " or once somebody takes the repair" } }))
                    }
                    (tile("repairs", html! { (case.n_repairs) }))
                    @if let Some(by) = &case.taken_by { (tile("taken by", name(by))) }
                    @if let Some(how) = &case.closed { (tile("closed", html! { (how) })) }
                    @if let Some(work) = case.maintenance {
                        (tile("planned work", html! { (work) }))
                    }
                }
                (drain_list(&self.drains))
            },
        );
        let evidence = if case.evidence.is_empty() {
            none("It was opened for planned work: nothing was seen.")
        } else {
            table(
                "evidence",
                &["when", "what", "measured", ""],
                html! {
                    @for it in &case.evidence {
                        tr { td.n { (clock(it.at_s)) } td { (spaced(&it.symptom)) }
                            td.n { (measured(it)) }
                        td.why { @if let Some(words) = &it.words { (inert(words)) } } }
                    }
                },
            )
        };
        let parts = vec![head, Part::new("evidence", "Evidence: the first lines", evidence)];
        Sheet { title: format!("case {}", case.id), layout: "one", parts }
    }
}

/// Who took things out of use, and why.
pub(super) fn drain_list(drains: &[DrainView]) -> Markup {
    html! {
        @if !drains.is_empty() {
            ul.drains { @for drain in drains {
                li data-drain=(drain.target) {
                    (badge("drained", "out of use")) " " (target_link(&drain.target)) " by "
                    @match drain.case { Some(case) => (case_link(case)), None => (name(&drain.by)) }
                    @if !drain.why.is_empty() { ": " bdi.words { (inert(&drain.why)) } }
                }
            } }
        }
    }
}

/// A link to the page that shows `path`; switches go by `x0`, all else is on a part's page.
pub(super) fn target_link(path: &str) -> Markup {
    html! { a href=(address("/find/", path)) { (inert(path)) } }
}

/// What was measured, in its unit (control's preflight says which).
fn measured(evidence: &EvidenceView) -> String {
    let Some(value) = evidence.value else { return String::new() };
    match evidence.symptom.as_str() {
        // All ones stand for a link that does not answer at all.
        "link_down" | "link_degraded" if value == u32::from(u16::MAX) => "no light".to_owned(),
        "link_down" | "link_degraded" | "chip_failed" => format!("{value} errors an hour"),
        "port_loss_high" => format!("{:.2} dB", f64::from(value) / 100.0),
        "pcie_degraded" => format!("{value} Gb/s"),
        _ => value.to_string(),
    }
}

fn spaced(word: &str) -> String {
    word.replace('_', " ")
}

/// A matrix for each kind of part.
fn matrices(shell: &Shell) -> Vec<Matrix> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let mut marks: BTreeMap<(PartId, usize), Mark> = BTreeMap::new();
    let mut note = |target: Target, mark: &Mark| {
        for place in places(fabric, target) {
            let known = marks.entry(place).or_insert_with(|| mark.clone());
            if known.ill < mark.ill {
                *known = mark.clone();
            }
        }
    };
    for (target, case) in &state.open_cases {
        if let Some(mark) = mark_of(&state.cases[*case], *case) {
            note(*target, &mark);
        }
    }
    for (target, drains) in &state.drains {
        for drain in drains {
            if let Owner::Person(by) = &drain.by {
                let says = format!("drained by {}", inert(by));
                note(*target, &Mark { ill: Ill::Drained, says, case: None });
            }
        }
    }
    let mut found: BTreeMap<(bool, String), Matrix> = BTreeMap::new();
    for (id, part) in fabric.parts().pairs().filter(|(_, it)| !it.retired) {
        let template = fabric.template_of(id);
        let (start, is_switch) = match template.role {
            Role::Compute => ("/cubes/", false),
            Role::CircuitSwitch => ("/switches/", true),
            Role::PacketSwitch => continue,
        };
        let matrix = found.entry((is_switch, template.name.clone())).or_insert_with(|| Matrix {
            kind: template.name.clone(),
            columns: columns(fabric, id),
            rows: Vec::new(),
            n_hidden: 0,
        });
        let n_columns = matrix.columns.len();
        let own = marks.range((id, 0)..=(id, usize::MAX));
        let own = own.map(|((_, column), mark)| (*column.min(&(n_columns - 1)), mark.clone()));
        let name = part.name.to_string();
        let address = address(start, &name);
        matrix.rows.push(Row { name, address, marks: own.collect() });
    }
    for matrix in found.values_mut().filter(|it| ROWS_MAX < it.rows.len()) {
        let n = matrix.rows.len();
        matrix.rows.retain(|it| !it.marks.is_empty());
        matrix.rows.truncate(ROWS_MAX);
        matrix.n_hidden = n - matrix.rows.len();
    }
    found.into_values().collect()
}

fn mark_of(case: &Case, id: CaseId) -> Option<Mark> {
    let ill = Ill::of(case.state)?;
    let symptom = spaced(crate::words::symptom(case.symptom));
    let says = format!("{id}, {symptom}, {}", ill.says());
    Some(Mark { ill, says, case: Some(id.number()) })
}

/// The columns of a part: its machines, then its outer ports by face, then the whole.
fn columns(fabric: &Fabric, part: PartId) -> Vec<String> {
    let template = fabric.template_of(part);
    let machines = template.nodes().iter().filter(|it| it.kind == NodeKind::Machine);
    let mut columns: Vec<String> = machines.map(|it| it.name.clone()).collect();
    for port in template
        .ports()
        .iter()
        .enumerate()
        .filter_map(|(local, _)| fabric.cable_at(fabric.port_at(part, local)).map(|_| local))
    {
        let face = face_of(&template.ports()[port].name);
        if columns.last() != Some(&face) && !columns.contains(&face) {
            columns.push(face);
        }
    }
    // One machine alone is the part itself.
    if columns.len() == 1 && columns[0].is_empty() {
        columns.clear();
    }
    columns.push("whole".to_owned());
    columns
}

/// The group that a port belongs to: `x/in/7` is of `x/in`, `n17` of `n`.
fn face_of(port: &str) -> String {
    port.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('/').to_owned()
}

/// The cells that a target concerns: two parts for a cable.
fn places(fabric: &Fabric, target: Target) -> Vec<(PartId, usize)> {
    let column = |part: PartId, name: &str| {
        let columns = columns(fabric, part);
        let last = columns.len() - 1;
        (part, columns.iter().position(|it| it == name).unwrap_or(last))
    };
    let node = |node: NodeId| {
        let part = fabric.part_of_node(node);
        let above = std::iter::successors(Some(node), |it| fabric.parent_of(*it));
        let machine = above.last().map(|it| fabric.node(it).name.clone());
        column(part, &machine.unwrap_or_default())
    };
    let port = |port: PortId| {
        let (part, local) = fabric.port_local(port);
        let name = &fabric.template_of(part).ports()[local].name;
        match fabric.cable_at(port) {
            Some(_) => column(part, &face_of(name)),
            None => node(fabric.node_of_port(port)),
        }
    };
    match target {
        Target::Part(part) => vec![column(part, "whole")],
        Target::Node(it) => vec![node(it)],
        Target::Port(it) => vec![port(it)],
        Target::Link(link) => {
            let link = fabric.link(link);
            let mut both = vec![port(link.source), port(link.target)];
            both.dedup();
            both
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_family::torus::build;

    use super::*;

    #[test]
    fn each_target_has_its_cells() {
        let fabric = build::pods(1, 2).unwrap();
        let cell = |path: &str| {
            let places = places(&fabric, fabric.find(path).unwrap());
            let told = places.iter().map(|(part, column)| {
                format!("{} {}", fabric.part(*part).name, columns(&fabric, *part)[*column])
            });
            told.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(cell("cube1"), "cube1 whole");
        assert_eq!(cell("cube1/m03"), "cube1 m03");
        assert_eq!(cell("cube1/chip0.0.1"), "cube1 m04");
        assert_eq!(cell("cube0/x/in/7"), "cube0 x/in");
        assert_eq!(cell("x5/n1"), "x5 n");
        let port = fabric.find("cube0/x/in/7").unwrap();
        let Target::Port(port) = port else { unreachable!() };
        let link = Target::Link(fabric.link_from(port).unwrap());
        assert_eq!(places(&fabric, link).len(), 2, "a fibre is of a cube and of a switch");
    }

    #[test]
    fn a_row_tells_what_is_ill_and_leads_to_its_case() {
        let mark = Mark { ill: Ill::UnderRepair, says: "case7".to_owned(), case: Some(7) };
        let row = Row {
            name: "cube3".to_owned(),
            address: "/cubes/cube3".to_owned(),
            marks: BTreeMap::from([(1, mark)]),
        };
        let columns = ["m00", "m01", "whole"].map(str::to_owned).to_vec();
        let kind = "cube".to_owned();
        let html = Matrix { kind, columns, rows: vec![row], n_hidden: 3 }.draw().into_string();
        assert!(html.contains("href=\"/cases/7\"") && html.contains("cube3 m01: case7"), "{html}");
        assert!(html.contains("1 not well") && html.contains("4, "), "{html}");
    }
}
