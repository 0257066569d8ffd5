//! `/v1/pods`, `/v1/cubes`, `/v1/machines`, `/v1/links`, `/v1/drain`.

use std::collections::BTreeSet;

use axum::Json as Answer;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use selvedge_control::input::Ask;
use selvedge_control::note::Owner;
use selvedge_control::state::JobState;
use selvedge_model::fabric::{Fabric, LinkKind, NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::id::{LinkId, NodeId, PartId, PortId};

use crate::api::body::{Json, Params};
use crate::api::error::{ApiError, ErrorBody};
use crate::house::{By, House, target_named};
use crate::shell::Shell;
use crate::words;

/// A pool of parts that one set of switches joins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Parts that jobs run on.
    pub n_cubes: usize,
    /// Circuit switches.
    pub n_switches: usize,
    /// Chips in all.
    pub n_chips: u64,
    /// Chips that jobs hold.
    pub chips_used: u64,
    /// Chips out of use.
    pub chips_out: u64,
    /// Parts that no job holds and of which nothing is out of use.
    pub cubes_free: usize,
}

/// All pods.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PodList {
    /// In the order of the plant.
    pub pods: Vec<PodView>,
}

/// A part that jobs run on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CubeView {
    /// Its name.
    pub name: String,
    /// Its pod.
    pub pod: Option<String>,
    /// What kind of part it is: `cube`, `host`.
    pub kind: String,
    /// Its chips.
    pub chips: u32,
    /// Chips that jobs hold.
    pub chips_used: u32,
    /// Chips out of use.
    pub chips_out: u32,
    /// Outer links out of use.
    pub ends_out: u16,
    /// Jobs on it.
    pub jobs: Vec<u32>,
    /// `ok`, `degraded` or `out`.
    pub health: String,
    /// Whether it is drained as a whole.
    pub drained: bool,
    /// Links of it that are drained; the others are used.
    pub links_drained: u32,
    /// Open cases of it and of what it holds.
    pub cases: Vec<u32>,
}

/// All parts that jobs run on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CubeList {
    /// Those that are in the plant, by pod, then by name: `cube2` before `cube10`.
    pub cubes: Vec<CubeView>,
}

/// A part with what it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CubeDetail {
    /// The part.
    #[serde(flatten)]
    pub cube: CubeView,
    /// Its machines.
    pub machines: Vec<MachineView>,
    /// Its outer ends.
    pub ends: Vec<EndView>,
    /// Who took it, or something in it, out of use.
    pub drains: Vec<DrainView>,
}

/// An outer end of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EndView {
    /// The end.
    pub path: String,
    /// The port that its cable leads to.
    pub to: Option<String>,
    /// The end that a switch joins it to, as last read, or that its cable leads to directly.
    pub peer: Option<String>,
    /// Whether it is out of use.
    pub out: bool,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MachineView {
    /// Its path.
    pub path: String,
    /// The part that it is in.
    pub cube: String,
    /// Its chips.
    pub chips: Vec<ChipView>,
    /// Whether all its chips are out of use.
    pub out: bool,
    /// Who took it, or something in it, out of use.
    pub drains: Vec<DrainView>,
    /// Open cases of it and of what it holds.
    pub cases: Vec<u32>,
}

/// A chip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChipView {
    /// Its path.
    pub path: String,
    /// The job that holds it.
    pub job: Option<u32>,
    /// Whether it is out of use.
    pub out: bool,
}

/// One entry of the list of things out of use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DrainView {
    /// What.
    pub target: String,
    /// Who took it out: a name, or `case3`.
    pub by: String,
    /// The case that took it out, if one did.
    pub case: Option<u32>,
    /// What that case is of: `returned` where it is only tested before it is used again.
    pub symptom: Option<String>,
    /// Why.
    pub why: String,
    /// Since when.
    pub since_s: f64,
    /// Whether running jobs must leave.
    pub evicts: bool,
    /// Those that have to and have not left.
    pub leaving: Vec<u32>,
    /// Whether it has left the plant: it is drained as soon as it comes again.
    #[serde(default)]
    pub retired: bool,
}

