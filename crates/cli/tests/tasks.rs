//! Real tasks, by the program itself: what users are promised (docs/jobs.md), and what bad
//! commands may not do.  Each test has a server of its own on port 0.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use support::{PATIENCE, Up, lives, signal};

impl Up {
    /// Submits a command; returns the job's number.
    fn submit(&self, options: &[&str], command: &[&str]) -> String {
        let args = [&["job", "submit", "--name", "task"], options, &["--"], command];
        self.json(&args.concat())["id"].to_string()
    }

    /// Submits a shell script for one machine.
    fn script(&self, script: &str) -> String {
        self.submit(&["--shape", "2x2x1"], &["sh", "-c", script])
    }

    fn until_state(&self, id: &str, state: &str) -> Value {
        self.until_job(id, state, |it| it["state"] == state)
    }

    fn logs(&self, id: &str) -> String {
        self.text(&["job", "logs", id, "--task", "0"])
    }

    fn until_logged(&self, id: &str, text: &str) {
        self.until_job(id, text, |_| self.logs(id).contains(text));
    }
}

#[test]
fn a_command_runs_on_each_machine_and_is_told_its_place() {
    let up = Up::start();
    let script = "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT; \
                  echo $TPU_WORKER_HOSTNAMES $TPU_TOPOLOGY $TPU_HOST_BOUNDS; pwd; \
                  cat $SELVEDGE_SLICE_FILE; echo secret: $SECRET $PASSED $SELVEDGE_SERVER";
    let asks = ["--env", "SELVEDGE_SERVER=here"];
    let options = [&["--shape", "2x2x4", "--env", "PASSED=on"], &asks[..]].concat();
    let id = up.submit(&options, &["sh", "-c", script]);
    let job = up.until_state(&id, "finished");
    let tasks = job["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 4);
    let machines: std::collections::BTreeSet<&str> =
        tasks.iter().map(|it| it["machine"].as_str().unwrap()).collect();
    assert_eq!(machines.len(), 4, "{job}");
    for (idx, task) in tasks.iter().enumerate() {
        assert_eq!((&task["index"], &task["exit"]), (&idx.into(), &0.into()), "{job}");
        let log = up.text(&["job", "logs", &id, "--task", &idx.to_string()]);
        assert!(log.contains(&format!("rank {idx} of 4 at 127.")), "{log}");
        assert!(log.contains(" 2x2x4 1,2,2\n") && log.ends_with("secret: on here\n"), "{log}");
        let here = up.dir().canonicalize().unwrap();
        assert!(log.contains(&format!("\n{}\n", here.display())), "{log}");
    }
    let log = up.logs(&id);
    let slice = &log[log.find('{').unwrap()..=log.rfind('}').unwrap()];
    let slice: Value = serde_json::from_str(slice).unwrap();
    assert_eq!(slice["chips"].as_array().unwrap().len(), 16);
    assert_eq!((&slice["links"]["n"], &slice["links"]["healthy"]), (&28.into(), &28.into()));
    let all = up.text(&["job", "logs", &id]);
    assert!((0..4).all(|it| all.contains(&format!("[{it}] rank {it} of 4"))), "{all}");
    assert!(up.text(&["job", "show", &id]).contains("exit 0"));
    let (code, refused) = up.refused(&["job", "logs", &id, "--task", "9"]);
    assert!(code == 2 && refused.contains("it has 4"), "{refused}");
}

#[test]
fn a_task_is_the_same_process_after_its_server_was_killed_and_its_end_is_not_missed() {
    let up = Up::start();
    let stays = up.script("echo begun; while ! [ -e go ]; do sleep 0.05; done; echo over");
    let ends = up.script("echo begun; while ! [ -e end ]; do sleep 0.05; done; exit 7");
    up.until_logged(&stays, "begun");
    up.until_logged(&ends, "begun");
    let before = up.until_job(&ends, "known", |it| it["tasks"][0]["pid"].is_u64());
    let tasks = up.job(&stays)["tasks"].clone();
    let dir = up.kill();
    // While nobody is there, one task ends.
    fs::write(dir.path().join("end"), "").unwrap();
    let pid = before["tasks"][0]["pid"].to_string();
    let since = Instant::now();
    while lives(&pid) {
        assert!(since.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    let up = Up::start_with(dir, &[]);
    let job = up.until_state(&ends, "failed");
    assert_eq!(job["tasks"][0]["exit"], 7, "{job}");
    assert_eq!(up.job(&stays)["tasks"], tasks);
    assert!(lives(tasks[0]["pid"].to_string()));
    fs::write(up.dir().join("go"), "").unwrap();
    up.until_state(&stays, "finished");
    assert_eq!(up.logs(&stays), "begun\nover\n", "what was written is kept once");
}

#[test]
fn a_supervisor_that_is_killed_takes_its_task_along_and_the_job_begins_again() {
    let up = Up::start();
    let id = up.script("echo $PPID; sleep 1000");
    let job = up.until_job(&id, "running", |it| it["tasks"][0]["pid"].is_u64());
    let pid = job["tasks"][0]["pid"].to_string();
    up.until_logged(&id, "\n");
    signal("KILL", up.logs(&id).trim());
    let again =
        up.until_job(&id, "again", |it| it["attempt"] == 2 && it["tasks"][0]["pid"].is_u64());
    assert!(!lives(&pid), "{again}");
    assert_eq!(again["n_failed"], 0, "a lost task is no failure of the job's own");
}

#[test]
fn a_job_fails_by_its_first_failure_and_none_of_its_tasks_hangs() {
    let up = Up::start();
    let script = "[ $RANK = 1 ] && { sleep 1; kill -9 $$; }; sleep 1000";
    let id = up.submit(&["--shape", "2x2x2"], &["sh", "-c", script]);
    let job = up.until_state(&id, "failed");
    assert_eq!(job["why"], "exit 137", "{job}");
    assert_eq!((&job["tasks"][1]["exit"], &job["tasks"][1]["signal"]), (&137.into(), &9.into()));
    assert_eq!(job["tasks"][0]["signal"], 15, "it was asked to end: {job}");
    // With a retry it is started again, and may do better.
    let script = "echo start $SELVEDGE_ATTEMPT; [ $SELVEDGE_ATTEMPT = 2 ]";
    let id = up.submit(&["--shape", "2x2x1", "--retries", "1"], &["sh", "-c", script]);
    let job = up.until_state(&id, "finished");
    assert_eq!((&job["attempt"], &job["n_failed"]), (&2.into(), &1.into()));
    assert_eq!(up.logs(&id), "start 2\n");
    assert_eq!(up.text(&["job", "logs", &id, "--task", "0", "--attempt", "1"]), "start 1\n");
}

#[test]
fn a_drained_machine_gives_notice_and_the_job_goes_on_elsewhere() {
    let up = Up::start();
    let script = "trap 'cat $SELVEDGE_NOTICE_FILE; exit 0' TERM; echo on $SELVEDGE_ADDRESS; \
                  [ $SELVEDGE_ATTEMPT = 2 ] && exit 0; while :; do sleep 0.1; done";
    let id = up.script(script);
    up.until_logged(&id, "on 127.");
    let job = up.until_job(&id, "known", |it| it["tasks"][0]["pid"].is_u64());
    let machine = job["tasks"][0]["machine"].as_str().unwrap().to_owned();
    up.text(&["machine", "drain", &machine, "--why", "a fan"]);
    let job = up.until_state(&id, "finished");
    assert_ne!(job["tasks"][0]["machine"], machine.as_str());
    let first = up.text(&["job", "logs", &id, "--task", "0", "--attempt", "1"]);
    // Between them the shell may say that its sleep was terminated.
    let (address, rest) = first.split_once('\n').unwrap();
    let notice = &rest[rest.find('{').unwrap()..];
    assert_ne!(up.logs(&id).trim(), address);
    let notice: Value = serde_json::from_str(notice).unwrap();
    assert_eq!(notice["why"], format!("{machine} was drained"));
    assert!(notice["grace_s"].as_f64().unwrap() > 1.0, "{notice}");
}

#[test]
fn a_real_task_starts_within_ten_seconds_of_its_submit_on_an_idle_pod() {
    let up = Up::start();
    for shape in ["2x2x1", "4x4x4"] {
        let since = Instant::now();
        let id = up.submit(&["--shape", shape], &["sleep", "1000"]);
        up.until_state(&id, "running");
        assert!(since.elapsed() < Duration::from_secs(10), "{shape}: {:?}", since.elapsed());
        let status = up.json(&["status"]);
        assert_eq!(status["speed"], 1.0, "plant time is real time while a real task runs");
        up.text(&["job", "cancel", &id]);
        let job = up.until_state(&id, "cancelled");
        assert!(job["tasks"].as_array().unwrap().iter().all(|it| it["signal"] == 15), "{job}");
        assert_eq!(up.json(&["status"])["speed"], 60.0);
    }
}

#[test]
fn a_machine_that_dies_under_a_real_task_or_a_requeue_starts_it_again_and_counts_no_failure() {
    let up = Up::start();
    let id = up.script("[ $SELVEDGE_ATTEMPT = 3 ] && exit 0; sleep 1000");
    let job = up.until_job(&id, "running", |it| it["tasks"][0]["pid"].is_u64());
    let machine = job["tasks"][0]["machine"].as_str().unwrap().to_owned();
    up.text(&["fault", "inject", "machine", &machine]);
    let again = |n: u64| move |it: &Value| it["attempt"] == n && it["tasks"][0]["pid"].is_u64();
    let job = up.until_job(&id, "elsewhere", again(2));
    assert_ne!(job["tasks"][0]["machine"], machine.as_str());
    assert_eq!((&job["n_failed"], &job["n_interrupted"]), (&0.into(), &1.into()), "{job}");
    up.text(&["job", "requeue", &id]);
    let job = up.until_state(&id, "finished");
    assert_eq!((&job["attempt"], &job["n_failed"]), (&3.into(), &0.into()), "{job}");
}

#[test]
fn a_command_that_does_not_exist_or_cannot_begin_fails_and_says_so() {
    let up = Up::start();
    let id = up.submit(&["--shape", "2x2x1"], &["no-such-program", "x"]);
    let job = up.until_state(&id, "failed");
    assert_eq!(job["tasks"][0]["exit"], 127);
    assert!(up.logs(&id).contains("cannot run no-such-program"), "{}", up.logs(&id));
    let id = up.submit(&["--shape", "2x2x1", "--dir", "/no/such"], &["true"]);
    assert_eq!(up.until_state(&id, "failed")["tasks"][0]["exit"], 126);
    assert!(up.logs(&id).contains("cannot begin in /no/such"), "{}", up.logs(&id));
}

#[test]
fn a_command_that_exits_at_once_is_seen_to_have_run_and_its_status_ends_the_job() {
    let up = Up::start();
    for (script, state, exit) in [("exit 0", "finished", 0), ("exit 7", "failed", 7)] {
        let job = up.until_state(&up.script(script), state);
        let task = &job["tasks"][0];
        assert!(task["pid"].is_u64() && job["started_s"].is_f64(), "{job}");
        assert_eq!(task["exit"], exit, "{job}");
    }
}

#[test]
fn a_command_that_ignores_sigterm_or_forks_away_is_ended_with_all_it_brought_forth() {
    let up = Up::start();
    // It leaves its session, its parent and its standard output.
    let script = "trap '' TERM; \
                  setsid sh -c 'trap \"\" TERM; sh -c \"echo \\$\\$ > away; exec sleep 1000\" > /dev/null 2>&1 &'; \
                  while ! [ -s away ]; do sleep 0.05; done; echo ready; while :; do sleep 1; done";
    let id = up.script(script);
    up.until_logged(&id, "ready");
    let job = up.until_job(&id, "known", |it| it["tasks"][0]["pid"].is_u64());
    let task = job["tasks"][0]["pid"].to_string();
    let away = pid_of(up.dir().join("away"));
    assert!(lives(&away) && lives(&task));
    up.text(&["job", "cancel", &id]);
    // Its notice is a minute; so long is nobody kept waiting here.
    up.until_state(&id, "stopping");
    std::thread::sleep(Duration::from_secs(1));
    assert!(lives(&task), "it has its grace");
    let dir = up.down();
    assert!(!lives(&task) && !lives(&away), "`down` ends everything");
    let up = Up::start_with(dir, &[]);
    let left = up.script("(setsid sleep 1000 > /dev/null 2>&1 & echo $! > left); echo done");
    up.until_state(&left, "finished");
    assert!(!lives(pid_of(up.dir().join("left"))), "what a task leaves behind ends with it");
}

fn pid_of(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn a_command_that_fills_the_disk_with_output_keeps_the_first_of_it() {
    let up = Up::start();
    let id =
        up.submit(&["--shape", "2x2x1"], &["sh", "-c", "head -c 40000000 /dev/zero; echo end"]);
    up.until_state(&id, "finished");
    let log = up.logs(&id);
    assert!(log.len() < (16 << 20) + 200, "{}", log.len());
    let said = log.trim_start_matches('\0');
    assert!(said.contains("output beyond 16777216 bytes is not kept"), "{said}");
    assert!(said.contains("23222788 more bytes were written"), "{said}");
}

#[test]
fn a_task_whose_heart_stops_has_a_case_and_is_ended() {
    let up = Up::start();
    let script = "for i in 1 2 3 4 5 6 7 8; do touch $SELVEDGE_HEARTBEAT_FILE; sleep 0.5; done; \
                  [ $SELVEDGE_ATTEMPT = 2 ] && exit 0; echo hangs; sleep 1000";
    let options = ["--shape", "2x2x1", "--heartbeat", "3", "--retries", "1"];
    let id = up.submit(&options, &["sh", "-c", script]);
    let job = up.until_state(&id, "finished");
    assert_eq!((&job["attempt"], &job["n_failed"]), (&2.into(), &1.into()), "{job}");
    let first = up.text(&["job", "logs", &id, "--task", "0", "--attempt", "1"]);
    assert!(first.starts_with("hangs\n[selvedge: its heartbeat was not touched"), "{first}");
    let cases = up.json(&["repair", "list"]);
    assert_eq!(cases["cases"][0]["symptom"], "task_hung", "{cases}");
    assert_eq!(cases["cases"][0]["evidence"][0]["words"], format!("of job{id}"), "{cases}");
}

/// One that saves what it has and leaves in order when it is asked to has not done its work.
#[test]
fn a_task_that_hung_has_failed_however_well_it_ends() {
    let up = Up::start();
    let script = "trap 'exit 0' TERM; echo hangs; sleep 1000 & wait";
    let options = ["--shape", "2x2x2", "--heartbeat", "2"];
    let id = up.submit(&options, &["sh", "-c", script]);
    let job = up.until_state(&id, "failed");
    let why = job["why"].as_str().unwrap();
    assert!(why.starts_with("task ") && why.contains(" hung: "), "{job}");
    assert_eq!(job["n_failed"], 1, "{job}");
    assert!(job["tasks"].as_array().unwrap().iter().all(|it| it["exit"] == 0), "{job}");
    // Both stood still: one machine has a case, and none is taken out.
    let cases = up.json(&["repair", "list"]);
    assert_eq!(cases["cases"].as_array().unwrap().len(), 1, "{cases}");
    assert_eq!(cases["cases"][0]["state"], "observed", "{cases}");
    let cubes = up.json(&["cube", "show"])["cubes"].as_array().unwrap().clone();
    assert!(cubes.iter().all(|it| it["chips_out"] == 0), "{cubes:?}");
}

#[test]
fn tasks_are_given_time_to_save_when_everything_is_to_end() {
    let up = Up::start();
    let id = up.script(
        "trap 'cat $SELVEDGE_NOTICE_FILE; sleep 1; echo saved > saved; exit 0' TERM; \
         echo on; while :; do sleep 0.1; done",
    );
    up.until_logged(&id, "on");
    let job = up.until_job(&id, "known", |it| it["tasks"][0]["pid"].is_u64());
    let dir = up.down();
    assert_eq!(fs::read_to_string(dir.path().join("saved")).unwrap(), "saved\n");
    assert!(!lives(job["tasks"][0]["pid"].to_string()));
}

/// The copy has no processes: what ran is lost there, and begins again as another start.
#[test]
fn a_real_job_of_a_backup_begins_again_under_a_number_of_its_own() {
    let up = Up::start();
    let id = up.script("echo start $SELVEDGE_ATTEMPT; sleep 1000");
    up.until_logged(&id, "start 1");
    up.until_state(&id, "running");
    up.text(&["backup", "copy"]);
    let other = support::dir();
    let copy = up.dir().join("copy");
    let restored =
        support::program(other.path()).arg("restore").arg(&copy).args(["--data", "data"]).output();
    assert!(restored.unwrap().status.success());
    let again = Up::start_with(other, &[]);
    again.until_job(&id, "again", |it| it["attempt"] == 2 && it["tasks"][0]["pid"].is_u64());
    again.until_logged(&id, "start 2");
    assert_eq!(up.job(&id)["attempt"], 1, "they share nothing");
}

/// A data directory that was put together of an older journal and newer tasks: what ran there has
/// the number of the job that is submitted next, and is not taken for it.
#[test]
fn a_job_is_not_taken_for_one_of_the_same_number_that_its_journal_does_not_know() {
    let up = Up::start();
    up.text(&["backup", "copy"]);
    let id = up.script("echo first; sleep 1000");
    up.until_logged(&id, "first");
    let other = support::dir();
    let copy = up.dir().join("copy");
    let restored =
        support::program(other.path()).arg("restore").arg(&copy).args(["--data", "data"]).output();
    assert!(restored.unwrap().status.success());
    let copy = |from: &Path, to: &Path| {
        let parts = ["tasks", "launched"].map(|it| from.join(it));
        assert!(Command::new("cp").arg("-a").args(parts).arg(to).status().unwrap().success());
    };
    let kept = support::dir();
    copy(&up.data(), kept.path());
    up.text(&["job", "cancel", &id]);
    up.until_state(&id, "cancelled");
    let data = other.path().join("data");
    copy(kept.path(), &data);
    let again = Up::start_with(other, &[]);
    let launched = data.join(format!("launched/{id}-1"));
    again.until("status", |_| !launched.exists());
    // A server that is killed just then has ended them, and has not come to forget them.
    copy(kept.path(), &data);
    let next = again.script("echo second");
    assert_eq!(next, id);
    let job = again.until_state(&next, "finished");
    assert_eq!((&job["attempt"], again.logs(&next).as_str()), (&1.into(), "second\n"), "{job}");
}

#[test]
fn a_task_that_stops_its_supervisor_is_ended_with_it() {
    let up = Up::start();
    // Not by its output: a supervisor that stands still copies none.
    let told = up.dir().join("supervisor");
    let id = up.script(&format!("echo $PPID > {}; kill -STOP $PPID; exit 0", told.display()));
    up.until_job(&id, "told", |_| fs::read_to_string(&told).is_ok_and(|it| it.ends_with('\n')));
    let supervisor = fs::read_to_string(&told).unwrap().trim().to_owned();
    up.text(&["job", "cancel", &id]);
    up.until_state(&id, "cancelled");
    assert!(!lives(&supervisor));
    assert_eq!(up.json(&["status"])["speed"], 60.0);
}

/// What is kept of a task is its own account's: it can be removed, and was there all the same.
#[test]
fn a_task_that_removes_what_is_kept_of_it_is_lost_and_begins_again() {
    let up = Up::start();
    let id = up.script(
        "[ $SELVEDGE_ATTEMPT = 1 ] && rm -rf $(dirname $SELVEDGE_SLICE_FILE)
         [ $SELVEDGE_ATTEMPT = 2 ] && sleep 1 && rm -f $(dirname $SELVEDGE_SLICE_FILE)/0/*
         exit 0",
    );
    let job = up.until_state(&id, "finished");
    assert_eq!((&job["attempt"], &job["n_failed"]), (&3.into(), &0.into()), "{job}");
}

/// Whether its files go or one of them, before or after it is known: it ends when it is told to,
/// and whoever kills the server meanwhile does not make it two.
#[test]
fn a_task_that_removes_what_is_kept_of_it_is_one_process_and_can_be_ended() {
    let mut up = Up::start();
    for gone in ["-rf $D", "-rf $D/../../..", "-f $D/run.json", "-f $D/run.json $D/lock"] {
        let told = up.dir().join("told");
        let script = format!(
            "D=$(dirname $SELVEDGE_NOTICE_FILE); rm {gone}; \
             echo \"$SELVEDGE_ATTEMPT $$\" >> {}; sleep 1000",
            told.display()
        );
        let id = up.script(&script);
        up.until_job(&id, "told", |_| fs::read_to_string(&told).is_ok_and(|it| it.ends_with('\n')));
        up = Up::start_with(up.kill(), &[]);
        // What cannot be known any more may be lost and begin again, as another attempt.
        up.until_job(&id, "looked at", |it| it["state"] != "starting");
        up.text(&["job", "cancel", &id]);
        up.until_state(&id, "cancelled");
        let told = fs::read_to_string(&told).unwrap();
        let mut attempts: Vec<&str> =
            told.lines().filter_map(|it| Some(it.split_once(' ')?.0)).collect();
        let n_lines = attempts.len();
        attempts.dedup();
        assert_eq!(attempts.len(), n_lines, "{gone}: {told}");
        for pid in told.lines().filter_map(|it| Some(it.split_once(' ')?.1)) {
            assert!(!lives(pid), "{gone}: {told}");
        }
        fs::remove_file(up.dir().join("told")).unwrap();
    }
}

/// Whatever a task puts in the place of what is kept of it: nothing else stops, it ends when it is
/// told to, and how it really ended is what counts.
#[test]
#[ignore = "one of the long tests of cargo xtask test"]
fn a_task_that_puts_something_else_in_the_place_of_its_files_is_ended_and_stops_nobody() {
    let up = Up::start();
    let forged = r#"{"code":0,"signal":null,"at_ms":0,"n_written":0,"n_kept":0}"#;
    let odd = [
        "mkfifo exit.json",
        "mkfifo lock.; mv lock. lock; rm run.json; mkfifo run.json",
        "mkfifo pipe; mv pipe output; echo 1",
        "ln -s /dev/zero exit.json",
        &format!("echo '{forged}' > exit.json"),
        "echo garbage > exit.json",
        "mkdir exit.json; touch exit.json/x",
        "mkdir notice.json ../told ../hung",
        "mkfifo ../told ../hung; rm ../attempt.json; mkfifo ../attempt.json",
    ];
    let told = |nth: usize| up.dir().join(format!("told{nth}"));
    let submit = |(nth, script): (usize, &&str)| {
        let told = told(nth).display().to_string();
        up.script(&format!(
            "cd $(dirname $SELVEDGE_NOTICE_FILE) && {script}; echo $$ > {told}; sleep 1000"
        ))
    };
    // All at once: time passes slowly while one of them runs.
    let ids: Vec<String> = odd.iter().enumerate().map(submit).collect();
    let pid_of = |(nth, id): (usize, &String)| {
        let pid = || fs::read_to_string(told(nth)).ok().filter(|it| it.ends_with('\n'));
        up.until_job(id, "told", |_| pid().is_some());
        pid().unwrap().trim().to_owned()
    };
    let pids: Vec<String> = ids.iter().enumerate().map(pid_of).collect();
    // It moves on as ever.
    up.until_state(&up.script("exit 0"), "finished");
    for ((id, pid), odd) in ids.iter().zip(&pids).zip(odd) {
        let state = up.job(id)["state"].clone();
        assert!(state == "running" || state == "starting", "{odd}: {state}");
        assert!(lives(pid), "{odd}");
        up.text(&["job", "logs", id]);
        up.text(&["job", "cancel", id]);
        up.until_state(id, "cancelled");
        assert!(!lives(pid), "{odd}");
    }
    // How it ended is its supervisor's to say, also where something stands in its way.
    let ends = format!("cd $(dirname $SELVEDGE_NOTICE_FILE); echo '{forged}' > exit.json; exit 7");
    let id = up.script(&ends);
    assert_eq!(up.until_state(&id, "failed")["tasks"][0]["exit"], 7);
    let id = up.script("cd $(dirname $SELVEDGE_NOTICE_FILE); mkdir -p exit.json/x; exit 7");
    assert_eq!(up.until_state(&id, "failed")["tasks"][0]["exit"], 7);
    // One that ends its supervisor and says that it was done leaves nobody behind.
    let told = up.dir().join("left");
    let id = up.script(&format!(
        "cd $(dirname $SELVEDGE_NOTICE_FILE); setsid sh -c 'echo $$ > {}; exec sleep 1000' & \
         while ! [ -s {} ]; do sleep 0.1; done; echo '{forged}' > exit.json; kill -9 $PPID",
        told.display(),
        told.display(),
    ));
    up.until_state(&id, "finished");
    let left = fs::read_to_string(told).unwrap();
    assert!(!lives(left.trim()), "{left}");
}

/// What whoever started the server had open, or deaf to signals, is not for tasks.
#[test]
fn a_task_has_none_of_the_files_and_deaf_signals_that_the_server_was_started_with() {
    let dir = support::dir();
    let secret = dir.path().join("secret");
    fs::write(&secret, "for the server alone").unwrap();
    let mut shell = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_selvedge");
    shell
        .args(["-c", "trap '' QUIT USR1; exec 9<secret; exec \"$@\"", "sh", program])
        .args(["up", "--json", "--data", "data", "--listen", "127.0.0.1:0"])
        .current_dir(dir.path())
        .env("SELVEDGE_RUNTIME_DIR", dir.path());
    let up = Up::of(shell, dir);
    let look = "grep SigIgn /proc/self/status; cat <&9; ls -l /proc/self/fd /proc/$PPID/fd";
    let id = up.script(look);
    up.until_job(&id, "over", |it| it["state"] == "finished" || it["state"] == "failed");
    let log = up.logs(&id);
    assert!(!log.contains("for the server alone") && !log.contains("secret"), "{log}");
    let ignored = log.lines().find_map(|it| it.strip_prefix("SigIgn:")).unwrap().trim();
    // The C library keeps 32 and 33 to itself.
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff, 0, "{log}");
}

#[test]
fn a_heart_that_stops_is_missed_whatever_the_clock_says() {
    let up = Up::start();
    // Its files are of a time that has not come, as after a clock that was set back.
    let script = "touch -d '+1 day' $SELVEDGE_HEARTBEAT_FILE; sleep 1000";
    let options = ["--shape", "2x2x1", "--heartbeat", "2"];
    let id = up.submit(&options, &["sh", "-c", script]);
    up.until_state(&id, "failed");
    let cases = up.json(&["repair", "list"]);
    assert_eq!(cases["cases"][0]["symptom"], "task_hung", "{cases}");
    // And one that beats lives, though each beat is of long ago.
    let script = "for i in 1 2 3 4 5 6 7 8; do touch -d \"-$i day\" $SELVEDGE_HEARTBEAT_FILE; \
                  sleep 0.5; done";
    let id = up.submit(&options, &["sh", "-c", script]);
    up.until_state(&id, "finished");
}

#[test]
fn a_submit_that_cannot_be_is_refused_by_name() {
    let up = Up::start();
    let refused = |options: &[&str], command: &[&str], wanted: &str| {
        let args = [&["job", "submit", "--name", "n"], options, &["--"], command].concat();
        let (code, text) = up.refused(&args);
        assert!(code == 2 && text.contains(wanted), "{options:?}: {code} {text}");
    };
    refused(&["--shape", "2x2x1", "--array", "10000"], &["true"], "256");
    refused(&["--shape", "2x2x1", "--array", "10001"], &["true"], "from 1 to 10000");
    refused(&["--shape", "2x2x1", "--array", "0"], &["true"], "from 1 to 10000");
    refused(&["--shape", "8x16x16"], &["true"], "at most 256");
    refused(&["--shape", "2x2x1", "--env", "RANK=1"], &["true"], "\"RANK\" cannot be set");
    refused(&["--shape", "2x2x1", "--env", "A-B=1"], &["true"], "\"A-B\" cannot be set");
    refused(&["--shape", "2x2x1", "--env", "SELVEDGE_TASK=1"], &["true"], "cannot be set");
    refused(&["--shape", "2x2x1"], &[""], "at least the name of a program");
    refused(&["--shape", "2x2x1", "--duration", "1h"], &["true"], "not both");
    let long = "x".repeat(65_000);
    refused(&["--shape", "2x2x1"], &["echo", &long, &long], "at most 65536 bytes");
    let done = up.run(&["job", "submit", "--shape", "2x2x1", "--name", "n", "--heartbeat", "5"]);
    assert_eq!(done.status.code(), Some(2), "a heartbeat belongs to a command");
    for name in ["a\nb", &"n".repeat(10_000), "", "  "] {
        let args = ["job", "submit", "--shape", "2x2x1", "--name", name, "--", "true"];
        let (code, text) = up.refused(&args);
        assert!(code == 2 && text.contains("printable characters") && text.len() < 1000, "{text}");
    }
    assert!(up.json(&["job", "list"])["jobs"].as_array().unwrap().is_empty());
}

#[test]
fn a_hostile_name_is_shown_as_text_wherever_it_is_shown() {
    let up = Up::start();
    let name = "<script>alert(1)</script>'\"&;$(reboot)`x`";
    let args = ["job", "submit", "--shape", "2x2x1", "--name", name, "--"];
    let command = ["sh", "-c", "echo \"$SELVEDGE_JOB_NAME\"; echo '<b>out</b>'"];
    let id = up.json(&[&args[..], &command].concat())["id"].to_string();
    let job = up.until_state(&id, "finished");
    assert_eq!(job["name"], name);
    assert_eq!(up.logs(&id), format!("{name}\n<b>out</b>\n"), "no shell has read it");
    assert!(
        up.text(&["job", "list"]).contains(name) && up.text(&["job", "show", &id]).contains(name)
    );
    assert!(up.text(&["job", "explain", &id]).contains("job"));
    // What would move a cursor, turn the text or look like a row of ours is shown by its code.
    let acts = up.submit(&["--shape", "2x2x1"], &["echo", "\u{1b}]0;x\u{7}\nid \u{202e}"]);
    let shown = up.text(&["job", "show", &acts]);
    assert!(shown.contains(r"\u{1b}]0;x\u{7}\nid \u{202e}"), "{shown}");
    let token = fs::read_to_string(up.dir().join("data/token")).unwrap();
    for path in ["/", "/jobs", "/events", &format!("/jobs/{id}"), "/metrics", "/v1/events/recent"] {
        let page = get(&up.url, path, token.trim());
        assert!(!page.contains("<script>alert"), "{path}: {page}");
    }
}

/// The page at `path`, as a program with the token gets it.
fn get(url: &str, path: &str, token: &str) -> String {
    use std::io::{Read as _, Write as _};
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The account that has nothing, on every Debian.
const NOBODY: &str = "nobody";

/// Whether tasks can run under other accounts here; says so where not.
fn is_root(test: &str) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !is_root {
        println!("not run: {test}: it takes root to run tasks under other accounts");
    }
    is_root
}

#[test]
fn a_task_under_another_account_reads_what_is_its_own_and_not_the_servers_secrets() {
    if !is_root("a task under another account") {
        return;
    }
    let (first, options) = (support::dir(), ["--task-account", NOBODY]);
    // Its way to the data is shut: that is told at the start, with what to do.
    let refused = support::up(first.path(), &options).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("chmod o+x"), "{refused}");
    fs::set_permissions(first.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let up = Up::start_with(first, &options);
    let data = up.data().display().to_string();
    let script = format!(
        "id -un; echo home $HOME $USER; pwd; touch mine $SELVEDGE_HEARTBEAT_FILE && echo touched; \
         head -c1 $SELVEDGE_SLICE_FILE; echo; for it in {data} {data}/tasks {data}/token \
         {data}/users.json {data}/journal.db ../task.json ../run.json ../output; do \
         ls $it >/dev/null 2>&1 && cat $it >/dev/null 2>&1 && echo open $it; done; kill -9 $PPID; \
         trap 'cat $SELVEDGE_NOTICE_FILE; exit 3' TERM; echo ready; \
         while :; do sleep 0.05; done"
    );
    let at = ["--shape", "2x2x1", "--heartbeat", "1000", "--dir", "/tmp"];
    let id = up.submit(
        &at[..4],
        &["sh", "-c", &format!("cd ${{SELVEDGE_NOTICE_FILE%/*}}/work; {script}")],
    );
    up.until_logged(&id, "ready");
    let log = up.logs(&id);
    assert!(log.starts_with("nobody\nhome /nonexistent nobody\n"), "{log}");
    assert!(log.contains("touched\n{\n") && !log.contains("open "), "{log}");
    let job = up.until_job(&id, "its process", |it| it["tasks"][0]["pid"].is_u64());
    let (pid, account) = (job["tasks"][0]["pid"].to_string(), &job["account"]);
    assert_eq!(account, NOBODY, "{job}");
    let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert_ne!(owner, 0);
    assert!(up.text(&["job", "show", &id]).contains("under the account nobody"));
    // What the server keeps is closed to others, whatever the machine's umask.
    let modes = fs::read_dir(up.data()).unwrap().filter_map(|it| {
        let it = it.unwrap();
        // Scratch may have got another name meanwhile.
        let mode = it.metadata().ok()?.permissions().mode() & 0o77;
        Some((it.file_name().into_string().unwrap(), mode))
    });
    let open: Vec<_> = modes.filter(|(_, mode)| *mode != 0).collect();
    assert_eq!(open, [("tasks".to_owned(), 0o11)]);
    // A server that comes back finds the same process, tells it the notice, and ends it.
    let up = Up::start_with(up.kill(), &options);
    assert_eq!(up.job(&id)["tasks"][0]["pid"].to_string(), pid);
    up.text(&["job", "cancel", &id]);
    up.until_state(&id, "cancelled");
    assert!(!lives(&pid) && up.logs(&id).contains("\"why\""), "{}", up.logs(&id));
}

#[test]
fn a_users_commands_run_under_the_account_that_the_user_was_given() {
    if !is_root("a user's own account") {
        return;
    }
    let dir = support::dir();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let up = Up::start_with(dir, &[]);
    let add = |name: &str, account: &str| {
        up.run(&["user", "add", name, "--role", "user", "--account", account])
    };
    for (account, why) in [("root", "superuser"), ("no-such", "no account"), ("", "no account")] {
        let done = add("bo", account);
        assert!(!done.status.success() && String::from_utf8_lossy(&done.stderr).contains(why));
    }
    let token = add("eve", NOBODY).stdout;
    let file = up.dir().join("eve.token");
    fs::write(&file, token).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let hers =
        ["--token-file", file.to_str().unwrap(), "job", "submit", "--name", "hers", "--shape"];
    let job = up.json(&[&hers[..], &["2x2x1", "--dir", "/", "--", "id", "-un"]].concat()[..]);
    let id = job["id"].to_string();
    up.until_state(&id, "finished");
    assert_eq!(up.logs(&id), "nobody\n");
    let own = up.submit(&["--shape", "2x2x1", "--dir", "/"], &["id", "-un"]);
    up.until_state(&own, "finished");
    assert_eq!(up.logs(&own), "root\n", "the operator's command is the server's own");
    assert!(up.text("user list").contains("nobody"));
    assert!(up.text("events --audit").contains("under the account nobody"));
    // Once she is gone, what she had submitted does not become the server's.
    let held = up.json(
        &[&hers[..], &["2x2x1", "--dir", "/", "--", "sh", "-c", "id -un; exit 1"]].concat()[..],
    );
    up.text("user remove eve");
    up.until_state(&held["id"].to_string(), "failed");
    assert_eq!(up.logs(&held["id"].to_string()), "nobody\n");
}
