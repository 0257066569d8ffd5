//! `/v1/cases`, `/v1/mark`, `/v1/maintenance`, `/v1/moves`: faults, repairs and planned work.

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use selvedge_control::health;
use selvedge_control::input::Ask;
use selvedge_control::note::CaseState;
use selvedge_control::preflight;
use selvedge_control::state::Case;
use selvedge_model::fault::{Mark, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PlanId};
use selvedge_model::job::Place;
use selvedge_model::unit::Moment;

use crate::api::body::{Json, Params};
use crate::api::error::{ApiError, ErrorBody};
use crate::api::job::{Empty, find, span};
use crate::house::{By, House, target_named};
use crate::shell::Shell;
use crate::users::Role;
use crate::words;

/// One diagnosed fault, or one planned work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CaseView {
    /// Its number.
    pub id: u32,
    /// What is concerned.
    pub target: String,
    /// What was seen first.
    pub symptom: String,
    /// `transient`, `degraded`, `critical` or `fatal`.
    pub severity: String,
    /// By which rule: how bad one such symptom is, and how many within which time are worse.
    #[serde(default)]
    pub rule: String,
    /// `observed`, `draining`, `waiting`, `under_repair`, `verifying`, `probation` or `closed`.
    pub state: String,
    /// Since when it stands there.
    pub since_s: f64,
    /// When it was opened.
    pub opened_s: f64,
    /// When trust returns, on probation.
    pub until_s: Option<f64>,
    /// Since when the breaker holds back what would be done about it by itself; absent where it
    /// holds nothing back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back_s: Option<f64>,
    /// When that is weighed again; a person may take the repair before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighed_again_s: Option<f64>,
    /// How much was seen.
    pub n_seen: u32,
    /// How often it has been repaired.
    pub n_repairs: u32,
    /// Who has taken the repair.
    pub taken_by: Option<String>,
    /// The maintenance that it belongs to.
    pub maintenance: Option<u32>,
    /// How it was closed: `passed` (not seen again), `requalified`, `absorbed` (by a larger case)
    /// or `retired` (its part was taken out of the plant).
    pub closed: Option<String>,
    /// What was seen: the first lines.
    pub evidence: Vec<EvidenceView>,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EvidenceView {
    /// When.
    pub at_s: f64,
    /// What.
    pub symptom: String,
    /// What was measured, in the symptom's unit.
    pub value: Option<u32>,
    /// What a topology file's finding says and what to do about it, as long as the file has it; how
    /// many reads and polls a switch has missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// Cases.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CaseList {
    /// In the order of their numbers.
    pub cases: Vec<CaseView>,
}

/// Planned work to do.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceForm {
    /// What is worked on: paths.
    pub targets: Vec<String>,
    /// How many at a time; 1 where absent.
    #[serde(default)]
    pub at_once: Option<u32>,
    /// How long the work on one takes: `30m`.
    pub work: String,
    /// Why.
    #[serde(default)]
    pub why: String,
}

/// Planned work as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceView {
    /// Its number.
    pub id: u32,
    /// Who planned it.
    pub by: String,
    /// Why.
    pub why: String,
    /// Targets not begun.
    pub n_waiting: usize,
    /// Targets at work.
    pub n_at_work: usize,
    /// Targets done.
    pub n_done: u32,
    /// How many at a time.
    pub at_once: u32,
    /// How long the work on one takes.
    pub work_s: f64,
}

/// All planned work.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceList {
    /// In the order of their numbers.
    pub maintenance: Vec<MaintenanceView>,
}

/// A replica of an MPI program that its siblings outvoted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkForm {
    /// The machine that it ran on: a host, a board, or a machine of a cube.
    pub machine: String,
    /// The job, if it is one of this server's.
    #[serde(default)]
    pub job: Option<u32>,
    /// Which process of the program.
    pub rank: u32,
    /// Which of its replicas, from 0 on.
    pub set: u8,
    /// The number of the call whose contents differed.
    pub call: u64,
    /// The first byte that differs; absent where only digests were compared.
    #[serde(default)]
    pub byte: Option<u64>,
}

