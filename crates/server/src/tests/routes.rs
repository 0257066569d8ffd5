//! What the routes answer.

use std::collections::BTreeSet;

use axum::body::Body;
use futures_util::StreamExt as _;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_job_goes_from_submit_to_its_end() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let forecast =
        stand.post("/v1/jobs?dry_run=true", json!({ "name": "a", "shape": "8x8x8" })).await;
    assert_eq!(
        (&forecast["start"], forecast["cubes"].as_array().unwrap().len()),
        (&json!("now"), 8)
    );
    assert!(stand.get("/v1/jobs").await["jobs"].as_array().unwrap().is_empty());

    let form = json!({ "name": "a", "shape": "8x8x8", "duration": "10m", "owner": "ada" });
    let job = stand.post("/v1/jobs", form).await;
    assert_eq!((&job["id"], &job["chips"], &job["owner"]), (&json!(0), &json!(512), &json!("ada")));
    let done = stand.until("/v1/jobs/0", |it| it["state"] == "finished").await;
    assert_eq!(done["kept_steps"], 600);
    assert!(done["ended_s"].as_f64().unwrap() - done["started_s"].as_f64().unwrap() >= 600.0);
    let told: Vec<_> = done["timeline"].as_array().unwrap().iter().map(|it| &it["what"]).collect();
    assert_eq!(told.first(), Some(&&json!("submitted")));
    assert_eq!(told.last(), Some(&&json!("ended")));

    let held = stand.submit("held", "16x16x16").await;
    let behind = stand.submit("behind", "16x16x16").await;
    stand.until_running(held).await;
    let explained = stand.get(&format!("/v1/jobs/{behind}/explain")).await;
    assert_eq!(explained["state"], "queued");
    assert!(!explained["summary"].as_str().unwrap().is_empty());
    let (status, error) =
        stand.json("POST", &format!("/v1/jobs/{behind}/requeue"), &json!({})).await;
    assert_eq!(status, 409, "{error}");
    let hold = stand.post(&format!("/v1/jobs/{behind}/hold"), json!({})).await;
    assert_eq!((&hold["state"], &hold["held"]), (&json!("queued"), &json!(true)));
    stand.post(&format!("/v1/jobs/{behind}/cancel"), json!({})).await;
    stand.post(&format!("/v1/jobs/{held}/cancel"), json!({})).await;
    stand.until(&format!("/v1/jobs/{held}"), |it| it["state"] == "cancelled").await;
    let some = stand.get("/v1/jobs?state=finished,failed").await;
    assert_eq!(some["jobs"].as_array().unwrap().len(), 1);
    stand.down();
}

#[tokio::test]
async fn switches_show_intended_against_actual() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let job = stand.submit("a", "4x4x8").await;
    stand.until_running(job).await;
    let switches = stand.get("/v1/switches").await;
    let switches = switches["switches"].as_array().unwrap();
    assert_eq!(switches.len(), 48);
    assert!(switches.iter().all(|it| it["n_intended"] == 2 && it["n_differ"] == 0), "{switches:?}");
    let one = stand.get("/v1/switches/z5").await;
    let pairs = one["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    assert!(pairs.iter().all(|it| it["intended"] == true && it["actual"] == true), "{pairs:?}");
    assert!(pairs.iter().all(|it| it["from"] != it["to"] && it["job"] == json!(job)), "{pairs:?}");
    for path in ["/v1/switches/cube0", "/v1/switches/q9", "/v1/cubes/x0", "/v1/machines/cube0"] {
        assert_eq!(stand.json("GET", path, &Value::Null).await.0, 404, "{path}");
    }
    stand.down();
}

