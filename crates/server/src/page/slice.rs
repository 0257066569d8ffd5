//! A slice in three dimensions: its chips, or its cubes, where they lie in its torus, and the rings
//! through one of them.
//!
//! The longest axis runs to the right, the next to the front, the shortest upwards, each with a
//! slant of its own, so that points of a torus of eight do not hide each other.  Up to
//! [`CHIPS_MAX`] chips are drawn one by one; of a larger slice the cubes are, and a click
//! opens one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use selvedge_control::family::is_boards;
use selvedge_family::torus::hardware::{self as torus, DIMS};
use selvedge_family::torus::lattice::{Direction, Lattice};
use selvedge_family::torus::path;
use selvedge_family::torus::shape::Shape;
use selvedge_model::fault::Target;
use selvedge_model::id::JobId;
use selvedge_model::job::Demand;

use crate::api::error::ApiError;
use crate::api::job;
use crate::page::cube::trouble;
use crate::page::sheet::{Part, Sheet, cube_link, job_link, name, tile};
use crate::shell::Shell;

/// Chips up to which each is drawn.
const CHIPS_MAX: usize = 512;

/// Steps to the right, to the front and upwards, on the page.
const RIGHT: [f64; 2] = [44.0, 8.0];
const FRONT: [f64; 2] = [-18.0, 20.0];
const UP: [f64; 2] = [0.0, -56.0];

/// How far a wrap bows out, as a share of its length.
const BOW: f64 = 0.16;

/// What of a slice is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Focus {
    /// The cube that is opened, by its place in the slice.
    cube: Option<u32>,
    /// The point whose rings are shown.
    at: Option<u32>,
}

impl Focus {
    /// What an address asks for.
    pub(super) fn of(query: &str) -> Self {
        let value = |key: &str| {
            let found = query.split('&').find_map(|it| it.strip_prefix(key)?.strip_prefix('='));
            found.and_then(|it| it.parse().ok())
        };
        Self { cube: value("cube"), at: value("at") }
    }
}

/// One chip, or one cube of a slice that is drawn by cubes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// What it is called: the path of a chip, the name of a cube.
    pub(super) path: String,
    /// The part that it is, or is in, and which of the slice's that is.
    pub(super) part: String,
    pub(super) hold: usize,
    /// Whether it, or something in it, is out of use.
    pub(super) out: bool,
}

/// A slice, or one cube of it.
#[derive(Clone, Debug)]
pub(super) struct SlicePage {
    job: u32,
    job_name: String,
    shape: String,
    n_chips: u32,
    /// What is drawn: points on a lattice.
    lattice: Lattice,
    /// Whether the points are cubes.
    of_cubes: bool,
    /// The cube that is opened.
    opened: Option<u32>,
    points: Vec<Point>,
    /// What is known against the link that leaves a point in + direction along an axis.
    ill: BTreeMap<(usize, usize), String>,
    /// The point whose rings are shown.
    at: usize,
    /// The rings through it along x, y and z: points in + direction.
    rings: [Vec<usize>; 3],
    /// How many rings the slice has along each axis, and how many chips one has.
    counts: [(usize, usize); 3],
    /// Whether rings close.
    closed: bool,
    twisted: bool,
}

impl SlicePage {
    /// The slice that the job has now.
    pub(super) fn of(shell: &Shell, id: u32, focus: Focus) -> Result<Self, ApiError> {
        let id = JobId::new(id);
        let known = job::find(shell, id)?;
        let no_slice = |why: &str| {
            ApiError::no_such("slice of job", id.number()).hint(format!("{why}; see /jobs/{id}"))
        };
        let shape = match &known.spec.demand {
            Demand::Shape(text) if !is_boards(text) => Shape::parse(text).ok().map(|it| it.0),
            Demand::Shape(_) | Demand::Parts(_) | Demand::Load(_) => None,
        };
        let shape = shape.ok_or_else(|| no_slice("it holds no torus"))?;
        let place = known.place.as_ref().ok_or_else(|| no_slice("it holds no hardware now"))?;
        let chips = chips(shell, &shape, place);
        let lattice = shape.chips();
        let by_cubes = shape.cube_lattice().filter(|_| CHIPS_MAX < chips.len());
        let mut page = Self {
            job: id.number(),
            job_name: known.spec.name.clone(),
            shape: shape.to_string(),
            n_chips: shape.n_chips(),
            lattice,
            of_cubes: false,
            opened: None,
            points: chips,
            ill: ill(shell, &shape, place),
            at: 0,
            rings: Default::default(),
            counts: [0, 1, 2].map(|axis| {
                let rings = &path::rings(&shape)[axis].rings;
                (rings.len(), rings.first().map_or(0, Vec::len))
            }),
            closed: lattice.wraps(),
            twisted: shape.twisted(),
        };
        match (by_cubes, focus.cube) {
            (Some(cubes), Some(cube)) if (cube as usize) < cubes.n_points() => {
                page.open(cubes, cube)
            }
            (Some(cubes), _) => page.group(cubes),
            (None, _) => {}
        }
        let n = page.points.len();
        page.at = focus.at.map_or(0, |it| it as usize).min(n.saturating_sub(1));
        page.rings = [0, 1, 2].map(|axis| page.ring(axis));
        Ok(page)
    }