/// What a change with nothing else to say answers.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Numbered {
    /// What was made or accepted.
    pub id: u32,
}

/// Running jobs that would be moved so that one that waits fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MovesView {
    /// The plan's number.
    pub id: u32,
    /// The job that waits.
    pub job: u32,
    /// What it costs.
    pub lost_chip_hours: f64,
    /// Who goes where.
    pub moves: Vec<MoveView>,
}

/// One job's move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    /// Which job.
    pub job: u32,
    /// How many chips it holds.
    pub chips: u32,
    /// Where it is.
    pub from: Vec<String>,
    /// Where it goes.
    pub to: Vec<String>,
}

/// The proposed defragmentation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MovesAnswer {
    /// None where nothing is proposed.
    pub proposal: Option<MovesView>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CaseParams {
    /// Only those that are not closed.
    #[serde(default)]
    open: bool,
}

/// All cases.
#[utoipa::path(get, path = "/v1/cases", tag = "repair", params(CaseParams),
    responses((status = 200, body = CaseList), (status = "default", body = ErrorBody)))]
pub(crate) async fn list(
    State(house): State<House>,
    Params(params): Params<CaseParams>,
) -> Result<Answer<CaseList>, ApiError> {
    let cases = house.look(move |shell| views(shell, params.open)).await?;
    Ok(Answer(CaseList { cases }))
}

/// One case.
#[utoipa::path(get, path = "/v1/cases/{id}", tag = "repair", params(("id" = String, Path)),
    responses((status = 200, body = CaseView), (status = "default", body = ErrorBody)))]
pub(crate) async fn show(
    State(house): State<House>,
    Path(id): Path<String>,
) -> Result<Answer<CaseView>, ApiError> {
    let id = id_of(&id)?;
    house.look(move |shell| view_of(shell, id)).await?.map(Answer)
}

/// Takes a repair upon oneself (`take`), or says that it is done (`done`).
#[utoipa::path(post, path = "/v1/cases/{id}/{order}", tag = "repair",
    params(("id" = String, Path), ("order" = String, Path)),
    responses((status = 200, body = CaseView), (status = "default", body = ErrorBody)))]
pub(crate) async fn order(
    State(house): State<House>,
    Path((id, order)): Path<(String, String)>,
    by: By,
    Json(_): Json<Empty>,
) -> Result<Answer<CaseView>, ApiError> {
    let case = id_of(&id)?;
    let what = match order.as_str() {
        "take" => Ask::TakeRepair { case },
        "done" => Ask::FinishRepair { case },
        other => {
            return Err(ApiError::no_such("order", other).hint("cases take `take` and `done`"));
        }
    };
    let view = move |shell: &Shell, _| view(shell, case, &shell.core().state().cases[case]);
    house.ask(by, what, view).await.map(Answer)
}

/// All planned work.
#[utoipa::path(get, path = "/v1/maintenance", tag = "repair",
    responses((status = 200, body = MaintenanceList), (status = "default", body = ErrorBody)))]
pub(crate) async fn maintenances(
    State(house): State<House>,
) -> Result<Answer<MaintenanceList>, ApiError> {
    Ok(Answer(MaintenanceList { maintenance: house.look(maintenance_views).await? }))
}

/// Plans work on many things, in waves.
#[utoipa::path(post, path = "/v1/maintenance", tag = "repair", request_body = MaintenanceForm,
    responses((status = 200, body = Numbered), (status = "default", body = ErrorBody)))]
pub(crate) async fn maintain(
    State(house): State<House>,
    by: By,
    Json(form): Json<MaintenanceForm>,
) -> Result<Answer<Numbered>, ApiError> {
    let work = span("work", &form.work)?;
    let paths = form.targets;
    let targets = house.look(move |shell| {
        paths.iter().map(|it| target_named(shell, it)).collect::<Result<Vec<_>, _>>()
    });
    let n_at_once = form.at_once.unwrap_or(1);
    let what = Ask::Maintain { targets: targets.await??, n_at_once, work, why: form.why };
    let id = house.ask(by, what, |shell, _| {
        let n = shell.core().state().maintenances.len();
        u32::try_from(n - 1).unwrap_or(u32::MAX)
    });
    Ok(Answer(Numbered { id: id.await? }))
}