/// Everything out of use.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrainList {
    /// By target.
    pub drains: Vec<DrainView>,
}

/// What holds one thing out of use after a drain or an undrain.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DrainAnswer {
    /// What.
    pub target: String,
    /// Whoever still holds it.
    pub drains: Vec<DrainView>,
}

/// A drain to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainForm {
    /// What: a path.
    pub target: String,
    /// What the path is thought to be; refused if it is something else.
    #[serde(default)]
    pub kind: Option<Kind>,
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// A drain to take back.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndrainForm {
    /// What: a path.
    pub target: String,
    /// What the path is thought to be; refused if it is something else.
    #[serde(default)]
    pub kind: Option<Kind>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A part that jobs run on.
    Cube,
    /// A machine of one.
    Machine,
    /// A switch, or a port of one.
    Ocs,
    /// A link, or the end of one.
    Link,
    /// A chip, or another piece of a machine.
    Chip,
}

impl Kind {
    fn of(fabric: &Fabric, target: Target) -> Self {
        match target {
            Target::Part(part) if fabric.template_of(part).role == Role::Compute => Self::Cube,
            Target::Part(_) => Self::Ocs,
            Target::Node(node) if fabric.node(node).kind == NodeKind::Machine => Self::Machine,
            Target::Node(_) => Self::Chip,
            Target::Port(_) | Target::Link(_) => Self::Link,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Cube => "cube",
            Self::Machine => "machine",
            Self::Ocs => "switch",
            Self::Link => "link",
            Self::Chip => "chip",
        }
    }

    /// Refuses what is something else than it is thought to be: a cube that is drained for a link
    /// stops more than anybody meant.
    fn check(self, fabric: &Fabric, target: Target) -> Result<(), ApiError> {
        let found = Self::of(fabric, target);
        let is_port_of_switch = || match target {
            Target::Port(port) => {
                fabric.template_of(fabric.part_of_port(port)).role != Role::Compute
            }
            _ => false,
        };
        if found == self || self == Self::Ocs && is_port_of_switch() {
            return Ok(());
        }
        let path = words::path(fabric, target);
        let wrong = ApiError::bad(format!("{path} is a {}, no {}", found.word(), self.word()));
        Err(match found {
            Self::Cube => wrong.hint(format!("`selvedge cube drain {path}` takes all of it out")),
            Self::Machine => wrong.hint(format!("`selvedge machine drain {path}` takes it out")),
            Self::Ocs => wrong.hint(format!("`selvedge ocs drain {path}` takes all of it out")),
            Self::Link => wrong.hint(format!("`selvedge link drain {path}` takes it out")),
            Self::Chip => wrong.hint("a chip goes out of use with its machine"),
        })
    }
}

/// A directed link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkView {
    /// The port that it leaves, which names it.
    pub path: String,
    /// The same.
    pub from: String,
    /// The port that it arrives at.
    pub to: String,
    /// `ici`, `fibre`, `pcie`, `nvlink`, `ethernet` or `board`.
    pub kind: String,
    /// What it carries.
    pub gbps: u64,
    /// The loss that it was planned with, on a fibre.
    pub loss_db: Option<f64>,
    /// Whether it is out of use.
    pub out: bool,
    /// Who took it out of use.
    pub drains: Vec<DrainView>,
    /// Open cases of it.
    pub cases: Vec<u32>,
}

/// Links.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkList {
    /// In the order of the plant.
    pub links: Vec<LinkView>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LinkParams {
    /// The part, node or port whose links are wanted.
    #[serde(default)]
    of: Option<String>,
    /// Only those out of use.
    #[serde(default)]
    out: bool,
}

/// All pods.
#[utoipa::path(get, path = "/v1/pods", tag = "hardware",
    responses((status = 200, body = PodList), (status = "default", body = ErrorBody)))]
