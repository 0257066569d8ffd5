//! Jobs in replicas, and what their marks say of machines.

use super::*;
use crate::up::PlantFile;

/// Method: a job in replicas runs on twelve boards; `explain` names its clusters.  Whoever started
/// its program says three times that a replica on one board was outvoted: evidence names the call
/// and the byte, the board takes no new work, the job goes on, and the audit trail knows who.
#[tokio::test]
async fn a_board_whose_replicas_are_outvoted_takes_no_new_work() {
    let dir = tempdir();
    let text = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"3x4\"\n";
    let plant = PlantFile { name: "hs.toml".to_owned(), text: text.to_owned() };
    let options = UpOptions { plant: Some(plant), ..options(dir.path()) };
    let stand = Stand::try_up(&options).unwrap();
    let form = json!({ "name": "lu", "shape": "3x4", "duration": "1000d", "redundancy": 3 });
    let job = stand.post("/v1/jobs", form).await["id"].as_u64().unwrap();
    stand.until_running(job).await;
    let explained = stand.get(&format!("/v1/jobs/{job}/explain")).await;
    let replicas = explained["replicas"].as_str().unwrap();
    assert!(replicas.starts_with("4 clusters of machines within two hops"), "{replicas}");

    let mut cases = Value::Null;
    for call in [17, 99, 4711] {
        let mark = json!({ "machine": "board1.1", "job": job, "rank": 2, "set": 1, "call": call,
                           "byte": 64 });
        cases = stand.post("/v1/mark", mark).await["cases"].clone();
    }
    let case = &cases[0];
    assert_eq!((&case["target"], &case["symptom"]), (&json!("board1.1"), &json!("marked")));
    assert_eq!((&case["n_seen"], &case["severity"]), (&json!(3), &json!("degraded")), "{case}");
    let words = case["evidence"][2]["words"].as_str().unwrap();
    let job_name = format!("job{job}");
    assert_eq!(
        words,
        format!("replica 1 of rank 2 of {job_name} differed in call 4711, from byte 64 on")
    );
    let drains = stand.get("/v1/drains").await["drains"].clone();
    assert_eq!(
        (&drains[0]["target"], &drains[0]["symptom"]),
        (&json!("board1.1"), &json!("marked"))
    );
    assert_eq!(stand.get(&format!("/v1/jobs/{job}")).await["state"], "running");
    let audit = stand.get("/v1/audit").await["orders"].clone();
    let said = |it: &Value| it["what"] == "mark replica 1 of rank 2 on board1.1, call 4711";
    assert!(audit.as_array().unwrap().iter().any(said), "{audit}");

    let port = json!({ "machine": "board1.1/A/east", "rank": 0, "set": 0, "call": 1 });
    let (status, refused) = stand.json("POST", "/v1/mark", &port).await;
    assert_eq!(status, 422, "{refused}");
    let form = json!({ "name": "two", "shape": "1x3", "redundancy": 2 });
    assert_eq!(stand.json("POST", "/v1/jobs", &form).await.0, 422);
    stand.down();
}
