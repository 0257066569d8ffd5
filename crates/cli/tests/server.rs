//! The verbs that ask a server, against one of our own: `up` on port 0 with a data directory of
//! its own, whose simulated hours pass in a moment.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A server that ends with the test.
struct Up {
    child: Child,
    url: String,
    /// None once it has been handed on.
    dir: Option<tempfile::TempDir>,
}

impl Up {
    fn start(speed: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), speed)
    }

    /// A server on the data of one that was there before, if any was.
    fn start_in(dir: tempfile::TempDir, speed: &str) -> Self {
        let mut child = program(dir.path())
            .args(["up", "--json", "--listen", "127.0.0.1:0", "--speed", speed, "--data"])
            .arg(dir.path().join("data"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let up = lines.next().expect("`up` prints its address").unwrap();
        let up: Value = serde_json::from_str(&up).unwrap();
        let url = up["url"].as_str().unwrap().to_owned();
        // Whatever else it prints must find room.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url, dir: Some(dir) }
    }

    fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    fn data(&self) -> PathBuf {
        self.dir().join("data")
    }

    /// Ends it at once, and leaves its data and what it started.
    fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.dir.take().unwrap()
    }

    /// Sends it a signal and waits for its end.
    fn signal(mut self, name: &str) -> tempfile::TempDir {
        signal(name, u64::from(self.child.id()));
        assert!(self.child.wait().unwrap().success(), "{name}");
        self.dir.take().unwrap()
    }

    fn plant_pid(&self) -> u64 {
        self.json("status")["plant_pid"].as_u64().unwrap()
    }

    fn run(&self, args: &str) -> Output {
        let mut command = program(self.dir());
        command.args(["--server", &self.url]).args(args.split_whitespace());
        command.output().unwrap()
    }

    /// What `args` prints, which must work.
    fn text(&self, args: &str) -> String {
        let done = self.run(args);
        assert!(done.status.success(), "{args}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn json(&self, args: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{args} --json"))).unwrap()
    }

    /// What `args` answers once `holds` holds of it.
    fn until(&self, args: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2000 {
            let answer = self.json(args);
            if holds(&answer) {
                return answer;
            }
        }
        panic!("{args} still answers {}", self.json(args));
    }

    /// The exit status and standard error of `args`.
    fn refused(&self, args: &str) -> (i32, String) {
        let done = self.run(args);
        let code = done.status.code().unwrap();
        (code, String::from_utf8(done.stderr).unwrap())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Our own child, by its handle; it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(dir) = &self.dir {
            end_left(dir.path());
        }
    }
}

/// Ends the plant that a killed server has left, if it has.
fn end_left(dir: &Path) -> Output {
    program(dir).args(["down", "--data", "data"]).output().unwrap()
}

fn signal(name: &str, pid: u64) {
    let done = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(done.success(), "{name} {pid}");
}

/// Whether a process runs, and not only waits for its parent to ask how it ended.
fn lives(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|it| !it.is_empty() && !it.starts_with('Z'))
}

fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.current_dir(dir).env("XDG_RUNTIME_DIR", dir).env("USER", "ada").stdin(Stdio::null());
    command
}

