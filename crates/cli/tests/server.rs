//! The verbs that ask a server, against one of our own: `up` on port 0 with a data directory of
//! its own, whose simulated hours pass in a moment.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use support::{PATIENCE, Up, dir, end_left, lives, program, signal};

impl Up {
    fn plant_pid(&self) -> u64 {
        self.json("status")["plant_pid"].as_u64().unwrap()
    }
}

#[test]
fn a_job_is_submitted_shown_waited_for_and_found_again() {
    let up = Up::at("3600");
    let job = up.json("job submit --shape 8x8x8 --name bert --duration 2h --owner ada");
    let id = job["id"].as_u64().unwrap();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let jobs = up.json("job list");
    assert_eq!(jobs["jobs"][0]["name"], "bert");
    assert!(jobs["jobs"][0]["generation"].is_u64(), "{jobs}");
    let done = up.run("job submit --shape 8x4x4 --name turned --duration 1m");
    assert!(String::from_utf8_lossy(&done.stderr).contains("8x4x4 is 4x4x8\n"));
    let small = up.json("job submit --shape 2x2x1 --name small --duration 1m");
    assert!(small["generation"].is_null());
    for args in ["job list", "job list --state running,queued", "pod show", "status", "cube show"] {
        assert!(!up.text(args).is_empty(), "{args}");
    }
    let huge = up.json("job submit --shape 16x16x16 --name huge")["id"].as_u64().unwrap();
    let why = up.text(&format!("job explain {huge}"));
    assert!(
        why.contains("before it") && why.contains("it starts once all of this is done"),
        "{why}"
    );
    up.text(&format!("job cancel {huge}"));
    let page = up.text(&format!("job show {id}"));
    assert!(page.contains("8x8x8, 512 chips") && page.contains("timeline"), "{page}");
    assert_eq!(
        up.text(&format!("job wait {id} --timeout 120")),
        format!("job {id} bert: finished\n")
    );
    assert_eq!(up.json("check")["violations"], serde_json::json!([]));
    assert!(up.text("events -n 500").contains(&format!("job{id} submitted")));
}