    /// Keeps the chips of one cube.
    fn open(&mut self, cubes: Lattice, cube: u32) {
        let corner = cubes.point(cube as usize).map(|it| it * 4);
        let within = Shape::parse("4x4x4").expect("a cube is a shape").0.chips();
        let whole = self.lattice;
        let outer = |seat: usize| {
            let at = torus::chip(seat).map(|it| u16::try_from(it).expect("a cube is small"));
            whole.idx([0, 1, 2].map(|dim| corner[dim] + at[dim]))
        };
        self.ill = (0..torus::CHIPS)
            .flat_map(|seat| (0..3).map(move |axis| (seat, axis)))
            .filter_map(|(seat, axis)| {
                Some(((seat, axis), self.ill.get(&(outer(seat), axis))?.clone()))
            })
            .collect();
        self.points = (0..torus::CHIPS).map(|seat| self.points[outer(seat)].clone()).collect();
        self.lattice = within;
        self.opened = Some(cube);
        self.closed = false;
    }

    /// Makes one point of all chips of each cube.
    fn group(&mut self, cubes: Lattice) {
        let cube_of = |chip: usize| cubes.idx(self.lattice.point(chip).map(|it| it / 4));
        let mut points: Vec<Option<Point>> = vec![None; cubes.n_points()];
        for (idx, chip) in self.points.iter().enumerate() {
            let point = points[cube_of(idx)].get_or_insert_with(|| Point {
                path: chip.part.clone(),
                out: false,
                ..chip.clone()
            });
            point.out |= chip.out;
        }
        let mut ill: BTreeMap<(usize, usize), String> = BTreeMap::new();
        for ((chip, axis), why) in &self.ill {
            // A link between two cubes leaves a chip on the + face.
            let leaves = self.lattice.point(*chip)[*axis] % 4 == 3;
            let cube = cube_of(*chip);
            if leaves {
                ill.entry((cube, *axis)).or_insert_with(|| why.clone());
            } else if let Some(point) = &mut points[cube] {
                point.out = true;
            }
        }
        self.points = points.into_iter().flatten().collect();
        (self.ill, self.lattice, self.of_cubes) = (ill, cubes, true);
    }

    /// The ring through the point that is looked at.
    fn ring(&self, axis: usize) -> Vec<usize> {
        let ahead = Direction::new(axis, true);
        let back = Direction::new(axis, false);
        let step = |at: usize, way: Direction| {
            self.lattice.step(self.lattice.point(at), way).map(|it| self.lattice.idx(it))
        };
        let mut first = self.at;
        if !self.lattice.wraps() {
            while let Some(before) = step(first, back) {
                first = before;
            }
        }
        let mut ring = vec![first];
        let mut next = step(first, ahead);
        while let Some(point) = next.filter(|it| *it != first) {
            ring.push(point);
            next = step(point, ahead);
        }
        ring
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let head = Part::head(
            "head",
            html! {
                h1 { "Slice of " (job_link(self.job)) " " (name(&self.job_name)) }
                dl.tiles {
                    (tile("shape", html! { (self.shape) }))
                    (tile("chips", html! { (self.n_chips) }))
                    @for (axis, (n, length)) in self.counts.iter().enumerate() {
                        @let lines = if self.is_wrapped() { "rings" } else { "lines" };
                        (tile(&format!("{lines} along {}", DIMS[axis]), html! {
                            (n) small { " of " (length) " chips" }
                        }))
                    }
                    (tile("wraps", html! { @match (self.is_wrapped(), self.twisted) {
                        (false, _) => "none: a line along each axis",
                        (true, false) => "straight",
                        (true, true) => "twisted: a wrap enters another row",
                    } }))
                    (tile("links not well", html! {
                        span.warn[!self.ill.is_empty()] { (self.ill.len()) }
                    }))
                }
            },
        );
        let parts = vec![
            head,
            Part::with("slice", self.heading(), self.picture()),
            Part::new("here", "The rings through it", self.here()),
            Part::new("parts", "Cubes of the slice", self.parts()),
        ];
        Sheet { title: format!("slice of job {}", self.job), layout: "slice", parts }
    }