/// The proposed defragmentation, with what it costs.
#[utoipa::path(get, path = "/v1/moves", tag = "repair",
    responses((status = 200, body = MovesAnswer), (status = "default", body = ErrorBody)))]
pub(crate) async fn moves(State(house): State<House>) -> Result<Answer<MovesAnswer>, ApiError> {
    let proposal = house.look(|shell| {
        let proposal = shell.core().state().proposal.as_ref()?;
        let state = shell.core().state();
        let moves = proposal.moves.iter().map(|(job, to)| MoveView {
            job: job.number(),
            chips: to.n_seats(),
            from: state.jobs[*job].place.as_ref().map_or_else(Vec::new, |it| names(shell, it)),
            to: names(shell, to),
        });
        Some(MovesView {
            id: proposal.id.number(),
            job: proposal.job.number(),
            lost_chip_hours: proposal.lost.as_secs_f64() / 3600.0,
            moves: moves.collect(),
        })
    });
    Ok(Answer(MovesAnswer { proposal: proposal.await? }))
}

fn names(shell: &Shell, place: &Place) -> Vec<String> {
    let fabric = shell.core().fabric();
    place.holds.iter().map(|it| fabric.part(it.part).name.to_string()).collect()
}

/// Says that a replica of an MPI program was outvoted: evidence against its machine, which carries
/// no new work once that happens three times a day.
#[utoipa::path(post, path = "/v1/mark", tag = "repair", request_body = MarkForm,
    responses((status = 200, body = CaseList), (status = "default", body = ErrorBody)))]
pub(crate) async fn mark(
    State(house): State<House>,
    by: By,
    Json(form): Json<MarkForm>,
) -> Result<Answer<CaseList>, ApiError> {
    let target = house.find(form.machine).await?;
    let job = form.job.map(JobId::new);
    if by.role == Role::User {
        let Some(job) = job else {
            return Err(ApiError::new(StatusCode::FORBIDDEN, "no job is named")
                .hint("a user marks machines of their own jobs; an operator marks any"));
        };
        let owner = house.look(move |shell| find(shell, job).map(|it| it.spec.owner.clone()));
        by.may_change_job_of(&owner.await??)?;
    }
    let MarkForm { rank, set, call, byte, .. } = form;
    let mark = Mark { job, rank, set, call, byte };
    house.mark(by, target, mark).await?;
    let cases = house.look(move |shell| {
        let fabric = shell.core().fabric();
        let machine = selvedge_control::family::host_at(fabric, target).unwrap_or(target);
        let path = fabric.path(machine);
        views(shell, true).into_iter().filter(|it| it.target == path).collect()
    });
    Ok(Answer(CaseList { cases: cases.await? }))
}

/// Accepts a proposed defragmentation.
#[utoipa::path(post, path = "/v1/moves/{id}/accept", tag = "repair", params(("id" = u32, Path)),
    responses((status = 200, body = Numbered), (status = "default", body = ErrorBody)))]
pub(crate) async fn accept_moves(
    State(house): State<House>,
    Path(id): Path<String>,
    by: By,
    Json(_): Json<Empty>,
) -> Result<Answer<Numbered>, ApiError> {
    let bare = id.strip_prefix("plan").unwrap_or(&id);
    let number = bare.parse().map_err(|_| ApiError::bad(format!("{id:?} is no plan's number")))?;
    house.ask(by, Ask::Defragment { plan: PlanId::new(number) }, |_, _| ()).await?;
    Ok(Answer(Numbered { id: number }))
}

/// All cases, or those that are open.
pub(crate) fn views(shell: &Shell, open: bool) -> Vec<CaseView> {
    let cases = shell.core().state().cases.pairs();
    let cases = cases.filter(|(_, case)| !open || case.state != CaseState::Closed);
    cases.map(|(id, case)| view(shell, id, case)).collect()
}

/// The case `id`.
pub(crate) fn view_of(shell: &Shell, id: CaseId) -> Result<CaseView, ApiError> {
    let case = shell.core().state().cases.get(id);
    case.map(|it| view(shell, id, it)).ok_or_else(|| ApiError::no_such("case", id.number()))
}

