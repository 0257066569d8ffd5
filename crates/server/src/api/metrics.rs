//! `/metrics`: the Prometheus text form, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use selvedge_model::fabric::Side;
use selvedge_model::unit::Span;

use crate::api::error::{ApiError, ErrorBody};
use crate::api::watch::{self, StatusView};
use crate::api::{hardware, switch};
use crate::house::House;
use crate::meter::{BUCKETS_S, Durations, Writes};
use crate::shell::Shell;
use crate::words;

/// Everything that is measured.
#[utoipa::path(get, path = "/metrics", tag = "watching",
    responses((status = 200, body = String, content_type = "text/plain"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn metrics(State(house): State<House>) -> Result<impl IntoResponse, ApiError> {
    let mut page = house.look(page).await?;
    for ((method, route, status), requests) in house.tally().read() {
        let status = status.to_string();
        let labels = [("method", method.as_str()), ("route", &route), ("status", &status)];
        page.sample("selvedge_http_requests_total", &labels, requests.n);
        page.sample("selvedge_http_request_seconds_total", &labels, requests.sum_s);
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page.render()))
}

/// Name, type and meaning of each metric, in the order in which they are printed.
const METRICS: [(&str, &str, &str); 40] = [
    ("selvedge_up_seconds", "gauge", "Real time since the server was started"),
    ("selvedge_plant_seconds", "gauge", "Plant time"),
    ("selvedge_plant_version", "gauge", "Version of the plant file"),
    ("selvedge_jobs", "gauge", "Jobs by state"),
    ("selvedge_queue_jobs", "gauge", "Jobs that wait, by priority"),
    ("selvedge_chips", "gauge", "Chips of each pod"),
    ("selvedge_chips_used", "gauge", "Chips that jobs hold"),
    ("selvedge_chips_out", "gauge", "Chips out of use"),
    ("selvedge_cubes_free", "gauge", "Parts without jobs of which nothing is out of use"),
    ("selvedge_cases_open", "gauge", "Open cases by state and severity"),
    (
        "selvedge_cases_held_back",
        "gauge",
        "Open cases about which the breaker lets nothing be done",
    ),
    ("selvedge_drains", "gauge", "Things out of use"),
    ("selvedge_job_interruptions_total", "counter", "Times that a fault interrupted a running job"),
    ("selvedge_job_preemptions_total", "counter", "Times that a job was preempted or moved"),
    ("selvedge_chip_seconds_total", "counter", "Chips times plant time that jobs held them"),
    ("selvedge_ocs_pairs", "gauge", "Mirror pairs of each switch that stand, as last read"),
    ("selvedge_ocs_pairs_intended", "gauge", "Mirror pairs of each switch that ought to stand"),
    ("selvedge_ocs_pairs_differ", "gauge", "Mirror pairs of each switch that are not as intended"),
    ("selvedge_ocs_generation", "gauge", "Newest write that each switch has acknowledged"),
    ("selvedge_ocs_known", "gauge", "Whether it is known how each switch stands"),
    ("selvedge_ocs_silent", "gauge", "Whether each switch does not answer what it is asked"),
    ("selvedge_ocs_writes_total", "counter", "Writes to each switch by outcome"),
    (
        "selvedge_ocs_write_seconds_total",
        "counter",
        "Plant time from telling a write to its answer",
    ),
    ("selvedge_ocs_write_last_seconds", "gauge", "The same, of the newest write"),
    ("selvedge_ocs_port_loss_db", "gauge", "Loss at each cabled port: expected, and as measured"),
    (
        "selvedge_ocs_port_errors_total",
        "counter",
        "Times that a port could not be connected; of ports of which there were any",
    ),
    ("selvedge_journal_row", "gauge", "Newest row of the journal"),
    ("selvedge_journal_rows_total", "counter", "Rows written by this run"),
    ("selvedge_journal_bytes_total", "counter", "Bytes of rows written by this run"),
    ("selvedge_journal_ok", "gauge", "Whether the journal can be written"),
    ("selvedge_journal_failures_total", "counter", "Appends that failed"),
    ("selvedge_journal_sync_seconds", "histogram", "Real time of one append and sync"),
    ("selvedge_loop_seconds", "histogram", "Real time of one round of the loop"),
    ("selvedge_plant_ok", "gauge", "Whether the plant's process answers"),
    ("selvedge_plant_losses_total", "counter", "Times the plant's process was lost"),
    ("selvedge_faults_injected_total", "counter", "Faults of the simulated plant by kind"),
    ("selvedge_events_total", "counter", "Events told since the first input"),
    ("selvedge_resident_bytes", "gauge", "Memory that the process holds"),
    ("selvedge_http_requests_total", "counter", "Requests by method, route and status"),
    ("selvedge_http_request_seconds_total", "counter", "Real time that they took"),
];

/// Samples by metric.
#[derive(Default)]
struct Page(BTreeMap<&'static str, String>);

impl Page {
    /// Adds one sample of `metric`, which [`METRICS`] describes.
    fn sample(&mut self, metric: &'static str, labels: &[(&str, &str)], value: impl Display) {
        self.line(metric, "", labels, value);
    }

    fn line(
        &mut self,
        metric: &'static str,
        suffix: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) {
        let text = self.0.entry(metric).or_default();
        text.push_str(metric);
        text.push_str(suffix);
        for (idx, (name, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let open = if idx == 0 { '{' } else { ',' };
            write!(text, "{open}{name}=\"{value}\"").expect("a string takes it");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(text, "{close} {value}").expect("a string takes it");
    }

    fn histogram(&mut self, metric: &'static str, durations: &Durations) {
        for (end, n) in BUCKETS_S.iter().zip(durations.up_to) {
            self.line(metric, "_bucket", &[("le", &end.to_string())], n);
        }
        self.line(metric, "_bucket", &[("le", "+Inf")], durations.n);
        self.line(metric, "_sum", &[], durations.sum_s);
        self.line(metric, "_count", &[], durations.n);
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for (name, kind, help) in METRICS {
            let Some(samples) = self.0.get(name) else { continue };
            write!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{samples}")
                .expect("a string takes it");
        }
        text
    }
}

fn page(shell: &Shell) -> Page {
    let mut page = Page::default();
    let status = watch::status_view(shell, String::new());
    server(&mut page, shell, &status);
    jobs(&mut page, shell, &status);
    pods(&mut page, shell);
    switches(&mut page, shell);
    losses(&mut page, shell);
    page
}

fn server(page: &mut Page, shell: &Shell, status: &StatusView) {
    let meter = shell.meter();
    page.sample("selvedge_up_seconds", &[], status.up_s);
    page.sample("selvedge_plant_seconds", &[], status.now_s);
    page.sample("selvedge_plant_version", &[], status.version);
    page.sample("selvedge_journal_row", &[], status.journal);
    page.sample("selvedge_journal_rows_total", &[], meter.n_rows);
    page.sample("selvedge_journal_bytes_total", &[], meter.n_bytes);
    page.sample("selvedge_journal_ok", &[], u8::from(status.journal_ok));
    page.sample("selvedge_journal_failures_total", &[], meter.n_failed_appends);
    page.histogram("selvedge_journal_sync_seconds", &meter.syncs);
    page.histogram("selvedge_loop_seconds", &meter.turns);
    if let Some(plant) = shell.plant() {
        page.sample("selvedge_plant_ok", &[], u8::from(plant.away().is_none()));
        page.sample("selvedge_plant_losses_total", &[], plant.n_losses());
    }
    page.sample("selvedge_events_total", &[], shell.feed().newest());
    for (kind, n) in shell.plant().into_iter().flat_map(|it| it.n_faults()) {
        page.sample("selvedge_faults_injected_total", &[("kind", kind.word())], n);
    }
    if let Some(bytes) = resident_bytes() {
        page.sample("selvedge_resident_bytes", &[], bytes);
    }
}

fn jobs(page: &mut Page, shell: &Shell, status: &StatusView) {
    let state = shell.core().state();
    for (word, n) in &status.jobs {
        page.sample("selvedge_jobs", &[("state", word)], n);
    }
    let mut waiting = [0u64; selvedge_model::job::PRIORITY_MAX as usize + 1];
    for (_, job) in &state.queue {
        waiting[usize::from(state.jobs[*job].spec.priority)] += 1;
    }
    for (priority, n) in waiting.iter().enumerate() {
        page.sample("selvedge_queue_jobs", &[("priority", &priority.to_string())], n);
    }
    let sum = |count: fn(&selvedge_control::state::Job) -> u64| -> u64 {
        state.jobs.iter().map(count).sum()
    };
    page.sample("selvedge_job_interruptions_total", &[], sum(|it| u64::from(it.n_interrupted)));
    page.sample("selvedge_job_preemptions_total", &[], sum(|it| u64::from(it.n_preempted)));
    let held = state.jobs.iter().map(|job| {
        let since = job.place.as_ref().map_or(Span::ZERO, |_| state.now.since(job.placed_at));
        let n_chips = selvedge_control::family::need(&job.spec.demand)
            .map_or(0, |(_, need)| need.n_seats(selvedge_model::limits::SEATS_MAX as u32));
        (job.allocated + since).as_secs_f64() * f64::from(n_chips)
    });
    page.sample("selvedge_chip_seconds_total", &[], held.sum::<f64>());
    let mut open: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for case in state.open_cases.values().map(|it| &state.cases[*it]) {
        let key = (words::case_state(case.state), words::severity(case.severity));
        *open.entry(key).or_default() += 1;
    }
    for ((state, severity), n) in open {
        page.sample("selvedge_cases_open", &[("state", state), ("severity", severity)], n);
    }
    let is_held = |it: &&selvedge_model::id::CaseId| state.cases[**it].held_back.is_some();
    page.sample("selvedge_cases_held_back", &[], state.open_cases.values().filter(is_held).count());
    page.sample("selvedge_drains", &[], state.drains.values().filter(|it| !it.is_empty()).count());
}

fn pods(page: &mut Page, shell: &Shell) {
    for pod in hardware::pod_views(shell) {
        let labels = [("pod", pod.name.as_str())];
        page.sample("selvedge_chips", &labels, pod.n_chips);
        page.sample("selvedge_chips_used", &labels, pod.chips_used);
        page.sample("selvedge_chips_out", &labels, pod.chips_out);
        page.sample("selvedge_cubes_free", &labels, pod.cubes_free);
    }
}

fn switches(page: &mut Page, shell: &Shell) {
    for view in switch::views(shell) {
        let labels = [("ocs", view.name.as_str())];
        page.sample("selvedge_ocs_pairs", &labels, view.n_pairs);
        page.sample("selvedge_ocs_pairs_intended", &labels, view.n_intended);
        page.sample("selvedge_ocs_pairs_differ", &labels, view.n_differ);
        page.sample("selvedge_ocs_generation", &labels, view.generation);
        page.sample("selvedge_ocs_known", &labels, u8::from(view.known));
        page.sample("selvedge_ocs_silent", &labels, u8::from(view.silent_s.is_some()));
    }
    let none = Writes::default();
    for part in shell.core().state().switches.keys() {
        // One that was not written to yet has its noughts.
        let writes = shell.meter().writes.get(part).unwrap_or(&none);
        let name = shell.core().fabric().part(*part).name.to_string();
        let outcomes =
            [("done", writes.n_done), ("refused", writes.n_refused), ("stale", writes.n_stale)];
        for (outcome, n) in outcomes {
            let labels = [("ocs", name.as_str()), ("outcome", outcome)];
            page.sample("selvedge_ocs_writes_total", &labels, n);
        }
        let ports = shell.core().fabric().template_of(*part).ports();
        for (&port, &n) in &writes.port_errors {
            // A device may name a port that it does not have.
            let Some(port) = ports.get(usize::from(port)) else { continue };
            let labels = [("ocs", name.as_str()), ("port", &port.name)];
            page.sample("selvedge_ocs_port_errors_total", &labels, n);
        }
        let labels = [("ocs", name.as_str())];
        page.sample("selvedge_ocs_write_seconds_total", &labels, writes.took.as_secs_f64());
        page.sample("selvedge_ocs_write_last_seconds", &labels, writes.took_last.as_secs_f64());
    }
}

/// The loss at every cabled port of a circuit switch.
fn losses(page: &mut Page, shell: &Shell) {
    let fabric = shell.core().fabric();
    for &switch in shell.core().state().switches.keys() {
        let name = fabric.part(switch).name.to_string();
        let ports = fabric.template_of(switch).ports().iter();
        for (port, id) in ports.zip(fabric.ports_of(switch)) {
            if port.side == Side::Plain {
                continue;
            }
            let Some(cable) = fabric.cable_at(id) else { continue };
            let expected = cable.loss_expected;
            let measured = shell.plant().and_then(|it| it.loss_at(id));
            for (what, loss) in [("expected", Some(expected)), ("measured", measured)] {
                let Some(loss) = loss else { continue };
                let labels = [("ocs", name.as_str()), ("port", &port.name), ("loss", what)];
                let db = f64::from(loss.centi()) / 100.0;
                page.sample("selvedge_ocs_port_loss_db", &labels, db);
            }
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_labels_stay_on_their_line() {
        let mut page = Page::default();
        page.sample("selvedge_jobs", &[("state", "a\"b\\c\nd")], 1);
        let want = "selvedge_jobs{state=\"a\\\"b\\\\c\\nd\"} 1\n";
        assert!(page.render().ends_with(want), "{}", page.render());
    }
}