pub(crate) async fn pods(State(house): State<House>) -> Result<Answer<PodList>, ApiError> {
    Ok(Answer(PodList { pods: house.look(pod_views).await? }))
}

/// All parts that jobs run on.
#[utoipa::path(get, path = "/v1/cubes", tag = "hardware",
    responses((status = 200, body = CubeList), (status = "default", body = ErrorBody)))]
pub(crate) async fn cubes(State(house): State<House>) -> Result<Answer<CubeList>, ApiError> {
    Ok(Answer(CubeList { cubes: house.look(cube_views).await? }))
}

/// One part with its machines and ends.
#[utoipa::path(get, path = "/v1/cubes/{*name}", tag = "hardware", params(("name" = String, Path)),
    responses((status = 200, body = CubeDetail), (status = "default", body = ErrorBody)))]
pub(crate) async fn cube(
    State(house): State<House>,
    Path(name): Path<String>,
) -> Result<Answer<CubeDetail>, ApiError> {
    house.look(move |shell| cube_detail(shell, &name)).await?.map(Answer)
}

/// One machine with its chips.
#[utoipa::path(get, path = "/v1/machines/{*path}", tag = "hardware",
    params(("path" = String, Path)),
    responses((status = 200, body = MachineView), (status = "default", body = ErrorBody)))]
pub(crate) async fn machine(
    State(house): State<House>,
    Path(path): Path<String>,
) -> Result<Answer<MachineView>, ApiError> {
    let view = house.look(move |shell| {
        let fabric = shell.core().fabric();
        let node = match fabric.find(&path) {
            Some(Target::Node(node)) if fabric.node(node).kind == NodeKind::Machine => node,
            Some(_) | None => return Err(ApiError::no_such("machine", path)),
        };
        Ok(machine_view(shell, node))
    });
    view.await?.map(Answer)
}

/// The links at a thing, or all that are out of use.
#[utoipa::path(get, path = "/v1/links", tag = "hardware", params(LinkParams),
    responses((status = 200, body = LinkList), (status = "default", body = ErrorBody)))]
pub(crate) async fn links(
    State(house): State<House>,
    Params(params): Params<LinkParams>,
) -> Result<Answer<LinkList>, ApiError> {
    let links = house.look(move |shell| {
        let links = match &params.of {
            Some(path) => links_at(shell, path)?,
            None if params.out => links_out(shell),
            None => {
                return Err(ApiError::bad("a plant has too many links to list")
                    .hint("say whose: ?of=cube17, or ?out=true for those out of use"));
            }
        };
        let views = links.into_iter().map(|it| link_view(shell, it));
        Ok(views.filter(|it| it.out || !params.out).collect())
    });
    Ok(Answer(LinkList { links: links.await?? }))
}

/// Everything out of use.
#[utoipa::path(get, path = "/v1/drains", tag = "hardware",
    responses((status = 200, body = DrainList), (status = "default", body = ErrorBody)))]
pub(crate) async fn drains(State(house): State<House>) -> Result<Answer<DrainList>, ApiError> {
    let drains = house.look(|shell| {
        let retired = shell.core().state().set_aside.iter();
        let retired =
            retired.flat_map(|((path, _), it)| it.iter().map(|it| retired_view(path, it)));
        drain_views(shell, |_| true).into_iter().chain(retired).collect()
    });
    Ok(Answer(DrainList { drains: drains.await? }))
}

