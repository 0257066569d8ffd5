//! What outlives a restart, a second server and a full disk.

use std::sync::atomic::Ordering;

use axum::body::Body;
use selvedge_control::core::VERSION;
use selvedge_driver::store::Store;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_running_job_is_still_running_with_its_generation_after_a_restart() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let (large, small) =
        (stand.submit("large", "4x4x8").await, stand.submit("small", "2x2x1").await);
    let before = stand.until_running(large).await;
    assert!(before["generation"].as_u64().is_some(), "{before}");
    assert_eq!(stand.until_running(small).await["generation"], Value::Null);
    let told = stand.get("/v1/events/recent").await["events"].as_array().unwrap().clone();
    assert!(10 < told.len(), "{told:?}");
    let digest = stand.get("/v1/status").await["digest"].clone();
    assert!(digest.as_str().unwrap().len() == 16);
    stand.down();

    // From the snapshot that an orderly end leaves, from rows alone, and from rows because the
    // snapshot has another layout.
    for round in 0..3 {
        match round {
            1 => forget_snapshots(&dir.path().join("data")),
            2 => leave_another_layout(&dir.path().join("data")),
            _ => (),
        }
        let stand = Stand::up(dir.path());
        let after = stand.get(&format!("/v1/jobs/{large}")).await;
        for field in ["state", "generation", "attempt", "cubes", "started_s"] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(stand.get("/v1/check").await, json!({ "violations": [] }));
        let again = stand.get("/v1/events/recent").await["events"].as_array().unwrap().clone();
        assert_eq!(again[..told.len()], told, "what was told before is there, as it was told");
        stand
            .until("/v1/switches", |it| {
                it["switches"].as_array().unwrap().iter().all(|it| it["known"] == true)
            })
            .await;
        assert_eq!(stand.until_running(large).await["attempt"], before["attempt"]);
        stand.down();
    }
}

#[tokio::test]
async fn a_plant_that_was_left_goes_on_with_the_next_server() {
    let dir = tempdir();
    let mut stand = Stand::up(dir.path());
    let (kind, target) = ("machine_down", "cube9/m03");
    let job = stand.submit("held", "8x8x8").await;
    stand.until_running(job).await;
    stand.post("/v1/faults", json!({"target": target, "kind": kind, "action": "inject"})).await;
    let before = moves(&stand).await;
    assert!(before.values().all(|it| 0 < *it), "{before:?}");
    for leaves in [true, false, true] {
        // Left to the next one, or brought back from what it has kept.
        if leaves {
            stand.leave()
        } else {
            stand.down()
        }
        stand = Stand::up(dir.path());
        assert_eq!(stand.get("/v1/faults").await["faults"][0]["kind"], kind);
        stand
            .until("/v1/switches", |it| {
                it["switches"].as_array().unwrap().iter().all(|it| it["known"] == true)
            })
            .await;
        assert_eq!(stand.until_running(job).await["attempt"], 1);
        assert_eq!(moves(&stand).await, before, "no mirror of a job that runs was moved");
    }
    stand.down();
}

/// How often each mirror pair that ought to stand was moved.
async fn moves(stand: &Stand) -> std::collections::BTreeMap<String, u64> {
    let mut moves = std::collections::BTreeMap::new();
    for name in ["x0", "y7", "z15"] {
        let switch = stand.get(&format!("/v1/switches/{name}")).await;
        for pair in switch["pairs"].as_array().unwrap().iter().filter(|it| it["intended"] == true) {
            moves.insert(format!("{name} {}", pair["north"]), pair["moves"].as_u64().unwrap());
        }
    }
    moves
}

#[tokio::test]
async fn a_plant_that_is_gone_is_not_taken_for_a_new_one() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let job = stand.submit("held", "4x4x8").await;
    stand.until_running(job).await;
    stand.down();
    let plant = dir.path().join("data/plant");
    std::fs::remove_dir_all(&plant).unwrap();
    let refused = crate::api::error::chain(&Stand::try_up(&options(dir.path())).err().unwrap());
    assert!(
        refused.contains("plant/state is gone") && refused.contains("--new-plant"),
        "{refused}"
    );
    let anew = UpOptions { new_plant: true, ..options(dir.path()) };
    let stand = Stand::try_up(&anew).unwrap();
    // Its tasks and mirrors are gone with it; the job is found out and started again.
    stand.until(&format!("/v1/jobs/{job}"), |it| it["state"] == "running").await;
    stand.down();
    let refused = crate::api::error::chain(&Stand::try_up(&anew).err().unwrap());
    assert!(refused.contains("has been told things"), "{refused}");
    let state = plant.join("state");
    let mut bytes = std::fs::read(&state).unwrap();
    let last = bytes.len() - 9;
    bytes[last] ^= 1;
    std::fs::write(&state, bytes).unwrap();
    let refused = crate::api::error::chain(&Stand::try_up(&options(dir.path())).err().unwrap());
    assert!(refused.contains("damaged") && refused.contains("backup"), "{refused}");
}

