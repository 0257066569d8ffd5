//! The pod map: every part that jobs run on, by what it does and how it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_model::fabric::NodeKind;
use selvedge_model::fault::Target;
use selvedge_model::id::{NodeId, PartId};

use crate::api::hardware::{self, CubeView};
use crate::page::sheet::{address, colour, counted, inert, map_legend, more};
use crate::shell::Shell;

/// Width and height of a tile, and the steps to its neighbours.
const TILE: [usize; 2] = [72, 58];
const STEP: [usize; 2] = [77, 63];
/// Tiles in a row where the parts stand on no grid.
const PER_ROW: usize = 8;
/// More parts than this in a pod are drawn as cells: by job, and one by one only where something is
/// wrong with them.
const TILES_MAX: usize = 256;
/// Side of a cell, and the step to its neighbours.
const CELL: usize = 9;
const CELL_STEP: usize = 10;
/// Cells in a row where the parts stand on no grid.
const CELLS_PER_ROW: usize = 80;

/// One part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) view: CubeView,
    /// Column and row.
    pub(super) at: [usize; 2],
    /// Its machines, where they are not all alike.
    pub(super) machines: Vec<Seat>,
}

impl Spot {
    /// Whether it, or something in it, is drained.
    pub(super) fn has_drain(&self) -> bool {
        let is_in = self.machines.iter().any(|it| it.drained);
        self.view.drained || is_in || 0 < self.view.links_drained
    }
}

/// One machine of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) job: Option<u32>,
    pub(super) out: bool,
    pub(super) drained: bool,
}

/// The parts of one pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) spots: Vec<Spot>,
}

/// All pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Map {
    pub(super) pods: Vec<Plan>,
    /// What the jobs on them are called.
    pub(super) names: BTreeMap<u32, String>,
}

impl Map {
    /// The map of now.
    pub(super) fn of(shell: &Shell) -> Self {
        let (core, state) = (shell.core(), shell.core().state());
        let mut pods: Vec<Plan> = Vec::new();
        let seats = Seats::of(shell);
        for view in hardware::cube_views(shell).into_iter() {
            let pod = view.pod.clone().unwrap_or_default();
            let idx = pods.iter().position(|it| it.name == pod).unwrap_or_else(|| {
                pods.push(Plan { name: pod, spots: Vec::new() });
                pods.len() - 1
            });
            let part = core.fabric().part_named(&view.name);
            let at = part.and_then(|it| cell_of(shell, it)).unwrap_or([usize::MAX; 2]);
            let machines = part.map_or_else(Vec::new, |it| seats.of_part(shell, it));
            pods[idx].spots.push(Spot { view, at, machines });
        }
        for pod in &mut pods {
            let per_row = if TILES_MAX < pod.spots.len() { CELLS_PER_ROW } else { PER_ROW };
            for (idx, spot) in pod.spots.iter_mut().enumerate() {
                if spot.at == [usize::MAX; 2] {
                    spot.at = [idx % per_row, idx / per_row];
                }
            }
        }
        let names = state.active.iter().map(|id| (id.number(), state.jobs[*id].spec.name.clone()));
        Self { pods, names: names.collect() }
    }

    /// Takes the pod called `name` off the map.
    pub(super) fn take(&mut self, name: &str) -> Option<Plan> {
        let idx = self.pods.iter().position(|it| it.name == name)?;
        Some(self.pods.remove(idx))
    }

    /// The map and its legend.
    pub(super) fn draw(&self) -> Markup {
        html! {
            div.pods {
                @for pod in &self.pods {
                    figure {
                        @if 1 < self.pods.len() { figcaption { (pod.name) } }
                        @if pod.spots.len() <= TILES_MAX { (self.tiles(pod)) }
                        @else { (self.cells(pod)) }
                    }
                }
            }
            @if self.pods.is_empty() { p.none { "The plant has nothing that jobs could run on." } }
            (map_legend("held, one colour for each job", &[]))
        }
    }