/// Takes a thing out of use; running jobs leave it after a notice.
#[utoipa::path(post, path = "/v1/drain", tag = "hardware", request_body = DrainForm,
    responses((status = 200, body = DrainAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn drain(
    State(house): State<House>,
    by: By,
    Json(form): Json<DrainForm>,
) -> Result<Answer<DrainAnswer>, ApiError> {
    let target = house.find(form.target).await?;
    if let Some(kind) = form.kind {
        house.look(move |shell| kind.check(shell.core().fabric(), target)).await??;
    }
    let what = Ask::Drain { target, why: form.why };
    house.ask(by, what, move |shell, _| drain_answer(shell, target)).await.map(Answer)
}

/// Takes back one's own drain.
#[utoipa::path(post, path = "/v1/undrain", tag = "hardware", request_body = UndrainForm,
    responses((status = 200, body = DrainAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn undrain(
    State(house): State<House>,
    by: By,
    Json(form): Json<UndrainForm>,
) -> Result<Answer<DrainAnswer>, ApiError> {
    let path = form.target.clone();
    let has_left = move |shell: &Shell| shell.core().set_aside_as(&path).next().is_some();
    if house.look(has_left).await? {
        let path = form.target;
        let what = Ask::UndrainRetired { path: path.clone() };
        let view = move |shell: &Shell, _| DrainAnswer {
            drains: shell.core().set_aside_as(&path).map(|it| retired_view(&path, it)).collect(),
            target: path,
        };
        return house.ask(by, what, view).await.map(Answer);
    }
    let target = house.find(form.target).await?;
    if let Some(kind) = form.kind {
        house.look(move |shell| kind.check(shell.core().fabric(), target)).await??;
    }
    let what = Ask::Undrain { target };
    house.ask(by, what, move |shell, _| drain_answer(shell, target)).await.map(Answer)
}

/// All pods, with what is used of them.
pub(crate) fn pod_views(shell: &Shell) -> Vec<PodView> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let view = |(pool, name): (selvedge_model::id::PoolId, &String)| {
        let mut pod = PodView {
            name: name.clone(),
            n_cubes: 0,
            n_switches: 0,
            n_chips: 0,
            chips_used: 0,
            chips_out: 0,
            cubes_free: 0,
        };
        for (id, part) in fabric.parts().pairs() {
            if part.pool != Some(pool) || part.retired {
                continue;
            }
            let template = fabric.template_of(id);
            match template.role {
                Role::CircuitSwitch => pod.n_switches += 1,
                Role::PacketSwitch => (),
                Role::Compute => {
                    let known = &state.parts[id];
                    pod.n_cubes += 1;
                    pod.n_chips += u64::from(template.all_seats().count_ones());
                    pod.chips_used += u64::from(known.held.count_ones());
                    pod.chips_out += u64::from(known.out.count_ones());
                    let is_sound = shell.core().layout().is_sound(pool, known);
                    pod.cubes_free += usize::from(known.held == 0 && is_sound);
                }
            }
        }
        pod
    };
    fabric.pools().pairs().map(view).collect()
}

/// All parts that jobs run on.
pub(crate) fn cube_views(shell: &Shell) -> Vec<CubeView> {
    let index = Index::of(shell);
    let fabric = shell.core().fabric();
    let compute = fabric
        .parts()
        .pairs()
        .filter(|(id, part)| !part.retired && fabric.template_of(*id).role == Role::Compute);
    // A cube that comes again has a new id, and its old place.
    let mut parts: Vec<_> =
        compute.map(|(id, part)| (part.pool, name_key(&part.name), id)).collect();
    parts.sort();
    parts.into_iter().map(|(_, _, part)| cube_view(shell, &index, part)).collect()
}

/// A name as people order names: the numbers in it by value.
fn name_key(name: &str) -> Vec<(&str, u64)> {
    let is_digit = |it: char| it.is_ascii_digit();
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, after) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let n = after.find(|it| !is_digit(it)).unwrap_or(after.len());
        key.push((text, after[..n].parse().unwrap_or(u64::MAX)));
        rest = &after[n..];
    }
    key
}

/// What jobs, cases and drains say of parts, gathered once for many of them.
pub(crate) struct Index {
    jobs: std::collections::BTreeMap<PartId, Vec<u32>>,
    cases: std::collections::BTreeMap<PartId, BTreeSet<u32>>,
    drained: BTreeSet<PartId>,
    links_drained: std::collections::BTreeMap<PartId, u32>,
}

impl Index {
    pub(crate) fn of(shell: &Shell) -> Self {
        let (fabric, state) = (shell.core().fabric(), shell.core().state());
        let mut index = Self {
            jobs: Default::default(),
            cases: Default::default(),
            drained: BTreeSet::new(),
            links_drained: Default::default(),
        };
        for &job in &state.active {
            for hold in state.jobs[job].place.iter().flat_map(|it| &it.holds) {
                index.jobs.entry(hold.part).or_default().push(job.number());
            }
        }
        for (target, case) in &state.open_cases {
            for part in parts_of(fabric, *target) {
                index.cases.entry(part).or_default().insert(case.number());
            }
        }
        for (&target, _) in state.drains.iter().filter(|(_, it)| !it.is_empty()) {
            match target {
                Target::Part(part) => drop(index.drained.insert(part)),
                Target::Link(_) | Target::Port(_) => {
                    for part in parts_of(fabric, target) {
                        *index.links_drained.entry(part).or_default() += 1;
                    }
                }
                // What it takes out of its part is counted in chips.
                Target::Node(_) => (),
            }
        }
        index
    }

    pub(crate) fn cases_of(&self, part: PartId) -> Vec<u32> {
        self.cases.get(&part).into_iter().flatten().copied().collect()
    }

    /// Whether it is drained as a whole.
    pub(crate) fn is_drained(&self, part: PartId) -> bool {
        self.drained.contains(&part)
    }

    /// How many links and ports of it are drained.
    pub(crate) fn n_links_drained(&self, part: PartId) -> u32 {
        self.links_drained.get(&part).copied().unwrap_or(0)
    }
}

/// The parts that a target belongs to: two for a cable.
pub(crate) fn parts_of(fabric: &Fabric, target: Target) -> BTreeSet<PartId> {
    match target {
        Target::Part(part) => [part].into(),
        Target::Node(node) => [fabric.part_of_node(node)].into(),
        Target::Port(port) => [fabric.part_of_port(port)].into(),
        Target::Link(link) => {
            let link = fabric.link(link);
            [fabric.part_of_port(link.source), fabric.part_of_port(link.target)].into()
        }
    }
}

fn cube_view(shell: &Shell, index: &Index, id: PartId) -> CubeView {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let (part, template, known) = (fabric.part(id), fabric.template_of(id), &state.parts[id]);
    let all = template.all_seats();
    let health = match () {
        () if part.retired || known.out & all == all => "out",
        () if known.is_whole() => "ok",
        () => "degraded",
    };
    CubeView {
        name: part.name.to_string(),
        pod: part.pool.map(|it| fabric.pools()[it].clone()),
        kind: template.name.clone(),
        chips: all.count_ones(),
        chips_used: known.held.count_ones(),
        chips_out: known.out.count_ones(),
        ends_out: known.outer_out,
        jobs: index.jobs.get(&id).cloned().unwrap_or_default(),
        health: health.to_owned(),
        drained: index.is_drained(id),
        links_drained: index.n_links_drained(id),
        cases: index.cases_of(id),
    }
}

/// One part with its machines and ends.
pub(crate) fn cube_detail(shell: &Shell, name: &str) -> Result<CubeDetail, ApiError> {
    let fabric = shell.core().fabric();
    let is_compute = |id: &PartId| fabric.template_of(*id).role == Role::Compute;
    let part = fabric.part_named(name).filter(is_compute);
    let part = part.ok_or_else(|| ApiError::no_such("cube", name))?;
    let machines = fabric.nodes_of(part).filter(|it| fabric.node(*it).kind == NodeKind::Machine);
    let outer = fabric.ports_of(part).filter(|it| fabric.cable_at(*it).is_some());
    Ok(CubeDetail {
        cube: cube_view(shell, &Index::of(shell), part),
        machines: machines.map(|it| machine_view(shell, it)).collect(),
        ends: outer.map(|it| end_view(shell, it)).collect(),
        drains: drain_views(shell, |it| parts_of(fabric, it).contains(&part)),
    })
}

fn end_view(shell: &Shell, end: PortId) -> EndView {
    let fabric = shell.core().fabric();
    let to = fabric.peer_of(end);
    let is_direct =
        |it: &PortId| fabric.template_of(fabric.part_of_port(*it)).role == Role::Compute;
    let beyond = to.filter(is_direct).or_else(|| shell.core().beyond(end));
    let state = shell.core().state();
    let is_switch_out = |port: PortId| {
        let part = fabric.part_of_port(port);
        let is_silent = state.switches.get(&part).is_some_and(|it| it.silent.is_some());
        is_silent || state.drains.get(&Target::Part(part)).is_some_and(|it| !it.is_empty())
    };
    EndView {
        path: fabric.port_path(end),
        to: to.map(|it| fabric.port_path(it)),
        peer: beyond.map(|it| fabric.port_path(it)),
        out: fabric.link_from(end).is_some_and(|it| is_link_out(shell, it))
            || to.is_some_and(is_switch_out),
    }
}

fn machine_view(shell: &Shell, node: NodeId) -> MachineView {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let (part, local) = fabric.node_local(node);
    let (template, known) = (fabric.template_of(part), &state.parts[part]);
    let under = template.seats_under(local);
    let on_part = |job: &&selvedge_model::id::JobId| {
        state.jobs[**job].place.iter().flat_map(|it| &it.holds).any(|it| it.part == part)
    };
    let jobs: Vec<_> = state.active.iter().filter(on_part).collect();
    let holder = |seat: usize| {
        let holds = |id: &&&selvedge_model::id::JobId| {
            let holds = state.jobs[***id].place.iter().flat_map(|it| &it.holds);
            holds.filter(|it| it.part == part).any(|it| it.seats >> seat & 1 == 1)
        };
        jobs.iter().find(holds).map(|it| it.number())
    };
    let seats = template.seats().iter().enumerate().filter(|(seat, _)| under >> seat & 1 == 1);
    let chips = seats.map(|(seat, &place)| ChipView {
        path: fabric.node_path(fabric.node_at(part, place as usize)),
        job: holder(seat),
        out: known.out >> seat & 1 == 1,
    });
    let is_within = |target: Target| match target {
        Target::Node(it) => is_under(fabric, it, node),
        Target::Part(it) => it == part,
        Target::Port(it) => is_under(fabric, fabric.node_of_port(it), node),
        Target::Link(it) => {
            let link = fabric.link(it);
            let mut ends = [link.source, link.target].into_iter();
            ends.any(|end| is_under(fabric, fabric.node_of_port(end), node))
        }
    };
    let cases = state.open_cases.iter().filter(|(target, _)| is_within(**target));
    MachineView {
        path: fabric.node_path(node),
        cube: fabric.part(part).name.to_string(),
        chips: chips.collect(),
        out: under != 0 && known.out & under == under,
        drains: drain_views(shell, is_within),
        cases: cases.map(|(_, case)| case.number()).collect(),
    }
}

/// Whether `node` is `top` or lies in it.
fn is_under(fabric: &Fabric, node: NodeId, top: NodeId) -> bool {
    std::iter::successors(Some(node), |it| fabric.parent_of(*it)).any(|it| it == top)
}

fn links_at(shell: &Shell, path: &str) -> Result<Vec<LinkId>, ApiError> {
    let fabric = shell.core().fabric();
    Ok(match target_named(shell, path)? {
        Target::Link(link) => vec![link, fabric.reverse(link)],
        Target::Port(port) => fabric.link_from(port).into_iter().collect(),
        Target::Node(node) => fabric
            .nodes_of(fabric.part_of_node(node))
            .filter(|it| is_under(fabric, *it, node))
            .flat_map(|it| fabric.links_from(it))
            .collect(),
        Target::Part(part) => {
            fabric.ports_of(part).filter_map(|port| fabric.link_from(port)).collect()
        }
    })
}

/// Both directions of every link that a drain or a case names.
fn links_out(shell: &Shell) -> Vec<LinkId> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let named = state.drains.keys().chain(state.open_cases.keys());
    let links: BTreeSet<LinkId> = named
        .filter_map(|target| match target {
            Target::Link(link) => Some(*link),
            Target::Part(_) | Target::Node(_) | Target::Port(_) => None,
        })
        .flat_map(|link| [link, fabric.reverse(link)])
        .collect();
    links.into_iter().collect()
}

