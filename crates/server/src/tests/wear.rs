//! Parts that are drained, re-patched, taken out and put back, as readers see them.

use axum::body::Body;
use serde_json::json;

use super::*;
use crate::PlantFile;

fn small(deployed: &str) -> String {
    format!("format = 1\nname = \"small\"\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 12\n{deployed}")
}

fn up_small(dir: &Path) -> Stand {
    let plant = PlantFile { name: "small.toml".to_owned(), text: small("deployed = \"0-11\"\n") };
    Stand::try_up(&UpOptions { plant: Some(plant), ..options(dir) }).unwrap()
}

/// The cube called `name` as the list has it.
async fn cube(stand: &Stand, name: &str) -> Value {
    let cubes = stand.get("/v1/cubes").await;
    let mut cubes = cubes["cubes"].as_array().unwrap().iter();
    cubes.find(|it| it["name"] == name).unwrap().clone()
}

async fn page(stand: &Stand, path: &str) -> String {
    let request = stand.request("GET", path).body(Body::empty()).unwrap();
    stand.send(request).await.2
}

#[tokio::test]
async fn a_cube_with_one_drained_link_is_in_use() {
    let dir = tempdir();
    let stand = up_small(dir.path());
    stand.post("/v1/drain", json!({ "target": "cube1/x/out/3" })).await;
    let one = cube(&stand, "cube1").await;
    assert_eq!((&one["health"], &one["drained"]), (&json!("degraded"), &json!(false)));
    assert_eq!((&one["links_drained"], &one["chips_out"]), (&json!(1), &json!(0)));
    let switch = stand.get("/v1/switches/x3").await;
    assert_eq!((&switch["drained"], &switch["links_drained"]), (&json!(false), &json!(1)));
    let map = page(&stand, "/").await;
    assert!(map.contains("cube1: degraded, free, 1 link drained"), "{map}");
    assert!(!map.contains("class=\"hatch\""), "no tile is hatched");

    stand.post("/v1/drain", json!({ "target": "cube2" })).await;
    stand.post("/v1/drain", json!({ "target": "cube3/m04" })).await;
    assert_eq!(cube(&stand, "cube2").await["drained"], true);
    let third = cube(&stand, "cube3").await;
    assert_eq!((&third["drained"], &third["chips_out"]), (&json!(false), &json!(4)));
    let hatched = page(&stand, "/").await.matches("class=\"hatch\"").count();
    assert_eq!(hatched, 2, "a cube, and one machine of another");
    stand.down();
}

#[tokio::test]
async fn only_jobs_that_are_there_leave_what_is_drained() {
    let dir = tempdir();
    let stand = up_small(dir.path());
    let job = stand.submit("here", "4x4x4").await;
    stand.until_running(job).await;
    let held = stand.get(&format!("/v1/jobs/{job}")).await["cubes"][0].clone();
    let (held, free) = match held["cube"].as_str().or(held.as_str()).unwrap() {
        "cube7" => ("cube7".to_owned(), "cube8"),
        other => (other.to_owned(), "cube7"),
    };
    let drained = stand.post("/v1/drain", json!({ "target": held })).await;
    assert_eq!(drained["drains"][0]["leaving"], json!([job]), "{drained}");
    let drained = stand.post("/v1/drain", json!({ "target": free })).await;
    assert_eq!(drained["drains"][0]["leaving"], json!([]), "{drained}");
    stand.down();
}

#[tokio::test]
async fn a_cube_that_comes_again_stands_where_it_stood() {
    let dir = tempdir();
    let stand = up_small(dir.path());
    let names = async || -> Vec<String> {
        let cubes = stand.get("/v1/cubes").await;
        let cubes = cubes["cubes"].as_array().unwrap().iter();
        cubes.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<String> = (0..12).map(|it| format!("cube{it}")).collect();
    assert_eq!(names().await, all);
    let apply = async |deployed: &str, expected: u64| {
        let body = json!({ "plant": small(deployed), "expected": expected });
        let (status, done) = stand.json("PUT", "/v1/plant", &body).await;
        assert_eq!(status, 200, "{done}");
    };
    apply("deployed = \"0-2,4-11\"\n", 1).await;
    assert!(!names().await.contains(&"cube3".to_owned()));
    apply("deployed = \"0-11\"\n", 2).await;
    assert_eq!(names().await, all, "each once, in its place");
    let cases = stand.get("/v1/cases").await;
    let case = &cases["cases"][0];
    assert_eq!(
        (&case["target"], &case["symptom"]),
        (&json!("cube3"), &json!("returned")),
        "{cases}"
    );
    stand.until("/v1/cubes/cube3", |it| it["health"] == "ok").await;
    let map = page(&stand, "/").await;
    let at = |name: &str| map.find(&format!("data-cube=\"{name}\"")).unwrap();
    assert!(at("cube2") < at("cube3") && at("cube3") < at("cube4"));
    stand.down();
}

#[tokio::test]
async fn what_people_read_is_in_words_and_names() {
    let dir = tempdir();
    let stand = up_small(dir.path());
    let before = stand.get("/v1/plant").await;
    for (from, to) in [("x3/n0", "x3/n64"), ("x3/n64", "x3/n0")] {
        stand.post("/v1/switches/move", json!({ "from": from, "to": to })).await;
    }
    let after = stand.get("/v1/plant").await;
    assert_eq!(after["version"], 3);
    let text = after["plant"].as_str().unwrap();
    assert!(!text.contains("[[cable]]"), "{text}");
    assert!(!before["plant"].as_str().unwrap().contains("[[cable]]"));

    stand.post("/v1/drain", json!({ "target": "cube2" })).await;
    let returned = stand.post("/v1/undrain", json!({ "target": "cube2" })).await;
    assert_eq!(returned["drains"][0]["symptom"], "returned", "{returned}");
    assert_eq!(returned["drains"][0]["why"], "given back, tested first", "{returned}");
    stand.post("/v1/faults", json!({ "target": "cube4/m01", "action": "inject" })).await;
    stand
        .until("/v1/drains", |it| {
            it["drains"].as_array().unwrap().iter().any(|it| it["why"] == "machine down")
        })
        .await;
    let events = stand.get("/v1/events/recent?n=1000").await.to_string();
    for text in [
        "fibre moved from x3/n0 to x3/n64",
        "fibre moved from x3/n64 to x3/n0",
        "opened: cube2: given back, tested first\"",
        "opened: cube4/m01: machine down (fatal)",
    ] {
        assert!(events.contains(text), "{text}: {events}");
    }
    stand.down();
}