    fn tiles(&self, pod: &Plan) -> Markup {
        let most = |axis: usize| pod.spots.iter().map(|it| it.at[axis] + 1).max().unwrap_or(1);
        let (width, height) = (STEP[0] * most(0) - 5, STEP[1] * most(1) - 5);
        html! {
            svg.pod viewBox=(format!("0 0 {width} {height}")) role="group" data-keys=(most(0))
                aria-label=(format!("map of {}", pod.name)) {
                @for spot in &pod.spots { (self.tile(spot)) }
            }
        }
    }

    /// One part: filled with the colour of its job, machine by machine where they differ, framed
    /// by its health.
    fn tile(&self, spot: &Spot) -> Markup {
        let cube = &spot.view;
        let label = self.label(spot);
        let [x, y] = [STEP[0] * spot.at[0], STEP[1] * spot.at[1]];
        html! {
            a href=(address("/cubes/", &cube.name)) data-key=(cube.name) data-cube=(cube.name)
                class=(format!("cube {}", cube.health)) aria-label=(label)
                data-drained[spot.has_drain()]
                transform=(format!("translate({x} {y})")) {
                title { (label) }
                rect.back width=(TILE[0]) height=(TILE[1]) rx="5" {}
                @if spot.machines.is_empty() {
                    @if let Some(job) = cube.jobs.first().filter(|_| 0 < cube.chips_used) {
                        rect.fill width=(TILE[0]) height=(TILE[1]) rx="5" fill=(colour(*job))
                            data-job=(job) {}
                    }
                } @else { (machines(&spot.machines)) }
                @if cube.drained { (hatch(0, 0, TILE)) }
                rect.edge x="1.5" y="1.5" width=(TILE[0] - 3) height=(TILE[1] - 3) rx="4" {}
                text.no x="7" y="19" { (short(&cube.name)) }
                @match cube.jobs.as_slice() {
                    [] => {}
                    [job] => text.job x="7" y=(TILE[1] - 8) { "#" (job) },
                    jobs => text.job x="7" y=(TILE[1] - 8) { (jobs.len()) " jobs" },
                }
                @if !cube.cases.is_empty() {
                    circle.cased cx=(TILE[0] - 11) cy="13" r="7" {}
                    text.cases x=(TILE[0] - 11) y="17" { (cube.cases.len()) }
                }
            }
        }
    }

    /// A pod of very many parts: a shape for each job, and a link for each part that is not well.
    fn cells(&self, pod: &Plan) -> Markup {
        let most = |axis: usize| pod.spots.iter().map(|it| it.at[axis] + 1).max().unwrap_or(1);
        let (width, height) = (CELL_STEP * most(0), CELL_STEP * most(1));
        let mut by_job: BTreeMap<Option<u32>, String> = BTreeMap::new();
        for spot in &pod.spots {
            let path = by_job.entry(spot.view.jobs.first().copied()).or_default();
            write!(path, "{}", cell(spot.at)).expect("a string takes it");
        }
        let is_ill =
            |it: &&Spot| it.view.health != "ok" || it.has_drain() || !it.view.cases.is_empty();
        html! {
            svg.pod.cells viewBox=(format!("0 0 {width} {height}")) role="group"
                aria-label=(format!("map of {}", pod.name)) {
                @for (job, path) in &by_job {
                    @match job {
                        None => path.back d=(path) {},
                        Some(job) => {
                            @let title = format!("job {job} {}", self.name_of(*job));
                            a href=(format!("/jobs/{job}")) data-key=(format!("job{job}"))
                                data-job=(job) aria-label=(title) {
                                title { (title) }
                                path.fill d=(path) fill=(colour(*job)) {}
                            }
                        }
                    }
                }
                @for spot in pod.spots.iter().filter(is_ill) {
                    @let label = self.label(spot);
                    a href=(address("/cubes/", &spot.view.name)) data-key=(spot.view.name)
                        class=(format!("cube {}", spot.view.health)) aria-label=(label)
                        data-cube=(spot.view.name) data-drained[spot.has_drain()] {
                        title { (label) }
                        path.edge d=(cell(spot.at)) {}
                    }
                }
            }
            (more(pod.spots.len(), pod.spots.iter().filter(is_ill).count(), "selvedge cube show"))
        }
    }