fn is_link_out(shell: &Shell, link: LinkId) -> bool {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let even = Target::Link(link.min(fabric.reverse(link)));
    state.drains.get(&even).is_some_and(|it| !it.is_empty())
}

fn link_view(shell: &Shell, id: LinkId) -> LinkView {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let link = fabric.link(id);
    let kind = match link.attrs.kind {
        LinkKind::Ici => "ici",
        LinkKind::Fibre => "fibre",
        LinkKind::Pcie => "pcie",
        LinkKind::NvLink => "nvlink",
        LinkKind::Ethernet => "ethernet",
        LinkKind::Board => "board",
        LinkKind::Socket => "socket",
    };
    let loss = fabric.cable_at(link.source).filter(|_| link.attrs.kind == LinkKind::Fibre);
    let even = Target::Link(id.min(fabric.reverse(id)));
    let cases = state.open_cases.get(&even);
    LinkView {
        path: fabric.port_path(link.source),
        from: fabric.port_path(link.source),
        to: fabric.port_path(link.target),
        kind: kind.to_owned(),
        gbps: link.attrs.capacity.bps() / 1_000_000_000,
        loss_db: loss.map(|it| f64::from(it.loss_expected.centi()) / 100.0),
        out: is_link_out(shell, id),
        drains: drain_views(shell, |it| it == even),
        cases: cases.map(|it| it.number()).into_iter().collect(),
    }
}

