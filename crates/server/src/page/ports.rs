//! One optical switch: its mirrors, its fibres and what they lose.

use maud::{Markup, html};

use selvedge_model::fabric::{Role, Side};
use selvedge_model::id::PortId;

use crate::api::error::ApiError;
use crate::api::switch::{self, PairView, SwitchDetail};
use crate::page::health::drain_list;
use crate::page::panel::{Dimness, dimness};
use crate::page::sheet::{
    Part, Sheet, badge, case_link, colour, cube_link, job_link, none, table, tile,
};
use crate::shell::Shell;

/// Height of a port's row in the picture of the mirrors.
const ROW: usize = 10;

/// One port with its fibre.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PortRow {
    pub(super) name: String,
    pub(super) is_north: bool,
    /// The part at the other end of its fibre.
    pub(super) holder: Option<String>,
    /// In hundredths of a decibel.
    pub(super) expected: u16,
    pub(super) measured: Option<u16>,
    pub(super) dimness: Dimness,
}

/// One switch.
#[derive(Clone, Debug)]
pub(super) struct SwitchPage {
    pub(super) detail: SwitchDetail,
    /// Ports with a fibre.
    pub(super) ports: Vec<PortRow>,
}

impl SwitchPage {
    /// The switch of now.
    pub(super) fn of(shell: &Shell, name: &str) -> Result<Self, ApiError> {
        let detail = switch::detail(shell, name)?;
        let fabric = shell.core().fabric();
        let id = fabric
            .part_named(name)
            .filter(|it| fabric.template_of(*it).role == Role::CircuitSwitch);
        let id = id.ok_or_else(|| ApiError::no_such("circuit switch", name))?;
        let ports = fabric.template_of(id).ports().iter().zip(fabric.ports_of(id));
        let row = |(spec, port): (&selvedge_model::fabric::PortSpec, PortId)| {
            let cable = fabric.cable_at(port)?;
            let holder = fabric.peer_of(port).map(|it| fabric.part_of_port(it));
            Some(PortRow {
                name: spec.name.clone(),
                is_north: spec.side == Side::North,
                holder: holder.map(|it| fabric.part(it).name.to_string()),
                expected: cable.loss_expected.centi(),
                measured: shell.plant().and_then(|it| it.loss_at(port)).map(|it| it.centi()),
                dimness: dimness(shell, port),
            })
        };
        Ok(Self { ports: ports.filter_map(row).collect(), detail })
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let view = &self.detail.switch;
        let head = Part::head(
            "head",
            html! {
                h1 { "Switch " (view.name)
                    @if view.drained { " " (badge("drained", "drained")) }
                    @if view.silent_s.is_some() { " " (badge("out", "does not answer")) }
                    @else if !view.known { " " (badge("waiting", "not read")) }
                    @for case in &view.cases { " " (case_link(*case)) }
                }
                dl.tiles {
                    (tile("pairs", html! { (view.n_pairs) small { " stand" } }))
                    (tile("intended", html! { (view.n_intended) }))
                    (tile("differ", html! { span.warn[0 < view.n_differ] { (view.n_differ) } }))
                    (tile("generation", html! { (view.generation) }))
                }
                (drain_list(&self.detail.drains))
            },
        );
        let parts = vec![
            head,
            Part::new("mirrors", "Mirrors", self.mirrors()),
            Part::new("losses", "Loss at each port", self.losses()),
            Part::new("pairs", "Pairs", self.pairs()),
        ];
        Sheet { title: view.name.clone(), layout: "switch", parts }
    }

    /// Pairs as lines from north to south.
    fn mirrors(&self) -> Markup {
        let pairs = &self.detail.pairs;
        if pairs.is_empty() {
            return none("No pair stands, and none is intended.");
        }
        let mut norths: Vec<&str> = pairs.iter().map(|it| it.north.as_str()).collect();
        let mut souths: Vec<&str> = pairs.iter().map(|it| it.south.as_str()).collect();
        for side in [&mut norths, &mut souths] {
            side.sort_unstable_by_key(|it| slot(it));
            side.dedup();
        }
        let y = |side: &[&str], port: &str| {
            ROW * side.iter().position(|it| *it == port).unwrap_or(0) + ROW
        };
        let height = ROW * (norths.len().max(souths.len()) + 1);
        html! {
            svg.mirrors viewBox=(format!("0 0 400 {height}")) role="img"
                aria-label="pairs from north ports on the left to south ports on the right" {
                @for pair in pairs {
                    @let (from, to) = (y(&norths, &pair.north), y(&souths, &pair.south));
                    g class=(class_of(pair)) {
                        title { (pair.north) " – " (pair.south) ": " (state_of(pair)) }
                        text.end x="84" y=(from + 3) {
                            (pair.from.as_deref().unwrap_or("")) " " (pair.north) }
                        path d=(format!("M90 {from}C200 {from} 200 {to} 310 {to}"))
                            stroke=(pair.job.map_or_else(|| "currentColor".to_owned(), colour)) {}
                        text x="316" y=(to + 3) { (pair.south) " "
                            (pair.to.as_deref().unwrap_or("")) }
                    }
                }
            }
        }
    }