    fn name_of(&self, job: u32) -> String {
        self.names.get(&job).map_or_else(String::new, |it| inert(it))
    }

    /// A part in words.
    pub(super) fn label(&self, spot: &Spot) -> String {
        let cube = &spot.view;
        let mut label = format!("{}: {}", cube.name, cube.health);
        for job in cube.jobs.iter().take(4) {
            write!(label, ", job {job} {}", self.name_of(*job)).expect("a string takes it");
        }
        if cube.jobs.is_empty() {
            label.push_str(", free");
        }
        let n_machines = spot.machines.iter().filter(|it| it.drained).count();
        if cube.drained {
            label.push_str(", drained");
        } else if 0 < n_machines {
            let n = counted(n_machines, "machine", "machines");
            write!(label, ", {n} drained").expect("a string takes it");
        }
        if 0 < cube.links_drained {
            let n = counted(cube.links_drained as usize, "link", "links");
            write!(label, ", {n} drained").expect("a string takes it");
        }
        for case in cube.cases.iter().take(4) {
            write!(label, ", case {case}").expect("a string takes it");
        }
        label
    }
}

/// What drained parts are hatched with.
pub(super) fn hatching() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" {
            defs {
                pattern #hatch width="7" height="7" patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)" {
                    rect width="2.4" height="7" {}
                }
            }
        }
    }
}

fn cell(at: [usize; 2]) -> String {
    format!("M{} {}h{CELL}v{CELL}h-{CELL}z", CELL_STEP * at[0], CELL_STEP * at[1])
}

fn hatch(x: usize, y: usize, size: [usize; 2]) -> Markup {
    html! {
        rect.hatch x=(x) y=(y) width=(size[0]) height=(size[1]) rx="5" fill="url(#hatch)" {}
    }
}

/// The machines of a part, four in a row.
fn machines(machines: &[Seat]) -> Markup {
    let (per_row, n_rows) = (4, machines.len().div_ceil(4).max(1));
    let size = [(TILE[0] - 6) / per_row - 1, (TILE[1] - 6) / n_rows - 1];
    html! {
        @for (idx, seat) in machines.iter().enumerate() {
            @let x = 4 + (size[0] + 1) * (idx % per_row);
            @let y = 4 + (size[1] + 1) * (idx / per_row);
            @if let Some(job) = seat.job {
                rect.fill x=(x) y=(y) width=(size[0]) height=(size[1]) fill=(colour(job))
                    data-job=(job) {}
            } @else if seat.out && !seat.drained {
                rect.gone x=(x) y=(y) width=(size[0]) height=(size[1]) {}
            } @else {
                rect.seat x=(x) y=(y) width=(size[0]) height=(size[1]) {}
            }
            @if seat.drained { (hatch(x, y, size)) }
        }
    }
}

/// The number at the end of a name, or all of a name without one.
fn short(name: &str) -> &str {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 { name } else { &name[name.len() - digits..] }
}

/// Column and row of a part that stands on a flat grid.
pub(super) fn cell_of(shell: &Shell, part: PartId) -> Option<[usize; 2]> {
    let pool = shell.core().fabric().part(part).pool?;
    let site = shell.core().layout().sites[pool].as_ref()?;
    let [x, y, z] = site.ground().grid().at(site.cell_of(part)?);
    (z == 0).then_some([x, y])
}

/// Who holds what of each part, gathered once.
struct Seats {
    holds: BTreeMap<PartId, Vec<(u32, u64)>>,
    /// Machines that are drained, or something in them.
    drained: BTreeSet<NodeId>,
}

impl Seats {
    fn of(shell: &Shell) -> Self {
        let state = shell.core().state();
        let mut holds: BTreeMap<PartId, Vec<(u32, u64)>> = BTreeMap::new();
        for &job in &state.active {
            for hold in state.jobs[job].place.iter().flat_map(|it| &it.holds) {
                holds.entry(hold.part).or_default().push((job.number(), hold.seats));
            }
        }
        let fabric = shell.core().fabric();
        let mut drained = BTreeSet::new();
        for target in state.drains.iter().filter(|(_, it)| !it.is_empty()).map(|it| it.0) {
            if let Target::Node(node) = target {
                drained.extend(std::iter::successors(Some(*node), |it| fabric.parent_of(*it)));
            }
        }
        Self { holds, drained }
    }

