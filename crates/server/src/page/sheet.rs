//! What a page is made of: parts with names, and the small things that all parts draw.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::inert;

/// A page of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sheet {
    /// What the window is called.
    pub(super) title: String,
    /// How its parts are laid out.
    pub(super) layout: &'static str,
    /// In reading order, which is the order of focus.
    pub(super) parts: Vec<Part>,
}

/// A part of a page that is drawn again by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// What the browser finds it by.
    pub(super) id: &'static str,
    /// The whole element.
    pub(super) html: String,
}

impl Part {
    /// A part under a heading.
    pub(super) fn new(id: &'static str, heading: &str, body: Markup) -> Self {
        Self::with(id, html! { (heading) }, body)
    }

    /// A part under a heading with more than text.
    pub(super) fn with(id: &'static str, heading: Markup, body: Markup) -> Self {
        let label = format!("h-{id}");
        let html = html! {
            section id=(id) aria-labelledby=(label) { h2 id=(label) { (heading) } (body) }
        };
        Self { id, html: html.into_string() }
    }

    /// A part that heads its page.
    pub(super) fn head(id: &'static str, body: Markup) -> Self {
        let html = html! { header.head id=(id) { (body) } };
        Self { id, html: html.into_string() }
    }
}

/// The longest text that a person wrote, as a page shows it, in characters.
const SHOWN_MAX: usize = 200;

/// A text that somebody wrote, as it may stand beside ours: what does not print, and what would
/// turn the direction of all that follows, is shown by its code; what is too long is cut.
pub(super) fn inert(text: &str) -> String {
    let mut shown = String::new();
    for (idx, c) in text.chars().enumerate() {
        if idx == SHOWN_MAX {
            shown.push('…');
            break;
        }
        inert::push(&mut shown, c);
    }
    shown
}

/// What the colours of a map of parts mean: what every map has, then its own, by class.
pub(super) fn map_legend(held: &str, own: &[(&str, &str)]) -> Markup {
    html! {
        ul.legend {
            li { span.swatch.free {} "free" }
            li { span.swatch.held {} (held) }
            li { span.swatch.degraded {} "degraded" }
            li { span.swatch.out {} "out of use" }
            li { span.swatch.drained {} "drained" }
            li { span.swatch.cased {} "open case" }
            @for (class, what) in own { li { span class={ "swatch " (class) } {} (what) } }
        }
    }
}

/// What somebody wrote, kept to itself in direction and width.
pub(super) fn name(text: &str) -> Markup {
    let shown = inert(text);
    html! { bdi.name title=(shown) { (shown) } }
}

/// The same at its whole length.
pub(super) fn words(text: &str) -> Markup {
    html! { bdi.words { (inert(text)) } }
}

/// What may stand in an address as it is; a slash parts the names of nested things.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// An address of ours that ends in a name.
pub(super) fn address(start: &str, name: &str) -> String {
    format!("{start}{}", utf8_percent_encode(name, PLAIN))
}

/// A link to a job, in its colour.
pub(super) fn job_link(job: u32) -> Markup {
    html! { a.job href=(format!("/jobs/{job}")) { (dot(job)) "#" (job) } }
}

/// A link to a part of the plant that has a page.
pub(super) fn cube_link(name: &str) -> Markup {
    html! { a href=(address("/cubes/", name)) { (name) } }
}

/// A link to a case.
pub(super) fn case_link(case: u32) -> Markup {
    html! { a.case href=(format!("/cases/{case}")) { "case " (case) } }
}

fn dot(job: u32) -> Markup {
    html! {
        svg.dot viewBox="0 0 10 10" aria-hidden="true" {
            rect width="10" height="10" rx="3" fill=(colour(job)) {}
        }
    }
}

/// The colour of a job: all are equally light, and neighbours in number far apart in hue.
pub(super) fn colour(job: u32) -> String {
    format!("oklch(0.78 0.115 {})", u64::from(job) * 137 % 360)
}

/// Plant time as a person reads it.
pub(super) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (days, hours) = (whole / 86_400, whole / 3600 % 24);
    format!("{days}d {hours:02}:{:02}:{:02}", whole / 60 % 60, whole % 60)
}

