//! The pod map, and one cube.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::api::hardware::{CubeDetail, CubeView, DrainView};
use crate::page::colour;
use crate::page::lists::Jobs;

/// Side of a cube's square and the step to the next one.
const SIDE: usize = 40;
const STEP: usize = 44;
/// Cubes in a row of the map; rows of hosts are longer, for there are more of them.
const PER_ROW: usize = 8;
const HOSTS_PER_ROW: usize = 32;
/// More parts than this are counted, not drawn: nobody could tell them apart.
const DRAWN_MAX: usize = 1024;

/// All parts that jobs run on, by pod.
pub(super) fn map(cubes: &[CubeView], jobs: &Jobs) -> Markup {
    let mut pods: BTreeMap<&str, Vec<&CubeView>> = BTreeMap::new();
    for cube in cubes {
        pods.entry(cube.pod.as_deref().unwrap_or("alone")).or_default().push(cube);
    }
    html! {
        @for (name, cubes) in &pods {
            @if 1 < pods.len() { h3 { (name) } }
            (one_pod(cubes, jobs))
        }
        ul.legend {
            li { span.swatch.free {} "free" }
            li { span.swatch.held {} "held, coloured by job" }
            li { span.swatch.degraded {} "degraded" }
            li { span.swatch.out {} "out of use" }
            li { span.swatch.drained {} "drained" }
        }
    }
}

fn one_pod(cubes: &[&CubeView], jobs: &Jobs) -> Markup {
    let drawn = &cubes[..cubes.len().min(DRAWN_MAX)];
    let per_row = if drawn.len() <= 64 { PER_ROW } else { HOSTS_PER_ROW };
    let (width, height) = (STEP * per_row.min(drawn.len()), STEP * drawn.len().div_ceil(per_row));
    html! {
        svg.pod viewBox=(format!("0 0 {width} {height}")) role="img" aria-label="cubes by job" {
            @for (idx, cube) in drawn.iter().enumerate() {
                (square(cube, STEP * (idx % per_row), STEP * (idx / per_row), jobs))
            }
        }
        @if drawn.len() < cubes.len() {
            p.more { (cubes.len() - drawn.len()) " more are not drawn" }
        }
    }
}

/// One cube: filled from below as far as it is held, framed by its health.
fn square(cube: &CubeView, x: usize, y: usize, jobs: &Jobs) -> Markup {
    let held = SIDE * cube.chips_used as usize / cube.chips.max(1) as usize;
    let title = title(cube, jobs);
    let class = format!("cube {}{}", cube.health, if cube.drained { " drained" } else { "" });
    html! {
        a href=(format!("/cubes/{}", cube.name)) data-cube=(cube.name) aria-label=(title) {
            title { (title) }
            g class=(class) transform=(format!("translate({x} {y})")) {
                rect.back width=(SIDE) height=(SIDE) rx="4" {}
                @if let Some(job) = cube.jobs.first() {
                    rect.fill y=(SIDE - held) width=(SIDE) height=(held) rx="4" fill=(colour(*job))
                        data-job=(job) {}
                }
                rect.edge x="1" y="1" width=(SIDE - 2) height=(SIDE - 2) rx="4" {}
                @if cube.drained { path.mark d="M6 6L34 34M34 6L6 34" {} }
                text x="20" y="18" { (short(&cube.name)) }
                @if let Some(job) = cube.jobs.first() { text.job x="20" y="32" { "#" (job) } }
            }
        }
    }
}

fn title(cube: &CubeView, jobs: &Jobs) -> String {
    let mut title = format!("{}: {}", cube.name, cube.health);
    for job in &cube.jobs {
        title.push_str(&format!(", job {job} {}", jobs.name_of(*job)));
    }
    if cube.jobs.is_empty() {
        title.push_str(", free");
    }
    match cube.links_drained {
        _ if cube.drained => title.push_str(", drained"),
        0 => (),
        1 => title.push_str(", 1 link drained"),
        n => title.push_str(&format!(", {n} links drained")),
    }
    for case in &cube.cases {
        title.push_str(&format!(", case {case}"));
    }
    title
}

/// The number at the end of a name.
fn short(name: &str) -> &str {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 { name } else { &name[name.len() - digits..] }
}

/// One cube with its machines, chips and ends.
pub(super) fn cube(detail: &CubeDetail) -> Markup {
    let cube = &detail.cube;
    html! {
        h1 { (cube.name) }
        dl.bar {
            div { dt { "health" } dd { (cube.health) } }
            div { dt { "chips used" } dd { (cube.chips_used) " of " (cube.chips) } }
            div { dt { "chips out" } dd { (cube.chips_out) } }
            div { dt { "ends out" } dd { (cube.ends_out) } }
            div { dt { "jobs" } dd {
                @for job in &cube.jobs { a href=(format!("/jobs/{job}")) { "#" (job) } " " }
                @if cube.jobs.is_empty() { "none" }
            } }
        }
        (drains(&detail.drains))
        section {
            h2 { "Machines" }
            div.wide { table {
                thead { tr { th { "machine" } th { "chips" } th { "state" } th { "cases" } } }
                tbody { @for machine in &detail.machines {
                    tr {
                        td { (machine.path) }
                        td { @for chip in &machine.chips {
                            @let class = if chip.out { "chip out" } else { "chip" };
                            span class=(class) title=(chip.path) {
                                @match chip.job { Some(job) => { "#" (job) } None => { "·" } }
                            }
                        } }
                        td { @if machine.out { "out of use" }
                            @else if machine.drains.is_empty() { "ok" } @else { "drained" } }
                        td { @for case in &machine.cases { "case " (case) " " } }
                    }
                } }
            } }
        }
        section {
            h2 { "Optical ends" }
            div.wide { table {
                thead { tr { th { "end" } th { "switch port" } th { "joined to" } th { "state" } } }
                tbody { @for end in &detail.ends {
                    tr {
                        td { (end.path) }
                        td { (end.to.as_deref().unwrap_or("not cabled")) }
                        td { (end.peer.as_deref().unwrap_or("–")) }
                        td { @if end.out { "out of use" } @else { "ok" } }
                    }
                } }
            } }
        }
    }
}

/// Who took things out of use, and why.
pub(super) fn drains(drains: &[DrainView]) -> Markup {
    html! {
        @if !drains.is_empty() {
            section {
                h2 { "Out of use" }
                ul { @for drain in drains {
                    li { (drain.target) " by " (drain.by) ": " (drain.why) }
                } }
            }
        }
    }
}
