//! What the core's enums are called in answers and what its notes say in one line.

use selvedge_control::health::{self, Rule};
use selvedge_control::input::Exit;
use selvedge_control::note::{About, CaseState, FailWhy, Note, Owner, Stage, StopWhy};
use selvedge_control::settings::Level;
use selvedge_control::state::{Closing, Event, Job, JobState};
use selvedge_model::fabric::Fabric;
use selvedge_model::fault::{Severity, Symptom, Target};
use selvedge_model::id::{JobId, PartId};
use selvedge_model::unit::{Moment, Span};

/// `1 chip`, `4 chips`.
pub(crate) fn counted(n: impl Into<u64>, what: &str) -> String {
    match n.into() {
        1 => format!("1 {what}"),
        n => format!("{} {what}s", grouped(n)),
    }
}

/// `1,234`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = match digits.len() % 3 {
        0 => 3,
        n => n,
    };
    let (head, tail) = digits.split_at(first.min(digits.len()));
    let tail = tail.as_bytes().chunks(3).map(|it| format!(",{}", String::from_utf8_lossy(it)));
    tail.fold(head.to_owned(), |all, it| all + &it)
}

/// A level's word.
pub(crate) fn level(level: Level) -> &'static str {
    match level {
        Level::Observe => "observe",
        Level::Quarantine => "quarantine",
        Level::Drain => "drain",
        Level::Repair => "repair",
    }
}

/// The level called so.
pub(crate) fn level_named(word: &str) -> Option<Level> {
    let levels = [Level::Observe, Level::Quarantine, Level::Drain, Level::Repair];
    levels.into_iter().find(|it| level(*it) == word)
}

/// A stage's word.
pub(crate) fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Wiring => "wiring",
        Stage::Training => "training",
        Stage::Inspecting => "inspecting",
        Stage::Exercising => "exercising",
        Stage::Discovering => "discovering",
        Stage::Programming => "programming",
        Stage::Dispatching => "dispatching",
    }
}

/// How bad a symptom is, and how many within which time are worse.
pub(crate) fn rule(rule: &Rule) -> String {
    let Rule { symptom, severity: one, n_repeats, window, .. } = *rule;
    let (name, word) = (self::symptom(symptom).replace('_', " "), severity(one));
    let more = severity(health::worse(one));
    if n_repeats <= 1 || n_repeats == u32::MAX || more == word {
        return format!("{name} is {word}");
    }
    format!("{name} is {word}; {n_repeats} within {window} are {more}")
}

/// A severity's word.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Transient => "transient",
        Severity::Degraded => "degraded",
        Severity::Critical => "critical",
        Severity::Fatal => "fatal",
    }
}

/// A symptom's word.
pub(crate) fn symptom(symptom: Symptom) -> &'static str {
    match symptom {
        Symptom::MachineDown => "machine_down",
        Symptom::ChipFailed => "chip_failed",
        Symptom::PcieDegraded => "pcie_degraded",
        Symptom::LinkDown => "link_down",
        Symptom::LinkFlapped => "link_flapped",
        Symptom::LinkDegraded => "link_degraded",
        Symptom::SwitchDown => "switch_down",
        Symptom::PortFailed => "port_failed",
        Symptom::PortLossHigh => "port_loss_high",
        Symptom::ExerciseFailed => "exercise_failed",
        Symptom::Miswired => "miswired",
        Symptom::Silent => "silent",
        Symptom::Planned => "planned",
        Symptom::Returned => "returned",
        Symptom::TaskHung => "task_hung",
        Symptom::TopologyFaulty => "topology_faulty",
        Symptom::TopologyDoubtful => "topology_doubtful",
        Symptom::Marked => "marked",
    }
}

/// A case state's word.
pub(crate) fn case_state(state: CaseState) -> &'static str {
    match state {
        CaseState::Observed => "observed",
        CaseState::Draining => "draining",
        CaseState::Waiting => "waiting",
        CaseState::UnderRepair => "under_repair",
        CaseState::Verifying => "verifying",
        CaseState::Probation { .. } => "probation",
        CaseState::Closed => "closed",
    }
}

/// Who holds a drain.
pub(crate) fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Person(name) => name.clone(),
        Owner::Case(case) => case.to_string(),
    }
}

