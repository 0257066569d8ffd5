//! The pages: whole, small, compressed, inert whatever is called what, and live.

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt as _;
use serde_json::json;

use super::*;

/// Elements that have no end.
const VOID: [&str; 3] = ["meta", "link", "br"];

/// Every element that a page may have.
const KNOWN: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "link",
    "script",
    "body",
    "a",
    "header",
    "nav",
    "span",
    "button",
    "main",
    "section",
    "h1",
    "h2",
    "h3",
    "p",
    "dl",
    "dt",
    "dd",
    "div",
    "small",
    "svg",
    "defs",
    "pattern",
    "rect",
    "figure",
    "figcaption",
    "text",
    "path",
    "circle",
    "g",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "bdi",
    "b",
    "code",
    "time",
    "details",
    "summary",
];

/// Reads a page strictly: every element is known, ends, and has attributes in quotes.
fn check(path: &str, html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").unwrap_or_else(|| panic!("{path}: {html}"));
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "{path}: a bare > before {}", &rest[at..at + 20]);
        let (tag, after) = rest[at + 1..].split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{path}: </{name}> ends another");
            continue;
        }
        // A picture that stands in a file of its own closes its elements as XML does.
        let closed = tag.strip_suffix('/');
        let tag = closed.unwrap_or(tag);
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(KNOWN.contains(&name), "{path}: <{tag}>");
        attributes_of(path, attributes);
        if closed.is_none() && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{path}: {open:?} do not end");
}

fn attributes_of(path: &str, mut rest: &str) {
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let name = &rest[..end];
        let is_name = name.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == '0');
        assert!(is_name || name == "x1", "{path}: attribute {name:?}");
        assert!(!name.starts_with("on") && name != "style", "{path}: {name}");
        rest = &rest[end..];
        if let Some(value) = rest.strip_prefix('=') {
            let value = value.strip_prefix('"').unwrap_or_else(|| panic!("{path}: {value}"));
            let (value, after) = value.split_once('"').unwrap();
            if ["href", "src"].contains(&name) {
                let is_own = value.starts_with(['/', '#']) && !value.starts_with("//");
                assert!(is_own, "{path}: {name}={value}");
            }
            rest = after;
        }
    }
}

async fn page(stand: &Stand, path: &str) -> (u16, HeaderMap, String) {
    let (status, headers, text) =
        stand.send(stand.request("GET", path).body(Body::empty()).unwrap()).await;
    (status.as_u16(), headers, text)
}

#[tokio::test]
async fn an_address_of_nothing_is_a_page_for_people_and_data_for_programs() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let asked = |accept: &str| {
        stand.request("GET", "/nope").header("accept", accept).body(Body::empty()).unwrap()
    };
    let (status, headers, text) = stand.send(asked("text/html,*/*;q=0.8")).await;
    assert_eq!(
        (status.as_u16(), &headers["content-type"]),
        (404, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert!(text.contains("/nope") && text.contains("to the pod"), "{text}");
    let (status, _, text) = stand.send(asked("application/json")).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status.as_u16(), answer["error"].as_str().is_some()), (404, true), "{text}");
    stand.down();
}

#[tokio::test]
async fn hostile_texts_are_inert_on_every_page() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let name = "<script>a()</script>\"'&<img src=x onerror=a()>\u{202e}gpj.exe\u{2066}x";
    let long = format!("{name}\n\r\u{0}{}", "<b>y</b>".repeat(100));
    let form = |shape: &str| {
        let (owner, project) = (name, name);
        json!({ "name": name, "owner": owner, "project": project, "shape": shape })
    };
    let job = stand.post("/v1/jobs", form("2x2x1")).await["id"].as_u64().unwrap();
    let waits = stand.post("/v1/jobs", form("16x16x16")).await["id"].as_u64().unwrap();
    for target in ["cube9", "cube10/m03", "x0", "x1/n3", "cube11/y/in/3"] {
        stand.post("/v1/drain", json!({ "target": target, "why": long })).await;
    }
    let work = json!({ "targets": ["cube20/m01"], "work": "30m", "why": long });
    stand.post("/v1/maintenance", work).await;
    stand.until_running(job).await;
    stand.until("/v1/cases", |it| !it["cases"].as_array().unwrap().is_empty()).await;
    let pages = [
        "/",
        "/switches",
        "/switches/x0",
        "/switches/x1",
        "/cubes/cube9",
        "/cubes/cube10",
        "/cubes/cube11",
        "/queue",
        "/health",
        "/cases/0",
        "/events",
        "/events?about=health&before=9",
    ];
    let of_jobs = [job, waits].map(|it| format!("/jobs/{it}"));
    let slice = format!("/jobs/{job}/slice");
    let all = pages.into_iter().chain(of_jobs.iter().map(String::as_str)).chain([slice.as_str()]);
    for path in all {
        let (status, headers, text) = page(&stand, path).await;
        assert_eq!(status, 200, "{path}: {text}");
        check(path, &text);
        // Of the picture that is a file of the program, lines are its own.
        let text = text.replace(include_str!("../page/icon.svg"), "");
        assert!(!text.contains(['\u{202e}', '\u{2066}', '\r', '\n', '\u{0}']), "{path}");
        assert_eq!(text.matches("<script").count(), 2, "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    let (_, _, home) = page(&stand, "/").await;
    assert!(home.contains("&lt;script&gt;a()") && home.contains("\\u{202e}gpj.exe"), "{home}");
    for path in
        ["/cubes/%3Cscript%3E%E2%80%AE", "/jobs/9999", "/cases/x", "/find/%3Cb%3E", "/cubes/%ff"]
    {
        let (status, headers, text) = page(&stand, path).await;
        assert!(status == 404 || status == 400, "{path}: {status}");
        if headers["content-type"].to_str().unwrap().starts_with("text/html") {
            check(path, &text);
        }
    }
    stand.down();
}

#[tokio::test]
async fn every_page_is_small_and_sent_compressed() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let large = stand.submit("large", "8x16x16").await;
    let whole = stand.submit("whole", "8x8x8").await;
    for idx in 0..60 {
        stand.submit(&format!("small{idx}"), "2x2x1").await;
    }
    for job in [large, whole] {
        stand.until_running(job).await;
    }
    let slices = [format!("/jobs/{large}/slice"), format!("/jobs/{whole}/slice?at=9")];
    let job = format!("/jobs/{large}");
    let pages = ["/", "/switches", "/switches/y3", "/cubes/cube0", "/queue", "/health", "/events"];
    for path in pages.into_iter().chain([job.as_str(), slices[0].as_str(), slices[1].as_str()]) {
        let request = stand.request("GET", path).header("accept-encoding", "gzip");
        let answer = stand.router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
        let answer = answer.unwrap();
        assert_eq!(answer.headers()["content-encoding"], "gzip", "{path}");
        let sent = to_bytes(answer.into_body(), usize::MAX).await.unwrap().len();
        let plain = page(&stand, path).await.2.len();
        assert!(sent < plain && sent < 60_000 && plain < 300_000, "{path}: {plain}, sent {sent}");
    }
    stand.down();
}

