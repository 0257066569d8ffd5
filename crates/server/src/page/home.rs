//! The page that stays open on a wall: the pods, their switches, who waits and what is wrong.

use crate::api::case::{self, CaseView};
use crate::limits;
use crate::page::events::{Events, Filter};
use crate::page::grid::Grid;
use crate::page::health::cases_part;
use crate::page::panel::Panel;
use crate::page::pod::{Map, hatching};
use crate::page::queue::Queue;
use crate::page::sheet::{Part, Sheet};
use crate::shell::Shell;

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Home {
    map: Map,
    grids: Vec<Grid>,
    panel: Panel,
    queue: Queue,
    cases: Vec<CaseView>,
    events: Events,
}

impl Home {
    /// The page of now.
    pub(super) fn of(shell: &Shell) -> Self {
        let mut map = Map::of(shell);
        let grids = Grid::all(shell, &mut map);
        Self {
            map,
            grids,
            panel: Panel::of(shell),
            queue: Queue::of(shell),
            cases: case::views(shell, true),
            events: Events::of(shell, Filter::default(), limits::PAGE_EVENTS_MAX),
        }
    }

    /// The page.
    pub(super) fn sheet(&self) -> Sheet {
        let is_map = !self.map.pods.is_empty() || self.grids.is_empty();
        let map = maud::html! {
            (hatching())
            @for grid in &self.grids { (grid.draw()) }
            @if is_map { (self.map.draw()) }
        };
        let mut parts =
            vec![Part::new("map", "Pod map", map), self.queue.active(), self.queue.waiting()];
        if !self.panel.strips.is_empty() {
            parts.push(Part::with("panel", self.panel.heading(), self.panel.draw()));
        }
        parts.push(cases_part(&self.cases, self.queue.now_s));
        parts.push(self.events.part());
        Sheet { title: "pod".to_owned(), layout: "home", parts }
    }
}
