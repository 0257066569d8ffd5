//! `… drain` and `… undrain` of everything that can be taken out of use.

use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::cmd::cube::numbers;
use crate::failure::{Answer, Outcome};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Drain {
    /// As the plant calls it.
    #[arg(value_name = "NAME")]
    target: String,
    /// Why, for whoever finds it out of use.
    #[arg(long, value_name = "TEXT", default_value = "drained by hand")]
    why: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Only your own drain is taken back; what a case or another person has \
                        taken out stays out.")]
pub(crate) struct Undrain {
    /// As the plant calls it.
    #[arg(value_name = "NAME")]
    target: String,
}

/// One entry of the list of things out of use.
#[derive(Debug, Deserialize)]
pub(crate) struct DrainRow {
    pub(crate) target: String,
    by: String,
    case: Option<u32>,
    symptom: Option<String>,
    why: String,
    since_s: f64,
    leaving: Vec<u32>,
    #[serde(default)]
    retired: bool,
}

#[derive(Debug, Deserialize)]
struct Drained {
    target: String,
    drains: Vec<DrainRow>,
}

/// `kind` is what the verb's noun says that it is; the server refuses what is something else.
pub(crate) fn drain(kind: &str, args: &Drain, client: &Client, globals: &Globals) -> Outcome {
    drain_all(kind, &[args.target.as_str()], &args.why, client, globals)
}

/// Drains several things of one kind, one after the other.
pub(crate) fn drain_all(
    kind: &str,
    targets: &[&str],
    why: &str,
    client: &Client,
    globals: &Globals,
) -> Outcome {
    for target in targets {
        let body = json!({"target": target, "kind": kind, "why": why});
        change("/v1/drain", &body, client, globals)?;
    }
    Ok(Answer::Yes)
}

pub(crate) fn undrain(kind: &str, args: &Undrain, client: &Client, globals: &Globals) -> Outcome {
    undrain_all(kind, &[args.target.as_str()], client, globals)
}

/// Takes back one's own drains among several things; the rest is passed over.  Refused where none
/// of them is drained by whoever asks.
pub(crate) fn undrain_all(
    kind: &str,
    targets: &[&str],
    client: &Client,
    globals: &Globals,
) -> Outcome {
    let mut refused = None;
    let mut n_undrained = 0;
    for target in targets {
        let body = json!({"target": target, "kind": kind});
        match change("/v1/undrain", &body, client, globals) {
            Ok(()) => n_undrained += 1,
            Err(no) if no.is_refusal() => refused = refused.or(Some(no)),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(no) if n_undrained == 0 => Err(no),
        _ => Ok(Answer::Yes),
    }
}

impl Drain {
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

impl Undrain {
    pub(crate) fn target(&self) -> &str {
        &self.target
    }
}

impl DrainRow {
    /// `cube3: out of use by ada since 00:12:03: new fibre`.
    pub(crate) fn line(&self) -> String {
        match (self.case, self.symptom.as_deref()) {
            (Some(case), Some("returned")) => {
                format!("{}: given back; case {case} tests it before it is used again", self.target)
            }
            _ if self.retired => format!(
                "{}: retired, and out of use when it comes again {}",
                self.target,
                self.text()
            ),
            _ => format!("{}: out of use {}", self.target, self.text()),
        }
    }

    /// `by ada since 00:12:03: new fibre; job 7 leaves`.
    pub(crate) fn text(&self) -> String {
        let leave = match &*self.leaving {
            [] => String::new(),
            [job] => format!("; job {job} leaves"),
            jobs => format!("; jobs {} leave", numbers(jobs)),
        };
        // One line, whatever somebody has written.
        let why = self.why.replace('\n', "\\n");
        format!("by {} since {}: {why}{leave}", self.by, number::clock(self.since_s))
    }
}

fn change(path: &str, body: &serde_json::Value, client: &Client, globals: &Globals) -> Outcome<()> {
    let text = client.post_text(path, body)?;
    if globals.json {
        return Ok(render::print_raw(&text)?);
    }
    let drained: Drained = client.read(path, &text)?;
    let mut page = String::new();
    if drained.drains.is_empty() {
        page = format!("{}: in use\n", drained.target);
    }
    for drain in &drained.drains {
        page.push_str(&format!("{}\n", drain.line()));
    }
    Ok(render::print(&page)?)
}
