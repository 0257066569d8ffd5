//! One part that jobs run on: its machines, chips and links, its optical ends, its faults.

use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_family::torus::hardware::{self as torus, DIMS, SIDE};
use selvedge_model::fault::Target;
use selvedge_model::id::{PartId, PortId};

use crate::api::error::ApiError;
use crate::api::hardware::{self, CubeDetail, EndView, MachineView};
use crate::page::health::drain_list;
use crate::page::panel::{Dimness, dimness};
use crate::page::sheet::{
    Part, Sheet, badge, case_link, colour, cube_link, inert, job_link, none, table, tile,
};
use crate::shell::Shell;

/// Side of a chip's square, and the step to the next.
const CHIP: usize = 30;
const STEP: usize = 46;
/// Room around a layer, and the step to the next layer.
const MARGIN: usize = 12;
const LAYER: usize = 4 * STEP + 26;

/// What is known against a link.
pub(super) fn trouble(shell: &Shell, port: PortId) -> Option<String> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let link = fabric.link_from(port).map(|it| Target::Link(it.min(fabric.reverse(it))));
    link.into_iter().chain([Target::Port(port)]).find_map(|target| {
        let case = state.open_cases.get(&target).map(ToString::to_string);
        let drained = || state.drains.get(&target).is_some_and(|it| !it.is_empty());
        case.or_else(|| drained().then(|| "drained".to_owned()))
    })
}

/// One chip of a torus cube, by seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chip {
    pub(super) job: Option<u32>,
    pub(super) out: bool,
    /// What is known against its inner links in + direction, along x, y and z.
    pub(super) ahead: [Option<String>; 3],
}

/// One part.
#[derive(Clone, Debug)]
pub(super) struct CubePage {
    pub(super) detail: CubeDetail,
    /// What the part's ends lose, in the order of `detail.ends`.
    pub(super) dimness: Vec<Dimness>,
    /// The chips of a torus cube by seat; none for other parts.
    pub(super) chips: Vec<Chip>,
}

impl CubePage {
    /// The part of now.
    pub(super) fn of(shell: &Shell, name: &str) -> Result<Self, ApiError> {
        let detail = hardware::cube_detail(shell, name)?;
        let fabric = shell.core().fabric();
        let part = fabric.part_named(name).ok_or_else(|| ApiError::no_such("cube", name))?;
        let outer = fabric.ports_of(part).filter(|it| fabric.cable_at(*it).is_some());
        // A cable's loss is measured where the switch has its light.
        let of_end = |end: PortId| fabric.peer_of(end).map(|it| dimness(shell, it));
        let dimness = outer.map(|it| of_end(it).unwrap_or(Dimness::Unknown)).collect();
        let is_torus = detail.cube.kind == "cube" && detail.cube.chips as usize == torus::CHIPS;
        let chips = if is_torus { chips(shell, part, &detail) } else { Vec::new() };
        Ok(Self { detail, dimness, chips })
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let cube = &self.detail.cube;
        let mut parts = vec![self.head()];
        if !self.chips.is_empty() {
            parts.push(Part::new("layers", "Chips and links, layer by layer", self.layers()));
            parts.push(Part::new("faces", "Optical ends, face by face", self.faces()));
        }
        parts.push(Part::new("machines", "Machines", machines(&self.detail.machines)));
        parts.push(Part::new("ends", "Where each end leads", self.ends()));
        Sheet { title: cube.name.clone(), layout: "cube", parts }
    }

    fn head(&self) -> Part {
        let cube = &self.detail.cube;
        Part::head(
            "head",
            html! {
                h1 { (cube.name) " " (badge(&format!("health-{}", cube.health), &cube.health))
                    @if cube.drained { " " (badge("drained", "drained")) }
                    @for case in &cube.cases { " " (case_link(*case)) } }
                dl.tiles {
                    (tile("pod", html! { (cube.pod.as_deref().unwrap_or("none")) }))
                    (tile("chips in use", html! {
                        (cube.chips_used) small { " of " (cube.chips) } }))
                    (tile("chips out", html! {
                        span.warn[0 < cube.chips_out] { (cube.chips_out) } }))
                    (tile("outer links out", html! {
                        span.warn[0 < cube.ends_out] { (cube.ends_out) }
                    }))
                    (tile("jobs", html! {
                        @for job in &cube.jobs { (job_link(*job)) " " }
                        @if cube.jobs.is_empty() { "none" }
                    }))
                }
                (drain_list(&self.detail.drains))
            },
        )
    }