    /// Whether the whole slice wraps, also while one of its cubes is looked at.
    fn is_wrapped(&self) -> bool {
        self.closed || self.opened.is_some()
    }

    fn heading(&self) -> Markup {
        html! {
            @match (self.of_cubes, self.opened) {
                (true, _) => { (self.points.len()) " cubes" span.sum { "a click opens one" } }
                (false, Some(cube)) => {
                    "Cube " (cube) " of the slice: " (self.points.first().map_or("", |it| &it.part))
                    a.sum href=(self.address(None, None)) { "all cubes" }
                }
                (false, None) => { (self.points.len()) " chips"
                    span.sum { "a click shows the rings through a chip" } }
            }
        }
    }

    fn address(&self, cube: Option<usize>, at: Option<usize>) -> String {
        let pairs: Vec<String> = [("cube", cube), ("at", at)]
            .into_iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", value?)))
            .collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("/jobs/{}/slice{query}", self.job)
    }

    /// Where a click on a point leads.
    fn leads_to(&self, point: usize) -> String {
        if self.of_cubes {
            return self.address(Some(point), None);
        }
        self.address(self.opened.map(|it| it as usize), Some(point))
    }

    fn picture(&self) -> Markup {
        let view = View::of(&self.lattice, if self.of_cubes { 1.9 } else { 1.0 });
        let (left, top, width, height) = view.frame();
        // What is behind comes first.
        let mut order: Vec<usize> = (0..self.points.len()).collect();
        order.sort_by_key(|it| view.depth(self.lattice.point(*it)));
        html! {
            svg.slice viewBox=(format!("{left:.0} {top:.0} {width:.0} {height:.0}")) role="group"
                data-keys="1" aria-label="the slice in three dimensions" {
                @for axis in 0..3 {
                    path class=(format!("lines axis{axis}")) d=(self.lines(&view, axis)) {}
                }
                @for ((point, axis), why) in &self.ill {
                    @let path = self.link(&view, *point, *axis)
                        .unwrap_or_else(|| self.wrap(&view, *point, *axis));
                    g { title { "+" (DIMS[*axis]) " of " (self.points[*point].path) ": " (why) }
                        path.linkill d=(path) {} }
                }
                @for idx in order.iter().filter(|it| !self.is_on_ring(**it)) {
                    (self.point(&view, *idx))
                }
                @for axis in 0..3 {
                    path class=(format!("ring axis{axis}")) d=(self.ring_path(&view, axis)) {}
                    path class=(format!("wrap axis{axis}")) d=(self.wrap_path(&view, axis)) {}
                }
                @for idx in order.iter().filter(|it| self.is_on_ring(**it)) {
                    (self.point(&view, *idx))
                }
            }
            ul.legend {
                @for (axis, dim) in DIMS.iter().enumerate() {
                    li { span class=(format!("swatch axis{axis}")) {} (dim) " ring" }
                }
                li { "dashed: the wrap, over optical switches" }
                li { span.swatch.linkill {} "link not well" }
                li { span.swatch.out {} "out of use" }
            }
        }
    }

    fn is_on_ring(&self, point: usize) -> bool {
        self.rings.iter().any(|it| it.contains(&point))
    }

    fn point(&self, view: &View, idx: usize) -> Markup {
        let point = &self.points[idx];
        let at = self.lattice.point(idx);
        let (x, y) = view.at(at);
        let label = format!("{},{},{}: {}", at[0], at[1], at[2], point.path);
        let class = match (point.out, idx == self.at && !self.of_cubes) {
            (true, _) => "point out",
            (false, true) => "point here",
            (false, false) if self.of_cubes || self.is_on_ring(idx) => "point",
            (false, false) => "point off",
        };
        html! {
            a href=(self.leads_to(idx)) class=(class) data-key=(idx) data-point=(idx)
                data-part=(point.part) aria-label=(label)
                transform=(format!("translate({x:.1} {y:.1})")) {
                title { (label) @if point.out { ", something of it is not well" } }
                @if self.of_cubes { (solid(shade(point.hold))) text y="27" { (point.part) } }
                @else { circle r="5.5" fill=(shade(point.hold)) {} }
            }
        }
    }