#[tokio::test]
async fn a_fault_becomes_a_case_and_is_repaired() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let job = stand.submit("a", "4x4x4").await;
    let running = stand.until_running(job).await;
    let cube = running["cubes"][0].as_str().unwrap().to_owned();
    let machine = format!("{cube}/m03");
    let fault = json!({ "target": machine, "action": "inject" });
    assert_eq!(stand.post("/v1/faults", fault.clone()).await["kind"], "machine_down");
    assert_eq!(stand.json("POST", "/v1/faults", &fault).await.0, 422, "it stands already");
    let case_of = |cases: &Value| {
        let mut cases = cases["cases"].as_array().unwrap().iter();
        cases.find(|it| it["target"] == json!(machine)).map(|it| it["id"].as_u64().unwrap())
    };
    let cases = stand.until("/v1/cases", |it| case_of(it).is_some()).await;
    let case = case_of(&cases).unwrap();
    // The job goes on elsewhere; a crew mends the machine, and it returns after requalification.
    stand
        .until(&format!("/v1/jobs/{job}"), |it| {
            it["state"] == "running" && it["cubes"][0] != json!(cube)
        })
        .await;
    let closed = stand.until(&format!("/v1/cases/{case}"), |it| it["state"] == "closed").await;
    assert!(1 <= closed["n_repairs"].as_u64().unwrap(), "{closed}");
    stand.until(&format!("/v1/cubes/{cube}"), |it| it["health"] == "ok").await;
    assert!(stand.get("/v1/faults").await["faults"].as_array().unwrap().is_empty());
    stand.down();
}

/// The plant's own process polls the switches: nobody writes to this one.
#[tokio::test]
async fn a_silent_switch_of_an_idle_pod_has_a_case_and_is_repaired() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    // What was asked of all at the start has been answered.
    let known =
        |it: &Value| it["switches"].as_array().unwrap().iter().all(|it| it["known"] == true);
    stand.until("/v1/switches", known).await;
    let fault = json!({ "target": "x5", "action": "inject", "kind": "silent" });
    assert_eq!(stand.post("/v1/faults", fault).await["kind"], "silent");
    let first = |cases: &Value| cases["cases"][0].clone();
    let cases = stand.until("/v1/cases", |it| first(it).is_object()).await;
    let case = first(&cases);
    assert_eq!((&case["target"], &case["symptom"]), (&json!("x5"), &json!("silent")), "{case}");
    assert_eq!(
        case["evidence"][0]["words"], "3 reads and polls in a row were not answered",
        "{case}"
    );
    // The ends of each cube that are on it say so, and no others.
    let cube = stand.get("/v1/cubes/cube0").await;
    let ends = cube["ends"].as_array().unwrap().iter().filter(|it| it["out"] == true);
    let out: Vec<&str> = ends.map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!((out, &cube["ends_out"]), (vec!["cube0/x/in/5", "cube0/x/out/5"], &json!(2)));
    let path = format!("/v1/cases/{}", case["id"]);
    let closed = stand.until(&path, |it| it["state"] == "closed").await;
    assert_eq!(closed["closed"], "requalified", "{closed}");
    stand.down();
}

#[tokio::test]
async fn drains_belong_to_who_made_them() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let drain = |by: &str, path: &str| {
        let body = json!({ "target": "cube5/m03" }).to_string();
        let request = stand.request("POST", path).header("selvedge-by", by);
        stand.send(request.body(Body::from(body)).unwrap())
    };
    assert_eq!(drain("ada", "/v1/drain").await.0, 200);
    let shown = stand.get("/v1/machines/cube5/m03").await;
    assert_eq!(shown["drains"][0]["by"], "ada");
    assert_eq!(shown["out"], true);
    let (status, _, text) = drain("bob", "/v1/undrain").await;
    assert_eq!(status, 409, "{text}");
    assert!(text.contains("ada"), "{text}");
    assert_eq!(drain("ada", "/v1/undrain").await.0, 200);
    stand.until("/v1/cubes/cube5", |it| it["health"] == "ok").await;
    let ends = stand.get("/v1/links?of=cube5/x/in/7").await;
    assert_eq!(ends["links"].as_array().unwrap().len(), 2);
    assert_eq!(stand.json("GET", "/v1/links", &Value::Null).await.0, 400);
    assert_eq!(stand.json("POST", "/v1/drain", &json!({ "target": "cube99" })).await.0, 404);
    stand.down();
}

