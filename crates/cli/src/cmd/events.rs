//! `selvedge events`: what the core has told, and what it tells.

use serde::Deserialize;

use crate::Globals;
use crate::client::{Client, path_text};
use crate::failure::{Answer, Outcome};
use crate::render::table::{Cell, Table};
use crate::render::{self, clip, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Events {
    /// How many of the newest to begin with.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    count: u32,
    /// Go on with each one as it happens, until Ctrl-C; with --json, one event a line.
    #[arg(short, long)]
    follow: bool,
    /// Who ordered what and why, as the journal keeps it, instead.
    #[arg(long, conflicts_with = "follow")]
    audit: bool,
    /// Only what this person or program ordered.
    #[arg(long, value_name = "NAME", requires = "audit")]
    by: Option<String>,
    /// Only what stands before this row of the journal.
    #[arg(long, value_name = "ROW", requires = "audit")]
    before: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Trail {
    orders: Vec<Order>,
    next_before: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Order {
    row: u64,
    at_s: f64,
    unix_s: Option<u64>,
    by: String,
    what: String,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Recent {
    events: Vec<serde_json::Value>,
    newest: u64,
}

#[derive(Debug, Deserialize)]
struct Event {
    at_s: f64,
    kind: String,
    text: String,
}

pub(crate) fn run(args: &Events, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    if args.audit {
        return audit(args, &client, globals);
    }
    let path = format!("/v1/events/recent?n={}", args.count);
    let text = client.get_text(&path)?;
    if globals.json && !args.follow {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let recent: Recent = client.read(&path, &text)?;
    let mut page = String::new();
    for event in recent.events {
        page.push_str(&event_line(&path, &event.to_string(), &client, globals)?);
    }
    render::print(&page)?;
    if args.follow {
        follow(recent.newest, &client, globals)?;
    }
    Ok(Answer::Yes)
}

/// What a cell of the trail shows of a text, in characters; `--json` has all of it.
const WHAT_MAX: usize = 160;

fn audit(args: &Events, client: &Client, globals: &Globals) -> Outcome {
    let mut path = format!("/v1/audit?n={}", args.count);
    if let Some(name) = &args.by {
        path.push_str(&format!("&by={}", path_text(name)));
    }
    if let Some(row) = args.before {
        path.push_str(&format!("&before={row}"));
    }
    let text = client.get_text(&path)?;
    if globals.json {
        render::print_raw(&text)?;
        return Ok(Answer::Yes);
    }
    let trail: Trail = client.read(&path, &text)?;
    let mut table = Table::new(&[">row", "when", "plant time", "who", "what", "why"]);
    for it in trail.orders.iter().rev() {
        table.row([
            Cell::from(it.row),
            Cell::from(it.unix_s.map_or("-".to_owned(), number::utc)),
            Cell::from(number::clock(it.at_s)),
            Cell::from(&it.by),
            Cell::from(clip(&it.what, WHAT_MAX)),
            Cell::from(clip(it.reason.as_deref().unwrap_or("-"), WHAT_MAX)),
        ]);
    }
    render::print(&table.to_string())?;
    if let Some(row) = trail.next_before {
        anstream::eprintln!("what is older: selvedge events --audit --before {row}");
    }
    Ok(Answer::Yes)
}

/// Tells events until the server has ended for good; one that is only replaced, as by an upgrade,
/// goes on where the other has ended.
fn follow(mut newest: u64, client: &Client, globals: &Globals) -> Outcome<()> {
    let mut client = client.clone();
    loop {
        let path = format!("/v1/events?after={newest}");
        let Ok(lines) = client.patiently(globals, |it| it.stream(&path)) else { break };
        let mut is_gap = false;
        // A stream that breaks has ended.
        for line in lines.map_while(Result::ok) {
            if let Some(event) = line.strip_prefix("event:") {
                is_gap = event.trim() == "gap";
            } else if let Some(id) = line.strip_prefix("id:") {
                newest = id.trim().parse().unwrap_or(newest);
            } else if let Some(data) = line.strip_prefix("data:") {
                if is_gap {
                    anstream::eprintln!("some events came too fast and are lost: {}", data.trim());
                } else {
                    render::print(&event_line(&path, data.trim(), &client, globals)?)?;
                }
            } else if line.is_empty() {
                is_gap = false;
            }
        }
    }
    anstream::eprintln!("the server at {} has ended", client.url());
    Ok(())
}

fn event_line(path: &str, json: &str, client: &Client, globals: &Globals) -> Outcome<String> {
    if globals.json {
        return Ok(render::line(json.to_owned()));
    }
    let event: Event = client.read(path, json)?;
    let colour = kind_style(&event.kind);
    let (clock, faint) = (number::clock(event.at_s), style::FAINT);
    Ok(format!("{faint}{clock:>12}{faint:#}  {colour}{}{colour:#}\n", event.text))
}

fn kind_style(kind: &str) -> anstyle::Style {
    match kind {
        "job_finished" | "job_started" | "undrained" | "blueprint_done" => style::GOOD,
        "job_failed" | "case_opened" | "breaker_tripped" | "switch_refused" => style::BAD,
        "drained" | "job_notified" | "job_requeued" | "switch_differed" | "case_grew" => {
            style::WAIT
        }
        _ => style::PLAIN,
    }
}