    /// All links along an axis but the wraps, as one path.
    fn lines(&self, view: &View, axis: usize) -> String {
        let mut path = String::new();
        for idx in 0..self.points.len() {
            if !self.ill.contains_key(&(idx, axis)) {
                path.push_str(&self.link(view, idx, axis).unwrap_or_default());
            }
        }
        path
    }

    /// The link from a point in + direction, unless it is a wrap.
    fn link(&self, view: &View, idx: usize, axis: usize) -> Option<String> {
        let at = self.lattice.point(idx);
        if at[axis] + 1 == self.lattice.sides()[axis] {
            return None;
        }
        let mut next = at;
        next[axis] += 1;
        let ((x, y), (to_x, to_y)) = (view.at(at), view.at(next));
        Some(format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}"))
    }

    /// The inner steps of the ring that is shown.
    fn ring_path(&self, view: &View, axis: usize) -> String {
        let mut path = String::new();
        for (from, to) in self.steps(axis).filter(|it| self.is_inner(*it, axis)) {
            let ((x, y), (to_x, to_y)) = (view.at(from), view.at(to));
            write!(path, "M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}").expect("a string takes it");
        }
        path
    }

    /// Its wraps, bowed so that they do not lie on the ring.
    fn wrap_path(&self, view: &View, axis: usize) -> String {
        let mut path = String::new();
        for (from, to) in self.steps(axis).filter(|it| !self.is_inner(*it, axis)) {
            path.push_str(&bowed(view.at(from), view.at(to)));
        }
        path
    }

    /// The wrap that leaves a point in + direction; nothing where there is none.
    fn wrap(&self, view: &View, idx: usize, axis: usize) -> String {
        let at = self.lattice.point(idx);
        let next = self.lattice.step(at, Direction::new(axis, true));
        next.map_or_else(String::new, |it| bowed(view.at(at), view.at(it)))
    }

    /// The steps of the ring that is shown, each from a point to the next.
    fn steps(&self, axis: usize) -> impl Iterator<Item = ([u16; 3], [u16; 3])> + '_ {
        let ring = &self.rings[axis];
        let n = if self.lattice.wraps() && 1 < ring.len() { ring.len() } else { ring.len() - 1 };
        (0..n).map(move |it| {
            let next = ring[(it + 1) % ring.len()];
            (self.lattice.point(ring[it]), self.lattice.point(next))
        })
    }

    fn is_inner(&self, (from, to): ([u16; 3], [u16; 3]), axis: usize) -> bool {
        from[axis] + 1 == to[axis]
    }

    /// The point that is looked at, and its rings in words.
    fn here(&self) -> Markup {
        let Some(point) = self.points.get(self.at) else { return html! {} };
        let at = self.lattice.point(self.at);
        html! {
            p { b { (at[0]) "," (at[1]) "," (at[2]) } " is " (point.path)
                @if !self.of_cubes { " on " (cube_link(&point.part)) } "." }
            @for (axis, ring) in self.rings.iter().enumerate() {
                h3 { span class=(format!("swatch axis{axis}")) {} (DIMS[axis]) " "
                    @if self.lattice.wraps() { "ring" } @else { "line" }
                    span.sum { (ring.len()) " " @if self.of_cubes { "cubes" } @else { "chips" } } }
                ol.ring { @for idx in ring.iter().take(128) {
                    li { a href=(self.leads_to(*idx)) { (self.points[*idx].path) } }
                } }
            }
        }
    }

    /// All cubes, for those who go by keys.
    fn parts(&self) -> Markup {
        let mut seen: BTreeMap<usize, &Point> = BTreeMap::new();
        for point in &self.points {
            seen.entry(point.hold).or_insert(point);
        }
        html! {
            ol.parts start="0" { @for (hold, point) in &seen {
                li {
                    svg.dot viewBox="0 0 10 10" aria-hidden="true" {
                        circle cx="5" cy="5" r="5" fill=(shade(*hold)) {}
                    }
                    (cube_link(&point.part))
                    @if self.of_cubes {
                        " " a href=(self.address(Some(*hold), None)) { "open" }
                    }
                }
            } }
        }
    }
}

/// How points become places on the page.
struct View {
    /// Which axis of the lattice runs to the lower right, to the lower left, and upwards.
    axes: [usize; 3],
    sides: [u16; 3],
    scale: f64,
}

