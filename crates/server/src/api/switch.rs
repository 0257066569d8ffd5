//! `/v1/switches`: how the mirrors stand, and how they ought to.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json as Answer;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use selvedge_control::family;
use selvedge_control::input::Ask;
use selvedge_control::state::SwitchState;
use selvedge_model::fabric::Role;
use selvedge_model::fault::Target;
use selvedge_model::id::{JobId, PartId, PortId};

use crate::api::body::Json;
use crate::api::error::{ApiError, ErrorBody};
use crate::api::hardware::{DrainView, Index, drain_views, parts_of};
use crate::house::{By, House};
use crate::shell::Shell;

/// A circuit switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwitchView {
    /// Its name.
    pub name: String,
    /// Its pod.
    pub pod: Option<String>,
    /// Pairs that stand, as last read.
    pub n_pairs: usize,
    /// Pairs that ought to stand.
    pub n_intended: usize,
    /// Pairs that are one and not the other.
    pub n_differ: usize,
    /// The newest write that it has acknowledged.
    pub generation: u64,
    /// Whether it has been read since the last restart.
    pub known: bool,
    /// Since when it answers nothing, if so: nobody is wired through it, and who is stays.
    pub silent_s: Option<f64>,
    /// Whether it is drained as a whole.
    pub drained: bool,
    /// Its ports and their fibres that are drained; the others are used.
    pub links_drained: u32,
    /// Open cases of it and its ports.
    pub cases: Vec<u32>,
}

/// All circuit switches.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SwitchList {
    /// In the order of the plant.
    pub switches: Vec<SwitchView>,
}

/// A circuit switch with its mirrors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SwitchDetail {
    /// The switch.
    #[serde(flatten)]
    pub switch: SwitchView,
    /// Pairs that stand or ought to, by north port.
    pub pairs: Vec<PairView>,
    /// Who took it, or a port of it, out of use.
    pub drains: Vec<DrainView>,
}

/// One pair of mirrors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PairView {
    /// The north port.
    pub north: String,
    /// The south port.
    pub south: String,
    /// The part at the north port's fibre: light comes from there.
    pub from: Option<String>,
    /// The part at the south port's fibre.
    pub to: Option<String>,
    /// Whether it ought to stand.
    pub intended: bool,
    /// Whether it stands, as last read.
    pub actual: bool,
    /// The job that it is for.
    pub job: Option<u32>,
    /// How often a simulated switch has moved these two mirrors, together: the switch's own count,
    /// which the core never sees.
    pub moves: Option<u32>,
}

/// A fibre to re-patch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveForm {
    /// The port that the fibre is on: `x5/n17`.
    pub from: String,
    /// The port that it moves to, on the same switch and side: `x5/n64`.
    pub to: String,
}

/// All circuit switches.
#[utoipa::path(get, path = "/v1/switches", tag = "hardware",
    responses((status = 200, body = SwitchList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(State(house): State<House>) -> Result<Answer<SwitchList>, ApiError> {
    Ok(Answer(SwitchList { switches: house.look(views).await? }))
}

/// One circuit switch: each pair intended and actual.
#[utoipa::path(get, path = "/v1/switches/{*name}", tag = "hardware",
    params(("name" = String, Path)),
    responses((status = 200, body = SwitchDetail), (status = "default", body = ErrorBody)))]
pub(crate) async fn show(
    State(house): State<House>,
    Path(name): Path<String>,
) -> Result<Answer<SwitchDetail>, ApiError> {
    house.look(move |shell| detail(shell, &name)).await?.map(Answer)
}

/// Re-patches a fibre to another port of the same side.
#[utoipa::path(post, path = "/v1/switches/move", tag = "hardware", request_body = MoveForm,
    responses((status = 200, body = MoveForm), (status = "default", body = ErrorBody)))]
pub(crate) async fn move_port(
    State(house): State<House>,
    by: By,
    Json(form): Json<MoveForm>,
) -> Result<Answer<MoveForm>, ApiError> {
    let (from, to) = (port_named(&house, &form.from).await?, port_named(&house, &form.to).await?);
    house.ask(by, Ask::MovePort { from, to }, |_, _| ()).await?;
    Ok(Answer(form))
}

async fn port_named(house: &House, path: &str) -> Result<PortId, ApiError> {
    let path = path.to_owned();
    house
        .look(move |shell| match shell.core().fabric().find(&path) {
            Some(Target::Port(port)) => Ok(port),
            Some(_) | None => Err(ApiError::no_such("port", path).hint("ports are called x5/n17")),
        })
        .await?
}

