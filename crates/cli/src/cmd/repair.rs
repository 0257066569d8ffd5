//! `selvedge repair list|show|take|done`.

use std::time::{Duration, Instant};

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::{Watch, pause};
use crate::failure::{Answer, Failure, Outcome};
use crate::render::facts::Facts;
use crate::render::table::{Cell, Table};
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Repair {
    #[command(subcommand)]
    verb: RepairVerb,
}

#[derive(Debug, Subcommand)]
enum RepairVerb {
    /// Open cases: what is at fault and how far its repair has come.
    List(List),
    /// One case with its evidence.
    Show(Id),
    /// Wait until a case is closed and its part is back in use.
    Wait(Wait),
    /// Take a repair upon yourself.
    Take(Id),
    /// Say that a repair is done; the part is tested again before it returns.
    Done(Id),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Closed cases too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, clap::Args)]
struct Id {
    /// The case's number, as `repair list` shows it.
    #[arg(value_name = "CASE")]
    id: u32,
}

#[derive(Debug, clap::Args)]
struct Wait {
    /// The case's number, as `repair list` shows it.
    #[arg(value_name = "CASE")]
    id: u32,
    /// Give up after so many seconds of real time, and answer no.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Cases {
    cases: Vec<CaseRow>,
}

#[derive(Debug, Deserialize)]
struct CaseRow {
    id: u32,
    target: String,
    symptom: String,
    severity: String,
    state: String,
    since_s: f64,
    opened_s: f64,
    held_back_s: Option<f64>,
    weighed_again_s: Option<f64>,
    n_seen: u32,
    #[serde(default)]
    rule: String,
    n_repairs: u32,
    taken_by: Option<String>,
    closed: Option<String>,
    evidence: Vec<Evidence>,
}

#[derive(Debug, Deserialize)]
struct Evidence {
    at_s: f64,
    symptom: String,
    value: Option<Value>,
    words: Option<String>,
}

impl CaseRow {
    /// How bad it is; work that is planned and parts that are given back are no faults.
    fn severity(&self) -> Option<&str> {
        (!matches!(&*self.symptom, "planned" | "returned")).then_some(&*self.severity)
    }
}

pub(crate) fn run(args: &Repair, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        RepairVerb::List(args) => list(args, &client, globals),
        RepairVerb::Show(Id { id }) => {
            let text = client.get_text(&format!("/v1/cases/{id}"))?;
            tell(&text, &client, globals)
        }
        RepairVerb::Wait(args) => wait(args, &client, globals),
        RepairVerb::Take(Id { id }) => {
            let text = client.post_text(&format!("/v1/cases/{id}/take"), &json!({}))?;
            tell(&text, &client, globals)
        }
        RepairVerb::Done(Id { id }) => {
            let text = client.post_text(&format!("/v1/cases/{id}/done"), &json!({}))?;
            tell(&text, &client, globals)
        }
    }
}

fn list(args: &List, client: &Client, globals: &Globals) -> Outcome {
    let path = if args.all { "/v1/cases" } else { "/v1/cases?open=true" };
    args.watch.show(|| {
        let text = client.get_text(path)?;
        if globals.json {
            return Ok(render::line(text));
        }
        let Cases { cases } = client.read(path, &text)?;
        if cases.is_empty() {
            return Ok(if args.all { "no cases\n" } else { "no open cases\n" }.to_owned());
        }
        let mut table = Table::new(&[
            ">case", "target", "symptom", "severity", "state", ">since", ">opened", ">seen",
            "taken by",
        ]);
        for case in cases {
            table.row([
                case.id.into(),
                case.target.as_str().into(),
                words(&case.symptom).into(),
                match case.severity() {
                    Some(it) => Cell::styled(it, severity_style(it)),
                    None => "-".into(),
                },
                match case.held_back_s {
                    Some(_) => {
                        Cell::styled(format!("{}, held back", words(&case.state)), style::WAIT)
                    }
                    None => words(&case.state).into(),
                },
                number::clock(case.since_s).into(),
                number::clock(case.opened_s).into(),
                case.n_seen.into(),
                case.taken_by.unwrap_or_else(|| "-".to_owned()).into(),
            ]);
        }
        Ok(table.to_string())
    })?;
    Ok(Answer::Yes)
}