#[test]
fn a_job_is_submitted_shown_waited_for_and_found_again() {
    let up = Up::start("3600");
    let job = up.json("job submit --shape 8x8x8 --name bert --duration 2h --owner ada");
    let id = job["id"].as_u64().unwrap();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let jobs = up.json("job list");
    assert_eq!(jobs["jobs"][0]["name"], "bert");
    assert!(jobs["jobs"][0]["generation"].is_u64(), "{jobs}");
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
    let up = Up::start("60");
    let id = up.json("job submit --shape 4x4x8_twisted --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let before = up.json(&format!("job show {id}"));
    assert!(before["generation"].is_u64(), "{before}");
    let again = Up::start_in(up.kill(), "60");
    let after = again.json(&format!("job show {id}"));
    for field in ["name", "state", "generation", "attempt", "cubes"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(again.json("check")["violations"], serde_json::json!([]));
}

#[test]
fn an_upgrade_leaves_the_plant_and_ctrl_c_ends_it() {
    let up = Up::start("60");
    let id = up.json("job submit --shape 4x4x8 --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let (plant, before) = (up.plant_pid(), up.json("ocs show x3")["pairs"].clone());
    assert!(before[0]["moves"].is_u64(), "{before}");
    let dir = up.signal("TERM");
    assert!(lives(plant));
    let up = Up::start_in(dir, "60");
    assert_eq!(up.plant_pid(), plant, "the same process is found again");
    up.until("ocs show x3", |it| it["known"] == true);
    assert_eq!(up.json("ocs show x3")["pairs"], before, "no mirror has moved");
    let dir = up.signal("INT");
    assert!(!lives(plant));
    // Killed, it leaves its plant, which `down` then ends.
    let up = Up::start_in(dir, "60");
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
fn a_plant_that_is_killed_is_started_anew_with_its_mirrors() {
    let up = Up::start("60");
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
fn a_backup_of_a_running_server_goes_on_elsewhere() {
    let up = Up::start("60");
    let id = up.json("job submit --shape 4x4x8 --name long --duration 30d")["id"].clone();
    up.text(&format!("job wait {id} --running --timeout 60"));
    let (before, pairs) =
        (up.json(&format!("job show {id}")), up.json("ocs show x3")["pairs"].clone());
    let plant = up.plant_pid();
    let rows = up.json("backup copy")["rows"].as_u64().unwrap();
    assert!(rows <= up.json("status")["journal"].as_u64().unwrap());
    let (code, text) = up.refused("backup copy");
    assert!(code == 2 && text.contains("not empty"), "{text}");
    // What comes after the backup is not in it.
    up.text("job submit --shape 2x2x1 --name later");
    let other = tempfile::tempdir().unwrap();
    let copy = up.dir().join("copy");
    let restore = |to: &Path| {
        let mut restore = program(other.path());
        restore.arg("restore").arg(&copy).arg("--data").arg(to).output().unwrap()
    };
    let done = restore(&other.path().join("data"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(restore(&other.path().join("data")).status.code(), Some(2), "it is not empty now");
    let again = Up::start_in(other, "60");
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
}

#[test]
fn two_servers_do_not_share_a_data_directory() {
    let up = Up::start("60");
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
    let up = Up::start("60");
    let submit = "job submit --shape 4x4x4 --name a --key once";
    assert_eq!(up.json(submit)["id"], up.json(submit)["id"]);
    assert_eq!(up.json("job list")["jobs"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_an_exit_status() {
    let up = Up::start("60");
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
    let up = Up::start("60");
    assert_eq!(up.json("job submit --shape 4x4x8 --name a --dry-run")["start"], "now");
    assert!(up.text("job submit --shape 4x4x8 --name a --dry-run").starts_with("starts now"));
    assert_eq!(up.json("job list")["jobs"], serde_json::json!([]));
}

#[test]
fn a_drained_cube_is_left_alone_until_its_owner_returns_it() {
    let up = Up::start("600");
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
    let up = Up::start("600");
    up.text("pod drain pod0");
    up.text("cube undrain cube1");
    up.text("pod undrain pod0");
    up.until("pod show pod0", |it| it["pods"][0]["chips_out"] == 0);
}

#[test]
fn a_job_that_waits_for_what_comes_back_by_itself_is_told_to_wait() {
    let up = Up::start("60");
    up.text("pod drain pod0");
    up.text("job submit --shape 4x4x4 --name late --duration 1h");
    up.text("cube undrain cube5");
    let explained = up.until("job explain 0", |it| it["steps"][0]["step"] == "wait");
    assert_eq!(explained["steps"].as_array().unwrap().len(), 1, "{explained}");
    assert_eq!(explained["forecast"]["start"], "at", "{explained}");
}

#[test]
fn an_injected_fault_has_a_case_and_is_healed() {
    let up = Up::start("3600");
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
    let up = Up::start("60");
    let file = up.dir().join("plant.toml");
    fs::write(&file, up.json("plant get")["plant"].as_str().unwrap()).unwrap();
    assert!(up.text("plant apply plant.toml").contains("nothing"));
    let (code, text) = up.refused("plant apply missing.toml");
    assert_eq!(code, 2, "{text}");
}

#[test]
fn a_picture_of_the_pod_is_drawn() {
    let up = Up::start("60");
    let id = up.json("job submit --shape 8x8x8 --name bert")["id"].as_u64().unwrap();
    up.text(&format!("job wait {id} --running --timeout 60"));
    up.text("pod show --svg pod.svg");
    let svg = fs::read_to_string(up.dir().join("pod.svg")).unwrap();
    assert_eq!(svg.matches(">bert</text>").count(), 8);
}

#[test]
fn down_ends_the_server_and_its_journal_is_whole() {
    let mut up = Up::start("60");
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