    /// The machines of `part`; none where all are alike.
    fn of_part(&self, shell: &Shell, part: PartId) -> Vec<Seat> {
        let (fabric, state) = (shell.core().fabric(), shell.core().state());
        let (template, known) = (fabric.template_of(part), &state.parts[part]);
        let holds = self.holds.get(&part).map_or(&[][..], Vec::as_slice);
        let machines = template.nodes().iter().enumerate();
        let machines = machines.filter(|(_, it)| it.kind == NodeKind::Machine);
        let seat = |(local, _): (usize, _)| {
            let under = template.seats_under(local);
            let job = holds.iter().find(|(_, seats)| seats & under != 0).map(|it| it.0);
            let out = under != 0 && known.out & under == under;
            Seat { job, out, drained: self.drained.contains(&fabric.node_at(part, local)) }
        };
        let seats: Vec<Seat> = machines.map(seat).collect();
        if seats.windows(2).all(|it| it[0] == it[1]) { Vec::new() } else { seats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(in crate::page) fn spot(number: usize) -> Spot {
        let view = CubeView {
            name: format!("cube{number}"),
            pod: Some("pod0".to_owned()),
            kind: "cube".to_owned(),
            chips: 64,
            chips_used: 0,
            chips_out: 0,
            ends_out: 0,
            jobs: Vec::new(),
            health: "ok".to_owned(),
            drained: false,
            links_drained: 0,
            cases: Vec::new(),
        };
        let at = [number % PER_ROW, number / PER_ROW];
        Spot { view, at, machines: Vec::new() }
    }

    fn map(spots: Vec<Spot>) -> Map {
        let names = BTreeMap::from([(7, "<b>\u{202e}evil".to_owned())]);
        Map { pods: vec![Plan { name: "pod0".to_owned(), spots }], names }
    }

    #[test]
    fn a_cube_shows_its_job_its_drain_and_its_cases() {
        let mut held = spot(9);
        held.view.jobs = vec![7];
        held.view.chips_used = 64;
        let mut ill = spot(10);
        ill.view.health = "degraded".to_owned();
        ill.view.links_drained = 2;
        ill.view.cases = vec![3, 4];
        ill.machines = vec![Seat::default(); 16];
        ill.machines[3].drained = true;
        ill.machines[5].out = true;
        let html = map(vec![spot(8), held, ill]).draw().into_string();
        assert_eq!(html.matches("data-cube=").count(), 3);
        assert_eq!(html.matches("data-job=\"7\"").count(), 1);
        assert!(html.contains("cube9: ok, job 7 &lt;b&gt;\\u{202e}evil"), "{html}");
        assert_eq!(html.matches("class=\"cube degraded\"").count(), 1, "{html}");
        assert_eq!(html.matches("data-drained").count(), 1, "{html}");
        let label = "cube10: degraded, free, 1 machine drained, 2 links drained, case 3, case 4";
        assert!(html.contains(label), "{html}");
        assert_eq!(html.matches("class=\"hatch\"").count(), 1, "one machine of sixteen");
        assert_eq!(html.matches("class=\"gone\"").count(), 1);
    }

    #[test]
    fn a_pod_of_thousands_is_a_shape_for_each_job_and_a_link_for_each_that_is_ill() {
        let mut spots: Vec<Spot> = (0..4096).map(spot).collect();
        for spot in &mut spots[100..1100] {
            spot.view.jobs = vec![7];
        }
        spots[5].view.health = "out".to_owned();
        let html = map(spots).draw().into_string();
        assert_eq!(html.matches("data-cube=").count(), 1);
        assert_eq!(html.matches("data-job=").count(), 1);
        assert!(html.len() < 100_000, "{}", html.len());
    }
}