    /// Four layers side by side: a square for each chip, a frame for each machine, a line for each
    /// link along x and y, a corner for the link to the next layer.
    fn layers(&self) -> Markup {
        let (width, height) = (LAYER * SIDE + MARGIN, LAYER + 6);
        html! {
            svg.layers viewBox=(format!("0 0 {width} {height}")) role="img"
                aria-label="64 chips in four layers of 4 by 4" {
                @for z in 0..SIDE {
                    g transform=(format!("translate({} 20)", MARGIN + LAYER * z)) {
                        text.layer x="0" y="-6" { "z = " (z) }
                        (self.layer(z))
                    }
                }
            }
            ul.legend {
                li { span.swatch.free {} "free chip" }
                li { span.swatch.held {} "held, coloured by job" }
                li { span.swatch.out {} "out of use" }
                li { span.swatch.linkill {} "link not well" }
                li { "x runs to the right, y downwards; a corner leads to the next layer" }
            }
        }
    }

    fn layer(&self, z: usize) -> Markup {
        let mut well = String::new();
        for seat in (0..torus::CHIPS).filter(|seat| torus::chip(*seat)[2] == z) {
            for dim in (0..3).filter(|dim| torus::chip(seat)[*dim] + 1 < SIDE) {
                if self.chips[seat].ahead[dim].is_none() {
                    well.push_str(&link(torus::chip(seat), dim));
                }
            }
        }
        html! {
            path.link d=(well) {}
            @for machine in 0..4 {
                @let (x, y) = (2 * STEP * (machine % 2), 2 * STEP * (machine / 2));
                @let side = STEP + CHIP + 8;
                rect.machine x=(x) y=(y) width=(side) height=(side) rx="6" {}
                text.machine x=(x + side / 2) y=(y + side / 2 + 3) {
                    (format!("m{:02}", machine + 4 * z))
                }
            }
            @for seat in (0..torus::CHIPS).filter(|seat| torus::chip(*seat)[2] == z) {
                (self.chip(seat))
            }
        }
    }

    fn chip(&self, seat: usize) -> Markup {
        let (at, chip) = (torus::chip(seat), &self.chips[seat]);
        let (x, y) = (STEP * at[0] + 4, STEP * at[1] + 4);
        let class = if chip.out { "chip out" } else { "chip" };
        let job = chip.job.map_or("free".to_owned(), |it| format!("job {it}"));
        let title = format!("chip {}.{}.{}: {job}", at[0], at[1], at[2]);
        html! {
            g class=(class) data-chip=(format!("{}.{}.{}", at[0], at[1], at[2])) {
                title { (title) @if chip.out { ", out of use" } }
                rect x=(x) y=(y) width=(CHIP) height=(CHIP) rx="4"
                    fill=[chip.job.map(colour)] {}
            }
            @for (dim, why) in chip.ahead.iter().enumerate() {
                @if let Some(why) = why {
                    g {
                        title {
                            "+" (DIMS[dim]) " link of chip " (at[0]) "." (at[1]) "." (at[2]) ": "
                            (why)
                        }
                        path.linkill d=(link(at, dim)) {}
                    }
                }
            }
        }
    }

    /// Six faces of sixteen ends each.
    fn faces(&self) -> Markup {
        html! {
            div.faces {
                @for dim in DIMS { @for polarity in ["in", "out"] {
                    (self.face(&format!("{dim}/{polarity}")))
                } }
            }
            ul.legend {
                li { span.swatch.joined {} "joined by a switch" }
                li { span.swatch.free {} "dark" }
                li { span.swatch.near {} "loss near the limit" }
                li { span.swatch.out {} "out of use, or loss too high" }
            }
        }
    }

    fn face(&self, face: &str) -> Markup {
        let start = format!("{}/{face}/", self.detail.cube.name);
        let ends = self.detail.ends.iter().zip(&self.dimness);
        let ends = ends.filter_map(|(end, dim)| {
            Some((end.path.strip_prefix(&start)?.parse::<usize>().ok()?, end, *dim))
        });
        html! {
            figure {
                figcaption { (face) }
                svg.face viewBox="0 0 84 84" role="img"
                    aria-label=(format!("ends of face {face}")) {
                    @for (index, end, dim) in ends {
                        @let title = format!("{face}/{index} to {}, joined to {}{}",
                            end.to.as_deref().unwrap_or("nothing"),
                            end.peer.as_deref().unwrap_or("nothing"),
                            if end.out { ", out of use" } else { "" });
                        g class=(end_class(end, dim)) {
                            title { (title) }
                            rect x=(21 * (index / 4) + 1) y=(21 * (index % 4) + 1) width="19"
                                height="19" rx="9" {}
                            text x=(21 * (index / 4) + 10) y=(21 * (index % 4) + 14) { (index) }
                        }
                    }
                }
            }
        }
    }

