//! The line of state that heads every page: what runs, how fast, and whether all is well.

use maud::{Markup, html};

use selvedge_control::note::CaseState;

use crate::api::watch::plant_name;
use crate::page::sheet::{Part, clock, inert, tile};
use crate::plant::Remote;
use crate::shell::Shell;
use crate::words;

/// How the plant and its server stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// What the plant file calls the plant, and its version.
    pub(super) plant: String,
    pub(super) version: usize,
    /// Plant time in seconds, and how fast it runs.
    pub(super) now_s: f64,
    pub(super) speed: f64,
    /// What is done without being asked.
    pub(super) level: &'static str,
    pub(super) chips: u64,
    pub(super) chips_used: u64,
    pub(super) chips_out: u64,
    pub(super) n_queued: usize,
    pub(super) n_starting: usize,
    pub(super) n_running: usize,
    pub(super) n_stopping: usize,
    pub(super) n_cases: usize,
    /// Why the journal cannot be written.
    pub(super) journal_error: Option<String>,
    /// Why the plant does not answer.
    pub(super) plant_error: Option<String>,
}

impl Standing {
    /// How they stand now.
    pub(super) fn of(shell: &Shell) -> Self {
        let core = shell.core();
        let state = core.state();
        let count = |mask: fn(&selvedge_control::state::PartState) -> u64| {
            state.parts.iter().map(|it| u64::from(mask(it).count_ones())).sum()
        };
        let active = |word: &str| {
            state.active.iter().filter(|id| state.jobs[**id].state.word() == word).count()
        };
        let waits = |it: &&selvedge_control::state::Job| it.state.word() == "queued";
        Self {
            plant: plant_name(shell),
            version: state.plants.len(),
            now_s: shell.plant_now().as_secs_f64(),
            speed: shell.clock().speed().factor(),
            level: words::level(state.settings.level),
            chips: core.layout().n_seats(),
            chips_used: count(|it| it.held),
            chips_out: count(|it| it.out),
            n_queued: state.jobs.iter().filter(waits).count(),
            n_starting: active("starting"),
            n_running: active("running"),
            n_stopping: active("stopping"),
            n_cases: state.cases.iter().filter(|it| it.state != CaseState::Closed).count(),
            journal_error: shell.journal_error().map(str::to_owned),
            plant_error: shell.plant().and_then(Remote::away).map(str::to_owned),
        }
    }

    /// The line.
    pub(super) fn draw(&self) -> Part {
        let html = html! {
            section #state aria-label="state of the plant" {
                @if let Some(error) = &self.journal_error {
                    p.alarm role="alert" {
                        "The journal cannot be written, so nothing is accepted: " (inert(error))
                    }
                }
                @if let Some(error) = &self.plant_error {
                    p.alarm role="alert" {
                        "The plant does not answer, and its time stands still: " (inert(error))
                    }
                }
                dl.tiles { (self.tiles()) }
            }
        };
        Part { id: "state", html: html.into_string() }
    }

    fn tiles(&self) -> Markup {
        let of = self.chips.max(1);
        let share = |n: u64| 100.0 * n as f64 / of as f64;
        let width = |n: u64| format!("{:.1}", share(n).min(100.0));
        html! {
            (tile("plant", html! { bdi { (inert(&self.plant)) } small { " v" (self.version) } }))
            (tile("plant time", html! { (clock(self.now_s)) small { " ×" (self.speed) } }))
            div.tile.use {
                dt { "chips in use" }
                dd { (self.chips_used) small { " of " (self.chips) }
                    span.share { (percent(self.chips_used, of)) } }
                svg.meter viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                    rect.rail width="100" height="4" {}
                    rect.used width=(width(self.chips_used)) height="4" {}
                    rect.gone x=(format!("{:.1}", 100.0 - share(self.chips_out)))
                        width=(width(self.chips_out)) height="4" {}
                }
            }
            (tile("chips out", html! {
                span.warn[0 < self.chips_out] { (self.chips_out) }
            }))
            (tile("running", html! { (self.n_running)
                @if 0 < self.n_starting { small { " +" (self.n_starting) " starting" } }
                @if 0 < self.n_stopping { small { " −" (self.n_stopping) " stopping" } }
            }))
            (tile("waiting", html! { a href="/queue" { (self.n_queued) } }))
            (tile("open cases", html! {
                a.warn[0 < self.n_cases] href="/health" { (self.n_cases) }
            }))
            (tile("acts at", html! { (self.level) }))
        }
    }
}

/// `n` of `of` in whole hundredths: all is said of all alone, and nothing of nothing.
fn percent(n: u64, of: u64) -> String {
    match 100 * n / of {
        0 if 0 < n => "<1 %".to_owned(),
        whole => format!("{whole} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_plant_is_full_and_only_an_empty_one_empty() {
        let texts = [0, 1, 40, 41, 4088, 4095, 4096].map(|n| percent(n, 4096));
        assert_eq!(texts, ["0 %", "<1 %", "<1 %", "1 %", "99 %", "99 %", "100 %"]);
    }

    #[test]
    fn what_is_wrong_is_said_on_every_page() {
        let well = Standing { chips: 4096, chips_used: 1024, ..Standing::default() };
        let html = well.draw().html;
        assert!(html.contains("25 %") && !html.contains("alert"), "{html}");
        let full = Some("no <room>".to_owned());
        let ill = Standing { journal_error: full.clone(), plant_error: full, ..well };
        let html = ill.draw().html;
        assert_eq!(html.matches("role=\"alert\"").count(), 2, "{html}");
        assert_eq!(html.matches("no &lt;room&gt;").count(), 2, "{html}");
    }
}