#[tokio::test]
async fn the_plant_changes_by_compare_and_set() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let plant = stand.get("/v1/plant").await;
    assert_eq!((&plant["version"], &plant["n_cubes"]), (&json!(1), &json!(64)));
    let text = plant["plant"].as_str().unwrap();
    let renamed = text.replace("a simulated pod", "another name");
    let body = json!({ "plant": renamed, "expected": 1 });
    let (status, dry) = stand.json("PUT", "/v1/plant?dry_run=true", &body).await;
    assert_eq!((status, &dry["version"]), (200, &json!(1)), "{dry}");
    assert!(!dry["changes"].as_array().unwrap().is_empty());
    let (status, done) = stand.json("PUT", "/v1/plant", &body).await;
    assert_eq!((status, &done["version"]), (200, &json!(2)), "{done}");
    assert_eq!(stand.json("PUT", "/v1/plant", &body).await.0, 409);
    let bad = json!({ "plant": "pods = 7", "expected": 2 });
    assert_eq!(stand.json("PUT", "/v1/plant", &bad).await.0, 422);
    let (status, level) = stand.json("PUT", "/v1/level", &json!({ "level": "observe" })).await;
    assert_eq!((status, &level["level"]), (200, &json!("observe")));
    assert_eq!(stand.json("PUT", "/v1/level", &json!({ "level": "panic" })).await.0, 422);
    assert_eq!(stand.get("/v1/status").await["name"], "another name");
    stand.down();
}

#[tokio::test]
async fn a_reader_of_events_comes_back_where_it_was() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let job = stand.submit("a", "4x4x4").await;
    stand.until_running(job).await;
    let recent = stand.get("/v1/events/recent?n=10000").await;
    let events = recent["events"].as_array().unwrap();
    let numbers: Vec<u64> = events.iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=recent["newest"].as_u64().unwrap()).collect::<Vec<_>>());
    assert!(events.iter().any(|it| it["kind"] == "job_started"), "{events:?}");
    // Come back after event 3, then watch something new happen.
    let after = numbers[2];
    let request = stand.request("GET", "/v1/events").header("last-event-id", after);
    let answer = stand.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut stream = answer.into_body().into_data_stream();
    stand.post(&format!("/v1/jobs/{job}/cancel"), json!({})).await;
    let (mut text, mut want) = (String::new(), after + 1);
    while !text.contains("job_cancelled") {
        let chunk = stream.next().await.unwrap().unwrap();
        let chunk = std::str::from_utf8(&chunk).unwrap();
        for line in chunk.lines().filter_map(|it| it.strip_prefix("id: ")) {
            assert_eq!(line.parse::<u64>().unwrap(), want, "none lost, none twice");
            want += 1;
        }
        text.push_str(chunk);
    }
    let (status, _) = {
        let request = stand.request("GET", "/v1/events").header("last-event-id", "x");
        let answer = stand.send(request.body(Body::empty()).unwrap()).await;
        (answer.0, answer.2)
    };
    assert_eq!(status, 400);
    // The stream ends when the server does.
    stand.raised.house.stop(crate::plant::Parting::End);
    while let Some(chunk) = stream.next().await {
        chunk.unwrap();
    }
    stand.down();
}

#[tokio::test]
async fn the_document_and_the_guide_list_every_route() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let document = stand.get("/openapi.json").await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let paths = document["paths"].as_object().unwrap();
    let guide = include_str!("../../../../docs/api.md");
    let mut told = BTreeSet::new();
    for (path, item) in paths {
        let start = path.split("/{").next().unwrap();
        assert!(guide.contains(start), "docs/api.md says nothing of {path}");
        told.insert(start.to_owned());
        for (method, operation) in item.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            assert!(!summary.is_empty(), "{method} {path} says nothing of itself");
            assert!(operation["responses"].as_object().is_some_and(|it| it.len() > 1));
        }
    }
    for line in guide.lines() {
        let routes = line.split('`').filter(|it| {
            ["GET /v1", "POST /v1", "PUT /v1"].iter().any(|start| it.starts_with(start))
        });
        for route in routes {
            let path = route.split(' ').nth(1).unwrap().split('?').next().unwrap();
            let known = told.iter().any(|it| path == it || path.starts_with(&format!("{it}/")));
            assert!(known, "docs/api.md names {path}, which is no route");
        }
    }
    assert_eq!(stand.json("GET", "/v1/nothing", &Value::Null).await.0, 404);
    assert_eq!(stand.json("PUT", "/v1/jobs", &json!({})).await.0, 405);
    stand.down();
}

