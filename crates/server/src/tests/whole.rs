//! The whole of `up`, on a real port: what the routes' tests cannot see.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::*;
use crate::runtime;

/// One request on a connection of its own; the answer's status and body.
fn ask(address: SocketAddr, token: &str, line: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_comes_up_is_found_answers_and_goes_when_told() {
    let dir = tempdir();
    let running = crate::up(options(dir.path())).await.unwrap();
    let (address, url) = (running.address(), running.url().to_owned());
    assert!(running.is_new() && running.is_simulated());
    assert!(running.link().starts_with(&format!("{url}/?key=")));
    let server = runtime::find(&url).unwrap();
    assert_eq!((server.address, server.pid), (address, std::process::id()));
    let token = server.token().unwrap();

    let (again, elsewhere) = (UpOptions { listen: address, ..options(dir.path()) }, tempdir());
    let refused = crate::up(again).await.unwrap_err().to_string();
    assert!(refused.contains("in use by process"), "{refused}");
    let taken = UpOptions { listen: address, ..options(elsewhere.path()) };
    assert!(matches!(crate::up(taken).await, Err(UpError::Listen { .. })));

    // Half-open connections hold nobody up.
    let silent: Vec<TcpStream> = (0..16).map(|_| TcpStream::connect(address).unwrap()).collect();
    let form = json!({ "name": "n", "shape": "2x2x1" }).to_string();
    let asked = tokio::task::spawn_blocking(move || {
        assert_eq!(ask(address, "wrong", "GET /v1/jobs", "").0, 401);
        assert_eq!(ask(address, &token, "POST /v1/jobs", &form).0, 201);
        let (status, body) = ask(address, &token, "GET /v1/jobs", "");
        assert_eq!(status, 200);
        assert!(body.contains("\"name\":\"n\""), "{body}");
        ask(address, &token, "POST /v1/shutdown", "{}")
    });
    let (status, body) = asked.await.unwrap();
    assert_eq!((status, body.as_str()), (200, "{\"stopping\":true}"));
    running.ended().await.unwrap();
    drop(silent);
    assert!(runtime::find(&url).is_err(), "nothing is left of it");
    assert!(TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_scenario_brings_its_plant_and_lets_its_events_happen_once() {
    let dir = tempdir();
    let text = r#"
format = 1
name = "two faults"
seed = 7
published_rates = false

[plant]
cubes = 4

[[event]]
at = "1m"
fault = "machine_down"
path = "cube1/m03"
"#;
    let scenario = selvedge_sim::scenario::Scenario::parse("s.toml", text).unwrap();
    let setup = selvedge_sim::scenario::setup(&scenario).unwrap();
    let options = UpOptions { scenario: Some(setup), ..options(dir.path()) };
    let stand = Stand::try_up(&options).unwrap();
    assert_eq!(stand.get("/v1/plant").await["n_cubes"], 4);
    let is_out = |it: &Value| {
        let mut cases = it["cases"].as_array().unwrap().iter();
        cases.any(|it| it["target"] == "cube1/m03")
    };
    stand.until("/v1/cases", is_out).await;
    let n_before = injected(&stand).await;
    stand.down();
    let stand = Stand::try_up(&options).unwrap();
    assert_eq!(injected(&stand).await, n_before, "what has happened does not happen again");
    stand.down();
}

/// How many machines have failed so far.
async fn injected(stand: &Stand) -> String {
    let request = stand.request("GET", "/metrics").body(Body::empty()).unwrap();
    let (_, _, text) = stand.send(request).await;
    let line = text.lines().find(|it| it.contains("{kind=\"machine_down\"}")).unwrap();
    line.to_owned()
}
