//! What has happened, newest first.

use std::sync::Arc;

use maud::{Markup, html};

use selvedge_control::note::About;

use crate::feed::Event;
use crate::limits;
use crate::page::sheet::{Part, Sheet, clock, inert, none};
use crate::shell::Shell;

/// Which events a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Filter {
    /// Only those about this.
    pub(super) about: Option<About>,
    /// Only those before this number.
    pub(super) before: Option<u64>,
}

impl Filter {
    /// The filter that an address asks for.
    pub(super) fn of(query: &str) -> Self {
        let value =
            |key: &str| query.split('&').find_map(|it| it.strip_prefix(key)?.strip_prefix('='));
        let about = About::ALL.into_iter().find(|it| value("about") == Some(it.word()));
        Self { about, before: value("before").and_then(|it| it.parse().ok()) }
    }

    fn address(self) -> String {
        let about = self.about.map(|it| format!("about={}", it.word()));
        let before = self.before.map(|it| format!("before={it}"));
        let pairs: Vec<String> = about.into_iter().chain(before).collect();
        if pairs.is_empty() { "/events".to_owned() } else { format!("/events?{}", pairs.join("&")) }
    }
}

/// Some events, newest first.
#[derive(Clone, Debug)]
pub(super) struct Events {
    filter: Filter,
    events: Vec<Arc<Event>>,
    /// Whether there are older ones.
    has_older: bool,
}

impl Events {
    /// The newest events that `filter` lets through, at most `n`.
    pub(super) fn of(shell: &Shell, filter: Filter, n: usize) -> Self {
        let kept = shell.feed().recent(limits::EVENTS_KEPT);
        let before = |it: &&Arc<Event>| filter.before.is_none_or(|before| it.number < before);
        let about = |it: &&Arc<Event>| filter.about.is_none_or(|about| it.note.about() == about);
        let mut found = kept.iter().rev().filter(before).filter(about);
        let events: Vec<_> = found.by_ref().take(n).cloned().collect();
        Self { filter, events, has_older: found.next().is_some() }
    }

    /// As a part of another page.
    pub(super) fn part(&self) -> Part {
        let heading = html! { "Events" a.sum href="/events" { "all" } };
        Part::with("events", heading, self.list())
    }

    fn list(&self) -> Markup {
        if self.events.is_empty() {
            return none("Nothing of this kind is remembered since the last start.");
        }
        html! {
            ol.events { @for event in &self.events {
                li class=(event.note.about().word()) data-key=(event.number)
                    data-event=(event.number) {
                    time { (clock(event.at.as_secs_f64())) }
                    span { (inert(&event.text)) }
                }
            } }
        }
    }

    /// The page of events.
    pub(super) fn sheet(&self) -> Sheet {
        let filter = |about: Option<About>, text: &str| {
            let to = Filter { about, before: None }.address();
            let here = (self.filter.about == about).then_some("page");
            html! { a href=(to) aria-current=[here] { (text) } }
        };
        let last = self.events.last().map(|it| it.number).filter(|_| self.has_older);
        let older = last.map(|it| Filter { before: Some(it), ..self.filter }.address());
        let body = html! {
            nav.filters aria-label="what the events are about" {
                (filter(None, "all"))
                @for about in About::ALL { (filter(Some(about), about.word())) }
            }
            (self.list())
            p.pages {
                @if self.filter.before.is_some() {
                    a href=(Filter { before: None, ..self.filter }.address()) { "newest" } " "
                }
                @if let Some(older) = older { a href=(older) { "older" } }
            }
        };
        let parts = vec![Part::new("events", "Events", body)];
        Sheet { title: "events".to_owned(), layout: "one", parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_survives_its_address() {
        for about in About::ALL.map(Some).into_iter().chain([None]) {
            for before in [None, Some(17)] {
                let filter = Filter { about, before };
                let address = filter.address();
                let query = address.split_once('?').map_or("", |it| it.1);
                assert_eq!(Filter::of(query), filter, "{address}");
            }
        }
        assert_eq!(Filter::of("about=<script>&before=-1&x"), Filter::default());
    }
}