#[tokio::test]
async fn metrics_parse_and_tell_every_port() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let job = stand.submit("a", "4x4x4").await;
    stand.until_running(job).await;
    let request = stand.request("GET", "/metrics").body(Body::empty()).unwrap();
    let (status, headers, text) = stand.send(request).await;
    assert_eq!(status, 200);
    assert!(headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    let (mut known, mut n_losses, mut seen) = (BTreeSet::new(), 0, BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap().to_owned();
            assert!(known.insert(name), "{line} comes twice");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        assert!(seen.insert(series.to_owned()), "{series} comes twice");
        let name = series.split('{').next().unwrap();
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|it| name.strip_suffix(it));
        assert!(known.contains(name) || base.is_some_and(|it| known.contains(it)), "{line}");
        n_losses += usize::from(name == "selvedge_ocs_port_loss_db" && line.contains("measured"));
    }
    assert_eq!(n_losses, 48 * 128, "every cabled port of every switch");
    for name in ["selvedge_jobs{state=\"running\"} 1", "selvedge_chips_used{pod=\"pod0\"} 64"] {
        assert!(text.contains(name), "{name} in\n{text}");
    }
    assert!(text.contains("selvedge_http_requests_total{method=\"POST\",route=\"/v1/jobs\""));
    stand.down();
}

#[tokio::test]
async fn a_person_sees_64_cubes_and_48_switches() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let job = stand.submit("watched", "4x4x8").await;
    stand.until_running(job).await;
    let request = stand.request("GET", "/").body(Body::empty()).unwrap();
    let (status, _, text) = stand.send(request).await;
    assert_eq!(status, 200);
    assert_eq!(text.matches("data-cube=").count(), 64);
    assert_eq!(text.matches("data-ocs=").count(), 48);
    assert!(text.contains("watched"));
    // How the page looks that says that one is not let in is for everybody.
    let files =
        [("/page.css", true), ("/icon.svg", true), ("/page.js", false), ("/theme.js", false)];
    for (path, is_open) in files {
        let request = axum::http::Request::get(path).header("host", super::HOST);
        let (status, ..) = stand.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(status == 200, is_open, "{path}");
    }
    assert!(!text.contains(" style=") && !text.contains(" onclick="), "the policy forbids them");
    for (path, _) in files {
        assert!(text.contains(path));
        let request = stand.request("GET", path).body(Body::empty()).unwrap();
        assert_eq!(stand.send(request).await.0, 200);
    }
    stand.down();
}

/// A crowd that asks for the jobs is shown one list, and never one from before it asked.
#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_for_the_jobs_at_once_all_see_what_was_acknowledged() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    for n in 1..=5_usize {
        stand.submit("a", "16x16x16").await;
        let asked = (0..40).map(|nth| {
            let path = if nth % 3 == 0 { "/v1/jobs?state=finished" } else { "/v1/jobs" };
            let stand = &stand;
            async move { (nth, stand.get(path).await["jobs"].as_array().unwrap().len()) }
        });
        for (nth, n_jobs) in futures_util::future::join_all(asked).await {
            assert_eq!(n_jobs, if nth % 3 == 0 { 0 } else { n });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_and_an_order_for_many_go_on_where_the_client_hangs_up() {
    const N: usize = 1000;
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let hang_up = async |path: &str, body: Value| {
        let request = stand.request("POST", path).body(Body::from(body.to_string())).unwrap();
        let soon = Duration::from_millis(5);
        tokio::time::timeout(soon, stand.send(request)).await.expect_err("it takes longer");
    };
    let form = json!({ "name": "sweep", "shape": "2x2x1", "duration": "1000d", "array": N });
    hang_up("/v1/jobs", form).await;
    let count = |it: &Value| it["jobs"].as_array().unwrap().len();
    stand.until("/v1/jobs", |it| count(it) == N).await;
    let ids: Vec<_> = (0..N).collect();
    hang_up("/v1/orders", json!({ "order": "cancel", "ids": ids })).await;
    stand.until("/v1/jobs?state=cancelled", |it| count(it) == N).await;
    let form = json!({ "name": " ", "shape": "2x2x1" });
    let (status, refused) = stand.json("POST", "/v1/jobs", &form).await;
    assert!(status == 422 && refused.to_string().contains("not blanks alone"), "{refused}");
    stand.down();
}