/// Between two questions of `repair wait`.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// How long a fault may take to have a case.
const SEEN_MAX: Duration = Duration::from_secs(10);

#[allow(clippy::disallowed_methods, reason = "a person's patience is counted in real time")]
fn wait(args: &Wait, client: &Client, globals: &Globals) -> Outcome {
    let since = Instant::now();
    loop {
        let Cases { cases } = client.get("/v1/cases")?;
        let Some(case) = cases.into_iter().find(|it| it.id == args.id) else {
            // What has just broken is seen in a moment.
            if SEEN_MAX < since.elapsed() {
                return Err(Failure::new(format!("there is no case {}", args.id))
                    .hint("`selvedge repair list --all` shows all there were"));
            }
            pause(ASK_EVERY);
            continue;
        };
        if case.state == "closed" {
            let text = client.get_text(&format!("/v1/cases/{}", args.id))?;
            return tell(&text, client, globals);
        }
        if args.timeout.is_some_and(|it| Duration::from_secs(it) <= since.elapsed()) {
            let what = format!("case {} is still {}", case.id, words(&case.state));
            return Err(Failure::refusal(what)
                .hint(format!("`selvedge repair show {}` says how far it has come", case.id)));
        }
        pause(ASK_EVERY);
    }
}

fn tell(text: &str, client: &Client, globals: &Globals) -> Outcome {
    if globals.json {
        render::print_raw(text)?;
        return Ok(Answer::Yes);
    }
    let case: CaseRow = client.read("/v1/cases", text)?;
    let title = style::TITLE;
    let severity = case.severity().map_or(String::new(), |it| {
        let colour = severity_style(it);
        format!(", {colour}{it}{colour:#}")
    });
    let mut facts = Facts::new(format!(
        "{title}case {}: {}{title:#}: {}{severity}",
        case.id,
        case.target,
        words(&case.symptom)
    ));
    let since = number::clock(case.since_s);
    let how = case.closed.as_ref().map_or(String::new(), |it| format!(" ({it})"));
    facts.add("state", format!("{}{how} since {since}", words(&case.state)));
    facts.add("opened", number::clock(case.opened_s));
    if let (Some(since), Some(again)) = (case.held_back_s, case.weighed_again_s) {
        let (since, again) = (number::clock(since), number::clock(again));
        let how = format!("`selvedge repair take {}` does it now", case.id);
        facts.add("breaker", format!("held back since {since}, weighed again at {again}; {how}"));
    }
    facts.add("repairs", case.n_repairs.to_string());
    facts.add("taken by", case.taken_by.as_deref().unwrap_or("nobody"));
    facts.add("seen", number::counted(u64::from(case.n_seen), "time"));
    if case.severity().is_some() {
        facts.add("rule", case.rule.clone());
    }
    let evidence = case.evidence.iter().map(|it| {
        let value = match (&it.words, &it.value) {
            (Some(words), _) => format!(": {words}"),
            (None, Some(value)) => format!(": {value}"),
            (None, None) => String::new(),
        };
        format!("{:>12}  {}{value}", number::clock(it.at_s), words(&it.symptom))
    });
    facts.add_list("evidence", evidence.collect());
    render::print(&facts.to_string())?;
    Ok(Answer::Yes)
}

fn severity_style(severity: &str) -> anstyle::Style {
    match severity {
        "fatal" | "critical" => style::BAD,
        "degraded" => style::WAIT,
        _ => style::PLAIN,
    }
}

/// `machine_down` as people write it.
fn words(name: &str) -> String {
    name.replace('_', " ")
}
