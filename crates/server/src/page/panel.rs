//! The patch panel: how the mirrors stand against how they ought to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_model::fabric::Side;
use selvedge_model::id::PartId;

use crate::api::switch::{self, Intent, PairView, SwitchDetail, SwitchView};
use crate::page::{colour, pod};
use crate::shell::Shell;

/// Width of one north port's tick, height of a strip, and the room for its name.
const TICK: usize = 5;
const STRIP: usize = 9;
const NAME: usize = 40;

/// One switch as a strip with a tick for each north port.
struct Strip {
    view: SwitchView,
    n_north: usize,
    right: String,
    missing: String,
    loose: String,
}

/// All switches.
pub(super) struct Panel {
    strips: Vec<Strip>,
}

impl Panel {
    /// The panel of now.
    pub(super) fn of(shell: &Shell) -> Self {
        let intent = switch::intent(shell);
        let ids: Vec<PartId> = shell.core().state().switches.keys().copied().collect();
        let strips = switch::views(shell).into_iter().zip(ids);
        Self { strips: strips.map(|(view, id)| strip(shell, &intent, view, id)).collect() }
    }

    /// The panel as a picture: a strip for each switch.
    pub(super) fn draw(&self) -> Markup {
        let n_north = self.strips.iter().map(|it| it.n_north).max().unwrap_or(0);
        let (width, row) = (NAME + TICK * n_north, STRIP + 3);
        let n_differ: usize = self.strips.iter().map(|it| it.view.n_differ).sum();
        let n_unknown = self.strips.iter().filter(|it| !it.view.known).count();
        html! {
            p.sum #ocs-sum { (self.strips.len()) " switches, " (n_differ) " pairs differ"
                @if 0 < n_unknown { ", " (n_unknown) " not read" } }
            svg.panel viewBox=(format!("0 0 {width} {}", row * self.strips.len())) role="img"
                aria-label="mirror pairs, intended against actual" {
                @for (idx, strip) in self.strips.iter().enumerate() {
                    (strip.draw(row * idx, width))
                }
            }
            ul.legend {
                li { span.swatch.right {} "as intended" }
                li { span.swatch.missing {} "intended, not there" }
                li { span.swatch.loose {} "left over, serves nobody" }
            }
        }
    }
}

impl Strip {
    fn draw(&self, y: usize, width: usize) -> Markup {
        let view = &self.view;
        let title = format!(
            "{}: {} pairs, {} intended, {} differ",
            view.name, view.n_pairs, view.n_intended, view.n_differ
        );
        let class = match () {
            () if !view.cases.is_empty() || view.drained => "ocs out",
            () if 0 < view.n_differ => "ocs differ",
            () if !view.known => "ocs unknown",
            () => "ocs",
        };
        html! {
            a href=(format!("/switches/{}", view.name)) data-ocs=(view.name)
                data-differ=(view.n_differ) aria-label=(title) {
                title { (title) }
                g class=(class) transform=(format!("translate(0 {y})")) {
                    rect.back width=(width) height=(STRIP) {}
                    text x=(NAME - 4) y="8" { (view.name) }
                    path.right d=(self.right) {}
                    path.missing d=(self.missing) {}
                    path.loose d=(self.loose) {}
                }
            }
        }
    }
}

fn strip(shell: &Shell, intent: &Intent, view: SwitchView, id: PartId) -> Strip {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let (none, standing) = (BTreeMap::new(), &state.switches[&id].pairs);
    let wanted = intent.get(&id).unwrap_or(&none);
    let ports = fabric.template_of(id).ports().iter().enumerate();
    let norths = ports.filter(|(_, port)| port.side == Side::North).map(|(place, _)| place as u16);
    let mut strip = Strip {
        view,
        n_north: 0,
        right: String::new(),
        missing: String::new(),
        loose: String::new(),
    };
    for (idx, north) in norths.enumerate() {
        strip.n_north += 1;
        let want = wanted.keys().find(|it| it.0 == north).map(|it| it.1);
        let path = match (want, standing.get(&north).copied()) {
            (Some(want), Some(is)) if want == is => &mut strip.right,
            (Some(_), _) => &mut strip.missing,
            (None, Some(_)) => &mut strip.loose,
            (None, None) => continue,
        };
        write!(path, "M{} 1v{}", NAME + TICK * idx + TICK / 2, STRIP - 2)
            .expect("a string takes it");
    }
    strip
}

/// One switch: its pairs as lines from north to south.
pub(super) fn one(detail: &SwitchDetail) -> Markup {
    let view = &detail.switch;
    html! {
        h1 { (view.name) }
        dl.bar {
            div { dt { "pairs" } dd { (view.n_pairs) " stand, " (view.n_intended) " intended" } }
            div { dt { "differ" } dd { (view.n_differ) } }
            div { dt { "generation" } dd { (view.generation) } }
            div { dt { "read" } dd {
                @if view.known { "since the last start" } @else { "not yet" }
            } }
        }
        (pod::drains(&detail.drains))
        section { h2 { "Mirrors" } (lines(&detail.pairs)) }
        section {
            h2 { "Pairs" }
            div.wide { table {
                thead { tr { th { "north" } th { "south" } th { "light from" } th { "to" }
                    th { "job" } th { "state" } } }
                tbody { @for pair in &detail.pairs {
                    tr class=(class_of(pair)) {
                        td { (pair.north) } td { (pair.south) }
                        td { (pair.from.as_deref().unwrap_or("–")) }
                        td { (pair.to.as_deref().unwrap_or("–")) }
                        td { @if let Some(job) = pair.job {
                            a href=(format!("/jobs/{job}")) { "#" (job) } } }
                        td { (state_of(pair)) }
                    }
                } }
            } }
        }
    }
}

fn lines(pairs: &[PairView]) -> Markup {
    let place = |port: &str| port[1..].parse::<usize>().unwrap_or(0);
    let n_slots = pairs.iter().flat_map(|it| [place(&it.north), place(&it.south)]).max();
    let height = 9 * (n_slots.unwrap_or(0) + 2);
    html! {
        svg.mirrors viewBox=(format!("0 0 400 {height}")) role="img"
            aria-label="pairs from north ports on the left to south ports on the right" {
            @for pair in pairs {
                @let (y, y_to) = (9 * place(&pair.north) + 9, 9 * place(&pair.south) + 9);
                g class=(class_of(pair)) {
                    title { (pair.north) " – " (pair.south) ": " (state_of(pair)) }
                    text x="30" y=(y + 3) { (pair.north) }
                    path d=(format!("M40 {y}L360 {y_to}"))
                        stroke=(pair.job.map_or_else(|| "currentColor".to_owned(), colour)) {}
                    text.south x="370" y=(y_to + 3) { (pair.south) }
                }
            }
        }
    }
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