#[test]
fn a_running_job_outlives_its_server_with_its_generation() {
    let up = Up::start();
    let id = up.json("job submit --shape 4x4x8_twisted --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let before = up.json(&format!("job show {id}"));
    assert!(before["generation"].is_u64(), "{before}");
    let again = Up::start_with(up.kill(), &[]);
    let after = again.json(&format!("job show {id}"));
    for field in ["name", "state", "generation", "attempt", "cubes"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(again.json("check")["violations"], serde_json::json!([]));
}

#[test]
fn an_upgrade_or_a_lost_terminal_leaves_the_plant_and_ctrl_c_ends_it() {
    let up = Up::start();
    let id = up.json("job submit --shape 4x4x8 --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let (plant, before) = (up.plant_pid(), up.json("ocs show x3")["pairs"].clone());
    assert!(before[0]["moves"].is_u64(), "{before}");
    let up = ["TERM", "HUP"].into_iter().fold(up, |up, how| {
        let dir = up.signal(how);
        assert!(lives(plant), "{how}");
        let up = Up::start_with(dir, &[]);
        assert_eq!(up.plant_pid(), plant, "the same process is found again");
        up.until("ocs show x3", |it| it["known"] == true);
        assert_eq!(up.json("ocs show x3")["pairs"], before, "no mirror has moved");
        up
    });
    let dir = up.signal("INT");
    assert!(!lives(plant));
    // Killed, it leaves its plant, which `down` then ends.
    let up = Up::start_with(dir, &[]);
    let plant = up.plant_pid();
    let dir = up.kill();
    assert!(lives(plant));
    let done = end_left(dir.path());
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && text.contains(&plant.to_string()), "{text}");
    assert!(!lives(plant));
    let done = end_left(dir.path());
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn who_waits_and_who_follows_outlives_an_upgrade() {
    let up = Up::start();
    up.text("job submit --shape 16x16x16 --name all --duration 30d");
    let id = up.json("job submit --shape 16x16x16 --name next --duration 30d")["id"].to_string();
    let ask = |args: &[&str]| {
        let mut asked = program(up.dir());
        asked.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let wait = ask(&["job", "wait", &id]);
    let follow = ask(&["events", "--follow"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let up = Up::start_with(up.leave(), &[]);
    up.text(&["job", "cancel", &id]);
    let done = wait.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("cancelled"), "{said}");
    up.down();
    let done = follow.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains(&format!("job{id} cancelled")), "{said}");
}

#[test]
fn a_plant_that_is_killed_is_started_anew_with_its_mirrors() {
    let up = Up::start();
    let id = up.json("job submit --shape 4x4x8 --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let before = up.json("ocs show x3")["pairs"].clone();
    for round in 1..=3 {
        let plant = up.plant_pid();
        signal("KILL", plant);
        up.until("status", |it| it["plant_losses"] == round && it["plant_ok"] == true);
        assert_ne!(up.plant_pid(), plant);
        up.until("ocs show x3", |it| it["known"] == true);
        assert_eq!(up.json("ocs show x3")["pairs"], before);
    }
    assert_eq!(up.json(&format!("job show {id}"))["attempt"], 1);
    // What the plant kept is gone while it lives, and then its process dies.
    fs::remove_file(up.data().join("plant/state")).unwrap();
    signal("KILL", up.plant_pid());
    let is_gone = |it: &Value| it["plant_error"].as_str().is_some_and(|it| it.contains("is gone"));
    let status = up.until("status", is_gone);
    assert!(status["plant_error"].as_str().unwrap().contains("--new-plant"), "{status}");
    // Jobs are taken all the same; they run when there are devices again.
    assert_eq!(up.json("job submit --shape 2x2x1 --name later")["state"], "starting");
    assert!(up.text("status").contains("time stands still"), "{}", up.text("status"));
}

#[test]
fn a_plant_that_is_killed_before_it_says_a_word_does_not_end_the_server() {
    let dir = dir();
    let mut server = support::up(dir.path(), &[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut killed = Vec::new();
    while killed.len() < 2 {
        assert!(server.try_wait().unwrap().is_none(), "it ended after {killed:?}");
        for pid in support::children(server.id()) {
            if !killed.contains(&pid) {
                signal("KILL", pid);
                killed.push(pid);
            }
        }
    }
    let mut said = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("url"), "{said}");
    assert!(end_left(dir.path()).status.success());
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_backup_of_a_running_server_goes_on_elsewhere() {
    let up = Up::start();
    let id = up.json("job submit --shape 4x4x8 --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let (before, pairs) =
        (up.json(&format!("job show {id}")), up.json("ocs show x3")["pairs"].clone());
    let plant = up.plant_pid();
    let token = up.text("user add ada --role viewer");
    let rows = up.json("backup copy")["rows"].as_u64().unwrap();
    assert!(rows <= up.json("status")["journal"].as_u64().unwrap());
    let (code, text) = up.refused("backup copy");
    assert!(code == 2 && text.contains("not empty"), "{text}");
    // What comes after the backup is not in it.
    up.text("job submit --shape 2x2x1 --name later");
    let other = dir();
    let copy = up.dir().join("copy");
    let restore = |to: &Path| {
        let mut restore = program(other.path());
        restore.arg("restore").arg(&copy).arg("--data").arg(to).output().unwrap()
    };
    let done = restore(&other.path().join("data"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(restore(&other.path().join("data")).status.code(), Some(2), "it is not empty now");
    let again = Up::start_with(other, &[]);
    assert_ne!(again.plant_pid(), plant);
    again.until("ocs show x3", |it| it["known"] == true);
    let after = again.json(&format!("job show {id}"));
    for field in ["name", "state", "generation", "attempt", "cubes", "started_s"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(again.json("ocs show x3")["pairs"], pairs, "no mirror has moved");
    assert_eq!(again.json("job list")["jobs"].as_array().unwrap().len(), 1);
    again.text(&format!("job cancel {id}"));
    assert_eq!(up.json(&format!("job show {id}"))["state"], "running", "they share nothing");
    std::fs::write(again.dir().join("ada"), token).unwrap();
    again.text("--token-file ada job list");
}

#[test]
fn two_servers_do_not_share_a_data_directory() {
    let up = Up::start();
    let mut second = program(up.dir());
    second.args(["up", "--listen", "127.0.0.1:0", "--data", "data"]);
    let done = second.output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error:") && text.contains("data"), "{text}");
    let wide = program(up.dir()).args(["up", "--listen", "0.0.0.0:0"]).output().unwrap();
    let text = String::from_utf8(wide.stderr).unwrap();
    assert_eq!(wide.status.code(), Some(2), "{text}");
    assert!(text.contains("127.0.0.1"), "{text}");
}

#[test]
fn a_key_makes_a_repeated_submit_the_same_job() {
    let up = Up::start();
    let submit = "job submit --shape 4x4x4 --name a --key once";
    assert_eq!(up.json(submit)["id"], up.json(submit)["id"]);
    assert_eq!(up.json("job list")["jobs"].as_array().unwrap().len(), 1);
    // So does an array's, for the same array alone.
    let array = "job submit --shape 4x4x4 --array 2 --name b --key many";
    assert_eq!(up.json(array)["ids"], up.json(array)["ids"]);
    for other in ["--shape 4x4x8 --array 2", "--shape 4x4x8 --array 3"] {
        let (code, text) = up.refused(&*format!("job submit {other} --name b --key many"));
        assert!(code == 1 && text.contains("this key was used for job"), "{code} {text}");
    }
    assert_eq!(up.json("job list")["jobs"].as_array().unwrap().len(), 3);
}

#[test]
fn one_order_is_for_many_jobs_and_says_which_do_not_take_it() {
    let up = Up::start();
    up.text("cube drain cube7");
    let ids = up.json("job submit --shape 16x16x16 --name a --array 40");
    assert_eq!(ids["ids"].as_array().unwrap().len(), 40);
    assert_eq!(up.text("job hold 0-9 12"), "hold: 11 jobs\n");
    assert_eq!(up.json("job show 12")["held"], true);
    assert_eq!(up.json("job release 12")["held"], false, "one is told of as ever");
    let done = up.run("job cancel 38-47 3");
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1), "{text}");
    let not = "not 40, 41, 42, 43, 44, 45 and 2 more: there is no such job\n";
    assert_eq!(text, format!("cancel: 3 jobs\n{not}"));
    assert_eq!(up.json("job list --state cancelled")["jobs"].as_array().unwrap().len(), 3);
    let refused = up.refusal("job cancel 9-3");
    assert!(refused.contains("upwards"), "{refused}");
    // Only the owner's jobs are a user's to end.
    let token = up.json("user add eve --role user")["token"].as_str().unwrap().to_owned();
    std::fs::write(up.dir().join("eve"), token).unwrap();
    let done = up.run("--token-file eve job cancel 0 1 --json");
    assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&answer["done"], done.status.code()), (&serde_json::json!([]), Some(1)));
    assert_eq!(answer["refused"].as_array().unwrap().len(), 2, "{answer}");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_an_exit_status() {
    let up = Up::start();
    let (code, text) = up.refused("job submit --shape 8x9x8 --name a");
    assert_eq!(code, 2, "{text}");
    assert!(text.starts_with("error:") && text.contains("8x9x8"), "{text}");
    let (code, text) = up.refused("job show 77");
    assert_eq!(code, 2, "{text}");
    let (code, text) = up.refused("cube show cube99");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("cube99"), "{text}");
    let id = up.json("job submit --shape 4x4x4 --name a")["id"].as_u64().unwrap();
    up.text(&format!("job cancel {id}"));
    let (code, text) = up.refused(&format!("job release {id}"));
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("no:"), "{text}");
    let (code, _) = up.refused(&format!("job wait {id}"));
    assert_eq!(code, 1);
}

#[test]
fn a_dry_run_accepts_nothing() {
    let up = Up::start();
    assert_eq!(up.json("job submit --shape 4x4x8 --name a --dry-run")["start"], "now");
    assert!(up.text("job submit --shape 4x4x8 --name a --dry-run").starts_with("starts now"));
    // No is an answer, and no error.
    let never = up.run("job submit --shape 16x16x20 --name a --dry-run");
    let text = String::from_utf8_lossy(&never.stdout);
    assert_eq!(never.status.code(), Some(1), "{text}");
    assert!(
        text.starts_with("can never start: the largest pool of this plant has 64 parts"),
        "{text}"
    );
    assert_eq!(up.json("job list")["jobs"], serde_json::json!([]));
}

#[test]
fn a_drained_cube_is_left_alone_until_its_owner_returns_it() {
    let up = Up::at("600");
    up.text("cube drain cube0 --why new-fibre");
    assert!(up.text("cube show cube0").contains("new-fibre"));
    assert!(up.text("cube show").contains("drained"));
    up.text("cube undrain cube0");
    // What returns is tested again first.
    up.until("cube show cube0", |cube| cube["drained"] == false);
    up.text("link drain cube1/x/out/3");
    assert!(up.text("link show").contains("cube1/x/out/3"));
    up.text("link undrain cube1/x/out/3");
    up.text("machine drain cube2/m03");
    assert_eq!(up.json("machine show cube2/m03")["out"], true);
    assert!(up.text("machine show cube2/m03").contains("out of use"));
    up.text("ocs drain x5");
    assert!(up.text("ocs show").contains("out of use"));
    up.text("ocs undrain x5");
    up.text("ocs show x5");
    // A port with a fibre is drained as the fibre that it carries.
    assert!(up.text("ocs drain x7/n9").contains("out of use by"));
    assert!(up.text("link show cube9/x/out/7").contains("out of use"));
}

#[test]
fn a_whole_pod_is_given_back_past_what_is_not_ones_own() {
    let up = Up::at("600");
    up.text("pod drain pod0");
    up.text("cube undrain cube1");
    up.text("pod undrain pod0");
    up.until("pod show pod0", |it| it["pods"][0]["chips_out"] == 0);
}

#[test]
fn a_job_that_waits_for_what_comes_back_by_itself_is_told_to_wait() {
    let up = Up::start();
    up.text("pod drain pod0");
    up.text("job submit --shape 4x4x4 --name late --duration 1h");
    up.text("cube undrain cube5");
    let explained = up.until("job explain 0", |it| it["steps"][0]["step"] == "wait");
    assert_eq!(explained["steps"].as_array().unwrap().len(), 1, "{explained}");
    assert_eq!(explained["forecast"]["start"], "at", "{explained}");
}

#[test]
fn an_injected_fault_has_a_case_and_is_healed() {
    let up = Up::at("3600");
    up.text("fault inject machine cube3/m01");
    assert!(up.text("fault list").contains("cube3/m01"));
    let seen = up.until("repair list --all", |it| it["cases"][0].is_object());
    let cases = &seen["cases"];
    assert_eq!(cases[0]["target"], "cube3/m01", "{cases}");
    assert!(up.text("repair list --all").contains("cube3/m01"));
    assert!(up.text(&format!("repair show {}", cases[0]["id"])).contains("evidence"));
    up.text("fault clear machine cube3/m01");
}

#[test]
fn a_plant_is_applied_against_the_version_that_it_was_made_from() {
    let up = Up::start();
    let file = up.dir().join("plant.toml");
    fs::write(&file, up.json("plant get")["plant"].as_str().unwrap()).unwrap();
    assert!(up.text("plant apply plant.toml").contains("nothing"));
    let (code, text) = up.refused("plant apply missing.toml");
    assert_eq!(code, 2, "{text}");
}

#[test]
fn a_picture_of_the_pod_is_drawn() {
    let up = Up::start();
    let id = up.json("job submit --shape 8x8x8 --name bert")["id"].as_u64().unwrap();
    up.text(&format!("job wait {id} --running --timeout 60"));
    up.text("pod show --svg pod.svg");
    let svg = fs::read_to_string(up.dir().join("pod.svg")).unwrap();
    assert_eq!(svg.matches(">bert</text>").count(), 8);
}

#[test]
fn down_ends_the_server_and_its_journal_is_whole() {
    let mut up = Up::start();
    up.text("job submit --shape 4x4x4 --name a");
    up.text("level set observe");
    assert_eq!(up.json("level show")["level"], "observe");
    // Found by itself: no --server.
    let done = program(up.dir()).arg("down").arg("--data").arg(up.data()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(up.child.wait().unwrap().success());
    let verify = program(up.dir()).args(["journal", "verify", "data"]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stderr));
    let (code, _) = up.refused("status");
    assert_eq!(code, 2);
}

/// The events of a server, as `events` prints them.
fn events(up: &Up) -> String {
    up.text("events -n 1000")
}

/// Goal: what people read is in words.  Method: what a reviewer did by hand.
#[test]
fn drains_cases_and_fibres_are_told_in_words_and_names() {
    let up = Up::at("600");
    let drained = up.text("cube drain cube40");
    assert!(drained.contains("drained by hand\n"), "nobody leaves an empty cube: {drained}");
    let returned = up.text("cube undrain cube40");
    assert_eq!(returned, "cube40: given back; case 0 tests it before it is used again\n");
    let id = up.json("job submit --shape 4x4x4 --name a --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let cube = up.json(&format!("job show {id}"))["cubes"][0].clone();
    let cube = cube["cube"].as_str().or(cube.as_str()).unwrap().to_owned();
    let drained = up.text(&format!("cube drain {cube}"));
    assert!(drained.contains(&format!("; job {id} leaves")), "{drained}");

    up.text("link drain cube41/x/out/3");
    assert!(up.text("cube show cube41").contains("degraded, 1 link drained"));
    assert!(up.text("cube show").contains("degraded, 1 link drained"));
    assert!(up.text("ocs show x3").contains("ok, 1 port drained"));

    up.text("fault inject machine cube42/m01");
    up.until("repair list --all", |it| it["cases"][1].is_object());
    up.text("maintain start cube43/m02 --work 30m");
    let cases = up.text("repair list --all");
    for text in ["machine down", "fatal", "returned", "planned"] {
        assert!(cases.contains(text), "{text}: {cases}");
    }
    let planned = cases.lines().find(|it| it.contains("planned")).unwrap();
    assert!(!planned.contains("critical"), "{planned}");
    let drains = up.text("cube show cube42");
    assert!(drains.contains("machine down") && !drains.contains("MachineDown"), "{drains}");

    for words in ["ocs port move x5/n50 x5/n64", "ocs port move x5/n64 x5/n50"] {
        up.text(words);
    }
    let events = events(&up);
    assert!(events.contains("fibre moved from x5/n64 to x5/n50"), "{events}");
    assert!(!up.json("plant get")["plant"].as_str().unwrap().contains("[[cable]]"));
}

#[test]
fn two_servers_are_told_apart_and_a_killed_one_leaves_no_trace() {
    let up = Up::start();
    let servers = up.dir().join("selvedge/servers");
    let files = || fs::read_dir(&servers).unwrap().count();
    assert_eq!(files(), 1);
    // A second one, by hand, for what it prints; its runtime files lie with the first one's.
    let mut second = program(up.dir());
    second.args(["up", "--listen", "127.0.0.1:0", "--data", "other"]);
    let mut child = second.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut page = String::new();
    while !page.ends_with(" down\n") {
        page.push_str(&format!("{}\n", lines.next().expect("the hints end so").unwrap()));
    }
    let url = page.split_whitespace().find(|it| it.starts_with("http://")).unwrap();
    for verb in ["job submit", "job list --watch", "fault inject", "down"] {
        assert!(page.contains(&format!(" --server {url} {verb}")), "{page}");
    }
    assert_eq!(files(), 2);
    let done = program(up.dir()).arg("status").output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(text.contains("2 servers run") && text.contains("--server"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    // Whoever looks clears away what the killed one has left.
    assert!(program(up.dir()).arg("status").output().unwrap().status.success());
    assert_eq!(files(), 1);
    let left = program(up.dir()).args(["down", "--data", "other"]).output().unwrap();
    assert!(left.status.success(), "{}", String::from_utf8_lossy(&left.stderr));
}

#[test]
fn a_page_is_watched_until_its_reader_goes() {
    let up = Up::start();
    let watched = |args: &str, change: &str, text: &str| {
        let mut child = up.command(args).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect("a page at once").unwrap();
        assert!(!first.contains(text), "{args}: {first}");
        up.text(change);
        let since = Instant::now();
        let is_shown = lines.by_ref().any(|it| {
            assert!(since.elapsed() < PATIENCE, "{args}: {text} does not come");
            it.unwrap().contains(text)
        });
        assert!(is_shown, "{args} ended before {text} came");
        // A reader that goes ends it, as `| head` does, with the next that there is to print.
        drop(lines);
        up.text("job submit --shape 2x2x1 --name more");
        assert!(child.wait().unwrap().success(), "{args}");
    };
    watched("job list --watch=0.1", "job submit --shape 2x2x1 --name seen", "seen");
    watched("cube show --watch=0.1", "cube drain cube9", "drained");
    watched("repair list --watch=0.1", "fault inject machine cube8/m01", "cube8/m01");
    watched("pod show --watch=0.1", "link drain cube7/x/out/7", "1 link drained");
    watched("events -n 0 --follow", "job submit --shape 2x2x1 --name again", "submitted");
    let (code, text) = up.refused("job list --watch=never");
    assert!(code == 2 && text.contains("seconds"), "{text}");
}

/// Goal: a proposal is reviewed and accepted by a person.  Method: two pods of four cubes; a job
/// of four cubes waits where three and two are free, until one of one cube is moved away.
#[test]
fn moves_are_proposed_reviewed_and_accepted() {
    let dir = dir();
    let pods = "[[pod]]\nfamily = \"tpuv4\"\ncubes = 4\n".repeat(2);
    fs::write(dir.path().join("two.toml"), format!("format = 1\nname = \"two\"\n{pods}")).unwrap();
    let options = ["--plant", "two.toml", "--act", "drain", "--speed", "600"];
    let up = Up::start_with(dir, &options);
    assert!(up.text("moves show").contains("nothing is proposed"));
    let submit = |name: &str, shape: &str, owner: &str, duration: &str| {
        let args = format!(
            "job submit --preemptible --shape {shape} --name {name} --owner {owner} \
             --duration {duration}"
        );
        let id = up.json(&args)["id"].as_u64().unwrap();
        if name != "big" {
            up.text(&format!("job wait {id} --running --timeout 100"));
        }
        id
    };
    let first = submit("a", "4x4x12", "p", "30h");
    submit("c", "4x4x8", "r", "30h");
    let moved = submit("d", "4x4x4", "q", "30h");
    up.text(&format!("job cancel {first}"));
    up.until(&format!("job show {first}"), |it| it["state"] == "cancelled");
    let big = submit("big", "4x4x16", "p", "10m");
    let seen = up.until("moves show", |it| it["proposal"].is_object());
    let proposal = &seen["proposal"];
    assert_eq!((&proposal["job"], &proposal["moves"][0]["job"]), (&big.into(), &moved.into()));
    assert!(0.0 < proposal["lost_chip_hours"].as_f64().unwrap(), "{seen}");
    let page = up.text("moves show");
    for text in [&*format!("for job {big}"), "chip-hours", "cube", &*format!("job {moved}")] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let plan = proposal["id"].as_u64().unwrap();
    let (code, text) = up.refused(&format!("moves accept {}", plan + 7));
    assert!(code == 2 && text.contains("moves"), "{text}");
    up.text(&format!("moves accept {plan}"));
    up.text(&format!("job wait {big} --running --timeout 200"));
    assert_eq!(up.json(&format!("job show {moved}"))["attempt"], 2);
    assert!(events(&up).contains("under way"), "{}", events(&up));
    assert_eq!(up.json("check")["violations"], serde_json::json!([]));
}

/// What a raw request is answered: the status, then the rest.
fn raw(address: &str, host: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET /v1/jobs HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Goal: a page elsewhere whose name comes to mean this machine reads nothing.  Method: what its
/// browser would send, over TCP, with the right token even; and a name that does resolve to us.
#[test]
fn a_name_that_has_come_to_mean_this_machine_is_not_served() {
    let up = Up::start();
    let address = up.url.trim_start_matches("http://").to_owned();
    let port = address.rsplit_once(':').unwrap().1;
    let token = fs::read_to_string(up.data().join("token")).unwrap();
    let token = token.trim();
    let status = |host: &str| raw(&address, host, token).split(' ').nth(1).unwrap().to_owned();
    for own in ["localhost", "127.0.0.1", "LocalHost"] {
        assert_eq!(status(&format!("{own}:{port}")), "200", "{own}");
    }
    for other in
        ["rebound.example", "localhost.example", "localhost.localdomain", "127.0.0.1.nip.io"]
    {
        assert_eq!(status(&format!("{other}:{port}")), "421", "{other}");
    }
    assert_eq!(status("localhost"), "421", "without its port");
    assert_eq!(status("rebound.example"), "421");
    let told = raw(&address, &format!("rebound.example:{port}"), token);
    assert!(told.contains(&up.url) && !told.contains("jobs\":"), "{told}");
    // A name of this machine that every resolver answers with loopback (RFC 6761, section 6.3).
    let name = format!("rebound.localhost:{port}");
    if let Ok(mut found) = name.to_socket_addrs()
        && let Some(found) = found.find(|it| it.to_string() == address)
    {
        let answer = raw(&found.to_string(), &name, token);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    }
    let localhost = raw(&format!("localhost:{port}"), &format!("localhost:{port}"), token);
    assert!(localhost.starts_with("HTTP/1.1 200 "), "{localhost}");
}

/// What was lost is counted, and the lines that follow, typed as they stand, bring a server up.
#[test]
fn salvage_says_what_was_lost_and_what_comes_next() {
    let up = Up::start();
    for nth in 0..20 {
        up.text(&format!("job submit --shape 2x2x1 --name n{nth}"));
    }
    let dir = up.kill();
    let done = end_left(dir.path());
    assert!(done.status.success());
    let journal = || dir.path().join("data/journal.db");
    // Whatever is in the log of the database is brought into the file first.
    let salvage = |out: &str| {
        let args = ["journal", "salvage", "data", "--out", out];
        let done = program(dir.path()).args(args).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let told = salvage("whole");
    assert!(told.contains("nothing is lost; next:\n  mkdir data/damaged"), "{told}");
    for file in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = fs::remove_file(dir.path().join("data").join(file));
    }
    fs::copy(dir.path().join("whole/journal.db"), journal()).unwrap();
    let mut bytes = fs::read(journal()).unwrap();
    let name = b"\"n15\"";
    let at = bytes.windows(name.len()).position(|it| it == name).expect("a row has its name");
    bytes[at + 1] = b'm';
    fs::write(journal(), bytes).unwrap();
    let told = salvage("saved");
    assert!(told.contains("\nlost: ") && told.contains(" rows; next:\n"), "{told}");
    let (_, next) = told.split_once("next:\n").unwrap();
    for line in next.lines().take_while(|it| it.starts_with("  m")) {
        let done = Command::new("sh").args(["-c", line]).current_dir(dir.path()).status().unwrap();
        assert!(done.success(), "{line}");
    }
    let up = Up::start_with(dir, &[]);
    let jobs = up.json("job list");
    let n_jobs = jobs["jobs"].as_array().unwrap().len();
    assert_eq!(n_jobs, 15, "{jobs}");
}

#[test]
fn a_journal_of_nothing_good_is_not_salvaged() {
    let up = Up::start();
    for (name, bytes) in [("empty", ""), ("garbage", "not a journal at all\n")] {
        let dir = up.dir().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("journal.db"), bytes.repeat(300)).unwrap();
        let args = ["journal", "salvage", name, "--out", "saved"];
        let done = program(up.dir()).args(args).output().unwrap();
        let text = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{name}: {text}");
        assert!(text.contains("not one row") && text.contains("backup"), "{name}: {text}");
        assert!(!up.dir().join("saved").exists(), "{name}");
    }
}

/// The files that a script of `scenarios/` writes, in `dir`.
fn write_files(script: &str, dir: &Path) {
    let is_of_file = |it: &&str| it.starts_with("    ");
    let lines: Vec<&str> = script.lines().collect();
    for (idx, line) in lines.iter().enumerate() {
        let Some(name) = line.strip_prefix("write ") else { continue };
        let text = lines[idx + 1..].iter().copied().take_while(is_of_file);
        let text: String = text.map(|it| format!("{}\n", &it[4..])).collect();
        fs::write(dir.join(name), text).unwrap();
    }
}

#[test]
fn the_rings_of_running_jobs_are_those_of_the_hosts_that_they_have() {
    let dir = dir();
    write_files(include_str!("../../../scenarios/ring_hosts.script"), dir.path());
    let up = Up::start_with(dir, &["--plant", "hall.toml"]);
    for n_hosts in [2, 1] {
        let submit = format!("job submit --hosts {n_hosts} --name train --duration 30d");
        let id = up.json(&submit)["id"].as_u64().unwrap();
        up.text(&format!("job wait {id} --running --timeout 60"));
    }
    let hosts = [0, 1].map(|id| {
        let places = up.json(&format!("job show {id}"))["places"].clone();
        let parts = places.as_array().unwrap().iter().map(|it| it["part"].as_str().unwrap());
        parts.collect::<Vec<_>>().join(",")
    });
    let mut placed = up.json("ring --job 0 --job 1");
    let [both, one] = &hosts;
    let by_hand = up.json(&format!("ring --plant hall.toml --hosts {both} --hosts {one}"));
    for (job, hosts) in hosts.iter().enumerate() {
        assert_eq!(placed["jobs"][job]["hosts"], format!("job{job}"));
        placed["jobs"][job]["hosts"] = hosts.as_str().into();
    }
    assert_eq!(placed, by_hand);
    assert_eq!(placed["jobs"][0]["ranks"].as_array().unwrap().len(), 8);
    let page = up.text("ring --job 0 --nccl 2.7.8 --env NCCL_CROSS_NIC=0");
    assert!(page.starts_with("job0: 8 GPUs on 2 hosts, NCCL 2.7.8: "), "{page}");

    // Two hosts are taken, the fourth has no cable; three are not to be had.
    let waits = up.json("job submit --hosts 3 --name waits --duration 30d")["id"].clone();
    let (code, text) = up.refused(&format!("ring --job {waits}"));
    assert_eq!(code, 1, "{text}");
    assert!(
        text.starts_with(&format!("no: job{waits} (waits) is queued and has no hosts")),
        "{text}"
    );
    up.text("job cancel 1");
    up.until("job show 1", |it| it["state"] == "cancelled");
    let (code, text) = up.refused("ring --job 0 --job 1");
    assert!(code == 1 && text.starts_with("no: job1 (train) is cancelled"), "{code} {text}");
    let (code, text) = up.refused("ring --job 0 --job 0");
    assert!(code == 2 && text.starts_with("error: job0 is named twice"), "{code} {text}");
    let (code, text) = up.refused("ring --job 77");
    assert!(code == 2 && text.contains("77"), "{code} {text}");
}

#[test]
fn a_job_on_cubes_has_no_rings_through_hosts() {
    let up = Up::start();
    up.text("job submit --shape 4x4x8 --name slice --duration 30d");
    up.text("job wait 0 --running --timeout 60");
    let (code, text) = up.refused("ring --job 0");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("job0 (slice)") && text.contains("is no host"), "{text}");
}
