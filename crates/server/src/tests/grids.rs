//! Plants of other families than pods: grids of boards, and hosts.

use super::*;
use crate::up::PlantFile;

/// Method: four boards of eight are held by a box, one is drained, and a job waits for a box that
/// the other three do not make; where the largest free box lies is told and outlined.
#[tokio::test]
async fn the_largest_free_box_stands_on_the_dashboard_and_in_why_pending() {
    let dir = tempdir();
    let text = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"2x4\"\n";
    let plant = PlantFile { name: "hs.toml".to_owned(), text: text.to_owned() };
    let options = UpOptions { plant: Some(plant), ..options(dir.path()) };
    let stand = Stand::try_up(&options).unwrap();
    let held = stand.submit("held", "2x2").await;
    let boards = stand.until_running(held).await["cubes"].clone();
    let is_free = |it: &&str| !boards.as_array().unwrap().iter().any(|held| held == *it);
    let all = ["board0.0", "board0.3", "board1.0", "board1.3"];
    let corner = all.into_iter().find(is_free).unwrap();
    stand.post("/v1/drain", json!({ "target": corner, "why": "by hand" })).await;
    let waits = stand.submit("waits", "2x2").await;
    let explained = stand.get(&format!("/v1/jobs/{waits}/explain")).await;
    let room = &explained["room"][0];
    assert_eq!((&room["n_free"], &room["n_parts"]), (&json!(3), &json!(8)), "{explained}");
    assert_eq!((&room["largest_box"], &room["largest_set"]), (&json!("2x1"), &json!(3)));
    let page = stand.request("GET", "/").body(Body::empty()).unwrap();
    let (status, _, page) = stand.send(page).await;
    assert_eq!(status, 200);
    assert!(
        page.contains("3 of 8 boards free and sound; the largest box 2x1 from row 0"),
        "{page}"
    );
    assert!(page.contains("the largest connected set 3"));
    // One outline, four boards of the job, one board crossed out.
    assert_eq!(page.matches("data-room=\"pod0\"").count(), 1);
    assert_eq!(page.matches("data-cube=\"board").count(), 8, "each board once");
    assert_eq!(page.matches("class=\"dead\"").count(), 1);
    assert_eq!(page.matches("data-drained").count(), 1);
    let outline = format!("data-bounds=\"{held}\"");
    assert_eq!(page.matches(&outline).count(), 1);
    stand.down();
}

/// Method: a box of 5x4 boards is 80 chips, more than a page works out; the question does.
#[tokio::test]
async fn the_exact_bound_of_a_large_partition_is_worked_out_for_who_asks() {
    let dir = tempdir();
    let text = "format = 1\nname = \"hs\"\n[[pod]]\nfamily = \"hypersquare\"\ngroups = \"5x4\"\n";
    let plant = PlantFile { name: "hs.toml".to_owned(), text: text.to_owned() };
    let options = UpOptions { plant: Some(plant), ..options(dir.path()) };
    let stand = Stand::try_up(&options).unwrap();
    let job = stand.submit("all", "5x4").await;
    stand.until_running(job).await;
    let explained = stand.get(&format!("/v1/jobs/{job}/explain")).await;
    // 80 chips, 12·20 - 4·9 = 204 links.
    let bounds = explained["bounds"].as_str().unwrap();
    assert!(bounds.contains("takes exactly 79/204 S/b at best"), "{bounds}");
    let page = stand.request("GET", &format!("/jobs/{job}")).body(Body::empty()).unwrap();
    let (_, _, page) = stand.send(page).await;
    assert!(page.contains("between 0.3873 S/b, by its links, and 0.5000 S/b"), "{page}");
    stand.down();
}

/// What stands in a host beside its GPUs, as its NVSwitch does, is seen by whoever holds the host.
#[tokio::test]
async fn a_job_runs_on_generated_hosts() {
    let dir = tempdir();
    let text = "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n";
    let plant = PlantFile { name: "h.toml".to_owned(), text: text.to_owned() };
    let options = UpOptions { plant: Some(plant), ..options(dir.path()) };
    let stand = Stand::try_up(&options).unwrap();
    let job = stand.post("/v1/jobs", json!({ "name": "a", "hosts": 2 })).await["id"].clone();
    let runs = stand.until_running(job.as_u64().unwrap()).await;
    assert_eq!(runs["attempt"], 1, "{runs}");
    assert_eq!(stand.get("/v1/cases").await["cases"], json!([]));
    stand.down();
}
