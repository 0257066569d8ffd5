//! The patch panel: how the mirrors stand against how they ought to, and what light they lose.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_model::fabric::{Fabric, Side};
use selvedge_model::id::{JobId, PartId, PortId};
use selvedge_model::unit::CentiDb;

use crate::api::switch::{self, Intent, SwitchView};
use crate::page::sheet::{Part, Sheet, address, counted};
use crate::shell::Shell;

/// Width of one north port's tick, height of a strip's two bands, and the room for its name.
const TICK: usize = 6;
const MIRROR: usize = 9;
const LOSS: usize = 3;
const NAME: usize = 30;
/// From one strip to the next.
const ROW: usize = MIRROR + 2 * LOSS + 6;
/// Room at the end for how many pairs differ.
const COUNT: usize = 24;

/// What a port loses, against what its cable was planned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimness {
    /// Nobody has measured it.
    Unknown,
    /// As planned, or nearly.
    Clear,
    /// More than half of the excess that the plant allows.
    Near,
    /// More than the plant allows.
    High,
}

/// How a north port's pair stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// No pair, and none intended.
    Dark,
    /// As intended.
    Right,
    /// Intended, and not there.
    Missing,
    /// There, and for nobody.
    Loose,
}

/// One north port and the south port across from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) tick: Tick,
    pub(super) north: Dimness,
    pub(super) south: Dimness,
}

/// One switch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Strip {
    pub(super) view: SwitchView,
    pub(super) slots: Vec<Slot>,
}

/// All switches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Panel {
    pub(super) strips: Vec<Strip>,
}

impl Panel {
    /// The panel of now.
    pub(super) fn of(shell: &Shell) -> Self {
        let intent = switch::intent(shell);
        let ids: Vec<PartId> = shell.core().state().switches.keys().copied().collect();
        let strips = switch::views(shell).into_iter().zip(ids);
        Self { strips: strips.map(|(view, id)| strip(shell, &intent, view, id)).collect() }
    }

    /// The page of all switches.
    pub(super) fn sheet(&self) -> Sheet {
        let parts = vec![Part::with("panel", self.heading(), self.draw())];
        Sheet { title: "switches".to_owned(), layout: "one", parts }
    }

    /// What heads the panel.
    pub(super) fn heading(&self) -> Markup {
        let n_differ: usize = self.strips.iter().map(|it| it.view.n_differ).sum();
        let n_unknown = self.strips.iter().filter(|it| !it.view.known).count();
        let n_high = self.strips.iter().map(Strip::n_high).sum::<usize>();
        html! {
            "Optical switches"
            span #ocs-sum.sum data-differ=(n_differ) {
                (self.strips.len()) " switches, "
                span.warn[0 < n_differ] { (counted(n_differ, "pair differs", "pairs differ")) }
                @if 0 < n_high { ", " span.warn {
                    (counted(n_high, "port loses too much", "ports lose too much")) } }
                @if 0 < n_unknown { ", " (n_unknown) " not read" }
            }
        }
    }

    /// The panel as a picture: a strip for each switch, in columns by dimension.
    pub(super) fn draw(&self) -> Markup {
        let mut groups: BTreeMap<&str, Vec<&Strip>> = BTreeMap::new();
        for strip in &self.strips {
            let name = strip.view.name.trim_end_matches(|c: char| c.is_ascii_digit());
            groups.entry(name).or_default().push(strip);
        }
        html! {
            @if self.strips.is_empty() { p.none { "The plant has no optical switches." } }
            @else {
                div.panels {
                    @for (name, strips) in &groups { (self.group(name, strips)) }
                }
                ul.legend {
                    li { span.swatch.right {} "as intended" }
                    li { span.swatch.missing {} "intended, not there" }
                    li { span.swatch.loose {} "left over, serves nobody" }
                    li { span.swatch.near {} "loss near the limit (above north, below south)" }
                    li { span.swatch.high {} "loss too high" }
                }
            }
        }
    }

    fn group(&self, name: &str, strips: &[&Strip]) -> Markup {
        let n_slots = strips.iter().map(|it| it.slots.len()).max().unwrap_or(0);
        let width = NAME + TICK * n_slots + COUNT;
        html! {
            svg.panel viewBox=(format!("0 0 {width} {}", ROW * strips.len())) role="group"
                data-keys="1"
                aria-label=(format!("switches {name}: pairs, intended against actual")) {
                @for (idx, strip) in strips.iter().enumerate() { (strip.draw(ROW * idx, n_slots)) }
            }
        }
    }
}

impl Strip {
    fn n_high(&self) -> usize {
        let ports = self.slots.iter().flat_map(|it| [it.north, it.south]);
        ports.filter(|it| *it == Dimness::High).count()
    }

    /// All ticks of one kind, as one path.
    fn ticks(&self, tick: Tick) -> String {
        let mut path = String::new();
        for (idx, _) in self.slots.iter().enumerate().filter(|(_, it)| it.tick == tick) {
            let x = NAME + TICK * idx + TICK / 2;
            write!(path, "M{x} 1v{}", MIRROR - 2).expect("a string takes it");
        }
        path
    }

    /// All ports that lose so much, as one path.
    fn losses(&self, dimness: Dimness) -> String {
        let mut path = String::new();
        for (idx, slot) in self.slots.iter().enumerate() {
            for (side, of_port) in [(0, slot.north), (1, slot.south)] {
                if of_port == dimness {
                    let (x, y) = (NAME + TICK * idx, MIRROR + 2 + (LOSS + 1) * side);
                    write!(path, "M{x} {y}h{}", TICK - 1).expect("a string takes it");
                }
            }
        }
        path
    }