    fn ends(&self) -> Markup {
        let ends = &self.detail.ends;
        if ends.is_empty() {
            return none("It has no cables.");
        }
        html! {
            details {
                summary { (ends.len()) " ends, "
                    (ends.iter().filter(|it| it.peer.is_some()).count())
                    " joined, " (ends.iter().filter(|it| it.out).count()) " out of use" }
                (table("ends", &["end", "cable to", "joined to", "state"], html! {
                    @for end in ends {
                        tr data-key=(end.path) {
                            td { (end.path) }
                            td { (end.to.as_deref().unwrap_or("not cabled")) }
                            td { @match &end.peer {
                                Some(peer) => {
                                    @let cube = peer.split('/').next().unwrap_or(peer);
                                    @if cube == peer { (peer) } @else { (cube_link(cube))
                                        (peer[cube.len()..]) }
                                }
                                None => "–",
                            } }
                            td { @if end.out { (badge("health-out", "out of use")) }
                                @else { "ok" } }
                        }
                    }
                }))
            }
        }
    }
}

/// The line of the link that leaves chip `at` in + direction along `dim`.
fn link(at: [usize; 3], dim: usize) -> String {
    let (x, y) = (STEP * at[0] + 4, STEP * at[1] + 4);
    let mut path = String::new();
    let told = match dim {
        0 => write!(path, "M{} {}h{}", x + CHIP, y + CHIP / 2, STEP - CHIP),
        1 => write!(path, "M{} {}v{}", x + CHIP / 2, y + CHIP, STEP - CHIP),
        _ => write!(path, "M{} {}l4 4", x + CHIP - 1, y + CHIP - 1),
    };
    told.expect("a string takes it");
    path
}

fn end_class(end: &EndView, dim: Dimness) -> &'static str {
    match (end.out, dim, &end.peer) {
        (true, ..) | (false, Dimness::High, _) => "end out",
        (false, Dimness::Near, _) => "end near",
        (false, Dimness::Clear | Dimness::Unknown, Some(_)) => "end joined",
        (false, Dimness::Clear | Dimness::Unknown, None) => "end",
    }
}

fn machines(machines: &[MachineView]) -> Markup {
    let heads = ["machine", "state", "jobs", "chips", "cases", "out of use by"];
    let row = |machine: &MachineView| {
        let mut jobs: Vec<u32> = machine.chips.iter().filter_map(|it| it.job).collect();
        jobs.dedup();
        let n_out = machine.chips.iter().filter(|it| it.out).count();
        html! {
            tr data-key=(machine.path) data-machine=(machine.path)
                data-drained[!machine.drains.is_empty()] {
                td { (machine.path) }
                td { @match (machine.out, machine.drains.is_empty()) {
                    (_, false) => (badge("drained", "drained")),
                    (true, true) => (badge("health-out", "out of use")),
                    (false, true) => (badge("health-ok", "ok")),
                } }
                td { @for job in jobs { (job_link(job)) " " } }
                td.n { (machine.chips.len()) @if 0 < n_out { small.warn { " " (n_out) " out" } } }
                td { @for case in &machine.cases { (case_link(*case)) " " } }
                td { @for drain in &machine.drains {
                    (inert(&drain.by))
                    @if !drain.why.is_empty() { ": " bdi { (inert(&drain.why)) } }
                    " "
                } }
            }
        }
    };
    html! {
        @if machines.is_empty() { (none("It has no machines of its own.")) }
        @else { (table("machines", &heads, html! { @for it in machines { (row(it)) } })) }
    }
}

/// The chips of a torus cube.
fn chips(shell: &Shell, part: PartId, detail: &CubeDetail) -> Vec<Chip> {
    let fabric = shell.core().fabric();
    let mut chips = vec![Chip::default(); torus::CHIPS];
    for view in detail.machines.iter().flat_map(|it| &it.chips) {
        let Some(seat) = seat_of(&view.path) else { continue };
        chips[seat].job = view.job;
        chips[seat].out = view.out;
    }
    for (seat, chip) in chips.iter_mut().enumerate() {
        let at = torus::chip(seat);
        for dim in (0..3).filter(|dim| at[*dim] + 1 < SIDE) {
            let port = fabric.port_at(part, torus::ici_port(at, dim, true));
            chip.ahead[dim] = trouble(shell, port);
        }
    }
    chips
}

/// The seat of the chip at `path`: `cube3/chip1.2.3`.
fn seat_of(path: &str) -> Option<usize> {
    let mut at = path.rsplit_once("chip")?.1.split('.').map(|it| it.parse::<usize>().ok());
    let at = [at.next()??, at.next()??, at.next()??];
    at.iter().all(|it| *it < SIDE).then(|| torus::seat(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_found_by_their_paths() {
        assert_eq!(seat_of("cube3/chip1.2.3"), Some(1 + 4 * 2 + 16 * 3));
        for path in ["cube3/chip1.2", "cube3/chip4.0.0", "cube3/gpu1", "chip"] {
            assert_eq!(seat_of(path), None, "{path}");
        }
    }
}