/// A moment of the plant's time as clocks show it: `02:35:14`, `1d 02:35:14`.
pub(crate) fn clock(at: Moment) -> String {
    let whole = at.as_secs_f64() as u64;
    let (days, hours) = (whole / 86_400, whole / 3600 % 24);
    let clock = format!("{hours:02}:{:02}:{:02}", whole / 60 % 60, whole % 60);
    if days == 0 { clock } else { format!("{days}d {clock}") }
}

/// A time as people say it, to the second: `0.4s`, `3m 20s`, `3d 7h 9m 24s`.
fn lasting(span: Span) -> String {
    let whole = span.as_secs();
    if whole == 0 {
        return format!("{:.1}s", span.as_secs_f64());
    }
    let units = [(whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "m")];
    let units = units.into_iter().chain([(whole % 60, "s")]).filter(|it| it.0 != 0);
    units.map(|(n, unit)| format!("{n}{unit}")).collect::<Vec<_>>().join(" ")
}

/// Why a job stops, after "because".
pub(crate) fn stop_why(why: StopWhy, fabric: &Fabric) -> String {
    match why {
        StopWhy::Limit => "it reached its limit".into(),
        StopWhy::Cancelled => "it was cancelled".into(),
        StopWhy::Requeued => "it was asked to start anew".into(),
        StopWhy::Preempted { by } => format!("{by} takes its hardware"),
        StopWhy::Fault { case } => format!("of a fault under it, {case}"),
        StopWhy::Drained { target } => format!("{} was drained", path(fabric, target)),
        StopWhy::Moved { plan } => format!("{plan} moves it"),
        StopWhy::StartFailed { stage: at } => format!("its start failed at {}", stage(at)),
        StopWhy::Lost => "its tasks were lost".into(),
        StopWhy::Failed { status } => format!("its tasks ended with status {status}"),
        StopWhy::Hung { task } => format!("its {}", hung(task)),
    }
}

/// Why a job failed: `limit`, `exit 1`, `8 failed starts`.
pub(crate) fn fail_why(why: FailWhy) -> String {
    match why {
        FailWhy::Limit => "limit".into(),
        FailWhy::Exit { status } => format!("exit {status}"),
        FailWhy::Starts { n } => format!("{n} failed starts"),
        FailWhy::Hung { task } => hung(task),
    }
}

/// Why a job stands as it does, where its state alone does not say it.
pub(crate) fn job_why(job: &Job, fabric: &Fabric) -> Option<String> {
    match &job.state {
        JobState::Queued { held: true, .. } => Some("it is held; release it".into()),
        JobState::Stopping { why, .. } => Some(stop_why(*why, fabric)),
        JobState::Failed { why } => Some(fail_why(*why)),
        JobState::Queued { .. }
        | JobState::Starting { .. }
        | JobState::Running { .. }
        | JobState::Finished
        | JobState::Cancelled => None,
    }
}

/// A line of a job's timeline.
pub(crate) fn event(event: &Event, fabric: &Fabric) -> String {
    match event {
        Event::Submitted => "submitted".into(),
        Event::Placed => "placed".into(),
        Event::Staged(at) => stage(*at).into(),
        Event::Started => "started".into(),
        Event::Notified(why) => format!("told to stop: {}", stop_why(*why, fabric)),
        Event::Stopped(how) => format!("stopped: {}", exit(*how)),
        Event::Requeued => "queued again".into(),
        Event::Ended => "ended".into(),
    }
}

fn exit(exit: Exit) -> String {
    match exit {
        Exit::Done => "its work is done".into(),
        Exit::Told => "as told".into(),
        Exit::Failed(status) => format!("status {status}"),
        Exit::Lost => "its tasks were lost".into(),
        Exit::Hung { task } => hung(task),
    }
}

fn hung(task: u32) -> String {
    format!("task {task} hung: it did not touch its heartbeat in time")
}

/// What people call `target`; its id where the fabric does not have it.
pub(crate) fn path(fabric: &Fabric, target: Target) -> String {
    let known = match target {
        Target::Part(part) => part.idx() < fabric.parts().len(),
        Target::Node(node) => node.idx() < fabric.n_nodes(),
        Target::Port(port) => port.idx() < fabric.n_ports(),
        Target::Link(link) => link.idx() < fabric.n_links(),
    };
    if known { fabric.path(target) } else { format!("{target:?}") }
}

fn part(fabric: &Fabric, part: PartId) -> String {
    path(fabric, Target::Part(part))
}

