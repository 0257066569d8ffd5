//! `/v1/plant`, `/v1/level`, `/v1/faults`: what there is, and what may be done to it.

use axum::Json as Answer;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use selvedge_control::core::{Core, Refused};
use selvedge_control::input::Ask;
use selvedge_model::fabric::{Fabric, LinkKind, NodeKind, Role};
use selvedge_model::fault::Target;
use selvedge_model::spec::{self, Plant};
use selvedge_sim::fault::{FaultKind, FaultSpec};

use crate::api::body::{Json, Params};
use crate::api::error::{ApiError, ErrorBody};
use crate::api::explain;
use crate::house::{By, House, target_named};
use crate::plant::Tamper;
use crate::words;

/// The plant.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlantView {
    /// Its version; a change names the one that it was made from.
    pub version: u64,
    /// The file's text.
    pub plant: String,
    /// Parts that jobs run on.
    pub n_cubes: usize,
    /// Circuit switches.
    pub n_switches: usize,
    /// Nodes, those of retired parts included.
    pub n_nodes: usize,
    /// Directed links, those of retired parts included.
    pub n_links: usize,
}

/// A new plant file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlantForm {
    /// The file's text.
    pub plant: String,
    /// The version that it was made from.
    pub expected: u64,
}

/// What a new plant file changes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlantAnswer {
    /// The version that holds now.
    pub version: u64,
    /// What is different, a line each.
    pub changes: Vec<String>,
}

/// What may be done without being asked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelForm {
    /// `observe`, `quarantine`, `drain` or `repair`.
    pub level: String,
}

/// Something to do to a simulated plant.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultForm {
    /// To what: a path.
    pub target: String,
    /// What goes wrong: `machine_down`, `link_flapping`, …; what breaks such a thing where absent.
    #[serde(default)]
    pub kind: Option<String>,
    /// `inject`, or `clear` for all that is wrong with it.
    pub action: String,
}

/// What was done.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FaultAnswer {
    /// To what.
    pub target: String,
    /// What went wrong; none where all was put right.
    pub kind: Option<String>,
    /// `inject` or `clear`.
    pub action: String,
}

/// A fault of the simulated plant, as it really is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FaultView {
    /// What is at fault.
    pub target: String,
    /// What is wrong with it.
    pub kind: String,
    /// Since when.
    pub since_s: f64,
}

/// The faults of the simulated plant.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FaultList {
    /// In the order in which they happened.
    pub faults: Vec<FaultView>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApplyParams {
    /// Answer the changes and apply nothing.
    #[serde(default)]
    dry_run: bool,
}

/// The plant file, and its version.
#[utoipa::path(get, path = "/v1/plant", tag = "plant",
    responses((status = 200, body = PlantView), (status = "default", body = ErrorBody)))]
pub(crate) async fn show(State(house): State<House>) -> Result<Answer<PlantView>, ApiError> {
    let view = house.look(|shell| {
        let (fabric, state) = (shell.core().fabric(), shell.core().state());
        let n_of = |role| {
            let parts = fabric.parts().pairs().filter(|(_, it)| !it.retired);
            parts.filter(|(id, _)| fabric.template_of(*id).role == role).count()
        };
        PlantView {
            version: state.plants.len() as u64,
            plant: state.plants.last().cloned().unwrap_or_default(),
            n_cubes: n_of(Role::Compute),
            n_switches: n_of(Role::CircuitSwitch),
            n_nodes: fabric.n_nodes(),
            n_links: fabric.n_links(),
        }
    });
    view.await.map(Answer)
}

/// Changes the plant, if it still is at the version that the change was made from.
#[utoipa::path(put, path = "/v1/plant", tag = "plant", params(ApplyParams),
    request_body = PlantForm,
    responses((status = 200, body = PlantAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn apply(
    State(house): State<House>,
    Params(params): Params<ApplyParams>,
    by: By,
    Json(form): Json<PlantForm>,
) -> Result<Answer<PlantAnswer>, ApiError> {
    let expected = form.expected;
    let (core, plants) =
        house.look(|shell| (shell.core().apart(), shell.core().state().plants.clone())).await?;
    let text = form.plant.clone();
    let tried = explain::tried(core, move |core| changes(core, plants, text, expected)).await??;
    if params.dry_run {
        return Ok(Answer(PlantAnswer { version: expected, changes: tried }));
    }
    let what = Ask::ApplyPlant { plant: form.plant, expected };
    let version = house.ask(by, what, |shell, _| shell.core().state().plants.len() as u64).await?;
    Ok(Answer(PlantAnswer { version, changes: tried }))
}

/// What a new plant file changes; what it would be refused for is found here too.
fn changes(
    core: &Core,
    plants: Vec<String>,
    text: String,
    expected: u64,
) -> Result<Vec<String>, ApiError> {
    let current = plants.len() as u64;
    if expected != current {
        return Err(Refused::PlantVersion { expected, current }.into());
    }
    let new = Plant::parse("plant", &text).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        ApiError::unprocessable(lines.join("\n"))
    })?;
    let old = Plant::parse("plant", plants.last().map_or("", String::as_str))
        .map_err(|_| ApiError::bad("the present plant does not read any longer"))?;
    core.would_apply(plants, text)?;
    Ok(spec::diff(&old, &new).iter().map(ToString::to_string).collect())
}