/// A time in two figures at most: `3h 12m`.
pub(super) fn lasting(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds < 0.05 => "0s".to_owned(),
        (0, 0, 0) if seconds < 10.0 => format!("{seconds:.1}s"),
        (0, 0, 0) => format!("{whole}s"),
        (0, 0, _) => format!("{minutes}m {:02}s", whole % 60),
        (0, _, _) => format!("{hours}h {minutes:02}m"),
        (_, _, _) => format!("{days}d {hours:02}h"),
    }
}

/// `n` of something: `1 pair`, `2 pairs`.
pub(super) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Parts by name as links, neighbours in number as one stretch; at most `n_max` stretches.
pub(super) fn stretches(names: &[String], n_max: usize) -> Markup {
    // First and last name of each stretch, what stands before their numbers, and the last number.
    let mut found: Vec<(&str, &str, &str, Option<u64>)> = Vec::new();
    let mut n_named = 0;
    for name in names {
        let start = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u64> = name[start.len()..].parse().ok();
        match found.pop() {
            Some((first, _, before, Some(last)))
                if before == start && number == last.checked_add(1) =>
            {
                found.push((first, name, start, number));
            }
            other => {
                found.extend(other);
                if found.len() == n_max {
                    break;
                }
                found.push((name, name, start, number));
            }
        }
        n_named += 1;
    }
    html! {
        @for (first, last, ..) in &found {
            (cube_link(first)) @if first != last { "–" (cube_link(last)) } " "
        }
        @if n_named < names.len() { "and " (names.len() - n_named) " more" }
    }
}

/// One figure with what it is.
pub(super) fn tile(what: &str, figure: Markup) -> Markup {
    html! { div.tile { dt { (what) } dd { (figure) } } }
}

/// A word in the colour of what it means.
pub(super) fn badge(kind: &str, text: &str) -> Markup {
    html! { span class=(format!("badge {kind}")) { (text) } }
}

/// A line that says that there is nothing.
pub(super) fn none(text: &str) -> Markup {
    html! { p.none { (text) } }
}

/// How many rows were left out, and who shows them.
pub(super) fn more(n: usize, n_shown: usize, command: &str) -> Markup {
    html! {
        @if n_shown < n {
            p.more { (n - n_shown) " more; " code { (command) } " shows all" }
        }
    }
}

/// A table that may be wider than its page; it scrolls by itself and by keys.
pub(super) fn table(label: &str, heads: &[&str], rows: Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label=(label) {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { (rows) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_wrote_cannot_turn_break_or_swamp_a_line() {
        assert_eq!(inert("plain — naïve 数 שלום"), "plain — naïve 数 שלום");
        assert_eq!(inert("a\u{202e}b\nc\u{0}"), "a\\u{202e}b\\u{a}c\\u{0}");
        assert_eq!(inert(&"x".repeat(10_000)).chars().count(), SHOWN_MAX + 1);
        let shown = name("<script>\"'&").into_string();
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;"), "{shown}");
        assert_eq!(address("/cubes/", "pod0/a b<\"?#"), "/cubes/pod0/a%20b%3C%22%3F%23");
    }

    #[test]
    fn neighbours_are_named_as_one_stretch() {
        let told = |names: &[&str], n_max| {
            let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
            let html = stretches(&names, n_max).into_string();
            let text = html.split('<').map(|it| it.split_once('>').map_or(it, |it| it.1));
            text.collect::<String>().trim().to_owned()
        };
        assert_eq!(told(&["cube0", "cube1", "cube2", "cube7"], 6), "cube0–cube2 cube7");
        assert_eq!(told(&["cube9", "cube10", "b3", "b5"], 2), "cube9–cube10 b3 and 1 more");
        assert_eq!(told(&["a1", "b2", "lone"], 6), "a1 b2 lone");
    }

    #[test]
    fn times_are_read_at_a_glance() {
        assert_eq!(clock(90_061.9), "1d 01:01:01");
        assert_eq!(clock(-1.0), "0d 00:00:00");
        let told: Vec<String> = [0.25, 42.0, 125.0, 11_525.0, 200_000.0].map(lasting).into();
        assert_eq!(told, ["0.2s", "42s", "2m 05s", "3h 12m", "2d 07h"]);
    }
}