/// The switch's port with this number; the switch itself where it has none of it.
fn port_at(fabric: &Fabric, switch: PartId, local: u16) -> Target {
    let known = fabric.parts().get(switch).is_some()
        && usize::from(local) < fabric.template_of(switch).ports().len();
    if known {
        Target::Port(fabric.port_at(switch, usize::from(local)))
    } else {
        Target::Part(switch)
    }
}

/// The note's name in its JSON form: `job_started`.
pub(crate) fn kind(note: &Note) -> String {
    match serde_json::to_value(note) {
        Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        Ok(other) => other.as_str().unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    }
}

/// How a case was closed.
pub(crate) fn closing(how: Closing) -> &'static str {
    match how {
        Closing::Passed => "passed",
        Closing::Requalified => "requalified",
        Closing::Absorbed { .. } => "absorbed",
        Closing::Retired => "retired",
    }
}

/// A note in one line.
pub(crate) fn note(note: &Note, fabric: &Fabric) -> String {
    match note.about() {
        About::Jobs => job_note(note, fabric),
        About::Health => health_note(note, fabric),
        About::Wiring => wiring_note(note, fabric),
        About::Plant => plant_note(note),
    }
}

/// A note about the plant itself, as [`Note::about`] says.
fn plant_note(note: &Note) -> String {
    match note {
        Note::PlantApplied { version, n_parts, n_added, n_retired } => {
            let parts = counted(*n_parts, "part");
            format!("plant version {version}: {parts}, {n_added} added, {n_retired} retired")
        }
        Note::LevelSet { level: set, by } => format!("level {} set by {by}", level(*set)),
        Note::StrayFound { job, attempt, n_parts } => format!(
            "start {attempt} of {job} runs on {} and is not in the journal: it is ended",
            counted(*n_parts, "part")
        ),
        Note::StrayEnded { job, attempt } => {
            format!("start {attempt} of {job}, which is not in the journal, has ended")
        }
        other => kind(other),
    }
}

/// A note about faults, drains and repairs, as [`Note::about`] says.
fn health_note(note: &Note, fabric: &Fabric) -> String {
    match note {
        Note::CaseOpened { case, target, symptom: seen, severity: how } => {
            let target = path(fabric, *target);
            if !seen.is_fault() {
                return format!("{case} opened: {target}: {}", seen.words());
            }
            format!("{case} opened: {target}: {} ({})", seen.words(), severity(*how))
        }
        Note::CaseGrew { case, severity: how, n_seen } => {
            format!("{case} seen {}, {}", counted(*n_seen, "time"), severity(*how))
        }
        Note::CaseRetired { case } => format!("{case} retired with its part"),
        Note::ReplicaMarked { target, job, rank, set, call } => {
            let of = job.map_or(String::new(), |it| format!(" of {it}"));
            let on = path(fabric, *target);
            format!("replica {set} of rank {rank}{of} outvoted on {on} in call {call}")
        }
        Note::CaseMoved { case, state } => {
            format!("{case} {}", case_state(*state).replace('_', " "))
        }
        Note::Drained { target, by } => {
            format!("{} drained by {}", path(fabric, *target), owner(by))
        }
        Note::Undrained { target, by } => {
            format!("{} undrained by {}", path(fabric, *target), owner(by))
        }
        Note::BreakerTripped { case, until } => {
            let secs = until.as_secs_f64();
            format!(
                "breaker holds {case} back: too much would be touched at once; it is weighed again \
                 at {secs:.0} s, or `repair take` it"
            )
        }
        Note::MaintenanceMoved { n_waiting, n_at_work, n_done } => {
            format!("maintenance: {n_waiting} waiting, {n_at_work} at work, {n_done} done")
        }
        other => kind(other),
    }
}

