//! The boards and alerts of `packaging/`, held against what a server really exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Up, has_program, root};

/// The labels of each series with their values, by the series' name.
type Exported = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a server exports that has wired a job, lost a machine, and been asked what it refuses.
fn exported() -> (String, Exported) {
    let up = Up::start();
    up.text(&["job", "submit", "--shape", "4x4x8", "--name", "n", "--duration", "30d"]);
    up.text(&["job", "wait", "0", "--running", "--timeout", "60"]);
    up.text(&["fault", "inject", "machine", "cube9/m05"]);
    up.refusal(&["job", "show", "77"]);
    let since = Instant::now();
    loop {
        let page = up.get("/metrics");
        if page.contains("selvedge_cases_open{") {
            return (page.clone(), read(&page));
        }
        assert!(since.elapsed() < Duration::from_secs(60), "no case: {page}");
    }
}

fn read(page: &str) -> Exported {
    let mut exported = Exported::new();
    for line in page.lines().filter(|it| !it.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let known = exported.entry(name.to_owned()).or_default();
        for (label, _, value) in matchers(labels.trim_end_matches('}')) {
            known.entry(label).or_default().insert(value);
        }
    }
    exported
}

/// `state="running",pod=~"a|b"` as label, operator and value.
fn matchers(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((left, right)) = rest.split_once('"') {
        let (value, after) = right.split_once('"').unwrap();
        let (label, operator) = left.split_at(left.find(['=', '!']).unwrap());
        let label = label.trim_matches([',', ' ']).to_owned();
        found.push((label, operator.trim().to_owned(), value.to_owned()));
        rest = after;
    }
    found
}

/// What is wrong with the series that `query` names.
fn wrong_in(query: &str, exported: &Exported) -> Vec<String> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ':';
    let mut wrong = Vec::new();
    let mut n_named = 0;
    for (at, _) in query.match_indices("selvedge_") {
        let rest = &query[at..];
        let name = &rest[..rest.find(|it| !is_name(it)).unwrap_or(rest.len())];
        n_named += 1;
        let Some(known) = exported.get(name) else {
            wrong.push(format!("{name} is not exported: {query}"));
            continue;
        };
        let Some(selector) = rest[name.len()..].strip_prefix('{') else { continue };
        for (label, operator, value) in matchers(selector.split('}').next().unwrap()) {
            // Prometheus adds these when it scrapes.
            if ["instance", "job"].contains(&label.as_str()) {
                continue;
            }
            match known.get(&label) {
                None => wrong.push(format!("{name} has no label {label}: {query}")),
                // A case is in one state at a time; docs/api.md has all.
                Some(_) if name == "selvedge_cases_open" => {
                    let known = ["observed", "draining", "waiting", "under_repair", "verifying"];
                    let known = known.iter().chain(["probation", "fatal", "critical"].iter());
                    if !known.into_iter().any(|it| *it == value) {
                        wrong.push(format!("no case is {value}: {query}"));
                    }
                }
                Some(values) if operator == "=" && !values.contains(&value) => {
                    wrong.push(format!("{name} has {label} {values:?}, not {value}: {query}"));
                }
                Some(_) => (),
            }
        }
    }
    if n_named == 0 && !query.starts_with("up{") {
        wrong.push(format!("nothing of ours is asked: {query}"));
    }
    wrong
}

/// Every query of a board.
fn queries_of(board: &Value) -> Vec<String> {
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|it| it["targets"].as_array().unwrap());
    targets.map(|it| it["expr"].as_str().unwrap().to_owned()).collect()
}

/// Every query of the alert rules; those over several lines are written with `>`.
fn rules() -> Vec<String> {
    let text = fs::read_to_string(root("packaging/prometheus/selvedge.rules.yml")).unwrap();
    let mut queries: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        match line.trim().strip_prefix("expr:") {
            Some(query) => {
                is_open = query.trim() == ">";
                queries.push(if is_open { String::new() } else { query.trim().to_owned() });
            }
            None if is_open && !line.trim().starts_with("for:") => {
                queries.last_mut().unwrap().push_str(line.trim());
                queries.last_mut().unwrap().push(' ');
            }
            None => is_open = false,
        }
    }
    queries
}

fn promtool(args: &[&str], dir: &Path, input: &str) -> String {
    let mut promtool = Command::new("promtool");
    promtool.args(args).current_dir(dir).stdin(Stdio::piped());
    let mut child = promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(done.status.success(), "promtool {args:?}: {text}");
    text
}

#[test]
fn boards_and_alerts_ask_for_what_is_exported() {
    let (page, exported) = exported();
    assert!(30 < exported.len(), "{page}");
    let mut queries = rules();
    assert_eq!(queries.len(), 20, "{queries:?}");
    let mut boards = Vec::new();
    for entry in fs::read_dir(root("packaging/grafana")).unwrap() {
        let path = entry.unwrap().path();
        let board: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let asked = queries_of(&board);
        assert!(15 < asked.len(), "{} asks {}", path.display(), asked.len());
        boards.extend(asked);
    }
    queries.extend(boards.iter().cloned());
    let wrong: Vec<String> = queries.iter().flat_map(|it| wrong_in(it, &exported)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The check itself finds what is wrong.
    for query in ["selvedge_no", "selvedge_jobs{stat=\"a\"}", "selvedge_jobs{state=\"a\"}", "1"] {
        assert_eq!(wrong_in(query, &exported).len(), 1, "{query}");
    }

    if has_program("promtool", "promtool check metrics and check rules for the boards") {
        let dir = tempfile::tempdir().unwrap();
        promtool(&["check", "metrics"], dir.path(), &page);
        // A board's queries are held against Prometheus' own parser as recording rules.
        let mut text = "groups:\n  - name: boards\n    rules:\n".to_owned();
        for (idx, query) in boards.iter().enumerate() {
            let query = query.replace("$__rate_interval", "5m").replace("$instance", ".*");
            let query = serde_json::to_string(&query).unwrap();
            text.push_str(&format!("      - record: board:query{idx}\n        expr: {query}\n"));
        }
        fs::write(dir.path().join("boards.yml"), text).unwrap();
        let told = promtool(&["check", "rules", "boards.yml"], dir.path(), "");
        assert!(told.contains(&format!("{} rules found", boards.len())), "{told}");
    }
}

#[test]
fn alerts_speak_when_they_must_and_only_then() {
    if !has_program("promtool", "promtool check rules and test rules") {
        return;
    }
    let dir = root("packaging/prometheus");
    promtool(&["check", "rules", "selvedge.rules.yml"], &dir, "");
    promtool(&["test", "rules", "selvedge.rules.test.yml"], &dir, "");
    // What people are told to add is a configuration that Prometheus reads.
    let told = promtool(&["check", "config", "--syntax-only", "scrape.yml"], &dir, "");
    assert!(told.contains("SUCCESS"), "{told}");
}