    fn draw(&self, y: usize, n_slots: usize) -> Markup {
        let view = &self.view;
        let n_high = self.n_high();
        let label = format!(
            "{}: {} pairs, {} intended, {} differ, {n_high} ports lose too much{}{}",
            view.name,
            view.n_pairs,
            view.n_intended,
            view.n_differ,
            if view.drained { ", drained" } else { "" },
            match (view.silent_s, view.known) {
                (Some(_), _) => ", does not answer",
                (None, false) => ", not read",
                (None, true) => "",
            },
        );
        let class = match () {
            () if !view.cases.is_empty() || view.drained => "ocs out",
            () if 0 < view.n_differ => "ocs differ",
            () if !view.known || view.silent_s.is_some() => "ocs unknown",
            () => "ocs",
        };
        let width = TICK * n_slots;
        html! {
            a href=(address("/switches/", &view.name)) data-key=(view.name) data-ocs=(view.name)
                data-differ=(view.n_differ) class=(class) aria-label=(label)
                transform=(format!("translate(0 {y})")) {
                title { (label) }
                rect.hit width=(NAME + width + COUNT) height=(ROW - 2) rx="3" {}
                rect.back x=(NAME) width=(width) height=(MIRROR) rx="1" {}
                text.no x=(NAME - 6) y="8" { (view.name) }
                @for (class, tick) in
                    [("right", Tick::Right), ("missing", Tick::Missing), ("loose", Tick::Loose)] {
                    @let path = self.ticks(tick);
                    @if !path.is_empty() { path class=(class) d=(path) {} }
                }
                @for (class, dimness) in
                    [("clear", Dimness::Clear), ("near", Dimness::Near), ("high", Dimness::High)] {
                    @let path = self.losses(dimness);
                    @if !path.is_empty() { path class=(class) d=(path) {} }
                }
                @if 0 < view.n_differ {
                    text.n x=(NAME + width + 5) y="8" { (view.n_differ) }
                }
            }
        }
    }
}

fn strip(shell: &Shell, intent: &Intent, view: SwitchView, id: PartId) -> Strip {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let (none, standing) = (BTreeMap::new(), &state.switches[&id].pairs);
    let wanted: BTreeMap<u16, u16> = pairs(intent.get(&id).unwrap_or(&none));
    let ports = || fabric.template_of(id).ports().iter().enumerate();
    let on =
        |side: Side| ports().filter(move |(_, port)| port.side == side).map(|(place, _)| place);
    let dimness = |place: usize| dimness(shell, fabric.port_at(id, place));
    let slots = on(Side::North).zip(on(Side::South)).map(|(north, south)| {
        let place = u16::try_from(north).unwrap_or(u16::MAX);
        let tick = match (wanted.get(&place), standing.get(&place)) {
            (Some(want), Some(is)) if want == is => Tick::Right,
            (Some(_), _) => Tick::Missing,
            (None, Some(_)) => Tick::Loose,
            (None, None) => Tick::Dark,
        };
        Slot { tick, north: dimness(north), south: dimness(south) }
    });
    Strip { view, slots: slots.collect() }
}

fn pairs(wanted: &BTreeMap<(u16, u16), JobId>) -> BTreeMap<u16, u16> {
    wanted.keys().copied().collect()
}

/// What `port` loses, against what the plant allows there.
pub(super) fn dimness(shell: &Shell, port: PortId) -> Dimness {
    let fabric = shell.core().fabric();
    let measured = shell.plant().and_then(|it| it.loss_at(port));
    measured.map_or(Dimness::Unknown, |it| judged(fabric, port, it))
}

fn judged(fabric: &Fabric, port: PortId, measured: CentiDb) -> Dimness {
    let golden = &fabric.thresholds;
    let most = golden.loss_max.centi();
    let planned = fabric.cable_at(port).map_or(0, |it| it.loss_expected.centi());
    let limit = most.min(planned.saturating_add(golden.loss_excess_max.centi()));
    match measured.centi() {
        it if limit < it => Dimness::High,
        it if planned + limit.saturating_sub(planned) / 2 < it => Dimness::Near,
        _ => Dimness::Clear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(name: &str, slots: Vec<Slot>) -> Strip {
        let n_differ = slots.iter().filter(|it| it.tick == Tick::Missing).count();
        let view = SwitchView {
            name: name.to_owned(),
            pod: Some("pod0".to_owned()),
            n_pairs: 2,
            n_intended: 2,
            n_differ,
            generation: 4,
            known: true,
            silent_s: None,
            drained: false,
            links_drained: 0,
            cases: Vec::new(),
        };
        Strip { view, slots }
    }

    #[test]
    fn a_pair_that_is_not_there_and_a_dim_port_are_seen() {
        let (north, south) = (Dimness::Clear, Dimness::Clear);
        let slot = |tick| Slot { tick, north, south };
        let dim = Slot { south: Dimness::High, ..slot(Tick::Loose) };
        let panel = Panel {
            strips: vec![
                strip("x0", vec![slot(Tick::Right), slot(Tick::Missing)]),
                strip("y0", vec![dim, slot(Tick::Dark)]),
            ],
        };
        let html = panel.draw().into_string();
        assert_eq!(html.matches("<svg").count(), 2, "one for each dimension");
        assert!(html.contains("class=\"ocs differ\""), "{html}");
        assert!(html.contains("<path class=\"missing\" d=\"M39 1v7\">"), "{html}");
        assert!(html.contains("<path class=\"high\" d=\"M30 15h5\">"), "{html}");
        assert!(panel.heading().into_string().contains("1 pair differs"));
    }
}