/// The pairs that ought to stand on each switch, with the job that each is for: what the wired
/// jobs' places demand, as the newest blueprints left it.
pub(crate) type Intent = BTreeMap<PartId, BTreeMap<(u16, u16), JobId>>;

/// What ought to stand.
pub(crate) fn intent(shell: &Shell) -> Intent {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let mut intent = Intent::new();
    for &id in &state.active {
        let job = &state.jobs[id];
        let Some(place) = &job.place else { continue };
        // Wiring that is being undone is nobody's intent.
        if state.wirings.get(&id).is_some_and(|it| it.blueprint.undoes) {
            continue;
        }
        // A job that was placed has a wiring; one that has none joins nothing.
        let pairs = family::xconnects(fabric, &job.spec.demand, place).unwrap_or_default();
        for (switch, pair) in pairs {
            intent.entry(switch).or_default().insert((pair.north, pair.south), id);
        }
    }
    intent
}

/// All circuit switches.
pub(crate) fn views(shell: &Shell) -> Vec<SwitchView> {
    let (intent, index) = (intent(shell), Index::of(shell));
    let switches = shell.core().state().switches.iter();
    switches.map(|(id, known)| view(shell, &intent, &index, *id, known)).collect()
}

fn view(
    shell: &Shell,
    intent: &Intent,
    index: &Index,
    id: PartId,
    known: &SwitchState,
) -> SwitchView {
    let fabric = shell.core().fabric();
    let part = fabric.part(id);
    let none = BTreeMap::new();
    let wanted = intent.get(&id).unwrap_or(&none);
    let n_both = wanted.keys().filter(|(n, s)| known.pairs.get(n) == Some(s)).count();
    // A pair that nobody intends and nobody's light needs is left where it is.
    let n_loose = known.pairs.iter().filter(|(n, s)| conflicts(wanted, **n, **s)).count();
    SwitchView {
        name: part.name.to_string(),
        pod: part.pool.map(|it| fabric.pools()[it].clone()),
        n_pairs: known.pairs.len(),
        n_intended: wanted.len(),
        n_differ: wanted.len() - n_both + n_loose,
        generation: known.generation.number(),
        known: known.known,
        silent_s: known.silent.map(|it| it.as_secs_f64()),
        drained: index.is_drained(id),
        links_drained: index.n_links_drained(id),
        cases: index.cases_of(id),
    }
}

/// Whether a standing pair holds a port that ought to be in another.
fn conflicts(wanted: &BTreeMap<(u16, u16), JobId>, north: u16, south: u16) -> bool {
    let is_wanted = wanted.contains_key(&(north, south));
    !is_wanted && wanted.keys().any(|(n, s)| *n == north || *s == south)
}

/// One circuit switch with its mirrors.
pub(crate) fn detail(shell: &Shell, name: &str) -> Result<SwitchDetail, ApiError> {
    let (fabric, state) = (shell.core().fabric(), shell.core().state());
    let is_switch = |id: &PartId| fabric.template_of(*id).role == Role::CircuitSwitch;
    let found = fabric.part_named(name).filter(is_switch);
    let entry = found.and_then(|id| Some((id, state.switches.get(&id)?)));
    let (id, known) = entry.ok_or_else(|| ApiError::no_such("circuit switch", name))?;
    let intent = intent(shell);
    let wanted = intent.get(&id).cloned().unwrap_or_default();
    let actual: BTreeSet<(u16, u16)> = known.pairs.iter().map(|(n, s)| (*n, *s)).collect();
    let all: BTreeSet<(u16, u16)> = actual.iter().chain(wanted.keys()).copied().collect();
    let ports = fabric.template_of(id).ports();
    let holder = |local: u16| {
        let end = fabric.peer_of(fabric.port_at(id, usize::from(local)))?;
        Some(fabric.part(fabric.part_of_port(end)).name.to_string())
    };
    let mirrors = shell.plant().and_then(|it| it.mirrors(id));
    let pair = |(north, south): (u16, u16)| PairView {
        north: ports[usize::from(north)].name.clone(),
        south: ports[usize::from(south)].name.clone(),
        from: holder(north),
        to: holder(south),
        intended: wanted.contains_key(&(north, south)),
        actual: actual.contains(&(north, south)),
        job: wanted.get(&(north, south)).map(|it| it.number()),
        moves: mirrors.map(|it| it.moves_of(north) + it.moves_of(south)),
    };
    Ok(SwitchDetail {
        switch: view(shell, &intent, &Index::of(shell), id, known),
        pairs: all.into_iter().map(pair).collect(),
        drains: drain_views(shell, |it| parts_of(fabric, it).contains(&id)),
    })
}