#[tokio::test]
async fn a_thing_is_found_on_the_page_that_shows_it() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    for (path, to) in [
        ("cube5", "/cubes/cube5"),
        ("cube5/m03", "/cubes/cube5#machines"),
        ("cube5/chip1.1.1", "/cubes/cube5#machines"),
        ("cube5/x/in/7", "/cubes/cube5"),
        ("x3", "/switches/x3"),
        ("x3/n7", "/switches/x3"),
    ] {
        let (status, headers, _) = page(&stand, &format!("/find/{path}")).await;
        assert_eq!((status, headers["location"].to_str().unwrap()), (303, to), "{path}");
    }
    stand.down();
}

/// The next message of a live page, as its order and the names of its parts.
async fn message(stream: &mut BodyDataStream) -> (Vec<String>, Vec<String>, String) {
    let bytes = tokio::time::timeout(Duration::from_secs(60), stream.next()).await.unwrap();
    let text = String::from_utf8(bytes.unwrap().unwrap().to_vec()).unwrap();
    let data: Value = serde_json::from_str(text.trim().strip_prefix("data: ").unwrap()).unwrap();
    let order = data["order"].as_array().unwrap().iter();
    let order = order.map(|it| it.as_str().unwrap().to_owned()).collect();
    let parts = data["parts"].as_object().unwrap().keys().cloned().collect();
    (order, parts, text)
}

#[tokio::test]
async fn a_viewer_is_sent_the_whole_page_and_then_what_changes() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let look = async || {
        let request = stand.request("GET", "/live/").body(Body::empty()).unwrap();
        let answer = stand.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        answer.into_body().into_data_stream()
    };
    let mut first = look().await;
    let (order, parts, _) = message(&mut first).await;
    assert_eq!(order, ["state", "map", "active", "queue", "panel", "cases", "events"]);
    assert_eq!(parts.len(), order.len());
    let mut second = look().await;
    assert_eq!(message(&mut second).await.1.len(), order.len(), "who comes later too");

    let job = stand.submit("seen", "4x4x4").await;
    for stream in [&mut first, &mut second] {
        loop {
            let (_, parts, text) = message(stream).await;
            assert!(parts.contains(&"state".to_owned()), "plant time goes on: {parts:?}");
            if text.contains(&format!("data-active=\\\"{job}\\\"")) {
                assert!(parts.len() < order.len() || parts.contains(&"map".to_owned()));
                break;
            }
        }
    }
    let (status, _, _) = page(&stand, "/live/nothing").await;
    assert_eq!(status, 404);
    // The streams end when the server does.
    stand.raised.house.stop(Parting::End);
    for stream in [&mut first, &mut second] {
        while stream.next().await.is_some() {}
    }
    stand.down();
}

/// On a quiet plant hours pass between two inputs.
#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_is_told_as_of_now_and_not_of_the_last_input() {
    let dir = tempdir();
    // A minute takes a second, and nothing happens by itself.
    let quiet = UpOptions { speed: Speed::new(60.0).unwrap(), ..options(dir.path()) };
    let stand = Stand::try_up(&quiet).unwrap();
    let id = stand.submit("long", "2x2x1").await;
    stand.until_running(id).await;
    // From the chart of its life on, whose end is now.
    let told = |text: &str| text[text.find("class=\"life\"").expect(text)..].to_owned();
    let path = format!("/jobs/{id}");
    for _ in 0..40 {
        let before = stand.get("/v1/status").await["journal"].clone();
        let request = || stand.request("GET", &path).body(Body::empty()).unwrap();
        let (_, _, first) = stand.send(request()).await;
        // The chart tells whole minutes.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let (_, _, then) = stand.send(request()).await;
        if stand.get("/v1/status").await["journal"] == before {
            assert_ne!(told(&first), told(&then), "{first}");
            return;
        }
    }
    panic!("something was journalled all the time");
}