    /// A column for each port, as high as its loss; a line where it was planned.
    fn losses(&self) -> Markup {
        let sides = [("north", true), ("south", false)];
        html! {
            @for (side, is_north) in sides {
                @let ports: Vec<&PortRow> =
                    self.ports.iter().filter(|it| it.is_north == is_north).collect();
                @let most = ports.iter().filter_map(|it| it.measured).max().unwrap_or(0).max(300);
                figure {
                    figcaption {
                        (side) ", up to " (format!("{:.2}", f64::from(most) / 100.0)) " dB"
                    }
                    svg.losses viewBox=(format!("0 0 {} 62", 9 * ports.len())) role="img"
                        preserveAspectRatio="none"
                        aria-label=(format!("measured loss of each {side} port")) {
                        @for (idx, port) in ports.iter().enumerate() { (column(idx, port, most)) }
                    }
                }
            }
            (self.loss_table())
        }
    }

    fn loss_table(&self) -> Markup {
        let db = |centi: u16| format!("{:.2}", f64::from(centi) / 100.0);
        html! {
            details {
                summary { "all " (self.ports.len()) " ports with a fibre, in dB" }
                (table("ports", &["port", "fibre to", "planned", "measured"], html! {
                    @for port in &self.ports {
                        tr data-key=(port.name) {
                            td { (port.name) }
                            td { @if let Some(holder) = &port.holder { (cube_link(holder)) } }
                            td.n { (db(port.expected)) }
                            td.n { span class=(loss_class(port.dimness)) {
                                @match port.measured {
                                    Some(it) => (db(it)),
                                    None => "–",
                                }
                            } }
                        }
                    }
                }))
            }
        }
    }

    fn pairs(&self) -> Markup {
        let heads = ["north", "south", "light from", "to", "job", "state"];
        html! {
            @if self.detail.pairs.is_empty() { (none("None.")) }
            @else {
                (table("pairs of mirrors", &heads, html! {
                    @for pair in &self.detail.pairs {
                        tr data-key=(pair.north) {
                            td { (pair.north) } td { (pair.south) }
                            td { @if let Some(it) = &pair.from { (cube_link(it)) } @else { "–" } }
                            td { @if let Some(it) = &pair.to { (cube_link(it)) } @else { "–" } }
                            td { @if let Some(job) = pair.job { (job_link(job)) } }
                            td { (badge(class_of(pair), state_of(pair))) }
                        }
                    }
                }))
            }
        }
    }
}

fn column(idx: usize, port: &PortRow, most: u16) -> Markup {
    let y = |centi: u16| 60 - 58 * usize::from(centi) / usize::from(most.max(1));
    let title = format!(
        "{}: {} dB, planned {:.2}",
        port.name,
        port.measured.map_or("–".to_owned(), |it| format!("{:.2}", f64::from(it) / 100.0)),
        f64::from(port.expected) / 100.0
    );
    html! {
        g {
            title { (title) }
            @if let Some(measured) = port.measured {
                rect class=(loss_class(port.dimness)) x=(9 * idx + 1) y=(y(measured))
                    width="7" height=(60 - y(measured)) {}
            }
            rect.planned x=(9 * idx) y=(y(port.expected)) width="9" height="1" {}
        }
    }
}

fn loss_class(dimness: Dimness) -> &'static str {
    match dimness {
        Dimness::Unknown => "unknown",
        Dimness::Clear => "clear",
        Dimness::Near => "near",
        Dimness::High => "high",
    }
}

/// The number of a port on its side.
fn slot(port: &str) -> usize {
    port.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
}

fn class_of(pair: &PairView) -> &'static str {
    match (pair.intended, pair.actual) {
        (true, true) => "right",
        (true, false) => "missing",
        (false, _) => "loose",
    }
}

fn state_of(pair: &PairView) -> &'static str {
    match (pair.intended, pair.actual) {
        (true, true) => "as intended",
        (true, false) => "intended, not there",
        (false, _) => "left over, serves nobody",
    }
}