/// All planned work.
pub(crate) fn maintenance_views(shell: &Shell) -> Vec<MaintenanceView> {
    let all = shell.core().state().maintenances.iter().zip(0..);
    let view = |(it, id): (&selvedge_control::state::Maintenance, u32)| MaintenanceView {
        id,
        by: it.by.clone(),
        why: it.why.clone(),
        n_waiting: it.waiting.len(),
        n_at_work: it.at_work.len(),
        n_done: it.n_done,
        at_once: it.n_at_once,
        work_s: it.work.as_secs_f64(),
    };
    all.map(view).collect()
}

fn view(shell: &Shell, id: CaseId, case: &Case) -> CaseView {
    let evidence = case.evidence.iter().map(|(at, symptom, value)| EvidenceView {
        at_s: at.as_secs_f64(),
        symptom: words::symptom(*symptom).to_owned(),
        value: *value,
        words: words_of(shell, case.target, (*at, *symptom, *value)),
    });
    CaseView {
        id: id.number(),
        target: shell.core().fabric().path(case.target),
        symptom: words::symptom(case.symptom).to_owned(),
        severity: words::severity(case.severity).to_owned(),
        rule: words::rule(&health::rule_on(case.symptom, &shell.core().fabric().thresholds)),
        state: words::case_state(case.state).to_owned(),
        since_s: case.since.as_secs_f64(),
        opened_s: case.opened.as_secs_f64(),
        until_s: match case.state {
            CaseState::Probation { until } => Some(until.as_secs_f64()),
            CaseState::Observed
            | CaseState::Draining
            | CaseState::Waiting
            | CaseState::UnderRepair
            | CaseState::Verifying
            | CaseState::Closed => None,
        },
        held_back_s: case.held_back.map(|it| it.as_secs_f64()),
        weighed_again_s: case.held_back.map(|_| shell.core().breaker_until().as_secs_f64()),
        n_seen: case.n_seen,
        n_repairs: case.n_repairs,
        taken_by: case.taken_by.clone(),
        maintenance: case.maintenance,
        closed: case.closed.map(|it| words::closing(it).to_owned()),
        evidence: evidence.collect(),
    }
}

/// What a port without a signal measures.
const SILENT: u32 = u16::MAX as u32;

/// What a piece of evidence says beyond its number.
fn words_of(
    shell: &Shell,
    target: Target,
    (at, symptom, value): (Moment, Symptom, Option<u32>),
) -> Option<String> {
    if let (Symptom::Silent, Target::Part(_), Some(n)) = (symptom, target, value) {
        return Some(match n {
            1 => "one read or poll was not answered".to_owned(),
            n => format!("{n} reads and polls in a row were not answered"),
        });
    }
    if let (Symptom::LinkDown, Some(SILENT)) = (symptom, value) {
        return Some("no light".to_owned());
    }
    if let (Symptom::TaskHung, Some(job)) = (symptom, value) {
        return Some(format!("of {}", JobId::new(job)));
    }
    if symptom == Symptom::Marked {
        let marks = shell.core().state().marks.get(&target)?;
        let (_, mark) = marks.iter().find(|it| it.0 == at)?;
        let of = mark.job.map_or(String::new(), |it| format!(" of {it}"));
        let byte = mark.byte.map_or("by digest".to_owned(), |it| format!("from byte {it} on"));
        let Mark { rank, set, call, .. } = mark;
        return Some(format!("replica {set} of rank {rank}{of} differed in call {call}, {byte}"));
    }
    let is_file = matches!(symptom, Symptom::TopologyFaulty | Symptom::TopologyDoubtful);
    let (true, Target::Part(part), Some(rule)) = (is_file, target, value) else { return None };
    preflight::words_of_rule(shell.core().fabric(), part, rule)
}

fn id_of(text: &str) -> Result<CaseId, ApiError> {
    let number = text.strip_prefix("case").unwrap_or(text).parse();
    number.map(CaseId::new).map_err(|_| ApiError::bad(format!("{text:?} is no case's number")))
}