impl View {
    fn of(lattice: &Lattice, scale: f64) -> Self {
        let sides = lattice.sides();
        let mut axes = [0, 1, 2];
        // Equal sides keep the order x, y, z.
        axes.sort_by_key(|it| std::cmp::Reverse(sides[*it]));
        Self { axes, sides, scale }
    }

    fn at(&self, point: [u16; 3]) -> (f64, f64) {
        let [a, b, c] = self.axes.map(|axis| f64::from(point[axis]));
        let on = |axis: usize| a * RIGHT[axis] + b * FRONT[axis] + c * UP[axis];
        (self.scale * on(0), self.scale * on(1))
    }

    /// How far in front a point is.
    fn depth(&self, point: [u16; 3]) -> (u16, u16, u16) {
        let [a, b, c] = self.axes.map(|axis| point[axis]);
        (b, c, a)
    }

    /// Left, top, width and height of all, with room for wraps that bow out.
    fn frame(&self) -> (f64, f64, f64, f64) {
        let [a, b, c] = self.axes.map(|axis| self.sides[axis] - 1);
        let corner = |on: [bool; 3]| {
            let mut point = [0; 3];
            for (axis, (most, on)) in self.axes.iter().zip([a, b, c].into_iter().zip(on)) {
                point[*axis] = if on { most } else { 0 };
            }
            self.at(point)
        };
        let left = corner([false, true, false]).0;
        let right = corner([true, false, false]).0;
        let top = corner([false, false, true]).1;
        let bottom = corner([true, true, false]).1;
        let room = 26.0 * self.scale + BOW / 2.0 * (right - left).max(bottom - top);
        (left - room, top - room, right - left + 2.0 * room, bottom - top + 2.0 * room)
    }
}

/// A curve from one place to another, beside the straight line.
fn bowed((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> String {
    let (along_x, along_y) = (to_x - x, to_y - y);
    let (by_x, by_y) = (x + along_x / 2.0 + BOW * along_y, y + along_y / 2.0 - BOW * along_x);
    format!("M{x:.1} {y:.1}Q{by_x:.1} {by_y:.1} {to_x:.1} {to_y:.1}")
}

/// A small solid cube.
fn solid(fill: String) -> Markup {
    html! {
        path d="M0 -14L14 -7L14 8L0 15L-14 8L-14 -7Z" fill=(fill) {}
        path.edges d="M-14 -7L0 0L14 -7M0 0L0 15" {}
    }
}

/// The colour of one of a slice's parts.
fn shade(hold: usize) -> String {
    format!("oklch(0.78 0.1 {})", hold * 47 % 360)
}

/// The chips of a slice by their ids.
fn chips(shell: &Shell, shape: &Shape, place: &selvedge_model::job::Place) -> Vec<Point> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let chip = |seat: &path::Seat| {
        let hold = usize::from(seat.hold_idx);
        let part = place.holds[hold].part;
        let local = fabric.template_of(part).seats()[usize::from(seat.seat)] as usize;
        Point {
            path: fabric.path(Target::Node(fabric.node_at(part, local))),
            part: fabric.part(part).name.to_string(),
            hold,
            out: state.parts[part].out >> seat.seat & 1 == 1,
        }
    };
    path::seats(shape, place).iter().map(chip).collect()
}

/// What is known against the links of a slice, by the chip that each leaves and its axis.
fn ill(
    shell: &Shell,
    shape: &Shape,
    place: &selvedge_model::job::Place,
) -> BTreeMap<(usize, usize), String> {
    let (fabric, lattice) = (shell.core().fabric(), shape.chips());
    let (axes, seats) = (path::axes(shape, place), path::seats(shape, place));
    let port = |chip: usize, dim: usize, out| {
        let seat = seats[chip];
        let part = place.holds[usize::from(seat.hold_idx)].part;
        let local = torus::ici_port(torus::chip(usize::from(seat.seat)), axes[dim], out);
        fabric.port_at(part, local)
    };
    let mut ill = BTreeMap::new();
    for chip in 0..seats.len() {
        for dim in 0..3 {
            let Some(next) = lattice.step(lattice.point(chip), Direction::new(dim, true)) else {
                continue;
            };
            let ends = [port(chip, dim, true), port(lattice.idx(next), dim, false)];
            if let Some(why) = ends.into_iter().find_map(|it| trouble(shell, it)) {
                ill.insert((chip, dim), why);
            }
        }
    }
    ill
}