/// A note about one job, as [`Note::about`] says.
fn job_note(note: &Note, fabric: &Fabric) -> String {
    match note {
        Note::JobSubmitted { job } => format!("{job} submitted"),
        Note::JobPlaced { job, attempt, n_parts, kept_parts: 0 } => {
            format!("{job} placed on {}, start {attempt}", counted(*n_parts, "part"))
        }
        Note::JobPlaced { job, attempt, n_parts, kept_parts } => {
            let parts = counted(*n_parts, "part");
            format!("{job} placed on {parts} ({kept_parts} kept), start {attempt}")
        }
        Note::JobStaged { job, attempt, stage: at } => {
            format!("{job} {}, start {attempt}", stage(*at))
        }
        Note::JobStarted { job, attempt, waited } => {
            format!("{job} running, start {attempt}, after {}", lasting(*waited))
        }
        Note::JobNotified { job, attempt: _, why } => {
            format!("{job} told to stop because {}", stop_why(*why, fabric))
        }
        Note::JobStopped { job, attempt: _, exit: how, kept } => {
            format!("{job} stopped: {}; {} kept", exit(*how), counted(*kept, "step"))
        }
        Note::JobRequeued { job, why, not_before: _ } => {
            format!("{job} queued again because {}", stop_why(*why, fabric))
        }
        Note::JobFinished { job } => format!("{job} finished"),
        Note::JobFailed { job, why } => format!("{job} failed: {}", fail_why(*why)),
        Note::JobCancelled { job } => format!("{job} cancelled"),
        Note::JobHeld { job, by } => format!("{job} held by {by}"),
        Note::JobReleased { job, by } => format!("{job} released by {by}"),
        other => kind(other),
    }
}

/// A note about a plan or a switch, as [`Note::about`] says.
fn wiring_note(note: &Note, fabric: &Fabric) -> String {
    match note {
        Note::BlueprintAdopted {
            plan,
            generation,
            job,
            n_switches,
            n_removed,
            n_added,
            parent: _,
        } => {
            let on = match n_switches {
                1 => "1 switch".to_owned(),
                n => format!("{n} switches"),
            };
            format!("{plan} ({generation}) for {job}: -{n_removed} +{n_added} on {on}")
        }
        Note::BlueprintDone { plan, job } => format!("{plan} done for {job}"),
        Note::PlanRefused { job, n_violations } => {
            let rules = counted(*n_violations, "rule");
            format!("a plan for {job} broke {rules} and was not adopted")
        }
        Note::SwitchRefused { switch, plan, n_ports } => {
            let ports = counted(*n_ports, "port");
            format!("{} refused {ports} of {plan}", part(fabric, *switch))
        }
        Note::SwitchDiffered { switch, n_pairs } => {
            let pairs = counted(*n_pairs, "pair");
            format!("{} stood otherwise than believed at {pairs}", part(fabric, *switch))
        }
        Note::SwitchStale { switch, newest } => {
            format!("{} has seen {newest}, newer than it was told", part(fabric, *switch))
        }
        Note::TableStale { part: it, newer } => {
            format!(
                "{} has chips with tables of {newer}, newer than it was told",
                part(fabric, *it)
            )
        }
        Note::DiscoveryDiffered { job, n_ports, n_chips_lost } => {
            let verb = if *n_ports == 1 { "leads" } else { "lead" };
            let lost = match n_chips_lost {
                0 => String::new(),
                n => format!("; {} cannot be reached", counted(*n, "chip")),
            };
            let ports = counted(*n_ports, "port");
            format!("{job}: {ports} {verb} elsewhere than asked for{lost}")
        }
        Note::MovesProposed { plan, job, n_moved, lost_chip_hours } => {
            let (jobs, hours) = (counted(*n_moved, "job"), counted(*lost_chip_hours, "chip-hour"));
            format!("{plan} proposed: {jobs} moved for {job}, {hours} lost")
        }
        Note::MovesAdopted { plan, job } => format!("{plan} under way for {job}"),
        Note::PortMoved { switch, from, to } => {
            let name = |local: u16| path(fabric, port_at(fabric, *switch, local));
            format!("fibre moved from {} to {}", name(*from), name(*to))
        }
        other => kind(other),
    }
}

/// The job called `text`: a number, or `job7`.
pub(crate) fn job_named(text: &str) -> Option<JobId> {
    text.strip_prefix("job").unwrap_or(text).parse().ok().map(JobId::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        let said: Vec<String> = [1, 12, 123, 1_234, 12_345, 123_456, 1_234_567]
            .map(|it: u64| counted(it, "job"))
            .into();
        let wanted = "1 job|12 jobs|123 jobs|1,234 jobs|12,345 jobs|123,456 jobs|1,234,567 jobs";
        assert_eq!(said.join("|"), wanted);
    }

    #[test]
    fn a_rule_says_what_one_is_and_how_many_are_worse() {
        let said = |symptom| rule(health::rule_of(symptom));
        assert_eq!(said(Symptom::MachineDown), "machine down is fatal");
        assert_eq!(said(Symptom::TaskHung), "task hung is transient; 2 within 1d are degraded");
        assert_eq!(said(Symptom::TopologyDoubtful), "topology doubtful is transient");
    }
}