/// What is out of use, of those targets that `keep` keeps.
pub(crate) fn drain_views(shell: &Shell, keep: impl Fn(Target) -> bool) -> Vec<DrainView> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let kept = state.drains.iter().filter(|(target, _)| keep(**target));
    let view = |target: Target, drain: &selvedge_control::state::Drain| DrainView {
        target: fabric.path(target),
        by: words::owner(&drain.by),
        case: match &drain.by {
            Owner::Case(case) => Some(case.number()),
            Owner::Person(_) => None,
        },
        symptom: match &drain.by {
            Owner::Case(case) => Some(words::symptom(state.cases[*case].symptom).to_owned()),
            Owner::Person(_) => None,
        },
        why: drain.why.clone(),
        since_s: drain.since.as_secs_f64(),
        evicts: drain.evicts,
        leaving: if drain.evicts { leaving(shell, target) } else { Vec::new() },
        retired: false,
    };
    kept.flat_map(|(target, drains)| drains.iter().map(|it| view(*target, it))).collect()
}

/// A person's drain of what has left the plant.
fn retired_view(path: &str, drain: &selvedge_control::state::Drain) -> DrainView {
    DrainView {
        target: path.to_owned(),
        by: words::owner(&drain.by),
        case: None,
        symptom: None,
        why: drain.why.clone(),
        since_s: drain.since.as_secs_f64(),
        evicts: drain.evicts,
        leaving: Vec::new(),
        retired: true,
    }
}

/// Jobs that hold what is drained and have not left it.
fn leaving(shell: &Shell, target: Target) -> Vec<u32> {
    let is_there = |state: &JobState| !matches!(state, JobState::Queued { .. });
    shell.core().holders_of(target, is_there).iter().map(|it| it.number()).collect()
}

fn drain_answer(shell: &Shell, target: Target) -> DrainAnswer {
    // A port with a fibre is drained as the fibre that it carries.
    let target = shell.core().named(target);
    let drains = drain_views(shell, |it| it == target);
    DrainAnswer { target: shell.core().fabric().path(target), drains }
}