/// Leaves a snapshot as a build of the same version does whose state looks different.
fn leave_another_layout(data: &Path) {
    let (mut store, opened) = Store::open(data).unwrap();
    let mut snapshot = opened.snapshot.unwrap();
    assert_eq!(snapshot.version, VERSION);
    snapshot.number = store.last();
    snapshot.body.extend([1, 2, 3]);
    store.snapshot(&snapshot).unwrap();
}

/// Makes the next start replay every row.
fn forget_snapshots(data: &Path) {
    let db = rusqlite::Connection::open(data.join("journal.db")).unwrap();
    assert!(0 < db.execute("DELETE FROM snapshot", []).unwrap());
}

#[tokio::test]
async fn a_key_makes_a_repeated_submit_the_same_job_also_after_a_restart() {
    let dir = tempdir();
    let mut stand = Stand::up(dir.path());
    let form = json!({ "name": "once", "shape": "8x4x4", "key": "k-1" });
    let mut seen = Vec::new();
    for round in 0..3 {
        let (status, job) = stand.json("POST", "/v1/jobs", &form).await;
        assert_eq!(status, if round == 0 { 201 } else { 200 }, "{job}");
        seen.push(job["id"].clone());
        if round == 1 {
            stand.down();
            stand = Stand::up(dir.path());
        }
    }
    assert!(seen.iter().all(|it| *it == seen[0]), "{seen:?}");
    let header = stand.request("POST", "/v1/jobs").header("idempotency-key", "k-1");
    let body = json!({ "name": "once", "shape": "4x4x8" }).to_string();
    assert_eq!(stand.send(header.body(Body::from(body)).unwrap()).await.0, 200, "the same shape");
    let other = json!({ "name": "other", "shape": "4x4x8", "key": "k-1" });
    let (status, error) = stand.json("POST", "/v1/jobs", &other).await;
    assert_eq!(status, 409, "{error}");
    assert_eq!(stand.get("/v1/jobs").await["jobs"].as_array().unwrap().len(), 1);
    stand.down();
}

#[tokio::test]
async fn two_servers_do_not_share_a_data_directory() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let refused = Stand::try_up(&options(dir.path())).err().unwrap().to_string();
    let pid = std::process::id();
    assert!(refused.contains(&format!("in use by process {pid}")), "{refused}");
    stand.submit("still here", "2x2x1").await;
    stand.down();
    Stand::up(dir.path()).down();
}

#[tokio::test]
async fn another_plant_than_the_journals_is_refused() {
    let dir = tempdir();
    Stand::up(dir.path()).down();
    let mut options = options(dir.path());
    let text =
        "format = 1\nname = \"other\"\n\n[[pod]]\nfamily = \"tpuv4\"\ncubes = 4\n".to_owned();
    options.plant = Some(crate::PlantFile { name: "other.toml".to_owned(), text });
    let refused = Stand::try_up(&options).err().unwrap();
    assert!(matches!(refused, UpError::OtherPlant { .. }), "{refused}");
    options.plant = Some(crate::PlantFile { name: "bad.toml".to_owned(), text: "pods = 7".into() });
    let refused = Stand::try_up(&options).err().unwrap().to_string();
    assert!(refused.contains("bad.toml"), "{refused}");
}

#[tokio::test]
async fn a_full_disk_acknowledges_nothing_and_loses_nothing() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    let before = stand.submit("before", "4x4x4").await;
    stand.until_running(before).await;
    stand.full.store(true, Ordering::SeqCst);
    let form = json!({ "name": "during", "shape": "2x2x1", "key": "during" });
    for round in 0..5 {
        let (status, error) = stand.json("POST", "/v1/jobs", &form).await;
        assert_eq!(status, 507, "{round}: {error}");
        assert!(error["error"].as_str().unwrap().contains("full"), "{error}");
        assert!(error["hint"].as_str().is_some());
    }
    let status = stand.get("/v1/status").await;
    assert_eq!(status["journal_ok"], false);
    // What is not on the disk is nobody's state: neither listed nor found, not even by its number.
    let jobs = stand.get("/v1/jobs").await;
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1, "{jobs}");
    assert_eq!(jobs["jobs"][0]["state"], "running");
    assert_eq!(stand.json("GET", "/v1/jobs/1", &Value::Null).await.0, 404);
    assert!(status["journal_error"].as_str().unwrap().contains("full"), "{status}");
    // Time stands still while nothing can be kept.
    assert_eq!(stand.get("/v1/status").await["now_s"], status["now_s"]);
    stand.full.store(false, Ordering::SeqCst);
    stand.until("/v1/status", |it| it["journal_ok"] == true).await;
    // What waited was carried out; the same key finds it.
    assert_eq!(stand.get("/v1/jobs/1").await["name"], "during");
    let (status, job) = stand.json("POST", "/v1/jobs", &form).await;
    assert_eq!((status, &job["id"]), (200, &json!(1)), "{job}");
    stand.down();

    let stand = Stand::up(dir.path());
    let jobs = stand.get("/v1/jobs").await;
    let names: Vec<_> = jobs["jobs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["before", "during"]);
    assert_eq!(jobs["jobs"][0]["state"], "running");
    assert_eq!(stand.get("/v1/check").await, json!({ "violations": [] }));
    stand.down();
}