/// Sets what may be done without being asked.
#[utoipa::path(put, path = "/v1/level", tag = "plant", request_body = LevelForm,
    responses((status = 200, body = LevelForm), (status = "default", body = ErrorBody)))]
pub(crate) async fn set_level(
    State(house): State<House>,
    by: By,
    Json(form): Json<LevelForm>,
) -> Result<Answer<LevelForm>, ApiError> {
    let level = words::level_named(&form.level).ok_or_else(|| {
        ApiError::unprocessable(format!("there is no level {:?}", form.level))
            .hint("levels are observe, quarantine, drain and repair")
    })?;
    house.ask(by, Ask::SetLevel { level }, |_, _| ()).await?;
    Ok(Answer(form))
}

/// The faults that stand in the simulated plant.
#[utoipa::path(get, path = "/v1/faults", tag = "plant",
    responses((status = 200, body = FaultList), (status = "default", body = ErrorBody)))]
pub(crate) async fn faults(State(house): State<House>) -> Result<Answer<FaultList>, ApiError> {
    let faults = house.look(|shell| {
        let fabric = shell.core().fabric();
        let faults = shell.plant().into_iter().flat_map(|it| it.faults());
        let view = faults.map(|it| FaultView {
            target: words::path(fabric, it.target),
            kind: it.kind.word().to_owned(),
            since_s: it.since.as_secs_f64(),
        });
        view.collect()
    });
    Ok(Answer(FaultList { faults: faults.await? }))
}

/// Breaks or mends something in the simulated plant, behind the core's back.
#[utoipa::path(post, path = "/v1/faults", tag = "plant", request_body = FaultForm,
    responses((status = 200, body = FaultAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn tamper(
    State(house): State<House>,
    by: By,
    Json(form): Json<FaultForm>,
) -> Result<Answer<FaultAnswer>, ApiError> {
    let path = form.target.clone();
    let kind = form.kind.as_deref().map(kind_named).transpose()?;
    let (target, breaks) = house
        .look(move |shell| {
            let target = target_named(shell, &path)?;
            Ok::<_, ApiError>((target, breaks(shell.core().fabric(), target)))
        })
        .await??;
    let (tamper, kind) = match form.action.as_str() {
        "inject" => {
            let kind = kind.unwrap_or(breaks);
            (Tamper::Inject(FaultSpec { kind, target: Some(target) }), Some(kind))
        }
        "clear" => (Tamper::Clear(target), None),
        other => {
            return Err(ApiError::unprocessable(format!("there is no action {other:?}"))
                .hint("faults take inject and clear"));
        }
    };
    let kind = kind.map(|it| it.word().to_owned());
    let kind_word = kind.as_deref().unwrap_or("all");
    house.remark(by, format!("fault {}: {kind_word} at {}", form.action, form.target)).await?;
    house.tamper(tamper).await?;
    Ok(Answer(FaultAnswer { target: form.target, kind, action: form.action }))
}

fn kind_named(word: &str) -> Result<FaultKind, ApiError> {
    FaultKind::parse(word).ok_or_else(|| {
        let words: Vec<&str> = FaultKind::ALL.iter().map(|it| it.word()).collect();
        ApiError::unprocessable(format!("there is no kind of fault {word:?}"))
            .hint(format!("kinds are {}", words.join(", ")))
    })
}

/// What breaks a thing of that sort.
fn breaks(fabric: &Fabric, target: Target) -> FaultKind {
    match target {
        Target::Part(part) => match fabric.template_of(part).role {
            Role::CircuitSwitch | Role::PacketSwitch => FaultKind::SwitchDown,
            Role::Compute => FaultKind::Silent,
        },
        Target::Node(node) => match fabric.node(node).kind {
            NodeKind::Chip => FaultKind::ChipFailed,
            NodeKind::Machine
            | NodeKind::Tray
            | NodeKind::Cpu
            | NodeKind::Nic
            | NodeKind::Switch => FaultKind::MachineDown,
        },
        Target::Port(_) => FaultKind::PortFailed,
        Target::Link(link) => match fabric.link(link).attrs.kind {
            LinkKind::Pcie => FaultKind::PcieDegraded,
            LinkKind::Ici
            | LinkKind::Fibre
            | LinkKind::NvLink
            | LinkKind::Ethernet
            | LinkKind::Board
            | LinkKind::Socket => FaultKind::LinkDown,
        },
    }
}