#[tokio::test]
async fn a_server_that_dies_with_a_full_disk_keeps_what_it_acknowledged() {
    let dir = tempdir();
    let stand = Stand::up(dir.path());
    stand.submit("kept", "2x2x1").await;
    stand.full.store(true, Ordering::SeqCst);
    let form = json!({ "name": "refused", "shape": "2x2x1" });
    assert_eq!(stand.json("POST", "/v1/jobs", &form).await.0, 507);
    stand.down();
    let stand = Stand::up(dir.path());
    let jobs = stand.get("/v1/jobs").await;
    let names: Vec<_> = jobs["jobs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["kept"]);
    stand.down();
}

/// Goal: where the journal's tail is lost and the plant goes on, no chip is given out twice and no
/// old start passes for a new one.  Method: the journal as it was before two jobs came is put back;
/// one of them still runs in the plant, the other is over.  Then jobs under the same numbers come,
/// one of them so large that it needs the cubes of the first.
#[tokio::test]
async fn what_a_lost_tail_had_started_is_ended_before_anything_is_placed_there() {
    let dir = tempdir();
    let journal = |name: &str| dir.path().join("data").join(name);
    let stand = Stand::up(dir.path());
    let known = stand.submit("known", "4x4x8").await;
    let before = stand.until_running(known).await;
    stand.leave();
    let names = ["journal.db", "journal.db-wal", "journal.db-shm"];
    let kept: Vec<(&str, Vec<u8>)> =
        names.into_iter().filter_map(|it| Some((it, std::fs::read(journal(it)).ok()?))).collect();

    let stand = Stand::up(dir.path());
    let lost = stand.submit("lost", "8x8x8").await;
    let over = stand.submit("over", "2x2x1").await;
    let cubes = stand.until_running(lost).await["cubes"].clone();
    stand.until_running(over).await;
    stand.post(&format!("/v1/jobs/{over}/cancel"), json!({})).await;
    stand.until(&format!("/v1/jobs/{over}"), |it| it["state"] == "cancelled").await;
    stand.leave();
    names.iter().for_each(|it| drop(std::fs::remove_file(journal(it))));
    for (name, bytes) in kept {
        std::fs::write(journal(name), bytes).unwrap();
    }

    let stand = Stand::up(dir.path());
    let wide = stand.submit("wide", "8x16x28").await;
    let small = stand.submit("small", "2x2x1").await;
    assert_eq!((wide, small), (lost, over), "their numbers are given out anew");
    let after = stand.until_running(wide).await;
    assert!(1 < after["attempt"].as_u64().unwrap(), "{after}");
    let taken = after["cubes"].as_array().unwrap();
    assert!(cubes.as_array().unwrap().iter().any(|it| taken.contains(it)), "{cubes}");
    assert!(1 < stand.until_running(small).await["attempt"].as_u64().unwrap());
    let same = stand.until_running(known).await;
    assert_eq!((&same["attempt"], &same["cubes"]), (&before["attempt"], &before["cubes"]));
    assert_eq!(stand.get("/v1/check").await, json!({ "violations": [] }));
    let events = stand.get("/v1/events/recent?n=10000").await["events"].clone();
    let at = |words: &str| {
        let has = |it: &Value| it["text"].as_str().unwrap().contains(words);
        events.as_array().unwrap().iter().position(has)
    };
    let ended = at(&format!("job{lost}, which is not in the journal, has ended"));
    let placed = at(&format!("job{wide} placed"));
    let lines: Vec<_> = events.as_array().unwrap().iter().map(|it| &it["text"]).collect();
    assert!(ended.is_some() && ended < placed, "{ended:?} {placed:?} {lines:#?}");
    stand.down();
}
